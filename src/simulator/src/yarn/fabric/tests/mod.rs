//! Tests of the fabric: hand-computed cases, and the oracles of the modules below.

mod circuits;
mod failures;
mod gate;
mod grains;
mod oracle;

use super::testing::snapshot;
use super::*;
use crate::settings::{Authority, Background, FlowGrain};
use hintd_model::units::{LinkName, Micros};

pub(super) fn exact(grain: FlowGrain) -> SimSettings {
    SimSettings { grain, rate_tolerance: 0.0, ..SimSettings::default() }
}

/// All arrivals to come, with their moments.
pub(super) fn all(fabric: &mut Fabric) -> Vec<(f64, Arrived)> {
    let (mut all, mut arrived) = (Vec::new(), Vec::new());
    while let Some(at_s) = fabric.next_s() {
        fabric.advance(at_s, &mut arrived);
        all.extend(arrived.drain(..).map(|what| (at_s, what)));
    }
    all
}

const JOB: JobNo = JobNo(0);

#[test]
fn a_lone_reduce_fetches_at_its_share_of_the_nic() {
    let mut fabric = Fabric::new(&snapshot(2, 2), &exact(FlowGrain::Racks)).unwrap();
    // 50 Mbit/s a fetch: 62.5 MB take 10 s from the second's end on.
    fabric.job(JOB, 1, 1, Bytes(62_500_000));
    fabric.map_done(0.25, JOB, 0, NodeIdx(0), Bytes(62_500_000));
    fabric.maps_complete(0.25, JOB);
    fabric.reduce_begins(0.5, JOB, 0, NodeIdx(2));
    assert_eq!(fabric.next_s(), Some(1.0));
    assert_eq!(all(&mut fabric), [(11.0, Arrived::Shuffle { job: JOB, reduce: 0 })]);
    assert_eq!(fabric.bytes(), FabricBytes { cross_rack_shuffle: Bytes(62_500_000), ..FabricBytes::default() });
}

/// All output of a job on one node, 40 reduces on other nodes: of the first rack, or of another.
fn one_sender(grain: FlowGrain, first_reader: u32) -> f64 {
    let mut fabric = Fabric::new(&snapshot(2, 8), &exact(grain)).unwrap();
    fabric.job(JOB, 1, 40, Bytes(1_250_000_000));
    fabric.map_done(0.0, JOB, 0, NodeIdx(0), Bytes(1_250_000_000));
    fabric.maps_complete(0.0, JOB);
    (0..40).for_each(|reduce| fabric.reduce_begins(0.5, JOB, reduce, NodeIdx(first_reader + reduce % 7)));
    fabric.advance(2.0, &mut Vec::new());
    let others_room = 1_000 - fabric.rack_use_per_mille(RackIdx(0));
    assert_eq!(others_room, if first_reader < 8 { 1_000 } else { 750 }, "{grain:?}");
    all(&mut fabric).iter().map(|arrival| arrival.0).fold(0.0, f64::max)
}

#[test]
fn counters_of_links_say_who_carries_what() {
    for grain in [FlowGrain::Racks, FlowGrain::Nodes] {
        let mut fabric = Fabric::new(&snapshot(2, 8), &exact(grain)).unwrap();
        fabric.job(JOB, 1, 40, Bytes(1_250_000_000));
        fabric.map_done(0.0, JOB, 0, NodeIdx(0), Bytes(1_250_000_000));
        fabric.maps_complete(0.0, JOB);
        (0..40).for_each(|reduce| fabric.reduce_begins(0.5, JOB, reduce, NodeIdx(8 + reduce % 7)));
        fabric.advance(2.0, &mut Vec::new());
        // 250 Mbit/s out of the sender, up and down the two racks' links, and into the readers; in grain `racks` no reader's
        // link carries what comes from another rack.
        let all = if grain == FlowGrain::Nodes { 1_000e6_f64 } else { 750e6 };
        let loads = fabric.link_loads();
        let (sum, most) = loads
            .iter()
            .flat_map(|(_, both)| both)
            .fold((0.0, 0.0_f64), |(sum, most), &load| (sum + load, most.max(load)));
        assert!((sum - all).abs() < 1e3 && (most - 250e6).abs() < 1e3, "{grain:?}: {sum}, {most}");
        assert!(
            loads.iter().all(|(link, both)| both.contains(&0.0) && fabric.link_name(*link).as_str() != ""),
            "one way each"
        );
    }
}

