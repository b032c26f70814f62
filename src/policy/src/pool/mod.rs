//! What waits and what runs, indexed for dispatchers: the State that `fair`, `delay`, `shufflewatcher`, `pna` and
//! `nas` share.
//!
//! Users have jobs (attempts of applications), jobs have groups of like tasks. Users stand in the order of fairness:
//! fewest running containers first, then the least recently served, then by name; jobs of a user likewise: fewest
//! running containers first, then as they came. Every event costs a few look-ups in ordered sets of users and jobs
//! and touches the nodes that hold the task's input; nothing looks at all waiting tasks or all nodes.
//!
//! Events count only where they fit: a waiting task is launched, a running one ends, an ended one is lost. Others
//! are passed over. A group that is told again replaces what was told of it; containers that run by the old telling
//! are forgotten.

mod bits;
mod explain;
mod inputs;
mod job;
#[cfg(test)]
pub(crate) mod naive;
mod observe;
mod offered_node;
#[cfg(test)]
mod tests;
mod users;

pub use bits::Bits;
pub use explain::{EXPLAINED_MAX, HoldReason, not_yet};
pub use inputs::{NodeLocation, Pick};
pub use job::{Kind, ShuffleClass};
pub use observe::Change;
pub use offered_node::OfferedNode;

use crate::dispatch::TaskRef;
use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, Bytes, NodeIdx, RackIdx};
use job::Job;
use offered_node::Memory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use users::Users;

/// Share of a job's maps done before its reduces may be launched, unless a policy says otherwise (004 §3.3.1).
pub const SLOW_START: f64 = 0.2;
/// Share of the cluster that reduces of jobs with waiting maps hold at most, unless a policy says otherwise: they
/// keep containers from maps, and every policy is the slower for more of them (docs/decisions.md).
pub const EARLY_REDUCES: f64 = 0.1;

/// A user's row; never given to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserIdx(pub u32);

/// A job's row; given again after [`Change::Gone`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobIdx(pub u32);

/// A task of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Whose.
    pub job: JobIdx,
    /// Position of the group among the job's.
    pub group: u32,
    /// Number within the group.
    pub index: u32,
}

/// Maps of a job. Groups of unknown roles count only among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapCounts {
    /// All of them.
    pub all: u32,
    /// Those that have ended.
    pub done: u32,
    /// Those that wait for a container.
    pub waiting: u32,
}

/// Reduces of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReduceCounts {
    /// All of them.
    pub all: u32,
    /// Those that hold containers.
    pub running: u32,
}

/// How far a task reads its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Locality {
    /// On the node, or nothing is known of its input.
    Node,
    /// In the rack.
    Rack,
    /// In another rack.
    Other,
}

/// What waits and runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pool {
    slow_start: f64,
    early_share: f64,
    users: Users,
    jobs: Vec<Option<Job>>,
    free: Vec<JobIdx>,
    by_attempt: BTreeMap<AttemptId, JobIdx>,
    /// Where a job probably is: the last one told with these bits of its number.
    #[serde(skip)]
    recent: Vec<JobIdx>,
    submitted: u64,
    /// Memory held by reduces of jobs with waiting maps.
    early_mb: u64,
    /// No reduce that was ever told of is smaller.
    smallest_reduce_mb: u64,
    #[serde(skip)]
    memory: Memory,
}

impl UserIdx {
    /// Position in a column.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }

    fn new(at: usize) -> Self {
        Self(u32::try_from(at).expect("users are far below 2^32"))
    }
}

impl JobIdx {
    /// Position in a column.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// Rows of a table of the jobs that events were of last, such as [`Pool::recent`].
pub(crate) const RECENT: usize = 4096;

/// A job's row there.
pub(crate) const fn recent(attempt: AttemptId) -> usize {
    attempt.application.sequence as usize % RECENT
}

impl Pool {
    /// Nothing waits. Reduces may be launched once the share `slow_start` of their job's maps is done; those of jobs
    /// with waiting maps hold at most the share `early_reduces` of the cluster's memory, that is of its containers.
    #[must_use]
    pub fn new(slow_start: f64, early_reduces: f64) -> Self {
        Self {
            slow_start,
            early_share: early_reduces,
            users: Users::default(),
            jobs: Vec::new(),
            free: Vec::new(),
            by_attempt: BTreeMap::new(),
            recent: Vec::new(),
            submitted: 0,
            early_mb: 0,
            smallest_reduce_mb: u64::MAX,
            memory: Memory::default(),
        }
    }

    /// Sets the share of the cluster that reduces of jobs with waiting maps hold at most.
    pub const fn set_early_share(&mut self, share: f64) {
        self.early_share = share;
    }

