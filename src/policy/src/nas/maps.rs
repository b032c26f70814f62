//! MTS: which map a node gets (Algorithm 2).

use super::params::{HoldMaps, NasParams, Shuffle};
use super::rules;
use super::skips::Bound;
use super::state::NasState;
use crate::pool::{JobIdx, OfferedNode, Pick, Task, UserIdx};
use hintd_model::units::Bytes;
use std::cmp::Reverse;

/// One offer to MTS.
struct Request<'a> {
    params: &'a NasParams,
    slot: &'a OfferedNode<'a>,
    /// Space for map output on the node.
    room: Bytes,
    hold: Hold,
    bound: Bound,
    /// Whether a user may have been skipped as often as it may.
    due: bool,
}

/// What CR-RTS does to heavy and medium maps on the offered node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Nothing.
    No,
    /// They wait, but for a user at D^m.
    UntilDue,
    /// They are as if they did not wait.
    UntilClear,
}

/// The map that the node gets if no reduce does, and its user's place in the order.
pub(super) fn find(params: &NasParams, state: &mut NasState, slot: &OfferedNode<'_>) -> Option<(usize, Task)> {
    if state.map_skips.present() == 0 {
        return None;
    }
    if !params.mts {
        return fair(state, slot);
    }
    let (node, view, bound) = (slot.spot.node, slot.view(), params.map_bound());
    let due = state.map_skips.anybody_due(view.now, bound);
    let hold = hold(params, state, slot);
    if hold != Hold::No {
        state.see_light_maps(params);
    }
    let words = state.pool.user_rows().div_ceil(64);
    // Nobody is due, and no user has a local map that is not held back: then nobody need be asked.
    let free = |at| if hold == Hold::No { u64::MAX } else { state.light_maps.word(at) };
    if !due && (0..words).all(|at| state.pool.users_with_local(node, at) & free(at) == 0) {
        return None;
    }
    let room = if params.traffic_threshold { state.room(node, view) } else { Bytes(u64::MAX) };
    Request { params, slot, room, hold, bound, due }.walk(state)
}

/// Counts the users whose maps were passed over: those before the one at the place, all of them for none.
pub(super) fn pass_over(params: &NasParams, state: &mut NasState, slot: &OfferedNode<'_>, until: Option<usize>) {
    if state.map_skips.present() == 0 || !params.mts {
        return;
    }
    let (now, bound, hold) = (slot.view().now, params.map_bound(), hold(params, state, slot));
    if until.is_none() && hold != Hold::UntilClear {
        state.map_skips.skip_all(now, bound);
        return;
    }
    for at in 0..until.unwrap_or(state.pool.order().len()) {
        let user = state.pool.order()[at];
        if asked(state, hold, user) {
            state.map_skips.skip(user, now, bound);
        }
    }
}

fn hold(params: &NasParams, state: &NasState, slot: &OfferedNode<'_>) -> Hold {
    match params.hold_maps {
        _ if !(params.cr_rts && state.congested(slot.spot.node, slot.view())) => Hold::No,
        HoldMaps::UntilDue => Hold::UntilDue,
        HoldMaps::UntilClear => Hold::UntilClear,
    }
}

/// Whether the user has maps that the node may get.
fn asked(state: &NasState, hold: Hold, user: UserIdx) -> bool {
    let with = if hold == Hold::UntilClear { &state.light_maps } else { state.pool.users_with_maps() };
    with.has(user.at())
}

/// Whether CR-RTS leaves the job's maps alone on a congested rack.
fn light(params: &NasParams, state: &NasState, job: JobIdx) -> bool {
    params.class(state.pool.shuffle(job)) == Shuffle::Light
}

/// Without MTS: users in the order of fairness, the nearest map of the job with fewest running containers.
fn fair(state: &NasState, slot: &OfferedNode<'_>) -> Option<(usize, Task)> {
    state.pool.order().iter().enumerate().find_map(|(place, &user)| {
        let task = state.pool.map_jobs(user).find_map(|job| state.pool.nearest_map(job, slot));
        task.map(|(task, _)| (place, task))
    })
}

