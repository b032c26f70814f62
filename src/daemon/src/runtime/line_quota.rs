//! Lines of log about an application's requests: a few a second, so that one that asks in a loop fills no log.

use hintd_model::units::ApplicationId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// By application (`None`: requests that name none), with a second's worth of burst: the generic cell rate algorithm.
#[derive(Debug, Default)]
pub(super) struct LineQuota(Mutex<HashMap<Option<ApplicationId>, Entry>>);

#[derive(Debug)]
struct Entry {
    /// Until when its lines are paid for at its rate.
    paid: Instant,
    /// Since the last one that was written.
    left_out: u64,
}

/// Whether a request is to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// It is; requests of its application that were not, since the last one that was.
    Due {
        /// How many.
        left_out: u64,
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

impl LineQuota {
    /// Takes one request into account, at most `most` a second; 0: no bound.
    pub(super) fn take(&self, application: Option<ApplicationId>, most: u32, now: Instant) -> Line {
        if most == 0 {
            return Line::Due { left_out: 0 };
        }
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ENTRIES_MAX && !entries.contains_key(&application) {
            entries.retain(|_, entry| entry.paid > now);
            if entries.len() >= ENTRIES_MAX {
                return Line::LeftOut; // a flood under thousands of names
            }
        }
        let entry = entries.entry(application).or_insert(Entry { paid: now, left_out: 0 });
        let ahead = entry.paid.saturating_duration_since(now) + BURST / most;
        if ahead > BURST {
            entry.left_out += 1;
            return Line::LeftOut;
        }
        entry.paid = now + ahead;
        Line::Due { left_out: std::mem::take(&mut entry.left_out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(sequence: u32) -> Option<ApplicationId> {
        Some(ApplicationId { cluster_timestamp: 1, sequence })
    }

    #[test]
    fn a_flood_of_one_application_has_a_few_lines_and_others_have_theirs() {
        let (quota, start) = (LineQuota::default(), Instant::now());
        let (mut lines, mut told) = (0_u64, 0);
        for n in 0..50_000 {
            if let Line::Due { left_out } = quota.take(application(1), 10, start + Duration::from_millis(1) * n) {
                lines += 1;
                told += 1 + left_out;
            }
        }
        assert!((500..=511).contains(&lines), "{lines} lines in 50 s");
        assert!(told > 49_800, "all but the last few are told of: {told}");
        assert_eq!(quota.take(application(2), 10, start), Line::Due { left_out: 0 });
        assert_eq!(quota.take(None, 0, start), Line::Due { left_out: 0 }, "no bound");
    }

    #[test]
    fn names_beyond_the_table_take_no_memory_and_it_is_free_again_once_they_are_silent() {
        let (quota, start) = (LineQuota::default(), Instant::now());
        let due = |at: Instant| (0..9_000).filter(|&n| quota.take(application(n), 1, at).is_due()).count();
        assert_eq!(due(start), ENTRIES_MAX);
        assert!(quota.0.lock().unwrap().len() <= ENTRIES_MAX);
        assert!(due(start + 3 * BURST) >= ENTRIES_MAX);
    }
}