    /// Rows of users: those ever seen.
    #[must_use]
    pub fn user_rows(&self) -> usize {
        self.users.len()
    }

    /// Jobs that are there, ascending by attempt.
    pub fn jobs(&self) -> impl Iterator<Item = JobIdx> + '_ {
        self.by_attempt.values().copied()
    }

    /// The job of the attempt.
    #[must_use]
    pub fn find(&self, attempt: AttemptId) -> Option<JobIdx> {
        let near = self.recent.get(recent(attempt)).copied();
        let is_it = |job: &JobIdx| self.jobs[job.at()].as_ref().is_some_and(|row| row.attempt == attempt);
        near.filter(is_it).or_else(|| self.by_attempt.get(&attempt).copied())
    }

    /// Users with waiting maps or with reduces that may be launched, in the order of fairness.
    #[must_use]
    pub fn order(&self) -> &[UserIdx] {
        self.users.order()
    }

    /// Users with waiting maps.
    #[must_use]
    pub const fn users_with_maps(&self) -> &Bits {
        &self.users.maps
    }

    /// Users `64 * at ..` with a waiting map that is local on the node, or of whose input nothing is known.
    #[must_use]
    pub fn users_with_local(&self, node: NodeIdx, at: usize) -> u64 {
        self.users.local_word(node, at)
    }

    /// Whether the user has such a map.
    #[must_use]
    pub fn has_local(&self, user: UserIdx, node: NodeIdx) -> bool {
        self.users.local_word(node, user.at() / 64) >> (user.at() % 64) & 1 == 1
    }

    /// The job's waiting maps with input on the node.
    #[must_use]
    pub fn job_local_waiting(&self, job: JobIdx, spot: NodeLocation) -> u32 {
        self.job(job).of_kind(false).map(|group| group.waiting.local(spot)).sum()
    }

