//! Authority `hints`: YARN's capacity scheduler allocates, from asks that carry a policy's hints.
//!
//! # The model
//! - hintd hears events, and each node's heartbeats, [`Delays::feed`] late. Its policy is offered a node's room less
//!   what it has hinted there; each launch that it wants becomes a hint, which the ApplicationMaster's ask carries to
//!   YARN [`Delays::feed`] and [`Delays::master`] later.
//! - An ApplicationMaster asks [`Delays::master`] after its tasks begin to wait. A task without a hint is held back;
//!   a group of which none was hinted or launched for [`Delays::patience`] asks for its remaining tasks as stock
//!   applications do: hosts and racks of their input, and any node.
//! - YARN is the model of its CapacityScheduler ([`hintd_policy::capacity_scheduler`]) with one queue under fair
//!   ordering (`yarn.scheduler.capacity.<queue>.ordering-policy = fair`) and defaults besides. Maps ask with the hosts
//!   and racks of their inputs at priority 20, reduces for any node at priority 10. An ask for a hinted host is strict.
//! - ApplicationMasters have phases of their own: the first ask is [`Delays::master`] after the tasks begin to wait, give
//!   or take half a heartbeat, drawn by (seed, application). What they ask for later they tell YARN at once.
//! - A hint that was not met for [`Delays::lease`] ends. A task that was launched elsewhere than hinted counts for
//!   hintd as ended there and launched here.
//! - A policy called `capacity` is YARN by itself: nobody hints, and asks stand at once.
//!
//! Reduces of jobs with waiting maps hold as little of the cluster as under every policy of a comparison.

mod hints;
mod masters;
mod resource_manager;
#[cfg(test)]
mod tests;

use super::settings::SimSettings;
use crate::streams::{FIRST_ASKS, stream};
use hintd_model::units::{AttemptId, Bytes, Micros, NodeIdx, Timestamp};
use hintd_policy::DynDispatch;
use hintd_policy::capacity_scheduler::{ContainerNo, Decision, NodeType, Verdict};
use hintd_policy::dispatch::{Advice, DispatchEvent, DispatchState, DynTimesShuffles, Offer, TaskRef, View};
use hintd_policy::dispatch::{ShuffleAdvice, ShuffleAsk};
use hintd_policy::pool::{EARLY_REDUCES, JobIdx, Kind, NodeLocation, OfferedNode, Pick, Pool, SLOW_START, Task};
use hints::Hints;
use masters::Masters;
use rand::RngExt as _;
use resource_manager::{Asked, ResourceManager};
use serde::de::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// How late everybody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// From an ApplicationMaster's wish to the ask that stands at YARN.
    pub master: Micros,
    /// From what happens to what hintd knows, and from a hint to who gets it.
    pub feed: Micros,
    /// How long tasks are held back for a hint.
    pub patience: Micros,
    /// How long a hint holds.
    pub lease: Micros,
    /// Time between two heartbeats of an ApplicationMaster.
    pub beat: Micros,
    /// Of the phases of ApplicationMasters.
    pub seed: u64,
}

impl Delays {
    /// As settings have them, with the daemon's defaults for the rest.
    #[must_use]
    pub const fn of(settings: &SimSettings) -> Self {
        let (patience, lease) = (Micros::from_secs(5), Micros::from_secs(30));
        let (beat, seed) = (settings.heartbeat, settings.seed_of_phases());
        Self { master: settings.master_delay, feed: settings.feed_delay, patience, lease, beat, seed }
    }

    /// From when an application's tasks begin to wait to its first ask: [`Self::master`] in the mean, at a phase of its
    /// own. No two applications then meet the nodes' heartbeats alike because they were submitted at whole seconds.
    fn first_ask(&self, attempt: AttemptId) -> Micros {
        let width = self.beat.0.min(2 * self.master.0);
        let number = u64::from(attempt.application.sequence);
        Micros(self.master.0 - width / 2 + stream([self.seed, number, FIRST_ASKS, 0]).random_range(0..=width))
    }
}

/// What became of hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HintOutcome {
    /// Launched where they said.
    pub followed: u64,
    /// Launched elsewhere.
    pub elsewhere: u64,
    /// Not met in time.
    pub expired: u64,
    /// Launches without a hint.
    pub unhinted: u64,
}

