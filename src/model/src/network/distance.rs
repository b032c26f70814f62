//! Core hops between racks: how far above the edge layer traffic climbs.

use super::fabric::{EdgeIdx, Edges, Fabric, MOST_EDGES};
use super::graph::Network;
use super::hops::{FAR, Hops};
use crate::units::{LinkIdx, RackPath, VertexIdx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a pair table was not built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DistancesError {
    /// The table would not be bounded.
    #[error("{edges} switches have hosts, tables hold at most {most}")]
    TooManyEdges {
        /// Switches with hosts.
        edges: usize,
        /// The limit, [`MOST_EDGES`].
        most: usize,
    },
}

/// The table's byte for a pair without a path.
const UNREACHABLE: u8 = u8::MAX;

/// Largest count that the table tells apart; longer paths count as this.
const MOST_HOPS: u8 = u8::MAX - 1;

/// Core hops between all pairs of attachment switches (or racks). A clone shares the table.
#[derive(Debug, Clone)]
pub struct Distances {
    table: Table,
    edges: Arc<Edges>,
    count: usize,
    diameter: u8,
    /// What the table was read from; `None` for racks.
    counted: Option<Counted>,
}

#[derive(Debug, Clone)]
enum Table {
    /// `count`² bytes by row.
    Dense(Arc<[u8]>),
    /// Components of each rack's path, as numbers: answers are computed when asked.
    Racks(Vec<Vec<u32>>),
}

/// The switch layer of a network and the hops in it.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    pub(super) fabric: Arc<Fabric>,
    pub(super) hops: Arc<Hops>,
}

impl Distances {
    /// Counts over usable links between the switches that have hosts.
    ///
    /// # Errors
    /// [`DistancesError::TooManyEdges`] above [`MOST_EDGES`] such switches; [`Self::from_racks`] is the coarse
    /// way out and never fails.
    pub fn build(network: &Network) -> Result<Self, DistancesError> {
        let edges = Edges::of(network);
        let count = edges.switches.len();
        if count > MOST_EDGES {
            return Err(DistancesError::TooManyEdges { edges: count, most: MOST_EDGES });
        }
        let fabric = Fabric::of(network);
        let hops = Hops::of(&fabric, &edges);
        let mut table = vec![UNREACHABLE; count * count];
        for edge in 0..count {
            read(&hops, &fabric, &edges, edge, &mut table);
        }
        let diameter = diameter(&table);
        let counted = Some(Counted { fabric: Arc::new(fabric), hops: Arc::new(hops) });
        Ok(Self { table: Table::Dense(table.into()), edges: Arc::new(edges), count, diameter, counted })
    }

