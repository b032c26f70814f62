//! `hintctl demo`: the real daemon on loopback, an emulated cluster that feeds it, a trace's jobs, two faults.

mod document;
mod host;
mod keep;
mod story;
mod summary;

use super::failure::Failure;
use super::output::{self, Output};
use super::policy;
use super::worth::Glance;
use crate::emulate::hdfs::Namespace;
use crate::emulate::shared::Behavior;
use crate::emulate::{Cluster, ClusterShape, Emulation, EmulationEvent, Fault, Script, Workload};
use clap::Args;
use document::Document;
use hintd_simulator::{SwimJob, SwimReader, TraceError, maybe_gzip};
use host::{Folder, Host};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use story::Story;
use tokio::sync::mpsc;

/// What the demo runs.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  hintctl demo\n  hintctl demo --full > demo.txt\n  hintctl demo --trace FB-2010_samples_24_times_1hr_withInputPaths_0.tsv.gz\n  \
    hintctl --json demo --jobs 10 --policy spread --seed 7\n  hintctl demo --keep\n\n\
    The daemon is the real one: it listens on loopback, journals to a temporary folder and knows nothing of the\n\
    emulation. It ends with a simulation of a busier network, which says what hints are worth there. Exit code 1\n\
    if a promise was broken or a job did not end."
)]
pub struct DemoArgs {
    /// A SWIM trace, plain or gzip [default: a small one within the program]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Run only the first JOBS jobs of the trace [default: 200, or all of the small trace]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: Option<u32>,
    /// Seed of everything drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Policy that the jobs ask for
    #[arg(long, default_value = "container")]
    policy: String,
    /// Nodes, a multiple of the racks
    #[arg(long, default_value_t = 40)]
    nodes: usize,
    /// Racks
    #[arg(long, default_value_t = 5)]
    racks: usize,
    /// Seconds from the first job's submission to the last's
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Jobs of the simulation at the end, which says what hints are worth where the network is busy; 0: none
    #[arg(long, value_name = "JOBS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    worth_jobs: u32,
    /// Print the hints of every job, not of the first and last few alone; --json has all of them anyhow
    #[arg(long)]
    full: bool,
    /// When all is told, go on until Ctrl-C with the daemon, its cluster and the same jobs under new ids, and say how to reach it; the
    /// simulation at the end is left out
    #[arg(long, conflicts_with = "worth_jobs")]
    keep: bool,
}

/// The trace within the program.
const SMALL_TRACE: &str = include_str!("../../../../tests/data/swim-small.tsv");

/// Jobs taken of a real trace unless told otherwise.
const JOBS_OF_A_FILE: u32 = 200;

/// How busy the jobs keep the cluster: enough for them to meet, not enough to wait for each other.
const LOAD: f64 = 0.5;

/// Time for what was submitted last, and what a fault delayed, to end.
const TAIL: Duration = Duration::from_secs(25);

/// When the faults come, as parts of the time between first and last submission.
const NODE_DIES: f64 = 0.35;
const LINK_FAILS: f64 = 0.65;
const LINK_RETURNS: f64 = 0.85;

/// What is being run, for the story and the summary.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) args: DemoArgs,
    pub(super) trace: String,
    pub(super) script: Vec<(Duration, String)>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for a trace that can't be read or an unknown policy, [`Failure::Work`] where a promise was broken.
pub fn run(args: DemoArgs, output: Output) -> Result<(), Failure> {
    policy::check(&args.policy)?;
    let (trace, jobs) = read_trace(&args)?;
    let cluster = cluster(&args)?;
    let mut namespace = Namespace::new(args.seed);
    let span = Duration::from_secs(args.seconds);
    let workload = Workload::new(&jobs, &cluster, &mut namespace, span, LOAD)
        .map_err(|error| Failure::Input(format!("{trace}: {:#}", anyhow::Error::from(error))))?;
    let behaviour =
        Behavior { seed: args.seed, policy: Some(args.policy.clone()), limit: span + TAIL, ..Behavior::default() };
    let script = script(span);
    let told = script.iter().map(|(at, fault)| (*at, in_words(fault))).collect();
    // Whoever keeps the daemon is not to wait for a simulation after Ctrl-C.
    let (worth_jobs, seed) = (if args.keep { 0 } else { args.worth_jobs }, args.seed);
    let plan = Plan { args, trace, script: told };
    let finished =
        super::connect::block_on(async { play(plan, cluster, namespace, workload, behaviour, script, output).await })?;
    let simulated = (worth_jobs > 0).then(|| simulated(worth_jobs, seed, output)).transpose();
    let worth = simulated.as_ref().ok().and_then(Option::as_ref);
    match worth {
        Some(worth) => output.sorted(&Document::new(&finished, Some(worth)), || format!("\n{}", worth.text()))?,
        None if output.is_json() => output.sorted(&Document::new(&finished, None), String::new)?,
        None => {}
    }
    simulated?;
    match finished.problems().first() {
        None => Ok(()),
        Some(first) => {
            let broken = finished.problems().len() as u64;
            let were = if broken == 1 { "was" } else { "were" };
            Err(Failure::work(format!("{} {were} broken; the first: {first}", output::count(broken, "promise"))))
        }
    }
}

