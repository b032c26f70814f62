//! Which chains can't be met: at all, when they are declared; now, and by which cut.

use super::problem::ChainProblem;
use super::route::BoxLoads;
use super::{Chain, Chains};
use crate::network::graph::Network;
use crate::network::host_path::cut;
use crate::network::tier::Tier;
use crate::units::{BitsPerSec, BoxIdx, ChainIdx, VertexIdx};
use petgraph::unionfind::UnionFind;
use std::sync::Arc;

/// A chain that some hosts' flows can't pass now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// Which.
    pub chain: ChainIdx,
    /// Its name.
    pub name: Arc<str>,
    /// The first of its types that is out of reach.
    pub kind: Arc<str>,
    /// Hosts whose flows are affected; those that hang nowhere are not counted.
    pub hosts: usize,
    /// One of them.
    pub example: Arc<str>,
    /// What stands between.
    pub why: Why,
}

/// What keeps hosts from a type of box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// All boxes of the type are down, or hang on nothing: their names.
    Down(Vec<Arc<str>>),
    /// Boxes of the type are up and none has anything left: their names.
    Full(Vec<Arc<str>>),
    /// Switches and links that are down between the example and the nearest box; empty: they were never joined.
    Cut(Vec<Arc<str>>),
}

impl std::fmt::Display for Unmet {
    /// `of the boxes of type "FW" none is up: fw-1, fw-2`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, example, .. } = self;
        let list = |names: &[Arc<str>]| names.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
        match &self.why {
            Why::Down(boxes) => write!(f, "of the boxes of type \"{kind}\" none is up: {}", list(boxes)),
            Why::Full(boxes) => write!(f, "of the boxes of type \"{kind}\" none has anything left: {}", list(boxes)),
            Why::Cut(between) if between.is_empty() => {
                write!(f, "{example} was never joined to a box of type \"{kind}\"")
            }
            Why::Cut(between) => {
                write!(f, "{example} is cut off from boxes of type \"{kind}\": down are {}", list(between))
            }
        }
    }
}

impl Why {
    /// Stable token.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Down(_) => "down",
            Self::Full(_) => "full",
            Self::Cut(_) => "cut",
        }
    }

    /// Boxes, or what is cut.
    #[must_use]
    pub fn names(&self) -> &[Arc<str>] {
        match self {
            Self::Down(names) | Self::Full(names) | Self::Cut(names) => names,
        }
    }
}

/// Chains that can't be met by flows of some host, in the order of chains: one entry for the chain and each part of
/// the network that is cut off from a type.
#[must_use]
pub fn unmet(chains: &Chains, network: &Network, loads: &BoxLoads) -> Vec<Unmet> {
    let parts = Parts::new(network, true);
    let hosts = hosts_by_part(network, &parts);
    let mut found = Vec::new();
    for (at, chain) in chains.chains().iter().enumerate() {
        for (part, of_part) in &hosts {
            let Some((kind, why)) = missing(chains, chain, network, loads, &parts, (*part, of_part[0])) else {
                continue;
            };
            found.push(Unmet {
                chain: ChainIdx::new(at),
                name: Arc::clone(&chain.name),
                kind,
                hosts: of_part.len(),
                example: Arc::clone(&network.vertex_at(of_part[0]).name),
                why,
            });
        }
    }
    found
}

