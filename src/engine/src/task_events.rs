//! What task events do: leases confirmed or freed, history fed, attempts ended.

use super::adherence::ToldOf;
use super::arrivals::ArrivalLimits;
use super::attempt_end::AttemptHandler;
use super::attempts::{Attempt, Attempts};
use super::binding;
use super::dispatching;
use super::effects::{Counter, Effect, Output};
use super::engine::Engine;
use super::event::{TaskEvent, TaskWhat};
use super::fact_consequences::NodeReports;
use super::history::{History, HistoryLimits, LearnedRun, Sample};
use super::lease::Lease;
use super::monitor;
use super::plans::RunTracker;
use super::proof::Proof;
use super::refusal::Refusal;
use super::settings::EngineSettings;
use hintd_model::units::{AttemptId, ContainerId, HostName, LeaseId, NodeIdx, Timestamp};
use std::sync::Arc;

impl Engine {
    /// Takes a task event in. Events may come twice (Follow and the feed carry the same), late, or for attempts
    /// that were never hinted: what means nothing changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for an allocation on a host that was never named; [`Refusal::Invalid`] for one of
    /// another attempt's container.
    pub fn event(&mut self, event: TaskEvent, now: Timestamp) -> Result<(), Refusal> {
        self.tell(event, &Proof::Trusted, now).map(drop)
    }

    /// As [`Self::event`], for a teller that is to show that it may tell of the attempt. False: of a container that was told of
    /// before.
    ///
    /// # Errors
    /// [`Refusal::NoToken`] and [`Refusal::BadToken`] as well.
    pub fn tell(&mut self, event: TaskEvent, proof: &Proof, now: Timestamp) -> Result<bool, Refusal> {
        self.may_tell(event.attempt, proof)?;
        self.attempt_alive(event.attempt, now);
        self.dispatch_handler().event(&event, now);
        let mut is_new = true;
        match &event.what {
            TaskWhat::Ready { .. } => {} // for dispatchers; leases and history know nothing of tasks that have not run
            TaskWhat::Allocated { host, container, lease } => {
                if container.attempt != event.attempt {
                    let message = format!("{container} is not of {}", event.attempt);
                    return Err(Refusal::Invalid { field: "container_id".to_owned(), message });
                }
                let (node, host) = self.node_of(host, now)?;
                let of = Allocation { node, host, container: *container, lease: *lease };
                is_new = self.event_handler().allocated(&event, &of, now);
            }
            TaskWhat::Finished { duration, input, output, failed, .. } => {
                let sample = Sample { duration: *duration, input: *input, output: *output };
                self.event_handler().finished(&event, sample, *failed, now);
            }
            TaskWhat::Done { failed } => self.event_handler().done(&event, (*failed, proof), now),
        }
        self.heard_of_events(now);
        Ok(is_new)
    }

    /// Takes in what a history server tells of a finished run of a recurring job; false: it, or a later one, was told
    /// before.
    pub fn learnt(&mut self, key: &Arc<str>, run: &LearnedRun, now: Timestamp) -> bool {
        let application = run.whole.and_then(|whole| whole.application);
        let mut attempts = self.attempt_handler();
        if let Some(attempt) = application.and_then(|of| attempts.arrivals.last_attempt(of)) {
            attempts.note_class(attempt); // it is not known to be over yet
        }
        self.history_handler().learnt(key, run, now)
    }
}

/// Where a container was allocated.
struct Allocation {
    node: NodeIdx,
    host: HostName,
    container: ContainerId,
    /// The lease that its application names.
    lease: Option<LeaseId>,
}

/// What runs of recurring jobs leave behind. Writes history, the book of runs and what is to be journalled and counted;
/// reads attempts and the settings.
pub(crate) struct HistoryHandler<'e> {
    pub(crate) history: &'e mut History,
    pub(crate) run_tracker: &'e mut RunTracker,
    pub(crate) attempts: &'e Attempts,
    pub(crate) settings: &'e EngineSettings,
    pub(crate) out: &'e mut Output,
}

