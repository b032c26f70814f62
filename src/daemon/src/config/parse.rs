//! The sections of the file: which keys there are, their defaults and bounds, and rules across keys.

use super::limits::{self, Limits};
use super::reader::{Key, Problems, Reader, Section, show_duration};
use super::values::{DAY, HOUR, MINUTE, MS, SECOND, one_of};
use super::{Config, Log, chains, latency, network, page, plan, rebalance, records, routes, tracing, worth};
use crate::runtime::options::{FollowOptions, Listen, Options, Placer, Policies, PoolOptions, Queue, Settings, Store};
use crate::telemetry::logs::{LogFormat, check_filter};
use crate::times::micros;
use hintd_engine::holding::HoldSettings;
use hintd_engine::rounds::RoundSettings;
use hintd_engine::{DispatchSettings, EngineSettings, Guard, Mode, SourceAges};
use hintd_model::cluster::{Calculator, Resource, SizeRules, Source};
use hintd_model::units::Micros;
use hintd_policy::budget::DEFAULT_STEPS;
use hintd_policy::fallbacks::DEFAULT_FALLBACKS;
use hintd_policy::{params, registry};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// Spans beyond a year are typos.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Reads a whole file. The network file that it names is to be read in any case: it may be wrong as well.
pub(super) fn config(text: &str, file: &str) -> (Result<Config, Problems>, Option<network::Named>) {
    let mut reader = Reader::new(file, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span();
        // TOML's own message does not name it.
        let named = at.clone().and_then(|at| text.get(at)).filter(|_| error.message() == "duplicate key");
        let key = named.map(str::trim).unwrap_or_default();
        reader.problem(at.map_or(0, |span| span.start), key, error.message());
    }
    if !errors.is_empty() {
        // What follows a syntax error is guesswork; its problems would mislead.
        return (Err(Problems(reader.into_problems())), None);
    }
    let config = read(table, file, &mut reader);
    let (problems, network) = (reader.into_problems(), config.network.clone());
    (if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }, network)
}

