//! What lives while it runs: jobs, tasks in containers, nodes. Dense tables whose rows are used again, so that memory
//! grows with what runs and waits, not with the trace.

use super::shares::{Kind, Shares};
use hintd_model::units::{ApplicationId, AttemptId, Micros, NodeIdx};
use hintd_policy::dispatch::{TaskInput, TaskRef};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where a task of a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// For a container.
    Waits,
    /// In the container of that row.
    Runs(u32),
    /// Ended there.
    Ended(NodeIdx),
}

/// A [`State`] in four bytes: there are as many as tasks of live jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packed(u32);

const RUNS: u32 = 1 << 31;

impl Packed {
    const WAITS: Self = Self(u32::MAX);

    const fn of(state: State) -> Self {
        match state {
            State::Waits => Self::WAITS,
            State::Runs(row) => Self(row | RUNS),
            State::Ended(node) => Self(node.0),
        }
    }

    const fn state(self) -> State {
        match self.0 {
            u32::MAX => State::Waits,
            word if word & RUNS != 0 => State::Runs(word & !RUNS),
            node => State::Ended(NodeIdx(node)),
        }
    }
}

/// Tasks of one kind of a job.
#[derive(Debug, Clone)]
pub(super) struct Group {
    tasks: Vec<Packed>,
    /// For a container.
    pub(super) waiting: u32,
    /// Ended, told of or not.
    pub(super) ended: u32,
    /// Ended, and the RM was told.
    pub(super) told: u32,
}

impl Group {
    fn new(count: u32) -> Self {
        Self { tasks: vec![Packed::WAITS; count as usize], waiting: count, ended: 0, told: 0 }
    }

    pub(super) const fn len(&self) -> u32 {
        self.tasks.len() as u32
    }

    pub(super) fn state(&self, index: u32) -> Option<State> {
        self.tasks.get(index as usize).map(|packed| packed.state())
    }

    /// Moves a task on and keeps the counts; [`Group::told`] is the caller's.
    pub(super) fn set(&mut self, index: u32, state: State) {
        let packed = &mut self.tasks[index as usize];
        match packed.state() {
            State::Waits => self.waiting -= 1,
            State::Ended(_) => self.ended -= 1,
            State::Runs(_) => {}
        }
        *packed = Packed::of(state);
        match state {
            State::Waits => self.waiting += 1,
            State::Ended(_) => self.ended += 1,
            State::Runs(_) => {}
        }
    }

    /// Numbers of the tasks that ended on `node`.
    pub(super) fn ended_on(&self, node: NodeIdx) -> impl Iterator<Item = u32> + '_ {
        let word = Packed::of(State::Ended(node));
        (0..self.len()).filter(move |&index| self.tasks[index as usize] == word)
    }

    /// Nodes of the tasks that ended.
    pub(super) fn ended_nodes(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        self.tasks.iter().filter_map(|packed| match packed.state() {
            State::Ended(node) => Some(node),
            State::Waits | State::Runs(_) => None,
        })
    }

    pub(super) fn first_waiting(&self) -> Option<u32> {
        self.tasks.iter().position(|&packed| packed == Packed::WAITS).map(|at| at as u32)
    }

    /// Waiting and ended, counted anew.
    pub(super) fn recount(&self) -> (u32, u32) {
        self.tasks.iter().fold((0, 0), |(waiting, ended), packed| match packed.state() {
            State::Waits => (waiting + 1, ended),
            State::Ended(_) => (waiting, ended + 1),
            State::Runs(_) => (waiting, ended),
        })
    }
}

/// A job that was submitted and is not done.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// In the trace, from 0.
    pub(super) number: u64,
    pub(super) attempt: AttemptId,
    pub(super) submit: Micros,
    pub(super) shares: Shares,
    /// By map.
    pub(super) inputs: Vec<TaskInput>,
    pub(super) maps: Group,
    pub(super) reduces: Group,
    /// Containers that it has, as the RM sees it.
    pub(super) running: u32,
    /// Maps whose output is gone and was needed by nobody when it went.
    pub(super) gone: BTreeSet<u32>,
    pub(super) began_reducing: bool,
    pub(super) last_end: Micros,
    /// Maps that ran again after they had ended.
    pub(super) reruns: u64,
    /// Time that maps took in all, and reduces until they had their bytes, those that ended.
    pub(super) times: [Micros; 2],
}

