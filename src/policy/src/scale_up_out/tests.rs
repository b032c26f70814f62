//! The dispatcher on small clusters to the end of their jobs, against brute force; classes, replicas, requests at once.

use super::*;
use crate::advise::EarlierRun;
use crate::baselines::fair::Fair;
use crate::dispatch::{DispatchState, TaskInput, TaskRef, WaitingGroup};
use crate::pool::naive::{Naive, World, agree};
use crate::problem::KnownJob;
use crate::sample::{Sample, cluster};
use crate::{DynDispatch, Policy, check};
use hintd_model::cluster::Resource;
use hintd_model::cluster::node::LabelBits;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, ClassIdx, Micros, NodeIdx, RackIdx, Timestamp};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

const UNIT: Resource = Resource::new(1024, 1);
const GIB: u64 = 1 << 30;

/// The policy, its classifier trained once for all tests.
fn policy(change: impl FnOnce(&mut ScaleUpOutParams)) -> ScaleUpOut {
    static TRAINED: OnceLock<Arc<Classifier>> = OnceLock::new();
    let mut params = ScaleUpOutParams { training_jobs: 120, ..ScaleUpOutParams::default() };
    let trained = TRAINED.get_or_init(|| Arc::new(Classifier::of_time_model(&params).unwrap()));
    change(&mut params);
    ScaleUpOut::new(params).with_classifier(Arc::clone(trained))
}

/// Racks of `nodes` nodes of `containers` containers; the last one's are scale-up machines.
fn yard(racks: usize, nodes: usize, containers: u64) -> Sample {
    let spec = TreeSpec { racks, hosts_per_rack: nodes, ..TreeSpec::default() };
    let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(containers), Bytes(1));
    let statics = Arc::make_mut(&mut sample.snapshot.statics);
    statics.class_names.push("scale-up".into());
    for node in (racks - 1) * nodes..racks * nodes {
        statics.class[node] = ClassIdx(1);
    }
    sample
}

const fn attempt(number: u32) -> AttemptId {
    AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: number }, attempt: 1 }
}

/// Maps of `bytes` each.
fn maps(number: u32, count: u32, bytes: u64) -> WaitingGroup {
    WaitingGroup {
        attempt: attempt(number),
        user: format!("user{number}").into(),
        queue: "q".into(),
        group: "map".into(),
        role: "map".into(),
        count,
        size: UNIT,
        inputs: (0..count).map(|_| TaskInput { bytes: Bytes(bytes), nodes: SmallVec::new() }).collect(),
        output_ratio: None,
        since: Timestamp(0),
    }
}

/// A run of a dispatcher: nodes report every second, in their order; a map takes `seconds` on a scale-out machine.
struct Run<'a> {
    sample: &'a mut Sample,
    policy: &'a dyn DynDispatch,
    state: DispatchState,
    seconds: f64,
    now: u64,
    /// By end, then as launched.
    running: BTreeSet<(u64, u64, TaskRef, NodeIdx)>,
    launches: u64,
    /// Nodes by job.
    ran_on: BTreeMap<AttemptId, BTreeSet<NodeIdx>>,
    ends: BTreeMap<AttemptId, u64>,
    left: BTreeMap<AttemptId, u32>,
}

impl<'a> Run<'a> {
    fn new(sample: &'a mut Sample, policy: &'a dyn DynDispatch, jobs: &[WaitingGroup], seconds: f64) -> Self {
        let (state, left) = (policy.start(), jobs.iter().map(|job| (job.attempt, job.count)).collect());
        let (running, ran_on, ends) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let mut run = Self { sample, policy, state, seconds, now: 0, running, launches: 0, ran_on, ends, left };
        jobs.iter().for_each(|job| run.tell(DispatchEvent::Waiting(job.clone())));
        run
    }

    fn tell(&mut self, event: DispatchEvent) {
        let (snapshot, leases) = (&self.sample.snapshot, &self.sample.leases);
        let view = View { snapshot, leases, now: Timestamp(self.now), explain: false };
        self.policy.observe(&mut self.state, &event, &view);
    }

