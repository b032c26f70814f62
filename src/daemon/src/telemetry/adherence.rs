//! Metrics of adherence: whether hints were followed, and what the placements cost that came of them.

use super::registry::Metrics;

pub(super) const SETTLED: &str = "hintd_decisions_settled_total";
pub(super) const OUTCOMES: &str = "hintd_hint_outcomes_total";
pub(super) const MISSES: &str = "hintd_hint_misses_total";
pub(super) const BYTES: &str = "hintd_hint_bytes_total";

/// Records what became of the hints of one policy, queue and mode. Names of queues are whatever applications say
/// where the configuration takes any: the caller bounds their number.
#[derive(Clone)]
pub struct AdherenceMetrics {
    metrics: Metrics,
    policy: String,
    queue: String,
    mode: &'static str,
}

impl Metrics {
    /// Handles for a policy, a queue and what the queue gets.
    pub fn adherence(&self, policy: &str, queue: &str, mode: &'static str) -> AdherenceMetrics {
        AdherenceMetrics { metrics: self.clone(), policy: policy.to_owned(), queue: queue.to_owned(), mode }
    }
}

impl AdherenceMetrics {
    /// Decisions that were settled; `compared`: where their containers went was costed.
    pub fn settled(&self, compared: bool, decisions: u64) {
        self.add(SETTLED, &[("compared", if compared { "yes" } else { "no" })], decisions);
    }

    /// Hinted containers by what became of them: on_host, in_rack, elsewhere, never.
    pub fn outcome(&self, outcome: &'static str, containers: u64) {
        self.add(OUTCOMES, &[("outcome", outcome)], containers);
    }

    /// Containers that are not on their host, by reason; one of a closed list.
    pub fn miss(&self, reason: &'static str, containers: u64) {
        self.add(MISSES, &[("reason", reason)], containers);
    }

    /// Bytes of compared decisions: of which term (remote, cross_rack), under which placement (hinted, realised, default).
    pub fn bytes(&self, term: &'static str, placement: &'static str, bytes: f64) {
        // Whole bytes are enough, and a sum below zero there is none.
        self.add(BYTES, &[("term", term), ("placement", placement)], bytes.round() as u64);
    }

    fn add(&self, name: &'static str, labels: &[(&'static str, &str)], by: u64) {
        if by > 0 {
            let mut all = vec![("policy", self.policy.as_str()), ("queue", self.queue.as_str()), ("mode", self.mode)];
            all.extend_from_slice(labels);
            self.metrics.counter(name, &all).add(by);
        }
    }
}