/// YARN, ApplicationMasters and hintd, as one dispatcher for the simulator.
pub struct HintedYarn<'p> {
    hintd: Option<&'p dyn DynDispatch>,
    delays: Delays,
    outcome: [AtomicU64; 4],
}

impl std::fmt::Debug for HintedYarn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hints = self.hintd.is_some();
        f.debug_struct("HintedYarn").field("hints", &hints).field("delays", &self.delays).finish_non_exhaustive()
    }
}

/// What it remembers.
#[derive(Clone, Serialize)]
struct Yarn {
    pool: Pool,
    masters: Masters,
    hints: Hints,
    #[serde(serialize_with = "as_text")]
    hintd: Option<DispatchState>,
    /// What hintd has not heard yet.
    inbox: VecDeque<(Timestamp, DispatchEvent)>,
    /// The heartbeat that is served.
    served: Option<(NodeIdx, Timestamp)>,
    /// Containers of it that were not launched in yet.
    #[serde(skip)]
    given: VecDeque<Decision>,
    /// The container that a launch was advised for.
    #[serde(skip)]
    advised: Option<(TaskRef, ContainerNo)>,
    #[serde(skip)]
    manager: ResourceManager,
}

fn as_text<S: Serializer>(state: &Option<DispatchState>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = state.as_ref().map(DispatchState::to_json).transpose().map_err(serde::ser::Error::custom)?;
    text.serialize(serializer)
}

impl<'p> HintedYarn<'p> {
    /// With hints of `policy`; of `capacity` none.
    #[must_use]
    pub fn new(policy: &str, dispatch: &'p dyn DynDispatch, delays: Delays) -> Self {
        let hintd = (policy != hintd_policy::baselines::capacity::NAME).then_some(dispatch);
        Self { hintd, delays, outcome: Default::default() }
    }

    /// Whether anybody hints.
    #[must_use]
    pub const fn hints(&self) -> bool {
        self.hintd.is_some()
    }

    /// What became of hints, over all runs with this value.
    #[must_use]
    pub fn outcome(&self) -> HintOutcome {
        let [followed, elsewhere, expired, unhinted] =
            self.outcome.each_ref().map(|count| count.load(Ordering::Relaxed));
        HintOutcome { followed, elsewhere, expired, unhinted }
    }

    fn count(&self, what: usize) {
        self.outcome[what].fetch_add(1, Ordering::Relaxed);
    }

    /// hintd hears of it later.
    fn tell(&self, yarn: &mut Yarn, event: &DispatchEvent, now: Timestamp) {
        if self.hintd.is_some() {
            yarn.inbox.push_back((now.plus(self.delays.feed), event.clone()));
        }
    }

    fn launched(&self, yarn: &mut Yarn, task: &TaskRef, node: NodeIdx, view: &View<'_>) {
        yarn.masters.serve(task, view.now);
        if let Some((_, container)) = yarn.advised.take_if(|(advised, _)| advised == task) {
            yarn.manager.runs(task, container);
        }
        let spot = NodeLocation { rack: view.snapshot.rack(node), node };
        let hinted = yarn.hints.take(task);
        if hinted.is_some() {
            // It had left its group's rows when it was hinted.
            yarn.manager.restore(task, spot);
        } else {
            yarn.count(task, false, Some(spot));
        }
        match hinted {
            // hintd counts it as running there since it gave the hint.
            Some(at) if at == node => return self.count(0),
            Some(at) => {
                self.count(1);
                self.tell(yarn, &ended_there(task, at), view.now);
            }
            None => self.count(3),
        }
        self.tell(yarn, &DispatchEvent::Launched { task: task.clone(), node }, view.now);
    }

    /// hintd hears what is due, and of hints that ended.
    fn catch_up(&self, yarn: &mut Yarn, view: &View<'_>) {
        let Some(hintd) = self.hintd else { return };
        while let Some((task, node)) = yarn.hints.expire(view.now) {
            self.count(2);
            yarn.count(&task, true, None);
            self.tell(yarn, &ended_there(&task, node), view.now);
        }
        let state = yarn.hintd.as_mut().expect("with a policy there is its State");
        while yarn.inbox.front().is_some_and(|(due, _)| *due <= view.now) {
            let Some((_, event)) = yarn.inbox.pop_front() else { break };
            hintd.observe(state, &event, view);
        }
    }

