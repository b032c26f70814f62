//! TOPOLOGY-MAP (000 §2): the k shortest loopless paths of every pair of attachment switches.
//!
//! # What is chosen
//! Of all loopless paths over usable links and packet switches, the k of fewest hops. Ties are broken by a seeded
//! hash of pair and path, so that equal-cost paths are spread over pairs, and so that a link that goes takes only
//! its own paths along. Parallel links make paths of their own. A path's reverse is the pair's path the other way.
//!
//! # Code map
//! - `wiring`: switches and ports by number, and which are usable.
//! - `links`: a path as its links, and the hashes that break ties.
//! - `search`: the paths of many switches to one, tried length by length; `deviations` where they are too many.
//! - `rows`: packed paths, some 4 bytes each.
//! - `all_pairs`: all pairs and the inverse index from links to pairs, followed through changes.
//! - `lazy`: beyond a size, pairs computed when asked for and kept within a bound.
//!
//! # Bounds
//! A whole table is given up, for a lazy one with the same paths, where it has more ends, takes more steps or more
//! bytes than the options allow: on a long ring it would be cubic in all three. A step is a port looked at. Whoever
//! builds one looks at a stop probe every [`LOOK_EVERY`] steps; a pair is not interrupted, and takes no more than
//! [`MOST_WALK_STEPS`] and the options' steps of deviations. A pair whose deviations are cut short there has the best
//! paths found, and says so. All bounds are counts, so that they are the same on every machine.

mod all_pairs;
mod deviations;
mod lazy;
mod links;
mod rows;
mod search;
#[cfg(test)]
mod tests;
mod wiring;

use super::graph::Network;
use super::path::Path;
use crate::units::{LinkIdx, VertexIdx};
use all_pairs::AllPairs;
use lazy::{Lazy, LazyPair};
use rows::Row;
use smallvec::SmallVec;
use std::num::NonZeroUsize;
use std::sync::Arc;
use wiring::{NONE, Wiring};

/// How a table is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTableOptions {
    /// Paths of each pair; 10 in 000.
    pub k: NonZeroUsize,
    /// What ties hang on.
    pub seed: u64,
    /// With more attachment switches, paths are computed by source when asked for.
    pub most_ends: usize,
    /// Then, most bytes of paths kept; the row asked for last is kept in any case.
    pub lazy_bytes: usize,
    /// Most walks (paths that may loop) of the lengths in question between two switches, for all of them to be tried
    /// and ties to be broken by the hash of whole paths. With more, lengths are exact too, but ties are broken step
    /// by step. A fat-tree of 128-port switches has 4,096 equal paths.
    pub most_walks: u32,
    /// Steps of the search by deviations for one pair; it may be exceeded by one deviation, which is two sweeps through
    /// the network at most. Then the pair has the best paths found so far.
    pub most_pair_steps: u64,
    /// Steps that a whole table may take; with more, paths are computed by pair when asked for.
    pub most_steps: u64,
    /// Bytes that a whole table may take, likewise.
    pub most_bytes: usize,
    /// Switches that count as attachment switches without having hosts: those of middleboxes.
    pub more_ends: Vec<VertexIdx>,
}

impl Default for PathTableOptions {
    /// 10 paths, all pairs of up to 1,024 switches within 128 MiB, else 64 MiB of those asked for last.
    fn default() -> Self {
        let k = NonZeroUsize::new(10).expect("ten is not zero");
        Self {
            k,
            seed: 0,
            most_ends: 1_024,
            lazy_bytes: 64 << 20,
            most_walks: 1 << 14,
            most_pair_steps: 1 << 20,
            most_steps: 1 << 29,
            most_bytes: 128 << 20,
            more_ends: Vec::new(),
        }
    }
}

/// Steps between two looks at the stop probe while a whole table is built, and one pair's.
pub const LOOK_EVERY: u64 = 1 << 14;
/// Steps for one pair before deviations: for each of 64 lengths at most, as many
/// walks as the options' default allows, with a way back each; and the counts of walks.
pub const MOST_WALK_STEPS: u64 = 64 << 15;

