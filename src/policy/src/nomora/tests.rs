//! Requests placed by `nomora`.

use super::{Nomora, NomoraParams};
use crate::params::{self, Params};
use crate::predict::PlacePrediction;
use crate::problem::{Anchor, EdgeProblem, Owner};
use crate::sample::{Sample, cluster};
use crate::{Budget, Definition, Ended, GroupProblem, Place, PlaceProblem, Placement, Predict, Share, check};
use hintd_model::cluster::{EdgePattern, Resource};
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::network::latency::slow_peers::{PacketTimes, SlowPeer, SlowPeers, SlowPeersState};
use hintd_model::network::latency::{Basis, LatencyModel, RoundTrips};
use hintd_model::units::{Bytes, GroupIdx, Micros, NodeIdx, RackIdx, Timestamp};
use proptest::prelude::*;

const UNIT: Resource = Resource::new(1024, 1);

/// Four racks of four nodes with room for two units each.
fn testbed() -> Sample {
    let spec = TreeSpec { racks: 4, hosts_per_rack: 4, ..TreeSpec::default() };
    cluster(&tree(&spec).unwrap(), UNIT.times(2), Bytes(1))
}

fn place_by(params: NomoraParams, problem: &PlaceProblem<'_>) -> Placement {
    let placement = Nomora::new(params).place(problem, &mut Budget::new(4_000, &mut || false)).unwrap();
    assert_eq!(check(problem, &placement), []);
    placement
}

fn place(problem: &PlaceProblem<'_>) -> Placement {
    place_by(NomoraParams::default(), problem)
}

fn star(to: u32) -> EdgeProblem {
    EdgeProblem { from: GroupIdx(to), to: GroupIdx(0), pattern: EdgePattern::AllToAll, bytes: Bytes(1) }
}

fn nodes(placement: &Placement, group: usize) -> Vec<(u32, u32)> {
    placement.groups[group].iter().map(|share| (share.node.0, share.count)).collect()
}

fn measure(sample: &mut Sample, pairs: &[(u32, u32, u32)]) {
    let model = measurements(sample, pairs);
    sample.snapshot.latency = model.table().clone();
}

/// The same with reports of slow hosts: who is slow, who says so, and how many times the median a packet took.
fn measure_with_slow_peers(
    sample: &mut Sample,
    pairs: &[(u32, u32, u32)],
    slow: &[(u32, u32, u64)],
    told_at: Timestamp,
) {
    let mut model = measurements(sample, pairs);
    let row = |&(slow, reporter, times): &(u32, u32, u64)| SlowPeer {
        slow: NodeIdx(slow),
        reporter: NodeIdx(reporter),
        packet: Some(PacketTimes { reported: Micros(1_000 * times), median: Micros(1_000) }),
        since: told_at,
    };
    let rows = slow.iter().map(row).collect();
    model.set_slow_peers(SlowPeers::new(SlowPeersState::On, (told_at, Micros::from_secs(600)), rows));
    sample.snapshot.latency = model.table().clone();
}

fn measurements(sample: &Sample, pairs: &[(u32, u32, u32)]) -> LatencyModel {
    let (mut model, now) = (LatencyModel::default(), sample.snapshot.taken_at);
    for &(a, b, rtt) in pairs {
        let (a, b) = (NodeIdx(a), NodeIdx(b));
        let racks = (sample.snapshot.rack(a), sample.snapshot.rack(b));
        model.observe((a, b), racks, RoundTrips { path: 0, rtts: &[rtt], at: now }, now).unwrap();
    }
    model
}

const AT_5: &[Anchor] = &[Anchor { node: NodeIdx(5), count: 1 }];

