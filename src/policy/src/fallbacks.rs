//! Next best hosts beside a placement's: where the scheduler should look if the preferred host is taken.

use super::load::load;
use super::place::Placement;
use super::problem::PlaceProblem;
use hintd_model::cluster::Resource;
use hintd_model::units::{Bytes, NodeIdx};
use std::collections::BTreeMap;

/// Next best hosts of a hint in production: the default of `placer.fallbacks` and of `hintctl place`.
pub const DEFAULT_FALLBACKS: usize = 2;

/// Ranks hosts for one placement: made once, asked for each hint.
#[derive(Debug, Clone)]
pub struct Fallbacks<'p, 's> {
    problem: &'p PlaceProblem<'s>,
    taken: BTreeMap<NodeIdx, Resource>,
    /// By node; `None`: none is preferred to others.
    kept: Option<&'p [bool]>,
}

/// How good a host is; the least, field by field, is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Core hops from the preferred host.
    hops: u8,
    /// Bytes of input that are not there.
    missing: u64,
    /// Parts per million.
    load: u32,
    node: NodeIdx,
}

/// What hosts are ranked beside.
#[derive(Debug, Clone, Copy)]
struct Beside {
    group: usize,
    preferred: NodeIdx,
    /// Those that the request is kept to, or the others; `None`: whichever.
    kept: Option<bool>,
}

impl<'p, 's> Fallbacks<'p, 's> {
    /// For `placement`, whose containers count as placed.
    #[must_use]
    pub fn new(problem: &'p PlaceProblem<'s>, placement: &Placement) -> Self {
        let mut taken: BTreeMap<NodeIdx, Resource> = BTreeMap::new();
        for (group, shares) in problem.groups.iter().zip(&placement.groups) {
            for share in shares {
                let sum = taken.entry(share.node).or_default();
                *sum = sum.plus(&group.size.times(u64::from(share.count)));
            }
        }
        Self { problem, taken, kept: None }
    }

    /// The same, with others than these nodes named only where there are too few of them.
    #[must_use]
    pub fn keeping_to(self, kept: Option<&'p [bool]>) -> Self {
        Self { kept, ..self }
    }

    /// At most `most` candidates of the group with room for one container more, best first, without `preferred`:
    /// nodes of its rack by input and load, then nodes with input and, if still too few, others, by distance,
    /// input and load. Looks at the rack, at the nodes with input, and at as many others as it takes.
    #[must_use]
    pub fn rank(&self, group: usize, preferred: NodeIdx, most: usize) -> Vec<NodeIdx> {
        let first = Beside { group, preferred, kept: self.kept.map(|_| true) };
        let mut ranked = self.ranked(first, most);
        if self.kept.is_some() && ranked.len() < most {
            ranked.extend(self.ranked(Beside { kept: Some(false), ..first }, most - ranked.len()));
        }
        ranked
    }

    fn ranked(&self, beside: Beside, most: usize) -> Vec<NodeIdx> {
        let asked = &self.problem.groups[beside.group];
        let rack = self.problem.snapshot.rack(beside.preferred);
        let mates = self.problem.snapshot.statics.members[rack.at()].iter().copied();
        let mut ranked = self.sorted(beside, mates);
        if ranked.len() < most {
            let elsewhere = |node: &NodeIdx| self.problem.snapshot.rack(*node) != rack;
            let with_input = asked.input.by_node.iter().map(|(node, _)| *node).filter(elsewhere);
            ranked.extend(self.sorted(beside, with_input));
        }
        if ranked.len() < most {
            ranked.extend(self.others(beside, most - ranked.len(), &ranked));
        }
        ranked.truncate(most);
        ranked
    }

    fn sorted(&self, beside: Beside, nodes: impl Iterator<Item = NodeIdx>) -> Vec<NodeIdx> {
        let mut ranks: Vec<Rank> = nodes.filter_map(|node| self.rank_of(beside, node)).collect();
        ranks.sort_unstable();
        ranks.into_iter().map(|rank| rank.node).collect()
    }

    /// Candidates after the preferred one, round and round, until enough are found: racks follow each other by
    /// index, so neighbours come first.
    fn others(&self, beside: Beside, most: usize, known: &[NodeIdx]) -> Vec<NodeIdx> {
        let candidates = &self.problem.groups[beside.group].candidates;
        let start = candidates.partition_point(|node| *node <= beside.preferred);
        let (before, after) = candidates.split_at(start);
        let fresh = after.iter().chain(before).copied().filter(|node| !known.contains(node));
        let found: Vec<NodeIdx> = fresh.filter(|&node| self.rank_of(beside, node).is_some()).take(most).collect();
        self.sorted(beside, found.into_iter())
    }