    /// hintd's answer to a heartbeat: hints for the node.
    fn hint(&self, yarn: &mut Yarn, offer: &Offer, view: &View<'_>) {
        let Some(hintd) = self.hintd else { return };
        let delays = self.delays;
        let visible = view.now.plus(delays.feed).plus(delays.master);
        let mut free = offer.free.minus(&yarn.hints.on(offer.node));
        loop {
            let state = yarn.hintd.as_mut().expect("with a policy there is its State");
            let advice = hintd.offer(state, &Offer { node: offer.node, free }, view);
            let before = free;
            for advice in advice {
                let Advice::Launch(task) = advice else { continue };
                // What YARN launched meanwhile hintd hears of in time.
                let Some(size) = yarn.pool.size_if_waiting(&task).filter(|_| yarn.hints.of(&task).is_none()) else {
                    continue;
                };
                if !view.snapshot.rules.feasible(&size, &free) {
                    continue;
                }
                free = free.minus(&size);
                let state = yarn.hintd.as_mut().expect("with a policy there is its State");
                hintd.observe(state, &DispatchEvent::Launched { task: task.clone(), node: offer.node }, view);
                yarn.masters.serve(&task, visible);
                yarn.count(&task, false, None);
                yarn.hints.give(task, offer.node, size, visible, visible.plus(delays.lease));
            }
            if free == before {
                return;
            }
        }
    }

    /// What YARN gives the node at this heartbeat.
    fn allocate(&self, yarn: &mut Yarn, offer: &Offer, view: &View<'_>) {
        let early_mb = yarn.pool.early_room_mb(view);
        let patience = if self.hintd.is_some() { self.delays.patience } else { Micros::ZERO };
        let (pool, masters, hints) = (&yarn.pool, &yarn.masters, &yarn.hints);
        let stands = |asked: Asked<'_>| {
            let Some(job) = pool.find(asked.attempt) else { return false };
            let Some(group) = pool.group_of(job, asked.group) else { return false };
            let task = Task { job, group, index: 0 };
            if pool.kind(task) == Kind::Reduce && !reduces_ask(pool, job, task, early_mb) {
                return false;
            }
            asked.hinted
                || masters.impatient(asked.attempt, asked.group, patience, view.now)
                    && pool.waiting_in(task) as usize > hints.count(asked.attempt, asked.group)
        };
        let hinted = hints.visible(offer.node, view.now).map(|(task, _)| task);
        let decided = yarn.manager.heartbeat(view.snapshot, (offer.node, &offer.free), hinted, stands);
        let given = |decision: &Decision| matches!(decision.verdict, Verdict::Allocated | Verdict::FromReservation);
        yarn.given = decided.into_iter().filter(given).collect();
    }

    /// A task for the next container that was given; ApplicationMasters choose by where its input lies.
    fn next_launch(yarn: &mut Yarn, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
        while let Some(decision) = yarn.given.pop_front() {
            if let Some(task) = choose(yarn, &decision, offer, view) {
                yarn.advised = Some((task.clone(), decision.container));
                return Some(task);
            }
            yarn.manager.give_back(&decision);
        }
        None
    }
}

impl Yarn {
    /// A task is asked for by its group's rows again, or no more.
    fn count(&mut self, task: &TaskRef, more: bool, also: Option<NodeLocation>) {
        if let Some(known) = self.pool.named(task) {
            self.manager.count(task, self.pool.replicas_of(known), more, also);
        }
    }
}

/// Whether the job's ApplicationMaster asks for reduces by now.
fn reduces_ask(pool: &Pool, job: JobIdx, reduce: Task, early_mb: u64) -> bool {
    pool.reduces_may_run(job) && (!pool.waits_for_maps(job) || pool.size_of(reduce).memory_mb() <= early_mb)
}

