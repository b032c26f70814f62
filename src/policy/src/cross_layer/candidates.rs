//! The routes a pair of hosts may take: the k shortest paths between their switches with both access links.

use crate::budget::Work;
use crate::flow_index::FlowIndex;
use hintd_model::cluster::{NodePair, Topology};
use hintd_model::network::maxmin::directions;
use hintd_model::network::{Network, PathTable, host_paths};
use hintd_model::units::{DirectedLinkIdx, LinkIdx, NodeIdx, VertexIdx};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A route from host to host.
pub(super) type Links = SmallVec<[DirectedLinkIdx; 8]>;

/// Paths between switches, read once for all hosts below them.
pub(super) struct Candidates<'a> {
    network: &'a Network,
    table: &'a PathTable,
    topology: &'a Topology,
    avoid: &'a BTreeSet<LinkIdx>,
    /// Most paths looked at of each pair.
    k: usize,
    paths: Vec<SmallVec<[DirectedLinkIdx; 4]>>,
    of_switches: BTreeMap<(VertexIdx, VertexIdx), (u32, u32)>,
    access: BTreeMap<NodeIdx, Option<Access>>,
    /// Who counts what reading takes, and says when to stop.
    work: Option<&'a dyn Work>,
}

/// Work that looking a pair of switches up counts for, and one link of its paths: a search takes about as long.
const PAIR_WORK: u64 = 256;
const LINK_WORK: u64 = 4;
/// That of a pair whose search ended at its bound.
const CUT_SHORT_WORK: u64 = 1 << 16;

#[derive(Debug, Clone, Copy)]
struct Access {
    host: VertexIdx,
    switch: VertexIdx,
}

/// What one pair may take: rows of paths, all between the same access links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choices {
    first: DirectedLinkIdx,
    last: DirectedLinkIdx,
    start: u32,
    end: u32,
}

impl Choices {
    pub(super) const fn rows(&self) -> Range<u32> {
        self.start..self.end
    }

    pub(super) const fn start(&self) -> u32 {
        self.start
    }

    pub(super) const fn count(&self) -> u32 {
        self.end - self.start
    }
}

/// A candidate as heuristics see it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rated {
    links: usize,
    /// Bits/s that a pair of tasks would get between the access links, which all candidates share.
    available: f64,
    tie: u64,
    row: u32,
}

impl Rated {
    /// Fewest hops, then most available bandwidth, then as drawn.
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        a.links.cmp(&b.links).then(b.available.total_cmp(&a.available)).then((a.tie, a.row).cmp(&(b.tie, b.row)))
    }
}

impl<'a> Candidates<'a> {
    pub(super) fn new(
        network: &'a Network,
        table: &'a PathTable,
        topology: &'a Topology,
        avoid: &'a BTreeSet<LinkIdx>,
        k: usize,
    ) -> Self {
        let (paths, of_switches, access) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { network, table, topology, avoid, k, paths, of_switches, access, work: None }
    }

    /// Counts what reading takes there; once that says to stop, pairs of switches that were not read have no paths.
    pub(super) fn counted(self, work: &'a dyn Work) -> Self {
        Self { work: Some(work), ..self }
    }

    /// What the pair may take; `None`: there is no path. Paths over links to avoid only where there is no other.
    pub(super) fn of(&mut self, pair: NodePair) -> Option<Choices> {
        let (from, to) = (self.access(pair.from)?, self.access(pair.to)?);
        let [first, last] = [(from.host, true), (to.host, false)].map(|(host, leaves)| self.access_link(host, leaves));
        let (first, last) = (first?, last?);
        let key = (from.switch, to.switch);
        let (start, end) = match self.of_switches.get(&key) {
            Some(known) => *known,
            None => {
                if !self.counts(PAIR_WORK) {
                    self.note_cut_short();
                    return None;
                }
                let read = self.read(from.host, to.host);
                let links: usize = self.paths[read.0 as usize..].iter().map(|path| path.len()).sum();
                let cut_short = self.table.paths(key.0, key.1).is_cut_short();
                if cut_short {
                    self.note_cut_short();
                }
                self.counts(LINK_WORK * links as u64 + if cut_short { CUT_SHORT_WORK } else { 0 });
                self.of_switches.insert(key, read);
                read
            }
        };
        (start < end).then_some(Choices { first, last, start, end })
    }

    fn counts(&self, units: u64) -> bool {
        self.work.is_none_or(|work| work.work(units))
    }

    fn note_cut_short(&self) {
        if let Some(work) = self.work {
            work.note_cut_short_paths();
        }
    }

    /// Whole, from host to host.
    pub(super) fn links(&self, choices: &Choices, row: u32) -> Links {
        let inner = self.paths[row as usize].iter().copied();
        std::iter::once(choices.first).chain(inner).chain([choices.last]).collect()
    }

