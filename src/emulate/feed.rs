//! One feed stream: numbers its items, and gathers what the acknowledgements say.

use crate::wire::v1;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tonic::{Status, Streaming};

/// Items in flight of one feed: a slow daemon slows its sources, as HTTP/2 would.
pub const IN_FLIGHT: usize = 1_024;

/// Refusals that are kept word for word.
const REFUSALS_KEPT: usize = 5;

/// What the daemon answered so far.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// Every item up to this number was looked at.
    through: AtomicU64,
    refused: AtomicU64,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    resync: BTreeSet<String>,
    reports_wanted: BTreeSet<String>,
    refusals: Vec<String>,
    ended: Option<String>,
}

impl Acknowledged {
    /// Every item up to this number was looked at.
    #[must_use]
    pub fn through(&self) -> u64 {
        self.through.load(Ordering::Acquire)
    }

    /// Items refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The first few refusals, and why the stream ended if it did.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let said = self.said.lock().expect("no holder of this lock panics");
        said.refusals.iter().chain(&said.ended).cloned().collect()
    }

    /// Nodes that are to register again, once each.
    #[must_use]
    pub fn take_resync(&self) -> Vec<String> {
        let mut said = self.said.lock().expect("no holder of this lock panics");
        std::mem::take(&mut said.resync).into_iter().collect()
    }

    /// DataNodes whose full block report is wanted, once each.
    #[must_use]
    pub fn take_reports_wanted(&self) -> Vec<String> {
        let mut said = self.said.lock().expect("no holder of this lock panics");
        std::mem::take(&mut said.reports_wanted).into_iter().collect()
    }

    fn hear(&self, ack: v1::FeedAck) {
        let mut said = self.said.lock().expect("no holder of this lock panics");
        said.resync.extend(ack.resync);
        said.reports_wanted.extend(ack.full_report_wanted);
        self.refused.fetch_add(ack.refused.len() as u64, Ordering::Relaxed);
        let room = REFUSALS_KEPT.saturating_sub(said.refusals.len());
        said.refusals.extend(
            ack.refused.into_iter().take(room).map(|refusal| format!("{}: {}", refusal.reason, refusal.message)),
        );
        self.through.fetch_max(ack.through, Ordering::Release);
    }

    fn end(&self, status: &Status) {
        let mut said = self.said.lock().expect("no holder of this lock panics");
        said.ended = Some(format!("the feed ended: {}: {}", status.code(), status.message()));
    }
}

/// Sends items of one feed, numbered from 1.
#[derive(Debug)]
pub struct FeedSender<T> {
    items: mpsc::Sender<T>,
    next: u64,
    acknowledged: Arc<Acknowledged>,
}

/// The daemon does not take items any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {feed} feed is closed ({complaints})")]
pub struct FeedClosed {
    /// Which.
    pub feed: &'static str,
    /// What the daemon said.
    pub complaints: String,
}

impl<T> FeedSender<T> {
    /// A sender and the receiving end for the client's stream.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<T>) {
        let (items, receiver) = mpsc::channel(IN_FLIGHT);
        (Self { items, next: 0, acknowledged: Arc::default() }, receiver)
    }

    /// Listens to acknowledgements until the stream ends.
    pub fn listen(&self, mut acks: Streaming<v1::FeedAck>) -> tokio::task::JoinHandle<()> {
        let acknowledged = Arc::clone(&self.acknowledged);
        tokio::spawn(async move {
            while let Some(ack) = acks.next().await {
                match ack {
                    Ok(ack) => acknowledged.hear(ack),
                    Err(status) => return acknowledged.end(&status),
                }
            }
        })
    }

    /// Sends what `item` makes of the next number.
    ///
    /// # Errors
    /// [`FeedClosed`] once the daemon has ended the stream.
    pub async fn send(&mut self, feed: &'static str, item: impl FnOnce(u64) -> T) -> Result<u64, FeedClosed> {
        self.next += 1;
        let sent = self.items.send(item(self.next)).await;
        sent.map_err(|_| FeedClosed { feed, complaints: self.acknowledged.complaints().join("; ") })?;
        Ok(self.next)
    }

    /// Number of the last item sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.next
    }

    /// What the daemon answered.
    #[must_use]
    pub const fn acknowledged(&self) -> &Arc<Acknowledged> {
        &self.acknowledged
    }
}
