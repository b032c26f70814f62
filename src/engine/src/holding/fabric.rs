//! What a cluster can carry, worked out once for a snapshot: jobs ask every second, and it changes with the snapshot only.

use super::Fabric;
use hintd_model::cluster::Snapshot;
use hintd_policy::terms::link_time::RackRates;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What was worked out of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct FabricScans {
    uplinks: OnceLock<f64>,
    /// Containers by their memory, MB, for the first few sizes; more are counted anew each time.
    containers: [OnceLock<(u64, u32)>; SIZES_KEPT],
    /// Looks at all racks or all nodes.
    looks: AtomicU32,
}

/// Sizes of containers remembered for a snapshot.
const SIZES_KEPT: usize = 8;

impl FabricScans {
    /// What the cluster can carry, whatever is measured on links, and how many containers of that memory it has.
    pub(crate) fn of(&self, snapshot: &Snapshot, memory_mb: u64) -> Fabric {
        let look = || {
            self.looks.fetch_add(1, Ordering::Relaxed);
        };
        let uplinks = *self.uplinks.get_or_init(|| {
            look();
            RackRates::capacities(snapshot).uplinks()
        });
        let count = || {
            look();
            containers(snapshot, memory_mb)
        };
        for kept in &self.containers {
            let &(size, containers) = kept.get_or_init(|| (memory_mb, count()));
            if size == memory_mb {
                return Fabric { uplinks, containers };
            }
        }
        Fabric { uplinks, containers: count() }
    }

    /// How often all racks or all nodes were looked at.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }
}

fn containers(snapshot: &Snapshot, memory_mb: u64) -> u32 {
    let all: u64 = snapshot.statics.total.iter().map(|total| total.memory_mb() / memory_mb.max(1)).sum();
    u32::try_from(all).unwrap_or(u32::MAX)
}
