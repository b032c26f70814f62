//! Fitting a trace of thousands of machines to the cluster at hand.
//!
//! # Rule
//! - Time: submit times are moved so that the first job comes at 0 and compressed by one factor so that the last comes
//!   at the target span. A trace that is shorter already keeps its pace: time is never stretched.
//! - Bytes: input, shuffle and output of every job are multiplied by one factor, the largest (at most 1) at which no
//!   job has more maps, nor more reduces, than the cluster has slots: the largest job runs in one wave. What was
//!   above 0 stays above 0, so that a job keeps its stages.
//!
//! Ratios between jobs, and between a job's stages, are the trace's own. Both factors belong in every report
//! ([`TraceScale::describe`]): a scaled result says nothing about the unscaled trace.

use super::job_model::JobModel;
use super::trace::swim::SwimJob;
use hintd_model::units::{Bytes, Micros};
use serde::Serialize;

/// The factors that a trace was scaled by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TraceScale {
    /// The first job's submit time, which becomes 0.
    pub origin: Micros,
    /// Factor on times after `origin`; at most 1.
    pub time: f64,
    /// Factor on bytes; at most 1.
    pub bytes: f64,
}

/// Nothing to fit, or nothing to fit it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// No job.
    #[error("the trace holds no job")]
    NoJobs,
    /// A cluster without room.
    #[error("the cluster has 0 slots: no job's tasks fit")]
    NoSlots,
    /// A span of 0.
    #[error("the target span is 0: every job would be submitted at once")]
    NoSpan,
}

impl TraceScale {
    /// No change.
    pub const ONE: Self = Self { origin: Micros::ZERO, time: 1.0, bytes: 1.0 };

    /// Factors for `jobs` (in any order) to be submitted within `span_target`, on a cluster that runs `slots` tasks at
    /// once, under `model`'s task counts.
    ///
    /// # Errors
    /// If there are no jobs, no slots or no span.
    pub fn fit(jobs: &[SwimJob], model: &JobModel, span_target: Micros, slots: u32) -> Result<Self, ScaleError> {
        if slots == 0 {
            return Err(ScaleError::NoSlots);
        }
        if span_target == Micros::ZERO {
            return Err(ScaleError::NoSpan);
        }
        let origin = jobs.iter().map(|job| job.submit).min().ok_or(ScaleError::NoJobs)?;
        let last = jobs.iter().map(|job| job.submit).max().ok_or(ScaleError::NoJobs)?;
        let span = last.saturating_sub(origin);
        let time = if span > span_target { span_target.as_f64() / span.as_f64() } else { 1.0 };

        let room = |task: Bytes| u64::from(slots).saturating_mul(task.0.max(1));
        let largest = |bytes: fn(&SwimJob) -> Bytes| jobs.iter().map(|job| bytes(job).0).max().unwrap_or(0);
        let input = shrink(largest(|job| job.input), room(model.block));
        // Reduces are capped by the model: with slots enough for the cap, shuffles may stay as they are.
        let shuffle =
            if slots >= model.max_reduces { 1.0 } else { shrink(largest(|job| job.shuffle), room(model.reduce_bytes)) };
        Ok(Self { origin, time, bytes: input.min(shuffle) })
    }

    /// The job as it is run.
    #[must_use]
    pub fn apply(&self, job: &SwimJob) -> SwimJob {
        SwimJob {
            submit: Micros((job.submit.saturating_sub(self.origin).as_f64() * self.time).round() as u64),
            input: self.scaled(job.input),
            shuffle: self.scaled(job.shuffle),
            output: self.scaled(job.output),
            ..job.clone()
        }
    }

    /// Both factors in words, for reports.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "time x {:.6} ({:.1}:1), bytes x {:.3e} ({:.1}:1)",
            self.time,
            1.0 / self.time,
            self.bytes,
            1.0 / self.bytes
        )
    }

    fn scaled(&self, bytes: Bytes) -> Bytes {
        if bytes == Bytes::ZERO || self.bytes >= 1.0 {
            return bytes;
        }
        Bytes(((bytes.as_f64() * self.bytes).round() as u64).max(1))
    }
}