    /// The distances of a later version of the network, which differs from the one counted in the state of `links`
    /// (others may be named too), among them all links of switches whose state changed. What is the same is shared;
    /// work is done where counts change. The result is what [`Self::build`] gives.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn follow(&self, network: &Network, links: &[LinkIdx]) -> Result<Self, DistancesError> {
        let (mut next, mut edges) = (self.clone(), Edges::clone(&self.edges));
        let (Some(counted), Table::Dense(table)) = (&mut next.counted, &mut next.table) else {
            return Self::build(network);
        };
        if links.iter().any(|link| link.at() >= counted.fabric.links()) || !edges.follow(network, links) {
            return Self::build(network);
        }
        let mut fabric = Fabric::clone(&counted.fabric);
        let change = fabric.follow(network, links);
        if !change.is_empty() {
            // The columns change with the rows: hops from a switch are those to it.
            let mut entries = table.to_vec();
            let changed = Arc::make_mut(&mut counted.hops).follow(&fabric, &edges, &change);
            for edge in changed {
                read(&counted.hops, &fabric, &edges, edge, &mut entries);
            }
            if entries != **table {
                next.diameter = diameter(&entries);
                *table = entries.into();
            }
        }
        counted.fabric = Arc::new(fabric);
        next.edges = Arc::new(edges);
        Ok(next)
    }

    /// The switch layer and the hops in it; `None` if the table is [`Self::from_racks`].
    pub(super) const fn counted(&self) -> Option<&Counted> {
        self.counted.as_ref()
    }

    pub(super) const fn attached(&self) -> &Arc<Edges> {
        &self.edges
    }

    /// The degraded form without a topology, where all that is known are the racks' paths: 0 within a path, else
    /// 2·k − 1 with k the levels from the deeper rack up to the first common ancestor. That is what a tree with
    /// one layer of switches per level has. [`EdgeIdx`] counts `racks` as given; hosts are unknown.
    ///
    /// Up to [`MOST_EDGES`] racks are tabulated; above, each answer is computed from the paths, exact but slower.
    #[must_use]
    pub fn from_racks(racks: &[RackPath]) -> Self {
        let paths = numbered_components(racks);
        let count = paths.len();
        let diameter = rack_diameter(&paths);
        let table = if count > MOST_EDGES {
            Table::Racks(paths)
        } else {
            Table::Dense(paths.iter().flat_map(|a| paths.iter().map(|b| rack_hops(a, b))).collect())
        };
        Self { table, edges: Arc::default(), count, diameter, counted: None }
    }

    /// Switches passed above the edge layer on a shortest path: 0 under one switch or between directly linked
    /// ones, 1 by one core switch, 3 across pods of a fat-tree. `None` if there is no path, which includes any
    /// path from or to a switch that is down. Counts above 254 are given as 254.
    ///
    /// # Panics
    /// If an index is not of this table.
    #[inline]
    #[must_use]
    pub fn core_hops(&self, from: EdgeIdx, to: EdgeIdx) -> Option<u8> {
        let hops = match &self.table {
            Table::Dense(table) => table[from.at() * self.count + to.at()],
            Table::Racks(paths) => rack_hops(&paths[from.at()], &paths[to.at()]),
        };
        (hops != UNREACHABLE).then_some(hops)
    }

    /// The largest of all counts, pairs without a path aside.
    #[must_use]
    pub const fn diameter(&self) -> u8 {
        self.diameter
    }

    /// Number of attachment switches (or racks).
    #[must_use]
    pub const fn edges(&self) -> usize {
        self.count
    }

    /// The switch that a host hangs on, or that a switch is. `None` for a host cut off, a switch without hosts,
    /// and whenever the table is [`Self::from_racks`].
    #[inline]
    #[must_use]
    pub fn edge_of(&self, vertex: VertexIdx) -> Option<EdgeIdx> {
        self.edges.edge_of(vertex)
    }

    /// The switch that an edge is; `None` if the table is [`Self::from_racks`].
    #[must_use]
    pub fn switch_of(&self, edge: EdgeIdx) -> Option<VertexIdx> {
        self.edges.switches.get(edge.at()).copied()
    }
}

/// Reads one edge's row of the table out of the hops.
fn read(hops: &Hops, fabric: &Fabric, edges: &Edges, edge: usize, table: &mut [u8]) {
    let counts = hops.to(edge);
    let row = &mut table[edge * edges.switches.len()..][..edges.switches.len()];
    for (entry, &to) in row.iter_mut().zip(&edges.switches) {
        *entry = match counts[fabric.row(to)] {
            FAR => UNREACHABLE,
            count => count.saturating_sub(1).min(u16::from(MOST_HOPS)) as u8,
        };
    }
}

fn diameter(table: &[u8]) -> u8 {
    table.iter().copied().filter(|&hops| hops != UNREACHABLE).max().unwrap_or(0)
}

/// Each path's components as numbers, equal where the texts are.
fn numbered_components(racks: &[RackPath]) -> Vec<Vec<u32>> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut numbered = Vec::with_capacity(racks.len());
    for rack in racks {
        let mut path = Vec::new();
        for part in rack.as_str().split('/').filter(|part| !part.is_empty()) {
            let next = numbers.len() as u32;
            path.push(*numbers.entry(part).or_insert(next));
        }
        numbered.push(path);
    }
    numbered
}

fn rack_hops(a: &[u32], b: &[u32]) -> u8 {
    climb(a.len().max(b.len()) - common_levels(a, b))
}

/// The deepest rack has, somewhere, another that leaves its path where all paths last agree.
fn rack_diameter(paths: &[Vec<u32>]) -> u8 {
    let Some(first) = paths.first() else { return 0 };
    let deepest = paths.iter().map(Vec::len).max().unwrap_or(0);
    let agreed = paths.iter().map(|path| common_levels(first, path)).min().unwrap_or(0);
    climb(deepest - agreed)
}

