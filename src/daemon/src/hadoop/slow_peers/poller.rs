//! Asks whichever NameNode leads, and feeds the daemon.

use super::book::Book;
use super::report::{self, BadAnswer, Hosts, LIVE_NODES, LeftOut, Report, Rows, STATUS};
use crate::hadoop::options::{NameNodeOptions, ServerOptions, SlowPeerOptions};
use crate::hadoop::resource_manager::with_user;
use crate::rest_client::{Address, Rest, RestError, Trust, backoff};
use crate::runtime::Daemon;
use crate::telemetry::slow_peers::SlowPeerMetrics;
use hintd_model::cluster::NodeStatics;
use hintd_model::network::latency::slow_peers::SlowPeersState;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// What notices are filed under.
const MATTER: &str = "slow_peers";
/// Names of DataNodes are not asked for more often: there are some 600 bytes for each in the answer.
const NAMES_EVERY: Duration = Duration::from_secs(300);
/// Names of an HDFS of any size; of more the rest is unknown.
const NAMES_MAX: usize = 100_000;

/// One poll after the other.
pub(in crate::hadoop) struct SlowPeerPoller {
    servers: ServerOptions,
    every: Duration,
    daemon: Daemon,
    metrics: SlowPeerMetrics,
    /// By position in the options.
    name_nodes: Vec<Rest>,
    /// Which one answered last.
    active: usize,
    book: Book,
    /// Names of DataNodes by address, and when they were asked for.
    names: BTreeMap<String, String>,
    named: Option<Instant>,
    said: Said,
}

/// What the log has been told, each once until it is otherwise.
#[derive(Default)]
struct Said {
    state: SlowPeersState,
    failing: bool,
    left_out: BTreeSet<LeftOut>,
}

/// What a NameNode could not say.
type Failure = RestError<BadAnswer>;

impl SlowPeerPoller {
    pub(in crate::hadoop) fn new(
        (options, slow_peers): (&NameNodeOptions, SlowPeerOptions),
        trust: Option<&Trust>,
        daemon: Daemon,
        metrics: SlowPeerMetrics,
    ) -> Self {
        let servers = options.servers.clone();
        let rest = |address: &Address| servers.rest(address, trust);
        Self {
            name_nodes: servers.addresses.iter().map(rest).collect(),
            servers,
            every: slow_peers.every,
            daemon,
            metrics,
            active: 0,
            book: Book::new(slow_peers.kept),
            names: BTreeMap::new(),
            named: None,
            said: Said::default(),
        }
    }

    pub(in crate::hadoop) async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let begun = Instant::now();
            let wait = if self.poll().await {
                failures = 0;
                self.every.saturating_sub(begun.elapsed())
            } else {
                failures = failures.saturating_add(1);
                // Never sooner than the next poll would be: nobody waits for this.
                backoff(failures, self.servers.backoff, rand::random()).max(self.every)
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Asks one after the other, the one that answered last first; whether one answered.
    async fn poll(&mut self) -> bool {
        let question = with_user(STATUS, &self.servers.user);
        let count = self.name_nodes.len();
        let mut failure = None;
        for turn in 0..count {
            let at = (self.active + turn) % count;
            match self.name_nodes[at].get(&question, report::report).await {
                Ok(report) => {
                    self.metrics.polled("answered");
                    self.active = at;
                    self.told(report).await;
                    return true;
                }
                Err(error) => {
                    self.metrics.polled(reason(&error));
                    failure = Some(error);
                }
            }
        }
        if let Some(error) = failure.filter(|_| !std::mem::replace(&mut self.said.failing, true)) {
            let name_node = self.servers.names();
            tracing::info!(%name_node, %error, "no NameNode says which DataNodes are slow: what was told last counts on");
        }
        self.show();
        false
    }

    async fn told(&mut self, mut report: Report) {
        self.said.failing = false;
        let nodes = std::sync::Arc::clone(&self.daemon.generation().snapshot.statics);
        if let Report::On(rows) = &report {
            self.look_up(rows, &nodes).await;
        }
        let hosts = Hosts { nodes: &nodes, names: &self.names };
        let told = self.book.take(&mut report, &hosts, self.daemon.clock().now());
        self.log(&report, told.state);
        if let Report::On(rows) = &report {
            self.metrics.reports("taken", told.reports.len() as u64);
            rows.left_out.iter().for_each(|(why, (count, _))| self.metrics.reports(why.label(), *count));
        }
        self.daemon.registries().slow_peers(told);
        self.show();
    }

    /// Asks what HDFS calls hosts where an address says nothing to YARN.
    async fn look_up(&mut self, rows: &Rows, nodes: &NodeStatics) {
        let hosts = Hosts { nodes, names: &self.names };
        let again = self.named.is_none_or(|at| at.elapsed() >= NAMES_EVERY);
        if !again || hosts.unknown(&rows.taken).is_empty() {
            return;
        }
        self.named = Some(Instant::now());
        let question = with_user(LIVE_NODES, &self.servers.user);
        match self.name_nodes[self.active].get(&question, report::live_nodes).await {
            Ok(names) => self.names = names.into_iter().take(NAMES_MAX).collect(),
            Err(error) => {
                tracing::info!(%error, "the NameNode does not say which DataNode has which address");
            }
        }
    }

    /// Says once what is wrong or new.
    fn log(&mut self, report: &Report, state: SlowPeersState) {
        if std::mem::replace(&mut self.said.state, state) != state {
            let name_node = &self.servers.addresses[self.active];
            match report {
                Report::Absent => {
                    tracing::info!(%name_node, "it has no SlowPeersReport: an older Hadoop tells of no slow DataNodes")
                }
                Report::Off => tracing::info!(
                    %name_node,
                    "it tells of no slow DataNodes: dfs.datanode.peer.stats.enabled is false"
                ),
                Report::On(_) => tracing::info!(%name_node, "it tells which DataNodes others report as slow"),
            }
        }
        let Report::On(rows) = report else { return };
        for (why, (count, first)) in &rows.left_out {
            if self.said.left_out.insert(*why) {
                tracing::warn!(reason = why.label(), count, first, "reports of slow DataNodes are left out; said once");
            }
        }
    }

    /// What status, doctor and the page show.
    fn show(&self) {
        let now = self.daemon.clock().now();
        self.metrics.slow(self.book.slow(now).len());
        self.daemon.notice(MATTER, self.book.notice(now).into_iter().collect());
    }
}

/// A label of a closed list.
fn reason(error: &Failure) -> &'static str {
    match error {
        RestError::Nonsense { source: BadAnswer::NotActive(_), .. } => "standby",
        error => error.reason(),
    }
}
