//! Answers by request id: the same id and body get the same answer.

use super::attempts::Token;
use super::decision::Decision;

/// A committed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What was decided.
    pub decision: Decision,
    /// The attempt's token.
    pub token: Token,
    /// Of the request's body, by the caller's own stable hash.
    pub digest: u64,
}
