//! The testbed of 001 §V and its applications under one model of iterative jobs.

use crate::gangs::{GangApp, GangGroup, Phase};
use hintd_model::cluster::{EdgePattern, Resource};
use hintd_model::network::build::{BuildError, TreeSpec, tree};
use hintd_model::units::{Bytes, GroupIdx};
use hintd_policy::problem::{EdgeProblem, InputBlock, InputBlocks};
use hintd_policy::sample::{Sample, cluster};
use std::sync::Arc;

/// §V: 1 vcore and 3 GB.
pub(super) const UNIT: Resource = Resource::new(3 * 1024, 1);
/// Containers that a node holds, §V: 64 on 8 nodes.
pub(super) const SLOTS: u64 = 8;
/// Containers of an application beside its ApplicationMaster, §V.
pub(super) const WORKERS: u32 = 11;
/// Seconds between two submissions, §V.
pub(super) const GAP_S: f64 = 10.0;
/// A single SATA disk; the paper states no rate.
pub(super) const DISK: Bytes = Bytes(150_000_000);
/// HDFS's block.
const BLOCK: u64 = 128 << 20;
/// Flink's examples iterate ten times unless told otherwise; the paper does not say.
pub(super) const ITERATIONS: u32 = 10;
/// Input that a container works through in a second, as the common job model has it.
pub(super) const RATE: f64 = 32e6;

/// What an application computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    /// 600 million points, five fixed centres, about 8 GB.
    KMeans,
    /// Kwak's Twitter graph of 2010, about 25 GB: 1.468 billion edges.
    ConnectedComponents,
}

impl Workload {
    pub(super) const ALL: [Self; 2] = [Self::KMeans, Self::ConnectedComponents];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KMeans => "K-means",
            Self::ConnectedComponents => "Connected Components",
        }
    }

    /// §V.
    pub(super) const fn input(self) -> Bytes {
        Bytes(match self {
            Self::KMeans => 8_000_000_000,
            Self::ConnectedComponents => 25_000_000_000,
        })
    }

    /// What an iteration sends from all to all: for every point its centre, its coordinates and a count (4 + 16 + 8
    /// bytes); for every edge, both ways, a vertex and a component (8 + 8).
    pub(super) const fn messages(self) -> Bytes {
        Bytes(match self {
            Self::KMeans => 600_000_000 * 28,
            Self::ConnectedComponents => 2 * 1_468_000_000 * 16,
        })
    }
}

/// The one model of iterative jobs: each iteration works through the input and sends its messages from all to all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Model {
    /// Input that a container works through in a second, bytes.
    pub(super) rate: f64,
    /// An iteration's messages and work ÷ those of the one before.
    pub(super) decay: f64,
    /// Whether messages of one key are combined before they are sent: five centres' then are next to nothing.
    pub(super) combine: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self { rate: RATE, decay: 1.0, combine: false }
    }
}

impl Model {
    /// The application `number` of a run.
    pub(super) fn app(&self, workload: Workload, number: u64, input: Arc<InputBlocks>) -> GangApp {
        let combined = self.combine && workload == Workload::KMeans;
        let mut phases = vec![Phase::Read];
        let mut sent = 0;
        for iteration in 0..ITERATIONS {
            let share = self.decay.powi(iteration as i32);
            let work_s = share * workload.input().as_f64() / f64::from(WORKERS) / self.rate;
            let bytes = if combined { 0 } else { (share * workload.messages().as_f64()) as u64 };
            phases.extend([Phase::Compute(work_s), Phase::Exchange(vec![all_to_all(bytes)])]);
            sent += bytes;
        }
        GangApp {
            submit_s: GAP_S * number as f64,
            master: Some(UNIT),
            groups: vec![GangGroup { name: "worker".into(), count: WORKERS, size: UNIT, input }],
            edges: vec![all_to_all(sent)],
            phases,
        }
    }
}

fn all_to_all(bytes: u64) -> EdgeProblem {
    let worker = GroupIdx(0);
    EdgeProblem { from: worker, to: worker, pattern: EdgePattern::AllToAll, bytes: Bytes(bytes) }
}

/// 8 nodes in 4 racks, two core switches, 1 Gbit/s hosts, 200 Mbit/s for each uplink.
pub(super) fn testbed() -> Result<Sample, BuildError> {
    Ok(cluster(&tree(&TreeSpec::default())?, UNIT.times(SLOTS), DISK))
}

/// A dataset of its own for every application, three replicas of each block as HDFS puts them.
pub(super) fn dataset(sample: &Sample, workload: Workload, seed: u64) -> Arc<InputBlocks> {
    let bytes = workload.input().0;
    let mut blocks = sample.input(bytes.div_ceil(BLOCK) as usize, Bytes(BLOCK), seed).blocks.clone();
    if let Some(InputBlock { bytes: last, .. }) = blocks.last_mut() {
        *last = Bytes(bytes - (bytes - 1) / BLOCK * BLOCK);
    }
    Arc::new(InputBlocks::new(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_has_the_papers_bytes_and_every_application_its_own() {
        let sample = testbed().unwrap();
        for workload in Workload::ALL {
            let blocks = dataset(&sample, workload, 1);
            assert_eq!(blocks.bytes, workload.input());
            assert!(blocks.blocks.iter().all(|block| block.nodes.len() == 3 && block.bytes.0 <= BLOCK));
            assert_ne!(dataset(&sample, workload, 2), blocks);
        }
    }

    #[test]
    fn iterations_send_the_same_unless_they_decay_or_combine() {
        let input = Arc::<InputBlocks>::default();
        let app = |model: Model| model.app(Workload::KMeans, 2, Arc::clone(&input));
        assert_eq!(app(Model::default()).exchanged(), Bytes(168_000_000_000));
        assert_eq!(app(Model { combine: true, ..Model::default() }).exchanged(), Bytes(0));
        let halved = app(Model { decay: 0.5, ..Model::default() });
        assert!((halved.exchanged().as_f64() / 33_567_187_500.0 - 1.0).abs() < 1e-6);
        assert_eq!((halved.submit_s, halved.edges[0].bytes), (20.0, halved.exchanged()));
    }
}
