//! What each part of the fullest lever is worth, and each lie costs: runs without the part, or by the lie, against runs as they
//! should be.

use super::hinted_view::HintedView;
use hintd_simulator::worth::{CellWorth, Overall, Row, Spread};
use serde::Serialize;

/// What a part is worth or a lie costs, over all cells.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ChangeFigures {
    /// Mean completion without it, or by it, ÷ that with all parts and the truth: the geometric mean over the counted cells,
    /// seed by seed. Above 1: the part is worth something, the lie costs. None: runs are missing, or no cell counts.
    pub(super) times: Option<Spread>,
    /// The same by cell: medians over seeds.
    pub(super) times_by_cell: Vec<Option<f64>>,
}

/// Parts and lies, of rows as they stand in `overall` and, in the same order, in every cell.
pub(super) fn parts<'a>(
    overall: &[HintedView<'a, Overall>],
    cells: &[CellWorth],
) -> Vec<HintedView<'a, ChangeFigures>> {
    let of = |(at, row): (usize, &HintedView<'a, Overall>)| {
        row.without.or(row.lie)?;
        let is_whole = |other: &HintedView<'_, Overall>| {
            (other.policy, other.lever, other.without, other.lie) == (row.policy, row.lever, None, None)
        };
        let whole = overall.iter().position(is_whole)?;
        let in_cell = |cell: &CellWorth| {
            let by_seed = |at: usize| cell.hinted[at].as_ref().map(|row: &Row| &row.mean_by_seed[..]);
            median_times(by_seed(at)?, by_seed(whole)?)
        };
        let figures = ChangeFigures {
            times: times(&row.figures.mean_by_seed, &overall[whole].figures.mean_by_seed),
            times_by_cell: cells.iter().map(in_cell).collect(),
        };
        let &HintedView { policy, lever, without, lie, .. } = row;
        Some(HintedView { policy, lever, without, lie, name: row.name.clone(), figures })
    };
    overall.iter().enumerate().filter_map(of).collect()
}

/// One ÷ the other, seed by seed where both are there.
fn times(one: &[Option<f64>], other: &[Option<f64>]) -> Option<Spread> {
    Spread::of(one.iter().zip(other).filter_map(|(one, other)| Some((*one)? / (*other)?)))
}

fn median_times(one: &[Option<f64>], other: &[Option<f64>]) -> Option<f64> {
    times(one, other).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_paired_by_seed_and_missing_ones_left_out() {
        let whole = [Some(0.5), Some(0.6), None, Some(0.5)];
        let without = [Some(0.6), Some(0.6), Some(0.9), Some(0.55)];
        let found = times(&without, &whole).unwrap();
        for (value, expected) in [(found.min, 1.0), (found.median, 1.1), (found.max, 1.2)] {
            assert!((value - expected).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(times(&[None], &[Some(1.0)]), None);
    }
}
