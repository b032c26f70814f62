//! What the engine's thread is asked, and the bounded queue to it.

use super::follow_event::FollowEvent;
use super::options::WatchLimits;
use super::outbox::Outbox;
use super::watchers::{WatchCaller, Watching};
use crate::store::StoreFailure;
use hintd_engine::holding::wish::{ShuffleWish, WishTurn};
use hintd_engine::prediction::Runs;
use hintd_engine::worth::book::{ComparedView, WorthView};
use hintd_engine::{
    Answer, AttemptHeld, CircuitReport, CircuitsView, DetachedDispatcher, Engine, EngineCounts, EngineSettings,
    Followed, ImmediateRequest, LatelySums, LearnedRun, LeaseFilter, LeaseHeld, MoveNote, PackedAnswer,
    PackedExplained, PlanView, PlannedRun, Proof, Proposal, Refusal, Released, RoundOutcome, Tally, TallyKey,
    TaskEvent, Token, ValidatedPlan, WatchScope, WatchedPair, WatcherState,
};
use hintd_model::units::{ApplicationId, AttemptId, DecisionId, LeaseId, Micros, RequestId, Timestamp};
use hintd_policy::Policy;
use hintd_policy::plan::JobProgress;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<T>;

/// One call of the engine.
pub(super) enum Command {
    /// Lease what a proposal wants.
    Commit {
        proposal: Box<Proposal>,
        token: Token,
        /// Whether somebody still waits.
        claim: Arc<CommitClaim>,
        reply: Reply<Result<Committed, Refusal>>,
    },
    /// The answer of a request id.
    KeptAnswer {
        id: RequestId,
        digest: u64,
        reply: Reply<Result<Option<PackedAnswer>, Refusal>>,
    },
    /// A decision and its leases.
    Explain {
        decision: DecisionId,
        reply: Reply<Option<PackedExplained>>,
    },
    /// Whether somebody has a decision's answer.
    AnswerReached {
        decision: DecisionId,
        reached: bool,
    },
    MovesTold {
        attempt: AttemptId,
        reply: Reply<Vec<MoveNote>>,
    },
    /// Give leases back.
    Release {
        attempt: AttemptId,
        proof: Proof,
        leases: Vec<LeaseId>,
        reply: Reply<Result<Released, Refusal>>,
    },
    /// Whether an attempt may ask for receivers of its shuffle.
    ShuffleTurn {
        wish: ShuffleWish,
        proof: Proof,
        reply: Reply<Result<WishTurn, Refusal>>,
    },
    /// The outbox of an attempt, for who shows that it is the attempt's.
    Follow {
        attempt: AttemptId,
        proof: Proof,
        reply: Reply<Result<Arc<Outbox<FollowEvent>>, Refusal>>,
    },
    /// A task event, and what its teller shows.
    Event(TaskEvent, Proof),
    /// Whether who shows this may tell of an attempt and hear of it, and whether the attempt is known.
    MayTell {
        attempt: AttemptId,
        proof: Proof,
        reply: Reply<Result<bool, Refusal>>,
    },
    /// Ends an attempt for an operator; false: it is not known.
    EndAttempt {
        attempt: AttemptId,
        reply: Reply<Result<bool, Refusal>>,
    },
    /// Something that operators list.
    List(ListCall),
    /// A finished run of a recurring job, as a history server tells it.
    Learned {
        key: Arc<str>,
        run: LearnedRun,
    },
    /// Watch routes, where all watchers together, and those of the peer, stay within `most`.
    Watch {
        caller: WatchCaller,
        scope: WatchScope,
        most: WatchLimits,
        reply: Reply<Result<Watching, Refusal>>,
    },
    /// Every update up to `number` is in force, but for routes that could not be installed, and why.
    Acknowledge {
        watcher: Arc<str>,
        proof: Proof,
        number: u64,
        refused: Vec<(WatchedPair, String)>,
        reply: Reply<Result<u64, Refusal>>,
    },
    /// What a controller says of its optical switch; which version is wanted then.
    ReportCircuits {
        watcher: Arc<str>,
        proof: Proof,
        report: CircuitReport,
        reply: Reply<Result<u64, Refusal>>,
    },
    /// Circuits; `None`: there is no optical switch.
    Circuits(Reply<Option<CircuitsView>>),
    /// A feed left something that can't wait until the next publish: a link or a switch.
    Urgent,
    /// A Watch's stream ended.
    Unwatch {
        watcher: Arc<str>,
        session: u64,
    },
    /// Sizes, and names that no node claims.
    EngineReport(Reply<EngineReport>),
    /// Attempts that asked and are not over.
    Attempts(Reply<Vec<AttemptId>>),
    /// When each node was last heard, by its row.
    Heard(Reply<Vec<Option<Timestamp>>>),
    /// The dispatcher instance that a request which waits for a dispatcher would come to now; the request comes back with it.
    DetachDispatcher {
        proposal: Box<Proposal>,
        reply: Reply<Result<DetachedRequest, Refusal>>,
    },
    /// A request is to be answered at once: how its run stands to the plan in force.
    PreviewPlanStatus {
        run: Box<ImmediateRequest>,
        reply: Reply<Option<PlannedRun>>,
    },
    /// Something with plans.
    Plans(PlanCall),
    /// Something with the comparison of hinted and held-out applications.
    Worth(WorthCall),
    /// The change of plans under way is durable, or is not.
    PlansSettled(bool),
    /// What a round of rebalancing came to.
    Rebalanced {
        round: u64,
        found: RoundOutcome,
    },
    /// New settings, and policies by name: all of them, or none.
    Reload {
        settings: Box<EngineSettings>,
        policies: BTreeMap<&'static str, Arc<dyn Policy>>,
        reply: Reply<Result<(), Refusal>>,
    },
    /// Policies by name, of which one learnt.
    Policies(BTreeMap<&'static str, Arc<dyn Policy>>),
    /// The journal took a batch, or did not.
    BatchCompleted {
        ticket: u64,
        result: Result<(), StoreFailure>,
    },
    /// Finish what is in flight and end.
    Stop,
    /// Whatever a test wants to happen on the engine's thread.
    #[cfg(test)]
    Run(Box<dyn FnOnce() + Send>),
}

/// What operators list.
pub(super) enum ListCall {
    /// Attempts that asked and are not over, and what each holds.
    Attempts(Reply<Vec<AttemptHeld>>),
    /// So many of them that hold most, and how many there are in all.
    BusiestAttempts { most: usize, reply: Reply<(Vec<AttemptHeld>, usize)> },
    /// Live leases, newest first, and how many there are in all.
    Leases { filter: LeaseFilter, reply: Reply<(Vec<LeaseHeld>, usize)> },
    /// Applications with such a lease.
    Applications { filter: LeaseFilter, reply: Reply<BTreeSet<ApplicationId>> },
    /// How many containers of each of these decisions came to their host, in their order.
    Followed { decisions: Vec<DecisionId>, reply: Reply<Vec<Option<Followed>>> },
}

impl ListCall {
    /// Who asked may be gone by now.
    pub(super) fn answer(self, engine: &Engine) {
        match self {
            Self::Attempts(reply) => drop(reply.send(engine.attempts_held())),
            Self::BusiestAttempts { most, reply } => drop(reply.send(engine.attempts_that_hold_most(most))),
            Self::Leases { filter, reply } => drop(reply.send(engine.leases_held(&filter))),
            Self::Applications { filter, reply } => drop(reply.send(engine.applications_with_leases(&filter))),
            Self::Followed { decisions, reply } => {
                let of = |decision: &DecisionId| engine.adherence().followed(*decision);
                drop(reply.send(decisions.iter().map(of).collect()));
            }
        }
    }
}

/// Something with plans of recurring jobs.
pub(super) enum PlanCall {
    /// Keep one: name, whether to replace another of that name, where it is from.
    Keep {
        name: String,
        examined: ValidatedPlan,
        replace: bool,
        origin: &'static str,
        reply: Reply<Result<PlanView, Refusal>>,
    },
    /// Put one in force; whether to replace another.
    Activate { name: String, replace: bool, reply: Reply<Result<PlanView, Refusal>> },
    /// Put the one before, or none, in force again: what was, and what is.
    RollBack { to_none: bool, reply: Reply<Result<RolledBack, Refusal>> },
    /// Forget one.
    Remove { name: String, reply: Reply<Result<(), Refusal>> },
    /// All.
    List(Reply<Vec<PlanView>>),
    /// One of that name, and how far jobs are where it is in force.
    Progress { name: String, reply: Reply<Option<PlanProgress>> },
    /// Runs of recurring jobs that finished.
    Runs(Reply<Arc<Runs>>),
}

/// A plan, and how far its jobs are by each policy that follows it: none where it is not in force.
pub type PlanProgress = (PlanView, Vec<(Arc<str>, Vec<JobProgress>)>);

/// The plan that was in force, and the one that is; `None`: none.
pub type RolledBack = (Option<Arc<str>>, Option<Arc<str>>);

/// A request, and the dispatcher instance that would decide it.
pub(super) struct DetachedRequest {
    pub(super) proposal: Box<Proposal>,
    pub(super) dispatcher: Option<DetachedDispatcher>,
}

/// What the engine knows beyond its generation.
#[derive(Debug, Clone)]
pub struct EngineReport {
    /// Sizes of its tables.
    pub counts: EngineCounts,
    /// Names heard from HDFS or SDN that no node claims: the first few.
    pub unknown_names: Vec<String>,
    /// And how many.
    pub unknown_names_total: u64,
    /// Who watches routes, by name.
    pub watchers: Vec<WatcherState>,
    /// Whether hints were followed, since the start.
    pub adherence: BTreeMap<TallyKey, Tally>,
    /// The same of the last hour.
    pub adherence_lately: BTreeMap<TallyKey, LatelySums>,
    /// The plan in force, and how it is followed.
    pub plan: Option<PlanView>,
    /// What hints are worth, by queue.
    pub worth: WorthView,
}

/// Who has the say over a commit: its caller, until the engine takes it.
#[derive(Debug, Default)]
pub(super) struct CommitClaim(AtomicU8);

const CLAIM_WAITING: u8 = 0;
const CLAIM_TAKEN: u8 = 1;
const CLAIM_GIVEN_UP: u8 = 2;

impl CommitClaim {
    /// The engine takes it; `false`: the caller is gone.
    pub(super) fn take(&self) -> bool {
        self.moves_to(CLAIM_TAKEN)
    }

