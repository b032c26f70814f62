//! Containers that were heard of, so that one told of twice counts once.

use hintd_model::units::{AttemptId, ContainerId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Containers by attempt; all together bounded, those heard of first forgotten first.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Numbers of containers, and as the how manyth each came.
    by_attempt: BTreeMap<AttemptId, BTreeMap<u64, u64>>,
    /// As they came; some of attempts that are forgotten by now.
    order: VecDeque<(ContainerId, u64)>,
    known: usize,
    came: u64,
}

impl Seen {
    /// Notes a container, and forgets so that at most `most` stay; false: it was heard of before.
    pub(super) fn note(&mut self, container: ContainerId, most: usize) -> bool {
        let Entry::Vacant(new) = self.by_attempt.entry(container.attempt).or_default().entry(container.id) else {
            return false;
        };
        new.insert(self.came);
        self.order.push_back((container, self.came));
        self.came += 1;
        self.known += 1;
        while self.known > most.max(1)
            && let Some((oldest, came)) = self.order.pop_front()
        {
            self.drop(oldest, came);
        }
        true
    }

    /// Forgets an attempt's.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.known -= self.by_attempt.remove(&attempt).map_or(0, |ids| ids.len());
        // Seldom enough to cost little for each, often enough that what is gone is never more than what is there.
        if self.order.len() > 2 * self.known + SLACK {
            let known = &self.by_attempt;
            self.order.retain(|(old, came)| known.get(&old.attempt).is_some_and(|ids| ids.get(&old.id) == Some(came)));
            self.order.shrink_to(2 * self.known + SLACK);
        }
    }

    fn drop(&mut self, container: ContainerId, came: u64) {
        let Some(ids) = self.by_attempt.get_mut(&container.attempt) else { return };
        // Its attempt may have been forgotten, and the container heard of anew.
        if ids.get(&container.id) == Some(&came) {
            ids.remove(&container.id);
            self.known -= 1;
        }
        if ids.is_empty() {
            self.by_attempt.remove(&container.attempt);
        }
    }
}

/// Rows of what is gone that are let be.
const SLACK: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempt;
    use proptest::prelude::*;

    fn container(app: u32, id: u64) -> ContainerId {
        ContainerId { attempt: attempt(app, 1), id }
    }

    #[test]
    fn the_bound_holds_over_all_attempts_and_the_longest_known_go_first() {
        let mut seen = Seen::default();
        assert!(seen.note(container(1, 1), 3) && seen.note(container(2, 1), 3) && seen.note(container(1, 2), 3));
        assert!(!seen.note(container(1, 1), 3), "exactly three are known");
        assert!(seen.note(container(3, 1), 3), "one more");
        assert!(seen.note(container(1, 1), 3), "the first is forgotten");
        assert!(!seen.note(container(1, 2), 3) && !seen.note(container(3, 1), 3));
        assert_eq!(seen.known, 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_knows_what_a_plain_list_knows(
            steps in prop::collection::vec((0..4_u32, 0..12_u64, 0..20_u8), 0..300),
            most in 1..20_usize,
        ) {
            let mut seen = Seen::default();
            let mut plain: Vec<ContainerId> = Vec::new();
            for (app, id, what) in steps {
                let one = container(app, id);
                if what == 0 {
                    seen.forget(one.attempt);
                    plain.retain(|known| known.attempt != one.attempt);
                } else {
                    prop_assert_eq!(seen.note(one, most), !plain.contains(&one));
                    if !plain.contains(&one) {
                        plain.push(one);
                    }
                    let surplus = plain.len().saturating_sub(most);
                    plain.drain(..surplus);
                }
                prop_assert_eq!(seen.known, plain.len());
                prop_assert_eq!(seen.by_attempt.values().map(BTreeMap::len).sum::<usize>(), plain.len());
                prop_assert!(seen.order.len() <= 2 * seen.known + SLACK + 1);
            }
        }
    }
}
