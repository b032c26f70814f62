//! Metrics of the adapter to JobHistoryServers and Spark's history servers.

use super::registry::{Metrics, SharedCounter};
use metrics::Gauge;
use std::time::Duration;

pub(super) const HISTORY_ASKED: &str = "hintd_history_server_polls_total";
pub(super) const HISTORY_PASSED_OVER: &str = "hintd_history_server_passed_over_total";
pub(super) const HISTORY_ANSWERS: &str = "hintd_history_server_answers";
pub(super) const HISTORY_AGE: &str = "hintd_history_server_age_seconds";

/// Records what the adapter does.
#[derive(Clone)]
pub struct HistoryServerMetrics {
    metrics: Metrics,
    server: String,
    answers: Gauge,
    age: Gauge,
}

impl Metrics {
    /// Handles for the adapter to one history server, of those that the configuration names.
    pub fn history_server(&self, server: &str) -> HistoryServerMetrics {
        let labels = [("server", server)];
        HistoryServerMetrics {
            answers: self.gauge(HISTORY_ANSWERS, &labels),
            age: self.gauge(HISTORY_AGE, &labels),
            server: server.to_owned(),
            metrics: self.clone(),
        }
    }
}

impl HistoryServerMetrics {
    /// A poll came to its end, or failed for a reason out of a closed list.
    pub fn asked(&self, failure: Option<&'static str>) {
        let labels = [("server", &*self.server), ("result", failure.unwrap_or("answered"))];
        let result: SharedCounter = self.metrics.counter(HISTORY_ASKED, &labels);
        result.add(1);
    }

    /// Of one job nothing was learnt, for a reason out of a closed list; the others are looked at.
    pub fn passed_over(&self, why: &'static str) {
        let passed: SharedCounter =
            self.metrics.counter(HISTORY_PASSED_OVER, &[("server", &*self.server), ("result", why)]);
        passed.add(1);
    }

    /// Whether the last poll was answered, and how long ago one was, or since the start.
    pub fn age(&self, answers: bool, age: Duration) {
        self.answers.set(f64::from(u8::from(answers)));
        self.age.set(age.as_secs_f64());
    }
}