#[test]
fn workers_go_round_the_application_master_by_distance_where_nobody_measured() {
    let sample = testbed();
    let problem = sample.problem(vec![sample.group("worker", 9, UNIT)], vec![], AT_5.to_vec());
    let placement = place(&problem);
    let first = &nodes(&placement, 0)[..4];
    assert_eq!(first, [(5, 2), (4, 2), (6, 2), (7, 2)], "its host, its rack");
    assert_eq!((placement.placed(0), placement.ended), (9, Ended::Optimal));
    let [same_host, same_rack, beyond] = [1.0, 1.08, 1.68];
    let expected = 2.0 * same_host + 6.0 * same_rack + beyond;
    assert!((placement.objective - expected).abs() < 1e-9, "{}", placement.objective);
}

#[test]
fn measured_latency_counts_before_distance_and_not_where_it_is_too_old() {
    let mut sample = testbed();
    // Node 12 measures, too, so that its rack does not count as node 15 does.
    measure(&mut sample, &[(5, 15, 20), (12, 5, 300), (4, 5, 400), (5, 6, 400), (5, 7, 400)]);
    let mut problem = sample.problem(vec![sample.group("worker", 4, UNIT)], vec![], AT_5.to_vec());
    assert_eq!(nodes(&place(&problem), 0), [(5, 2), (15, 2)]);
    problem.degraded.no_latency = true;
    assert_eq!(nodes(&place(&problem), 0), [(5, 2), (4, 2)]);
}

#[test]
fn the_group_of_one_that_edges_name_is_the_root_and_has_its_workers_around_it() {
    let mut sample = testbed();
    // Rack 2 is the only one with room for all.
    for node in (0..8).chain(12..16) {
        sample.snapshot.occupied[node] = UNIT;
    }
    let groups = vec![sample.group("master", 1, UNIT), sample.group("worker", 7, UNIT)];
    let problem = sample.problem(groups, vec![star(1)], vec![]);
    let together = NomoraParams { root_choices: 16, ..NomoraParams::default() };
    let placement = place_by(together, &problem);
    let racks = |placement: &Placement| {
        let all = placement.groups.iter().flatten().map(|share| problem.snapshot.rack(share.node));
        all.collect::<std::collections::BTreeSet<RackIdx>>()
    };
    assert_eq!((placement.placed_all(), racks(&placement)), (8, [RackIdx(2)].into()));
    let anywhere = |seed| {
        let paper = NomoraParams { root_choices: 1, ..NomoraParams::default() };
        place_by(paper, &PlaceProblem { seed, ..problem.clone() }).groups[0][0].node
    };
    let drawn: std::collections::BTreeSet<NodeIdx> = (0..40).map(anywhere).collect();
    assert!(drawn.len() > 8, "one choice is anywhere: {drawn:?}");
}

