//! What running applications send over the network: who talks to whom, on which route, and what their sinks wait for.

use super::shards::{Sharded, Shards};
use super::topology::Topology;
use crate::network::chains::{BoxLoads, Chains, WaypointRoute};
use crate::units::{AttemptId, BitsPerSec, Bytes, DecisionId, DirectedLinkIdx, LinkIdx, NodeIdx};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Running traffic of one generation.
#[derive(Debug, Clone, Default)]
pub struct RunningFlows {
    /// By decision, ascending.
    pub jobs: Vec<Arc<JobFlows>>,
    /// The route of every pair of nodes that talks, whichever jobs it serves: an SDN tells traffic apart by its ends.
    pub routes: Shards<NodePair, Arc<PairRoute>>,
    /// Traffic under chains of middleboxes, which is in none of the others.
    pub chained: Arc<ChainedFlows>,
    /// Links that new routes avoid because they flapped.
    pub damped: Arc<BTreeSet<LinkIdx>>,
}

/// Running traffic under chains.
#[derive(Debug, Clone, Default)]
pub struct ChainedFlows {
    /// The chains that routes are of; `None`: no chain is declared, or there is no network.
    pub chains: Option<Arc<Chains>>,
    /// By pair of nodes and chain.
    pub routes: Shards<ChainPair, Arc<ChainedRoute>>,
    /// What is taken of each box.
    pub loads: BoxLoads,
}

/// Who sends to whom under which chain: a traffic class of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainPair {
    /// The ends; may be the same node, for boxes stand elsewhere.
    pub pair: NodePair,
    /// The chain's name.
    pub chain: Arc<str>,
}

/// The way of a pair's traffic through the boxes of a chain, and what it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainedRoute {
    /// `None`: there is no way; the traffic must not flow.
    pub way: Option<WaypointRoute>,
    /// What is reserved of each box, bits per second.
    pub rate: BitsPerSec,
    /// Pairs of tasks that send over it, of all jobs.
    pub task_pairs: u64,
    /// Bytes over it, of all jobs.
    pub bytes: Bytes,
}

impl Sharded for ChainPair {
    fn spread(&self) -> usize {
        self.pair.spread()
    }
}

impl ChainedFlows {
    /// Whether boxes and loads are those of a topology's chains: else they were declared anew meanwhile.
    #[must_use]
    pub fn are_of(&self, topology: &Topology) -> bool {
        self.chains.as_ref().zip(topology.chains.as_ref()).is_some_and(|(own, its)| Arc::ptr_eq(own, its))
    }

    /// Flows by chain: which chains are in use.
    #[must_use]
    pub fn in_use(&self) -> BTreeMap<Arc<str>, u64> {
        self.counts().into_iter().map(|(chain, counts)| (chain, counts.flows)).collect()
    }

    /// How flows stand, by chain; takes time in proportion to flows and chains.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Arc<str>, ChainCounts> {
        let chains = self.chains.iter().flat_map(|chains| chains.chains());
        let types: BTreeMap<&str, usize> = chains.map(|chain| (&*chain.name, chain.sequence.len())).collect();
        let mut counts: BTreeMap<Arc<str>, ChainCounts> = BTreeMap::new();
        for (key, route) in self.routes.iter() {
            let of = counts.entry(Arc::clone(&key.chain)).or_default();
            of.flows += 1;
            match &route.way {
                None => of.broken += 1,
                Some(way) if types.get(&*key.chain).is_some_and(|&types| way.boxes.len() < types) => of.bypassing += 1,
                Some(_) => {}
            }
        }
        counts
    }
}

/// Flows under one chain: ordered pairs of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainCounts {
    /// All of them.
    pub flows: u64,
    /// That leave out boxes, for the chain fails open.
    pub bypassing: u64,
    /// Without a way.
    pub broken: u64,
}

/// Sender and receiver; routes may differ by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodePair {
    /// Sender.
    pub from: NodeIdx,
    /// Receiver, another node.
    pub to: NodeIdx,
}

impl Sharded for NodePair {
    fn spread(&self) -> usize {
        self.from.at().wrapping_mul(31).wrapping_add(self.to.at())
    }
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
