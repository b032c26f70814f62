//! All pairs at once, the inverse index, and how both follow a change.

use super::rows::{self, Packed, Row};
use super::search::Search;
use super::wiring::{NONE, Wiring};
use super::{Ends, Limits, PathTableOptions, TableUpdate, ends_of, pair_number};
use crate::units::LinkIdx;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Row j has the paths from end j to the ends below it: each pair once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AllPairs {
    rows: Vec<Arc<Row>>,
    /// By link: the pairs of which a path has it, in order.
    by_link: Vec<Arc<[u32]>>,
    /// Pairs whose ties were broken step by step: what they have hangs on more than the links of their paths.
    loose: BTreeSet<u32>,
    /// Pairs whose search ended at its bound; loose as well.
    cut_short: BTreeSet<u32>,
}

/// A pair's new paths.
struct ChangedPair {
    high: u32,
    low: u32,
    packed: Packed,
    loose: bool,
    cut_short: bool,
}

impl AllPairs {
    /// `None`: it takes more than the limits allow.
    pub(super) fn build(
        wiring: &Wiring,
        ends: &Ends,
        options: &PathTableOptions,
        limits: &mut Limits<'_>,
    ) -> Option<Self> {
        let k = options.k.get();
        let mut search = Search::new(wiring, options);
        let (mut rows, mut loose, mut cut_short) =
            (Vec::with_capacity(ends.rows.len()), BTreeSet::new(), BTreeSet::new());
        let mut packed = Vec::new();
        for (high, &owner) in (0..).zip(&ends.rows) {
            search.aim(owner);
            for low in 0..high {
                let found = search.find(ends.rows[low as usize]);
                if found.loose {
                    loose.insert(pair_number(low, high));
                }
                if found.cut_short {
                    cut_short.insert(pair_number(low, high));
                }
                // A link of a path has a place in the index too.
                let links: usize = found.paths.iter().map(|links| links.len()).sum();
                packed.push(Packed::of(wiring, owner, &found, k, false));
                if !limits.allow(search.steps(), (links * (1 + size_of::<u32>())) as u64) {
                    return None;
                }
            }
            rows.push(Arc::new(Row::of(packed.drain(..))));
        }
        let by_link = index(wiring, ends, &rows);
        Some(Self { rows, by_link, loose, cut_short })
    }

    pub(super) fn row(&self, end: u32) -> Arc<Row> {
        self.rows[end as usize].clone()
    }

    pub(super) fn pairs_on(&self, link: LinkIdx) -> &[u32] {
        self.by_link.get(link.at()).map_or(&[], |pairs| pairs)
    }

    pub(super) fn is_cut_short(&self, pair: u32) -> bool {
        self.cut_short.contains(&pair)
    }

    pub(super) fn has_cut_short(&self) -> bool {
        !self.cut_short.is_empty()
    }

    #[cfg(test)]
    pub(super) fn shared_rows(&self, other: &Self) -> usize {
        self.rows.iter().zip(&other.rows).filter(|(ours, theirs)| Arc::ptr_eq(ours, theirs)).count()
    }

