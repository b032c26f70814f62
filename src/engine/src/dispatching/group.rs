//! One waiting group: what was asked, and how each task stands.

use hintd_model::cluster::HintRequest;
use hintd_model::units::{Bytes, LeaseId, Micros, NodeIdx, Timestamp};
use hintd_policy::dispatch::{TaskRef, WaitingGroup};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// It waits for an offer.
    Waiting,
    /// It was launched: this lease holds its room.
    Leased {
        node: NodeIdx,
        lease: LeaseId,
    },
    /// It has a container, known by its number in the application where somebody named it.
    Running {
        node: NodeIdx,
        container: Option<u64>,
        since: Timestamp,
    },
    Ended(End),
}

/// How a task ended; kept so that another policy can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) node: NodeIdx,
    pub(super) duration: Micros,
    pub(super) input: Bytes,
    pub(super) output: Bytes,
}

impl Task {
    /// Where it runs or is to run.
    pub(super) const fn placed(&self) -> Option<NodeIdx> {
        match self {
            Self::Leased { node, .. } | Self::Running { node, .. } => Some(*node),
            Self::Waiting | Self::Ended(_) => None,
        }
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// As the policy was told; its name is unique in the application.
    pub(super) told: Arc<WaitingGroup>,
    /// The group's name in its request.
    pub(super) asked: Arc<str>,
    /// The request, without its ask table.
    pub(super) request: Arc<HintRequest>,
    /// Position in the request.
    pub(super) at: usize,
    pub(super) confidence: f64,
    pub(super) tasks: Vec<Task>,
    /// Tasks that wait.
    pub(super) waiting: u32,
    /// Of those, how many an ordinary placement is made for right now.
    pub(super) late: u32,
    /// Until when that is waited for.
    pub(super) late_until: Timestamp,
    /// When what waits has waited for too long; `None`: nothing waits.
    pub(super) overdue: Option<Timestamp>,
    /// When it was last looked at, it waited for tasks of its own application.
    pub(super) held: bool,
    /// The last reason that its application was given, and when.
    pub(super) reason: Option<(Arc<str>, Timestamp)>,
    /// The application's own names of tasks.
    pub(super) names: Arc<BTreeMap<Arc<str>, u32>>,
}

impl Group {
    pub(super) fn new(told: WaitingGroup, asked: Arc<str>, request: &Arc<HintRequest>, at: usize) -> Self {
        let count = told.count;
        Self {
            tasks: vec![Task::Waiting; count as usize],
            waiting: count,
            told: Arc::new(told),
            asked,
            request: Arc::clone(request),
            at,
            confidence: 1.0,
            late: 0,
            late_until: Timestamp(0),
            overdue: None,
            held: false,
            reason: None,
            names: Arc::default(),
        }
    }

    /// One of its tasks, as policies name it.
    pub(super) fn task(&self, index: u32) -> TaskRef {
        TaskRef { attempt: self.told.attempt, group: Arc::clone(&self.told.group), index }
    }

    pub(super) fn get(&self, index: u32) -> Option<Task> {
        self.tasks.get(index as usize).copied()
    }

    /// Sets how a task stands.
    pub(super) fn set(&mut self, index: u32, task: Task) {
        let Some(known) = self.tasks.get_mut(index as usize) else { return };
        let was = std::mem::replace(known, task);
        self.waiting -= u32::from(was == Task::Waiting);
        self.waiting += u32::from(task == Task::Waiting);
        self.late = self.late.min(self.waiting);
    }

    /// Waiting tasks for `count` containers on `node`: those with input there first, then the lowest.
    pub(super) fn choose(&self, node: NodeIdx, count: u32) -> Vec<u32> {
        let waiting = || (0_u32..).zip(&self.tasks).filter(|(_, task)| **task == Task::Waiting).map(|(index, _)| index);
        let reads_here = |index: &u32| {
            self.told.inputs.get(*index as usize).is_some_and(|input| input.nodes.binary_search(&node).is_ok())
        };
        let mut chosen: Vec<u32> = waiting().filter(reads_here).take(count as usize).collect();
        let rest = count as usize - chosen.len();
        let others: Vec<u32> = waiting().filter(|index| chosen.binary_search(index).is_err()).take(rest).collect();
        chosen.extend(others);
        chosen
    }

    /// A task that runs on `node`, oldest first.
    pub(super) fn running_on(&self, node: NodeIdx) -> Option<u32> {
        let running = (0_u32..).zip(&self.tasks).filter_map(|(index, task)| match task {
            Task::Running { node: on, since, .. } if *on == node => Some((*since, index)),
            _ => None,
        });
        running.min().map(|(_, index)| index)
    }
}
