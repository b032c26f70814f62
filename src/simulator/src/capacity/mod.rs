//! Authority `hints`: YARN's capacity scheduler allocates, from asks that carry a policy's hints.
//!
//! # The model
//! - hintd hears events, and each node's heartbeats, [`Delays::feed`] late. Its policy is offered a node's room less
//!   what it has hinted there; each launch that it wants becomes a hint, which the ApplicationMaster's ask carries to
//!   YARN [`Delays::feed`] and [`Delays::master`] later.
//! - An ApplicationMaster asks [`Delays::master`] after its tasks begin to wait. A task without a hint is held back;
//!   a group of which none was hinted or launched for [`Delays::patience`] asks for its remaining tasks as stock
//!   applications do: hosts and racks of their input, and any node.
//! - YARN goes through applications in the fair order of `yarn.scheduler.capacity.<queue>.ordering-policy = fair`,
//!   users with fewest containers first. An ask for the node that reports is met first; a default ask by delay
//!   scheduling: at a node of its input at once, in a rack of it after [`NODE_LOCALITY_DELAY`] offers missed, anywhere
//!   after as many as there are nodes, or tasks left.
//! - A hint that was not met for [`Delays::lease`] ends. A task that was launched elsewhere than hinted counts for
//!   hintd as ended there and launched here.
//! - A policy called `capacity` is YARN by itself: nobody hints, and asks stand at once.
//!
//! Reduces of jobs with waiting maps hold as little of the cluster as under every policy of a comparison.

mod hints;
mod masters;
#[cfg(test)]
mod tests;

use super::settings::SimSettings;
use hintd_model::cluster::Resource;
use hintd_model::units::{Bytes, Micros, NodeIdx, Timestamp};
use hintd_policy::DynDispatch;
use hintd_policy::dispatch::{Advice, DispatchEvent, DispatchState, DynTimesShuffles, Offer, TaskRef, View};
use hintd_policy::dispatch::{ShuffleAdvice, ShuffleAsk};
use hintd_policy::pool::{EARLY_REDUCES, JobIdx, Locality, OfferedNode, Pool, SLOW_START, Task};
use hints::Hints;
use masters::Masters;
use serde::de::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// `yarn.scheduler.capacity.node-locality-delay`.
pub const NODE_LOCALITY_DELAY: u32 = 40;

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
}

impl Delays {
    /// As settings have them, with the daemon's defaults for the rest.
    #[must_use]
    pub const fn of(settings: &SimSettings) -> Self {
        let (patience, lease) = (Micros::from_secs(5), Micros::from_secs(30));
        Self { master: settings.master_delay, feed: settings.feed_delay, patience, lease }
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
    /// The heartbeat that hintd has answered.
    answered: Option<(NodeIdx, Timestamp)>,
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

    fn launched(&self, yarn: &mut Yarn, task: &TaskRef, node: NodeIdx, now: Timestamp) {
        yarn.masters.serve(task, now);
        let hinted = yarn.hints.take(task);
        match hinted {
            // hintd counts it as running there since it gave the hint.
            Some(at) if at == node => return self.count(0),
            Some(at) => {
                self.count(1);
                self.tell(yarn, &ended_there(task, at), now);
            }
            None => self.count(3),
        }
        self.tell(yarn, &DispatchEvent::Launched { task: task.clone(), node }, now);
    }

    /// hintd hears what is due, and of hints that ended.
    fn catch_up(&self, yarn: &mut Yarn, view: &View<'_>) {
        let Some(hintd) = self.hintd else { return };
        while let Some((task, node)) = yarn.hints.expire(view.now) {
            self.count(2);
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
        if yarn.answered.replace((offer.node, view.now)) == Some((offer.node, view.now)) {
            return;
        }
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
                yarn.hints.give(task, offer.node, size, visible, visible.plus(delays.lease));
            }
            if free == before {
                return;
            }
        }
    }

    /// What YARN gives the node.
    fn allocate(&self, yarn: &mut Yarn, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
        let fits = |size: &Resource| view.snapshot.rules.feasible(size, &offer.free);
        let pool = &yarn.pool;
        let hinted = yarn.hints.visible(offer.node, view.now).filter(|(_, size)| fits(size)).map(|(task, _)| task);
        let first = hinted.min_by_key(|task| {
            let job = pool.find(task.attempt);
            (job.map(|job| (pool.user_running(pool.user(job)), pool.running(job))), task.attempt, task.index)
        });
        if let Some(task) = first {
            return Some(task.clone());
        }
        let slot = OfferedNode::new(offer, view);
        let patience = if self.hintd.is_some() { self.delays.patience } else { Micros::ZERO };
        let (masters, hints) = (&yarn.masters, &yarn.hints);
        let asks = |pool: &Pool, task: Task| {
            let name = pool.name(task);
            masters.impatient(name.attempt, &name.group, patience, view.now)
                && pool.waiting_in(task) as usize > hints.count(name.attempt, &name.group)
        };
        let accept = |pool: &Pool, job: JobIdx| pool.reduce(job, &slot).is_some_and(|task| asks(pool, task));
        let reduce = yarn.pool.first_reduce(&slot, accept);
        let (mut found, mut passed) = (None, Vec::new());
        let pool = &yarn.pool;
        for job in pool.with_maps_before(reduce).flat_map(|user| pool.map_jobs(user)) {
            let Some((task, locality)) = pool.nearest_map(job, &slot).filter(|(task, _)| asks(pool, *task)) else {
                continue;
            };
            let missed = masters.missed(pool.attempt(job));
            if missed >= enough(locality, view, pool.waiting_in(task)) {
                found = Some((task, if locality == Locality::Other { missed } else { 0 }));
                break;
            }
            passed.push((pool.attempt(job), missed + 1));
        }
        for (attempt, missed) in passed {
            yarn.masters.set_missed(attempt, missed);
        }
        let Some((task, missed)) = found else { return reduce.map(|task| yarn.pool.name(task)) };
        yarn.masters.set_missed(yarn.pool.attempt(task.job), missed);
        Some(yarn.pool.name(task))
    }
}

/// Offers missed before YARN launches so far from the input.
fn enough(locality: Locality, view: &View<'_>, waiting: u32) -> u32 {
    let nodes = u32::try_from(view.snapshot.nodes()).unwrap_or(u32::MAX);
    match locality {
        Locality::Node => 0,
        Locality::Rack => NODE_LOCALITY_DELAY.min(nodes),
        Locality::Other => NODE_LOCALITY_DELAY.min(nodes).max(nodes.min(waiting)),
    }
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
            answered: None,
        })
    }

    fn observe(&self, state: &mut DispatchState, event: &DispatchEvent, view: &View<'_>) {
        let yarn = own(state);
        yarn.pool.observe(event, view);
        match event {
            DispatchEvent::Launched { task, node } => return self.launched(yarn, task, *node, view.now),
            DispatchEvent::Waiting(group) => {
                yarn.masters.ask(group.attempt, &group.group, group.since.plus(self.delays.master));
            }
            DispatchEvent::Done(attempt) => {
                yarn.hints.forget(*attempt);
                yarn.masters.forget(*attempt);
            }
            DispatchEvent::Finished { .. }
            | DispatchEvent::Lost(_)
            | DispatchEvent::RackUse { .. }
            | DispatchEvent::Run { .. }
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Plan(_) => {}
        }
        self.tell(yarn, event, view.now);
    }

    fn offer(&self, state: &mut DispatchState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let yarn = own(state);
        self.catch_up(yarn, view);
        self.hint(yarn, offer, view);
        self.allocate(yarn, offer, view).map(Advice::Launch).into_iter().collect()
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
