//! Lines of log about an application's requests, and about all of a peer's: a few a second, so that who asks in a loop fills no
//! log, under however many applications' ids.

use hintd_model::units::ApplicationId;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// By application (`None`: requests that name none), with a second's worth of burst: the generic cell rate algorithm.
#[derive(Debug, Default)]
pub(super) struct LineQuota(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_application: HashMap<Option<ApplicationId>, Entry>,
    /// `None`: of the admin socket, whose callers are operators.
    by_peer: HashMap<Option<IpAddr>, Entry>,
    /// Lines that were left out beyond peers' bounds, and when that was said last.
    of_peers: (u64, Option<Instant>),
}

#[derive(Debug)]
struct Entry {
    /// Until when its lines are paid for at its rate.
    paid: Instant,
    /// Beyond its own bound, since the last one that was written.
    left_out: u64,
}

/// Whether a request is to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// It is; requests of its application that were not, since the last one that was.
    Due {
        /// How many.
        left_out: u64,
        /// And how many of peers that asked more than any one application may; at most once a second.
        of_peers: u64,
    },
    /// It is not.
    LeftOut,
}

impl Line {
    /// Whether it is.
    #[must_use]
    pub const fn is_due(self) -> bool {
        matches!(self, Self::Due { .. })
    }
}

/// The time in which a burst may come.
const BURST: Duration = Duration::from_secs(1);
/// With so many entries those are forgotten whose application has been silent.
const ENTRIES_MAX: usize = 4_096;

/// A peer has lines of so many applications: one ResourceManager speaks for all of its applications.
const PEER: u32 = 5;

impl LineQuota {
    /// Takes one request into account, at most `most` a second of an application; 0: no bound.
    pub(super) fn take(
        &self,
        (application, peer): (Option<ApplicationId>, Option<IpAddr>),
        most: u32,
        now: Instant,
    ) -> Line {
        if most == 0 {
            return Line::Due { left_out: 0, of_peers: 0 };
        }
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { by_application, by_peer, of_peers } = &mut *entries;
        let both = (entry(by_application, application, now), entry(by_peer, peer, now));
        let (Some(of_application), Some(of_peer)) = both else {
            of_peers.0 += 1; // a flood under thousands of names
            return Line::LeftOut;
        };
        // Nothing is taken of either before both have it: what was left out is told with a line that is written.
        let paid = (of_application.paid_with(most, now), of_peer.paid_with(most.saturating_mul(PEER), now));
        (of_application.paid, of_peer.paid) = match paid {
            (Some(application), Some(peer)) => (application, peer),
            (None, _) => {
                of_application.left_out += 1;
                return Line::LeftOut;
            }
            (Some(_), None) => {
                of_peers.0 += 1;
                return Line::LeftOut;
            }
        };
        let due = of_peers.1.is_none_or(|said| now.saturating_duration_since(said) >= BURST);
        let left_out_of_peers = if due && of_peers.0 > 0 { std::mem::take(&mut of_peers.0) } else { 0 };
        if left_out_of_peers > 0 {
            of_peers.1 = Some(now);
        }
        Line::Due { left_out: std::mem::take(&mut of_application.left_out), of_peers: left_out_of_peers }
    }
}

impl Entry {
    /// Until when its lines are paid for with one more; `None`: that one is beyond its bound.
    fn paid_with(&self, most: u32, now: Instant) -> Option<Instant> {
        let ahead = self.paid.saturating_duration_since(now) + BURST / most;
        (ahead <= BURST).then(|| now + ahead)
    }
}

/// Its entry; `None` where there are too many others.
fn entry<K: std::hash::Hash + Eq>(entries: &mut HashMap<K, Entry>, whose: K, now: Instant) -> Option<&mut Entry> {
    if entries.len() >= ENTRIES_MAX && !entries.contains_key(&whose) {
        entries.retain(|_, entry| entry.paid > now);
        if entries.len() >= ENTRIES_MAX {
            return None;
        }
    }
    Some(entries.entry(whose).or_insert(Entry { paid: now, left_out: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn application(sequence: u32) -> Option<ApplicationId> {
        Some(ApplicationId { cluster_timestamp: 1, sequence })
    }

    #[test]
    fn a_flood_of_one_application_has_a_few_lines_and_others_have_theirs() {
        let (quota, start) = (LineQuota::default(), Instant::now());
        let (mut lines, mut told) = (0_u64, 0);
        for n in 0..50_000 {
            if let Line::Due { left_out, .. } =
                quota.take((application(1), LOCAL), 10, start + Duration::from_millis(1) * n)
            {
                lines += 1;
                told += 1 + left_out;
            }
        }
        assert!((500..=511).contains(&lines), "{lines} lines in 50 s");
        assert!(told > 49_800, "all but the last few are told of: {told}");
        let first = Line::Due { left_out: 0, of_peers: 0 };
        assert_eq!(quota.take((application(2), LOCAL), 10, start + Duration::from_secs(60)), first);
        assert_eq!(quota.take((None, LOCAL), 0, start), first, "no bound");
    }

    #[test]
    fn a_peer_that_draws_a_new_application_for_each_request_has_a_few_lines_and_one_a_second_that_sums_them_up() {
        let (quota, start) = (LineQuota::default(), Instant::now());
        let (mut lines, mut summed, mut told) = (0_u64, 0_u64, 0_u64);
        for n in 0..9_300_u32 {
            let at = start + Duration::from_secs(10) * n / 9_300;
            if let Line::Due { of_peers, .. } = quota.take((application(n), LOCAL), 20, at) {
                lines += 1;
                summed += u64::from(of_peers > 0);
                told += of_peers;
            }
        }
        assert!((1_000..=1_110).contains(&lines), "{lines} lines in 10 s: 100 a second, and a burst of as many");
        assert!((8..=11).contains(&summed) && told > 7_000, "{summed} lines sum up {told}");
        let other = Some(IpAddr::from([10, 0, 0, 7]));
        assert!(
            quota.take((application(1), other), 20, start + Duration::from_secs(10)).is_due(),
            "others have theirs"
        );
    }

    #[test]
    fn every_line_that_was_left_out_is_told_of_also_where_the_peer_is_over_its_bound_too() {
        let (quota, start) = (LineQuota::default(), Instant::now());
        let (mut written, mut told) = (0_u64, 0_u64);
        let mut take = |n: u32, at| {
            if let Line::Due { left_out, of_peers } = quota.take((application(n), LOCAL), 10, at) {
                written += 1;
                told += left_out + of_peers;
            }
        };
        // Eight applications at five times their bound each: 400 lines a second of a peer that has 50.
        for n in 0..4_000_u32 {
            take(n % 8, start + Duration::from_millis(10) * (n / 4));
        }
        for n in 0..8 {
            take(n, start + Duration::from_secs(60));
        }
        assert_eq!(written + told, 4_008, "{written} lines tell of {told}");
    }

    #[test]
    fn names_beyond_the_table_take_no_memory_and_it_is_free_again_once_they_are_silent() {
        let (quota, start) = (LineQuota::default(), Instant::now());
        let due = |at: Instant| {
            let peer = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
            (0..9_000).filter(|&n| quota.take((application(n), peer(n)), 1, at).is_due()).count()
        };
        assert_eq!(due(start), ENTRIES_MAX);
        let entries = quota.0.lock().unwrap();
        assert!(entries.by_application.len() <= ENTRIES_MAX && entries.by_peer.len() <= ENTRIES_MAX);
        drop(entries);
        assert!(due(start + 3 * BURST) >= ENTRIES_MAX);
    }
}
