//! Few containers on few nodes: every placement is priced, so the answer is the optimum. Tight clusters are
//! where single moves and swaps get stuck, and there the placements are few.

use super::search_state::{NOWHERE, SearchState};

/// Placements that are still counted out rather than searched; about 0.1 µs each.
const MOST: u64 = 4_000;

/// Whether there are at most [`MOST`] ways to hand out nodes, alike containers not told apart.
pub(super) fn few(search_state: &SearchState<'_>) -> bool {
    let compiled = search_state.compiled;
    let mut ways: u64 = 1;
    for (at, group) in compiled.problem.groups.iter().enumerate() {
        // A container may also stay without a node.
        let nodes = compiled.allowed_row(at).iter().filter(|allowed| **allowed).count() as u64 + 1;
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

/// Brings the search state, empty before, to the cheapest one; `None` if the gate stopped the count: then it is empty
/// again.
pub(super) fn best(search_state: &mut SearchState<'_>, gate: &mut dyn FnMut() -> bool) -> Option<()> {
    let mut best = (f64::INFINITY, Vec::new());
    let complete = try_from(search_state, 0, gate, &mut best);
    if !complete {
        return None;
    }
    super::start::restore(search_state, &best.1);
    Some(())
}

fn try_from(
    search_state: &mut SearchState<'_>,
    container: u32,
    gate: &mut dyn FnMut() -> bool,
    best: &mut (f64, Vec<u32>),
) -> bool {
    if container as usize == search_state.at.len() {
        let cost = search_state.cost();
        // A hair's breadth is rounding: of equal states the first stays.
        if cost < best.0 - 1e-12 {
            *best = (cost, search_state.at.clone());
        }
        return gate();
    }
    let first = search_state.first_of_its_group(container);
    let after = if first { 0 } else { search_state.at[container as usize - 1] };
    let nodes = search_state.compiled.slots.len() as u32;
    for slot in after.min(nodes)..nodes {
        if search_state.may_move(container, slot) {
            search_state.relocate(container, NOWHERE, slot);
            let went_on = try_from(search_state, container + 1, gate, best);
            search_state.relocate(container, slot, NOWHERE);
            if !went_on {
                return false;
            }
        }
    }
    try_from(search_state, container + 1, gate, best)
}
