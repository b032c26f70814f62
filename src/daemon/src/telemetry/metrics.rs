//! Every metric of the daemon: its name, unit and meaning, and the typed handles that record it.

use std::path::Path;
use std::time::Duration;

use metrics::{Gauge, Histogram, Unit};
use metrics_exporter_prometheus::Matcher;

use super::adherence::{BYTES, MISSES, OUTCOMES, SETTLED};
pub use super::admission::AdmissionMetrics;
use super::admission::{CONNECTIONS_REFUSED, LINES_LEFT_OUT, MESSAGES_REFUSED, STREAMS_REFUSED};
use super::circuits::{CIRCUIT_CHANGES, CIRCUIT_DEMAND, CIRCUIT_PORTS, CIRCUITS, SHUFFLES};
use super::dispatch::{DISPATCH_LATE, DISPATCH_LAUNCHES, DISPATCH_NOT_YET, DISPATCH_OFFERS, DISPATCH_WAITING};
use super::hadoop::{HADOOP_AGE, HADOOP_ANSWERS, HADOOP_ASKED, HADOOP_DISAGREES, HADOOP_ENDED, PROGRESS_ASKED};
use super::hadoop::{NAME_NODE_AGE, NAME_NODE_ANSWERS, NAME_NODE_ASKED, NAME_NODE_LOCATED, NAME_NODE_PATHS};
use super::history_server::{HISTORY_AGE, HISTORY_ANSWERS, HISTORY_ASKED, HISTORY_PASSED_OVER};
use super::instance::DOMAIN_SLOTS;
pub use super::labels::{
    BoxState, ConnectionRefusal, FeedResult, HintEvent, LabelValue, LinkState, MessageRefusal, MoveEvent, ReloadResult,
    RouteKind, Stage, WatcherKind,
};
use super::log_writer::LOG_LINES_DROPPED;
use super::metric::metric;
pub use super::metric::{Kind, Metric};
use super::placers::{PLACER_STUCK, QUEUE_DEPTH};
use super::plans::{HOMED_CONTAINERS, INPUT_HOMES, PLAN_AGE, PLAN_FOLLOWED, PLAN_IN_FORCE, PLAN_LEFT, REPLICAS};
pub use super::registry::Metrics;
use super::registry::SharedCounter;
use super::rounds;
use super::routes::{
    BOXES, MOVES, ROUTE_CHANGES, ROUTE_REFUSED, ROUTE_RESYNCS, ROUTE_UNACKNOWLEDGED, ROUTE_WATCHERS, ROUTES,
};
use super::sdn::{SDN_ASKED, SDN_CONNECTED, SDN_EVENTS, SDN_RULES};

/// Upper bounds for durations, in seconds: from a lookup (100 µs) to a request past all patience.
pub const SECONDS_BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Upper bounds for search steps: powers of four up to a million.
pub const STEPS_BUCKETS: [f64; 11] =
    [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0];

const REQUEST_SECONDS: &str = "hintd_request_seconds";
const SEARCH_STEPS: &str = "hintd_search_steps";
const PUBLISH_SECONDS: &str = "hintd_publish_seconds";
const SNAPSHOT_VERSION: &str = "hintd_snapshot_version";
const SOURCE_AGE_SECONDS: &str = "hintd_source_age_seconds";
const NODES: &str = "hintd_nodes";
const LEASES: &str = "hintd_leases";
const HINTS: &str = "hintd_hints_total";
const REFUSED: &str = "hintd_refused_total";
const CONFLICTS: &str = "hintd_commit_conflicts_total";
const FEED_ITEMS: &str = "hintd_feed_items_total";
const RELOADS: &str = "hintd_reloads_total";
const STORE_WRITE_SECONDS: &str = "hintd_store_write_seconds";
const STORE_APPENDS: &str = "hintd_store_appends_total";
const STORE_OPS: &str = "hintd_store_ops_total";
const STORE_FAILURES: &str = "hintd_store_failures_total";
const STORE_HEALTHY: &str = "hintd_store_healthy";

