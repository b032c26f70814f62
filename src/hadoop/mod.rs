//! Adapters to an ordinary Hadoop cluster, run inside the daemon: nodes from the ResourceManager's REST interface.
//!
//! # Code map
//! - Without I/O: `resource_manager` (its JSON), `roster` (nodes as last told, and what to tell of the next answer).
//! - With I/O: `watch` (asks whichever ResourceManager is active, and feeds the daemon).
//!
//! # Invariants
//! - What a ResourceManager says reaches the model as items of `Feed.Heartbeats` do: checked, counted, refused one by one.
//! - An answer that is late, cut short, too long, HTML or nonsense changes nothing; the source's age shows how old the
//!   picture is, and no node is lost by it until `unheard_kept` has passed.
//! - A list of nodes that has become empty, or a ResourceManager that has just started, is not believed at once.

pub mod options;
pub mod resource_manager;
pub mod roster;
mod watch;

pub use options::ResourceManagerOptions;

use crate::runtime::Daemon;
use crate::telemetry::metrics::Metrics;

/// Watches the ResourceManagers until the daemon stops. To be called within a tokio runtime.
pub fn start(options: ResourceManagerOptions, daemon: &Daemon, metrics: &Metrics) {
    let stopping = daemon.stopping().clone();
    let watch = watch::Watch::new(options, daemon.clone(), metrics.hadoop());
    tokio::spawn(async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = watch.run() => {}
        }
    });
}
