//! Adherence: whether hints were followed, why not where it can be told, and what came of it.
//!
//! Each decision with hints is watched until all its containers were seen, its attempt is over, all that is missing was
//! given back, or its time has passed. Containers are heard of from nodes and from applications; whichever is first
//! counts. A decision whose watch ended is *settled* once, at a tick: its containers are counted, and where they are is
//! costed by the evaluator that costed its hints. In shadow mode this tells what following would have saved.
//!
//! # Code map
//! - `seen`: which containers were heard of; `group`: which container takes which hint; `record`: one decision; `trial`: costs; `tally`: figures that add up.
//! - `lately`: the same of the last hour, and counts by decision that are kept for longer.
//! - `hooks`: what adherence hears of, by its handler.
//!
//! # Invariants
//! - Of a group, Σ over hosts of min(hinted, seen there) containers are on their host, in whichever order they came.
//! - A container counts once, whoever tells of it and however often; a decision is counted once.
//! - What nobody was told is not counted: its containers are where YARN put them by itself.
//! - All misses together are all containers that are not on their host.
//! - What is kept is bounded by `adherence_max`: beyond, the oldest decisions are counted as they stand.

mod group;
mod hooks;
mod lately;
mod record;
mod seen;
mod tally;
mod trial;

use super::answer::Answer;
use super::decision::Mode;
use super::lease::{Lease, LeaseEnd};
use super::placer::Row;
use super::settings::EngineSettings;
use group::{ContainerSighting, HintProximity};
use hintd_model::cluster::{Overlay, Snapshot};
use hintd_model::units::{AttemptId, ContainerId, DecisionId, Micros, NodeIdx, QueueName, Timestamp};
pub(crate) use hooks::{AdherenceHandler, ToldOf};
pub use lately::{Followed, GroupTallies, LatelySums};
use lately::{LastHour, SettledCounts};
pub(crate) use record::KeptOutcome;
pub use record::{DecisionOutcome, HintOutcome, PLACES_KEPT, TermCompared};
use record::{Kind, Record, Stage};
use seen::Seen;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
pub use tally::{GroupTally, Miss, Outcomes, Tally, TallyKey, Term, TermSums};
pub(crate) use trial::Trial;

/// Policies, queues and modes with figures of their own; further queues share theirs.
const TALLIES_MAX: usize = 256;
/// The queue under which those beyond the bound are counted.
const OTHER_QUEUES: &str = "(other)";
/// A decision of which nothing more is expected may still hear of what is on its way: reports are seconds apart.
const GRACE: Micros = Micros::from_secs(5);
/// Rows and blocks kept, by decision that may be watched.
const WEIGHT_EACH: usize = 64;
/// Decisions that wait to be costed; beyond, they are counted and not compared.
const CLOSED_MAX: usize = 10_000;
/// Node look-ups spent on costing at one tick: about 2 ms.
const WORK_A_TICK: usize = 50_000;

/// See the module.
#[derive(Debug, Default)]
pub struct Adherence {
    /// Those that are not counted yet.
    records: BTreeMap<DecisionId, Record>,
    /// What came of the counted ones whose answer is kept, packed.
    settled: BTreeMap<DecisionId, Box<[u8]>>,
    /// How many containers of each came to their host, whether the answer is kept or not.
    settled_counts: SettledCounts,
    attempts: BTreeMap<AttemptId, Watched>,
    /// Containers that were heard of.
    seen: Seen,
    /// Open records, by when they close.
    due: BTreeSet<(Timestamp, DecisionId)>,
    /// Records to be counted, in order.
    closed: VecDeque<DecisionId>,
    /// Of open records.
    weight: usize,
    tallies: BTreeMap<TallyKey, Tally>,
    /// What was counted since it was last told.
    fresh: BTreeMap<TallyKey, Tally>,
    lately: LastHour,
}

/// An attempt with hints.
#[derive(Debug, Default)]
struct Watched {
    /// Oldest first.
    open: Vec<DecisionId>,
    /// No further decision will come.
    over: bool,
}

/// A container that was heard of.
#[derive(Debug, Clone)]
struct Arrival<'a> {
    container: ContainerId,
    node: NodeIdx,
    kind: Kind<'a>,
    /// Decision and host of the lease that it ends, if one is known.
    lease: Option<(DecisionId, NodeIdx)>,
    /// When it was allocated, where that is known.
    allocated: Option<Timestamp>,
}