/// Reads every section; problems are left with the reader, and then what comes out is not to be used.
fn read(table: toml::Spanned<DeTable<'_>>, file: &str, reader: &mut Reader<'_>) -> Config {
    let keys = flat(&table);
    let mut root = Section::root(table);
    let limits = limits::read(&mut root, reader);
    let (listen, metrics) = listen(&mut root, reader, &limits);
    let page = page::read(&mut root, reader, metrics);
    let log = log(&mut root, reader);
    let tracing = tracing::read(&mut root, reader);
    let store = store(&mut root, reader);
    let rules = yarn(&mut root, reader);
    let (placer, pool) = placer(&mut root, reader);
    let mut engine = EngineSettings {
        answers_max: limits.answers,
        answers_bytes_max: limits.answers_kept_bytes,
        leases_max: limits.leases,
        attempts_max: limits.attempts,
        requests_per_attempt: limits.requests_per_attempt,
        requests_bytes_max: limits.requests_kept_bytes,
        attempt_jump: limits.attempt_jump,
        adherence_max: limits.decisions_watched,
        containers_seen: limits.containers_seen,
        ..Default::default()
    };
    let follow = leases(&mut root, reader, &mut engine, &limits);
    let mut tokens = root.section(reader, "tokens");
    engine.legacy_clients = tokens.get(reader, "legacy_clients", true);
    tokens.finish(reader);
    let publish_every = model(&mut root, reader, &mut engine);
    history(&mut root, reader, &mut engine);
    engine.routes = routes::read(&mut root, reader);
    (engine.routes.chains, engine.chains) = chains::read(&mut root, reader);
    engine.dispatch = dispatch(&mut root, reader);
    let (plans, planning) = plan::read(&mut root, reader);
    engine.plans = plans;
    let (rebalance, by_latency) = rebalance::read(&mut root, reader);
    engine.rebalance = rebalance;
    engine.records = records::read(&mut root, reader);
    let (latency, latency_feed) = latency::read(&mut root, reader);
    engine.latency = latency;
    let (hold, hold_progress) = hold(&mut root, reader);
    engine.hold = hold;
    let policies = policies(&mut root, reader);
    let built = policies.built.iter().map(|(name, policy)| (*name, policy));
    rebalance::check((rebalance, by_latency), built, reader);
    let learner = policies.built.values().find_map(|policy| policy.as_learn());
    engine.machine_class = learner.map(|learner| learner.class().into()).unwrap_or_default();
    let (holdout, worth) = worth::read(&mut root, reader);
    engine.worth = worth;
    let queues = queues(&mut root, reader, holdout, &mut engine.worth.holdout);
    let sdn = super::sdn::sdn(&mut root, reader);
    let network = network::read(&mut root, reader, sdn.is_some());
    let stated = keys.iter().any(|(key, _)| key.starts_with("yarn.")).then(|| rules.clone());
    let resource_manager = super::hadoop::resource_manager(&mut root, reader, stated);
    // A ResourceManager says when applications are over: a job may be silent for as long as it likes.
    let told = resource_manager.as_ref().is_some_and(|manager| manager.applications.is_some());
    engine.attempt_silence = (!told && !limits.attempt_silence.is_zero()).then(|| micros(limits.attempt_silence));
    let name_node = super::hadoop::name_node(&mut root, reader);
    let history_server = super::hadoop::history_server(&mut root, reader);
    let spark_history_server = super::hadoop::spark_history_server(&mut root, reader);
    root.finish(reader);
    let settings = Settings {
        file: file.to_owned(),
        generation: 1,
        engine,
        placer,
        policies,
        queues,
        hold_progress,
        latency: latency_feed,
        limits: limits.request,
        follow,
        watch: limits.watch,
        planning,
        network: None,
        requests_per_s: limits.requests_per_s,
        requests_at_once: limits.requests_at_once,
        log_lines_per_s: limits.log_lines_per_s,
    };
    let feeds = limits.feeds;
    let page_is_on = page.is_some();
    let options =
        Options { listen, store, pool, rules, publish_every, feeds, tracing, page: page_is_on, settings, reload: None };
    let asked = reader.asked();
    Config {
        options,
        log,
        metrics,
        page,
        sdn,
        resource_manager,
        name_node,
        history_server,
        spark_history_server,
        network,
        keys,
        asked,
    }
}

/// Keys that only a restart puts into force.
pub(super) fn needs_restart(key: &str) -> bool {
    const SECTIONS: [&str; 10] = [
        "history_server.",
        "listen.",
        "log.",
        "name_node.",
        "page.",
        "resource_manager.",
        "sdn.",
        "spark_history_server.",
        "store.",
        "tracing.",
    ];
    const KEYS: [&str; 25] = [
        "placer.threads",
        "placer.queue",
        "model.publish_every",
        "limits.message_bytes",
        "limits.header_bytes",
        "limits.inbound_bytes",
        "limits.outbound_bytes",
        "limits.upload",
        "limits.unread",
        "limits.read_bytes_per_s",
        "limits.connections",
        "limits.greeting",
        "limits.streams",
        "limits.streams_per_connection",
        "limits.nodes",
        "limits.blocks",
        "limits.datasets",
        "limits.links",
        "limits.containers_per_node",
        "limits.containers",
        "limits.feed_names_bytes",
        "limits.replicas",
        "limits.names_per_node",
        "limits.replicas_per_block",
        "limits.paths_per_event",
    ];
    SECTIONS.iter().any(|section| key.starts_with(section)) || key.starts_with("yarn.") || KEYS.contains(&key)
}

