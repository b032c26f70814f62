//! The least of keys that move: a binary heap whose places are kept by its owner.

/// Not in any heap.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Keys with whose they are, the least first; equal keys come in the order of their owners.
///
/// Many heaps may share one table of places (by owner), as long as an owner stands in one of them only. So a heap
/// of few entries costs no more than they do.
#[derive(Debug, Clone)]
pub(super) struct Heap<K> {
    entries: Vec<(K, u32)>,
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Copy + PartialOrd> Heap<K> {
    pub(super) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Sets the key of `owner`, whatever it was before.
    pub(super) fn set(&mut self, places: &mut [u32], owner: u32, key: K) {
        if places[owner as usize] == NOWHERE {
            places[owner as usize] = self.entries.len() as u32;
            self.entries.push((key, owner));
        }
        self.sift(places, places[owner as usize] as usize, (key, owner));
    }

    /// Takes `owner` out, if it is there.
    pub(super) fn remove(&mut self, places: &mut [u32], owner: u32) {
        let hole = std::mem::replace(&mut places[owner as usize], NOWHERE);
        if hole == NOWHERE {
            return;
        }
        if let Some(last) = self.entries.pop().filter(|last| last.1 != owner) {
            self.sift(places, hole as usize, last);
        }
    }

    /// Puts `entry` at `at` or where it belongs above or below.
    fn sift(&mut self, places: &mut [u32], mut at: usize, entry: (K, u32)) {
        while at > 0 && entry < self.entries[(at - 1) / 2] {
            self.place(places, at, self.entries[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.entries.len() {
                break;
            }
            let later = right < self.entries.len() && self.entries[right] < self.entries[left];
            let child = if later { right } else { left };
            if self.entries[child] >= entry {
                break;
            }
            self.place(places, at, self.entries[child]);
            at = child;
        }
        self.place(places, at, entry);
    }

    fn place(&mut self, places: &mut [u32], at: usize, entry: (K, u32)) {
        self.entries[at] = entry;
        places[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_least_key_is_first_whatever_was_moved(
            steps in prop::collection::vec((0_u32..20, prop::option::weighted(0.7, 0_u32..10)), 1..100),
        ) {
            let (mut heap, mut places, mut plain) = (Heap::default(), vec![NOWHERE; 20], BTreeMap::new());
            for (owner, key) in steps {
                match key {
                    Some(key) => {
                        heap.set(&mut places, owner, f64::from(key));
                        plain.insert(owner, key);
                    }
                    None => {
                        heap.remove(&mut places, owner);
                        plain.remove(&owner);
                    }
                }
                let first = plain.iter().map(|(&owner, &key)| (key, owner)).min();
                prop_assert_eq!(heap.first(), first.map(|(key, owner)| (f64::from(key), owner)));
            }
        }
    }
}
