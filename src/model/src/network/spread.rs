//! Bytes laid on links: equal split over all shortest paths, and the link that takes longest.

use super::distance::{Counted, Distances, DistancesError};
use super::fabric::{EdgeIdx, Edges, Hop};
use super::graph::Network;
use super::hops::FAR;
use super::path::Path;
use crate::units::{LinkIdx, VertexIdx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes by link and direction, with a list of the links that carry any.
#[derive(Debug, Clone)]
pub struct LinkLoads {
    /// By link: bytes from `a` to `b`, bytes from `b` to `a`. Pages without load are not there: an application
    /// uses few of a large network's links.
    pages: Vec<Option<Box<Page>>>,
    loaded: Vec<LinkIdx>,
}

/// Links in a page: 1 KiB.
const PAGE: usize = 64;
type Page = [[f64; 2]; PAGE];

impl LinkLoads {
    /// No load on any link.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        Self { pages: vec![None; network.link_rows().div_ceil(PAGE)], loaded: Vec::new() }
    }

    /// Takes all loads away; costs only as much as there are loaded links.
    pub fn clear(&mut self) {
        for link in self.loaded.drain(..) {
            if let Some(page) = &mut self.pages[link.at() / PAGE] {
                page[link.at() % PAGE] = [0.0; 2];
            }
        }
    }

    /// Bytes on a link: from its `a` to its `b`, and back.
    #[must_use]
    pub fn of(&self, link: LinkIdx) -> [f64; 2] {
        self.pages[link.at() / PAGE].as_ref().map_or([0.0; 2], |page| page[link.at() % PAGE])
    }

    /// Links that carry bytes, in the order they first got some.
    #[must_use]
    pub fn loaded(&self) -> &[LinkIdx] {
        &self.loaded
    }

    /// Adds `bytes` (not negative) to one direction of a link.
    pub fn add(&mut self, link: LinkIdx, from_a: bool, bytes: f64) {
        if bytes > 0.0 {
            let page = self.pages[link.at() / PAGE].get_or_insert_with(|| Box::new([[0.0; 2]; PAGE]));
            let both = &mut page[link.at() % PAGE];
            if *both == [0.0; 2] {
                self.loaded.push(link);
            }
            both[usize::from(!from_a)] += bytes;
        }
    }

    /// Adds what a host sends and receives to its access link. `false`, and nothing added, if it has none that
    /// is usable.
    pub fn add_host(&mut self, network: &Network, host: VertexIdx, out_bytes: f64, in_bytes: f64) -> bool {
        let Some(link) = network.access_link(host) else { return false };
        let outwards = network.link_at(link).a == host;
        self.add(link, outwards, out_bytes);
        self.add(link, !outwards, in_bytes);
        true
    }

    /// Adds `bytes` along a path.
    pub fn add_path(&mut self, network: &Network, path: &Path, bytes: f64) {
        for (&link, &from) in path.links.iter().zip(&path.vertices) {
            self.add(link, network.link_at(link).a == from, bytes);
        }
    }

    /// The link direction that needs longest for its bytes, and the seconds: the largest load · 8 ÷ capacity. Of
    /// equal ones the first by index; `None` without load; infinite on a link of capacity 0.
    #[must_use]
    pub fn worst_link(&self, network: &Network) -> Option<(LinkIdx, f64)> {
        let seconds = |&link: &LinkIdx| {
            let [there, back] = self.of(link);
            (link, there.max(back) * 8.0 / network.link_at(link).capacity.as_f64())
        };
        let worse = |worst: (LinkIdx, f64), next: (LinkIdx, f64)| {
            if next.1 > worst.1 || (next.1 == worst.1 && next.0 < worst.0) { next } else { worst }
        };
        self.loaded.iter().map(seconds).reduce(worse)
    }
}

