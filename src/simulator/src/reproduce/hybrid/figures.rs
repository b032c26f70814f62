//! Figures 5.11 to 5.18: batch, online, each strategy left out, errors.

use super::explain;
use super::systems::{Kind, MORE_UP, Run, System, run};
use super::world;
use crate::reproduce::{Better, Experiment, ReproduceError, Row, RunContext, Scale};
use std::sync::Arc;

const PAPER: &str = "004 (Li), chapter 5, §5.3.3 to §5.3.5";
/// About what a quick run takes on one core of a busy machine, seconds.
const QUICK_RUN_S: u64 = 8;
/// About what a run of the day takes on one core, seconds.
const FULL_RUN_S: u64 = 200;

/// Of so many quick runs for each of five seeds, on two cores.
const fn quick_s(runs: u64) -> u64 {
    runs * 5 * QUICK_RUN_S / 2
}

/// Of so many runs for each of five seeds, on two cores.
const fn full_s(runs: u64) -> u64 {
    runs * 5 * FULL_RUN_S / 2
}

/// Figures 5.11 and 5.12.
pub const BATCH: Experiment = Experiment {
    name: "hybrid-batch",
    paper: PAPER,
    figure: "Figures 5.11 and 5.12: makespan of all jobs and of small ones, all submitted at once, in the simulation",
    settings: world::settings,
    quick_s: quick_s(9),
    full_s: full_s(9),
    rows: &|entry, context| batch(&Runs { entry, context }),
};
/// Figures 5.13 to 5.15.
pub const ONLINE: Experiment = Experiment {
    name: "hybrid-online",
    paper: PAPER,
    figure: "Figures 5.13 to 5.15: completion time of all, small and large jobs, submitted over the day; figures are the cluster's, with which the simulation is \"consistent\"",
    settings: world::settings,
    quick_s: quick_s(10),
    full_s: full_s(10),
    rows: &|entry, context| online(&Runs { entry, context }),
};
/// Figures 5.16 and 5.17.
pub const ABLATION: Experiment = Experiment {
    name: "hybrid-ablation",
    paper: PAPER,
    figure: "Figures 5.16 and 5.17: without placement, stealing, data placement",
    settings: world::settings,
    quick_s: quick_s(8),
    full_s: full_s(8),
    rows: &|entry, context| ablation(&Runs { entry, context }),
};
/// Figure 5.18.
pub const ERROR: Experiment = Experiment {
    name: "hybrid-error",
    paper: PAPER,
    figure: "Figure 5.18: makespan and completion time by error in the predicted shuffle; an error of e here is a factor drawn between 1 ÷ (1 + e) and 1 + e for each job",
    settings: world::settings,
    quick_s: quick_s(8),
    full_s: full_s(8),
    rows: &|entry, context| error(&Runs { entry, context }),
};

/// What the rows of an entry are made from.
struct Runs<'a> {
    entry: &'static str,
    context: &'a RunContext<'a>,
}

type Value = fn(&Run) -> f64;

impl Runs<'_> {
    const fn system(&self, kind: Kind, batch: bool) -> System {
        let quick = matches!(self.context.scale, Scale::Quick);
        System { kind, delay: false, batch, quick, error_percent: 0 }
    }

    fn of(&self, system: System) -> Result<Vec<Arc<Run>>, ReproduceError> {
        (self.context.progress)(&format!("{}: {system:?}", self.entry));
        self.context.per_seed(|seed| run(self.entry, system, seed, self.context.kept))
    }

    /// A value of each seed's run.
    fn values(&self, system: System, value: Value) -> Result<Vec<f64>, ReproduceError> {
        Ok(self.of(system)?.iter().map(|run| value(run)).collect())
    }
}

fn makespan(run: &Run) -> f64 {
    run.report.makespan_s
}

fn mean(run: &Run) -> f64 {
    run.report.mean_jct_s
}

/// How much less, per cent, seed by seed.
fn less(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| (1.0 - ours / theirs) * 100.0).collect()
}

/// How much more.
fn more(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    less(ours, theirs).into_iter().map(|less| -less).collect()
}

/// What is changed about stealing.
const AT_ONCE: &str = "stealing at once, as §5.2.3 has it";
const SOONER: &str = "stealing as jobs come, where they end sooner so: ours, the default";

