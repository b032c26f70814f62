//! Moves of what runs, by `nomora`.

use super::{Nomora, NomoraParams};
use crate::advise::{Move, MovedPerformance, RebalanceProblem, Running, RunningRoot};
use crate::sample::{Sample, cluster};
use crate::{Budget, Definition, Rebalance};
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::network::latency::slow_peers::{PacketTimes, SlowPeer, SlowPeers, SlowPeersState};
use hintd_model::network::latency::{LatencyModel, RoundTrips};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, ContainerId, Micros, NodeIdx, RackIdx};

const UNIT: Resource = Resource::new(1024, 1);
const ROOT: u32 = 0;

/// Two racks of four nodes with room for two units each; from node 0 these round trips were measured, µs.
fn testbed(measured: &[(u32, u32)]) -> Sample {
    let spec = TreeSpec { racks: 2, hosts_per_rack: 4, ..TreeSpec::default() };
    let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(2), Bytes(1));
    let (mut model, now) = (LatencyModel::default(), sample.snapshot.taken_at);
    for &(node, rtt) in measured {
        let (from, to) = (NodeIdx(ROOT), NodeIdx(node));
        let racks = (sample.snapshot.rack(from), sample.snapshot.rack(to));
        model.observe((from, to), racks, RoundTrips { path: 0, rtts: &[rtt], at: now }, now).unwrap();
    }
    sample.snapshot.latency = model.table().clone();
    sample
}

fn container(application: u32, id: u64) -> ContainerId {
    let application = ApplicationId { cluster_timestamp: 1, sequence: application };
    ContainerId { attempt: AttemptId { application, attempt: 1 }, id }
}

/// Containers of one application on these nodes, which talk with node 0 and have run for 10 s; moves that gain anything.
fn problem<'s>(sample: &'s Sample, nodes: &[u32]) -> RebalanceProblem<'s> {
    let running = |(at, &node): (usize, &u32)| Running {
        container: container(1, at as u64),
        node: NodeIdx(node),
        size: UNIT,
        cooling: false,
        set: 0,
    };
    let root = || RunningRoot { node: NodeIdx(ROOT), queue: "root.q".into(), ran: Micros::from_secs(10) };
    RebalanceProblem {
        snapshot: &sample.snapshot,
        leases: &sample.leases,
        running: nodes.iter().enumerate().map(running).collect(),
        allowed: Vec::new(),
        traffic: Vec::new(),
        chains: Vec::new(),
        roots: nodes.iter().map(|_| Some(root())).collect(),
        others: None,
        moves_max: 100,
        application_moves_max: 100,
        gain_min: 0.0,
        seed: 1,
    }
}

fn moves_by(params: NomoraParams, problem: &RebalanceProblem<'_>) -> Vec<Move> {
    Nomora::new(params).rebalance(problem, &mut Budget::new(1_000, &mut || false)).unwrap()
}

/// Which container goes where.
fn told(problem: &RebalanceProblem<'_>) -> Vec<(u64, u32)> {
    moves_by(NomoraParams::default(), problem).iter().map(|step| (step.container.id, step.to.0)).collect()
}

/// Nodes 0 to 3 are near, 4 to 7 far, and node 5 is a little nearer than the others there.
const FAR: &[(u32, u32)] = &[(1, 30), (2, 60), (3, 90), (4, 900), (5, 150), (6, 900), (7, 900)];

#[test]
fn what_performs_too_low_goes_to_the_best_place_with_room_and_its_gain_is_less_what_it_has_run() {
    let mut sample = testbed(FAR);
    sample.snapshot.occupied[0] = UNIT.times(2);
    let problem = problem(&sample, &[4]);
    let found = moves_by(NomoraParams::default(), &problem);
    // 0.208 at 900 µs costs 481; 1 at 30 µs costs 100; 10 s are 0.1.
    let [Move { container: moved, to, gain, performance }] = found[..] else { panic!("{found:?}") };
    assert_eq!((moved, to), (container(1, 0), NodeIdx(1)));
    let MovedPerformance { now, then, ran } = performance.unwrap();
    assert_eq!(ran, Micros::from_secs(10));
    let paper = |x: f64| 1.067 - 3.093e-3 * x + 4.084e-6 * x * x - 1.898e-9 * x * x * x;
    assert!((now - paper(900.0)).abs() < 1e-9 && then == 1.0, "{now} {then}");
    let here = (100.0 / paper(900.0)).round();
    assert!((gain - (here - 100.0 - 0.1) / here).abs() < 1e-9, "{gain}");
    let free = moves_by(NomoraParams { migrate_beta: 0.0, ..NomoraParams::default() }, &problem);
    assert!((free[0].gain - (here - 100.0) / here).abs() < 1e-9);
    let rounds = moves_by(NomoraParams { beta: 1e6, ..NomoraParams::default() }, &problem);
    assert_eq!(rounds, found, "beta is of the policy's own rounds");
}

