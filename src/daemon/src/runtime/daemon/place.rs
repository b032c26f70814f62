//! The path of a request: look up, place, commit, place again where another was faster.

use super::super::command::{Command, CommitClaim, Committed, DetachedRequest};
use super::super::options::Settings;
use super::super::pool::JobContext;
use super::super::unpacking::UnpackPermit;
use super::Daemon;
use super::commits::{PendingCommit, UnrecordedDecision};
use super::rounds::{RoundAnswer, Waiter};
use super::search::{
    RESERVE_DIVISOR, SearchInputs, SearchMode, SearchOutcome, chosen, passed, placer, policies, reserve, search,
    within_bytes,
};
use crate::telemetry::metrics::Stage;
use crate::telemetry::spans::RequestSpan;
use crate::times::micros;
use hintd_engine::records::{DecidedRequest, Probe, RequestOutcome};
use hintd_engine::{
    Answer, ExplainedLease, Generation, ImmediateRequest, Mode, PackedAnswer, Participation, PlacerSettings,
    PlannedRun, Proof, Proposal, Refusal, Token, is_chained, late_of, may_gather, may_wait,
};
use hintd_model::cluster::{Dataset, HintRequest};
use hintd_model::units::{DecisionId, Micros, RequestId};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// One request on its way.
struct RequestContext {
    request: Arc<HintRequest>,
    /// What its sender shows; the daemon's own need not.
    proof: Proof,
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
    /// It may be decided together with others.
    gathers: bool,
    /// Its run takes its place in the plan in force, where it is answered at once.
    claims_planned_run: bool,
    /// What is known of its paths, where somebody is asked.
    located: Option<Arc<[String]>>,
    /// How its run stands to the plan in force, where it is answered at once.
    planned: Option<Arc<PlannedRun>>,
    /// What its run takes its place by.
    at_once: Option<Box<ImmediateRequest>>,
    /// Whether it is held out, or its recurring job stopped.
    participation: Participation,
    /// What its search and its commit are parts of, where it is sampled.
    span: RequestSpan,
    /// Its commit on its way.
    claim: Option<Arc<CommitClaim>>,
}

/// A request that was refused.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// It is recorded under the id that the decision would have had.
    pub recorded: bool,
    /// The recorder was told of it, or is to be told of it later, or it is one of those that are left out.
    pub(in crate::runtime) seen: bool,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, recorded: false, seen: false }
    }
}

/// What became of a search.
enum Placed {
    /// Its proposal was taken.
    Now(Arc<Answer>),
    /// The same request was answered while it went on.
    Before(PackedAnswer),
}

/// What a request comes to.
#[derive(Debug, Clone)]
pub struct RequestAnswer {
    /// The answer.
    pub answer: Arc<Answer>,
    /// Of one that was answered before: what became of its leases.
    pub repeat: Option<Vec<ExplainedLease>>,
    /// Of one that was answered before: nobody else's is unpacked as long as it is held.
    pub permit: Option<UnpackPermit>,
}

impl RequestAnswer {
    const fn first(answer: Arc<Answer>) -> Self {
        Self { answer, repeat: None, permit: None }
    }
}

/// How a request is meant.
#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    /// Nothing is leased and nothing remembered.
    pub what_if: bool,
    /// Its sender follows, or says that it will.
    pub follows: bool,
    /// What its sender shows for the attempt.
    pub proof: Proof,
    /// What it is seen by, where it is sampled.
    pub span: RequestSpan,
}

