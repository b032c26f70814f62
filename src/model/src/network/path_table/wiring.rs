//! The packet switches and their ports, numbered once and for all, and which links are usable now.

use crate::network::graph::Network;
use crate::network::tier::Tier;
use crate::units::{LinkIdx, VertexIdx};
use std::collections::VecDeque;
use std::sync::Arc;

/// No row, no distance, no parent.
pub(super) const NONE: u32 = u32::MAX;

/// A switch's port: a link, and the row at its far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) to: u32,
    pub(super) link: u32,
}

/// Packet switches by row with their ports, in the order of links. Links that are down or removed keep their
/// port, so that a port's number never changes while links come and go. Optical switches have no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wiring {
    panel: Arc<SharedWiring>,
    /// By row.
    pub(super) up: Vec<bool>,
    /// By link; only links between rows count.
    usable: Vec<bool>,
    /// By row: what [`Self::is_stub`] asks.
    stubs: Vec<Stub>,
}

/// What versions of a network share that differ in states only.
#[derive(Debug, PartialEq, Eq)]
struct SharedWiring {
    /// By row.
    switches: Vec<VertexIdx>,
    /// By vertex.
    rows: Vec<u32>,
    /// By row, and one more: where its ports start.
    starts: Vec<u32>,
    ports: Vec<Port>,
    /// By link: the rows that it joins.
    joined: Vec<Option<(u32, u32)>>,
    /// How many links were removed; their ports are here.
    removed: usize,
}

/// Where a switch stands towards the part of the network that has more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stub {
    Not,
    /// All that is beyond the switch hangs on this row alone; [`NONE`] for the root of a tree.
    Under(u32),
}

