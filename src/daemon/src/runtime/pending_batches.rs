//! What waits for the journal: answers and messages, in the order of their batches.

use super::command::{Command, EngineHandle};
use crate::store::GroupCommitHandle;
use hintd_engine::journal::{Batch, Op, Table};
use hintd_engine::{Effect, Effects, Refusal};
use hintd_model::units::{DecisionId, Micros};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to do once a batch is durable, or is known not to be.
pub(super) type DurabilityCallback = Box<dyn FnOnce(Result<(), Refusal>) + Send>;

/// Batches on their way to the disk, with what depends on them.
pub(super) struct PendingBatches {
    engine_handle: EngineHandle,
    journal: Option<GroupCommitHandle>,
    next: u64,
    waiting: BTreeMap<u64, PendingBatch>,
    /// Ticket of a decision that is not durable yet.
    by_decision: HashMap<DecisionId, u64>,
    /// Operations that a failing disk did not take and that hold all the same: all but answers and changes of plans.
    /// By ticket, for they are written in the order they were meant, before anything later: a deletion written late
    /// would take a newer row away.
    backlog: BTreeMap<u64, Batch>,
    /// Batches that failed and did not leave yet: what they held belongs before whatever comes next.
    failed: Arc<AtomicUsize>,
}

/// One batch on its way.
#[derive(Default)]
pub(super) struct PendingBatch {
    /// The decision it promises.
    pub(super) decision: Option<DecisionId>,
    /// Messages that may leave afterwards.
    pub(super) out: Vec<Effect>,
    /// Answers that may leave afterwards.
    pub(super) then: Vec<DurabilityCallback>,
    /// What the journal was given: first the backlog.
    batch: Arc<Batch>,
    backlog: usize,
    /// Messages were lost, which the log says once.
    overflowed: bool,
}

impl PendingBatch {
    /// What is to be written later if it fails.
    fn lasting(&self) -> Batch {
        let (backlog, own) = self.batch.split_at(self.backlog);
        backlog.iter().chain(own.iter().filter(|op| lasts(op))).cloned().collect()
    }

    /// Keeps messages until the batch is written; `false`: as many wait as may, and these are lost.
    fn hold(&mut self, out: Vec<Effect>) -> bool {
        if self.out.len() >= MESSAGES_MAX {
            if !std::mem::replace(&mut self.overflowed, true) {
                tracing::warn!(limit = MESSAGES_MAX, "the journal hangs: messages that wait for it are dropped");
            }
            return false;
        }
        self.out.extend(out);
        true
    }
}

/// What waits for no batch.
pub(super) struct Returned {
    /// Messages that may leave.
    pub(super) out: Vec<Effect>,
    /// The answer that may.
    pub(super) then: DurabilityCallback,
    /// There was nothing to write and nothing to wait for; `false`: the journal did not take the batch.
    pub(super) taken: bool,
}

/// Operations kept for a disk that does not come back; beyond it the oldest go. They only spare a
/// restart some work: leases have their own end, and history is statistics.
const BACKLOG_MAX: usize = 100_000;
/// Messages that may wait behind one batch: what an hour of a hanging disk must not pass. Later ones are lost; leases end by
/// their time all the same, and watchers of routes see the gap in their numbers.
const MESSAGES_MAX: usize = 100_000;
/// Calls that may wait for one decision to be durable: its caller, and repetitions while a disk is slow.
const WAITING_MAX: usize = 1_024;

