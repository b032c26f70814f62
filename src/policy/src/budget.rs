//! How long a search may go on: a number of steps, and a probe that may stop it earlier.

/// Steps a search may take. A step is what the policy says it is; only steps make answers
/// repeatable, so replay, simulator and tests give a probe that never stops.
pub struct Budget<'a> {
    limit: u64,
    used: u64,
    stop: &'a mut dyn FnMut() -> bool,
    stopped: bool,
    looks: u64,
}

/// Steps of one search in production: the default of `placer.steps`, of `hintctl place` and of simulations, so that all of
/// them search alike. docs/policies.md has quality against steps.
pub const DEFAULT_STEPS: u64 = 4_000;

/// Steps between two looks at the probe: a look reads a clock (some 25 ns) and a step costs as much.
const PROBE_EVERY: u64 = 64;

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit).field("used", &self.used).finish_non_exhaustive()
    }
}

impl<'a> Budget<'a> {
    /// At most `limit` steps, and no more once `stop` says so.
    pub fn new(limit: u64, stop: &'a mut dyn FnMut() -> bool) -> Self {
        Self { limit, used: 0, stop, stopped: false, looks: 0 }
    }

    /// Takes one step; false: stop now, the step is not to be taken.
    pub fn step(&mut self) -> bool {
        if self.stopped || self.used == self.limit {
            return false;
        }
        if self.used.is_multiple_of(PROBE_EVERY) && (self.stop)() {
            self.stopped = true;
            return false;
        }
        self.used += 1;
        true
    }

    /// Whether the probe says to stop, without taking a step: for rules that run to their end and have nothing to
    /// search, but may have much to do.
    pub fn over(&mut self) -> bool {
        self.stopped = self.stopped || (self.looks.is_multiple_of(PROBE_EVERY) && (self.stop)());
        self.looks += 1;
        self.stopped
    }

    /// Steps taken: replay with this limit gives the same answer.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Steps left, whatever the probe says.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.limit - self.used
    }

    /// Whether the probe ended the search.
    #[must_use]
    pub const fn stopped(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_bounded() {
        let mut never = || false;
        let mut budget = Budget::new(3, &mut never);
        assert!(budget.step() && budget.step() && budget.step());
        assert!(!budget.step());
        assert_eq!((budget.used(), budget.left(), budget.stopped()), (3, 0, false));
    }

    #[test]
    fn a_rule_that_takes_no_steps_can_be_stopped_as_well() {
        let mut looks = 0;
        let mut stop = || {
            looks += 1;
            looks > 1
        };
        let mut budget = Budget::new(0, &mut stop);
        let went_on = (0..1_000).take_while(|_| !budget.over()).count();
        assert_eq!((went_on, budget.used(), budget.stopped()), (PROBE_EVERY as usize, 0, true));
    }

    #[test]
    fn the_probe_ends_the_search_and_the_steps_taken_repeat_it() {
        let mut looks = 0;
        let mut stop = || {
            looks += 1;
            looks > 2
        };
        let mut budget = Budget::new(u64::MAX, &mut stop);
        while budget.step() {}
        assert!(budget.stopped());
        assert_eq!(budget.used(), 2 * PROBE_EVERY);
    }
}
