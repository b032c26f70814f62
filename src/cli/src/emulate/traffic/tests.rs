//! Transfers on a small network: when they arrive, and what the links have counted.

use super::super::cluster::{Cluster, ClusterShape};
use super::*;
use hintd_model::units::{ApplicationId, BitsPerSec};

const OWNER: AttemptId = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 };
const MB: u64 = 1_000_000;

/// Two racks of two nodes, 80 Mbit/s (10 MB/s) each; one uplink of 40 Mbit/s to each of two cores.
fn cluster(cores: usize) -> Cluster {
    let host_bits_per_s = BitsPerSec(80_000_000);
    let shape =
        ClusterShape { nodes: 4, racks: 2, cores, host_bits_per_s, oversubscription: 2.0, ..Default::default() };
    Cluster::build(shape).unwrap()
}

fn arrivals(traffic: &mut Traffic) -> Vec<(f64, TransferId)> {
    let mut all = Vec::new();
    while let Some(at_s) = traffic.next_s() {
        all.extend(traffic.advance(at_s).into_iter().map(|arrived| (at_s, arrived.transfer)));
    }
    all
}

fn load(loads: &[v1::LinkLoad], id: &str) -> (u64, u64) {
    let load = loads.iter().find(|load| load.id == id).unwrap_or_else(|| panic!("no {id}: {loads:?}"));
    (load.a_to_b_bits_per_s, load.b_to_a_bits_per_s)
}

#[test]
fn transfers_share_uplinks_fairly_and_links_count_what_they_carry() {
    let cluster = cluster(1);
    let uplinks = cluster.uplinks();
    let mut traffic = Traffic::new(&cluster);
    // 80 Mbit/s up for both: 5 MB/s each, and then the NIC's 10.
    let first = traffic.send(0.0, OWNER, (0, 2), Bytes(10 * MB));
    let second = traffic.send(0.0, OWNER, (1, 3), Bytes(20 * MB));
    let local = traffic.send(0.0, OWNER, (1, 1), Bytes(20 * MB));
    let beside = traffic.send(0.0, OWNER, (3, 2), Bytes(5 * MB));
    let loads = traffic.read_counters(1.0);
    let both: u64 = uplinks.iter().map(|id| load(&loads, id)).map(|(up, down)| up + down).sum();
    assert_eq!(both, 2 * 80_000_000, "one rack's uplink up, the other's down: {loads:?}");
    assert_eq!(
        arrivals(&mut traffic),
        [(0.0, local), (1.0, beside), (2.0, first), (3.0, second)].map(|(at, id)| {
            // What was over before the counters were read is told then.
            (if id == local { 1.0 } else { at }, id)
        })
    );
    let rest = traffic.read_counters(4.0);
    let both: f64 = uplinks.iter().map(|id| load(&rest, id)).map(|(up, down)| (up + down) as f64).sum();
    assert!((both * 3.0 / 16.0 - 20e6).abs() < 1e3, "20 MB of the 30 were left, over two links: {both}");
    assert_eq!(traffic.between_switches(), Bytes(2 * 30 * MB));
    assert!(traffic.read_counters(4.0).is_empty(), "no time has passed");
}

#[test]
fn others_take_their_part_first_and_are_counted() {
    let cluster = cluster(1);
    let mut traffic = Traffic::new(&cluster);
    let id = cluster.uplinks().remove(0);
    traffic.set_others(0.0, cluster.network.link(&id).unwrap(), [40e6, 40e6]);
    let sent = traffic.send(0.0, OWNER, (0, 2), Bytes(10 * MB));
    let loads = traffic.read_counters(1.0);
    let (up, down) = load(&loads, &id);
    assert_eq!((up.max(down), up.min(down)), (80_000_000, 40_000_000));
    assert_eq!(arrivals(&mut traffic), [(2.0, sent)]);
}

