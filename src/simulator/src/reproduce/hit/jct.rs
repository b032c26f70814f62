//! `hit-jct`: completion times, routes and shuffles of Table 1's mix on the testbed's size (Figures 9 and 10).

use super::systems::{
    COMPARED, Failure, REPORTS, Ran, System, failed, less, mean_completion_s, mean_phase_s, plain_tree, registered,
    run, slower,
};
use super::workload::{apps, described, everywhere};
use crate::reproduce::experiment::texts;
use crate::reproduce::row::Better;
use crate::reproduce::{Experiment, ReproduceError, Row, RunContext, Scale};
use hintd_model::units::BitsPerSec;

const NAME: &str = "hit-jct";
/// §8.1: 32 GB in containers of 2 GB.
const SLOTS: u64 = 16;
/// §8.1: ports of the switches.
const RATE: BitsPerSec = BitsPerSec(1_000_000_000);
/// Seconds between two jobs; the paper says none.
const GAP_S: f64 = 40.0;

/// What may be assumed otherwise.
#[derive(Debug, Clone, Copy)]
struct Case {
    /// Compute rate against the common one.
    rate: f64,
    /// Capacity of links between switches against the stated one.
    part: f64,
    /// §7.1's `DelayFetcher` in place of links that flows share.
    delay: Option<BitsPerSec>,
    /// Whether input lies on every node.
    near: bool,
    /// Whether `pna` is offered one slot of a node, then one of the next.
    spread: bool,
}

const BASE: Case = Case { rate: 1.0, part: 1.0, delay: None, near: false, spread: false };

/// One stated assumption changed, and its words.
const CHANGED: [(&str, Case); 6] = [
    ("compute rate x 0.5", Case { rate: 0.5, ..BASE }),
    ("compute rate x 2", Case { rate: 2.0, ..BASE }),
    ("links between switches carry a quarter", Case { part: 0.25, ..BASE }),
    (
        "fetches take bytes x links / bandwidth whatever else is sent, as the DelayFetcher of §7.1",
        Case { delay: Some(RATE), ..BASE },
    ),
    ("input lies on every node, so that no policy reads from afar", Case { near: true, ..BASE }),
    ("pna is offered one slot of a node, then one of the next", Case { spread: true, ..BASE }),
];

const fn jobs(scale: Scale) -> u64 {
    match scale {
        Scale::Quick => 10,
        Scale::Full => 60,
    }
}

/// The experiment.
pub const COMPLETION: Experiment = Experiment {
    name: NAME,
    paper: "002 (Yang et al.), §8.5",
    figure: "Figures 9 and 10: job completion times, routes and shuffle times against capacity and pna",
    settings,
    quick_s: 5,
    full_s: 60,
    rows: &rows_of,
};

fn settings(scale: Scale) -> Vec<(String, String)> {
    let own = [
        ("cluster", format!("8 nodes of {SLOTS} containers of 2 GB (§8.1: 8 slaves of 32 GB); tree of three levels, two of everything below the one above (assumed), all links 1 Gbit/s (§8.1: GbE ports): racks 2:1, pods 4:1; {REPORTS}")),
        ("arrivals", format!("{} jobs, one every {GAP_S} s (assumed)", jobs(scale))),
        ("systems", "hit, pna (offered nodes in turn, slot after slot until one is declined; costs by hops to input and to the maps placed, p = 1 - exp(-mean / cost)), capacity (heartbeats, delay scheduling); no chains: §8.5 has none, so lists of switches are shortest paths, drawn among equal ones".to_owned()),
        ("shuffle time", "from the end of the maps to the last byte at a reduce; the paper's 189 and 131 us are of packets, so only their ratio is held against ours".to_owned()),
    ];
    texts(own).into_iter().chain(described()).collect()
}

