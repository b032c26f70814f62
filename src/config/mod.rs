//! Configuration: `config/hintd.toml` read, checked across keys, and then never checked again.
//!
//! Every problem of a file is reported in one run with file, line and key; a configuration that
//! does not pass changes nothing. Each default is named and reasoned in [`parse`]'s sections and
//! repeated, commented, in `config/hintd.toml`, which a test holds against them.

mod parse;
mod reader;

pub use reader::{Problem, Problems};

use crate::cluster::SizeRules;
use crate::engine::Mode;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A checked configuration.
#[derive(Clone)]
pub struct Config {
    /// Where it came from, for messages and `hintctl status`.
    pub file: String,
    /// Sockets.
    pub listen: Listen,
    /// Logs.
    pub log: Log,
    /// The journal.
    pub store: Store,
    /// YARN's own settings that bear on hints.
    pub yarn: Yarn,
    /// Search and its pool.
    pub placer: Placer,
    /// Leases, answers, streams to applications.
    pub leases: Leases,
    /// The model: publishing, silence, ages.
    pub model: Model,
    /// What is remembered of recurring jobs.
    pub history: History,
    /// Sizes and rates that are refused beyond.
    pub limits: Limits,
    /// Policies by name, and who gets which.
    pub policies: Policies,
    /// Modes and policies by queue.
    pub queues: BTreeMap<String, Queue>,
}

/// Sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Placement, Feed, Routes.
    pub grpc: SocketAddr,
    /// Admin; a Unix socket, readable by its owner only.
    pub admin_socket: PathBuf,
    /// Prometheus, health; `None`: off.
    pub metrics: Option<SocketAddr>,
    /// Allows addresses beyond loopback, without TLS.
    pub insecure_bind: bool,
    /// How long a shutdown waits for what is in flight.
    pub drain: Duration,
}

/// Logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// As `tracing-subscriber`'s filters: `info`, `hintd=debug`.
    pub level: String,
    /// JSON lines instead of text.
    pub json: bool,
}

/// The journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// One file.
    pub path: PathBuf,
    /// A commit waits at most so long for others to share its write.
    pub commit_wait: Duration,
    /// At most so many answers share a write.
    pub commit_batch: usize,
}

/// YARN's own settings that bear on hints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Yarn {
    /// Sizes that the scheduler really allocates.
    pub rules: SizeRules,
}

/// Search and its pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placer {
    /// Threads of the pool; never 0.
    pub threads: usize,
    /// Requests that may wait for a thread.
    pub queue: usize,
    /// Steps a search may take.
    pub steps: u64,
    /// For requests that name no deadline.
    pub deadline_default: Duration,
    /// Longer deadlines are cut to this.
    pub deadline_max: Duration,
    /// How often a lost commit is placed again.
    pub retries: u32,
    /// Hosts named beside the preferred one.
    pub fallbacks: usize,
    /// Whether the default placement is computed for comparison.
    pub baseline: bool,
}

/// Leases, answers, streams to applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leases {
    /// A lease that was not used ends.
    pub time_to_live: Duration,
    /// An answer is kept after its last lease ended.
    pub answers_kept: Duration,
    /// Follow messages are kept for those who resume.
    pub follow_kept: Duration,
}

/// The model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Changes wait at most so long before they are published.
    pub publish_every: Duration,
    /// A node silent for longer gets no hints.
    pub stale_after: Duration,
    /// A node silent for longer is lost, and its tasks are placed again.
    pub lost_after: Duration,
    /// Sources older than this are too old, by source name.
    pub max_age: MaxAge,
}

/// Ages beyond which a source counts as too old and the policy degrades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxAge {
    /// NodeManager heartbeats, all nodes together.
    pub heartbeats: Duration,
    /// Block reports and datasets.
    pub blocks: Duration,
    /// SDN topology.
    pub topology: Duration,
    /// Link counters.
    pub link_stats: Duration,
    /// Latency.
    pub latency: Duration,
    /// Task events.
    pub events: Duration,
}

/// What is remembered of recurring jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Recurring-job keys kept; the longest unused go first.
    pub keys: usize,
    /// Finished runs kept of each.
    pub runs: usize,
}

/// Sizes and rates that are refused beyond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Nodes.
    pub nodes: usize,
    /// Registered paths.
    pub datasets: usize,
    /// Blocks of registered paths.
    pub blocks: usize,
    /// Leases at one time.
    pub leases: usize,
    /// Answers remembered at one time.
    pub answers: usize,
    /// Containers of one request.
    pub containers_per_request: u64,
    /// Groups of one request.
    pub groups_per_request: usize,
    /// Follow messages kept for one attempt.
    pub follow_messages: usize,
    /// Host pairs watched by all.
    pub watched_pairs: usize,
    /// Streams and calls at one time on one connection.
    pub streams_per_connection: usize,
}

/// Policies by name, and who gets which.
#[derive(Clone)]
pub struct Policies {
    /// Every policy of the registry, built with its parameters.
    pub built: BTreeMap<&'static str, Arc<dyn crate::policy::Policy>>,
    /// For queues and frameworks that name none.
    pub default: &'static str,
    /// By framework.
    pub frameworks: BTreeMap<String, &'static str>,
}

/// One queue, or `*` for all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// off, shadow, on.
    pub mode: Mode,
    /// Its policy; `None`: the framework's, else the default.
    pub policy: Option<&'static str>,
}

/// A configuration can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{path}: {source}")]
    Read {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file says wrong things.
    #[error(transparent)]
    Wrong(#[from] Problems),
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`], with every problem of the file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: name.clone(), source })?;
        Ok(Self::from_text(&text, &name)?)
    }

    /// Checks a text; `file` is its name in messages.
    ///
    /// # Errors
    /// [`Problems`]: all of them.
    pub fn from_text(text: &str, file: &str) -> Result<Self, Problems> {
        parse::config(text, file)
    }

    /// The mode of a queue, and the policy for a request of that queue and framework; `None`: the
    /// queue is not known and there is no `*`.
    #[must_use]
    pub fn choose(&self, queue: &str, framework: &str) -> Option<(Mode, &'static str)> {
        let name = if queue.is_empty() { "default" } else { queue };
        let found = self.queues.get(name).or_else(|| self.queues.get("*"))?;
        let policies = &self.policies;
        let policy = found.policy.or_else(|| policies.frameworks.get(framework).copied()).unwrap_or(policies.default);
        Some((found.mode, policy))
    }

    /// Keys that differ from `other` and need a restart to take effect.
    #[must_use]
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let pairs = [
            (self.listen != other.listen, "listen"),
            (self.log != other.log, "log"),
            (self.store != other.store, "store"),
            (self.placer.threads != other.placer.threads, "placer.threads"),
            (self.placer.queue != other.placer.queue, "placer.queue"),
            (self.limits.message_bytes != other.limits.message_bytes, "limits.message_bytes"),
            (
                self.limits.streams_per_connection != other.limits.streams_per_connection,
                "limits.streams_per_connection",
            ),
        ];
        pairs.into_iter().filter_map(|(differs, key)| differs.then_some(key)).collect()
    }
}
