//! What Eq. 4.1 does not know is in the forecast: each test has one thing of it.

use crate::jobpacker::offline::latency::ShuffleTerm;
use crate::jobpacker::offline::tests::plan;
use crate::jobpacker::offline::{Placing, Rules};
use crate::plan::{Circuits, ExpectedJob, Fabric, NodeLinks, Objective, Plan, PlanProblem, RackRoom};
use hintd_model::units::{BitsPerSec, Bytes, Micros, Timestamp};

const GB: u64 = 1_000_000_000;
const RULES: Rules = Rules {
    policy: "jobpacker",
    placing: Placing::Packed,
    sub_batches: 1,
    over_provisioning: 0.0,
    term: ShuffleTerm::ByWidth,
    round: None,
    forecast: Some(0.7),
};

/// Racks of 30 nodes of 20 containers, as 004 §4.3.1 has them.
fn problem(racks: usize, jobs: Vec<ExpectedJob>) -> PlanProblem {
    let interval = Micros::from_secs(1);
    let circuits = Circuits { interval, ..Circuits::new(BitsPerSec(100 * GB), Micros::from_millis(10)) };
    PlanProblem {
        racks: (0..racks).map(|rack| RackRoom { rack: format!("/r{rack}").into(), containers: 600 }).collect(),
        fabric: Fabric {
            uplink: BitsPerSec(30 * GB),
            circuits: Some(circuits),
            nodes: Some(NodeLinks { rate: BitsPerSec(10 * GB), per_rack: 30 }),
        },
        jobs,
        objective: Objective::Batch,
        made: Timestamp(0),
        from: Timestamp(0),
        until: Timestamp(1),
        prediction_error: None,
        seed: 1,
    }
}

/// Maps of 5 s and reduces of 30 s.
fn job(key: &str, maps: u32, reduces: u32, input: Bytes, shuffle: Bytes) -> ExpectedJob {
    let (maps, reduces) = ((maps, Micros::from_secs(5)), (reduces, Micros::from_secs(30)));
    ExpectedJob { key: key.into(), run: 0, arrival: Timestamp(0), input, maps, reduces, shuffle }
}

fn planned(racks: usize, jobs: Vec<ExpectedJob>) -> Plan {
    plan(&problem(racks, jobs), &RULES).unwrap()
}

/// Maps' end, shuffle's, the job's.
fn times(plan: &Plan, key: &str) -> [f64; 3] {
    let job = plan.jobs.iter().find(|job| &*job.job.key == key).unwrap();
    let forecast = job.forecast.unwrap();
    [forecast.maps_end, forecast.shuffled, forecast.end].map(|at| (at.0 as f64 / 1e4).round() / 100.0)
}

#[test]
fn one_map_sends_no_faster_than_the_link_of_its_node() {
    let plan = planned(2, vec![job("j", 1, 60, Bytes(0), Bytes(60 * GB))]);
    let [maps, shuffled, end] = times(&plan, "j");
    // 60 GB over 10 Gbit/s are 48 s, from the whole second after the launch on; a thirtieth may stay on the node.
    assert!(maps == 5.0 && (6.0 + 46.4..=6.0 + 48.1).contains(&shuffled), "{shuffled}");
    assert_eq!(end, shuffled + 30.0);
    assert!(plan.jobs[0].end.since(plan.from) < Micros::from_secs(45), "Eq. 4.1 knows no links of nodes");
    assert_eq!(plan.makespan().as_secs_f64().round(), end.round(), "what a plan promises is the forecast");
}

#[test]
fn many_maps_send_as_fast_as_a_circuit_brings_it() {
    let plan = planned(2, vec![job("j", 300, 60, Bytes(0), Bytes(60 * GB))]);
    // 4.8 s of a circuit, or 12 GB a second within a rack, to 30 nodes.
    let [maps, shuffled, _] = times(&plan, "j");
    assert!((maps + 2.0..maps + 8.0).contains(&shuffled), "{shuffled}");
}

