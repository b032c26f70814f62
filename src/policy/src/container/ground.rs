//! What does not change while annealing: shortlisted nodes, their switches and racks, the hops between them.

use crate::load;
use crate::problem::PlaceProblem;
use hintd_model::cluster::Resource;
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::units::NodeIdx;
use std::collections::BTreeMap;

/// One shortlisted node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) node: NodeIdx,
    /// Position of its attachment switch.
    pub(super) edge: u32,
    /// Position of its rack.
    pub(super) rack: u32,
    room: Resource,
    /// 1 ÷ offered, by kind; 0 where nothing is offered.
    per_unit: [f64; KINDS_MAX],
    /// What of the offer is not room, by kind.
    occupied: Resource,
}

/// The ground that a board stands on.
#[derive(Debug, Clone)]
pub(super) struct Ground<'p> {
    pub(super) problem: &'p PlaceProblem<'p>,
    pub(super) slots: Vec<Slot>,
    /// Group by container.
    pub(super) group_of: Vec<u32>,
    /// Whether a slot is a candidate, by group and slot.
    pub(super) allowed: Vec<bool>,
    /// Attachment switches of slots and anchors.
    pub(super) edges: usize,
    pub(super) racks: usize,
    /// Core hops between those switches, row by row.
    pub(super) hops: Vec<u32>,
    /// Anchors by switch.
    pub(super) fixed: Vec<(u32, u32)>,
    /// Slots by switch.
    pub(super) by_edge: Vec<Vec<u32>>,
    /// Blocks of the group's input by group and slot; empty where no group has input.
    blocks: Vec<&'p [u32]>,
    kinds: usize,
}

impl<'p> Ground<'p> {
    /// `nodes` ascending and distinct.
    pub(super) fn new(problem: &'p PlaceProblem<'p>, nodes: &[NodeIdx], diameter: u8) -> Self {
        let snapshot = problem.snapshot;
        let mut edges = Positions::default();
        let mut racks = Positions::default();
        // A node that hangs nowhere is at the diameter from all others: a switch of its own.
        let mut edge = |node: NodeIdx| {
            let known = snapshot.topology.edge.get(node.at()).copied().flatten();
            edges.of(known.map_or((1, node.0), |edge| (0, edge.0)), node)
        };
        let slots: Vec<Slot> = nodes
            .iter()
            .map(|&node| {
                let (total, room) = (&snapshot.statics.total[node.at()], problem.room(node));
                Slot {
                    node,
                    edge: edge(node),
                    rack: racks.of((0, snapshot.rack(node).0), node),
                    per_unit: total.0.map(|offered| if offered > 0 { 1.0 / offered as f64 } else { 0.0 }),
                    occupied: total.minus(&room),
                    room,
                }
            })
            .collect();
        let fixed: Vec<(u32, u32)> = problem.anchors.iter().map(|anchor| (edge(anchor.node), anchor.count)).collect();
        let mut by_edge = vec![Vec::new(); edges.first.len()];
        for (at, slot) in (0..).zip(&slots) {
            by_edge[slot.edge as usize].push(at);
        }
        let group_of = (0..).zip(&problem.groups).flat_map(|(at, group)| (0..group.count).map(move |_| at));
        Self {
            problem,
            group_of: group_of.collect(),
            allowed: allowed(problem, nodes),
            edges: edges.first.len(),
            racks: racks.first.len(),
            hops: hops(problem, &edges.first, diameter),
            fixed,
            by_edge,
            blocks: blocks(problem, nodes),
            kinds: load::kinds(snapshot),
            slots,
        }
    }

    /// Blocks of the group's input on a slot, ascending.
    pub(super) fn blocks(&self, group: usize, slot: u32) -> &'p [u32] {
        self.blocks.get(group * self.slots.len() + slot as usize).copied().unwrap_or(&[])
    }

    /// Whether `taken` and a container of `size` fit in the room of a slot.
    pub(super) fn fits(&self, taken: &Resource, size: &Resource, slot: usize) -> bool {
        self.problem.snapshot.rules.feasible(&taken.plus(size), &self.slots[slot].room)
    }

    /// Load of a slot before anything is placed.
    pub(super) fn load_before(&self, slot: usize) -> f64 {
        self.load(slot, &Resource::ZERO)
    }

    /// Containers of the most numerous group that fit below a switch, up to `enough`.
    pub(super) fn room_for(&self, edge: usize, enough: usize) -> usize {
        let Some(group) = self.problem.groups.iter().max_by_key(|group| group.count) else { return 0 };
        let fits = |&slot: &u32| {
            let fits = self.problem.snapshot.rules.how_many(&group.size, &self.slots[slot as usize].room);
            fits.min(group.max_per_node) as usize
        };
        self.by_edge[edge].iter().map(fits).fold(0, |sum, fits| (sum + fits).min(enough))
    }

    /// Load of a slot with `taken` on it, as [`load::load`] has it.
    pub(super) fn load(&self, slot: usize, taken: &Resource) -> f64 {
        let Slot { per_unit, occupied, .. } = &self.slots[slot];
        let used = |kind: usize| (occupied.0[kind] + taken.0[kind]) as f64 * per_unit[kind];
        (0..self.kinds).map(used).fold(0.0, f64::max).min(1.0)
    }
}

/// Positions given in order of first use, with the first node that used each.
#[derive(Default)]
struct Positions {
    known: BTreeMap<(u32, u32), u32>,
    first: Vec<NodeIdx>,
}

impl Positions {
    fn of(&mut self, key: (u32, u32), node: NodeIdx) -> u32 {
        let first = &mut self.first;
        *self.known.entry(key).or_insert_with(|| {
            first.push(node);
            first.len() as u32 - 1
        })
    }
}

fn hops(problem: &PlaceProblem<'_>, first: &[NodeIdx], diameter: u8) -> Vec<u32> {
    let topology = &problem.snapshot.topology;
    let between = |a: NodeIdx, b: NodeIdx| {
        if a == b { 0 } else { u32::from(topology.core_hops(a, b).unwrap_or(diameter)) }
    };
    first.iter().flat_map(|&a| first.iter().map(move |&b| between(a, b))).collect()
}

fn allowed(problem: &PlaceProblem<'_>, nodes: &[NodeIdx]) -> Vec<bool> {
    let mut allowed = Vec::with_capacity(problem.groups.len() * nodes.len());
    for group in &problem.groups {
        allowed.extend(nodes.iter().map(|node| group.candidates.binary_search(node).is_ok()));
    }
    allowed
}

fn blocks<'p>(problem: &'p PlaceProblem<'p>, nodes: &[NodeIdx]) -> Vec<&'p [u32]> {
    if problem.groups.iter().all(|group| group.input.is_empty()) {
        return Vec::new();
    }
    problem.groups.iter().flat_map(|group| nodes.iter().map(|&node| group.input.on(node))).collect()
}
