//! Packets walked through the rules: they arrive, once, whatever links are down.

use super::super::model::Event;
use super::super::testing::{at, graph, inventory, mac, ms};
use super::*;
use proptest::prelude::*;

/// Ports of hosts where a packet comes out, and how often any switch saw it.
fn walk(rules: &Rules, graph: &Graph, from: PortAt, matches: Match) -> (Vec<PortAt>, usize) {
    let live = graph.live();
    let (mut open, mut out, mut most) = (vec![from], Vec::new(), BTreeMap::<Dpid, usize>::new());
    while let Some(entered) = open.pop() {
        let seen = most.entry(entered.switch).or_default();
        *seen += 1;
        if *seen > 3 {
            break;
        }
        for output in rules.get(&(entered.switch, matches)).into_iter().flatten() {
            let Output::Port(port) = *output else { continue };
            let leaving = PortAt { switch: entered.switch, port };
            if leaving == entered {
                continue; // a switch sends nothing back where it came from
            }
            match live[&entered.switch].iter().find(|(a, _)| *a == leaving) {
                Some((_, to)) => open.push(*to),
                None => out.push(leaving),
            }
        }
    }
    (out, most.into_values().max().unwrap_or(0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packets_arrive_once_wherever_a_way_is_left(cut in prop::collection::vec(any::<bool>(), 4)) {
        let mut inventory = inventory();
        let cables: Vec<_> = inventory.cables().collect();
        for (cable, _) in cables.iter().zip(&cut).filter(|(_, cut)| **cut) {
            inventory.event(&Event::LinkDelete(cable.a, cable.b), ms(100));
        }
        inventory.tick(ms(200));
        let graph = graph(&inventory);
        let (rules, far) = rules(&graph, &inventory, ms(300));
        let connected = (!cut[0] && !cut[2]) || (!cut[1] && !cut[3]);
        // Both hosts' ports are open, and no others yet.
        let (found, most) = walk(&rules, &graph, at(1, 3), Match { src: None, dst: Mac::BROADCAST });
        prop_assert!(most <= 1, "a broadcast passes a switch once");
        if connected {
            prop_assert_eq!(found, [at(2, 3)]);
        }
        let unicast = Match { src: None, dst: mac(2) };
        let (found, most) = walk(&rules, &graph, at(1, 3), unicast);
        prop_assert!(most <= 1);
        prop_assert_eq!(found, if connected { vec![at(2, 3)] } else { Vec::new() });
        prop_assert_eq!(distance(&far, Dpid(2), &unicast), 0);
    }
}

#[test]
fn equally_short_ways_are_shared_by_destinations() {
    let inventory = inventory();
    let live = graph(&inventory).live();
    let ports: BTreeSet<u32> = (0..8).map(|last| towards(&live, at(2, 3), mac(last))[&Dpid(1)].0).collect();
    assert_eq!(ports, BTreeSet::from([1, 2]));
}
