//! The engine: model, ledger, answers, attempts, history, monitor and routes, and the one way to them.
//!
//! Facts wait until they are applied (`apply_facts`), where the snapshot and what follows from it (leases bound, withdrawn,
//! nodes lost, routes changed) change together: no commit ever sees a lease end before the container that took
//! its room is counted, nor the other way round. Commits are checked against what was applied last.
//!
//! Its state is private to this file. What happens to it happens in *handlers*, each of which borrows the parts that it
//! may touch and says which in its documentation; here they are made, and called in their order.

use super::adherence::{Adherence, AdherenceHandler};
#[cfg(test)]
use super::answer::Answer;
use super::answers::{Answers, KeptLeases, runs};
use super::arrivals::Arrivals;
use super::attempt_end::AttemptHandler;
use super::attempts::Attempts;
use super::circuits::Circuits;
use super::circuits::messages::CircuitsView;
use super::circuits::serve::CircuitHandler;
use super::commit::CommitHandler;
use super::dispatching::{DispatchHandler, Dispatching};
use super::effects::{Counter, Effects, Output};
use super::fact_consequences::{NodeHandler, NodeReports};
use super::facts::{Facts, PendingFact};
use super::flow_updates::{FlowRecovery, RouteHandler, WatchHandler};
use super::flows::Flows;
use super::generation::Generation;
use super::history::History;
use super::holding::Holding;
use super::holding::wish::HoldHandler;
use super::ids::Ids;
use super::lease::Lease;
use super::leasing::LeaseHandler;
use super::ledger::Ledger;
use super::listing::Promised;
use super::monitor::{self, SilentNodes};
use super::packed_answer::{PackedAnswer, PackedExplained};
use super::plans::RunTracker;
use super::plans::serve::{PlanHandler, PlanReader, PlanState};
use super::prediction::Runs;
use super::proof::Proof;
use super::rebalance::{MoveHandler, Rebalancing};
use super::recover::Recovery;
use super::refusal::Refusal;
use super::release::Expected;
use super::results::{EngineCounts, RecoveredCounts};
use super::routes::{WatcherState, Watchers};
use super::settings::EngineSettings;
use super::task_events::{EventHandler, HistoryHandler};
use super::worth::book::Worth;
use super::worth::serve::WorthHandler;
use hintd_model::cluster::{Change, ModelError, NodeState, Overlay, SizeRules, Snapshot, Source};
use hintd_model::network::chains::ChainsDocument;
use hintd_model::units::{AttemptId, DecisionId, HostName, Micros, NodeIdx, RequestId, Timestamp};
use std::sync::Arc;

/// The engine. Owned by one thread; every method takes the time and returns at once.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
    start: Timestamp,
    facts: Facts,
    nodes: Nodes,
    promises: Promises,
    jobs: Jobs,
    routing: Routing,
    circuits: Circuits,
    dispatching: Dispatching,
    plans: PlanState,
    adherence: Adherence,
    rebalancing: Rebalancing,
    out: Output,
    generation: Arc<Generation>,
}

/// What is known of nodes beside the model.
#[derive(Debug, Default)]
struct Nodes {
    reports: NodeReports,
    expected: Expected,
}

/// What was promised, and to whom.
#[derive(Debug, Default)]
struct Promises {
    ledger: Ledger,
    answers: Answers,
    attempts: Attempts,
    ids: Ids,
}

/// What running jobs leave behind for later ones.
#[derive(Debug)]
struct Jobs {
    history: History,
    history_written: Timestamp,
    arrivals: Arrivals,
    run_tracker: RunTracker,
    holding: Holding,
    worth: Worth,
}

/// Who talks to whom over which route, and who is told of it.
#[derive(Debug)]
struct Routing {
    flows: Flows,
    watchers: Watchers,
    /// When jobs that nothing is seen of were last looked for: within a second of now, where somebody ticks.
    looked_at: Timestamp,
}

/// Time between two writings of a changed history: a key's row is rewritten whole.
const HISTORY_EVERY: Micros = Micros::from_secs(2);

