//! What the daemon is started with, and the part of it that a reload may swap.
//!
//! Plain checked values: reading and checking files is `config`'s, a floor above, which fills these.

use super::registries::RegistryLimits;
use crate::notice::{Notice, NoticeKind};
use crate::telemetry::spans::SpanOptions;
use hintd_engine::prediction::PredictionSettings;
use hintd_engine::rounds::RoundSettings;
use hintd_engine::{EngineSettings, Guard, Mode, Refusal};
use hintd_model::cluster::{Resource, SizeRules};
use hintd_model::network::latency::probes::Fanout;
use hintd_model::network::racks::{NetworkFile, RacksSaid};
use hintd_model::solve::nearest;
use hintd_model::units::{BitsPerSec, Micros, QueueName};
use hintd_policy::Policy;
use hintd_policy::plan::Objective;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Everything a daemon needs to know at its start.
#[derive(Clone)]
pub struct Options {
    /// Sockets.
    pub listen: Listen,
    /// The journal.
    pub store: Store,
    /// The pool that searches.
    pub pool: PoolOptions,
    /// Size rules of YARN's scheduler.
    pub rules: SizeRules,
    /// Changes wait at most so long before requests see them.
    pub publish_every: Duration,
    /// What feeds may fill; beyond it items are refused.
    pub feeds: RegistryLimits,
    /// Where spans of requests go; `None`: there are none.
    pub tracing: Option<SpanOptions>,
    /// The operator's page is on: its listener comes after the admin socket.
    pub page: bool,
    /// What a reload may swap.
    pub settings: Settings,
    /// Reads the configuration anew; `None`: this daemon has no file to reload.
    pub reload: Option<ReloadHook>,
}

/// The daemon's own planning, on request and at its times.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    /// When by itself; `None`: on request only.
    pub when: Option<When>,
    /// How far ahead.
    pub horizon: Micros,
    /// The policy that plans.
    pub policy: &'static str,
    /// What to keep small.
    pub objective: Objective,
    /// How long making one may take.
    pub time: Duration,
    /// Whether a plan is put in force as it is made, or waits to be reviewed.
    pub activate: bool,
    /// Size of the containers that racks are counted in; none: YARN's smallest.
    pub unit: Option<Resource>,
    /// Capacity of a rack's uplinks where no network that joins racks is known; `None`: nothing is planned then.
    pub uplink: Option<BitsPerSec>,
    /// How runs are predicted.
    pub prediction: PredictionSettings,
}

/// When the daemon plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At this time of each day, after midnight by [`PredictionSettings::zone_offset_s`].
    At(Micros),
    /// So often.
    Every(Micros),
}

/// Gives new settings, or says what is wrong with them and where.
pub type ReloadHook = Arc<dyn Fn(&Settings) -> Result<Reloaded, String> + Send + Sync>;

/// What reading the configuration anew brought.
#[derive(Clone)]
pub struct Reloaded {
    /// The new settings.
    pub settings: Settings,
    /// Keys by which the configuration in force differs from the one before it.
    pub changed: Vec<String>,
    /// Keys that differ from those of the start, need a restart and were left as they are.
    pub needs_restart: Vec<String>,
    /// Keys that waited for a restart and are again as they are in force.
    pub reverted: Vec<String>,
    /// To be called once they are in force: the next reading is compared with this one from then on.
    pub taken: Arc<dyn Fn() + Send + Sync>,
}

/// Sockets.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Placement, Feed, Routes.
    pub grpc: SocketAddr,
    /// Admin; a Unix socket, for its owner only.
    pub admin_socket: PathBuf,
    /// Allows addresses beyond loopback, without TLS.
    pub insecure_bind: bool,
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Bytes of messages on their way in, all connections together.
    pub inbound_bytes: usize,
    /// Bytes of answers that are not read yet, all connections together.
    pub outbound_bytes: usize,
    /// How long a message may take from its first byte to its last.
    pub upload: Duration,
    /// How long a connection may leave unread what waits for it.
    pub unread: Duration,
    /// Bytes a second at which each answer has to be read, beyond `unread`; 0: at any rate.
    pub read_bytes_per_s: u64,
    /// Bytes of one call's headers.
    pub header_bytes: u32,
    /// Connections at one time.
    pub connections: usize,
    /// How long a connection may take to speak HTTP/2.
    pub greeting: Duration,
    /// Follow, Watch and feed streams at one time, all connections together.
    pub streams: usize,
    /// Streams and calls at one time on one connection.
    pub streams_per_connection: usize,
    /// How long a shutdown waits for what is in flight.
    pub drain: Duration,
}

