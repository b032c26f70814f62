//! The thread that keeps records: what it is told is what requests were answered, after they were.
//!
//! Nothing on a request's path waits for it. It is told in order, and asked in the same order: who was answered finds
//! the record. What comes faster than it is kept is left out and counted.

use hintd_engine::records::{DecidedRequest, Kept, Record, RecordFilter, Records, Undelivered};
use hintd_engine::{RecordSettings, Refusal};
use hintd_model::units::{ApplicationId, DecisionId, Micros, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The way to that thread; it ends with the last of these.
#[derive(Clone)]
pub(super) struct Recorder {
    queue: mpsc::Sender<Envelope>,
    /// Places of decisions.
    decisions: Arc<Places>,
    /// Places of questions.
    questions: Arc<Semaphore>,
    left_out: Arc<AtomicU64>,
}

enum RecorderCommand {
    DecidedRequest(Box<DecidedRequest>),
    /// Whether somebody has the answer of a decision; where nobody has, why.
    Delivery {
        decision: DecisionId,
        undelivered: Option<Undelivered>,
    },
    Get {
        decision: DecisionId,
        now: Timestamp,
        reply: oneshot::Sender<Result<Arc<Record>, Refusal>>,
    },
    Kept(oneshot::Sender<Kept>),
    Refusals(oneshot::Sender<BTreeMap<&'static str, u64>>),
    Listed {
        filter: RecordFilter,
        most: usize,
        now: Timestamp,
        reply: oneshot::Sender<ListedRecords>,
    },
    Reload {
        settings: RecordSettings,
        done: oneshot::Sender<()>,
    },
}

/// Records that a filter means.
#[derive(Debug)]
pub struct ListedRecords {
    /// Newest first, no more than were asked for.
    pub records: Vec<Arc<Record>>,
    /// How many there are in all.
    pub total: usize,
    /// How far records go, in words.
    pub kept: String,
}

/// A word with its place in the bounded queue.
struct Envelope {
    word: RecorderCommand,
    /// Given back when the word was handled.
    _place: AnyPlace,
}

/// One place of either kind, or none.
enum AnyPlace {
    Decision {
        _place: Place,
    },
    Question {
        _place: OwnedSemaphorePermit,
    },
    /// It takes none: there is at most one for each decision that is late, and one for the repeat that fetches it.
    None,
}

/// Places of decisions that wait to be recorded. One user has at most as many as are free, so that one who asks in a loop,
/// under however many applications' ids, leaves out decisions of its own. One application has at most as many as its user may
/// still take: where all ask as one user, who asks in a loop leaves places to the others.
#[derive(Default)]
struct Places(Mutex<HashMap<Asker, usize>>);

/// Whose decisions they are.
type Asker = (Arc<str>, ApplicationId);

struct Place {
    of: Arc<Places>,
    asker: Asker,
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<Asker, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, user: &Arc<str>, application: ApplicationId) -> Option<Place> {
        let mut taken = self.lock();
        let free = DECISIONS_MAX - taken.values().sum::<usize>();
        let of_user: usize = taken.iter().filter(|((of, _), _)| of == user).map(|(_, places)| places).sum();
        let asker = (Arc::clone(user), application);
        let own = taken.get(&asker).copied().unwrap_or(0);
        if own >= free.saturating_sub(of_user) {
            return None;
        }
        taken.insert(asker.clone(), own + 1);
        Some(Place { of: Arc::clone(self), asker })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.of.lock();
        if let Some(own) = taken.get_mut(&self.asker) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.asker);
            }
        }
    }
}

/// Decisions that may wait to be recorded: each holds the generation that it was made of.
const DECISIONS_MAX: usize = 128;
/// Questions that may wait to be answered; who asks beyond it waits for a place, as long as its caller does.
const QUESTIONS_MAX: usize = 64;

impl Recorder {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives none.
    pub(super) fn start(settings: RecordSettings) -> std::io::Result<Self> {
        let (queue, words) = mpsc::channel();
        std::thread::Builder::new().name("records".to_owned()).spawn(move || keep(settings, &words))?;
        let places = |most| Arc::new(Semaphore::new(most));
        let (decisions, questions) = (Arc::default(), places(QUESTIONS_MAX));
        Ok(Self { queue, decisions, questions, left_out: Arc::default() })
    }

    /// Records a decision, unless too many wait; whether it will be there.
    pub(super) fn see(&self, seen: DecidedRequest) -> bool {
        let Some(place) = self.decisions.take(&seen.request.user, seen.request.attempt.application) else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let envelope = Envelope {
            word: RecorderCommand::DecidedRequest(Box::new(seen)),
            _place: AnyPlace::Decision { _place: place },
        };
        self.queue.send(envelope).is_ok() // a thread that panicked keeps nothing
    }

    /// Whether somebody has the answer of a decision that was recorded before; where nobody has, why.
    pub(super) fn delivery(&self, decision: DecisionId, undelivered: Option<Undelivered>) {
        let word = RecorderCommand::Delivery { decision, undelivered };
        let _ = self.queue.send(Envelope { word, _place: AnyPlace::None }); // a thread that panicked keeps nothing
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
        self.ask(|reply| RecorderCommand::Get { decision, now, reply }).await?
    }

