//! TOPOLOGY-MAP (000 §2): the k shortest loopless paths of every pair of attachment switches.
//!
//! # What is chosen
//! Of all loopless paths over usable links and packet switches, the k of fewest hops. Ties are broken by a seeded
//! hash of pair and path, so that equal-cost paths are spread over pairs, and so that a link that goes takes only
//! its own paths along. Parallel links make paths of their own. A path's reverse is the pair's path the other way.
//!
//! # Code map
//! - `wiring`: switches and ports by number, and which are usable.
//! - `search`: the paths of many switches to one, tried length by length; `deviations` where they are too many.
//! - `rows`: packed paths, some 4 bytes each.
//! - `all_pairs`: all pairs and the inverse index from links to pairs, followed through changes.
//! - `lazy`: beyond a size, rows computed when asked for and kept within a bound.

mod all_pairs;
mod deviations;
mod lazy;
mod rows;
mod search;
#[cfg(test)]
mod tests;
mod wiring;

use super::graph::Network;
use super::path::Path;
use crate::units::{LinkIdx, VertexIdx};
use all_pairs::AllPairs;
use lazy::Lazy;
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
    /// Switches that count as attachment switches without having hosts: those of middleboxes.
    pub more_ends: Vec<VertexIdx>,
}

impl Default for PathTableOptions {
    /// 10 paths, all pairs of up to 1,024 switches, then 64 MiB.
    fn default() -> Self {
        let k = NonZeroUsize::new(10).expect("ten is not zero");
        Self { k, seed: 0, most_ends: 1_024, lazy_bytes: 64 << 20, most_walks: 1 << 14, more_ends: Vec::new() }
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
    /// Pairs that paths were looked for; of a lazy table, rows that were dropped.
    pub recomputed: usize,
    /// Pairs that have other paths now, the lower switch first, in order; empty for a lazy or rebuilt table.
    pub changed: Vec<(VertexIdx, VertexIdx)>,
}

impl PathTable {
    /// Builds the table.
    #[must_use]
    pub fn build(network: &Network, options: &PathTableOptions) -> Self {
        let wiring = Wiring::of(network);
        let ends = Ends::of(network, &wiring, &options.more_ends);
        Self::of(wiring, ends, options.clone())
    }

    fn of(wiring: Wiring, ends: Ends, options: PathTableOptions) -> Self {
        let store = if ends.switches.len() > options.most_ends.min(MOST_ENDS) {
            Store::Lazy(Lazy::new(options.lazy_bytes))
        } else {
            Store::AllPairs(AllPairs::build(&wiring, &ends, &options))
        };
        Self { options, wiring: Arc::new(wiring), ends: Arc::new(ends), store }
    }

    /// Follows the network to where it is now. Of a whole table only those pairs are looked at that a lost link
    /// carried or that a new one is near enough to; the result is what [`Self::build`] gives.
    ///
    /// The network must be the one that the table was built from, or a later version of it.
    pub fn update(&mut self, network: &Network) -> TableUpdate {
        let wiring = match self.wiring.follow(network) {
            Some(wiring) => wiring,
            None => {
                let wiring = Wiring::of(network);
                let ends = Ends::of(network, &wiring, &self.options.more_ends);
                if ends != *self.ends || wiring.switches() != self.wiring.switches() {
                    *self = Self::of(wiring, ends, self.options.clone());
                    return TableUpdate { rebuilt: true, recomputed: self.pairs(), changed: Vec::new() };
                }
                wiring
            }
        };
        let update = match &mut self.store {
            Store::AllPairs(whole) => whole.follow(&self.wiring, &wiring, &self.ends, &self.options),
            Store::Lazy(lazy) => lazy.follow(&self.wiring, &wiring, &self.ends),
        };
        self.wiring = Arc::new(wiring);
        update
    }

    /// The paths from one attachment switch to another, shortest first. From a switch to itself it is the path
    /// without links. None for other vertices, a switch that is down, and a pair that is cut.
    #[must_use]
    pub fn paths(&self, from: VertexIdx, to: VertexIdx) -> PairPaths {
        let nothing = PairPaths { wiring: self.wiring.clone(), found: Pairs::None };
        let (Some(from), Some(to)) = (self.end(from), self.end(to)) else { return nothing };
        let owner = match self.store {
            Store::AllPairs(_) => from.max(to),
            Store::Lazy(_) => from,
        };
        let other = if owner == from { to } else { from };
        let row = self.ends.rows[owner as usize];
        let found = match &self.store {
            _ if from == to && self.wiring.up[row as usize] => Pairs::Here(row),
            _ if from == to => Pairs::None,
            Store::AllPairs(whole) => Pairs::Row { row: whole.row(owner), owner: row, other, reversed: owner == to },
            Store::Lazy(lazy) => {
                let of_owner = lazy.row(owner, &self.wiring, &self.ends, &self.options);
                Pairs::Row { row: of_owner, owner: row, other, reversed: false }
            }
        };
        PairPaths { found, ..nothing }
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
        for (row, &switch) in wiring.switches().iter().enumerate() {
            let has_hosts =
                || network.links_of(switch).any(|(_, link)| network.vertex_at(link.other(switch)).is_host());
            if more.contains(&switch) || has_hosts() {
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
}

impl PairPaths {
    /// The paths, shortest first.
    pub fn iter(&self) -> impl Iterator<Item = Path> {
        let (mut here, (mut bytes, owner, reversed)) = match &self.found {
            Pairs::None => (None, (&[][..], NONE, false)),
            Pairs::Here(row) => (Some(*row), (&[][..], NONE, false)),
            Pairs::Row { row, owner, other, reversed } => (None, (row.bytes(*other as usize), *owner, *reversed)),
        };
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
        let (row, owner, other, reversed) = match &self.found {
            Pairs::None => return false,
            Pairs::Here(_) => return std::mem::replace(read, 1) == 0,
            Pairs::Row { row, owner, other, reversed } => (row, *owner, *other, *reversed),
        };
        let bytes = row.bytes(other as usize);
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
        match &self.found {
            Pairs::None => 0,
            Pairs::Here(_) => 1,
            Pairs::Row { row, owner, other, .. } => {
                let mut bytes = row.bytes(*other as usize);
                std::iter::from_fn(|| rows::next_path(&self.wiring, *owner, &mut bytes, |_, _| ())).count()
            }
        }
    }

    /// Whether there is no path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.found {
            Pairs::None => true,
            Pairs::Here(_) => false,
            Pairs::Row { row, other, .. } => row.bytes(*other as usize).is_empty(),
        }
    }
}
