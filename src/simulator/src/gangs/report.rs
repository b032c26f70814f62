//! What a run tells of each application.

use hintd_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GangReport {
    /// In the order given.
    pub apps: Vec<AppReport>,
    /// When the last one ended, seconds; 0 without any.
    pub makespan_s: f64,
    /// Starts, ends and timers.
    pub events: u64,
}

/// One application.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AppReport {
    /// When it came, seconds.
    pub submit_s: f64,
    /// When its containers were placed, seconds.
    pub start_s: f64,
    /// When its last phase ended, seconds.
    pub end_s: f64,
    /// When each of its phases ended, seconds.
    #[serde(default)]
    pub phase_end_s: Vec<f64>,
    /// It never ran: not even the empty cluster has room for it. Then its other figures are 0.
    pub never_fits: bool,
    /// Bytes of edges between tasks on different nodes.
    pub remote: Bytes,
    /// Of these, bytes between racks.
    pub cross_rack: Bytes,
    /// Bytes of edges between tasks on one node.
    pub local: Bytes,
    /// Input read from other nodes.
    pub remote_read: Bytes,
    /// Of it, from other racks.
    pub cross_rack_read: Bytes,
    /// Input read from the node's own disk.
    pub local_read: Bytes,
    /// Nodes that its containers ran on, without its ApplicationMaster's.
    pub nodes: u32,
}

impl AppReport {
    /// From its coming to its end, seconds.
    #[must_use]
    pub fn completion_s(&self) -> f64 {
        self.end_s - self.submit_s
    }

    /// From its placement to its end, seconds.
    #[must_use]
    pub fn run_s(&self) -> f64 {
        self.end_s - self.start_s
    }
}
