//! The checker against plans with one planted defect each.

use super::super::{Forecast, sample};
use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// Plants a defect and says which token the checker's message has to have.
type Plant = fn(&mut Plan, &mut Facts, &mut ChaCha8Rng) -> String;

fn any_job<'a>(plan: &'a mut Plan, random: &mut ChaCha8Rng) -> &'a mut PlannedJob {
    let at = random.random_range(0..plan.jobs.len());
    &mut plan.jobs[at]
}

fn any_slice<'a>(plan: &'a mut Plan, random: &mut ChaCha8Rng) -> (JobName, &'a mut Slice) {
    let reduce = random.random_bool(0.5);
    let job = any_job(plan, random);
    let name = job.job.clone();
    let stage = if reduce { &mut job.reduces } else { &mut job.maps };
    let at = random.random_range(0..stage.slices.len());
    (name, &mut stage.slices[at])
}

/// A rack whose sequence is not empty.
fn any_row<'a>(plan: &'a mut Plan, random: &mut ChaCha8Rng) -> &'a mut super::super::PlannedRack {
    let busy: Vec<usize> = (0..plan.racks.len()).filter(|&at| !plan.racks[at].sequence.is_empty()).collect();
    &mut plan.racks[busy[random.random_range(0..busy.len())]]
}

fn heavy_job<'a>(plan: &'a mut Plan, random: &mut ChaCha8Rng) -> &'a mut PlannedJob {
    let job = any_job(plan, random);
    job.heavy = true;
    job
}

