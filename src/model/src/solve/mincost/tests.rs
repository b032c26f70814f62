//! Both algorithms against a third that shares nothing with them, and rounds against starts from nothing.

mod linear;

use super::*;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use std::collections::BTreeMap;

/// What a flow is held against: as much as can be sent, along cheapest ways one after the other (Bellman and Ford), after
/// cycles of negative cost have been filled. Supply sent, and what it costs.
fn by_cheapest_ways(problem: &MinCostProblem) -> (i64, i128) {
    let nodes = problem.supplies().len();
    let (source, sink) = (nodes, nodes + 1);
    let mut arcs: Vec<(usize, usize, i64, i64)> = Vec::new();
    let mut arc = |from: usize, to: usize, room: i64, cost: i64| {
        arcs.extend([(from, to, room, cost), (to, from, 0, -cost)]);
    };
    problem.arcs().for_each(|(_, row)| arc(row.from.at(), row.to.at(), row.capacity, row.cost));
    for (node, &supply) in problem.supplies().iter().enumerate() {
        if supply > 0 { arc(source, node, supply, 0) } else { arc(node, sink, -supply, 0) }
    }
    let mut cost = 0;
    while let Some(cycle) = negative_cycle(&arcs, nodes + 2) {
        cost += send(&mut arcs, &cycle).1;
    }
    let mut sent = 0;
    while let Some(way) = cheapest_way(&arcs, nodes + 2, source, sink) {
        let (flow, paid) = send(&mut arcs, &way);
        (sent, cost) = (sent + flow, cost + paid);
    }
    (sent, cost)
}

fn relaxed(
    arcs: &[(usize, usize, i64, i64)],
    nodes: usize,
    mut far: Vec<Option<i64>>,
) -> (Vec<Option<i64>>, Vec<usize>, Option<usize>) {
    let mut by = vec![usize::MAX; nodes];
    for round in 0..=nodes {
        let mut changed = None;
        for (at, &(from, to, room, cost)) in arcs.iter().enumerate() {
            let Some(there) = far[from].map(|far| far + cost).filter(|_| room > 0) else { continue };
            if far[to].is_none_or(|far| there < far) {
                (far[to], by[to], changed) = (Some(there), at, Some(to));
            }
        }
        if changed.is_none() || round == nodes {
            return (far, by, changed);
        }
    }
    unreachable!("the last round returns")
}

fn negative_cycle(arcs: &[(usize, usize, i64, i64)], nodes: usize) -> Option<Vec<usize>> {
    let (_, by, changed) = relaxed(arcs, nodes, vec![Some(0); nodes]);
    let mut node = changed?;
    (0..nodes).for_each(|_| node = arcs[by[node]].0);
    let (first, mut cycle) = (node, Vec::new());
    loop {
        cycle.push(by[node]);
        node = arcs[by[node]].0;
        if node == first {
            return Some(cycle);
        }
    }
}

fn cheapest_way(arcs: &[(usize, usize, i64, i64)], nodes: usize, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut far = vec![None; nodes];
    far[from] = Some(0);
    let (far, by, _) = relaxed(arcs, nodes, far);
    far[to]?;
    let (mut node, mut way) = (to, Vec::new());
    while node != from {
        way.push(by[node]);
        node = arcs[by[node]].0;
    }
    Some(way)
}

fn send(arcs: &mut [(usize, usize, i64, i64)], way: &[usize]) -> (i64, i128) {
    let flow = way.iter().map(|at| arcs[*at].2).min().unwrap();
    let cost: i64 = way.iter().map(|at| arcs[*at].3).sum();
    for &at in way {
        arcs[at].2 -= flow;
        arcs[at ^ 1].2 += flow;
    }
    (flow, i128::from(flow) * i128::from(cost))
}

/// A problem of at most so many nodes and arcs, with negative costs, arcs that begin where they end, parallel ones, and supplies that need not be met.
fn drawn(seed: u64, most_nodes: u32, most_arcs: u32) -> MinCostProblem {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut problem = MinCostProblem::new();
    let nodes = random.random_range(1..=most_nodes);
    let balanced = random.random_bool(0.7);
    let mut left = 0;
    for node in 0..nodes {
        let last = balanced && node + 1 == nodes;
        let supply = if last { -left } else { random.random_range(-6..=6) * i64::from(random.random_bool(0.7)) };
        left += supply;
        problem.add_node(supply).unwrap();
    }
    let lowest = if random.random_bool(0.5) { -9 } else { 0 };
    for _ in 0..random.random_range(0..=most_arcs) {
        let end = |random: &mut ChaCha8Rng| NodeId(random.random_range(0..nodes));
        let (from, to) = (end(&mut random), end(&mut random));
        let cost = random.random_range(lowest..=20);
        let unlimited = cost >= 0 && lowest == 0 && random.random_bool(0.2);
        let capacity = if unlimited { UNLIMITED } else { random.random_range(0..=8) };
        problem.add_arc(ArcRow { from, to, capacity, cost }).unwrap();
    }
    problem
}

