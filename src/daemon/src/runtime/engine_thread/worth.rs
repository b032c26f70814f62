//! What hints are worth in production: ends of applications to the engine, verdicts to the log.

use super::super::command::WorthCall;
use super::EngineThread;
use hintd_engine::worth::book::{ComparedView, VerdictChange};
use hintd_engine::worth::compare::Verdict;
use hintd_model::units::Timestamp;

impl EngineThread {
    pub(in crate::runtime) fn worth(&mut self, call: WorthCall, now: Timestamp) {
        match call {
            WorthCall::Ended { application, took } => {
                self.engine.application_ended(application, took, now);
                self.state_changed();
            }
            WorthCall::Awaited(reply) => drop(reply.send(self.engine.awaited_applications())),
            WorthCall::Keys(reply) => drop(reply.send(self.engine.worth_of_keys())),
            WorthCall::Allow { key, reply } => {
                let known = self.engine.allow_key(&key);
                self.publish(); // whoever hears that it is allowed finds it so
                self.effects(None, Box::new(move |result| drop(reply.send(result.map(|()| known)))));
            }
        }
    }
}

/// Says that a verdict is another one.
pub(in crate::runtime) fn log_verdict(change: &VerdictChange) {
    let VerdictChange { scope, now } = change;
    let (scope, name, verdict) = (scope.as_str(), &now.name, now.verdict.as_str());
    let ComparedView { hinted, held_out, ratio, .. } = now;
    let [ratio, low, high] = ratio.map_or([f64::NAN; 3], |ratio| [ratio.ratio, ratio.low, ratio.high]);
    match (now.stopped, now.verdict) {
        (Some(_), Verdict::Slower) => tracing::warn!(
            key = %name, ratio, low, high, hinted, held_out,
            "hinted runs are slower than held-out ones: the key gets no hints until an operator allows it (hintctl holdout allow)"
        ),
        (_, Verdict::Slower) => {
            tracing::warn!(scope, %name, verdict, ratio, low, high, hinted, held_out, "what hints are worth has changed");
        }
        _ => {
            tracing::info!(scope, %name, verdict, ratio, low, high, hinted, held_out, "what hints are worth has changed")
        }
    }
}
