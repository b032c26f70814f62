//! The engine: model, ledger, answers, attempts, history, monitor and routes behind one door.
//!
//! Facts wait until the next settling, where the snapshot and what follows from it (leases bound, withdrawn,
//! nodes lost, routes changed) change together: no commit ever sees a lease end before the container that took
//! its room is counted, nor the other way round. Commits are checked against what was settled last.

use super::adherence::{Adherence, DecisionOutcome, Tally, TallyKey};
use super::answers::{Answer, Answers};
use super::arrivals::{ArrivalLimits, Arrivals};
use super::attempts::{self, Attempts, Token};
use super::circuits::Circuits;
use super::dispatching::Dispatching;
use super::effects::{Counter, Effect, Effects};
use super::flows::Flows;
use super::generation::Generation;
use super::history::{History, HistoryLimits};
use super::journal::{Op, Table, text_key};
use super::lease::{Lease, LeaseEnd};
use super::ledger::Ledger;
use super::monitor;
use super::plans::{Plans, RunBook};
use super::rebalance::Rebalancing;
use super::refusal::Refusal;
use super::release::Expected;
use super::routes::{Cause, WatcherState, Watchers};
use super::settings::EngineSettings;
use hintd_model::cluster::{Applied, Change, Model, ModelError, NodeState, Overlay, Snapshot};
use hintd_model::network::chains::ChainsDocument;
use hintd_model::units::{AttemptId, DecisionId, HostName, LeaseId, RackIdx, RequestId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows of the journal as read at start: key and value by table.
pub type Rows = BTreeMap<Table, Vec<(Vec<u8>, Vec<u8>)>>;

/// What was found in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveredCounts {
    /// Leases that still run.
    pub leases: usize,
    /// Leases whose time had passed.
    pub expired: usize,
    /// Answers.
    pub answers: usize,
    /// Attempts.
    pub attempts: usize,
    /// Recurring-job keys.
    pub history: usize,
    /// Plans.
    pub plans: usize,
}

/// A row that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("journal table {table}, key {key}: {message}")]
pub struct RecoverError {
    /// The table.
    pub table: &'static str,
    /// The key, in hexadecimal.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

/// What a release came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Released {
    /// Leases given back.
    pub released: u32,
    /// Leases that had ended before, or were never this attempt's.
    pub not_held: Vec<LeaseId>,
}

/// An answered request and what became of its leases.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The answer.
    pub answer: Arc<Answer>,
    /// held, confirmed, bound, released, withdrawn, expired; ended: before the last restart.
    pub leases: Vec<(LeaseId, HostName, &'static str)>,
    /// Whether its hints were followed; absent where it had none, and for what was decided before the last start.
    pub outcome: Option<DecisionOutcome>,
}

/// Sizes of the engine's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineCounts {
    /// Live leases.
    pub leases: usize,
    /// Answers kept.
    pub answers: usize,
    /// Attempts kept.
    pub attempts: usize,
    /// Recurring-job keys.
    pub history: usize,
    /// Routes watched by name.
    pub routes: usize,
    /// Pairs of nodes that talk.
    pub flows: usize,
    /// Tasks that wait for a dispatcher.
    pub waiting: u64,
    /// Decisions whose hints are watched.
    pub watched: usize,
    /// Plans kept.
    pub plans: usize,
}

/// The engine. Owned by one thread; every method takes the time and returns at once.
#[derive(Debug)]
pub struct Engine {
    pub(super) settings: EngineSettings,
    pub(super) start: Timestamp,
    pub(super) model: Model,
    /// As settled last; what commits are checked against.
    pub(super) snapshot: Arc<Snapshot>,
    /// What facts did since then.
    pub(super) pending: Vec<(Applied, Option<Cause>)>,
    pub(super) ledger: Ledger,
    pub(super) answers: Answers,
    pub(super) attempts: Attempts,
    pub(super) history: History,
    pub(super) arrivals: Arrivals,
    pub(super) expected: Expected,
    pub(super) routes: Watchers,
    pub(super) flows: Flows,
    pub(super) circuits: Circuits,
    pub(super) dispatching: Dispatching,
    pub(super) plans: Plans,
    pub(super) run_book: RunBook,
    /// Racks of the plan in force that had nodes when policies were told of it, or since.
    pub(super) planned_racks: BTreeSet<RackIdx>,
    pub(super) plans_looked_at: Timestamp,
    pub(super) adherence: Adherence,
    pub(super) rebalancing: Rebalancing,
    /// When jobs that nothing is seen of were last looked for: within a second of now, where somebody ticks.
    pub(super) flows_looked_at: Timestamp,
    /// Nodes whose first report since the start was seen: only from then on does a rise of use mean something.
    pub(super) reported: Vec<bool>,
    /// Nodes whose last report named its containers; means something where one was seen.
    pub(super) naming: Vec<bool>,
    pub(super) effects: Effects,
    pub(super) next_decision: u64,
    pub(super) next_lease: u64,
    pub(super) generation: Arc<Generation>,
    /// Something that generations carry changed since the last one.
    pub(super) changed: bool,
    pub(super) history_written: Timestamp,
}

