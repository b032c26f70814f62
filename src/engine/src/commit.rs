//! The serial applier: proposals become leases and answers, all or nothing; undoing and giving back.

use super::answers::Answer;
use super::attempts::{self, Token};
use super::decision::{Decision, Mode};
use super::effects::{CommitOutcome, Counter};
use super::engine::{Engine, Released};
use super::journal::{Op, Table, text_key};
use super::lease::{Lease, LeaseEnd};
use super::ledger::Wanted;
use super::monitor;
use super::placer::{Proposal, Row};
use super::refusal::Refusal;
use hintd_model::cluster::{Gang, WhenFull};
use hintd_model::units::{AttemptId, DecisionId, LeaseId, NodeIdx, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Engine {
    /// Leases what a proposal wants: all or nothing, unless it is its last try. `token` becomes the attempt's
    /// if it has none yet; the attempts before it end.
    pub fn commit(&mut self, mut proposal: Proposal, token: Token, now: Timestamp) -> CommitOutcome {
        self.take_desk(); // nobody wanted that of an earlier commit
        let request = Arc::clone(&proposal.request);
        match self.lookup(&request.id, proposal.digest) {
            Some(Ok(answer)) => return CommitOutcome::Answered(answer),
            Some(Err(refusal)) => return CommitOutcome::Refused(refusal),
            None => {}
        }
        if let Some(newer) = self.attempts.newer(request.attempt) {
            let message = format!("{} is over: {newer} has asked since", request.attempt);
            return CommitOutcome::Refused(Refusal::Invalid { field: "attempt".into(), message });
        }
        if self.comes_too_late(&proposal) {
            let name = request.attempt.to_string();
            return CommitOutcome::Refused(Refusal::Unknown { what: "application attempt", name, nearest: None });
        }
        let (leases, most) = (self.ledger.len() as u64 + proposal.wanted(), self.settings.leases_max);
        if leases > most as u64 {
            let message = format!("{leases} leases would be held at one time; limits.leases allows {most}");
            return CommitOutcome::Refused(Refusal::Unavailable { message, retry_after: self.settings.lease_ttl });
        }
        let short = self.short_of_room(&proposal.rows);
        if !short.is_empty() {
            self.effects.count(Counter::CommitConflicts, 1);
            if !proposal.last_try {
                let nodes = short.keys().map(|&node| self.snapshot.host(node).clone()).collect();
                return CommitOutcome::Conflict { nodes };
            }
            if let Err(refusal) = self.keep_what_fits(&mut proposal) {
                return CommitOutcome::Refused(refusal);
            }
        }
        if let Err(refusal) = self.chains_fit(&proposal) {
            self.effects.count(Counter::CommitConflicts, 1);
            if !proposal.last_try {
                let nodes = proposal.rows.iter().filter(|row| row.lease).map(|row| row.node);
                let nodes: BTreeSet<NodeIdx> = nodes.collect();
                let nodes = nodes.into_iter().map(|node| self.snapshot.host(node).clone()).collect();
                return CommitOutcome::Conflict { nodes };
            }
            return CommitOutcome::Refused(refusal);
        }
        if !self.has_its_place(&proposal, now) {
            self.effects.count(Counter::CommitConflicts, 1);
            return CommitOutcome::Conflict { nodes: Vec::new() };
        }
        if let Some(waits) = proposal.waits.take() {
            return match self.commit_waiting(proposal, &waits, token, now) {
                Ok(answer) => CommitOutcome::Committed(answer),
                Err(refusal) => CommitOutcome::Refused(refusal),
            };
        }
        if let Err(refusal) = self.trim_late(&mut proposal, now) {
            return CommitOutcome::Refused(refusal);
        }
        self.take_place(&mut proposal, now);
        let answer = self.grant(proposal, token, now);
        self.late_granted(&answer, now);
        CommitOutcome::Committed(answer)
    }

    /// Whether what it would send finds its ways through boxes still: others may have taken their room.
    fn chains_fit(&mut self, proposal: &Proposal) -> Result<(), Refusal> {
        match proposal.flows.as_ref().filter(|flows| !flows.chained.is_empty()) {
            Some(flows) => self.flows.fits(&flows.chained, &flows.ways, (&self.snapshot, &self.settings.routes)),
            None => Ok(()),
        }
    }

    /// Whether it places tasks anew of an attempt that has ended meanwhile. Applications may name requests alike; those
    /// that the engine asks for itself have no digest.
    fn comes_too_late(&self, proposal: &Proposal) -> bool {
        let request = &proposal.request;
        let own = proposal.digest == 0 && monitor::original(&request.id) != request.id;
        own && self.attempts.get(request.attempt).is_none()
    }

    /// Nodes without room for what the rows want to lease there, and how many containers are too many.
    fn short_of_room(&self, rows: &[Row]) -> BTreeMap<NodeIdx, u32> {
        let mut wanted = Wanted::new(&self.snapshot, self.ledger.overlay());
        let mut short: BTreeMap<NodeIdx, u32> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.lease) {
            let fits = wanted.take(row.node, &row.size, row.count);
            if fits < row.count {
                *short.entry(row.node).or_default() += row.count - fits;
            }
        }
        short
    }

    /// The last try found less room than its proposal saw: what fits is leased, the rest keeps its hints without
    /// leases. A gang that wants all or nothing gets nothing but hints.
    fn keep_what_fits(&self, proposal: &mut Proposal) -> Result<(), Refusal> {
        let request = Arc::clone(&proposal.request);
        let mut wanted = Wanted::new(&self.snapshot, self.ledger.overlay());
        let (rows, hints) = (std::mem::take(&mut proposal.rows), std::mem::take(&mut proposal.draft.hints));
        let (mut leased, mut lost, mut full) = (0, 0, 0);
        for (row, hint) in rows.into_iter().zip(hints) {
            let fits = match request.gang {
                _ if !row.lease => 0,
                Gang::All => 0,
                Gang::UpTo => wanted.take(row.node, &row.size, row.count),
            };
            leased += fits;
            if row.lease && fits < row.count {
                lost += row.count - fits;
                full = row.group;
            }
            for (count, first, lease) in [(fits, 0, true), (row.count - fits, fits, false)] {
                if count > 0 {
                    let mut part = hint.clone();
                    (part.count, part.first_index) = (count, hint.first_index + first);
                    proposal.draft.hints.push(part);
                    proposal.rows.push(Row { count, lease, ..row.clone() });
                }
            }
        }
        if request.when_full == WhenFull::Fail && (leased == 0 || request.gang == Gang::All) {
            let group = &request.groups[full];
            let (group, wanted) = (Arc::clone(&group.name), group.count);
            return Err(Refusal::Full { group, wanted, free: 0, blocked: Vec::new() });
        }
        proposal.draft.without_room += lost;
        Ok(())
    }

    pub(super) fn grant(&mut self, proposal: Proposal, token: Token, now: Timestamp) -> Arc<Answer> {
        let Proposal { request, decision, digest, conflicts, elapsed, mut draft, rows, flows, trial, .. } = proposal;
        let on = draft.mode == Mode::On;
        for earlier in self.attempts.earlier(request.attempt) {
            self.end_attempt(earlier, now);
        }
        let token = self.attempts.token(request.attempt, token, now);
        if on && self.attempts.get_mut(request.attempt).is_some_and(|known| known.write()) {
            self.effects.journal.push(attempts::put_token(request.attempt, &token));
        }
        draft.id = decision.unwrap_or(DecisionId(self.next_decision));
        self.next_decision = self.next_decision.max(draft.id.0 + 1);
        (draft.at, draft.conflicts, draft.elapsed) = (now, conflicts, elapsed);
        self.begin_flows(&request, &mut draft, &rows, flows, now);
        let live = if on { self.lease_rows(&mut draft, &rows, now) } else { BTreeSet::new() };
        self.effects.count(Counter::LeasesGranted, live.len() as u64);
        let hinted: u64 = draft.hints.iter().map(|hint| u64::from(hint.count)).sum();
        self.effects.count(Counter::HintsIssued, if on { hinted } else { 0 });
        self.remember(&request, on);
        if request.recurring_key.is_some() {
            self.run_book.began(request.attempt, now);
        }
        let answer = Arc::new(Answer { decision: draft, token, digest });
        if on {
            self.effects.journal.push(answer.put());
        }
        self.answers.insert(&answer, live, now, self.settings.answers_keep);
        self.hinted(&answer, &rows, trial, now);
        self.keep_bounds(now);
        self.changed = true;
        answer
    }

    /// Grants one lease a container, with ids in the hints.
    pub(super) fn lease_rows(&mut self, draft: &mut Decision, rows: &[Row], now: Timestamp) -> BTreeSet<LeaseId> {
        let expires = now.plus(self.settings.lease_ttl);
        let mut live = BTreeSet::new();
        for (row, hint) in rows.iter().zip(&mut draft.hints).filter(|(row, _)| row.lease) {
            hint.expires = Some(expires);
            for _ in 0..row.count {
                let id = LeaseId(self.next_lease);
                self.next_lease += 1;
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
                self.effects.journal.push(lease.put(&hint.host, &self.snapshot.kinds));
                self.ledger.insert(lease);
                hint.leases.push(id);
                live.insert(id);
            }
        }
        live
    }

    /// The journal failed: the decision was never promised. Deletes are written all the same, for a journal that
    /// failed late may have kept what it was given.
    pub fn undo(&mut self, decision: DecisionId, now: Timestamp) {
        let Some(answer) = self.answers.by_decision(decision) else { return };
        self.hints_undone(decision);
        self.flows.undo(decision, (&self.snapshot, &self.settings.routes));
        self.tell_flows(now);
        let mut undone = 0;
        for id in answer.leases() {
            if let Some(lease) = self.ledger.remove(id) {
                undone += 1;
                self.dispatched_lease_ended(&lease, None, now);
            }
            self.effects.journal.push(Lease::delete(id));
        }
        let request = &answer.decision.request;
        self.dispatched_undone(answer.decision.attempt, request.as_str(), now);
        self.effects.count(Counter::LeasesUndone, undone);
        self.answers.remove(request);
        self.effects.journal.push(Op::delete(Table::Answers, text_key(request.as_str())));
        self.changed = true;
        // What the caller was never told can't be shown: its next answer gives the attempt a token again.
        let attempt = answer.decision.attempt;
        if let Some(known) = self.attempts.get_mut(attempt) {
            known.requests.retain(|known| known.id != *request);
            self.effects.journal.push(attempts::delete_request(attempt, request));
            if known.requests.is_empty() && !self.ledger.holds(attempt) {
                self.forget_attempt(attempt, now);
            }
        }
    }

    /// Gives leases back; none named: all of the attempt.
    ///
    /// # Errors
    /// [`Refusal::BadToken`]; [`Refusal::Unknown`] for an attempt without an answer.
    pub fn release(
        &mut self,
        attempt: AttemptId,
        token: &Token,
        leases: &[LeaseId],
        now: Timestamp,
    ) -> Result<Released, Refusal> {
        self.authorize(attempt, token)?;
        let mine = |id: &LeaseId| self.ledger.get(*id).is_some_and(|lease| lease.attempt == attempt);
        let (held, not_held): (Vec<LeaseId>, Vec<LeaseId>) = if leases.is_empty() {
            (self.ledger.of_attempt(attempt).map(|lease| lease.id).collect(), Vec::new())
        } else {
            leases.iter().partition(|id| mine(id))
        };
        let released = held.into_iter().filter_map(|id| self.end_lease(id, LeaseEnd::Released, now)).count();
        Ok(Released { released: u32::try_from(released).unwrap_or(u32::MAX), not_held })
    }

    /// Ends an attempt: its leases are given back, its requests forgotten. Its answers stay their time.
    pub(super) fn end_attempt(&mut self, attempt: AttemptId, now: Timestamp) {
        let leases: Vec<LeaseId> = self.ledger.of_attempt(attempt).map(|lease| lease.id).collect();
        for id in leases {
            self.end_lease(id, LeaseEnd::Released, now);
        }
        self.forget_attempt(attempt, now);
        self.flows.end_attempt(attempt, (&self.snapshot, &self.settings.routes));
        self.tell_flows(now);
    }
}
