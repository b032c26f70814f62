//! `hintctl emulate`: an emulated cluster that feeds a running daemon and asks it for hints, to try a daemon without Hadoop.

use super::connect::{DaemonArgs, block_on};
use super::demo::small_trace;
use super::failure::Failure;
use super::output::Output;
use crate::emulate::hdfs::Namespace;
use crate::emulate::shared::Behavior;
use crate::emulate::{Cluster, ClusterShape, Emulation, EmulationEvent, Fault, Script, Workload};
use clap::Args;
use serde_json::json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How busy the jobs keep the cluster.
const LOAD: f64 = 0.5;
/// Time for what was submitted last to end.
const TAIL: Duration = Duration::from_secs(25);

/// What is emulated.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl emulate --seconds 300\n  hintctl emulate --nodes 1000 --racks 40 --fail-link-at 30 --repair-links-at 90\n\n\
    For daemons to try things on, not for one that serves a real cluster: its nodes, blocks and links are told over gRPC as\n\
    a real cluster's are. The daemon must not ask a ResourceManager or controller, nor have a network file. Jobs are those of\n\
    the small trace that `hintctl demo` runs."
)]
pub struct EmulateArgs {
    /// Nodes, a multiple of the racks
    #[arg(long, default_value_t = 40)]
    nodes: usize,
    /// Racks
    #[arg(long, default_value_t = 5)]
    racks: usize,
    /// Seconds from the first job's submission to the last's
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    seconds: u64,
    /// Seed of everything drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// After so many seconds a link between switches goes down, the first by name
    #[arg(long, value_name = "SECONDS")]
    fail_link_at: Option<u64>,
    /// After so many seconds it comes back
    #[arg(long, value_name = "SECONDS")]
    repair_links_at: Option<u64>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] for a cluster that can't be, where no daemon answers, or a promise was broken.
pub fn run(args: &EmulateArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let shape = ClusterShape { nodes: args.nodes, racks: args.racks, ..ClusterShape::default() };
    let cluster = Cluster::build(shape).map_err(|error| Failure::Input(error.to_string()))?;
    let mut namespace = Namespace::new(args.seed);
    let span = Duration::from_secs(args.seconds);
    let jobs = small_trace()?;
    let workload = Workload::new(&jobs, &cluster, &mut namespace, span, LOAD)
        .map_err(|error| Failure::Input(format!("{:#}", anyhow::Error::from(error))))?;
    let script = script(args, &cluster);
    let behaviour = Behavior { seed: args.seed, limit: span + TAIL, ..Behavior::default() };
    block_on(async {
        // Applications have ids of their own in each run.
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = u64::try_from(started.as_millis()).unwrap_or(0);
        let client = daemon.client().await?;
        let emulation = Emulation::start(client, cluster, workload, namespace, behaviour, script, began);
        let (emulation, mut events) = emulation.await.map_err(|error| Failure::Work(error.into()))?;
        let told = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if let EmulationEvent::Link { id, up, .. } = event {
                    output.progress(&format!("link {id} is {}", if up { "up" } else { "down" }));
                }
            }
        });
        let tally = emulation.finish().await.map_err(|error| Failure::Work(error.into()))?;
        told.abort();
        let document =
            json!({ "jobs": tally.jobs, "seconds": tally.took.as_secs_f64(), "violations": tally.violations });
        output.result(&document, || format!("{} jobs in {:.0} s", tally.jobs, tally.took.as_secs_f64()))?;
        tally.violations.first().map_or(Ok(()), |first| Err(Failure::work(format!("a promise was broken: {first}"))))
    })
}

/// A link by name and not the busiest: whether any has a route of a job at that time depends on how fast the machine is.
fn script(args: &EmulateArgs, cluster: &Cluster) -> Script {
    let first = cluster.uplinks().into_iter().min();
    let fails = args.fail_link_at.zip(first).map(|(at, id)| (Duration::from_secs(at), Fault::FailLink(id)));
    let repaired = args.repair_links_at.map(|at| (Duration::from_secs(at), Fault::MendLinks));
    fails.into_iter().chain(repaired).collect()
}