impl Daemon {
    /// Answers a request as `decision`.
    ///
    /// # Errors
    /// Whatever [`Refused::refusal`] says; [`Refusal::DeadlineExceeded`] at the latest at `deadline`.
    pub async fn request(
        &self,
        request: Arc<HintRequest>,
        digest: u64,
        decision: DecisionId,
        deadline: Instant,
        asked: RequestOptions,
    ) -> Result<RequestAnswer, Refused> {
        let (began, what_if, asks) = (Instant::now(), asked.what_if, Arc::clone(&request));
        let follows = asked.follows || self.follows(request.attempt);
        // Kept beside the future, for a record where the deadline drops it.
        let mut begun = None;
        let answer = async {
            if asked.what_if {
                let mut context = self.request_context(&request, decision, deadline, follows)?;
                (context.recorded, context.claims_planned_run, context.gathers) = (false, false, false);
                (context.participation, context.span) = (Participation::Outside, asked.span);
                self.add_known(&mut context).await?;
                return Ok(RequestAnswer::first(self.what_if(&mut context).await?));
            }
            self.check_ready()?;
            let proof = self.listed_proof(request.attempt, asked.proof).await?;
            if let Some(repeat) = self.kept_answer(request.id.clone(), digest, &proof).await? {
                return Ok(repeat);
            }
            let context = begun.insert(self.request_context(&request, decision, deadline, follows)?);
            (context.proof, context.span) = (proof, asked.span);
            self.add_known(context).await?;
            match self.place_and_commit(context, digest).await? {
                Placed::Now(answer) => Ok(RequestAnswer::first(answer)),
                // The same request was answered meanwhile.
                Placed::Before(found) => Ok(self.repeat(found, &context.proof).await?),
            }
        };
        let found = tokio::time::timeout_at(deadline.into(), answer).await;
        if let Ok(Ok(RequestAnswer { answer, repeat: Some(_), .. })) = &found {
            self.delivered(answer.decision.id);
        }
        let found = found.unwrap_or_else(|_| {
            let refusal = passed(began, deadline);
            self.told_late(decision);
            Err(begun.map_or_else(|| refusal.clone().into(), |context| self.late(&context, refusal.clone())))
        });
        found.map_err(|refused| match what_if || refused.seen || refused.refusal.is_a_strangers() {
            true => refused,
            false => self.refused_early(&asks, decision, refused.refusal),
        })
    }

    async fn kept_answer(&self, id: RequestId, digest: u64, proof: &Proof) -> Result<Option<RequestAnswer>, Refusal> {
        if !self.0.shared.known.may_have(&id) {
            return Ok(None);
        }
        let found = self.0.engine_handle.ask(|reply| Command::KeptAnswer { id, digest, reply }).await??;
        match found {
            Some(found) => self.repeat(found, proof).await.map(Some),
            None => Ok(None),
        }
    }

    /// An answer that was given before, for who may see it: unpacked by who asks again, with a permit.
    async fn repeat(&self, found: PackedAnswer, proof: &Proof) -> Result<RequestAnswer, Refusal> {
        // Only now: it may have waited for the journal.
        let permit = self.0.repeats.permit().await?;
        // Forgotten a moment ago, its leases have ended: nothing is to be said of them.
        let kept = self.kept(found.decision()).await.ok();
        let legacy = self.settings().engine.legacy_clients;
        let proof = proof.clone();
        let unpack = move || {
            let answer = found.unpack();
            answer.may_be_seen_by(&proof, legacy)?;
            let leases = kept.map(|kept| kept.leases(&answer)).unwrap_or_default();
            Ok((answer, leases))
        };
        let (unpacked, permit) = permit.unpack(unpack).await?;
        let (answer, leases) = unpacked?;
        Ok(RequestAnswer { answer, repeat: Some(leases), permit: Some(permit) })
    }

    /// The path of a request up to its commit. A dispatcher decides on a dispatcher instance set apart, on the pool: the engine's thread
    /// only copies its State.
    async fn what_if(&self, context: &mut RequestContext) -> Result<Arc<Answer>, Refusal> {
        let mut proposal = self.propose(context, 0).await?.found?;
        proposal.elapsed = micros(context.began.elapsed());
        let decision = if proposal.waits() {
            let DetachedRequest { proposal, dispatcher } =
                self.0.engine_handle.ask(|reply| Command::DetachDispatcher { proposal, reply }).await??;
            let decide = move |_| match dispatcher {
                Some(dispatcher) => dispatcher.preview(*proposal),
                None => proposal.preview(),
            };
            self.0.pool.run(context.deadline, decide).await?
        } else {
            proposal.preview()
        };
        Ok(Arc::new(Answer { decision, token: Token("".into()), nonce: None, digest: 0 }))
    }

    /// Places and commits what is not to wait.
    pub(in crate::runtime) async fn place(
        &self,
        request: &Arc<HintRequest>,
        digest: u64,
        decision: DecisionId,
        deadline: Instant,
    ) -> Result<Arc<Answer>, Refusal> {
        let mut context = self.request_context(request, decision, deadline, false)?;
        (context.again, context.gathers) = (true, false);
        self.add_known(&mut context).await?;
        let placed = self.place_and_commit(&mut context, digest).await;
        match placed.map_err(|refused| refused.refusal)? {
            Placed::Now(answer) => Ok(answer),
            Placed::Before(found) => Ok(self.repeat(found, &Proof::Trusted).await?.answer),
        }
    }

