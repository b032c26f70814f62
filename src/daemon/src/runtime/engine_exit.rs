//! What happens when the engine's thread ends: without it nothing is answered, so the daemon must say so.

use super::engine_thread::Shared;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Held by the engine's thread; tells of its end, be it in order, by a bug or by a panic.
pub(super) struct EngineExitNotifier {
    pub(super) shared: Arc<Shared>,
    pub(super) ended: CancellationToken,
}

impl Drop for EngineExitNotifier {
    fn drop(&mut self) {
        let stopping = self.shared.ready.borrow().stopping;
        if !stopping {
            let panicked = std::thread::panicking();
            tracing::error!(panicked, "the engine's thread ended: nothing is answered any more");
        }
        self.shared.ready.send_modify(|ready| ready.engine = false);
        self.shared.watchers.clear();
        self.ended.cancel();
    }
}
