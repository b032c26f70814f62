//! Datasets: paths, their blocks and where replicas lie.

use crate::units::{Bytes, HostName, NodeIdx};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Registered paths.
pub type Datasets = HashMap<Arc<str>, Arc<Dataset>>;

/// Nodes with a replica, ascending; HDFS keeps three by default.
pub type Replicas = SmallVec<[NodeIdx; 3]>;

/// One path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// As HDFS spells it.
    pub path: Arc<str>,
    /// In file order.
    pub blocks: Vec<Block>,
}

/// One block of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// HDFS block id.
    pub id: u64,
    /// Its length.
    pub bytes: Bytes,
    /// Where its replicas lie; empty: not known.
    pub replicas: Replicas,
}

/// One path as feeds and files tell it: replicas by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDataset {
    /// As HDFS spells it.
    pub path: Arc<str>,
    /// In file order.
    pub blocks: Vec<NamedBlock>,
}

/// One block, replicas by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBlock {
    /// HDFS block id.
    pub id: u64,
    /// Its length.
    pub bytes: Bytes,
    /// Hosts with a replica, in YARN's, HDFS's or the SDN's spelling; empty: not known.
    pub hosts: Vec<HostName>,
}

impl Dataset {
    /// Length of the whole path.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.blocks.iter().map(|block| block.bytes.0).sum())
    }
}

/// The datasets that `path` names: itself, or everything below it where it is a directory; ascending by path.
#[must_use]
pub fn below<'a>(datasets: &'a Datasets, path: &str) -> Vec<&'a Arc<Dataset>> {
    if let Some(exact) = datasets.get(path) {
        return vec![exact];
    }
    let directory = path.trim_end_matches('/');
    let inside = |candidate: &str| candidate.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let mut found: Vec<_> = datasets.values().filter(|dataset| inside(&dataset.path)).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_names_what_lies_below_it_and_not_its_namesakes() {
        let dataset = |path: &str| (Arc::from(path), Arc::new(Dataset { path: path.into(), blocks: vec![] }));
        let datasets: Datasets = ["/in/b", "/in/a", "/inner/c", "/in"].map(dataset).into_iter().collect();
        let paths = |path| below(&datasets, path).iter().map(|found| found.path.to_string()).collect::<Vec<_>>();
        assert_eq!(paths("/in/a"), ["/in/a"]);
        assert_eq!(paths("/in/"), ["/in/a", "/in/b"]);
        assert_eq!(paths("/in"), ["/in"], "an exact path is the path itself");
        assert!(paths("/none").is_empty());
    }
}