const PLANTS: [(&str, Plant); 29] = [
    ("a forecast that ends before its shuffle", |plan, _, random| {
        let job = any_job(plan, random);
        let (maps_end, shuffled) = (job.arrival, job.arrival.plus(Micros(9)));
        job.forecast = Some(Forecast { maps_end, shuffled, end: job.arrival.plus(Micros(8)) });
        format!("job {}: forecast end is", job.job)
    }),
    ("another version", |plan, _, _| {
        plan.format = "hintd.plan/7".into();
        "format is \"hintd.plan/7\"".into()
    }),
    ("a horizon backwards", |plan, _, _| {
        plan.until = plan.from;
        "is not after from".into()
    }),
    ("a horizon without end", |plan, _, _| {
        plan.until = Timestamp(1 << 63);
        "days after from: plans are of at most 366".into()
    }),
    ("a horizon that is years off", |plan, facts, _| {
        facts.now = Some(plan.from);
        let year = Micros::from_secs(366 * 86_400);
        (plan.from, plan.until) = (plan.until.plus(year), plan.until.plus(Micros(year.0 + 1)));
        "its horizon ends in 368 days: plans are of the next 366 at most".into()
    }),
    ("a policy that there is not", |plan, _, _| {
        plan.policy = "smaple".into();
        "policy is \"smaple\", which is none that plans (corral, sample)".into()
    }),
    ("a horizon that has passed", |plan, facts, _| {
        facts.now = Some(plan.until);
        "has passed".into()
    }),
    ("a rack twice", |plan, _, random| {
        let mut row = any_row(plan, random).clone();
        row.sequence.clear();
        plan.racks.push(row.clone());
        format!("rack {}: is listed twice", row.rack)
    }),
    ("a rack that is gone", |plan, facts, random| {
        let rack = any_row(plan, random).rack.clone();
        facts.racks.as_mut().unwrap().remove(&rack);
        format!("rack {rack}: no such rack")
    }),
    ("a rack without usable nodes", |plan, facts, random| {
        let rack = any_row(plan, random).rack.clone();
        facts.racks.as_mut().unwrap().insert(rack.clone(), 0);
        format!("rack {rack}: it is there, but no usable node")
    }),
    ("a rack that lost nodes", |plan, facts, random| {
        let row = any_row(plan, random);
        facts.racks.as_mut().unwrap().insert(row.rack.clone(), row.containers - 1);
        format!("rack {}: containers is {}", row.rack, row.containers)
    }),
    ("a job twice", |plan, _, random| {
        let job = any_job(plan, random).clone();
        plan.jobs.push(job.clone());
        format!("job {}: is listed twice", job.job)
    }),
    ("an arrival before the horizon", |plan, _, random| {
        let from = plan.from;
        let job = any_job(plan, random);
        job.arrival = Timestamp(from.0 - 1);
        format!("job {}: arrival", job.job)
    }),
    ("an arrival after the horizon", |plan, _, random| {
        let until = plan.until;
        let job = any_job(plan, random);
        job.arrival = until;
        format!("job {}: arrival", job.job)
    }),
    ("a slice in a rack that the plan does not list", |plan, _, random| {
        let (job, slice) = any_slice(plan, random);
        slice.rack = "/nowhere".into();
        format!("job {job}: ")
    }),
    ("a slice that ends before it starts", |plan, _, random| {
        let (job, slice) = any_slice(plan, random);
        slice.end = Timestamp(slice.start.0 - 1);
        format!("job {job}:")
    }),
    ("a slice without containers", |plan, _, random| {
        let (_, slice) = any_slice(plan, random);
        slice.containers = 0;
        "containers is 0, so nothing runs in it".into()
    }),
    ("a slice too short for its tasks", |plan, _, random| {
        let (_, slice) = any_slice(plan, random);
        slice.end = slice.start;
        "more than its containers run in that time".into()
    }),
    ("a slice of too few containers", |plan, _, random| {
        let (_, slice) = any_slice(plan, random);
        slice.containers = 1;
        slice.tasks = slice.tasks.max(3);
        "more than its containers run in that time".into()
    }),
    ("a task too many", |plan, _, random| {
        let (job, slice) = any_slice(plan, random);
        slice.tasks += 1;
        format!("job {job}: ")
    }),
    ("a task forgotten", |plan, _, random| {
        let (job, slice) = any_slice(plan, random);
        slice.tasks -= 1;
        format!("job {job}: ")
    }),
    ("maps before the job arrives", |plan, _, random| {
        let job = any_job(plan, random);
        let earliest = job.maps.slices.iter().map(|slice| slice.start).min().unwrap();
        job.arrival = Timestamp(earliest.0 + 1);
        format!("job {}: map slice", job.job)
    }),
    ("reduces before the shuffle is done", |plan, _, random| {
        let job = any_job(plan, random);
        job.shuffle_time = Micros(job.end.0);
        format!("job {}: reduce slice", job.job)
    }),
    ("a start or an end that is not so", |plan, _, random| {
        let early = random.random_bool(0.5);
        let job = any_job(plan, random);
        let field = if early { "start" } else { "end" };
        let time = if early { &mut job.start } else { &mut job.end };
        time.0 += 1;
        format!("job {}: {field} is", job.job)
    }),
    ("a heavy job of mice", |plan, _, random| {
        let job = heavy_job(plan, random);
        job.shuffle = Bytes(100);
        format!("job {}: heavy, but", job.job)
    }),
    ("a heavy job without an optical switch", |plan, _, random| {
        plan.assumptions.circuit = None;
        let job = heavy_job(plan, random);
        format!("job {}: heavy, but the plan assumes no optical switch", job.job)
    }),
    ("more containers held than a rack has", |plan, _, random| {
        let row = any_row(plan, random);
        row.containers -= 1;
        format!("rack {}: {} containers held", row.rack, row.containers + 1)
    }),
    ("a step left out or told twice", |plan, _, random| {
        let twice = random.random_bool(0.5);
        let row = any_row(plan, random);
        let at = random.random_range(0..row.sequence.len());
        let step = row.sequence[at].clone();
        if twice {
            row.sequence.insert(at, step.clone());
            format!("rack {}: sequence has {step}, a second time", row.rack)
        } else {
            row.sequence.remove(at);
            format!("rack {}: sequence lacks {step}", row.rack)
        }
    }),
    ("a step of nothing", |plan, _, random| {
        let step = Step { job: JobName { key: "ghost".into(), run: 0 }, stage: Stage::Map };
        let row = any_row(plan, random);
        row.sequence.push(step.clone());
        format!("rack {}: sequence has {step}, which no slice runs there", row.rack)
    }),
];

#[test]
fn a_plan_of_nothing_and_one_of_another_time_are_found_and_times_are_in_words() {
    let mut plan = sample::plan(4);
    let found = |plan: &Plan, now| -> Vec<String> {
        let facts = Facts { now: Some(now), ..Facts::default() };
        check(plan, &facts).iter().map(|defect| format!("{defect} ({})", defect.only_bars_force())).collect()
    };
    let (year, hour) = (365 * 86_400_000_000, 3_600_000_000);
    let now = Timestamp(56 * year);
    plan.made = now.plus(Micros(hour));
    assert_eq!(found(&plan, now)[1..], [] as [String; 0], "clocks may differ by an hour");
    assert!(found(&plan, now)[0].starts_with("its horizon has passed: its times count from the start of a trace"));
    plan.made = now.plus(Micros(2 * hour));
    assert!(found(&plan, now)[1].starts_with("made lies 7200 s ahead of now"), "{:?}", found(&plan, now));
    let ended = Plan { until: Timestamp(now.0 - 8_000_000), made: now, ..plan.clone() };
    assert!(found(&ended, now).contains(&"its horizon has passed, 8 s ago (true)".to_owned()));
    let empty = Plan { jobs: vec![], racks: vec![], made: plan.from, ..plan.clone() };
    assert_eq!((found(&empty, plan.from), nothing_planned(&empty)), (vec![], Some(Defect::NoJob)));
    assert_eq!(nothing_planned(&plan), None);
    let job = &mut plan.jobs[0];
    job.start = Timestamp(job.start.0 + 8_000_000);
    let late = format!("job {}: start is 8 s after that of its slices", job.job);
    assert!(check(&plan, &Facts::default()).iter().any(|defect| defect.to_string() == late));
}

