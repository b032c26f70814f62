//! How fast machines of a class work: the one time model of machines that are not alike.
//!
//! 004 §5.1.1 measured it: a scale-up machine is the faster one up to a crosspoint of the job's size, and the slower one
//! beyond, when shuffle data fits its memory no more. Crosspoints differ by job.

use hintd_model::units::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Speeds that can be meant, against a machine of no class.
pub const SPEEDS: RangeInclusive<f64> = 0.001..=1000.0;

/// How fast machines of a class work, against machines of no class: tasks take their time ÷ it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassSpeed {
    /// For any job, or for those that are not large.
    pub speed: f64,
    /// Which jobs are large, and their speed; `None`: all jobs run at one speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<LargeJobs>,
}

/// Jobs beyond the crosspoint of a class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargeJobs {
    /// Input above which a job that shuffles nothing is large.
    pub input_bytes: Bytes,
    /// The same for a job that shuffles all that it reads, or more; in between in proportion.
    pub shuffling_input_bytes: Bytes,
    /// Their speed.
    pub speed: f64,
}

impl ClassSpeed {
    /// The same for all jobs.
    #[must_use]
    pub const fn plain(speed: f64) -> Self {
        Self { speed, large: None }
    }

    /// For a job of such input and shuffle.
    #[must_use]
    pub fn of(&self, input: Bytes, shuffle: Bytes) -> f64 {
        match &self.large {
            Some(large) if large.crossed(input, shuffle) => large.speed,
            _ => self.speed,
        }
    }

    /// The first value that can't be meant: its field and what is wrong, with the value.
    #[must_use]
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let refuse = |field, speed: f64| {
            let (from, to) = (SPEEDS.start(), SPEEDS.end());
            let why = format!("is {speed}, not from {from} to {to}: tasks take their time divided by it");
            (!SPEEDS.contains(&speed)).then_some((field, why))
        };
        let of_large = self.large.and_then(|large| refuse("large.speed", large.speed));
        refuse("speed", self.speed).or(of_large)
    }
}

impl LargeJobs {
    /// Input above which a job is large that shuffles `shuffle` of `input` bytes.
    #[must_use]
    pub fn crosspoint(&self, input: Bytes, shuffle: Bytes) -> f64 {
        let ratio = if input.0 == 0 { 0.0 } else { (shuffle.as_f64() / input.as_f64()).min(1.0) };
        let (low, high) = (self.input_bytes.as_f64(), self.shuffling_input_bytes.as_f64());
        (high - low).mul_add(ratio, low)
    }

    fn crossed(&self, input: Bytes, shuffle: Bytes) -> bool {
        input.as_f64() > self.crosspoint(input, shuffle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn large_jobs_run_at_their_own_speed_and_the_crosspoint_moves_with_the_shuffle() {
        let large = LargeJobs { input_bytes: Bytes(32 * GIB), shuffling_input_bytes: Bytes(64 * GIB), speed: 1.1 };
        let class = ClassSpeed { speed: 1.7, large: Some(large) };
        for (input, shuffle, speed) in [
            (0, 0, 1.7),
            (32, 0, 1.7),
            (33, 0, 1.1),
            (33, 33, 1.7),
            (64, 64, 1.7),
            (65, 65, 1.1),
            (47, 24, 1.7),
            (50, 25, 1.1),
            (65, 1000, 1.1),
        ] {
            assert_eq!(class.of(Bytes(input * GIB), Bytes(shuffle * GIB)), speed, "{input} {shuffle}");
        }
        assert_eq!(ClassSpeed::plain(2.0).of(Bytes(u64::MAX), Bytes(0)), 2.0);
    }

    #[test]
    fn speeds_that_can_not_be_meant_are_named_with_the_value() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e6] {
            let (field, why) = ClassSpeed::plain(speed).problem().unwrap();
            assert_eq!(field, "speed");
            assert!(why.starts_with(&format!("is {speed}, not from 0.001 to 1000")), "{why}");
            let large = Some(LargeJobs { input_bytes: Bytes(1), shuffling_input_bytes: Bytes(1), speed });
            assert_eq!(ClassSpeed { speed: 1.0, large }.problem().unwrap().0, "large.speed");
        }
        assert_eq!(ClassSpeed::plain(1.0).problem(), None);
    }
}
