//! What attempts are told on Follow: numbered, bounded, kept for a time, resumed by number.
//!
//! An outbox's numbers begin at the time it is made, so those of an earlier one, forgotten or of an earlier
//! life of the daemon, are all below: who resumes by them is told of the gap.

use super::options::FollowOptions;
use dashmap::DashMap;
use hintd_model::units::{AttemptId, Micros, Timestamp};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The outboxes of all attempts, by attempt. `M` is what is told.
#[derive(Debug)]
pub struct Outboxes<M> {
    by_attempt: DashMap<AttemptId, Arc<Outbox<M>>>,
    /// Of the messages of all of them.
    bytes: Arc<AtomicUsize>,
}

/// One attempt's messages.
#[derive(Debug)]
pub struct Outbox<M> {
    kept: Mutex<Kept<M>>,
    /// The last number given; followers wait for it to grow.
    last: watch::Sender<u64>,
}

#[derive(Debug)]
struct Kept<M> {
    /// Number of the first message kept; one above the last where none is.
    first: u64,
    messages: VecDeque<(Timestamp, Arc<M>)>,
    /// Of the messages.
    bytes: usize,
    /// Of those of all outboxes.
    all: Arc<AtomicUsize>,
    /// The attempt is over: followers drain and end.
    ended: Option<Timestamp>,
}

/// A million messages a millisecond: more than an outbox ever gets, so numbers never catch up with the
/// clock, and they fit 63 bits until the year 2248.
const MESSAGES_PER_MS_BITS: u32 = 20;

/// Messages of one attempt take no more than this, but for the last one.
const BYTES_MAX: usize = 4 << 20;
/// Nor those of all attempts than this, but for the last one of each.
const ALL_BYTES_MAX: usize = 256 << 20;

/// What takes memory while it is kept.
pub trait Weigh {
    /// Bytes, about.
    fn bytes(&self) -> usize;
}

/// What a follower gets next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<M> {
    /// A message with its number.
    Message(u64, Arc<M>),
    /// Numbers asked for are no longer kept (or of an earlier life of the daemon): the first that is.
    Gap(u64),
    /// Nothing now.
    Wait,
    /// Nothing will come any more.
    Ended,
}

impl<M> Default for Outboxes<M> {
    fn default() -> Self {
        Self { by_attempt: DashMap::new(), bytes: Arc::default() }
    }
}

impl<M: Weigh> Outboxes<M> {
    /// The outbox of an attempt that is known: made where there is none, and open again where the attempt
    /// had ended and asked anew. To be called where ends are told, or it may outlive its attempt.
    pub fn open(&self, attempt: AttemptId, now: Timestamp) -> Arc<Outbox<M>> {
        let outbox = self.by_attempt.entry(attempt).or_insert_with(|| Arc::new(Outbox::new(now, &self.bytes)));
        outbox.lock().ended = None;
        Arc::clone(&outbox)
    }

    /// Puts a message into the outbox of an attempt that is known, as [`Self::open`]; returns its number.
    pub fn push(&self, attempt: AttemptId, message: M, options: &FollowOptions, now: Timestamp) -> u64 {
        self.open(attempt, now).push(message, options, now)
    }

    /// Puts a message into an outbox that is open; `None`: there is none, the attempt is over.
    pub fn push_if_open(&self, attempt: AttemptId, message: M, options: &FollowOptions, now: Timestamp) -> Option<u64> {
        let outbox = self.by_attempt.get(&attempt).map(|entry| Arc::clone(entry.value()))?;
        let open = outbox.lock().ended.is_none();
        open.then(|| outbox.push(message, options, now))
    }

    /// Whether somebody follows the attempt right now.
    #[must_use]
    pub fn is_followed(&self, attempt: AttemptId) -> bool {
        self.by_attempt.get(&attempt).is_some_and(|outbox| outbox.last.receiver_count() > 0)
    }

    /// The attempt is over: its followers get what is left and their streams end.
    pub fn end(&self, attempt: AttemptId, now: Timestamp) {
        if let Some(outbox) = self.by_attempt.get(&attempt).map(|entry| Arc::clone(entry.value())) {
            outbox.lock().ended.get_or_insert(now);
            outbox.last.send_modify(|_| ());
        }
    }

    /// Forgets what is older than the options say, and outboxes that ended as long ago.
    pub fn forget_old(&self, options: &FollowOptions, now: Timestamp) {
        let kept = Micros(u64::try_from(options.kept.as_micros()).unwrap_or(u64::MAX));
        self.by_attempt.retain(|_, outbox| {
            let mut state = outbox.lock();
            while state.messages.front().is_some_and(|(at, _)| now.since(*at) > kept) {
                state.drop_first();
            }
            state.ended.is_none_or(|at| now.since(at) <= kept)
        });
    }