    /// Places and commits, again while others take the room first.
    async fn place_and_commit(&self, context: &mut RequestContext, digest: u64) -> Result<Placed, Refused> {
        let deadline = context.deadline;
        let retries = context.settings.placer.retries;
        let mut conflicts = 0;
        loop {
            let tried = Instant::now();
            let searched = self.propose(context, conflicts).await.map_err(|refusal| match refusal {
                Refusal::DeadlineExceeded(_) => self.late(context, refusal),
                other => other.into(),
            })?;
            // The next round begins when what this one placed is committed.
            let SearchOutcome { inputs, found, ended, open: _open } = searched;
            let mut proposal = match found {
                Ok(proposal) => proposal,
                Err(refusal) => return Err(self.refused(context, inputs, refusal)),
            };
            // Another try would take as long again: where that is too late, this is the last.
            let late = tried.elapsed() * 2 > deadline.saturating_duration_since(Instant::now());
            proposal.at_once.clone_from(&context.at_once);
            proposal.part = context.participation.clone().part();
            proposal.decision = Some(context.decision);
            proposal.digest = digest;
            proposal.proof.clone_from(&context.proof);
            proposal.conflicts = conflicts;
            proposal.last_try = late || conflicts >= retries;
            proposal.elapsed = micros(context.began.elapsed());
            let last = proposal.last_try;
            match self.commit(context, proposal, inputs, ended).await? {
                Committed::Answer { answer, .. } => return Ok(Placed::Now(answer)),
                // A repeat of a request in flight gets the first one's answer, which has its own record.
                Committed::Before(found) => return Ok(Placed::Before(found)),
                Committed::Conflict if last => {
                    let message = format!("others took the room {} times", conflicts + 1);
                    return Err(Refusal::Unavailable { message, retry_after: Micros::from_millis(100) }.into());
                }
                Committed::Conflict => {
                    conflicts += 1;
                    // Others may have taken its place in the plan as well.
                    self.add_plan(context).await?;
                }
            }
        }
    }

    /// Gives a proposal to the engine and waits until what it came to is durable, and recorded. What the engine has taken
    /// is recorded also where the caller is gone by then.
    async fn commit(
        &self,
        context: &mut RequestContext,
        proposal: Box<Proposal>,
        inputs: SearchInputs,
        searched: Instant,
    ) -> Result<Committed, Refusal> {
        let began = Instant::now();
        let span = context.span.child("commit", began);
        let on_its_way = self.0.pool.commits(searched);
        let record = context.recorded.then(|| {
            let (decision, at) = (context.decision, self.0.clock.now());
            let late = RequestOutcome::Refused { decision, at, refusal: passed(context.began, context.deadline) };
            (Box::new(context.seen(inputs, Some(proposal.paths_read()), late)), proposal.to_compare())
        });
        let decision = context.decision;
        let unrecorded = UnrecordedDecision { decision, record, policy: context.policy, asked: context.began, began };
        let claim = Arc::clone(context.claim.insert(Arc::default()));
        let mine = Arc::clone(&claim);
        let command = |reply| Command::Commit { proposal, token: token(), claim, reply };
        let committed = match self.0.engine_handle.send(command).await {
            Ok(answer) => PendingCommit::new(self, mine, answer, unrecorded, context.deadline).ended().await,
            Err(gone) => Err(gone),
        };
        context.claim = None;
        match &committed {
            Ok(Committed::Answer { .. }) => drop(on_its_way),
            _ => on_its_way.forget(),
        }
        let committed = committed?;
        let ended = Instant::now();
        let came_to = match &committed {
            Committed::Answer { journal, .. } => {
                span.child("journal", journal.start).end(journal.end);
                "committed"
            }
            Committed::Before(_) => "repeat",
            Committed::Conflict => "conflict",
        };
        span.text("hintd.commit.result", came_to);
        span.end(ended);
        Ok(committed)
    }

    fn request_context(
        &self,
        request: &Arc<HintRequest>,
        decision: DecisionId,
        deadline: Instant,
        follows: bool,
    ) -> Result<RequestContext, Refusal> {
        let settings = self.settings();
        let (mode, policy) = settings.choose(&request.queue, &request.framework, request.policy.as_deref())?;
        if mode != Mode::Off {
            self.prepared(policies(&settings, policy).0)?;
        }
        let (request, began) = (Arc::clone(request), Instant::now());
        // That of a queue that is off as well: it says that its application asked.
        let recorded = settings.engine.records.takes(decision);
        let participation = match mode {
            Mode::On => settings.engine.worth.participation_of(&request, &self.generation()),
            Mode::Off | Mode::Shadow => Participation::Outside,
        };
        // In shadow, and without hints, nobody follows the plan.
        let (again, claims_planned_run) = (false, mode == Mode::On && participation.withheld().is_none());
        // Who is leased nothing would take room from the others.
        let gathers = claims_planned_run && settings.placer.round.is_some() && {
            let (_, chosen) = chosen(&settings, policy, mode);
            may_gather(&self.generation(), &request, &chosen, &settings.engine.routes.chains)
        };
        let (located, planned, at_once) = (None, None, None);
        Ok(RequestContext {
            proof: Proof::Trusted,
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
            gathers,
            claims_planned_run,
            located,
            planned,
            at_once,
            participation,
            span: RequestSpan::default(),
            claim: None,
        })
    }

