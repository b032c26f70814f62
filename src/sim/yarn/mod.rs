//! The resource manager in virtual time: heartbeats, containers, HDFS's replicas, shuffle, failures.

mod run;

pub use run::{Progress, SimCluster, SimError, SimRun, SimWatch};

use super::report::RunReport;
use super::trace::TraceError;
use super::trace::job::TraceJob;

/// Replays `jobs` on the run's cluster under its policy.
///
/// # Errors
/// [`SimError`].
pub fn simulate(
    run: &SimRun<'_>,
    jobs: &mut dyn Iterator<Item = Result<TraceJob, TraceError>>,
    watch: &mut dyn SimWatch,
) -> Result<RunReport, SimError> {
    let _ = (run, jobs, watch);
    unimplemented!("signature only")
}
