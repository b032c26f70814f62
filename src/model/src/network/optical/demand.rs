//! Demand between racks.

use crate::units::{Bytes, RackIdx};
use std::collections::BTreeMap;

/// Bytes that wait to move from each rack to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemandMatrix {
    racks: usize,
    /// By sender, then receiver; few of many racks have any.
    bytes: BTreeMap<(RackIdx, RackIdx), u64>,
}

/// Demand of one pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RackDemand {
    /// Who sends.
    pub from: RackIdx,
    /// Who receives.
    pub to: RackIdx,
    /// What waits to move.
    pub bytes: Bytes,
}

impl DemandMatrix {
    /// No demand among so many racks.
    #[must_use]
    pub const fn new(racks: usize) -> Self {
        Self { racks, bytes: BTreeMap::new() }
    }

    /// Adds to a pair. What stays in its rack is no demand.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn add(&mut self, from: RackIdx, to: RackIdx, bytes: Bytes) {
        assert!(from.at() < self.racks && to.at() < self.racks, "demand is between racks that are there");
        if from != to && bytes > Bytes::ZERO {
            let sum = self.bytes.entry((from, to)).or_default();
            *sum = sum.saturating_add(bytes.0);
        }
    }

    /// Of a pair; 0 of racks that are not there.
    #[must_use]
    pub fn get(&self, from: RackIdx, to: RackIdx) -> Bytes {
        Bytes(self.bytes.get(&(from, to)).copied().unwrap_or(0))
    }

    /// Pairs with demand, by sender, then receiver.
    pub fn iter(&self) -> impl Iterator<Item = RackDemand> {
        self.bytes.iter().map(|(&(from, to), &bytes)| RackDemand { from, to, bytes: Bytes(bytes) })
    }

    /// Of all pairs.
    #[must_use]
    pub fn total(&self) -> Bytes {
        Bytes(self.bytes.values().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes)))
    }
}