#[test]
fn what_lies_on_one_node_leaves_it_no_faster_than_its_nic() {
    for first_reader in [1, 8] {
        for grain in [FlowGrain::Racks, FlowGrain::Nodes] {
            // 10 Gbit at 250 Mbit/s, from the first second's end on.
            let last_s = one_sender(grain, first_reader);
            assert!((last_s - 41.0).abs() < 1e-6, "{grain:?} {first_reader}: {last_s}");
        }
    }
}

#[test]
fn input_comes_from_the_nearest_replica_at_the_readers_nic() {
    let mut fabric = Fabric::new(&snapshot(3, 2), &exact(FlowGrain::Racks)).unwrap();
    // 31.25 MB at 250 Mbit/s: one second.
    let mut read = |reader, replicas: &[u32]| {
        let replicas: Vec<NodeIdx> = replicas.iter().copied().map(NodeIdx).collect();
        fabric.read(0.0, ReadNo(reader), NodeIdx(0), &replicas, Bytes(31_250_000))
    };
    assert_eq!(read(0, &[5, 1, 0]), Locality::Node);
    assert_eq!(read(1, &[4, 2, 1]), Locality::Rack);
    assert_eq!(read(2, &[4, 5]), Locality::CrossRack);
    let arrivals = all(&mut fabric);
    assert_eq!(arrivals, [(1.0, Arrived::Read(ReadNo(1))), (1.0, Arrived::Read(ReadNo(2)))]);
    let each = Bytes(31_250_000);
    let bytes = fabric.bytes();
    assert_eq!([bytes.node_local_input, bytes.rack_local_input, bytes.cross_rack_input], [each; 3]);
}

#[test]
fn a_read_goes_on_elsewhere_when_its_replica_is_lost_and_waits_when_it_was_the_last() {
    let mut fabric = Fabric::new(&snapshot(3, 2), &exact(FlowGrain::Racks)).unwrap();
    fabric.read(0.0, ReadNo(0), NodeIdx(0), &[NodeIdx(2), NodeIdx(4)], Bytes(31_250_000));
    fabric.node(0.5, NodeIdx(2), false);
    fabric.node(0.5, NodeIdx(4), false);
    assert_eq!((fabric.next_s(), fabric.stalled()), (None, 1));
    fabric.node(2.0, NodeIdx(4), true);
    assert_eq!(all(&mut fabric), [(3.0, Arrived::Read(ReadNo(0)))], "from the beginning");
}

#[test]
fn while_maps_run_a_source_is_asked_when_it_holds_a_tenth_of_what_is_expected() {
    let mut fabric = Fabric::new(&snapshot(2, 1), &exact(FlowGrain::Racks)).unwrap();
    // Two racks, 40 maps of 1 MB: 20 MB expected of each, a tenth is two maps' output.
    fabric.job(JOB, 40, 1, Bytes(40_000_000));
    fabric.reduce_begins(0.0, JOB, 0, NodeIdx(1));
    fabric.map_done(2.0, JOB, 0, NodeIdx(0), Bytes(1_000_000));
    assert_eq!(fabric.under_way(), (0, 1));
    fabric.map_done(3.0, JOB, 1, NodeIdx(0), Bytes(1_000_000));
    assert_eq!(fabric.under_way(), (1, 1));
    let mut arrived = Vec::new();
    fabric.advance(10.0, &mut arrived);
    assert_eq!((arrived.len(), fabric.bytes().shuffle()), (0, Bytes(2_000_000)));
}

#[test]
fn no_more_fetches_than_allowed_are_under_way_and_each_from_another_rack() {
    let mut fabric = Fabric::new(&snapshot(9, 1), &exact(FlowGrain::Racks)).unwrap();
    fabric.job(JOB, 8, 2, Bytes(8_000_000));
    (0..8).for_each(|map| fabric.map_done(0.0, JOB, map, NodeIdx(map), Bytes(1_000_000)));
    fabric.maps_complete(0.0, JOB);
    fabric.reduce_begins(0.0, JOB, 0, NodeIdx(8));
    fabric.reduce_begins(0.9, JOB, 1, NodeIdx(8));
    fabric.advance(1.0, &mut Vec::new());
    assert_eq!(fabric.under_way(), (5, 2), "two like reduces are one flow from each of five racks");
    assert_eq!(fabric.rack_use_per_mille(RackIdx(8)), 500, "ten fetches of 50 Mbit/s");
    let rack = fabric.tier_use()[0];
    assert_eq!((rack.tier, rack.max, rack.links), ("rack", 0.5, 18));
}

