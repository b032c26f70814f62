//! A flow read as an answer: which machine each task goes to.

use super::{JobAnswer, JobCosts, Meaning, Racks, Round, RoundAnswer, RoundJob, RunningAnswer, Source};
use hintd_model::solve::mincost::{ArcId, MinCostFlow};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Reads tasks' machines off a flow.
pub(super) struct Taker<'r, 'a> {
    round: &'r Round<'a>,
    racks: &'r Racks,
    costs: &'r [Rc<JobCosts>],
    free: Vec<u32>,
    /// By job: machines of waiting tasks.
    placed: Vec<BTreeMap<u32, u32>>,
    running: Vec<Vec<RunningAnswer>>,
    roots: Vec<u32>,
}

impl<'r, 'a> Taker<'r, 'a> {
    /// All that runs loses its slot so far.
    pub(super) fn new(round: &'r Round<'a>, racks: &'r Racks, costs: &'r [Rc<JobCosts>]) -> Self {
        let running = |job: &RoundJob<'_>| vec![RunningAnswer::default(); job.running.len()];
        Self {
            round,
            racks,
            costs,
            free: round.machines.iter().map(|machine| machine.slots).collect(),
            placed: vec![BTreeMap::new(); round.jobs.len()],
            running: round.jobs.iter().map(running).collect(),
            roots: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, flow: &MinCostFlow, meanings: &[(ArcId, Meaning)]) {
        if !flow.optimal {
            self.stay();
        }
        // What was cut short sends more into a machine or rack than goes out: nobody gets more than is free.
        let slots = |meaning: &Meaning| meaning.source().map_or(1, |source| i64::from(self.slots(source)));
        // Parts of a task are none.
        let carries = meanings.iter().map(|(arc, meaning)| (flow.flows[arc.at()] / slots(meaning), *meaning));
        let carries = carries.map(|(count, meaning)| (count as u32, meaning));
        let carries: Vec<(u32, Meaning)> = carries.filter(|(count, _)| *count > 0).collect();
        let counts = |source: Source| flow.optimal || source.running.is_none();
        for &(count, meaning) in &carries {
            match meaning {
                Meaning::Machine(source, machine) if counts(source) => _ = self.put(source, machine, count),
                Meaning::Stay(source) if counts(source) => {
                    let running = &self.round.jobs[source.job as usize].running;
                    let machine = source.running.map(|at| running[at as usize].machine);
                    machine.into_iter().for_each(|machine| _ = self.put(source, machine, count));
                }
                _ => {}
            }
        }
        for &(mut count, meaning) in &carries {
            let Meaning::Rack(source, rack) = meaning else { continue };
            if counts(source) {
                let costs = &self.costs[source.job as usize].machine;
                let mut members = self.racks.members[rack as usize].clone();
                members.sort_by_key(|machine| (costs[*machine as usize], *machine));
                for machine in members {
                    count -= self.put(source, machine, count);
                }
            }
        }
        let mut draw = Draw::new(self.round.seed, &self.free);
        for &(count, meaning) in &carries {
            match meaning {
                Meaning::Anywhere(source) if counts(source) => {
                    for _ in 0..count {
                        let Some(machine) = draw.next(&self.free, self.slots(source)) else { break };
                        self.put(source, machine, 1);
                    }
                }
                _ => {}
            }
        }
        for &(count, _) in carries.iter().filter(|(_, meaning)| matches!(meaning, Meaning::Roots)) {
            for _ in 0..count {
                let Some(machine) = draw.next(&self.free, 1) else { break };
                self.free[machine as usize] -= 1;
                self.roots.push(machine);
            }
        }
    }

    /// What runs stays.
    pub(super) fn stay(&mut self) {
        for (job, answers) in self.round.jobs.iter().zip(&mut self.running) {
            for (tasks, answer) in job.running.iter().zip(answers) {
                answer.stay = tasks.count;
                let free = &mut self.free[tasks.machine as usize];
                *free = free.saturating_sub(tasks.count.saturating_mul(job.slots));
            }
        }
    }

    fn slots(&self, source: Source) -> u32 {
        self.round.jobs[source.job as usize].slots
    }

    /// As many as there are slots for, of so many; how many.
    fn put(&mut self, source: Source, machine: u32, count: u32) -> u32 {
        let slots = self.slots(source);
        let count = count.min(self.free[machine as usize] / slots);
        self.free[machine as usize] -= count * slots;
        if count == 0 {
            return 0;
        }
        let Some(running) = source.running else {
            *self.placed[source.job as usize].entry(machine).or_default() += count;
            return count;
        };
        let answer = &mut self.running[source.job as usize][running as usize];
        if self.round.jobs[source.job as usize].running[running as usize].machine == machine {
            answer.stay += count;
        } else {
            answer.moved.push((machine, count));
        }
        count
    }

    pub(super) fn finish(self) -> RoundAnswer {
        let mut jobs = Vec::with_capacity(self.round.jobs.len());
        for (at, (placed, mut running)) in self.placed.into_iter().zip(self.running).enumerate() {
            for (answer, tasks) in running.iter_mut().zip(&self.round.jobs[at].running) {
                let moved: u32 = answer.moved.iter().map(|(_, count)| count).sum();
                answer.preempted = tasks.count - answer.stay - moved;
            }
            let mut placed: Vec<(u32, u32)> = placed.into_iter().collect();
            if let Some(costs) = self.costs.get(at) {
                placed.sort_by_key(|(machine, _)| (costs.machine[*machine as usize], *machine));
            }
            jobs.push(JobAnswer { placed, running });
        }
        RoundAnswer { jobs, roots: self.roots, ..RoundAnswer::default() }
    }
}

/// Machines with free slots, drawn evenly.
struct Draw {
    random: ChaCha8Rng,
    open: Vec<u32>,
}

impl Draw {
    fn new(seed: u64, free: &[u32]) -> Self {
        let open = (0..).zip(free).filter(|(_, free)| **free > 0).map(|(at, _)| at).collect();
        Self { random: ChaCha8Rng::seed_from_u64(seed), open }
    }

    /// One with so many free.
    fn next(&mut self, free: &[u32], slots: u32) -> Option<u32> {
        while !self.open.is_empty() {
            let at = self.random.random_range(0..self.open.len());
            match free[self.open[at] as usize] {
                0 => _ = self.open.swap_remove(at),
                left if left >= slots => return Some(self.open[at]),
                _ => {
                    let wide: Vec<u32> = self.open.iter().copied().filter(|at| free[*at as usize] >= slots).collect();
                    let any = (!wide.is_empty()).then(|| wide[self.random.random_range(0..wide.len())]);
                    return any;
                }
            }
        }
        None
    }
}
