//! Metrics of the adapters to Hadoop.

use super::registry::{Metrics, SharedCounter};
use metrics::Gauge;
use std::time::Duration;

pub(super) const HADOOP_ASKED: &str = "hintd_resource_manager_requests_total";
pub(super) const HADOOP_ANSWERS: &str = "hintd_resource_manager_answers";
pub(super) const HADOOP_AGE: &str = "hintd_resource_manager_age_seconds";
pub(super) const HADOOP_ENDED: &str = "hintd_resource_manager_applications_ended_total";
pub(super) const HADOOP_DISAGREES: &str = "hintd_resource_manager_settings_disagree";
pub(super) const PROGRESS_ASKED: &str = "hintd_shuffle_progress_polls_total";
pub(super) const NAME_NODE_ASKED: &str = "hintd_name_node_requests_total";
pub(super) const NAME_NODE_ANSWERS: &str = "hintd_name_node_answers";
pub(super) const NAME_NODE_AGE: &str = "hintd_name_node_age_seconds";
pub(super) const NAME_NODE_PATHS: &str = "hintd_name_node_paths";
pub(super) const NAME_NODE_LOCATED: &str = "hintd_name_node_located_total";

/// Records what the adapter to the ResourceManager does.
#[derive(Clone)]
pub struct HadoopMetrics {
    metrics: Metrics,
    answers: Gauge,
    age: Gauge,
    disagrees: Gauge,
}

/// Records what the adapter to the NameNode does.
#[derive(Clone)]
pub struct NameNodeMetrics {
    metrics: Metrics,
    answers: Gauge,
    age: Gauge,
    paths: [Gauge; 3],
}

impl Metrics {
    /// Handles for the adapter to the ResourceManager.
    pub fn hadoop(&self) -> HadoopMetrics {
        let [answers, age, disagrees] =
            [HADOOP_ANSWERS, HADOOP_AGE, HADOOP_DISAGREES].map(|name| self.gauge(name, &[]));
        HadoopMetrics { answers, age, disagrees, metrics: self.clone() }
    }

    /// Handles for the adapter to the NameNode.
    pub fn name_node(&self) -> NameNodeMetrics {
        let paths = ["located", "waiting", "refused"].map(|state| self.gauge(NAME_NODE_PATHS, &[("state", state)]));
        let [answers, age] = [NAME_NODE_ANSWERS, NAME_NODE_AGE].map(|name| self.gauge(name, &[]));
        NameNodeMetrics { answers, age, paths, metrics: self.clone() }
    }
}

impl HadoopMetrics {
    /// A ResourceManager answered, or failed to for a reason out of a closed list.
    pub fn asked(&self, failure: Option<&'static str>) {
        let result: SharedCounter = self.metrics.counter(HADOOP_ASKED, &[("result", failure.unwrap_or("answered"))]);
        result.add(1);
    }

    /// Whether the last poll was answered by an active one, and how long ago one was, or since the start.
    pub fn age(&self, answers: bool, age: Duration) {
        self.answers.set(f64::from(u8::from(answers)));
        self.age.set(age.as_secs_f64());
    }

    /// An attempt ended because the ResourceManager says so: by its word for how, in lower case.
    pub fn ended(&self, how: &'static str) {
        self.metrics.counter(HADOOP_ENDED, &[("how", how)]).add(1);
    }

    /// An ApplicationMaster said how far its shuffle is, or failed to for a reason out of a closed list.
    pub fn progress_asked(&self, failure: Option<&'static str>) {
        self.metrics.counter(PROGRESS_ASKED, &[("result", failure.unwrap_or("answered"))]).add(1);
    }

    /// How many of the scheduler's settings differ from the configuration's `[yarn]`.
    pub fn disagrees(&self, count: usize) {
        self.disagrees.set(count as f64);
    }
}

impl NameNodeMetrics {
    /// A NameNode answered, refused or failed to: a word out of a closed list.
    pub fn asked(&self, result: &'static str) {
        self.metrics.counter(NAME_NODE_ASKED, &[("result", result)]).add(1);
    }

    /// Whether the last question was answered, and how long ago one was, or since the start.
    pub fn age(&self, answers: bool, age: Duration) {
        self.answers.set(f64::from(u8::from(answers)));
        self.age.set(age.as_secs_f64());
    }

    /// A request with paths that went on: `in_time`, with all that can be known, or `not_yet`.
    pub fn located(&self, result: &'static str) {
        self.metrics.counter(NAME_NODE_LOCATED, &[("result", result)]).add(1);
    }

    /// Paths whose blocks are known, those that wait for an answer, and those that can't be had.
    pub fn paths(&self, counts: [usize; 3]) {
        for (gauge, count) in self.paths.iter().zip(counts) {
            gauge.set(count as f64);
        }
    }
}
