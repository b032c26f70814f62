//! What went where: bytes by kind and by how far they came.

use crate::report::RackBytes;
use hintd_model::units::{Bytes, RackIdx};
use serde::{Deserialize, Serialize};

/// How far something lies from its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// On the reader's node: no network.
    Node,
    /// On another node of its rack.
    Rack,
    /// In another rack.
    CrossRack,
}

/// Whole bytes that have arrived. A fetch or read counts when its last byte is there; one that is broken off counts
/// nothing. A task that runs again fetches again, and its bytes count again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FabricBytes {
    /// Map input read on its node.
    pub node_local_input: Bytes,
    /// Map input from another node of the rack.
    pub rack_local_input: Bytes,
    /// Map input from another rack.
    pub cross_rack_input: Bytes,
    /// Shuffle that stayed on its node.
    pub node_local_shuffle: Bytes,
    /// Shuffle from another node of the rack.
    pub rack_local_shuffle: Bytes,
    /// Shuffle from another rack.
    pub cross_rack_shuffle: Bytes,
}

impl FabricBytes {
    /// Input and shuffle that crossed racks.
    #[must_use]
    pub const fn cross_rack(&self) -> Bytes {
        self.cross_rack_input.saturating_add(self.cross_rack_shuffle)
    }

    /// All shuffle, what stayed on its node too.
    #[must_use]
    pub const fn shuffle(&self) -> Bytes {
        self.node_local_shuffle.saturating_add(self.rack_local_shuffle).saturating_add(self.cross_rack_shuffle)
    }

    pub(super) const fn add_input(&mut self, locality: Locality, bytes: u64) {
        let kind = match locality {
            Locality::Node => &mut self.node_local_input,
            Locality::Rack => &mut self.rack_local_input,
            Locality::CrossRack => &mut self.cross_rack_input,
        };
        *kind = kind.saturating_add(Bytes(bytes));
    }

    pub(super) const fn add_shuffle(&mut self, locality: Locality, bytes: u64) {
        let kind = match locality {
            Locality::Node => &mut self.node_local_shuffle,
            Locality::Rack => &mut self.rack_local_shuffle,
            Locality::CrossRack => &mut self.cross_rack_shuffle,
        };
        *kind = kind.saturating_add(Bytes(bytes));
    }
}

/// What crossed racks, by rack.
#[derive(Debug, Clone)]
pub(super) struct Crossed {
    by_rack: Vec<RackBytes>,
    /// Bytes that links carry for each byte.
    wire: f64,
}

impl Crossed {
    pub(super) fn new(racks: usize, wire: f64) -> Self {
        Self { by_rack: vec![RackBytes::default(); racks], wire }
    }

    pub(super) fn add(&mut self, from: RackIdx, to: RackIdx, bytes: u64) {
        if from == to {
            return;
        }
        let carried = (bytes as f64 * self.wire).round() as u64;
        self.by_rack[from.at()].out += carried;
        self.by_rack[to.at()].into += carried;
    }

    pub(super) fn by_rack(&self) -> &[RackBytes] {
        &self.by_rack
    }
}
