//! What each job was told about its receivers' turn, for operators: kept until the job is over.

use super::{Lane, SHUFFLES_MAX, SILENT, Shuffle, Teller, Turn};
use hintd_model::units::{AttemptId, Micros, Timestamp};
use std::collections::BTreeMap;

/// What a job whose shuffle is known was told so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnTally {
    /// The last answer.
    pub turn: Turn,
    /// The shuffle that it went by, of which only what crosses links of the lane counts.
    pub shuffle: Shuffle,
    /// Bytes that are still to come.
    pub left: f64,
    /// Which links it takes turns on.
    pub lane: Lane,
    /// Who knew its bytes.
    pub teller: Teller,
    /// When it first asked.
    pub first: Timestamp,
    /// When it last asked.
    pub last: Timestamp,
    /// How often it asked.
    pub asked: u64,
    /// How often it was told to ask for no more receivers.
    pub held: u64,
    /// For how long until the last answer, all together; see [`Self::waited_by`].
    pub waited: Micros,
}

impl TurnTally {
    /// Whether it has not asked for so long that it is in no order any more.
    #[must_use]
    pub fn is_silent(&self, now: Timestamp) -> bool {
        now.since(self.last) > SILENT
    }

    /// For how long it was held until then, all together: from each such answer to the next one, and no longer than it is in
    /// the order without a word.
    #[must_use]
    pub fn waited_by(&self, now: Timestamp) -> Micros {
        let since =
            if matches!(self.turn, Turn::Held { .. }) { now.since(self.last).min(SILENT) } else { Micros::ZERO };
        self.waited.saturating_add(since)
    }
}

/// By attempt.
#[derive(Debug, Default)]
pub(super) struct TurnTallies(BTreeMap<AttemptId, TurnTally>);

/// An answer about a shuffle that is known.
pub(super) struct TurnAnswer {
    pub(super) turn: Turn,
    pub(super) shuffle: Shuffle,
    pub(super) lane: Lane,
    pub(super) teller: Teller,
}

impl TurnTallies {
    /// At most so many are kept; of one more nothing is.
    const MAX: usize = SHUFFLES_MAX;

    pub(super) fn told(&mut self, attempt: AttemptId, told: &TurnAnswer, now: Timestamp) {
        let TurnAnswer { turn, shuffle, lane, teller } = *told;
        let before = self.0.get(&attempt).copied();
        if before.is_none() && self.0.len() >= Self::MAX {
            return;
        }
        let tally = TurnTally {
            turn,
            shuffle,
            left: shuffle.left(),
            lane,
            teller,
            first: before.map_or(now, |before| before.first),
            last: now,
            asked: before.map_or(0, |before| before.asked) + 1,
            held: before.map_or(0, |before| before.held) + u64::from(matches!(turn, Turn::Held { .. })),
            waited: before.map_or(Micros::ZERO, |before| before.waited_by(now)),
        };
        self.0.insert(attempt, tally);
    }

    /// The job may ask for any number, whatever it was told before: it wishes for none, or its shuffle is not known any more.
    pub(super) fn freed(&mut self, attempt: AttemptId, now: Timestamp) {
        let Some(tally) = self.0.get(&attempt).copied() else { return };
        let TurnTally { shuffle, lane, teller, .. } = tally;
        self.told(attempt, &TurnAnswer { turn: Turn::Free, shuffle, lane, teller }, now);
    }

    pub(super) fn of(&self, attempt: AttemptId) -> Option<&TurnTally> {
        self.0.get(&attempt)
    }

    pub(super) fn end(&mut self, attempt: AttemptId) {
        self.0.remove(&attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::{ApplicationId, Bytes};

    #[test]
    fn the_time_that_a_job_was_held_is_from_each_such_answer_to_the_next_answer() {
        let attempt = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 };
        let shuffle = Shuffle { bytes: Bytes(100), receivers: 4, received: 1, fetched: Bytes::ZERO };
        let told = |turn| TurnAnswer { turn, shuffle, lane: Lane::Uplinks, teller: Teller::History };
        let mut tallies = TurnTallies::default();
        for (second, turn) in [
            (10, Turn::Held { before: 2 }),
            (13, Turn::Held { before: 2 }),
            (14, Turn::AtMost(8)),
            (20, Turn::AtMost(8)),
        ] {
            tallies.told(attempt, &told(turn), Timestamp(second * 1_000_000));
        }
        let tally = *tallies.of(attempt).unwrap();
        assert_eq!((tally.asked, tally.held, tally.waited), (4, 2, Micros::from_secs(4)));
        assert_eq!((tally.first, tally.last), (Timestamp(10_000_000), Timestamp(20_000_000)));
        assert_eq!((tally.turn, tally.left), (Turn::AtMost(8), 75.0));
        assert_eq!(tally.waited_by(Timestamp(60_000_000)), Micros::from_secs(4), "it is not held now");
        tallies.told(attempt, &told(Turn::Held { before: 1 }), Timestamp(21_000_000));
        let held = *tallies.of(attempt).unwrap();
        assert_eq!(held.waited_by(Timestamp(26_000_000)), Micros::from_secs(9));
        assert_eq!(held.waited_by(Timestamp(3_600_000_000)), Micros::from_secs(34), "who says nothing is in no order");
        tallies.freed(attempt, Timestamp(23_000_000));
        let free = *tallies.of(attempt).unwrap();
        assert_eq!((free.turn, free.asked, free.held, free.waited), (Turn::Free, 6, 3, Micros::from_secs(6)));
        tallies.end(attempt);
        assert_eq!(tallies.of(attempt), None);
    }
}
