//! The common cost terms: one evaluator for any placement, whatever policy made it.
//!
//! What is assumed, the same for every placement:
//! - A group's input is read by its containers in equal parts. A block with a replica on a node that the group
//!   uses is read locally; every other block is remote.
//! - A remote block with replicas in racks that the group uses is read inside those racks, in equal parts from
//!   each such replica by the containers there; any other from all its replicas by all containers.
//! - All-to-all edges carry equal bytes between all pairs of sender and receiver (of different containers within
//!   one group); one-to-one edges carry equal bytes from task i to task i modulo the other group's count.
//! - Traffic takes all shortest paths in equal parts; that of edges between nodes that a running job or the placement
//!   gives a route takes that route.
//!
//! Costs are sums over racks, switches and nodes used, never over pairs of containers.

mod flows;
pub mod link_time;
pub mod rack_rates;
mod transfers;

pub use transfers::{Transfer, are_known};

use super::dataflow;
use super::load::load;
use super::place::{Placement, Share};
use super::problem::PlaceProblem;
use flows::Flows;
use hintd_model::cluster::{EdgePattern, Resource};
use hintd_model::units::{DirectedLinkIdx, NodeIdx, RackIdx};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Cost terms of a placement; lower is better. Absent where no input for them is known: never a zero instead.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Terms {
    /// Input bytes read from another host; absent where no blocks are known.
    pub remote_bytes: Option<f64>,
    /// Input bytes read from a rack that the group does not use, and bytes of edges between racks, those of senders that
    /// have come among them; absent where neither blocks nor edges are known, else the sum of what is.
    pub cross_rack_bytes: Option<f64>,
    /// Switches above the edge layer, summed over unordered pairs of containers of which at least one is new;
    /// all containers of the application are taken to talk. Absent where a pair has no path.
    pub core_hops: Option<f64>,
    /// Seconds that the most loaded link needs for remote input and edges; absent without topology or bytes.
    pub worst_link_s: Option<f64>,
    /// Which link that is, and which way; absent where none carries anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_link: Option<DirectedLinkIdx>,
    /// Standard deviation of load over the nodes used, doubled to be within [0, 1]; absent where nothing is placed.
    pub balance: Option<f64>,
}

/// The common terms of `placement`, which stays within `problem`.
#[must_use]
pub fn evaluate(problem: &PlaceProblem<'_>, placement: &Placement) -> Terms {
    let groups = places_of(problem, placement);
    let worst = Flows::of(problem, placement, &groups).and_then(Flows::worst_link);
    Terms {
        core_hops: core_hops(problem, placement, usize::MAX),
        worst_link_s: worst.as_ref().map(|worst| worst.seconds),
        worst_link: worst.and_then(|worst| worst.link),
        balance: balance(problem, placement),
        ..bytes(problem, placement, &groups)
    }
}

/// Those of the common terms that follow from where the containers are, whatever else runs by then: bytes and,
/// where its containers are below at most `switches_max` switches, hops, which take time by its square. They can be told
/// long after a decision was made.
#[must_use]
pub fn evaluate_places(problem: &PlaceProblem<'_>, placement: &Placement, switches_max: usize) -> Terms {
    let groups = places_of(problem, placement);
    Terms { core_hops: core_hops(problem, placement, switches_max), ..bytes(problem, placement, &groups) }
}

fn places_of(problem: &PlaceProblem<'_>, placement: &Placement) -> Vec<GroupPlaces> {
    let of = |shares: &Vec<Share>| GroupPlaces::of(problem, shares.iter().map(|s| (s.node, s.count)));
    placement.groups.iter().map(of).collect()
}

fn bytes(problem: &PlaceProblem<'_>, placement: &Placement, groups: &[GroupPlaces]) -> Terms {
    let input = InputReads::of(problem, groups);
    let edges = edges_between_racks(problem, placement, groups);
    let arrived = arrived_between_racks(problem, groups);
    let edges = edges.map_or(arrived, |edges| Some(edges + arrived.unwrap_or(0.0)));
    Terms {
        remote_bytes: input.map(|input| input.remote),
        cross_rack_bytes: match (input.map(|input| input.cross_rack), edges) {
            (None, None) => None,
            (input, edges) => Some(input.unwrap_or(0.0) + edges.unwrap_or(0.0)),
        },
        ..Terms::default()
    }
}

/// Where the containers of one group are, as counts.
struct GroupPlaces {
    total: f64,
    nodes: BTreeMap<NodeIdx, u32>,
    racks: BTreeMap<RackIdx, u32>,
}