impl Job {
    pub(super) fn new(number: u64, submit: Micros, shares: Shares) -> Self {
        let (maps, reduces) = (Group::new(shares.maps()), Group::new(shares.reduces()));
        let (attempt, inputs) = (attempt_of(number), Vec::new());
        let (running, gone, began_reducing, last_end, reruns) = (0, BTreeSet::new(), false, submit, 0);
        let times = [Micros::ZERO; 2];
        Self {
            number,
            attempt,
            submit,
            shares,
            inputs,
            maps,
            reduces,
            running,
            gone,
            began_reducing,
            last_end,
            reruns,
            times,
        }
    }

    pub(super) const fn group(&self, kind: Kind) -> &Group {
        match kind {
            Kind::Map => &self.maps,
            Kind::Reduce => &self.reduces,
        }
    }

    pub(super) const fn group_mut(&mut self, kind: Kind) -> &mut Group {
        match kind {
            Kind::Map => &mut self.maps,
            Kind::Reduce => &mut self.reduces,
        }
    }

    /// Whether the RM was told the end of every task.
    pub(super) const fn complete(&self) -> bool {
        self.maps.told == self.maps.len() && self.reduces.told == self.reduces.len()
    }
}

/// The trace's `number`-th job as YARN would name its attempt.
pub(super) const fn attempt_of(number: u64) -> AttemptId {
    AttemptId { application: ApplicationId { cluster_timestamp: 0, sequence: number as u32 + 1 }, attempt: 1 }
}

/// Live jobs.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    rows: Vec<Option<Job>>,
    unused: Vec<u32>,
    /// Row by number in the trace, for jobs that live.
    by_number: Vec<u32>,
    live: u32,
}

const NO_ROW: u32 = u32::MAX;

impl Jobs {
    pub(super) fn insert(&mut self, job: Job) -> u32 {
        let number = job.number as usize;
        if self.by_number.len() <= number {
            self.by_number.resize(number + 1, NO_ROW);
        }
        let row = self.unused.pop().unwrap_or(self.rows.len() as u32);
        if row as usize == self.rows.len() {
            self.rows.push(None);
        }
        self.rows[row as usize] = Some(job);
        self.by_number[number] = row;
        self.live += 1;
        row
    }

    pub(super) fn remove(&mut self, row: u32) -> Job {
        let job = self.rows[row as usize].take().expect("a job is removed once, when it is done");
        self.by_number[job.number as usize] = NO_ROW;
        self.unused.push(row);
        self.live -= 1;
        job
    }

    pub(super) fn at(&self, row: u32) -> &Job {
        self.rows[row as usize].as_ref().expect("tasks are of live jobs")
    }

    pub(super) fn at_mut(&mut self, row: u32) -> &mut Job {
        self.rows[row as usize].as_mut().expect("tasks are of live jobs")
    }

    /// Row of a live attempt.
    pub(super) fn find(&self, attempt: AttemptId) -> Option<u32> {
        let number = attempt.application.sequence.checked_sub(1)?;
        let row = *self.by_number.get(number as usize)?;
        (row != NO_ROW && self.at(row).attempt == attempt).then_some(row)
    }

    pub(super) const fn live(&self) -> u32 {
        self.live
    }

    /// Rows of live jobs, by number in the trace.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut rows: Vec<(u64, u32)> = self.iter().map(|(row, job)| (job.number, row)).collect();
        rows.sort_unstable();
        rows.into_iter().map(|(_, row)| row).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Job)> {
        self.from(0)
    }

    /// Those from a row on.
    pub(super) fn from(&self, first: u32) -> impl Iterator<Item = (u32, &Job)> {
        let rows = self.rows.iter().enumerate().skip(first as usize);
        rows.filter_map(|(row, job)| Some((row as u32, job.as_ref()?)))
    }
}

