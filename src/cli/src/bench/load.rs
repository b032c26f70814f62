//! Requests for hints, closed or open loop, against a daemon and against a server that does nothing.

use super::super::connect::{self, DaemonArgs, block_on};
use super::super::failure::Failure;
use super::super::output::{self, Output};
use super::Attempts;
use super::process::Peer;
use crate::emulate::cluster::resource;
use clap::Args;
use hdrhistogram::Histogram;
use hintd::telemetry::process::cpu_seconds;
use hintd_client::wire::v1;
use hintd_client::{Client, ClientError};
use hintd_model::units::AttemptId;
use prost::Message as _;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How to load a daemon.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl bench load --target 127.0.0.1:8470 --clients 16 --seconds 10\n  \
    hintctl bench load --target 127.0.0.1:8470 --gang 12 --policy container --peer\n  \
    hintctl bench load --target 127.0.0.1:8470 --rate 2000    (open loop: latency counts from the intended start)\n\n\
    The server's CPU comes from --server-pid, or from the daemon's own status over the admin socket.")]
pub struct LoadArgs {
    /// The daemon's gRPC address
    #[arg(long)]
    target: Option<String>,
    #[command(flatten)]
    shape: Shape,
    /// Load a server that does nothing with the same bytes as well, and say the ratio
    #[arg(long)]
    peer: bool,
    /// The daemon's process id, for its CPU time
    #[arg(long)]
    server_pid: Option<u32>,
}

/// How to load the server that does nothing.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  hintctl bench noop --clients 16 --seconds 10 --gang 12")]
pub struct NoopArgs {
    #[command(flatten)]
    shape: Shape,
}

/// What both loads have in common.
#[derive(Debug, Clone, Args)]
struct Shape {
    /// Connections, each with one request at a time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    clients: u32,
    /// How long, after one second to warm up
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Containers of each request, all or none
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    gang: u32,
    /// Policy to ask for; none: the daemon's choice
    #[arg(long, default_value = "")]
    policy: String,
    /// The recurring job that every request is a run of, as the plan in force may name it; none: of no job
    #[arg(long, default_value = "")]
    key: String,
    /// Requests a second, all clients together; none: as fast as answers come
    #[arg(long)]
    rate: Option<f64>,
    /// Keep the leases instead of releasing each answer's
    #[arg(long)]
    keep: bool,
    /// Seed of the requests' searches
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// One load's figures.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    requests_per_s: f64,
    hints_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    errors: u64,
    /// The first error in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<String>,
    client_cpu_s: Option<f64>,
    server_cpu_s: Option<f64>,
    hints_per_server_cpu_s: Option<f64>,
    requests: u64,
    answer_bytes: usize,
    seconds: f64,
}

#[derive(Serialize)]
struct Report {
    target: String,
    clients: u32,
    gang: u32,
    policy: String,
    #[serde(flatten)]
    daemon: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<Figures>,
    /// Hints per server CPU second, ours ÷ the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

/// Time before counting starts: connections, caches, a first publish.
const WARM_UP: Duration = Duration::from_secs(1);

/// Longest latency that is told apart, microseconds.
const MOST_US: u64 = 120_000_000;

/// Memory of each container asked for, MB: YARN's default minimum.
const CONTAINER_MB: u64 = 1024;

/// Bytes between the workers of a gang: enough for terms to differ, as in paper 001's jobs.
const EXCHANGED: u64 = 1 << 30;

/// `hintctl bench load`.
///
/// # Errors
/// [`Failure`] where nobody answers, or every request failed.
pub fn run(args: LoadArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let daemon = DaemonArgs { address: args.target.clone().or_else(|| daemon.address.clone()), ..daemon.clone() };
    let report = block_on(async {
        let target = daemon.grpc_address()?;
        let first = daemon.client().await?; // says it at once where nobody listens
        drop(first);
        output.progress(&format!("loading {target}: {} clients, {} s", args.shape.clients, args.shape.seconds));
        let server = match args.server_pid {
            Some(pid) => Server::Process(pid),
            None => Server::Daemon(&daemon),
        };
        let (ours, answer) = measure(&target, &args.shape, &server).await?;
        let peer = if args.peer {
            output.progress(&format!("loading a server that does nothing, answers of {} bytes", answer.len()));
            Some(measure_peer(&answer, &args.shape).await?)
        } else {
            None
        };
        let per_cpu = |figures: &Figures| figures.hints_per_server_cpu_s;
        let ratio = peer.as_ref().and_then(|peer| Some(per_cpu(&ours)? / per_cpu(peer)?));
        let Shape { clients, gang, policy, .. } = args.shape;
        Ok(Report { target, clients, gang, policy, daemon: ours, peer, ratio })
    })?;
    output.result(&report, || text(&report))?;
    if report.daemon.requests == 0 {
        return Err(Failure::work("no request was answered"));
    }
    Ok(())
}

/// `hintctl bench noop`.
///
/// # Errors
/// [`Failure`] where the server does not start.
pub fn run_noop(args: NoopArgs, output: Output) -> Result<(), Failure> {
    let answer = sample_answer(args.shape.gang).encode_to_vec();
    output.progress(&format!("loading a server that does nothing, answers of {} bytes", answer.len()));
    let figures = block_on(measure_peer(&answer, &args.shape))?;
    output.result(&figures, || figures_text(&[("no-op", &figures)]))
}

async fn measure_peer(answer: &[u8], shape: &Shape) -> Result<Figures, Failure> {
    let peer = Peer::start(answer)?;
    let (figures, _) = measure(&peer.address, shape, &Server::Process(peer.pid())).await?;
    Ok(figures)
}

/// Whose CPU time to take.
enum Server<'a> {
    Process(u32),
    Daemon(&'a DaemonArgs),
}

impl Server<'_> {
    /// CPU seconds so far; `None` where nobody tells.
    async fn cpu_seconds(&self) -> Option<f64> {
        match self {
            Self::Process(pid) => cpu_seconds(*pid),
            Self::Daemon(daemon) => {
                let status = daemon.admin().await.ok()?.status(v1::StatusRequest {}).await.ok()?.into_inner();
                (status.process_cpu_s > 0.0).then_some(status.process_cpu_s)
            }
        }
    }
}

