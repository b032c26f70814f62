//! Racks that the plan in force has for a request's groups, and how what is placed stands to it.

use crate::plans::{HintedContainers, PlanNote, PlannedRun};
use hintd_model::cluster::{Constraints, Gang, HintRequest, WhenFull};
use hintd_model::units::Timestamp;
use hintd_policy::{PlaceProblem, Placement, Policy};

/// Where the plan in force has the groups, for a policy that follows plans; the run that they are of. Who needs all at once,
/// or an answer at once, or has bounds of its own, is not told to wait for racks. `counts`: containers asked for, by group.
pub(super) fn plan<'s>(
    problem: &mut PlaceProblem<'_>,
    counts: &[u32],
    request: &HintRequest,
    (policy, run): (&dyn Policy, Option<&'s PlannedRun>),
    now: Timestamp,
) -> Option<&'s PlannedRun> {
    let run = run.filter(|_| policy.as_plan().is_some());
    let free = |constraints: &Constraints| *constraints == Constraints::default();
    let bound = !free(&request.constraints) || request.groups.iter().any(|group| !free(&group.constraints));
    let waits = request.when_full == WhenFull::Advise && request.gang == Gang::UpTo && !bound;
    let snapshot = problem.snapshot;
    for (group, &count) in problem.groups.iter_mut().zip(counts) {
        group.planned = run.and_then(|run| run.racks((&group.role, count), waits, snapshot, now));
    }
    run
}

/// How what is placed stands to that plan.
pub(super) fn note(problem: &PlaceProblem<'_>, run: &PlannedRun, placement: &Placement) -> PlanNote {
    let groups = problem.groups.iter().zip(&placement.groups);
    let hinted = groups.flat_map(|(group, shares)| {
        shares.iter().map(|share| HintedContainers { role: &group.role, node: share.node, count: share.count })
    });
    run.note(hinted, problem.snapshot)
}
