//! Asks JobHistoryServers for jobs that ended, and tells the engine what recurring jobs did.

use super::history_server::{self, JOBS, JobConf, JobSeen, jobs_path};
use super::options::HistoryServerOptions;
use super::resource_manager::BadAnswer;
use crate::rest_client::{Address, Rest, RestError, Trust, backoff};
use crate::runtime::Daemon;
use crate::runtime::servers::{Answered, Group, ServerFailure, ServerStatus};
use crate::telemetry::history_server::HistoryServerMetrics;
use hintd_engine::Refusal;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// A job shows up some time after it ended: its files are moved first.
const LATE: Duration = Duration::from_secs(600);
/// Of a job that comes again and again the last runs are looked at first: they say what the next one will do.
const RUNS: usize = 3;
/// So many are looked at in all, for the planner's book, when all are new: a week of an hourly job.
const RUNS_NOTED: usize = 7 * 24;

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
pub(super) struct Watch {
    options: HistoryServerOptions,
    address: Address,
    daemon: Daemon,
    metrics: HistoryServerMetrics,
    server: Rest,
    /// Jobs that ended before are not listed again, ms.
    from_ms: u64,
    /// Jobs that were looked at and may be listed again, with their ends.
    seen: BTreeMap<String, u64>,
    /// How it stands.
    group: Group,
}

impl Watch {
    pub(super) fn new(
        (address, trust): (&Address, Option<&Trust>),
        options: HistoryServerOptions,
        daemon: Daemon,
        metrics: HistoryServerMetrics,
    ) -> Self {
        let gauges = metrics.clone();
        let group = daemon
            .servers()
            .group("history_server", [address.to_string()], move |answers, age| gauges.age(answers, age));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            server: options.servers.rest(address, trust),
            from_ms: millis(now.saturating_sub(options.lookback)),
            address: address.clone(),
            options,
            daemon,
            metrics,
            seen: BTreeMap::new(),
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
        let (standing, reason) = (ServerStatus::Silent, error.reason());
        self.group.troubled(0, ServerFailure { standing, reason, error: error.to_string() });
        if self.group.nobody().is_some() {
            tracing::warn!(history_server = %self.address, %error, "recurring jobs stay as they were told last");
        }
    }

    /// Lists what ended, and looks at what is new; returns how much.
    async fn poll(&mut self) -> Result<usize, Failure> {
        let path = self.path(&jobs_path(self.from_ms));
        let listed = self.server.get(&path, history_server::jobs).await?;
        self.tell_ended(&listed).await?;
        let latest = listed.iter().map(|job| job.finished_ms).max().unwrap_or(0);
        let (due, passed) = due(listed, &self.seen);
        self.seen.extend(passed);
        let mut learnt = 0;
        for job in due.iter().take(self.options.jobs_per_poll) {
            match self.look(job).await {
                Ok(()) => learnt += 1,
                // Its files may be gone, or not be ours to read; the next one's may.
                Err(Failure::Ask(error @ RestError::Status { .. })) => {
                    tracing::debug!(history_server = %self.address, job = job.id, %error, "nothing is learnt from it");
                }
                Err(error) => return Err(error),
            }
            self.seen.insert(job.id.clone(), job.finished_ms);
        }
        let open = due.iter().skip(self.options.jobs_per_poll).map(|job| job.finished_ms).min().unwrap_or(u64::MAX);
        self.from_ms = self.from_ms.max(latest.saturating_sub(millis(LATE)).min(open));
        let from = self.from_ms;
        self.seen.retain(|_, finished| *finished >= from);
        Ok(learnt)
    }

    /// Tells how long those took that are compared with others. Whoever is told of twice counts once.
    async fn tell_ended(&self, listed: &[JobSeen]) -> Result<(), Failure> {
        let new = listed.iter().filter(|job| !self.seen.contains_key(&job.id));
        let ended: Vec<_> = new.filter_map(JobSeen::took).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let awaited = self.daemon.awaited_applications().await?;
        for (application, took) in ended.into_iter().filter(|(of, _)| awaited.binary_search(of).is_ok()) {
            self.daemon.application_ended(application, Some(took)).await?;
        }
        Ok(())
    }

    async fn look(&mut self, job: &JobSeen) -> Result<(), Failure> {
        let of = |part: &str| format!("{JOBS}/{}/{part}", job.id);
        let [conf, counters, whole] =
            [of("conf"), of("counters"), format!("{JOBS}/{}", job.id)].map(|path| self.path(&path));
        let conf = match self.server.get(&conf, history_server::conf).await {
            Ok(conf) => conf,
            // Configurations have access lists of their own, and may be large: then there are no paths.
            Err(RestError::Status { .. } | RestError::TooLarge { .. }) => JobConf::default(),
            Err(error) => return Err(error.into()),
        };
        let counted = self.server.get(&counters, history_server::counted).await?;
        let times = match self.server.get(&whole, history_server::times).await {
            Ok(times) => times,
            // Edges and paths are known all the same.
            Err(RestError::Status { .. } | RestError::Nonsense { .. } | RestError::TooLarge { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let key = history_server::key(&job.user, conf.name.as_deref().unwrap_or(&job.name));
        Ok(self.daemon.learnt(key, history_server::run(job, &conf, counted, times)).await?)
    }

    fn path(&self, path: &str) -> String {
        match self.options.servers.user.as_str() {
            "" => path.to_owned(),
            user => format!("{path}{}user.name={user}", if path.contains('?') { '&' } else { '?' }),
        }
    }
}

/// New jobs that are to be looked at, and those that need not be: of many runs of one job the last say enough. The last
/// few of each come first, then the others, both by their ends.
fn due(mut listed: Vec<JobSeen>, seen: &BTreeMap<String, u64>) -> (Vec<JobSeen>, BTreeMap<String, u64>) {
    listed.sort_by(|a, b| b.finished_ms.cmp(&a.finished_ms).then_with(|| b.id.cmp(&a.id)));
    listed.dedup_by(|a, b| a.id == b.id);
    let mut runs: BTreeMap<_, usize> = BTreeMap::new();
    let (mut last, mut others, mut passed) = (Vec::new(), Vec::new(), BTreeMap::new());
    for job in listed {
        let run = runs.entry(history_server::key(&job.user, &job.name)).or_default();
        *run += 1;
        if seen.contains_key(&job.id) {
            continue;
        }
        if *run <= RUNS {
            last.push(job);
        } else if *run <= RUNS_NOTED {
            others.push(job);
        } else {
            passed.insert(job.id, job.finished_ms);
        }
    }
    (last.into_iter().rev().chain(others.into_iter().rev()).collect(), passed)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
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
