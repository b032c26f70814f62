//! Kept answers are unpacked one at a time, on a thread of their own: one of thousands of hints takes a moment, and who asks
//! for a hundred of them at once must take neither the engine's thread nor those that serve sockets.

use hintd_engine::Refusal;
use hintd_model::units::Micros;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who waits for a permit of one kind at one time; each holds a request.
const WAITING_MAX: usize = 256;

/// Permits of one kind, first come first served. Repeats and explanations have their own: nobody's repeat waits behind a
/// hundred explanations, which no quota bounds.
#[derive(Debug)]
pub(super) struct UnpackLimiter {
    permits: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// One answer may be unpacked, until this and its clones are dropped. It goes with what was unpacked until that is encoded: an
/// unpacked answer takes many times its packed bytes, and only encoded ones are counted.
#[derive(Debug, Clone)]
pub struct UnpackPermit {
    _permits: Arc<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>)>,
}

impl UnpackLimiter {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(1)), waiting: Arc::new(Semaphore::new(WAITING_MAX)) }
    }

    /// Waits for a permit, which comes before the engine is asked: so its queue has one of these at most.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where [`WAITING_MAX`] wait.
    pub(super) async fn permit(&self) -> Result<UnpackPermit, Refusal> {
        let waits = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| Refusal::Unavailable {
            message: format!("{WAITING_MAX} wait for answers that were given before"),
            retry_after: Micros::from_secs(1),
        })?;
        // Nobody closes it.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        Ok(UnpackPermit { _permits: Arc::new((waits, permit)) })
    }
}

impl UnpackPermit {
    /// Unpacks something elsewhere; the permit is given back with it. Who no longer waits leaves its permit to the next when that
    /// is done.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where it panics.
    pub async fn unpack<T: Send + 'static>(
        self,
        unpack: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Self), Refusal> {
        let done = tokio::task::spawn_blocking(move || (unpack(), self));
        done.await.map_err(|_| {
            let message = "an answer can't be unpacked: it ended in a panic".to_owned();
            Refusal::Unavailable { message, retry_after: Micros::from_secs(1) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_has_the_permit_a_number_wait_and_more_are_refused() {
        let limiter = UnpackLimiter::new();
        let first = limiter.permit().await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 1..WAITING_MAX {
            let limiter =
                UnpackLimiter { permits: Arc::clone(&limiter.permits), waiting: Arc::clone(&limiter.waiting) };
            waiting.spawn(async move { limiter.permit().await.unwrap().unpack(|| 1).await.unwrap().0 });
        }
        while limiter.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(limiter.permit().await, Err(Refusal::Unavailable { .. })));
        let (unpacked, permit) = first.unpack(|| 2).await.unwrap();
        assert_eq!((unpacked, limiter.permits.available_permits()), (2, 0), "it goes with what was unpacked");
        assert!(waiting.try_join_next().is_none());
        drop(permit);
        assert_eq!(waiting.join_all().await.len(), WAITING_MAX - 1);
        let left = limiter.permit().await.unwrap().unpack(|| -> u32 { panic!("a test's") }).await;
        assert!(matches!(left, Err(Refusal::Unavailable { .. })));
        limiter.permit().await.unwrap();
    }
}
