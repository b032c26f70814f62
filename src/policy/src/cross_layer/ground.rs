//! What the search stands on: the nodes worth looking at, the groups, and who talks to whom.

use crate::problem::{EdgeProblem, PlaceProblem};
use hintd_model::cluster::{EdgePattern, Resource};
use hintd_model::units::NodeIdx;
use std::collections::BTreeMap;

/// Added to the number of adjacent sources and sinks: without it tasks between others would never move.
pub(super) const FLOOR: f64 = 0.25;

/// Nodes and groups by position.
pub(super) struct Ground<'p> {
    pub(super) problem: &'p PlaceProblem<'p>,
    pub(super) slots: Vec<Slot>,
    pub(super) racks: usize,
    /// Slots by attachment switch.
    pub(super) by_switch: Vec<Vec<u32>>,
    /// By group and slot.
    allowed: Vec<bool>,
    pub(super) edges: Vec<EdgeProblem>,
    /// By group: its edges, each once.
    pub(super) edges_of: Vec<Vec<usize>>,
    /// By group: no other group sends to it.
    pub(super) root: Vec<bool>,
    /// By group: it sends to no other group.
    pub(super) sink: Vec<bool>,
    /// By group: with what weight one of its tasks is drawn (000 §2, P_i).
    pub(super) priority: Vec<f64>,
}

/// A node.
pub(super) struct Slot {
    pub(super) node: NodeIdx,
    pub(super) room: Resource,
    pub(super) rack: u32,
    /// Position in [`Ground::by_switch`].
    pub(super) switch: u32,
}

impl<'p> Ground<'p> {
    /// `nodes` ascending and distinct.
    pub(super) fn new(problem: &'p PlaceProblem<'p>, nodes: &[NodeIdx]) -> Self {
        let (mut racks, mut switches) = (BTreeMap::new(), BTreeMap::new());
        let slots: Vec<Slot> = nodes
            .iter()
            .map(|&node| {
                let (seen, rack) = (racks.len() as u32, problem.snapshot.rack(node));
                let rack = *racks.entry(rack).or_insert(seen);
                let switch = problem.snapshot.topology.edge.get(node.at()).copied().flatten();
                // A node that hangs nowhere stands alone.
                let key = switch.map_or((1, node.0), |switch| (0, switch.0));
                let seen = switches.len() as u32;
                Slot { node, room: problem.room(node), rack, switch: *switches.entry(key).or_insert(seen) }
            })
            .collect();
        let mut by_switch = vec![Vec::new(); switches.len()];
        for (at, slot) in (0..).zip(&slots) {
            by_switch[slot.switch as usize].push(at);
        }
        let groups = problem.groups.len();
        let known = |edge: &&EdgeProblem| edge.from.at() < groups && edge.to.at() < groups;
        let edges: Vec<EdgeProblem> = problem.edges.iter().filter(known).copied().collect();
        let touches = |edge: &EdgeProblem, group: usize| edge.from.at() == group || edge.to.at() == group;
        let edges_of = (0..groups).map(|group| (0..edges.len()).filter(|&at| touches(&edges[at], group)).collect());
        let between = |edge: &&EdgeProblem| edge.from != edge.to;
        let is_root = |group: usize| !edges.iter().filter(between).any(|edge| edge.to.at() == group);
        let is_sink = |group: usize| !edges.iter().filter(between).any(|edge| edge.from.at() == group);
        let (root, sink): (Vec<bool>, Vec<bool>) = (0..groups).map(|group| (is_root(group), is_sink(group))).unzip();
        let mut allowed = Vec::with_capacity(groups * nodes.len());
        for group in &problem.groups {
            allowed.extend(nodes.iter().map(|node| group.candidates.binary_search(node).is_ok()));
        }
        let edges_of = edges_of.collect();
        let priority = (0..groups).map(|group| priority(problem, &edges, (&root, &sink), group)).collect();
        Self { problem, racks: racks.len(), slots, by_switch, allowed, edges_of, root, sink, priority, edges }
    }

    /// Whether the node is a candidate of the group.
    pub(super) fn allowed(&self, group: usize, slot: u32) -> bool {
        self.allowed[group * self.slots.len() + slot as usize]
    }

    /// Whether `taken` and a container of `size` fit in the room of a slot.
    pub(super) fn fits(&self, taken: &Resource, size: &Resource, slot: u32) -> bool {
        self.problem.snapshot.rules.feasible(&taken.plus(size), &self.slots[slot as usize].room)
    }
}

/// Sources and sinks directly beside a task of the group, in tasks.
fn priority(problem: &PlaceProblem<'_>, edges: &[EdgeProblem], (root, sink): (&[bool], &[bool]), group: usize) -> f64 {
    let tasks = |edge: &EdgeProblem, other: usize| match edge.pattern {
        EdgePattern::AllToAll => f64::from(problem.groups[other].count),
        EdgePattern::OneToOne => 1.0,
    };
    let mut sum = FLOOR;
    for edge in edges {
        let (from, to) = (edge.from.at(), edge.to.at());
        if to == group && root[from] {
            sum += tasks(edge, from);
        }
        if from == group && sink[to] {
            sum += tasks(edge, to);
        }
    }
    sum
}
