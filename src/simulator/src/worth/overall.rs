//! All cells together.

use super::{CellWorth, NETWORK_COUNTS, NETWORK_MATTERS, Row, Spread};
use serde::Serialize;

/// The cells that a policy is judged by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counted {
    /// The share of completion that the network costs at least in each of them.
    pub network_costs: f64,
    /// Their places.
    pub cells: Vec<usize>,
}

impl Counted {
    /// Those where the network costs more than [`NETWORK_MATTERS`]; where there is none, more than [`NETWORK_COUNTS`];
    /// where there is none either, no cell.
    #[must_use]
    pub fn of(cells: &[CellWorth]) -> Self {
        let costly = |share: f64| Self {
            network_costs: share,
            cells: (0..cells.len()).filter(|&cell| cells[cell].costs(share)).collect(),
        };
        let matters = costly(NETWORK_MATTERS);
        if matters.cells.is_empty() { costly(NETWORK_COUNTS) } else { matters }
    }
}

/// What something comes to over all cells.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Overall {
    /// Geometric mean over the counted cells of the ratio of mean completions, seed by seed; seeds that lack a cell are
    /// left out.
    pub mean: Option<Spread>,
    /// The same by seed.
    pub mean_by_seed: Vec<Option<f64>>,
    /// Median over the counted cells of what was won back.
    pub won_back: Option<f64>,
    /// The largest ratio of any cell, each cell's being the median over seeds.
    pub worst_cell: Option<f64>,
    /// Its place.
    pub worst_cell_at: Option<usize>,
    /// Median over all cells of the ratio of bytes across racks.
    pub cross_rack: Option<f64>,
    /// The largest share of slower jobs of any cell, beyond that of other phases.
    pub slower_beyond_phases: Option<f64>,
    /// The slowest job of any cell and seed ÷ itself under YARN alone.
    pub slowest: Option<f64>,
}

impl Overall {
    /// Over the rows that `row` finds.
    pub fn of<'c>(cells: &'c [CellWorth], counted: &Counted, row: impl Fn(&'c CellWorth) -> Option<&'c Row>) -> Self {
        let rows: Vec<Option<&Row>> = cells.iter().map(row).collect();
        let there = || rows.iter().flatten();
        let judged: Option<Vec<&Row>> = counted.cells.iter().map(|&cell| rows[cell]).collect();
        let judged = judged.unwrap_or_default(); // a mean over other cells than its neighbour's says nothing
        let worst = rows.iter().enumerate().filter_map(|(cell, row)| Some((cell, row.as_ref()?.mean.median)));
        let worst = worst.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let median = |values: &mut dyn Iterator<Item = f64>| Spread::of(values).map(|spread| spread.median);
        let mean_by_seed = by_seed(&judged);
        Self {
            mean: Spread::of(mean_by_seed.iter().flatten().copied()),
            mean_by_seed,
            won_back: median(&mut judged.iter().filter_map(|row| Some(row.won_back?.median))),
            worst_cell: worst.map(|(_, ratio)| ratio),
            worst_cell_at: worst.map(|(cell, _)| cell),
            cross_rack: median(&mut there().filter_map(|row| Some(row.cross_rack?.median))),
            slower_beyond_phases: there().filter_map(|row| Some(row.slower_beyond_phases?.median)).reduce(f64::max),
            slowest: there().map(|row| row.slowest.max).reduce(f64::max),
        }
    }
}

/// The geometric mean over the rows, by seed.
fn by_seed(rows: &[&Row]) -> Vec<Option<f64>> {
    let seeds = rows.first().map_or(0, |row| row.mean_by_seed.len());
    let mean = |seed: usize| -> Option<f64> {
        let logs: Option<Vec<f64>> = rows.iter().map(|row| row.mean_by_seed[seed].map(f64::ln)).collect();
        let logs = logs?;
        Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    (0..seeds).map(mean).collect()
}
