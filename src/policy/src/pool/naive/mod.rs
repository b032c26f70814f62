//! What the pool says, found by looking at every task: the oracle of dispatchers.

mod storm;

pub(crate) use storm::{Naive, agree};

use crate::dispatch::{DispatchEvent, Offer, TaskRef, View, WaitingGroup};
use hintd_model::units::{AttemptId, Bytes, NodeIdx, RackIdx};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Waits,
    Runs(NodeIdx),
    Done(NodeIdx, Bytes),
}

/// A group as it was told, and what became of its tasks.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) told: WaitingGroup,
    pub(crate) tasks: Vec<State>,
}

/// Everything that was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    /// In the order of telling; one told again keeps its place.
    pub(crate) groups: Vec<Group>,
    /// In the order of submission.
    pub(crate) jobs: Vec<AttemptId>,
    launches: u64,
    served: BTreeMap<Arc<str>, u64>,
    ratios: BTreeMap<AttemptId, Vec<f64>>,
    pub(crate) rack_use: BTreeMap<RackIdx, u32>,
}

/// A task by its group's position and its number.
pub(crate) type At = (usize, usize);

impl World {
    pub(crate) fn observe(&mut self, event: &DispatchEvent) {
        match event {
            DispatchEvent::Waiting(told) => self.tell(told),
            DispatchEvent::Launched { task, node } => {
                let (group, index) = self.find(task);
                self.groups[group].tasks[index] = State::Runs(*node);
                self.launches += 1;
                self.served.insert(Arc::clone(&self.groups[group].told.user), self.launches);
            }
            DispatchEvent::Finished { task, failed: true, .. } | DispatchEvent::Lost(task) => {
                let (group, index) = self.find(task);
                self.groups[group].tasks[index] = State::Waits;
            }
            DispatchEvent::Finished { task, node, input, output, .. } => {
                let (group, index) = self.find(task);
                self.groups[group].tasks[index] = State::Done(*node, *output);
                if &*self.groups[group].told.role == "map" && input.0 > 0 {
                    self.ratios.entry(task.attempt).or_default().push(output.as_f64() / input.as_f64());
                }
            }
            DispatchEvent::Done(attempt) => {
                self.groups.retain(|group| group.told.attempt != *attempt);
                self.jobs.retain(|job| job != attempt);
                self.ratios.remove(attempt);
            }
            DispatchEvent::RackUse { rack, per_mille } => {
                self.rack_use.insert(*rack, *per_mille);
            }
            DispatchEvent::Run { .. }
            | DispatchEvent::Recurs { .. }
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Plan(_) => {}
        }
    }

    fn tell(&mut self, told: &WaitingGroup) {
        let new = Group { told: told.clone(), tasks: vec![State::Waits; told.count as usize] };
        let same = |group: &Group| group.told.attempt == told.attempt && group.told.group == told.group;
        match self.groups.iter().position(same) {
            Some(at) => self.groups[at] = new,
            None => self.groups.push(new),
        }
        if !self.jobs.contains(&told.attempt) {
            self.jobs.push(told.attempt);
        }
    }

    pub(crate) fn find(&self, task: &TaskRef) -> At {
        let same = |group: &Group| group.told.attempt == task.attempt && group.told.group == task.group;
        (self.groups.iter().position(same).unwrap(), task.index as usize)
    }

    pub(crate) fn name(&self, (group, index): At) -> TaskRef {
        let told = &self.groups[group].told;
        TaskRef { attempt: told.attempt, group: Arc::clone(&told.group), index: index as u32 }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (At, State)> + '_ {
        let tasks = |(at, group): (usize, &Group)| -> Vec<(At, State)> {
            group.tasks.iter().enumerate().map(|(index, state)| ((at, index), *state)).collect()
        };
        self.groups.iter().enumerate().flat_map(tasks)
    }

    pub(crate) fn is_reduce(&self, at: At) -> bool {
        &*self.groups[at.0].told.role == "reduce"
    }

