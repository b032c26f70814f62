//! Leases granted and ended, and answers forgotten: whoever a lease concerns hears of it here.

use super::adherence::Adherence;
use super::adherence::AdherenceHandler;
use super::answer::Answer;
use super::answers::Answers;
use super::decision::Decision;
use super::dispatching::{DispatchHandler, Dispatching};
use super::effects::{Counter, Effect, FollowBody, Output};
use super::ids::Ids;
use super::journal::{Op, Table, text_key};
use super::lease::{Lease, LeaseEnd};
use super::ledger::Ledger;
use super::placer::Row;
use super::settings::EngineSettings;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, ContainerId, HostName, LeaseId, NodeIdx, RequestId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Grants and ends leases, and forgets answers. Writes the ledger, answers and ids of leases; tells the dispatchers whose
/// tasks the leases are for, and adherence. Touches neither attempts nor flows nor facts.
pub(crate) struct LeaseHandler<'e> {
    pub(crate) ledger: &'e mut Ledger,
    pub(crate) answers: &'e mut Answers,
    pub(crate) ids: &'e mut Ids,
    pub(crate) dispatching: &'e mut Dispatching,
    pub(crate) adherence: &'e mut Adherence,
    pub(crate) snapshot: &'e Arc<Snapshot>,
    pub(crate) settings: &'e EngineSettings,
    pub(crate) out: &'e mut Output,
}

