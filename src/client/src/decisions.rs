//! Whose the last decisions are, so that they can be explained to who was given them.

use crate::wire::v1;
use crate::wire::v1::follow_message::Advice;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Decisions whose application is remembered.
const NOTED: usize = 1_024;

/// Decisions and their applications, the oldest first. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decisions(Arc<Mutex<VecDeque<(String, String)>>>);

impl Decisions {
    /// Notes a decision; an empty id is none.
    pub(crate) fn note(&self, decision: &str, application_id: &str) {
        if decision.is_empty() {
            return;
        }
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= NOTED {
            noted.pop_front();
        }
        noted.push_back((decision.to_owned(), application_id.to_owned()));
    }

    /// Notes the decision of pushed hints.
    pub(crate) fn note_pushed(&self, message: &v1::FollowMessage, application_id: &str) {
        if let Some(Advice::Hints(hints)) = &message.advice {
            self.note(&hints.decision_id, application_id);
        }
    }

    /// The application of a decision.
    pub(crate) fn application_of(&self, decision: &str) -> Option<String> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = noted.iter().rev().find(|(known, _)| known == decision);
        found.map(|(_, application_id)| application_id.clone())
    }
}
