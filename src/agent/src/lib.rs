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
use hintd_client::shown_address;
use probes::{Histogram, Target};
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Measures round trips between nodes and tells hintd of them.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "hintd-agent",
    version,
    after_help = "One runs on each node, without privileges. SIGTERM and SIGINT end it.\n\
    Exit code 0: it was ended; 1: it failed, as where its port is taken; 2: bad usage."
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
    /// Where others send their probes, at the address this node reaches hintd by [default: that one, with the port of --listen]
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

/// The newest report, until a newer one takes its place.
#[derive(Debug, Clone, Default)]
struct Measured {
    report: Report,
    /// When it was closed; `None`: there is none yet.
    at: Option<Instant>,
}

impl Measured {
    /// What may be told as of now: nothing that waited for longer than `within`, as for a daemon that was away.
    fn current(self, now: Instant, within: Duration) -> Report {
        let current = self.at.is_some_and(|at| now.saturating_duration_since(at) <= within);
        if current { self.report } else { Report::new() }
    }
}

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
        None => own_advertise(bound, &arguments.address).await?,
    };
    // Drawn, so that nobody elsewhere can answer for another host, and 0 is no agent's.
    let instance = rand::random::<u64>().max(1);
    let (reports, waiting) = watch::channel(Measured::default());
    let (wanted, wants) = watch::channel(Wanted::default());
    let reporter = report::Reporter::new(&arguments.address, host, advertise, instance)?;
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

/// Where others reach this node, where nobody says so. A loopback address leads each of them back to itself.
async fn own_advertise(bound: SocketAddr, daemon: &str) -> Result<SocketAddr, String> {
    let ip = if bound.ip().is_unspecified() { own_address(daemon).await? } else { bound.ip() };
    if ip.to_canonical().is_loopback() {
        return Err(format!(
            "other nodes can't measure this one at {ip}, by which it reaches {}: give --address as they have it, or --advertise",
            shown_address(daemon)
        ));
    }
    Ok(SocketAddr::new(ip, bound.port()))
}

/// The address of this node that packets to hintd carry; none is sent.
async fn own_address(daemon: &str) -> Result<std::net::IpAddr, String> {
    let shown = shown_address(daemon);
    let why =
        |error| format!("no address of this node to be measured at, by the way to {shown}: {error}: give --advertise");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_waited_for_a_daemon_that_was_away_is_replaced_and_in_the_end_dropped() {
        let (within, start) = (Duration::from_secs(5), Instant::now());
        let (reports, mut waiting) = watch::channel(Measured::default());
        assert_eq!(waiting.borrow().clone().current(start, within), Report::new());
        for (at, host) in ["first", "last"].into_iter().enumerate() {
            let report = vec![(host.to_owned(), Histogram::from([(70, 1)]))];
            reports.send_replace(Measured { report, at: Some(start + within * at as u32) });
        }
        let kept = waiting.borrow_and_update().clone();
        assert_eq!(kept.clone().current(start + within * 2, within)[0].0, "last");
        assert_eq!(kept.current(start + within * 2 + Duration::from_millis(1), within), Report::new());
        assert!(!waiting.has_changed().unwrap(), "there is but one");
    }

    #[tokio::test]
    async fn no_node_is_measured_at_a_loopback_address_unless_it_says_so() {
        for (bound, says) in [("0.0.0.0:8471", "127.0.0.1"), ("127.0.0.9:8471", "127.0.0.9")] {
            let said = own_advertise(bound.parse().unwrap(), "127.0.0.1:8470").await.unwrap_err();
            assert!(said.starts_with(&format!("other nodes can't measure this one at {says},")), "{said}");
        }
        let said = own_advertise("0.0.0.0:8471".parse().unwrap(), "ann:hunter2@h:8470").await.unwrap_err();
        assert!(said.contains("by the way to (left out)@h:8470: ") && !said.contains("hunter2"), "{said}");
        let own = "192.0.2.7:8471".parse().unwrap();
        assert_eq!(own_advertise(own, "127.0.0.1:8470").await, Ok(own));
    }
}
