//! One round: tasks of many jobs to machines by minimum-cost flow (Popescu and Moore, *No Delay*, §4–5).
//!
//! The network is the paper's: a task may stay unscheduled (at ω × wait + γ), go anywhere (at the cost of the worst machine of
//! all), to a rack (at that of the rack's worst machine, where it is at most p_r) or to a machine (where it is at most p_m). It is
//! built smaller, with the same cheapest flows:
//! - Waiting tasks of a job have one root and one curve: one vertex with a supply. Those that wait for longest go first.
//! - A machine that costs as much as its rack's arc needs none of its own, nor does a rack that costs as much as anywhere.
//! - Machines of a rack that no arc names are one capacity.
//! - Tasks left out are counted, not led through a vertex of their job.
//!
//! # Invariants
//! - No machine gets more tasks than it has slots; what runs and may not move is no part of the round.
//! - A round that is cut short leaves what runs where it is.

mod taker;

use super::curve::{Curve, MOST_COST};
use hintd_model::network::latency::Latencies;
use hintd_model::solve::mincost::{ArcId, ArcRow, MinCostError, MinCostProblem, NodeId, ProblemError, Simplex};
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::BTreeMap;
use std::rc::Rc;
use taker::Taker;

/// Machines whose costs are looked up between two looks at the probe.
const CHUNK: usize = 1_024;

/// Units of work for one cost.
pub(super) const LOOK_UP: u64 = 4;

/// Units of work for one arc.
const ARC: u64 = 16;

/// The largest cost of leaving a task out: waits without end add up to no more.
const MOST_WAIT: f64 = 1e9;

/// What one of cost is to the solver: staying is half a unit cheaper, so that nothing moves without a gain.
const UNIT: i64 = 2;

/// How many times finer costs are where tasks take several slots, at most: each slot carries its part of the task's cost.
const FINEST: u32 = 1 << 16;

/// A machine with room in the round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Which.
    pub node: NodeIdx,
    /// Its rack.
    pub rack: RackIdx,
    /// Free slots, and those of tasks that run there and may move.
    pub slots: u32,
}

/// Tasks that wait for equally long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// For how long, s.
    pub wait_s: u64,
    /// How many.
    pub count: u32,
}

/// Tasks that run on one machine for equally long, and may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningTasks {
    /// Position of their machine.
    pub machine: u32,
    /// For how long, s.
    pub ran_s: u64,
    /// How many.
    pub count: u32,
}

/// Where tasks of a job may go, where that is not anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The most on each machine, by position.
    pub on_machine: Vec<u32>,
    /// The most in each rack; none named: no bound.
    pub in_rack: BTreeMap<RackIdx, u32>,
}

/// A job whose root runs.
#[derive(Debug, Clone)]
pub struct RoundJob<'a> {
    /// Its performance by latency.
    pub curve: &'a Curve,
    /// Where its root is.
    pub root: NodeIdx,
    /// Tasks that wait.
    pub waiting: Vec<Waiting>,
    /// Tasks that run and may move.
    pub running: Vec<RunningTasks>,
    /// Bounds of the tasks that wait.
    pub bounds: Option<Bounds>,
    /// Slots that each of its tasks takes, at least 1. A flow may put parts of a task of several slots on different
    /// machines: such a task is left out of the answer, and waits.
    pub slots: u32,
}

/// What is decided together.
#[derive(Clone)]
#[allow(missing_debug_implementations)] // a trait object has nothing to show
pub struct Round<'a> {
    /// Machines; none twice.
    pub machines: &'a [Machine],
    /// Jobs whose root runs.
    pub jobs: Vec<RoundJob<'a>>,
    /// Roots that wait: one goes anywhere, at cost 0.
    pub roots: Vec<Waiting>,
    /// Between machines.
    pub latency: &'a dyn Latencies,
    /// What goes anywhere is drawn.
    pub seed: u64,
}

/// The cost model's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostModel {
    /// A machine is preferred at this cost or less.
    pub p_m: u32,
    /// A rack is preferred if its worst machine is at this cost or less.
    pub p_r: u32,
    /// What each second of waiting adds to the cost of waiting on.
    pub omega: f64,
    /// The cost of waiting on; above that of any machine.
    pub gamma: u32,
    /// What each second that a task has run takes off the cost of the machine that it runs on.
    pub beta: f64,
}