/// What building may take.
pub(super) struct Limits<'s> {
    steps: u64,
    bytes: u64,
    used: u64,
    looked: u64,
    stop: &'s mut dyn FnMut() -> bool,
    stopped: bool,
}

impl<'s> Limits<'s> {
    fn new(options: &PathTableOptions, steps: u64, stop: &'s mut dyn FnMut() -> bool) -> Self {
        let (steps, bytes) = (steps.min(options.most_steps), options.most_bytes as u64);
        Self { steps, bytes, used: 0, looked: 0, stop, stopped: false }
    }

    /// Bytes that are there already.
    fn start_with(&mut self, bytes: u64) {
        self.used = bytes;
    }

    /// Whether to go on after so many steps in all, and so many bytes more.
    fn allow(&mut self, steps: u64, bytes: u64) -> bool {
        self.used += bytes;
        if steps > self.steps || self.used > self.bytes {
            return false;
        }
        if steps - self.looked >= LOOK_EVERY {
            self.looked = steps;
            self.stopped = (self.stop)();
        }
        !self.stopped
    }
}

/// Ends of whole tables, whatever the options: their pairs have 32-bit numbers.
const MOST_ENDS: usize = 1 << 16;

/// k shortest paths by pair of attachment switches: those that have hosts, and those named in the options, up or
/// down. A clone shares what both have in common.
#[derive(Debug, Clone)]
pub struct PathTable {
    options: PathTableOptions,
    wiring: Arc<Wiring>,
    ends: Arc<Ends>,
    store: Store,
}

#[derive(Debug, Clone)]
enum Store {
    AllPairs(AllPairs),
    Lazy(Lazy),
}

/// Attachment switches, in vertex order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ends {
    /// By end: its row in the wiring.
    rows: Vec<u32>,
    /// By end.
    switches: Vec<VertexIdx>,
    /// By row in the wiring.
    of_row: Vec<u32>,
}

/// What an update did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableUpdate {
    /// Whether attachment switches or switches are others now, and everything was built anew.
    pub rebuilt: bool,
    /// Pairs that paths were looked for; of a lazy table, pairs that were dropped.
    pub recomputed: usize,
    /// Pairs that have other paths now, the lower switch first, in order; empty for a lazy or rebuilt table.
    pub changed: Vec<(VertexIdx, VertexIdx)>,
}

impl PathTable {
    /// Builds the table: all pairs, or where the options do not allow that, a lazy one.
    #[must_use]
    pub fn build(network: &Network, options: &PathTableOptions) -> Self {
        let (wiring, ends) = Self::frame(network, options);
        Self::of(wiring, ends, options.clone())
    }

