//! Answers as they are kept. One of thousands of hints takes a tenth of a second to unpack in a debug build, so whoever asks
//! for it does that, and not the engine, for which everybody else waits.

use super::adherence::{DecisionOutcome, KeptOutcome};
use super::answer::Answer;
use super::ended_leases::{EndedLeases, end_of};
use super::packed::unpack;
use super::results::{Explained, ExplainedLease};
use hintd_model::units::{DecisionId, LeaseId};
use std::sync::Arc;

/// A committed answer, packed; a copy costs nothing.
#[derive(Debug, Clone)]
pub struct PackedAnswer {
    decision: DecisionId,
    packed: Arc<[u8]>,
}

impl PackedAnswer {
    pub(crate) fn new(decision: DecisionId, packed: Arc<[u8]>) -> Self {
        Self { decision, packed }
    }

    /// Its decision.
    #[must_use]
    pub const fn decision(&self) -> DecisionId {
        self.decision
    }

    /// The answer; takes time by its hints.
    ///
    /// # Panics
    /// Never: this process packed it.
    #[must_use]
    pub fn unpack(&self) -> Arc<Answer> {
        Arc::new(unpack(&self.packed).expect("it was packed by this process"))
    }
}

/// A decision whose answer is kept and what became of its leases, packed.
#[derive(Debug)]
pub struct PackedExplained {
    pub(crate) answer: PackedAnswer,
    /// Leases that run, ascending, and whether their containers are confirmed.
    pub(crate) live: Vec<(LeaseId, bool)>,
    pub(crate) ended: Vec<EndedLeases>,
    pub(crate) outcome: Option<KeptOutcome>,
}

impl PackedExplained {
    /// The answer.
    #[must_use]
    pub const fn answer(&self) -> &PackedAnswer {
        &self.answer
    }

    /// What became of the leases of `answer`, which is this one unpacked; in the order of its hints.
    #[must_use]
    pub fn leases(&self, answer: &Answer) -> Vec<ExplainedLease> {
        let state = |id: LeaseId| match self.live.binary_search_by_key(&id, |&(live, _)| live) {
            Ok(at) if self.live[at].1 => "confirmed",
            Ok(_) => "held",
            Err(_) => end_of(&self.ended, id).map_or("ended", |end| end.as_str()),
        };
        let hints = answer.decision.hints.iter();
        let leases = hints.flat_map(|hint| hint.leases.iter().map(move |&id| (id, &hint.host)));
        leases.map(|(id, host)| ExplainedLease { id, host: host.clone(), state: state(id) }).collect()
    }

    /// All of it; takes time by its hints.
    #[must_use]
    pub fn unpack(self) -> Explained {
        let answer = self.answer.unpack();
        let leases = self.leases(&answer);
        let outcome = self.outcome.and_then(|kept| DecisionOutcome::of_kept(kept, &answer.decision));
        Explained { answer, leases, outcome }
    }
}
