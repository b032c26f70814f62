//! The exact optimum of small cases: every placement with every choice of routes.

use super::*;
use crate::cross_layer::nested::{NestedParams, nested};

/// Highest utility over all placements of single tasks and all routes, by trying them.
fn optimum(problem: &PlaceProblem<'_>, k: usize) -> f64 {
    let tasks: Vec<usize> =
        problem.groups.iter().enumerate().flat_map(|(at, group)| vec![at; group.count as usize]).collect();
    let nodes = problem.snapshot.nodes();
    let mut best: f64 = 0.0;
    let mut at = vec![0; tasks.len()];
    loop {
        if let Some(groups) = allowed(problem, &tasks, &at) {
            best = best.max(best_routes(problem, &groups, k));
        }
        let Some(next) = at.iter().rposition(|&node| node + 1 < nodes) else { return best };
        at[next] += 1;
        at[next + 1..].iter_mut().for_each(|node| *node = 0);
    }
}

fn allowed(problem: &PlaceProblem<'_>, tasks: &[usize], at: &[usize]) -> Option<Vec<Vec<Share>>> {
    // Tasks of a group are alike: one order of them is enough.
    if tasks.windows(2).zip(at.windows(2)).any(|(group, node)| group[0] == group[1] && node[0] > node[1]) {
        return None;
    }
    let mut groups: Vec<BTreeMap<NodeIdx, u32>> = vec![BTreeMap::new(); problem.groups.len()];
    for (&group, &node) in tasks.iter().zip(at) {
        *groups[group].entry(NodeIdx::new(node)).or_default() += 1;
    }
    let shares =
        |counts: BTreeMap<NodeIdx, u32>| counts.into_iter().map(|(node, count)| Share { node, count }).collect();
    let groups: Vec<Vec<Share>> = groups.into_iter().map(shares).collect();
    let placement = Placement {
        groups,
        routes: vec![],
        objective: 0.0,
        parts: vec![],
        ended: Ended::Complete,
        gap: None,
        steps: 0,
    };
    check(problem, &placement).is_empty().then_some(placement.groups)
}

fn best_routes(problem: &PlaceProblem<'_>, groups: &[Vec<Share>], k: usize) -> f64 {
    let topology = &*problem.snapshot.topology;
    let (network, table) = (topology.network.as_deref().unwrap(), topology.paths().unwrap());
    let mut index = FlowIndex::new(network, topology);
    let traffic = traffic(&problem.edges, groups).unwrap();
    index.add_job(&traffic);
    let vertex = |node: NodeIdx| topology.vertex[node.at()].unwrap();
    let choices: Vec<Vec<Vec<DirectedLinkIdx>>> = traffic
        .flows
        .iter()
        .map(|flow| {
            let paths = host_paths(network, table, vertex(flow.pair.from), vertex(flow.pair.to)).take(k);
            paths.map(|path| path.to_vec()).collect()
        })
        .collect();
    let mut at = vec![0; choices.len()];
    let mut best: f64 = 0.0;
    loop {
        for (flow, (paths, &at)) in traffic.flows.iter().zip(choices.iter().zip(&at)) {
            index.set_route(flow.pair, paths.get(at).map(Vec::as_slice));
        }
        best = best.max(index.utility());
        let Some(next) = (0..at.len()).rev().find(|&pair| at[pair] + 1 < choices[pair].len()) else { return best };
        at[next] += 1;
        at[next + 1..].iter_mut().for_each(|path| *path = 0);
    }
}

/// Few hosts, parallel ways, uneven links and room for one or two tasks: neither level is trivial.
fn small(seed: u64) -> (Sample, Vec<u32>, Vec<EdgeProblem>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let spec = TreeSpec { racks: 2, hosts_per_rack: 2, ..TreeSpec::default() };
    let mut built = tree(&spec).unwrap();
    let links: Vec<LinkIdx> = built.network.links().map(|(link, _)| link).collect();
    for link in links {
        built.network.set_link(link, None, Some(BitsPerSec(random.random_range(1..9) * 100_000_000)));
    }
    let mut sample = cluster(&built, UNIT.times(2), Bytes(1));
    sample.occupy(UNIT, 1, seed);
    let pattern =
        |random: &mut ChaCha8Rng| if random.random_bool(0.7) { EdgePattern::AllToAll } else { EdgePattern::OneToOne };
    let mut edges = vec![edge(0, 1, pattern(&mut random)), edge(1, 2, pattern(&mut random))];
    if random.random_bool(0.5) {
        edges.push(edge(0, 2, pattern(&mut random)));
    }
    (sample, vec![1, random.random_range(1..3), 1], edges)
}

#[test]
fn it_meets_the_optimum_of_small_cases_nearly_always() {
    let (mut met, cases) = (0, 40);
    let (mut ours, mut theirs) = (0.0, 0.0);
    for seed in 0..cases {
        let (sample, counts, edges) = small(seed);
        let groups = counts.iter().map(|&count| sample.group("g", count, UNIT)).collect();
        let mut problem = sample.problem(groups, edges, vec![]);
        problem.seed = seed;
        if problem.groups.iter().any(|group| group.candidates.is_empty()) {
            continue;
        }
        let best = optimum(&problem, 2);
        let params = CrossLayerParams { k: 2, ..CrossLayerParams::default() };
        let found = place(&CrossLayer::new(params), &problem);
        assert!(utility(&found) <= best * (1.0 + 1e-12), "seed {seed}: better than the optimum");
        met += u32::from(utility(&found) >= 0.99 * best);
        let few = NestedParams { restarts: 1, steps: 10, routing_restarts: 1, routing_steps: 5 };
        let reference = nested(&problem, &few, &mut |_| true).unwrap();
        assert!(check(&problem, &reference).is_empty());
        let again = CrossLayer::default().objective(&problem, &reference).unwrap();
        assert!((again.value - reference.objective).abs() <= 1e-9 * again.value, "the reference tells what it has");
        (ours, theirs) = (ours + utility(&found) / best, theirs + utility(&reference) / best);
    }
    assert!(met >= 38, "within 1 % of the optimum on {met} of {cases}");
    assert!(ours >= theirs, "{ours} and {theirs}");
}
