//! `hintctl emulate`: an emulated cluster that feeds a running daemon and asks it for hints, to try a daemon without Hadoop.

mod given;
mod trial;

use super::connect::{DaemonArgs, block_on};
use super::demo::small_trace;
use super::failure::Failure;
use super::interrupt::Interrupts;
use super::output::{self, Output};
use crate::emulate::hdfs::Namespace;
use crate::emulate::shared::{Behavior, RACK_DELAY};
use crate::emulate::tally::Tally;
use crate::emulate::{Cluster, ClusterShape, Emulation, EmulationEvent, Fault, Script, Workload};
use clap::Args;
use hintd_model::units::BitsPerSec;
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How busy the jobs keep the cluster.
const LOAD: f64 = 0.5;
/// Time for what was submitted last to end.
const TAIL: Duration = Duration::from_secs(60);
/// A node's link where tasks take as long as in the trace. Where they are shortened links are as much faster: a network that
/// jobs feel, at any `--seconds`.
const LINK: BitsPerSec = BitsPerSec(1_000_000_000);
/// Longer than anybody waits for Ctrl-C.
const KEEP: Duration = Duration::from_secs(365 * 86_400);

/// What is emulated.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl emulate --seconds 300\n  hintctl emulate --nodes 1000 --racks 40 --fail-link-at 30 --repair-links-at 90\n  \
    hintctl emulate --cluster nas-40 --keep\n  hintctl emulate --cluster snapshot-of-another.json\n\n\
    For daemons to try things on, not for one that serves a real cluster: its nodes, blocks and links are told over gRPC as\n\
    a real cluster's are. A daemon that asks a ResourceManager or another server, has a network file, knows nodes that are not\n\
    the emulated cluster's, or hears nodes already (another hintctl emulate feeds it) is refused before it is told anything, and so\n\
    is one whose admin socket says none of that; --force feeds it all the same. Jobs are those of the small trace that `hintctl demo` runs.\n\
    What they read, shuffle and write goes over the emulated network (1 Gbit/s for a node, racks 5:1 oversubscribed; as much faster\n\
    as --seconds shortens tasks), and they wait for it. Links' counters tell it once a second, with others' traffic: see hintctl links\n\
    --sort -load, hintctl top and the page. YARN waits for hinted hosts as docs/yarn.md says that it should; with\n\
    --rack-locality-additional-delay=-1 it does as it comes, and hints of small jobs are not followed. To see jobs without hints,\n\
    put their queue into shadow mode and run it again.\n\
    It ends once its jobs have ended and its faults have come, 60 s after the last of both at most. Then its nodes are silent,\n\
    and the daemon calls them STALE and LOST; a link that is down stays so. With --keep nodes go on reporting until\n\
    Ctrl-C, and after its last job the trace begins again: the same jobs and input, as new applications.\n\
    Exit code 1: every request for hints was refused, or a promise was broken; 2: the daemon is not one to try things on."
)]
pub struct EmulateArgs {
    /// The cluster: a shipped one by its name (see simulate --help), or a file of hintd.cluster/1 (a snapshot is one) or hintd.shape/1;
    /// its running nodes are there, empty, with its network
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["nodes", "racks"])]
    cluster: Option<String>,
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
    /// yarn.scheduler.capacity.rack-locality-additional-delay of the emulated YARN: heartbeats that an ask waits for its hosts;
    /// -1, YARN's own default: an ask for few containers gets any node
    #[arg(long, value_name = "HEARTBEATS", default_value_t = RACK_DELAY, allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-1..))]
    rack_locality_additional_delay: i32,
    /// A link between switches, the first by name, goes down after SECONDS
    #[arg(long, value_name = "SECONDS")]
    fail_link_at: Option<u64>,
    /// It comes back after SECONDS
    #[arg(long, value_name = "SECONDS", requires = "fail_link_at")]
    repair_links_at: Option<u64>,
    /// Go on until Ctrl-C: nodes report, links have traffic of others, and the trace's jobs come again under new ids
    #[arg(long)]
    keep: bool,
    /// Feed a daemon that serves a real cluster, or may: its picture is then of nodes that are not there
    #[arg(long)]
    force: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] for a cluster that can't be, where no daemon answers, or a promise was broken.
