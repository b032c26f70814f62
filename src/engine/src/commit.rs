//! The serial applier: proposals become leases and answers, all or nothing; undoing and giving back.

use super::answer::Answer;
use super::attempt_end::AttemptHandler;
use super::attempts;
use super::decision::{Decision, Mode, WithheldReason};
use super::effects::{CommitOutcome, Counter, Effect};
use super::engine::Engine;
use super::lease::LeaseEnd;
use super::ledger::Wanted;
use super::monitor;
use super::placer::{Proposal, Row};
use super::proof::{Proof, Secrets, Token};
use super::refusal::Refusal;
use super::results::Released;
use super::worth::Part;
use super::worth::book::Worth;
use hintd_model::cluster::{Gang, Snapshot, WhenFull};
use hintd_model::units::{AttemptId, DecisionId, HostName, LeaseId, NodeIdx, Timestamp};
use hintd_policy::IndexedFlows;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Engine {
    /// Leases what a proposal wants: all or nothing, unless it is its last try. `token` becomes the attempt's
    /// if it has none yet; the attempts before it end, where who asks shows that it is their application's.
    pub fn commit(&mut self, proposal: Proposal, token: Token, now: Timestamp) -> CommitOutcome {
        self.commit_handler().commit(proposal, token, now)
    }

    /// The journal failed: the decision was never promised. Deletes are written all the same, for a journal that
    /// failed late may have kept what it was given.
    pub fn undo(&mut self, decision: DecisionId, now: Timestamp) {
        self.commit_handler().undo(decision, now);
    }

    /// Whether somebody has a decision's answer: its caller was gone when it was made, or a repeat of the request fetched it
    /// since. What nobody has is not counted in adherence, and its flows are on no link; its leases stay, for a repeat.
    /// Said again it changes nothing. Whether flows ended, or began again.
    pub fn answer_reached(&mut self, decision: DecisionId, reached: bool, now: Timestamp) -> bool {
        self.adherence_handler().reached(decision, reached);
        self.route_handler().reached(decision, reached, now)
    }

    /// Gives leases back; none named: all of the attempt.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`]; [`Refusal::Unknown`] for an attempt without an answer.
    pub fn release(
        &mut self,
        attempt: AttemptId,
        proof: &Proof,
        leases: &[LeaseId],
        now: Timestamp,
    ) -> Result<Released, Refusal> {
        self.authorize(attempt, proof)?;
        Ok(self.commit_handler().release(attempt, leases, now))
    }
}

/// Proposals checked against what holds now, and taken or refused. Beside what [`AttemptHandler`] borrows it reads the flows
/// of the last generation (how busy racks are), and writes which applications are compared. It touches neither facts nor history, plans or circuits.
pub(crate) struct CommitHandler<'e> {
    pub(crate) attempts: AttemptHandler<'e>,
    /// Flows as they were published last.
    pub(crate) published: &'e Arc<IndexedFlows>,
    /// Who is compared with whom.
    pub(crate) worth: &'e mut Worth,
}

/// What a check found in a proposal's way.
enum Obstacle {
    /// Others were faster: it may propose again, unless this was its last try.
    Conflict(Vec<HostName>),
    Refused(Refusal),
}

impl From<Obstacle> for CommitOutcome {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Conflict(nodes) => Self::Conflict { nodes },
            Obstacle::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

impl CommitHandler<'_> {
    fn commit(&mut self, mut proposal: Proposal, token: Token, now: Timestamp) -> CommitOutcome {
        self.attempts.leases.dispatch().take_dispatcher(); // nobody wanted that of an earlier commit
        match self.attempts.leases.answers.of(&proposal.request.id, proposal.digest) {
            Some(Ok(answer)) => return CommitOutcome::Answered(answer),
            Some(Err(refusal)) => return CommitOutcome::Refused(refusal),
            None => {}
        }
        if let Err(refusal) = self.may_commit(&proposal) {
            return CommitOutcome::Refused(refusal);
        }
        if let Err(obstacle) = self.fits(&mut proposal, now) {
            return obstacle.into();
        }
        let committed = match proposal.waits.take() {
            Some(waits) => self.commit_waiting(proposal, &waits, token, now),
            None => self.commit_placed(proposal, token, now),
        };
        committed.map_or_else(CommitOutcome::Refused, CommitOutcome::Committed)
    }