#[test]
fn what_has_run_for_long_stays_and_so_does_what_gains_too_little() {
    let sample = testbed(FAR);
    let mut problem = problem(&sample, &[4]);
    problem.gain_min = 0.9;
    assert_eq!(told(&problem), []);
    problem.gain_min = 0.5;
    assert_eq!(told(&problem).len(), 1);
    problem.roots[0].as_mut().unwrap().ran = Micros::from_secs(600);
    assert_eq!(told(&problem).len(), 1, "ten minutes are 6 of 481");
    problem.roots[0].as_mut().unwrap().ran = Micros::from_secs(4 * 3_600);
    assert_eq!(told(&problem), [], "four hours are 144");
}

/// With what `[rebalance]` has by default: a round each minute, a gain of a tenth.
#[test]
fn by_default_all_that_performs_below_the_threshold_can_be_told_after_two_rounds() {
    let (params, minute) = (NomoraParams::default(), Micros::from_secs(60));
    let curve = params.curve_named("memcached").unwrap();
    let below: Vec<u32> =
        (0..=1_000).filter(|&rtt| curve.performance(Micros(u64::from(rtt))) < params.migrate_below).collect();
    assert!(curve.performance(Micros(u64::from(below[0]))) > 0.68, "near the threshold");
    for rtt in below.into_iter().step_by(100) {
        let sample = testbed(&[(4, rtt), (1, 30)]);
        let mut problem = problem(&sample, &[4]);
        problem.gain_min = 0.1;
        problem.roots[0].as_mut().unwrap().ran = minute;
        assert_eq!(told(&problem).len(), 1, "{rtt} µs");
    }
}

#[test]
fn where_no_move_can_ever_come_it_is_said_with_the_numbers() {
    let never = |params: &NomoraParams, seconds, gain_min| {
        Nomora::new(params.clone()).never_moves(Micros::from_secs(seconds), gain_min)
    };
    let default = NomoraParams::default();
    for (seconds, gain_min) in [(60, 0.1), (900, 0.1), (6 * 3_600, 0.1), (60, 0.8)] {
        assert_eq!(never(&default, seconds, gain_min), None, "{seconds} s, {gain_min}");
    }
    // 0.16 at 1,000 µs costs 625.
    assert_eq!(
        never(&default, 86_400, 0.1).unwrap(),
        "by curve \"memcached\" a move saves at most 525 of 625, and having run for 86400 s counts 864 of that \
         (migrate_beta 0.01): a gain of -0.542, and min_gain is 0.1"
    );
    assert!(never(&default, 60, 0.84).unwrap().contains("and min_gain is 0.84"));
    let paper = NomoraParams { migrate_beta: 1.0, ..default.clone() };
    assert!(never(&paper, 900, 0.1).unwrap().contains("counts 900"));
    let spark = NomoraParams { curve: "spark".to_owned(), ..default.clone() };
    let said = never(&spark, 60, 0.1).unwrap();
    assert!(said.contains("performance is 0.904 at least, and migrate_below is 0.7"), "{said}");
    let queues = [("root.q".to_owned(), "memcached".to_owned())].into();
    assert_eq!(never(&NomoraParams { queues, ..spark }, 60, 0.1), None, "one queue's can");
    let low = [("low".to_owned(), vec![vec![0.0, 0.75], vec![100.0, 0.3]])].into();
    let low = NomoraParams { curve: "low".to_owned(), curves: low, ..default };
    assert!(never(&low, 60, 0.1).unwrap().contains("performance is 0.750 at most"), "0.8 is wanted");
}

#[test]
fn between_the_threshold_and_the_margin_nothing_moves() {
    // 150 µs: 0.689 of memcached's best; 110 µs: 0.774.
    let sample = testbed(&[(4, 150), (5, 110), (1, 300), (2, 300), (3, 300), (6, 300), (7, 300)]);
    let mut problem = problem(&sample, &[4]);
    let with = |problem: &RebalanceProblem<'_>, migrate_below, migrate_margin| {
        let params = NomoraParams { migrate_below, migrate_margin, beta: 0.0, ..NomoraParams::default() };
        moves_by(params, problem).iter().map(|step| step.to.0).collect::<Vec<_>>()
    };
    // Without room beside the root only node 5 is better.
    problem.allowed = vec![(0..8).map(|node| node != 0).collect()];
    assert_eq!(with(&problem, 0.68, 0.0), [0; 0], "it performs well enough");
    assert_eq!(with(&problem, 0.69, 0.1), [0; 0], "and node 5 is not better by the margin");
    assert_eq!(with(&problem, 0.69, 0.08), [5]);
}

