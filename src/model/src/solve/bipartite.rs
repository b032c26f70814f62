//! Maximum-weight bipartite matching: the Hungarian method, by shortest augmenting paths with potentials.
//!
//! Rows and columns are matched so that the sum of weights is as large as can be. Of equally heavy matchings it is one
//! that keeps as many pairs of an earlier one as can be; what is left of ties falls by row and column, so that the same
//! input gives the same matching. Pairs of weight 0 stay unmatched. So matching again with the answer as the earlier
//! one gives the same answer.
//!
//! Work: O(n²·m) for n the smaller side and m the larger (Kuhn 1955, Jonker and Volgenant 1987): at 400 × 400 4 to
//! 6 ms, and 35 ms where many pairs weigh the same; 1 and 5 ms at 200 × 200, 0.02 ms at 20 × 20 (release build, the longest of
//! five drawn cases, a busy machine). Sums are exact: weights are whole.

use std::collections::BTreeMap;
use std::ops::{Add, Sub};

/// Bits that a weight may have, so that no sum of them can overflow.
const WEIGHT_BITS: u32 = 64;

/// The matching, by row: its column.
///
/// `kept` is the earlier matching by row; it may be shorter, and may name pairs of weight 0 or columns that are not
/// there, which count for nothing.
#[must_use]
pub fn heaviest_matching(
    rows: usize,
    columns: usize,
    weight: impl Fn(usize, usize) -> u64,
    kept: &[Option<usize>],
) -> Vec<Option<usize>> {
    heaviest_matching_counted(rows, columns, weight, kept).0
}

/// Steps that [`heaviest_matching_counted`] takes at most: cells of the matrix that are looked at.
#[must_use]
pub const fn most_steps(rows: usize, columns: usize) -> u64 {
    let (n, m) = if rows < columns { (rows, columns) } else { (columns, rows) };
    let (n, m) = (n as u64, m as u64);
    n.saturating_mul(m).saturating_add(n.saturating_mul(n).saturating_mul(m))
}

/// A matching in which no pair that is left out is heavier than both of those that it would push out: pairs are taken by
/// their weight, the heaviest first, of equal ones those kept, then by row and column. It weighs at least half of the
/// heaviest. By row: its column; and the steps, one a pair.
#[must_use]
pub fn greedy_matching(
    rows: usize,
    weights: &BTreeMap<(usize, usize), u64>,
    kept: &[Option<usize>],
) -> (Vec<Option<usize>>, u64) {
    let mut pairs: Vec<(usize, usize)> = weights.keys().copied().collect();
    let is_kept = |&(row, column): &(usize, usize)| kept.get(row) == Some(&Some(column));
    pairs.sort_by_key(|pair| (std::cmp::Reverse(weights[pair]), !is_kept(pair)));
    let (mut by_row, mut taken) = (vec![None; rows], std::collections::BTreeSet::new());
    for &(row, column) in &pairs {
        if by_row[row].is_none() && taken.insert(column) {
            by_row[row] = Some(column);
        }
    }
    (by_row, pairs.len() as u64)
}

/// [`heaviest_matching`], and the steps that it took: cells of the matrix that were looked at.
#[must_use]
pub fn heaviest_matching_counted(
    rows: usize,
    columns: usize,
    weight: impl Fn(usize, usize) -> u64,
    kept: &[Option<usize>],
) -> (Vec<Option<usize>>, u64) {
    // One pair kept counts less than one unit of weight, however many are kept.
    let scale = rows.min(columns) as i128 + 1;
    debug_assert!(scale.leading_zeros() > WEIGHT_BITS, "sums of weights stay far below 2^127");
    let value = |row: usize, column: usize| match weight(row, column) {
        0 => 0,
        weight => i128::from(weight) * scale + i128::from(kept.get(row) == Some(&Some(column))),
    };
    let mut by_row = vec![None; rows];
    let (narrow, wide) = (rows.min(columns), rows.max(columns));
    let steps;
    if rows <= columns {
        let found = assign(narrow, wide, &value);
        steps = found.1;
        for (column, row) in found.0.into_iter().enumerate() {
            if let Some(row) = row {
                by_row[row] = Some(column);
            }
        }
    } else {
        let found = assign(narrow, wide, &|column, row| value(row, column));
        steps = found.1;
        for (row, column) in found.0.into_iter().enumerate() {
            by_row[row] = column;
        }
    }
    for (row, column) in by_row.iter_mut().enumerate() {
        *column = column.filter(|&column| weight(row, column) > 0);
    }
    (by_row, steps)
}

/// Gives each of `n` rows a column of `m` ≥ `n`, values summed to the most; by column: its row. And the steps.
fn assign(n: usize, m: usize, value: &dyn Fn(usize, usize) -> i128) -> (Vec<Option<usize>>, u64) {
    let costs: Vec<i128> =
        (0..n).flat_map(|row| (0..m).map(move |column| (row, column))).map(|(r, c)| -value(r, c)).collect();
    let most = costs.iter().map(|cost| cost.unsigned_abs()).max().unwrap_or(0);
    // While a column is free, no row's potential and no path is further from 0 than the largest cost, and no column's than
    // twice that: five times it is the most that is ever summed up.
    if most <= u128::from(i64::MAX.unsigned_abs()) / 8 {
        let narrow = costs.into_iter().map(|cost| i64::try_from(cost).expect("it is far below the largest"));
        solved(narrow.collect(), (n, m), i64::MAX)
    } else {
        solved(costs, (n, m), i128::MAX)
    }
}

