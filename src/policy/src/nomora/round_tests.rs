//! Rounds held against every assignment there is, on small cases.

use super::curve::{BUILT_IN, Curve};
use super::round::{Bounds, CostModel, Machine, Round, RoundAnswer, RoundJob, RunningTasks, Waiting, solve};
use hintd_model::network::latency::Latencies;
use hintd_model::units::{Micros, NodeIdx, RackIdx};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Round trips by pair of four machines.
#[derive(Debug, Clone)]
struct Table(Vec<u64>);

impl Latencies for Table {
    fn rtt(&self, a: NodeIdx, b: NodeIdx) -> Micros {
        Micros(self.0[(a.min(b).0 * 4 + a.max(b).0) as usize])
    }
}

#[derive(Debug, Clone)]
struct Job {
    curve: &'static str,
    root: NodeIdx,
    waiting: Vec<Waiting>,
    running: Vec<RunningTasks>,
    bounds: Option<Bounds>,
}

#[derive(Debug, Clone)]
struct Case {
    machines: Vec<Machine>,
    jobs: Vec<Job>,
    roots: Vec<Waiting>,
    latency: Table,
    model: CostModel,
}

/// A task of its own, as the oracle sees it.
struct Task {
    job: Option<usize>,
    waits: bool,
    /// By machine; `None`: not there.
    cost: Vec<Option<i128>>,
    out: i128,
}

impl Case {
    fn solved(&self, seed: u64, work: &dyn Fn(u64) -> bool) -> RoundAnswer {
        let curves: Vec<Curve> = self.jobs.iter().map(|job| Curve::built_in(job.curve).unwrap()).collect();
        let jobs = self.jobs.iter().zip(&curves).map(|(job, curve)| RoundJob {
            curve,
            root: job.root,
            waiting: job.waiting.clone(),
            running: job.running.clone(),
            bounds: job.bounds.clone(),
            slots: 1,
        });
        let (machines, roots) = (&self.machines[..], self.roots.clone());
        let round = Round { machines, jobs: jobs.collect(), roots, latency: &self.latency, seed };
        solve(&round, &self.model, work).unwrap()
    }

    /// What a job pays on a machine, by the paper's three kinds of arcs, written down once more.
    fn least(&self, job: &Job, at: usize) -> i128 {
        let curve = Curve::built_in(job.curve).unwrap();
        let cost = |machine: &Machine| curve.cost(self.latency.rtt(job.root, machine.node));
        let worst = |of: &dyn Fn(&Machine) -> bool| {
            self.machines.iter().filter(|machine| machine.slots > 0 && of(machine)).map(cost).max().unwrap_or(0)
        };
        let mut ways = vec![worst(&|_| true)];
        ways.extend(Some(cost(&self.machines[at])).filter(|cost| *cost <= self.model.p_m));
        ways.extend(Some(worst(&|it| it.rack == self.machines[at].rack)).filter(|cost| *cost <= self.model.p_r));
        i128::from(*ways.iter().min().unwrap())
    }

    fn out(&self, wait_s: u64) -> i128 {
        i128::from(self.model.gamma) + (self.model.omega * wait_s as f64) as i128
    }

    fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        let all = 0..self.machines.len();
        for (at, job) in self.jobs.iter().enumerate() {
            let allowed = |machine: usize| job.bounds.as_ref().is_none_or(|bounds| bounds.on_machine[machine] > 0);
            for waiting in &job.waiting {
                for _ in 0..waiting.count {
                    let cost = all.clone().map(|machine| allowed(machine).then(|| self.least(job, machine)));
                    tasks.push(Task {
                        job: Some(at),
                        waits: true,
                        cost: cost.collect(),
                        out: self.out(waiting.wait_s),
                    });
                }
            }
            for running in &job.running {
                for _ in 0..running.count {
                    let mut cost: Vec<Option<i128>> =
                        all.clone().map(|machine| Some(self.least(job, machine))).collect();
                    cost[running.machine as usize] = Some(self.stays(job, running));
                    tasks.push(Task { job: Some(at), waits: false, cost, out: self.out(0) });
                }
            }
        }
        for roots in &self.roots {
            let root = || Task {
                job: None,
                waits: true,
                cost: vec![Some(0); self.machines.len()],
                out: self.out(roots.wait_s),
            };
            tasks.extend((0..roots.count).map(|_| root()));
        }
        tasks
    }

    fn stays(&self, job: &Job, running: &RunningTasks) -> i128 {
        let curve = Curve::built_in(job.curve).unwrap();
        let own = curve.cost(self.latency.rtt(job.root, self.machines[running.machine as usize].node));
        (i128::from(own) - (self.model.beta * running.ran_s as f64) as i128).max(0)
    }

    /// The least cost of all assignments.
    fn least_of_all(&self) -> i128 {
        let mut free: Vec<u32> = self.machines.iter().map(|machine| machine.slots).collect();
        let tasks = self.tasks();
        self.search(&tasks, 0, &mut free, &mut vec![None; tasks.len()])
    }

    fn search(&self, tasks: &[Task], at: usize, free: &mut [u32], placed: &mut Vec<Option<usize>>) -> i128 {
        let Some(task) = tasks.get(at) else { return 0 };
        let mut least = task.out + self.search(tasks, at + 1, free, placed);
        for machine in 0..free.len() {
            let Some(cost) = task.cost[machine] else { continue };
            if free[machine] == 0 || !self.within(tasks, placed, at, machine) {
                continue;
            }
            free[machine] -= 1;
            placed[at] = Some(machine);
            least = least.min(cost + self.search(tasks, at + 1, free, placed));
            placed[at] = None;
            free[machine] += 1;
        }
        least
    }

    fn within(&self, tasks: &[Task], placed: &[Option<usize>], at: usize, machine: usize) -> bool {
        let Some(job) = tasks[at].job.filter(|_| tasks[at].waits) else { return true };
        let Some(bounds) = &self.jobs[job].bounds else { return true };
        let rack = self.machines[machine].rack;
        let like = |other: usize| tasks[other].job == Some(job) && tasks[other].waits;
        let others: Vec<usize> = (0..at).filter(|other| like(*other)).filter_map(|other| placed[other]).collect();
        let here = others.iter().filter(|other| **other == machine).count() as u32;
        let in_rack = others.iter().filter(|other| self.machines[**other].rack == rack).count() as u32;
        here < bounds.on_machine[machine] && bounds.in_rack.get(&rack).is_none_or(|most| in_rack < *most)
    }

    /// What the answer costs by the oracle's prices, after a look at room, bounds and counts.
    fn priced(&self, answer: &RoundAnswer) -> i128 {
        let (mut used, mut cost) = (vec![0_u32; self.machines.len()], 0);
        for (job, found) in self.jobs.iter().zip(&answer.jobs) {
            let mut in_rack: BTreeMap<RackIdx, u32> = BTreeMap::new();
            for &(machine, count) in &found.placed {
                used[machine as usize] += count;
                *in_rack.entry(self.machines[machine as usize].rack).or_default() += count;
                cost += i128::from(count) * self.least(job, machine as usize);
                let most = job.bounds.as_ref().map_or(u32::MAX, |bounds| bounds.on_machine[machine as usize]);
                assert!(count <= most, "{count} of at most {most} on machine {machine}");
            }
            for (rack, most) in job.bounds.iter().flat_map(|bounds| &bounds.in_rack) {
                assert!(in_rack.get(rack).is_none_or(|count| count <= most), "{rack:?}");
            }
            let placed: u32 = found.placed.iter().map(|(_, count)| count).sum();
            cost += self.left_out(&job.waiting, placed);
            for (tasks, found) in job.running.iter().zip(&found.running) {
                let moved: u32 = found.moved.iter().map(|(_, count)| count).sum();
                assert_eq!(found.stay + moved + found.preempted, tasks.count, "each task once");
                used[tasks.machine as usize] += found.stay;
                cost += i128::from(found.stay) * self.stays(job, tasks) + i128::from(found.preempted) * self.out(0);
                for &(machine, count) in &found.moved {
                    assert_ne!(machine, tasks.machine);
                    used[machine as usize] += count;
                    cost += i128::from(count) * self.least(job, machine as usize);
                }
            }
        }
        answer.roots.iter().for_each(|machine| used[*machine as usize] += 1);
        cost += self.left_out(&self.roots, answer.roots.len() as u32);
        let fits = |(used, machine): (&u32, &Machine)| *used <= machine.slots;
        assert!(used.iter().zip(&self.machines).all(fits), "{used:?} of {:?}", self.machines);
        cost
    }

    /// Those that wait for longest go first.
    fn left_out(&self, waiting: &[Waiting], mut placed: u32) -> i128 {
        let mut outs: Vec<i128> =
            waiting.iter().flat_map(|it| std::iter::repeat_n(self.out(it.wait_s), it.count as usize)).collect();
        outs.sort_unstable();
        assert!(placed as usize <= outs.len());
        while placed > 0 {
            outs.pop();
            placed -= 1;
        }
        outs.iter().sum()
    }
}