/// Every value under its dotted key, as written.
fn flat(table: &toml::Spanned<DeTable<'_>>) -> Vec<(String, String)> {
    fn walk(path: &str, table: &DeTable<'_>, into: &mut Vec<(String, String)>) {
        for (name, value) in table {
            let name = name.get_ref();
            let key = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            match value.get_ref() {
                DeValue::Table(inner) => walk(&key, inner, into),
                other => into.push((key, shown(other))),
            }
        }
    }
    /// Without places in the file, which are no part of a value.
    fn shown(value: &DeValue<'_>) -> String {
        match value {
            DeValue::Array(list) => list.iter().map(|one| shown(one.get_ref()) + ",").collect(),
            DeValue::Table(table) => {
                table.iter().map(|(key, one)| format!("{}={};", key.get_ref(), shown(one.get_ref()))).collect()
            }
            other => format!("{other:?}"),
        }
    }
    let mut keys = Vec::new();
    walk("", table.get_ref(), &mut keys);
    keys
}

fn listen(root: &mut Section<'_>, reader: &mut Reader<'_>, limits: &Limits) -> (Listen, Option<SocketAddr>) {
    let mut section = root.section(reader, "listen");
    let listen = Listen {
        // Next to nothing else of Hadoop's (8020–8088, 9864–9870).
        grpc: section.get(reader, "grpc", SocketAddr::from(([127, 0, 0, 1], 8470))),
        admin_socket: PathBuf::from(section.get(reader, "admin_socket", "/run/hintd/admin.sock".to_owned())),
        message_bytes: limits.message_bytes,
        header_bytes: limits.header_bytes,
        inbound_bytes: limits.inbound_bytes,
        outbound_bytes: limits.outbound_bytes,
        upload: limits.upload,
        unread: limits.unread,
        read_bytes_per_s: limits.read_bytes_per_s,
        connections: limits.connections,
        greeting: limits.greeting,
        streams: limits.streams,
        streams_per_connection: limits.streams_per_connection,
        insecure_bind: section.get(reader, "insecure_bind", false),
        drain: section.bounded(reader, "drain", 10 * SECOND, Duration::ZERO..=10 * MINUTE),
    };
    let metrics = section.get(reader, "metrics", Some(SocketAddr::from(([127, 0, 0, 1], 9470))));
    let exposed = [("grpc", Some(listen.grpc)), ("metrics", metrics)];
    for (name, address) in exposed.into_iter().filter_map(|(name, address)| address.map(|address| (name, address))) {
        if !address.ip().is_loopback() && !listen.insecure_bind {
            let message = format!(
                "{address} is not loopback, and there is no TLS yet: set listen.insecure_bind = true to take it all the same"
            );
            reader.problem(section.place(name), &section.key(name), message);
        }
    }
    if metrics == Some(listen.grpc) && listen.grpc.port() != 0 {
        let message = format!("{} is listen.grpc's address as well", listen.grpc);
        reader.problem(section.place("metrics"), &section.key("metrics"), message);
    }
    section.finish(reader);
    (listen, metrics)
}

fn log(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Log {
    let mut section = root.section(reader, "log");
    let level = section.get(reader, "level", "info".to_owned());
    if let Err(error) = check_filter(&level) {
        reader.problem(section.place("level"), &section.key("level"), error.to_string());
    }
    let format = section.get(reader, "format", LogFormat::Text);
    section.finish(reader);
    Log { level, format }
}

impl Key for LogFormat {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        one_of(value, &[("text", Self::Text), ("json", Self::Json)])
    }
}

impl Key for Calculator {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        one_of(value, &[("default", Self::Default), ("dominant", Self::Dominant)])
    }
}

impl Key for Mode {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        one_of(value, &[("off", Self::Off), ("shadow", Self::Shadow), ("on", Self::On)])
    }
}

