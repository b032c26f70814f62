//! Probes on their way, and what came back: counts by length of the round trip.
//!
//! # Invariants
//! - No clock: the moment is an argument.
//! - Memory is bounded by [`UNDER_WAY`] and by whom the daemon names.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Probes under way at one time; beyond, the oldest counts as lost.
const UNDER_WAY: usize = 4_096;

/// An answer that takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lengths that are told apart between one and twice as much: an eighth, so that a length is right within 6 %.
const STEPS: u64 = 8;

/// Whom to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) address: SocketAddr,
}

/// Counts by length of the round trip in µs, rounded.
pub(crate) type Histogram = BTreeMap<u64, u64>;

#[derive(Debug)]
struct UnderWay {
    target: Target,
    sent: Instant,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    targets: Vec<Target>,
    next: usize,
    sequence: u64,
    under_way: BTreeMap<u64, UnderWay>,
    found: HashMap<String, Histogram>,
    ended: Ended,
}

/// Probes that came to an end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) answered: u64,
    pub(crate) lost: u64,
}

impl std::ops::Add for Ended {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { answered: self.answered + other.answered, lost: self.lost + other.lost }
    }
}

impl Probes {
    /// Measures these from now on.
    pub(crate) fn set_targets(&mut self, targets: Vec<Target>) {
        self.found.retain(|host, _| targets.iter().any(|target| target.host == *host));
        self.targets = targets;
    }

    pub(crate) const fn targets(&self) -> usize {
        self.targets.len()
    }

    /// The next one to measure, with its probe's number.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(u64, SocketAddr)> {
        while let Some(oldest) = self.under_way.first_entry()
            && now.duration_since(oldest.get().sent) > PATIENCE
        {
            oldest.remove();
            self.ended.lost += 1;
        }
        if self.targets.is_empty() {
            return None;
        }
        self.next %= self.targets.len();
        let target = self.targets[self.next].clone();
        self.next += 1;
        if self.under_way.len() >= UNDER_WAY {
            self.under_way.pop_first();
            self.ended.lost += 1;
        }
        self.sequence += 1;
        let address = target.address;
        self.under_way.insert(self.sequence, UnderWay { target, sent: now });
        Some((self.sequence, address))
    }

    /// An answer came. What nobody waits for, or what comes from elsewhere, is nothing.
    pub(crate) fn answered(&mut self, sequence: u64, from: SocketAddr, now: Instant) -> bool {
        match self.under_way.get(&sequence) {
            Some(probe) if probe.target.address == from => {}
            _ => return false,
        }
        let Some(UnderWay { target, sent }) = self.under_way.remove(&sequence) else { return false };
        self.ended.answered += 1;
        if self.targets.iter().any(|known| known.host == target.host) {
            let us = u64::try_from(now.duration_since(sent).as_micros()).unwrap_or(u64::MAX);
            *self.found.entry(target.host).or_default().entry(rounded(us)).or_default() += 1;
        }
        true
    }

    /// What came back since the last call, by host, and how many probes came to an end since.
    pub(crate) fn take(&mut self) -> (Vec<(String, Histogram)>, Ended) {
        let mut found: Vec<_> = self.found.drain().collect();
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        (found, std::mem::take(&mut self.ended))
    }
}

/// The nearest of the lengths that are told apart; at least 1.
fn rounded(us: u64) -> u64 {
    let step = 1_u64 << (64 - us.max(1).leading_zeros() - 1).saturating_sub(STEPS.ilog2());
    (us.max(1).saturating_add(step / 2) / step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(at: u16) -> Target {
        Target { host: format!("n{at}"), address: SocketAddr::from(([127, 0, 0, 1], at)) }
    }

    #[test]
    fn each_is_measured_in_turn_and_answers_count_by_their_length() {
        let mut probes = Probes::default();
        let start = Instant::now();
        assert_eq!(probes.next(start), None);
        probes.set_targets(vec![target(1), target(2)]);
        let sent: Vec<_> = (0..4).map(|_| probes.next(start).unwrap()).collect();
        assert_eq!(sent.iter().map(|(_, address)| address.port()).collect::<Vec<_>>(), [1, 2, 1, 2]);
        let at = |us| start + Duration::from_micros(us);
        assert!(probes.answered(sent[0].0, sent[0].1, at(100)));
        assert!(!probes.answered(sent[0].0, sent[0].1, at(101)), "an answer counts once");
        assert!(!probes.answered(sent[1].0, sent[0].1, at(100)), "from elsewhere it is none");
        assert!(probes.answered(sent[2].0, sent[2].1, at(103)));
        assert!(probes.answered(sent[3].0, sent[3].1, at(5)));
        let expected =
            vec![("n1".to_owned(), Histogram::from([(104, 2)])), ("n2".to_owned(), Histogram::from([(5, 1)]))];
        assert_eq!(probes.take(), (expected, Ended { answered: 3, lost: 0 }));
        assert_eq!(probes.take(), (vec![], Ended::default()), "each is told once");
    }

    #[test]
    fn what_does_not_come_back_is_lost_and_memory_is_bounded() {
        let mut probes = Probes::default();
        probes.set_targets(vec![target(1)]);
        let start = Instant::now();
        for _ in 0..UNDER_WAY + 10 {
            probes.next(start).unwrap();
        }
        assert_eq!((probes.under_way.len(), probes.take().1.lost), (UNDER_WAY, 10));
        let (late, address) = probes.next(start + PATIENCE * 2).unwrap();
        assert_eq!((probes.under_way.len(), probes.take().1.lost), (1, UNDER_WAY as u64));
        probes.set_targets(vec![target(2)]);
        assert!(probes.answered(late, address, start + PATIENCE * 2));
        assert_eq!(probes.take().0, vec![], "whom nobody asks for any more does not count");
    }

    proptest! {
        #[test]
        fn a_length_is_right_within_6_percent_and_there_are_few_of_them(us in 1_u64..60_000_000) {
            let found = rounded(us);
            prop_assert!(found.abs_diff(us) * 16 <= us, "{} for {}", found, us);
            prop_assert_eq!(rounded(found), found);
        }
    }

    #[test]
    fn all_lengths_of_a_minute_fit_one_item() {
        let powers = (0..26).flat_map(|power| (0..64_u64).map(move |part| (1 << power) + ((part << power) >> 6)));
        let lengths: std::collections::BTreeSet<u64> = powers.map(rounded).collect();
        assert!((150..=220).contains(&lengths.len()), "{}", lengths.len());
    }
}
