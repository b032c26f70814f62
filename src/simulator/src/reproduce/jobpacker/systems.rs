//! What is compared, and runs that entries share.

use super::world::{self, Draw};
use crate::reproduce::replay::{policy, replay};
use crate::reproduce::shared::SharedRuns;
use crate::reproduce::{ReproduceError, Scale};
use crate::shape::ClusterShape;
use crate::yarn::forecast::{expected_jobs, problem};
use crate::{JobModel, RunReport, SimSettings, TraceJob};
use hintd_model::units::{Bytes, Micros, Timestamp};
use hintd_policy::plan::{ExpectedJob, Objective, PLAN_WORK, Plan};
use hintd_policy::{Budget, jobpacker};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A policy with its parameters, on a network, in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct System {
    /// Of the registry.
    pub(super) policy: &'static str,
    /// Its parameters as TOML, where they are not the defaults.
    pub(super) params: &'static str,
    /// A cluster that is shipped.
    pub(super) cluster: &'static str,
    /// Everything else.
    pub(super) world: World,
}

/// What the systems of a comparison have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct World {
    /// A quarter of it.
    pub(super) quick: bool,
    pub(super) draw: Draw,
    /// Jobs come within so many seconds; 0: a batch, all at once.
    pub(super) span_s: u32,
    /// Compute rate against the stated one, per cent.
    pub(super) compute_percent: u32,
    /// Jobs that nobody plans, per cent.
    pub(super) ad_hoc_percent: u32,
    /// |real − predicted| ÷ real of every job's shuffle, per cent.
    pub(super) shuffle_error_percent: u32,
    /// Jobs that come up to 200 s too early or too late, per cent.
    pub(super) late_percent: u32,
    /// Between two choices of circuits.
    pub(super) interval_ms: u32,
    /// First replicas by how many maps a rack runs, as we do by default, and not at random, as the thesis does.
    pub(super) by_maps: bool,
    /// What is idealised, for the forecast.
    pub(super) ideal: Ideal,
}

/// What of a run is not as in the comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ideal {
    /// Tasks take no more and no less than their bytes say.
    pub(super) still: bool,
    pub(super) heartbeat_ms: u32,
    /// Uplinks and nodes' links so many times as fast.
    pub(super) links: u32,
    /// Jobs shuffle nothing.
    pub(super) no_shuffle: bool,
    /// Only the job that shuffles most.
    pub(super) alone: bool,
    /// The simulator draws anew, so many times: in which order nodes report, where blocks lie. The plan is the same.
    pub(super) drawn_anew: u32,
}

impl Ideal {
    /// Nothing.
    pub(super) const NOT: Self =
        Self { still: false, heartbeat_ms: 1_000, links: 1, no_shuffle: false, alone: false, drawn_anew: 0 };
    /// "heartbeat 0, no prediction error, σ = 0".
    pub(super) const FORECAST: Self = Self { still: true, heartbeat_ms: 1, ..Self::NOT };
}

impl World {
    /// As stated: a batch.
    pub(super) const fn batch(scale: Scale) -> Self {
        Self {
            quick: matches!(scale, Scale::Quick),
            draw: Draw::OneNode,
            span_s: 0,
            compute_percent: 100,
            ad_hoc_percent: 0,
            shuffle_error_percent: 0,
            late_percent: 0,
            interval_ms: 1_000,
            by_maps: false,
            ideal: Ideal::NOT,
        }
    }

    /// As stated: within 90 minutes.
    pub(super) const fn online(scale: Scale) -> Self {
        Self { span_s: 5_400, ..Self::batch(scale) }
    }

    const fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }
}

/// One run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) report: RunReport,
    /// By job of the trace: whether somebody plans it.
    pub(super) recurring: Vec<bool>,
    /// Likewise: when the plan has it end, seconds from the start.
    pub(super) planned_end_s: Vec<f64>,
    /// Likewise: when it ended.
    pub(super) end_s: Vec<f64>,
}

impl Run {
    /// Completion times of the jobs that are planned, or of the others.
    pub(super) fn completions(&self, recurring: bool) -> Vec<f64> {
        let of = self.report.jct_s.iter().zip(&self.recurring).filter(|(_, it)| **it == recurring);
        of.map(|(jct, _)| *jct).collect()
    }

    /// Makespan ÷ the plan's, and of jobs end ÷ planned end.
    pub(super) fn against_plan(&self) -> (f64, Vec<f64>) {
        let last = |ends: &[f64]| ends.iter().copied().fold(0.0, f64::max);
        let ratios = self.end_s.iter().zip(&self.planned_end_s).map(|(end, planned)| end / planned);
        (last(&self.end_s) / last(&self.planned_end_s), ratios.collect())
    }
}

/// The run of `system` with `seed`, made once in a process however many entries want it.
pub(super) fn run(entry: &str, system: System, seed: u64) -> Result<Arc<Run>, ReproduceError> {
    static RUNS: SharedRuns<(System, u64), Run> = SharedRuns::new();
    RUNS.run(entry, (system, seed), || made(system, seed))
}

