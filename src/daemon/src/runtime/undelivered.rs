//! Answers that nobody has: their caller was gone when they were made. A repeat of the request fetches them.
//!
//! Such a decision is no hint: YARN never saw it. So it is recorded as late, not counted in adherence, and not among the
//! requests that were answered, until somebody has it.

use super::command::Command;
use super::daemon::Daemon;
use hintd_engine::records::Undelivered;
use hintd_engine::{Decision, Mode};
use hintd_model::units::DecisionId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Decisions that are remembered here; of more, the oldest are forgotten and stay as they are recorded.
const KEPT: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UndeliveredAnswers(Mutex<BTreeMap<DecisionId, Undelivered>>);

impl UndeliveredAnswers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<DecisionId, Undelivered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its caller is gone, whatever it comes to. To be called before whoever repeats the request can be answered.
    pub(super) fn note(&self, decision: DecisionId, why: Undelivered) {
        let mut all = self.lock();
        all.insert(decision, why);
        if all.len() > KEPT {
            all.pop_first();
        }
    }

    /// It came to no answer.
    pub(super) fn forget(&self, decision: DecisionId) {
        self.lock().remove(&decision);
    }
}

impl Daemon {
    /// An answer was made, and recorded, whose caller is gone: unless a repeat has fetched it by now, it is late.
    pub(super) fn made_late(&self, decision: &Decision) {
        self.metrics().add("answers_late", 1);
        if decision.mode == Mode::On {
            self.metrics().add("hints_late", decision.hinted());
        }
        // Under the lock, so that a repeat is told of after it.
        let all = self.0.undelivered.lock();
        if let Some(why) = all.get(&decision.id) {
            self.0.engine_handle.tell(Command::AnswerReached { decision: decision.id, reached: false });
            self.0.recorder.delivery(decision.id, Some(*why));
        }
    }

    /// A repeat was answered: somebody has the answer now.
    pub(super) fn delivered(&self, decision: DecisionId) {
        let mut all = self.0.undelivered.lock();
        if all.remove(&decision).is_some() {
            self.0.engine_handle.tell(Command::AnswerReached { decision, reached: true });
            self.0.recorder.delivery(decision, None);
            self.metrics().add("requests_answered", 1);
        }
    }

    /// Why nobody has a decision's answer; `None`: somebody has, or it was too long ago.
    #[must_use]
    pub fn undelivered(&self, decision: DecisionId) -> Option<Undelivered> {
        self.0.undelivered.lock().get(&decision).copied()
    }
}
