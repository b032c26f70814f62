//! Memory of the requests that attempts' lost tasks are placed anew by, shared out among attempts: each has at most as much
//! as is free beside it, so that none takes what others need.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of all attempts; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct RememberedBytes(Arc<AtomicUsize>);

/// One attempt's; given back when dropped.
#[derive(Debug)]
pub(crate) struct OwnBytes {
    own: usize,
    all: RememberedBytes,
}

impl RememberedBytes {
    /// Those of a new attempt.
    pub(crate) fn share(&self) -> OwnBytes {
        OwnBytes { own: 0, all: self.clone() }
    }
}

impl OwnBytes {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.own += bytes;
        self.all.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&mut self, bytes: usize) {
        self.own -= bytes;
        self.all.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether all is within `most`, and this attempt's within what is free.
    pub(crate) fn fits(&self, most: usize) -> bool {
        most.checked_sub(self.all.0.load(Ordering::Relaxed)).is_some_and(|free| self.own <= free)
    }
}

impl Drop for OwnBytes {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.own, Ordering::Relaxed);
    }
}
