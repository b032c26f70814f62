//! Kept answers are unpacked one at a time, on a thread of their own: one of thousands of hints takes a moment, and who asks
//! for a hundred of them at once must take neither the engine's thread nor those that serve sockets.

use hintd_engine::Refusal;
use hintd_model::units::Micros;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns, first come first served.
#[derive(Debug)]
pub(super) struct Unpacking(Arc<Semaphore>);

/// It is the holder's turn, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Unpacking {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// Waits for its turn, which comes before the engine is asked: so its queue has one of these at most.
    pub(super) async fn turn(&self) -> Turn {
        // Nobody closes it.
        Turn { _permit: Arc::clone(&self.0).acquire_owned().await.ok() }
    }
}

impl Turn {
    /// Unpacks something elsewhere, and ends the turn. Who no longer waits leaves its turn to the next when that is done.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where it panics.
    pub(super) async fn unpack<T: Send + 'static>(
        self,
        unpack: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let done = tokio::task::spawn_blocking(move || {
            let _turn = self;
            unpack()
        });
        done.await.map_err(|_| {
            let message = "an answer can't be unpacked: it ended in a panic".to_owned();
            Refusal::Unavailable { message, retry_after: Micros::from_secs(1) }
        })
    }
}
