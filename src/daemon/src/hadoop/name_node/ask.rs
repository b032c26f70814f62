//! One question, to whichever NameNode answers.

use super::web_hdfs::{BadAnswer, Refused, refused};
use crate::hadoop::options::{NameNodeOptions, ServerOptions};
use crate::rest_advice::server_failure;
use crate::rest_client::{Address, Rest, RestError, Trust, backoff};
use crate::runtime::servers::{Answered, Group, ServerFailure, ServerStatus, Servers as Asked};
use crate::telemetry::hadoop::NameNodeMetrics;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A NameNode that refused to say where blocks lie answers other questions: for so long its refusal holds.
const REFUSAL_HOLDS: Duration = Duration::from_secs(120);

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryFailure {
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
    /// How each stands.
    group: Group,
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
    pub(super) fn new(
        options: &NameNodeOptions,
        trust: Option<Trust>,
        asked: &Asked,
        metrics: NameNodeMetrics,
    ) -> Self {
        let (addresses, gauges) = (options.servers.addresses.iter().map(Address::to_string), metrics.clone());
        let gauges = move |answers, age| gauges.age(answers, age);
        let server = |address: &Address| Server { address: address.clone(), idle: Mutex::default() };
        Self {
            servers: options.servers.addresses.iter().map(server).collect(),
            trust,
            options: options.servers.clone(),
            active: AtomicUsize::new(0),
            asks: Semaphore::new(options.parallel),
            health: Mutex::default(),
            group: asked.group("name_node", addresses, gauges),
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
    ) -> Result<T, QueryFailure> {
        self.go_round(question, read, false).await
    }

    /// The same, of a question that is answered in safe mode, too.
    pub(super) async fn ask_idly<T>(
        &self,
        question: &str,
        read: impl Fn(&[u8]) -> Result<T, BadAnswer>,
    ) -> Result<T, QueryFailure> {
        self.go_round(question, read, true).await
    }

    async fn go_round<T>(
        &self,
        question: &str,
        read: impl Fn(&[u8]) -> Result<T, BadAnswer>,
        idle: bool,
    ) -> Result<T, QueryFailure> {
        let _turn = self.asks.acquire().await.map_err(|_| QueryFailure::Nobody)?;
        if !self.resting().is_zero() {
            return Err(QueryFailure::Nobody);
        }
        let (first, count) = (self.active.load(Ordering::Relaxed), self.servers.len());
        for at in (0..count).map(|turn| (first + turn) % count) {
            let server = &self.servers[at];
            let kept = lock(&server.idle).pop();
            let mut rest = kept.unwrap_or_else(|| self.options.rest(&server.address, self.trust.as_ref()));
            let mut answer = rest.get(question, &read).await;
            // A connection that was kept may have been closed at the other end just now.
            if matches!(answer, Err(RestError::Broken { .. })) {
                answer = rest.get(question, &read).await;
            }
            lock(&server.idle).push(rest);
            match self.judge(at, answer) {
                ResponseVerdict::Answer(answer) => {
                    self.spoke(at, idle);
                    return answer;
                }
                ResponseVerdict::Later => {
                    self.active.store(at, Ordering::Relaxed);
                    break;
                }
                ResponseVerdict::Next => {}
            }
        }
        self.failed();
        Err(QueryFailure::Nobody)
    }

    fn judge<T>(&self, at: usize, answer: Result<T, RestError<BadAnswer>>) -> ResponseVerdict<T> {
        let error = match answer {
            Ok(answer) => {
                self.metrics.asked("answered");
                return ResponseVerdict::Answer(Ok(answer));
            }
            Err(error) => error,
        };
        let (word, judged) = match &error {
            RestError::Status { body, .. } => match refused(body) {
                Refused::Standby => ("standby", ResponseVerdict::Next),
                Refused::Later => ("later", ResponseVerdict::Later),
                Refused::Missing => ("missing", ResponseVerdict::Answer(Err(QueryFailure::Missing))),
                Refused::Unreadable => ("unreadable", ResponseVerdict::Answer(Err(QueryFailure::Unreadable))),
                Refused::Unsupported => ("unsupported", ResponseVerdict::Answer(Err(QueryFailure::Unsupported))),
                Refused::Other => (error.reason(), ResponseVerdict::Next),
            },
            RestError::TooLarge { .. } => (error.reason(), ResponseVerdict::Answer(Err(QueryFailure::TooLarge))),
            _ => (error.reason(), ResponseVerdict::Next),
        };
        self.metrics.asked(word);
        let name_node = &self.servers[at].address;
        if matches!(judged, ResponseVerdict::Answer(_)) {
            tracing::debug!(%name_node, %error, "the question has no answer here"); // what is wrong with a path, the hint says
            return judged;
        }
        let stands = |status| ServerFailure::status(status, word, &error);
        let failure = match (&judged, word) {
            (_, "standby") => stands(ServerStatus::Standby),
            (ResponseVerdict::Later, _) if says_safe_mode(&error) => stands(ServerStatus::SafeMode),
            (ResponseVerdict::Later, _) => stands(ServerStatus::Busy),
            _ => server_failure(&error),
        };
        let status = failure.status;
        let news = self.group.troubled(at, failure);
        if news && status != ServerStatus::Standby && self.servers.len() > 1 {
            tracing::warn!(%name_node, %error, "it does not say where blocks lie");
        }
        judged
    }

    fn spoke(&self, at: usize, idle: bool) {
        let answered = match idle {
            true => self.group.answered_idly(at, REFUSAL_HOLDS),
            false => Some(self.group.answered(at)),
        };
        let name_node = &self.servers[at].address;
        match answered {
            Some(Answered { away: Some(away), .. }) => {
                tracing::info!(%name_node, away_s = away.as_secs_f64(), "it answers, after a time without any that did");
            }
            Some(Answered { moved: true, .. }) => tracing::info!(%name_node, "it answers"),
            _ => {}
        }
        *self.health() = Health { failures: 0, retry_at: None, heard: Some(Instant::now()) };
        self.active.store(at, Ordering::Relaxed);
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
        if let Some(error) = self.group.nobody() {
            let name_node = self.options.names();
            tracing::warn!(
                name_node,
                error,
                "no NameNode says where blocks lie: locations stay as they were told last"
            );
        }
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }
}

/// What an answer means for the question.
enum ResponseVerdict<T> {
    /// It is answered.
    Answer(Result<T, QueryFailure>),
    /// Nobody knows better, yet.
    Later,
    /// Another one may know.
    Next,
}

fn says_safe_mode(error: &RestError<BadAnswer>) -> bool {
    matches!(error, RestError::Status { body, .. } if body.contains("SafeMode") || body.contains("safe mode"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
