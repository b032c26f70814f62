//! Runs that several entries of an experiment want, each made once in a process.

use super::ReproduceError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

type Slot<R> = Arc<OnceLock<Result<Arc<R>, String>>>;

/// Runs by what they are of; whoever wants one that is being made waits for it, and for no other.
pub(super) struct SharedRuns<K, R>(Mutex<BTreeMap<K, Slot<R>>>);

impl<K: Ord, R> SharedRuns<K, R> {
    /// None yet.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The run of `key`, by `make` where there is none.
    ///
    /// # Errors
    /// [`ReproduceError::Failed`] in the name of `entry`, with why the run could not be made.
    pub(super) fn run(
        &self,
        entry: &str,
        key: K,
        make: impl FnOnce() -> Result<R, String>,
    ) -> Result<Arc<R>, ReproduceError> {
        let slot = {
            let mut runs = self.0.lock().expect("its holders only look up and insert");
            Arc::clone(runs.entry(key).or_default())
        };
        let result = slot.get_or_init(|| make().map(Arc::new));
        result.clone().map_err(|why| ReproduceError::Failed { entry: entry.to_owned(), source: why.into() })
    }
}
