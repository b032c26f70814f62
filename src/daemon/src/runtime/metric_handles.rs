//! What the daemon measures: handles made once, and the counters that status shows.

use super::domain_slots::domain_slots;
use super::refused_table::{RefusedApplication, RefusedClient, RefusedTable};
use super::registries::FeedCounts;
use crate::store::{Commit, CommitObserver};
use crate::telemetry::circuits::CircuitMetrics;
use crate::telemetry::dispatch::DispatchMetrics;
use crate::telemetry::metrics::RequestMetrics;
use crate::telemetry::metrics::{AdmissionMetrics, FeedMetrics, LedgerMetrics, Metrics, PublisherMetrics};
use crate::telemetry::metrics::{
    BoxState, ConnectionRefusal, FeedResult, HintEvent, LinkState, MessageRefusal, MoveEvent, ReloadResult, RouteKind,
    Stage, WatcherKind,
};
use crate::telemetry::placers::{PlacerMetrics, QueueMetrics};
use crate::telemetry::plans::PlanMetrics;
use crate::telemetry::rate_limited_log::RateLimitedLog;
use crate::telemetry::routes::RouteMetrics;
use crate::telemetry::worth::{QueueWorth, WorthMetrics};
use hintd_engine::worth::book::WorthView;
use hintd_engine::{
    CircuitsView, Counter, Generation, Miss, PlanView, Refusal, RouteUpdate, Tally, TallyKey, Term, WatcherProgress,
    WatcherState,
};
use hintd_model::cluster::{NodeState, RunningFlows, Source, Topology};
use hintd_model::network::optical::PortState;
use hintd_model::units::{ApplicationId, BoxIdx, Timestamp};
use hintd_policy::plan::PlanCounts;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All handles.
pub struct MetricHandles {
    metrics: Metrics,
    publisher: PublisherMetrics,
    ledger: LedgerMetrics,
    routes: RouteMetrics,
    dispatch: DispatchMetrics,
    plans: PlanMetrics,
    worth: Mutex<WorthMetrics>,
    circuits: CircuitMetrics,
    pool: QueueMetrics,
    placers: PlacerMetrics,
    journal: QueueMetrics,
    admission: AdmissionMetrics,
    /// Lines about connections by what became of them, and about streams: clients that repeat could fill a disk.
    connections_said: [RateLimitedLog; ConnectionRefusal::ALL.len()],
    streams_said: RateLimitedLog,
    messages_said: [RateLimitedLog; MessageRefusal::ALL.len()],
    reports_said: RateLimitedLog,
    ports_said: RateLimitedLog,
    replaced_said: RateLimitedLog,
    feeds: Vec<(Source, FeedMetrics)>,
    policies: Mutex<BTreeMap<&'static str, RequestMetrics>>,
    counters: Mutex<BTreeMap<&'static str, u64>>,
    refused: RefusedTable,
}

impl std::fmt::Debug for MetricHandles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricHandles").field("counters", &*self.counters()).finish_non_exhaustive()
    }
}

/// Sizes at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Depths {
    /// Live leases.
    pub leases: usize,
    /// Tasks that wait for a dispatch policy.
    pub waiting: u64,
    /// Placements waiting or running.
    pub pool: usize,
    /// Placer threads that are stuck.
    pub stuck: usize,
    /// Appends waiting for the disk.
    pub journal: usize,
}

/// Traffic of running applications, in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCounts {
    /// Decisions whose tasks talk over the network.
    pub jobs: u64,
    /// Ordered pairs of nodes that talk, on a route that is to be installed.
    pub installed: u64,
    /// By default forwarding.
    pub default: u64,
    /// Without a path.
    pub cut: u64,
    /// Pairs of tasks on them.
    pub task_pairs: u64,
    /// Pairs and chains that pass a middlebox of each type.
    pub chained: u64,
    /// That leave some out, for the chain fails open.
    pub bypassing: u64,
    /// Without a way.
    pub broken: u64,
}

