//! What a follower remembers.

use super::FollowerSettings;
use super::active_plan::{ActivePlan, PlaceClaimant, PlanFollowStats, RunArrival};
use crate::dispatch::{DispatchEvent, View};
use crate::plan::{Plan, Stage};
use crate::pool::{Change, JobIdx, Kind, MapCounts, Pool, Task};
use hintd_model::units::{AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often racks are looked at for being dead.
const LOOK_EVERY: Micros = Micros::from_secs(1);

/// State of `jobpacker` and of `corral`: what waits and runs, the plan, and how far it is followed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FollowState {
    pub(super) manner: FollowerSettings,
    pub(super) pool: Pool,
    pub(super) book: Option<ActivePlan>,
    /// Keys of runs that were told.
    keys: BTreeMap<AttemptId, Arc<str>>,
    /// By job of the pool.
    pub(super) jobs: Vec<JobRow>,
    /// Runs that are answered at once: nothing of them is in the pool.
    pub(super) asking: BTreeMap<AttemptId, Asking>,
    /// By rack: heavy jobs that run there, with how many containers.
    heavy: Vec<BTreeMap<JobIdx, u32>>,
    /// Jobs that the plan does not place, or not in all.
    unplaced: BTreeSet<JobIdx>,
    /// Racks without a usable node.
    dead: Vec<bool>,
    looked: Option<Timestamp>,
    pub(super) stats: PlanFollowStats,
}

/// A run that is answered at once, and waits for nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asking {
    /// Its place in the plan.
    pub(super) row: Option<u32>,
    /// When it first asked.
    pub(super) came: Timestamp,
    /// When it last did.
    pub(super) last: Timestamp,
    /// Maps and reduces that it has asked for so far.
    pub(super) tasks: [u32; 2],
}

/// What is known of a job beside the pool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct JobRow {
    /// Its place in the plan.
    pub(super) row: Option<u32>,
    pub(super) heavy: bool,
    /// When its first group was told.
    pub(super) came: Timestamp,
    /// Containers that run, by group and rack.
    running: Vec<(u32, RackIdx, u32)>,
}

impl FollowState {
    pub(in crate::jobpacker) fn new(manner: FollowerSettings) -> Self {
        Self {
            manner,
            pool: Pool::new(manner.slow_start, manner.early_reduces),
            book: None,
            keys: BTreeMap::new(),
            jobs: Vec::new(),
            asking: BTreeMap::new(),
            heavy: Vec::new(),
            unplaced: BTreeSet::new(),
            dead: Vec::new(),
            looked: None,
            stats: PlanFollowStats::default(),
        }
    }

    /// How well the plan is followed.
    #[must_use]
    pub const fn stats(&self) -> PlanFollowStats {
        self.stats
    }

    /// The recurring job that the attempt is a run of, where it was told.
    pub(super) fn key(&self, attempt: AttemptId) -> Option<&Arc<str>> {
        self.keys.get(&attempt)
    }

    /// The plan in force.
    #[must_use]
    pub fn plan(&self) -> Option<&Arc<Plan>> {
        self.book.as_ref().map(|book| &book.plan)
    }

    pub(in crate::jobpacker) fn observe(&mut self, event: &DispatchEvent, view: &View<'_>) {
        match event {
            DispatchEvent::Plan(plan) => return self.follow(plan.as_ref(), view),
            DispatchEvent::Run { attempt, key } => {
                self.keys.insert(*attempt, Arc::clone(key));
                return match self.pool.find(*attempt) {
                    Some(job) => self.bind(job, view.now),
                    None => self.claim_place(*attempt, view.now),
                };
            }
            DispatchEvent::Asks { attempt, came, tasks } => return self.asks(*attempt, *came, *tasks, view),
            DispatchEvent::Done(attempt) => {
                self.keys.remove(attempt);
                self.asks_no_more(*attempt);
            }
            _ => {}
        }
        self.forget_running(event);
        match self.pool.observe(event, view) {
            Change::Nothing => {}
            Change::Waiting { job, new } => self.waiting(job, new, view),
            Change::Launched { task, node, .. } => self.launched(task, rack_of(view, node), node),
            Change::Ended { task, node } => self.stopped(task, rack_of(view, node)),
            Change::Failed { task, node } => {
                self.stopped(task, rack_of(view, node));
                self.task_runs_again(task);
            }
            Change::Lost { task } => self.task_runs_again(task),
            Change::Gone { job, .. } => self.gone(job),
        }
    }

