//! Datasets: paths, their blocks and where replicas lie.

use crate::units::{Bytes, HostName, NodeIdx};
use smallvec::SmallVec;
use std::borrow::Cow;
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

/// A path as HDFS keeps it, so that one place has one name however it is written: one `/` where several stand in a row,
/// and none at the end. What stands before it (`hdfs://ns1`) stays as it is.
///
/// `hdfs://ns1//in/` → `hdfs://ns1/in`.
#[must_use]
pub fn normal(path: &str) -> Cow<'_, str> {
    let start = match path.find("://").filter(|_| !path.starts_with('/')) {
        Some(at) => path[at + 3..].find('/').map_or(path.len(), |slash| at + 3 + slash),
        None => 0,
    };
    let (before, own) = path.split_at(start);
    if !own.contains("//") && (own.len() <= 1 || !own.ends_with('/')) {
        return Cow::Borrowed(path);
    }
    let parts = own.split('/').filter(|part| !part.is_empty());
    let mut text = before.to_owned();
    let first = if own.starts_with('/') { "/" } else { "" };
    for (at, part) in parts.enumerate() {
        text.push_str(if at == 0 { first } else { "/" });
        text.push_str(part);
    }
    if text.len() == before.len() {
        text.push('/');
    }
    Cow::Owned(text)
}

/// The same of a name that is shared, which it is still where nothing is to be changed.
#[must_use]
pub fn normal_name(path: &Arc<str>) -> Arc<str> {
    match normal(path) {
        Cow::Borrowed(_) => Arc::clone(path),
        Cow::Owned(text) => text.into(),
    }
}

/// The datasets that `path` names, however it is written: itself, or everything below it where it is a directory;
/// ascending by path.
#[must_use]
pub fn below<'a>(datasets: &'a Datasets, path: &str) -> Vec<&'a Arc<Dataset>> {
    let path = &*normal(path);
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
    fn a_path_has_one_name_however_it_is_written() {
        for (written, name) in [
            ("/in", "/in"),
            ("/in/", "/in"),
            ("//in", "/in"),
            ("/in//a///b/", "/in/a/b"),
            ("/", "/"),
            ("//", "/"),
            ("hdfs://ns1//in/", "hdfs://ns1/in"),
            ("hdfs:///in//a", "hdfs:///in/a"),
            ("hdfs://ns1/", "hdfs://ns1/"),
            ("hdfs://ns1//", "hdfs://ns1/"),
            ("hdfs://ns1", "hdfs://ns1"),
            ("/in/x://y//z", "/in/x:/y/z"),
            ("in/a/", "in/a"),
        ] {
            assert_eq!(normal(written), name, "{written}");
            assert_eq!(normal(name), name, "what is normal stays: {name}");
        }
        let name: Arc<str> = "/in/a".into();
        assert!(Arc::ptr_eq(&normal_name(&name), &name));
        assert_eq!(&*normal_name(&"/in//a".into()), "/in/a");
    }

    #[test]
    fn a_directory_names_what_lies_below_it_and_not_its_namesakes() {
        let dataset = |path: &str| (Arc::from(path), Arc::new(Dataset { path: path.into(), blocks: vec![] }));
        let datasets: Datasets = ["/in/b", "/in/a", "/inner/c", "/in"].map(dataset).into_iter().collect();
        let paths = |path| below(&datasets, path).iter().map(|found| found.path.to_string()).collect::<Vec<_>>();
        assert_eq!(paths("/in/a"), ["/in/a"]);
        assert_eq!(paths("//in//a/"), ["/in/a"]);
        for written in ["/in", "/in/", "//in"] {
            assert_eq!(paths(written), ["/in"], "an exact path is the path itself");
        }
        assert_eq!(paths("/inner/"), ["/inner/c"]);
        assert!(paths("/none").is_empty());
    }
}
