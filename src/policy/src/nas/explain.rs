//! Why nothing was launched, and for how long.

use super::params::{HoldMaps, NasParams, Shuffle};
use super::state::NasState;
use crate::dispatch::Advice;
use crate::pool::{HoldReason, JobIdx, Kind, MapCounts, OfferedNode, Pick, Task, not_yet};
use hintd_model::units::Micros;
use std::sync::Arc;

/// What waits and why, after an offer that nobody took.
pub(super) fn explain(params: &NasParams, state: &mut NasState, slot: &OfferedNode<'_>) -> Vec<Advice> {
    let congested = params.cr_rts && state.congested(slot.spot.node, slot.view());
    let until_clear = params.mts && params.hold_maps == HoldMaps::UntilClear;
    let mut advice = not_yet(&mut state.pool, slot, |pool, job, kind| {
        let heavier = params.class(pool.shuffle(job)) != Shuffle::Light;
        match kind {
            Kind::Reduce if congested => HoldReason::RackCongested,
            Kind::Reduce => HoldReason::Fairness,
            _ if congested && heavier && until_clear => HoldReason::RackCongested,
            _ if pool.local_map(job, slot, Pick::Smallest).is_none() => HoldReason::NoLocalBlock,
            _ if congested && heavier => HoldReason::RackCongested,
            _ => HoldReason::TrafficThreshold,
        }
    });
    for one in &mut advice {
        if let Advice::NotYet { attempt, group, reason, expected_wait } = one {
            let clears = until_clear && reason == HoldReason::RackCongested.as_str();
            let job = state.pool.find(*attempt);
            *expected_wait = job.and_then(|job| wait(params, state, slot, (job, group), reason, clears));
        }
    }
    advice
}

/// How long, where it can be told: until enough maps are done, or until the user is due.
fn wait(
    params: &NasParams,
    state: &NasState,
    slot: &OfferedNode<'_>,
    group: (JobIdx, &Arc<str>),
    reason: &str,
    clears: bool,
) -> Option<Micros> {
    let (job, name) = group;
    let (pool, now) = (&state.pool, slot.view().now);
    if reason == HoldReason::MapsNotDone.as_str() {
        let MapCounts { all: maps, done, .. } = pool.maps(job);
        let enough = (state.threshold(params, job) * f64::from(maps)).ceil() as u32;
        return state.expected_maps(job, enough.saturating_sub(done));
    }
    let held = [HoldReason::NoLocalBlock, HoldReason::TrafficThreshold, HoldReason::RackCongested];
    if !held.iter().any(|held| held.as_str() == reason) {
        return None;
    }
    let mut tasks = (0..pool.groups(job)).map(|group| Task { job, group: group as u32, index: 0 });
    let task = tasks.find(|task| pool.name(*task).group == *name)?;
    if pool.kind(task) == Kind::Reduce {
        state.reduce_skips.left(pool.user(job), now, params.reduce_bound())
    } else if clears {
        None // when the rack clears, which nobody can tell
    } else {
        state.map_skips.left(pool.user(job), now, params.map_bound())
    }
}
