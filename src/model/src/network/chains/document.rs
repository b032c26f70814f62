//! Middleboxes and chains as an operator writes them.

use serde::{Deserialize, Serialize};

/// All middleboxes and chains: the whole replaces what was declared before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChainsDocument {
    /// Task groups that chains may name beside `map` and `reduce`: names or roles of a request's groups.
    pub groups: Vec<String>,
    /// Middleboxes.
    pub boxes: Vec<BoxEntry>,
    /// Chains.
    pub chains: Vec<ChainEntry>,
}

impl ChainsDocument {
    /// Whether nothing is declared.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.boxes.is_empty() && self.chains.is_empty()
    }
}

/// One middlebox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxEntry {
    /// Its name, unique among boxes.
    pub name: String,
    /// What it is: `FW`, `IPS`, `LB` or any other word; chains ask for it by this.
    #[serde(rename = "type")]
    pub kind: String,
    /// The switch it hangs on.
    pub at: String,
    /// What it carries, bits per second. Signed, so that a negative one is a problem with the box's name on it.
    pub bits_per_s: i64,
    /// Whether it is up; left out when it is.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub up: bool,
}

/// One chain: which traffic, and which types of box it passes, in order. What is left out matches anything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainEntry {
    /// Its name, unique among chains.
    pub name: String,
    /// Of the chains that match a flow, the one of highest priority holds.
    #[serde(default)]
    pub priority: i32,
    /// An application's recurring key or id; with `*` at its end, all that begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// A queue and all below it: `root.prod` covers `root.prod.etl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// A task group, by name or role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether the group sends, receives, or either; without a group of no account.
    #[serde(default, skip_serializing_if = "Direction::is_both")]
    pub direction: Direction,
    /// First and last port of the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<(u16, u16)>,
    /// Transport protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Types to pass, from the sender on; one to three, no type twice.
    pub sequence: Vec<String>,
    /// What becomes of a flow that has no way through all of them.
    #[serde(default, skip_serializing_if = "WhenBroken::is_closed")]
    pub when_broken: WhenBroken,
}

/// Which side of a flow a chain's group is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The group sends.
    Out,
    /// The group receives.
    In,
    /// Either.
    #[default]
    Both,
}

/// Transport protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What becomes of a flow for which no way through its chain is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenBroken {
    /// It has no route, and no placement that needs it is made.
    #[default]
    Closed,
    /// It passes those of its boxes that can be reached.
    Open,
}

impl Direction {
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    fn is_both(&self) -> bool {
        *self == Self::Both
    }
}

impl WhenBroken {
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    fn is_closed(&self) -> bool {
        *self == Self::Closed
    }
}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_yes(up: &bool) -> bool {
    *up
}
