//! What would not fit even in an empty cluster: waiting won't help, and the caller is told what would fit.

use super::blocked;
use super::compile::{Compiled, GroupDemand};
use crate::decision::{Decision, block};
use crate::refusal::Refusal;
use hintd_model::cluster::{NamedResource, Resource, Snapshot};
use hintd_model::units::{NodeIdx, RackIdx};
use hintd_policy::Reason;
use std::collections::BTreeMap;

/// Refuses a container that is larger than any node, where no node can take it now.
///
/// # Errors
/// [`Refusal::TooLarge`], naming the largest that fits.
pub(crate) fn check_sizes(compiled: &Compiled<'_>) -> Result<(), Refusal> {
    let snapshot = compiled.problem.snapshot;
    for (at, (group, wish)) in compiled.problem.groups.iter().zip(&compiled.groups).enumerate() {
        if !group.candidates.is_empty() {
            continue;
        }
        let mut largest: Option<Resource> = None;
        let mut fits = false;
        for node in wish.filter.eligible(snapshot) {
            let total = snapshot.statics.total[node.at()];
            fits = fits || snapshot.rules.feasible(&group.size, &total);
            if largest
                .is_none_or(|largest| (total.memory_mb(), total.vcores()) > (largest.memory_mb(), largest.vcores()))
            {
                largest = Some(total);
            }
        }
        if let (false, Some(largest)) = (fits, largest) {
            let (size, largest) = (amount(snapshot, &group.size), amount(snapshot, &capped(snapshot, &largest)));
            let message = format!(
                "a container of {size} for group \"{}\" is larger than any node; the largest that fits is {largest}",
                group.name
            );
            let blocked = vec![blocked::of_group(compiled, at, compiled.groups[at].count)];
            return Err(Refusal::TooLarge { field: format!("groups[{at}].resource"), message, blocked });
        }
    }
    Ok(())
}

/// Refuses a gang that must be placed whole and is larger than the empty cluster.
///
/// Exact for one group. Of several groups each is held against the whole cluster, and all together against its
/// sum; a mix that passes both and still can't be packed is answered as a full cluster would.
///
/// # Errors
/// [`Refusal::TooLarge`], naming the largest count that fits.
pub(crate) fn check_gang(compiled: &Compiled<'_>) -> Result<(), Refusal> {
    let snapshot = compiled.problem.snapshot;
    for (at, wish) in compiled.groups.iter().enumerate() {
        let fits = holds(compiled, at);
        if u64::from(wish.count) > fits {
            return Err(too_many(compiled, at, fits, "", ruling_out(compiled, at)));
        }
    }
    let mut nodes: Vec<_> = compiled.groups.iter().flat_map(|wish| wish.filter.eligible(snapshot)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let offered = nodes.iter().fold(Resource::ZERO, |sum, node| sum.plus(&snapshot.statics.total[node.at()]));
    let of = |(group, wish): (&hintd_policy::GroupProblem, &GroupDemand)| group.size.times(u64::from(wish.count));
    let mut left = offered;
    for (at, pair) in compiled.problem.groups.iter().zip(&compiled.groups).enumerate() {
        if !snapshot.rules.feasible(&of(pair), &left) {
            let fits = snapshot.rules.how_many(&pair.0.size, &left);
            return Err(too_many(compiled, at, u64::from(fits), " beside the groups before it", None));
        }
        left = left.minus(&of(pair));
    }
    Ok(())
}

/// Counts what is not placed of a group: as without room, and what even an empty cluster would not hold as another wave's,
/// which is returned.
pub(crate) fn count_unplaced(compiled: &Compiled<'_>, at: usize, placed: u32, draft: &mut Decision) -> u32 {
    let unplaced = compiled.groups[at].count.saturating_sub(placed);
    if unplaced == 0 {
        return 0;
    }
    let held = u32::try_from(holds(compiled, at)).unwrap_or(u32::MAX).max(placed);
    let next_wave = compiled.groups[at].count.saturating_sub(held);
    draft.next_wave += next_wave;
    draft.without_room += unplaced - next_wave;
    next_wave
}

/// The same of each group, of which `placed` are placed.
pub(crate) fn count_all_unplaced(compiled: &Compiled<'_>, placed: impl Fn(usize) -> u32, draft: &mut Decision) {
    for at in 0..compiled.groups.len() {
        count_unplaced(compiled, at, placed(at), draft);
    }
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
fn ruling_out(compiled: &Compiled<'_>, at: usize) -> Option<&'static str> {
    let wanted = u64::from(compiled.groups[at].count);
    if wanted > holds_without(compiled, at, &|_| true) {
        return None;
    }
    let alone = BOUNDS.into_iter().find(|bound| holds_without(compiled, at, &|other| other != *bound) < wanted);
    alone.or_else(|| BOUNDS.into_iter().max_by_key(|bound| holds_without(compiled, at, &|other| other == *bound)))
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

fn too_many(compiled: &Compiled<'_>, at: usize, fits: u64, beside: &str, constraint: Option<&'static str>) -> Refusal {
    let group = &compiled.problem.groups[at];
    let size = amount(compiled.problem.snapshot, &group.size);
    let wanted = compiled.groups[at].count;
    let under = constraint.map(|constraint| format!(" under {constraint}")).unwrap_or_default();
    let message = format!(
        "{wanted} containers of {size} for group \"{}\" are more than the empty cluster holds{under}; the largest gang that fits{beside} is {fits}",
        group.name
    );
    let blocked = vec![blocked::of_cluster(compiled, at, wanted, constraint)];
    Refusal::TooLarge { field: format!("groups[{at}].count"), message, blocked }
}

/// A node may offer more than the scheduler allows one container.
fn capped(snapshot: &Snapshot, total: &Resource) -> Resource {
    let mut largest = *total;
    for (mine, most) in largest.0.iter_mut().zip(snapshot.rules.maximum.0) {
        if most > 0 {
            *mine = (*mine).min(most);
        }
    }
    largest
}

fn amount(snapshot: &Snapshot, size: &Resource) -> String {
    let named = NamedResource::from_row(size, &snapshot.kinds);
    let mut text = format!("{} MB and {} vcores", named.memory_mb, named.vcores);
    for (name, amount) in &named.named {
        text.push_str(&format!(" and {amount} {name}"));
    }
    text
}
