//! Names, capacities, and what the daemon is told.

use super::super::model::Event;
use super::super::testing::{at, graph, inventory, mac, ms};
use super::*;
use crate::feed::topology;

#[test]
fn the_whole_network_is_told_first_and_the_daemon_takes_it() {
    let graph = graph(&inventory());
    let items = graph.changes_since(None);
    let [Item::Full(full)] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!((full.switches.len(), full.hosts.len(), full.links.len()), (4, 2, 6));
    let tier = |name: &str| full.switches.iter().find(|switch| switch.name == name).unwrap().tier.clone();
    assert_eq!((tier("s0000000000000001"), tier("s0000000000000011")), ("edge".to_owned(), "core".to_owned()));
    let network = topology::network(full.clone()).unwrap().unwrap();
    assert_eq!((network.hosts(), network.switches()), (2, 4));
    assert_eq!(graph.changes_since(Some(&graph)), []);
}

#[test]
fn a_link_that_goes_down_is_told_alone() {
    let mut inventory = inventory();
    let before = graph(&inventory);
    inventory.event(&Event::LinkDelete(at(1, 1), at(17, 1)), ms(10));
    inventory.event(&Event::SwitchLeave(Dpid(18)), ms(10));
    assert!(inventory.tick(ms(20)));
    let after = graph(&inventory);
    let id = "s0000000000000001:1-s0000000000000011:1".to_owned();
    let link = Item::Link(v1::LinkChange { id, up: Some(false), bits_per_s: None });
    let switch = Item::Switch(v1::SwitchChange { name: "s0000000000000012".to_owned(), up: false });
    assert_eq!(after.changes_since(Some(&before)), [link, switch.clone()]);
    let anew = after.changes_since(None);
    assert!(
        matches!(&anew[0], Item::Full(full) if full.links.iter().filter(|link| link.up == Some(false)).count() == 1)
    );
    assert_eq!(anew[1..], [switch], "a whole network has no state of switches");
}

#[test]
fn capacities_are_described_unless_configured() {
    let inventory = inventory();
    let (names, configured) = (Names::default(), Capacities { links: 5, hosts: 7 });
    let bits = |graph: &Graph| -> BTreeSet<u64> { graph.links.values().map(|link| link.bits_per_s).collect() };
    assert_eq!(bits(&graph(&inventory)), BTreeSet::from([10_000_000_000]));
    assert_eq!(bits(&Graph::new(&inventory, &names, configured).0), BTreeSet::from([5, 7]));
}

#[test]
fn ports_and_addresses_are_found_by_name() {
    let graph = graph(&inventory());
    let link = "s0000000000000001:1-s0000000000000011:1";
    assert_eq!(graph.port("s0000000000000001", link), Some(at(1, 1)));
    assert_eq!(graph.port("s0000000000000011", link), Some(at(17, 1)));
    assert_eq!(graph.port("s0000000000000012", link), None);
    assert_eq!(graph.port("s0000000000000001", "s0000000000000001:3-10.0.0.1"), Some(at(1, 3)));
    assert_eq!((graph.address("10.0.0.1"), graph.address("nobody")), (Some(mac(1)), None));
}

#[test]
fn two_things_of_one_name_are_told() {
    let mut names = Names::default();
    names.switches.extend([(Dpid(1), "x".to_owned()), (Dpid(2), "x".to_owned())]);
    let (graph, twice) = Graph::new(&inventory(), &names, Capacities::default());
    assert_eq!((twice, graph.switches.len()), (vec!["switch \"x\"".to_owned()], 3));
}
