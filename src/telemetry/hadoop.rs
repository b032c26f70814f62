//! Metrics of the adapters to Hadoop.

use super::metrics::{Counter, Metrics};
use metrics::Gauge;

pub(super) const HADOOP_ASKED: &str = "hintd_resource_manager_requests_total";
pub(super) const HADOOP_ANSWERS: &str = "hintd_resource_manager_answers";

/// Records what the adapters do.
#[derive(Clone)]
pub struct HadoopMetrics {
    metrics: Metrics,
    answers: Gauge,
}

impl Metrics {
    /// Handles for the adapters to Hadoop.
    pub fn hadoop(&self) -> HadoopMetrics {
        HadoopMetrics { answers: self.gauge(HADOOP_ANSWERS, &[]), metrics: self.clone() }
    }
}

impl HadoopMetrics {
    /// A ResourceManager answered, or failed to for a reason out of a closed list.
    pub fn asked(&self, failure: Option<&'static str>) {
        let result: Counter = self.metrics.counter(HADOOP_ASKED, &[("result", failure.unwrap_or("answered"))]);
        result.add(1);
    }

    /// Whether the last poll was answered by an active one.
    pub fn answers(&self, answers: bool) {
        self.answers.set(f64::from(u8::from(answers)));
    }
}
