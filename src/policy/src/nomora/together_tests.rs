//! Rounds held against the same requests one after the other, and against every assignment there is.

use super::together::cost_of_all;
use super::{Nomora, NomoraParams};
use crate::problem::{Anchor, EdgeProblem, Owner};
use crate::sample::{Sample, cluster};
use crate::{Budget, Definition, Ended, GroupProblem, Place, PlaceProblem, PlaceTogether, Placement, Together, check};
use hintd_model::cluster::{Calculator, EdgePattern, Gang, Overlay, Resource, SizeRules};
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::network::latency::{LatencyModel, RoundTrips};
use hintd_model::units::{Bytes, GroupIdx, NodeIdx};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

const UNIT: Resource = Resource::new(1024, 1);

/// A request as it is drawn.
#[derive(Debug, Clone)]
struct Drawn {
    /// Where its root runs; `None`: its first group brings it.
    root: Option<u32>,
    /// Containers and units of each group, and the most on a node.
    groups: Vec<(u32, u64, u32)>,
    gang: bool,
    queue: usize,
    seed: u64,
}

#[derive(Debug, Clone)]
struct Case {
    racks: usize,
    hosts: usize,
    occupied: Vec<u64>,
    rtts: Vec<(u32, u32, u32)>,
    dominant: bool,
    requests: Vec<Drawn>,
}

const QUEUES: [&str; 3] = ["root.a", "root.b", "root.c"];

fn params() -> NomoraParams {
    let queues = [("root.b", "spark"), ("root.c", "tensorflow")];
    let queues = queues.map(|(queue, curve)| (queue.to_owned(), curve.to_owned())).into();
    NomoraParams { queues, ..NomoraParams::default() }
}

impl Case {
    fn sample(&self) -> Sample {
        let spec = TreeSpec { racks: self.racks, hosts_per_rack: self.hosts, ..TreeSpec::default() };
        let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
        let nodes = self.racks * self.hosts;
        for (node, units) in self.occupied.iter().take(nodes).enumerate() {
            sample.snapshot.occupied[node] = UNIT.times(*units);
        }
        let calculator = if self.dominant { Calculator::Dominant } else { Calculator::Default };
        sample.snapshot.rules = Arc::new(SizeRules { calculator, ..SizeRules::default() });
        let (mut model, now) = (LatencyModel::default(), sample.snapshot.taken_at);
        for &(a, b, rtt) in self.rtts.iter().filter(|(a, b, _)| a != b && a.max(b) < &(nodes as u32)) {
            let (a, b) = (NodeIdx(a), NodeIdx(b));
            let racks = (sample.snapshot.rack(a), sample.snapshot.rack(b));
            model.observe((a, b), racks, RoundTrips { path: 0, rtts: &[rtt], at: now }, now).unwrap();
        }
        sample.snapshot.latency = model.table().clone();
        sample
    }

    fn problems<'s>(&self, sample: &'s Sample) -> Vec<PlaceProblem<'s>> {
        self.requests.iter().map(|drawn| drawn.problem(sample)).collect()
    }
}

impl Drawn {
    fn problem<'s>(&self, sample: &'s Sample) -> PlaceProblem<'s> {
        let group = |(at, &(count, units, most)): (usize, &(u32, u64, u32))| {
            // Of uneven proportion, so that a unit of both kinds is smaller than either.
            let size = if units == 3 { Resource::new(2048, 3) } else { UNIT.times(units) };
            let plain = sample.group(&format!("g{at}"), count, size);
            GroupProblem { max_per_node: if most == 0 { u32::MAX } else { most }, ..plain }
        };
        let groups: Vec<GroupProblem> = self.groups.iter().enumerate().map(group).collect();
        let nodes = sample.snapshot.nodes() as u32;
        let anchors = self.root.map(|node| Anchor { node: NodeIdx(node % nodes), count: 1 }).into_iter().collect();
        let star = EdgeProblem { from: GroupIdx(1), to: GroupIdx(0), pattern: EdgePattern::AllToAll, bytes: Bytes(1) };
        let edges = if self.root.is_none() && groups.len() > 1 { vec![star] } else { vec![] };
        let mut problem = sample.problem(groups, edges, anchors);
        problem.gang = if self.gang { Gang::All } else { Gang::UpTo };
        problem.seed = self.seed;
        problem.owner = Some(Owner { application: ["", "a"], queue: QUEUES[self.queue] });
        problem.cut();
        problem
    }
}

