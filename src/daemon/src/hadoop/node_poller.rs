//! Asks whichever ResourceManager is active, and feeds the daemon.

use super::known_nodes::KnownNodes;
use super::options::ResourceManagerOptions;
use super::resource_manager::{self, Active, BadAnswer, ClusterInfo, INFO, NODES, NodeSeen, with_user};
use crate::feed::{FeedStream, heartbeats};
use crate::notice::{Notice, NoticeKind};
use crate::rest_advice::server_failure;
use crate::rest_client::{Address, Rest, RestError, Trust, backoff};
use crate::runtime::Daemon;
use crate::runtime::servers::{Answered, Group, ServerFailure, ServerStatus};
use crate::telemetry::hadoop::HadoopMetrics;
use crate::times::micros;
use hintd_client::wire::v1;
use hintd_model::cluster::Source;
use tokio::sync::watch;
use tokio::time::Instant;

/// One poll after the other.
pub(super) struct NodePoller {
    options: ResourceManagerOptions,
    daemon: Daemon,
    metrics: HadoopMetrics,
    /// By position in the options.
    managers: Vec<Rest>,
    /// Which one answered last.
    active: usize,
    /// How each stands.
    group: Group,
    known_nodes: KnownNodes,
    stream: FeedStream,
    number: u64,
    started: Instant,
    /// When nodes were heard of last.
    heard: Option<Instant>,
    /// Who leads, for those who ask for other things.
    leads: watch::Sender<Active>,
}

/// What a ResourceManager could not say.
type Failure = RestError<BadAnswer>;

impl NodePoller {
    pub(super) fn new(
        options: ResourceManagerOptions,
        trust: Option<&Trust>,
        daemon: Daemon,
        metrics: HadoopMetrics,
    ) -> Self {
        let rest = |address: &Address| options.servers.rest(address, trust);
        let (addresses, gauges) = (options.servers.addresses.iter().map(Address::to_string), metrics.clone());
        let gauges = move |answers, age| gauges.age(answers, age);
        let mut poller = Self {
            managers: options.servers.addresses.iter().map(rest).collect(),
            active: 0,
            group: daemon.servers().group("resource_manager", addresses, gauges),
            known_nodes: KnownNodes::new(options.absent_kept),
            stream: FeedStream::new(Source::Heartbeats),
            number: 0,
            started: Instant::now(),
            heard: None,
            leads: watch::Sender::new(None),
            options,
            daemon,
            metrics,
        };
        // Not as an item: nothing was heard from anybody. What the scheduler has given away; which containers these are it does not say.
        poller.stream.greet(v1::FeedHello {
            source: "rm-rest".to_owned(),
            used_means: v1::UsedMeans::Allocated.into(),
            names_containers: false,
        });
        poller
    }

    /// Who leads, and its changes.
    pub(super) fn leads(&self) -> watch::Receiver<Active> {
        self.leads.subscribe()
    }

