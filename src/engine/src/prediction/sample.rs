//! Weeks of seeded runs: the traces at hand span a day.

use super::runs::{Run, Runs};
use hintd_model::units::{Bytes, Micros, Timestamp};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::StandardNormal;
use std::sync::Arc;

/// Monday 2026-11-02, 00:00 UTC.
pub(super) const MONDAY: Timestamp = Timestamp(1_793_577_600_000_000);
pub(super) const HOUR: u64 = 3_600_000_000;
pub(super) const DAY: u64 = 24 * HOUR;

/// A recurring job as it was made up.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) key: Arc<str>,
    /// Days of the week, 0 is Monday.
    pub(super) days: Vec<u64>,
    /// Hours of the day.
    pub(super) hours: Vec<u64>,
    /// Bytes read on a day of the week at an hour.
    pub(super) input: fn(day: u64, hour: u64) -> u64,
    pub(super) shuffle_share: f64,
    /// Spread of sizes from run to run (lognormal), and of arrivals, seconds.
    pub(super) sigma: f64,
    pub(super) jitter_s: f64,
}

impl Made {
    /// Twice as much at the weekend, and more by day than by night.
    pub(super) fn steady(key: &str, days: &[u64], hours: &[u64]) -> Self {
        let input = |day, hour| (if day >= 5 { 2 } else { 1 }) * (10 + hour) * 1_000_000_000;
        let (days, hours) = (days.to_vec(), hours.to_vec());
        Self { key: key.into(), days, hours, input, shuffle_share: 0.5, sigma: 0.06, jitter_s: 60.0 }
    }

    /// What a run of it is like without noise.
    pub(super) fn plain(&self, submitted: Timestamp) -> Run {
        let since = submitted.0 - MONDAY.0;
        let (day, hour) = (since / DAY % 7, since % DAY / HOUR);
        self.run(submitted, (self.input)(day, hour) as f64)
    }

    fn run(&self, submitted: Timestamp, input: f64) -> Run {
        let shuffle = input * self.shuffle_share;
        let time = |bytes: f64| Micros((1e6 + bytes / 32.0) as u64);
        let (maps, reduces) = ((input / 128e6).ceil() as u32, (shuffle / 1e9).ceil() as u32);
        Run {
            submitted,
            maps: (maps, time(input / f64::from(maps.max(1)))),
            reduces: (reduces, time(shuffle / f64::from(reduces.max(1)))),
            input: Bytes(input as u64),
            shuffle: Bytes(shuffle as u64),
            application: None,
            counted: false,
            ran_on: None,
        }
    }
}

/// The jobs' runs over so many weeks; of a hundred, `astray` are a hundred times too large or too small.
pub(super) fn weeks(jobs: &[Made], weeks: u64, astray: u32, seed: u64) -> Runs {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut runs = Runs::default();
    for job in jobs {
        for day in (0..weeks * 7).filter(|day| job.days.contains(&(day % 7))) {
            for &hour in &job.hours {
                let mut normal = || -> f64 { random.sample(StandardNormal) };
                let (late_s, noise) = (normal() * job.jitter_s, (normal() * job.sigma).exp());
                // Half past, so that few come in another hour.
                let planned = (MONDAY.0 + day * DAY + hour * HOUR + HOUR / 2) as f64;
                let submitted = Timestamp((planned + late_s * 1e6) as u64);
                let mut input = (job.input)(day % 7, hour) as f64 * noise;
                if random.random_ratio(astray, 100) {
                    input *= if random.random_bool(0.5) { 100.0 } else { 0.01 };
                }
                runs.note(&job.key, job.run(submitted, input));
            }
        }
    }
    runs
}
