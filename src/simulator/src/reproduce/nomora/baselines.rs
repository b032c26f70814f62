//! The paper's other two policies, which are Firmament's (§6), as costs of a minimum-cost flow: `random` by a fixed cost, `spread`
//! by how many tasks a machine has.
//!
//! Neither tells tasks of a job apart, nor machines of equal cost: each of these is one arc, and which of the machines a task gets
//! is drawn. A task waits only where no slot is free; those that waited for longest go first.

use crate::reproduce::hit::systems::Failure;
use hintd_model::solve::mincost::{ArcId, ArcRow, MinCostProblem, NodeId, ProblemError, Simplex};
use hintd_policy::nomora::round::Waiting;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// What a task costs on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Costs {
    /// The same on each.
    Fixed,
    /// As many as there are tasks on it.
    Load,
}

/// A machine with a free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) machine: u32,
    /// Tasks that it has.
    pub(super) tasks: u32,
    /// At least 1.
    pub(super) free: u32,
}

impl Open {
    /// Whether a task that comes finds so many there, once those are there that find fewer.
    const fn has(&self, tasks: u32) -> bool {
        self.tasks <= tasks && tasks < self.tasks + self.free
    }
}

/// The network of a round.
struct Network {
    problem: MinCostProblem,
    /// By job: its tasks that are placed.
    placed: Vec<ArcId>,
    /// Slots of equal cost, each with that cost.
    slots: Vec<(u32, ArcId)>,
}

impl Network {
    fn new(costs: Costs, jobs: &[Vec<Waiting>], machines: &[Open]) -> Result<Self, ProblemError> {
        let mut problem = MinCostProblem::new();
        let (sink, anywhere) = (problem.add_node(0)?, problem.add_node(0)?);
        let slots = slots(costs, machines);
        // Whoever finds a slot takes it.
        let stays = 1 + slots.iter().map(|(cost, _)| i64::from(*cost)).max().unwrap_or(0);
        let arc = |problem: &mut MinCostProblem, from, to, capacity, cost| {
            problem.add_arc(ArcRow { from, to, capacity, cost })
        };
        let slots = slots
            .into_iter()
            .map(|(cost, count)| Ok((cost, arc(&mut problem, anywhere, sink, count, i64::from(cost))?)))
            .collect::<Result<_, ProblemError>>()?;
        let (mut placed, mut supply) = (Vec::with_capacity(jobs.len()), 0);
        for job in jobs {
            let count: i64 = job.iter().map(|waiting| i64::from(waiting.count)).sum();
            let node: NodeId = problem.add_node(count)?;
            supply += count;
            placed.push(arc(&mut problem, node, anywhere, count, 0)?);
            for Waiting { wait_s, count } in job {
                let waited = i64::try_from(*wait_s).unwrap_or(i64::MAX).min(1 << 30);
                arc(&mut problem, node, sink, i64::from(*count), stays + waited)?;
            }
        }
        problem.set_supply(sink, -supply)?;
        Ok(Self { problem, placed, slots })
    }
}

/// Free slots by cost, the least first.
fn slots(costs: Costs, machines: &[Open]) -> Vec<(u32, i64)> {
    let count = |has: &dyn Fn(&Open) -> u32| machines.iter().map(|open| i64::from(has(open))).sum();
    match costs {
        Costs::Fixed => vec![(1, count(&|open| open.free))],
        Costs::Load => {
            let most = machines.iter().map(|open| open.tasks + open.free).max().unwrap_or(0);
            (0..most).map(|tasks| (tasks, count(&|open| u32::from(open.has(tasks))))).collect()
        }
    }
}

