//! The annealing of the application level (000 §2, Algorithms 1 and 2), with only the moved task's pairs routed anew,
//! and a routing pass over all pairs of the best few states.

use super::board::{Board, State, Step};
use super::candidates::mix;
use super::routing::improve;
use super::{Cooling, CrossLayerParams};
use crate::Budget;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::cmp::Ordering;

/// A temperature is kept for so much of a run: a hundred coolings, whatever the steps.
const COOLINGS: u64 = 100;

/// Draws of a server until one has room.
const DRAWS: u32 = 4;

/// What traffic counts beside utility while annealing, as a share of the start's utility for all of the start's
/// traffic: most moves change no sink's slowest pair, and those that free links are to be preferred.
const TRAFFIC: f64 = 0.01;

/// One run from the state the board is in; leaves the board anywhere and returns the best state met.
pub(super) fn anneal(
    board: &mut Board<'_, '_>,
    params: &CrossLayerParams,
    steps: u64,
    run: u64,
    budget: &mut Budget<'_>,
) -> State {
    let mut random = ChaCha8Rng::seed_from_u64(mix(board.ground.problem.seed ^ mix(run)));
    let utility = board.utility();
    let mut best = board.state(utility);
    // Utility is taken in units of what the new job has at the start: running jobs would drown its changes.
    let unit = board.own().max(least_nic(board)).max(1.0);
    let toll = TRAFFIC * unit / best.burden.max(1) as f64;
    let mut now = utility - toll * best.burden as f64;
    let mut temperature = params.initial_temperature;
    let hold = (steps / COOLINGS).max(1);
    let until = board.work.saturating_add(params.work_max);
    for step in 1..=steps {
        if board.work > until || !budget.step() {
            break;
        }
        if step.is_multiple_of(hold) {
            temperature = params.cooling.next(temperature);
        }
        let Some((steps, count)) = propose(board, &mut random) else { continue };
        let steps = &steps[..count];
        // One task that fits where it goes leaves nothing to be checked.
        if count > 1 && !board.allows(steps) {
            continue;
        }
        board.make(steps);
        let (utility, burden) = (board.utility(), board.burden());
        let after = utility - toll * burden as f64;
        let rise = (after - now) / unit;
        if rise < 0.0 && random.random::<f64>() >= (rise / temperature).exp() {
            board.take_back();
            continue;
        }
        now = after;
        if utility > best.utility || (utility == best.utility && burden < best.burden) {
            best = board.state(utility);
        }
    }
    best
}

/// Tries other routes for all pairs of the new job; returns the state, which is the one before or better.
pub(super) fn route(board: &mut Board<'_, '_>, tries: u64, run: u64, budget: &mut Budget<'_>) -> State {
    let movable = board.movable();
    let mut index = std::mem::take(&mut board.index);
    let mut rates = vec![Vec::new(); board.used.len()];
    let seed = mix(board.ground.problem.seed ^ mix(!run));
    let mut utility = |index: &crate::FlowIndex| index.utility() + board.own_in(index, &mut rates);
    let tries = tries.min(movable.len() as u64 * 4);
    improve(&mut index, &board.candidates, &movable, &mut utility, (seed, tries), budget);
    board.index = index;
    board.weigh();
    let utility = board.utility();
    board.state(utility)
}

/// Most containers placed first, then highest utility.
pub(super) fn better(a: &State, b: &State) -> Ordering {
    b.placed.cmp(&a.placed).then(b.utility.total_cmp(&a.utility)).then(a.burden.cmp(&b.burden))
}

impl Cooling {
    fn next(self, temperature: f64) -> f64 {
        match self {
            Self::Geometric => 0.95 * temperature,
            Self::Printed => temperature.powf(0.95),
        }
    }
}

fn least_nic(board: &Board<'_, '_>) -> f64 {
    board.ground.slots.iter().map(|slot| board.index.nic(slot.node)).fold(f64::INFINITY, f64::min)
}

/// A task drawn by its priority, and a server drawn among those with room: half of the draws where another container
/// is, a quarter below such a one's switch. Where a server is full, a container of another group may go the other way.
fn propose(board: &Board<'_, '_>, random: &mut ChaCha8Rng) -> Option<([Step; 2], usize)> {
    let (group, from) = draw_task(board, random)?;
    for _ in 0..DRAWS {
        let to = draw_server(board, random)?;
        if to == from {
            continue;
        }
        let step = Step { group, from: Some(from), to: Some(to) };
        if board.admits(step) {
            return Some(([step, step], 1));
        }
        let others = (0..board.used.len()).filter(|&other| other != group && board.count(other, to) > 0);
        let others: Vec<usize> = others.collect();
        if !others.is_empty() && board.ground.allowed(group, to) {
            let other = others[random.random_range(0..others.len())];
            return Some(([step, Step { group: other, from: Some(to), to: Some(from) }], 2));
        }
    }
    None
}

fn draw_task(board: &Board<'_, '_>, random: &mut ChaCha8Rng) -> Option<(usize, u32)> {
    let weight = |group: usize| {
        let tasks: u32 = board.used[group].iter().map(|&slot| board.count(group, slot)).sum();
        board.ground.own.priority[group] * f64::from(tasks)
    };
    let total: f64 = (0..board.used.len()).map(weight).sum();
    let mut left = random.random::<f64>() * total;
    let mut drawn = None;
    for group in (0..board.used.len()).filter(|&group| !board.used[group].is_empty()) {
        drawn = Some(group);
        left -= weight(group);
        if left < 0.0 {
            break;
        }
    }
    let group = drawn?;
    let tasks: u32 = board.used[group].iter().map(|&slot| board.count(group, slot)).sum();
    let mut left = random.random_range(0..tasks);
    for &slot in &board.used[group] {
        let here = board.count(group, slot);
        if left < here {
            return Some((group, slot));
        }
        left -= here;
    }
    None
}

fn draw_server(board: &Board<'_, '_>, random: &mut ChaCha8Rng) -> Option<u32> {
    let ground = board.ground;
    let kind = random.random_range(0..4_u32);
    if kind < 3 {
        let busy: usize = board.used.iter().map(Vec::len).sum();
        let mut left = random.random_range(0..busy.max(1));
        for used in &board.used {
            if let Some(&slot) = used.get(left) {
                let below = &ground.switches[ground.slots[slot as usize].switch as usize].slots;
                return Some(if kind < 2 { slot } else { below[random.random_range(0..below.len())] });
            }
            left -= used.len();
        }
    }
    (!ground.slots.is_empty()).then(|| random.random_range(0..ground.slots.len() as u32))
}
