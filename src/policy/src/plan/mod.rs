//! Plans of recurring jobs: data, checked and compared apart from the policies that make them.
//!
//! A plan is a preference order and never a reservation: nothing is held back for it, and where reality leaves it
//! what is affected is dispatched as if there were none. It speaks of jobs by key and of racks by path, so that it
//! outlives runs, restarts and renumbered racks. Sources: 004 (Li) §4.2; shape, checker and difference are ours.

pub mod check;
mod data;
mod diff;
mod fabric;
mod follow;
mod problem;
#[cfg(any(test, feature = "samples"))]
pub mod sample;

pub use check::{Defect, Facts, HORIZON_MAX, check, nothing_planned};
pub use data::{
    Assumptions, Forecast, JobName, Objective, PLAN_FORMAT, Plan, PlanReadError, PlannedJob, PlannedRack, PlannedStage,
    Slice, Stage, Step,
};
pub use diff::{Change, PlanDiff, diff};
pub use fabric::{fabric, fabric_or};
pub use follow::{Deviation, JobProgress, JobState, PlanCounts, RunPlanStatus, StageProgress};
pub use problem::{
    Circuits, ExpectedJob, Fabric, NodeLinks, PLAN_WORK, PlanError, PlanProblem, Planner, RackRoom, all_rack_rooms,
    rack_rooms,
};
