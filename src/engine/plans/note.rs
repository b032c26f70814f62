//! How an answer's hints stand to the plan in force.

use super::KeptPlan;
use crate::cluster::{HintRequest, Snapshot};
use crate::engine::prediction::derived_key;
use crate::policy::plan::{Deviation, JobName, PlanStand, Stage};
use crate::units::NodeIdx;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Said of an answer whose policy follows a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanNote {
    /// The plan's name.
    pub plan: Arc<str>,
    /// The job of the plan that the attempt is; none: nothing of it goes by the plan.
    pub job: Option<JobName>,
    /// Hinted containers in racks where the plan has their stage.
    pub as_planned: u32,
    /// Hinted containers elsewhere.
    pub elsewhere: u32,
    /// Where reality leaves the plan, each once, ascending.
    pub deviations: Vec<Deviation>,
}

/// The note of hints: role, node and count of each.
pub(in crate::engine) fn note<'a>(
    plan: &KeptPlan,
    stand: PlanStand,
    hinted: impl Iterator<Item = (&'a str, NodeIdx, u32)>,
    snapshot: &Snapshot,
) -> PlanNote {
    let PlanStand { place, deviations } = stand;
    let job = place.and_then(|place| plan.plan.jobs.get(place as usize));
    let (mut as_planned, mut elsewhere) = (0, 0);
    for (role, node, count) in hinted {
        let rack = &snapshot.statics.racks[snapshot.rack(node).at()];
        let of =
            |stage: Stage| job.is_some_and(|job| job.stage(stage).racks().iter().any(|(planned, _)| *planned == rack));
        if of(stage_of(role)) {
            as_planned += count;
        } else {
            elsewhere += count;
        }
    }
    PlanNote { plan: Arc::clone(&plan.name), job: job.map(|job| job.job.clone()), as_planned, elsewhere, deviations }
}

/// Reduces are told by their role; whatever else waits goes as maps do.
pub(in crate::engine) fn stage_of(role: &str) -> Stage {
    if role == "reduce" { Stage::Reduce } else { Stage::Map }
}

/// The recurring job that a request is a run of: as it says itself, else by its input paths where the plan in force has
/// a job of such paths.
pub(in crate::engine) fn run_key(request: &HintRequest, plan: Option<&KeptPlan>) -> Option<Arc<str>> {
    if let Some(key) = &request.recurring_key {
        return Some(Arc::clone(key));
    }
    let own = request.groups.iter().flat_map(|group| &group.input_paths);
    let paths: Vec<&Arc<str>> = request.input_paths.iter().chain(own).collect();
    derived_key("", &paths).filter(|key| plan.is_some_and(|plan| plan.has_key(key)))
}