/// The factor that brings `largest` down to `room`.
fn shrink(largest: u64, room: u64) -> f64 {
    if largest > room { Bytes(room).as_f64() / Bytes(largest).as_f64() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MODEL: fn() -> JobModel = JobModel::default;

    fn job(submit_s: u64, input: u64, shuffle: u64) -> SwimJob {
        SwimJob {
            name: "j".into(),
            submit: Micros::from_secs(submit_s),
            input: Bytes(input),
            shuffle: Bytes(shuffle),
            output: Bytes(0),
            input_path: None,
        }
    }

    #[test]
    fn the_last_job_comes_at_the_target_and_the_largest_fills_the_slots() {
        let jobs = [job(100, 1 << 40, 1 << 30), job(150, 10 << 20, 0), job(1_100, 0, 1)];
        let scale = TraceScale::fit(&jobs, &MODEL(), Micros::from_secs(10), 64).unwrap();
        assert_eq!(scale, TraceScale { origin: Micros::from_secs(100), time: 0.01, bytes: 1.0 / 128.0 });
        let run: Vec<_> = jobs.iter().map(|job| scale.apply(job)).collect();
        assert_eq!(run.iter().map(|job| job.submit.as_millis()).collect::<Vec<_>>(), [0, 500, 10_000]);
        assert_eq!(MODEL().maps(run[0].input), 64);
        assert_eq!(run[0].shuffle, Bytes(8 << 20));
        assert_eq!((run[1].input, run[1].shuffle), (Bytes(81_920), Bytes(0)));
        assert_eq!((run[2].input, run[2].shuffle), (Bytes(0), Bytes(1)), "a byte stays a byte, nothing stays nothing");
        assert_eq!(scale.describe(), "time x 0.010000 (100.0:1), bytes x 7.812e-3 (128.0:1)");
    }

    #[test]
    fn a_trace_that_fits_is_left_alone() {
        let jobs = [job(0, 1 << 20, 1 << 20), job(5, 1 << 27, 1 << 30)];
        assert_eq!(TraceScale::fit(&jobs, &MODEL(), Micros::from_secs(10), 1), Ok(TraceScale::ONE));
        assert_eq!(TraceScale::ONE.apply(&jobs[1]), jobs[1]);
    }

    #[test]
    fn shuffles_bind_where_reduces_outnumber_the_slots() {
        let jobs = [job(0, 1, 100 << 30)];
        let scale = |slots| TraceScale::fit(&jobs, &MODEL(), Micros::from_secs(1), slots).unwrap().bytes;
        assert_eq!(scale(10).to_bits(), 0.1_f64.to_bits());
        assert_eq!(scale(1_000).to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let (second, jobs) = (Micros::from_secs(1), [job(0, 1, 1)]);
        assert_eq!(TraceScale::fit(&[], &MODEL(), second, 1), Err(ScaleError::NoJobs));
        assert_eq!(TraceScale::fit(&jobs, &MODEL(), second, 0), Err(ScaleError::NoSlots));
        assert_eq!(TraceScale::fit(&jobs, &MODEL(), Micros::ZERO, 1), Err(ScaleError::NoSpan));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn every_scaled_job_fits_and_order_is_kept(
            rows in prop::collection::vec((0_u64..100_000, 0_u64..1 << 60, 0_u64..1 << 60), 1..20),
            slots in prop_oneof![1_u32..1_000, 1_000..100_000_u32],
            span in 1_u64..100_000,
        ) {
            let jobs: Vec<_> = rows.iter().map(|&(at, input, shuffle)| job(at, input, shuffle)).collect();
            let scale = TraceScale::fit(&jobs, &MODEL(), Micros::from_secs(span), slots).unwrap();
            for a in &jobs {
                let run = scale.apply(a);
                prop_assert!(MODEL().maps(run.input) <= u64::from(slots));
                prop_assert!(MODEL().reduces(run.shuffle, run.output) <= u64::from(slots));
                prop_assert!(run.submit <= Micros::from_secs(span));
                for b in jobs.iter().filter(|b| a.submit <= b.submit) {
                    prop_assert!(run.submit <= scale.apply(b).submit);
                }
            }
        }
    }
}