/// Flows stay within capacities and balances, and cost what is said.
fn holds(problem: &MinCostProblem, found: &MinCostFlow) {
    let mut left: Vec<i64> = problem.supplies().to_vec();
    let mut cost = 0_i128;
    for (arc, row) in problem.arcs() {
        let flow = found.flows[arc.at()];
        assert!(flow >= 0 && flow <= row.capacity, "arc {} carries {flow} of {}", arc.0, row.capacity);
        left[row.from.at()] -= flow;
        left[row.to.at()] += flow;
        cost += i128::from(flow) * i128::from(row.cost);
    }
    let (short, unmet): (Vec<i64>, Vec<i64>) = left.iter().map(|left| (*left.max(&0), -*left.min(&0))).unzip();
    assert_eq!((short.iter().sum::<i64>(), unmet.iter().sum::<i64>()), (found.short, found.unmet));
    let supplies = problem.supplies().iter().zip(&left);
    supplies.for_each(|(supply, left)| assert!(left.signum() * supply.signum() >= 0 && left.abs() <= supply.abs()));
    assert_eq!(cost, found.cost);
}

fn never() -> impl FnMut() -> bool {
    || false
}

fn is_best(problem: &MinCostProblem, found: &MinCostFlow) {
    holds(problem, found);
    let supply: i64 = problem.supplies().iter().filter(|supply| **supply > 0).sum();
    assert!(found.optimal && found.gap.is_none());
    assert_eq!((supply - found.short, found.cost), by_cheapest_ways(problem));
    assert_eq!(found.cut.is_empty(), found.short == 0);
    if found.short > 0 {
        let side: Vec<bool> =
            (0_u32..).take(problem.supplies().len()).map(|node| found.cut.contains(&NodeId(node))).collect();
        let out = problem.arcs().filter(|(_, row)| side[row.from.at()] && !side[row.to.at()]);
        let through: i64 = out.map(|(_, row)| row.capacity).sum();
        let within: i64 =
            problem.supplies().iter().zip(&side).filter(|(_, side)| **side).map(|(supply, _)| supply).sum();
        assert_eq!(within - through, found.short, "the cut keeps what is short");
    }
}

#[test]
fn both_algorithms_find_the_best_of_small_problems() {
    for seed in 0..4_000 {
        let problem = drawn(seed, 9, 30);
        is_best(&problem, &Simplex::new().solve(&problem, &mut never()).unwrap());
        is_best(&problem, &scaling::solve(&problem, &mut never()).unwrap());
    }
}

/// Arcs, nodes, costs, capacities and supplies change, one to five at a time.
fn change(problem: &mut MinCostProblem, random: &mut ChaCha8Rng) {
    let nodes: Vec<NodeId> = (0..problem.supplies().len() as u32)
        .map(NodeId)
        .filter(|node| problem.set_supply(*node, problem.supplies()[node.at()]).is_ok())
        .collect();
    let arcs: Vec<ArcId> = problem.arcs().map(|(arc, _)| arc).collect();
    let node = |random: &mut ChaCha8Rng| nodes[random.random_range(0..nodes.len())];
    let cost = random.random_range(0..=20);
    let capacity = if random.random_bool(0.1) { UNLIMITED } else { random.random_range(0..=8) };
    match random.random_range(0..7) {
        0 => drop(problem.add_node(random.random_range(-4..=4))),
        1 if nodes.len() > 3 => problem.remove_node(node(random)).unwrap(),
        2 | 3 => drop(problem.add_arc(ArcRow { from: node(random), to: node(random), capacity, cost })),
        4 if !arcs.is_empty() => problem.remove_arc(arcs[random.random_range(0..arcs.len())]).unwrap(),
        5 if !arcs.is_empty() => {
            let arc = arcs[random.random_range(0..arcs.len())];
            problem.set_cost(arc, cost).unwrap();
            problem.set_capacity(arc, capacity).unwrap();
        }
        _ => problem.set_supply(node(random), random.random_range(-6..=6)).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rounds_end_where_a_start_from_nothing_does(seed in any::<u64>()) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut problem, mut kept) = (MinCostProblem::new(), Simplex::new());
        (0..6).for_each(|_| drop(problem.add_node(0)));
        for _ in 0..60 {
            (0..random.random_range(1..=5)).for_each(|_| change(&mut problem, &mut random));
            let round = kept.solve(&problem, &mut never()).unwrap();
            let anew = Simplex::new().solve(&problem, &mut never()).unwrap();
            holds(&problem, &round);
            prop_assert_eq!((round.cost, round.short, round.unmet), (anew.cost, anew.short, anew.unmet));
            prop_assert_eq!((anew.cost, anew.short), { let found = scaling::solve(&problem, &mut never()).unwrap(); (found.cost, found.short) });
        }
    }
}