    /// Adds all that others know of a request.
    async fn add_known(&self, context: &mut RequestContext) -> Result<(), Refusal> {
        // Where hints are computed at all.
        if context.mode != Mode::Off {
            context.located = self.locate(&context.request, context.deadline).await;
        }
        self.add_plan(context).await
    }

    /// Adds how its run stands to the plan in force, where its policy follows plans and it does not wait.
    async fn add_plan(&self, context: &mut RequestContext) -> Result<(), Refusal> {
        let generation = self.generation();
        (context.planned, context.at_once) = (None, None);
        let policy = policies(&context.settings, context.policy).0;
        let follows_plans = context.mode != Mode::Off && policy.as_plan().is_some();
        let Some(plan) = generation.plan.as_ref().filter(|_| follows_plans) else { return Ok(()) };
        // What waited for its planned racks for too long goes anywhere.
        let late = context.again && late_of(&context.request.id).is_some();
        if late || context.waits(&generation) {
            return Ok(());
        }
        let run = match ImmediateRequest::of(&context.request, plan, (policy, context.policy), context.again) {
            Ok(run) => Box::new(run),
            Err(without_key) => {
                context.planned = Some(Arc::from(without_key));
                return Ok(());
            }
        };
        let at_once = run.clone();
        let stands = self.0.engine_handle.ask(|reply| Command::PreviewPlanStatus { run, reply }).await?;
        context.at_once = Some(at_once).filter(|_| context.claims_planned_run);
        context.planned = stands.map(Arc::new);
        Ok(())
    }

    /// Its deadline passed. What the engine has taken of it goes on, and is recorded when that has ended.
    fn late(&self, context: &RequestContext, refusal: Refusal) -> Refused {
        if context.claim.as_ref().is_some_and(|claim| claim.is_taken()) {
            return Refused { refusal, recorded: context.recorded, seen: true };
        }
        // No search came to its end: it is noted on what the next one would have read.
        let unloaded = JobContext { fill: 0.0, commits: Duration::ZERO };
        let inputs = SearchInputs {
            generation: self.generation(),
            placer: placer(&context.settings, unloaded),
            now: self.0.clock.now(),
            stopped: None,
            round: None,
        };
        self.refused(context, inputs, refusal)
    }

    fn refused(&self, context: &RequestContext, inputs: SearchInputs, refusal: Refusal) -> Refused {
        let recorded = context.recorded && {
            let (decision, at) = (context.decision, self.0.clock.now());
            let came = RequestOutcome::Refused { decision, at, refusal: refusal.clone() };
            self.0.recorder.see(context.seen(inputs, None, came))
        };
        Refused { refusal, recorded, seen: true }
    }

    /// A search with others that came at about the same time; `None`: it is to be searched alone.
    async fn propose_together(
        &self,
        context: &mut RequestContext,
        conflicts: u32,
    ) -> Option<Result<SearchOutcome, Refusal>> {
        // One that lost its room at its commit has waited already.
        let round = context.settings.placer.round.filter(|_| context.gathers && conflicts == 0)?;
        let (joined, deadline) = (Instant::now(), context.deadline);
        let left = deadline.saturating_duration_since(joined);
        // A good part of its time is left when it is decided: how busy the machine is then nobody knows.
        let until = deadline - reserve(left, self.0.pool.commit_time()).max(left / RESERVE_DIVISOR);
        if !self.0.rounds.has_time(until, &round) {
            return None;
        }
        let place = match self.0.pool.admit(left) {
            Ok(place) => place,
            Err(refusal) => return Some(Err(refusal)),
        };
        // Before the channel: when this is dropped, the caller's end of it is.
        let _waits = self.0.rounds.waits();
        let (answer, wait) = oneshot::channel();
        let waiter = Waiter {
            request: Arc::clone(&context.request),
            settings: Arc::clone(&context.settings),
            policy: context.policy,
            located: context.located.clone(),
            planned: context.planned.clone(),
            recorded: context.recorded,
            began: context.began,
            deadline,
            joined,
            place,
            answer,
        };
        self.0.rounds.join(waiter, until, round);
        match wait.await {
            Ok(RoundAnswer::Searched(searched, started)) => {
                self.note_search(context, &searched, joined..started, conflicts);
                Some(Ok(*searched))
            }
            Ok(RoundAnswer::Refused(refusal)) => Some(Err(refusal)),
            // Nor does it gather again.
            Ok(RoundAnswer::Alone) | Err(_) => {
                context.gathers = false;
                None
            }
        }
    }

