//! The engine's side: requests that wait, nodes that are offered, what is pushed, and what waits for too long.

use super::desk::{Desk, GroupKey, Moment, Turn};
use super::group::Task;
use super::layout::{Laid, lay_out, table};
use super::{DeskApart, OFFER, Waits, late_of, view};
use crate::answers::Answer;
use crate::attempts::Token;
use crate::decision::{Decision, Mode, Pending, TermValues};
use crate::effects::{Counter, Effect, FollowBody};
use crate::engine::Engine;
use crate::placer::{Hints, Proposal, Row, seed_of};
use crate::plans::KeptPlan;
use crate::refusal::Refusal;
use hintd_model::cluster::{HintRequest, Resource, Snapshot, Source};
use hintd_model::units::{AttemptId, DecisionId, LeaseId, Micros, NodeIdx, RequestId, Timestamp};
use hintd_policy::dispatch::{DispatchEvent, TaskRef};
use hintd_policy::{Ended, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nodes with room that a request is offered at once: one round of their heartbeats, of so many at most.
const ROUND_MAX: usize = 1_024;
/// A group is told of another reason at most so often.
const TELL_EVERY: Micros = Micros::from_secs(1);
/// Of a group that no node with room was offered.
const NO_ROOM: &str = "no_room";
/// Of a group whose policy gives no reason.
const HELD_BACK: &str = "held_back";
/// Why an offer's hints and reasons are sent.
const CAUSE: &str = "offer";
/// Decisions that are pushed have ids from here on, above those that requests draw.
pub(super) const PUSHED: u64 = 1 << 31;

/// What a request that waits came to at once.
pub(super) struct Decided {
    turn: Turn,
    /// Its own launches; the containers of its hints, in order.
    tasks: Vec<TaskRef>,
    /// Launches of others that waited before.
    others: BTreeMap<(AttemptId, RequestId), Laid>,
}

impl Engine {
    /// Takes the groups of a request in and offers them, and all that waited before, every node with room.
    pub(crate) fn commit_waiting(
        &mut self,
        mut proposal: Proposal,
        waits: &Waits,
        token: Token,
        now: Timestamp,
    ) -> Result<Arc<Answer>, Refusal> {
        for earlier in self.attempts.earlier(proposal.request.attempt) {
            self.end_attempt(earlier, now);
        }
        self.look_at_racks(now);
        let mut desk = self.desk(waits, now)?;
        let mut moment = self.moment(now);
        let max_wait = self.settings.dispatch.max_wait;
        let recorded = proposal.decision.is_some_and(|decision| self.settings.records.takes(decision));
        self.dispatching.apart = recorded.then(|| Box::new(self.set_apart(&desk, &moment)));
        let decided = decide(&mut desk, &mut proposal, waits, &mut moment, max_wait);
        self.dispatching.desks.insert(Arc::clone(&waits.name), desk);
        proposal.draft.degraded.extend(self.dispatching.racks.degraded().map(str::to_owned));
        let answer = self.grant(proposal, token, now);
        self.note_leases(&waits.name, &decided.tasks, answer.leases());
        self.count_turn(&decided.turn);
        self.push(&waits.name, decided.others, now);
        self.tell_not_yet(&waits.name, decided.turn.not_yet, now);
        Ok(answer)
    }

    /// The desk that a request which waits would come to now, set apart: what it decides changes nothing here. Costs a
    /// copy of the policy's State; what waits is shared. `None`: the request does not wait.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] where its policy does not dispatch.
    pub fn desk_apart(&mut self, proposal: &Proposal, now: Timestamp) -> Result<Option<DeskApart>, Refusal> {
        let Some(waits) = &proposal.waits else {
            return Ok(None);
        };
        self.look_at_racks(now);
        let moment = self.moment(now);
        let apart = match self.dispatching.desks.get(&waits.name) {
            Some(desk) => self.set_apart(desk, &moment),
            None => self.set_apart(&self.new_desk((&waits.policy, &waits.name), now)?, &moment),
        };
        Ok(Some(apart))
    }

    /// The desk that decided the last committed request, as it was before, where it is to be recorded.
    pub fn take_desk(&mut self) -> Option<Box<DeskApart>> {
        self.dispatching.apart.take()
    }

    fn set_apart(&self, desk: &Desk, moment: &Moment) -> DeskApart {
        DeskApart {
            desk: desk.clone(),
            moment: moment.clone(),
            max_wait: self.settings.dispatch.max_wait,
            degraded: self.dispatching.racks.degraded(),
        }
    }

    /// Offers nodes that reported.
    pub(crate) fn offer(&mut self, nodes: &BTreeSet<NodeIdx>, now: Timestamp) {
        if self.dispatching.is_idle() || nodes.is_empty() || self.ledger.len() >= self.settings.leases_max {
            return;
        }
        self.look_at_racks(now);
        let mut moment = self.moment(now);
        let names: Vec<Arc<str>> = self.dispatching.desks.keys().cloned().collect();
        for name in names {
            let Some(desk) = self.dispatching.desks.get_mut(&name) else { continue };
            let mut turn = Turn::default();
            moment.explain = desk.explains(now);
            for &node in nodes {
                desk.offer(node, &mut moment, &mut turn);
                moment.explain &= turn.not_yet.is_empty(); // of nodes that report together one says why
            }
            let mut laid = lay_out(desk, &turn.launched, &moment.snapshot);
            note_plan(desk, &mut laid, &turn.launched, &moment.snapshot);
            self.count_turn(&turn);
            self.push(&name, laid, now);
            self.tell_not_yet(&name, turn.not_yet, now);
        }
    }

    /// Takes policies as they are configured now.
    pub fn redispatch(&mut self, policy: &dyn Fn(&str) -> Option<Arc<dyn Policy>>, now: Timestamp) {
        let uses = self.dispatching.racks.told();
        let view = view(&self.snapshot, &self.ledger, now);
        for (name, desk) in &mut self.dispatching.desks {
            if let Some(policy) = policy(name) {
                desk.replace(&policy, &uses, &view);
            }
        }
    }

    /// Looks for what has waited for too long.
    pub(crate) fn tick_dispatching(&mut self, now: Timestamp) {
        self.end_unseen(now);
        if self.dispatching.is_idle() {
            return;
        }
        let max_wait = self.settings.dispatch.max_wait;
        let (mut late, mut full) = (Vec::new(), Vec::new());
        let moment = self.moment(now);
        let mut free: Option<Vec<NodeIdx>> = None;
        for (name, desk) in &mut self.dispatching.desks {
            let mut no_room = BTreeMap::new();
            for key in desk.overdue(max_wait, self.settings.plans.patience, now) {
                let size = desk.groups.get(&key).map_or(Resource::ZERO, |group| group.told.size);
                let free = free.get_or_insert_with(|| moment.with_room());
                if free.iter().any(|&node| moment.fits(node, &size)) {
                    late.extend(desk.place_late(&key, max_wait, now));
                } else {
                    no_room.insert(key, (NO_ROOM.into(), None));
                }
            }
            full.push((Arc::clone(name), no_room));
        }
        for (name, no_room) in full {
            self.tell_not_yet(&name, no_room, now);
        }
        for request in late {
            self.effects.count(Counter::DispatchLate, request.containers());
            self.effects.out.push(Effect::Late { request: Arc::new(request) });
        }
    }

    /// An ordinary placement of what waited for too long is to be committed: it keeps what has room and still waits.
    pub(crate) fn trim_late(&mut self, proposal: &mut Proposal, now: Timestamp) -> Result<(), Refusal> {
        // Applications may name requests alike; those that the engine asks for itself have no digest.
        let own = Some(&proposal.request.id).filter(|_| proposal.digest == 0);
        let Some(asked) = own.and_then(late_of).map(str::to_owned) else { return Ok(()) };
        let attempt = proposal.request.attempt;
        let (rows, hints) = (std::mem::take(&mut proposal.rows), std::mem::take(&mut proposal.draft.hints));
        let wait = hints.iter().filter_map(|hint| hint.expected_wait).min();
        let mut kept = Hints::default();
        let mut open: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (row, mut hint) in rows.into_iter().zip(hints).filter(|(row, _)| row.lease) {
            let found = self.late_group(attempt, &asked, &hint.group);
            let waiting = found.map_or(0, |(name, key)| self.dispatching.desks[&name].groups[&key].late);
            let open = open.entry(Arc::clone(&hint.group)).or_insert(waiting);
            let count = row.count.min(*open);
            *open -= count;
            if count > 0 {
                hint.count = count;
                kept.hints.push(hint);
                kept.rows.push(Row { count, ..row });
            }
        }
        proposal.draft.without_room = 0;
        if kept.rows.is_empty() {
            return Err(self.late_without_room(attempt, &asked, &proposal.request, wait, now));
        }
        proposal.draft.asks = table(&proposal.request, &kept);
        let groups = &proposal.request.groups;
        let hinted = kept.rows.iter().map(|row| (&*groups[row.group].role, row.node, row.count));
        let waited = kept.hints.first().and_then(|hint| self.late_group(attempt, &asked, &hint.group));
        let desk = waited.and_then(|(name, _)| self.dispatching.desks.get_mut(&name));
        proposal.draft.plan = desk.and_then(|desk| desk.note_late(attempt, hinted, &self.snapshot));
        (proposal.rows, proposal.draft.hints) = (kept.rows, kept.hints);
        Ok(())
    }

    /// The placement was committed: its leases are the launches of tasks that waited.
    pub(crate) fn late_granted(&mut self, answer: &Answer, now: Timestamp) {
        let decision = &answer.decision;
        let Some(asked) = late_of(&decision.request) else { return };
        let view = view(&self.snapshot, &self.ledger, now);
        for hint in &decision.hints {
            let Some((name, key)) = self.late_group(decision.attempt, asked, &hint.group) else { continue };
            let Some(node) = self.snapshot.statics.find(hint.host.as_str()) else { continue };
            let desk = self.dispatching.desks.get_mut(&name).expect("its group was just found");
            let group = desk.group_mut(&key).expect("it was just found");
            let chosen: Vec<TaskRef> =
                group.choose(node, hint.count).into_iter().map(|index| group.task(index)).collect();
            group.late = group.late.saturating_sub(hint.count);
            for (task, &lease) in chosen.into_iter().zip(&hint.leases) {
                desk.launched(&task, Task::Leased { node, lease }, &view);
                self.dispatching.by_lease.insert(lease, (Arc::clone(&name), task));
            }
        }
        let request = self.attempts.get(decision.attempt).and_then(|known| known.request(&decision.request));
        let groups: Vec<Arc<str>> =
            request.iter().flat_map(|known| &known.groups).map(|group| Arc::clone(&group.name)).collect();
        for group in groups {
            self.late_is_over(decision.attempt, asked, &group);
        }
    }

    /// What an ordinary placement found no room for waits for offers as before.
    fn late_is_over(&mut self, attempt: AttemptId, asked: &str, group: &str) -> Option<(Arc<str>, GroupKey)> {
        let (name, key) = self.late_group(attempt, asked, group)?;
        self.dispatching.desks.get_mut(&name)?.group_mut(&key)?.late = 0;
        Some((name, key))
    }

    fn late_without_room(
        &mut self,
        attempt: AttemptId,
        asked: &str,
        request: &HintRequest,
        wait: Option<Micros>,
        now: Timestamp,
    ) -> Refusal {
        for group in &request.groups {
            let Some((name, key)) = self.late_is_over(attempt, asked, &group.name) else { continue };
            self.tell_not_yet(&name, BTreeMap::from([(key, (NO_ROOM.into(), wait))]), now);
        }
        let group = &request.groups[0];
        Refusal::Full { group: Arc::clone(&group.name), wanted: group.count, free: 0, blocked: Vec::new() }
    }

    /// The desk and group of an ordinary placement.
    fn late_group(&self, attempt: AttemptId, asked: &str, group: &str) -> Option<(Arc<str>, GroupKey)> {
        self.dispatching.desks.iter().find_map(|(name, desk)| {
            let of_it = |(_, known): &(&GroupKey, &super::group::Group)| {
                known.late > 0 && known.request.id.as_str() == asked && *known.asked == *group
            };
            let (key, _) = desk.of_attempt(attempt).find(of_it)?;
            Some((Arc::clone(name), key.clone()))
        })
    }

    fn desk(&mut self, waits: &Waits, now: Timestamp) -> Result<Desk, Refusal> {
        match self.dispatching.desks.remove(&waits.name) {
            Some(desk) => Ok(desk),
            None => self.new_desk((&waits.policy, &waits.name), now),
        }
    }

    pub(super) fn new_desk(&self, (policy, name): (&Arc<dyn Policy>, &str), now: Timestamp) -> Result<Desk, Refusal> {
        let mut desk = Desk::new(policy).ok_or_else(|| no_dispatcher(name))?;
        let view = view(&self.snapshot, &self.ledger, now);
        for (rack, per_mille) in self.dispatching.racks.told() {
            desk.tell(&DispatchEvent::RackUse { rack, per_mille }, &view);
        }
        if let Some(plan) = &self.dispatching.plan {
            desk.follow(Some(Arc::clone(plan)), &view);
        }
        Ok(desk)
    }

    /// Policies hear which plan is in force.
    pub(crate) fn dispatched_plan(&mut self, plan: Option<Arc<KeptPlan>>, now: Timestamp) {
        let view = view(&self.snapshot, &self.ledger, now);
        for desk in self.dispatching.desks.values_mut() {
            desk.follow(plan.clone(), &view);
        }
        self.dispatching.plan = plan;
    }

    fn moment(&self, now: Timestamp) -> Moment {
        let left = self.settings.leases_max.saturating_sub(self.ledger.len());
        Moment { snapshot: Arc::clone(&self.snapshot), leases: self.ledger.overlay().clone(), left, now, explain: true }
    }

    /// Tells policies how busy racks are, where that changed.
    fn look_at_racks(&mut self, now: Timestamp) {
        let heard = self.snapshot.heard.at(Source::LinkStats);
        let fresh = heard.is_some_and(|at| now.since(at) <= self.settings.max_age.of(Source::LinkStats));
        let flows = &self.generation.flows;
        let news = self.dispatching.racks.look(&self.snapshot, flows, fresh, now);
        let view = view(&self.snapshot, &self.ledger, now);
        for (rack, per_mille) in news {
            for desk in self.dispatching.desks.values_mut() {
                desk.tell(&DispatchEvent::RackUse { rack, per_mille }, &view);
            }
        }
    }

    /// Leases launches of earlier requests, and sends their hints down Follow.
    fn push(&mut self, policy: &Arc<str>, laid: BTreeMap<(AttemptId, RequestId), Laid>, now: Timestamp) {
        for ((attempt, _), laid) in laid {
            // The request that its launches came with may have been one attempt too many.
            let Some(token) = self.attempts.get(attempt).map(|known| known.token.clone()) else { continue };
            self.dispatching.pushed += 1;
            let mut draft = self.offered(&laid, policy, now);
            let live = self.lease_rows(&mut draft, &laid.hints.rows, now);
            self.effects.count(Counter::LeasesGranted, live.len() as u64);
            self.effects.count(Counter::HintsIssued, live.len() as u64);
            let answer = Arc::new(Answer { decision: draft, token, digest: 0 });
            self.note_leases(policy, &laid.tasks, answer.leases());
            self.effects.journal.push(answer.put());
            self.answers.insert(&answer, live, now, self.settings.answers_keep);
            self.hinted(&answer, &laid.hints.rows, None, now);
            self.effects.out.push(Effect::Hints { attempt, answer, cause: CAUSE });
            self.changed = true;
        }
        self.keep_bounds(now);
    }

    fn offered(&self, laid: &Laid, policy: &Arc<str>, now: Timestamp) -> Decision {
        let request = &laid.request;
        let id = DecisionId(self.next_decision >> 32 << 32 | PUSHED | self.dispatching.pushed);
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
            expected_gain: None,
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

    fn note_leases(&mut self, policy: &Arc<str>, tasks: &[TaskRef], leases: impl Iterator<Item = LeaseId>) {
        let Some(desk) = self.dispatching.desks.get_mut(policy) else { return };
        for (task, lease) in tasks.iter().zip(leases) {
            desk.leased(task, lease);
            self.dispatching.by_lease.insert(lease, (Arc::clone(policy), task.clone()));
        }
    }

    fn count_turn(&mut self, turn: &Turn) {
        self.effects.count(Counter::DispatchOffers, turn.offers);
        self.effects.count(Counter::DispatchLaunches, turn.launched.len() as u64);
    }

    /// Tells applications why their groups wait: each reason once, and another one not before a second has passed.
    fn tell_not_yet(
        &mut self,
        policy: &Arc<str>,
        not_yet: BTreeMap<GroupKey, (Arc<str>, Option<Micros>)>,
        now: Timestamp,
    ) {
        let Some(desk) = self.dispatching.desks.get_mut(policy) else { return };
        for (key, (reason, expected_wait)) in not_yet {
            let Some(group) = desk.group_mut(&key).filter(|group| group.waiting > 0) else {
                continue;
            };
            let known = |(told, at): &(Arc<str>, Timestamp)| *told == reason || now.since(*at) < TELL_EVERY;
            if group.reason.as_ref().is_some_and(known) {
                continue;
            }
            group.reason = Some((Arc::clone(&reason), now));
            let message = FollowBody::NotYet { group: Arc::clone(&group.asked), reason, expected_wait };
            self.effects.out.push(Effect::Follow { attempt: key.0, message, cause: CAUSE });
        }
    }
}

/// Takes a request's groups in and offers the nodes with room, those with their input first.
pub(super) fn decide(
    desk: &mut Desk,
    proposal: &mut Proposal,
    waits: &Waits,
    moment: &mut Moment,
    max_wait: Micros,
) -> Decided {
    let request = Arc::new(proposal.request.without_asks());
    let keys = desk.wait(&request, &waits.groups, waits.confidence, max_wait, &moment.view());
    let mut turn = Turn::default();
    let nodes = round(waits, moment, proposal.draft.seed);
    for &node in &nodes {
        desk.offer(node, moment, &mut turn);
    }
    let mut laid = lay_out(desk, &turn.launched, &moment.snapshot);
    note_plan(desk, &mut laid, &turn.launched, &moment.snapshot);
    let own = laid.remove(&(request.attempt, request.id.clone()));
    let (hints, tasks) = own.map(|own| (own.hints, own.tasks)).unwrap_or_default();
    proposal.draft.plan = desk.note((request.attempt, &request.id), &turn.launched, &moment.snapshot);
    proposal.draft.pending = pending(desk, &keys, waits, &turn, (&nodes, moment));
    proposal.draft.asks = table(&proposal.request, &hints);
    (proposal.draft.hints, proposal.rows) = (hints.hints, hints.rows);
    Decided { turn, tasks, others: laid }
}

/// Says of hints that are pushed how they stand to the plan in force.
fn note_plan(
    desk: &mut Desk,
    laid: &mut BTreeMap<(AttemptId, RequestId), Laid>,
    launched: &[(TaskRef, NodeIdx)],
    snapshot: &Snapshot,
) {
    for ((attempt, request), laid) in laid {
        laid.plan = desk.note((*attempt, request), launched, snapshot);
    }
}

/// What waits of a request's groups, and why: their applications know it from the answer.
fn pending(
    desk: &mut Desk,
    keys: &[GroupKey],
    waits: &Waits,
    turn: &Turn,
    (nodes, moment): (&[NodeIdx], &Moment),
) -> Vec<Pending> {
    let mut pending = Vec::new();
    for (key, wanted) in keys.iter().zip(&waits.groups) {
        let Some(group) = desk.group_mut(key).filter(|group| group.waiting > 0) else {
            continue;
        };
        let fits = |node: &NodeIdx| moment.fits(*node, &group.told.size);
        let otherwise = if nodes.iter().any(fits) { HELD_BACK } else { NO_ROOM };
        let said = turn.not_yet.get(key).cloned();
        let (reason, wait) = said.unwrap_or_else(|| (otherwise.into(), wanted.expected_wait));
        group.reason = Some((Arc::clone(&reason), moment.now));
        pending.push(Pending { group: Arc::clone(&group.asked), count: group.waiting, reason, expected_wait: wait });
    }
    pending
}

fn round(waits: &Waits, moment: &Moment, seed: u64) -> Vec<NodeIdx> {
    let inputs = waits.groups.iter().flat_map(|group| &group.waiting.inputs);
    let first: BTreeSet<NodeIdx> = inputs.flat_map(|input| input.nodes.iter().copied()).collect();
    let mut nodes: Vec<NodeIdx> = first.iter().copied().filter(|&node| moment.has_room(node)).collect();
    let count = moment.snapshot.nodes() as u64;
    let turned = (0..count).map(|at| NodeIdx::new(((seed % count.max(1) + at) % count) as usize));
    nodes.extend(turned.filter(|node| !first.contains(node) && moment.has_room(*node)));
    nodes.truncate(ROUND_MAX);
    nodes
}

pub(super) fn no_dispatcher(name: &str) -> Refusal {
    Refusal::Invalid { field: "policy".into(), message: format!("\"{name}\" does not dispatch") }
}
