//! The one place where experiments are registered.

use super::Experiment;

/// Every experiment of this version, in the order in which they are listed and run.
#[must_use]
pub fn experiments() -> &'static [&'static dyn Experiment] {
    &[]
}
