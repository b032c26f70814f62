//! What scripts read of a demo.

use super::super::answers;
use super::super::worth::Glance;
use super::story::{Death, FlowReroute, JobStory, Replacement, Reroute};
use super::summary::{Finished, TermRow};
use crate::emulate::yarn::YarnTally;
use hintd_client::wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A demo that is over, with units in the names.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    policy: &'a str,
    trace: &'a str,
    nodes: usize,
    racks: usize,
    seed: u64,
    /// Factors of the trace's times and bytes, by name.
    scale: BTreeMap<&'a str, f64>,
    jobs: Vec<JobView<'a>>,
    nodes_killed: Vec<DeathView<'a>>,
    replaced: Vec<ReplacementView<'a>>,
    links_failed: Vec<&'a str>,
    flow_reroutes: Vec<FlowRerouteView<'a>>,
    flow_updates: u64,
    flow_rules: usize,
    reroutes: Vec<RerouteView<'a>>,
    summary: SummaryView<'a>,
    /// What hints are worth on a busier network, by simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth: Option<&'a Glance>,
    /// What did not hold.
    problems: &'a [String],
    ok: bool,
}

/// Containers by host, by group.
type Hosts<'a> = BTreeMap<&'a str, BTreeMap<String, u32>>;

#[derive(Serialize)]
struct JobView<'a> {
    job: &'a str,
    number: u64,
    maps: u32,
    reduces: u32,
    submitted_s: f64,
    took_s: Option<f64>,
    waves: usize,
    /// Of the first wave, as what follows.
    hints: Option<Hosts<'a>>,
    cost: Option<&'a v1::Terms>,
    baseline: Option<&'a v1::Terms>,
    expected_gain: Option<f64>,
    unhinted: Option<&'a str>,
}

#[derive(Serialize)]
struct DeathView<'a> {
    host: &'a str,
    containers: usize,
    containers_elsewhere: usize,
    containers_lost: Option<usize>,
}

#[derive(Serialize)]
struct ReplacementView<'a> {
    job: &'a str,
    cause: &'a str,
    from: &'a [String],
    to: Hosts<'a>,
}

#[derive(Serialize)]
struct FlowRerouteView<'a> {
    cause: &'a str,
    subject: &'a str,
    phase: &'a str,
    moved: usize,
    untouched: u64,
    rules: usize,
    took_ms: Option<f64>,
}

#[derive(Serialize)]
struct RerouteView<'a> {
    cause: &'a str,
    subject: &'a str,
    changed: usize,
    cut_off: usize,
    untouched: u64,
    took_ms: Option<f64>,
}

#[derive(Serialize)]
struct SummaryView<'a> {
    jobs: u64,
    jobs_ended: u64,
    tasks: u64,
    tasks_ended: u64,
    hints_issued: u64,
    hints_followed: u64,
    on_fallback: u64,
    hints_replaced: u64,
    hints_dispatched: u64,
    leases_withdrawn: u64,
    leases_expired: u64,
    requests: usize,
    requests_refused: u64,
    request_p50_ms: f64,
    request_p99_ms: f64,
    terms: BTreeMap<&'a str, TermView>,
    yarn: YarnTally,
    feed_items_refused: u64,
    snapshot_version: u64,
    books_checked: u64,
    seconds: f64,
    adherence: &'a [v1::AdherenceView],
    counters: &'a BTreeMap<String, u64>,
}

/// A term over the jobs that have it in both placements.
#[derive(Serialize)]
struct TermView {
    jobs: usize,
    median: BothView,
    mean: BothView,
}

#[derive(Serialize)]
struct BothView {
    hinted: f64,
    default: f64,
}

impl<'a> Document<'a> {
    /// Of this demo.
    /// `worth`: what was simulated after it.
    pub(super) fn new(finished: &'a Finished, worth: Option<&'a Glance>) -> Self {
        let story = &finished.story;
        Self {
            policy: &story.plan.args.policy,
            trace: &story.plan.trace,
            nodes: story.plan.args.nodes,
            racks: story.plan.args.racks,
            seed: story.plan.args.seed,
            scale: story.scale.iter().map(|(name, value)| (name.as_str(), value.parse().unwrap_or(f64::NAN))).collect(),
            jobs: story.jobs.values().map(JobView::new).collect(),
            nodes_killed: story.deaths.iter().map(DeathView::new).collect(),
            replaced: story.replaced.iter().map(ReplacementView::new).collect(),
            links_failed: story.failed_links.iter().map(|(link, _)| link.as_str()).collect(),
            flow_reroutes: story.flow_reroutes.iter().map(FlowRerouteView::new).collect(),
            flow_updates: story.flow_updates.0,
            flow_rules: story.flow_updates.1,
            reroutes: story.reroutes.iter().map(RerouteView::new).collect(),
            summary: SummaryView::new(finished),
            worth,
            problems: finished.problems(),
            ok: finished.problems().is_empty(),
        }
    }
}

