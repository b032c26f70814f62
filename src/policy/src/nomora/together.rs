//! Requests of one round.
//!
//! First each is placed in its turn, beside those before it: that says where roots go, and what the round has to be better than.
//! Then all containers but the roots are one flow ([`Flow`]), in which a request gives way where that is cheaper for all. Of both
//! answers the cheaper one is taken.
//!
//! Where containers are of several sizes, or have bounds, the flow can't promise that it places as many of a request as it has in
//! its turn. Who would lose by it stays where it is in turn, and the others flow around it once more.
//!
//! # Invariants
//! - Of no group fewer containers are placed than in turn: a request may give way to others, but not go without for them.
//! - Each turn takes steps of its own request; the flow takes what all of them leave.

use super::flow::Flow;
use super::params::NomoraParams;
use super::request::Asked;
use super::round::LOOK_UP;
use crate::placement_builder::PlacementBuilder;
use crate::{Budget, PlaceProblem, Placement, Together, Work};
use hintd_model::cluster::Overlay;
use hintd_model::network::latency::Latencies;

/// Flows of a round are made at most so many times: each time more of its requests stay where they are in turn.
const MOST_TRIES: u32 = 4;

/// Places a round; the second of each problem is the steps that it may take in its turn.
pub(super) fn place(
    params: &NomoraParams,
    (problems, steps): (&[PlaceProblem<'_>], &[u64]),
    budget: &Budget<'_>,
) -> Together {
    let first = in_turn(params, (problems, steps), budget);
    let asked: Vec<Asked<'_, '_>> = problems.iter().map(|problem| Asked::new(params, problem)).collect();
    let (in_turn, taken) = (cost_of(&asked, &first), budget.used());
    let better = (problems.len() > 1).then(|| by_flow(&asked, &first, budget)).flatten();
    let better = better.map(|placements| (cost_of(&asked, &placements), placements));
    let (cost, mut placements) = better.filter(|(cost, _)| *cost < in_turn).unwrap_or((in_turn, first));
    divide(budget.used() - taken, &mut placements);
    let scaled = |cost: u64| cost as f64 / 100.0;
    Together { placements, cost: scaled(cost), cost_in_turn: scaled(in_turn) }
}

/// Each in its turn, beside what those before it took; nothing for those whose turn does not come in time.
fn in_turn(
    params: &NomoraParams,
    (problems, steps): (&[PlaceProblem<'_>], &[u64]),
    budget: &Budget<'_>,
) -> Vec<Placement> {
    let mut leases = problems.first().map_or_else(Overlay::default, |problem| problem.leases.clone());
    let mut placements: Vec<Placement> = Vec::with_capacity(problems.len());
    for (problem, &steps) in problems.iter().zip(steps) {
        let search = |problem: &PlaceProblem<'_>| budget.portion(steps, |own| Asked::new(params, problem).place(own));
        let placement = if placements.is_empty() {
            search(problem)
        } else if budget.work(LOOK_UP * candidates_of(problem)) {
            search(&problem.beside(&leases))
        } else {
            Placement { steps: 0, ..PlacementBuilder::new(problem).finish(budget) }
        };
        if placement.is_of_use(problem) {
            for (node, size) in placement.taken(problem) {
                leases.set(node, leases.leased(node).plus(&size));
            }
        }
        placements.push(placement);
    }
    placements
}

/// Candidates of all groups: what it takes to see who has room beside others.
fn candidates_of(problem: &PlaceProblem<'_>) -> u64 {
    problem.groups.iter().map(|group| group.candidates.len() as u64).sum()
}

/// The round by a flow by which nobody loses; `None`: there was no time, the flow is too large, or somebody still does.
fn by_flow(asked: &[Asked<'_, '_>], first: &[Placement], budget: &Budget<'_>) -> Option<Vec<Placement>> {
    let mut stays = vec![false; first.len()];
    for _ in 0..MOST_TRIES {
        let placements = Flow::new(asked, first, &stays).place(budget)?;
        let loses: Vec<bool> =
            first.iter().zip(&placements).map(|(first, placement)| loses(first, placement)).collect();
        if !loses.contains(&true) {
            return Some(placements);
        }
        stays.iter_mut().zip(loses).for_each(|(stays, loses)| *stays |= loses);
    }
    None
}

/// Whether some group has fewer containers than in turn; a gang that was whole is not, then.
fn loses(first: &Placement, placement: &Placement) -> bool {
    (0..first.groups.len()).any(|group| placement.placed(group) < first.placed(group))
}

/// Counts steps that were taken for all as taken by each, in equal parts.
fn divide(steps: u64, placements: &mut [Placement]) {
    let count = placements.len().max(1) as u64;
    for (at, placement) in (0..).zip(placements) {
        placement.steps += steps / count + u64::from(at < steps % count);
    }
}

/// What a round costs: its containers but the roots, and those without a place as tasks that wait on.
fn cost_of(asked: &[Asked<'_, '_>], placements: &[Placement]) -> u64 {
    let cost = |(asked, placement): (&Asked<'_, '_>, &Placement)| {
        let out = |count: u64| count * u64::from(asked.params.gamma);
        if !placement.is_of_use(asked.problem) {
            return out(asked.problem.containers());
        }
        let unplaced = out(asked.problem.containers() - placement.placed_all());
        let Some((root, of)) = asked.root_in(placement) else { return unplaced };
        let placed = placement.groups.iter().enumerate().flat_map(|(group, shares)| {
            let is_root = move |at| of == Some(group) && at == 0;
            shares.iter().enumerate().map(move |(at, share)| (share.node, share.count - u32::from(is_root(at))))
        });
        let each = |node| u64::from(asked.curve.cost(asked.latency.rtt(root, node)));
        placed.map(|(node, count)| u64::from(count) * each(node)).sum::<u64>() + unplaced
    };
    asked.iter().zip(placements).map(cost).sum()
}

#[cfg(test)]
pub(super) fn cost_of_all(params: &NomoraParams, problems: &[PlaceProblem<'_>], placements: &[Placement]) -> f64 {
    let asked: Vec<Asked<'_, '_>> = problems.iter().map(|problem| Asked::new(params, problem)).collect();
    cost_of(&asked, placements) as f64 / 100.0
}
