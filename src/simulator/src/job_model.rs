//! The one job model: what a trace leaves open, the same for every policy and every comparison.
//!
//! Source: 004 (Li), chapter 6, as far as it says; the rest is fixed here, once, and printed in every report by
//! [`JobModel::describe`]. Output replication is not modelled.

use crate::streams::stream;
use hintd_model::units::{Bytes, Micros};
use rand::RngExt as _;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

/// Task counts and times of a job, from its bytes alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobModel {
    /// Input of one map: HDFS's block size.
    pub block: Bytes,
    /// Shuffle of one reduce.
    pub reduce_bytes: Bytes,
    /// No job has more reduces.
    pub max_reduces: u32,
    /// What every task costs before its first byte.
    pub base: Micros,
    /// Bytes that a task works through in a second, before noise.
    pub rate: Bytes,
    /// Spread of the lognormal noise on the work; its median is 1.
    pub sigma: f64,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for JobModel {
    fn default() -> Self {
        Self {
            block: Bytes(128 << 20),
            reduce_bytes: Bytes(1 << 30),
            max_reduces: 1_000,
            base: Micros::from_secs(1),
            rate: Bytes(32_000_000),
            sigma: 0.3,
            seed: 1,
        }
    }
}

/// One task within its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// The n-th map.
    Map(u64),
    /// The n-th reduce.
    Reduce(u64),
}

/// A model that no job could run under.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum JobModelError {
    /// A size, rate or limit of zero.
    #[error("{field} is 0: it divides, so it must be at least 1")]
    Zero {
        /// Which.
        field: &'static str,
    },
    /// A spread that is no spread.
    #[error("sigma is {0}: it must lie between 0 and 3")]
    Sigma(f64),
}

/// Beyond it, one task in a thousand would take 10,000 times the median.
const MAX_SIGMA: f64 = 3.0;

impl JobModel {
    /// Checks a model that was read rather than built.
    ///
    /// # Errors
    /// If a divisor is 0 or `sigma` lies outside [0, 3].
    pub fn check(&self) -> Result<(), JobModelError> {
        let divisors = [
            ("block", self.block.0),
            ("reduce_bytes", self.reduce_bytes.0),
            ("max_reduces", u64::from(self.max_reduces)),
            ("rate", self.rate.0),
        ];
        if let Some((field, _)) = divisors.into_iter().find(|&(_, value)| value == 0) {
            return Err(JobModelError::Zero { field });
        }
        if !(0.0..=MAX_SIGMA).contains(&self.sigma) {
            return Err(JobModelError::Sigma(self.sigma));
        }
        Ok(())
    }

    /// The same model at `factor` times the compute rate: reports show 0.5 and 2 beside 1.
    #[must_use]
    pub fn at_rate(self, factor: f64) -> Self {
        Self { rate: Bytes(((self.rate.as_f64() * factor).round() as u64).max(1)), ..self }
    }

    /// Maps: ⌈input ÷ block⌉, at least one.
    #[must_use]
    pub fn maps(&self, input: Bytes) -> u64 {
        input.0.div_ceil(self.block.0.max(1)).max(1)
    }

    /// Reduces: ⌈shuffle ÷ reduce size⌉, at least one where there is shuffle or output, at most the limit.
    #[must_use]
    pub fn reduces(&self, shuffle: Bytes, output: Bytes) -> u64 {
        if shuffle == Bytes::ZERO && output == Bytes::ZERO {
            return 0;
        }
        shuffle.0.div_ceil(self.reduce_bytes.0.max(1)).clamp(1, u64::from(self.max_reduces.max(1)))
    }

    /// Input of map `index`: whole blocks, the last one what is left; 0 beyond the last map.
    #[must_use]
    pub fn map_input(&self, input: Bytes, index: u64) -> Bytes {
        let start = index.saturating_mul(self.block.0.max(1));
        Bytes(input.0.saturating_sub(start).min(self.block.0.max(1)))
    }

    /// Shuffle of reduce `index`: even shares, the first ones a byte more where it does not divide; 0 beyond the last.
    #[must_use]
    pub fn reduce_input(&self, shuffle: Bytes, output: Bytes, index: u64) -> Bytes {
        let reduces = self.reduces(shuffle, output);
        if index >= reduces {
            return Bytes::ZERO;
        }
        Bytes(shuffle.0 / reduces + u64::from(index < shuffle.0 % reduces))
    }

    /// Time of one task over `bytes`: base + bytes ÷ rate × lognormal(0, sigma).
    ///
    /// The noise is a function of (seed, job, task) and nothing else: whoever asks, in whatever order, gets the same
    /// time, so that policies meet the same tasks. `job` is the job's number in its trace.
    #[must_use]
    pub fn task_time(&self, job: u64, task: Task, bytes: Bytes) -> Micros {
        let work_s = bytes.as_f64() / self.rate.as_f64().max(1.0) * self.noise(job, task);
        self.base.saturating_add(Micros((work_s * 1e6).round() as u64))
    }

    /// The model in words, for reports: name and value of each assumption.
    #[must_use]
    pub fn describe(&self) -> Vec<(String, String)> {
        let row = |name: &str, value: String| (name.to_owned(), value);
        vec![
            row("maps", format!("ceil(input / {} MiB), at least 1", mib(self.block))),
            row(
                "reduces",
                format!(
                    "ceil(shuffle / {} MiB), at least 1 with shuffle or output, at most {}",
                    mib(self.reduce_bytes),
                    self.max_reduces
                ),
            ),
            row(
                "task time",
                format!(
                    "{} s + bytes / {} MB/s x lognormal(median 1, sigma {}), seed {}",
                    self.base.as_secs_f64(),
                    self.rate.as_f64() / 1e6,
                    self.sigma,
                    self.seed
                ),
            ),
            row("output replication", "not modelled".to_owned()),
        ]
    }

