//! What a policy says of itself once; [`Policy`] and its line in the registry follow from it.

use crate::params::{self, Params, PolicyTable};
use crate::{DynDispatch, Learn, Place, PlaceData, Planner, Policy, Rebalance, Route};

/// A policy with a name, parameters and capabilities.
pub trait Definition: Send + Sync + Sized + 'static {
    /// What its configuration table is read as.
    type Params: Params;
    /// As configuration and requests spell it.
    const NAME: &'static str;
    /// One sentence, with the paper where there is one.
    const SUMMARY: &'static str;

    /// With these parameters, which the caller has validated.
    fn new(params: Self::Params) -> Self;

    /// Its parameters.
    fn params(&self) -> &Self::Params;

    /// What it can do: `Capabilities { place: Some(self), ..Capabilities::default() }`.
    fn capabilities(&self) -> Capabilities<'_>;

    /// As [`Policy::prepare`].
    fn prepare(&self) {}

    /// As [`Policy::is_prepared`].
    fn is_prepared(&self) -> bool {
        true
    }

    /// Its configuration table as the daemon reads it, where other defaults hold than in the papers' experiments.
    #[must_use]
    fn deployed(table: PolicyTable<'_>) -> PolicyTable<'_> {
        table
    }
}

/// What a policy can do; by default nothing.
#[derive(Clone, Copy, Default)]
#[allow(missing_debug_implementations)] // trait objects have nothing to show
pub struct Capabilities<'a> {
    /// One request to one placement.
    pub place: Option<&'a dyn Place>,
    /// Waiting tasks for a node with free room.
    pub dispatch: Option<&'a dyn DynDispatch>,
    /// Routes for flows.
    pub route: Option<&'a dyn Route>,
    /// Moves of running containers.
    pub rebalance: Option<&'a dyn Rebalance>,
    /// Plans of recurring jobs.
    pub plan: Option<&'a dyn Planner>,
    /// Advice on where replicas should lie.
    pub place_data: Option<&'a dyn PlaceData>,
    /// Learning from jobs that finished.
    pub learn: Option<&'a dyn Learn>,
}

impl<P: Definition> Policy for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn summary(&self) -> &'static str {
        P::SUMMARY
    }

    fn params_toml(&self) -> String {
        params::to_toml(self.params())
    }

    fn prepare(&self) {
        Definition::prepare(self);
    }

    fn is_prepared(&self) -> bool {
        Definition::is_prepared(self)
    }

    fn as_place(&self) -> Option<&dyn Place> {
        self.capabilities().place
    }

    fn as_dispatch(&self) -> Option<&dyn DynDispatch> {
        self.capabilities().dispatch
    }

    fn as_route(&self) -> Option<&dyn Route> {
        self.capabilities().route
    }

    fn as_rebalance(&self) -> Option<&dyn Rebalance> {
        self.capabilities().rebalance
    }

    fn as_plan(&self) -> Option<&dyn Planner> {
        self.capabilities().plan
    }

    fn as_place_data(&self) -> Option<&dyn PlaceData> {
        self.capabilities().place_data
    }

    fn as_learn(&self) -> Option<&dyn Learn> {
        self.capabilities().learn
    }
}
