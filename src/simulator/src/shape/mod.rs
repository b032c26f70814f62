//! Clusters in a dozen lines: the format `hintd.shape/1`, its checks, and the papers' clusters that are shipped by name.
//!
//! # Code map
//! - this file: the document. `classes`: machines that are not alike. `check`: what can be wrong with it, told as `found`. `names`: of its hosts. `build`: the cluster it describes, and one made of a
//!   whole `hintd.cluster/1` document. `shipped`: the files of `config/clusters`.

mod build;
mod check;
mod classes;
mod found;
mod names;
mod shipped;
#[cfg(test)]
mod tests;

pub use build::{Joined, of_document};
pub use check::MOST_NODES;
pub use classes::NodeClass;
pub use found::MOST_CONTAINERS_PER_NODE;
pub use shipped::{Shipped, nearest, shipped};

use super::settings::FlowGrain;
use hintd_model::cluster::document::DocumentProblem;
use hintd_model::network::OpticalSection;
use hintd_model::units::{BitsPerSec, Bytes};
use serde::{Deserialize, Serialize};

/// What [`ClusterShape::format`] must say.
pub const SHAPE_FORMAT: &str = "hintd.shape/1";

/// A cluster of equal nodes in equal racks, but for the racks of its classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterShape {
    /// [`SHAPE_FORMAT`].
    pub format: String,
    /// Racks, each with one switch.
    pub racks: usize,
    /// Nodes of each rack.
    pub nodes_per_rack: usize,
    /// Containers of each node; a node has room for so many and no more.
    pub containers_per_node: u32,
    /// Memory of a container, MB.
    #[serde(default = "ClusterShape::container_memory_mb")]
    pub container_memory_mb: u64,
    /// Virtual cores of a container.
    #[serde(default = "ClusterShape::container_vcores")]
    pub container_vcores: u64,
    /// Capacity of a node's link, each direction.
    pub nic_bits_per_s: BitsPerSec,
    /// Capacity of each single link up from a rack's switch, each direction.
    pub uplink_bits_per_s: BitsPerSec,
    /// Users who share it, for runs that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// What joins the racks.
    #[serde(default)]
    pub core: Core,
    /// Racks of machines that are not like the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<NodeClass>,
}

/// What joins the racks of a [`ClusterShape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Core {
    /// One switch that never is the bottleneck: only uplinks are.
    #[default]
    NonBlocking,
    /// So many core switches, an uplink of each rack to every one of them.
    Switches {
        /// Core switches.
        switches: usize,
    },
    /// Racks in pods; each pod's switch has one link to the core, which all that leaves the pod shares.
    Pods {
        /// Racks of a pod, the last one taking what is left.
        racks_per_pod: usize,
        /// Capacity of a pod's link to the core, each direction.
        pod_uplink_bits_per_s: BitsPerSec,
    },
    /// A fat-tree, cut down to the racks; all links have the NICs' capacity.
    FatTree {
        /// Ports of each switch; half of them lead to nodes.
        ports: usize,
    },
    /// A jellyfish: rack switches joined at random; all links have the NICs' capacity.
    Jellyfish {
        /// Links of each rack's switch to others.
        links_per_switch: usize,
        /// Random seed.
        #[serde(default)]
        seed: u64,
    },
    /// One electrical switch that never is the bottleneck, and an optical one whose circuits elephants ride
    /// ([`hintd_model::network::optical`]).
    Optical {
        /// Capacity of a rack's optical port, each direction.
        optical_bits_per_s: BitsPerSec,
        /// Ports: the first so many racks have one, the others' traffic goes by packets; left out: one for each rack.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ports: Option<usize>,
        /// Time between two choices of circuits, ms.
        #[serde(default = "OpticalSection::interval_ms")]
        interval_ms: u64,
        /// How long all circuits pause when one changes, ms.
        #[serde(default = "OpticalSection::pause_ms")]
        pause_ms: u64,
        /// From so many bytes on a job's shuffle between two racks is an elephant; left out: nine pauses of a circuit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elephant_bytes: Option<Bytes>,
        /// An elephant that has waited so long goes by packets, ms; left out: 30 intervals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patience_ms: Option<u64>,
    },
}

impl ClusterShape {
    const fn container_memory_mb() -> u64 {
        1024
    }

    const fn container_vcores() -> u64 {
        1
    }

    /// Nodes of all racks.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.summed(|_| 1)
    }

    /// Containers of all nodes.
    #[must_use]
    pub fn containers(&self) -> u64 {
        self.summed(|containers| containers as usize) as u64
    }

    /// How finely its traffic is told apart where a run does not say: by racks if only uplinks can be the bottleneck
    /// between racks.
    #[must_use]
    pub const fn grain(&self) -> FlowGrain {
        match self.core {
            Core::NonBlocking | Core::Switches { .. } | Core::Optical { .. } => FlowGrain::Racks,
            Core::Pods { .. } | Core::FatTree { .. } | Core::Jellyfish { .. } => FlowGrain::Nodes,
        }
    }

    /// All that is wrong with the shape, by field; nothing: it can be built.
    #[must_use]
    pub fn problems(&self) -> Vec<DocumentProblem> {
        check::problems(self)
    }
}
