//! The way to the disk, as the daemon goes it: batches in order, what waits for each, and a disk that may fail.

use super::book::{Rows, apply, lease_key};
use crate::journal::{Batch, Op, Table};
use crate::{Answer, Effect, Effects};
use hintd_model::units::{DecisionId, LeaseId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Whom a call answers, once its batch is durable.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Nobody,
    Answer(Arc<Answer>),
    Released(Vec<LeaseId>),
}

/// One batch on its way.
#[derive(Debug)]
struct Waiting {
    ticket: u64,
    batch: Batch,
    lasting: Batch,
    decision: Option<DecisionId>,
    out: Vec<Effect>,
    replies: Vec<Reply>,
}

/// What leaves the daemon, and what has to be taken back because it was never written.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    pub(super) out: Vec<Effect>,
    pub(super) replies: Vec<Reply>,
    pub(super) undo: Vec<DecisionId>,
}

#[derive(Debug)]
pub(super) struct Disk {
    pub(super) rows: Rows,
    /// Leases that were ever written.
    pub(super) leases: BTreeSet<LeaseId>,
    queue: VecDeque<Waiting>,
    /// What a failing disk did not take and that holds all the same, in the order in which it was meant.
    backlog: BTreeMap<u64, Batch>,
    pub(super) healthy: bool,
    next: u64,
}

impl Disk {
    pub(super) const fn new() -> Self {
        Self {
            rows: Rows::new(),
            leases: BTreeSet::new(),
            queue: VecDeque::new(),
            backlog: BTreeMap::new(),
            healthy: true,
            next: 1,
        }
    }

    pub(super) fn enter(&mut self, effects: Effects, decision: Option<DecisionId>, reply: Reply) -> Leaving {
        let Effects { journal: batch, out } = effects;
        if batch.is_empty() {
            return match self.queue.back_mut() {
                Some(last) if !out.is_empty() => {
                    last.out.extend(out);
                    last.replies.push(reply);
                    Leaving::default()
                }
                _ => Leaving { out, replies: vec![reply], undo: Vec::new() },
            };
        }
        let ticket = self.next;
        self.next += 1;
        let ours: Batch = batch.iter().filter(|op| lasts(op)).cloned().collect();
        if !self.healthy {
            self.keep(ticket, ours);
            let undo = decision.into_iter().chain(promised(&out)).collect();
            let mut out: Vec<Effect> = out.into_iter().filter(|effect| !is_hints(effect)).collect();
            if let Some(last) = self.queue.back_mut() {
                last.out.append(&mut out);
            }
            return Leaving { out, replies: Vec::new(), undo };
        }
        let mut whole: Batch = std::mem::take(&mut self.backlog).into_values().flatten().collect();
        let mut lasting = whole.clone();
        lasting.extend(ours);
        whole.extend(batch);
        self.queue.push_back(Waiting { ticket, batch: whole, lasting, decision, out, replies: vec![reply] });
        Leaving::default()
    }

    /// Answers who asked again for a decision once it is durable; now, if it is.
    pub(super) fn after(&mut self, decision: DecisionId, reply: Reply) -> Option<Reply> {
        match self.queue.iter_mut().find(|waiting| waiting.decision == Some(decision)) {
            Some(waiting) => {
                waiting.replies.push(reply);
                None
            }
            None => Some(reply),
        }
    }

    /// The next batch is durable.
    pub(super) fn sync(&mut self) -> Option<Leaving> {
        let waiting = self.queue.pop_front()?;
        self.write(&waiting.batch);
        Some(Leaving { out: waiting.out, replies: waiting.replies, undo: Vec::new() })
    }

    /// The disk fails: no batch on its way was written, as far as it says; `kept`: the first was.
    pub(super) fn fail(&mut self, kept: bool) {
        self.healthy = false;
        if let Some(first) = self.queue.front().filter(|_| kept) {
            let batch = first.batch.clone();
            self.write(&batch);
        }
    }

    fn write(&mut self, batch: &[Op]) {
        apply(&mut self.rows, batch);
        self.leases.extend(batch.iter().filter_map(|op| match op {
            Op::Put { table: Table::Leases, key, .. } => Some(lease_key(key)),
            _ => None,
        }));
    }

    /// The next batch is known not to have been written.
    pub(super) fn failed(&mut self) -> Option<Leaving> {
        let waiting = self.queue.pop_front()?;
        self.keep(waiting.ticket, waiting.lasting);
        let undo = waiting.decision.into_iter().chain(promised(&waiting.out)).collect();
        let out = waiting.out.into_iter().filter(|effect| !is_hints(effect)).collect();
        Some(Leaving { out, replies: Vec::new(), undo })
    }

    /// The disk is back, and takes what it owes.
    pub(super) fn mend(&mut self) {
        self.healthy = true;
        if !self.backlog.is_empty() {
            let batch: Batch = std::mem::take(&mut self.backlog).into_values().flatten().collect();
            let (ticket, lasting) = (self.next, batch.clone());
            self.next += 1;
            let replies = Vec::new();
            self.queue.push_back(Waiting { ticket, batch, lasting, decision: None, out: Vec::new(), replies });
        }
    }

    /// The process dies: what was not written is lost.
    pub(super) fn crash(&mut self) {
        self.queue.clear();
        self.backlog.clear();
        self.healthy = true;
    }

    /// Whether all that was meant to be written is.
    pub(super) fn is_settled(&self) -> bool {
        self.queue.is_empty() && self.backlog.is_empty()
    }

    fn keep(&mut self, ticket: u64, lasting: Batch) {
        if !lasting.is_empty() {
            self.backlog.insert(ticket, lasting);
        }
    }
}

/// Whether an operation holds although its batch was refused.
fn lasts(op: &Op) -> bool {
    match op {
        Op::Put { table, .. } => *table != Table::Answers,
        Op::Delete { .. } => true,
    }
}

fn is_hints(effect: &Effect) -> bool {
    matches!(effect, Effect::Hints { .. })
}

fn promised(out: &[Effect]) -> Vec<DecisionId> {
    let id = |effect: &Effect| match effect {
        Effect::Hints { answer, .. } => Some(answer.decision.id),
        _ => None,
    };
    out.iter().filter_map(id).collect()
}