#[test]
fn the_queue_names_the_curve() {
    let sample = testbed();
    let text = "curve = \"tensorflow\"\n[queues]\n\"root.mine\" = \"own\"\n[curves]\nown = [[0, 1], [100, 0.5]]\n";
    let read = |text: &str| params::read::<NomoraParams>("nomora", toml::de::DeTable::parse(text).unwrap());
    let params = read(text).unwrap();
    let objective = |queue| {
        let mut problem = sample.problem(vec![sample.group("worker", 1, UNIT)], vec![], AT_5.to_vec());
        problem.owner = Some(Owner { application: ["", ""], queue });
        problem.groups[0].candidates = [NodeIdx(15)].into();
        place_by(params.clone(), &problem).objective
    };
    assert_eq!((objective("root.mine"), objective("root.other")), (2.0, 1.08));
    for (text, says) in [
        (
            "curve = \"redis\"",
            "policies.nomora.curve: there is no curve \"redis\" (there are memcached, strads, spark, tensorflow)",
        ),
        (
            "[queues]\na = \"b\"",
            "policies.nomora.queues: \"a\": there is no curve \"b\" (there are memcached, strads, spark, tensorflow)",
        ),
        (
            "[curves]\nown = [[0, 0.5], [10, 0.75]]",
            "policies.nomora.curves: \"own\": point 1: performance grows from 0.5 to 0.75 at 10 µs",
        ),
        (
            "[curves]\nspark = [[0, 0.5]]",
            "policies.nomora.curves: \"spark\" is built in: an own curve needs another name",
        ),
        (
            "[curves]\nown = [[0, 1], [100, 0.5, 7]]",
            "policies.nomora.curves: \"own\": point 1: [100.0, 0.5, 7.0] is not a latency in µs and a performance",
        ),
        (
            "[curves]\n\"\" = [[0, 1]]",
            "policies.nomora.curves: \"\" is no name for a curve: empty, or with control characters",
        ),
        (
            "[curves]\n\"a\\u001bb\" = [[0, 1]]",
            "policies.nomora.curves: \"a\\u{1b}b\" is no name for a curve: empty, or with control characters",
        ),
        ("p_m = 99", "policies.nomora.p_m: 99 is not within 100 and 1000"),
        ("gamma = 1000", "policies.nomora.gamma: 1000 is not above 1000 and at most 1000000"),
        ("omega = -1.0", "policies.nomora.omega: -1 is not within 0 and 1000000"),
        ("beta = nan", "policies.nomora.beta: NaN is not within 0 and 1000000"),
        ("beyond_us = 0", "policies.nomora.beyond_us: 0 µs is not within 1 and 1000000"),
        ("root_choices = 0", "policies.nomora.root_choices: 0 is not within 1 and 64"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), says);
    }
    NomoraParams::default().validate().unwrap();
    let all = read("p_m = \"x\"\nomega = []\nnothing = 1\nbeta = 2\n[curves]\nown = 7\n").unwrap_err();
    let keys = std::iter::once(&all).chain(&all.others).map(|error| error.key.as_deref().unwrap()).collect::<Vec<_>>();
    assert_eq!(keys, ["p_m", "omega", "nothing", "curves"], "each wrong one is named");
}

#[test]
fn where_all_places_can_be_drawn_the_seed_does_not_choose_the_root() {
    let sample = testbed();
    let groups = vec![sample.group("master", 1, UNIT), sample.group("worker", 3, UNIT)];
    let problem = sample.problem(groups, vec![star(1)], vec![]);
    let params = NomoraParams { root_choices: 16, ..NomoraParams::default() };
    let root = |seed| nodes(&place_by(params.clone(), &PlaceProblem { seed, ..problem.clone() }), 0);
    assert!((0..20).all(|seed| root(seed) == [(0, 1)]), "of equal ones the first");
}

#[test]
fn a_pair_that_nobody_measured_counts_as_its_racks_do() {
    let mut sample = testbed();
    // Between racks 1 and 3 it is slow, by hosts that are not asked for.
    measure(&mut sample, &[(4, 12, 900), (5, 13, 900), (6, 14, 900)]);
    let mut problem = sample.problem(vec![sample.group("worker", 2, UNIT)], vec![], AT_5.to_vec());
    problem.groups[0].candidates = [NodeIdx(3), NodeIdx(15)].into();
    assert_eq!(nodes(&place(&problem), 0), [(3, 2)]);
    measure(&mut sample, &[(4, 12, 90), (5, 13, 90), (6, 14, 90)]);
    let mut problem = sample.problem(vec![sample.group("worker", 2, UNIT)], vec![], AT_5.to_vec());
    problem.groups[0].candidates = [NodeIdx(3), NodeIdx(15)].into();
    let placement = place(&problem);
    assert_eq!(nodes(&placement, 0), [(15, 2)], "rack 0 is 200 µs away by its distance");
    let part = |name: &str| placement.parts.iter().find(|part| part.0 == name).map(|part| part.1);
    assert_eq!(
        [part("latency_by_hosts"), part("latency_by_racks"), part("latency_by_distance")],
        [0.0, 2.0, 0.0].map(Some)
    );
    assert_eq!((part("lowest_performance"), part("latency_age_s")), (part("mean_performance"), Some(0.0)));
}

