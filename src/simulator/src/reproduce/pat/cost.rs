//! `pat-cost`: what containers cost by their way to boxes, and how few servers they crowd on (Figures 7 and 8(a)); and how
//! far `pat` is from the exact best of small cases.

use super::compare::{Runs, rows, values};
use super::field::{LOAD, described};
use crate::reproduce::experiment::texts;
use crate::reproduce::hit::{gaps, systems::less};
use crate::reproduce::row::Better;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use hintd_policy::pat::Pat;

const NAME: &str = "pat-cost";

/// The experiment.
pub const COST: Experiment = Experiment {
    name: NAME,
    paper: "002 (Yang et al.), §8.3 and §8.4",
    figure: "Figures 7 and 8(a): cost of containers against capacity, and on how few servers they are",
    settings,
    quick_s: 10,
    full_s: 60,
    rows: &rows_of,
};

fn settings(scale: Scale) -> Vec<(String, String)> {
    let least = 70 * LOAD / 8;
    let own = [
        ("cost", "Eq. 14: rate x links from a container to the first box of what it sends and from the last box of what it receives; of each container against the same one under capacity, then the mean; total: summed".to_owned()),
        ("servers", format!("smallest share that has 70 % of the containers. The paper's 22.8 % does not go with its own 5 to 7 containers on servers of 8: {LOAD} a server need {least} % at least")),
    ];
    described(scale).into_iter().chain(texts(own)).collect()
}

/// One value for each seed.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = rows(NAME, context, figures, beside)?;
    (context.progress)(&format!("{NAME}: small cases"));
    rows.extend(gaps("pat", context, &Pat::default())?);
    Ok(rows)
}

/// Mean over containers of what each costs less than under capacity, per cent; of those that cost anything there.
fn each(runs: &Runs, at: usize) -> f64 {
    let pairs = runs[0].containers.iter().zip(&runs[at].containers).filter(|(before, _)| **before > 0);
    let gains: Vec<f64> = pairs.map(|(before, after)| less(*after as f64, *before as f64)).collect();
    gains.iter().sum::<f64>() / gains.len().max(1) as f64
}

fn sum(runs: &Runs, at: usize) -> f64 {
    runs[at].containers.iter().sum::<u64>() as f64
}

fn figures(runs: &[Runs]) -> Result<Vec<Row>, ReproduceError> {
    let system = |at: usize| values(runs, |runs| sum(runs, at));
    Ok(vec![
        Row::at_least("cost of a container below capacity's, mean", 33.6, "%", values(runs, |r| each(r, 2)))?,
        Row::at_least("total cost below capacity's", 28.2, "%", values(runs, |r| less(sum(r, 2), sum(r, 0))))?,
        Row::order(
            "order of total cost",
            Better::Lower,
            &[("pat", system(2)), ("pna", system(1)), ("capacity", system(0))],
        )?,
        Row::at_most("servers that have 70 % of the containers", 22.8, "%", values(runs, |r| r[2].crowded()))?,
    ])
}

fn beside(runs: &[Runs]) -> Result<Vec<Row>, ReproduceError> {
    let whole = |runs: &Runs, at: usize| less(runs[at].cost as f64, runs[0].cost as f64);
    Ok(vec![
        Row::at_least("pna: cost of a container below capacity's, mean", 14.6, "%", values(runs, |r| each(r, 1)))?
            .beside(),
        Row::at_least("pna: total cost below capacity's", 13.6, "%", values(runs, |r| less(sum(r, 1), sum(r, 0))))?
            .beside(),
        Row::without_figure("hit: total cost below capacity's", "%", values(runs, |r| less(sum(r, 3), sum(r, 0))))?,
        Row::without_figure(
            "pat: rate x links of whole routes below capacity's (Eq. 2)",
            "%",
            values(runs, |r| whole(r, 2)),
        )?,
        Row::without_figure(
            "pna: rate x links of whole routes below capacity's (Eq. 2)",
            "%",
            values(runs, |r| whole(r, 1)),
        )?,
        Row::without_figure(
            "hit: rate x links of whole routes below capacity's (Eq. 2)",
            "%",
            values(runs, |r| whole(r, 3)),
        )?,
        Row::without_figure(
            "capacity: servers that have 70 % of the containers",
            "%",
            values(runs, |r| r[0].crowded()),
        )?,
        Row::without_figure("pna: servers that have 70 % of the containers", "%", values(runs, |r| r[1].crowded()))?,
    ])
}
