//! Whether a plan makes sense, found without the code that makes plans.
//!
//! Everything is recounted from the slices of the jobs: containers held at any moment in any rack, tasks, times,
//! sequences. What a cluster has by now is asked apart, as plans grow old while they wait to be activated.

use super::data::{JobName, PLAN_FORMAT, Plan, PlannedJob, PlannedStage, Slice, Stage, Step};
use crate::units::{Bytes, Micros, RackPath, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What a plan is held against.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Racks that there are, and how many of the plan's containers run there at a time; none: not asked.
    pub racks: Option<BTreeMap<RackPath, u32>>,
    /// The time; none: not asked.
    pub now: Option<Timestamp>,
}

/// One thing that is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // each message says what its fields are
pub enum Defect {
    #[error("format is \"{0}\", not \"{PLAN_FORMAT}\"")]
    Format(std::sync::Arc<str>),
    #[error("until ({until} us) is not after from ({from} us)")]
    Horizon { from: u64, until: u64 },
    #[error(
        "until ({until} us) has passed: it is {now} us; a trace's plan counts from the trace's start unless made with --start"
    )]
    Expired { until: u64, now: u64 },
    #[error("rack {0}: is listed twice")]
    RackTwice(RackPath),
    #[error("rack {0}: no such rack in the cluster")]
    RackUnknown(RackPath),
    #[error("rack {rack}: containers is {planned}, the cluster has room for {has}")]
    RackShrunk { rack: RackPath, planned: u32, has: u32 },
    #[error("job {0}: is listed twice")]
    JobTwice(JobName),
    #[error("job {job}: arrival ({arrival} us) is outside the horizon")]
    Arrival { job: JobName, arrival: u64 },
    #[error("job {job}: {stage} slice in rack {rack}, which the plan does not list", stage = stage.as_str())]
    SliceRack { job: JobName, stage: Stage, rack: RackPath },
    #[error("job {job}: {stage} slice in rack {rack} from {start} us: {field} is {says}, {why}", stage = stage.as_str())]
    Slice { job: JobName, stage: Stage, rack: RackPath, start: u64, field: &'static str, says: u64, why: &'static str },
    #[error("job {job}: {stage} tasks is {says}, its slices run {run}", stage = stage.as_str())]
    Tasks { job: JobName, stage: Stage, says: u32, run: u64 },
    #[error("job {job}: {stage} slice in rack {rack} has start {start} us, before {not_before} us when it could", stage = stage.as_str())]
    Early { job: JobName, stage: Stage, rack: RackPath, start: u64, not_before: u64 },
    #[error("job {job}: {field} is {says} us, by its slices {is} us")]
    Times { job: JobName, field: &'static str, says: u64, is: u64 },
    #[error("job {job}: forecast {field} is {says} us, before {not_before} us when it could")]
    Forecast { job: JobName, field: &'static str, says: u64, not_before: u64 },
    #[error("job {job}: heavy, but {why}")]
    Heavy { job: JobName, why: String },
    #[error("rack {rack}: {held} containers held at {at} us, it has {containers}")]
    Capacity { rack: RackPath, at: u64, held: u64, containers: u32 },
    #[error("rack {rack}: sequence lacks {step}")]
    StepMissing { rack: RackPath, step: Step },
    #[error("rack {rack}: sequence has {step}, {why}")]
    StepSurplus { rack: RackPath, step: Step, why: &'static str },
    #[error("rack {rack}: sequence has {step} after one that starts later")]
    StepOrder { rack: RackPath, step: Step },
}

/// Everything that is wrong with the plan: of racks, then jobs in their order, then capacity and sequences by rack.
#[must_use]
pub fn check(plan: &Plan, facts: &Facts) -> Vec<Defect> {
    let mut defects = Vec::new();
    head(plan, facts, &mut defects);
    let racks = racks(plan, facts, &mut defects);
    let mut seen = BTreeSet::new();
    for job in &plan.jobs {
        if !seen.insert(&job.job) {
            defects.push(Defect::JobTwice(job.job.clone()));
        }
        if job.arrival < plan.from || job.arrival >= plan.until {
            defects.push(Defect::Arrival { job: job.job.clone(), arrival: job.arrival.0 });
        }
        stage(job, Stage::Map, job.arrival, &racks, &mut defects);
        let maps_end = ends(&job.maps).unwrap_or(job.arrival);
        stage(job, Stage::Reduce, maps_end.plus(job.shuffle_time), &racks, &mut defects);
        times(job, &mut defects);
        heavy(plan, job, &mut defects);
    }
    capacity(plan, &racks, &mut defects);
    sequences(plan, &mut defects);
    defects
}

fn head(plan: &Plan, facts: &Facts, defects: &mut Vec<Defect>) {
    if &*plan.format != PLAN_FORMAT {
        defects.push(Defect::Format(plan.format.clone()));
    }
    if plan.until <= plan.from {
        defects.push(Defect::Horizon { from: plan.from.0, until: plan.until.0 });
    }
    if let Some(now) = facts.now.filter(|now| *now >= plan.until) {
        defects.push(Defect::Expired { until: plan.until.0, now: now.0 });
    }
}

/// Racks of the plan with their containers.
fn racks<'a>(plan: &'a Plan, facts: &Facts, defects: &mut Vec<Defect>) -> BTreeMap<&'a RackPath, u32> {
    let mut racks = BTreeMap::new();
    for row in &plan.racks {
        if racks.insert(&row.rack, row.containers).is_some() {
            defects.push(Defect::RackTwice(row.rack.clone()));
        }
        let Some(cluster) = &facts.racks else {
            continue;
        };
        match cluster.get(&row.rack) {
            None => defects.push(Defect::RackUnknown(row.rack.clone())),
            Some(&has) if has < row.containers => {
                defects.push(Defect::RackShrunk { rack: row.rack.clone(), planned: row.containers, has });
            }
            Some(_) => {}
        }
    }
    racks
}

