//! One cell: a trace on a cluster at one load, under all that is compared, with all seeds.

use super::{NETWORK_COUNTS, Pair, PairError, RunFigures};
use serde::Serialize;

/// A figure over the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = values.first().zip(values.last())?;
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Self { median, min, max })
    }

    /// From the smallest to the largest.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.max - self.min
    }
}

/// Student's t for 95 % by degrees of freedom, from 1.
const T_95: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
/// The same for many.
const T_95_MANY: f64 = 2.0;
/// By so much the median of a few normal values scatters more than their mean.
const MEDIAN: f64 = 1.2533;

/// Between what the median of as many ratios lies in 95 of 100 cases by chance alone: that of runs which differ in
/// nothing but chance, whose logarithms scatter about 0. `None` of none.
#[must_use]
pub fn chance_95(ratios: &[f64]) -> Option<[f64; 2]> {
    let count = ratios.len();
    let square = ratios.iter().map(|ratio| ratio.ln().powi(2)).sum::<f64>() / count as f64;
    let t = T_95.get(count.checked_sub(1)?).copied().unwrap_or(T_95_MANY);
    let half = t * MEDIAN * (square / count as f64).sqrt();
    Some([(-half).exp(), half.exp()])
}

/// Runs of a cell. Each list has one place a seed, in the same order; `None`: that run is not there.
#[derive(Debug, Clone, Default)]
pub struct CellRuns<'a> {
    /// YARN alone.
    pub alone: Vec<Option<&'a RunFigures>>,
    /// The same under other phases of heartbeats.
    pub phases: Vec<Option<&'a RunFigures>>,
    /// YARN alone without a bottleneck in the network.
    pub free: Vec<Option<&'a RunFigures>>,
    /// By what hints.
    pub hinted: Vec<Vec<Option<&'a RunFigures>>>,
}

/// What is compared, against YARN alone. Ratios below 1 are faster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Mean completion, seconds.
    pub mean_s: Spread,
    /// Ratio of mean completions.
    pub mean: Spread,
    /// The same by seed.
    pub mean_by_seed: Vec<Option<f64>>,
    /// Ratio of medians.
    pub median: Spread,
    /// Ratio of 95th percentiles.
    pub p95: Spread,
    /// Ratio of makespans.
    pub makespan: Spread,
    /// Ratio of bytes across racks.
    pub cross_rack: Option<Spread>,
    /// Share of what the network costs that was won back; none where that is less than [`NETWORK_COUNTS`].
    pub won_back: Option<Spread>,
    /// Share of jobs that are slower by more than 5 % and 1 s.
    pub slower_share: Spread,
    /// The same less that of the row of other phases, seed by seed.
    pub slower_beyond_phases: Option<Spread>,
    /// The slowest such job ÷ itself under YARN alone; 1: there is none.
    pub slowest: Spread,
}

/// A cell's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellWorth {
    /// Mean completion of YARN alone, seconds.
    pub alone_mean_s: Option<Spread>,
    /// What the network costs: 1 − no network ÷ YARN alone, by mean completion.
    pub network_cost: Option<Spread>,
    /// Under other phases: what chance does.
    pub phases: Option<Row>,
    /// Between what a ratio of mean completions lies by chance alone ([`chance_95`]).
    pub chance_95: Option<[f64; 2]>,
    /// Without a bottleneck in the network: what there is to win.
    pub free: Option<Row>,
    /// By what hints; `None`: not one pair of runs is there.
    pub hinted: Vec<Option<Row>>,
}

impl CellWorth {
    /// From the runs that are there.
    ///
    /// # Errors
    /// [`PairError`] if two runs had not the same jobs.
    pub fn of(runs: &CellRuns<'_>) -> Result<Self, PairError> {
        let cost = |(alone, free): (&Option<&RunFigures>, &Option<&RunFigures>)| {
            alone
                .zip(*free)
                .filter(|(alone, _)| alone.mean_s > 0.0)
                .map(|(alone, free)| 1.0 - free.mean_s / alone.mean_s)
        };
        let network_cost = Spread::of(runs.alone.iter().zip(&runs.free).filter_map(cost));
        let counts = network_cost.is_some_and(|cost| cost.median >= NETWORK_COUNTS);
        let nobody = vec![None; runs.alone.len()];
        let free = if counts { &runs.free } else { &nobody };
        let phases = pairs(&runs.phases, &runs.alone, free)?;
        let row = |own: &[Option<&RunFigures>]| -> Result<Option<Row>, PairError> {
            Ok(Row::of(own, &pairs(own, &runs.alone, free)?, &phases))
        };
        Ok(Self {
            alone_mean_s: Spread::of(runs.alone.iter().flatten().map(|run| run.mean_s)),
            network_cost,
            chance_95: chance_95(&phases.iter().flatten().map(|pair| pair.mean).collect::<Vec<_>>()),
            phases: Row::of(&runs.phases, &phases, &nobody_at_all(runs.alone.len())),
            free: Row::of(&runs.free, &pairs(&runs.free, &runs.alone, &nobody)?, &phases),
            hinted: runs.hinted.iter().map(|own| row(own)).collect::<Result<_, _>>()?,
        })
    }

    /// Whether the network costs at least `share` in the median.
    #[must_use]
    pub fn costs(&self, share: f64) -> bool {
        self.network_cost.is_some_and(|cost| cost.median >= share)
    }
}

fn nobody_at_all(seeds: usize) -> Vec<Option<Pair>> {
    vec![None; seeds]
}

/// By seed, where both runs are there.
fn pairs(
    own: &[Option<&RunFigures>],
    alone: &[Option<&RunFigures>],
    free: &[Option<&RunFigures>],
) -> Result<Vec<Option<Pair>>, PairError> {
    let of = |((own, alone), free): ((&Option<&RunFigures>, &Option<&RunFigures>), &Option<&RunFigures>)| {
        own.zip(*alone).map(|(own, alone)| Pair::of(own, alone, *free)).transpose()
    };
    own.iter().zip(alone).zip(free).map(of).collect()
}

impl Row {
    fn of(own: &[Option<&RunFigures>], pairs: &[Option<Pair>], phases: &[Option<Pair>]) -> Option<Self> {
        let of = |value: fn(&Pair) -> f64| Spread::of(pairs.iter().flatten().map(value));
        let known = |value: fn(&Pair) -> Option<f64>| Spread::of(pairs.iter().flatten().filter_map(value));
        let beyond = pairs.iter().zip(phases).filter_map(|(own, by_chance)| Some(((*own)?, (*by_chance)?)));
        Some(Self {
            mean_s: Spread::of(own.iter().flatten().map(|run| run.mean_s))?,
            mean: of(|pair| pair.mean)?,
            mean_by_seed: pairs.iter().map(|pair| pair.map(|pair| pair.mean)).collect(),
            median: of(|pair| pair.median)?,
            p95: of(|pair| pair.p95)?,
            makespan: of(|pair| pair.makespan)?,
            cross_rack: known(|pair| pair.cross_rack),
            won_back: known(|pair| pair.won_back),
            slower_share: of(|pair| pair.slower_share)?,
            slower_beyond_phases: Spread::of(beyond.map(|(own, by_chance)| own.slower_share - by_chance.slower_share)),
            slowest: of(|pair| pair.slowest)?,
        })
    }
}
