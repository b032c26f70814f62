//! What scripts read of a comparison.

use super::super::failure::Failure;
use super::inputs::Cluster;
use super::matrix::{Plan, Runs};
use hintd_engine::holding::HoldSettings;
use hintd_model::units::Micros;
use hintd_simulator::{Authority, Delays, FlowGrain, JobModel, RunReport, SimSettings, TraceFacts, TraceOptions};
use serde::Serialize;
use std::collections::BTreeMap;

/// A comparison: what was compared under which assumptions, and a row for each run that began.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    /// Whether every run ended by itself.
    complete: bool,
    /// Runs that an interrupt came before.
    runs_not_begun: usize,
    trace: TraceView<'a>,
    cluster: ClusterView<'a>,
    job_model: ModelView,
    settings: SettingsView,
    /// Parameters by policy, as its `[policies.NAME]` would give them.
    policies: BTreeMap<&'a str, &'a str>,
    runs: Vec<RunView>,
}

#[derive(Debug, Serialize)]
struct TraceView<'a> {
    file: String,
    #[serde(flatten)]
    facts: &'a TraceFacts,
    #[serde(flatten)]
    options: OptionsView,
}

#[derive(Debug, Serialize)]
struct OptionsView {
    scale_bytes: f64,
    speed: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ClusterView<'a> {
    name: &'a str,
    racks: usize,
    nodes: usize,
    containers: u64,
    container_memory_mb: u64,
    container_vcores: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ModelView {
    block_bytes: u64,
    reduce_bytes: u64,
    max_reduces: u32,
    base_s: f64,
    bytes_per_s: u64,
    sigma: f64,
    seed: u64,
}

/// The settings of all runs, units in their names.
#[derive(Debug, Serialize)]
pub(crate) struct SettingsView {
    heartbeat_s: f64,
    users: u32,
    replicas: u8,
    fetches: u32,
    grain: FlowGrain,
    known_ratios: bool,
    rate_tolerance: f64,
    congested_per_mille: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_counters_s: Option<f64>,
    invariants: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    master_delay_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feed_delay_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recurring: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_placement: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<HoldView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delays: Option<DelaysView>,
}

/// Delays; keys as in a file of them.
#[derive(Debug, Serialize)]
struct DelaysView {
    client_s: f64,
    master_s: f64,
    task_start_s: f64,
    job_end_s: f64,
    cores: Option<f64>,
    slow_start: f64,
    wire: f64,
}

/// How receivers are held; keys as in `[hold]`, units in their names.
#[derive(Debug, Serialize)]
pub(crate) struct HoldView {
    at_once: u32,
    heavy_s: f64,
    share: f64,
    home_share: f64,
    next_share: f64,
    patience_s: f64,
    longest_s: f64,
}

#[derive(Debug, Serialize)]
struct RunView {
    /// Whether it ended by itself.
    complete: bool,
    #[serde(flatten)]
    report: RunReport,
}

impl<'a> Document<'a> {
    /// Of these runs; `series`: with what grows with jobs and time.
    pub(super) fn new(plan: &'a Plan<'_>, cluster: &'a Cluster, runs: &Runs, series: bool) -> Self {
        let hints = plan.cases.iter().any(|case| case.authority != Authority::Policy);
        Self {
            complete: runs.complete(),
            runs_not_begun: runs.reports.iter().filter(|report| report.is_none()).count(),
            trace: TraceView {
                file: plan.trace.path.display().to_string(),
                facts: &plan.trace.facts,
                options: OptionsView::of(&plan.trace.options),
            },
            cluster: ClusterView::of(cluster),
            job_model: ModelView::of(plan.model),
            settings: SettingsView::of(plan.settings, hints),
            policies: plan.policies.iter().map(|chosen| (chosen.name, chosen.params.as_str())).collect(),
            runs: runs.reports.iter().flatten().map(|report| RunView::of(report, series)).collect(),
        }
    }

    /// The document as a file holds it.
    pub(super) fn text(&self) -> Result<String, Failure> {
        let mut text = serde_json::to_string_pretty(self).map_err(|error| Failure::Work(error.into()))?;
        text.push('\n');
        Ok(text)
    }
}

impl OptionsView {
    const fn of(options: &TraceOptions) -> Self {
        Self { scale_bytes: options.scale_bytes, speed: options.speed }
    }
}

impl<'a> ClusterView<'a> {
    pub(crate) fn of(cluster: &'a Cluster) -> Self {
        let (statics, container) = (&cluster.cluster.snapshot.statics, &cluster.cluster.container);
        Self {
            name: &cluster.name,
            racks: statics.racks.len(),
            nodes: statics.len(),
            containers: cluster.containers(),
            container_memory_mb: container.memory_mb(),
            container_vcores: container.vcores(),
        }
    }
}

impl ModelView {
    pub(crate) fn of(model: &JobModel) -> Self {
        Self {
            block_bytes: model.block.0,
            reduce_bytes: model.reduce_bytes.0,
            max_reduces: model.max_reduces,
            base_s: model.base.as_secs_f64(),
            bytes_per_s: model.rate.0,
            sigma: model.sigma,
            seed: model.seed,
        }
    }
}

impl SettingsView {
    pub(crate) fn of(settings: &SimSettings, hints: bool) -> Self {
        let recurs = settings.recurring > 0.0;
        Self {
            heartbeat_s: settings.heartbeat.as_secs_f64(),
            users: settings.users,
            replicas: settings.replicas,
            fetches: settings.fetches,
            grain: settings.grain,
            known_ratios: settings.known_ratios,
            rate_tolerance: settings.rate_tolerance,
            congested_per_mille: settings.congested_per_mille,
            link_counters_s: settings.link_counters.map(Micros::as_secs_f64),
            invariants: settings.invariants,
            master_delay_s: hints.then(|| settings.master_delay.as_secs_f64()),
            feed_delay_s: hints.then(|| settings.feed_delay.as_secs_f64()),
            recurring: recurs.then_some(settings.recurring),
            history_error: recurs.then_some(settings.history_error),
            data_placement: recurs.then_some(settings.data_placement),
            hold: settings.hold.as_ref().map(HoldView::of),
            delays: (settings.delays != Delays::default()).then(|| DelaysView::of(&settings.delays)),
        }
    }
}

impl DelaysView {
    fn of(delays: &Delays) -> Self {
        let &Delays { client, master, task_start, job_end, cores, slow_start, wire } = delays;
        let [client_s, master_s, task_start_s, job_end_s] =
            [client, master, task_start, job_end].map(Micros::as_secs_f64);
        Self { client_s, master_s, task_start_s, job_end_s, cores, slow_start, wire }
    }
}

impl HoldView {
    pub(crate) fn of(hold: &HoldSettings) -> Self {
        Self {
            at_once: hold.at_once,
            heavy_s: hold.heavy.as_secs_f64(),
            share: hold.share,
            home_share: hold.home_share,
            next_share: hold.next_share,
            patience_s: hold.patience.as_secs_f64(),
            longest_s: hold.longest.as_secs_f64(),
        }
    }
}

impl RunView {
    fn of(report: &RunReport, series: bool) -> Self {
        let mut report = report.clone();
        if !series {
            report.jct_s.clear();
            report.tiers.clear();
            report.by_job.clear();
            report.rack_bytes.clear();
        }
        Self { complete: report.unfinished == 0, report }
    }
}