    /// The path heuristic: fewest hops, then most available bandwidth for `weight` more pairs of tasks, then by
    /// `tie`; dead links are not taken. `None`: nothing is whole.
    pub(super) fn best(&self, index: &FlowIndex, choices: &Choices, weight: u64, tie: u64) -> Option<u32> {
        let mut best: Option<Rated> = None;
        for row in choices.rows() {
            // Paths stand in the order of their lengths.
            if best.is_some_and(|best| self.paths[row as usize].len() > best.links) {
                break;
            }
            let rated = self.rate(index, row, &[], weight, tie);
            if rated.available > 0.0 && best.is_none_or(|best| Rated::order(&rated, &best).is_lt()) {
                best = Some(rated);
            }
        }
        let access = index.capacity(choices.first).min(index.capacity(choices.last));
        best.filter(|_| access > 0.0).map(|best| best.row)
    }

    /// A draw weighted to the best of the path heuristic, the route the pair has excluded; `None`: there is no other.
    /// `half` draws are taken until one says stop: each candidate gets half of what those before it left.
    pub(super) fn draw(
        &self,
        index: &FlowIndex,
        choices: &Choices,
        now: &[DirectedLinkIdx],
        weight: u64,
        (tie, draw): (u64, u64),
    ) -> Option<u32> {
        let mut rated: SmallVec<[Rated; 10]> = choices
            .rows()
            .filter(|&row| !self.is(row, now))
            .map(|row| self.rate(index, row, now, weight, tie))
            .filter(|rated| rated.available > 0.0)
            .collect();
        rated.sort_unstable_by(Rated::order);
        let passed = draw.trailing_ones() as usize;
        rated.get(passed.min(rated.len().saturating_sub(1))).map(|rated| rated.row)
    }

    /// Pairs of tasks that send over a node's access link, both ways; the most where it has none.
    pub(super) fn busy(&self, index: &FlowIndex, node: NodeIdx) -> u64 {
        let host = self.topology.vertex.get(node.at()).copied().flatten();
        let link = host.and_then(|host| self.network.access_link(host));
        link.map_or(u64::MAX, |link| directions(link).iter().map(|way| index.load(*way)).sum())
    }

    /// Whether a route is that path.
    pub(super) fn is(&self, row: u32, route: &[DirectedLinkIdx]) -> bool {
        route.len() >= 2 && route[1..route.len() - 1] == self.paths[row as usize][..]
    }

    /// Bandwidth if `weight` pairs of tasks went from `now` to that path.
    fn rate(&self, index: &FlowIndex, row: u32, now: &[DirectedLinkIdx], weight: u64, tie: u64) -> Rated {
        let path = &self.paths[row as usize];
        let share = |link: &DirectedLinkIdx| {
            let others = index.load(*link) - if now.contains(link) { weight } else { 0 };
            index.capacity(*link) / (others + weight).max(1) as f64
        };
        let available = path.iter().map(share).fold(f64::INFINITY, f64::min);
        Rated { links: path.len(), available, tie: mix(tie ^ u64::from(row)), row }
    }

    fn read(&mut self, from: VertexIdx, to: VertexIdx) -> (u32, u32) {
        let start = self.paths.len();
        let avoided = |path: &[DirectedLinkIdx]| path.iter().any(|link| self.avoid.contains(&LinkIdx(link.0 / 2)));
        let inner = host_paths(self.network, self.table, from, to).take(self.k);
        let mut all: Vec<SmallVec<[DirectedLinkIdx; 4]>> =
            inner.map(|path| path[1..path.len() - 1].iter().copied().collect()).collect();
        // The table may be of an earlier version of the network.
        all.retain(|path| path.iter().all(|link| self.network.is_usable(LinkIdx(link.0 / 2))));
        if !self.avoid.is_empty() && !all.iter().all(|path| avoided(path)) {
            all.retain(|path| !avoided(path));
        }
        self.paths.append(&mut all);
        (start as u32, self.paths.len() as u32)
    }

    fn access(&mut self, node: NodeIdx) -> Option<Access> {
        let (network, topology) = (self.network, self.topology);
        *self.access.entry(node).or_insert_with(|| {
            let host = topology.vertex.get(node.at()).copied().flatten()?;
            Some(Access { host, switch: network.attachment(host)? })
        })
    }

    fn access_link(&self, host: VertexIdx, leaves: bool) -> Option<DirectedLinkIdx> {
        let link = self.network.access_link(host)?;
        let from_host = self.network.link_at(link).a == host;
        Some(directions(link)[usize::from(from_host != leaves)])
    }
}

/// Finaliser of SplitMix64: every bit of the result hangs on every bit given.
pub(super) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// What ties of a pair hang on.
pub(super) fn tie_of(seed: u64, pair: NodePair) -> u64 {
    mix(seed ^ mix(u64::from(pair.from.0) << 32 | u64::from(pair.to.0)))
}