/// Machines that the tasks of each job get, as many as there are slots for.
pub(super) fn solve(
    costs: Costs,
    jobs: &[Vec<Waiting>],
    machines: &[Open],
    random: &mut ChaCha8Rng,
) -> Result<Vec<Vec<u32>>, Failure> {
    let Network { problem, placed, slots } = Network::new(costs, jobs, machines)?;
    let flow = Simplex::new().solve(&problem, &mut || false)?;
    let flow = |arc: &ArcId| flow.flows[arc.at()] as usize;
    let mut taken: Vec<u32> = Vec::new();
    for (tasks, arc) in slots.iter().filter(|(_, arc)| flow(arc) > 0) {
        match costs {
            Costs::Fixed => draw_any(machines, flow(arc), (random, &mut taken)),
            Costs::Load => {
                let mut equal: Vec<u32> =
                    machines.iter().filter(|open| open.has(*tasks)).map(|open| open.machine).collect();
                taken.extend_from_slice(equal.partial_shuffle(random, flow(arc)).0);
            }
        }
    }
    let mut taken = taken.into_iter();
    Ok(placed.iter().map(|arc| taken.by_ref().take(flow(arc)).collect()).collect())
}

/// So many slots, each of a machine drawn among all with one left.
fn draw_any(machines: &[Open], count: usize, (random, taken): (&mut ChaCha8Rng, &mut Vec<u32>)) {
    let mut open = machines.to_vec();
    for _ in 0..count {
        let at = random.random_range(0..open.len());
        taken.push(open[at].machine);
        open[at].free -= 1;
        if open[at].free == 0 {
            open.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeMap;

    const MACHINES: [Open; 4] = [
        Open { machine: 10, tasks: 0, free: 3 },
        Open { machine: 11, tasks: 2, free: 2 },
        Open { machine: 12, tasks: 1, free: 4 },
        Open { machine: 13, tasks: 4, free: 1 },
    ];

    fn waiting(counts: &[(u64, u32)]) -> Vec<Waiting> {
        counts.iter().map(|&(wait_s, count)| Waiting { wait_s, count }).collect()
    }

    fn placed(costs: Costs, jobs: &[Vec<Waiting>], seed: u64) -> Vec<Vec<u32>> {
        solve(costs, jobs, &MACHINES, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap()
    }

    fn by_machine(placed: &[Vec<u32>]) -> BTreeMap<u32, u32> {
        let mut found = BTreeMap::new();
        placed.iter().flatten().for_each(|machine| *found.entry(*machine).or_default() += 1);
        found
    }

    #[test]
    fn spread_levels_what_machines_have_whichever_jobs_tasks_are_of() {
        for seed in 0..20 {
            let found = placed(Costs::Load, &[waiting(&[(0, 2)]), waiting(&[(3, 1), (1, 3)])], seed);
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4]);
            // To three each: three, two and one come.
            assert_eq!(by_machine(&found), BTreeMap::from([(10, 3), (11, 1), (12, 2)]), "{found:?}");
        }
    }

    #[test]
    fn random_takes_any_machine_with_a_slot_and_no_more_of_them_than_it_has() {
        let mut seen = BTreeMap::new();
        for seed in 0..400 {
            let found = placed(Costs::Fixed, &[waiting(&[(0, 1)])], seed);
            *seen.entry(found[0][0]).or_insert(0) += 1;
            let all = by_machine(&placed(Costs::Fixed, &[waiting(&[(0, 9)])], seed));
            assert!(MACHINES.iter().all(|open| all.get(&open.machine).is_none_or(|count| *count <= open.free)));
        }
        // A hundred each is what is expected, whatever a machine has.
        assert!(seen.len() == 4 && seen.values().all(|count| (65..=135).contains(count)), "{seen:?}");
    }

    #[test]
    fn where_slots_are_short_those_that_waited_for_longest_have_them() {
        for costs in [Costs::Fixed, Costs::Load] {
            let found = placed(costs, &[waiting(&[(5, 8)]), waiting(&[(60, 4), (2, 3)])], 1);
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [6, 4], "{costs:?}: ten slots");
            assert_eq!(by_machine(&found).values().sum::<u32>(), 10);
        }
    }
}
