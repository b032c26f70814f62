//! `hintd-agent`: one small program a node that measures round trips to others over UDP and tells hintd of them.
//!
//! hintd names the others (`Feed.ProbeTargets`), how often each is to be measured, and how often to tell; histograms go over
//! `Feed.Latency`. Nothing is kept: an agent that starts again goes on at once, and one whose daemon is away waits for it.
//!
//! # Code map
//! - `packet`: what goes over the wire. `probes`: what is under way, and what came back. `measure`: the socket. `report`: the daemon.
//!
//! # Invariants
//! - At most `--packets-per-second` probes are sent, and as many answered, whatever the daemon or other hosts ask for.
//! - An answer is no longer than its probe, and goes where it came from.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // an edge: clocks, files and sockets are its work
#![cfg_attr(test, allow(clippy::unwrap_used))] // a test that panics is a test that fails

mod measure;
mod packet;
mod probes;
mod report;

use clap::Parser;
use probes::{Histogram, Target};
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Measures round trips between nodes and tells hintd of them.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "hintd-agent",
    version,
    after_help = "One runs on each node, without privileges. SIGTERM and SIGINT end it.\n\
    Exit code 0: it was ended; 1: it failed, as where its port can't be had; 2: bad usage."
)]
pub struct Arguments {
    /// hintd's gRPC address
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8470")]
    pub address: String,
    /// This node as YARN calls it [default: the system's host name]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Where probes are answered
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:8471")]
    pub listen: SocketAddr,
    /// Where others send their probes [default: --listen, with the address by which this node reaches hintd where it has none]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub advertise: Option<SocketAddr>,
    /// Probes sent a second at most, and answered
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub packets_per_second: u32,
}

/// What hintd wants measured.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    targets: Vec<Target>,
    interval: Duration,
    report: Duration,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { targets: Vec::new(), interval: Duration::from_secs(1), report: Duration::from_secs(5) }
    }
}

/// What was measured since the last report, by host.
type Report = Vec<(String, Histogram)>;

/// Runs the program until a signal ends it.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print(); // a closed terminal hears nothing
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // One thread: it sends and answers some hundred packets a second.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(1, &format!("no runtime: {error}")),
    };
    runtime.block_on(async {
        let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
        let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
            return failed(1, "signals can't be caught");
        };
        tokio::select! {
            ended = run(arguments) => match ended {
                Err(message) => failed(1, &message),
                Ok(()) => failed(1, "it ended by itself"),
            },
            _ = terminate.recv() => ExitCode::SUCCESS,
            _ = interrupt.recv() => ExitCode::SUCCESS,
        }
    })
}

/// Measures and tells until it is dropped.
///
/// # Errors
/// Why it can't begin: its port, its own name or address can't be had, or hintd's address is none.
pub async fn run(arguments: Arguments) -> Result<(), String> {
    let host = match arguments.host {
        Some(host) => host,
        None => own_name()?,
    };
    if host.trim().is_empty() {
        return Err("--host is empty".to_owned());
    }
    let listen = arguments.listen;
    let socket = UdpSocket::bind(listen).await.map_err(|error| format!("--listen {listen}: {error}"))?;
    let bound = socket.local_addr().map_err(|error| format!("--listen {listen}: {error}"))?;
    let advertise = match arguments.advertise {
        Some(advertise) => advertise,
        None if !bound.ip().is_unspecified() => bound,
        None => SocketAddr::new(own_address(&arguments.address).await?, bound.port()),
    };
    // Drawn, so that nobody elsewhere can answer for another host, and 0 is no agent's.
    let instance = rand::random::<u64>().max(1);
    let (reports, waiting) = mpsc::channel(1);
    let (wanted, wants) = watch::channel(Wanted::default());
    let reporter = report::Reporter::new(&arguments.address, (host, advertise, instance))?;
    tokio::select! {
        () = measure::run(socket, instance, arguments.packets_per_second, wants, reports) => {}
        () = reporter.run(wanted, waiting) => {}
    }
    Ok(())
}

/// As the system has it.
fn own_name() -> Result<String, String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.map_err(|error| format!("the system's host name can't be read: {error}: give --host"))?;
    Ok(name.trim().to_owned())
}

/// The address of this node that packets to hintd carry; none is sent.
async fn own_address(daemon: &str) -> Result<std::net::IpAddr, String> {
    let why =
        |error| format!("no address of this node to be measured at, by the way to {daemon}: {error}: give --advertise");
    let daemon = tokio::net::lookup_host(daemon).await.map_err(why)?.next();
    let daemon = daemon.ok_or_else(|| "hintd's address names no host: give --advertise".to_owned())?;
    let any: SocketAddr = if daemon.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).await.map_err(why)?;
    socket.connect(daemon).await.map_err(why)?;
    Ok(socket.local_addr().map_err(why)?.ip())
}

fn failed(code: u8, message: &str) -> ExitCode {
    say(message);
    ExitCode::from(code)
}

/// A line to standard error, which may be closed. Control characters of what hintd said speak to no terminal.
fn say(message: &str) {
    let plain: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(std::io::stderr(), "hintd-agent: {plain}");
}
