//! The plan by the run's own numbers: which racks a run's stages have, and how much of each is launched.

use crate::dispatch::View;
use crate::plan::{Deviation, Plan, PlannedStage, Stage, StageProgress};
use crate::pool::JobIdx;
use hintd_model::units::{AttemptId, Micros, NodeIdx, RackIdx, RackPath, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The plan in force, and how far it is followed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ActivePlan {
    pub(super) plan: Arc<Plan>,
    /// By job of the plan.
    pub(super) rows: Vec<Row>,
    /// Jobs of each key, as they are expected.
    by_key: BTreeMap<Arc<str>, Vec<u32>>,
    /// By rack: place in its sequence → steps of runs that are there and have tasks to launch in it.
    steps: Vec<BTreeMap<u32, (u32, Stage)>>,
}

/// One job of the plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Row {
    /// The run that took its place.
    pub(super) run: Option<JobIdx>,
    /// The run that took its place is answered at once: none of its tasks is launched here.
    asks: bool,
    /// The attempt that took it last, and may be gone by now.
    pub(super) taken: Option<AttemptId>,
    /// Maps, reduces.
    pub(super) stages: [StageRow; 2],
}

/// How well the plan is followed, counted since it is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanFollowStats {
    /// Runs that took a place in the plan.
    pub followed: u32,
    /// Runs of recurring jobs without a place: not planned, too far from their time, or the place was taken.
    pub unplanned: u32,
    /// Stages that go by the plan no more because of a dead rack.
    pub released: u32,
    /// Plans that were refused as they had expired.
    pub expired: u32,
}

/// When a run looks for its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunArrival {
    /// When it came.
    pub(super) came: Timestamp,
    pub(super) now: Timestamp,
    /// So far from its arrival a place is not the run's.
    pub(super) late: Micros,
}

/// Who takes a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlaceClaimant {
    /// A run whose tasks wait.
    Waits(JobIdx),
    /// One that is answered at once.
    Asks,
}

/// One stage of a job of the plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct StageRow {
    /// Tasks as planned, and as the run has them.
    planned: u32,
    told: u32,
    /// Its racks, ascending.
    pub(super) shares: Vec<Share>,
    /// It goes by the plan no more, or never did.
    pub(super) released: bool,
    /// Tasks that run again and may do so anywhere.
    pub(super) again: u32,
}

/// A stage's part in a rack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Share {
    pub(super) rack: RackIdx,
    /// Place in the rack's sequence.
    place: u32,
    /// Tasks as planned, and as launched.
    pub(super) planned: u32,
    launched: u32,
    /// Of these by node, ascending.
    on: Vec<(NodeIdx, u32)>,
    /// When a node first had its part and asked for more.
    more_since: Option<Timestamp>,
    /// Since when the rack has only had maps left that read from other racks.
    afar_since: Option<Timestamp>,
}

impl Share {
    fn count(&mut self, node: NodeIdx) {
        self.launched += 1;
        match self.on.binary_search_by_key(&node, |on| on.0) {
            Ok(at) => self.on[at].1 += 1,
            Err(at) => self.on.insert(at, (node, 1)),
        }
    }
}

impl Row {
    /// Whether the run that took its place has not gone.
    pub(super) const fn is_here(&self) -> bool {
        self.run.is_some() || self.asks
    }

    /// Whether its run is answered at once, so that none of its tasks is launched here.
    pub(super) const fn asked_at_once(&self) -> bool {
        self.asks
    }
}

impl StageRow {
    /// How far it is. Of a run that `asked_at_once` nobody tells which tasks were launched; which kind of run it was is not
    /// known any more of one that is over.
    pub(super) fn progress(&self, is_here: bool, asked_at_once: bool) -> StageProgress {
        let launched: u32 = self.shares.iter().map(|share| share.launched).sum();
        let launched = Some(launched).filter(|&launched| if is_here { !asked_at_once } else { launched > 0 });
        let launched_in = match launched {
            Some(_) => self.shares.iter().map(|share| (share.rack, share.launched)).collect(),
            None => Vec::new(),
        };
        StageProgress { tasks: self.told, launched, launched_in, done: None, released: self.has_lost_racks() }
    }

