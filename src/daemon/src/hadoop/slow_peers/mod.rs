//! DataNodes that others report as slow, asked of the NameNode every so often: beside round trips that agents measure a second
//! source of which hosts are far, for policies that read latency.
//!
//! # Code map
//! - Without I/O: `report` (a NameNode's answers), `book` (what is told to the engine and to operators, and since when).
//! - With I/O: `poller`.
//!
//! # Invariants
//! - Times of packets are no round trips and never become any: the model keeps them beside what was measured.
//! - An answer that is late, too large, HTML or nonsense changes nothing; what was told last counts for `slow_peers_kept`.
//! - A row that can't be is left out and counted; it keeps no other out.

mod book;
mod poller;
pub mod report;
#[cfg(test)]
mod tests;

pub(super) use poller::SlowPeerPoller;
