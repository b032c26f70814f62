//! Links without which a part of the network can't be reached: whatever goes between their two sides goes over them.

use super::graph::Network;
use crate::units::LinkIdx;
use petgraph::algo::bridges::bridges as bridges_of;
use petgraph::graph::{NodeIndex, UnGraph};
use std::collections::{BTreeMap, BTreeSet};

/// Usable links that are the only way between their ends. Of parallel links none is. A host with several links counts as a way
/// between them, though it forwards nothing: fewer bridges are found then, and none that is not one.
#[must_use]
pub fn bridges(network: &Network) -> BTreeSet<LinkIdx> {
    let mut between: BTreeMap<_, (LinkIdx, usize)> = BTreeMap::new();
    for (index, link) in network.links().filter(|(index, _)| network.is_usable(*index)) {
        between.entry((link.a.min(link.b), link.a.max(link.b))).or_insert((index, 0)).1 += 1;
    }
    // The algorithm is for graphs without parallel edges.
    let mut simple: UnGraph<(), (LinkIdx, usize), usize> = UnGraph::default();
    for _ in 0..network.vertex_rows() {
        simple.add_node(());
    }
    for ((a, b), of) in between {
        simple.add_edge(NodeIndex::new(a.at()), NodeIndex::new(b.at()), of);
    }
    let found = bridges_of(&simple).map(|edge| *edge.weight());
    found.filter(|(_, parallel)| *parallel == 1).map(|(link, _)| link).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Tier;
    use super::super::build::{self, FatTreeSpec};
    use super::super::testing::{CAPACITY, random_network};
    use super::*;
    use proptest::prelude::*;

    fn names(network: &Network) -> Vec<&str> {
        bridges(network).into_iter().map(|link| network.link_at(link).name.as_str()).collect()
    }

    #[test]
    fn a_single_uplink_is_a_bridge_and_of_two_none_is_until_one_fails() {
        let mut network = Network::new();
        let [s0, s1] = ["s0", "s1"].map(|name| network.add_switch(name, Tier::Edge).unwrap());
        let core = network.add_switch("core", Tier::Core).unwrap();
        let host = network.add_host("h").unwrap();
        let mut link = |name: &str, a, b| network.add_link(name.into(), a, b, CAPACITY).unwrap();
        link("access", host, s0);
        link("single", s0, core);
        let first = link("first", s1, core);
        link("second", s1, core);
        assert_eq!(names(&network), ["access", "single"]);
        network.set_link(first, Some(false), None);
        assert_eq!(names(&network), ["access", "single", "second"]);
    }

    #[test]
    fn of_a_fat_tree_only_hosts_links_are_bridges() {
        let built = build::fat_tree(&FatTreeSpec::default()).unwrap();
        let hosts = built.racks.iter().map(|(_, hosts)| hosts.len()).sum::<usize>();
        assert_eq!(bridges(&built.network).len(), hosts);
    }

    /// Parts that usable links join, without one of them.
    fn parts(network: &Network, without: Option<LinkIdx>) -> usize {
        let mut graph: UnGraph<(), (), usize> = UnGraph::default();
        (0..network.vertex_rows()).for_each(|_| _ = graph.add_node(()));
        for (_, link) in network.links().filter(|(index, _)| network.is_usable(*index) && Some(*index) != without) {
            graph.add_edge(NodeIndex::new(link.a.at()), NodeIndex::new(link.b.at()), ());
        }
        petgraph::algo::connected_components(&graph)
    }

    proptest! {
        #[test]
        fn without_a_bridge_and_no_other_link_the_network_falls_apart(network in random_network()) {
            let (whole, found) = (parts(&network, None), bridges(&network));
            for (index, link) in network.links().filter(|(index, _)| network.is_usable(*index)) {
                prop_assert_eq!(parts(&network, Some(index)) > whole, found.contains(&index), "{}", link.name);
            }
        }
    }
}
