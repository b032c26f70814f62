//! `jobpacker` (004 Li, chapter 4): racks for recurring jobs planned ahead, so that their shuffles ride an optical
//! circuit switch, and a dispatcher that follows the plan. `corral`, its comparison, comes out of the same parts.
//!
//! docs/policies.md says how gaps of the paper are settled, docs/decisions.md why.

mod corral;
pub mod offline;
mod online;
mod params;

pub use corral::{Corral, NAME as CORRAL};
pub use online::{FirstReplica, FollowState, PlanFollowStats};
pub use params::{CorralParams, JobPackerParams};

use crate::adapt::OfferInTurn;
use crate::advise::{DataProblem, ReplicaAdvice};
use crate::dispatch::{Advice, DispatchEvent, DynFollowsPlan, DynTimesShuffles, FollowsPlan, Offer, PlanReservation};
use crate::dispatch::{ShuffleAdvice, ShuffleAsk, TimesShuffles, View};
use crate::plan::{JobProgress, Plan, PlanCounts, PlanError, PlanProblem, Planner, RunPlanStatus, Stage};
use crate::{Budget, Capabilities, Definition, Dispatch, Place, PlaceData, PlaceError, PlaceProblem, Placement};
use hintd_model::units::{AttemptId, Bytes, Micros, Timestamp};
use offline::{Placing, Rules};
use online::FollowerSettings;

/// Its name.
pub const NAME: &str = "jobpacker";

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct JobPacker {
    params: JobPackerParams,
}

impl Definition for JobPacker {
    type Params = JobPackerParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "packs jobs that run again and again by a plan into racks, so that their shuffles use optical circuits";

    fn new(params: JobPackerParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &JobPackerParams {
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

impl JobPacker {
    const fn manner(&self) -> FollowerSettings {
        FollowerSettings {
            slow_start: self.params.slow_start,
            early_reduces: self.params.early_reduces,
            heavy_input: Some(Bytes(self.params.heavy_input_bytes)),
            shuffle_wait: Micros::from_millis(self.params.shuffle_wait_ms),
            spread: Micros::from_millis(self.params.spread_ms),
            locality: Micros::from_millis(self.params.locality_ms),
            late: Micros::from_millis(self.params.late_ms),
        }
    }
}

impl Place for JobPacker {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        online::place_immediately(problem, &OfferInTurn::new(self.clone(), 1), budget)
    }
}

impl Planner for JobPacker {
    fn plan(&self, problem: &PlanProblem, budget: &mut Budget<'_>) -> Result<Plan, PlanError> {
        let JobPackerParams { sub_batches, over_provisioning, shuffle_term: term, .. } = self.params;
        let round = self.params.circuit_round_ms.map(Micros::from_millis);
        let forecast = self.params.node_links.then_some(self.params.slow_start);
        let placing = Placing::Packed;
        let rules = Rules { policy: NAME, placing, sub_batches, over_provisioning, term, round, forecast };
        offline::plan(problem, &rules, budget)
    }
}

impl PlaceData for JobPacker {
    fn place_data(&self, problem: &DataProblem<'_>) -> Result<Vec<ReplicaAdvice>, PlaceError> {
        Ok(online::replicas(problem, self.params.first_replica))
    }
}

impl Dispatch for JobPacker {
    type State = FollowState;

    fn start(&self) -> FollowState {
        FollowState::new(self.manner())
    }

    fn observe(&self, state: &mut FollowState, event: &DispatchEvent, view: &View<'_>) {
        state.observe(event, view);
    }

    fn offer(&self, state: &mut FollowState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        online::offer(state, offer, view)
    }

    fn as_times_shuffles(&self) -> Option<&dyn DynTimesShuffles> {
        Some(self)
    }

    fn as_follows_plan(&self) -> Option<&dyn DynFollowsPlan> {
        Some(self)
    }
}

impl FollowsPlan for JobPacker {
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

impl TimesShuffles for JobPacker {
    fn shuffle(&self, state: &mut FollowState, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
        online::shuffle(state, ask, view)
    }
}