/// The parts that most handlers have among theirs. A macro, for a method would borrow all of the engine, and what the
/// handlers have beside them could not be borrowed any more.
macro_rules! attempt_handler {
    ($engine:ident) => {
        AttemptHandler {
            leases: LeaseHandler {
                ledger: &mut $engine.promises.ledger,
                answers: &mut $engine.promises.answers,
                ids: &mut $engine.promises.ids,
                dispatching: &mut $engine.dispatching,
                adherence: &mut $engine.adherence,
                snapshot: &$engine.facts.snapshot,
                settings: &$engine.settings,
                out: &mut $engine.out,
            },
            known: &mut $engine.promises.attempts,
            flows: &mut $engine.routing.flows,
            watchers: &mut $engine.routing.watchers,
            arrivals: &mut $engine.jobs.arrivals,
            run_tracker: &mut $engine.jobs.run_tracker,
            holding: &mut $engine.jobs.holding,
            rebalancing: &mut $engine.rebalancing,
        }
    };
}

/// Handlers: what each borrows.
impl Engine {
    pub(crate) fn attempt_handler(&mut self) -> AttemptHandler<'_> {
        attempt_handler!(self)
    }

    pub(crate) fn lease_handler(&mut self) -> LeaseHandler<'_> {
        self.attempt_handler().leases
    }

    pub(crate) fn commit_handler(&mut self) -> CommitHandler<'_> {
        CommitHandler {
            attempts: attempt_handler!(self),
            published: &self.generation.flows,
            worth: &mut self.jobs.worth,
        }
    }

    pub(crate) fn node_handler(&mut self) -> NodeHandler<'_> {
        NodeHandler {
            attempts: attempt_handler!(self),
            reports: &mut self.nodes.reports,
            expected: &mut self.nodes.expected,
            history: &self.jobs.history,
            worth: &self.jobs.worth,
        }
    }

    pub(crate) fn event_handler(&mut self) -> EventHandler<'_> {
        EventHandler { attempts: attempt_handler!(self), history: &mut self.jobs.history, reports: &self.nodes.reports }
    }

    pub(crate) fn hold_handler(&mut self) -> HoldHandler<'_> {
        let (holding, history) = (&mut self.jobs.holding, &self.jobs.history);
        HoldHandler { holding, history, settings: &self.settings.hold, facts: &self.facts }
    }

    pub(crate) fn worth_handler(&mut self) -> WorthHandler<'_> {
        WorthHandler { worth: &mut self.jobs.worth, settings: &self.settings.worth, out: &mut self.out }
    }

    pub(crate) const fn worth(&self) -> &Worth {
        &self.jobs.worth
    }

    pub(crate) fn history_handler(&mut self) -> HistoryHandler<'_> {
        HistoryHandler {
            history: &mut self.jobs.history,
            run_tracker: &mut self.jobs.run_tracker,
            attempts: &self.promises.attempts,
            settings: &self.settings,
            out: &mut self.out,
        }
    }

    pub(crate) fn dispatch_handler(&mut self) -> DispatchHandler<'_> {
        DispatchHandler {
            dispatching: &mut self.dispatching,
            ledger: &self.promises.ledger,
            snapshot: &self.facts.snapshot,
            settings: &self.settings,
            effects: &mut self.out.effects,
        }
    }

    pub(crate) fn adherence_handler(&mut self) -> AdherenceHandler<'_> {
        AdherenceHandler {
            adherence: &mut self.adherence,
            ledger: &self.promises.ledger,
            snapshot: &self.facts.snapshot,
            settings: &self.settings,
            effects: &mut self.out.effects,
        }
    }

    pub(crate) fn route_handler(&mut self) -> RouteHandler<'_> {
        RouteHandler {
            flows: &mut self.routing.flows,
            watchers: &mut self.routing.watchers,
            snapshot: &self.facts.snapshot,
            settings: &self.settings.routes,
            arrived: self.jobs.arrivals.view(),
            out: &mut self.out,
        }
    }

    pub(crate) fn watch_handler(&mut self) -> WatchHandler<'_> {
        WatchHandler {
            routes: RouteHandler {
                flows: &mut self.routing.flows,
                watchers: &mut self.routing.watchers,
                snapshot: &self.facts.snapshot,
                settings: &self.settings.routes,
                arrived: self.jobs.arrivals.view(),
                out: &mut self.out,
            },
            circuits: &mut self.circuits,
            ledger: &self.promises.ledger,
            answers: &self.promises.answers,
            looked_at: &mut self.routing.looked_at,
        }
    }

    pub(crate) fn circuit_handler(&mut self) -> CircuitHandler<'_> {
        CircuitHandler {
            circuits: &mut self.circuits,
            watchers: &mut self.routing.watchers,
            dispatching: &mut self.dispatching,
            plan: self.plans.followed(&self.settings.plans).map(Arc::as_ref),
            attempts: &self.promises.attempts,
            ledger: &self.promises.ledger,
            snapshot: &self.facts.snapshot,
            settings: &self.settings.routes,
            effects: &mut self.out.effects,
        }
    }

    pub(crate) fn plan_handler(&mut self) -> PlanHandler<'_> {
        PlanHandler {
            state: &mut self.plans,
            dispatch: DispatchHandler {
                dispatching: &mut self.dispatching,
                ledger: &self.promises.ledger,
                snapshot: &self.facts.snapshot,
                settings: &self.settings,
                effects: &mut self.out.effects,
            },
            changed: &mut self.out.changed,
        }
    }

    pub(crate) fn plan_reader(&self) -> PlanReader<'_> {
        PlanReader { state: &self.plans, snapshot: &self.facts.snapshot, settings: &self.settings.plans }
    }

    pub(crate) fn move_handler(&mut self) -> MoveHandler<'_> {
        MoveHandler {
            rebalancing: &mut self.rebalancing,
            flows: &self.routing.flows,
            attempts: &self.promises.attempts,
            ledger: &self.promises.ledger,
            snapshot: &self.facts.snapshot,
            settings: &self.settings,
            effects: &mut self.out.effects,
        }
    }

    pub(crate) const fn rebalancing(&self) -> &Rebalancing {
        &self.rebalancing
    }

    pub(crate) fn recovery(&mut self, now: Timestamp) -> Recovery<'_> {
        Recovery {
            model: &mut self.facts.model,
            ids: &mut self.promises.ids,
            ledger: &mut self.promises.ledger,
            answers: &mut self.promises.answers,
            attempts: &mut self.promises.attempts,
            history: &mut self.jobs.history,
            plans: &mut self.plans.plans,
            run_tracker: &mut self.jobs.run_tracker,
            worth: &mut self.jobs.worth,
            settings: &self.settings,
            effects: &mut self.out.effects,
            counts: RecoveredCounts::default(),
            now,
        }
    }

    fn flow_recovery(&mut self) -> FlowRecovery<'_> {
        FlowRecovery {
            flows: &mut self.routing.flows,
            model: &mut self.facts.model,
            snapshot: &self.facts.snapshot,
            settings: &self.settings.routes,
            answers: &self.promises.answers,
            attempts: &self.promises.attempts,
            history: &self.jobs.history,
        }
    }
}

