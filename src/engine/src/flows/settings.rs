//! Settings of flows and routes.

use hintd_model::units::{Bytes, Micros};

/// Settings of flows and routes. Every default is an operator's safe start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSettings {
    /// Pairs of nodes that send less, all jobs together, go by default forwarding.
    pub min_bytes: Bytes,
    /// Rules on one switch; a pair whose route needs one more goes by default forwarding.
    pub rules_per_switch: u32,
    /// Routes changed in one second because of the network; failures first, the others later.
    pub changes_per_s: u32,
    /// Steps of one search for routes on the engine's thread.
    pub steps: u64,
    /// Pairs of nodes kept track of; the oldest decisions' go first, to default forwarding.
    pub pairs_max: usize,
    /// Flows of a decision of which no lease is held end when no container of its attempt was known for so long. A
    /// watcher whose stream broke may come back as long.
    pub keep_flows: Micros,
    /// An update that is not acknowledged in this time is followed by a snapshot.
    pub ack_timeout: Micros,
    /// Snapshots sent so before a watcher counts as silent.
    pub ack_tries: u32,
    /// Updates kept by watcher, for those that come back.
    pub updates_keep: usize,
    /// A link that changed its state more often than this `within` the time is avoided …
    pub flaps: u32,
    /// … for new routes …
    pub within: Micros,
    /// … until it was quiet for so long.
    pub hold: Micros,
    /// Traffic under chains of middleboxes.
    pub chains: ChainSettings,
}

/// What is taken for known of traffic under chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainSettings {
    /// A flow's bytes are to be moved within this time: bytes over it is what a flow takes of each box.
    pub transfer: Micros,
    /// Port that receivers are asked on, for chains that name ports; the protocol is TCP.
    pub port: u16,
}

impl Default for ChainSettings {
    /// As `hit` and `pat` have it; the port is MapReduce's shuffle handler's.
    fn default() -> Self {
        Self { transfer: Micros::from_secs(60), port: 13_562 }
    }
}

impl Default for RouteSettings {
    fn default() -> Self {
        Self {
            min_bytes: Bytes(1 << 20),
            rules_per_switch: 2_000,
            changes_per_s: 10_000,
            steps: 2_000,
            pairs_max: 200_000,
            keep_flows: Micros::from_secs(60),
            ack_timeout: Micros::from_secs(5),
            ack_tries: 3,
            updates_keep: 1_024,
            flaps: 4,
            within: Micros::from_secs(60),
            hold: Micros::from_secs(30),
            chains: ChainSettings::default(),
        }
    }
}
