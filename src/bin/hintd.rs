//! The daemon: arguments, configuration, logs, signals; everything else is the library's.

use anyhow::Context as _;
use clap::Parser;
use hintd::config::Config;
use hintd::descriptors;
use hintd::hadoop::{HistoryServerOptions, NameNodeOptions, ResourceManagerOptions};
use hintd::http::{self, Endpoint};
use hintd::notice::{Notice, NoticeKind};
use hintd::regular_file::{CONFIG_BYTES, NETWORK_BYTES};
use hintd::runtime::Daemon;
use hintd::runtime::page::PageOptions;
use hintd::runtime::watch_file::watch_file;
use hintd::telemetry::logs::{self, Logs};
use hintd::telemetry::metrics::Metrics;
use hintd_cli::daemon::Arguments;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Small pieces that live for minutes between large ones that live for a moment: glibc's own spent a fifth of the
/// daemon's time looking for room among them (docs/decisions.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bad usage or a bad configuration.
const BAD_INPUT: u8 = 2;

/// Threads for work that may block: what waits for one waits in a queue. The unit's TasksMax counts them.
const BLOCKING_THREADS: usize = 64;
/// How long the end waits for work that blocks, as a read from a file system that hangs.
const LAST_WORK: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let load = || {
        Config::load(&arguments.config).map_err(|error| {
            say(&error.to_string());
            ExitCode::from(BAD_INPUT)
        })
    };
    if arguments.check {
        return match load() {
            Ok(config) => {
                config.options.settings.notices().iter().for_each(|notice| say(&format!("warning: {notice}")));
                say(&format!("{}: OK", arguments.config.display()));
                ExitCode::SUCCESS
            }
            Err(code) => code,
        };
    }
    // Before all that takes time: a signal that comes meanwhile is heeded when the daemon stands, and does not cut it off.
    let (runtime, signals) = match runtime() {
        Ok(started) => started,
        Err(error) => {
            say(&format!("{error:#}"));
            return ExitCode::FAILURE;
        }
    };
    match load() {
        Ok(config) => run(runtime, config, arguments.config, signals),
        Err(code) => code,
    }
}

fn runtime() -> anyhow::Result<(tokio::runtime::Runtime, Signals)> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build().context("no threads")?;
    let signals = runtime.block_on(async { Signals::install() }).context("signals can't be caught")?;
    Ok((runtime, signals))
}

