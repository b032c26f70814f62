//! What operators set of plans.

use hintd_model::units::Micros;

/// Settings of plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSettings {
    /// How long after its planned end a task still waits for its planned racks before it goes anywhere.
    pub patience: Micros,
    /// Plans kept; beyond it the oldest goes that has expired or that the daemon made itself, but for the one in force and the
    /// one before it.
    pub kept_max: usize,
    /// Whether anything goes by the plan in force; else all is as if none were.
    pub follow: bool,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self { patience: Micros::from_secs(60), kept_max: 32, follow: true }
    }
}
