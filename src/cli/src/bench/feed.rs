//! Heartbeats as fast as they are taken in, and the same stream into a server that only reads it.

use super::super::connect::{self, DaemonArgs, block_on};
use super::super::failure::Failure;
use super::super::output::{self, Output};
use super::process::Peer;
use crate::emulate::cluster::resource;
use clap::Args;
use hintd::telemetry::process::cpu_seconds;
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use hintd_client::wire::v1::heartbeat_item::Item;
use serde::Serialize;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many nodes report, and how.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl bench feed --target 127.0.0.1:8470 --nodes 10000 --seconds 10\n  \
    hintctl bench feed --target 127.0.0.1:8470 --nodes 1000 --containers 20 --peer\n\n\
    The nodes are named bench-00001 ... and stay registered: use a daemon that serves no cluster.")]
pub struct FeedArgs {
    /// The daemon's gRPC address
    #[arg(long)]
    target: Option<String>,
    /// Nodes
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,
    /// Containers named in each heartbeat
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    containers: u32,
    /// Streams that share the nodes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    streams: u32,
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Feed a server that only reads as well, and say the ratio
    #[arg(long)]
    peer: bool,
    /// The daemon's process id, for its CPU time
    #[arg(long)]
    server_pid: Option<u32>,
}

#[derive(Debug, Clone, Serialize)]
struct Figures {
    heartbeats_per_s: f64,
    heartbeats: u64,
    refused: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    complaints: Vec<String>,
    client_cpu_s: Option<f64>,
    server_cpu_s: Option<f64>,
    /// Largest age of the snapshot seen meanwhile, where the daemon tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_age_max_ms: Option<u64>,
    seconds: f64,
}

#[derive(Serialize)]
struct Report {
    target: String,
    nodes: u32,
    containers: u32,
    #[serde(flatten)]
    daemon: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<Figures>,
    /// Heartbeats a second, ours ÷ the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

/// Nodes of one rack.
const RACK: u32 = 40;
/// Memory of a node and of a container, MB.
const NODE_MB: u64 = 128 * 1024;
const CONTAINER_MB: u64 = 1024;

/// How long to wait for the last acknowledgements.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the snapshot's age is asked.
const AGE_EVERY: Duration = Duration::from_millis(100);

/// `hintctl bench feed`.
///
/// # Errors
/// [`Failure`] where nobody answers, or the daemon takes no heartbeats.
pub fn run(args: FeedArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let daemon = DaemonArgs { address: args.target.clone().or_else(|| daemon.address.clone()), ..daemon.clone() };
    let report = block_on(async {
        let target = daemon.grpc_address()?;
        drop(daemon.client().await?); // says it at once where nobody listens
        output.progress(&format!("{} nodes report to {target} for {} s", args.nodes, args.seconds));
        let ours = measure(&target, &args, args.server_pid, Some(&daemon)).await?;
        let peer = if args.peer {
            output.progress("and to a server that only reads");
            let peer = Peer::start(&[])?;
            Some(measure(&peer.address, &args, Some(peer.pid()), None).await?)
        } else {
            None
        };
        let ratio = peer.as_ref().map(|peer| ours.heartbeats_per_s / peer.heartbeats_per_s);
        Ok(Report { target, nodes: args.nodes, containers: args.containers, daemon: ours, peer, ratio })
    })?;
    output.result(&report, || text(&report))
}

async fn measure(
    target: &str,
    args: &FeedArgs,
    pid: Option<u32>,
    daemon: Option<&DaemonArgs>,
) -> Result<Figures, Failure> {
    let mut streams = Vec::new();
    for number in 0..args.streams {
        streams.push(Reporter::start(target, args, number).await?);
    }
    let before = (cpu_seconds(std::process::id()), pid.and_then(cpu_seconds));
    let started = Instant::now();
    let end = started + Duration::from_secs(args.seconds);
    let mut running = JoinSet::new();
    for stream in streams {
        running.spawn(stream.report_until(end));
    }
    let ages = daemon.cloned().map(|daemon| tokio::spawn(oldest_snapshot(daemon, end)));
    let (mut heartbeats, mut refused, mut complaints) = (0, 0, Vec::new());
    while let Some(done) = running.join_next().await {
        let (sent, stream) = done.map_err(anyhow::Error::from)??;
        heartbeats += sent;
        refused += stream.feed.refused();
        complaints.extend(stream.feed.complaints());
    }
    let seconds = started.elapsed().as_secs_f64();
    let after = (cpu_seconds(std::process::id()), pid.and_then(cpu_seconds));
    let used = |before: Option<f64>, after: Option<f64>| Some(after? - before?);
    let snapshot_age_max_ms = match ages {
        Some(ages) => ages.await.ok().flatten(),
        None => None,
    };
    Ok(Figures {
        heartbeats_per_s: heartbeats as f64 / seconds,
        heartbeats,
        refused,
        complaints,
        client_cpu_s: used(before.0, after.0),
        server_cpu_s: used(before.1, after.1),
        snapshot_age_max_ms,
        seconds,
    })
}

/// One stream with its share of the nodes.
struct Reporter {
    feed: FeedSender<v1::HeartbeatItem>,
    beats: Vec<v1::NodeHeartbeat>,
}

impl Reporter {
    /// Opens the stream and registers its nodes.
    async fn start(target: &str, args: &FeedArgs, number: u32) -> Result<Self, Failure> {
        let client = connect::client(target).await?;
        let hello = v1::FeedHello {
            source: "bench".to_owned(),
            used_means: v1::UsedMeans::Running.into(),
            names_containers: true,
        };
        let mut feed = client.feed(hello).await?;
        let mine: Vec<u32> = (1..=args.nodes).filter(|node| node % args.streams == number).collect();
        for &node in &mine {
            let register = v1::RegisterNode {
                host: host(node),
                port: 45_454,
                rack: format!("/bench-{:04}", node / RACK),
                total: Some(resource(NODE_MB, 64)),
                ..v1::RegisterNode::default()
            };
            send(&mut feed, Item::Register(register)).await?;
        }
        Ok(Self { feed, beats: mine.into_iter().map(|node| heartbeat(node, args.containers)).collect() })
    }

