//! Rounds: requests that gather for a short while and are decided together, where `placer.round` says so and their policy can.
//!
//! [`Gathering`] says when, [`propose_together`] what; here are the lock, the task that waits, and the thread of the pool. A
//! request that gathers has its place in the pool's queue already, so that no more gather than may wait. What a round gives it goes
//! through a commit of its own. Where nobody waits for a request any more, or its time is over when its round begins, the round is
//! decided without it. One that has less time then than the round takes is searched alone: it would end the search of all others.
//! A round that ends in a panic is none: each of its requests is searched alone, and only the one that brings the panic is hurt by it.

use super::super::options::Settings;
use super::super::pool::{JobContext, PlaceInQueue, QueueView};
use super::Daemon;
use super::open_round::OpenRound;
use super::search::{SearchInputs, SearchOutcome, chosen, passed, placer, reserve, within_bytes};
use crate::times::micros;
use hintd_engine::records::{Probe, RoundInputs, RoundPosition};
use hintd_engine::rounds::{Gathering, Gathers, RoundSettings};
use hintd_engine::{Mode, PlacerSettings, PlannedRun, Proposal, Refusal, RoundMember, propose_together};
use hintd_model::cluster::HintRequest;
use hintd_model::units::{RequestId, Timestamp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// Requests that gather, of one daemon.
#[derive(Debug)]
pub(in crate::runtime) struct Rounds {
    gathering: Mutex<State>,
    /// Something may be due earlier than the task thinks.
    changed: Notify,
    /// What times count from.
    since: Instant,
}

#[derive(Debug, Default)]
struct State {
    gathering: Gathering<Waiter>,
    /// The task is gone: nothing gathers any more.
    closed: bool,
}

/// A request that gathers.
pub(in crate::runtime) struct Waiter {
    pub(in crate::runtime) request: Arc<HintRequest>,
    pub(in crate::runtime) settings: Arc<Settings>,
    pub(in crate::runtime) policy: &'static str,
    pub(in crate::runtime) located: Option<Arc<[String]>>,
    pub(in crate::runtime) planned: Option<Arc<PlannedRun>>,
    /// Whether it is to be recorded.
    pub(in crate::runtime) recorded: bool,
    pub(in crate::runtime) began: Instant,
    pub(in crate::runtime) deadline: Instant,
    /// When it came here.
    pub(in crate::runtime) joined: Instant,
    pub(in crate::runtime) place: PlaceInQueue,
    pub(in crate::runtime) answer: oneshot::Sender<RoundAnswer>,
}

impl Waiter {
    /// It is to be searched alone, and takes a place in the queue for that.
    fn goes_alone(self) {
        let Self { answer, place, .. } = self;
        drop(place);
        let _ = answer.send(RoundAnswer::Alone); // its caller may be gone
    }

    /// When its search is to be over, if it begins at this moment.
    fn search_until(&self, started: Instant, queue: &QueueView) -> Instant {
        let JobContext { commits, .. } = self.job_context(queue);
        self.deadline - reserve(self.deadline.saturating_duration_since(started), commits)
    }

    fn job_context(&self, queue: &QueueView) -> JobContext {
        queue.job_context(self.deadline.saturating_duration_since(self.joined))
    }
}

/// What a round comes to for one request.
pub(in crate::runtime) enum RoundAnswer {
    /// It was searched for, from then on.
    Searched(Box<SearchOutcome>, Instant),
    /// It was not.
    Refused(Refusal),
    /// It is to be searched alone.
    Alone,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter").field("request", &self.request.id).finish_non_exhaustive()
    }
}

impl Gathers for Waiter {
    type Key = RequestId;

    fn key(&self) -> RequestId {
        self.request.id.clone()
    }

    fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.policy == other.policy && Arc::ptr_eq(&self.settings, &other.settings)
    }
}

/// Held by who waits for a round: if its caller goes its place is given back, and others fill the round.
pub(in crate::runtime) struct WaitsForRound<'a>(&'a Rounds);