    pub(super) async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let begun = Instant::now();
            let wait = if self.poll().await {
                failures = 0;
                self.options.servers.poll.saturating_sub(begun.elapsed())
            } else {
                failures = failures.saturating_add(1);
                backoff(failures, self.options.servers.backoff, rand::random())
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Asks one after the other, the one that answered last first; whether one answered.
    async fn poll(&mut self) -> bool {
        let count = self.managers.len();
        for turn in 0..count {
            let at = (self.active + turn) % count;
            match self.ask(at).await {
                Ok((life, nodes)) => {
                    self.metrics.asked(None);
                    self.heard(at, nodes.len());
                    let leads = Some((at, life));
                    self.leads.send_if_modified(|known| std::mem::replace(known, leads) != leads);
                    self.feed_nodes(life, nodes);
                    return true;
                }
                Err(error) => {
                    self.metrics.asked(Some(error.reason()));
                    self.missed(at, &error);
                }
            }
        }
        if let Some(error) = self.group.nobody() {
            let resource_manager = self.options.servers.names();
            tracing::warn!(%resource_manager, error, "no ResourceManager leads: nodes stay as they were told last");
        }
        self.leads.send_if_modified(|known| known.take().is_some());
        self.spare();
        false
    }

    /// One is active, and said which nodes there are.
    fn heard(&mut self, at: usize, nodes: usize) {
        let resource_manager = &self.options.servers.addresses[at];
        match self.group.answered(at) {
            Answered { away: Some(away), .. } => {
                let away_s = away.as_secs_f64();
                tracing::info!(%resource_manager, nodes, away_s, "it is active, after a time without any");
            }
            Answered { moved: true, .. } => tracing::info!(%resource_manager, nodes, "it is active"),
            Answered { .. } => {}
        }
        (self.active, self.heard) = (at, Some(Instant::now()));
    }

    fn missed(&self, at: usize, error: &Failure) {
        let standby = matches!(error, RestError::Nonsense { source: BadAnswer::NotActive(_), .. });
        let failure = match standby {
            true => ServerFailure::status(ServerStatus::Standby, "standby", error),
            false => server_failure(error),
        };
        let news = self.group.troubled(at, failure);
        if !standby && news && self.managers.len() > 1 {
            tracing::warn!(resource_manager = %self.options.servers.addresses[at], %error, "the next one is asked");
        }
    }

    async fn ask(&mut self, at: usize) -> Result<(ClusterInfo, Vec<NodeSeen>), Failure> {
        let [info, nodes] = [INFO, NODES].map(|path| with_user(path, &self.options.servers.user));
        let manager = &mut self.managers[at];
        let life = manager.get(&info, resource_manager::info).await?;
        Ok((life, manager.get(&nodes, resource_manager::nodes).await?))
    }

    fn feed_nodes(&mut self, life: ClusterInfo, nodes: Vec<NodeSeen>) {
        let none = nodes.is_empty();
        let told = self.known_nodes.update(life, nodes, self.started.elapsed());
        let kept = || told.silence_excused.map(|time| (told.spared, time.as_secs())).filter(|(nodes, _)| *nodes > 0);
        let lacks = kept().map(|(nodes, for_s)| {
            let words =
                format!("{nodes} nodes are missing from the ResourceManager's list, kept for another {for_s} s");
            Notice::new(NoticeKind::NodesMissing, words)
        });
        let empty = || none.then(|| Notice::new(NoticeKind::NoNode, "the ResourceManager answers and lists no node"));
        self.daemon.notice("nodes", lacks.or_else(empty).into_iter().collect());
        if told.other_life {
            tracing::info!(id = life.id, "the ResourceManager has changed or started anew: nodes have time to find it");
        }
        if !told.twice.is_empty() {
            tracing::warn!(
                hosts = ?told.twice,
                "the ResourceManager names nodes twice (one host with several NodeManagers?): the first counts"
            );
        }
        if let Some((nodes, time)) = told.believed {
            tracing::warn!(nodes, after_s = time.as_secs_f64(), "nodes are missing still and believed to have left");
        }
        if let Some(time) = told.silence_excused {
            if told.begins {
                tracing::warn!(nodes = told.spared, for_s = time.as_secs_f64(), "nodes are missing, and kept for now");
            }
            self.daemon.registries().excuse_silence(micros(time));
        }
        told.items.into_iter().for_each(|item| self.tell(item));
        self.daemon.registries().heard(Source::Heartbeats);
        for host in self.stream.acknowledge(self.daemon.registries(), "").resync {
            self.known_nodes.forget(&host);
        }
    }

    /// Nobody answers: nodes go stale, and none is lost, for as long as they are kept.
    fn spare(&self) {
        let Some(heard) = self.heard else { return };
        let left = self.options.unheard_kept.saturating_sub(heard.elapsed());
        // No longer than until the next try and its answer, for that may say otherwise.
        let next = self.options.servers.backoff + self.options.servers.timeout * 2 * self.managers.len() as u32;
        if !left.is_zero() {
            self.daemon.registries().excuse_silence(micros(left.min(next)));
        }
    }

    fn tell(&mut self, item: v1::heartbeat_item::Item) {
        self.number += 1;
        let item = v1::HeartbeatItem { number: self.number, item: Some(item) };
        if let Err(refusal) = heartbeats::ingest(self.daemon.registries(), &mut self.stream, item) {
            tracing::debug!(reason = refusal.reason.as_str(), message = %refusal.message, "a node is refused");
        }
    }
}
