//! Nodes report: ended tasks are told of, free containers are offered, launches are acted on.

use super::fabric::{JobNo, Locality, ReadNo};
use super::rm::Sim;
use super::run::SimError;
use super::shares::Kind;
use super::tables::{Group, Job, Phase, State, Task};
use super::work::Piece;
use crate::report::JobReport;
use hintd_model::cluster::Resource;
use hintd_model::units::{Bytes, Micros, NodeIdx, Timestamp};
use hintd_policy::dispatch::{Advice, DispatchEvent, Offer, TaskRef, View};

impl Sim<'_> {
    /// A node reports.
    pub(super) fn beat(&mut self, node: NodeIdx) -> Result<(), SimError> {
        self.report_ends(node);
        let mut taken = true;
        while taken && self.waiting > 0 && self.nodes[node.at()].free() > 0 {
            taken = self.offer(node)?;
        }
        self.beats.handled(self.now, node);
        Ok(())
    }

    /// One offer; whether it was taken.
    fn offer(&mut self, node: NodeIdx) -> Result<bool, SimError> {
        self.tally.offers += 1;
        let offer = Offer { node, free: self.room(node) };
        let now = Timestamp(self.now.0);
        let view = View { snapshot: &self.snapshot, leases: &self.leases, now, explain: false };
        let advice = self.run.dispatch.offer(&mut self.state, &offer, &view);
        let launch = advice.into_iter().find_map(|advice| match advice {
            Advice::Launch(task) => Some(task),
            Advice::NotYet { .. } => None,
        });
        match launch {
            Some(task) => self.launch(task, node).map(|()| true),
            None => Ok(false),
        }
    }

    /// Room for the containers that the node may still hold, and no more than it has.
    fn room(&self, node: NodeIdx) -> Resource {
        let whole = self.run.cluster.container.times(u64::from(self.nodes[node.at()].free()));
        let mut room = self.snapshot.unoccupied(node);
        for (mine, most) in room.0.iter_mut().zip(whole.0) {
            *mine = most.min(*mine);
        }
        room
    }

    /// Starts a task as the policy says; what breaks a rule is the policy's error.
    pub(super) fn launch(&mut self, task: TaskRef, node: NodeIdx) -> Result<(), SimError> {
        let (row, kind) = self.launchable(&task, node).map_err(|reason| SimError::Launch {
            at_s: self.now_s(),
            task: format!("{}/{}/{}", task.attempt, task.group, task.index),
            node: self.snapshot.host(node).clone(),
            reason,
        })?;
        let index = task.index;
        let launched = Task {
            serial: 0,
            job: row,
            kind,
            index,
            node,
            phase: Phase::Starts,
            launched: self.now,
            ready: self.now,
            ended: self.now,
        };
        let container = self.tasks.insert(launched);
        self.moved = self.now;
        self.waiting -= 1;
        let job = self.jobs.at_mut(row);
        if kind == Kind::Map {
            self.nodes[node.at()].output += job.shares.map_output(index).0;
        }
        job.group_mut(kind).set(index, State::Runs(container));
        job.running += 1;
        if kind == Kind::Reduce && !std::mem::replace(&mut job.began_reducing, true) {
            self.tally.first_reduce(f64::from(job.maps.told) / f64::from(job.maps.len()));
        }
        self.nodes[node.at()].used += 1;
        self.snapshot.containers[node.at()] += 1;
        self.snapshot.occupied[node.at()] = self.snapshot.occupied[node.at()].plus(&self.run.cluster.container);
        self.note_room(node);
        self.observe(&DispatchEvent::Launched { task, node });
        match self.run.settings.delays.task_start {
            Micros::ZERO => self.started(container),
            start => {
                let serial = self.tasks.at_mut(container).serial;
                self.work.begin(self.now, Piece::Task(serial, container), start);
            }
        }
        Ok(())
    }

    /// A task has started in its container: it fetches its bytes.
    fn started(&mut self, container: u32) {
        let task = self.tasks.at_mut(container);
        task.phase = Phase::Reads;
        let Task { job: row, kind, index, node, .. } = *task;
        self.moved = self.now;
        match kind {
            Kind::Map => self.begin_map(row, index, node, container),
            Kind::Reduce => self.fabric.reduce_begins(self.now_s(), JobNo(row), index, node),
        }
    }

    fn launchable(&self, task: &TaskRef, node: NodeIdx) -> Result<(u32, Kind), &'static str> {
        let row = self.jobs.find(task.attempt).ok_or("there is no such application, or it is done")?;
        let kind = self.names.kind(&task.group).ok_or("there is no such group")?;
        match self.jobs.at(row).group(kind).state(task.index) {
            None => Err("the group has no task of that number"),
            Some(State::Runs(_)) => Err("the task runs already"),
            Some(State::Ended(_)) => Err("the task has ended"),
            Some(State::Waits) if self.nodes[node.at()].free() == 0 => Err("the node has no room"),
            Some(State::Waits) => Ok((row, kind)),
        }
    }

    fn begin_map(&mut self, row: u32, index: u32, node: NodeIdx, container: u32) {
        let job = self.jobs.at(row);
        let input = &job.inputs[index as usize];
        let locality = self.fabric.read(self.now.as_secs_f64(), ReadNo(container), node, &input.nodes, input.bytes);
        self.tally.maps_by_locality[locality as usize] += 1;
        if locality == Locality::Node {
            self.go_to_work(container);
        }
    }

    /// The first piece of work is done.
    pub(super) fn piece_ends(&mut self) -> Result<(), SimError> {
        match self.work.end(self.now) {
            Some(Piece::Client(number)) => self.master_starts(number),
            Some(Piece::Master(number)) => {
                let (job, submitted) = self.starting.remove(&number).expect("an ApplicationMaster starts once");
                self.take_in(&job, number, submitted)
            }
            Some(Piece::Task(_, row)) if self.tasks.at_mut(row).phase == Phase::Starts => {
                self.started(row);
                Ok(())
            }
            Some(Piece::Task(_, row)) => {
                self.end(row);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A task is over, and its node will say so when it reports.
    fn end(&mut self, row: u32) {
        let task = self.tasks.at_mut(row);
        (task.phase, task.ended) = (Phase::Ended, self.now);
        let task = *task;
        self.moved = self.now;
        self.spend(&task, self.now);
        self.nodes[task.node.at()].ended.push(row);
        self.note_times(&task);
        self.beats.tells(task.node, true);
        let job = self.jobs.at_mut(task.job);
        job.group_mut(task.kind).set(task.index, State::Ended(task.node));
        job.last_end = self.now;
        self.ledger.ended();
        if task.kind == Kind::Map {
            self.map_ended(&task);
        }
    }

    fn map_ended(&mut self, task: &Task) {
        let job = self.jobs.at(task.job);
        let output = job.shares.map_output(task.index);
        let last = job.maps.ended == job.maps.len();
        let shuffles = job.reduces.len() > 0;
        self.nodes[task.node.at()].output -= output.0;
        if shuffles {
            let (now_s, job) = (self.now_s(), JobNo(task.job));
            self.fabric.map_done(now_s, job, task.index, task.node, output);
            if last {
                self.fabric.maps_complete(now_s, job);
            }
        }
    }

    /// Books the time that a task held its container.
    pub(super) fn spend(&mut self, task: &Task, until: Micros) {
        let ready = if matches!(task.phase, Phase::Starts | Phase::Reads) { until } else { task.ready };
        let spent = &mut self.tally.container;
        match task.kind {
            Kind::Map => spent[0] = spent[0].saturating_add(until.saturating_sub(task.launched)),
            Kind::Reduce => {
                spent[1] = spent[1].saturating_add(ready.saturating_sub(task.launched));
                spent[2] = spent[2].saturating_add(until.saturating_sub(ready));
            }
        }
    }

    /// The RM is told of the tasks that ended on the node; their containers are free.
    pub(super) fn report_ends(&mut self, node: NodeIdx) {
        let ended = std::mem::take(&mut self.nodes[node.at()].ended);
        if ended.is_empty() {
            return;
        }
        self.beats.tells(node, false);
        for row in ended {
            let task = self.tasks.remove(row);
            self.leave(&task);
            let job = self.jobs.at_mut(task.job);
            job.group_mut(task.kind).told += 1;
            let (input, output) = (job.shares.read(task.kind, task.index), job.shares.written(task.kind, task.index));
            self.tell_finished(&task, task.ended, input, output, false);
            if self.jobs.at(task.job).complete() {
                self.job_done(task.job);
            }
        }
        self.note_room(node);
    }

    /// A task's container is free again.
    pub(super) fn leave(&mut self, task: &Task) {
        let at = task.node.at();
        self.jobs.at_mut(task.job).running -= 1;
        self.nodes[at].used -= 1;
        self.snapshot.containers[at] -= 1;
        self.snapshot.occupied[at] = self.snapshot.occupied[at].minus(&self.run.cluster.container);
    }

    pub(super) fn tell_finished(&mut self, task: &Task, at: Micros, input: Bytes, output: Bytes, failed: bool) {
        let attempt = self.jobs.at(task.job).attempt;
        let duration = at.saturating_sub(task.launched);
        let (node, task) = (task.node, self.names.task(attempt, task.kind, task.index));
        self.observe(&DispatchEvent::Finished { task, node, duration, input, output, failed });
    }

    /// Books how long a task that ended took.
    fn note_times(&mut self, task: &Task) {
        let until = if task.kind == Kind::Map { task.ended } else { task.ready };
        let job = self.jobs.at_mut(task.job);
        job.times[task.kind as usize] =
            job.times[task.kind as usize].saturating_add(until.saturating_sub(task.launched));
    }

    fn report_job(&mut self, job: &Job, end: Micros) {
        let statics = &self.snapshot.statics;
        let by_rack = |group: &Group| {
            let mut racks = vec![0; statics.racks.len()];
            group.ended_nodes().for_each(|node| racks[statics.rack[node.at()].at()] += 1);
            racks
        };
        let mean = |kind: Kind| {
            let ended = job.group(kind).len().max(1);
            job.times[kind as usize].as_secs_f64() / f64::from(ended)
        };
        self.tally.by_job.push(JobReport {
            number: job.number,
            jct_s: end.saturating_sub(job.submit).as_secs_f64(),
            map_s: mean(Kind::Map),
            shuffle_s: mean(Kind::Reduce),
            maps: by_rack(&job.maps),
            reduces: by_rack(&job.reduces),
        });
    }

    fn job_done(&mut self, row: u32) {
        let job = self.jobs.remove(row);
        let (shuffle, maps) = (job.shares.shuffle(), job.maps.len());
        self.racks.job_ends(shuffle, maps);
        self.gathering.job_ends(job.number);
        if let Some(homes) = &mut self.homes {
            homes.job_ends(job.number);
        }
        if job.reduces.len() > 0 {
            self.fabric.forget(JobNo(row));
        }
        let end = job.last_end.saturating_add(self.run.settings.delays.job_end);
        self.tally.end(job.number, shuffle, job.submit, end);
        if self.run.settings.by_job {
            self.report_job(&job, end);
        }
        self.ledger.job_done(&job);
        self.observe(&DispatchEvent::Done(job.attempt));
    }
}