impl HistoryHandler<'_> {
    const fn limits(&self) -> HistoryLimits {
        HistoryLimits { keys: self.settings.history_keys, samples: self.settings.history_samples }
    }

    fn key_of(&self, event: &TaskEvent) -> Option<Arc<str>> {
        let remembered = || self.attempts.get(event.attempt).and_then(|known| known.recurring_key().cloned());
        event.recurring_key.clone().or_else(remembered)
    }

    /// A task finished well.
    fn sampled(&mut self, event: &TaskEvent, sample: Sample, now: Timestamp) {
        self.run_tracker.finished(event.attempt, &event.group, sample);
        let Some(key) = self.key_of(event) else { return };
        let gone = self.history.finished(&key, &event.group, sample, self.limits(), now);
        self.out.effects.count(Counter::HistorySamples, 1);
        self.out.effects.count(Counter::HistoryEvicted, gone.len() as u64);
        self.out.changed = true;
    }

    fn learnt(&mut self, key: &Arc<str>, run: &LearnedRun, now: Timestamp) -> bool {
        if let Some(whole) = run.whole {
            let ops = self.run_tracker.learnt(key, whole);
            self.out.effects.journal.extend(ops);
        }
        let Some(gone) = self.history.learnt(key, run, self.limits(), now) else { return false };
        self.out.effects.count(Counter::HistoryRuns, 1);
        self.out.effects.count(Counter::HistoryEvicted, gone.len() as u64);
        self.out.effects.journal.extend(self.history.write());
        self.out.changed = true;
        true
    }

    /// A run ended well.
    fn ended(&mut self, event: &TaskEvent, now: Timestamp) {
        let Some(key) = self.key_of(event) else { return };
        let known = self.attempts.get(event.attempt);
        let mut last = None;
        if let Some(known) = known {
            let end = self.run_tracker.ended(event.attempt, &key, known);
            last = end.run;
            self.out.effects.journal.extend(end.ops);
            if end.left_out {
                self.out.effects.count(Counter::RunsLeftOut, 1);
                let application = event.attempt.application;
                self.out.effects.out.push(Effect::RunLeftOut { key: Arc::clone(&key), application });
            }
        }
        // What was placed anew is a part of what was asked first.
        let whole = known.into_iter().flat_map(|known| &known.requests).filter(|request| {
            let id = &request.id;
            monitor::original(id) == *id && dispatching::late_of(id).is_none()
        });
        let gone = self.history.ended(&key, (whole, last), self.limits(), now);
        self.out.effects.count(Counter::HistoryEvicted, gone.len() as u64);
        self.out.effects.journal.extend(self.history.write());
    }
}

/// Task events, and what they mean to leases, attempts and history. Beside what [`AttemptHandler`] borrows it writes the
/// history, and reads how nodes have reported.
pub(crate) struct EventHandler<'e> {
    pub(crate) attempts: AttemptHandler<'e>,
    pub(crate) history: &'e mut History,
    pub(crate) reports: &'e NodeReports,
}

