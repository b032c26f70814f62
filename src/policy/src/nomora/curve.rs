//! How well an application performs at a latency, as a share of its best: Popescu and Moore, *No Delay*, §3.

use hintd_model::units::Micros;

/// Distance of the table's entries, µs (§6: predictions are discretised in steps of 10 µs).
pub(super) const STEP_US: u64 = 10;

/// Entries of the table: 0 to 1,000 µs.
pub(super) const ENTRIES: usize = 101;

/// What a performance of 1 costs; lower performance costs as much more.
pub const LEAST_COST: u32 = 100;

/// What a performance of 0.1 or less costs.
pub const MOST_COST: u32 = 1_000;

/// The curves of the paper, by name.
pub const BUILT_IN: [&str; 4] = ["memcached", "strads", "spark", "tensorflow"];

/// Performance by two-way latency, tabulated; a latency beyond the table has the smallest value (§6).
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Falls or stays from entry to entry; above 0, at most 1.
    performance: [f64; ENTRIES],
    cost: [u16; ENTRIES],
}

/// Points that are no curve.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CurveError {
    /// There are none.
    #[error("no points")]
    Empty,
    /// A latency that the table does not have.
    #[error("point {at}: a latency of {latency_us} µs is not within 0 to 1000")]
    Latency {
        /// Position, from 0.
        at: usize,
        /// Of the point, µs.
        latency_us: f64,
    },
    /// Latencies do not ascend.
    #[error("point {at}: a latency of {latency_us} µs does not lie above {before_us}")]
    Order {
        /// Position, from 0.
        at: usize,
        /// Of the point, µs.
        latency_us: f64,
        /// Of the one before, µs.
        before_us: f64,
    },
    /// No performance.
    #[error("point {at}: a performance of {performance} at {latency_us} µs is not above 0 and at most 1")]
    Performance {
        /// Position, from 0.
        at: usize,
        /// Of the point, µs.
        latency_us: f64,
        /// Of the point.
        performance: f64,
    },
    /// Performance that grows with latency.
    #[error("point {at}: performance grows from {before} to {performance} at {latency_us} µs")]
    Grows {
        /// Position, from 0.
        at: usize,
        /// Of the point, µs.
        latency_us: f64,
        /// Of the point.
        performance: f64,
        /// Of the one before.
        before: f64,
    },
}

impl Curve {
    /// One of [`BUILT_IN`].
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        // Threshold below which performance is 1, and what x⁰ to x³ are multiplied by, x in µs.
        let (threshold, of): (f64, [f64; 4]) = match name {
            "memcached" => (40.0, [1.067, -3.093e-3, 4.084e-6, -1.898e-9]), // Eq. 2
            "strads" => (20.0, [1.009, -2.095e-3, 2.571e-6, -1.232e-9]),    // Eq. 3
            "spark" => (200.0, [1.0199, -1.161e-4, 0.0, 0.0]),              // Eq. 4
            "tensorflow" => (40.0, [1.005, -5.146e-4, 5.837e-7, -3.46e-10]), // Eq. 5
            _ => return None,
        };
        Some(Self::tabulated(|x| if x < threshold { 1.0 } else { of[0] + x * (of[1] + x * (of[2] + x * of[3])) }))
    }

    /// Through points of latency (µs, ascending, within 0 to 1,000) and performance (above 0, at most 1, never growing): straight
    /// from one to the next, level before the first and after the last.
    ///
    /// # Errors
    /// [`CurveError`] with the point.
    pub fn through(points: &[(f64, f64)]) -> Result<Self, CurveError> {
        let mut before: Option<(f64, f64)> = None;
        for (at, &(latency_us, performance)) in points.iter().enumerate() {
            if !(0.0..=1_000.0).contains(&latency_us) {
                return Err(CurveError::Latency { at, latency_us });
            }
            if !(performance > 0.0 && performance <= 1.0) {
                return Err(CurveError::Performance { at, latency_us, performance });
            }
            match before {
                Some((before_us, _)) if latency_us <= before_us => {
                    return Err(CurveError::Order { at, latency_us, before_us });
                }
                Some((_, before)) if performance > before => {
                    return Err(CurveError::Grows { at, latency_us, performance, before });
                }
                _ => before = Some((latency_us, performance)),
            }
        }
        if points.is_empty() {
            return Err(CurveError::Empty);
        }
        Ok(Self::tabulated(|x| between(points, x)))
    }

    fn tabulated(of: impl Fn(f64) -> f64) -> Self {
        let performance: [f64; ENTRIES] = std::array::from_fn(|at| of((at as u64 * STEP_US) as f64));
        let cost = performance.map(|performance| {
            let cost = (f64::from(LEAST_COST) / performance).round();
            cost.clamp(f64::from(LEAST_COST), f64::from(MOST_COST)) as u16
        });
        Self { performance, cost }
    }

    /// Share of the best performance at this two-way latency.
    #[must_use]
    pub fn performance(&self, rtt: Micros) -> f64 {
        self.performance[entry(rtt)]
    }

    /// The lowest and the highest performance, each with its cost.
    pub(super) fn range(&self) -> [(f64, u32); 2] {
        [ENTRIES - 1, 0].map(|at| (self.performance[at], u32::from(self.cost[at])))
    }

    /// 100 ÷ performance, rounded, within [`LEAST_COST`] and [`MOST_COST`] (§5.2, Eq. 6).
    #[inline]
    #[must_use]
    pub fn cost(&self, rtt: Micros) -> u32 {
        u32::from(self.cost[entry(rtt)])
    }
}

