//! The thread that keeps records: what it is told is what requests were answered, after they were.
//!
//! Nothing on a request's path waits for it. It is told in order, and asked in the same order: who was answered finds
//! the record. What comes faster than it is kept is left out and counted.

use hintd_engine::records::{Kept, Record, Records, Seen};
use hintd_engine::{RecordSettings, Refusal};
use hintd_model::units::{DecisionId, Micros, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use tokio::sync::oneshot;

/// The way to that thread; it ends with the last of these.
#[derive(Clone)]
pub(super) struct Recorder {
    queue: mpsc::Sender<Word>,
    waiting: Arc<AtomicUsize>,
    left_out: Arc<AtomicU64>,
}

enum Word {
    Seen(Box<Seen>),
    Get(DecisionId, Timestamp, oneshot::Sender<Result<Arc<Record>, Refusal>>),
    Kept(oneshot::Sender<Kept>),
    Reload(RecordSettings),
}

/// Decisions that may wait to be recorded: each holds the generation that it was made of.
const WAITING_MAX: usize = 64;

impl Recorder {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives none.
    pub(super) fn start(settings: RecordSettings) -> std::io::Result<Self> {
        let (queue, words) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        std::thread::Builder::new().name("records".to_owned()).spawn(move || keep(settings, &words, &left))?;
        Ok(Self { queue, waiting, left_out: Arc::default() })
    }

    /// Records a decision, unless too many wait; whether it will be there.
    pub(super) fn see(&self, seen: Seen) -> bool {
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.queue.send(Word::Seen(Box::new(seen))).is_ok() // a thread that panicked keeps nothing
    }

    /// Decisions that came faster than they could be recorded.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The record of a decision.
    ///
    /// # Errors
    /// [`Refusal::NotRecorded`].
    pub(super) async fn get(&self, decision: DecisionId, now: Timestamp) -> Result<Arc<Record>, Refusal> {
        self.ask(|reply| Word::Get(decision, now, reply)).await?
    }

    /// How far records go.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where the thread has ended.
    pub(super) async fn kept(&self) -> Result<Kept, Refusal> {
        self.ask(Word::Kept).await
    }

    /// New settings.
    pub(super) fn reload(&self, settings: RecordSettings) {
        let _ = self.queue.send(Word::Reload(settings));
    }

    async fn ask<T>(&self, word: impl FnOnce(oneshot::Sender<T>) -> Word) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        let gone = || Refusal::Unavailable {
            message: "the thread that keeps records has ended".to_owned(),
            retry_after: Micros::from_secs(1),
        };
        self.queue.send(word(reply)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

fn keep(settings: RecordSettings, words: &mpsc::Receiver<Word>, waiting: &AtomicUsize) {
    let mut records = Records::new(settings);
    for word in words {
        // Who asked may have gone.
        match word {
            Word::Seen(seen) => {
                records.take(*seen);
                waiting.fetch_sub(1, Ordering::AcqRel);
            }
            Word::Get(decision, now, reply) => drop(reply.send(records.get(decision, now))),
            Word::Kept(reply) => drop(reply.send(records.kept())),
            Word::Reload(settings) => records.reload(settings),
        }
    }
}