    fn offer(&mut self, node: NodeIdx, explain: bool) -> Vec<Advice> {
        let (snapshot, leases) = (&self.sample.snapshot, &self.sample.leases);
        let view = View { snapshot, leases, now: Timestamp(self.now), explain };
        let offer = Offer { node, free: snapshot.room(node, leases) };
        self.policy.offer(&mut self.state, &offer, &view)
    }

    fn end_tasks(&mut self) {
        while let Some((at, _, task, node)) = self.running.first().cloned().filter(|first| first.0 <= self.now) {
            self.running.pop_first();
            let occupied = &mut self.sample.snapshot.occupied[node.at()];
            *occupied = occupied.minus(&UNIT);
            let job = task.attempt;
            let (duration, input, output, failed) = (Micros(1), Bytes(1), Bytes(1), false);
            self.tell(DispatchEvent::Finished { task, node, duration, input, output, failed });
            let left = self.left.get_mut(&job).unwrap();
            *left -= 1;
            if *left == 0 {
                self.ends.insert(job, at);
                self.tell(DispatchEvent::Done(job));
            }
        }
    }

    fn report(&mut self, node: NodeIdx) {
        loop {
            let taken = self.offer(node, false).into_iter().next();
            let Some(Advice::Launch(task)) = taken else { return };
            self.launches += 1;
            let speed = if is_up(self.sample, node) { 1.7 } else { 1.0 };
            let end = self.now + (self.seconds * 1e6 / speed) as u64;
            self.ran_on.entry(task.attempt).or_default().insert(node);
            self.running.insert((end, self.launches, task.clone(), node));
            let occupied = &mut self.sample.snapshot.occupied[node.at()];
            *occupied = occupied.plus(&UNIT);
            self.tell(DispatchEvent::Launched { task, node });
        }
    }

    /// To the end of all jobs; `check` is asked after each report.
    fn until_the_end(mut self, mut check: impl FnMut(&mut Self, NodeIdx)) -> Self {
        let nodes = self.sample.snapshot.nodes();
        for _ in 0..40_000 {
            self.end_tasks();
            if self.left.values().all(|left| *left == 0) {
                return self;
            }
            for node in (0..nodes).map(NodeIdx::new) {
                if !self.sample.snapshot.state[node.at()].usable() {
                    continue;
                }
                self.report(node);
                check(&mut self, node);
            }
            self.now += 1_000_000;
        }
        panic!("jobs wait for ever: {:?}", self.left);
    }

    fn total(&self) -> f64 {
        self.ends.values().map(|end| *end as f64 / 1e6).sum()
    }

    fn total_of(&self, jobs: &[WaitingGroup]) -> f64 {
        jobs.iter().filter_map(|job| self.ends.get(&job.attempt)).map(|end| *end as f64 / 1e6).sum()
    }

    /// Whether the job ran on scale-up machines; never on both.
    fn ran_up(&self, job: AttemptId) -> bool {
        let up: BTreeSet<bool> = self.ran_on[&job].iter().map(|&node| is_up(self.sample, node)).collect();
        assert_eq!(up.len(), 1, "a job runs on one class");
        up.contains(&true)
    }
}

fn is_up(sample: &Sample, node: NodeIdx) -> bool {
    sample.snapshot.statics.class[node.at()] == ClassIdx(1)
}

