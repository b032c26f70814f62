//! Groups that nobody known sends to: near one of the replicas of what they read; where nothing is known, spread.

use crate::PlaceProblem;
use crate::placement_builder::PlacementBuilder;
use crate::problem::InputBlock;
use hintd_model::units::{NodeIdx, RackIdx};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Over how many racks readers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// Each where fewest are among the nodes of its replicas.
    All,
    /// Each in the first of few racks that have a replica of what it reads.
    FewRacks,
    /// As `All`; who sends within its own group is in so many racks.
    Within(usize),
}

/// Puts the group's tasks: each at a replica, else in a rack of one, else anywhere; equals by load.
pub(super) fn place(problem: &PlaceProblem<'_>, filling: &mut PlacementBuilder<'_, '_>, group: usize, width: Width) {
    let asked = &problem.groups[group];
    let count = asked.count as usize;
    let blocks = |task: usize| asked.input.of_task(task, count);
    let preferred = match width {
        Width::All | Width::Within(_) => BTreeMap::new(),
        Width::FewRacks => cover(problem, group),
    };
    let mut left = Vec::new();
    for task in 0..count {
        let nodes = nodes_by_bytes(blocks(task));
        // A replica may lie on a node that the group can't use.
        let may = |node: NodeIdx| asked.candidates.binary_search(&node).is_ok() && filling.fits(group, node);
        let best = nodes.iter().filter(|(_, node)| may(*node)).min_by_key(|&&(bytes, node)| {
            let rack = preferred.get(&problem.snapshot.rack(node)).copied().unwrap_or(usize::MAX);
            (bytes, rack, filling.on_node(group, node), problem.rank(node), node)
        });
        match best {
            Some(&(_, node)) => filling.put(group, task as u32, node),
            None => left.push((task as u32, nodes)),
        }
    }
    if left.is_empty() {
        return;
    }
    let mut spread = Spread::new(problem, filling, group);
    for (task, nodes) in left {
        let racks: BTreeSet<RackIdx> = nodes.iter().map(|(_, node)| problem.snapshot.rack(*node)).collect();
        let near = racks.iter().filter_map(|&rack| spread.first_in(filling, rack)).min();
        let Some(Candidate { node, .. }) = near.or_else(|| spread.first(filling)) else { continue };
        spread.put(filling, task, node);
    }
}

/// Nodes with replicas of what a task reads, most bytes first.
fn nodes_by_bytes(blocks: &[InputBlock]) -> Vec<(Reverse<u64>, NodeIdx)> {
    let mut bytes: BTreeMap<NodeIdx, u64> = BTreeMap::new();
    for block in blocks {
        block.nodes.iter().for_each(|&node| *bytes.entry(node).or_default() += block.bytes.0);
    }
    let mut nodes: Vec<_> = bytes.into_iter().map(|(node, bytes)| (Reverse(bytes), node)).collect();
    nodes.sort_unstable();
    nodes
}

/// Racks in the order in which they should be used: each next one has replicas for most of the tasks that those before
/// have none for.
fn cover(problem: &PlaceProblem<'_>, group: usize) -> BTreeMap<RackIdx, usize> {
    let asked = &problem.groups[group];
    let count = asked.count as usize;
    let mut tasks: BTreeMap<RackIdx, BTreeSet<usize>> = BTreeMap::new();
    for task in 0..count {
        for (_, node) in nodes_by_bytes(asked.input.of_task(task, count)) {
            tasks.entry(problem.snapshot.rack(node)).or_default().insert(task);
        }
    }
    let mut order = BTreeMap::new();
    let mut open: BTreeSet<usize> = (0..count).collect();
    while !open.is_empty() {
        let rank = |(rack, tasks): &(&RackIdx, &BTreeSet<usize>)| {
            (tasks.intersection(&open).count(), tasks.len(), Reverse(**rack))
        };
        let Some(rack) = tasks.iter().max_by_key(rank).map(|(&rack, _)| rack) else { break };
        let covered = tasks.remove(&rack).unwrap_or_default();
        open.retain(|task| !covered.contains(task));
        order.insert(rack, order.len());
    }
    // The others have replicas for nobody who has none yet: each look at all of them would be in vain.
    let mut others: Vec<_> = tasks.iter().map(|(&rack, tasks)| (Reverse(tasks.len()), rack)).collect();
    others.sort_unstable();
    for (_, rack) in others {
        order.insert(rack, order.len());
    }
    order
}

/// A node that a group may use, in the order in which nodes are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Of the group, on the node.
    pub(super) containers: u32,
    /// As the problem ranks nodes.
    pub(super) rank: u32,
    pub(super) node: NodeIdx,
}

impl Candidate {
    pub(super) fn of(
        problem: &PlaceProblem<'_>,
        filling: &PlacementBuilder<'_, '_>,
        group: usize,
        node: NodeIdx,
    ) -> Self {
        Self { containers: filling.on_node(group, node), rank: problem.rank(node), node }
    }
}

/// Nodes with room, fewest containers of the group first.
struct Spread<'p, 's> {
    problem: &'p PlaceProblem<'s>,
    group: usize,
    by_rack: BTreeMap<RackIdx, BTreeSet<Candidate>>,
    all: BTreeSet<Candidate>,
}

impl<'p, 's> Spread<'p, 's> {
    fn new(problem: &'p PlaceProblem<'s>, filling: &PlacementBuilder<'_, '_>, group: usize) -> Self {
        let candidate = |&node: &NodeIdx| Candidate::of(problem, filling, group, node);
        let all: BTreeSet<_> = problem.groups[group].candidates.iter().map(candidate).collect();
        let mut by_rack: BTreeMap<RackIdx, BTreeSet<Candidate>> = BTreeMap::new();
        for &candidate in &all {
            by_rack.entry(problem.snapshot.rack(candidate.node)).or_default().insert(candidate);
        }
        Self { problem, group, by_rack, all }
    }

    fn put(&mut self, filling: &mut PlacementBuilder<'_, '_>, task: u32, node: NodeIdx) {
        let of_rack = self.by_rack.entry(self.problem.snapshot.rack(node)).or_default();
        let before = Candidate::of(self.problem, filling, self.group, node);
        filling.put(self.group, task, node);
        let after = Candidate { containers: filling.on_node(self.group, node), ..before };
        for nodes in [of_rack, &mut self.all] {
            nodes.remove(&before);
            nodes.insert(after);
        }
    }

    /// The rack's first node with room; those without are forgotten.
    fn first_in(&mut self, filling: &PlacementBuilder<'_, '_>, rack: RackIdx) -> Option<Candidate> {
        first_with_room(self.by_rack.get_mut(&rack)?, filling, self.group)
    }

    fn first(&mut self, filling: &PlacementBuilder<'_, '_>) -> Option<Candidate> {
        first_with_room(&mut self.all, filling, self.group)
    }
}

/// The first that the group's next container fits on; those before it never will be again.
pub(super) fn first_with_room(
    nodes: &mut BTreeSet<Candidate>,
    filling: &PlacementBuilder<'_, '_>,
    group: usize,
) -> Option<Candidate> {
    while let Some(&candidate) = nodes.first() {
        if filling.fits(group, candidate.node) {
            return Some(candidate);
        }
        nodes.pop_first();
    }
    None
}
