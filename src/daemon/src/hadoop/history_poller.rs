//! Asks history servers which jobs ended, and tells the engine what recurring jobs did: one poller, whatever the server.
//!
//! What is asked of a kind of server, and how its answers are read, is a [`HistoryKind`]'s (`history_kinds`).

use super::history_window::{HistoryWindow, Part};
use super::options::HistoryServerOptions;
use super::resource_manager::{BadAnswer, Rows, with_user};
use crate::rest_advice::server_failure;
use crate::rest_client::{Address, Rest, RestError, Trust, backoff};
use crate::runtime::Daemon;
use crate::runtime::servers::{Answered, Group};
use crate::telemetry::history_server::HistoryServerMetrics;
use hintd_engine::{LearnedRun, Refusal};
use hintd_model::units::{ApplicationId, Micros};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// A job shows up some time after it ended: its files are moved first.
const LATE: Duration = Duration::from_secs(600);
/// A server's clock may be ahead of ours by so much; a run of later than that says nothing, and is left out.
const AHEAD: Duration = Duration::from_secs(600);
/// Rows that were left out are remembered, so that each counts once: at most so many.
const LEFT_OUT_MAX: usize = 10_000;
/// Of a job that comes again and again the last runs are looked at first: they say what the next one will do.
const RUNS: usize = 3;
/// So many are looked at in all, for the planner's book, when all are new: a week of an hourly job.
const RUNS_NOTED: usize = 7 * 24;
/// So often a failure is held against a job, before it is passed over.
const TRIES: u32 = 3;
/// A poll ends where so many jobs failed and none was learnt from: it is the same for the others, and each answer may take
/// its time.
const FAILURES: usize = 10;

/// A finished job as a list has it.
pub(super) trait Listed: Send + Sync {
    /// Its id, which is safe in a path.
    fn id(&self) -> &str;
    /// When it ended, ms.
    fn finished_ms(&self) -> u64;
    /// The same for runs of one job, as far as the list tells.
    fn key(&self) -> Arc<str>;
    /// Its application, and how long after its submission it ended; `None`: that is not told.
    fn took(&self) -> Option<(ApplicationId, Micros)>;
}

/// What there is to learn of a finished job.
pub(super) enum Look {
    /// This, under this key.
    Learned(Arc<str>, LearnedRun),
    /// Nothing: it did not end well.
    Nothing,
    /// The server tells of this job, and fails at a part of it that may be there at the next poll.
    InPart(RestError<BadAnswer>),
    /// Who is to be asked beside the server answers, and does not tell of this one.
    Refused(RestError<BadAnswer>),
    /// Nobody answers who is to be asked beside the server, whichever job is asked for.
    Nobody(RestError<BadAnswer>),
}

/// What a failure at one job means to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is this job's, and for good: its files may be gone, or not ours to read, or make no sense.
    Job,
    /// It is this job's alone, and may be over at the next poll; others are asked for.
    Part,
    /// It may be this job's alone, and over at the next poll; others are asked for.
    Passing,
    /// The same, of who is asked beside the server.
    Refused,
    /// Nobody answers who is to be asked beside the server: it is so for all jobs, and nothing is held against this one.
    Nobody,
    /// The server does not answer, perhaps because of this job: the poll ends.
    Server,
}

impl Trouble {
    /// Of a history server's failure.
    pub(super) fn of(error: &RestError<BadAnswer>) -> Self {
        match error {
            RestError::Status { status, .. } if status.is_server_error() || status.as_u16() == 429 => Self::Passing,
            RestError::Status { .. }
            | RestError::Nonsense { .. }
            | RestError::TooLarge { .. }
            | RestError::Address(_) => Self::Job,
            RestError::Connect { .. } | RestError::Tls { .. } | RestError::Late { .. } | RestError::Broken { .. } => {
                Self::Server
            }
        }
    }
}

/// What came of looking at a job.
enum Looked {
    /// It was learnt from.
    Learnt,
    /// There is nothing to learn of it, or it is passed over.
    Over,
    /// It is asked for again at the next poll, unless it failed too often.
    Failed(Trouble, RestError<BadAnswer>),
    /// It is asked for again at the next poll, and no other can be told now.
    Nobody,
}

/// A job that was looked at in vain, and why.
struct FailedLook<'a, R> {
    run: &'a R,
    trouble: Trouble,
    error: RestError<BadAnswer>,
}

