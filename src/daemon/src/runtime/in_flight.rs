//! How many requests of one application are under way: one that floods stands in nobody's way but its own.

use hintd_model::units::ApplicationId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests under way, by application.
#[derive(Debug, Default, Clone)]
pub(super) struct InFlight(Arc<Mutex<HashMap<ApplicationId, u32>>>);

/// A request that is under way; over when it is dropped.
#[derive(Debug)]
pub struct RequestPermit {
    all: InFlight,
    application: ApplicationId,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<ApplicationId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more of the application's, unless `most` are under way; 0: no bound.
    pub(super) fn enter(&self, application: ApplicationId, most: u32) -> Option<RequestPermit> {
        let mut all = self.lock();
        let under_way = all.entry(application).or_default();
        if most > 0 && *under_way >= most {
            return None;
        }
        *under_way += 1;
        Some(RequestPermit { all: self.clone(), application })
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(under_way) = all.get_mut(&self.application) {
            *under_way -= 1;
            if *under_way == 0 {
                all.remove(&self.application);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_application_has_its_own_and_what_is_over_is_forgotten() {
        let all = InFlight::default();
        let [one, two] = [1, 2].map(|sequence| ApplicationId { cluster_timestamp: 1, sequence });
        let held: Vec<_> = (0..3).map(|_| all.enter(one, 3).unwrap()).collect();
        assert!(all.enter(one, 3).is_none());
        assert!(all.enter(two, 3).is_some() && all.enter(one, 0).is_some());
        drop(held);
        assert!(all.lock().is_empty());
        assert!(all.enter(one, 3).is_some());
    }
}