fn cluster(args: &DemoArgs) -> Result<Cluster, Failure> {
    let shape = ClusterShape { nodes: args.nodes, racks: args.racks, ..ClusterShape::default() };
    Cluster::build(shape).map_err(|error| Failure::Input(error.to_string()))
}

/// What hints are worth where the network is busier than the cluster above is, in a few seconds.
fn simulated(jobs: u32, seed: u64, output: Output) -> Result<Glance, Failure> {
    let folder = Folder::new("demo-worth")?;
    Glance::of(jobs, seed, folder.path(), output)
}

/// Daemon, cluster and story, until all is done.
async fn play(
    plan: Plan,
    cluster: Cluster,
    namespace: Namespace,
    workload: Workload,
    behaviour: Behavior,
    script: Script,
    output: Output,
) -> Result<summary::Finished, Failure> {
    let host = Host::start(&plan.args.policy).await?;
    let kept = plan.args.keep.then(|| plan.args.clone());
    let mut story = Story::new(plan, output);
    story.opening(&host, &cluster, &namespace, &workload)?;
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let cluster_timestamp = u64::try_from(started.as_millis()).unwrap_or(0);
    let client = super::connect::client(&host.address()).await?;
    let (emulation, happenings) =
        Emulation::start(client, cluster, workload, namespace, behaviour, script, cluster_timestamp)
            .await
            .map_err(|error| Failure::Work(error.into()))?;
    let watch = host.watch_books()?;
    story.begin();
    let story = tokio::spawn(listen(story, happenings));
    let tally = emulation.finish().await.map_err(|error| Failure::Work(error.into()))?;
    let story = story.await.map_err(anyhow::Error::from)??;
    let books = watch.stop().await?;
    let status = host.status().await?;
    let finished = summary::Finished::new(story, tally, books, status);
    output.line(&finished.text())?; // people need not wait for what follows
    // Heard until the daemon has stopped: nobody else is to take its Ctrl-C for theirs.
    let _heard = match kept {
        Some(args) => Some(keep::until_interrupted(&host, &args, output).await?),
        None => None,
    };
    host.stop().await?;
    Ok(finished)
}

/// Tells what happens until nothing can happen any more.
async fn listen(mut story: Story, mut happenings: mpsc::Receiver<EmulationEvent>) -> Result<Story, Failure> {
    while let Some(happening) = happenings.recv().await {
        story.hear(happening)?;
    }
    Ok(story)
}

fn read_trace(args: &DemoArgs) -> Result<(String, Vec<SwimJob>), Failure> {
    match &args.trace {
        None => {
            let most = args.jobs.unwrap_or(u32::MAX);
            let jobs = take_jobs(SMALL_TRACE.as_bytes(), most).map_err(|error| Failure::Work(error.into()))?;
            Ok(("the small generated trace".to_owned(), jobs))
        }
        Some(path) => {
            let in_file = |error: TraceError| Failure::in_file(path, format!("{:#}", anyhow::Error::from(error)));
            let file = std::fs::File::open(path).map_err(|error| Failure::in_file(path, error))?;
            let reader = maybe_gzip(BufReader::new(file)).map_err(in_file)?;
            let jobs = take_jobs(reader, args.jobs.unwrap_or(JOBS_OF_A_FILE)).map_err(in_file)?;
            let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            Ok((name, jobs))
        }
    }
}

/// The jobs of the trace within the program.
///
/// # Errors
/// [`Failure`] where it can't be read.
pub(super) fn small_trace() -> Result<Vec<SwimJob>, Failure> {
    take_jobs(SMALL_TRACE.as_bytes(), u32::MAX).map_err(|error| Failure::Work(error.into()))
}

fn take_jobs(reader: impl BufRead, most: u32) -> Result<Vec<SwimJob>, TraceError> {
    SwimReader::new(reader).take(most as usize).collect()
}

/// A node dies while jobs run on it; later a link between two switches fails that they send over, and comes back.
fn script(span: Duration) -> Script {
    vec![
        (span.mul_f64(NODE_DIES), Fault::KillBusiestNode),
        (span.mul_f64(LINK_FAILS), Fault::FailBusiestLink),
        (span.mul_f64(LINK_RETURNS), Fault::MendLinks),
    ]
}

fn in_words(fault: &Fault) -> String {
    match fault {
        Fault::KillBusiestNode => "the busiest node dies".to_owned(),
        Fault::KillNode(host) => format!("{host} dies"),
        Fault::FailLink(id) => format!("link {id} fails"),
        Fault::MendLink(id) => format!("link {id} comes back"),
        Fault::FailBusiestLink => "the link with most of the jobs' routes fails".to_owned(),
        Fault::MendLinks => "it comes back".to_owned(),
    }
}
