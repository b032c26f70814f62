//! When a planned heavy job's shuffle between two racks starts (004 §4.2.2).

use super::active_plan::at;
use super::state::FollowState;
use crate::dispatch::{ShuffleAdvice, ShuffleAsk, View};
use crate::plan::Stage;
use crate::pool::JobIdx;
use std::borrow::Cow;

/// What is gathered starts once it reaches the pair's elephant threshold, if what is left reaches it too or nothing is;
/// at once where it can't reach it (packets then take it), where no more can come, and for every job that is not planned
/// as heavy. Waits are bounded: nothing hangs on a forecast.
pub(in crate::jobpacker) fn shuffle(state: &FollowState, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
    let latest = ask.since.plus(state.manner.shuffle_wait);
    let why = state.pool.find(ask.attempt).and_then(|job| waits_for(state, job, ask));
    match why {
        Some(why) if latest > view.now => ShuffleAdvice::Wait { latest, why: Cow::Borrowed(why) },
        _ => ShuffleAdvice::Start,
    }
}

/// Why it should wait; `None`: it should not.
fn waits_for(state: &FollowState, job: JobIdx, ask: &ShuffleAsk) -> Option<&'static str> {
    let (row, book) = (state.jobs[job.at()].row?, state.book.as_ref()?);
    let (planned, row) = (&book.plan.jobs[row as usize], &book.rows[row as usize]);
    let released = Stage::BOTH.iter().any(|&stage| row.stages[at(stage)].released);
    if !planned.heavy || released || ask.maps_done && ask.reduces_placed {
        return None;
    }
    let elephant = ask.threshold?.as_f64();
    let part = row.stages[at(Stage::Map)].part(ask.from) * row.stages[at(Stage::Reduce)].part(ask.to);
    let total = state.pool.shuffle(job).as_f64() * part;
    let gathered = ask.gathered.as_f64();
    let left = (total - ask.started.as_f64() - gathered).max(0.0);
    if gathered + left < elephant {
        return None;
    }
    if gathered < elephant {
        return Some("below_threshold");
    }
    // A hundredth is less than what forecasts are off by.
    let rest_rides = left >= elephant || left <= 0.01 * total;
    if rest_rides { None } else { Some("rest_below_threshold") }
}
