//! Circuits worked out by hand. Circuits carry 125 MB a second, uplinks 12.5 MB.

mod steps;

use super::super::testing::with_circuits;
use super::*;
use hintd_model::network::OpticalSection;
use std::sync::Arc;

const MB: u64 = 1_000_000;

fn fabric(racks: usize, change: impl FnOnce(&mut OpticalSection)) -> Fabric {
    Fabric::new(&with_circuits(racks, 2, change), &exact(FlowGrain::Racks)).unwrap()
}

/// One job: its output in one rack, on one node, its reduce in another, from the second after `at_s` on.
fn burst(fabric: &mut Fabric, job: u32, at_s: f64, (from, to): (u32, u32), bytes: u64) {
    let job = JobNo(job);
    fabric.job(job, 1, 1, Bytes(bytes));
    fabric.map_done(at_s, job, 0, NodeIdx(2 * from), Bytes(bytes));
    fabric.maps_complete(at_s, job);
    fabric.reduce_begins(at_s, job, 0, NodeIdx(2 * to));
}

/// Lets time pass, circuits chosen after what happens at their moment: arrivals by job.
pub(super) fn pass(fabric: &mut Fabric, from_s: f64, to_s: f64) -> Vec<(u32, f64)> {
    let (mut now_s, mut arrivals) = (from_s, Vec::new());
    loop {
        let event_s = fabric.next_s().unwrap_or(f64::INFINITY);
        let now = Micros((now_s * 1e6).ceil() as u64);
        let choice = fabric.next_choice(now).map_or(f64::INFINITY, Micros::as_secs_f64);
        let at_s = event_s.min(choice);
        if at_s > to_s || at_s == f64::INFINITY {
            return arrivals;
        }
        if event_s <= choice {
            let mut arrived = Vec::new();
            fabric.advance(event_s, &mut arrived);
            arrivals.extend(arrived.iter().map(|arrived| match arrived {
                Arrived::Shuffle { job, .. } => (job.0, event_s),
                Arrived::Read(reader) => (1_000 + reader.0, event_s),
            }));
        } else {
            fabric.choose_circuits(Micros((choice * 1e6).round() as u64));
        }
        fabric.check_circuits().unwrap();
        now_s = at_s;
    }
}

fn near(found: &[(u32, f64)], expected: &[(u32, f64)]) {
    let close = |(one, other): (&(u32, f64), &(u32, f64))| one.0 == other.0 && (one.1 - other.1).abs() < 1e-6;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(close), "{found:?}, not {expected:?}");
}

#[test]
fn an_elephant_rides_its_circuit_from_the_end_of_the_pause() {
    let mut fabric = fabric(2, |_| ());
    burst(&mut fabric, 0, 0.5, (0, 1), 125 * MB);
    near(&pass(&mut fabric, 0.5, 100.0), &[(0, 2.01)]);
    let used = fabric.circuits().unwrap();
    assert_eq!((used.bytes.round(), used.changes, used.by_packets), (125e6, 1, 0));
    assert_eq!(fabric.bytes().cross_rack_shuffle, Bytes(125 * MB));
    assert_eq!(used.report(fabric.bytes().cross_rack()).share, 1.0);
}

#[test]
fn a_mouse_goes_by_packets_and_no_circuit_is_chosen_for_it() {
    let mut fabric = fabric(2, |_| ());
    burst(&mut fabric, 0, 0.5, (0, 1), 10 * MB);
    assert_eq!((fabric.next_s(), fabric.next_choice(Micros(0))), (Some(1.0), None));
    near(&pass(&mut fabric, 0.5, 100.0), &[(0, 1.8)]);
    assert_eq!(fabric.circuits(), Some(CircuitUse::default()));
}

#[test]
fn an_elephant_leaves_the_uplinks_to_mice() {
    let mut fabric = fabric(2, |_| ());
    burst(&mut fabric, 0, 0.5, (0, 1), 125 * MB);
    burst(&mut fabric, 1, 0.5, (0, 1), 10 * MB);
    near(&pass(&mut fabric, 0.5, 100.0), &[(1, 1.8), (0, 2.01)]);
}