    /// Builds the table as long as `stop` does not say to stop and it takes no more than `steps`, then there is none. A
    /// table that the options do not allow to be whole is lazy, once that is known.
    pub fn build_within(
        network: &Network,
        options: &PathTableOptions,
        steps: u64,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Self> {
        let (wiring, ends) = Self::frame(network, options);
        if !Self::may_be_whole(&ends, options) {
            return Some(Self::lazy_of(wiring, ends, options.clone()));
        }
        let mut limits = Limits::new(options, steps, stop);
        match AllPairs::build(&wiring, &ends, options, &mut limits) {
            Some(whole) => Some(Self::with(wiring, ends, options.clone(), Store::AllPairs(whole))),
            None if limits.stopped || steps < options.most_steps => None,
            None => Some(Self::lazy_of(wiring, ends, options.clone())),
        }
    }

    /// A table of the same paths that computes them by pair when asked for: made in no time.
    #[must_use]
    pub fn lazy(network: &Network, options: &PathTableOptions) -> Self {
        let (wiring, ends) = Self::frame(network, options);
        Self::lazy_of(wiring, ends, options.clone())
    }

    fn frame(network: &Network, options: &PathTableOptions) -> (Wiring, Ends) {
        let wiring = Wiring::of(network);
        let ends = Ends::of(network, &wiring, &options.more_ends);
        (wiring, ends)
    }

    fn of(wiring: Wiring, ends: Ends, options: PathTableOptions) -> Self {
        let mut never = || false;
        let mut limits = Limits::new(&options, u64::MAX, &mut never);
        let whole = Self::may_be_whole(&ends, &options)
            .then(|| AllPairs::build(&wiring, &ends, &options, &mut limits))
            .flatten();
        match whole {
            Some(whole) => Self::with(wiring, ends, options, Store::AllPairs(whole)),
            None => Self::lazy_of(wiring, ends, options),
        }
    }

    const fn may_be_whole(ends: &Ends, options: &PathTableOptions) -> bool {
        let most = if options.most_ends < MOST_ENDS { options.most_ends } else { MOST_ENDS };
        ends.switches.len() <= most
    }

    fn lazy_of(wiring: Wiring, ends: Ends, options: PathTableOptions) -> Self {
        let store = Store::Lazy(Lazy::new(options.lazy_bytes));
        Self::with(wiring, ends, options, store)
    }

    fn with(wiring: Wiring, ends: Ends, options: PathTableOptions, store: Store) -> Self {
        Self { options, wiring: Arc::new(wiring), ends: Arc::new(ends), store }
    }

    /// Follows the network to where it is now. Of a whole table only those pairs are looked at that a lost link
    /// carried or that a new one is near enough to; the result is what [`Self::build`] gives. A table that the options
    /// do not allow to be whole any more is lazy from then on.
    ///
    /// The network must be the one that the table was built from, or a later version of it.
    pub fn update(&mut self, network: &Network) -> TableUpdate {
        if let Some(update) = self.update_within(network, u64::MAX, &mut || false) {
            return update;
        }
        let pairs = self.pairs();
        *self = Self::lazy(network, &self.options);
        TableUpdate { rebuilt: true, recomputed: pairs, changed: Vec::new() }
    }

    /// The same as long as `stop` does not say to stop, and it takes no more than `steps` and what the options allow:
    /// then nothing is changed, and `None` said.
    pub fn update_within(
        &mut self,
        network: &Network,
        steps: u64,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<TableUpdate> {
        let wiring = match self.wiring.follow(network) {
            Some(wiring) => wiring,
            None => {
                let (wiring, ends) = Self::frame(network, &self.options);
                if ends != *self.ends || wiring.switches() != self.wiring.switches() {
                    *self = if self.is_lazy() {
                        Self::lazy_of(wiring, ends, self.options.clone())
                    } else {
                        Self::build_within(network, &self.options, steps, stop)?
                    };
                    return Some(TableUpdate { rebuilt: true, recomputed: self.pairs(), changed: Vec::new() });
                }
                wiring
            }
        };
        let mut limits = Limits::new(&self.options, steps, stop);
        let update = match &mut self.store {
            Store::AllPairs(whole) => whole.follow((&self.wiring, &wiring), &self.ends, &self.options, &mut limits)?,
            Store::Lazy(lazy) => lazy.follow(&self.wiring, &wiring, &self.ends),
        };
        self.wiring = Arc::new(wiring);
        Some(update)
    }

    /// Follows the network by computing paths when they are asked for, whatever the table did before.
    pub fn become_lazy(&mut self, network: &Network) {
        *self = Self::lazy(network, &self.options);
    }

    /// The paths from one attachment switch to another, shortest first. From a switch to itself it is the path
    /// without links. None for other vertices, a switch that is down, and a pair that is cut.
    #[must_use]
    pub fn paths(&self, from: VertexIdx, to: VertexIdx) -> PairPaths {
        let nothing = PairPaths { wiring: self.wiring.clone(), found: Pairs::None, cut_short: false };
        let (Some(from), Some(to)) = (self.end(from), self.end(to)) else { return nothing };
        let row = |end: u32| self.ends.rows[end as usize];
        if from == to {
            let here = self.wiring.up[row(from) as usize];
            return PairPaths { found: if here { Pairs::Here(row(from)) } else { Pairs::None }, ..nothing };
        }
        match &self.store {
            Store::AllPairs(whole) => {
                let (owner, other) = (from.max(to), from.min(to));
                let cut_short = whole.is_cut_short(pair_number(other, owner));
                let found = Pairs::Row { row: whole.row(owner), owner: row(owner), other, reversed: owner == to };
                PairPaths { found, cut_short, ..nothing }
            }
            Store::Lazy(lazy) => {
                let pair = lazy.pair((from, to), &self.wiring, &self.ends, &self.options);
                let cut_short = pair.is_cut_short();
                PairPaths { found: Pairs::Pair { pair, owner: row(from) }, cut_short, ..nothing }
            }
        }
    }

    /// Whether the search for any pair that was asked for ended at its bound.
    #[must_use]
    pub fn has_cut_short(&self) -> bool {
        match &self.store {
            Store::AllPairs(whole) => whole.has_cut_short(),
            Store::Lazy(lazy) => lazy.has_cut_short(),
        }
    }

    /// Steps that pairs have taken since a lazy table was made; 0 for a whole one.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match &self.store {
            Store::AllPairs(_) => 0,
            Store::Lazy(lazy) => lazy.steps(),
        }
    }

