//! Moves of running containers: every so often a policy is asked which would save cost, and their applications are told.
//!
//! Advice only. Nothing is leased: YARN has no move, and whether a task that has run for a while is worth starting anew
//! elsewhere only its application knows. Later rounds count the room of what was proposed as taken until the container
//! has come or the advice is old.
//!
//! A move for predicted performance is told when two rounds, one after the other, find one for the container: what is slow for
//! a moment moves nothing.
//!
//! `settings`; `round`: the pure search, on another thread, `rooted`: what it looks at for predicted performance; `note`: what was
//! told, for who asks; here, when rounds begin and what is told of what they found.

mod note;
mod rooted;
mod round;
pub mod settings;

pub use note::MoveNote;
pub use round::{ProposedMove, Round, RoundOutcome};
pub(crate) use round::{RoundApplication, RoundJob};
pub use settings::RebalanceSettings;

use super::attempts::Attempts;
use super::effects::{Counter, Effect, Effects, FollowBody};
use super::engine::Engine;
use super::flows::Flows;
use super::ledger::Ledger;
use super::settings::EngineSettings;
use hintd_model::cluster::{Overlay, ReportedContainer, Resource, Snapshot};
use hintd_model::units::{ApplicationId, AttemptId, ContainerId, NodeIdx, SchedulerKey, Timestamp};
use round::Seen;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a move is proposed, on Follow.
pub const CAUSE: &str = "rebalance";

/// What was proposed a short while ago.
#[derive(Debug)]
pub(crate) struct Rebalancing {
    /// When the last round began.
    began: Timestamp,
    number: u64,
    /// The newest round has not come back.
    searching: bool,
    cooling: BTreeMap<ContainerId, Cooling>,
    /// Containers that the last round found a better place for by predicted performance.
    found: BTreeSet<ContainerId>,
    /// Containers that rounds have seen to run, and since when.
    seen: Arc<Seen>,
}

/// Why a container stays.
#[derive(Debug, Clone)]
struct Cooling {
    until: Timestamp,
    /// Where it was proposed to go, until another of its size comes up there.
    promised: Option<PendingMove>,
    /// What its application was told; `None`: it came where another one was proposed to go.
    told: Option<Box<MoveNote>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingMove {
    to: NodeIdx,
    size: Resource,
    key: SchedulerKey,
}

impl Rebalancing {
    pub(super) fn new(start: Timestamp) -> Self {
        let (cooling, found, seen) = Default::default();
        Self { began: start, number: 0, searching: false, cooling, found, seen }
    }

    /// Leases, and room that was proposed.
    fn taken(&self, leases: &Overlay) -> Overlay {
        let mut taken = leases.clone();
        for promised in self.cooling.values().filter_map(|cooling| cooling.promised) {
            taken.set(promised.to, taken.leased(promised.to).plus(&promised.size));
        }
        taken
    }

    /// A container appeared: where one of its kind was proposed to go, that was followed, whether its application asked
    /// for it (and has a lease) or not. It cools down as the other, until `until`. Whether it was.
    pub(super) fn met(&mut self, node: NodeIdx, container: &ReportedContainer, until: Timestamp) -> bool {
        if self.cooling.is_empty() {
            return false;
        }
        let attempt = container.id.attempt;
        let first = ContainerId { attempt, id: 0 };
        let last = ContainerId { attempt, id: u64::MAX };
        let wanted = PendingMove { to: node, size: container.size, key: container.key };
        let mut open = self.cooling.range_mut(first..=last);
        let Some((_, met)) = open.find(|(id, cooling)| **id != container.id && cooling.promised == Some(wanted)) else {
            return false;
        };
        met.promised = None;
        met.told.iter_mut().for_each(|note| note.followed = true);
        self.cooling.insert(container.id, Cooling { until, promised: None, told: None });
        true
    }

    /// What an attempt was told and is not cold yet, by container. Between rounds, and after the last one, some are kept for
    /// longer.
    pub(crate) fn told(&self, attempt: AttemptId, now: Timestamp) -> Vec<MoveNote> {
        let (first, last) = (ContainerId { attempt, id: 0 }, ContainerId { attempt, id: u64::MAX });
        let open = self.cooling.range(first..=last).filter(|(_, of)| of.until > now);
        open.filter_map(|(_, of)| of.told.as_deref().cloned()).collect()
    }

    /// No round begins any more: what is cold is nobody's, and what only the last one found was not found twice.
    fn end(&mut self, now: Timestamp) {
        self.found.clear();
        self.cooling.retain(|_, cooling| cooling.until > now);
    }

    /// An attempt is over.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.cooling.retain(|container, _| container.attempt != attempt);
    }
}

impl Engine {
    /// Takes what a round came to, and tells applications of moves that may still be made: whose container runs where it
    /// did, to a node that has room, within all bounds. What comes of an older round is dropped.
    pub fn rebalanced(&mut self, number: u64, found: &RoundOutcome, now: Timestamp) {
        self.move_handler().rebalanced(number, found, now);
    }

    /// Moves that an attempt was told of within `rebalance.cool_down`, by container.
    #[must_use]
    pub fn moves_told(&self, attempt: AttemptId, now: Timestamp) -> Vec<MoveNote> {
        self.rebalancing().told(attempt, now)
    }
}