    /// The caller goes; `false`: the engine has taken it.
    pub(super) fn give_up(&self) -> bool {
        self.moves_to(CLAIM_GIVEN_UP)
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) == CLAIM_TAKEN
    }

    fn moves_to(&self, state: u8) -> bool {
        self.0.compare_exchange(CLAIM_WAITING, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Something with the comparison of hinted and held-out applications.
pub(super) enum WorthCall {
    /// An application ended; `took`: so long after it was submitted, where it succeeded.
    Ended { application: ApplicationId, took: Option<Micros> },
    /// Applications whose end is awaited.
    Awaited(Reply<Vec<ApplicationId>>),
    /// Recurring keys that are compared.
    Keys(Reply<Vec<ComparedView>>),
    /// An operator lets a key have hints again; false: nothing is known of it.
    Allow { key: String, reply: Reply<Result<bool, Refusal>> },
}

/// What a commit came to.
pub(super) enum Committed {
    /// Durable.
    Answer {
        /// The answer.
        answer: Arc<Answer>,
        /// When it was given to the journal, and when it was durable.
        journal: Range<Instant>,
        /// The dispatcher instance that decided, as it was before, where a dispatcher did and it is to be recorded.
        dispatcher: Option<Box<DetachedDispatcher>>,
    },
    /// Of a request that was answered while this one was searched for: that answer, durable.
    Before(PackedAnswer),
    /// Another took the room: place again, on the generation that is published now.
    Conflict,
}

/// A command with its place in the bounded queue.
pub(super) struct Envelope {
    pub(super) command: Command,
    /// Given back when the command was handled.
    pub(super) _place: Option<OwnedSemaphorePermit>,
}

/// Commands that may wait for the engine: a second of its work.
const COMMANDS_MAX: usize = 8_192;

/// The queue to the engine's thread.
#[derive(Clone)]
pub(super) struct EngineHandle {
    queue: mpsc::Sender<Envelope>,
    places: Arc<Semaphore>,
}

impl EngineHandle {
    pub(super) fn new() -> (Self, mpsc::Receiver<Envelope>) {
        let (queue, commands) = mpsc::channel();
        (Self { queue, places: Arc::new(Semaphore::new(COMMANDS_MAX)) }, commands)
    }

    /// Asks and waits for the answer; waits for a place first where the queue is full.
    pub(super) async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Refusal> {
        self.send(command).await?.await.map_err(|_| gone())
    }

    /// Asks, and returns where the answer will come; waits for a place first where the queue is full.
    pub(super) async fn send<T>(
        &self,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<oneshot::Receiver<T>, Refusal> {
        let (reply, answer) = oneshot::channel();
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| gone())?;
        let envelope = Envelope { command: command(reply), _place: Some(place) };
        self.queue.send(envelope).map_err(|_| gone())?;
        Ok(answer)
    }

    /// Commands that wait, of those that need a place.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        COMMANDS_MAX - self.places.available_permits()
    }

    /// Tells, after waiting for a place where the queue is full.
    pub(super) async fn pass(&self, command: Command) -> Result<(), Refusal> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| gone())?;
        self.queue.send(Envelope { command, _place: Some(place) }).map_err(|_| gone())
    }

