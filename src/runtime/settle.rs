//! What waits for the journal: answers and messages, in the order of their batches.

use super::command::{Command, Door};
use crate::engine::journal::{Batch, Op, Table};
use crate::engine::{Effect, Effects, Refusal};
use crate::store::GroupCommitHandle;
use crate::units::DecisionId;
use std::collections::{BTreeMap, HashMap};

/// What to do once a batch is durable, or is known not to be.
pub(super) type Then = Box<dyn FnOnce(Result<(), Refusal>) + Send>;

/// Batches on their way to the disk, with what depends on them.
pub(super) struct Settling {
    door: Door,
    journal: Option<GroupCommitHandle>,
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Ticket of a decision that is not durable yet.
    by_decision: HashMap<DecisionId, u64>,
    /// Operations that a failing disk did not take and that hold all the same: attempts, history,
    /// the engine's own facts, and rows that are gone. Written when the disk is back.
    backlog: Batch,
}

/// One batch on its way.
#[derive(Default)]
pub(super) struct Waiting {
    /// The decision it promises.
    pub(super) decision: Option<DecisionId>,
    /// Messages that may leave afterwards.
    pub(super) out: Vec<Effect>,
    /// Answers that may leave afterwards.
    pub(super) then: Vec<Then>,
    /// What is to be written later if it fails.
    lasting: Batch,
}

/// Operations kept for a disk that does not come back; beyond it the oldest go. They only spare a
/// restart some work: leases have their own end, and history is statistics.
const BACKLOG_MAX: usize = 100_000;

impl Settling {
    pub(super) fn new(door: Door) -> Self {
        Self {
            door,
            journal: None,
            next: 1,
            waiting: BTreeMap::new(),
            by_decision: HashMap::new(),
            backlog: Batch::new(),
        }
    }

    pub(super) fn start(&mut self, journal: GroupCommitHandle) {
        self.journal = Some(journal);
    }

    pub(super) fn healthy(&self) -> bool {
        self.journal.as_ref().is_some_and(GroupCommitHandle::healthy)
    }

    pub(super) fn queued(&self) -> usize {
        self.journal.as_ref().map_or(0, GroupCommitHandle::queued)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends a batch off. What comes back may leave at once: there was nothing to write and nothing to
    /// wait for (`true`), or the journal did not take it (`false`).
    pub(super) fn enter(
        &mut self,
        effects: Effects,
        decision: Option<DecisionId>,
        then: Then,
    ) -> Option<(Vec<Effect>, Then, bool)> {
        let Effects { journal: batch, out } = effects;
        if batch.is_empty() {
            return match self.waiting.values_mut().next_back() {
                // Messages keep their order: these leave after those of the batch before.
                Some(last) if !out.is_empty() => {
                    last.out.extend(out);
                    last.then.push(then);
                    None
                }
                _ => Some((out, then, true)),
            };
        }
        let ticket = self.next;
        let lasting: Batch = batch.iter().filter(|op| lasts(op)).cloned().collect();
        let door = self.door.clone();
        let done = Box::new(move |result| door.tell(Command::Settled(ticket, result)));
        let taken = self.journal.as_ref().is_some_and(|journal| journal.append(batch, done).is_ok());
        if !taken {
            self.keep(lasting);
            return Some((out, then, false));
        }
        self.next += 1;
        if let Some(decision) = decision {
            self.by_decision.insert(decision, ticket);
        }
        self.waiting.insert(ticket, Waiting { decision, out, then: vec![then], lasting });
        None
    }

    /// Runs `then` once the decision is durable; at once if it is already.
    pub(super) fn after(&mut self, decision: DecisionId, then: Then) {
        let ticket = self.by_decision.get(&decision);
        match ticket.and_then(|ticket| self.waiting.get_mut(ticket)) {
            Some(waiting) => waiting.then.push(then),
            None => then(Ok(())),
        }
    }

    /// A batch was written, or was not.
    pub(super) fn leave(&mut self, ticket: u64, ok: bool) -> Option<Waiting> {
        let mut waiting = self.waiting.remove(&ticket)?;
        if let Some(decision) = waiting.decision {
            self.by_decision.remove(&decision);
        }
        if !ok {
            let lasting = std::mem::take(&mut waiting.lasting);
            self.keep(lasting);
        }
        Some(waiting)
    }

    /// Writes what a failed disk did not take, once it is back.
    pub(super) fn retry_backlog(&mut self) {
        if self.backlog.is_empty() || !self.healthy() {
            return;
        }
        let effects = Effects { journal: std::mem::take(&mut self.backlog), out: Vec::new() };
        if let Some((_, then, ok)) = self.enter(effects, None, Box::new(|_| ())) {
            then(Ok(()));
            debug_assert!(!ok, "a batch that is not empty is either taken or refused");
        }
    }

    fn keep(&mut self, lasting: Batch) {
        self.backlog.extend(lasting);
        let excess = self.backlog.len().saturating_sub(BACKLOG_MAX);
        self.backlog.drain(..excess);
    }
}

/// Whether an operation holds although its batch was refused: a lease or answer was promised to
/// nobody then, everything else happened.
fn lasts(op: &Op) -> bool {
    match op {
        Op::Put { table, .. } => !matches!(table, Table::Leases | Table::Answers),
        Op::Delete { .. } => true,
    }
}