    /// Reports node after node until `end`, then waits for the last acknowledgement. Returns how many were sent.
    async fn report_until(mut self, end: Instant) -> Result<(u64, Self), Failure> {
        let mut sent = 0;
        let mut last = self.feed.sent();
        'time: loop {
            for at in 0..self.beats.len() {
                if Instant::now() >= end {
                    break 'time;
                }
                let beat = &mut self.beats[at];
                beat.response_id += 1;
                let beat = beat.clone();
                last = send(&mut self.feed, Item::Heartbeat(beat)).await?;
                sent += 1;
            }
            if self.beats.is_empty() {
                break;
            }
        }
        // Counted is what was looked at, not what lies in buffers: both servers acknowledge within 256 items.
        let patience = Instant::now() + PATIENCE;
        while self.feed.through() + 256 < last {
            if Instant::now() >= patience {
                let through = self.feed.through();
                return Err(Failure::work(format!("{through} of {last} heartbeats were acknowledged in time")));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok((sent, self))
    }
}

async fn send(feed: &mut FeedSender<v1::HeartbeatItem>, item: Item) -> Result<u64, Failure> {
    Ok(feed.send(v1::HeartbeatItem { number: 0, item: Some(item) }).await?)
}

fn host(node: u32) -> String {
    format!("bench-{node:05}")
}

/// A node's report: its containers never change, as most do not between two heartbeats.
fn heartbeat(node: u32, containers: u32) -> v1::NodeHeartbeat {
    let container = |number: u32| v1::NodeContainer {
        container_id: format!("container_1700000000000_{:04}_01_{:06}", node, number + 2),
        resource: Some(resource(CONTAINER_MB, 1)),
        priority: 20,
        ..v1::NodeContainer::default()
    };
    v1::NodeHeartbeat {
        host: host(node),
        response_id: 0,
        used: Some(resource(CONTAINER_MB * u64::from(containers), containers)),
        containers: (0..containers).map(container).collect(),
        state: String::new(),
    }
}

/// The largest snapshot age that the daemon tells until `end`; `None` where it tells none.
async fn oldest_snapshot(daemon: DaemonArgs, end: Instant) -> Option<u64> {
    let mut admin = daemon.admin().await.ok()?;
    let mut oldest = None;
    while Instant::now() < end {
        let status = admin.status(v1::StatusRequest {}).await.ok()?.into_inner();
        oldest = oldest.max(Some(status.snapshot_age_ms));
        tokio::time::sleep(AGE_EVERY).await;
    }
    oldest
}

fn text(report: &Report) -> String {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), output::digits);
    let row = |name: &str, figures: &Figures| {
        [
            name.to_owned(),
            format!("{:.0}", figures.heartbeats_per_s),
            figures.refused.to_string(),
            optional(figures.client_cpu_s),
            optional(figures.server_cpu_s),
            figures.snapshot_age_max_ms.map_or_else(|| "-".to_owned(), |age| age.to_string()),
        ]
    };
    let mut rows = vec![row("hintd", &report.daemon)];
    rows.extend(report.peer.as_ref().map(|peer| row("only reads", peer)));
    let header = ["server", "heartbeats/s", "refused", "client CPU s", "server CPU s", "snapshot age max, ms"];
    let mut text = output::table(header, 1, rows);
    if let Some(ratio) = report.ratio {
        text += &format!("\n\n{} % of a server that only reads", output::digits(ratio * 100.0));
    }
    for complaint in &report.daemon.complaints {
        text += &format!("\n{complaint}");
    }
    text
}
