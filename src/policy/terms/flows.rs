//! Bytes of a placement laid on links.

use super::{GroupPlaces, all_to_all_within, one_to_one, used_racks};
use crate::cluster::EdgePattern;
use crate::network::{EcmpTable, EdgeIdx, LinkLoads, Network};
use crate::policy::place::Placement;
use crate::policy::problem::{EdgeProblem, InputBlock, PlaceProblem};
use crate::units::NodeIdx;
use std::collections::BTreeMap;

/// Bytes by node at the access links, and by pair of attachment switches above them.
pub(super) struct Flows<'p> {
    network: &'p Network,
    ecmp: &'p EcmpTable,
    problem: &'p PlaceProblem<'p>,
    /// Sent and received, by node.
    access: BTreeMap<NodeIdx, (f64, f64)>,
    between: BTreeMap<(EdgeIdx, EdgeIdx), f64>,
}

/// Shares of one side of a flow: by node, summing to 1.
type Side = Vec<(NodeIdx, f64)>;

impl<'p> Flows<'p> {
    /// `None` without a topology, and without any bytes known.
    pub(super) fn of(problem: &'p PlaceProblem<'p>, placement: &Placement, groups: &[GroupPlaces]) -> Option<Self> {
        let network = problem.snapshot.topology.network.as_deref()?;
        let ecmp = problem.snapshot.topology.ecmp()?;
        if problem.edges.is_empty() && problem.groups.iter().all(|group| group.input.is_empty()) {
            return None;
        }
        let mut flows = Self { network, ecmp, problem, access: BTreeMap::new(), between: BTreeMap::new() };
        for (group, places) in problem.groups.iter().zip(groups) {
            flows.add_input(&group.input.blocks, places);
        }
        for edge in &problem.edges {
            flows.add_edge(edge, placement, groups);
        }
        Some(flows)
    }

    /// Seconds of the link that needs longest; `None` if some bytes have no path.
    pub(super) fn worst_link_s(self) -> Option<f64> {
        let mut loads = LinkLoads::new(self.network);
        for (&node, &(sent, received)) in &self.access {
            let vertex = self.problem.snapshot.topology.vertex.get(node.at()).copied().flatten()?;
            if !loads.add_host(self.network, vertex, sent, received) {
                return None;
            }
        }
        let flows: Vec<_> = self.between.iter().map(|(&(from, to), &bytes)| (from, to, bytes)).collect();
        if self.ecmp.spread_all(&flows, &mut loads) > 0.0 {
            return None;
        }
        Some(loads.worst_link(self.network).map_or(0.0, |(_, seconds)| seconds))
    }

    fn add_input(&mut self, blocks: &[InputBlock], places: &GroupPlaces) {
        if places.total == 0.0 {
            return;
        }
        let racks = used_racks(places);
        let mut from_anywhere: BTreeMap<NodeIdx, f64> = BTreeMap::new();
        for block in blocks.iter().filter(|block| !block.nodes.iter().any(|node| places.nodes.contains_key(node))) {
            let rack = |node: &NodeIdx| self.problem.snapshot.rack(*node);
            let near: Vec<NodeIdx> = block.nodes.iter().copied().filter(|node| racks.contains(&rack(node))).collect();
            if near.is_empty() {
                for &node in &block.nodes {
                    *from_anywhere.entry(node).or_default() += block.bytes.as_f64() / block.nodes.len() as f64;
                }
            }
            for &node in &near {
                let readers = places.nodes.iter().filter(|(reader, _)| rack(reader) == rack(&node));
                let readers = shares(readers);
                self.lay(&[(node, 1.0)], &readers, block.bytes.as_f64() / near.len() as f64);
            }
        }
        let bytes: f64 = from_anywhere.values().sum();
        let sources: Side = from_anywhere.into_iter().map(|(node, part)| (node, part / bytes)).collect();
        self.lay(&sources, &shares(places.nodes.iter()), bytes);
    }

    fn add_edge(&mut self, edge: &EdgeProblem, placement: &Placement, groups: &[GroupPlaces]) {
        let (from, to) = (&groups[edge.from.at()], &groups[edge.to.at()]);
        match edge.pattern {
            EdgePattern::AllToAll => {
                let one_group = edge.from == edge.to;
                if all_to_all_within(&from.nodes, &to.nodes, one_group).is_none() {
                    return;
                }
                // Without the pairs of a container with itself the others carry a little more each.
                let more = if one_group { from.total / (from.total - 1.0) } else { 1.0 };
                self.lay(&shares(from.nodes.iter()), &shares(to.nodes.iter()), edge.bytes.as_f64() * more);
            }
            EdgePattern::OneToOne => {
                let pairs = one_to_one(placement, edge.from.at(), edge.to.at());
                for &(a, b) in &pairs {
                    self.lay(&[(a, 1.0)], &[(b, 1.0)], edge.bytes.as_f64() / pairs.len() as f64);
                }
            }
        }
    }

    /// Bytes from every source to every sink in proportion to both shares; what stays on a host is not laid.
    fn lay(&mut self, from: &[(NodeIdx, f64)], to: &[(NodeIdx, f64)], bytes: f64) {
        if bytes <= 0.0 {
            return;
        }
        let at = |side: &[(NodeIdx, f64)], node: NodeIdx| -> f64 {
            side.binary_search_by_key(&node, |(other, _)| *other).map_or(0.0, |found| side[found].1)
        };
        for &(node, share) in from {
            self.access.entry(node).or_default().0 += bytes * share * (1.0 - at(to, node));
        }
        for &(node, share) in to {
            self.access.entry(node).or_default().1 += bytes * share * (1.0 - at(from, node));
        }
        let (senders, receivers) = (self.by_switch(from), self.by_switch(to));
        for (&a, sent) in &senders {
            for (&b, received) in receivers.iter().filter(|(b, _)| **b != a) {
                *self.between.entry((a, b)).or_default() += bytes * sent * received;
            }
        }
    }

    fn by_switch(&self, side: &[(NodeIdx, f64)]) -> BTreeMap<EdgeIdx, f64> {
        let mut sums = BTreeMap::new();
        for &(node, share) in side {
            if let Some(edge) = self.problem.snapshot.topology.edge.get(node.at()).copied().flatten() {
                *sums.entry(edge).or_default() += share;
            }
        }
        sums
    }
}

/// Shares of containers by node, ascending.
fn shares<'a>(places: impl Iterator<Item = (&'a NodeIdx, &'a u32)>) -> Side {
    let counts: Vec<(NodeIdx, f64)> = places.map(|(&node, &count)| (node, f64::from(count))).collect();
    let total: f64 = counts.iter().map(|(_, count)| count).sum();
    counts.into_iter().map(|(node, count)| (node, count / total)).collect()
}
