//! Rules to entries, and tables compared with what they should hold.

use super::super::model::{Event, Mac};
use super::super::testing::{graph, inventory, mac, ms};
use super::*;
use serde_json::json;

const MARKS: FlowEntryMarks = FlowEntryMarks { cookie: 0x6869_0000, priority: 1_000, base_priority: 10 };

fn pair(class: &str) -> WatchedPair {
    WatchedPair { src: "10.0.0.1".into(), dst: "10.0.0.2".into(), class: class.into() }
}

fn install(switch: &str, link: &str) -> RuleChange {
    let action = RuleAction::Install { link: link.into(), next: "next".into() };
    RuleChange { switch: switch.into(), pair: pair(""), action }
}

const LEAF: &str = "s0000000000000001";
const UP: &str = "s0000000000000001:2-s0000000000000012:1";

#[test]
fn a_rule_becomes_a_port_of_a_switch() {
    let graph = graph(&inventory());
    let matches = Match { src: Some(mac(1)), dst: mac(2) };
    assert_eq!(translate(&install(LEAF, UP), &graph), Ok(Translated { switch: Dpid(1), matches, port: Some(2) }));
    let remove = RuleChange { action: RuleAction::Remove, ..install(LEAF, UP) };
    assert_eq!(translate(&remove, &graph), Ok(Translated { switch: Dpid(1), matches, port: None }));
}

#[test]
fn what_can_not_be_installed_says_why() {
    let mut inventory = inventory();
    inventory.event(&Event::SwitchLeave(Dpid(18)), ms(10));
    inventory.tick(ms(20));
    let graph = graph(&inventory);
    let why = |rule: &RuleChange| translate(rule, &graph).unwrap_err().to_string();
    assert_eq!(why(&install("nowhere", UP)), "switch \"nowhere\" is not one of this controller's");
    assert_eq!(why(&install(LEAF, "no")), "switch \"s0000000000000001\" has no port on link \"no\"");
    assert_eq!(
        why(&install("s0000000000000012", UP)),
        "switch \"s0000000000000012\" is not connected to its controller"
    );
    let classed = RuleChange { pair: pair("bulk"), ..install(LEAF, UP) };
    assert_eq!(why(&classed), "traffic class \"bulk\" can't be told apart by addresses");
    let silent = WatchedPair { dst: "10.0.0.77".into(), ..pair("") };
    assert_eq!(why(&RuleChange { pair: silent, ..install(LEAF, UP) }), "no address of host \"10.0.0.77\" was heard");
}

fn found(cookie: u64, priority: u16, dst: Mac, port: u32) -> EntryFound {
    let matches = Match { src: None, dst };
    EntryFound {
        cookie,
        priority,
        matches: Some(matches),
        outputs: Some(BTreeSet::from([Output::Port(port)])),
        raw: super::super::ryu::match_json(&matches),
    }
}

#[test]
fn a_table_is_mended_where_it_differs_and_others_entries_are_left_alone() {
    let mut table = Table::new(MARKS);
    for last in [1, 2, 3] {
        let matches = Match { src: None, dst: mac(last) };
        drop(table.want(Dpid(1), Layer::Base, matches, BTreeSet::from([Output::Port(last.into())])));
    }
    drop(table.want(Dpid(2), Layer::Base, Match { src: None, dst: mac(9) }, BTreeSet::new()));
    let own = MARKS.cookie + BASE;
    let odd = EntryFound { matches: None, raw: json!({"in_port": 1}), ..found(own, 10, mac(5), 1) };
    let shown =
        [found(own, 10, mac(1), 1), found(own, 10, mac(2), 9), found(own, 10, mac(4), 1), odd, found(7, 10, mac(5), 1)];
    let commands = table.differences(Dpid(1), &shown);
    let [
        Command::Add(_, two),
        Command::Add(_, three),
        Command::Remove { priority: 10, matches: four, .. },
        Command::Remove { priority: 10, matches: odd, .. },
    ] = commands.as_slice()
    else {
        panic!("{commands:?}")
    };
    assert_eq!(
        (two.matches.dst, three.matches.dst),
        (mac(2), mac(3)),
        "a wrong port is overwritten, a lost entry sent"
    );
    assert_eq!(four, &json!({ "eth_dst": mac(4).to_string() }));
    assert_eq!(odd, &json!({ "in_port": 1 }), "an entry of ours that is not understood goes as it is");
    assert_eq!(table.differences(Dpid(1), &[]).len(), 3);
}

#[test]
fn routes_stand_above_default_forwarding() {
    let mut table = Table::new(MARKS);
    let matches = Match { src: Some(mac(1)), dst: mac(2) };
    let Command::Add(_, route) = table.want(Dpid(1), Layer::Route, matches, BTreeSet::new()) else { panic!() };
    let Command::Add(_, base) = table.want(Dpid(1), Layer::Base, matches, BTreeSet::new()) else { panic!() };
    assert!(route.priority > base.priority && route.cookie != base.cookie);
    table.forget_routes();
    assert_eq!(table.outputs(Dpid(1), Layer::Route, matches), None);
    assert!(table.outputs(Dpid(1), Layer::Base, matches).is_some());
}

#[test]
fn a_switch_shows_what_it_has_and_that_what_it_lacks_is_gone() {
    let (mut table, matches) = (Table::new(MARKS), Match { src: Some(mac(1)), dst: mac(2) });
    let add = table.want(Dpid(1), Layer::Route, matches, BTreeSet::from([Output::Port(7)]));
    let Command::Add(_, entry) = &add else { panic!("{add:?}") };
    let found = EntryFound {
        cookie: entry.cookie,
        priority: entry.priority,
        matches: Some(matches),
        outputs: Some(entry.outputs.clone()),
        raw: super::super::ryu::match_json(&matches),
    };
    let odd = EntryFound { matches: None, raw: json!({ "in_port": 1 }), ..found.clone() };
    let shown = InstalledEntries::new(vec![odd.clone(), found.clone()]);
    let remove = table.drop(Dpid(1), Layer::Route, matches);
    assert!(shown.has(&add) && !shown.has(&remove));
    for other in [
        EntryFound { outputs: Some(BTreeSet::from([Output::Port(8)])), ..found.clone() },
        EntryFound { outputs: None, ..found.clone() },
        EntryFound { cookie: 1, ..found.clone() },
    ] {
        let shown = InstalledEntries::new(vec![other]);
        assert!(!shown.has(&add) && !shown.has(&remove), "something of that match is there, but not this");
    }
    let elsewhere = EntryFound { priority: found.priority + 1, ..found };
    for shown in [InstalledEntries::new(vec![odd, elsewhere]), InstalledEntries::default()] {
        assert!(!shown.has(&add) && shown.has(&remove));
    }
}
