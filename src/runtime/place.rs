//! The path of a request: look up, place, commit, place again where another was faster.

use super::command::{Command, Committed};
use super::daemon::Daemon;
use super::options::Settings;
use super::pool::Turn;
use crate::cluster::HintRequest;
use crate::engine::{Answer, Chosen, Generation, Mode, PlacerSettings, Proposal, Refusal, Token, may_wait};
use crate::engine::{propose, propose_waiting};
use crate::telemetry::metrics::Stage;
use crate::units::{DecisionId, Micros, RequestId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The policy whose placement others are compared with: what YARN does by itself.
const BASELINE: &str = "capacity";
/// Share of the time left that a search may use; the rest is for commit and disk.
const SEARCH_SHARE: u32 = 4; // all but a fourth
/// More than this is never kept back for commit and disk.
const RESERVE_MAX: Duration = Duration::from_millis(50);

/// One request on its way.
struct Journey {
    request: Arc<HintRequest>,
    settings: Arc<Settings>,
    mode: Mode,
    policy: &'static str,
    decision: DecisionId,
    began: Instant,
    deadline: Instant,
    /// Hints may come later, on Follow.
    follows: bool,
}

/// How a request is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// Nothing is leased and nothing remembered.
    pub what_if: bool,
    /// Its sender follows, or says that it will.
    pub follows: bool,
}

impl Daemon {
    /// Answers a request as `decision`.
    ///
    /// # Errors
    /// Whatever [`Refusal`] says; [`Refusal::DeadlineExceeded`] at the latest at `deadline`.
    pub async fn request(
        &self,
        request: HintRequest,
        digest: u64,
        decision: DecisionId,
        deadline: Instant,
        asked: Asked,
    ) -> Result<Arc<Answer>, Refusal> {
        let began = Instant::now();
        let follows = asked.follows || self.follows(request.attempt);
        let answer = async {
            if asked.what_if {
                let journey = self.journey(&Arc::new(request), decision, deadline, follows)?;
                return self.what_if(journey).await;
            }
            self.check_ready()?;
            if let Some(answer) = self.lookup(request.id.clone(), digest).await? {
                return Ok(answer);
            }
            let journey = self.journey(&Arc::new(request), decision, deadline, follows)?;
            self.travel(journey, digest).await
        };
        let found = tokio::time::timeout_at(deadline.into(), answer).await;
        let found = found.unwrap_or_else(|_| Err(passed(began, deadline)));
        if let Err(refusal) = &found {
            self.meters().refused(crate::server::status::code(refusal).1);
        }
        found
    }

    async fn lookup(&self, id: RequestId, digest: u64) -> Result<Option<Arc<Answer>>, Refusal> {
        if !self.0.shared.known.may_have(&id) {
            return Ok(None);
        }
        self.0.door.ask(|reply| Command::Lookup(id, digest, reply)).await?
    }

    async fn what_if(&self, journey: Journey) -> Result<Arc<Answer>, Refusal> {
        let mut proposal = self.propose(&journey, 0).await?;
        proposal.elapsed = micros(journey.began.elapsed());
        let decision = if proposal.waits() {
            self.0.door.ask(|reply| Command::Preview(Box::new(proposal), reply)).await??
        } else {
            proposal.preview()
        };
        Ok(Arc::new(Answer { decision, token: Token("".into()), digest: 0 }))
    }

    /// Places and commits what is not to wait.
    pub(super) async fn place(
        &self,
        request: &Arc<HintRequest>,
        digest: u64,
        decision: DecisionId,
        deadline: Instant,
    ) -> Result<Arc<Answer>, Refusal> {
        let journey = self.journey(request, decision, deadline, false)?;
        self.travel(journey, digest).await
    }

    /// Places and commits, again while others take the room first.
    async fn travel(&self, journey: Journey, digest: u64) -> Result<Arc<Answer>, Refusal> {
        let deadline = journey.deadline;
        let retries = journey.settings.placer.retries;
        let mut conflicts = 0;
        loop {
            let tried = Instant::now();
            let mut proposal = self.propose(&journey, conflicts).await?;
            // Another try would take as long again: where that is too late, this is the last.
            let late = tried.elapsed() * 2 > deadline.saturating_duration_since(Instant::now());
            proposal.decision = Some(journey.decision);
            proposal.digest = digest;
            proposal.conflicts = conflicts;
            proposal.last_try = late || conflicts >= retries;
            proposal.elapsed = micros(journey.began.elapsed());
            let last = proposal.last_try;
            let committing = Instant::now();
            let committed = self.0.door.ask(|reply| Command::Commit(Box::new(proposal), token(), reply)).await??;
            let took = committing.elapsed();
            match committed {
                Committed::Answer { answer, journal } => {
                    self.measured(&journey, &answer, took.saturating_sub(journal), journal);
                    return Ok(answer);
                }
                Committed::Conflict if last => {
                    return Err(Refusal::Unavailable {
                        message: format!("others took the room {} times", conflicts + 1),
                        retry_after: Micros::from_millis(100),
                    });
                }
                Committed::Conflict => conflicts += 1,
            }
        }
    }

