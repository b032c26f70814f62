//! What a run is given, whom it tells how far it is, and how it fails.

use super::fabric::FabricError;
use crate::job_model::{JobModel, JobModelError};
use crate::settings::{Scripted, SimSettings};
use crate::trace::TraceError;
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{Bytes, HostName, Micros, NodeIdx};
use hintd_policy::{ClassSpeed, DynDispatch, PlaceData};
use std::ops::ControlFlow;

/// A cluster as the simulator takes it: generic containers, as in the papers.
#[derive(Debug, Clone)]
pub struct SimCluster {
    /// Nodes, racks, network; what it says is occupied stays so through the whole run.
    pub snapshot: Snapshot,
    /// Size of every container.
    pub container: Resource,
    /// Containers by node; no more than fit beside what the snapshot says is occupied are used.
    pub containers: Vec<u32>,
    /// Speed by node, `None` for a node without a class; empty: no node has one.
    pub speeds: Vec<Option<ClassSpeed>>,
}

impl SimCluster {
    /// What a task takes on the node that takes `time` on one without a class. `job`: its job's input and shuffle.
    pub(super) fn task_time(&self, node: NodeIdx, time: Micros, job: (Bytes, Bytes)) -> Micros {
        match self.speeds.get(node.at()).copied().flatten() {
            Some(class) => Micros((time.0 as f64 / class.of(job.0, job.1)).round() as u64),
            None => time,
        }
    }
}

/// One run: all that its result is a function of, but for the jobs.
#[derive(Clone, Copy)]
pub struct SimRun<'a> {
    /// Where.
    pub cluster: &'a SimCluster,
    /// Task counts and times.
    pub model: &'a JobModel,
    /// Everything else.
    pub settings: &'a SimSettings,
    /// The policy's name, for the report.
    pub policy: &'a str,
    /// The policy.
    pub dispatch: &'a dyn DynDispatch,
    /// The same policy, where it says where data goes, and in which racks recurring jobs are gathered; none: as HDFS and YARN do
    /// by themselves.
    pub places: Option<&'a dyn PlaceData>,
}

/// An earlier run further off than that says nothing of this one.
pub const HISTORY_ERROR_MAX: f64 = 1e6;

impl SimRun<'_> {
    /// Refuses what no run can have.
    pub(super) fn check(&self) -> Result<(), SimError> {
        let (settings, cluster) = (self.settings, self.cluster);
        let refuse = |field, problem| Err(SimError::Settings { field, problem });
        let at_least_one = [
            ("heartbeat", settings.heartbeat.0),
            ("users", settings.users.into()),
            ("replicas", settings.replicas.into()),
            ("fetches", settings.fetches.into()),
            ("congested_per_mille", settings.congested_per_mille.into()),
        ];
        if let Some((field, _)) = at_least_one.into_iter().find(|&(_, value)| value == 0) {
            return refuse(field, "0: it must be at least 1".to_owned());
        }
        if !(0.0..=1.0).contains(&settings.recurring) {
            return refuse("recurring", format!("{}: it must lie between 0 and 1", settings.recurring));
        }
        if !(1.0..=HISTORY_ERROR_MAX).contains(&settings.history_error) {
            let problem = format!("{}: it must lie between 1 and {HISTORY_ERROR_MAX}", settings.history_error);
            return refuse("history_error", problem);
        }
        let lie =
            [("history_lie.bytes", settings.history_lie.bytes), ("history_lie.times", settings.history_lie.times)];
        if let Some((field, factor)) = lie.into_iter().find(|(_, factor)| !(1e-3..=1e3).contains(factor)) {
            return refuse(field, format!("{factor}: it must lie between 0.001 and 1000"));
        }
        if let Some((field, problem)) = settings.delays.problem() {
            return refuse(field, problem);
        }
        if cluster.container.is_zero() {
            return refuse("container", "of no size: it must be of at least one kind".to_owned());
        }
        let (known, nodes) = (cluster.containers.len(), cluster.snapshot.nodes());
        if known != nodes {
            return refuse("containers", format!("given for {known} nodes, and the cluster has {nodes}"));
        }
        let given = cluster.speeds.len();
        if given != 0 && given != nodes {
            return refuse("speeds", format!("given for {given} nodes, and the cluster has {nodes}"));
        }
        if let Some((field, problem)) = cluster.speeds.iter().flatten().find_map(ClassSpeed::problem) {
            return refuse("speeds", format!("{field} {problem}"));
        }
        for event in &settings.script {
            if let Scripted::NodeDown(host) | Scripted::NodeUp(host) = &event.what
                && cluster.snapshot.statics.find(host.as_str()).is_none()
            {
                return refuse("script", format!("the cluster has no node \"{host}\""));
            }
        }
        Ok(())
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time since the trace's start.
    pub now: Micros,
    /// Jobs submitted, those that never fit among them.
    pub submitted: u64,
    /// Jobs that ended.
    pub done: u64,
    /// Events handled.
    pub events: u64,
}

/// Told now and then how far a run is; may end it. Any closure will do.
pub trait SimWatch {
    /// Break ends the run at once: its report is whole in form and counts what did not end as unfinished.
    fn progress(&mut self, at: Progress) -> ControlFlow<()>;
}

impl<F: FnMut(Progress) -> ControlFlow<()>> SimWatch for F {
    fn progress(&mut self, at: Progress) -> ControlFlow<()> {
        self(at)
    }
}

/// Why a run has no report.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The trace is damaged.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A job whose submit time lies before that of the job ahead of it.
    #[error("job {job} is submitted at {submit_s} s, after a job of {previous_s} s: the trace is not in order")]
    BackInTime {
        /// Its name.
        job: String,
        /// Its submit time, seconds.
        submit_s: f64,
        /// Where the run stood, seconds.
        previous_s: f64,
    },
    /// A job whose input lies where no node is.
    #[error("job {job} has input on node \"{host}\", which the cluster does not have")]
    Block {
        /// Its name.
        job: String,
        /// The host.
        host: HostName,
    },
    /// The network can't be simulated.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// No job could run under the model.
    #[error(transparent)]
    Model(#[from] JobModelError),
    /// A setting that no run can have, or that names what the cluster lacks.
    #[error("{field}: {problem}")]
    Settings {
        /// Which setting.
        field: &'static str,
        /// What stands there and what is wrong with it.
        problem: String,
    },
    /// A policy launched what it may not: its own error, not the trace's.
    #[error("at {at_s} s the policy launched {task} on {node}: {reason}")]
    Launch {
        /// When, seconds.
        at_s: f64,
        /// Application attempt, group and number.
        task: String,
        /// Where.
        node: HostName,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// Jobs wait, nothing runs, nothing is to come, and the policy has launched nothing for long.
    #[error("at {at_s} s nothing has moved for {idle_s} s: {waiting} tasks wait, {running} stand still, {jobs} jobs")]
    Stalled {
        /// When, seconds.
        at_s: f64,
        /// Since how long, seconds.
        idle_s: f64,
        /// Tasks that wait for a container.
        waiting: u64,
        /// Tasks that have a container and wait for bytes.
        running: u64,
        /// Jobs that have not ended.
        jobs: u64,
    },
    /// The simulator broke one of its own rules.
    #[error("at {at_s} s an invariant does not hold: {what}")]
    Invariant {
        /// When, seconds.
        at_s: f64,
        /// What was found and what should have been.
        what: String,
    },
}
