//! Datasets of the model: replicas arrive by name, in whoever's spelling, and wait for the node that claims it.

use super::super::dataset::{Block, Dataset, Datasets, NamedDataset, Replicas};
use super::super::node::NodeStatics;
use super::nodes::Renamed;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Registered datasets by names and resolved.
#[derive(Debug, Default)]
pub(super) struct NamedDatasets {
    pub(super) resolved: Arc<Datasets>,
    named: BTreeMap<Arc<str>, Arc<NamedDataset>>,
    /// Paths by the name that no node claims.
    waiting: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The same the other way round.
    waits_for: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl NamedDatasets {
    pub(super) fn put(&mut self, dataset: Arc<NamedDataset>, nodes: &NodeStatics) {
        self.named.insert(Arc::clone(&dataset.path), Arc::clone(&dataset));
        self.resolve(&dataset, nodes);
    }

    pub(super) fn remove(&mut self, path: &Arc<str>) {
        if self.named.remove(path).is_some() {
            self.stop_waiting(path);
            Arc::make_mut(&mut self.resolved).remove(path);
        }
    }

    /// Resolves again what names that mean something else now may touch.
    pub(super) fn renamed(&mut self, renamed: &Renamed, nodes: &NodeStatics) {
        let again: Vec<Arc<NamedDataset>> = if renamed.lost {
            self.named.values().cloned().collect()
        } else {
            let paths: BTreeSet<_> = renamed.added.iter().filter_map(|name| self.waiting.get(name)).flatten().collect();
            paths.into_iter().map(|path| Arc::clone(&self.named[path])).collect()
        };
        for dataset in again {
            self.resolve(&dataset, nodes);
        }
    }

    /// The first names that no node claims, and how many there are.
    pub(super) fn unknown(&self, first: usize) -> (Vec<String>, u64) {
        (self.waiting.keys().take(first).map(ToString::to_string).collect(), self.waiting.len() as u64)
    }

    fn resolve(&mut self, dataset: &NamedDataset, nodes: &NodeStatics) {
        self.stop_waiting(&dataset.path);
        let mut unknown = BTreeSet::new();
        let blocks = dataset.blocks.iter().map(|block| {
            let mut replicas = Replicas::new();
            for host in &block.hosts {
                match nodes.find(host.as_str()) {
                    Some(node) => replicas.push(node),
                    None => _ = unknown.insert(Arc::clone(&host.0)),
                }
            }
            replicas.sort_unstable();
            replicas.dedup();
            Block { id: block.id, bytes: block.bytes, replicas }
        });
        let resolved = Dataset { path: Arc::clone(&dataset.path), blocks: blocks.collect() };
        if self.resolved.get(&dataset.path).is_none_or(|known| **known != resolved) {
            Arc::make_mut(&mut self.resolved).insert(Arc::clone(&dataset.path), Arc::new(resolved));
        }
        for name in &unknown {
            self.waiting.entry(Arc::clone(name)).or_default().insert(Arc::clone(&dataset.path));
        }
        if !unknown.is_empty() {
            self.waits_for.insert(Arc::clone(&dataset.path), unknown);
        }
    }

    fn stop_waiting(&mut self, path: &Arc<str>) {
        for name in self.waits_for.remove(path).into_iter().flatten() {
            if let Some(paths) = self.waiting.get_mut(&name) {
                paths.remove(path);
                if paths.is_empty() {
                    self.waiting.remove(&name);
                }
            }
        }
    }
}
