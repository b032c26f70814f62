//! Virtual time: how much every flow under one limit has been served.

/// Parts of a bit that are counted: 2⁻³².
const PARTS: f64 = (1_u64 << 32) as f64;
/// Up to here a float goes through `i64`, which is faster.
const SMALL: f64 = (1_u64 << 62) as f64;

/// An amount of service, in whole 2⁻³² bits: sums and differences are exact, so that a flow which passes from clock
/// to clock loses nothing, and clocks need no putting right however long they run (2⁹⁵ bits).
pub(super) type Service = i128;

/// So many bits, not negative; to the nearest, as cutting off would add up.
pub(super) fn service(bits: f64) -> Service {
    let parts = bits * PARTS + 0.5;
    if parts < SMALL { Service::from(parts as i64) } else { parts as Service }
}

/// Bits in a service.
pub(super) fn bits(service: Service) -> f64 {
    i64::try_from(service).map_or_else(|_| large(service), |small| small as f64) / PARTS
}

/// The nearest float of what is beyond `i64`, as `as` gives it by a slower way: the first 64 bits, of which the last tells
/// whether anything follows, round as the whole does.
fn large(service: Service) -> f64 {
    let Ok(whole) = u128::try_from(service) else { return service as f64 };
    let rest = 64_u32.saturating_sub(whole.leading_zeros());
    let first = (whole >> rest) as u64 | u64::from(whole & ((1 << rest) - 1) != 0);
    first as f64 * f64::from_bits(u64::from(1023 + rest) << 52) // 2 to the power of `rest`
}

/// What each member of every flow under one limit has been served, a line in time between changes of the rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    now: Line,
    /// The one that ended where `now` begins.
    before: Option<Line>,
}

/// Service at one rate.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    /// Where it begins.
    served: Service,
    since_s: f64,
    /// Bits/s.
    rate: f64,
}

impl Clock {
    pub(super) fn at(&self, now_s: f64) -> Service {
        self.now.served + service(self.now.rate * (now_s - self.now.since_s))
    }

    /// Goes on at another rate. Of several changes at one moment only the last counts, and none if it takes the first
    /// back: else completions would hang, in the last bit, on the order of calls at that moment.
    pub(super) fn change_rate(&mut self, rate: f64, now_s: f64) {
        if self.now.since_s == now_s {
            self.now.rate = rate;
            if let Some(before) = self.before.take_if(|before| before.rate == rate) {
                self.now = before;
            }
        } else if self.now.rate != rate {
            let served = self.at(now_s);
            self.before = Some(std::mem::replace(&mut self.now, Line { served, rate, since_s: now_s }));
        }
    }

    /// When the clock reaches `mark` if its rate stays, seconds; for one that it has passed, some moment not ahead.
    pub(super) fn when_s(&self, mark: Service) -> f64 {
        // A flow that has sent all is at its end even where its link stands still: 0/0 is no moment.
        if mark <= self.now.served {
            self.now.since_s
        } else {
            self.now.since_s + bits(mark - self.now.served) / self.now.rate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn millions_of_changes_leave_no_drift() {
        // Rates and steps without a finite binary form, summed beside in whole 2⁻⁶⁰ bits.
        let (mut clock, mut now, mut exact) = (Clock::default(), 0.0_f64, 0_i128);
        for step in 0..2_000_000_u32 {
            let rate = 1e7 / f64::from(step % 97 + 3);
            clock.change_rate(rate, now);
            let next = now + 1e-3 / f64::from(step % 13 + 7);
            exact += (rate * (next - now) * (1_u64 << 60) as f64) as i128;
            now = next;
        }
        let (ours, exact) = (bits(clock.at(now)), exact as f64 / (1_u64 << 60) as f64);
        assert!((ours - exact).abs() <= 1e-12 * exact, "{ours} is not {exact}");
    }

    #[test]
    fn a_rate_taken_back_within_a_moment_leaves_no_trace() {
        let mut clock = Clock::default();
        clock.change_rate(1e9 / 3.0, 0.1);
        let mut other = clock;
        [2e8, 0.0, 7.0, 1e9 / 3.0].into_iter().for_each(|rate| other.change_rate(rate, 0.7));
        assert_eq!(clock.when_s(service(1e9)).to_bits(), other.when_s(service(1e9)).to_bits());
        other.change_rate(5.0, 0.7);
        assert_eq!(clock.at(0.7), other.at(0.7));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn large_amounts_become_the_nearest_float(amount: i128, shift in 0_u32..127, near in -1_i128..=1) {
            // Anything, and what lies between two floats or beside it.
            let between = ((1_i128 << 54) | ((amount & 0xffff) << 1) | 1).checked_shl(shift.min(70)).unwrap_or(0) + near;
            for amount in [amount >> shift, between] {
                prop_assert_eq!(large(amount).to_bits(), (amount as f64).to_bits());
            }
        }
    }

    #[test]
    fn what_is_served_has_ended_even_where_nothing_moves() {
        let mut clock = Clock::default();
        assert_eq!((clock.when_s(0), clock.when_s(1)), (0.0, f64::INFINITY));
        clock.change_rate(4.0, 2.0);
        assert_eq!((clock.when_s(service(8.0)), clock.at(3.0)), (4.0, service(4.0)));
    }
}
