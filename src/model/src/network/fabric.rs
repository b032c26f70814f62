//! The switch layer in compressed rows, and hop counts from many switches at once.

use super::graph::Network;
use crate::units::{LinkIdx, VertexIdx};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Most attachment switches that pair tables are built for: 4,096² bytes are 16 MiB.
pub const MOST_EDGES: usize = 4_096;

/// Hosts' switches, counted densely: the switches with at least one host, in vertex order, whether up or down.
/// The count is the same for all versions of a network that differ in state only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EdgeIdx(pub u32);

impl EdgeIdx {
    /// Position in a column.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

const NONE: u32 = u32::MAX;

/// Attachment switches and which vertex belongs to which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// By edge.
    pub(super) switches: Vec<VertexIdx>,
    /// By vertex: the edge that a host hangs on, or that a switch is.
    of_vertex: Vec<u32>,
}

impl Edges {
    pub(super) fn of(network: &Network) -> Self {
        let mut of_vertex = vec![NONE; network.vertex_rows()];
        let mut switches: Vec<VertexIdx> = Vec::new();
        for (index, _) in network.vertices().filter(|(_, vertex)| !vertex.is_host()) {
            if network.links_of(index).any(|(_, link)| network.vertex_at(link.other(index)).is_host()) {
                of_vertex[index.at()] = switches.len() as u32;
                switches.push(index);
            }
        }
        for (index, _) in network.vertices().filter(|(_, vertex)| vertex.is_host()) {
            if let Some(switch) = network.attachment(index) {
                of_vertex[index.at()] = of_vertex[switch.at()];
            }
        }
        Self { switches, of_vertex }
    }

    /// Follows to a version of the network in which some links have another state. `false`, and nothing done, if
    /// switches may have gained their first or lost their last host.
    pub(super) fn follow(&mut self, network: &Network, links: &[LinkIdx]) -> bool {
        let is_host = |vertex: VertexIdx| network.vertex_at(vertex).is_host();
        let access = || {
            let ends = links.iter().map(|&link| (link, network.link_at(link)));
            ends.filter_map(|(index, link)| Some((index, [link.a, link.b].into_iter().find(|&end| is_host(end))?)))
        };
        if self.of_vertex.len() != network.vertex_rows() || access().any(|(link, _)| network.is_removed(link)) {
            return false;
        }
        for (_, host) in access() {
            let switch = network.attachment(host);
            self.of_vertex[host.at()] = switch.map_or(NONE, |switch| self.of_vertex[switch.at()]);
        }
        true
    }

    pub(super) fn edge_of(&self, vertex: VertexIdx) -> Option<EdgeIdx> {
        self.of_vertex.get(vertex.at()).copied().filter(|&edge| edge != NONE).map(EdgeIdx)
    }
}

/// One link of a switch to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    /// Row of the far switch.
    pub(super) to: u32,
    /// The link.
    pub(super) link: LinkIdx,
    /// Whether the hop goes from the link's `a` to its `b`.
    pub(super) forward: bool,
}

/// Switches with their links to each other, in compressed rows, and which of them are usable. Versions of a network
/// that differ in state only share the rows.
#[derive(Debug, Clone)]
pub(super) struct Fabric {
    wires: Arc<Wires>,
    /// By link; only links between switches count.
    usable: Vec<bool>,
    /// By row.
    up: Vec<bool>,
}

#[derive(Debug)]
struct Wires {
    /// By vertex: the switch's row.
    rows: Vec<u32>,
    /// By row.
    switches: Vec<VertexIdx>,
    /// By row, and one more: where its hops start.
    starts: Vec<u32>,
    hops: Vec<Hop>,
}

impl Fabric {
    pub(super) fn of(network: &Network) -> Self {
        let mut rows = vec![NONE; network.vertex_rows()];
        let switches: Vec<VertexIdx> =
            network.vertices().filter(|(_, vertex)| !vertex.is_host()).map(|(index, _)| index).collect();
        for (row, switch) in switches.iter().enumerate() {
            rows[switch.at()] = row as u32;
        }
        let (mut starts, mut hops) = (vec![0], Vec::new());
        for &switch in &switches {
            let to_switches = network.links_of(switch).map(|(index, link)| (index, link, link.other(switch)));
            hops.extend(to_switches.filter(|(.., far)| rows[far.at()] != NONE).map(|(link, known, far)| Hop {
                to: rows[far.at()],
                link,
                forward: known.a == switch,
            }));
            starts.push(hops.len() as u32);
        }
        let usable = (0..network.link_rows()).map(|link| network.is_usable(LinkIdx::new(link))).collect();
        let up = switches.iter().map(|&switch| network.switch_up(switch)).collect();
        Self { wires: Arc::new(Wires { rows, switches, starts, hops }), usable, up }
    }

