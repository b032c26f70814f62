//! What a feed's acknowledgements said, gathered while nobody looks.

use super::ClientError;
use crate::wire::v1;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tonic::Status;

/// Refusals that wait to be taken; more are counted only.
const REFUSALS_KEPT: usize = 1_000;
/// Refusals that are kept in words for good.
pub(super) const COMPLAINTS_KEPT: usize = 5;

/// See the module.
#[derive(Debug)]
pub(super) struct AcknowledgedItems {
    said: Mutex<Said>,
    /// Counts acknowledgements and the end; whoever waits looks again at each.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Said {
    instance: String,
    through: u64,
    refused: u64,
    complaints: Vec<String>,
    /// Not taken yet.
    refusals: Vec<v1::ItemRefusal>,
    resync: BTreeSet<String>,
    reports_wanted: BTreeSet<String>,
    /// Something was said since it was last taken.
    news: bool,
    /// The stream's end, and why if not in order.
    ended: Option<Option<Status>>,
}

impl AcknowledgedItems {
    pub(super) fn new() -> Self {
        Self { said: Mutex::default(), changes: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        // Nothing under this lock can panic half way through a change.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear(&self, ack: v1::FeedAck) {
        let mut said = self.lock();
        said.refused += ack.refused.len() as u64;
        let room = COMPLAINTS_KEPT.saturating_sub(said.complaints.len());
        let words = |refusal: &v1::ItemRefusal| format!("{}: {}", refusal.reason, refusal.message);
        said.complaints.extend(ack.refused.iter().take(room).map(words));
        let room = REFUSALS_KEPT.saturating_sub(said.refusals.len());
        said.refusals.extend(ack.refused.into_iter().take(room));
        said.resync.extend(ack.resync);
        said.reports_wanted.extend(ack.full_report_wanted);
        said.instance = ack.instance_id;
        said.through = said.through.max(ack.through);
        said.news = true;
        drop(said);
        self.changes.send_modify(|changes| *changes += 1);
    }

    pub(super) fn end(&self, why: Option<Status>) {
        self.lock().ended.get_or_insert(why);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Waits until everything up to `through` was looked at, and with `news` until something was said that was not
    /// taken yet; takes what was said.
    pub(super) async fn wait(&self, through: u64, news: bool) -> Result<v1::FeedAck, ClientError> {
        self.until(|said| (said.through >= through && (said.news || !news)).then(|| said.take())).await
    }

    /// Waits for the first acknowledgement, and takes nothing: the life of the daemon that sent it.
    pub(super) async fn greeted(&self) -> Result<String, ClientError> {
        self.until(|said| (!said.instance.is_empty()).then(|| said.instance.clone())).await
    }

    async fn until<T>(&self, mut found: impl FnMut(&mut Said) -> Option<T> + Send) -> Result<T, ClientError> {
        let mut changes = self.changes.subscribe();
        loop {
            {
                let mut said = self.lock();
                if let Some(found) = found(&mut said) {
                    return Ok(found);
                }
                match &said.ended {
                    Some(None) => return Err(ClientError::Ended),
                    Some(Some(status)) => return Err(status.clone().into()),
                    None => {}
                }
            }
            changes.changed().await.map_err(|_| ClientError::Ended)?;
        }
    }

    pub(super) fn instance(&self) -> String {
        self.lock().instance.clone()
    }

    pub(super) fn through(&self) -> u64 {
        self.lock().through
    }

    pub(super) fn refused(&self) -> u64 {
        self.lock().refused
    }

    pub(super) fn complaints(&self) -> Vec<String> {
        let said = self.lock();
        let ended = said.ended.iter().flatten().map(|status| format!("the feed ended: {}", status.message()));
        said.complaints.iter().cloned().chain(ended).collect()
    }

    pub(super) fn take_resync(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().resync).into_iter().collect()
    }

    pub(super) fn take_reports_wanted(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().reports_wanted).into_iter().collect()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }
}

impl Said {
    /// Everything since the last time, as one acknowledgement.
    fn take(&mut self) -> v1::FeedAck {
        self.news = false;
        v1::FeedAck {
            instance_id: self.instance.clone(),
            through: self.through,
            refused: std::mem::take(&mut self.refusals),
            resync: std::mem::take(&mut self.resync).into_iter().collect(),
            full_report_wanted: std::mem::take(&mut self.reports_wanted).into_iter().collect(),
        }
    }
}