#[test]
fn workers_keep_away_from_a_host_that_data_nodes_report_as_slow_where_no_agent_measured_it() {
    let mut sample = testbed();
    let at = |sample: &Sample| {
        let mut problem = sample.problem(vec![sample.group("worker", 2, UNIT)], vec![], AT_5.to_vec());
        problem.groups[0].candidates = [NodeIdx(4), NodeIdx(6)].into();
        let placement = place(&problem);
        let part = |name: &str| placement.parts.iter().find(|part| part.0 == name).unwrap().1;
        (nodes(&placement, 0), part("latency_slowed"))
    };
    let now = sample.snapshot.taken_at;
    let alike = at(&sample).0;
    assert!(alike.iter().any(|&(node, _)| node == 4), "nothing is known of it: {alike:?}");
    measure_with_slow_peers(&mut sample, &[], &[(4, 5, 9)], now);
    assert_eq!(at(&sample), (vec![(6, 2)], 0.0), "node 5, the root, reports it");
    measure_with_slow_peers(&mut sample, &[], &[(4, 9, 9)], now);
    assert_eq!(at(&sample).0, alike, "what node 9 alone says is of that pair");
    measure_with_slow_peers(&mut sample, &[], &[(4, 9, 9), (4, 10, 7)], now);
    assert_eq!(at(&sample).0, [(6, 2)], "two say so: it is slow for all");
    measure_with_slow_peers(&mut sample, &[(5, 4, 30), (5, 6, 60)], &[(4, 9, 9), (4, 10, 7)], now);
    assert_eq!((at(&sample).0, at(&sample).1), (vec![(4, 2)], 0.0), "an agent has measured it, and that counts");
}

#[test]
fn a_report_that_is_too_old_raises_nothing_and_what_one_raises_is_told() {
    let mut sample = testbed();
    sample.snapshot.taken_at = Timestamp(10_000_000_000);
    let now = sample.snapshot.taken_at;
    let predicted = |sample: &Sample| {
        let mut problem = sample.problem(vec![sample.group("worker", 1, UNIT)], vec![], AT_5.to_vec());
        problem.groups[0].candidates = [NodeIdx(4)].into();
        let placement = place(&problem);
        let found = Nomora::default().predict(&problem, &placement, 0).unwrap().groups[0].placed[0].latency;
        let slowed = placement.parts.iter().find(|part| part.0 == "latency_slowed").unwrap().1;
        (found.rtt.0, found.basis, found.slowdown.factor(), slowed)
    };
    measure_with_slow_peers(&mut sample, &[], &[(4, 5, 4)], now);
    assert_eq!(predicted(&sample), (200, Basis::Distance, 4.0, 1.0));
    measure_with_slow_peers(&mut sample, &[(5, 7, 90), (6, 7, 90), (4, 7, 90)], &[(4, 5, 4)], now);
    assert_eq!(predicted(&sample), (360, Basis::Racks, 4.0, 1.0), "other hosts of the rack were measured");
    let old = Timestamp(now.0 - 600_000_001);
    measure_with_slow_peers(&mut sample, &[], &[(4, 5, 4)], old);
    assert_eq!(predicted(&sample), (50, Basis::Distance, 1.0, 0.0));
}

fn placed_as(groups: &[&[(u32, u32)]]) -> Placement {
    let shares = |of: &&[(u32, u32)]| of.iter().map(|&(node, count)| Share { node: NodeIdx(node), count }).collect();
    let (objective, ended, gap, steps) = (0.0, Ended::Complete, None, 0);
    let groups = groups.iter().map(shares).collect();
    Placement { groups, routes: vec![], objective, parts: vec![], ended, gap, steps }
}

