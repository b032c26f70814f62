//! Figures 4.9 to 4.12 and 4.17: makespan, completion, bytes on circuits.

use super::systems::{Run, System, World, run};
use super::world::{self, Draw};
use crate::reproduce::{Better, Experiment, ReproduceError, Row, RunContext};
use std::sync::Arc;

pub(super) const PAPER: &str = "004 (Li), chapter 4, §4.3";
/// About what any of the samples takes, seconds.
pub(super) const QUICK_S: u64 = 30;

/// Figures 4.9 and 4.10.
pub const BATCH: Experiment = Experiment {
    name: "jobpacker-batch",
    paper: PAPER,
    figure: "Figures 4.9 and 4.10: makespan of a batch, and bytes across racks that ride circuits",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: 900,
    rows: &|entry, context| batch(&Runs { entry, context }),
};
/// Figures 4.11 and 4.12.
pub const ONLINE: Experiment = Experiment {
    name: "jobpacker-online",
    paper: PAPER,
    figure: "Figures 4.11 and 4.12: completion times of jobs that come within 90 minutes, and bytes on circuits",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: 900,
    rows: &|entry, context| online(&Runs { entry, context }),
};
/// Figure 4.17.
pub const MIXED: Experiment = Experiment {
    name: "jobpacker-mixed",
    paper: PAPER,
    figure: "Figure 4.17: completion times where half of the jobs are planned and half come unannounced",
    settings: world::settings,
    quick_s: QUICK_S,
    full_s: 900,
    rows: &|entry, context| mixed(&Runs { entry, context }),
};

/// What the rows of an entry are made from.
pub(super) struct Runs<'a> {
    pub(super) entry: &'static str,
    pub(super) context: &'a RunContext<'a>,
}

/// The chapter's four systems in one world, a run for each seed.
pub(super) struct Four {
    pub(super) fair: Vec<Arc<Run>>,
    pub(super) corral: Vec<Arc<Run>>,
    pub(super) packer: Vec<Arc<Run>>,
    pub(super) packets: Vec<Arc<Run>>,
}

/// A figure of the paper that is taken from all four.
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) paper: f64,
    pub(super) unit: &'static str,
    pub(super) at_least: bool,
    pub(super) value: fn(&Four) -> Vec<f64>,
}

const HYBRID: &str = "jobpacker";
const PACKETS: &str = "jobpacker-packets";

impl Runs<'_> {
    /// One for each seed.
    pub(super) fn of(&self, system: System) -> Result<Vec<Arc<Run>>, ReproduceError> {
        let params = system.params.trim_end().replace('\n', ", ");
        (self.context.progress)(&format!("{}: {} on {} {params}", self.entry, system.policy, system.cluster));
        self.context.per_seed(|seed| run(self.entry, system, seed))
    }

    /// `params` are those of both planners.
    pub(super) fn four(&self, world: World, params: &'static str) -> Result<Four, ReproduceError> {
        let of = |policy, cluster, params| self.of(System { policy, params, cluster, world });
        Ok(Four {
            fair: of("fair", HYBRID, "")?,
            corral: of("corral", HYBRID, params)?,
            packer: of("jobpacker", HYBRID, params)?,
            packets: of("fair", PACKETS, "")?,
        })
    }

    /// `jobpacker` alone.
    pub(super) fn packer(&self, world: World, params: &'static str) -> Result<Vec<Arc<Run>>, ReproduceError> {
        self.of(System { policy: "jobpacker", params, cluster: HYBRID, world })
    }

    /// `fair` on the hybrid network, or on packets.
    pub(super) fn fair(&self, world: World, packets: bool) -> Result<Vec<Arc<Run>>, ReproduceError> {
        self.of(System { policy: "fair", params: "", cluster: if packets { PACKETS } else { HYBRID }, world })
    }

    /// Every measure as it is stated, and with each assumption changed.
    pub(super) fn measured(
        &self,
        stated: World,
        params: &'static str,
        cases: &[(&str, World)],
        measures: &[Measure],
    ) -> Result<(Four, Vec<Row>), ReproduceError> {
        let four = self.four(stated, params)?;
        let row = |measure: &Measure| {
            let make = if measure.at_least { Row::at_least } else { Row::at_most };
            make(measure.name, measure.paper, measure.unit, (measure.value)(&four))
        };
        let mut rows = measures.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        for (case, world) in cases {
            let changed = self.four(*world, params)?;
            for (at, measure) in measures.iter().enumerate() {
                rows.push(Row::assumption(&rows[at], case, (measure.value)(&changed))?);
            }
        }
        Ok((four, rows))
    }
}