fn stage(
    of: &PlannedJob,
    stage: Stage,
    not_before: Timestamp,
    racks: &BTreeMap<&RackPath, u32>,
    defects: &mut Vec<Defect>,
) {
    let (job, part) = (&of.job, of.stage(stage));
    let mut run = 0_u64;
    for slice in &part.slices {
        run += u64::from(slice.tasks);
        let (rack, start) = (slice.rack.clone(), slice.start.0);
        if !racks.contains_key(&slice.rack) {
            defects.push(Defect::SliceRack { job: job.clone(), stage, rack: rack.clone() });
        }
        if slice.start < not_before {
            let not_before = not_before.0;
            defects.push(Defect::Early { job: job.clone(), stage, rack: rack.clone(), start, not_before });
        }
        if let Some((field, says, why)) = odd(slice, part.task_time) {
            defects.push(Defect::Slice { job: job.clone(), stage, rack, start, field, says, why });
        }
    }
    if run != u64::from(part.tasks) {
        defects.push(Defect::Tasks { job: job.clone(), stage, says: part.tasks, run });
    }
}

/// What no slice can be: field, value, why not.
fn odd(slice: &Slice, task_time: Micros) -> Option<(&'static str, u64, &'static str)> {
    if slice.end < slice.start {
        return Some(("end", slice.end.0, "before its start"));
    }
    if slice.containers == 0 {
        return Some(("containers", 0, "so nothing runs in it"));
    }
    let span = slice.end.since(slice.start);
    // Tasks that take no time all fit.
    let rounds = span.0.checked_div(task_time.0).unwrap_or(u64::MAX);
    if u128::from(rounds) * u128::from(slice.containers) < u128::from(slice.tasks) {
        return Some(("tasks", slice.tasks.into(), "more than its containers run in that time"));
    }
    None
}

fn ends(stage: &PlannedStage) -> Option<Timestamp> {
    stage.slices.iter().filter(|slice| slice.tasks > 0).map(|slice| slice.end).max()
}

fn times(job: &PlannedJob, defects: &mut Vec<Defect>) {
    let slices = || job.maps.slices.iter().chain(&job.reduces.slices).filter(|slice| slice.tasks > 0);
    let start = slices().map(|slice| slice.start).min().unwrap_or(job.start);
    let end = slices().map(|slice| slice.end).max().unwrap_or(job.end);
    for (field, says, is) in [("start", job.start, start), ("end", job.end, end)] {
        if says != is {
            defects.push(Defect::Times { job: job.job.clone(), field, says: says.0, is: is.0 });
        }
    }
    let Some(forecast) = job.forecast else { return };
    let steps = [
        ("maps_end", forecast.maps_end, job.arrival),
        ("shuffled", forecast.shuffled, forecast.maps_end),
        ("end", forecast.end, forecast.shuffled),
    ];
    for (field, says, not_before) in steps.into_iter().filter(|(_, says, not_before)| says < not_before) {
        defects.push(Defect::Forecast { job: job.job.clone(), field, says: says.0, not_before: not_before.0 });
    }
}

