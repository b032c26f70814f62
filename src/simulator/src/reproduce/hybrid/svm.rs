//! What the classifier gets wrong, on a day that it was not trained from (§5.3.2, *Accuracy of SVM*).

use super::world;
use crate::reproduce::nas::day;
use crate::reproduce::{Better, Experiment, ReproduceError, Row, RunContext};
use crate::{JobModel, TraceJob};
use hintd_model::units::Bytes;
use hintd_policy::scale_up_out::{Classifier, JobShape, Mistakes, ScaleUpOutParams};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// §5.3.2.
pub const SVM: Experiment = Experiment {
    name: "hybrid-svm",
    paper: "004 (Li), chapter 5, §5.3.2",
    figure: "Accuracy of SVM: trained from one day, judged on another",
    settings: world::settings,
    quick_s: 7,
    full_s: 300,
    rows: &rows,
};

/// One seed's classifier on one trace.
#[derive(Debug, Clone, Copy)]
struct Judged {
    /// Every shuffle known; only that of a drawn half.
    machine: [Mistakes; 2],
    /// The regression, likewise.
    line: [Mistakes; 2],
}

fn judged(classifier: &Classifier, jobs: &[TraceJob], params: &ScaleUpOutParams, seed: u64) -> Judged {
    let model = JobModel::default();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut found = Judged { machine: Default::default(), line: Default::default() };
    for job in jobs {
        let (shape, small) = (world::job_shape(job, &model), world::small(job, params));
        let recurs = random.random_bool(0.5);
        let blind = JobShape { shuffle: if recurs { shape.shuffle } else { Bytes::ZERO }, ..shape };
        for (at, seen) in [shape, blind].iter().enumerate() {
            found.machine[at].judge(small, classifier.decision(seen) > 0.0);
            found.line[at].judge(small, classifier.logistic_decision(seen) > 0.0);
        }
    }
    found
}

/// The figure's two programs have their crosspoints the other way round than its text.
fn as_the_figure() -> ScaleUpOutParams {
    let stated = ScaleUpOutParams::default();
    ScaleUpOutParams {
        large_input_bytes: stated.large_shuffling_input_bytes,
        large_shuffling_input_bytes: stated.large_input_bytes,
        ..stated
    }
}

fn rows(entry: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let of = |params: &ScaleUpOutParams, jobs: &[TraceJob]| {
        context.per_seed(|seed| {
            let trained = world::trained(context.scale, seed, params);
            let classifier =
                trained.map_err(|why| ReproduceError::Failed { entry: entry.to_owned(), source: why.into() })?;
            (context.progress)(&format!("{entry}: seed {seed}, cross-validated {:.4}", classifier.cross_validated));
            Ok(judged(&classifier, jobs, params, seed))
        })
    };
    let percent = |found: &[Judged], which: fn(&Judged) -> Mistakes| -> Vec<f64> {
        found.iter().map(|judged| which(judged).accuracy() * 100.0).collect()
    };
    let count = |found: &[Judged], which: fn(&Judged) -> u64| -> Vec<f64> {
        found.iter().map(|judged| which(judged) as f64).collect()
    };
    let (stated, figure) = (ScaleUpOutParams::default(), as_the_figure());
    let (ours, other) = (of(&stated, &day().jobs)?, of(&figure, &day().jobs)?);
    let wrong = |judged: &Judged| judged.machine[1].large_called_small;
    let mut rows = vec![
        Row::at_least("jobs called what they are, every shuffle known", 96.2, "%", percent(&ours, |it| it.machine[0]))?,
        Row::at_least("jobs called what they are, half known", 85.7, "%", percent(&ours, |it| it.machine[1]))?,
        Row::at_most("large jobs called small, half known", 0.0, "jobs", count(&ours, wrong))?,
    ];
    let changed = "crosspoints as in Figure 5.1: 64 GiB without shuffle, 32 GiB with";
    rows.push(Row::assumption(&rows[0], changed, percent(&other, |it| it.machine[0]))?);
    rows.push(Row::assumption(&rows[1], changed, percent(&other, |it| it.machine[1]))?);
    rows.push(Row::assumption(&rows[2], changed, count(&other, wrong))?);
    let line = percent(&ours, |it| it.line[0]);
    let systems = [("machine", percent(&ours, |it| it.machine[0])), ("logistic regression", line.clone())];
    rows.push(Row::order("machine before regression, every shuffle known", Better::Higher, &systems)?.beside());
    let called = |found: &[Judged], which: fn(&Judged) -> Mistakes| -> Vec<f64> {
        found.iter().map(|judged| (which(judged).of - which(judged).small) as f64).collect()
    };
    for (name, unit, values) in [
        ("logistic regression, every shuffle known", "%", line),
        ("logistic regression, half known", "%", percent(&ours, |it| it.line[1])),
        (
            "large jobs that the regression calls small, half known",
            "jobs",
            count(&ours, |it| it.line[1].large_called_small),
        ),
        ("large jobs called small, every shuffle known", "jobs", count(&ours, |it| it.machine[0].large_called_small)),
        ("small jobs called large, half known", "jobs", count(&ours, |it| it.machine[1].small_called_large)),
        ("jobs that are large", "jobs", called(&ours, |it| it.machine[0])),
    ] {
        rows.push(Row::without_figure(name, unit, values)?);
    }
    if let Some(jobs) = world::other_year() {
        let found = of(&stated, jobs)?;
        let name = "jobs of FB-2009 called what they are, every shuffle known";
        rows.push(Row::without_figure(name, "%", percent(&found, |it| it.machine[0]))?);
    }
    Ok(rows)
}
