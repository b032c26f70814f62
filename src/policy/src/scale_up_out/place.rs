//! A request that is answered at once: hosts of the class where it is predicted to end soonest.

use super::classes::{Side, is_up};
use super::params::ScaleUpOutParams;
use super::task_times::TaskTimes;
use super::time::{BLOCK, JobShape};
use crate::baselines::fair::{Fair, FairParams};
use crate::{Budget, Definition as _, Place as _, PlaceError, PlaceProblem, Placement};
use hintd_model::units::{Bytes, NodeIdx};

/// Places by class; where the cluster has no machines of one of them, as `fair` does, and says so in the placement's parts.
///
/// # Errors
/// Those of `fair`.
pub(super) fn place(
    problem: &PlaceProblem<'_>,
    params: &ScaleUpOutParams,
    (decision, times): (impl Fn(&JobShape) -> f64, &TaskTimes),
    budget: &mut Budget<'_>,
) -> Result<Placement, PlaceError> {
    let (slow_start, early_reduces) = (params.slow_start, params.early_reduces);
    let fair = Fair::new(FairParams { slow_start, early_reduces });
    let snapshot = problem.snapshot;
    let up = snapshot.statics.indexes().filter(|&node| is_up(snapshot, node, &params.scale_up)).count();
    if !params.queues || up == 0 || up == snapshot.nodes() {
        let mut placement = fair.place(problem, budget)?;
        placement.parts.push(("scale_up_machines".to_owned(), up as f64));
        return Ok(placement);
    }
    let (job, asked) = shape(problem);
    let decision = decision(&job);
    let of_class = [Side::Up, Side::Out].map(|side| within(problem, &params.scale_up, side));
    let room = [0, 1].map(|at| containers(&of_class[at]));
    let model = params.time_model();
    let ends = [(Side::Up, room[0]), (Side::Out, room[1])]
        .map(|(side, room)| times.seconds_of(&model, side, &job, room, asked));
    // Large jobs are kept from scale-up machines, which they would hold for long (004 §5.2.2).
    let soonest = if decision > 0.0 && room[0] > 0 && (ends[0] <= ends[1] || room[1] == 0) { 0 } else { 1 };
    let mut placement = fair.place(&of_class[soonest], budget)?;
    let whole = |placement: &Placement| {
        problem.groups.iter().enumerate().all(|(at, group)| placement.placed(at) == group.count)
    };
    let mut chosen = soonest;
    // A container that only machines of one class may hold, by label or size, goes there, whatever the job.
    let nowhere = of_class[soonest].groups.iter().any(|group| group.count > 0 && group.candidates.is_empty());
    if !whole(&placement) && (decision > 0.0 || nowhere) {
        let second = fair.place(&of_class[1 - soonest], budget)?;
        if second.placed_all() > placement.placed_all() {
            (placement, chosen) = (second, 1 - soonest);
        }
    }
    let parts = [
        ("decision_value", decision),
        ("scale_up_end_s", ends[0]),
        ("scale_out_end_s", ends[1]),
        ("scale_up", f64::from(u8::from(chosen == 0))),
    ];
    placement.parts = parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(placement)
}

/// The problem with candidates of one class.
fn within<'s>(problem: &PlaceProblem<'s>, scale_up: &str, side: Side) -> PlaceProblem<'s> {
    let mut problem = problem.clone();
    let is = |node: &NodeIdx| is_up(problem.snapshot, *node, scale_up) == (side == Side::Up);
    for group in &mut problem.groups {
        group.candidates = group.candidates.iter().copied().filter(is).collect();
    }
    problem
}

/// Containers of the largest group's size that candidates have room for.
fn containers(problem: &PlaceProblem<'_>) -> u64 {
    let Some(group) = problem.groups.iter().max_by_key(|group| group.count) else { return 0 };
    let rules = &problem.snapshot.rules;
    let fit = |node: &NodeIdx| u64::from(rules.how_many(&group.size, &problem.room(*node)).min(group.count));
    group.candidates.iter().map(fit).sum()
}

/// The job: maps and whatever is no reduce, reduces, what they read and what is between them; and which of both stages the
/// request asks for. A stock MapReduce job asks for its reduces when its maps have come: of what a request leaves out the job
/// is as large as its last run, or as what came of this one.
fn shape(problem: &PlaceProblem<'_>) -> (JobShape, [bool; 2]) {
    let is_reduce = |at: usize| &*problem.groups[at].role == "reduce";
    let (mut maps, mut reduces, mut untold, mut told) = (0, 0, 0, Bytes::ZERO);
    for (at, group) in problem.groups.iter().enumerate() {
        let count = u64::from(group.count);
        if is_reduce(at) {
            reduces += count;
        } else {
            maps += count;
            untold += if group.input.is_empty() { count } else { 0 };
            told = told.saturating_add(group.input.bytes);
        }
    }
    // A run with more maps than the last one is as much larger.
    let (asked, known) = ([maps > 0, reduces > 0], problem.job.grown_to(maps.max(problem.job.maps)));
    let blocks = |maps: u64| Bytes(maps.saturating_mul(BLOCK.0));
    let input = match (told.0, known.input.0) {
        (0, 0) => blocks(known.maps),
        (0, _) => known.input,
        _ => told.saturating_add(blocks(untold)),
    };
    let into_reduces = problem.edges.iter().filter(|edge| is_reduce(edge.to.at()));
    let new = into_reduces.fold(Bytes::ZERO, |sum, edge| sum.saturating_add(edge.bytes));
    let arrived = problem.senders.iter().filter(|senders| is_reduce(senders.to.at())).flat_map(|senders| &senders.from);
    let shuffle = arrived.fold(new, |sum, (_, bytes)| sum.saturating_add(*bytes));
    // What edges say is of this run; senders of which nobody knows the bytes count as a byte each.
    let shuffle = if new > Bytes::ZERO { shuffle } else { shuffle.max(known.shuffle) };
    (JobShape { maps: known.maps, reduces: reduces.max(known.reduces), input, shuffle }, asked)
}
