//! Generated clusters and requests for tests and benchmarks: snapshots without a daemon.

use super::problem::{Anchor, Degraded, EdgeProblem, GroupProblem, InputBlock, InputBlocks, KnownJob, PlaceProblem};
use hintd_model::cluster::node::LabelBits;
use hintd_model::cluster::{
    Applications, Gang, LastHeard, NodeState, NodeStatics, Overlay, Resource, ResourceKinds, SizeRules, Snapshot,
};
use hintd_model::cluster::{Replicas, Topology};
use hintd_model::network::build::BuiltNetwork;
use hintd_model::units::{Bytes, ClassIdx, NodeIdx, RackIdx, SchedulerKey, SnapshotVersion, Timestamp};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// Clusters with middleboxes, requests under chains, and what placements of them cost and break.
pub mod chains {
    pub use crate::chained::cases::{Draw, gap, gap_to_arrived, spread};
    pub use crate::chained::sample::{UNIT, World, networks};
    pub use crate::chained::{Breaches, Steered, Steering, steered};
}

/// A cluster in which nothing runs, nothing is leased and every node is heard of.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The cluster.
    pub snapshot: Snapshot,
    /// No leases.
    pub leases: Overlay,
}

/// A cluster of that network; every node offers `total` and reads `disk_read` bytes a second off its disks.
#[must_use]
pub fn cluster(built: &BuiltNetwork, total: Resource, disk_read: Bytes) -> Sample {
    let mut statics = NodeStatics { label_names: vec![], class_names: vec!["".into()], ..NodeStatics::default() };
    for (rack, (path, hosts)) in built.racks.iter().enumerate() {
        let rack = RackIdx::new(rack);
        statics.racks.push(path.clone());
        statics.by_rack.insert(path.clone(), rack);
        statics.members.push((0..hosts.len()).map(|at| NodeIdx::new(statics.host.len() + at)).collect());
        for host in hosts {
            statics.by_host.insert(host.clone(), NodeIdx::new(statics.host.len()));
            statics.host.push(host.clone());
            statics.rack.push(rack);
        }
    }
    let nodes = statics.host.len();
    statics.total = vec![total; nodes];
    statics.labels = vec![LabelBits::default(); nodes];
    statics.class = vec![ClassIdx(0); nodes];
    statics.disk_read = vec![disk_read; nodes];
    statics.attributes = vec![Arc::default(); nodes];
    let topology = Topology::new(Some(Arc::new(built.network.clone())), &statics);
    let snapshot = Snapshot {
        version: SnapshotVersion(1),
        taken_at: Timestamp(1),
        kinds: Arc::new(ResourceKinds::default()),
        rules: Arc::new(SizeRules::default()),
        statics: Arc::new(statics),
        state: vec![NodeState::Running; nodes],
        occupied: vec![Resource::ZERO; nodes],
        containers: vec![0; nodes],
        topology: Arc::new(topology),
        datasets: Arc::default(),
        applications: Applications::default(),
        link_loads: Arc::default(),
        latency: Default::default(),
        heard: LastHeard::default(),
    };
    Sample { snapshot, leases: Overlay::default() }
}

impl Sample {
    /// Occupies a random number of `unit`s on every node, up to `most`.
    pub fn occupy(&mut self, unit: Resource, most: u64, seed: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for occupied in &mut self.snapshot.occupied {
            *occupied = unit.times(random.random_range(0..=most));
        }
    }

    /// A group without input or bounds, with every node that has room as candidate.
    #[must_use]
    pub fn group(&self, name: &str, count: u32, size: Resource) -> GroupProblem {
        let fits = |&node: &NodeIdx| {
            let room = self.snapshot.room(node, &self.leases);
            self.snapshot.state[node.at()].usable() && self.snapshot.rules.feasible(&size, &room)
        };
        GroupProblem {
            name: name.into(),
            role: name.into(),
            count,
            asked: count,
            size,
            key: SchedulerKey { priority: 0, allocation_request_id: -1 },
            candidates: self.snapshot.statics.indexes().filter(fits).collect(),
            exclusions: Vec::new(),
            input: Arc::default(),
            max_per_node: u32::MAX,
            max_per_rack: u32::MAX,
            planned: None,
            spread: false,
            together: false,
        }
    }

    /// Blocks as HDFS writes them from outside the cluster: one replica in a random rack, two in another.
    #[must_use]
    pub fn input(&self, blocks: usize, bytes: Bytes, seed: u64) -> Arc<InputBlocks> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let members = &self.snapshot.statics.members;
        let mut block = || {
            let first = random.random_range(0..members.len());
            let second = (first + random.random_range(1..members.len().max(2))) % members.len();
            let at = random.random_range(0..members[second].len());
            let mut nodes: Replicas = Replicas::new();
            nodes.push(members[first][random.random_range(0..members[first].len())]);
            nodes.push(members[second][at]);
            nodes.push(members[second][(at + 1) % members[second].len()]);
            nodes.sort_unstable();
            nodes.dedup();
            InputBlock { bytes, nodes }
        };
        Arc::new(InputBlocks::new((0..blocks).map(|_| block()).collect()))
    }

    /// A request of these groups.
    #[must_use]
    pub fn problem(
        &self,
        groups: Vec<GroupProblem>,
        edges: Vec<EdgeProblem>,
        anchors: Vec<Anchor>,
    ) -> PlaceProblem<'_> {
        let degraded = Degraded { no_edges: edges.is_empty(), ..Degraded::default() };
        let (snapshot, leases) = (&self.snapshot, &self.leases);
        let (loads, rates, running, gang) = (None, None, None, Gang::UpTo);
        let (senders, owner) = (Vec::new(), None);
        PlaceProblem {
            snapshot,
            leases,
            loads,
            rates,
            groups,
            edges,
            senders,
            earlier: Vec::new(),
            scattered: Vec::new(),
            job: KnownJob::default(),
            anchors,
            running,
            owner,
            gang,
            seed: 1,
            degraded,
        }
    }
}
