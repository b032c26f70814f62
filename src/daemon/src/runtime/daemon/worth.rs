//! What hints are worth in production: ends of applications to the engine, keys to operators.

use super::super::command::{Command, WorthCall};
use super::Daemon;
use hintd_engine::Refusal;
use hintd_engine::worth::book::ComparedView;
use hintd_model::units::{ApplicationId, Micros};

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
