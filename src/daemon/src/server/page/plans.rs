//! Plans on the operator's page: which are kept, and of one its slices, its jobs, and how far each of them is.

use crate::runtime::Daemon;
use crate::server::convert;
use hintd_client::wire::v1;
use hintd_engine::Refusal;
use hintd_model::units::{RackPath, Timestamp};
use hintd_policy::plan::{JobProgress, Plan, PlannedJob, Stage, StageProgress};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Jobs of a plan shown: the first by planned start.
const JOBS_MAX: usize = 1_000;
/// Slices of these shown: more is no picture any more.
const SLICES_MAX: usize = 5_000;
/// Racks shown, in the plan's order.
const RACKS_MAX: usize = 500;

/// Kept plans, by name.
#[derive(Debug, Serialize)]
pub struct PagePlans {
    plans: Vec<v1::PlanView>,
}

/// See [`PagePlans`].
///
/// # Errors
/// [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn page_plans(daemon: &Daemon) -> Result<PagePlans, Refusal> {
    let (plans, now) = (daemon.plans().await?, daemon.clock().now());
    Ok(PagePlans { plans: plans.iter().map(|plan| convert::plan_view(plan, now)).collect() })
}

/// A plan as a Gantt chart, and how far it is.
#[derive(Debug, Serialize)]
pub struct PagePlan {
    plan: v1::PlanView,
    at_ms: u64,
    /// Whose progress is shown; absent: nobody follows the plan, or it is not in force.
    followed_by: Option<Arc<str>>,
    racks: Vec<PlanRack>,
    racks_total: usize,
    jobs: Vec<PlanJob>,
    jobs_total: usize,
    slices: Vec<PlanSlice>,
    slices_total: usize,
}

#[derive(Debug, Serialize)]
struct PlanRack {
    rack: String,
    containers: u32,
}

#[derive(Debug, Serialize)]
struct PlanJob {
    key: Arc<str>,
    run: u32,
    heavy: bool,
    arrival_ms: u64,
    start_ms: u64,
    /// On links that all jobs share, where that is known.
    end_ms: u64,
    shuffle_bytes: u64,
    tasks: [u32; 2],
    progress: Option<PlanJobProgress>,
}

#[derive(Debug, Serialize)]
struct PlanJobProgress {
    state: &'static str,
    application_id: Option<String>,
    attempt: Option<u32>,
    came_ms: Option<u64>,
    /// Maps, reduces.
    stages: [PlanStageProgress; 2],
    deviations: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct PlanStageProgress {
    tasks: u32,
    launched: Option<u32>,
    done: Option<u32>,
    released: bool,
}

/// Containers of one rack that run tasks of a stage, by positions in the lists beside it.
#[derive(Debug, Serialize)]
struct PlanSlice {
    rack: usize,
    job: usize,
    /// 0: maps, 1: reduces.
    stage: usize,
    start_ms: u64,
    end_ms: u64,
    tasks: u32,
    containers: u32,
}

/// See [`PagePlan`].
///
/// # Errors
/// [`Refusal::Unknown`] with the nearest name; [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn page_plan(daemon: &Daemon, name: &str) -> Result<PagePlan, Refusal> {
    let (view, progress) = daemon.plan_progress(name).await?;
    let now = daemon.clock().now();
    let work = move || {
        let plan = Arc::clone(&view.kept.plan);
        // Every policy that follows plans was told of it; shown is the one that has runs in it.
        let here = |rows: &[JobProgress]| rows.iter().filter(|row| row.attempt.is_some()).count();
        let (followed_by, progress) = progress.into_iter().max_by_key(|(_, rows)| here(rows)).unzip();
        document(&plan, &progress.unwrap_or_default(), convert::plan_view(&view, now), followed_by, now)
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| super::ended())
}

fn document(
    plan: &Plan,
    progress: &[JobProgress],
    view: v1::PlanView,
    followed_by: Option<Arc<str>>,
    now: Timestamp,
) -> PagePlan {
    let racks: Vec<PlanRack> = plan.racks.iter().take(RACKS_MAX).map(rack).collect();
    let mut order: Vec<usize> = (0..plan.jobs.len()).collect();
    order.sort_by_key(|&at| (plan.jobs[at].start, at));
    order.truncate(JOBS_MAX);
    let mut slices = slices(plan, &order);
    let slices_total = slices.len();
    slices.truncate(SLICES_MAX);
    PagePlan {
        plan: view,
        at_ms: now.as_millis(),
        followed_by,
        racks_total: plan.racks.len(),
        racks,
        jobs: order.iter().map(|&at| job(&plan.jobs[at], progress.get(at))).collect(),
        jobs_total: plan.jobs.len(),
        slices,
        slices_total,
    }
}

fn rack(row: &hintd_policy::plan::PlannedRack) -> PlanRack {
    PlanRack { rack: row.rack.to_string(), containers: row.containers }
}

fn job(planned: &PlannedJob, progress: Option<&JobProgress>) -> PlanJob {
    PlanJob {
        key: Arc::clone(&planned.job.key),
        run: planned.job.run,
        heavy: planned.heavy,
        arrival_ms: planned.arrival.as_millis(),
        start_ms: planned.start.as_millis(),
        end_ms: planned.expected_end().as_millis(),
        shuffle_bytes: planned.shuffle.0,
        tasks: [planned.maps.tasks, planned.reduces.tasks],
        progress: progress.map(job_progress),
    }
}

fn job_progress(found: &JobProgress) -> PlanJobProgress {
    let stage = |&StageProgress { tasks, launched, done, released }: &StageProgress| PlanStageProgress {
        tasks,
        launched,
        done,
        released,
    };
    PlanJobProgress {
        state: found.state.as_str(),
        application_id: found.attempt.map(|attempt| attempt.application.to_string()),
        attempt: found.attempt.map(|attempt| attempt.attempt),
        came_ms: found.came.map(Timestamp::as_millis),
        stages: [stage(&found.stages[0]), stage(&found.stages[1])],
        deviations: found.deviations.iter().map(|deviation| deviation.as_str()).collect(),
    }
}

/// Of the jobs shown, by start; what holds containers for no task is left out.
fn slices(plan: &Plan, order: &[usize]) -> Vec<PlanSlice> {
    let rack_at: BTreeMap<&RackPath, usize> =
        plan.racks.iter().take(RACKS_MAX).enumerate().map(|(at, row)| (&row.rack, at)).collect();
    let stages = order.iter().enumerate().flat_map(|(job, &at)| {
        let of = &plan.jobs[at];
        Stage::BOTH.into_iter().zip([&of.maps, &of.reduces]).map(move |(stage, part)| (job, stage, part))
    });
    let mut found: Vec<PlanSlice> = stages
        .flat_map(|(job, stage, part)| part.slices.iter().map(move |slice| (job, stage, slice)))
        .filter(|(.., slice)| slice.tasks > 0 && slice.end > slice.start)
        .filter_map(|(job, stage, slice)| {
            Some(PlanSlice {
                rack: *rack_at.get(&slice.rack)?,
                job,
                stage: usize::from(matches!(stage, Stage::Reduce)),
                start_ms: slice.start.as_millis(),
                end_ms: slice.end.as_millis(),
                tasks: slice.tasks,
                containers: slice.containers,
            })
        })
        .collect();
    found.sort_by_key(|slice| (slice.start_ms, slice.job, slice.stage));
    found
}
