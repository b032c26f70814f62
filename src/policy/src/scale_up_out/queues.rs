//! Two queues of jobs, one a class, each in its own order; and jobs that are stolen from the one to the other (004 §5.2.3).
//!
//! The paper steals for machines that are idle. In a full cluster none is, and small jobs would wait for the few scale-up
//! machines however long their backlog is: so a job is also stolen as it comes, if it ends sooner that way
//! ([`Steal::WhenSooner`], a deviation).
//!
//! A job is told to its queue whole, when the first offer or launch after its groups comes: until then it is not known how
//! many tasks it has. What a stolen job waits for is told again to the other queue, so groups of jobs that wait for
//! scale-up machines are kept until their first task starts.

use super::backlog::Backlog;
use super::classes::{Classes, Side};
use super::params::{Order, ScaleUpOutParams, Steal};
use super::time::{BLOCK, JobShape};
use crate::advise::EarlierRun;
use crate::baselines::delay::{Delay, DelayParams, DelayState};
use crate::baselines::fair::{Fair, FairParams};
use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, View, WaitingGroup};
use crate::pool::{HoldReason, OfferedNode, Pool, RECENT, not_yet, recent};
use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, Bytes};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Jobs looked at for one that fits an idle machine, nearest to the boundary first.
const LOOKED_AT: usize = 64;

/// What waits and runs, by class.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueuesState {
    up: Queue,
    out: Queue,
    jobs: BTreeMap<AttemptId, Job>,
    /// Told of, and in no queue as it is now; as they came.
    unassigned: Vec<AttemptId>,
    /// Jobs of the scale-up queue of which nothing ran yet, by how far they are from the boundary.
    stealable: BTreeSet<(u64, AttemptId)>,
    /// Jobs that scale-out machines stole so far.
    stolen: u64,
    /// Waiting work by class, up and out, where jobs are stolen by when they end.
    #[serde(default)]
    backlog: [Backlog; 2],
    #[serde(skip)]
    classes: Classes,
    /// Queues of jobs that run, the last one told with these bits of its number: most events are of few jobs.
    #[serde(skip)]
    recent: Vec<Option<(AttemptId, Side)>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Job {
    /// Its queue, once it has one.
    side: Option<Side>,
    /// Above 0: small.
    decision: f64,
    started: bool,
    run: Option<Arc<EarlierRun>>,
    /// Its groups, until it starts or is known to be a scale-out job.
    groups: Vec<WaitingGroup>,
    /// Milliseconds of a task on its class's machines, in the mean, and what the class's backlog has of its tasks that wait.
    #[serde(default)]
    task_ms: u64,
    #[serde(default)]
    waiting_ms: u64,
}

/// Where a job waits, and why there.
#[derive(Debug, Clone, Copy)]
struct Choice {
    side: Side,
    decision: f64,
    /// A small job that ends sooner behind the other class's backlog.
    stolen: bool,
}

/// One class's jobs, in the order of one of the baselines.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Queue {
    Fair(Pool),
    Delay(DelayState),
}

impl Queue {
    fn new(params: &ScaleUpOutParams) -> Self {
        match params.order {
            Order::Fair => Self::Fair(Pool::new(params.slow_start, params.early_reduces)),
            Order::Delay => Self::Delay(delay(params).start()),
        }
    }

    fn pool(&mut self) -> &mut Pool {
        match self {
            Self::Fair(pool) => pool,
            Self::Delay(state) => state.pool_mut(),
        }
    }

    fn observe(&mut self, params: &ScaleUpOutParams, event: &DispatchEvent, view: &View<'_>) {
        match self {
            Self::Fair(pool) => drop(pool.observe(event, view)),
            Self::Delay(state) => delay(params).observe(state, event, view),
        }
    }

    fn offer(&mut self, params: &ScaleUpOutParams, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        match self {
            Self::Fair(pool) => fair(params).offer(pool, offer, view),
            Self::Delay(state) => delay(params).offer(state, offer, view),
        }
    }

    /// Whether maps wait that may yet be launched there when they are nearer.
    fn waits_for_locality(&mut self) -> bool {
        match self {
            Self::Fair(_) => false,
            Self::Delay(state) => !state.pool_mut().users_with_maps().is_empty(),
        }
    }
}

fn fair(params: &ScaleUpOutParams) -> Fair {
    let (slow_start, early_reduces) = (params.slow_start, params.early_reduces);
    crate::Definition::new(FairParams { slow_start, early_reduces })
}

