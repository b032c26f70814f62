//! How a request stands to the plan in force, for policies that follow plans.

use super::PlacerSettings;
use super::compile::Compiled;
use crate::plans::{HintedContainers, PlanNote, PlannedRun};
use hintd_model::cluster::{Constraints, Gang, HintRequest, WhenFull};
use hintd_model::units::Timestamp;
use hintd_policy::{Placement, Policy};

/// Where the plan in force has the groups, for a policy that follows plans; the run that they are of. Who needs all at once,
/// or an answer at once, or has bounds of its own, is not told to wait for racks.
pub(super) fn plan<'s>(
    compiled: &mut Compiled<'_>,
    request: &HintRequest,
    policy: &dyn Policy,
    settings: &'s PlacerSettings,
    now: Timestamp,
) -> Option<&'s PlannedRun> {
    let run = settings.planned.as_deref().filter(|_| policy.as_plan().is_some());
    let free = |constraints: &Constraints| *constraints == Constraints::default();
    let bound = !free(&request.constraints) || request.groups.iter().any(|group| !free(&group.constraints));
    let waits = request.when_full == WhenFull::Advise && request.gang == Gang::UpTo && !bound;
    let snapshot = compiled.problem.snapshot;
    for (group, wish) in compiled.problem.groups.iter_mut().zip(&compiled.groups) {
        group.planned = run.and_then(|run| run.racks((&group.role, wish.count), waits, snapshot, now));
    }
    run
}

/// How what is placed stands to that plan.
pub(super) fn plan_note(compiled: &Compiled<'_>, run: &PlannedRun, placement: &Placement) -> PlanNote {
    let groups = compiled.problem.groups.iter().zip(&placement.groups);
    let hinted = groups.flat_map(|(group, shares)| {
        shares.iter().map(|share| HintedContainers { role: &group.role, node: share.node, count: share.count })
    });
    run.note(hinted, compiled.problem.snapshot)
}
