//! Whether a plan makes sense, found without the code that makes plans.
//!
//! Everything is recounted from the slices of the jobs: containers held at any moment in any rack, tasks, times,
//! sequences. What a cluster has by now is asked apart, as plans grow old while they wait to be activated.

use super::data::{JobName, PLAN_FORMAT, Plan, PlannedJob, PlannedStage, Slice, Stage, Step, TRACE_TIMES};
use hintd_model::units::{Bytes, Micros, RackPath, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What a plan is held against.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Racks that there are, and how many of the plan's containers run there at a time (0: no node there is usable);
    /// none: not asked.
    pub racks: Option<BTreeMap<RackPath, u32>>,
    /// The time; none: not asked.
    pub now: Option<Timestamp>,
    /// Policies that plan, by name; none: not asked.
    pub policies: Option<Vec<&'static str>>,
}

/// One thing that is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // each message says what its fields are
pub enum Defect {
    #[error("format is \"{0}\", not \"{PLAN_FORMAT}\"")]
    Format(std::sync::Arc<str>),
    #[error(
        "policy is \"{policy}\", which is none that plans{}: a plan names the policy by whose rules input is placed",
        among(known)
    )]
    Policy { policy: std::sync::Arc<str>, known: Vec<&'static str> },
    #[error("until is not after from: it is {} it", apart(*until, *from))]
    Horizon { from: Timestamp, until: Timestamp },
    #[error("until is {} days after from: plans are of at most {}", days(until.since(*from)), days(HORIZON_MAX))]
    HorizonLong { from: Timestamp, until: Timestamp },
    #[error("its horizon ends in {} days: plans are of the next {} at most", days(until.since(*now)), days(HORIZON_MAX))]
    FarOff { until: Timestamp, now: Timestamp },
    #[error("its horizon has passed{}", passed(*until, *now))]
    Expired { until: Timestamp, now: Timestamp },
    #[error(
        "made lies {} ahead of now: plans are made before they are followed, so a clock is wrong",
        made.since(*now).in_words()
    )]
    MadeLater { made: Timestamp, now: Timestamp },
    #[error("it plans no job")]
    NoJob,
    #[error("rack {0}: is listed twice")]
    RackTwice(RackPath),
    #[error("rack {0}: no such rack in the cluster, as it has no node")]
    RackUnknown(RackPath),
    #[error("rack {0}: it is there, but no usable node of it has room for a container now")]
    RackEmpty(RackPath),
    #[error("rack {rack}: containers is {planned}, the cluster has room for {has}")]
    RackShrunk { rack: RackPath, planned: u32, has: u32 },
    #[error("job {0}: is listed twice")]
    JobTwice(JobName),
    #[error("job {job}: arrival is {}, outside the horizon", outside(*arrival, *from, *until))]
    Arrival { job: JobName, arrival: Timestamp, from: Timestamp, until: Timestamp },
    #[error("job {job}: {stage} slice in rack {rack}, which the plan does not list", stage = stage.as_str())]
    SliceRack { job: JobName, stage: Stage, rack: RackPath },
    #[error("job {job}: {} slice in rack {rack} that starts {start} the horizon does: {why}", stage.as_str())]
    Slice { job: JobName, stage: Stage, rack: RackPath, start: String, why: String },
    #[error("job {job}: {stage} tasks is {says}, its slices run {run}", stage = stage.as_str())]
    Tasks { job: JobName, stage: Stage, says: u32, run: u64 },
    #[error("job {job}: {} slice in rack {rack} starts {} before it could", stage.as_str(), early.in_words())]
    Early { job: JobName, stage: Stage, rack: RackPath, early: Micros },
    #[error("job {job}: {field} is {} that of its slices", apart(*says, *is))]
    Times { job: JobName, field: &'static str, says: Timestamp, is: Timestamp },
    #[error("job {job}: forecast {field} is {} before it can be", early.in_words())]
    Forecast { job: JobName, field: &'static str, early: Micros },
    #[error("job {job}: heavy, but {why}")]
    Heavy { job: JobName, why: String },
    #[error("rack {rack}: {held} containers held {at} the horizon begins, it has {containers}")]
    Capacity { rack: RackPath, at: String, held: u64, containers: u32 },
    #[error("rack {rack}: sequence lacks {step}")]
    StepMissing { rack: RackPath, step: Step },
    #[error("rack {rack}: sequence has {step}, {why}")]
    StepSurplus { rack: RackPath, step: Step, why: &'static str },
    #[error("rack {rack}: sequence has {step} after one that starts later")]
    StepOrder { rack: RackPath, step: Step },
}

impl Defect {
    /// The plan may be right: it is none to be put in force now.
    #[must_use]
    pub const fn only_bars_force(&self) -> bool {
        matches!(self, Self::Expired { .. } | Self::FarOff { .. } | Self::MadeLater { .. } | Self::NoJob)
    }
}

/// A plan of nothing is right, and what a planner makes of no job; there is nothing in it to put in force.
#[must_use]
pub fn nothing_planned(plan: &Plan) -> Option<Defect> {
    plan.jobs.is_empty().then_some(Defect::NoJob)
}

/// Longest horizon: what is further off nobody can plan.
pub const HORIZON_MAX: Micros = Micros::from_secs(366 * 86_400);
/// How far a plan may have been made ahead of the time: clocks of who plans and who follows differ.
const AHEAD_MAX: Micros = Micros::from_secs(3_600);

/// Whole days, begun ones among them.
const fn days(span: Micros) -> u64 {
    span.0.div_ceil(86_400_000_000)
}

/// ` (corral, jobpacker)`.
fn among(known: &[&str]) -> String {
    if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) }
}

