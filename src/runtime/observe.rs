//! What the daemon measures, as a trait: metrics live a floor above and plug in here.

use crate::engine::Counter;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Receives measurements; every method returns at once. All do nothing unless implemented.
pub trait Observer: Send + Sync {
    /// How long a stage of a request took.
    fn stage(&self, policy: &'static str, stage: Stage, took: Duration) {
        let _ = (policy, stage, took);
    }

    /// Steps a search took.
    fn steps(&self, policy: &'static str, steps: u64) {
        let _ = (policy, steps);
    }

    /// Something the engine counts.
    fn count(&self, counter: Counter, by: u64) {
        let _ = (counter, by);
    }

    /// A call was refused, by the token of the status table.
    fn refused(&self, reason: &'static str) {
        let _ = reason;
    }

    /// A generation was published.
    fn published(&self, took: Duration, version: u64) {
        let _ = (took, version);
    }

    /// Items of a feed that were taken, and that were refused.
    fn feed(&self, feed: &'static str, taken: u64, refused: u64) {
        let _ = (feed, taken, refused);
    }

    /// A reload ended.
    fn reloaded(&self, done: bool) {
        let _ = done;
    }

    /// Sizes and ages, about once a second.
    fn gauges(&self, gauges: &Gauges) {
        let _ = gauges;
    }
}

/// Stages of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Waiting for a thread of the pool.
    Queue,
    /// Searching.
    Place,
    /// Waiting for the engine and committing.
    Commit,
    /// Waiting for the disk.
    Journal,
    /// From receipt to answer.
    Total,
}

/// Sizes and ages at one moment.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// Live leases.
    pub leases: usize,
    /// Nodes by state.
    pub nodes: Vec<(&'static str, usize)>,
    /// Age of each source that ever spoke.
    pub ages: Vec<(&'static str, Duration)>,
    /// Placements waiting or running.
    pub pool: usize,
    /// Appends waiting for the disk.
    pub journal: usize,
    /// Whether the journal can be written.
    pub journal_healthy: bool,
}

/// An observer that measures nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Counters since start by name, for status.
#[derive(Default)]
pub struct Counters(Mutex<BTreeMap<&'static str, u64>>);

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}

impl Counters {
    /// Adds.
    pub fn add(&self, name: &'static str, by: u64) {
        *self.lock().entry(name).or_default() += by;
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.lock().iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    /// One; zero if nothing was ever counted.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.lock().get(name).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
