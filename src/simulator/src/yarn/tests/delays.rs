//! Delays of a real cluster, and what the trace says of blocks.

use super::*;
use crate::delays::Delays;
use crate::settings::{FlowGrain, Scripted, ScriptedEvent};
use hintd_model::units::{HostName, Micros, NodeIdx};
use std::sync::Arc;

fn delayed(delays: Delays) -> SimSettings {
    SimSettings { delays, by_job: true, grain: FlowGrain::Nodes, ..SimSettings::default() }
}

fn seconds(s: u64) -> Micros {
    Micros::from_secs(s)
}

#[test]
fn a_job_takes_longer_by_its_starts_and_its_end() {
    let cluster = cluster(1, 1, 2, 1_000_000_000);
    let jobs = [job(0, 10.0, 64_000_000, 0, 0)];
    // The client's time is before the job's own.
    let without = report(&cluster, &delayed(Delays::default()), &jobs);
    let client = seconds(4);
    let delays =
        Delays { client, master: seconds(5), task_start: seconds(2), job_end: seconds(3), ..Delays::default() };
    let with = report(&cluster, &delayed(delays), &jobs);
    assert!((with.jct_s[0] - without.jct_s[0] - 10.0).abs() < 1e-9, "{} and {}", with.jct_s[0], without.jct_s[0]);
    let [without, with] = [&without.by_job[0], &with.by_job[0]];
    assert_eq!((without.map_s, with.map_s, with.number), (3.0, 5.0, 0), "a map's container starts as well");
    assert_eq!((&with.maps[..], with.jct_s), (&[1][..], with.jct_s));
}

#[test]
fn work_of_all_nodes_shares_the_clusters_cores() {
    let cluster = cluster(2, 2, 1, 1_000_000_000);
    let jobs = [job(0, 0.0, 4 * 128 * MIB, 0, 0)];
    let map_s = |cores| {
        let report = report(&cluster, &delayed(Delays { cores, ..Delays::default() }), &jobs);
        report.by_job[0].map_s
    };
    // Four maps of 5.19 s that begin within a second.
    let (own, shared) = (map_s(None), map_s(Some(2.0)));
    assert!((own - 5.194_304).abs() < 1e-6, "{own}");
    assert!(shared > 1.7 * own && shared < 2.0 * own, "{shared} and {own}");
    assert_eq!(map_s(Some(4.0)), own);
}

#[test]
fn what_links_carry_beside_bytes_takes_its_time_and_is_counted_by_rack() {
    // A map on each of two nodes, the one reduce beside one of them.
    let cluster = cluster(2, 1, 1, 10_000_000);
    let everywhere: Vec<HostName> = [0, 1].map(|node| cluster.snapshot.host(NodeIdx(node)).clone()).into();
    let blocks: Arc<[_]> = vec![everywhere; 2].into();
    let (maps, reduces) = (Some(2), Some(1));
    let jobs = [TraceJob { maps, reduces, blocks: Some(blocks), ..job(0, 0.0, 256 * MIB, 20_000_000, 0) }];
    let of = |wire| report(&cluster, &delayed(Delays { wire, ..Delays::default() }), &jobs);
    let (plain, more) = (of(1.0), of(1.25));
    let crossed = |report: &RunReport| (report.cross_rack_shuffle_bytes, report.rack_bytes.clone());
    let ((bytes, links), (same, carried)) = (crossed(&plain), crossed(&more));
    assert!(bytes > 0 && same == bytes, "{bytes} and {same}: of the job it is as much");
    let sum = |racks: &[crate::report::RackBytes]| {
        (racks.iter().map(|rack| rack.out).sum::<u64>(), racks.iter().map(|rack| rack.into).sum::<u64>())
    };
    assert_eq!((sum(&links), sum(&carried)), ((bytes, bytes), (bytes * 5 / 4, bytes * 5 / 4)));
    let waited = |report: &RunReport| report.by_job[0].shuffle_s;
    assert!(waited(&more) > 1.1 * waited(&plain), "{} and {}", waited(&more), waited(&plain));
}

#[test]
fn a_task_that_fails_while_it_starts_runs_again() {
    let cluster = cluster(2, 2, 2, 1_000_000_000);
    let jobs = [job(0, 0.0, 8 * 128 * MIB, 64 * MIB, 0)];
    let lost = ScriptedEvent { at: seconds(3), what: Scripted::NodeDown(cluster.snapshot.host(NodeIdx(1)).clone()) };
    let delays = Delays { task_start: seconds(6), cores: Some(2.0), ..Delays::default() };
    let settings = SimSettings { script: vec![lost], ..delayed(delays) };
    let report = report(&cluster, &settings, &jobs);
    assert_eq!((report.jobs, report.unfinished), (1, 0));
    assert_eq!(report.by_job[0].maps.iter().sum::<u32>(), 8);
}

#[test]
fn maps_read_where_the_trace_says_that_their_blocks_lie() {
    let cluster = cluster(2, 2, 4, 100_000_000);
    let far: Arc<[_]> = vec![vec![cluster.snapshot.host(NodeIdx(3)).clone()]; 4].into();
    let of = |blocks| TraceJob { maps: Some(4), blocks, ..job(0, 0.0, 40 * MIB, 0, 0) };
    let report = report(&cluster, &delayed(Delays::default()), &[of(Some(far))]);
    let [local, in_rack, afar] = report.maps_by_locality;
    assert_eq!(local + in_rack + afar, 4);
    assert_eq!(report.rack_bytes[1].out, afar * 10 * MIB, "whoever reads from the other rack reads it from there");
    assert_eq!(report.rack_bytes[0].into, afar * 10 * MIB);
    let unknown: Arc<[_]> = vec![vec![HostName::from("elsewhere")]; 4].into();
    let error = with(&cluster, &still(), &delayed(Delays::default()), &fifo(), &[of(Some(unknown))], true).unwrap_err();
    let said = "job job0 has input on node \"elsewhere\", which the cluster does not have";
    assert_eq!(error.to_string(), said);
}

#[test]
fn delays_that_no_run_can_have_are_refused() {
    let cluster = cluster(1, 1, 1, 1_000_000_000);
    let delays = Delays { cores: Some(0.0), ..Delays::default() };
    let error = with(&cluster, &still(), &delayed(delays), &fifo(), &[], true).unwrap_err();
    assert_eq!(error.to_string(), "cores: 0: it must lie between 0.01 and 1000000");
}
