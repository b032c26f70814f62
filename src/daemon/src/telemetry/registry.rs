//! Where metrics are recorded and shown. A [`Metrics`] is a recorder of its own and not the process's global one: several
//! daemons can live in one process (tests do that), and a handle resolved once costs an atomic operation per record.
//!
//! Counters are also kept as plain atomics beside the exporter's. The exporter hands out nothing but
//! rendered text, and rendering drains histograms; `hintctl status` should neither parse nor do that.

use super::instance::InstanceMetrics;
use super::metric::{Kind, Metric};
use metrics::{Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Samples gather no longer than this when nobody scrapes.
const UPKEEP_EVERY: Duration = Duration::from_secs(1);

/// Policies that get a label of their own; further ones share `other`. Far above any real registry.
pub(super) const MAX_POLICIES: usize = 64;

/// The daemon's metrics; clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    policies: Mutex<BTreeSet<String>>,
    instance: InstanceMetrics,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// A recorder with these metrics described, and these buckets for those of such names.
    pub(super) fn described(
        rows: impl Iterator<Item = &'static Metric>,
        buckets: impl IntoIterator<Item = (Matcher, &'static [f64])>,
    ) -> Self {
        let builder = buckets.into_iter().fold(PrometheusBuilder::new(), |builder, (names, bounds)| {
            builder.set_buckets_for_metric(names, bounds).expect("bucket lists are not empty")
        });
        let recorder = builder.build_recorder();
        describe(&recorder, rows);
        let handle = recorder.handle();
        let instance = InstanceMetrics::new(
            |name, labels| recorder.register_gauge(&key(name, labels), &METADATA),
            |name| recorder.register_counter(&key(name, &[]), &METADATA),
        );
        Self(Arc::new(Inner { recorder, handle, counters: Mutex::default(), policies: Mutex::default(), instance }))
    }

    /// Everything in Prometheus's text format.
    pub fn render(&self) -> String {
        self.0.instance.look();
        self.0.handle.render()
    }

    /// Moves gathered samples into their buckets every few seconds, for as long as it is polled. Samples that nobody
    /// renders gather for ever otherwise: some 150 bytes an answer, where the page of metrics is off.
    pub async fn keep_up(self) {
        let mut due = interval(UPKEEP_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            self.0.handle.run_upkeep();
        }
    }

    /// The counters by exported name and labels, as in `hintd_hints_total{event="issued"}`.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let counters = lock(&self.0.counters);
        counters.iter().map(|(name, count)| (name.clone(), count.load(Ordering::Relaxed))).collect()
    }

    pub(super) fn instance(&self) -> &InstanceMetrics {
        &self.0.instance
    }

    /// The label of a policy, or `other` when there are too many.
    pub(super) fn admit<'a>(&self, policy: &'a str) -> &'a str {
        let mut policies = lock(&self.0.policies);
        if policies.contains(policy) {
            return policy;
        }
        if policies.len() == MAX_POLICIES {
            return "other";
        }
        policies.insert(policy.to_owned());
        policy
    }

    pub(super) fn counter(&self, name: &'static str, labels: &[(&'static str, &str)]) -> SharedCounter {
        let key = key(name, labels);
        let own = Arc::clone(lock(&self.0.counters).entry(text(name, labels)).or_default());
        SharedCounter { own, exported: self.0.recorder.register_counter(&key, &METADATA) }
    }

    pub(super) fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        self.0.recorder.register_gauge(&key(name, labels), &METADATA)
    }

    pub(super) fn histogram(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Histogram {
        self.0.recorder.register_histogram(&key(name, labels), &METADATA)
    }
}

/// A counter for the exporter and, beside it, for `hintctl status`.
#[derive(Clone)]
pub(super) struct SharedCounter {
    own: Arc<AtomicU64>,
    exported: metrics::Counter,
}

impl SharedCounter {
    pub(super) fn add(&self, count: u64) {
        self.own.fetch_add(count, Ordering::Relaxed);
        self.exported.increment(count);
    }
}

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

fn describe(recorder: &PrometheusRecorder, rows: impl Iterator<Item = &'static Metric>) {
    for &Metric { name, kind, unit, help } in rows {
        let describe = match kind {
            Kind::Counter => PrometheusRecorder::describe_counter,
            Kind::Gauge => PrometheusRecorder::describe_gauge,
            Kind::Histogram => PrometheusRecorder::describe_histogram,
        };
        describe(recorder, name.into(), Some(unit), help.into());
    }
}

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<Label> = labels.iter().map(|&(label, value)| Label::new(label, value.to_owned())).collect();
    Key::from_parts(name, labels)
}

fn text(name: &str, labels: &[(&'static str, &str)]) -> String {
    if labels.is_empty() {
        return name.to_owned();
    }
    let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}={value:?}")).collect();
    format!("{name}{{{}}}", labels.join(","))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Only whole insertions happen under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
