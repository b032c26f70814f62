//! *dispatch*: a node has free containers; which waiting tasks go there, which should wait.
//!
//! A dispatcher remembers between calls, so it has a State; the caller owns it, feeds it every
//! event and may clone it (what-if, replay) or write it down.

use super::advise::EarlierRun;
use super::plan::{JobProgress, Plan, PlanCounts, RunPlanStatus, Stage};
use hintd_model::cluster::{Overlay, Resource, Snapshot};
use hintd_model::units::{AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// Decides, at each offer, from a State that it keeps current by events: never a scan of all waiting tasks.
pub trait Dispatch: Send + Sync {
    /// What it remembers.
    type State: Clone + Serialize + DeserializeOwned + Send + 'static;

    /// State of a cluster in which nothing waits.
    fn start(&self) -> Self::State;

    /// Takes an event into the State.
    fn observe(&self, state: &mut Self::State, event: &DispatchEvent, view: &View<'_>);

    /// What to do with the offer; launches may not exceed `offer.free`. Launches are advice: the State takes them in
    /// when [`DispatchEvent::Launched`] says so. The caller offers again after each launch until there is none, so one
    /// launch for each call is enough.
    fn offer(&self, state: &mut Self::State, offer: &Offer, view: &View<'_>) -> Vec<Advice>;

    /// *time shuffles*, if it does; if not, shuffles start as soon as they can and nobody asks.
    fn as_times_shuffles(&self) -> Option<&dyn DynTimesShuffles> {
        None
    }

    /// *follow a plan*, if it does; if not, it is told of plans all the same and goes by none.
    fn as_follows_plan(&self) -> Option<&dyn DynFollowsPlan> {
        None
    }
}

/// *time shuffles*: a dispatcher that says when what jobs have gathered moves between racks.
pub trait TimesShuffles: Dispatch {
    /// Whether what a job has gathered for a pair of racks should move now (004 §4.2.2). Asked once a second for every
    /// pair with bytes that could move; what was told to start is not asked about again, later bytes of the pair are.
    fn shuffle(&self, state: &mut Self::State, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice;
}

/// *follow a plan*: a dispatcher that goes by the plan in force and says how runs stand to it.
pub trait FollowsPlan: Dispatch {
    /// How an attempt that waits, runs or [asks](DispatchEvent::Asks) stands to the plan in force; `None`: there is none.
    fn plan_status(&self, state: &Self::State, attempt: AttemptId) -> Option<RunPlanStatus>;

    /// How a run of that job stands, or would stand if it took its place now. `came`: when it first asked, if nothing was
    /// told of it. `None` as [`Self::plan_status`].
    fn preview_plan_status(
        &self,
        state: &Self::State,
        run: (AttemptId, &str),
        came: Timestamp,
        now: Timestamp,
    ) -> Option<PlanReservation>;

    /// Until when the attempt's waiting tasks of that stage are expected to be in their planned racks, by the plan in
    /// force and when the run came; `None`: the plan does not say where they run.
    fn planned_until(&self, state: &Self::State, attempt: AttemptId, stage: Stage) -> Option<Timestamp>;

    /// How well the plan in force is followed; `None`: there is none.
    fn plan_counts(&self, state: &Self::State, now: Timestamp) -> Option<PlanCounts>;

    /// How far each job of the plan in force is, by position; `None`: there is none.
    fn plan_progress(&self, state: &Self::State, now: Timestamp) -> Option<Vec<JobProgress>>;
}

/// How a run stands, or would stand, to the plan in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanReservation {
    /// Its place, and where it leaves the plan.
    pub stand: RunPlanStatus,
    /// Until when the tasks of each stage (maps, reduces) are expected to be in their planned racks.
    pub until: [Option<Timestamp>; 2],
}

/// What dispatchers read beside their State.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// Room taken by leases.
    pub leases: &'a Overlay,
    /// The time of the call.
    pub now: Timestamp,
    /// Whether anybody reads [`Advice::NotYet`]; else it is left out.
    pub explain: bool,
}

/// A node with room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Which.
    pub node: NodeIdx,
    /// Room on it, leases taken off.
    pub free: Resource,
}

/// What dispatchers are told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DispatchEvent {
    /// Like tasks of an application wait for containers.
    Waiting(WaitingGroup),
    /// A waiting task was launched (by this dispatcher's advice or otherwise).
    Launched {
        /// Whose.
        task: TaskRef,
        /// Where.
        node: NodeIdx,
    },
    /// A running task ended; one that failed waits again.
    Finished {
        /// Whose.
        task: TaskRef,
        /// Where.
        node: NodeIdx,
        /// How long it ran.
        duration: Micros,
        /// What it read.
        input: Bytes,
        /// What it wrote.
        output: Bytes,
        /// It must run again.
        failed: bool,
    },
    /// A finished task's output was lost before all had read it: the task waits again, its input where it was.
    Lost(TaskRef),
    /// The application is done; nothing of it waits any more.
    Done(AttemptId),
    /// A rack's uplink or downlink use, per mille of its capacity.
    RackUse {
        /// Which rack.
        rack: RackIdx,
        /// Larger of uplink and downlink, per mille.
        per_mille: u32,
    },
    /// The attempt is a run of a recurring job; told before its first group, where it is known by then.
    Run {
        /// Which attempt.
        attempt: AttemptId,
        /// The recurring job's key, as plans name it.
        key: Arc<str>,
    },
    /// The attempt is a run of a job that ran before; told before its first group, where it is known by then.
    Recurs {
        /// Which attempt.
        attempt: AttemptId,
        /// The earlier run.
        run: Arc<EarlierRun>,
        /// Racks in which its input was written, or in which it is gathered; empty: none.
        homes: Vec<RackIdx>,
        /// It is gathered there, and its input lies wherever HDFS put it.
        gathered: bool,
    },
    /// A request of the attempt is answered at once: nothing of it waits here, and no task of it is told of. A run of a
    /// plan it may be all the same.
    Asks {
        /// Which attempt.
        attempt: AttemptId,
        /// When it first asked for anything.
        came: Timestamp,
        /// Maps and reduces that the request asks for.
        tasks: [u32; 2],
    },
    /// A task has all that others send it, and goes on without the network.
    Received(TaskRef),
    /// Another plan is in force from now on; none: none. What runs goes on, what waits follows it.
    Plan(Option<Arc<Plan>>),
}