/// Small jobs of one to four maps, and large ones: few maps to run, of much input.
fn draw(random: &mut ChaCha8Rng, jobs: u32) -> Vec<WaitingGroup> {
    let large = |random: &mut ChaCha8Rng| random.random_bool(0.3);
    (1..=jobs)
        .map(
            |number| {
                if large(random) { maps(number, 600, 128 << 20) } else { maps(number, random.random_range(1..5), 9) }
            },
        )
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn without_classes_it_launches_what_fair_does(seed: u64) {
        struct AsFair(Fair, DispatchState);
        impl Naive for AsFair {
            fn observe(&mut self, _world: &World, event: &DispatchEvent, view: &View<'_>) {
                DynDispatch::observe(&self.0, &mut self.1, event, view);
            }
            fn offer(&mut self, _world: &World, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
                DynDispatch::offer(&self.0, &mut self.1, offer, view).into_iter().find_map(|advice| match advice {
                    Advice::Launch(task) => Some(task),
                    Advice::NotYet { .. } => None,
                })
            }
        }
        let fair = Fair::default();
        let state = DynDispatch::start(&fair);
        let launches = agree(&policy(|_| {}), &mut AsFair(fair, state), seed, 300);
        prop_assert!(launches > 10, "{launches}");
    }

    /// The paper's rules: whole jobs on one class, large ones never on scale-up machines, and no scale-out machine idle
    /// while a job waits that it may steal.
    #[test]
    fn jobs_stay_whole_and_no_scale_out_machine_idles_beside_a_job_that_it_may_steal(seed: u64, kind in 0..3_usize) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let jobs = draw(&mut random, 8);
        let mut sample = yard(3, 2, 2);
        let (steal, at_once) = ([Steal::Always, Steal::WhenFull, Steal::WhenSooner][kind], kind == 0);
        let policy = policy(|params| params.steal = steal);
        let run = Run::new(&mut sample, &policy, &jobs, 20.0).until_the_end(|run, node| {
            let idle = run.sample.snapshot.room(node, &run.sample.leases) != Resource::ZERO;
            let up_room = (4..6).any(|up| run.sample.snapshot.occupied[up] != UNIT.times(2));
            let waits = run.state.of::<QueuesState>().unwrap().stealable().count();
            let may = at_once || !up_room;
            assert!(is_up(run.sample, node) || !idle || !may || waits == 0, "{waits} jobs wait beside {node:?}");
        });
        for job in &jobs {
            prop_assert!(job.count < 600 || !run.ran_up(job.attempt), "a large job on scale-up machines");
        }
    }
}

/// Who ends where, and when all have ended in the sum, against every way to give small jobs to classes.
#[test]
fn it_is_not_far_from_the_best_of_all_assignments() {
    for seed in 0..24 {
        let [full, always, never] = beside_the_best(seed);
        println!(
            "total completion, best of 64 assignments = 1: when full {full:.3}, always {always:.3}, never {never:.3}"
        );
        assert!(full <= 1.6 && always <= 1.6, "seed {seed}: {full} {always}");
    }
}

/// How long all jobs take in the sum, the best of all assignments = 1: with `steal` as `WhenFull`, `Always` and `Never`.
fn beside_the_best(seed: u64) -> [f64; 3] {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let jobs: Vec<_> = (1..=6).map(|number| maps(number, random.random_range(1..5), 9)).collect();
    let alone = |side: bool, jobs: &[WaitingGroup]| {
        let mut sample = yard(2, 1, 3);
        let other = usize::from(!side);
        sample.snapshot.state[other] = hintd_model::cluster::NodeState::Lost;
        let fair = Fair::default();
        Run::new(&mut sample, &fair, jobs, 20.0).until_the_end(|_, _| {}).total()
    };
    let best = (0..1_u32 << jobs.len())
        .map(|mask| {
            let of = |up: bool| {
                let mine = jobs.iter().enumerate().filter(|(at, _)| (mask >> at & 1 == 1) == up);
                mine.map(|(_, job)| job.clone()).collect::<Vec<_>>()
            };
            // Node 1 is the scale-up machine.
            alone(true, &of(true)) + alone(false, &of(false))
        })
        .fold(f64::INFINITY, f64::min);
    let ours = |steal| {
        let (mut sample, policy) = (yard(2, 1, 3), policy(|params| params.steal = steal));
        Run::new(&mut sample, &policy, &jobs, 20.0).until_the_end(|_, _| {}).total() / best
    };
    [Steal::WhenFull, Steal::Always, Steal::Never].map(ours)
}

/// The same where a large job keeps scale-out machines from ever being idle: what the paper's rule does not look at. Of
/// seeds 0 to 499 the mean is 1.10. Three miss the bound of 1.3, for a job goes where it ends sooner itself, whomever it
/// delays there; they must not get worse.
#[test]
fn in_a_full_cluster_small_jobs_are_not_far_from_the_best_of_all_assignments() {
    let of = |(seed, most)| {
        let [(sooner, stolen), (full, none)] = small_beside_the_best(seed);
        println!("small jobs, best of 64 = 1: when sooner {sooner:.3} ({stolen} stolen), when full {full:.3} ({none})");
        assert!(sooner <= most && sooner <= full, "seed {seed}: {sooner} {full}");
        sooner
    };
    let mean = (0..24).map(|seed| of((seed, 1.3))).sum::<f64>() / 24.0;
    assert!(mean <= 1.1, "{mean}");
    [(82, 1.325), (213, 1.314), (429, 1.312)].into_iter().map(of).for_each(drop);
}

