//! What can be wrong with a network.

use super::optical::OpticalProblem;
use super::tier::Tier;
use crate::units::{BitsPerSec, LinkName};
use serde::Serialize;
use std::sync::Arc;

/// What [`super::NetworkDocument::format`] must say.
pub const NETWORK_FORMAT: &str = "hintd.network/1";

/// Slowest link taken for meant, 1 Mbit/s: below, somebody wrote megabits for bits.
pub(super) const LEAST_CAPACITY: BitsPerSec = BitsPerSec(1_000_000);

/// Fastest link taken for possible, 100 Tbit/s: a bundle of 125 of today's 800 Gbit/s ports.
pub(super) const MOST_CAPACITY: BitsPerSec = BitsPerSec(100_000_000_000_000);

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The network works, but somebody should look.
    Warning,
    /// The network is refused.
    Error,
}

/// Something wrong with a network, with the names it hit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkProblem {
    /// The document is of another format or version.
    #[error("format is \"{found}\", not \"{NETWORK_FORMAT}\"")]
    UnknownFormat {
        /// What it says.
        found: String,
    },
    /// An entry of a document, or a field, that is not as the format says.
    #[error("{place}: {message}")]
    Broken {
        /// Where, as `links[3]`; entries count from 0.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A host, switch or link without a name.
    #[error("a {kind} has an empty name")]
    EmptyName {
        /// `host`, `switch` or `link`.
        kind: &'static str,
    },
    /// Two hosts or switches of one name.
    #[error("\"{name}\" names two hosts or switches")]
    DuplicateVertex {
        /// The name.
        name: Arc<str>,
    },
    /// Two links of one id.
    #[error("link \"{link}\" is given twice")]
    DuplicateLink {
        /// The id.
        link: LinkName,
    },
    /// A link from a vertex to itself.
    #[error("link \"{link}\" joins \"{vertex}\" to itself")]
    SelfLoop {
        /// The link.
        link: LinkName,
        /// Both its ends.
        vertex: Arc<str>,
    },
    /// A link to a vertex that is not there.
    #[error("link \"{link}\" ends at \"{end}\", which is neither host nor switch")]
    UnknownEnd {
        /// The link.
        link: LinkName,
        /// The unknown name.
        end: Arc<str>,
    },
    /// A link that packets pass in one direction only.
    #[error("link \"{link}\" leads one way only, from \"{from}\" to \"{to}\"")]
    OneWay {
        /// The link.
        link: LinkName,
        /// The end that is heard.
        from: Arc<str>,
        /// The end that hears.
        to: Arc<str>,
    },
    /// A link that carries nothing.
    #[error("link \"{link}\" has capacity 0")]
    ZeroCapacity {
        /// The link.
        link: LinkName,
    },
    /// A link of less than nothing.
    #[error("link \"{link}\" has negative capacity {bits_per_s} bit/s")]
    NegativeCapacity {
        /// The link.
        link: LinkName,
        /// What it says.
        bits_per_s: i64,
    },
    /// A link faster than any.
    #[error("link \"{link}\" has capacity {} bit/s, above the most possible {}", capacity.0, MOST_CAPACITY.0)]
    AbsurdCapacity {
        /// The link.
        link: LinkName,
        /// What it says.
        capacity: BitsPerSec,
    },
    /// A link so slow that the unit is likely wrong.
    #[error("link \"{link}\" has capacity {} bit/s, below {}: is the unit right", capacity.0, LEAST_CAPACITY.0)]
    TinyCapacity {
        /// The link.
        link: LinkName,
        /// What it says.
        capacity: BitsPerSec,
    },
    /// A host without links.
    #[error("host \"{host}\" has no link")]
    OrphanHost {
        /// The host.
        host: Arc<str>,
    },
    /// Hosts forward nothing, so a link between two of them leads nowhere.
    #[error("link \"{link}\" joins host \"{a}\" to host \"{b}\"")]
    HostToHost {
        /// The link.
        link: LinkName,
        /// One host.
        a: Arc<str>,
        /// The other.
        b: Arc<str>,
    },
    /// Switches and their hosts that no link, up or down, joins to the majority of hosts.
    #[error("{size} vertices are an island: {}", listed(members, *size))]
    Island {
        /// The first few, by index.
        members: Vec<Arc<str>>,
        /// How many there are.
        size: usize,
    },
    /// Switches and their hosts that only links or switches now down would join to the majority.
    #[error("{size} vertices are cut off by what is down: {}", listed(members, *size))]
    CutOff {
        /// The first few, by index.
        members: Vec<Arc<str>>,
        /// How many there are.
        size: usize,
    },
    /// A host on an aggregation, core or optical switch.
    #[error("host \"{host}\" hangs on {tier} switch \"{switch}\", not on an edge switch")]
    HostOffEdge {
        /// The host.
        host: Arc<str>,
        /// Its switch.
        switch: Arc<str>,
        /// The switch's tier.
        tier: Tier,
    },
    /// What is wrong with the optical switch, or of note.
    #[error(transparent)]
    Optical(#[from] OpticalProblem),
    /// A switch without links.
    #[error("switch \"{switch}\" has no link")]
    SwitchWithoutLinks {
        /// The switch.
        switch: Arc<str>,
    },
}

impl NetworkProblem {
    /// Whether the network is refused.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::TinyCapacity { .. }
            | Self::CutOff { .. }
            | Self::HostOffEdge { .. }
            | Self::SwitchWithoutLinks { .. } => Severity::Warning,
            Self::Optical(problem) if problem.is_warning() => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// A stable word for counters and scripts.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::UnknownFormat { .. } => "unknown-format",
            Self::Broken { .. } => "broken-entry",
            Self::EmptyName { .. } => "empty-name",
            Self::DuplicateVertex { .. } => "duplicate-vertex",
            Self::DuplicateLink { .. } => "duplicate-link",
            Self::SelfLoop { .. } => "self-loop",
            Self::UnknownEnd { .. } => "unknown-end",
            Self::OneWay { .. } => "one-way",
            Self::ZeroCapacity { .. } => "zero-capacity",
            Self::NegativeCapacity { .. } => "negative-capacity",
            Self::AbsurdCapacity { .. } => "absurd-capacity",
            Self::TinyCapacity { .. } => "tiny-capacity",
            Self::OrphanHost { .. } => "orphan-host",
            Self::HostToHost { .. } => "host-to-host",
            Self::Island { .. } => "island",
            Self::CutOff { .. } => "cut-off",
            Self::HostOffEdge { .. } => "host-off-edge",
            Self::SwitchWithoutLinks { .. } => "switch-without-links",
            Self::Optical(_) => "optical",
        }
    }
}

fn listed(members: &[Arc<str>], size: usize) -> String {
    let rest = if size > members.len() { ", …" } else { "" };
    format!("{}{rest}", members.join(", "))
}
