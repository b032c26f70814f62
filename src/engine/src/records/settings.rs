//! How much of decisions is kept.

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
