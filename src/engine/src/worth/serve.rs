//! The engine's calls: applications that ended, what is known, and keys that an operator allows.

use super::WorthSettings;
use super::book::{ComparedView, Worth, WorthView};
use crate::effects::{Counter, Effect, Output};
use crate::engine::Engine;
use hintd_model::units::{ApplicationId, Micros, Timestamp};
use std::sync::Arc;

/// Completion times of hinted and held-out applications. Writes what is known of them, and what is to be journalled, told
/// and counted; reads the settings.
pub(crate) struct WorthHandler<'e> {
    pub(crate) worth: &'e mut Worth,
    pub(crate) settings: &'e WorthSettings,
    pub(crate) out: &'e mut Output,
}

impl WorthHandler<'_> {
    fn ended(&mut self, application: ApplicationId, took: Option<Micros>, now: Timestamp) {
        let ended = self.worth.ended(application, took, self.settings, now);
        let effects = &mut self.out.effects;
        effects.journal.extend(ended.ops);
        effects.count(Counter::CompletionsCompared, u64::from(ended.counted));
        for change in ended.changes {
            self.out.changed = true; // requests are to see which keys are stopped
            effects.out.push(Effect::Verdict(Arc::new(change)));
        }
    }

    fn allow(&mut self, key: &str) -> bool {
        let row = self.worth.allow(key);
        let known = row.is_some();
        self.out.effects.journal.extend(row);
        self.out.changed |= known;
        known
    }
}

impl Engine {
    /// An application has ended, as a server says; `took`: so long after it was submitted, where it succeeded. One that
    /// takes no part in a comparison, or whose end was told before, counts for nothing.
    pub fn application_ended(&mut self, application: ApplicationId, took: Option<Micros>, now: Timestamp) {
        self.worth_handler().ended(application, took, now);
    }

    /// Lets a recurring key have hints again, and forgets what is known of it; false: nothing is known of it.
    pub fn allow_key(&mut self, key: &str) -> bool {
        self.worth_handler().allow(key)
    }

    /// Applications that take part in a comparison, and whose end is awaited, ascending.
    #[must_use]
    pub fn awaited_applications(&self) -> Vec<ApplicationId> {
        self.worth().awaited().collect()
    }

    /// What hints are worth, by queue.
    #[must_use]
    pub fn worth_view(&self) -> WorthView {
        self.worth().view(&self.settings().worth)
    }

    /// The same by recurring key: stopped ones first, then by name.
    #[must_use]
    pub fn worth_of_keys(&self) -> Vec<ComparedView> {
        self.worth().keys()
    }
}
