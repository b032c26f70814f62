//! Circuits chosen by hand and by brute force, and what sections are refused.

use super::*;
use crate::network::build::{HybridSpec, OPTICAL_SWITCH, TreeSpec, hybrid};
use crate::network::{Network, NetworkDocument, check};
use crate::units::{BitsPerSec, Bytes, Micros, RackIdx, VertexIdx};
use proptest::prelude::*;

const GIGABIT: u64 = 1_000_000_000;

/// So many racks of two hosts, an optical port each.
fn network(racks: usize) -> Network {
    let tree = TreeSpec { racks, hosts_per_rack: 2, cores: 1, ..HybridSpec::default().tree };
    let mut network = hybrid(&HybridSpec { tree, ..HybridSpec::default() }).unwrap().network;
    network.set_optical(Some(OpticalSection::of(OPTICAL_SWITCH)));
    network
}

fn rack_of(network: &Network) -> impl Fn(VertexIdx) -> Option<RackIdx> + '_ {
    |vertex| network.vertex_at(vertex).name.strip_prefix("edge-")?.parse().ok().map(|rack: u32| RackIdx(rack - 1))
}

fn switch(racks: usize) -> OpticalSwitch {
    let network = network(racks);
    OpticalSwitch::new(&network, racks, &rack_of(&network)).unwrap().unwrap()
}

fn demand(racks: usize, pairs: &[(u32, u32, u64)]) -> DemandMatrix {
    let mut demand = DemandMatrix::new(racks);
    pairs.iter().for_each(|&(from, to, bytes)| demand.add(RackIdx(from), RackIdx(to), Bytes(bytes)));
    demand
}

fn circuits(switch: &OpticalSwitch) -> Vec<(u32, u32)> {
    switch.circuits().map(|(from, to)| (from.0, to.0)).collect()
}

#[test]
fn the_numbers_of_thesis_004_come_out() {
    let switch = switch(3);
    let (from, to) = (RackIdx(0), RackIdx(2));
    assert_eq!(switch.bits_per_s(from, to), BitsPerSec(100 * GIGABIT));
    assert_eq!(switch.elephant(from, to), Some(Bytes(1_125_000_000)));
    assert_eq!(switch.weight(from, to, Bytes(5)), Bytes(5));
    // 100 Gbit/s for 990 ms.
    assert_eq!(switch.weight(from, to, Bytes(u64::MAX)), Bytes(12_375_000_000));
    assert_eq!((switch.bits_per_s(from, from), switch.elephant(from, from)), (BitsPerSec::ZERO, None));
    assert_eq!((switch.section().interval(), switch.section().pause()), (Micros(1_000_000), Micros(10_000)));
}

#[test]
fn circuits_go_where_most_can_be_carried_and_not_where_most_waits() {
    let mut switch = switch(3);
    // What lies beyond an interval counts for nothing: the two smaller pairs carry more together.
    let much = 100 * GIGABIT;
    assert!(switch.configure(&demand(3, &[(0, 1, much), (0, 2, 9 * GIGABIT), (2, 1, 9 * GIGABIT)])));
    assert_eq!(circuits(&switch), [(0, 2), (2, 1)]);
    assert!(switch.configure(&demand(3, &[(0, 1, much), (0, 2, 5 * GIGABIT), (2, 1, 5 * GIGABIT)])));
    assert_eq!(circuits(&switch), [(0, 1)], "the others' ports went to it");
}

#[test]
fn circuits_that_somebody_else_set_are_taken_as_they_are() {
    let mut switch = switch(3);
    let pairs = |pairs: &[(u32, u32)]| -> Vec<(RackIdx, RackIdx)> {
        pairs.iter().map(|&(from, to)| (RackIdx(from), RackIdx(to))).collect()
    };
    switch.assume(pairs(&[(0, 1), (1, 2), (0, 2), (2, 1), (2, 2)]));
    assert_eq!(circuits(&switch), [(0, 1), (1, 2)], "an input leads to one output, and an output has one input");
    switch.set_failed(RackIdx(2), true);
    switch.assume(pairs(&[(1, 2), (1, 0)]));
    assert_eq!(circuits(&switch), [(1, 0)]);
    assert!(!switch.configure(&demand(3, &[(1, 0, 5)])), "and what is set already is no change");
}