/// A job that is asked for again.
#[derive(Debug, Clone, Copy)]
struct FailedJob {
    /// How often that was held against it.
    times: u32,
    /// The poll at which it was asked for last.
    poll: u64,
    /// How many jobs had been learnt from by the end of that poll.
    learnt: u64,
}

/// A kind of history server.
pub(super) trait HistoryKind: Send + Sync + 'static {
    /// A row of its list.
    type Run: Listed;

    /// For status and logs.
    fn source(&self) -> &'static str;

    /// Where jobs are listed that succeeded and ended at or after `from_ms`, and by `until_ms`, where that is given.
    fn list_path(&self, from_ms: u64, until_ms: Option<u64>) -> String;

    /// The answer.
    ///
    /// # Errors
    /// [`BadAnswer`].
    fn list(&self, body: &[u8]) -> Result<Rows<Self::Run>, BadAnswer>;

    /// Asks for the rest of one job; `last`: it is passed over if this fails again, so what can be done without is.
    ///
    /// # Errors
    /// What the server failed by.
    fn look(
        &mut self,
        server: &mut HistoryServer,
        run: &Self::Run,
        last: bool,
    ) -> impl Future<Output = Result<Look, RestError<BadAnswer>>> + Send;
}

/// One server, asked as the configuration says.
pub(super) struct HistoryServer {
    rest: Rest,
    user: String,
    /// Parts of jobs that were refused and done without.
    refused_parts: u32,
}

impl HistoryServer {
    pub(super) fn new(address: &Address, trust: Option<&Trust>, options: &super::ServerOptions) -> Self {
        Self { rest: options.rest(address, trust), user: options.user.clone(), refused_parts: 0 }
    }

    /// A part of a job makes no sense, and the job is learnt from without it.
    pub(super) const fn refused_part(&mut self) {
        self.refused_parts += 1;
    }

    pub(super) async fn get<T>(
        &mut self,
        path: &str,
        read: impl FnOnce(&[u8]) -> Result<T, BadAnswer>,
    ) -> Result<T, RestError<BadAnswer>> {
        self.rest.get(&with_user(path, &self.user), read).await
    }
}

/// Why nothing was learnt.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Ask(#[from] RestError<BadAnswer>),
    /// The daemon stops.
    #[error(transparent)]
    Stopping(#[from] Refusal),
}

/// One server.
pub(super) struct HistoryPoller<K: HistoryKind> {
    kind: K,
    options: HistoryServerOptions,
    address: Address,
    daemon: Daemon,
    metrics: HistoryServerMetrics,
    server: HistoryServer,
    /// Jobs that ended before are not listed again, ms.
    from_ms: u64,
    /// Which part of the time since then is listed, where all of it is too much.
    window: HistoryWindow,
    /// When the last job ended that was listed, ms.
    latest_ms: u64,
    /// Rows of the list that were left out and counted.
    left_out: BTreeSet<String>,
    /// Jobs that were looked at and may be listed again, with their ends.
    seen: BTreeMap<String, u64>,
    /// Jobs that are asked for again.
    failed: BTreeMap<String, FailedJob>,
    /// Polls so far.
    polls: u64,
    /// Jobs that were learnt from so far.
    learnt: u64,
    /// How it stands.
    group: Group,
}

impl<K: HistoryKind> HistoryPoller<K> {
    pub(super) fn new(
        kind: K,
        (address, trust): (&Address, Option<&Trust>),
        options: HistoryServerOptions,
        daemon: Daemon,
        metrics: HistoryServerMetrics,
    ) -> Self {
        let gauges = metrics.clone();
        let group =
            daemon.servers().group(kind.source(), [address.to_string()], move |answers, age| gauges.age(answers, age));
        Self {
            kind,
            server: HistoryServer::new(address, trust, &options.servers),
            from_ms: ago_ms(options.lookback),
            window: HistoryWindow::default(),
            latest_ms: 0,
            left_out: BTreeSet::new(),
            address: address.clone(),
            options,
            daemon,
            metrics,
            seen: BTreeMap::new(),
            failed: BTreeMap::new(),
            polls: 0,
            learnt: 0,
            group,
        }
    }

