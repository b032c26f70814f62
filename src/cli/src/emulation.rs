//! `hintctl emulate`: an emulated cluster that feeds a running daemon and asks it for hints, to try a daemon without Hadoop.

mod given;

use super::connect::{DaemonArgs, block_on};
use super::demo::small_trace;
use super::failure::Failure;
use super::interrupt::Interrupts;
use super::output::Output;
use crate::emulate::hdfs::Namespace;
use crate::emulate::shared::Behavior;
use crate::emulate::tally::Tally;
use crate::emulate::{Cluster, ClusterShape, Emulation, EmulationEvent, Fault, Script, Workload};
use clap::Args;
use hintd::findings::some;
use hintd_client::wire::v1;
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How busy the jobs keep the cluster.
const LOAD: f64 = 0.5;
/// Time for what was submitted last to end.
const TAIL: Duration = Duration::from_secs(25);
/// Longer than anybody waits for Ctrl-C.
const KEEP: Duration = Duration::from_secs(365 * 86_400);

/// What is emulated.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl emulate --seconds 300\n  hintctl emulate --nodes 1000 --racks 40 --fail-link-at 30 --repair-links-at 90\n  \
    hintctl emulate --cluster nas-40 --keep\n  hintctl emulate --cluster snapshot-of-another.json\n\n\
    For daemons to try things on, not for one that serves a real cluster: its nodes, blocks and links are told over gRPC as\n\
    a real cluster's are. A daemon that asks a ResourceManager or another server, has a network file, or knows nodes that are not\n\
    the emulated cluster's is refused before it is told anything, and so is one whose admin socket says none of that; --force feeds\n\
    it all the same. Jobs are those of the small trace that `hintctl demo` runs.\n\
    It ends once its jobs have ended and its faults have come, 25 s after the last of both at most. Then its nodes are silent,\n\
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
    /// After so many seconds a link between switches goes down, the first by name
    #[arg(long, value_name = "SECONDS")]
    fail_link_at: Option<u64>,
    /// After so many seconds it comes back
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
    let shape = ClusterShape { nodes: args.nodes, racks: args.racks, ..ClusterShape::default() };
    let cluster = match &args.cluster {
        Some(name) => given::cluster(name)?,
        None => Cluster::build(shape).map_err(|error| Failure::Input(error.to_string()))?,
    };
    let mut namespace = Namespace::new(args.seed);
    let span = Duration::from_secs(args.seconds);
    let jobs = small_trace()?;
    let workload = Workload::new(&jobs, &cluster, &mut namespace, span, LOAD)
        .map_err(|error| Failure::Input(format!("{:#}", anyhow::Error::from(error))))?;
    let script = script(args, &cluster.uplinks())?;
    // Faults come at their time, however soon the jobs end.
    let last = script.iter().map(|(at, _)| *at).max().unwrap_or_default().max(span);
    let limit = if args.keep { KEEP } else { last + TAIL };
    let behaviour = Behavior { seed: args.seed, limit, keep: args.keep, ..Behavior::default() };
    block_on(async {
        // Applications have ids of their own in each run.
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = u64::try_from(started.as_millis()).unwrap_or(0);
        let client = daemon.client().await?;
        if !args.force {
            to_try_on(daemon, &cluster).await?;
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
                (Tally { took: begun.elapsed(), ..shared.tally().clone() }, true)
            }
        };
        told.abort();
        let down: Vec<String> = shared.down().keys().cloned().collect();
        let document = json!({
            "jobs": tally.jobs, "links_down": down, "requests": requests(&tally), "refused": tally.refused,
            "refused_first": tally.refused_first, "seconds": tally.took.as_secs_f64(), "violations": tally.violations
        });
        output.result(&document, || ended(&tally, stopped, &down))?;
        verdict(&tally)
    })
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

/// That the daemon serves no real cluster, as far as it says: fake nodes would be hinted at beside real ones.
async fn to_try_on(daemon: &DaemonArgs, cluster: &Cluster) -> Result<(), Failure> {
    let unseen = |why: &dyn std::fmt::Display| {
        Failure::Input(format!(
            "whether the daemon serves a real cluster is not known, and it is told nothing: {why}; --force feeds it"
        ))
    };
    let mut admin = daemon.operator().await.map_err(|why| unseen(&why))?;
    let refused = |status: tonic::Status| unseen(&status.message().to_owned());
    let status = admin.status(v1::StatusRequest {}).await.map_err(refused)?.into_inner();
    let network = admin.network(v1::NetworkRequest {}).await.map_err(refused)?.into_inner();
    let nodes = admin.nodes(v1::NodesRequest::default()).await.map_err(refused)?.into_inner();
    let own = |host: &str| cluster.machines.iter().any(|machine| machine.host.as_str() == host);
    let foreign: Vec<String> = nodes.nodes.into_iter().map(|node| node.host).filter(|host| !own(host)).collect();
    match real(&status, &network, &foreign) {
        None => Ok(()),
        Some(what) => Err(Failure::Input(format!(
            "this daemon is not one to try things on: {what}; it is told nothing (--force feeds it all the same)"
        ))),
    }
}

/// What shows that a daemon serves a real cluster.
fn real(status: &v1::StatusResponse, network: &v1::NetworkResponse, foreign: &[String]) -> Option<String> {
    if let Some(server) = status.servers.first() {
        return Some(format!("it asks {} {}", server.source, server.address));
    }
    if network.source == "file" {
        return Some("it has a network file".to_owned());
    }
    let nodes = if foreign.len() == 1 { "node" } else { "nodes" };
    (!foreign.is_empty()).then(|| {
        format!("it knows {} {nodes} that the emulated cluster does not have: {}", foreign.len(), some(foreign))
    })
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
    let links = match down {
        [] => String::new(),
        down => format!(" Down still, as far as it was told: {}.", down.join(", ")),
    };
    format!("{first}. The emulated nodes are silent from now on: the daemon calls them STALE, then LOST.{links}")
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

    #[test]
    fn what_is_left_behind_is_said() {
        let took = Duration::from_secs(30);
        let tally = Tally { jobs: 60, took, latencies: vec![took; 70], ..Tally::default() };
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
    fn a_daemon_of_a_real_cluster_is_told_by_what_it_asks_and_knows() {
        let (status, network) = (v1::StatusResponse::default(), v1::NetworkResponse::default());
        assert_eq!(real(&status, &network, &[]), None);
        let foreign = real(&status, &network, &["dn1".to_owned(), "dn2".to_owned()]);
        assert_eq!(foreign.as_deref(), Some("it knows 2 nodes that the emulated cluster does not have: dn1, dn2"));
        let file = v1::NetworkResponse { source: "file".into(), ..v1::NetworkResponse::default() };
        assert_eq!(real(&status, &file, &[]).as_deref(), Some("it has a network file"));
        let server = v1::ServerView {
            source: "resource_manager".into(),
            address: "http://rm:8088".into(),
            ..Default::default()
        };
        let asks = v1::StatusResponse { servers: vec![server], ..status };
        assert_eq!(real(&asks, &network, &[]).as_deref(), Some("it asks resource_manager http://rm:8088"));
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