impl Adherence {
    /// Watches what becomes of a decision's hints; `rows` are their containers, position by position.
    fn watch(
        &mut self,
        answer: &Arc<Answer>,
        rows: &[Row],
        trial: Option<Box<Trial>>,
        snapshot: &Snapshot,
        settings: &EngineSettings,
        now: Timestamp,
    ) {
        let decision = &answer.decision;
        if decision.mode == Mode::Off {
            let key = TallyKey { policy: Arc::clone(&decision.policy), queue: decision.queue.clone(), mode: Mode::Off };
            return self.count(key, (&Tally { decisions: 1, ..Tally::default() }, Vec::new()), now);
        }
        if rows.is_empty() {
            return; // all of it waits for a dispatcher, which decides again
        }
        let record = Record::new(answer, rows, trial, snapshot, now.plus(settings.adherence_wait));
        self.weight += record.weight();
        self.due.insert((record.closes, decision.id));
        let watched = self.attempts.entry(decision.attempt).or_default();
        watched.over = false;
        watched.open.push(decision.id);
        self.records.insert(decision.id, record);
        let most = settings.adherence_max;
        while self.due.len() > most || (self.weight > most.saturating_mul(WEIGHT_EACH) && self.due.len() > 1) {
            let Some(&(_, oldest)) = self.due.first() else { break };
            self.close(oldest, Some(Miss::Forgotten));
        }
    }

    /// A container was heard of: how near it is to a hint, and what its queue gets. `None`: it was heard of before, or
    /// nothing was hinted for it.
    fn arrived(&mut self, arrival: &Arrival<'_>, snapshot: &Snapshot, most: usize) -> Option<(HintProximity, Mode)> {
        let watched = self.attempts.get(&arrival.container.attempt)?;
        if !self.seen.note(arrival.container, most) {
            return None;
        }
        let hinted = arrival.lease.map(|(_, node)| node);
        let spot = ContainerSighting { node: arrival.node, rack: snapshot.rack(arrival.node), late: false, hinted };
        let records = &mut self.records;
        let mut nearest = |id: &DecisionId| {
            let record = records.get_mut(id)?;
            let (near, group) = record.nearest(&arrival.kind, spot, snapshot)?;
            // What nobody was told takes what is of no other decision: a repeat may fetch its answer yet.
            Some((record.unheard, near, *id, group))
        };
        let on_lease = arrival.lease.filter(|(id, node)| *node == arrival.node && watched.open.contains(id));
        let of_lease = on_lease.and_then(|(id, _)| nearest(&id)).filter(|(unheard, ..)| !unheard);
        let (unheard, near, id, group) = of_lease.or_else(|| watched.open.iter().filter_map(nearest).min())?;
        let record = self.records.get_mut(&id).expect("it was just looked at");
        record.take(group, spot, arrival.allocated, snapshot);
        let mode = record.answer.decision.mode;
        if record.open() == 0 {
            self.close(id, None);
        }
        (!unheard).then_some((near, mode))
    }

    /// A lease ended without a container that is known by name.
    fn lease_ended(&mut self, lease: &Lease, end: LeaseEnd, snapshot: &Snapshot, now: Timestamp) {
        let Some(record) = self.records.get_mut(&lease.decision) else { return };
        if record.stage == Stage::Open && record.lease_ended(&lease.group, lease.node, end, snapshot) {
            self.close_by(lease.decision, now.plus(GRACE), None);
        }
    }

    /// Nothing more is expected of the attempt but what is on its way.
    fn attempt_over(&mut self, attempt: AttemptId, now: Timestamp) {
        let Some(watched) = self.attempts.get_mut(&attempt) else { return };
        watched.over = true;
        if watched.open.is_empty() {
            self.attempts.remove(&attempt);
            self.seen.forget(attempt);
            return;
        }
        for id in watched.open.clone() {
            self.close_by(id, now.plus(GRACE), Some(Miss::AttemptDone));
        }
    }

    /// The decision was never promised.
    fn undo(&mut self, decision: DecisionId) {
        if self.records.get(&decision).is_some_and(|record| record.stage == Stage::Open) {
            self.leave(decision);
        }
        self.records.remove(&decision);
        self.settled.remove(&decision);
        self.settled_counts.remove(decision);
    }

    /// Whether somebody has a decision's answer. Of a queue in shadow nobody is to be told anything.
    fn reached(&mut self, decision: DecisionId, reached: bool) {
        if let Some(record) = self.records.get_mut(&decision) {
            record.unheard = !reached && record.answer.decision.mode == Mode::On;
        }
    }

