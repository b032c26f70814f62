//! Settings of rebalancing.

use hintd_model::units::Micros;

/// When moves of running containers are looked for, and how many may be proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebalanceSettings {
    /// Whether any are.
    pub enabled: bool,
    /// Whether what runs is looked at for its predicted performance, too, by policies that place by latency.
    pub latency: bool,
    /// Time between two rounds. A search that takes longer comes to nothing.
    pub every: Micros,
    /// Smallest gain worth proposing a move, in millionths: of the cost of the application's traffic before, or of the container's
    /// own where performance is predicted.
    pub gain_min_per_million: u32,
    /// Moves proposed in one round.
    pub moves_per_round: usize,
    /// Of which of one application.
    pub moves_per_application: usize,
    /// A container that was proposed to move, or that began where one was proposed to go, is left alone for so long.
    pub cool_down: Micros,
}

impl Default for RebalanceSettings {
    /// Off: a move costs a task its work so far, which only its application can weigh.
    fn default() -> Self {
        Self {
            enabled: false,
            latency: false,
            every: Micros::from_secs(60),
            gain_min_per_million: 100_000,
            moves_per_round: 16,
            moves_per_application: 4,
            cool_down: Micros::from_secs(600),
        }
    }
}

impl RebalanceSettings {
    /// The smallest gain as a share.
    #[must_use]
    pub fn gain_min(&self) -> f64 {
        f64::from(self.gain_min_per_million) / 1e6
    }

    /// For how long a container has been seen to run when a move for predicted performance is told at the earliest: the first
    /// round sees it, and the next finds the move again.
    #[must_use]
    pub const fn least_ran(&self) -> Micros {
        self.every
    }
}
