//! What the adapter is started with; `config` reads and checks it.

use super::graph::Capacities;
use super::names::Names;
use super::table::FlowEntryMarks;
use std::path::PathBuf;
use std::time::Duration;

/// One Ryu controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RyuOptions {
    /// Host and port of its REST interface.
    pub authority: String,
    /// Time between two looks at switches, links, hosts and ports.
    pub poll: Duration,
    /// Time between two readings of port counters.
    pub counters: Duration,
    /// An answer that takes longer is none.
    pub timeout: Duration,
    /// The longest wait after failures; it doubles from [`BACKOFF_FIRST`](crate::rest_client::BACKOFF_FIRST) and is spread at random.
    pub backoff: Duration,
    /// Bytes of one answer.
    pub answer_bytes: usize,
    /// How long a deleted link waits for its contrary.
    pub debounce: Duration,
    /// How long absence means nothing after trouble.
    pub settle: Duration,
    /// Whether routes are installed.
    pub install: bool,
    /// Whether the network has forwarding rules of ours for what has no route.
    pub forward: bool,
    /// How long a switch may take to show what it was told.
    pub confirm: Duration,
    /// Time between two comparisons of all tables with what they should hold.
    pub audit: Duration,
    /// How long after the start rules of an earlier life stay that nobody has wanted yet.
    pub orphans: Duration,
    /// How own rules are told.
    pub marks: FlowEntryMarks,
    /// Capacities to believe instead of described ones.
    pub capacities: Capacities,
    /// Names given one by one.
    pub names: Names,
    /// A hosts file that names hosts by IPv4 address.
    pub hosts_file: Option<PathBuf>,
}