pub fn run(args: &EmulateArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let shape = ClusterShape { nodes: args.nodes, racks: args.racks, host_bits_per_s: LINK, ..ClusterShape::default() };
    let cluster = match &args.cluster {
        Some(name) => given::cluster(name)?,
        None => Cluster::build(shape).map_err(|error| Failure::Input(error.to_string()))?,
    };
    let mut namespace = Namespace::new(args.seed);
    let span = Duration::from_secs(args.seconds);
    let jobs = small_trace()?;
    let workload = Workload::new(&jobs, &cluster, &mut namespace, span, LOAD)
        .map_err(|error| Failure::Input(format!("{:#}", anyhow::Error::from(error))))?;
    let host_bits_per_s = BitsPerSec((LINK.as_f64() / workload.task_time).round() as u64);
    let cluster = match &args.cluster {
        Some(_) => cluster, // its links have the rates of its file
        None => {
            Cluster::build(ClusterShape { host_bits_per_s, ..shape }).map_err(|error| Failure::Work(error.into()))?
        }
    };
    let script = script(args, &cluster.uplinks())?;
    // Faults come at their time, however soon the jobs end.
    let last = script.iter().map(|(at, _)| *at).max().unwrap_or_default().max(span);
    let limit = if args.keep { KEEP } else { last + TAIL };
    let behaviour = Behavior {
        seed: args.seed,
        limit,
        keep: args.keep,
        rack_locality_additional_delay: args.rack_locality_additional_delay,
        ..Behavior::default()
    };
    block_on(async {
        // Applications have ids of their own in each run.
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = u64::try_from(started.as_millis()).unwrap_or(0);
        let client = daemon.client().await?;
        if !args.force {
            trial::check(daemon, &cluster).await?;
        }
        let emulation = Emulation::start(client, cluster, workload, namespace, behaviour, script, began);
        let (emulation, mut events) = emulation.await.map_err(|error| Failure::Work(error.into()))?;
        let told = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if let EmulationEvent::Link { id, up, .. } = event {
                    output.progress(&format!("link {id} is {}", if up { "up" } else { "down" }));
                }
            }
        });
        let shared = emulation.shared();
        if args.keep {
            output.progress("nodes and jobs go on until Ctrl-C");
        }
        let mut interrupts = args.keep.then(Interrupts::hear).transpose()?;
        let begun = Instant::now();
        let (tally, stopped) = tokio::select! {
            ended = emulation.finish() => (ended.map_err(|error| Failure::Work(error.into()))?, false),
            () = stopped_by(interrupts.as_mut()) => {
                let between_switches = shared.traffic().between_switches();
                (Tally { took: begun.elapsed(), between_switches, ..shared.tally().clone() }, true)
            }
        };
        told.abort();
        let down: Vec<String> = shared.down().keys().cloned().collect();
        let document = json!({
            "between_switches_bytes": tally.between_switches.0, "jobs": tally.jobs, "jobs_ended": tally.jobs_ended,
            "links_down": down, "mean_completion_s": mean_s(&tally), "requests": requests(&tally), "refused": tally.refused,
            "refused_first": tally.refused_first, "seconds": tally.took.as_secs_f64(), "violations": tally.violations
        });
        output.result(&document, || ended(&tally, stopped, &down))?;
        verdict(&tally)
    })
}

/// Mean time from submission to end of the jobs that ended, if any did.
fn mean_s(tally: &Tally) -> Option<f64> {
    (tally.jobs_ended > 0).then(|| tally.completions.as_secs_f64() / tally.jobs_ended as f64)
}

/// Requests for hints, answered and not.
fn requests(tally: &Tally) -> u64 {
    tally.latencies.len() as u64 + tally.refused
}

fn verdict(tally: &Tally) -> Result<(), Failure> {
    if let Some(first) = tally.violations.first() {
        return Err(Failure::work(format!("a promise was broken: {first}")));
    }
    match tally.refused {
        refused if refused > 0 && refused == requests(tally) => {
            Err(Failure::work(format!("no request got an answer: {}", tally.refused_first)))
        }
        _ => Ok(()),
    }
}

/// Waits for Ctrl-C, for good where it is not heard.
async fn stopped_by(interrupts: Option<&mut Interrupts>) {
    match interrupts {
        Some(interrupts) => interrupts.came().await,
        None => std::future::pending().await,
    }
}

/// What is left behind.
fn ended(tally: &Tally, stopped: bool, down: &[String]) -> String {
    let by = if stopped { ", ended by Ctrl-C" } else { "" };
    let refused = match tally.refused {
        0 => "none refused".to_owned(),
        refused => format!("{refused} refused, the first: {}", tally.refused_first),
    };
    let first = format!(
        "{} jobs in {:.0} s{by}; {} requests for hints, {refused}",
        tally.jobs,
        tally.took.as_secs_f64(),
        requests(tally)
    );
    let took = mean_s(tally).map_or_else(String::new, |mean| {
        let carried = output::bytes(tally.between_switches.as_f64());
        let ended = tally.jobs_ended;
        format!(
            ". {ended} ended, after {} in the mean; links between switches carried {carried} for jobs",
            output::seconds(mean)
        )
    });
    let links = match down {
        [] => String::new(),
        down => format!(" Down still, as far as it was told: {}.", down.join(", ")),
    };
    format!("{first}{took}. The emulated nodes are silent from now on: the daemon calls them STALE, then LOST.{links}")
}

