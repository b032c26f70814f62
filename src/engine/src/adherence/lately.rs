//! What was counted of the last hour, and how many containers of each decision came to their host: few bytes a decision, so that
//! lists have it for longer than all of its outcome is kept.

use super::tally::{GroupTally, Miss, Tally, TallyKey, Term, TermSums};
use hintd_model::units::{DecisionId, Micros, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Sums are kept by so much time.
const STEP: Micros = Micros::from_secs(5 * 60);
/// So many of them, with the one under way: an hour, and what has passed of a step.
const STEPS: u64 = 13;
/// Names of groups with figures of their own, by policy, queue and mode; applications make names up.
const GROUPS_MAX: usize = 16;
/// The name under which those of further names are counted.
const OTHER_GROUPS: &str = "(other)";
/// Settled decisions whose counts are kept: about 2 MB.
const COUNTS_KEPT: usize = 20_000;

/// Bytes below which a decision's share of saved ones says nothing: of less than one block of HDFS (128 MiB, as Hadoop ships it)
/// where a single task came to decides it.
const ENOUGH_BYTES: f64 = 134_217_728.0;

/// Of a decision's hinted containers, those that came to their host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Followed {
    /// Came to their host.
    pub on_host: u64,
    /// Came to its rack, or to a host that was named as next best; 0 until it is settled.
    pub in_rack: u64,
    /// Hinted.
    pub hinted: u64,
    /// Not seen yet.
    pub awaited: u64,
    /// Nothing more is expected.
    pub settled: bool,
    /// The most frequent reason of those that are not on their host, once it is settled.
    pub why: Option<Miss>,
    /// Share of the default placement's bytes that where they came saved: of those between racks, where these are too few of those
    /// of input from other hosts. Once it is settled, and only where all of them were seen.
    pub realised_gain: Option<f64>,
}

impl Followed {
    /// Of a decision that is counted.
    pub(super) fn settled(tally: &Tally) -> Self {
        let outcomes = &tally.outcomes;
        let why = Miss::ALL.into_iter().filter(|why| outcomes.missed(*why) > 0);
        Self {
            on_host: outcomes.on_host,
            in_rack: outcomes.in_rack,
            hinted: outcomes.all(),
            awaited: 0,
            settled: true,
            why: why.max_by_key(|why| outcomes.missed(*why)),
            realised_gain: [Term::CrossRackBytes, Term::RemoteBytes]
                .into_iter()
                .map(|term| tally.term(term))
                .filter(|sums| sums.default >= ENOUGH_BYTES)
                .find_map(TermSums::realised_gain),
        }
    }
}

/// Counts of the newest settled decisions.
#[derive(Debug, Default)]
pub(super) struct SettledCounts(BTreeMap<DecisionId, Followed>);

impl SettledCounts {
    pub(super) fn keep(&mut self, decision: DecisionId, followed: Followed) {
        self.0.insert(decision, followed);
        if self.0.len() > COUNTS_KEPT {
            self.0.pop_first();
        }
    }

    pub(super) fn of(&self, decision: DecisionId) -> Option<Followed> {
        self.0.get(&decision).copied()
    }

    pub(super) fn remove(&mut self, decision: DecisionId) {
        self.0.remove(&decision);
    }
}

/// What became of groups, by their names.
pub type GroupTallies = BTreeMap<Arc<str>, GroupTally>;

/// Figures of one policy, queue and mode.
#[derive(Debug, Clone, Default)]
pub struct LatelySums {
    /// Of all groups together.
    pub all: Tally,
    /// Of groups that are called alike, so many names at most.
    pub groups: GroupTallies,
}

impl LatelySums {
    fn add(&mut self, tally: &Tally, groups: impl IntoIterator<Item = (Arc<str>, GroupTally)>) {
        self.all.add(tally);
        for (name, of) in groups {
            let is_full = self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&name);
            let name = if is_full { Arc::from(OTHER_GROUPS) } else { name };
            self.groups.entry(name).or_default().add(&of);
        }
    }
}

/// Figures by steps of time, the oldest first.
#[derive(Debug, Default)]
pub(super) struct LastHour(VecDeque<(u64, BTreeMap<TallyKey, LatelySums>)>);