#[test]
fn performance_is_predicted_where_containers_are_and_at_the_best_nodes_with_room_left() {
    let mut sample = testbed();
    measure(&mut sample, &[(5, 15, 20), (12, 5, 300)]);
    let mut problem = sample.problem(vec![sample.group("worker", 4, UNIT)], vec![], AT_5.to_vec());
    let policy = Nomora::default();
    let predicted = |problem: &PlaceProblem<'_>| policy.predict(problem, &placed_as(&[&[(5, 2), (15, 1), (13, 1)]]), 3);
    let found = predicted(&problem).unwrap();
    assert_eq!((&*found.curve, found.root, found.root_group), ("memcached", NodeIdx(5), None));
    let seen = |places: &[PlacePrediction]| -> Vec<(u32, u32, u64, Basis)> {
        places.iter().map(|at| (at.node.0, at.count, at.latency.rtt.0, at.latency.basis)).collect()
    };
    let (by_hosts, by_racks, by_distance) = (Basis::Hosts, Basis::Racks, Basis::Distance);
    // The racks' other pairs count as nine tenths of the two hosts that measured do.
    assert_eq!(seen(&found.groups[0].placed), [(5, 2, 10, by_distance), (15, 1, 20, by_hosts), (13, 1, 300, by_racks)]);
    let others = &found.groups[0].alternatives;
    // Nodes 13 and 15 have room for another one, and are no other nodes.
    assert_eq!(seen(others), [(4, 0, 50, by_distance), (6, 0, 50, by_distance), (7, 0, 50, by_distance)]);
    for (place, expected) in
        found.groups[0].placed.iter().chain(others).zip([1.0, 1.0, 0.455_414, 0.922_323, 0.922_323])
    {
        assert!((place.performance - expected).abs() < 1e-6, "{place:?}, not {expected}");
    }
    problem.groups[0].max_per_rack = 2;
    let bound = &predicted(&problem).unwrap().groups[0].alternatives;
    let beyond = [(0, 0, 200, by_distance), (1, 0, 200, by_distance), (2, 0, 200, by_distance)];
    assert_eq!(seen(bound), beyond, "its racks may have no other one");
}

#[test]
fn a_root_that_is_placed_with_the_others_has_no_prediction_of_its_own() {
    let sample = testbed();
    let groups = vec![sample.group("master", 1, UNIT), sample.group("worker", 3, UNIT)];
    let problem = sample.problem(groups, vec![star(1)], vec![]);
    let predict = |groups: &[&[(u32, u32)]]| Nomora::default().predict(&problem, &placed_as(groups), 1);
    let found = predict(&[&[(9, 1)], &[(9, 1), (8, 2)]]).unwrap();
    assert_eq!((found.root, found.root_group, found.groups[0].placed.len()), (NodeIdx(9), Some(0), 0));
    assert_eq!(found.groups[1].placed.iter().map(|at| at.count).collect::<Vec<_>>(), [1, 2]);
    // Without its master's room the first worker stands in.
    let found = predict(&[&[], &[(9, 2), (8, 1)]]).unwrap();
    let counts: Vec<(u32, u32)> = found.groups[1].placed.iter().map(|at| (at.node.0, at.count)).collect();
    assert_eq!((found.root_group, counts), (Some(1), vec![(9, 1), (8, 1)]));
    assert_eq!(predict(&[&[], &[]]), None);
}

#[test]
fn a_search_without_steps_places_one_by_one() {
    let sample = testbed();
    let problem = sample.problem(vec![sample.group("worker", 9, UNIT)], vec![], AT_5.to_vec());
    let cut = Nomora::default().place(&problem, &mut Budget::new(0, &mut || false)).unwrap();
    let whole = place(&problem);
    assert_eq!((check(&problem, &cut), cut.ended), (vec![], Ended::Budget));
    assert_eq!(cut.objective, whole.objective, "one group goes by cost alone");
}

#[test]
fn nodes_of_any_size_add_up() {
    let spec = TreeSpec { racks: 2, hosts_per_rack: 4, ..TreeSpec::default() };
    let sample = cluster(&tree(&spec).unwrap(), UNIT.times(1 << 38), Bytes(1));
    let problem = sample.problem(vec![sample.group("worker", 9, UNIT)], vec![], AT_5.to_vec());
    let placement = place(&problem);
    assert_eq!((nodes(&placement, 0), placement.ended), (vec![(5, 9)], Ended::Optimal));
}