/// Beginning, time, and facts that become current.
impl Engine {
    pub(crate) fn empty(settings: EngineSettings, rules: SizeRules, now: Timestamp) -> Self {
        let facts = Facts::new(rules, settings.latency(), now);
        let generation = Generation {
            number: 0,
            snapshot: Arc::clone(&facts.snapshot),
            scans: Arc::clone(&facts.scans),
            leases: Default::default(),
            held: Default::default(),
            arrived: Default::default(),
            history: Default::default(),
            releases: Default::default(),
            plan: None,
            stopped: Default::default(),
            flows: Default::default(),
        };
        Self {
            settings,
            start: now,
            facts,
            nodes: Nodes::default(),
            promises: Promises::default(),
            jobs: Jobs {
                history: History::default(),
                history_written: now,
                arrivals: Arrivals::default(),
                run_tracker: RunTracker::default(),
                holding: Holding::default(),
                worth: Worth::default(),
            },
            routing: Routing { flows: Flows::default(), watchers: Watchers::default(), looked_at: now },
            circuits: Circuits::default(),
            dispatching: Dispatching::default(),
            plans: PlanState::new(now),
            adherence: Adherence::default(),
            rebalancing: Rebalancing::new(now),
            out: Output { changed: true, ..Output::default() },
            generation: Arc::new(generation),
        }
    }

