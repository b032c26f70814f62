//! Which nodes are worth searching: all of a small cluster; of a large one those with most room and least traffic,
//! with their neighbours below the same switches.

use crate::flow_index::FlowIndex;
use crate::problem::{GroupProblem, PlaceProblem};
use hintd_model::network::Network;
use hintd_model::network::maxmin::directions;
use hintd_model::units::NodeIdx;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Switches whose other nodes are looked at.
const CENTRES: usize = 6;

/// How good a node is; the least, field by field, is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Containers that fit.
    fits: Reverse<u32>,
    /// Task pairs at its access link.
    busy: u64,
    node: NodeIdx,
}

/// Nodes to search, ascending and distinct: `also` and about `limit` candidates, more if it takes more to have room
/// for half as many containers again as are asked for.
pub(super) fn shortlist(
    problem: &PlaceProblem<'_>,
    network: &Network,
    index: &FlowIndex,
    limit: usize,
    also: &[NodeIdx],
) -> Vec<NodeIdx> {
    let mut chosen: BTreeSet<NodeIdx> = also.iter().copied().collect();
    for (groups, wanted) in kinds(problem) {
        let group = groups[0];
        if group.candidates.len() <= limit {
            chosen.extend(group.candidates.iter());
            continue;
        }
        let mut ranks: Vec<Rank> =
            group.candidates.iter().map(|&node| rank(problem, network, index, group, wanted, node)).collect();
        let enough = wanted.saturating_add(wanted / 2);
        let most = limit / 2;
        ranks.select_nth_unstable(most);
        let (best, rest) = ranks.split_at_mut(most);
        best.sort_unstable();
        let mut fits: u32 = best.iter().fold(0, |sum, rank| sum.saturating_add(rank.fits.0));
        let nodes = best.iter().map(|rank| rank.node);
        let near: Vec<NodeIdx> = neighbors(problem, nodes.clone(), limit - most);
        chosen.extend(nodes);
        chosen.extend(near.into_iter().filter(|node| group.candidates.binary_search(node).is_ok()));
        if fits < enough {
            rest.sort_unstable();
            for Rank { fits: more, node, .. } in rest {
                if fits >= enough {
                    break;
                }
                fits = fits.saturating_add(more.0);
                chosen.insert(*node);
            }
        }
    }
    chosen.into_iter().collect()
}

/// Groups of equal size and candidates, with the containers they ask for.
fn kinds<'p>(problem: &'p PlaceProblem<'_>) -> Vec<(Vec<&'p GroupProblem>, u32)> {
    let mut kinds: Vec<(Vec<&GroupProblem>, u32)> = Vec::new();
    for group in &problem.groups {
        let alike = |other: &GroupProblem| {
            let same = Arc::ptr_eq(&other.candidates, &group.candidates) || other.candidates == group.candidates;
            other.size == group.size && same
        };
        match kinds.iter_mut().find(|(groups, _)| alike(groups[0])) {
            Some((groups, wanted)) => {
                groups.push(group);
                *wanted = wanted.saturating_add(group.count);
            }
            None => kinds.push((vec![group], group.count)),
        }
    }
    kinds
}

fn rank(
    problem: &PlaceProblem<'_>,
    network: &Network,
    index: &FlowIndex,
    group: &GroupProblem,
    wanted: u32,
    node: NodeIdx,
) -> Rank {
    let fits = problem.snapshot.rules.how_many(&group.size, &problem.room(node)).min(wanted);
    let host = problem.snapshot.topology.vertex.get(node.at()).copied().flatten();
    // A node without a way out is the last choice, however empty.
    let link = host.and_then(|host| network.access_link(host));
    let busy = link.map_or(u64::MAX, |link| directions(link).iter().map(|way| index.load(*way)).sum());
    Rank { fits: Reverse(if link.is_some() { fits } else { 0 }), busy, node }
}

/// Nodes below the switches of the first few of `nodes`.
fn neighbors(problem: &PlaceProblem<'_>, nodes: impl Iterator<Item = NodeIdx>, most: usize) -> Vec<NodeIdx> {
    let snapshot = problem.snapshot;
    let mut racks = BTreeMap::new();
    for node in nodes {
        let order = racks.len();
        racks.entry(snapshot.rack(node)).or_insert(order);
        if racks.len() == CENTRES {
            break;
        }
    }
    let mut order: Vec<_> = racks.into_iter().map(|(rack, order)| (order, rack)).collect();
    order.sort_unstable();
    order.into_iter().flat_map(|(_, rack)| snapshot.statics.members[rack.at()].iter().copied()).take(most).collect()
}
