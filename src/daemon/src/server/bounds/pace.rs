//! How fast a connection has to read what waits for it.
//!
//! Two bounds, for two kinds of readers. Who reads nothing: something has to move within `limits.unread`. Who reads a little
//! now and then: each answer has to be gone within that time and what its bytes take at `limits.read_bytes_per_s`, whatever
//! else is read meanwhile, so that nobody keeps one answer by reading others.

use super::budget::{Held, Share};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is asked of every reader.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct Pace {
    /// How long nothing may move.
    pub(in crate::server) unread: Duration,
    /// Bytes a second of each answer, beyond `unread`; 0: as slowly as it likes.
    pub(in crate::server) bytes_per_s: u64,
}

/// What waits for one connection; clones are the same.
#[derive(Debug, Clone)]
pub(in crate::server) struct Outgoing(Arc<Waiting>);

#[derive(Debug)]
struct Waiting {
    share: Share,
    pace: Pace,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Those that wait, in no order; equal ones are as many answers.
    waiting: Vec<Term>,
    /// When bytes of any of them were sent.
    sent: Option<Instant>,
}

/// What an answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    /// When it has to be gone.
    due: Instant,
    /// Since when it waits.
    since: Instant,
}

/// An answer that waits; it no longer does when dropped.
#[derive(Debug)]
pub(super) struct WaitingAnswer {
    _held: Held,
    outgoing: Outgoing,
    term: Option<Term>,
}

/// What a reader failed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Late {
    /// It read nothing.
    Unread,
    /// It read too little.
    Slow,
}

impl Pace {
    /// What an answer of so many bytes is given that waits from now on; `None`: there is no bound.
    fn term(self, since: Instant, bytes: usize) -> Option<Term> {
        let micros = (bytes as u64).saturating_mul(1_000_000).checked_div(self.bytes_per_s)?;
        let due = since.checked_add(self.unread)?.checked_add(Duration::from_micros(micros))?;
        Some(Term { due, since })
    }
}

impl Outgoing {
    pub(in crate::server) fn new(share: Share, pace: Pace) -> Self {
        Self(Arc::new(Waiting { share, pace, answers: Mutex::default() }))
    }

    /// Takes bytes for an answer; `None`: there are not so many for this connection now.
    pub(super) fn take(&self, bytes: usize) -> Option<WaitingAnswer> {
        let held = self.0.share.take(bytes)?;
        let term = self.0.pace.term(Instant::now(), bytes);
        self.answers().waiting.extend(term);
        Some(WaitingAnswer { _held: held, outgoing: self.clone(), term })
    }

    /// Something of what waits was handed over.
    pub(super) fn progress(&self) {
        self.0.share.progress();
    }

    /// Something of it was sent.
    pub(super) fn sent(&self) {
        self.0.share.progress();
        self.answers().sent = Some(Instant::now());
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the connection is to be closed if nothing moves until then, and why; `None`: nothing waits.
    pub(in crate::server) fn due(&self) -> Option<(Instant, Late)> {
        let still = self.0.share.still_since().map(|since| (since + self.0.pace.unread, Late::Unread));
        let answers = self.answers();
        let slow = answers.waiting.iter().min().map(|term| {
            // Where nothing was sent since, it is not that one that is slow.
            let slow = answers.sent.is_some_and(|sent| sent >= term.since);
            (term.due, if slow { Late::Slow } else { Late::Unread })
        });
        still.into_iter().chain(slow).min_by_key(|&(due, _)| due)
    }
}

impl Drop for WaitingAnswer {
    fn drop(&mut self) {
        let Some(term) = self.term else { return };
        let mut answers = self.outgoing.answers();
        if let Some(at) = answers.waiting.iter().position(|&other| other == term) {
            answers.waiting.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budget;
    use super::*;

    const UNREAD: Duration = Duration::from_secs(30);

    fn outgoing(bytes_per_s: u64) -> Outgoing {
        Outgoing::new(Budget::new(1_000_000).share(), Pace { unread: UNREAD, bytes_per_s })
    }

    #[test]
    fn each_answer_has_the_time_that_its_bytes_take_whatever_else_moves() {
        let outgoing = outgoing(1_000);
        assert_eq!(outgoing.due(), None);
        let began = Instant::now();
        let large = outgoing.take(60_000).unwrap();
        let (due, late) = outgoing.due().unwrap();
        assert_eq!(late, Late::Unread, "nothing has moved yet");
        assert!(due <= Instant::now() + UNREAD);
        let wanted = large.term.unwrap();
        let lasts = Duration::from_secs(90);
        assert!(wanted.due >= began + lasts && wanted.due <= Instant::now() + lasts);
        for _ in 0..100 {
            drop(outgoing.take(10));
            outgoing.sent();
        }
        assert_eq!(large.term, Some(wanted), "others that come and go give it no more time");
        assert_eq!(outgoing.answers().waiting, [wanted]);
        drop(large);
        assert_eq!(outgoing.due(), None, "nothing waits");
    }

    #[test]
    fn an_overdue_answer_counts_as_slow_however_lately_something_moved() {
        let outgoing =
            Outgoing::new(Budget::new(1_000_000).share(), Pace { unread: Duration::ZERO, bytes_per_s: 1 << 30 });
        let _large = outgoing.take(1_000).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        outgoing.progress();
        let (due, late) = outgoing.due().unwrap();
        assert_eq!(late, Late::Unread, "nothing was sent");
        assert!(due <= Instant::now());
        outgoing.sent();
        assert_eq!(outgoing.due().unwrap(), (due, Late::Slow));
    }

    #[test]
    fn without_a_rate_only_silence_counts() {
        let outgoing = outgoing(0);
        let _answer = outgoing.take(100).unwrap();
        assert_eq!(outgoing.due().unwrap().1, Late::Unread);
        assert!(outgoing.answers().waiting.is_empty());
    }
}