#[test]
fn groups_with_bounds_beyond_what_one_flow_takes_are_placed_one_by_one() {
    let spec = TreeSpec { racks: 40, hosts_per_rack: 50, ..TreeSpec::default() };
    let sample = cluster(&tree(&spec).unwrap(), UNIT.times(2), Bytes(1));
    let ended = |groups: usize| {
        let bound = || GroupProblem { max_per_node: 1, ..sample.group("g", 1, UNIT) };
        let problem = sample.problem((0..groups).map(|_| bound()).collect(), vec![], AT_5.to_vec());
        let placement = place(&problem);
        assert_eq!(placement.placed_all(), groups as u64);
        (placement.ended, placement.objective)
    };
    assert_eq!(ended(2), (Ended::Optimal, 2.0));
    let beyond = super::request::MOST_ARCS / 2_000 + 1;
    let (in_rack, elsewhere) = (98.0, beyond as f64 - 100.0);
    let (ended, objective) = ended(beyond);
    assert_eq!(ended, Ended::Budget);
    assert!((objective - (2.0 + in_rack * 1.08 + elsewhere * 1.68)).abs() < 1e-9, "{objective}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_fits_is_placed_within_all_bounds(
        shape in prop::collection::vec((1_u32..12, 1_u64..3, 0_u32..3, 0_u32..5, any::<bool>()), 1..4),
        occupied in 0_u64..3, seed in any::<u64>(), anchored in any::<bool>(), p in prop::sample::select(vec![100_u32, 105, 110, 1_000]),
    ) {
        let mut sample = testbed();
        sample.occupy(UNIT, occupied, seed);
        let group = |&(count, units, per_node, per_rack, half): &(u32, u64, u32, u32, bool)| -> GroupProblem {
            let mut group = sample.group("g", count, UNIT.times(units));
            group.max_per_node = if per_node == 0 { u32::MAX } else { per_node };
            group.max_per_rack = if per_rack == 0 { u32::MAX } else { per_rack };
            if half {
                group.candidates = group.candidates.iter().copied().filter(|node| node.0 % 2 == 0).collect();
            }
            group
        };
        let groups: Vec<GroupProblem> = shape.iter().map(group).collect();
        let edges = (1..groups.len() as u32).map(star).collect();
        let mut problem = sample.problem(groups, edges, if anchored { AT_5.to_vec() } else { vec![] });
        problem.seed = seed;
        let params = NomoraParams { p_m: p, p_r: p, ..NomoraParams::default() };
        let placement = place_by(params.clone(), &problem);
        prop_assert_eq!(&place_by(params.clone(), &problem), &placement);
        let objective = Nomora::new(params).objective(&problem, &placement);
        // Where groups talk the first container of one of them is the root: without any there is none.
        let root_runs = anchored && problem.groups.len() == 1;
        let rooted = Some(placement.objective).filter(|_| placement.placed_all() > 0 || root_runs);
        prop_assert_eq!(objective.map(|found| found.value), rooted);
        // Nobody else could have one container more.
        let mut room: Vec<Resource> = (0..16).map(|node| problem.room(NodeIdx(node))).collect();
        for (group, shares) in problem.groups.iter().zip(&placement.groups) {
            for share in shares {
                room[share.node.at()] = room[share.node.at()].minus(&group.size.times(u64::from(share.count)));
            }
        }
        for (at, group) in problem.groups.iter().enumerate() {
            let unbound = group.max_per_node == u32::MAX && group.max_per_rack == u32::MAX;
            let open = group.candidates.iter().any(|node| problem.snapshot.rules.feasible(&group.size, &room[node.at()]));
            prop_assert!(!(unbound && open && placement.placed(at) < group.count), "group {at} is short with room left");
        }
    }
}