impl GroupPlaces {
    fn of(problem: &PlaceProblem<'_>, shares: impl Iterator<Item = (NodeIdx, u32)>) -> Self {
        let mut places = Self { total: 0.0, nodes: BTreeMap::new(), racks: BTreeMap::new() };
        for (node, count) in shares {
            places.total += f64::from(count);
            *places.nodes.entry(node).or_default() += count;
            *places.racks.entry(problem.snapshot.rack(node)).or_default() += count;
        }
        places
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct InputReads {
    remote: f64,
    cross_rack: f64,
}

impl InputReads {
    fn of(problem: &PlaceProblem<'_>, groups: &[GroupPlaces]) -> Option<Self> {
        let mut reads = Self::default();
        let mut known = false;
        for (group, places) in problem.groups.iter().zip(groups).filter(|(group, _)| !group.input.is_empty()) {
            known = true;
            for block in &group.input.blocks {
                if block.nodes.iter().any(|node| places.nodes.contains_key(node)) {
                    continue;
                }
                reads.remote += block.bytes.as_f64();
                let near = block.nodes.iter().any(|&node| places.racks.contains_key(&problem.snapshot.rack(node)));
                reads.cross_rack += if near { 0.0 } else { block.bytes.as_f64() };
            }
        }
        known.then_some(reads)
    }
}

/// Bytes of edges between racks; `None` without edges.
fn edges_between_racks(problem: &PlaceProblem<'_>, placement: &Placement, groups: &[GroupPlaces]) -> Option<f64> {
    let cross = problem.edges.iter().map(|edge| {
        let (from, to) = (&groups[edge.from.at()], &groups[edge.to.at()]);
        let within = match edge.pattern {
            EdgePattern::AllToAll => all_to_all_within(&from.racks, &to.racks, edge.from == edge.to),
            EdgePattern::OneToOne => {
                let pairs = one_to_one(placement, edge.from.at(), edge.to.at());
                let same = |(a, b): &(NodeIdx, NodeIdx)| problem.snapshot.rack(*a) == problem.snapshot.rack(*b);
                (!pairs.is_empty()).then(|| pairs.iter().filter(|pair| same(pair)).count() as f64 / pairs.len() as f64)
            }
        };
        within.map_or(0.0, |within| edge.bytes.as_f64() * (1.0 - within))
    });
    (!problem.edges.is_empty()).then(|| cross.sum())
}

/// Bytes that containers which came before send to other racks; `None`: there are no such.
fn arrived_between_racks(problem: &PlaceProblem<'_>, groups: &[GroupPlaces]) -> Option<f64> {
    let rack = |node: NodeIdx| problem.snapshot.rack(node);
    let crosses = |transfer: &Transfer| {
        let mut to: BTreeMap<RackIdx, f64> = BTreeMap::new();
        transfer.to.iter().for_each(|&(node, part)| *to.entry(rack(node)).or_default() += part);
        let stays: f64 = transfer.from.iter().map(|(node, part)| part * to.get(&rack(*node)).unwrap_or(&0.0)).sum();
        transfer.bytes * (1.0 - stays)
    };
    (!problem.senders.is_empty()).then(|| transfers::arrived(problem, groups).iter().map(crosses).sum())
}

/// Share of the pairs of sender and receiver that are in one place; `None`: there are no pairs.
fn all_to_all_within<K: Ord>(from: &BTreeMap<K, u32>, to: &BTreeMap<K, u32>, one_group: bool) -> Option<f64> {
    let total = |places: &BTreeMap<K, u32>| f64::from(places.values().sum::<u32>());
    // Within a group nobody sends to itself.
    let itself = if one_group { 1.0 } else { 0.0 };
    let pairs = total(from) * (total(to) - itself);
    let same = from.iter().map(|(place, &senders)| {
        let receivers = to.get(place).map_or(0.0, |&count| f64::from(count));
        f64::from(senders) * (receivers - itself).max(0.0)
    });
    (pairs > 0.0).then(|| same.sum::<f64>() / pairs)
}

/// Nodes of task i and of task i modulo the other's count.
fn one_to_one(placement: &Placement, from: usize, to: usize) -> Vec<(NodeIdx, NodeIdx)> {
    dataflow::one_to_one(&placement.groups[from], &placement.groups[to])
}

/// `None` as well where there are more than `most` switches.
fn core_hops(problem: &PlaceProblem<'_>, placement: &Placement, most: usize) -> Option<f64> {
    let topology = &problem.snapshot.topology;
    // By switch: a node of it, new containers, fixed ones. Nodes that hang nowhere stand alone.
    let mut places: BTreeMap<(bool, u32), (NodeIdx, u64, u64)> = BTreeMap::new();
    let key = |node: NodeIdx| match topology.edge.get(node.at()).copied().flatten() {
        Some(edge) => (false, edge.0),
        None => (true, node.0),
    };
    for share in placement.groups.iter().flatten() {
        places.entry(key(share.node)).or_insert((share.node, 0, 0)).1 += u64::from(share.count);
    }
    for anchor in &problem.anchors {
        places.entry(key(anchor.node)).or_insert((anchor.node, 0, 0)).2 += u64::from(anchor.count);
    }
    if places.len() > most {
        return None;
    }
    let places: Vec<_> = places.into_values().collect();
    let mut sum = 0;
    for (at, (a, new, fixed)) in places.iter().enumerate() {
        for (b, other_new, other_fixed) in &places[at + 1..] {
            let pairs = new * other_new + new * other_fixed + fixed * other_new;
            if pairs > 0 {
                sum += pairs * u64::from(topology.core_hops(*a, *b)?);
            }
        }
    }
    Some(sum as f64)
}

fn balance(problem: &PlaceProblem<'_>, placement: &Placement) -> Option<f64> {
    let mut taken: BTreeMap<NodeIdx, Resource> = BTreeMap::new();
    for (group, shares) in problem.groups.iter().zip(&placement.groups) {
        for share in shares {
            let sum = taken.entry(share.node).or_default();
            *sum = sum.plus(&group.size.times(u64::from(share.count)));
        }
    }
    let after = |(&node, taken): (&NodeIdx, &Resource)| load(problem.snapshot, node, &problem.room(node).minus(taken));
    let loads: Vec<f64> = taken.iter().map(after).collect();
    let count = loads.len() as f64;
    let mean = loads.iter().sum::<f64>() / count;
    let variance = loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / count;
    (!loads.is_empty()).then(|| 2.0 * variance.sqrt())
}

/// Racks that a group uses.
fn used_racks(places: &GroupPlaces) -> BTreeSet<RackIdx> {
    places.racks.keys().copied().collect()
}

#[cfg(test)]
mod tests;