impl LastHour {
    pub(super) fn add(
        &mut self,
        key: &TallyKey,
        (tally, groups): (&Tally, Vec<(Arc<str>, GroupTally)>),
        now: Timestamp,
    ) {
        let step = now.0 / STEP.0;
        // A clock that is set back counts into the newest step.
        if self.0.back().is_none_or(|(newest, _)| *newest < step) {
            self.0.push_back((step, BTreeMap::new()));
        }
        while self.0.front().is_some_and(|(oldest, _)| oldest + STEPS <= step) {
            self.0.pop_front();
        }
        if let Some((_, sums)) = self.0.back_mut() {
            sums.entry(key.clone()).or_default().add(tally, groups);
        }
    }

    pub(super) fn sums(&self, now: Timestamp) -> BTreeMap<TallyKey, LatelySums> {
        let step = now.0 / STEP.0;
        let mut sums: BTreeMap<TallyKey, LatelySums> = BTreeMap::new();
        for (_, of_step) in self.0.iter().filter(|(at, _)| at + STEPS > step) {
            for (key, of) in of_step {
                let groups = of.groups.iter().map(|(name, of)| (Arc::clone(name), *of));
                sums.entry(key.clone()).or_default().add(&of.all, groups);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Mode;

    #[test]
    fn what_was_counted_more_than_an_hour_ago_is_no_longer_among_the_sums_of_the_last_hour() {
        let key = TallyKey { policy: "joint".into(), queue: "etl".into(), mode: Mode::On };
        let minute = |at: u64| Timestamp(at * 60_000_000);
        let mut lately = LastHour::default();
        let one = Tally { decisions: 1, ..Tally::default() };
        [0, 30, 59, 90].into_iter().for_each(|at| lately.add(&key, (&one, vec![]), minute(at)));
        let sums = |at| lately.sums(minute(at)).get(&key).map_or(0, |sums| sums.all.decisions);
        assert_eq!([90, 95, 119, 149, 155].map(sums), [3, 2, 2, 1, 0]);
    }

    #[test]
    fn groups_have_figures_by_their_names_and_those_of_many_names_share_theirs() {
        let key = TallyKey { policy: "joint".into(), queue: "etl".into(), mode: Mode::On };
        let group = |on_host, elsewhere| {
            GroupTally::of(super::super::Outcomes { on_host, elsewhere, ..super::super::Outcomes::default() })
        };
        let mut lately = LastHour::default();
        let mut add = |at: u64, groups| lately.add(&key, (&Tally::default(), groups), Timestamp(at * STEP.0));
        add(0, vec![("map".into(), group(3, 1)), ("reduce".into(), group(0, 2))]);
        add(1, vec![("reduce".into(), group(0, 1))]);
        (0..20_u32).for_each(|at| add(2, vec![(format!("g{at}").into(), group(1, 0))]));
        let sums = lately.sums(Timestamp(2 * STEP.0)).remove(&key).unwrap();
        let of = |name: &str| {
            let GroupTally { decisions, not_followed, outcomes } = sums.groups[name];
            (decisions, not_followed, outcomes.on_host, outcomes.all())
        };
        assert_eq!((of("map"), of("reduce")), ((1, 0, 3, 4), (2, 2, 0, 3)));
        assert_eq!((of("g0"), sums.groups.len()), ((1, 0, 1, 1), GROUPS_MAX));
        assert_eq!(of(OTHER_GROUPS), (7, 0, 7, 7), "what has no place of its own is counted all the same");
    }

    #[test]
    fn the_most_frequent_reason_is_told_and_the_oldest_counts_go() {
        let mut tally = Tally { decisions: 1, ..Tally::default() };
        (tally.outcomes.on_host, tally.outcomes.elsewhere) = (3, 9);
        tally.outcomes.miss(Miss::NoRoom, 2);
        tally.outcomes.miss(Miss::YarnChose, 7);
        let followed = Followed::settled(&tally);
        assert_eq!((followed.on_host, followed.hinted, followed.why), (3, 12, Some(Miss::YarnChose)));
        assert_eq!(Followed::settled(&Tally::default()).why, None);
        let mut counts = SettledCounts::default();
        (0..=COUNTS_KEPT as u64).for_each(|id| counts.keep(DecisionId::of(id), followed));
        assert_eq!((counts.of(DecisionId::of(0)), counts.of(DecisionId::of(1))), (None, Some(followed)));
    }
}
