//! What an ApplicationMaster asks for: groups of tasks, edges between them, input, constraints.

use super::resource::NamedResource;
use crate::units::{AttemptId, Bytes, GroupIdx, HostName, QueueName, RackPath, RequestId, SchedulerKey};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One request for hints, checked for shape; names are resolved against a snapshot later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HintRequest {
    /// The caller's id; answers are idempotent by it.
    pub id: RequestId,
    /// Who asks.
    pub attempt: AttemptId,
    /// Its queue; empty: `default`.
    pub queue: QueueName,
    /// Its user.
    pub user: Arc<str>,
    /// `mapreduce`, `spark`, `flink`, …; empty: unknown.
    pub framework: Arc<str>,
    /// At least one.
    pub groups: Vec<TaskGroup>,
    /// Traffic between groups.
    pub edges: Vec<GroupEdge>,
    /// The application's input; a group's own paths win for that group.
    pub input_paths: Vec<Arc<str>>,
    /// Names the recurring job, where it is one.
    pub recurring_key: Option<Arc<str>>,
    /// For every group.
    pub constraints: Constraints,
    /// Overrides the configured policy.
    pub policy: Option<Arc<str>>,
    /// Seed of the search; drawn from the request id where absent.
    pub seed: Option<u64>,
    /// All or as many as fit.
    pub gang: Gang,
    /// What a full cluster answers.
    pub when_full: WhenFull,
    /// Where the ApplicationMaster runs already.
    pub am_host: Option<HostName>,
    /// The ask table as it came; the replacement table is made from it.
    pub asks: Vec<Ask>,
    /// Of a request that places lost containers anew: their traffic with those of the original request that stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<SurvivorEdge>,
}

/// Traffic of a group that is placed anew with containers that stay where they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurvivorEdge {
    /// The group, by its place in the request.
    pub group: GroupIdx,
    /// Group of those that stay, by its name in the original request; it may be the same one.
    pub with: Arc<str>,
    /// Which way it goes.
    pub way: Way,
    /// All bytes of the edge, of one way.
    pub bytes: Bytes,
}

/// Which way a group's traffic with containers that are there already goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// To the group.
    In,
    /// From the group.
    Out,
    /// As much either way: containers of one kind.
    Both,
}

/// One row of YARN's ask table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Scheduler key.
    pub key: SchedulerKey,
    /// Host, rack or `*`.
    pub resource_name: Arc<str>,
    /// Size of each container.
    pub size: NamedResource,
    /// Absolute count.
    pub count: u32,
    /// May the scheduler go elsewhere?
    pub relax_locality: bool,
    /// Node label expression; empty: none.
    pub label: Arc<str>,
}

/// Like tasks: same size, same priority, same label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskGroup {
    /// Unique in the request.
    pub name: Arc<str>,
    /// `map`, `reduce`, `worker`, …; empty: unknown.
    pub role: Arc<str>,
    /// Containers wanted, at least 1.
    pub count: u32,
    /// Containers of the group in all, where it is asked for in parts: these, those asked for before, and those that will be
    /// asked for later. All are placed as one. 0: not said.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub whole: u32,
    /// Size of each.
    pub size: NamedResource,
    /// Scheduler key.
    pub key: SchedulerKey,
    /// Node label; `None`: nodes without labels.
    pub label: Option<Arc<str>>,
    /// Input of this group.
    pub input_paths: Vec<Arc<str>>,
    /// Beside those of the request.
    pub constraints: Constraints,
}

/// Who of one group talks to whom of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgePattern {
    /// Every task to every task (shuffle).
    #[default]
    AllToAll,
    /// Task i to task i modulo the other's count (pipeline).
    OneToOne,
}

/// Bytes between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEdge {
    /// Sender.
    pub from: GroupIdx,
    /// Receiver; may be the sender (workers that exchange).
    pub to: GroupIdx,
    /// Who talks to whom.
    pub pattern: EdgePattern,
    /// All bytes of the edge.
    pub bytes: Bytes,
}

/// Bounds on where containers go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    /// Prefer different nodes.
    pub spread: bool,
    /// One rack where they fit.
    pub together: bool,
    /// 0: no bound.
    pub max_per_node: u32,
    /// 0: no bound.
    pub max_per_rack: u32,
    /// Hosts never to use.
    pub avoid_hosts: Vec<HostName>,
    /// Racks never to use.
    pub avoid_racks: Vec<RackPath>,
}

/// Whether a part of the containers is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gang {
    /// All at once or none.
    All,
    /// As many as fit, the rest in later waves.
    #[default]
    UpTo,
}

/// What a full cluster answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// Hosts ranked by expected release, no lease, an expected wait.
    #[default]
    Advise,
    /// `RESOURCE_EXHAUSTED`.
    Fail,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl TaskGroup {
    /// Whether YARN's containers for both are alike: of the same size, on nodes of the same label.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let amount = |of: &NamedResource, name: &str| {
            of.named.iter().find(|(known, _)| &**known == name).map_or(0, |&(_, amount)| amount)
        };
        let (a, b) = (&self.size, &other.size);
        let mut names = a.named.iter().chain(&b.named).map(|(name, _)| name);
        (a.memory_mb, a.vcores, &self.label) == (b.memory_mb, b.vcores, &other.label)
            && names.all(|name| amount(a, name) == amount(b, name))
    }
}

impl HintRequest {
    /// Containers wanted by all groups.
    #[must_use]
    pub fn containers(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }

    /// The same without its ask table, which may be far larger than all the rest.
    #[must_use]
    pub fn without_asks(&self) -> Self {
        Self {
            id: self.id.clone(),
            attempt: self.attempt,
            queue: self.queue.clone(),
            user: Arc::clone(&self.user),
            framework: Arc::clone(&self.framework),
            groups: self.groups.clone(),
            edges: self.edges.clone(),
            input_paths: self.input_paths.clone(),
            recurring_key: self.recurring_key.clone(),
            constraints: self.constraints.clone(),
            policy: self.policy.clone(),
            seed: self.seed,
            gang: self.gang,
            when_full: self.when_full,
            am_host: self.am_host.clone(),
            asks: Vec::new(),
            survivors: self.survivors.clone(),
        }
    }
}
