//! Bytes of a placement laid on links.

use super::{GroupPlaces, all_to_all_within, one_to_one, used_racks};
use crate::dataflow::flows_of;
use crate::place::Placement;
use crate::problem::{EdgeProblem, InputBlock, PlaceProblem};
use hintd_model::cluster::{EdgePattern, NodePair};
use hintd_model::network::{EcmpTable, EdgeIdx, LinkLoads, Network};
use hintd_model::units::{DirectedLinkIdx, LinkIdx, NodeIdx};
use std::collections::BTreeMap;

/// Bytes by node at the access links, and by pair of attachment switches above them.
pub(super) struct Flows<'p> {
    network: &'p Network,
    ecmp: &'p EcmpTable,
    problem: &'p PlaceProblem<'p>,
    /// Sent and received, by node.
    access: BTreeMap<NodeIdx, (f64, f64)>,
    between: BTreeMap<(EdgeIdx, EdgeIdx), f64>,
    /// Bytes that have a route of their own.
    routed: Vec<(&'p [DirectedLinkIdx], f64)>,
}

/// Pairs beyond which chosen routes are left out of account: all traffic then takes all shortest paths.
const ROUTED_PAIRS_MAX: usize = 20_000;

/// Shares of one side of a flow: by node, summing to 1.
type Side = Vec<(NodeIdx, f64)>;

impl<'p> Flows<'p> {
    /// `None` without a topology, and without any bytes known.
    pub(super) fn of(problem: &'p PlaceProblem<'p>, placement: &'p Placement, groups: &[GroupPlaces]) -> Option<Self> {
        let network = problem.snapshot.topology.network.as_deref()?;
        let ecmp = problem.snapshot.topology.ecmp()?;
        if problem.edges.is_empty() && problem.groups.iter().all(|group| group.input.is_empty()) {
            return None;
        }
        let mut flows =
            Self { network, ecmp, problem, access: BTreeMap::new(), between: BTreeMap::new(), routed: Vec::new() };
        for (group, places) in problem.groups.iter().zip(groups) {
            flows.add_input(&group.input.blocks, places);
        }
        let routed = flows.has_routes(placement);
        let between = flows.between.clone();
        for edge in &problem.edges {
            flows.add_edge(edge, placement, groups);
        }
        if routed {
            // The same bytes above the access links, pair by pair.
            flows.between = between;
            flows.add_pairs(placement);
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
        for (links, bytes) in &self.routed {
            for link in *links {
                loads.add(LinkIdx(link.0 / 2), link.0 % 2 == 0, *bytes);
            }
        }
        Some(loads.worst_link(self.network).map_or(0.0, |(_, seconds)| seconds))
    }

    /// Whether some pair has a route, and pairs are few enough to look at each.
    fn has_routes(&self, placement: &Placement) -> bool {
        let running = self.problem.running.is_some_and(|running| !running.routes.is_empty());
        let nodes = |group: usize| placement.groups[group].len();
        let pairs: usize = self.problem.edges.iter().map(|edge| nodes(edge.from.at()) * nodes(edge.to.at())).sum();
        (running || !placement.routes.is_empty()) && pairs <= ROUTED_PAIRS_MAX
    }

    /// Edges pair by pair: on the route that a running job or the placement gives the pair, else on all shortest paths.
    fn add_pairs(&mut self, placement: &'p Placement) {
        let edge = |node: NodeIdx| self.problem.snapshot.topology.edge.get(node.at()).copied().flatten();
        for flow in flows_of(&self.problem.edges, &placement.groups) {
            let bytes = flow.bytes.as_f64();
            match self.route(placement, flow.pair) {
                // Access links have theirs already.
                Some([_, inner @ .., _]) => self.routed.push((inner, bytes)),
                _ => {
                    if let (Some(a), Some(b)) = (edge(flow.pair.from), edge(flow.pair.to))
                        && a != b
                    {
                        *self.between.entry((a, b)).or_default() += bytes;
                    }
                }
            }
        }
    }

    fn route(&self, placement: &'p Placement, pair: NodePair) -> Option<&'p [DirectedLinkIdx]> {
        let running = self.problem.running.and_then(|running| running.routes.get(&pair));
        let chosen = || placement.routes.binary_search_by_key(&pair, |route| route.pair).ok();
        match running {
            Some(known) => Some(&known.links),
            None => chosen().map(|at| &*placement.routes[at].links),
        }
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
