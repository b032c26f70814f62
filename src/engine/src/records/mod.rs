//! Records: what each decision was made of, kept so that it can be made again, byte by byte, or by another policy.
//!
//! A decision is a function of what it read. That is kept, as the compiler of problems reads it: the request, the
//! columns of nodes and what was leased (from which candidates and rulings-out follow), paths, history and running
//! flows as far as it read them, the network, the policy with its parameters, the seed and the steps it might take, at
//! which look the probe stopped it, and of a dispatcher its State. What versions share is kept and counted once.
//!
//! # Code map
//! - `columns`: the columns of nodes, in pieces; `frame`: all that decisions of one generation read.
//! - `facts`: what each read of its own, and rounds of several. `record`: one decision; `replay`: made again, or by another policy; `predict`: what its containers' performance was predicted as.
//! - `store`: all of them; `shares`: whose go first; `tally`, `memory_size`: their bytes.

mod columns;
mod facts;
mod frame;
pub(crate) mod memory_size;
mod predict;
mod record;
mod replay;
mod shares;
mod store;
mod tally;

pub use facts::{RoundInputs, RoundSeat};
pub use predict::{PredictedGroup, PredictedPerformance, PredictedPlace};
pub use record::{DecidedRequest, Probe, Record, RequestOutcome};
pub use replay::{Difference, ObjectiveComparison, PolicyComparison, ReplayResult};
pub use store::{Kept, RecordFilter, Records};

use hintd_model::units::DecisionId;

/// What is kept of decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSettings {
    /// Of a million decisions so many are recorded; which ones hangs on their ids alone.
    pub per_million: u32,
    /// Bytes of all records together. Refusals have a quarter at most where there is no room for all; then the oldest go of the
    /// application that has most, of the user who has most, of the queue that has most.
    pub bytes: usize,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self { per_million: 1_000_000, bytes: 64 << 20 }
    }
}

impl RecordSettings {
    /// Whether a decision is to be recorded.
    #[must_use]
    pub const fn takes(&self, decision: DecisionId) -> bool {
        // The finaliser of SplitMix64: ids that follow each other fall apart.
        let mixed = decision.number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.bytes > 0 && (mixed ^ (mixed >> 27)) % 1_000_000 < self.per_million as u64
    }
}
