//! The path of a request: look up, place, commit, place again where another was faster.

use super::command::{Command, Committed, SetApart};
use super::daemon::Daemon;
use super::options::Settings;
use super::pool::Turn;
use crate::telemetry::metrics::Stage;
use hintd_engine::records::{Came, Probe, Seen};
use hintd_engine::{
    Answer, AtOnce, Chosen, Generation, Mode, PlacerSettings, PlannedRun, Proposal, Refusal, Token, is_chained,
    late_of, may_wait, propose, propose_waiting,
};
use hintd_model::cluster::{Dataset, HintRequest};
use hintd_model::units::{DecisionId, Micros, RequestId, Timestamp};
use hintd_policy::Policy;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The policy whose placement others are compared with: what YARN does by itself.
const BASELINE: &str = "capacity";
/// Share of the time left that a search may use; the rest is for commit and disk.
const SEARCH_SHARE: u32 = 4; // all but a fourth
/// More than this is kept back only where commits take longer.
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
    /// Whether it is to be recorded.
    recorded: bool,
    /// The daemon's own: for tasks that were asked for before.
    again: bool,
    /// Its run takes its place in the plan in force, where it is answered at once.
    takes: bool,
    /// What is known of its paths, where somebody is asked.
    located: Option<Arc<[String]>>,
    /// How its run stands to the plan in force, where it is answered at once.
    planned: Option<Arc<PlannedRun>>,
    /// What its run takes its place by.
    at_once: Option<Box<AtOnce>>,
}

/// A request that was refused.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// Its search is recorded under the id that the decision would have had.
    pub recorded: bool,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, recorded: false }
    }
}

/// What a search was made of.
struct MadeOf {
    generation: Arc<Generation>,
    placer: PlacerSettings,
    now: Timestamp,
    /// At which look the deadline ended it.
    stopped: Option<u64>,
}

struct Searched {
    made_of: MadeOf,
    found: Result<Proposal, Refusal>,
    ended: Instant,
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
    /// Whatever [`Refused::refusal`] says; [`Refusal::DeadlineExceeded`] at the latest at `deadline`.
    pub async fn request(
        &self,
        request: HintRequest,
        digest: u64,
        decision: DecisionId,
        deadline: Instant,
        asked: Asked,
    ) -> Result<Arc<Answer>, Refused> {
        let began = Instant::now();
        let follows = asked.follows || self.follows(request.attempt);
        let answer = async {
            if asked.what_if {
                let journey = self.journey(&Arc::new(request), decision, deadline, follows)?;
                let journey = Journey { recorded: false, takes: false, ..journey };
                let journey = self.informed(journey).await?;
                return Ok(self.what_if(journey).await?);
            }
            self.check_ready()?;
            if let Some(answer) = self.lookup(request.id.clone(), digest).await? {
                return Ok(answer);
            }
            let journey = self.journey(&Arc::new(request), decision, deadline, follows)?;
            self.travel(self.informed(journey).await?, digest).await
        };
        let found = tokio::time::timeout_at(deadline.into(), answer).await;
        found.unwrap_or_else(|_| Err(passed(began, deadline).into()))
    }

    async fn lookup(&self, id: RequestId, digest: u64) -> Result<Option<Arc<Answer>>, Refusal> {
        if !self.0.shared.known.may_have(&id) {
            return Ok(None);
        }
        self.0.door.ask(|reply| Command::Lookup { id, digest, reply }).await?
    }

