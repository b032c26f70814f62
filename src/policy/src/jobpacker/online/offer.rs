//! What a node with room runs.

use super::active_plan::ActivePlan;
use super::state::FollowState;
use crate::dispatch::{Advice, Offer, View};
use crate::plan::Stage;
use crate::pool::{HoldReason, JobIdx, Kind, Locality, MapCounts, OfferedNode, Pool, Task, not_yet};
use hintd_model::units::Micros;

/// One launch at most.
pub(in crate::jobpacker) fn offer(state: &mut FollowState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
    let slot = OfferedNode::new(offer, view);
    state.look(view);
    let mut passed = Vec::new();
    let planned = state.book.as_ref().and_then(|book| of_sequence(state, book, &slot, &mut passed));
    if let Some(book) = &mut state.book {
        for (row, why) in passed {
            match why {
                StepSkipReason::HasItsPart(stage) => book.ask_for_more(row, stage, slot.spot.rack, view.now),
                StepSkipReason::ReadsAfar => book.wants_nearer(row, slot.spot.rack, view.now),
            }
        }
    }
    match planned.or_else(|| unplanned(state, &slot)) {
        Some(task) => vec![Advice::Launch(state.pool.name(task))],
        None if view.explain => explain(state, &slot),
        None => Vec::new(),
    }
}

/// Why a step was passed over.
enum StepSkipReason {
    /// The node has its even part of the stage: tasks that are packed on few nodes would have their links share what a
    /// circuit brings, which takes ten of them.
    HasItsPart(Stage),
    /// No map that waits reads in this rack: another of the job's racks has its block, and a read from there would take
    /// the packet network's uplinks.
    ReadsAfar,
}

/// The first step of the rack's sequence that can run. For either reason a step is passed over until the rack's other
/// nodes, or the job's other racks, have had the time to ask. `passed`: steps that were.
fn of_sequence(
    state: &FollowState,
    book: &ActivePlan,
    slot: &OfferedNode<'_>,
    passed: &mut Vec<(u32, StepSkipReason)>,
) -> Option<Task> {
    let (spot, view) = (slot.spot, slot.view());
    let nodes = view.snapshot.statics.members.get(spot.rack.at()).map_or(0, Vec::len);
    book.steps(spot.rack).find_map(|(row, stage)| {
        let job = book.rows[row as usize].run?;
        let task = match stage {
            Stage::Map => {
                let (task, locality) = state.pool.nearest_map(job, slot)?;
                let patience = state.manner.locality;
                if locality == Locality::Other && !book.may_read_afar(row, spot.rack, view.now, patience) {
                    passed.push((row, StepSkipReason::ReadsAfar));
                    return None;
                }
                task
            }
            Stage::Reduce => reduce(state, job, slot)?,
        };
        let spread = state.manner.spread;
        if spread > Micros::ZERO && book.has_its_part(row, stage, (spot.rack, spot.node), nodes) {
            let since = book.more_since(row, stage, spot.rack);
            if since.is_none_or(|since| view.now.since(since) < spread) {
                passed.push((row, StepSkipReason::HasItsPart(stage)));
                return None;
            }
        }
        Some(task)
    })
}

/// Reduces wait for the share of maps that are done, and until none waits: a rack full of reduces can't keep out the
/// maps that they wait for.
fn reduce(state: &FollowState, job: JobIdx, slot: &OfferedNode<'_>) -> Option<Task> {
    let MapCounts { all: maps, done, waiting } = state.pool.maps(job);
    // A share such as 0.7 of 10 maps is a hair below 7 in binary.
    let ready = waiting == 0 && f64::from(done) >= state.manner.slow_start * f64::from(maps) - 1e-9;
    if ready { state.pool.reduce(job, slot) } else { None }
}

/// Jobs that the plan does not place (004 §4.2.4): in a rack without a heavy task first a heavy job, beside one first
/// those that are not heavy; in each "the job with the highest priority" by the default scheduler, as `fair` has it.
///
/// Whose turn it is where only heavy jobs wait beside another's heavy task the thesis does not say: first what reads in
/// the rack, then what else the job has that runs there alone. A heavy job that keeps a rack to itself by reading all
/// of its input from others loads the uplinks that keeping apart is to spare.
fn unplanned(state: &mut FollowState, slot: &OfferedNode<'_>) -> Option<Task> {
    use Locality::{Other, Rack};
    if state.all_placed() {
        return None;
    }
    if state.manner.heavy_input.is_none() {
        return fairest(state, slot, Other, |_, _| true);
    }
    let rack = slot.spot.rack;
    let heavy = |state: &FollowState, job: JobIdx| state.jobs[job.at()].heavy;
    let light = |state: &FollowState, job: JobIdx| !heavy(state, job);
    let alone = |state: &FollowState, job: JobIdx| !state.heavy_beside(rack)(job);
    let any = |_: &FollowState, _: JobIdx| true;
    let first = if alone(state, JobIdx(u32::MAX)) {
        fairest(state, slot, Other, heavy)
    } else {
        fairest(state, slot, Other, light)
            .or_else(|| fairest(state, slot, Rack, alone))
            .or_else(|| fairest(state, slot, Rack, any))
            .or_else(|| fairest(state, slot, Other, alone))
    };
    first.or_else(|| fairest(state, slot, Other, any))
}

/// As `fair`: user by user, of each first a reduce, then the map that reads nearest; of jobs that are accepted, stages
/// that the plan does not place, and maps that read no farther than that.
fn fairest(
    state: &mut FollowState,
    slot: &OfferedNode<'_>,
    farthest: Locality,
    accept: impl Fn(&FollowState, JobIdx) -> bool,
) -> Option<Task> {
    let room_mb = state.pool.early_room_mb(slot.view());
    let state = &*state;
    let pool = &state.pool;
    let reduce = first_reduce(state, slot, room_mb, &accept);
    let jobs = pool.with_maps_before(reduce).flat_map(|user| pool.map_jobs(user));
    let free = jobs.filter(|&job| !state.planned(job, Stage::Map) && accept(state, job));
    let mut nearest = free.filter_map(|job| pool.nearest_map(job, slot));
    nearest.find(|&(_, locality)| locality <= farthest).map(|(task, _)| task).or(reduce)
}

/// As the pool's own, of jobs whose reduces the plan does not place.
fn first_reduce(
    state: &FollowState,
    slot: &OfferedNode<'_>,
    room_mb: u64,
    accept: &impl Fn(&FollowState, JobIdx) -> bool,
) -> Option<Task> {
    let pool: &Pool = &state.pool;
    let jobs = pool.order().iter().flat_map(|&user| pool.reduce_jobs(user, true));
    let mut free = jobs.filter(|&job| !state.planned(job, Stage::Reduce) && accept(state, job));
    free.find_map(|job| {
        let task = pool.reduce(job, slot)?;
        (!pool.waits_for_maps(job) || pool.size_of(task).memory_mb() <= room_mb).then_some(task)
    })
}

fn explain(state: &mut FollowState, slot: &OfferedNode<'_>) -> Vec<Advice> {
    let placed: Vec<[bool; 2]> =
        (0..state.jobs.len() as u32).map(|job| Stage::BOTH.map(|stage| state.planned(JobIdx(job), stage))).collect();
    not_yet(&mut state.pool, slot, |_, job, kind| {
        let reduces = usize::from(kind == Kind::Reduce);
        if placed.get(job.at()).is_some_and(|stages| stages[reduces]) {
            HoldReason::OtherRackPlanned
        } else {
            HoldReason::Fairness
        }
    })
}