impl Request<'_> {
    /// The first user that gets one, by its place in the order.
    fn walk(&self, state: &NasState) -> Option<(usize, Task)> {
        let (node, now) = (self.slot.spot.node, self.slot.view().now);
        state.pool.order().iter().enumerate().find_map(|(place, &user)| {
            if !asked(state, self.hold, user) {
                return None;
            }
            let due = self.due && state.map_skips.due(user, now, self.bound);
            // What is held back until its user is due is so no longer: a local map still comes before all others.
            let held = self.hold == Hold::UntilClear || self.hold == Hold::UntilDue && !due;
            let near = state.pool.has_local(user, node) && (!held || state.light_maps.has(user.at()));
            let local = if near { self.local(state, user, held) } else { None };
            local.or_else(|| if due { self.forced(state, user) } else { None }).map(|task| (place, task))
        })
    }

    /// The user's jobs of which the node may get a map when the user is due.
    fn jobs<'s>(&'s self, state: &'s NasState, user: UserIdx) -> impl Iterator<Item = JobIdx> + use<'s> {
        let all = self.hold != Hold::UntilClear;
        state.pool.map_jobs(user).filter(move |&job| all || light(self.params, state, job))
    }

    /// Lines 3–4: data-local and qualified; of an unpredicted job first, then of output closest to the room.
    fn local(&self, state: &NasState, user: UserIdx, held: bool) -> Option<Task> {
        let pool = &state.pool;
        let jobs = pool.map_jobs(user).filter(|&job| !held || light(self.params, state, job));
        let best = jobs.filter_map(|job| {
            let ratio = state.ratio(job);
            let most = rules::largest_qualified(ratio, self.room);
            let task = pool.local_map(job, self.slot, Pick::AtMost(most))?;
            let output = rules::predicted(ratio, pool.input_of(task));
            Some(((pool.ratio(job).is_some(), Reverse(output), pool.since(job)), task))
        });
        best.min_by_key(|(key, _)| *key).map(|(_, task)| task)
    }

    /// Lines 7–16: what a user gets that was skipped as often as it may.
    fn forced(&self, state: &NasState, user: UserIdx) -> Option<Task> {
        self.qualified(state, user)
            .or_else(|| self.smallest(state, user, |job| state.pool.local_map(job, self.slot, Pick::Smallest)))
            .or_else(|| self.smallest(state, user, |job| state.pool.any_map(job, self.slot, Pick::Smallest)))
    }

    /// Lines 8–12: small input before large, unpredicted before predicted, least MapCost, output closest to the room.
    fn qualified(&self, state: &NasState, user: UserIdx) -> Option<Task> {
        let (pool, slot) = (&state.pool, self.slot);
        let best = self.jobs(state, user).flat_map(|job| {
            let ratio = state.ratio(job);
            let most = rules::largest_qualified(ratio, self.room);
            let fits = |task: &Task| pool.input_of(*task) <= most;
            let local = pool.local_map(job, slot, Pick::AtMost(most));
            let near = pool.rack_map(job, slot, Pick::Smallest).filter(fits);
            let any = pool.any_map(job, slot, Pick::Smallest).filter(|task| near != Some(*task)).filter(fits);
            let large = pool.input(job).0 >= self.params.small_input_bytes;
            let category = (large, pool.ratio(job).is_some());
            [(local, 0), (near, 1), (any, 2)].into_iter().filter_map(move |(task, gamma)| {
                let (task, input) = task.map(|task| (task, pool.input_of(task)))?;
                let cost = input.0.saturating_mul(gamma);
                let output = Reverse(rules::predicted(ratio, input));
                Some(((category, cost, output, pool.since(job), gamma), task))
            })
        });
        best.min_by_key(|(key, _)| *key).map(|(_, task)| task)
    }

    /// Lines 14–16: the one of smallest output.
    fn smallest(&self, state: &NasState, user: UserIdx, of: impl Fn(JobIdx) -> Option<Task>) -> Option<Task> {
        let pool = &state.pool;
        let best = self.jobs(state, user).filter_map(|job| {
            let task = of(job)?;
            Some(((rules::predicted(state.ratio(job), pool.input_of(task)), pool.since(job)), task))
        });
        best.min_by_key(|(key, _)| *key).map(|(_, task)| task)
    }
}
