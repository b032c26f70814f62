//! Jobs come.

use super::fabric::JobNo;
use super::hdfs::{Advisor, Dataset};
use super::rm::Sim;
use super::run::SimError;
use super::shares::{Kind, Shares};
use super::tables::Job;
use super::work::Piece;
use crate::streams::{USERS, stream};
use crate::trace::job::TraceJob;
use hintd_model::units::{Bytes, HostName, Micros, NodeIdx, Timestamp};
use hintd_policy::dispatch::{DispatchEvent, TaskInput, WaitingGroup};
use rand::RngExt as _;
use smallvec::SmallVec;
use std::sync::Arc;

impl Sim<'_> {
    /// A job's line of the trace is due: its client starts.
    pub(super) fn submit(&mut self, job: TraceJob) -> Result<(), SimError> {
        let number = self.tally.submitted;
        self.tally.submitted += 1;
        self.starting.insert(number, (job, self.now));
        match self.run.settings.delays.client {
            Micros::ZERO => self.master_starts(number),
            start => {
                self.work.begin(self.now, Piece::Client(number), start);
                Ok(())
            }
        }
    }

    /// A job's client has submitted it: its ApplicationMaster starts.
    pub(super) fn master_starts(&mut self, number: u64) -> Result<(), SimError> {
        let (job, _) = self.starting.remove(&number).expect("a client starts before its job is taken in");
        match self.run.settings.delays.master {
            Micros::ZERO => self.take_in(&job, number, self.now),
            start => {
                self.starting.insert(number, (job, self.now));
                self.work.begin(self.now, Piece::Master(number), start);
                Ok(())
            }
        }
    }

    /// Takes a job in and tells the policy of its maps and reduces; one that never fits is only counted.
    pub(super) fn take_in(&mut self, job: &TraceJob, number: u64, submitted: Micros) -> Result<(), SimError> {
        self.moved = self.now;
        let shares = Shares::new(number, job, self.run.model);
        let Some(shares) = shares.filter(|_| self.nodes.iter().any(|node| node.limit > 0)) else {
            self.tally.never_fits(&job.name);
            return Ok(());
        };
        self.begin_sampling();
        self.tally.submit(submitted);
        let dataset = job.input_path.as_deref().map_or(Dataset::Job(number), Dataset::Path);
        let blocks = (0..shares.maps()).map(|map| shares.map_input(map));
        let reader = self.reader(job);
        let (earlier, homes) = self.earlier(number, job, &shares);
        let plan = self.run.settings.plan.as_deref();
        let snapshot = &self.snapshot;
        let advice = |policy| Advisor { policy, snapshot, reader: Some(&reader), plan, homes: &homes };
        let advisor = self.run.places.map(advice);
        let inputs = match &job.blocks {
            Some(hosts) => self.said(job, blocks, hosts)?,
            None => self.replicas.place(dataset, blocks, advisor).expect("a policy that advises on data refuses none"),
        };
        // Who is gathered reads what HDFS put everywhere.
        let gathered = !self.run.settings.data_placement;
        let homes = match &earlier {
            Some(run) if gathered => self.gathered(number, run, &inputs),
            _ => homes,
        };
        let (maps, reduces) = (shares.maps(), shares.reduces());
        let user = job.user.clone().unwrap_or_else(|| self.drawn_user(number));
        self.waiting += u64::from(maps) + u64::from(reduces);
        self.racks.job_begins(shares.shuffle(), maps);
        self.ledger.submitted(&shares);
        let row = self.jobs.insert(Job::new(number, submitted, shares));
        if reduces > 0 {
            let shuffle = self.jobs.at(row).shares.shuffle();
            self.fabric.job(JobNo(row), maps.into(), reduces.into(), shuffle);
        }
        if self.run.settings.plan.is_some() {
            let attempt = self.jobs.at(row).attempt;
            self.observe(&DispatchEvent::Run { attempt, key: Arc::clone(&job.name) });
        }
        if let Some(run) = earlier {
            let attempt = self.jobs.at(row).attempt;
            self.observe(&DispatchEvent::Recurs { attempt, run, homes, gathered });
        }
        self.jobs.at_mut(row).inputs = self.tell_waiting(row, Kind::Map, &user, inputs);
        if reduces > 0 {
            self.tell_waiting(row, Kind::Reduce, &user, Vec::new());
        }
        Ok(())
    }

    /// Inputs of maps where the trace says on which hosts their blocks lie.
    fn said(
        &self,
        job: &TraceJob,
        blocks: impl Iterator<Item = Bytes>,
        hosts: &[Vec<HostName>],
    ) -> Result<Vec<TaskInput>, SimError> {
        let node = |host: &HostName| {
            let unknown = || SimError::Block { job: job.name.to_string(), host: host.clone() };
            self.snapshot.statics.find(host.as_str()).ok_or_else(unknown)
        };
        let input = |(bytes, hosts): (Bytes, &Vec<HostName>)| {
            let mut nodes = hosts.iter().map(node).collect::<Result<SmallVec<[NodeIdx; 3]>, _>>()?;
            nodes.sort_unstable();
            Ok(TaskInput { bytes, nodes })
        };
        blocks.zip(hosts).map(input).collect()
    }

    /// Whose plan says where the job's input lies: its own, or where it reads what another read before, that one's.
    fn reader(&mut self, job: &TraceJob) -> Arc<str> {
        match &job.input_path {
            Some(path) => Arc::clone(self.readers.entry(Arc::clone(path)).or_insert_with(|| Arc::clone(&job.name))),
            None => Arc::clone(&job.name),
        }
    }

    /// Gives the inputs back: the policy has seen them.
    fn tell_waiting(&mut self, row: u32, kind: Kind, user: &Arc<str>, inputs: Vec<TaskInput>) -> Vec<TaskInput> {
        let job = self.jobs.at(row);
        let name = self.names.group(kind);
        let event = DispatchEvent::Waiting(WaitingGroup {
            attempt: job.attempt,
            user: Arc::clone(user),
            queue: Arc::clone(&self.names.queue),
            group: Arc::clone(name),
            role: Arc::clone(name),
            count: job.group(kind).len(),
            size: self.run.cluster.container,
            inputs,
            output_ratio: self.run.settings.known_ratios.then(|| job.shares.ratio()).flatten(),
            since: Timestamp(self.now.0),
        });
        self.observe(&event);
        match event {
            DispatchEvent::Waiting(group) => group.inputs,
            _ => Vec::new(),
        }
    }

    /// By (seed, job) alone: every policy meets the same users.
    fn drawn_user(&self, number: u64) -> Arc<str> {
        let users = self.names.users();
        Arc::clone(&users[stream([self.run.settings.seed, number, USERS, 0]).random_range(0..users.len())])
    }
}
