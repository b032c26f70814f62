//! The one place where experiments are registered.

use super::Experiment;
use super::{cross_layer, nas};

/// Every experiment of this version, in the order in which they are listed and run.
#[must_use]
pub fn experiments() -> &'static [&'static dyn Experiment] {
    &[
        &cross_layer::DecisionTime,
        &cross_layer::Failure,
        &nas::THROUGHPUT,
        &nas::COMPLETION,
        &nas::TRAFFIC,
        &nas::CONGESTION,
        &nas::THRESHOLDS,
        &nas::USERS,
        &nas::Validation,
    ]
}