    fn noise(&self, job: u64, task: Task) -> f64 {
        let (kind, index) = match task {
            Task::Map(index) => (0_u64, index),
            Task::Reduce(index) => (1, index),
        };
        let z: f64 = stream([self.seed, job, kind, index]).sample(StandardNormal);
        (self.sigma * z).exp()
    }
}

fn mib(bytes: Bytes) -> f64 {
    bytes.as_f64() / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;
    const BLOCK: u64 = 128 << 20;

    #[test]
    fn task_counts_are_those_of_the_stated_rule() {
        let model = JobModel::default();
        for (input, maps) in [(0, 1), (1, 1), (BLOCK, 1), (BLOCK + 1, 2), (8 * GIB, 64), (1 << 60, 1 << 33)] {
            assert_eq!(model.maps(Bytes(input)), maps, "{input}");
        }
        for (shuffle, output, reduces) in [
            (0, 0, 0),
            (0, 1, 1),
            (1, 0, 1),
            (GIB, 0, 1),
            (GIB + 1, 0, 2),
            (1000 * GIB, 5, 1000),
            (5000 * GIB, 5, 1000),
        ] {
            assert_eq!(model.reduces(Bytes(shuffle), Bytes(output)), reduces, "{shuffle} {output}");
        }
    }

    #[test]
    fn task_times_are_pinned() {
        let model = JobModel::default();
        assert_eq!(model.task_time(7, Task::Map(3), Bytes::ZERO), Micros::from_secs(1));
        let still = JobModel { sigma: 0.0, ..model };
        assert_eq!(still.task_time(7, Task::Map(3), Bytes(BLOCK)), Micros(5_194_304));
        assert_eq!(still.at_rate(0.5).task_time(7, Task::Map(3), Bytes(BLOCK)), Micros(9_388_608));
        assert_eq!(still.at_rate(2.0).task_time(7, Task::Map(3), Bytes(BLOCK)), Micros(3_097_152));
        // Drawn once with this generator: a change of generator or key layout changes every figure in every report.
        let drawn = |seed, job, task| JobModel { seed, ..model }.task_time(job, task, Bytes(BLOCK)).0;
        let times = [(1, 0, Task::Map(0)), (1, 0, Task::Reduce(0)), (1, 5, Task::Map(2)), (2, 5, Task::Map(2))];
        assert_eq!(times.map(|(seed, job, task)| drawn(seed, job, task)), [4_912_325, 4_817_400, 9_744_623, 7_377_515]);
    }

    #[test]
    fn a_task_takes_as_long_in_whatever_order_tasks_are_asked() {
        let model = JobModel::default();
        let time = |(job, task)| model.task_time(job, Task::Map(task), Bytes(BLOCK));
        let tasks: Vec<_> = (0..10).flat_map(|job| (0..10).map(move |task| (job, task))).collect();
        let forward: Vec<_> = tasks.iter().copied().map(time).collect();
        let mut backward: Vec<_> = tasks.iter().rev().copied().map(time).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        let distinct: std::collections::BTreeSet<_> = forward.iter().collect();
        assert_eq!(distinct.len(), 100, "every task has a stream of its own");
    }

    #[test]
    fn the_noise_is_lognormal_with_median_one() {
        let model = JobModel::default();
        let logs: Vec<f64> = (0..20_000).map(|task| model.noise(1, Task::Map(task)).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 20_000.0;
        let spread = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 20_000.0).sqrt();
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((spread - 0.3).abs() < 0.01, "{spread}");
    }

    #[test]
    fn a_report_states_every_assumption() {
        let text: Vec<String> = JobModel::default().describe().into_iter().map(|(k, v)| format!("{k}: {v}")).collect();
        assert_eq!(
            text,
            [
                "maps: ceil(input / 128 MiB), at least 1",
                "reduces: ceil(shuffle / 1024 MiB), at least 1 with shuffle or output, at most 1000",
                "task time: 1 s + bytes / 32 MB/s x lognormal(median 1, sigma 0.3), seed 1",
                "output replication: not modelled",
            ]
        );
    }

    #[test]
    fn a_model_that_divides_by_zero_is_refused() {
        let model = JobModel::default();
        assert_eq!(model.check(), Ok(()));
        assert_eq!(JobModel { rate: Bytes(0), ..model }.check(), Err(JobModelError::Zero { field: "rate" }));
        for sigma in [-0.1, 3.1, f64::NAN, f64::INFINITY] {
            assert!(JobModel { sigma, ..model }.check().is_err(), "{sigma}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn tasks_share_a_jobs_bytes_without_loss(input in 0..200 * GIB, shuffle in 0..200 * GIB, output in 0..2_u64) {
            let model = JobModel::default();
            let (input, shuffle, output) = (Bytes(input), Bytes(shuffle), Bytes(output));
            let maps: u64 = (0..=model.maps(input)).map(|map| model.map_input(input, map).0).sum();
            prop_assert_eq!(maps, input.0);
            let reduces: u64 = (0..=model.reduces(shuffle, output)).map(|r| model.reduce_input(shuffle, output, r).0).sum();
            prop_assert_eq!(reduces, shuffle.0);
        }
    }
}
