//! Nodes are lost and come back.
//!
//! The RM knows of a loss at once. What had ended on the node counts as ended: its ApplicationMaster had heard of it.
//! What ran there fails and waits again. Of the finished maps there, those whose output some reduce still needs are
//! lost and wait again; the output of the others is only gone, and those maps wait again when a reduce of the job
//! fails later, for it must fetch everything anew. Reduces elsewhere keep what they have fetched.
//!
//! Reduces that wait for such a map may hold every container, and then it would never run. So, as MapReduce's
//! ApplicationMaster does, one of them gives its container up to such a map once nothing has moved for a while.

use super::fabric::{JobNo, ReadNo};
use super::rm::Sim;
use super::run::SimError;
use super::shares::Kind;
use super::tables::{Phase, State, Task};
use hintd_model::cluster::NodeState;
use hintd_model::units::{Bytes, Micros, NodeIdx};
use hintd_policy::dispatch::DispatchEvent;

/// So long nothing moves before a reduce gives way.
const PREEMPTED_AFTER: Micros = Micros::from_secs(10);

impl Sim<'_> {
    /// A node that is down already stays so.
    pub(super) fn node_down(&mut self, node: NodeIdx) {
        if !self.nodes[node.at()].up {
            return;
        }
        self.nodes[node.at()].up = false;
        self.snapshot.state[node.at()] = NodeState::Lost;
        self.report_ends(node);
        let failed = self.fail_tasks(node);
        self.fabric.node(self.now_s(), node, false);
        self.lose_outputs(node);
        for job in failed {
            self.run_gone_again(job);
        }
        self.note_room(node);
    }

    /// A node comes back empty; one that is up already goes on as it was.
    pub(super) fn node_up(&mut self, node: NodeIdx) {
        if self.nodes[node.at()].up {
            return;
        }
        self.nodes[node.at()].up = true;
        self.snapshot.state[node.at()] = NodeState::Running;
        self.fabric.node(self.now_s(), node, true);
        self.note_room(node);
    }

    /// Tasks that ran there fail, in the order of their launches; rows of jobs that lost a reduce, ascending.
    fn fail_tasks(&mut self, node: NodeIdx) -> Vec<u32> {
        let mut there: Vec<(u64, u32)> =
            self.tasks.iter().filter(|(_, task)| task.node == node).map(|(row, task)| (task.serial, row)).collect();
        there.sort_unstable();
        let mut reducing = Vec::new();
        for (_, row) in there {
            let task = self.tasks.remove(row);
            self.fail(&task, row);
            if task.kind == Kind::Reduce {
                reducing.push(task.job);
            }
        }
        reducing.sort_unstable();
        reducing.dedup();
        reducing
    }

    fn fail(&mut self, task: &Task, row: u32) {
        let now_s = self.now_s();
        self.work.stop(self.now, task.serial);
        match task.kind {
            Kind::Map => {
                if task.phase == Phase::Reads {
                    self.fabric.stop_read(now_s, ReadNo(row));
                }
                self.nodes[task.node.at()].output -= self.jobs.at(task.job).shares.map_output(task.index).0;
            }
            Kind::Reduce => self.fabric.reduce_stops(now_s, JobNo(task.job), task.index),
        }
        self.spend(task, self.now);
        self.leave(task);
        self.jobs.at_mut(task.job).group_mut(task.kind).set(task.index, State::Waits);
        self.waiting += 1;
        self.ledger.failed();
        self.tell_finished(task, self.now, Bytes::ZERO, Bytes::ZERO, true);
    }

    /// Where every container is held and nothing moves, one reduce of a job with waiting maps gives way to the first of
    /// them: the one launched last. Policies that bound early reduces get there only by lost maps.
    pub(super) fn preempt(&mut self) -> Result<(), SimError> {
        let idle = self.now.saturating_sub(self.moved);
        let maps_wait = |row: u32| self.jobs.at(row).maps.waiting > 0;
        if idle < PREEMPTED_AFTER || self.nodes.iter().any(|node| node.free() > 0) {
            return Ok(());
        }
        let held = self.tasks.iter().filter(|(_, task)| task.kind == Kind::Reduce && task.phase == Phase::Reads);
        let last = held.filter(|(_, task)| maps_wait(task.job)).max_by_key(|(_, task)| task.serial);
        let Some((row, _)) = last else { return Ok(()) };
        let task = self.tasks.remove(row);
        self.fail(&task, row);
        self.run_gone_again(task.job);
        let job = self.jobs.at(task.job);
        let map = job.maps.first_waiting().expect("maps of the job wait");
        self.launch(self.names.task(job.attempt, Kind::Map, map), task.node)
    }

    /// Outputs of finished maps that lay there are gone.
    fn lose_outputs(&mut self, node: NodeIdx) {
        let now_s = self.now_s();
        for row in self.jobs.in_order() {
            let job = self.jobs.at(row);
            if job.reduces.len() == 0 {
                continue;
            }
            let there: Vec<u32> = job.maps.ended_on(node).filter(|map| !job.gone.contains(map)).collect();
            for map in there {
                if self.fabric.map_lost(now_s, JobNo(row), map, node) {
                    self.run_again(row, map);
                } else {
                    self.jobs.at_mut(row).gone.insert(map);
                }
            }
        }
    }

    /// A reduce of the job failed: what was gone is needed again.
    fn run_gone_again(&mut self, row: u32) {
        for map in std::mem::take(&mut self.jobs.at_mut(row).gone) {
            self.run_again(row, map);
        }
    }

    fn run_again(&mut self, row: u32, map: u32) {
        let job = self.jobs.at_mut(row);
        job.maps.set(map, State::Waits);
        job.maps.told -= 1;
        job.reruns += 1;
        self.waiting += 1;
        let task = self.names.task(job.attempt, Kind::Map, map);
        self.observe(&DispatchEvent::Lost(task));
    }
}