/// The nearest entry; a curve is smallest at its last.
#[inline]
pub(super) fn entry(rtt: Micros) -> usize {
    (rtt.0.saturating_add(STEP_US / 2) / STEP_US).min(ENTRIES as u64 - 1) as usize
}

/// At least one point.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|(latency, _)| *latency <= x);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some((x0, p0)), Some(&(x1, p1))) => p0 + (p1 - p0) * (x - x0) / (x1 - x0),
        (Some((_, last)), None) => last,
        (None, Some(&(_, first))) => first,
        (None, None) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str, latency_us: u64) -> f64 {
        Curve::built_in(name).unwrap().performance(Micros(latency_us))
    }

    #[test]
    fn the_papers_equations_hold_at_their_thresholds_and_beyond() {
        // Written out once more, so that no coefficient is compared with itself.
        for (name, latency_us, expected) in [
            ("memcached", 30, 1.0),
            ("memcached", 40, 0.949_692_928),
            ("memcached", 500, 0.304_25),
            ("memcached", 1_000, 0.160),
            ("strads", 10, 1.0),
            ("strads", 20, 0.968_118_544),
            ("strads", 300, 0.578_626),
            ("strads", 1_000, 0.253),
            ("spark", 190, 1.0),
            ("spark", 200, 0.996_68),
            ("spark", 1_000, 0.903_8),
            ("tensorflow", 30, 1.0),
            ("tensorflow", 40, 0.985_327_776),
            ("tensorflow", 400, 0.870_408),
            ("tensorflow", 1_000, 0.728_1),
        ] {
            let found = at(name, latency_us);
            assert!((found - expected).abs() < 1e-6, "{name} at {latency_us} µs: {found}, not {expected}");
        }
    }

    #[test]
    fn a_latency_has_the_nearest_entry_and_beyond_the_table_the_smallest() {
        assert_eq!((at("memcached", 34), at("memcached", 35)), (1.0, at("memcached", 40)));
        assert_eq!(at("memcached", 44), at("memcached", 40));
        assert_eq!(at("memcached", 5_000), at("memcached", 1_000));
        assert_eq!(at("spark", u64::MAX), at("spark", 1_000));
        for name in BUILT_IN {
            let all: Vec<f64> = (0..=100).map(|step| at(name, step * 10)).collect();
            assert!(all.windows(2).all(|pair| pair[1] <= pair[0]), "{name} falls");
        }
    }

    #[test]
    fn costs_are_a_hundred_at_the_best_and_a_thousand_at_a_tenth() {
        let memcached = Curve::built_in("memcached").unwrap();
        assert_eq!([0, 40, 500, 1_000].map(|us| memcached.cost(Micros(us))), [100, 105, 329, 625]);
        let steep = Curve::through(&[(0.0, 1.0), (100.0, 0.1), (200.0, 0.001)]).unwrap();
        assert_eq!([0, 50, 100, 200].map(|us| steep.cost(Micros(us))), [100, 182, 1_000, 1_000]);
        assert_eq!(Curve::built_in("Memcached"), None);
    }

    #[test]
    fn own_curves_are_straight_between_points_and_level_outside() {
        let own = Curve::through(&[(100.0, 0.8), (300.0, 0.4)]).unwrap();
        let found = [0, 100, 200, 250, 300, 900].map(|us| own.performance(Micros(us)));
        for (found, expected) in found.into_iter().zip([0.8, 0.8, 0.6, 0.5, 0.4, 0.4]) {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        }
    }

    #[test]
    fn points_that_are_no_curve_are_refused_with_the_point() {
        for (points, says) in [
            (&[][..], "no points"),
            (&[(0.0, 1.0), (10.0, 0.0)], "point 1: a performance of 0 at 10 µs is not above 0 and at most 1"),
            (&[(0.0, -0.5)], "point 0: a performance of -0.5 at 0 µs is not above 0 and at most 1"),
            (&[(0.0, f64::NAN)], "point 0: a performance of NaN at 0 µs is not above 0 and at most 1"),
            (&[(0.0, 1.5)], "point 0: a performance of 1.5 at 0 µs is not above 0 and at most 1"),
            (&[(0.0, 0.5), (10.0, 0.6)], "point 1: performance grows from 0.5 to 0.6 at 10 µs"),
            (&[(10.0, 0.5), (10.0, 0.4)], "point 1: a latency of 10 µs does not lie above 10"),
            (&[(-1.0, 0.5)], "point 0: a latency of -1 µs is not within 0 to 1000"),
            (&[(f64::NAN, 0.5)], "point 0: a latency of NaN µs is not within 0 to 1000"),
            (&[(0.0, 1.0), (2000.0, 0.5)], "point 1: a latency of 2000 µs is not within 0 to 1000"),
        ] {
            assert_eq!(Curve::through(points).unwrap_err().to_string(), says);
        }
    }
}