#[test]
fn maps_that_read_from_other_nodes_share_the_links_of_their_rack() {
    let input = Bytes(300 * 125_000_000);
    let alone = planned(1, vec![job("a", 300, 0, input, Bytes(0))]);
    // Two fifths of 37.5 GB over 30 links of 1.25 GB/s.
    assert_eq!(times(&alone, "a")[0], 5.4);
    let two = planned(1, vec![job("a", 300, 0, input, Bytes(0)), job("b", 300, 0, input, Bytes(0))]);
    assert_eq!((times(&two, "a")[0], times(&two, "b")[0]), (5.8, 5.8));
    let one = planned(1, vec![job("a", 1, 0, Bytes(125_000_000), Bytes(0))]);
    assert_eq!(times(&one, "a")[0], 5.0, "one map goes where its input is");
}

#[test]
fn a_lone_reduce_fetches_by_packets_with_a_fifth_of_its_link() {
    // 1 GB, no elephant: 4 s at 2 Gbit/s, less what stays on the node.
    let plan = planned(1, vec![job("j", 60, 1, Bytes(0), Bytes(GB))]);
    assert_eq!(times(&plan, "j"), [5.0, 9.87, 39.87]);
}

#[test]
fn shuffles_of_several_jobs_share_a_rack_s_circuit() {
    let jobs = |count: u32| (0..count).map(|at| job(&format!("j{at}"), 590, 300, Bytes(0), Bytes(100 * GB))).collect();
    let makespan = |count| planned(2, jobs(count)).makespan().as_secs_f64();
    let by_eq_4_1 = |count| planned(2, jobs(count)).jobs.iter().map(|job| job.end).max().unwrap().0 as f64 / 1e6;
    assert!(makespan(2) > by_eq_4_1(2) + 0.5, "{} {}", makespan(2), by_eq_4_1(2));
    assert!(makespan(2) > makespan(1));
}

#[test]
fn without_nodes_links_there_is_eq_4_1_alone() {
    let mut problem = problem(2, vec![job("j", 1, 60, Bytes(0), Bytes(60 * GB))]);
    problem.fabric.nodes = None;
    let unknown = plan(&problem, &RULES).unwrap();
    assert_eq!((unknown.jobs[0].forecast, unknown.makespan()), (None, unknown.jobs[0].end.since(unknown.from)));
    problem.fabric.nodes = Some(NodeLinks { rate: BitsPerSec(10 * GB), per_rack: 30 });
    let off = plan(&problem, &Rules { forecast: None, ..RULES }).unwrap();
    assert_eq!(off, unknown);
    problem.fabric.nodes = Some(NodeLinks { rate: BitsPerSec(0), per_rack: 30 });
    assert_eq!(plan(&problem, &RULES).unwrap_err().to_string(), "the node rate is 0 bit/s");
}

#[test]
fn a_shuffle_that_lasts_for_weeks_has_a_plan_and_no_forecast() {
    let mut problem = problem(2, vec![job("j", 1_000, 600, Bytes(1 << 50), Bytes(1 << 50))]);
    if let Some(circuits) = &mut problem.fabric.circuits {
        circuits.interval = Micros::from_millis(20);
    }
    let plan = plan(&problem, &RULES).unwrap();
    assert_eq!(plan.jobs[0].forecast, None, "it is given up, and does not take hours");
}

#[test]
fn on_small_racks_reduces_fetch_no_faster_than_their_nodes_links() {
    let mut problem = problem(2, vec![job("j", 300, 300, Bytes(0), Bytes(90 * GB))]);
    problem.fabric.nodes = Some(NodeLinks { rate: BitsPerSec(10 * GB), per_rack: 2 });
    let [maps, shuffled, _] = times(&plan(&problem, &RULES).unwrap(), "j");
    // Two nodes of each rack take 2.5 GB a second, whatever circuits bring.
    assert!(shuffled - maps >= 90.0 / 2.5 / 2.0, "{shuffled} {maps}");
}
