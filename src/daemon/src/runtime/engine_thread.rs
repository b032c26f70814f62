//! The engine thread: the one writer, which owns the engine, takes facts and commands, publishes generations.
//!
//! Nothing it does waits for a disk or a socket. What a call has to make durable goes to the journal,
//! and its answer waits in [`PendingBatches`] until the journal's writer says so; a batch that could not be
//! written is undone, and readiness goes off until the disk is back.

mod circuits;
mod plans;
mod policies;
mod watching;
mod worth;

use super::answered_requests::AnsweredRequests;
use super::background::{BackgroundQueue, LATE, LostTasks};
use super::clock::Clock;
use super::command::{Command, Committed, DetachedRequest, EngineHandle, EngineReport, Envelope, Reply};
use super::daemon::input_homes::ToldHomes;
use super::follow_event::{FollowEvent, FollowPayload};
use super::metric_handles::{Depths, FlowCounts, MetricHandles};
use super::outbox::Outboxes;
use super::pending_batches::{PendingBatches, Returned};
use super::pool::Pool;
use super::registries::{FeedCounts, FeedRegistries};
use super::servers::Servers;
use super::watchers::Watchers;
use super::{Ready, options::FollowOptions};
use crate::store::GroupCommitHandle;
use arc_swap::ArcSwap;
use hintd_engine::{
    Answer, CommitOutcome, DetachedDispatcher, Effect, Effects, Engine, EngineSettings, FollowBody, Generation,
    PackedAnswer, Proof, Proposal, Refusal, Released, TaskEvent, Token,
};
use hintd_model::cluster::ModelError;
use hintd_model::units::{AttemptId, DecisionId, LeaseId, Micros, RequestId, Timestamp};
use hintd_policy::{IndexedFlows, Policy};
use plans::PlanChangeQueue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// What the engine thread shares with the request path.
pub(super) struct Shared {
    /// What requests load, once.
    pub(super) generation: ArcSwap<Generation>,
    /// Facts that wait to be taken in.
    pub(super) registries: Arc<FeedRegistries>,
    /// Servers that are asked.
    pub(super) servers: Servers,
    /// What attempts are told.
    pub(super) outboxes: Outboxes<FollowEvent>,
    /// How long that is kept.
    pub(super) follow: ArcSwap<FollowOptions>,
    /// Who watches routes.
    pub(super) watchers: Watchers,
    /// Who was told of homes of its input.
    pub(super) told_homes: ToldHomes,
    /// What is measured and counted.
    pub(super) metrics: MetricHandles,
    /// Whether requests are taken.
    pub(super) ready: watch::Sender<Ready>,
    /// Ids that have an answer.
    pub(super) known: AnsweredRequests,
    /// Whether the engine thread was told that something urgent waits, and has not heard it yet.
    pub(super) urgent: AtomicBool,
    /// For tasks to place anew, and moves to look for.
    pub(super) background: BackgroundQueue,
}

/// The thread's own state.
pub(super) struct EngineThread {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: Receiver<Envelope>,
    pub(super) pending_batches: PendingBatches,
    /// Changes wait at most so long.
    pub(super) publish_every: Duration,
    /// When facts were last taken in.
    pub(super) drained: Instant,
    /// Facts wait that are not to wait until a publish is due.
    pub(super) urgent: bool,
    /// A commit took or freed room since then.
    pub(super) changed: bool,
    /// When the engine last ended what was due.
    pub(super) ticked: Instant,
    /// Generations that some request may still read: freed here, not on a request's thread.
    pub(super) retired: Vec<Arc<Generation>>,
    pub(super) stopping: bool,
    /// For its gauge.
    pub(super) pool: Pool,
    /// When gauges were last set.
    pub(super) gauged: Instant,
    /// What metrics know of feeds.
    pub(super) fed: FeedCounts,
    /// Watches so far.
    pub(super) sessions: u64,
    /// What metrics know of flows.
    pub(super) flows: Option<Arc<IndexedFlows>>,
    /// Changes of plans on their way.
    pub(super) plan_changes: PlanChangeQueue,
}

/// Time between two looks for what is due: leases, answers, silent nodes.
const TICK_EVERY: Duration = Duration::from_millis(100);
/// Time between two drains while something urgent waits: the first link of many is applied when it is heard, those that
/// fail with it together.
const URGENT_EVERY: Duration = Duration::from_millis(2);
/// Time between two settings of the gauges.
const GAUGE_EVERY: Duration = Duration::from_secs(1);
/// Commands taken in a row before feeds and publishing get their turn.
const BURST: usize = 256;
/// Generations kept from being freed elsewhere; a slower reader frees its own.
const RETIRED_MAX: usize = 64;
/// What a caller waits for a disk to come back.
const STORE_RETRY: Micros = Micros::from_secs(1);

