//! What feeds a daemon: NodeManagers, the NameNode and its DataNodes, the SDN controller. Each tells everything again
//! to a daemon that was started anew.

use super::cluster::Cluster;
use super::hdfs::Namespace;
use hintd_client::wire::v1;
use hintd_client::{Client, ClientError, FeedItem, Full, SteadyFeed};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The name under which the feeds introduce themselves.
const SOURCE: &str = "emulator";

/// How long a daemon that went away is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Blocks named in one report item: keeps items far below gRPC's 4 MiB limit.
const BLOCKS_PER_DATASET_ITEM: usize = 100_000;

/// A daemon that could not be fed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The stream was refused, or ended and could not be opened again.
    #[error("the {feed} feed")]
    Closed {
        /// Which.
        feed: &'static str,
        /// Why.
        source: ClientError,
    },
    /// Items were sent and nothing came back in time.
    #[error("the daemon acknowledged {through} of {sent} items of the {feed} feed within {waited_s} s")]
    Silent {
        /// Which.
        feed: &'static str,
        /// Items acknowledged.
        through: u64,
        /// Items sent.
        sent: u64,
        /// Patience, seconds.
        waited_s: u64,
    },
}

/// What there is to be told; its parts change while the cluster is at work.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The machines and their network.
    pub cluster: Arc<Cluster>,
    /// The NameNode.
    pub namespace: Arc<Mutex<Namespace>>,
    /// Machines that stopped, and when.
    pub dead: Arc<Mutex<BTreeMap<usize, Instant>>>,
    /// Links that are down, since when.
    pub down: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl Facts {
    /// A cluster in which all is well.
    #[must_use]
    pub fn new(cluster: Cluster, namespace: Namespace) -> Self {
        let (cluster, namespace) = (Arc::new(cluster), Arc::new(Mutex::new(namespace)));
        Self { cluster, namespace, dead: Arc::default(), down: Arc::default() }
    }

    fn living(&self) -> Vec<usize> {
        let dead = self.dead.lock().expect("no holder of this lock panics");
        (0..self.cluster.machines.len()).filter(|node| !dead.contains_key(node)).collect()
    }

    /// The network, with the links that are down.
    fn network(&self) -> Vec<v1::TopologyItem> {
        let mut graph = self.cluster.graph();
        let down = self.down.lock().expect("no holder of this lock panics");
        for link in &mut graph.links {
            link.up = Some(!down.contains_key(&link.id));
        }
        vec![v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Full(graph)) }]
    }

    fn nodes(&self) -> Vec<v1::HeartbeatItem> {
        let register = |node| heartbeat_item(v1::heartbeat_item::Item::Register(self.cluster.registration(node)));
        self.living().into_iter().map(register).collect()
    }

    fn files(&self) -> Vec<v1::DatasetItem> {
        let datasets = self.namespace.lock().expect("no holder of this lock panics").datasets();
        let put = |dataset: v1::Dataset| {
            debug_assert!(dataset.blocks.len() <= BLOCKS_PER_DATASET_ITEM, "traces are scaled to the cluster");
            v1::DatasetItem { number: 0, item: Some(v1::dataset_item::Item::Put(dataset)) }
        };
        datasets.into_iter().map(put).collect()
    }

    fn replicas(&self) -> Vec<v1::BlockReportItem> {
        let namespace = self.namespace.lock().expect("no holder of this lock panics");
        self.living().into_iter().map(|node| full_report(&self.cluster, node, namespace.report(node))).collect()
    }
}

/// All feeds of one cluster to one daemon.
#[derive(Debug)]
pub struct Sources {
    /// NodeManagers.
    pub heartbeats: SteadyFeed<v1::HeartbeatItem>,
    /// DataNodes.
    pub blocks: SteadyFeed<v1::BlockReportItem>,
    /// The NameNode.
    pub datasets: SteadyFeed<v1::DatasetItem>,
    /// The SDN controller's view of the network.
    pub topology: SteadyFeed<v1::TopologyItem>,
    /// Its counters.
    pub link_stats: SteadyFeed<v1::LinkStatsItem>,
}

impl Sources {
    /// Opens every feed and tells the daemon everything there is: network, nodes, files, replicas; returns once it
    /// has looked at all of it. NodeManagers tell what runs, container by container.
    ///
    /// # Errors
    /// [`FeedError`] if the daemon refuses a feed, or one stays silent for `patience`.
    pub async fn open(client: &Client, facts: &Facts, patience: Duration) -> Result<Self, FeedError> {
        let plain = || v1::FeedHello { source: SOURCE.to_owned(), ..v1::FeedHello::default() };
        let running = v1::FeedHello { used_means: v1::UsedMeans::Running.into(), names_containers: true, ..plain() };
        let own = || facts.clone();
        let (network, nodes, files, replicas) = (own(), own(), own(), own());
        let mut topology = steady(client, "topology", plain(), Box::new(move || network.network())).await?;
        let mut heartbeats = steady(client, "heartbeats", running, Box::new(move || nodes.nodes())).await?;
        await_acknowledged("topology", &mut topology, patience).await?;
        await_acknowledged("heartbeats", &mut heartbeats, patience).await?;
        let mut datasets = steady(client, "datasets", plain(), Box::new(move || files.files())).await?;
        // Replicas are kept for blocks of known files only, so the files come first.
        await_acknowledged("datasets", &mut datasets, patience).await?;
        let mut blocks = steady(client, "block_reports", plain(), Box::new(move || replicas.replicas())).await?;
        await_acknowledged("block_reports", &mut blocks, patience).await?;
        let link_stats = steady(client, "link_stats", plain(), Box::new(Vec::new)).await?;
        Ok(Self { heartbeats, blocks, datasets, topology, link_stats })
    }

