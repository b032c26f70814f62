//! What is asked of each kind of history server: MapReduce's JobHistoryServer and Spark's.

use super::applications;
use super::history_poller::{HistoryKind, HistoryServer, Listed, Look, Trouble};
use super::history_server::{self, JOBS, JobConf, JobSeen, jobs_path};
use super::options::ResourceManagerOptions;
use super::resource_manager::{self, BadAnswer, INFO, Rows};
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

    fn list_path(&self, from_ms: u64, until_ms: Option<u64>) -> String {
        jobs_path(from_ms, until_ms)
    }

    fn list(&self, body: &[u8]) -> Result<Rows<JobSeen>, BadAnswer> {
        history_server::jobs(body)
    }

    async fn look(
        &mut self,
        server: &mut HistoryServer,
        job: &JobSeen,
        last: bool,
    ) -> Result<Look, RestError<BadAnswer>> {
        let of = |part: &str| format!("{JOBS}/{}/{part}", job.id);
        // What may be there at the next poll is waited for, as long as there is one.
        let is_gone = |error: &RestError<BadAnswer>| last || Trouble::of(error) == Trouble::Job;
        let conf = match server.get(&of("conf"), history_server::conf).await {
            Ok(conf) => Ok(conf),
            // Configurations have access lists of their own, and may be large: then there are no paths.
            Err(error @ (RestError::Status { .. } | RestError::TooLarge { .. })) if is_gone(&error) => {
                Ok(JobConf::default())
            }
            // Whether it tells anything of the job is seen next.
            Err(error) if Trouble::of(&error) == Trouble::Passing => Err(error),
            Err(error) => return Err(error),
        };
        let counted = server.get(&of("counters"), history_server::counted).await?;
        let conf = match conf {
            Ok(conf) => conf,
            Err(error) => return Ok(Look::InPart(error)),
        };
        let times = match server.get(&format!("{JOBS}/{}", job.id), history_server::times).await {
            Ok(times) => times,
            // Edges and paths are known all the same.
            Err(error @ (RestError::Status { .. } | RestError::Nonsense { .. } | RestError::TooLarge { .. }))
                if is_gone(&error) =>
            {
                if matches!(error, RestError::Nonsense { .. }) {
                    server.refused_part();
                }
                None
            }
            Err(error) if Trouble::of(&error) == Trouble::Passing => return Ok(Look::InPart(error)),
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
    /// Which one answered last.
    active: usize,
}

/// Why an application's key is not known.
enum KeyFailure {
    /// No ResourceManager leads now, whichever application is asked for.
    Nobody(RestError<BadAnswer>),
    /// One leads, and does not tell of this application.
    Refused(RestError<BadAnswer>),
}

/// No ResourceManager told of an application.
struct Untold {
    /// Why: of one that refused, if there is one.
    error: RestError<BadAnswer>,
    /// Who refused, and is there.
    refused: Vec<usize>,
}

impl SparkHistory {
    pub(super) fn new(managers: Option<&ResourceManagerOptions>) -> Result<Self, TrustError> {
        let Some(ResourceManagerOptions { servers, .. }) = managers else {
            return Ok(Self { managers: Vec::new(), active: 0 });
        };
        let trust = servers.trust()?;
        let manager = |address| HistoryServer::new(address, trust.as_ref(), servers);
        Ok(Self { managers: servers.addresses.iter().map(manager).collect(), active: 0 })
    }

    /// The key of the application. One that no ResourceManager knows any more has Spark's.
    async fn key(&mut self, run: &SparkRun) -> Result<Arc<str>, KeyFailure> {
        let Untold { error, refused } = match self.ask(run).await {
            Ok(key) => return Ok(key),
            Err(untold) => untold,
        };
        // One that does not lead has nothing to say, whether it refuses or sends elsewhere.
        match self.leader().await {
            None => Err(KeyFailure::Nobody(error)),
            Some(leader) if refused.contains(&leader) => Err(KeyFailure::Refused(error)),
            // Perhaps it leads since a moment ago. Else it fails at this application, and may answer for others.
            Some(_) => self.ask(run).await.map_err(|untold| KeyFailure::Refused(untold.error)),
        }
    }

    /// Asks one after the other, the one that answered last first.
    async fn ask(&mut self, run: &SparkRun) -> Result<Arc<str>, Untold> {
        let (first, count) = (self.active, self.managers.len());
        let path = applications::one(run.application);
        let (mut unknown, mut refusal, mut away, mut refused) = (false, None, None, Vec::new());
        for at in (0..count).map(|turn| (first + turn) % count) {
            match self.managers[at].get(&path, applications::named).await {
                Ok(named) => {
                    self.active = at;
                    return Ok(history_server::recurring_key(&named.framework(), &named.user, &named.name));
                }
                Err(RestError::Status { status, body, .. }) if applications::is_unknown(status.as_u16(), &body) => {
                    unknown = true;
                }
                Err(error) if is_away(&error) => away = Some(error),
                Err(error) => {
                    refused.push(at);
                    refusal = Some(error);
                }
            }
        }
        let untold = refusal.or(away).filter(|_| !unknown);
        untold.map_or_else(|| Ok(run.key()), |error| Err(Untold { error, refused }))
    }

    /// The one that says that it is the active one.
    async fn leader(&mut self) -> Option<usize> {
        for (at, manager) in self.managers.iter_mut().enumerate() {
            if manager.get(INFO, resource_manager::info).await.is_ok() {
                return Some(at);
            }
        }
        None
    }
}

/// Whether a ResourceManager does not lead, or does not answer, whatever is asked: one on standby sends elsewhere, or says
/// so in plain words.
fn is_away(error: &RestError<BadAnswer>) -> bool {
    match error {
        RestError::Status { status, .. } => status.is_redirection() || matches!(status.as_u16(), 502..=504),
        RestError::Nonsense { source, .. } => matches!(source, BadAnswer::Json { .. } | BadAnswer::NotActive(_)),
        RestError::TooLarge { .. } => false,
        RestError::Connect { .. }
        | RestError::Tls { .. }
        | RestError::Late { .. }
        | RestError::Broken { .. }
        | RestError::Address(_) => true,
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

    fn list_path(&self, from_ms: u64, until_ms: Option<u64>) -> String {
        spark_history::applications_path(from_ms, until_ms)
    }

    fn list(&self, body: &[u8]) -> Result<Rows<SparkRun>, BadAnswer> {
        spark_history::applications(body)
    }

    async fn look(
        &mut self,
        server: &mut HistoryServer,
        run: &SparkRun,
        _last: bool,
    ) -> Result<Look, RestError<BadAnswer>> {
        if server.get(&run.unfinished_stages_path(), spark_history::rows).await? > 0 {
            return Ok(Look::Nothing);
        }
        let executors = server.get(&run.executors_path(), spark_history::executors).await?;
        let Some(learned) = spark_history::run(run, &executors) else { return Ok(Look::Nothing) };
        Ok(match self.key(run).await {
            Ok(key) => Look::Learned(key, learned),
            Err(KeyFailure::Refused(error)) => Look::Refused(error),
            Err(KeyFailure::Nobody(error)) => Look::Nobody(error),
        })
    }
}
