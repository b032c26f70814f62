//! Figures 4.20 to 4.24: what errors of prediction and other settings change.

use super::figures::{BUSY, PAPER, QUICK_S, Runs, SPARE, each, less, makespan, median, quantile, ratio};
use super::systems::{System, World};
use super::world;
use crate::reproduce::{Better, Experiment, ReproduceError, Row};

/// Figures 4.20 to 4.24.
pub const SENSITIVITY: Experiment = Experiment {
    name: "jobpacker-sensitivity",
    paper: PAPER,
    figure: "Figures 4.20 to 4.24: errors of prediction, slow-start, over-provisioning, interval of circuits, sub-batches",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: 1_500,
    rows: &|entry, context| rows(&Runs { entry, context }),
};

/// "Almost the same", "only slightly", per cent: our reading, the thesis shows it as bars.
const SAME: f64 = 5.0;

type Value = fn(&Runs<'_>, World) -> Result<Vec<f64>, ReproduceError>;

struct Shape {
    name: &'static str,
    paper: f64,
    at_least: bool,
    value: Value,
}

const SHAPES: [Shape; 7] = [
    Shape {
        name: "50 % error in shuffle, median completion: shorter than fair on the hybrid network",
        paper: 33.0,
        at_least: true,
        value: |runs, world| than_fair(runs, World { shuffle_error_percent: 50, ..world }),
    },
    Shape {
        name: "50 % error in shuffle, median completion: shorter than corral",
        paper: 25.0,
        at_least: true,
        value: |runs, world| than_corral(runs, World { shuffle_error_percent: 50, ..world }),
    },
    Shape {
        name: "half of the jobs up to 200 s off, median completion: shorter than fair on the hybrid network",
        paper: 23.0,
        at_least: true,
        value: |runs, world| than_fair(runs, World { late_percent: 50, ..world }),
    },
    Shape {
        name: "half of the jobs up to 200 s off, median completion: shorter than corral",
        paper: 22.0,
        at_least: true,
        value: |runs, world| than_corral(runs, World { late_percent: 50, ..world }),
    },
    Shape {
        name: "circuits every 3 s, median completion: shorter than fair on the hybrid network",
        paper: 38.0,
        at_least: true,
        value: |runs, world| {
            let slow = median(&runs.packer(World { interval_ms: 3_000, ..world }, "")?);
            Ok(less(&slow, &median(&runs.fair(world, false)?)))
        },
    },
    Shape {
        name: "slow-start from 0.5 to 0.8: widest spread of the median completion (\"almost the same\": 5 % is our reading)",
        paper: SAME,
        at_least: false,
        value: |runs, world| {
            let of = |params| Ok::<_, ReproduceError>(median(&runs.packer(world, params)?));
            Ok(spread(&[of("slow_start = 0.5\n")?, of("slow_start = 0.6\n")?, of("")?, of("slow_start = 0.8\n")?]))
        },
    },
    Shape {
        name: "5 sub-batches to 20, a batch: widest spread of the makespan (\"only slightly\": 5 % is our reading)",
        paper: SAME,
        at_least: false,
        value: |runs, world| {
            let batch = World { span_s: 0, ..world };
            let of = |params| Ok::<_, ReproduceError>(makespan(&runs.packer(batch, params)?));
            Ok(spread(&[of("")?, of("sub_batches = 10\n")?, of("sub_batches = 20\n")?]))
        },
    },
];

fn rows(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let stated = World::online(runs.context.scale);
    let (name, busy) = BUSY(stated);
    let mut rows = Vec::new();
    for shape in &SHAPES {
        let make = if shape.at_least { Row::at_least } else { Row::at_most };
        rows.push(make(shape.name, shape.paper, "%", (shape.value)(runs, stated)?)?);
    }
    for at in 0..SHAPES.len() {
        rows.push(Row::assumption(&rows[at], name, (SHAPES[at].value)(runs, busy)?)?);
    }
    for (words, world) in [("", stated), (", a busy cluster", busy)] {
        rows.extend(beside(runs, words, world)?);
    }
    Ok(rows)
}

/// What the thesis shows as bars alone.
fn beside(runs: &Runs<'_>, words: &str, world: World) -> Result<Vec<Row>, ReproduceError> {
    let plain = runs.packer(world, "")?;
    let against = |name: &str, other: Vec<f64>| {
        Row::without_figure(
            &format!("median completion, {name} ÷ as stated{words}"),
            "×",
            ratio(&other, &median(&plain)),
        )
    };
    let mut rows = vec![
        against("25 % error in shuffle", median(&runs.packer(World { shuffle_error_percent: 25, ..world }, "")?))?,
        against("50 % error in shuffle", median(&runs.packer(World { shuffle_error_percent: 50, ..world }, "")?))?,
        against("slow-start 0.2", median(&runs.packer(world, "slow_start = 0.2\n")?))?,
        against("circuits every 0.1 s", median(&runs.packer(World { interval_ms: 100, ..world }, "")?))?,
        against("circuits every 3 s", median(&runs.packer(World { interval_ms: 3_000, ..world }, "")?))?,
    ];
    let p95 = |runs: &[_]| each(runs, |run| run.report.p95_jct_s);
    let erring = p95(&runs.packer(World { shuffle_error_percent: 50, ..world }, "")?);
    let name = format!("95th percentile, 50 % error in shuffle ÷ as stated{words}");
    rows.push(Row::without_figure(&name, "×", ratio(&erring, &p95(&plain)))?);
    let mix = World { ad_hoc_percent: 50, ..world };
    let of = |params| {
        let all = |run: &super::systems::Run| quantile(run.report.jct_s.clone(), 0.5);
        Ok::<_, ReproduceError>(each(&runs.packer(mix, params)?, all))
    };
    let stated = of(SPARE)?;
    for (share, params) in [("0", "over_provisioning = 0.0\n"), ("2", "over_provisioning = 2.0\n")] {
        let name = format!("mix, median completion, over-provisioning {share} ÷ 1{words}");
        rows.push(Row::without_figure(&name, "×", ratio(&of(params)?, &stated))?);
    }
    let batch = World { span_s: 0, ..world };
    let (one, five) = (makespan(&runs.packer(batch, "sub_batches = 1\n")?), makespan(&runs.packer(batch, "")?));
    let order = [("5 sub-batches", five), ("1", one)];
    rows.push(Row::order(&format!("makespan of a batch by sub-batches{words}"), Better::Lower, &order)?.beside());
    Ok(rows)
}

fn than_fair(runs: &Runs<'_>, world: World) -> Result<Vec<f64>, ReproduceError> {
    // Who does not predict has no error: one run for all of them.
    let fair = World { shuffle_error_percent: 0, ..world };
    Ok(less(&median(&runs.packer(world, "")?), &median(&runs.fair(fair, false)?)))
}

fn than_corral(runs: &Runs<'_>, world: World) -> Result<Vec<f64>, ReproduceError> {
    let corral = runs.of(System { policy: "corral", params: "", cluster: "jobpacker", world })?;
    Ok(less(&median(&runs.packer(world, "")?), &median(&corral)))
}

/// (Largest ÷ smallest − 1) of each seed, per cent.
fn spread(values: &[Vec<f64>]) -> Vec<f64> {
    let of = |seed: usize| {
        let all = || values.iter().map(|value| value[seed]);
        (all().fold(0.0, f64::max) / all().fold(f64::INFINITY, f64::min) - 1.0) * 100.0
    };
    (0..values[0].len()).map(of).collect()
}
