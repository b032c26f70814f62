//! CA-RTS and CR-RTS: which reduce a node gets (Algorithms 1, 3 and 4).

use super::params::{NasParams, Shuffle};
use super::state::NasState;
use crate::pool::{JobIdx, MapCounts, OfferedNode, Task, UserIdx};
use hintd_model::cluster::resource::MEMORY;

/// One offer to either.
struct Request<'a> {
    params: &'a NasParams,
    slot: &'a OfferedNode<'a>,
    /// The offer with no more room than reduces of jobs with waiting maps may still take; none: none of them.
    early: Option<OfferedNode<'a>>,
}

/// The reduce that the node gets and its user's place in the order, which is not behind that of the map that the node
/// would get; whoever CR-RTS passed over is counted, and its heavier jobs marked.
pub(super) fn reduce(
    params: &NasParams,
    state: &mut NasState,
    slot: &OfferedNode<'_>,
    map: Option<usize>,
) -> Option<(usize, Task)> {
    if state.reduce_skips.present() == 0 {
        return None;
    }
    let early_mb = state.pool.early_room_mb(slot.view());
    let early = (early_mb >= state.smallest_reduce_mb).then(|| {
        let mut tight = *slot;
        tight.free.0[MEMORY] = tight.free.0[MEMORY].min(early_mb);
        tight
    });
    let request = Request { params, slot, early };
    if params.cr_rts && state.congested(slot.spot.node, slot.view()) {
        request.congested(state, map)
    } else {
        request.uncongested(state, map)
    }
}

impl Request<'_> {
    /// Algorithm 3: the first user with a reduce to launch.
    fn uncongested(&self, state: &NasState, map: Option<usize>) -> Option<(usize, Task)> {
        if self.early.is_none() && state.late.is_empty() {
            return None;
        }
        let ready = |user: UserIdx| state.late.has(user.at()) || self.early.is_some() && state.reduce_skips.has(user);
        let users = state.pool.order()[..reach(state, map)].iter().enumerate().filter(|&(_, &user)| ready(user));
        { users }.find_map(|(place, &user)| Some((place, self.best(state, user, false)?)))
    }

    /// Algorithm 4.
    fn congested(&self, state: &mut NasState, map: Option<usize>) -> Option<(usize, Task)> {
        let (now, bound) = (self.slot.view().now, self.params.reduce_bound());
        let due = state.reduce_skips.anybody_due(now, bound);
        // Nobody has a light job, nobody is due, and every heavier one is marked already.
        let nothing = !due && state.light.is_empty() && state.changed.is_empty();
        let mut found = None;
        for place in 0..if nothing { 0 } else { reach(state, map) } {
            let user = state.pool.order()[place];
            if !state.reduce_skips.has(user) {
                continue;
            }
            let task = if due && state.reduce_skips.due(user, now, bound) {
                self.best(state, user, false)
            } else {
                self.visit(state, user);
                if state.light.has(user.at()) { self.best(state, user, true) } else { None }
            };
            if let Some(task) = task {
                found = Some((place, task));
                break;
            }
        }
        if found.is_none() && map.is_none() {
            state.reduce_skips.skip_all(now, bound);
            return None;
        }
        for at in 0..found.map_or(reach(state, map), |(place, _)| place) {
            let user = state.pool.order()[at];
            if state.reduce_skips.has(user) {
                state.reduce_skips.skip(user, now, bound);
            }
        }
        found
    }

    /// Marks the user's heavier jobs as delayed and sees whether it has light ones.
    fn visit(&self, state: &mut NasState, user: UserIdx) {
        if !state.changed.has(user.at()) {
            return;
        }
        let mut light = false;
        for job in state.pool.reduce_jobs(user, true).collect::<smallvec::SmallVec<[JobIdx; 16]>>() {
            if self.params.class(state.pool.shuffle(job)) == Shuffle::Light {
                light = true;
            } else {
                state.delay(job);
            }
        }
        state.changed.set(user.at(), false);
        state.light.set(user.at(), light);
    }

    /// The user's reduce by lines 3–8 of Algorithm 3, jobs delayed or with all maps done first in each category, then
    /// as they came; without CA-RTS of the job with fewest running containers.
    fn best(&self, state: &NasState, user: UserIdx, light: bool) -> Option<Task> {
        let pool = &state.pool;
        let jobs = pool.reduce_jobs(user, self.early.is_some()).filter_map(|job| {
            let class = self.params.class(pool.shuffle(job));
            let slot = if pool.waits_for_maps(job) { self.early.as_ref()? } else { self.slot };
            let task = if light && class != Shuffle::Light { None } else { pool.reduce(job, slot) };
            task.map(|task| (job, class, task))
        });
        if !self.params.ca_rts {
            return { jobs }.next().map(|(.., task)| task);
        }
        let best = jobs.min_by_key(|&(job, class, _)| {
            let rack = self.slot.spot.rack;
            let below = pool.reduces_in(job, rack) < pool.reduce_share(job, rack);
            let MapCounts { all: maps, done, .. } = pool.maps(job);
            (category(class, below), !(state.delayed(job) || done == maps), pool.since(job))
        });
        best.map(|(.., task)| task)
    }
}

/// How many users are asked for reduces: up to the one that gets a map otherwise.
fn reach(state: &NasState, map: Option<usize>) -> usize {
    map.map_or(state.pool.order().len(), |place| place + 1)
}

/// Place in Algorithm 3's order: heavy to light below ReduceNum, then light to heavy.
const fn category(class: Shuffle, below: bool) -> u8 {
    match (below, class) {
        (true, Shuffle::Heavy) => 0,
        (true, Shuffle::Medium) => 1,
        (true, Shuffle::Light) => 2,
        (false, Shuffle::Light) => 3,
        (false, Shuffle::Medium) => 4,
        (false, Shuffle::Heavy) => 5,
    }
}
