//! The `optical` section of network documents.

use super::ports::ports;
use crate::network::{Network, Tier};
use crate::units::{Bytes, LinkName, Micros};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How the circuits of an optical switch are chosen. Without such a section its ports stay dark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpticalSection {
    /// Name of the switch, one of tier `optical`; its links are the racks' ports, whether they are up or not: a port
    /// without a circuit is dark.
    pub switch: String,
    /// Time between two choices of circuits, ms (004 §4.3.2: 1 s).
    #[serde(default = "OpticalSection::interval_ms")]
    pub interval_ms: u64,
    /// How long all circuits pause when one changes, ms (004 §4.1.1: 10 ms for 3D-MEMS).
    #[serde(default = "OpticalSection::pause_ms")]
    pub pause_ms: u64,
    /// What a job sends from a rack to another is an elephant from so many bytes on; left out: what a circuit carries in
    /// nine pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elephant_bytes: Option<Bytes>,
    /// An elephant that has waited so long for a circuit goes by packets until it gets one, ms; left out: 30 intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
}

impl OpticalSection {
    /// The default of [`Self::interval_ms`].
    #[must_use]
    pub const fn interval_ms() -> u64 {
        1_000
    }

    /// The default of [`Self::pause_ms`].
    #[must_use]
    pub const fn pause_ms() -> u64 {
        10
    }

    /// The defaults, for that switch.
    #[must_use]
    pub fn of(switch: &str) -> Self {
        let (interval_ms, pause_ms) = (Self::interval_ms(), Self::pause_ms());
        Self { switch: switch.to_owned(), interval_ms, pause_ms, elephant_bytes: None, patience_ms: None }
    }

    /// [`Self::interval_ms`].
    #[must_use]
    pub const fn interval(&self) -> Micros {
        Micros::from_millis(self.interval_ms)
    }

    /// [`Self::pause_ms`].
    #[must_use]
    pub const fn pause(&self) -> Micros {
        Micros::from_millis(self.pause_ms)
    }

    /// [`Self::patience_ms`], or its default.
    #[must_use]
    pub const fn patience(&self) -> Micros {
        Micros::from_millis(match self.patience_ms {
            Some(patience_ms) => patience_ms,
            None => self.interval_ms.saturating_mul(30),
        })
    }

    /// All that is wrong with the section in that network.
    #[must_use]
    pub fn problems(&self, network: &Network) -> Vec<OpticalProblem> {
        let mut problems = Vec::new();
        if self.interval_ms == 0 || self.interval_ms > MOST_MS {
            problems.push(OpticalProblem::Interval { interval_ms: self.interval_ms });
        }
        if self.pause_ms >= self.interval_ms {
            problems.push(OpticalProblem::Pause { pause_ms: self.pause_ms, interval_ms: self.interval_ms });
        }
        if self.elephant_bytes == Some(Bytes::ZERO) {
            problems.push(OpticalProblem::NoElephant);
        }
        if self.patience_ms.is_some_and(|patience_ms| patience_ms > MOST_MS) {
            problems.push(OpticalProblem::Patience { patience_ms: self.patience_ms.unwrap_or_default() });
        }
        let found = network.vertex(&self.switch);
        match found.map(|vertex| (vertex, network.vertex_at(vertex).tier())) {
            None => problems.push(OpticalProblem::UnknownSwitch { switch: self.switch.clone() }),
            Some((_, None)) => problems.push(OpticalProblem::UnknownSwitch { switch: self.switch.clone() }),
            Some((vertex, Some(Tier::Optical))) => problems.extend(ports(network, vertex).1),
            Some((_, Some(tier))) => {
                problems.push(OpticalProblem::NotOptical { switch: self.switch.clone(), tier });
            }
        }
        problems
    }
}

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
