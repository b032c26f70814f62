//! What waits for too long: an ordinary placement is asked for, and its leases become the launches of tasks that waited.

use super::dispatcher_instance::GroupKey;
use super::group::Task;
use super::layout::table;
use super::{DispatchHandler, NO_ROOM, NotYet, late_of};
use crate::answer::Answer;
use crate::attempts::Attempts;
use crate::effects::{Counter, Effect};
use crate::placer::{Hints, Proposal, Row};
use crate::plans::HintedContainers;
use crate::refusal::Refusal;
use hintd_model::cluster::{HintRequest, Resource};
use hintd_model::units::{AttemptId, Micros, NodeIdx, Timestamp};
use hintd_policy::dispatch::TaskRef;
use std::collections::BTreeMap;
use std::sync::Arc;

impl DispatchHandler<'_> {
    /// Looks for what has waited for too long.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.end_unseen(now);
        if self.dispatching.is_idle() {
            return;
        }
        let max_wait = self.settings.dispatch.max_wait;
        let (mut late, mut full) = (Vec::new(), Vec::new());
        let offer_context = self.offer_context(now);
        let mut free: Option<Vec<NodeIdx>> = None;
        for (name, dispatcher) in &mut self.dispatching.dispatchers {
            let mut no_room = BTreeMap::new();
            for key in dispatcher.overdue(max_wait, self.settings.plans.patience, now) {
                let size = dispatcher.groups.get(&key).map_or(Resource::ZERO, |group| group.told.size);
                let free = free.get_or_insert_with(|| offer_context.with_room());
                if free.iter().any(|&node| offer_context.fits(node, &size)) {
                    late.extend(dispatcher.place_late(&key, max_wait, now));
                } else {
                    no_room.insert(key, NotYet { reason: NO_ROOM.into(), expected_wait: None });
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
            let waiting = found.map_or(0, |(name, key)| self.dispatching.dispatchers[&name].groups[&key].late);
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
        let hinted = kept.rows.iter().map(|row| HintedContainers {
            role: &groups[row.group].role,
            node: row.node,
            count: row.count,
        });
        let waited = kept.hints.first().and_then(|hint| self.late_group(attempt, &asked, &hint.group));
        let dispatcher = waited.and_then(|(name, _)| self.dispatching.dispatchers.get_mut(&name));
        proposal.draft.plan = dispatcher.and_then(|dispatcher| dispatcher.note_late(attempt, hinted, self.snapshot));
        (proposal.rows, proposal.draft.hints) = (kept.rows, kept.hints);
        Ok(())
    }

    /// The placement was committed: its leases are the launches of tasks that waited.
    pub(crate) fn late_granted(&mut self, answer: &Answer, attempts: &Attempts, now: Timestamp) {
        let decision = &answer.decision;
        let Some(asked) = late_of(&decision.request) else { return };
        let view = self.view(now);
        for hint in &decision.hints {
            let Some((name, key)) = self.late_group(decision.attempt, asked, &hint.group) else { continue };
            let Some(node) = self.snapshot.statics.find(hint.host.as_str()) else { continue };
            let dispatcher = self.dispatching.dispatchers.get_mut(&name).expect("its group was just found");
            let group = dispatcher.group_mut(&key).expect("it was just found");
            let chosen: Vec<TaskRef> =
                group.choose(node, hint.count).into_iter().map(|index| group.task(index)).collect();
            group.late = group.late.saturating_sub(hint.count);
            for (task, &lease) in chosen.into_iter().zip(&hint.leases) {
                dispatcher.launched(&task, Task::Leased { node, lease }, &view);
                self.dispatching.by_lease.insert(lease, (Arc::clone(&name), task));
            }
        }
        let request = attempts.get(decision.attempt).and_then(|known| known.request(&decision.request));
        let groups: Vec<Arc<str>> =
            request.iter().flat_map(|known| &known.groups).map(|group| Arc::clone(&group.name)).collect();
        for group in groups {
            self.late_is_over(decision.attempt, asked, &group);
        }
    }

    /// What an ordinary placement found no room for waits for offers as before.
    fn late_is_over(&mut self, attempt: AttemptId, asked: &str, group: &str) -> Option<(Arc<str>, GroupKey)> {
        let (name, key) = self.late_group(attempt, asked, group)?;
        self.dispatching.dispatchers.get_mut(&name)?.group_mut(&key)?.late = 0;
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
            self.tell_not_yet(
                &name,
                BTreeMap::from([(key, NotYet { reason: NO_ROOM.into(), expected_wait: wait })]),
                now,
            );
        }
        let group = &request.groups[0];
        Refusal::Full { group: Arc::clone(&group.name), wanted: group.count, free: 0, blocked: Vec::new() }
    }

    /// The dispatcher instance and group of an ordinary placement.
    fn late_group(&self, attempt: AttemptId, asked: &str, group: &str) -> Option<(Arc<str>, GroupKey)> {
        self.dispatching.dispatchers.iter().find_map(|(name, dispatcher)| {
            let of_it = |(_, known): &(&GroupKey, &super::group::Group)| {
                known.late > 0 && known.request.id.as_str() == asked && *known.asked == *group
            };
            let (key, _) = dispatcher.of_attempt(attempt).find(of_it)?;
            Some((Arc::clone(name), key.clone()))
        })
    }
}