const ORDERS: [(bool, &str); 2] = [(false, "fair"), (true, "delay")];

fn batch(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for ((delay, name), (all, small)) in ORDERS.into_iter().zip([(27.0, 53.0), (20.0, 46.0)]) {
        let of = |kind, value| runs.values(System { delay, ..runs.system(kind, true) }, value);
        let (with, without, out) =
            (of(Kind::With, makespan)?, of(Kind::Without, makespan)?, of(Kind::ScaleOut, makespan)?);
        rows.push(Row::at_least(&format!("makespan less than {name} on scale-out"), all, "%", less(&with, &out))?);
        let [ours, theirs] = [Kind::With, Kind::ScaleOut].map(|kind| of(kind, |run| run.small_makespan_s));
        let shorter = less(&ours?, &theirs?);
        let small = Row::at_least(
            &format!("makespan of small jobs less than {name}'s (cluster's figure)"),
            small,
            "%",
            shorter,
        )?;
        if !delay {
            rows.extend(changed_for_small_jobs(runs, &small)?);
        }
        rows.push(small);
        let systems = [("with", with.clone()), ("scale-out", out.clone()), ("without", without.clone())];
        rows.push(Row::order(&format!("makespan, {name}"), Better::Lower, &systems)?);
        rows.push(Row::without_figure(
            &format!("makespan without, ÷ {name} on scale-out"),
            "×",
            ratio(&without, &out),
        )?);
        rows.push(Row::without_figure(
            &format!("makespan of {name} on scale-out"),
            "h",
            out.iter().map(|s| s / 3600.0).collect(),
        )?);
    }
    rows.extend(explain::batch(runs.context)?);
    Ok(rows)
}

/// What would make small jobs of a batch end sooner: stealing at once, more scale-up machines; and their mean completion.
fn changed_for_small_jobs(runs: &Runs<'_>, explained: &Row) -> Result<Vec<Row>, ReproduceError> {
    let of = |kind, value| runs.values(runs.system(kind, true), value);
    let (last, mean): (Value, Value) = (|run| run.small_makespan_s, |run| run.mean(0));
    let out = [of(Kind::ScaleOut, last)?, of(Kind::ScaleOut, mean)?];
    let more_up = format!("{MORE_UP} times as many containers on scale-up machines");
    let mut rows = Vec::new();
    for (kind, changed) in
        [(Kind::StealsAtOnce, AT_ONCE), (Kind::StealsWhenSooner, SOONER), (Kind::MoreUp, more_up.as_str())]
    {
        rows.push(Row::assumption(explained, changed, less(&of(kind, last)?, &out[0]))?);
        let name = format!("mean completion of small jobs less than fair's: {changed}");
        rows.push(Row::without_figure(&name, "%", less(&of(kind, mean)?, &out[1]))?);
    }
    let with = less(&of(Kind::With, mean)?, &out[1]);
    rows.push(Row::without_figure("mean completion of small jobs less than fair's", "%", with)?);
    Ok(rows)
}

