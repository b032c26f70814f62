//! Routes of a decision, in names.

use super::chained::{self, Found, Sent};
use super::pairs::is_whole;
use super::{Flows, job};
use crate::decision::{ChainPath, HintRoute};
use crate::placer::Row;
use crate::routes::view::{names_of, stops};
use hintd_model::cluster::{ChainPair, ChainedRoute, Flow, NodePair, RunningFlows, Snapshot};
use hintd_model::network::chains::{Chains, WaypointRoute};
use hintd_model::network::{cut, host_paths};
use hintd_model::units::{Bytes, DecisionId, DirectedLinkIdx, Micros, NodeIdx};
use hintd_policy::Work;
use hintd_policy::dataflow;
use hintd_policy::problem::EdgeProblem;
use hintd_policy::{ChosenRoute, Share};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Pairs without a path whose cut is told, of one decision: each takes a search.
const CUTS_MAX: usize = 64;

/// Said of an answer whose flows would be of more pairs than may be kept track of: it names no routes.
pub(crate) const TOO_MANY_PAIRS: &str = "too_many_pairs";

/// Said of an answer whose routes are not all that there is to say: the time for looking for paths was over before all
/// pairs had theirs, or a pair's search ended at its bound.
pub(crate) const PATHS_CUT_SHORT: &str = "paths_cut_short";

/// Work that looking a pair's way up counts for, and one link of it.
const PAIR_WORK: u64 = 256;
const LINK_WORK: u64 = 4;

/// What a placer proposes to send, worked out where there is time for it.
#[derive(Debug, Clone)]
pub(crate) struct ProposedFlows {
    pub(crate) edges: Arc<[EdgeProblem]>,
    /// By group: containers that want a lease.
    pub(crate) shares: Vec<Vec<Share>>,
    pub(crate) traffic: hintd_model::cluster::Traffic,
    /// Routes of it.
    pub(crate) chosen: Vec<ChosenRoute>,
    /// By edge: the name of the chain that it is under; then it is no part of `traffic`.
    pub(crate) classes: Vec<Option<Arc<str>>>,
    pub(crate) chained: BTreeMap<ChainPair, Sent>,
    /// Ways of it that were found.
    pub(crate) ways: Found,
}

impl ProposedFlows {
    /// Tasks of which nothing else is known: those placed anew, whose edges are their job's.
    pub(crate) fn bare(shares: Vec<Vec<Share>>) -> Self {
        Self {
            edges: Arc::from([]),
            shares,
            traffic: Default::default(),
            chosen: Vec::new(),
            classes: Vec::new(),
            chained: BTreeMap::new(),
            ways: Found::new(),
        }
    }

    /// `None`: nobody said who talks to whom, it has no beginning or no end, nothing is placed, or it is more than
    /// `most_pairs`.
    pub(crate) fn new(
        edges: &[EdgeProblem],
        classes: Vec<Option<Arc<str>>>,
        shares: Vec<Vec<Share>>,
        mut chosen: Vec<ChosenRoute>,
        most_pairs: usize,
    ) -> Option<Self> {
        if edges.is_empty() || Self::are_too_many(edges, &shares, most_pairs) {
            return None;
        }
        let plain = chained::plain(edges, &classes);
        let traffic = if plain.is_empty() { Default::default() } else { dataflow::traffic(&plain, &shares).ok()? };
        let chained = chained::sends(edges, &classes, &shares);
        chosen.retain(|route| route.chain.is_none());
        Some(Self { edges: edges.into(), shares, traffic, chosen, classes, chained, ways: Found::new() })
    }

    /// Whether there would be more pairs than `most_pairs`, and so no flows for no other reason.
    pub(crate) fn are_too_many(edges: &[EdgeProblem], shares: &[Vec<Share>], most_pairs: usize) -> bool {
        job::most_pairs(edges, shares) > most_pairs
    }

