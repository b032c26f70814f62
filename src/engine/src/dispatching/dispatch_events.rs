//! What policies hear of tasks: from events of their applications, reports of nodes, and ends of leases.

use super::group::Task;
use super::{DispatchHandler, DispatchedTask};
use crate::binding;
use crate::event::{TaskEvent, TaskWhat};
use crate::history::Sample;
use crate::lease::{Lease, LeaseEnd};
use hintd_model::cluster::ReportedContainer;
use hintd_model::units::{AttemptId, ContainerId, LeaseId, Micros, NodeIdx, SchedulerKey, Timestamp};
use std::sync::Arc;

/// A container that its node no longer reports is taken for finished after so long: by then its application has said how.
const GRACE: Micros = Micros::from_secs(2);
/// An attempt that has no container and lets its leases expire so many times in a row is taken for gone.
const UNUSED_MAX: u32 = 8;

impl DispatchHandler<'_> {
    /// A lease ended, or was never promised (`None`).
    pub(crate) fn lease_ended(&mut self, lease: &Lease, end: Option<LeaseEnd>, now: Timestamp) {
        let Some((name, task)) = self.dispatching.by_lease.remove(&lease.id) else {
            return self.never_seen(lease, end, now);
        };
        let max_wait = self.settings.dispatch.max_wait;
        let view = self.view(now);
        let Some(dispatcher) = self.dispatching.dispatchers.get_mut(&name) else { return };
        match end {
            Some(LeaseEnd::Bound) => {
                dispatcher.runs(&task, lease.node, None, &view);
                self.dispatching.unused.remove(&lease.attempt);
            }
            // Its application wants it no more.
            Some(LeaseEnd::Released) => dispatcher.finished(&task, None, false, max_wait, &view),
            Some(LeaseEnd::Withdrawn) | None => dispatcher.requeue(&task, max_wait, &view),
            Some(LeaseEnd::Expired) => {
                dispatcher.requeue(&task, max_wait, &view);
                self.note_unused(lease.attempt, now);
            }
        }
    }

    /// A container that its application spoke of and no node ever named does not run any more: nothing else would end it.
    fn never_seen(&mut self, lease: &Lease, end: Option<LeaseEnd>, now: Timestamp) {
        let Some(container) = lease.confirmed.filter(|_| end == Some(LeaseEnd::Expired)) else { return };
        if self.dispatching.by_container.contains_key(&container) && !binding::is_running(self.snapshot, container) {
            self.dispatching.ending.insert((now, container));
        }
    }

    /// Leases that were granted together expire together, and count once.
    fn note_unused(&mut self, attempt: AttemptId, now: Timestamp) {
        let (times, last) = self.dispatching.unused.entry(attempt).or_default();
        if now.since(*last) < self.settings.lease_ttl {
            return;
        }
        (*times, *last) = (*times + 1, now);
        if *times >= UNUSED_MAX && self.snapshot.applications.get(&attempt).is_none() {
            self.done(attempt, now);
        }
    }

    /// The decision of a request was never promised: its groups do not wait.
    pub(crate) fn undone(&mut self, attempt: AttemptId, request: &str, now: Timestamp) {
        let view = self.view(now);
        for dispatcher in self.dispatching.dispatchers.values_mut() {
            dispatcher.forget(attempt, request, &view);
        }
    }

    /// The application is over.
    pub(crate) fn done(&mut self, attempt: AttemptId, now: Timestamp) {
        let view = self.view(now);
        let mut known = false;
        for dispatcher in self.dispatching.dispatchers.values_mut() {
            known |= dispatcher.done(attempt, &view);
        }
        if known {
            self.dispatching.by_lease.retain(|_, (_, task)| task.attempt != attempt);
            self.dispatching.by_container.retain(|container, _| container.attempt != attempt);
            self.dispatching.ending.retain(|(_, container)| container.attempt != attempt);
            self.dispatching.unused.remove(&attempt);
        }
    }

    /// The task that a lease is for, once its container is known: the lease says nothing of it from now on.
    pub(crate) fn take_lease(&mut self, lease: LeaseId) -> Option<DispatchedTask> {
        self.dispatching.by_lease.remove(&lease)
    }

    /// A container appeared on a node; `lease`: it ends this one.
    pub(crate) fn appeared(
        &mut self,
        node: NodeIdx,
        container: &ReportedContainer,
        lease: Option<LeaseId>,
        now: Timestamp,
    ) {
        if self.dispatching.by_container.contains_key(&container.id) {
            return;
        }
        let owned = match lease {
            Some(lease) => self.take_lease(lease),
            None => self.waiting_of_key(container.id.attempt, container.key, node),
        };
        self.runs(owned, node, container.id, now);
    }

    /// Containers that a node no longer reports.
    pub(crate) fn vanished(&mut self, containers: &[ReportedContainer], now: Timestamp) {
        for container in containers.iter().filter(|gone| self.dispatching.by_container.contains_key(&gone.id)) {
            self.dispatching.ending.insert((now.plus(GRACE), container.id));
        }
    }

    /// A container is gone with its node; whether its task waits again, and so is not to be placed otherwise.
    pub(crate) fn lost(&mut self, container: ContainerId, now: Timestamp) -> bool {
        let Some((name, task)) = self.dispatching.by_container.remove(&container) else { return false };
        let max_wait = self.settings.dispatch.max_wait;
        let view = self.view(now);
        let Some(dispatcher) = self.dispatching.dispatchers.get_mut(&name) else { return false };
        let runs =
            matches!(dispatcher.get(&task), Some(Task::Running { container: Some(id), .. }) if id == container.id);
        if runs {
            dispatcher.requeue(&task, max_wait, &view);
        }
        runs
    }

    /// An application said where a container is; `owned`: the task that its lease was for.
    pub(crate) fn allocated(
        &mut self,
        event: (&Arc<str>, &Arc<str>),
        node: NodeIdx,
        container: ContainerId,
        owned: Option<DispatchedTask>,
        now: Timestamp,
    ) {
        let (group, task_name) = event;
        let max_wait = self.settings.dispatch.max_wait;
        let seen = self.dispatching.by_container.get(&container).cloned();
        let owned = match (owned, seen) {
            (Some(owned), Some((name, other))) if owned.1 != other => {
                // A report was faster and had to guess; its task goes on waiting.
                let view = self.view(now);
                if let Some(dispatcher) = self.dispatching.dispatchers.get_mut(&name) {
                    dispatcher.requeue(&other, max_wait, &view);
                }
                Some(owned)
            }
            (owned, seen) => owned.or(seen).or_else(|| self.waiting_of_group(container.attempt, group, node)),
        };
        if let Some((name, task)) = &owned
            && let Some(dispatcher) = self.dispatching.dispatchers.get_mut(name)
        {
            dispatcher.call(task, task_name);
        }
        self.runs(owned, node, container, now);
    }

    /// What a task event tells beyond allocations.
    pub(crate) fn event(&mut self, event: &TaskEvent, now: Timestamp) {
        let max_wait = self.settings.dispatch.max_wait;
        match &event.what {
            TaskWhat::Ready { .. } => {
                let Some((name, task)) = self.named(event.attempt, &event.group, &event.task) else { return };
                let view = self.view(now);
                if let Some(dispatcher) = self.dispatching.dispatchers.get_mut(&name) {
                    dispatcher.lost(&task, max_wait, &view);
                }
            }
            TaskWhat::Finished { host, duration, input, output, failed } => {
                let node = self.snapshot.statics.find(host.as_str());
                let named = self.named(event.attempt, &event.group, &event.task);
                let running = || self.running_on(event.attempt, &event.group, node?);
                let Some((name, task)) = named.or_else(running) else { return };
                let view = self.view(now);
                if let Some(dispatcher) = self.dispatching.dispatchers.get_mut(&name) {
                    dispatcher.call(&task, &event.task); // told again, it is the same task
                    let sample = Sample { duration: *duration, input: *input, output: *output };
                    dispatcher.finished(&task, Some(sample), *failed, max_wait, &view);
                }
            }
            TaskWhat::Allocated { .. } | TaskWhat::Done { .. } => {} // the engine says what came of them
        }
    }

    /// Tasks whose containers went unseen for too long have finished, nobody knows how.
    pub(super) fn end_unseen(&mut self, now: Timestamp) {
        while let Some(&(at, container)) = self.dispatching.ending.first().filter(|(at, _)| *at <= now) {
            self.dispatching.ending.remove(&(at, container));
            let Some((name, task)) = self.dispatching.by_container.remove(&container) else { continue };
            let max_wait = self.settings.dispatch.max_wait;
            let view = self.view(now);
            let Some(dispatcher) = self.dispatching.dispatchers.get_mut(&name) else { continue };
            if matches!(dispatcher.get(&task), Some(Task::Running { container: Some(id), .. }) if id == container.id) {
                dispatcher.finished(&task, None, false, max_wait, &view);
            }
        }
    }

    fn runs(&mut self, owned: Option<DispatchedTask>, node: NodeIdx, container: ContainerId, now: Timestamp) {
        let Some((name, task)) = owned else { return };
        let view = self.view(now);
        let Some(dispatcher) = self.dispatching.dispatchers.get_mut(&name) else { return };
        dispatcher.runs(&task, node, Some(container), &view);
        self.dispatching.by_container.insert(container, (name, task));
        self.dispatching.unused.remove(&container.attempt);
    }

    /// A waiting task that a container nobody hinted is taken for.
    fn waiting_of_key(&self, attempt: AttemptId, key: SchedulerKey, node: NodeIdx) -> Option<DispatchedTask> {
        self.find(attempt, |group| group.request.groups[group.at].key == key && group.waiting > 0, node)
    }

    fn waiting_of_group(&self, attempt: AttemptId, name: &str, node: NodeIdx) -> Option<DispatchedTask> {
        self.find(attempt, |group| *group.asked == *name && group.waiting > 0, node)
    }

    fn find(
        &self,
        attempt: AttemptId,
        is: impl Fn(&super::group::Group) -> bool,
        node: NodeIdx,
    ) -> Option<DispatchedTask> {
        self.dispatching.dispatchers.iter().find_map(|(name, dispatcher)| {
            let (_, group) = dispatcher.of_attempt(attempt).find(|(_, group)| is(group))?;
            let index = group.choose(node, 1).first().copied()?;
            Some((Arc::clone(name), group.task(index)))
        })
    }

    fn named(&self, attempt: AttemptId, asked: &str, task: &str) -> Option<DispatchedTask> {
        self.dispatching.dispatchers.iter().find_map(|(name, dispatcher)| {
            let groups = dispatcher.of_attempt(attempt).filter(|(_, group)| *group.asked == *asked);
            let mut found = groups.filter_map(|(_, group)| Some(group.task(*group.names.get(task)?)));
            Some((Arc::clone(name), found.next()?))
        })
    }

    fn running_on(&self, attempt: AttemptId, asked: &str, node: NodeIdx) -> Option<DispatchedTask> {
        self.dispatching.dispatchers.iter().find_map(|(name, dispatcher)| {
            let groups = dispatcher.of_attempt(attempt).filter(|(_, group)| *group.asked == *asked);
            let mut found = groups.filter_map(|(_, group)| Some(group.task(group.running_on(node)?)));
            Some((Arc::clone(name), found.next()?))
        })
    }
}
