//! *When* receivers of heavy shuffles are asked for: few shuffles at a time, fewest bytes left first.
//!
//! Shuffles that share uplinks slow each other down, and none ends earlier for it. Coflow schedulers serve the one first
//! that can be done first (smallest effective bottleneck first, Varys). The same is had by what may be asked of YARN: of
//! the jobs with a heavy shuffle only the first few ask for receivers, and each of them for a part of the cluster's
//! containers at most, the later in the order the fewer. What runs goes on; YARN grants as before. A job that stays in one home rack uses no uplinks: its
//! turn is among the jobs that stay there too, by that rack's access links and containers.
//!
//! # Code map
//! - Here: the order. `fabric`: what cluster and racks can carry. `wish`: what a job says, and where bytes are known from. `serve`: the engine's call. `tally`: what each was told.
//!
//! # Invariants
//! - What is not known to be heavy is never held.
//! - The first in order of a lane is never held: somebody always goes on.
//! - The order is by bytes left, halved for who has waited: nobody waits for ever behind newcomers.
//! - From [`HoldSettings::longest`] on after its first wish a job is not held, and holds up nobody. Nor does one that
//!   says nothing any more.

mod fabric;
mod serve;
mod tally;
pub mod wish;

pub(crate) use fabric::FabricScans;
pub use fabric::access;
pub use tally::TurnTally;

use hintd_model::units::{AttemptId, Bytes, Micros, RackIdx, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who has said nothing for so long is forgotten: ApplicationMasters are heard every second.
const SILENT: Micros = Micros::from_secs(30);

/// Shuffles known at a time, all jobs together; beyond, jobs are not held and not remembered.
const SHUFFLES_MAX: usize = 10_000;

/// When receivers are held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HoldSettings {
    /// Heavy shuffles that may ask at a time; at least 1.
    pub at_once: u32,
    /// From when on a shuffle is heavy: time that its bytes take over all links of its lane together.
    pub heavy: Micros,
    /// The part of the cluster's containers that receivers of one heavy shuffle may hold, 0 to 1.
    pub share: f64,
    /// The same of a home rack's containers, for a job that stays there.
    pub home_share: f64,
    /// Of the share of whoever is right before it in the order, the part that the next heavy shuffle may hold, 0 to 1.
    pub next_share: f64,
    /// Who has waited so long counts as having half of its bytes left.
    pub patience: Micros,
    /// Nobody is held for longer.
    pub longest: Micros,
}

impl Default for HoldSettings {
    /// Measured as deployed on traces of Facebook (docs/worth.md); one at a time leaves uplinks idle between shuffles.
    fn default() -> Self {
        Self {
            at_once: 2,
            heavy: Micros::from_secs(2),
            share: 0.25,
            home_share: 1.0,
            next_share: 0.25,
            patience: Micros::from_secs(600),
            longest: Micros::from_secs(3_600),
        }
    }
}

/// Which links a shuffle shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// All racks' uplinks: the job goes anywhere, or has several home racks.
    Uplinks,
    /// Access links of the one rack that the job stays in.
    Rack(RackIdx),
}

impl Lane {
    /// Of a job that stays in those racks; none: it goes anywhere.
    #[must_use]
    pub const fn of(homes: &[RackIdx]) -> Self {
        match homes {
            [rack] => Self::Rack(*rack),
            _ => Self::Uplinks,
        }
    }
}

/// What a lane can carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneCapacity {
    /// Bytes a second over all of its links together, in one direction; infinite where none could be full.
    pub rate: f64,
    /// Containers of the usual size.
    pub containers: u32,
}

/// A job's shuffle, as it is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    /// All bytes that its receivers get.
    pub bytes: Bytes,
    /// Its receivers.
    pub receivers: u32,
    /// Those of them that have all of theirs.
    pub received: u32,
    /// Bytes that receivers have by now, as far as that is counted; zero: it is not.
    pub fetched: Bytes,
}

