//! What running applications send over the network: who talks to whom, on which route, and what their sinks wait for.

use super::shards::Shards;
use super::snapshot::Derived;
use crate::units::{AttemptId, Bytes, DecisionId, DirectedLinkIdx, NodeIdx};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Running traffic of one generation.
#[derive(Debug, Clone, Default)]
pub struct RunningFlows {
    /// By decision, ascending.
    pub jobs: Vec<Arc<JobFlows>>,
    /// The route of every pair of nodes that talks, whichever jobs it serves: an SDN tells traffic apart by its ends.
    pub routes: Shards<NodePair, Arc<PairRoute>>,
    /// What policies worked out of it, for those after them.
    pub derived: Derived,
}

/// Sender and receiver; routes may differ by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodePair {
    /// Sender.
    pub from: NodeIdx,
    /// Receiver, another node.
    pub to: NodeIdx,
}

/// A pair's route and what it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairRoute {
    /// From host to host; empty: there is no path.
    pub links: Arc<[DirectedLinkIdx]>,
    /// Whether it is to be installed; else the network's default forwarding carries the pair, and `links` is a shortest
    /// path that stands for it.
    pub installed: bool,
    /// Pairs of tasks that send over it, of all jobs.
    pub task_pairs: u64,
    /// Bytes over it, of all jobs.
    pub bytes: Bytes,
}

/// One decision's traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFlows {
    /// Whose.
    pub attempt: AttemptId,
    /// Which decision placed its tasks.
    pub decision: DecisionId,
    /// What is sent.
    pub traffic: Traffic,
}

/// The dataflow graph of placed tasks, by node: tasks of one group on one node are one vertex.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Between different nodes, one for each pair, ascending by pair.
    pub flows: Vec<Flow>,
    /// By vertex with incoming edges: what it waits for.
    pub inlets: Vec<Inlet>,
    /// Vertices that send to nobody.
    pub sinks: Vec<Sink>,
}

/// All traffic from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Who.
    pub pair: NodePair,
    /// Pairs of tasks that send.
    pub task_pairs: u32,
    /// What they send, all together.
    pub bytes: Bytes,
}

/// The edges into one vertex from vertices that some root reaches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inlet {
    /// Rows of [`Traffic::flows`], ascending.
    pub flows: Vec<u32>,
    /// The node, if one of the edges stays on it: such an edge counts as its NIC's rate (000, Algorithm 1).
    pub local: Option<NodeIdx>,
}

/// Tasks of one group on one node that send to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    /// How many.
    pub count: u32,
    /// Rows of [`Traffic::inlets`] between its roots and itself, ascending: its rate is that of the slowest.
    pub inlets: Vec<u32>,
}
