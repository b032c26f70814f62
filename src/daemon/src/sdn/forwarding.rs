//! Rules for what has no route of its own: broadcasts along one tree, unicasts along shortest paths.
//!
//! A bare OpenFlow network forwards nothing by itself. Where the controller runs no forwarding of its own, these rules
//! carry ARP, answers, and pairs that are too small for a route. They stand below routes.

use super::graph::Graph;
use super::inventory::Inventory;
use super::model::{Dpid, Mac, Match, Output, PortAt};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Outputs by switch and match.
pub type Rules = BTreeMap<(Dpid, Match), BTreeSet<Output>>;

/// Far from every destination: rules of switches that can't reach it come last.
const FAR: u32 = u32::MAX;

/// The rules of a network as it is now, and how far each switch is from each destination (its order of change: nearest
/// first, so that a packet never meets a rule that leads it back).
#[must_use]
pub fn rules(graph: &Graph, inventory: &Inventory, now: Duration) -> (Rules, BTreeMap<(Dpid, Mac), u32>) {
    let live = graph.live();
    let open = inventory.open_ports(now);
    let mut rules = Rules::new();
    let mut tree: BTreeMap<Dpid, BTreeSet<Output>> = BTreeMap::new();
    for &switch in live.keys() {
        let ports = open.iter().filter(|at| at.switch == switch).map(|at| Output::Port(at.port));
        // The controller learns from broadcasts where hosts are.
        tree.insert(switch, ports.chain([Output::Controller]).collect());
    }
    for (from, to) in spanning_tree(&live) {
        for end in [from, to] {
            tree.entry(end.switch).or_default().insert(Output::Port(end.port));
        }
    }
    rules.extend(
        tree.into_iter().map(|(switch, outputs)| ((switch, Match { src: None, dst: Mac::BROADCAST }), outputs)),
    );
    let mut far = BTreeMap::new();
    for (host, links) in &graph.hosts {
        let Some(mac) = graph.address(host) else { continue };
        let at = links.iter().find(|(_, found)| **found == mac).and_then(|(link, _)| graph.links.get(link));
        let Some(at) = at.map(|link| link.a) else { continue };
        let matches = Match { src: None, dst: mac };
        for (switch, (port, distance)) in towards(&live, at, mac) {
            rules.insert((switch, matches), BTreeSet::from([Output::Port(port)]));
            far.insert((switch, mac), distance);
        }
    }
    (rules, far)
}

/// How far a switch is from a rule's destination.
#[must_use]
pub fn distance(far: &BTreeMap<(Dpid, Mac), u32>, switch: Dpid, matches: &Match) -> u32 {
    far.get(&(switch, matches.dst)).copied().unwrap_or(FAR)
}

/// By switch that reaches `at`: the port to take, and how many switches away it is. Of equally short ways each
/// destination takes its own, so that destinations spread.
fn towards(live: &BTreeMap<Dpid, BTreeSet<(PortAt, PortAt)>>, at: PortAt, mac: Mac) -> BTreeMap<Dpid, (u32, u32)> {
    let mut found = BTreeMap::new();
    if !live.contains_key(&at.switch) {
        return found;
    }
    let mut distance = BTreeMap::from([(at.switch, 0_u32)]);
    let mut open = VecDeque::from([at.switch]);
    while let Some(switch) = open.pop_front() {
        let next = distance[&switch] + 1;
        for (_, to) in live.get(&switch).into_iter().flatten() {
            distance.entry(to.switch).or_insert_with(|| {
                open.push_back(to.switch);
                next
            });
        }
    }
    let turn = mac.0.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    for (&switch, &hops) in &distance {
        if hops == 0 {
            found.insert(switch, (at.port, 0));
            continue;
        }
        let links = live.get(&switch).into_iter().flatten();
        let nearer: Vec<u32> = links
            .filter(|(_, to)| distance.get(&to.switch).is_some_and(|other| other + 1 == hops))
            .map(|(from, _)| from.port)
            .collect();
        if let Some(&port) = nearer.get(turn.checked_rem(nearer.len()).unwrap_or(0)) {
            found.insert(switch, (port, hops));
        }
    }
    found
}

/// Links of a tree over every island, breadth first from its least switch.
fn spanning_tree(live: &BTreeMap<Dpid, BTreeSet<(PortAt, PortAt)>>) -> Vec<(PortAt, PortAt)> {
    let (mut seen, mut tree) = (BTreeSet::new(), Vec::new());
    for &root in live.keys() {
        if !seen.insert(root) {
            continue;
        }
        let mut open = VecDeque::from([root]);
        while let Some(switch) = open.pop_front() {
            for &(from, to) in live.get(&switch).into_iter().flatten() {
                if seen.insert(to.switch) {
                    tree.push((from, to));
                    open.push_back(to.switch);
                }
            }
        }
    }
    tree
}

#[cfg(test)]
mod tests;
