//! What is wrong with a network, and what it amounts to.

use super::graph::{Network, Vertex};
use super::problem::{LEAST_CAPACITY, MOST_CAPACITY, NetworkProblem};
use super::tier::Tier;
use crate::units::{BitsPerSec, VertexIdx};
use petgraph::unionfind::UnionFind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Members of an island that its problem names.
const NAMED_MEMBERS: usize = 3;

/// All that is wrong with a network as it stands: its links first, then its structure, then its optical switch.
#[must_use]
pub fn check(network: &Network) -> Vec<NetworkProblem> {
    let mut problems = Vec::new();
    check_links(network, &mut problems);
    check_structure(network, &BTreeSet::new(), &mut problems);
    check_optical(network, &mut problems);
    problems
}

/// What is wrong with single links.
pub(super) fn check_links(network: &Network, problems: &mut Vec<NetworkProblem>) {
    for (_, link) in network.links() {
        let (name, capacity) = (link.name.clone(), link.capacity);
        if capacity == BitsPerSec::ZERO {
            problems.push(NetworkProblem::ZeroCapacity { link: name });
        } else if capacity > MOST_CAPACITY {
            problems.push(NetworkProblem::AbsurdCapacity { link: name, capacity });
        } else if capacity < LEAST_CAPACITY {
            problems.push(NetworkProblem::TinyCapacity { link: name, capacity });
        }
    }
}

/// What is wrong with the `optical` section, if there is one.
pub(super) fn check_optical(network: &Network, problems: &mut Vec<NetworkProblem>) {
    let found = network.optical().map(|section| section.problems(network)).unwrap_or_default();
    problems.extend(found.into_iter().map(NetworkProblem::Optical));
}

/// What is wrong with the whole; `excused` vertices are not called unlinked.
pub(super) fn check_structure(network: &Network, excused: &BTreeSet<VertexIdx>, problems: &mut Vec<NetworkProblem>) {
    for (_, link) in network.links() {
        let [a, b] = [link.a, link.b].map(|end| network.vertex_at(end));
        let (host, switch) = if a.is_host() { (a, b) } else { (b, a) };
        match switch.tier() {
            None => problems.push(NetworkProblem::HostToHost {
                link: link.name.clone(),
                a: a.name.clone(),
                b: b.name.clone(),
            }),
            Some(tier) if host.is_host() && tier != Tier::Edge => problems.push(NetworkProblem::HostOffEdge {
                host: host.name.clone(),
                switch: switch.name.clone(),
                tier,
            }),
            Some(_) => {}
        }
    }
    for (index, vertex) in network.vertices() {
        if network.links_of(index).next().is_none() && !excused.contains(&index) {
            let name = vertex.name.clone();
            let host = vertex.is_host();
            problems.push(if host {
                NetworkProblem::OrphanHost { host: name }
            } else {
                NetworkProblem::SwitchWithoutLinks { switch: name }
            });
        }
    }
    check_connection(network, problems);
}

/// Islands of the network with everything up; only if there is none, what is cut off now.
fn check_connection(network: &Network, problems: &mut Vec<NetworkProblem>) {
    let before = problems.len();
    for (members, size) in islands(network, false) {
        problems.push(NetworkProblem::Island { members, size });
    }
    if problems.len() == before {
        for (members, size) in islands(network, true) {
            problems.push(NetworkProblem::CutOff { members, size });
        }
    }
}

/// Connected components other than the one with most hosts (of equals the larger, then the first): a few names
/// and the size of each. Vertices without any link are not counted, they are reported on their own.
fn islands(network: &Network, only_usable: bool) -> Vec<(Vec<Arc<str>>, usize)> {
    let mut linked = vec![false; network.vertex_rows()];
    let mut hangs = vec![false; network.vertex_rows()];
    let mut joined = UnionFind::<u32>::new(network.vertex_rows());
    for (index, link) in network.links() {
        linked[link.a.at()] = true;
        linked[link.b.at()] = true;
        // A link without capacity is a problem of its own already.
        if only_usable && link.capacity > BitsPerSec::ZERO && !network.is_usable(index) {
            continue;
        }
        let host = [link.a, link.b].into_iter().find(|&end| network.vertex_at(end).is_host());
        // A host belongs to where its first link leads: it forwards nothing, so it joins no two parts.
        if host.is_none_or(|host| !std::mem::replace(&mut hangs[host.at()], true)) {
            joined.union(link.a.0, link.b.0);
        }
    }
    let mut parts: BTreeMap<u32, (usize, Vec<VertexIdx>)> = BTreeMap::new();
    // A circuit switch is apart from the packet network while all of its ports are dark, as they are without circuits.
    let dark = |index, vertex: &Vertex| {
        only_usable && vertex.tier() == Some(Tier::Optical) && network.usable_hops(index).next().is_none()
    };
    let linked = network.vertices().filter(|(index, vertex)| linked[index.at()] && !dark(*index, vertex));
    for (index, vertex) in linked {
        let (hosts, members) = parts.entry(joined.find(index.0)).or_default();
        *hosts += usize::from(vertex.is_host());
        members.push(index);
    }
    let mut parts: Vec<_> = parts.into_values().collect();
    parts.sort_by_key(|(hosts, members)| (std::cmp::Reverse((*hosts, members.len())), members[0]));
    let name = |&index: &VertexIdx| network.vertex_at(index).name.clone();
    let few = |members: &[VertexIdx]| members.iter().take(NAMED_MEMBERS).map(name).collect();
    parts.iter().skip(1).map(|(_, members)| (few(members), members.len())).collect()
}

