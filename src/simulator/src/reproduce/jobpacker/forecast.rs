//! How far runs end from what their plans say.

use super::figures::{PAPER, QUICK_S, Runs, each, quantile};
use super::systems::{Ideal, Run, World};
use super::world;
use crate::reproduce::{Experiment, ReproduceError, Row};
use std::sync::Arc;

/// Ours: the thesis does not compare them.
pub const FORECAST: Experiment = Experiment {
    name: "jobpacker-forecast",
    paper: PAPER,
    figure: "no figure of the thesis: a batch's makespan against its plan's forecast, of which we ask 2 %",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: 500,
    rows: &|entry, context| rows(&Runs { entry, context }),
};

fn rows(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let stated = World { ideal: Ideal::FORECAST, by_maps: true, ..World::batch(runs.context.scale) };
    let plain = runs.packer(stated, "")?;
    let mut rows = vec![Row::at_most("makespan: off the plan's, either way", 2.0, "%", off(&plain))?];
    rows.extend(distribution("as stated", &plain)?);
    rows.extend(chance(runs, stated, &rows[0])?);
    for (case, params, world) in cases(stated) {
        let run = runs.packer(world, params)?;
        rows.push(Row::assumption(&rows[0], case, off(&run))?);
        rows.extend(distribution(case, &run)?);
    }
    Ok(rows)
}

/// Eq. 4.1 without the forecast on shared links; then one of the differences between a forecast and a run taken away at
/// a time; the last two put one there.
fn cases(stated: World) -> [(&'static str, &'static str, World); 9] {
    let ideal = |ideal| World { ideal, ..stated };
    let still = Ideal::FORECAST;
    [
        (EQ_4_1, "node_links = false\n", stated),
        ("no shuffle", "", ideal(Ideal { no_shuffle: true, ..still })),
        ("uplinks and nodes' links a hundred times as fast", "", ideal(Ideal { links: 100, ..still })),
        (
            "no shuffle, uplinks and nodes' links a hundred times as fast",
            "",
            ideal(Ideal { no_shuffle: true, links: 100, ..still }),
        ),
        ("the job that shuffles most, alone", "", ideal(Ideal { alone: true, ..still })),
        (
            "the job that shuffles most, alone, uplinks and nodes' links a hundred times as fast",
            "",
            ideal(Ideal { alone: true, links: 100, ..still }),
        ),
        ("reduces begin when all maps are done", "slow_start = 1.0\n", stated),
        ("heartbeats of 1 s", "", ideal(Ideal { heartbeat_ms: 1_000, ..still })),
        ("task times with noise", "", ideal(Ideal { still: false, ..still })),
    ]
}

/// How far the same plans' makespans are apart where chance falls otherwise, and their medians from the forecasts.
fn chance(runs: &Runs<'_>, stated: World, first: &Row) -> Result<Vec<Row>, ReproduceError> {
    let anew = |drawn_anew| runs.packer(World { ideal: Ideal { drawn_anew, ..stated.ideal }, ..stated }, "");
    let anew = (1..=ANEW).map(anew).collect::<Result<Vec<_>, _>>()?;
    let at = |share: f64| -> Vec<f64> {
        let of = |seed: usize| quantile(anew.iter().map(|runs| runs[seed].against_plan().0).collect(), share);
        (0..runs.context.seeds.len()).map(of).collect()
    };
    let off = at(0.5).into_iter().map(|ratio| (ratio - 1.0).abs() * 100.0).collect();
    let mut rows = vec![Row::assumption(first, "median of nine runs in which nodes report in other orders", off)?];
    for (which, share) in [("least", 0.0), ("median", 0.5), ("most", 1.0)] {
        let name = format!("makespan ÷ the plan's, {which} of nine runs in which nodes report in other orders");
        rows.push(Row::without_figure(&name, "×", at(share))?);
    }
    Ok(rows)
}

/// "nine".
const ANEW: u32 = 9;

const EQ_4_1: &str = "Eq. 4.1 alone: no nodes' links, nothing shared";

fn distribution(case: &str, run: &[Arc<Run>]) -> Result<Vec<Row>, ReproduceError> {
    let shares = [("5", 0.05), ("50", 0.5), ("95", 0.95)];
    let row = |(share, at): (&str, f64)| {
        let name = format!("job's end ÷ planned end, {share} % of jobs below, {case}");
        Row::without_figure(&name, "×", each(run, |run| quantile(run.against_plan().1, at)))
    };
    Ok(shares.into_iter().map(row).collect::<Result<Vec<_>, _>>()?)
}

fn off(runs: &[Arc<Run>]) -> Vec<f64> {
    each(runs, |run| (run.against_plan().0 - 1.0).abs() * 100.0)
}
