//! `hintctl bench soak`: requests and heartbeats at a steady rate for long; memory and latency by window, as JSON and SVG.
//!
//! Open loop: starts are planned, so a daemon that falls behind shows as latency and refusals, not as a slower load.
//!
//! # Code map
//! - `requests`: applications that ask, run, give back or vanish. `nodes`: heartbeats that show what runs.
//! - `windows`: what is counted and sampled. `plot`: the picture.

mod nodes;
mod plot;
mod requests;
mod windows;

use super::super::connect::{DaemonArgs, block_on};
use super::super::failure::Failure;
use super::super::files;
use super::super::new_file::ReplaceArg;
use super::super::output::{self, Output};
use crate::plots::provenance::Provenance;
use clap::Args;
use hintd_client::Client;
use nodes::Cluster;
use requests::Load;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windows::{Recorder, Sampler, Totals, Window};

/// What to load a daemon with, and for how long.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Examples:\n  hintctl bench soak --target 127.0.0.1:8470 --minutes 60 -o soak.svg\n  \
    hintctl bench soak --target 127.0.0.1:8470 --minutes 1 --requests 100 --heartbeats 500 --nodes 500\n\n\
    Of eight applications one vanishes after its answer, two give their leases back, five run containers that the \
    nodes' heartbeats name, and end. The nodes are named soak-00001 ... and stay registered: use a daemon that serves \
    no cluster. With -o FILE.svg the figures are in FILE.json beside it; both are written anew with each window.")]
pub struct SoakArgs {
    /// The daemon's gRPC address
    #[arg(long)]
    #[serde(skip)]
    target: Option<String>,
    /// How long
    #[arg(long, default_value_t = 60.0, value_parser = positive)]
    minutes: f64,
    /// Requests a second
    #[arg(long, default_value_t = 1_000.0, value_parser = positive)]
    requests: f64,
    /// Heartbeats a second, all nodes together
    #[arg(long, default_value_t = 5_000.0, value_parser = positive)]
    heartbeats: f64,
    /// Nodes
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    /// Containers of each request
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    gang: u32,
    /// How long containers run, seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    run: u64,
    /// Policy to ask for; none: the daemon's choice
    #[arg(long, default_value = "")]
    policy: String,
    /// Connections that requests are spread over
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    connections: u32,
    /// Streams that the nodes share
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    streams: u32,
    /// Seconds that one row of figures covers
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    window: u64,
    /// The daemon's process id, for its memory and CPU; none: as its status tells
    #[arg(long)]
    server_pid: Option<u32>,
    /// The plot's file, whose name ends in .svg
    #[arg(short, long, value_name = "FILE.svg")]
    #[serde(skip)]
    output: Option<PathBuf>,
    #[command(flatten)]
    #[serde(skip)]
    replace: ReplaceArg,
}

/// The whole of a soak.
#[derive(Debug, Serialize)]
struct Report {
    target: String,
    /// Of the daemon.
    version: String,
    settings: SoakArgs,
    totals: Totals,
    windows: Vec<Window>,
}

/// Applications whose ends wait to be told to the daemon; further ones wait with theirs.
const ENDED_MAX: usize = 10_000;
/// Time before figures are kept: connections, caches, a first publish.
const WARM_UP: Duration = Duration::from_secs(2);
/// How often memory is looked at.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0).ok_or("a number above 0".to_owned())
}

/// `hintctl bench soak`.
///
/// # Errors
/// [`Failure`] where nobody answers, no request was answered, or a file can't be written.
pub fn run(args: SoakArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let daemon = DaemonArgs { address: args.target.clone().or_else(|| daemon.address.clone()), ..daemon.clone() };
    if let Some(file) = args.output.as_deref().filter(|file| file.extension().is_none_or(|ext| ext != "svg")) {
        return Err(Failure::in_file(file, "the name must end in .svg"));
    }
    for file in args.output.iter().flat_map(|file| [file.clone(), file.with_extension("json")]) {
        args.replace.check(&file)?;
    }
    let report = block_on(soak(args, &daemon, output))?;
    output.result(&report, || text(&report))?;
    if report.totals.answered == 0 {
        return Err(Failure::work("no request was answered"));
    }
    Ok(())
}