/// The journal.
#[derive(Debug, Clone)]
pub struct Store {
    /// One file.
    pub path: PathBuf,
    /// A commit waits at most so long for others to share its write.
    pub commit_wait: Duration,
    /// At most so many answers share a write.
    pub commit_batch: usize,
}

/// The pool that searches.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// Threads; 0: one a core.
    pub threads: usize,
    /// Requests that may wait for a thread.
    pub queue: usize,
}

/// What a reload swaps, all of it or nothing.
#[derive(Clone)]
pub struct Settings {
    /// Where they came from, for messages.
    pub file: String,
    /// Counts reloads; the first settings are 1.
    pub generation: u64,
    /// Ledger, monitor, history.
    pub engine: EngineSettings,
    /// Search.
    pub placer: Placer,
    /// Policies by name, and who gets which.
    pub policies: Policies,
    /// Modes and policies by queue; `*` is every other queue.
    pub queues: BTreeMap<String, Queue>,
    /// An ApplicationMaster is asked so often how far its shuffle is; `None`: never.
    pub hold_progress: Option<Micros>,
    /// What one request may hold.
    pub limits: RequestLimits,
    /// Streams to applications.
    pub follow: FollowOptions,
    /// Who watches routes.
    pub watch: WatchLimits,
    /// The daemon's own planning.
    pub planning: Planning,
    /// The network that a file describes; `None`: feeds tell of it, or a controller.
    pub network: Option<Arc<NetworkSource>>,
    /// Requests of one application in a second, on average; 0: no bound.
    pub requests_per_s: u32,
    /// Requests of one application under way at one time; 0: no bound.
    pub requests_at_once: u32,
    /// Lines of log about requests of one application in a second; 0: no bound.
    pub log_lines_per_s: u32,
    /// What agents that measure latency are told and may send.
    pub latency: LatencyFeed,
}

impl Settings {
    /// What items of `Feed.Latency` are held against.
    #[must_use]
    pub const fn latency_bounds(&self) -> LatencyBounds {
        LatencyBounds { items_per_s: self.latency.items_per_s, max_age: self.engine.latency().max_age }
    }
}

/// What agents that measure latency are told and may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyFeed {
    /// Items that one host may send in a second.
    pub items_per_s: u32,
    /// How many others a host measures.
    pub fanout: Fanout,
    /// How often it measures each.
    pub interval: Duration,
    /// How often it tells of it.
    pub report: Duration,
}

/// What items of `Feed.Latency` are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyBounds {
    /// Items that one host may send in a second.
    pub items_per_s: u32,
    /// A measurement that is older counts no more.
    pub max_age: Micros,
}

/// A network file as it was read.
#[derive(Debug)]
pub struct NetworkSource {
    /// Where it is, from the root.
    pub path: PathBuf,
    /// What it says.
    pub file: NetworkFile,
    /// The racks that it puts hosts in.
    pub racks: RacksSaid,
}

/// What one request may hold, so that no caller can make the daemon work or remember without bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimits {
    /// Task groups.
    pub groups: usize,
    /// Rows of the ask table.
    pub asks: usize,
    /// Edges between groups.
    pub edges: usize,
    /// Input paths, of the request or of one group.
    pub paths: usize,
    /// Hosts or racks to avoid.
    pub avoid: usize,
    /// Containers of all groups.
    pub containers: u64,
    /// Bytes of any one text.
    pub text_bytes: usize,
    /// Bytes of names that answers and rows of the journal repeat: request ids, queues, groups.
    pub name_bytes: usize,
    /// Bytes of its answer.
    pub answer_bytes: usize,
}

