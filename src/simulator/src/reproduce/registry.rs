//! The one place where experiments are registered.

use super::Experiment;
use super::{container, cross_layer, hit, hybrid, jobpacker, nas, nomora, pat};

/// Every experiment of this version, in the order in which they are listed and run.
#[must_use]
pub fn experiments() -> &'static [Experiment] {
    &[
        cross_layer::STORM,
        cross_layer::HADOOP,
        cross_layer::COMPLETION,
        cross_layer::DECISION_TIME,
        cross_layer::FAILURE,
        container::TABLE1,
        hit::COMPLETION,
        hit::TOPOLOGIES,
        hit::BANDWIDTH,
        pat::COST,
        pat::NETWORK_USE,
        pat::VIOLATIONS,
        nomora::QUALITY,
        nomora::RUNTIME,
        nomora::LATENCY,
        nas::THROUGHPUT,
        nas::COMPLETION,
        nas::TRAFFIC,
        nas::MECHANISMS,
        nas::CONGESTION,
        nas::THRESHOLDS,
        nas::USERS,
        nas::ASSUMPTIONS,
        nas::VALIDATION,
        jobpacker::BATCH,
        jobpacker::ONLINE,
        jobpacker::MIXED,
        jobpacker::SENSITIVITY,
        jobpacker::FORECAST,
        hybrid::BATCH,
        hybrid::ONLINE,
        hybrid::ABLATION,
        hybrid::ERROR,
        hybrid::SVM,
    ]
}