/// How long small jobs take in the sum, the best of all assignments = 1, and how many were stolen: with `steal` as
/// `WhenSooner` and `WhenFull`.
fn small_beside_the_best(seed: u64) -> [(f64, u64); 2] {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let large = maps(9, 30, 20 * GIB);
    let small: Vec<_> = (1..=6).map(|number| maps(number, random.random_range(1..5), 9)).collect();
    let jobs = [&[large.clone()][..], &small[..]].concat();
    let alone = |up: bool, of: &[WaitingGroup]| {
        let mut sample = yard(2, 1, 3);
        sample.snapshot.state[usize::from(!up)] = hintd_model::cluster::NodeState::Lost;
        let jobs = if up { of.to_vec() } else { [&[large.clone()][..], of].concat() };
        Run::new(&mut sample, &Fair::default(), &jobs, 20.0).until_the_end(|_, _| {}).total_of(of)
    };
    let best = (0..1_u32 << small.len())
        .map(|mask| {
            let (up, out): (Vec<_>, Vec<_>) =
                small.iter().cloned().enumerate().partition(|(at, _)| mask >> at & 1 == 1);
            let [up, out] = [up, out].map(|jobs| jobs.into_iter().map(|(_, job)| job).collect::<Vec<_>>());
            alone(true, &up) + alone(false, &out)
        })
        .fold(f64::INFINITY, f64::min);
    let ours = |steal| {
        let (mut sample, policy) = (yard(2, 1, 3), policy(|params| params.steal = steal));
        let mut run = Run::new(&mut sample, &policy, &jobs, 20.0).until_the_end(|_, _| {});
        assert!(!run.ran_up(large.attempt) && small.iter().all(|job| run.ran_on.contains_key(&job.attempt)));
        (run.total_of(&small) / best, run.state.of::<QueuesState>().unwrap().stolen())
    };
    [Steal::WhenSooner, Steal::WhenFull].map(ours)
}

/// Where nothing waits, small jobs go to scale-up machines; where much does, to those who end them sooner, and never large ones.
#[test]
fn a_small_job_is_stolen_as_it_comes_only_if_the_backlog_makes_it_end_later() {
    let policy = policy(|_| {});
    let mut sample = yard(3, 2, 4);
    let side = |run: &mut Run<'_>, job| run.state.of::<QueuesState>().unwrap().job(attempt(job)).unwrap().0;
    let jobs = [maps(1, 600, 128 << 20), maps(2, 40, 9), maps(3, 60, 9), maps(4, 60, 9)];
    let mut run = Run::new(&mut sample, &policy, &jobs, 20.0);
    run.report(NodeIdx(0));
    // A task takes 1 s, 1 / 1.7 s on the 8 containers of scale-up machines; 16 others. The fourth job would end there after
    // 100 tasks of others and its own 60, 11.8 s; on the others after as many of the large job's as its own, 7.5 s.
    assert_eq!([1, 2, 3, 4].map(|job| side(&mut run, job)), [Side::Out, Side::Up, Side::Up, Side::Out]);
    let state = run.state.of::<QueuesState>().unwrap();
    assert_eq!((state.stolen(), state.stealable().count()), (1, 2), "nobody was idle: it went as it came");
    // What waits goes, and then there is nothing to end sooner than.
    for job in 1..=4 {
        run.tell(DispatchEvent::Done(attempt(job)));
    }
    run.tell(DispatchEvent::Waiting(maps(5, 8, 9)));
    run.report(NodeIdx(0));
    assert_eq!(side(&mut run, 5), Side::Up);
}

