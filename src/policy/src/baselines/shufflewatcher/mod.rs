//! `shufflewatcher`: Ahmad et al., *ShuffleWatcher: Shuffle-aware Scheduling in Multi-tenant MapReduce Clusters* (USENIX
//! ATC 2014), on delay scheduling, as 004 §1, §3.1 and §3.3 describe it (SW-delay; its reference 3).
//!
//! - When a job is submitted, the racks for its maps are those from which least would cross racks (`plan`), of sets
//!   that have containers for all its maps, and for all its reduces: what is computed is a placement. Its shuffle is taken as large as its input until the ratio is told or its first map ends (as 004 §3.2.1 has it of
//!   reference 3); then the racks are found anew. A job without reduces shuffles nothing.
//! - In these racks a map launches as by `delay`, and one without input in any of them at once. Elsewhere nothing of
//!   the job launches before it was passed over as often as `delay` lets it.
//! - While the offered rack is congested, maps come first: all reduces are delayed by assigning maps instead, and
//!   launch where no map does.
//! - Else a user's reduces come before its maps, each rack having at most the share of a job's reduces that it has of its map output.
//! - What nothing else takes goes to any reduce that is ready, as `delay` lets no container stand idle for locality.

mod plan;

use super::delay::{Skips, follow};
use crate::adapt::OfferInTurn;
use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, TaskInput, View, WaitingGroup};
use crate::params::{Invalid, Params};
use crate::pool::{
    self, Bits, Change, HoldReason, JobIdx, Kind, Locality, OfferedNode, Pick, Pool, Task, UserIdx, not_yet,
};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, Bytes, RackIdx};
use plan::{Places, RackPlan, least_traffic};
use serde::{Deserialize, Serialize};

/// Its name.
pub const NAME: &str = "shufflewatcher";

/// How long jobs wait, when a rack is congested, and when reduces may be launched.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShuffleWatcherParams {
    /// Use of a rack's uplink or downlink from which it counts as congested, per mille (004 §3.3.1: 80 %).
    pub congested_per_mille: u32,
    /// How far use must fall below that until it no longer does, per mille.
    pub relief_per_mille: u32,
    /// As of [`DelayParams`](super::delay::DelayParams).
    pub node_skips: u32,
    /// As of [`DelayParams`](super::delay::DelayParams).
    pub rack_skips: u32,
    /// As of [`FairParams`](super::fair::FairParams).
    pub slow_start: f64,
    /// As of [`FairParams`](super::fair::FairParams).
    pub early_reduces: f64,
}

impl Default for ShuffleWatcherParams {
    fn default() -> Self {
        Self {
            congested_per_mille: 800,
            relief_per_mille: 50,
            node_skips: super::SKIPS,
            rack_skips: 0,
            slow_start: pool::SLOW_START,
            early_reduces: pool::EARLY_REDUCES,
        }
    }
}

impl Params for ShuffleWatcherParams {
    fn validate(&self) -> Result<(), Invalid> {
        let (from, relief) = (self.congested_per_mille, self.relief_per_mille);
        if !(1..=1_000).contains(&from) {
            let message = format!("{from} per mille of a link: from 1 to 1000");
            return Err(Invalid { key: "congested_per_mille", message });
        }
        if relief >= from {
            let message = format!("{relief} is not below congested_per_mille = {from}");
            return Err(Invalid { key: "relief_per_mille", message });
        }
        super::skips("node_skips", self.node_skips)?;
        super::skips("rack_skips", self.rack_skips)?;
        super::share("slow_start", self.slow_start)?;
        super::share("early_reduces", self.early_reduces)
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct ShuffleWatcher {
    params: ShuffleWatcherParams,
}

impl Definition for ShuffleWatcher {
    type Params = ShuffleWatcherParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "as delay, with a job's maps in the racks by which least of its bytes crosses racks, and reduces behind maps while their rack is congested";

    fn new(params: ShuffleWatcherParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &ShuffleWatcherParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), dispatch: Some(self), ..Capabilities::default() }
    }
}

