//! Random plans that are right, made without any planner.

use super::data::*;
use hintd_model::units::{BitsPerSec, Bytes, Micros, RackPath, Timestamp};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

const GB: u64 = 1_000_000_000;

/// Jobs one after another, each rack full or idle.
#[must_use]
pub fn plan(seed: u64) -> Plan {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let from = Timestamp(random.random_range(1..1_000) * 1_000_000);
    let racks = random.random_range(2..6_u32);
    let rooms: Vec<u32> = (0..racks).map(|_| random.random_range(2..9)).collect();
    let mut free: Vec<Timestamp> = vec![from; racks as usize];
    let count = random.random_range(3..9);
    let jobs: Vec<PlannedJob> = (0..count).map(|at| job(at, from, &rooms, &mut free, &mut random)).collect();
    let mut racks: Vec<PlannedRack> = rooms
        .iter()
        .enumerate()
        .map(|(at, &containers)| PlannedRack { rack: rack(at), containers, sequence: Vec::new() })
        .collect();
    for row in &mut racks {
        let mut steps: Vec<(Timestamp, Step)> = Vec::new();
        for (job, stage) in jobs.iter().flat_map(|job| Stage::BOTH.map(|stage| (job, stage))) {
            let starts = job.stage(stage).slices.iter().filter(|slice| slice.rack == row.rack).map(|slice| slice.start);
            steps.extend(starts.min().map(|start| (start, Step { job: job.job.clone(), stage })));
        }
        steps.sort();
        row.sequence = steps.into_iter().map(|(_, step)| step).collect();
    }
    let assumptions = Assumptions {
        uplink: BitsPerSec(30 * GB),
        circuit: Some(BitsPerSec(100 * GB)),
        elephant: Bytes(GB),
        over_provisioning: 0.0,
        sub_batches: 5,
        shuffle_term: "by_width".into(),
        seed,
        prediction_error: None,
    };
    let until = from.plus(Micros::from_secs(86_400));
    let (objective, made) = (Objective::Batch, Timestamp(1));
    Plan {
        format: PLAN_FORMAT.into(),
        policy: "sample".into(),
        objective,
        made,
        from,
        until,
        assumptions,
        racks,
        jobs,
        cut_short: false,
    }
}

pub(crate) fn rack(at: usize) -> RackPath {
    RackPath::from(format!("/r{at}"))
}

fn job(at: u32, from: Timestamp, rooms: &[u32], free: &mut [Timestamp], random: &mut ChaCha8Rng) -> PlannedJob {
    let arrival = from.plus(Micros::from_secs(random.random_range(0..100)));
    let shuffle_time = Micros::from_secs(random.random_range(0..5));
    let heavy = random.random_bool(0.5);
    let mut widths = || random.random_range(1..=rooms.len());
    let (wide, narrow) = (widths(), widths());
    let maps = stage(arrival, wide, rooms, free, random);
    let ends = maps.slices.iter().map(|slice| slice.end).max().expect("there are racks").plus(shuffle_time);
    let reduces = stage(ends, narrow, rooms, free, random);
    PlannedJob {
        job: JobName { key: format!("job{}", at / 2).into(), run: at % 2 },
        arrival,
        heavy,
        shuffle: Bytes((wide * narrow) as u64 * GB + 1),
        shuffle_time,
        start: maps.slices.iter().map(|slice| slice.start).min().expect("there are racks"),
        end: reduces.slices.iter().map(|slice| slice.end).max().expect("there are racks"),
        maps,
        reduces,
        input_paths: Vec::new(),
        forecast: None,
    }
}

/// One or two tasks more than each rack has containers, so that it takes two rounds.
fn stage(
    not_before: Timestamp,
    width: usize,
    rooms: &[u32],
    free: &mut [Timestamp],
    random: &mut ChaCha8Rng,
) -> PlannedStage {
    let task_time = Micros::from_secs(random.random_range(1..20));
    let first = random.random_range(0..rooms.len());
    let each = rooms.iter().min().expect("there are racks") + 1;
    let mut slices: Vec<Slice> = (0..width)
        .map(|nth| {
            let at = (first + nth) % rooms.len();
            let start = not_before.max(free[at]);
            free[at] = start.plus(Micros(2 * task_time.0));
            Slice { rack: rack(at), start, end: free[at], tasks: each + u32::from(nth == 0), containers: rooms[at] }
        })
        .collect();
    slices.sort_by(|a, b| a.rack.cmp(&b.rack));
    PlannedStage { tasks: each * width as u32 + 1, task_time, slices }
}