    /// One search on the pool, on the generation of the moment that it begins: on that of its queueing it would find
    /// what others took meanwhile, lose its commit, and queue again.
    async fn propose(&self, context: &mut RequestContext, conflicts: u32) -> Result<SearchOutcome, Refusal> {
        if let Some(found) = self.propose_together(context, conflicts).await {
            return found;
        }
        let daemon = self.clone();
        let request = Arc::clone(&context.request);
        let settings = Arc::clone(&context.settings);
        let (mode, policy, began, deadline) = (context.mode, context.policy, context.began, context.deadline);
        let (follows, located, planned) = (context.follows, context.located.clone(), context.planned.clone());
        let (again, withhold) = (context.again, context.participation.withheld());
        let queued = Instant::now();
        let job = move |job: JobContext| {
            let started = Instant::now();
            if started >= deadline {
                return Err(passed(began, deadline));
            }
            let (generation, now) = (daemon.generation(), daemon.0.clock.now());
            let search_until = deadline - reserve(deadline - started, job.commits);
            let placer = PlacerSettings { located, planned, withhold, ..placer(&settings, job) };
            // Lost tasks are to have a place, whether or not it is better than YARN's.
            let placer = PlacerSettings { guard: placer.guard.filter(|_| !again), ..placer };
            let mut probe = Probe::default();
            let mut stop = || probe.look(Instant::now() >= search_until);
            let mode = SearchMode { mode, policy, follows };
            let found = search(&generation, &request, &settings, mode, &placer, now, &mut stop);
            let found = found.and_then(|proposal| within_bytes(proposal, settings.limits.answer_bytes)).map(Box::new);
            let stopped = probe.stopped();
            let inputs = SearchInputs { generation, placer, now, stopped, round: None };
            let ended = Instant::now();
            Ok((SearchOutcome { inputs, found, ended, open: None }, started))
        };
        let (searched, started) = self.0.pool.run(deadline, job).await??;
        self.note_search(context, &searched, queued..started, conflicts);
        Ok(searched)
    }

    fn note_search(&self, context: &RequestContext, searched: &SearchOutcome, queued: Range<Instant>, conflicts: u32) {
        let (waited, took) = (queued.end - queued.start, searched.ended - queued.end);
        context.searched(searched, queued, conflicts);
        let policy = context.policy;
        self.metrics().request(policy, &[(Stage::Queue, waited), (Stage::Place, took)], None);
        tracing::debug!(policy, conflicts, generation = searched.inputs.generation.number, ?waited, ?took, "placed");
    }
}

impl RequestContext {
    /// Notes a search in its span, as parts of it: what it waited for a thread, and what it took.
    fn searched(&self, searched: &SearchOutcome, queued: Range<Instant>, conflicts: u32) {
        self.span.child("queue", queued.start).end(queued.end);
        let span = self.span.child("search", queued.end);
        span.text("hintd.policy", self.policy);
        span.count("hintd.generation", searched.inputs.generation.number);
        span.count("hintd.conflicts", conflicts.into());
        span.end(searched.ended);
    }

    /// Whether it waits for a dispatcher.
    fn waits(&self, generation: &Generation) -> bool {
        let (_, chosen) = chosen(&self.settings, self.policy, self.mode);
        let chained = || is_chained(generation, &self.request, &self.settings.engine.routes.chains);
        self.follows && self.participation.withheld().is_none() && may_wait(&self.request, &chosen) && !chained()
    }

    fn seen(&self, inputs: SearchInputs, read: Option<Vec<Arc<Dataset>>>, came: RequestOutcome) -> DecidedRequest {
        let (policy, baseline) = policies(&self.settings, self.policy);
        let SearchInputs { generation, placer, now, stopped, round } = inputs;
        DecidedRequest {
            request: Arc::clone(&self.request),
            queue_named: self.settings.queues.contains_key(self.request.queue.as_str()),
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
            round,
            came,
        }
    }
}

/// 128 random bits: what an attempt shows for its own.
fn token() -> Token {
    Token(format!("{:032x}", rand::random::<u128>()).into())
}