    /// Pairs of which a path has the link, the lower switch first, in order. `None` for a lazy table.
    #[must_use]
    pub fn pairs_on(&self, link: LinkIdx) -> Option<impl Iterator<Item = (VertexIdx, VertexIdx)>> {
        let Store::AllPairs(whole) = &self.store else { return None };
        Some(whole.pairs_on(link).iter().map(|&pair| self.ends.named(pair)))
    }

    /// The attachment switches, in vertex order.
    #[must_use]
    pub fn ends(&self) -> &[VertexIdx] {
        &self.ends.switches
    }

    /// Unordered pairs of different attachment switches.
    #[must_use]
    pub fn pairs(&self) -> usize {
        let ends = self.ends.switches.len();
        ends * ends.saturating_sub(1) / 2
    }

    /// Whether paths are computed when asked for.
    #[must_use]
    pub const fn is_lazy(&self) -> bool {
        matches!(self.store, Store::Lazy(_))
    }

    /// Bytes held: paths, inverse index and wiring; of a lazy table, the paths kept at the moment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let stored = match &self.store {
            Store::AllPairs(whole) => whole.bytes(),
            Store::Lazy(lazy) => lazy.bytes(),
        };
        stored + self.wiring.bytes() + self.ends.bytes()
    }

    /// How many rows of paths are in the memory of another table's.
    #[cfg(test)]
    pub(crate) fn shared_rows(&self, other: &Self) -> usize {
        match (&self.store, &other.store) {
            (Store::AllPairs(ours), Store::AllPairs(theirs)) => ours.shared_rows(theirs),
            _ => 0,
        }
    }

    fn end(&self, switch: VertexIdx) -> Option<u32> {
        let row = self.wiring.row(switch)?;
        Some(self.ends.of_row[row as usize]).filter(|&end| end != NONE)
    }
}

impl Ends {
    fn of(network: &Network, wiring: &Wiring, more: &[VertexIdx]) -> Self {
        let mut of_row = vec![NONE; wiring.len()];
        let (mut rows, mut switches) = (Vec::new(), Vec::new());
        let mut named = vec![false; network.vertex_rows()];
        for switch in more.iter().filter(|switch| switch.at() < network.vertex_rows()) {
            named[switch.at()] = true;
        }
        for (row, &switch) in wiring.switches().iter().enumerate() {
            let has_hosts =
                || network.links_of(switch).any(|(_, link)| network.vertex_at(link.other(switch)).is_host());
            if named[switch.at()] || has_hosts() {
                of_row[row] = rows.len() as u32;
                rows.push(row as u32);
                switches.push(switch);
            }
        }
        Self { rows, switches, of_row }
    }

    /// The switches of a pair's number.
    fn named(&self, pair: u32) -> (VertexIdx, VertexIdx) {
        let (low, high) = ends_of(pair);
        (self.switches[low as usize], self.switches[high as usize])
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.switches) + size_of_val(&*self.of_row)
    }
}

/// The number of the pair of two ends.
fn pair_number(low: u32, high: u32) -> u32 {
    debug_assert!(low < high);
    (pair_below(high) + u64::from(low)) as u32
}

/// The lower and the higher end of a pair's number.
fn ends_of(pair: u32) -> (u32, u32) {
    let high = ((8 * u64::from(pair) + 1).isqrt() as u32).div_ceil(2);
    // The root is rounded down, so the guess is right or one too high.
    let high = if pair_below(high) > u64::from(pair) { high - 1 } else { high };
    ((u64::from(pair) - pair_below(high)) as u32, high)
}

