//! A logistic regression: the plain classifier beside the support vector machine.

/// Gradient steps; features are standardized, so that these are plenty.
const STEPS: u32 = 400;
const RATE: f64 = 1.0;
/// Holds weights back where a straight line tells all points apart.
const RIDGE: f64 = 1e-3;

/// Weights of the features, and of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Logistic {
    weights: [f64; 3],
    bias: f64,
}

impl Logistic {
    /// Trained by a bounded number of steps downhill.
    pub(super) fn train(points: &[[f64; 3]], positive: &[bool]) -> Self {
        let mut model = Self { weights: [0.0; 3], bias: 0.0 };
        let share = 1.0 / points.len().max(1) as f64;
        for _ in 0..STEPS {
            let (mut slope, mut slope_bias) = ([0.0; 3], 0.0);
            for (point, &class) in points.iter().zip(positive) {
                let error = 1.0 / (1.0 + (-model.decision(point)).exp()) - f64::from(u8::from(class));
                slope.iter_mut().zip(point).for_each(|(slope, value)| *slope += error * value);
                slope_bias += error;
            }
            for (weight, slope) in model.weights.iter_mut().zip(slope) {
                *weight -= RATE * share.mul_add(slope, RIDGE * *weight);
            }
            model.bias -= RATE * share * slope_bias;
        }
        model
    }

    /// Weights of the features, then of 1.
    pub(super) const fn numbers(&self) -> [f64; 4] {
        let [a, b, c] = self.weights;
        [a, b, c, self.bias]
    }

    /// From [`Self::numbers`].
    pub(super) const fn of([a, b, c, bias]: [f64; 4]) -> Self {
        Self { weights: [a, b, c], bias }
    }

    /// Above 0: positive.
    pub(super) fn decision(&self, point: &[f64; 3]) -> f64 {
        self.weights.iter().zip(point).map(|(weight, value)| weight * value).sum::<f64>() + self.bias
    }
}
