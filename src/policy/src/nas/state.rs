//! What `nas` remembers: the pool, and what only its mechanisms ask for.

use super::params::{NasParams, Shuffle};
use super::rules::{self, Spread};
use super::skips::Skips;
use crate::dispatch::{DispatchEvent, View, WaitingGroup};
use crate::pool::{Bits, Change, JobIdx, Kind, Pool, Task, UserIdx};
use hintd_model::cluster::Resource;
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::units::{Bytes, Micros, NodeIdx, Timestamp};
use serde::{Deserialize, Serialize};

/// State of `nas`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NasState {
    pub(super) pool: Pool,
    /// D^m_i of users with waiting maps.
    pub(super) map_skips: Skips,
    /// D^r_i of users with reduces that may be launched.
    pub(super) reduce_skips: Skips,
    /// Racks whose uplink or downlink is congested.
    congested: Bits,
    /// Maps that run, by node.
    running: Vec<Vec<Running>>,
    /// By row of the pool's jobs.
    jobs: Vec<JobRow>,
    /// Users with reduces that may be launched and no waiting maps in their jobs.
    pub(super) late: Bits,
    /// Users in line for reduces whose ready jobs changed since CR-RTS last saw them.
    pub(super) changed: Bits,
    /// Users with ready shuffle-light jobs, as CR-RTS last saw.
    pub(super) light: Bits,
    /// Users whose jobs changed since CR-RTS last saw who has light maps.
    changed_maps: Bits,
    /// Users with waiting maps of shuffle-light jobs, as CR-RTS last saw.
    pub(super) light_maps: Bits,
    /// No reduce that was ever told of is smaller.
    pub(super) smallest_reduce_mb: u64,
    wave: Wave,
}

/// A map that runs on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Running {
    task: Task,
    input: Bytes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct JobRow {
    /// CR-RTS passed over its reduces.
    delayed: bool,
    map_size: Resource,
    /// Of ended maps.
    spent: Micros,
    ended: u32,
}

/// What Eq. 3.3 and 3.5 are found from, as of the last refresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Wave {
    /// None where there was no job: the next offer looks again.
    refreshed: Option<Timestamp>,
    /// ΣS_i.
    shuffle: Bytes,
    /// ΣK_i.
    maps: u64,
    /// Mean container of a map.
    unit: Resource,
    spread: Spread,
}

impl NasState {
    pub(super) fn new(params: &NasParams) -> Self {
        Self {
            pool: Pool::new(params.fixed_threshold, params.early_reduces),
            map_skips: Skips::default(),
            reduce_skips: Skips::default(),
            congested: Bits::default(),
            running: Vec::new(),
            jobs: Vec::new(),
            late: Bits::default(),
            changed: Bits::default(),
            light: Bits::default(),
            changed_maps: Bits::default(),
            light_maps: Bits::default(),
            smallest_reduce_mb: u64::MAX,
            wave: Wave::default(),
        }
    }

    pub(super) fn observe(&mut self, params: &NasParams, event: &DispatchEvent, view: &View<'_>) {
        if let DispatchEvent::RackUse { rack, per_mille } = event {
            if *per_mille >= params.enter_per_mille() {
                self.congested.set(rack.at(), true);
            } else if *per_mille < params.leave_per_mille() {
                self.congested.set(rack.at(), false);
            }
            return;
        }
        self.forget_running(event);
        match self.pool.observe(event, view) {
            Change::Nothing => {}
            Change::Waiting { job, new } => {
                if let DispatchEvent::Waiting(told) = event {
                    self.waiting(job, new, told);
                }
                self.learnt(params, job);
            }
            Change::Launched { task, node, .. } => self.launched(task, node),
            Change::Ended { task, node } => {
                self.stopped(task, node);
                if let (Kind::Map, DispatchEvent::Finished { duration, .. }) = (self.pool.kind(task), event) {
                    let row = &mut self.jobs[task.job.at()];
                    (row.spent, row.ended) = (row.spent.saturating_add(*duration), row.ended.saturating_add(1));
                }
                self.learnt(params, task.job);
            }
            Change::Failed { task, node } => {
                self.stopped(task, node);
                self.touch(self.pool.user(task.job));
            }
            Change::Lost { task } => self.learnt(params, task.job),
            Change::Gone { user, .. } => self.touch(user),
        }
    }