    /// Begins with what the operator declares of chains.
    ///
    /// # Errors
    /// As [`Self::declare`].
    pub(crate) fn begin_with(&mut self, chains: Arc<ChainsDocument>, now: Timestamp) -> Result<(), ModelError> {
        self.declare(&chains, now)?;
        self.settings.chains = chains;
        Ok(())
    }

    /// Draws what follows from rows that were recovered.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.plan_handler().tell(now);
        self.flow_recovery().recover();
        self.attempt_handler().enforce_limits(now);
        self.apply_facts(now);
        self.publish(now);
    }

    /// Takes a fact in; visible from the next publish.
    ///
    /// # Errors
    /// [`ModelError`] for a fact that the model can't take.
    pub fn change(&mut self, change: Change, now: Timestamp) -> Result<(), ModelError> {
        let change = match change {
            Change::Chains { .. } if !self.settings.chains.is_empty() => return Err(ModelError::ChainsOwned),
            Change::Chains { document, .. } => {
                Change::Chains { document, in_use: self.routing.flows.chained().in_use() }
            }
            other => other,
        };
        self.facts.apply(change, now)
    }

    /// Takes the operator's middleboxes and chains (an empty declaration: none), before [`Self::reload`] with others.
    ///
    /// # Errors
    /// [`ModelError::Chains`] with every problem; then nothing has changed.
    pub fn declare(&mut self, document: &Arc<ChainsDocument>, now: Timestamp) -> Result<(), ModelError> {
        if self.settings.chains == *document {
            return Ok(());
        }
        let in_use = self.routing.flows.chained().in_use();
        self.facts.apply(Change::Chains { document: Arc::clone(document), in_use }, now)
    }

    /// Ends what is due: leases, answers, silent nodes; writes the history. To be called about every 100 ms.
    pub fn tick(&mut self, now: Timestamp) {
        self.lease_handler().tick(now);
        self.tick_nodes(now);
        self.watch_handler().tick(now);
        self.plan_handler().tick(now);
        self.dispatch_handler().tick(now);
        self.circuit_handler().tick(now);
        self.adherence_handler().tick(now);
        self.move_handler().tick(now);
        if now.since(self.jobs.history_written) >= HISTORY_EVERY {
            self.jobs.history_written = now;
            self.out.effects.journal.extend(self.jobs.history.write());
        }
    }

    fn tick_nodes(&mut self, now: Timestamp) {
        if self.facts.has_pending() {
            self.apply_facts(now);
        }
        let leased = |node| self.promises.ledger.on_node(node).next().is_some();
        let silent = monitor::silent(&self.facts.model, &self.settings, leased, self.start, now);
        if silent == SilentNodes::default() {
            return;
        }
        for &node in &silent.stale {
            self.facts.model.set_state(node, NodeState::Stale, now);
        }
        self.out.effects.count(Counter::NodesStale, silent.stale.len() as u64);
        let mut lost = Vec::new();
        for &node in &silent.lost {
            lost.push((node, self.facts.model.set_state(node, NodeState::Lost, now)));
        }
        self.apply_facts(now);
        for (node, containers) in lost {
            self.node_handler().node_left(node, &containers, "node_lost", now);
        }
    }

    /// Makes the model's present the snapshot that commits are checked against: what it was before, and the facts since.
    pub(crate) fn publish_snapshot(&mut self, now: Timestamp) -> (Arc<Snapshot>, Vec<PendingFact>) {
        self.out.changed = true;
        let published = self.facts.publish(now);
        self.nodes.reports.resize(self.facts.snapshot.nodes());
        published
    }

    /// What is known of the cluster.
    pub(crate) const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// A host's node, which is in the snapshot from now on, and its name.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a host that was never named.
    pub(crate) fn node_of(&mut self, host: &HostName, now: Timestamp) -> Result<(NodeIdx, HostName), Refusal> {
        let statics = self.facts.model.statics();
        let unknown = || Refusal::Unknown { what: "host", name: host.to_string(), nearest: None };
        let node = statics.find(host.as_str()).ok_or_else(unknown)?;
        let host = statics.host[node.at()].clone();
        if node.at() >= self.facts.snapshot.nodes() {
            self.apply_facts(now);
        }
        Ok((node, host))
    }

    /// Somebody told of tasks.
    pub(crate) fn heard_of_events(&mut self, now: Timestamp) {
        let heard = self.facts.model.apply(Change::Heard(Source::Events), now);
        debug_assert!(heard.is_ok(), "that a source spoke can't be refused");
    }

    /// The next generation; `None`: nothing changed.
    pub fn publish(&mut self, now: Timestamp) -> Option<Arc<Generation>> {
        if self.facts.model.dirty() || self.facts.has_pending() {
            self.apply_facts(now);
        }
        if !std::mem::take(&mut self.out.changed) {
            return None;
        }
        self.generation = Arc::new(Generation {
            number: self.generation.number + 1,
            snapshot: Arc::clone(&self.facts.snapshot),
            scans: Arc::clone(&self.facts.scans),
            leases: self.promises.ledger.overlay().clone(),
            held: self.promises.ledger.held(),
            arrived: self.jobs.arrivals.view().clone(),
            history: self.jobs.history.view().clone(),
            releases: self.nodes.expected.view(),
            plan: self.plans.followed(&self.settings.plans).cloned(),
            stopped: Arc::clone(self.jobs.worth.stopped()),
            flows: self.routing.flows.publish().unwrap_or_else(|| Arc::clone(&self.generation.flows)),
        });
        Some(self.generation())
    }

    /// Takes new settings; leases that run keep their time-to-live.
    pub fn reload(&mut self, settings: EngineSettings, now: Timestamp) {
        let followed = std::mem::replace(&mut self.settings, settings).plans.follow;
        if self.settings.plans.follow != followed {
            self.plan_handler().tell(now);
        }
        self.facts.model.configure_latency(self.settings.latency());
        self.attempt_handler().enforce_limits(now);
        self.tick(now);
    }
}

