//! What can be wrong with an `optical` section.

use crate::network::tier::Tier;
use crate::units::LinkName;
use std::sync::Arc;

/// Longest time that can be meant, ms: an hour.
pub const MOST_MS: u64 = 3_600_000;

/// What is wrong with an `optical` section, or of note.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpticalProblem {
    /// No switch of that name.
    #[error("optical.switch: there is no switch \"{switch}\"")]
    UnknownSwitch {
        /// The name.
        switch: String,
    },
    /// A switch of packets.
    #[error("optical.switch: \"{switch}\" is of tier {tier}, not optical")]
    NotOptical {
        /// The name.
        switch: String,
        /// Its tier.
        tier: Tier,
    },
    /// A time that no switch is configured at.
    #[error("optical.interval_ms is {interval_ms}, not from 1 to {MOST_MS}")]
    Interval {
        /// What it says.
        interval_ms: u64,
    },
    /// A switch that would never carry anything.
    #[error("optical.pause_ms is {pause_ms}: with a choice every {interval_ms} ms no time is left to send")]
    Pause {
        /// What it says.
        pause_ms: u64,
        /// Time between two choices.
        interval_ms: u64,
    },
    /// Everything would be an elephant.
    #[error("optical.elephant_bytes is 0: leave it out for what a circuit carries in nine pauses")]
    NoElephant,
    /// A wait that can't be meant.
    #[error("optical.patience_ms is {patience_ms}, more than {MOST_MS}")]
    Patience {
        /// What it says.
        patience_ms: u64,
    },
    /// Nothing hangs on it.
    #[error("optical switch \"{switch}\" has no ports: no rack's switch has a link to it")]
    NoPorts {
        /// The switch.
        switch: Arc<str>,
    },
    /// More ports than racks.
    #[error("\"{rack_switch}\" has two ports at the optical switch, \"{first}\" and \"{second}\": a rack has one")]
    TwoPorts {
        /// The rack's switch, or the rack.
        rack_switch: Arc<str>,
        /// One port.
        first: LinkName,
        /// The other.
        second: LinkName,
    },
    /// A port that no rack's switch hangs on.
    #[error("optical port \"{port}\" leads to \"{far}\", which is not a rack's switch")]
    OffRack {
        /// The link.
        port: LinkName,
        /// Its other end.
        far: Arc<str>,
    },
    /// A port of a rack that the cluster does not have.
    #[error("optical port \"{port}\" leads to \"{far}\", behind which the cluster has no rack")]
    UnknownRack {
        /// The link.
        port: LinkName,
        /// The switch.
        far: Arc<str>,
    },
    /// A port that carries nothing.
    #[error("optical port \"{port}\" has capacity 0")]
    ZeroBandwidth {
        /// The link.
        port: LinkName,
    },
    /// Fewer ports than racks.
    #[error("no port at optical switch \"{switch}\" for {}: what they send and get goes by packets", named(racks, *count))]
    WithoutPort {
        /// The switch.
        switch: Arc<str>,
        /// The first few racks' switches.
        racks: Vec<Arc<str>>,
        /// How many there are.
        count: usize,
    },
}

impl OpticalProblem {
    /// Whether the network works all the same.
    #[must_use]
    pub const fn is_warning(&self) -> bool {
        matches!(self, Self::WithoutPort { .. })
    }
}

fn named(racks: &[Arc<str>], count: usize) -> String {
    let listed: Vec<String> = racks.iter().map(|rack| format!("\"{rack}\"")).collect();
    let more = count.saturating_sub(racks.len());
    if more == 0 { listed.join(", ") } else { format!("{} and {more} more", listed.join(", ")) }
}
