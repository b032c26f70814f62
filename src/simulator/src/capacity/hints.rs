//! Hints that ApplicationMasters hold: which task is asked for on which node, and since when YARN knows.

use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, NodeIdx, Timestamp};
use hintd_policy::dispatch::TaskRef;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A task's hint.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Hint {
    task: TaskRef,
    size: Resource,
    /// From when the ask that carries it stands at YARN.
    visible: Timestamp,
}

/// Hints that nobody has taken yet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Hints {
    by_node: Vec<Vec<Hint>>,
    /// By attempt, then group and task: where.
    by_task: BTreeMap<AttemptId, BTreeMap<(Arc<str>, u32), NodeIdx>>,
    /// In the order of their ends; hints that were taken are passed over.
    ends: VecDeque<(Timestamp, TaskRef, NodeIdx)>,
}

impl Hints {
    /// Where the task is hinted to go.
    pub(super) fn of(&self, task: &TaskRef) -> Option<NodeIdx> {
        self.by_task.get(&task.attempt)?.get(&(Arc::clone(&task.group), task.index)).copied()
    }

    /// How many tasks of a group are hinted.
    pub(super) fn count(&self, attempt: AttemptId, group: &Arc<str>) -> usize {
        let of = self.by_task.get(&attempt);
        of.map_or(0, |of| of.range((Arc::clone(group), 0)..=(Arc::clone(group), u32::MAX)).count())
    }

    /// What hints on a node will take of its room.
    pub(super) fn on(&self, node: NodeIdx) -> Resource {
        let hints = self.by_node.get(node.at()).into_iter().flatten();
        hints.fold(Resource::default(), |sum, hint| sum.plus(&hint.size))
    }

    /// Tasks hinted to a node whose asks stand at YARN by now.
    pub(super) fn visible(&self, node: NodeIdx, now: Timestamp) -> impl Iterator<Item = (&TaskRef, &Resource)> {
        let hints = self.by_node.get(node.at()).into_iter().flatten();
        hints.filter(move |hint| hint.visible <= now).map(|hint| (&hint.task, &hint.size))
    }

    /// A task that has no hint gets one.
    pub(super) fn give(&mut self, task: TaskRef, node: NodeIdx, size: Resource, visible: Timestamp, ends: Timestamp) {
        if node.at() >= self.by_node.len() {
            self.by_node.resize_with(node.at() + 1, Vec::new);
        }
        self.by_task.entry(task.attempt).or_default().insert((Arc::clone(&task.group), task.index), node);
        self.ends.push_back((ends, task.clone(), node));
        self.by_node[node.at()].push(Hint { task, size, visible });
    }

    /// Takes the task's hint away and says where it was.
    pub(super) fn take(&mut self, task: &TaskRef) -> Option<NodeIdx> {
        let of = self.by_task.get_mut(&task.attempt)?;
        let node = of.remove(&(Arc::clone(&task.group), task.index))?;
        if of.is_empty() {
            self.by_task.remove(&task.attempt);
        }
        self.by_node[node.at()].retain(|hint| hint.task != *task);
        Some(node)
    }

    /// Takes the next hint away whose time is over.
    pub(super) fn expire(&mut self, now: Timestamp) -> Option<(TaskRef, NodeIdx)> {
        while self.ends.front().is_some_and(|(ends, ..)| *ends <= now) {
            let (_, task, node) = self.ends.pop_front()?;
            // A later hint for the same task has an end of its own.
            if self.of(&task) == Some(node) {
                self.take(&task);
                return Some((task, node));
            }
        }
        None
    }

    /// Takes all hints of an attempt away.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        for (_, node) in self.by_task.remove(&attempt).unwrap_or_default() {
            self.by_node[node.at()].retain(|hint| hint.task.attempt != attempt);
        }
    }
}
