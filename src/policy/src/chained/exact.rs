//! The best there is, by trying everything: an oracle for small cases.

use super::compiled::{ChainedProblem, NONE};
use super::search_state::{List, SearchState};

/// Least cost over all places of all tasks and all boxes of all flows, below `known`, that of some state; `None`: there
/// is none below. Tasks of a group are alike, so of two the later never stands on an earlier slot.
pub(crate) fn least_cost(compiled: &ChainedProblem<'_>, known: u128) -> Option<u128> {
    let mut best = Some(known);
    place(&mut SearchState::new(compiled), 0, &mut best);
    best.filter(|best| *best < known)
}

fn place(search_state: &mut SearchState<'_, '_>, task: u32, best: &mut Option<u128>) {
    if task as usize == search_state.at.len() {
        pass(search_state, 0, best);
        return;
    }
    let group_of = &search_state.compiled.group_of;
    let like = task.checked_sub(1).filter(|&before| group_of[before as usize] == group_of[task as usize]);
    let first = like.map_or(0, |before| search_state.at[before as usize]);
    for slot in first..search_state.compiled.slots.len() as u32 {
        if search_state.fits(task, slot) {
            let mut next = search_state.clone();
            next.relocate(task, slot);
            place(&mut next, task + 1, best);
        }
    }
}

fn pass(search_state: &mut SearchState<'_, '_>, flow: u32, best: &mut Option<u128>) {
    // Flows without boxes yet count as going straight, which is the least that they can cost.
    let ahead: u128 = (flow..search_state.lists.len() as u32).map(|at| spare(search_state, at)).sum();
    if best.is_some_and(|best| search_state.cost() + ahead >= best) {
        return;
    }
    let Some(known) = search_state.compiled.own.flows.get(flow as usize) else {
        *best = Some(search_state.cost());
        return;
    };
    let mut lists = vec![List::new()];
    for &kind in search_state.compiled.kinds(known) {
        let grown = |list: &List| -> Vec<List> {
            let grow = |index| list.iter().copied().chain([index]).collect();
            search_state.choices(flow, kind).map(grow).collect()
        };
        lists = lists.iter().flat_map(grown).collect();
    }
    let known = *known;
    lists.retain(|list| search_state.hops_by(&known, list) < super::FAR);
    lists.sort_by_key(|list| search_state.hops_by(&known, list));
    for list in lists {
        search_state.set_list(flow, list);
        pass(search_state, flow + 1, best);
        search_state.set_list(flow, List::new());
    }
}

/// What a flow's boxes cost at least beyond going straight.
fn spare(search_state: &SearchState<'_, '_>, at: u32) -> u128 {
    let flow = &search_state.compiled.own.flows[at as usize];
    if flow.class == NONE {
        return 0;
    }
    let straight = search_state.hops_by(flow, &[]);
    let through = 2 + search_state
        .compiled
        .hops_through((search_state.point(flow.from), search_state.point(flow.to)), search_state.compiled.kinds(flow));
    u128::from(flow.rate) * u128::from(through.saturating_sub(straight))
}
