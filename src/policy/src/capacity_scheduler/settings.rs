//! `capacity-scheduler.xml`, as far as the model goes.

use super::{Calculator, Size};
use serde::{Deserialize, Serialize};

/// `yarn.scheduler.capacity.<queue>.ordering-policy` of a leaf: which application is offered a node first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppOrdering {
    /// By priority, then as they came.
    #[default]
    Fifo,
    /// By memory in use, then as they came. Size-based weights are not modelled.
    Fair,
}

/// `yarn.scheduler.capacity.<queue>.ordering-policy` of a parent: which queue is offered a node first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueOrdering {
    /// By used share of its capacity.
    #[default]
    Utilization,
    /// By priority among those below, and among those above their capacity.
    PriorityUtilization,
}

/// A queue. Capacities are percentages; absolute resources, weights and node labels are not modelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSettings {
    /// Full path, such as `root.etl`; parents come before their children, the first is `root`.
    pub path: String,
    /// `capacity`, percent of the parent's.
    #[serde(default = "hundred")]
    pub capacity: f32,
    /// `maximum-capacity`, percent of the parent's.
    #[serde(default = "hundred")]
    pub maximum_capacity: f32,
    /// `minimum-user-limit-percent`.
    #[serde(default = "hundred")]
    pub user_limit: f32,
    /// `user-limit-factor`; -1: none.
    #[serde(default = "one")]
    pub user_limit_factor: f32,
    /// `maximum-am-resource-percent`, a share in [0, 1].
    #[serde(default = "tenth")]
    pub maximum_am_share: f32,
    /// `ordering-policy` of a leaf.
    #[serde(default)]
    pub ordering: AppOrdering,
    /// `ordering-policy` of a parent.
    #[serde(default)]
    pub children: QueueOrdering,
    /// `priority`.
    #[serde(default)]
    pub priority: i32,
}

const fn hundred() -> f32 {
    100.0
}

const fn one() -> f32 {
    1.0
}

const fn tenth() -> f32 {
    0.1
}

impl QueueSettings {
    /// A queue with everything as by default.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            capacity: hundred(),
            maximum_capacity: hundred(),
            user_limit: hundred(),
            user_limit_factor: one(),
            maximum_am_share: tenth(),
            ordering: AppOrdering::Fifo,
            children: QueueOrdering::Utilization,
            priority: 0,
        }
    }
}

/// Everything else. Keys are below `yarn.scheduler.capacity.`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerSettings {
    /// `resource-calculator`.
    pub calculator: Calculator,
    /// `yarn.scheduler.minimum-allocation-mb` and `-vcores`; also the step of sizes.
    pub minimum: Size,
    /// `yarn.scheduler.maximum-allocation-mb` and `-vcores`.
    pub maximum: Size,
    /// `node-locality-delay`: offers let go by before a rack-local container; at most as many as there are nodes.
    pub node_locality_delay: i32,
    /// `rack-locality-additional-delay`: so many more before any node is taken; -1: by the count of containers that
    /// wait and of places asked for.
    pub rack_locality_additional_delay: i32,
    /// `rack-locality-full-reset`: a rack-local container resets the count of offers let go by.
    pub rack_locality_full_reset: bool,
    /// `per-node-heartbeat.multiple-assignments-enabled`.
    pub multiple_assignments: bool,
    /// `per-node-heartbeat.maximum-container-assignments`; -1: no limit.
    pub maximum_container_assignments: i32,
    /// `per-node-heartbeat.maximum-offswitch-assignments`, at least 1.
    pub maximum_offswitch_assignments: u32,
    /// `reservations-continue-look-all-nodes`.
    pub reservations_continue_looking: bool,
}

impl Default for SchedulerSettings {
    fn default() -> Self {
        Self {
            calculator: Calculator::Default,
            minimum: Size::new(1024, 1),
            maximum: Size::new(8192, 4),
            node_locality_delay: 40,
            rack_locality_additional_delay: -1,
            rack_locality_full_reset: true,
            multiple_assignments: true,
            maximum_container_assignments: 100,
            maximum_offswitch_assignments: 1,
            reservations_continue_looking: true,
        }
    }
}
