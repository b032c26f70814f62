//! Events into the pool.

use super::inputs::{NodeLocation, Waiting};
use super::job::{Group, Job, JobRank, Kind};
use super::{JobIdx, Locality, Pool, Task, UserIdx};
use crate::dispatch::{DispatchEvent, TaskRef, View, WaitingGroup};
use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, Bytes, NodeIdx};
use std::sync::Arc;

/// What an event changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing of the pool.
    Nothing,
    /// A group of the job waits; the job may be new.
    Waiting {
        /// The job.
        job: JobIdx,
        /// Whether it was not there before.
        new: bool,
    },
    /// A waiting task runs.
    Launched {
        /// Which.
        task: Task,
        /// Where.
        node: NodeIdx,
        /// How far it reads.
        locality: Locality,
    },
    /// A running task ended well.
    Ended {
        /// Which.
        task: Task,
        /// Where.
        node: NodeIdx,
    },
    /// A running task failed and waits again.
    Failed {
        /// Which.
        task: Task,
        /// Where.
        node: NodeIdx,
    },
    /// An ended task waits again.
    Lost {
        /// Which.
        task: Task,
    },
    /// The job is gone; its row may be given to another.
    Gone {
        /// The row it had.
        job: JobIdx,
        /// Whose it was.
        user: UserIdx,
    },
}

