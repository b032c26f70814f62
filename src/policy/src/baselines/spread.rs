//! `spread`: least-loaded nodes first, each container of a group on a node of its own while there are any.

use crate::load::load_ppm;
use crate::params::{Invalid, Params};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::units::NodeIdx;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Its name.
pub const NAME: &str = "spread";

/// It has no parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadParams {}

impl Params for SpreadParams {
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    params: SpreadParams,
}

impl Definition for Spread {
    type Params = SpreadParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "the nodes with least load first, containers of a group on different nodes";

    fn new(params: SpreadParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &SpreadParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), ..Capabilities::default() }
    }
}

impl Place for Spread {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let mut filling = PlacementBuilder::new(problem);
        for group in by_priority(problem) {
            let count = problem.groups[group].count;
            match least(problem, &filling, group, count as usize) {
                Some(nodes) => (0..count).zip(nodes).for_each(|(task, node)| filling.put(group, task, node)),
                None => fill(problem, &mut filling, group, budget),
            }
        }
        Ok(filling.finish(budget))
    }

    fn knows_senders(&self) -> bool {
        true // stock YARN and the like go by none
    }
}

/// How good a node is; the least, field by field, is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Containers of the group there.
    of_group: u32,
    /// Parts per million.
    load: u32,
    /// Equal loads go by a seeded shuffle of nodes, so that like requests do not all meet on the first node.
    shuffled: u32,
    node: NodeIdx,
}

fn rank(problem: &PlaceProblem<'_>, filling: &PlacementBuilder<'_, '_>, group: usize, node: NodeIdx) -> Option<Rank> {
    let room = filling.room_if_fits(group, node)?;
    let load = load_ppm(problem.snapshot, node, &room);
    Some(Rank { of_group: filling.on_node(group, node), load, shuffled: shuffled(problem, node), node })
}

fn shuffled(problem: &PlaceProblem<'_>, node: NodeIdx) -> u32 {
    (node.0 ^ problem.seed as u32).wrapping_mul(0x9e37_79b1)
}

/// The nodes of the `count` least ranks, least first: where a group goes whose containers all find a node of their
/// own. `None` where there are not so many nodes, or where a bound by rack may rule nodes out on the way.
fn least(
    problem: &PlaceProblem<'_>,
    filling: &PlacementBuilder<'_, '_>,
    group: usize,
    count: usize,
) -> Option<impl Iterator<Item = NodeIdx> + use<>> {
    let asked = &problem.groups[group];
    if asked.max_per_rack != u32::MAX || count > asked.candidates.len() {
        return None;
    }
    let unread = |node: NodeIdx| !problem.leases.takes(node) && !filling.touched(node);
    // Largest first: what the next node has to be below.
    let mut best: BinaryHeap<Rank> = BinaryHeap::with_capacity(count);
    for &node in asked.candidates.iter() {
        let rank = match problem.loads {
            Some(loads) if unread(node) => {
                Some(Rank { of_group: 0, load: loads[node.at()], shuffled: shuffled(problem, node), node })
            }
            _ => rank(problem, filling, group, node),
        };
        let Some(rank) = rank else { continue };
        if best.len() < count {
            best.push(rank);
        } else if let Some(mut worst) = best.peek_mut()
            && rank < *worst
        {
            *worst = rank;
        }
    }
    (best.len() == count).then(|| best.into_sorted_vec().into_iter().map(|rank| rank.node))
}

/// Heap of all candidates, made in linear time; a node comes back with its new rank after each container.
fn fill(problem: &PlaceProblem<'_>, filling: &mut PlacementBuilder<'_, '_>, group: usize, budget: &mut Budget<'_>) {
    let candidates = problem.groups[group].candidates.iter();
    let ranks = candidates.filter_map(|&node| rank(problem, filling, group, node));
    let mut heap: BinaryHeap<Reverse<Rank>> = ranks.map(Reverse).collect();
    let mut task = 0;
    while task < problem.groups[group].count && !budget.over() {
        let Some(Reverse(Rank { node, .. })) = heap.pop() else { break };
        // A rack bound may have been reached since.
        if !filling.fits(group, node) {
            continue;
        }
        filling.put(group, task, node);
        task += 1;
        heap.extend(rank(problem, filling, group, node).map(Reverse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::loads;
    use crate::sample::cluster;
    use hintd_model::cluster::Resource;
    use hintd_model::network::build::{TreeSpec, tree};
    use hintd_model::units::Bytes;
    use proptest::prelude::*;

    const UNIT: Resource = Resource::new(1024, 1);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_least_ranks_and_kept_loads_place_as_the_heap_of_all_does(
            seed in any::<u32>(), counts in prop::collection::vec(1_u32..30, 1..3), per_node in 0_u32..3, kept in any::<bool>(),
        ) {
            let spec = TreeSpec { racks: 4, hosts_per_rack: 5, ..TreeSpec::default() };
            let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
            sample.occupy(UNIT, 4, u64::from(seed));
            for node in 0..5 {
                sample.leases.set(NodeIdx(seed % 13 + node), UNIT.times(u64::from(node % 3)));
            }
            let groups = counts.iter().map(|&count| {
                let mut group = sample.group("g", count, UNIT);
                group.max_per_node = if per_node == 0 { u32::MAX } else { per_node };
                group
            });
            let mut problem = sample.problem(groups.collect(), vec![], vec![]);
            problem.seed = u64::from(seed);
            let mut never = || false;
            let mut budget = Budget::new(0, &mut never);
            let mut filling = PlacementBuilder::new(&problem);
            for group in by_priority(&problem) {
                fill(&problem, &mut filling, group, &mut budget);
            }
            let expected = filling.finish(&budget).groups;
            let column = loads(&sample.snapshot);
            problem.loads = kept.then_some(&column[..]);
            let mut never = || false;
            let placed = Spread::default().place(&problem, &mut Budget::new(u64::MAX, &mut never)).unwrap();
            prop_assert_eq!(placed.groups, expected);
        }
    }
}
