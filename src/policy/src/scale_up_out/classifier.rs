//! Which jobs are small: the classifier of 004 §5.2.2, trained from jobs whose class is known.
//!
//! Features are maps, reduces and shuffle bytes at log scale, standardized; the kernel is radial, its parameters are those
//! of a small grid that do best under cross-validation. A logistic regression from the same jobs stands beside it.

use super::logistic::Logistic;
use super::params::ScaleUpOutParams;
use super::time::{BLOCK, JobShape, TimeModel};
use hintd_model::solve::svm::{Svm, SvmError, SvmSettings, cross_validate};
use hintd_model::units::Bytes;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// Penalties and widths that are tried.
const PENALTIES: [f64; 2] = [10.0, 100.0];
const GAMMAS: [f64; 3] = [0.3, 1.0, 3.0];
pub(super) const FOLDS: usize = 5;
/// Moves of a pair while parameters are tried, and for the machine that is kept.
const TRIAL_STEPS: u32 = 2_000;
const STEPS: u32 = 20_000;
/// Seed of the generated jobs; any will do, as long as it stays.
const SEED: u64 = 5;
/// Jobs that are no more like any that the boundary hangs on than this were not seen.
const ALIKE_MIN: f64 = 0.1;
/// Sizes of generated jobs: powers of two.
const SMALLEST: f64 = 20.0;
const LARGEST: f64 = 42.0;

/// A trained classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifier {
    mean: [f64; 3],
    deviation: [f64; 3],
    /// Least and most of each feature.
    seen: [[f64; 2]; 3],
    svm: Svm<3>,
    logistic: Logistic,
    /// Price of a job on the wrong side, and width of the kernel, as chosen.
    pub chosen: (f64, f64),
    /// Share of jobs on the right side, when each fifth was judged by the others.
    pub cross_validated: f64,
    /// Jobs that it was trained from.
    pub jobs: usize,
}

/// A classifier as it is written down.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassifierRow {
    mean: [f64; 3],
    deviation: [f64; 3],
    seen: [[f64; 2]; 3],
    gamma: f64,
    offset: f64,
    converged: bool,
    /// Support vectors, each with its multiplier.
    support: Vec<([f64; 3], f64)>,
    regression: [f64; 4],
    chosen: (f64, f64),
    cross_validated: f64,
    jobs: usize,
}

/// What a classifier gets wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// Jobs judged.
    pub of: u64,
    /// Small ones among them.
    pub small: u64,
    /// Small jobs called large: they go without what scale-up machines give.
    pub small_called_large: u64,
    /// Large jobs called small: they hold scale-up machines for long.
    pub large_called_small: u64,
}

impl Mistakes {
    /// Notes one job.
    pub const fn judge(&mut self, small: bool, called_small: bool) {
        self.of += 1;
        self.small += small as u64;
        self.small_called_large += (small && !called_small) as u64;
        self.large_called_small += (!small && called_small) as u64;
    }

    /// Share of jobs called what they are; 1 without jobs.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        let wrong = self.small_called_large + self.large_called_small;
        if self.of == 0 { 1.0 } else { 1.0 - wrong as f64 / self.of as f64 }
    }
}

impl Classifier {
    /// Trained from jobs, each with whether it is small.
    ///
    /// # Errors
    /// [`SvmError`]: too many jobs, or all of one class.
    pub fn train(jobs: &[(JobShape, bool)]) -> Result<Self, SvmError> {
        let raw: Vec<[f64; 3]> = jobs.iter().map(|(job, _)| features(job)).collect();
        let labels: Vec<bool> = jobs.iter().map(|(_, small)| *small).collect();
        let (mean, deviation) = moments(&raw);
        let points: Vec<[f64; 3]> = raw.iter().map(|point| standardized(point, &mean, &deviation)).collect();
        let mut best: Option<(f64, SvmSettings)> = None;
        for penalty in PENALTIES {
            for gamma in GAMMAS {
                let settings = SvmSettings { penalty, gamma, steps: TRIAL_STEPS, ..SvmSettings::default() };
                let share = cross_validate(&points, &labels, FOLDS, &settings)?;
                if best.is_none_or(|(most, _)| share > most) {
                    best = Some((share, settings));
                }
            }
        }
        let (cross_validated, settings) = best.ok_or(SvmError::OneClass(jobs.len()))?;
        let svm = Svm::train(&points, &labels, &SvmSettings { steps: STEPS, ..settings })?;
        let logistic = Logistic::train(&points, &labels);
        let chosen = (settings.penalty, settings.gamma);
        let seen = range(&raw);
        Ok(Self { mean, deviation, seen, svm, logistic, chosen, cross_validated, jobs: jobs.len() })
    }