/// Like tasks that wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitingGroup {
    /// Whose.
    pub attempt: AttemptId,
    /// The user, for fairness.
    pub user: Arc<str>,
    /// The queue.
    pub queue: Arc<str>,
    /// Group name, unique in the application.
    pub group: Arc<str>,
    /// `map`, `reduce`, …
    pub role: Arc<str>,
    /// Tasks that wait.
    pub count: u32,
    /// Size of each.
    pub size: Resource,
    /// Input of task i; shorter than `count`: nothing is known of the rest.
    pub inputs: Vec<TaskInput>,
    /// Output ÷ input, where the user or earlier runs tell it; else it is learnt from finished tasks.
    pub output_ratio: Option<f64>,
    /// Since when.
    pub since: Timestamp,
}

/// What one task reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInput {
    /// How much.
    pub bytes: Bytes,
    /// Where replicas lie, ascending.
    pub nodes: SmallVec<[NodeIdx; 3]>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskRef {
    /// Whose.
    pub attempt: AttemptId,
    /// Group name.
    pub group: Arc<str>,
    /// Number within the group.
    pub index: u32,
}

/// Answer to an offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Advice {
    /// Launch the task on the offered node.
    Launch(TaskRef),
    /// The group should wait.
    NotYet {
        /// Whose.
        attempt: AttemptId,
        /// Which group.
        group: Arc<str>,
        /// Stable token.
        reason: String,
        /// For how long, where it can be told.
        expected_wait: Option<Micros>,
    },
}

/// Shuffle of a job between two racks that could move now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShuffleAsk {
    /// Whose.
    pub attempt: AttemptId,
    /// Where finished maps' output lies.
    pub from: RackIdx,
    /// Where reduces that hold containers want it; never `from`.
    pub to: RackIdx,
    /// Output of finished maps in `from` that is for reduces in `to` and was not told to start yet; more than 0.
    pub gathered: Bytes,
    /// What of the pair was told to start before.
    pub started: Bytes,
    /// From so many bytes on what starts at once rides a circuit of the two; `None`: they have none to hope for.
    pub threshold: Option<Bytes>,
    /// All maps of the job are done: no more comes from `from`.
    pub maps_done: bool,
    /// All reduces of the job hold containers, or are done: no more goes to `to`.
    pub reduces_placed: bool,
    /// When the pair was first asked about and was not told to start.
    pub since: Timestamp,
}

/// Answer to a [`ShuffleAsk`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShuffleAdvice {
    /// What is gathered moves now.
    Start,
    /// More should be gathered first.
    Wait {
        /// From then on it starts whatever is said later; the earliest that was named since [`ShuffleAsk::since`] counts.
        latest: Timestamp,
        /// Stable token.
        why: Cow<'static, str>,
    },
}

