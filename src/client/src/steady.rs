//! A feed that outlives its connection: opened again when it breaks, and then sent in full where that is needed.

use super::acknowledged::COMPLAINTS_KEPT;
use super::feed::{FeedItem, FeedSender};
use super::retry::{FIRST_PAUSE, LONGEST_PAUSE, jittered};
use super::{Client, ClientError};
use crate::wire::v1;
use std::time::Duration;

/// Says everything that its source knows at this moment, as items of the feed.
pub type Full<I> = Box<dyn FnMut() -> Vec<I> + Send>;

/// See the module. Facts are told by [`send`](SteadyFeed::send) as they change; what a new life of the daemon does not
/// know, or what was on its way when the connection broke, is told again by the source's own full account.
pub struct SteadyFeed<I> {
    client: Client,
    hello: v1::FeedHello,
    full: Full<I>,
    patience: Duration,
    sender: FeedSender<I>,
    /// The life of the daemon that was told everything.
    instance: String,
    times_in_full: u64,
    /// Of streams that broke.
    refused: u64,
    complaints: Vec<String>,
}

impl<I> std::fmt::Debug for SteadyFeed<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteadyFeed").field("instance", &self.instance).finish_non_exhaustive()
    }
}

impl<I: FeedItem> SteadyFeed<I> {
    /// Opens the feed and sends everything. Whenever it breaks, the daemon is waited for, at most `patience` at a time.
    pub(super) async fn open(
        client: Client,
        hello: v1::FeedHello,
        full: Full<I>,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let sender = client.feed_within(hello.clone(), patience).await?;
        let instance = String::new();
        let complaints = Vec::new();
        let mut feed =
            Self { client, hello, full, patience, sender, instance, times_in_full: 0, refused: 0, complaints };
        feed.send_in_full().await?;
        Ok(feed)
    }

    /// Sends an item; first makes the stream stand again, if it does not.
    ///
    /// # Errors
    /// What stands in the way of a stream, after so much patience; calling again tries again.
    pub async fn send(&mut self, item: I) -> Result<(), ClientError> {
        let mut item = item;
        loop {
            self.keep_up().await?;
            match self.sender.offer(self.sender.sent() + 1, item).await {
                Ok(_) => return Ok(()),
                Err(unsent) => item = unsent,
            }
        }
    }

    /// Makes the stream stand again if it broke: sources that have nothing to send call it now and then.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn keep_up(&mut self) -> Result<(), ClientError> {
        let mut pause = FIRST_PAUSE;
        while self.sender.has_ended() {
            let lost = self.sender.through() < self.sender.sent();
            let sender: FeedSender<I> = self.client.feed_within(self.hello.clone(), self.patience).await?;
            let greeted = tokio::time::timeout(self.patience, sender.greeted()).await;
            self.refused += self.sender.refused();
            self.complaints = self.complaints();
            self.sender = sender;
            let same = matches!(&greeted, Ok(Ok(life)) if *life == self.instance);
            if (lost || !same) && !self.sender.has_ended() {
                self.send_in_full().await?;
            }
            if self.sender.has_ended() {
                // What was lost on the way is owed still, and a stream that breaks at once is no reason to hurry.
                self.instance.clear();
                tokio::time::sleep(jittered(pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        Ok(())
    }

    /// Waits until everything sent was looked at; returns all acknowledgements since the last look, as one.
    ///
    /// # Errors
    /// [`ClientError::Ended`], or what ended the stream: [`Self::keep_up`] mends it.
    pub async fn await_acknowledged(&mut self) -> Result<v1::FeedAck, ClientError> {
        self.sender.await_acknowledged().await
    }

    /// How often everything was sent: 1 until the daemon is restarted or a connection breaks.
    #[must_use]
    pub const fn times_in_full(&self) -> u64 {
        self.times_in_full
    }

    /// The stream that stands.
    #[must_use]
    pub const fn stream(&self) -> &FeedSender<I> {
        &self.sender
    }

    /// Items refused, by all streams together.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused + self.sender.refused()
    }

    /// The first few refusals in words, and why the stream ended if it did.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let all = self.complaints.iter().cloned().chain(self.sender.complaints());
        all.take(COMPLAINTS_KEPT).collect()
    }

    /// Everything, on the stream that stands. One that breaks meanwhile is for the next [`Self::keep_up`].
    async fn send_in_full(&mut self) -> Result<(), ClientError> {
        self.instance.clear();
        for item in (self.full)() {
            if self.sender.offer(self.sender.sent() + 1, item).await.is_err() {
                return Ok(());
            }
        }
        self.times_in_full += 1;
        let greeted = tokio::time::timeout(self.patience, self.sender.greeted()).await;
        if let Ok(Ok(instance)) = greeted {
            self.instance = instance;
        }
        Ok(())
    }
}