impl LeaseHandler<'_> {
    /// Dispatchers, over the leases as they are.
    pub(crate) fn dispatch(&mut self) -> DispatchHandler<'_> {
        DispatchHandler {
            dispatching: self.dispatching,
            ledger: self.ledger,
            snapshot: self.snapshot,
            settings: self.settings,
            effects: &mut self.out.effects,
        }
    }

    /// Adherence, over the leases as they are.
    pub(crate) fn adherence(&mut self) -> AdherenceHandler<'_> {
        AdherenceHandler {
            adherence: self.adherence,
            ledger: self.ledger,
            snapshot: self.snapshot,
            settings: self.settings,
            effects: &mut self.out.effects,
        }
    }

    /// Grants one lease a container, with ids in the hints.
    pub(crate) fn grant(&mut self, draft: &mut Decision, rows: &[Row], now: Timestamp) -> BTreeSet<LeaseId> {
        let expires = now.plus(self.settings.lease_ttl);
        let mut live = BTreeSet::new();
        for (row, hint) in rows.iter().zip(&mut draft.hints).filter(|(row, _)| row.lease) {
            hint.expires = Some(expires);
            for _ in 0..row.count {
                let id = self.ids.lease();
                let lease = Lease {
                    id,
                    decision: draft.id,
                    request: draft.request.clone(),
                    attempt: draft.attempt,
                    group: Arc::clone(&hint.group),
                    key: row.key,
                    node: row.node,
                    size: row.size,
                    expires,
                    confirmed: None,
                };
                self.out.effects.journal.push(lease.put(&hint.host, &self.snapshot.kinds));
                self.ledger.insert(lease);
                hint.leases.push(id);
                live.insert(id);
            }
        }
        self.out.effects.count(Counter::LeasesGranted, live.len() as u64);
        live
    }

    /// YARN has allocated a container for the lease on its host: it lasts until that has to have shown itself.
    pub(crate) fn confirm(&mut self, id: LeaseId, container: ContainerId, host: &HostName, now: Timestamp) {
        let expires = now.plus(self.settings.lasts(true));
        if let Some(lease) = self.ledger.confirm(id, container, expires) {
            self.out.effects.journal.push(lease.put(host, &self.snapshot.kinds));
        }
    }

    /// Ends a lease: it leaves the ledger and the journal, is counted by kind, and its answer hears of it.
    pub(crate) fn end(&mut self, id: LeaseId, end: LeaseEnd, now: Timestamp) -> Option<Lease> {
        let lease = self.drop_lease(id, end, now)?;
        self.adherence().lease_ended(&lease, end, now);
        Some(lease)
    }

    /// Ends a lease whose container its application was given on another host, or whose task has ended. Its room is
    /// free, yet to adherence it was not given back: that has the container itself, and counting both would make one
    /// container two.
    pub(crate) fn end_met(&mut self, id: LeaseId, now: Timestamp) {
        self.drop_lease(id, LeaseEnd::Released, now);
    }

    /// Ends a lease for all but adherence.
    fn drop_lease(&mut self, id: LeaseId, end: LeaseEnd, now: Timestamp) -> Option<Lease> {
        let lease = self.ledger.remove(id)?;
        self.out.changed = true;
        self.out.effects.journal.push(Lease::delete(id));
        self.answers.lease_ended(&lease.request, id, end, now.plus(self.settings.answers_keep));
        let counter = match end {
            LeaseEnd::Bound => Counter::LeasesBound,
            LeaseEnd::Released => Counter::LeasesReleased,
            LeaseEnd::Withdrawn => Counter::LeasesWithdrawn,
            LeaseEnd::Expired => Counter::LeasesExpired,
        };
        self.out.effects.count(counter, 1);
        self.dispatch().lease_ended(&lease, Some(end), now);
        Some(lease)
    }

    /// Ends leases of one node and tells their applications.
    pub(crate) fn withdraw(
        &mut self,
        node: NodeIdx,
        leases: Vec<LeaseId>,
        reason: &'static str,
        now: Timestamp,
    ) -> Vec<Lease> {
        let ended: Vec<Lease> = leases.into_iter().filter_map(|id| self.end(id, LeaseEnd::Withdrawn, now)).collect();
        let mut by_attempt: BTreeMap<AttemptId, Vec<LeaseId>> = BTreeMap::new();
        for lease in &ended {
            by_attempt.entry(lease.attempt).or_default().push(lease.id);
        }
        for (attempt, leases) in by_attempt {
            let message = FollowBody::Withdraw { leases, host: self.snapshot.host(node).clone(), reason };
            self.out.effects.out.push(Effect::Follow { attempt, message, cause: reason });
        }
        ended
    }

    /// Ends all leases of an attempt: it gives them back.
    pub(crate) fn release_all(&mut self, attempt: AttemptId, now: Timestamp) {
        let leases: Vec<LeaseId> = self.ledger.of_attempt(attempt).map(|lease| lease.id).collect();
        for id in leases {
            self.end(id, LeaseEnd::Released, now);
        }
    }

    /// Drops what an answer granted that was never promised. Deletes are written all the same, for a journal that failed
    /// late may have kept what it was given.
    pub(crate) fn undo(&mut self, answer: &Answer, now: Timestamp) {
        let mut undone = 0;
        for id in answer.leases() {
            if let Some(lease) = self.ledger.remove(id) {
                undone += 1;
                self.dispatch().lease_ended(&lease, None, now);
            }
            self.out.effects.journal.push(Lease::delete(id));
        }
        let request = &answer.decision.request;
        self.dispatch().undone(answer.decision.attempt, request.as_str(), now);
        self.out.effects.count(Counter::LeasesUndone, undone);
        self.answers.remove(request);
        self.out.effects.journal.push(Op::delete(Table::Answers, text_key(request.as_str())));
        self.out.changed = true;
    }

    /// Ends leases whose time has passed, and forgets answers that were kept for long enough.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        for id in self.ledger.due(now) {
            self.end(id, LeaseEnd::Expired, now);
        }
        for id in self.answers.due(now) {
            if self.answers.waiting(&id).is_some_and(|answer| self.dispatching.waits(&answer)) {
                self.answers.keep(&id, now.plus(self.settings.answers_keep));
            } else {
                self.forget_answer(&id);
            }
        }
    }

    /// Forgets an answer.
    pub(crate) fn forget_answer(&mut self, id: &RequestId) {
        if let Some(decision) = self.answers.remove(id) {
            self.adherence().forgotten(decision);
            self.out.effects.journal.push(Op::delete(Table::Answers, text_key(id.as_str())));
            self.out.effects.out.push(Effect::AnswerForgotten(id.clone()));
        }
    }
}
