//! What is compared, and runs that entries share.

use super::world;
use crate::reproduce::replay::{policy, replay};
use crate::reproduce::shared::SharedRuns;
use crate::reproduce::{KeptRuns, ReproduceError, Scale};
use crate::{JobModel, RunReport, SimSettings};
use std::sync::Arc;

/// A policy with its parameters, in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct System {
    /// Of the registry.
    pub(super) policy: &'static str,
    /// Its parameters as TOML, where they are not the defaults.
    pub(super) params: &'static str,
    /// Users.
    pub(super) users: u32,
    /// Compute rate against the stated one, per cent.
    pub(super) compute_percent: u32,
    /// Whether policies know output ÷ input of jobs from earlier runs.
    pub(super) known_ratios: bool,
    /// Whether jobs without recorded input have maps by their shuffle.
    pub(super) maps_by_shuffle: bool,
    /// Which world.
    pub(super) world: World,
}

/// Trace and cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum World {
    /// The day on 600 nodes, or its sample.
    Day { quick: bool },
    /// 200 jobs on 40 nodes.
    Validation,
}

impl World {
    pub(super) const fn day(scale: Scale) -> Self {
        Self::Day { quick: matches!(scale, Scale::Quick) }
    }
}

impl System {
    /// With the paper's 200 users.
    pub(super) const fn new(policy: &'static str, params: &'static str, world: World) -> Self {
        Self { policy, params, users: 200, compute_percent: 100, known_ratios: false, maps_by_shuffle: false, world }
    }
}

/// The run of `system` with `seed`, made once in a process however many entries want it.
pub(super) fn run(
    entry: &str,
    system: System,
    seed: u64,
    kept: Option<&KeptRuns>,
) -> Result<Arc<RunReport>, ReproduceError> {
    static RUNS: SharedRuns<(System, u64), RunReport> = SharedRuns::new();
    RUNS.run(entry, (system, seed), || found_or_made(system, seed, kept))
}

fn found_or_made(system: System, seed: u64, kept: Option<&KeptRuns>) -> Result<RunReport, String> {
    let Some(kept) = kept else { return made(system, seed) };
    let of = format!("{system:?}, seed {seed}, {}", world::day().source);
    let name = format!("{}-{seed}", system.policy);
    if let Some(report) = kept.get(&name, &of) {
        return Ok(report);
    }
    let report = made(system, seed)?;
    kept.put(&name, &of, &report).map_err(|error| format!("the run {name} can't be kept: {error}"))?;
    Ok(report)
}

fn made(system: System, seed: u64) -> Result<RunReport, String> {
    let (cluster, jobs) = match system.world {
        World::Day { quick } => {
            let scale = if quick { Scale::Quick } else { Scale::Full };
            (world::cluster(scale), world::jobs(scale, seed))
        }
        World::Validation => (world::validation_cluster(), world::validation_jobs(seed)),
    };
    let jobs = if system.maps_by_shuffle { world::with_maps_by_shuffle(jobs) } else { jobs };
    let policy = policy(system.policy, system.params)?;
    let System { users, known_ratios, .. } = system;
    let settings = SimSettings { seed, users, known_ratios, ..SimSettings::default() };
    let model = JobModel { seed, ..JobModel::default() }.at_rate(f64::from(system.compute_percent) / 100.0);
    replay(&*policy, &cluster, &model, &settings, &jobs)
}