/// Workers of jobs on machines of racks, as rounds of placements have them.
fn placements(seed: u64, tasks: u32, machines: u32) -> MinCostProblem {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut problem = MinCostProblem::new();
    let sink = problem.add_node(-i64::from(tasks)).unwrap();
    let stays = problem.add_node(0).unwrap();
    let arc = |problem: &mut MinCostProblem, from, to, capacity, cost| {
        problem.add_arc(ArcRow { from, to, capacity, cost }).unwrap()
    };
    arc(&mut problem, stays, sink, UNLIMITED, 0);
    let machines: Vec<NodeId> = (0..machines).map(|_| problem.add_node(0).unwrap()).collect();
    for machine in &machines {
        arc(&mut problem, *machine, sink, 2, 0);
    }
    for _ in 0..tasks {
        let task = problem.add_node(1).unwrap();
        arc(&mut problem, task, stays, 1, 1_001);
        for _ in 0..12 {
            arc(
                &mut problem,
                task,
                machines[random.random_range(0..machines.len())],
                1,
                random.random_range(100..1_000),
            );
        }
    }
    problem
}

#[test]
fn a_search_that_is_ended_says_how_far_it_may_be_from_the_best() {
    let problem = placements(1, 600, 200);
    let best = Simplex::new().solve(&problem, &mut never()).unwrap();
    assert!(best.optimal && best.short == 0);
    let mut said = 0;
    for looks in 1..60 {
        let mut left = looks;
        let mut stop = || {
            left -= 1;
            left == 0
        };
        let found = Simplex::new().solve(&problem, &mut stop).unwrap();
        holds(&problem, &found);
        assert!(found.steps <= 64 * looks);
        if let Some(gap) = found.gap {
            said += 1;
            assert!(!found.optimal && found.cost - gap <= best.cost && found.cost >= best.cost);
        }
    }
    assert!(said > 5, "{said} of 59 searches knew a bound");
}

#[test]
fn scaling_that_is_ended_gives_the_flow_of_its_last_phase() {
    let problem = placements(2, 300, 100);
    let best = Simplex::new().solve(&problem, &mut never()).unwrap();
    let mut bounds = BTreeMap::new();
    for looks in [1, 20, 60, 100, 200, 400, 800] {
        let mut left = looks;
        let mut stop = || {
            left -= 1;
            left == 0
        };
        let found = scaling::solve(&problem, &mut stop).unwrap();
        holds(&problem, &found);
        if let Some(gap) = found.gap {
            assert!(found.cost - gap <= best.cost && found.cost >= best.cost);
            bounds.insert(looks, gap);
        }
    }
    assert!(!bounds.is_empty());
}

#[test]
fn a_few_changes_take_a_few_steps() {
    let mut problem = placements(3, 800, 300);
    let mut kept = Simplex::new();
    let first = kept.solve(&problem, &mut never()).unwrap();
    assert_eq!(kept.solve(&problem, &mut never()).unwrap().steps, 0, "nothing changed");
    for arc in 400..420 {
        problem.set_cost(ArcId(arc), 100).unwrap();
    }
    let again = kept.solve(&problem, &mut never()).unwrap();
    assert_eq!(again.cost, Simplex::new().solve(&problem, &mut never()).unwrap().cost);
    assert!(again.steps * 5 < first.steps, "{} steps, {} from nothing", again.steps, first.steps);
}

