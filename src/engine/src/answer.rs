//! A committed answer.

use super::decision::Decision;
use super::journal::{Op, Table, row_value, text_key};
use super::proof::{HeldBy, NonceHash, Proof, Token};
use super::refusal::Refusal;
use hintd_model::units::LeaseId;
use serde::{Deserialize, Serialize};

/// Most rows have no more bytes.
const ROW_BYTES: usize = 2_048;

/// A committed answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What was decided.
    pub decision: Decision,
    /// The attempt's token.
    pub token: Token,
    /// Of the attempt's nonce; `None`: its client knows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<NonceHash>,
    /// Of the request's body, by the caller's own stable hash.
    pub digest: u64,
}

impl Answer {
    /// Whether who shows `proof` may see it. `legacy`: attempts whose clients know no nonces may show nothing.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`].
    pub fn may_be_seen_by(&self, proof: &Proof, legacy: bool) -> Result<(), Refusal> {
        let held = HeldBy { token: &self.token, nonce: self.nonce.as_ref() };
        held.check(self.decision.attempt, proof, legacy)
    }

    /// Leases it granted.
    pub fn leases(&self) -> impl Iterator<Item = LeaseId> {
        self.decision.hints.iter().flat_map(|hint| &hint.leases).copied()
    }

    /// Its row in the journal; also what [`super::answers::Answers`] packs, so that it is written once.
    pub(crate) fn row(&self) -> Vec<u8> {
        row_value(self, ROW_BYTES)
    }

    /// Writes the row that [`Self::row`] made.
    pub(crate) fn put(&self, row: Vec<u8>) -> Op {
        Op::put(Table::Answers, text_key(self.decision.request.as_str()), row)
    }
}
