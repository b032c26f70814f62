//! Adapters to SDN controllers, run inside the daemon; so far Ryu 4.34's REST interface and websocket.
//!
//! # Code map
//! - Without I/O: `model` (the controller's terms), `ryu` (its JSON), `inventory` (the last good state), `graph` (the same
//!   in names, and what changed), `names`, `counters`, `table` (entries that switches are to have), `forwarding`.
//! - With I/O: `listen` (its events; questions go by `crate::rest_client`), `watch` (controller to feeds), `install` (routes to switches).
//!
//! # Invariants
//! - What a controller says reaches the model as items of `Feed.Topology` and `Feed.LinkStats` do: checked, counted,
//!   refused one by one.
//! - An answer that is late, cut short, too long or nonsense changes nothing; the sources' age shows how old the picture
//!   is.
//! - A route is acknowledged only when the switches show its entries.

pub mod counters;
pub mod forwarding;
pub mod graph;
mod install;
pub mod inventory;
mod listen;
pub mod model;
pub mod names;
pub mod options;
pub mod ryu;
pub mod table;
#[cfg(test)]
mod testing;
mod watch;

pub use options::RyuOptions;

use crate::regular_file::{self, LIST_BYTES};
use crate::runtime::Daemon;
use crate::telemetry::metrics::Metrics;
use install::Installer;
use std::sync::Arc;
use tokio::sync::{mpsc, watch as channel};
use watch::{View, Watcher};

/// Events that wait for the inventory, which takes microseconds for each.
const NEWS_WAITING: usize = 1_024;

/// Watches and serves a controller until the daemon stops. To be called within a tokio runtime.
///
/// # Errors
/// The hosts file can't be read.
pub fn start(mut options: RyuOptions, daemon: &Daemon, metrics: &Metrics) -> std::io::Result<()> {
    if let Some(path) = &options.hosts_file {
        let wrong = options.names.hosts_file(&regular_file::read_text(path, LIST_BYTES)?);
        if !wrong.is_empty() {
            tracing::warn!(file = %path.display(), lines = ?wrong, "lines of the hosts file are none");
        }
    }
    let options = Arc::new(options);
    let metrics = metrics.sdn();
    metrics.connected(false);
    let controller = daemon.servers().group("sdn_controller", [format!("http://{}", options.authority)], |_, _| {});
    let (sender, news) = mpsc::channel(NEWS_WAITING);
    let (view, views) = channel::channel(Arc::<View>::default());
    let watcher = Watcher::new(Arc::clone(&options), daemon.clone(), metrics.clone(), view);
    until_stopped(daemon, watcher.run(news));
    until_stopped(daemon, watch::poll((Arc::clone(&options), controller), metrics.clone(), sender.clone()));
    until_stopped(daemon, listen::run(Arc::clone(&options), metrics.clone(), sender));
    if options.install || options.forward {
        until_stopped(daemon, Installer::new(options, daemon.clone(), metrics, views).run());
    }
    Ok(())
}

fn until_stopped(daemon: &Daemon, task: impl Future<Output = ()> + Send + 'static) {
    let stopping = daemon.stopping().clone();
    tokio::spawn(async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = task => {}
        }
    });
}