/// Where the tasks of a job go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobAnswer {
    /// Machines, by position, and how many of the waiting tasks each gets, least cost first.
    pub placed: Vec<(u32, u32)>,
    /// By [`RoundJob::running`].
    pub running: Vec<RunningAnswer>,
}

/// What becomes of tasks that run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunningAnswer {
    /// Tasks that stay.
    pub stay: u32,
    /// Machines, by position, that others move to.
    pub moved: Vec<(u32, u32)>,
    /// Tasks that lose their slot and wait again.
    pub preempted: u32,
}

/// What a round decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoundAnswer {
    /// By [`Round::jobs`].
    pub jobs: Vec<JobAnswer>,
    /// Machines, by position, one for each root that is placed; those that wait for longest go first.
    pub roots: Vec<u32>,
    /// Σ cost of all arcs that are used. Where tasks take several slots no answer costs less, up to rounding: each slot carries a
    /// part of its task's cost, in parts no finer than a 65,536th.
    pub cost: i128,
    /// Nothing costs less; false: the round was cut short.
    pub optimal: bool,
    /// Vertices and arcs of the network.
    pub size: (usize, usize),
    /// Pivots.
    pub steps: u64,
}

/// What can't be solved; with costs and counts within their types it does not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoundError {
    /// The network could not be built.
    #[error("the round's network: {0}")]
    Network(#[from] ProblemError),
    /// The network could not be solved.
    #[error("the round's flow: {0}")]
    Flow(#[from] MinCostError),
}

/// What a job's tasks cost by machine.
pub(super) struct JobCosts {
    /// By machine.
    pub(super) machine: Vec<u32>,
    /// By position of rack: its worst machine with a slot.
    rack: Vec<u32>,
    /// The worst rack.
    anywhere: u32,
    /// Racks, by position, with an arc of their own.
    rack_arcs: Vec<u32>,
    /// Machines with an arc of their own.
    machine_arcs: Vec<u32>,
}

/// Racks of the machines, by position.
pub(super) struct Racks {
    /// By machine.
    of: Vec<u32>,
    /// Which rack is at a position.
    list: Vec<RackIdx>,
    pub(super) members: Vec<Vec<u32>>,
    /// Of all machines there; beyond what one machine can have.
    slots: Vec<i64>,
}

impl Racks {
    fn new(machines: &[Machine]) -> Self {
        let mut known: BTreeMap<RackIdx, u32> = BTreeMap::new();
        let mut racks = Self { of: Vec::with_capacity(machines.len()), list: vec![], members: vec![], slots: vec![] };
        for (at, machine) in (0..).zip(machines) {
            let rack = *known.entry(machine.rack).or_insert(racks.list.len() as u32);
            if rack as usize == racks.list.len() {
                racks.list.push(machine.rack);
                racks.members.push(Vec::new());
                racks.slots.push(0);
            }
            racks.of.push(rack);
            racks.members[rack as usize].push(at);
            racks.slots[rack as usize] += i64::from(machine.slots);
        }
        racks
    }
}

/// What is around places that a root may have.
#[allow(missing_debug_implementations)] // a trait object has nothing to show
pub struct Around<'a> {
    /// Machines with room.
    pub machines: &'a [Machine],
    /// Tasks that are to be near.
    pub wanted: u64,
    /// Of the job.
    pub curve: &'a Curve,
    /// Between machines.
    pub latency: &'a dyn Latencies,
    /// What a task without a slot costs.
    pub gamma: u32,
}

