//! Answers that nobody has: their caller was gone when they were made. A repeat of the request fetches them.
//!
//! Such a decision is no hint: YARN never saw it. So it is recorded as late, not counted in adherence, and not among the
//! requests that were answered, until somebody has it.

use hintd_engine::records::Undelivered;
use hintd_model::units::DecisionId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Decisions that are remembered here; of more, the oldest are forgotten and stay as they are recorded. What they send begins
/// with a repeat all the same: the engine knows of them by itself.
const KEPT: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UndeliveredAnswers(Mutex<BTreeMap<DecisionId, Undelivered>>);

impl UndeliveredAnswers {
    /// All of them. Whoever tells of one holds it meanwhile, so that what is told of it comes in order.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<DecisionId, Undelivered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its caller is gone, whatever it comes to. To be called before whoever repeats the request can be answered; what is
    /// returned is held until it is told.
    pub(super) fn note(
        &self,
        decision: DecisionId,
        why: Undelivered,
    ) -> MutexGuard<'_, BTreeMap<DecisionId, Undelivered>> {
        let mut all = self.lock();
        all.insert(decision, why);
        if all.len() > KEPT {
            all.pop_first();
        }
        all
    }

    /// It came to no answer.
    pub(super) fn forget(&self, decision: DecisionId) {
        self.lock().remove(&decision);
    }
}