#[test]
fn the_lowest_goes_first_and_what_moves_takes_room() {
    let mut sample = testbed(&[(1, 30), (2, 60), (3, 700), (4, 900), (5, 800), (6, 700), (7, 700)]);
    sample.snapshot.occupied[0] = UNIT.times(2);
    sample.snapshot.occupied[1] = UNIT;
    let mut problem = problem(&sample, &[5, 4, 5]);
    let mut all = told(&problem);
    all.sort_unstable();
    assert_eq!(all, [(0, 2), (1, 1), (2, 2)], "node 4's to the one place on node 1, the others next best");
    problem.application_moves_max = 2;
    assert_eq!(told(&problem).len(), 2);
    problem.moves_max = 1;
    assert_eq!(told(&problem).len(), 1);
}

#[test]
fn what_cools_down_what_has_no_root_and_where_it_may_not_go_is_left_alone() {
    let sample = testbed(FAR);
    let mut problem = problem(&sample, &[4, 6, 7]);
    problem.running[0].cooling = true;
    problem.roots[1] = None;
    problem.allowed = vec![(0..8).map(|node| node == 2).collect()];
    assert_eq!(told(&problem), [(2, 2)]);
    problem.allowed = vec![vec![false; 8]];
    assert_eq!(told(&problem), []);
}

#[test]
fn latency_that_nobody_measured_is_neither_a_reason_to_leave_nor_a_place_to_go() {
    // By distance 200 µs are 0.597, below the threshold.
    assert_eq!(told(&problem(&testbed(&[]), &[4])), []);
    let mut sample = testbed(&[(4, 900)]);
    sample.snapshot.occupied[0] = UNIT.times(2);
    assert_eq!(
        told(&problem(&sample, &[4])),
        [],
        "its rack's other nodes count as node 4, the near rack was not measured"
    );
    let mut old = testbed(FAR);
    old.snapshot.taken_at = old.snapshot.taken_at.plus(Micros::from_secs(61));
    assert_eq!(told(&problem(&old, &[4])), [], "what is too old counts no more");
}

#[test]
fn a_round_without_steps_moves_nothing() {
    let sample = testbed(FAR);
    let problem = problem(&sample, &[4]);
    let found = Nomora::default().rebalance(&problem, &mut Budget::new(0, &mut || false)).unwrap();
    assert_eq!(found, []);
}

#[test]
fn packets_that_take_long_move_nothing_away_and_nothing_there() {
    let mut sample = testbed(&[(1, 30), (4, 900)]);
    let now = sample.snapshot.taken_at;
    let told = |slow: &[u32], sample: &mut Sample| {
        let row = |reporter: u32| {
            let packet = Some(PacketTimes { reported: Micros(10_000), median: Micros(1_000) });
            let of =
                move |slow: &u32| SlowPeer { slow: NodeIdx(*slow), reporter: NodeIdx(reporter), packet, since: now };
            slow.iter().map(of)
        };
        let rows = row(6).chain(row(7)).collect();
        let (mut model, racks) = (LatencyModel::default(), |node| (RackIdx(0), RackIdx(node / 4)));
        for (node, rtt) in [(3, 30), (4, 900)] {
            model
                .observe(
                    (NodeIdx(ROOT), NodeIdx(node)),
                    racks(node),
                    RoundTrips { path: 0, rtts: &[rtt], at: now },
                    now,
                )
                .unwrap();
        }
        model.set_slow_peers(SlowPeers::new(SlowPeersState::On, (now, Micros::from_secs(600)), rows));
        sample.snapshot.latency = model.table().clone();
    };
    // Node 1 counts as its rack does, 30 µs: that it is reported as slow is no reason to leave it.
    told(&[1], &mut sample);
    assert_eq!(told_moves(&sample, &[1]), []);
    // Nor does what is too slow on node 4 go to nodes 1 to 2, which are reported, but to node 3, which is measured.
    sample.snapshot.occupied[0] = UNIT.times(2);
    told(&[1, 2, 3], &mut sample);
    assert_eq!(told_moves(&sample, &[4]), [(0, 3)]);
    told(&[3], &mut sample);
    assert_eq!(told_moves(&sample, &[4]), [(0, 1)], "all count as 30 µs, and node 1 is the first");
}

fn told_moves(sample: &Sample, nodes: &[u32]) -> Vec<(u64, u32)> {
    told(&problem(sample, nodes))
}
