//! Whole plans: the checker finds nothing, and what the paper says of them holds.

use super::*;
use crate::plan::{Circuits, Fabric, Facts, NodeLinks, Objective, RackRoom, Stage, check};
use hintd_model::units::{BitsPerSec, Bytes};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

const GB: u64 = 1_000_000_000;
const NODES: NodeLinks = NodeLinks { rate: BitsPerSec(10 * GB), per_rack: 30 };
const PACKED: Rules = Rules {
    policy: "jobpacker",
    placing: Placing::Packed,
    sub_batches: 5,
    over_provisioning: 0.0,
    term: ShuffleTerm::ByWidth,
    round: Some(Micros::from_secs(1)),
    forecast: Some(0.7),
};
const TOGETHER: Rules =
    Rules { policy: "corral", placing: Placing::Together, term: ShuffleTerm::Printed, forecast: None, ..PACKED };

fn problem(seed: u64, racks: usize, containers: u32, jobs: usize) -> PlanProblem {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let uneven = random.random_bool(0.3);
    let rack = |at: usize| RackRoom {
        rack: format!("/r{at:03}").into(),
        containers: if uneven { random.random_range(0..=containers) } else { containers },
    };
    let mut racks: Vec<RackRoom> = (0..racks).map(rack).collect();
    racks[0].containers = containers;
    let job = |at: usize| ExpectedJob {
        key: format!("j{}", at / 3).into(),
        run: (at % 3) as u32,
        arrival: Timestamp(1_000 + random.random_range(0..3_600_000_000)),
        input: Bytes(random.random_range(0..20 * GB)),
        maps: (random.random_range(1..=containers * 3), Micros::from_millis(random.random_range(0..60_000))),
        reduces: (random.random_range(0..=containers), Micros::from_millis(random.random_range(0..60_000))),
        shuffle: Bytes(if random.random_bool(0.5) {
            random.random_range(0..60 * GB)
        } else {
            random.random_range(0..GB)
        }),
    };
    let jobs = (0..jobs).map(job).collect();
    let circuits = random.random_bool(0.8).then(|| Circuits::new(BitsPerSec(100 * GB), Micros::from_millis(10)));
    PlanProblem {
        racks,
        fabric: Fabric { uplink: BitsPerSec(30 * GB), circuits, nodes: Some(NODES) },
        jobs,
        objective: if random.random_bool(0.5) { Objective::Batch } else { Objective::Online },
        made: Timestamp(0),
        from: Timestamp(1_000),
        until: Timestamp(1_000 + 3_600_000_000),
        prediction_error: None,
        seed,
    }
}

pub(super) fn plan(problem: &PlanProblem, rules: &Rules) -> Result<Plan, PlanError> {
    super::plan(problem, rules, &Budget::new(0, &mut || false))
}

fn sound(problem: &PlanProblem, rules: &Rules) -> Plan {
    let plan = plan(problem, rules).unwrap();
    let racks = problem.racks.iter().map(|rack| (rack.rack.clone(), rack.containers)).collect();
    assert_eq!(check(&plan, &Facts { racks: Some(racks), now: Some(problem.from), ..Facts::default() }), []);
    plan
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_checker_finds_nothing_in_any_plan(seed: u64, racks in 1_usize..6, spare in prop::sample::select(vec![0.0, 0.3, 1.0])) {
        let problem = problem(seed, racks, 12, 30);
        for rules in [PACKED, TOGETHER] {
            let plan = sound(&problem, &Rules { over_provisioning: spare, ..rules });
            prop_assert_eq!(plan.jobs.len(), 30);
        }
    }

    #[test]
    fn every_job_is_forecast_to_take_no_less_than_its_tasks(seed: u64, racks in 1_usize..6) {
        let problem = problem(seed, racks, 12, 30);
        for job in sound(&problem, &PACKED).jobs {
            let forecast = job.forecast.unwrap();
            prop_assert!(forecast.maps_end >= job.arrival.plus(job.maps.task_time));
            let reduces = if job.reduces.tasks > 0 { job.reduces.task_time } else { Micros::ZERO };
            prop_assert!(forecast.end >= forecast.shuffled.plus(reduces));
        }
    }

    #[test]
    fn the_order_of_telling_does_not_matter(seed: u64) {
        let told = problem(seed, 4, 12, 20);
        let mut back = told.clone();
        back.jobs.reverse();
        back.racks.reverse();
        for rules in [PACKED, TOGETHER] {
            prop_assert_eq!(plan(&told, &rules).unwrap(), plan(&back, &rules).unwrap());
        }
    }
}

