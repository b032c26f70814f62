//! `hit-bandwidth`: throughput over `capacity` from 6 to 10 Gbit/s on 512 nodes (Figure 12).

use super::systems::{COMPARED, Failure, REPORTS, failed, plain_tree, registered, run};
use super::workload::{apps, described, everywhere};
use crate::reproduce::experiment::texts;
use crate::reproduce::row::Better;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use hintd_model::units::BitsPerSec;

const NAME: &str = "hit-bandwidth";
/// §8.2.
const SLOTS: u64 = 8;
/// §8.7.
const GIGABITS: [u64; 5] = [6, 7, 8, 9, 10];
/// What may be assumed otherwise: the compute rate, whether fetches are delayed as §7.1 has it, and whether input lies on
/// every node.
#[derive(Debug, Clone, Copy)]
struct Case {
    rate: f64,
    delayed: bool,
    near: bool,
}

const BASE: Case = Case { rate: 1.0, delayed: false, near: false };

/// One stated assumption changed, and its words.
const CHANGED: [(&str, Case); 4] = [
    ("compute rate x 0.5", Case { rate: 0.5, ..BASE }),
    ("compute rate x 2", Case { rate: 2.0, ..BASE }),
    (
        "fetches take bytes x links / bandwidth whatever else is sent, as the DelayFetcher of §7.1",
        Case { delayed: true, ..BASE },
    ),
    ("input lies on every node, so that no policy reads from afar", Case { near: true, ..BASE }),
];

/// Nodes of a rack, racks of a pod and pods, as many of each; and jobs.
const fn size(scale: Scale) -> (usize, u64) {
    match scale {
        Scale::Quick => (4, 20),
        Scale::Full => (8, 80),
    }
}

/// The experiment.
pub const BANDWIDTH: Experiment = Experiment {
    name: NAME,
    paper: "002 (Yang et al.), §8.7",
    figure: "Figure 12: throughput over capacity while links have 6 to 10 Gbit/s, 512 nodes",
    settings,
    quick_s: 20,
    full_s: 300,
    rows: &rows_of,
};

fn settings(scale: Scale) -> Vec<(String, String)> {
    let (side, jobs) = size(scale);
    let own = [
        (
            "cluster",
            format!(
                "{} nodes of {SLOTS} containers (§8.2); tree of three levels, {side} of everything below the one above (assumed), every link of the bandwidth stated (§8.7 prints no other); {REPORTS}",
                side.pow(3)
            ),
        ),
        ("arrivals", format!("{jobs} jobs at once (assumed), so that throughput is jobs / the last one's end")),
        ("systems", "hit, pna, capacity as of hit-jct".to_owned()),
    ];
    texts(own).into_iter().chain(described()).collect()
}

/// One value for each seed.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let (mut figures, mut others) = (Vec::new(), Vec::new());
    for gigabits in GIGABITS {
        (context.progress)(&format!("{NAME}: {gigabits} Gbit/s"));
        let measure = |case: Case| {
            context.per_seed(|seed| measured(context.scale, gigabits, case, seed).map_err(|error| failed(NAME, error)))
        };
        let base = measure(BASE)?;
        let over = |of: &[[f64; 3]], at: usize| -> Vec<f64> {
            of.iter().map(|one| 100.0 * (one[at] / one[2] - 1.0)).collect()
        };
        let title = |what: &str| format!("{gigabits} Gbit/s: {what}");
        if gigabits == GIGABITS[0] {
            let row = Row::at_least(&title("hit over capacity"), 23.8, "%", over(&base, 0))?;
            let system = |at: usize| base.iter().map(|one| one[at]).collect::<Vec<f64>>();
            let systems = [("hit", system(0)), ("pna", system(1)), ("capacity", system(2))];
            figures.push(Row::order(&title("order of throughput"), Better::Higher, &systems)?);
            for (changed, case) in CHANGED {
                others.push(Row::assumption(&row, changed, over(&measure(case)?, 0))?);
            }
            figures.push(row);
        } else {
            others.push(Row::without_figure(&title("hit over capacity"), "%", over(&base, 0))?);
        }
        others.push(Row::without_figure(&title("pna over capacity"), "%", over(&base, 1))?);
        let hourly = base.iter().map(|one| one[2] * 3_600.0).collect();
        others.push(Row::without_figure(&title("capacity"), "jobs/h", hourly)?);
    }
    figures.extend(others);
    Ok(figures)
}

/// Jobs a second under each system compared.
fn measured(scale: Scale, gigabits: u64, case: Case, seed: u64) -> Result<[f64; 3], Failure> {
    let (side, jobs) = size(scale);
    let link = BitsPerSec(gigabits * 1_000_000_000);
    let sample = registered(&plain_tree(side * side, side, side, link)?, SLOTS, seed);
    let delay = case.delayed.then_some(link);
    let mut apps = apps(&sample, jobs, 0.0, case.rate, seed);
    if case.near {
        apps.iter_mut().for_each(|app| everywhere(&sample, app));
    }
    let mut found = [0.0; 3];
    for (found, system) in found.iter_mut().zip(COMPARED) {
        *found = jobs as f64 / run(&sample.snapshot, system, &apps, delay, seed)?.report.makespan_s;
    }
    Ok(found)
}