impl Drop for WaitsForRound<'_> {
    fn drop(&mut self) {
        self.0.changed.notify_one();
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Self { gathering: Mutex::default(), changed: Notify::new(), since: Instant::now() }
    }
}

impl Rounds {
    /// A round is over: the next one may begin.
    pub(in crate::runtime) fn ended(&self) {
        self.lock().gathering.ended();
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock can panic half way through a change.
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self, at: Instant) -> Timestamp {
        Timestamp(micros(at.saturating_duration_since(self.since)).0)
    }

    /// Whether a request that is to be decided by `until` has the time for a round, and there are any.
    pub(in crate::runtime) fn has_time(&self, until: Instant, settings: &RoundSettings) -> bool {
        let mut state = self.lock();
        !state.closed && state.gathering.has_time(self.time(Instant::now()), self.time(until), settings)
    }

    /// For one that is about to wait; to be dropped after its end of the answer.
    pub(in crate::runtime) const fn waits(&self) -> WaitsForRound<'_> {
        WaitsForRound(self)
    }

    /// One more gathers; where nothing does any more it is told to go alone.
    pub(in crate::runtime) fn join(&self, waiter: Waiter, until: Instant, settings: RoundSettings) {
        let (now, until) = (self.time(waiter.joined), self.time(until));
        let mut state = self.lock();
        if state.closed {
            drop(state);
            waiter.goes_alone();
            return;
        }
        state.gathering.join(waiter, now, until, settings);
        drop(state);
        self.changed.notify_one();
    }

    fn next(&self) -> Option<Instant> {
        let next = self.lock().gathering.next()?;
        Some(self.since + Duration::from_micros(next.0))
    }

    fn begin(&self) -> Vec<Waiter> {
        self.lock().gathering.begin(self.time(Instant::now()))
    }

    /// Requests that gather.
    #[cfg(test)]
    pub(in crate::runtime) fn waiting(&self) -> usize {
        self.lock().gathering.waiting()
    }
}

/// Begins rounds as they are due. At a shutdown all that gathers is decided at once.
pub(in crate::runtime) async fn run(daemon: Daemon) {
    let rounds = &daemon.0.rounds;
    while !daemon.stopping().is_cancelled() {
        let next = rounds.next();
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = daemon.stopping().cancelled() => {}
            () = rounds.changed.notified() => {}
            () = due => {}
        }
        loop {
            let round = rounds.begin();
            if round.is_empty() {
                break;
            }
            daemon.decide_round(round);
        }
    }
    rounds.lock().closed = true;
    loop {
        let round = rounds.lock().gathering.flush();
        if round.is_empty() {
            return;
        }
        daemon.decide_round(round);
    }
}

impl Daemon {
    /// Has a round decided on the pool.
    fn decide_round(&self, round: Vec<Waiter>) {
        let open = Arc::new(OpenRound(self.clone()));
        let until = round.iter().map(|waiter| waiter.deadline).min().unwrap_or_else(Instant::now);
        let daemon = self.clone();
        self.0.pool.run_placed(until, move |queue| decide(&daemon, round, &open, &queue));
    }
}

/// A round on a thread of the pool.
fn decide(daemon: &Daemon, round: Vec<Waiter>, open: &Arc<OpenRound>, queue: &QueueView) {
    let started = Instant::now();
    let round: Vec<Waiter> = round.into_iter().filter_map(|waiter| in_time(waiter, started, queue)).collect();
    let round = without_short(daemon, round, started, queue);
    let Some(first) = round.first() else { return };
    let policy = first.policy;
    let searched = catch_unwind(AssertUnwindSafe(|| search(daemon, &round, started, queue)));
    let took = started.elapsed();
    match searched {
        Ok(found) => {
            daemon.metrics().round_decided(policy, round.len(), took);
            daemon.0.rounds.lock().gathering.decided(round.len(), micros(took));
            queue.took(took / u32::try_from(round.len()).unwrap_or(u32::MAX));
            for (Waiter { answer, place, .. }, mut outcome) in round.into_iter().zip(found) {
                outcome.open = Some(Arc::clone(open));
                drop(place);
                let _ = answer.send(RoundAnswer::Searched(Box::new(outcome), started)); // its caller may be gone
            }
        }
        Err(_) => {
            tracing::error!(policy, requests = round.len(), "a round panicked; its requests are decided one by one");
            daemon.metrics().round_panicked(policy);
            round.into_iter().for_each(Waiter::goes_alone);
        }
    }
}

