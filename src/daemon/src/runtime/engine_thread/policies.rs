//! Policies that learnt, on the engine's thread.

use super::EngineThread;
use hintd_model::units::Timestamp;
use hintd_policy::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;

impl EngineThread {
    /// Dispatchers go by these policies from now on.
    pub(in crate::runtime) fn take_policies(
        &mut self,
        policies: &BTreeMap<&'static str, Arc<dyn Policy>>,
        now: Timestamp,
    ) {
        self.engine.redispatch(&|name| policies.get(name).cloned(), now);
        self.state_changed();
    }
}
