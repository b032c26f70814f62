//! Where annealing starts: the best of a few placements made by rule.

use super::search_state::{NOWHERE, SearchState};
use std::cmp::Reverse;

/// Switches that starts are grown from.
const CENTRES: usize = 12;
/// Containers put down for starts, all together: fewer starts for requests of thousands.
const PUT_DOWN: usize = 20_000;

/// Brings the search state to the cheapest of: grown from each of the best switches outwards, and nodes with most
/// input first.
pub(super) fn best_start(search_state: &mut SearchState<'_>) {
    let slots = search_state.compiled.slots.len() as u32;
    let gain: Vec<u64> = (0..slots).map(|slot| input_bytes(search_state, slot)).collect();
    let empty: Vec<u32> =
        (0..slots).map(|slot| (search_state.compiled.load_before(slot as usize) * 1e6) as u32).collect();
    let order = |slot: &u32| (Reverse(gain[*slot as usize]), empty[*slot as usize], *slot);
    let mut best: Option<(f64, Vec<u32>)> = None;
    let mut keep = |search_state: &mut SearchState<'_>| {
        let cost = search_state.cost();
        if best.as_ref().is_none_or(|(known, _)| cost < *known) {
            best = Some((cost, search_state.at.clone()));
        }
        clear(search_state);
    };
    let mut all: Vec<u32> = (0..slots).collect();
    all.sort_by_key(order);
    fill(search_state, &[all]);
    keep(search_state);
    let sorted = |slots: &Vec<u32>| {
        let mut slots = slots.clone();
        slots.sort_by_key(order);
        slots
    };
    let by_edge: Vec<Vec<u32>> = search_state.compiled.switches.iter().map(|switch| sorted(&switch.slots)).collect();
    for centre in centres(search_state, &gain) {
        let mut near: Vec<u32> = (0..by_edge.len() as u32).collect();
        let apart = |edge: &u32| search_state.compiled.hops_from(centre)[*edge as usize];
        near.sort_by_key(|edge| (*edge as usize != centre, apart(edge), Reverse(by_edge[*edge as usize].len()), *edge));
        let runs: Vec<Vec<u32>> = near.iter().map(|&edge| by_edge[edge as usize].clone()).collect();
        fill(search_state, &runs);
        keep(search_state);
    }
    if let Some((_, at)) = best {
        restore(search_state, &at);
    }
}

/// Puts containers where they were, from an empty search state.
pub(super) fn restore(search_state: &mut SearchState<'_>, at: &[u32]) {
    for (container, &slot) in (0..).zip(at) {
        if slot != NOWHERE {
            search_state.relocate(container, NOWHERE, slot);
        }
    }
}

fn clear(search_state: &mut SearchState<'_>) {
    for container in 0..search_state.at.len() as u32 {
        let from = search_state.at[container as usize];
        if from != NOWHERE {
            search_state.relocate(container, from, NOWHERE);
        }
    }
}

fn input_bytes(search_state: &SearchState<'_>, slot: u32) -> u64 {
    let groups = search_state.compiled.problem.groups.iter().enumerate();
    groups
        .map(|(at, group)| {
            let blocks = search_state.compiled.blocks(at, slot).iter();
            blocks.map(|&block| group.input.blocks[block as usize].bytes.0).sum::<u64>()
        })
        .sum()
}

/// Switches with fixed containers first, then those with most slots and most input.
fn centres(search_state: &SearchState<'_>, gain: &[u64]) -> Vec<usize> {
    let compiled = search_state.compiled;
    let mut order: Vec<usize> =
        (0..compiled.switches.len()).filter(|&edge| !compiled.switches[edge].slots.is_empty()).collect();
    order.sort_by_cached_key(|&edge| {
        let switch = &compiled.switches[edge];
        let input: u64 = switch.slots.iter().map(|&slot| gain[slot as usize]).sum();
        (Reverse(switch.anchored), Reverse(compiled.room_for(edge, search_state.at.len())), Reverse(input), edge)
    });
    order.truncate(CENTRES.min(PUT_DOWN / search_state.at.len().max(1)).max(1));
    order
}

/// Fills run after run, each slot of a run one container at a time; large containers first, so that small ones
/// take what is left.
fn fill(search_state: &mut SearchState<'_>, runs: &[Vec<u32>]) {
    let problem = search_state.compiled.problem;
    let mut groups: Vec<usize> = (0..problem.groups.len()).collect();
    groups.sort_by_key(|&group| Reverse(problem.groups[group].size.memory_mb()));
    for group in groups {
        let first = problem.groups[..group].iter().map(|earlier| earlier.count).sum::<u32>();
        let mut waiting = first..first + problem.groups[group].count;
        for run in runs {
            if waiting.start == waiting.end {
                break;
            }
            fill_run(search_state, run, &mut waiting);
        }
    }
}

fn fill_run(search_state: &mut SearchState<'_>, run: &[u32], waiting: &mut std::ops::Range<u32>) {
    let mut open: Vec<u32> = run.to_vec();
    while !open.is_empty() {
        open.retain(|&slot| {
            if waiting.start == waiting.end || !search_state.may_move(waiting.start, slot) {
                return false;
            }
            search_state.relocate(waiting.start, NOWHERE, slot);
            waiting.start += 1;
            true
        });
    }
}
