//! What records share, counted once: by where it lies, which is its own as long as a record holds it.

use std::collections::HashMap;
use std::sync::Arc;

/// Users and bytes of what is shared. Only ever asked for a place, and for the sum.
#[derive(Debug, Default)]
pub(super) struct Tally {
    parts: HashMap<usize, (usize, usize)>,
    pub(super) bytes: usize,
}

/// Bytes beside a part of its own: the counts of its `Arc`, and its row here.
const BESIDE: usize = 64;

impl Tally {
    /// One more user of a part; whether it is the first.
    pub(super) fn hold<T: ?Sized>(&mut self, part: &Arc<T>, weigh: impl FnOnce() -> usize) -> bool {
        let (users, bytes) = self.parts.entry(place(part)).or_default();
        *users += 1;
        let first = *users == 1;
        if first {
            *bytes = weigh() + BESIDE;
            self.bytes += *bytes;
        }
        first
    }

    /// One user less; whether it was the last.
    pub(super) fn release<T: ?Sized>(&mut self, part: &Arc<T>) -> bool {
        let place = place(part);
        let Some((users, bytes)) = self.parts.get_mut(&place) else {
            return false;
        };
        *users -= 1;
        let last = *users == 0;
        if last {
            self.bytes -= *bytes;
            self.parts.remove(&place);
        }
        last
    }
}

fn place<T: ?Sized>(part: &Arc<T>) -> usize {
    Arc::as_ptr(part).cast::<u8>() as usize
}
