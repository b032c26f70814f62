//! A request that is answered at once: hosts of the class where it is predicted to end soonest.

use super::classes::{Side, is_up};
use super::params::ScaleUpOutParams;
use super::task_times::TaskTimes;
use super::time::{BLOCK, JobShape};
use crate::baselines::fair::{Fair, FairParams};
use crate::learn::Lesson;
use crate::place::KeptTo;
use crate::problem::is_reduce;
use crate::{Budget, Definition as _, Place as _, PlaceError, PlaceProblem, Placement};
use hintd_model::units::{Bytes, NodeIdx};

/// Places by class; where the cluster has no machines of one of them, as `fair` does, and says so in the placement's parts.
///
/// # Errors
/// Those of `fair`.
pub(super) fn place(
    problem: &PlaceProblem<'_>,
    params: &ScaleUpOutParams,
    decides: Decides<'_, impl Fn(&JobShape) -> f64>,
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
    let of_class = [Side::Up, Side::Out].map(|side| within(problem, &params.scale_up, side));
    let judged = Judged::of(problem, params, decides, [0, 1].map(|at| containers(&of_class[at])));
    let soonest = judged.soonest();
    let mut placement = fair.place(&of_class[soonest], budget)?;
    let whole = |placement: &Placement| {
        problem.groups.iter().enumerate().all(|(at, group)| placement.placed(at) == group.count)
    };
    let mut chosen = soonest;
    // A container that only machines of one class may hold, by label or size, goes there, whatever the job.
    let nowhere = of_class[soonest].groups.iter().any(|group| group.count > 0 && group.candidates.is_empty());
    if !whole(&placement) && (judged.decision > 0.0 || nowhere) {
        let second = fair.place(&of_class[1 - soonest], budget)?;
        if second.placed_all() > placement.placed_all() {
            (placement, chosen) = (second, 1 - soonest);
        }
    }
    placement.parts = judged.parts(chosen);
    Ok(placement)
}

/// The class that a request is kept to: where its containers are placed; where none has room, that whose machines would end it
/// sooner if they were empty. `None`: there are no two classes. `could`: nodes that could hold a container of a group if they
/// were empty.
pub(super) fn keeps_to(
    problem: &PlaceProblem<'_>,
    params: &ScaleUpOutParams,
    decides: Decides<'_, impl Fn(&JobShape) -> f64>,
    placement: &Placement,
    could: &dyn Fn(usize) -> Vec<NodeIdx>,
) -> Option<KeptTo> {
    let statics = &problem.snapshot.statics;
    let ups: Vec<bool> = statics.indexes().map(|node| is_up(problem.snapshot, node, &params.scale_up)).collect();
    let up = ups.iter().filter(|up| **up).count();
    if !params.queues || up == 0 || up == ups.len() {
        return None;
    }
    let of = |chosen: usize, parts| KeptTo { nodes: ups.iter().map(|up| *up == (chosen == 0)).collect(), parts };
    if let Some(share) = placement.groups.iter().flatten().next() {
        return Some(of(usize::from(!ups[share.node.at()]), placement.parts.clone()));
    }
    let largest = largest(problem)?;
    let room = |at: usize| {
        let (mut room, group) = ([0, 0], &problem.groups[at]);
        for node in could(at) {
            let most = problem.snapshot.rules.how_many(&group.size, &statics.total[node.at()]).min(group.max_per_node);
            room[usize::from(!ups[node.at()])] += u64::from(most);
        }
        room
    };
    let rooms: Vec<[u64; 2]> = (0..problem.groups.len()).map(room).collect();
    let judged = Judged::of(problem, params, decides, rooms[largest]);
    let soonest = judged.soonest();
    let nowhere = rooms.iter().any(|room| room[soonest] == 0 && room[1 - soonest] > 0);
    let chosen = if nowhere { 1 - soonest } else { soonest };
    Some(of(chosen, judged.parts(chosen)))
}

/// What a job is judged by: whether it is small, by how much; task times; the classifier's record on jobs held out.
#[derive(Clone, Copy)]
pub(super) struct Decides<'a, D> {
    pub(super) decision: D,
    pub(super) times: &'a TaskTimes,
    pub(super) lesson: Option<&'a Lesson>,
}

/// What is said of a job: above 0 it is small; its ends by class, with so many containers there.
struct Judged {
    decision: f64,
    ends: [f64; 2],
    room: [u64; 2],
    /// Jobs held out from what was learnt, and those of them called what they are not; `None`: nothing was learnt.
    held_out: Option<[u64; 2]>,
}

impl Judged {
    fn of(
        problem: &PlaceProblem<'_>,
        params: &ScaleUpOutParams,
        decides: Decides<'_, impl Fn(&JobShape) -> f64>,
        room: [u64; 2],
    ) -> Self {
        let (job, asked) = shape(problem);
        let model = params.time_model();
        let ends = [(Side::Up, room[0]), (Side::Out, room[1])]
            .map(|(side, room)| decides.times.seconds_of(&model, side, &job, room, asked));
        let held_out = decides.lesson.map(|lesson| {
            let of = lesson.classifier[usize::from(job.shuffle == Bytes::ZERO)];
            [of.jobs, of.wrong]
        });
        Self { decision: (decides.decision)(&job), ends, room, held_out }
    }

    /// 0: scale-up machines. Large jobs are kept from these, which they would hold for long (004 §5.2.2).
    fn soonest(&self) -> usize {
        let Self { decision, ends, room, .. } = self;
        if *decision > 0.0 && room[0] > 0 && (ends[0] <= ends[1] || room[1] == 0) { 0 } else { 1 }
    }

    fn parts(&self, chosen: usize) -> Vec<(String, f64)> {
        let known = [
            ("decision_value", self.decision),
            ("scale_up_end_s", self.ends[0]),
            ("scale_out_end_s", self.ends[1]),
            ("scale_up", f64::from(u8::from(chosen == 0))),
        ];
        let held_out =
            self.held_out.map(|[jobs, wrong]| [("held_out_jobs", jobs as f64), ("held_out_wrong", wrong as f64)]);
        let parts = known.into_iter().chain(held_out.into_iter().flatten());
        parts.map(|(name, value)| (name.to_owned(), value)).collect()
    }
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

/// The group of which most containers are asked for.
fn largest(problem: &PlaceProblem<'_>) -> Option<usize> {
    (0..problem.groups.len()).max_by_key(|&at| problem.groups[at].asked)
}

/// Containers of the largest group's size that candidates have room for.
fn containers(problem: &PlaceProblem<'_>) -> u64 {
    let Some(group) = largest(problem).map(|at| &problem.groups[at]) else { return 0 };
    let rules = &problem.snapshot.rules;
    let fit = |node: &NodeIdx| u64::from(rules.how_many(&group.size, &problem.room(*node)).min(group.count));
    group.candidates.iter().map(fit).sum()
}

/// The job: maps and whatever is no reduce, reduces, what they read and what is between them, by what is asked for and not by
/// what has room; and which of both stages the request asks for. A stock MapReduce job asks for its reduces when its maps have
/// come: of what a request leaves out the job
/// is as large as its last run, or as what came of this one.
fn shape(problem: &PlaceProblem<'_>) -> (JobShape, [bool; 2]) {
    let is_reduce = |at: usize| is_reduce(&problem.groups[at].role);
    let (mut maps, mut reduces, mut untold, mut told) = (0, 0, 0, Bytes::ZERO);
    for (at, group) in problem.groups.iter().enumerate() {
        let count = u64::from(group.asked);
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
