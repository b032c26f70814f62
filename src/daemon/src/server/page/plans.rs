//! Plans on the operator's page: which are kept, and of one its slices, its jobs, and how far each of them is.

use crate::runtime::Daemon;
use crate::server::convert;
use hintd_client::wire::v1;
use hintd_engine::Refusal;
use hintd_model::units::{RackIdx, RackPath, Timestamp};
use hintd_policy::plan::{JobProgress, Plan, PlannedJob, PlannedStage, Stage, StageProgress};
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
    /// Of the tasks that the run has here those launched: a rack's first slices have its first ones. Absent: nobody tells.
    launched: Option<[u32; 2]>,
}

/// See [`PagePlan`].
///
/// # Errors
/// [`Refusal::Unknown`] with the nearest name; [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn page_plan(daemon: &Daemon, name: &str) -> Result<PagePlan, Refusal> {
    let (view, progress) = daemon.plan_progress(name).await?;
    let (generation, now) = (daemon.generation(), daemon.clock().now());
    let work = move || {
        let plan = Arc::clone(&view.kept.plan);
        // Every policy that follows plans was told of it; shown is the one that has runs in it.
        let here = |rows: &[JobProgress]| rows.iter().filter(|row| row.attempt.is_some()).count();
        let (followed_by, progress) = progress.into_iter().max_by_key(|(_, rows)| here(rows)).unzip();
        let rack_of = |path: &RackPath| generation.snapshot.statics.by_rack.get(path).copied();
        let progress = Progress { jobs: &progress.unwrap_or_default(), followed_by, rack_of: &rack_of };
        document(&plan, progress, convert::plan_view(&view, now), now)
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| super::ended())
}

/// How far a plan is.
struct Progress<'a> {
    /// By the plan's order; empty: nobody tells.
    jobs: &'a [JobProgress],
    followed_by: Option<Arc<str>>,
    rack_of: &'a dyn Fn(&RackPath) -> Option<RackIdx>,
}

fn document(plan: &Plan, progress: Progress<'_>, view: v1::PlanView, now: Timestamp) -> PagePlan {
    let racks: Vec<PlanRack> = plan.racks.iter().take(RACKS_MAX).map(rack).collect();
    let mut order: Vec<usize> = (0..plan.jobs.len()).collect();
    order.sort_by_key(|&at| (plan.jobs[at].start, at));
    order.truncate(JOBS_MAX);
    let mut slices = slices(plan, &order, &progress);
    let slices_total = slices.len();
    slices.truncate(SLICES_MAX);
    PagePlan {
        plan: view,
        at_ms: now.as_millis(),
        followed_by: progress.followed_by,
        racks_total: plan.racks.len(),
        racks,
        jobs: order.iter().map(|&at| job(&plan.jobs[at], progress.jobs.get(at))).collect(),
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
    let stage = |of: &StageProgress| PlanStageProgress {
        tasks: of.tasks,
        launched: of.launched,
        done: of.done,
        released: of.released,
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
fn slices(plan: &Plan, order: &[usize], progress: &Progress<'_>) -> Vec<PlanSlice> {
    let rack_at: BTreeMap<&RackPath, usize> =
        plan.racks.iter().take(RACKS_MAX).enumerate().map(|(at, row)| (&row.rack, at)).collect();
    let stages = order.iter().enumerate().flat_map(|(job, &at)| {
        let of = &plan.jobs[at];
        let parts = Stage::BOTH.into_iter().zip([&of.maps, &of.reduces]);
        parts.enumerate().map(move |(nth, (stage, part))| {
            let told = progress.jobs.get(at).map(|found| &found.stages[nth]);
            (job, stage, part.slices.iter().zip(launched(part, told, progress.rack_of)))
        })
    });
    let mut found: Vec<PlanSlice> = stages
        .flat_map(|(job, stage, slices)| slices.map(move |(slice, launched)| (job, stage, slice, launched)))
        .filter(|(_, _, slice, _)| slice.tasks > 0 && slice.end > slice.start)
        .filter_map(|(job, stage, slice, launched)| {
            Some(PlanSlice {
                rack: *rack_at.get(&slice.rack)?,
                job,
                stage: usize::from(matches!(stage, Stage::Reduce)),
                start_ms: slice.start.as_millis(),
                end_ms: slice.end.as_millis(),
                tasks: slice.tasks,
                containers: slice.containers,
                launched,
            })
        })
        .collect();
    found.sort_by_key(|slice| (slice.start_ms, slice.job, slice.stage));
    found
}

/// Of each slice how many of its tasks were launched, and how many the run has there: as planned, or in the same proportion.
/// Who follows a plan counts by rack, so that a rack's slices are filled in the order of their starts; what it launched beyond
/// its part is in its last.
fn launched(
    part: &PlannedStage,
    told: Option<&StageProgress>,
    rack_of: &dyn Fn(&RackPath) -> Option<RackIdx>,
) -> Vec<Option<[u32; 2]>> {
    let mut found = vec![None; part.slices.len()];
    let Some(told) = told else { return found };
    let mut by_start: Vec<usize> = (0..part.slices.len()).filter(|&at| part.slices[at].tasks > 0).collect();
    by_start.sort_by_key(|&at| part.slices[at].start);
    for &(rack, launched) in &told.launched_in {
        let (mut left, mut last) = (launched, None);
        for &at in by_start.iter().filter(|&&at| rack_of(&part.slices[at].rack) == Some(rack)) {
            let tasks = u64::from(told.tasks) * u64::from(part.slices[at].tasks);
            let tasks = u32::try_from(tasks.div_ceil(u64::from(part.tasks.max(1)))).unwrap_or(u32::MAX);
            let here = left.min(tasks);
            left -= here;
            last = Some(at);
            found[at] = Some([here, tasks]);
        }
        if let Some([here, _]) = last.and_then(|at| found[at].as_mut()) {
            *here = here.saturating_add(left);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::Micros;
    use hintd_policy::plan::Slice;

    #[test]
    fn each_slice_has_what_its_own_rack_launched() {
        let rack = |name: &str| RackPath::from(name);
        let slice = |name: &str, start: u64, tasks: u32| Slice {
            rack: rack(name),
            start: Timestamp(start),
            end: Timestamp(start + 1),
            tasks,
            containers: tasks,
        };
        let slices = vec![slice("/a", 9, 4), slice("/a", 5, 4), slice("/b", 5, 2)];
        let part = PlannedStage { tasks: 10, task_time: Micros(1), slices };
        let rack_of =
            |path: &RackPath| ["/a", "/b"].iter().position(|name| *path == rack(name)).map(|at| RackIdx(at as u32));
        let of = |tasks: u32, counts: [u32; 2]| {
            let launched_in = (0..).map(RackIdx).zip(counts).collect();
            let told =
                StageProgress { tasks, launched: Some(counts.iter().sum()), launched_in, ..StageProgress::default() };
            launched(&part, Some(&told), &rack_of)
        };
        assert_eq!(of(10, [5, 0]), [Some([1, 4]), Some([4, 4]), Some([0, 2])], "the earlier slice is filled first");
        assert_eq!(of(20, [3, 4]), [Some([0, 8]), Some([3, 8]), Some([4, 4])], "twice as many tasks as planned");
        assert_eq!(of(10, [9, 2]), [Some([5, 4]), Some([4, 4]), Some([2, 2])], "more than its part");
        let at_once = StageProgress { tasks: 10, ..StageProgress::default() };
        assert_eq!(launched(&part, Some(&at_once), &rack_of), [None; 3]);
        assert_eq!(launched(&part, None, &rack_of), [None; 3]);
    }
}
