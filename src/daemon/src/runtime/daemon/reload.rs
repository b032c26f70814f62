//! Reading the configuration anew while the daemon runs.

use super::super::command::Command;
use super::super::options::{Reloaded, Settings};
use super::Daemon;
use crate::telemetry::metrics::ReloadResult;
use hintd_engine::Refusal;
use hintd_model::text::Shown;
use std::sync::{Arc, PoisonError};

/// Letters of a refusal that the status repeats; the log has all.
const TOLD_MAX: usize = 2_000;

/// What the last reloads came to.
#[derive(Debug, Default)]
pub(in crate::runtime) struct LastReload {
    /// What the last one that was taken changed.
    changed: Vec<String>,
    /// Keys that waited for a restart, and which it took back.
    reverted: Vec<String>,
    /// Why the last one was refused, where none was taken since.
    refused: Option<String>,
}

impl Daemon {
    /// Reads the configuration anew: all of it takes effect, or nothing. Where the file says what is in force already,
    /// the answer is that of the reload that put it in force: the file's watcher, a signal and a call may all see one
    /// change, and whoever comes second is told the same. So with a refusal: it is logged and counted here, once,
    /// whoever asks and however many do.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] with every problem of the file, by line and key.
    pub async fn reload(&self) -> Result<Reloaded, Refusal> {
        let mut last = self.0.reloading.lock().await;
        let reloaded = self.reload_file(&mut last).await;
        // An engine that is too busy says nothing of the file.
        let of_the_file = |refusal: &&Refusal| matches!(refusal, Refusal::Invalid { .. });
        let refused = reloaded.as_ref().err().filter(of_the_file).map(ToString::to_string);
        match &refused {
            None => {}
            Some(refusal) if last.refused == refused => tracing::info!(refusal, "the configuration is still refused"),
            Some(refusal) => {
                self.metrics().reloaded(ReloadResult::Refused);
                tracing::error!(refusal, "the configuration stays as it was");
            }
        }
        self.say_refused(refused.as_deref());
        last.refused = refused;
        if let Ok(reloaded) = &reloaded {
            self.metrics().restart_keys(reloaded.needs_restart.len());
            self.0.restart_keys.store(Arc::new(reloaded.needs_restart.clone()));
        }
        reloaded
    }

    /// What is on disk and not in force is said as long as it is so, not in the log alone.
    fn say_refused(&self, refused: Option<&str>) {
        let said = refused.map(|refusal| told(&Shown(refusal).to_string()));
        *self.0.config_refused.lock().unwrap_or_else(PoisonError::into_inner) = said.map(Arc::from);
    }

    /// Why the configuration on disk, its network file included, is refused; `None`: it is in force, or was not looked at.
    #[must_use]
    pub fn config_refused(&self) -> Option<Arc<str>> {
        self.0.config_refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keys that differ on disk from those of the start and need a restart, as the last reload that was not refused found them.
    #[must_use]
    pub fn restart_keys(&self) -> Arc<Vec<String>> {
        self.0.restart_keys.load_full()
    }

    /// Keys that the last reload changed; one that runs is waited for.
    pub async fn last_changed(&self) -> Vec<String> {
        self.0.reloading.lock().await.changed.clone()
    }

    async fn reload_file(&self, last: &mut LastReload) -> Result<Reloaded, Refusal> {
        let invalid = |message: String| Refusal::Invalid { field: "configuration".to_owned(), message };
        let Some(hook) = self.0.reload.clone() else {
            return Err(invalid("this daemon was started without a file".to_owned()));
        };
        let current = self.settings();
        let read_and_prepare = move || -> Result<Reloaded, String> {
            let mut reloaded = (*hook)(&current)?;
            reloaded.settings.keep_policies(&current);
            if !reloaded.changed.is_empty() {
                reloaded.settings.prepare_policies();
            }
            Ok(reloaded)
        };
        let read = tokio::task::spawn_blocking(read_and_prepare).await;
        let read = read.unwrap_or_else(|_| Err("reading it ended in a panic".to_owned()));
        let mut reloaded = read.map_err(invalid)?;
        if reloaded.changed.is_empty() {
            reloaded.settings = Settings::clone(&self.settings());
            if reloaded.reverted.is_empty() {
                reloaded.changed.clone_from(&last.changed);
                reloaded.reverted.clone_from(&last.reverted);
            } else {
                (reloaded.taken)();
                (last.changed, last.reverted) = (Vec::new(), reloaded.reverted.clone());
                tracing::info!(reverted = ?reloaded.reverted, "keys that wait for a restart are again as they are in force");
            }
            self.metrics().reloaded(ReloadResult::Unchanged);
            return Ok(reloaded);
        }
        self.check_network(reloaded.settings.network.clone()).await?;
        reloaded.settings.generation = self.0.settings.load().generation + 1;
        let settings = Box::new(reloaded.settings.engine.clone());
        let policies = reloaded.settings.policies.built.clone();
        let records = settings.records.clone();
        self.0.engine_handle.ask(|reply| Command::Reload { settings, policies, reply }).await??;
        (reloaded.taken)();
        self.metrics().reloaded(ReloadResult::Applied);
        self.0.recorder.reload(records).await;
        self.0.shared.follow.store(Arc::new(reloaded.settings.follow.clone()));
        self.0.settings.store(Arc::new(reloaded.settings.clone()));
        let daemon = self.clone();
        let _ = tokio::task::spawn_blocking(move || daemon.follow_network()).await; // else the next look does it
        (last.changed, last.reverted) = (reloaded.changed.clone(), reloaded.reverted.clone());
        reloaded.settings.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
        tracing::info!(generation = reloaded.settings.generation, changed = ?reloaded.changed, "configuration reloaded");
        Ok(reloaded)
    }
}

/// The beginning of what is long.
fn told(text: &str) -> String {
    match text.char_indices().nth(TOLD_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
