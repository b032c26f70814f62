//! How a run, and an answer's hints, stand to the plan in force; what a request that is answered at once is placed by.

use super::kept::KeptPlan;
use crate::prediction::derived_key;
use hintd_model::cluster::{HintRequest, Snapshot};
use hintd_model::units::{NodeIdx, RackIdx, RackPath, Timestamp};
use hintd_policy::plan::{Deviation, JobName, RunPlanStatus, Stage};
use hintd_policy::problem::PlannedRacks;
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

/// Like containers that were hinted to one node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HintedContainers<'a> {
    pub(crate) role: &'a str,
    pub(crate) node: NodeIdx,
    pub(crate) count: u32,
}

/// How a run stands to the plan in force, in the plan's own words: what a request that is answered at once is placed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// The plan's name.
    plan: Arc<str>,
    /// The job of the plan that it is.
    job: Option<JobName>,
    deviations: Vec<Deviation>,
    /// Its maps and its reduces.
    stages: [RunStage; 2],
}

/// One stage of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct RunStage {
    /// Racks that the plan has it in, each with its part of the tasks.
    racks: Vec<(RackPath, u32)>,
    /// It goes by the plan no more: one of them is dead.
    released: bool,
    /// Until when its tasks wait for its racks.
    until: Option<Timestamp>,
}

impl PlannedRun {
    /// Of a run that stands so; `until`: when the plan has its stages ended, and patience after that.
    pub(crate) fn new(plan: &KeptPlan, stand: RunPlanStatus, until: [Option<Timestamp>; 2]) -> Self {
        let RunPlanStatus { place, deviations } = stand;
        let job = place.and_then(|place| plan.plan.jobs.get(place as usize));
        let gone = [Deviation::MapRackGone, Deviation::ReduceRackGone];
        let stage = |at: usize| {
            let racks = job.map_or_else(Vec::new, |job| job.stage(Stage::BOTH[at]).racks());
            let racks = racks.into_iter().map(|(rack, tasks)| (rack.clone(), tasks)).collect();
            RunStage { racks, released: deviations.contains(&gone[at]), until: until[at] }
        };
        let stages = [stage(0), stage(1)];
        Self { plan: Arc::clone(&plan.name), job: job.map(|job| job.job.clone()), deviations, stages }
    }

    /// Of a run that no policy knows of: it has no key.
    pub(crate) fn without_key(plan: &KeptPlan) -> Self {
        Self::new(plan, RunPlanStatus { place: None, deviations: vec![Deviation::NoKey] }, [None; 2])
    }

    /// Racks of a group of that role, of which so many containers are wanted, on this cluster. `waits`: what they have no room for may wait for them.
    pub(crate) fn racks(
        &self,
        (role, wanted): (&str, u32),
        waits: bool,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Option<Arc<PlannedRacks>> {
        let stage = &self.stages[stage_of(role) as usize];
        let rack = |(path, tasks): &(RackPath, u32)| Some((*snapshot.statics.by_rack.get(path)?, *tasks));
        let mut racks: Vec<(RackIdx, u32)> = stage.racks.iter().filter_map(rack).collect();
        racks.sort_unstable();
        // The policy may not have looked since a rack died.
        let usable = |node: &NodeIdx| snapshot.state[node.at()].usable();
        let dead = racks.iter().any(|(rack, _)| !snapshot.statics.members[rack.at()].iter().any(usable));
        let only = waits && stage.until.is_some_and(|until| until > now);
        (!racks.is_empty() && !stage.released && !dead).then(|| Arc::new(PlannedRacks { racks, wanted, only }))
    }

    /// Bytes of its own, beside names that the plan has.
    pub(crate) fn weight(&self) -> usize {
        let racks: usize = self.stages.iter().map(|stage| size_of_val(&*stage.racks)).sum();
        size_of::<Self>() + racks + size_of_val(&*self.deviations)
    }

    /// Whether the note is of this plan and this job of it.
    pub(crate) fn is(&self, note: &PlanNote) -> bool {
        (&self.plan, &self.job) == (&note.plan, &note.job)
    }

    /// What is said of the run's hints.
    pub(crate) fn note<'a>(&self, hinted: impl Iterator<Item = HintedContainers<'a>>, snapshot: &Snapshot) -> PlanNote {
        let (mut as_planned, mut elsewhere) = (0, 0);
        for HintedContainers { role, node, count } in hinted {
            let rack = &snapshot.statics.racks[snapshot.rack(node).at()];
            if self.stages[stage_of(role) as usize].racks.iter().any(|(planned, _)| planned == rack) {
                as_planned += count;
            } else {
                elsewhere += count;
            }
        }
        let (plan, job) = (Arc::clone(&self.plan), self.job.clone());
        PlanNote { plan, job, as_planned, elsewhere, deviations: self.deviations.clone() }
    }
}

/// Reduces are told by their role; whatever else waits goes as maps do.
pub(crate) fn stage_of(role: &str) -> Stage {
    if role == "reduce" { Stage::Reduce } else { Stage::Map }
}

/// The recurring job that a request is a run of: as it says itself, else by its input paths where the plan in force has
/// a job of such paths.
pub(crate) fn run_key(request: &HintRequest, plan: Option<&KeptPlan>) -> Option<Arc<str>> {
    if let Some(key) = &request.recurring_key {
        return Some(Arc::clone(key));
    }
    let own = request.groups.iter().flat_map(|group| &group.input_paths);
    let paths: Vec<&Arc<str>> = request.input_paths.iter().chain(own).collect();
    derived_key("", &paths).filter(|key| plan.is_some_and(|plan| plan.has_key(key)))
}