impl FlowCounts {
    /// Counts; takes time in proportion to the pairs. Where no network is known nothing is cut: all goes by default.
    #[must_use]
    pub fn of(flows: &RunningFlows, network_known: bool) -> Self {
        let mut counts = Self { jobs: flows.jobs.len() as u64, ..Self::default() };
        for (_, route) in flows.routes.iter() {
            counts.task_pairs += route.task_pairs;
            match (route.links.is_empty(), route.installed) {
                (true, _) if network_known => counts.cut += 1,
                (false, true) => counts.installed += 1,
                _ => counts.default += 1,
            }
        }
        for of in flows.chained.counts().into_values() {
            counts.bypassing += of.bypassing;
            // Without a network nobody knows.
            counts.broken += if network_known { of.broken } else { 0 };
            counts.chained += of.flows - of.bypassing - of.broken;
        }
        counts
    }
}

impl MetricHandles {
    /// Handles in `metrics`.
    #[must_use]
    pub fn new(metrics: Metrics) -> Self {
        metrics.not_refused_yet(&Refusal::OF_REQUESTS);
        Self {
            publisher: metrics.publisher(),
            ledger: metrics.ledger(),
            routes: metrics.routes(),
            dispatch: metrics.dispatch(),
            plans: metrics.plans(),
            worth: Mutex::new(metrics.worth()),
            circuits: metrics.circuits(),
            pool: metrics.queue("placer"),
            placers: metrics.placers(),
            journal: metrics.queue("journal"),
            admission: metrics.admission(),
            connections_said: Default::default(),
            streams_said: RateLimitedLog::default(),
            messages_said: Default::default(),
            reports_said: RateLimitedLog::default(),
            ports_said: RateLimitedLog::default(),
            replaced_said: RateLimitedLog::default(),
            feeds: Source::ALL.into_iter().map(|source| (source, metrics.feed(source.as_str()))).collect(),
            policies: Mutex::default(),
            // There from the start: whether an answer is late hangs on the machine, and which keys status has must not.
            counters: Mutex::new([("answers_late", 0), ("hints_late", 0)].into()),
            refused: RefusedTable::default(),
            metrics,
        }
    }

    /// Records each transaction of the journal.
    pub(super) fn commit_observer(&self) -> CommitObserver {
        let store = self.metrics.store();
        store.healthy(true);
        CommitObserver::new(move |commit: Commit| {
            store.healthy(commit.durable);
            if commit.durable {
                store.written(commit.took, commit.appends, commit.ops);
            } else {
                store.failed(commit.took);
            }
        })
    }

    /// Somebody was told where replicas should go, or why as HDFS has it.
    pub(super) fn replicas_advised(&self, reason: &'static str) {
        self.metrics.replicas_advised(reason);
    }

    /// Somebody was told of homes of an application's input, or why there are none.
    pub(super) fn input_homes(&self, reason: &'static str) {
        self.metrics.input_homes(reason);
    }

    /// A container came of a group that was told of homes.
    pub(super) fn homed_container(&self, at_home: bool) {
        self.metrics.homed_container(at_home);
    }

    /// A round of so many requests was decided in this time.
    pub(super) fn round_decided(&self, policy: &'static str, requests: usize, took: Duration) {
        self.metrics.round_decided(policy, requests, took);
        self.add("rounds", 1);
        self.add("rounds_requests", requests as u64);
    }

    /// A round ended in a panic.
    pub(super) fn round_panicked(&self, policy: &'static str) {
        self.metrics.round_panicked(policy);
    }

    /// Times and steps of one request.
    pub(super) fn request(&self, policy: &'static str, stages: &[(Stage, Duration)], steps: Option<u64>) {
        let mut policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        let handles = policies.entry(policy).or_insert_with(|| self.metrics.requests(policy)).clone();
        drop(policies);
        for (stage, took) in stages {
            handles.stage(*stage, *took);
        }
        if let Some(steps) = steps {
            handles.steps(steps);
        }
    }