/// Bytes that go from one attachment switch to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpreadFlow {
    /// Where they come from.
    pub from: EdgeIdx,
    /// Where they go.
    pub to: EdgeIdx,
    /// How many; none are laid where there are not more than 0.
    pub bytes: f64,
}

/// Hops from every switch to every attachment switch of one network version: what equal-cost multipath
/// forwarding needs. Edges are counted as by [`Distances`] of the same network, which it shares all it has with.
#[derive(Debug, Clone)]
pub struct EcmpTable {
    edges: Arc<Edges>,
    counted: Counted,
}

impl EcmpTable {
    /// The table for the network that the distances were counted in; `None` if they are those of racks.
    #[must_use]
    pub fn of(distances: &Distances) -> Option<Self> {
        Some(Self { edges: distances.attached().clone(), counted: distances.counted()?.clone() })
    }

    /// Builds the table over usable links.
    ///
    /// # Errors
    /// [`DistancesError::TooManyEdges`] above [`super::MOST_EDGES`] switches with hosts.
    pub fn build(network: &Network) -> Result<Self, DistancesError> {
        Distances::build(network).map(|distances| Self::of(&distances).expect("they were counted in a network"))
    }

    /// Number of attachment switches.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.edges.switches.len()
    }

    /// The attachment switch of a host, or that a switch is.
    #[must_use]
    pub fn edge_of(&self, vertex: VertexIdx) -> Option<EdgeIdx> {
        self.edges.edge_of(vertex)
    }

    /// Lays `bytes` from one attachment switch to another: at every switch an equal share goes to each link that
    /// is on a shortest path. Returns whether there is a path; without one nothing is laid. Access links are
    /// [`LinkLoads::add_host`]'s.
    pub fn spread_bytes(&self, from: EdgeIdx, to: EdgeIdx, bytes: f64, loads: &mut LinkLoads) -> bool {
        self.spread_all(&[SpreadFlow { from, to, bytes }], loads) == 0.0
    }

    /// Lays many flows at once, as [`Self::spread_bytes`] each: flows to the same switch share one pass, so a few
    /// hundred rack pairs cost about as much as their destinations. Returns the bytes that have no path.
    pub fn spread_all(&self, flows: &[SpreadFlow], loads: &mut LinkLoads) -> f64 {
        let mut by_destination: BTreeMap<EdgeIdx, Vec<(EdgeIdx, f64)>> = BTreeMap::new();
        for &SpreadFlow { from, to, bytes } in flows.iter().filter(|flow| flow.bytes > 0.0) {
            by_destination.entry(to).or_default().push((from, bytes));
        }
        let fabric = &self.counted.fabric;
        let mut wave = Wave { bytes: vec![0.0; fabric.len()], levels: Vec::new() };
        let mut stranded = 0.0;
        for (to, sources) in by_destination {
            let hops = self.counted.hops.to(to.at());
            for (from, bytes) in sources {
                let row = fabric.row(self.edges.switches[from.at()]);
                match hops[row] {
                    FAR => stranded += bytes,
                    level => wave.put(row, level, bytes),
                }
            }
            self.run_down(&mut wave, hops, loads);
        }
        stranded
    }

    /// Moves the wave level by level to the destination, where it ends.
    fn run_down(&self, wave: &mut Wave, hops: &[u16], loads: &mut LinkLoads) {
        while let Some(rows) = wave.levels.pop() {
            let level = wave.levels.len() as u16;
            for row in rows {
                let bytes = std::mem::take(&mut wave.bytes[row]);
                let nearer = |hop: &&Hop| level > 0 && hops[hop.to as usize] == level - 1;
                let ways = self.counted.fabric.hops(row).filter(nearer);
                let share = bytes / ways.clone().count() as f64;
                for hop in ways {
                    loads.add(hop.link, hop.forward, share);
                    wave.put(hop.to as usize, level - 1, share);
                }
            }
        }
    }
}

