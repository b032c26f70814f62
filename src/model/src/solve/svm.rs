//! A support vector machine with a radial kernel: two classes of points, told apart by the sign of a decision value.
//!
//! C-SVC (Cortes and Vapnik 1995), trained by sequential minimal optimization: of the pairs that break the conditions of
//! the optimum the one that breaks them most (Keerthi et al. 2001), moved to the best values it can have. Training is
//! bounded by points and steps; the same points in the same order give the same machine.

/// Most points to train from: the kernel's matrix is kept, 32 MB of them.
pub const MOST_POINTS: usize = 2_000;

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SvmSettings {
    /// Price of a point on the wrong side (C), above 0.
    pub penalty: f64,
    /// The kernel is exp(−gamma · distance²); above 0.
    pub gamma: f64,
    /// A pair is moved only if it breaks the conditions by more than this.
    pub tolerance: f64,
    /// Most moves of a pair.
    pub steps: u32,
}

impl Default for SvmSettings {
    fn default() -> Self {
        Self { penalty: 10.0, gamma: 1.0, tolerance: 1e-3, steps: 20_000 }
    }
}

/// A trained machine over points of `N` numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Svm<const N: usize> {
    gamma: f64,
    /// Support vectors, each with its multiplier, negative for points of the negative class.
    support: Vec<([f64; N], f64)>,
    offset: f64,
    /// Whether no pair breaks the conditions any more; else the steps were used up.
    pub converged: bool,
}

/// Points that no machine can be trained from.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SvmError {
    /// Points and labels differ in number.
    #[error("{points} points have {labels} labels")]
    Uneven {
        /// Points.
        points: usize,
        /// Labels.
        labels: usize,
    },
    /// More than [`MOST_POINTS`].
    #[error("{0} points, more than {MOST_POINTS}")]
    TooMany(usize),
    /// All points are of one class, or there are none.
    #[error("{0} points of one class: there is nothing to tell apart")]
    OneClass(usize),
    /// A number that can't be meant.
    #[error("{what} is {value}")]
    Value {
        /// Which.
        what: &'static str,
        /// The number.
        value: f64,
    },
}

impl<const N: usize> Svm<N> {
    /// Trained from `points`, of which those marked in `positive` have positive decision values.
    ///
    /// # Errors
    /// [`SvmError`].
    pub fn train(points: &[[f64; N]], positive: &[bool], settings: &SvmSettings) -> Result<Self, SvmError> {
        check(points, positive, settings)?;
        let mut training = Training::new(points, positive, settings);
        let mut converged = false;
        for _ in 0..settings.steps {
            converged = !training.step();
            if converged {
                break;
            }
        }
        let offset = training.offset();
        let signed = points.iter().zip(&training.alpha).zip(&training.sign);
        let support =
            signed.filter(|((_, alpha), _)| **alpha > 0.0).map(|((point, alpha), sign)| (*point, alpha * sign));
        Ok(Self { gamma: settings.gamma, support: support.collect(), offset, converged })
    }

    /// On which side of the boundary the point lies, and how far: positive, or negative.
    #[must_use]
    pub fn decision(&self, point: &[f64; N]) -> f64 {
        self.support.iter().map(|(vector, weight)| weight * kernel(self.gamma, vector, point)).sum::<f64>()
            - self.offset
    }

    /// How near the point is to those that the machine goes by: 1 at one of them, and the further from all the nearer to 0.
    /// There the decision value is next to nothing but what is taken off the sum of kernels, whose sign says nothing.
    #[must_use]
    pub fn likeness(&self, point: &[f64; N]) -> f64 {
        self.support.iter().map(|(vector, _)| kernel(self.gamma, vector, point)).fold(0.0, f64::max)
    }

    /// How many points the boundary hangs on.
    #[must_use]
    pub fn support_vectors(&self) -> usize {
        self.support.len()
    }

    /// Width of the kernel, and what is taken off the sum of kernels: with [`Self::support`] all that the machine is.
    #[must_use]
    pub const fn gamma_and_offset(&self) -> (f64, f64) {
        (self.gamma, self.offset)
    }

    /// Support vectors, each with its multiplier, negative for points of the negative class.
    #[must_use]
    pub fn support(&self) -> &[([f64; N], f64)] {
        &self.support
    }

