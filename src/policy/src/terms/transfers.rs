//! What a placement sends: from which nodes to which, how much. Who lays it on links decides which ones.

use super::{GroupPlaces, all_to_all_within, one_to_one, used_racks};
use crate::place::Placement;
use crate::problem::{ArrivedSenders, EarlierReceivers, EdgeProblem, InputBlock, PlaceProblem};
use hintd_model::cluster::{EdgePattern, Way};
use hintd_model::units::{Bytes, GroupIdx, NodeIdx};
use std::collections::BTreeMap;

/// Parts of one side of a transfer: by node, ascending, summing to 1.
pub(crate) type Side = Vec<(NodeIdx, f64)>;

/// Bytes from every source to every sink in proportion to the parts of both.
#[derive(Debug)]
pub struct Transfer {
    /// Who sends, ascending by node.
    pub from: Side,
    /// Who receives, ascending by node.
    pub to: Side,
    /// All bytes.
    pub bytes: f64,
}

/// A node's part of a side.
pub(crate) fn part(side: &[(NodeIdx, f64)], node: NodeIdx) -> f64 {
    side.binary_search_by_key(&node, |(other, _)| *other).map_or(0.0, |found| side[found].1)
}

/// Whether any bytes are known: else no placement is better than another by them.
#[must_use]
pub fn are_known(problem: &PlaceProblem<'_>) -> bool {
    let inputs = problem.groups.iter().any(|group| !group.input.is_empty());
    inputs || !problem.edges.is_empty() || !problem.senders.is_empty()
}

/// Input that is not read locally.
pub(super) fn inputs(problem: &PlaceProblem<'_>, groups: &[GroupPlaces]) -> Vec<Transfer> {
    let mut out = Vec::new();
    for (group, places) in problem.groups.iter().zip(groups).filter(|(_, places)| places.total > 0.0) {
        input(problem, &group.input.blocks, places, &mut out);
    }
    out
}

fn input(problem: &PlaceProblem<'_>, blocks: &[InputBlock], places: &GroupPlaces, out: &mut Vec<Transfer>) {
    let racks = used_racks(places);
    let mut from_anywhere: BTreeMap<NodeIdx, f64> = BTreeMap::new();
    for block in blocks.iter().filter(|block| !block.nodes.iter().any(|node| places.nodes.contains_key(node))) {
        let rack = |node: &NodeIdx| problem.snapshot.rack(*node);
        let near: Vec<NodeIdx> = block.nodes.iter().copied().filter(|node| racks.contains(&rack(node))).collect();
        if near.is_empty() {
            for &node in &block.nodes {
                *from_anywhere.entry(node).or_default() += block.bytes.as_f64() / block.nodes.len() as f64;
            }
        }
        for &node in &near {
            let readers = places.nodes.iter().filter(|(reader, _)| rack(reader) == rack(&node));
            let bytes = block.bytes.as_f64() / near.len() as f64;
            out.push(Transfer { from: vec![(node, 1.0)], to: shares(readers), bytes });
        }
    }
    let bytes: f64 = from_anywhere.values().sum();
    let sources: Side = from_anywhere.into_iter().map(|(node, part)| (node, part / bytes)).collect();
    out.push(Transfer { from: sources, to: shares(places.nodes.iter()), bytes });
}

/// From containers that are there already.
pub(super) fn arrived(problem: &PlaceProblem<'_>, groups: &[GroupPlaces]) -> Vec<Transfer> {
    let mut out = Vec::new();
    for ArrivedSenders { to, from, way } in &problem.senders {
        let places = &groups[to.at()];
        let all: f64 = from.iter().map(|(_, bytes)| bytes.as_f64()).sum();
        if all <= 0.0 || places.total <= 0.0 {
            continue;
        }
        let bytes = all * placed(problem, to.at(), places);
        let there: Side = from.iter().map(|&(node, part)| (node, part.as_f64() / all)).collect();
        let new = shares(places.nodes.iter());
        if *way != Way::In {
            out.push(Transfer { from: new.clone(), to: there.clone(), bytes });
        }
        if *way != Way::Out {
            out.push(Transfer { from: there, to: new, bytes });
        }
    }
    out
}

/// To receivers that were asked for before: the same for every placement.
pub(super) fn earlier(problem: &PlaceProblem<'_>) -> Vec<Transfer> {
    let of = |EarlierReceivers { from, on }: &EarlierReceivers| {
        let bytes: f64 = from.iter().map(|(_, bytes)| bytes.as_f64()).sum();
        let there: Side = from.iter().map(|&(node, part)| (node, part.as_f64() / bytes)).collect();
        (bytes > 0.0 && !on.is_empty()).then(|| Transfer {
            from: there,
            to: shares(on.iter().map(|(node, count)| (node, count))),
            bytes,
        })
    };
    problem.earlier.iter().filter_map(of).collect()
}

/// What is read by nodes, of places that are not known: bytes that come out of other racks.
pub(super) fn scattered(problem: &PlaceProblem<'_>, groups: &[GroupPlaces]) -> Vec<(NodeIdx, f64)> {
    let of = |&(group, bytes): &(GroupIdx, Bytes)| {
        let places = &groups[group.at()];
        let bytes = bytes.as_f64() * placed(problem, group.at(), places);
        shares(places.nodes.iter()).into_iter().map(move |(node, share)| (node, bytes * share))
    };
    problem.scattered.iter().flat_map(of).collect()
}

/// The part of a group's containers that has a place: what the others would get is sent nowhere.
fn placed(problem: &PlaceProblem<'_>, group: usize, places: &GroupPlaces) -> f64 {
    places.total / f64::from(problem.groups[group].count).max(places.total).max(1.0)
}

/// Between groups of the problem.
pub(super) fn edges(problem: &PlaceProblem<'_>, placement: &Placement, groups: &[GroupPlaces]) -> Vec<Transfer> {
    let mut out = Vec::new();
    for edge in &problem.edges {
        between(edge, placement, groups, &mut out);
    }
    out
}

fn between(edge: &EdgeProblem, placement: &Placement, groups: &[GroupPlaces], out: &mut Vec<Transfer>) {
    let (from, to) = (&groups[edge.from.at()], &groups[edge.to.at()]);
    match edge.pattern {
        EdgePattern::AllToAll => {
            let one_group = edge.from == edge.to;
            if all_to_all_within(&from.nodes, &to.nodes, one_group).is_none() {
                return;
            }
            // Without the pairs of a container with itself the others carry a little more each.
            let more = if one_group { from.total / (from.total - 1.0) } else { 1.0 };
            let bytes = edge.bytes.as_f64() * more;
            out.push(Transfer { from: shares(from.nodes.iter()), to: shares(to.nodes.iter()), bytes });
        }
        EdgePattern::OneToOne => {
            let pairs = one_to_one(placement, edge.from.at(), edge.to.at());
            let bytes = edge.bytes.as_f64() / pairs.len() as f64;
            out.extend(pairs.iter().map(|&(a, b)| Transfer { from: vec![(a, 1.0)], to: vec![(b, 1.0)], bytes }));
        }
    }
}

/// Shares of containers by node, ascending.
fn shares<'a>(places: impl Iterator<Item = (&'a NodeIdx, &'a u32)>) -> Side {
    let counts: Vec<(NodeIdx, f64)> = places.map(|(&node, &count)| (node, f64::from(count))).collect();
    let total: f64 = counts.iter().map(|(_, count)| count).sum();
    counts.into_iter().map(|(node, count)| (node, count / total)).collect()
}