    /// Follows to a version of the network that differs in the state of some links (others may be named too) and in
    /// those of switches. Gives the links between switches that gained or lost their use, with the rows that they
    /// join, and the rows that came up or went down.
    pub(super) fn follow(&mut self, network: &Network, links: &[LinkIdx]) -> FabricChange {
        let mut change = FabricChange::default();
        for &link in links {
            let usable = network.is_usable(link);
            if std::mem::replace(&mut self.usable[link.at()], usable) == usable {
                continue;
            }
            let known = network.link_at(link);
            let [a, b] = [known.a, known.b].map(|end| self.wires.rows[end.at()]);
            if a != NONE && b != NONE {
                if usable { &mut change.gained } else { &mut change.lost }.push((a, b));
            }
        }
        for (row, (&switch, up)) in (0..).zip(self.wires.switches.iter().zip(&mut self.up)) {
            let now = network.switch_up(switch);
            if std::mem::replace(up, now) != now {
                change.switches.push(row);
            }
        }
        change
    }

    /// Number of switches.
    pub(super) fn len(&self) -> usize {
        self.up.len()
    }

    /// Number of links, those of hosts among them.
    pub(super) fn links(&self) -> usize {
        self.usable.len()
    }

    /// The row of a switch.
    pub(super) fn row(&self, switch: VertexIdx) -> usize {
        self.wires.rows[switch.at()] as usize
    }

    /// The usable links of a row.
    pub(super) fn hops(&self, row: usize) -> impl Iterator<Item = &Hop> + Clone {
        let all = &self.wires.hops[self.wires.starts[row] as usize..self.wires.starts[row + 1] as usize];
        all.iter().filter(|hop| self.usable[hop.link.at()])
    }

    /// Calls `visit(source's position, row, hops)` for every switch that each source reaches, itself included
    /// unless it is down.
    ///
    /// Breadth-first from 64 sources at a time, one bit each, after Then et al., "The More the Merrier: Efficient
    /// Multi-Source Graph Traversal" (VLDB 2014): a level costs one pass over the links for all 64.
    pub(super) fn visit_hop_counts(&self, sources: &[usize], mut visit: impl FnMut(usize, usize, u32)) {
        for (batch, rows) in sources.chunks(64).enumerate() {
            let mut frontier = vec![0_u64; self.len()];
            for (bit, &row) in rows.iter().enumerate().filter(|(_, row)| self.up[**row]) {
                frontier[row] |= 1 << bit;
            }
            let mut seen = frontier.clone();
            let mut level = 0;
            while frontier.iter().any(|&bits| bits != 0) {
                for (row, &bits) in frontier.iter().enumerate() {
                    for_each_bit(bits, |bit| visit(batch * 64 + bit, row, level));
                }
                frontier = self.next_frontier(&frontier, &mut seen);
                level += 1;
            }
        }
    }

    fn next_frontier(&self, frontier: &[u64], seen: &mut [u64]) -> Vec<u64> {
        let mut next = vec![0_u64; self.len()];
        for (row, &bits) in frontier.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            for hop in self.hops(row) {
                next[hop.to as usize] |= bits;
            }
        }
        for (new, seen) in next.iter_mut().zip(seen) {
            *new &= !*seen;
            *seen |= *new;
        }
        next
    }
}

/// What became of a fabric.
#[derive(Debug, Default)]
pub(super) struct FabricChange {
    /// Rows at the ends of links that are usable now and were not.
    pub(super) gained: Vec<(u32, u32)>,
    /// Rows at the ends of links that were usable.
    pub(super) lost: Vec<(u32, u32)>,
    /// Rows whose switch came up or went down.
    pub(super) switches: Vec<u32>,
}

impl FabricChange {
    /// Whether no path can be another.
    pub(super) fn is_empty(&self) -> bool {
        self.gained.is_empty() && self.lost.is_empty() && self.switches.is_empty()
    }
}

fn for_each_bit(mut bits: u64, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