    /// Another plan, or none. Runs take their places anew, in the order in which they came.
    fn follow(&mut self, plan: Option<&Arc<Plan>>, view: &View<'_>) {
        self.stats = PlanFollowStats { expired: self.stats.expired, ..PlanFollowStats::default() };
        self.book = None;
        self.jobs.iter_mut().for_each(|job| job.row = None);
        let expired = plan.is_some_and(|plan| plan.until <= view.now);
        self.stats.expired += u32::from(expired);
        if let Some(plan) = plan.filter(|_| !expired) {
            self.book = Some(ActivePlan::new(Arc::clone(plan), view));
            self.looked = None;
            self.look(view);
        }
        // Who has asked for nothing for so long has what it needs, or is gone and nobody said so.
        let late = self.manner.late;
        self.asking.retain(|_, asking| view.now.since(asking.last) <= late);
        self.asking.values_mut().for_each(|asking| asking.row = None);
        let came = |job: JobIdx| self.jobs.get(job.at()).map_or(Timestamp(0), |row| row.came);
        let jobs = self.pool.jobs().map(|job| ((came(job), self.pool.since(job)), self.pool.attempt(job), Some(job)));
        let asking = self.asking.iter().map(|(&attempt, asking)| ((asking.came, 0), attempt, None));
        let mut runs: Vec<((Timestamp, u64), AttemptId, Option<JobIdx>)> = jobs.chain(asking).collect();
        runs.sort_unstable();
        for (_, attempt, job) in runs {
            match job {
                Some(job) => self.bind(job, view.now),
                None => self.claim_place(attempt, view.now),
            }
        }
    }

    /// Sees which racks are dead, if it is time.
    pub(super) fn look(&mut self, view: &View<'_>) {
        if self.book.is_none() || self.looked.is_some_and(|at| view.now.since(at) < LOOK_EVERY) {
            return;
        }
        self.looked = Some(view.now);
        let snapshot = view.snapshot;
        let usable = |node: &NodeIdx| snapshot.state[node.at()].usable();
        let dead: Vec<bool> = snapshot.statics.members.iter().map(|nodes| !nodes.iter().any(usable)).collect();
        let news = dead.iter().enumerate().any(|(rack, &dead)| dead && !self.dead.get(rack).copied().unwrap_or(false));
        self.dead = dead;
        // A plan that is new has been told of no dead rack.
        if let Some(book) = self.book.as_mut().filter(|_| news || self.stats == PlanFollowStats::default()) {
            let dead = &self.dead;
            let released = book.release(|rack| dead.get(rack.at()).copied().unwrap_or(true));
            self.stats.released += released;
            if released > 0 {
                self.pool.jobs().collect::<Vec<_>>().into_iter().for_each(|job| self.note_place(job));
            }
        }
    }

    /// A run that looks for its place now.
    pub(super) const fn coming(&self, came: Timestamp, now: Timestamp) -> RunArrival {
        RunArrival { came, now, late: self.manner.late }
    }

    fn bind(&mut self, job: JobIdx, now: Timestamp) {
        self.row_of(job);
        let coming = self.coming(self.jobs[job.at()].came, now);
        let key = self.keys.get(&self.pool.attempt(job));
        if let (Some(key), Some(book), None) = (key, &mut self.book, self.jobs[job.at()].row) {
            let attempt = self.pool.attempt(job);
            self.jobs[job.at()].row =
                book.claim_place((attempt, key), &coming, PlaceClaimant::Waits(job), &mut self.stats);
        }
        self.tell_sizes(job);
    }

    fn row_of(&mut self, job: JobIdx) {
        if job.at() >= self.jobs.len() {
            self.jobs.resize(job.at() + 1, JobRow::default());
        }
    }

    fn waiting(&mut self, job: JobIdx, new: bool, view: &View<'_>) {
        self.row_of(job);
        if new {
            self.jobs[job.at()] = JobRow { came: view.now, ..JobRow::default() };
            if !self.asked_before(job) {
                return self.bind(job, view.now);
            }
        }
        self.tell_sizes(job);
    }

    /// Tasks of the job, and whether it is heavy, as far as they are known.
    fn tell_sizes(&mut self, job: JobIdx) {
        let row = self.jobs[job.at()].row;
        if let (Some(row), Some(book)) = (row, &mut self.book) {
            let MapCounts { all: maps, waiting, .. } = self.pool.maps(job);
            // Of groups whose role is unknown the pool only counts what waits.
            let told = |stage: Stage, tasks: u32| {
                if tasks == 0 { book.plan.jobs[row as usize].stage(stage).tasks } else { tasks }
            };
            let tasks = [told(Stage::Map, maps.max(waiting)), told(Stage::Reduce, self.pool.reduces(job).all)];
            book.told(row, tasks);
        }
        let planned = row.zip(self.book.as_ref()).map(|(row, book)| book.plan.jobs[row as usize].heavy);
        let reads = |most: Bytes| self.pool.input(job) > most;
        let heavy = self.manner.heavy_input.is_some_and(|most| planned.unwrap_or_else(|| reads(most)));
        self.set_heavy(job, heavy);
        self.note_place(job);
    }

    fn note_place(&mut self, job: JobIdx) {
        let reduces = self.pool.reduces(job).all > 0;
        if self.planned(job, Stage::Map) && (!reduces || self.planned(job, Stage::Reduce)) {
            self.unplaced.remove(&job);
        } else {
            self.unplaced.insert(job);
        }
    }

