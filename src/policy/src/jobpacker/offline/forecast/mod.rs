//! When a plan's jobs end on links that they share: its racks and orders stay as they are, and its times are reckoned
//! anew.
//!
//! Eq. 4.1 (004 Li) knows tasks, racks and their uplinks or circuits, and takes every job to have them for itself. Here
//! racks run their sequences, each as soon as it can, and bytes move over links that all share:
//! - A map that is not where its input is reads it over its node's link; a rack's tasks have an even part each of what
//!   its nodes' links bring. [`READ_AFAR`] of a rack's input is so.
//! - n tasks in a rack are on min(n, nodes of the rack) of its nodes, and a shuffle goes no faster than their links:
//!   those of the maps' nodes, for all that the job sends from there, and those of the reduces' nodes. By packets a
//!   reduce has [`FETCHES`] fetches, each of another rack and of its share of a node's link.
//! - Packets pass the racks' uplinks. Circuits are chosen anew each interval, for the pairs of racks with most to send.
//! - Reduces hold their containers while they fetch; they begin on whole seconds, as Hadoop's fetchers ask
//!   ([`FETCH_EVERY`]).
//!
//! Fluid and by rack: it knows neither nodes nor single tasks, and nothing of the simulator.

mod links;

use crate::Budget;
use crate::plan::{ExpectedJob, Forecast, Plan, PlanProblem, PlannedRack, Stage};
use hintd_model::solve::work::Work as _;
use hintd_model::units::{BitsPerSec, Micros, RackPath, Timestamp};
use links::{Link, Links, OfRack, Transfer};
use smallvec::{SmallVec, smallvec};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Share of a rack's map input that is not on the node that reads it: 37 to 40 % of maps of large jobs in batches of
/// 1,000 jobs of Facebook's on 20 racks, as dispatched here.
const READ_AFAR: f64 = 0.4;
/// Racks that a reduce fetches from at once (`mapreduce.reduce.shuffle.parallelcopies`).
const FETCHES: f64 = 5.0;
/// How often reduces ask what they can fetch.
const FETCH_EVERY: Micros = Micros::from_secs(1);
/// Units of work that an event takes, beside the links that are looked at for it.
const EVENT: u64 = 16;
/// Links looked at for transfers ([`Links::work`]), at most: some half a minute. Jobs that have not ended by then have no
/// forecast.
const WORK_MAX: u64 = 1_500_000_000;
/// As many for any plan, and for each of its jobs on each of its racks: five times what plans take, and more.
const WORK: [u64; 2] = [20_000_000, 5_000];

/// By job of the plan: when it is expected to be where; none where nothing is known of nodes' links, or its bytes would
/// never arrive. `slow_start`: share of a job's maps done before its reduces are launched. And whether time was enough:
/// what had not ended when it was over has no forecast.
pub(super) fn forecast(
    problem: &PlanProblem,
    plan: &Plan,
    slow_start: f64,
    budget: &Budget<'_>,
) -> (Vec<Option<Forecast>>, bool) {
    let Some(mut run) = Run::new(problem, plan, slow_start) else { return (vec![None; plan.jobs.len()], true) };
    let whole = run.follow(budget);
    (run.jobs.iter().map(|job| job.forecast(plan.from)).collect(), whole)
}

/// What happens at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job comes.
    Comes(usize),
    /// Maps of a job are done in a rack.
    Maps { job: usize, rack: usize, count: u32 },
    /// Reduces of it.
    Reduces { job: usize, rack: usize, count: u32 },
    /// Reduces that were launched begin to fetch.
    Fetch,
    /// Circuits are chosen anew.
    Circuits,
}

/// Who waits for bytes.
#[derive(Debug, Clone, Copy)]
enum Waits {
    /// Maps of a job in a rack.
    Maps { job: usize, rack: usize, count: u32 },
    /// A batch of reduces.
    Batch(usize),
}