impl EngineThread {
    /// One that has taken nothing yet: changes wait at most `publish_every`.
    pub(super) fn new(
        mut engine: Engine,
        clock: Clock,
        shared: Arc<Shared>,
        (engine_handle, commands): (&EngineHandle, Receiver<Envelope>),
        publish_every: Duration,
        pool: Pool,
    ) -> Self {
        let now = clock.now();
        let plan_changes = PlanChangeQueue::new(engine_handle.clone(), engine.plan_in_force(now).as_ref(), now);
        Self {
            engine,
            clock,
            shared,
            commands,
            pending_batches: PendingBatches::new(engine_handle.clone()),
            publish_every,
            drained: Instant::now(),
            urgent: false,
            changed: true,
            ticked: Instant::now(),
            retired: Vec::new(),
            stopping: false,
            pool,
            gauged: Instant::now(),
            fed: FeedCounts::default(),
            sessions: 0,
            flows: None,
            plan_changes,
        }
    }

    /// Runs until told to stop and nothing is in flight.
    pub(super) fn run(mut self, journal: GroupCommitHandle) {
        self.pending_batches.start(journal);
        self.gauges(self.clock.now()); // who looks at once is not to find a daemon without what it recovered
        loop {
            match self.commands.recv_timeout(self.patience()) {
                Ok(envelope) => self.handle(envelope),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            for _ in 0..BURST {
                let Ok(envelope) = self.commands.try_recv() else { break };
                self.handle(envelope);
            }
            self.tick();
            self.publish_if_due();
            if self.stopping && self.pending_batches.is_empty() && self.plan_changes.is_idle() {
                return;
            }
        }
    }

    /// How long the next command may be waited for.
    fn patience(&self) -> Duration {
        let most = self.publish_every.min(TICK_EVERY);
        if self.urgent { most.min(URGENT_EVERY.saturating_sub(self.drained.elapsed())) } else { most }
    }

    fn handle(&mut self, envelope: Envelope) {
        let now = self.clock.now();
        match envelope.command {
            // Its caller has gone: nothing is leased for nobody.
            Command::Commit { claim, .. } if !claim.take() => {}
            Command::Commit { proposal, token, reply, .. } => self.commit(*proposal, token, reply, now),
            Command::KeptAnswer { id, digest, reply } => self.kept_answer(&id, digest, reply),
            Command::Explain { decision, reply } => drop(reply.send(self.engine.explain(decision))),
            Command::AnswerReached { decision, reached } => {
                if self.engine.answer_reached(decision, reached, now) {
                    self.state_changed(); // its flows ended, or began again
                }
            }
            Command::MovesTold { attempt, reply } => drop(reply.send(self.engine.moves_told(attempt, now))),
            Command::Follow { attempt, proof, reply } => {
                let known = self.engine.authorize(attempt, &proof);
                let _ = reply.send(known.map(|()| self.shared.outboxes.open(attempt, now)));
            }
            Command::EngineReport(reply) => drop(reply.send(self.engine_report(now))),
            Command::Attempts(reply) => drop(reply.send(self.engine.attempts_known())),
            Command::Heard(reply) => {
                let nodes = self.shared.generation.load().snapshot.statics.indexes();
                let _ = reply.send(nodes.map(|node| self.engine.last_heard(node)).collect());
            }
            Command::Release { attempt, proof, leases, reply } => self.release(attempt, &proof, &leases, reply, now),
            Command::ShuffleTurn { wish, proof, reply } => {
                let _ = reply.send(self.engine.shuffle_turn(&wish, &proof, now));
            }
            Command::MayTell { attempt, proof, reply } => {
                let may = self.engine.may_tell(attempt, &proof);
                let _ = reply.send(may.map(|()| self.engine.knows(attempt)));
            }
            Command::EndAttempt { attempt, reply } => {
                let known = self.engine.end_attempt(attempt, now);
                self.changed = true;
                self.effects(None, Box::new(move |result| drop(reply.send(result.map(|()| known)))));
            }
            Command::List(call) => call.answer(&self.engine),
            Command::Event(event, proof) => self.event(event, &proof, now),
            Command::Learned { key, run } => {
                self.engine.learnt(&key, &run, now);
                self.state_changed();
            }
            Command::Watch { caller, scope, most, reply } => {
                let watcher = Arc::clone(&caller.watcher);
                if let Err(Ok(unheard)) = reply.send(self.watch(caller, scope, most, now)) {
                    self.unwatch(&watcher, unheard.session);
                }
                self.state_changed();
            }
            Command::Acknowledge { watcher, proof, number, refused, reply } => {
                let holds = self.shared.watchers.check(&watcher, &proof, self.legacy());
                let _ = reply.send(holds.and_then(|()| self.engine.acknowledge(&watcher, number, refused, now)));
                self.state_changed();
            }
            Command::ReportCircuits { watcher, proof, report, reply } => {
                match self.shared.watchers.check(&watcher, &proof, self.legacy()) {
                    Ok(()) => self.report_circuits(&watcher, report, reply, now),
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Command::Circuits(reply) => drop(reply.send(self.engine.circuits())),
            Command::Urgent => {
                self.shared.urgent.store(false, Ordering::Release);
                self.urgent = true;
            }
            Command::Unwatch { watcher, session } => self.unwatch(&watcher, session),
            // It costs a copy of a policy's State: not for a caller who has gone.
            Command::DetachDispatcher { reply, .. } if reply.is_closed() => {}
            Command::DetachDispatcher { proposal, reply } => {
                let apart = self.engine.detached_dispatcher(&proposal, now);
                let _ = reply.send(apart.map(|dispatcher| DetachedRequest { proposal, dispatcher }));
            }
            Command::PreviewPlanStatus { run, reply } => drop(reply.send(self.engine.preview_plan_status(&run, now))),
            Command::Plans(call) => self.plans(call, now),
            Command::Worth(call) => self.worth(call, now),
            Command::PlansSettled(durable) => self.plan_change_completed(durable, now),
            Command::Rebalanced { round, found } => {
                self.engine.rebalanced(round, &found, now);
                self.effects(None, Box::new(|_| ()));
            }
            Command::Reload { settings, policies, reply } => self.reload(*settings, &policies, reply, now),
            Command::Policies(policies) => self.take_policies(&policies, now),
            Command::BatchCompleted { ticket, result } => self.batch_completed(ticket, result.is_ok()),
            Command::Stop => self.stopping = true,
            #[cfg(test)]
            Command::Run(run) => run(),
        }
    }

    fn release(
        &mut self,
        attempt: AttemptId,
        proof: &Proof,
        leases: &[LeaseId],
        reply: Reply<Result<Released, Refusal>>,
        now: Timestamp,
    ) {
        let released = self.engine.release(attempt, proof, leases, now);
        self.changed = true;
        self.effects(None, Box::new(move |result| drop(reply.send(result.and(released)))));
    }

    /// Something may be there to publish, and to send off.
    pub(super) fn state_changed(&mut self) {
        self.changed = true;
        self.effects(None, Box::new(|_| ()));
    }

    /// Whether clients that know no nonces are allowed.
    fn legacy(&self) -> bool {
        self.engine.settings().legacy_clients
    }

    fn event(&mut self, event: TaskEvent, proof: &Proof, now: Timestamp) {
        let came = ToldHomes::container(&event);
        match self.engine.tell(event, proof, now) {
            Err(refusal) => {
                self.shared.metrics.add("events_refused", 1);
                tracing::debug!(%refusal, "a task event was dropped");
            }
            Ok(is_new) => {
                let came = came.filter(|_| is_new);
                let generation = self.shared.generation.load();
                if let Some(at_home) = came.and_then(|came| self.shared.told_homes.came(&came, &generation)) {
                    self.shared.metrics.homed_container(at_home);
                }
            }
        }
        self.state_changed();
    }

    fn reload(
        &mut self,
        settings: EngineSettings,
        policies: &BTreeMap<&'static str, Arc<dyn Policy>>,
        reply: Reply<Result<(), Refusal>>,
        now: Timestamp,
    ) {
        if let Err(error) = self.engine.declare(&settings.chains, now) {
            let message = format!("{error}");
            let _ = reply.send(Err(Refusal::Invalid { field: "chains".to_owned(), message }));
            return;
        }
        self.engine.reload(settings, now);
        self.engine.redispatch(&|name| policies.get(name).cloned(), now);
        self.publish(); // whoever hears that it is in force finds it so
        self.effects(None, Box::new(move |_| drop(reply.send(Ok(())))));
    }

    fn engine_report(&mut self, now: Timestamp) -> EngineReport {
        let (unknown_names, unknown_names_total) = self.engine.unknown_names();
        let watchers = self.engine.watchers();
        let followed = self.engine.adherence();
        let (adherence, adherence_lately) = (followed.tallies().clone(), followed.last_hour(now));
        let (counts, plan, worth) = (self.engine.counts(), self.engine.plan_in_force(now), self.engine.worth_view());
        EngineReport { counts, unknown_names, unknown_names_total, watchers, adherence, adherence_lately, plan, worth }
    }

    fn commit(&mut self, proposal: Proposal, token: Token, reply: Reply<Result<Committed, Refusal>>, now: Timestamp) {
        if !self.pending_batches.healthy() {
            let _ = reply.send(Err(store_failed()));
            return;
        }
        match self.engine.commit(proposal, token, now) {
            CommitOutcome::Committed(answer) => {
                self.changed = true;
                self.shared.known.note(&answer.decision.request);
                let dispatcher = self.engine.take_dispatcher();
                self.effects(Some(Arc::clone(&answer)), answer_reply(answer, dispatcher, reply));
            }
            CommitOutcome::Answered(answer) => {
                self.effects(None, Box::new(|_| ()));
                let decision = answer.decision();
                let reply = move |result: Result<(), Refusal>| {
                    let _ = reply.send(result.map(|()| Committed::Before(answer)));
                };
                self.pending_batches.after(decision, Box::new(reply));
            }
            CommitOutcome::Conflict { .. } => {
                self.effects(None, Box::new(|_| ()));
                // The next try is to see what this one did not.
                self.publish();
                let _ = reply.send(Ok(Committed::Conflict));
            }
            CommitOutcome::Refused(refusal) => {
                self.effects(None, Box::new(|_| ()));
                let _ = reply.send(Err(refusal));
            }
        }
    }

    fn kept_answer(&mut self, id: &RequestId, digest: u64, reply: Reply<Result<Option<PackedAnswer>, Refusal>>) {
        match self.engine.kept_answer(id, digest) {
            None => drop(reply.send(Ok(None))),
            Some(Err(refusal)) => drop(reply.send(Err(refusal))),
            // Known and perhaps not durable yet: it is answered when it is.
            Some(Ok(answer)) => {
                let decision = answer.decision();
                let reply = move |result: Result<(), Refusal>| drop(reply.send(result.map(|()| Some(answer))));
                self.pending_batches.after(decision, Box::new(reply));
            }
        }
    }

    /// Sends what the last call has to make durable; the rest follows when it is.
    pub(super) fn effects(&mut self, answer: Option<Arc<Answer>>, reply: super::pending_batches::DurabilityCallback) {
        let effects = self.engine.take_effects();
        self.await_durable(effects, answer, reply);
    }

    /// Sends off effects that were taken before.
    pub(super) fn await_durable(
        &mut self,
        effects: Effects,
        answer: Option<Arc<Answer>>,
        reply: super::pending_batches::DurabilityCallback,
    ) {
        let decision = answer.map(|answer| answer.decision.id);
        let pushed = promised(&effects.out);
        if let Some(Returned { out, then, taken }) = self.pending_batches.enter(effects, decision, reply) {
            self.send_out(out);
            if !taken {
                self.undo(decision.into_iter().chain(pushed));
                self.note_health();
            }
            then(if taken { Ok(()) } else { Err(store_failed()) });
        }
    }

    /// Takes back what was promised by a batch that the journal did not take.
    fn undo(&mut self, decisions: impl Iterator<Item = DecisionId>) {
        let now = self.clock.now();
        let mut undone = false;
        for decision in decisions {
            self.engine.undo(decision, now);
            undone = true;
        }
        if undone {
            self.changed = true;
            self.effects(None, Box::new(|_| ()));
        }
    }

    fn batch_completed(&mut self, ticket: u64, ok: bool) {
        let Some(mut done) = self.pending_batches.leave(ticket, ok) else { return };
        let pushed = if ok { Vec::new() } else { promised(&done.out) };
        if !ok {
            self.note_health();
            done.out.retain(|effect| !matches!(effect, Effect::Hints { .. }));
        }
        // Before anything is taken back: what follows from that is told later than what was told before.
        self.send_out(done.out);
        if !ok {
            self.undo(done.decision.into_iter().chain(pushed));
        }
        for then in done.then {
            then(if ok { Ok(()) } else { Err(store_failed()) });
        }
    }

    fn send_out(&mut self, out: Vec<Effect>) {
        let now = self.clock.now();
        for effect in out {
            match effect {
                Effect::Follow { attempt, message, cause } => {
                    if let FollowBody::NotYet { reason, .. } = &message {
                        self.shared.metrics.not_yet(reason);
                    }
                    let follow = self.shared.follow.load();
                    self.shared.outboxes.push(attempt, FollowEvent::advice(cause, message), &follow, now);
                }
                Effect::Hints { attempt, answer, cause } => {
                    let follow = self.shared.follow.load();
                    self.shared.outboxes.push(
                        attempt,
                        FollowEvent { cause, what: FollowPayload::Hints(answer) },
                        &follow,
                        now,
                    );
                }
                Effect::Late { request } => self.place_anew(LostTasks { request, cause: LATE, node: None }, now),
                Effect::Replace { request, cause, node } => {
                    self.place_anew(LostTasks { request, cause, node: Some(node) }, now);
                }
                Effect::Rebalance(round) => self.shared.background.rebalance(round),
                Effect::Routes { watcher, update } => {
                    self.shared.metrics.rerouted(&update);
                    if !self.shared.watchers.send(&watcher, update) {
                        self.engine.unwatch(&watcher, now);
                    }
                }
                Effect::ControllerLeft { watcher } => circuits::log_left(&watcher),
                Effect::WatchEnded { watcher, reason } => {
                    tracing::warn!(%watcher, %reason, "a route watcher's stream ends");
                    self.shared.watchers.end(&watcher, &reason);
                }
                Effect::AttemptEnded(attempt) => self.shared.outboxes.end(attempt, now),
                Effect::AnswerForgotten(id) => {
                    self.shared.metrics.add("answers_forgotten", 1);
                    // This was to wait for the disk; meanwhile the id may have been answered anew.
                    if !self.engine.answered(&id) {
                        self.shared.known.forget(&id);
                    }
                }
                Effect::LegacyClient { application } => {
                    let why = "its client is of version 0.1.0 and sends no nonce: any local user can act for it";
                    tracing::warn!(%application, "{why} (tokens.legacy_clients)");
                }
                Effect::RunLeftOut { key, application } => {
                    let why = "a run is not noted: the last start cut it in two, and too little was heard since";
                    tracing::info!(%key, %application, "{why}");
                }
                Effect::Verdict(change) => worth::log_verdict(&change),
                Effect::Count(counter, by) => self.shared.metrics.count(counter, by),
                Effect::AdherenceFinalized(counted) => self.shared.metrics.adherence(&counted.0, &counted.1),
            }
        }
    }

    /// Has tasks placed beside this thread. What comes of it is told later, to an outbox that the attempt's end has
    /// ended by then.
    fn place_anew(&self, lost: LostTasks, now: Timestamp) {
        let attempt = lost.request.attempt;
        let outbox = &self.shared.outboxes;
        outbox.open(attempt, now);
        for message in self.shared.background.place(lost) {
            outbox.push(attempt, message, &self.shared.follow.load(), now);
        }
    }

    fn tick(&mut self) {
        if self.ticked.elapsed() < TICK_EVERY {
            return;
        }
        self.ticked = Instant::now();
        let now = self.clock.now();
        self.engine.tick(now);
        super::silent_attempts::end(&mut self.engine, &self.shared.outboxes, now);
        self.effects(None, Box::new(|_| ()));
        self.shared.outboxes.forget_old(&self.shared.follow.load(), now);
        self.pending_batches.retry_backlog();
        self.note_health();
        self.changed = true; // the engine says whether there is anything to publish
        if self.gauged.elapsed() >= GAUGE_EVERY {
            self.gauged = Instant::now();
            self.gauges(now);
        }
    }

    fn gauges(&mut self, now: Timestamp) {
        let metrics = &self.shared.metrics;
        let counts = self.engine.counts();
        let depths = Depths {
            leases: counts.leases,
            waiting: counts.waiting,
            pool: self.pool.admitted(),
            stuck: self.pool.stuck().stuck,
            journal: self.pending_batches.queued(),
        };
        metrics.gauges(depths, &self.shared.generation.load(), now);
        self.shared.servers.gauge();
        let fed = self.shared.registries.counts();
        metrics.feeds(&self.fed, &fed);
        self.fed = fed;
        let plan = self.engine.plan_in_force(now);
        metrics.plan(plan.as_ref(), now);
        self.plan_changes.look(plan.as_ref(), now);
        metrics.circuits(self.engine.circuits().as_ref());
        metrics.watchers(&self.engine.watchers());
        metrics.worth(&self.engine.worth_view());
        // Counting a large network's flows takes a moment, and most seconds change none.
        let generation = self.shared.generation.load();
        let flows = &generation.flows;
        metrics.network(&generation.snapshot.topology, self.shared.registries.count_links());
        if self.flows.as_ref().is_none_or(|known| !Arc::ptr_eq(known, flows)) {
            self.shared.metrics.flows(&FlowCounts::of(flows, generation.snapshot.topology.network.is_some()));
            self.flows = Some(Arc::clone(flows));
        }
    }

    fn publish_if_due(&mut self) {
        // Counted from the last drain, not the last publish: commits publish all the time, and facts would never be due.
        let every = if self.urgent { self.publish_every.min(URGENT_EVERY) } else { self.publish_every };
        if self.drained.elapsed() >= every {
            self.urgent = false;
            if self.shared.registries.dirty() {
                self.drained = Instant::now();
                self.drain();
                self.changed = true;
            }
        }
        if self.changed {
            self.publish();
        }
    }

    /// Takes in what feeds left since the last time.
    fn drain(&mut self) {
        let now = self.clock.now();
        let registries = Arc::clone(&self.shared.registries);
        let network = super::lost_links::look(&registries, &self.shared.generation.load(), &self.engine);
        registries.drain_after(network, &mut |change| {
            let taken = self.engine.change(change, now);
            match &taken {
                // They were right by the network of then, and whoever declared them was told so.
                Err(error @ (ModelError::Chains(_) | ModelError::ChainsOwned)) => {
                    tracing::warn!(%error, "middleboxes or chains of a feed were dropped: the cluster has changed since they were taken");
                }
                Err(error) => tracing::debug!(%error, "a fact was refused by the model"),
                Ok(_) => {}
            }
            taken
        });
        self.effects(None, Box::new(|_| ()));
    }

    pub(super) fn publish(&mut self) {
        let began = Instant::now();
        self.changed = false;
        let next = self.engine.publish(self.clock.now());
        // Applied facts move routes: who installs them is told now, not with the next tick.
        self.effects(None, Box::new(|_| ()));
        let Some(next) = next else { return };
        let version = next.snapshot.version.0;
        self.follow_paths(&next);
        let usable = next.snapshot.state.iter().any(|state| state.usable());
        self.shared.ready.send_if_modified(|ready| ready.nodes(usable));
        self.shared.registries.observe(&next.snapshot);
        self.shared.registries.observe_chains(self.engine.owns_chains(), &next);
        let old = self.shared.generation.swap(next);
        self.retired.retain(|generation| Arc::strong_count(generation) > 1);
        if self.retired.len() < RETIRED_MAX {
            self.retired.push(old);
        }
        self.shared.metrics.published(began.elapsed(), version);
    }

    /// Lets the pool bring the path table up to date while there are routes: until it has, paths are looked for pair by
    /// pair.
    fn follow_paths(&self, next: &Generation) {
        let topology = &next.snapshot.topology;
        if topology.are_paths_due() && !next.flows.jobs.is_empty() {
            let (topology, ready) = (Arc::clone(topology), self.shared.ready.subscribe());
            self.pool.run_newest(move || {
                topology.build_paths(&mut || ready.borrow().stopping);
            });
        }
    }

    fn note_health(&self) {
        let healthy = self.pending_batches.healthy();
        let placers = !self.pool.stuck().all();
        self.shared.ready.send_if_modified(|ready| ready.store(healthy) | ready.placers(placers));
    }
}

fn answer_reply(
    answer: Arc<Answer>,
    dispatcher: Option<Box<DetachedDispatcher>>,
    reply: Reply<Result<Committed, Refusal>>,
) -> super::pending_batches::DurabilityCallback {
    let began = Instant::now();
    Box::new(move |result| {
        let _ = reply.send(result.map(|()| Committed::Answer { answer, journal: began..Instant::now(), dispatcher }));
    })
}

/// Decisions whose hints wait for the journal on their way to Follow streams.
fn promised(out: &[Effect]) -> Vec<DecisionId> {
    let id = |effect: &Effect| match effect {
        Effect::Hints { answer, .. } => Some(answer.decision.id),
        _ => None,
    };
    out.iter().filter_map(id).collect()
}

pub(super) fn store_failed() -> Refusal {
    Refusal::Unavailable { message: "the journal can't be written".to_owned(), retry_after: STORE_RETRY }
}
