//! Ids of decisions and leases: the second of the start above a counter, so that those of one process never meet those of
//! another.

use super::dispatching::PUSHED;
use super::proof::Token;
use hintd_model::units::{DecisionId, LeaseId};

/// The lowest ids that were never given.
#[derive(Debug)]
pub(crate) struct Ids {
    decision: u64,
    lease: u64,
}

impl Default for Ids {
    fn default() -> Self {
        Self { decision: 1, lease: 1 }
    }
}

impl Ids {
    /// Begins with the second of a start.
    pub(crate) const fn begin(&mut self, second: u32) {
        self.decision = (second as u64) << 32 | 1;
        self.lease = self.decision;
    }

    /// The lowest decision id that was never given.
    pub(crate) const fn next_decision(&self) -> DecisionId {
        DecisionId::of(self.decision)
    }

    /// The id of a decision; `drawn`: its caller has drawn one.
    pub(crate) fn decision(&mut self, drawn: Option<DecisionId>) -> DecisionId {
        let id = drawn.unwrap_or(DecisionId::of(self.decision));
        self.decision = self.decision.max(id.number + 1);
        id
    }

    /// The id of the decision that is pushed as number `number`: above all that requests draw. Its salt follows from the
    /// attempt's token, which nobody has who may not know the id.
    pub(crate) fn pushed(&self, number: u64, token: &Token) -> DecisionId {
        let number = self.decision >> 32 << 32 | PUSHED | number;
        DecisionId { number, salt: salted(token.0.as_bytes(), number) }
    }

    /// A new lease's id.
    pub(crate) const fn lease(&mut self) -> LeaseId {
        let id = LeaseId(self.lease);
        self.lease += 1;
        id
    }

    /// That decision's id was given before the start.
    pub(crate) fn gave_decision(&mut self, id: DecisionId) {
        self.decision = self.decision.max(id.number.saturating_add(1));
    }

    /// That lease's id was given before the start.
    pub(crate) fn gave_lease(&mut self, id: LeaseId) {
        self.lease = self.lease.max(id.0.saturating_add(1));
    }
}

/// FNV-1a of a secret and a number: whoever sees the salt is told the decision, and knows the secret.
fn salted(secret: &[u8], number: u64) -> u64 {
    let bytes = secret.iter().copied().chain(number.to_le_bytes());
    bytes
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
        .max(1)
}
