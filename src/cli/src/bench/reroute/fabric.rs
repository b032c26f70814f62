//! The bench's cluster: a fat-tree whose hosts report, and jobs whose tasks talk.

use super::super::super::failure::Failure;
use super::installed_routes::InstalledRoutes;
use crate::emulate::cluster::{graph, resource};
use hintd_client::wire::v1;
use hintd_client::{Client, ClientError, FeedSender};
use hintd_model::network::Network;
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::units::{ApplicationId, AttemptId, BitsPerSec};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Tasks that send, and as many that receive, of each job.
const FAN: u32 = 10;
/// Bytes between two tasks: far above what a route is installed for.
const BYTES: u64 = 64 << 20;
/// Memory of a node and of a container, MB.
const NODE_MB: u64 = 256 * 1024;
const CONTAINER_MB: u64 = 1024;
/// A heartbeat of every node in this time: no node goes stale meanwhile.
const BEAT: Duration = Duration::from_secs(2);
/// Patience of one request.
const ANSWER: Duration = Duration::from_secs(10);
/// The daemon has taken in nodes, or a job's routes, by then.
const SETTLE: Duration = Duration::from_millis(200);

/// Containers by host.
type Running = Arc<Mutex<BTreeMap<String, Vec<v1::NodeContainer>>>>;

/// See the module.
pub(super) struct Fabric {
    client: Client,
    network: Network,
    topology: FeedSender<v1::TopologyItem>,
    running: Running,
    beats: JoinHandle<()>,
    cluster_timestamp: u64,
    jobs: u32,
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.beats.abort();
    }
}

impl Fabric {
    /// Feeds the smallest fat-tree with so many hosts, each of them a node.
    pub(super) async fn feed(client: &Client, hosts: u32) -> Result<Self, Failure> {
        let hosts = hosts as usize;
        let k = (2..).step_by(2).find(|k| k * k * k / 4 >= hosts).expect("cubes grow beyond every number");
        let spec = FatTreeSpec { k, hosts: Some(hosts), bits_per_s: BitsPerSec(10_000_000_000) };
        let built = build::fat_tree_named(&spec, &build::numbered("bench")).map_err(Failure::work)?;
        let mut topology: FeedSender<v1::TopologyItem> = client.feed(hello()).await.map_err(Failure::work)?;
        let full = v1::topology_item::Item::Full(graph(&built.network));
        topology.send(v1::TopologyItem { number: 0, item: Some(full) }).await.map_err(Failure::work)?;
        all_taken(&topology.await_acknowledged().await)?;
        let mut feed: FeedSender<v1::HeartbeatItem> = client.feed(hello()).await.map_err(Failure::work)?;
        let running = Running::default();
        for (rack, members) in &built.racks {
            for host in members {
                let register = v1::RegisterNode {
                    host: host.to_string(),
                    port: 45_454,
                    rack: rack.to_string(),
                    total: Some(resource(NODE_MB, 256)),
                    ..v1::RegisterNode::default()
                };
                let item = v1::heartbeat_item::Item::Register(register);
                feed.send(v1::HeartbeatItem { number: 0, item: Some(item) }).await.map_err(Failure::work)?;
                lock(&running).insert(host.to_string(), Vec::new());
            }
        }
        all_taken(&feed.await_acknowledged().await)?;
        beat(&mut feed, &running, 1).await.map_err(Failure::work)?;
        all_taken(&feed.await_acknowledged().await)?;
        // Longer than any publish: whoever asks now finds the nodes.
        tokio::time::sleep(SETTLE).await;
        let beats = tokio::spawn(keep_beating(feed, Arc::clone(&running)));
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let cluster_timestamp = u64::try_from(started.as_millis()).unwrap_or(1);
        Ok(Self {
            client: client.clone(),
            network: built.network,
            topology,
            running,
            beats,
            cluster_timestamp,
            jobs: 0,
        })
    }

    /// Asks for jobs until so many pairs of hosts have routes.
    pub(super) async fn talk(&mut self, told: &mut InstalledRoutes, flows: u32, policy: &str) -> Result<(), Failure> {
        let (flows, pairs) = (flows as usize, (FAN * FAN) as usize);
        // Jobs share pairs, and tasks of a pair may share a host: many more than these would be a fault.
        let most = self.jobs + u32::try_from(flows.div_ceil(pairs) * 4 + 8).unwrap_or(u32::MAX);
        loop {
            let missing = flows.saturating_sub(told.routes());
            for _ in 0..missing.div_ceil(pairs) {
                self.job(policy).await?;
            }
            told.quiet(SETTLE).await?;
            if told.routes() >= flows {
                return Ok(());
            }
            if self.jobs > most {
                let found = told.routes();
                return Err(Failure::work(format!("{} jobs talk over {found} routes only, not {flows}", self.jobs)));
            }
        }
    }

