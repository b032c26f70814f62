//! Runs that follow a plan.

use super::circuits::hybrid;
use super::*;
use crate::yarn::forecast::{KeyRule, expected_jobs, finished_runs, problem};
use hintd_engine::prediction::{PredictionSettings, forecast};
use hintd_model::units::{BitsPerSec, Bytes, Micros, Timestamp};
use hintd_policy::Budget;
use hintd_policy::plan::{Circuits, Fabric, Facts, Objective, Plan, PlanProblem, check, fabric};
use hintd_policy::registry::{find, with_defaults};
use std::sync::Arc;

pub(super) fn plan(policy: &str, cluster: &SimCluster, jobs: &[TraceJob], model: &JobModel, fabric: Fabric) -> Plan {
    let jobs = expected_jobs(jobs, model);
    let problem = PlanProblem { fabric, ..problem(cluster, jobs, Objective::Batch, None, None, 1).unwrap() };
    let policy = with_defaults(policy).unwrap();
    let plan = policy.as_plan().unwrap().plan(&problem, &mut Budget::new(0, &mut || false)).unwrap();
    assert_eq!(check(&plan, &Facts::default()), []);
    plan
}

/// A plan may think of circuits that the network has not.
fn with_elephants(elephant: Bytes) -> Fabric {
    let circuits = Some(Circuits { rate: BitsPerSec(100_000_000_000), elephant, interval: Micros::from_secs(1) });
    Fabric { uplink: BitsPerSec(10_000_000_000), circuits, nodes: None }
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
        let planned = plan(policy, &cluster, &jobs, &model, with_elephants(Bytes(100 * MIB)));
        assert_eq!(planned.jobs.iter().any(|job| job.heavy), policy == "jobpacker");
        let built = with_defaults(policy).unwrap();
        let run = |plan: Option<Arc<Plan>>| {
            let settings = SimSettings { plan, ..SimSettings::default() };
            by(&*built, &cluster, &model, &settings, &jobs).unwrap()
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
    let planned = plan("corral", &cluster, &jobs, &model, with_elephants(Bytes(1 << 60)));
    let forecast_s = planned.makespan().as_secs_f64();
    let built = with_defaults("corral").unwrap();
    let settings = SimSettings { plan: Some(Arc::new(planned)), heartbeat: Micros(10_000), ..SimSettings::default() };
    let report = by(&*built, &cluster, &model, &settings, &jobs).unwrap();
    let ratio = report.makespan_s / forecast_s;
    assert!((0.8..1.25).contains(&ratio), "{} s instead of {forecast_s} s", report.makespan_s);
}

#[test]
fn the_fabric_of_a_hybrid_network_is_its_uplinks_and_its_ports() {
    let fabric = fabric(&hybrid(3, 2, 4, |_| ()).snapshot).unwrap();
    assert_eq!(fabric.uplink, BitsPerSec(100_000_000));
    let circuits = fabric.circuits.unwrap();
    assert_eq!((circuits.rate, circuits.elephant), (BitsPerSec(1_000_000_000), Bytes(11_250_000)));
    assert_eq!(hintd_policy::plan::fabric(&cluster(2, 2, 2, 5_000_000).snapshot).unwrap().circuits, None);
}

/// Makespan in seconds and the share of what crosses racks that rides circuits, of thirty jobs that shuffle: each the
/// median of five seeds, as one seed's replicas may favour anybody.
fn over_circuits(policy: &str, params: &str) -> (f64, f64) {
    let cluster = hybrid(6, 3, 4, |_| ());
    let (model, jobs) = (still(), batch_of_shuffles());
    let built = (find(policy).unwrap().build)(toml::de::DeTable::parse(params).unwrap()).unwrap();
    let joined = fabric(&cluster.snapshot).unwrap();
    let planned = built.as_plan().is_some().then(|| Arc::new(plan(policy, &cluster, &jobs, &model, joined)));
    let run = |seed| {
        let settings = SimSettings { plan: planned.clone(), seed, ..SimSettings::default() };
        let report = by(&*built, &cluster, &model, &settings, &jobs).unwrap();
        assert_eq!((report.jobs, report.unfinished), (30, 0));
        (report.makespan_s, report.circuits.unwrap().share)
    };
    let (mut makespans, mut shares): (Vec<f64>, Vec<f64>) = (1..=5).map(run).unzip();
    makespans.sort_unstable_by(f64::total_cmp);
    shares.sort_unstable_by(f64::total_cmp);
    (makespans[2], shares[2])
}

#[test]
fn jobpacker_sends_more_over_circuits_and_is_done_before_corral_and_fair() {
    let [jobpacker, corral, fair] = ["jobpacker", "corral", "fair"].map(|policy| over_circuits(policy, ""));
    let figures = format!("jobpacker {jobpacker:?}, corral {corral:?}, fair {fair:?}");
    assert!(jobpacker.1 > 0.98 && jobpacker.1 > corral.1 && jobpacker.1 > fair.1 + 0.15, "on circuits: {figures}");
    assert!(jobpacker.0 < 0.98 * corral.0 && jobpacker.0 < 0.5 * fair.0, "makespan: {figures}");
    assert!(jobpacker.0 < 120.0, "as good as it was: {figures}");
}

#[test]
fn first_replicas_by_maps_end_a_batch_no_later_than_at_random_and_leave_less_to_packets() {
    for policy in ["jobpacker", "corral"] {
        let [by_maps, evenly] =
            ["by_maps", "evenly"].map(|rule| over_circuits(policy, &format!("first_replica = \"{rule}\"")));
        let figures = format!("{policy}: by maps {by_maps:?}, evenly {evenly:?}");
        assert!(by_maps.0 < evenly.0 && 1.0 - by_maps.1 < 0.6 * (1.0 - evenly.1), "{figures}");
    }
}

/// Makespans in seconds of twenty jobs without a plan that all read more than `heavy_input_bytes`, of one user each or
/// all of one, by eight seeds, ascending; and the share of maps that read from other racks.
fn heavy_without_a_plan(policy: &str, params: &str, users: bool) -> (Vec<f64>, f64) {
    let cluster = hybrid(6, 3, 4, |_| ());
    let blocks = |at: usize| 8 + (at as u64 * 7) % 23;
    let user = |at: usize| users.then(|| format!("user-{at}").into());
    let of = |at| TraceJob { user: user(at), ..job(at, 0.0, blocks(at) * 128 * MIB, blocks(at) * 100 * MIB, MIB) };
    let jobs: Vec<TraceJob> = (0..20).map(of).collect();
    let built = (find(policy).unwrap().build)(toml::de::DeTable::parse(params).unwrap()).unwrap();
    let (mut makespans, mut maps) = (Vec::new(), [0; 3]);
    for seed in 1..=8 {
        let settings = SimSettings { seed, ..SimSettings::default() };
        let report = by(&*built, &cluster, &still(), &settings, &jobs).unwrap();
        assert_eq!((report.jobs, report.unfinished), (20, 0));
        makespans.push(report.makespan_s.round());
        (0..3).for_each(|at| maps[at] += report.maps_by_locality[at]);
    }
    makespans.sort_unstable_by(f64::total_cmp);
    (makespans, maps[2] as f64 / maps.iter().sum::<u64>() as f64)
}

#[test]
fn heavy_jobs_that_nobody_planned_read_in_their_racks_and_are_done_before_fair_s() {
    for users in [false, true] {
        let packer = heavy_without_a_plan("jobpacker", "", users);
        // With `jobpacker`'s slow start: what is compared is where tasks go.
        let fair = heavy_without_a_plan("fair", "slow_start = 0.7", users);
        println!("users {users}: jobpacker {packer:?}, fair {fair:?}");
        assert!(packer.0[7] < fair.0[0] && packer.1 < 0.03, "users {users}: jobpacker {packer:?}, fair {fair:?}");
    }
}

/// Thirty jobs of 2 to 30 maps that shuffle as much as they read.
fn batch_of_shuffles() -> Vec<TraceJob> {
    let blocks = |at: usize| 2 + (at as u64 * 7) % 29;
    (0..30).map(|at| job(at, 0.0, blocks(at) * 128 * MIB, blocks(at) * 100 * MIB, MIB)).collect()
}

#[test]
fn a_trace_is_a_history_from_which_the_next_day_is_predicted() {
    let day = Micros::from_secs(86_400);
    let daily = |number: u64| TraceJob {
        name: format!("etl-{}", 20_261_101 + number).as_str().into(),
        submit: Micros(number * day.0 + 3_600_000_000),
        ..job(number as usize, 0.0, 300 * MIB, 200 * MIB, MIB)
    };
    let trace: Vec<TraceJob> = (0..5).map(daily).collect();
    assert_eq!(finished_runs(&trace, &still(), Timestamp(0), KeyRule::Name).of("etl-20261103").len(), 1);
    let runs = finished_runs(&trace, &still(), Timestamp(0), KeyRule::Derived);
    let from = Timestamp(5 * day.0);
    let found = forecast(&runs, from, from.plus(day), &PredictionSettings::default());
    let wanted = &expected_jobs(&[daily(5)], &still())[0];
    assert_eq!(found.jobs.len(), 1);
    let next = &found.jobs[0];
    assert_eq!((&*next.key, next.arrival), ("etl-#", wanted.arrival));
    assert_eq!((next.maps, next.reduces, next.shuffle), (wanted.maps, wanted.reduces, wanted.shuffle));
}