    /// Containers of an application that is done, or of a group that is told again, count no more.
    fn forget_running(&mut self, event: &DispatchEvent) {
        let (attempt, group) = match event {
            DispatchEvent::Done(attempt) => (*attempt, None),
            DispatchEvent::Waiting(told) => (told.attempt, Some(&told.group)),
            _ => return,
        };
        // Mostly nothing of it runs, and no node needs to be looked at.
        let Some(job) = self.pool.find(attempt).filter(|&job| self.pool.running(job) > 0) else { return };
        let pool = &self.pool;
        let goes = |task: Task| task.job == job && group.is_none_or(|group| pool.name(task).group == *group);
        self.running.iter_mut().for_each(|tasks| tasks.retain(|running| !goes(running.task)));
    }

    fn waiting(&mut self, job: JobIdx, new: bool, told: &WaitingGroup) {
        if job.at() >= self.jobs.len() {
            self.jobs.resize(job.at() + 1, JobRow::default());
        }
        let row = &mut self.jobs[job.at()];
        if new {
            *row = JobRow::default();
        }
        match &*told.role {
            "map" => row.map_size = told.size,
            "reduce" => self.smallest_reduce_mb = self.smallest_reduce_mb.min(told.size.memory_mb()),
            _ => {}
        }
    }

    fn launched(&mut self, task: Task, node: NodeIdx) {
        let user = self.pool.user(task.job);
        if self.pool.kind(task) == Kind::Reduce {
            self.reduce_skips.reset(user);
        } else {
            if node.at() >= self.running.len() {
                self.running.resize(node.at() + 1, Vec::new());
            }
            self.running[node.at()].push(Running { task, input: self.pool.input_of(task) });
            self.map_skips.reset(user);
        }
        self.touch(user);
    }

    fn stopped(&mut self, task: Task, node: NodeIdx) {
        let Some(tasks) = self.running.get_mut(node.at()) else { return };
        if let Some(at) = tasks.iter().position(|running| running.task == task) {
            tasks.swap_remove(at);
        }
    }

    /// The job's shuffle, or its share of maps done, is another.
    fn learnt(&mut self, params: &NasParams, job: JobIdx) {
        self.set_threshold(params, job);
        self.touch(self.pool.user(job));
    }

    /// Eq. 3.5.
    fn set_threshold(&mut self, params: &NasParams, job: JobIdx) {
        if params.adaptive_threshold && params.ca_rts {
            let shuffle = self.pool.shuffle(job);
            let share = rules::completion_threshold(shuffle, self.wave.spread, params.t_min, params.t_max);
            self.pool.set_slow_start(job, share);
        }
    }

    /// The user is in the lines where it belongs.
    fn touch(&mut self, user: UserIdx) {
        self.map_skips.line(user, self.pool.users_with_maps().has(user.at()));
        self.changed_maps.set(user.at(), true);
        let late = self.pool.reduce_jobs(user, false).next().is_some();
        let ready = late || self.pool.reduce_jobs(user, true).next().is_some();
        self.late.set(user.at(), late);
        self.reduce_skips.line(user, ready);
        self.changed.set(user.at(), ready);
        self.light.set(user.at(), false);
    }

    /// Sees which users have waiting maps that CR-RTS does not hold back.
    pub(super) fn see_light_maps(&mut self, params: &NasParams) {
        while let Some(user) = self.changed_maps.first_from(0) {
            self.changed_maps.set(user, false);
            let mut jobs = self.pool.map_jobs(UserIdx(user as u32));
            let light = jobs.any(|job| params.class(self.pool.shuffle(job)) == Shuffle::Light);
            self.light_maps.set(user, light);
        }
    }

