//! What a planner would know of a trace and a cluster if it erred in nothing.

use super::SimCluster;
use super::shares::Shares;
use super::tables::Kind;
use crate::policy::plan::{ExpectedJob, RackRoom};
use crate::sim::job_model::JobModel;
use crate::sim::trace::job::TraceJob;
use crate::units::{Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The trace's jobs as recurring jobs of their names, in its order, with the mean time of the very tasks that a run
/// has; jobs that never fit are left out.
#[must_use]
pub fn expected_jobs(trace: &[TraceJob], model: &JobModel) -> Vec<ExpectedJob> {
    let mut runs: BTreeMap<&str, u32> = BTreeMap::new();
    let mut expected = Vec::with_capacity(trace.len());
    for (number, job) in trace.iter().enumerate() {
        let Some(shares) = Shares::new(number as u64, job, model) else { continue };
        let mean = |kind, tasks: u32| {
            let times = (0..tasks).map(|task| u128::from(shares.time(kind, task, model).0));
            (tasks, Micros(times.sum::<u128>().checked_div(tasks.into()).map_or(0, |mean| mean as u64)))
        };
        let run = runs.entry(&job.name).or_insert(0);
        expected.push(ExpectedJob {
            key: Arc::clone(&job.name),
            run: *run,
            arrival: Timestamp(job.submit.0),
            maps: mean(Kind::Map, shares.maps()),
            reduces: mean(Kind::Reduce, shares.reduces()),
            shuffle: shares.shuffle(),
        });
        *run += 1;
    }
    expected
}

/// Racks with the containers that a run has there.
#[must_use]
pub fn rack_rooms(cluster: &SimCluster) -> Vec<RackRoom> {
    let statics = &cluster.snapshot.statics;
    let room = |(rack, nodes): (&crate::units::RackPath, &Vec<crate::units::NodeIdx>)| RackRoom {
        rack: rack.clone(),
        containers: nodes.iter().map(|node| cluster.containers[node.at()]).fold(0, u32::saturating_add),
    };
    statics.racks.iter().zip(&statics.members).map(room).filter(|room| room.containers > 0).collect()
}
