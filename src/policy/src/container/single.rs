//! One container: every candidate is priced, so the answer is the optimum.

use super::cost::Norms;
use crate::load::load;
use crate::problem::PlaceProblem;
use hintd_model::units::NodeIdx;

/// The cheapest candidate of the only container of `group`; of equal ones the first by index.
pub(super) fn best_node(problem: &PlaceProblem<'_>, group: usize, norms: &Norms) -> Option<NodeIdx> {
    let asked = &problem.groups[group];
    let mut hops = HopsTo::new(problem, norms.diameter);
    let mut best: Option<(f64, NodeIdx)> = None;
    for &node in asked.candidates.iter() {
        let locality = if norms.input > 0.0 { locality(problem, group, node, norms) } else { 0.0 };
        let togetherness = norms.togetherness(hops.of(node));
        // The load is the dearest to read; without it the price is a lower bound.
        let bound = norms.value(togetherness, locality, norms.balance(1, 0.0));
        if best.is_some_and(|(cost, _)| bound >= cost) {
            continue;
        }
        let room = problem.room(node);
        if !problem.snapshot.rules.feasible(&asked.size, &room) {
            continue;
        }
        let before = load(problem.snapshot, node, &room);
        let after = load(problem.snapshot, node, &room.minus(&asked.size));
        let cost = norms.value(togetherness, locality, norms.balance(1, after * after - before * before));
        if best.is_none_or(|(known, _)| cost < known) {
            best = Some((cost, node));
        }
    }
    best.map(|(_, node)| node)
}

fn locality(problem: &PlaceProblem<'_>, group: usize, node: NodeIdx, norms: &Norms) -> f64 {
    let input = &problem.groups[group].input;
    let bytes = input.on(node).iter().map(|&block| input.blocks[block as usize].bytes.0).sum();
    norms.locality(bytes, bytes)
}

/// Hops from a node to all anchors, remembered by switch.
struct HopsTo<'p, 's> {
    problem: &'p PlaceProblem<'s>,
    diameter: u8,
    by_edge: Vec<Option<u64>>,
}

impl<'p, 's> HopsTo<'p, 's> {
    fn new(problem: &'p PlaceProblem<'s>, diameter: u8) -> Self {
        let edges = if problem.anchors.is_empty() { 0 } else { problem.snapshot.topology.distances.edges() };
        Self { problem, diameter, by_edge: vec![None; edges] }
    }

    fn of(&mut self, node: NodeIdx) -> u64 {
        if self.problem.anchors.is_empty() {
            return 0;
        }
        let topology = &self.problem.snapshot.topology;
        let edge = topology.edge.get(node.at()).copied().flatten();
        if let Some(known) = edge.and_then(|edge| self.by_edge[edge.at()]) {
            return known;
        }
        let apart = |other: NodeIdx| match topology.core_hops(node, other) {
            _ if node == other => 0,
            hops => u64::from(hops.unwrap_or(self.diameter)),
        };
        let anchors = self.problem.anchors.iter();
        let sum = anchors.map(|anchor| u64::from(anchor.count) * apart(anchor.node)).sum();
        if let Some(edge) = edge {
            self.by_edge[edge.at()] = Some(sum);
        }
        sum
    }
}
