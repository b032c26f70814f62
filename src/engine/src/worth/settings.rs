//! What operators set of the comparison of hinted and held-out applications.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Who is held out, and when that tells something.
#[derive(Debug, Clone, PartialEq)]
pub struct WorthSettings {
    /// The share of its applications that are held out, 0 to 0.5, by queue of the configuration; `*`: all others.
    pub holdout: BTreeMap<Arc<str>, f64>,
    /// Of the draw: another seed draws others.
    pub seed: u64,
    /// Runs on either side below which nothing is told; at least 2.
    pub runs: u64,
    /// The part by which a key's hinted runs must be slower, at the lower end of the interval, for it to be stopped.
    pub margin: f64,
    /// Recurring keys that are compared at one time; beyond it the longest unseen one goes, those that run first.
    pub keys: usize,
}

impl Default for WorthSettings {
    /// Nobody is held out.
    fn default() -> Self {
        Self { holdout: BTreeMap::new(), seed: 0, runs: 8, margin: 0.02, keys: 10_000 }
    }
}
