//! The switch layer in compressed rows, and hop counts from many switches at once.

use super::graph::Network;
use crate::units::{LinkIdx, VertexIdx};
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Default)]
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

    pub(super) fn edge_of(&self, vertex: VertexIdx) -> Option<EdgeIdx> {
        self.of_vertex.get(vertex.at()).copied().filter(|&edge| edge != NONE).map(EdgeIdx)
    }
}

/// One usable link of a switch to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    /// Row of the far switch.
    pub(super) to: u32,
    /// The link.
    pub(super) link: LinkIdx,
    /// Whether the hop goes from the link's `a` to its `b`.
    pub(super) forward: bool,
}

/// Switches with their usable links to each other, in compressed rows.
#[derive(Debug, Clone)]
pub(super) struct Fabric {
    /// By vertex: the switch's row.
    rows: Vec<u32>,
    /// By row, and one more: where its hops start.
    starts: Vec<u32>,
    hops: Vec<Hop>,
    up: Vec<bool>,
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
            let to_switches = network.usable_hops(switch).filter(|(_, far)| rows[far.at()] != NONE);
            hops.extend(to_switches.map(|(link, far)| Hop {
                to: rows[far.at()],
                link,
                forward: network.link_at(link).a == switch,
            }));
            starts.push(hops.len() as u32);
        }
        let up = switches.iter().map(|&switch| network.switch_up(switch)).collect();
        Self { rows, starts, hops, up }
    }

    /// Number of switches.
    pub(super) fn len(&self) -> usize {
        self.up.len()
    }

    /// The row of a switch.
    pub(super) fn row(&self, switch: VertexIdx) -> usize {
        self.rows[switch.at()] as usize
    }

    pub(super) fn hops(&self, row: usize) -> &[Hop] {
        &self.hops[self.starts[row] as usize..self.starts[row + 1] as usize]
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

fn for_each_bit(mut bits: u64, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
