//! The demo's daemon: the real one, in this process, on free ports and in a folder of its own.

use super::super::connect;
use super::super::failure::Failure;
use hintd::config::Config;
use hintd::server::{self, Running};
use hintd::telemetry::metrics::Metrics;
use hintd_client::AdminClient;
use hintd_client::wire::{v1, yarn};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often the daemon's books are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The demo's configuration: loopback, a folder of its own, and a monitor that is as quick as the heartbeats. All hints
/// are given: it shows what the policy does, on jobs too few to gain much.
fn configuration(folder: &Path, policy: &str) -> String {
    let (socket, journal) = (folder.join("admin.sock"), folder.join("journal.redb"));
    format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = {socket:?}\nmetrics = \"\"\ndrain = \"2s\"\n\
         [store]\npath = {journal:?}\n\
         [leases]\ntime_to_live = \"10s\"\n\
         [placer]\nguard = false\n\
         [model]\nstale_after = \"700ms\"\nlost_after = \"1500ms\"\n\
         [policy]\ndefault = {policy:?}\n",
    )
}

/// A running daemon.
#[derive(Debug)]
pub(super) struct Host {
    running: Running,
    folder: Folder,
}

/// A temporary folder that goes with its owner.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Of this process; `name`: what it is for.
    ///
    /// # Errors
    /// [`Failure::Work`] where it can't be made, as where it is there.
    pub(super) fn new(name: &str) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("hintd-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|error| Failure::work(format!("{}: {error}", folder.display())))?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what can't be removed is left to the system's own cleaning
    }
}

/// What was seen in the daemon's books.
#[derive(Debug, Clone, Default)]
pub(super) struct DaemonCounters {
    pub(super) checks: u64,
    pub(super) violations: Vec<String>,
}

/// Looks at the daemon's books until it is stopped.
pub(super) struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<DaemonCounters, Failure>>,
}

impl Host {
    pub(super) async fn start(policy: &str) -> Result<Self, Failure> {
        let folder = Folder::new("demo")?;
        let config = Config::from_text(&configuration(folder.path(), policy), "the demo's configuration")
            .map_err(|error| Failure::Work(error.into()))?;
        let running =
            server::start(&config.options, Metrics::new()).await.map_err(|error| Failure::Work(error.into()))?;
        Ok(Self { running, folder })
    }

    pub(super) fn address(&self) -> String {
        self.running.grpc.to_string()
    }

    /// Where operators' commands reach it.
    pub(super) fn socket(&self) -> &Path {
        &self.running.admin
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder.0
    }

    pub(super) async fn status(&self) -> Result<v1::StatusResponse, Failure> {
        let mut admin = connect::admin(self.running.admin.clone()).await?;
        Ok(admin.status(v1::StatusRequest {}).await?.into_inner())
    }

    /// Looks at every node's books over the admin socket, again and again.
    pub(super) fn watch_books(&self) -> Result<Watch, Failure> {
        let (stop, mut stopped) = oneshot::channel();
        let socket = self.running.admin.clone();
        let task = tokio::spawn(async move {
            let mut admin = connect::admin(socket).await?;
            let mut books = DaemonCounters::default();
            loop {
                look(&mut admin, &mut books).await?;
                tokio::select! {
                    _ = &mut stopped => return Ok(books),
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            }
        });
        Ok(Watch { stop, task })
    }

    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.running.shutdown().await.map_err(|error| Failure::Work(error.into()))
    }
}

impl Watch {
    pub(super) async fn stop(self) -> Result<DaemonCounters, Failure> {
        let _ = self.stop.send(()); // a watch that failed has ended already
        self.task.await.map_err(anyhow::Error::from)?
    }
}

/// No node may have more used and leased than it has.
async fn look(admin: &mut AdminClient, books: &mut DaemonCounters) -> Result<(), Failure> {
    let nodes = admin.nodes(v1::NodesRequest { host_contains: String::new(), limit: 0 }).await?.into_inner().nodes;
    books.checks += 1;
    for node in nodes {
        let memory = |size: &Option<yarn::ResourceProto>| size.as_ref().map_or(0, yarn::ResourceProto::memory);
        let (total, used, leased) = (memory(&node.total), memory(&node.used), memory(&node.leased));
        if used + leased > total {
            books.violations.push(format!("{}: {used} MB used and {leased} MB leased of {total} MB", node.host));
        }
    }
    Ok(())
}