    pub(crate) fn of(&self, job: AttemptId) -> impl Iterator<Item = (At, State)> + '_ {
        let of_job = move |(_, group): &(usize, &Group)| group.told.attempt == job;
        let tasks = |(at, group): (usize, &'_ Group)| -> Vec<(At, State)> {
            group.tasks.iter().enumerate().map(|(index, state)| ((at, index), *state)).collect()
        };
        self.groups.iter().enumerate().filter(of_job).flat_map(tasks)
    }

    pub(crate) fn waiting(&self, job: AttemptId, reduces: bool) -> Vec<At> {
        let waits = |(at, state): (At, State)| (state == State::Waits && self.is_reduce(at) == reduces).then_some(at);
        self.of(job).filter_map(waits).collect()
    }

    pub(crate) fn running(&self, job: AttemptId) -> usize {
        self.of(job).filter(|(_, state)| matches!(state, State::Runs(_))).count()
    }

    pub(crate) fn user(&self, job: AttemptId) -> Arc<str> {
        Arc::clone(&self.groups.iter().find(|group| group.told.attempt == job).unwrap().told.user)
    }

    /// Jobs in the order of fairness: of users, then of each user's jobs.
    pub(crate) fn fair_jobs(&self) -> Vec<AttemptId> {
        let mut jobs = self.jobs.clone();
        let of_user = |user: &Arc<str>| -> usize {
            self.jobs.iter().filter(|&&job| self.user(job) == *user).map(|&job| self.running(job)).sum()
        };
        jobs.sort_by_cached_key(|&job| {
            let user = self.user(job);
            let served = self.served.get(&user).copied().unwrap_or(0);
            let came = self.jobs.iter().position(|&other| other == job);
            (of_user(&user), served, user, self.running(job), came)
        });
        jobs
    }

    /// [`World::fair_jobs`], those of each user together.
    pub(crate) fn by_user(&self) -> Vec<Vec<AttemptId>> {
        let jobs = self.fair_jobs();
        jobs.chunk_by(|&a, &b| self.user(a) == self.user(b)).map(<[_]>::to_vec).collect()
    }

    pub(crate) fn input(&self, at: At) -> Bytes {
        self.groups[at.0].told.inputs.get(at.1).map_or(Bytes::ZERO, |input| input.bytes)
    }

    /// The nodes with its input that the cluster has.
    pub(crate) fn replicas(&self, at: At, view: &View<'_>) -> Vec<NodeIdx> {
        let nodes = self.groups[at.0].told.inputs.get(at.1).map_or(&[][..], |input| &input.nodes[..]);
        nodes.iter().copied().filter(|node| node.at() < view.snapshot.nodes()).collect()
    }

    /// 0 on the node or nothing known, 1 in the rack, 2 elsewhere.
    pub(crate) fn distance(&self, at: At, node: NodeIdx, view: &View<'_>) -> u8 {
        let replicas = self.replicas(at, view);
        let rack = |node: NodeIdx| view.snapshot.rack(node);
        if replicas.is_empty() || replicas.contains(&node) {
            0
        } else if replicas.iter().any(|&replica| rack(replica) == rack(node)) {
            1
        } else {
            2
        }
    }

    pub(crate) fn fits(&self, at: At, offer: &Offer, view: &View<'_>) -> bool {
        view.snapshot.rules.feasible(&self.groups[at.0].told.size, &offer.free)
    }

    /// Of these, in the first group that has any, the largest, and of the largest the first. `on_node` prefers those
    /// with input to those of whose input nothing is known.
    pub(crate) fn largest(&self, mut tasks: Vec<At>) -> Option<At> {
        let group = tasks.iter().map(|at| at.0).min()?;
        tasks.retain(|at| at.0 == group);
        tasks.into_iter().max_by_key(|&at| (self.input(at), Reverse(at.1)))
    }

    /// The map of the job that fits and reads at most so far, the nearest ones in the first group that has any.
    pub(crate) fn map_within(&self, job: AttemptId, offer: &Offer, view: &View<'_>, distance: u8) -> Option<At> {
        let mut fit = self.waiting(job, false);
        fit.retain(|&at| self.fits(at, offer, view));
        for reach in 0..=distance {
            let mut near = fit.clone();
            near.retain(|&at| self.distance(at, offer.node, view) <= reach);
            let group = near.iter().map(|at| at.0).min();
            near.retain(|at| Some(at.0) == group);
            let mut known = near.clone();
            known.retain(|&at| !self.replicas(at, view).is_empty());
            if let Some(at) = self.largest(if reach == 0 && !known.is_empty() { known } else { near }) {
                return Some(at);
            }
        }
        None
    }

    pub(crate) fn maps_done(&self, job: AttemptId) -> (usize, usize) {
        let maps = || self.of(job).filter(|(at, _)| &*self.groups[at.0].told.role == "map");
        (maps().filter(|(_, state)| matches!(state, State::Done(..))).count(), maps().count())
    }

    /// A reduce of the job that may be launched and fits.
    pub(crate) fn reduce(
        &self,
        job: AttemptId,
        offer: &Offer,
        view: &View<'_>,
        (slow_start, early_share): (f64, f64),
    ) -> Option<At> {
        let (done, maps) = self.maps_done(job);
        if (done as f64) < slow_start * maps as f64 - 1e-9 {
            return None;
        }
        let mut fit = self.waiting(job, true);
        fit.retain(|&at| self.fits(at, offer, view));
        let at = self.largest(fit)?;
        let size = |at: At| self.groups[at.0].told.size.memory_mb();
        if !self.waiting(job, false).is_empty() {
            let runs = |(at, state): &(At, State)| matches!(state, State::Runs(_)) && self.is_reduce(*at);
            let early = self.jobs.iter().filter(|&&job| !self.waiting(job, false).is_empty());
            let held: u64 = early.flat_map(|&job| self.of(job)).filter(runs).map(|(at, _)| size(at)).sum();
            let all: u64 = view.snapshot.statics.total.iter().map(hintd_model::cluster::Resource::memory_mb).sum();
            if held + size(at) > (early_share * all as f64) as u64 {
                return None;
            }
        }
        Some(at)
    }

    pub(crate) fn ratio(&self, job: AttemptId) -> Option<f64> {
        let told = self.groups.iter().filter(|group| group.told.attempt == job && &*group.told.role == "map");
        let told = told.filter_map(|group| group.told.output_ratio).next_back();
        let learnt = self.ratios.get(&job).map(|ratios| ratios.iter().sum::<f64>() / ratios.len() as f64);
        told.or(learnt)
    }

    pub(crate) fn output_by_rack(&self, job: AttemptId, view: &View<'_>) -> BTreeMap<RackIdx, u64> {
        let mut by_rack = BTreeMap::new();
        for (at, state) in self.of(job) {
            if let (State::Done(node, output), "map") = (state, &*self.groups[at.0].told.role) {
                *by_rack.entry(view.snapshot.rack(node)).or_default() += output.0;
            }
        }
        by_rack
    }

    pub(crate) fn reduces_in(&self, job: AttemptId, rack: RackIdx, view: &View<'_>) -> usize {
        let there = |(at, state): &(At, State)| match state {
            State::Runs(node) | State::Done(node, _) => self.is_reduce(*at) && view.snapshot.rack(*node) == rack,
            State::Waits => false,
        };
        self.of(job).filter(there).count()
    }
}
