//! `delay`: delay scheduling, Zaharia et al., *Delay Scheduling: A Simple Technique for Achieving Locality and Fairness
//! in Cluster Scheduling* (EuroSys 2010), as 004 §3.1 and §3.2.3 describe it (its reference 172).
//!
//! As `fair`, but a job without a map that reads on the offered node is passed over, and the container goes to the
//! next that has one. A job that was passed over `node_skips` times may launch in the rack of its input, after further
//! `rack_skips` anywhere, as many as it likes until it launches one that reads on its node: then its count begins
//! anew.

mod skips;

pub use skips::{Skips, near};

use crate::adapt::OfferInTurn;
use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, View};
use crate::params::{Invalid, Params};
use crate::pool::{self, Change, HoldReason, JobIdx, Kind, Locality, OfferedNode, Pick, Pool, Task, not_yet};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use serde::{Deserialize, Serialize};

/// Its name.
pub const NAME: &str = "delay";

/// How long jobs wait, and when reduces may be launched.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DelayParams {
    /// Offers passed over before a job launches a map that only reads in its rack. 004 §3.3.1 has one setting for
    /// its comparison, 135.
    pub node_skips: u32,
    /// Further offers passed over before it launches one that reads from another rack; 0: none, as in the simple form
    /// of the paper.
    pub rack_skips: u32,
    /// As of [`FairParams`](super::fair::FairParams).
    pub slow_start: f64,
    /// As of [`FairParams`](super::fair::FairParams).
    pub early_reduces: f64,
}

impl Default for DelayParams {
    fn default() -> Self {
        Self {
            node_skips: super::SKIPS,
            rack_skips: 0,
            slow_start: pool::SLOW_START,
            early_reduces: pool::EARLY_REDUCES,
        }
    }
}

impl Params for DelayParams {
    fn validate(&self) -> Result<(), Invalid> {
        super::skips("node_skips", self.node_skips)?;
        super::skips("rack_skips", self.rack_skips)?;
        super::share("slow_start", self.slow_start)?;
        super::share("early_reduces", self.early_reduces)
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Delay {
    params: DelayParams,
}

impl Definition for Delay {
    type Params = DelayParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "as fair, but a job that has no input on the free node waits a while for one that has";

    fn new(params: DelayParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &DelayParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), dispatch: Some(self), ..Capabilities::default() }
    }
}

/// What waits, and how often each job was passed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DelayState {
    pool: Pool,
    skips: Skips,
}

impl DelayState {
    /// What waits and runs.
    pub(crate) const fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }
}

impl Place for Delay {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        // One offer a node and round: in so many rounds every job is ripe.
        let rounds = self.params.node_skips + self.params.rack_skips + 1;
        OfferInTurn::new(self.clone(), rounds).place(problem, budget)
    }
}

impl Dispatch for Delay {
    type State = DelayState;

    fn start(&self) -> DelayState {
        let pool = Pool::new(self.params.slow_start, self.params.early_reduces);
        DelayState { pool, skips: Skips::new(self.params.node_skips) }
    }

    fn observe(&self, state: &mut DelayState, event: &DispatchEvent, view: &View<'_>) {
        let change = state.pool.observe(event, view);
        let local = local_launch(&state.pool, change);
        follow(&mut state.skips, &state.pool, change, local);
    }

    fn offer(&self, state: &mut DelayState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let slot = OfferedNode::new(offer, view);
        let DelayState { pool, skips } = state;
        let reduce = pool.first_reduce(&slot, |_, _| true);
        let launch = |job, skipped| self.map(pool, &slot, job, skipped);
        match skips.ask(pool, near(pool, offer.node), launch, reduce).or(reduce) {
            Some(task) => vec![Advice::Launch(pool.name(task))],
            None if view.explain => not_yet(pool, &slot, |_, _, kind| match kind {
                Kind::Reduce => HoldReason::Fairness,
                Kind::Map | Kind::Other => HoldReason::NoLocalBlock,
            }),
            None => Vec::new(),
        }
    }
}

impl Delay {
    fn map(&self, pool: &Pool, slot: &OfferedNode<'_>, job: JobIdx, skipped: u64) -> Option<Task> {
        let DelayParams { node_skips, rack_skips, .. } = self.params;
        let in_rack = || pool.rack_map(job, slot, Pick::Largest).filter(|_| skipped >= u64::from(node_skips));
        let anywhere = || {
            let ripe = skipped >= u64::from(node_skips) + u64::from(rack_skips);
            pool.any_map(job, slot, Pick::Largest).filter(|_| ripe)
        };
        pool.local_map(job, slot, Pick::Largest).or_else(in_rack).or_else(anywhere)
    }
}

/// Whether a map was launched where its input lies.
fn local_launch(pool: &Pool, change: Change) -> bool {
    match change {
        Change::Launched { task, locality, .. } => locality == Locality::Node && pool.kind(task) != Kind::Reduce,
        _ => false,
    }
}

/// Takes a change of the pool into the counts; a launch `as_wished` begins its job's anew.
pub fn follow(skips: &mut Skips, pool: &Pool, change: Change, as_wished: bool) {
    match change {
        Change::Waiting { job, .. } => skips.follow(pool, job),
        Change::Launched { task, .. } => {
            skips.follow(pool, task.job);
            if as_wished {
                skips.reset(pool, task.job);
            }
        }
        Change::Ended { task, .. } | Change::Failed { task, .. } | Change::Lost { task } => {
            skips.follow(pool, task.job);
        }
        Change::Gone { job, user } => skips.forget(pool, user, job),
        Change::Nothing => {}
    }
}

#[cfg(test)]
mod tests;
