//! Completion times of two groups of applications: how much longer those of one take, and within what interval.
//!
//! Times of jobs differ by factors: their logarithms are compared, by Welch's t test, which takes the two groups to spread
//! differently. What comes out is a ratio of geometric means.

use hintd_model::units::Micros;
use serde::{Deserialize, Serialize};
use special::Beta as _;

/// How sure the interval of a queue is.
pub const QUEUE_LEVEL: f64 = 0.95;
/// How sure that of a recurring key is: there are many keys, and each is looked at after every run.
pub const KEY_LEVEL: f64 = 0.999;

/// Beyond so many degrees of freedom Student's distribution is the normal one, to four digits.
const FREEDOM_MAX: f64 = 10_000.0;

/// Logarithms of completion times, as count, mean and squared distance from it (Welford).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Applications.
    pub count: u64,
    /// Mean of the natural logarithms of their times in seconds.
    pub mean: f64,
    /// Sum of the squared distances from it.
    pub squares: f64,
}

impl Sample {
    /// Takes a time in; none is shorter than a millisecond.
    pub fn add(&mut self, took: Micros) {
        let value = took.as_secs_f64().max(1e-3).ln();
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// The square of the mean's standard error; 0 where there are fewer than two.
    fn error(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        self.squares.max(0.0) / (count - 1.0) / count
    }
}

/// Times of hinted applications ÷ those of held-out ones: below 1, hints win.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Of the geometric means.
    pub ratio: f64,
    /// Where its interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl Ratio {
    /// The ratio of two samples with its interval at `level`, 0 to 1; `None`: one of them has fewer than two.
    #[must_use]
    pub fn of(hinted: &Sample, held_out: &Sample, level: f64) -> Option<Self> {
        if hinted.count < 2 || held_out.count < 2 {
            return None;
        }
        let apart = hinted.mean - held_out.mean;
        let (one, two) = (hinted.error(), held_out.error());
        let wide = if one + two > 0.0 {
            let freedom = (one + two).powi(2)
                / (one.powi(2) / (hinted.count - 1) as f64 + two.powi(2) / (held_out.count - 1) as f64);
            quantile(0.5 + level / 2.0, freedom) * (one + two).sqrt()
        } else {
            0.0
        };
        // Of a few times that differ wildly it ends beyond all numbers, and JSON has no infinity.
        let finite = |log: f64| log.exp().min(f64::MAX);
        Some(Self { ratio: finite(apart), low: finite(apart - wide), high: finite(apart + wide) })
    }
}

/// The quantile of Student's distribution, of more than a half.
fn quantile(at: f64, freedom: f64) -> f64 {
    let freedom = freedom.clamp(1.0, FREEDOM_MAX);
    let half = freedom / 2.0;
    let beta = (2.0 * (1.0 - at)).inv_inc_beta(half, 0.5, half.ln_beta(0.5));
    (freedom * (1.0 - beta) / beta).sqrt()
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There are too few applications, or the interval spans 1.
    CantTell,
    /// Hinted ones are faster.
    Faster,
    /// Hinted ones are slower.
    Slower,
}

impl Verdict {
    /// By an interval; `None`: there is none.
    #[must_use]
    pub fn of(ratio: Option<&Ratio>) -> Self {
        match ratio {
            Some(ratio) if ratio.high < 1.0 => Self::Faster,
            Some(ratio) if ratio.low > 1.0 => Self::Slower,
            _ => Self::CantTell,
        }
    }

    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CantTell => "cant_tell",
            Self::Faster => "faster",
            Self::Slower => "slower",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: &[f64]) -> Sample {
        let mut sample = Sample::default();
        seconds.iter().for_each(|seconds| sample.add(Micros((seconds * 1e6) as u64)));
        sample
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // t(0.975) and t(0.9995), as printed in tables of Student's distribution.
        for (freedom, two_and_a_half, half_a_thousandth) in [
            (1.0, 12.706_2, 636.619),
            (2.0, 4.302_65, 31.599_1),
            (5.0, 2.570_58, 6.868_83),
            (14.0, 2.144_79, 4.140_45),
            (30.0, 2.042_27, 3.645_96),
            (120.0, 1.979_93, 3.373_45),
        ] {
            let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 2e-5;
            assert!(near(quantile(0.975, freedom), two_and_a_half), "{freedom}: {}", quantile(0.975, freedom));
            assert!(near(quantile(0.9995, freedom), half_a_thousandth), "{freedom}: {}", quantile(0.9995, freedom));
        }
        assert!((quantile(0.975, 1e9) - 1.959_96).abs() < 1e-3, "the normal distribution's");
    }

    #[test]
    fn quantiles_are_the_inverse_of_the_distribution_at_any_freedom() {
        for step in 0..400 {
            let freedom = 1.0 + 1.1_f64.powi(step) / 10.0;
            for level in [0.975, 0.9995] {
                let found = quantile(level, freedom);
                let half = freedom.min(FREEDOM_MAX) / 2.0;
                let beyond = (2.0 * half / (2.0 * half + found * found)).inc_beta(half, 0.5, half.ln_beta(0.5)) / 2.0;
                assert!((1.0 - beyond - level).abs() < 1e-8, "{freedom}: {found}");
            }
        }
    }

    #[test]
    fn a_ratio_and_its_interval_are_those_of_welchs_test_on_logarithms() {
        // Computed by hand: logarithms 0, 1, 2 and 1, 2, 3, 4; means 1 and 2.5, variances 1 and 5/3, squared error 1/3 + 5/12,
        // freedom 0.75² ÷ ((1/3)²/2 + (5/12)²/3) = 4.959_18, t(0.975) = 2.577_12 there.
        let e = std::f64::consts::E;
        let hinted = sample(&[1.0, e, e * e]);
        let held_out = sample(&[e, e.powi(2), e.powi(3), e.powi(4)]);
        let found = Ratio::of(&hinted, &held_out, 0.95).unwrap();
        let wide = 2.577_1 * 0.75_f64.sqrt();
        for (found, wanted) in [(found.ratio, -1.5), (found.low, -1.5 - wide), (found.high, -1.5 + wide)] {
            assert!((found.ln() - wanted).abs() < 2e-3, "{found} is not exp({wanted})");
        }
        assert_eq!(Verdict::of(Some(&found)), Verdict::CantTell);
        assert_eq!(Ratio::of(&sample(&[1.0]), &held_out, 0.95), None);
    }

    #[test]
    fn samples_without_spread_have_a_ratio_without_one() {
        let found = Ratio::of(&sample(&[20.0, 20.0]), &sample(&[10.0, 10.0, 10.0]), KEY_LEVEL).unwrap();
        assert!((found.ratio - 2.0).abs() < 1e-9 && (found.high - found.low).abs() < 1e-6, "{found:?}");
        assert_eq!(Verdict::of(Some(&found)), Verdict::Slower);
        let wild = Ratio::of(&sample(&[1e-3, 1e9]), &sample(&[1.0, 2.0]), KEY_LEVEL).unwrap();
        assert!(wild.low >= 0.0 && wild.high.is_finite(), "{wild:?}: the journal has to read it back");
        assert_eq!(sample(&[0.0]).mean, 1e-3_f64.ln(), "no time is a millisecond");
    }
}
