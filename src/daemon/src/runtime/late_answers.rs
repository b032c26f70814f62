//! What is told of answers that came too late: that nobody has them, and that a repeat fetched one.

use super::command::Command;
use super::daemon::Daemon;
use hintd_engine::records::Undelivered;
use hintd_engine::{Decision, Mode};
use hintd_model::units::DecisionId;

impl Daemon {
    /// A caller is gone while its decision's commit goes on, which may take as long as the disk: what YARN places meanwhile
    /// follows nothing.
    pub(super) fn caller_gone(&self, decision: DecisionId) {
        // Under the lock, so that a repeat is told of after it.
        let _all = self.0.undelivered.note(decision, Undelivered::HungUp);
        self.0.engine_handle.tell(Command::AnswerReached { decision, reached: false });
    }

    /// An answer was made, and recorded, whose caller is gone: unless a repeat has fetched it by now, it is late, also where its
    /// queue is off or in shadow. What shadow would have done is counted all the same.
    pub(super) fn made_late(&self, decision: &Decision) {
        self.metrics().add("answers_late", 1);
        if decision.mode == Mode::On {
            self.metrics().add("hints_late", decision.hinted());
        }
        let all = self.0.undelivered.lock();
        if let Some(why) = all.get(&decision.id) {
            self.0.recorder.delivery(decision.id, Some(*why));
        }
    }

    /// Its caller is told that it is refused for its deadline; whether an answer is made or not, nobody knows yet.
    pub(super) fn told_late(&self, decision: DecisionId) {
        let mut all = self.0.undelivered.lock();
        if let Some(why) = all.get_mut(&decision) {
            *why = Undelivered::Deadline;
            // It may have been made, and recorded, in the meantime.
            self.0.recorder.delivery(decision, Some(Undelivered::Deadline));
        }
    }

    /// A repeat was answered: somebody has the answer now.
    pub(super) fn delivered(&self, decision: DecisionId) {
        let mut all = self.0.undelivered.lock();
        // The engine is told of each: it may know of an answer that nobody has where that was forgotten here.
        self.0.engine_handle.tell(Command::AnswerReached { decision, reached: true });
        if all.remove(&decision).is_some() {
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