async fn soak(args: SoakArgs, daemon: &DaemonArgs, output: Output) -> Result<Report, Failure> {
    let target = daemon.grpc_address()?;
    let recorder = Arc::new(Recorder::new());
    let cluster = Arc::new(Cluster::new(args.nodes));
    let mut sampler = Sampler::start(daemon, args.server_pid).await?;
    output.progress(&format!("{} nodes register at {target}", args.nodes));
    let mut tasks = JoinSet::new();
    for stream in 0..args.streams {
        let client = Client::connect(&target).await.map_err(Failure::work)?;
        let share = nodes::Share { stream, streams: args.streams, rate: args.heartbeats / f64::from(args.streams) };
        tasks.spawn(nodes::report(Arc::clone(&cluster), client, share, Arc::clone(&recorder)));
    }
    sampler.wait_for_nodes(args.nodes).await?;
    output.progress(&format!("{} requests and {} heartbeats a second", args.requests, args.heartbeats));
    let client = Client::connect(&target).await.map_err(Failure::work)?;
    let (done, ended) = tokio::sync::mpsc::channel(ENDED_MAX);
    tasks.spawn(requests::tell_ends(client, ended));
    let load = Arc::new(Load::new(&args, cluster, done, Arc::clone(&recorder)));
    for number in 0..args.connections {
        let client = Client::connect(&target).await.map_err(Failure::work)?;
        tasks.spawn(requests::offer(Arc::clone(&load), client, number));
    }
    tokio::time::sleep(WARM_UP).await;
    let mut report = Report {
        target,
        version: sampler.version().to_owned(),
        settings: args.clone(),
        totals: Totals::default(),
        windows: Vec::new(),
    };
    let begin = Instant::now();
    recorder.close(); // what the warm-up counted
    let length = Duration::from_secs(args.window);
    let windows = (args.minutes * 60.0 / length.as_secs_f64()).ceil().max(1.0) as u32;
    for number in 1..=windows {
        let end = begin + length * number;
        while Instant::now() < end {
            tokio::time::sleep_until(end.min(Instant::now() + SAMPLE_EVERY)).await;
            sampler.look().await;
        }
        let window = sampler.window(recorder.close(), begin.elapsed());
        output.progress(&line(&window));
        report.windows.push(window);
        report.totals = Totals::of(&report.windows, &recorder);
        write(args.output.as_deref(), &report)?;
    }
    tasks.shutdown().await;
    Ok(report)
}

/// Writes figures and plot.
fn write(file: Option<&Path>, report: &Report) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    files::write(&file.with_extension("json"), report)?;
    let facts = [("daemon's version", report.version.clone())];
    files::write_text(file, &Provenance::of(facts).sign(&plot::draw(&report.settings, &report.windows)?)?)
}

fn line(window: &Window) -> String {
    let memory = window.resident_bytes.map_or_else(|| "-".to_owned(), |bytes| output::bytes(bytes as f64));
    format!(
        "{:>6.0} s  {:.0} answers/s, {} refused, p50 {} ms, p99 {} ms, {:.0} heartbeats/s, {memory}",
        window.at_s,
        window.answered as f64 / window.seconds,
        window.refused.values().sum::<u64>() + window.unsent,
        output::digits(window.p50_ms),
        output::digits(window.p99_ms),
        window.heartbeats as f64 / window.seconds,
    )
}

fn text(report: &Report) -> String {
    let totals = &report.totals;
    let ms = |value: f64| format!("{} ms", output::digits(value));
    let memory = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), |bytes| output::bytes(bytes as f64));
    let refused: Vec<String> = totals.refused.iter().map(|(code, count)| format!("{code} {count}")).collect();
    output::pairs(&[
        ("time", output::seconds(totals.seconds)),
        ("requests answered", totals.answered.to_string()),
        ("refused", if refused.is_empty() { "0".to_owned() } else { refused.join(", ") }),
        ("not sent (too many under way)", totals.unsent.to_string()),
        ("latency p50, p99, p99.9", [totals.p50_ms, totals.p99_ms, totals.p999_ms].map(ms).join(", ")),
        ("longest", ms(totals.max_ms)),
        ("heartbeats acknowledged", totals.heartbeats.to_string()),
        ("heartbeats refused", totals.heartbeats_refused.to_string()),
        ("memory at first, at last, most", {
            let of = [totals.resident_first_bytes, totals.resident_last_bytes, totals.resident_max_bytes];
            of.map(memory).join(", ")
        }),
        (
            "memory's growth, second half",
            totals.growth_bytes_per_hour.map_or_else(
                || "-".to_owned(),
                |slope| format!("{}{} an hour", if slope < 0.0 { "-" } else { "" }, output::bytes(slope.abs())),
            ),
        ),
    ])
}
