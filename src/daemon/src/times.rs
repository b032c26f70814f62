//! Times of the clock as the core counts them.

use hintd_model::units::Micros;
use std::time::Duration;

/// A span in microseconds; one that is too long for that is the longest there is.
pub(crate) fn micros(span: Duration) -> Micros {
    Micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}
