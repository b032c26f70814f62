//! A curve from measurements: the table of performance by latency that is nearest to them and never grows.
//!
//! The policy reads a curve at the nearest 10 µs, and at its last entry beyond. So each measurement counts at the entry that it would
//! be read at, and the fit is the best of all tables, not of some shape of curve. Where nobody measured it is straight.

use super::curve::{Curve, CurveError, ENTRIES, STEP_US, entry};
use hintd_model::solve::isotonic::{Observed, falling};
use hintd_model::units::Micros;

/// The largest performance that is believed: sums of it are still exact enough.
const MOST_PERFORMANCE: f64 = 1e15;

/// The longest latency that is believed, µs.
const MOST_LATENCY_US: f64 = 6e7;

/// What a point may be off the straight line between its neighbors to be left out.
const STRAIGHT: f64 = 1e-6;

/// Decimals of a point's performance.
const DECIMALS: f64 = 1e6;

/// Performance that was measured at a latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Two-way, µs.
    pub latency_us: f64,
    /// In any unit; more is better.
    pub performance: f64,
}

/// A curve and how far it is from what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Latency in µs and share of the best performance, as the configuration takes them.
    pub points: Vec<(f64, f64)>,
    /// The performance that counts as 1.
    pub best: f64,
    /// Root of the mean square of what measurements are off the curve, as a share of the best.
    pub rms: f64,
    /// The most that one is off.
    pub worst: f64,
    /// Its position.
    pub worst_at: usize,
    /// Measurements beyond the last entry, which count there.
    pub beyond: usize,
}

/// What no curve can be fitted to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// There are none.
    #[error("there are no measurements")]
    Empty,
    /// More than the best that was named.
    #[error("the curve would have a performance of {fitted} at {latency_us} µs, above the best of {best}")]
    AboveBest {
        /// What the curve would have.
        fitted: f64,
        /// Where.
        latency_us: f64,
        /// What was said to be the best.
        best: f64,
    },
    /// Points that are no curve.
    #[error(transparent)]
    Curve(#[from] CurveError),
}

impl Measurement {
    /// Why it is none; `None`: it is one.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        let Self { latency_us, performance } = *self;
        if !(0.0..=MOST_LATENCY_US).contains(&latency_us) {
            return Some(format!("a latency of {latency_us} µs is not within 0 and {MOST_LATENCY_US}"));
        }
        let performs = performance > 0.0 && performance <= MOST_PERFORMANCE;
        (!performs).then(|| format!("a performance of {performance} is not above 0 and at most {MOST_PERFORMANCE:e}"))
    }
}

/// The curve that is nearest to measurements of which none is [`Measurement::refused`]; `best` counts as 1, or else the most that
/// the curve has.
///
/// # Errors
/// [`FitError`].
pub fn fit(measured: &[Measurement], best: Option<f64>) -> Result<Fit, FitError> {
    let mut sums = [(0.0_f64, 0.0_f64); ENTRIES];
    for of in measured {
        let (sum, count) = &mut sums[at(of.latency_us)];
        (*sum, *count) = (*sum + of.performance, *count + 1.0);
    }
    let known: Vec<usize> = (0..ENTRIES).filter(|&at| sums[at].1 > 0.0).collect();
    let seen = |&at: &usize| Observed { value: sums[at].0 / sums[at].1, weight: sums[at].1 };
    let fitted = falling(&known.iter().map(seen).collect::<Vec<_>>());
    let most = *fitted.first().ok_or(FitError::Empty)?;
    let best = best.unwrap_or(most);
    if most > best * (1.0 + STRAIGHT) {
        return Err(FitError::AboveBest { fitted: most, latency_us: latency_of(known[0]), best });
    }
    let share = |value: f64| (value / best * DECIMALS).round().clamp(1.0, DECIMALS) / DECIMALS;
    let all: Vec<(f64, f64)> = known.iter().zip(fitted).map(|(&at, value)| (latency_of(at), share(value))).collect();
    let points = straightened(&all);
    let curve = Curve::through(&points)?;
    let off = |of: &Measurement| (curve.performance(read_at(of.latency_us)) - of.performance / best).abs();
    let errors: Vec<f64> = measured.iter().map(off).collect();
    let rms = (errors.iter().map(|off| off * off).sum::<f64>() / errors.len() as f64).sqrt();
    let worst_at = (0..errors.len()).max_by(|&a, &b| errors[a].total_cmp(&errors[b])).unwrap_or(0);
    let beyond = measured.iter().filter(|of| of.latency_us > latency_of(ENTRIES - 1)).count();
    Ok(Fit { points, best, rms, worst: errors[worst_at], worst_at, beyond })
}

fn read_at(latency_us: f64) -> Micros {
    Micros(latency_us.round() as u64)
}

fn at(latency_us: f64) -> usize {
    entry(read_at(latency_us))
}

fn latency_of(entry: usize) -> f64 {
    (entry as u64 * STEP_US) as f64
}

