//! Whole runs of stock jobs, by YARN alone and with hints.

use super::Deployed;
use super::rows::{HintRows, Stage};
use crate::job_model::JobModel;
use crate::report::RunReport;
use crate::settings::{FlowGrain, Part, SimSettings};
use crate::shape::Shipped;
use crate::trace::job::TraceJob;
use crate::yarn::{Progress, SimCluster, SimRun, simulate};
use hintd_engine::holding::HoldSettings;
use hintd_model::units::{Bytes, Micros, NodeIdx, RackIdx};
use hintd_policy::capacity_scheduler::Place;
use hintd_policy::registry;
use std::ops::ControlFlow;

const MIB: u64 = 1 << 20;

fn small() -> SimCluster {
    Shipped::find("nas-40").unwrap().shape().unwrap().to_cluster().unwrap()
}

fn jobs(count: u32) -> Vec<TraceJob> {
    let job = |index: u32| TraceJob {
        name: format!("job{index}").into(),
        submit: Micros::from_secs(u64::from(index) * 7),
        input: Bytes(u64::from(index % 5) * 700 * MIB + MIB),
        shuffle: Bytes(u64::from(index % 4) * 900 * MIB),
        output: Bytes(MIB),
        input_path: None,
        blocks: None,
        user: None,
        maps: None,
        reduces: None,
        map_time: None,
        reduce_time: None,
        earlier: crate::Earlier::Untold,
    };
    (0..count).map(job).collect()
}

fn run(policy: &str, seed: u64, jobs: &[TraceJob]) -> (RunReport, super::HintOutcome) {
    run_with(policy, SimSettings { seed, grain: FlowGrain::Nodes, ..SimSettings::default() }, jobs)
}

fn run_with(policy: &str, settings: SimSettings, jobs: &[TraceJob]) -> (RunReport, super::HintOutcome) {
    let cluster = small();
    let (own, baseline) = (registry::with_defaults(policy).unwrap(), registry::with_defaults("capacity").unwrap());
    let deployed = Deployed::new(&cluster, (policy != "capacity").then_some((&*own, &*baseline)), &settings);
    let model = JobModel::default();
    let places = own.as_place_data();
    let run = SimRun { cluster: &cluster, model: &model, settings: &settings, policy, dispatch: &deployed, places };
    let mut on = |_: Progress| ControlFlow::Continue(());
    let report = simulate(&run, &mut jobs.iter().cloned().map(Ok), &mut on).unwrap();
    (report, deployed.outcome())
}

#[test]
fn all_jobs_end_and_a_seed_gives_one_run() {
    let jobs = jobs(24);
    for policy in ["capacity", "joint", "container"] {
        let (report, outcome) = run(policy, 3, &jobs);
        assert_eq!((report.jobs, report.unfinished), (24, 0), "{policy}");
        assert_eq!(run(policy, 3, &jobs), (report, outcome), "{policy}");
        assert_eq!(outcome.followed + outcome.elsewhere > 0, policy != "capacity", "{policy}: {outcome:?}");
    }
}

#[test]
fn held_receivers_end_jobs_sooner_where_shuffles_compete_and_change_nothing_where_they_are_light() {
    let shuffles = |gb: u64| -> Vec<TraceJob> {
        let heavy = |job: TraceJob| TraceJob { input: Bytes(gb << 30), shuffle: Bytes(gb << 30), ..job };
        jobs(6).into_iter().map(heavy).collect()
    };
    let run = |jobs: &[TraceJob], hold: Option<HoldSettings>| {
        let settings = SimSettings { seed: 3, grain: FlowGrain::Nodes, hold, ..SimSettings::default() };
        run_with("capacity", settings, jobs).0
    };
    let (heavy, light) = (shuffles(24), shuffles(1));
    let held = run(&heavy, Some(HoldSettings::default()));
    let free = run(&heavy, None);
    assert_eq!((held.jobs, held.unfinished), (6, 0));
    assert!(
        held.mean_jct_s < 0.9 * free.mean_jct_s,
        "{} s, and {} s where nobody is held",
        held.mean_jct_s,
        free.mean_jct_s
    );
    assert_eq!(run(&light, Some(HoldSettings::default())), run(&light, None));
}

/// Heavy shuffles, one after the other begins: too many for the uplinks.
fn shuffling() -> Vec<TraceJob> {
    let heavy = |job: TraceJob| TraceJob { input: Bytes(8 << 30), shuffle: Bytes(8 << 30), ..job };
    jobs(12).into_iter().map(heavy).collect()
}

#[test]
fn an_earlier_run_reaches_the_engine_and_moves_receivers() {
    let run = |policy: &str, recurring: f64| {
        run_with(
            policy,
            SimSettings { seed: 3, grain: FlowGrain::Nodes, recurring, ..SimSettings::default() },
            &shuffling(),
        )
    };
    let (with, without) = (run("joint", 1.0), run("joint", 0.0));
    assert_eq!((with.0.jobs, with.0.unfinished), (12, 0));
    assert_ne!(with, without, "no receiver was placed otherwise");
    assert_eq!(run("capacity", 1.0), run("capacity", 0.0), "nobody knows anything where nobody hints");
}

#[test]
fn maps_wait_for_hosts_of_their_blocks_where_somebody_hints() {
    let run = |policy: &str, without: &[Part]| {
        let common = SimSettings { seed: 3, grain: FlowGrain::Nodes, ..SimSettings::default() };
        run_with(policy, SimSettings { without: without.iter().copied().collect(), ..common }, &jobs(24)).0
    };
    let elsewhere = |report: &RunReport| report.maps_by_locality[1] + report.maps_by_locality[2];
    let (with, without) = (run("joint", &[]), run("joint", &[Part::Blocks]));
    assert_eq!((with.jobs, with.unfinished), (24, 0));
    assert!(elsewhere(&with) < elsewhere(&without), "{} and {}", elsewhere(&with), elsewhere(&without));
    assert_eq!(run("capacity", &[]), run("capacity", &[Part::Blocks]), "nobody is asked to wait where nobody hints");
}

