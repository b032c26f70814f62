//! An entry in the list of metrics.

use metrics::Unit;

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rises only.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Distribution in fixed buckets.
    Histogram,
}

/// One metric's entry in the list.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The exported name, with its unit.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// What it means.
    pub help: &'static str,
}

pub(super) const fn metric(name: &'static str, kind: Kind, unit: Unit, help: &'static str) -> Metric {
    Metric { name, kind, unit, help }
}