/// One value for each seed.
fn rows_of(_: &'static str, context: &RunContext<'_>) -> Result<Vec<Row>, ReproduceError> {
    let measure =
        |case: Case| context.per_seed(|seed| measured(context.scale, case, seed).map_err(|error| failed(NAME, error)));
    let base = measure(BASE)?;
    let mut rows = figures(&base)?;
    let known = rows.clone();
    for (changed, case) in CHANGED {
        (context.progress)(&format!("{NAME}: {changed}"));
        let other = figures(&measure(case)?)?;
        for (row, other) in known.iter().zip(other) {
            rows.push(Row::assumption(row, changed, other.values)?);
        }
    }
    rows.extend(beside(&base)?);
    Ok(rows)
}

/// Runs of the systems compared, in their order.
type Runs = [Ran; 3];

fn measured(scale: Scale, case: Case, seed: u64) -> Result<Runs, Failure> {
    let sample = registered(&slower(plain_tree(4, 2, 2, RATE)?, case.part), SLOTS, seed);
    let mut apps = apps(&sample, jobs(scale), GAP_S, case.rate, seed);
    if case.near {
        apps.iter_mut().for_each(|app| everywhere(&sample, app));
    }
    let systems = COMPARED.map(|system| match system {
        System::Pna if case.spread => System::PnaSpread,
        system => system,
    });
    let [hit, pna, capacity] = systems.map(|system| run(&sample.snapshot, system, &apps, case.delay, seed));
    Ok([hit?, pna?, capacity?])
}

fn values(runs: &[Runs], value: impl Fn(&Runs) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

fn figures(runs: &[Runs]) -> Result<Vec<Row>, ReproduceError> {
    let jct = |runs: &Runs, at: usize| mean_completion_s(&runs[at].report);
    let shuffle = |runs: &Runs, at: usize| mean_phase_s(&runs[at].report, Some(1), 2);
    let system = |at: usize| values(runs, |runs| jct(runs, at));
    Ok(vec![
        Row::at_least("completion time below capacity's", 28.0, "%", values(runs, |r| less(jct(r, 0), jct(r, 2))))?,
        Row::at_least("completion time below pna's", 11.0, "%", values(runs, |r| less(jct(r, 0), jct(r, 1))))?,
        Row::order(
            "order of completion times",
            Better::Lower,
            &[("hit", system(0)), ("pna", system(1)), ("capacity", system(2))],
        )?,
        Row::at_least(
            "mean route below capacity's",
            100.0 * (1.0 - 4.4 / 6.5),
            "%",
            values(runs, |r| less(r[0].mean_hops, r[2].mean_hops)),
        )?,
        Row::at_least(
            "shuffle time below capacity's",
            100.0 * (1.0 - 131.0 / 189.0),
            "%",
            values(runs, |r| less(shuffle(r, 0), shuffle(r, 2))),
        )?,
    ])
}

/// What the paper draws without figures, and what the figures are made of.
fn beside(runs: &[Runs]) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (at, name) in ["hit", "pna", "capacity"].into_iter().enumerate() {
        let title = |what: &str| format!("{name}: {what}");
        rows.push(Row::without_figure(&title("completion"), "s", values(runs, |r| mean_completion_s(&r[at].report)))?);
        rows.push(Row::without_figure(&title("maps"), "s", values(runs, |r| mean_phase_s(&r[at].report, None, 1)))?);
        rows.push(Row::without_figure(
            &title("shuffle"),
            "s",
            values(runs, |r| mean_phase_s(&r[at].report, Some(1), 2)),
        )?);
        rows.push(Row::without_figure(&title("mean route"), "links", values(runs, |r| r[at].mean_hops))?);
    }
    let slower = values(runs, |r| -less(mean_phase_s(&r[0].report, None, 1), mean_phase_s(&r[1].report, None, 1)));
    let mut slower = Row::without_figure("maps of hit above pna's", "%", slower)?;
    slower.note = "Figure 9(b): hit's maps are slower than pna's, for it does not look at where input lies".to_owned();
    rows.push(slower);
    Ok(rows)
}
