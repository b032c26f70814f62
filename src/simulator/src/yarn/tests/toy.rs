//! A toy scheduler and toy clusters: first come, first served, no locality, reduces after a share of the maps.

use crate::trace::job::TraceJob;
use crate::yarn::SimCluster;
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{AttemptId, BitsPerSec, Bytes, Micros};
use hintd_policy::Dispatch;
use hintd_policy::dispatch::{Advice, DispatchEvent, Offer, TaskRef, View};
use hintd_policy::sample;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CONTAINER: Resource = Resource::new(1024, 1);

/// First come, first served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fifo {
    /// Share of a job's maps that are done before its reduces begin.
    pub(super) slow_start: f64,
    /// Reduces of jobs with waiting maps hold no more containers.
    pub(super) early: usize,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct FifoState {
    #[serde(skip)]
    jobs: BTreeMap<AttemptId, Waits>,
}

#[derive(Debug, Clone, Default)]
struct Waits {
    maps: BTreeSet<u32>,
    reduces: BTreeSet<u32>,
    count: usize,
    done: usize,
    reducing: usize,
}

impl Dispatch for Fifo {
    type State = FifoState;

    fn start(&self) -> FifoState {
        FifoState::default()
    }

    fn observe(&self, state: &mut FifoState, event: &DispatchEvent, _view: &View<'_>) {
        match event {
            DispatchEvent::Waiting(group) => {
                let job = state.jobs.entry(group.attempt).or_default();
                if &*group.group == "map" {
                    (job.maps, job.count) = ((0..group.count).collect(), group.count as usize);
                } else {
                    job.reduces = (0..group.count).collect();
                }
            }
            DispatchEvent::Launched { task, .. } => {
                let job = state.jobs.get_mut(&task.attempt).unwrap();
                if &*task.group == "map" {
                    assert!(job.maps.remove(&task.index));
                } else {
                    assert!(job.reduces.remove(&task.index));
                    job.reducing += 1;
                }
            }
            DispatchEvent::Finished { task, failed, .. } => {
                let job = state.jobs.get_mut(&task.attempt).unwrap();
                match (&*task.group, failed) {
                    ("map", false) => job.done += 1,
                    ("map", true) => drop(job.maps.insert(task.index)),
                    (_, failed) => {
                        job.reducing -= 1;
                        if *failed {
                            job.reduces.insert(task.index);
                        }
                    }
                }
            }
            DispatchEvent::Lost(task) => {
                let job = state.jobs.get_mut(&task.attempt).unwrap();
                job.done -= 1;
                assert!(job.maps.insert(task.index));
            }
            DispatchEvent::Done(attempt) => {
                let job = state.jobs.remove(attempt).unwrap();
                assert!(job.maps.is_empty() && job.reduces.is_empty() && job.reducing == 0);
            }
            DispatchEvent::RackUse { .. }
            | DispatchEvent::Run { .. }
            | DispatchEvent::Recurs { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Plan(_) => {}
        }
    }

    fn offer(&self, state: &mut FifoState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        assert_eq!(offer.free, view.snapshot.room(offer.node, view.leases));
        let early: usize = state.jobs.values().filter(|job| !job.maps.is_empty()).map(|job| job.reducing).sum();
        for (&attempt, job) in &state.jobs {
            let ready = job.done as f64 >= self.slow_start * job.count as f64;
            let reduce = job.reduces.first().filter(|_| ready && (job.maps.is_empty() || early < self.early));
            let (group, index) = match (reduce, job.maps.first()) {
                (Some(&reduce), _) => ("reduce", reduce),
                (None, Some(&map)) => ("map", map),
                (None, None) => continue,
            };
            return vec![Advice::Launch(TaskRef { attempt, group: group.into(), index })];
        }
        vec![]
    }
}

/// Racks of equal nodes: NICs of 250 Mbit/s, uplinks as given.
pub(super) fn cluster(racks: usize, nodes: usize, containers: u32, uplink: u64) -> SimCluster {
    let spec = TreeSpec {
        racks,
        hosts_per_rack: nodes,
        cores: 1,
        host_bits_per_s: BitsPerSec(250_000_000),
        uplink_bits_per_s: BitsPerSec(uplink),
        ..TreeSpec::default()
    };
    let total = CONTAINER.times(containers.into());
    let snapshot: Snapshot = sample::cluster(&tree(&spec).unwrap(), total, Bytes(0)).snapshot;
    let (containers, speeds) = (vec![containers; snapshot.nodes()], Vec::new());
    SimCluster { containers, speeds, snapshot, container: CONTAINER }
}

/// A job of so many bytes, its tasks as the model says.
pub(super) fn job(number: usize, submit_s: f64, input: u64, shuffle: u64, output: u64) -> TraceJob {
    let (input_path, user, maps, reduces, map_time, reduce_time) = (None, None, None, None, None, None);
    TraceJob {
        name: format!("job{number}").into(),
        submit: Micros((submit_s * 1e6).round() as u64),
        input: Bytes(input),
        shuffle: Bytes(shuffle),
        output: Bytes(output),
        input_path,
        blocks: None,
        user,
        maps,
        reduces,
        map_time,
        reduce_time,
        earlier: crate::Earlier::Untold,
    }
}