/// What a task in a container is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its container starts.
    Starts,
    /// Waits for its bytes.
    Reads,
    /// Works on them.
    Works,
    /// Ended; its node has not reported yet.
    Ended,
}

/// A task in a container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    /// Counts launches, from 1: tells this use of the row from others.
    pub(super) serial: u64,
    /// Row of its job.
    pub(super) job: u32,
    pub(super) kind: Kind,
    pub(super) index: u32,
    pub(super) node: NodeIdx,
    pub(super) phase: Phase,
    pub(super) launched: Micros,
    /// When its bytes were there.
    pub(super) ready: Micros,
    pub(super) ended: Micros,
}

/// Tasks in containers.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    rows: Vec<Option<Task>>,
    unused: Vec<u32>,
    launched: u64,
}

impl Tasks {
    /// Takes a task in and gives it its serial number.
    pub(super) fn insert(&mut self, mut task: Task) -> u32 {
        self.launched += 1;
        task.serial = self.launched;
        let row = self.unused.pop().unwrap_or(self.rows.len() as u32);
        if row as usize == self.rows.len() {
            self.rows.push(None);
        }
        self.rows[row as usize] = Some(task);
        row
    }

    pub(super) fn remove(&mut self, row: u32) -> Task {
        self.unused.push(row);
        self.rows[row as usize].take().expect("a task leaves its container once")
    }

    pub(super) fn at_mut(&mut self, row: u32) -> &mut Task {
        self.rows[row as usize].as_mut().expect("rows of tasks that run are asked for")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Task)> {
        self.rows.iter().enumerate().filter_map(|(row, task)| Some((row as u32, task.as_ref()?)))
    }

    /// Tasks in containers.
    pub(super) const fn running(&self) -> u64 {
        (self.rows.len() - self.unused.len()) as u64
    }

    /// Launches so far.
    pub(super) const fn launched(&self) -> u64 {
        self.launched
    }
}

/// A node, beside its columns in the snapshot.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) up: bool,
    /// Containers that it can hold.
    pub(super) limit: u32,
    /// Containers that it holds.
    pub(super) used: u32,
    /// Output of its running maps, bytes.
    pub(super) output: u64,
    /// Rows of tasks that ended since its last report, in the order of their ends.
    pub(super) ended: SmallVec<[u32; 8]>,
}

impl Node {
    pub(super) const fn free(&self) -> u32 {
        if self.up { self.limit - self.used } else { 0 }
    }
}

/// Names that every event carries, made once.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) map: Arc<str>,
    pub(super) reduce: Arc<str>,
    pub(super) queue: Arc<str>,
    users: Vec<Arc<str>>,
}

impl Names {
    pub(super) fn new(users: u32) -> Self {
        let users = (0..users).map(|user| format!("user{user}").into()).collect();
        Self { map: "map".into(), reduce: "reduce".into(), queue: "default".into(), users }
    }

    pub(super) fn users(&self) -> &[Arc<str>] {
        &self.users
    }

    pub(super) const fn group(&self, kind: Kind) -> &Arc<str> {
        match kind {
            Kind::Map => &self.map,
            Kind::Reduce => &self.reduce,
        }
    }

    pub(super) fn kind(&self, group: &Arc<str>) -> Option<Kind> {
        // Policies mostly give the very names back that they were told.
        let is = |name: &Arc<str>| Arc::ptr_eq(group, name) || group == name;
        if is(&self.map) {
            Some(Kind::Map)
        } else if is(&self.reduce) {
            Some(Kind::Reduce)
        } else {
            None
        }
    }

    pub(super) fn task(&self, attempt: AttemptId, kind: Kind, index: u32) -> TaskRef {
        TaskRef { attempt, group: Arc::clone(self.group(kind)), index }
    }
}