    /// Finds what Eq. 3.3 and 3.5 need anew, if it is time.
    pub(super) fn refresh(&mut self, params: &NasParams, now: Timestamp) {
        if self.wave.refreshed.is_some_and(|at| now.since(at) < params.refresh()) {
            return;
        }
        let mut wave = Wave::default();
        let mut size = [0_u128; KINDS_MAX];
        let (mut least, mut most) = (Bytes(u64::MAX), Bytes::ZERO);
        for job in self.pool.jobs() {
            let (shuffle, maps) = (self.pool.shuffle(job), self.pool.maps(job).all);
            wave.shuffle = wave.shuffle.saturating_add(shuffle);
            wave.maps += u64::from(maps);
            (least, most) = (least.min(shuffle), most.max(shuffle));
            for (sum, amount) in size.iter_mut().zip(self.jobs[job.at()].map_size.0) {
                *sum += u128::from(amount) * u128::from(maps);
            }
            wave.refreshed = Some(now);
        }
        wave.unit = Resource(size.map(|sum| (sum / u128::from(wave.maps.max(1))) as u64));
        wave.spread = Spread { least: least.min(most), most };
        let moved = wave.spread != self.wave.spread;
        self.wave = wave;
        if moved {
            for job in self.pool.jobs().collect::<Vec<_>>() {
                self.learnt(params, job);
            }
        }
    }

    /// Whether the node's rack is congested.
    pub(super) fn congested(&self, node: NodeIdx, view: &View<'_>) -> bool {
        self.congested.has(view.snapshot.rack(node).at())
    }

    /// TrafficThreshold (Eq. 3.3, with the node's own containers) − predicted output of maps that run on the node.
    pub(super) fn room(&self, node: NodeIdx, view: &View<'_>) -> Bytes {
        let snapshot = view.snapshot;
        let containers = snapshot.rules.how_many(&self.wave.unit, &snapshot.statics.total[node.at()]);
        let room = rules::traffic_threshold(containers, u128::from(self.wave.shuffle.0), self.wave.maps);
        self.running.get(node.at()).into_iter().flatten().fold(room, |room, running| {
            room.saturating_sub(rules::predicted(self.ratio(running.task.job), running.input))
        })
    }

    /// Map output ÷ input (§3.2.1); what a job without reduces puts out is not shuffled.
    pub(super) fn ratio(&self, job: JobIdx) -> f64 {
        if self.pool.reduces(job).all == 0 { 0.0 } else { self.pool.ratio(job).unwrap_or(1.0) }
    }

    /// Whether CR-RTS passed over the job's reduces.
    pub(super) fn delayed(&self, job: JobIdx) -> bool {
        self.jobs[job.at()].delayed
    }

    /// Notes that it did.
    pub(super) fn delay(&mut self, job: JobIdx) {
        self.jobs[job.at()].delayed = true;
    }

    /// When so many more of the job's maps may be done: mean time of its ended maps × waves at its present width.
    pub(super) fn expected_maps(&self, job: JobIdx, more: u32) -> Option<Micros> {
        let row = &self.jobs[job.at()];
        let mean = row.spent.0.checked_div(u64::from(row.ended))?;
        let width = self.pool.running(job).saturating_sub(self.pool.reduces(job).running).max(1);
        Some(Micros(mean.saturating_mul(u64::from(more.div_ceil(width)))))
    }

    /// The share of the job's maps after which its reduces may be launched.
    pub(super) fn threshold(&self, params: &NasParams, job: JobIdx) -> f64 {
        if params.adaptive_threshold && params.ca_rts {
            rules::completion_threshold(self.pool.shuffle(job), self.wave.spread, params.t_min, params.t_max)
        } else {
            params.fixed_threshold
        }
    }
}
