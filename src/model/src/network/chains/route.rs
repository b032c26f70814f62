//! k best routes through boxes of given types, in order, joined from the path table's entries.

use super::document::WhenBroken;
use super::{BoxKind, Chain, Chains, LONGEST, Sequence};
use crate::network::graph::Network;
use crate::network::host_path::leaving;
use crate::network::path::{mix, shortest_path_seeded};
use crate::network::path_table::{PairPaths, PathTable};
use crate::solve::work::Work;
use crate::units::{BitsPerSec, BoxIdx, DirectedLinkIdx, LinkIdx, VertexIdx};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// What routes are made of.
#[derive(Debug, Clone, Copy)]
pub struct WaypointInputs<'a> {
    /// The network of now.
    pub network: &'a Network,
    /// Its paths, or those of an earlier version. Between switches that are no ends of it a shortest path is looked for:
    /// build it with [`Chains::ends`] among its ends.
    pub table: &'a PathTable,
    /// The boxes of now.
    pub chains: &'a Chains,
    /// Who counts what looking paths up takes; once that says to stop, switches that were not looked up have none between
    /// them.
    pub work: Option<&'a dyn Work>,
}

/// Work that looking a pair of switches up counts for, and one link of its paths: a search takes about as long.
const PAIR_WORK: u64 = 256;
const LINK_WORK: u64 = 4;
/// That of a pair whose search ended at its bound.
const CUT_SHORT_WORK: u64 = 1 << 16;
/// That of one look for a way, whatever it finds, and of one box that may be passed.
const WAY_WORK: u64 = 64;
const BOX_WORK: u64 = 8;

impl WaypointInputs<'_> {
    /// Counts work; whether the time is over.
    pub(super) fn spend(&self, units: u64) -> bool {
        self.work.is_some_and(|work| !work.work(units))
    }
}

/// What flows take of each box.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoxLoads(Vec<BitsPerSec>);

impl BoxLoads {
    /// No flows.
    #[must_use]
    pub fn new(chains: &Chains) -> Self {
        Self(vec![BitsPerSec::ZERO; chains.boxes().len()])
    }

    /// What is taken of a box.
    #[must_use]
    pub fn of(&self, index: BoxIdx) -> BitsPerSec {
        self.0.get(index.at()).copied().unwrap_or_default()
    }

    /// What is left of a box.
    #[must_use]
    pub fn room(&self, chains: &Chains, index: BoxIdx) -> BitsPerSec {
        chains.boxes()[index.at()].capacity.saturating_sub(self.of(index))
    }

    /// A flow passes a box.
    pub fn add(&mut self, index: BoxIdx, rate: BitsPerSec) {
        self.0[index.at()] = self.of(index).saturating_add(rate);
    }

    /// A flow passes it no more.
    pub fn remove(&mut self, index: BoxIdx, rate: BitsPerSec) {
        self.0[index.at()] = self.of(index).saturating_sub(rate);
    }
}

/// A route from host to host through boxes. Loop-free from one box to the next; as a whole it may pass a switch twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaypointRoute {
    /// Boxes passed, in order.
    pub boxes: SmallVec<[BoxIdx; LONGEST]>,
    /// By box: links walked before it is entered.
    pub stops: SmallVec<[u16; LONGEST]>,
    /// From the sender's access link to the receiver's. Ports of boxes are not among them.
    pub links: Vec<DirectedLinkIdx>,
}

impl WaypointRoute {
    /// Links of the network that it passes; a box costs no hop of its own.
    #[must_use]
    pub fn hops(&self) -> usize {
        self.links.len()
    }

    /// The parts between ends and boxes, in order: one more than boxes.
    pub fn segments(&self) -> impl Iterator<Item = &[DirectedLinkIdx]> {
        let cuts = self.stops.iter().map(|&stop| usize::from(stop));
        let starts = std::iter::once(0).chain(cuts.clone());
        starts.zip(cuts.chain([self.links.len()])).map(|(start, end)| &self.links[start..end])
    }
}