    /// Whether the plan places every job.
    pub(super) fn all_placed(&self) -> bool {
        self.unplaced.is_empty()
    }

    fn set_heavy(&mut self, job: JobIdx, heavy: bool) {
        if std::mem::replace(&mut self.jobs[job.at()].heavy, heavy) == heavy {
            return;
        }
        for (_, rack, count) in self.jobs[job.at()].running.clone() {
            count_heavy(&mut self.heavy, job, rack, if heavy { i64::from(count) } else { -i64::from(count) });
        }
    }

    fn launched(&mut self, task: Task, rack: Option<RackIdx>, node: NodeIdx) {
        if let Some(rack) = rack {
            self.count(task, rack, 1);
        }
        let stage = self.stage_of(task);
        if let (Some(row), Some(book)) = (self.jobs[task.job.at()].row, &mut self.book) {
            book.launched(row, stage, (rack, node));
            self.note_place(task.job);
        }
    }

    fn stopped(&mut self, task: Task, rack: Option<RackIdx>) {
        if let Some(rack) = rack {
            self.count(task, rack, -1);
        }
    }

    fn task_runs_again(&mut self, task: Task) {
        let stage = self.stage_of(task);
        if let (Some(row), Some(book)) = (self.jobs[task.job.at()].row, &mut self.book) {
            book.task_runs_again(row, stage);
            self.note_place(task.job);
        }
    }

    fn gone(&mut self, job: JobIdx) {
        self.unplaced.remove(&job);
        let row = std::mem::take(&mut self.jobs[job.at()]);
        for (_, rack, count) in row.running.iter().filter(|_| row.heavy) {
            count_heavy(&mut self.heavy, job, *rack, -i64::from(*count));
        }
        if let (Some(row), Some(book)) = (row.row, &mut self.book) {
            book.gone(row, |place| place.run == Some(job));
        }
    }

    /// Containers of a group that is told again count no more.
    fn forget_running(&mut self, event: &DispatchEvent) {
        let DispatchEvent::Waiting(told) = event else { return };
        let Some(job) = self.pool.find(told.attempt) else { return };
        let pool = &self.pool;
        let again = |group: u32| pool.name(Task { job, group, index: 0 }).group == told.group;
        let row = &mut self.jobs[job.at()];
        let gone: Vec<_> = row.running.extract_if(.., |running| again(running.0)).collect();
        for (_, rack, count) in gone.iter().filter(|_| row.heavy) {
            count_heavy(&mut self.heavy, job, *rack, -i64::from(*count));
        }
    }

    fn count(&mut self, task: Task, rack: RackIdx, by: i64) {
        let row = &mut self.jobs[task.job.at()];
        let found = row.running.iter().position(|running| (running.0, running.1) == (task.group, rack));
        match found {
            Some(at) => {
                row.running[at].2 = changed(row.running[at].2, by);
                if row.running[at].2 == 0 {
                    row.running.swap_remove(at);
                }
            }
            None if by > 0 => row.running.push((task.group, rack, 1)),
            None => return,
        }
        if row.heavy {
            count_heavy(&mut self.heavy, task.job, rack, by);
        }
    }

    pub(super) fn stage_of(&self, task: Task) -> Stage {
        if self.pool.kind(task) == Kind::Reduce { Stage::Reduce } else { Stage::Map }
    }

    /// Whether a heavy task of another job runs in the rack.
    pub(super) fn heavy_beside(&self, rack: RackIdx) -> impl Fn(JobIdx) -> bool + '_ {
        let heavy = self.heavy.get(rack.at());
        move |job| heavy.is_some_and(|heavy| heavy.len() > usize::from(heavy.contains_key(&job)))
    }

    /// Whether the plan alone says where the job's tasks of that stage run.
    pub(super) fn planned(&self, job: JobIdx, stage: Stage) -> bool {
        let row = self.jobs.get(job.at()).and_then(|job| job.row);
        row.zip(self.book.as_ref()).is_some_and(|(row, book)| book.goes_by_plan(row, stage))
    }
}

fn rack_of(view: &View<'_>, node: NodeIdx) -> Option<RackIdx> {
    view.snapshot.statics.rack.get(node.at()).copied()
}

fn count_heavy(heavy: &mut Vec<BTreeMap<JobIdx, u32>>, job: JobIdx, rack: RackIdx, by: i64) {
    if rack.at() >= heavy.len() {
        heavy.resize(rack.at() + 1, BTreeMap::new());
    }
    let count = heavy[rack.at()].entry(job).or_insert(0);
    *count = changed(*count, by);
    if *count == 0 {
        heavy[rack.at()].remove(&job);
    }
}

fn changed(count: u32, by: i64) -> u32 {
    u32::try_from(i64::from(count) + by).expect("as many stop as were counted, and a rack has far below 2^32")
}