fn solved<C: Cost>(cost: Vec<C>, (n, m): (usize, usize), far: C) -> (Vec<Option<usize>>, u64) {
    let mut search = Search {
        steps: cost.len() as u64,
        cost,
        columns: m,
        of_row: vec![C::default(); n],
        of_column: vec![C::default(); m],
        row_at: vec![None; m],
        far,
        least: vec![far; m],
        before: vec![None; m],
        open: Vec::with_capacity(m),
        passed: Vec::with_capacity(m),
    };
    for row in 0..n {
        search.place(row);
    }
    (search.row_at, search.steps)
}

/// Whole numbers: narrow ones where the sums allow it, which are twice as fast.
trait Cost: Copy + Ord + Default + Add<Output = Self> + Sub<Output = Self> {}
impl Cost for i64 {}
impl Cost for i128 {}

struct Search<C> {
    steps: u64,
    /// By row, then column.
    cost: Vec<C>,
    columns: usize,
    /// Potentials: cost − row's − column's is never negative, and 0 for matched pairs.
    of_row: Vec<C>,
    of_column: Vec<C>,
    row_at: Vec<Option<usize>>,
    /// Further than any path.
    far: C,
    /// Of the row that is placed now: the shortest path to each column found so far, and the column before it.
    least: Vec<C>,
    before: Vec<Option<usize>>,
    /// Columns whose shortest path is not known yet, ascending.
    open: Vec<usize>,
    /// The others, as they were found, with their paths' lengths.
    passed: Vec<(usize, C)>,
}

impl<C: Cost> Search<C> {
    /// Matches one more row along a shortest path, in reduced costs, to a free column. Of columns that are as near the
    /// first is taken.
    fn place(&mut self, start: usize) {
        self.least.fill(self.far);
        self.before.fill(None);
        self.open.clear();
        self.open.extend(0..self.columns);
        self.passed.clear();
        let (mut row, mut from, mut length) = (start, None, C::default());
        let end = loop {
            let nearest = self.reach(row, from, length);
            let column = self.open.remove(nearest);
            length = self.least[column];
            self.passed.push((column, length));
            match self.row_at[column] {
                Some(next) => (row, from) = (next, Some(column)),
                None => break column,
            }
        };
        self.shift(start, length);
        let mut at = end;
        while let Some(earlier) = self.before[at] {
            self.row_at[at] = self.row_at[earlier];
            at = earlier;
        }
        self.row_at[at] = Some(start);
    }

    /// Extends the path that ends in the row, of that length, to all open columns; gives the position of the nearest.
    fn reach(&mut self, row: usize, from: Option<usize>, length: C) -> usize {
        let costs = &self.cost[row * self.columns..(row + 1) * self.columns];
        let base = length - self.of_row[row];
        let (mut nearest, mut step) = (0, self.far);
        self.steps += self.open.len() as u64;
        for (at, &column) in self.open.iter().enumerate() {
            let reduced = base + costs[column] - self.of_column[column];
            if reduced < self.least[column] {
                (self.least[column], self.before[column]) = (reduced, from);
            }
            if self.least[column] < step {
                (step, nearest) = (self.least[column], at);
            }
        }
        nearest
    }