impl EventHandler<'_> {
    fn history(&mut self) -> HistoryHandler<'_> {
        HistoryHandler {
            history: self.history,
            run_tracker: self.attempts.run_tracker,
            attempts: self.attempts.known,
            settings: self.attempts.leases.settings,
            out: self.attempts.leases.out,
        }
    }

    fn finished(&mut self, event: &TaskEvent, sample: Sample, failed: bool, now: Timestamp) {
        self.free_lease(event, now);
        let arrivals = &mut *self.attempts.arrivals;
        let changed = match failed {
            true => arrivals.failed(event.attempt, &event.task),
            // Of a task without a name nobody knows which one ended.
            false => arrivals
                .container(event.attempt, &event.task)
                .is_some_and(|container| !event.task.is_empty() && arrivals.ended(container)),
        };
        self.attempts.leases.out.changed |= changed;
        if !failed {
            self.history().sampled(event, sample, now);
        }
    }

    /// A task's end ends the lease that its container confirmed, where the node's reports name no containers: nobody else
    /// will tell that the room is free. Where they do, the container is on its way to be seen, and may not take another's;
    /// where the node has not reported since the start, it may name them yet.
    fn free_lease(&mut self, event: &TaskEvent, now: Timestamp) {
        let found = self.attempts.arrivals.container(event.attempt, &event.task).filter(|_| !event.task.is_empty());
        let Some(container) = found else { return };
        let mine =
            self.attempts.leases.ledger.of_attempt(event.attempt).find(|lease| lease.confirmed == Some(container));
        let Some((id, node)) = mine.map(|lease| (lease.id, lease.node)) else { return };
        if self.reports.names_none(node) {
            self.attempts.leases.end_met(id, now);
        }
    }

    fn done(&mut self, event: &TaskEvent, (failed, proof): (bool, &Proof), now: Timestamp) {
        if !failed {
            self.attempts.note_class(event.attempt);
            self.history().ended(event, now);
        }
        // A number above the victim's own would end it.
        let supersedes = |known: &Attempt| known.secrets.supersedes;
        if *proof == Proof::Trusted || self.attempts.known.get(event.attempt).is_some_and(supersedes) {
            self.attempts.end_earlier(event.attempt, now);
        }
        self.attempts.end(event.attempt, now);
        self.attempts.leases.out.changed = true;
    }

    /// False: the container was told of before.
    fn allocated(&mut self, event: &TaskEvent, of: &Allocation, now: Timestamp) -> bool {
        let Allocation { node, container, .. } = *of;
        let inferred = if event.group.is_empty() { self.group_awaited(event.attempt, node) } else { None };
        let group = inferred.as_ref().unwrap_or(&event.group);
        let is_new = self.came(container, (group, &event.task), node, now);
        if let Some(key) = self.history().key_of(event) {
            self.attempts.arrivals.recurs(event.attempt, &key);
        }
        self.attempts.leases.out.changed |= is_new;
        let Some(known) = self.attempts.known.get_mut(event.attempt) else { return is_new };
        if !known.allocated(container) {
            return is_new;
        }
        // Where a heartbeat showed it and bound a lease by it, it has none any more.
        let bound = !known.was_astray(container) && binding::is_running(self.attempts.leases.snapshot, container);
        let found = self.lease_of(container, node, group, of.lease, bound).map(|lease| (lease.id, lease.node == node));
        let told = ToldOf { container, node, group, lease: found.map(|(id, _)| id), at: event.at };
        let leases = &mut self.attempts.leases;
        if leases.adherence().told(&told) {
            return is_new;
        }
        let task = found.and_then(|(id, _)| leases.dispatch().take_lease(id));
        match found {
            Some((id, true)) => leases.confirm(id, container, &of.host, now),
            Some((id, false)) => leases.end_met(id, now),
            None => {}
        }
        // Where the lease is a placer's, the container is no waiting task's.
        if found.is_none() || task.is_some() {
            leases.dispatch().allocated((group, &event.task), node, container, task, now);
        }
        is_new
    }

    /// Notes where a container came; of applications that never asked, too: maps that know their data's nodes are nobody's
    /// to hint. False: that was told before.
    fn came(&mut self, container: ContainerId, of: (&Arc<str>, &Arc<str>), node: NodeIdx, now: Timestamp) -> bool {
        let settings = self.attempts.leases.settings;
        let limits = ArrivalLimits { attempts: settings.attempts_max, containers: settings.containers_seen };
        self.attempts.arrivals.came(container, of, node, limits, now)
    }

    /// The lease that a container was allocated by: the one that is named, else the likeliest, on its node first.
    fn lease_of(
        &self,
        container: ContainerId,
        node: NodeIdx,
        group: &str,
        named: Option<LeaseId>,
        bound: bool,
    ) -> Option<&Lease> {
        let mine = |lease: &&Lease| lease.attempt == container.attempt;
        match named {
            Some(id) => self.attempts.leases.ledger.get(id).filter(mine),
            None if bound => None,
            None => {
                let here = binding::likely(self.attempts.leases.ledger.on_node(node).filter(mine), group);
                here.or_else(|| binding::likely(self.attempts.leases.ledger.of_attempt(container.attempt), group))
            }
        }
    }

    /// The group of a container whose teller knows none: that of a lease which waits for one there, else the only one of
    /// which leases wait at all.
    fn group_awaited(&self, attempt: AttemptId, node: NodeIdx) -> Option<Arc<str>> {
        let waits = |lease: &&Lease| lease.attempt == attempt && lease.confirmed.is_none();
        if let Some(here) = self.attempts.leases.ledger.on_node(node).find(waits) {
            return Some(Arc::clone(&here.group));
        }
        let mut groups = self.attempts.leases.ledger.of_attempt(attempt).filter(waits).map(|lease| &lease.group);
        let first = groups.next()?;
        groups.all(|group| group == first).then(|| Arc::clone(first))
    }
}
