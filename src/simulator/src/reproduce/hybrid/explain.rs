//! What explains a figure without a run: how much work small jobs are, and how many jobs an error in the shuffle moves.

use super::world;
use crate::reproduce::{ReproduceError, Row, RunContext};
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

/// How many of the jobs the classifier calls otherwise under each error, every shuffle known.
pub(super) fn error(context: &RunContext<'_>, classifier: &Classifier) -> Result<Vec<Row>, ReproduceError> {
    let rows = ERRORS.iter().map(|(factor, name)| {
        let count = |seed| Ok(moved(&world::jobs(context.scale, seed, true), classifier, *factor) as f64);
        let name = format!("jobs that an error of {name} moves to the other class");
        Ok(Row::without_figure(&name, "jobs", context.per_seed(count)?)?)
    });
    rows.collect()
}

pub(super) fn moved(jobs: &[TraceJob], classifier: &Classifier, factor: f64) -> usize {
    let small = |job: &JobShape| classifier.decision(job) > 0.0;
    let shapes = jobs.iter().map(|job| world::job_shape(job, &JobModel::default()));
    let off = |job: &JobShape| JobShape { shuffle: Bytes((job.shuffle.as_f64() * factor) as u64), ..*job };
    shapes.filter(|job| small(job) != small(&off(job))).count()
}
