//! When connections may be closed: not before who asks again and again has heard that the daemon stops.
//!
//! A call that meets a closing connection is lost on its way: its client's own transport makes up what it is told
//! (tonic: CANCELLED), and no word or delay of the daemon's reaches it. So connections stay for a moment after the daemon
//! began to refuse, until no call came for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who has not asked for so long is waiting, as it was told to, or is idle: it sees the closing before it asks again.
const QUIET: Duration = Duration::from_millis(100);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The calls of a listener: how many are in flight, and when the last one came or went.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<State>);

#[derive(Debug, Default)]
struct State {
    in_flight: AtomicUsize,
    last: Mutex<Option<Instant>>,
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct Call(Calls);

impl Calls {
    /// One more, until what this gives is dropped.
    pub(super) fn begin(&self) -> Call {
        self.0.in_flight.fetch_add(1, Ordering::AcqRel);
        self.touch();
        Call(self.clone())
    }

    fn touch(&self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns when no call was in flight for a while, and after `most` in any case.
    pub(super) async fn quiet(&self, most: Duration) {
        let until = Instant::now() + most;
        while Instant::now() < until {
            let last = *self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
            let quiet = last.is_none_or(|last| last.elapsed() >= QUIET);
            if quiet && self.0.in_flight.load(Ordering::Acquire) == 0 {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.touch();
        self.0.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_quiet_when_no_call_came_or_went_for_a_while_and_at_the_latest_in_the_end() {
        let calls = Calls::default();
        let long = Duration::from_secs(60);
        tokio::time::timeout(Duration::ZERO, calls.quiet(long)).await.expect("nobody ever called");
        let began = Instant::now();
        drop(calls.begin());
        calls.quiet(long).await;
        assert!(began.elapsed() >= QUIET && began.elapsed() < long);
        let _call = calls.begin();
        let most = 2 * QUIET;
        let began = Instant::now();
        calls.quiet(most).await;
        assert!(began.elapsed() >= most, "one is in flight all the time");
    }
}
