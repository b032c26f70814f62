//! What would not fit even in an empty cluster: waiting won't help, and the caller is told what would fit.

use super::blocked;
use super::compile::{Compiled, GroupDemand};
use super::empty_cluster::{beyond, holds, ruling_out};
use crate::decision::Decision;
use crate::refusal::Refusal;
use hintd_model::cluster::{NamedResource, Resource, Snapshot};

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
    let next_wave = beyond(compiled, at, placed);
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

fn too_many(compiled: &Compiled<'_>, at: usize, fits: u64, beside: &str, constraint: Option<&'static str>) -> Refusal {
    let group = &compiled.problem.groups[at];
    let size = amount(compiled.problem.snapshot, &group.size);
    let wanted = compiled.groups[at].count;
    let blocked = blocked::of_cluster(compiled, at, wanted, constraint);
    let under = match constraint {
        None => String::new(),
        Some(constraint) if blocked.bound > 0 => format!(" under {constraint} {}", blocked.bound),
        Some(constraint) => format!(" under {constraint}"),
    };
    let message = format!(
        "{wanted} containers of {size} for group \"{}\" are more than the empty cluster holds{under}; the largest gang that fits{beside} is {fits}",
        group.name
    );
    Refusal::TooLarge { field: format!("groups[{at}].count"), message, blocked: vec![blocked] }
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