/// The first type of a chain that a host has no use of, and why.
fn missing(
    chains: &Chains,
    chain: &Chain,
    network: &Network,
    loads: &BoxLoads,
    parts: &Parts,
    (part, host): (u32, VertexIdx),
) -> Option<(Arc<str>, Why)> {
    let name = |index: &BoxIdx| Arc::clone(&chains.boxes()[index.at()].name);
    for &kind in &chain.sequence {
        let all = chains.of_kind(kind);
        let up: Vec<BoxIdx> = all.iter().copied().filter(|&index| chains.is_usable(network, index)).collect();
        let near: Vec<BoxIdx> = up.iter().copied().filter(|&index| parts.of_box(chains, index) == Some(part)).collect();
        let why = if up.is_empty() {
            Why::Down(all.iter().map(name).collect())
        } else if near.is_empty() {
            let places = up.iter().filter_map(|index| chains.boxes()[index.at()].at);
            let cuts = places.map(|at| cut(network, host, at)).filter(|cut| !cut.is_empty());
            Why::Cut(cuts.min_by_key(Vec::len).unwrap_or_default())
        } else if near.iter().all(|&index| loads.room(chains, index) == BitsPerSec::ZERO) {
            Why::Full(near.iter().map(name).collect())
        } else {
            continue;
        };
        return Some((Arc::clone(&chains.kinds()[usize::from(kind.0)]), why));
    }
    None
}

/// Sequences that no path can satisfy with everything up: no part of the network has hosts and a box of every type.
pub(super) fn check_paths(chains: &Chains, network: &Network, problems: &mut Vec<ChainProblem>) {
    let parts = Parts::new(network, false);
    let hosts = hosts_by_part(network, &parts);
    for chain in chains.chains() {
        let has = |part: u32, kind| chains.of_kind(kind).iter().any(|&index| parts.of_box(chains, index) == Some(part));
        if hosts.iter().any(|(part, _)| chain.sequence.iter().all(|&kind| has(*part, kind))) {
            continue;
        }
        // The first type that no part has together with all before it.
        let reach =
            |len: usize| hosts.iter().any(|(part, _)| chain.sequence[..len].iter().all(|&kind| has(*part, kind)));
        let len = (1..=chain.sequence.len()).find(|&len| !reach(len)).unwrap_or(chain.sequence.len());
        let kind = |at: usize| Arc::clone(&chains.kinds()[usize::from(chain.sequence[at].0)]);
        let (from, to) = (kind(len.saturating_sub(2).min(len - 1)), kind(len - 1));
        problems.push(ChainProblem::NoPath { chain: Arc::clone(&chain.name), from, to });
    }
}

/// By part of the network that has hosts: its hosts, in vertex order.
fn hosts_by_part(network: &Network, parts: &Parts) -> Vec<(u32, Vec<VertexIdx>)> {
    let mut hosts: Vec<(u32, VertexIdx)> = network
        .vertices()
        .filter(|(_, vertex)| vertex.is_host())
        .filter_map(|(host, _)| Some((parts.of(host_switch(network, host, parts.usable_only)?), host)))
        .collect();
    hosts.sort_unstable();
    let same = |a: &(u32, VertexIdx), b: &(u32, VertexIdx)| a.0 == b.0;
    hosts.chunk_by(same).map(|of| (of[0].0, of.iter().map(|(_, host)| *host).collect())).collect()
}

fn host_switch(network: &Network, host: VertexIdx, usable_only: bool) -> Option<VertexIdx> {
    if usable_only {
        return network.attachment(host);
    }
    network.links_of(host).min_by_key(|(index, _)| *index).map(|(_, link)| link.other(host))
}

/// Packet switches that reach each other.
struct Parts {
    joined: Vec<u32>,
    usable_only: bool,
}

impl Parts {
    fn new(network: &Network, usable_only: bool) -> Self {
        let mut joined = UnionFind::<u32>::new(network.vertex_rows());
        let forwards = |vertex: VertexIdx| network.vertex_at(vertex).tier().is_some_and(|tier| tier != Tier::Optical);
        for (index, link) in network.links().filter(|(_, link)| forwards(link.a) && forwards(link.b)) {
            if !usable_only || network.is_usable(index) {
                joined.union(link.a.0, link.b.0);
            }
        }
        Self { joined: joined.into_labeling(), usable_only }
    }

    fn of(&self, switch: VertexIdx) -> u32 {
        self.joined[switch.at()]
    }

    fn of_box(&self, chains: &Chains, index: BoxIdx) -> Option<u32> {
        chains.boxes()[index.at()].at.map(|at| self.of(at))
    }
}