/// A network in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// Hosts.
    pub hosts: usize,
    /// Switches of all tiers.
    pub switches: usize,
    /// Links, up or down.
    pub links: usize,
    /// One entry per tier that has switches, from the hosts upwards.
    pub tiers: Vec<TierSummary>,
}

/// One tier of switches in numbers; capacities are of usable links, one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierSummary {
    /// The tier.
    pub tier: Tier,
    /// Its switches, up or down.
    pub switches: usize,
    /// Capacity towards the hosts.
    pub down: BitsPerSec,
    /// Capacity among switches of the same height.
    pub across: BitsPerSec,
    /// Capacity away from the hosts.
    pub up: BitsPerSec,
    /// `down` ÷ `up`: 1 is full bisection, 5 means that hosts can send five times what goes up. `None` at the top.
    pub oversubscription: Option<f64>,
}

/// Counts, capacities and oversubscription by tier.
#[must_use]
pub fn summary(network: &Network) -> NetworkSummary {
    let mut tiers: BTreeMap<Tier, TierSummary> = BTreeMap::new();
    for tier in network.vertices().filter_map(|(_, vertex)| vertex.tier()) {
        let zero = BitsPerSec::ZERO;
        let new = TierSummary { tier, switches: 0, down: zero, across: zero, up: zero, oversubscription: None };
        tiers.entry(tier).or_insert(new).switches += 1;
    }
    for (_, link) in network.links().filter(|(index, _)| network.is_usable(*index)) {
        let [a, b] = [link.a, link.b].map(|end| network.vertex_at(end));
        for (end, far) in [(a, b), (b, a)] {
            let Some(of_tier) = end.tier().and_then(|tier| tiers.get_mut(&tier)) else { continue };
            let sum = match far.height().cmp(&end.height()) {
                std::cmp::Ordering::Less => &mut of_tier.down,
                std::cmp::Ordering::Equal => &mut of_tier.across,
                std::cmp::Ordering::Greater => &mut of_tier.up,
            };
            *sum = sum.saturating_add(link.capacity);
        }
    }
    let mut tiers: Vec<_> = tiers.into_values().collect();
    for tier in tiers.iter_mut().filter(|tier| tier.up > BitsPerSec::ZERO) {
        tier.oversubscription = Some(tier.down.as_f64() / tier.up.as_f64());
    }
    NetworkSummary { hosts: network.hosts(), switches: network.switches(), links: network.links().count(), tiers }
}

#[cfg(test)]
mod tests {
    use super::super::build::{self, TreeSpec};
    use super::super::document::{HostEntry, LinkEntry, NetworkDocument, SwitchEntry};
    use super::super::problem::Severity;
    use super::*;

    /// Paper 001's testbed as a document, without problems.
    fn sound() -> NetworkDocument {
        build::tree(&TreeSpec::default()).unwrap().network.to_document()
    }

    fn link(id: &str, a: &str, b: &str, bits_per_s: i64) -> LinkEntry {
        LinkEntry { id: id.into(), a: a.into(), b: b.into(), bits_per_s, up: true, one_way: false }
    }

    /// What is found in the sound document after `spoil`, by reason; and the first message.
    fn found(spoil: impl Fn(&mut NetworkDocument)) -> (Vec<&'static str>, String) {
        let mut document = sound();
        spoil(&mut document);
        let problems = match Network::from_document(&document) {
            Ok(network) => check(&network),
            Err(problems) => problems,
        };
        let message = problems.first().map(ToString::to_string).unwrap_or_default();
        (problems.iter().map(NetworkProblem::reason).collect(), message)
    }

    #[test]
    fn a_sound_network_has_no_problem() {
        assert_eq!(found(|_| ()).0, [""; 0]);
    }

    #[test]
    fn an_island_is_found_and_its_members_named() {
        let (reasons, message) = found(|document| {
            document.links.retain(|link| !(link.a == "edge-03" && link.b.starts_with("core")));
        });
        assert_eq!(reasons, ["island"]);
        assert_eq!(message, "3 vertices are an island: edge-03, host-0005, host-0006");
        let (reasons, message) = found(|document| document.links.retain(|link| !link.b.starts_with("core")));
        assert_eq!(reasons[..3], ["switch-without-links", "switch-without-links", "island"], "{message}");
    }

