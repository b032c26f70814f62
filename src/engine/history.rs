//! What finished groups of recurring jobs did: durations, bytes, counts, edges and paths, by key.

use super::generation::Shards;
use crate::cluster::EdgePattern;
use crate::units::{Bytes, Micros, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// History by recurring-job key, as one generation sees it.
pub type HistoryView = Shards<Arc<str>, Arc<JobHistory>>;

/// What is known of one recurring job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobHistory {
    /// Its groups by name.
    pub groups: BTreeMap<Arc<str>, GroupHistory>,
    /// Traffic between groups, as the last run that named any said or did.
    pub edges: Vec<EdgeHistory>,
    /// Input paths of the last run that named any.
    pub input_paths: Vec<Arc<str>>,
    /// Runs that came to their end.
    pub runs: u64,
    /// When it was last heard of.
    pub updated: Timestamp,
}

/// Finished tasks of one group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupHistory {
    /// The last finished tasks, oldest first.
    pub samples: VecDeque<Sample>,
    /// Tasks finished, ever.
    pub finished: u64,
    /// Containers that its last request asked for.
    pub count: u32,
}

/// One finished task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// How long it ran.
    pub duration: Micros,
    /// What it read.
    pub input: Bytes,
    /// What it wrote.
    pub output: Bytes,
}

/// Traffic between two groups, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeHistory {
    /// Sender.
    pub from: Arc<str>,
    /// Receiver.
    pub to: Arc<str>,
    /// Who talks to whom.
    pub pattern: EdgePattern,
    /// All bytes of the edge.
    pub bytes: Bytes,
}