const STEPS: u64 = 100_000;

fn together(problems: &[PlaceProblem<'_>]) -> Together {
    within(problems, STEPS)
}

/// By so many steps for each; they are counted, and each one's own in its turn.
fn within(problems: &[PlaceProblem<'_>], each: u64) -> Together {
    let (steps, mut never) = (vec![each; problems.len()], || false);
    let mut budget = Budget::new(each * problems.len() as u64, &mut never);
    let found = Nomora::new(params()).place_together(problems, &steps, &mut budget);
    assert_eq!(found.placements.len(), problems.len());
    assert_eq!(found.placements.iter().map(|placement| placement.steps).sum::<u64>(), budget.used());
    found
}

fn whole(problem: &PlaceProblem<'_>, placement: &Placement) -> bool {
    problem.gang == Gang::UpTo || placement.placed_all() == problem.containers()
}

fn take(leases: &mut Overlay, problem: &PlaceProblem<'_>, placement: &Placement) {
    for (shares, group) in placement.groups.iter().zip(&problem.groups) {
        for share in shares {
            leases.set(share.node, leases.leased(share.node).plus(&group.size.times(share.count.into())));
        }
    }
}

/// As the daemon does without rounds: each on what those before it left, by so many steps.
fn one_by_one(problems: &[PlaceProblem<'_>], steps: u64) -> Vec<Placement> {
    let (nomora, mut leases) = (Nomora::new(params()), Overlay::default());
    let mut placements = Vec::new();
    for problem in problems {
        let beside = problem.beside(&leases);
        let placement = nomora.place(&beside, &mut Budget::new(steps, &mut || false)).unwrap();
        if whole(problem, &placement) {
            take(&mut leases, problem, &placement);
        }
        placements.push(placement);
    }
    placements
}

/// By the policy's own objective of each, and 10.01 for a container without a place.
fn cost(problems: &[PlaceProblem<'_>], placements: &[Placement]) -> f64 {
    let nomora = Nomora::new(params());
    let one = |(problem, placement): (&PlaceProblem<'_>, &Placement)| {
        if !whole(problem, placement) {
            return 10.01 * problem.containers() as f64;
        }
        let placed = nomora.objective(problem, placement).map_or(0.0, |found| found.value);
        placed + 10.01 * (problem.containers() - placement.placed_all()) as f64
    };
    problems.iter().zip(placements).map(one).sum()
}

/// Of no group fewer containers are placed than in turn.
fn assert_nobody_loses(problems: &[PlaceProblem<'_>], [found, in_turn]: [&[Placement]; 2]) {
    for (problem, (found, in_turn)) in problems.iter().zip(found.iter().zip(in_turn)) {
        for group in (0..problem.groups.len()).filter(|_| whole(problem, in_turn)) {
            assert!(found.placed(group) >= in_turn.placed(group), "{found:?}, and {in_turn:?} in turn");
        }
    }
}

/// All of them are within their own bounds, and together within room.
fn assert_sound(problems: &[PlaceProblem<'_>], placements: &[Placement]) {
    let mut leases = Overlay::default();
    for (problem, placement) in problems.iter().zip(placements) {
        assert_eq!(check(problem, placement), []);
        if whole(problem, placement) {
            take(&mut leases, problem, placement);
        }
    }
    let rules = &problems[0].snapshot.rules;
    for node in leases.nodes() {
        let (taken, room) = (leases.leased(node), problems[0].room(node));
        assert!(rules.feasible(&taken, &room), "{node:?}: {taken:?} of {room:?}");
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let group = (1_u32..7, 1_u64..4, prop_oneof![3 => Just(0_u32), 1 => 1_u32..3]);
    let groups = prop::collection::vec(group, 1..4);
    (prop::option::weighted(0.7, 0_u32..12), groups, prop::bool::weighted(0.2), 0..3_usize, 0_u64..9).prop_map(
        |(root, mut groups, gang, queue, seed)| {
            if root.is_none() {
                groups[0].0 = 1;
            }
            Drawn { root, groups, gang, queue, seed }
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let rtts = prop::collection::vec((0_u32..12, 0_u32..12, 5_u32..900), 0..40);
    let requests = prop::collection::vec(drawn(), 1..7);
    (2_usize..4, 2_usize..5, prop::collection::vec(0_u64..5, 12), rtts, any::<bool>(), requests).prop_map(
        |(racks, hosts, occupied, rtts, dominant, requests)| Case { racks, hosts, occupied, rtts, dominant, requests },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_round_never_costs_more_than_its_requests_one_after_the_other(case in case()) {
        let sample = case.sample();
        let problems = case.problems(&sample);
        let found = together(&problems);
        assert_sound(&problems, &found.placements);
        let in_turn = one_by_one(&problems, STEPS);
        assert_nobody_loses(&problems, [&found.placements, &in_turn]);
        let (mine, theirs) = (cost(&problems, &found.placements), cost(&problems, &in_turn));
        prop_assert!(mine <= theirs + 1e-9, "{mine} together, {theirs} one by one");
        prop_assert!((found.cost - mine).abs() < 1e-9 && (found.cost_in_turn - theirs).abs() < 1e-9, "{found:?}");
        prop_assert!((cost_of_all(&params(), &problems, &found.placements) - mine).abs() < 1e-9);
    }

    #[test]
    fn each_has_its_own_steps_in_its_turn(case in case(), steps in 1_u64..80) {
        let sample = case.sample();
        let problems = case.problems(&sample);
        let (found, in_turn) = (within(&problems, steps), one_by_one(&problems, steps));
        assert_nobody_loses(&problems, [&found.placements, &in_turn]);
        prop_assert!((found.cost_in_turn - cost(&problems, &in_turn)).abs() < 1e-9);
    }

    #[test]
    fn a_round_of_one_is_that_request_alone(case in case()) {
        let sample = case.sample();
        let problems = &case.problems(&sample)[..1];
        let alone = Nomora::new(params()).place(&problems[0], &mut Budget::new(STEPS, &mut || false)).unwrap();
        prop_assert_eq!(&together(problems).placements[0], &alone);
    }

    #[test]
    fn a_round_of_one_size_with_roots_that_run_costs_the_least_by_which_nobody_loses(case in small(1)) {
        let (found, least) = held_against_all(&case);
        prop_assert!((found - least).abs() < 1e-9, "{found}, and {least} can be reached");
    }

    #[test]
    fn a_round_of_several_sizes_is_never_said_to_cost_less_than_can_be(case in small(3)) {
        let (found, least) = held_against_all(&case);
        prop_assert!(found >= least - 1e-9, "{found}, and {least} is the least");
    }
}

/// Up to six containers on four nodes, of roots that run.
fn small(units: u64) -> impl Strategy<Value = Case> {
    let request = (0_u32..4, 1_u32..4, 1..=units, 0..3_usize).prop_map(|(root, count, units, queue)| Drawn {
        root: Some(root),
        groups: vec![(count, units, 0)],
        gang: false,
        queue,
        seed: 1,
    });
    let requests = prop::collection::vec(request, 2..4)
        .prop_filter("few containers", |requests| requests.iter().map(|request| request.groups[0].0).sum::<u32>() <= 6);
    let rtts = prop::collection::vec((0_u32..4, 0_u32..4, 5_u32..900), 0..8);
    (prop::collection::vec(1_u64..5, 4), rtts, requests).prop_map(|(occupied, rtts, requests)| Case {
        racks: 2,
        hosts: 2,
        occupied,
        rtts,
        dominant: false,
        requests,
    })
}

/// What a round is said to cost, and the least that any assignment costs in which each has as many containers as in turn.
fn held_against_all(case: &Case) -> (f64, f64) {
    let sample = case.sample();
    let problems = case.problems(&sample);
    let found = together(&problems);
    assert_sound(&problems, &found.placements);
    let mut room: Vec<Resource> = (0..4).map(|node| problems[0].room(NodeIdx(node))).collect();
    let tasks: Vec<(usize, Resource)> = problems
        .iter()
        .enumerate()
        .flat_map(|(at, problem)| {
            let group = &problem.groups[0];
            (0..group.count).map(move |_| (at, group.size))
        })
        .collect();
    let nomora = Nomora::new(params());
    let on = |at: usize, node: usize| {
        let mut one = [0; 4];
        one[node] = 1;
        nomora.objective(&problems[at], &placement(&one)).map_or(0.0, |found| found.value)
    };
    let each: Vec<[f64; 4]> = (0..problems.len()).map(|at| [0, 1, 2, 3].map(|node| on(at, node))).collect();
    let rules = &problems[0].snapshot.rules;
    let in_turn = one_by_one(&problems, STEPS);
    let without = |(problem, placement): (&PlaceProblem<'_>, &Placement)| problem.containers() - placement.placed_all();
    let mut without: Vec<u64> = problems.iter().zip(&in_turn).map(without).collect();
    let fits = |size: &Resource, room: &Resource| rules.feasible(size, room);
    (found.cost, least(&fits, &each, &tasks, (&mut room, &mut without)))
}

/// The least that tasks cost in this room, of which so many of each request may be left out.
fn least(
    fits: &dyn Fn(&Resource, &Resource) -> bool,
    each: &[[f64; 4]],
    tasks: &[(usize, Resource)],
    (room, without): (&mut [Resource], &mut [u64]),
) -> f64 {
    let Some((&(at, size), rest)) = tasks.split_first() else { return 0.0 };
    let mut best = f64::INFINITY;
    if without[at] > 0 {
        without[at] -= 1;
        best = 10.01 + least(fits, each, rest, (room, without));
        without[at] += 1;
    }
    for node in 0..4 {
        if fits(&size, &room[node]) {
            let before = room[node];
            room[node] = before.minus(&size);
            best = best.min(each[at][node] + least(fits, each, rest, (room, without)));
            room[node] = before;
        }
    }
    best
}

fn placement(on: &[u32; 4]) -> Placement {
    let shares = (0..).zip(on).filter(|(_, count)| **count > 0);
    let shares = shares.map(|(node, &count)| crate::Share { node: NodeIdx(node), count }).collect();
    let (routes, parts) = (Vec::new(), Vec::new());
    Placement { groups: vec![shares], routes, objective: 0.0, parts, ended: Ended::Complete, gap: None, steps: 0 }
}

/// One rack of two nodes, two of one: two slots are near the root on node 0.
fn contended(queues: [usize; 2], units: [u64; 2], gang: bool) -> Case {
    let request =
        |(queue, units): (usize, u64)| Drawn { root: Some(0), groups: vec![(2, units, 0)], gang, queue, seed: 1 };
    let requests = queues.into_iter().zip(units).map(request).collect();
    let (rtts, occupied) = (vec![(0, 1, 30), (0, 2, 300), (0, 3, 300), (1, 2, 300)], vec![4, 2, 0, 0]);
    Case { racks: 2, hosts: 2, occupied, rtts, dominant: false, requests }
}

fn hosts(placement: &Placement) -> Vec<(u32, u32)> {
    placement.groups[0].iter().map(|share| (share.node.0, share.count)).collect()
}

#[test]
fn who_cares_less_gives_way_though_it_asked_first() {
    let case = contended([1, 0], [1, 1], false);
    let sample = case.sample();
    let problems = case.problems(&sample);
    let in_turn = one_by_one(&problems, STEPS);
    assert_eq!(hosts(&in_turn[0]), [(1, 2)], "spark takes what is near");
    let found = together(&problems);
    assert_eq!(hosts(&found.placements[1]), [(1, 2)], "memcached has it");
    assert!(found.cost < found.cost_in_turn, "{found:?}");
    assert!(found.placements.iter().all(|placement| placement.ended == Ended::Optimal));
    let same = contended([0, 0], [1, 1], false);
    let found = together(&same.problems(&same.sample()));
    assert!((found.cost - found.cost_in_turn).abs() < 1e-9);
    assert_eq!(hosts(&found.placements[0]), [(1, 2)], "of equals the first");
}

#[test]
fn containers_of_two_sizes_share_a_flow_and_a_container_is_on_one_machine() {
    let case = contended([1, 0], [2, 1], false);
    let sample = case.sample();
    let problems = case.problems(&sample);
    let found = together(&problems);
    assert_sound(&problems, &found.placements);
    assert_eq!(hosts(&found.placements[1]), [(1, 2)], "one of two units would have had room for one there");
    assert!(found.cost < found.cost_in_turn, "{found:?}");
    assert_eq!(found.placements[0].placed_all(), 2);
}

#[test]
fn a_gang_that_can_not_be_whole_takes_no_room_and_is_no_reason_to_move_others() {
    let mut case = contended([0, 0], [1, 1], false);
    case.occupied = vec![4, 1, 4, 4];
    case.requests[0].groups[0].0 = 4;
    case.requests[0].gang = true;
    let sample = case.sample();
    let mut problems = case.problems(&sample);
    problems[0].groups[0].count = 4;
    let found = together(&problems);
    assert_eq!(hosts(&found.placements[1]), [(1, 2)]);
    assert!(found.placements[0].placed_all() < 4);
}

fn counts(found: &Together) -> Vec<u64> {
    found.placements.iter().map(Placement::placed_all).collect()
}

#[test]
fn a_gang_that_is_whole_in_its_turn_is_whole_in_the_round() {
    let mut case = contended([0, 0], [1, 1], false);
    case.occupied = vec![4, 1, 4, 4];
    // Three slots on node 1, which is far from the gang and from the last.
    let one = |root, count, gang| Drawn { root: Some(root), groups: vec![(count, 1, 0)], gang, queue: 0, seed: 1 };
    case.requests = vec![one(2, 2, true), one(1, 2, false), one(3, 1, false)];
    case.rtts = vec![(1, 2, 850), (1, 3, 700)];
    let sample = case.sample();
    let problems = case.problems(&sample);
    let (found, in_turn) = (together(&problems), one_by_one(&problems, STEPS));
    assert_eq!(counts(&found), [2, 1, 0]);
    assert!((found.cost - cost(&problems, &in_turn)).abs() < 1e-9, "{found:?}");
    assert!(found.placements.iter().all(|placement| placement.ended != Ended::Deadline));
    // All of it together would cost less without the gang.
    let each = |at: usize| Nomora::new(params()).objective(&problems[at], &placement(&[0, 1, 0, 0])).unwrap().value;
    assert!(2.0 * each(1) + each(2) + 2.0 * 10.01 < found.cost, "{found:?}");
}

#[test]
fn who_has_a_place_in_turn_has_one_in_the_round_however_dear() {
    let mut case = contended([0, 0], [1, 1], false);
    case.occupied = vec![4, 3, 4, 4];
    (case.requests[0].root, case.requests[1].root) = (Some(2), Some(1));
    case.requests.iter_mut().for_each(|request| request.groups[0].0 = 1);
    case.rtts = vec![(1, 2, 900)];
    let sample = case.sample();
    let found = together(&case.problems(&sample));
    assert_eq!(counts(&found), [1, 0], "the other would have cost a fifth on its own host");
    // With room for both each has one, and the near place is the second's.
    case.occupied[3] = 3;
    case.rtts.push((1, 3, 900));
    case.rtts.push((2, 3, 900));
    let sample = case.sample();
    let found = together(&case.problems(&sample));
    assert_eq!((counts(&found), hosts(&found.placements[1])), (vec![1, 1], vec![(1, 1)]));
}

#[test]
fn nothing_is_called_the_least_where_a_gang_is_of_the_round() {
    let ended = |gang| {
        let mut case = contended([1, 0], [1, 1], false);
        case.requests[1].gang = gang;
        let sample = case.sample();
        let found = together(&case.problems(&sample));
        assert!(found.cost < found.cost_in_turn);
        found.placements.iter().map(|placement| placement.ended).collect::<Vec<_>>()
    };
    assert_eq!(ended(false), [Ended::Optimal; 2]);
    assert_eq!(ended(true), [Ended::Budget; 2]);
}

#[test]
fn whose_turn_does_not_come_in_time_is_not_looked_at() {
    let mut case = contended([1, 0], [1, 1], false);
    case.requests.extend_from_within(..);
    let sample = case.sample();
    let problems = case.problems(&sample);
    let mut stop = || true;
    let mut budget = Budget::new(4 * STEPS, &mut stop);
    let found = Nomora::new(params()).place_together(&problems, &[STEPS; 4], &mut budget);
    assert_eq!((counts(&found), budget.used()), (vec![0; 4], 0));
    assert!(found.placements.iter().all(|placement| placement.ended == Ended::Deadline));
}

#[test]
fn a_round_that_is_stopped_keeps_to_room() {
    let case = contended([1, 0], [2, 1], false);
    let sample = case.sample();
    let problems = case.problems(&sample);
    for most in 0..40 {
        let mut looks = 0;
        let mut stop = || {
            looks += 1;
            looks > most
        };
        let mut budget = Budget::with_work(2 * STEPS, 200 * most, &mut stop);
        let found = Nomora::new(params()).place_together(&problems, &[STEPS; 2], &mut budget);
        assert_sound(&problems, &found.placements);
        assert!(found.cost <= found.cost_in_turn);
    }
}

/// Twelve requests of four containers near hosts that are drawn, on 32 nodes in racks of eight of which half is taken, by three curves.
fn busy(seed: u64) -> Case {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let occupied = (0..32).map(|_| random.random_range(0..5)).collect();
    let mut pair = || (random.random_range(0..32), random.random_range(0..32), random.random_range(5..900));
    let rtts = (0..300).map(|_| pair()).collect();
    let mut request = || {
        let groups = vec![(4, random.random_range(1..3), 0)];
        Drawn { root: Some(random.random_range(0..32)), groups, gang: false, queue: random.random_range(0..3), seed: 1 }
    };
    let requests = (0..12).map(|_| request()).collect();
    Case { racks: 4, hosts: 8, occupied, rtts, dominant: false, requests }
}

#[test]
fn rounds_gain_where_requests_meet() {
    let (mut together_in_all, mut in_turn, mut better) = (0.0, 0.0, 0);
    for seed in 0..200 {
        let case = busy(seed);
        let sample = case.sample();
        let found = together(&case.problems(&sample));
        together_in_all += found.cost;
        in_turn += found.cost_in_turn;
        better += usize::from(found.cost < found.cost_in_turn);
    }
    println!("cost of 200 rounds: {together_in_all:.0} together, {in_turn:.0} in turn; {better} rounds gain");
    assert!(better > 100 && together_in_all < 0.95 * in_turn, "{better} of 200");
}