/// Every metric there is.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    let others = [super::instance::ROWS, super::routes::OF_LINKS, super::slow_peers::ROWS, super::spans::ROWS];
    OF_WORK.iter().chain(others.into_iter().flatten()).chain(rounds::ROWS).chain(super::worth::ROWS)
}

/// Metrics of what the daemon does.
const OF_WORK: &[Metric] = &[
    metric(REQUEST_SECONDS, Kind::Histogram, Unit::Seconds, "Time of a placement request, by policy and stage."),
    metric(SEARCH_STEPS, Kind::Histogram, Unit::Count, "Search steps that a request used, by policy."),
    metric(PUBLISH_SECONDS, Kind::Histogram, Unit::Seconds, "Time to build and publish a snapshot."),
    metric(SNAPSHOT_VERSION, Kind::Gauge, Unit::Count, "Version of the snapshot in use."),
    metric(SOURCE_AGE_SECONDS, Kind::Gauge, Unit::Seconds, "Age of the newest item of each source."),
    metric(NODES, Kind::Gauge, Unit::Count, "Nodes by state."),
    metric(LEASES, Kind::Gauge, Unit::Count, "Leases that hold capacity."),
    metric(HINTS, Kind::Counter, Unit::Count, "Hints by what became of them."),
    metric(REFUSED, Kind::Counter, Unit::Count, "Requests refused, by reason."),
    metric(CONNECTIONS_REFUSED, Kind::Counter, Unit::Count, "Connections beyond the limit, by what became of them."),
    metric(STREAMS_REFUSED, Kind::Counter, Unit::Count, "Follow, Watch and feed streams beyond limits.streams."),
    metric(MESSAGES_REFUSED, Kind::Counter, Unit::Count, "Messages that took too much memory or time, by result."),
    metric(LINES_LEFT_OUT, Kind::Counter, Unit::Count, "Lines of log about requests beyond limits.log_lines_per_s."),
    metric(CONFLICTS, Kind::Counter, Unit::Count, "Commits that met another's lease and were placed again."),
    metric(FEED_ITEMS, Kind::Counter, Unit::Count, "Feed items by feed and result."),
    metric(RELOADS, Kind::Counter, Unit::Count, "Configuration reloads by result."),
    metric(LOG_LINES_DROPPED, Kind::Counter, Unit::Count, "Log lines that were not read in time, or not written."),
    metric(QUEUE_DEPTH, Kind::Gauge, Unit::Count, "Entries waiting in each bounded queue."),
    metric(PLACER_STUCK, Kind::Gauge, Unit::Count, "Placer threads whose search is past its deadline for 5 s."),
    metric(STORE_WRITE_SECONDS, Kind::Histogram, Unit::Seconds, "Time of a journal transaction, failed ones included."),
    metric(STORE_APPENDS, Kind::Counter, Unit::Count, "Batches made durable in the journal."),
    metric(STORE_OPS, Kind::Counter, Unit::Count, "Row operations made durable in the journal."),
    metric(STORE_FAILURES, Kind::Counter, Unit::Count, "Journal transactions that failed."),
    metric(STORE_HEALTHY, Kind::Gauge, Unit::Count, "1 while the journal can be written, else 0."),
    metric(
        ROUTES,
        Kind::Gauge,
        Unit::Count,
        "Pairs of hosts that talk, by how: installed, default, cut; under chains: chained, bypassing, broken.",
    ),
    metric(BOXES, Kind::Gauge, Unit::Count, "Middleboxes declared, by whether flows can pass them: usable, down."),
    metric(MOVES, Kind::Counter, Unit::Count, "Moves of running containers: proposed, held for a round, followed."),
    metric(ROUTE_CHANGES, Kind::Counter, Unit::Count, "Routes told to watchers, by cause and phase."),
    metric(ROUTE_RESYNCS, Kind::Counter, Unit::Count, "Snapshots sent because an update was not acknowledged."),
    metric(ROUTE_UNACKNOWLEDGED, Kind::Gauge, Unit::Count, "Route updates sent and not yet acknowledged."),
    metric(ROUTE_REFUSED, Kind::Counter, Unit::Count, "Routes that a controller could not install."),
    metric(ROUTE_WATCHERS, Kind::Gauge, Unit::Count, "Route watchers by state: current, waiting, silent."),
    metric(DISPATCH_OFFERS, Kind::Counter, Unit::Count, "Nodes offered to dispatch policies."),
    metric(DISPATCH_LAUNCHES, Kind::Counter, Unit::Count, "Tasks that dispatch policies launched."),
    metric(DISPATCH_LATE, Kind::Counter, Unit::Count, "Tasks that waited for longer than dispatch.max_wait."),
    metric(DISPATCH_NOT_YET, Kind::Counter, Unit::Count, "Groups told to wait on Follow, by reason."),
    metric(DISPATCH_WAITING, Kind::Gauge, Unit::Count, "Tasks that wait for a dispatch policy."),
    metric(SETTLED, Kind::Counter, Unit::Count, "Decisions of which no more is expected, compared or not."),
    metric(OUTCOMES, Kind::Counter, Unit::Count, "Hinted containers by where they came to be."),
    metric(MISSES, Kind::Counter, Unit::Count, "Hinted containers that are not on their host, by reason."),
    metric(BYTES, Kind::Counter, Unit::Bytes, "Bytes of compared decisions, by term and placement."),
    metric(PLAN_IN_FORCE, Kind::Gauge, Unit::Count, "1 while a plan of recurring jobs is in force, else 0."),
    metric(PLAN_AGE, Kind::Gauge, Unit::Seconds, "Age of the plan in force since it was made."),
    metric(PLAN_LEFT, Kind::Gauge, Unit::Seconds, "What is left of the horizon of the plan in force."),
    metric(PLAN_FOLLOWED, Kind::Gauge, Unit::Count, "Jobs, runs and stages by how the plan in force is followed."),
    metric(REPLICAS, Kind::Counter, Unit::Count, "Answers to questions for replicas of new data, by reason."),
    metric(INPUT_HOMES, Kind::Counter, Unit::Count, "Answers to questions for homes of input, by reason."),
    metric(HOMED_CONTAINERS, Kind::Counter, Unit::Count, "Containers told to stay at home with their input, by place."),
    metric(CIRCUITS, Kind::Gauge, Unit::Count, "Circuits wanted, of these set, and rack pairs without: unserved."),
    metric(CIRCUIT_PORTS, Kind::Gauge, Unit::Count, "Ports of the optical switch: works, failed, stuck."),
    metric(CIRCUIT_DEMAND, Kind::Gauge, Unit::Bytes, "Bytes that elephants have left to send between racks."),
    metric(SHUFFLES, Kind::Counter, Unit::Count, "Shuffles between two racks told to start or to wait."),
    metric(CIRCUIT_CHANGES, Kind::Counter, Unit::Count, "Times that other circuits were wanted."),
    metric(HADOOP_ASKED, Kind::Counter, Unit::Count, "Questions to ResourceManagers, by result."),
    metric(HADOOP_ANSWERS, Kind::Gauge, Unit::Count, "1 while an active ResourceManager answers, else 0."),
    metric(
        HADOOP_AGE,
        Kind::Gauge,
        Unit::Seconds,
        "Time since an active ResourceManager answered, or since the start.",
    ),
    metric(HADOOP_ENDED, Kind::Counter, Unit::Count, "Attempts that a ResourceManager says are over, by how."),
    metric(HADOOP_DISAGREES, Kind::Gauge, Unit::Count, "Settings of the scheduler that [yarn] states otherwise."),
    metric(PROGRESS_ASKED, Kind::Counter, Unit::Count, "Polls of ApplicationMasters for shuffles, by result."),
    metric(NAME_NODE_ASKED, Kind::Counter, Unit::Count, "Questions to NameNodes, by result."),
    metric(NAME_NODE_ANSWERS, Kind::Gauge, Unit::Count, "1 while a NameNode answers, else 0."),
    metric(NAME_NODE_AGE, Kind::Gauge, Unit::Seconds, "Time since a NameNode answered, or since the start."),
    metric(NAME_NODE_PATHS, Kind::Gauge, Unit::Count, "Paths that requests named, by state."),
    metric(NAME_NODE_LOCATED, Kind::Counter, Unit::Count, "Requests with paths, by whether locations came in time."),
    metric(SDN_ASKED, Kind::Counter, Unit::Count, "Questions to the SDN controller, by what for and result."),
    metric(SDN_CONNECTED, Kind::Gauge, Unit::Count, "1 while the SDN controller answers, else 0."),
    metric(SDN_EVENTS, Kind::Counter, Unit::Count, "Events of the SDN controller, by kind."),
    metric(HISTORY_ASKED, Kind::Counter, Unit::Count, "Polls of history servers, by server and result."),
    metric(HISTORY_PASSED_OVER, Kind::Counter, Unit::Count, "Finished jobs passed over, by server and reason."),
    metric(HISTORY_ANSWERS, Kind::Gauge, Unit::Count, "1 while a history server answers, else 0."),
    metric(HISTORY_AGE, Kind::Gauge, Unit::Seconds, "Time since a history server answered, or since the start."),
    metric(SDN_RULES, Kind::Counter, Unit::Count, "Entries of switches, by what became of them."),
];

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A recorder with every metric described.
    ///
    /// Histogram samples gather in memory until the next [`render`](Self::render) or
    /// [`keep_up`](Self::keep_up), which `server::start` begins.
    pub fn new() -> Self {
        // Without buckets the exporter makes summaries of histograms, which do not add up over hosts.
        let buckets: [(Matcher, &'static [f64]); 3] = [
            (Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS),
            (Matcher::Full(SEARCH_STEPS.to_owned()), &STEPS_BUCKETS),
            (Matcher::Full(rounds::REQUESTS.to_owned()), &rounds::BUCKETS),
        ];
        Self::described(all(), buckets)
    }

    /// How many containers of a size, `minimum` or `maximum`, fit in the rack that has most room for them.
    pub fn domain_slots(&self, size: &'static str, slots: u64) {
        self.gauge(DOMAIN_SLOTS, &[("size", size)]).set(slots as f64);
    }

    /// Handles for requests that `policy` answers: one set per policy, made when it is configured.
    pub fn requests(&self, policy: &str) -> RequestMetrics {
        let policy = self.admit(policy);
        let stage = |stage: Stage| self.histogram(REQUEST_SECONDS, &[("policy", policy), ("stage", stage.label())]);
        RequestMetrics {
            stages: Stage::ALL.iter().map(|&s| stage(s)).collect(),
            steps: self.histogram(SEARCH_STEPS, &[("policy", policy)]),
        }
    }

    /// Handles for one feed: heartbeats, blocks, topology…
    pub fn feed(&self, feed: &'static str) -> FeedMetrics {
        let counter = |&result: &FeedResult| self.counter(FEED_ITEMS, &[("feed", feed), ("result", result.label())]);
        FeedMetrics {
            items: FeedResult::ALL.iter().map(counter).collect(),
            age: self.gauge(SOURCE_AGE_SECONDS, &[("source", feed)]),
        }
    }

    /// Handles for the snapshot's publisher.
    pub fn publisher(&self) -> PublisherMetrics {
        PublisherMetrics {
            seconds: self.histogram(PUBLISH_SECONDS, &[]),
            version: self.gauge(SNAPSHOT_VERSION, &[]),
            metrics: self.clone(),
        }
    }

    /// Handles for the ledger.
    pub fn ledger(&self) -> LedgerMetrics {
        let event = |&event: &HintEvent| self.counter(HINTS, &[("event", event.label())]);
        LedgerMetrics {
            hints: HintEvent::ALL.iter().map(event).collect(),
            conflicts: self.counter(CONFLICTS, &[]),
            leases: self.gauge(LEASES, &[]),
        }
    }

    /// Handles for the journal.
    pub fn store(&self) -> StoreMetrics {
        StoreMetrics {
            seconds: self.histogram(STORE_WRITE_SECONDS, &[]),
            appends: self.counter(STORE_APPENDS, &[]),
            ops: self.counter(STORE_OPS, &[]),
            failures: self.counter(STORE_FAILURES, &[]),
            healthy: self.gauge(STORE_HEALTHY, &[]),
        }
    }

    /// Counts a refused request; `reason` is one of a closed list, never text from the request.
    pub fn refused(&self, reason: &'static str) {
        self.counter(REFUSED, &[("reason", reason)]).add(1);
    }

    /// So many keys of the configuration wait for a restart.
    pub fn restart_keys(&self, keys: usize) {
        self.instance().restart_keys(keys);
    }

    /// The journal is this file: its size and the room on its disk are looked at with each rendering from now on.
    pub fn journal_file(&self, path: &Path) {
        self.instance().journal_file(path, |name| self.gauge(name, &[]));
    }

    /// Shows refusals for these reasons as 0 until there are some: of a series that begins with its first burst Prometheus
    /// sees no increase.
    pub fn not_refused_yet(&self, reasons: &[&'static str]) {
        for reason in reasons {
            self.counter(REFUSED, &[("reason", reason)]);
        }
    }

    /// Counts a reload of the configuration.
    pub fn reloaded(&self, result: ReloadResult) {
        self.counter(RELOADS, &[("result", result.label())]).add(1);
        self.instance().reloaded(result);
    }
}

/// Records the requests of one policy.
#[derive(Clone)]
pub struct RequestMetrics {
    stages: Vec<Histogram>,
    steps: Histogram,
}

impl RequestMetrics {
    /// The time that a request spent in a stage.
    pub fn stage(&self, stage: Stage, took: Duration) {
        self.stages[stage as usize].record(took);
    }

    /// The search steps that a request used.
    pub fn steps(&self, steps: u64) {
        self.steps.record(steps as f64);
    }
}

/// Records one feed's items.
#[derive(Clone)]
pub struct FeedMetrics {
    items: Vec<SharedCounter>,
    age: Gauge,
}

impl FeedMetrics {
    /// Counts items of one result.
    pub fn items(&self, result: FeedResult, count: u64) {
        self.items[result as usize].add(count);
    }

    /// The age of the source's newest item; infinite where none was ever heard, so that an alert on age fires then.
    pub fn age(&self, age: Option<Duration>) {
        self.age.set(age.map_or(f64::INFINITY, |age| age.as_secs_f64()));
    }
}

/// Records what the publisher does.
#[derive(Clone)]
pub struct PublisherMetrics {
    seconds: Histogram,
    version: Gauge,
    metrics: Metrics,
}

impl PublisherMetrics {
    /// A snapshot was published.
    pub fn published(&self, took: Duration, version: u64) {
        self.seconds.record(took);
        self.version.set(version as f64);
    }

    /// How many nodes are in a state; `state` is one of the model's words.
    pub fn nodes(&self, state: &'static str, count: usize) {
        self.metrics.gauge(NODES, &[("state", state)]).set(count as f64);
    }
}

/// Records what becomes of hints and leases.
#[derive(Clone)]
pub struct LedgerMetrics {
    hints: Vec<SharedCounter>,
    conflicts: SharedCounter,
    leases: Gauge,
}

impl LedgerMetrics {
    /// Counts hints.
    pub fn hints(&self, event: HintEvent, count: u64) {
        self.hints[event as usize].add(count);
    }

    /// Counts commits that had to be placed again.
    pub fn conflicts(&self, count: u64) {
        self.conflicts.add(count);
    }

    /// How many leases hold capacity.
    pub fn leases(&self, count: usize) {
        self.leases.set(count as f64);
    }
}

/// Records the journal's transactions.
#[derive(Clone)]
pub struct StoreMetrics {
    seconds: Histogram,
    appends: SharedCounter,
    ops: SharedCounter,
    failures: SharedCounter,
    healthy: Gauge,
}

impl StoreMetrics {
    /// A transaction of so many batches and operations became durable.
    pub fn written(&self, took: Duration, appends: u64, ops: u64) {
        self.seconds.record(took);
        self.appends.add(appends);
        self.ops.add(ops);
    }

    /// A transaction failed.
    pub fn failed(&self, took: Duration) {
        self.seconds.record(took);
        self.failures.add(1);
    }

    /// Whether the journal can be written.
    pub fn healthy(&self, healthy: bool) {
        self.healthy.set(f64::from(u8::from(healthy)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::registry::MAX_POLICIES;
    use super::super::sdn::{Asked, RuleResult};
    use super::super::worth::QueueWorth;
    use super::*;
    use std::collections::BTreeSet;

    const MS: Duration = Duration::from_millis(1);

    /// Records everything at least once.
    fn busy() -> Metrics {
        let metrics = Metrics::new();
        let others = [super::super::spans::record, super::super::slow_peers::record, rounds::record];
        others.iter().for_each(|record| record(&metrics));
        let requests = metrics.requests("container");
        Stage::ALL.iter().for_each(|&stage| requests.stage(stage, 3 * MS));
        requests.steps(1000);
        let feed = metrics.feed("heartbeats");
        feed.items(FeedResult::Accepted, 7);
        feed.items(FeedResult::Late, 2);
        feed.age(Some(1500 * MS));
        metrics.publisher().published(2 * MS, 9);
        metrics.publisher().nodes("lost", 3);
        let ledger = metrics.ledger();
        ledger.hints(HintEvent::Issued, 5);
        ledger.hints(HintEvent::Withdrawn, 1);
        ledger.conflicts(2);
        ledger.leases(4);
        metrics.refused("no_room");
        metrics.domain_slots("minimum", 3);
        metrics.admission().connection(ConnectionRefusal::Closed);
        metrics.admission().stream();
        metrics.reloaded(ReloadResult::Refused);
        metrics.counter(LOG_LINES_DROPPED, &[]).add(2);
        metrics.queue("placement").depth(11);
        metrics.placers().stuck(0);
        let store = metrics.store();
        store.written(MS, 3, 6);
        store.failed(MS);
        store.healthy(true);
        metrics.journal_file(&std::env::temp_dir().join("journal.redb"));
        ask_servers(&metrics);
        decide(&metrics);
        move_traffic(&metrics);
        metrics
    }

    fn decide(metrics: &Metrics) {
        let dispatch = metrics.dispatch();
        dispatch.offers(9);
        dispatch.launches(2);
        dispatch.late(1);
        dispatch.not_yet("no_local_block");
        dispatch.waiting(4);
        let adherence = metrics.adherence("container", "etl", "shadow");
        adherence.settled(true, 2);
        adherence.outcome("on_host", 5);
        adherence.miss("yarn_chose", 1);
        adherence.bytes("remote", "hinted", 1e9);
        metrics.replicas_advised("homes");
        metrics.input_homes("homes");
        metrics.homed_container(true);
        metrics.plans().in_force(None);
        let mut worth = metrics.worth();
        worth.counts(1, 2);
        worth.queue("etl", QueueWorth { hinted: 9, held_out: 8, ratio: Some([0.9, 0.8, 0.95]) });
        metrics.plans().followed(&Default::default());
    }

    fn ask_servers(metrics: &Metrics) {
        metrics.hadoop().asked(None);
        metrics.hadoop().age(true, MS);
        metrics.hadoop().ended("finished");
        metrics.hadoop().disagrees(0);
        metrics.hadoop().progress_asked(None);
        let name_node = metrics.name_node();
        name_node.asked("answered");
        name_node.age(true, MS);
        name_node.located("in_time");
        name_node.paths([1, 0, 0]);
        metrics.history_server("history:19888").asked(None);
        metrics.history_server("history:19888").passed_over("refused");
        metrics.history_server("history:19888").age(true, Duration::from_secs(3));
    }

    fn move_traffic(metrics: &Metrics) {
        let sdn = metrics.sdn();
        sdn.asked(Asked::Topology, Some("late"));
        sdn.connected(false);
        sdn.event("link_delete");
        sdn.rules(RuleResult::Added, 3);
        let routes = metrics.routes();
        routes.routes(RouteKind::Cut, 2);
        routes.boxes(BoxState::Down, 1);
        routes.moves(MoveEvent::Proposed, 1);
        routes.watchers(WatcherKind::Silent, 1);
        routes.unacknowledged(3);
        routes.changed("link_down", "failover", 4);
        routes.resynced(1);
        routes.refused(1);
        routes.damped(1);
        routes.links(LinkState::Down, 1);
        let circuits = metrics.circuits();
        circuits.circuits(2, 1, 3);
        circuits.ports(4, 1, 1);
        circuits.demand(7);
        circuits.changed(1);
        circuits.started(1);
        circuits.held(2);
    }

    fn has(rendered: &str, line: &str) {
        assert!(rendered.lines().any(|l| l == line), "no line {line} in\n{rendered}");
    }

    #[test]
    fn latencies_are_real_histograms_in_seconds() {
        let rendered = busy().render();
        has(&rendered, "# TYPE hintd_request_seconds histogram");
        has(&rendered, r#"hintd_request_seconds_bucket{policy="container",stage="place",le="0.0025"} 0"#);
        has(&rendered, r#"hintd_request_seconds_bucket{policy="container",stage="place",le="0.005"} 1"#);
        has(&rendered, r#"hintd_request_seconds_bucket{policy="container",stage="place",le="+Inf"} 1"#);
        has(&rendered, r#"hintd_request_seconds_sum{policy="container",stage="place"} 0.003"#);
        has(&rendered, r#"hintd_search_steps_bucket{policy="container",le="1024"} 1"#);
        has(&rendered, r#"hintd_publish_seconds_bucket{le="0.0025"} 1"#);
        assert!(!rendered.contains("quantile="), "a histogram was exported as a summary:\n{rendered}");
    }

    #[test]
    fn every_metric_in_the_list_is_recorded_under_its_name_and_kind() {
        let rendered = busy().render();
        for Metric { name, kind, help, .. } in all() {
            let kind = format!("{kind:?}").to_lowercase();
            has(&rendered, &format!("# TYPE {name} {kind}"));
            has(&rendered, &format!("# HELP {name} {help}"));
        }
        let types = rendered.lines().filter(|line| line.starts_with("# TYPE"));
        assert_eq!(types.count(), all().count(), "a metric is missing from the list");
    }

    #[test]
    fn names_say_their_unit() {
        let mut names = BTreeSet::new();
        for &Metric { name, kind, unit, help } in all() {
            assert!(name.starts_with("hintd_") || name.starts_with("process_"), "{name}");
            assert!(names.insert(name), "{name}");
            assert_eq!(kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert_eq!(unit == Unit::Seconds, name.ends_with("_seconds"), "{name}");
            assert!(help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn counters_are_readable_without_rendering_and_equal_the_rendered_ones() {
        let metrics = busy();
        let counters = metrics.counters();
        assert_eq!(counters[r#"hintd_feed_items_total{feed="heartbeats",result="accepted"}"#], 7);
        assert_eq!(counters[r#"hintd_hints_total{event="issued"}"#], 5);
        assert_eq!(counters["hintd_commit_conflicts_total"], 2);
        let rendered = metrics.render();
        for (name, count) in counters {
            has(&rendered, &format!("{name} {count}"));
        }
    }

    #[test]
    fn reasons_for_refusals_are_exported_before_the_first_one() {
        let metrics = Metrics::new();
        metrics.not_refused_yet(&["deadline", "full"]);
        metrics.refused("full");
        let rendered = metrics.render();
        has(&rendered, r#"hintd_refused_total{reason="deadline"} 0"#);
        has(&rendered, r#"hintd_refused_total{reason="full"} 1"#);
    }

    #[test]
    fn two_handles_of_one_metric_share_it_and_two_daemons_do_not() {
        let (one, other) = (Metrics::new(), Metrics::new());
        one.ledger().hints(HintEvent::Issued, 1);
        one.ledger().hints(HintEvent::Issued, 1);
        assert_eq!(one.counters()[r#"hintd_hints_total{event="issued"}"#], 2);
        assert_eq!(other.counters().len(), 0);
    }

    #[test]
    fn policies_beyond_the_bound_share_a_label() {
        let metrics = Metrics::new();
        for policy in 0..MAX_POLICIES + 5 {
            metrics.requests(&format!("p{policy}")).steps(1);
        }
        let rendered = metrics.render();
        has(&rendered, r#"hintd_search_steps_count{policy="other"} 5"#);
        has(&rendered, r#"hintd_search_steps_count{policy="p63"} 1"#);
        assert!(!rendered.contains("\"p64\""));
    }
}
