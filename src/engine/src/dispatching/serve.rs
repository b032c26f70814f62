//! Requests that wait and nodes that are offered: what dispatchers decide, and what policies are told of racks and plans.

use super::deciding::{Decided, decide, no_dispatcher};
use super::dispatcher_instance::{DispatcherInstance, GroupKey, OfferContext, OfferOutcome};
use super::{CAUSE, DetachedDispatcher, DispatchHandler, DispatchRequest, NotYet};
use crate::effects::{Counter, Effect, FollowBody};
use crate::engine::Engine;
use crate::placer::Proposal;
use crate::plans::KeptPlan;
use crate::refusal::Refusal;
use hintd_model::cluster::Source;
use hintd_model::units::{LeaseId, Micros, Timestamp};
use hintd_policy::dispatch::{DispatchEvent, TaskRef};
use hintd_policy::{IndexedFlows, Policy};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group is told of another reason at most so often.
const TELL_EVERY: Micros = Micros::from_secs(1);
impl Engine {
    /// The dispatcher instance that a request which waits would come to now, set apart: what it decides changes nothing here. Costs a
    /// copy of the policy's State; what waits is shared. `None`: the request does not wait.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] where its policy does not dispatch.
    pub fn detached_dispatcher(
        &mut self,
        proposal: &Proposal,
        now: Timestamp,
    ) -> Result<Option<DetachedDispatcher>, Refusal> {
        let Some(waits) = &proposal.waits else {
            return Ok(None);
        };
        self.commit_handler().detached_dispatcher(waits, now).map(Some)
    }

    /// The dispatcher instance that decided the last committed request, as it was before, where it is to be recorded.
    pub fn take_dispatcher(&mut self) -> Option<Box<DetachedDispatcher>> {
        self.dispatch_handler().take_dispatcher()
    }

    /// Takes policies as they are configured now.
    pub fn redispatch(&mut self, policy: &dyn Fn(&str) -> Option<Arc<dyn Policy>>, now: Timestamp) {
        self.dispatch_handler().replace_policies(policy, now);
    }
}