/// Without points that the straight line between others has.
fn straightened(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    let mut from = 0;
    while from + 1 < points.len() {
        let is_straight = |to: &usize| {
            let ((x0, y0), (x1, y1)) = (points[from], points[*to]);
            let line = |x: f64| y0 + (y1 - y0) * (x - x0) / (x1 - x0);
            points[from + 1..*to].iter().all(|&(x, y)| (line(x) - y).abs() <= STRAIGHT)
        };
        // The next one is always straight from here.
        let to = (from + 1..points.len()).take_while(is_straight).last().unwrap_or(from + 1);
        kept.push(points[to]);
        from = to;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::curve::BUILT_IN;
    use super::*;
    use proptest::prelude::*;

    fn measured(latency_us: f64, performance: f64) -> Measurement {
        Measurement { latency_us, performance }
    }

    fn table(curve: &Curve) -> Vec<f64> {
        (0..ENTRIES as u64).map(|at| curve.performance(Micros(at * STEP_US))).collect()
    }

    fn assert_same(found: &Fit, expected: &Curve) {
        let curve = Curve::through(&found.points).unwrap();
        for (at, (found, expected)) in table(&curve).iter().zip(table(expected)).enumerate() {
            assert!((found - expected).abs() < 3e-6, "entry {at}: {found}, not {expected}");
        }
    }

    #[test]
    fn the_papers_curves_come_back_from_what_they_say_in_any_unit() {
        for name in BUILT_IN {
            let curve = Curve::built_in(name).unwrap();
            let all: Vec<Measurement> = (0..ENTRIES as u64)
                .map(|at| measured((at * STEP_US) as f64, 5_000.0 * curve.performance(Micros(at * STEP_US))))
                .collect();
            let found = fit(&all, None).unwrap();
            assert!((found.best - 5_000.0).abs() < 1e-9 && found.rms < 2e-6 && found.worst < 3e-6, "{name}: {found:?}");
            assert_same(&found, &curve);
        }
    }

    #[test]
    fn an_own_curve_comes_back_as_the_points_that_it_was_made_of() {
        let points = [(0.0, 1.0), (60.0, 0.97), (250.0, 0.8), (1_000.0, 0.55)];
        let curve = Curve::through(&points).unwrap();
        let all: Vec<Measurement> =
            (0..=100).map(|at| measured(f64::from(at) * 10.0, curve.performance(Micros(at as u64 * 10)))).collect();
        assert_eq!(fit(&all, None).unwrap().points, points);
        // Only where they were measured: between, and outside, it is the same.
        let some: Vec<Measurement> = points.iter().map(|&(at, performance)| measured(at, performance)).collect();
        assert_eq!(fit(&some, Some(1.0)).unwrap().points, points);
    }

    #[test]
    fn what_grows_is_evened_out_and_the_error_says_how_far() {
        let found =
            fit(&[measured(0.0, 9.0), measured(100.0, 4.0), measured(200.0, 6.0), measured(2_000.0, 1.0)], None);
        let found = found.unwrap();
        // 2,000 µs is read at 1,000.
        assert_eq!((found.best, found.beyond), (9.0, 1));
        assert_eq!(found.points, [(0.0, 1.0), (100.0, 0.555_556), (200.0, 0.555_556), (1_000.0, 0.111_111)]);
        let off = 1.0 / 9.0;
        assert!((found.worst - off).abs() < 1e-6 && (found.rms - off / 2.0_f64.sqrt()).abs() < 1e-6, "{found:?}");
        assert!([1, 2].contains(&found.worst_at));
    }

    #[test]
    fn a_best_that_was_named_counts_as_one() {
        let found = fit(&[measured(50.0, 40.0), measured(90.0, 20.0)], Some(50.0)).unwrap();
        assert_eq!(found.points, [(50.0, 0.8), (90.0, 0.4)]);
        let error = fit(&[measured(50.0, 40.0)], Some(30.0)).unwrap_err().to_string();
        assert_eq!(error, "the curve would have a performance of 40 at 50 µs, above the best of 30");
        assert_eq!(fit(&[], None), Err(FitError::Empty));
    }

    #[test]
    fn what_is_no_measurement_is_named_with_its_value() {
        for (latency_us, performance, says) in [
            (-1.0, 1.0, "a latency of -1 µs is not within 0 and 60000000"),
            (f64::NAN, 1.0, "a latency of NaN µs is not within 0 and 60000000"),
            (1.0, 0.0, "a performance of 0 is not above 0 and at most 1e15"),
            (1.0, f64::INFINITY, "a performance of inf is not above 0 and at most 1e15"),
            (1.0, -2.5, "a performance of -2.5 is not above 0 and at most 1e15"),
        ] {
            assert_eq!(measured(latency_us, performance).refused().as_deref(), Some(says));
        }
        assert_eq!(measured(0.0, 1e-9).refused(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn any_measurements_give_a_curve_that_no_level_one_is_nearer_than(
            all in prop::collection::vec((0.0_f64..1_500.0, 0.001_f64..1e6), 1..60),
        ) {
            let all: Vec<Measurement> = all.into_iter().map(|(at, performance)| measured(at, performance)).collect();
            let found = fit(&all, None).unwrap();
            let curve = Curve::through(&found.points).unwrap();
            prop_assert!(table(&curve).windows(2).all(|pair| pair[1] <= pair[0] + 1e-12));
            let mean = all.iter().map(|of| of.performance / found.best).sum::<f64>() / all.len() as f64;
            let level = (all.iter().map(|of| (of.performance / found.best - mean).powi(2)).sum::<f64>() / all.len() as f64).sqrt();
            prop_assert!(found.rms <= level + 1e-5, "{} {level}", found.rms);
            prop_assert!(found.worst >= found.rms - 1e-12);
        }
    }
}
