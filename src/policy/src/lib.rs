//! Policies: pure, small, the same code in the daemon, the simulator and the command line.
//!
//! Capabilities are narrow traits; a [`Policy`] says which it has. docs/policies.md opens with the
//! table from which the traits were drawn. A new policy is one folder with its own `Params`
//! and a [`Definition`], one `mod` line here, one line in [`registry`], one page in docs.
//!
//! Invariants: no I/O, no clock, no global randomness; the same problem, seed and steps give the
//! same answer; a placement stays within candidates, room and bounds of its problem.

// A test that panics is a test that fails; tests read their data and may look at the clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod adapt;
pub mod advise;
pub mod baselines;
pub mod budget;
pub mod capacity_scheduler;
mod chained;
pub mod check;
pub mod class_speed;
mod compiled;
pub mod container;
pub mod cross_layer;
pub mod dataflow;
mod definition;
pub mod dispatch;
pub mod fallbacks;
pub mod flow_index;
pub mod hit;
mod indexed_flows;
pub mod jobpacker;
pub mod joint;
pub mod learn;
pub mod load;
pub mod nas;
pub mod nomora;
pub mod params;
pub mod pat;
pub mod place;
mod placement_builder;
pub mod plan;
pub mod pool;
pub mod predict;
pub mod problem;
pub mod registry;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
pub mod scale_up_out;
pub mod terms;
#[cfg(test)]
mod toys;

pub use advise::{PlaceData, Rebalance, Route};
pub use budget::{Budget, WORK_EVERY, Work};
pub use check::{Violation, check};
pub use class_speed::{ClassSpeed, LargeJobs};
pub use dataflow::{DataflowError, traffic};
pub use definition::{Capabilities, Definition};
pub use dispatch::{Dispatch, DynDispatch};
pub use fallbacks::Fallbacks;
pub use flow_index::{FlowIndex, JobSlot};
pub use indexed_flows::IndexedFlows;
pub use learn::Learn;
pub use params::{ParamError, Params, PolicyTable};
pub use place::{ChosenRoute, Ended, Objective, Place, PlaceError, PlaceTogether, Placement, Predict, Share, Together};
pub use plan::Planner;
pub use predict::Prediction;
pub use problem::{Degraded, GroupProblem, Owner, PlaceProblem, Reason};
pub use terms::{Terms, evaluate};

/// A scheduling policy: a name, what it is, and which capabilities it has.
pub trait Policy: Send + Sync {
    /// As configuration and requests spell it.
    fn name(&self) -> &'static str;

    /// One sentence, with the paper where there is one.
    fn summary(&self) -> &'static str;

    /// Its parameters as `[policies.NAME]` of the configuration would give them.
    fn params_toml(&self) -> String;

    /// Does once what takes long and needs no problem, such as training; the same whenever it is called. It may take a
    /// second or two: never on a thread that others wait for.
    fn prepare(&self) {}

    /// Whether [`Policy::prepare`] was called, or has nothing to do. Until then the policy works without what it
    /// would make, and never makes it by itself.
    fn is_prepared(&self) -> bool {
        true
    }

    /// *place*, if it can.
    fn as_place(&self) -> Option<&dyn Place> {
        None
    }

    /// *dispatch*, if it can.
    fn as_dispatch(&self) -> Option<&dyn DynDispatch> {
        None
    }

    /// *route*, if it can.
    fn as_route(&self) -> Option<&dyn Route> {
        None
    }

    /// *rebalance*, if it can.
    fn as_rebalance(&self) -> Option<&dyn Rebalance> {
        None
    }

    /// *plan*, if it can.
    fn as_plan(&self) -> Option<&dyn Planner> {
        None
    }

    /// *place data*, if it can.
    fn as_place_data(&self) -> Option<&dyn PlaceData> {
        None
    }

    /// *learn* from jobs that finished, if it can.
    fn as_learn(&self) -> Option<&dyn Learn> {
        None
    }
}
