//! `fair`: Hadoop's fair scheduler, as the comparison of 004 §3.1 and §3.3 takes it (its reference 62).
//!
//! A free container goes to the user with the fewest running containers, and of that user's jobs to the one with the
//! fewest. Reduces come before maps, once a share of their job's maps is done. A map runs where its input lies if the
//! job has one there, but nobody waits for that.

use crate::adapt::OfferInTurn;
use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, View};
use crate::params::{Invalid, Params};
use crate::pool::{self, HoldReason, OfferedNode, Pool, Task, not_yet};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use serde::{Deserialize, Serialize};

/// Its name.
pub const NAME: &str = "fair";

/// When reduces may be launched.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FairParams {
    /// Share of a job's maps done before its reduces may be launched (004 §3.3.1).
    pub slow_start: f64,
    /// Share of the cluster that reduces of jobs with waiting maps may hold, so that maps always get on.
    pub early_reduces: f64,
}

impl Default for FairParams {
    fn default() -> Self {
        Self { slow_start: pool::SLOW_START, early_reduces: pool::EARLY_REDUCES }
    }
}

impl Params for FairParams {
    fn validate(&self) -> Result<(), Invalid> {
        super::share("slow_start", self.slow_start)?;
        super::share("early_reduces", self.early_reduces)
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Fair {
    params: FairParams,
}

impl Definition for Fair {
    type Params = FairParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "the user, then the job, with fewest running containers is served first, as by YARN's fair scheduler";

    fn new(params: FairParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &FairParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), dispatch: Some(self), ..Capabilities::default() }
    }
}

impl Place for Fair {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        OfferInTurn::new(self.clone(), 1).place(problem, budget)
    }
}

impl Dispatch for Fair {
    type State = Pool;

    fn start(&self) -> Pool {
        Pool::new(self.params.slow_start, self.params.early_reduces)
    }

    fn observe(&self, pool: &mut Pool, event: &DispatchEvent, view: &View<'_>) {
        pool.observe(event, view);
    }

    fn offer(&self, pool: &mut Pool, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let slot = OfferedNode::new(offer, view);
        let reduce = pool.first_reduce(&slot, |_, _| true);
        match first_map(pool, &slot, reduce).or(reduce) {
            Some(task) => vec![Advice::Launch(pool.name(task))],
            None if view.explain => not_yet(pool, &slot, |_, _, _| HoldReason::Fairness),
            None => Vec::new(),
        }
    }
}

/// Of the first user's first job whose maps fit, the one that reads nearest; of users before the reduce's.
fn first_map(pool: &Pool, slot: &OfferedNode<'_>, reduce: Option<Task>) -> Option<Task> {
    let jobs = pool.with_maps_before(reduce).flat_map(|user| pool.map_jobs(user));
    jobs.filter_map(|job| pool.nearest_map(job, slot)).map(|(task, _)| task).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::TaskRef;
    use crate::pool::naive::{Naive, World, agree};
    use proptest::prelude::*;

    /// The description, looking at everything.
    struct Described(FairParams);

    impl Naive for Described {
        fn observe(&mut self, _world: &World, _event: &DispatchEvent, _view: &View<'_>) {}

        fn offer(&mut self, world: &World, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
            let shares = (self.0.slow_start, self.0.early_reduces);
            let found = world.by_user().into_iter().find_map(|jobs| {
                let reduce = jobs.iter().find_map(|&job| world.reduce(job, offer, view, shares));
                reduce.or_else(|| jobs.iter().find_map(|&job| world.map_within(job, offer, view, 2)))
            });
            found.map(|at| world.name(at))
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn it_launches_what_the_description_does(seed: u64, slow_start in 0.0..=1.0, early_reduces in 0.0..=0.3) {
            let params = FairParams { slow_start, early_reduces };
            let launches = agree(&Fair { params: params.clone() }, &mut Described(params), seed, 300);
            prop_assert!(launches > 10, "{launches}");
        }
    }
}
