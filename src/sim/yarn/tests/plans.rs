//! Runs that follow a plan.

use super::*;
use crate::policy::plan::{Circuits, Fabric, Facts, Objective, Plan, PlanProblem, check};
use crate::policy::registry::with_defaults;
use crate::sim::yarn::forecast::{expected_jobs, rack_rooms};
use crate::units::{BitsPerSec, Bytes, Micros, Timestamp};
use std::sync::Arc;

fn plan(policy: &str, cluster: &SimCluster, jobs: &[TraceJob], model: &JobModel, elephant: Bytes) -> Plan {
    let problem = PlanProblem {
        racks: rack_rooms(cluster),
        fabric: Fabric {
            uplink: BitsPerSec(10_000_000_000),
            circuits: Some(Circuits { rate: BitsPerSec(100_000_000_000), elephant }),
        },
        jobs: expected_jobs(jobs, model),
        objective: Objective::Batch,
        made: Timestamp(0),
        from: Timestamp(0),
        until: Timestamp(3_600_000_000),
        prediction_error: None,
        seed: 1,
    };
    let plan = with_defaults(policy).unwrap().as_plan().unwrap().plan(&problem).unwrap();
    assert_eq!(check(&plan, &Facts::default()), []);
    plan
}

/// All at once.
fn batch(jobs: usize) -> Vec<TraceJob> {
    mixed(jobs).into_iter().map(|job| TraceJob { submit: Micros(0), ..job }).collect()
}

#[test]
fn every_job_of_a_planned_batch_ends_and_most_maps_read_in_their_rack() {
    let cluster = cluster(4, 4, 4, 10_000_000_000);
    let (model, jobs) = (still(), batch(40));
    for policy in ["jobpacker", "corral"] {
        let planned = plan(policy, &cluster, &jobs, &model, Bytes(100 * MIB));
        assert_eq!(planned.jobs.iter().any(|job| job.heavy), policy == "jobpacker");
        let built = with_defaults(policy).unwrap();
        let dispatch = built.as_dispatch().unwrap();
        let run = |plan: Option<Arc<Plan>>| {
            let settings = SimSettings { plan, ..SimSettings::default() };
            with(&cluster, &model, &settings, dispatch, &jobs, true).unwrap()
        };
        let followed = run(Some(Arc::new(planned)));
        assert_eq!((followed.jobs, followed.unfinished), (40, 0));
        let [node, rack, other] = followed.maps_by_locality;
        assert!(other * 10 < node + rack, "{policy}: {:?}", followed.maps_by_locality);
        assert_eq!(run(None).unfinished, 0);
    }
}

/// Large jobs: rounds of heartbeats and of noise weigh little.
fn large() -> Vec<TraceJob> {
    (0..12).map(|at| job(at, 0.0, (20 + 7 * at as u64) * 128 * MIB, (at as u64 % 3) * 900 * MIB, MIB)).collect()
}

#[test]
fn a_batch_without_surprises_takes_about_as_long_as_its_plan_says() {
    let cluster = cluster(4, 4, 4, 40_000_000_000);
    let (model, jobs) = (still(), large());
    let planned = plan("corral", &cluster, &jobs, &model, Bytes(1 << 60));
    let forecast_s = planned.makespan().as_secs_f64();
    let built = with_defaults("corral").unwrap();
    let settings = SimSettings { plan: Some(Arc::new(planned)), heartbeat: Micros(10_000), ..SimSettings::default() };
    let report = with(&cluster, &model, &settings, built.as_dispatch().unwrap(), &jobs, true).unwrap();
    let ratio = report.makespan_s / forecast_s;
    assert!((0.8..1.25).contains(&ratio), "{} s instead of {forecast_s} s", report.makespan_s);
}
