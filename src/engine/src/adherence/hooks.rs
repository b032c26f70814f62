//! What adherence hears of.

use super::group::HintProximity;
use super::record::Kind;
use super::{Adherence, Arrival, Trial};
use crate::answer::Answer;
use crate::decision::Mode;
use crate::effects::{Counter, Effect, Effects};
use crate::lease::{Lease, LeaseEnd};
use crate::ledger::Ledger;
use crate::placer::Row;
use crate::settings::EngineSettings;
use hintd_model::cluster::{ReportedContainer, Snapshot};
use hintd_model::units::{AttemptId, ContainerId, DecisionId, LeaseId, NodeIdx, Timestamp};
use std::sync::Arc;

/// A container that an application spoke of.
pub(crate) struct ToldOf<'a> {
    pub(crate) container: ContainerId,
    pub(crate) node: NodeIdx,
    pub(crate) group: &'a str,
    /// The lease that it was allocated for, or most likely was.
    pub(crate) lease: Option<LeaseId>,
    /// When, by the application's clock.
    pub(crate) at: Timestamp,
}

/// Whether hints were followed. Writes nothing but [`Adherence`] and effects; reads leases, the snapshot and the settings.
pub(crate) struct AdherenceHandler<'e> {
    pub(crate) adherence: &'e mut Adherence,
    pub(crate) ledger: &'e Ledger,
    pub(crate) snapshot: &'e Snapshot,
    pub(crate) settings: &'e EngineSettings,
    pub(crate) effects: &'e mut Effects,
}

impl AdherenceHandler<'_> {
    /// A decision was made. Its hints are `rows`, position by position.
    pub(crate) fn hinted(&mut self, answer: &Arc<Answer>, rows: &[Row], trial: Option<Box<Trial>>, now: Timestamp) {
        self.adherence.watch(answer, rows, trial, self.snapshot, self.settings, now);
    }

    /// A node reports a container that it did not before; `lease`: it ends this one.
    pub(crate) fn met(&mut self, node: NodeIdx, container: &ReportedContainer, lease: Option<LeaseId>) {
        let lease = lease.and_then(|id| self.ledger.get(id)).map(|lease| (lease.decision, lease.node));
        let kind = Kind::Key(container.key);
        self.arrived(&Arrival { container: container.id, node, kind, lease, allocated: None });
    }

    /// An application tells where it was given a container; whether it was for hints that were only computed.
    pub(crate) fn told(&mut self, told: &ToldOf<'_>) -> bool {
        let lease = told.lease.and_then(|id| self.ledger.get(id)).map(|lease| (lease.decision, lease.node));
        let (container, node, kind) = (told.container, told.node, Kind::Group(told.group));
        self.arrived(&Arrival { container, node, kind, lease, allocated: Some(told.at) }) == Some(Mode::Shadow)
    }

    fn arrived(&mut self, arrival: &Arrival<'_>) -> Option<Mode> {
        let (near, mode) = self.adherence.arrived(arrival, self.snapshot, self.settings.containers_seen)?;
        let counter = match (mode, near) {
            (Mode::Shadow, HintProximity::Host) => Counter::ShadowAgreed,
            (Mode::Shadow, _) => Counter::ShadowDiffered,
            (_, HintProximity::Host) => Counter::HintsFollowed,
            (_, _) => Counter::HintsElsewhere,
        };
        self.effects.count(counter, 1);
        Some(mode)
    }

    /// A lease ended. Not told of are those whose container was given elsewhere; those bound by a container of known
    /// name were met by it already.
    pub(crate) fn lease_ended(&mut self, lease: &Lease, end: LeaseEnd, now: Timestamp) {
        if end != LeaseEnd::Bound {
            self.adherence.lease_ended(lease, end, self.snapshot, now);
        }
    }

    /// A lease is to be bound by a rise of use: some container is there, nobody says which.
    pub(crate) fn met_unseen(&mut self, lease: LeaseId, now: Timestamp) {
        if let Some(lease) = self.ledger.get(lease) {
            self.adherence.lease_ended(lease, LeaseEnd::Bound, self.snapshot, now);
        }
    }

    /// The attempt is over, or no longer known.
    pub(crate) fn attempt_over(&mut self, attempt: AttemptId, now: Timestamp) {
        self.adherence.attempt_over(attempt, now);
    }

    /// A decision was never promised.
    pub(crate) fn undone(&mut self, decision: DecisionId) {
        self.adherence.undo(decision);
    }

    /// Whether somebody has a decision's answer.
    pub(crate) fn reached(&mut self, decision: DecisionId, reached: bool) {
        self.adherence.reached(decision, reached);
    }

    /// A decision's answer is no longer kept.
    pub(crate) fn forgotten(&mut self, decision: DecisionId) {
        self.adherence.forget(decision);
    }

    /// Counts what is settled, and tells of it.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.adherence.tick(self.snapshot, self.ledger.overlay(), now);
        let fresh = self.adherence.take_fresh().into_iter();
        self.effects.out.extend(fresh.map(|(key, tally)| Effect::AdherenceFinalized(Box::new((key, tally)))));
    }
}
