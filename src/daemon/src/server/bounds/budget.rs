//! Memory that callers may hold, shared out among their connections.
//!
//! A connection holds at most as much as is free beside it: alone half of the whole, and where `n` take all they can,
//! each of them `1/(n + 1)`. As much stays free for who comes next, so that no connection starves another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// All of it.
#[derive(Debug)]
pub(in crate::server) struct Budget {
    /// Bytes.
    most: usize,
    taken: AtomicUsize,
    began: Instant,
}

/// One connection's; clones are the same.
#[derive(Debug, Clone)]
pub(in crate::server) struct Share(Arc<Own>);

#[derive(Debug)]
struct Own {
    budget: Arc<Budget>,
    taken: AtomicUsize,
    /// When it last gave or took, milliseconds after the budget began.
    moved: AtomicU64,
}

/// Bytes that a connection holds; given back when dropped.
#[derive(Debug)]
pub(in crate::server) struct Held {
    share: Share,
    bytes: usize,
}

impl Budget {
    pub(in crate::server) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0), began: Instant::now() })
    }

    /// The share of a new connection, of which nothing is taken.
    pub(in crate::server) fn share(self: &Arc<Self>) -> Share {
        Share(Arc::new(Own { budget: Arc::clone(self), taken: AtomicUsize::new(0), moved: AtomicU64::new(0) }))
    }
}

impl Share {
    /// Takes bytes; `None`: there are not so many for this connection now.
    pub(super) fn take(&self, bytes: usize) -> Option<Held> {
        let Own { budget, taken, .. } = &*self.0;
        let all = budget.taken.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        let before = taken.fetch_add(bytes, Ordering::AcqRel);
        let held = Held { share: self.clone(), bytes };
        let own = before.saturating_add(bytes);
        if all > budget.most || own > budget.most - all {
            return None; // dropped, it is given back
        }
        if before == 0 {
            self.progress();
        }
        Some(held)
    }

    /// The other side took something of what waits for it.
    pub(super) fn progress(&self) {
        let ms = u64::try_from(self.0.budget.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.moved.store(ms, Ordering::Release);
    }

    /// Since when nothing has moved of what it holds; `None`: it holds nothing.
    pub(in crate::server) fn still_since(&self) -> Option<Instant> {
        let moved = Duration::from_millis(self.0.moved.load(Ordering::Acquire));
        (self.0.taken.load(Ordering::Acquire) > 0).then(|| self.0.budget.began + moved)
    }
}

impl Held {
    /// Takes more; false: there is not so much, and it holds what it held.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let Some(mut more) = self.share.take(bytes) else { return false };
        self.bytes += std::mem::take(&mut more.bytes);
        true
    }

    /// Gives back what is beyond `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        drop(Self { share: self.share.clone(), bytes: self.bytes.saturating_sub(bytes) });
        self.bytes = self.bytes.min(bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Own { budget, taken, .. } = &*self.share.0;
        taken.fetch_sub(self.bytes, Ordering::AcqRel);
        budget.taken.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a byte at a time, in turns, until none of them gets another.
    fn greedy(shares: &[Share]) -> Vec<Vec<Held>> {
        let mut held: Vec<Vec<Held>> = shares.iter().map(|_| Vec::new()).collect();
        loop {
            let mut got = false;
            for (share, held) in shares.iter().zip(&mut held) {
                let taken = share.take(1);
                got |= taken.is_some();
                held.extend(taken);
            }
            if !got {
                return held;
            }
        }
    }

    #[test]
    fn who_takes_all_it_can_leaves_as_much_for_the_next() {
        for connections in [1, 3, 9] {
            let budget = Budget::new(1_000);
            let shares: Vec<_> = (0..connections).map(|_| budget.share()).collect();
            let held = greedy(&shares);
            let each = 1_000 / (connections + 1);
            for held in &held {
                assert!(held.len().abs_diff(each) <= 1, "{} of {each} with {connections}", held.len());
            }
            let next = budget.share();
            assert!(next.take(each / 2 - 1).is_some(), "there is something for who comes next");
            drop(held);
            assert_eq!(budget.taken.load(Ordering::Acquire), 0);
            assert!(next.take(500).is_some() && next.take(501).is_none(), "half of the whole for one alone");
        }
    }

    #[test]
    fn what_grows_and_shrinks_is_given_back_to_the_byte() {
        let budget = Budget::new(100);
        let share = budget.share();
        let mut held = share.take(10).unwrap();
        assert!(held.grow(40) && !held.grow(1), "half of it");
        held.shrink_to(5);
        held.shrink_to(70);
        assert_eq!(budget.taken.load(Ordering::Acquire), 5);
        assert!(share.still_since().is_some());
        drop(held);
        assert_eq!((budget.taken.load(Ordering::Acquire), share.still_since()), (0, None));
    }
}
