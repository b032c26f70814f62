//! Metrics of what NameNodes say of slow DataNodes.

use super::metric::{Kind, Metric, metric};
use super::registry::Metrics;
use metrics::{Gauge, Unit};

const HOSTS: &str = "hintd_slow_peers";
const POLLS: &str = "hintd_slow_peer_polls_total";
const REPORTS: &str = "hintd_slow_peer_reports_total";

/// Their entries in the list of all.
pub(super) const ROWS: &[Metric] = &[
    metric(HOSTS, Kind::Gauge, Unit::Count, "Hosts that DataNodes report as slow."),
    metric(POLLS, Kind::Counter, Unit::Count, "Polls of NameNodes for slow DataNodes, by result."),
    metric(REPORTS, Kind::Counter, Unit::Count, "Reports of slow DataNodes that were read, by what became of them."),
];

/// Records what the poller of slow DataNodes does.
#[derive(Clone)]
pub struct SlowPeerMetrics {
    metrics: Metrics,
    hosts: Gauge,
}

impl Metrics {
    /// Handles for the poller of slow DataNodes.
    pub fn slow_peers(&self) -> SlowPeerMetrics {
        SlowPeerMetrics { hosts: self.gauge(HOSTS, &[]), metrics: self.clone() }
    }
}

impl SlowPeerMetrics {
    /// A NameNode answered, or failed to for a reason out of a closed list.
    pub fn polled(&self, result: &'static str) {
        self.metrics.counter(POLLS, &[("result", result)]).add(1);
    }

    /// So many reports were taken, or left out for a reason out of a closed list.
    pub fn reports(&self, result: &'static str, count: u64) {
        self.metrics.counter(REPORTS, &[("result", result)]).add(count);
    }

    /// Hosts that are reported as slow.
    pub fn slow(&self, hosts: usize) {
        self.hosts.set(hosts as f64);
    }
}

/// Records each of them, for the test of the list of all.
#[cfg(test)]
pub(super) fn record(metrics: &Metrics) {
    let slow_peers = metrics.slow_peers();
    slow_peers.polled("answered");
    slow_peers.reports("taken", 1);
    slow_peers.slow(1);
}
