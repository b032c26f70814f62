//! Leaving a dead daemon alone for a while: after failures in a row nobody asks, then one tries, then all again.
//!
//! Closed: calls go. Open: none goes until a rest is over; rests grow up to a bound and have jitter, so that the
//! clients of a daemon that comes back do not come back together. Half open: one call is the probe, the others rest.

use super::error::Cause;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When a client stops asking, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Calls in a row that found no daemon, or waited for it in vain; 0: it is asked whatever happens.
    pub failures: u32,
    /// The first rest; each further one is twice as long.
    pub rest: Duration,
    /// The longest.
    pub rest_max: Duration,
}

impl Default for BreakerOptions {
    /// Three failures, a second of rest, at most half a minute: a restart takes seconds, and a job that starts within
    /// the half minute after it loses its hints at most.
    fn default() -> Self {
        Self { failures: 3, rest: Duration::from_secs(1), rest_max: Duration::from_secs(30) }
    }
}

/// See the module. Times are arguments.
#[derive(Debug)]
pub(super) struct Breaker {
    options: BreakerOptions,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed {
        failures: u32,
    },
    /// Whoever comes after `until` probes.
    Open {
        until: Instant,
        rest: Duration,
        cause: Cause,
    },
    Probing {
        since: Instant,
        rest: Duration,
        cause: Cause,
    },
}

/// Whether a call may go.
pub(super) enum Entry<'b> {
    Go(Pass<'b>),
    /// Not for so long, because of this.
    Rest(Duration, Cause),
}

/// A call that may go, and is to say how it went; one that is dropped leaves the probe to the next.
pub(super) struct Pass<'b> {
    breaker: &'b Breaker,
    probe: bool,
}

impl Breaker {
    pub(super) fn new(options: BreakerOptions) -> Self {
        Self { options, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    pub(super) fn enter(&self, now: Instant) -> Entry<'_> {
        let mut state = self.lock();
        let probe = match *state {
            State::Closed { .. } => false,
            State::Open { until, cause, .. } if now < until => return Entry::Rest(until - now, cause),
            State::Open { rest, cause, .. } => {
                *state = State::Probing { since: now, rest, cause };
                true
            }
            State::Probing { cause, .. } => return Entry::Rest(Duration::ZERO, cause),
        };
        Entry::Go(Pass { breaker: self, probe })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A rest begins: `jitter` of 0 to 1 makes it up to half as long again.
    fn open(&self, rest: Duration, cause: Cause, now: Instant, jitter: f64) -> State {
        let rest = rest.min(self.options.rest_max);
        State::Open { until: now + rest.mul_f64(1.0 + jitter / 2.0), rest, cause }
    }
}

impl Pass<'_> {
    /// A daemon is there, whatever it said.
    pub(super) fn heard(mut self) {
        self.probe = false;
        *self.breaker.lock() = State::Closed { failures: 0 };
    }

    /// Nobody answered.
    pub(super) fn missed(mut self, cause: Cause, now: Instant, jitter: f64) {
        let probe = std::mem::take(&mut self.probe);
        let breaker = self.breaker;
        let mut state = breaker.lock();
        match *state {
            State::Probing { rest, .. } if probe => *state = breaker.open(rest * 2, cause, now, jitter),
            State::Closed { failures } if breaker.options.failures > 0 => {
                *state = match failures + 1 {
                    failures if failures < breaker.options.failures => State::Closed { failures },
                    _ => breaker.open(breaker.options.rest, cause, now, jitter),
                };
            }
            // Others that were under way say nothing new.
            _ => {}
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.breaker.lock();
        if let State::Probing { since, rest, cause } = *state
            && self.probe
        {
            *state = State::Open { until: since, rest, cause };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> (Breaker, Instant) {
        let options = BreakerOptions { failures: 2, rest: SECOND, rest_max: 3 * SECOND };
        (Breaker::new(options), Instant::now())
    }

    fn go(breaker: &Breaker, now: Instant) -> Pass<'_> {
        match breaker.enter(now) {
            Entry::Go(pass) => pass,
            Entry::Rest(left, _) => panic!("it rests for another {left:?}"),
        }
    }

    fn rests(breaker: &Breaker, now: Instant) -> Duration {
        match breaker.enter(now) {
            Entry::Go(_) => panic!("it goes"),
            Entry::Rest(left, cause) => {
                assert_eq!(cause, Cause::Unreachable);
                left
            }
        }
    }

    fn opened() -> (Breaker, Instant) {
        let (breaker, now) = breaker();
        go(&breaker, now).missed(Cause::Unreachable, now, 0.0);
        go(&breaker, now).missed(Cause::Unreachable, now, 0.0);
        (breaker, now)
    }

    #[test]
    fn failures_in_a_row_open_it_and_an_answer_between_them_does_not_count() {
        let (breaker, now) = breaker();
        go(&breaker, now).missed(Cause::Unreachable, now, 0.0);
        go(&breaker, now).heard();
        go(&breaker, now).missed(Cause::Unreachable, now, 0.0);
        go(&breaker, now).missed(Cause::Unreachable, now, 1.0);
        assert_eq!(rests(&breaker, now), SECOND * 3 / 2, "with all of the jitter");
    }

    #[test]
    fn after_the_rest_one_call_probes_and_the_others_wait_for_it() {
        let (breaker, now) = opened();
        assert_eq!(rests(&breaker, now), SECOND);
        let probe = go(&breaker, now + SECOND);
        assert_eq!(rests(&breaker, now + SECOND), Duration::ZERO);
        probe.heard();
        go(&breaker, now + SECOND);
    }

    #[test]
    fn rests_double_up_to_the_bound_while_probes_fail() {
        let (breaker, mut now) = opened();
        for rest in [1, 2, 3, 3] {
            assert_eq!(rests(&breaker, now), rest * SECOND);
            now += rest * SECOND;
            go(&breaker, now).missed(Cause::Unreachable, now, 0.0);
        }
    }

    #[test]
    fn a_probe_that_is_given_up_leaves_the_next_one_to_try() {
        let (breaker, now) = opened();
        drop(go(&breaker, now + SECOND));
        go(&breaker, now + SECOND).heard();
        go(&breaker, now + SECOND);
    }

    #[test]
    fn calls_that_were_under_way_when_it_opened_change_nothing_by_failing_and_close_it_by_an_answer() {
        let (breaker, now) = breaker();
        let (late, lucky) = (go(&breaker, now), go(&breaker, now));
        go(&breaker, now).missed(Cause::Unreachable, now, 0.0);
        go(&breaker, now).missed(Cause::Unreachable, now, 0.0);
        late.missed(Cause::Unreachable, now, 0.0);
        assert_eq!(rests(&breaker, now), SECOND);
        lucky.heard();
        go(&breaker, now);
    }

    #[test]
    fn without_a_number_of_failures_it_never_opens() {
        let breaker = Breaker::new(BreakerOptions { failures: 0, ..BreakerOptions::default() });
        let now = Instant::now();
        (0..10).for_each(|_| go(&breaker, now).missed(Cause::Deadline, now, 0.0));
        go(&breaker, now);
    }
}
