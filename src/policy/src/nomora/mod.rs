//! `nomora`: tasks where the latency to their root lets the application perform best (Popescu and Moore, *No Delay:
//! Latency-Driven, Application Performance-Aware, Cluster Scheduling*, §3–5).
//!
//! A job's root (server, master) talks with all of its other tasks. What a task costs on a machine is 100 ÷ p(latency between
//! root and machine), p the application's performance curve; a round of tasks is a minimum-cost flow ([`round`]).
//!
//! The root of a request is its group of one container that most edges name; without one, what runs already: the node with most of the
//! application's containers, as the ApplicationMaster's; without that, the first container. The paper puts a root anywhere. Here a few
//! places are drawn, and the one with the best room around it is taken, so that root and workers are placed together; one
//! drawn place is the paper's rule.
//!
//! Latency is as measured between hosts; pairs that nobody measured have that of their distance: same host, same rack, beyond.
//!
//! # Code map
//! `curve`: performance by latency; `fit`: one from measurements. `round`: many jobs by one flow, which its `taker` reads. `request`: a request's groups as rounds.
//! `together`: requests of one round; `flow`: their containers by one flow.
//! `predict`: performance of a placement's containers and elsewhere. `migrate`: what runs and would perform better elsewhere. `params`.

pub mod curve;
pub mod fit;
mod flow;
mod migrate;
#[cfg(test)]
mod migrate_tests;
mod params;
mod predict;
mod request;
pub mod round;
#[cfg(test)]
mod round_tests;
#[cfg(test)]
mod tests;
mod together;
#[cfg(test)]
mod together_tests;

pub use params::NomoraParams;

use crate::advise::{Move, Rebalance, RebalanceProblem};
use crate::predict::Prediction;
use crate::{
    Budget, Capabilities, Definition, Objective, Place, PlaceError, PlaceProblem, PlaceTogether, Placement, Predict,
    Together,
};
use hintd_model::units::Micros;

/// Its name.
pub const NAME: &str = "nomora";

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Nomora {
    params: NomoraParams,
}

impl Definition for Nomora {
    type Params = NomoraParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "puts tasks where their predicted performance is best at the measured latency to their main task";

    fn new(params: NomoraParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &NomoraParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), rebalance: Some(self), ..Capabilities::default() }
    }
}

impl Place for Nomora {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        Ok(request::Asked::new(&self.params, problem).place(budget))
    }

    fn objective(&self, problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Objective> {
        request::Asked::new(&self.params, problem).objective(placement)
    }

    fn knows_senders(&self) -> bool {
        true // latency counts, bytes do not
    }

    fn weighs_bytes(&self) -> bool {
        false
    }

    fn reads_latency(&self) -> bool {
        true
    }

    fn as_together(&self) -> Option<&dyn PlaceTogether> {
        Some(self)
    }

    fn as_predict(&self) -> Option<&dyn Predict> {
        Some(self)
    }
}

impl PlaceTogether for Nomora {
    fn place_together(&self, problems: &[PlaceProblem<'_>], steps: &[u64], budget: &mut Budget<'_>) -> Together {
        together::place(&self.params, (problems, steps), budget)
    }
}

impl Rebalance for Nomora {
    fn rebalance(&self, problem: &RebalanceProblem<'_>, budget: &mut Budget<'_>) -> Result<Vec<Move>, PlaceError> {
        Ok(migrate::moves(&self.params, problem, budget))
    }

    fn reads_roots(&self) -> bool {
        true
    }

    fn never_moves(&self, ran: Micros, gain_min: f64) -> Option<String> {
        migrate::never_moves(&self.params, ran, gain_min)
    }
}

impl Predict for Nomora {
    fn predict(&self, problem: &PlaceProblem<'_>, placement: &Placement, alternatives: usize) -> Option<Prediction> {
        request::Asked::new(&self.params, problem).predict(placement, alternatives)
    }
}
