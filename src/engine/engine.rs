//! The engine: model, ledger, answers, attempts, history, monitor and routes behind one door.

use super::answers::Answer;
use super::attempts::Token;
use super::decision::Refusal;
use super::effects::{CommitOutcome, Effects};
use super::event::TaskEvent;
use super::generation::Generation;
use super::journal::Table;
use super::placer::Proposal;
use super::routes::{RouteUpdate, WatchedPair};
use super::settings::EngineSettings;
use crate::cluster::{Change, ModelError, SizeRules};
use crate::units::{AttemptId, DecisionId, HostName, LeaseId, RequestId, Timestamp};
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
    /// held, confirmed, bound, released, withdrawn, expired; ended: before the last restart.
    pub leases: Vec<(LeaseId, HostName, &'static str)>,
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
    /// Watched routes.
    pub routes: usize,
}

/// The engine. Owned by one thread; every method takes the time and returns at once.
#[derive(Debug)]
pub struct Engine {}

#[allow(clippy::unimplemented, unused_variables, clippy::needless_pass_by_value)] // skeleton
impl Engine {
    /// An engine from the rows of its journal.
    ///
    /// # Errors
    /// [`RecoverError`] for a row that can't be read.
    pub fn new(
        settings: EngineSettings,
        rules: SizeRules,
        rows: Rows,
        now: Timestamp,
    ) -> Result<(Self, RecoveredCounts), RecoverError> {
        unimplemented!()
    }

    /// What requests load.
    #[must_use]
    pub fn generation(&self) -> Arc<Generation> {
        unimplemented!()
    }

    /// Takes a fact in; visible from the next publish.
    ///
    /// # Errors
    /// [`ModelError`] for a fact that the model can't take.
    pub fn change(&mut self, change: Change, now: Timestamp) -> Result<(), ModelError> {
        unimplemented!()
    }

    /// Takes a task event in.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a host that was never named.
    pub fn event(&mut self, event: TaskEvent, now: Timestamp) -> Result<(), Refusal> {
        unimplemented!()
    }

    /// Ends what is due: leases, answers, silent nodes. To be called about every 100 ms.
    pub fn tick(&mut self, now: Timestamp) {
        unimplemented!()
    }

    /// The next generation; `None`: nothing changed.
    pub fn publish(&mut self, now: Timestamp) -> Option<Arc<Generation>> {
        unimplemented!()
    }

    /// Leases what a proposal wants: all or nothing. `token` becomes the attempt's if it has none yet.
    pub fn commit(&mut self, proposal: Proposal, token: Token, now: Timestamp) -> CommitOutcome {
        unimplemented!()
    }

    /// The answer of a request id, if one is kept.
    #[must_use]
    pub fn lookup(&self, id: &RequestId, digest: u64) -> Option<Result<Arc<Answer>, Refusal>> {
        unimplemented!()
    }

    /// A decision and what became of its leases.
    #[must_use]
    pub fn explain(&self, decision: DecisionId) -> Option<Explained> {
        unimplemented!()
    }

    /// The journal failed: the decision was never promised.
    pub fn undo(&mut self, decision: DecisionId, now: Timestamp) {
        unimplemented!()
    }

    /// Gives leases back; none named: all of the attempt.
    ///
    /// # Errors
    /// [`Refusal::BadToken`].
    pub fn release(
        &mut self,
        attempt: AttemptId,
        token: &Token,
        leases: &[LeaseId],
        now: Timestamp,
    ) -> Result<Released, Refusal> {
        unimplemented!()
    }

    /// Whether the token is the attempt's.
    ///
    /// # Errors
    /// [`Refusal::BadToken`]; [`Refusal::Unknown`] for an attempt without an answer.
    pub fn authorize(&self, attempt: AttemptId, token: &Token) -> Result<(), Refusal> {
        unimplemented!()
    }

    /// Watches pairs; a watcher of the same name is replaced. The update is the first of the stream.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a host that neither the network nor the cluster names.
    pub fn watch(&mut self, watcher: &str, pairs: Vec<WatchedPair>) -> Result<RouteUpdate, Refusal> {
        unimplemented!()
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, watcher: &str) {
        unimplemented!()
    }

    /// Takes new settings; leases that run keep their time-to-live.
    pub fn reload(&mut self, settings: EngineSettings, now: Timestamp) {
        unimplemented!()
    }

    /// What the outside has to do since the last call.
    pub fn take_effects(&mut self) -> Effects {
        unimplemented!()
    }

    /// Sizes, for status.
    #[must_use]
    pub fn counts(&self) -> EngineCounts {
        unimplemented!()
    }
}