/// Rounds that look for moves, and what is proposed of theirs. Writes [`Rebalancing`] and effects; reads flows, attempts,
/// leases, the snapshot and the settings.
pub(crate) struct MoveHandler<'e> {
    pub(crate) rebalancing: &'e mut Rebalancing,
    pub(crate) flows: &'e Flows,
    pub(crate) attempts: &'e Attempts,
    pub(crate) ledger: &'e Ledger,
    pub(crate) snapshot: &'e Arc<Snapshot>,
    pub(crate) settings: &'e EngineSettings,
    pub(crate) effects: &'e mut Effects,
}

impl MoveHandler<'_> {
    /// Begins a round where one is due and there is something to look at.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        let settings = self.settings.rebalance;
        if !settings.enabled {
            self.rebalancing.end(now);
            return;
        }
        if now.since(self.rebalancing.began) < settings.every {
            return;
        }
        self.rebalancing.began = now;
        self.rebalancing.cooling.retain(|_, cooling| cooling.until > now);
        let applications: Vec<RoundApplication> = match self.snapshot.topology.network {
            Some(_) => self.flows.chained_jobs().filter_map(|of| self.looked_at(of)).collect(),
            None => Vec::new(),
        };
        // Without a measurement that counts there is nothing to predict by.
        let rooted = match settings.latency && self.snapshot.latency.counts(now) {
            true => rooted::applications(self.attempts.iter(), self.snapshot),
            false => Vec::new(),
        };
        if applications.is_empty() && rooted.is_empty() {
            return;
        }
        self.rebalancing.number += 1;
        self.rebalancing.searching = true;
        self.effects.out.push(Effect::Rebalance(Arc::new(Round {
            number: self.rebalancing.number,
            began: now,
            snapshot: Arc::clone(self.snapshot),
            taken: self.rebalancing.taken(self.ledger.overlay()),
            applications,
            rooted,
            seen: Arc::clone(&self.rebalancing.seen),
            cooling: self.rebalancing.cooling.iter().map(|(id, of)| (*id, of.promised.map(|of| of.to))).collect(),
            chained: Arc::clone(self.flows.chained()),
            settings,
            pairs_max: self.settings.routes.pairs_max,
        })));
    }

    fn looked_at(&self, (attempt, jobs): (AttemptId, Vec<RoundJob>)) -> Option<RoundApplication> {
        let requests = self.attempts.get(attempt)?.requests.iter().cloned().collect();
        self.snapshot.applications.get(&attempt).map(|_| RoundApplication { attempt, requests, jobs })
    }

    fn rebalanced(&mut self, number: u64, found: &RoundOutcome, now: Timestamp) {
        let settings = self.settings.rebalance;
        if !settings.enabled || number != self.rebalancing.number || !std::mem::take(&mut self.rebalancing.searching) {
            return;
        }
        self.effects.count(Counter::RebalanceRounds, 1);
        self.effects.count(Counter::RebalanceLeftOut, found.left_out);
        self.rebalancing.seen = Arc::clone(&found.seen);
        let predicted = found.moves.iter().filter(|step| step.performance.is_some()).map(|step| step.container);
        let before = std::mem::replace(&mut self.rebalancing.found, predicted.collect());
        let mut by_application: BTreeMap<ApplicationId, usize> = BTreeMap::new();
        let (mut proposed, mut held) = (0, 0);
        for step in &found.moves {
            let count = by_application.entry(step.container.attempt.application).or_default();
            let within = proposed < settings.moves_per_round && *count < settings.moves_per_application;
            // Negated, so that no number is no gain.
            let worth = step.gain >= settings.gain_min();
            if !within || !worth || self.rebalancing.cooling.contains_key(&step.container) {
                continue;
            }
            if step.performance.is_some() && !before.contains(&step.container) {
                held += 1;
                continue;
            }
            let Some(promised) = self.may_move(step) else { continue };
            *count += 1;
            proposed += 1;
            let until = now.plus(settings.cool_down);
            let note = MoveNote::of(step, self.snapshot, now);
            let message = FollowBody::Move(Box::new(note.clone()));
            let cooling = Cooling { until, promised: Some(promised), told: Some(Box::new(note)) };
            self.rebalancing.cooling.insert(step.container, cooling);
            self.effects.out.push(Effect::Follow { attempt: step.container.attempt, message, cause: CAUSE });
        }
        self.effects.count(Counter::MovesProposed, proposed as u64);
        self.effects.count(Counter::MovesHeld, held);
    }

    fn may_move(&self, step: &ProposedMove) -> Option<PendingMove> {
        let running = self.snapshot.applications.get(&step.container.attempt)?.containers.get(&step.container)?;
        self.attempts.get(step.container.attempt)?;
        if running.node != step.from || step.to == step.from || !self.snapshot.state.get(step.to.at())?.usable() {
            return None;
        }
        let room = self.snapshot.room(step.to, &self.rebalancing.taken(self.ledger.overlay()));
        let promised = PendingMove { to: step.to, size: running.size, key: running.key };
        self.snapshot.rules.feasible(&running.size, &room).then_some(promised)
    }
}