    pub(super) fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| COUNTS + row.size()).sum();
        let index: usize = self.by_link.iter().map(|pairs| COUNTS + size_of_val(&**pairs)).sum();
        let pointers = size_of_val(&*self.rows) + size_of_val(&*self.by_link);
        rows + index + pointers + (self.loose.len() + self.cut_short.len()) * size_of::<u32>()
    }

    /// Goes from `old` to `new`, which differ in links only. `None`: it takes more than the limits allow, and nothing is
    /// changed.
    pub(super) fn follow(
        &mut self,
        (old, new): (&Wiring, &Wiring),
        ends: &Ends,
        options: &PathTableOptions,
        limits: &mut Limits<'_>,
    ) -> Option<TableUpdate> {
        let touched = self.touched(old, new, ends);
        limits.start_with(self.bytes() as u64);
        let renewed = renew(new, ends, options, &touched, limits)?;
        self.by_link.resize_with(new.links(), || Arc::new([]));
        let mut moves = BTreeMap::<u32, Vec<(u32, bool)>>::new();
        let mut of_rows = BTreeMap::<u32, Vec<(u32, Packed)>>::new();
        let mut changed = Vec::new();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        // By pair number, so that what is listed by row and by link is in order.
        for ChangedPair { high, low, packed, loose, cut_short } in renewed {
            let (pair, owner) = (pair_number(low, high), ends.rows[high as usize]);
            for (of, known) in [(&mut self.loose, loose), (&mut self.cut_short, cut_short)] {
                if known {
                    of.insert(pair)
                } else {
                    of.remove(&pair)
                };
            }
            let row = &self.rows[high as usize];
            if packed == row.packed(low as usize) {
                continue;
            }
            rows::links(new, owner, row.bytes(low as usize), &mut before);
            rows::links(new, owner, packed.bytes(), &mut after);
            for link in before.iter().filter(|link| after.binary_search(link).is_err()) {
                moves.entry(*link).or_default().push((pair, false));
            }
            for link in after.iter().filter(|link| before.binary_search(link).is_err()) {
                moves.entry(*link).or_default().push((pair, true));
            }
            changed.push(ends.named(pair)); // the same paths would have had the same longest one
            of_rows.entry(high).or_default().push((low, packed));
        }
        for (high, packed) in of_rows {
            let row = &mut self.rows[high as usize];
            *row = Arc::new(row.with(&packed));
        }
        for (link, moves) in moves {
            let pairs = &mut self.by_link[link as usize];
            *pairs = merged(pairs, &moves);
        }
        Some(TableUpdate { rebuilt: false, recomputed: touched.len(), changed })
    }

    /// Pairs whose paths may be others: those on a lost link; those that a new link is near enough to, for a walk
    /// through it to be no longer than the pair's longest path; and where ties were broken step by step, those
    /// that had such a walk through a lost link. Where many links changed, all that may be so are looked at: going out
    /// from each of those links would take longer.
    fn touched(&self, old: &Wiring, new: &Wiring, ends: &Ends) -> BTreeSet<u32> {
        let lost = (0..old.links()).filter(|&link| old.is_usable(link) && !new.is_usable(link));
        let lost: Vec<usize> = lost.collect();
        let mut touched: BTreeSet<u32> = lost.iter().flat_map(|&link| self.by_link[link].iter().copied()).collect();
        if lost.len() > MANY_LINKS {
            touched.extend(&self.loose);
        } else if !self.loose.is_empty() {
            let near = HopDistances::of(old, lost.into_iter());
            touched.extend(self.loose.iter().copied().filter(|&pair| self.is_near(&near, ends, pair)));
        }
        let gained = (0..new.links()).filter(|&link| new.is_usable(link) && !old.is_usable(link));
        let gained: Vec<usize> = gained.take(MANY_LINKS + 1).collect();
        let pairs = ends.rows.len() * ends.rows.len().saturating_sub(1) / 2;
        if gained.len() > MANY_LINKS {
            return (0..pairs as u32).collect();
        }
        let near = HopDistances::of(new, gained.into_iter());
        if !near.links.is_empty() {
            touched.extend((0..pairs as u32).filter(|&pair| self.is_near(&near, ends, pair)));
        }
        touched
    }

    fn is_near(&self, near: &HopDistances, ends: &Ends, pair: u32) -> bool {
        let (low, high) = ends_of(pair);
        let worst = self.rows[high as usize].worst(low as usize);
        near.reaches(ends.rows[low as usize], ends.rows[high as usize], worst)
    }
}

/// Changed links that are gone out from one by one, at most.
pub(super) const MANY_LINKS: usize = 32;
/// The two counts before what an `Arc` holds.
const COUNTS: usize = 2 * size_of::<usize>();

/// Hops from the ends of some links to everywhere.
pub(super) struct HopDistances {
    /// Positions of both ends' columns.
    links: Vec<(usize, usize)>,
    hops: Vec<Vec<u32>>,
}

impl HopDistances {
    pub(super) fn of(wiring: &Wiring, links: impl Iterator<Item = usize>) -> Self {
        let joined = wiring.joined();
        let ends: Vec<(u32, u32)> = links.filter_map(|link| joined[link]).collect();
        let mut columns: BTreeMap<u32, usize> = BTreeMap::new();
        let mut hops = Vec::new();
        for row in ends.iter().flat_map(|&(a, b)| [a, b]) {
            columns.entry(row).or_insert_with(|| {
                let mut counts = Vec::new();
                wiring.hops_from(row, &mut counts);
                hops.push(counts);
                hops.len() - 1
            });
        }
        let mut links: Vec<_> = ends.iter().map(|(a, b)| (columns[a], columns[b])).collect();
        links.sort_unstable();
        links.dedup();
        Self { links, hops }
    }

