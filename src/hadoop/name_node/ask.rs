//! One question, to whichever NameNode answers.

use super::web_hdfs::{BadAnswer, Refused, refused};
use crate::hadoop::options::{NameNodeOptions, ServerOptions};
use crate::rest::{Address, AskError, Rest, Trust, backoff};
use crate::telemetry::hadoop::NameNodeMetrics;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// No NameNode could say: another time.
    Nobody,
    /// There is no such path.
    Missing,
    /// Whoever asks may not read it.
    Unreadable,
    /// It knows no such question.
    Unsupported,
    /// The answer is larger than what is read.
    TooLarge,
}

/// All NameNodes of a group, and connections to them.
pub(super) struct Servers {
    servers: Vec<Server>,
    trust: Option<Trust>,
    options: ServerOptions,
    /// Which one answered last.
    active: AtomicUsize,
    asks: Semaphore,
    health: Mutex<Health>,
    metrics: NameNodeMetrics,
}

struct Server {
    address: Address,
    idle: Mutex<Vec<Rest>>,
}

#[derive(Default)]
struct Health {
    /// Questions in a row that nobody could answer.
    failures: u32,
    /// Nobody is asked before.
    retry_at: Option<Instant>,
    /// When somebody answered last.
    heard: Option<Instant>,
}

impl Servers {
    pub(super) fn new(options: &NameNodeOptions, trust: Option<Trust>, metrics: NameNodeMetrics) -> Self {
        metrics.answers(false);
        let server = |address: &Address| Server { address: address.clone(), idle: Mutex::default() };
        Self {
            servers: options.servers.addresses.iter().map(server).collect(),
            trust,
            options: options.servers.clone(),
            active: AtomicUsize::new(0),
            asks: Semaphore::new(options.parallel),
            health: Mutex::default(),
            metrics,
        }
    }

    /// Whether nobody could answer the last question.
    pub(super) fn are_silent(&self) -> bool {
        self.health().failures > 0
    }

    /// When somebody answered last.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.health().heard
    }

    /// How long nobody is asked yet.
    pub(super) fn resting(&self) -> Duration {
        self.health().retry_at.map(|at| at.saturating_duration_since(Instant::now())).unwrap_or_default()
    }

    /// Asks one NameNode after the other, the one that answered last first; at most so many questions at one time as the
    /// options allow. While nobody answers, nobody is asked more often than the back-off allows.
    pub(super) async fn ask<T>(
        &self,
        question: &str,
        read: impl Fn(&[u8]) -> Result<T, BadAnswer>,
    ) -> Result<T, Unanswered> {
        let _turn = self.asks.acquire().await.map_err(|_| Unanswered::Nobody)?;
        if !self.resting().is_zero() {
            return Err(Unanswered::Nobody);
        }
        let (first, count) = (self.active.load(Ordering::Relaxed), self.servers.len());
        for at in (0..count).map(|turn| (first + turn) % count) {
            let server = &self.servers[at];
            let idle = lock(&server.idle).pop();
            let mut rest = idle.unwrap_or_else(|| self.options.rest(&server.address, self.trust.as_ref()));
            let mut answer = rest.get(question, &read).await;
            // A connection that was kept may have been closed at the other end just now.
            if matches!(answer, Err(AskError::Broken { .. })) {
                answer = rest.get(question, &read).await;
            }
            lock(&server.idle).push(rest);
            match self.judge(&server.address, answer) {
                Judged::Answer(answer) => {
                    self.spoke(at);
                    return answer;
                }
                Judged::Later => {
                    self.active.store(at, Ordering::Relaxed);
                    break;
                }
                Judged::Next => {}
            }
        }
        self.failed();
        Err(Unanswered::Nobody)
    }

    fn judge<T>(&self, address: &Address, answer: Result<T, AskError<BadAnswer>>) -> Judged<T> {
        let error = match answer {
            Ok(answer) => {
                self.metrics.asked("answered");
                return Judged::Answer(Ok(answer));
            }
            Err(error) => error,
        };
        let (word, judged) = match &error {
            AskError::Status { body, .. } => match refused(body) {
                Refused::Standby => ("standby", Judged::Next),
                Refused::Later => ("later", Judged::Later),
                Refused::Missing => ("missing", Judged::Answer(Err(Unanswered::Missing))),
                Refused::Unreadable => ("unreadable", Judged::Answer(Err(Unanswered::Unreadable))),
                Refused::Unsupported => ("unsupported", Judged::Answer(Err(Unanswered::Unsupported))),
                Refused::Other => (error.reason(), Judged::Next),
            },
            AskError::TooLarge { .. } => (error.reason(), Judged::Answer(Err(Unanswered::TooLarge))),
            _ => (error.reason(), Judged::Next),
        };
        self.metrics.asked(word);
        // The first of many is worth a line; what is wrong with a path, the hint says.
        if matches!(judged, Judged::Answer(_)) || word == "standby" || self.are_silent() {
            tracing::debug!(name_node = %address, %error, "the question has no answer here");
        } else {
            tracing::warn!(name_node = %address, %error, "locations stay as they were told last");
        }
        judged
    }

    fn spoke(&self, at: usize) {
        let mut health = self.health();
        if health.failures > 0 || health.heard.is_none() || self.active.load(Ordering::Relaxed) != at {
            tracing::info!(name_node = %self.servers[at].address, "it answers");
        }
        *health = Health { failures: 0, retry_at: None, heard: Some(Instant::now()) };
        drop(health);
        self.active.store(at, Ordering::Relaxed);
        self.metrics.answers(true);
    }

    fn failed(&self) {
        let mut health = self.health();
        // Questions that were on their way together are one failure.
        if health.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        health.failures = health.failures.saturating_add(1);
        health.retry_at = Some(Instant::now() + backoff(health.failures, self.options.backoff, rand::random()));
        drop(health);
        self.metrics.answers(false);
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }
}

/// What an answer means for the question.
enum Judged<T> {
    /// It is answered.
    Answer(Result<T, Unanswered>),
    /// Nobody knows better, yet.
    Later,
    /// Another one may know.
    Next,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