#[test]
fn a_dead_uplink_stops_what_passes_it_until_it_is_back() {
    let grains = [FlowGrain::Racks, FlowGrain::Nodes];
    for (grain, rate_tolerance) in grains.into_iter().flat_map(|grain| [(grain, 0.0), (grain, 0.005)]) {
        let settings = SimSettings { grain, rate_tolerance, ..SimSettings::default() };
        let mut fabric = Fabric::new(&snapshot(2, 1), &settings).unwrap();
        fabric.read(0.0, ReadNo(0), NodeIdx(0), &[NodeIdx(1)], Bytes(31_250_000));
        let uplink = LinkName("edge-02--core-1".into());
        assert!(fabric.link(0.25, &uplink, false) && !fabric.link(0.25, &LinkName("no such".into()), false));
        assert_eq!((fabric.next_s(), fabric.stalled(), fabric.rack_use_per_mille(RackIdx(0))), (None, 1, 0));
        assert!(fabric.link(10.0, &uplink, true));
        let arrivals = all(&mut fabric);
        assert_eq!(arrivals[0].1, Arrived::Read(ReadNo(0)));
        assert!((arrivals[0].0 - 10.75).abs() < 1e-6, "{grain:?}: {arrivals:?}");
    }
}

#[test]
fn others_traffic_takes_its_share_between_its_times() {
    for grain in [FlowGrain::Racks, FlowGrain::Nodes] {
        let of = |from: &str, streams| Background {
            from_rack: from.into(),
            to_rack: "/rack-02".into(),
            streams,
            start: Micros::from_secs(10),
            end: Some(Micros::from_secs(20)),
        };
        let background = vec![of("/rack-01", 40)];
        let mut fabric = Fabric::new(&snapshot(2, 4), &SimSettings { background, ..exact(grain) }).unwrap();
        let mut used = Vec::new();
        for at_s in [5.0, 15.0, 25.0] {
            fabric.advance(at_s, &mut Vec::new());
            used.push([0, 1].map(|rack| fabric.rack_use_per_mille(RackIdx(rack))));
        }
        assert_eq!(used, [[0, 0], [1_000, 1_000], [0, 0]], "{grain:?}");
        assert_eq!((fabric.bytes(), fabric.next_s()), (FabricBytes::default(), None));
        let unknown = SimSettings { background: vec![of("/rack-9", 1)], ..exact(grain) };
        let error = Fabric::new(&snapshot(2, 4), &unknown).unwrap_err();
        assert_eq!(
            error.to_string(),
            "background traffic names rack \"/rack-9\", which the cluster does not have or which has no nodes"
        );
    }
}

#[test]
fn a_reduce_without_shuffle_arrives_when_all_maps_are_done() {
    let mut fabric = Fabric::new(&snapshot(2, 1), &exact(FlowGrain::Racks)).unwrap();
    fabric.job(JOB, 1, 1, Bytes::ZERO);
    fabric.reduce_begins(0.0, JOB, 0, NodeIdx(0));
    assert_eq!(all(&mut fabric), []);
    fabric.map_done(5.0, JOB, 0, NodeIdx(0), Bytes::ZERO);
    fabric.maps_complete(5.0, JOB);
    assert_eq!(all(&mut fabric), [(5.0, Arrived::Shuffle { job: JOB, reduce: 0 })]);
}

#[test]
fn a_cluster_whose_links_are_not_known_has_no_fabric() {
    let mut cluster = snapshot(2, 1);
    cluster.topology = Arc::new(hintd_model::cluster::Topology::new(None, &cluster.statics));
    let error = Fabric::new(&cluster, &exact(FlowGrain::Racks)).unwrap_err();
    assert_eq!(error.to_string(), "the cluster has no network, so rack \"/rack-01\" has no uplink");
}