#[test]
fn the_stolen_job_is_the_waiting_one_nearest_to_the_boundary() {
    let mut sample = yard(2, 1, 1);
    let policy = policy(|params| params.steal = Steal::Always);
    // One map each, and shuffles that make no difference but to the distance.
    let jobs: Vec<_> = (1..=5).map(|number| maps(number, number * 30, 128 << 20)).collect();
    let mut run = Run::new(&mut sample, &policy, &jobs, 10.0);
    run.report(NodeIdx(1));
    let state = run.state.of::<QueuesState>().unwrap().clone();
    let waiting: Vec<(f64, AttemptId)> = state.stealable().map(|job| (state.job(job).unwrap().1.abs(), job)).collect();
    assert!(waiting.len() >= 3 && waiting.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{waiting:?}");
    let advice = run.offer(NodeIdx(0), false);
    let Some(Advice::Launch(task)) = advice.first() else { panic!("{advice:?}") };
    assert_eq!(task.attempt, waiting[0].1);
    let state = run.state.of::<QueuesState>().unwrap();
    assert_eq!((state.job(task.attempt).unwrap().0, state.stolen()), (Side::Out, 1));
}

#[test]
fn a_known_shuffle_counts_only_for_a_job_that_ran_before() {
    let mut sample = yard(2, 1, 1);
    let policy = policy(|_| {});
    // 44 GiB in, and as much shuffled: small by the time model, large without the shuffle.
    let group = maps(1, 352, 128 << 20);
    let reduces =
        WaitingGroup { group: "reduce".into(), role: "reduce".into(), inputs: vec![], count: 44, ..group.clone() };
    let decision = |recurs: bool, sample: &mut Sample| {
        let mut run = Run::new(sample, &policy, &[], 1.0);
        let earlier = EarlierRun {
            key: "k".into(),
            input: Bytes(44 * GIB),
            shuffle: Bytes(44 * GIB),
            maps: (352, Micros(1)),
            reduces: (44, Micros(1)),
        };
        if recurs {
            run.tell(DispatchEvent::Recurs {
                attempt: attempt(1),
                run: Arc::new(earlier),
                homes: vec![],
                gathered: false,
            });
        }
        run.tell(DispatchEvent::Waiting(group.clone()));
        run.tell(DispatchEvent::Waiting(reduces.clone()));
        run.offer(NodeIdx(1), false);
        run.state.of::<QueuesState>().unwrap().job(attempt(1)).unwrap().1
    };
    let (known, unknown) = (decision(true, &mut sample), decision(false, &mut sample));
    assert!((known - unknown).abs() > 0.1, "{known} {unknown}");
}

#[test]
fn where_one_class_is_gone_the_other_runs_everything() {
    let jobs = [maps(1, 2, 9), maps(2, 600, 128 << 20), maps(3, 3, 9)];
    for gone in [0, 1] {
        let mut sample = yard(2, 1, 30);
        sample.snapshot.state[gone] = hintd_model::cluster::NodeState::Lost;
        let policy = policy(|params| params.steal = Steal::Never);
        let run = Run::new(&mut sample, &policy, &jobs, 10.0).until_the_end(|_, _| {});
        assert_eq!(run.ends.len(), 3, "node {gone} is gone");
    }
}

#[test]
fn a_container_that_only_one_class_can_hold_goes_there_whatever_the_job() {
    let mut sample = yard(2, 1, 2);
    Arc::make_mut(&mut sample.snapshot.statics).total[1] = UNIT.times(8);
    let policy = policy(|_| {});
    let big = WaitingGroup { size: UNIT.times(4), ..maps(1, 600, 128 << 20) };
    let mut run = Run::new(&mut sample, &policy, &[big], 1.0);
    assert_eq!(run.offer(NodeIdx(0), false), []);
    assert!(matches!(run.offer(NodeIdx(1), false)[..], [Advice::Launch(_)]));
}

#[test]
fn an_offer_says_which_groups_wait_for_the_other_class() {
    let mut sample = yard(2, 1, 2);
    let policy = policy(|_| {});
    let jobs = [maps(1, 1, 9), maps(2, 600, 128 << 20)];
    let mut run = Run::new(&mut sample, &policy, &jobs, 1.0);
    run.report(NodeIdx(1));
    let said = run.offer(NodeIdx(1), true);
    let reasons: Vec<&str> = said
        .iter()
        .map(|advice| match advice {
            Advice::NotYet { reason, .. } => &**reason,
            Advice::Launch(_) => "launch",
        })
        .collect();
    assert_eq!(reasons, ["other_class"]);
}

#[test]
fn a_state_goes_through_json() {
    let mut sample = yard(2, 1, 1);
    let policy = policy(|_| {});
    let mut run = Run::new(&mut sample, &policy, &[maps(1, 3, 9), maps(2, 600, 9)], 1.0);
    let first = run.offer(NodeIdx(1), false);
    run.state = policy.restore(&run.state.to_json().unwrap()).unwrap();
    assert_eq!(run.offer(NodeIdx(1), false), first);
}

#[test]
fn a_machine_is_known_by_class_then_attribute_then_label() {
    let mut sample = yard(2, 2, 1);
    let statics = Arc::make_mut(&mut sample.snapshot.statics);
    statics.class_names.push("small".into());
    statics.class = vec![ClassIdx(1), ClassIdx(2), ClassIdx(0), ClassIdx(0)];
    let attributes = |value: &str| Arc::new(BTreeMap::from([(ATTRIBUTE.to_owned(), value.to_owned())]));
    statics.attributes[1] = attributes("scale-up");
    statics.attributes[2] = attributes("scale-up");
    statics.label_names.push("scale-up".into());
    statics.labels[3] = LabelBits(1);
    let up = |node| classes::is_up(&sample.snapshot, NodeIdx(node), "scale-up");
    assert_eq!([0, 1, 2, 3].map(up), [true, false, true, true], "the class that a feed gives comes first");
    assert!(!classes::is_up(&sample.snapshot, NodeIdx(0), "gpu"));
    let told = |node| -> Vec<(String, String)> {
        let told = classes::told(&sample.snapshot, NodeIdx(node), "scale-up");
        told.into_iter().map(|told| (told.by, told.class)).collect()
    };
    let row = |by: &str, class: &str| (by.to_owned(), class.to_owned());
    assert_eq!(told(0), [row("feed", "scale-up")]);
    assert_eq!(told(1), [row("feed", "small"), row(ATTRIBUTE, "scale-up")], "the first counts");
    assert_eq!((told(2), told(3)), (vec![row(ATTRIBUTE, "scale-up")], vec![row("label scale-up", "scale-up")]));
}

#[test]
fn a_machine_is_known_by_an_attribute_under_the_names_that_yarn_allows() {
    let mut sample = yard(2, 2, 1);
    let statics = Arc::make_mut(&mut sample.snapshot.statics);
    statics.class = vec![ClassIdx(0); 4];
    for (node, name) in ["rm.yarn.io/hintd-class", "nm.yarn.io/hintd-class", "nm.yarn.io/class"].into_iter().enumerate()
    {
        statics.attributes[node] = Arc::new(BTreeMap::from([(name.to_owned(), "scale-up".to_owned())]));
    }
    let up = |node| classes::is_up(&sample.snapshot, NodeIdx(node), "scale-up");
    assert_eq!([0, 1, 2, 3].map(up), [true, true, false, false]);
}

#[test]
fn replicas_lie_once_on_scale_up_machines_and_twice_in_a_scale_out_rack() {
    let sample = yard(4, 2, 1);
    let of = |policy: &ScaleUpOut, snapshot, block, replication| {
        let problem = DataProblem {
            snapshot,
            path: "/x".into(),
            block,
            reader: None,
            plan: None,
            homes: &[],
            now: Timestamp(0),
            writer: None,
            replication,
            seed: 1,
        };
        policy.place_data(&problem).unwrap()
    };
    let advise = |policy: &ScaleUpOut, snapshot, block| of(policy, snapshot, block, 4);
    let by_default = policy(|_| {});
    let mut first = BTreeSet::new();
    for block in 0..40 {
        let advice = advise(&by_default, &sample.snapshot, block);
        let ReplicaAdvice::Rack(rack) = advice[1] else { panic!("{advice:?}") };
        let up = ReplicaAdvice::Rack(RackIdx(3));
        assert_eq!(advice, [up, advice[1], advice[1], ReplicaAdvice::Default]);
        assert_eq!(of(&by_default, &sample.snapshot, block, 2), advice[..2]);
        assert_eq!(of(&by_default, &sample.snapshot, block, 1), [advice[1]], "the only one, where the disks are");
        first.insert(rack);
    }
    assert_eq!(first, BTreeSet::from([RackIdx(0), RackIdx(1), RackIdx(2)]));
    let mut gone = sample.snapshot.clone();
    gone.state[6..].fill(hintd_model::cluster::NodeState::Lost);
    assert_eq!(advise(&by_default, &gone, 0), [ReplicaAdvice::Default; 4], "no scale-up machine runs");
    let without = policy(|params| params.replicas = false);
    assert_eq!(advise(&without, &sample.snapshot, 0), [ReplicaAdvice::Default; 4]);
}

#[test]
fn a_request_goes_to_the_class_where_it_ends_soonest() {
    let policy = policy(|_| {});
    let among = |sample: &Sample, count, input: u64, candidates: Option<Arc<[NodeIdx]>>| {
        let mut group = sample.group("map", count, UNIT);
        group.candidates = candidates.unwrap_or(group.candidates);
        group.role = "map".into();
        group.input = Arc::new(crate::problem::InputBlocks::new(
            (0..count).map(|_| crate::problem::InputBlock { bytes: Bytes(input), nodes: SmallVec::new() }).collect(),
        ));
        let problem = sample.problem(vec![group], vec![], vec![]);
        let mut never = || false;
        let placement = policy.place(&problem, &mut Budget::new(100_000, &mut never)).unwrap();
        assert_eq!(check(&problem, &placement), []);
        let up = placement.groups[0].iter().filter(|share| is_up(sample, share.node)).count();
        (up, placement.groups[0].len() - up, placement.parts.clone())
    };
    let placed = |sample: &Sample, count, input| among(sample, count, input, None);
    let mut sample = yard(3, 2, 4);
    let (up, out, parts) = placed(&sample, 8, 9);
    assert_eq!((up, out), (2, 0));
    let names: Vec<&str> = parts.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["decision_value", "scale_up_end_s", "scale_out_end_s", "scale_up"]);
    assert!(parts[0].1 > 0.0 && parts[1].1 < parts[2].1 && parts[3].1 == 1.0, "{parts:?}");
    let (up, out, _) = placed(&sample, 600, 128 << 20);
    assert_eq!((up, out > 0), (0, true), "a large job is kept from scale-up machines");
    let labelled = (0..sample.snapshot.nodes()).map(NodeIdx::new).filter(|&node| is_up(&sample, node)).collect();
    let (up, out, _) = among(&sample, 600, 128 << 20, Some(labelled));
    assert_eq!((up > 0, out), (true, 0), "which alone have its label");
    sample.snapshot.occupied[4] = UNIT.times(4);
    sample.snapshot.occupied[5] = UNIT.times(3);
    let (up, out, _) = placed(&sample, 8, 9);
    assert_eq!((up, out > 0), (0, true), "one container left on scale-up machines: eight waves there");
}