    /// The path of a request up to its commit. A dispatcher decides on a desk set apart, on the pool: the engine's thread
    /// only copies its State.
    async fn what_if(&self, journey: Journey) -> Result<Arc<Answer>, Refusal> {
        let mut proposal = self.propose(&journey, 0).await?.found?;
        proposal.elapsed = micros(journey.began.elapsed());
        let decision = if proposal.waits() {
            let proposal = Box::new(proposal);
            let SetApart { proposal, desk } = self.0.door.ask(|reply| Command::Apart { proposal, reply }).await??;
            let decide = move |_| match desk {
                Some(desk) => desk.preview(*proposal),
                None => proposal.preview(),
            };
            self.0.pool.run(journey.deadline, decide).await?
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
        let journey = Journey { again: true, ..self.journey(request, decision, deadline, false)? };
        self.travel(self.informed(journey).await?, digest).await.map_err(|refused| refused.refusal)
    }

    /// Places and commits, again while others take the room first.
    async fn travel(&self, mut journey: Journey, digest: u64) -> Result<Arc<Answer>, Refused> {
        let deadline = journey.deadline;
        let retries = journey.settings.placer.retries;
        let mut conflicts = 0;
        loop {
            let tried = Instant::now();
            let Searched { made_of, found, ended } = self.propose(&journey, conflicts).await?;
            let mut proposal = match found {
                Ok(proposal) => proposal,
                Err(refusal) => return Err(self.refused(&journey, made_of, refusal)),
            };
            // Another try would take as long again: where that is too late, this is the last.
            let late = tried.elapsed() * 2 > deadline.saturating_duration_since(Instant::now());
            proposal.at_once.clone_from(&journey.at_once);
            proposal.decision = Some(journey.decision);
            proposal.digest = digest;
            proposal.conflicts = conflicts;
            proposal.last_try = late || conflicts >= retries;
            proposal.elapsed = micros(journey.began.elapsed());
            let last = proposal.last_try;
            let kept = journey.recorded.then(|| (proposal.paths_read(), proposal.to_compare()));
            let committing = Instant::now();
            let on_its_way = self.0.pool.commits(ended);
            let proposal = Box::new(proposal);
            let committed = self.0.door.ask(|reply| Command::Commit { proposal, token: token(), reply }).await;
            match &committed {
                Ok(Ok(Committed::Answer { .. })) => drop(on_its_way),
                _ => on_its_way.forget(),
            }
            let committed = committed??;
            let took = committing.elapsed();
            match committed {
                Committed::Answer { answer, journal, desk } => {
                    self.measured(&journey, &answer, took.saturating_sub(journal), journal);
                    // A repeat of a request in flight gets the first one's answer, which has its own record.
                    if let Some((read, draft)) = kept.filter(|_| answer.decision.id == journey.decision) {
                        let came = Came::Answered { answer: Arc::clone(&answer), draft, desk };
                        let _ = self.0.recorder.see(journey.seen(made_of, Some(read), came)); // counted where it was not
                    }
                    return Ok(answer);
                }
                Committed::Conflict if last => {
                    let message = format!("others took the room {} times", conflicts + 1);
                    return Err(Refusal::Unavailable { message, retry_after: Micros::from_millis(100) }.into());
                }
                Committed::Conflict => {
                    conflicts += 1;
                    // Others may have taken its place in the plan as well.
                    journey = self.planned(journey).await?;
                }
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
        // Where nothing is computed there is nothing to make again.
        let recorded = mode != Mode::Off && settings.engine.records.takes(decision);
        // In shadow nobody follows the plan.
        let (again, takes) = (false, mode == Mode::On);
        let (located, planned, at_once) = (None, None, None);
        Ok(Journey {
            request,
            settings,
            mode,
            policy,
            decision,
            began,
            deadline,
            follows,
            recorded,
            again,
            takes,
            located,
            planned,
            at_once,
        })
    }

    /// With all that others know of it.
    async fn informed(&self, journey: Journey) -> Result<Journey, Refusal> {
        self.planned(self.located(journey).await).await
    }

    /// With how its run stands to the plan in force, where its policy follows plans and it does not wait.
    async fn planned(&self, journey: Journey) -> Result<Journey, Refusal> {
        let generation = self.generation();
        let journey = Journey { planned: None, at_once: None, ..journey };
        let policy = policies(&journey.settings, journey.policy).0;
        let follows_plans = journey.mode != Mode::Off && policy.as_plan().is_some();
        let Some(plan) = generation.plan.as_ref().filter(|_| follows_plans) else { return Ok(journey) };
        // What waited for its planned racks for too long goes anywhere.
        let late = journey.again && late_of(&journey.request.id).is_some();
        if late || journey.waits(&generation) {
            return Ok(journey);
        }
        let run = match AtOnce::of(&journey.request, plan, (policy, journey.policy), journey.again) {
            Ok(run) => Box::new(run),
            Err(without_key) => return Ok(Journey { planned: Some(Arc::from(without_key)), ..journey }),
        };
        let at_once = run.clone();
        let stands = self.0.door.ask(|reply| Command::WouldStand { run, reply }).await?;
        let at_once = Some(at_once).filter(|_| journey.takes);
        Ok(Journey { at_once, planned: stands.map(Arc::new), ..journey })
    }

    /// With what is known of its paths, where hints are computed at all.
    async fn located(&self, journey: Journey) -> Journey {
        if journey.mode == Mode::Off {
            return journey;
        }
        let located = self.locate(&journey.request, journey.deadline).await;
        Journey { located, ..journey }
    }

    fn refused(&self, journey: &Journey, made_of: MadeOf, refusal: Refusal) -> Refused {
        let recorded = journey.recorded && {
            let (decision, at) = (journey.decision, self.0.clock.now());
            let came = Came::Refused { decision, at, refusal: refusal.clone() };
            self.0.recorder.see(journey.seen(made_of, None, came))
        };
        Refused { refusal, recorded }
    }

    /// One search on the pool, on the generation of the moment that it begins: on that of its queueing it would find
    /// what others took meanwhile, lose its commit, and queue again.
    async fn propose(&self, journey: &Journey, conflicts: u32) -> Result<Searched, Refusal> {
        let daemon = self.clone();
        let request = Arc::clone(&journey.request);
        let settings = Arc::clone(&journey.settings);
        let (mode, policy, began, deadline) = (journey.mode, journey.policy, journey.began, journey.deadline);
        let (follows, located, planned) = (journey.follows, journey.located.clone(), journey.planned.clone());
        let queued = Instant::now();
        let job = move |turn: Turn| {
            let started = Instant::now();
            if started >= deadline {
                return Err(passed(began, deadline));
            }
            let (generation, now) = (daemon.generation(), daemon.0.clock.now());
            let left = deadline - started;
            // At least as much as commits take now; but half is for the search, which may be worth more than it looks.
            let reserve = (left / SEARCH_SHARE).min(RESERVE_MAX).max(turn.commits.min(left / 2));
            let search_until = deadline - reserve;
            let placer = PlacerSettings { located, planned, ..placer(&settings, turn) };
            let mut probe = Probe::default();
            let mut stop = || probe.look(Instant::now() >= search_until);
            let way = Way { mode, policy, follows };
            let found = search(&generation, &request, &settings, way, &placer, now, &mut stop);
            let stopped = probe.stopped();
            let made_of = MadeOf { generation, placer, now, stopped };
            let ended = Instant::now();
            Ok((Searched { made_of, found, ended }, started - queued, ended - started))
        };
        let (searched, waited, took) = self.0.pool.run(deadline, job).await??;
        self.meters().request(policy, &[(Stage::Queue, waited), (Stage::Place, took)], None);
        tracing::debug!(policy, conflicts, generation = searched.made_of.generation.number, ?waited, ?took, "placed");
        Ok(searched)
    }

    fn measured(&self, journey: &Journey, answer: &Answer, commit: Duration, journal: Duration) {
        let stages = [(Stage::Commit, commit), (Stage::Journal, journal), (Stage::Total, journey.began.elapsed())];
        self.meters().request(journey.policy, &stages, Some(answer.decision.steps));
        self.meters().add("requests_answered", 1);
    }
}

impl Journey {
    /// Whether it waits for a dispatcher.
    fn waits(&self, generation: &Generation) -> bool {
        let (_, chosen) = chosen(&self.settings, self.policy, self.mode);
        let chained = || is_chained(generation, &self.request, &self.settings.engine.routes.chains);
        self.follows && may_wait(&self.request, &chosen) && !chained()
    }

    fn seen(&self, made_of: MadeOf, read: Option<Vec<Arc<Dataset>>>, came: Came) -> Seen {
        let (policy, baseline) = policies(&self.settings, self.policy);
        let MadeOf { generation, placer, now, stopped } = made_of;
        Seen {
            request: Arc::clone(&self.request),
            policy: Arc::clone(policy),
            name: self.policy.into(),
            baseline: Arc::clone(baseline),
            mode: self.mode,
            settings: placer,
            now,
            stopped,
            follows: self.follows,
            generation,
            read,
            came,
        }
    }
}

/// The chosen policy, and the default placement's.
fn policies<'s>(settings: &'s Settings, policy: &str) -> (&'s Arc<dyn Policy>, &'s Arc<dyn Policy>) {
    let built = &settings.policies.built;
    let found = built.get(policy).expect("`choose` names policies that are built");
    (found, built.get(BASELINE).unwrap_or(found))
}

fn placer(settings: &Settings, turn: Turn) -> PlacerSettings {
    PlacerSettings {
        steps: turn.steps(settings.placer.steps),
        fallbacks: settings.placer.fallbacks,
        baseline: settings.placer.baseline && settings.policies.built.contains_key(BASELINE),
        containers_max: settings.limits.containers,
        max_age: settings.engine.max_age,
        pairs_max: settings.engine.routes.pairs_max,
        min_bytes: settings.engine.routes.min_bytes,
        chains: settings.engine.routes.chains,
        located: None,
        planned: None,
    }
}

fn chosen<'s>(settings: &'s Settings, name: &'s str, mode: Mode) -> (&'s Arc<dyn Policy>, Chosen<'s>) {
    let (policy, baseline) = policies(settings, name);
    (policy, Chosen { policy: &**policy, baseline: &**baseline, mode, name })
}

/// How a request is searched for.
struct Way {
    mode: Mode,
    policy: &'static str,
    /// Hints may come later, on Follow.
    follows: bool,
}

/// The pure part, on a thread of the pool.
fn search(
    generation: &Generation,
    request: &Arc<HintRequest>,
    settings: &Settings,
    way: Way,
    placer: &PlacerSettings,
    now: Timestamp,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Proposal, Refusal> {
    let (found, chosen) = chosen(settings, way.policy, way.mode);
    if way.follows && may_wait(request, &chosen) && !is_chained(generation, request, &placer.chains) {
        return propose_waiting(generation, request, &chosen, found, placer, now);
    }
    propose(generation, request, &chosen, placer, now, stop)
}

/// 128 random bits: what an attempt shows for its own.
fn token() -> Token {
    Token(format!("{:032x}", rand::random::<u128>()).into())
}

fn passed(began: Instant, deadline: Instant) -> Refusal {
    Refusal::DeadlineExceeded(micros(deadline.saturating_duration_since(began)))
}

fn micros(span: Duration) -> Micros {
    Micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}
