//! What explains a figure without a run: how much work small jobs are, and how many jobs an error in the shuffle moves.

use super::systems::settings;
use super::world;
use crate::reproduce::{ReproduceError, Row, RunContext};
use crate::yarn::known_shuffle;
use crate::{JobModel, TraceJob};
use hintd_model::units::Bytes;
use hintd_policy::scale_up_out::{Classifier, JobShape, ScaleUpOutParams, TimeModel};

/// Work of a day's jobs, in container-seconds on scale-out machines.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Work {
    pub(super) small: f64,
    pub(super) large: f64,
}

impl Work {
    pub(super) fn of(jobs: &[TraceJob]) -> Self {
        let (params, model) = (ScaleUpOutParams::default(), JobModel::default());
        let mut work = Self::default();
        for job in jobs {
            let seconds = TimeModel::seconds(&world::job_shape(job, &model), 1, 1.0);
            *(if world::small(job, &params) { &mut work.small } else { &mut work.large }) += seconds;
        }
        work
    }

    /// Of all work, small jobs'.
    pub(super) fn small_share(&self) -> f64 {
        self.small / (self.small + self.large)
    }

    /// By how much, per cent, a makespan that is bound by work is shorter where small jobs cost nothing at all and large ones
    /// have `hybrid` containers in place of `all`.
    pub(super) fn most_saved(&self, hybrid: f64, all: f64) -> f64 {
        100.0 * (1.0 - self.large / hybrid * all / (self.small + self.large))
    }
}

/// How much a batch can gain at all, seed by seed.
pub(super) fn batch(context: &RunContext<'_>) -> Result<[Row; 2], ReproduceError> {
    let containers = |name| world::scale_out_containers(context.scale, name) as f64;
    let (hybrid, all) = (containers("scale-up-out"), containers("scale-out"));
    let work = context.per_seed(|seed| Ok(Work::of(&world::jobs(context.scale, seed, true))))?;
    let of = |value: &dyn Fn(&Work) -> f64| work.iter().map(value).collect::<Vec<f64>>();
    Ok([
        Row::without_figure("work of small jobs, of all work", "%", of(&|work: &Work| 100.0 * work.small_share()))?,
        Row::without_figure(
            "makespan by work alone less than on scale-out, small jobs at no cost",
            "%",
            of(&|work: &Work| work.most_saved(hybrid, all)),
        )?,
    ])
}

/// Predicted shuffle ÷ the true one, and what it is called.
const ERRORS: [(f64, &str); 5] = [(0.7, "-30 %"), (1.3, "30 %"), (0.5, "-50 %"), (2.0, "100 %"), (0.0, "-100 %")];

/// Errors of the runs, per cent at most.
pub(super) const RUNS: [u32; 3] = [10, 30, 100];

/// How many of the jobs the classifier calls otherwise: under each error for all, every shuffle known; and as the runs have
/// it, the shuffle of half of them known and each off by a factor of its own.
pub(super) fn error(context: &RunContext<'_>, classifier: &Classifier) -> Result<Vec<Row>, ReproduceError> {
    let jobs = |seed| world::jobs(context.scale, seed, true);
    let mut rows = Vec::new();
    for (factor, name) in ERRORS {
        let count = |seed| Ok(moved(&jobs(seed), classifier, factor) as f64);
        let name = format!("jobs that an error of {name} moves to the other class");
        rows.push(Row::without_figure(&name, "jobs", context.per_seed(count)?)?);
    }
    for percent in RUNS {
        let all = context.per_seed(|seed| Ok(Reclassified::of(&jobs(seed), classifier, seed, percent)))?;
        for (what, count) in [
            ("jobs to which {e} gives another class", (|told| told.moved) as fn(&Reclassified) -> usize),
            ("jobs to which {e} gives another decision value", |told| told.changed),
        ] {
            let name = what.replace("{e}", &format!("{percent} % error in a run"));
            rows.push(Row::without_figure(&name, "jobs", all.iter().map(|told| count(told) as f64).collect())?);
        }
    }
    Ok(rows)
}

/// What the error of a run does to what the queues are told, against the same run without error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reclassified {
    /// Jobs of another class.
    pub(super) moved: usize,
    /// Jobs with another decision value.
    pub(super) changed: usize,
}

impl Reclassified {
    pub(super) fn of(jobs: &[TraceJob], classifier: &Classifier, seed: u64, error_percent: u32) -> Self {
        let decisions = |percent| as_told(jobs, seed, percent).map(|job| classifier.decision(&job));
        let mut told = Self::default();
        for (exact, off) in decisions(0).zip(decisions(error_percent)) {
            told.moved += usize::from((exact > 0.0) != (off > 0.0));
            told.changed += usize::from(exact.to_bits() != off.to_bits());
        }
        told
    }
}

/// The jobs as the queues of a run are told of them.
fn as_told(jobs: &[TraceJob], seed: u64, error_percent: u32) -> impl Iterator<Item = JobShape> + '_ {
    let (settings, model) = (settings(seed, error_percent), JobModel { seed, ..JobModel::default() });
    (0_u64..).zip(jobs).map(move |(number, job)| {
        let shape = world::job_shape(job, &model);
        let known = known_shuffle(&settings, number, job, &model).filter(|_| shape.reduces > 0);
        JobShape { shuffle: known.unwrap_or_default(), ..shape }
    })
}

pub(super) fn moved(jobs: &[TraceJob], classifier: &Classifier, factor: f64) -> usize {
    let small = |job: &JobShape| classifier.decision(job) > 0.0;
    let shapes = jobs.iter().map(|job| world::job_shape(job, &JobModel::default()));
    let off = |job: &JobShape| JobShape { shuffle: Bytes((job.shuffle.as_f64() * factor) as u64), ..*job };
    shapes.filter(|job| small(job) != small(&off(job))).count()
}