    /// A machine that was trained before and written down.
    ///
    /// # Errors
    /// [`SvmError::Value`] for a number that no training gives, [`SvmError::TooMany`] support vectors.
    pub fn from_parts(
        (gamma, offset): (f64, f64),
        support: Vec<([f64; N], f64)>,
        converged: bool,
    ) -> Result<Self, SvmError> {
        if support.len() > MOST_POINTS {
            return Err(SvmError::TooMany(support.len()));
        }
        let numbers = support.iter().flat_map(|(vector, weight)| vector.iter().chain([weight])).chain([&offset]);
        if let Some(value) = numbers.copied().find(|number| !number.is_finite()) {
            return Err(SvmError::Value { what: "a number of the machine", value });
        }
        if !(gamma.is_finite() && gamma > 0.0) {
            return Err(SvmError::Value { what: "gamma", value: gamma });
        }
        Ok(Self { gamma, support, offset, converged })
    }
}

/// Share of points on the right side when each of `folds` parts is judged by a machine trained from the others; parts have
/// the classes' shares, point by point in turn.
///
/// # Errors
/// As of [`Svm::train`], and fewer points of a class than folds as [`SvmError::OneClass`].
pub fn cross_validate<const N: usize>(
    points: &[[f64; N]],
    positive: &[bool],
    folds: usize,
    settings: &SvmSettings,
) -> Result<f64, SvmError> {
    check(points, positive, settings)?;
    let mut seen = [0_usize; 2];
    let mut fold_of = Vec::with_capacity(points.len());
    for &class in positive {
        fold_of.push(seen[usize::from(class)] % folds.max(2));
        seen[usize::from(class)] += 1;
    }
    let mut right = 0_usize;
    for fold in 0..folds.max(2) {
        let others = || (0..points.len()).filter(|&at| fold_of[at] != fold);
        let train: Vec<[f64; N]> = others().map(|at| points[at]).collect();
        let labels: Vec<bool> = others().map(|at| positive[at]).collect();
        let svm = Svm::train(&train, &labels, settings)?;
        let judged = (0..points.len()).filter(|&at| fold_of[at] == fold);
        right += judged.filter(|&at| (svm.decision(&points[at]) > 0.0) == positive[at]).count();
    }
    Ok(right as f64 / points.len() as f64)
}

fn check<const N: usize>(points: &[[f64; N]], positive: &[bool], settings: &SvmSettings) -> Result<(), SvmError> {
    if points.len() != positive.len() {
        return Err(SvmError::Uneven { points: points.len(), labels: positive.len() });
    }
    if points.len() > MOST_POINTS {
        return Err(SvmError::TooMany(points.len()));
    }
    for (what, value) in [("penalty", settings.penalty), ("gamma", settings.gamma), ("tolerance", settings.tolerance)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(SvmError::Value { what, value });
        }
    }
    if let Some(&value) = points.iter().flatten().find(|value| !value.is_finite()) {
        return Err(SvmError::Value { what: "a coordinate", value });
    }
    if positive.iter().all(|&class| class) || !positive.iter().any(|&class| class) {
        return Err(SvmError::OneClass(points.len()));
    }
    Ok(())
}

fn kernel<const N: usize>(gamma: f64, a: &[f64; N], b: &[f64; N]) -> f64 {
    let squared: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (-gamma * squared).exp()
}

/// The dual: minimize ½ Σ αᵢαⱼyᵢyⱼKᵢⱼ − Σ αᵢ with 0 ≤ α ≤ C and Σ αᵢyᵢ = 0.
struct Training {
    count: usize,
    /// Row by row.
    kernels: Vec<f64>,
    sign: Vec<f64>,
    alpha: Vec<f64>,
    /// Of the dual's objective.
    gradient: Vec<f64>,
    penalty: f64,
    tolerance: f64,
}

impl Training {
    fn new<const N: usize>(points: &[[f64; N]], positive: &[bool], settings: &SvmSettings) -> Self {
        let count = points.len();
        let row = |a| points.iter().map(move |b| kernel(settings.gamma, a, b));
        Self {
            count,
            kernels: points.iter().flat_map(row).collect(),
            sign: positive.iter().map(|&class| if class { 1.0 } else { -1.0 }).collect(),
            alpha: vec![0.0; count],
            gradient: vec![-1.0; count],
            penalty: settings.penalty,
            tolerance: settings.tolerance,
        }
    }

    /// Whether α · y may grow.
    fn may_grow(&self, at: usize) -> bool {
        if self.sign[at] > 0.0 { self.alpha[at] < self.penalty } else { self.alpha[at] > 0.0 }
    }

