//! The daemon's status as one report: what `hintctl status` prints, and whoever else shows how the daemon is.

use super::convert;
use super::listing::refused_count;
use crate::notice::{Notice, NoticeKind};
use crate::runtime::metric_handles::FlowCounts;
use crate::runtime::options::{Queue, Settings};
use crate::runtime::refused_table::RefusedClient;
use crate::runtime::{Daemon, RefusalCount};
use crate::telemetry::process;
use hintd_client::wire::v1;
use hintd_engine::decision::AgeOf;
use hintd_engine::{Generation, LatelySums, Refusal, TallyKey};
use hintd_model::cluster::Source;
use std::collections::BTreeMap;

/// Applications, and peers, shown of those who were refused most.
const REFUSED_SHOWN: usize = 5;
/// Links named of those that are down: `hintctl links --down` has them all.
const LINKS_DOWN_SHOWN: usize = 5;

/// How the daemon is now: itself, its picture of the cluster, its feeds and servers, its promises.
///
/// # Errors
/// [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn status_report(daemon: &Daemon) -> Result<v1::StatusResponse, Refusal> {
    let survey = daemon.engine_report().await?;
    let records = record_counters(daemon).await;
    let refusals = daemon.refusals().await.unwrap_or_default(); // who keeps no records any more has not refused to tell the rest
    let generation = daemon.generation();
    let snapshot = &generation.snapshot;
    let settings = daemon.settings();
    let ready = *daemon.ready().borrow();
    let (links, links_down) = links_up_and_down(&generation);
    let ages = ages(daemon, &generation, &settings);
    let mut notices = daemon.notices();
    // Read once: with a reload in between, `config_refused` and the notice of one answer would contradict each other.
    let config_refused = daemon.config_refused();
    if let Some(why) = &config_refused {
        let words = format!("the configuration on disk is refused, the one before it stays: {why}");
        notices.push(Notice::new(NoticeKind::ConfigurationRefused, words));
    }
    if let Some(plan) = survey.plan.as_ref().filter(|_| !settings.engine.plans.follow) {
        let words = format!("nobody follows plan \"{}\", which is in force: plan.follow is false", plan.kept.name);
        notices.push(Notice::new(NoticeKind::PlanNotFollowed, words));
    }
    notices.extend(settings.notices());
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let down_link = |down: &_| convert::down_link(down, daemon.clock());
    Ok(v1::StatusResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instance_id: daemon.instance().to_string(),
        uptime_ms: millis(daemon.clock().uptime()),
        ready: ready.why_not().is_none(),
        not_ready_reason: ready.why_not().unwrap_or_default().to_owned(),
        snapshot_version: snapshot.version.0,
        snapshot_age_ms: daemon.clock().now().since(snapshot.taken_at).as_millis(),
        nodes: count(snapshot.nodes()),
        nodes_usable: count(snapshot.state.iter().filter(|state| state.usable()).count()),
        racks: count(snapshot.statics.members.iter().filter(|members| !members.is_empty()).count()),
        datasets: count(snapshot.datasets.len()),
        blocks: snapshot.datasets.values().map(|dataset| dataset.blocks.len() as u64).sum(),
        links: count(links + links_down),
        links_down: count(links_down),
        down: daemon.registries().links_down().iter().take(LINKS_DOWN_SHOWN).map(down_link).collect(),
        applications: count(snapshot.applications.len()),
        attempts: survey.counts.attempts as u64,
        leases: survey.counts.leases as u64,
        degraded: degraded(&ages, &daemon.servers().silent()),
        ages: ages.iter().map(convert::age).collect(),
        resource_manager_setup: daemon.servers().setup().seen().map(|seen| convert::setup(&seen, daemon.clock().now())),
        servers: daemon.servers().all().iter().map(convert::server).collect(),
        counters: counters(daemon).into_iter().chain(records).chain(requests_refused(&refusals)).collect(),
        config_file: settings.file.clone(),
        config_generation: settings.generation,
        config_refused: config_refused.map(|refused| refused.to_string()).unwrap_or_default(),
        config_restart_keys: daemon.restart_keys().to_vec(),
        queues: settings.queues.iter().map(queue).collect(),
        journal_file: daemon.journal_file().display().to_string(),
        unknown_names: survey.unknown_names,
        unknown_names_total: survey.unknown_names_total,
        process_cpu_s: process::cpu_seconds(std::process::id()).unwrap_or(0.0),
        resident_bytes: process::resident_bytes(std::process::id()).unwrap_or(0),
        flows: Some(flow_counts(&generation)),
        waiting_tasks: survey.counts.waiting,
        adherence: survey.adherence.iter().map(|(key, tally)| convert::adherence_view(key, tally, None)).collect(),
        adherence_last_hour: survey.adherence_lately.iter().map(lately).collect(),
        decisions_watched: survey.counts.watched as u64,
        notices: notices.iter().map(ToString::to_string).collect(),
        notices_told: notices.iter().map(notice).collect(),
        plan: survey.plan.as_ref().map(|plan| convert::plan_view(plan, daemon.clock().now())),
        refused_by_reason: refusals.into_iter().map(refused_count).collect(),
        refused: daemon.metrics().refused_most(REFUSED_SHOWN).iter().map(refused_view).collect(),
        holdout: survey.worth.queues.iter().map(|view| convert::compared_view(view, &settings.engine.worth)).collect(),
        keys_stopped: survey.worth.stopped as u64,
        completions_awaited: survey.worth.under_way as u64,
        watchers: survey.watchers.iter().map(|watcher| convert::watcher_view(watcher, daemon.clock().now())).collect(),
    })
}