/// Loads `target`; also returns one encoded answer.
async fn measure(target: &str, shape: &Shape, server: &Server<'_>) -> Result<(Figures, Vec<u8>), Failure> {
    let load = Arc::new(Load {
        shape: shape.clone(),
        attempts: Attempts::begin(),
        begin: Instant::now() + WARM_UP,
        end: Instant::now() + WARM_UP + Duration::from_secs(shape.seconds),
    });
    let mut clients = JoinSet::new();
    for number in 0..shape.clients {
        let connected = connect::client(target).await?;
        clients.spawn(client(Arc::clone(&load), connected, number));
    }
    tokio::time::sleep_until(load.begin).await;
    let before = (cpu_seconds(std::process::id()), server.cpu_seconds().await);
    let mut sum = Counted::new();
    while let Some(counted) = clients.join_next().await {
        sum.add(&counted.map_err(anyhow::Error::from)?);
    }
    let seconds = load.begin.elapsed().as_secs_f64();
    let after = (cpu_seconds(std::process::id()), server.cpu_seconds().await);
    let used = |before: Option<f64>, after: Option<f64>| Some(after? - before?);
    let server_cpu_s = used(before.1, after.1);
    let ms = |quantile| sum.latency.value_at_quantile(quantile) as f64 / 1e3;
    let figures = Figures {
        requests_per_s: sum.requests as f64 / seconds,
        hints_per_s: sum.hints as f64 / seconds,
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        errors: sum.errors,
        first_error: sum.first_error,
        client_cpu_s: used(before.0, after.0),
        server_cpu_s,
        hints_per_server_cpu_s: server_cpu_s.filter(|&cpu| cpu > 0.0).map(|cpu| sum.hints as f64 / cpu),
        requests: sum.requests,
        answer_bytes: sum.answer.len(),
        seconds,
    };
    Ok((figures, sum.answer))
}

struct Load {
    shape: Shape,
    attempts: Attempts,
    begin: Instant,
    end: Instant,
}

/// What one client, or all together, saw.
struct Counted {
    requests: u64,
    hints: u64,
    errors: u64,
    first_error: Option<String>,
    latency: Histogram<u64>,
    answer: Vec<u8>,
}

impl Counted {
    fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, MOST_US, 3).expect("bounds and precision are constants that fit");
        Self { requests: 0, hints: 0, errors: 0, first_error: None, latency, answer: Vec::new() }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.hints += other.hints;
        self.errors += other.errors;
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
        if self.answer.is_empty() {
            self.answer.clone_from(&other.answer);
        }
    }
}

/// One connection with one request at a time.
async fn client(load: Arc<Load>, client: Client, number: u32) -> Counted {
    let mut counted = Counted::new();
    // Open loop: starts are planned, and what the server delays is latency, not a slower load.
    let gap = load.shape.rate.map(|rate| Duration::from_secs_f64(f64::from(load.shape.clients) / rate.max(1e-3)));
    let offset = gap.map_or(Duration::ZERO, |gap| gap * number / load.shape.clients);
    let mut intended = Instant::now() + offset;
    loop {
        if gap.is_some() {
            tokio::time::sleep_until(intended).await;
        } else {
            intended = Instant::now();
        }
        if intended >= load.end || Instant::now() >= load.end {
            return counted;
        }
        let attempt = load.attempts.next();
        let answer = client.request_hints_once(load.request(attempt)).await;
        let took = intended.elapsed();
        if intended >= load.begin {
            count(&mut counted, &answer, took);
        }
        if let Ok(answer) = answer
            && !load.shape.keep
        {
            release(&client, attempt, answer.token).await;
        }
        intended += gap.unwrap_or(Duration::ZERO);
    }
}

