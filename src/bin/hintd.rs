//! The daemon: arguments, configuration, logs, signals; everything else is the library's.

use anyhow::Context as _;
use clap::Parser;
use hintd::config::Config;
use hintd::hadoop::{HistoryServerOptions, NameNodeOptions, ResourceManagerOptions};
use hintd::http::{self, Endpoint};
use hintd::runtime::Daemon;
use hintd::runtime::watch_file::watch_file;
use hintd::telemetry::logs;
use hintd::telemetry::metrics::Metrics;
use hintd_cli::daemon::Arguments;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Small pieces that live for minutes between large ones that live for a moment: glibc's own spent a fifth of the
/// daemon's time looking for room among them (docs/decisions.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bad usage or a bad configuration.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match Config::load(&arguments.config) {
        Ok(config) => config,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::from(BAD_INPUT);
        }
    };
    if arguments.check {
        say(&format!("{}: in order", arguments.config.display()));
        return ExitCode::SUCCESS;
    }
    match run(config, arguments.config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(config: Config, file: PathBuf) -> anyhow::Result<()> {
    logs::install(config.log.format, &config.log.level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no threads")?;
    runtime.block_on(serve(config, file))
}

async fn serve(config: Config, file: PathBuf) -> anyhow::Result<()> {
    let metrics = Metrics::new();
    let (listen, sdn) = (config.metrics, config.sdn.clone());
    let hadoop = Hadoop {
        resource_manager: config.resource_manager.clone(),
        name_node: config.name_node.clone(),
        history_server: config.history_server.clone(),
    };
    let mut options = config.options.clone();
    options.reload = Some(config.reload_hook(file.clone()));
    let running = hintd::server::start(&options, metrics.clone()).await?;
    let endpoint = match listen {
        None => None,
        Some(address) => match endpoint(address, metrics.clone(), &running.daemon).await {
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
    let changed = watch_file(&file).context("the configuration file can't be watched")?;
    let ended = until_stopped(&running.daemon, changed).await;
    running.shutdown().await?;
    drop(endpoint);
    ended
}

/// Servers of Hadoop to ask, as far as the configuration names any.
struct Hadoop {
    resource_manager: Option<ResourceManagerOptions>,
    name_node: Option<NameNodeOptions>,
    history_server: Option<HistoryServerOptions>,
}

impl Hadoop {
    fn start(self, daemon: &Daemon, metrics: &Metrics) -> anyhow::Result<()> {
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

async fn endpoint(address: std::net::SocketAddr, metrics: Metrics, daemon: &Daemon) -> anyhow::Result<Endpoint> {
    let endpoint = http::serve(address, metrics, daemon.ready()).await?;
    tracing::info!(address = %endpoint.address(), "metrics");
    Ok(endpoint)
}

/// Reloads on SIGHUP and when the file changes; returns on SIGTERM and SIGINT, and with an error when there
/// is nothing left to serve with: whoever started the daemon is to start it again.
async fn until_stopped(daemon: &Daemon, mut changed: tokio::sync::watch::Receiver<u64>) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = hangup.recv() => {}
            Ok(()) = changed.changed() => {}
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            () = daemon.engine_ended().cancelled() => anyhow::bail!("the engine's thread ended"),
        }
        if let Err(refusal) = daemon.reload().await {
            tracing::error!(%refusal, "the configuration stays as it was");
        }
    }
}

fn say(message: &str) {
    // Standard error may be closed; there is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "{message}");
}
