//! A full cluster: where room is expected first, and when.

use super::compile::Compiled;
use crate::generation::Generation;
use hintd_model::cluster::Resource;
use hintd_model::units::{Micros, NodeIdx, Timestamp};
use std::collections::BTreeMap;

/// Where the waiting containers of a group should wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitAdvice {
    pub(crate) rows: Vec<WaitingContainers>,
    /// All nodes looked at closely, best first: the next best of the rows.
    pub(crate) ranked: Vec<NodeIdx>,
}

/// Containers without room, and where they should wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitingContainers {
    pub(crate) node: NodeIdx,
    pub(crate) count: u32,
    /// Until there is room for the first of them; `None`: it can't be told.
    pub(crate) wait: Option<Micros>,
}

/// Nodes named for the waiting containers of one group: an answer is no list of the cluster.
const NODES_MAX: usize = 16;

/// What places to wait at are ranked beside.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    /// Room that the answer itself takes.
    pub(crate) taken: &'a BTreeMap<NodeIdx, Resource>,
    /// By node: those that the policy keeps the request to, where it does.
    pub(crate) kept: Option<&'a [bool]>,
}

/// Ranks nodes for `rest` waiting containers of a group: those where room is expected first, soonest first, then
/// those of which nothing is known, by what is free already. Equals are ordered by the request's seed, so that not
/// everyone waits for the same node. All that the request is kept to come before all others.
pub(crate) fn advise(
    (compiled, generation): (&Compiled<'_>, &Generation),
    beside: Beside<'_>,
    (at, rest): (usize, u32),
    now: Timestamp,
) -> WaitAdvice {
    let (problem, group) = (&compiled.problem, &compiled.problem.groups[at]);
    let snapshot = problem.snapshot;
    let mut ranked: Vec<(bool, u64, u64, u64, NodeIdx)> = Vec::new();
    let planned = group.planned.as_ref().filter(|planned| planned.only);
    let elsewhere = |node: &NodeIdx| planned.is_some_and(|planned| !planned.has(snapshot.rack(*node)));
    for node in compiled.groups[at].filter.eligible(snapshot).filter(|node| !elsewhere(node)) {
        let total = &snapshot.statics.total[node.at()];
        if !snapshot.state[node.at()].usable() || !snapshot.rules.feasible(&group.size, total) {
            continue;
        }
        let room = problem.room(node).minus(beside.taken.get(&node).unwrap_or(&Resource::ZERO));
        let wait = wait(compiled, generation, &group.size, node, room, now).map_or(u64::MAX, |wait| wait.0);
        let is_other = beside.kept.is_some_and(|kept| !kept[node.at()]);
        ranked.push((is_other, wait, u64::MAX - room.memory_mb(), mix(problem.seed ^ u64::from(node.0)), node));
    }
    if ranked.len() > NODES_MAX {
        ranked.select_nth_unstable(NODES_MAX);
        ranked.truncate(NODES_MAX);
    }
    ranked.sort_unstable();
    let mut rest = rest;
    let mut rows = Vec::new();
    for &(_, wait, _, _, node) in &ranked {
        let most = snapshot.rules.how_many(&group.size, &snapshot.statics.total[node.at()]).min(group.max_per_node);
        let count = most.min(rest);
        if count == 0 {
            break;
        }
        rest -= count;
        rows.push(WaitingContainers { node, count, wait: (wait < u64::MAX).then_some(Micros(wait)) });
    }
    WaitAdvice { rows, ranked: ranked.into_iter().map(|(.., node)| node).collect() }
}

/// Time until one container of `size` fits on the node, by the expected ends of what runs there.
fn wait(
    compiled: &Compiled<'_>,
    generation: &Generation,
    size: &Resource,
    node: NodeIdx,
    mut room: Resource,
    now: Timestamp,
) -> Option<Micros> {
    let rules = &compiled.problem.snapshot.rules;
    if rules.feasible(size, &room) {
        return Some(Micros::ZERO);
    }
    let releases = generation.releases.get(&node)?;
    releases.iter().find_map(|release| {
        room = room.plus(&release.size);
        rules.feasible(size, &room).then(|| release.at.since(now))
    })
}

/// Finaliser of SplitMix64.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ (value >> 27)
}
