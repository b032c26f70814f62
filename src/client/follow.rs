//! Following an attempt.

use super::ClientError;
use crate::wire::v1;
use crate::wire::v1::placement_client::PlacementClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

/// Messages that may be under way before a sender waits.
const UNDER_WAY: usize = 64;

/// One follow stream. Dropping it ends the stream; the attempt's messages are kept for a time.
#[derive(Debug)]
pub struct Following {
    events: mpsc::Sender<v1::FollowRequest>,
    advice: Streaming<v1::FollowMessage>,
}

impl Following {
    pub(super) async fn start(
        mut client: PlacementClient<Channel>,
        start: v1::FollowStart,
    ) -> Result<Self, ClientError> {
        let (events, stream) = mpsc::channel(UNDER_WAY);
        let first = v1::FollowRequest { start: Some(start), events: Vec::new() };
        events.try_send(first).map_err(|_| ClientError::Ended)?;
        let advice = client.follow(ReceiverStream::new(stream)).await?.into_inner();
        Ok(Self { events, advice })
    }

    /// Tells what happened to tasks.
    ///
    /// # Errors
    /// [`ClientError::Ended`]: follow again.
    pub async fn tell(&mut self, events: Vec<v1::TaskEvent>) -> Result<(), ClientError> {
        self.events.send(v1::FollowRequest { start: None, events }).await.map_err(|_| ClientError::Ended)
    }

    /// The next advice.
    ///
    /// # Errors
    /// [`ClientError::Ended`]; [`ClientError::Refused`] with UNAVAILABLE when the daemon restarts: follow
    /// again after the last number seen.
    pub async fn next(&mut self) -> Result<v1::FollowMessage, ClientError> {
        self.advice.message().await?.ok_or(ClientError::Ended)
    }
}
