//! Rounds of one policy over the jobs of a run, and how jobs perform by where their tasks are.

use super::baselines::{self, Costs, Open};
use super::series::Series;
use super::workload::{Job, Machines, Workload, times, workload};
use crate::reproduce::Scale;
use crate::reproduce::hit::systems::Failure;
use hintd_model::network::latency::Latencies;
use hintd_model::units::NodeIdx;
use hintd_policy::nomora::curve::Curve;
use hintd_policy::nomora::round::{
    Around, CostModel, JobAnswer, Machine, Round, RoundAnswer, RoundJob, RunningTasks, Waiting, solve,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Instant;

/// How tasks are placed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum System {
    /// By costs that know no latency.
    Baseline(Costs),
    /// By the latency to the root.
    Nomora {
        model: CostModel,
        /// Whether running tasks may move.
        moves: bool,
        /// Whether a task that moves, or loses its slot, begins anew: what it has done is lost.
        anew: bool,
        /// Places drawn for a root; 1: anywhere, and the others a round later, as the paper.
        choices: u32,
    },
}

impl System {
    /// Anywhere with a free slot.
    pub(super) const RANDOM: Self = Self::Baseline(Costs::Fixed);

    /// To the machine with fewest tasks.
    pub(super) const SPREAD: Self = Self::Baseline(Costs::Load);

    pub(super) const fn nomora(p_m: u32, p_r: u32) -> Self {
        let model = CostModel { p_m, p_r, omega: 1.0, gamma: 1_001, beta: 1.0 };
        Self::Nomora { model, moves: false, anew: false, choices: 1 }
    }

    pub(super) const fn with_moves(self, beta: f64) -> Self {
        match self {
            Self::Nomora { model, anew, choices, .. } => {
                Self::Nomora { model: CostModel { beta, ..model }, moves: true, anew, choices }
            }
            other => other,
        }
    }

    pub(super) const fn anew(self) -> Self {
        match self {
            Self::Nomora { model, moves, choices, .. } => Self::Nomora { model, moves, anew: true, choices },
            other => other,
        }
    }

    pub(super) const fn together(self) -> Self {
        match self {
            Self::Nomora { model, moves, anew, .. } => Self::Nomora { model, moves, anew, choices: 8 },
            other => other,
        }
    }
}

/// A round in which tasks may move.
#[derive(Debug, Clone, Copy)]
struct Moves {
    /// See [`System::Nomora`].
    anew: bool,
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    /// Of each job that ran, 0 to 1; less the part of its tasks' time whose work was lost.
    pub(super) performance: Vec<f64>,
    /// Of all time that tasks ran, per cent whose work was lost.
    pub(super) lost: f64,
    /// Of running tasks, per cent that moved in a round that could move them, mean.
    pub(super) moved: f64,
    /// Tasks that lost their slot.
    pub(super) preempted: u64,
    /// Seconds that tasks waited, mean.
    pub(super) waited_s: f64,
    /// Of all looks at jobs' tasks: the most on a machine at a time, never above its slots.
    pub(super) most_on_machine: u32,
}

impl Outcome {
    /// Per cent.
    pub(super) fn area(&self) -> f64 {
        100.0 * self.performance.iter().sum::<f64>() / self.performance.len().max(1) as f64
    }
}

/// How long rounds took, and tasks waited for them.
#[derive(Debug, Clone, Default)]
pub(super) struct Timing {
    /// Of each round, the building of its network and the reading of its answer included, s.
    pub(super) rounds_s: Vec<f64>,
    /// From a task's submission to its place: whole seconds that it waited, and the rounds of its second to the end of the one
    /// that placed it took, s; and how many tasks.
    pub(super) placed_s: Vec<(f64, u32)>,
}

/// Tasks that run together.
#[derive(Debug, Clone, Copy)]
struct Running {
    machine: u32,
    since_s: u64,
    ends_s: u64,
    count: u32,
}

impl Running {
    /// Of all of them.
    fn ran_s(&self, now: u64) -> u64 {
        u64::from(self.count) * now.saturating_sub(self.since_s)
    }
}

/// Tasks that wait together.
#[derive(Debug, Clone, Copy)]
struct Queued {
    since_s: u64,
    left_s: u64,
    count: u32,
}

struct LiveJob<'w> {
    curve: &'w Curve,
    arrived_s: u64,
    /// What each task runs when nothing is lost.
    runs_s: u64,
    root: Option<u32>,
    waiting: Vec<Queued>,
    running: Vec<Running>,
    sum: f64,
    looks: u32,
    /// Seconds of tasks that ended, moved or lost their slot.
    ran_s: u64,
    /// Of these, whose work was lost.
    lost_s: u64,
}