    /// Its routes as they would be, were it committed now. Pairs that `work` leaves no time for are left out.
    pub(crate) fn preview(
        &self,
        snapshot: &Snapshot,
        running: &RunningFlows,
        transfer: Micros,
        work: &dyn Work,
    ) -> Vec<HintRoute> {
        if snapshot.topology.network.is_none() {
            return Vec::new(); // nobody knows of any way, and nothing is cut
        }
        let chosen: BTreeMap<NodePair, &ChosenRoute> = self.chosen.iter().map(|route| (route.pair, route)).collect();
        let mut names = Names::new(snapshot);
        let route = |flow: &Flow| {
            let known = running.routes.get(&flow.pair).map(|route| (Arc::clone(&route.links), route.installed));
            let links = || chosen.get(&flow.pair).map(|route| (Arc::clone(&route.links), true));
            known.or_else(links).or_else(|| {
                if !work.work(PAIR_WORK) {
                    work.note_cut_short_paths();
                    return None;
                }
                let first = names.first(flow.pair);
                work.work(LINK_WORK * first.len() as u64);
                Some((first, true))
            })
        };
        let routes: Vec<_> = self.traffic.flows.iter().map(route).collect();
        let plain = self.traffic.flows.iter().zip(routes);
        let mut hints: Vec<HintRoute> = plain
            .filter_map(|(flow, known)| known.map(|(links, by_rules)| names.hint(flow, &links, by_rules)))
            .collect();
        let chains = snapshot.topology.chains.as_deref();
        for (key, sent) in &self.chained {
            let known = running.chained.routes.get(key);
            let bytes = Bytes(known.map_or(0, |known| known.bytes.0).saturating_add(sent.bytes));
            let route = ChainedRoute {
                way: self.ways.get(key).cloned(),
                rate: chained::rate(bytes, transfer),
                task_pairs: known.map_or(0, |known| known.task_pairs) + sent.task_pairs,
                bytes,
            };
            hints.push(names.chained(key, sent, Some(&route), chains));
        }
        hints
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
            Some(names.hint(flow, &talking.route, talking.carried == super::pairs::ForwardingMode::Rules))
        };
        let mut hints: Vec<HintRoute> = job.traffic.flows.iter().filter(concerned).filter_map(hint).collect();
        let chained = self.chained();
        let chains = chained.chains.as_deref();
        let mine = |key: &ChainPair| nodes.contains(&key.pair.from) || nodes.contains(&key.pair.to);
        for (key, sent) in job.chained.iter().filter(|(key, _)| mine(key)) {
            let route = chained.routes.get(key).map(Arc::as_ref);
            hints.push(names.chained(key, sent, route, chains));
        }
        hints
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

    fn vertices(&self, pair: NodePair) -> Option<(hintd_model::units::VertexIdx, hintd_model::units::VertexIdx)> {
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
            chain: None,
        }
    }

    /// A route under a chain.
    fn chained(
        &mut self,
        key: &ChainPair,
        sent: &Sent,
        route: Option<&ChainedRoute>,
        chains: Option<&Chains>,
    ) -> HintRoute {
        let way = route.and_then(|route| route.way.as_ref());
        let links = way.map_or(&[][..], |way| &way.links);
        let flow = Flow {
            pair: key.pair,
            task_pairs: u32::try_from(sent.task_pairs).unwrap_or(u32::MAX),
            bytes: Bytes(sent.bytes),
        };
        let rate = route.map(|route| route.rate).unwrap_or_default();
        let path = ChainPath {
            name: Arc::clone(&key.chain),
            stops: way.zip(chains).map(|(way, chains)| stops(chains, way)).unwrap_or_default(),
            rate,
            cost: way.map(|way| rate.0.saturating_mul(way.hops() as u64)),
            left_out: way.zip(chains).map(|(way, chains)| left_out(chains, &key.chain, way)).unwrap_or_default(),
        };
        let mut hint = HintRoute { chain: Some(path), cut: Vec::new(), ..self.hint(&flow, links, true) };
        if way.is_some_and(|way| way.links.is_empty()) {
            hint.vertices = vec![Arc::from(hint.src.as_str())]; // it stays on its host
        }
        hint
    }
}

/// Types of the chain that the way passes no box of.
fn left_out(chains: &Chains, name: &str, way: &WaypointRoute) -> Vec<Arc<str>> {
    let passed: Vec<_> = way.boxes.iter().map(|&index| chains.boxes()[index.at()].kind).collect();
    let sequence = chains.find_chain(name).map(|index| &chains.chain(index).sequence[..]).unwrap_or_default();
    sequence.iter().filter(|kind| !passed.contains(kind)).map(|&kind| Arc::clone(chains.kind_name(kind))).collect()
}