impl Shuffle {
    /// What of it crosses uplinks where it stays in so many home racks, evenly: 1 − 1 ÷ racks. All of it in one rack, whose
    /// access links it takes, and where it has no homes: how many racks it will be in is not known.
    #[must_use]
    pub fn over_links_of(self, homes: usize) -> Self {
        if homes < 2 {
            return self;
        }
        let part = |bytes: Bytes| Bytes((bytes.as_f64() * (1.0 - 1.0 / homes as f64)) as u64);
        Self { bytes: part(self.bytes), fetched: part(self.fetched), ..self }
    }

    /// Bytes that are still to come: by what is counted or by receivers that have theirs, whichever says less.
    fn left(&self) -> f64 {
        let share = 1.0 - f64::from(self.received) / f64::from(self.receivers);
        (self.bytes.as_f64() * share).min(self.bytes.saturating_sub(self.fetched).as_f64())
    }
}

/// Who knew the bytes that were gone by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teller {
    /// Who wishes.
    Caller,
    /// The job's ApplicationMaster.
    ApplicationMaster,
    /// Earlier runs of the recurring job.
    History,
}

impl Teller {
    /// For answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::ApplicationMaster => "application_master",
            Self::History => "history",
        }
    }
}

/// Whether a job may ask for receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// As many as it likes: its shuffle is not heavy, or it was held for long enough.
    Free,
    /// Its receivers may hold or ask for so many containers.
    AtMost(u32),
    /// It asks for no more now: so many are before it.
    Held {
        /// Heavy shuffles that have fewer bytes left.
        before: u32,
    },
}

