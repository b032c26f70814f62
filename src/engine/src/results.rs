//! What calls to the engine come to, and what it is begun with.

use super::adherence::DecisionOutcome;
use super::answer::Answer;
use super::holding::TurnTally;
use super::journal::Table;
use hintd_model::cluster::NamedResource;
use hintd_model::units::{
    AttemptId, ContainerId, DecisionId, HostName, LeaseId, QueueName, RackPath, RequestId, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of the journal as read at start: key and value by table.
pub type Rows = BTreeMap<Table, Vec<(Vec<u8>, Vec<u8>)>>;

/// What was found in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveredCounts {
    /// Leases that still run.
    pub leases: usize,
    /// Leases whose time had passed.
    pub expired: usize,
    /// Answers.
    pub answers: usize,
    /// Attempts.
    pub attempts: usize,
    /// Recurring-job keys.
    pub history: usize,
    /// Plans.
    pub plans: usize,
}

/// A row that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("journal table {table}, key {key}: {message}")]
pub struct RecoverError {
    /// The table.
    pub table: &'static str,
    /// The key, in hexadecimal.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

/// An attempt that asked and is not over.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptHeld {
    /// Which.
    pub attempt: AttemptId,
    /// Leases that it holds.
    pub leases: usize,
    /// Requests remembered of it.
    pub requests: usize,
    /// Its client knows no nonces.
    pub legacy: bool,
    /// Of its last request that is remembered.
    pub queue: Option<QueueName>,
    /// When it asked first; `None`: before the daemon's start.
    pub first: Option<Timestamp>,
    /// When it last asked.
    pub touched: Timestamp,
    /// That was before the daemon's start, and nothing is kept that says when: `touched` is the start.
    pub asked_before_start: bool,
    /// Of its receivers; `None`: it never asked for a turn, or nobody knew its shuffle.
    pub turn: Option<TurnTally>,
}

/// A live lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHeld {
    /// Which; newer ones have greater ids.
    pub id: LeaseId,
    /// The decision that granted it.
    pub decision: DecisionId,
    /// The request that was answered.
    pub request: RequestId,
    /// Whose.
    pub attempt: AttemptId,
    /// Of the attempt's last request that is remembered.
    pub queue: Option<QueueName>,
    /// For a container of this group.
    pub group: Arc<str>,
    /// Where.
    pub host: HostName,
    /// That host's rack.
    pub rack: RackPath,
    /// How much.
    pub size: NamedResource,
    /// When it ends by itself.
    pub expires: Timestamp,
    /// The container that YARN allocated for it, once the application said so.
    pub container: Option<ContainerId>,
}

/// What a release came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Released {
    /// Leases given back.
    pub released: u32,
    /// Leases that had ended before, or were never this attempt's.
    pub not_held: Vec<LeaseId>,
}

/// An answered request and what became of its leases.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The answer.
    pub answer: Arc<Answer>,
    /// Its leases, in the order of its hints.
    pub leases: Vec<ExplainedLease>,
    /// Whether its hints were followed; absent where it had none, and for what was decided before the last start.
    pub outcome: Option<DecisionOutcome>,
}

/// A lease of an answered request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedLease {
    /// Which.
    pub id: LeaseId,
    /// The host that was hinted.
    pub host: HostName,
    /// held, confirmed, bound, released, withdrawn, expired; ended: before the last restart.
    pub state: &'static str,
}

/// Sizes of the engine's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineCounts {
    /// Live leases.
    pub leases: usize,
    /// Answers kept.
    pub answers: usize,
    /// Attempts kept.
    pub attempts: usize,
    /// Recurring-job keys.
    pub history: usize,
    /// Routes watched by name.
    pub routes: usize,
    /// Pairs of nodes that talk.
    pub flows: usize,
    /// Tasks that wait for a dispatcher.
    pub waiting: u64,
    /// Decisions whose hints are watched.
    pub watched: usize,
    /// Plans kept.
    pub plans: usize,
}
