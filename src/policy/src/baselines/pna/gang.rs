//! `pna` asked for a gang that tells what its groups send: what a reduce's transfer costs is known from where the maps
//! of the request were put. Without it reduces would cost nothing anywhere, since no map has ended.
//!
//! Nodes are offered one after another, each slot of a node until one is declined (002 §8.3: `pna` clusters containers
//! on fewer servers). Groups that receive wait until those that send to
//! them have been placed. Costs are bytes × hops on static paths, hops as they are counted in the network where there is
//! one: what links and boxes carry is not looked at.

use super::{BETWEEN_RACKS, Dice, IN_RACK, Pna, ROUNDS};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::{Budget, PlaceProblem, Placement};
use hintd_model::network::chains::HopTable;
use hintd_model::units::{NodeIdx, VertexIdx};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Free nodes are offered in turn, from the seed's on, until all is placed or nobody takes anything.
pub(super) fn place(policy: &Pna, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Placement {
    let mut nodes: Vec<NodeIdx> = problem.groups.iter().flat_map(|group| group.candidates.iter().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let start = problem.seed.checked_rem(nodes.len() as u64).unwrap_or(0);
    nodes.rotate_left(start as usize);
    let dice = Dice { seed: u64::from(policy.params.seed) ^ problem.seed, draws: Cell::new(0) };
    let mut gang = Gang::new(problem, &nodes);
    let mut idle = 0;
    while gang.waits() && !nodes.is_empty() && idle < ROUNDS {
        idle += 1;
        for at in 0..nodes.len() {
            if !gang.waits() || !budget.step() {
                break;
            }
            let mut slots = policy.params.gang_slots;
            while slots > 0 && gang.offer(at, &dice) {
                (idle, slots) = (0, slots - 1);
                if !budget.step() {
                    break;
                }
            }
        }
        if budget.left() == 0 || budget.stopped() {
            break;
        }
    }
    gang.filling.finish(budget)
}

/// What waits, and what is placed.
struct Gang<'p, 's> {
    problem: &'p PlaceProblem<'s>,
    nodes: &'p [NodeIdx],
    hops: Hops,
    filling: PlacementBuilder<'p, 's>,
    /// By group: tasks that wait, ascending.
    waiting: Vec<Vec<u32>>,
    /// By group and position of a node: what a task of it would receive, bytes × hops, of what is placed.
    receive: Vec<Vec<f64>>,
    order: Vec<usize>,
}

impl<'p, 's> Gang<'p, 's> {
    fn new(problem: &'p PlaceProblem<'s>, nodes: &'p [NodeIdx]) -> Self {
        Self {
            problem,
            nodes,
            hops: Hops::new(problem, nodes),
            filling: PlacementBuilder::new(problem),
            waiting: problem.groups.iter().map(|group| (0..group.count).collect()).collect(),
            receive: vec![vec![0.0; nodes.len()]; problem.groups.len()],
            order: by_priority(problem),
        }
    }

    fn waits(&self) -> bool {
        self.waiting.iter().any(|tasks| !tasks.is_empty())
    }

    /// Whether all that send to the group are placed, or all that wait send to each other.
    fn is_ready(&self, group: usize) -> bool {
        let held = |group: usize| {
            let senders = self.problem.edges.iter().filter(|edge| edge.to.at() == group && edge.from.at() != group);
            senders.into_iter().any(|edge| !self.waiting[edge.from.at()].is_empty())
        };
        !held(group) || (0..self.waiting.len()).all(|other| self.waiting[other].is_empty() || held(other))
    }

    /// Offers a node: its cheapest waiting task is drawn for. Whether it was launched.
    fn offer(&mut self, at: usize, dice: &Dice) -> bool {
        let node = self.nodes[at];
        let mut best: Option<(f64, usize, u32)> = None;
        for &group in &self.order {
            let fits = self.problem.groups[group].candidates.binary_search(&node).is_ok();
            if self.waiting[group].is_empty() || !fits || !self.filling.fits(group, node) || !self.is_ready(group) {
                continue;
            }
            for &task in &self.waiting[group] {
                let cost = self.cost(group, task, at);
                if best.is_none_or(|(least, ..)| cost < least) {
                    best = Some((cost, group, task));
                }
                if self.problem.groups[group].input.is_empty() {
                    break; // its tasks are alike
                }
            }
        }
        let Some((cost, group, task)) = best else { return false };
        if !dice.accepts(cost, || self.mean(group, task)) {
            return false;
        }
        self.launch(group, task, at);
        true
    }

    fn launch(&mut self, group: usize, task: u32, at: usize) {
        self.filling.put(group, task, self.nodes[at]);
        self.waiting[group].retain(|&waiting| waiting != task);
        let edges = &self.problem.edges;
        for edge in edges.iter().filter(|edge| edge.from.at() == group && edge.to.at() != group) {
            let counts = [edge.from, edge.to].map(|end| f64::from(self.problem.groups[end.at()].count));
            let share = edge.bytes.as_f64() / counts[0] / counts[1];
            for (there, cost) in self.receive[edge.to.at()].iter_mut().enumerate() {
                *cost += share * self.hops.between(at, there);
            }
        }
    }

    /// Bytes × hops of a task on a node: its input from the nearest replicas, and what it will receive.
    fn cost(&self, group: usize, task: u32, at: usize) -> f64 {
        let asked = &self.problem.groups[group];
        let (blocks, count) = (&asked.input.blocks, asked.count as usize);
        let run = &blocks[task as usize * blocks.len() / count..(task as usize + 1) * blocks.len() / count];
        let nearest = |nodes: &[NodeIdx]| {
            let hops = nodes.iter().map(|&replica| self.hops.to_node(at, replica, self.nodes[at]));
            hops.reduce(f64::min).unwrap_or(0.0)
        };
        let read: f64 = run.iter().map(|block| block.bytes.as_f64() * nearest(&block.nodes)).sum();
        read + self.receive[group][at]
    }

    /// Over nodes with room for it.
    fn mean(&self, group: usize, task: u32) -> f64 {
        let candidates = &self.problem.groups[group].candidates;
        let (mut sum, mut count) = (0.0, 0_u32);
        for (at, node) in self.nodes.iter().enumerate() {
            if candidates.binary_search(node).is_ok() && self.filling.fits(group, *node) {
                sum += self.cost(group, task, at);
                count += 1;
            }
        }
        sum / f64::from(count.max(1))
    }
}

/// Static hops between nodes.
struct Hops {
    /// By position of a node: its row and rack, or its rack alone.
    row: Vec<usize>,
    row_of: BTreeMap<NodeIdx, usize>,
    table: Option<HopTable>,
}

impl Hops {
    /// Rows are switches where there is a network, else racks.
    fn new(problem: &PlaceProblem<'_>, nodes: &[NodeIdx]) -> Self {
        let topology = &*problem.snapshot.topology;
        let switch = |node: NodeIdx| {
            let network = topology.network.as_deref()?;
            network.attachment(topology.vertex.get(node.at()).copied().flatten()?)
        };
        let all: Vec<NodeIdx> = problem.snapshot.statics.indexes().collect();
        let at: Option<Vec<VertexIdx>> = all.iter().map(|&node| switch(node)).collect();
        let Some(at) = at else {
            let rack = |node: NodeIdx| problem.snapshot.rack(node).at();
            let row_of = all.iter().map(|&node| (node, rack(node))).collect();
            return Self { row: nodes.iter().map(|&node| rack(node)).collect(), row_of, table: None };
        };
        let mut places = at.clone();
        places.sort_unstable();
        places.dedup();
        let row = |switch: &VertexIdx| places.binary_search(switch).expect("it is among them");
        let row_of: BTreeMap<NodeIdx, usize> = all.iter().zip(&at).map(|(&node, at)| (node, row(at))).collect();
        let table = topology.network.as_deref().map(|network| HopTable::new(network, &places, &places));
        Self { row: nodes.iter().map(|node| row_of[node]).collect(), row_of, table }
    }

    /// Between two nodes by position; 0 on one node.
    fn between(&self, a: usize, b: usize) -> f64 {
        if a == b { 0.0 } else { self.rows(self.row[a], self.row[b]) }
    }

    fn to_node(&self, at: usize, other: NodeIdx, own: NodeIdx) -> f64 {
        if own == other { 0.0 } else { self.rows(self.row[at], self.row_of.get(&other).copied().unwrap_or(usize::MAX)) }
    }

    fn rows(&self, a: usize, b: usize) -> f64 {
        match &self.table {
            None if a == b => IN_RACK,
            None => BETWEEN_RACKS,
            Some(_) if b == usize::MAX => BETWEEN_RACKS,
            Some(table) => match table.get(a, b) {
                // Cut off: dearer than any way.
                HopTable::NONE => f64::from(HopTable::NONE),
                hops => IN_RACK + f64::from(hops),
            },
        }
    }
}