impl PendingBatches {
    pub(super) fn new(engine_handle: EngineHandle) -> Self {
        Self {
            engine_handle,
            journal: None,
            next: 1,
            waiting: BTreeMap::new(),
            by_decision: HashMap::new(),
            backlog: BTreeMap::new(),
            failed: Arc::default(),
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

    /// Sends a batch off. What comes back may leave at once.
    pub(super) fn enter(
        &mut self,
        effects: Effects,
        decision: Option<DecisionId>,
        then: DurabilityCallback,
    ) -> Option<Returned> {
        let Effects { journal: batch, out } = effects;
        if batch.is_empty() {
            return match self.waiting.values_mut().next_back() {
                // Messages keep their order: these leave after those of the batch before.
                Some(last) if !out.is_empty() => {
                    if last.hold(out) {
                        last.then.push(then);
                        return None;
                    }
                    Some(Returned { out: Vec::new(), then, taken: true })
                }
                _ => Some(Returned { out, then, taken: true }),
            };
        }
        let (out, then) = self.send(batch, out, decision, then)?;
        // Hints of leases that are not written are no promise; whoever entered them takes them back.
        let out: Vec<Effect> = out.into_iter().filter(|effect| !matches!(effect, Effect::Hints { .. })).collect();
        // They keep their order here, too: a message that is overtaken looks like one that was had already.
        let out = match self.waiting.values_mut().next_back() {
            Some(last) => {
                last.hold(out);
                Vec::new()
            }
            None => out,
        };
        Some(Returned { out, then, taken: false })
    }

    /// Sends the backlog and a batch off as one; what the journal did not take comes back.
    fn send(
        &mut self,
        batch: Batch,
        out: Vec<Effect>,
        decision: Option<DecisionId>,
        then: DurabilityCallback,
    ) -> Option<(Vec<Effect>, DurabilityCallback)> {
        let ticket = self.next;
        self.next += 1;
        let journal = self.journal.as_ref().filter(|journal| {
            // Asked for first: a refused append gives nothing back.
            journal.healthy() && self.failed.load(Ordering::Acquire) == 0
        });
        let Some(journal) = journal else {
            self.keep(ticket, batch.into_iter().filter(lasts).collect());
            return Some((out, then));
        };
        let backlog: usize = self.backlog.values().map(Vec::len).sum();
        let batch = match backlog {
            0 => batch,
            _ => std::mem::take(&mut self.backlog).into_values().flatten().chain(batch).collect(),
        };
        let waiting = PendingBatch { decision, batch: Arc::new(batch), backlog, ..PendingBatch::default() };
        let (engine_handle, failed) = (self.engine_handle.clone(), Arc::clone(&self.failed));
        let done = Box::new(move |result: Result<(), _>| {
            if result.is_err() {
                failed.fetch_add(1, Ordering::AcqRel);
            }
            engine_handle.tell(Command::BatchCompleted { ticket, result });
        });
        if journal.append(Arc::clone(&waiting.batch), done).is_err() {
            self.keep(ticket, waiting.lasting());
            return Some((out, then));
        }
        if let Some(decision) = decision {
            self.by_decision.insert(decision, ticket);
        }
        self.waiting.insert(ticket, PendingBatch { out, then: vec![then], ..waiting });
        None
    }

    /// Runs `then` once the decision is durable; at once if it is already, and with a refusal where as many wait for it
    /// as may.
    pub(super) fn after(&mut self, decision: DecisionId, then: DurabilityCallback) {
        let ticket = self.by_decision.get(&decision);
        match ticket.and_then(|ticket| self.waiting.get_mut(ticket)) {
            Some(waiting) if waiting.then.len() < WAITING_MAX => waiting.then.push(then),
            Some(_) => then(Err(Refusal::Unavailable {
                message: format!("{WAITING_MAX} calls wait for the journal to take one decision"),
                retry_after: Micros::from_secs(1),
            })),
            None => then(Ok(())),
        }
    }

    /// A batch was written, or was not.
    pub(super) fn leave(&mut self, ticket: u64, ok: bool) -> Option<PendingBatch> {
        let waiting = self.waiting.remove(&ticket)?;
        if let Some(decision) = waiting.decision {
            self.by_decision.remove(&decision);
        }
        if !ok {
            self.keep(ticket, waiting.lasting());
            self.failed.fetch_sub(1, Ordering::AcqRel);
        }
        Some(waiting)
    }

    /// Has rows written, before anything later, as they were before a batch that failed: it may be on the disk all the
    /// same.
    pub(super) fn restore(&mut self, rows: Batch) {
        let ticket = self.next;
        self.next += 1;
        self.keep(ticket, rows);
        self.retry_backlog();
    }

    /// Writes what a failed disk did not take, once it is back and nothing else has taken it along.
    pub(super) fn retry_backlog(&mut self) {
        if !self.backlog.is_empty() && self.healthy() {
            // Refused again, it is kept again; nobody waits for it.
            let _ = self.send(Batch::new(), Vec::new(), None, Box::new(|_| ()));
        }
    }

    fn keep(&mut self, ticket: u64, lasting: Batch) {
        if lasting.is_empty() {
            return;
        }
        self.backlog.insert(ticket, lasting);
        let mut excess = self.backlog.values().map(Vec::len).sum::<usize>().saturating_sub(BACKLOG_MAX);
        while let Some(mut oldest) = self.backlog.first_entry().filter(|_| excess > 0) {
            let from_here = excess.min(oldest.get().len());
            oldest.get_mut().drain(..from_here);
            excess -= from_here;
            if oldest.get().is_empty() {
                oldest.remove();
            }
        }
    }
}

/// Whether an operation holds although its batch was refused: an answer was promised to nobody then, a change of plans
/// was refused, everything else happened. Leases of such an answer are deleted when it is undone, which comes after; what else changes a lease (its
/// container was allocated, and it lasts longer by that) is not to be lost.
fn lasts(op: &Op) -> bool {
    match op {
        Op::Put { table, .. } => !matches!(table, Table::Answers | Table::Plans),
        Op::Delete { table, .. } => *table != Table::Plans,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::command::Envelope;
    use crate::store::{GroupCommit, GroupOptions, Journal, OpenOptions};
    use std::path::Path;
    use std::sync::mpsc::Receiver;
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(10);

    fn journal(file: &Path) -> GroupCommitHandle {
        let (journal, _) = Journal::open(file, OpenOptions::default()).unwrap();
        GroupCommit::start(journal, GroupOptions::default()).unwrap()
    }

    /// Keys of the table that are in the file.
    fn keys(file: &Path, table: Table) -> Vec<Vec<u8>> {
        let (journal, _) = Journal::open(file, OpenOptions::default()).unwrap();
        let rows = journal.rows().unwrap().remove(&table).unwrap_or_default();
        rows.into_iter().map(|(key, _)| key.to_vec()).collect()
    }

    /// A folder for the journal, and batches that have no disk yet.
    fn without_disk() -> (tempfile::TempDir, PendingBatches, Receiver<Envelope>) {
        let (engine_handle, commands) = EngineHandle::new();
        (tempfile::tempdir().unwrap(), PendingBatches::new(engine_handle), commands)
    }

    fn enter(pending_batches: &mut PendingBatches, op: Op) -> bool {
        let effects = Effects { journal: vec![op], out: Vec::new() };
        pending_batches.enter(effects, None, Box::new(|_| ())).is_none()
    }

    fn finalize_all(pending_batches: &mut PendingBatches, commands: &Receiver<Envelope>) {
        while !pending_batches.is_empty() {
            let Command::BatchCompleted { ticket, result } = commands.recv_timeout(LIMIT).unwrap().command else {
                panic!("nothing else is told");
            };
            pending_batches.leave(ticket, result.is_ok()).unwrap();
        }
    }

    #[test]
    fn a_deletion_that_the_disk_refused_never_takes_a_later_row_away() {
        let (folder, mut pending_batches, commands) = without_disk();
        let file = folder.path().join("journal");
        assert!(!enter(&mut pending_batches, Op::delete(Table::Answers, *b"r1")), "there is no disk yet");
        assert!(!enter(&mut pending_batches, Op::delete(Table::Leases, *b"l1")));
        let disk = journal(&file);
        pending_batches.start(disk.clone());
        assert!(enter(&mut pending_batches, Op::put(Table::Answers, *b"r1", *b"promised")));
        finalize_all(&mut pending_batches, &commands);
        pending_batches.retry_backlog();
        finalize_all(&mut pending_batches, &commands);
        disk.shutdown(LIMIT).unwrap();
        assert_eq!(keys(&file, Table::Answers), [b"r1"], "what was acknowledged stays");
    }

    #[test]
    fn a_lease_that_changed_while_the_disk_failed_is_written_when_it_is_back() {
        let (folder, mut pending_batches, commands) = without_disk();
        let file = folder.path().join("journal");
        assert!(!enter(&mut pending_batches, Op::put(Table::Leases, *b"l1", *b"allocated")), "there is no disk yet");
        assert!(!enter(&mut pending_batches, Op::put(Table::Leases, *b"l2", *b"granted")));
        assert!(!enter(&mut pending_batches, Op::delete(Table::Leases, *b"l2")), "it was undone");
        let disk = journal(&file);
        pending_batches.start(disk.clone());
        pending_batches.retry_backlog();
        finalize_all(&mut pending_batches, &commands);
        disk.shutdown(LIMIT).unwrap();
        assert_eq!(keys(&file, Table::Leases), [b"l1"]);
    }

    #[test]
    fn a_change_of_plans_that_was_refused_is_not_written_when_the_disk_is_back_but_what_was_before_it_is() {
        let (folder, mut pending_batches, commands) = without_disk();
        let file = folder.path().join("journal");
        assert!(!enter(&mut pending_batches, Op::put(Table::Plans, *b"tuesday", *b"kept")), "there is no disk yet");
        assert!(!enter(&mut pending_batches, Op::delete(Table::Plans, *b"monday")));
        let disk = journal(&file);
        pending_batches.start(disk.clone());
        assert!(enter(&mut pending_batches, Op::put(Table::Plans, *b"monday", *b"kept")));
        finalize_all(&mut pending_batches, &commands);
        pending_batches.retry_backlog();
        finalize_all(&mut pending_batches, &commands);
        pending_batches.restore(vec![Op::put(Table::Plans, *b"sunday", *b"kept")]);
        finalize_all(&mut pending_batches, &commands);
        disk.shutdown(LIMIT).unwrap();
        assert_eq!(keys(&file, Table::Plans), [&b"monday"[..], b"sunday"]);
    }

    #[test]
    fn calls_that_wait_for_one_decision_are_bounded() {
        let (folder, mut pending_batches, commands) = without_disk();
        pending_batches.start(journal(&folder.path().join("journal")));
        let (decision, heard) = (DecisionId::of(1), Arc::new(AtomicUsize::new(0)));
        let effects = Effects { journal: vec![Op::put(Table::Answers, *b"r1", *b"promised")], out: Vec::new() };
        assert!(pending_batches.enter(effects, Some(decision), Box::new(|_| ())).is_none());
        for _ in 1..WAITING_MAX {
            let heard = Arc::clone(&heard);
            pending_batches.after(
                decision,
                Box::new(move |_| {
                    heard.fetch_add(1, Ordering::AcqRel);
                }),
            );
        }
        assert_eq!(heard.load(Ordering::Acquire), 0, "they wait");
        let refused = |result: Result<(), Refusal>| assert!(matches!(result, Err(Refusal::Unavailable { .. })));
        pending_batches.after(decision, Box::new(refused));
        let Command::BatchCompleted { ticket, .. } = commands.recv_timeout(LIMIT).unwrap().command else { panic!() };
        pending_batches.leave(ticket, true).unwrap().then.into_iter().for_each(|then| then(Ok(())));
        assert_eq!(heard.load(Ordering::Acquire), WAITING_MAX - 1);
    }

    #[test]
    fn messages_of_a_refused_batch_leave_after_those_of_the_batch_in_flight() {
        let (folder, mut pending_batches, _commands) = without_disk();
        let failing = journal(&folder.path().join("failing"));
        pending_batches.start(failing.clone());
        let enter = |pending_batches: &mut PendingBatches, watcher: &str| {
            let out = vec![Effect::WatchEnded { watcher: watcher.into(), reason: String::new() }];
            let effects = Effects { journal: vec![Op::put(Table::Attempts, *b"a1", *b"known")], out };
            pending_batches.enter(effects, None, Box::new(|_| ())).map(|back| (back.out.len(), back.taken))
        };
        assert_eq!(enter(&mut pending_batches, "first"), None);
        failing.shutdown(LIMIT).unwrap();
        assert_eq!(enter(&mut pending_batches, "second"), Some((0, false)), "it is not to overtake the first");
        let left = pending_batches.leave(1, true).unwrap().out;
        let names: Vec<&str> = left
            .iter()
            .map(|effect| match effect {
                Effect::WatchEnded { watcher, .. } => &**watcher,
                _ => "another",
            })
            .collect();
        assert_eq!(names, ["first", "second"]);
        assert_eq!(enter(&mut pending_batches, "third"), Some((1, false)), "nothing is in flight any more");
    }

    #[test]
    fn messages_behind_a_batch_that_hangs_are_bounded() {
        let (folder, mut pending_batches, _commands) = without_disk();
        pending_batches.start(journal(&folder.path().join("journal")));
        assert!(enter(&mut pending_batches, Op::put(Table::Attempts, *b"a1", *b"known")));
        let ended = |_| Effect::WatchEnded { watcher: "w".into(), reason: String::new() };
        let mut tell = |count: usize| {
            let effects = Effects { journal: Vec::new(), out: (0..count).map(ended).collect() };
            pending_batches.enter(effects, None, Box::new(|_| ())).map(|back| (back.out.len(), back.taken))
        };
        assert_eq!(tell(MESSAGES_MAX), None, "they wait");
        assert_eq!(tell(1), Some((0, true)), "one too many is lost, and its caller does not wait");
        assert_eq!(pending_batches.leave(1, true).unwrap().out.len(), MESSAGES_MAX);
    }

    #[test]
    fn what_failed_in_flight_is_written_before_what_was_refused_after_it() {
        let (folder, mut pending_batches, _commands) = without_disk();
        let (first, second) = (folder.path().join("failing"), folder.path().join("sound"));
        let failing = journal(&first);
        pending_batches.start(failing.clone());
        assert!(enter(&mut pending_batches, Op::put(Table::Attempts, *b"a1", *b"known")));
        failing.shutdown(LIMIT).unwrap();
        assert!(!enter(&mut pending_batches, Op::delete(Table::Attempts, *b"a1")));
        pending_batches.failed.fetch_add(1, Ordering::AcqRel); // as the journal tells it
        pending_batches.start(journal(&second));
        assert!(
            !enter(&mut pending_batches, Op::put(Table::Attempts, *b"a2", *b"known")),
            "a failure is not taken in yet"
        );
        pending_batches.leave(1, false).unwrap();
        pending_batches.retry_backlog();
        assert!(!pending_batches.is_empty() && pending_batches.backlog.is_empty());
        pending_batches.journal.as_ref().unwrap().shutdown(LIMIT).unwrap();
        assert_eq!(keys(&second, Table::Attempts), [b"a2"], "the first attempt ended after it was made");
    }
}