/// Of each seed.
pub(super) fn each(runs: &[Arc<Run>], value: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(|run| value(run)).collect()
}

/// How much less, per cent.
pub(super) fn less(of: &[f64], than: &[f64]) -> Vec<f64> {
    of.iter().zip(than).map(|(of, than)| (1.0 - of / than) * 100.0).collect()
}

pub(super) fn ratio(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

pub(super) fn makespan(runs: &[Arc<Run>]) -> Vec<f64> {
    each(runs, |run| run.report.makespan_s)
}

pub(super) fn median(runs: &[Arc<Run>]) -> Vec<f64> {
    each(runs, |run| run.report.median_jct_s)
}

fn circuits(runs: &[Arc<Run>]) -> Vec<f64> {
    each(runs, |run| run.report.circuits.map_or(0.0, |circuits| circuits.share * 100.0))
}

/// Of shuffle alone: input that a map reads from afar never rides.
fn shuffle_by_circuit(runs: &[Arc<Run>]) -> Vec<f64> {
    each(runs, |run| {
        let bytes = run.report.circuits.map_or(0.0, |circuits| circuits.bytes as f64);
        100.0 * (bytes / (run.report.cross_rack_shuffle_bytes as f64).max(1.0)).min(1.0)
    })
}

/// What the thesis prints of the four systems' circuits, and reaching which is no merit.
fn circuit_rows(four: &Four, of_batch: bool) -> Result<Vec<Row>, ReproduceError> {
    let (packer, corral, fair) = (circuits(&four.packer), circuits(&four.corral), circuits(&four.fair));
    let systems = [("jobpacker", packer.clone()), ("corral", corral.clone()), ("fair", fair.clone())];
    let mut rows = vec![Row::order("bytes on circuits: order", Better::Higher, &systems)?];
    if of_batch {
        rows.push(Row::at_most("bytes on circuits under corral", 23.9, "%", corral)?.beside());
        rows.push(Row::at_most("bytes on circuits under fair", 1.3, "%", fair)?.beside());
    } else {
        rows.push(Row::without_figure("bytes on circuits under jobpacker", "%", packer)?);
        rows.push(Row::without_figure("bytes on circuits under fair", "%", fair)?);
    }
    let ridden = shuffle_by_circuit(&four.packer);
    rows.push(Row::without_figure("of the shuffle across racks alone, under jobpacker", "%", ridden)?);
    Ok(rows)
}

/// What may be changed: one assumption each.
pub(super) fn cases(stated: World) -> Vec<(&'static str, World)> {
    vec![
        ("shuffle-heavy jobs only", World { draw: Draw::Heavy, ..stated }),
        ("half the compute rate", World { compute_percent: 50, ..stated }),
        ("twice the compute rate", World { compute_percent: 200, ..stated }),
        (COPYING, World { compute_percent: 1_600, ..stated }),
        ("first replicas by maps", World { by_maps: true, ..stated }),
    ]
}

/// SWIM's replayed jobs compute nothing: 512 MB/s is what a node's disks and memory give a task.
const COPYING: &str = "16 times the compute rate: tasks copy, as SWIM's do";

fn batch(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let stated = World::batch(runs.context.scale);
    let measures = [
        Measure {
            name: "makespan: shorter than fair on the hybrid network",
            paper: 35.0,
            unit: "%",
            at_least: true,
            value: |four| less(&makespan(&four.packer), &makespan(&four.fair)),
        },
        Measure {
            name: "makespan: shorter than corral",
            paper: 23.5,
            unit: "%",
            at_least: true,
            value: |four| less(&makespan(&four.packer), &makespan(&four.corral)),
        },
        Measure {
            name: "makespan ÷ that of fair on 100 Gbit/s packets",
            paper: 1.05,
            unit: "×",
            at_least: false,
            value: |four| ratio(&makespan(&four.packer), &makespan(&four.packets)),
        },
        Measure {
            name: "bytes on circuits under jobpacker",
            paper: 98.3,
            unit: "%",
            at_least: true,
            value: |four| circuits(&four.packer),
        },
    ];
    let (four, mut rows) = runs.measured(stated, "", &cases(stated), &measures)?;
    let order =
        [("jobpacker", makespan(&four.packer)), ("corral", makespan(&four.corral)), ("fair", makespan(&four.fair))];
    rows.push(Row::order("makespan: order", Better::Lower, &order)?);
    rows.extend(circuit_rows(&four, true)?);
    rows.push(Row::without_figure("makespan of fair", "s", makespan(&four.fair))?);
    let bound = less(&makespan(&four.packets), &makespan(&four.fair));
    rows.push(Row::without_figure("fair on 100 Gbit/s packets: shorter than on the hybrid network", "%", bound)?);
    for (name, draw) in [("any input and output", Draw::AnyInput), ("the whole day's jobs", Draw::Whole)] {
        let world = World { draw, ..stated };
        let (hybrid, packets) = (runs.fair(world, false)?, runs.fair(world, true)?);
        let on = circuits(&hybrid);
        rows.push(Row::without_figure(&format!("bytes on circuits under fair, {name}"), "%", on)?);
        let shorter = less(&makespan(&packets), &makespan(&hybrid));
        let name = format!("fair on 100 Gbit/s packets: shorter, {name}");
        rows.push(Row::without_figure(&name, "%", shorter)?);
    }
    Ok(rows)
}

fn online(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let stated = World::online(runs.context.scale);
    let measures = [
        Measure {
            name: "median completion: shorter than fair on the hybrid network",
            paper: 43.0,
            unit: "%",
            at_least: true,
            value: |four| less(&median(&four.packer), &median(&four.fair)),
        },
        Measure {
            name: "median completion: shorter than corral",
            paper: 28.0,
            unit: "%",
            at_least: true,
            value: |four| less(&median(&four.packer), &median(&four.corral)),
        },
    ];
    let mut cases = cases(stated);
    cases.push(BUSY(stated));
    let (four, mut rows) = runs.measured(stated, "", &cases, &measures)?;
    let like = ratio(&median(&four.packer), &median(&four.packets));
    rows.push(Row::without_figure("median completion ÷ that of fair on 100 Gbit/s packets", "×", like)?);
    let bound = less(&median(&four.packets), &median(&four.fair));
    rows.push(Row::without_figure("fair on 100 Gbit/s packets: shorter than on the hybrid network", "%", bound)?);
    rows.extend(circuit_rows(&four, false)?);
    rows.push(Row::without_figure("median completion of fair", "s", median(&four.fair))?);
    Ok(rows)
}

/// As much work as the cluster has to queue for.
pub(super) const BUSY: fn(World) -> (&'static str, World) = |stated| {
    ("a busy cluster: shuffle-heavy jobs, within 4 minutes", World { draw: Draw::Heavy, span_s: 240, ..stated })
};

/// Containers held for a job beyond its tasks in the mix (§4.3.2.3).
pub(super) const SPARE: &str = "over_provisioning = 1.0\n";

fn mixed(runs: &Runs<'_>) -> Result<Vec<Row>, ReproduceError> {
    let stated = World { ad_hoc_percent: 50, ..World::online(runs.context.scale) };
    let measures = [
        Measure {
            name: "recurring jobs, median completion: shorter than fair on the hybrid network",
            paper: 40.0,
            unit: "%",
            at_least: true,
            value: |four| less(&of_kind(&four.packer, true), &of_kind(&four.fair, true)),
        },
        Measure {
            name: "recurring jobs, median completion: shorter than corral",
            paper: 24.0,
            unit: "%",
            at_least: true,
            value: |four| less(&of_kind(&four.packer, true), &of_kind(&four.corral, true)),
        },
        Measure {
            name: "ad-hoc jobs, median completion: shorter than fair on the hybrid network",
            paper: 38.0,
            unit: "%",
            at_least: true,
            value: |four| less(&of_kind(&four.packer, false), &of_kind(&four.fair, false)),
        },
        Measure {
            name: "ad-hoc jobs, median completion: shorter than corral",
            paper: 25.0,
            unit: "%",
            at_least: true,
            value: |four| less(&of_kind(&four.packer, false), &of_kind(&four.corral, false)),
        },
    ];
    let mut cases = cases(stated);
    cases.push(BUSY(stated));
    let (four, mut rows) = runs.measured(stated, SPARE, &cases, &measures)?;
    for (kind, recurring) in [("recurring", true), ("ad-hoc", false)] {
        let like = ratio(&of_kind(&four.packer, recurring), &of_kind(&four.packets, recurring));
        let name = format!("{kind} jobs, median completion ÷ that of fair on 100 Gbit/s packets");
        rows.push(Row::without_figure(&name, "×", like)?);
    }
    rows.extend(circuit_rows(&four, false)?);
    Ok(rows)
}

/// Median completion of the jobs that recur, or of the others.
fn of_kind(runs: &[Arc<Run>], recurring: bool) -> Vec<f64> {
    each(runs, |run| quantile(run.completions(recurring), 0.5))
}

/// The value at that share of them, the lower of two; 0 of none.
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share) as usize).copied().unwrap_or(0.0)
}