    /// Whether the request may be answered at all, whatever room there is.
    fn may_commit(&self, proposal: &Proposal) -> Result<(), Refusal> {
        let attempt = proposal.request.attempt;
        self.attempts.known.may_ask(attempt, &proposal.proof, self.attempts.leases.settings)?;
        if self.is_past_deadline(proposal) {
            let name = attempt.to_string();
            return Err(Refusal::Unknown { what: "application attempt", name, nearest: None });
        }
        let (ledger, settings) = (&*self.attempts.leases.ledger, self.attempts.leases.settings);
        let (leases, most) = (ledger.len() as u64 + proposal.wanted(), settings.leases_max);
        if leases > most as u64 {
            let message = format!("{leases} leases would be held at one time; limits.leases allows {most}");
            return Err(Refusal::Unavailable { message, retry_after: settings.lease_ttl });
        }
        let (own, free) = self.attempts.leases.answers.live_bytes(attempt.application, settings.answers_bytes_max);
        if own > free {
            let application = attempt.application;
            let message = format!(
                "answers of {application} whose leases run take {own} bytes, more than limits.answers_kept_bytes leaves it"
            );
            return Err(Refusal::Unavailable { message, retry_after: settings.lease_ttl });
        }
        Ok(())
    }

    /// Whether nodes, middleboxes and the plan have the room that the proposal saw. On its last try it is cut to what
    /// there is.
    fn fits(&mut self, proposal: &mut Proposal, now: Timestamp) -> Result<(), Obstacle> {
        let short = self.missing_capacity(&proposal.rows);
        if !short.is_empty() {
            self.count_conflict();
            if !proposal.last_try {
                return Err(Obstacle::Conflict(self.named(short.into_keys())));
            }
            self.keep_what_fits(proposal).map_err(Obstacle::Refused)?;
        }
        if let Err(refusal) = self.chains_fit(proposal) {
            self.count_conflict();
            if proposal.last_try {
                return Err(Obstacle::Refused(refusal));
            }
            let nodes: BTreeSet<NodeIdx> = proposal.rows.iter().filter(|row| row.lease).map(|row| row.node).collect();
            return Err(Obstacle::Conflict(self.named(nodes)));
        }
        if !self.attempts.asking().has_its_place(proposal, now) {
            self.count_conflict();
            return Err(Obstacle::Conflict(Vec::new()));
        }
        Ok(())
    }

    fn commit_placed(&mut self, mut proposal: Proposal, token: Token, now: Timestamp) -> Result<Arc<Answer>, Refusal> {
        self.attempts.leases.dispatch().trim_late(&mut proposal, now)?;
        self.attempts.asking().take_place(&mut proposal, now);
        let answer = self.grant(proposal, token, now);
        self.attempts.leases.dispatch().late_granted(&answer, self.attempts.known, now);
        Ok(answer)
    }

    fn count_conflict(&mut self) {
        self.attempts.leases.out.effects.count(Counter::CommitConflicts, 1);
    }

    fn named(&self, nodes: impl IntoIterator<Item = NodeIdx>) -> Vec<HostName> {
        nodes.into_iter().map(|node| self.snapshot().host(node).clone()).collect()
    }

    fn snapshot(&self) -> &Snapshot {
        self.attempts.leases.snapshot
    }

