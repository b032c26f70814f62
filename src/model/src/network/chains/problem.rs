//! What can be wrong with declared middleboxes and chains.

use std::sync::Arc;

/// Why a declaration is refused, or what is asked of it is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainProblem {
    /// A box or chain without a name, or a box without a type.
    #[error("a {what} is empty")]
    Empty {
        /// `box's name`, `chain's name`, `box's type` or `group's name`.
        what: &'static str,
    },
    /// More than can be matched and looked through in time.
    #[error("{count} {what} are declared: at most {most}")]
    TooMany {
        /// `middleboxes`, `chains` or `types of middlebox`.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// Two boxes of one name.
    #[error("middlebox \"{name}\" is given twice")]
    DuplicateBox {
        /// The name.
        name: Arc<str>,
    },
    /// Two chains of one name.
    #[error("chain \"{name}\" is given twice")]
    DuplicateChain {
        /// The name.
        name: Arc<str>,
    },
    /// A box that carries nothing.
    #[error("middlebox \"{name}\" has capacity {bits_per_s} bit/s: it must carry something")]
    NoCapacity {
        /// The box.
        name: Arc<str>,
        /// What was declared.
        bits_per_s: i64,
    },
    /// A box that hangs on nothing that is known.
    #[error("middlebox \"{name}\" hangs on \"{at}\", which the network does not know")]
    UnknownSwitch {
        /// The box.
        name: Arc<str>,
        /// What was declared.
        at: Arc<str>,
    },
    /// A box that hangs on a host or a circuit switch.
    #[error("middlebox \"{name}\" hangs on \"{at}\", which is no packet switch")]
    NoSwitch {
        /// The box.
        name: Arc<str>,
        /// What was declared.
        at: Arc<str>,
    },
    /// A chain that passes nothing.
    #[error("chain \"{chain}\" has an empty sequence")]
    EmptySequence {
        /// The chain.
        chain: Arc<str>,
    },
    /// A chain that passes more than is looked for.
    #[error("chain \"{chain}\" passes {len} boxes, more than {most}")]
    LongSequence {
        /// The chain.
        chain: Arc<str>,
        /// Types in it.
        len: usize,
        /// The limit.
        most: usize,
    },
    /// A chain that passes a type twice: which box would be the second is not decided.
    #[error("chain \"{chain}\" passes type \"{kind}\" twice")]
    RepeatedType {
        /// The chain.
        chain: Arc<str>,
        /// The type.
        kind: Arc<str>,
    },
    /// A type of which no box is declared.
    #[error("chain \"{chain}\" passes type \"{kind}\", which no middlebox is of{}", meant(near.as_ref()))]
    UnknownType {
        /// The chain.
        chain: Arc<str>,
        /// The type.
        kind: Arc<str>,
        /// The type that was probably meant.
        near: Option<Arc<str>>,
    },
    /// A group that is not declared.
    #[error("chain \"{chain}\" names group \"{group}\", which is not declared{}", meant(near.as_ref()))]
    UnknownGroup {
        /// The chain.
        chain: Arc<str>,
        /// The group.
        group: Arc<str>,
        /// The group that was probably meant.
        near: Option<Arc<str>>,
    },
    /// Ports the wrong way round.
    #[error("chain \"{chain}\" has ports from {first} to {last}, which are none")]
    NoPorts {
        /// The chain.
        chain: Arc<str>,
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
    /// Two chains that ask different things of one flow, neither before the other.
    #[error(
        "chains \"{a}\" and \"{b}\" contradict each other: a flow may match both, and both have priority {priority}"
    )]
    Contradiction {
        /// One, by name.
        a: Arc<str>,
        /// The other.
        b: Arc<str>,
        /// Of both.
        priority: i32,
    },
    /// Types whose boxes no path joins, even with everything up.
    #[error(
        "no path leads through the sequence of chain \"{chain}\": nothing joins a box of type \"{from}\" to one of type \"{to}\""
    )]
    NoPath {
        /// The chain.
        chain: Arc<str>,
        /// A type.
        from: Arc<str>,
        /// The next, or the one that no host can reach if both are the same.
        to: Arc<str>,
    },
    /// A chain that is to go while flows use it.
    #[error("chain \"{chain}\" is used by {flows} flows: end them or keep it")]
    InUse {
        /// The chain.
        chain: Arc<str>,
        /// Flows that have it.
        flows: u64,
    },
    /// No such box.
    #[error("there is no middlebox \"{name}\"{}", meant(near.as_ref()))]
    UnknownBox {
        /// What was asked for.
        name: Arc<str>,
        /// The box that was probably meant.
        near: Option<Arc<str>>,
    },
}

fn meant(near: Option<&Arc<str>>) -> String {
    near.map(|near| format!("; \"{near}\" is")).unwrap_or_default()
}

impl ChainProblem {
    /// The box or chain that it is about; of two chains that contradict each other, the first. `None`: the whole.
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        match self {
            Self::Empty { .. } | Self::TooMany { .. } => None,
            Self::DuplicateBox { name }
            | Self::DuplicateChain { name }
            | Self::NoCapacity { name, .. }
            | Self::UnknownSwitch { name, .. }
            | Self::NoSwitch { name, .. }
            | Self::UnknownBox { name, .. } => Some(name),
            Self::EmptySequence { chain }
            | Self::LongSequence { chain, .. }
            | Self::RepeatedType { chain, .. }
            | Self::UnknownType { chain, .. }
            | Self::UnknownGroup { chain, .. }
            | Self::NoPorts { chain, .. }
            | Self::NoPath { chain, .. }
            | Self::InUse { chain, .. } => Some(chain),
            Self::Contradiction { a, .. } => Some(a),
        }
    }

    /// Stable token for counters and scripts.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "empty-name",
            Self::TooMany { .. } => "too-many",
            Self::DuplicateBox { .. } => "duplicate-box",
            Self::DuplicateChain { .. } => "duplicate-chain",
            Self::NoCapacity { .. } => "no-capacity",
            Self::UnknownSwitch { .. } => "unknown-switch",
            Self::NoSwitch { .. } => "no-switch",
            Self::EmptySequence { .. } => "empty-sequence",
            Self::LongSequence { .. } => "long-sequence",
            Self::RepeatedType { .. } => "repeated-type",
            Self::UnknownType { .. } => "unknown-type",
            Self::UnknownGroup { .. } => "unknown-group",
            Self::NoPorts { .. } => "no-ports",
            Self::Contradiction { .. } => "contradiction",
            Self::NoPath { .. } => "no-path",
            Self::InUse { .. } => "in-use",
            Self::UnknownBox { .. } => "unknown-box",
        }
    }
}
