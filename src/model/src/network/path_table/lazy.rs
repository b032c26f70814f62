//! Paths computed by source when asked for, and kept within a bound.

use super::all_pairs::HopDistances;
use super::rows::{self, Packed, Row};
use super::search::Search;
use super::wiring::Wiring;
use super::{Ends, PathTableOptions, TableUpdate};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows of the ends asked for last, each with the paths to all ends. What is kept changes the time that an answer
/// takes, never the answer.
#[derive(Debug)]
pub(super) struct Lazy {
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Clone, Default)]
struct Kept {
    /// By end: its row and when it was asked for.
    rows: BTreeMap<u32, (Arc<Row>, u64)>,
    bytes: usize,
    asked: u64,
}

impl Clone for Lazy {
    fn clone(&self) -> Self {
        Self { most_bytes: self.most_bytes, kept: Mutex::new(self.kept().clone()) }
    }
}

impl Lazy {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held, and rows are put in whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn row(&self, end: u32, wiring: &Wiring, ends: &Ends, options: &PathTableOptions) -> Arc<Row> {
        if let Some(row) = self.kept().touch(end) {
            return row;
        }
        let row = Arc::new(compute(end, wiring, ends, options)); // unlocked: others may ask meanwhile
        self.kept().put(end, row.clone(), self.most_bytes);
        row
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Drops the rows that a lost link carried a path of or that a new link is near enough to.
    pub(super) fn follow(&mut self, old: &Wiring, new: &Wiring, ends: &Ends) -> TableUpdate {
        let lost: Vec<bool> = (0..old.links()).map(|link| old.is_usable(link) && !new.is_usable(link)).collect();
        let any_lost = lost.contains(&true);
        let gained = (0..new.links()).filter(|&link| new.is_usable(link) && !old.is_usable(link));
        let near = HopDistances::of(new, gained);
        let mut kept = self.kept();
        let before = kept.rows.len();
        kept.rows.retain(|&owner, (row, _)| {
            let owner_row = ends.rows[owner as usize];
            let stays = |other: usize| {
                let mut bytes = row.bytes(other);
                let mut whole = !(any_lost && row.is_loose());
                while any_lost
                    && rows::next_path(old, owner_row, &mut bytes, |link, _| whole &= !lost[link as usize]).is_some()
                {
                }
                whole && !near.reaches(ends.rows[other], owner_row, row.worst(other))
            };
            (0..ends.rows.len()).filter(|&other| other != owner as usize).all(stays)
        });
        kept.bytes = kept.rows.values().map(|(row, _)| row.size()).sum();
        TableUpdate { rebuilt: false, recomputed: before - kept.rows.len(), changed: Vec::new() }
    }
}

impl Kept {
    fn touch(&mut self, end: u32) -> Option<Arc<Row>> {
        self.asked += 1;
        let (row, last) = self.rows.get_mut(&end)?;
        *last = self.asked;
        Some(row.clone())
    }

    /// Keeps a row, and drops those not asked for longest until all fit.
    fn put(&mut self, end: u32, row: Arc<Row>, most_bytes: usize) {
        self.bytes += row.size();
        if let Some((before, _)) = self.rows.insert(end, (row, self.asked)) {
            self.bytes -= before.size();
        }
        while self.bytes > most_bytes && self.rows.len() > 1 {
            let oldest = self.rows.iter().filter(|(other, _)| **other != end).min_by_key(|(_, (_, asked))| *asked);
            let Some(oldest) = oldest.map(|(&oldest, _)| oldest) else { break };
            if let Some((row, _)) = self.rows.remove(&oldest) {
                self.bytes -= row.size();
            }
        }
    }
}

fn compute(owner: u32, wiring: &Wiring, ends: &Ends, options: &PathTableOptions) -> Row {
    let k = options.k.get();
    let row = ends.rows[owner as usize];
    let mut search = Search::new(wiring, options);
    search.aim(row);
    let mut loose = false;
    let packed = (0..).zip(&ends.rows).map(|(end, &source)| {
        if end == owner {
            return Packed::none();
        }
        let found = search.find(source);
        loose |= found.loose;
        Packed::of(wiring, row, &found, k, false)
    });
    let packed: Vec<Packed> = packed.collect();
    Row::of(packed).marked(loose)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: usize) -> Arc<Row> {
        Arc::new(Row::of(vec![Packed::none(); bytes]))
    }

    #[test]
    fn what_was_not_asked_for_longest_is_dropped_first() {
        let mut kept = Kept::default();
        let most = 3 * row(10).size();
        for end in [7, 8, 9] {
            assert!(kept.touch(end).is_none());
            kept.put(end, row(10), most);
        }
        assert!(kept.touch(7).is_some());
        assert!(kept.touch(1).is_none());
        kept.put(1, row(10), most);
        assert_eq!(kept.rows.keys().copied().collect::<Vec<_>>(), [1, 7, 9], "8 was asked for before all others");
        assert_eq!(kept.bytes, most);
        kept.put(2, row(1_000), most);
        assert_eq!(kept.rows.keys().copied().collect::<Vec<_>>(), [2], "the row asked for last is kept in any case");
        kept.put(2, row(10), most);
        assert_eq!(kept.bytes, row(10).size(), "a row computed by two at once counts once");
    }
}
