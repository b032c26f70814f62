//! What is asked of each kind of history server: MapReduce's JobHistoryServer and Spark's.

use super::applications;
use super::history_poller::{HistoryKind, HistoryServer, Listed, Look};
use super::history_server::{self, JOBS, JobConf, JobSeen, jobs_path};
use super::options::ResourceManagerOptions;
use super::resource_manager::BadAnswer;
use super::spark_history::{self, SparkRun};
use crate::rest_client::{RestError, TrustError};
use hintd_model::units::{ApplicationId, Micros};
use std::sync::Arc;

/// MapReduce's JobHistoryServer.
pub(super) struct MapReduceHistory;

impl Listed for JobSeen {
    fn id(&self) -> &str {
        &self.id
    }

    fn finished_ms(&self) -> u64 {
        self.finished_ms
    }

    fn key(&self) -> Arc<str> {
        history_server::key(&self.user, &self.name)
    }

    fn took(&self) -> Option<(ApplicationId, Micros)> {
        Self::took(self)
    }
}

impl HistoryKind for MapReduceHistory {
    type Run = JobSeen;

    fn source(&self) -> &'static str {
        "history_server"
    }

    fn list_path(&self, from_ms: u64) -> String {
        jobs_path(from_ms)
    }

    fn list(&self, body: &[u8]) -> Result<Vec<JobSeen>, BadAnswer> {
        history_server::jobs(body)
    }

    async fn look(&mut self, server: &mut HistoryServer, job: &JobSeen) -> Result<Look, RestError<BadAnswer>> {
        let of = |part: &str| format!("{JOBS}/{}/{part}", job.id);
        let conf = match server.get(&of("conf"), history_server::conf).await {
            Ok(conf) => conf,
            // Configurations have access lists of their own, and may be large: then there are no paths.
            Err(RestError::Status { .. } | RestError::TooLarge { .. }) => JobConf::default(),
            Err(error) => return Err(error),
        };
        let counted = server.get(&of("counters"), history_server::counted).await?;
        let times = match server.get(&format!("{JOBS}/{}", job.id), history_server::times).await {
            Ok(times) => times,
            // Edges and paths are known all the same.
            Err(RestError::Status { .. } | RestError::Nonsense { .. } | RestError::TooLarge { .. }) => None,
            Err(error) => return Err(error),
        };
        let key = history_server::key(&job.user, conf.name.as_deref().unwrap_or(&job.name));
        Ok(Look::Learned(key, history_server::run(job, &conf, counted, times)))
    }
}

/// Spark's history server, and the ResourceManagers, who know what an application was called when it was submitted: in
/// cluster mode its driver may give itself another name later, and the ResourceManager's processor goes by the first.
pub(super) struct SparkHistory {
    /// None: the name is Spark's own.
    managers: Vec<HistoryServer>,
}

impl SparkHistory {
    pub(super) fn new(managers: Option<&ResourceManagerOptions>) -> Result<Self, TrustError> {
        let Some(ResourceManagerOptions { servers, .. }) = managers else { return Ok(Self { managers: Vec::new() }) };
        let trust = servers.trust()?;
        let manager = |address| HistoryServer::new(address, trust.as_ref(), servers);
        Ok(Self { managers: servers.addresses.iter().map(manager).collect() })
    }

    /// The key of the application; `None`: no ResourceManager answers now. One that none of them knows any more has Spark's.
    async fn key(&mut self, run: &SparkRun) -> Option<Arc<str>> {
        let mut unknown = self.managers.is_empty();
        for manager in &mut self.managers {
            match manager.get(&applications::one(run.application), applications::named).await {
                Ok(named) => return Some(history_server::recurring_key(&named.framework(), &named.user, &named.name)),
                Err(RestError::Status { status, body, .. }) => {
                    unknown |= applications::is_unknown(status.as_u16(), &body);
                }
                Err(_) => {}
            }
        }
        unknown.then(|| run.key())
    }
}

impl Listed for SparkRun {
    fn id(&self) -> &str {
        &self.id
    }

    fn finished_ms(&self) -> u64 {
        self.finished_ms
    }

    fn key(&self) -> Arc<str> {
        history_server::recurring_key("spark", &self.user, &self.name)
    }

    /// Spark's clock begins when the driver is up, so the ResourceManager's word is what runs are compared by.
    fn took(&self) -> Option<(ApplicationId, Micros)> {
        None
    }
}

impl HistoryKind for SparkHistory {
    type Run = SparkRun;

    fn source(&self) -> &'static str {
        "spark_history_server"
    }

    fn list_path(&self, from_ms: u64) -> String {
        spark_history::applications_path(from_ms)
    }

    fn list(&self, body: &[u8]) -> Result<Vec<SparkRun>, BadAnswer> {
        spark_history::applications(body)
    }

    async fn look(&mut self, server: &mut HistoryServer, run: &SparkRun) -> Result<Look, RestError<BadAnswer>> {
        if server.get(&run.unfinished_stages_path(), spark_history::rows).await? > 0 {
            return Ok(Look::Nothing);
        }
        let executors = server.get(&run.executors_path(), spark_history::executors).await?;
        let Some(learned) = spark_history::run(run, &executors) else { return Ok(Look::Nothing) };
        let key = self.key(run).await;
        Ok(key.map_or(Look::Later, |key| Look::Learned(key, learned)))
    }
}
