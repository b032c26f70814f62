//! `corral` (Jalaparti et al., as 004 §4.3.1.1 describes it): maps and reduces of a recurring job in one set of racks,
//! planned ahead by the same latency model without circuits; nothing is known of an optical switch.

use super::offline::latency::ShuffleTerm;
use super::offline::{self, Placing, Rules};
use super::online::{self, FollowState, FollowerSettings};
use super::params::CorralParams;
use crate::adapt::OfferInTurn;
use crate::advise::{DataProblem, ReplicaAdvice};
use crate::dispatch::{Advice, DispatchEvent, DynFollowsPlan, FollowsPlan, Offer, PlanReservation, View};
use crate::plan::{JobProgress, Plan, PlanCounts, PlanError, PlanProblem, Planner, RunPlanStatus, Stage};
use crate::{Budget, Capabilities, Definition, Dispatch, Place, PlaceData, PlaceError, PlaceProblem, Placement};
use hintd_model::units::{AttemptId, Micros, Timestamp};

/// Its name.
pub const NAME: &str = "corral";

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Corral {
    params: CorralParams,
}

impl Definition for Corral {
    type Params = CorralParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "plans jobs that run again and again into a set of racks each, and puts their input there";

    fn new(params: CorralParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &CorralParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            place: Some(self),
            dispatch: Some(self),
            plan: Some(self),
            place_data: Some(self),
            ..Capabilities::default()
        }
    }
}

impl Place for Corral {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        online::place_immediately(problem, &OfferInTurn::new(self.clone(), 1), budget)
    }
}

impl Planner for Corral {
    fn plan(&self, problem: &PlanProblem, budget: &mut Budget<'_>) -> Result<Plan, PlanError> {
        // On one set of racks the printed term is right: what a rack keeps does not cross.
        let rules = Rules {
            policy: NAME,
            placing: Placing::Together,
            sub_batches: 1,
            over_provisioning: self.params.over_provisioning,
            term: ShuffleTerm::Printed,
            round: Some(Micros::ZERO),
            forecast: None,
        };
        offline::plan(problem, &rules, budget)
    }
}

impl PlaceData for Corral {
    fn place_data(&self, problem: &DataProblem<'_>) -> Result<Vec<ReplicaAdvice>, PlaceError> {
        Ok(online::replicas(problem, self.params.first_replica))
    }
}

impl Dispatch for Corral {
    type State = FollowState;

    fn start(&self) -> FollowState {
        FollowState::new(FollowerSettings {
            slow_start: self.params.slow_start,
            early_reduces: self.params.early_reduces,
            heavy_input: None,
            shuffle_wait: Micros::ZERO,
            spread: Micros::ZERO,
            locality: Micros::from_millis(self.params.locality_ms),
            late: Micros::from_millis(self.params.late_ms),
        })
    }

    fn observe(&self, state: &mut FollowState, event: &DispatchEvent, view: &View<'_>) {
        state.observe(event, view);
    }

    fn offer(&self, state: &mut FollowState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        online::offer(state, offer, view)
    }

    fn as_follows_plan(&self) -> Option<&dyn DynFollowsPlan> {
        Some(self)
    }
}

impl FollowsPlan for Corral {
    fn plan_status(&self, state: &FollowState, attempt: AttemptId) -> Option<RunPlanStatus> {
        state.plan_status(attempt)
    }

    fn preview_plan_status(
        &self,
        state: &FollowState,
        run: (AttemptId, &str),
        came: Timestamp,
        now: Timestamp,
    ) -> Option<PlanReservation> {
        state.preview_plan_status(run, came, now)
    }

    fn planned_until(&self, state: &FollowState, attempt: AttemptId, stage: Stage) -> Option<Timestamp> {
        state.planned_until(attempt, stage)
    }

    fn plan_counts(&self, state: &FollowState, now: Timestamp) -> Option<PlanCounts> {
        state.plan_counts(now)
    }

    fn plan_progress(&self, state: &FollowState, now: Timestamp) -> Option<Vec<JobProgress>> {
        state.plan_progress(now)
    }
}