/// What waits, how often each job was passed over, the racks of each, and which racks are congested.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShuffleWatcherState {
    pool: Pool,
    skips: Skips,
    plans: Plans,
    congested: Bits,
}

impl Place for ShuffleWatcher {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        // One offer a node and round: in so many rounds every job is ripe.
        let rounds = self.params.node_skips + self.params.rack_skips + 1;
        OfferInTurn::new(self.clone(), rounds).place(problem, budget)
    }
}

impl Dispatch for ShuffleWatcher {
    type State = ShuffleWatcherState;

    fn start(&self) -> ShuffleWatcherState {
        ShuffleWatcherState {
            pool: Pool::new(self.params.slow_start, self.params.early_reduces),
            skips: Skips::new(self.params.node_skips),
            plans: Plans::default(),
            congested: Bits::default(),
        }
    }

    fn observe(&self, state: &mut ShuffleWatcherState, event: &DispatchEvent, view: &View<'_>) {
        if let DispatchEvent::RackUse { rack, per_mille } = event {
            let from = self.params.congested_per_mille;
            let left = from - self.params.relief_per_mille;
            let congested = *per_mille >= if state.congested.has(rack.at()) { left } else { from };
            state.congested.set(rack.at(), congested);
        }
        let change = state.pool.observe(event, view);
        if let (Change::Waiting { job, .. }, DispatchEvent::Waiting(told)) = (change, event) {
            state.plans.tell(&state.pool, job, told, view);
        }
        let as_planned = state.plans.follow(&state.pool, change, view);
        follow(&mut state.skips, &state.pool, change, as_planned);
    }

    fn offer(&self, state: &mut ShuffleWatcherState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let slot = OfferedNode::new(offer, view);
        let congested = state.congested.has(slot.spot.rack.at());
        let planned = if congested {
            self.map(state, &slot, None).or_else(|| reduce(state, &slot))
        } else {
            let reduce = reduce(state, &slot);
            self.map(state, &slot, reduce).or(reduce)
        };
        let task = planned.or_else(|| state.pool.first_reduce(&slot, |_, _| true));
        match task {
            Some(task) => vec![Advice::Launch(state.pool.name(task))],
            None if view.explain => {
                let plans = &state.plans;
                not_yet(&mut state.pool, &slot, |_, job, kind| match kind {
                    Kind::Reduce => HoldReason::Fairness,
                    _ if plans.has(job, slot.spot.rack) => HoldReason::NoLocalBlock,
                    _ => HoldReason::OtherRackPlanned,
                })
            }
            None => Vec::new(),
        }
    }
}

impl ShuffleWatcher {
    /// A map of a user before the reduce's.
    fn map(&self, state: &mut ShuffleWatcherState, slot: &OfferedNode<'_>, reduce: Option<Task>) -> Option<Task> {
        let ShuffleWatcherState { pool, skips, plans, .. } = state;
        let (pool, plans) = (&*pool, &*plans);
        let (node, rack) = (slot.spot.node, slot.spot.rack);
        let near = |at| pool.users_with_local(node, at) | plans.users_with_remote(rack, at);
        skips.ask(pool, near, |job, skipped| self.map_of(pool, plans, slot, job, skipped), reduce)
    }

    fn map_of(&self, pool: &Pool, plans: &Plans, slot: &OfferedNode<'_>, job: JobIdx, skipped: u64) -> Option<Task> {
        let ShuffleWatcherParams { node_skips, rack_skips, .. } = self.params;
        let ripe = skipped >= u64::from(node_skips) + u64::from(rack_skips);
        if !plans.has(job, slot.spot.rack) {
            return if ripe { pool.nearest_map(job, slot).map(|(task, _)| task) } else { None };
        }
        let in_rack = || pool.rack_map(job, slot, Pick::Largest).filter(|_| skipped >= u64::from(node_skips));
        let anywhere = || pool.any_map(job, slot, Pick::Largest).filter(|_| ripe);
        let local = pool.local_map(job, slot, Pick::Largest);
        local.or_else(|| plans.remote_map(pool, job, slot)).or_else(in_rack).or_else(anywhere)
    }
}

