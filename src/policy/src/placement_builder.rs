//! A placement in the making: what is left of room and bounds while containers are put down one by one.

use super::budget::Budget;
use super::place::{Ended, Placement, Share};
use super::problem::PlaceProblem;
use hintd_model::cluster::Resource;
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::BTreeMap;

/// Containers put so far. Costs as much as there are containers, not nodes.
#[derive(Debug, Clone)]
pub(crate) struct PlacementBuilder<'p, 's> {
    problem: &'p PlaceProblem<'s>,
    room: BTreeMap<NodeIdx, Resource>,
    groups: Vec<GroupBuilder>,
}

#[derive(Debug, Clone, Default)]
struct GroupBuilder {
    on_node: BTreeMap<NodeIdx, u32>,
    in_rack: BTreeMap<RackIdx, u32>,
    /// Node by task; tasks may be put in any order.
    tasks: Vec<(u32, NodeIdx)>,
}

impl<'p, 's> PlacementBuilder<'p, 's> {
    pub(crate) fn new(problem: &'p PlaceProblem<'s>) -> Self {
        let groups = problem.groups.iter().map(|_| GroupBuilder::default()).collect();
        Self { problem, room: BTreeMap::new(), groups }
    }

    /// Room left on a node.
    pub(crate) fn room(&self, node: NodeIdx) -> Resource {
        self.room.get(&node).copied().unwrap_or_else(|| self.problem.room(node))
    }

    /// Whether a container was put on the node.
    pub(crate) fn touched(&self, node: NodeIdx) -> bool {
        self.room.contains_key(&node)
    }

    /// Containers of the group on a node.
    pub(crate) fn on_node(&self, group: usize, node: NodeIdx) -> u32 {
        self.groups[group].on_node.get(&node).copied().unwrap_or(0)
    }

    /// Containers of the group in a rack.
    pub(crate) fn in_rack(&self, group: usize, rack: RackIdx) -> u32 {
        self.groups[group].in_rack.get(&rack).copied().unwrap_or(0)
    }

    /// Containers of the group by node.
    pub(crate) fn nodes_of(&self, group: usize) -> &BTreeMap<NodeIdx, u32> {
        &self.groups[group].on_node
    }

    /// Whether one more container of the group may go to a candidate node.
    pub(crate) fn fits(&self, group: usize, node: NodeIdx) -> bool {
        self.room_if_fits(group, node).is_some()
    }

    /// Room left on a candidate node, if one more container of the group may go there.
    pub(crate) fn room_if_fits(&self, group: usize, node: NodeIdx) -> Option<Resource> {
        let (bounds, filling) = (&self.problem.groups[group], &self.groups[group]);
        if bounds.max_per_node != u32::MAX && self.on_node(group, node) >= bounds.max_per_node {
            return None;
        }
        if bounds.max_per_rack != u32::MAX {
            let rack = self.problem.snapshot.rack(node);
            if filling.in_rack.get(&rack).copied().unwrap_or(0) >= bounds.max_per_rack {
                return None;
            }
        }
        let room = self.room(node);
        self.problem.snapshot.rules.feasible(&bounds.size, &room).then_some(room)
    }

    /// Puts a task of the group on a node where it [`Self::fits`].
    pub(crate) fn put(&mut self, group: usize, task: u32, node: NodeIdx) {
        let left = self.room(node).minus(&self.problem.groups[group].size);
        self.room.insert(node, left);
        let filling = &mut self.groups[group];
        *filling.on_node.entry(node).or_default() += 1;
        *filling.in_rack.entry(self.problem.snapshot.rack(node)).or_default() += 1;
        filling.tasks.push((task, node));
    }

    /// The placement of a policy that follows a rule and has no objective; cut short where the probe stopped it.
    pub(crate) fn finish(self, budget: &Budget<'_>) -> Placement {
        let groups = self.groups.into_iter().map(|group| shares(group.tasks)).collect();
        let ended = if budget.stopped() { Ended::Deadline } else { Ended::Complete };
        Placement {
            groups,
            routes: Vec::new(),
            objective: 0.0,
            parts: Vec::new(),
            ended,
            gap: None,
            steps: budget.used(),
        }
    }
}

/// One share a node, in the order of each node's first task.
fn shares(mut tasks: Vec<(u32, NodeIdx)>) -> Vec<Share> {
    tasks.sort_unstable();
    let mut at: BTreeMap<NodeIdx, usize> = BTreeMap::new();
    let mut shares: Vec<Share> = Vec::new();
    for (_, node) in tasks {
        let place = *at.entry(node).or_insert(shares.len());
        match shares.get_mut(place) {
            Some(share) => share.count += 1,
            None => shares.push(Share { node, count: 1 }),
        }
    }
    shares
}

/// Groups in the order in which YARN serves them: by priority number, then as asked.
pub(crate) fn by_priority(problem: &PlaceProblem<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..problem.groups.len()).collect();
    order.sort_by_key(|&group| problem.groups[group].key.priority);
    order
}