/// A link by name and not the busiest: whether any has a route of a job at that time depends on how fast the machine is.
fn script(args: &EmulateArgs, uplinks: &[String]) -> Result<Script, Failure> {
    let first = uplinks.iter().min().cloned();
    if let (Some(at), None) = (args.fail_link_at, &first) {
        let why =
            format!("--fail-link-at {at}: this cluster has no link between switches; give it --racks of 2 or more");
        return Err(Failure::Input(why));
    }
    if let Some((fails, repaired)) = args.fail_link_at.zip(args.repair_links_at).filter(|(fails, back)| back <= fails) {
        let why =
            format!("--repair-links-at {repaired}: the link fails at {fails} s, and can't come back before it has");
        return Err(Failure::Input(why));
    }
    let fails = args.fail_link_at.zip(first).map(|(at, id)| (Duration::from_secs(at), Fault::FailLink(id)));
    let repaired = args.repair_links_at.map(|at| (Duration::from_secs(at), Fault::MendLinks));
    Ok(fails.into_iter().chain(repaired).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::Bytes;

    #[test]
    fn what_is_left_behind_is_said() {
        let took = Duration::from_secs(30);
        let tally = Tally { jobs: 60, took, latencies: vec![took; 70], ..Tally::default() };
        let done =
            Tally { jobs_ended: 60, completions: took * 4, between_switches: Bytes(3_000_000_000), ..tally.clone() };
        let said = ended(&done, false, &[]);
        assert!(
            said.contains("none refused. 60 ended, after 2 s in the mean; links between switches carried 3 GB"),
            "{said}"
        );
        let said = ended(&tally, false, &["edge-01--core-1".to_owned()]);
        assert!(said.starts_with("60 jobs in 30 s; 70 requests for hints, none refused. The emulated nodes"), "{said}");
        assert!(said.ends_with("Down still, as far as it was told: edge-01--core-1."), "{said}");
        assert!(ended(&tally, true, &[]).starts_with("60 jobs in 30 s, ended by Ctrl-C; 70 requests"));
        assert!(verdict(&tally).is_ok());
    }

    #[test]
    fn refusals_are_counted_and_fail_the_run_where_all_are() {
        let some = Tally {
            refused: 60,
            refused_first: "queue \"q\" is unknown".into(),
            latencies: vec![Duration::ZERO],
            ..Tally::default()
        };
        let said = ended(&some, false, &[]);
        assert!(said.contains("; 61 requests for hints, 60 refused, the first: queue \"q\" is unknown. The"), "{said}");
        assert!(verdict(&some).is_ok(), "one was answered");
        let all = Tally { latencies: Vec::new(), ..some };
        let Err(Failure::Work(why)) = verdict(&all) else { panic!("all were refused") };
        assert_eq!(why.to_string(), "no request got an answer: queue \"q\" is unknown");
    }

    #[test]
    fn a_link_that_is_not_there_can_not_fail() {
        use clap::{CommandFactory as _, FromArgMatches as _};
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: EmulateArgs,
        }
        let args = |line: &[&str]| {
            let found = Line::command().get_matches_from([&["emulate"], line].concat());
            Line::from_arg_matches(&found).unwrap().args
        };
        let said = script(&args(&["--fail-link-at", "3"]), &[]).unwrap_err().to_string();
        assert!(said.starts_with("--fail-link-at 3: this cluster has no link between switches"), "{said}");
        let links = ["b".to_owned(), "a".to_owned()];
        let both = script(&args(&["--fail-link-at", "3", "--repair-links-at", "4"]), &links).unwrap();
        let at = Duration::from_secs;
        assert_eq!(both, [(at(3), Fault::FailLink("a".to_owned())), (at(4), Fault::MendLinks)]);
        assert_eq!(script(&args(&[]), &[]).unwrap(), []);
        for back in ["3", "2"] {
            let said =
                script(&args(&["--fail-link-at", "3", "--repair-links-at", back]), &links).unwrap_err().to_string();
            assert!(said.starts_with(&format!("--repair-links-at {back}: the link fails at 3 s")), "{said}");
        }
    }
}
