//! How one plan differs from another: for people who review it before they activate it.

use super::data::{JobName, Plan, PlannedJob, Stage};
use hintd_model::units::{RackPath, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What differs; empty where both say the same of all that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PlanDiff {
    /// Of the plan as a whole: assumptions, horizon, forecasts.
    pub plan: Vec<Change>,
    /// Runs that only the second has.
    pub added: Vec<JobName>,
    /// Runs that only the first has.
    pub removed: Vec<JobName>,
    /// Runs of which both say something else, ascending.
    pub changed: Vec<(JobName, Vec<Change>)>,
    /// Racks that are new, gone, of another size, or whose sequence is another, ascending.
    pub racks: Vec<(RackPath, Vec<Change>)>,
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Which.
    pub field: String,
    /// As the first has it.
    pub before: String,
    /// As the second has it.
    pub after: String,
}

/// How `after` differs from `before`.
#[must_use]
pub fn diff(before: &Plan, after: &Plan) -> PlanDiff {
    let by_name = |plan: &Plan| -> BTreeMap<JobName, usize> {
        plan.jobs.iter().enumerate().map(|(at, job)| (job.job.clone(), at)).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut found = PlanDiff { plan: of_plans(before, after), racks: of_racks(before, after), ..PlanDiff::default() };
    for (name, &at) in &old {
        let Some(&other) = new.get(name) else {
            found.removed.push(name.clone());
            continue;
        };
        let mut changes = of_jobs((&before.jobs[at], before.from), (&after.jobs[other], after.from));
        note(&mut changes, "order", &at, &other);
        if !changes.is_empty() {
            found.changed.push((name.clone(), changes));
        }
    }
    found.added = new.into_keys().filter(|name| !old.contains_key(name)).collect();
    found
}

impl PlanDiff {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for PlanDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |f: &mut fmt::Formatter<'_>, changes: &[Change], indent: &str| {
            changes
                .iter()
                .try_for_each(|Change { field, before, after }| writeln!(f, "{indent}{field}: {before} -> {after}"))
        };
        lines(f, &self.plan, "")?;
        self.removed.iter().try_for_each(|job| writeln!(f, "- job {job}"))?;
        self.added.iter().try_for_each(|job| writeln!(f, "+ job {job}"))?;
        for (job, changes) in &self.changed {
            writeln!(f, "job {job}")?;
            lines(f, changes, "  ")?;
        }
        for (rack, changes) in &self.racks {
            writeln!(f, "rack {rack}")?;
            lines(f, changes, "  ")?;
        }
        Ok(())
    }
}

fn note<T: PartialEq + ToString + ?Sized>(changes: &mut Vec<Change>, field: &str, before: &T, after: &T) {
    if before != after {
        let (before, after) = (before.to_string(), after.to_string());
        changes.push(Change { field: field.to_owned(), before, after });
    }
}

fn of_plans(before: &Plan, after: &Plan) -> Vec<Change> {
    let mut changes = Vec::new();
    note(&mut changes, "policy", &before.policy, &after.policy);
    note(&mut changes, "objective", objective(before), objective(after));
    note(&mut changes, "from", &before.from.as_millis(), &after.from.as_millis());
    note(&mut changes, "until", &before.until.as_millis(), &after.until.as_millis());
    let (old, new) = (&before.assumptions, &after.assumptions);
    note(&mut changes, "uplink", &old.uplink.0, &new.uplink.0);
    let rate = |rate: Option<hintd_model::units::BitsPerSec>| {
        rate.map_or_else(|| "none".to_owned(), |rate| rate.0.to_string())
    };
    note(&mut changes, "circuit", &rate(old.circuit), &rate(new.circuit));
    note(&mut changes, "elephant", &old.elephant.0, &new.elephant.0);
    note(&mut changes, "over_provisioning", &old.over_provisioning, &new.over_provisioning);
    note(&mut changes, "sub_batches", &old.sub_batches, &new.sub_batches);
    note(&mut changes, "shuffle_term", &old.shuffle_term, &new.shuffle_term);
    note(&mut changes, "seed", &old.seed, &new.seed);
    let error = |error: Option<f64>| error.map_or_else(|| "unknown".to_owned(), |error| format!("{error:.4}"));
    note(&mut changes, "prediction_error", &error(old.prediction_error), &error(new.prediction_error));
    note(&mut changes, "makespan", &before.makespan().in_words(), &after.makespan().in_words());
    note(&mut changes, "mean_completion", &before.mean_completion().in_words(), &after.mean_completion().in_words());
    let circuit = |plan: &Plan| plan.circuit_bytes().0.0;
    note(&mut changes, "circuit_bytes", &circuit(before), &circuit(after));
    changes
}

fn objective(plan: &Plan) -> &'static str {
    match plan.objective {
        super::Objective::Batch => "batch",
        super::Objective::Online => "online",
    }
}