impl Around<'_> {
    /// The place around which the tasks cost least, of equal ones the first; the first of all where `work` says to stop.
    #[must_use]
    pub fn best(&self, places: &[NodeIdx], work: &dyn Fn(u64) -> bool) -> Option<NodeIdx> {
        let mut best: Option<(u64, NodeIdx)> = None;
        for &place in places {
            let Some(cost) = self.cost(place, work) else { break };
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, place));
            }
        }
        best.map(|(_, place)| place).or_else(|| places.first().copied())
    }

    fn cost(&self, root: NodeIdx, work: &dyn Fn(u64) -> bool) -> Option<u64> {
        let mut slots = vec![0_u64; MOST_COST as usize + 1];
        let costs = costs_from(root, self.curve, self.machines, self.latency, work)?;
        for (cost, machine) in costs.into_iter().zip(self.machines) {
            slots[cost as usize] += u64::from(machine.slots);
        }
        let (mut cost, mut left) = (0, self.wanted);
        for (each, slots) in (0_u64..).zip(slots) {
            cost += each * slots.min(left);
            left -= slots.min(left);
        }
        Some(cost + left * u64::from(self.gamma))
    }
}

/// Costs of `curve` from `root` to each machine; `None`: `work` says to stop.
fn costs_from(
    root: NodeIdx,
    curve: &Curve,
    machines: &[Machine],
    latency: &dyn Latencies,
    work: &dyn Fn(u64) -> bool,
) -> Option<Vec<u32>> {
    let mut costs = Vec::with_capacity(machines.len());
    for chunk in machines.chunks(CHUNK) {
        if !work(LOOK_UP * chunk.len() as u64) {
            return None;
        }
        costs.extend(chunk.iter().map(|machine| curve.cost(latency.rtt(root, machine.node))));
    }
    Some(costs)
}

impl JobCosts {
    fn new(machine: Vec<u32>, machines: &[Machine], racks: &Racks, model: &CostModel) -> Self {
        let mut rack = vec![0; racks.list.len()];
        for ((cost, of), known) in machine.iter().zip(&racks.of).zip(machines) {
            if known.slots > 0 {
                let worst: &mut u32 = &mut rack[*of as usize];
                *worst = (*worst).max(*cost);
            }
        }
        let anywhere = rack.iter().copied().max().unwrap_or(0);
        let mut costs = Self { machine, rack, anywhere, rack_arcs: Vec::new(), machine_arcs: Vec::new() };
        costs.rack_arcs = (0..racks.list.len() as u32).filter(|at| costs.needs_rack_arc(model, *at as usize)).collect();
        let has_arc = |at: &u32| {
            let at = *at as usize;
            machines[at].slots > 0 && costs.needs_arc(model, at, racks.of[at] as usize)
        };
        costs.machine_arcs = (0..machines.len() as u32).filter(has_arc).collect();
        costs
    }

    /// The cheapest way to a machine: by an arc of its own, by its rack's, or by that to anywhere.
    fn least(&self, model: &CostModel, machine: usize, rack: usize) -> u32 {
        match (self.machine[machine], self.rack[rack]) {
            (own, _) if own <= model.p_m => own,
            (_, worst) if worst <= model.p_r => worst,
            _ => self.anywhere,
        }
    }

    /// Whether a machine needs an arc of its own.
    fn needs_arc(&self, model: &CostModel, machine: usize, rack: usize) -> bool {
        let (own, worst) = (self.machine[machine], self.rack[rack]);
        own <= model.p_m && own < self.anywhere && !(own == worst && worst <= model.p_r)
    }

    fn needs_rack_arc(&self, model: &CostModel, rack: usize) -> bool {
        self.rack[rack] <= model.p_r && self.rack[rack] < self.anywhere
    }
}

/// Tasks that are one vertex.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) job: u32,
    /// Position in [`RoundJob::running`]; `None`: those that wait.
    pub(super) running: Option<u32>,
}

/// What flow on an arc says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning {
    /// Tasks of a source go to a machine.
    Machine(Source, u32),
    /// They stay where they are.
    Stay(Source),
    /// They go to a rack.
    Rack(Source, u32),
    /// They go anywhere.
    Anywhere(Source),
    /// Roots go anywhere.
    Roots,
}

impl Meaning {
    /// Whose tasks; `None`: roots.
    pub(super) const fn source(self) -> Option<Source> {
        match self {
            Self::Machine(source, _) | Self::Rack(source, _) | Self::Stay(source) | Self::Anywhere(source) => {
                Some(source)
            }
            Self::Roots => None,
        }
    }
}

