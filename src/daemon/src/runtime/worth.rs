//! What hints are worth in production: ends of applications to the engine, verdicts to the log, keys to operators.

use super::command::{Command, Reply};
use super::daemon::Daemon;
use super::engine_thread::EngineThread;
use hintd_engine::Refusal;
use hintd_engine::worth::book::{ComparedView, VerdictChange};
use hintd_engine::worth::compare::Verdict;
use hintd_model::units::{ApplicationId, Micros, Timestamp};

/// Something with the comparison of hinted and held-out applications.
pub(super) enum WorthCall {
    /// An application ended; `took`: so long after it was submitted, where it succeeded.
    Ended { application: ApplicationId, took: Option<Micros> },
    /// Applications whose end is awaited.
    Awaited(Reply<Vec<ApplicationId>>),
    /// Recurring keys that are compared.
    Keys(Reply<Vec<ComparedView>>),
    /// An operator lets a key have hints again; false: nothing is known of it.
    Allow { key: String, reply: Reply<Result<bool, Refusal>> },
}

impl Daemon {
    /// Takes in that an application has ended; `took`: so long after it was submitted, where it succeeded. Waits while the
    /// engine is behind.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn application_ended(&self, application: ApplicationId, took: Option<Micros>) -> Result<(), Refusal> {
        self.0.engine_handle.pass(Command::Worth(WorthCall::Ended { application, took })).await
    }

    /// Applications that take part in a comparison, and whose end is awaited, ascending.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn awaited_applications(&self) -> Result<Vec<ApplicationId>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Worth(WorthCall::Awaited(reply))).await
    }

    /// Recurring keys that are compared: stopped ones first, then by name.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn worth_of_keys(&self) -> Result<Vec<ComparedView>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Worth(WorthCall::Keys(reply))).await
    }

    /// Lets a recurring key have hints again, for an operator, and forgets what is known of it.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a key of which nothing is known; [`Refusal::Unavailable`].
    pub async fn allow_key(&self, key: String) -> Result<(), Refusal> {
        let name = key.clone();
        let known = self.0.engine_handle.ask(|reply| Command::Worth(WorthCall::Allow { key, reply })).await??;
        known.then_some(()).ok_or(Refusal::Unknown { what: "recurring key", name, nearest: None })
    }
}

impl EngineThread {
    pub(super) fn worth(&mut self, call: WorthCall, now: Timestamp) {
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
pub(super) fn log_verdict(change: &VerdictChange) {
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
