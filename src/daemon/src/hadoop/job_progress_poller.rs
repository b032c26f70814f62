//! Asks ApplicationMasters of running MapReduce jobs how far their shuffles are, through the web proxy of whichever
//! ResourceManager leads. Nobody waits for an answer: [`ShuffleProgress`] keeps what was said last.

use super::job_progress::{self, REDUCES_LISTED};
use super::options::ServerOptions;
use super::resource_manager::{Active, BadAnswer, with_user};
use crate::rest_advice::place;
use crate::rest_client::{Address, Rest, RestError, Trust};
use crate::runtime::Daemon;
use crate::runtime::shuffle_progress::ShuffleProgress;
use crate::telemetry::hadoop::HadoopMetrics;
use crate::telemetry::rate_limited_log::RateLimitedLog;
use hintd_engine::holding::Shuffle;
use hintd_model::units::{ApplicationId, AttemptId, Micros};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Jobs that are asked at one time: the proxy holds a thread of the ResourceManager's web server for each.
const AT_ONCE: usize = 4;
/// Between two looks at whose turn it is.
const TICK: Duration = Duration::from_millis(200);
/// The largest answer that is read: counters of a job take some 10 kB, 2,000 reduces some 700 kB.
const ANSWER_BYTES: usize = 4 << 20;

/// Why a job's progress is not known.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Ask(#[from] RestError<BadAnswer>),
    /// The proxy sends us elsewhere: the application has ended, or has no web interface.
    #[error("{path}: redirected to \"{}\", which is not followed", place(location))]
    Redirected { path: String, location: String },
}

impl Failure {
    const fn reason(&self) -> &'static str {
        match self {
            Self::Ask(error) => error.reason(),
            Self::Redirected { .. } => "redirected",
        }
    }
}

/// A question that is due.
struct DueAsk {
    /// The ResourceManager to ask, by its place.
    at: usize,
    attempt: AttemptId,
    /// How often it is asked about the attempt.
    every: Micros,
}

/// One job after the other, some at a time.
pub(super) struct JobProgressPoller {
    servers: ServerOptions,
    trust: Option<Trust>,
    daemon: Daemon,
    metrics: HadoopMetrics,
    active: watch::Receiver<Active>,
    seldom: RateLimitedLog,
}

impl JobProgressPoller {
    pub(super) fn new(
        servers: ServerOptions,
        trust: Option<Trust>,
        daemon: Daemon,
        metrics: HadoopMetrics,
        active: watch::Receiver<Active>,
    ) -> Self {
        daemon.shuffle_progress().is_watched();
        Self { servers, trust, daemon, metrics, active, seldom: RateLimitedLog::default() }
    }

    pub(super) async fn run(self) {
        let poller = Arc::new(self);
        // Ends all of them when this ends.
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < AT_ONCE
                && let Some(due) = poller.next()
            {
                under_way.spawn(Arc::clone(&poller).look(due));
            }
            tokio::select! {
                Some(_) = under_way.join_next() => {}
                () = poller.table().news() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    fn table(&self) -> &ShuffleProgress {
        self.daemon.shuffle_progress()
    }

    fn next(&self) -> Option<DueAsk> {
        let every = self.daemon.settings().hold_progress?;
        let (at, _) = (*self.active.borrow())?;
        Some(DueAsk { at, attempt: self.table().next(self.daemon.clock().now())?, every })
    }

    async fn look(self: Arc<Self>, due: DueAsk) {
        let DueAsk { at, attempt, every } = due;
        let found = self.ask(at, attempt.application).await;
        let now = self.daemon.clock().now();
        self.metrics.progress_asked(found.as_ref().err().map(Failure::reason));
        match found {
            Ok(shuffle) => {
                tracing::debug!(%attempt, ?shuffle, "its ApplicationMaster says how far its shuffle is");
                self.table().answered(attempt, shuffle, now, every);
            }
            Err(error) => {
                self.table().failed(attempt, now, every);
                if let Some(times) = self.seldom.due() {
                    tracing::info!(%attempt, %error, times, "how far its shuffle is, its ApplicationMaster does not say");
                }
            }
        }
    }

    /// The shuffle as its ApplicationMaster has it; `None`: it can't tell yet.
    async fn ask(&self, at: usize, application: ApplicationId) -> Result<Option<Shuffle>, Failure> {
        let proxy = &self.servers.addresses[at];
        let most = self.servers.answer_bytes.min(ANSWER_BYTES);
        let mut rest = Rest::at(proxy, self.trust.as_ref(), self.servers.timeout, most);
        let mut ask = Ask { rest: &mut rest, proxy, user: &self.servers.user, application };
        let path = job_progress::job_path(application);
        let tasks = ask.get(&path, |body| job_progress::job_tasks(body, application)).await?;
        if tasks.reduces.total == 0 || tasks.maps.completed == 0 {
            return Ok(None);
        }
        let path = job_progress::counters_path(application);
        let counted = ask.get(&path, |body| job_progress::counted(body, application)).await?;
        // As long as maps run, no reduce has all of its bytes.
        let listed = tasks.maps.completed == tasks.maps.total && tasks.reduces.total <= REDUCES_LISTED;
        let received = if listed {
            let path = job_progress::reduces_path(application);
            Some(ask.get(&path, |body| job_progress::received(body, tasks)).await?)
        } else {
            None
        };
        Ok(job_progress::shuffle(tasks, counted, received))
    }
}

/// Questions to one ApplicationMaster.
struct Ask<'a> {
    rest: &'a mut Rest,
    proxy: &'a Address,
    user: &'a str,
    application: ApplicationId,
}

impl Ask<'_> {
    /// Follows one redirect within the application at the same proxy, and no other.
    async fn get<T>(&mut self, path: &str, read: impl Fn(&[u8]) -> Result<T, BadAnswer>) -> Result<T, Failure> {
        let path = with_user(path, self.user);
        let to = match self.rest.get(&path, &read).await {
            Err(error) => self.follow(&path, error)?,
            found => return Ok(found?),
        };
        self.rest.get(&to, &read).await.map_err(|error| match moved(&error) {
            Some(location) => Failure::Redirected { path: to.clone(), location },
            None => error.into(),
        })
    }

    fn follow(&self, path: &str, error: RestError<BadAnswer>) -> Result<String, Failure> {
        let Some(location) = moved(&error) else { return Err(error.into()) };
        job_progress::redirected(&location, self.proxy, self.application)
            .ok_or_else(|| Failure::Redirected { path: path.to_owned(), location })
    }
}

/// Where a redirect leads.
fn moved(error: &RestError<BadAnswer>) -> Option<String> {
    match error {
        RestError::Status { status, location, .. } if status.is_redirection() => {
            Some(location.clone().unwrap_or_default())
        }
        _ => None,
    }
}