/// A heavy job's tasks are spread evenly, and what each pair of racks exchanges reaches the threshold (004 §4.2.3).
fn heavy(plan: &Plan, job: &PlannedJob, defects: &mut Vec<Defect>) {
    if !job.heavy {
        return;
    }
    let mut wrong = |why: String| defects.push(Defect::Heavy { job: job.job.clone(), why });
    if plan.assumptions.circuit.is_none() {
        wrong("the plan assumes no optical switch".to_owned());
    }
    let (maps, reduces) = (job.maps.racks(), job.reduces.racks());
    let pairs = maps.len() as u64 * reduces.len() as u64;
    let each = Bytes(job.shuffle.0.checked_div(pairs).unwrap_or(0));
    if each < plan.assumptions.elephant {
        wrong(format!("{} bytes for each rack pair are below elephant = {}", each.0, plan.assumptions.elephant.0));
    }
    for (stage, racks) in [(Stage::Map, maps), (Stage::Reduce, reduces)] {
        let counts = || racks.iter().map(|(_, tasks)| *tasks);
        if let (Some(least), Some(most)) = (counts().min(), counts().max())
            && most - least > 1
        {
            wrong(format!("its racks run from {least} to {most} {} tasks", stage.as_str()));
        }
    }
}

/// Containers held at any moment: starts and ends in order of time, ends first.
fn capacity(plan: &Plan, racks: &BTreeMap<&RackPath, u32>, defects: &mut Vec<Defect>) {
    let mut changes: BTreeMap<&RackPath, Vec<(Timestamp, bool, u32)>> = BTreeMap::new();
    for job in &plan.jobs {
        for slice in job.maps.slices.iter().chain(&job.reduces.slices).filter(|slice| slice.end > slice.start) {
            let rack = changes.entry(&slice.rack).or_default();
            rack.push((slice.start, true, slice.containers));
            rack.push((slice.end, false, slice.containers));
        }
    }
    for (rack, mut changes) in changes {
        let Some(&containers) = racks.get(rack) else {
            continue;
        };
        changes.sort_unstable();
        let mut held = 0_u64;
        for (at, begins, count) in changes {
            held = if begins { held + u64::from(count) } else { held - u64::from(count) };
            if begins && held > u64::from(containers) {
                defects.push(Defect::Capacity { rack: rack.clone(), at: at.0, held, containers });
                break;
            }
        }
    }
}

/// Each rack's sequence names what its slices run, each once, ascending by start.
fn sequences(plan: &Plan, defects: &mut Vec<Defect>) {
    let mut starts: BTreeMap<&RackPath, BTreeMap<Step, Timestamp>> = BTreeMap::new();
    for job in &plan.jobs {
        for stage in Stage::BOTH {
            for slice in job.stage(stage).slices.iter().filter(|slice| slice.tasks > 0) {
                let step = Step { job: job.job.clone(), stage };
                let steps = starts.entry(&slice.rack).or_default();
                let start = steps.entry(step).or_insert(slice.start);
                *start = (*start).min(slice.start);
            }
        }
    }
    for row in &plan.racks {
        let rack = || row.rack.clone();
        let mut left = starts.remove(&row.rack).unwrap_or_default();
        let all = left.clone();
        let mut latest = Timestamp(0);
        for step in &row.sequence {
            let Some(start) = left.remove(step) else {
                let why = if all.contains_key(step) { "a second time" } else { "which no slice runs there" };
                defects.push(Defect::StepSurplus { rack: rack(), step: step.clone(), why });
                continue;
            };
            if start < latest {
                defects.push(Defect::StepOrder { rack: rack(), step: step.clone() });
            }
            latest = latest.max(start);
        }
        defects.extend(left.into_keys().map(|step| Defect::StepMissing { rack: rack(), step }));
    }
}

#[cfg(test)]
mod mutations;