#[test]
fn reduces_that_are_asked_for_alone_go_where_the_whole_job_belongs() {
    let (policy, sample) = (policy(|_| {}), yard(3, 2, 4));
    let placed = |job: KnownJob| {
        let mut group = sample.group("reduce", 4, UNIT);
        group.role = "reduce".into();
        let mut problem = sample.problem(vec![group], vec![], vec![]);
        problem.job = job;
        let mut never = || false;
        let placement = policy.place(&problem, &mut Budget::new(100_000, &mut never)).unwrap();
        assert_eq!(check(&problem, &placement), []);
        let up = placement.groups[0].iter().filter(|share| is_up(&sample, share.node)).count();
        (up > 0, placement.groups[0].len() > up)
    };
    let run = |maps: u64| KnownJob { maps, reduces: 4, input: Bytes(maps * BLOCK.0), shuffle: Bytes(maps << 20) };
    let (up, out) = ((true, false), (false, true));
    assert_eq!([2, 600].map(|maps| placed(run(maps))), [up, out], "by its last run");
    assert_eq!(
        [3, 600].map(|maps| placed(run(2).grown_to(maps))),
        [up, out],
        "by its last run, of which this one is so many times"
    );
    let came = |maps: u64| KnownJob { maps, ..KnownJob::default() };
    assert_eq!([2, 600].map(|maps| placed(came(maps))), [up, out], "by the maps that came, a block each");
}