    /// How far records go.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where the thread has ended.
    pub(super) async fn kept(&self) -> Result<Kept, Refusal> {
        self.ask(RecorderCommand::Kept).await
    }

    /// Records that are meant, newest first.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where the thread has ended.
    pub(super) async fn listed(
        &self,
        filter: RecordFilter,
        most: usize,
        now: Timestamp,
    ) -> Result<ListedRecords, Refusal> {
        self.ask(|reply| RecorderCommand::Listed { filter, most, now, reply }).await
    }

    /// Refusals that are recorded, by their tokens.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where the thread has ended.
    pub(super) async fn refusals(&self) -> Result<BTreeMap<&'static str, u64>, Refusal> {
        self.ask(RecorderCommand::Refusals).await
    }

    /// New settings.
    pub(super) async fn reload(&self, settings: RecordSettings) {
        // A thread that has ended keeps nothing.
        let _ = self.ask(|done| RecorderCommand::Reload { settings, done }).await;
    }

    async fn ask<T>(&self, word: impl FnOnce(oneshot::Sender<T>) -> RecorderCommand) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        let gone = || Refusal::Unavailable {
            message: "the thread that keeps records has ended".to_owned(),
            retry_after: Micros::from_secs(1),
        };
        let place = Arc::clone(&self.questions).acquire_owned().await.map_err(|_| gone())?;
        let _place = AnyPlace::Question { _place: place };
        self.queue.send(Envelope { word: word(reply), _place }).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

fn keep(settings: RecordSettings, envelopes: &mpsc::Receiver<Envelope>) {
    let mut records = Records::new(settings);
    for Envelope { word, _place } in envelopes {
        // Who asked may have gone.
        match word {
            RecorderCommand::DecidedRequest(seen) => records.take(*seen),
            RecorderCommand::Delivery { decision, undelivered } => records.delivery(decision, undelivered),
            RecorderCommand::Get { decision, now, reply } => drop(reply.send(records.get(decision, now))),
            RecorderCommand::Kept(reply) => drop(reply.send(records.kept())),
            RecorderCommand::Refusals(reply) => drop(reply.send(records.refusals())),
            RecorderCommand::Listed { filter, most, now, reply } => {
                let (found, total) = records.listed(&filter, most);
                let _ = reply.send(ListedRecords { records: found, total, kept: records.kept_text(now) });
            }
            RecorderCommand::Reload { settings, done } => {
                records.reload(settings);
                let _ = done.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn application(sequence: u32) -> ApplicationId {
        ApplicationId { cluster_timestamp: 1, sequence }
    }

    #[test]
    fn a_user_who_asks_in_a_loop_leaves_places_to_others() {
        let places: Arc<Places> = Arc::default();
        let [one, two] = ["one", "two"].map(Arc::<str>::from);
        // A new application for each request.
        let mut ids = (0..).map(application);
        let flood: Vec<_> = std::iter::from_fn(|| places.take(&one, ids.next()?)).collect();
        assert_eq!(flood.len(), DECISIONS_MAX / 2);
        let mut ids = (0..).map(application);
        let other: Vec<_> = std::iter::from_fn(|| places.take(&two, ids.next()?)).collect();
        assert_eq!(other.len(), DECISIONS_MAX / 4);
        drop((flood, other));
        assert!(places.lock().is_empty());
    }

    #[test]
    fn an_application_that_asks_in_a_loop_leaves_places_to_others_of_its_user() {
        let places: Arc<Places> = Arc::default();
        let [all, other] = ["hadoop", "etl"].map(Arc::<str>::from);
        let flood: Vec<_> = std::iter::from_fn(|| places.take(&all, application(1))).collect();
        assert_eq!(flood.len(), 43, "as many as its user may still take: 128 - 43 - 43 = 42");
        let beside: Vec<_> = (2..12).filter_map(|n| places.take(&all, application(n))).collect();
        assert_eq!(beside.len(), 10, "ten others have their place");
        assert!(places.take(&other, application(1)).is_some(), "and so has another user");
        drop((flood, beside));
        assert!(places.lock().is_empty());
    }

    #[tokio::test]
    async fn questions_beyond_the_places_wait_for_one_and_are_answered() {
        let recorder = Recorder::start(RecordSettings::default()).unwrap();
        let all: Vec<_> =
            Arc::clone(&recorder.questions).acquire_many_owned(QUESTIONS_MAX as u32).await.into_iter().collect();
        let waits = tokio::time::timeout(Duration::from_millis(20), recorder.kept()).await;
        assert!(waits.is_err(), "there is no place");
        drop(all);
        let asked = (0..3 * QUESTIONS_MAX).map(|_| {
            let recorder = recorder.clone();
            tokio::spawn(async move { recorder.kept().await.is_ok() })
        });
        for asked in asked.collect::<Vec<_>>() {
            assert!(asked.await.unwrap());
        }
        recorder.reload(RecordSettings::default()).await;
        assert_eq!(recorder.questions.available_permits(), QUESTIONS_MAX);
    }
}
