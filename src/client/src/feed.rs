//! Feeding: numbered items out, acknowledgements in.

use super::ClientError;
use super::acknowledged::AcknowledgedItems;
use super::secret::Secret;
use crate::wire::v1;
use crate::wire::v1::feed_client::FeedClient;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
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
    /// The task event that it is, if it is one.
    fn event(&mut self) -> Option<&mut v1::TaskEvent> {
        None
    }
    /// Opens its feed.
    fn open(
        client: FeedClient<Channel>,
        items: ReceiverStream<Self>,
    ) -> impl Future<Output = Result<Response<Streaming<v1::FeedAck>>, Status>> + Send;
}

macro_rules! feed_items {
    ($($item:ident, $module:ident, $call:ident $(, $event:path)?;)*) => {$(
        impl FeedItem for v1::$item {
            fn hello(hello: v1::FeedHello) -> Self {
                Self { number: 0, item: Some(v1::$module::Item::Hello(hello)) }
            }

            fn set_number(&mut self, number: u64) {
                self.number = number;
            }

            $(fn event(&mut self) -> Option<&mut v1::TaskEvent> {
                $event(self)
            })?

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
    EventItem, event_item, events, task_event;
}

const fn task_event(item: &mut v1::EventItem) -> Option<&mut v1::TaskEvent> {
    match &mut item.item {
        Some(v1::event_item::Item::Event(event)) => Some(event),
        _ => None,
    }
}

/// One open feed. Dropping it ends the stream. Acknowledgements are gathered whether or not anybody looks, so that a
/// caller who never does is not held up by them.
#[derive(Debug)]
pub struct FeedSender<I> {
    items: mpsc::Sender<I>,
    heard: Arc<AcknowledgedItems>,
    last: u64,
    secret: Arc<Secret>,
}

impl<I: FeedItem> FeedSender<I> {
    pub(super) async fn open(
        client: FeedClient<Channel>,
        secret: Arc<Secret>,
        hello: v1::FeedHello,
    ) -> Result<Self, Status> {
        let (items, stream) = mpsc::channel(UNDER_WAY);
        let mut first = I::hello(hello);
        first.set_number(1);
        items.try_send(first).expect("the queue is empty and its reader is here");
        let acks = I::open(client, ReceiverStream::new(stream)).await?.into_inner();
        let heard = Arc::new(AcknowledgedItems::new());
        tokio::spawn(listen(acks, Arc::clone(&heard)));
        Ok(Self { items, heard, last: 1, secret })
    }

    /// Sends an item under the next number, which is returned. Waits while too many are under way.
    ///
    /// # Errors
    /// [`ClientError::Ended`], or what ended the stream: open the feed anew and send everything in full, or let
    /// [`SteadyFeed`](super::SteadyFeed) do it.
    pub async fn send(&mut self, item: I) -> Result<u64, ClientError> {
        self.send_numbered(self.last + 1, item).await
    }

    /// Sends an item under a number of the caller's choice.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_numbered(&mut self, number: u64, item: I) -> Result<u64, ClientError> {
        match self.offer(number, item).await {
            Ok(number) => Ok(number),
            // The way up and the way down end together: the latter says why.
            Err(_) => Err(self.heard.wait(u64::MAX, true).await.err().unwrap_or(ClientError::Ended)),
        }
    }

    /// Sends an item, or gives it back.
    pub(super) async fn offer(&mut self, number: u64, mut item: I) -> Result<u64, I> {
        if self.heard.has_ended() {
            return Err(item);
        }
        item.set_number(number);
        if let Some(event) = item.event().filter(|event| event.nonce.is_empty() && event.token.is_empty()) {
            event.nonce = self.secret.nonce(&event.application_id);
        }
        self.items.send(item).await.map_err(|unsent| unsent.0)?;
        self.last = self.last.max(number);
        Ok(number)
    }

    /// The life of the daemon that reads this stream, once it has said so.
    pub(super) async fn greeted(&self) -> Result<String, ClientError> {
        self.heard.greeted().await
    }

    /// Waits for something new: all acknowledgements since the last look, as one.
    ///
    /// # Errors
    /// [`ClientError::Ended`], or what ended the stream.
    pub async fn ack(&mut self) -> Result<v1::FeedAck, ClientError> {
        self.heard.wait(0, true).await
    }

    /// Waits until everything sent was looked at; returns all acknowledgements since the last look, as one.
    ///
    /// # Errors
    /// [`ClientError::Ended`], or what ended the stream.
    pub async fn await_acknowledged(&mut self) -> Result<v1::FeedAck, ClientError> {
        self.heard.wait(self.last, false).await
    }

    /// Number of the last item sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.last
    }

    /// Every item up to this number was looked at.
    #[must_use]
    pub fn through(&self) -> u64 {
        self.heard.through()
    }

    /// Items refused since the stream began.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.heard.refused()
    }

    /// The first few refusals in words, and why the stream ended if it did.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        self.heard.complaints()
    }

    /// Nodes that are to register again, once each.
    #[must_use]
    pub fn take_resync(&self) -> Vec<String> {
        self.heard.take_resync()
    }

    /// DataNodes whose full block report is wanted, once each.
    #[must_use]
    pub fn take_reports_wanted(&self) -> Vec<String> {
        self.heard.take_reports_wanted()
    }

    /// The life of the daemon that acknowledged last; empty before the first acknowledgement.
    #[must_use]
    pub fn instance(&self) -> String {
        self.heard.instance()
    }

    /// Whether the stream is over: nothing can be sent any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.heard.has_ended()
    }
}

async fn listen(mut acks: Streaming<v1::FeedAck>, heard: Arc<AcknowledgedItems>) {
    loop {
        match acks.next().await {
            Some(Ok(ack)) => heard.hear(ack),
            Some(Err(status)) => return heard.end(Some(status)),
            None => return heard.end(None),
        }
    }
}
