//! The best there is, by trying everything: an oracle for small cases.

use super::board::{Board, List};
use super::compiled::{ChainedProblem, NONE};

/// Least cost over all places of all tasks and all boxes of all flows, below `known`, that of some state; `None`: there
/// is none below. Tasks of a group are alike, so of two the later never stands on an earlier slot.
pub(crate) fn least_cost(ground: &ChainedProblem<'_>, known: u128) -> Option<u128> {
    let mut best = Some(known);
    place(&mut Board::new(ground), 0, &mut best);
    best.filter(|best| *best < known)
}

fn place(board: &mut Board<'_, '_>, task: u32, best: &mut Option<u128>) {
    if task as usize == board.at.len() {
        pass(board, 0, best);
        return;
    }
    let group_of = &board.ground.group_of;
    let like = task.checked_sub(1).filter(|&before| group_of[before as usize] == group_of[task as usize]);
    let first = like.map_or(0, |before| board.at[before as usize]);
    for slot in first..board.ground.slots.len() as u32 {
        if board.fits(task, slot) {
            let mut next = board.clone();
            next.relocate(task, slot);
            place(&mut next, task + 1, best);
        }
    }
}

fn pass(board: &mut Board<'_, '_>, flow: u32, best: &mut Option<u128>) {
    // Flows without boxes yet count as going straight, which is the least that they can cost.
    let ahead: u128 = (flow..board.lists.len() as u32).map(|at| spare(board, at)).sum();
    if best.is_some_and(|best| board.cost() + ahead >= best) {
        return;
    }
    let Some(known) = board.ground.own.flows.get(flow as usize) else {
        *best = Some(board.cost());
        return;
    };
    let mut lists = vec![List::new()];
    for &kind in board.ground.kinds(known) {
        let grown = |list: &List| -> Vec<List> {
            let grow = |index| list.iter().copied().chain([index]).collect();
            board.choices(flow, kind).map(grow).collect()
        };
        lists = lists.iter().flat_map(grown).collect();
    }
    let known = *known;
    lists.retain(|list| board.hops_by(&known, list) < super::FAR);
    lists.sort_by_key(|list| board.hops_by(&known, list));
    for list in lists {
        board.set_list(flow, list);
        pass(board, flow + 1, best);
        board.set_list(flow, List::new());
    }
}

/// What a flow's boxes cost at least beyond going straight.
fn spare(board: &Board<'_, '_>, at: u32) -> u128 {
    let flow = &board.ground.own.flows[at as usize];
    if flow.class == NONE {
        return 0;
    }
    let straight = board.hops_by(flow, &[]);
    let through =
        2 + board.ground.hops_through((board.point(flow.from), board.point(flow.to)), board.ground.kinds(flow));
    u128::from(flow.rate) * u128::from(through.saturating_sub(straight))
}
