//! Routes from host to host in directed links, and what stands between two that have none.

use super::graph::Network;
use super::maxmin::directions;
use super::path_table::{PairPaths, PathTable};
use super::tier::Tier;
use crate::units::{DirectedLinkIdx, LinkIdx, VertexIdx};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The directed links from one host to another, both access links among them, in order.
pub type HostPath = SmallVec<[DirectedLinkIdx; 8]>;

/// Candidates for the route from one host to another, shortest first: the table's paths between their switches, with
/// both access links. Under one switch that is one path of two links. None for a host and itself, for what is no
/// host, for a host without a usable link and for a pair that is cut.
///
/// A host of several links sends and receives over its [`Network::access_link`] alone.
///
/// Of a table of an earlier version of the network, paths may be broken: whoever asks looks.
pub fn host_paths<'a>(
    network: &'a Network,
    table: &PathTable,
    from_host: VertexIdx,
    to_host: VertexIdx,
) -> impl Iterator<Item = HostPath> + use<'a> {
    let access = [from_host, to_host].map(|host| network.access_link(host));
    let candidates = match access {
        [Some(first), Some(last)] if from_host != to_host => {
            let switches = [(first, from_host), (last, to_host)].map(|(link, host)| network.link_at(link).other(host));
            let paths = table.paths(switches[0], switches[1]);
            let (first, last) = (leaving(network, first, from_host), leaving(network, last, switches[1]));
            Some(Candidates { network, paths, read: 0, first, last })
        }
        _ => None,
    };
    candidates.into_iter().flatten()
}

struct Candidates<'a> {
    network: &'a Network,
    paths: PairPaths,
    /// How much of the paths was read.
    read: usize,
    first: DirectedLinkIdx,
    last: DirectedLinkIdx,
}

impl Iterator for Candidates<'_> {
    type Item = HostPath;

    fn next(&mut self) -> Option<HostPath> {
        let mut hops = SmallVec::<[_; 8]>::new();
        if !self.paths.next_hops(&mut self.read, &mut hops) {
            return None;
        }
        let inner = hops.into_iter().map(|(link, from)| leaving(self.network, link, from));
        Some(std::iter::once(self.first).chain(inner).chain([self.last]).collect())
    }
}

/// The direction of a link that leads away from one of its ends.
pub(super) fn leaving(network: &Network, link: LinkIdx, from: VertexIdx) -> DirectedLinkIdx {
    directions(link)[usize::from(network.link_at(link).a != from)]
}

/// Names of what is down, switches and then links, between all that `from` reaches and the way on to `to`: there is no
/// path unless one of them comes back. A switch that is down stands for its links, whatever their own state.
///
/// Empty if there is a path, and where nothing is down: then the two were never joined. Hosts reach what their
/// [`Network::access_link`] does, or nothing; packets pass no optical switch.
#[must_use]
pub fn cut(network: &Network, from: VertexIdx, to: VertexIdx) -> Vec<Arc<str>> {
    let [start, goal] = [from, to].map(|end| network.attachment(end).unwrap_or(end));
    let reached = reached_from(network, start);
    if !reached[start.at()] {
        return vec![network.vertex_at(start).name.clone()];
    }
    if reached[goal.at()] {
        return Vec::new();
    }
    let (mut switches, mut links) = (BTreeSet::new(), BTreeSet::new());
    let mut seen = vec![false; network.vertex_rows()];
    seen[goal.at()] = true;
    let mut waiting = vec![goal];
    while let Some(here) = waiting.pop() {
        let border: Vec<LinkIdx> =
            network.links_of(here).filter(|(_, link)| reached[link.other(here).at()]).map(|(index, _)| index).collect();
        if !network.switch_up(here) && !border.is_empty() {
            switches.insert(here); // what is beyond it is met another way or not at all
            continue;
        }
        links.extend(border);
        for far in network.links_of(here).map(|(_, link)| link.other(here)) {
            if !reached[far.at()] && forwards(network, far) && !std::mem::replace(&mut seen[far.at()], true) {
                waiting.push(far);
            }
        }
    }
    let switches = switches.into_iter().map(|switch| network.vertex_at(switch).name.clone());
    switches.chain(links.into_iter().map(|link| network.link_at(link).name.0.clone())).collect()
}