    pub(super) async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let begun = Instant::now();
            let polled = self.poll().await;
            let wait = match polled {
                Ok(learnt) => {
                    self.answered(learnt);
                    failures = 0;
                    self.options.servers.poll.saturating_sub(begun.elapsed())
                }
                Err(Failure::Ask(error)) => {
                    failures = failures.saturating_add(1);
                    self.missed(&error);
                    backoff(failures, self.options.servers.backoff, rand::random())
                }
                Err(Failure::Stopping(_)) => return,
            };
            tokio::time::sleep(wait).await;
        }
    }

    fn answered(&self, learnt: usize) {
        self.metrics.asked(None);
        let history_server = &self.address;
        match self.group.answered(0) {
            Answered { away: Some(away), .. } => {
                tracing::info!(%history_server, jobs = learnt, away_s = away.as_secs_f64(), "it answers, after a time without");
            }
            Answered { moved, .. } if moved || learnt > 0 => {
                tracing::info!(%history_server, jobs = learnt, "finished jobs were learnt from");
            }
            Answered { .. } => {}
        }
    }

    fn missed(&self, error: &RestError<BadAnswer>) {
        self.metrics.asked(Some(error.reason()));
        self.group.troubled(0, server_failure(error));
        if self.group.nobody().is_some() {
            tracing::warn!(history_server = %self.address, %error, "recurring jobs stay as they were told last");
        }
    }

    /// Lists what ended, and looks at what is new; returns how much was learnt from.
    async fn poll(&mut self) -> Result<usize, Failure> {
        // However long one is asked for again: what is too old by now is given up.
        self.from_ms = self.from_ms.max(ago_ms(self.options.lookback.saturating_add(LATE)));
        let (listed, part) = self.list().await?;
        let now = ago_ms(Duration::ZERO);
        let listed = self.sound(listed, part, now);
        self.tell_ended(&listed).await?;
        let latest = listed.iter().map(|run| run.finished_ms().min(now)).max().unwrap_or(0);
        self.latest_ms = self.latest_ms.max(latest);
        let (mut due, passed) = due(listed, &self.seen);
        // Whoever was not asked for has the first turn, then whoever waited longest.
        due.sort_by_key(|run| self.failed.get(run.id()).map_or(0, |failed| failed.poll));
        self.seen.extend(passed);
        let learnt = self.look_at_each(&due).await?;
        let open: BTreeMap<&str, u64> = due
            .iter()
            .filter(|run| !self.seen.contains_key(run.id()))
            .map(|run| (run.id(), run.finished_ms()))
            .collect();
        self.failed.retain(|id, _| open.contains_key(id.as_str()));
        let first_open = open.values().min().copied();
        if first_open.is_none() {
            self.window.done(part, self.from_ms);
        }
        if part.until.is_none() {
            // What came late into a part that was listed before is listed once more.
            let listed = self.window.complete_at(self.latest_ms).saturating_sub(millis(LATE));
            self.from_ms = self.from_ms.max(listed.min(first_open.unwrap_or(u64::MAX)));
        }
        let from = self.from_ms;
        self.seen.retain(|_, finished| *finished >= from);
        Ok(learnt)
    }

    /// What ended in the part of the time that is due; a shorter part where that is more than an answer may have.
    async fn list(&mut self) -> Result<(Rows<K::Run>, Part), Failure> {
        let most = self.options.servers.answer_bytes;
        loop {
            let now = ago_ms(Duration::ZERO);
            let part = self.window.due(self.from_ms, now);
            let (kind, path) = (&self.kind, self.kind.list_path(part.from, part.until));
            let mut bytes = 0;
            let read = |body: &[u8]| {
                bytes = body.len();
                kind.list(body)
            };
            match self.server.get(&path, read).await {
                Ok(listed) => {
                    self.window.came(bytes, most);
                    return Ok((listed, part));
                }
                Err(error @ RestError::TooLarge { .. }) => {
                    self.metrics.asked(Some(error.reason()));
                    if self.window.too_large(part, now) {
                        // Not even the shortest: what ended in it is given up, for what came later.
                        self.metrics.passed_over(error.reason());
                        return Err(error.into());
                    }
                    tracing::info!(history_server = %self.address, %error, "a shorter part of the time is asked for");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What can be looked at of a list. The rest is left out, counted once, and said where nothing was left out before.
    fn sound(&mut self, listed: Rows<K::Run>, part: Part, now_ms: u64) -> Vec<K::Run> {
        let latest = now_ms.saturating_add(millis(AHEAD));
        let (sound, future): (Vec<_>, Vec<_>) = listed.rows.into_iter().partition(|run| run.finished_ms() <= latest);
        let odd = listed.left_out.into_iter().map(|row| (row.row, "nonsense", row.why.to_string()));
        let ended = |run: &K::Run| format!("it ended at {} ms, and now it is {now_ms}", run.finished_ms());
        let future = future.iter().map(|run| (run.id().to_owned(), "future", ended(run)));
        let known = std::mem::take(&mut self.left_out);
        let mut said = !known.is_empty();
        for (row, reason, why) in odd.chain(future) {
            if self.left_out.len() < LEFT_OUT_MAX && self.left_out.insert(row.clone()) && !known.contains(&row) {
                self.metrics.passed_over(reason);
                if !std::mem::replace(&mut said, true) {
                    tracing::warn!(history_server = %self.address, row, why, "rows of its list are left out");
                }
            }
        }
        if !part.is_whole() && known.len() < LEFT_OUT_MAX {
            self.left_out.extend(known); // they may be in another part
        }
        sound
    }

    /// Looks at one job after the other, as many as a poll may have; returns how many were learnt from.
    async fn look_at_each(&mut self, due: &[K::Run]) -> Result<usize, Failure> {
        let (before, mut troubled) = (self.learnt, Vec::new());
        self.polls += 1;
        for run in due.iter().take(self.options.jobs_per_poll) {
            match self.look_at(run).await? {
                Looked::Learnt => self.learnt += 1,
                Looked::Over => {}
                Looked::Failed(trouble, error) => {
                    troubled.push(FailedLook { run, trouble, error });
                    let all = self.learnt == before && troubled.len() >= FAILURES;
                    if all || trouble == Trouble::Server {
                        break;
                    }
                    continue;
                }
                Looked::Nobody => break,
            }
            self.seen.insert(run.id().to_owned(), run.finished_ms());
        }
        let alone = due.len() == 1;
        self.count_failures(before, troubled, alone)?;
        Ok(usize::try_from(self.learnt - before).unwrap_or(usize::MAX))
    }

    /// Counts failures of a poll, before which so many jobs had been learnt from.
    fn count_failures(
        &mut self,
        before: u64,
        troubled: Vec<FailedLook<'_, K::Run>>,
        alone: bool,
    ) -> Result<(), Failure> {
        let nobody_told = self.learnt == before;
        let several = troubled.len() > 1;
        let mut silent = None;
        for FailedLook { run, trouble, error } in troubled {
            let failed = FailedJob { times: 0, poll: self.polls, learnt: before };
            let failed = self.failed.entry(run.id().to_owned()).or_insert(failed);
            // Else it may be everybody's, as while HDFS can't be read. One that is due alone may wait long for others.
            let its_own = self.learnt > failed.learnt || trouble == Trouble::Part || alone && failed.times > 0;
            let times = failed.times + u32::from(its_own);
            *failed = FailedJob { times, poll: self.polls, learnt: self.learnt };
            if times >= TRIES {
                self.pass_over(run, &error);
                self.seen.insert(run.id().to_owned(), run.finished_ms());
            } else if trouble == Trouble::Server || trouble == Trouble::Passing && several && nobody_told {
                silent.get_or_insert(error);
            }
        }
        silent.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn look_at(&mut self, run: &K::Run) -> Result<Looked, Failure> {
        let last = self.failed.get(run.id()).is_some_and(|failed| failed.times + 1 >= TRIES);
        let looked = self.kind.look(&mut self.server, run, last).await;
        for _ in 0..std::mem::take(&mut self.server.refused_parts) {
            self.metrics.passed_over("part");
        }
        let (trouble, error) = match looked {
            Ok(Look::Learned(key, learned)) => {
                tracing::debug!(history_server = %self.address, job = run.id(), %key, ?learned, "it is learnt from");
                self.daemon.learnt(key, learned.ended_by(self.daemon.clock().now())).await?;
                return Ok(Looked::Learnt);
            }
            Ok(Look::Nothing) => return Ok(Looked::Over),
            Ok(Look::InPart(error)) => (Trouble::Part, error),
            Ok(Look::Refused(error)) => (Trouble::Refused, error),
            Ok(Look::Nobody(error)) => (Trouble::Nobody, error),
            Err(error) => (Trouble::of(&error), error),
        };
        match trouble {
            Trouble::Job => self.pass_over(run, &error),
            Trouble::Nobody => {
                tracing::debug!(history_server = %self.address, job = run.id(), %error, "nobody tells its name now");
                return Ok(Looked::Nobody);
            }
            Trouble::Part | Trouble::Passing | Trouble::Refused | Trouble::Server => {
                return Ok(Looked::Failed(trouble, error));
            }
        }
        Ok(Looked::Over)
    }

    fn pass_over(&self, run: &K::Run, error: &RestError<BadAnswer>) {
        self.metrics.passed_over(error.reason());
        tracing::debug!(history_server = %self.address, job = run.id(), %error, "nothing is learnt from it");
    }

    /// Tells how long those took that are compared with others. Whoever is told of twice counts once.
    async fn tell_ended(&self, listed: &[K::Run]) -> Result<(), Failure> {
        let new = listed.iter().filter(|run| !self.seen.contains_key(run.id()));
        let ended: Vec<_> = new.filter_map(Listed::took).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let awaited = self.daemon.awaited_applications().await?;
        for (application, took) in ended.into_iter().filter(|(of, _)| awaited.binary_search(of).is_ok()) {
            self.daemon.application_ended(application, Some(took)).await?;
        }
        Ok(())
    }
}

/// New jobs that are to be looked at, and those that need not be: of many runs of one job the last say enough. The last
/// few of each come first, then the others, both by their ends.
fn due<R: Listed>(mut listed: Vec<R>, seen: &BTreeMap<String, u64>) -> (Vec<R>, BTreeMap<String, u64>) {
    listed.sort_by(|a, b| b.finished_ms().cmp(&a.finished_ms()).then_with(|| b.id().cmp(a.id())));
    listed.dedup_by(|a, b| a.id() == b.id());
    let mut runs: BTreeMap<_, usize> = BTreeMap::new();
    let (mut last, mut others, mut passed) = (Vec::new(), Vec::new(), BTreeMap::new());
    for job in listed {
        let run = runs.entry(job.key()).or_default();
        *run += 1;
        if seen.contains_key(job.id()) {
            continue;
        }
        if *run <= RUNS {
            last.push(job);
        } else if *run <= RUNS_NOTED {
            others.push(job);
        } else {
            passed.insert(job.id().to_owned(), job.finished_ms());
        }
    }
    (last.into_iter().rev().chain(others.into_iter().rev()).collect(), passed)
}

/// So long ago, ms since 1970.
fn ago_ms(time: Duration) -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(time))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::history_server::JobSeen;
    use super::*;

    fn job(id: u32, name: &str, finished_ms: u64) -> JobSeen {
        let (id, user) = (format!("job_1_{id}"), "ann".to_owned());
        let submitted_ms = Some(finished_ms);
        JobSeen { id, name: name.to_owned(), user, submitted_ms, finished_ms, maps: 1, reduces: 1 }
    }

    fn ids(due: &[JobSeen]) -> Vec<&str> {
        due.iter().map(|job| job.id.as_str()).collect()
    }

    #[test]
    fn of_many_runs_of_a_job_the_last_are_looked_at_first_each_in_the_order_in_which_they_ended() {
        let mut listed: Vec<_> = (0..6).map(|at| job(at, &format!("etl {at}"), 100 - u64::from(at))).collect();
        listed.extend([job(7, "other", 50), job(8, "known", 60), job(0, "etl 0", 100)]);
        let (first, passed) = due(listed.clone(), &BTreeMap::from([("job_1_8".to_owned(), 60)]));
        let wanted = ["job_1_7", "job_1_2", "job_1_1", "job_1_0", "job_1_5", "job_1_4", "job_1_3"];
        assert_eq!(ids(&first), wanted, "job 0 was listed twice");
        assert!(passed.is_empty());
        let seen = first[..3].iter().map(|job| (job.id.clone(), job.finished_ms)).collect();
        let (rest, _) = due(listed, &seen);
        assert_eq!(ids(&rest), ["job_1_8", "job_1_0", "job_1_5", "job_1_4", "job_1_3"], "the last stay the last");
    }

    #[test]
    fn of_too_many_runs_of_a_job_the_oldest_are_passed_over() {
        let listed: Vec<_> = (0..200).map(|at| job(at, "etl", 1_000 - u64::from(at))).collect();
        let (due, passed) = due(listed, &BTreeMap::new());
        assert_eq!((due.len(), passed.len()), (RUNS_NOTED, 200 - RUNS_NOTED));
        assert!(passed.contains_key("job_1_199") && !passed.contains_key("job_1_167"));
    }
}
