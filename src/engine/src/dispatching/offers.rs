//! Launches that dispatchers advise, leased and sent: of requests as they come, and of nodes as they report.

use super::deciding::note_plan;
use super::dispatcher_instance::OfferOutcome;
use super::layout::{LaunchLayout, lay_out, table};
use super::{CAUSE, DetachedDispatcher, DispatchRequest, OFFER};
use crate::answer::Answer;
use crate::commit::CommitHandler;
use crate::decision::{Decision, Mode, TermValues};
use crate::effects::{Counter, Effect};
use crate::leasing::LeaseHandler;
use crate::placer::{Proposal, seed_of};
use crate::proof::{Secrets, Token};
use crate::refusal::Refusal;
use hintd_model::units::{AttemptId, Micros, NodeIdx, RequestId, Timestamp};
use hintd_policy::Ended;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl CommitHandler<'_> {
    /// Takes the groups of a request in and offers them, and all that waited before, every node with room.
    pub(crate) fn commit_waiting(
        &mut self,
        mut proposal: Proposal,
        waits: &DispatchRequest,
        token: Token,
        now: Timestamp,
    ) -> Result<Arc<Answer>, Refusal> {
        self.attempts.end_earlier(proposal.request.attempt, now);
        let published = self.published;
        let decided = self.attempts.leases.dispatch().decide(&mut proposal, waits, published, now)?;
        let answer = self.grant(proposal, token, now);
        let mut dispatch = self.attempts.leases.dispatch();
        dispatch.note_leases(&waits.name, &decided.tasks, answer.leases());
        dispatch.count_turn(&decided.turn);
        self.push(&waits.name, decided.others, now);
        self.attempts.leases.dispatch().tell_not_yet(&waits.name, decided.turn.not_yet, now);
        Ok(answer)
    }

    /// The dispatcher instance that decides requests which wait so, set apart.
    pub(super) fn detached_dispatcher(
        &mut self,
        waits: &DispatchRequest,
        now: Timestamp,
    ) -> Result<DetachedDispatcher, Refusal> {
        let published = self.published;
        self.attempts.leases.dispatch().detached_dispatcher(waits, published, now)
    }

    /// Offers nodes that reported.
    pub(crate) fn offer(&mut self, nodes: &BTreeSet<NodeIdx>, now: Timestamp) {
        let LeaseHandler { dispatching, ledger, settings, .. } = &self.attempts.leases;
        if dispatching.is_idle() || nodes.is_empty() || ledger.len() >= settings.leases_max {
            return;
        }
        let published = self.published;
        let mut dispatch = self.attempts.leases.dispatch();
        dispatch.look_at_racks(published, now);
        let mut offer_context = dispatch.offer_context(now);
        let names: Vec<Arc<str>> = dispatch.dispatching.dispatchers.keys().cloned().collect();
        for name in names {
            let mut dispatch = self.attempts.leases.dispatch();
            let Some(dispatcher) = dispatch.dispatching.dispatchers.get_mut(&name) else { continue };
            let mut turn = OfferOutcome::default();
            offer_context.explain = dispatcher.explains(now);
            for &node in nodes {
                dispatcher.offer(node, &mut offer_context, &mut turn);
                offer_context.explain &= turn.not_yet.is_empty(); // of nodes that report together one says why
            }
            let mut laid = lay_out(dispatcher, &turn.launched, &offer_context.snapshot);
            note_plan(dispatcher, &mut laid, &turn.launched, &offer_context.snapshot);
            dispatch.count_turn(&turn);
            self.push(&name, laid, now);
            self.attempts.leases.dispatch().tell_not_yet(&name, turn.not_yet, now);
        }
    }

    /// Leases launches of earlier requests, and sends their hints down Follow.
    fn push(&mut self, policy: &Arc<str>, laid: BTreeMap<(AttemptId, RequestId), LaunchLayout>, now: Timestamp) {
        for ((attempt, _), laid) in laid {
            // The request that its launches came with may have been one attempt too many.
            let known = self.attempts.known.get(attempt);
            let Some(secrets) = known.map(|known| known.secrets.clone()) else { continue };
            self.attempts.leases.push(policy, &laid, secrets, now);
        }
        self.attempts.enforce_limits(now);
    }
}

impl LeaseHandler<'_> {
    fn push(&mut self, policy: &Arc<str>, laid: &LaunchLayout, secrets: Secrets, now: Timestamp) {
        self.dispatching.pushed += 1;
        let mut draft = self.pushed(laid, policy, &secrets.token, now);
        let live = self.grant(&mut draft, &laid.hints.rows, now);
        self.out.effects.count(Counter::HintsIssued, live.len() as u64);
        let Secrets { token, nonce, .. } = secrets;
        let (attempt, answer) = (draft.attempt, Arc::new(Answer { decision: draft, token, nonce, digest: 0 }));
        self.dispatch().note_leases(policy, &laid.tasks, answer.leases());
        let row = answer.row();
        self.answers.insert((&answer, &row), live, now, self.settings.answers_keep);
        self.out.effects.journal.push(answer.put(row));
        self.adherence().hinted(&answer, &laid.hints.rows, None, now);
        self.out.effects.out.push(Effect::Hints { attempt, answer, cause: CAUSE });
        self.out.changed = true;
    }

    /// The decision that hints of one request make which are pushed.
    fn pushed(&self, laid: &LaunchLayout, policy: &Arc<str>, token: &Token, now: Timestamp) -> Decision {
        let request = &laid.request;
        let id = self.ids.pushed(self.dispatching.pushed, token);
        Decision {
            id,
            request: format!("{}{OFFER}{id}", request.id).as_str().into(),
            attempt: request.attempt,
            queue: request.queue.clone(),
            recurring_key: request.recurring_key.clone(),
            at: now,
            snapshot: self.snapshot.version,
            policy: Arc::clone(policy),
            mode: Mode::On,
            hints: laid.hints.hints.clone(),
            routes: Vec::new(),
            asks: table(request, &laid.hints),
            terms: TermValues::default(),
            baseline: None,
            baseline_places: None,
            expected_gain: None,
            unguarded: None,
            terms_of_whole: None,
            round: None,
            withheld: None,
            ended: Ended::Complete,
            gap: None,
            steps: 0,
            seed: request.seed.unwrap_or_else(|| seed_of(request.id.as_str())),
            exclusions: Vec::new(),
            ages: Vec::new(),
            degraded: self.dispatching.racks.degraded().into_iter().map(str::to_owned).collect(),
            learnt: None,
            pending: Vec::new(),
            plan: laid.plan.clone(),
            blocked: Vec::new(),
            without_room: 0,
            next_wave: 0,
            conflicts: 0,
            elapsed: Micros::ZERO,
        }
    }
}
