//! Threads that place, and queues before them and the journal.

use super::registry::Metrics;
use metrics::Gauge;

pub(super) const QUEUE_DEPTH: &str = "hintd_queue_depth";
pub(super) const PLACER_STUCK: &str = "hintd_placer_stuck";

impl Metrics {
    /// A gauge of how many wait in a bounded queue.
    pub fn queue(&self, queue: &'static str) -> QueueMetrics {
        QueueMetrics(self.gauge(QUEUE_DEPTH, &[("queue", queue)]))
    }

    /// A gauge of placer threads.
    pub fn placers(&self) -> PlacerMetrics {
        PlacerMetrics(self.gauge(PLACER_STUCK, &[]))
    }
}

/// Records the depth of one queue.
#[derive(Clone)]
pub struct QueueMetrics(Gauge);

impl QueueMetrics {
    /// How many wait.
    pub fn depth(&self, waiting: usize) {
        self.0.set(waiting as f64);
    }
}

/// Records what placer threads do.
#[derive(Clone)]
pub struct PlacerMetrics(Gauge);

impl PlacerMetrics {
    /// How many search on past their deadline.
    pub fn stuck(&self, threads: usize) {
        self.0.set(threads as f64);
    }
}
