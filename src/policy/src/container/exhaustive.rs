//! Few containers on few nodes: every placement is priced, so the answer is the optimum. Tight clusters are
//! where single moves and swaps get stuck, and there the placements are few.

use super::board::{Board, NOWHERE};

/// Placements that are still counted out rather than searched; about 0.1 µs each.
const MOST: u64 = 4_000;

/// Whether there are at most [`MOST`] ways to hand out nodes, alike containers not told apart.
pub(super) fn few(board: &Board<'_>) -> bool {
    let ground = board.ground;
    let mut ways: u64 = 1;
    for (at, group) in ground.problem.groups.iter().enumerate() {
        // A container may also stay without a node.
        let nodes = ground.allowed_row(at).iter().filter(|allowed| **allowed).count() as u64 + 1;
        let count = u64::from(group.count);
        for nth in 1..=count {
            // Multisets: C(nodes + count - 1, count), kept whole at every factor.
            ways = ways.saturating_mul(nodes + nth - 1) / nth;
            if ways > MOST {
                return false;
            }
        }
    }
    true
}

/// Leaves the board, empty before, in the cheapest state; `None` if the gate stopped the count, with the board
/// empty.
pub(super) fn best(board: &mut Board<'_>, gate: &mut dyn FnMut() -> bool) -> Option<()> {
    let mut best = (f64::INFINITY, Vec::new());
    let complete = try_from(board, 0, gate, &mut best);
    if !complete {
        return None;
    }
    super::start::restore(board, &best.1);
    Some(())
}

fn try_from(board: &mut Board<'_>, container: u32, gate: &mut dyn FnMut() -> bool, best: &mut (f64, Vec<u32>)) -> bool {
    if container as usize == board.at.len() {
        let cost = board.cost();
        // A hair's breadth is rounding: of equal states the first stays.
        if cost < best.0 - 1e-12 {
            *best = (cost, board.at.clone());
        }
        return gate();
    }
    let first = board.first_of_its_group(container);
    let after = if first { 0 } else { board.at[container as usize - 1] };
    let nodes = board.ground.slots.len() as u32;
    for slot in after.min(nodes)..nodes {
        if board.may_move(container, slot) {
            board.relocate(container, NOWHERE, slot);
            let went_on = try_from(board, container + 1, gate, best);
            board.relocate(container, slot, NOWHERE);
            if !went_on {
                return false;
            }
        }
    }
    try_from(board, container + 1, gate, best)
}
