//! Minimum-cost flow on whole numbers: one type of problem, two exact algorithms.
//!
//! A flow takes every node's supply to nodes with demand (negative supply), within capacities, at the least sum of
//! cost × flow. [`Simplex`] is the primal network simplex: it keeps its tree, so that after changes of costs, capacities,
//! supplies, arcs and nodes it goes on from the former optimum. [`scaling`] is the cost-scaling method of Goldberg and
//! Tarjan ("Finding Minimum-Cost Circulations by Successive Approximation", 1990): it starts anew each time, and its time hangs
//! less on how much flows compete.
//!
//! # Invariants
//! - An answer that says it is optimal satisfies complementary slackness; debug builds look at every answer of the simplex.
//! - Nothing overflows: what might is refused with its value.
//! - The same problem and the same former rounds give the same flow.

pub mod dimacs;
mod problem;
pub mod scaling;
mod simplex;
mod sums;
#[cfg(test)]
mod tests;
mod tree;

pub use problem::{ArcId, ArcRow, MAX_VALUE, MinCostProblem, NodeId, ProblemError, UNLIMITED};
pub use simplex::Simplex;

/// What a solver found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinCostFlow {
    /// By arc of the problem, removed ones too (0).
    pub flows: Vec<i64>,
    /// Σ cost × flow.
    pub cost: i128,
    /// Supply that reaches no demand.
    pub short: i64,
    /// Demand that no supply reaches.
    pub unmet: i64,
    /// Where supply is short, the nodes that it could still reach, ascending: all ways out of them are full. Empty where nothing
    /// is short, or where the search was ended before it was known.
    pub cut: Vec<NodeId>,
    /// As much supply as can be meets demand, and no flow that does the same costs less; false: the search was ended before.
    pub optimal: bool,
    /// How much more this costs than the best one, at most; where the search was ended with all supply met.
    pub gap: Option<i128>,
    /// Pivots, or pushes and relabels.
    pub steps: u64,
}

/// What can't be solved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MinCostError {
    /// Costs fall for ever around a cycle.
    #[error(
        "the arc from node {from} to node {to} closes a cycle of negative cost and unlimited capacity: no flow is cheapest"
    )]
    NegativeCycle {
        /// Where the arc begins.
        from: u32,
        /// Where it ends.
        to: u32,
    },
    /// Prices might overflow.
    #[error("costs of up to {cost} are too large for {nodes} nodes: at most {most}")]
    CostTooLarge {
        /// The largest absolute cost; where supply can't all be met, costs may be fewer: the nodes count once more.
        cost: i64,
        /// Nodes of the problem.
        nodes: usize,
        /// The largest that is taken with so many nodes.
        most: i64,
    },
    /// Flows might overflow.
    #[error("capacities and supplies add up to {sum}: more than {}", UNLIMITED - 1)]
    SumTooLarge {
        /// Of all limited capacities and all supplies, without sign.
        sum: i128,
    },
}

/// Whether a flow is a cheapest one, by prices alone: every node's balance holds up to what is short, every flow is within
/// its capacity, and no arc with room has a negative reduced cost. For tests, and for debug builds.
///
/// # Errors
/// What does not hold, in words.
pub fn check(problem: &MinCostProblem, flows: &[i64], prices: &[i64]) -> Result<(), String> {
    let mut left: Vec<i64> = problem.supplies().to_vec();
    for (arc, row) in problem.arcs() {
        let flow = flows[arc.at()];
        if flow < 0 || flow > row.capacity {
            return Err(format!("arc {} carries {flow} of {}", arc.0, row.capacity));
        }
        left[row.from.at()] -= flow;
        left[row.to.at()] += flow;
        let reduced = row.cost + prices[row.from.at()] - prices[row.to.at()];
        if (reduced < 0 && flow < row.capacity) || (reduced > 0 && flow > 0) {
            return Err(format!("arc {} carries {flow} of {} at a reduced cost of {reduced}", arc.0, row.capacity));
        }
    }
    match left.iter().position(|left| *left != 0) {
        Some(node) => Err(format!("node {node} keeps {}", left[node])),
        None => Ok(()),
    }
}
