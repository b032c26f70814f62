//! A log line that a flood would write again and again, once in a while, with a count.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines about the same thing: often enough for who watches, too seldom to fill a disk.
const EVERY: Duration = Duration::from_secs(10);

/// Says when a line is due, and of how many times it tells.
#[derive(Debug, Default)]
pub struct RateLimitedLog {
    /// When the last line was written, and what came since.
    state: Mutex<(Option<Instant>, u64)>,
}

impl RateLimitedLog {
    /// It happened once more. How often it did since the last line, this time included, if a line is due.
    pub fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        // Nothing under this lock can panic half way.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, since) = &mut *state;
        *since += 1;
        if last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_is_said_at_once_and_a_flood_once_in_a_while_with_its_count() {
        let (seldom, start) = (RateLimitedLog::default(), Instant::now());
        assert_eq!(seldom.due_at(start), Some(1));
        let said: Vec<u64> = (1..=2_500).filter_map(|n| seldom.due_at(start + n * EVERY / 1_000)).collect();
        assert_eq!(said, [1_000, 1_000]);
        assert_eq!(seldom.due_at(start + 4 * EVERY), Some(501), "what came after the last line is not forgotten");
    }
}