#[test]
fn cycles_without_end_and_numbers_that_overflow_are_refused() {
    let two = |capacity, costs: [i64; 2]| {
        let mut problem = MinCostProblem::new();
        let (one, other) = (problem.add_node(0).unwrap(), problem.add_node(0).unwrap());
        problem.add_arc(ArcRow { from: one, to: other, capacity, cost: costs[0] }).unwrap();
        problem.add_arc(ArcRow { from: other, to: one, capacity, cost: costs[1] }).unwrap();
        problem
    };
    for solve in [
        |problem: &MinCostProblem| Simplex::new().solve(problem, &mut || false),
        |problem: &MinCostProblem| scaling::solve(problem, &mut || false),
    ] {
        assert!(matches!(solve(&two(UNLIMITED, [-3, 2])), Err(MinCostError::NegativeCycle { .. })));
        assert_eq!(solve(&two(5, [-3, 2])).unwrap().cost, -5);
        assert_eq!(solve(&two(UNLIMITED, [-3, 3])).unwrap().cost, 0);
        let mut dear = two(5, [MAX_VALUE, 0]);
        (0..200).for_each(|_| drop(dear.add_node(0)));
        let most = (1 << 60) / 4 / 204;
        assert_eq!(solve(&dear), Err(MinCostError::CostTooLarge { cost: MAX_VALUE, nodes: 202, most }));
    }
    let mut problem = two(5, [1, 1]);
    let row = ArcRow { from: NodeId(0), to: NodeId(1), capacity: 1, cost: 0 };
    assert_eq!(problem.add_arc(ArcRow { capacity: -1, ..row }), Err(ProblemError::NegativeCapacity(-1)));
    assert_eq!(problem.add_arc(ArcRow { to: NodeId(2), ..row }), Err(ProblemError::UnknownNode(2)));
    assert!(matches!(
        problem.add_arc(ArcRow { cost: i64::MIN, ..row }),
        Err(ProblemError::TooLarge { value: i64::MIN, .. })
    ));
    assert!(matches!(problem.add_arc(ArcRow { capacity: MAX_VALUE + 1, ..row }), Err(ProblemError::TooLarge { .. })));
    assert_eq!(problem.remove_arc(ArcId(7)), Err(ProblemError::UnknownArc(7)));
    for _ in 0..1_000 {
        problem.add_arc(ArcRow { capacity: MAX_VALUE, ..row }).unwrap();
    }
    assert!(matches!(Simplex::new().solve(&problem, &mut || false), Err(MinCostError::SumTooLarge { .. })));
}

#[test]
fn a_file_is_read_and_its_answer_written() {
    let file = "c two ways, one of them bound to carry one\np min 3 3\nn 1 4\nn 3 -4\na 1 2 1 4 1\na 2 3 0 -1 1\na 1 3 0 2 3\n";
    let read = dimacs::read(file.as_bytes()).unwrap();
    let found = Simplex::new().solve(&read.problem, &mut never()).unwrap();
    let mut written = Vec::new();
    read.write(&found, &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), "s 8\nf 1 2 4\nf 2 3 4\n");
}

#[test]
fn a_wrong_line_is_named() {
    let cases = [
        ("n 1 2\n", "line 1: line p has to come first"),
        ("", "line 1: the file ends without a line p"),
        ("p min 2 1\n", "line 2: the file ends after 0 of 1 arcs"),
        ("p min 2 1\np min 2 1\n", "line 2: a second line p"),
        ("p max 2 1\n", "line 1: expected: p min NODES ARCS"),
        ("p min 2 -1\n", "line 1: \"-1\" is no number below 4294967294"),
        ("p min 4000000000 0\n", "line 1: 4000000000 nodes: at most 16777216"),
        ("p min 2 1\nn 3 1\n", "line 2: node 3 is not within 1 to 2"),
        ("p min 2 1\nn 1 1\nn 1 2\n", "line 3: node 1 has a supply already"),
        ("p min 2 1\na 1 2 0 5\n", "line 2: 4 numbers; expected: a FROM TO LOWER CAPACITY COST"),
        (
            "p min 2 1\na 1 2 0 5 x\n",
            "line 2: \"x\" is no whole number of 64 bits; expected: a FROM TO LOWER CAPACITY COST",
        ),
        ("p min 2 1\na 1 2 6 5 1\n", "line 2: a lower bound of 6 with a capacity of 5"),
        (
            "p min 2 1\na 1 2 0 9007199254740992 1\n",
            "line 2: a capacity of 9007199254740992 is beyond ±4503599627370496",
        ),
        ("p min 2 1\na 1 2 0 1 1\na 1 2 0 1 1\n", "line 3: more arcs than the 1 of line p"),
        ("q\n", "line 1: \"q\" is none of p, n, a and c"),
    ];
    for (file, expected) in cases {
        assert_eq!(dimacs::read(file.as_bytes()).unwrap_err().to_string(), expected, "{file}");
    }
    let long = format!("c {}\n", "x".repeat(5_000));
    assert!(dimacs::read(long.as_bytes()).unwrap_err().to_string().contains("longer than 4096"));
}
