//! Hops between a few places: switches that hosts and boxes hang on.

use super::is_packet_switch;
use crate::network::graph::Network;
use crate::units::VertexIdx;
use std::collections::{BTreeMap, VecDeque};

/// Hops from some switches to some, over packet switches that are up.
#[derive(Debug, Clone)]
pub struct HopTable {
    columns: usize,
    /// By row and column; [`HopTable::NONE`] where there is no way.
    hops: Vec<u16>,
}

impl HopTable {
    /// No way.
    pub const NONE: u16 = u16::MAX;

    /// Counts hops from each of `rows` to each of `columns`.
    #[must_use]
    pub fn new(network: &Network, rows: &[VertexIdx], columns: &[VertexIdx]) -> Self {
        let mut near: Vec<Vec<u32>> = vec![Vec::new(); network.vertex_rows()];
        for (index, link) in network.links() {
            if network.is_usable(index) && is_packet_switch(network, link.a) && is_packet_switch(network, link.b) {
                near[link.a.at()].push(link.b.0);
                near[link.b.at()].push(link.a.0);
            }
        }
        let mut hops = Vec::with_capacity(rows.len() * columns.len());
        let mut known: BTreeMap<VertexIdx, usize> = BTreeMap::new();
        for (row, &from) in rows.iter().enumerate() {
            if let Some(&same) = known.get(&from) {
                hops.extend_from_within(same * columns.len()..(same + 1) * columns.len());
                continue;
            }
            known.insert(from, row);
            let counts = counts(network, &near, from);
            hops.extend(columns.iter().map(|to| counts[to.at()]));
        }
        Self { columns: columns.len(), hops }
    }

    /// From a row to all columns.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u16] {
        &self.hops[row * self.columns..(row + 1) * self.columns]
    }

    /// From a row to a column; [`Self::NONE`] where there is no way.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> u16 {
        self.hops[row * self.columns + column]
    }
}

fn counts(network: &Network, near: &[Vec<u32>], from: VertexIdx) -> Vec<u16> {
    let mut counts = vec![HopTable::NONE; near.len()];
    let mut waiting = VecDeque::new();
    if network.switch_up(from) && is_packet_switch(network, from) {
        counts[from.at()] = 0;
        waiting.push_back(from.0);
    }
    while let Some(here) = waiting.pop_front() {
        let far = counts[here as usize].saturating_add(1).min(HopTable::NONE - 1);
        for &next in &near[here as usize] {
            if counts[next as usize] == HopTable::NONE {
                counts[next as usize] = far;
                waiting.push_back(next);
            }
        }
    }
    counts
}
