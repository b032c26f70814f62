//! Feeds: wire items to facts, checked one by one; a refused item is named and the stream goes on.
//!
//! # Code map
//! - [`FeedStream`]: numbers, hello and the acknowledgement of one stream.
//! - `convert`: names, amounts, containers and states off the wire.
//! - `heartbeats`, `blocks`, `datasets`, `topology`, `link_stats`, `latency`: one `ingest` each, into [`FeedRegistries`].
//! - `chains`: middleboxes and chains, on the topology stream.
//! - `events`: task events, for `Feed.Events` and `Placement.Follow` alike.
//!
//! # Invariants
//! - Nothing here awaits, and no item can stop a stream or the daemon.
//! - Items of a stream count upwards; one that does not is refused and leaves the count where it was.

pub mod blocks;
mod chains;
pub mod convert;
pub mod datasets;
pub mod events;
pub mod heartbeats;
pub mod latency;
pub mod link_stats;
mod stream;
#[cfg(test)]
mod tests;
pub mod topology;

pub use crate::runtime::registries::{FeedRegistries, ItemRefusal, Reason};
pub use stream::{FeedStream, Hello};
