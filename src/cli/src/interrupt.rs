//! Ctrl-C where a command talks over the network: it ends the command, unless its work hears it itself.

use super::failure::Failure;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Works of this process that hear Ctrl-C themselves. One signal wakes all who wait for it, in any order: who waits for it on
/// behalf of the whole command can't know by waiting alone that the work is about to hear it too.
static HEARING: AtomicUsize = AtomicUsize::new(0);

/// Ctrl-C, heard by the work itself until it ends: keep it as long as the work goes on.
pub(crate) struct Interrupts(Signal);

impl Interrupts {
    /// # Errors
    /// [`Failure::Work`] where the system gives no handler.
    pub(crate) fn hear() -> Result<Self, Failure> {
        let interrupts = Self(listen()?);
        HEARING.fetch_add(1, Ordering::SeqCst);
        Ok(interrupts)
    }

    /// Waits for the next; none is lost where the caller gives up waiting.
    pub(crate) async fn came(&mut self) {
        self.0.recv().await;
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        HEARING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for a Ctrl-C that no work hears itself.
///
/// # Errors
/// As [`Interrupts::hear`], at once.
pub(super) async fn unheard() -> Result<(), Failure> {
    let mut interrupts = listen()?;
    loop {
        interrupts.recv().await;
        if HEARING.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
    }
}

fn listen() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt()).map_err(|error| Failure::work(format!("signals: {error}")))
}