    /// Trained from generated jobs of all sizes, labelled by the time model of the parameters: for a cluster of whose jobs
    /// nothing is known yet.
    ///
    /// # Errors
    /// [`SvmError::OneClass`]: by the parameters all jobs are better off in one class.
    pub fn of_time_model(params: &ScaleUpOutParams) -> Result<Self, SvmError> {
        let model = params.time_model();
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let jobs: Vec<_> = (0..params.training_jobs).map(|_| generated(&mut random, &model)).collect();
        Self::train(&jobs)
    }

    /// Above 0: small, and the further from 0 the surer. Of a job that did not run before, the shuffle is to be given as 0
    /// (004 §5.2.2).
    #[must_use]
    pub fn decision(&self, job: &JobShape) -> f64 {
        self.svm.decision(&self.point(job))
    }

    /// Whether jobs like it were there to be trained from: of one that is larger than all of them, or unlike all of them, the
    /// sign of [`Self::decision`] says nothing.
    #[must_use]
    pub fn has_seen(&self, job: &JobShape) -> bool {
        let within = |(value, [least, most]): (f64, [f64; 2])| least <= value && value <= most;
        features(job).into_iter().zip(self.seen).all(within) && self.svm.likeness(&self.point(job)) >= ALIKE_MIN
    }

    /// The same by the logistic regression.
    #[must_use]
    pub fn logistic_decision(&self, job: &JobShape) -> f64 {
        self.logistic.decision(&self.point(job))
    }

    /// As [`Self::of_row`] takes it.
    pub(super) fn row(&self) -> ClassifierRow {
        let Self { mean, deviation, seen, chosen, cross_validated, jobs, .. } = *self;
        let ((gamma, offset), converged) = (self.svm.gamma_and_offset(), self.svm.converged);
        let (support, regression) = (self.svm.support().to_vec(), self.logistic.numbers());
        ClassifierRow {
            mean,
            deviation,
            seen,
            gamma,
            offset,
            converged,
            support,
            regression,
            chosen,
            cross_validated,
            jobs,
        }
    }

    /// One that was written down.
    ///
    /// # Errors
    /// [`SvmError`] for a number that no training gives.
    pub(super) fn of_row(row: ClassifierRow) -> Result<Self, SvmError> {
        let ClassifierRow { mean, deviation, seen, gamma, offset, converged, support, .. } = row;
        let numbers = mean.iter().chain(&row.regression).chain(seen.as_flattened());
        if let Some(&value) = numbers.into_iter().find(|number| !number.is_finite()) {
            return Err(SvmError::Value { what: "a number of the classifier", value });
        }
        if let Some(&value) = deviation.iter().find(|number| !(number.is_finite() && **number > 0.0)) {
            return Err(SvmError::Value { what: "a deviation", value });
        }
        let (svm, logistic) = (Svm::from_parts((gamma, offset), support, converged)?, Logistic::of(row.regression));
        let ClassifierRow { chosen, cross_validated, jobs, .. } = row;
        Ok(Self { mean, deviation, seen, svm, logistic, chosen, cross_validated, jobs })
    }

    fn point(&self, job: &JobShape) -> [f64; 3] {
        standardized(&features(job), &self.mean, &self.deviation)
    }
}

/// Maps count as if each read a block at most, so that few maps of large splits do not make a job small.
fn features(job: &JobShape) -> [f64; 3] {
    let maps = job.maps.max(job.input.0.div_ceil(BLOCK.0));
    [(maps as f64).ln_1p(), (job.reduces as f64).ln_1p(), job.shuffle.as_f64().ln_1p()]
}

