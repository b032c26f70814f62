//! What annealing adds to the compiled problem: hops between switches, input by slot, loads.

use crate::compiled::CompiledProblem;
use crate::load;
use crate::problem::PlaceProblem;
use hintd_model::cluster::Resource;
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::units::NodeIdx;

/// The compiled problem that annealing reads.
pub(super) type ContainerProblem<'p> = CompiledProblem<'p, CostTables<'p>>;

/// What costs are read from.
#[derive(Debug, Clone)]
pub(super) struct CostTables<'p> {
    /// Core hops between switches, row by row.
    pub(super) hops: Vec<u32>,
    /// By slot.
    loads: Vec<BaseLoad>,
    /// Blocks of the group's input by group and slot; empty where no group has input.
    blocks: Vec<&'p [u32]>,
    kinds: usize,
}

/// What the load of a slot is computed from.
#[derive(Debug, Clone, Copy)]
struct BaseLoad {
    /// 1 ÷ offered, by kind; 0 where nothing is offered.
    per_unit: [f64; KINDS_MAX],
    /// What of the offer is not room, by kind.
    occupied: Resource,
}

impl<'p> ContainerProblem<'p> {
    /// The problem on `nodes`, ascending and distinct.
    pub(super) fn compile(problem: &'p PlaceProblem<'p>, nodes: &[NodeIdx], diameter: u8) -> Self {
        let compiled = CompiledProblem::new(problem, nodes);
        let loads = compiled.slots.iter().map(|slot| {
            let total = &problem.snapshot.statics.total[slot.node.at()];
            BaseLoad {
                per_unit: total.0.map(|offered| if offered > 0 { 1.0 / offered as f64 } else { 0.0 }),
                occupied: total.minus(&slot.room),
            }
        });
        let own = CostTables {
            hops: hops(&compiled, diameter),
            loads: loads.collect(),
            blocks: blocks(problem, nodes),
            kinds: load::kinds(problem.snapshot),
        };
        compiled.with(own)
    }

    /// Blocks of the group's input on a slot, ascending.
    pub(super) fn blocks(&self, group: usize, slot: u32) -> &'p [u32] {
        self.own.blocks.get(group * self.slots.len() + slot as usize).copied().unwrap_or(&[])
    }

    /// Core hops from one switch to every switch.
    pub(super) fn hops_from(&self, switch: usize) -> &[u32] {
        &self.own.hops[switch * self.switches.len()..][..self.switches.len()]
    }

    /// Load of a slot before anything is placed.
    pub(super) fn load_before(&self, slot: usize) -> f64 {
        self.load(slot, &Resource::ZERO)
    }

    /// Containers of the most numerous group that fit below a switch, up to `enough`.
    pub(super) fn room_for(&self, switch: usize, enough: usize) -> usize {
        let Some(group) = self.problem.groups.iter().max_by_key(|group| group.count) else { return 0 };
        let fits = |&slot: &u32| {
            let fits = self.problem.snapshot.rules.how_many(&group.size, &self.slots[slot as usize].room);
            fits.min(group.max_per_node) as usize
        };
        self.switches[switch].slots.iter().map(fits).fold(0, |sum, fits| (sum + fits).min(enough))
    }

    /// Load of a slot with `taken` on it, as [`load::load`] has it.
    pub(super) fn load(&self, slot: usize, taken: &Resource) -> f64 {
        let BaseLoad { per_unit, occupied } = &self.own.loads[slot];
        let used = |kind: usize| (occupied.0[kind] + taken.0[kind]) as f64 * per_unit[kind];
        (0..self.own.kinds).map(used).fold(0.0, f64::max).min(1.0)
    }
}

fn hops(compiled: &CompiledProblem<'_, ()>, diameter: u8) -> Vec<u32> {
    let topology = &compiled.problem.snapshot.topology;
    let between = |a: NodeIdx, b: NodeIdx| {
        if a == b { 0 } else { u32::from(topology.core_hops(a, b).unwrap_or(diameter)) }
    };
    let nodes = || compiled.switches.iter().map(|switch| switch.node);
    nodes().flat_map(|a| nodes().map(move |b| between(a, b))).collect()
}

fn blocks<'p>(problem: &'p PlaceProblem<'p>, nodes: &[NodeIdx]) -> Vec<&'p [u32]> {
    if problem.groups.iter().all(|group| group.input.is_empty()) {
        return Vec::new();
    }
    problem.groups.iter().flat_map(|group| nodes.iter().map(|&node| group.input.on(node))).collect()
}
