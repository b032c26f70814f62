//! The one place where experiments are registered.

use super::Experiment;
use super::cross_layer;

/// Every experiment of this version, in the order in which they are listed and run.
#[must_use]
pub fn experiments() -> &'static [&'static dyn Experiment] {
    &[&cross_layer::DecisionTime, &cross_layer::Failure]
}
