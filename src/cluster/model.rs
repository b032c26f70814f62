//! The mutable model behind the snapshots: owned by one writer, changed by facts, published as columns.

use super::dataset::Dataset;
use super::node::{NodeState, Registration};
use super::resource::{NamedResource, Resource, SizeRules};
use super::snapshot::{LinkLoad, Snapshot, Source};
use crate::network::Network;
use crate::units::{BitsPerSec, ContainerId, HostName, LinkIdx, LinkName, Micros, NodeIdx, SchedulerKey, Timestamp};
use std::sync::Arc;

/// One fact for the model, in names. Feeds have checked its shape; names are resolved here.
#[derive(Debug, Clone)]
pub enum Change {
    /// A node registered, or registered again.
    Register(Registration),
    /// A registered node reported.
    Heartbeat(Heartbeat),
    /// The node left for good (tombstone).
    Gone(HostName),
    /// The network as a whole, or its loss.
    Network(Option<Arc<Network>>),
    /// A dataset in full, replicas by host name in any spelling.
    Dataset(Arc<Dataset>),
    /// The path is no longer registered.
    DatasetRemoved(Arc<str>),
    /// A link went down or up, or has another capacity.
    Link {
        /// Which.
        link: LinkName,
        /// New state, if it changed.
        up: Option<bool>,
        /// New capacity, if it changed.
        capacity: Option<BitsPerSec>,
    },
    /// The link is no more (tombstone).
    LinkRemoved(LinkName),
    /// A switch went down or up.
    Switch {
        /// Which.
        name: Arc<str>,
        /// New state.
        up: bool,
    },
    /// Counters of one link.
    LinkLoad(LinkName, LinkLoad),
    /// Two-way latency of a pair of hosts.
    Latency(HostName, HostName, Micros),
    /// The scheduler's settings.
    Rules(SizeRules),
    /// A source spoke without a change.
    Heard(Source),
}

/// What a NodeManager's heartbeat tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Which node, in any spelling.
    pub host: HostName,
    /// As reported: allocated or running, see `used_is_running`.
    pub used: NamedResource,
    /// `used` leaves out containers that were given away and have not started.
    pub used_is_running: bool,
    /// All containers that live on the node; `None`: the feed does not name them.
    pub containers: Option<Vec<NamedContainer>>,
    /// RUNNING, UNHEALTHY, DECOMMISSIONING, …
    pub state: NodeState,
}

/// A container in a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedContainer {
    /// Which.
    pub id: ContainerId,
    /// Its size.
    pub size: NamedResource,
    /// Which ask it answers.
    pub key: SchedulerKey,
}

/// A container in a heartbeat, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedContainer {
    /// Which.
    pub id: ContainerId,
    /// Its size.
    pub size: Resource,
    /// Which ask it answers.
    pub key: SchedulerKey,
}

/// The model. Signatures are the contract; see the module's owner for the rest.
#[derive(Debug, Default)]
pub struct Model {}

#[allow(missing_docs, unused_variables, clippy::needless_pass_by_value, clippy::unimplemented)]
impl Model {
    /// An empty cluster under these size rules.
    pub fn new(rules: SizeRules) -> Self {
        let _ = rules;
        unimplemented!()
    }

    /// Takes a fact in; nothing is visible before [`Model::publish`]. Returns what the ledger and
    /// the monitor need to know.
    pub fn apply(&mut self, change: Change, now: Timestamp) -> Result<Applied, ModelError> {
        unimplemented!()
    }

    /// The row of a host, made (UNREGISTERED) if it was never named.
    pub fn intern_host(&mut self, host: &HostName) -> NodeIdx {
        unimplemented!()
    }

    /// Sets a state that the monitor concluded (STALE, LOST). Returns the containers that were on a node that is gone now.
    pub fn set_state(&mut self, node: NodeIdx, state: NodeState, now: Timestamp) -> Vec<ReportedContainer> {
        unimplemented!()
    }

    /// When a node was last heard.
    pub fn last_heard(&self, node: NodeIdx) -> Option<Timestamp> {
        unimplemented!()
    }

    /// A new version of the snapshot; shares everything that did not change.
    pub fn publish(&mut self, now: Timestamp) -> Arc<Snapshot> {
        unimplemented!()
    }

    /// Whether anything changed since the last publish.
    pub fn dirty(&self) -> bool {
        unimplemented!()
    }
}

/// What a change did, for ledger and monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// Nothing they need to know.
    Quiet,
    /// A node is there (again); `was` is its state before.
    NodeUp {
        /// Which.
        node: NodeIdx,
        /// Its state before.
        was: NodeState,
    },
    /// The node's containers after the heartbeat, with which are new and which ended.
    NodeReported {
        /// Which.
        node: NodeIdx,
        /// Containers not known before, oldest id first.
        appeared: Vec<ReportedContainer>,
        /// Containers that are no more.
        ended: Vec<ReportedContainer>,
        /// Whether the feed names containers.
        named: bool,
        /// Used before and now, as reported.
        used: (Resource, Resource),
    },
    /// The node is gone (tombstone); these containers were on it.
    NodeGone {
        /// Which.
        node: NodeIdx,
        /// What was on it.
        containers: Vec<ReportedContainer>,
    },
    /// The network changed: these links (empty: all of it).
    NetworkChanged {
        /// Links whose state or capacity changed, or that hang on a switch that changed.
        links: Vec<LinkIdx>,
    },
}

/// A fact that the model can't take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A heartbeat or tombstone of a node that never registered.
    #[error("node \"{0}\" is not registered")]
    UnknownNode(String),
    /// A change of a link or switch that the network does not have.
    #[error("the network has no {what} \"{name}\"")]
    UnknownVertex {
        /// link, switch
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// One label, class or resource kind too many.
    #[error("{what} \"{name}\" is one too many: at most {limit}")]
    TooMany {
        /// label, machine class, resource kind
        what: &'static str,
        /// The one that found no place.
        name: String,
        /// How many there may be.
        limit: usize,
    },
}
