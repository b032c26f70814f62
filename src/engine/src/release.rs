//! When running containers are expected to end: when they were first seen, and how long their group's tasks ran before.

use super::generation::{Release, Releases};
use hintd_model::units::{ContainerId, NodeIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Expected ends of known containers; those of unknown jobs are not in it.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    by_node: BTreeMap<NodeIdx, BTreeMap<ContainerId, Release>>,
    stale: BTreeSet<NodeIdx>,
    view: Releases,
}

impl Expected {
    pub(crate) fn insert(&mut self, node: NodeIdx, container: ContainerId, release: Release) {
        self.by_node.entry(node).or_default().insert(container, release);
        self.stale.insert(node);
    }

    pub(crate) fn remove(&mut self, node: NodeIdx, container: ContainerId) {
        let Some(containers) = self.by_node.get_mut(&node) else { return };
        if containers.remove(&container).is_some() {
            self.stale.insert(node);
            if containers.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }

    /// Ends by node, soonest first.
    pub(crate) fn view(&mut self) -> Releases {
        for node in std::mem::take(&mut self.stale) {
            let mut ends: Vec<Release> =
                self.by_node.get(&node).into_iter().flat_map(|of| of.values()).copied().collect();
            ends.sort_by_key(|release| release.at);
            self.view.set(&node, (!ends.is_empty()).then(|| Arc::from(ends)));
        }
        self.view.clone()
    }
}
