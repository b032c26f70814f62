//! How long a search may go on: a number of steps, and a probe that may stop it earlier.

pub use hintd_model::solve::work::Work;
use std::cell::{Cell, RefCell};

/// Steps a search may take. A step is what the policy says it is; only steps make answers
/// repeatable, so replay, simulator and tests give a probe that never stops.
///
/// The probe is looked at after so many steps, and after so much work that is no step: units of some ten nanoseconds,
/// counted before or after a loop and not within it. Both counts hang on the problem alone, never on what is kept from
/// earlier searches, so that a search that was stopped at its n-th look is stopped there again.
pub struct Budget<'a> {
    limit: u64,
    used: Cell<u64>,
    stop: RefCell<&'a mut dyn FnMut() -> bool>,
    stopped: Cell<bool>,
    looks: Cell<u64>,
    /// Work that is allowed in all.
    most_work: u64,
    worked: Cell<u64>,
    /// Work since the last look.
    unseen: Cell<u64>,
    /// The most of it at any look.
    longest: Cell<u64>,
    /// A pair was met whose paths are not known to be the shortest.
    cut_short_paths: Cell<bool>,
}

/// Steps of one search in production: the default of `placer.steps`, of `hintctl place` and of simulations, so that all of
/// them search alike. docs/policies.md has quality against steps.
pub const DEFAULT_STEPS: u64 = 4_000;

/// Steps between two looks at the probe: a look reads a clock (some 25 ns) and a step costs as much.
const PROBE_EVERY: u64 = 64;

/// Units of work after which the probe is looked at: some tenths of a millisecond.
pub const WORK_EVERY: u64 = 1 << 14;

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit).field("used", &self.used).finish_non_exhaustive()
    }
}

impl Work for Budget<'_> {
    fn work(&self, units: u64) -> bool {
        self.worked.set(self.worked.get().saturating_add(units));
        self.unseen.set(self.unseen.get().saturating_add(units));
        self.longest.set(self.longest.get().max(self.unseen.get()));
        if self.unseen.get() >= WORK_EVERY {
            self.look();
        }
        !self.is_over()
    }

    fn note_cut_short_paths(&self) {
        self.cut_short_paths.set(true);
    }
}

impl<'a> Budget<'a> {
    /// At most `limit` steps, and no more once `stop` says so.
    pub fn new(limit: u64, stop: &'a mut dyn FnMut() -> bool) -> Self {
        Self::with_work(limit, u64::MAX, stop)
    }

    /// At most `limit` steps and about so much work that is no step.
    pub fn with_work(limit: u64, most_work: u64, stop: &'a mut dyn FnMut() -> bool) -> Self {
        let (used, looks, worked, unseen, longest) = Default::default();
        Self {
            limit,
            used,
            stop: RefCell::new(stop),
            stopped: Cell::new(false),
            looks,
            most_work,
            worked,
            unseen,
            longest,
            cut_short_paths: Cell::new(false),
        }
    }

    /// Takes one step; false: stop now, the step is not to be taken.
    pub fn step(&self) -> bool {
        if self.is_over() || self.used.get() == self.limit {
            return false;
        }
        if self.used.get().is_multiple_of(PROBE_EVERY) && self.look() {
            return false;
        }
        self.used.set(self.used.get() + 1);
        true
    }

    /// Whether the probe says to stop, without taking a step: for rules that run to their end and have nothing to
    /// search, but may have much to do.
    pub fn over(&self) -> bool {
        if !self.stopped.get() && self.looks.get().is_multiple_of(PROBE_EVERY) {
            self.look();
        }
        self.looks.set(self.looks.get() + 1);
        self.stopped.get()
    }

