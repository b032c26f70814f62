//! Running traffic with the index of it that policies make at their first look, for those after them.

use crate::flow_index::FlowIndex;
use hintd_model::cluster::{RunningFlows, Topology};
use hintd_model::network::Network;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Running traffic of one moment; reads like the [`RunningFlows`] that it is of. Its index is made once, by whoever needs
/// it first. A copy shares the traffic and begins without an index, and so does what was changed.
#[derive(Default)]
pub struct IndexedFlows {
    flows: Arc<RunningFlows>,
    index: OnceLock<KeptIndex>,
}

/// The index, and the topology that it was made for.
struct KeptIndex {
    topology: Arc<Topology>,
    index: FlowIndex,
}

impl IndexedFlows {
    /// For changes: what was worked out of the flows before is not theirs any more.
    pub fn change(&mut self) -> &mut RunningFlows {
        self.index.take();
        Arc::make_mut(&mut self.flows)
    }

    /// Everything that runs over that network, ready for a new job.
    pub(crate) fn index(&self, network: &Network, topology: &Arc<Topology>) -> FlowIndex {
        let build = || FlowIndex::of(network, topology, &self.flows);
        let kept = self.index.get_or_init(|| KeptIndex { topology: Arc::clone(topology), index: build() });
        if Arc::ptr_eq(&kept.topology, topology) { kept.index.clone() } else { build() }
    }
}

impl From<RunningFlows> for IndexedFlows {
    fn from(flows: RunningFlows) -> Self {
        Self { flows: Arc::new(flows), index: OnceLock::new() }
    }
}

impl Deref for IndexedFlows {
    type Target = RunningFlows;

    fn deref(&self) -> &RunningFlows {
        &self.flows
    }
}

impl Clone for IndexedFlows {
    fn clone(&self) -> Self {
        Self { flows: Arc::clone(&self.flows), index: OnceLock::new() }
    }
}

impl std::fmt::Debug for IndexedFlows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.flows.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_the_traffic_until_one_of_them_is_changed() {
        let mut first = IndexedFlows::default();
        let copy = first.clone();
        assert!(std::ptr::eq(&raw const *first, &raw const *copy), "records keep one a generation");
        let _ = first.change();
        assert!(!std::ptr::eq(&raw const *first, &raw const *copy), "the copy stays as it was");
    }
}