/// Bytes on their way to one destination, by switch row, and the rows that hold some by hops left.
struct Wave {
    bytes: Vec<f64>,
    levels: Vec<Vec<usize>>,
}

impl Wave {
    fn put(&mut self, row: usize, level: u16, bytes: f64) {
        let level = usize::from(level);
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        if self.bytes[row] == 0.0 {
            self.levels[level].push(row);
        }
        self.bytes[row] += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::{self, FatTreeSpec, TreeSpec};
    use super::super::path::shortest_path;
    use super::super::testing::{CAPACITY, hop_counts, random_network};
    use super::*;
    use proptest::prelude::*;

    /// The same split by plain recursion over hop counts: bytes by link and direction.
    fn naive_spread(network: &Network, from: VertexIdx, to: VertexIdx, bytes: f64) -> Vec<[f64; 2]> {
        fn step(network: &Network, hops: &[Option<u32>], here: VertexIdx, bytes: f64, sums: &mut [[f64; 2]]) {
            let nearer = |far: VertexIdx| {
                !network.vertex_at(far).is_host() && hops[far.at()].map(|hops| hops + 1) == hops[here.at()]
            };
            let ways: Vec<_> = network.usable_hops(here).filter(|(_, far)| nearer(*far)).collect();
            for &(link, far) in &ways {
                let share = bytes / ways.len() as f64;
                sums[link.at()][usize::from(network.link_at(link).a != here)] += share;
                step(network, hops, far, share, sums);
            }
        }
        let mut sums = vec![[0.0; 2]; network.link_rows()];
        step(network, &hop_counts(network, to), from, bytes, &mut sums);
        sums
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    #[test]
    fn across_pods_every_equal_path_carries_its_share() {
        let network = build::fat_tree(&FatTreeSpec::default()).unwrap().network;
        let table = EcmpTable::build(&network).unwrap();
        let mut loads = LinkLoads::new(&network);
        let edge = |name: &str| table.edge_of(network.vertex(name).unwrap()).unwrap();
        assert!(table.spread_bytes(edge("host-0001"), edge("host-0016"), 400.0, &mut loads));
        assert_eq!(loads.loaded().len(), 2 + 4 + 4 + 2);
        let of = |name: &str| loads.of(network.link(name).unwrap());
        assert_eq!(of("edge-1-1--agg-1-1"), [200.0, 0.0]);
        assert_eq!(of("agg-1-2--core-4"), [100.0, 0.0]);
        assert_eq!(of("agg-4-1--core-1"), [0.0, 100.0], "downwards is the other direction");
        assert_eq!(of("edge-4-2--agg-4-2"), [0.0, 200.0]);
        let worst = loads.worst_link(&network).unwrap();
        assert!(close(worst.1, 200.0 * 8.0 / 1e9));
        loads.clear();
        assert_eq!(loads.worst_link(&network), None);
        assert_eq!(loads.of(worst.0), [0.0; 2]);
    }

    #[test]
    fn the_slow_uplink_is_worse_than_the_fast_host_link() {
        let network = build::tree(&TreeSpec::default()).unwrap().network;
        let table = EcmpTable::build(&network).unwrap();
        let mut loads = LinkLoads::new(&network);
        let [from, to] = ["host-0001", "host-0008"].map(|name| network.vertex(name).unwrap());
        assert!(loads.add_host(&network, from, 1e9, 0.0) && loads.add_host(&network, to, 0.0, 1e9));
        let access = network.link("host-0001--edge-01").unwrap();
        assert_eq!(loads.worst_link(&network), Some((access, 8.0)), "of two equal ones the first");
        table.spread_bytes(table.edge_of(from).unwrap(), table.edge_of(to).unwrap(), 1e9, &mut loads);
        assert_eq!(loads.worst_link(&network), Some((network.link("edge-01--core-1").unwrap(), 20.0)));
    }

    #[test]
    fn bytes_along_a_path_load_each_of_its_links_in_its_direction() {
        let network = build::tree(&TreeSpec::default()).unwrap().network;
        let [from, to] = ["host-0001", "host-0008"].map(|name| network.vertex(name).unwrap());
        let mut loads = LinkLoads::new(&network);
        loads.add_path(&network, &shortest_path(&network, from, to).unwrap(), 5.0);
        assert_eq!(loads.loaded().len(), 4);
        assert_eq!(loads.of(network.link("host-0001--edge-01").unwrap()), [5.0, 0.0]);
        assert_eq!(loads.of(network.link("host-0008--edge-04").unwrap()), [0.0, 5.0]);
    }

    #[test]
    fn bytes_without_a_path_are_laid_nowhere_and_told() {
        let mut network = build::tree(&TreeSpec::default()).unwrap().network;
        network.set_switch(network.vertex("edge-04").unwrap(), false);
        let table = EcmpTable::build(&network).unwrap();
        let mut loads = LinkLoads::new(&network);
        assert!(!table.spread_bytes(EdgeIdx(0), EdgeIdx(3), 7.0, &mut loads));
        assert!(loads.loaded().is_empty());
        assert!(table.spread_bytes(EdgeIdx(0), EdgeIdx(0), 7.0, &mut loads), "within a rack nothing is to be laid");
        assert!(loads.loaded().is_empty());
        assert!(!loads.add_host(&network, network.vertex("host-0008").unwrap(), 1.0, 1.0));
        let flow = |from, bytes| SpreadFlow { from: EdgeIdx(from), to: EdgeIdx(1), bytes };
        let stranded = table.spread_all(&[flow(0, 1.0), flow(3, 2.0)], &mut loads);
        assert_eq!((stranded, loads.loaded().len()), (2.0, 4));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn shares_are_the_naive_ones_and_no_byte_is_lost(
            network in random_network(),
            picks in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index, u16)>(), 1..6),
        ) {
            let table = EcmpTable::build(&network).unwrap();
            let pick = |at: &prop::sample::Index| EdgeIdx(at.index(table.edges()) as u32);
            let flow =
                |(a, b, bytes): &(_, _, u16)| SpreadFlow { from: pick(a), to: pick(b), bytes: f64::from(*bytes) };
            let flows: Vec<_> = picks.iter().map(flow).collect();
            let mut together = LinkLoads::new(&network);
            let stranded = table.spread_all(&flows, &mut together);
            let mut expected = vec![[0.0; 2]; network.link_rows()];
            let (mut net_out, mut lost) = (vec![0.0; network.vertex_rows()], 0.0);
            for &SpreadFlow { from, to, bytes } in &flows {
                let [from, to] = [from, to].map(|edge| table.edges.switches[edge.at()]);
                if hop_counts(&network, to)[from.at()].is_none() {
                    lost += bytes;
                    continue;
                }
                net_out[from.at()] += bytes;
                net_out[to.at()] -= bytes;
                for (sum, one) in expected.iter_mut().zip(naive_spread(&network, from, to, bytes)) {
                    *sum = [sum[0] + one[0], sum[1] + one[1]];
                }
            }
            prop_assert!(close(stranded, lost));
            for (index, link) in network.links() {
                let [there, back] = together.of(index);
                prop_assert!(close(there, expected[index.at()][0]) && close(back, expected[index.at()][1]));
                prop_assert!(there + back == 0.0 || network.is_usable(index));
                net_out[link.a.at()] -= there - back;
                net_out[link.b.at()] += there - back;
            }
            prop_assert!(net_out.iter().all(|&rest| close(rest, 0.0)), "what enters a switch leaves it: {:?}", net_out);
            let heaviest = expected.iter().flatten().copied().fold(0.0, f64::max);
            let worst = together.worst_link(&network).map_or(0.0, |(_, seconds)| seconds);
            prop_assert!(close(worst, heaviest * 8.0 / CAPACITY.as_f64()));
        }
    }
}
