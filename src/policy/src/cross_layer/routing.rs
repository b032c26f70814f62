//! The routing level (000 §2, Algorithm 3) for the pairs concerned and no others: used by the policy, and by the
//! engine and what-if after a change of the network.
//!
//! Draws, not the strict best and worst, which would go round and round on one pair.

use super::candidates::{Candidates, Choices, Links, mix, tie_of};
use crate::budget::{Budget, Work};
use crate::flow_index::FlowIndex;
use hintd_model::cluster::{NodePair, Topology};
use hintd_model::network::{Network, PathTable};
use hintd_model::units::{DirectedLinkIdx, LinkIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Paths of each pair that are looked at, as [`PathTableOptions`](hintd_model::network::PathTableOptions) has by default.
pub(super) const K: usize = 10;

/// Tries for each pair, after all have a route.
const TRIES: u64 = 2;

/// Routes for some pairs.
#[derive(Debug, Clone, Copy)]
pub struct Reroute<'a> {
    /// The network as it is now; the index has its capacities.
    pub network: &'a Network,
    /// Its path table, or that of an earlier version of it: broken paths are passed over.
    pub paths: &'a PathTable,
    /// Where nodes hang in it.
    pub topology: &'a Topology,
    /// Pairs that may change their route; all others keep theirs.
    pub pairs: &'a [NodePair],
    /// Links that new routes pass only where there is no other way.
    pub avoid: &'a BTreeSet<LinkIdx>,
    /// Of ties and draws.
    pub seed: u64,
    /// Whether a route changes only where that makes utility rise; else pairs whose route is broken get another
    /// whatever comes of it.
    pub planned: bool,
}

/// A pair with its candidates.
#[derive(Debug, Clone)]
pub(super) struct Movable {
    pub(super) row: u32,
    pub(super) choices: Choices,
    pub(super) tie: u64,
}

/// Sets routes in `index`; returns the pairs whose route changed, in their order, with the new one (`None`: cut).
///
/// First every pair without a whole route gets one by the path heuristic: fewest hops, then most available
/// bandwidth, seeded ties. A pair whose route is whole keeps it. Then routes are tried, two for each pair: the pair
/// drawn with weight on most hops, then least bandwidth; the route with weight on fewest hops, then most bandwidth,
/// the released one excluded. What does not make utility rise is taken back. A try is a step of the budget; the
/// first routes take none. A pair with no path left loses its route unless the change is planned. Where the budget is over
/// before all pairs were looked at, the others have no path: [`Budget::is_cut_short`] says that it may be so.
pub fn reroute(
    index: &mut FlowIndex,
    what: &Reroute<'_>,
    budget: &mut Budget<'_>,
) -> Vec<(NodePair, Option<Arc<[DirectedLinkIdx]>>)> {
    let mut pairs = what.pairs.to_vec();
    pairs.sort_unstable();
    pairs.dedup();
    let before: Vec<Links> =
        pairs.iter().map(|pair| index.route(*pair).unwrap_or(&[]).iter().copied().collect()).collect();
    let rows: Vec<u32> = pairs.iter().map(|pair| index.row_or_new(*pair)).collect();
    let budget = &*budget;
    let candidates = Candidates::new(what.network, what.paths, what.topology, what.avoid, K);
    let mut candidates = candidates.counted(budget);
    let choices: Vec<Option<Choices>> = pairs.iter().map(|pair| candidates.of(*pair)).collect();
    if !what.planned {
        repair(index, what, &candidates, &rows, &choices, &pairs);
        budget.work(index.take_work());
    }
    let movable = (0..pairs.len()).filter_map(|at| {
        let choices = choices[at].filter(|choices| choices.count() > 1)?;
        Some(Movable { row: rows[at], choices, tie: tie_of(what.seed, pairs[at]) })
    });
    let movable: Vec<Movable> = movable.collect();
    let tries = TRIES * movable.len() as u64;
    improve(index, &candidates, &movable, &mut FlowIndex::utility, 0, (what.seed, tries), budget);
    let mut changed = Vec::new();
    for ((pair, row), before) in pairs.into_iter().zip(rows).zip(before) {
        let now = index.route_of(row);
        if *now != *before {
            changed.push((pair, Some(Arc::from(now)).filter(|links: &Arc<[_]>| !links.is_empty())));
        }
        index.tidy(row);
    }
    changed
}