#[test]
fn jobs_stay_where_their_input_was_written_and_nothing_changes_where_none_recurs() {
    let run = |policy: &str, recurring: f64, data_placement: bool| {
        let common = SimSettings { seed: 3, grain: FlowGrain::Nodes, ..SimSettings::default() };
        run_with(policy, SimSettings { recurring, data_placement, ..common }, &shuffling())
    };
    let (placed, spread) = (run("joint", 1.0, true), run("joint", 1.0, false));
    assert_eq!((placed.0.jobs, placed.0.unfinished), (12, 0));
    let crossed = [placed.0.cross_rack_bytes, spread.0.cross_rack_bytes];
    assert!(crossed[0] * 2 < crossed[1], "{crossed:?}");
    assert!(placed.0.mean_jct_s < spread.0.mean_jct_s, "{} s and {} s", placed.0.mean_jct_s, spread.0.mean_jct_s);
    assert_eq!(run("joint", 1.0, true), placed, "a seed gives one run");
    for policy in ["joint", "capacity"] {
        assert_eq!(run(policy, 0.0, true), run(policy, 0.0, false), "{policy}");
    }
    assert_eq!(run("capacity", 1.0, true), run("capacity", 0.0, false), "who places no data changes nothing");
}

#[test]
fn a_job_with_more_tasks_than_its_home_has_containers_stays_there() {
    // A rack of nas-40 has 80 containers. Reduces work for so long that its own end is not much later there than in all racks.
    let large = |job: TraceJob| TraceJob {
        input: Bytes(12 << 30),
        shuffle: Bytes(24 << 30),
        maps: Some(100),
        reduces: Some(10),
        map_time: Some(Micros::from_secs(1)),
        reduce_time: Some(Micros::from_secs(20)),
        ..job
    };
    let jobs: Vec<TraceJob> = jobs(1).into_iter().map(large).collect();
    let (grain, recurring, history_error) = (FlowGrain::Nodes, 1.0, 1.0);
    let common = SimSettings { seed: 3, grain, recurring, history_error, ..SimSettings::default() };
    let placed = run_with("joint", SimSettings { data_placement: true, ..common }, &jobs).0;
    assert_eq!((placed.jobs, placed.unfinished, placed.maps_by_locality[2]), (1, 0, 0));
    assert_eq!(placed.cross_rack_bytes, 0, "of {} bytes", placed.shuffle_bytes);
}

#[test]
fn a_jobs_own_reduces_leave_its_maps_the_room_at_home() {
    // Ten waves of maps in the home's 80 containers. Where 64 reduces, a tenth of the cluster's, took that room there were fifty.
    let large = |job: TraceJob| TraceJob {
        input: Bytes(12 << 30),
        shuffle: Bytes(24 << 30),
        maps: Some(800),
        reduces: Some(64),
        map_time: Some(Micros::from_secs(2)),
        reduce_time: Some(Micros::from_secs(60)),
        ..job
    };
    let jobs: Vec<TraceJob> = jobs(1).into_iter().map(large).collect();
    let (grain, recurring, history_error) = (FlowGrain::Nodes, 1.0, 1.0);
    let common = SimSettings { seed: 3, grain, recurring, history_error, ..SimSettings::default() };
    let placed = run_with("joint", SimSettings { data_placement: true, ..common }, &jobs).0;
    assert_eq!((placed.jobs, placed.unfinished, placed.maps_by_locality[2], placed.cross_rack_bytes), (1, 0, 0, 0));
    assert!(placed.mean_jct_s < 165.0, "{} s", placed.mean_jct_s);
}

#[test]
fn rows_are_counts_of_what_is_outstanding_and_go_back_in_two_stages() {
    let rack = |node: NodeIdx| RackIdx(node.0 / 2);
    let mut rows = HintRows::new();
    rows.add(&[(NodeIdx(0), 2), (NodeIdx(1), 1), (NodeIdx(4), 1)]);
    let [any, a, b, c] = [Place::Any, Place::Host(NodeIdx(0)), Place::Host(NodeIdx(1)), Place::Host(NodeIdx(4))];
    let [near, far] = [Place::Rack(RackIdx(0)), Place::Rack(RackIdx(2))];
    let of = |rows: &mut HintRows, any| -> std::collections::BTreeMap<Place, u32> {
        rows.rows(any, rack).into_iter().collect()
    };
    assert_eq!(of(&mut rows, 4), [(any, 4), (near, 3), (far, 1), (a, 2), (b, 1), (c, 1)].into());
    assert!(rows.came(NodeIdx(0)) && !rows.came(NodeIdx(9)), "one on its host, one elsewhere");
    assert_eq!(of(&mut rows, 2).values().sum::<u32>() - 2, 4, "two hosts and their racks are left");
    rows.stage = Stage::Racks;
    assert!(of(&mut rows, 2).iter().all(|(place, count)| !matches!(place, Place::Host(_)) || *count == 0));
    rows.stage = Stage::Anywhere;
    assert_eq!(of(&mut rows, 2).values().sum::<u32>(), 2, "what was named is put to 0");
    // A job with homes: all of their nodes for all that is outstanding, more than was hinted at.
    (rows.stage, rows.homes) = (Stage::Racks, vec![NodeIdx(0), NodeIdx(1)]);
    let named = of(&mut rows, 5).into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    assert_eq!(
        named.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        [(any, 5), (near, 5), (a, 5), (b, 5)].into()
    );
    assert!(rows.names(5));
}