/// A dispatcher whose State type is forgotten, so that the registry can hold any of them.
pub trait DynDispatch: Send + Sync {
    /// As [`Dispatch::start`].
    fn start(&self) -> DispatchState;
    /// As [`Dispatch::observe`].
    fn observe(&self, state: &mut DispatchState, event: &DispatchEvent, view: &View<'_>);
    /// As [`Dispatch::offer`].
    fn offer(&self, state: &mut DispatchState, offer: &Offer, view: &View<'_>) -> Vec<Advice>;
    /// As [`Dispatch::as_times_shuffles`].
    fn as_times_shuffles(&self) -> Option<&dyn DynTimesShuffles> {
        None
    }

    /// As [`Dispatch::as_follows_plan`].
    fn as_follows_plan(&self) -> Option<&dyn DynFollowsPlan> {
        None
    }

    /// Reads a State that was written down.
    ///
    /// # Errors
    /// Where the text is not such a State.
    fn restore(&self, json: &str) -> Result<DispatchState, serde_json::Error>;
}

/// A dispatcher that times shuffles, its State type forgotten.
pub trait DynTimesShuffles: Send + Sync {
    /// As [`TimesShuffles::shuffle`].
    fn shuffle(&self, state: &mut DispatchState, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice;
}

/// A dispatcher that follows a plan, its State type forgotten.
pub trait DynFollowsPlan: Send + Sync {
    /// As [`FollowsPlan::plan_status`].
    fn plan_status(&self, state: &mut DispatchState, attempt: AttemptId) -> Option<RunPlanStatus>;

    /// As [`FollowsPlan::preview_plan_status`].
    fn preview_plan_status(
        &self,
        state: &mut DispatchState,
        run: (AttemptId, &str),
        came: Timestamp,
        now: Timestamp,
    ) -> Option<PlanReservation>;

    /// As [`FollowsPlan::planned_until`].
    fn planned_until(&self, state: &mut DispatchState, attempt: AttemptId, stage: Stage) -> Option<Timestamp>;

    /// As [`FollowsPlan::plan_counts`].
    fn plan_counts(&self, state: &mut DispatchState, now: Timestamp) -> Option<PlanCounts>;

    /// As [`FollowsPlan::plan_progress`].
    fn plan_progress(&self, state: &mut DispatchState, now: Timestamp) -> Option<Vec<JobProgress>>;
}

/// A State whose type is forgotten; belongs to the dispatcher that started it.
pub struct DispatchState(Box<dyn AnyState>);

trait AnyState: Send {
    fn clone_box(&self) -> Box<dyn AnyState>;
    fn to_json(&self) -> Result<String, serde_json::Error>;
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<S: Clone + Serialize + Send + 'static> AnyState for S {
    fn clone_box(&self) -> Box<dyn AnyState> {
        Box::new(self.clone())
    }

    fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Clone for DispatchState {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl std::fmt::Debug for DispatchState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_json().unwrap_or_else(|error| error.to_string()))
    }
}

impl DispatchState {
    /// Forgets the type of `state`.
    pub fn new<S: Clone + Serialize + Send + 'static>(state: S) -> Self {
        Self(Box::new(state))
    }

    /// The State, if it is of that type.
    pub fn of<S: 'static>(&mut self) -> Option<&mut S> {
        self.0.as_any().downcast_mut()
    }

    /// The State, written down.
    ///
    /// # Errors
    /// Where serde can't write it (a map with odd keys).
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        self.0.to_json()
    }
}

impl<D: Dispatch> DynDispatch for D {
    fn start(&self) -> DispatchState {
        DispatchState::new(Dispatch::start(self))
    }

    fn observe(&self, state: &mut DispatchState, event: &DispatchEvent, view: &View<'_>) {
        Dispatch::observe(self, own::<D>(state), event, view);
    }

    fn offer(&self, state: &mut DispatchState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        Dispatch::offer(self, own::<D>(state), offer, view)
    }

    fn as_times_shuffles(&self) -> Option<&dyn DynTimesShuffles> {
        Dispatch::as_times_shuffles(self)
    }

    fn as_follows_plan(&self) -> Option<&dyn DynFollowsPlan> {
        Dispatch::as_follows_plan(self)
    }

    fn restore(&self, json: &str) -> Result<DispatchState, serde_json::Error> {
        Ok(DispatchState::new(serde_json::from_str::<D::State>(json)?))
    }
}

impl<D: TimesShuffles> DynTimesShuffles for D {
    fn shuffle(&self, state: &mut DispatchState, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
        TimesShuffles::shuffle(self, own::<D>(state), ask, view)
    }
}

impl<D: FollowsPlan> DynFollowsPlan for D {
    fn plan_status(&self, state: &mut DispatchState, attempt: AttemptId) -> Option<RunPlanStatus> {
        FollowsPlan::plan_status(self, own::<D>(state), attempt)
    }

    fn preview_plan_status(
        &self,
        state: &mut DispatchState,
        run: (AttemptId, &str),
        came: Timestamp,
        now: Timestamp,
    ) -> Option<PlanReservation> {
        FollowsPlan::preview_plan_status(self, own::<D>(state), run, came, now)
    }

    fn planned_until(&self, state: &mut DispatchState, attempt: AttemptId, stage: Stage) -> Option<Timestamp> {
        FollowsPlan::planned_until(self, own::<D>(state), attempt, stage)
    }

    fn plan_counts(&self, state: &mut DispatchState, now: Timestamp) -> Option<PlanCounts> {
        FollowsPlan::plan_counts(self, own::<D>(state), now)
    }

    fn plan_progress(&self, state: &mut DispatchState, now: Timestamp) -> Option<Vec<JobProgress>> {
        FollowsPlan::plan_progress(self, own::<D>(state), now)
    }
}

fn own<D: Dispatch>(state: &mut DispatchState) -> &mut D::State {
    state.of().expect("a State is used only with the dispatcher that started it")
}