fn forwards(network: &Network, vertex: VertexIdx) -> bool {
    network.vertex_at(vertex).tier().is_some_and(|tier| tier != Tier::Optical)
}

/// By vertex: whether packets from `start` get there; `start` and packet switches only.
fn reached_from(network: &Network, start: VertexIdx) -> Vec<bool> {
    let mut reached = vec![false; network.vertex_rows()];
    reached[start.at()] = network.switch_up(start);
    let mut waiting = Vec::from_iter(Some(start).filter(|start| reached[start.at()]));
    while let Some(here) = waiting.pop() {
        for (_, far) in network.usable_hops(here).filter(|(_, far)| forwards(network, *far)) {
            if !std::mem::replace(&mut reached[far.at()], true) {
                waiting.push(far);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::build::{self, FatTreeSpec, HybridSpec, TreeSpec};
    use super::super::path_table::PathTableOptions;
    use super::super::testing::{CAPACITY, hop_counts, random_network};
    use super::*;
    use proptest::prelude::*;

    fn hosts(network: &Network) -> Vec<VertexIdx> {
        network.vertices().filter(|(_, vertex)| vertex.is_host()).map(|(index, _)| index).collect()
    }

    /// The vertices passed, if each link starts where the one before ended.
    fn walk(network: &Network, from: VertexIdx, links: &[DirectedLinkIdx]) -> Vec<VertexIdx> {
        let mut passed = vec![from];
        for hop in links {
            let link = network.link_at(LinkIdx(hop.0 / 2));
            let (tail, head) = if hop.0 % 2 == 0 { (link.a, link.b) } else { (link.b, link.a) };
            assert_eq!(Some(&tail), passed.last());
            passed.push(head);
        }
        passed
    }

    fn all(network: &Network, table: &PathTable, from: VertexIdx, to: VertexIdx) -> Vec<HostPath> {
        host_paths(network, table, from, to).collect()
    }

    fn table(network: &Network) -> PathTable {
        PathTable::build(network, &PathTableOptions::default())
    }

    fn names(network: &Network, from: &str, to: &str) -> Vec<String> {
        let [from, to] = [from, to].map(|name| network.vertex(name).unwrap());
        cut(network, from, to).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_of_a_fat_tree_have_their_equal_paths_first() {
        let network = build::fat_tree(&FatTreeSpec::default()).unwrap().network;
        let table = table(&network);
        let lengths = |from: &str, to: &str| -> Vec<usize> {
            let [from, to] = [from, to].map(|name| network.vertex(name).unwrap());
            all(&network, &table, from, to).iter().map(|path| path.len()).collect()
        };
        assert_eq!(lengths("host-0001", "host-0002"), [2], "under one switch");
        assert_eq!(lengths("host-0001", "host-0016")[..5], [6, 6, 6, 6, 8]);
        assert_eq!(lengths("host-0001", "host-0016").len(), 10);
        assert_eq!(lengths("host-0001", "host-0001"), [0; 0]);
        assert_eq!(lengths("host-0001", "edge-4-2"), [0; 0], "a switch is no host");
    }

    #[test]
    fn a_cut_names_the_switch_or_link_that_is_down_and_no_other() {
        let mut network = build::tree(&TreeSpec::default()).unwrap().network;
        let down = |network: &mut Network, link: &str| network.set_link(network.link(link).unwrap(), Some(false), None);
        assert_eq!(names(&network, "host-0001", "host-0008"), [""; 0]);
        down(&mut network, "edge-02--core-1"); // of no concern to the two
        network.set_switch(network.vertex("edge-03").unwrap(), false);
        down(&mut network, "edge-04--core-1");
        assert_eq!(names(&network, "host-0001", "host-0008"), [""; 0], "the other core serves");
        network.set_switch(network.vertex("core-2").unwrap(), false);
        assert_eq!(names(&network, "host-0001", "host-0008"), ["core-2", "edge-04--core-1"]);
        assert_eq!(names(&network, "host-0008", "host-0001"), ["core-2", "edge-04--core-1"]);
        down(&mut network, "host-0008--edge-04");
        assert_eq!(names(&network, "host-0008", "host-0001"), ["host-0008--edge-04"], "it reaches no more than itself");
        network.set_switch(network.vertex("edge-01").unwrap(), false);
        assert_eq!(names(&network, "host-0001", "host-0005"), ["edge-01"]);
        assert_eq!(names(&network, "edge-01", "core-1"), ["edge-01"], "a switch that is down reaches nothing");
    }

    #[test]
    fn nothing_is_named_between_islands_and_circuits_join_nobody() {
        let mut network = Network::new();
        for n in 1..=2 {
            let switch = network.add_switch(&format!("s{n}"), Tier::Edge).unwrap();
            let host = network.add_host(&format!("h{n}")).unwrap();
            network.add_link(format!("l{n}").into(), host, switch, CAPACITY).unwrap();
        }
        assert_eq!(names(&network, "h1", "h2"), [""; 0]);
        assert_eq!(all(&network, &table(&network), VertexIdx(1), VertexIdx(3)), [] as [HostPath; 0]);

        let tree = TreeSpec { racks: 2, cores: 1, ..TreeSpec::default() };
        let mut hybrid = build::hybrid(&HybridSpec { tree, ..HybridSpec::default() }).unwrap().network;
        let optical = hybrid.vertex("optical").unwrap();
        let ports: Vec<LinkIdx> = hybrid.links_of(optical).map(|(link, _)| link).collect();
        for port in ports {
            hybrid.set_link(port, Some(true), None);
        }
        hybrid.set_switch(hybrid.vertex("core-1").unwrap(), false);
        assert_eq!(names(&hybrid, "host-0001", "host-0003"), ["core-1"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn candidates_are_the_switches_paths_with_both_access_links(network in random_network()) {
            let table = table(&network);
            for (from, to) in hosts(&network).iter().flat_map(|&a| hosts(&network).into_iter().map(move |b| (a, b))) {
                let found = all(&network, &table, from, to);
                let [first, last] = [from, to].map(|host| network.access_link(host));
                for path in &found {
                    let passed = walk(&network, from, path);
                    prop_assert_eq!(passed.last(), Some(&to));
                    prop_assert_eq!(passed.iter().collect::<BTreeSet<_>>().len(), passed.len());
                    prop_assert!(path.iter().all(|hop| network.is_usable(LinkIdx(hop.0 / 2))));
                    prop_assert_eq!(Some(LinkIdx(path[0].0 / 2)), first);
                    prop_assert_eq!(Some(LinkIdx(path[path.len() - 1].0 / 2)), last);
                }
                let inner: Vec<Vec<LinkIdx>> = found
                    .iter()
                    .map(|path| path[1..path.len() - 1].iter().map(|hop| LinkIdx(hop.0 / 2)).collect())
                    .collect();
                let expected: Vec<Vec<LinkIdx>> = match [from, to].map(|host| network.attachment(host)) {
                    [Some(a), Some(b)] if from != to => table.paths(a, b).iter().map(|path| path.links).collect(),
                    _ => Vec::new(),
                };
                prop_assert_eq!(inner, expected);
            }
        }

        /// Bringing up all that is down except what is named joins nobody; bringing one of the named up with it does.
        #[test]
        fn a_cut_is_what_keeps_two_switches_apart_and_the_least_of_it(network in random_network()) {
            let switches: Vec<VertexIdx> =
                network.vertices().filter(|(_, vertex)| !vertex.is_host()).map(|(index, _)| index).collect();
            let joined = |network: &Network, from, to: VertexIdx| hop_counts(network, from)[to.at()].is_some();
            let mended = |but: &[&Arc<str>]| {
                let mut network = network.clone();
                for &switch in switches.iter().filter(|&&switch| {
                    !but.contains(&&network.vertex_at(switch).name)
                }).collect::<Vec<_>>() {
                    network.set_switch(switch, true);
                }
                for link in (0..network.link_rows()).map(LinkIdx::new) {
                    if !but.contains(&&network.link_at(link).name.0) {
                        network.set_link(link, Some(true), None);
                    }
                }
                network
            };
            for (&from, &to) in switches.iter().zip(switches.iter().cycle().skip(1)) {
                let named = cut(&network, from, to);
                prop_assert_eq!(named.is_empty(), joined(&network, from, to));
                if named.is_empty() {
                    continue;
                }
                prop_assert!(!joined(&mended(&named.iter().collect::<Vec<_>>()), from, to), "{:?}", named);
                for one in &named {
                    let others: Vec<_> = named.iter().filter(|other| *other != one).collect();
                    prop_assert!(joined(&mended(&others), from, to), "{} of {:?}", one, named);
                }
            }
        }
    }
}