    /// Tells, without waiting for a place: a thread that may not wait has to say it, and saying it can't be left out.
    /// How many of these there can be at a time is bounded where they come from: [`Command::BatchCompleted`] by the journal's
    /// queue, [`Command::PlansSettled`], [`Command::Rebalanced`], [`Command::Urgent`] and [`Command::Stop`] by one at
    /// a time, [`Command::AnswerReached`] by the commits under way and the places here (a repeat begins with a command that
    /// waits for one), [`Command::Policies`] by one for each training that ended, [`Command::Unwatch`] by `limits.streams` and
    /// the places here (as does a stream).
    pub(super) fn tell(&self, command: Command) {
        // An engine that ended has nobody left to tell.
        let _ = self.queue.send(Envelope { command, _place: None });
    }
}

/// The engine's thread ended.
pub(super) fn gone() -> Refusal {
    Refusal::Unavailable { message: "the daemon is shutting down".to_owned(), retry_after: Micros::from_secs(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use tokio::task::unconstrained;

    #[tokio::test]
    async fn who_finds_the_queue_full_waits_for_a_place_and_leaves_nothing_in_it() {
        let (handle, commands) = EngineHandle::new();
        for _ in 0..COMMANDS_MAX {
            handle.pass(Command::Urgent).await.unwrap();
        }
        assert_eq!(handle.queued(), COMMANDS_MAX);
        let cx = &mut Context::from_waker(Waker::noop());
        {
            let mut gone = pin!(unconstrained(handle.pass(Command::Urgent)));
            assert!(gone.as_mut().poll(cx).is_pending());
        }
        // What waits by itself alone, and not because the test has used up its turn at the runtime.
        let mut next = pin!(unconstrained(handle.pass(Command::Urgent)));
        assert!(next.as_mut().poll(cx).is_pending());
        drop(commands.recv().unwrap());
        assert!(matches!(next.as_mut().poll(cx), Poll::Ready(Ok(()))), "a command that was handled leaves its place");
        assert_eq!((handle.queued(), commands.try_iter().count()), (COMMANDS_MAX, COMMANDS_MAX));
        handle.tell(Command::Urgent);
        assert!(commands.try_recv().is_ok(), "what may not wait needs no place");
    }
}