impl<'w> LiveJob<'w> {
    fn new(job: &Job, curve: &'w Curve) -> Self {
        let waiting = vec![Queued { since_s: job.arrives_s, left_s: job.runs_s, count: job.tasks - 1 }];
        Self {
            curve,
            arrived_s: job.arrives_s,
            runs_s: job.runs_s,
            root: None,
            waiting,
            running: vec![],
            sum: 0.0,
            looks: 0,
            ran_s: 0,
            lost_s: 0,
        }
    }

    /// Its mean over all looks, less what was lost.
    fn performance(&self) -> f64 {
        let kept = 1.0 - self.lost_s as f64 / self.ran_s.max(1) as f64;
        self.sum / f64::from(self.looks) * kept
    }

    fn waits(&self) -> u32 {
        self.waiting.iter().map(|queued| queued.count).sum()
    }

    fn look(&mut self, latency: &dyn Latencies) {
        let Some(root) = self.root.filter(|_| !self.running.is_empty()) else { return };
        let (mut sum, mut count) = (0.0, 0.0);
        for running in &self.running {
            let rtt = latency.rtt(NodeIdx(root), NodeIdx(running.machine));
            sum += f64::from(running.count) * self.curve.performance(rtt);
            count += f64::from(running.count);
        }
        self.sum += sum / count;
        self.looks += 1;
    }
}

struct Cluster<'w> {
    machines: Machines,
    slots: u32,
    free: Vec<u32>,
    jobs: BTreeMap<usize, LiveJob<'w>>,
    /// When something ends.
    ends: BinaryHeap<Reverse<u64>>,
    random: ChaCha8Rng,
    outcome: Outcome,
    waits: Waits,
    timing: Timing,
    moved: Vec<f64>,
    /// Seconds of all tasks, and of these whose work was lost.
    ran_s: [u64; 2],
}

/// A run of a seed; the same jobs and latencies for every system.
pub(super) fn run(system: System, scale: Scale, seed: u64) -> Result<Outcome, Failure> {
    run_for(system, scale, seed, times(scale).0)
}

/// The same for so many seconds.
pub(super) fn run_for(system: System, scale: Scale, seed: u64, span_s: u64) -> Result<Outcome, Failure> {
    drive(system, scale, seed, span_s, |cluster| cluster.finish(span_s))
}

/// How long the rounds of the same run take on this machine.
pub(super) fn timed(system: System, scale: Scale, seed: u64, span_s: u64) -> Result<Timing, Failure> {
    drive(system, scale, seed, span_s, |cluster| cluster.timing)
}

