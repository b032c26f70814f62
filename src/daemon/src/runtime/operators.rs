//! What operators list and set on a running daemon.

use super::command::{Command, ListCall};
use super::daemon::Daemon;
use super::records::ListedRecords;
use crate::telemetry::logs::LogLevel;
use hintd_engine::records::RecordFilter;
use hintd_engine::{Followed, LeaseFilter, LeaseHeld, Refusal};
use hintd_model::units::{ApplicationId, DecisionId, Micros};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Refusals of one reason.
#[derive(Debug, Clone, Copy)]
pub struct RefusalCount {
    /// Its token.
    pub reason: &'static str,
    /// Requests since the start.
    pub requests: u64,
    /// Those of them that are recorded.
    pub recorded: u64,
}

impl Daemon {
    /// Recorded decisions and refusals, at most `most`.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn records_listed(&self, filter: RecordFilter, most: usize) -> Result<ListedRecords, Refusal> {
        self.0.recorder.listed(filter, most, self.0.clock.now()).await
    }

    /// Refusals since the start, by their tokens.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn refusals(&self) -> Result<Vec<RefusalCount>, Refusal> {
        let recorded = self.0.recorder.refusals().await?;
        // Counted after the records, so that no more of them are recorded than there were.
        let all = self.metrics().refused_reasons();
        let count =
            |(reason, requests)| RefusalCount { reason, requests, recorded: *recorded.get(reason).unwrap_or(&0) };
        Ok(all.into_iter().map(count).collect())
    }

    /// Live leases, newest first, and how many there are in all.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn leases_held(&self, filter: LeaseFilter) -> Result<(Vec<LeaseHeld>, usize), Refusal> {
        self.0.engine_handle.ask(|reply| Command::List(ListCall::Leases { filter, reply })).await
    }

    /// Applications with such a live lease.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn applications_with_leases(&self, filter: LeaseFilter) -> Result<BTreeSet<ApplicationId>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::List(ListCall::Applications { filter, reply })).await
    }

    /// How many containers of each of these decisions came to their host, in their order.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn followed(&self, decisions: Vec<DecisionId>) -> Result<Vec<Option<Followed>>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::List(ListCall::Followed { decisions, reply })).await
    }

    /// Lets operators set the process's log level. The first one set stays.
    pub fn set_log_level(&self, level: Arc<LogLevel>) {
        let _ = self.0.log_level.set(level);
    }

    /// The log level in force, and the one before; `set`: another one from now on.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for what is no level; [`Refusal::Unavailable`] where the process's logs are not the daemon's.
    pub fn log_level(&self, set: Option<&str>) -> Result<(String, String), Refusal> {
        let Some(level) = self.0.log_level.get() else {
            let message = "the logs of this process are not the daemon's".to_owned();
            return Err(Refusal::Unavailable { message, retry_after: Micros::from_secs(1) });
        };
        let before = level.current();
        if let Some(filter) = set {
            let invalid = |error: crate::telemetry::logs::LogError| Refusal::Invalid {
                field: "log.level".to_owned(),
                message: error.to_string(),
            };
            // By the filter that lets it through: a level that is quieter would hide who made it so.
            let said =
                || tracing::info!(%before, level = filter, "an operator set the log level, until the process ends");
            let loud = tracing::enabled!(tracing::Level::INFO);
            level.check(filter).map_err(invalid)?;
            if loud {
                said();
            }
            level.set(filter).map_err(invalid)?;
            if !loud {
                said();
            }
        }
        Ok((level.current(), before))
    }
}