    /// Has a part of a search done by at most so many of the steps that are left, in the time and the work that are left.
    pub fn portion<T>(&self, steps: u64, part: impl FnOnce(&Budget<'_>) -> T) -> T {
        let mut stop = || self.look();
        let work = self.most_work.saturating_sub(self.worked.get());
        let within = Budget::with_work(steps.min(self.left()), work, &mut stop);
        within.stopped.set(self.stopped.get());
        within.unseen.set(self.unseen.get());
        let found = part(&within);
        self.used.set(self.used.get() + within.used());
        self.worked.set(self.worked.get().saturating_add(within.worked()));
        self.unseen.set(within.unseen.get());
        self.longest.set(self.longest.get().max(within.longest()));
        self.cut_short_paths.set(self.cut_short_paths.get() || within.met_cut_short_paths());
        found
    }

    /// Looks at the probe; whether it says to stop.
    fn look(&self) -> bool {
        self.unseen.set(0);
        if !self.stopped.get() {
            self.stopped.set((self.stop.borrow_mut())());
        }
        self.stopped.get()
    }

    fn is_over(&self) -> bool {
        self.stopped.get() || self.worked.get() > self.most_work
    }

    /// Steps taken: replay with this limit gives the same answer.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used.get()
    }

    /// Steps left, whatever the probe says.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.limit - self.used.get()
    }

    /// Whether the probe ended the search.
    #[must_use]
    pub const fn stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Whether the probe ended the search, or the work did: then what was found is not all that there is.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.is_over()
    }

    /// Whether paths were looked at whose own search had ended at its bound, or were not looked at: the time was over.
    #[must_use]
    pub const fn met_cut_short_paths(&self) -> bool {
        self.cut_short_paths.get()
    }

    /// Work counted so far.
    #[must_use]
    pub const fn worked(&self) -> u64 {
        self.worked.get()
    }

    /// The most work that was counted between two looks at the probe, or before it was told.
    #[must_use]
    pub const fn longest(&self) -> u64 {
        self.longest.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_bounded() {
        let mut never = || false;
        let budget = Budget::new(3, &mut never);
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
        let budget = Budget::new(0, &mut stop);
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
        let budget = Budget::new(u64::MAX, &mut stop);
        while budget.step() {}
        assert!(budget.stopped());
        assert_eq!(budget.used(), 2 * PROBE_EVERY);
    }

    #[test]
    fn work_looks_at_the_probe_and_ends_steps_too() {
        let mut looks = 0;
        let mut stop = || {
            looks += 1;
            looks > 2
        };
        let budget = Budget::new(u64::MAX, &mut stop);
        let went_on = (0..1_000_000).take_while(|_| budget.work(10)).count() as u64;
        assert_eq!(went_on, 3 * WORK_EVERY.div_ceil(10) - 1);
        assert!(budget.stopped() && !budget.step() && budget.over());
        assert!(budget.longest() < WORK_EVERY + 10 && budget.worked() == (went_on + 1) * 10);
    }

    #[test]
    fn a_portion_has_steps_of_its_own_and_the_time_and_work_of_all() {
        let mut looks = 0;
        let mut stop = || {
            looks += 1;
            looks > 2
        };
        let budget = Budget::with_work(100, 50, &mut stop);
        let taken = |steps| budget.portion(steps, |own| ((0..1_000).take_while(|_| own.step()).count(), own.used()));
        assert_eq!((taken(7), taken(20), budget.used(), budget.left()), ((7, 7), (20, 20), 27, 73));
        assert_eq!((taken(9), budget.stopped(), budget.used()), ((0, 0), true, 27), "the third look says to stop");
        let mut never = || false;
        let budget = Budget::with_work(100, 50, &mut never);
        assert!(budget.work(40) && !budget.portion(9, |own| own.work(11)) && budget.is_cut_short());
        assert_eq!((budget.worked(), budget.portion(1_000, |own| own.left())), (51, 100), "no more than there is");
    }

    #[test]
    fn work_may_be_bounded_whatever_the_probe_says() {
        let mut never = || false;
        let budget = Budget::with_work(1_000, 50, &mut never);
        assert!(budget.step() && budget.work(50) && !budget.is_cut_short());
        assert!(!budget.work(1) && !budget.step() && budget.is_cut_short() && !budget.stopped());
    }
}
