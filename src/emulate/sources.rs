//! What feeds a daemon: NodeManagers, the NameNode and its DataNodes, the SDN controller.

use super::cluster::Cluster;
use super::feed::{FeedClosed, FeedSender};
use super::hdfs::Namespace;
use crate::wire::v1;
use crate::wire::v1::feed_client::FeedClient;
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::Channel;

/// The name under which the feeds introduce themselves.
const SOURCE: &str = "emulator";

/// How often to look whether everything was acknowledged.
const POLL: Duration = Duration::from_millis(2);

/// Blocks named in one report item: keeps items far below gRPC's 4 MiB limit.
const BLOCKS_PER_DATASET_ITEM: usize = 100_000;

/// A daemon that could not be fed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The stream was refused.
    #[error("the daemon refuses the {feed} feed: {}: {}", status.code(), status.message())]
    Refused {
        /// Which.
        feed: &'static str,
        /// Why.
        status: Box<Status>,
    },
    /// The stream ended.
    #[error(transparent)]
    Closed(#[from] FeedClosed),
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

/// All feeds of one cluster to one daemon.
#[derive(Debug)]
pub struct Sources {
    /// NodeManagers.
    pub heartbeats: FeedSender<v1::HeartbeatItem>,
    /// DataNodes.
    pub blocks: FeedSender<v1::BlockReportItem>,
    /// The NameNode.
    pub datasets: FeedSender<v1::DatasetItem>,
    /// The SDN controller's view of the network.
    pub topology: FeedSender<v1::TopologyItem>,
    /// Its counters.
    pub link_stats: FeedSender<v1::LinkStatsItem>,
}

/// Opens one stream and introduces the source; all feeds' clients and items have the same shape.
macro_rules! open {
    ($channel:expr, $method:ident, $message:ident, $item:ident, $hello:expr) => {{
        let (mut sender, receiver) = FeedSender::new();
        let hello = |number| v1::$message { number, item: Some(v1::$item::Item::Hello($hello)) };
        sender.send(stringify!($method), hello).await?;
        let answer = FeedClient::new($channel.clone()).$method(ReceiverStream::new(receiver)).await;
        let answer =
            answer.map_err(|status| FeedError::Refused { feed: stringify!($method), status: Box::new(status) })?;
        sender.listen(answer.into_inner());
        sender
    }};
}

impl Sources {
    /// Opens every feed; NodeManagers tell what runs, container by container.
    ///
    /// # Errors
    /// [`FeedError`] if the daemon refuses one.
    pub async fn open(channel: &Channel) -> Result<Self, FeedError> {
        let plain = || v1::FeedHello { source: SOURCE.to_owned(), ..v1::FeedHello::default() };
        let nodes = v1::FeedHello {
            source: SOURCE.to_owned(),
            used_means: v1::UsedMeans::Running.into(),
            names_containers: true,
        };
        Ok(Self {
            heartbeats: open!(channel, heartbeats, HeartbeatItem, heartbeat_item, nodes),
            blocks: open!(channel, block_reports, BlockReportItem, block_report_item, plain()),
            datasets: open!(channel, datasets, DatasetItem, dataset_item, plain()),
            topology: open!(channel, topology, TopologyItem, topology_item, plain()),
            link_stats: open!(channel, link_stats, LinkStatsItem, link_stats_item, plain()),
        })
    }

    /// Tells the daemon everything there is: network, nodes, files, replicas; returns once it has looked at all of it.
    ///
    /// # Errors
    /// [`FeedError`] if a feed ends or stays silent for `patience`.
    pub async fn bring_up(
        &mut self,
        cluster: &Cluster,
        namespace: &Namespace,
        patience: Duration,
    ) -> Result<(), FeedError> {
        let graph = cluster.graph();
        self.topology(v1::topology_item::Item::Full(graph)).await?;
        for node in 0..cluster.machines.len() {
            self.register(cluster, node).await?;
        }
        self.settle(patience).await?;
        for dataset in namespace.datasets() {
            debug_assert!(dataset.blocks.len() <= BLOCKS_PER_DATASET_ITEM, "traces are scaled to the cluster");
            self.datasets
                .send("datasets", |number| v1::DatasetItem { number, item: Some(v1::dataset_item::Item::Put(dataset)) })
                .await?;
        }
        // Replicas are kept for blocks of known files only, so the files come first.
        self.settle(patience).await?;
        for node in 0..cluster.machines.len() {
            self.full_report(cluster, node, namespace.report(node)).await?;
        }
        self.settle(patience).await
    }

    /// A NodeManager registers.
    ///
    /// # Errors
    /// [`FeedClosed`].
    pub async fn register(&mut self, cluster: &Cluster, node: usize) -> Result<(), FeedClosed> {
        let item = v1::heartbeat_item::Item::Register(cluster.registration(node));
        self.heartbeats.send("heartbeats", |number| v1::HeartbeatItem { number, item: Some(item) }).await.map(|_| ())
    }

    /// A NodeManager reports.
    ///
    /// # Errors
    /// [`FeedClosed`].
    pub async fn heartbeat(&mut self, heartbeat: v1::NodeHeartbeat) -> Result<(), FeedClosed> {
        let item = v1::heartbeat_item::Item::Heartbeat(heartbeat);
        self.heartbeats.send("heartbeats", |number| v1::HeartbeatItem { number, item: Some(item) }).await.map(|_| ())
    }

    /// A DataNode names all its blocks.
    ///
    /// # Errors
    /// [`FeedClosed`].
    pub async fn full_report(&mut self, cluster: &Cluster, node: usize, block_ids: Vec<u64>) -> Result<(), FeedClosed> {
        let datanode = cluster.machines[node].datanode.clone();
        let full = v1::FullBlockReport { datanode, block_ids };
        let item = v1::block_report_item::Item::Full(full);
        self.blocks.send("block_reports", |number| v1::BlockReportItem { number, item: Some(item) }).await.map(|_| ())
    }

    /// A DataNode received blocks.
    ///
    /// # Errors
    /// [`FeedClosed`].
    pub async fn received(&mut self, cluster: &Cluster, node: usize, received: Vec<u64>) -> Result<(), FeedClosed> {
        let datanode = cluster.machines[node].datanode.clone();
        let incremental = v1::IncrementalBlockReport { datanode, received, deleted: Vec::new() };
        let item = v1::block_report_item::Item::Incremental(incremental);
        self.blocks.send("block_reports", |number| v1::BlockReportItem { number, item: Some(item) }).await.map(|_| ())
    }

    /// The SDN controller tells a change of the network.
    ///
    /// # Errors
    /// [`FeedClosed`].
    pub async fn topology(&mut self, item: v1::topology_item::Item) -> Result<u64, FeedClosed> {
        self.topology.send("topology", |number| v1::TopologyItem { number, item: Some(item) }).await
    }

    /// The SDN controller tells that a link went down or came up.
    ///
    /// # Errors
    /// [`FeedClosed`].
    pub async fn link(&mut self, id: &str, up: bool) -> Result<u64, FeedClosed> {
        let change = v1::LinkChange { id: id.to_owned(), up: Some(up), bits_per_s: None };
        self.topology(v1::topology_item::Item::Link(change)).await
    }

    /// The SDN controller tells what a link carries.
    ///
    /// # Errors
    /// [`FeedClosed`].
    pub async fn link_load(&mut self, load: v1::LinkLoad) -> Result<(), FeedClosed> {
        let item = v1::link_stats_item::Item::Load(load);
        self.link_stats.send("link_stats", |number| v1::LinkStatsItem { number, item: Some(item) }).await.map(|_| ())
    }

    /// Waits until every item sent was looked at.
    ///
    /// # Errors
    /// [`FeedError::Silent`] after `patience`, [`FeedError::Closed`] if a stream ended.
    pub async fn settle(&self, patience: Duration) -> Result<(), FeedError> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let feeds = [
                ("heartbeats", self.heartbeats.sent(), self.heartbeats.acknowledged()),
                ("block_reports", self.blocks.sent(), self.blocks.acknowledged()),
                ("datasets", self.datasets.sent(), self.datasets.acknowledged()),
                ("topology", self.topology.sent(), self.topology.acknowledged()),
                ("link_stats", self.link_stats.sent(), self.link_stats.acknowledged()),
            ];
            let behind = feeds.into_iter().find(|(_, sent, acknowledged)| acknowledged.through() < *sent);
            let Some((feed, sent, acknowledged)) = behind else { return Ok(()) };
            if tokio::time::Instant::now() >= deadline {
                let through = acknowledged.through();
                return Err(FeedError::Silent { feed, through, sent, waited_s: patience.as_secs() });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Items refused by any feed, with the first few reasons.
    #[must_use]
    pub fn refused(&self) -> (u64, Vec<String>) {
        let all = [
            self.heartbeats.acknowledged(),
            self.blocks.acknowledged(),
            self.datasets.acknowledged(),
            self.topology.acknowledged(),
            self.link_stats.acknowledged(),
        ];
        let count = all.iter().map(|acknowledged| acknowledged.refused()).sum();
        (count, all.iter().flat_map(|acknowledged| acknowledged.complaints()).collect())
    }
}
