//! How an item was taken, or why not, and how often that happened.

use hintd_model::cluster::Source;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// How an item was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// As something new.
    New,
    /// In the place of one that the engine had not seen yet.
    Coalesced,
    /// Against what the same node had said before.
    Contradiction,
}

/// Why one item is not taken; the stream goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ItemRefusal {
    /// The kind of fault.
    pub reason: Reason,
    /// What is wrong, with the value.
    pub message: String,
}

impl ItemRefusal {
    /// A refusal.
    #[must_use]
    pub fn new(reason: Reason, message: impl fmt::Display) -> Self {
        Self { reason, message: message.to_string() }
    }
}

/// How many of something an item has, against the limit of this name.
///
/// # Errors
/// [`Reason::TooMany`].
pub fn bounded(what: impl fmt::Display, count: usize, most: usize, name: &str) -> Result<(), ItemRefusal> {
    if count > most {
        return Err(ItemRefusal::new(Reason::TooMany, format!("{count} {what}: at most {most} (limits.{name})")));
    }
    Ok(())
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident => $token:literal,)*) => {
        /// The kinds of fault, with a stable token each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The token on the wire and in metrics.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $token,)*
                }
            }
        }
    };
}

reasons! {
    /// Something is missing, empty or not in the form it should have.
    Malformed => "malformed",
    /// The stream did not begin with a hello.
    HelloMissing => "hello_missing",
    /// Not above the last number of the stream, or of the registration.
    OutOfOrder => "out_of_order",
    /// The node must register first.
    UnknownNode => "unknown_node",
    /// The network has no such link.
    UnknownLink => "unknown_link",
    /// The network has no such switch.
    UnknownSwitch => "unknown_switch",
    /// No such path is registered.
    UnknownPath => "unknown_path",
    /// Below zero.
    Negative => "negative",
    /// Zero, where something must be.
    Zero => "zero",
    /// Beyond what is believable, or what can be counted.
    TooLarge => "too_large",
    /// A table is full.
    TooMany => "too_many",
    /// Stands there twice.
    Duplicate => "duplicate",
    /// The network as a whole has problems.
    BadNetwork => "bad_network",
    /// Middleboxes and chains as a whole have problems.
    BadChains => "bad_chains",
    /// No such middlebox is declared.
    UnknownBox => "unknown_box",
    /// Of the future.
    Future => "future",
    /// Of too long ago.
    Old => "old",
    /// It is another source's to say.
    NotOwner => "not_owner",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Counts since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedCounts {
    /// Items taken, by source.
    pub taken: BTreeMap<Source, u64>,
    /// Items refused, by source and reason.
    pub refused: BTreeMap<(Source, Reason), u64>,
    /// Heartbeats that replaced one that the engine had not taken yet.
    pub coalesced: u64,
    /// Registrations that put a registered host into another rack.
    pub contradictions: u64,
    /// Block ids of no registered dataset.
    pub block_ids_dropped: u64,
    /// Changes that passed here and that the model refused.
    pub refused_by_model: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    taken: [AtomicU64; Source::ALL.len()],
    refused: [[AtomicU64; Reason::ALL.len()]; Source::ALL.len()],
    coalesced: AtomicU64,
    contradictions: AtomicU64,
    dropped: AtomicU64,
    by_model: AtomicU64,
}

impl Counters {
    pub(super) fn item(&self, source: Source, refused: Option<Reason>) {
        match refused {
            None => add(&self.taken[source as usize], 1),
            Some(reason) => add(&self.refused[source as usize][reason as usize], 1),
        }
    }

    pub(super) fn taken(&self, taken: Taken) {
        match taken {
            Taken::New => {}
            Taken::Coalesced => add(&self.coalesced, 1),
            Taken::Contradiction => add(&self.contradictions, 1),
        }
    }

    pub(super) fn dropped(&self, ids: u64) {
        add(&self.dropped, ids);
    }

    pub(super) fn refused_by_model(&self) {
        add(&self.by_model, 1);
    }

    pub(super) fn read(&self) -> FeedCounts {
        let mut counts = FeedCounts {
            coalesced: read(&self.coalesced),
            contradictions: read(&self.contradictions),
            block_ids_dropped: read(&self.dropped),
            refused_by_model: read(&self.by_model),
            ..FeedCounts::default()
        };
        for source in Source::ALL {
            counts.taken.insert(source, read(&self.taken[source as usize]));
            for &reason in Reason::ALL {
                let count = read(&self.refused[source as usize][reason as usize]);
                if count > 0 {
                    counts.refused.insert((source, reason), count);
                }
            }
        }
        counts
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
