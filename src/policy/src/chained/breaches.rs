//! An independent check of a placement against its chains: counts flows that break theirs, whatever policy placed them.

use super::compiled::{ChainedProblem, End, FlowOf, NONE, Settings};
use crate::place::{ChosenRoute, PlaceError, Placement};
use crate::problem::PlaceProblem;
use hintd_model::cluster::{NodePair, Topology};
use hintd_model::network::Network;
use hintd_model::network::chains::{BoxKind, HopTable, WhenBroken};
use hintd_model::units::{BoxIdx, ChainIdx, LinkIdx, NodeIdx, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaches {
    /// Flows under a chain, both of whose ends have a place.
    pub flows: u64,
    /// Those of them that do not pass their boxes as they should.
    pub broken: u64,
    /// Boxes declared.
    pub boxes: u64,
    /// Those that carry too much, or are asked to while they are down.
    pub involved: u64,
}

/// Checks the routes of a placement: whole, from end to end, loop-free between boxes, through boxes of the chain's types
/// in order, all of them up and none over its capacity; and that they carry all that the flows send.
pub(crate) fn breaches_of(
    problem: &PlaceProblem<'_>,
    placement: &Placement,
    settings: &Settings,
) -> Result<Breaches, PlaceError> {
    let Some(compiled) = ChainedProblem::compile(problem, settings)? else { return Ok(Breaches::default()) };
    let mut found = Breaches { boxes: compiled.own.boxes.len() as u64, ..Breaches::default() };
    let mut loads = vec![0_u64; compiled.own.boxes.len()];
    let mut sent: BTreeMap<(NodePair, ChainIdx), (u64, u64)> = BTreeMap::new();
    for (flow, pair) in placed(&compiled, placement) {
        let entry = sent.entry((pair, compiled.own.classes[flow.class as usize].chain)).or_default();
        *entry = (entry.0 + 1, entry.1 + flow.rate);
        found.flows += 1;
    }
    let chained = || placement.routes.iter().filter(|route| route.chain.is_some());
    for (route, stop) in chained().flat_map(|route| route.stops.iter().map(move |stop| (route, stop))) {
        loads[stop.index.at()] += route.rate.0;
    }
    let over: BTreeSet<u32> =
        (0..loads.len() as u32).filter(|&at| loads[at as usize] > compiled.own.boxes[at as usize].room).collect();
    found.involved = over.len() as u64;
    for ((pair, chain), (flows, rate)) in sent {
        let own: Vec<&ChosenRoute> =
            chained().filter(|route| (route.pair, route.chain) == (pair, Some(chain))).collect();
        let whole = own.iter().map(|route| route.rate.0).sum::<u64>() == rate;
        let sound = |route: &&ChosenRoute| {
            is_sound(&compiled, route, chain) && route.stops.iter().all(|stop| !over.contains(&stop.index.0))
        };
        if !whole || !own.iter().all(sound) {
            found.broken += flows;
        }
    }
    Ok(found)
}

/// What becomes of a placement by a policy that knows no chains, its traffic steered to the boxes nearest on the network
/// as it was before anything failed (`intact`), whatever they carry: static paths, as 002 has them for `pna`. A flow is
/// broken if a box of its is down, full before its turn, or not reached from its ends now.
pub(crate) fn breaches_unaware(
    problem: &PlaceProblem<'_>,
    intact: &Topology,
    placement: &Placement,
    settings: &Settings,
) -> Result<Breaches, PlaceError> {
    let Some(compiled) = ChainedProblem::compile(problem, settings)? else { return Ok(Breaches::default()) };
    let mut found = Breaches { boxes: compiled.own.boxes.len() as u64, ..Breaches::default() };
    let Some(network) = intact.network.as_deref() else { return Ok(found) };
    let nearest = Nearest::new(&compiled, network, intact);
    let mut left: Vec<u64> =
        compiled.own.boxes.iter().map(|known| if known.point == NONE { 0 } else { known.room }).collect();
    let mut involved = BTreeSet::new();
    for (flow, pair) in placed(&compiled, placement) {
        found.flows += 1;
        let list = nearest.list(pair, compiled.kinds(&flow));
        let full: Vec<u32> = list.iter().copied().filter(|&index| left[index as usize] < flow.rate).collect();
        let reached = list.len() == compiled.kinds(&flow).len() && nearest.reached_now(&compiled, pair, &list);
        found.broken += u64::from(!full.is_empty() || !reached);
        for &index in &list {
            left[index as usize] = left[index as usize].saturating_sub(flow.rate);
        }
        involved.extend(full);
    }
    found.involved = involved.len() as u64;
    Ok(found)
}

/// Flows under chains with the nodes that a placement gives their ends.
fn placed<'g>(
    compiled: &'g ChainedProblem<'_>,
    placement: &'g Placement,
) -> impl Iterator<Item = (FlowOf, NodePair)> + use<'g> {
    let mut nodes: Vec<Option<NodeIdx>> = Vec::with_capacity(compiled.group_of.len());
    for (group, shares) in compiled.problem.groups.iter().zip(&placement.groups) {
        let own = shares.iter().flat_map(|share| std::iter::repeat_n(Some(share.node), share.count as usize));
        nodes.extend(own.chain(std::iter::repeat(None)).take(group.count as usize));
    }
    compiled.own.flows.iter().filter(|flow| flow.class != NONE).filter_map(move |flow| {
        let node = |end: End| match end {
            End::Fixed { node, .. } => Some(node),
            End::Task(task) => nodes[task as usize],
        };
        Some((*flow, NodePair { from: node(flow.from)?, to: node(flow.to)? }))
    })
}