/// At most `k` routes, those of fewest hops first, from host to host through a usable box of each type in `sequence`
/// with `rate` left of its capacity. Of equal ones the order is drawn by a hash of ends and boxes, so that pairs spread
/// over them. Where both ends are the same host a flow with a sequence leaves it all the same, one without stays on it
/// and passes no link. None where there is no way.
///
/// Each part is one of the table's k shortest paths of its two switches, so the best route has the fewest hops there
/// are; the others are the next best of those joined from the table's.
#[must_use]
pub fn waypoint_routes(
    ways: &WaypointInputs<'_>,
    (from_host, to_host): (VertexIdx, VertexIdx),
    sequence: &[BoxKind],
    rate: BitsPerSec,
    loads: &BoxLoads,
    k: usize,
) -> Vec<WaypointRoute> {
    let network = ways.network;
    let access = [from_host, to_host].map(|host| network.access_link(host));
    let [Some(first), Some(last)] = access else { return Vec::new() };
    if sequence.is_empty() && from_host == to_host {
        return vec![WaypointRoute { boxes: SmallVec::new(), stops: SmallVec::new(), links: Vec::new() }];
    }
    let [start, end] = [(first, from_host), (last, to_host)].map(|(link, host)| network.link_at(link).other(host));
    let key = mix(u64::from(from_host.0) << 32 | u64::from(to_host.0));
    let mut search = Search { ways, layers: vec![vec![Stop::start(start)]], segments: BTreeMap::new(), key, k };
    for &kind in sequence {
        if ways.spend(BOX_WORK * ways.chains.of_kind(kind).len() as u64) {
            return Vec::new();
        }
        let usable = ways
            .chains
            .of_kind(kind)
            .iter()
            .copied()
            .filter(|&index| ways.chains.is_usable(network, index) && loads.room(ways.chains, index) >= rate);
        let stops = usable.filter_map(|index| Some((ways.chains.boxes()[index.at()].at?, Some(index)))).collect();
        search.advance(stops);
    }
    search.advance(vec![(end, None)]);
    let (up, down) = (leaving(network, first, from_host), leaving(network, last, end));
    search.routes(up, down)
}

/// The route of fewest hops under a chain; of one that fails open, where none passes all its boxes, one that passes as
/// many of its types as it can. `None` where there is no way.
#[must_use]
pub fn best_way(
    ways: &WaypointInputs<'_>,
    ends: (VertexIdx, VertexIdx),
    chain: &Chain,
    rate: BitsPerSec,
    loads: &BoxLoads,
) -> Option<WaypointRoute> {
    let best = |sequence: &[BoxKind]| {
        let over = ways.spend(WAY_WORK);
        if over { None } else { waypoint_routes(ways, ends, sequence, rate, loads, 1).pop() }
    };
    let whole = best(&chain.sequence);
    match chain.when_broken {
        WhenBroken::Open => whole.or_else(|| parts(&chain.sequence).iter().find_map(|part| best(part))),
        WhenBroken::Closed => whole,
    }
}

/// What is left of a sequence with some types left out, the longest first; not the sequence itself.
fn parts(sequence: &[BoxKind]) -> Vec<Sequence> {
    let chosen =
        |set: u32| sequence.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, kind)| *kind);
    let mut parts: Vec<Sequence> = (0..(1_u32 << sequence.len()) - 1).map(|set| chosen(set).collect()).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts
}

/// Whether a route can be taken now and passes a box of each of the chain's types, with `rate` left of each.
#[must_use]
pub fn is_whole(
    ways: &WaypointInputs<'_>,
    ends: (VertexIdx, VertexIdx),
    chain: &Chain,
    rate: BitsPerSec,
    (loads, route): (&BoxLoads, &WaypointRoute),
) -> bool {
    route.boxes.len() == chain.sequence.len()
        && is_route(ways, ends, &chain.sequence, route)
        && route.boxes.iter().all(|&index| loads.room(ways.chains, index) >= rate)
}

/// The route of fewest hops from host to host through these boxes, in order, whatever is left of them; `None` if one of
/// them can't be used or there is no way.
#[must_use]
pub fn route_through(
    ways: &WaypointInputs<'_>,
    (from_host, to_host): (VertexIdx, VertexIdx),
    boxes: &[BoxIdx],
) -> Option<WaypointRoute> {
    let network = ways.network;
    let (first, last) = (network.access_link(from_host)?, network.access_link(to_host)?);
    if boxes.is_empty() && from_host == to_host {
        return None;
    }
    let [start, end] = [(first, from_host), (last, to_host)].map(|(link, host)| network.link_at(link).other(host));
    let key = mix(u64::from(from_host.0) << 32 | u64::from(to_host.0));
    let mut search = Search { ways, layers: vec![vec![Stop::start(start)]], segments: BTreeMap::new(), key, k: 1 };
    for &index in boxes {
        let at = ways.chains.boxes()[index.at()].at.filter(|_| ways.chains.is_usable(network, index))?;
        search.advance(vec![(at, Some(index))]);
    }
    search.advance(vec![(end, None)]);
    search.routes(leaving(network, first, from_host), leaving(network, last, end)).pop()
}

