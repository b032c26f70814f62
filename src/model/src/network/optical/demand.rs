//! Demand between racks.

use crate::units::{Bytes, RackIdx};

/// Bytes that wait to move from each rack to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemandMatrix {
    racks: usize,
    /// By sender, then receiver.
    bytes: Vec<u64>,
}

impl DemandMatrix {
    /// No demand among so many racks.
    #[must_use]
    pub fn new(racks: usize) -> Self {
        Self { racks, bytes: vec![0; racks * racks] }
    }

    /// Adds to a pair. What stays in its rack is no demand.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn add(&mut self, from: RackIdx, to: RackIdx, bytes: Bytes) {
        assert!(from.at() < self.racks && to.at() < self.racks, "demand is between racks that are there");
        if from != to {
            let sum = &mut self.bytes[from.at() * self.racks + to.at()];
            *sum = sum.saturating_add(bytes.0);
        }
    }

    /// Of a pair; 0 of racks that are not there.
    #[must_use]
    pub fn get(&self, from: RackIdx, to: RackIdx) -> Bytes {
        let known = from.at() < self.racks && to.at() < self.racks;
        Bytes(if known { self.bytes[from.at() * self.racks + to.at()] } else { 0 })
    }

    /// Of all pairs.
    #[must_use]
    pub fn total(&self) -> Bytes {
        Bytes(self.bytes.iter().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes)))
    }
}