fn count(counted: &mut Counted, answer: &Result<v1::RequestHintsResponse, ClientError>, took: Duration) {
    match answer {
        Ok(answer) => {
            counted.requests += 1;
            let hints = answer.hints.as_ref().map_or(&[][..], |set| set.hints.as_slice());
            counted.hints += hints.iter().map(|hint| u64::from(hint.count)).sum::<u64>();
            counted.latency.saturating_record(u64::try_from(took.as_micros()).unwrap_or(MOST_US).max(1));
            if counted.answer.is_empty() {
                counted.answer = answer.encode_to_vec();
            }
        }
        Err(error) => {
            counted.errors += 1;
            counted.first_error.get_or_insert_with(|| error.to_string());
        }
    }
}

async fn release(client: &Client, attempt: AttemptId, token: String) {
    let request = v1::ReleaseRequest {
        application_id: attempt.application.to_string(),
        attempt: attempt.attempt,
        token,
        lease_ids: Vec::new(),
        nonce: Vec::new(),
    };
    let _ = client.release(request).await; // what can't be released ends at its time-to-live
}

impl Load {
    fn request(&self, attempt: AttemptId) -> v1::RequestHintsRequest {
        let group = v1::TaskGroup {
            name: "worker".to_owned(),
            role: "worker".to_owned(),
            count: self.shape.gang,
            resource: Some(resource(CONTAINER_MB, 1)),
            priority: 1,
            ..v1::TaskGroup::default()
        };
        let edge = v1::GroupEdge {
            from: "worker".to_owned(),
            to: "worker".to_owned(),
            pattern: v1::EdgePattern::AllToAll.into(),
            bytes: EXCHANGED,
        };
        v1::RequestHintsRequest {
            request_id: attempt.to_string(),
            application_id: attempt.application.to_string(),
            attempt: attempt.attempt,
            queue: "default".to_owned(),
            user: "bench".to_owned(),
            groups: vec![group],
            edges: if self.shape.gang > 1 { vec![edge] } else { Vec::new() },
            policy: self.shape.policy.clone(),
            recurring_job_key: self.shape.key.clone(),
            seed: Some(self.shape.seed),
            gang: v1::Gang::All.into(),
            ..v1::RequestHintsRequest::default()
        }
    }
}

/// An answer as a daemon would give it, one host per container.
fn sample_answer(gang: u32) -> v1::RequestHintsResponse {
    let host = |number: u32| format!("node-{:02}-{}.cluster.example", number % 100, number / 100);
    let hint = |number: u32| v1::Hint {
        group: "worker".to_owned(),
        host: host(number),
        count: 1,
        fallbacks: vec![host(number + 1), host(number + 2)],
        racks: vec!["/rack-01".to_owned(), "/rack-02".to_owned()],
        lease_ids: vec![u64::from(number) + 1],
        expires_at_ms: Some(1_700_000_000_000),
        confidence: 1.0,
        first_index: number,
        ..v1::Hint::default()
    };
    let terms =
        || Some(v1::Terms { core_hops: Some(1.0), balance: Some(0.5), objective: Some(1.0), ..v1::Terms::default() });
    let hints = v1::HintSet {
        decision_id: "0000019a000000015c0e2f9b7d3a8146".to_owned(),
        request_id: "appattempt_1700000000000_0001_000001".to_owned(),
        policy: "spread".to_owned(),
        hints: (0..gang).map(hint).collect(),
        terms: terms(),
        baseline: terms(),
        ..v1::HintSet::default()
    };
    v1::RequestHintsResponse {
        hints: Some(hints),
        token: "0123456789abcdef0123456789abcdef".to_owned(),
        ..Default::default()
    }
}

fn text(report: &Report) -> String {
    let mut columns = vec![("hintd", &report.daemon)];
    columns.extend(report.peer.as_ref().map(|peer| ("no-op", peer)));
    let mut text = figures_text(&columns);
    if let Some(ratio) = report.ratio {
        text += &format!(
            "\n\nhints per server CPU second: {} % of a server that does nothing",
            output::digits(ratio * 100.0)
        );
    }
    if let Some(error) = &report.daemon.first_error {
        text += &format!("\n\nfirst error: {error}");
    }
    text
}

fn figures_text(columns: &[(&str, &Figures)]) -> String {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), output::digits);
    let rows = columns.iter().map(|(name, figures)| {
        [
            (*name).to_owned(),
            format!("{:.0}", figures.requests_per_s),
            format!("{:.0}", figures.hints_per_s),
            output::digits(figures.p50_ms),
            output::digits(figures.p99_ms),
            figures.errors.to_string(),
            optional(figures.client_cpu_s),
            optional(figures.server_cpu_s),
            figures.hints_per_server_cpu_s.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
        ]
    });
    let header = [
        "server",
        "requests/s",
        "hints/s",
        "p50 ms",
        "p99 ms",
        "errors",
        "client CPU s",
        "server CPU s",
        "hints/CPU s",
    ];
    output::table(header, 1, rows)
}
