//! When requests that gather are decided together: after a time, or as soon as they are so many; one round at a time, as what
//! changes while one is decided is for the next; and none later than it can be in time for. Nothing here reads a clock.

use hintd_model::units::{Micros, Timestamp};
use std::collections::{BTreeSet, VecDeque};

/// How requests gather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundSettings {
    /// The first of a round waits at most so long for others.
    pub every: Micros,
    /// Requests of one round, at most.
    pub requests: usize,
}

/// What may be of a round.
pub trait Gathers {
    /// What no two of a round have in common.
    type Key: Ord + Clone;

    /// Its key: a second one with it is of a later round.
    fn key(&self) -> Self::Key;

    /// Nobody waits for it any more.
    fn is_gone(&self) -> bool;

    /// Whether both are decided by the same policy under the same settings; others are of another round.
    fn is_like(&self, other: &Self) -> bool;
}

/// Requests that wait for a round, in the order in which they came.
#[derive(Debug)]
pub struct Gathering<M> {
    waiting: VecDeque<Waiting<M>>,
    /// Rounds that are being decided, or whose answers are not committed.
    open: usize,
    /// What a request of a round takes to be decided; `None`: none was.
    each: Option<Micros>,
}

#[derive(Debug)]
struct Waiting<M> {
    member: M,
    since: Timestamp,
    /// When it is to be decided.
    until: Timestamp,
    settings: RoundSettings,
}

impl<M> Default for Gathering<M> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), open: 0, each: None }
    }
}

/// The share of the newest round in the mean of them.
const NEWEST: u64 = 4;
/// What a request is taken to need before any round was decided: about what it takes on a thousand nodes.
const FIRST: Micros = Micros::from_millis(1);
/// By this part the mean shrinks with each request that has no time for a round: were it never measured anew, one round that was
/// slow once could keep all others from gathering for good.
const FADES: u64 = 64;
/// A round is taken to need so many times the mean: one that begins too late is of no use to anybody.
const PRUDENT: u64 = 2;

impl<M: Gathers> Gathering<M> {
    /// Whether a request that is to be decided until then has the time for a round of all that wait with it, or before it.
    #[must_use]
    pub fn has_time(&mut self, now: Timestamp, until: Timestamp, settings: &RoundSettings) -> bool {
        let has_time = now.plus(self.takes((self.waiting.len() + 1).min(settings.requests))) < until;
        if !has_time {
            self.each = self.each.map(|each| Micros(each.0 - each.0.div_ceil(FADES)));
        }
        has_time
    }

    /// Whether so much time is less than a round of so many takes: its search would be stopped for all of them.
    #[must_use]
    pub fn is_short(&self, left: Micros, requests: usize) -> bool {
        left.0 < self.each().0.saturating_mul(requests as u64)
    }

    /// One more waits.
    pub fn join(&mut self, member: M, now: Timestamp, until: Timestamp, settings: RoundSettings) {
        self.waiting.push_back(Waiting { member, since: now, until, settings });
    }