/// 20 racks of 600 containers, 1,000 jobs, all at once.
fn paper(jobs: usize) -> PlanProblem {
    let mut problem = problem(11, 20, 600, jobs);
    problem.racks.iter_mut().for_each(|rack| rack.containers = 600);
    problem.fabric.circuits = Some(Circuits::new(BitsPerSec(100 * GB), Micros::from_millis(10)));
    problem.jobs.iter_mut().for_each(|job| job.arrival = problem.from);
    problem.objective = Objective::Batch;
    problem
}

#[test]
fn heavy_jobs_get_few_racks_and_their_bytes_ride_circuits() {
    let plan = sound(&paper(60), &PACKED);
    let (circuit, all) = plan.circuit_bytes();
    assert!(circuit.as_f64() > 0.95 * all.as_f64(), "{circuit:?} of {all:?}");
    let heavy: Vec<_> = plan.jobs.iter().filter(|job| job.heavy).collect();
    assert!(heavy.len() > 15);
    for job in heavy {
        let pairs = job.maps.racks().len() * job.reduces.racks().len();
        assert!(job.shuffle.0 / pairs as u64 >= 1_125_000_000);
    }
}

#[test]
fn a_corral_job_has_its_reduces_where_its_maps_are() {
    let plan = sound(&paper(60), &TOGETHER);
    for job in &plan.jobs {
        let racks = |stage| job.stage(stage).racks().into_iter().map(|(rack, _)| rack).collect::<Vec<_>>();
        let (maps, reduces) = (racks(Stage::Map), racks(Stage::Reduce));
        assert!(reduces.iter().all(|rack| maps.contains(rack)) || maps.iter().all(|rack| reduces.contains(rack)));
        assert!(!job.heavy);
    }
}

#[test]
fn over_provisioning_holds_containers_and_so_ends_later() {
    let problem = paper(60);
    let plain = sound(&problem, &PACKED);
    let held = sound(&problem, &Rules { over_provisioning: 1.0, ..PACKED });
    assert!(held.makespan() > plain.makespan());
    let containers = |plan: &Plan| -> u64 {
        let slices = plan.jobs.iter().flat_map(|job| job.maps.slices.iter().chain(&job.reduces.slices));
        slices.map(|slice| u64::from(slice.containers)).sum()
    };
    assert!(containers(&held) as f64 > 1.5 * containers(&plain) as f64);
}

#[test]
fn sizes_off_by_a_hundred_and_shuffles_of_nothing_are_planned() {
    for factor in [0, 1, 100] {
        let mut problem = paper(30);
        problem.jobs.iter_mut().for_each(|job| job.shuffle = Bytes(job.shuffle.0 * factor));
        let plan = sound(&problem, &PACKED);
        assert_eq!(plan.jobs.iter().any(|job| job.heavy), factor > 0);
    }
}

#[test]
fn what_can_not_be_meant_is_refused_with_its_name() {
    let good = paper(3);
    let message = |change: fn(&mut PlanProblem)| {
        let mut problem = good.clone();
        change(&mut problem);
        plan(&problem, &PACKED).unwrap_err().to_string()
    };
    assert_eq!(message(|p| p.jobs[1].maps.0 = 0), "job j0#1 has no maps");
    assert_eq!(message(|p| p.jobs[1].run = 0), "job j0#0 is expected twice");
    assert_eq!(
        message(|p| p.jobs[2].arrival = p.until),
        "job j0#2 is expected at 3600001 ms (since 1970), outside the horizon"
    );
    assert_eq!(
        message(|p| p.racks.iter_mut().for_each(|rack| rack.containers = 0)),
        "none of the 20 racks has room for a container"
    );
    assert_eq!(message(|p| p.racks[1].rack = p.racks[0].rack.clone()), "rack /r000 is given twice");
    assert_eq!(message(|p| p.fabric.uplink.0 = 0), "the uplink rate is 0 bit/s");
    assert_eq!(
        message(|p| p.jobs[0].maps.1 = Micros(u64::MAX)),
        "job j0#0 would end beyond the times that can be counted"
    );
    assert!(message(|p| p.until = p.from).starts_with("the horizon ends at 1 ms"));
}

#[test]
fn no_jobs_make_an_empty_plan() {
    let plan = sound(&paper(0), &PACKED);
    assert_eq!((plan.jobs.len(), plan.racks.len(), plan.makespan()), (0, 20, Micros(0)));
}