/// A reduce of a job of which the rack has not its share yet.
fn reduce(state: &mut ShuffleWatcherState, slot: &OfferedNode<'_>) -> Option<Task> {
    let rack = slot.spot.rack;
    state.pool.first_reduce(slot, |pool, job| {
        // Without output a rack is as good as any.
        pool.output(job) == Bytes::ZERO || pool.reduces_in(job, rack) < pool.reduce_share(job, rack)
    })
}

/// The racks of jobs, and which users have maps to launch in a rack whatever their input.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Plans {
    jobs: Vec<Option<Planned>>,
    /// By rack: jobs of each user with such maps, and whether there are any.
    counts: Vec<Vec<u32>>,
    any: Vec<Bits>,
}

/// Of a job that shuffles.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Planned {
    user: UserIdx,
    /// Position of its maps among its groups.
    group: u32,
    /// Maps of whose input something was told.
    maps: u32,
    /// Whether output ÷ input was known when it was planned.
    ratio_known: bool,
    plan: RackPlan,
    /// Which of `plan.remote` still wait.
    waits: Bits,
}

impl Plans {
    /// Plans a job when its maps are told, and anew when its reduces are; groups of other roles and unknown inputs have
    /// no plan.
    fn tell(&mut self, pool: &Pool, job: JobIdx, told: &WaitingGroup, view: &View<'_>) {
        match &*told.role {
            "map" => {
                self.forget(job);
                let maps = told.count.min(u32::try_from(told.inputs.len()).unwrap_or(u32::MAX));
                let group = pool.group_of(job, &told.group).filter(|_| !told.inputs.is_empty());
                if let Some(group) = group {
                    self.plan(pool, job, (group, maps), view);
                }
            }
            "reduce" => self.plan_anew(pool, job, view),
            _ => {}
        }
    }

    fn plan_anew(&mut self, pool: &Pool, job: JobIdx, view: &View<'_>) {
        if let Some(&Planned { group, maps, .. }) = self.get(job) {
            self.forget(job);
            self.plan(pool, job, (group, maps), view);
        }
    }

    fn plan(&mut self, pool: &Pool, job: JobIdx, (group, maps): (u32, u32), view: &View<'_>) {
        let ratio = if pool.reduces(job).all == 0 { Some(0.0) } else { pool.ratio(job) };
        let shuffle = pool.input(job).as_f64() * ratio.unwrap_or(1.0);
        let task = |index| Task { job, group, index };
        let input = |index| TaskInput {
            bytes: pool.input_of(task(index)),
            nodes: pool.replicas_of(task(index)).map(|spot| spot.node).collect(),
        };
        let inputs: Vec<TaskInput> = (0..maps).map(input).collect();
        let first_of = |group| Task { job, group, index: 0 };
        let of_kind = |kind| (0..pool.groups(job) as u32).map(first_of).find(|&task| pool.kind(task) == kind);
        let size = |kind| of_kind(kind).map_or_else(Resource::default, |task| pool.size_of(task));
        let sizes = [size(Kind::Map), size(Kind::Reduce)];
        let tasks = [pool.maps(job).all, pool.reduces(job).all];
        let places = Places::of(view.snapshot, turn(pool.attempt(job)), sizes, tasks);
        let plan = least_traffic(&inputs, shuffle, &places);
        let mut waits = Bits::full(plan.remote.len());
        for (at, &index) in plan.remote.iter().enumerate() {
            waits.set(at, pool.waits(task(index)));
        }
        if job.at() >= self.jobs.len() {
            self.jobs.resize(job.at() + 1, None);
        }
        let (user, ratio_known) = (pool.user(job), ratio.is_some());
        self.jobs[job.at()] = Some(Planned { user, group, maps, ratio_known, plan, waits });
        self.count(job, true);
    }