fn delay(params: &ScaleUpOutParams) -> Delay {
    let ScaleUpOutParams { slow_start, early_reduces, node_skips, .. } = *params;
    crate::Definition::new(DelayParams { node_skips, rack_skips: 0, slow_start, early_reduces })
}

/// The parameters, how small a job is, and how long its tasks take.
pub(super) struct Rules<'a> {
    pub(super) params: &'a ScaleUpOutParams,
    pub(super) decision: &'a dyn Fn(&JobShape) -> f64,
    /// Seconds for the job alone on so many containers of a class.
    pub(super) seconds: &'a dyn Fn(Side, &JobShape, u64) -> f64,
}

impl QueuesState {
    pub(super) fn new(params: &ScaleUpOutParams) -> Self {
        Self {
            up: Queue::new(params),
            out: Queue::new(params),
            jobs: BTreeMap::new(),
            unassigned: Vec::new(),
            stealable: BTreeSet::new(),
            stolen: 0,
            backlog: Default::default(),
            classes: Classes::default(),
            recent: Vec::new(),
        }
    }

    /// Jobs that scale-out machines stole so far.
    #[must_use]
    pub const fn stolen(&self) -> u64 {
        self.stolen
    }

    /// The job's queue, and its decision value: above 0 it is small. `None`: it is in none yet.
    #[must_use]
    pub fn job(&self, attempt: AttemptId) -> Option<(Side, f64)> {
        let job = self.jobs.get(&attempt)?;
        job.side.map(|side| (side, job.decision))
    }

    /// Jobs of the scale-up queue that may be stolen, nearest to the boundary first.
    pub fn stealable(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.stealable.iter().map(|&(_, attempt)| attempt)
    }

