//! Following a plan (004 §4.2.4): the rack's sequence first, of it the first step that can run; then jobs without a
//! place in the plan, heavy ones apart from each other.
//!
//! A plan holds nothing back: a rack with nothing of its sequence to run serves everybody else. What a dead rack was to
//! run, what runs again after a failure, and runs that no plan knows go as `fair` sends them.
//!
//! # Code map
//! - `active_plan`: the plan by its own numbers; `state`, what a follower remembers; `report`, how runs stand.
//! - `offer`: what a node with room runs; `shuffle`: when a shuffle starts; `replicas`: where input goes.
//! - `asking`, `immediate`: runs of applications that only ask: their places in the plan, their containers in its racks.

mod active_plan;
mod asking;
mod immediate;
mod offer;
mod replicas;
mod report;
mod shuffle;
mod state;
#[cfg(test)]
mod tests;

pub use active_plan::PlanFollowStats;
pub(super) use immediate::place_immediately;
pub(super) use offer::offer;
pub use replicas::FirstReplica;
pub(super) use replicas::replicas;
pub(super) use shuffle::shuffle;
pub use state::FollowState;

use hintd_model::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};

/// What differs between followers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct FollowerSettings {
    /// Share of a job's maps done before its reduces may be launched.
    pub(super) slow_start: f64,
    /// Share of the cluster that reduces of unplanned jobs with waiting maps hold at most.
    pub(super) early_reduces: f64,
    /// Unplanned jobs that read more count as heavy; none: heavy jobs are not kept apart.
    pub(super) heavy_input: Option<Bytes>,
    /// Longest wait of a shuffle for its threshold.
    pub(super) shuffle_wait: Micros,
    /// How long a node that has its even part of a stage leaves the rest to others of its rack; zero: not at all.
    pub(super) spread: Micros,
    /// How long a rack without maps that read in it leaves the rest to the job's other racks; zero: not at all.
    pub(super) locality: Micros,
    /// How far from its expected arrival a run still takes its place.
    pub(super) late: Micros,
}
