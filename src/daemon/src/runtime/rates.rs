//! How often an application asks: who asks in a loop is sent away before it takes a place from others.

use hintd_model::units::{ApplicationId, Micros};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// By application, until when what it asked is paid for at its rate: the generic cell rate algorithm, with a second's
/// worth of burst.
#[derive(Debug, Default)]
pub(super) struct Rates {
    paid_until: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<ApplicationId, Instant>,
    /// Entries that are over go when there are so many.
    look_at: usize,
}

/// The time in which a burst may come.
const BURST: Duration = Duration::from_secs(1);
/// Fewer entries are not looked through.
const LOOK_AT_MIN: usize = 1_024;

impl Rates {
    /// Takes one request into account, at most `most` a second; 0: no bound. Else when one more would be in order.
    pub(super) fn take(&self, application: ApplicationId, most: u32, now: Instant) -> Result<(), Micros> {
        if most == 0 {
            return Ok(());
        }
        let each = BURST / most;
        let mut table = self.paid_until.lock().unwrap_or_else(PoisonError::into_inner);
        table.forget(now);
        let paid = table.entries.entry(application).or_insert(now);
        let ahead = paid.saturating_duration_since(now);
        let early = (ahead + each).saturating_sub(BURST);
        if !early.is_zero() {
            return Err(Micros(u64::try_from(early.as_micros()).unwrap_or(u64::MAX)));
        }
        *paid = now + ahead + each;
        Ok(())
    }

    /// Gives back what a request took that turned out not to be the application's.
    pub(super) fn give_back(&self, application: ApplicationId, most: u32) {
        let mut table = self.paid_until.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(paid), Some(each)) = (table.entries.get_mut(&application), BURST.checked_div(most)) else { return };
        *paid = paid.checked_sub(each).unwrap_or(*paid);
    }
}

impl Table {
    /// Entries that are over say nothing: as many stay as applications asked within the last second.
    fn forget(&mut self, now: Instant) {
        if self.entries.len() >= self.look_at.max(LOOK_AT_MIN) {
            self.entries.retain(|_, paid| *paid > now);
            self.look_at = self.entries.len() * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(sequence: u32) -> ApplicationId {
        ApplicationId { cluster_timestamp: 1, sequence }
    }

    #[test]
    fn what_a_stranger_takes_is_given_back() {
        let (rates, now) = (Rates::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(rates.take(application(1), 4, now), Ok(()));
            rates.give_back(application(1), 4);
        }
        (0..4).for_each(|_| assert_eq!(rates.take(application(1), 4, now), Ok(())));
        assert!(rates.take(application(1), 4, now).is_err());
        rates.give_back(application(2), 4);
        rates.give_back(application(1), 0);
    }

    #[test]
    fn a_seconds_worth_may_come_at_once_and_then_one_at_a_time() {
        let (rates, now) = (Rates::default(), Instant::now());
        let take = |at: Duration| rates.take(application(1), 4, now + at);
        for _ in 0..4 {
            assert_eq!(take(Duration::ZERO), Ok(()));
        }
        assert_eq!(take(Duration::ZERO), Err(Micros(250_000)));
        assert_eq!(take(Duration::from_millis(100)), Err(Micros(150_000)));
        assert_eq!(take(Duration::from_millis(250)), Ok(()));
        assert_eq!(take(Duration::from_millis(250)), Err(Micros(250_000)));
        assert_eq!(rates.take(application(2), 4, now), Ok(()), "others are not held up");
        assert_eq!(rates.take(application(1), 0, now), Ok(()), "no bound");
    }

    #[test]
    fn applications_that_ask_no_more_are_forgotten() {
        let (rates, now) = (Rates::default(), Instant::now());
        for sequence in 0..10_000 {
            rates.take(application(sequence), 1, now + Duration::from_millis(10) * sequence).unwrap();
        }
        let kept = rates.paid_until.lock().unwrap().entries.len();
        assert!(kept <= LOOK_AT_MIN, "{kept} are kept, and 100 asked within the last second");
    }
}
