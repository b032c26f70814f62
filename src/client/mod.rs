//! The Rust client: typed calls, retries that are safe, feeds and follow streams.
//!
//! Invariant: only calls that are idempotent are repeated, and only on UNAVAILABLE; every wait has an
//! end that the caller chose.

mod error;
mod feed;
mod follow;
mod retry;

pub use error::ClientError;
pub use feed::{FeedItem, FeedSender};
pub use follow::Following;

use crate::wire::v1;
use crate::wire::v1::feed_client::FeedClient;
use crate::wire::v1::placement_client::PlacementClient;
use crate::wire::v1::routes_client::RoutesClient;
use hyper_util::rt::TokioIo;
use std::path::Path;
use std::time::{Duration, Instant};
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

/// A daemon, as applications, feeds and SDN controllers see it. Clones share one connection.
#[derive(Debug, Clone)]
pub struct Client {
    placement: PlacementClient<Channel>,
    feed: FeedClient<Channel>,
    routes: RoutesClient<Channel>,
}

/// Operators' calls, over the daemon's Unix socket.
pub type AdminClient = v1::admin_client::AdminClient<Channel>;

/// A local daemon either listens or does not; a remote one answers within a second.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Answers of 100,000 hints stay below it.
const MESSAGE_BYTES: usize = 64 << 20;

impl Client {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Connect`].
    pub async fn connect(address: &str) -> Result<Self, ClientError> {
        let bare = address.strip_prefix("http://").unwrap_or(address);
        let endpoint = Endpoint::from_shared(format!("http://{bare}"))
            .map_err(|source| ClientError::Address { address: address.to_owned(), source })?;
        let endpoint = endpoint.connect_timeout(CONNECT_PATIENCE).tcp_nodelay(true);
        let channel = endpoint.connect().await;
        Ok(Self::over(channel.map_err(|source| ClientError::Connect { address: bare.to_owned(), source })?))
    }

    /// The client of a connection that stands.
    #[must_use]
    pub fn over(channel: Channel) -> Self {
        Self {
            placement: PlacementClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES),
            feed: FeedClient::new(channel.clone()),
            routes: RoutesClient::new(channel).max_decoding_message_size(MESSAGE_BYTES),
        }
    }

    /// Asks for hints, and again while the daemon is overloaded or restarts: the request id makes that
    /// safe. `patience` bounds all tries together; the request's own deadline is set from what is left.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; [`ClientError::OutOfTime`] with the last refusal.
    pub async fn request_hints(
        &self,
        request: v1::RequestHintsRequest,
        patience: Duration,
    ) -> Result<v1::RequestHintsResponse, ClientError> {
        let until = Instant::now() + patience;
        let call = || {
            let mut placement = self.placement.clone();
            let mut request = request.clone();
            async move {
                let left = until.saturating_duration_since(Instant::now());
                request.deadline_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
                let answer = tokio::time::timeout(left, placement.request_hints(request)).await;
                let answer = answer.unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("no answer in time")));
                answer.map(tonic::Response::into_inner)
            }
        };
        retry::until(until, call).await
    }

    /// Gives leases back; none named: all of the attempt.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseResponse, ClientError> {
        Ok(self.placement.clone().release(request).await?.into_inner())
    }

    /// A decision and what became of its leases.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub async fn explain(&self, decision_id: &str) -> Result<v1::ExplainResponse, ClientError> {
        let request = v1::ExplainRequest { decision_id: decision_id.to_owned() };
        Ok(self.placement.clone().explain(request).await?.into_inner())
    }

    /// Follows an attempt: events up, advice down. To resume, give the last number seen.
    ///
    /// # Errors
    /// [`ClientError::Refused`], as for a token that is not the attempt's.
    pub async fn follow(&self, start: v1::FollowStart) -> Result<Following, ClientError> {
        Following::start(self.placement.clone(), start).await
    }

    /// Opens a feed; its hello is sent first.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub async fn feed<I: FeedItem>(&self, hello: v1::FeedHello) -> Result<FeedSender<I>, ClientError> {
        FeedSender::open(self.feed.clone(), hello).await
    }

    /// Watches routes; the first update is the snapshot.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub async fn watch(&self, request: v1::WatchRequest) -> Result<Streaming<v1::RouteUpdate>, ClientError> {
        Ok(self.routes.clone().watch(request).await?.into_inner())
    }

    /// Acknowledges every update up to `number`, but for the routes `refused`; returns how many are outstanding.
    ///
    /// # Errors
    /// [`ClientError::Refused`].
    pub async fn acknowledge(
        &self,
        watcher: &str,
        number: u64,
        refused: Vec<v1::RouteRefusal>,
    ) -> Result<u64, ClientError> {
        let request = v1::AcknowledgeRequest { watcher: watcher.to_owned(), number, refused };
        Ok(self.routes.clone().acknowledge(request).await?.into_inner().outstanding)
    }
}

/// Connects to a daemon's admin socket.
///
/// # Errors
/// [`ClientError::Connect`].
pub async fn admin(socket: &Path) -> Result<AdminClient, ClientError> {
    let path = socket.to_path_buf();
    let connect = tower::service_fn(move |_| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
    });
    // The URI is for the protocol only: the connector knows where to go.
    let endpoint = Endpoint::from_static("http://admin.socket").connect_timeout(CONNECT_PATIENCE);
    let channel = endpoint.connect_with_connector(connect).await;
    let channel = channel.map_err(|source| ClientError::Connect { address: socket.display().to_string(), source })?;
    Ok(AdminClient::new(channel).max_decoding_message_size(MESSAGE_BYTES))
}