fn moments(points: &[[f64; 3]]) -> ([f64; 3], [f64; 3]) {
    let count = points.len().max(1) as f64;
    let mean = std::array::from_fn(|at| points.iter().map(|point| point[at]).sum::<f64>() / count);
    let deviation = std::array::from_fn(|at| {
        let mean: &[f64; 3] = &mean;
        let variance = points.iter().map(|point| (point[at] - mean[at]).powi(2)).sum::<f64>() / count;
        // A feature that is the same for all tells nothing, and is not to be divided by 0.
        if variance > 0.0 { variance.sqrt() } else { 1.0 }
    });
    (mean, deviation)
}

/// Least and most of each feature.
fn range(points: &[[f64; 3]]) -> [[f64; 2]; 3] {
    std::array::from_fn(|at| {
        let values = || points.iter().map(|point| point[at]);
        [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
    })
}

fn standardized(point: &[f64; 3], mean: &[f64; 3], deviation: &[f64; 3]) -> [f64; 3] {
    std::array::from_fn(|at| (point[at] - mean[at]) / deviation[at])
}

/// Half of the jobs near the crosspoints, where they are hard to tell apart; a third of all shuffle nothing.
fn generated(random: &mut ChaCha8Rng, model: &TimeModel) -> (JobShape, bool) {
    let near = random.random_bool(0.5);
    let (from, to) = if near { (33.0, 38.0) } else { (SMALLEST, LARGEST) };
    let input = Bytes(random.random_range(from..to).exp2() as u64);
    let shuffles = random.random_bool(2.0 / 3.0);
    let ratio = if shuffles { random.random_range(-12.0_f64..1.0).exp2() } else { 0.0 };
    let shuffle = Bytes((input.as_f64() * ratio) as u64);
    let job = JobShape { maps: input.0.div_ceil(BLOCK.0).max(1), reduces: shuffle.0.div_ceil(1 << 30), input, shuffle };
    (job, model.small(&job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_jobs_it_has_not_seen_are_told_apart() {
        let params = ScaleUpOutParams { training_jobs: 200, ..ScaleUpOutParams::default() };
        let classifier = Classifier::of_time_model(&params).unwrap();
        let (model, mut random) = (params.time_model(), ChaCha8Rng::seed_from_u64(77));
        let (mut svm, mut line) = (Mistakes::default(), Mistakes::default());
        for _ in 0..1_000 {
            let (job, small) = generated(&mut random, &model);
            svm.judge(small, classifier.decision(&job) > 0.0);
            line.judge(small, classifier.logistic_decision(&job) > 0.0);
        }
        println!("support vectors {:.3} {svm:?}, regression {:.3} {line:?}", svm.accuracy(), line.accuracy());
        assert!(svm.accuracy() > 0.93, "{svm:?}");
        assert_eq!(Classifier::of_time_model(&params).unwrap(), classifier, "the same again");
        let mut job = JobShape { maps: 1, reduces: 0, input: BLOCK, shuffle: Bytes::ZERO };
        assert!(classifier.decision(&job) > 0.0, "a job of one map is small");
        job.maps = 8_000;
        assert!(classifier.decision(&job) < 0.0, "a job of a terabyte is large");
        (job.maps, job.input) = (4, Bytes(1 << 40));
        assert!(classifier.decision(&job) < 0.0, "and so is one that reads it in four splits");
    }

    #[test]
    fn jobs_of_one_class_teach_nothing_and_jobs_that_contradict_each_other_little() {
        let job = JobShape { maps: 3, reduces: 1, input: Bytes(9), shuffle: Bytes(9) };
        let refused = Classifier::train(&vec![(job, true); 60]).unwrap_err();
        assert_eq!(refused.to_string(), "60 points of one class: there is nothing to tell apart");
        let torn: Vec<_> = (0..60).map(|at| (job, at % 2 == 0)).collect();
        assert!(Classifier::train(&torn).unwrap().decision(&job).is_finite());
    }
}