    /// Nobody will ask for it by its answer any more.
    fn forget(&mut self, decision: DecisionId) {
        self.settled.remove(&decision);
        if let Some(record) = self.records.get_mut(&decision) {
            record.orphan = true;
        }
    }

    /// Ends watches whose time has come, and counts what ended, as far as there is time for it.
    fn tick(&mut self, snapshot: &Snapshot, leases: &Overlay, now: Timestamp) {
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.close(id, None);
        }
        let mut work = 0;
        while work < WORK_A_TICK
            && let Some(id) = self.closed.pop_front()
        {
            let Some(mut record) = self.records.remove(&id) else { continue };
            if record.unheard {
                continue;
            }
            work += record.work();
            let tally = record.finalize(snapshot, leases);
            self.count(record.key(), (&tally, record.by_group()), now);
            self.settled_counts.keep(id, Followed::settled(&tally));
            if !record.orphan {
                self.settled.insert(id, record.outcome().pack());
            }
        }
    }

    /// What was counted since the last call.
    fn take_fresh(&mut self) -> BTreeMap<TallyKey, Tally> {
        std::mem::take(&mut self.fresh)
    }

    /// What became of a decision; `None`: it had no hints, or is of before the last start.
    pub(super) fn outcome(&self, decision: DecisionId) -> Option<KeptOutcome> {
        let open = self.heard(decision).map(|record| KeptOutcome::Open(record.outcome()));
        open.or_else(|| Some(KeptOutcome::Settled(self.settled.get(&decision)?.clone())))
    }

    /// How many of a decision's containers came to their host so far; `None`: it had no hints, is of before the last start, or
    /// too many were settled since.
    #[must_use]
    pub fn followed(&self, decision: DecisionId) -> Option<Followed> {
        let open = self.heard(decision).map(Record::followed);
        open.or_else(|| self.settled_counts.of(decision))
    }

    /// One that is not counted yet, of which somebody has the answer.
    fn heard(&self, decision: DecisionId) -> Option<&Record> {
        self.records.get(&decision).filter(|record| !record.unheard)
    }

    /// Figures of the last hour.
    #[must_use]
    pub fn last_hour(&self, now: Timestamp) -> BTreeMap<TallyKey, LatelySums> {
        self.lately.sums(now)
    }

    /// Figures since the start.
    #[must_use]
    pub const fn tallies(&self) -> &BTreeMap<TallyKey, Tally> {
        &self.tallies
    }

    /// Decisions that containers are still awaited for, or that wait to be counted.
    pub(super) fn open(&self) -> usize {
        self.due.len() + self.closed.len()
    }

    fn count(&mut self, mut key: TallyKey, of: (&Tally, Vec<(Arc<str>, GroupTally)>), now: Timestamp) {
        let tally = of.0;
        if self.tallies.len() >= TALLIES_MAX && !self.tallies.contains_key(&key) {
            key.queue = QueueName::from(OTHER_QUEUES);
        }
        self.lately.add(&key, of, now);
        self.tallies.entry(key.clone()).or_default().add(tally);
        self.fresh.entry(key).or_default().add(tally);
    }

    fn close_by(&mut self, decision: DecisionId, at: Timestamp, because: Option<Miss>) {
        let Some(record) = self.records.get_mut(&decision).filter(|record| record.stage == Stage::Open) else { return };
        record.because = because.unwrap_or(record.because);
        if at < record.closes {
            self.due.remove(&(record.closes, decision));
            record.closes = at;
            self.due.insert((at, decision));
        }
    }

    fn close(&mut self, decision: DecisionId, because: Option<Miss>) {
        self.leave(decision);
        let Some(record) = self.records.get_mut(&decision) else { return };
        record.because = because.unwrap_or(record.because);
        record.close();
        if self.closed.len() >= CLOSED_MAX {
            record.spare();
        }
        self.closed.push_back(decision);
    }

    /// An open record is no longer one.
    fn leave(&mut self, decision: DecisionId) {
        let Some(record) = self.records.get(&decision) else { return };
        self.weight -= record.weight();
        self.due.remove(&(record.closes, decision));
        let attempt = record.answer.decision.attempt;
        let Some(watched) = self.attempts.get_mut(&attempt) else { return };
        watched.open.retain(|id| *id != decision);
        if watched.open.is_empty() && watched.over {
            self.attempts.remove(&attempt);
            self.seen.forget(attempt);
        }
    }
}