/// Gives every pair without a whole route one, or none where there is none.
fn repair(
    index: &mut FlowIndex,
    what: &Reroute<'_>,
    candidates: &Candidates<'_>,
    rows: &[u32],
    choices: &[Option<Choices>],
    pairs: &[NodePair],
) {
    index.hold();
    let broken = |index: &FlowIndex, row: u32| {
        let route = index.route_of(row);
        route.is_empty() || route.iter().any(|link| index.capacity(*link) <= 0.0)
    };
    let broken: Vec<usize> = (0..rows.len()).filter(|&at| broken(index, rows[at])).collect();
    for &at in &broken {
        index.lay(rows[at], &[]);
    }
    for &at in &broken {
        let Some(choices) = &choices[at] else { continue };
        let weight = index.weight_of(rows[at]);
        if let Some(path) = candidates.best(index, choices, weight, tie_of(what.seed, pairs[at])) {
            index.lay(rows[at], &candidates.links(choices, path));
        }
    }
    index.recompute_rates();
}

/// Tries other routes for pairs, at most `tries`, and keeps those that make `utility` rise; whether one did. A look
/// at `utility` takes `utility_work` beside what the index knows of.
pub(super) fn improve(
    index: &mut FlowIndex,
    candidates: &Candidates<'_>,
    pairs: &[Movable],
    utility: &mut dyn FnMut(&FlowIndex) -> f64,
    utility_work: u64,
    (seed, tries): (u64, u64),
    budget: &Budget<'_>,
) -> bool {
    if pairs.is_empty() {
        return false;
    }
    let mut random = ChaCha8Rng::seed_from_u64(mix(seed));
    let (mut best, mut order, mut gained) = (utility(index), Vec::new(), false);
    for number in 0..tries {
        if !budget.step() {
            break;
        }
        // The order is taken anew after so many draws as there are pairs.
        if number.is_multiple_of(pairs.len() as u64) {
            order = worst_first(index, pairs);
            budget.work(pairs.len() as u64);
        }
        let Movable { row, choices, tie } = &pairs[order[towards_first(&mut random, order.len())]];
        let now: Links = index.route_of(*row).iter().copied().collect();
        let weight = index.weight_of(*row);
        let Some(path) = candidates.draw(index, choices, &now, weight, (*tie, random.random())) else { continue };
        index.hold();
        index.lay(*row, &candidates.links(choices, path));
        index.recompute_rates();
        let after = utility(index);
        if after > best {
            (best, gained) = (after, true);
        } else {
            index.hold();
            index.lay(*row, &now);
            index.recompute_rates();
        }
        budget.work(utility_work + index.utility_work() + index.take_work()); // the next step is told
    }
    gained
}

/// The de-path heuristic's order: most hops first, then least bandwidth.
pub(super) fn worst_first(index: &FlowIndex, pairs: &[Movable]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    // Rates are finite and not negative: their bits are in their order.
    let key = |at: &usize| {
        let row = pairs[*at].row;
        (Reverse(index.route_of(row).len()), index.rate_of(row).to_bits(), *at)
    };
    order.sort_by_cached_key(key);
    order
}

/// A draw from 0 to below `count`: the square of an even draw, so that the first tenth gets a third.
pub(super) fn towards_first(random: &mut ChaCha8Rng, count: usize) -> usize {
    let even: f64 = random.random();
    ((even * even * count as f64) as usize).min(count - 1)
}
