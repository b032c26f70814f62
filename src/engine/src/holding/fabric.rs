//! What links of a cluster and its racks can carry, worked out once for a snapshot: jobs ask every second, and it changes with the snapshot only.

use super::{Lane, LaneCapacity};
use hintd_model::cluster::Snapshot;
use hintd_model::units::{NodeIdx, RackIdx};
use hintd_policy::terms::link_time::LinkRates;
use hintd_policy::terms::rack_rates::RackRates;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What was worked out of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct FabricScans {
    uplinks: OnceLock<f64>,
    /// By rack: bytes a second into all of its nodes together.
    access: OnceLock<Vec<f64>>,
    /// By rack: bytes a second out of it over its uplinks.
    up: OnceLock<Vec<f64>>,
    /// Containers by their memory, MB, for the first few sizes; more are counted anew each time.
    containers: [OnceLock<(u64, u32)>; SIZES_KEPT],
    /// Looks at all racks or all nodes.
    looks: AtomicU32,
}

/// Sizes of containers remembered for a snapshot.
const SIZES_KEPT: usize = 8;

impl FabricScans {
    /// What the lane can carry, whatever is measured on links, and how many containers of that memory it has.
    pub(crate) fn of(&self, snapshot: &Snapshot, lane: Lane, memory_mb: u64) -> LaneCapacity {
        match lane {
            Lane::Uplinks => self.uplinks(snapshot, memory_mb),
            Lane::Rack(rack) => self.rack(snapshot, rack, memory_mb),
        }
    }

    /// Bytes a second that the uplinks of those racks carry together, out of them; infinite where one can't be full.
    pub(crate) fn up(&self, snapshot: &Snapshot, racks: impl Iterator<Item = RackIdx>) -> f64 {
        let up = self.up.get_or_init(|| {
            let rates = LinkRates::capacities(snapshot);
            (0..snapshot.statics.racks.len()).map(|rack| rates.rack(RackIdx::new(rack)).up).collect()
        });
        racks.map(|rack| up[rack.at()]).sum()
    }

    /// Nodes of one rack are few enough to be counted each time.
    fn rack(&self, snapshot: &Snapshot, rack: RackIdx, memory_mb: u64) -> LaneCapacity {
        let access = self.access.get_or_init(|| {
            self.looks.fetch_add(1, Ordering::Relaxed);
            access(snapshot)
        });
        let nodes = snapshot.statics.members[rack.at()].iter().copied();
        LaneCapacity { rate: access[rack.at()], containers: containers(snapshot, nodes, memory_mb) }
    }

    fn uplinks(&self, snapshot: &Snapshot, memory_mb: u64) -> LaneCapacity {
        let look = || {
            self.looks.fetch_add(1, Ordering::Relaxed);
        };
        let rate = *self.uplinks.get_or_init(|| {
            look();
            RackRates::capacities(snapshot).uplinks()
        });
        let count = || {
            look();
            containers(snapshot, snapshot.statics.indexes(), memory_mb)
        };
        for kept in &self.containers {
            let &(size, containers) = kept.get_or_init(|| (memory_mb, count()));
            if size == memory_mb {
                return LaneCapacity { rate, containers };
            }
        }
        LaneCapacity { rate, containers: count() }
    }

    /// How often all racks or all nodes were looked at.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }
}

fn containers(snapshot: &Snapshot, nodes: impl Iterator<Item = NodeIdx>, memory_mb: u64) -> u32 {
    let all: u64 = nodes.map(|node| snapshot.statics.total[node.at()].memory_mb() / memory_mb.max(1)).sum();
    u32::try_from(all).unwrap_or(u32::MAX)
}

/// By rack: bytes a second into all of its nodes together, by access links alone.
#[must_use]
pub fn access(snapshot: &Snapshot) -> Vec<f64> {
    let rates = LinkRates::capacities(snapshot);
    (0..snapshot.statics.members.len()).map(|rack| rates.into_rack(RackIdx::new(rack))).collect()
}