fn is_sound(compiled: &ChainedProblem<'_>, route: &ChosenRoute, chain: ChainIdx) -> bool {
    let (network, chains) = (compiled.own.network, compiled.own.chains);
    let vertex = |node: NodeIdx| compiled.own.topology.vertex.get(node.at()).copied().flatten();
    let (Some(mut here), Some(end)) = (vertex(route.pair.from), vertex(route.pair.to)) else { return false };
    let chain = chains.chain(chain);
    let kinds: Vec<BoxKind> = route.stops.iter().map(|stop| chains.boxes()[stop.index.at()].kind).collect();
    let mut left = kinds.iter().peekable();
    let matched = chain.sequence.iter().filter(|&kind| left.next_if(|own| *own == kind).is_some()).count();
    let complete = kinds.len() == chain.sequence.len() || chain.when_broken == WhenBroken::Open;
    if matched != kinds.len() || !complete {
        return false;
    }
    let mut segment = BTreeSet::from([here]);
    for (at, link) in route.links.iter().enumerate() {
        for stop in route.stops.iter().filter(|stop| usize::from(stop.after) == at) {
            if !chains.is_usable(network, stop.index) || chains.boxes()[stop.index.at()].at != Some(here) {
                return false;
            }
            segment = BTreeSet::from([here]);
        }
        let index = LinkIdx(link.0 / 2);
        let known = network.link_at(index);
        let (tail, head) = if link.0.is_multiple_of(2) { (known.a, known.b) } else { (known.b, known.a) };
        let last = at + 1 == route.links.len();
        let is_new = segment.insert(head) || (last && head == end);
        if tail != here || !network.is_usable(index) || !is_new || (!last && network.vertex_at(head).is_host()) {
            return false;
        }
        here = head;
    }
    here == end && route.stops.iter().all(|stop| usize::from(stop.after) < route.links.len())
}

/// The boxes nearest on the network as it was.
struct Nearest<'g> {
    hops: HopTable,
    /// By box: its place among the columns.
    of_box: Vec<Option<usize>>,
    by_kind: BTreeMap<BoxKind, Vec<u32>>,
    topology: &'g Topology,
    network: &'g Network,
    places: Vec<VertexIdx>,
}

impl<'g> Nearest<'g> {
    fn new(compiled: &ChainedProblem<'_>, network: &'g Network, topology: &'g Topology) -> Self {
        let nodes = (0..topology.vertex.len()).map(NodeIdx::new);
        let mut places: Vec<VertexIdx> = nodes.filter_map(|node| switch(network, topology, node)).collect();
        places.extend(compiled.own.chains.boxes().iter().filter_map(|known| known.at));
        places.sort_unstable();
        places.dedup();
        let mut by_kind: BTreeMap<BoxKind, Vec<u32>> = BTreeMap::new();
        for (at, known) in (0..).zip(compiled.own.chains.boxes()) {
            by_kind.entry(known.kind).or_default().push(at);
        }
        let place = |at: Option<VertexIdx>| at.and_then(|at| places.binary_search(&at).ok());
        let of_box = compiled.own.chains.boxes().iter().map(|known| place(known.at)).collect();
        Self { hops: HopTable::new(network, &places, &places), of_box, by_kind, topology, network, places }
    }

    /// One box of each type after the other, the nearest to the one before.
    fn list(&self, pair: NodePair, kinds: &[BoxKind]) -> Vec<u32> {
        let at = |node| switch(self.network, self.topology, node).and_then(|at| self.places.binary_search(&at).ok());
        let Some(mut here) = at(pair.from) else { return Vec::new() };
        let mut list = Vec::new();
        for kind in kinds {
            let all = self.by_kind.get(kind).into_iter().flatten();
            let placed = all.filter_map(|&index| Some((index, self.of_box[index as usize]?)));
            let Some((index, there)) = placed.min_by_key(|&(index, there)| (self.hops.get(here, there), index)) else {
                return list;
            };
            list.push(index);
            here = there;
        }
        list
    }

    /// Whether the way through the boxes is there on the network of now.
    fn reached_now(&self, compiled: &ChainedProblem<'_>, pair: NodePair, list: &[u32]) -> bool {
        let at = |node| switch(compiled.own.network, compiled.own.topology, node);
        let stops = list.iter().map(|&index| {
            let usable = compiled.own.chains.is_usable(compiled.own.network, BoxIdx(index));
            compiled.own.chains.boxes()[index as usize].at.filter(|_| usable)
        });
        let places: Option<Vec<VertexIdx>> = [at(pair.from)].into_iter().chain(stops).chain([at(pair.to)]).collect();
        let joined = |pair: &[VertexIdx]| {
            HopTable::new(compiled.own.network, &pair[..1], &pair[1..]).get(0, 0) != HopTable::NONE
        };
        places.is_some_and(|places| places.windows(2).all(joined))
    }
}

fn switch(network: &Network, topology: &Topology, node: NodeIdx) -> Option<VertexIdx> {
    network.attachment(topology.vertex.get(node.at()).copied().flatten()?)
}