/// Those of a round who have the time that it takes; others go alone.
fn without_short(daemon: &Daemon, round: Vec<Waiter>, started: Instant, queue: &QueueView) -> Vec<Waiter> {
    let requests = round.len();
    let is_short = |waiter: &Waiter| {
        let left = waiter.search_until(started, queue).saturating_duration_since(started);
        daemon.0.rounds.lock().gathering.is_short(micros(left), requests)
    };
    let (short, round): (Vec<Waiter>, Vec<Waiter>) = round.into_iter().partition(is_short);
    short.into_iter().for_each(Waiter::goes_alone);
    round
}

/// A request that still has time; others are told.
fn in_time(waiter: Waiter, now: Instant, queue: &QueueView) -> Option<Waiter> {
    if waiter.is_gone() {
        return None;
    }
    let left = waiter.deadline.saturating_duration_since(now);
    let refusal = if left.is_zero() {
        Some(passed(waiter.began, waiter.deadline))
    } else {
        queue.in_vain(left, now - waiter.joined)
    };
    match refusal {
        None => Some(waiter),
        Some(refusal) => {
            let _ = waiter.answer.send(RoundAnswer::Refused(refusal)); // its caller may be gone
            None
        }
    }
}

/// The pure part: all on one generation.
fn search(daemon: &Daemon, round: &[Waiter], started: Instant, queue: &QueueView) -> Vec<SearchOutcome> {
    let (generation, now) = (daemon.generation(), daemon.0.clock.now());
    let settings_of = |waiter: &Waiter| PlacerSettings {
        located: waiter.located.clone(),
        planned: waiter.planned.clone(),
        ..placer(&waiter.settings, waiter.job_context(queue))
    };
    let placers: Vec<PlacerSettings> = round.iter().map(settings_of).collect();
    let members: Vec<RoundMember<'_>> = round
        .iter()
        .zip(&placers)
        .map(|(waiter, settings)| RoundMember { request: &waiter.request, settings })
        .collect();
    let until = round.iter().map(|waiter| waiter.search_until(started, queue)).min().unwrap_or(started);
    let mut probe = Probe::default();
    let (_, policy) = chosen(&round[0].settings, round[0].policy, Mode::On);
    let found = propose_together(&generation, &policy, &members, now, &mut || probe.look(Instant::now() >= until));
    let together = round.len() > 1 && round.iter().any(|waiter| waiter.recorded);
    let inputs = together.then(|| Arc::new(RoundInputs::new(&generation, &members)));
    let (stopped, ended) = (probe.stopped(), Instant::now());
    let outcome = |(at, (found, settings)): (usize, (Result<Proposal, Refusal>, PlacerSettings))| {
        let most = round[at].settings.limits.answer_bytes;
        let round = inputs.as_ref().map(|inputs| RoundPosition { inputs: Arc::clone(inputs), at });
        let inputs = SearchInputs { generation: Arc::clone(&generation), placer: settings, now, stopped, round };
        let found = found.and_then(|proposal| within_bytes(proposal, most)).map(Box::new);
        SearchOutcome { inputs, found, ended, open: None }
    };
    drop(members);
    found.into_iter().zip(placers).enumerate().map(outcome).collect()
}

#[cfg(test)]
mod tests;