fn drive<T>(
    system: System,
    scale: Scale,
    seed: u64,
    span_s: u64,
    end: impl FnOnce(Cluster<'_>) -> T,
) -> Result<T, Failure> {
    let (Workload { jobs, slots }, machines) = (workload(scale, seed, span_s), Machines::of(scale));
    let (_, tick_s) = times(scale);
    let series = Series::new(machines, span_s, tick_s, seed);
    let mut curves: BTreeMap<&str, Curve> = BTreeMap::new();
    for job in &jobs {
        curves.insert(job.curve, Curve::built_in(job.curve).ok_or("no such curve")?);
    }
    let mut cluster = Cluster {
        machines,
        slots,
        free: vec![slots; machines.count as usize],
        jobs: BTreeMap::new(),
        ends: BinaryHeap::new(),
        random: ChaCha8Rng::seed_from_u64(seed ^ 0x0063_6c75_7374_6572),
        outcome: Outcome::default(),
        waits: Waits::default(),
        timing: Timing::default(),
        moved: Vec::new(),
        ran_s: [0; 2],
    };
    let moves = matches!(system, System::Nomora { moves: true, .. });
    let (mut next, mut now) = (0, 0);
    while now < span_s {
        let (before, tick) = (next, now % tick_s == 0);
        while next < jobs.len() && jobs[next].arrives_s <= now {
            cluster.jobs.insert(next, LiveJob::new(&jobs[next], &curves[jobs[next].curve]));
            next += 1;
        }
        if cluster.end(now) || next > before || (tick && moves) {
            cluster.timed_rounds(system, &series, now, tick)?;
        }
        if tick {
            cluster.jobs.values_mut().for_each(|job| job.look(&series.at(now)));
        }
        cluster.check();
        let arrival = jobs.get(next).map_or(span_s, |job| job.arrives_s);
        let end = cluster.ends.peek().map_or(span_s, |Reverse(end)| *end);
        now = arrival.min(end).min((now / tick_s + 1) * tick_s).max(now + 1);
    }
    Ok(end(cluster))
}

impl Cluster<'_> {
    /// Ends what is over; whether anything was.
    fn end(&mut self, now: u64) -> bool {
        let mut ended = false;
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.ends.pop();
            ended = true;
        }
        if !ended {
            return false;
        }
        let (free, mut over) = (&mut self.free, Vec::new());
        for (&at, job) in &mut self.jobs {
            job.running.retain(|running| {
                if running.ends_s <= now {
                    free[running.machine as usize] += running.count;
                    job.ran_s += running.ran_s(now);
                }
                running.ends_s > now
            });
            // A root stays as long as its job.
            if let Some(root) = job.root.filter(|_| job.running.is_empty() && job.waiting.is_empty()) {
                free[root as usize] += 1;
                over.push(at);
            }
        }
        over.into_iter().for_each(|at| self.leave(at, now));
        true
    }

    fn leave(&mut self, at: usize, now: u64) {
        let Some(mut job) = self.jobs.remove(&at) else { return };
        job.ran_s += job.running.iter().map(|running| running.ran_s(now)).sum::<u64>();
        self.ran_s[0] += job.ran_s;
        self.ran_s[1] += job.lost_s;
        if job.looks > 0 {
            self.outcome.performance.push(job.performance());
        }
    }

    /// As [`Self::round`], again at once for as long as a round placed roots whose jobs' tasks wait for the next one; notes
    /// how long each took. That rounds end within their second is not looked at: the run must not hang on the machine.
    fn timed_rounds(&mut self, system: System, series: &Series, now: u64, tick: bool) -> Result<(), Failure> {
        let (first, mut began, mut moves) = (Instant::now(), Instant::now(), tick);
        while self.round(system, series, now, moves)? {
            self.timed(first, &mut began);
            moves = false;
        }
        self.timed(first, &mut began);
        Ok(())
    }

    /// A round has ended that began then, after others since `first`.
    fn timed(&mut self, first: Instant, began: &mut Instant) {
        self.timing.rounds_s.push(began.elapsed().as_secs_f64());
        let since_s = first.elapsed().as_secs_f64();
        let placed = self.waits.latest.drain(..).map(|(waited_s, count)| (waited_s as f64 + since_s, count));
        self.timing.placed_s.extend(placed);
        *began = Instant::now();
    }

    /// Whether another round is due at once.
    fn round(&mut self, system: System, series: &Series, now: u64, tick: bool) -> Result<bool, Failure> {
        match system {
            System::Baseline(costs) => self.by_baseline(costs, series, now),
            System::Nomora { model, moves, anew, choices } => {
                let moves = (moves && tick).then_some(Moves { anew });
                self.by_flow(&model, (moves, choices), series, now)
            }
        }
    }

    /// Places all that waits, a job's root and its other tasks in one round: neither looks at the other.
    fn by_baseline(&mut self, costs: Costs, series: &Series, now: u64) -> Result<bool, Failure> {
        let mut jobs: Vec<usize> =
            self.jobs.iter().filter(|(_, job)| !job.waiting.is_empty()).map(|(at, _)| *at).collect();
        jobs.sort_by_key(|at| (self.jobs[at].arrived_s, *at));
        let waits = |since: u64| now.saturating_sub(since);
        let waiting = |at: &usize| {
            let job = &self.jobs[at];
            let tasks = job.waiting.iter().map(|it| Waiting { wait_s: waits(it.since_s), count: it.count });
            let root = job.root.is_none().then(|| Waiting { wait_s: waits(job.arrived_s), count: 1 });
            root.into_iter().chain(tasks).collect()
        };
        let waiting: Vec<Vec<Waiting>> = jobs.iter().map(waiting).collect();
        let slots = self.slots;
        let open = (0..).zip(&self.free).filter(|(_, free)| **free > 0);
        let open: Vec<Open> = open.map(|(machine, &free)| Open { machine, tasks: slots - free, free }).collect();
        let placed = baselines::solve(costs, &waiting, &open, &mut self.random)?;
        for (at, placed) in jobs.into_iter().zip(placed) {
            placed.iter().for_each(|machine| self.free[*machine as usize] -= 1);
            let Some(job) = self.jobs.get_mut(&at) else { continue };
            let mut placed = placed.into_iter();
            if job.root.is_none() {
                job.root = placed.next();
            }
            let machines: Vec<(u32, u32)> = placed.map(|machine| (machine, 1)).collect();
            start(job, &machines, now, (&mut self.ends, &mut self.waits));
            if job.looks == 0 {
                job.look(&series.at(now));
            }
        }
        Ok(false)
    }

    fn by_flow(
        &mut self,
        model: &CostModel,
        (moving, choices): (Option<Moves>, u32),
        series: &Series,
        now: u64,
    ) -> Result<bool, Failure> {
        let (latency, moves) = (series.at(now), moving.is_some());
        if choices > 1 {
            self.roots_together(model, choices, &latency);
        }
        let mut slots = self.free.clone();
        if moves {
            self.jobs
                .values()
                .flat_map(|job| &job.running)
                .for_each(|tasks| slots[tasks.machine as usize] += tasks.count);
        }
        let (machines, positions) = self.open(&slots);
        let waits = |since: u64| now.saturating_sub(since);
        let mut roots: Vec<usize> = self.jobs.iter().filter(|(_, job)| job.root.is_none()).map(|(at, _)| *at).collect();
        roots.sort_by_key(|at| (self.jobs[at].arrived_s, *at));
        let mut round = Round { machines: &machines, jobs: vec![], roots: vec![], latency: &latency, seed: 0 };
        round.seed = self.random.random_range(0..u64::MAX);
        round.roots = roots.iter().map(|at| Waiting { wait_s: waits(self.jobs[at].arrived_s), count: 1 }).collect();
        let mut asked = Vec::new();
        for (&at, job) in &self.jobs {
            let Some(root) = job.root.filter(|_| !job.waiting.is_empty() || moves) else { continue };
            let waiting = job.waiting.iter().map(|it| Waiting { wait_s: waits(it.since_s), count: it.count });
            let running = job.running.iter().filter(|_| moves).map(|tasks| RunningTasks {
                machine: positions[tasks.machine as usize],
                ran_s: waits(tasks.since_s),
                count: tasks.count,
            });
            let (waiting, running) = (waiting.collect(), running.collect());
            round.jobs.push(RoundJob {
                curve: job.curve,
                root: NodeIdx(root),
                waiting,
                running,
                bounds: None,
                slots: 1,
            });
            asked.push(at);
        }
        let answer = solve(&round, model, &|_| true)?;
        self.apply(&asked, &roots, &answer, &machines, (moving, now));
        for at in asked {
            if let Some(job) = self.jobs.get_mut(&at).filter(|job| job.looks == 0) {
                job.look(&latency);
            }
        }
        Ok(!answer.roots.is_empty())
    }

    /// Machines with slots, and their positions.
    fn open(&self, slots: &[u32]) -> (Vec<Machine>, Vec<u32>) {
        let (mut machines, mut positions) = (Vec::new(), vec![u32::MAX; slots.len()]);
        for (at, &slots) in (0_u32..).zip(slots).filter(|(_, slots)| **slots > 0) {
            positions[at as usize] = machines.len() as u32;
            machines.push(Machine { node: NodeIdx(at), rack: self.machines.rack(at), slots });
        }
        (machines, positions)
    }

    /// Roots go where there is most around them, of some places drawn; their jobs' tasks are of the same round.
    fn roots_together(&mut self, model: &CostModel, choices: u32, latency: &dyn Latencies) {
        let waiting: Vec<usize> = self.jobs.iter().filter(|(_, job)| job.root.is_none()).map(|(at, _)| *at).collect();
        for at in waiting {
            let (machines, _) = self.open(&self.free);
            if machines.is_empty() {
                return;
            }
            let draw = |_| machines[self.random.random_range(0..machines.len())].node;
            let places: Vec<NodeIdx> = (0..choices).map(draw).collect();
            let Some(job) = self.jobs.get_mut(&at) else { continue };
            let (wanted, curve, gamma) = (u64::from(job.waits()), job.curve, model.gamma);
            let best = Around { machines: &machines, wanted, curve, latency, gamma }.best(&places, &|_| true);
            if let Some(place) = best {
                job.root = Some(place.0);
                self.free[place.at()] -= 1;
            }
        }
    }

    fn apply(
        &mut self,
        asked: &[usize],
        roots: &[usize],
        answer: &RoundAnswer,
        machines: &[Machine],
        (moving, now): (Option<Moves>, u64),
    ) {
        let node = |position: u32| machines[position as usize].node.0;
        let (mut ran, mut moved) = (0_u64, 0_u64);
        // All that moves goes before anything comes: a slot may change hands.
        for (at, JobAnswer { running, .. }) in asked.iter().zip(&answer.jobs) {
            let Some((job, Moves { anew })) = self.jobs.get_mut(at).zip(moving) else { continue };
            let mut after = Vec::with_capacity(job.running.len());
            for (tasks, found) in job.running.iter().zip(running) {
                ran += u64::from(tasks.count);
                self.free[tasks.machine as usize] += tasks.count - found.stay;
                let parts = [(tasks.machine, found.stay)].into_iter().filter(|(_, count)| *count > 0);
                after.extend(parts.map(|(machine, count)| Running { machine, count, ..*tasks }));
                // Of a task that goes on what it ran is counted when it ends.
                let (since_s, ends_s) = if anew { (now, now + job.runs_s) } else { (tasks.since_s, tasks.ends_s) };
                let mut off = found.preempted;
                for &(machine, count) in &found.moved {
                    moved += u64::from(count);
                    off += if anew { count } else { 0 };
                    after.push(Running { machine: node(machine), since_s, ends_s, count });
                    self.ends.push(Reverse(ends_s));
                }
                if found.preempted > 0 {
                    self.outcome.preempted += u64::from(found.preempted);
                    job.waiting.push(Queued { since_s: now, left_s: ends_s - now, count: found.preempted });
                }
                let ran_s = Running { count: off, ..*tasks }.ran_s(now);
                job.ran_s += ran_s;
                job.lost_s += if anew { ran_s } else { 0 };
            }
            job.running = after;
        }
        for (at, machine) in roots.iter().zip(&answer.roots) {
            if let Some(job) = self.jobs.get_mut(at) {
                job.root = Some(node(*machine));
                self.free[node(*machine) as usize] -= 1;
            }
        }
        for JobAnswer { running, placed } in &answer.jobs {
            let comes = running.iter().flat_map(|found| &found.moved).chain(placed);
            for &(machine, count) in comes {
                self.free[node(machine) as usize] -= count;
            }
        }
        for (at, JobAnswer { placed, .. }) in asked.iter().zip(&answer.jobs) {
            let placed: Vec<(u32, u32)> = placed.iter().map(|(machine, count)| (node(*machine), *count)).collect();
            if let Some(job) = self.jobs.get_mut(at) {
                start(job, &placed, now, (&mut self.ends, &mut self.waits));
            }
        }
        if moving.is_some() && ran > 0 {
            self.moved.push(100.0 * moved as f64 / ran as f64);
        }
    }

    /// Slots and tasks are one sum.
    fn check(&mut self) {
        let mut used = vec![0_u32; self.free.len()];
        for job in self.jobs.values() {
            job.running.iter().for_each(|running| used[running.machine as usize] += running.count);
            job.root.into_iter().for_each(|root| used[root as usize] += 1);
        }
        debug_assert!(used.iter().zip(&self.free).all(|(used, free)| used + free == self.slots));
        self.outcome.most_on_machine = self.outcome.most_on_machine.max(used.into_iter().max().unwrap_or(0));
    }

    fn finish(mut self, now: u64) -> Outcome {
        let live: Vec<usize> = self.jobs.keys().copied().collect();
        live.into_iter().for_each(|at| self.leave(at, now));
        self.outcome.lost = 100.0 * self.ran_s[1] as f64 / self.ran_s[0].max(1) as f64;
        self.outcome.waited_s = self.waits.sum_s as f64 / self.waits.tasks.max(1) as f64;
        self.outcome.moved = self.moved.iter().sum::<f64>() / self.moved.len().max(1) as f64;
        self.outcome
    }
}