/// `8 s before` or `8 s after`.
fn apart(at: Timestamp, other: Timestamp) -> String {
    if at < other {
        format!("{} before", other.since(at).in_words())
    } else {
        format!("{} after", at.since(other).in_words())
    }
}

fn outside(at: Timestamp, from: Timestamp, until: Timestamp) -> String {
    let before = at < from;
    format!("{} its {}", apart(at, if before { from } else { until }), if before { "beginning" } else { "end" })
}

fn passed(until: Timestamp, now: Timestamp) -> String {
    if until < TRACE_TIMES {
        ": its times count from the start of a trace, as of every plan that is made without --start".to_owned()
    } else {
        format!(", {} ago", now.since(until).in_words())
    }
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
            let (job, arrival) = (job.job.clone(), job.arrival);
            defects.push(Defect::Arrival { job, arrival, from: plan.from, until: plan.until });
        }
        let mut look = |of: Stage, not_before| stage((plan, job), of, not_before, &racks, &mut defects);
        look(Stage::Map, job.arrival);
        look(Stage::Reduce, ends(&job.maps).unwrap_or(job.arrival).plus(job.shuffle_time));
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
    if let Some(known) = facts.policies.as_ref().filter(|known| !known.contains(&&*plan.policy)) {
        defects.push(Defect::Policy { policy: plan.policy.clone(), known: known.clone() });
    }
    let (from, until) = (plan.from, plan.until);
    if until <= from {
        defects.push(Defect::Horizon { from, until });
    }
    if until.since(from) > HORIZON_MAX {
        defects.push(Defect::HorizonLong { from, until });
    }
    // A plan of a whole year may have been made by a clock that is ahead.
    if let Some(now) = facts.now.filter(|now| until.since(now.plus(AHEAD_MAX)) > HORIZON_MAX) {
        defects.push(Defect::FarOff { until, now });
    }
    if let Some(now) = facts.now.filter(|now| *now >= plan.until) {
        defects.push(Defect::Expired { until: plan.until, now });
    }
    if let Some(now) = facts.now.filter(|now| plan.made.since(*now) > AHEAD_MAX) {
        defects.push(Defect::MadeLater { made: plan.made, now });
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
            Some(0) if row.containers > 0 => defects.push(Defect::RackEmpty(row.rack.clone())),
            Some(&has) if has < row.containers => {
                defects.push(Defect::RackShrunk { rack: row.rack.clone(), planned: row.containers, has });
            }
            Some(_) => {}
        }
    }
    racks
}

fn stage(
    (plan, of): (&Plan, &PlannedJob),
    stage: Stage,
    not_before: Timestamp,
    racks: &BTreeMap<&RackPath, u32>,
    defects: &mut Vec<Defect>,
) {
    let (job, part) = (&of.job, of.stage(stage));
    let mut run = 0_u64;
    for slice in &part.slices {
        run += u64::from(slice.tasks);
        let rack = slice.rack.clone();
        if !racks.contains_key(&slice.rack) {
            defects.push(Defect::SliceRack { job: job.clone(), stage, rack: rack.clone() });
        }
        if slice.start < not_before {
            let early = not_before.since(slice.start);
            defects.push(Defect::Early { job: job.clone(), stage, rack: rack.clone(), early });
        }
        if let Some(why) = odd(slice, part.task_time) {
            let start = apart(slice.start, plan.from);
            defects.push(Defect::Slice { job: job.clone(), stage, rack, start, why });
        }
    }
    if run != u64::from(part.tasks) {
        defects.push(Defect::Tasks { job: job.clone(), stage, says: part.tasks, run });
    }
}

/// What no slice can be.
fn odd(slice: &Slice, task_time: Micros) -> Option<String> {
    if slice.end < slice.start {
        return Some(format!("end is {} its start", apart(slice.end, slice.start)));
    }
    if slice.containers == 0 {
        return Some("containers is 0, so nothing runs in it".to_owned());
    }
    let span = slice.end.since(slice.start);
    // Tasks that take no time all fit.
    let rounds = span.0.checked_div(task_time.0).unwrap_or(u64::MAX);
    if u128::from(rounds) * u128::from(slice.containers) < u128::from(slice.tasks) {
        return Some(format!("tasks is {}, more than its containers run in that time", slice.tasks));
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
            defects.push(Defect::Times { job: job.job.clone(), field, says, is });
        }
    }
    let Some(forecast) = job.forecast else { return };
    let steps = [
        ("maps_end", forecast.maps_end, job.arrival),
        ("shuffled", forecast.shuffled, forecast.maps_end),
        ("end", forecast.end, forecast.shuffled),
    ];
    for (field, says, not_before) in steps.into_iter().filter(|(_, says, not_before)| says < not_before) {
        defects.push(Defect::Forecast { job: job.job.clone(), field, early: not_before.since(says) });
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
                defects.push(Defect::Capacity { rack: rack.clone(), at: apart(at, plan.from), held, containers });
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
