//! Application attempts: their tokens, and the requests remembered for placing lost tasks anew.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What an attempt shows to release leases and to follow. Drawn at random by the runtime.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub Arc<str>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)") // a secret does not go to logs
    }
}
