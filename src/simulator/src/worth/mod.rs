//! What hints are worth: runs of one trace held against YARN alone, seed by seed and job by job.
//!
//! # The measure
//! Of a trace, a cluster and a load, for each seed: *YARN alone*; the same under *other phases* of heartbeats, which tells
//! what chance does; *no network*, YARN alone on links that never are the bottleneck; and what is hinted. *Won back* is
//! (YARN alone − hinted) ÷ (YARN alone − no network), by mean completion.
//!
//! # Code map
//! - this file: figures of a run, and the bounds of the measure. `pair`: one run against another. `cell`: all seeds of
//!   a cell. `overall`: all cells. `answer`: what it comes to, in one sentence. `network`: a cluster without bottlenecks.

mod answer;
mod cell;
mod network;
mod overall;
mod pair;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Asked, Verdict};
pub use cell::{CellRuns, CellWorth, Row, Spread, chance_95};
pub use network::without_bottlenecks;
pub use overall::{Counted, Overall};
pub use pair::{Pair, PairError};

use super::capacity::HintOutcome;
use super::report::RunReport;
use serde::{Deserialize, Serialize};

/// Where the network costs a smaller share of YARN alone's mean completion there is nothing to win back.
pub const NETWORK_COUNTS: f64 = 0.05;
/// Cells where it costs more are those that a policy is judged by.
pub const NETWORK_MATTERS: f64 = 0.20;
/// A job counts as slower if it is so by more than this share ...
pub const SLOWER_SHARE: f64 = 0.05;
/// ... and by more than so many seconds.
pub const SLOWER_S: f64 = 1.0;
/// A cell whose mean completion is so many times YARN alone's is slower.
pub const SLOWER_CELL: f64 = 1.02;
/// Fewer jobs tell nothing.
pub const FEWEST_JOBS: u64 = 30;
/// Fewer seeds are weak.
pub const SEEDS_TO_BELIEVE: usize = 5;

/// Figures of one whole run, as they are kept. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFigures {
    /// Mean completion.
    pub mean_s: f64,
    /// Median completion.
    pub median_s: f64,
    /// Its 95th percentile.
    pub p95_s: f64,
    /// From the first submission to the last end.
    pub makespan_s: f64,
    /// Bytes of map input and shuffle that crossed racks.
    pub cross_rack_bytes: u64,
    /// Jobs that could never fit.
    pub never_fit: u64,
    /// What became of hints, where there were any.
    pub hints: Option<HintOutcome>,
    /// Wall time that the run took.
    pub wall_s: f64,
    /// Completion of every job that ended, in the trace's order.
    pub jobs_s: Vec<f64>,
}

impl RunFigures {
    /// Of a report; `None` if it was interrupted.
    #[must_use]
    pub fn of(report: RunReport) -> Option<Self> {
        (report.unfinished == 0).then_some(Self {
            mean_s: report.mean_jct_s,
            median_s: report.median_jct_s,
            p95_s: report.p95_jct_s,
            makespan_s: report.makespan_s,
            cross_rack_bytes: report.cross_rack_bytes,
            never_fit: report.never_fit_count,
            hints: report.hints,
            wall_s: report.wall_s,
            jobs_s: report.jct_s,
        })
    }
}