impl Pool {
    /// Takes the event in.
    pub fn observe(&mut self, event: &DispatchEvent, view: &View<'_>) -> Change {
        match event {
            DispatchEvent::Waiting(group) => self.waiting(group, view),
            DispatchEvent::Launched { task, node } => self.launched(task, *node, view),
            DispatchEvent::Finished { task, node, input, output, failed, .. } => {
                if *failed {
                    self.failed(task, *node)
                } else {
                    self.ended(task, *node, *input, *output)
                }
            }
            DispatchEvent::Lost(task) => self.lost(task),
            DispatchEvent::Done(attempt) => self.done(*attempt),
            DispatchEvent::RackUse { .. }
            | DispatchEvent::Run { .. }
            | DispatchEvent::Recurs { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Plan(_) => Change::Nothing,
        }
    }

    /// Size of the task's container, if it is there and waits.
    #[must_use]
    pub fn size_if_waiting(&self, task: &TaskRef) -> Option<Resource> {
        let task = self.task_of(task)?;
        let group = self.group(task);
        group.waiting.waits(task.index).then_some(group.size)
    }

    /// Whether the task waits.
    #[must_use]
    pub fn waits(&self, task: Task) -> bool {
        self.group(task).waiting.waits(task.index)
    }

    /// Waiting tasks of the task's group.
    #[must_use]
    pub fn waiting_in(&self, task: Task) -> u32 {
        self.group(task).waiting.left()
    }

    fn waiting(&mut self, told: &WaitingGroup, view: &View<'_>) -> Change {
        let (job, new) = self.intern(told);
        let kind = match &*told.role {
            "map" => Kind::Map,
            "reduce" => Kind::Reduce,
            _ => Kind::Other,
        };
        if kind == Kind::Reduce {
            self.smallest_reduce_mb = self.smallest_reduce_mb.min(told.size.memory_mb());
        }
        let old = self.job(job).groups.iter().position(|group| group.name == told.group);
        if let Some(at) = old {
            self.forget_group(job, at);
        }
        let spot = |node| spot_of(view, node);
        let waiting = Waiting::new(told.count, &told.inputs, kind != Kind::Reduce, spot);
        let group = Group::new(Arc::clone(&told.group), kind, told.size, waiting);
        let user = self.job(job).user;
        if kind != Kind::Reduce {
            for (node, count) in group.waiting.local_counts() {
                self.users.count_local(user, node, i64::from(count));
            }
        }
        self.change(job, false, |row| {
            match kind {
                Kind::Map => {
                    row.maps += told.count;
                    row.input = row.input.saturating_add(group.waiting.input_of_all());
                    row.tell_ratio(told.output_ratio);
                }
                Kind::Reduce => row.reduces += told.count,
                Kind::Other => {}
            }
            match old {
                Some(at) => row.groups[at] = group,
                None => row.groups.push(group),
            }
        });
        Change::Waiting { job, new }
    }

    /// The attempt's job; a user is told with the first group.
    fn intern(&mut self, told: &WaitingGroup) -> (JobIdx, bool) {
        if let Some(job) = self.find(told.attempt) {
            return (job, false);
        }
        let user = self.users.intern(&told.user);
        let row = Job::new(told.attempt, user, self.submitted, self.slow_start);
        self.submitted += 1;
        let job = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            JobIdx(u32::try_from(self.jobs.len() - 1).expect("jobs are far below 2^32"))
        });
        self.jobs[job.at()] = Some(row);
        self.by_attempt.insert(told.attempt, job);
        self.remember(told.attempt, job);
        (job, true)
    }

    /// Nothing of the group waits, runs or is done; it keeps its place.
    fn forget_group(&mut self, job: JobIdx, at: usize) {
        let user = self.job(job).user;
        let group = &self.job(job).groups[at];
        let (kind, count, mb) = (group.kind, group.waiting.count(), group.size.memory_mb());
        let runs: Vec<u32> = (0..count).filter(|&task| group.runs(task)).collect();
        let done: Vec<u32> = (0..count).filter(|&task| group.done.has(task as usize)).collect();
        let input = group.waiting.input_of_all();
        if kind != Kind::Reduce {
            let counts: Vec<_> = group.waiting.local_counts().collect();
            for (node, count) in counts {
                self.users.count_local(user, node, -i64::from(count));
            }
        }
        let running = runs.len() as u32;
        self.change(job, false, |row| {
            row.running -= running;
            match kind {
                Kind::Map => {
                    done.iter().for_each(|&task| row.map_lost(at, task));
                    row.maps -= count;
                    row.input = row.input.saturating_sub(input);
                }
                Kind::Reduce => {
                    row.running_reduces -= running;
                    row.running_reduces_mb -= u64::from(running) * mb;
                    row.reduces -= count;
                    for &task in runs.iter().chain(&done) {
                        row.count_reduce(row.groups[at].rack(task), false);
                    }
                }
                Kind::Other => {}
            }
            let group = &row.groups[at];
            row.groups[at] =
                Group::new(Arc::clone(&group.name), kind, group.size, Waiting::new(0, &[], false, |_| None));
        });
    }

    fn launched(&mut self, task: &TaskRef, node: NodeIdx, view: &View<'_>) -> Change {
        let Some(task) = self.task_of(task).filter(|task| self.group(*task).waiting.waits(task.index)) else {
            return Change::Nothing;
        };
        let spot = spot_of(view, node);
        let (at, kind) = (task.group as usize, self.kind(task));
        let locality = self.take(task, spot);
        self.change(task.job, true, |row| {
            let rack = spot.map(|spot| spot.rack);
            row.groups[at].set_rack(task.index, rack);
            row.running += 1;
            if kind == Kind::Reduce {
                row.running_reduces += 1;
                row.running_reduces_mb += row.groups[at].size.memory_mb();
                row.count_reduce(rack, true);
            }
        });
        Change::Launched { task, node, locality }
    }

    fn ended(&mut self, task: &TaskRef, node: NodeIdx, read: Bytes, output: Bytes) -> Change {
        let Some(task) = self.task_of(task).filter(|task| self.group(*task).runs(task.index)) else {
            return Change::Nothing;
        };
        self.stops(task, |row, group| {
            row.groups[group].done.set(task.index as usize, true);
            if row.groups[group].kind == Kind::Map {
                row.map_done(group, task.index, read, output);
            }
        });
        Change::Ended { task, node }
    }

    fn failed(&mut self, task: &TaskRef, node: NodeIdx) -> Change {
        let Some(task) = self.task_of(task).filter(|task| self.group(*task).runs(task.index)) else {
            return Change::Nothing;
        };
        let user = self.job(task.job).user;
        self.stops(task, |row, group| {
            if row.groups[group].kind == Kind::Reduce {
                row.count_reduce(row.groups[group].rack(task.index), false);
            }
        });
        self.put(task, user);
        self.change(task.job, false, |_| {});
        Change::Failed { task, node }
    }

    /// It holds no container any more.
    fn stops(&mut self, task: Task, and: impl FnOnce(&mut Job, usize)) {
        let group = task.group as usize;
        self.change(task.job, false, |row| {
            row.running -= 1;
            if row.groups[group].kind == Kind::Reduce {
                row.running_reduces -= 1;
                row.running_reduces_mb -= row.groups[group].size.memory_mb();
            }
            and(row, group);
        });
    }

    fn lost(&mut self, task: &TaskRef) -> Change {
        let is_done = |task: &Task| self.group(*task).done.has(task.index as usize);
        let Some(task) = self.task_of(task).filter(is_done) else { return Change::Nothing };
        let (user, at) = (self.job(task.job).user, task.group as usize);
        self.change(task.job, false, |row| {
            row.groups[at].done.set(task.index as usize, false);
            match row.groups[at].kind {
                Kind::Map => row.map_lost(at, task.index),
                Kind::Reduce => row.count_reduce(row.groups[at].rack(task.index), false),
                Kind::Other => {}
            }
        });
        self.put(task, user);
        self.change(task.job, false, |_| {});
        Change::Lost { task }
    }

    fn done(&mut self, attempt: AttemptId) -> Change {
        let Some(job) = self.find(attempt) else { return Change::Nothing };
        let user = self.job(job).user;
        for at in 0..self.job(job).groups.len() {
            self.forget_group(job, at);
        }
        self.by_attempt.remove(&attempt);
        self.jobs[job.at()] = None;
        self.free.push(job);
        Change::Gone { job, user }
    }

    /// Changes the job and puts it, and its user, where they now belong.
    pub(super) fn change(&mut self, job: JobIdx, served: bool, change: impl FnOnce(&mut Job)) {
        let row = self.jobs[job.at()].as_mut().expect("rows of jobs are used until the job is gone");
        change(row);
        let now = row.standing();
        let was = std::mem::replace(&mut row.placed, now);
        if was == now && !served {
            return;
        }
        self.early_mb = self.early_mb - was.early_mb + now.early_mb;
        let since = row.since;
        let key = |standing: JobRank| (standing.running, since, job);
        self.users.change(row.user, |user, launches| {
            user.running = user.running + now.running - was.running;
            if served {
                user.serve(launches);
            }
            for (set, is_in) in [
                (&mut user.maps, (|standing| standing.maps) as fn(&JobRank) -> bool),
                (&mut user.early, |standing| standing.maps && standing.reduces),
                (&mut user.late, |standing| !standing.maps && standing.reduces),
            ] {
                let (out, into) = (is_in(&was).then(|| key(was)), is_in(&now).then(|| key(now)));
                if out != into {
                    out.map(|key| set.remove(&key));
                    into.map(|key| set.insert(key));
                }
            }
        });
    }

    pub(super) fn task_of(&self, task: &TaskRef) -> Option<Task> {
        let job = self.find(task.attempt)?;
        let groups = &self.job(job).groups;
        // Who tells of a task mostly has the very name that it was told of with.
        let named = |group: &Group| Arc::ptr_eq(&group.name, &task.group) || group.name == task.group;
        let at = groups.iter().position(named)?;
        (task.index < groups[at].waiting.count()).then_some(Task { job, group: at as u32, index: task.index })
    }

    fn group(&self, task: Task) -> &Group {
        &self.job(task.job).groups[task.group as usize]
    }

    /// The task waits no more; the caller then puts the job in its place by [`Pool::change`].
    fn take(&mut self, task: Task, spot: Option<NodeLocation>) -> Locality {
        let row = self.jobs[task.job.at()].as_mut().expect("tasks are of jobs that are there");
        let (user, users) = (row.user, &mut self.users);
        let waiting = &mut row.groups[task.group as usize].waiting;
        waiting.take(task.index, spot, |node| users.count_local(user, node, -1))
    }

    /// The task waits again; the caller then puts the job in its place by [`Pool::change`].
    fn put(&mut self, task: Task, user: UserIdx) {
        let row = self.jobs[task.job.at()].as_mut().expect("tasks are of jobs that are there");
        let users = &mut self.users;
        let waiting = &mut row.groups[task.group as usize].waiting;
        waiting.put(task.index, |node| users.count_local(user, node, 1));
    }
}

/// A node of the cluster as the snapshot has it.
pub(super) fn spot_of(view: &View<'_>, node: NodeIdx) -> Option<NodeLocation> {
    view.snapshot.statics.rack.get(node.at()).map(|&rack| NodeLocation { rack, node })
}
