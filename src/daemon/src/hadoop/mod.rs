//! Adapters to an ordinary Hadoop cluster, run inside the daemon: nodes, applications and the scheduler's settings from
//! the ResourceManager's REST interface, blocks of paths from the NameNode's.
//!
//! # Code map
//! - Without I/O: `resource_manager` (its JSON), `known_nodes` (nodes as last told, and what to tell of the next answer),
//!   `applications` (those that are over, how long they took, and containers), `scheduler` (its settings).
//! - `name_node`: where blocks of paths lie, when a request names them.
//! - `slow_peers`: which DataNodes others report as slow, asked of the NameNode every so often.
//! - With I/O: `listed_attempts` (which attempts run, before they get tokens), `application_queries` (asks for applications and settings), `node_poller` (asks whichever ResourceManager is active, and feeds the daemon).
//! - `job_progress` (without I/O) and `job_progress_poller`: how far shuffles of running MapReduce jobs are, as their
//!   ApplicationMasters say through the ResourceManager's web proxy.
//! - `processor` (without I/O) and `setup_poller`: the ResourceManager's clock, and hintd's processor in it, for the doctor.
//! - What finished jobs did, for those that recur: `history_server` (MapReduce's) and `spark_history` (without I/O),
//!   `history_kinds` (what is asked of each kind of server), `history_poller` (who asks, and when).
//!
//! # Invariants
//! - What a ResourceManager says reaches the model as items of `Feed.Heartbeats` do: checked, counted, refused one by one.
//! - An answer that is late, cut short, too long, HTML or nonsense changes nothing; the source's age shows how old the
//!   picture is, and no node is lost by it until `unheard_kept` has passed.
//! - What an ApplicationMaster says is a stranger's word: only configured addresses are asked, numbers are bounded, and
//!   an answer that can't be is none.
//! - A list of nodes that has become empty, or a ResourceManager that has just started, is not believed at once.

mod application_queries;
pub mod applications;
mod history_kinds;
mod history_poller;
pub mod history_server;
mod history_window;
pub mod job_progress;
mod job_progress_poller;
pub mod known_nodes;
mod listed_attempts;
pub mod name_node;
mod node_poller;
pub mod options;
pub mod processor;
pub mod resource_manager;
pub mod scheduler;
mod setup_poller;
pub mod slow_peers;
pub mod spark_history;

pub use name_node::path_cache::PathCacheSettings;
pub use options::{HistoryServerOptions, NameNodeOptions, ResourceManagerOptions, ServerOptions, SlowPeerOptions};

use crate::rest_client::TrustError;
use crate::runtime::Daemon;
use crate::runtime::listing::Listing;
use crate::telemetry::metrics::Metrics;
use history_kinds::{MapReduceHistory, SparkHistory};
use history_poller::HistoryKind;
use std::sync::Arc;

/// Watches the ResourceManagers until the daemon stops. To be called within a tokio runtime.
///
/// # Errors
/// [`TrustError`] where an address is `https` and there is nobody to trust.
pub fn start(options: ResourceManagerOptions, daemon: &Daemon, metrics: &Metrics) -> Result<(), TrustError> {
    let stopping = daemon.stopping().clone();
    let trust = options.servers.trust()?;
    let nodes = node_poller::NodePoller::new(options.clone(), trust.as_ref(), daemon.clone(), metrics.hadoop());
    let listed = options.applications.map(|_| {
        let listed = listed_attempts::ListedAttempts::new(&options, trust.as_ref(), nodes.leads(), metrics.hadoop());
        Arc::new(listed)
    });
    if let Some(listed) = &listed {
        daemon.set_listing(Arc::clone(listed) as Arc<dyn Listing>);
    }
    let progress = job_progress_poller::JobProgressPoller::new(
        options.servers.clone(),
        trust.clone(),
        daemon.clone(),
        metrics.hadoop(),
        nodes.leads(),
    );
    let setup = setup_poller::SetupPoller::new(options.clone(), trust.as_ref(), daemon.clone(), nodes.leads());
    let errands = application_queries::ApplicationQueries::new(
        (options, listed),
        trust.as_ref(),
        daemon.clone(),
        metrics.hadoop(),
        nodes.leads(),
    );
    tokio::spawn(async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = nodes.run() => {}
            () = errands.run() => {}
            () = progress.run() => {}
            () = setup.run() => {}
        }
    });
    Ok(())
}

/// Lets requests be told where their input lies, and policies which DataNodes are slow, until the daemon stops. To be called
/// within a tokio runtime.
///
/// # Errors
/// [`TrustError`] where an address is `https` and there is nobody to trust.
pub fn start_name_node(options: NameNodeOptions, daemon: &Daemon, metrics: &Metrics) -> Result<(), TrustError> {
    let trust = options.servers.trust()?;
    if let Some(slow_peers) = options.slow_peers {
        let stopping = daemon.stopping().clone();
        let (whom, metrics) = ((&options, slow_peers), metrics.slow_peers());
        let poller = slow_peers::SlowPeerPoller::new(whom, trust.as_ref(), daemon.clone(), metrics);
        tokio::spawn(async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = poller.run() => {}
            }
        });
    }
    daemon.set_locator(Arc::new(name_node::NameNodes::start(options, trust, daemon, metrics.name_node())));
    Ok(())
}

/// Learns from jobs that JobHistoryServers say have ended, until the daemon stops. To be called within a tokio runtime.
///
/// # Errors
/// [`TrustError`] where an address is `https` and there is nobody to trust.
pub fn start_history_server(
    options: &HistoryServerOptions,
    daemon: &Daemon,
    metrics: &Metrics,
) -> Result<(), TrustError> {
    poll_history(options, || Ok(MapReduceHistory), daemon, metrics)
}

/// Learns from applications that Spark's history servers say have ended, until the daemon stops; the ResourceManagers, if
/// there are any, say what they were called when they were submitted. To be called within a tokio runtime.
///
/// # Errors
/// [`TrustError`] where an address is `https` and there is nobody to trust.
pub fn start_spark_history_server(
    options: &HistoryServerOptions,
    managers: Option<&ResourceManagerOptions>,
    daemon: &Daemon,
    metrics: &Metrics,
) -> Result<(), TrustError> {
    poll_history(options, || SparkHistory::new(managers), daemon, metrics)
}

fn poll_history<K: HistoryKind>(
    options: &HistoryServerOptions,
    kind: impl Fn() -> Result<K, TrustError>,
    daemon: &Daemon,
    metrics: &Metrics,
) -> Result<(), TrustError> {
    let trust = options.servers.trust()?;
    for address in &options.servers.addresses {
        let stopping = daemon.stopping().clone();
        let metrics = metrics.history_server(&address.authority);
        let whom = (address, trust.as_ref());
        let poller = history_poller::HistoryPoller::new(kind()?, whom, options.clone(), daemon.clone(), metrics);
        tokio::spawn(async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = poller.run() => {}
            }
        });
    }
    Ok(())
}
