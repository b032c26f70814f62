//! Edges between placed tasks as like flows between nodes.

use hintd_model::cluster::EdgePattern;
use hintd_model::units::{Bytes, NodeIdx};
use hintd_policy::Share;
use hintd_policy::problem::EdgeProblem;
use std::collections::BTreeMap;

/// Pairs of tasks on one pair of nodes, each of which sends as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UniformTraffic {
    pub(super) from: NodeIdx,
    pub(super) to: NodeIdx,
    /// Pairs of tasks, at least one.
    pub(super) members: u32,
    /// Each one's.
    pub(super) bytes: Bytes,
}

/// The pairs of tasks that an edge joins, in the order of senders and receivers: of an all-to-all edge all, within one
/// group all different tasks; of a one-to-one edge task i and task i modulo the other's count. The edge's bytes are
/// spread evenly; where they do not divide, the first pairs send a byte more.
pub(super) fn spread(edge: &EdgeProblem, groups: &[Vec<Share>]) -> Vec<UniformTraffic> {
    let pairs = match edge.pattern {
        EdgePattern::AllToAll => all_to_all(edge, groups),
        EdgePattern::OneToOne => one_to_one(edge, groups),
    };
    let count: u64 = pairs.iter().map(|(_, members)| members).sum();
    if count == 0 {
        return Vec::new();
    }
    let (each, mut more) = (edge.bytes.0 / count, edge.bytes.0 % count);
    let mut likes = Vec::with_capacity(pairs.len());
    for ((from, to), members) in pairs {
        let larger = more.min(members);
        more -= larger;
        for (members, bytes) in [(larger, each + 1), (members - larger, each)] {
            if members > 0 && bytes > 0 {
                likes.push(UniformTraffic { from, to, members: members as u32, bytes: Bytes(bytes) });
            }
        }
    }
    likes
}

type Pairs = Vec<((NodeIdx, NodeIdx), u64)>;

fn all_to_all(edge: &EdgeProblem, groups: &[Vec<Share>]) -> Pairs {
    let by_node = |group: usize| {
        let mut counts: BTreeMap<NodeIdx, u64> = BTreeMap::new();
        groups[group].iter().for_each(|share| *counts.entry(share.node).or_default() += u64::from(share.count));
        counts
    };
    let (senders, receivers) = (by_node(edge.from.at()), by_node(edge.to.at()));
    let mut pairs = Vec::new();
    for (&from, &count) in &senders {
        for (&to, &others) in &receivers {
            let itself = u64::from(edge.from == edge.to && from == to);
            let members = count * (others - itself);
            if members > 0 {
                pairs.push(((from, to), members));
            }
        }
    }
    pairs
}

fn one_to_one(edge: &EdgeProblem, groups: &[Vec<Share>]) -> Pairs {
    let tasks = |group: usize| -> Vec<NodeIdx> {
        let each = |share: &Share| std::iter::repeat_n(share.node, share.count as usize);
        groups[group].iter().flat_map(each).collect()
    };
    let (from, to) = (tasks(edge.from.at()), tasks(edge.to.at()));
    if from.is_empty() || to.is_empty() {
        return Vec::new();
    }
    let mut pairs: BTreeMap<(NodeIdx, NodeIdx), u64> = BTreeMap::new();
    for task in 0..from.len().max(to.len()) {
        *pairs.entry((from[task % from.len()], to[task % to.len()])).or_default() += 1;
    }
    pairs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::GroupIdx;
    use proptest::prelude::*;

    fn edge(from: usize, to: usize, pattern: EdgePattern, bytes: u64) -> EdgeProblem {
        EdgeProblem { from: GroupIdx::new(from), to: GroupIdx::new(to), pattern, bytes: Bytes(bytes) }
    }

    fn shares(counts: &[(u32, u32)]) -> Vec<Share> {
        counts.iter().map(|&(node, count)| Share { node: NodeIdx(node), count }).collect()
    }

    #[test]
    fn tasks_of_one_group_send_to_all_others_but_not_to_themselves() {
        let groups = [shares(&[(0, 2), (1, 1)])];
        let likes = spread(&edge(0, 0, EdgePattern::AllToAll, 600), &groups);
        let flat: Vec<_> = likes.iter().map(|like| (like.from.0, like.to.0, like.members, like.bytes.0)).collect();
        assert_eq!(flat, [(0, 0, 2, 100), (0, 1, 2, 100), (1, 0, 2, 100)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_byte_of_an_edge_is_spread_once(
            from in prop::collection::vec(1_u32..4, 1..5),
            to in prop::collection::vec(1_u32..4, 1..5),
            bytes in 0_u64..2_000,
            each in any::<bool>(),
        ) {
            let place = |counts: &[u32]| (0..).zip(counts).map(|(node, &count)| Share { node: NodeIdx(node), count }).collect();
            let groups: [Vec<Share>; 2] = [place(&from), place(&to)];
            let pattern = if each { EdgePattern::OneToOne } else { EdgePattern::AllToAll };
            let likes = spread(&edge(0, 1, pattern, bytes), &groups);
            prop_assert_eq!(likes.iter().map(|like| u64::from(like.members) * like.bytes.0).sum::<u64>(), bytes);
            let least = likes.iter().map(|like| like.bytes.0).min().unwrap_or(0);
            prop_assert!(likes.iter().all(|like| like.bytes.0 <= least + 1));
        }
    }
}
