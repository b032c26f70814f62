//! What stays, what goes down, and when.

use super::super::testing::{at, inventory, mac, ms, poll};
use super::*;

fn down(inventory: &Inventory) -> Vec<(PortAt, PortAt)> {
    inventory.cables().filter(|cable| !cable.up).map(|cable| (cable.a, cable.b)).collect()
}

#[test]
fn a_deleted_link_is_down_after_the_debounce_and_up_at_once_when_it_returns() {
    let mut inventory = inventory();
    let (a, b) = (at(1, 1), at(17, 1));
    assert!(!inventory.event(&Event::LinkDelete(b, a), ms(100)));
    assert_eq!(inventory.due(), Some(ms(105)));
    assert!(!inventory.tick(ms(104)) && down(&inventory).is_empty());
    assert!(inventory.tick(ms(105)));
    assert_eq!((down(&inventory), inventory.due()), (vec![(a, b)], None), "one direction is enough");
    assert!(inventory.event(&Event::LinkAdd(b, a), ms(200)));
    assert!(down(&inventory).is_empty());
}

#[test]
fn a_spurious_pair_of_events_changes_nothing() {
    let mut inventory = inventory();
    let (a, b) = (at(1, 1), at(17, 1));
    inventory.event(&Event::LinkDelete(a, b), ms(100));
    assert!(!inventory.event(&Event::LinkAdd(a, b), ms(101)), "it was never down");
    assert!(!inventory.tick(ms(200)) && down(&inventory).is_empty());
}

#[test]
fn a_poll_finds_what_no_event_told_but_loses_to_later_events() {
    let mut inventory = inventory();
    let (a, b) = (at(1, 1), at(17, 1));
    let mut without = poll();
    without.links.remove(&(a, b));
    inventory.event(&Event::LinkAdd(a, b), ms(510));
    inventory.poll(&without, ms(500), ms(520)).unwrap();
    assert_eq!(inventory.due(), None, "the poll was begun before the event");
    inventory.poll(&without, ms(600), ms(620)).unwrap();
    assert!(inventory.tick(ms(700)));
    assert_eq!(down(&inventory), [(a, b)]);
    inventory.poll(&poll(), ms(800), ms(820)).unwrap();
    assert!(down(&inventory).is_empty());
}

#[test]
fn a_controller_that_forgets_everything_takes_nothing_down() {
    let mut inventory = inventory();
    assert_eq!(inventory.poll(&Poll::default(), ms(100), ms(101)), Err(BadAnswer::Empty(4)));
    inventory.trouble(ms(1_000));
    let mut first = poll();
    (first.links, first.hosts) = (BTreeSet::new(), Vec::new());
    first.switches.retain(|switch| *switch == Dpid(1));
    inventory.poll(&first, ms(2_000), ms(2_001)).unwrap();
    assert!(!inventory.tick(ms(2_500)) && down(&inventory).is_empty() && inventory.connected(Dpid(17)));
    assert_eq!(inventory.hosts().count(), 2, "hosts are forgotten by a controller that starts anew");
    inventory.poll(&first, ms(5_000), ms(5_001)).unwrap();
    assert!(inventory.tick(ms(5_100)), "after the settling time absence counts");
    assert_eq!((down(&inventory).len(), inventory.connected(Dpid(17))), (4, false));
}

#[test]
fn all_switches_leaving_at_once_is_the_controllers_end() {
    let mut inventory = inventory();
    for switch in [1, 2, 17, 18] {
        inventory.event(&Event::SwitchLeave(Dpid(switch)), ms(100));
    }
    assert!(!inventory.tick(ms(200)));
    assert!(inventory.switches().all(|(_, up)| up));
    inventory.event(&Event::SwitchLeave(Dpid(17)), ms(300));
    assert!(inventory.tick(ms(305)));
    assert!(!inventory.connected(Dpid(17)), "one switch that leaves is down");
}

#[test]
fn a_port_with_a_new_peer_loses_its_old_link() {
    let mut inventory = inventory();
    for link in [(at(1, 1), at(18, 9)), (at(18, 9), at(1, 1))] {
        inventory.event(&Event::LinkAdd(link.0, link.1), ms(100));
    }
    let ends: Vec<_> = inventory.cables().map(|cable| (cable.a, cable.b)).collect();
    assert!(ends.contains(&(at(1, 1), at(18, 9))) && !ends.contains(&(at(1, 1), at(17, 1))));
    assert_eq!((ends.len(), inventory.one_way()), (4, 0));
}

#[test]
fn hosts_at_ports_of_links_are_not_there_and_young_ports_are_not_open() {
    let mut inventory = inventory();
    let passing = HostSeen { mac: mac(9), addresses: Vec::new(), at: at(17, 1) };
    inventory.event(&Event::HostAdd(passing), ms(100));
    assert_eq!(inventory.hosts().count(), 2);
    assert_eq!(inventory.open_ports(ms(100)), BTreeSet::from([at(1, 3), at(2, 3)]), "hosts' ports at once");
    let open = inventory.open_ports(ms(3_100));
    assert_eq!(open, BTreeSet::from([at(1, 3), at(1, 4), at(2, 3), at(2, 4)]), "others when no link was found behind");
}
