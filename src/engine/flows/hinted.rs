//! Routes of a decision, in names.

use super::pairs::is_whole;
use super::{Flows, job};
use crate::cluster::{Flow, NodePair, RunningFlows, Snapshot};
use crate::engine::decision::HintRoute;
use crate::engine::placer::Row;
use crate::engine::routes::view::names_of;
use crate::network::{cut, host_paths};
use crate::policy::dataflow;
use crate::policy::problem::EdgeProblem;
use crate::policy::{ChosenRoute, Share};
use crate::units::{DecisionId, DirectedLinkIdx, NodeIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Pairs without a path whose cut is told, of one decision: each takes a search.
const CUTS_MAX: usize = 64;

/// Said of an answer whose flows would be of more pairs than may be kept track of: it names no routes.
pub(crate) const TOO_MANY_PAIRS: &str = "too_many_pairs";

/// What a placer proposes to send, worked out where there is time for it.
#[derive(Debug, Clone)]
pub(crate) struct ProposedFlows {
    pub(crate) edges: Arc<[EdgeProblem]>,
    /// By group: containers that want a lease.
    pub(crate) shares: Vec<Vec<Share>>,
    pub(crate) traffic: crate::cluster::Traffic,
    pub(crate) chosen: Vec<ChosenRoute>,
}

impl ProposedFlows {
    /// Tasks of which nothing else is known: those placed anew, whose edges are their job's.
    pub(crate) fn bare(shares: Vec<Vec<Share>>) -> Self {
        Self { edges: Arc::from([]), shares, traffic: Default::default(), chosen: Vec::new() }
    }

    /// `None`: nobody said who talks to whom, it has no beginning or no end, nothing is placed, or it is more than
    /// `most_pairs`.
    pub(crate) fn new(
        edges: &[EdgeProblem],
        shares: Vec<Vec<Share>>,
        chosen: Vec<ChosenRoute>,
        most_pairs: usize,
    ) -> Option<Self> {
        if edges.is_empty() || Self::are_too_many(edges, &shares, most_pairs) {
            return None;
        }
        let traffic = dataflow::traffic(edges, &shares).ok()?;
        Some(Self { edges: edges.into(), shares, traffic, chosen })
    }

    /// Whether there would be more pairs than `most_pairs`, and so no flows for no other reason.
    pub(crate) fn are_too_many(edges: &[EdgeProblem], shares: &[Vec<Share>], most_pairs: usize) -> bool {
        job::most_pairs(edges, shares) > most_pairs
    }

    /// Its routes as they would be, were it committed now.
    pub(crate) fn preview(&self, snapshot: &Snapshot, running: &RunningFlows) -> Vec<HintRoute> {
        if snapshot.topology.network.is_none() {
            return Vec::new(); // nobody knows of any way, and nothing is cut
        }
        let chosen: BTreeMap<NodePair, &ChosenRoute> = self.chosen.iter().map(|route| (route.pair, route)).collect();
        let mut names = Names::new(snapshot);
        let route = |flow: &Flow| {
            let known = running.routes.get(&flow.pair).map(|route| (Arc::clone(&route.links), route.installed));
            let links = || chosen.get(&flow.pair).map(|route| (Arc::clone(&route.links), true));
            known.or_else(links).unwrap_or_else(|| (names.first(flow.pair), true))
        };
        let routes: Vec<_> = self.traffic.flows.iter().map(route).collect();
        self.traffic
            .flows
            .iter()
            .zip(routes)
            .map(|(flow, (links, by_rules))| names.hint(flow, &links, by_rules))
            .collect()
    }
}

/// Containers that want a lease, by group.
pub(crate) fn shares(rows: &[Row], groups: usize) -> Vec<Vec<Share>> {
    let mut shares: Vec<Vec<Share>> = vec![Vec::new(); groups];
    for row in rows.iter().filter(|row| row.lease && row.group < groups) {
        shares[row.group].push(Share { node: row.node, count: row.count });
    }
    shares
}

impl Flows {
    /// Routes of the pairs that a decision's tasks talk over, by pair.
    pub(crate) fn hinted(&self, decision: DecisionId, snapshot: &Snapshot) -> Vec<HintRoute> {
        let job = self.job_of.get(&decision).and_then(|host| self.jobs.get(host));
        let job = job.filter(|_| snapshot.topology.network.is_some());
        let Some((job, part)) = job.and_then(|job| Some((job, job.parts.get(&decision)?))) else { return Vec::new() };
        let nodes: BTreeSet<NodeIdx> = part.iter().flatten().map(|share| share.node).collect();
        let mut names = Names::new(snapshot);
        let concerned = |flow: &&Flow| nodes.contains(&flow.pair.from) || nodes.contains(&flow.pair.to);
        let hint = |flow: &Flow| {
            let talking = self.pairs.all.get(&flow.pair)?;
            Some(names.hint(flow, &talking.route, talking.carried == super::pairs::Carried::Rules))
        };
        job.traffic.flows.iter().filter(concerned).filter_map(hint).collect()
    }
}

struct Names<'a> {
    snapshot: &'a Snapshot,
    cuts: usize,
}

impl<'a> Names<'a> {
    const fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, cuts: 0 }
    }

    fn vertices(&self, pair: NodePair) -> Option<(crate::units::VertexIdx, crate::units::VertexIdx)> {
        let vertex = |node: NodeIdx| self.snapshot.topology.vertex.get(node.at()).copied().flatten();
        Some((vertex(pair.from)?, vertex(pair.to)?))
    }

    fn first(&self, pair: NodePair) -> Arc<[DirectedLinkIdx]> {
        let topology = &self.snapshot.topology;
        let found = topology.network.as_deref().zip(topology.paths()).zip(self.vertices(pair));
        let path = found.and_then(|((network, paths), (from, to))| host_paths(network, paths, from, to).next());
        path.map_or_else(|| Arc::from([]), |path| Arc::from(&*path))
    }

    fn hint(&mut self, flow: &Flow, links: &[DirectedLinkIdx], by_rules: bool) -> HintRoute {
        let network = self.snapshot.topology.network.as_deref();
        let links = network.filter(|network| is_whole(network, links)).map_or(&[][..], |_| links);
        let (vertices, names) = network.map_or_else(Default::default, |network| names_of(network, links));
        let mut between = Vec::new();
        if let (true, Some(network), Some((from, to))) = (links.is_empty(), network, self.vertices(flow.pair)) {
            self.cuts += 1;
            between = if self.cuts <= CUTS_MAX { cut(network, from, to) } else { between };
        }
        HintRoute {
            src: self.snapshot.host(flow.pair.from).clone(),
            dst: self.snapshot.host(flow.pair.to).clone(),
            vertices,
            links: names,
            task_pairs: flow.task_pairs,
            bytes: flow.bytes,
            installed: by_rules && !links.is_empty(),
            cut: between,
        }
    }
}
