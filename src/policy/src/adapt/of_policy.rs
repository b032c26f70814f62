//! Any policy that places or dispatches, as a dispatcher.

use super::PlacedFirst;
use crate::dispatch::{Advice, DispatchEvent, DispatchState, DynFollowsPlan, DynTimesShuffles, Offer, View};
use crate::{Budget, DynDispatch, Objective, Place, PlaceError, PlaceProblem, Placement, Policy};
use hintd_model::units::Micros;

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

    fn objective_within(
        &self,
        problem: &PlaceProblem<'_>,
        placement: &Placement,
        work: &dyn crate::Work,
    ) -> Option<Objective> {
        self.0.objective_within(problem, placement, work)
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

    fn as_times_shuffles(&self) -> Option<&dyn DynTimesShuffles> {
        self.get().as_times_shuffles()
    }

    fn as_follows_plan(&self) -> Option<&dyn DynFollowsPlan> {
        self.get().as_follows_plan()
    }

    fn restore(&self, json: &str) -> Result<DispatchState, serde_json::Error> {
        self.get().restore(json)
    }
}
