//! A request that is answered at once: containers of planned stages in their racks, each its part; the rest as the
//! dispatcher would launch it, had it the cluster to itself.
//!
//! A map goes where a replica of what it reads is, then into a rack with one, then where its stage has most left to place;
//! of a rack's nodes to the one with the fewest of the stage, as tasks that are packed on few nodes would have their links
//! share what a circuit brings.

use crate::place::{Ended, Share};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::problem::PlannedRacks;
use crate::{Budget, GroupProblem, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::cluster::{Gang, Overlay};
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Places planned groups by the plan, and all others, with what planned racks have no room for where that may go anywhere,
/// by `rest`.
///
/// # Errors
/// Those of `rest`.
pub(in crate::jobpacker) fn place_immediately(
    problem: &PlaceProblem<'_>,
    rest: &impl Place,
    budget: &mut Budget<'_>,
) -> Result<Placement, PlaceError> {
    if problem.groups.iter().all(|group| group.planned.is_none()) {
        return rest.place(problem, budget);
    }
    let mut filling = PlacementBuilder::new(problem);
    for group in by_priority(problem) {
        if let Some(planned) = &problem.groups[group].planned {
            Stage::new(problem, group, Arc::clone(planned)).place(&mut filling, budget);
        }
    }
    let placement = filling.finish(budget);
    let left = |at: usize| match &problem.groups[at].planned {
        Some(planned) if planned.only => 0,
        _ => problem.groups[at].count - placement.placed(at),
    };
    let left: Vec<(usize, u32)> =
        (0..problem.groups.len()).map(|at| (at, left(at))).filter(|left| left.1 > 0).collect();
    if left.is_empty() || placement.ended == Ended::Deadline {
        return Ok(placement);
    }
    let leases = taken(problem, &placement);
    let others = rest.place(&beside(problem, &placement, &left, &leases), budget)?;
    let both = together(placement, others, &left);
    let whole = problem.groups.iter().enumerate().all(|(at, group)| both.placed(at) == group.count);
    // Bounds on nodes or racks may leave too few beside the planned ones for who needs all.
    if problem.gang == Gang::All && !whole { rest.place(problem, budget) } else { Ok(both) }
}

/// A seed whose neighbours have others.
pub(super) const fn mix(seed: u64) -> u64 {
    (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7
}

/// A planned stage on its way.
struct Stage<'p, 's> {
    problem: &'p PlaceProblem<'s>,
    group: usize,
    planned: Arc<PlannedRacks>,
    /// Candidates in each of its racks, from the seed's on.
    nodes: Vec<Vec<NodeIdx>>,
    /// What each of its racks may still take.
    left: Vec<u32>,
}

impl<'p, 's> Stage<'p, 's> {
    fn new(problem: &'p PlaceProblem<'s>, group: usize, planned: Arc<PlannedRacks>) -> Self {
        let asked = &problem.groups[group];
        let mut nodes = vec![Vec::new(); planned.racks.len()];
        for &node in asked.candidates.iter() {
            if let Some(at) = position(&planned, problem.snapshot.rack(node)) {
                nodes[at].push(node);
            }
        }
        for nodes in &mut nodes {
            let start = problem.seed.checked_rem(nodes.len() as u64).unwrap_or(0);
            nodes.rotate_left(usize::try_from(start).unwrap_or(0));
        }
        let left = planned.quotas(mix(problem.seed));
        Self { problem, group, planned, nodes, left }
    }

    /// Nodes first, of all tasks; then racks; then the plan alone; then what room its racks have beyond their parts.
    fn place(mut self, filling: &mut PlacementBuilder<'_, '_>, budget: &mut Budget<'_>) {
        let asked = &self.problem.groups[self.group];
        let mut waiting: Vec<u32> = (0..asked.count).collect();
        for near in [RequiredLocality::Node, RequiredLocality::Rack, RequiredLocality::Part, RequiredLocality::Spare] {
            if near.reads() && asked.input.is_empty() {
                continue;
            }
            let mut still = Vec::new();
            let mut full = false;
            for task in waiting {
                // A rule that runs to its end: there is nothing to search.
                if budget.over() {
                    return;
                }
                match if full { None } else { self.node_for(task, near, filling) } {
                    Some((at, node)) => {
                        filling.put(self.group, task, node);
                        self.left[at] = self.left[at].saturating_sub(1);
                    }
                    None => {
                        still.push(task);
                        // Where it may go does not hang on what it reads, and all are of one size.
                        full |= !near.reads();
                    }
                }
            }
            waiting = still;
        }
    }

    /// Position of the rack, and the node.
    fn node_for(
        &self,
        task: u32,
        near: RequiredLocality,
        filling: &PlacementBuilder<'_, '_>,
    ) -> Option<(usize, NodeIdx)> {
        let racks = &self.problem.snapshot;
        let asked = &self.problem.groups[self.group];
        let reads = asked.input.of_task(task as usize, asked.count as usize);
        let replicas = reads.iter().flat_map(|block| block.nodes.iter().copied());
        let open = |at: &usize| self.left[*at] > 0;
        match near {
            RequiredLocality::Node => {
                let at_home = |node: NodeIdx| Some((position(&self.planned, racks.rack(node)).filter(open)?, node));
                let fits =
                    |&(at, node): &(usize, NodeIdx)| self.nodes[at].contains(&node) && filling.fits(self.group, node);
                let fewest = |&(_, node): &(usize, NodeIdx)| filling.on_node(self.group, node);
                replicas.filter_map(at_home).filter(fits).min_by_key(fewest)
            }
            RequiredLocality::Rack => {
                let mut near: Vec<usize> =
                    replicas.filter_map(|node| position(&self.planned, racks.rack(node))).filter(open).collect();
                near.sort_unstable();
                near.dedup();
                self.most_left(near, filling)
            }
            RequiredLocality::Part => self.most_left((0..self.left.len()).filter(open).collect(), filling),
            RequiredLocality::Spare => self.most_left((0..self.left.len()).collect(), filling),
        }
    }

    /// In the rack with most left that has a node with room: that with the fewest of the stage.
    fn most_left(&self, mut racks: Vec<usize>, filling: &PlacementBuilder<'_, '_>) -> Option<(usize, NodeIdx)> {
        racks.sort_by_key(|&at| std::cmp::Reverse(self.left[at]));
        racks.into_iter().find_map(|at| {
            let fits = self.nodes[at].iter().filter(|node| filling.fits(self.group, **node));
            fits.min_by_key(|node| filling.on_node(self.group, **node)).map(|&node| (at, node))
        })
    }
}

/// How near a task has to be to what it reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequiredLocality {
    Node,
    Rack,
    /// Wherever a planned rack has its part left.
    Part,
    /// Wherever a planned rack has room.
    Spare,
}

impl RequiredLocality {
    /// Whether it is about what the task reads.
    const fn reads(self) -> bool {
        matches!(self, Self::Node | Self::Rack)
    }
}

fn position(planned: &PlannedRacks, rack: RackIdx) -> Option<usize> {
    planned.racks.binary_search_by_key(&rack, |(rack, _)| *rack).ok()
}

/// Room that the placement takes, on top of leases.
fn taken(problem: &PlaceProblem<'_>, placement: &Placement) -> Overlay {
    let mut leases = problem.leases.clone();
    for (group, shares) in problem.groups.iter().zip(&placement.groups) {
        for share in shares {
            let more = group.size.times(u64::from(share.count));
            leases.set(share.node, leases.leased(share.node).plus(&more));
        }
    }
    leases
}

/// The problem of what is left, in the room that is left. Bounds know nothing of what is placed, so where there are some
/// no node, or rack, that has any of the group takes more of it. Of a group that is placed in part, which blocks are left to
/// read is not told: the rest is taken to read them all.
fn beside<'a>(
    problem: &PlaceProblem<'a>,
    placement: &Placement,
    left: &[(usize, u32)],
    leases: &'a Overlay,
) -> PlaceProblem<'a> {
    let snapshot = problem.snapshot;
    let group = |&(at, count): &(usize, u32)| {
        let group = &problem.groups[at];
        let has = |of: &dyn Fn(NodeIdx) -> bool| placement.groups[at].iter().any(|share| of(share.node));
        let full = |node: NodeIdx| {
            group.max_per_node != u32::MAX && has(&|other| other == node)
                || group.max_per_rack != u32::MAX && has(&|other| snapshot.rack(other) == snapshot.rack(node))
        };
        let fits = |node: NodeIdx| snapshot.rules.feasible(&group.size, &snapshot.room(node, leases)) && !full(node);
        let candidates = group.candidates.iter().copied().filter(|&node| fits(node)).collect();
        GroupProblem { count, planned: None, candidates, ..group.clone() }
    };
    PlaceProblem {
        leases,
        loads: None,
        rates: None,
        groups: left.iter().map(group).collect(),
        edges: Vec::new(),
        senders: Vec::new(),
        earlier: Vec::new(),
        scattered: Vec::new(),
        ..problem.clone()
    }
}

/// One placement of both.
fn together(mut placement: Placement, others: Placement, left: &[(usize, u32)]) -> Placement {
    for (&(at, _), shares) in left.iter().zip(others.groups) {
        let mut by_node: BTreeMap<NodeIdx, usize> =
            placement.groups[at].iter().enumerate().map(|(position, share)| (share.node, position)).collect();
        for Share { node, count } in shares {
            match by_node.get(&node) {
                Some(&position) => placement.groups[at][position].count += count,
                None => {
                    by_node.insert(node, placement.groups[at].len());
                    placement.groups[at].push(Share { node, count });
                }
            }
        }
    }
    // The budget counted on.
    (placement.steps, placement.ended) = (others.steps, others.ended);
    placement
}
