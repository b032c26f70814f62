//! Task times by class, learnt from jobs that finished: what the stated time model is off by.
//!
//! For either class and stage a straight line through ln(measured ÷ stated) over the job's input (at log scale) and its
//! shuffle ratio. Beyond the inputs and ratios that were seen it goes on level: the policy itself keeps large jobs off
//! scale-up machines, so nothing is measured of them there, and the stated model has to say it. Runs of which nobody told what
//! they read are judged as requests that tell nothing are, and their times are left out: they would be held against a guess.

use super::classes::Side;
use super::time::{BLOCK, JobShape, TimeModel};
use crate::learn::FinishedJob;
use hintd_model::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};

/// Jobs of a class from which on their times count.
const JOBS_MIN: usize = 5;
/// Of a thousand containers, how many have to be of one class for the job to tell how fast that class is.
const MOSTLY: u16 = 900;
/// Holds slopes back where inputs or ratios are all alike.
const RIDGE: f64 = 0.05;
/// A task that took e⁴ (55) times as long as stated, or as short, tells no more than that.
const OFF_MAX: f64 = 4.0;

/// How far off the stated time of a task is, by input and shuffle ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Line {
    level: f64,
    slopes: [f64; 2],
    means: [f64; 2],
    /// What was seen: least and most of either feature.
    seen: [[f64; 2]; 2],
}

/// Lines by side and stage; none where too little was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct TaskTimes {
    lines: [[Option<Line>; 2]; 2],
}

const SIDES: [Side; 2] = [Side::Up, Side::Out];

impl TaskTimes {
    /// Learnt from jobs; those that ran on both classes tell nothing of either.
    pub(super) fn learn(model: &TimeModel, jobs: &[FinishedJob]) -> Self {
        let line = |side: Side, stage: usize| {
            let measured = jobs.iter().filter(|job| side_of(job) == Some(side));
            let points: Vec<Point> =
                measured.filter_map(|job| Some((features(&shape(job)), off(model, job, side, stage)?))).collect();
            Line::through(&points)
        };
        Self { lines: SIDES.map(|side| [0, 1].map(|stage| line(side, stage))) }
    }

    /// Whether all numbers are such that times come of them.
    pub(super) fn are_finite(&self) -> bool {
        self.lines.iter().flatten().flatten().all(|line| {
            let numbers = line.slopes.iter().chain(&line.means).chain(line.seen.as_flattened()).chain([&line.level]);
            numbers.copied().all(f64::is_finite)
        })
    }

    /// What the stated time of a task is to be multiplied by. A class of which nothing was measured is as much off as the
    /// other: its tasks are the same, and how fast it is against the other is stated.
    fn factor(&self, side: Side, stage: usize, job: &JobShape) -> f64 {
        let of = |side: Side| self.lines[side as usize][stage];
        let other = if side == Side::Up { Side::Out } else { Side::Up };
        of(side).or_else(|| of(other)).map_or(1.0, |line| line.at(features(job)).exp())
    }

    /// Seconds of one task.
    fn task_s(&self, model: &TimeModel, side: Side, stage: usize, job: &JobShape) -> f64 {
        job.stages()[stage].task_s(model.speed_of(side, job)) * self.factor(side, stage, job)
    }

    /// Seconds for the job alone on so many containers of a class.
    pub(super) fn seconds(&self, model: &TimeModel, side: Side, job: &JobShape, containers: u64) -> f64 {
        self.seconds_of(model, side, job, containers, [true; 2])
    }

    /// The same for those stages alone that are `asked` for.
    pub(super) fn seconds_of(
        &self,
        model: &TimeModel,
        side: Side,
        job: &JobShape,
        containers: u64,
        asked: [bool; 2],
    ) -> f64 {
        let stages = job.stages();
        let seconds = |stage: usize| stages[stage].waves(containers) * self.task_s(model, side, stage, job);
        (0..2).filter(|&stage| asked[stage]).map(seconds).sum()
    }

    /// Whether the job ends sooner on a scale-up machine than on the scale-out machines that cost as much.
    pub(super) fn small(&self, model: &TimeModel, job: &JobShape) -> bool {
        let [up, out] = SIDES.map(|side| self.seconds(model, side, job, model.containers(side)));
        up < out
    }

    /// Errors of predicted task times on jobs whose class is known, as shares of what they took.
    pub(super) fn errors(&self, model: &TimeModel, jobs: &[FinishedJob]) -> Vec<f64> {
        let mut errors = Vec::new();
        for job in jobs {
            let Some(side) = side_of(job) else { continue };
            for stage in 0..2 {
                let Some(measured) = measured(job, stage) else { continue };
                let predicted = self.task_s(model, side, stage, &shape(job));
                errors.push((predicted / measured.as_secs_f64() - 1.0).abs());
            }
        }
        errors
    }
}