fn made(system: System, seed: u64) -> Result<Run, String> {
    let System { world, .. } = system;
    let cluster = world::cluster(&shape(system));
    let expected = drawn(world, seed);
    let jobs = world::come(&expected, world.late_percent, seed ^ LATE_STREAM);
    let params = [rule_of_replicas(system), system.params].concat();
    let policy = policy(system.policy, &params)?;
    let sigma = if world.ideal.still { 0.0 } else { JobModel::default().sigma };
    let model = JobModel { seed, sigma, ..JobModel::default() }.at_rate(f64::from(world.compute_percent) / 100.0);
    let known = known(world, &expected, &jobs, &model, seed);
    let keys: BTreeSet<&str> = known.iter().map(|job| &*job.key).collect();
    let recurring = jobs.iter().map(|job| keys.contains(&*job.name)).collect();
    let objective = if world.span_s == 0 { Objective::Batch } else { Objective::Online };
    let problem = problem(&cluster, known, objective, None, None, seed).ok_or("the cluster has no network")?;
    let plan = policy
        .as_plan()
        .map(|planner| planner.plan(&problem, &mut Budget::with_work(0, PLAN_WORK, &mut || false)).map(Arc::new))
        .transpose();
    let plan = plan.map_err(|error| error.to_string())?;
    let heartbeat = Micros::from_millis(world.ideal.heartbeat_ms.into());
    let drawn = seed ^ (u64::from(world.ideal.drawn_anew) * ANEW_STREAM);
    let settings = SimSettings { seed: drawn, heartbeat, plan: plan.clone(), ..SimSettings::default() };
    let report = replay(&*policy, &cluster, &model, &settings, &jobs)?;
    let end_s = jobs.iter().zip(&report.jct_s).map(|(job, jct)| job.submit.as_secs_f64() + jct).collect();
    Ok(Run { report, recurring, planned_end_s: plan.map_or_else(Vec::new, |plan| planned_ends(&plan, &jobs)), end_s })
}

fn rule_of_replicas(system: System) -> &'static str {
    match [jobpacker::NAME, jobpacker::CORRAL].contains(&system.policy) {
        false => "",
        true if system.world.by_maps => "first_replica = \"by_maps\"\n",
        true => "first_replica = \"evenly\"\n",
    }
}

const LATE_STREAM: u64 = 1 << 32;
const KNOWN_STREAM: u64 = 2 << 32;
const ANEW_STREAM: u64 = 1 << 40;

fn shape(system: System) -> ClusterShape {
    let World { interval_ms, ideal, .. } = system.world;
    let shape = world::shape(system.world.scale(), system.cluster);
    world::with_links(world::with_interval(shape, interval_ms.into()), ideal.links.into())
}

pub(super) fn drawn(world: World, seed: u64) -> Vec<TraceJob> {
    let mut jobs = world::jobs(world.scale(), world.draw, world.span_s, seed);
    if world.ideal.no_shuffle {
        jobs.iter_mut().for_each(|job| job.shuffle = Bytes::ZERO);
    }
    if world.ideal.alone {
        jobs = jobs.into_iter().max_by_key(|job| job.shuffle).into_iter().collect();
    }
    jobs
}

/// What the planner is told of the jobs that recur: each as it is, but for arrival and shuffle as they are predicted.
pub(super) fn known(
    world: World,
    expected: &[TraceJob],
    jobs: &[TraceJob],
    model: &JobModel,
    seed: u64,
) -> Vec<ExpectedJob> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ KNOWN_STREAM);
    let arrivals: BTreeMap<&str, Micros> = expected.iter().map(|job| (&*job.name, job.submit)).collect();
    let draws: BTreeMap<&str, (f64, bool)> =
        expected.iter().map(|job| (&*job.name, (random.random::<f64>(), random.random::<f64>() < 0.5))).collect();
    let error = f64::from(world.shuffle_error_percent) / 100.0;
    let told = expected_jobs(jobs, model).into_iter().filter_map(|job| {
        let (ad_hoc, above) = draws[&*job.key];
        let arrival = Timestamp(arrivals[&*job.key].0);
        let factor = if above { 1.0 + error } else { 1.0 - error };
        let shuffle = Bytes((job.shuffle.as_f64() * factor) as u64);
        let recurs = ad_hoc * 100.0 >= f64::from(world.ad_hoc_percent);
        recurs.then_some(ExpectedJob { arrival, shuffle, ..job })
    });
    told.collect()
}

fn planned_ends(plan: &Plan, jobs: &[TraceJob]) -> Vec<f64> {
    let ends: BTreeMap<&str, f64> =
        plan.jobs.iter().map(|job| (&*job.job.key, job.expected_end().since(plan.from).as_secs_f64())).collect();
    jobs.iter().filter_map(|job| ends.get(&*job.name).copied()).collect()
}
