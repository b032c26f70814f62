//! Shuffles of which their applications don't know the bytes: whose ApplicationMaster is to be asked, and what it said.

use super::Daemon;
use hintd_engine::holding::Shuffle;
use hintd_model::units::{AttemptId, Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Who has not asked for its turn for so long is not asked about, and forgotten.
const SILENT: Micros = Micros::from_secs(30);
/// What was said counts for so many polls, and no shorter than [`SILENT`].
const POLLS_KEPT: u64 = 3;
/// Attempts at one time; beyond, nobody is asked about them.
const ATTEMPTS_MAX: usize = 10_000;
/// Where polls fail, the time between them doubles so often.
const DOUBLED_MAX: u32 = 4;

/// See the module. Whoever asks takes [`Self::next`], and says what came of it.
#[derive(Debug, Default)]
pub struct ShuffleProgress {
    known: Mutex<BTreeMap<AttemptId, Known>>,
    news: Notify,
    watched: AtomicBool,
}

#[derive(Debug)]
struct Known {
    /// When it asked for its turn last.
    wished: Timestamp,
    /// When its ApplicationMaster is to be asked.
    due: Timestamp,
    under_way: bool,
    /// Polls that failed, one after the other.
    failures: u32,
    /// What was said last, and when.
    said: Option<(Timestamp, Shuffle)>,
}

impl ShuffleProgress {
    /// Somebody asks ApplicationMasters; before that nothing is kept.
    pub fn is_watched(&self) {
        self.watched.store(true, Ordering::Relaxed);
    }

    /// Comes when an attempt is new.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    /// The attempt asked for its turn and does not know its shuffle's bytes.
    pub fn wished(&self, attempt: AttemptId, now: Timestamp) {
        if !self.watched.load(Ordering::Relaxed) {
            return;
        }
        let mut known = self.lock();
        if let Some(known) = known.get_mut(&attempt) {
            known.wished = now;
            return;
        }
        if known.len() >= ATTEMPTS_MAX {
            forget_silent(&mut known, now);
        }
        if known.len() < ATTEMPTS_MAX {
            known.insert(attempt, Known { wished: now, due: now, under_way: false, failures: 0, said: None });
            self.news.notify_one();
        }
    }

    /// What its ApplicationMaster said last, unless that is too long ago for polls that come so often.
    pub fn said(&self, attempt: AttemptId, now: Timestamp, every: Micros) -> Option<Shuffle> {
        let (at, shuffle) = self.lock().get(&attempt)?.said?;
        let kept = SILENT.0.max(every.0.saturating_mul(POLLS_KEPT));
        (now.since(at).0 <= kept).then_some(shuffle)
    }

    /// Whose ApplicationMaster is to be asked now: the one that is due the longest. It is under way until
    /// [`Self::answered`] or [`Self::failed`].
    pub fn next(&self, now: Timestamp) -> Option<AttemptId> {
        let mut known = self.lock();
        forget_silent(&mut known, now);
        let open = known.iter_mut().filter(|(_, known)| !known.under_way && known.due <= now);
        let (attempt, next) = open.min_by_key(|(_, known)| known.due)?;
        next.under_way = true;
        Some(*attempt)
    }

    /// It answered; `None`: it can't say yet.
    pub fn answered(&self, attempt: AttemptId, shuffle: Option<Shuffle>, now: Timestamp, every: Micros) {
        self.update(attempt, |known| {
            known.said = shuffle.map(|shuffle| (now, shuffle));
            (known.failures, known.due) = (0, now.plus(every));
        });
    }

    /// It did not: those who answer come first.
    pub fn failed(&self, attempt: AttemptId, now: Timestamp, every: Micros) {
        self.update(attempt, |known| {
            let wait = every.0.saturating_mul(1 << known.failures.min(DOUBLED_MAX));
            (known.failures, known.due) = (known.failures.saturating_add(1), now.plus(Micros(wait)));
        });
    }

    fn update(&self, attempt: AttemptId, how: impl FnOnce(&mut Known)) {
        if let Some(known) = self.lock().get_mut(&attempt) {
            known.under_way = false;
            how(known);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_silent(known: &mut BTreeMap<AttemptId, Known>, now: Timestamp) {
    known.retain(|_, known| known.under_way || now.since(known.wished) <= SILENT);
}

impl Daemon {
    /// Shuffles that ApplicationMasters are to be asked about.
    #[must_use]
    pub fn shuffle_progress(&self) -> &ShuffleProgress {
        &self.0.shuffle_progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::{ApplicationId, Bytes};

    const EVERY: Micros = Micros::from_secs(5);

    fn attempt(sequence: u32) -> AttemptId {
        AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence }, attempt: 1 }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp(1_000_000_000 + seconds * 1_000_000)
    }

    fn shuffle(bytes: u64) -> Shuffle {
        Shuffle { bytes: Bytes(bytes), receivers: 4, received: 1, fetched: Bytes(7) }
    }

    fn watched() -> ShuffleProgress {
        let progress = ShuffleProgress::default();
        progress.is_watched();
        progress
    }

    #[test]
    fn nobody_is_asked_about_more_often_than_that_or_twice_at_a_time() {
        let progress = watched();
        progress.wished(attempt(1), at(0));
        progress.wished(attempt(2), at(1));
        assert_eq!(progress.next(at(1)), Some(attempt(1)));
        assert_eq!((progress.next(at(1)), progress.next(at(9))), (Some(attempt(2)), None), "both are under way");
        progress.answered(attempt(2), Some(shuffle(90)), at(9), EVERY);
        progress.answered(attempt(1), None, at(10), EVERY);
        assert_eq!(progress.next(at(13)), None);
        assert_eq!((progress.next(at(15)), progress.next(at(15))), (Some(attempt(2)), Some(attempt(1))));
        assert_eq!(progress.said(attempt(1), at(15), EVERY), None, "it could not say yet");
        assert_eq!(progress.said(attempt(2), at(15), EVERY), Some(shuffle(90)));
    }

    #[test]
    fn who_does_not_answer_is_asked_ever_more_seldom_and_what_it_said_grows_old() {
        let progress = watched();
        progress.wished(attempt(1), at(0));
        assert_eq!(progress.next(at(0)), Some(attempt(1)));
        progress.answered(attempt(1), Some(shuffle(90)), at(0), EVERY);
        let (mut now, mut waits) = (5, Vec::new());
        for _ in 0..7 {
            progress.wished(attempt(1), at(now));
            assert_eq!(progress.next(at(now)), Some(attempt(1)));
            progress.failed(attempt(1), at(now), EVERY);
            let began = now;
            while progress.lock()[&attempt(1)].due > at(now) {
                now += 1;
                progress.wished(attempt(1), at(now));
            }
            waits.push(now - began);
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 80, 80]);
        assert_eq!(progress.said(attempt(1), at(30), EVERY), Some(shuffle(90)));
        assert_eq!(progress.said(attempt(1), at(31), EVERY), None);
        assert_eq!(progress.said(attempt(1), at(180), Micros::from_secs(60)), Some(shuffle(90)), "three polls");
        assert_eq!(progress.said(attempt(1), at(181), Micros::from_secs(60)), None);
    }

    #[test]
    fn who_asks_for_its_turn_no_more_is_forgotten_and_there_is_room_for_so_many() {
        let progress = watched();
        for number in 1..=ATTEMPTS_MAX as u32 + 5 {
            progress.wished(attempt(number), at(0));
        }
        assert_eq!(progress.lock().len(), ATTEMPTS_MAX);
        assert_eq!(progress.next(at(30)), Some(attempt(1)));
        progress.wished(attempt(20_000), at(31));
        assert_eq!(progress.lock().len(), 2, "one is under way");
        progress.failed(attempt(1), at(31), EVERY);
        assert_eq!(
            (progress.next(at(31)), progress.next(at(31)), progress.lock().len()),
            (Some(attempt(20_000)), None, 1)
        );
    }

    #[test]
    fn nothing_is_kept_where_nobody_asks() {
        let progress = ShuffleProgress::default();
        progress.wished(attempt(1), at(0));
        assert_eq!((progress.next(at(0)), progress.lock().len()), (None, 0));
    }
}
