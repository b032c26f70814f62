//! What operators set of dispatch.

use hintd_model::units::Micros;

/// Settings of dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchSettings {
    /// A task that waits for longer while the cluster has room for it gets an ordinary placement.
    pub max_wait: Micros,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        Self { max_wait: Micros::from_secs(5) }
    }
}
