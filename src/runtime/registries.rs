//! LOCAL placeholder for the model's registries.
use crate::cluster::{Change, Snapshot};
/// Placeholder.
#[derive(Debug, Default)]
pub struct Registries {}
impl Registries {
    /// Placeholder.
    pub fn dirty(&self) -> bool {
        false
    }
    /// Placeholder.
    pub fn drain(&self, _sink: &mut dyn FnMut(Change)) {}
    /// Placeholder.
    pub fn observe(&self, _snapshot: &Snapshot) {}
}