impl Turn {
    /// How many of `wanted` more receivers may be asked for, where `held` containers are held or asked for.
    #[must_use]
    pub fn may_ask(self, wanted: u32, held: u32) -> u32 {
        match self {
            Self::Free => wanted,
            Self::AtMost(most) => wanted.min(most.saturating_sub(held)),
            Self::Held { .. } => 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Known {
    shuffle: Shuffle,
    lane: Lane,
    /// When it first wished for receivers.
    since: Timestamp,
    /// When it last said anything.
    heard: Timestamp,
}

/// Shuffles of running jobs.
#[derive(Debug, Default)]
pub struct Holding {
    known: BTreeMap<AttemptId, Known>,
    told: tally::TurnTallies,
}

impl Holding {
    /// The job wishes for receivers of that shuffle; what is known later replaces what was known before.
    pub fn wishes(&mut self, attempt: AttemptId, shuffle: Shuffle, lane: Lane, now: Timestamp) {
        let known = self.known.entry(attempt).or_insert(Known { shuffle, lane, since: now, heard: now });
        (known.shuffle, known.lane, known.heard) = (shuffle, lane, now);
    }

    /// Forgets jobs that have said nothing since then.
    pub fn forget_silent(&mut self, since: Timestamp) {
        self.known.retain(|_, known| known.heard >= since);
    }

    /// Whether the job's shuffle is known.
    #[must_use]
    pub fn knows(&self, attempt: AttemptId) -> bool {
        self.known.contains_key(&attempt)
    }

    /// Jobs that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// One more of its receivers has all of its bytes.
    pub fn received(&mut self, attempt: AttemptId) {
        if let Some(known) = self.known.get_mut(&attempt) {
            known.shuffle.received += 1;
        }
    }

    /// The job is over.
    pub fn end(&mut self, attempt: AttemptId) {
        self.known.remove(&attempt);
        self.told.end(attempt);
    }

    /// What the job was told so far; `None`: it never asked, or its shuffle was not known.
    #[must_use]
    pub fn tally(&self, attempt: AttemptId) -> Option<&TurnTally> {
        self.told.of(attempt)
    }

    /// Whether the job may ask now, by what its lane can carry. Takes time in proportion to jobs.
    #[must_use]
    pub fn turn(&self, attempt: AttemptId, settings: &HoldSettings, capacity: LaneCapacity, now: Timestamp) -> Turn {
        let rank = |known: &Known| rank(known, settings, capacity.rate, now);
        let Some((lane, ours)) = self.known.get(&attempt).and_then(|known| Some((known.lane, rank(known)?))) else {
            return Turn::Free;
        };
        let first = |(other, known): (&AttemptId, &Known)| {
            let theirs = rank(known).filter(|_| known.lane == lane)?;
            theirs.total_cmp(&ours).then(other.cmp(&attempt)).is_lt().then_some(())
        };
        let before = u32::try_from(self.known.iter().filter_map(first).count()).unwrap_or(u32::MAX);
        if before < settings.at_once.max(1) {
            let first = if lane == Lane::Uplinks { settings.share } else { settings.home_share };
            // Links are shared by flows: few receivers take what the first leaves free, many would take its part.
            let share = first * settings.next_share.powf(f64::from(before));
            Turn::AtMost(((f64::from(capacity.containers) * share) as u32).max(1))
        } else {
            Turn::Held { before }
        }
    }
}

/// Its place in the order: bytes left, halved by every `patience` that it has waited. None: it is not heavy, has all of
/// its bytes, or came too long ago.
fn rank(known: &Known, settings: &HoldSettings, rate: f64, now: Timestamp) -> Option<f64> {
    let Known { shuffle, since, .. } = known;
    let waited = now.since(*since);
    let heavy = shuffle.bytes.as_f64() > settings.heavy.as_secs_f64() * rate;
    if !heavy || shuffle.received >= shuffle.receivers || waited >= settings.longest {
        return None;
    }
    let halved = waited.as_f64() / settings.patience.as_f64().max(1.0);
    Some(shuffle.left() * (-halved).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::ApplicationId;
    use proptest::prelude::*;

    const GB: u64 = 1_000_000_000;
    const SECOND: u64 = 1_000_000;

    fn attempt(number: u32) -> AttemptId {
        AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: number }, attempt: 1 }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * SECOND)
    }

    const FABRIC: LaneCapacity = LaneCapacity { rate: 1e9, containers: 320 };

    fn turn(holding: &Holding, number: u32, now: u64) -> Turn {
        holding.turn(attempt(number), &HoldSettings::default(), FABRIC, at(now))
    }

    impl Holding {
        fn wishes_anywhere(&mut self, attempt: AttemptId, shuffle: Shuffle, now: Timestamp) {
            self.wishes(attempt, shuffle, Lane::Uplinks, now);
        }
    }

    fn shuffle(gb: u64, receivers: u32) -> Shuffle {
        Shuffle { bytes: Bytes(gb * GB), receivers, received: 0, fetched: Bytes::ZERO }
    }

    #[test]
    fn the_two_with_fewest_bytes_left_ask_and_light_ones_always_do() {
        let mut holding = Holding::default();
        for (number, gb) in [(1, 50), (2, 10), (3, 30), (4, 1)] {
            holding.wishes_anywhere(attempt(number), shuffle(gb, 10), at(0));
        }
        assert_eq!(turn(&holding, 1, 0), Turn::Held { before: 2 });
        assert_eq!(turn(&holding, 2, 0), Turn::AtMost(80));
        assert_eq!(turn(&holding, 3, 0), Turn::AtMost(20));
        assert_eq!((turn(&holding, 4, 0), turn(&holding, 9, 0)), (Turn::Free, Turn::Free));
        // Nine of ten have theirs: 5 GB are left.
        (0..9).for_each(|_| holding.received(attempt(1)));
        assert_eq!(turn(&holding, 1, 0), Turn::AtMost(80));
        assert_eq!(turn(&holding, 3, 0), Turn::Held { before: 2 });
        // Who has everything stands before nobody, though it still works.
        holding.received(attempt(1));
        assert_eq!(turn(&holding, 3, 0), Turn::AtMost(20));
        holding.end(attempt(2));
        holding.wishes_anywhere(attempt(5), shuffle(40, 10), at(0));
        assert_eq!(turn(&holding, 5, 0), Turn::AtMost(20));
    }

    #[test]
    fn bytes_that_receivers_have_count_as_no_longer_left() {
        let mut holding = Holding::default();
        for (number, gb) in [(1, 50), (2, 10), (3, 30)] {
            holding.wishes_anywhere(attempt(number), shuffle(gb, 10), at(0));
        }
        assert_eq!(turn(&holding, 1, 0), Turn::Held { before: 2 });
        let of = |received, gb| Shuffle { received, fetched: Bytes(gb * GB), ..shuffle(50, 10) };
        holding.wishes_anywhere(attempt(1), of(0, 21), at(0));
        assert_eq!((turn(&holding, 1, 0), turn(&holding, 3, 0)), (Turn::AtMost(20), Turn::Held { before: 2 }));
        // Counters come later than the end of a receiver: nine of ten have theirs.
        holding.wishes_anywhere(attempt(1), of(9, 19), at(0));
        assert_eq!(turn(&holding, 3, 0), Turn::Held { before: 2 });
        // More than was expected, and not yet all: it goes first.
        holding.wishes_anywhere(attempt(1), of(9, 60), at(0));
        assert_eq!((turn(&holding, 1, 0), turn(&holding, 3, 0)), (Turn::AtMost(80), Turn::Held { before: 2 }));
    }

    #[test]
    fn who_has_waited_passes_newcomers_and_nobody_waits_for_longer_than_the_bound() {
        let mut holding = Holding::default();
        holding.wishes_anywhere(attempt(1), shuffle(100, 10), at(0));
        let newcomers = |holding: &mut Holding, now: u64| {
            for number in [2, 3] {
                holding.end(attempt(number));
                holding.wishes_anywhere(attempt(number), shuffle(10, 10), at(now));
            }
            turn(holding, 1, now)
        };
        assert_eq!(newcomers(&mut holding, 600), Turn::Held { before: 2 });
        // 100 GB count as less than 10 from 3.33 spans of patience on.
        assert_eq!(newcomers(&mut holding, 2_100), Turn::AtMost(80));
        assert_eq!(newcomers(&mut holding, 3_600), Turn::Free);
        assert_eq!(turn(&holding, 2, 3_600), Turn::AtMost(80), "and it stands before nobody");
    }

    #[test]
    fn shares_patience_and_the_longest_time_hold_at_their_edges() {
        let settings = HoldSettings { share: 0.5, home_share: 0.1, ..HoldSettings::default() };
        let home = Lane::of(&[RackIdx(0)]);
        let mut holding = Holding::default();
        holding.wishes_anywhere(attempt(1), shuffle(100, 10), at(0));
        holding.wishes(attempt(2), shuffle(100, 10), home, at(0));
        let of = |number: u32, settings: &HoldSettings, now| holding.turn(attempt(number), settings, FABRIC, now);
        assert_eq!(of(1, &settings, at(0)), Turn::AtMost(160), "half of 320 containers");
        assert_eq!(of(2, &settings, at(0)), Turn::AtMost(32), "a tenth of those at home");
        let least = HoldSettings { share: 0.001, home_share: 0.001, ..settings };
        assert_eq!([1, 2].map(|number| of(number, &least, at(0))), [Turn::AtMost(1); 2], "one at least");
        let last = Timestamp(at(3_600).0 - 1);
        assert_eq!((of(1, &settings, last), of(1, &settings, at(3_600))), (Turn::AtMost(160), Turn::Free));
        // 100 GB that waited for one span of patience count as 50.
        for (gb, expected) in [(50, Turn::Held { before: 1 }), (51, Turn::AtMost(160))] {
            let mut holding = Holding::default();
            holding.wishes_anywhere(attempt(3), shuffle(100, 10), at(0));
            holding.wishes_anywhere(attempt(2), shuffle(gb, 10), at(600));
            let one = HoldSettings { at_once: 1, ..settings };
            assert_eq!(holding.turn(attempt(3), &one, FABRIC, at(600)), expected, "beside {gb} GB");
        }
    }

    #[test]
    fn who_says_nothing_any_more_stands_before_nobody() {
        let mut holding = Holding::default();
        for number in 1..=3 {
            holding.wishes_anywhere(attempt(number), shuffle(u64::from(number) * 10, 10), at(0));
        }
        holding.wishes_anywhere(attempt(2), shuffle(20, 10), at(20));
        holding.wishes_anywhere(attempt(3), shuffle(30, 10), at(20));
        assert_eq!(turn(&holding, 3, 20), Turn::Held { before: 2 });
        holding.forget_silent(at(10));
        assert_eq!((turn(&holding, 3, 20), holding.len()), (Turn::AtMost(20), 2));
    }

    #[test]
    fn jobs_that_stay_in_a_rack_take_turns_with_those_there_and_with_nobody_else() {
        let mut holding = Holding::default();
        let rack = |rack| Lane::of(&[RackIdx(rack)]);
        assert_eq!([Lane::of(&[]), Lane::of(&[RackIdx(0), RackIdx(3)])], [Lane::Uplinks; 2]);
        for (number, gb, lane) in [(1, 50, Lane::Uplinks), (2, 10, rack(0)), (3, 20, rack(0)), (4, 30, rack(0))] {
            holding.wishes(attempt(number), shuffle(gb, 10), lane, at(0));
        }
        holding.wishes(attempt(5), shuffle(60, 10), rack(1), at(0));
        // The caller says what the lane of each can carry: all of a rack's 40 containers, a quarter of the cluster's 320.
        let home = LaneCapacity { rate: 5e8, containers: 40 };
        let there = |holding: &Holding, number| holding.turn(attempt(number), &HoldSettings::default(), home, at(0));
        assert_eq!(turn(&holding, 1, 0), Turn::AtMost(80), "three with fewer bytes are in no way of it");
        assert_eq!([2, 3, 5].map(|number| there(&holding, number)), [40, 10, 40].map(Turn::AtMost));
        assert_eq!(there(&holding, 4), Turn::Held { before: 2 });
        // It left its home: the uplinks are its links now.
        holding.wishes(attempt(2), shuffle(10, 10), Lane::Uplinks, at(0));
        assert_eq!((there(&holding, 4), turn(&holding, 1, 0)), (Turn::AtMost(10), Turn::AtMost(20)));
        let of = |homes: usize| shuffle(60, 10).over_links_of(homes).bytes;
        assert_eq!([0, 1, 2, 3].map(of), [60, 60, 30, 40].map(|gb| Bytes(gb * GB)));
    }

    #[test]
    fn a_share_of_containers_is_what_receivers_hold_and_ask_for_together() {
        let asks = [Turn::Free.may_ask(9, 99), Turn::AtMost(80).may_ask(9, 75), Turn::AtMost(80).may_ask(9, 99)];
        assert_eq!((asks, Turn::Held { before: 2 }.may_ask(9, 0)), ([9, 5, 0], 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Against sorting all of them.
        #[test]
        fn those_who_ask_are_the_first_of_the_whole_order(
            jobs in prop::collection::vec((0_u64..40, 1_u32..8, 0_u32..9, 0_u64..5_000), 0..12),
            at_once in 0_u32..4, now in 5_000_u64..9_000,
        ) {
            let settings = HoldSettings { at_once, ..HoldSettings::default() };
            let mut holding = Holding::default();
            let mut order = Vec::new();
            for (number, &(gb, receivers, received, since)) in jobs.iter().enumerate() {
                let number = attempt(number as u32);
                holding.wishes_anywhere(number, Shuffle { received, ..shuffle(gb, receivers) }, at(since));
                if gb > 2 && received < receivers && now - since < 3_600 {
                    let left = gb as f64 * (1.0 - f64::from(received) / f64::from(receivers));
                    order.push((left * 0.5_f64.powf((now - since) as f64 / 600.0), number));
                }
            }
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            // Rounding may swap those that are as good as equal.
            prop_assume!(order.windows(2).all(|pair| pair[0].0 < pair[1].0 * (1.0 - 1e-9)));
            for number in (0..jobs.len()).map(|number| attempt(number as u32)) {
                let place = order.iter().position(|(_, other)| *other == number);
                let expected = match place {
                    None => Turn::Free,
                    Some(place) if place < at_once.max(1) as usize => Turn::AtMost((80.0 * 0.25_f64.powi(place as i32)).max(1.0) as u32),
                    Some(place) => Turn::Held { before: place as u32 },
                };
                prop_assert_eq!(holding.turn(number, &settings, FABRIC, at(now)), expected);
            }
        }
    }
}