/// Free containers, and by place in the sequence what could run in them: job and stage (0: maps).
#[derive(Debug)]
struct Rack {
    free: u32,
    ready: BTreeMap<usize, (usize, usize)>,
}

#[derive(Debug)]
struct Job<'a> {
    expected: &'a ExpectedJob,
    heavy: bool,
    /// By stage: tasks by rack.
    tasks: [BTreeMap<usize, u32>; 2],
    /// By stage: places in the sequences of racks, and tasks that wait there.
    waiting: [BTreeMap<usize, (usize, u32)>; 2],
    maps_left: u32,
    may_reduce: bool,
    maps_done: u32,
    reduces_done: u32,
    /// By rack of maps, and whether it is for the rack itself: links of their nodes.
    senders: BTreeMap<(usize, bool), Link>,
    /// Batches that have not begun to fetch.
    batches: Vec<usize>,
    maps_end: Micros,
    shuffled: Micros,
    end: Micros,
}

/// Reduces of a job that a rack launched together.
#[derive(Debug)]
struct Batch {
    job: usize,
    rack: usize,
    count: u32,
    transfers: u32,
    /// It has waited for its second.
    asked: bool,
}

struct Run<'a> {
    slow_start: f64,
    /// A node's link, bytes/s, and nodes of a rack.
    node: f64,
    nodes: f64,
    /// Bytes that a circuit brings in an interval, and the interval; none: there are no circuits.
    circuit: Option<(f64, Micros)>,
    racks: Vec<Rack>,
    jobs: Vec<Job<'a>>,
    batches: Vec<Batch>,
    /// Batches that wait for their second.
    launched: Vec<usize>,
    links: Links<Waits>,
    events: BinaryHeap<Reverse<(Micros, Event)>>,
    /// A choice of circuits is among them.
    choosing: bool,
    /// Racks that may have something new to launch.
    look: BTreeSet<usize>,
    now: Micros,
}

fn bytes_per_s(rate: BitsPerSec) -> f64 {
    rate.as_f64() / 8.0
}

impl<'a> Run<'a> {
    fn new(problem: &'a PlanProblem, plan: &Plan, slow_start: f64) -> Option<Self> {
        let fabric = problem.fabric;
        let nodes = fabric.nodes?;
        let at: BTreeMap<&RackPath, usize> = plan.racks.iter().map(|row| &row.rack).zip(0..).collect();
        let expected: BTreeMap<_, _> = problem.jobs.iter().map(|job| ((&job.key, job.run), job)).collect();
        let place: BTreeMap<_, usize> = plan.jobs.iter().map(|row| &row.job).zip(0..).collect();
        let mut events = BinaryHeap::new();
        let mut jobs: Vec<Job<'a>> = Vec::with_capacity(plan.jobs.len());
        for (nth, row) in plan.jobs.iter().enumerate() {
            let by_rack = |stage| row.stage(stage).racks().into_iter().map(|(rack, tasks)| (at[rack], tasks)).collect();
            jobs.push(Job::new(expected[&(&row.job.key, row.job.run)], row.heavy, Stage::BOTH.map(by_rack)));
            events.push(Reverse((row.arrival.since(plan.from), Event::Comes(nth))));
        }
        for (rack, row) in plan.racks.iter().enumerate() {
            for (nth, step) in row.sequence.iter().enumerate() {
                let (job, stage) = (&mut jobs[place[&step.job]], usize::from(step.stage == Stage::Reduce));
                job.waiting[stage].insert(rack, (nth, job.tasks[stage][&rack]));
            }
        }
        let rack = |row: &PlannedRack| Rack { free: row.containers, ready: BTreeMap::new() };
        let circuits = fabric.circuits;
        let circuit = circuits.map_or(0.0, |circuits| bytes_per_s(circuits.rate));
        let (up, node) = (bytes_per_s(fabric.uplink), bytes_per_s(nodes.rate));
        let count = f64::from(nodes.per_rack.max(1));
        let chosen = circuits.is_some_and(|circuits| circuits.interval > Micros::ZERO);
        Some(Self {
            slow_start,
            node,
            nodes: count,
            circuit: circuits.map(|circuits| (circuit * circuits.interval.as_secs_f64(), circuits.interval)),
            racks: plan.racks.iter().map(rack).collect(),
            jobs,
            batches: Vec::new(),
            launched: Vec::new(),
            links: Links::new(plan.racks.len(), [up, up, count * node, circuit, circuit], chosen),
            events,
            choosing: false,
            look: BTreeSet::new(),
            now: Micros::ZERO,
        })
    }

