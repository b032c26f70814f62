//! What a request loads, once: one snapshot, the leases of one moment, history and expected releases.

use super::arrivals::ArrivedView;
use super::history::HistoryView;
use super::placer::SnapshotScans;
use super::plans::kept::KeptPlan;
use super::worth::StoppedKeys;
use hintd_model::cluster::{Overlay, Resource, Shards, Snapshot};
use hintd_model::units::{AttemptId, NodeIdx, Timestamp};
use hintd_policy::IndexedFlows;
use std::sync::Arc;

/// One consistent picture for deciding: cheap to clone, never changed.
#[derive(Debug, Clone)]
pub struct Generation {
    /// Grows with every publish.
    pub number: u64,
    /// The cluster.
    pub snapshot: Arc<Snapshot>,
    /// What requests worked out of that snapshot, for those after them; a generation of another snapshot has another.
    pub scans: Arc<SnapshotScans>,
    /// Room taken by leases.
    pub leases: Overlay,
    /// Live leases by attempt, where they are: what later requests of the attempt talk to.
    pub held: HeldByAttempt,
    /// Where containers of applications came.
    pub arrived: ArrivedView,
    /// Finished groups by recurring-job key.
    pub history: HistoryView,
    /// When running containers are expected to end, by node.
    pub releases: Releases,
    /// The plan of recurring jobs in force.
    pub plan: Option<Arc<KeptPlan>>,
    /// Recurring keys that get no hints.
    pub stopped: Arc<StoppedKeys>,
    /// Traffic of running applications, and its routes.
    pub flows: Arc<IndexedFlows>,
}

/// Leases by attempt, group and node.
pub type HeldByAttempt = Shards<AttemptId, Arc<[HeldContainers]>>;

/// Leases of one group on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldContainers {
    /// The group, as its request named it.
    pub group: Arc<str>,
    /// Where.
    pub node: NodeIdx,
    /// Live leases.
    pub count: u32,
    /// Those of them whose containers have not come, as far as the application said.
    pub awaited: u32,
}

/// Expected ends by node, soonest first.
pub type Releases = Shards<NodeIdx, Arc<[Release]>>;

/// A container that is expected to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// When, by the history of its group.
    pub at: Timestamp,
    /// What becomes free.
    pub size: Resource,
}