    /// Feeds that broke stand again afterwards; to be called now and then.
    ///
    /// # Errors
    /// [`FeedError::Closed`] where the daemon stays away.
    pub async fn keep_up(&mut self) -> Result<(), FeedError> {
        self.topology.keep_up().await.map_err(closed("topology"))?;
        self.heartbeats.keep_up().await.map_err(closed("heartbeats"))?;
        self.datasets.keep_up().await.map_err(closed("datasets"))?;
        self.blocks.keep_up().await.map_err(closed("block_reports"))?;
        self.link_stats.keep_up().await.map_err(closed("link_stats"))
    }

    /// A NodeManager registers.
    ///
    /// # Errors
    /// [`FeedError::Closed`].
    pub async fn register(&mut self, cluster: &Cluster, node: usize) -> Result<(), FeedError> {
        let item = heartbeat_item(v1::heartbeat_item::Item::Register(cluster.registration(node)));
        self.heartbeats.send(item).await.map_err(closed("heartbeats"))
    }

    /// A NodeManager reports.
    ///
    /// # Errors
    /// [`FeedError::Closed`].
    pub async fn heartbeat(&mut self, heartbeat: v1::NodeHeartbeat) -> Result<(), FeedError> {
        let item = heartbeat_item(v1::heartbeat_item::Item::Heartbeat(heartbeat));
        self.heartbeats.send(item).await.map_err(closed("heartbeats"))
    }

    /// A DataNode names all its blocks.
    ///
    /// # Errors
    /// [`FeedError::Closed`].
    pub async fn full_report(&mut self, cluster: &Cluster, node: usize, block_ids: Vec<u64>) -> Result<(), FeedError> {
        self.blocks.send(full_report(cluster, node, block_ids)).await.map_err(closed("block_reports"))
    }

    /// A DataNode received blocks.
    ///
    /// # Errors
    /// [`FeedError::Closed`].
    pub async fn received(&mut self, cluster: &Cluster, node: usize, received: Vec<u64>) -> Result<(), FeedError> {
        let datanode = cluster.machines[node].datanode.clone();
        let incremental = v1::IncrementalBlockReport { datanode, received, deleted: Vec::new() };
        let item = Some(v1::block_report_item::Item::Incremental(incremental));
        self.blocks.send(v1::BlockReportItem { number: 0, item }).await.map_err(closed("block_reports"))
    }

    /// The SDN controller tells that a link went down or came up.
    ///
    /// # Errors
    /// [`FeedError::Closed`].
    pub async fn link(&mut self, id: &str, up: bool) -> Result<(), FeedError> {
        let change = v1::LinkChange { id: id.to_owned(), up: Some(up), bits_per_s: None };
        let item = Some(v1::topology_item::Item::Link(change));
        self.topology.send(v1::TopologyItem { number: 0, item }).await.map_err(closed("topology"))
    }

    /// The SDN controller tells what links carry.
    ///
    /// # Errors
    /// [`FeedError::Closed`].
    pub async fn link_loads(&mut self, loads: Vec<v1::LinkLoad>) -> Result<(), FeedError> {
        for load in loads {
            let item = Some(v1::link_stats_item::Item::Load(load));
            self.link_stats.send(v1::LinkStatsItem { number: 0, item }).await.map_err(closed("link_stats"))?;
        }
        Ok(())
    }

    /// Items refused by any feed, with the first few reasons.
    #[must_use]
    pub fn refused(&self) -> (u64, Vec<String>) {
        let count = self.heartbeats.refused()
            + self.blocks.refused()
            + self.datasets.refused()
            + self.topology.refused()
            + self.link_stats.refused();
        let all = [
            self.heartbeats.complaints(),
            self.blocks.complaints(),
            self.datasets.complaints(),
            self.topology.complaints(),
            self.link_stats.complaints(),
        ];
        (count, all.concat())
    }
}

async fn steady<I: FeedItem>(
    client: &Client,
    feed: &'static str,
    hello: v1::FeedHello,
    full: Full<I>,
) -> Result<SteadyFeed<I>, FeedError> {
    client.steady_feed(hello, full, PATIENCE).await.map_err(closed(feed))
}

/// Waits until every item sent was looked at.
async fn await_acknowledged<I: FeedItem>(
    feed: &'static str,
    steady: &mut SteadyFeed<I>,
    patience: Duration,
) -> Result<(), FeedError> {
    match tokio::time::timeout(patience, steady.await_acknowledged()).await {
        Ok(settled) => settled.map(drop).map_err(closed(feed)),
        Err(_) => {
            let (through, sent) = (steady.stream().through(), steady.stream().sent());
            Err(FeedError::Silent { feed, through, sent, waited_s: patience.as_secs() })
        }
    }
}

fn closed(feed: &'static str) -> impl Fn(ClientError) -> FeedError {
    move |source| FeedError::Closed { feed, source }
}

fn heartbeat_item(item: v1::heartbeat_item::Item) -> v1::HeartbeatItem {
    v1::HeartbeatItem { number: 0, item: Some(item) }
}

fn full_report(cluster: &Cluster, node: usize, block_ids: Vec<u64>) -> v1::BlockReportItem {
    let datanode = cluster.machines[node].datanode.clone();
    let full = v1::FullBlockReport { datanode, block_ids };
    v1::BlockReportItem { number: 0, item: Some(v1::block_report_item::Item::Full(full)) }
}