    /// The user's jobs with waiting maps, in their order.
    pub fn map_jobs(&self, user: UserIdx) -> impl Iterator<Item = JobIdx> + '_ {
        self.users.get(user).maps.iter().map(|key| key.2)
    }

    /// The user's jobs with waiting reduces that may be launched by their share of maps done, in their order; with
    /// `early` also those with waiting maps.
    pub fn reduce_jobs(&self, user: UserIdx, early: bool) -> impl Iterator<Item = JobIdx> + '_ {
        let user = self.users.get(user);
        let mut late = user.late.iter().peekable();
        let mut early = user.early.iter().take(if early { usize::MAX } else { 0 }).peekable();
        std::iter::from_fn(move || match (late.peek(), early.peek()) {
            (Some(late_key), Some(early_key)) if early_key < late_key => early.next(),
            (Some(_), _) => late.next(),
            (None, _) => early.next(),
        })
        .map(|key| key.2)
    }

    /// Memory held by reduces of jobs with waiting maps, MB.
    #[must_use]
    pub const fn early_reduces_mb(&self) -> u64 {
        self.early_mb
    }

    /// Whose job it is.
    #[must_use]
    pub fn user(&self, job: JobIdx) -> UserIdx {
        self.job(job).user
    }

    /// Which attempt it is.
    #[must_use]
    pub fn attempt(&self, job: JobIdx) -> AttemptId {
        self.job(job).attempt
    }

    /// The job's place in the order of submission.
    #[must_use]
    pub fn since(&self, job: JobIdx) -> u64 {
        self.job(job).since
    }

    /// The job's containers that run.
    #[must_use]
    pub fn running(&self, job: JobIdx) -> u32 {
        self.job(job).running
    }

    /// Its maps.
    #[must_use]
    pub fn maps(&self, job: JobIdx) -> MapCounts {
        let row = self.job(job);
        let waiting = row.of_kind(false).map(|group| group.waiting.left()).sum();
        MapCounts { all: row.maps, done: row.maps_done, waiting }
    }

    /// Its tasks that wait for a container.
    #[must_use]
    pub fn waiting_tasks(&self, job: JobIdx) -> u32 {
        self.job(job).groups.iter().map(|group| group.waiting.left()).sum()
    }

    /// Its reduces.
    #[must_use]
    pub fn reduces(&self, job: JobIdx) -> ReduceCounts {
        let row = self.job(job);
        ReduceCounts { all: row.reduces, running: row.running_reduces }
    }

    /// Share of maps done, in [0, 1]; 1 without maps.
    #[must_use]
    pub fn map_progress(&self, job: JobIdx) -> f64 {
        let row = self.job(job);
        if row.maps == 0 { 1.0 } else { f64::from(row.maps_done) / f64::from(row.maps) }
    }

    /// Whether reduces of the job wait and enough of its maps are done for them.
    #[must_use]
    pub fn reduces_may_run(&self, job: JobIdx) -> bool {
        self.job(job).placed.reduces
    }

    /// Whether the job has maps to launch.
    #[must_use]
    pub fn waits_for_maps(&self, job: JobIdx) -> bool {
        self.job(job).placed.maps
    }

    /// Input of all its maps.
    #[must_use]
    pub fn input(&self, job: JobIdx) -> Bytes {
        self.job(job).input
    }

    /// Output ÷ input of its maps: as told, else the mean over ended maps; none before the first (004 §3.2.1 then
    /// takes 1).
    #[must_use]
    pub fn ratio(&self, job: JobIdx) -> Option<f64> {
        self.job(job).ratio()
    }

    /// Bytes that it shuffles as far as is known: output of ended maps, and ratio × input of the rest (004 Eq. 3.1);
    /// 0 without reduces.
    #[must_use]
    pub fn shuffle(&self, job: JobIdx) -> Bytes {
        self.job(job).shuffle()
    }

    /// Output of its ended maps in the rack.
    #[must_use]
    pub fn output_in(&self, job: JobIdx, rack: RackIdx) -> Bytes {
        self.job(job).output_by_rack.get(rack.at()).copied().unwrap_or(Bytes::ZERO)
    }

    /// Output of its ended maps, by rack; racks at the end without any are left out.
    #[must_use]
    pub fn output_by_rack(&self, job: JobIdx) -> &[Bytes] {
        &self.job(job).output_by_rack
    }

    /// Its reduces that were launched in the rack and have not failed.
    #[must_use]
    pub fn reduces_in(&self, job: JobIdx, rack: RackIdx) -> u32 {
        self.job(job).reduces_by_rack.get(rack.at()).copied().unwrap_or(0)
    }

    /// Reduces that the rack's share of its map output would have: ⌈reduces × share⌉ (004 Eq. 3.4); 0 before any map
    /// ended.
    #[must_use]
    pub fn reduce_share(&self, job: JobIdx, rack: RackIdx) -> u32 {
        let row = self.job(job);
        let (all, here) = (u128::from(row.output.0), u128::from(self.output_in(job, rack).0));
        if all == 0 { 0 } else { (u128::from(row.reduces) * here).div_ceil(all) as u32 }
    }

    /// Output of its ended maps.
    #[must_use]
    pub fn output(&self, job: JobIdx) -> Bytes {
        self.job(job).output
    }

    /// Sets the share of maps done before the job's reduces may be launched.
    pub fn set_slow_start(&mut self, job: JobIdx, share: f64) {
        if self.job(job).slow_start.to_bits() != share.to_bits() {
            self.change(job, false, |row| row.slow_start = share);
        }
    }

    /// The groups of a job.
    #[must_use]
    pub fn groups(&self, job: JobIdx) -> usize {
        self.job(job).groups.len()
    }

    /// Position of the group of that name among the job's.
    #[must_use]
    pub fn group_of(&self, job: JobIdx, name: &str) -> Option<u32> {
        self.job(job).groups.iter().position(|group| &*group.name == name).map(|at| at as u32)
    }

    /// Size of the task's container.
    #[must_use]
    pub fn size_of(&self, task: Task) -> Resource {
        self.job(task.job).groups[task.group as usize].size
    }

    /// Where replicas of the task's input lie, one for each node, ascending by rack and node.
    pub fn replicas_of(&self, task: Task) -> impl Iterator<Item = NodeLocation> + '_ {
        self.job(task.job).groups[task.group as usize].waiting.replicas(task.index)
    }

    /// The task that events and advice name so; `None` if it is not there.
    #[must_use]
    pub fn named(&self, task: &TaskRef) -> Option<Task> {
        self.task_of(task)
    }

    /// What the group's tasks are to the shuffle.
    #[must_use]
    pub fn kind(&self, task: Task) -> Kind {
        self.job(task.job).groups[task.group as usize].kind
    }

    /// Input of the task; 0 if it is not known.
    #[must_use]
    pub fn input_of(&self, task: Task) -> Bytes {
        self.job(task.job).groups[task.group as usize].waiting.input(task.index)
    }

    /// The task as events and advice name it.
    #[must_use]
    pub fn name(&self, task: Task) -> TaskRef {
        let row = self.job(task.job);
        let group = Arc::clone(&row.groups[task.group as usize].name);
        TaskRef { attempt: row.attempt, group, index: task.index }
    }

    /// Lets [`Self::find`] look here first.
    fn remember(&mut self, attempt: AttemptId, job: JobIdx) {
        if self.recent.is_empty() {
            self.recent = vec![job; RECENT];
        }
        self.recent[recent(attempt)] = job;
    }

    fn job(&self, job: JobIdx) -> &Job {
        self.jobs[job.at()].as_ref().expect("rows of jobs are used until the job is gone")
    }
}
