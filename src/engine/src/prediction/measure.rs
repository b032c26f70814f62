//! Medians, and how far a prediction was off.

use super::runs::Run;
use hintd_model::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};

/// How far predictions were off, each made from earlier runs alone.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Errors {
    /// Runs that were predicted.
    pub runs: usize,
    /// Mean error of a run; 0 without any.
    pub mean: f64,
    /// Median error of a run; 0 without any.
    pub median: f64,
}

impl Errors {
    /// Of runs' errors.
    pub(super) fn of(mut errors: Vec<f64>) -> Self {
        if errors.is_empty() {
            return Self::default();
        }
        errors.sort_unstable_by(f64::total_cmp);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        Self { runs: errors.len(), mean, median: errors[errors.len() / 2] }
    }
}

/// The upper median of each characteristic; `None` without runs.
pub(super) fn median(runs: &[&Run]) -> Option<Run> {
    let of = |value: fn(&Run) -> u64| {
        let mut values: Vec<u64> = runs.iter().map(|run| value(run)).collect();
        let middle = values.len() / 2;
        (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
    };
    let tasks = |tasks: u64| u32::try_from(tasks).expect("it was a u32 before");
    Some(Run {
        submitted: hintd_model::units::Timestamp(of(|run| run.submitted.0)?),
        maps: (tasks(of(|run| run.maps.0.into())?), Micros(of(|run| run.maps.1.0)?)),
        reduces: (tasks(of(|run| run.reduces.0.into())?), Micros(of(|run| run.reduces.1.0)?)),
        input: Bytes(of(|run| run.input.0)?),
        shuffle: Bytes(of(|run| run.shuffle.0)?),
        application: None,
        counted: false,
        ran_on: None,
    })
}

/// |real − predicted| ÷ real (004 §4.3.5), the mean over input, shuffle and work of both stages: none is larger than
/// [`ERROR_CAP`], or a single run of nothing would be all that a mean shows.
pub(super) fn error(predicted: &Run, real: &Run) -> f64 {
    let work = |(tasks, time): (u32, Micros)| f64::from(tasks) * time.as_f64();
    let pairs = [
        (predicted.input.as_f64(), real.input.as_f64()),
        (predicted.shuffle.as_f64(), real.shuffle.as_f64()),
        (work(predicted.maps), work(real.maps)),
        (work(predicted.reduces), work(real.reduces)),
    ];
    let off = |(predicted, real): &(f64, f64)| match (predicted - real).abs() {
        0.0 => 0.0,
        apart if *real > 0.0 => (apart / real).min(ERROR_CAP),
        _ => ERROR_CAP,
    };
    pairs.iter().map(off).sum::<f64>() / pairs.len() as f64
}

/// An error of one characteristic of one run counts for no more.
const ERROR_CAP: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::Timestamp;

    fn run(scale: u64) -> Run {
        let times = |n| Micros(n * scale);
        let (maps, reduces) = ((4, times(10)), (2, times(20)));
        let (input, shuffle) = (Bytes(100 * scale), Bytes(50 * scale));
        Run {
            submitted: Timestamp(scale),
            maps,
            reduces,
            input,
            shuffle,
            application: None,
            counted: false,
            ran_on: None,
        }
    }

    #[test]
    fn the_median_is_taken_of_each_characteristic() {
        let [a, b, mut c] = [run(1), run(2), run(300)];
        c.shuffle = Bytes(0);
        let median = median(&[&a, &b, &c]).unwrap();
        assert_eq!((median.input, median.shuffle, median.maps.1), (Bytes(200), Bytes(50), Micros(20)));
        assert_eq!(super::median(&[]), None);
    }

    #[test]
    fn an_error_is_relative_to_what_was() {
        assert_eq!(error(&run(1), &run(1)), 0.0);
        assert_eq!(error(&run(1), &run(2)), 0.5);
        assert_eq!(error(&run(100), &run(1)), 1.0, "capped");
        let mut nothing = run(1);
        nothing.shuffle = Bytes(0);
        assert_eq!(error(&nothing, &nothing), 0.0, "a shuffle of nothing is predicted well by nothing");
        assert_eq!(error(&run(1), &nothing), 0.25);
    }

    #[test]
    fn errors_are_summed_up_as_mean_and_median() {
        assert_eq!(Errors::of(vec![0.75, 0.0, 0.0]), Errors { runs: 3, mean: 0.25, median: 0.0 });
        assert_eq!(Errors::of(vec![]), Errors::default());
    }
}