#[test]
fn without_demand_the_configuration_stays() {
    let mut switch = switch(3);
    assert!(!switch.configure(&demand(3, &[])));
    assert_eq!(circuits(&switch), []);
    assert!(switch.configure(&demand(3, &[(0, 1, 7)])));
    for nothing_new in [demand(3, &[]), demand(3, &[(1, 1, 9)]), demand(3, &[(0, 1, 100)])] {
        assert!(!switch.configure(&nothing_new));
        assert_eq!(circuits(&switch), [(0, 1)]);
    }
    assert!(switch.configure(&demand(3, &[(1, 2, 1)])));
    assert_eq!(circuits(&switch), [(0, 1), (1, 2)], "nobody else got its ports");
    assert!(!switch.configure(&demand(3, &[(0, 1, 5), (1, 2, 5), (0, 2, 5)])), "as good as any");
}

#[test]
fn a_failed_port_has_no_circuit_until_it_works_again() {
    let mut switch = switch(3);
    let wanted = demand(3, &[(0, 1, 9), (1, 0, 9), (2, 0, 5)]);
    switch.configure(&wanted);
    assert_eq!(circuits(&switch), [(0, 1), (1, 0)]);
    assert!(switch.set_failed(RackIdx(1), true));
    assert_eq!((circuits(&switch), switch.port(RackIdx(1))), (vec![], Some(PortState::Failed)));
    assert!(!switch.serves(RackIdx(0), RackIdx(1)) && switch.serves(RackIdx(2), RackIdx(0)));
    assert!(switch.configure(&wanted));
    assert_eq!(circuits(&switch), [(2, 0)]);
    switch.set_failed(RackIdx(1), false);
    assert!(switch.configure(&wanted));
    assert_eq!(circuits(&switch), [(0, 1), (1, 0)]);
    assert!(!switch.set_failed(RackIdx(3), true), "no such rack");
}

#[test]
fn a_stuck_port_keeps_its_circuit_and_gets_no_other() {
    let mut switch = switch(4);
    switch.configure(&demand(4, &[(0, 1, 9)]));
    assert!(switch.set_stuck(RackIdx(1), true) && switch.set_stuck(RackIdx(3), true));
    assert!(switch.configure(&demand(4, &[(0, 2, 99), (2, 1, 99), (2, 3, 99), (2, 0, 1)])));
    assert_eq!(circuits(&switch), [(0, 1), (2, 0)], "1 holds 0's input, 3 is stuck in the dark");
    switch.set_stuck(RackIdx(1), false);
    assert!(switch.configure(&demand(4, &[(0, 2, 99), (2, 1, 99)])));
    assert_eq!(circuits(&switch), [(0, 2), (2, 1)]);
    switch.set_stuck(RackIdx(2), true);
    switch.set_failed(RackIdx(2), true);
    assert_eq!((circuits(&switch), switch.port(RackIdx(2))), (vec![], Some(PortState::Failed)));
}