    /// A job of two groups, every task of one sending to every task of the other; its containers run at once.
    async fn job(&mut self, policy: &str) -> Result<(), Failure> {
        self.jobs += 1;
        let application = ApplicationId { cluster_timestamp: self.cluster_timestamp, sequence: self.jobs };
        let attempt = AttemptId { application, attempt: 1 };
        let group = |name: &str| v1::TaskGroup {
            name: name.to_owned(),
            role: "worker".to_owned(),
            count: FAN,
            resource: Some(resource(CONTAINER_MB, 1)),
            constraints: Some(v1::Constraints { spread: true, max_per_node: 1, ..v1::Constraints::default() }),
            ..v1::TaskGroup::default()
        };
        let edge = v1::GroupEdge {
            from: "send".to_owned(),
            to: "receive".to_owned(),
            pattern: v1::EdgePattern::AllToAll.into(),
            bytes: BYTES * u64::from(FAN * FAN),
        };
        let mut groups = vec![group("send"), group("receive")];
        for (priority, group) in (1..).zip(&mut groups) {
            group.priority = priority;
        }
        let request = v1::RequestHintsRequest {
            request_id: attempt.to_string(),
            application_id: application.to_string(),
            attempt: 1,
            queue: "default".to_owned(),
            user: "bench".to_owned(),
            groups,
            edges: vec![edge],
            policy: policy.to_owned(),
            seed: Some(u64::from(self.jobs)),
            gang: v1::Gang::All.into(),
            ..v1::RequestHintsRequest::default()
        };
        let answer = self.client.request_hints(request, ANSWER).await.map_err(Failure::work)?;
        let mut number = 1;
        let mut running = lock(&self.running);
        for hint in answer.hints.unwrap_or_default().hints {
            let priority = if hint.group == "send" { 1 } else { 2 };
            for _ in 0..hint.count {
                number += 1; // 1 is the ApplicationMaster's
                let container = v1::NodeContainer {
                    container_id: format!("container_{}_{:04}_01_{number:06}", self.cluster_timestamp, self.jobs),
                    resource: Some(resource(CONTAINER_MB, 1)),
                    priority,
                    ..v1::NodeContainer::default()
                };
                running.entry(hint.host.clone()).or_default().push(container);
            }
        }
        Ok(())
    }

    /// Tells that a link went down or came up.
    pub(super) async fn link(&mut self, id: &str, up: bool) -> Result<(), Failure> {
        let change = v1::LinkChange { id: id.to_owned(), up: Some(up), bits_per_s: None };
        let item = v1::topology_item::Item::Link(change);
        let sent = self.topology.send(v1::TopologyItem { number: 0, item: Some(item) }).await;
        sent.map(drop).map_err(Failure::work)
    }

    /// Those of the links that join two switches.
    pub(super) fn between_switches(&self, links: &[String]) -> Vec<String> {
        let joins = |id: &&String| {
            let link = self.network.link(id).map(|link| self.network.link_at(link));
            link.is_some_and(|link| [link.a, link.b].iter().all(|&end| !self.network.vertex_at(end).is_host()))
        };
        links.iter().filter(joins).cloned().collect()
    }

    pub(super) fn hosts(&self) -> usize {
        lock(&self.running).len()
    }

    pub(super) fn switches(&self) -> usize {
        graph(&self.network).switches.len()
    }

    pub(super) fn links(&self) -> usize {
        self.network.links().count()
    }
}

fn hello() -> v1::FeedHello {
    v1::FeedHello { source: "bench".to_owned(), used_means: v1::UsedMeans::Running.into(), names_containers: true }
}

fn lock(running: &Running) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<v1::NodeContainer>>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn all_taken(ack: &Result<v1::FeedAck, ClientError>) -> Result<(), Failure> {
    match ack {
        Ok(ack) => match ack.refused.first() {
            None => Ok(()),
            Some(first) => Err(Failure::work(format!("{} items are refused: {}", ack.refused.len(), first.message))),
        },
        Err(error) => Err(Failure::work(error)),
    }
}

/// One heartbeat of every node.
async fn beat(
    feed: &mut FeedSender<v1::HeartbeatItem>,
    running: &Running,
    response_id: u32,
) -> Result<(), ClientError> {
    let nodes = lock(running).clone();
    for (host, containers) in nodes {
        let count = u32::try_from(containers.len()).unwrap_or(u32::MAX);
        let used = Some(resource(CONTAINER_MB * u64::from(count), count));
        let heartbeat = v1::NodeHeartbeat { host, response_id, used, containers, state: String::new() };
        let item = v1::heartbeat_item::Item::Heartbeat(heartbeat);
        feed.send(v1::HeartbeatItem { number: 0, item: Some(item) }).await?;
    }
    Ok(())
}

async fn keep_beating(mut feed: FeedSender<v1::HeartbeatItem>, running: Running) {
    let mut next = Instant::now();
    for response_id in 2.. {
        next += BEAT;
        tokio::time::sleep_until(next).await;
        // A feed that breaks is heard of by the watch: the same daemon serves both.
        if beat(&mut feed, &running, response_id).await.is_err() || feed.await_acknowledged().await.is_err() {
            return;
        }
    }
}
