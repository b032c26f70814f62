//! Nodes and links that fail and come back.

use super::*;
use crate::settings::{Scripted, ScriptedEvent};
use hintd_model::units::{HostName, LinkName, Micros, NodeIdx};

fn host(cluster: &SimCluster, node: u32) -> HostName {
    cluster.snapshot.host(NodeIdx(node)).clone()
}

fn at(s: f64, what: Scripted) -> ScriptedEvent {
    ScriptedEvent { at: Micros((s * 1e6) as u64), what }
}

fn scripted(script: Vec<ScriptedEvent>) -> SimSettings {
    SimSettings { script, ..SimSettings::default() }
}

#[test]
fn tasks_of_a_lost_node_run_again_elsewhere() {
    let cluster = cluster(2, 2, 2, 10_000_000_000);
    let jobs = [job(0, 0.0, 8 * 128 * MIB, 0, 0)];
    let calm = report(&cluster, &SimSettings::default(), &jobs);
    let lost = report(&cluster, &scripted(vec![at(3.0, Scripted::NodeDown(host(&cluster, 1)))]), &jobs);
    assert_eq!((lost.jobs, lost.unfinished), (1, 0));
    let launches = |report: &RunReport| report.maps_by_locality.iter().sum::<u64>();
    assert_eq!((launches(&calm), launches(&lost)), (8, 10), "two containers' maps ran twice");
}

#[test]
fn a_node_that_comes_back_is_used_again() {
    let cluster = cluster(1, 2, 1, 100_000_000);
    let jobs = [job(0, 0.0, 6 * 128 * MIB, 0, 0)];
    let down = at(3.0, Scripted::NodeDown(host(&cluster, 0)));
    let gone = report(&cluster, &scripted(vec![down.clone()]), &jobs);
    let back = at(8.0, Scripted::NodeUp(host(&cluster, 0)));
    let again = report(&cluster, &scripted(vec![down, back]), &jobs);
    assert!(again.makespan_s + 5.0 < gone.makespan_s, "{} and {}", again.makespan_s, gone.makespan_s);
}

#[test]
fn finished_maps_whose_output_is_lost_before_all_fetched_it_run_again() {
    let cluster = cluster(2, 2, 2, 20_000_000);
    let jobs = [job(0, 0.0, 4 * 128 * MIB, 400 * MIB, 0)];
    // The maps end within 8 s; at 20 Mbit/s the fetches take far longer.
    let lost = report(&cluster, &scripted(vec![at(12.0, Scripted::NodeDown(host(&cluster, 0)))]), &jobs);
    assert_eq!(lost.jobs, 1);
    assert!(lost.maps_by_locality.iter().sum::<u64>() > 4, "{:?}", lost.maps_by_locality);
    assert!(lost.shuffle_bytes >= 400 * MIB);
}

#[test]
fn reduces_that_hold_every_container_give_way_to_maps_that_run_again() {
    let cluster = cluster(2, 1, 1, 20_000_000);
    // A reduce on one node, a map on the other, then a second reduce in the map's place. The map's node goes for good
    // and its output with it, and the first reduce sits in the only container left.
    let jobs = [TraceJob { reduces: Some(2), ..job(0, 0.0, 0, 200 * MIB, 0) }];
    let eager = Fifo { slow_start: 0.0, early: 1 };
    let runs = [0, 1].map(|node| {
        let script = vec![at(12.0, Scripted::NodeDown(host(&cluster, node)))];
        let report = with(&cluster, &still(), &scripted(script), &eager, &jobs, true).unwrap();
        assert_eq!((report.jobs, report.unfinished), (1, 0));
        report.maps_by_locality[0]
    });
    assert_eq!(runs[0] + runs[1], 3, "in one of the runs the map ran again: {runs:?}");
}

#[test]
fn fetches_over_a_link_that_is_down_wait_until_it_is_up() {
    let cluster = cluster(2, 2, 1, 100_000_000);
    let jobs = [job(0, 0.0, 4 * 128 * MIB, 400 * MIB, 0)];
    let calm = report(&cluster, &SimSettings::default(), &jobs);
    let network = cluster.snapshot.topology.network.as_ref().unwrap();
    let uplinks: Vec<LinkName> = network
        .links()
        .filter(|(_, link)| ![link.a, link.b].iter().any(|&end| network.vertex_at(end).is_host()))
        .map(|(_, link)| link.name.clone())
        .collect();
    let mut script: Vec<_> = uplinks.iter().map(|link| at(6.0, Scripted::LinkDown(link.clone()))).collect();
    script.extend(uplinks.iter().map(|link| at(506.0, Scripted::LinkUp(link.clone()))));
    let cut = report(&cluster, &scripted(script.clone()), &jobs);
    assert!(cut.makespan_s > 506.0 && cut.makespan_s > calm.makespan_s + 400.0, "{}", cut.makespan_s);
    script.truncate(uplinks.len());
    let error = with(&cluster, &still(), &scripted(script), &fifo(), &jobs, true).unwrap_err();
    assert!(matches!(error, SimError::Stalled { waiting: 0, .. }), "{error}");
}

#[test]
fn a_run_with_failures_gives_the_same_bytes_twice_and_without_skipping() {
    let cluster = cluster(3, 2, 2, 100_000_000);
    let hosts = [0, 3, 5].map(|node| host(&cluster, node));
    let mut script: Vec<_> =
        hosts.iter().zip([20.0, 30.0, 44.0]).map(|(host, s)| at(s, Scripted::NodeDown(host.clone()))).collect();
    script.extend(hosts.iter().zip([40.0, 41.0, 70.0]).map(|(host, s)| at(s, Scripted::NodeUp(host.clone()))));
    let settings = scripted(script);
    let run = |skip| {
        let report = with(&cluster, &JobModel::default(), &settings, &fifo(), &mixed(24), skip).unwrap();
        assert_eq!(report.jobs, 24);
        RunReport { events: 0, offers: 0, ..report }
    };
    assert_eq!(run(true), run(true));
    assert_eq!(run(true), run(false));
}