    /// A request was refused, by the token of the status table, to an application and on a peer's connection as far as
    /// they are known.
    pub(crate) fn refused(&self, reason: &'static str, application: Option<ApplicationId>, peer: Option<IpAddr>) {
        self.metrics.refused(reason);
        self.add("requests_refused", 1);
        self.refused.count(reason, application, peer);
    }

    /// Applications that were refused, as far as is kept.
    pub(crate) fn refused_applications(&self) -> Vec<RefusedApplication> {
        self.refused.applications()
    }

    /// Refusals since the start, by reason.
    pub(crate) fn refused_reasons(&self) -> BTreeMap<&'static str, u64> {
        self.refused.reasons()
    }

    /// Who was refused most: at most so many applications and so many peers.
    pub(crate) fn refused_most(&self, most: usize) -> Vec<RefusedClient> {
        self.refused.top(most)
    }

    /// A connection was turned away.
    pub(crate) fn connection_turned(&self, turned: ConnectionRefusal, limit: impl std::fmt::Display) {
        self.admission.connection(turned);
        let (counter, what) = match turned {
            ConnectionRefusal::Standing => {
                ("connections_standing", "connections beyond limits.connections wait for a place")
            }
            ConnectionRefusal::Closed => ("connections_closed", "connections beyond limits.connections were closed"),
            ConnectionRefusal::Silent => ("connections_silent", "connections that never spoke HTTP/2 were closed"),
        };
        self.add(counter, 1);
        if let Some(count) = self.connections_said[turned as usize].due() {
            tracing::warn!(count, %limit, "{what}");
        }
    }

    /// A stream was refused.
    pub(crate) fn stream_refused(&self, limit: usize) {
        self.admission.stream();
        self.add("streams_refused", 1);
        if let Some(count) = self.streams_said.due() {
            tracing::warn!(count, limit, "streams beyond limits.streams were refused");
        }
    }

    /// A message took too much memory, or too long.
    pub(crate) fn message_refused(&self, refused: MessageRefusal) {
        self.admission.message(refused);
        let (counter, what) = match refused {
            MessageRefusal::Inbound => {
                ("messages_refused_inbound", "messages were refused: limits.inbound_bytes leaves them no memory")
            }
            MessageRefusal::Upload => {
                ("messages_refused_upload", "messages were refused: they did not end within limits.upload")
            }
            MessageRefusal::Outbound => {
                ("messages_refused_outbound", "answers were held back: limits.outbound_bytes leaves them no memory")
            }
            MessageRefusal::Unread => {
                ("connections_unread", "connections were closed: what waits for them was not read within limits.unread")
            }
            MessageRefusal::Slow => (
                "connections_slow",
                "connections were closed: they read an answer more slowly than limits.read_bytes_per_s, and limits.unread beyond",
            ),
        };
        self.add(counter, 1);
        if let Some(count) = self.messages_said[refused as usize].due() {
            tracing::warn!(count, "{what}");
        }
    }

    /// A line about a request was not written: its application has had as many as it may.
    pub(crate) fn line_left_out(&self) {
        self.admission.line();
        self.add("request_lines_left_out", 1);
    }

    /// A controller's report of circuits was refused.
    pub(super) fn report_refused(&self, watcher: &str, refusal: &Refusal) {
        self.add("circuit_reports_refused", 1);
        if let Some(count) = self.reports_said.due() {
            tracing::warn!(watcher, count, %refusal, "reports of circuits were refused");
        }
    }

    /// A Watch took the place of one of the same name that somebody still read.
    pub(super) fn watch_replaced(&self, watcher: &str) {
        self.add("watches_replaced", 1);
        if let Some(count) = self.replaced_said.due() {
            tracing::warn!(
                watcher,
                count,
                "a later Watch of the same name took the place of one that was open: where two call themselves so, they \
                 push each other out"
            );
        }
    }

    /// A report changed how optical ports are: of how many such reports lines are due to tell, if they are.
    pub(super) fn ports_changed(&self) -> Option<u64> {
        self.ports_said.due()
    }

    /// Something the engine counted.
    pub(super) fn count(&self, counter: Counter, by: u64) {
        self.add(counter.as_str(), by);
        match counter {
            Counter::HintsIssued => self.ledger.hints(HintEvent::Issued, by),
            Counter::HintsWithheld => self.ledger.hints(HintEvent::Withheld, by),
            Counter::HintsHeldOut => self.ledger.hints(HintEvent::HeldOut, by),
            Counter::HintsStopped => self.ledger.hints(HintEvent::Stopped, by),
            Counter::HintsFollowed => self.ledger.hints(HintEvent::Followed, by),
            Counter::LeasesExpired => self.ledger.hints(HintEvent::Expired, by),
            Counter::LeasesWithdrawn => self.ledger.hints(HintEvent::Withdrawn, by),
            Counter::CommitConflicts => self.ledger.conflicts(by),
            Counter::RoutesResynced => self.routes.resynced(by),
            Counter::RoutesRefused => self.routes.refused(by),
            Counter::MovesProposed => self.routes.moves(MoveEvent::Proposed, by),
            Counter::MovesHeld => self.routes.moves(MoveEvent::Held, by),
            Counter::MovesFollowed => self.routes.moves(MoveEvent::Followed, by),
            Counter::LinksDamped => self.routes.damped(by),
            Counter::DispatchOffers => self.dispatch.offers(by),
            Counter::DispatchLaunches => self.dispatch.launches(by),
            Counter::DispatchLate => self.dispatch.late(by),
            Counter::ShufflesStarted => self.circuits.started(by),
            Counter::ShufflesHeld => self.circuits.held(by),
            Counter::CircuitChanges => self.circuits.changed(by),
            // Status has them, and no metric.
            Counter::LeasesGranted
            | Counter::LeasesBound
            | Counter::LeasesReleased
            | Counter::LeasesUndone
            | Counter::CompletionsCompared
            | Counter::HintsElsewhere
            | Counter::ShadowAgreed
            | Counter::ShadowDiffered
            | Counter::NodesStale
            | Counter::NodesLost
            | Counter::NodesBack
            | Counter::TasksReplaced
            | Counter::TasksUnknown
            | Counter::AnswersEvicted
            | Counter::AttemptsEvicted
            | Counter::LegacyAttempts
            | Counter::HistorySamples
            | Counter::HistoryRuns
            | Counter::HistoryEvicted
            | Counter::RoutesChanged
            | Counter::RoutesFailedOver
            | Counter::ChainsBroken
            | Counter::RebalanceRounds
            | Counter::RebalanceLeftOut
            | Counter::RoutesPlanned
            | Counter::RoutesToDefault
            | Counter::WatchersSilent
            | Counter::FlowsEvicted
            | Counter::CircuitReports
            | Counter::PlansActivated
            | Counter::PlansRolledBack
            | Counter::RunsLeftOut => {}
        }
    }

    /// Decisions were settled.
    pub(super) fn adherence(&self, key: &TallyKey, tally: &Tally) {
        let to = self.metrics.adherence(&key.policy, key.queue.as_str(), key.mode.as_str());
        to.settled(true, tally.compared);
        to.settled(false, tally.decisions - tally.compared);
        let found = &tally.outcomes;
        let all = [("on_host", found.on_host), ("in_rack", found.in_rack), ("elsewhere", found.elsewhere)];
        all.into_iter().chain([("never", found.never)]).for_each(|(outcome, count)| to.outcome(outcome, count));
        Miss::ALL.into_iter().for_each(|why| to.miss(why.as_str(), found.missed(why)));
        for (term, name) in [(Term::RemoteBytes, "remote"), (Term::CrossRackBytes, "cross_rack")] {
            let sums = tally.term(term);
            to.bytes(name, "hinted", sums.hinted);
            to.bytes(name, "realised", sums.realised);
            to.bytes(name, "default", sums.default);
        }
    }

    /// An application was told why a group waits.
    pub(super) fn not_yet(&self, reason: &str) {
        self.dispatch.not_yet(reason);
        self.add("dispatch_not_yet", 1);
    }

    /// A generation was published.
    pub(super) fn published(&self, took: Duration, version: u64) {
        self.publisher.published(took, version);
    }

    /// A reload ended.
    pub(super) fn reloaded(&self, result: ReloadResult) {
        self.metrics.reloaded(result);
        self.add(if result == ReloadResult::Refused { "reloads_refused" } else { "reloads" }, 1);
    }

    /// So many keys of the configuration wait for a restart.
    pub(super) fn restart_keys(&self, keys: usize) {
        self.metrics.restart_keys(keys);
    }

    /// Adds to a counter of status.
    pub(crate) fn add(&self, name: &'static str, by: u64) {
        *self.counters().entry(name).or_default() += by;
    }

    /// All counters of status.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, u64> {
        let mut all: BTreeMap<_, _> =
            self.counters().iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let dropped = self.metrics.log_lines_dropped();
        all.extend((dropped > 0).then(|| ("log_lines_dropped".to_owned(), dropped)));
        all
    }

    /// Sets what is known on looking: sizes, nodes by state, ages.
    pub(super) fn gauges(&self, depths: Depths, generation: &Generation, now: Timestamp) {
        let snapshot = &generation.snapshot;
        self.ledger.leases(depths.leases);
        self.dispatch.waiting(depths.waiting);
        self.pool.depth(depths.pool);
        self.placers.stuck(depths.stuck);
        self.journal.depth(depths.journal);
        for state in NodeState::ALL {
            let count = snapshot.state.iter().filter(|found| **found == state).count();
            self.publisher.nodes(state.as_str(), count);
        }
        for (size, slots) in domain_slots(generation) {
            self.metrics.domain_slots(size, slots);
        }
        for (source, feed) in &self.feeds {
            feed.age(snapshot.heard.at(*source).map(|heard| Duration::from_micros(now.since(heard).0)));
        }
    }

    /// The plan in force, and how it is followed by all policies together.
    pub(super) fn plan(&self, in_force: Option<&PlanView>, now: Timestamp) {
        let spans = in_force.map(|view| {
            let plan = &view.kept.plan;
            let span = |span: hintd_model::units::Micros| Duration::from_micros(span.0);
            (span(now.since(plan.made)), span(plan.until.since(now)))
        });
        self.plans.in_force(spans);
        let mut all = PlanCounts::default();
        for (_, counts) in in_force.iter().flat_map(|view| &view.followed) {
            all.followed += counts.followed;
            all.missed += counts.missed;
            all.expected += counts.expected;
            all.unplanned += counts.unplanned;
            all.released += counts.released;
            all.deviating += counts.deviating;
        }
        self.plans.followed(&all);
    }

    /// What hints are worth.
    pub(super) fn worth(&self, view: &WorthView) {
        let mut worth = self.worth.lock().unwrap_or_else(PoisonError::into_inner);
        worth.counts(view.stopped, view.under_way);
        for queue in &view.queues {
            let ratio = queue.ratio.map(|ratio| [ratio.ratio, ratio.low, ratio.high]);
            worth.queue(&queue.name, QueueWorth { hinted: queue.hinted, held_out: queue.held_out, ratio });
        }
    }

    /// How the optical switch is; `None`: there is none.
    pub(super) fn circuits(&self, view: Option<&CircuitsView>) {
        let ports = |state| view.map_or(0, |view| view.ports.iter().filter(|port| port.state == state).count() as u64);
        self.circuits.ports(ports(PortState::Works), ports(PortState::Failed), ports(PortState::Stuck));
        let set = view.map_or(0, |view| view.set_circuits().count() as u64);
        let wanted = view.map(|view| &view.wanted);
        self.circuits.circuits(
            wanted.map_or(0, |wanted| wanted.circuits.len() as u64),
            set,
            wanted.map_or(0, |wanted| wanted.unserved_pairs),
        );
        let expected = wanted.iter().flat_map(|wanted| &wanted.circuits).map(|circuit| circuit.demand.expected.0);
        let unserved = wanted.map_or(0, |wanted| wanted.unserved_bytes.0);
        self.circuits.demand(expected.fold(unserved, u64::saturating_add));
    }

    /// Routes are told to a watcher.
    pub(super) fn rerouted(&self, update: &RouteUpdate) {
        let routes = (update.routes.len() + update.removed.len()) as u64;
        self.routes.changed(update.cause, update.phase.as_str(), routes);
    }

    /// How watchers stand.
    pub(super) fn watchers(&self, watchers: &[WatcherState]) {
        let kinds = [
            (WatcherKind::Current, WatcherProgress::Current),
            (WatcherKind::Waiting, WatcherProgress::Waiting),
            (WatcherKind::Silent, WatcherProgress::Silent),
        ];
        for (kind, progress) in kinds {
            self.routes.watchers(kind, watchers.iter().filter(|watcher| watcher.progress == progress).count());
        }
        let waiting =
            watchers.iter().filter(|watcher| watcher.installs && watcher.progress == WatcherProgress::Waiting);
        self.routes.unacknowledged(waiting.map(|watcher| watcher.sent.saturating_sub(watcher.acknowledged)).sum());
    }

    /// How running flows go through the network.
    pub(super) fn flows(&self, counts: &FlowCounts) {
        self.routes.routes(RouteKind::Installed, counts.installed);
        self.routes.routes(RouteKind::Default, counts.default);
        self.routes.routes(RouteKind::Cut, counts.cut);
        self.routes.routes(RouteKind::Chained, counts.chained);
        self.routes.routes(RouteKind::Bypassing, counts.bypassing);
        self.routes.routes(RouteKind::Broken, counts.broken);
    }

    /// Which middleboxes flows can pass, and how many links there are and are down.
    pub(super) fn network(&self, topology: &Topology, (links, down): (usize, usize)) {
        self.routes.links(LinkState::Up, links.saturating_sub(down));
        self.routes.links(LinkState::Down, down);
        self.boxes(topology);
    }

    /// Which middleboxes flows can pass.
    fn boxes(&self, topology: &Topology) {
        let Some(chains) = topology.chains.as_deref() else {
            return BoxState::ALL.iter().for_each(|&kind| self.routes.boxes(kind, 0));
        };
        // Without a network nobody knows what they hang on: what is known is their own state.
        let usable = |at: &usize| match topology.network.as_deref() {
            Some(network) => chains.is_usable(network, BoxIdx::new(*at)),
            None => chains.boxes()[*at].up,
        };
        let all = chains.boxes().len();
        let usable = (0..all).filter(usable).count();
        self.routes.boxes(BoxState::Usable, usable);
        self.routes.boxes(BoxState::Down, all - usable);
    }

    /// Items of feeds, as far as they were not told before.
    pub(super) fn feeds(&self, before: &FeedCounts, now: &FeedCounts) {
        for (source, feed) in &self.feeds {
            let grown = |of: &FeedCounts| of.taken.get(source).copied().unwrap_or(0);
            feed.items(FeedResult::Accepted, grown(now) - grown(before));
        }
        for (key, count) in &now.refused {
            let more = count - before.refused.get(key).copied().unwrap_or(0);
            if let Some((_, feed)) = self.feeds.iter().find(|(source, _)| *source == key.0) {
                feed.items(result_of(key.1.as_str()), more);
            }
        }
        if let Some((_, blocks)) = self.feeds.iter().find(|(source, _)| *source == Source::Blocks) {
            blocks.items(FeedResult::Dropped, now.block_ids_dropped - before.block_ids_dropped);
        }
    }

    fn counters(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The metric's coarse result of a refusal's token.
fn result_of(reason: &str) -> FeedResult {
    match reason {
        "duplicate" => FeedResult::Duplicate,
        "out_of_order" => FeedResult::Late,
        "too_many" => FeedResult::Dropped,
        unknown if unknown.starts_with("unknown") => FeedResult::Unknown,
        _ => FeedResult::Refused,
    }
}
