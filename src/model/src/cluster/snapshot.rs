//! The snapshot: one immutable, versioned picture of the cluster, dense and cheap to publish.
//!
//! It may be stale the moment it is published: nothing may depend on it being exact, which is why
//! the ledger checks again when it commits. Slow things (names, network, datasets) are shared
//! between versions behind their own `Arc`; only three narrow columns are copied at each publish.

use super::dataset::Datasets;
use super::node::{NodeState, NodeStatics};
use super::resource::{Overlay, Resource, ResourceKinds, SizeRules};
use super::shards::Shards;
use super::topology::Topology;
use crate::network::latency::LatencyTable;
use crate::units::{AttemptId, BitsPerSec, ContainerId, HostName, LinkName, NodeIdx, RackIdx, SchedulerKey};
use crate::units::{SnapshotVersion, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One picture of the cluster.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Grows with every publish.
    pub version: SnapshotVersion,
    /// When it was published.
    pub taken_at: Timestamp,
    /// Names of the resource kinds.
    pub kinds: Arc<ResourceKinds>,
    /// Sizes YARN really allocates.
    pub rules: Arc<SizeRules>,
    /// Names, racks, totals, labels.
    pub statics: Arc<NodeStatics>,
    /// State by node.
    pub state: Vec<NodeState>,
    /// max(used as reported, containers known) by node.
    pub occupied: Vec<Resource>,
    /// Containers known by node.
    pub containers: Vec<u32>,
    /// The network, or racks where there is none.
    pub topology: Arc<Topology>,
    /// Paths, blocks, replicas.
    pub datasets: Arc<Datasets>,
    /// Running applications and their containers.
    pub applications: Applications,
    /// Measured loads by link.
    pub link_loads: Arc<BTreeMap<LinkName, LinkLoad>>,
    /// Measured two-way latency; its ages are as of `taken_at`.
    pub latency: LatencyTable,
    /// When each source was last heard.
    pub heard: LastHeard,
}

/// Load of one link in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkLoad {
    /// From the link's first end to its second.
    pub a_to_b: BitsPerSec,
    /// The other way.
    pub b_to_a: BitsPerSec,
    /// As `a_to_b`, in the mean of the last minutes ([`LinkMean`](super::LinkMean)): what placing goes by.
    pub mean_a_to_b: BitsPerSec,
    /// The other way.
    pub mean_b_to_a: BitsPerSec,
}

impl LinkLoad {
    /// Of a link that carried the same all the time, as far as anybody knows.
    #[must_use]
    pub const fn steady(a_to_b: BitsPerSec, b_to_a: BitsPerSec) -> Self {
        Self { a_to_b, b_to_a, mean_a_to_b: a_to_b, mean_b_to_a: b_to_a }
    }
}

/// Where facts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// NodeManager heartbeats.
    Heartbeats,
    /// HDFS block reports and datasets.
    Blocks,
    /// SDN topology.
    Topology,
    /// SDN link counters.
    LinkStats,
    /// Latency measurements.
    Latency,
    /// Task events.
    Events,
}

impl Source {
    /// Every source.
    pub const ALL: [Self; 6] =
        [Self::Heartbeats, Self::Blocks, Self::Topology, Self::LinkStats, Self::Latency, Self::Events];

    /// Its name on the wire and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Heartbeats => "heartbeats",
            Self::Blocks => "blocks",
            Self::Topology => "topology",
            Self::LinkStats => "link_stats",
            Self::Latency => "latency",
            Self::Events => "events",
        }
    }
}

/// When each source was last heard; absent: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastHeard([Option<Timestamp>; Source::ALL.len()]);

impl LastHeard {
    /// Last heard from `source`.
    #[must_use]
    pub const fn at(&self, source: Source) -> Option<Timestamp> {
        self.0[source as usize]
    }

    /// Notes that `source` spoke.
    pub fn note(&mut self, source: Source, now: Timestamp) {
        self.0[source as usize] = Some(now);
    }
}

/// Applications that run, by attempt.
pub type Applications = Shards<AttemptId, Arc<Application>>;

/// One running attempt, as heartbeats show it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Application {
    /// Its containers.
    pub containers: BTreeMap<ContainerId, Container>,
}

/// A container that some node reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Where.
    pub node: NodeIdx,
    /// How much.
    pub size: Resource,
    /// Which of the application's asks it answers.
    pub key: SchedulerKey,
}

impl Snapshot {
    /// Offered minus occupied, leases not counted.
    #[inline]
    #[must_use]
    pub fn unoccupied(&self, node: NodeIdx) -> Resource {
        self.statics.total[node.at()].minus(&self.occupied[node.at()])
    }

    /// What a new lease on `node` may use: offered − occupied − leased.
    #[inline]
    #[must_use]
    pub fn room(&self, node: NodeIdx, leases: &Overlay) -> Resource {
        self.unoccupied(node).minus(&leases.leased(node))
    }

    /// Rows.
    #[inline]
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.state.len()
    }

    /// Rack of a node.
    #[inline]
    #[must_use]
    pub fn rack(&self, node: NodeIdx) -> RackIdx {
        self.statics.rack[node.at()]
    }

    /// Host name of a node.
    #[inline]
    #[must_use]
    pub fn host(&self, node: NodeIdx) -> &HostName {
        &self.statics.host[node.at()]
    }
}
