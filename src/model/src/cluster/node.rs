//! Nodes: states in YARN's words, and what changes rarely about them.

use super::resource::{NamedResource, Resource};
use crate::units::{Bytes, ClassIdx, HostName, NodeIdx, RackIdx, RackPath};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A node's state: YARN's `NodeState`, and what the daemon itself knows of silent or unseen nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeState {
    /// Named by a recovered lease, not registered since: its size is unknown.
    Unregistered,
    /// Heard from and healthy: the only state that gets hints.
    Running,
    /// Silent for longer than the stale limit.
    Stale,
    /// Reported so by the node.
    Unhealthy,
    /// Draining.
    Decommissioning,
    /// Gone by an admin's order.
    Decommissioned,
    /// Silent for longer than the lost limit, or reported lost.
    Lost,
    /// Stopped in order.
    Shutdown,
}

impl NodeState {
    /// Whether new containers may go there.
    #[must_use]
    pub const fn usable(self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether what ran there is to be placed anew.
    #[must_use]
    pub const fn gone(self) -> bool {
        matches!(self, Self::Decommissioned | Self::Lost | Self::Shutdown)
    }

    /// YARN's word (`Stale` and `Unregistered` are ours).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unregistered => "UNREGISTERED",
            Self::Running => "RUNNING",
            Self::Stale => "STALE",
            Self::Unhealthy => "UNHEALTHY",
            Self::Decommissioning => "DECOMMISSIONING",
            Self::Decommissioned => "DECOMMISSIONED",
            Self::Lost => "LOST",
            Self::Shutdown => "SHUTDOWN",
        }
    }

    /// Every state, for metrics and tables.
    pub const ALL: [Self; 8] = [
        Self::Unregistered,
        Self::Running,
        Self::Stale,
        Self::Unhealthy,
        Self::Decommissioning,
        Self::Decommissioned,
        Self::Lost,
        Self::Shutdown,
    ];

    /// The state of YARN's word, without or with the `NS_` of its protobuf enum.
    #[must_use]
    pub fn from_yarn(word: &str) -> Option<Self> {
        match word.strip_prefix("NS_").unwrap_or(word) {
            "NEW" | "RUNNING" | "REBOOTED" => Some(Self::Running),
            "UNHEALTHY" => Some(Self::Unhealthy),
            "DECOMMISSIONING" => Some(Self::Decommissioning),
            "DECOMMISSIONED" => Some(Self::Decommissioned),
            "LOST" => Some(Self::Lost),
            "SHUTDOWN" => Some(Self::Shutdown),
            _ => None,
        }
    }
}

/// Label bits; the table of names stands in [`NodeStatics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelBits(pub u64);

/// Labels a cluster may have: one bit each.
pub const LABELS_MAX: usize = 64;

/// Machine classes a cluster may have.
pub const CLASSES_MAX: usize = 1_024;

/// What a node said when it registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// YARN's spelling.
    pub host: HostName,
    /// Its rack.
    pub rack: RackPath,
    /// What it offers.
    pub total: NamedResource,
    /// Its labels.
    pub labels: Vec<Arc<str>>,
    /// Its attributes.
    pub attributes: BTreeMap<String, String>,
    /// Its machine class; empty: none.
    pub class: Arc<str>,
    /// Other names of the host.
    pub aliases: Vec<Arc<str>>,
    /// Bytes a second off the local disks; zero: unknown.
    pub disk_read: Bytes,
    /// Its state.
    pub state: NodeState,
}

/// Columns that change only when a node registers or goes; shared by many snapshots.
#[derive(Debug, Clone, Default)]
pub struct NodeStatics {
    /// Host name by node.
    pub host: Vec<HostName>,
    /// Rack by node.
    pub rack: Vec<RackIdx>,
    /// Offered by node.
    pub total: Vec<Resource>,
    /// Labels by node.
    pub labels: Vec<LabelBits>,
    /// Machine class by node.
    pub class: Vec<ClassIdx>,
    /// Disk read rate by node, bytes a second; zero: unknown.
    pub disk_read: Vec<Bytes>,
    /// Attributes by node.
    pub attributes: Vec<Arc<BTreeMap<String, String>>>,
    /// Node by YARN's host name.
    pub by_host: HashMap<HostName, NodeIdx>,
    /// Node by any other name (HDFS, SDN).
    pub by_alias: HashMap<Arc<str>, NodeIdx>,
    /// Rack paths by rack.
    pub racks: Vec<RackPath>,
    /// Rack by path.
    pub by_rack: HashMap<RackPath, RackIdx>,
    /// Nodes of each rack, ascending.
    pub members: Vec<Vec<NodeIdx>>,
    /// Label names by bit.
    pub label_names: Vec<Arc<str>>,
    /// Class names by class; the first is the empty one.
    pub class_names: Vec<Arc<str>>,
}

impl NodeStatics {
    /// The node of a name in YARN's, HDFS's or the SDN's spelling.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeIdx> {
        self.by_host.get(name).or_else(|| self.by_alias.get(name)).copied()
    }

    /// The bit of a label.
    #[must_use]
    pub fn label_bit(&self, name: &str) -> Option<LabelBits> {
        self.label_names.iter().position(|known| &**known == name).map(|bit| LabelBits(1 << bit))
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.host.len()
    }

    /// Whether no node was ever named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.host.is_empty()
    }

    /// Every node's index, ascending.
    pub fn indexes(&self) -> impl Iterator<Item = NodeIdx> + use<> {
        (0..self.len()).map(NodeIdx::new)
    }
}