/// The task that its ApplicationMaster runs in a container.
fn choose(yarn: &Yarn, decision: &Decision, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
    let asked = yarn.manager.asked(decision)?;
    if asked.hinted {
        let of_group = |task: &&TaskRef| task.attempt == asked.attempt && task.group == *asked.group;
        let hinted = yarn.hints.visible(decision.node, view.now).map(|(task, _)| task);
        return hinted.filter(of_group).min_by_key(|task| task.index).cloned();
    }
    let (pool, slot) = (&yarn.pool, OfferedNode::new(offer, view));
    let job = pool.find(asked.attempt)?;
    let group = pool.group_of(job, asked.group)?;
    let task = if pool.kind(Task { job, group, index: 0 }) == Kind::Reduce {
        pool.reduce(job, &slot)
    } else {
        let (pick, near) = (Pick::Largest, decision.kind);
        let local = pool.local_map(job, &slot, pick);
        let rack = || pool.rack_map(job, &slot, pick).filter(|_| near != NodeType::OffSwitch);
        local.or_else(rack).or_else(|| pool.any_map(job, &slot, pick))
    };
    task.map(|task| pool.name(task))
}

/// As hintd is to count a task that is not where it was hinted.
fn ended_there(task: &TaskRef, node: NodeIdx) -> DispatchEvent {
    let (duration, input, output) = (Micros::ZERO, Bytes::ZERO, Bytes::ZERO);
    DispatchEvent::Finished { task: task.clone(), node, duration, input, output, failed: true }
}

fn own(state: &mut DispatchState) -> &mut Yarn {
    state.of().expect("a State is used only with the dispatcher that started it")
}

impl DynDispatch for HintedYarn<'_> {
    fn start(&self) -> DispatchState {
        DispatchState::new(Yarn {
            pool: Pool::new(SLOW_START, EARLY_REDUCES),
            masters: Masters::default(),
            hints: Hints::default(),
            hintd: self.hintd.map(DynDispatch::start),
            inbox: VecDeque::new(),
            served: None,
            given: VecDeque::new(),
            advised: None,
            manager: ResourceManager::new(),
        })
    }

    fn observe(&self, state: &mut DispatchState, event: &DispatchEvent, view: &View<'_>) {
        let yarn = own(state);
        yarn.pool.observe(event, view);
        match event {
            DispatchEvent::Launched { task, node } => return self.launched(yarn, task, *node, view),
            DispatchEvent::Waiting(group) => {
                let reduces = &*group.role == "reduce";
                yarn.manager.ask(group, reduces, view.snapshot);
                let from = group.since.plus(self.delays.first_ask(group.attempt));
                yarn.masters.ask(group.attempt, &group.group, from);
            }
            DispatchEvent::Finished { task, failed, .. } => {
                yarn.manager.ends(task);
                if *failed {
                    yarn.manager.outdate();
                    yarn.count(task, true, None);
                }
            }
            DispatchEvent::Lost(task) => {
                yarn.manager.outdate();
                yarn.count(task, true, None);
            }
            DispatchEvent::Done(attempt) => {
                yarn.hints.forget(*attempt);
                yarn.masters.forget(*attempt);
                yarn.manager.forget(*attempt);
            }
            DispatchEvent::RackUse { .. }
            | DispatchEvent::Run { .. }
            | DispatchEvent::Recurs { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Plan(_) => {}
        }
        self.tell(yarn, event, view.now);
    }

    fn offer(&self, state: &mut DispatchState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let yarn = own(state);
        self.catch_up(yarn, view);
        // A heartbeat is offered again after each launch: YARN has decided on all of it by then.
        if yarn.served.replace((offer.node, view.now)) != Some((offer.node, view.now)) {
            self.hint(yarn, offer, view);
            self.allocate(yarn, offer, view);
        }
        Self::next_launch(yarn, offer, view).map(Advice::Launch).into_iter().collect()
    }

    fn as_times_shuffles(&self) -> Option<&dyn DynTimesShuffles> {
        self.hintd?.as_times_shuffles().map(|_| self as _)
    }

    fn restore(&self, _json: &str) -> Result<DispatchState, serde_json::Error> {
        Err(serde_json::Error::custom("a simulated YARN is not read back: a run starts from its trace"))
    }
}

impl DynTimesShuffles for HintedYarn<'_> {
    /// ApplicationMasters ask hintd.
    fn shuffle(&self, state: &mut DispatchState, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
        let yarn = own(state);
        self.catch_up(yarn, view);
        match (self.hintd.and_then(DynDispatch::as_times_shuffles), &mut yarn.hintd) {
            (Some(hintd), Some(state)) => hintd.shuffle(state, ask, view),
            _ => ShuffleAdvice::Start,
        }
    }
}