/// Looking.
impl Engine {
    /// The lowest decision id that was never given; a caller that draws ids itself draws from here on.
    #[must_use]
    pub const fn next_decision(&self) -> DecisionId {
        self.promises.ids.next_decision()
    }

    /// What requests load.
    #[must_use]
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation)
    }

    /// The answer of a request id, if one is kept.
    #[must_use]
    pub fn kept_answer(&self, id: &RequestId, digest: u64) -> Option<Result<PackedAnswer, Refusal>> {
        self.promises.answers.of(id, digest)
    }

    /// The same, unpacked.
    #[cfg(test)]
    pub(crate) fn answer(&self, id: &RequestId, digest: u64) -> Option<Result<Arc<Answer>, Refusal>> {
        self.kept_answer(id, digest).map(|found| found.map(|answer| answer.unpack()))
    }

    /// Whether an answer of the id is kept.
    #[must_use]
    pub fn answered(&self, id: &RequestId) -> bool {
        self.promises.answers.contains(id)
    }

    /// Ids whose answers are kept, ascending.
    pub fn requests_answered(&self) -> impl Iterator<Item = &RequestId> {
        self.promises.answers.ids()
    }

    /// A decision and what became of its leases.
    #[must_use]
    pub fn explain(&self, decision: DecisionId) -> Option<PackedExplained> {
        let KeptLeases { answer, live, ended } = self.promises.answers.explain(decision)?;
        // A request that waits gets leases hours apart, and others' ids lie between: only runs of its own are walked.
        let live = runs(live).into_iter().flat_map(|(first, last)| self.promises.ledger.between(first, last));
        let live = live.map(|lease| (lease.id, lease.confirmed.is_some())).collect();
        Some(PackedExplained { answer, live, ended: ended.to_vec(), outcome: self.adherence.outcome(decision) })
    }

    /// Whether who shows `proof` may act for the attempt.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`]; [`Refusal::Unknown`] for an attempt without an answer.
    pub fn authorize(&self, attempt: AttemptId, proof: &Proof) -> Result<(), Refusal> {
        match self.promises.attempts.get(attempt) {
            None => Err(Refusal::Unknown { what: "application attempt", name: attempt.to_string(), nearest: None }),
            Some(known) => known.secrets.held().check(attempt, proof, false),
        }
    }

    /// Whether who shows `proof` may tell of the attempt and hear of it: nothing is at stake where it is not known, and
    /// old clients have nothing to show.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`].
    pub fn may_tell(&self, attempt: AttemptId, proof: &Proof) -> Result<(), Refusal> {
        let known = self.promises.attempts.get(attempt);
        known.map_or(Ok(()), |known| known.secrets.held().check(attempt, proof, self.settings.legacy_clients))
    }

    /// The settings in force.
    #[must_use]
    pub const fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// Whether an attempt has asked and is not over.
    #[must_use]
    pub fn knows(&self, attempt: AttemptId) -> bool {
        self.promises.attempts.get(attempt).is_some()
    }

    /// Whether a node reports a container of that attempt.
    pub(crate) fn has_containers(&self, attempt: AttemptId) -> bool {
        self.facts.model.has_containers(attempt)
    }

    /// What lists of leases and attempts are made of.
    pub(crate) fn promised(&self) -> Promised<'_> {
        let Promises { ledger, attempts, .. } = &self.promises;
        Promised { ledger, attempts, holding: &self.jobs.holding, snapshot: &self.facts.snapshot }
    }

    /// Whether hints were followed, and what came of it.
    #[must_use]
    pub const fn adherence(&self) -> &Adherence {
        &self.adherence
    }

    /// How all watchers stand, by name: those whose stream broke and that may come back, and silent ones, included.
    #[must_use]
    pub fn watchers(&self) -> Vec<WatcherState> {
        self.routing.watchers.states()
    }

    /// Pairs that this watcher watches.
    #[must_use]
    pub fn watched_by(&self, watcher: &str) -> usize {
        self.routing.watchers.watched_by(watcher)
    }

    /// What the outside has to do since the last call.
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.out.effects)
    }

    /// Attempts that asked and are not over, ascending.
    #[must_use]
    pub fn attempts_known(&self) -> Vec<AttemptId> {
        self.promises.attempts.ids().collect()
    }

    /// Sizes, for status.
    #[must_use]
    pub fn counts(&self) -> EngineCounts {
        EngineCounts {
            leases: self.promises.ledger.len(),
            answers: self.promises.answers.len(),
            attempts: self.promises.attempts.len(),
            history: self.jobs.history.len(),
            routes: self.routing.watchers.len(),
            flows: self.routing.flows.len(),
            waiting: self.dispatching.waiting(),
            watched: self.adherence.open(),
            plans: self.plans.plans.len(),
        }
    }

    /// Live leases, oldest first.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.promises.ledger.iter()
    }

    /// Room taken by leases as of now.
    #[must_use]
    pub const fn leased(&self) -> &Overlay {
        self.promises.ledger.overlay()
    }

    /// The snapshot that commits are checked against.
    #[must_use]
    pub const fn current_snapshot(&self) -> &Arc<Snapshot> {
        &self.facts.snapshot
    }

    /// Circuits as operators see them; `None`: there is no optical switch.
    #[must_use]
    pub fn circuits(&self) -> Option<CircuitsView> {
        self.circuits.view_beside(&self.routing.watchers)
    }

    /// Runs of recurring jobs that finished here.
    #[must_use]
    pub fn runs(&self) -> Arc<Runs> {
        Arc::clone(self.jobs.run_tracker.runs())
    }
}

/// What tests look into.
#[cfg(test)]
impl Engine {
    pub(crate) const fn flows(&self) -> &Flows {
        &self.routing.flows
    }

    pub(crate) const fn flows_mut(&mut self) -> &mut Flows {
        &mut self.routing.flows
    }

    pub(crate) const fn attempts(&self) -> &Attempts {
        &self.promises.attempts
    }
}
