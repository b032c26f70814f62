//! The engine's side of requests that are answered at once, of applications that wait for nothing here: where a plan is in
//! force they are placed by it, and their runs take their places in it when they are committed.

use super::DispatchHandler;
use super::request::ImmediateRequest;
use crate::engine::Engine;
use crate::placer::Proposal;
use crate::plans::{HintedContainers, PlannedRun, RunTracker};
use hintd_model::units::{AttemptId, Timestamp};
use hintd_policy::dispatch::PlanReservation;
use std::sync::Arc;

impl Engine {
    /// How the run of a request that is answered at once stands to the plan in force, or would stand if it took its place
    /// now; `None`: there is none, or its policy follows none.
    pub fn preview_plan_status(&mut self, asks: &ImmediateRequest, now: Timestamp) -> Option<PlannedRun> {
        self.commit_handler().attempts.asking().preview_plan_status(asks, now)
    }
}

/// Runs that are answered at once, and their places in the plan in force: what [`DispatchHandler`] borrows, and when runs
/// that are under way began.
pub(crate) struct AskHandler<'e> {
    pub(crate) dispatch: DispatchHandler<'e>,
    pub(crate) run_tracker: &'e RunTracker,
}

impl AskHandler<'_> {
    fn preview_plan_status(&mut self, asks: &ImmediateRequest, now: Timestamp) -> Option<PlannedRun> {
        let came = self.came(asks.attempt, now);
        let DispatchHandler { dispatching, settings, .. } = &self.dispatch;
        let (plan, patience) = (Arc::clone(dispatching.plan.as_ref()?), settings.plans.patience);
        if !dispatching.dispatchers.contains_key(&asks.name) {
            let dispatcher = self.dispatch.new_dispatcher((&asks.policy, &asks.name), now).ok()?;
            self.dispatch.dispatching.dispatchers.insert(Arc::clone(&asks.name), dispatcher);
        }
        let dispatcher = self.dispatch.dispatching.dispatchers.get_mut(&asks.name)?;
        let PlanReservation { stand, until } = dispatcher.preview_plan_status((asks.attempt, &asks.key), came, now)?;
        Some(PlannedRun::new(&plan, stand, until.map(|until| Some(until?.plus(patience)))))
    }

    /// When the run first asked, of one with a key: before any plan was in force nobody noted it for plans. After a restart
    /// it is known as long as that answer is kept.
    fn came(&self, attempt: AttemptId, now: Timestamp) -> Timestamp {
        self.run_tracker.began_at(attempt).map_or(now, |began| began.min(now))
    }

    /// Whether the run has, or would have, the place that the proposal was made for: another may have taken it, or another
    /// plan be in force. On the last try it does not matter.
    pub(crate) fn has_its_place(&mut self, proposal: &Proposal, now: Timestamp) -> bool {
        let (Some(run), Some(note)) = (&proposal.at_once, &proposal.draft.plan) else { return true };
        proposal.last_try || self.preview_plan_status(run, now).is_some_and(|stands| stands.is(note))
    }

    /// The run takes its place, and the proposal's note says how it stands then.
    pub(crate) fn take_place(&mut self, proposal: &mut Proposal, now: Timestamp) {
        let Some(asks) = proposal.at_once.take() else { return };
        let came = self.came(asks.attempt, now);
        let view = self.dispatch.view(now);
        if let Some(dispatcher) = self.dispatch.dispatching.dispatchers.get_mut(&asks.name) {
            dispatcher.ask((asks.attempt, &asks.key), came, asks.tasks, &view);
        }
        let groups = &proposal.request.groups;
        let placed = proposal.rows.iter().filter(|row| row.lease);
        let hinted: Vec<_> = placed
            .map(|row| HintedContainers { role: &groups[row.group].role, node: row.node, count: row.count })
            .collect();
        let stands = self.preview_plan_status(&asks, now);
        proposal.draft.plan = stands.map(|run| run.note(hinted.into_iter(), self.dispatch.snapshot));
    }
}