    fn journey(
        &self,
        request: &Arc<HintRequest>,
        decision: DecisionId,
        deadline: Instant,
        follows: bool,
    ) -> Result<Journey, Refusal> {
        let settings = self.settings();
        let (mode, policy) = settings.choose(&request.queue, &request.framework, request.policy.as_deref())?;
        let (request, began) = (Arc::clone(request), Instant::now());
        Ok(Journey { request, settings, mode, policy, decision, began, deadline, follows })
    }

    /// One search on the pool, on the generation of this moment.
    async fn propose(&self, journey: &Journey, conflicts: u32) -> Result<Proposal, Refusal> {
        let generation = self.generation();
        let request = Arc::clone(&journey.request);
        let settings = Arc::clone(&journey.settings);
        let (mode, policy, began, deadline) = (journey.mode, journey.policy, journey.began, journey.deadline);
        let follows = journey.follows;
        let queued = Instant::now();
        let now = self.0.clock.now();
        let job = move |turn: Turn| {
            let started = Instant::now();
            if started >= deadline {
                return Err(passed(began, deadline));
            }
            let left = deadline - started;
            let search_until = deadline - (left / SEARCH_SHARE).min(RESERVE_MAX);
            let proposal = search(&generation, &request, &settings, (mode, policy, follows), turn, now, search_until)?;
            Ok((proposal, started - queued, started.elapsed()))
        };
        let (proposal, waited, searched) = self.0.pool.run(job).await??;
        self.meters().request(policy, &[(Stage::Queue, waited), (Stage::Place, searched)], None);
        tracing::debug!(policy, conflicts, generation = proposal.generation, ?waited, ?searched, "placed");
        Ok(proposal)
    }

    fn measured(&self, journey: &Journey, answer: &Answer, commit: Duration, journal: Duration) {
        let stages = [(Stage::Commit, commit), (Stage::Journal, journal), (Stage::Total, journey.began.elapsed())];
        self.meters().request(journey.policy, &stages, Some(answer.decision.steps));
        self.meters().add("requests_answered", 1);
    }
}

/// The pure part, on a thread of the pool.
fn search(
    generation: &Generation,
    request: &Arc<HintRequest>,
    settings: &Settings,
    (mode, policy, follows): (Mode, &'static str, bool),
    turn: Turn,
    now: crate::units::Timestamp,
    until: Instant,
) -> Result<Proposal, Refusal> {
    let built = &settings.policies.built;
    let found = built.get(policy).expect("`choose` names policies that are built");
    let baseline = built.get(BASELINE);
    let chosen = Chosen { policy: &**found, baseline: &**baseline.unwrap_or(found), mode, name: policy };
    let placer = PlacerSettings {
        steps: turn.steps(settings.placer.steps),
        fallbacks: settings.placer.fallbacks,
        baseline: settings.placer.baseline && baseline.is_some(),
        containers_max: settings.limits.containers,
        max_age: settings.engine.max_age,
        pairs_max: settings.engine.routes.pairs_max,
        min_bytes: settings.engine.routes.min_bytes,
    };
    if follows && may_wait(request, &chosen) {
        return propose_waiting(generation, request, &chosen, found, &placer, now);
    }
    propose(generation, request, &chosen, &placer, now, &mut || Instant::now() >= until)
}

/// 128 random bits: what an attempt shows for its own.
fn token() -> Token {
    Token(format!("{:032x}", rand::random::<u128>()).into())
}

fn passed(began: Instant, deadline: Instant) -> Refusal {
    let whole = deadline.saturating_duration_since(began).as_millis();
    Refusal::DeadlineExceeded(u64::try_from(whole).unwrap_or(u64::MAX))
}

fn micros(span: Duration) -> Micros {
    Micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}
