//! Where the search starts: groups packed in the order of the dataflow, from one node outwards.

use super::compiled::DataflowProblem;
use super::search_state::{SearchState, Step};
use crate::place::Share;
use std::cmp::Reverse;

/// Brings the search state, empty before, to a placement whose nodes it has slots for.
pub(super) fn put(search_state: &mut SearchState<'_, '_>, groups: &[Vec<Share>]) {
    let mut steps = Vec::new();
    for (group, shares) in groups.iter().enumerate() {
        for share in shares {
            let slot = search_state.compiled.slot_of(share.node).expect("its nodes have slots");
            let step = Step { group, from: None, to: Some(slot) };
            steps.extend(std::iter::repeat_n(step, share.count as usize));
        }
    }
    search_state.make(&steps);
}

/// Brings the search state, empty before, to a packed placement: slots are filled one after the other, those below the `variant`th
/// best switch first. Switches with most room come first, then those with least traffic on the nodes; within one the
/// same goes for nodes.
pub(super) fn pack(search_state: &mut SearchState<'_, '_>, variant: usize) {
    let compiled = search_state.compiled;
    let order = slot_order(search_state, variant);
    let mut steps = Vec::new();
    for group in dataflow_order(compiled) {
        let mut waiting = compiled.problem.groups[group].count;
        for &slot in &order {
            while waiting > 0 && search_state.fits(group, slot) {
                let step = Step { group, from: None, to: Some(slot) };
                search_state.reserve(step);
                steps.push(step);
                waiting -= 1;
            }
        }
    }
    for step in &steps {
        search_state.release(*step);
    }
    search_state.make(&steps);
}

/// Sources first, then those they feed; large containers first where nothing else tells.
fn dataflow_order(compiled: &DataflowProblem<'_>) -> Vec<usize> {
    let groups = compiled.own.root.len();
    let mut depth = vec![groups; groups];
    for (depth, root) in depth.iter_mut().zip(&compiled.own.root) {
        *depth = if *root { 0 } else { groups };
    }
    for _ in 0..groups {
        for edge in &compiled.edges {
            let (from, to) = (edge.from.at(), edge.to.at());
            depth[to] = depth[to].min(depth[from] + 1);
        }
    }
    let mut order: Vec<usize> = (0..groups).collect();
    let size = |group: usize| compiled.problem.groups[group].size.memory_mb();
    // With containers of different sizes the large ones must not find the nodes full of small ones.
    let uneven = (0..groups).any(|group| size(group) != size(0));
    order.sort_by_key(|&group| (if uneven { Reverse(size(group)) } else { Reverse(0) }, depth[group], group));
    order
}

fn slot_order(search_state: &SearchState<'_, '_>, variant: usize) -> Vec<u32> {
    let compiled = search_state.compiled;
    let smallest = compiled.problem.groups.iter().map(|group| &group.size).min_by_key(|size| size.memory_mb());
    let wanted = compiled.problem.containers().min(u64::from(u32::MAX)) as u32;
    let rules = &compiled.problem.snapshot.rules;
    let room =
        |slot: u32| smallest.map_or(0, |size| rules.how_many(size, &compiled.slots[slot as usize].room)).min(wanted);
    let busy = |slot: u32| search_state.candidates.busy(&search_state.index, compiled.slots[slot as usize].node);
    let mut slots: Vec<(Reverse<u32>, u64, u32)> =
        (0..compiled.slots.len() as u32).map(|slot| (Reverse(room(slot)), busy(slot), slot)).collect();
    slots.sort_unstable();
    let mut switches: Vec<(Reverse<u32>, usize, u32)> = (0..compiled.switches.len() as u32)
        .filter(|&switch| !compiled.switches[switch as usize].slots.is_empty())
        .map(|switch| {
            let here = |(.., slot): &&(Reverse<u32>, u64, u32)| compiled.slots[*slot as usize].switch == switch;
            let fits = slots.iter().filter(here).fold(0_u32, |sum, (room, ..)| sum.saturating_add(room.0));
            let first = slots.iter().position(|slot| here(&slot)).unwrap_or(usize::MAX);
            (Reverse(fits.min(wanted)), first, switch)
        })
        .collect();
    switches.sort_unstable();
    let centre = switches.get(variant % switches.len().max(1)).map(|(.., switch)| *switch);
    let mut order: Vec<u32> = Vec::with_capacity(slots.len());
    let below = |at: &u32| Some(compiled.slots[*at as usize].switch) == centre;
    order.extend(slots.iter().map(|(.., slot)| *slot).filter(below));
    for (.., switch) in switches {
        if Some(switch) != centre {
            order.extend(slots.iter().map(|(.., at)| *at).filter(|at| compiled.slots[*at as usize].switch == switch));
        }
    }
    order
}