fn common_levels(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Switches passed above the edge layer when climbing `levels`.
fn climb(levels: usize) -> u8 {
    (2 * levels).saturating_sub(1).min(usize::from(MOST_HOPS)) as u8
}

#[cfg(test)]
mod tests {
    use super::super::build::{self, FatTreeSpec, TreeSpec};
    use super::super::testing::{hop_counts, random_network};
    use super::super::tier::Tier;
    use super::*;
    use crate::units::BitsPerSec;
    use proptest::prelude::*;

    fn racks(paths: &[&str]) -> Distances {
        Distances::from_racks(&paths.iter().map(|&path| path.into()).collect::<Vec<_>>())
    }

    fn between(distances: &Distances, from: u32, to: u32) -> Option<u8> {
        distances.core_hops(EdgeIdx(from), EdgeIdx(to))
    }

    #[test]
    fn a_fat_tree_has_one_hop_in_a_pod_and_three_across() {
        let network = build::fat_tree(&FatTreeSpec::default()).unwrap().network;
        let distances = Distances::build(&network).unwrap();
        assert_eq!((distances.edges(), distances.diameter()), (8, 3));
        let edge = |host: &str| distances.edge_of(network.vertex(host).unwrap()).unwrap();
        let hops = |a, b| distances.core_hops(edge(a), edge(b));
        assert_eq!(hops("host-0001", "host-0002"), Some(0));
        assert_eq!(hops("host-0001", "host-0003"), Some(1));
        assert_eq!(hops("host-0001", "host-0005"), Some(3));
        assert_eq!(distances.switch_of(edge("host-0005")), network.vertex("edge-2-1"));
        assert_eq!(distances.edge_of(network.vertex("core-1").unwrap()), None);
    }

    #[test]
    fn directly_joined_racks_pass_nothing_above_them() {
        let mut network = Network::new();
        let edges = ["e1", "e2", "e3"].map(|name| network.add_switch(name, Tier::Edge).unwrap());
        let bits = BitsPerSec(1_000_000_000);
        for (n, &edge) in edges.iter().enumerate() {
            let host = network.add_host(&format!("h{n}")).unwrap();
            network.add_link(format!("access-{n}").into(), host, edge, bits).unwrap();
        }
        network.add_link("e1-e2".into(), edges[0], edges[1], bits).unwrap();
        network.add_link("e2-e3".into(), edges[1], edges[2], bits).unwrap();
        let distances = Distances::build(&network).unwrap();
        assert_eq!([0, 1, 2].map(|to| between(&distances, 0, to)), [Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn what_is_down_is_out_of_reach() {
        let mut network = build::tree(&TreeSpec::default()).unwrap().network;
        for core in ["edge-01--core-1", "edge-01--core-2"] {
            network.set_link(network.link(core).unwrap(), Some(false), None);
        }
        network.set_switch(network.vertex("edge-02").unwrap(), false);
        let distances = Distances::build(&network).unwrap();
        assert_eq!(distances.edges(), 4, "the count does not hang on states");
        assert_eq!([0, 1, 2, 3].map(|to| between(&distances, 0, to)), [Some(0), None, None, None]);
        assert_eq!(between(&distances, 1, 1), None);
        assert_eq!(between(&distances, 2, 3), Some(1));
        assert_eq!(distances.edge_of(network.vertex("host-0003").unwrap()), None);
        assert_eq!(distances.edge_of(network.vertex("host-0001").unwrap()), Some(EdgeIdx(0)));
    }

    #[test]
    fn versions_share_the_table_while_no_distance_changes() {
        let mut network = build::fat_tree(&FatTreeSpec::default()).unwrap().network;
        let before = Distances::build(&network).unwrap();
        let table = |distances: &Distances| match &distances.table {
            Table::Dense(table) => table.clone(),
            Table::Racks(_) => panic!("it was counted in a network"),
        };
        let link = network.link("agg-1-1--core-1").unwrap();
        network.set_link(link, Some(false), None);
        let without = before.follow(&network, &[link]).unwrap();
        assert!(Arc::ptr_eq(&table(&before), &table(&without)), "the other core switches serve");
        let edge = network.vertex("edge-1-1").unwrap();
        network.set_switch(edge, false);
        let links: Vec<LinkIdx> = network.links_of(edge).map(|(link, _)| link).collect();
        let cut = without.follow(&network, &links).unwrap();
        assert!(!Arc::ptr_eq(&table(&without), &table(&cut)));
        assert_eq!((between(&without, 0, 1), between(&cut, 0, 1)), (Some(1), None));
        assert_eq!(cut.edge_of(network.vertex("host-0001").unwrap()), None);
    }

    #[test]
    fn without_a_topology_rack_paths_tell_the_levels() {
        let distances = racks(&["/dc1/r1", "/dc1/r2", "/dc2/r1", "/dc1/r1", "/r9"]);
        assert_eq!([0, 1, 2, 3, 4].map(|to| between(&distances, 0, to)), [0, 1, 3, 0, 3].map(Some));
        assert_eq!(between(&racks(&["/r1", "/r2"]), 0, 1), Some(1));
        assert_eq!((distances.diameter(), distances.edges()), (3, 5));
        assert_eq!((racks(&[]).diameter(), racks(&["/a", "/a"]).diameter()), (0, 0));
        assert_eq!(distances.edge_of(VertexIdx(0)), None);
    }

    #[test]
    fn generated_racks_and_graphs_agree() {
        for spec in [FatTreeSpec::default(), FatTreeSpec { k: 6, hosts: Some(20), ..FatTreeSpec::default() }] {
            let built = build::fat_tree(&spec).unwrap();
            let by_graph = Distances::build(&built.network).unwrap();
            let by_path = Distances::from_racks(&built.racks.into_iter().map(|(path, _)| path).collect::<Vec<_>>());
            assert_eq!((by_graph.edges(), by_graph.diameter()), (by_path.edges(), by_path.diameter()));
            for (from, to) in
                (0..by_graph.edges() as u32).flat_map(|a| (0..by_graph.edges() as u32).map(move |b| (a, b)))
            {
                assert_eq!(between(&by_graph, from, to), between(&by_path, from, to));
            }
        }
    }

    #[test]
    fn more_racks_than_the_table_holds_still_have_distances() {
        let mut paths: Vec<RackPath> = (0..=MOST_EDGES).map(|n| format!("/dc{}/r{n}", n % 2).into()).collect();
        let distances = Distances::from_racks(&paths);
        assert!(matches!(distances.table, Table::Racks(_)));
        assert_eq!((between(&distances, 0, 2), between(&distances, 0, 1)), (Some(1), Some(3)));
        assert_eq!(distances.diameter(), 3);
        paths.truncate(8);
        assert!(matches!(Distances::from_racks(&paths).table, Table::Dense(_)));
    }

    #[test]
    fn more_edge_switches_than_the_table_holds_are_refused() {
        let spec = TreeSpec { racks: MOST_EDGES + 1, hosts_per_rack: 1, cores: 1, ..TreeSpec::default() };
        let network = build::tree(&spec).unwrap().network;
        let error = Distances::build(&network).unwrap_err();
        assert_eq!(error, DistancesError::TooManyEdges { edges: 4_097, most: 4_096 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_table_is_what_a_search_from_each_switch_finds(network in random_network()) {
            let distances = Distances::build(&network).unwrap();
            let mut widest = 0;
            for from in (0..distances.edges() as u32).map(EdgeIdx) {
                let naive = hop_counts(&network, distances.switch_of(from).unwrap());
                for to in (0..distances.edges() as u32).map(EdgeIdx) {
                    let expected = naive[distances.switch_of(to).unwrap().at()].map(|hops: u32| hops.saturating_sub(1) as u8);
                    prop_assert_eq!(distances.core_hops(from, to), expected);
                    widest = widest.max(expected.unwrap_or(0));
                }
            }
            prop_assert_eq!(distances.diameter(), widest);
        }

        #[test]
        fn followed_distances_are_those_counted_anew(
            network in random_network(),
            steps in prop::collection::vec(prop::collection::vec((0_u8..6, any::<prop::sample::Index>()), 1..4), 1..8),
        ) {
            let mut network = network;
            let mut distances = Distances::build(&network).unwrap();
            for step in steps {
                let mut named = Vec::new();
                for (kind, at) in step {
                    let link = LinkIdx::new(at.index(network.link_rows()));
                    let switches: Vec<_> = network.vertices().filter(|(_, v)| !v.is_host()).map(|(v, _)| v).collect();
                    match kind {
                        0..3 => {
                            network.set_link(link, Some(!network.link_at(link).up), None);
                        }
                        3 => network.remove_link(link),
                        _ => {
                            let switch = *at.get(&switches);
                            named.extend(network.links_of(switch).map(|(link, _)| link));
                            network.set_switch(switch, !network.switch_up(switch));
                        }
                    }
                    named.push(link);
                }
                distances = distances.follow(&network, &named).unwrap();
                let anew = Distances::build(&network).unwrap();
                let (Table::Dense(ours), Table::Dense(theirs)) = (&distances.table, &anew.table) else { panic!("racks") };
                prop_assert_eq!(ours, theirs);
                prop_assert_eq!(&distances.edges, &anew.edges);
                prop_assert_eq!(distances.diameter, anew.diameter);
                prop_assert_eq!(&distances.counted.as_ref().unwrap().hops, &anew.counted.unwrap().hops);
            }
        }
    }
}