    pub(super) fn observe(&mut self, rules: &Rules<'_>, event: &DispatchEvent, view: &View<'_>) {
        match event {
            DispatchEvent::Waiting(group) => self.waiting(rules, group, view),
            DispatchEvent::Recurs { attempt, run, .. } => {
                self.jobs.entry(*attempt).or_default().run = Some(Arc::clone(run));
            }
            DispatchEvent::Launched { task, .. } => {
                self.assign_queues(rules, view);
                if self.side_of_started(task.attempt).is_none() {
                    self.started(task.attempt);
                }
                self.tell(rules.params, task.attempt, event, view);
            }
            DispatchEvent::Finished { task, .. } | DispatchEvent::Lost(task) => {
                self.assign_queues(rules, view);
                self.tell(rules.params, task.attempt, event, view);
            }
            DispatchEvent::Done(attempt) => {
                self.assign_queues(rules, view);
                self.tell(rules.params, *attempt, event, view);
                self.started(*attempt);
                self.jobs.remove(attempt);
                self.forget_started(*attempt);
            }
            DispatchEvent::RackUse { .. }
            | DispatchEvent::Run { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Plan(_) => {}
        }
    }

    fn waiting(&mut self, rules: &Rules<'_>, group: &WaitingGroup, view: &View<'_>) {
        let job = self.jobs.entry(group.attempt).or_default();
        // A job that runs, or is large, stays where it is.
        if job.started || job.side == Some(Side::Out) {
            return self.tell(rules.params, group.attempt, &DispatchEvent::Waiting(group.clone()), view);
        }
        match job.groups.iter_mut().find(|told| told.group == group.group) {
            Some(told) => *told = group.clone(),
            None => job.groups.push(group.clone()),
        }
        if !self.unassigned.contains(&group.attempt) {
            self.unassigned.push(group.attempt);
        }
    }

    /// The job can't be stolen any more.
    fn started(&mut self, attempt: AttemptId) {
        let Some(job) = self.jobs.get_mut(&attempt) else { return };
        if !std::mem::replace(&mut job.started, true) {
            job.groups = Vec::new();
            self.stealable.remove(&(distance(job.decision), attempt));
        }
        if let Some(side) = job.side {
            self.recent.resize(RECENT, None);
            self.recent[recent(attempt)] = Some((attempt, side));
        }
    }

    /// The queue of a job that runs, where it was asked lately: it keeps it to its end.
    fn side_of_started(&self, attempt: AttemptId) -> Option<Side> {
        let known = self.recent.get(recent(attempt)).copied().flatten();
        known.filter(|known| known.0 == attempt).map(|known| known.1)
    }

    fn forget_started(&mut self, attempt: AttemptId) {
        if self.side_of_started(attempt).is_some() {
            self.recent[recent(attempt)] = None;
        }
    }

    fn tell(&mut self, params: &ScaleUpOutParams, attempt: AttemptId, event: &DispatchEvent, view: &View<'_>) {
        let known = self.side_of_started(attempt);
        match known.or_else(|| self.jobs.get(&attempt).and_then(|job| job.side)) {
            Some(Side::Up) => self.up.observe(params, event, view),
            Some(Side::Out) => self.out.observe(params, event, view),
            None => {}
        }
        if params.steal == Steal::WhenSooner {
            self.weigh(attempt);
        }
    }

    /// Keeps the backlog of the job's class true of its tasks that wait.
    fn weigh(&mut self, attempt: AttemptId) {
        let Some(job) = self.jobs.get_mut(&attempt) else { return };
        let Some(side) = job.side else { return };
        let queue = if side == Side::Up { &mut self.up } else { &mut self.out };
        let pool = queue.pool();
        let tasks = pool.find(attempt).map_or(0, |row| pool.waiting_tasks(row));
        let was = std::mem::replace(&mut job.waiting_ms, job.task_ms.saturating_mul(tasks.into()));
        self.backlog[side as usize].change(was, job.waiting_ms);
    }

    /// Puts what came since into its queues.
    fn assign_queues(&mut self, rules: &Rules<'_>, view: &View<'_>) {
        if self.unassigned.is_empty() {
            return;
        }
        self.classes.look(view, &rules.params.scale_up);
        for attempt in std::mem::take(&mut self.unassigned) {
            let Some(job) = self.jobs.get(&attempt) else { continue };
            let (was, before) = (job.side, job.decision);
            let choice = self.choose(rules, job, view);
            self.stealable.remove(&(distance(before), attempt));
            if was.is_some_and(|was| was != choice.side) {
                self.tell(rules.params, attempt, &DispatchEvent::Done(attempt), view);
            }
            self.stolen += u64::from(choice.stolen);
            self.put(rules, attempt, choice, view);
        }
    }

    /// Tells a queue of all of a job's groups.
    fn put(&mut self, rules: &Rules<'_>, attempt: AttemptId, to: Choice, view: &View<'_>) {
        let Some(job) = self.jobs.get_mut(&attempt) else { return };
        (job.side, job.decision) = (Some(to.side), to.decision);
        if rules.params.steal == Steal::WhenSooner {
            let shape = shape(job);
            job.task_ms = ms((rules.seconds)(to.side, &shape, 1)) / shape.tasks().max(1);
        }
        let groups = std::mem::take(&mut job.groups);
        let mut kept = Vec::with_capacity(groups.len());
        for group in groups {
            let event = DispatchEvent::Waiting(group);
            self.tell(rules.params, attempt, &event, view);
            if let DispatchEvent::Waiting(group) = event {
                kept.push(group);
            }
        }
        if to.side == Side::Up {
            self.jobs.entry(attempt).or_default().groups = kept;
            self.stealable.insert((distance(to.decision), attempt));
        }
    }

    /// The queue of a job that waits.
    fn choose(&self, rules: &Rules<'_>, job: &Job, view: &View<'_>) -> Choice {
        let held = |side| job.groups.iter().all(|group| self.classes.could_hold(view, side, &group.size));
        let to = |side, decision| Choice { side, decision, stolen: false };
        if !rules.params.queues || !self.classes.runs(view, Side::Up) {
            return to(Side::Out, 0.0);
        }
        let shape = shape(job);
        let decision = (rules.decision)(&shape);
        // A container that only one class's machines are large enough for goes there, whatever the job.
        match (held(Side::Up), held(Side::Out)) {
            (true, false) => to(Side::Up, decision),
            (true, true) if decision > 0.0 => {
                let stolen = rules.params.steal == Steal::WhenSooner && self.ends_sooner_out(rules, job, &shape, view);
                Choice { side: if stolen { Side::Out } else { Side::Up }, decision, stolen }
            }
            _ => to(Side::Out, decision),
        }
    }

    /// Whether a job that comes now would end on scale-out machines before it ended on scale-up machines: in either queue
    /// behind as much of each other job's waiting work as it has itself, then alone.
    fn ends_sooner_out(&self, rules: &Rules<'_>, job: &Job, shape: &JobShape, view: &View<'_>) -> bool {
        let size = job.groups.iter().max_by_key(|group| group.count).map_or(Resource::ZERO, |group| group.size);
        // Its own work is none that it waits for.
        let own = |side: Side| if job.side == Some(side) { job.waiting_ms } else { 0 };
        let end_s = |side: Side| match self.classes.containers(view, side, &size) {
            0 => f64::INFINITY,
            containers => {
                let work = ms((rules.seconds)(side, shape, 1));
                let ahead = self.backlog[side as usize].ahead_of_ms(work).saturating_sub(own(side).min(work));
                ahead as f64 / 1e3 / containers as f64 + (rules.seconds)(side, shape, containers)
            }
        };
        end_s(Side::Out) < end_s(Side::Up)
    }

    pub(super) fn offer(&mut self, rules: &Rules<'_>, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let params = rules.params;
        self.classes.look(view, &params.scale_up);
        self.assign_queues(rules, view);
        if !params.queues {
            return self.out.offer(params, offer, view);
        }
        for (side, queue) in [(Side::Up, &mut self.up), (Side::Out, &mut self.out)] {
            queue.pool().set_early_share(params.early_reduces * self.classes.memory_share(side));
        }
        let side = self.classes.side(offer.node);
        let (own, other, others) = match side {
            Side::Up => (&mut self.up, &mut self.out, Side::Out),
            Side::Out => (&mut self.out, &mut self.up, Side::Up),
        };
        let mut advice = own.offer(params, offer, view);
        if launches(&advice) {
            return advice;
        }
        // Machines of the other class are all gone: nobody else can run what waits for them.
        if !self.classes.runs(view, others) {
            advice.extend(other.offer(params, offer, view));
            return advice;
        }
        if view.explain {
            let slot = OfferedNode::new(offer, view);
            advice.extend(not_yet(other.pool(), &slot, |_, _, _| HoldReason::OtherClass));
        }
        if side == Side::Out && !self.out.waits_for_locality() && self.steal(rules, offer, view) {
            let stolen = self.out.offer(params, offer, view);
            if launches(&stolen) {
                return stolen;
            }
        }
        advice
    }

    /// Moves the waiting job nearest to the boundary that fits the idle scale-out machine into its queue.
    fn steal(&mut self, rules: &Rules<'_>, offer: &Offer, view: &View<'_>) -> bool {
        let params = rules.params;
        let fits = |size: &Resource| view.snapshot.rules.feasible(size, &offer.free);
        let may = |size: &Resource| match params.steal {
            Steal::Never => false,
            Steal::WhenFull | Steal::WhenSooner => !self.classes.up_has_room(view, size),
            Steal::Always => true,
        };
        let found = self.stealable.iter().take(LOOKED_AT).find(|(_, attempt)| {
            let groups = self.jobs.get(attempt).map_or(&[][..], |job| &job.groups);
            let held = groups.iter().all(|group| self.classes.could_hold(view, Side::Out, &group.size));
            held && groups.iter().any(|group| &*group.role != "reduce" && fits(&group.size) && may(&group.size))
        });
        let Some(&key) = found else { return false };
        let (_, attempt) = key;
        self.stealable.remove(&key);
        let decision = self.jobs.get(&attempt).map_or(0.0, |job| job.decision);
        self.tell(params, attempt, &DispatchEvent::Done(attempt), view);
        self.put(rules, attempt, Choice { side: Side::Out, decision, stolen: true }, view);
        self.stolen += 1;
        true
    }
}

fn launches(advice: &[Advice]) -> bool {
    advice.iter().any(|advice| matches!(advice, Advice::Launch(_)))
}

/// |decision value|, in an order that whole numbers have.
const fn distance(decision: f64) -> u64 {
    decision.abs().to_bits()
}

/// Whole milliseconds; what is too long to be counted counts as the most.
const fn ms(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}

/// What is known of the job: of one that never ran before, and of whose shuffle nobody tells, that it shuffles nothing
/// (004 §5.2.2).
fn shape(job: &Job) -> JobShape {
    let count = |reduces: bool| {
        let of_kind = job.groups.iter().filter(|group| (&*group.role == "reduce") == reduces);
        of_kind.map(|group| u64::from(group.count)).sum::<u64>()
    };
    let mut input = Bytes::ZERO;
    let mut told = None;
    for group in job.groups.iter().filter(|group| &*group.role != "reduce") {
        let known = group.inputs.iter().fold(Bytes::ZERO, |sum, input| sum.saturating_add(input.bytes));
        let unknown = u64::from(group.count).saturating_sub(group.inputs.len() as u64);
        input = input.saturating_add(known).saturating_add(Bytes(unknown.saturating_mul(BLOCK.0)));
        told = told.or(group.output_ratio.filter(|ratio| ratio.is_finite() && *ratio >= 0.0));
    }
    let before = job.run.as_ref().map(|run| run.shuffle);
    let shuffle = before.or_else(|| told.map(|ratio| Bytes((input.as_f64() * ratio) as u64))).unwrap_or_default();
    let reduces = count(true);
    JobShape { maps: count(false), reduces, input, shuffle: if reduces == 0 { Bytes::ZERO } else { shuffle } }
}