    /// Attempts with an outbox.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_attempt.len()
    }

    /// Whether no attempt has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_attempt.is_empty()
    }
}

impl<M: Weigh> Outbox<M> {
    fn new(now: Timestamp, all: &Arc<AtomicUsize>) -> Self {
        let first = (now.as_millis() << MESSAGES_PER_MS_BITS) + 1;
        let kept = Kept { first, messages: VecDeque::new(), bytes: 0, all: Arc::clone(all), ended: None };
        Self { kept: Mutex::new(kept), last: watch::Sender::new(first - 1) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<M>> {
        // Nothing under this lock can panic half way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: M, options: &FollowOptions, now: Timestamp) -> u64 {
        let mut state = self.lock();
        state.add(now, message);
        while state.messages.len() > options.messages.max(1) || (state.is_too_large() && state.messages.len() > 1) {
            state.drop_first();
        }
        let number = state.last();
        drop(state);
        self.last.send_replace(number);
        number
    }

    /// What comes after `seen` (0: from the oldest kept).
    #[must_use]
    pub fn after(&self, seen: u64) -> Next<M> {
        let state = self.lock();
        let from_the_oldest = seen == 0;
        if (seen + 1 < state.first && !from_the_oldest) || seen > state.last() {
            return Next::Gap(state.first);
        }
        let number = (seen + 1).max(state.first);
        let at = usize::try_from(number - state.first).unwrap_or(usize::MAX);
        match state.messages.get(at) {
            Some((_, message)) => Next::Message(number, Arc::clone(message)),
            None if state.ended.is_some() => Next::Ended,
            None => Next::Wait,
        }
    }

    /// Wakes at every new message and at the end.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }
}

impl<M> Drop for Kept<M> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl<M: Weigh> Kept<M> {
    fn add(&mut self, now: Timestamp, message: M) {
        let bytes = message.bytes();
        self.bytes += bytes;
        self.all.fetch_add(bytes, Ordering::AcqRel);
        self.messages.push_back((now, Arc::new(message)));
    }

    /// It takes more than one outbox may, or all take more than all may.
    fn is_too_large(&self) -> bool {
        self.bytes > BYTES_MAX || self.all.load(Ordering::Acquire) > ALL_BYTES_MAX
    }

    fn drop_first(&mut self) {
        if let Some((_, message)) = self.messages.pop_front() {
            let bytes = message.bytes();
            self.bytes -= bytes;
            self.all.fetch_sub(bytes, Ordering::AcqRel);
            self.first += 1;
        }
    }

    fn last(&self) -> u64 {
        self.first + self.messages.len() as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::ApplicationId;
    use std::time::Duration;

    const OPTIONS: FollowOptions = FollowOptions { messages: 3, kept: Duration::from_secs(10) };

    impl Weigh for u64 {
        /// As many millions as it says.
        fn bytes(&self) -> usize {
            usize::try_from(*self / 1_000_000 * 1_000_000).unwrap_or(usize::MAX)
        }
    }

    #[test]
    fn of_large_messages_the_oldest_go_and_the_last_one_never() {
        let outboxes = Outboxes::default();
        let last =
            [3_000_000, 2_000_000, 9_000_000, 1].map(|message| outboxes.push(attempt(), message, &OPTIONS, MADE));
        let outbox = outboxes.open(attempt(), MADE);
        assert_eq!(last[3] - last[0], 3);
        assert_eq!(
            outbox.after(last[0]),
            Next::Gap(last[3]),
            "5 and 9 MB are more than may be kept, and so is 9 beside 0"
        );
        assert_eq!(outbox.after(0), Next::Message(last[3], Arc::new(1)));
        outboxes.push(attempt(), 9_000_000, &OPTIONS, MADE);
        assert_eq!(outbox.after(last[3]), Next::Message(last[3] + 1, Arc::new(9_000_000)));
    }

    #[test]
    fn where_all_together_are_too_large_each_keeps_its_last_message() {
        let outboxes = Outboxes::default();
        let id = |sequence| AttemptId { attempt: sequence, ..attempt() };
        for sequence in 1..=100 {
            for _ in 0..2 {
                outboxes.push(id(sequence), 2_000_000, &OPTIONS, MADE);
            }
        }
        let kept = |sequence| outboxes.open(id(sequence), MADE).lock().messages.len();
        assert_eq!((kept(1), kept(100)), (2, 1));
        let all = outboxes.bytes.load(Ordering::Acquire);
        assert!(all <= ALL_BYTES_MAX + 100 * 2_000_000, "{all}");
        assert_eq!(all, (1..=100).map(|sequence| kept(sequence) * 2_000_000).sum::<usize>());
        for sequence in 1..=100 {
            outboxes.end(id(sequence), MADE);
        }
        outboxes.forget_old(&OPTIONS, MADE.plus(Micros::from_secs(60)));
        assert_eq!(outboxes.bytes.load(Ordering::Acquire), 0, "all is given back");
    }

    fn attempt() -> AttemptId {
        AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 }
    }

    /// The number before an outbox's first that is made at this moment.
    fn base(at: Timestamp) -> u64 {
        at.as_millis() << MESSAGES_PER_MS_BITS
    }

    const MADE: Timestamp = Timestamp(5_000_000);

    fn filled(messages: u64) -> Outboxes<u64> {
        let outboxes = Outboxes::default();
        for message in 1..=messages {
            assert_eq!(outboxes.push(attempt(), message, &OPTIONS, MADE), base(MADE) + message);
        }
        outboxes
    }

    fn message(number: u64) -> Next<u64> {
        Next::Message(base(MADE) + number, Arc::new(number))
    }

    #[test]
    fn a_follower_resumes_after_the_number_it_saw() {
        let outbox = filled(3).open(attempt(), MADE);
        assert_eq!(outbox.after(0), message(1));
        assert_eq!(outbox.after(base(MADE) + 2), message(3));
        assert_eq!(outbox.after(base(MADE) + 3), Next::Wait);
    }

    #[test]
    fn what_is_no_longer_kept_is_a_gap_and_a_newcomer_starts_at_the_oldest() {
        let outbox = filled(5).open(attempt(), MADE);
        assert_eq!(outbox.after(base(MADE) + 1), Next::Gap(base(MADE) + 3));
        assert_eq!(outbox.after(base(MADE) + 2), message(3));
        assert_eq!(outbox.after(0), message(3));
        assert_eq!(outbox.after(base(MADE) + 9), Next::Gap(base(MADE) + 3), "a number that was never given");
    }

    #[test]
    fn a_number_of_an_earlier_life_is_a_gap_however_many_messages_there_are_now() {
        let earlier = filled(2);
        let seen = earlier.push(attempt(), 3, &OPTIONS, MADE);
        let restarted = Timestamp(MADE.0 + 2_000); // 2 ms
        let outboxes = Outboxes::default();
        let first = (1..=9).map(|n| outboxes.push(attempt(), n, &OPTIONS, restarted)).min().unwrap();
        let Next::Gap(kept) = outboxes.open(attempt(), restarted).after(seen) else {
            panic!("messages 1 to 3 of this life were never seen")
        };
        assert!(seen < first && first < kept);
    }

    #[test]
    fn old_messages_go_and_ended_outboxes_too() {
        let outboxes = filled(2);
        let later = Timestamp(MADE.0 + 11_000_000);
        outboxes.forget_old(&OPTIONS, later);
        let outbox = outboxes.open(attempt(), later);
        assert_eq!(outbox.after(base(MADE) + 1), Next::Gap(base(MADE) + 3));
        assert_eq!(outboxes.push(attempt(), 3, &OPTIONS, later), base(MADE) + 3, "numbers go on");
        outboxes.end(attempt(), later);
        assert_eq!(outbox.after(base(MADE) + 2), message(3), "what is left is still told");
        assert_eq!(outbox.after(base(MADE) + 3), Next::Ended);
        outboxes.forget_old(&OPTIONS, Timestamp(later.0 + 11_000_001));
        assert!(outboxes.is_empty());
    }

    #[test]
    fn an_attempt_that_asks_again_after_its_end_is_told_again() {
        let outboxes = filled(2);
        outboxes.end(attempt(), MADE);
        assert_eq!(outboxes.push_if_open(attempt(), 3, &OPTIONS, MADE), None, "it is over");
        let outbox = outboxes.open(attempt(), MADE);
        assert_eq!(outbox.after(base(MADE) + 2), Next::Wait);
        assert_eq!(outboxes.push_if_open(attempt(), 3, &OPTIONS, MADE), Some(base(MADE) + 3));
        assert_eq!(outbox.after(base(MADE) + 2), message(3));
    }

    #[test]
    fn late_messages_make_no_outbox_that_nobody_would_end() {
        let outboxes = Outboxes::default();
        assert_eq!(outboxes.push_if_open(attempt(), 1, &OPTIONS, MADE), None);
        assert!(outboxes.is_empty());
    }

    #[tokio::test]
    async fn a_waiting_follower_wakes_at_the_next_message() {
        let outboxes = Arc::new(filled(0));
        let outbox = outboxes.open(attempt(), MADE);
        assert!(!outboxes.is_followed(attempt()));
        let mut changes = outbox.changes();
        assert!(outboxes.is_followed(attempt()));
        let waiter = tokio::spawn(async move {
            changes.changed().await.unwrap();
            outbox.after(0)
        });
        outboxes.push(attempt(), 1, &OPTIONS, MADE);
        assert_eq!(waiter.await.unwrap(), message(1));
    }
}
