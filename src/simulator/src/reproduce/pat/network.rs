//! `pat-network`: how long routes are and how much of each layer they use (Figures 8(b) and 8(c)).

use super::compare::{Runs, rows, values};
use super::field::described;
use crate::reproduce::experiment::texts;
use crate::reproduce::hit::systems::less;
use crate::reproduce::row::Better;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};

const NAME: &str = "pat-network";

/// The experiment.
pub const NETWORK_USE: Experiment = Experiment {
    name: NAME,
    paper: "002 (Yang et al.), §8.4",
    figure: "Figures 8(b) and 8(c): length of routes and use of layers against capacity",
    settings,
    quick_s: 10,
    full_s: 60,
    rows: &rows_of,
};

fn settings(scale: Scale) -> Vec<(String, String)> {
    let own = [
        ("length", "links of a flow's route, access links among them, mean over flows (§8.2: hops that each flow traverses)".to_owned()),
        ("use", "rates of the flows on all links of a layer, summed: core, from aggregation to core switches; aggregation, from edge to aggregation switches".to_owned()),
    ];
    described(scale).into_iter().chain(texts(own)).collect()
}

/// One value for each seed.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    rows(NAME, context, figures, beside)
}

/// Per cent by which routes are shorter than under capacity.
fn shorter(runs: &Runs, at: usize) -> f64 {
    less(runs[at].mean_hops(), runs[0].mean_hops())
}

/// Per cent by which a layer is used less.
fn spared(runs: &Runs, at: usize, layer: usize) -> f64 {
    less(runs[at].layers[layer], runs[0].layers[layer])
}

fn figures(runs: &[Runs]) -> Result<Vec<Row>, ReproduceError> {
    let system = |at: usize| values(runs, |runs| runs[at].mean_hops());
    Ok(vec![
        Row::at_least("routes shorter than capacity's", 15.8, "%", values(runs, |r| shorter(r, 2)))?,
        Row::order(
            "order of lengths",
            Better::Lower,
            &[("pat", system(2)), ("pna", system(1)), ("capacity", system(0))],
        )?,
        Row::at_least("core layer used less", 23.9, "%", values(runs, |r| spared(r, 2, 2)))?,
        Row::at_least("aggregation layer used less", 8.5, "%", values(runs, |r| spared(r, 2, 1)))?,
    ])
}

fn beside(runs: &[Runs]) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = vec![
        Row::at_least("pna: routes shorter than capacity's", 5.42, "%", values(runs, |r| shorter(r, 1)))?.beside(),
        Row::at_least("pna: core layer used less", 6.5, "%", values(runs, |r| spared(r, 1, 2)))?.beside(),
        Row::at_least("pna: aggregation layer used less", 3.8, "%", values(runs, |r| spared(r, 1, 1)))?.beside(),
        Row::without_figure("pat: access layer used less", "%", values(runs, |r| spared(r, 2, 0)))?,
        Row::without_figure("hit: routes shorter than capacity's", "%", values(runs, |r| shorter(r, 3)))?,
        Row::without_figure("hit: core layer used less", "%", values(runs, |r| spared(r, 3, 2)))?,
    ];
    for (at, name) in ["capacity", "pna", "pat", "hit"].into_iter().enumerate() {
        rows.push(Row::without_figure(&format!("{name}: mean route"), "links", values(runs, |r| r[at].mean_hops()))?);
    }
    Ok(rows)
}