/// Pairs whose higher end is lower.
fn pair_below(high: u32) -> u64 {
    u64::from(high) * u64::from(high.saturating_sub(1)) / 2
}

/// The paths of a pair; they stay what they were when the table moves on.
#[derive(Debug, Clone)]
pub struct PairPaths {
    wiring: Arc<Wiring>,
    found: Pairs,
    cut_short: bool,
}

#[derive(Debug, Clone)]
enum Pairs {
    None,
    /// The path without links at a row of the wiring.
    Here(u32),
    Row {
        row: Arc<Row>,
        /// Where its paths start, in the wiring.
        owner: u32,
        other: u32,
        /// Whether they are wanted the other way.
        reversed: bool,
    },
    /// Of a lazy table.
    Pair {
        pair: Arc<LazyPair>,
        /// Where its paths start, in the wiring.
        owner: u32,
    },
}

/// Paths of a pair, packed.
struct PackedPaths<'a> {
    bytes: &'a [u8],
    /// The row that they start at.
    owner: u32,
    /// Whether they are wanted the other way.
    reversed: bool,
}

impl PairPaths {
    fn packed(&self) -> PackedPaths<'_> {
        match &self.found {
            Pairs::None | Pairs::Here(_) => PackedPaths { bytes: &[], owner: NONE, reversed: false },
            Pairs::Row { row, owner, other, reversed } => {
                PackedPaths { bytes: row.bytes(*other as usize), owner: *owner, reversed: *reversed }
            }
            Pairs::Pair { pair, owner } => PackedPaths { bytes: pair.bytes(), owner: *owner, reversed: false },
        }
    }

    /// Whether the search ended at its bound: then these are paths, and there may be shorter ones beside the first.
    #[must_use]
    pub const fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// The paths, shortest first.
    pub fn iter(&self) -> impl Iterator<Item = Path> {
        let mut here = if let Pairs::Here(row) = self.found { Some(row) } else { None };
        let PackedPaths { mut bytes, owner, reversed } = self.packed();
        let vertex = |row: u32| self.wiring.switches()[row as usize];
        std::iter::from_fn(move || {
            if let Some(row) = here.take() {
                return Some(Path { vertices: vec![vertex(row)], links: Vec::new() });
            }
            let mut path = Path { vertices: Vec::new(), links: Vec::new() };
            rows::next_path(&self.wiring, owner, &mut bytes, |link, to| {
                path.links.push(LinkIdx(link));
                path.vertices.push(vertex(to));
            })?;
            path.vertices.insert(0, vertex(owner));
            if reversed {
                path.vertices.reverse();
                path.links.reverse();
            }
            Some(path)
        })
    }

    /// Appends the next path's links, each with the vertex that it is left from. `read` says how far the paths were
    /// read, 0 at first; `false` when there is no other path.
    pub(super) fn next_hops(&self, read: &mut usize, hops: &mut SmallVec<[(LinkIdx, VertexIdx); 8]>) -> bool {
        if let Pairs::Here(_) = self.found {
            return std::mem::replace(read, 1) == 0;
        }
        let PackedPaths { bytes, owner, reversed } = self.packed();
        let (mut left, mut here) = (&bytes[*read..], owner);
        let found = rows::next_path(&self.wiring, owner, &mut left, |link, to| {
            let tail = if reversed { to } else { here };
            hops.push((LinkIdx(link), self.wiring.switches()[tail as usize]));
            here = to;
        });
        if reversed {
            hops.reverse();
        }
        *read = bytes.len() - left.len();
        found.is_some()
    }

    /// Number of paths, at most k.
    #[must_use]
    pub fn len(&self) -> usize {
        if let Pairs::Here(_) = self.found {
            return 1;
        }
        let PackedPaths { mut bytes, owner, .. } = self.packed();
        std::iter::from_fn(|| rows::next_path(&self.wiring, owner, &mut bytes, |_, _| ())).count()
    }

    /// Whether there is no path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !matches!(self.found, Pairs::Here(_)) && self.packed().bytes.is_empty()
    }
}