    /// When the next round begins, if nothing happens before; `None`: nothing waits.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        let first = self.waiting.front()?;
        let latest = self.latest(first.settings.requests);
        if self.open > 0 {
            return Some(latest);
        }
        let like = self.waiting.iter().filter(|waiting| waiting.member.is_like(&first.member)).count();
        let full = like >= first.settings.requests;
        let due = if full { first.since } else { first.since.plus(first.settings.every) };
        Some(due.min(latest))
    }

    /// The requests of a round that begins now; empty: none does.
    pub fn begin(&mut self, now: Timestamp) -> Vec<M> {
        self.waiting.retain(|waiting| !waiting.member.is_gone());
        if self.next().is_none_or(|next| next > now) {
            return Vec::new();
        }
        self.take()
    }

    /// All that wait, round by round, whether or not they are due.
    pub fn flush(&mut self) -> Vec<M> {
        self.waiting.retain(|waiting| !waiting.member.is_gone());
        self.take()
    }

    fn take(&mut self) -> Vec<M> {
        let Some(first) = self.waiting.pop_front() else { return Vec::new() };
        let most = first.settings.requests;
        let mut keys = BTreeSet::from([first.member.key()]);
        let mut round = vec![first.member];
        let mut later = VecDeque::new();
        for waiting in self.waiting.drain(..) {
            if round.len() < most && round[0].is_like(&waiting.member) && keys.insert(waiting.member.key()) {
                round.push(waiting.member);
            } else {
                later.push_back(waiting);
            }
        }
        self.waiting = later;
        self.open += 1;
        round
    }

    /// A round of so many was decided in this time.
    pub fn decided(&mut self, requests: usize, took: Micros) {
        let each = took.0 / (requests as u64).max(1);
        self.each = Some(Micros(self.each.map_or(each, |mean| mean.0 - mean.0 / NEWEST + each / NEWEST)));
    }

    fn each(&self) -> Micros {
        self.each.unwrap_or(FIRST)
    }

    /// A round is over: what it placed is committed, or nobody waits for that any more.
    pub fn ended(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Requests that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn takes(&self, requests: usize) -> Micros {
        Micros(self.each().0.saturating_mul(PRUDENT).saturating_mul(requests as u64))
    }

    /// When a round has to begin so that all that wait are in time.
    fn latest(&self, most: usize) -> Timestamp {
        let takes = self.takes(self.waiting.len().min(most));
        let until = self.waiting.iter().map(|waiting| waiting.until).min().unwrap_or(Timestamp(u64::MAX));
        Timestamp(until.0.saturating_sub(takes.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    #[derive(Debug, Clone)]
    struct One(u32, &'static str, Rc<Cell<bool>>);

    impl Gathers for One {
        type Key = u32;

        fn key(&self) -> u32 {
            self.0
        }

        fn is_gone(&self) -> bool {
            self.2.get()
        }

        fn is_like(&self, other: &Self) -> bool {
            self.1 == other.1
        }
    }

    const ROUND: RoundSettings = RoundSettings { every: Micros::from_millis(50), requests: 3 };
    const LATE: Timestamp = Timestamp(10_000_000);

    fn ms(at: u64) -> Timestamp {
        Timestamp(at * 1_000)
    }

    fn one(id: u32) -> One {
        One(id, "a", Rc::default())
    }

    fn ids(round: &[One]) -> Vec<u32> {
        round.iter().map(|one| one.0).collect()
    }

    #[test]
    fn the_first_waits_for_a_time_and_those_that_fill_a_round_do_not() {
        let mut gathering = Gathering::default();
        assert_eq!((gathering.next(), gathering.begin(ms(9)).len()), (None, 0));
        gathering.join(one(1), ms(10), LATE, ROUND);
        gathering.join(one(2), ms(30), LATE, ROUND);
        assert_eq!((gathering.next(), gathering.begin(ms(59)).len()), (Some(ms(60)), 0));
        assert_eq!(ids(&gathering.begin(ms(60))), [1, 2]);
        gathering.ended();
        for id in 3..7 {
            gathering.join(one(id), ms(70), LATE, ROUND);
        }
        assert_eq!(gathering.next(), Some(ms(70)), "there are enough");
        assert_eq!((ids(&gathering.begin(ms(70))), gathering.waiting()), (vec![3, 4, 5], 1));
    }

    #[test]
    fn while_one_is_decided_the_next_gathers_unless_it_would_be_too_late() {
        let mut gathering = Gathering::default();
        gathering.join(one(1), ms(0), LATE, ROUND);
        assert_eq!(gathering.begin(ms(50)).len(), 1);
        gathering.decided(1, Micros::from_millis(10));
        for id in 2..6 {
            gathering.join(one(id), ms(51), ms(200), ROUND);
        }
        // Three of them, twice 10 ms each.
        assert_eq!((gathering.next(), gathering.begin(ms(139)).len()), (Some(ms(140)), 0));
        assert_eq!(ids(&gathering.begin(ms(140))), [2, 3, 4]);
        assert_eq!(gathering.next(), Some(ms(180)));
        gathering.ended();
        gathering.ended();
        assert_eq!(ids(&gathering.begin(ms(141))), [5], "it came 90 ms ago");
    }

    #[test]
    fn who_has_no_time_for_a_round_is_told_and_the_shortest_deadline_says_when() {
        let some = |waiting: u32| {
            let mut gathering = Gathering::default();
            gathering.decided(4, Micros::from_millis(20));
            let until = [LATE, ms(30)];
            (0..waiting).for_each(|id| gathering.join(one(id), ms(id.into()), until[id as usize], ROUND));
            gathering
        };
        assert!(some(0).has_time(ms(0), ms(11), &ROUND) && !some(0).has_time(ms(0), ms(10), &ROUND));
        assert!(!some(2).has_time(ms(1), ms(30), &ROUND), "three take 30 ms");
        let mut gathering = some(2);
        assert_eq!(gathering.next(), Some(ms(10)));
        assert_eq!(ids(&gathering.begin(ms(10))), [0, 1]);
    }

    #[test]
    fn who_has_less_than_a_round_takes_is_short_and_one_slow_round_is_forgotten() {
        let mut gathering: Gathering<One> = Gathering::default();
        assert!(gathering.is_short(Micros(2_999), 3) && !gathering.is_short(Micros(3_000), 3), "a millisecond each");
        gathering.decided(1, Micros::from_secs(10));
        assert!(gathering.is_short(Micros::from_secs(19), 2) && !gathering.is_short(Micros::from_secs(20), 2));
        let refused = (0..1_000).take_while(|_| !gathering.has_time(ms(0), ms(1_000), &ROUND)).count();
        assert!((100..300).contains(&refused), "{refused}");
        gathering.join(one(1), ms(0), LATE, ROUND);
        assert_eq!(gathering.begin(ms(50)).len(), 1);
        gathering.decided(1, Micros::from_millis(1));
        assert!(!gathering.is_short(Micros::from_millis(400), 1));
    }

    #[test]
    fn a_second_of_the_same_key_is_of_the_next_round() {
        let mut gathering = Gathering::default();
        for id in [1, 1, 2] {
            gathering.join(one(id), ms(0), LATE, ROUND);
        }
        assert_eq!(ids(&gathering.begin(ms(50))), [1, 2]);
        gathering.ended();
        assert_eq!((ids(&gathering.begin(ms(50))), gathering.waiting()), (vec![1], 0));
    }

    #[test]
    fn others_fill_no_round_of_one_that_they_are_not_of() {
        let mut gathering = Gathering::default();
        for (id, of) in [(1, "a"), (2, "b"), (3, "b"), (4, "a")] {
            gathering.join(One(id, of, Rc::default()), ms(id.into()), LATE, ROUND);
        }
        assert_eq!((gathering.next(), gathering.begin(ms(5)).len()), (Some(ms(51)), 0));
        gathering.join(one(5), ms(6), LATE, ROUND);
        assert_eq!(ids(&gathering.begin(ms(6))), [1, 4, 5]);
    }

    #[test]
    fn those_that_are_gone_are_of_no_round_and_those_of_other_settings_of_another() {
        let mut gathering = Gathering::default();
        let gone = one(1);
        gathering.join(gone.clone(), ms(0), LATE, ROUND);
        for (id, of) in [(2, "a"), (3, "b"), (4, "a"), (5, "b")] {
            gathering.join(One(id, of, Rc::default()), ms(1), LATE, ROUND);
        }
        gone.2.set(true);
        assert_eq!(ids(&gathering.begin(ms(51))), [2, 4]);
        assert_eq!((ids(&gathering.flush()), gathering.flush().len()), (vec![3, 5], 0));
    }
}
