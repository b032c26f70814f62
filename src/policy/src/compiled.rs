//! A placement problem by position: what the searches of all policies read in their inner loops.
//!
//! Nodes become slots, containers become tasks, racks and switches become small numbers, each counted in order of first
//! use. A policy adds what only it needs as [`CompiledProblem::own`].

use crate::problem::{EdgeProblem, PlaceProblem};
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::NodeIdx;
use std::collections::BTreeMap;

/// A problem on the nodes of one search, with what a policy adds to it.
#[derive(Debug, Clone)]
pub(crate) struct CompiledProblem<'p, Own> {
    pub(crate) problem: &'p PlaceProblem<'p>,
    /// The nodes that are searched, ascending; a slot is a position here.
    pub(crate) slots: Vec<CandidateNode>,
    /// Number of racks that slots are in.
    pub(crate) racks: usize,
    /// Those of slots first, then those that only anchors hang on.
    pub(crate) switches: Vec<Switch>,
    /// Group by task; the tasks of a group follow each other.
    pub(crate) group_of: Vec<u32>,
    /// Edges between groups of the problem.
    pub(crate) edges: Vec<EdgeProblem>,
    /// By group and slot.
    allowed: Vec<bool>,
    /// What one policy adds.
    pub(crate) own: Own,
}

/// A node that is searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidateNode {
    pub(crate) node: NodeIdx,
    /// What new containers may use.
    pub(crate) room: Resource,
    /// Position of its rack.
    pub(crate) rack: u32,
    /// Position of its attachment switch in [`CompiledProblem::switches`].
    pub(crate) switch: u32,
}

/// An attachment switch; a node that hangs nowhere has one of its own.
#[derive(Debug, Clone)]
pub(crate) struct Switch {
    /// Slots below it, ascending.
    pub(crate) slots: Vec<u32>,
    /// A node below it, to tell distances by.
    pub(crate) node: NodeIdx,
    /// Anchored containers below it.
    pub(crate) anchored: u32,
}

impl<'p> CompiledProblem<'p, ()> {
    /// The problem on `nodes`, ascending and distinct.
    pub(crate) fn new(problem: &'p PlaceProblem<'p>, nodes: &[NodeIdx]) -> Self {
        let snapshot = problem.snapshot;
        let (mut racks, mut switches) = (BTreeMap::new(), Switches::default());
        let slots: Vec<CandidateNode> = (0..)
            .zip(nodes)
            .map(|(slot, &node)| {
                let seen = racks.len() as u32;
                let rack = *racks.entry(snapshot.rack(node)).or_insert(seen);
                let switch = switches.position(snapshot, node);
                switches.list[switch as usize].slots.push(slot);
                CandidateNode { node, room: problem.room(node), rack, switch }
            })
            .collect();
        for anchor in &problem.anchors {
            let switch = switches.position(snapshot, anchor.node);
            switches.list[switch as usize].anchored += anchor.count;
        }
        let groups = (0..).zip(&problem.groups);
        let known = |edge: &&EdgeProblem| edge.from.at().max(edge.to.at()) < problem.groups.len();
        Self {
            problem,
            racks: racks.len(),
            switches: switches.list,
            group_of: groups.flat_map(|(at, group)| std::iter::repeat_n(at, group.count as usize)).collect(),
            edges: problem.edges.iter().filter(known).copied().collect(),
            allowed: allowed(problem, nodes),
            slots,
            own: (),
        }
    }

    /// The same with what a policy adds.
    pub(crate) fn with<Own>(self, own: Own) -> CompiledProblem<'p, Own> {
        let Self { problem, slots, racks, switches, group_of, edges, allowed, own: () } = self;
        CompiledProblem { problem, slots, racks, switches, group_of, edges, allowed, own }
    }
}

impl<Own> CompiledProblem<'_, Own> {
    /// Whether the slot's node is a candidate of the group.
    pub(crate) fn allowed(&self, group: usize, slot: u32) -> bool {
        self.allowed[group * self.slots.len() + slot as usize]
    }

    /// By slot: whether its node is a candidate of the group.
    pub(crate) fn allowed_row(&self, group: usize) -> &[bool] {
        &self.allowed[group * self.slots.len()..][..self.slots.len()]
    }

    /// Takes slots from a group's candidates.
    pub(crate) fn restrict(&mut self, group: usize, keeps: impl Fn(&Self, u32) -> bool) {
        for slot in 0..self.slots.len() {
            let at = group * self.slots.len() + slot;
            self.allowed[at] = self.allowed[at] && keeps(self, slot as u32);
        }
    }

    /// Whether `taken` and a container of `size` fit in the room of a slot.
    pub(crate) fn fits(&self, taken: &Resource, size: &Resource, slot: u32) -> bool {
        self.problem.snapshot.rules.feasible(&taken.plus(size), &self.slots[slot as usize].room)
    }

    /// The slot of a node, if it is searched.
    pub(crate) fn slot_of(&self, node: NodeIdx) -> Option<u32> {
        self.slots.binary_search_by_key(&node, |slot| slot.node).ok().map(|at| at as u32)
    }

    /// The size of a task's container.
    pub(crate) fn size_of(&self, task: u32) -> &Resource {
        &self.problem.groups[self.group_of[task as usize] as usize].size
    }
}

fn allowed(problem: &PlaceProblem<'_>, nodes: &[NodeIdx]) -> Vec<bool> {
    let mut allowed = Vec::with_capacity(problem.groups.len() * nodes.len());
    for group in &problem.groups {
        allowed.extend(nodes.iter().map(|node| group.candidates.binary_search(node).is_ok()));
    }
    allowed
}

/// Switches as they are met.
#[derive(Default)]
struct Switches {
    /// By index in the topology, or by node where it hangs nowhere.
    known: BTreeMap<Result<u32, NodeIdx>, u32>,
    list: Vec<Switch>,
}

impl Switches {
    /// The position of the switch that a node hangs on.
    fn position(&mut self, snapshot: &Snapshot, node: NodeIdx) -> u32 {
        let switch = snapshot.topology.edge.get(node.at()).copied().flatten();
        let list = &mut self.list;
        *self.known.entry(switch.map(|switch| switch.0).ok_or(node)).or_insert_with(|| {
            list.push(Switch { slots: Vec::new(), node, anchored: 0 });
            list.len() as u32 - 1
        })
    }
}