    fn room(&self) -> Wanted<'_> {
        Wanted::new(self.snapshot(), self.attempts.leases.ledger.overlay())
    }

    /// Whether what it would send finds its ways through boxes still: others may have taken their room.
    fn chains_fit(&mut self, proposal: &Proposal) -> Result<(), Refusal> {
        match proposal.flows.as_ref().filter(|flows| !flows.chained.is_empty()) {
            Some(flows) => self.attempts.routes().fits(flows),
            None => Ok(()),
        }
    }

    /// Whether it places tasks anew of an attempt that has ended meanwhile. Applications may name requests alike; those
    /// that the engine asks for itself have no digest.
    fn is_past_deadline(&self, proposal: &Proposal) -> bool {
        let request = &proposal.request;
        let own = proposal.digest == 0 && monitor::original(&request.id) != request.id;
        own && self.attempts.known.get(request.attempt).is_none()
    }

    /// Nodes without room for what the rows want to lease there, and how many containers are too many.
    fn missing_capacity(&self, rows: &[Row]) -> BTreeMap<NodeIdx, u32> {
        let mut wanted = self.room();
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
        let mut wanted = self.room();
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

    /// Takes what a proposal wants: its leases are granted, its flows begin, its answer is kept.
    pub(crate) fn grant(&mut self, proposal: Proposal, token: Token, now: Timestamp) -> Arc<Answer> {
        let Proposal { request, decision, digest, conflicts, elapsed, draft, rows, flows, trial, proof, part, .. } =
            proposal;
        let mut draft = draft;
        let on = draft.mode == Mode::On;
        let Secrets { token, nonce, supersedes } = self.secrets(request.attempt, token, &proof, on, now);
        if supersedes {
            self.attempts.end_earlier(request.attempt, now);
        }
        draft.id = self.attempts.leases.ids.decision(decision);
        (draft.at, draft.conflicts, draft.elapsed) = (now, conflicts, elapsed);
        self.attempts.routes().begin(&request, &mut draft, &rows, flows, now);
        let leases = &mut self.attempts.leases;
        let live = if on { leases.grant(&mut draft, &rows, now) } else { BTreeSet::new() };
        // A gang that got no lease waits: nobody is to follow where it may wait.
        let waits = on && request.gang == Gang::All && draft.without_room > 0;
        let hinted: u64 = draft.hints.iter().map(|hint| u64::from(hint.count)).sum();
        leases.out.effects.count(Counter::HintsIssued, if on && !waits { hinted } else { 0 });
        if on {
            self.note_withheld(&draft, request.containers(), part, now);
        }
        self.attempts.remember(&request, on);
        if request.recurring_key.is_some() {
            self.attempts.run_tracker.began(request.attempt, now);
        }
        let answer = Arc::new(Answer { decision: draft, token, nonce, digest });
        let leases = &mut self.attempts.leases;
        let row = answer.row();
        leases.answers.insert((&answer, &row), live, now, leases.settings.answers_keep);
        if on {
            leases.out.effects.journal.push(answer.put(row));
        }
        if !waits {
            leases.adherence().hinted(&answer, &rows, trial, now);
        }
        self.attempts.enforce_limits(now);
        self.attempts.leases.out.changed = true;
        answer
    }

    /// Counts hints that are kept back, and notes on which side of the comparison their application is.
    fn note_withheld(&mut self, draft: &Decision, containers: u64, part: Option<Part>, now: Timestamp) {
        let leases = &mut self.attempts.leases;
        let counter = draft.withheld.map(|withheld| match withheld.reason {
            WithheldReason::Holdout => Counter::HintsHeldOut,
            WithheldReason::Slower => Counter::HintsStopped,
            _ => Counter::HintsWithheld,
        });
        if let Some(counter) = counter {
            leases.out.effects.count(counter, containers);
        }
        let first = self.attempts.known.get(draft.attempt).is_none_or(|known| known.requests.is_empty());
        let (application, key) = (draft.attempt.application, draft.recurring_key.as_ref());
        let rows = self.worth.answered(application, (part, key), first, leases.settings.attempts_max, now);
        leases.out.effects.journal.extend(rows);
    }

    /// What the attempt is held by: the token `drawn` and the nonce shown, if it is new; `on`: the token is to be shown, and
    /// so is written.
    fn secrets(&mut self, attempt: AttemptId, drawn: Token, proof: &Proof, on: bool, now: Timestamp) -> Secrets {
        let attempts = &mut *self.attempts.known;
        if attempts.get(attempt).is_none() && *proof != Proof::Trusted && proof.nonce().is_none() {
            let effects = &mut self.attempts.leases.out.effects;
            effects.count(Counter::LegacyAttempts, 1);
            if !attempts.has_legacy(attempt) {
                effects.out.push(Effect::LegacyClient { application: attempt.application });
            }
        }
        let secrets = attempts.secrets_of(attempt, drawn, proof);
        let secrets = attempts.admit(attempt, secrets, now);
        if on && attempts.get_mut(attempt).is_some_and(|known| known.write()) {
            self.attempts.leases.out.effects.journal.push(attempts::put_secrets(attempt, &secrets));
        }
        secrets
    }

    fn undo(&mut self, decision: DecisionId, now: Timestamp) {
        let Some(answer) = self.attempts.leases.answers.by_decision(decision) else { return };
        self.attempts.leases.adherence().undone(decision);
        self.attempts.routes().undo(decision, now);
        self.attempts.leases.undo(&answer, now);
        let gone = self.worth.forget(answer.decision.attempt.application);
        self.attempts.leases.out.effects.journal.extend(gone);
        // What the caller was never told can't be shown: its next answer gives the attempt a token again.
        let (attempt, request) = (answer.decision.attempt, &answer.decision.request);
        let leases = &mut self.attempts.leases;
        if let Some(known) = self.attempts.known.get_mut(attempt) {
            known.forget_request(request);
            leases.out.effects.journal.push(attempts::delete_request(attempt, request));
            if known.requests.is_empty() && !leases.ledger.holds(attempt) {
                self.attempts.forget(attempt, now);
            }
        }
    }

    fn release(&mut self, attempt: AttemptId, leases: &[LeaseId], now: Timestamp) -> Released {
        let ledger = &*self.attempts.leases.ledger;
        let mine = |id: &LeaseId| ledger.get(*id).is_some_and(|lease| lease.attempt == attempt);
        let (held, not_held): (Vec<LeaseId>, Vec<LeaseId>) = if leases.is_empty() {
            (ledger.of_attempt(attempt).map(|lease| lease.id).collect(), Vec::new())
        } else {
            leases.iter().partition(|id| mine(id))
        };
        let ended = held.into_iter().filter_map(|id| self.attempts.leases.end(id, LeaseEnd::Released, now));
        let released = u32::try_from(ended.count()).unwrap_or(u32::MAX);
        Released { released, not_held }
    }
}
