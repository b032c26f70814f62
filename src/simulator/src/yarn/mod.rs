//! The resource manager in virtual time: heartbeats, containers, HDFS's replicas, shuffle, failures.
//!
//! # The model
//! - Nodes report every `heartbeat` at a phase of their own. The RM learns the end of a task, and frees its container,
//!   at its node's next report; then, while any task waits, it offers the node's free containers to the policy, one
//!   launch at a time. Reports at which nothing can happen are skipped, which changes no result.
//! - A map reads its input (from its node at once, else over the network), works, and leaves its output on its node. A
//!   reduce fetches while it holds its container, and works when all maps are done and all its bytes are there. Map
//!   output can be fetched, and a job's completion time runs, from the true ends of tasks, not from the reports.
//! - A node of a class works at the class's speed: a task takes there what it takes elsewhere ÷ that speed.
//! - When reduces may begin, and which task goes where, is the policy's.
//! - What the RM does takes no time; an ApplicationMaster takes no container.
//! - Delays of a real cluster ([`crate::delays`]), where the run has any: an ApplicationMaster and a task in its container
//!   first start, and a job ends later than its last task. Starts and work share the cluster's cores (`work`).
//! - A node that fails is lost at once: see `failures`.
//!
//! # Invariants
//! - Time is whole microseconds for the RM and f64 seconds for the network; what the network brings counts from the
//!   next whole microsecond. Of one microsecond, in this order: the script, bytes that arrived, ends of tasks (by
//!   launch), the submission, the second's sample, reports (by phase, then node).
//! - All that is drawn hangs on the seed and on what it is drawn for, not on the order of events: policies meet the
//!   same users, replicas, task times and phases.
//! - Memory grows with the jobs that live, beside 12 bytes a job of the trace.

mod containers;
pub mod fabric;
mod failures;
pub mod forecast;
pub mod hdfs;
mod heartbeats;
mod rm;
mod run;
mod shares;
mod submit;
mod tables;
mod tally;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use rm::known_shuffle;
pub use run::{HISTORY_ERROR_MAX, Progress, SimCluster, SimError, SimRun, SimWatch};

use super::report::RunReport;
use super::trace::TraceError;
use super::trace::job::TraceJob;
use rm::Sim;

/// Replays `jobs`, in the order of their submission, on the run's cluster under its policy.
///
/// # Errors
/// [`SimError`]: a damaged trace, settings or a cluster that can't be simulated, a policy that breaks a rule or lets
/// everything wait for ever, a broken invariant.
pub fn simulate(
    run: &SimRun<'_>,
    jobs: &mut dyn Iterator<Item = Result<TraceJob, TraceError>>,
    watch: &mut dyn SimWatch,
) -> Result<RunReport, SimError> {
    simulate_with(run, jobs, watch, true)
}

/// With `skip` off, no report is skipped: the same result, shown by test.
fn simulate_with(
    run: &SimRun<'_>,
    jobs: &mut dyn Iterator<Item = Result<TraceJob, TraceError>>,
    watch: &mut dyn SimWatch,
    skip: bool,
) -> Result<RunReport, SimError> {
    run.model.check()?;
    run.check()?;
    let mut sim = Sim::new(*run, skip)?;
    sim.run(jobs, watch)?;
    Ok(sim.report())
}
