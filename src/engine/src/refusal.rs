//! Why a request gets no hints.

use super::decision::Blocked;
use hintd_model::units::{AttemptId, DecisionId, Micros, RequestId};
use std::sync::Arc;

/// Why a request gets no hints. One place turns these into status codes (`server/status.rs`).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A field is wrong whatever the cluster looks like.
    #[error("{}", in_field(field, message))]
    Invalid {
        /// Path of the field, as `groups[1].resource.memory`.
        field: String,
        /// What is wrong with it, with the value; of a list's entry a sentence of its own, unless it begins with "is".
        message: String,
    },
    /// A policy, queue, node … of that name does not exist.
    #[error("{what} \"{name}\" is unknown{}", nearest.as_ref().map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default())]
    Unknown {
        /// policy, queue, decision, host, rack, path, label, resource kind
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest known one.
        nearest: Option<String>,
    },
    /// A queue that the configuration does not have.
    #[error("queue \"{name}\" is unknown{there}")]
    UnknownQueue {
        /// The name.
        name: String,
        /// The nearest known one, else which there are, in words.
        there: String,
    },
    /// A feed that is needed never spoke.
    #[error("feed {feed} is missing: {message}")]
    MissingFeed {
        /// Which.
        feed: &'static str,
        /// What it is needed for.
        message: String,
    },
    /// Larger than any node, or than the empty cluster: waiting won't help.
    #[error("{message}")]
    TooLarge {
        /// The field that asks too much.
        field: String,
        /// What was asked, and the largest that would fit.
        message: String,
        /// What keeps nodes from taking it, and which come nearest.
        blocked: Vec<Blocked>,
    },
    /// A chain of middleboxes that the placement would break.
    #[error("chain \"{chain}\" would be broken: {why}")]
    Chain {
        /// The chain's name.
        chain: Arc<str>,
        /// What is lacking.
        why: String,
    },
    /// Something can't be done with a plan of recurring jobs, as things are.
    #[error("plan{}: {why}", if name.is_empty() { String::new() } else { format!(" \"{name}\"") })]
    Plan {
        /// The plan's name; empty: any.
        name: Arc<str>,
        /// Why not.
        why: String,
    },
    /// No room now, and the caller wants to fail then.
    #[error("no room for {wanted} containers of group \"{group}\": {free} would fit now")]
    Full {
        /// Group.
        group: Arc<str>,
        /// Asked.
        wanted: u32,
        /// Would fit.
        free: u32,
        /// What keeps nodes from taking the rest, and which come nearest.
        blocked: Vec<Blocked>,
    },
    /// A decision that is not recorded (any more).
    #[error("decision {decision} is not recorded: {kept}")]
    NotRecorded {
        /// Which.
        decision: DecisionId,
        /// How far back records go, and why not further.
        kept: String,
    },
    /// The request id was used with another body.
    #[error("request id \"{id}\" was answered with another body; a new request needs a new id")]
    IdReused {
        /// The id.
        id: RequestId,
    },
    /// The daemon can't take it now.
    #[error("{message}")]
    Unavailable {
        /// Why: overload, shutdown, store failed.
        message: String,
        /// When to try again.
        retry_after: Micros,
    },
    /// The caller's deadline passed.
    #[error("deadline of {} passed before there was an answer", .0.in_words())]
    DeadlineExceeded(Micros),
    /// Neither the token nor the nonce is shown.
    #[error("neither token nor nonce of {what} is shown")]
    NoToken {
        /// Whose they should be.
        what: String,
    },
    /// A controller of that name watches already, and another one would take its place.
    #[error("watcher \"{watcher}\" has a stream already, and the nonce is not its own")]
    NotHolder {
        /// Its name.
        watcher: String,
    },
    /// The ResourceManager that is asked lists no such attempt.
    #[error("the ResourceManager does not list {attempt} as the running attempt of its application")]
    NotListed {
        /// Which.
        attempt: AttemptId,
    },
    /// The token is not the attempt's.
    #[error("the token or nonce is not that of {attempt}")]
    BadToken {
        /// Whose token it should be.
        attempt: AttemptId,
    },
}

/// A path into a list says nothing to whom the request is only shown: words come first then.
fn in_field(field: &str, message: &str) -> String {
    match field.contains('[') && !message.starts_with("is ") {
        true => format!("{message} ({field})"),
        false => format!("{field}: {message}"),
    }
}

/// Known queues that are named where none is near.
const QUEUES_NAMED: usize = 20;

impl Refusal {
    /// Tokens that a request for hints may be refused with. Others are of Explain and Watch.
    pub const OF_REQUESTS: [&'static str; 13] = [
        "bad_token",
        "chain_broken",
        "deadline",
        "full",
        "id_reused",
        "invalid",
        "missing_feed",
        "no_token",
        "not_listed",
        "plan",
        "too_large",
        "unavailable",
        "unknown",
    ];

    /// A queue that is none of the `known` ones; `near`: which of these was meant, perhaps.
    #[must_use]
    pub fn unknown_queue<'k>(name: &str, near: Option<&str>, known: impl Iterator<Item = &'k str>) -> Self {
        let known: Vec<&str> = known.collect();
        let named = known.iter().take(QUEUES_NAMED).copied().collect::<Vec<_>>().join(", ");
        let there = match (near, known.len().saturating_sub(QUEUES_NAMED)) {
            (Some(near), _) => format!("; did you mean \"{near}\"?"),
            (None, _) if known.is_empty() => "; the configuration has no queues".to_owned(),
            (None, 0) => format!("; the configuration has: {named}"),
            (None, more) => format!("; the configuration has: {named} and {more} more"),
        };
        Self::UnknownQueue { name: name.to_owned(), there }
    }

    /// A stable token: what clients and metrics know it by.
    #[must_use]
    pub const fn token(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "invalid",
            Self::TooLarge { .. } => "too_large",
            Self::Unknown { .. } | Self::UnknownQueue { .. } => "unknown",
            Self::NotRecorded { .. } => "not_recorded",
            Self::MissingFeed { .. } => "missing_feed",
            Self::Chain { .. } => "chain_broken",
            Self::Plan { .. } => "plan",
            Self::Full { .. } => "full",
            Self::IdReused { .. } => "id_reused",
            Self::Unavailable { .. } => "unavailable",
            Self::DeadlineExceeded(_) => "deadline",
            Self::BadToken { .. } => "bad_token",
            Self::NoToken { .. } => "no_token",
            Self::NotHolder { .. } => "not_holder",
            Self::NotListed { .. } => "not_listed",
        }
    }

    /// Whether who asked did not show that it is the attempt's.
    #[must_use]
    pub const fn is_a_strangers(&self) -> bool {
        matches!(self, Self::NoToken { .. } | Self::BadToken { .. } | Self::NotListed { .. })
    }

    /// What keeps nodes from taking containers, where that is the matter.
    #[must_use]
    pub fn blocked(&self) -> &[Blocked] {
        match self {
            Self::TooLarge { blocked, .. } | Self::Full { blocked, .. } => blocked,
            _ => &[],
        }
    }

    /// The chain of middleboxes that would be broken, where that is the matter.
    #[must_use]
    pub const fn chain(&self) -> Option<&Arc<str>> {
        match self {
            Self::Chain { chain, .. } => Some(chain),
            _ => None,
        }
    }
}