fn ratio(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

fn online(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let median: Value = |run| run.report.median_jct_s;
    let (small, large): (Value, Value) = (|run| run.mean(0), |run| run.mean(1));
    let mut rows = Vec::new();
    for ((delay, name), all) in ORDERS.into_iter().zip([51.0, 52.0]) {
        let of = |kind, value| runs.values(System { delay, ..runs.system(kind, false) }, value);
        let figures: [(&str, Value, f64); 4] = [
            ("mean completion", mean, all),
            ("median completion", median, 60.0),
            ("mean completion of small jobs", small, 55.0),
            ("mean completion of large jobs", large, 0.0),
        ];
        for (what, value, paper) in figures {
            let out = of(Kind::ScaleOut, value)?;
            let row =
                Row::at_least(&format!("{what} less than {name}'s"), paper, "%", less(&of(Kind::With, value)?, &out))?;
            let changed = [(Kind::StealsAtOnce, AT_ONCE), (Kind::StealsWhenSooner, SOONER)].map(|(kind, changed)| {
                let values = less(&of(kind, value)?, &out);
                Ok::<_, ReproduceError>(Row::assumption(&row, changed, values)?)
            });
            rows.push(row);
            for row in changed {
                rows.push(row?);
            }
        }
        let systems = [
            ("with", of(Kind::With, mean)?),
            ("scale-out", of(Kind::ScaleOut, mean)?),
            ("without", of(Kind::Without, mean)?),
        ];
        rows.push(Row::order(&format!("mean completion, {name}"), Better::Lower, &systems)?);
        rows.push(Row::without_figure(&format!("mean completion of {name} on scale-out"), "s", systems[1].1.clone())?);
    }
    Ok(rows)
}

/// What leaving a part out is held against.
struct LeftOut {
    batch: bool,
    what: &'static str,
    value: Value,
    /// More without each part, %, as the paper has it.
    papers: [f64; 3],
    /// The parts that matter there, the least first.
    worse: &'static [usize],
}

fn ablation(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    const KINDS: [(Kind, &str); 3] =
        [(Kind::NoPlacement, "placement"), (Kind::NoStealing, "stealing"), (Kind::NoData, "data placement")];
    let mut rows = Vec::new();
    // Stealing does nothing in a batch, so it has no place in that order.
    let cases = [
        LeftOut {
            batch: true,
            what: "makespan of a batch",
            value: makespan,
            papers: [29.0, 0.0, 18.0],
            worse: &[2, 0],
        },
        LeftOut { batch: false, what: "mean completion", value: mean, papers: [27.0, 19.0, 16.0], worse: &[2, 1, 0] },
    ];
    for LeftOut { batch, what, value, papers, worse } in cases {
        let with = runs.values(runs.system(Kind::With, batch), value)?;
        let mut left_out = Vec::new();
        for ((kind, name), paper) in KINDS.into_iter().zip(papers) {
            let values = runs.values(runs.system(kind, batch), value)?;
            rows.push(Row::at_least(&format!("{what} more without {name}"), paper, "%", more(&values, &with))?);
            left_out.push((name, values));
        }
        let mut systems = vec![("with all", with)];
        systems.extend(worse.iter().map(|&at| left_out[at].clone()));
        rows.push(Row::order(&format!("{what}: with all, and without one"), Better::Lower, &systems)?);
    }
    Ok(rows)
}

/// "very similar": our reading.
const SIMILAR: f64 = 5.0;
/// "Similar" up to the first of these, and above it worse: what Figure 5.18 puts in an order.
const WORSE_FROM: [u32; 2] = [30, 100];

fn error(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    let cases: [(bool, &str, Value); 2] = [(true, "makespan of a batch", makespan), (false, "mean completion", mean)];
    for (batch, what, value) in cases {
        let exact = runs.values(runs.system(Kind::With, batch), value)?;
        let mut systems = Vec::new();
        for error_percent in explain::RUNS {
            let system = System { error_percent, ..runs.system(Kind::With, batch) };
            let absolute = runs.values(system, value)?;
            let values = more(&absolute, &exact);
            if WORSE_FROM.contains(&error_percent) {
                systems.push((format!("{error_percent} % error"), absolute));
            }
            let name = format!("{what} more under {error_percent} % error");
            rows.push(match error_percent {
                100 => Row::without_figure(&name, "%", values)?,
                _ => Row::at_most(&format!("{name} (\"very similar\": 5 % is our reading)"), SIMILAR, "%", values)?,
            });
        }
        let systems: Vec<(&str, Vec<f64>)> =
            systems.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        rows.push(Row::order(&format!("{what} by error"), Better::Lower, &systems)?);
    }
    // Stealing goes by decision values, which an error changes where it changes no class.
    let [off, exact] = [100, 0]
        .map(|error_percent| runs.values(System { error_percent, ..runs.system(Kind::With, true) }, |run| run.mean(0)));
    let name = "mean completion of a batch's small jobs more under 100 % error";
    rows.push(Row::without_figure(name, "%", more(&off?, &exact?))?);
    let classifier = world::classifier(runs.context.scale)
        .map_err(|why| ReproduceError::Failed { entry: runs.entry.to_owned(), source: why.into() })?;
    rows.extend(explain::error(runs.context, &classifier)?);
    Ok(rows)
}
