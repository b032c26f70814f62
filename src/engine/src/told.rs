//! What task events do: leases confirmed or freed, history fed, attempts ended.

use super::adherence::ToldOf;
use super::binding;
use super::dispatching;
use super::effects::{Counter, Effect};
use super::engine::Engine;
use super::event::{TaskEvent, TaskWhat};
use super::history::{LearntRun, Sample};
use super::lease::Lease;
use super::monitor;
use super::refusal::Refusal;
use hintd_model::cluster::Source;
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
        self.dispatched_event(&event, now);
        match &event.what {
            TaskWhat::Ready { .. } => {} // for dispatchers; leases and history know nothing of tasks that have not run
            TaskWhat::Allocated { host, container, lease } => {
                self.allocated(&event, host, *container, *lease, now)?;
            }
            TaskWhat::Finished { duration, input, output, failed, .. } => {
                self.task_ended(&event, now);
                if *failed && self.arrivals.failed(event.attempt, &event.task) {
                    self.changed = true;
                }
                let sample = Sample { duration: *duration, input: *input, output: *output };
                if !*failed {
                    self.run_book.finished(event.attempt, &event.group, (*duration, *input, *output));
                }
                if let (false, Some(key)) = (*failed, self.key_of(&event)) {
                    let gone = self.history.finished(&key, &event.group, sample, self.history_limits(), now);
                    self.effects.count(Counter::HistorySamples, 1);
                    self.effects.count(Counter::HistoryEvicted, gone.len() as u64);
                    self.changed = true;
                }
            }
            TaskWhat::Done { failed } => self.done(&event, *failed, now),
        }
        let heard = self.model.apply(hintd_model::cluster::Change::Heard(Source::Events), now);
        debug_assert!(heard.is_ok(), "that a source spoke can't be refused");
        Ok(())
    }

    /// Takes in what a history server tells of a finished run of a recurring job; false: it, or a later one, was told
    /// before.
    pub fn learnt(&mut self, key: &Arc<str>, run: &LearntRun, now: Timestamp) -> bool {
        if let Some(whole) = run.whole {
            let ops = self.run_book.learnt(key, whole);
            self.effects.journal.extend(ops);
        }
        let Some(gone) = self.history.learnt(key, run, self.history_limits(), now) else { return false };
        self.effects.count(Counter::HistoryRuns, 1);
        self.effects.count(Counter::HistoryEvicted, gone.len() as u64);
        self.effects.journal.extend(self.history.write());
        self.changed = true;
        true
    }

    /// A task's end ends the lease that its container confirmed, where the node's reports name no containers: nobody else
    /// will tell that the room is free. Where they do, the container is on its way to be seen, and may not take another's;
    /// where the node has not reported since the start, it may name them yet.
    fn task_ended(&mut self, event: &TaskEvent, now: Timestamp) {
        let found = self.arrivals.container(event.attempt, &event.task).filter(|_| !event.task.is_empty());
        let Some(container) = found else { return };
        let mine = self.ledger.of_attempt(event.attempt).find(|lease| lease.confirmed == Some(container));
        let Some((id, node)) = mine.map(|lease| (lease.id, lease.node)) else { return };
        let is = |known: &[bool]| known.get(node.at()).copied().unwrap_or(false);
        if is(&self.reported) && !is(&self.naming) {
            self.end_met_lease(id, now);
        }
    }

    fn key_of(&self, event: &TaskEvent) -> Option<Arc<str>> {
        let remembered = || self.attempts.get(event.attempt).and_then(|known| known.recurring_key().cloned());
        event.recurring_key.clone().or_else(remembered)
    }

    fn done(&mut self, event: &TaskEvent, failed: bool, now: Timestamp) {
        if let (false, Some(key)) = (failed, self.key_of(event)) {
            if let Some(known) = self.attempts.get(event.attempt) {
                let end = self.run_book.ended(event.attempt, &key, known);
                self.effects.journal.extend(end.ops);
                if end.left_out {
                    self.effects.count(Counter::RunsLeftOut, 1);
                    let application = event.attempt.application;
                    self.effects.out.push(Effect::RunLeftOut { key: Arc::clone(&key), application });
                }
            }
            let requests = self.attempts.get(event.attempt).map(|known| known.requests.clone()).unwrap_or_default();
            // What was placed anew is a part of what was asked first.
            let whole = requests.iter().filter(|request| {
                let id = &request.id;
                monitor::original(id) == *id && dispatching::late_of(id).is_none()
            });
            let gone = self.history.ended(&key, whole, self.history_limits(), now);
            self.effects.count(Counter::HistoryEvicted, gone.len() as u64);
            self.effects.journal.extend(self.history.write());
        }
        for earlier in self.attempts.earlier(event.attempt) {
            self.end_attempt(earlier, now);
        }
        self.end_attempt(event.attempt, now);
        self.changed = true;
    }

    fn allocated(
        &mut self,
        event: &TaskEvent,
        host: &HostName,
        container: ContainerId,
        lease: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let (attempt, group) = (event.attempt, &event.group);
        if container.attempt != attempt {
            let message = format!("{container} is not of {attempt}");
            return Err(Refusal::Invalid { field: "container_id".to_owned(), message });
        }
        let statics = self.model.statics();
        let unknown = || Refusal::Unknown { what: "host", name: host.to_string(), nearest: None };
        let node = statics.find(host.as_str()).ok_or_else(unknown)?;
        let host = statics.host[node.at()].clone();
        if node.at() >= self.snapshot.nodes() {
            self.settle(now); // policies that are told of it look it up there
        }
        let inferred = if group.is_empty() { self.group_awaited(attempt, node) } else { None };
        let group = inferred.as_ref().unwrap_or(group);
        // Of applications that never asked, too: maps that know their data's nodes are nobody's to hint.
        let limits = self.arrival_limits();
        if self.arrivals.came(container, (group, &event.task), node, limits, now) {
            self.changed = true;
        }
        let Some(known) = self.attempts.get_mut(attempt) else { return Ok(()) };
        if !known.allocated(container) {
            return Ok(());
        }
        let found = self.lease_of(container, node, group, lease).map(|lease| (lease.id, lease.node == node));
        let told = ToldOf { container, node, group, lease: found.map(|(id, _)| id), at: event.at };
        if self.hint_told(&told) {
            return Ok(());
        }
        let task = found.and_then(|(id, _)| self.dispatched_by(id));
        match found {
            Some((id, true)) => {
                let kinds = Arc::clone(&self.snapshot.kinds);
                let expires = now.plus(self.settings.lasts(true));
                if let Some(lease) = self.ledger.confirm(id, container, expires) {
                    self.effects.journal.push(lease.put(&host, &kinds));
                }
            }
            Some((id, false)) => self.end_met_lease(id, now),
            None => {}
        }
        // Where the lease is a placer's, the container is no waiting task's.
        if found.is_none() || task.is_some() {
            self.dispatched_allocated((group, &event.task), node, container, task, now);
        }
        Ok(())
    }

    /// The lease that a container was allocated by: the one that is named, else the likeliest, on its node first.
    fn lease_of(&self, container: ContainerId, node: NodeIdx, group: &str, named: Option<LeaseId>) -> Option<&Lease> {
        let mine = |lease: &&Lease| lease.attempt == container.attempt;
        match named {
            Some(id) => self.ledger.get(id).filter(mine),
            None if self.is_running(container) => None, // its lease was bound by the heartbeat that showed it
            None => {
                let here = binding::likely(self.ledger.on_node(node).filter(mine), group);
                here.or_else(|| binding::likely(self.ledger.of_attempt(container.attempt), group))
            }
        }
    }

    /// The group of a container whose teller knows none: that of a lease which waits for one there, else the only one of
    /// which leases wait at all.
    fn group_awaited(&self, attempt: AttemptId, node: NodeIdx) -> Option<Arc<str>> {
        let waits = |lease: &&Lease| lease.attempt == attempt && lease.confirmed.is_none();
        if let Some(here) = self.ledger.on_node(node).find(waits) {
            return Some(Arc::clone(&here.group));
        }
        let mut groups = self.ledger.of_attempt(attempt).filter(waits).map(|lease| &lease.group);
        let first = groups.next()?;
        groups.all(|group| group == first).then(|| Arc::clone(first))
    }

    pub(super) fn is_running(&self, container: ContainerId) -> bool {
        let application = self.snapshot.applications.get(&container.attempt);
        application.is_some_and(|application| application.containers.contains_key(&container))
    }
}
