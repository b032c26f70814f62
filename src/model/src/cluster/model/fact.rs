//! Facts that the model takes in, what they did, and why one may be refused.

use super::super::dataset::NamedDataset;
use super::super::node::{NodeState, Registration};
use super::super::resource::{NamedResource, Resource, SizeRules};
use super::super::snapshot::{LinkLoad, Source};
use crate::network::Network;
use crate::network::chains::{ChainProblem, ChainsDocument};
use crate::network::latency::slow_peers::{PacketTimes, SlowPeersState};
use crate::units::Timestamp;
use crate::units::{
    BitsPerSec, BoxIdx, ContainerId, HostName, LinkIdx, LinkName, Micros, NodeIdx, RackPath, SchedulerKey,
};
use smallvec::SmallVec;
use std::collections::BTreeMap;
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
    Dataset(Arc<NamedDataset>),
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
    /// Middleboxes and chains as a whole; an empty document: none. `in_use` counts running flows by chain: one that has
    /// some is not taken away.
    Chains {
        /// All of them.
        document: Arc<ChainsDocument>,
        /// Flows by chain.
        in_use: BTreeMap<Arc<str>, u64>,
    },
    /// A middlebox went down or up, or carries another amount.
    Middlebox {
        /// Which.
        name: Arc<str>,
        /// New state, if it changed.
        up: Option<bool>,
        /// New capacity, if it changed.
        capacity: Option<BitsPerSec>,
    },
    /// Counters of one link.
    LinkLoad(LinkName, LinkLoad),
    /// Round trips between two hosts.
    Latency(Measured),
    /// What two racks, or a rack with itself, count with until hosts of theirs are measured: from a file.
    RackLatency(RackPath, RackPath, Micros),
    /// DataNodes that others report as slow, all that a NameNode tells of: what it does not name any more is over.
    SlowPeers(NamedSlowPeers),
    /// The scheduler's settings.
    Rules(SizeRules),
    /// A source spoke without a change.
    Heard(Source),
    /// Whoever tells of all nodes can't say anything for so long from now: nobody's silence makes him lost until then.
    ExcuseSilence(Micros),
}

impl Change {
    /// The source whose age this fact renews; `None`: none, as what an operator says.
    #[must_use]
    pub const fn source(&self) -> Option<Source> {
        match self {
            Self::Register(_) | Self::Heartbeat(_) | Self::Gone(_) => Some(Source::Heartbeats),
            Self::Network(_) | Self::Link { .. } | Self::LinkRemoved(_) | Self::Switch { .. } => Some(Source::Topology),
            // Told of boxes, a feed has said nothing of the network.
            Self::Chains { .. } | Self::Middlebox { .. } => None,
            Self::Dataset(_) | Self::DatasetRemoved(_) => Some(Source::Blocks),
            Self::LinkLoad(..) => Some(Source::LinkStats),
            Self::Latency(_) | Self::RackLatency(..) => Some(Source::Latency),
            Self::Heard(source) => Some(*source),
            // Blocks are another question to the same NameNode.
            Self::SlowPeers(_) | Self::Rules(_) | Self::ExcuseSilence(_) => None,
        }
    }
}

/// Round trips that one host measured to another over one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Who measured.
    pub from: HostName,
    /// Whom.
    pub to: HostName,
    /// Below [`PATHS`](crate::network::latency::PATHS).
    pub path: u8,
    /// Each, µs, in any order.
    pub rtts: SmallVec<[u32; 4]>,
    /// When the last of them was measured.
    pub at: Timestamp,
}

/// What a NameNode says of slow DataNodes, in names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedSlowPeers {
    /// Whether it tells of any.
    pub state: SlowPeersState,
    /// When it said so.
    pub told_at: Timestamp,
    /// Beyond it that counts no more.
    pub max_age: Micros,
    /// In any order.
    pub reports: Vec<NamedSlowPeer>,
}

/// One DataNode's word on another; see [`SlowPeer`](crate::network::latency::slow_peers::SlowPeer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSlowPeer {
    /// Who is slow.
    pub slow: HostName,
    /// Who says so.
    pub reporter: HostName,
    /// Times of packets, if they are told.
    pub packet: Option<PacketTimes>,
    /// Since when it has been told without a pause.
    pub since: Timestamp,
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
    /// All containers that live on the node; `None`: the feed does not name them, and those that another feed named
    /// within the last minute stay.
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

/// What a change did, for ledger and monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// Nothing they need to know.
    Quiet,
    /// A node registered (again); `was` is its state before.
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
        /// Its state before: STALE or LOST means that this heartbeat brought it back.
        was: NodeState,
        /// Its state now.
        state: NodeState,
        /// Containers whose ids were not known before, oldest id first.
        appeared: Vec<ReportedContainer>,
        /// Containers that are no more, oldest id first.
        ended: Vec<ReportedContainer>,
        /// Whether the containers are known by name, from this report or from another feed's of the last minute.
        named: bool,
        /// Used before and now, as reported.
        used: (Resource, Resource),
    },
    /// The node is gone (tombstone, or its own word); these containers were on it.
    NodeGone {
        /// Which.
        node: NodeIdx,
        /// What was on it, oldest id first.
        containers: Vec<ReportedContainer>,
    },
    /// The network changed: these links (empty: all of it).
    NetworkChanged {
        /// Links whose use or capacity changed, ascending.
        links: Vec<LinkIdx>,
    },
    /// Middleboxes or chains changed.
    ChainsChanged {
        /// Boxes whose state or capacity changed, ascending; empty: all was declared anew.
        boxes: Vec<BoxIdx>,
    },
}

/// A fact that the model can't take. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A heartbeat, tombstone or measurement of a node that is not registered.
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
    /// Middleboxes and chains that can't be taken, with every problem; or a change of a box that is not there.
    #[error("{}", join(.0))]
    Chains(Vec<ChainProblem>),
    /// A feed declares middleboxes and chains that the operator has declared.
    #[error("middleboxes and chains are declared by the configuration: a feed tells of the state of boxes only")]
    ChainsOwned,
    /// A rack that no node is in.
    #[error("no node is in rack \"{0}\"")]
    UnknownRack(String),
    /// A measurement that can't be taken: whose, and why.
    #[error("{0}")]
    Latency(String),
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

fn join(problems: &[ChainProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