impl DispatchHandler<'_> {
    /// The dispatcher instance that was recorded last, as it was before.
    pub(crate) fn take_dispatcher(&mut self) -> Option<Box<DetachedDispatcher>> {
        self.dispatching.apart.take()
    }

    /// Takes the groups of a request in and offers them, and all that waited before, every node with room.
    pub(super) fn decide(
        &mut self,
        proposal: &mut Proposal,
        waits: &DispatchRequest,
        published: &Arc<IndexedFlows>,
        now: Timestamp,
    ) -> Result<Decided, Refusal> {
        self.look_at_racks(published, now);
        let mut dispatcher = self.dispatcher(waits, now)?;
        let mut offer_context = self.offer_context(now);
        let recorded = proposal.decision.is_some_and(|decision| self.settings.records.takes(decision));
        self.dispatching.apart = recorded.then(|| Box::new(self.detach(&dispatcher, &offer_context)));
        let decided = decide(&mut dispatcher, proposal, waits, &mut offer_context, self.settings.dispatch.max_wait);
        self.dispatching.dispatchers.insert(Arc::clone(&waits.name), dispatcher);
        proposal.draft.degraded.extend(self.dispatching.racks.degraded().map(str::to_owned));
        Ok(decided)
    }

    pub(super) fn detached_dispatcher(
        &mut self,
        waits: &DispatchRequest,
        published: &Arc<IndexedFlows>,
        now: Timestamp,
    ) -> Result<DetachedDispatcher, Refusal> {
        self.look_at_racks(published, now);
        let offer_context = self.offer_context(now);
        match self.dispatching.dispatchers.get(&waits.name) {
            Some(dispatcher) => Ok(self.detach(dispatcher, &offer_context)),
            None => Ok(self.detach(&self.new_dispatcher((&waits.policy, &waits.name), now)?, &offer_context)),
        }
    }

    fn detach(&self, dispatcher: &DispatcherInstance, offer_context: &OfferContext) -> DetachedDispatcher {
        DetachedDispatcher {
            dispatcher: dispatcher.clone(),
            offer_context: offer_context.clone(),
            max_wait: self.settings.dispatch.max_wait,
            degraded: self.dispatching.racks.degraded(),
        }
    }

    fn replace_policies(&mut self, policy: &dyn Fn(&str) -> Option<Arc<dyn Policy>>, now: Timestamp) {
        let uses = self.dispatching.racks.told();
        let view = self.view(now);
        for (name, dispatcher) in &mut self.dispatching.dispatchers {
            if let Some(policy) = policy(name) {
                dispatcher.replace(&policy, &uses, &view);
            }
        }
    }

    fn dispatcher(&mut self, waits: &DispatchRequest, now: Timestamp) -> Result<DispatcherInstance, Refusal> {
        match self.dispatching.dispatchers.remove(&waits.name) {
            Some(dispatcher) => Ok(dispatcher),
            None => self.new_dispatcher((&waits.policy, &waits.name), now),
        }
    }

    pub(super) fn new_dispatcher(
        &self,
        (policy, name): (&Arc<dyn Policy>, &str),
        now: Timestamp,
    ) -> Result<DispatcherInstance, Refusal> {
        let mut dispatcher = DispatcherInstance::new(policy).ok_or_else(|| no_dispatcher(name))?;
        let view = self.view(now);
        for (rack, per_mille) in self.dispatching.racks.told() {
            dispatcher.tell(&DispatchEvent::RackUse { rack, per_mille }, &view);
        }
        if let Some(plan) = &self.dispatching.plan {
            dispatcher.follow(Some(Arc::clone(plan)), &view);
        }
        Ok(dispatcher)
    }

    /// Policies hear which plan is in force.
    pub(crate) fn follow(&mut self, plan: Option<Arc<KeptPlan>>, now: Timestamp) {
        let view = self.view(now);
        for dispatcher in self.dispatching.dispatchers.values_mut() {
            dispatcher.follow(plan.clone(), &view);
        }
        self.dispatching.plan = plan;
    }

    pub(super) fn offer_context(&self, now: Timestamp) -> OfferContext {
        let left = self.settings.leases_max.saturating_sub(self.ledger.len());
        OfferContext {
            snapshot: Arc::clone(self.snapshot),
            leases: self.ledger.overlay().clone(),
            left,
            now,
            explain: true,
        }
    }

    /// Tells policies how busy racks are, where that changed.
    pub(super) fn look_at_racks(&mut self, published: &Arc<IndexedFlows>, now: Timestamp) {
        let heard = self.snapshot.heard.at(Source::LinkStats);
        let fresh = heard.is_some_and(|at| now.since(at) <= self.settings.max_age.of(Source::LinkStats));
        let news = self.dispatching.racks.look(self.snapshot, published, fresh, now);
        let view = self.view(now);
        for (rack, per_mille) in news {
            for dispatcher in self.dispatching.dispatchers.values_mut() {
                dispatcher.tell(&DispatchEvent::RackUse { rack, per_mille }, &view);
            }
        }
    }

    /// Whose tasks the leases are for.
    pub(super) fn note_leases(&mut self, policy: &Arc<str>, tasks: &[TaskRef], leases: impl Iterator<Item = LeaseId>) {
        let Some(dispatcher) = self.dispatching.dispatchers.get_mut(policy) else { return };
        for (task, lease) in tasks.iter().zip(leases) {
            dispatcher.leased(task, lease);
            self.dispatching.by_lease.insert(lease, (Arc::clone(policy), task.clone()));
        }
    }

    pub(super) fn count_turn(&mut self, turn: &OfferOutcome) {
        self.effects.count(Counter::DispatchOffers, turn.offers);
        self.effects.count(Counter::DispatchLaunches, turn.launched.len() as u64);
    }

    /// Tells applications why their groups wait: each reason once, and another one not before a second has passed.
    pub(super) fn tell_not_yet(&mut self, policy: &Arc<str>, not_yet: BTreeMap<GroupKey, NotYet>, now: Timestamp) {
        let Some(dispatcher) = self.dispatching.dispatchers.get_mut(policy) else { return };
        for (key, NotYet { reason, expected_wait }) in not_yet {
            let Some(group) = dispatcher.group_mut(&key).filter(|group| group.waiting > 0) else {
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
