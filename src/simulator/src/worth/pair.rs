//! One run held against another of the same seed.

use super::{RunFigures, SLOWER_S, SLOWER_SHARE};

/// Two runs that can't be held against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// They had not the same jobs.
    #[error("{own} jobs ended in one run and {its} in the other: they can't be compared job by job")]
    Jobs {
        /// Jobs of the one.
        own: usize,
        /// Jobs of the other.
        its: usize,
    },
    /// There was none.
    #[error("no job ended: there is nothing to compare")]
    NoJobs,
}

/// A run held against YARN alone of the same seed. Ratios are the run's figure ÷ YARN alone's: below 1 is faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Of mean completion.
    pub mean: f64,
    /// Of the median.
    pub median: f64,
    /// Of the 95th percentile.
    pub p95: f64,
    /// Of the makespan.
    pub makespan: f64,
    /// Of bytes across racks; `None` if none crossed under YARN alone.
    pub cross_rack: Option<f64>,
    /// Share of what the network costs that was won back; `None` without a run that has no network, or if the network
    /// costs nothing.
    pub won_back: Option<f64>,
    /// Share of jobs that are slower, beyond both bounds.
    pub slower_share: f64,
    /// The slowest such job's completion ÷ its own under YARN alone; 1 if there is none.
    pub slowest: f64,
}

impl Pair {
    /// Holds `own` against `alone`, and `free` of the same seed as what there is to win.
    ///
    /// # Errors
    /// [`PairError`] if the runs had other jobs, or none.
    pub fn of(own: &RunFigures, alone: &RunFigures, free: Option<&RunFigures>) -> Result<Self, PairError> {
        let (ours, its) = (own.jobs_s.len(), alone.jobs_s.len());
        if ours != its {
            return Err(PairError::Jobs { own: ours, its });
        }
        if ours == 0 {
            return Err(PairError::NoJobs);
        }
        let both = || own.jobs_s.iter().zip(&alone.jobs_s);
        let slower = || both().filter(|(own, its)| *own - *its > SLOWER_S && **own > **its * (1.0 + SLOWER_SHARE));
        Ok(Self {
            mean: own.mean_s / alone.mean_s,
            median: own.median_s / alone.median_s,
            p95: own.p95_s / alone.p95_s,
            makespan: own.makespan_s / alone.makespan_s,
            cross_rack: (alone.cross_rack_bytes > 0)
                .then(|| own.cross_rack_bytes as f64 / alone.cross_rack_bytes as f64),
            won_back: free.and_then(|free| won_back(own.mean_s, alone.mean_s, free.mean_s)),
            slower_share: slower().count() as f64 / ours as f64,
            slowest: slower().map(|(own, its)| own / its).fold(1.0, f64::max),
        })
    }
}

/// (alone − own) ÷ (alone − free): 0 is no use, 1 as if there were no network, below 0 does harm.
fn won_back(own: f64, alone: f64, free: f64) -> Option<f64> {
    let cost = alone - free;
    (cost > 0.0).then(|| (alone - own) / cost)
}
