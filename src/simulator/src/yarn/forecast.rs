//! What a planner would know of a trace and a cluster if it erred in nothing.

use super::SimCluster;
use super::shares::{Kind, Shares};
use crate::job_model::JobModel;
use crate::trace::job::TraceJob;
use hintd_engine::prediction::{Run, Runs, derived_key, steady_path};
use hintd_model::units::{BitsPerSec, Micros, NodeIdx, RackPath, Timestamp};
use hintd_policy::plan::{ExpectedJob, Objective, PlanProblem, RackRoom, fabric_or};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The trace's jobs as recurring jobs of their names, in its order, with the mean time of the very tasks that a run
/// has; jobs that never fit are left out.
#[must_use]
pub fn expected_jobs(trace: &[TraceJob], model: &JobModel) -> Vec<ExpectedJob> {
    let mut runs: BTreeMap<&str, u32> = BTreeMap::new();
    let mut expected = Vec::with_capacity(trace.len());
    for (number, job) in trace.iter().enumerate() {
        let Some(shares) = Shares::new(number as u64, job, model) else { continue };
        let run = runs.entry(&job.name).or_insert(0);
        expected.push(ExpectedJob {
            key: Arc::clone(&job.name),
            run: *run,
            arrival: Timestamp(job.submit.0),
            input: shares.input(),
            maps: mean(&shares, Kind::Map, model),
            reduces: mean(&shares, Kind::Reduce, model),
            shuffle: shares.shuffle(),
        });
        *run += 1;
    }
    expected
}

/// Paths that jobs read, by name.
pub type InputPaths = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// Of one name so many paths at most: a name that reads more kinds of data tells nobody what it reads.
const PATHS_MAX: usize = 16;

/// Which paths jobs of each name read, what changes from run to run left out; what is no path of a file system is left out.
#[must_use]
pub fn input_paths(trace: &[TraceJob]) -> InputPaths {
    let mut found = InputPaths::new();
    for job in trace {
        let path = job.input_path.as_deref().map(steady_path).filter(|path| path.starts_with('/'));
        if let Some(path) = path {
            found.entry(Arc::clone(&job.name)).or_default().insert(path.into());
        }
    }
    found.retain(|_, paths| paths.len() <= PATHS_MAX);
    found
}

/// How a job of a trace is known from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// By what [`derived_key`] finds in name and input path.
    Derived,
    /// By its name as it stands.
    Name,
}

impl KeyRule {
    fn key(self, job: &TraceJob) -> Option<Arc<str>> {
        match self {
            Self::Derived => derived_key(&job.name, job.input_path.as_slice()),
            Self::Name => Some(Arc::clone(&job.name)),
        }
    }
}

/// The trace's jobs as runs that finished, the trace having begun at `from`. Jobs that can't be told from others, or never
/// fit, are left out.
#[must_use]
pub fn finished_runs(trace: &[TraceJob], model: &JobModel, from: Timestamp, rule: KeyRule) -> Runs {
    let mut runs = Runs::default();
    for (number, job) in trace.iter().enumerate() {
        let (Some(shares), Some(key)) = (Shares::new(number as u64, job, model), rule.key(job)) else { continue };
        let submitted = from.plus(job.submit);
        let (input, shuffle) = (shares.input(), shares.shuffle());
        let (maps, reduces) = (mean(&shares, Kind::Map, model), mean(&shares, Kind::Reduce, model));
        runs.note(
            &key,
            Run { submitted, maps, reduces, input, shuffle, application: None, counted: false, ran_on: None },
        );
    }
    runs
}

/// Those jobs on that cluster, from the trace's start until `until` or just after the last of them; of a batch all are
/// there from the start. `None` without a network, unless `uplink` says what racks have in its place.
#[must_use]
pub fn problem(
    cluster: &SimCluster,
    mut jobs: Vec<ExpectedJob>,
    objective: Objective,
    until: Option<Timestamp>,
    uplink: Option<BitsPerSec>,
    seed: u64,
) -> Option<PlanProblem> {
    let from = Timestamp(0);
    if objective == Objective::Batch {
        jobs.iter_mut().for_each(|job| job.arrival = from);
    }
    let last = jobs.iter().map(|job| job.arrival).max().unwrap_or(from);
    let until = until.unwrap_or_else(|| last.plus(Micros(1)));
    jobs.retain(|job| job.arrival < until);
    let (racks, fabric) = (rack_rooms(cluster), fabric_or(&cluster.snapshot, uplink)?);
    Some(PlanProblem { racks, fabric, jobs, objective, made: from, from, until, prediction_error: None, seed })
}

/// Tasks, and the mean time of the very ones that a run has.
fn mean(shares: &Shares, kind: Kind, model: &JobModel) -> (u32, Micros) {
    let tasks = match kind {
        Kind::Map => shares.maps(),
        Kind::Reduce => shares.reduces(),
    };
    let times = (0..tasks).map(|task| u128::from(shares.time(kind, task, model).0));
    (tasks, Micros(times.sum::<u128>().checked_div(tasks.into()).map_or(0, |mean| mean as u64)))
}

/// Racks with the containers that a run has there.
#[must_use]
pub fn rack_rooms(cluster: &SimCluster) -> Vec<RackRoom> {
    let statics = &cluster.snapshot.statics;
    let room = |(rack, nodes): (&RackPath, &Vec<NodeIdx>)| RackRoom {
        rack: rack.clone(),
        containers: nodes.iter().map(|node| cluster.containers[node.at()]).fold(0, u32::saturating_add),
    };
    statics.racks.iter().zip(&statics.members).map(room).filter(|room| room.containers > 0).collect()
}
