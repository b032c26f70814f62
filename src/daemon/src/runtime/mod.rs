//! The daemon's inside: the engine thread, the pool that searches, the path of a request, and what streams wait on.
//!
//! Invariants: a request loads one [`Generation`](hintd_engine::Generation), runs one policy on the
//! pool and commits once per try; nothing on that path waits for a lock that a feed holds; an answer
//! leaves only when its leases are durable; every queue is bounded and every wait has a deadline.

mod answered_requests;
mod background;
pub mod clock;
mod command;
pub mod daemon;
mod domain_slots;
mod early_refusals;
mod engine_exit;
mod engine_thread;
mod follow_event;
mod in_flight;
mod late_answers;
mod line_quota;
mod lost_links;
pub mod metric_handles;
mod operators;
pub mod options;
pub mod outbox;
mod pending_batches;
pub mod pool;
mod preparing;
mod probing;
mod proof;
mod rates;
mod records;
pub mod refused_table;
pub mod registries;
pub mod servers;
pub mod setup;
pub mod shuffle_turn;
mod silent_attempts;
mod undelivered;
mod unpacking;
pub mod watch_file;
pub mod watchers;

#[cfg(test)]
pub(crate) mod tests;

pub use command::{EngineReport, PlanProgress, RolledBack};
pub use daemon::network_file::NetworkInForce;
pub use daemon::place::{Refused, RequestAnswer, RequestOptions};
pub use daemon::racks::HdfsRacks;
pub use daemon::training::PolicyTraining;
pub use daemon::{Daemon, Ending, StartError, input_homes, listing, locate, page, shuffle_progress};
pub use follow_event::{FollowEvent, FollowPayload};
pub use in_flight::RequestPermit;
pub use line_quota::Line;
pub use metric_handles::MetricHandles;
pub use operators::RefusalCount;
pub use options::{Options, RequestLimits};
pub use pool::StuckPlacers;
pub use proof::proof;
pub use records::ListedRecords;
pub use registries::{DownLink, LastOutage, LinkTold};
pub use unpacking::UnpackPermit;

/// Why a daemon that takes requests can't answer them.
const NO_NODES: &str = "no node is RUNNING with a fresh heartbeat";

/// What the daemon can do now. It is *live* while it runs and is not stopping; it *takes* requests and facts while the
/// journal can be written as well; it is *ready* when it can also answer, for it knows a node with room to hint at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The journal can be written.
    pub store: bool,
    /// The engine's thread runs.
    pub engine: bool,
    /// A placer thread is left that is not stuck in a search.
    pub placers: bool,
    /// The daemon is shutting down.
    pub stopping: bool,
    /// A node is RUNNING and was heard a moment ago (`model.stale_after`).
    pub nodes: bool,
}

impl Ready {
    /// Why it is not ready; `None`: it is.
    #[must_use]
    pub const fn why_not(&self) -> Option<&'static str> {
        match self.why_refused() {
            None if !self.placers => Some("every placer thread is stuck in a search past its deadline"),
            None if !self.nodes => Some(NO_NODES),
            why => why,
        }
    }

    /// Why requests are not taken; `None`: they are.
    #[must_use]
    pub const fn why_refused(&self) -> Option<&'static str> {
        match self {
            Self { store: false, stopping: false, engine: true, .. } => Some("the journal can't be written"),
            Self { .. } => self.why_not_live(),
        }
    }

    /// Why it is not even live; `None`: it is.
    #[must_use]
    pub const fn why_not_live(&self) -> Option<&'static str> {
        match self {
            Self { stopping: true, .. } => Some("the daemon is shutting down"),
            Self { engine: false, .. } => Some("the engine's thread ended"),
            Self { .. } => None,
        }
    }

    /// Notes whether there is a node to hint at; whether that is news.
    pub(crate) const fn nodes(&mut self, usable: bool) -> bool {
        let news = self.nodes != usable;
        self.nodes = usable;
        news
    }

    /// Notes the journal's health; whether that is news.
    pub(crate) const fn store(&mut self, healthy: bool) -> bool {
        let news = self.store != healthy;
        self.store = healthy;
        news
    }

    /// Notes whether a placer thread is left; whether that is news.
    pub(crate) const fn placers(&mut self, left: bool) -> bool {
        let news = self.placers != left;
        self.placers = left;
        news
    }
}