impl Default for RequestLimits {
    /// A job of 100,000 containers in 256 groups: the largest the papers' traces hold, with room to spare.
    fn default() -> Self {
        Self {
            groups: 256,
            asks: 20_000,
            edges: 1_024,
            paths: 10_000,
            avoid: 10_000,
            containers: 100_000,
            text_bytes: 4_096,
            name_bytes: 256,
            answer_bytes: 32 << 20,
        }
    }
}

/// How much may be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchLimits {
    /// Host pairs, all watchers together.
    pub pairs: usize,
    /// Host pairs, all watchers of one peer together.
    pub pairs_per_peer: usize,
    /// Watchers.
    pub watchers: usize,
}

/// Search.
#[derive(Debug, Clone, PartialEq)]
pub struct Placer {
    /// Steps a search may take; fewer under load.
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
    /// Keeps back hints that would do no good; `None`: all are given.
    pub guard: Option<Guard>,
    /// Requests of policies that can are decided together; `None`: each alone.
    pub round: Option<RoundSettings>,
}

/// Streams to applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowOptions {
    /// Messages kept for one attempt.
    pub messages: usize,
    /// How long they are kept for those who resume.
    pub kept: Duration,
}

/// Policies by name, and who gets which.
#[derive(Clone)]
pub struct Policies {
    /// Every policy, built with its parameters.
    pub built: BTreeMap<&'static str, Arc<dyn Policy>>,
    /// Each one's parameters as TOML, for people.
    pub params: BTreeMap<&'static str, String>,
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
    /// Whether receivers of heavy shuffles are held.
    pub hold: bool,
}

impl Settings {
    /// What the configuration says and hardly means, in words.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        if self.queues.contains_key("*") {
            return Vec::new();
        }
        let named: Vec<&str> = self.queues.keys().map(String::as_str).collect();
        let words = format!(
            "the configuration names queues ({}) and no [queues.\"*\"]: requests of every other queue are refused (unknown); \
             [queues.\"*\"] with mode = \"off\" lets them through without hints",
            named.join(", ")
        );
        vec![Notice::new(NoticeKind::QueuesRefused, words)]
    }

    /// What the queue gets, and whether it holds receivers of heavy shuffles.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a queue that the configuration does not have.
    pub fn mode_and_hold(&self, queue: &QueueName) -> Result<(Mode, bool), Refusal> {
        let found = self.queue(queue)?;
        Ok((found.mode, found.hold))
    }

    fn queue(&self, queue: &QueueName) -> Result<&Queue, Refusal> {
        let found = self.queues.get(queue.as_str()).or_else(|| self.queues.get("*"));
        found.ok_or_else(|| {
            let known = || self.queues.keys().map(String::as_str);
            Refusal::unknown_queue(queue.as_str(), nearest(queue.as_str(), known()), known())
        })
    }

    /// The policy of requests of queues that are not named and of no framework: what goes for data whose reader nobody knows.
    #[must_use]
    pub fn general_policy(&self) -> &'static str {
        self.queues.get("*").and_then(|queue| queue.policy).unwrap_or(self.policies.default)
    }

    /// The mode of a request's queue, and the policy that decides it.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a queue or policy that the configuration does not have.
    pub fn choose(
        &self,
        queue: &QueueName,
        framework: &str,
        wanted: Option<&str>,
    ) -> Result<(Mode, &'static str), Refusal> {
        let found = self.queue(queue)?;
        let policies = &self.policies;
        let policy = match wanted {
            Some(wanted) => match policies.built.get_key_value(wanted) {
                Some((name, _)) => name,
                None => return Err(unknown("policy", wanted, policies.built.keys().copied())),
            },
            None => found.policy.or_else(|| policies.frameworks.get(framework).copied()).unwrap_or(policies.default),
        };
        Ok((found.mode, policy))
    }
}

fn unknown<'k>(what: &'static str, name: &str, known: impl Iterator<Item = &'k str>) -> Refusal {
    let nearest = nearest(name, known).map(str::to_owned);
    Refusal::Unknown { what, name: name.to_owned(), nearest }
}