#[test]
fn a_circuit_that_is_chosen_again_goes_on_and_one_that_is_new_stops_all_for_the_pause() {
    let mut fabric = fabric(3, |_| ());
    burst(&mut fabric, 0, 0.5, (0, 1), 500 * MB);
    let mut arrivals = pass(&mut fabric, 0.5, 2.5);
    // Chosen again at 2 s; at 3 s another rack wants one.
    burst(&mut fabric, 1, 2.5, (1, 2), 125 * MB);
    arrivals.extend(pass(&mut fabric, 2.5, 100.0));
    near(&arrivals, &[(1, 4.01), (0, 5.02)]);
    assert_eq!(fabric.circuits().unwrap().changes, 2);
}

#[test]
fn an_elephant_that_comes_to_a_lit_circuit_rides_it_at_once() {
    let mut fabric = fabric(2, |section| section.interval_ms = 4_000);
    burst(&mut fabric, 0, 0.0, (0, 1), 500 * MB);
    let mut arrivals = pass(&mut fabric, 0.0, 5.5);
    assert_eq!(arrivals, []);
    burst(&mut fabric, 1, 5.5, (0, 1), 62_500_000);
    arrivals.extend(pass(&mut fabric, 5.5, 100.0));
    // Chosen at 4 s, lit at 4.01; from 6 s on both share: 62.5 MB each by 7 s.
    near(&arrivals, &[(1, 7.0), (0, 8.51)]);
}

#[test]
fn by_circuit_a_reduce_has_its_nodes_nic_and_by_packets_a_fifth_of_it() {
    // NICs of 200 Mbit/s: 25 MB a second, by packets 5; on one node both reduces share it. Two nodes send.
    for (nodes, elephant_bytes, end_s) in [([2, 2], 1, 3.01), ([2, 3], 1, 2.01), ([2, 3], 1 << 40, 6.0)] {
        let mut cluster = with_circuits(2, 2, |section| section.elephant_bytes = Some(Bytes(elephant_bytes)));
        let mut network = cluster.topology.network.as_deref().cloned().unwrap();
        for (link, _) in network.clone().links().filter(|(_, link)| link.name.as_str().starts_with("host")) {
            network.set_link(link, None, Some(hintd_model::units::BitsPerSec(200_000_000)));
        }
        cluster.topology = Arc::new(hintd_model::cluster::Topology::new(Some(Arc::new(network)), &cluster.statics));
        let mut fabric = Fabric::new(&cluster, &exact(FlowGrain::Racks)).unwrap();
        fabric.job(JOB, 2, 2, Bytes(50 * MB));
        (0..2).for_each(|map| fabric.map_done(0.25, JOB, map, NodeIdx(map), Bytes(25 * MB)));
        fabric.maps_complete(0.25, JOB);
        (0..2).for_each(|reduce| fabric.reduce_begins(0.5, JOB, reduce as u32, NodeIdx(nodes[reduce])));
        near(&pass(&mut fabric, 0.5, 100.0), &[(0, end_s), (0, end_s)]);
    }
}

#[test]
fn one_rack_sends_to_one_other_at_a_time() {
    let mut fabric = fabric(3, |_| ());
    burst(&mut fabric, 0, 0.5, (0, 1), 100 * MB);
    burst(&mut fabric, 1, 0.5, (0, 2), 90 * MB);
    // The larger first, for 0.8 s; at 2 s the other gets the port.
    near(&pass(&mut fabric, 0.5, 100.0), &[(0, 1.81), (1, 2.73)]);
}