    /// Whether α · y may shrink.
    fn may_shrink(&self, at: usize) -> bool {
        if self.sign[at] > 0.0 { self.alpha[at] > 0.0 } else { self.alpha[at] < self.penalty }
    }

    /// Moves the worst pair; false: none breaks the conditions.
    fn step(&mut self) -> bool {
        let (mut up, mut down) = (None::<(usize, f64)>, None::<(usize, f64)>);
        for at in 0..self.count {
            let value = -self.sign[at] * self.gradient[at];
            if self.may_grow(at) && up.is_none_or(|(_, most)| value > most) {
                up = Some((at, value));
            }
            if self.may_shrink(at) && down.is_none_or(|(_, least)| value < least) {
                down = Some((at, value));
            }
        }
        let (Some((i, most)), Some((j, least))) = (up, down) else { return false };
        if most - least <= self.tolerance {
            return false;
        }
        // Along α_i y_i += t, α_j y_j −= t the objective is a parabola; t ends where it is least, or at a bound.
        let curve = 2.0 - 2.0 * self.kernels[i * self.count + j];
        let left = |at: usize, grows: bool| {
            if (self.sign[at] > 0.0) == grows { self.penalty - self.alpha[at] } else { self.alpha[at] }
        };
        let (most_i, most_j) = (left(i, true), left(j, false));
        let move_by = ((most - least) / curve.max(1e-12)).min(most_i).min(most_j);
        for (at, by) in [(i, move_by * self.sign[i]), (j, -move_by * self.sign[j])] {
            self.alpha[at] += by;
        }
        // Exactly at its bound, or rounding would leave it a hair inside for ever.
        self.snap(i, move_by >= most_i, true);
        self.snap(j, move_by >= most_j, false);
        let (row_i, row_j) = (i * self.count, j * self.count);
        for at in 0..self.count {
            self.gradient[at] += self.sign[at] * move_by * (self.kernels[row_i + at] - self.kernels[row_j + at]);
        }
        true
    }

    fn snap(&mut self, at: usize, reached: bool, grows: bool) {
        if reached {
            self.alpha[at] = if (self.sign[at] > 0.0) == grows { self.penalty } else { 0.0 };
        }
    }

