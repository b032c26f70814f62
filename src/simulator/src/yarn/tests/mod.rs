//! The simulator end to end.

mod astray;
mod bad_input;
mod circuits;
mod classes;
mod counters;
mod delays;
mod failures;
mod gathering;
mod plans;
mod property;
mod runs;
mod toy;

use super::{Progress, SimCluster, SimError, SimRun, simulate_with};
use crate::job_model::JobModel;
use crate::report::RunReport;
use crate::settings::SimSettings;
use crate::trace::job::TraceJob;
use hintd_model::units::Bytes;
use hintd_policy::{DynDispatch, Policy};
use std::ops::ControlFlow;
use toy::{Fifo, cluster, job};

const MIB: u64 = 1 << 20;

/// Task times without noise, so that they can be worked out by hand.
fn still() -> JobModel {
    JobModel { sigma: 0.0, ..JobModel::default() }
}

fn fifo() -> Fifo {
    Fifo { slow_start: 0.2, early: 2 }
}

fn plain<'a>(
    cluster: &'a SimCluster,
    model: &'a JobModel,
    settings: &'a SimSettings,
    dispatch: &'a dyn DynDispatch,
) -> SimRun<'a> {
    SimRun { cluster, model, settings, policy: "fifo", dispatch, places: None }
}

fn with(
    cluster: &SimCluster,
    model: &JobModel,
    settings: &SimSettings,
    dispatch: &dyn DynDispatch,
    jobs: &[TraceJob],
    skip: bool,
) -> Result<RunReport, SimError> {
    let run = plain(cluster, model, settings, dispatch);
    let mut on = |_: Progress| ControlFlow::Continue(());
    simulate_with(&run, &mut jobs.iter().cloned().map(Ok), &mut on, skip)
}

/// A policy that schedules and says where data goes.
fn by(
    policy: &dyn Policy,
    cluster: &SimCluster,
    model: &JobModel,
    settings: &SimSettings,
    jobs: &[TraceJob],
) -> Result<RunReport, SimError> {
    let dispatch = policy.as_dispatch().unwrap();
    let run = SimRun { cluster, model, settings, policy: policy.name(), dispatch, places: policy.as_place_data() };
    let mut on = |_: Progress| ControlFlow::Continue(());
    simulate_with(&run, &mut jobs.iter().cloned().map(Ok), &mut on, true)
}

fn report(cluster: &SimCluster, settings: &SimSettings, jobs: &[TraceJob]) -> RunReport {
    with(cluster, &still(), settings, &fifo(), jobs, true).unwrap()
}

/// A trace of jobs of many sizes, submitted a few seconds apart.
fn mixed(jobs: usize) -> Vec<TraceJob> {
    let sizes = [3, 700, 40, 0, 1_500, 129, 5, 300];
    let shuffles = [0, 300, 80, 1, 2_100, 0, 1, 40];
    let at = |index: usize| (index % 8, index as f64 * 3.25);
    (0..jobs)
        .map(|index| (index, at(index)))
        .map(|(index, (of, submit_s))| job(index, submit_s, sizes[of] * MIB, shuffles[of] * MIB + of as u64, MIB))
        .collect()
}
