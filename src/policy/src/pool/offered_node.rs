//! An offer to the pool: what waits that would fit, by how far it would read.

use super::inputs::{NodeLocation, Pick};
use super::job::Group;
use super::{JobIdx, Kind, Locality, Pool, Task, UserIdx};
use crate::dispatch::{Offer, View};
use hintd_model::cluster::{NodeStatics, Resource};
use std::sync::Arc;

/// An offered node, for one call.
#[derive(Debug, Clone, Copy)]
pub struct OfferedNode<'a> {
    /// The node and its rack.
    pub spot: NodeLocation,
    /// Room on it.
    pub free: Resource,
    view: View<'a>,
}

impl<'a> OfferedNode<'a> {
    /// Of the offer.
    #[must_use]
    pub fn new(offer: &Offer, view: &View<'a>) -> Self {
        let spot = NodeLocation { rack: view.snapshot.rack(offer.node), node: offer.node };
        Self { spot, free: offer.free, view: *view }
    }

    /// What the call was told.
    #[must_use]
    pub const fn view(&self) -> &View<'a> {
        &self.view
    }

    /// Whether the task's container fits.
    #[must_use]
    pub fn fits_task(&self, pool: &Pool, task: Task) -> bool {
        self.view.snapshot.rules.feasible(&pool.size_of(task), &self.free)
    }

    pub(super) fn fits(&self, group: &Group) -> bool {
        self.view.snapshot.rules.feasible(&group.size, &self.free)
    }
}

/// Memory of the cluster, counted anew when nodes change.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    of: Option<Arc<NodeStatics>>,
    mb: u64,
}

impl Memory {
    fn mb(&mut self, view: &View<'_>) -> u64 {
        let statics = &view.snapshot.statics;
        if !self.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, statics)) {
            self.of = Some(Arc::clone(statics));
            self.mb = statics.total.iter().map(Resource::memory_mb).sum();
        }
        self.mb
    }
}

impl Pool {
    /// A map of the job that fits and reads on the node, or of whose input nothing is known.
    #[must_use]
    pub fn local_map(&self, job: JobIdx, slot: &OfferedNode<'_>, pick: Pick) -> Option<Task> {
        self.map(job, slot, |group| group.waiting.on_node(slot.spot, pick))
    }

    /// A map of the job that fits and has input in the rack.
    #[must_use]
    pub fn rack_map(&self, job: JobIdx, slot: &OfferedNode<'_>, pick: Pick) -> Option<Task> {
        self.map(job, slot, |group| group.waiting.in_rack(slot.spot.rack, pick))
    }

    /// A map of the job that fits, wherever its input lies.
    #[must_use]
    pub fn any_map(&self, job: JobIdx, slot: &OfferedNode<'_>, pick: Pick) -> Option<Task> {
        self.map(job, slot, |group| group.waiting.any(pick))
    }

    /// The largest map of the job that fits, of those that read nearest.
    #[must_use]
    pub fn nearest_map(&self, job: JobIdx, slot: &OfferedNode<'_>) -> Option<(Task, Locality)> {
        let at = |task: Option<Task>, locality| task.map(|task| (task, locality));
        at(self.local_map(job, slot, Pick::Largest), Locality::Node)
            .or_else(|| at(self.rack_map(job, slot, Pick::Largest), Locality::Rack))
            .or_else(|| at(self.any_map(job, slot, Pick::Largest), Locality::Other))
    }

    fn map(&self, job: JobIdx, slot: &OfferedNode<'_>, pick: impl Fn(&Group) -> Option<u32>) -> Option<Task> {
        self.task(job, |group| if group.kind != Kind::Reduce && slot.fits(group) { pick(group) } else { None })
    }

    /// A reduce of the job that fits.
    #[must_use]
    pub fn reduce(&self, job: JobIdx, slot: &OfferedNode<'_>) -> Option<Task> {
        self.task(job, |group| {
            if group.kind == Kind::Reduce && slot.fits(group) { group.waiting.any(Pick::Largest) } else { None }
        })
    }

    fn task(&self, job: JobIdx, pick: impl Fn(&Group) -> Option<u32>) -> Option<Task> {
        let groups = self.job(job).groups.iter().enumerate();
        groups.filter(|(_, group)| group.waiting.left() > 0).find_map(|(at, group)| {
            let index = pick(group)?;
            Some(Task { job, group: at as u32, index })
        })
    }

    /// Memory that reduces of jobs with waiting maps may still take, MB.
    pub fn early_room_mb(&mut self, view: &View<'_>) -> u64 {
        let most = self.early_share * self.memory.mb(view) as f64;
        (most as u64).saturating_sub(self.early_mb)
    }

    /// The first reduce that may be launched, fits and is accepted: users in their order, jobs of each in theirs.
    /// Reduces of jobs with waiting maps only while their share of the cluster is not used up.
    pub fn first_reduce(&mut self, slot: &OfferedNode<'_>, accept: impl Fn(&Self, JobIdx) -> bool) -> Option<Task> {
        if self.users.late.is_empty() && self.users.early.is_empty() {
            return None;
        }
        let room_mb = self.early_room_mb(&slot.view);
        let early = room_mb >= self.smallest_reduce_mb;
        if !early && self.users.late.is_empty() {
            return None;
        }
        let ready = |user: &&UserIdx| self.users.late.has(user.at()) || early && self.users.early.has(user.at());
        let jobs = self.order().iter().filter(ready).flat_map(|&user| self.reduce_jobs(user, early));
        jobs.filter_map(|job| {
            let task = self.reduce(job, slot)?;
            let held = self.job(job).groups[task.group as usize].size.memory_mb();
            let may = (!self.waits_for_maps(job) || held <= room_mb) && accept(self, job);
            may.then_some(task)
        })
        .next()
    }

    /// Users with waiting maps who come before the one whose reduce it is, all of them for none. Fairness is among
    /// users first; that reduces come before maps is MapReduce's priority within what is the user's.
    pub fn with_maps_before(&self, reduce: Option<Task>) -> impl Iterator<Item = UserIdx> + '_ {
        let until = reduce.map(|task| self.user(task.job));
        let before = self.order().iter().copied().take_while(move |&user| Some(user) != until);
        before.filter(|user| self.users_with_maps().has(user.at()))
    }
}