fn lately((key, sums): (&TallyKey, &LatelySums)) -> v1::AdherenceView {
    convert::adherence_view(key, &sums.all, Some(&sums.groups))
}

fn notice(notice: &Notice) -> v1::Notice {
    let (kind, advice) = (notice.kind.as_str().to_owned(), notice.kind.advice().to_owned());
    v1::Notice { kind, text: notice.text.clone(), advice }
}

fn queue((name, queue): (&String, &Queue)) -> v1::QueueView {
    let policy = queue.policy.unwrap_or_default().to_owned();
    v1::QueueView { name: name.clone(), mode: queue.mode.as_str().to_owned(), policy }
}

fn refused_view(client: &RefusedClient) -> v1::RefusedClient {
    let RefusedClient { kind, name, reason, requests, since } = client;
    v1::RefusedClient {
        kind: (*kind).to_owned(),
        name: name.clone(),
        reason: (*reason).to_owned(),
        requests: *requests,
        since_ms: millis(*since),
    }
}

fn ages(daemon: &Daemon, generation: &Generation, settings: &Settings) -> Vec<AgeOf> {
    let now = daemon.clock().now();
    let age = |source: Source| {
        let age = generation.snapshot.heard.at(source).map(|heard| now.since(heard));
        let stale = age.is_none_or(|age| age > settings.engine.max_age.of(source));
        AgeOf { source, age, stale }
    };
    Source::ALL.into_iter().map(age).collect()
}

/// What was heard once and is too old, and who gives no good answer: what was never heard is not missed.
fn degraded(ages: &[AgeOf], silent: &[&'static str]) -> Vec<String> {
    let old = ages.iter().filter(|age| age.stale && age.age.is_some());
    let old = old.map(|age| format!("old_{}", age.source.as_str()));
    silent.iter().map(|source| format!("{source}_silent")).chain(old).collect()
}

/// The engine's and the request path's counters, and what feeds brought.
fn counters(daemon: &Daemon) -> BTreeMap<String, u64> {
    let mut counters = daemon.metrics().all();
    let feeds = daemon.registries().counts();
    for (source, count) in &feeds.taken {
        counters.insert(format!("feed_{}_taken", source.as_str()), *count);
    }
    for ((source, reason), count) in &feeds.refused {
        counters.insert(format!("feed_{}_refused_{}", source.as_str(), reason.as_str()), *count);
    }
    counters.insert("feed_block_ids_dropped".to_owned(), feeds.block_ids_dropped);
    counters.insert("feed_heartbeats_coalesced".to_owned(), feeds.coalesced);
    counters.insert("feed_contradictions".to_owned(), feeds.contradictions);
    counters.insert("feed_refused_by_model".to_owned(), feeds.refused_by_model);
    counters
}

/// The counter of refused requests as the sum of its reasons: both stand in one answer.
fn requests_refused(refusals: &[RefusalCount]) -> Option<(String, u64)> {
    let all: u64 = refusals.iter().map(|count| count.requests).sum();
    (all > 0).then(|| ("requests_refused".to_owned(), all))
}

/// How far records go; nothing where the daemon shuts down.
async fn record_counters(daemon: &Daemon) -> Vec<(String, u64)> {
    let Ok((kept, left_out)) = daemon.records_kept().await else { return Vec::new() };
    let counts = [
        ("records_kept", kept.decisions as u64),
        ("records_bytes", kept.bytes as u64),
        ("records_dropped", kept.dropped),
        ("records_too_large", kept.too_large),
        ("records_left_out", left_out),
    ];
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

fn links_up_and_down(generation: &Generation) -> (usize, usize) {
    let Some(network) = &generation.snapshot.topology.network else { return (0, 0) };
    let all = network.links().count();
    let up = network.links().filter(|(index, _)| network.is_usable(*index)).count();
    (up, all - up)
}

fn flow_counts(generation: &Generation) -> v1::FlowCounts {
    let counts = FlowCounts::of(&generation.flows, generation.snapshot.topology.network.is_some());
    v1::FlowCounts {
        jobs: counts.jobs,
        installed: counts.installed,
        default_forwarding: counts.default,
        cut: counts.cut,
        task_pairs: counts.task_pairs,
    }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