#[test]
fn a_job_is_judged_by_what_it_asks_for_however_little_of_it_has_room() {
    let (policy, sample) = (policy(|_| {}), yard(3, 2, 4));
    let judged = |cut: bool, (maps, reduces): (u32, u32)| {
        let groups = [("map", maps), ("reduce", reduces)].map(|(role, count)| sample.group(role, count, UNIT));
        let mut problem = sample.problem(groups.to_vec(), vec![], vec![]);
        if cut {
            problem.cut();
            assert_eq!(problem.groups[0].count, 24);
        }
        let mut never = || false;
        policy.place(&problem, &mut Budget::new(100_000, &mut never)).unwrap().parts
    };
    let (asked, cut) = (judged(false, (600, 60)), judged(true, (600, 60)));
    assert_eq!(asked, cut);
    let fits = judged(false, (24, 24));
    assert_eq!([&asked[1].0, &asked[3].0], ["scale_up_end_s", "scale_up"]);
    assert!(cut[0].1 < fits[0].1 && cut[1].1 > 10.0 * fits[1].1 && cut[3].1 == 0.0, "{cut:?}, of what fits {fits:?}");
}

#[test]
fn a_cluster_without_classes_is_placed_as_fair_does_and_it_is_said() {
    let spec = TreeSpec { racks: 2, hosts_per_rack: 2, ..TreeSpec::default() };
    let sample = cluster(&tree(&spec).unwrap(), UNIT.times(2), Bytes(1));
    let problem = sample.problem(vec![sample.group("map", 5, UNIT)], vec![], vec![]);
    let place = |policy: &dyn Place| {
        let mut never = || false;
        policy.place(&problem, &mut Budget::new(100_000, &mut never)).unwrap()
    };
    let (ours, fair) = (place(&policy(|_| {})), place(&Fair::default()));
    assert_eq!(ours.groups, fair.groups);
    assert_eq!(ours.parts, [("scale_up_machines".to_owned(), 0.0)]);
}