fn run(runtime: tokio::runtime::Runtime, config: Config, file: PathBuf, signals: Signals) -> ExitCode {
    let logs = match logs::install(config.log.format, &config.log.level) {
        Ok(logs) => logs,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    logs.take_panics();
    let ended = runtime.block_on(serve(config, file, signals, &logs));
    runtime.shutdown_timeout(LAST_WORK);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logs.say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: Config, file: PathBuf, signals: Signals, logs: &Logs) -> anyhow::Result<()> {
    let metrics = Metrics::new();
    logs.count_in(&metrics);
    let (listen, page, sdn) = (config.metrics, config.page, config.sdn.clone());
    let hadoop = Hadoop {
        resource_manager: config.resource_manager.clone(),
        name_node: config.name_node.clone(),
        history_server: config.history_server.clone(),
        spark_history_server: config.spark_history_server.clone(),
    };
    let mut options = config.options.clone();
    options.listen.connections = descriptors::connections(options.listen.connections)?;
    options.reload = Some(config.reload_hook(file.clone()));
    let running = hintd::server::start(&options, metrics.clone()).await?;
    running.daemon.set_log_level(logs.level());
    let endpoint = match listen {
        None => None,
        Some(address) => match endpoint(address, page, metrics.clone(), &running.daemon).await {
            Ok(endpoint) => Some(endpoint),
            Err(error) => {
                running.shutdown().await?;
                return Err(error);
            }
        },
    };
    if let Some(ryu) = sdn
        && let Err(error) =
            hintd::sdn::start(ryu, &running.daemon, &metrics).context("sdn.ryu.hosts_file can't be read")
    {
        running.shutdown().await?;
        return Err(error);
    }
    if let Err(error) = hadoop.start(&running.daemon, &metrics) {
        running.shutdown().await?;
        return Err(error);
    }
    let changed = watch_file(&file, CONFIG_BYTES).context("the configuration file can't be watched")?;
    options.settings.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
    say_whom_it_trusts(running.grpc);
    let ended = until_stopped(&running.daemon, signals, changed).await;
    running.shutdown().await?;
    drop(endpoint);
    ended
}

/// Servers of Hadoop to ask, as far as the configuration names any.
struct Hadoop {
    resource_manager: Option<ResourceManagerOptions>,
    name_node: Option<NameNodeOptions>,
    history_server: Option<HistoryServerOptions>,
    spark_history_server: Option<HistoryServerOptions>,
}

impl Hadoop {
    fn start(self, daemon: &Daemon, metrics: &Metrics) -> anyhow::Result<()> {
        if daemon.settings().engine.worth.is_on() && self.resource_manager.is_none() && self.history_server.is_none() {
            let said = "applications are held out, and nobody is asked when they end: there is neither [resource_manager] \
                        nor [history_server]";
            tracing::warn!("{said}");
            daemon.notice("holdout", vec![Notice::new(NoticeKind::HoldoutUnheard, said)]);
        }
        if let Some(options) = self.spark_history_server {
            let managers = self.resource_manager.as_ref();
            hintd::hadoop::start_spark_history_server(&options, managers, daemon, metrics)
                .context("spark_history_server.ca_file")?;
        }
        if let Some(options) = self.resource_manager {
            hintd::hadoop::start(options, daemon, metrics).context("resource_manager.ca_file")?;
        }
        if let Some(options) = self.name_node {
            hintd::hadoop::start_name_node(options, daemon, metrics).context("name_node.ca_file")?;
        }
        if let Some(options) = self.history_server {
            hintd::hadoop::start_history_server(&options, daemon, metrics).context("history_server.ca_file")?;
        }
        Ok(())
    }
}

async fn endpoint(
    address: std::net::SocketAddr,
    page: Option<PageOptions>,
    metrics: Metrics,
    daemon: &Daemon,
) -> anyhow::Result<Endpoint> {
    let endpoint = match page {
        None => http::serve(address, metrics, daemon.ready()).await?,
        Some(options) => http::serve_with_page(address, metrics, daemon, options).await?,
    };
    tracing::info!(address = %endpoint.address(), page = page.is_some(), "metrics");
    Ok(endpoint)
}

/// What is not said in the configuration alone: who can do what on this address (docs/operations.md, Whom it trusts).
fn say_whom_it_trusts(grpc: std::net::SocketAddr) {
    if grpc.ip().is_loopback() {
        tracing::info!(%grpc, "no TLS, no login: {TRUSTED_LOCALLY}");
    } else {
        tracing::warn!(%grpc, "no TLS, no login: whoever reaches this address from anywhere is trusted; {TRUSTED_LOCALLY}");
    }
}

const TRUSTED_LOCALLY: &str = "any process on this machine, YARN's containers included, can feed nodes, events and \
    topology, take over routes, and ask for hints";

/// Signals that mean something to the daemon. They are kept from the moment of [`Signals::install`] on.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn install() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

/// A network file, and its changes.
struct WatchedNetwork {
    path: PathBuf,
    changed: tokio::sync::watch::Receiver<u64>,
}

impl WatchedNetwork {
    /// Watches the file of the settings in force, if they name one.
    fn of(daemon: &Daemon, watched: Option<Self>) -> Option<Self> {
        let path = daemon.settings().network.as_ref().map(|source| source.path.clone())?;
        if let Some(watched) = watched.filter(|watched| watched.path == path) {
            return Some(watched);
        }
        match watch_file(&path, NETWORK_BYTES) {
            Ok(changed) => Some(Self { path, changed }),
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "the network file can't be watched: reload by hand");
                None
            }
        }
    }

    async fn changed(watched: &mut Option<Self>) -> bool {
        match watched {
            Some(watched) => watched.changed.changed().await.is_ok(),
            None => std::future::pending().await,
        }
    }
}

/// Reloads on SIGHUP and when the file, or the network file, changes; returns on SIGTERM and SIGINT, and with an error when there
/// is nothing left to serve with: whoever started the daemon is to start it again.
async fn until_stopped(
    daemon: &Daemon,
    mut signals: Signals,
    mut changed: tokio::sync::watch::Receiver<u64>,
) -> anyhow::Result<()> {
    let mut network = None;
    loop {
        network = WatchedNetwork::of(daemon, network);
        tokio::select! {
            _ = signals.hangup.recv() => {}
            Ok(()) = changed.changed() => {}
            true = WatchedNetwork::changed(&mut network) => {}
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            () = daemon.engine_ended().cancelled() => anyhow::bail!("the engine's thread ended"),
        }
        let _ = daemon.reload().await; // it says itself what it refuses
    }
}

fn say(message: &str) {
    // Standard error may be closed; there is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "{message}");
}