fn job(machines: usize) -> impl Strategy<Value = Job> {
    let waiting = prop::collection::vec((0_u64..5, 0_u32..3), 0..3);
    let waiting =
        waiting.prop_map(|list| list.into_iter().map(|(wait_s, count)| Waiting { wait_s: wait_s * 40, count }));
    let running = prop::option::of((0..machines as u32, 0_u64..4, 1_u32..2));
    let running =
        running.prop_map(|it| it.map(|(machine, ran, count)| RunningTasks { machine, ran_s: ran * 60, count }));
    let bounds = prop::option::weighted(0.3, (prop::collection::vec(0_u32..3, machines), 0_u32..3));
    (0..BUILT_IN.len(), 0_u32..4, waiting, running, bounds).prop_map(|(curve, root, waiting, running, bounds)| Job {
        curve: BUILT_IN[curve],
        root: NodeIdx(root),
        waiting: waiting.collect(),
        running: running.into_iter().collect(),
        bounds: bounds.map(|(on_machine, most)| Bounds { on_machine, in_rack: [(RackIdx(0), most)].into() }),
    })
}

prop_compose! {
    fn case()(count in 1_usize..=4)(
        slots in prop::collection::vec((0_u32..2, 0_u32..3), count),
        jobs in prop::collection::vec(job(count), 1..3),
        roots in prop::option::of((0_u64..3, 1_u32..3)),
        latency in prop::collection::vec(prop::sample::select(vec![5_u64, 30, 45, 80, 200, 450, 900]), 16),
        (p_m, p_r) in (prop::sample::select(vec![100, 105, 110, 200, 1_000]), prop::sample::select(vec![100, 110, 150, 1_000])),
        (omega, beta) in (prop::sample::select(vec![0.0, 1.0, 7.5]), prop::sample::select(vec![0.0, 0.5, 1.0])),
    ) -> Case {
        let machine = |(at, (rack, slots)): (usize, &(u32, u32))| Machine { node: NodeIdx(at as u32), rack: RackIdx(*rack), slots: *slots };
        let mut machines: Vec<Machine> = slots.iter().enumerate().map(machine).collect();
        for running in jobs.iter().flat_map(|job| &job.running) {
            machines[running.machine as usize].slots += running.count;
        }
        let roots = roots.into_iter().map(|(wait_s, count)| Waiting { wait_s, count }).collect();
        let model = CostModel { p_m, p_r, omega, gamma: 1_001, beta };
        Case { machines, jobs, roots, latency: Table(latency), model }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_assignment_costs_less_and_the_one_found_costs_what_is_said(case in case(), seed in any::<u64>()) {
        prop_assume!(case.tasks().len() <= 6);
        let answer = case.solved(seed, &|_| true);
        prop_assert!(answer.optimal);
        prop_assert_eq!(answer.cost, case.least_of_all());
        prop_assert_eq!(case.priced(&answer), answer.cost);
        prop_assert_eq!(&case.solved(seed, &|_| true), &answer);
    }

    #[test]
    fn a_round_cut_short_keeps_capacities_and_leaves_what_runs_where_it_is(case in case(), looks in 0_u32..4) {
        let left = std::cell::Cell::new(looks);
        let work = |_: u64| {
            let before = left.get();
            left.set(before.saturating_sub(1));
            before > 0
        };
        let answer = case.solved(1, &work);
        case.priced(&answer);
        if !answer.optimal {
            for (job, found) in case.jobs.iter().zip(&answer.jobs) {
                for (tasks, found) in job.running.iter().zip(&found.running) {
                    prop_assert_eq!(found.stay, tasks.count);
                }
            }
        }
    }
}

/// Two machines in rack 0, two in rack 1; latencies as given, symmetric.
fn four(slots: [u32; 4], latency: [[u64; 4]; 4], jobs: Vec<Job>) -> Case {
    let machine = |at: u32| Machine { node: NodeIdx(at), rack: RackIdx(at / 2), slots: slots[at as usize] };
    let model = CostModel { p_m: 1_000, p_r: 1_000, omega: 1.0, gamma: 1_001, beta: 1.0 };
    let latency = Table(latency.concat());
    Case { machines: (0..4).map(machine).collect(), jobs, roots: vec![], latency, model }
}

fn memcached(root: u32, waiting: u32) -> Job {
    let waiting = vec![Waiting { wait_s: 0, count: waiting }];
    Job { curve: "memcached", root: NodeIdx(root), waiting, running: vec![], bounds: None }
}

const FAR: [[u64; 4]; 4] = [[5, 60, 300, 500], [60, 5, 300, 300], [300, 300, 5, 60], [500, 300, 60, 5]];

#[test]
fn tasks_fill_the_machines_of_least_latency_to_their_root_first() {
    let answer = four([1, 1, 2, 2], FAR, vec![memcached(0, 4)]).solved(1, &|_| true);
    assert_eq!(answer.jobs[0].placed, [(0, 1), (1, 1), (2, 2)]);
}

#[test]
fn a_job_that_cares_less_leaves_the_near_machines_to_one_that_cares_more() {
    let spark = Job { curve: "spark", ..memcached(0, 1) };
    let answer = four([1, 0, 0, 1], FAR, vec![spark, memcached(0, 1)]).solved(1, &|_| true);
    assert_eq!(answer.jobs.iter().map(|job| job.placed[0].0).collect::<Vec<_>>(), [3, 0]);
}

#[test]
fn what_has_run_for_long_stays_and_what_has_not_moves_nearer() {
    let with = |ran_s| Job { running: vec![RunningTasks { machine: 3, ran_s, count: 1 }], ..memcached(0, 0) };
    let moved = |ran_s| four([1, 0, 0, 1], FAR, vec![with(ran_s)]).solved(1, &|_| true).jobs[0].running[0].clone();
    assert_eq!((moved(0).stay, moved(0).moved), (0, vec![(0, 1)]));
    assert_eq!(
        (moved(300).stay, moved(300).moved),
        (1, vec![]),
        "300 s are worth more than the 229 that it would save"
    );
}

#[test]
fn nothing_moves_without_a_gain() {
    let same = [[30; 4]; 4];
    for count in 1..=3 {
        let running = vec![RunningTasks { machine: 2, ran_s: 0, count }];
        let answer = four([3; 4], same, vec![Job { running, ..memcached(0, 0) }]).solved(1, &|_| true);
        assert_eq!((answer.jobs[0].running[0].stay, answer.cost), (count, 100 * i128::from(count)));
    }
}

#[test]
fn those_that_wait_for_longest_go_first_and_roots_before_workers() {
    let mut case = four([1, 0, 0, 0], FAR, vec![memcached(0, 1), memcached(0, 1)]);
    case.jobs[1].waiting[0].wait_s = 30;
    let answer = case.solved(1, &|_| true);
    assert_eq!(answer.jobs.iter().map(|job| job.placed.len()).collect::<Vec<_>>(), [0, 1]);
    case.roots = vec![Waiting { wait_s: 0, count: 1 }];
    case.jobs[1].waiting[0].wait_s = 0;
    let answer = case.solved(1, &|_| true);
    assert_eq!((answer.roots.len(), answer.cost), (1, 2 * 1_001), "a root costs nothing wherever it goes");
}

/// Racks of 48.
struct ByRack;

impl Latencies for ByRack {
    fn rtt(&self, a: NodeIdx, b: NodeIdx) -> Micros {
        Micros(match (a == b, a.0 / 48 == b.0 / 48) {
            (true, _) => 5,
            (_, true) => 30,
            _ => 300,
        })
    }
}

#[test]
fn rooms_of_any_size_add_up() {
    let answer = four([u32::MAX; 4], FAR, vec![memcached(0, 4)]).solved(1, &|_| true);
    assert_eq!((answer.optimal, &answer.jobs[0].placed[..]), (true, &[(0, 4)][..]));
    let mut bound = memcached(0, 4);
    bound.bounds = Some(Bounds { on_machine: vec![1; 4], in_rack: BTreeMap::new() });
    let answer = four([u32::MAX; 4], FAR, vec![bound]).solved(1, &|_| true);
    assert_eq!(answer.jobs[0].placed.len(), 4);
}

/// How often it was asked.
struct Counted(std::cell::Cell<usize>);

impl Latencies for Counted {
    fn rtt(&self, a: NodeIdx, b: NodeIdx) -> Micros {
        self.0.set(self.0.get() + 1);
        ByRack.rtt(a, b)
    }
}

#[test]
fn jobs_of_one_root_and_curve_share_their_costs_and_the_probe_is_looked_at_while_arcs_are_made() {
    let machines: Vec<Machine> =
        (0..96).map(|at| Machine { node: NodeIdx(at), rack: RackIdx(at / 48), slots: 4 }).collect();
    let curves = ["memcached", "spark"].map(|name| Curve::built_in(name).unwrap());
    let job = |at: usize| RoundJob {
        curve: &curves[at % 2],
        root: NodeIdx(7),
        waiting: vec![Waiting { wait_s: 0, count: 1 }],
        running: vec![],
        bounds: Some(Bounds { on_machine: vec![1; 96], in_rack: BTreeMap::new() }),
        slots: 1,
    };
    let latency = Counted(std::cell::Cell::new(0));
    let jobs = (0..20).map(job).collect();
    let round = Round { machines: &machines, jobs, roots: vec![], latency: &latency, seed: 1 };
    let model = CostModel { p_m: 1_000, p_r: 1_000, omega: 1.0, gamma: 1_001, beta: 1.0 };
    let answer = solve(&round, &model, &|_| true).unwrap();
    assert!(answer.optimal && answer.jobs.iter().all(|job| job.placed.len() == 1));
    assert_eq!(latency.0.get(), 2 * 96, "two curves");
    // Two tables of costs, then ten of twenty jobs' arcs.
    let looks = std::cell::Cell::new(0);
    let work = |_: u64| {
        looks.set(looks.get() + 1);
        looks.get() <= 12
    };
    let answer = solve(&round, &model, &work).unwrap();
    assert_eq!((answer.optimal, answer.size, looks.get()), (false, (0, 0), 13), "nothing was built to its end");
}

#[test]
fn racks_without_preferred_machines_are_one_capacity() {
    let machines: Vec<Machine> =
        (0..4_800).map(|at| Machine { node: NodeIdx(at), rack: RackIdx(at / 48), slots: 4 }).collect();
    let curve = Curve::built_in("memcached").unwrap();
    let job = |root| RoundJob {
        curve: &curve,
        root: NodeIdx(root),
        waiting: vec![Waiting { wait_s: 0, count: 300 }],
        running: vec![],
        bounds: None,
        slots: 1,
    };
    let jobs = vec![job(7), job(100)];
    let round = Round { machines: &machines, jobs, roots: vec![], latency: &ByRack, seed: 1 };
    let model = CostModel { p_m: 105, p_r: 110, omega: 1.0, gamma: 1_001, beta: 1.0 };
    let answer = solve(&round, &model, &|_| true).unwrap();
    assert!(answer.optimal && answer.size.0 < 110, "100 racks, 2 jobs, sink and anywhere: {:?}", answer.size);
    for (job, found) in round.jobs.iter().zip(&answer.jobs) {
        let near = |machine: &u32| machines[*machine as usize].rack == machines[job.root.at()].rack;
        let in_rack: u32 = found.placed.iter().filter(|(machine, _)| near(machine)).map(|(_, count)| count).sum();
        assert_eq!((in_rack, found.placed.iter().map(|(_, count)| count).sum::<u32>()), (192, 300));
    }
}
