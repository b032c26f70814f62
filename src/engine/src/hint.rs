//! One hint: some containers of a group, and the host that is best for them.

use hintd_model::units::{HostName, LeaseId, Micros, RackPath, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where some containers of one group should go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// Group name.
    pub group: Arc<str>,
    /// Number of the first of these containers within the group.
    pub first_index: u32,
    /// How many.
    pub count: u32,
    /// Preferred host.
    pub host: HostName,
    /// Next best, best first.
    pub fallbacks: Vec<HostName>,
    /// Racks of host and fallbacks, host's first.
    pub racks: Vec<RackPath>,
    /// One per container; empty: no room, or shadow mode.
    pub leases: Vec<LeaseId>,
    /// When the leases end.
    pub expires: Option<Timestamp>,
    /// Where there was no room: expected wait, if it can be told.
    pub expected_wait: Option<Micros>,
    /// 0..1: falls with missing and old inputs.
    pub confidence: f64,
}