#[test]
fn it_never_trains_while_it_is_asked_and_goes_by_the_time_model_until_it_is_prepared() {
    let policy = ScaleUpOut::new(ScaleUpOutParams { training_jobs: 50, ..ScaleUpOutParams::default() });
    let (small, large) = (maps(0, 2, 1), maps(1, 600, BLOCK.0));
    let mut sample = yard(2, 2, 4);
    let mut run = Run::new(&mut sample, &policy, &[small, large], 1.0);
    run.report(NodeIdx(2));
    run.report(NodeIdx(0));
    let asked = [0, 1].map(|number| {
        let state = run.state.of::<QueuesState>().unwrap();
        state.job(attempt(number)).unwrap()
    });
    assert_eq!(asked, [(Side::Up, 1.0), (Side::Out, -1.0)]);
    let problem = run.sample.problem(vec![run.sample.group("map", 2, UNIT)], vec![], vec![]);
    let place = || {
        let mut never = || false;
        let placed = Place::place(&policy, &problem, &mut Budget::new(100, &mut never)).unwrap();
        placed.parts.into_iter().find(|(name, _)| name == "decision_value").unwrap().1
    };
    assert_eq!((place(), Policy::is_prepared(&policy)), (1.0, false));
    Policy::prepare(&policy);
    assert!(Policy::is_prepared(&policy) && place() != 1.0, "by the classifier from now on");
}

#[test]
fn parameters_that_can_not_be_meant_are_refused_with_the_value() {
    let refused = |text: &str| {
        let table = toml::de::DeTable::parse(text).unwrap();
        crate::registry::build::<ScaleUpOut>(table).err().unwrap().to_string()
    };
    for (text, message) in [
        ("scale_up = \"\"", "scale_up: \"\": machines of no class are scale-out machines"),
        ("speed = 0.0", "speed: is 0, not from 0.001 to 1000: tasks take their time divided by it"),
        ("large_speed = nan", "large_speed: is NaN, not from 0.001 to 1000: tasks take their time divided by it"),
        ("scale_up_containers = 0", "scale_up_containers: 0: nothing could run there"),
        ("training_jobs = 3", "training_jobs: 3, not from 50 to 2000"),
    ] {
        assert_eq!(refused(text), format!("policies.scale_up_out.{message}"));
    }
    assert!(refused("order = \"fifo\"").contains("unknown variant `fifo`"));
}
