//! Whom a host should measure: Pingmesh's three graphs (Guo et al., SIGCOMM '15), each bounded.

use crate::units::{NodeIdx, RackIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;

/// How many others a host measures at most, by graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fanout {
    /// Of its rack.
    pub in_rack: usize,
    /// Racks, one host of each.
    pub between_racks: usize,
    /// Anywhere, drawn.
    pub across: usize,
}

impl Default for Fanout {
    /// With these 20 a rack of 32 hosts covers 256 racks, and 12,500 hosts measure 250,000 pairs.
    fn default() -> Self {
        Self { in_rack: 8, between_racks: 8, across: 4 }
    }
}

/// Why a host is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Graph {
    /// One of the same rack.
    InRack,
    /// The counterpart in another rack.
    BetweenRacks,
    /// Drawn from all.
    Across,
}

impl Graph {
    /// Its word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InRack => "in_rack",
            Self::BetweenRacks => "between_racks",
            Self::Across => "across",
        }
    }
}

/// Hosts that answer probes, by rack.
#[derive(Debug, Clone, Default)]
pub struct ProbePlan {
    /// By rack and node.
    hosts: Vec<(RackIdx, NodeIdx)>,
    /// Where each rack begins in `hosts`, and its end at last.
    starts: Vec<usize>,
}

impl ProbePlan {
    /// Of hosts with their racks, in any order.
    pub fn new(hosts: impl IntoIterator<Item = (NodeIdx, RackIdx)>) -> Self {
        let mut hosts: Vec<(RackIdx, NodeIdx)> = hosts.into_iter().map(|(node, rack)| (rack, node)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut starts = vec![0];
        for rack in hosts.chunk_by(|a, b| a.0 == b.0) {
            starts.push(starts[starts.len() - 1] + rack.len());
        }
        Self { hosts, starts }
    }

    fn rack(&self, at: usize) -> &[(RackIdx, NodeIdx)] {
        &self.hosts[self.starts[at]..self.starts[at + 1]]
    }

    /// Whom `own` should measure; nobody where it does not answer itself. The same hosts and seed give the same list.
    ///
    /// In the rack: the next ones, so that all of a rack hang together. Between racks: hosts at one place of their racks measure each
    /// other, and those of one rack share the other racks out among them. Across: drawn anew with each seed, so that in time each pair is
    /// looked at.
    #[must_use]
    pub fn targets(&self, own: (NodeIdx, RackIdx), fanout: &Fanout, seed: u64) -> Vec<(NodeIdx, Graph)> {
        let Ok(found) = self.hosts.binary_search(&(own.1, own.0)) else { return Vec::new() };
        let at = self.starts.partition_point(|start| *start <= found) - 1;
        let (members, place, racks) = (self.rack(at), found - self.starts[at], self.starts.len() - 1);
        let mut seen = BTreeSet::from([own.0]);
        let mut found = Vec::new();
        let mut take = |node, graph| {
            if seen.insert(node) {
                found.push((node, graph));
            }
        };
        for next in 1..=fanout.in_rack.min(members.len() - 1) {
            take(members[(place + next) % members.len()].1, Graph::InRack);
        }
        for next in 0..fanout.between_racks.min(racks - 1) {
            let other = self.rack((at + 1 + (place * fanout.between_racks + next) % (racks - 1)) % racks);
            take(other[place % other.len()].1, Graph::BetweenRacks);
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ u64::from(own.0.0).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for _ in 0..fanout.across {
            take(self.hosts[random.random_range(0..self.hosts.len())].1, Graph::Across);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, VecDeque};

    fn targets(hosts: &[(NodeIdx, RackIdx)], own: NodeIdx, fanout: &Fanout, seed: u64) -> Vec<(NodeIdx, Graph)> {
        let rack = hosts.iter().find(|(node, _)| *node == own).map_or(RackIdx(0), |(_, rack)| *rack);
        ProbePlan::new(hosts.iter().copied()).targets((own, rack), fanout, seed)
    }

    fn cluster(racks: u32, hosts: u32) -> Vec<(NodeIdx, RackIdx)> {
        (0..racks * hosts).map(|node| (NodeIdx(node), RackIdx(node / hosts))).collect()
    }

    #[test]
    fn a_list_is_bounded_and_names_nobody_twice_nor_the_host_itself() {
        let hosts = cluster(20, 30);
        let fanout = Fanout::default();
        for (own, rack) in &hosts {
            let list = targets(&hosts, *own, &fanout, 7);
            let named: BTreeSet<_> = list.iter().map(|(node, _)| *node).collect();
            assert!(named.len() == list.len() && !named.contains(own) && list.len() <= 20);
            let count = |graph| list.iter().filter(|found| found.1 == graph).count();
            assert_eq!((count(Graph::InRack), count(Graph::BetweenRacks)), (8, 8));
            let in_rack = list.iter().filter(|(node, _)| RackIdx(node.0 / 30) == *rack).count();
            assert!((8..=12).contains(&in_rack));
            assert_eq!(list, targets(&hosts, *own, &fanout, 7));
        }
        let drawn = |seed| targets(&hosts, NodeIdx(0), &fanout, seed);
        assert_ne!(drawn(1), drawn(2), "the sample changes with the seed");
    }

    #[test]
    fn all_racks_are_measured_with_all_and_each_rack_hangs_together() {
        let hosts = cluster(40, 8);
        let fanout = Fanout { in_rack: 1, between_racks: 5, across: 0 };
        let mut racks: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut rings: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (own, rack) in &hosts {
            for (node, graph) in targets(&hosts, *own, &fanout, 0) {
                match graph {
                    Graph::InRack => rings.entry(own.0).or_default().push(node.0),
                    _ => *racks.entry((rack.0, node.0 / 8)).or_default() += 1,
                }
            }
        }
        assert_eq!(racks.len(), 40 * 39, "8 hosts of 5 racks each cover 39 others");
        let (mut seen, mut queue) = (BTreeSet::from([0]), VecDeque::from([0]));
        while let Some(node) = queue.pop_front() {
            queue.extend(rings[&node].iter().copied().filter(|next| seen.insert(*next)));
        }
        assert_eq!(seen.len(), 8);
    }

    #[test]
    fn a_host_alone_or_unknown_has_nobody_to_measure() {
        assert_eq!(targets(&cluster(1, 1), NodeIdx(0), &Fanout::default(), 1), []);
        assert_eq!(targets(&cluster(1, 4), NodeIdx(9), &Fanout::default(), 1), []);
        assert_eq!(targets(&[], NodeIdx(0), &Fanout::default(), 1), []);
        assert_eq!(targets(&cluster(2, 1), NodeIdx(0), &Fanout::default(), 1), [(NodeIdx(1), Graph::BetweenRacks)]);
    }
}
