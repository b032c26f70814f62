//! An independent check that a placement stays within its problem: engine and simulator use it as an invariant.

use super::place::Placement;
use super::problem::PlaceProblem;
use hintd_model::cluster::Resource;
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::BTreeMap;

/// One way in which a placement is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Groups are missing or too many.
    #[error("{placed} groups are placed where {asked} are asked for")]
    Groups {
        /// In the placement.
        placed: usize,
        /// In the problem.
        asked: usize,
    },
    /// More containers than asked for.
    #[error("group {group}: {placed} containers where {asked} are asked for")]
    TooMany {
        /// Position of the group.
        group: usize,
        /// Placed.
        placed: u64,
        /// Asked for.
        asked: u32,
    },
    /// A share of nothing.
    #[error("group {group}: a share of 0 containers on node {}", node.0)]
    EmptyShare {
        /// Position of the group.
        group: usize,
        /// Where.
        node: NodeIdx,
    },
    /// A node that is ruled out for the group: wrong label, avoided, not running, too full.
    #[error("group {group}: node {} is no candidate", node.0)]
    NotACandidate {
        /// Position of the group.
        group: usize,
        /// Where.
        node: NodeIdx,
    },
    /// A node that is not RUNNING.
    #[error("node {} is not running", node.0)]
    NotRunning {
        /// Where.
        node: NodeIdx,
    },
    /// More than the room of a node.
    #[error("node {} has no room for what is placed on it", node.0)]
    NoRoom {
        /// Where.
        node: NodeIdx,
    },
    /// More of a group on a node than its bound.
    #[error("group {group}: {count} containers on node {} where {most} are allowed", node.0)]
    NodeBound {
        /// Position of the group.
        group: usize,
        /// Where.
        node: NodeIdx,
        /// Placed.
        count: u64,
        /// Allowed.
        most: u32,
    },
    /// More of a group in a rack than its bound.
    #[error("group {group}: {count} containers in rack {} where {most} are allowed", rack.0)]
    RackBound {
        /// Position of the group.
        group: usize,
        /// Where.
        rack: RackIdx,
        /// Placed.
        count: u64,
        /// Allowed.
        most: u32,
    },
}

/// Everything about `placement` that `problem` does not allow; empty: nothing.
#[must_use]
pub fn check(problem: &PlaceProblem<'_>, placement: &Placement) -> Vec<Violation> {
    let mut found = Vec::new();
    if placement.groups.len() != problem.groups.len() {
        found.push(Violation::Groups { placed: placement.groups.len(), asked: problem.groups.len() });
        return found;
    }
    let mut taken: BTreeMap<NodeIdx, Resource> = BTreeMap::new();
    for group in 0..problem.groups.len() {
        check_group(problem, placement, group, &mut taken, &mut found);
    }
    for (node, taken) in taken {
        if !problem.snapshot.state[node.at()].usable() {
            found.push(Violation::NotRunning { node });
        }
        if !problem.snapshot.rules.feasible(&taken, &problem.room(node)) {
            found.push(Violation::NoRoom { node });
        }
    }
    found
}

fn check_group(
    problem: &PlaceProblem<'_>,
    placement: &Placement,
    group: usize,
    taken: &mut BTreeMap<NodeIdx, Resource>,
    found: &mut Vec<Violation>,
) {
    let asked = &problem.groups[group];
    let mut on_node: BTreeMap<NodeIdx, u64> = BTreeMap::new();
    let mut in_rack: BTreeMap<RackIdx, u64> = BTreeMap::new();
    for share in &placement.groups[group] {
        if !asked.candidates.contains(&share.node) {
            found.push(Violation::NotACandidate { group, node: share.node });
            continue;
        }
        if share.count == 0 {
            found.push(Violation::EmptyShare { group, node: share.node });
        }
        *on_node.entry(share.node).or_default() += u64::from(share.count);
        *in_rack.entry(problem.snapshot.rack(share.node)).or_default() += u64::from(share.count);
        let sum = taken.entry(share.node).or_default();
        *sum = sum.plus(&asked.size.times(u64::from(share.count)));
    }
    let placed = on_node.values().sum();
    if placed > u64::from(asked.count) {
        found.push(Violation::TooMany { group, placed, asked: asked.count });
    }
    let (per_node, per_rack) = (asked.max_per_node, asked.max_per_rack);
    let nodes = on_node.into_iter().filter(|(_, count)| *count > u64::from(per_node));
    found.extend(nodes.map(|(node, count)| Violation::NodeBound { group, node, count, most: per_node }));
    let racks = in_rack.into_iter().filter(|(_, count)| *count > u64::from(per_rack));
    found.extend(racks.map(|(rack, count)| Violation::RackBound { group, rack, count, most: per_rack }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{Ended, Share};
    use crate::sample::cluster;
    use hintd_model::cluster::NodeState;
    use hintd_model::network::build::{TreeSpec, tree};
    use hintd_model::units::Bytes;

    fn placement(groups: Vec<Vec<(u32, u32)>>) -> Placement {
        let share = |&(node, count): &(u32, u32)| Share { node: NodeIdx(node), count };
        let groups = groups.iter().map(|group| group.iter().map(share).collect()).collect();
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
    fn each_rule_that_is_broken_is_named() {
        let mut sample = cluster(&tree(&TreeSpec::default()).unwrap(), Resource::new(4096, 4), Bytes(1));
        sample.snapshot.state[7] = NodeState::Lost;
        let mut group = sample.group("g", 5, Resource::new(1024, 1));
        (group.max_per_node, group.max_per_rack) = (3, 4);
        let problem = sample.problem(vec![group], vec![], vec![]);
        let broken = |shares: &[(u32, u32)]| check(&problem, &placement(vec![shares.to_vec()]));
        assert_eq!(broken(&[(0, 2), (1, 2), (2, 1)]), []);
        assert_eq!(broken(&[(7, 1)]), [Violation::NotACandidate { group: 0, node: NodeIdx(7) }]);
        assert_eq!(broken(&[(0, 0)]), [Violation::EmptyShare { group: 0, node: NodeIdx(0) }]);
        assert_eq!(broken(&[(0, 2), (2, 2), (4, 2)]), [Violation::TooMany { group: 0, placed: 6, asked: 5 }]);
        assert_eq!(
            broken(&[(0, 5)]),
            [
                Violation::NodeBound { group: 0, node: NodeIdx(0), count: 5, most: 3 },
                Violation::RackBound { group: 0, rack: RackIdx(0), count: 5, most: 4 },
                Violation::NoRoom { node: NodeIdx(0) },
            ]
        );
        assert_eq!(check(&problem, &placement(vec![])), [Violation::Groups { placed: 0, asked: 1 }]);
    }

    #[test]
    fn groups_share_the_room_of_a_node() {
        let sample = cluster(&tree(&TreeSpec::default()).unwrap(), Resource::new(4096, 4), Bytes(1));
        let groups = vec![sample.group("a", 3, Resource::new(1024, 1)), sample.group("b", 1, Resource::new(2048, 1))];
        let problem = sample.problem(groups, vec![], vec![]);
        assert_eq!(check(&problem, &placement(vec![vec![(0, 2)], vec![(0, 1)]])), []);
        let full = check(&problem, &placement(vec![vec![(0, 3)], vec![(0, 1)]]));
        assert_eq!(full, [Violation::NoRoom { node: NodeIdx(0) }]);
    }
}
