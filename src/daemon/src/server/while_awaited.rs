//! Long work beside the threads that serve calls, for as long as somebody awaits it.

use hintd_engine::Refusal;
use hintd_model::units::Micros;
use std::sync::Arc;

/// Does the work on a thread of its own, holding `place` until it ends. Its probe says true once nobody awaits it any more:
/// the call is over. `what`: its name, where it ends in a panic.
///
/// # Errors
/// Those of the work, and [`Refusal::Unavailable`] where it ended in a panic.
pub(super) async fn while_awaited<T: Send + 'static>(
    place: impl Send + 'static,
    what: &str,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    // Dropped with this future.
    let caller = Arc::new(());
    let gone = Arc::downgrade(&caller);
    let done = tokio::task::spawn_blocking(move || {
        let _place = place;
        work(&mut || gone.strong_count() == 0)
    });
    let done = done.await;
    drop(caller);
    let panicked =
        || Refusal::Unavailable { message: format!("{what} ended in a panic"), retry_after: Micros::from_secs(1) };
    done.unwrap_or_else(|_| Err(panicked()))
}
