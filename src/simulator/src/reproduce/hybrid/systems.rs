//! What is compared, and runs that entries share.

use super::world;
use crate::reproduce::nas;
use crate::reproduce::replay::replay;
use crate::reproduce::shared::SharedRuns;
use crate::reproduce::{KeptRuns, ReproduceError, Scale};
use crate::{JobModel, RunReport, SimSettings, TraceJob};
use hintd_policy::baselines::{delay::Delay, fair::Fair};
use hintd_policy::scale_up_out::{Order, ScaleUpOut, ScaleUpOutParams, Steal};
use hintd_policy::{Definition as _, Policy};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many times as many containers scale-up machines have in [`Kind::MoreUp`].
pub(super) const MORE_UP: u32 = 4;

/// Machines and rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Scale-out machines alone, and the baseline (FS, DS).
    ScaleOut,
    /// Both kinds of machines, and the baseline (H-FS-w/o, H-DS-w/o).
    Without,
    /// Both, and `scale_up_out` (H-FS-with, H-DS-with).
    With,
    /// The same, stealing at once, as §5.2.3 has it.
    StealsAtOnce,
    /// The same, stealing also as jobs come, where they end sooner so: ours, and what the daemon does.
    StealsWhenSooner,
    /// The same as [`Kind::With`] where scale-up machines have [`MORE_UP`] times as many containers.
    MoreUp,
    /// `scale_up_out` without queues by class (H-w/o-P).
    NoPlacement,
    /// Without stealing (H-w/o-JS).
    NoStealing,
    /// Without replicas by class (H-w/o-DPS).
    NoData,
}

/// One run's settings but the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct System {
    pub(super) kind: Kind,
    /// In the order of `delay`, not of `fair`.
    pub(super) delay: bool,
    /// All jobs at once.
    pub(super) batch: bool,
    pub(super) quick: bool,
    /// How far known shuffles are from the true ones at most, per cent.
    pub(super) error_percent: u32,
}

impl System {
    pub(super) const fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }
}

/// One run, by what its jobs are.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) report: RunReport,
    /// Completion times of small jobs, and of large ones.
    pub(super) completions: [Vec<f64>; 2],
    /// When the last small job ended.
    pub(super) small_makespan_s: f64,
}

impl Run {
    /// Mean completion time of small (0) or large (1) jobs.
    pub(super) fn mean(&self, class: usize) -> f64 {
        let of = &self.completions[class];
        of.iter().sum::<f64>() / of.len().max(1) as f64
    }
}

/// The run of `system` with `seed`, made once in a process however many entries want it.
pub(super) fn run(entry: &str, system: System, seed: u64, kept: Option<&KeptRuns>) -> Result<Arc<Run>, ReproduceError> {
    static RUNS: SharedRuns<(System, u64), Run> = SharedRuns::new();
    RUNS.run(entry, (system, seed), || found_or_made(system, seed, kept))
}

fn found_or_made(system: System, seed: u64, kept: Option<&KeptRuns>) -> Result<Run, String> {
    let Some(kept) = kept else { return made(system, seed) };
    let of = format!("{system:?}, seed {seed}, {}, {}", nas::day().source, world::training_day().source);
    let name = format!("hybrid-{seed}");
    if let Some(run) = kept.get(&name, &of) {
        return Ok(run);
    }
    let run = made(system, seed)?;
    kept.put(&name, &of, &run).map_err(|error| format!("the run {name} can't be kept: {error}"))?;
    Ok(run)
}

fn made(system: System, seed: u64) -> Result<Run, String> {
    made_of(system, seed, &world::jobs(system.scale(), seed, system.batch))
}

/// The settings of a run: half of the jobs ran before, with that error at most.
pub(super) fn settings(seed: u64, error_percent: u32) -> SimSettings {
    let history_error = 1.0 + f64::from(error_percent) / 100.0;
    SimSettings { seed, recurring: 0.5, history_error, ..SimSettings::default() }
}

/// The run of `system` with these jobs.
pub(super) fn made_of(system: System, seed: u64, jobs: &[TraceJob]) -> Result<Run, String> {
    let name = if system.kind == Kind::ScaleOut { "scale-out" } else { "scale-up-out" };
    let mut shape = world::shape(system.scale(), name);
    if system.kind == Kind::MoreUp {
        for class in &mut shape.classes {
            class.containers_per_node = class.containers_per_node.map(|containers| containers * MORE_UP);
        }
    }
    let cluster = shape.to_cluster().expect("the shapes shipped are right, and stay so when smaller");
    let model = JobModel { seed, ..JobModel::default() };
    let mut report = replay(&*policy(system)?, &cluster, &model, &settings(seed, system.error_percent), jobs)?;
    let params = ScaleUpOutParams::default();
    let mut completions = [Vec::new(), Vec::new()];
    let mut small_makespan_s = 0.0_f64;
    for (job, jct_s) in jobs.iter().zip(std::mem::take(&mut report.jct_s)) {
        let small = world::small(job, &params);
        completions[usize::from(!small)].push(jct_s);
        if small {
            small_makespan_s = small_makespan_s.max(job.submit.as_secs_f64() + jct_s);
        }
    }
    Ok(Run { report, completions, small_makespan_s })
}

fn policy(system: System) -> Result<Box<dyn Policy>, String> {
    let order = if system.delay { Order::Delay } else { Order::Fair };
    // Nothing is stolen before a machine is idle, as the paper has it.
    let stated = ScaleUpOutParams { order, steal: Steal::WhenFull, ..ScaleUpOutParams::default() };
    let params = match system.kind {
        Kind::ScaleOut | Kind::Without if system.delay => return Ok(Box::new(Delay::default())),
        Kind::ScaleOut | Kind::Without => return Ok(Box::new(Fair::default())),
        Kind::With | Kind::MoreUp => stated,
        Kind::StealsAtOnce => ScaleUpOutParams { steal: Steal::Always, ..stated },
        Kind::StealsWhenSooner => ScaleUpOutParams { steal: Steal::WhenSooner, ..stated },
        Kind::NoPlacement => ScaleUpOutParams { queues: false, ..stated },
        Kind::NoStealing => ScaleUpOutParams { steal: Steal::Never, ..stated },
        Kind::NoData => ScaleUpOutParams { replicas: false, ..stated },
    };
    Ok(Box::new(ScaleUpOut::new(params).with_classifier(world::classifier(system.scale())?)))
}
