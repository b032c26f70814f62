//! Requests that wait and nodes that are offered: what dispatchers decide, and what policies are told of racks and plans.

use super::desk::{Desk, GroupKey, Moment, Turn};
use super::layout::{Laid, lay_out, table};
use super::{CAUSE, DeskApart, DispatchHandler, NO_ROOM, NotYet, Waits};
use crate::decision::Pending;
use crate::effects::{Counter, Effect, FollowBody};
use crate::engine::Engine;
use crate::placer::Proposal;
use crate::plans::KeptPlan;
use crate::refusal::Refusal;
use hintd_model::cluster::{RunningFlows, Snapshot, Source};
use hintd_model::units::{AttemptId, LeaseId, Micros, NodeIdx, RequestId, Timestamp};
use hintd_policy::Policy;
use hintd_policy::dispatch::{DispatchEvent, TaskRef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nodes with room that a request is offered at once: one round of their heartbeats, of so many at most.
const ROUND_MAX: usize = 1_024;
/// A group is told of another reason at most so often.
const TELL_EVERY: Micros = Micros::from_secs(1);
/// Of a group whose policy gives no reason.
const HELD_BACK: &str = "held_back";

/// What a request that waits came to at once.
pub(super) struct Decided {
    pub(super) turn: Turn,
    /// Its own launches; the containers of its hints, in order.
    pub(super) tasks: Vec<TaskRef>,
    /// Launches of others that waited before.
    pub(super) others: BTreeMap<(AttemptId, RequestId), Laid>,
}

impl Engine {
    /// The desk that a request which waits would come to now, set apart: what it decides changes nothing here. Costs a
    /// copy of the policy's State; what waits is shared. `None`: the request does not wait.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] where its policy does not dispatch.
    pub fn desk_apart(&mut self, proposal: &Proposal, now: Timestamp) -> Result<Option<DeskApart>, Refusal> {
        let Some(waits) = &proposal.waits else {
            return Ok(None);
        };
        self.commit_handler().desk_apart(waits, now).map(Some)
    }

    /// The desk that decided the last committed request, as it was before, where it is to be recorded.
    pub fn take_desk(&mut self) -> Option<Box<DeskApart>> {
        self.dispatch_handler().take_desk()
    }

    /// Takes policies as they are configured now.
    pub fn redispatch(&mut self, policy: &dyn Fn(&str) -> Option<Arc<dyn Policy>>, now: Timestamp) {
        self.dispatch_handler().replace_policies(policy, now);
    }
}

impl DispatchHandler<'_> {
    /// The desk that was recorded last, as it was before.
    pub(crate) fn take_desk(&mut self) -> Option<Box<DeskApart>> {
        self.dispatching.apart.take()
    }

    /// Takes the groups of a request in and offers them, and all that waited before, every node with room.
    pub(super) fn decide(
        &mut self,
        proposal: &mut Proposal,
        waits: &Waits,
        published: &Arc<RunningFlows>,
        now: Timestamp,
    ) -> Result<Decided, Refusal> {
        self.look_at_racks(published, now);
        let mut desk = self.desk(waits, now)?;
        let mut moment = self.moment(now);
        let recorded = proposal.decision.is_some_and(|decision| self.settings.records.takes(decision));
        self.dispatching.apart = recorded.then(|| Box::new(self.set_apart(&desk, &moment)));
        let decided = decide(&mut desk, proposal, waits, &mut moment, self.settings.dispatch.max_wait);
        self.dispatching.desks.insert(Arc::clone(&waits.name), desk);
        proposal.draft.degraded.extend(self.dispatching.racks.degraded().map(str::to_owned));
        Ok(decided)
    }

    pub(super) fn desk_apart(
        &mut self,
        waits: &Waits,
        published: &Arc<RunningFlows>,
        now: Timestamp,
    ) -> Result<DeskApart, Refusal> {
        self.look_at_racks(published, now);
        let moment = self.moment(now);
        match self.dispatching.desks.get(&waits.name) {
            Some(desk) => Ok(self.set_apart(desk, &moment)),
            None => Ok(self.set_apart(&self.new_desk((&waits.policy, &waits.name), now)?, &moment)),
        }
    }

    fn set_apart(&self, desk: &Desk, moment: &Moment) -> DeskApart {
        DeskApart {
            desk: desk.clone(),
            moment: moment.clone(),
            max_wait: self.settings.dispatch.max_wait,
            degraded: self.dispatching.racks.degraded(),
        }
    }

    fn replace_policies(&mut self, policy: &dyn Fn(&str) -> Option<Arc<dyn Policy>>, now: Timestamp) {
        let uses = self.dispatching.racks.told();
        let view = self.view(now);
        for (name, desk) in &mut self.dispatching.desks {
            if let Some(policy) = policy(name) {
                desk.replace(&policy, &uses, &view);
            }
        }
    }

    fn desk(&mut self, waits: &Waits, now: Timestamp) -> Result<Desk, Refusal> {
        match self.dispatching.desks.remove(&waits.name) {
            Some(desk) => Ok(desk),
            None => self.new_desk((&waits.policy, &waits.name), now),
        }
    }

    pub(super) fn new_desk(&self, (policy, name): (&Arc<dyn Policy>, &str), now: Timestamp) -> Result<Desk, Refusal> {
        let mut desk = Desk::new(policy).ok_or_else(|| no_dispatcher(name))?;
        let view = self.view(now);
        for (rack, per_mille) in self.dispatching.racks.told() {
            desk.tell(&DispatchEvent::RackUse { rack, per_mille }, &view);
        }
        if let Some(plan) = &self.dispatching.plan {
            desk.follow(Some(Arc::clone(plan)), &view);
        }
        Ok(desk)
    }

    /// Policies hear which plan is in force.
    pub(crate) fn follow(&mut self, plan: Option<Arc<KeptPlan>>, now: Timestamp) {
        let view = self.view(now);
        for desk in self.dispatching.desks.values_mut() {
            desk.follow(plan.clone(), &view);
        }
        self.dispatching.plan = plan;
    }

    pub(super) fn moment(&self, now: Timestamp) -> Moment {
        let left = self.settings.leases_max.saturating_sub(self.ledger.len());
        Moment { snapshot: Arc::clone(self.snapshot), leases: self.ledger.overlay().clone(), left, now, explain: true }
    }

    /// Tells policies how busy racks are, where that changed.
    pub(super) fn look_at_racks(&mut self, published: &Arc<RunningFlows>, now: Timestamp) {
        let heard = self.snapshot.heard.at(Source::LinkStats);
        let fresh = heard.is_some_and(|at| now.since(at) <= self.settings.max_age.of(Source::LinkStats));
        let news = self.dispatching.racks.look(self.snapshot, published, fresh, now);
        let view = self.view(now);
        for (rack, per_mille) in news {
            for desk in self.dispatching.desks.values_mut() {
                desk.tell(&DispatchEvent::RackUse { rack, per_mille }, &view);
            }
        }
    }

    /// Whose tasks the leases are for.
    pub(super) fn note_leases(&mut self, policy: &Arc<str>, tasks: &[TaskRef], leases: impl Iterator<Item = LeaseId>) {
        let Some(desk) = self.dispatching.desks.get_mut(policy) else { return };
        for (task, lease) in tasks.iter().zip(leases) {
            desk.leased(task, lease);
            self.dispatching.by_lease.insert(lease, (Arc::clone(policy), task.clone()));
        }
    }

    pub(super) fn count_turn(&mut self, turn: &Turn) {
        self.effects.count(Counter::DispatchOffers, turn.offers);
        self.effects.count(Counter::DispatchLaunches, turn.launched.len() as u64);
    }

    /// Tells applications why their groups wait: each reason once, and another one not before a second has passed.
    pub(super) fn tell_not_yet(&mut self, policy: &Arc<str>, not_yet: BTreeMap<GroupKey, NotYet>, now: Timestamp) {
        let Some(desk) = self.dispatching.desks.get_mut(policy) else { return };
        for (key, NotYet { reason, expected_wait }) in not_yet {
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
pub(super) fn note_plan(
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
        let unsaid = || NotYet { reason: otherwise.into(), expected_wait: wanted.expected_wait };
        let NotYet { reason, expected_wait } = said.unwrap_or_else(unsaid);
        group.reason = Some((Arc::clone(&reason), moment.now));
        pending.push(Pending { group: Arc::clone(&group.asked), count: group.waiting, reason, expected_wait });
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
