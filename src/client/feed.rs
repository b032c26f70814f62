//! Feeding: numbered items out, acknowledgements in.

use super::ClientError;
use crate::wire::v1;
use crate::wire::v1::feed_client::FeedClient;
use std::future::Future;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

/// Items that may be under way before a sender waits.
const UNDER_WAY: usize = 1_024;

/// An item of one of the feeds.
pub trait FeedItem: Sized + Send + 'static {
    /// The item that opens a stream.
    fn hello(hello: v1::FeedHello) -> Self;
    /// Gives it its number.
    fn set_number(&mut self, number: u64);
    /// Opens its feed.
    fn open(
        client: FeedClient<Channel>,
        items: ReceiverStream<Self>,
    ) -> impl Future<Output = Result<Response<Streaming<v1::FeedAck>>, Status>> + Send;
}

macro_rules! feed_items {
    ($($item:ident, $module:ident, $call:ident;)*) => {$(
        impl FeedItem for v1::$item {
            fn hello(hello: v1::FeedHello) -> Self {
                Self { number: 0, item: Some(v1::$module::Item::Hello(hello)) }
            }

            fn set_number(&mut self, number: u64) {
                self.number = number;
            }

            async fn open(
                mut client: FeedClient<Channel>,
                items: ReceiverStream<Self>,
            ) -> Result<Response<Streaming<v1::FeedAck>>, Status> {
                client.$call(items).await
            }
        }
    )*};
}

feed_items! {
    HeartbeatItem, heartbeat_item, heartbeats;
    BlockReportItem, block_report_item, block_reports;
    DatasetItem, dataset_item, datasets;
    TopologyItem, topology_item, topology;
    LinkStatsItem, link_stats_item, link_stats;
    LatencyItem, latency_item, latency;
    EventItem, event_item, events;
}

/// One open feed. Dropping it ends the stream.
#[derive(Debug)]
pub struct FeedSender<I> {
    items: mpsc::Sender<I>,
    acks: Streaming<v1::FeedAck>,
    last: u64,
    through: u64,
}

impl<I: FeedItem> FeedSender<I> {
    pub(super) async fn open(client: FeedClient<Channel>, hello: v1::FeedHello) -> Result<Self, ClientError> {
        let (items, stream) = mpsc::channel(UNDER_WAY);
        let mut first = I::hello(hello);
        first.set_number(1);
        items.try_send(first).map_err(|_| ClientError::Ended)?;
        let acks = I::open(client, ReceiverStream::new(stream)).await?.into_inner();
        Ok(Self { items, acks, last: 1, through: 0 })
    }

    /// Sends an item under the next number, which is returned. Waits while too many are under way.
    ///
    /// # Errors
    /// [`ClientError::Ended`]: open the feed anew and send everything in full.
    pub async fn send(&mut self, item: I) -> Result<u64, ClientError> {
        self.send_numbered(self.last + 1, item).await
    }

    /// Sends an item under a number of the caller's choice.
    ///
    /// # Errors
    /// [`ClientError::Ended`].
    pub async fn send_numbered(&mut self, number: u64, mut item: I) -> Result<u64, ClientError> {
        item.set_number(number);
        self.items.send(item).await.map_err(|_| ClientError::Ended)?;
        self.last = self.last.max(number);
        Ok(number)
    }

    /// The next acknowledgement.
    ///
    /// # Errors
    /// [`ClientError::Ended`], or what ended the stream.
    pub async fn ack(&mut self) -> Result<v1::FeedAck, ClientError> {
        self.acks.message().await?.ok_or(ClientError::Ended)
    }

    /// Waits until everything sent was looked at; returns all acknowledgements since the last call, as one.
    ///
    /// # Errors
    /// [`ClientError::Ended`], or what ended the stream.
    pub async fn settle(&mut self) -> Result<v1::FeedAck, ClientError> {
        let mut all = v1::FeedAck::default();
        while self.through < self.last {
            let ack = self.ack().await?;
            all.instance_id = ack.instance_id;
            self.through = ack.through;
            all.through = ack.through;
            all.refused.extend(ack.refused);
            all.resync.extend(ack.resync);
            all.full_report_wanted.extend(ack.full_report_wanted);
        }
        Ok(all)
    }
}