impl Wiring {
    pub(super) fn of(network: &Network) -> Self {
        let mut rows = vec![NONE; network.vertex_rows()];
        let mut switches = Vec::new();
        for (index, vertex) in network.vertices() {
            if vertex.tier().is_some_and(|tier| tier != Tier::Optical) {
                rows[index.at()] = switches.len() as u32;
                switches.push(index);
            }
        }
        let ends = |link| {
            let link = network.link_at(LinkIdx::new(link));
            Some((rows[link.a.at()], rows[link.b.at()])).filter(|&(a, b)| a != NONE && b != NONE)
        };
        let joined: Vec<_> = (0..network.link_rows()).map(ends).collect();
        let mut starts = vec![0_u32; switches.len() + 1];
        for row in joined.iter().flatten().flat_map(|&(a, b)| [a, b]) {
            starts[row as usize + 1] += 1;
        }
        for row in 0..switches.len() {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut ports = vec![Port { to: NONE, link: NONE }; starts[switches.len()] as usize];
        for (link, &(a, b)) in (0..).zip(&joined).filter_map(|(link, ends)| Some((link, ends.as_ref()?))) {
            for (from, to) in [(a, b), (b, a)] {
                ports[next[from as usize] as usize] = Port { to, link };
                next[from as usize] += 1;
            }
        }
        let removed = removed(network);
        Self::in_state(Arc::new(SharedWiring { switches, rows, starts, ports, joined, removed }), network)
    }

    /// The wiring of a later version of the network, if that differs in states only.
    pub(super) fn follow(&self, network: &Network) -> Option<Self> {
        let panel = &self.panel;
        let same = panel.rows.len() == network.vertex_rows()
            && panel.joined.len() == network.link_rows()
            && panel.removed == removed(network);
        same.then(|| Self::in_state(panel.clone(), network))
    }

    fn in_state(panel: Arc<SharedWiring>, network: &Network) -> Self {
        let links = panel.joined.iter().enumerate();
        let usable = links.map(|(link, ends)| ends.is_some() && network.is_usable(LinkIdx::new(link))).collect();
        let up = panel.switches.iter().map(|&switch| network.switch_up(switch)).collect();
        let mut wiring = Self { panel, up, usable, stubs: Vec::new() };
        wiring.stubs = wiring.find_stubs();
        wiring
    }

    /// By row.
    pub(super) fn switches(&self) -> &[VertexIdx] {
        &self.panel.switches
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.panel.switches.len()
    }

    /// Steps that going through all rows and ports once takes.
    pub(super) fn sweep(&self) -> u64 {
        (self.len() + self.port_rows()) as u64
    }

    /// Number of links, those of hosts among them.
    pub(super) fn links(&self) -> usize {
        self.usable.len()
    }

    /// The row of a packet switch.
    pub(super) fn row(&self, vertex: VertexIdx) -> Option<u32> {
        self.panel.rows.get(vertex.at()).copied().filter(|&row| row != NONE)
    }

    /// All ports of a row, usable or not.
    pub(super) fn ports(&self, row: u32) -> &[Port] {
        &self.panel.ports[self.start(row)..self.start(row + 1)]
    }

    /// Where a row's ports start in a column by port.
    pub(super) fn start(&self, row: u32) -> usize {
        self.panel.starts[row as usize] as usize
    }

    /// Rows of a column by port.
    pub(super) fn port_rows(&self) -> usize {
        self.panel.ports.len()
    }

    /// Usable ports of a row.
    pub(super) fn hops(&self, row: u32) -> impl Iterator<Item = Port> {
        self.ports(row).iter().copied().filter(|port| self.usable[port.link as usize])
    }

    /// The number of a row's port that has the link.
    pub(super) fn port_of(&self, row: u32, link: u32) -> usize {
        self.ports(row).binary_search_by_key(&link, |port| port.link).expect("paths walk along links of their switches")
    }

    /// Whether the link joins rows and is usable.
    pub(super) fn is_usable(&self, link: usize) -> bool {
        self.usable.get(link).copied().unwrap_or(false)
    }

    /// Rows at the ends of all links between rows, by link.
    pub(super) fn joined(&self) -> &[Option<(u32, u32)>] {
        &self.panel.joined
    }

    /// Hops from `row` to every row, [`NONE`] where there is no way.
    pub(super) fn hops_from(&self, row: u32, counts: &mut Vec<u32>) {
        counts.clear();
        counts.resize(self.len(), NONE);
        let mut queue = VecDeque::new();
        if self.up[row as usize] {
            counts[row as usize] = 0;
            queue.push_back(row);
        }
        while let Some(near) = queue.pop_front() {
            let far = counts[near as usize] + 1;
            for port in self.hops(near) {
                if counts[port.to as usize] == NONE {
                    counts[port.to as usize] = far;
                    queue.push_back(port.to);
                }
            }
        }
    }

    /// Whether no path can pass through `row` from one end to another, unless an end is beyond it: all of its
    /// neighbours but at most one lead nowhere else.
    pub(super) fn is_stub(&self, row: u32) -> bool {
        self.stubs[row as usize] != Stub::Not
    }

    /// The only neighbour of a stub that leads on.
    pub(super) fn above_stub(&self, row: u32) -> Option<u32> {
        match self.stubs[row as usize] {
            Stub::Under(above) if above != NONE => Some(above),
            _ => None,
        }
    }

    /// Takes away switches with one neighbour until none is left.
    fn find_stubs(&self) -> Vec<Stub> {
        let mut near = Vec::new();
        let mut left = Vec::with_capacity(self.len());
        for row in 0..self.len() as u32 {
            neighbors(self, row, &mut near);
            left.push(near.len());
        }
        let mut stubs = vec![Stub::Not; self.len()];
        let mut leaves: Vec<usize> = (0..self.len()).filter(|&row| left[row] <= 1).collect();
        while let Some(leaf) = leaves.pop() {
            if stubs[leaf] != Stub::Not {
                continue;
            }
            neighbors(self, leaf as u32, &mut near);
            let above = near.iter().copied().find(|&row| stubs[row as usize] == Stub::Not);
            stubs[leaf] = Stub::Under(above.unwrap_or(NONE));
            if let Some(above) = above {
                left[above as usize] -= 1;
                if left[above as usize] <= 1 {
                    leaves.push(above as usize);
                }
            }
        }
        stubs
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let panel = &*self.panel;
        size_of_val(&*panel.switches)
            + size_of_val(&*panel.rows)
            + size_of_val(&*panel.starts)
            + size_of_val(&*panel.ports)
            + size_of_val(&*panel.joined)
            + size_of_val(&*self.up)
            + size_of_val(&*self.usable)
            + size_of_val(&*self.stubs)
    }
}

fn removed(network: &Network) -> usize {
    (0..network.link_rows()).filter(|&link| network.is_removed(LinkIdx::new(link))).count()
}

/// The rows at the far ends of a row's usable links, each once, in order.
fn neighbors(wiring: &Wiring, row: u32, near: &mut Vec<u32>) {
    near.clear();
    near.extend(wiring.hops(row).map(|port| port.to));
    near.sort_unstable();
    near.dedup();
}
