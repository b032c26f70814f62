//! Whose record goes where there is no room for all: by queue, within it by user, and within that by application the oldest of
//! whoever's records take most. So who asks in a loop, under however many applications' ids, drops records of its own first.

use hintd_model::units::{ApplicationId, DecisionId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Whose records they are: one step of the way from all to an application's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Queue(Arc<str>),
    User(Arc<str>),
    Application(ApplicationId),
}

/// Whose a record is.
#[derive(Debug, Clone)]
pub(super) struct Path([Owner; 3]);

impl Path {
    /// `queue`: `None` where the configuration does not name it, for a caller may make up any number of these.
    pub(super) fn new(queue: Option<&str>, user: &str, application: ApplicationId) -> Self {
        let [queue, user] = [queue.unwrap_or("*"), user].map(Arc::from);
        Self([Owner::Queue(queue), Owner::User(user), Owner::Application(application)])
    }
}

/// An owner among the others: the last one loses its oldest record. Whoever has less than twice as many bytes as another has as
/// many: then the record goes that came first.
type Rank = (u32, Reverse<u64>, Owner);

/// Records of an owner: those of owners within it, or its own in their order.
#[derive(Debug, Default)]
pub(super) struct Shares {
    within: BTreeMap<Owner, Self>,
    by_bytes: BTreeSet<Rank>,
    /// Owners within by the number of their first record.
    by_first: BTreeSet<(u64, Owner)>,
    /// As they came, each with its number: an application's.
    order: VecDeque<(u64, DecisionId)>,
    bytes: usize,
}

impl Shares {
    /// A record came.
    pub(super) fn add(&mut self, path: &Path, number: u64, id: DecisionId, bytes: usize) {
        self.change(&path.0, &mut |of| {
            of.order.push_back((number, id));
            of.bytes += bytes;
        });
    }

    /// One went.
    pub(super) fn remove(&mut self, path: &Path, id: DecisionId, bytes: usize) {
        self.change(&path.0, &mut |of| {
            // Mostly the first of them.
            if of.order.front().is_some_and(|(_, first)| *first == id) {
                of.order.pop_front();
            } else {
                of.order.retain(|(_, known)| *known != id);
            }
            of.bytes -= bytes;
        });
    }

    /// Bytes that its records share with none.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The record that is to go next, which is not `newest`, the one of this number; `None`: there is no other.
    pub(super) fn next(&self, newest: u64) -> Option<DecisionId> {
        let mut of = self;
        while !of.by_bytes.is_empty() {
            // Whose first record is the newest has no other.
            let (.., owner) = of.by_bytes.iter().rev().find(|(_, Reverse(first), _)| *first != newest)?;
            of = of.within.get(owner)?;
        }
        of.order.front().map(|(_, id)| *id)
    }

    /// The record that came first.
    pub(super) fn oldest(&self) -> Option<(u64, DecisionId)> {
        let mut of = self;
        while let Some((_, owner)) = of.by_first.first() {
            of = of.within.get(owner)?;
        }
        of.order.front().copied()
    }

    /// The number of its first record.
    fn first(&self) -> Option<u64> {
        self.by_first.first().map(|(first, _)| *first).or_else(|| self.order.front().map(|(first, _)| *first))
    }

    /// Changes what is noted of an application, and where that puts it, its user and its queue among the others.
    fn change(&mut self, path: &[Owner], change: &mut dyn FnMut(&mut Self)) {
        let Some((owner, rest)) = path.split_first() else { return change(self) };
        let of = self.within.entry(owner.clone()).or_default();
        let (was, first) = (of.bytes, of.first());
        if let Some(first) = first {
            self.by_bytes.remove(&(rank(was), Reverse(first), owner.clone()));
            self.by_first.remove(&(first, owner.clone()));
        }
        of.change(rest, change);
        let (now, first) = (of.bytes, of.first());
        self.bytes = self.bytes - was + now;
        match first {
            Some(first) => {
                self.by_bytes.insert((rank(now), Reverse(first), owner.clone()));
                self.by_first.insert((first, owner.clone()));
            }
            None => {
                self.within.remove(owner);
            }
        }
    }
}

fn rank(bytes: usize) -> u32 {
    bytes.checked_ilog2().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempt;
    use proptest::prelude::*;

    fn path(queue: &str, user: &str, sequence: u32) -> Path {
        Path::new(Some(queue), user, attempt(sequence, 1).application)
    }

    fn drop_until(
        shares: &mut Shares,
        paths: &BTreeMap<DecisionId, Path>,
        (newest, most): (u64, usize),
    ) -> Vec<DecisionId> {
        let mut gone = Vec::new();
        while shares.bytes() > most {
            let id = shares.next(newest).expect("there are others");
            shares.remove(&paths[&id], id, 10);
            gone.push(id);
        }
        gone
    }

    #[test]
    fn one_user_with_a_new_application_for_each_request_drops_records_of_its_own() {
        let (mut shares, mut paths) = (Shares::default(), BTreeMap::new());
        let mut add = |shares: &mut Shares, number: u64, path: Path| {
            shares.add(&path, number, DecisionId::of(number), 10);
            paths.insert(DecisionId::of(number), path);
            drop_until(shares, &paths, (number, 1_000))
        };
        for number in 0..20 {
            assert_eq!(add(&mut shares, number, path("etl", &format!("user{}", number % 5), 1)), []);
        }
        for number in 20..10_000 {
            let gone = add(&mut shares, number, path("etl", "loop", 1_000 + u32::try_from(number).unwrap()));
            assert!(gone.iter().all(|id| id.number >= 20), "{gone:?} is of the others");
        }
        assert_eq!((shares.oldest().unwrap().0, shares.bytes()), (0, 1_000));
        // Under as many users in another queue it drops those of that queue.
        for number in 10_000..20_000 {
            let gone = add(&mut shares, number, path("adhoc", &format!("u{number}"), u32::try_from(number).unwrap()));
            assert!(gone.iter().all(|id| id.number >= 20), "{gone:?} is of the others");
        }
        assert_eq!(shares.oldest().unwrap().0, 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sums_and_firsts_are_those_of_the_records(steps in prop::collection::vec((0..3_u8, 0..3_u8, 0..3_u32, 1..50_usize, 0..4_u8), 0..200)) {
            let (mut shares, mut plain) = (Shares::default(), BTreeMap::new());
            for (number, (queue, user, sequence, bytes, what)) in (0_u64..).zip(steps) {
                let id = DecisionId::of(number);
                let of = path(&queue.to_string(), &user.to_string(), sequence);
                shares.add(&of, number, id, bytes);
                plain.insert(number, (of, bytes));
                if what == 0 && let Some(id) = shares.next(number) {
                    prop_assert_ne!(id.number, number, "the newest stays");
                    let number = id.number;
                    let (of, bytes) = plain.remove(&number).expect("it is one of them");
                    shares.remove(&of, id, bytes);
                }
                prop_assert_eq!(shares.bytes(), plain.values().map(|(_, bytes)| bytes).sum::<usize>());
                prop_assert_eq!(shares.oldest().map(|(first, _)| first), plain.keys().next().copied());
                prop_assert_eq!(shares.next(number).is_some(), plain.keys().any(|known| *known != number));
            }
        }
    }
}