/// How long tasks waited that began.
#[derive(Debug, Default)]
struct Waits {
    /// Of all.
    sum_s: u64,
    tasks: u64,
    /// Of those that began in this round, with how many of each.
    latest: Vec<(u64, u32)>,
}

/// Tasks that wait for longest begin on these machines.
fn start(
    job: &mut LiveJob<'_>,
    machines: &[(u32, u32)],
    now: u64,
    (ends, waits): (&mut BinaryHeap<Reverse<u64>>, &mut Waits),
) {
    job.waiting.sort_by_key(|queued| queued.since_s);
    let mut first = 0;
    for &(machine, mut count) in machines {
        while let Some(queued) = job.waiting.get_mut(first).filter(|_| count > 0) {
            let begin = count.min(queued.count);
            let ends_s = now + queued.left_s;
            job.running.push(Running { machine, since_s: now, ends_s, count: begin });
            ends.push(Reverse(ends_s));
            let waited_s = now.saturating_sub(queued.since_s);
            waits.sum_s += u64::from(begin) * waited_s;
            waits.tasks += u64::from(begin);
            waits.latest.push((waited_s, begin));
            queued.count -= begin;
            count -= begin;
            first += usize::from(queued.count == 0);
        }
    }
    job.waiting.retain(|queued| queued.count > 0);
}