/// Times count from each plan's beginning: tomorrow's plan is compared with today's.
fn of_jobs((before, old_from): (&PlannedJob, Timestamp), (after, new_from): (&PlannedJob, Timestamp)) -> Vec<Change> {
    let mut changes = Vec::new();
    note(&mut changes, "heavy", &before.heavy, &after.heavy);
    note(&mut changes, "shuffle", &before.shuffle.0, &after.shuffle.0);
    note(&mut changes, "input_paths", &before.input_paths.join(" "), &after.input_paths.join(" "));
    for (field, time) in [
        ("arrival", (|job| job.arrival) as fn(&PlannedJob) -> Timestamp),
        ("start", |job| job.start),
        ("end", PlannedJob::expected_end),
    ] {
        let after_s = |job: &PlannedJob, from| format!("{} s", time(job).since(from).as_secs_f64());
        note(&mut changes, field, &after_s(before, old_from), &after_s(after, new_from));
    }
    for stage in Stage::BOTH {
        let (old, new) = (before.stage(stage), after.stage(stage));
        let field = |what: &str| format!("{} {what}", stage.as_str());
        note(&mut changes, &field("tasks"), &old.tasks, &new.tasks);
        note(&mut changes, &field("task_time"), &old.task_time.in_words(), &new.task_time.in_words());
        let racks = |stage: &super::PlannedStage| {
            let racks: Vec<String> = stage.racks().iter().map(|(rack, tasks)| format!("{rack} x{tasks}")).collect();
            racks.join(" ")
        };
        note(&mut changes, &field("racks"), &racks(old), &racks(new));
    }
    changes
}

fn of_racks(before: &Plan, after: &Plan) -> Vec<(RackPath, Vec<Change>)> {
    let mut rows: BTreeMap<&RackPath, [Option<&super::PlannedRack>; 2]> = BTreeMap::new();
    for (side, plan) in [before, after].into_iter().enumerate() {
        for row in &plan.racks {
            rows.entry(&row.rack).or_default()[side] = Some(row);
        }
    }
    let changes = rows.into_iter().map(|(rack, [old, new])| {
        let mut changes = Vec::new();
        let size = |row: Option<&super::PlannedRack>| row.map_or("none".to_owned(), |row| row.containers.to_string());
        note(&mut changes, "containers", &size(old), &size(new));
        let steps = |row: Option<&super::PlannedRack>| {
            row.map_or(String::new(), |row| row.sequence.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        };
        note(&mut changes, "sequence", &steps(old), &steps(new));
        (rack.clone(), changes)
    });
    changes.filter(|(_, changes)| !changes.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{PlannedRack, sample};
    use super::*;
    use hintd_model::units::{Bytes, Micros};

    #[test]
    fn a_plan_does_not_differ_from_itself_nor_from_itself_a_day_later() {
        let plan = sample::plan(2);
        assert!(diff(&plan, &plan).is_empty());
        let day = Micros::from_secs(86_400);
        let mut later = plan.clone();
        (later.from, later.until) = (plan.from.plus(day), plan.until.plus(day));
        for job in &mut later.jobs {
            (job.arrival, job.start, job.end) = (job.arrival.plus(day), job.start.plus(day), job.end.plus(day));
        }
        let found = diff(&plan, &later);
        assert!(found.changed.is_empty() && found.racks.is_empty() && found.added.is_empty());
        let fields: Vec<&str> = found.plan.iter().map(|change| &*change.field).collect();
        assert_eq!(fields, ["from", "until"]);
    }

    #[test]
    fn every_change_is_named_with_what_it_was_and_is() {
        let before = sample::plan(2);
        let mut after = before.clone();
        after.assumptions.over_provisioning = 1.0;
        after.jobs[0].shuffle = Bytes(5);
        let gone = after.jobs.pop().unwrap().job;
        let mut new = after.jobs[1].clone();
        new.job.run = 9;
        after.jobs.push(new.clone());
        after.racks.push(PlannedRack { rack: "/new".into(), containers: 4, sequence: vec![] });
        let found = diff(&before, &after);
        assert_eq!((&found.removed[..], &found.added[..]), (&[gone][..], &[new.job][..]));
        assert_eq!(found.changed[0].0, before.jobs[0].job);
        assert_eq!(found.changed[0].1[0].field, "shuffle");
        let text = found.to_string();
        assert!(text.contains("over_provisioning: 0 -> 1\n"), "{text}");
        assert!(text.contains("rack /new\n  containers: none -> 4\n"), "{text}");
    }

    #[test]
    fn plans_that_differ_in_anything_that_is_compared_are_told_apart() {
        for seed in 0..30 {
            let (one, other) = (sample::plan(seed), sample::plan(seed + 1));
            assert!(!diff(&one, &other).is_empty());
        }
    }
}