    /// The mean over points on the margin; without any, the middle of what is allowed.
    fn offset(&self) -> f64 {
        let value = |at: usize| self.sign[at] * self.gradient[at];
        let free: Vec<f64> =
            (0..self.count).filter(|&at| self.alpha[at] > 0.0 && self.alpha[at] < self.penalty).map(value).collect();
        if !free.is_empty() {
            return free.iter().sum::<f64>() / free.len() as f64;
        }
        let high = (0..self.count).filter(|&at| self.may_grow(at)).map(value).fold(f64::INFINITY, f64::min);
        let low = (0..self.count).filter(|&at| self.may_shrink(at)).map(value).fold(f64::NEG_INFINITY, f64::max);
        f64::midpoint(high, low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn objective(training: &Training, alpha: &[f64]) -> f64 {
        let mut sum = 0.0;
        for i in 0..training.count {
            for j in 0..training.count {
                let kernel = training.kernels[i * training.count + j];
                sum += 0.5 * alpha[i] * alpha[j] * training.sign[i] * training.sign[j] * kernel;
            }
            sum -= alpha[i];
        }
        sum
    }

    #[test]
    fn two_points_have_the_machine_that_is_worked_out_by_hand() {
        // α = 1 ÷ (1 − K) for both, the boundary in the middle, decision values 1 and −1 at the points.
        let settings = SvmSettings { penalty: 100.0, gamma: 0.5, ..SvmSettings::default() };
        let svm = Svm::train(&[[0.0], [2.0]], &[true, false], &settings).unwrap();
        assert!(svm.converged);
        assert!((svm.decision(&[0.0]) - 1.0).abs() < 1e-9 && (svm.decision(&[2.0]) + 1.0).abs() < 1e-9);
        assert!(svm.decision(&[1.0]).abs() < 1e-9);
        assert_eq!(svm.support_vectors(), 2);
    }

    #[test]
    fn a_ring_around_a_disk_is_told_apart() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut draw = || [random.random_range(-2.0..2.0), random.random_range(-2.0..2.0)];
        let points: Vec<[f64; 2]> = (0..300).map(|_| draw()).collect();
        let inside = |point: &[f64; 2]| point[0].hypot(point[1]) < 1.1;
        let labels: Vec<bool> = points.iter().map(inside).collect();
        let svm = Svm::train(&points, &labels, &SvmSettings::default()).unwrap();
        let unseen: Vec<[f64; 2]> = (0..500).map(|_| draw()).collect();
        let right = unseen.iter().filter(|point| (svm.decision(point) > 0.0) == inside(point)).count();
        assert!(right >= 480, "{right} of 500");
        let share = cross_validate(&points, &labels, 5, &SvmSettings::default()).unwrap();
        assert!(share > 0.93, "{share}");
        assert_eq!(Svm::train(&points, &labels, &SvmSettings::default()).unwrap(), svm, "the same again");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// The conditions of the optimum hold, and no small move of any pair makes the objective less.
        #[test]
        fn what_converged_is_the_optimum(seed: u64, count in 4_usize..14, penalty in 0.2..20.0, gamma in 0.1..3.0) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let points: Vec<[f64; 2]> = (0..count).map(|_| [random.random(), random.random()]).collect();
            let labels: Vec<bool> = (0..count).map(|at| at == 0 || at > 1 && random.random_bool(0.5)).collect();
            let settings = SvmSettings { penalty, gamma, tolerance: 1e-9, steps: 200_000 };
            let mut training = Training::new(&points, &labels, &settings);
            let mut steps = 0;
            while training.step() && steps < settings.steps {
                steps += 1;
            }
            let least = objective(&training, &training.alpha);
            let balance: f64 = training.alpha.iter().zip(&training.sign).map(|(alpha, sign)| alpha * sign).sum();
            prop_assert!(balance.abs() < 1e-9);
            prop_assert!(training.alpha.iter().all(|alpha| (0.0..=penalty).contains(alpha)));
            for i in 0..count {
                for j in 0..count {
                    for by in [1e-3, 1e-2, 0.1] {
                        let mut alpha = training.alpha.clone();
                        alpha[i] += by * training.sign[i];
                        alpha[j] -= by * training.sign[j];
                        if i != j && alpha.iter().all(|alpha| (0.0..=penalty).contains(alpha)) {
                            prop_assert!(objective(&training, &alpha) >= least - 1e-7, "{i} {j} {by}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_machine_that_was_written_down_decides_the_same_and_one_that_can_not_be_is_refused() {
        let svm = Svm::train(&[[0.0], [2.0]], &[true, false], &SvmSettings::default()).unwrap();
        let again = |parts, support: &[([f64; 1], f64)]| Svm::from_parts(parts, support.to_vec(), svm.converged);
        assert_eq!(again(svm.gamma_and_offset(), svm.support()), Ok(svm.clone()));
        let refused = |parts, support: &[([f64; 1], f64)]| again(parts, support).unwrap_err().to_string();
        assert_eq!(refused((0.0, 0.0), &[]), "gamma is 0");
        assert_eq!(refused((1.0, f64::NAN), &[]), "a number of the machine is NaN");
        assert_eq!(refused((1.0, 0.0), &[([f64::INFINITY], 1.0)]), "a number of the machine is inf");
        assert_eq!(refused((1.0, 0.0), &vec![([0.0], 1.0); 2001]), "2001 points, more than 2000");
    }

    #[test]
    fn points_that_nothing_can_be_learnt_from_are_refused_with_the_value() {
        let train = |points: &[[f64; 1]], labels: &[bool], settings| {
            Svm::train(points, labels, &settings).unwrap_err().to_string()
        };
        let plain = SvmSettings::default();
        assert_eq!(train(&[[1.0]], &[true, false], plain), "1 points have 2 labels");
        assert_eq!(train(&[], &[], plain), "0 points of one class: there is nothing to tell apart");
        assert_eq!(train(&[[1.0], [2.0]], &[true; 2], plain), "2 points of one class: there is nothing to tell apart");
        assert_eq!(train(&[[f64::NAN], [2.0]], &[true, false], plain), "a coordinate is NaN");
        assert_eq!(train(&vec![[0.0]; 2001], &vec![true; 2001], plain), "2001 points, more than 2000");
        let penalty = SvmSettings { penalty: -1.0, ..plain };
        assert_eq!(train(&[[1.0], [2.0]], &[true, false], penalty), "penalty is -1");
    }

    #[test]
    fn points_that_contradict_each_other_end_within_the_steps() {
        let settings = SvmSettings { steps: 50, ..SvmSettings::default() };
        let svm =
            Svm::train(&[[1.0]; 10], &[true, false, true, false, true, false, true, false, true, true], &settings);
        assert!(svm.unwrap().decision(&[1.0]).is_finite());
    }
}
