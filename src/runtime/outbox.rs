//! What attempts are told on Follow: numbered, bounded, kept for a time, resumed by number.

use super::options::FollowOptions;
use crate::units::{AttemptId, Micros, Timestamp};
use dashmap::DashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The outboxes of all attempts, by attempt. `M` is what is told.
#[derive(Debug)]
pub struct Outboxes<M> {
    by_attempt: DashMap<AttemptId, Arc<Outbox<M>>>,
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
    /// The attempt is over: followers drain and end.
    ended: Option<Timestamp>,
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
        Self { by_attempt: DashMap::new() }
    }
}

impl<M> Outboxes<M> {
    /// The outbox of an attempt, made where there is none.
    #[must_use]
    pub fn of(&self, attempt: AttemptId) -> Arc<Outbox<M>> {
        Arc::clone(&self.by_attempt.entry(attempt).or_insert_with(|| Arc::new(Outbox::new())))
    }

    /// Puts a message into an attempt's outbox; returns its number.
    pub fn push(&self, attempt: AttemptId, message: M, options: &FollowOptions, now: Timestamp) -> u64 {
        self.of(attempt).push(message, options, now)
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
                state.messages.pop_front();
                state.first += 1;
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

impl<M> Outbox<M> {
    fn new() -> Self {
        let kept = Kept { first: 1, messages: VecDeque::new(), ended: None };
        Self { kept: Mutex::new(kept), last: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<M>> {
        // Nothing under this lock can panic half way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: M, options: &FollowOptions, now: Timestamp) -> u64 {
        let mut state = self.lock();
        state.messages.push_back((now, Arc::new(message)));
        while state.messages.len() > options.messages.max(1) {
            state.messages.pop_front();
            state.first += 1;
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

impl<M> Kept<M> {
    fn last(&self) -> u64 {
        self.first + self.messages.len() as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::ApplicationId;
    use std::time::Duration;

    const OPTIONS: FollowOptions = FollowOptions { messages: 3, kept: Duration::from_secs(10) };

    fn attempt() -> AttemptId {
        AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 }
    }

    fn filled(messages: u64) -> Outboxes<u64> {
        let outboxes = Outboxes::default();
        for message in 1..=messages {
            assert_eq!(outboxes.push(attempt(), message, &OPTIONS, Timestamp(0)), message);
        }
        outboxes
    }

    #[test]
    fn a_follower_resumes_after_the_number_it_saw() {
        let outbox = filled(3).of(attempt());
        assert_eq!(outbox.after(0), Next::Message(1, Arc::new(1)));
        assert_eq!(outbox.after(2), Next::Message(3, Arc::new(3)));
        assert_eq!(outbox.after(3), Next::Wait);
    }

    #[test]
    fn what_is_no_longer_kept_is_a_gap_and_a_newcomer_starts_at_the_oldest() {
        let outbox = filled(5).of(attempt());
        assert_eq!(outbox.after(1), Next::Gap(3));
        assert_eq!(outbox.after(2), Next::Message(3, Arc::new(3)));
        assert_eq!(outbox.after(0), Next::Message(3, Arc::new(3)));
        assert_eq!(outbox.after(9), Next::Gap(3), "a number of an earlier life of the daemon");
    }

    #[test]
    fn old_messages_go_and_ended_outboxes_too() {
        let outboxes = filled(2);
        let later = Timestamp(11_000_000);
        outboxes.forget_old(&OPTIONS, later);
        assert_eq!(outboxes.of(attempt()).after(1), Next::Gap(3));
        assert_eq!(outboxes.push(attempt(), 9, &OPTIONS, later), 3, "numbers go on");
        outboxes.end(attempt(), later);
        assert_eq!(outboxes.of(attempt()).after(2), Next::Message(3, Arc::new(9)), "what is left is still told");
        assert_eq!(outboxes.of(attempt()).after(3), Next::Ended);
        outboxes.forget_old(&OPTIONS, Timestamp(22_000_001));
        assert!(outboxes.is_empty());
    }

    #[tokio::test]
    async fn a_waiting_follower_wakes_at_the_next_message() {
        let outboxes = Arc::new(filled(0));
        let outbox = outboxes.of(attempt());
        let mut changes = outbox.changes();
        let waiter = tokio::spawn(async move {
            changes.changed().await.unwrap();
            outbox.after(0)
        });
        outboxes.push(attempt(), 7, &OPTIONS, Timestamp(0));
        assert_eq!(waiter.await.unwrap(), Next::Message(1, Arc::new(7)));
    }
}
