//! Bytes of a placement laid on links.

use super::GroupPlaces;
use super::transfers::{self, Transfer, part};
use crate::dataflow::flows_of;
use crate::place::Placement;
use crate::problem::PlaceProblem;
use hintd_model::cluster::NodePair;
use hintd_model::network::{EcmpTable, EdgeIdx, LinkLoads, Network, SpreadFlow};
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

/// The link that needs longest for a placement's bytes.
pub(super) struct WorstLink {
    /// Which way; `None`: none carries anything.
    pub(super) link: Option<DirectedLinkIdx>,
    pub(super) seconds: f64,
}

/// Pairs beyond which chosen routes are left out of account: all traffic then takes all shortest paths.
const ROUTED_PAIRS_MAX: usize = 20_000;

impl<'p> Flows<'p> {
    /// `None` without a topology, and without any bytes known.
    pub(super) fn of(problem: &'p PlaceProblem<'p>, placement: &'p Placement, groups: &[GroupPlaces]) -> Option<Self> {
        let network = problem.snapshot.topology.network.as_deref()?;
        let ecmp = problem.snapshot.topology.ecmp()?;
        if !transfers::are_known(problem) {
            return None;
        }
        let mut flows =
            Self { network, ecmp, problem, access: BTreeMap::new(), between: BTreeMap::new(), routed: Vec::new() };
        transfers::inputs(problem, groups).iter().for_each(|transfer| flows.lay(transfer));
        transfers::arrived(problem, groups).iter().for_each(|transfer| flows.lay(transfer));
        let routed = flows.has_routes(placement);
        let between = flows.between.clone();
        transfers::edges(problem, placement, groups).iter().for_each(|transfer| flows.lay(transfer));
        if routed {
            // The same bytes above the access links, pair by pair.
            flows.between = between;
            flows.add_pairs(placement);
        }
        Some(flows)
    }

    /// The link that needs longest, and which way and for how many seconds; `None` if some bytes have no path.
    pub(super) fn worst_link(self) -> Option<WorstLink> {
        let mut loads = LinkLoads::new(self.network);
        for (&node, &(sent, received)) in &self.access {
            let vertex = self.problem.snapshot.topology.vertex.get(node.at()).copied().flatten()?;
            if !loads.add_host(self.network, vertex, sent, received) {
                return None;
            }
        }
        let flow = |(&(from, to), &bytes): (&(EdgeIdx, EdgeIdx), &f64)| SpreadFlow { from, to, bytes };
        let flows: Vec<_> = self.between.iter().map(flow).collect();
        if self.ecmp.spread_all(&flows, &mut loads) > 0.0 {
            return None;
        }
        for (links, bytes) in &self.routed {
            for link in *links {
                loads.add(LinkIdx(link.0 / 2), link.0 % 2 == 0, *bytes);
            }
        }
        let worst = loads.worst_link(self.network);
        let way = |link: LinkIdx| {
            let [there, back] = loads.of(link);
            DirectedLinkIdx(link.0 * 2 + u32::from(back > there))
        };
        Some(WorstLink {
            link: worst.filter(|(_, seconds)| *seconds > 0.0).map(|(link, _)| way(link)),
            seconds: worst.map_or(0.0, |(_, seconds)| seconds),
        })
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

    /// What stays on a host is not laid.
    fn lay(&mut self, transfer: &Transfer) {
        let Transfer { from, to, bytes } = transfer;
        if *bytes <= 0.0 {
            return;
        }
        for &(node, share) in from {
            self.access.entry(node).or_default().0 += bytes * share * (1.0 - part(to, node));
        }
        for &(node, share) in to {
            self.access.entry(node).or_default().1 += bytes * share * (1.0 - part(from, node));
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
