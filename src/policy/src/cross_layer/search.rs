//! The annealing of the application level (000 §2, Algorithms 1 and 2), with only the moved task's pairs routed anew,
//! and a routing pass over all pairs of the best few states.

use super::candidates::mix;
use super::routing::improve;
use super::search_state::{SavedState, SearchState, Step};
use super::{Cooling, CrossLayerParams};
use crate::budget::{Budget, Work};
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

/// One run from the search state as it is, which it leaves anywhere; returns the best one met.
pub(super) fn anneal(
    search_state: &mut SearchState<'_, '_>,
    params: &CrossLayerParams,
    steps: u64,
    run: u64,
    budget: &Budget<'_>,
) -> SavedState {
    let mut random = ChaCha8Rng::seed_from_u64(mix(search_state.compiled.problem.seed ^ mix(run)));
    let utility = search_state.utility();
    let mut best = search_state.state(utility);
    // Utility is taken in units of what the new job has at the start: running jobs would drown its changes.
    let unit = search_state.own().max(least_nic(search_state)).max(1.0);
    let toll = TRAFFIC * unit / best.burden.max(1) as f64;
    let mut now = utility - toll * best.burden as f64;
    let mut temperature = params.initial_temperature;
    let hold = (steps / COOLINGS).max(1);
    let until = search_state.work.saturating_add(params.work_max);
    for step in 1..=steps {
        if search_state.work > until || !budget.step() {
            break;
        }
        if step.is_multiple_of(hold) {
            temperature = params.cooling.next(temperature);
        }
        let Some((steps, count)) = propose(search_state, &mut random) else { continue };
        let steps = &steps[..count];
        // One task that fits where it goes leaves nothing to be checked.
        if count > 1 && !search_state.allows(steps) {
            continue;
        }
        search_state.make(steps);
        let (utility, burden) = (search_state.utility(), search_state.burden());
        budget.work(search_state.take_work()); // the next step is told
        let after = utility - toll * burden as f64;
        let rise = (after - now) / unit;
        if rise < 0.0 && random.random::<f64>() >= (rise / temperature).exp() {
            search_state.take_back();
            continue;
        }
        now = after;
        if utility > best.utility || (utility == best.utility && burden < best.burden) {
            best = search_state.state(utility);
        }
    }
    best
}

/// Tries other routes for all pairs of the new job; returns the state, which is the one before or better.
pub(super) fn route(search_state: &mut SearchState<'_, '_>, tries: u64, run: u64, budget: &Budget<'_>) -> SavedState {
    let movable = search_state.movable();
    let utility_work = search_state.utility_work();
    let mut index = std::mem::take(&mut search_state.index);
    let mut rates = vec![Vec::new(); search_state.used.len()];
    let seed = mix(search_state.compiled.problem.seed ^ mix(!run));
    let mut utility = |index: &crate::FlowIndex| index.utility() + search_state.own_in(index, &mut rates);
    let tries = tries.min(movable.len() as u64 * 4);
    improve(&mut index, &search_state.candidates, &movable, &mut utility, utility_work, (seed, tries), budget);
    search_state.index = index;
    search_state.weigh();
    let utility = search_state.utility();
    search_state.state(utility)
}

/// Most containers placed first, then highest utility.
pub(super) fn better(a: &SavedState, b: &SavedState) -> Ordering {
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

fn least_nic(search_state: &SearchState<'_, '_>) -> f64 {
    search_state.compiled.slots.iter().map(|slot| search_state.index.nic(slot.node)).fold(f64::INFINITY, f64::min)
}

/// A task drawn by its priority, and a server drawn among those with room: half of the draws where another container
/// is, a quarter below such a one's switch. Where a server is full, a container of another group may go the other way.
fn propose(search_state: &SearchState<'_, '_>, random: &mut ChaCha8Rng) -> Option<([Step; 2], usize)> {
    let (group, from) = draw_task(search_state, random)?;
    for _ in 0..DRAWS {
        let to = draw_server(search_state, random)?;
        if to == from {
            continue;
        }
        let step = Step { group, from: Some(from), to: Some(to) };
        if search_state.admits(step) {
            return Some(([step, step], 1));
        }
        let others = (0..search_state.used.len()).filter(|&other| other != group && search_state.count(other, to) > 0);
        let others: Vec<usize> = others.collect();
        if !others.is_empty() && search_state.compiled.allowed(group, to) {
            let other = others[random.random_range(0..others.len())];
            return Some(([step, Step { group: other, from: Some(to), to: Some(from) }], 2));
        }
    }
    None
}

fn draw_task(search_state: &SearchState<'_, '_>, random: &mut ChaCha8Rng) -> Option<(usize, u32)> {
    let weight = |group: usize| {
        let tasks: u32 = search_state.used[group].iter().map(|&slot| search_state.count(group, slot)).sum();
        search_state.compiled.own.priority[group] * f64::from(tasks)
    };
    let total: f64 = (0..search_state.used.len()).map(weight).sum();
    let mut left = random.random::<f64>() * total;
    let mut drawn = None;
    for group in (0..search_state.used.len()).filter(|&group| !search_state.used[group].is_empty()) {
        drawn = Some(group);
        left -= weight(group);
        if left < 0.0 {
            break;
        }
    }
    let group = drawn?;
    let tasks: u32 = search_state.used[group].iter().map(|&slot| search_state.count(group, slot)).sum();
    let mut left = random.random_range(0..tasks);
    for &slot in &search_state.used[group] {
        let here = search_state.count(group, slot);
        if left < here {
            return Some((group, slot));
        }
        left -= here;
    }
    None
}

fn draw_server(search_state: &SearchState<'_, '_>, random: &mut ChaCha8Rng) -> Option<u32> {
    let compiled = search_state.compiled;
    let kind = random.random_range(0..4_u32);
    if kind < 3 {
        let busy: usize = search_state.used.iter().map(Vec::len).sum();
        let mut left = random.random_range(0..busy.max(1));
        for used in &search_state.used {
            if let Some(&slot) = used.get(left) {
                let below = &compiled.switches[compiled.slots[slot as usize].switch as usize].slots;
                return Some(if kind < 2 { slot } else { below[random.random_range(0..below.len())] });
            }
            left -= used.len();
        }
    }
    (!compiled.slots.is_empty()).then(|| random.random_range(0..compiled.slots.len() as u32))
}