/// Whether a route leads from host to host now: link after link, all of them usable, over switches only, and through its
/// boxes, which are usable, stand where it enters them, and are of types of `sequence` in that order (of a chain that
/// fails open some may be left out). Between two boxes it passes no switch twice. From a host to itself, past all boxes,
/// it passes no link either.
#[must_use]
pub fn is_route(
    ways: &WaypointInputs<'_>,
    (from_host, to_host): (VertexIdx, VertexIdx),
    sequence: &[BoxKind],
    route: &WaypointRoute,
) -> bool {
    let (network, chains) = (ways.network, ways.chains);
    let known = |index: &BoxIdx| index.at() < chains.boxes().len();
    let stays = from_host == to_host && route.boxes.is_empty();
    let shape =
        route.boxes.len() == route.stops.len() && route.links.is_empty() == stays && route.boxes.iter().all(known);
    let within = |link: &DirectedLinkIdx| link.at() / 2 < network.link_rows();
    if !shape || !route.links.iter().all(within) {
        return false;
    }
    let mut left = sequence.iter();
    if !route.boxes.iter().all(|index| left.any(|kind| *kind == chains.boxes()[index.at()].kind)) {
        return false;
    }
    let (mut here, mut stop) = (from_host, 0);
    let mut passed: SmallVec<[VertexIdx; 8]> = SmallVec::from_slice(&[from_host]);
    for (at, link) in route.links.iter().enumerate() {
        while route.stops.get(stop).is_some_and(|after| usize::from(*after) == at) {
            let index = route.boxes[stop];
            if !chains.is_usable(network, index) || chains.boxes()[index.at()].at != Some(here) {
                return false;
            }
            (passed, stop) = (SmallVec::from_slice(&[here]), stop + 1);
        }
        let (index, forward) = (LinkIdx(link.0 / 2), link.0.is_multiple_of(2));
        let known = network.link_at(index);
        let (tail, head) = if forward { (known.a, known.b) } else { (known.b, known.a) };
        let last = at + 1 == route.links.len();
        let again = passed.contains(&head) && !(last && head == to_host);
        if tail != here || again || !network.is_usable(index) || (!last && network.vertex_at(head).is_host()) {
            return false;
        }
        passed.push(head);
        here = head;
    }
    here == to_host && stop == route.boxes.len()
}

/// Links from switch to switch.
type Segment = SmallVec<[DirectedLinkIdx; 8]>;

/// Layers of stops: the first switch, the boxes of each type, the last switch; at each the best ways there.
struct Search<'w, 'a> {
    ways: &'w WaypointInputs<'a>,
    layers: Vec<Vec<Stop>>,
    /// Paths between two switches, shortest first.
    segments: BTreeMap<(VertexIdx, VertexIdx), Vec<Segment>>,
    key: u64,
    k: usize,
}

/// A box, or an end of the route.
struct Stop {
    at: VertexIdx,
    passed: Option<BoxIdx>,
    /// Best first, at most k.
    ways: Vec<Predecessor>,
}

/// How a stop is reached: from which stop of the layer before, by which of its ways, along which segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Predecessor {
    hops: u32,
    tie: u64,
    stop: u32,
    way: u32,
    segment: u32,
}

impl Stop {
    fn start(at: VertexIdx) -> Self {
        Self { at, passed: None, ways: vec![Predecessor { hops: 0, tie: 0, stop: 0, way: 0, segment: 0 }] }
    }
}