/// The best sum of weights over all ways to pair inputs with outputs.
fn brute(switch: &OpticalSwitch, demand: &DemandMatrix, from: u32, taken: &mut Vec<u32>) -> u64 {
    if from as usize == switch.racks() {
        return 0;
    }
    let mut best = brute(switch, demand, from + 1, taken);
    for to in (0..switch.racks() as u32).filter(|&to| to != from) {
        if taken.contains(&to) || !switch.serves(RackIdx(from), RackIdx(to)) {
            continue;
        }
        taken.push(to);
        let (from_rack, to_rack) = (RackIdx(from), RackIdx(to));
        let weight = switch.weight(from_rack, to_rack, demand.get(from_rack, to_rack)).0;
        best = best.max(weight + brute(switch, demand, from + 1, taken));
        taken.pop();
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_choice_carries_more_and_ports_have_one_circuit_at_most(
        rounds in prop::collection::vec(prop::collection::vec((0_u32..4, 0_u32..4, 0_u64..20_000_000_000), 0..8), 1..5),
        failed in prop::option::of(0_u32..4),
    ) {
        let mut switch = switch(4);
        if let Some(rack) = failed {
            switch.set_failed(RackIdx(rack), true);
        }
        for pairs in rounds {
            let demand = demand(4, &pairs);
            let before = circuits(&switch);
            let changed = switch.configure(&demand);
            let after = circuits(&switch);
            prop_assert_eq!(changed, before != after);
            let mut outputs: Vec<u32> = after.iter().map(|&(_, to)| to).collect();
            outputs.sort_unstable();
            prop_assert!(outputs.windows(2).all(|two| two[0] != two[1]));
            prop_assert!(after.iter().all(|&(from, to)| Some(from) != failed && Some(to) != failed));
            let carried = |from: u32, to: u32| {
                let (from, to) = (RackIdx(from), RackIdx(to));
                switch.weight(from, to, demand.get(from, to)).0
            };
            let ours: u64 = after.iter().map(|&(from, to)| carried(from, to)).sum();
            prop_assert_eq!(ours, brute(&switch, &demand, 0, &mut Vec::new()));
            prop_assert!(!switch.configure(&demand), "the same demand again changes nothing");
        }
    }
}

/// What is said of a network document after a change.
fn said(change: impl FnOnce(&mut NetworkDocument)) -> Vec<String> {
    let mut document = network(3).to_document();
    change(&mut document);
    let words = |problems: Vec<crate::network::NetworkProblem>| problems.iter().map(ToString::to_string).collect();
    match Network::from_document(&document) {
        Ok(network) => words(check(&network)),
        Err(problems) => words(problems),
    }
}

#[test]
fn an_optical_section_reads_back_and_has_no_problems() {
    assert_eq!(said(|_| ()), Vec::<String>::new());
    let document = network(3).to_document();
    let toml = toml::to_string(&document).unwrap();
    assert!(toml.contains("[optical]\nswitch = \"optical\"\ninterval_ms = 1000\npause_ms = 10\n"), "{toml}");
    assert_eq!(toml::from_str::<NetworkDocument>(&toml).unwrap(), document);
    let value = serde_json::to_value(&document).unwrap();
    assert_eq!(NetworkDocument::from_value(&value), (document, vec![]));
}

#[test]
fn what_no_optical_switch_can_be_is_refused_in_words() {
    let section =
        |change: fn(&mut OpticalSection)| said(|document| change(document.optical.as_mut().unwrap())).join("; ");
    assert_eq!(
        section(|it| it.interval_ms = 0),
        "optical.interval_ms is 0, not from 1 to 3600000; \
        optical.pause_ms is 10: with a choice every 0 ms no time is left to send"
    );
    assert_eq!(
        section(|it| it.pause_ms = 1_000),
        "optical.pause_ms is 1000: with a choice every 1000 ms no time is left to send"
    );
    assert_eq!(
        section(|it| it.elephant_bytes = Some(Bytes(0))),
        "optical.elephant_bytes is 0: leave it out for what a circuit carries in nine pauses"
    );
    assert_eq!(section(|it| it.switch = "ocs".to_owned()), "optical.switch: there is no switch \"ocs\"");
    assert_eq!(section(|it| it.switch = "host-0001".to_owned()), "optical.switch: there is no switch \"host-0001\"");
    assert_eq!(
        section(|it| it.switch = "core-1".to_owned()),
        "optical.switch: \"core-1\" is of tier core, not optical"
    );
    assert_eq!(section(|it| it.patience_ms = Some(1 << 40)), "optical.patience_ms is 1099511627776, more than 3600000");
}

#[test]
fn more_ports_than_racks_and_ports_elsewhere_are_refused_and_fewer_are_told() {
    let port = |document: &NetworkDocument| document.links.iter().rposition(|link| link.b == "optical").unwrap();
    let twice = said(|document| {
        let mut second = document.links[port(document)].clone();
        second.id = "spare".into();
        document.links.push(second);
    });
    assert_eq!(
        twice,
        ["\"edge-03\" has two ports at the optical switch, \"edge-03--optical\" and \"spare\": a rack has one"]
    );
    let elsewhere = said(|document| {
        let at = port(document);
        document.links[at].a = "core-1".to_owned();
    });
    assert_eq!(elsewhere[0], "optical port \"edge-03--optical\" leads to \"core-1\", which is not a rack's switch");
    let zero = said(|document| {
        let at = port(document);
        document.links[at].bits_per_s = 0;
    });
    assert!(zero.contains(&"optical port \"edge-03--optical\" has capacity 0".to_owned()), "{zero:?}");
    let fewer = said(|document| drop(document.links.remove(port(document))));
    assert_eq!(
        fewer,
        ["no port at optical switch \"optical\" for \"edge-03\": what they send and get goes by packets"]
    );
    let none = said(|document| document.links.retain(|link| link.b != "optical"));
    assert!(none.contains(&"optical switch \"optical\" has no ports: no rack's switch has a link to it".to_owned()));
}

#[test]
fn a_port_of_a_rack_that_the_cluster_lacks_is_refused() {
    let network = network(3);
    let known = |vertex| rack_of(&network)(vertex).filter(|rack| rack.0 < 2);
    let error = OpticalSwitch::new(&network, 2, &known).unwrap_err();
    assert_eq!(
        error.to_string(),
        "optical port \"edge-03--optical\" leads to \"edge-03\", behind which the cluster has no rack"
    );
    let one = |_| Some(RackIdx(0));
    assert!(matches!(OpticalSwitch::new(&network, 1, &one), Err(OpticalProblem::TwoPorts { .. })));
}

#[test]
fn a_rack_without_a_port_has_no_circuit_and_is_no_error() {
    let mut network = network(3);
    network.remove_link(network.link("edge-02--optical").unwrap());
    let mut switch = OpticalSwitch::new(&network, 3, &rack_of(&network)).unwrap().unwrap();
    assert_eq!((switch.without_port(), switch.port(RackIdx(1))), (1, None));
    assert!(switch.configure(&demand(3, &[(0, 1, 99), (1, 2, 99), (0, 2, 1)])));
    assert_eq!(circuits(&switch), [(0, 2)]);
    assert!(!switch.set_failed(RackIdx(1), true) && !switch.set_stuck(RackIdx(1), true));
}

/// Weight of a choice: what its circuits carry.
fn worth(switch: &OpticalSwitch, demand: &DemandMatrix) -> u64 {
    switch.circuits().map(|(from, to)| switch.weight(from, to, demand.get(from, to)).0).sum()
}

#[test]
fn a_choice_among_any_number_of_racks_takes_a_bounded_number_of_steps() {
    // Weights that make shortest paths long: almost all are equal.
    let bytes = |from: u32, to: u32| 1_000 + u64::from((from * 31 + to * 17) % 3);
    // Racks, of which so many have demand to so many others.
    for (racks, rows, columns) in [(3, 3, 3), (200, 200, 200), (700, 300, 700), (700, 700, 700), (2_000, 40, 1)] {
        let mut switch = switch(racks as usize);
        let mut demand = DemandMatrix::new(racks as usize);
        for (from, to) in (0..rows).flat_map(|from| (0..columns).map(move |nth| (from, (from + nth) % racks))) {
            demand.add(RackIdx(from), RackIdx(to), Bytes(bytes(from, to)));
        }
        demand.add(RackIdx(0), RackIdx(racks - 1), Bytes(1_000_000));
        assert!(switch.configure(&demand));
        println!("{racks} racks, {rows} with demand to {columns}: {} steps", switch.steps());
        assert!(switch.steps() > 0 && switch.steps() <= MATCHING_STEPS, "{racks}: {}", switch.steps());
        let mut outputs: Vec<u32> = circuits(&switch).into_iter().map(|(_, to)| to).collect();
        outputs.sort_unstable();
        assert!(outputs.windows(2).all(|two| two[0] < two[1]), "{racks}: an output once");
        // No matching weighs more than every row's heaviest pair.
        let most: u64 = (0..racks)
            .map(|from| (0..racks).map(|to| demand.get(RackIdx(from), RackIdx(to)).0).max().unwrap_or(0))
            .sum();
        assert!(2 * worth(&switch, &demand) >= most, "{racks}: {} of {most}", worth(&switch, &demand));
        assert!(!switch.configure(&demand), "{racks}: the same demand changes nothing");
    }
}

proptest! {
    #[test]
    fn what_is_chosen_by_weight_alone_is_half_as_heavy_or_more(
        cells in prop::collection::btree_map((0_usize..7, 0_usize..7), 1_u64..50, 0..30),
    ) {
        use crate::solve::bipartite::{greedy_matching, heaviest_matching};
        let weight = |row: usize, column: usize| cells.get(&(row, column)).copied().unwrap_or(0);
        let sum = |of: &[Option<usize>]| -> u64 {
            of.iter().enumerate().filter_map(|(row, column)| Some(weight(row, (*column)?))).sum()
        };
        let (ours, steps) = greedy_matching(7, &cells, &[]);
        prop_assert_eq!(steps, cells.len() as u64);
        prop_assert!(2 * sum(&ours) >= sum(&heaviest_matching(7, 7, weight, &[])));
        let mut columns: Vec<usize> = ours.iter().copied().flatten().collect();
        columns.sort_unstable();
        prop_assert!(columns.windows(2).all(|two| two[0] < two[1]));
    }
}
