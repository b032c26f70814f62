//! Deciding, synchronous and pure: ledger, placer, monitor, history. `now` in; journal records and messages out.

pub mod decision;
pub mod journal;

pub use decision::{Decision, Hint, Mode, Refusal, TermValues};
