//! Both algorithms against linear programming: a dense simplex that knows arcs as columns and nothing of networks.

use super::*;

/// What a unit that is sent gains: more than its way can cost.
const REWARD: i64 = 1_000_000;

/// The most that Σ gain × x comes to where each row's Σ coefficient × x is at most its limit, and no x is below 0. No limit is
/// below 0, so x = 0 is one to begin with.
struct Program {
    rows: Vec<Vec<i64>>,
    limits: Vec<i64>,
    gains: Vec<i64>,
}

impl Program {
    /// An x is what an arc carries. Nodes with supply send on what they get, and up to their supply more; nodes with demand keep up
    /// to their demand.
    fn of(problem: &MinCostProblem) -> Self {
        let arcs: Vec<ArcRow> = problem.arcs().map(|(_, row)| *row).collect();
        let mut program = Self { rows: vec![], limits: vec![], gains: arcs.iter().map(|arc| -arc.cost).collect() };
        for (node, &supply) in problem.supplies().iter().enumerate() {
            let sign = if supply < 0 { -1 } else { 1 };
            let ends = |arc: &ArcRow| sign * (i64::from(arc.from.at() == node) - i64::from(arc.to.at() == node));
            let out: Vec<i64> = arcs.iter().map(ends).collect();
            if supply > 0 {
                program.gains.iter_mut().zip(&out).for_each(|(gain, out)| *gain += REWARD * out);
            }
            program.row(out.iter().map(|out| -out).collect(), 0);
            program.row(out, supply.abs());
        }
        for (at, arc) in arcs.iter().enumerate().filter(|(_, arc)| arc.capacity < UNLIMITED) {
            program.row((0..arcs.len()).map(|other| i64::from(other == at)).collect(), arc.capacity);
        }
        program
    }

    fn row(&mut self, coefficients: Vec<i64>, limit: i64) {
        self.rows.push(coefficients);
        self.limits.push(limit);
    }

    /// A best x, by Bland's rule, with which it ends. What columns and rows stand for is told by `columns` and `basis`: an x, or
    /// beyond these what a row leaves of its limit.
    fn best(mut self) -> Vec<i64> {
        let count = self.gains.len();
        let mut columns: Vec<usize> = (0..count).collect();
        let mut basis: Vec<usize> = (count..count + self.rows.len()).collect();
        loop {
            let rises = (0..count).filter(|&column| self.gains[column] > 0);
            let Some(column) = rises.min_by_key(|&column| columns[column]) else { break };
            let bounds = (0..self.rows.len()).filter(|&row| self.rows[row][column] > 0);
            let row = bounds.min_by_key(|&row| (self.limits[row], basis[row])).expect("no flow gains without end");
            self.pivot(row, column);
            std::mem::swap(&mut columns[column], &mut basis[row]);
        }
        let mut best = vec![0; count];
        basis.iter().zip(&self.limits).filter(|(of, _)| **of < count).for_each(|(of, limit)| best[*of] = *limit);
        best
    }

    fn pivot(&mut self, row: usize, column: usize) {
        // Coefficients of flows are totally unimodular: nothing has to be divided.
        assert_eq!(self.rows[row][column], 1);
        let (by, limit) = (self.rows[row].clone(), self.limits[row]);
        let off = |of: &mut Vec<i64>| {
            let times = std::mem::take(&mut of[column]);
            of.iter_mut().zip(&by).for_each(|(of, by)| *of -= times * by);
            times
        };
        off(&mut self.gains);
        for (at, of) in self.rows.iter_mut().enumerate().filter(|(at, _)| *at != row) {
            self.limits[at] -= off(of) * limit;
        }
    }
}

/// Supply sent, and what it costs.
fn by_linear_program(problem: &MinCostProblem) -> (i64, i128) {
    let best = Program::of(problem).best();
    let (mut sent, mut cost) = (0, 0);
    for ((_, arc), flow) in problem.arcs().zip(best) {
        cost += i128::from(flow) * i128::from(arc.cost);
        let supplies = |node: NodeId| i64::from(problem.supplies()[node.at()] > 0);
        sent += flow * (supplies(arc.from) - supplies(arc.to));
    }
    (sent, cost)
}

fn sent(problem: &MinCostProblem, found: &MinCostFlow) -> (i64, i128) {
    let supply: i64 = problem.supplies().iter().filter(|supply| **supply > 0).sum();
    (supply - found.short, found.cost)
}

#[test]
fn both_algorithms_find_the_optimum_of_the_linear_program() {
    let small = (0..4_000).map(|seed| drawn(seed, 9, 30));
    let larger = (0..200).map(|seed| drawn(seed, 30, 120));
    for (at, problem) in small.chain(larger).enumerate() {
        let best = by_linear_program(&problem);
        let (simplex, scaling) =
            (Simplex::new().solve(&problem, &mut never()).unwrap(), scaling::solve(&problem, &mut never()).unwrap());
        assert_eq!([sent(&problem, &simplex), sent(&problem, &scaling)], [best; 2], "problem {at}");
    }
}

#[test]
fn rounds_end_at_the_optimum_of_the_linear_program() {
    for seed in 0..40 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut problem, mut kept) = (MinCostProblem::new(), Simplex::new());
        (0..6).for_each(|_| drop(problem.add_node(0)));
        for round in 0..50 {
            (0..random.random_range(1..=5)).for_each(|_| change(&mut problem, &mut random));
            let found = kept.solve(&problem, &mut never()).unwrap();
            assert_eq!(sent(&problem, &found), by_linear_program(&problem), "seed {seed}, round {round}");
        }
    }
}