    /// Tasks that the rack may launch: as planned, or if the run has more or fewer in the same proportion.
    fn quota(&self, share: &Share) -> u32 {
        let tasks = u64::from(self.told) * u64::from(share.planned);
        u32::try_from(tasks.div_ceil(u64::from(self.planned.max(1)))).unwrap_or(u32::MAX)
    }

    /// Tasks that no rack has launched yet.
    fn left(&self) -> u32 {
        let launched = self.shares.iter().map(|share| share.launched).sum();
        self.told.saturating_sub(launched)
    }

    /// Whether the rack may launch one more of its own part.
    fn has_part_left(&self, share: &Share) -> bool {
        share.launched < self.quota(share)
    }

    /// None of its tasks was launched.
    fn begin_anew(&mut self) {
        self.again = 0;
        for share in &mut self.shares {
            (share.launched, share.more_since, share.afar_since) = (0, None, None);
            share.on.clear();
        }
    }

    /// Whether a rack has none left that read there, so that others may launch its part.
    fn gives(&self) -> bool {
        let gives = |share: &Share| share.afar_since.is_some() && self.has_part_left(share);
        self.shares.iter().any(gives) && self.left() > 0
    }

    /// The run has less than half or more than twice the tasks that were planned.
    pub(super) fn is_odd(&self) -> bool {
        let (told, planned) = (u64::from(self.told), u64::from(self.planned));
        told > 0 && (told > 2 * planned || 2 * told < planned)
    }

    /// It was planned, and goes by the plan no more.
    pub(super) const fn has_lost_racks(&self) -> bool {
        self.released && self.planned > 0
    }

    /// The rack's part of the stage, in [0, 1].
    pub(super) fn part(&self, rack: RackIdx) -> f64 {
        let share = self.shares.iter().find(|share| share.rack == rack);
        share.map_or(0.0, |share| f64::from(share.planned) / f64::from(self.planned.max(1)))
    }
}

impl ActivePlan {
    /// Of the plan, racks by the snapshot's numbers; stages with a rack that is not there are released.
    pub(super) fn new(plan: Arc<Plan>, view: &View<'_>) -> Self {
        let by_rack = &view.snapshot.statics.by_rack;
        let mut places: BTreeMap<&RackPath, BTreeMap<(&str, u32, Stage), u32>> = BTreeMap::new();
        for row in &plan.racks {
            let steps = places.entry(&row.rack).or_default();
            for (place, step) in (0..).zip(&row.sequence) {
                steps.insert((&step.job.key, step.job.run, step.stage), place);
            }
        }
        let stage = |job: &crate::plan::PlannedJob, stage: Stage, of: &PlannedStage| {
            let racks = of.racks();
            let share = |&(path, planned): &(&RackPath, u32)| {
                let rack = *by_rack.get(path)?;
                let place = *places.get(path)?.get(&(&*job.job.key, job.job.run, stage))?;
                Some(Share { rack, place, planned, launched: 0, on: Vec::new(), more_since: None, afar_since: None })
            };
            let mut shares: Vec<Share> = racks.iter().filter_map(share).collect();
            shares.sort_unstable_by_key(|share| share.rack);
            let released = shares.len() < racks.len() || shares.is_empty();
            StageRow { planned: of.tasks, told: 0, shares, released, again: 0 }
        };
        let mut by_key: BTreeMap<Arc<str>, Vec<u32>> = BTreeMap::new();
        let mut rows = Vec::with_capacity(plan.jobs.len());
        for (at, job) in (0..).zip(&plan.jobs) {
            by_key.entry(Arc::clone(&job.job.key)).or_default().push(at);
            let stages = [stage(job, Stage::Map, &job.maps), stage(job, Stage::Reduce, &job.reduces)];
            rows.push(Row { stages, ..Row::default() });
        }
        let steps = vec![BTreeMap::new(); view.snapshot.statics.racks.len()];
        Self { rows, by_key, steps, plan }
    }