fn facts(plan: &Plan) -> Facts {
    let racks = plan.racks.iter().map(|row| (row.rack.clone(), row.containers)).collect();
    Facts { racks: Some(racks), now: Some(plan.from), policies: Some(vec!["corral", "sample"]) }
}

#[test]
fn nothing_is_found_in_plans_that_are_right() {
    for seed in 0..200 {
        let plan = sample::plan(seed);
        assert_eq!(check(&plan, &facts(&plan)), [], "seed {seed}");
    }
}

#[test]
fn a_plan_of_a_whole_year_is_right_whoever_asks_by_a_clock_that_is_behind() {
    let mut plan = sample::plan(1);
    plan.until = plan.from.plus(HORIZON_MAX);
    let hour = Micros::from_secs(3_600);
    let found = |now: Timestamp| check(&plan, &Facts { now: Some(now), ..Facts::default() });
    assert_eq!(found(plan.from), []);
    let mut later = plan.clone();
    (later.from, later.until) = (plan.from.plus(hour), plan.until.plus(hour));
    later.jobs.clear();
    later.racks.clear();
    let by = |now| check(&later, &Facts { now: Some(now), ..Facts::default() });
    assert_eq!(by(plan.from), []);
    let far = &by(Timestamp(plan.from.0 - 1))[..];
    assert!(matches!(far, [Defect::FarOff { .. }]) && far[0].only_bars_force(), "{far:?}");
}

#[test]
fn every_planted_defect_is_found_and_named() {
    for (what, plant) in PLANTS {
        for seed in 0..60 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut plan = sample::plan(seed);
            let mut facts = facts(&plan);
            let wanted = plant(&mut plan, &mut facts, &mut random);
            let found: Vec<String> = check(&plan, &facts).iter().map(ToString::to_string).collect();
            assert!(found.iter().any(|message| message.contains(&wanted)), "{what}, seed {seed}: {wanted}: {found:?}");
        }
    }
}

#[test]
fn a_swap_in_a_sequence_is_found_where_the_steps_start_apart() {
    let mut found = 0;
    for seed in 0..60 {
        let mut plan = sample::plan(seed);
        let Some(row) = plan.racks.iter_mut().find(|row| row.sequence.len() > 1) else {
            continue;
        };
        row.sequence.swap(0, 1);
        let rack = row.rack.clone();
        let defects = check(&plan, &Facts::default());
        assert!(matches!(&defects[..], [Defect::StepOrder { rack: named, .. }] if *named == rack), "{defects:?}");
        found += 1;
    }
    assert!(found > 30, "{found}");
}

#[test]
fn uneven_tasks_of_a_heavy_job_are_found() {
    let mut plan = sample::plan(3);
    let job = plan.jobs.iter_mut().find(|job| job.maps.slices.len() > 1).unwrap();
    job.heavy = true;
    let slices = &mut job.maps.slices;
    (slices[0].tasks, slices[1].tasks) = (1, slices[0].tasks + slices[1].tasks - 1);
    let found = check(&plan, &Facts::default());
    assert!(found.iter().any(|defect| defect.to_string().contains("its racks run from 1 to")), "{found:?}");
}

#[test]
fn containers_that_are_held_beyond_the_tasks_count_for_capacity_and_for_nothing_else() {
    let mut plan = sample::plan(5);
    let room = plan.racks[0].containers;
    let last = plan.jobs.iter().map(|job| job.end).max().unwrap();
    let rack = plan.racks[0].rack.clone();
    let spare = Slice { rack, start: last, end: last.plus(Micros(9)), tasks: 0, containers: room };
    plan.jobs[0].reduces.slices.push(spare);
    assert_eq!(check(&plan, &Facts::default()), []);
    plan.jobs[0].reduces.slices.last_mut().unwrap().containers = room + 1;
    assert!(matches!(&check(&plan, &Facts::default())[..], [Defect::Capacity { .. }]));
}