    /// Whether it came to the end.
    fn follow(&mut self, budget: &Budget<'_>) -> bool {
        let pairs = (self.jobs.len() as u64).saturating_mul(self.racks.len() as u64);
        let most = WORK_MAX.min(WORK[0].saturating_add(pairs.saturating_mul(WORK[1])));
        let mut counted = 0;
        while self.links.work() < most && budget.work(EVENT + 2 * (self.links.work() - counted)) {
            counted = self.links.work();
            let moved = self.links.next(self.now);
            let event = self.events.peek().map(|Reverse((at, _))| *at);
            let next = moved.into_iter().chain(event).min();
            let Some(next) = next.filter(|next| next.0 < u64::MAX) else { return true };
            self.now = next;
            for what in self.links.ended(next) {
                match what {
                    Waits::Maps { job, rack, count } => self.run_maps(job, rack, count),
                    Waits::Batch(batch) => self.arrived(batch),
                }
            }
            while let Some(&Reverse((_, event))) = self.events.peek().filter(|Reverse((at, _))| *at <= next) {
                self.events.pop();
                self.handle(event);
            }
            while let Some(rack) = self.look.pop_first() {
                self.fill(rack);
            }
        }
        false
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Comes(job) => self.ready(job, 0),
            Event::Maps { job, rack, count } => self.maps_done(job, rack, count),
            Event::Reduces { job, rack, count } => {
                self.racks[rack].free += count;
                self.look.insert(rack);
                let job = &mut self.jobs[job];
                job.reduces_done += count;
                job.end = job.end.max(self.now);
            }
            Event::Fetch => {
                for batch in std::mem::take(&mut self.launched) {
                    self.batches[batch].asked = true;
                    self.fetch_if_ready(self.batches[batch].job);
                }
            }
            Event::Circuits => {
                self.choosing = false;
                if let Some((most, interval)) = self.circuit {
                    self.links.choose(self.now, most);
                    self.choose_at(after(self.now, interval));
                }
            }
        }
    }

    fn maps_done(&mut self, at: usize, rack: usize, count: u32) {
        self.racks[rack].free += count;
        self.look.insert(rack);
        let job = &mut self.jobs[at];
        job.maps_done += count;
        self.reduce_if_ready(at);
        let job = &mut self.jobs[at];
        if job.maps_done == job.expected.maps.0 {
            (job.maps_end, job.end) = (self.now, job.end.max(self.now));
            self.fetch_if_ready(at);
        }
    }

    /// Tasks of a stage may run from now on.
    fn ready(&mut self, job: usize, stage: usize) {
        for (&rack, &(place, _)) in &self.jobs[job].waiting[stage] {
            self.racks[rack].ready.insert(place, (job, stage));
            self.look.insert(rack);
        }
    }

    /// As the dispatcher lets reduces run: no map waits, and the share of them is done.
    fn reduce_if_ready(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        let share = self.slow_start * f64::from(job.expected.maps.0);
        if !job.may_reduce && job.maps_left == 0 && f64::from(job.maps_done) >= share - 1e-9 {
            job.may_reduce = true;
            self.ready(at, 1);
        }
    }

    /// Launches what the rack's sequence has for its free containers.
    fn fill(&mut self, rack: usize) {
        while self.racks[rack].free > 0
            && let Some((&place, &(job, stage))) = self.racks[rack].ready.first_key_value()
        {
            let (_, waits) = self.jobs[job].waiting[stage].get_mut(&rack).expect("its step has tasks in the rack");
            let count = (*waits).min(self.racks[rack].free);
            *waits -= count;
            if *waits == 0 {
                self.racks[rack].ready.remove(&place);
            }
            self.racks[rack].free -= count;
            if stage == 1 {
                self.launch_reduces(job, rack, count);
            } else {
                self.launch_maps(job, rack, count);
                self.jobs[job].maps_left -= count;
                self.reduce_if_ready(job);
            }
        }
    }

    fn launch_maps(&mut self, job: usize, rack: usize, count: u32) {
        let ExpectedJob { input, maps, .. } = self.jobs[job].expected;
        let reading = f64::from(count) * READ_AFAR;
        // One map goes where its input is.
        let each = if count == 1 { 0.0 } else { input.as_f64() / f64::from(maps.0) };
        let transfer = Transfer {
            what: Waits::Maps { job, rack, count },
            left: each * reading,
            cap: f64::from(count) * self.node,
            tasks: reading,
            links: smallvec![(Links::<Waits>::of_rack(rack, OfRack::Nodes), 1.0)],
            circuit: None,
        };
        self.links.start(self.now, Some(rack), transfer);
    }

    fn run_maps(&mut self, job: usize, rack: usize, count: u32) {
        let end = self.now.saturating_add(self.jobs[job].expected.maps.1);
        self.events.push(Reverse((end, Event::Maps { job, rack, count })));
    }

    fn launch_reduces(&mut self, job: usize, rack: usize, count: u32) {
        if self.launched.is_empty() {
            self.events.push(Reverse((after(self.now, FETCH_EVERY), Event::Fetch)));
        }
        self.launched.push(self.batches.len());
        self.jobs[job].batches.push(self.batches.len());
        self.batches.push(Batch { job, rack, count, transfers: 0, asked: false });
    }

    /// Batches that have waited for their second begin to fetch once all maps are done.
    fn fetch_if_ready(&mut self, job: usize) {
        let of = &mut self.jobs[job];
        if of.maps_done < of.expected.maps.0 {
            return;
        }
        let batches = &self.batches;
        let ready: Vec<usize> = of.batches.extract_if(.., |batch| batches[*batch].asked).collect();
        for batch in ready {
            self.fetch(batch);
        }
    }

    fn fetch(&mut self, at: usize) {
        let Batch { job, rack, count, .. } = self.batches[at];
        let ExpectedJob { maps: (maps, _), reduces: (reduces, _), .. } = *self.jobs[job].expected;
        let all = self.jobs[job].expected.shuffled().as_f64() * f64::from(count) / f64::from(reduces.max(1));
        let count = f64::from(count);
        let receivers = count.min(self.nodes) * self.node;
        let one_fetch = count * self.node / FETCHES;
        let of_rack = Links::<Waits>::of_rack;
        let mut by_packets: SmallVec<[(usize, f64); 8]> = SmallVec::new();
        for (from, there) in self.jobs[job].tasks[0].clone() {
            let left = all * f64::from(there) / f64::from(maps);
            if from == rack {
                // What a node's reduces fetch from itself does not pass its link.
                let left = left * (1.0 - 1.0 / self.nodes);
                let links = smallvec![(of_rack(rack, OfRack::Nodes), 1.0), (self.senders(job, from, rack), 1.0)];
                let cap = one_fetch.min(receivers);
                self.begin(
                    at,
                    Some(rack),
                    Transfer { what: Waits::Batch(at), left, cap, tasks: count, links, circuit: None },
                );
            } else if self.jobs[job].heavy && self.circuit.is_some() {
                let ports = [of_rack(from, OfRack::CircuitOut), of_rack(rack, OfRack::CircuitIn)];
                let links = [ports[0], ports[1], self.senders(job, from, rack)].map(|link| (link, 1.0)).into();
                let (cap, circuit) = (receivers, Some((from, rack)));
                self.begin(at, None, Transfer { what: Waits::Batch(at), left, cap, tasks: count, links, circuit });
            } else {
                by_packets.push((from, left));
            }
        }
        let left: f64 = by_packets.iter().map(|from| from.1).sum();
        if left > 0.0 {
            let ups = by_packets.iter().map(|&(from, part)| (of_rack(from, OfRack::Up), part / left));
            let links = ups.chain([(of_rack(rack, OfRack::Down), 1.0)]).collect();
            let cap = (one_fetch * FETCHES.min(by_packets.len() as f64)).min(receivers);
            self.begin(at, None, Transfer { what: Waits::Batch(at), left, cap, tasks: count, links, circuit: None });
        }
        if self.batches[at].transfers == 0 {
            self.run_reduces(at);
        }
        if let Some((_, interval)) = self.circuit.filter(|(_, interval)| *interval > Micros::ZERO) {
            let now = self.now.0.is_multiple_of(interval.0);
            self.choose_at(if now { self.now } else { after(self.now, interval) });
        }
    }

    fn begin(&mut self, batch: usize, within: Option<usize>, transfer: Transfer<Waits>) {
        self.batches[batch].transfers += 1;
        self.links.start(self.now, within, transfer);
    }

    /// Links of the nodes on which a job's maps in the rack were, as far as they serve that rack itself or others: by
    /// the reduces there and elsewhere.
    fn senders(&mut self, job: usize, from: usize, to: usize) -> Link {
        let of = &mut self.jobs[job];
        let here =
            of.tasks[1].get(&from).map_or(0.0, |&tasks| f64::from(tasks)) / f64::from(of.expected.reduces.0.max(1));
        let part = if from == to { here } else { 1.0 - here };
        let nodes = f64::from(of.tasks[0][&from]).min(self.nodes);
        *of.senders.entry((from, from == to)).or_insert_with(|| self.links.add(nodes * self.node * part))
    }

    /// All bytes of a batch's transfer are there, and with the last its reduces run.
    fn arrived(&mut self, at: usize) {
        self.batches[at].transfers -= 1;
        if self.batches[at].transfers == 0 {
            self.run_reduces(at);
        }
    }

    fn run_reduces(&mut self, at: usize) {
        let Batch { job, rack, count, .. } = self.batches[at];
        let of = &mut self.jobs[job];
        of.shuffled = of.shuffled.max(self.now);
        let end = self.now.saturating_add(of.expected.reduces.1);
        self.events.push(Reverse((end, Event::Reduces { job, rack, count })));
    }

    /// While anything rides circuits they are chosen once an interval.
    fn choose_at(&mut self, at: Micros) {
        if !self.choosing && self.links.rides() {
            self.choosing = true;
            self.events.push(Reverse((at, Event::Circuits)));
        }
    }
}

impl<'a> Job<'a> {
    fn new(expected: &'a ExpectedJob, heavy: bool, tasks: [BTreeMap<usize, u32>; 2]) -> Self {
        Self {
            expected,
            heavy,
            tasks,
            waiting: [BTreeMap::new(), BTreeMap::new()],
            maps_left: expected.maps.0,
            may_reduce: false,
            maps_done: 0,
            reduces_done: 0,
            senders: BTreeMap::new(),
            batches: Vec::new(),
            maps_end: Micros::ZERO,
            shuffled: Micros::ZERO,
            end: Micros::ZERO,
        }
    }

    fn forecast(&self, from: Timestamp) -> Option<Forecast> {
        let done = self.maps_done == self.expected.maps.0 && self.reduces_done == self.expected.reduces.0;
        let shuffled = self.shuffled.max(self.maps_end);
        done.then(|| Forecast {
            maps_end: from.plus(self.maps_end),
            shuffled: from.plus(shuffled),
            end: from.plus(self.end),
        })
    }
}

/// The first multiple of the step after the moment.
const fn after(now: Micros, step: Micros) -> Micros {
    Micros((now.0 / step.0).saturating_add(1).saturating_mul(step.0))
}

#[cfg(test)]
mod tests;
