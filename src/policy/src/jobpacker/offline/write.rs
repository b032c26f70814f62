//! Writes down what jobs were given, by names.

use super::room::RackReservation;
use super::{Given, Rules};
use crate::plan::{
    Assumptions, JobName, PLAN_FORMAT, Plan, PlanProblem, PlannedJob, PlannedRack, PlannedStage, RackRoom, Slice,
    Stage, Step,
};
use hintd_model::units::{Bytes, Micros, Timestamp};
use std::sync::Arc;

/// The plan; `rooms` are the racks, ascending.
pub(super) fn plan(problem: &PlanProblem, rules: &Rules, rooms: &[&RackRoom], given: &[Given]) -> Plan {
    let circuits = problem.fabric.circuits;
    let assumptions = Assumptions {
        uplink: problem.fabric.uplink,
        circuit: circuits.map(|circuits| circuits.rate),
        elephant: circuits.map_or(Bytes(u64::MAX), |circuits| circuits.elephant),
        over_provisioning: rules.over_provisioning,
        sub_batches: rules.sub_batches,
        shuffle_term: rules.term.as_str().into(),
        seed: problem.seed,
        prediction_error: problem.prediction_error,
    };
    Plan {
        format: PLAN_FORMAT.into(),
        policy: rules.policy.into(),
        objective: problem.objective,
        made: problem.made,
        from: problem.from,
        until: problem.until,
        assumptions,
        racks: sequences(problem, rooms, given),
        jobs: given.iter().map(|row| job(problem, rooms, row)).collect(),
        cut_short: false,
    }
}

fn job(problem: &PlanProblem, rooms: &[&RackRoom], row: &Given) -> PlannedJob {
    let expected = &problem.jobs[row.job];
    let tasks = || row.maps.iter().chain(&row.reduces).filter(|held| held.tasks > 0);
    let stage = |(tasks, task_time): (u32, Micros), held: &[RackReservation]| PlannedStage {
        tasks,
        task_time,
        slices: slices(rooms, held),
    };
    PlannedJob {
        job: JobName { key: Arc::clone(&expected.key), run: expected.run },
        arrival: expected.arrival,
        heavy: row.heavy,
        shuffle: expected.shuffled(),
        shuffle_time: row.shuffle,
        start: tasks().map(|held| held.start).min().unwrap_or(expected.arrival),
        end: tasks().map(|held| held.end).max().unwrap_or(expected.arrival),
        maps: stage(expected.maps, &row.maps),
        reduces: stage(expected.reduces, &row.reduces),
        input_paths: Vec::new(),
        forecast: None,
    }
}

/// Parts of one rack and time are one slice.
fn slices(rooms: &[&RackRoom], held: &[RackReservation]) -> Vec<Slice> {
    let mut held = held.to_vec();
    held.sort_unstable();
    let mut slices: Vec<Slice> = Vec::new();
    for part in held {
        let rack = &rooms[part.rack].rack;
        let same = |last: &&mut Slice| {
            (&last.rack, last.start, last.end, last.tasks > 0) == (rack, part.start, part.end, part.tasks > 0)
        };
        match slices.last_mut().filter(same) {
            Some(last) => {
                last.tasks += part.tasks;
                last.containers += part.containers;
            }
            None => slices.push(Slice {
                rack: rack.clone(),
                start: part.start,
                end: part.end,
                tasks: part.tasks,
                containers: part.containers,
            }),
        }
    }
    slices
}

/// What each rack runs, ascending by start, of equal starts the job that was given racks first.
fn sequences(problem: &PlanProblem, rooms: &[&RackRoom], given: &[Given]) -> Vec<PlannedRack> {
    let mut steps: Vec<Vec<(Timestamp, usize, Stage)>> = vec![Vec::new(); rooms.len()];
    for (nth, row) in given.iter().enumerate() {
        for (stage, held) in [(Stage::Map, &row.maps), (Stage::Reduce, &row.reduces)] {
            let mut starts: Vec<(usize, Timestamp)> =
                held.iter().filter(|held| held.tasks > 0).map(|held| (held.rack, held.start)).collect();
            starts.sort_unstable();
            starts.dedup_by_key(|start| start.0);
            starts.into_iter().for_each(|(rack, start)| steps[rack].push((start, nth, stage)));
        }
    }
    let row = |(room, mut steps): (&&RackRoom, Vec<(Timestamp, usize, Stage)>)| {
        steps.sort_unstable();
        let step = |(_, nth, stage): (Timestamp, usize, Stage)| {
            let job = &problem.jobs[given[nth].job];
            Step { job: JobName { key: Arc::clone(&job.key), run: job.run }, stage }
        };
        PlannedRack {
            rack: room.rack.clone(),
            containers: room.containers,
            sequence: steps.into_iter().map(step).collect(),
        }
    };
    rooms.iter().zip(steps).map(row).collect()
}