impl Search<'_, '_> {
    fn advance(&mut self, stops: Vec<(VertexIdx, Option<BoxIdx>)>) {
        let before = self.layers.last().expect("the first layer is there from the start");
        let mut layer = Vec::with_capacity(stops.len());
        for (at, passed) in stops {
            if self.ways.spend(0) {
                break; // nothing comes of it any more
            }
            let mut found: Vec<Predecessor> = Vec::new();
            for (stop, known) in (0..).zip(before).filter(|(_, known)| !known.ways.is_empty()) {
                let segments = self.segments.entry((known.at, at)).or_insert_with(|| segments(self.ways, known.at, at));
                for (segment, links) in (0..).zip(&*segments).take(self.k) {
                    let own = u64::from(passed.map_or(u32::MAX, |index| index.0)) << 32 | u64::from(segment);
                    found.extend((0..).zip(&known.ways).map(|(way, so_far)| Predecessor {
                        hops: so_far.hops + links.len() as u32,
                        tie: mix(self.key ^ so_far.tie ^ mix(own)),
                        stop,
                        way,
                        segment,
                    }));
                }
            }
            found.sort_unstable();
            found.truncate(self.k);
            layer.push(Stop { at, passed, ways: found });
        }
        self.layers.push(layer);
    }

    fn routes(&self, up: DirectedLinkIdx, down: DirectedLinkIdx) -> Vec<WaypointRoute> {
        let last = self.layers[self.layers.len() - 1].first();
        last.into_iter().flat_map(|last| &last.ways).map(|way| self.route(*way, up, down)).collect()
    }

    fn route(&self, last: Predecessor, up: DirectedLinkIdx, down: DirectedLinkIdx) -> WaypointRoute {
        let mut parts: SmallVec<[(&Segment, Option<BoxIdx>); 4]> = SmallVec::new();
        let (mut stop, mut way) = (&self.layers[self.layers.len() - 1][0], last);
        for layer in self.layers[..self.layers.len() - 1].iter().rev() {
            let before = &layer[way.stop as usize];
            parts.push((&self.segments[&(before.at, stop.at)][way.segment as usize], stop.passed));
            (stop, way) = (before, before.ways[way.way as usize]);
        }
        let mut route = WaypointRoute { boxes: SmallVec::new(), stops: SmallVec::new(), links: vec![up] };
        for (links, passed) in parts.into_iter().rev() {
            route.links.extend_from_slice(links);
            if let Some(index) = passed {
                route.boxes.push(index);
                route.stops.push(route.links.len() as u16);
            }
        }
        route.links.push(down);
        route
    }
}

/// Counts what looking paths up took.
fn count(ways: &WaypointInputs<'_>, paths: &PairPaths, found: &[Segment]) {
    let Some(work) = ways.work else { return };
    let links: usize = found.iter().map(|links| links.len()).sum();
    work.work(LINK_WORK * links as u64 + if paths.is_cut_short() { CUT_SHORT_WORK } else { 0 });
    if paths.is_cut_short() {
        work.note_cut_short_paths();
    }
}

/// The paths of two switches that are whole now, shortest first.
fn segments(ways: &WaypointInputs<'_>, from: VertexIdx, to: VertexIdx) -> Vec<Segment> {
    let (network, table) = (ways.network, ways.table);
    if !network.switch_up(from) || !network.switch_up(to) {
        return Vec::new();
    }
    if from == to {
        return vec![Segment::new()];
    }
    if let Some(work) = ways.work.filter(|work| !work.work(PAIR_WORK)) {
        work.note_cut_short_paths();
        return Vec::new();
    }
    let (paths, mut read, mut found) = (table.paths(from, to), 0, Vec::new());
    loop {
        let mut hops = SmallVec::<[(LinkIdx, VertexIdx); 8]>::new();
        if !paths.next_hops(&mut read, &mut hops) {
            break;
        }
        if hops.iter().all(|(link, _)| network.is_usable(*link)) {
            found.push(hops.into_iter().map(|(link, tail)| leaving(network, link, tail)).collect());
        }
    }
    count(ways, &paths, &found);
    let is_end = |switch| table.ends().binary_search(&switch).is_ok();
    if found.is_empty() && !(is_end(from) && is_end(to)) {
        ways.spend((network.vertex_rows() + 2 * network.link_rows()) as u64);
        let path = shortest_path_seeded(network, from, to, 0);
        found.extend(path.map(|path| {
            let hops = path.links.iter().zip(&path.vertices);
            hops.map(|(&link, &tail)| leaving(network, link, tail)).collect()
        }));
    }
    found
}