    /// Steps of the rack that may have something to launch, in their order.
    pub(super) fn steps(&self, rack: RackIdx) -> impl Iterator<Item = (u32, Stage)> + '_ {
        self.steps.get(rack.at()).into_iter().flat_map(|steps| steps.values().copied())
    }

    /// The place that an earlier attempt of the application had, or this one; else the free one of that key whose
    /// expected arrival is nearest to when the run came; none of a plan that has expired.
    pub(super) fn place_of(&self, (attempt, key): (AttemptId, &str), coming: &RunArrival) -> Option<u32> {
        let &RunArrival { came, now, late } = coming;
        let away = |row: &u32| {
            let arrival = self.plan.jobs[*row as usize].arrival;
            arrival.since(came).max(came.since(arrival))
        };
        let taken = |row: u32| self.rows[row as usize].taken;
        let rows = || self.by_key.get(key).into_iter().flatten().copied();
        // An attempt whose first answer was undone was told to be over, and asks again.
        let empty = |row: u32| self.rows[row as usize].run.is_none() && !self.rows[row as usize].asks;
        let own = |row: u32, by: AttemptId| by < attempt || (by == attempt && empty(row));
        let earlier = |row: &u32| taken(*row).is_some_and(|by| by.application == attempt.application && own(*row, by));
        let expired = now >= self.plan.until;
        let free =
            || rows().filter(|&row| taken(row).is_none() && !expired).min_by_key(away).filter(|row| away(row) <= late);
        rows().find(earlier).or_else(free)
    }

    /// The attempt takes its place, if there is one for it, and is counted; a later attempt goes on in its application's.
    pub(super) fn claim_place(
        &mut self,
        (attempt, key): (AttemptId, &str),
        coming: &RunArrival,
        run: PlaceClaimant,
        stats: &mut PlanFollowStats,
    ) -> Option<u32> {
        let row = self.place_of((attempt, key), coming);
        match row {
            Some(row) => {
                stats.followed += u32::from(self.rows[row as usize].taken.is_none());
                self.take(row, attempt, run);
            }
            None => stats.unplanned += 1,
        }
        row
    }

    /// Why a run of that key has no place.
    pub(super) fn why_not(&self, key: &str) -> Deviation {
        match self.by_key.get(key) {
            None => Deviation::NotPlanned,
            Some(rows) if rows.iter().all(|&row| self.rows[row as usize].taken.is_some()) => Deviation::PlaceTaken,
            Some(_) => Deviation::OutOfTime,
        }
    }

    /// Whether the plan alone says where the tasks of that stage run.
    pub(super) fn goes_by_plan(&self, row: u32, stage: Stage) -> bool {
        let part = &self.rows[row as usize].stages[at(stage)];
        !part.released && part.again == 0
    }

    /// The attempt takes the place; after another of its application nothing of the job counts as launched.
    pub(super) fn take(&mut self, row: u32, attempt: AttemptId, run: PlaceClaimant) {
        let place = &mut self.rows[row as usize];
        if place.taken.replace(attempt).is_some_and(|by| by != attempt) {
            place.stages.iter_mut().for_each(StageRow::begin_anew);
        }
        (place.run, place.asks) = match run {
            PlaceClaimant::Waits(job) => (Some(job), false),
            PlaceClaimant::Asks => (None, true),
        };
    }

    /// The run has so many maps and reduces.
    pub(super) fn told(&mut self, row: u32, tasks: [u32; 2]) {
        for (stage, tasks) in Stage::BOTH.into_iter().zip(tasks) {
            self.rows[row as usize].stages[at(stage)].told = tasks;
            self.refresh(row, stage);
        }
    }

    /// A task was launched there.
    pub(super) fn launched(&mut self, row: u32, stage: Stage, (rack, node): (Option<RackIdx>, NodeIdx)) {
        let part = &mut self.rows[row as usize].stages[at(stage)];
        let found = part.shares.iter().position(|share| Some(share.rack) == rack);
        match found.filter(|&share| part.has_part_left(&part.shares[share]) || part.gives()) {
            Some(share) => part.shares[share].count(node),
            None => part.again = part.again.saturating_sub(1),
        }
        self.refresh(row, stage);
    }

    /// Whether the node has launched its even part of what the stage has in the rack, of so many nodes.
    pub(super) fn has_its_part(&self, row: u32, stage: Stage, (rack, node): (RackIdx, NodeIdx), nodes: usize) -> bool {
        let part = &self.rows[row as usize].stages[at(stage)];
        let Some(share) = part.shares.iter().find(|share| share.rack == rack) else { return false };
        let launched = share.on.binary_search_by_key(&node, |on| on.0).map_or(0, |at| share.on[at].1);
        launched as usize >= (part.quota(share) as usize).div_ceil(nodes.max(1))
    }

    /// Whether the rack may launch a map that reads from another rack: of its own part, once it has had no nearer one
    /// for so long.
    pub(super) fn may_read_afar(&self, row: u32, rack: RackIdx, now: Timestamp, patience: Micros) -> bool {
        let part = &self.rows[row as usize].stages[at(Stage::Map)];
        let Some(share) = part.shares.iter().find(|share| share.rack == rack) else { return true };
        let waited = share.afar_since.is_some_and(|since| now.since(since) >= patience);
        part.has_part_left(share) && (waited || patience == Micros::ZERO)
    }

    /// The rack has only maps left that read from others: those may run its part.
    pub(super) fn wants_nearer(&mut self, row: u32, rack: RackIdx, now: Timestamp) {
        let shares = &mut self.rows[row as usize].stages[at(Stage::Map)].shares;
        if let Some(share) = shares.iter_mut().find(|share| share.rack == rack) {
            share.afar_since.get_or_insert(now);
            self.refresh(row, Stage::Map);
        }
    }

    /// Since when a node of the rack that has its part asks for more.
    pub(super) fn more_since(&self, row: u32, stage: Stage, rack: RackIdx) -> Option<Timestamp> {
        let shares = &self.rows[row as usize].stages[at(stage)].shares;
        shares.iter().find(|share| share.rack == rack)?.more_since
    }

    /// A node of the rack that has its part asks for more.
    pub(super) fn ask_for_more(&mut self, row: u32, stage: Stage, rack: RackIdx, now: Timestamp) {
        let shares = &mut self.rows[row as usize].stages[at(stage)].shares;
        if let Some(share) = shares.iter_mut().find(|share| share.rack == rack) {
            share.more_since.get_or_insert(now);
        }
    }

    /// A task of it runs again.
    pub(super) fn task_runs_again(&mut self, row: u32, stage: Stage) {
        self.rows[row as usize].stages[at(stage)].again += 1;
    }

    /// Who took the place is gone, if it is `of` them: a later attempt may have it by now.
    pub(super) fn gone(&mut self, row: u32, of: impl Fn(&Row) -> bool) {
        let place = &mut self.rows[row as usize];
        if !of(place) {
            return;
        }
        (place.run, place.asks) = (None, false);
        Stage::BOTH.into_iter().for_each(|stage| self.refresh(row, stage));
    }

    /// Stages with tasks to launch in a rack that is dead go by the plan no more. Gives how many those are.
    pub(super) fn release(&mut self, dead: impl Fn(RackIdx) -> bool) -> u32 {
        let mut released = 0;
        for row in 0..self.rows.len() as u32 {
            let Row { run, asks, taken, .. } = self.rows[row as usize];
            let taken_and_gone = taken.is_some() && run.is_none() && !asks;
            for stage in Stage::BOTH {
                let part = &self.rows[row as usize].stages[at(stage)];
                let waits = |share: &Share| part.told == 0 || share.launched < part.quota(share);
                if !part.released && !taken_and_gone && part.shares.iter().any(|share| dead(share.rack) && waits(share))
                {
                    self.rows[row as usize].stages[at(stage)].released = true;
                    self.refresh(row, stage);
                    released += 1;
                }
            }
        }
        released
    }

    /// Puts the stage's steps where they belong.
    fn refresh(&mut self, row: u32, stage: Stage) {
        let of = &self.rows[row as usize];
        let part = &of.stages[at(stage)];
        let gives = part.gives();
        for share in &part.shares {
            let Some(steps) = self.steps.get_mut(share.rack.at()) else { continue };
            if of.run.is_some() && !part.released && (gives || part.has_part_left(share)) {
                steps.insert(share.place, (row, stage));
            } else {
                steps.remove(&share.place);
            }
        }
    }
}

/// Position of a stage in a row.
pub(super) const fn at(stage: Stage) -> usize {
    match stage {
        Stage::Map => 0,
        Stage::Reduce => 1,
    }
}
