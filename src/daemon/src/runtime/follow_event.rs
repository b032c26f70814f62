//! What Follow streams carry.

use super::outbox::Weigh;
use hintd_engine::{Answer, FollowBody};
use std::sync::Arc;

/// A message on a Follow stream.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowEvent {
    /// Why it is sent.
    pub cause: &'static str,
    /// What is sent.
    pub what: FollowPayload,
}

/// What a Follow stream carries.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowPayload {
    /// Hints for tasks that are to run again.
    Hints(Arc<Answer>),
    /// Everything else.
    Advice(FollowBody),
}

impl Weigh for FollowEvent {
    fn bytes(&self) -> usize {
        const ADVICE: usize = 512;
        match &self.what {
            FollowPayload::Hints(answer) => ADVICE + answer.decision.wire_bytes(),
            FollowPayload::Advice(FollowBody::Withdraw { leases, .. }) => ADVICE + size_of_val(leases.as_slice()),
            FollowPayload::Advice(_) => ADVICE,
        }
    }
}

impl FollowEvent {
    pub(super) const fn advice(cause: &'static str, body: FollowBody) -> Self {
        Self { cause, what: FollowPayload::Advice(body) }
    }
}