    #[test]
    fn a_host_with_two_switches_joins_no_islands() {
        let (reasons, _) = found(|document| {
            document.links.retain(|link| !(link.a == "edge-03" && link.b.starts_with("core")));
            document.links.push(link("second", "host-0005", "edge-01", 1_000_000_000));
        });
        assert_eq!(reasons, ["island"]);
    }

    #[test]
    fn a_part_cut_off_by_failures_is_only_warned_of() {
        let mut document = sound();
        for link in document.links.iter_mut().filter(|link| link.a == "edge-03") {
            link.up = false;
        }
        let network = Network::from_document(&document).unwrap();
        let problems = check(&network);
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].reason(), problems[0].severity()), ("cut-off", Severity::Warning));
    }

    #[test]
    fn a_self_loop_is_found() {
        let (reasons, message) = found(|document| document.links.push(link("x", "core-1", "core-1", 1_000_000)));
        assert_eq!((reasons, &*message), (vec!["self-loop"], "link \"x\" joins \"core-1\" to itself"));
    }

    #[test]
    fn a_link_named_twice_is_found() {
        let (reasons, message) = found(|document| {
            let twice = link(document.links[0].id.as_str(), "edge-01", "core-1", 1_000_000);
            document.links.push(twice);
        });
        assert_eq!((reasons, &*message), (vec!["duplicate-link"], "link \"host-0001--edge-01\" is given twice"));
    }

    #[test]
    fn negative_zero_absurd_and_tiny_capacities_are_found() {
        let with = |bits| found(|document| document.links[0].bits_per_s = bits);
        let (reasons, message) = with(-5);
        assert_eq!(reasons, ["negative-capacity"], "its host is no orphan besides");
        assert_eq!(message, "link \"host-0001--edge-01\" has negative capacity -5 bit/s");
        assert_eq!(with(0).0, ["zero-capacity"]);
        assert_eq!(with(i64::MAX).0, ["absurd-capacity"]);
        assert_eq!(with(1_000).0, ["tiny-capacity"]);
    }

    #[test]
    fn an_orphan_host_is_found() {
        let (reasons, message) = found(|document| document.hosts.push(HostEntry { name: "lonely".into() }));
        assert_eq!((reasons, &*message), (vec!["orphan-host"], "host \"lonely\" has no link"));
    }

    #[test]
    fn an_unknown_end_is_found_and_the_known_one_is_no_orphan() {
        let (reasons, message) = found(|document| document.links[0].b = "edge-99".into());
        assert_eq!(reasons, ["unknown-end"]);
        assert!(message.contains("host-0001--edge-01") && message.contains("\"edge-99\""), "{message}");
    }

    #[test]
    fn hosts_in_wrong_places_and_idle_switches_are_found() {
        let on_core = found(|document| document.links[0].b = "core-1".into());
        assert_eq!(on_core.0, ["host-off-edge"]);
        assert_eq!(on_core.1, "host \"host-0001\" hangs on core switch \"core-1\", not on an edge switch");
        assert_eq!(found(|document| document.links[0].b = "host-0002".into()).0, ["host-to-host"]);
        let spare = SwitchEntry { name: "spare".into(), tier: Tier::Core, up: true };
        assert_eq!(found(|document| document.switches.push(spare.clone())).0, ["switch-without-links"]);
        assert_eq!(found(|document| document.hosts.push(document.hosts[0].clone())).0, ["duplicate-vertex"]);
        assert_eq!(found(|document| document.format = "hintd.network/2".into()).0, ["unknown-format"]);
        assert_eq!(found(|document| document.links[0].id = "".into()).0, ["empty-name"]);
    }

    #[test]
    fn all_problems_come_at_once() {
        let (reasons, _) = found(|document| {
            document.links[0].bits_per_s = -1;
            document.links[1].b = "nowhere".into();
            document.hosts.push(HostEntry { name: "lonely".into() });
            document.links.push(link("x", "core-1", "core-1", 1));
        });
        assert_eq!(reasons, ["negative-capacity", "unknown-end", "self-loop", "orphan-host"]);
    }

    #[test]
    fn the_summary_counts_only_capacity_in_use() {
        let mut network = build::tree(&TreeSpec::default()).unwrap().network;
        network.set_link(network.link("edge-01--core-1").unwrap(), Some(false), None);
        network.remove_link(network.link("edge-01--core-2").unwrap());
        let numbers = summary(&network);
        assert_eq!(numbers.links, 15);
        assert_eq!(numbers.tiers[0].up, BitsPerSec(1_200_000_000));
        assert_eq!(numbers.tiers[1].down, BitsPerSec(1_200_000_000));
    }
}