/// Time between two writings of a changed history: a key's row is rewritten whole.
const HISTORY_EVERY: hintd_model::units::Micros = hintd_model::units::Micros::from_secs(2);

impl Engine {
    /// The lowest decision id that was never given; a caller that draws ids itself draws from here on.
    #[must_use]
    pub const fn next_decision(&self) -> DecisionId {
        DecisionId(self.next_decision)
    }

    /// Whether middleboxes and chains are the operator's, so that feeds may not declare any.
    #[must_use]
    pub fn owns_chains(&self) -> bool {
        !self.settings.chains.is_empty()
    }

    /// What requests load.
    #[must_use]
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation)
    }

    /// Takes a fact in; visible from the next publish.
    ///
    /// # Errors
    /// [`ModelError`] for a fact that the model can't take.
    pub fn change(&mut self, change: Change, now: Timestamp) -> Result<(), ModelError> {
        let change = match change {
            Change::Chains { .. } if !self.settings.chains.is_empty() => return Err(ModelError::ChainsOwned),
            Change::Chains { document, .. } => Change::Chains { document, in_use: self.flows.chained().in_use() },
            other => other,
        };
        self.take(change, now)
    }

    /// Takes the operator's declaration of middleboxes and chains in place of the one before, an empty one for none; to
    /// be called before [`Self::reload`] with settings that have another one.
    ///
    /// # Errors
    /// [`ModelError::Chains`] with every problem; then nothing has changed.
    pub fn declare(&mut self, document: &Arc<ChainsDocument>, now: Timestamp) -> Result<(), ModelError> {
        if self.settings.chains == *document {
            return Ok(());
        }
        let in_use = self.flows.chained().in_use();
        self.take(Change::Chains { document: Arc::clone(document), in_use }, now)
    }

    fn take(&mut self, change: Change, now: Timestamp) -> Result<(), ModelError> {
        let cause = Cause::of(&change);
        let applied = self.model.apply(change, now)?;
        if applied != Applied::Quiet {
            self.pending.push((applied, cause));
        }
        Ok(())
    }

    /// Ends what is due: leases, answers, silent nodes; writes the history. To be called about every 100 ms.
    pub fn tick(&mut self, now: Timestamp) {
        for id in self.ledger.due(now) {
            self.end_lease(id, LeaseEnd::Expired, now);
        }
        for id in self.answers.due(now) {
            if self.answers.waiting(&id).is_some_and(|answer| self.dispatching.waits(&answer)) {
                self.answers.keep(&id, now.plus(self.settings.answers_keep));
            } else {
                self.forget_answer(&id);
            }
        }
        self.tick_nodes(now);
        self.tick_flows(now);
        self.tick_plans(now);
        self.tick_dispatching(now);
        self.tick_circuits(now);
        self.tick_adherence(now);
        self.tick_rebalance(now);
        if now.since(self.history_written) >= HISTORY_EVERY {
            self.history_written = now;
            self.effects.journal.extend(self.history.write());
        }
    }

    fn tick_nodes(&mut self, now: Timestamp) {
        if !self.pending.is_empty() {
            self.settle(now);
        }
        let leased = |node| self.ledger.on_node(node).next().is_some();
        let silent = monitor::silent(&self.model, &self.settings, leased, self.start, now);
        if silent == monitor::Silent::default() {
            return;
        }
        for &node in &silent.stale {
            self.model.set_state(node, NodeState::Stale, now);
        }
        self.effects.count(Counter::NodesStale, silent.stale.len() as u64);
        let mut lost = Vec::new();
        for &node in &silent.lost {
            lost.push((node, self.model.set_state(node, NodeState::Lost, now)));
        }
        self.settle(now);
        for (node, containers) in lost {
            self.node_left(node, &containers, "node_lost", now);
        }
    }

    /// The next generation; `None`: nothing changed.
    pub fn publish(&mut self, now: Timestamp) -> Option<Arc<Generation>> {
        if self.model.dirty() || !self.pending.is_empty() {
            self.settle(now);
        }
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        self.generation = Arc::new(Generation {
            number: self.generation.number + 1,
            snapshot: Arc::clone(&self.snapshot),
            leases: self.ledger.overlay().clone(),
            held: self.ledger.held(),
            arrived: self.arrivals.view().clone(),
            history: self.history.view().clone(),
            releases: self.expected.view(),
            plan: self.followed_plan().cloned(),
            flows: self.flows.publish().unwrap_or_else(|| Arc::clone(&self.generation.flows)),
        });
        Some(self.generation())
    }

    /// The answer of a request id, if one is kept.
    #[must_use]
    pub fn lookup(&self, id: &RequestId, digest: u64) -> Option<Result<Arc<Answer>, Refusal>> {
        self.answers.lookup(id, digest)
    }

    /// Whether an answer of the id is kept.
    #[must_use]
    pub fn answered(&self, id: &RequestId) -> bool {
        self.answers.contains(id)
    }

    /// Ids whose answers are kept, ascending.
    pub fn requests_answered(&self) -> impl Iterator<Item = &RequestId> {
        self.answers.ids()
    }

    /// A decision and what became of its leases.
    #[must_use]
    pub fn explain(&self, decision: DecisionId) -> Option<Explained> {
        let answer = self.answers.by_decision(decision)?;
        let state = |id: LeaseId| match self.ledger.get(id) {
            Some(Lease { confirmed: Some(_), .. }) => "confirmed",
            Some(_) => "held",
            None => self.answers.ended(&answer.decision.request, id).map_or("ended", LeaseEnd::as_str),
        };
        let hints = answer.decision.hints.iter();
        let leases = hints.flat_map(|hint| hint.leases.iter().map(|&id| (id, hint.host.clone(), state(id))));
        let (leases, outcome) = (leases.collect(), self.adherence.outcome(&answer.decision));
        Some(Explained { leases, answer, outcome })
    }

    /// Whether the token is the attempt's.
    ///
    /// # Errors
    /// [`Refusal::BadToken`]; [`Refusal::Unknown`] for an attempt without an answer.
    pub fn authorize(&self, attempt: AttemptId, token: &Token) -> Result<(), Refusal> {
        match self.attempts.get(attempt) {
            None => Err(Refusal::Unknown { what: "application attempt", name: attempt.to_string(), nearest: None }),
            Some(known) if known.token == *token => Ok(()),
            Some(_) => Err(Refusal::BadToken { attempt }),
        }
    }

    /// Whether hints were followed, and what came of it, by policy, queue and mode: since the start.
    #[must_use]
    pub const fn adherence(&self) -> &BTreeMap<TallyKey, Tally> {
        self.adherence.tallies()
    }

    /// How all watchers stand, by name: those whose stream broke and that may come back, and silent ones, included.
    #[must_use]
    pub fn watchers(&self) -> Vec<WatcherState> {
        self.routes.states()
    }

    /// Pairs that this watcher watches.
    #[must_use]
    pub fn watched_by(&self, watcher: &str) -> usize {
        self.routes.watched_by(watcher)
    }

    /// A watch's stream ended. What it was told is kept for a time, so that it may come back and go on.
    pub fn unwatch(&mut self, watcher: &str, now: Timestamp) {
        self.routes.unwatch(watcher, now);
        self.controller_left(watcher, now);
    }

    /// Takes new settings; leases that run keep their time-to-live.
    pub fn reload(&mut self, settings: EngineSettings, now: Timestamp) {
        let followed = std::mem::replace(&mut self.settings, settings).plans.follow;
        if self.settings.plans.follow != followed {
            self.tell_plan(now);
        }
        self.keep_bounds(now);
        self.tick(now);
    }

    /// What the outside has to do since the last call.
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// Attempts that asked and are not over, ascending.
    #[must_use]
    pub fn attempts_known(&self) -> Vec<AttemptId> {
        self.attempts.ids().collect()
    }

    /// Sizes, for status.
    #[must_use]
    pub fn counts(&self) -> EngineCounts {
        EngineCounts {
            leases: self.ledger.len(),
            answers: self.answers.len(),
            attempts: self.attempts.len(),
            history: self.history.len(),
            routes: self.routes.len(),
            flows: self.flows.len(),
            waiting: self.dispatching.waiting(),
            watched: self.adherence.open(),
            plans: self.plans.len(),
        }
    }

    /// Live leases, oldest first.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.ledger.iter()
    }

    /// Room taken by leases as of now.
    #[must_use]
    pub const fn leased(&self) -> &Overlay {
        self.ledger.overlay()
    }

    /// The snapshot that commits are checked against.
    #[must_use]
    pub const fn settled(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// When a node was last heard.
    #[must_use]
    pub fn last_heard(&self, node: hintd_model::units::NodeIdx) -> Option<Timestamp> {
        self.model.last_heard(node)
    }

    /// Names of replicas that no node claims: the first few, and how many there are.
    #[must_use]
    pub fn unknown_names(&self) -> (Vec<String>, u64) {
        self.model.unknown_names()
    }

    /// Ends a lease: it leaves the ledger and the journal, is counted by kind, and its answer hears of it.
    pub(super) fn end_lease(&mut self, id: LeaseId, end: LeaseEnd, now: Timestamp) -> Option<Lease> {
        let lease = self.drop_lease(id, end, now)?;
        self.hint_lease_ended(&lease, end, now);
        Some(lease)
    }

    /// Ends a lease whose container its application was given on another host, or whose task has ended. Its room is
    /// free, yet to adherence it was not given back: that has the container itself, and counting both would make one
    /// container two.
    pub(super) fn end_met_lease(&mut self, id: LeaseId, now: Timestamp) {
        self.drop_lease(id, LeaseEnd::Released, now);
    }

    /// Ends a lease for all but adherence.
    fn drop_lease(&mut self, id: LeaseId, end: LeaseEnd, now: Timestamp) -> Option<Lease> {
        let lease = self.ledger.remove(id)?;
        self.changed = true;
        self.effects.journal.push(Lease::delete(id));
        self.answers.lease_ended(&lease.request, id, end, now.plus(self.settings.answers_keep));
        let counter = match end {
            LeaseEnd::Bound => Counter::LeasesBound,
            LeaseEnd::Released => Counter::LeasesReleased,
            LeaseEnd::Withdrawn => Counter::LeasesWithdrawn,
            LeaseEnd::Expired => Counter::LeasesExpired,
        };
        self.effects.count(counter, 1);
        self.dispatched_lease_ended(&lease, Some(end), now);
        Some(lease)
    }

    pub(super) fn forget_answer(&mut self, id: &RequestId) {
        if let Some(decision) = self.answers.remove(id) {
            self.hints_forgotten(decision);
            self.effects.journal.push(Op::delete(Table::Answers, text_key(id.as_str())));
            self.effects.out.push(Effect::AnswerForgotten(id.clone()));
        }
    }

    /// Forgets an attempt. Its leases must have ended.
    pub(super) fn forget_attempt(&mut self, attempt: AttemptId, now: Timestamp) {
        self.dispatched_done(attempt, now);
        self.hints_over(attempt, now);
        self.rebalancing.forget(attempt);
        self.run_book.forget(attempt);
        self.arrivals.forget(attempt);
        if let Some(known) = self.attempts.remove(attempt) {
            self.effects.journal.extend(attempts::delete_attempt(attempt, &known));
            self.effects.out.push(Effect::AttemptEnded(attempt));
        }
    }

    /// Forgets what exceeds the limits: the oldest without live leases.
    pub(super) fn keep_bounds(&mut self, now: Timestamp) {
        let answers = self.answers.too_many(self.settings.answers_max);
        self.effects.count(Counter::AnswersEvicted, answers.len() as u64);
        for id in answers {
            self.forget_answer(&id);
        }
        let attempts = self.attempts.too_many(self.settings.attempts_max, |attempt| self.ledger.holds(attempt));
        self.effects.count(Counter::AttemptsEvicted, attempts.len() as u64);
        for attempt in attempts {
            self.forget_attempt(attempt, now);
        }
    }

    pub(super) const fn arrival_limits(&self) -> ArrivalLimits {
        ArrivalLimits { attempts: self.settings.attempts_max, containers: self.settings.containers_seen }
    }

    pub(super) const fn history_limits(&self) -> HistoryLimits {
        HistoryLimits { keys: self.settings.history_keys, samples: self.settings.history_samples }
    }
}