    /// `None` for the preferred node itself, for one of the other kind, and where there is no room.
    fn rank_of(&self, beside: Beside, node: NodeIdx) -> Option<Rank> {
        let Beside { group, preferred, kept } = beside;
        let (problem, asked) = (self.problem, &self.problem.groups[group]);
        let of_other_kind = self.kept.zip(kept).is_some_and(|(nodes, kept)| nodes[node.at()] != kept);
        let elsewhere = asked.planned.as_ref().is_some_and(|it| it.only && !it.has(problem.snapshot.rack(node)));
        if node == preferred || of_other_kind || elsewhere || asked.candidates.binary_search(&node).is_err() {
            return None;
        }
        let room = problem.room(node);
        let room = self.taken.get(&node).map_or(room, |taken| room.minus(taken));
        if !problem.snapshot.rules.feasible(&asked.size, &room) {
            return None;
        }
        let here: Bytes = Bytes(asked.input.on(node).iter().map(|&at| asked.input.blocks[at as usize].bytes.0).sum());
        let hops = problem.snapshot.topology.core_hops(preferred, node).unwrap_or(u8::MAX);
        let used = (load(problem.snapshot, node, &room) * 1e6) as u32;
        Some(Rank { hops, missing: asked.input.bytes.saturating_sub(here).0, load: used, node })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{Ended, Share};
    use crate::problem::{InputBlock, InputBlocks};
    use crate::sample::cluster;
    use hintd_model::network::build::{TreeSpec, tree};
    use std::sync::Arc;

    const UNIT: Resource = Resource::new(1024, 1);

    fn placement(shares: &[(u32, u32)]) -> Placement {
        let groups = vec![shares.iter().map(|&(node, count)| Share { node: NodeIdx(node), count }).collect()];
        Placement {
            groups,
            routes: Vec::new(),
            objective: 0.0,
            parts: vec![],
            ended: Ended::Complete,
            gap: None,
            steps: 0,
        }
    }

    #[test]
    fn the_rack_comes_first_then_input_then_the_rest_and_never_a_full_node() {
        let spec = TreeSpec { racks: 3, hosts_per_rack: 4, ..TreeSpec::default() };
        let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
        sample.snapshot.occupied[1] = UNIT.times(3);
        sample.snapshot.occupied[2] = UNIT.times(4);
        let mut group = sample.group("g", 4, UNIT);
        let block = InputBlock { bytes: Bytes(1), nodes: [NodeIdx(3), NodeIdx(9)].into_iter().collect() };
        group.input = Arc::new(InputBlocks::new(vec![block]));
        let problem = sample.problem(vec![group], vec![], vec![]);
        let nodes = |ranked: Vec<NodeIdx>| ranked.into_iter().map(|node| node.0).collect::<Vec<_>>();
        let ranker = Fallbacks::new(&problem, &placement(&[(0, 1)]));
        assert_eq!(nodes(ranker.rank(0, NodeIdx(0), 5)), [3, 1, 9, 4, 5]);
        assert_eq!(nodes(ranker.rank(0, NodeIdx(0), 1)), [3]);
        assert_eq!(nodes(ranker.rank(0, NodeIdx(0), 99)).len(), 10, "all but itself and the full one");
        let ranker = Fallbacks::new(&problem, &placement(&[(0, 1), (3, 4)]));
        assert_eq!(nodes(ranker.rank(0, NodeIdx(0), 2)), [1, 9], "3 is full of this placement itself");
    }

    #[test]
    fn nodes_that_a_request_is_kept_to_come_before_all_others_however_near_these_are() {
        let spec = TreeSpec { racks: 2, hosts_per_rack: 3, ..TreeSpec::default() };
        let sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
        let problem = sample.problem(vec![sample.group("g", 4, UNIT)], vec![], vec![]);
        let placed = placement(&[(0, 1)]);
        let kept = [true, false, false, false, true, true];
        let nodes = |kept: Option<&[bool]>, most| {
            let ranked = Fallbacks::new(&problem, &placed).keeping_to(kept).rank(0, NodeIdx(0), most);
            ranked.into_iter().map(|node| node.0).collect::<Vec<_>>()
        };
        assert_eq!(nodes(None, 2), [1, 2]);
        assert_eq!(nodes(Some(&kept), 2), [4, 5]);
        assert_eq!(nodes(Some(&kept), 4), [4, 5, 1, 2], "others where there are too few");
    }
}
