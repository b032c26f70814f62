//! Flows of problems whose supply can't all be met, and sums that both algorithms need.

use super::problem::{ArcId, ArcRow, MinCostProblem, NodeId, UNLIMITED};
use super::simplex::Simplex;
use super::{MinCostError, MinCostFlow};
use std::collections::VecDeque;

/// Prices stay below this.
const MOST: i128 = 1 << 60;

/// A cost above that of any way through the problem.
///
/// # Errors
/// [`MinCostError::CostTooLarge`], [`MinCostError::SumTooLarge`].
pub(super) fn artificial_cost(problem: &MinCostProblem) -> Result<i64, MinCostError> {
    let nodes = problem.supplies().len();
    let (mut sum, mut cost) = (0_i128, 0_i64);
    for (_, row) in problem.arcs() {
        sum += i128::from(if row.capacity == UNLIMITED { 0 } else { row.capacity });
        if row.cost.unsigned_abs() > cost.unsigned_abs() {
            cost = row.cost;
        }
    }
    sum += problem.supplies().iter().map(|supply| i128::from(supply.unsigned_abs())).sum::<i128>();
    if sum >= i128::from(UNLIMITED) {
        return Err(MinCostError::SumTooLarge { sum });
    }
    let each = nodes as i128 + 2;
    let big = each * i128::from(cost.unsigned_abs()) + 1;
    let fits = i64::try_from(big).ok().filter(|_| 4 * big < MOST);
    let most = || (MOST / 4 / each) as i64;
    fits.ok_or_else(|| MinCostError::CostTooLarge { cost, nodes, most: most() })
}

/// Σ cost × flow.
pub(super) fn cost(problem: &MinCostProblem, flows: &[i64]) -> i128 {
    let rows = problem.rows().iter().zip(flows);
    rows.map(|(row, flow)| i128::from(row.cost) * i128::from(*flow)).sum()
}

/// The cheapest of the flows that meet as much supply as can be. `met` is one that does, at whatever cost.
///
/// A hub takes from each supply and gives to each demand what it likes, at more than the cost of any way: then all is met,
/// and what goes over the hub is what is short.
///
/// # Errors
/// [`MinCostError::CostTooLarge`]: costs are multiplied by the number of nodes once more.
pub(super) fn cheapest(
    problem: &MinCostProblem,
    met: MinCostFlow,
    stop: &mut dyn FnMut() -> bool,
) -> Result<MinCostFlow, MinCostError> {
    let (hub_cost, nodes) = (artificial_cost(problem)?, problem.supplies().len());
    let mut with_hub = problem.clone();
    let surplus: i64 = problem.supplies().iter().sum();
    let sum = problem.supplies().iter().map(|supply| i128::from(supply.unsigned_abs())).sum();
    let hub = with_hub.add_node(-surplus).map_err(|_| MinCostError::SumTooLarge { sum })?;
    // The hub's cost is that of the dearest arc, times the nodes: what of it fits says what of the arc's does.
    let dear = |error| match error {
        MinCostError::CostTooLarge { most, .. } => {
            MinCostError::CostTooLarge { cost: hub_cost / (nodes as i64 + 2), nodes, most: most / (nodes as i64 + 2) }
        }
        other => other,
    };
    let too_large = |_| dear(MinCostError::CostTooLarge { cost: hub_cost, nodes, most: super::MAX_VALUE });
    let mut by_hub: Vec<(ArcId, bool)> = Vec::new();
    for (node, supply) in (0_u32..).map(NodeId).zip(problem.supplies()) {
        let (from, to) = if *supply > 0 { (node, hub) } else { (hub, node) };
        if *supply != 0 {
            let row = ArcRow { from, to, capacity: supply.abs(), cost: hub_cost };
            by_hub.push((with_hub.add_arc(row).map_err(too_large)?, *supply > 0));
        }
    }
    let mut whole = Simplex::new().solve(&with_hub, stop).map_err(dear)?;
    if !whole.optimal || whole.short > 0 || whole.unmet > 0 {
        return Ok(MinCostFlow { optimal: false, steps: met.steps + whole.steps, ..met });
    }
    let over_hub = |supply: bool| {
        let own = by_hub.iter().filter(|(_, own)| *own == supply);
        own.map(|(arc, _)| whole.flows[arc.at()]).sum::<i64>()
    };
    (whole.short, whole.unmet) = (over_hub(true), over_hub(false));
    let stuck: Vec<NodeId> = by_hub
        .iter()
        .filter(|(arc, own)| *own && whole.flows[arc.at()] > 0)
        .map(|(arc, _)| with_hub.rows()[arc.at()].from)
        .collect();
    for (arc, _) in &by_hub {
        // Numbers of removed arcs may have been used.
        if let Some(flow) = whole.flows.get_mut(arc.at()) {
            *flow = 0;
        }
    }
    whole.flows.truncate(problem.rows().len());
    whole.cost = cost(problem, &whole.flows);
    whole.cut = reachable(problem, &whole.flows, stuck);
    whole.steps += met.steps;
    Ok(whole)
}

/// Nodes to which more could be sent from those.
fn reachable(problem: &MinCostProblem, flows: &[i64], from: Vec<NodeId>) -> Vec<NodeId> {
    let mut ways: Vec<Vec<u32>> = vec![Vec::new(); problem.supplies().len()];
    for (arc, row) in problem.arcs() {
        if flows[arc.at()] < row.capacity {
            ways[row.from.at()].push(row.to.0);
        }
        if flows[arc.at()] > 0 {
            ways[row.to.at()].push(row.from.0);
        }
    }
    let mut seen = vec![false; ways.len()];
    from.iter().for_each(|node| seen[node.at()] = true);
    let mut waiting: VecDeque<u32> = from.iter().map(|node| node.0).collect();
    while let Some(node) = waiting.pop_front() {
        for &to in &ways[node as usize] {
            if !std::mem::replace(&mut seen[to as usize], true) {
                waiting.push_back(to);
            }
        }
    }
    (0_u32..).zip(seen).filter(|(_, seen)| *seen).map(|(node, _)| NodeId(node)).collect()
}
