//! Paths computed by pair when asked for, and kept within a bound.

use super::all_pairs::{HopDistances, MANY_LINKS};
use super::rows::{self, Packed};
use super::search::{Scratch, Search};
use super::wiring::Wiring;
use super::{Ends, PathTableOptions, TableUpdate};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pairs asked for last. What is kept changes the time that an answer takes, never the answer.
#[derive(Debug)]
pub(super) struct Lazy {
    most_bytes: usize,
    kept: Mutex<Kept>,
    /// Whether a pair was ever cut short.
    cut_short: AtomicBool,
    /// Ports looked at so far.
    steps: AtomicU64,
}

/// A pair's paths, from the end that was asked first.
#[derive(Debug)]
pub(super) struct LazyPair {
    packed: Packed,
    /// Whether ties were broken step by step.
    loose: bool,
    cut_short: bool,
}

#[derive(Debug, Default)]
struct Kept {
    /// By end.
    rows: BTreeMap<u32, LazyRow>,
    bytes: usize,
    asked: u64,
    /// What searches left, for the next ones.
    idle: Vec<Scratch>,
}

/// Pairs from one end.
#[derive(Debug, Clone, Default)]
struct LazyRow {
    pairs: BTreeMap<u32, Arc<LazyPair>>,
    bytes: usize,
    /// When one of them was asked for last.
    asked: u64,
}

/// Searches put aside, at most.
const MOST_IDLE: usize = 2;
/// What a kept pair takes beside its paths: counts and its place in the row.
const OVERHEAD: usize = size_of::<LazyPair>() - size_of::<Packed>() + 48;

impl Clone for Lazy {
    fn clone(&self) -> Self {
        let kept = self.kept();
        let kept = Kept { rows: kept.rows.clone(), bytes: kept.bytes, asked: kept.asked, idle: Vec::new() };
        let cut_short = AtomicBool::new(self.has_cut_short());
        Self { most_bytes: self.most_bytes, kept: Mutex::new(kept), cut_short, steps: AtomicU64::new(self.steps()) }
    }
}

impl LazyPair {
    pub(super) fn bytes(&self) -> &[u8] {
        self.packed.bytes()
    }

    pub(super) const fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    fn size(&self) -> usize {
        self.packed.size() + OVERHEAD
    }
}

impl Lazy {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, kept: Mutex::default(), cut_short: AtomicBool::new(false), steps: AtomicU64::new(0) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held, and pairs are put in whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pair(
        &self,
        (end, other): (u32, u32),
        wiring: &Wiring,
        ends: &Ends,
        options: &PathTableOptions,
    ) -> Arc<LazyPair> {
        let row = ends.rows[end as usize];
        let idle = {
            let mut kept = self.kept();
            if let Some(pair) = kept.touch(end, other) {
                return pair;
            }
            kept.take_idle(row)
        };
        // Unlocked: others may ask meanwhile.
        let mut search = match idle {
            Some(scratch) => Search::resume(wiring, options, scratch),
            None => Search::new(wiring, options),
        };
        let before = search.steps();
        search.aim(row);
        let found = search.find(ends.rows[other as usize]);
        self.steps.fetch_add(search.steps() - before, Ordering::Relaxed);
        self.cut_short.fetch_or(found.cut_short, Ordering::Relaxed);
        let packed = Packed::of(wiring, row, &found, options.k.get(), false);
        let pair = Arc::new(LazyPair { packed, loose: found.loose, cut_short: found.cut_short });
        let mut kept = self.kept();
        kept.put((end, other), Arc::clone(&pair), self.most_bytes);
        let scratch = search.put_aside();
        if kept.idle.len() < MOST_IDLE && scratch.bytes() <= self.most_bytes / 4 {
            kept.idle.push(scratch);
        }
        pair
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Whether a pair was ever cut short.
    pub(super) fn has_cut_short(&self) -> bool {
        self.cut_short.load(Ordering::Relaxed)
    }

    /// Ports looked at so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Drops the pairs that a lost link carried a path of or that a new link is near enough to; all of them where many
    /// links changed.
    pub(super) fn follow(&mut self, old: &Wiring, new: &Wiring, ends: &Ends) -> TableUpdate {
        let lost: Vec<bool> = (0..old.links()).map(|link| old.is_usable(link) && !new.is_usable(link)).collect();
        let any_lost = lost.contains(&true);
        let gained = (0..new.links()).filter(|&link| new.is_usable(link) && !old.is_usable(link));
        let gained: Vec<usize> = gained.take(MANY_LINKS + 1).collect();
        let many = gained.len() > MANY_LINKS;
        let near = HopDistances::of(new, gained.into_iter().filter(|_| !many));
        let mut kept = self.kept();
        kept.idle.clear();
        let before = kept.pairs();
        for (&owner, row) in &mut kept.rows {
            let owner_row = ends.rows[owner as usize];
            row.pairs.retain(|&other, pair| {
                let mut bytes = pair.bytes();
                let mut whole = !(many || any_lost && pair.loose);
                while whole
                    && any_lost
                    && rows::next_path(old, owner_row, &mut bytes, |link, _| whole &= !lost[link as usize]).is_some()
                {
                }
                whole && !near.reaches(ends.rows[other as usize], owner_row, pair.packed.worst())
            });
            row.bytes = row.pairs.values().map(|pair| pair.size()).sum();
        }
        kept.rows.retain(|_, row| !row.pairs.is_empty());
        kept.bytes = kept.rows.values().map(|row| row.bytes).sum();
        TableUpdate { rebuilt: false, recomputed: before - kept.pairs(), changed: Vec::new() }
    }
}

impl Kept {
    fn pairs(&self) -> usize {
        self.rows.values().map(|row| row.pairs.len()).sum()
    }