/// Jobs whose times tell of either class.
pub(super) fn timed(jobs: &[FinishedJob]) -> [u64; 2] {
    SIDES.map(|side| jobs.iter().filter(|job| side_of(job) == Some(side) && measured(job, 0).is_some()).count() as u64)
}

/// As the job would be judged were it asked for again: a map of which nobody told what it reads counts as a block.
pub(super) fn shape(job: &FinishedJob) -> JobShape {
    let unknown = Bytes(job.maps.0.saturating_mul(BLOCK.0));
    let input = if job.input == Bytes::ZERO { unknown } else { job.input };
    JobShape { maps: job.maps.0, reduces: job.reduces.0, input, shuffle: job.shuffle }
}

/// The class that nearly all of it ran on.
fn side_of(job: &FinishedJob) -> Option<Side> {
    match job.on_class? {
        MOSTLY.. => Some(Side::Up),
        few if few <= 1_000 - MOSTLY => Some(Side::Out),
        _ => None,
    }
}

/// What a task of the stage took, where that and its bytes are known.
fn measured(job: &FinishedJob, stage: usize) -> Option<Micros> {
    let ((tasks, took), bytes) = [(job.maps, job.input), (job.reduces, job.shuffle)][stage];
    let is_known = tasks > 0 && took > Micros::ZERO && bytes > Bytes::ZERO && job.input > Bytes::ZERO;
    is_known.then_some(took)
}

/// ln(measured ÷ stated).
fn off(model: &TimeModel, job: &FinishedJob, side: Side, stage: usize) -> Option<f64> {
    let shape = shape(job);
    let stated = shape.stages()[stage].task_s(model.speed_of(side, &shape));
    measured(job, stage).map(|took| (took.as_secs_f64() / stated).ln().clamp(-OFF_MAX, OFF_MAX))
}

/// A job's features, and the logarithm of what its task time is off by.
type Point = ([f64; 2], f64);

fn features(job: &JobShape) -> [f64; 2] {
    let ratio = if job.input.0 == 0 { 0.0 } else { (job.shuffle.as_f64() / job.input.as_f64()).min(1.0) };
    [job.input.as_f64().ln_1p(), ratio]
}