    /// Whether a walk from one row to another through one of the links has at most so many links itself.
    pub(super) fn reaches(&self, from: u32, to: u32, most: Option<u32>) -> bool {
        self.links.iter().any(|&(a, b)| {
            [(a, b), (b, a)].into_iter().any(|(first, last)| {
                let (before, after) = (self.hops[first][from as usize], self.hops[last][to as usize]);
                before != NONE && after != NONE && most.is_none_or(|most| before + 1 + after <= most)
            })
        })
    }
}

/// The pairs' paths now, by pair. Those of one end are searched together, as turning to a target costs more than
/// a pair: each pair goes with the end that has more of them. `None`: it takes more than the limits allow.
fn renew(
    wiring: &Wiring,
    ends: &Ends,
    options: &PathTableOptions,
    pairs: &BTreeSet<u32>,
    limits: &mut Limits<'_>,
) -> Option<Vec<ChangedPair>> {
    let mut of_end = vec![0_u32; ends.rows.len()];
    for (low, high) in pairs.iter().map(|&pair| ends_of(pair)) {
        of_end[low as usize] += 1;
        of_end[high as usize] += 1;
    }
    let mut by_target = BTreeMap::<u32, Vec<(u32, u32)>>::new();
    for (low, high) in pairs.iter().map(|&pair| ends_of(pair)) {
        let target = if of_end[low as usize] > of_end[high as usize] { low } else { high };
        by_target.entry(target).or_default().push((low, high));
    }
    let k = options.k.get();
    let mut search = Search::new(wiring, options);
    let mut renewed = Vec::with_capacity(pairs.len());
    for (target, pairs) in by_target {
        search.aim(ends.rows[target as usize]);
        for (low, high) in pairs {
            let source = if target == low { high } else { low };
            let found = search.find(ends.rows[source as usize]);
            let packed = Packed::of(wiring, ends.rows[high as usize], &found, k, source == high);
            let links: usize = found.paths.iter().map(|links| links.len()).sum();
            if !limits.allow(search.steps(), (links * (1 + size_of::<u32>())) as u64) {
                return None;
            }
            renewed.push(ChangedPair { high, low, packed, loose: found.loose, cut_short: found.cut_short });
        }
    }
    renewed.sort_unstable_by_key(|renewed| (renewed.high, renewed.low));
    Some(renewed)
}

/// Lists the pairs of each link.
fn index(wiring: &Wiring, ends: &Ends, rows: &[Arc<Row>]) -> Vec<Arc<[u32]>> {
    let mut counts = vec![0_usize; wiring.links()];
    for_each_pair(wiring, ends, rows, |_, links| links.iter().for_each(|&link| counts[link as usize] += 1));
    let mut by_link: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
    for_each_pair(wiring, ends, rows, |pair, links| links.iter().for_each(|&link| by_link[link as usize].push(pair)));
    by_link.into_iter().map(Arc::from).collect()
}

fn for_each_pair(wiring: &Wiring, ends: &Ends, rows: &[Arc<Row>], mut each: impl FnMut(u32, &[u32])) {
    let mut links = Vec::new();
    for (high, row) in rows.iter().enumerate() {
        for low in 0..high {
            rows::links(wiring, ends.rows[high], row.bytes(low), &mut links);
            each(pair_number(low as u32, high as u32), &links);
        }
    }
}

/// The list with some pairs put in or taken out; both are in order.
fn merged(pairs: &[u32], moves: &[(u32, bool)]) -> Arc<[u32]> {
    let mut merged = Vec::with_capacity(pairs.len() + moves.len());
    let mut moves = moves.iter().peekable();
    for &pair in pairs {
        while let Some((new, _)) = moves.next_if(|(moved, put)| *put && *moved < pair) {
            merged.push(*new);
        }
        if moves.next_if(|(moved, put)| !put && *moved == pair).is_none() {
            merged.push(pair);
        }
    }
    merged.extend(moves.map(|(new, _)| *new));
    merged.into()
}