/// The network in the making.
struct Builder<'r, 'a> {
    round: &'r Round<'a>,
    model: &'r CostModel,
    racks: &'r Racks,
    costs: &'r [Rc<JobCosts>],
    problem: MinCostProblem,
    sink: NodeId,
    anywhere: NodeId,
    rack: Vec<NodeId>,
    /// By machine that has a vertex.
    machine: Vec<Option<NodeId>>,
    meanings: Vec<(ArcId, Meaning)>,
    /// Of all tasks, in slots.
    supply: i64,
    /// How many times finer than [`UNIT`] costs are.
    finer: i64,
}

/// What all slots of tasks can share costs by: 1 where each task takes one.
fn finer(jobs: &[RoundJob<'_>]) -> i64 {
    let common = |a: u64, b: u64| a / gcd(a, b) * b;
    let most = u64::from(FINEST);
    let finer = jobs.iter().fold(1, |finer, job| common(finer, u64::from(job.slots)).min(most));
    i64::try_from(finer).unwrap_or_else(|_| i64::from(FINEST))
}

/// The greatest common divisor; of 0 and another the other.
pub(super) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl<'r, 'a> Builder<'r, 'a> {
    fn new(
        round: &'r Round<'a>,
        model: &'r CostModel,
        racks: &'r Racks,
        costs: &'r [Rc<JobCosts>],
    ) -> Result<Self, ProblemError> {
        let mut problem = MinCostProblem::new();
        let (sink, anywhere) = (problem.add_node(0)?, problem.add_node(0)?);
        let rack = racks.list.iter().map(|_| problem.add_node(0)).collect::<Result<Vec<_>, _>>()?;
        let machine = vec![None; round.machines.len()];
        let (meanings, finer) = (Vec::new(), finer(&round.jobs));
        let mut builder =
            Self { round, model, racks, costs, problem, sink, anywhere, rack, machine, meanings, supply: 0, finer };
        for (at, slots) in racks.slots.iter().enumerate() {
            builder.arc(anywhere, builder.rack[at], *slots, 0)?;
        }
        Ok(builder)
    }

    fn arc(&mut self, from: NodeId, to: NodeId, capacity: i64, cost: i64) -> Result<ArcId, ProblemError> {
        self.problem.add_arc(ArcRow { from, to, capacity, cost })
    }

    /// Slots that each task of the source takes.
    fn slots(&self, source: Source) -> i64 {
        i64::from(self.round.jobs[source.job as usize].slots)
    }

    /// What a slot of a task carries of what the task costs, in half units.
    fn part(&self, halves: i64, slots: i64) -> i64 {
        (halves * self.finer + slots / 2) / slots
    }

    /// An arc for so many tasks at this cost.
    fn mean(
        &mut self,
        (from, to): (NodeId, NodeId),
        tasks: u32,
        cost: i64,
        meaning: Meaning,
    ) -> Result<(), ProblemError> {
        let slots = meaning.source().map_or(1, |source| self.slots(source));
        let arc = self.arc(from, to, i64::from(tasks) * slots, self.part(UNIT * cost, slots))?;
        self.meanings.push((arc, meaning));
        Ok(())
    }

    /// Tasks stay on their machine at this cost.
    fn stay(&mut self, from: NodeId, at: u32, count: u32, cost: i64, source: Source) -> Result<(), ProblemError> {
        let (to, slots) = (self.machine(at)?, self.slots(source));
        let row = ArcRow { from, to, capacity: i64::from(count) * slots, cost: self.part(UNIT * cost - 1, slots) };
        let arc = self.problem.add_arc(row)?;
        self.meanings.push((arc, Meaning::Stay(source)));
        Ok(())
    }

    /// The machine's vertex, behind its rack's and before the sink.
    fn machine(&mut self, at: u32) -> Result<NodeId, ProblemError> {
        if let Some(node) = self.machine[at as usize] {
            return Ok(node);
        }
        let (slots, node) = (i64::from(self.round.machines[at as usize].slots), self.problem.add_node(0)?);
        self.arc(self.rack[self.racks.of[at as usize] as usize], node, slots, 0)?;
        self.arc(node, self.sink, slots, 0)?;
        self.machine[at as usize] = Some(node);
        Ok(node)
    }

    /// A vertex of so many tasks of so many slots each, which may stay out at these costs.
    fn tasks(&mut self, waiting: &[Waiting], slots: i64) -> Result<Option<(NodeId, u32)>, ProblemError> {
        let count = waiting.iter().fold(0, |sum: u32, waiting| sum.saturating_add(waiting.count));
        if count == 0 {
            return Ok(None);
        }
        let supply = i64::from(count) * slots;
        let node = self.problem.add_node(supply)?;
        self.supply += supply;
        for Waiting { wait_s, count } in waiting {
            let waited = (self.model.omega * *wait_s as f64).min(MOST_WAIT) as i64;
            let cost = self.part(UNIT * (waited + i64::from(self.model.gamma)), slots);
            self.arc(node, self.sink, i64::from(*count) * slots, cost)?;
        }
        Ok(Some((node, count)))
    }

    /// About how many arcs a job's tasks need.
    fn arcs_of(&self, at: u32) -> u64 {
        let (job, costs) = (&self.round.jobs[at as usize], &self.costs[at as usize]);
        let free = costs.machine_arcs.len() + costs.rack_arcs.len() + 1;
        let waiting = job.bounds.as_ref().map_or(free, |bounds| bounds.on_machine.len());
        (waiting + job.running.len() * free) as u64
    }

    fn job(&mut self, at: u32) -> Result<(), ProblemError> {
        let round = self.round;
        let job = &round.jobs[at as usize];
        let slots = i64::from(job.slots);
        if let Some((node, count)) = self.tasks(&job.waiting, slots)? {
            let source = Source { job: at, running: None };
            match &job.bounds {
                Some(bounds) => self.bounded(node, source, bounds)?,
                None => self.free(node, count, source, None)?,
            }
        }
        for (running, tasks) in (0..).zip(&job.running) {
            let source = Source { job: at, running: Some(running) };
            let waiting = Waiting { wait_s: 0, count: tasks.count };
            let Some((node, count)) = self.tasks(&[waiting], slots)? else { continue };
            let off = (self.model.beta * tasks.ran_s as f64).min(MOST_WAIT) as i64;
            let own = i64::from(self.costs[at as usize].machine[tasks.machine as usize]);
            self.stay(node, tasks.machine, count, (own - off).max(0), source)?;
            self.free(node, count, source, Some(tasks.machine))?;
        }
        Ok(())
    }

    /// Arcs of tasks that may go anywhere, but for the one to a machine that they have already.
    fn free(&mut self, node: NodeId, count: u32, source: Source, has: Option<u32>) -> Result<(), ProblemError> {
        let costs = &self.costs[source.job as usize];
        for &rack in &costs.rack_arcs {
            let (to, cost) = (self.rack[rack as usize], i64::from(costs.rack[rack as usize]));
            self.mean((node, to), count, cost, Meaning::Rack(source, rack))?;
        }
        for &machine in costs.machine_arcs.iter().filter(|machine| has != Some(**machine)) {
            let most = self.most(source, machine);
            let (to, cost) = (self.machine(machine)?, i64::from(costs.machine[machine as usize]));
            self.mean((node, to), count.min(most), cost, Meaning::Machine(source, machine))?;
        }
        self.mean((node, self.anywhere), count, i64::from(costs.anywhere), Meaning::Anywhere(source))
    }

    /// Tasks of a source that a machine has slots for.
    fn most(&self, source: Source, machine: u32) -> u32 {
        self.round.machines[machine as usize].slots / self.round.jobs[source.job as usize].slots
    }

    /// Arcs of tasks with bounds: one to each machine that they may go to, through a vertex for each rack, at the cost of the
    /// cheapest way that free tasks would have there.
    fn bounded(&mut self, node: NodeId, source: Source, bounds: &Bounds) -> Result<(), ProblemError> {
        let (racks, model, slots) = (self.racks, self.model, self.slots(source));
        let costs = &self.costs[source.job as usize];
        for (at, members) in racks.members.iter().enumerate() {
            let open: Vec<u32> = members.iter().copied().filter(|at| bounds.on_machine[*at as usize] > 0).collect();
            let most = bounds
                .in_rack
                .get(&racks.list[at])
                .map_or(racks.slots[at], |most| (i64::from(*most) * slots).min(racks.slots[at]));
            if open.is_empty() || most == 0 {
                continue;
            }
            let rack = self.problem.add_node(0)?;
            self.arc(node, rack, most, 0)?;
            for machine in open {
                let tasks = self.most(source, machine).min(bounds.on_machine[machine as usize]);
                let cost = i64::from(costs.least(model, machine as usize, at));
                let to = self.machine(machine)?;
                self.mean((rack, to), tasks, cost, Meaning::Machine(source, machine))?;
            }
        }
        Ok(())
    }

    fn roots(&mut self) -> Result<(), ProblemError> {
        let round = self.round;
        if let Some((node, count)) = self.tasks(&round.roots, 1)? {
            self.mean((node, self.anywhere), count, 0, Meaning::Roots)?;
        }
        Ok(())
    }

    /// What racks have beside the machines with vertices, and the sink's demand.
    fn finish(&mut self) -> Result<(), ProblemError> {
        let mut left = self.racks.slots.clone();
        for (at, _) in self.machine.iter().enumerate().filter(|(_, node)| node.is_some()) {
            left[self.racks.of[at] as usize] -= i64::from(self.round.machines[at].slots);
        }
        for (at, left) in left.into_iter().enumerate() {
            self.arc(self.rack[at], self.sink, left, 0)?;
        }
        self.problem.set_supply(self.sink, -self.supply)
    }
}

/// What the tasks of each job cost: one table for all jobs of one root and one curve. `None`: `work` says to stop.
fn costs_of_jobs(
    round: &Round<'_>,
    model: &CostModel,
    racks: &Racks,
    work: &dyn Fn(u64) -> bool,
) -> Option<Vec<Rc<JobCosts>>> {
    let mut known: BTreeMap<(NodeIdx, *const Curve), Rc<JobCosts>> = BTreeMap::new();
    let mut costs = Vec::with_capacity(round.jobs.len());
    for job in &round.jobs {
        let key = (job.root, std::ptr::from_ref(job.curve));
        if let Some(table) = known.get(&key) {
            costs.push(Rc::clone(table));
            continue;
        }
        let by_machine = costs_from(job.root, job.curve, round.machines, round.latency, work)?;
        let table = Rc::new(JobCosts::new(by_machine, round.machines, racks, model));
        known.insert(key, Rc::clone(&table));
        costs.push(table);
    }
    Some(costs)
}

/// Decides a round. `work` is told of units of work (some ten nanoseconds each) and says whether to go on.
///
/// # Errors
/// [`RoundError`].
pub fn solve(round: &Round<'_>, model: &CostModel, work: &dyn Fn(u64) -> bool) -> Result<RoundAnswer, RoundError> {
    let racks = Racks::new(round.machines);
    let cut_short = || {
        let mut taker = Taker::new(round, &racks, &[]);
        taker.stay();
        Ok(taker.finish())
    };
    let Some(costs) = costs_of_jobs(round, model, &racks, work) else { return cut_short() };
    let mut builder = Builder::new(round, model, &racks, &costs)?;
    for job in 0..round.jobs.len() as u32 {
        if !work(ARC * builder.arcs_of(job)) {
            return cut_short();
        }
        builder.job(job)?;
    }
    builder.roots()?;
    builder.finish()?;
    let Builder { problem, meanings, finer, .. } = builder;
    let arcs = problem.arcs().count();
    // The solver asks every 64 pivots; each searches a block of arcs.
    let each = 64 * (arcs.isqrt().max(16) as u64);
    let flow = Simplex::new().solve(&problem, &mut || !work(each))?;
    let mut taker = Taker::new(round, &racks, &costs);
    taker.take(&flow, &meanings);
    let stay = meanings.iter().filter(|(_, meaning)| matches!(meaning, Meaning::Stay(_)));
    let stay: i64 = stay.map(|(arc, _)| flow.flows[arc.at()]).sum();
    let answer = RoundAnswer {
        cost: (flow.cost + i128::from(stay)) / i128::from(UNIT * finer),
        optimal: flow.optimal,
        size: (problem.supplies().len(), arcs),
        steps: flow.steps,
        ..taker.finish()
    };
    Ok(answer)
}