impl Line {
    /// Least squares; `None` for too few points.
    fn through(points: &[Point]) -> Option<Self> {
        if points.len() < JOBS_MIN {
            return None;
        }
        let mean = |value: &dyn Fn(&Point) -> f64| points.iter().map(value).sum::<f64>() / points.len() as f64;
        let level = mean(&|point| point.1);
        let means = [0, 1].map(|at| mean(&|point| point.0[at]));
        let spread = |a: usize, b: usize| mean(&|point| (point.0[a] - means[a]) * (point.0[b] - means[b]));
        let along = |at: usize| mean(&|point| (point.0[at] - means[at]) * (point.1 - level));
        let (own, cross, steps) = ([spread(0, 0) + RIDGE, spread(1, 1) + RIDGE], spread(0, 1), [along(0), along(1)]);
        // Above 0: spreads are those of a covariance, and the ridge is added to both of its diagonal.
        let determinant = own[0] * own[1] - cross * cross;
        let slopes = [
            (steps[0] * own[1] - steps[1] * cross) / determinant,
            (steps[1] * own[0] - steps[0] * cross) / determinant,
        ];
        let seen = [0, 1].map(|at| {
            let values = || points.iter().map(|point| point.0[at]);
            [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
        });
        Some(Self { level, slopes, means, seen })
    }

    fn at(&self, features: [f64; 2]) -> f64 {
        let step = |at: usize| {
            let [low, high] = self.seen[at];
            self.slopes[at] * (features[at].max(low).min(high) - self.means[at])
        };
        (self.level + step(0) + step(1)).clamp(-OFF_MAX, OFF_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BLOCK, ScaleUpOutParams};
    use super::*;
    use hintd_model::units::Bytes;

    /// A job of so many blocks whose tasks take `times` the stated time on that side.
    fn job(blocks: u64, side: Side, times: f64) -> FinishedJob {
        let model = ScaleUpOutParams::default().time_model();
        let (input, shuffle) = (Bytes(blocks * BLOCK.0), Bytes(blocks * BLOCK.0 / 4));
        let shape = JobShape { maps: blocks, reduces: 1 + blocks / 10, input, shuffle };
        let took =
            |stage: usize| Micros((shape.stages()[stage].task_s(model.speed_of(side, &shape)) * times * 1e6) as u64);
        let on_class = Some(if side == Side::Up { 1_000 } else { 0 });
        FinishedJob { maps: (blocks, took(0)), reduces: (shape.reduces, took(1)), input, shuffle, on_class }
    }

    #[test]
    fn without_history_times_are_the_stated_ones() {
        let model = ScaleUpOutParams::default().time_model();
        for job in [job(1, Side::Out, 1.0), job(700, Side::Out, 1.0)].map(|job| shape(&job)) {
            let times = TaskTimes::learn(&model, &[]);
            let stated = [model.scale_up_s(&job), model.scale_out_s(&job)];
            let ours = SIDES.map(|side| times.seconds(&model, side, &job, model.containers(side)));
            assert!(ours.iter().zip(stated).all(|(ours, stated)| (ours / stated - 1.0).abs() < 1e-12), "{ours:?}");
            assert_eq!(times.small(&model, &job), model.small(&job));
        }
    }

    #[test]
    fn what_a_class_takes_longer_than_stated_is_learnt_and_moves_jobs() {
        let model = ScaleUpOutParams::default().time_model();
        let small: Vec<u64> = (1..=40).map(|at| at * 3).collect();
        let history = |up: f64, out: f64| -> Vec<FinishedJob> {
            small.iter().flat_map(|&at| [job(at, Side::Up, up), job(at, Side::Out, out)]).collect()
        };
        let slow = TaskTimes::learn(&model, &history(3.0, 1.5));
        let shape = shape(&job(50, Side::Up, 1.0));
        assert!(model.small(&shape) && !slow.small(&model, &shape), "twice as slow against the others as stated");
        let jobs = history(3.0, 1.5);
        assert!(slow.errors(&model, &jobs).iter().all(|error| *error < 1e-3));
        assert!(TaskTimes::default().errors(&model, &jobs).iter().any(|error| *error > 0.3));
        assert_eq!(timed(&jobs), [40, 40]);
    }

    #[test]
    fn a_class_of_which_nothing_was_measured_is_as_much_off_as_the_other() {
        let model = ScaleUpOutParams::default().time_model();
        let history: Vec<_> = (1..60).map(|at| job(at, Side::Out, 2.0)).collect();
        let times = TaskTimes::learn(&model, &history);
        for blocks in [1, 100, 700] {
            let shape = shape(&job(blocks, Side::Out, 1.0));
            assert_eq!(times.small(&model, &shape), model.small(&shape), "{blocks} blocks");
        }
        let mixed: Vec<_> = history.iter().map(|job| FinishedJob { on_class: Some(500), ..*job }).collect();
        assert_eq!(TaskTimes::learn(&model, &mixed), TaskTimes::default(), "what ran on both tells of neither");
        assert_eq!(TaskTimes::learn(&model, &history[..4]), TaskTimes::default(), "too few");
    }

    #[test]
    fn a_run_of_which_nobody_told_the_bytes_counts_by_its_maps_and_tells_of_no_times() {
        let model = ScaleUpOutParams::default().time_model();
        let untold = |maps: u64| FinishedJob { input: Bytes::ZERO, shuffle: Bytes::ZERO, ..job(maps, Side::Out, 3.0) };
        for (maps, small) in [(8, true), (250, true), (260, false), (5_000, false)] {
            assert_eq!(TaskTimes::default().small(&model, &shape(&untold(maps))), small, "{maps} maps");
        }
        let jobs: Vec<_> = (1..60).map(untold).collect();
        assert_eq!(TaskTimes::learn(&model, &jobs), TaskTimes::default());
        assert_eq!((timed(&jobs), TaskTimes::default().errors(&model, &jobs)), ([0, 0], vec![]));
        // Without its shuffle a reduce is as little to be timed.
        let unshuffled: Vec<_> =
            (1..60).map(|at| FinishedJob { shuffle: Bytes::ZERO, ..job(at, Side::Out, 2.0) }).collect();
        let times = TaskTimes::learn(&model, &unshuffled);
        assert!(times.lines[1][0].is_some() && times.lines[1][1].is_none());
    }

    #[test]
    fn beyond_what_was_seen_lines_go_on_level() {
        let model = ScaleUpOutParams::default().time_model();
        // The larger the slower, as far as was seen.
        let history: Vec<_> = (1..40).map(|at| job(at, Side::Up, 1.0 + at as f64 / 20.0)).collect();
        let times = TaskTimes::learn(&model, &history);
        let factor = |blocks| times.factor(Side::Up, 0, &shape(&job(blocks, Side::Up, 1.0)));
        assert!(factor(39) > factor(2));
        assert_eq!(factor(39), factor(4_000));
    }
}