impl<'a> JobView<'a> {
    fn new(job: &'a JobStory) -> Self {
        let first = job.hints.first();
        Self {
            job: &job.name,
            number: job.number,
            maps: job.maps,
            reduces: job.reduces,
            submitted_s: job.submitted.as_secs_f64(),
            took_s: job.took.map(|took| took.as_secs_f64()),
            waves: job.hints.len(),
            hints: first.map(|set| hosts(&set.hints)),
            cost: first.and_then(|set| set.terms.as_ref()),
            baseline: first.and_then(|set| set.baseline.as_ref()),
            expected_gain: first.and_then(|set| set.expected_gain),
            unhinted: job.unhinted.as_deref(),
        }
    }
}

impl<'a> DeathView<'a> {
    fn new(death: &'a Death) -> Self {
        Self {
            host: &death.host,
            containers: death.containers,
            containers_elsewhere: death.elsewhere,
            containers_lost: death.given_up,
        }
    }
}

impl<'a> ReplacementView<'a> {
    fn new(replaced: &'a Replacement) -> Self {
        Self { job: &replaced.job, cause: &replaced.cause, from: &replaced.from, to: hosts(&replaced.hints.hints) }
    }
}

impl<'a> FlowRerouteView<'a> {
    fn new(reroute: &'a FlowReroute) -> Self {
        Self {
            cause: &reroute.cause,
            subject: &reroute.subject,
            phase: reroute.phase,
            moved: reroute.moved,
            untouched: reroute.untouched,
            rules: reroute.rules,
            took_ms: reroute.took.map(ms),
        }
    }
}

impl<'a> RerouteView<'a> {
    fn new(reroute: &'a Reroute) -> Self {
        Self {
            cause: &reroute.cause,
            subject: &reroute.subject,
            changed: reroute.changed,
            cut_off: reroute.cut_off,
            untouched: reroute.untouched,
            took_ms: reroute.took.map(ms),
        }
    }
}

impl<'a> SummaryView<'a> {
    fn new(finished: &'a Finished) -> Self {
        let tally = &finished.tally;
        let status = &finished.status;
        Self {
            jobs: tally.jobs,
            jobs_ended: tally.jobs_ended,
            tasks: tally.tasks,
            tasks_ended: tally.tasks_ended,
            hints_issued: tally.hinted,
            hints_followed: tally.followed,
            on_fallback: tally.on_fallback,
            hints_replaced: tally.replaced,
            hints_dispatched: tally.dispatched,
            leases_withdrawn: tally.withdrawn,
            leases_expired: finished.counter("leases_expired"),
            requests: tally.latencies.len(),
            requests_refused: tally.refused,
            request_p50_ms: finished.latency_ms(0.5),
            request_p99_ms: finished.latency_ms(0.99),
            terms: finished.terms().into_iter().map(|row| (row.name, TermView::new(&row))).collect(),
            yarn: tally.yarn,
            feed_items_refused: tally.feed_refused,
            snapshot_version: status.snapshot_version,
            books_checked: finished.books.checks,
            seconds: tally.took.as_secs_f64(),
            adherence: &status.adherence,
            counters: &status.counters,
        }
    }
}

impl TermView {
    fn new(row: &TermRow) -> Self {
        let both = |(hinted, default)| BothView { hinted, default };
        Self { jobs: row.jobs, median: both(row.median), mean: both(row.mean) }
    }
}

fn hosts(hints: &[v1::Hint]) -> Hosts<'_> {
    let of = |hint: &'_ v1::Hint| answers::by_host(hints, Some(&hint.group)).into_iter().collect();
    hints.iter().map(|hint| (hint.group.as_str(), of(hint))).collect()
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}