#[test]
fn a_port_that_fails_sends_its_elephants_over_the_uplink_until_it_is_back() {
    let port = LinkName("edge-01--optical".into());
    let mut broken = fabric(2, |_| ());
    burst(&mut broken, 0, 0.5, (0, 1), 250 * MB);
    assert_eq!(pass(&mut broken, 0.5, 2.01), []);
    assert!(broken.link(2.01, &port, false));
    let mut mended = broken.clone();
    // 125 MB are left.
    near(&pass(&mut broken, 2.01, 100.0), &[(0, 12.01)]);
    assert_eq!((broken.circuits().unwrap().bytes.round(), broken.circuits().unwrap().by_packets), (125e6, 1));
    assert_eq!(pass(&mut mended, 2.01, 3.5), []);
    assert!(mended.link(3.51, &port, true));
    // Chosen at 4 s, lit at 4.01, with 100 MB left.
    near(&pass(&mut mended, 3.51, 100.0), &[(0, 4.81)]);
}

#[test]
fn an_elephant_gives_up_on_a_port_that_is_stuck_and_goes_by_packets() {
    let mut fabric = fabric(2, |section| section.patience_ms = Some(5_000));
    assert!(fabric.stick_port(0.0, &LinkName("edge-02--optical".into()), true));
    assert!(!fabric.stick_port(0.0, &LinkName("edge-02--core-1".into()), true));
    burst(&mut fabric, 0, 0.5, (0, 1), 25 * MB);
    near(&pass(&mut fabric, 0.5, 100.0), &[(0, 8.0)]);
    let used = fabric.circuits().unwrap();
    assert_eq!((used.bytes, used.changes, used.by_packets), (0.0, 0, 1));
}

#[test]
fn what_goes_to_a_rack_without_a_port_goes_by_packets_at_once() {
    let mut cluster = with_circuits(3, 2, |_| ());
    let mut network = cluster.topology.network.as_deref().cloned().unwrap();
    network.remove_link(network.link("edge-03--optical").unwrap());
    cluster.topology = Arc::new(hintd_model::cluster::Topology::new(Some(Arc::new(network)), &cluster.statics));
    let mut fabric = Fabric::new(&cluster, &exact(FlowGrain::Racks)).unwrap();
    burst(&mut fabric, 0, 0.5, (0, 2), 25 * MB);
    burst(&mut fabric, 1, 0.5, (0, 1), 125 * MB);
    near(&pass(&mut fabric, 0.5, 100.0), &[(1, 2.01), (0, 3.0)]);
    assert_eq!(fabric.circuits().unwrap().without_port, 1);
}

#[test]
fn what_is_gathered_from_a_rack_and_held_back_makes_one_elephant_when_it_starts() {
    // Four outputs of 4 MB, each a mouse; together they ride.
    for held in [true, false] {
        let mut fabric = fabric(2, |_| ());
        if held {
            fabric.hold_shuffles();
        }
        fabric.job(JOB, 4, 1, Bytes(16 * MB));
        fabric.reduce_begins(0.5, JOB, 0, NodeIdx(2));
        for map in 0..4 {
            let at_s = 1.0 + f64::from(map);
            assert_eq!(pass(&mut fabric, at_s - 0.5, at_s), []);
            fabric.map_done(at_s, JOB, map, NodeIdx(map % 2), Bytes(4 * MB));
        }
        fabric.maps_complete(4.0, JOB);
        assert_eq!(pass(&mut fabric, 4.0, 4.5).len(), usize::from(!held));
        fabric.start_shuffle(5.0, JOB, RackIdx(0), RackIdx(1));
        let arrivals = pass(&mut fabric, 4.5, 100.0);
        if held {
            near(&arrivals, &[(0, 5.138)]);
        }
        assert_eq!(fabric.circuits().unwrap().bytes.round() as u64, if held { 16 * MB } else { 0 });
    }
}

#[test]
fn circuits_are_simulated_between_racks_and_ports_have_to_be_of_racks() {
    let error = Fabric::new(&with_circuits(2, 2, |_| ()), &exact(FlowGrain::Nodes)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the network has an optical switch: circuits are simulated from rack to rack, in grain racks only"
    );
    let wrong = with_circuits(2, 2, |section| section.pause_ms = 2_000);
    let error = Fabric::new(&wrong, &exact(FlowGrain::Racks)).unwrap_err();
    assert_eq!(error.to_string(), "optical.pause_ms is 2000: with a choice every 1000 ms no time is left to send");
}
