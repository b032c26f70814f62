//! The one place where experiments are registered.

use super::Experiment;
use super::{container, cross_layer, hit, jobpacker, nas, pat};

/// Every experiment of this version, in the order in which they are listed and run.
#[must_use]
pub fn experiments() -> &'static [&'static dyn Experiment] {
    &[
        &cross_layer::Throughput::STORM,
        &cross_layer::Throughput::HADOOP,
        &cross_layer::Completion,
        &cross_layer::DecisionTime,
        &cross_layer::Failure,
        &container::Table1,
        &hit::Completion,
        &hit::Topologies,
        &hit::Bandwidth,
        &pat::Cost,
        &pat::NetworkUse,
        &pat::Violations,
        &nas::THROUGHPUT,
        &nas::COMPLETION,
        &nas::TRAFFIC,
        &nas::MECHANISMS,
        &nas::CONGESTION,
        &nas::THRESHOLDS,
        &nas::USERS,
        &nas::ASSUMPTIONS,
        &nas::Validation,
        &jobpacker::BATCH,
        &jobpacker::ONLINE,
        &jobpacker::MIXED,
        &jobpacker::SENSITIVITY,
        &jobpacker::FORECAST,
    ]
}