    /// Moves the potentials of all that was passed, the first row among it, as paths of that length ask.
    fn shift(&mut self, start: usize, length: C) {
        self.of_row[start] = self.of_row[start] + length;
        for &(column, at) in &self.passed {
            let by = length - at;
            if let Some(row) = self.row_at[column] {
                self.of_row[row] = self.of_row[row] + by;
            }
            self.of_column[column] = self.of_column[column] - by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Weights = Vec<Vec<u64>>;

    fn matched(weights: &Weights, kept: &[Option<usize>]) -> Vec<Option<usize>> {
        let columns = weights.first().map_or(0, Vec::len);
        heaviest_matching(weights.len(), columns, |row, column| weights[row][column], kept)
    }

    /// Weight and pairs kept of a matching.
    fn worth(weights: &Weights, matching: &[Option<usize>], kept: &[Option<usize>]) -> (u128, usize) {
        let pairs = || matching.iter().enumerate().filter_map(|(row, column)| Some((row, (*column)?)));
        let held = pairs().filter(|&(row, column)| kept.get(row) == Some(&Some(column))).count();
        (pairs().map(|(row, column)| u128::from(weights[row][column])).sum(), held)
    }

    /// The best of all matchings of pairs with weight.
    fn brute(weights: &Weights, kept: &[Option<usize>]) -> (u128, usize) {
        fn from(weights: &Weights, kept: &[Option<usize>], chosen: &mut Vec<Option<usize>>) -> (u128, usize) {
            let row = chosen.len();
            if row == weights.len() {
                return worth(weights, chosen, kept);
            }
            let free = (0..weights[row].len()).filter(|&column| weights[row][column] > 0);
            let choices: Vec<_> = free.map(Some).filter(|column| !chosen.contains(column)).chain([None]).collect();
            let best = choices.into_iter().map(|choice| {
                chosen.push(choice);
                let best = from(weights, kept, chosen);
                chosen.pop();
                best
            });
            best.max().expect("no choice is a choice")
        }
        from(weights, kept, &mut Vec::new())
    }

    fn a_case() -> impl Strategy<Value = (Weights, Vec<Option<usize>>)> {
        let weight = prop_oneof![3 => 0_u64..4, 1 => Just(0), 1 => 0_u64..1_000, 1 => u64::MAX - 3..=u64::MAX];
        (0_usize..6, 0_usize..6).prop_flat_map(move |(rows, columns)| {
            let row = prop::collection::vec(weight.clone(), columns);
            let kept = prop::collection::vec(prop::option::of(0_usize..7), 0..7);
            (prop::collection::vec(row, rows), kept)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn no_matching_is_heavier_or_as_heavy_and_keeps_more((weights, kept) in a_case()) {
            let ours = matched(&weights, &kept);
            let mut columns: Vec<usize> = ours.iter().copied().flatten().collect();
            columns.sort_unstable();
            prop_assert!(columns.windows(2).all(|two| two[0] < two[1]), "a column once: {:?}", ours);
            for (row, column) in ours.iter().enumerate() {
                prop_assert!(column.is_none_or(|column| weights[row][column] > 0), "no pair without weight");
            }
            prop_assert_eq!(worth(&weights, &ours, &kept), brute(&weights, &kept));
            prop_assert_eq!(&matched(&weights, &ours), &ours, "matching again changes nothing");
        }
    }

    proptest! {
        #[test]
        fn narrow_numbers_and_wide_ones_give_the_same(costs in prop::collection::vec(-9_i64..=0, 5 * 6)) {
            let wide = costs.iter().copied().map(i128::from).collect();
            prop_assert_eq!(solved::<i64>(costs, (5, 6), i64::MAX), solved::<i128>(wide, (5, 6), i128::MAX));
        }
    }

    #[test]
    fn weights_on_both_sides_of_the_narrow_numbers_reach_are_matched_alike() {
        let reach = i64::MAX as u64 / 8 / 4; // by the scale of three rows
        for most in [reach - 1, reach + 1] {
            let weights = vec![vec![most, most - 1, 1], vec![most - 1, 2, 0], vec![1, 0, most]];
            assert_eq!(worth(&weights, &matched(&weights, &[]), &[]), brute(&weights, &[]), "{most}");
        }
        let far = i64::MAX / 8;
        let costs = vec![-far, 0, -far, 0, -far, -far, -far, -far, 0];
        let wide = costs.iter().copied().map(i128::from).collect();
        assert_eq!(solved::<i64>(costs, (3, 3), i64::MAX), solved::<i128>(wide, (3, 3), i128::MAX));
    }

    #[test]
    fn a_heavy_pair_gives_way_to_two_lighter_ones_that_weigh_more_together() {
        assert_eq!(matched(&vec![vec![10, 9], vec![9, 0]], &[]), [Some(1), Some(0)]);
        assert_eq!(matched(&vec![vec![20, 9], vec![9, 0]], &[]), [Some(0), None]);
    }

    #[test]
    fn nothing_is_matched_where_nothing_weighs() {
        assert_eq!(matched(&vec![vec![0; 3]; 2], &[Some(0), Some(1)]), [None, None]);
        assert_eq!(heaviest_matching(3, 0, |_, _| 1, &[]), [None; 3]);
        assert_eq!(heaviest_matching(0, 3, |_, _| 1, &[]), []);
    }

    #[test]
    fn of_equally_heavy_matchings_the_earlier_one_stays() {
        let even = vec![vec![5; 3]; 3];
        for kept in [[Some(0), Some(1), Some(2)], [Some(2), Some(0), Some(1)], [Some(1), Some(2), Some(0)]] {
            assert_eq!(matched(&even, &kept), kept);
        }
        let heavier = vec![vec![5, 6, 5], vec![6, 5, 5], vec![5, 5, 5]];
        assert_eq!(matched(&heavier, &[Some(0), Some(1), Some(2)]), [Some(1), Some(0), Some(2)]);
    }

    #[test]
    fn two_hundred_ports_are_matched_as_an_independent_solver_does() {
        let weight = |row: usize, column: usize| (row as u64 * 7_919 + column as u64 * 104_729) % 1_009;
        let ours = heaviest_matching(200, 200, weight, &[]);
        let sum: u64 = ours.iter().enumerate().filter_map(|(row, column)| Some(weight(row, (*column)?))).sum();
        let rows = (0..200).map(|row| (0..200).map(|column| weight(row, column) as i64).collect::<Vec<_>>());
        let matrix = pathfinding::matrix::Matrix::from_rows(rows).unwrap();
        assert_eq!(sum as i64, pathfinding::kuhn_munkres::kuhn_munkres(&matrix).0);
    }
}
