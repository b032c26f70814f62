//! Any policy that places or dispatches, as a dispatcher.

use super::PlacedFirst;
use crate::dispatch::{Advice, DispatchEvent, DispatchState, Offer, Seat, ShuffleAdvice, ShuffleAsk, View};
use crate::plan::{PlanCounts, PlanStand, Stage};
use crate::{Budget, DynDispatch, Objective, Place, PlaceError, PlaceProblem, Placement, Policy};
use hintd_model::units::{AttemptId, Micros, Timestamp};

/// Steps that a placer gets for each group.
pub const PLACER_STEPS: u64 = 20_000;

/// How long a task waits for the node that a placer chose: five heartbeats.
pub const PATIENCE: Micros = Micros::from_secs(5);

/// The policy's own dispatcher; else its placer, which places each group as it begins to wait ([`PlacedFirst`] with
/// [`PLACER_STEPS`] and [`PATIENCE`]). None if it neither dispatches nor places.
#[must_use]
pub fn dispatcher_of(policy: &dyn Policy) -> Option<impl DynDispatch + '_> {
    let own = policy.as_dispatch().map(OfPolicy::Own);
    own.or_else(|| Some(OfPolicy::Placed(PlacedFirst::new(Placer(policy.as_place()?), PLACER_STEPS, PATIENCE))))
}

enum OfPolicy<'p> {
    Own(&'p dyn DynDispatch),
    Placed(PlacedFirst<Placer<'p>>),
}

/// A placer that somebody else holds.
struct Placer<'p>(&'p dyn Place);

impl Place for Placer<'_> {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        self.0.place(problem, budget)
    }

    fn objective(&self, problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Objective> {
        self.0.objective(problem, placement)
    }
}

impl OfPolicy<'_> {
    fn get(&self) -> &dyn DynDispatch {
        match self {
            Self::Own(own) => *own,
            Self::Placed(placed) => placed,
        }
    }
}

impl DynDispatch for OfPolicy<'_> {
    fn start(&self) -> DispatchState {
        self.get().start()
    }

    fn observe(&self, state: &mut DispatchState, event: &DispatchEvent, view: &View<'_>) {
        self.get().observe(state, event, view);
    }

    fn offer(&self, state: &mut DispatchState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        self.get().offer(state, offer, view)
    }

    fn times_shuffles(&self) -> bool {
        self.get().times_shuffles()
    }

    fn shuffle(&self, state: &mut DispatchState, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
        self.get().shuffle(state, ask, view)
    }

    fn stands(&self, state: &mut DispatchState, attempt: AttemptId) -> Option<PlanStand> {
        self.get().stands(state, attempt)
    }

    fn would_stand(
        &self,
        state: &mut DispatchState,
        run: (AttemptId, &str),
        came: Timestamp,
        now: Timestamp,
    ) -> Option<Seat> {
        self.get().would_stand(state, run, came, now)
    }

    fn planned_until(&self, state: &mut DispatchState, attempt: AttemptId, stage: Stage) -> Option<Timestamp> {
        self.get().planned_until(state, attempt, stage)
    }

    fn plan_counts(&self, state: &mut DispatchState, now: Timestamp) -> Option<PlanCounts> {
        self.get().plan_counts(state, now)
    }

    fn restore(&self, json: &str) -> Result<DispatchState, serde_json::Error> {
        self.get().restore(json)
    }
}
