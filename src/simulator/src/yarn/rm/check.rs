//! Invariants: counted at every event in a few additions, recounted from the tables now and then and at the end.

use super::super::run::SimError;
use super::super::shares::{Kind, Shares};
use super::super::tables::{Job, Phase};
use super::Sim;
use hintd_model::units::{Bytes, NodeIdx};

/// What should hold, counted beside the tables.
#[derive(Debug)]
pub(in crate::yarn) struct Ledger {
    on: bool,
    /// Tasks of submitted jobs.
    tasks: u64,
    /// Ends of tasks, each run that ended.
    ended: u64,
    /// Runs that failed.
    failed: u64,
    /// Tasks of jobs that are done, and maps of theirs that ran again.
    done: u64,
    reruns: u64,
    /// Bytes of runs whose bytes were all there: map input, shuffle.
    arrived: [u64; 2],
    /// Bytes that done jobs should have read: input, shuffle; reruns apart.
    due: [u64; 2],
    /// Row of the job whose tasks are recounted next.
    recounted: u32,
}

/// So many tasks are recounted at a time, those of the next live jobs in turn: a day's jobs submitted at once are millions.
const RECOUNTED: u64 = 1 << 16;

impl Ledger {
    pub(in crate::yarn) const fn new(on: bool) -> Self {
        Self { on, tasks: 0, ended: 0, failed: 0, done: 0, reruns: 0, arrived: [0; 2], due: [0; 2], recounted: 0 }
    }

    pub(in crate::yarn) fn submitted(&mut self, shares: &Shares) {
        self.tasks += u64::from(shares.maps()) + u64::from(shares.reduces());
    }

    pub(in crate::yarn) const fn ended(&mut self) {
        self.ended += 1;
    }

    pub(in crate::yarn) const fn failed(&mut self) {
        self.failed += 1;
    }

    /// A task has all its bytes.
    pub(in crate::yarn) const fn arrived(&mut self, kind: Kind, bytes: Bytes) {
        self.arrived[kind as usize] += bytes.0;
    }

    pub(in crate::yarn) fn job_done(&mut self, job: &Job) {
        self.done += u64::from(job.maps.len()) + u64::from(job.reduces.len());
        self.reruns += job.reruns;
        self.due[0] += job.shares.input().0;
        self.due[1] += job.shares.shuffle().0;
    }
}

impl Sim<'_> {
    /// Recounts what lives; of tasks' states, those of some jobs.
    pub(in crate::yarn) fn check(&mut self) -> Result<(), SimError> {
        if !self.ledger.on {
            return Ok(());
        }
        let at_s = self.now_s();
        self.fabric.check_circuits().map_err(|what| SimError::Invariant { at_s, what })?;
        self.check_nodes()?;
        self.recount()?;
        let (mut waiting, mut held) = (0, 0);
        for (_, job) in self.jobs.iter() {
            waiting += u64::from(job.maps.waiting) + u64::from(job.reduces.waiting);
            held += u64::from(job.running);
        }
        self.hold("tasks that wait", waiting, self.waiting)?;
        self.hold("tasks in containers", held, self.tasks.running())?;
        let told = self.tasks.iter().filter(|(_, task)| task.phase == Phase::Ended).count() as u64;
        self.hold(
            "launches",
            self.ledger.ended + self.ledger.failed + self.tasks.running() - told,
            self.tasks.launched(),
        )
    }

    /// Recounts the next jobs' tasks.
    fn recount(&mut self) -> Result<(), SimError> {
        let (mut left, mut next) = (RECOUNTED, 0);
        for (row, job) in self.jobs.from(self.ledger.recounted) {
            for group in [&job.maps, &job.reduces] {
                self.hold("tasks of a job", group.recount(), (group.waiting, group.ended))?;
                left = left.saturating_sub(group.len().into());
            }
            if left == 0 {
                next = row + 1;
                break;
            }
        }
        self.ledger.recounted = next;
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), SimError> {
        let mut used = vec![(0_u32, 0_u64); self.nodes.len()];
        for (_, task) in self.tasks.iter() {
            let node = &mut used[task.node.at()];
            node.0 += 1;
            if task.kind == Kind::Map && task.phase != Phase::Ended {
                node.1 += self.jobs.at(task.job).shares.map_output(task.index).0;
            }
        }
        for (at, (node, used)) in self.nodes.iter().zip(used).enumerate() {
            self.hold("containers and map output of a node", (node.used, node.output), used)?;
            let (total, occupied) = (self.snapshot.statics.total[at], self.snapshot.occupied[at]);
            if node.used > node.limit || !occupied.within(&total) {
                let host = self.snapshot.host(NodeIdx::new(at));
                let what = format!("node {host} holds {} containers, room is for {}", node.used, node.limit);
                return Err(SimError::Invariant { at_s: self.now_s(), what });
            }
        }
        Ok(())
    }

    /// After the last job's end: nothing is left, every task ended once, every byte arrived once a run.
    pub(in crate::yarn) fn check_end(&mut self) -> Result<(), SimError> {
        if !self.ledger.on {
            return Ok(());
        }
        let ledger = &self.ledger;
        self.hold("tasks that wait at the end", self.waiting, 0)?;
        self.hold("tasks in containers at the end", self.tasks.running(), 0)?;
        self.hold("tasks of done jobs", ledger.done, ledger.tasks)?;
        self.hold("ends of tasks, reruns apart", ledger.ended - ledger.reruns, ledger.tasks)?;
        let carried = self.fabric.bytes();
        for (kind, name) in [(Kind::Map, "input"), (Kind::Reduce, "shuffle")] {
            let (arrived, due) = (ledger.arrived[kind as usize], ledger.due[kind as usize]);
            let carried = match kind {
                Kind::Map => carried.node_local_input.0 + carried.rack_local_input.0 + carried.cross_rack_input.0,
                Kind::Reduce => carried.shuffle().0,
            };
            let disturbed = ledger.failed + ledger.reruns > 0;
            if arrived < due || carried < arrived || (!disturbed && (arrived, carried) != (due, due)) {
                let what = format!("of {name}, {due} bytes were due, {arrived} arrived, {carried} were carried");
                return Err(SimError::Invariant { at_s: self.now_s(), what });
            }
        }
        Ok(())
    }

    fn hold<T: PartialEq + std::fmt::Debug>(&self, what: &str, found: T, expected: T) -> Result<(), SimError> {
        if found == expected {
            return Ok(());
        }
        let what = format!("{what}: {found:?}, and {expected:?} expected");
        Err(SimError::Invariant { at_s: self.now_s(), what })
    }
}
