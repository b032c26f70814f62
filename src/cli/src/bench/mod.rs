//! `hintctl bench`: load on a running daemon, and on a peer that does nothing, in the same run.

pub mod feed;
pub mod load;
pub mod noop;
pub mod process;
pub mod reroute;
pub mod soak;

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::Output;
use clap::Subcommand;
use hintd_model::units::{ApplicationId, AttemptId};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Requests for hints: rate, latency percentiles, errors, CPU
    Load(load::LoadArgs),
    /// The same client against a server that answers the same bytes and does nothing
    Noop(load::NoopArgs),
    /// Heartbeats: how many a second the daemon takes in, beside a server that only reads them
    Feed(feed::FeedArgs),
    /// Links that fail under flows: time from the feed's item to the last route update
    Reroute(reroute::RerouteArgs),
    /// Requests and heartbeats at a steady rate for long, with memory and latency plotted
    Soak(soak::SoakArgs),
    /// The peer itself, started by the others
    #[command(hide = true)]
    ServeNoop,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] where no daemon answers, or the peer can't be started.
pub fn run(command: BenchCommand, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    match command {
        BenchCommand::Load(args) => load::run(args, daemon, output),
        BenchCommand::Noop(args) => load::run_noop(args, output),
        BenchCommand::Feed(args) => feed::run(args, daemon, output),
        BenchCommand::Reroute(args) => reroute::run(args, daemon, output),
        BenchCommand::Soak(args) => soak::run(args, daemon, output),
        BenchCommand::ServeNoop => noop::serve(),
    }
}

/// Ids of the applications that a load makes up: as those of a ResourceManager that was started when the load was.
#[derive(Debug)]
pub(crate) struct Attempts {
    cluster_timestamp: u64,
    sequence: AtomicU32,
}

impl Attempts {
    pub(crate) fn begin() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { cluster_timestamp: u64::try_from(started.as_millis()).unwrap_or(0), sequence: AtomicU32::new(0) }
    }

    /// The first attempt of another application.
    pub(crate) fn next(&self) -> AttemptId {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let application = ApplicationId { cluster_timestamp: self.cluster_timestamp, sequence };
        AttemptId { application, attempt: 1 }
    }
}
