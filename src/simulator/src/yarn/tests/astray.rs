//! Runs that leave their plan: racks that die, sizes that are wrong, jobs that come twice or late, ports that lack.

use super::circuits::hybrid;
use super::plans::plan;
use super::*;
use crate::settings::{Scripted, ScriptedEvent};
use hintd_policy::plan::{Plan, fabric};
use hintd_policy::registry::with_defaults;

use hintd_model::units::{HostName, Micros, NodeIdx};
use std::sync::Arc;

/// Six racks of three nodes with four containers, circuits from 11.25 MB on.
fn six() -> SimCluster {
    hybrid(6, 3, 4, |_| ())
}

/// Twenty jobs of 2 to 24 maps that shuffle about as much as they read, all there at once.
fn batch() -> Vec<TraceJob> {
    let blocks = |at: usize| 2 + (at as u64 * 7) % 23;
    (0..20).map(|at| job(at, 0.0, blocks(at) * 128 * MIB, blocks(at) * 100 * MIB, MIB)).collect()
}

/// Plans `known` for both planners, runs `jobs` under the plan, and gives each report.
fn runs(cluster: &SimCluster, known: &[TraceJob], jobs: &[TraceJob], settings: &SimSettings) -> [RunReport; 2] {
    ["jobpacker", "corral"].map(|policy| {
        let planned: Plan = plan(policy, cluster, known, &still(), fabric(&cluster.snapshot).unwrap());
        let settings = SimSettings { plan: Some(Arc::new(planned)), ..settings.clone() };
        let built = with_defaults(policy).unwrap();
        let report = by(&*built, cluster, &still(), &settings, jobs).unwrap();
        let shuffle: u64 = jobs.iter().map(|job| job.shuffle.0).sum();
        assert_eq!((report.jobs, report.unfinished), (jobs.len() as u64, 0), "{policy}");
        assert!(report.shuffle_bytes >= shuffle, "{policy}: every byte arrives");
        report
    })
}

fn rack_down(cluster: &SimCluster, rack: usize, at_s: u64) -> Vec<ScriptedEvent> {
    let hosts =
        cluster.snapshot.statics.members[rack].iter().map(|&node: &NodeIdx| cluster.snapshot.host(node).clone());
    let down = |host: HostName| ScriptedEvent { at: Micros::from_secs(at_s), what: Scripted::NodeDown(host) };
    hosts.map(down).collect()
}

#[test]
fn every_job_ends_though_a_rack_of_the_plan_dies_and_never_comes_back() {
    let (cluster, jobs) = (six(), batch());
    for at_s in [0, 7, 40] {
        let script = rack_down(&cluster, 2, at_s);
        runs(&cluster, &jobs, &jobs, &SimSettings { script, ..SimSettings::default() });
    }
}

#[test]
fn jobs_a_hundred_times_larger_or_smaller_than_planned_end() {
    let (cluster, jobs) = (six(), batch());
    let scaled = |up: u64, down: u64| -> Vec<TraceJob> {
        let bytes = |bytes: Bytes| Bytes(bytes.0 * up / down);
        let job = |job: &TraceJob| TraceJob { input: bytes(job.input), shuffle: bytes(job.shuffle), ..job.clone() };
        jobs.iter().map(job).collect()
    };
    let [right, _] = runs(&cluster, &jobs, &jobs, &SimSettings::default());
    // The plan knows a hundredth of what comes, and then a hundred times as much.
    let [more, _] = runs(&cluster, &scaled(1, 100), &jobs, &SimSettings::default());
    let [fewer, _] = runs(&cluster, &scaled(100, 1), &jobs, &SimSettings::default());
    for report in [&more, &fewer] {
        assert!(report.makespan_s < 6.0 * right.makespan_s, "{} against {}", report.makespan_s, right.makespan_s);
    }
}

#[test]
fn jobs_that_come_twice_or_a_day_late_are_served_as_nobodys() {
    let (cluster, jobs) = (six(), batch());
    let twice: Vec<TraceJob> = jobs.iter().flat_map(|job| [job.clone(), job.clone()]).collect();
    runs(&cluster, &jobs, &twice, &SimSettings::default());
    let day = Micros::from_secs(86_400);
    let late: Vec<TraceJob> = jobs.iter().map(|job| TraceJob { submit: day, ..job.clone() }).collect();
    let unplanned = with_defaults("jobpacker").unwrap();
    let longer = |seed| {
        let settings = SimSettings { seed, ..SimSettings::default() };
        let [report, _] = runs(&cluster, &jobs, &late, &settings);
        report.makespan_s / by(&*unplanned, &cluster, &still(), &settings, &jobs).unwrap().makespan_s
    };
    let mut longer: Vec<f64> = (1..=5).map(longer).collect();
    longer.sort_unstable_by(f64::total_cmp);
    // Replicas still lie where the plan had the maps.
    assert!(longer[2] < 1.3, "as nobody's, of makespans without a plan: {longer:?}");
}

#[test]
fn jobs_that_shuffle_nothing_or_less_than_an_elephant_never_wait_for_circuits() {
    let cluster = six();
    for shuffle in [Bytes::ZERO, Bytes(MIB)] {
        let jobs: Vec<TraceJob> = batch().into_iter().map(|job| TraceJob { shuffle, ..job }).collect();
        let [report, _] = runs(&cluster, &jobs, &jobs, &SimSettings::default());
        let used = report.circuits.unwrap();
        assert_eq!((used.bytes, used.changes), (0, 0), "a matrix of zeros changes no circuit");
    }
}

#[test]
fn racks_without_a_port_take_part_by_packets() {
    let mut cluster = six();
    let jobs = batch();
    let [all, _] = runs(&cluster, &jobs, &jobs, &SimSettings::default());
    let mut network = cluster.snapshot.topology.network.as_deref().cloned().unwrap();
    for rack in 3..=6 {
        let port = network.link(&format!("edge-0{rack}--optical")).unwrap();
        network.remove_link(port);
    }
    cluster.snapshot.topology =
        Arc::new(hintd_model::cluster::Topology::new(Some(Arc::new(network)), &cluster.snapshot.statics));
    let [two, _] = runs(&cluster, &jobs, &jobs, &SimSettings::default());
    assert_eq!(two.circuits.unwrap().racks_without_port, 4);
    assert!(two.circuits.unwrap().share < all.circuits.unwrap().share);
}