    /// Says whether a map was launched as its job's plan has it.
    fn follow(&mut self, pool: &Pool, change: Change, view: &View<'_>) -> bool {
        match change {
            Change::Launched { task, node, locality } if pool.kind(task) != Kind::Reduce => {
                let remote = self.wait(task, false);
                let rack = view.snapshot.statics.rack.get(node.at());
                rack.is_some_and(|&rack| self.has(task.job, rack)) && (remote || locality == Locality::Node)
            }
            Change::Ended { task, .. } => {
                let learnt = self.get(task.job).is_some_and(|planned| !planned.ratio_known);
                if learnt && pool.ratio(task.job).is_some() {
                    self.plan_anew(pool, task.job, view);
                }
                false
            }
            Change::Failed { task, .. } | Change::Lost { task } => {
                self.wait(task, true);
                false
            }
            Change::Gone { job, .. } => {
                self.forget(job);
                false
            }
            _ => false,
        }
    }

    /// Whether the job may launch there as planned; jobs without a plan may anywhere.
    fn has(&self, job: JobIdx, rack: RackIdx) -> bool {
        self.get(job).is_none_or(|planned| planned.plan.racks.has(rack.at()))
    }

    fn get(&self, job: JobIdx) -> Option<&Planned> {
        self.jobs.get(job.at()).and_then(Option::as_ref)
    }

    /// A map that has no input in any of the job's racks.
    fn remote_map(&self, pool: &Pool, job: JobIdx, slot: &OfferedNode<'_>) -> Option<Task> {
        let planned = self.get(job)?;
        let index = planned.plan.remote[planned.waits.first_from(0)?];
        let task = Task { job, group: planned.group, index };
        slot.fits_task(pool, task).then_some(task)
    }

    fn users_with_remote(&self, rack: RackIdx, at: usize) -> u64 {
        self.any.get(rack.at()).map_or(0, |users| users.word(at))
    }

    /// The task waits or no longer does; whether it is one without input in its job's racks.
    fn wait(&mut self, task: Task, waits: bool) -> bool {
        let Some(planned) = self.jobs.get_mut(task.job.at()).and_then(Option::as_mut) else { return false };
        if planned.group != task.group {
            return false;
        }
        let Ok(at) = planned.plan.remote.binary_search(&task.index) else { return false };
        let before = planned.waits.is_empty();
        planned.waits.set(at, waits);
        match (before, planned.waits.is_empty()) {
            (false, true) => self.change(task.job, false),
            (true, false) => self.change(task.job, true),
            _ => {}
        }
        true
    }

    fn forget(&mut self, job: JobIdx) {
        self.count(job, false);
        if let Some(planned) = self.jobs.get_mut(job.at()) {
            *planned = None;
        }
    }

    fn count(&mut self, job: JobIdx, more: bool) {
        if self.get(job).is_some_and(|planned| !planned.waits.is_empty()) {
            self.change(job, more);
        }
    }

    fn change(&mut self, job: JobIdx, more: bool) {
        let Some(planned) = self.jobs.get(job.at()).and_then(Option::as_ref) else { return };
        let user = planned.user.at();
        let mut from = 0;
        while let Some(rack) = planned.plan.racks.first_from(from) {
            from = rack + 1;
            if rack >= self.counts.len() {
                self.counts.resize(rack + 1, Vec::new());
                self.any.resize(rack + 1, Bits::default());
            }
            let counts = &mut self.counts[rack];
            if user >= counts.len() {
                counts.resize(user + 1, 0);
            }
            counts[user] = if more { counts[user] + 1 } else { counts[user] - 1 };
            self.any[rack].set(user, counts[user] > 0);
        }
    }
}

/// From which rack on a job's equal racks are taken: each job from the next.
const fn turn(attempt: AttemptId) -> usize {
    attempt.application.sequence as usize
}

#[cfg(test)]
mod tests;