fn store(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Store {
    let mut section = root.section(reader, "store");
    let store = Store {
        path: PathBuf::from(section.get(reader, "path", "/var/lib/hintd/journal.redb".to_owned())),
        // A disk write takes about as long as this; waiting longer would be felt.
        commit_wait: section.bounded(reader, "commit_wait", 2 * MS, Duration::ZERO..=SECOND),
        commit_batch: section.bounded(reader, "commit_batch", 64, 1..=4_096),
    };
    // Here and not at the start: a check of what can't start has to say so.
    if store.path.file_name().is_none() {
        let message = format!("{:?} names no file", store.path);
        reader.problem(section.place("path"), &section.key("path"), message);
    }
    section.finish(reader);
    store
}

fn yarn(root: &mut Section<'_>, reader: &mut Reader<'_>) -> SizeRules {
    let mut section = root.section(reader, "yarn");
    let calculator = section.get(reader, "resource_calculator", Calculator::Default);
    let defaults = SizeRules::default();
    let mut pair = |memory, vcores, default: Resource| {
        let memory = section.get(reader, memory, default.memory_mb());
        Resource::new(memory, section.get(reader, vcores, default.vcores()))
    };
    let minimum = pair("minimum_memory_mb", "minimum_vcores", defaults.minimum);
    let increment = pair("increment_memory_mb", "increment_vcores", defaults.increment);
    let maximum = pair("maximum_memory_mb", "maximum_vcores", defaults.maximum);
    for (name, low, high) in [
        ("maximum_memory_mb", minimum.memory_mb(), maximum.memory_mb()),
        ("maximum_vcores", minimum.vcores(), maximum.vcores()),
    ] {
        if high > 0 && low > high {
            let message = format!("{high} is below the minimum of {low}: no container could ever be allocated");
            reader.problem(section.place(name), &section.key(name), message);
        }
    }
    section.finish(reader);
    SizeRules { calculator, minimum, increment, maximum }
}

fn placer(root: &mut Section<'_>, reader: &mut Reader<'_>) -> (Placer, PoolOptions) {
    let mut section = root.section(reader, "placer");
    let pool = PoolOptions {
        threads: section.bounded(reader, "threads", 0, 0..=1_024),
        queue: section.bounded(reader, "queue", 1_024, 1..=1_000_000),
    };
    let placer = Placer {
        steps: section.bounded(reader, "steps", DEFAULT_STEPS, 1..=1_000_000_000),
        deadline_default: section.bounded(reader, "deadline_default", SECOND, MS..=HOUR),
        deadline_max: section.bounded(reader, "deadline_max", 30 * SECOND, MS..=HOUR),
        retries: u32::try_from(section.bounded(reader, "commit_retries", 8_u64, 0..=1_000)).unwrap_or(8),
        fallbacks: section.bounded(reader, "fallbacks", DEFAULT_FALLBACKS, 0..=16),
        baseline: section.get(reader, "baseline", true),
        guard: guard(&mut section, reader),
        round: round(&mut section, reader),
    };
    if placer.deadline_default > placer.deadline_max {
        let message = format!(
            "{} is longer than placer.deadline_max, {}",
            show_duration(placer.deadline_default),
            show_duration(placer.deadline_max)
        );
        reader.problem(section.place("deadline_default"), &section.key("deadline_default"), message);
    }
    section.finish(reader);
    (placer, pool)
}

fn round(section: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<RoundSettings> {
    let every = section.bounded(reader, "round", Duration::ZERO, Duration::ZERO..=10 * SECOND);
    // As many as a closed loop of many clients has under way; a round of more takes longer than it gathers.
    let requests = section.bounded(reader, "round_requests", 64, 2..=4_096);
    (every > Duration::ZERO).then_some(RoundSettings { every: micros(every), requests })
}

fn guard(section: &mut Section<'_>, reader: &mut Reader<'_>) -> Option<Guard> {
    let on = section.get(reader, "guard", true);
    let margin = section.bounded(reader, "guard_margin", Guard::default().margin, 0.0..=0.9);
    on.then_some(Guard { margin })
}

/// When receivers are held, and how often ApplicationMasters are asked how far they are.
fn hold(root: &mut Section<'_>, reader: &mut Reader<'_>) -> (HoldSettings, Option<Micros>) {
    let mut section = root.section(reader, "hold");
    let defaults = HoldSettings::default();
    let settings = HoldSettings {
        at_once: section.bounded(reader, "at_once", defaults.at_once, 1..=10_000),
        heavy: micros(section.bounded(reader, "heavy", 2 * SECOND, MS..=HOUR)),
        share: section.bounded(reader, "share", defaults.share, 0.001..=1.0),
        home_share: section.bounded(reader, "home_share", defaults.home_share, 0.001..=1.0),
        next_share: section.bounded(reader, "next_share", defaults.next_share, 0.001..=1.0),
        patience: micros(section.bounded(reader, "patience", 10 * MINUTE, SECOND..=DAY)),
        longest: micros(section.bounded(reader, "longest", HOUR, SECOND..=DAY)),
    };
    let progress = section.bounded(reader, "progress", 5 * SECOND, Duration::ZERO..=10 * MINUTE);
    section.finish(reader);
    (settings, (!progress.is_zero()).then(|| micros(progress)))
}

fn leases(
    root: &mut Section<'_>,
    reader: &mut Reader<'_>,
    engine: &mut EngineSettings,
    limits: &Limits,
) -> FollowOptions {
    let mut section = root.section(reader, "leases");
    // An ApplicationMaster gets what it asks for within a few heartbeats, or not soon.
    engine.lease_ttl = micros(section.bounded(reader, "time_to_live", 30 * SECOND, SECOND..=DAY));
    engine.answers_keep = micros(section.bounded(reader, "answers_kept", 10 * MINUTE, Duration::ZERO..=DAY));
    // A container that a busy cluster gives after minutes may still follow its hint.
    engine.adherence_wait = micros(section.bounded(reader, "watched", 5 * MINUTE, SECOND..=DAY));
    let kept = section.bounded(reader, "follow_kept", 10 * MINUTE, Duration::ZERO..=DAY);
    section.finish(reader);
    FollowOptions { messages: limits.follow_messages, kept }
}

/// Gives `publish_every`; the rest goes to the engine.
fn model(root: &mut Section<'_>, reader: &mut Reader<'_>, engine: &mut EngineSettings) -> Duration {
    let mut section = root.section(reader, "model");
    let publish_every = section.bounded(reader, "publish_every", 5 * MS, MS..=MINUTE);
    // Ten missed heartbeats of NodeManagers' default second.
    let stale_after = section.bounded(reader, "stale_after", 10 * SECOND, MS..=DAY);
    let lost_after = section.bounded(reader, "lost_after", MINUTE, MS..=DAY);
    if lost_after <= stale_after {
        let (lost, stale) = (show_duration(lost_after), show_duration(stale_after));
        let message =
            format!("{lost} is not longer than model.stale_after, {stale}: a node is stale before it is lost");
        reader.problem(section.place("lost_after"), &section.key("lost_after"), message);
    }
    (engine.stale_after, engine.lost_after) = (micros(stale_after), micros(lost_after));
    let mut ages = section.section(reader, "max_age");
    let mut max_age = SourceAges::default();
    for (source, default) in [
        (Source::Heartbeats, 30 * SECOND),
        // HDFS reports in full every 6 hours.
        (Source::Blocks, DAY),
        // Controllers push changes; silence is the normal case.
        (Source::Topology, DAY),
        (Source::LinkStats, MINUTE),
        (Source::Latency, MINUTE),
        (Source::Events, DAY),
    ] {
        max_age.set(source, micros(ages.bounded(reader, source.as_str(), default, MS..=YEAR)));
    }
    engine.max_age = max_age;
    ages.finish(reader);
    section.finish(reader);
    publish_every
}

fn history(root: &mut Section<'_>, reader: &mut Reader<'_>, engine: &mut EngineSettings) {
    let mut section = root.section(reader, "history");
    engine.history_keys = section.bounded(reader, "keys", 10_000, 0..=10_000_000);
    engine.history_samples = section.bounded(reader, "runs", 20, 1..=10_000);
    section.finish(reader);
}

fn dispatch(root: &mut Section<'_>, reader: &mut Reader<'_>) -> DispatchSettings {
    let mut section = root.section(reader, "dispatch");
    // Delay scheduling waits for some seconds (004 §3.3); who waits for longer than a small task runs has lost by it.
    let max_wait = section.bounded(reader, "max_wait", 5 * SECOND, 10 * MS..=HOUR);
    section.finish(reader);
    DispatchSettings { max_wait: micros(max_wait) }
}

fn policies(root: &mut Section<'_>, reader: &mut Reader<'_>) -> Policies {
    let mut tables = BTreeMap::new();
    for (name, section) in root.section(reader, "policies").named_sections(reader) {
        if registry::find(&name).is_some() {
            tables.insert(name, section);
        } else {
            reader.problem(section.at(), &format!("policies.{name}"), unknown_policy(&name));
        }
    }
    let mut built: BTreeMap<&'static str, Arc<dyn hintd_policy::Policy>> = BTreeMap::new();
    for entry in registry::entries() {
        let section = tables.remove(entry.name);
        let at = section.as_ref().map_or(0, Section::at);
        let table = match section {
            Some(section) => section.into_table(),
            None => params::no_params(),
        };
        match (entry.build)((entry.deployed)(table)) {
            Ok(policy) => {
                built.insert(entry.name, Arc::from(policy));
            }
            Err(mut error) => {
                let others = std::mem::take(&mut error.others);
                for error in std::iter::once(error).chain(others) {
                    let key = error.key.map(|key| format!(".{key}")).unwrap_or_default();
                    let at = error.span.map_or(at, |span| span.start);
                    reader.problem(at, &format!("policies.{}{key}", entry.name), error.message);
                }
            }
        }
    }
    let params = built.iter().map(|(name, policy)| (*name, policy.params_toml())).collect();
    let mut section = root.section(reader, "policy");
    let default = section.get(reader, "default", PolicyName(registry::DEFAULT));
    let mut by_framework = section.section(reader, "frameworks");
    let frameworks = by_framework.free_keys::<PolicyName>(reader).into_iter().map(|(name, policy)| (name, policy.0));
    let frameworks = frameworks.collect();
    section.finish(reader);
    Policies { built, params, default: default.0, frameworks }
}

/// The name of a policy that can place.
#[derive(Clone, Copy)]
struct PolicyName(&'static str);

impl Key for PolicyName {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = String::read(value)?;
        registry::find(&text).map(|entry| Self(entry.name)).ok_or_else(|| unknown_policy(&text))
    }
}

fn unknown_policy(name: &str) -> String {
    let near = registry::nearest(name);
    let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
    let known: Vec<_> = registry::entries().iter().map(|entry| entry.name).collect();
    format!("there is no policy \"{name}\"{near} (there are {})", known.join(", "))
}

/// Reads `[queues]`; `shares` gets what is held out of each, `holdout` where it does not say, and nothing where it gets no
/// hints.
fn queues(
    root: &mut Section<'_>,
    reader: &mut Reader<'_>,
    holdout: f64,
    shares: &mut BTreeMap<Arc<str>, f64>,
) -> BTreeMap<String, Queue> {
    let mut queues = BTreeMap::new();
    for (name, mut section) in root.section(reader, "queues").named_sections(reader) {
        let mode = section.get(reader, "mode", Mode::On);
        let policy = section.get(reader, "policy", None);
        let hold = section.get(reader, "hold", false);
        let share = section.bounded(reader, "holdout", holdout, worth::SHARES);
        // Without hints there is nobody to compare with.
        shares.insert(name.as_str().into(), if mode == Mode::On { share } else { 0.0 });
        section.finish(reader);
        queues.insert(name, Queue { mode, policy, hold });
    }
    if queues.is_empty() {
        shares.insert("*".into(), holdout);
        queues.insert("*".to_owned(), Queue { mode: Mode::On, policy: None, hold: false });
    }
    queues
}

impl Key for Option<&'static str> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        PolicyName::read(value).map(|name| Some(name.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../../../../config/hintd.toml");

    fn config(text: &str, file: &str) -> Result<Config, Problems> {
        super::config(text, file).0
    }

    fn problems(text: &str) -> Vec<String> {
        config(text, "hintd.toml").err().iter().flat_map(|found| found.0.iter()).map(ToString::to_string).collect()
    }

    #[test]
    fn the_shipped_file_says_every_default_and_nothing_else() {
        let (shipped, empty) = (config(SHIPPED, "f").unwrap(), config("", "f").unwrap());
        let show = |config: &Config| {
            let options = &config.options;
            let settings = &options.settings;
            format!(
                "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
                (options.listen.clone(), config.metrics, config.page, &config.sdn, &config.resource_manager),
                (&config.log, &options.tracing),
                options.store,
                options.pool,
                options.rules,
                (options.publish_every, options.feeds.clone()),
                settings.engine,
                settings.placer,
                settings.queues,
                settings.limits,
                settings.follow,
                (settings.policies.default, &settings.policies.params),
                (settings.watch, settings.requests_per_s)
            )
        };
        assert_eq!(show(&shipped), show(&empty));
        for key in &shipped.asked {
            // A queue's own policy and share are exceptions, not defaults.
            let own = ["queues.*.policy", "queues.*.holdout"].contains(&key.as_str());
            let said = shipped.keys.iter().any(|(said, _)| said == key) || own;
            assert!(said, "{key} is not in the shipped file");
        }
    }

    #[test]
    fn attempts_end_by_silence_unless_it_is_0_or_a_resource_manager_says_when() {
        let silence = |text: &str| config(text, "f").unwrap().options.settings.engine.attempt_silence;
        let manager = "[resource_manager]\nurls = [\"http://rm1:8088\"]\n";
        assert_eq!(silence(""), Some(micros(HOUR)));
        assert_eq!(silence("[limits]\nattempt_silence = \"5m\"\n"), Some(micros(5 * MINUTE)));
        assert_eq!(silence("[limits]\nattempt_silence = \"0s\"\n"), None);
        assert_eq!(silence(manager), None);
        assert!(silence(&format!("{manager}applications = \"0s\"\n")).is_some(), "it is not asked for them");
    }

    #[test]
    fn a_journal_has_a_file_name() {
        for path in ["", "/", ".."] {
            let found = problems(&format!("[store]\npath = \"{path}\"\n"));
            assert_eq!(found, [format!("hintd.toml:2: store.path: {path:?} names no file")]);
        }
    }

    #[test]
    fn named_queues_without_a_star_refuse_all_others_which_is_said() {
        let notices = |text: &str| Config::from_text(text, "hintd.toml").unwrap().options.settings.notices();
        let said = notices("[queues.etl]\nmode = \"off\"\n[queues.live]\n");
        assert!(said.len() == 1 && said[0].text.contains("queues (etl, live)"), "{said:?}");
        for fine in ["", "[queues.\"*\"]\n", "[queues.etl]\nmode = \"off\"\n[queues.\"*\"]\n"] {
            assert_eq!(notices(fine), [], "{fine}");
        }
    }

    #[test]
    fn every_key_of_the_shipped_file_stands_under_a_comment() {
        let mut commented = false;
        for (at, line) in SHIPPED.lines().enumerate() {
            let comment = line.starts_with('#');
            // Limits and pairs that explain themselves may share the comment of their neighbour.
            assert!(comment || commented || line.is_empty() || line.starts_with('['), "line {} has none", at + 1);
            commented = comment || (commented && !line.is_empty()) || line.starts_with('[');
        }
    }

    #[test]
    fn all_problems_are_named_in_one_run_with_line_and_key() {
        let text = "[leases]\ntime_to_life = \"30s\"\nanswers_kept = 5\n\n[placer]\nsteps = \"many\"\nqueue = 0\n\
                    [policy]\ndefault = \"contaner\"\n[queues.q]\nmode = \"maybe\"\n[nonsense]\n";
        let found = problems(text);
        let expected = [
            "hintd.toml:2: leases.time_to_life: unknown key; did you mean \"time_to_live\"?",
            "hintd.toml:3: leases.answers_kept: the number 5 needs a unit, as in \"30s\"",
            "hintd.toml:6: placer.steps: a whole number is wanted, and this is the text \"many\"",
            "hintd.toml:7: placer.queue: 0 is outside 1 to 1000000",
            "hintd.toml:9: policy.default: there is no policy \"contaner\"; did you mean \"container\"?",
            "hintd.toml:11: queues.q.mode: \"maybe\" is none of \"off\", \"shadow\", \"on\"",
            "hintd.toml:12: nonsense: unknown key",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\nis not\n{expected}");
        }
    }

    #[test]
    fn rules_across_keys_say_both_values() {
        let found = problems("[model]\nstale_after = \"60s\"\nlost_after = \"30s\"\n");
        assert!(found[0].contains("30s is not longer than model.stale_after, 1m"), "{found:?}");
        let found = problems("[yarn]\nminimum_memory_mb = 9000\n");
        assert!(found[0].contains("8192 is below the minimum of 9000"), "{found:?}");
        let found = problems("[listen]\ngrpc = \"0.0.0.0:8470\"\n");
        assert!(found[0].starts_with("hintd.toml:2: listen.grpc") && found[0].contains("insecure_bind"), "{found:?}");
        let found = problems("[listen]\nmetrics = \"127.0.0.1:8470\"\n");
        assert!(found[0].contains("127.0.0.1:8470 is listen.grpc's address as well"), "{found:?}");
        assert!(problems("[listen]\ngrpc = \"0.0.0.0:8470\"\ninsecure_bind = true\n").is_empty());
        assert!(problems("[log]\nlevel = \"info,store=debug\"\n").is_empty(), "a module that logs nothing");
    }

    #[test]
    fn a_policy_reads_and_checks_its_own_parameters() {
        let set = config("[policies.cross_layer]\nmode = \"routing\"\nrestarts = 2\n", "f").unwrap();
        let params = &set.options.settings.policies.params["cross_layer"];
        assert!(params.contains("mode = \"routing\"") && params.contains("restarts = 2"), "{params}");
        let nas = config("[policies.nas]\nmap_skips = 7\n", "f").unwrap();
        let params = &nas.options.settings.policies.params["nas"];
        assert!(params.contains("skip_by = \"time\"") && params.contains("map_skips = 7"), "{params}");
        let found = problems("[policies.cross_layer]\nrestarts = 0\n");
        assert!(found[0].contains("policies.cross_layer.restarts") && found.len() == 1, "{found:?}");
        let found = problems("[policies.cross_layers]\n");
        assert!(found[0].contains("did you mean \"cross_layer\""), "{found:?}");
    }

    #[test]
    fn application_masters_are_asked_unless_it_is_switched_off() {
        let every = |text: &str| config(text, "f").unwrap().options.settings.hold_progress;
        assert_eq!(every(""), Some(Micros::from_secs(5)));
        assert_eq!(every("[hold]\nprogress = \"1s\"\n"), Some(Micros::from_secs(1)));
        assert_eq!(every("[hold]\nprogress = \"0s\"\n"), None);
        assert!(problems("[hold]\nprogress = \"11m\"\n")[0].contains("hold.progress"));
    }

    #[test]
    fn a_syntax_error_has_its_line() {
        let found = problems("[listen]\ngrpc = \n");
        assert!(found[0].starts_with("hintd.toml:2:"), "{found:?}");
    }

    #[test]
    fn what_a_reload_changes_is_named_with_what_needs_a_restart() {
        let before = config("[placer]\nsteps = 10\nfallbacks = 1\n", "f").unwrap();
        let after = config("[placer]\nsteps = 20\n[listen]\ngrpc = \"127.0.0.1:1\"\n", "f").unwrap();
        let (changed, restart) = after.changes(&before);
        assert_eq!(changed, ["listen.grpc", "placer.fallbacks", "placer.steps"]);
        assert_eq!(restart, ["listen.grpc"]);
    }
}