#[test]
fn a_failed_link_moves_transfers_and_without_a_way_they_wait() {
    let cluster = cluster(2);
    let uplinks = cluster.uplinks();
    let mut traffic = Traffic::new(&cluster);
    let sent = traffic.send(0.0, OWNER, (0, 2), Bytes(20 * MB)); // 40 Mbit/s over one core: 4 s
    let used = |loads: &[v1::LinkLoad]| -> Vec<String> {
        let busy = |id: &&String| {
            loads.iter().any(|load| load.id == **id && load.a_to_b_bits_per_s.max(load.b_to_a_bits_per_s) > 0)
        };
        uplinks.iter().filter(busy).cloned().collect()
    };
    let before = used(&traffic.read_counters(1.0));
    assert_eq!(before.len(), 2);
    traffic.set_link(1.0, &before[0], false);
    let loads = traffic.read_counters(2.0);
    assert!(loads.iter().all(|load| load.id != before[0]), "a link that is down tells nothing");
    let after = used(&loads);
    assert!(after.len() == 2 && after.iter().all(|id| !before.contains(id)), "{before:?} -> {after:?}");
    traffic.set_link(2.0, &after[0], false);
    assert_eq!((traffic.next_s(), traffic.advance(10.0)), (None, Vec::new()), "cut off");
    traffic.set_link(10.0, &before[0], true);
    assert_eq!(arrivals(&mut traffic), [(12.0, sent)], "half of it was left");
}

#[test]
fn transfers_go_by_the_routes_that_the_controller_installed() {
    let cluster = cluster(2);
    let mut traffic = Traffic::new(&cluster);
    let host = |node: usize| cluster.machines[node].host.to_string();
    let ends = |index: LinkIdx| {
        let link = cluster.network.link_at(index);
        [link.a, link.b].map(|end| cluster.network.vertex_at(end).name.to_string())
    };
    let name = |a: &str, b: &str| {
        let found = cluster
            .network
            .links()
            .find(|(index, _)| ends(*index).contains(&a.to_owned()) && ends(*index).contains(&b.to_owned()));
        found.unwrap_or_else(|| panic!("no link of {a} and {b}")).1.name.to_string()
    };
    let switch_of = |node: usize| {
        let attached = cluster.network.attachment(cluster.network.vertex(&host(node)).unwrap()).unwrap();
        cluster.network.vertex_at(attached).name.to_string()
    };
    let (from, to) = (switch_of(0), switch_of(2));
    let cores: Vec<String> = cluster
        .network
        .vertices()
        .map(|(_, vertex)| vertex.name.to_string())
        .filter(|of| of.starts_with("core"))
        .collect();
    traffic.send(0.0, OWNER, (0, 2), Bytes(1_000 * MB));
    for (at, core) in cores.iter().enumerate() {
        let links = vec![name(&host(0), &from), name(&from, core), name(core, &to), name(&to, &host(2))];
        let pair = Some(v1::HostPair { src: host(0), dst: host(2), class: String::new() });
        let route = v1::Route { pair, links: links.clone(), ..v1::Route::default() };
        traffic.install(at as f64, &v1::RouteUpdate { routes: vec![route], ..v1::RouteUpdate::default() });
        let loads = traffic.read_counters(at as f64 + 1.0);
        let busy = |load: &&v1::LinkLoad| load.a_to_b_bits_per_s.max(load.b_to_a_bits_per_s) > 0;
        let busy: BTreeSet<String> = loads.iter().filter(busy).map(|load| load.id.clone()).collect();
        assert_eq!(busy, links.into_iter().collect());
    }
}

#[test]
fn a_machine_that_stops_gets_nothing_and_keeps_nobody_waiting() {
    let cluster = cluster(1);
    let mut traffic = Traffic::new(&cluster);
    let to_others = traffic.send(0.0, OWNER, (0, 2), Bytes(1_000 * MB));
    let to_it = traffic.send(0.0, OWNER, (2, 0), Bytes(1_000 * MB));
    let stopped = traffic.send(0.0, OWNER, (1, 3), Bytes(1_000 * MB));
    traffic.stop(0.5, stopped);
    traffic.stop_machine(1.0, 0);
    let later = traffic.send(1.0, OWNER, (0, 3), Bytes(1_000 * MB));
    let arrived: Vec<TransferId> = arrivals(&mut traffic).into_iter().map(|(_, id)| id).collect();
    assert_eq!(arrived, [to_others, later], "not {to_it:?} and {stopped:?}");
}
