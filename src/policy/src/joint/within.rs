//! Groups whose containers send to each other: in one rack, as far as it has room, or evenly over some. Over how many is
//! best hangs on bytes and rates, so some widths are tried, and timed by the caller.

use super::readers::{Candidate, first_with_room};
use super::room;
use crate::PlaceProblem;
use crate::placement_builder::PlacementBuilder;
use hintd_model::cluster::Way;
use hintd_model::units::RackIdx;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Up to so many racks each number of them is tried, beyond twice as many each time.
const EACH_WIDTH: usize = 4;

/// Whether containers of the group send to each other, or to such as run already and send to them.
pub(super) fn talks(problem: &PlaceProblem<'_>, group: usize) -> bool {
    let itself = problem.edges.iter().any(|edge| edge.from == edge.to && edge.to.at() == group);
    itself || problem.senders.iter().any(|senders| senders.way == Way::Both && senders.to.at() == group)
}

/// Numbers of racks to try; none where no group talks within itself.
pub(super) fn widths(problem: &PlaceProblem<'_>) -> Vec<usize> {
    let talking = (0..problem.groups.len()).filter(|&group| talks(problem, group));
    let most = talking.map(|group| problem.groups[group].count as usize).max().unwrap_or(0);
    let most = most.min(problem.snapshot.statics.racks.len());
    let wide = std::iter::successors(Some(2 * EACH_WIDTH), |width| width.checked_mul(2));
    (1..=EACH_WIDTH).chain(wide).take_while(|width| *width <= most).collect()
}

/// Puts the group's tasks into `width` racks, evenly over racks and over the nodes of each, or as many more as it takes to have room. Of one rack what has no
/// room goes to the next: of two racks the uplinks carry least where one has as much as it can.
pub(super) fn place(problem: &PlaceProblem<'_>, filling: &mut PlacementBuilder<'_, '_>, group: usize, width: usize) {
    let chosen = racks(problem, filling, group, width);
    let mut nodes: BTreeMap<RackIdx, BTreeSet<Candidate>> = BTreeMap::new();
    for &node in problem.groups[group].candidates.iter() {
        let rack = problem.snapshot.rack(node);
        if chosen.contains_key(&rack) {
            nodes.entry(rack).or_default().insert(Candidate::of(problem, filling, group, node));
        }
    }
    // Those with fewest tasks first, else in the order of choice.
    let evenly = u32::from(width > 1);
    let mut order: BTreeSet<(u32, usize, RackIdx)> = chosen.iter().map(|(&rack, &at)| (0, at, rack)).collect();
    let mut task = 0;
    while task < problem.groups[group].count {
        let Some((here, at, rack)) = order.pop_first() else { break };
        let Some(of_rack) = nodes.get_mut(&rack) else { continue };
        let Some(first) = first_with_room(of_rack, filling, group) else { continue };
        filling.put(group, task, first.node);
        of_rack.remove(&first);
        of_rack.insert(Candidate { containers: first.containers + 1, ..first });
        order.insert((here + evenly, at, rack));
        task += 1;
    }
}

/// Racks in the order in which they are chosen: first where most of what sends to the group is, then where there is most
/// room; of equals the seed says which, so that like requests do not all meet in the first.
fn racks(
    problem: &PlaceProblem<'_>,
    filling: &PlacementBuilder<'_, '_>,
    group: usize,
    width: usize,
) -> BTreeMap<RackIdx, usize> {
    let asked = &problem.groups[group];
    let mut rooms: BTreeMap<RackIdx, u64> = BTreeMap::new();
    for &node in asked.candidates.iter() {
        *rooms.entry(problem.snapshot.rack(node)).or_default() += u64::from(room(problem, filling, group, node));
    }
    let mut sent: BTreeMap<RackIdx, u64> = BTreeMap::new();
    for (node, bytes) in problem.senders.iter().filter(|edge| edge.to.at() == group).flat_map(|edge| &edge.from) {
        let of_rack = sent.entry(problem.snapshot.rack(*node)).or_default();
        *of_rack = of_rack.saturating_add(bytes.0);
    }
    let mix = |rack: RackIdx| (rack.0 ^ problem.seed as u32).wrapping_mul(0x9e37_79b1);
    let mut order: Vec<_> = rooms
        .into_iter()
        .map(|(rack, room)| (rack, room.min(u64::from(asked.max_per_rack))))
        .map(|(rack, room)| (Reverse(sent.get(&rack).copied().unwrap_or(0)), Reverse(room), mix(rack), rack))
        .collect();
    order.sort_unstable();
    let mut room = 0;
    let enough = order.into_iter().enumerate().take_while(|(at, (_, Reverse(here), ..))| {
        let wanted = *at < width || room < u64::from(asked.count);
        room += here;
        wanted
    });
    enough.map(|(at, (.., rack))| (rack, at)).collect()
}