    fn touch(&mut self, end: u32, other: u32) -> Option<Arc<LazyPair>> {
        self.asked += 1;
        let row = self.rows.get_mut(&end)?;
        row.asked = self.asked;
        row.pairs.get(&other).cloned()
    }

    /// A search that was put aside, best one that is turned to the row.
    fn take_idle(&mut self, row: u32) -> Option<Scratch> {
        let fits = self.idle.iter().position(|scratch| scratch.target() == row);
        if self.idle.is_empty() { None } else { Some(self.idle.swap_remove(fits.unwrap_or(0))) }
    }

    /// Keeps a pair. Where that is too much, pairs of the ends not asked for longest go, until a quarter is free: those
    /// of the pair's own end last, and not the pair.
    fn put(&mut self, (end, other): (u32, u32), pair: Arc<LazyPair>, most_bytes: usize) {
        let row = self.rows.entry(end).or_default();
        row.asked = self.asked;
        let size = pair.size();
        let before = row.pairs.insert(other, pair).map_or(0, |before| before.size());
        row.bytes = row.bytes + size - before;
        self.bytes = self.bytes + size - before;
        if self.bytes <= most_bytes {
            return;
        }
        let mut oldest: Vec<(u64, u32)> = self.rows.iter().map(|(&end, row)| (row.asked, end)).collect();
        oldest.sort_unstable();
        for (_, oldest) in oldest.into_iter().filter(|&(_, oldest)| oldest != end) {
            if self.bytes <= most_bytes / 4 * 3 {
                return;
            }
            self.bytes -= self.rows.remove(&oldest).map_or(0, |row| row.bytes);
        }
        if let Some(row) = self.rows.get_mut(&end).filter(|_| self.bytes > most_bytes) {
            row.pairs.retain(|&kept, _| kept == other);
            (row.bytes, self.bytes) = (size, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Arc<LazyPair> {
        Arc::new(LazyPair { packed: Packed::of_bytes(vec![0; 1_000]), loose: false, cut_short: false })
    }

    #[test]
    fn what_was_not_asked_for_longest_is_dropped_first() {
        let (mut kept, one) = (Kept::default(), pair().size());
        let most = 4 * one;
        for end in [6, 7, 8, 9] {
            assert!(kept.touch(end, 1).is_none());
            kept.put((end, 1), pair(), most);
        }
        assert!(kept.touch(7, 1).is_some() && kept.touch(6, 1).is_some());
        assert!(kept.touch(1, 2).is_none());
        kept.put((1, 2), pair(), most);
        assert_eq!(kept.rows.keys().copied().collect::<Vec<_>>(), [1, 6, 7], "a quarter is free again");
        assert_eq!(kept.bytes, 3 * one);
        kept.put((1, 2), pair(), most);
        assert_eq!(kept.bytes, 3 * one, "a pair computed by two at once counts once");
        for other in 3..9 {
            kept.put((1, other), pair(), most);
        }
        assert!(kept.bytes <= most && kept.touch(1, 8).is_some(), "the pair asked for last is kept");
        assert_eq!(kept.bytes, kept.rows.values().map(|row| row.bytes).sum::<usize>());
        kept.put((2, 1), pair(), one / 2);
        assert_eq!((kept.pairs(), kept.bytes), (1, one), "in any case");
    }
}
