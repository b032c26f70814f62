//! Sums that both algorithms need.

use super::MinCostError;
use super::problem::{MinCostProblem, UNLIMITED};

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
