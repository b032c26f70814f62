//! The daemon's clock: wall time at the start, then a clock that never steps back.

use hintd_model::units::Timestamp;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Gives the core its `now`. Leases and silences are measured between two of its readings, so a
/// wall clock that an operator or NTP sets must not reach them.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Duration,
    started: Instant,
}

impl Clock {
    /// Reads the wall clock, once.
    #[must_use]
    pub fn start() -> Self {
        // A machine whose clock stands before 1970 starts there: intervals still hold.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall, started: Instant::now() }
    }

    /// This moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// A moment of the steady clock; those before the start count as the start.
    #[must_use]
    pub fn at(&self, moment: Instant) -> Timestamp {
        let micros = (self.wall + moment.saturating_duration_since(self.started)).as_micros();
        Timestamp(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Time since the start.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_starts_at_the_wall_clock_and_never_steps_back() {
        let clock = Clock::start();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        let mut last = clock.now();
        assert!(wall.abs_diff(last.0) < 5_000_000, "{wall} and {last:?}");
        for _ in 0..1_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert_eq!(clock.at(clock.started + Duration::from_micros(7)).0 - clock.at(clock.started).0, 7);
    }
}
