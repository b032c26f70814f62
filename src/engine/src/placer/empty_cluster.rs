//! What the cluster would hold of a group were it empty, and which bounds of the request let it hold less.

use super::compile::Compiled;
use crate::decision::block;
use hintd_model::units::{NodeIdx, RackIdx};
use hintd_policy::Reason;
use std::collections::BTreeMap;

/// Containers of a group, of which so many are placed, that even an empty cluster would not hold.
pub(crate) fn beyond(compiled: &Compiled<'_>, at: usize, placed: u32) -> u32 {
    let held = u32::try_from(holds(compiled, at)).unwrap_or(u32::MAX).max(placed);
    compiled.groups[at].count.saturating_sub(held)
}

/// What a request may bound, beside sizes.
const BOUNDS: [&str; 5] = [
    Reason::LabelMismatch.as_str(),
    Reason::AvoidedHost.as_str(),
    Reason::AvoidedRack.as_str(),
    block::MAX_PER_NODE,
    block::MAX_PER_RACK,
];

/// What makes a group larger than the empty cluster that is not, bounds aside: the first bound that does so alone; where
/// only several together do, the one without which most containers fit.
pub(crate) fn ruling_out(compiled: &Compiled<'_>, at: usize) -> Option<&'static str> {
    let wanted = u64::from(compiled.groups[at].count);
    if wanted > holds_without(compiled, at, &|_| true) {
        return None;
    }
    let alone = BOUNDS.into_iter().find(|bound| holds_without(compiled, at, &|other| other != *bound) < wanted);
    alone.or_else(|| BOUNDS.into_iter().max_by_key(|bound| holds_without(compiled, at, &|other| other == *bound)))
}

/// Why the empty cluster holds no more of a group: what [`ruling_out`] finds, else the bound without which most more would fit,
/// else its size.
pub(crate) fn limit(compiled: &Compiled<'_>, at: usize) -> &'static str {
    let more = || {
        let held = holds(compiled, at);
        let lets = BOUNDS.into_iter().map(|bound| (holds_without(compiled, at, &|other| other == bound), bound));
        lets.filter(|(lets, _)| *lets > held).max_by_key(|(lets, _)| *lets).map(|(_, bound)| bound)
    };
    ruling_out(compiled, at).or_else(more).unwrap_or(block::CLUSTER)
}

/// Containers of a group that the empty cluster would hold.
pub(crate) fn holds(compiled: &Compiled<'_>, at: usize) -> u64 {
    holds_without(compiled, at, &|_| false)
}

/// The same where some of the group's bounds are lifted.
fn holds_without(compiled: &Compiled<'_>, at: usize, lifted: &dyn Fn(&str) -> bool) -> u64 {
    let (group, filter) = (&compiled.problem.groups[at], &compiled.groups[at].filter);
    let snapshot = compiled.problem.snapshot;
    let on_node = if lifted(block::MAX_PER_NODE) { u32::MAX } else { group.max_per_node };
    let in_reach = |node: &NodeIdx| {
        !snapshot.state[node.at()].gone() && filter.all_against(snapshot, *node).all(|reason| lifted(reason.as_str()))
    };
    let nodes = snapshot.statics.indexes().filter(in_reach).map(|node| {
        let total = &snapshot.statics.total[node.at()];
        (node, u64::from(snapshot.rules.how_many(&group.size, total).min(on_node)))
    });
    if group.max_per_rack == u32::MAX || lifted(block::MAX_PER_RACK) {
        return nodes.map(|(_, on)| on).sum();
    }
    let mut by_rack: BTreeMap<RackIdx, u64> = BTreeMap::new();
    for (node, on) in nodes {
        *by_rack.entry(snapshot.rack(node)).or_default() += on;
    }
    by_rack.values().map(|&in_rack| in_rack.min(u64::from(group.max_per_rack))).sum()
}
