//! Metrics of rounds: requests that are decided together.

use super::metric::{Kind, Metric, metric};
use super::registry::Metrics;
use metrics::Unit;
use std::time::Duration;

const ROUNDS: &str = "hintd_rounds_total";
pub(super) const REQUESTS: &str = "hintd_round_requests";
const SECONDS: &str = "hintd_round_seconds";

/// Their entries in the list of all.
pub(super) const ROWS: &[Metric] = &[
    metric(ROUNDS, Kind::Counter, Unit::Count, "Rounds of requests, by policy and how they ended."),
    metric(REQUESTS, Kind::Histogram, Unit::Count, "Requests that were decided together in a round, by policy."),
    metric(SECONDS, Kind::Histogram, Unit::Seconds, "Time to decide a round, by policy."),
];

/// Upper bounds for requests of a round: powers of two up to the most that `placer.round_requests` may be.
pub(super) const BUCKETS: [f64; 13] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

impl Metrics {
    /// A round of so many requests was decided in this time.
    pub fn round_decided(&self, policy: &'static str, requests: usize, took: Duration) {
        self.counter(ROUNDS, &[("policy", policy), ("result", "decided")]).add(1);
        self.histogram(REQUESTS, &[("policy", policy)]).record(requests as f64);
        self.histogram(SECONDS, &[("policy", policy)]).record(took);
    }

    /// A round ended in a panic: each of its requests is decided alone.
    pub fn round_panicked(&self, policy: &'static str) {
        self.counter(ROUNDS, &[("policy", policy), ("result", "panicked")]).add(1);
    }
}

/// Records each of them, for the test of the list of all.
#[cfg(test)]
pub(super) fn record(metrics: &Metrics) {
    metrics.round_decided("nomora", 3, Duration::from_millis(3));
    metrics.round_panicked("nomora");
}
