//! When a planned heavy job's shuffle between two racks starts (004 §4.2.2).

use super::book::at;
use super::state::FollowState;
use crate::policy::dispatch::{ShuffleAdvice, ShuffleAsk, View};
use crate::policy::plan::Stage;
use crate::policy::pool::JobIdx;
use crate::units::Bytes;
use std::borrow::Cow;

/// What is gathered starts once it reaches the elephant threshold, if what is left reaches it too or nothing is; at
/// once where it can't reach it (packets then take it), where no more can come, and for every job that is not planned
/// as heavy. Waits are bounded: nothing hangs on a forecast.
pub(in crate::policy::jobpacker) fn shuffle(
    state: &mut FollowState,
    ask: &ShuffleAsk,
    view: &View<'_>,
) -> ShuffleAdvice {
    let latest = ask.since.plus(state.manner.shuffle_wait);
    let Some(job) = state.pool.find(ask.attempt) else { return ShuffleAdvice::Start };
    let Some(wait) = waits_for(state, job, ask).filter(|_| latest > view.now) else {
        start(state, job, ask);
        return ShuffleAdvice::Start;
    };
    ShuffleAdvice::Wait { latest, why: Cow::Borrowed(wait) }
}

/// Why it should wait; `None`: it should not.
fn waits_for(state: &FollowState, job: JobIdx, ask: &ShuffleAsk) -> Option<&'static str> {
    let (row, book) = (state.jobs[job.at()].row?, state.book.as_ref()?);
    let (planned, row) = (&book.plan.jobs[row as usize], &book.rows[row as usize]);
    let released = Stage::BOTH.iter().any(|&stage| row.stages[at(stage)].released);
    if !planned.heavy || released || ask.maps_done && ask.reduces_placed {
        return None;
    }
    let elephant = book.plan.assumptions.elephant.as_f64();
    let part = row.stages[at(Stage::Map)].part(ask.from) * row.stages[at(Stage::Reduce)].part(ask.to);
    let total = state.pool.shuffle(job).as_f64() * part;
    let (gathered, started) = (ask.gathered.as_f64(), state.started(job, ask).as_f64());
    let left = (total - started - gathered).max(0.0);
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

fn start(state: &mut FollowState, job: JobIdx, ask: &ShuffleAsk) {
    let started = &mut state.jobs[job.at()].started;
    match started.iter_mut().find(|row| (row.0, row.1) == (ask.from, ask.to)) {
        Some(row) => row.2 = row.2.saturating_add(ask.gathered),
        None => started.push((ask.from, ask.to, ask.gathered)),
    }
}

impl FollowState {
    fn started(&self, job: JobIdx, ask: &ShuffleAsk) -> Bytes {
        let found = self.jobs[job.at()].started.iter().find(|row| (row.0, row.1) == (ask.from, ask.to));
        found.map_or(Bytes::ZERO, |row| row.2)
    }
}
