//! Terms by hand on the testbed of 001, and against a reckoning pair by pair.

use super::*;
use crate::place::{Ended, Share};
use crate::problem::{Anchor, Degraded, EdgeProblem, InputBlock, InputBlocks};
use crate::sample::{Sample, cluster};
use hintd_model::network::build::{FatTreeSpec, TreeSpec, fat_tree, tree};
use hintd_model::network::{EcmpTable, LinkLoads};
use hintd_model::units::{Bytes, GroupIdx};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

const UNIT: Resource = Resource::new(1024, 1);

fn placement(groups: &[&[(u32, u32)]]) -> Placement {
    let share = |&(node, count): &(u32, u32)| Share { node: NodeIdx(node), count };
    let groups = groups.iter().map(|group| group.iter().map(share).collect()).collect();
    Placement { groups, routes: Vec::new(), objective: 0.0, parts: vec![], ended: Ended::Complete, gap: None, steps: 0 }
}

/// 4 racks of 2, two cores, 1 Gbit/s hosts, 200 Mbit/s uplinks.
fn testbed() -> Sample {
    cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(4), Bytes(1))
}

fn edge(from: u32, to: u32, pattern: EdgePattern, bytes: u64) -> EdgeProblem {
    EdgeProblem { from: GroupIdx(from), to: GroupIdx(to), pattern, bytes: Bytes(bytes) }
}

fn blocks(nodes: &[&[u32]]) -> Arc<InputBlocks> {
    let block = |nodes: &&[u32]| InputBlock { bytes: Bytes(100), nodes: nodes.iter().copied().map(NodeIdx).collect() };
    Arc::new(InputBlocks::new(nodes.iter().map(block).collect()))
}

#[test]
fn blocks_are_local_in_the_rack_or_from_elsewhere() {
    let sample = testbed();
    let mut group = sample.group("map", 2, UNIT);
    group.input = blocks(&[&[0, 4], &[1], &[2, 6], &[]]);
    let problem = sample.problem(vec![group], vec![], vec![]);
    let terms = evaluate(&problem, &placement(&[&[(0, 2)]]));
    assert_eq!((terms.remote_bytes, terms.cross_rack_bytes), (Some(300.0), Some(200.0)));
}

#[test]
fn what_is_not_known_is_absent_and_never_zero() {
    let sample = testbed();
    let problem = sample.problem(vec![sample.group("g", 2, UNIT)], vec![], vec![]);
    let terms = evaluate(&problem, &placement(&[&[(0, 1), (2, 1)]]));
    assert_eq!((terms.remote_bytes, terms.cross_rack_bytes, terms.worst_link_s), (None, None, None));
    assert_eq!((terms.core_hops, terms.balance), (Some(1.0), Some(0.0)));
    assert_eq!(evaluate(&problem, &placement(&[&[]])).balance, None);
}

#[test]
fn figure_four_has_thirty_two_core_hops() {
    let sample = testbed();
    let problem = sample.problem(vec![sample.group("g", 12, UNIT)], vec![], vec![]);
    let figure = placement(&[&[(0, 4), (1, 4), (2, 4)]]);
    assert_eq!(evaluate(&problem, &figure).core_hops, Some(32.0));
}

#[test]
fn pairs_of_anchors_alone_are_not_counted() {
    let sample = testbed();
    let anchors = vec![Anchor { node: NodeIdx(0), count: 2 }, Anchor { node: NodeIdx(6), count: 3 }];
    let problem = sample.problem(vec![sample.group("g", 1, UNIT)], vec![], anchors);
    assert_eq!(evaluate(&problem, &placement(&[&[(1, 1)]])).core_hops, Some(3.0));
}

#[test]
fn the_worst_link_of_a_shuffle_is_reckoned_by_hand() {
    let sample = testbed();
    let groups = vec![sample.group("map", 2, UNIT), sample.group("reduce", 1, UNIT)];
    let bytes = 100_000_000; // 800 Mbit: half of it from the other rack over two uplinks of 200 Mbit/s
    let problem = sample.problem(groups, vec![edge(0, 1, EdgePattern::AllToAll, bytes)], vec![]);
    let terms = evaluate(&problem, &placement(&[&[(0, 1), (2, 1)], &[(1, 1)]]));
    assert!((terms.worst_link_s.unwrap() - 1.0).abs() < 1e-9, "{terms:?}");
    assert_eq!(terms.cross_rack_bytes, Some(50_000_000.0));
}

#[test]
fn one_to_one_pairs_go_by_task_order() {
    let sample = testbed();
    let groups = vec![sample.group("a", 4, UNIT), sample.group("b", 2, UNIT)];
    let problem = sample.problem(groups, vec![edge(0, 1, EdgePattern::OneToOne, 400)], vec![]);
    // Tasks of a: 0, 0, 2, 2; of b: 0, 2: pairs (0,0) (0,2) (2,0) (2,2).
    let terms = evaluate(&problem, &placement(&[&[(0, 2), (2, 2)], &[(0, 1), (2, 1)]]));
    assert_eq!(terms.cross_rack_bytes, Some(200.0));
}

/// Every pair of containers and every block by itself, laid flow by flow.
fn by_pairs(problem: &PlaceProblem<'_>, placement: &Placement) -> (f64, f64, f64) {
    let topology = &problem.snapshot.topology;
    let network = topology.network.as_deref().unwrap();
    let table = EcmpTable::build(network).unwrap();
    let mut loads = LinkLoads::new(network);
    let tasks: Vec<Vec<NodeIdx>> = placement
        .groups
        .iter()
        .map(|shares| shares.iter().flat_map(|share| vec![share.node; share.count as usize]).collect())
        .collect();
    let mut cross = 0.0;
    let mut lay = |from: NodeIdx, to: NodeIdx, bytes: f64, counts: bool| {
        if from == to {
            return;
        }
        if counts && problem.snapshot.rack(from) != problem.snapshot.rack(to) {
            cross += bytes;
        }
        loads.add_host(network, topology.vertex[from.at()].unwrap(), bytes, 0.0);
        loads.add_host(network, topology.vertex[to.at()].unwrap(), 0.0, bytes);
        table.spread_bytes(topology.edge[from.at()].unwrap(), topology.edge[to.at()].unwrap(), bytes, &mut loads);
    };
    for edge in &problem.edges {
        let (from, to) = (&tasks[edge.from.at()], &tasks[edge.to.at()]);
        let one_group = edge.from == edge.to;
        let pairs: Vec<(usize, usize)> = (0..from.len())
            .flat_map(|a| (0..to.len()).map(move |b| (a, b)))
            .filter(|(a, b)| !one_group || a != b)
            .collect();
        for &(a, b) in &pairs {
            lay(from[a], to[b], edge.bytes.as_f64() / pairs.len() as f64, true);
        }
    }
    for (group, tasks) in problem.groups.iter().zip(&tasks) {
        for block in group.input.blocks.iter().filter(|block| !block.nodes.iter().any(|node| tasks.contains(node))) {
            let rack = |node: &NodeIdx| problem.snapshot.rack(*node);
            let near: Vec<NodeIdx> =
                block.nodes.iter().copied().filter(|node| tasks.iter().any(|task| rack(task) == rack(node))).collect();
            let sources = if near.is_empty() { block.nodes.to_vec() } else { near.clone() };
            for source in &sources {
                let readers: Vec<&NodeIdx> =
                    tasks.iter().filter(|task| near.is_empty() || rack(task) == rack(source)).collect();
                for reader in &readers {
                    lay(*source, **reader, block.bytes.as_f64() / (sources.len() * readers.len()) as f64, true);
                }
            }
        }
    }
    let hops = |a: NodeIdx, b: NodeIdx| f64::from(topology.core_hops(a, b).unwrap());
    let all: Vec<NodeIdx> = tasks.into_iter().flatten().collect();
    let mut sum = 0.0;
    for (at, &a) in all.iter().enumerate() {
        sum += all[at + 1..].iter().map(|&b| hops(a, b)).sum::<f64>();
        sum += problem.anchors.iter().map(|anchor| f64::from(anchor.count) * hops(a, anchor.node)).sum::<f64>();
    }
    (cross, sum, loads.worst_link(network).map_or(0.0, |(_, seconds)| seconds))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn terms_by_counts_equal_terms_by_pairs(seed in 0_u64..10_000) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let built = if seed % 2 == 0 { fat_tree(&FatTreeSpec::default()) } else { tree(&TreeSpec::default()) };
        let sample = cluster(&built.unwrap(), UNIT.times(8), Bytes(1));
        let nodes = sample.snapshot.nodes() as u32;
        let mut groups = vec![sample.group("a", 4, UNIT), sample.group("b", 3, UNIT)];
        groups[0].input = sample.input(6, Bytes(1_000_000), seed);
        let mut shares = |count: u32| -> Vec<(u32, u32)> {
            let mut by_node: BTreeMap<u32, u32> = BTreeMap::new();
            (0..count).for_each(|_| *by_node.entry(random.random_range(0..nodes)).or_default() += 1);
            by_node.into_iter().collect()
        };
        let (a, b) = (shares(4), shares(3));
        let placement = placement(&[&a, &b]);
        let edges = vec![edge(0, 1, EdgePattern::AllToAll, 5_000_000), edge(0, 0, EdgePattern::AllToAll, 3_000_000)];
        let problem = sample.problem(groups, edges, vec![Anchor { node: NodeIdx(0), count: 1 }]);
        let terms = evaluate(&problem, &placement);
        let (cross, hops, worst) = by_pairs(&problem, &placement);
        prop_assert!((terms.cross_rack_bytes.unwrap() - cross).abs() < 1e-3, "{terms:?} {cross}");
        prop_assert!((terms.core_hops.unwrap() - hops).abs() < 1e-9, "{terms:?} {hops}");
        prop_assert!((terms.worst_link_s.unwrap() - worst).abs() < 1e-9, "{terms:?} {worst}");
    }
}

#[test]
fn without_a_topology_racks_give_the_hops_and_no_link_is_named() {
    let mut sample = testbed();
    let racks = hintd_model::cluster::Topology::new(None, &sample.snapshot.statics);
    sample.snapshot.topology = Arc::new(racks);
    let mut problem = sample.problem(vec![sample.group("g", 2, UNIT)], vec![], vec![]);
    problem.edges.push(edge(0, 0, EdgePattern::AllToAll, 10));
    problem.degraded = Degraded { no_topology: true, ..Degraded::default() };
    let terms = evaluate(&problem, &placement(&[&[(0, 1), (2, 1)]]));
    assert_eq!((terms.core_hops, terms.worst_link_s, terms.cross_rack_bytes), (Some(1.0), None, Some(10.0)));
}

#[test]
fn bytes_of_a_pair_with_a_route_lie_on_it_and_others_on_all_shortest_paths() {
    use crate::place::ChosenRoute;
    use hintd_model::cluster::{NodePair, PairRoute, RunningFlows};
    use hintd_model::network::host_paths;
    let sample = cluster(&fat_tree(&FatTreeSpec { k: 4, ..FatTreeSpec::default() }).unwrap(), UNIT.times(4), Bytes(1));
    let topology = &*sample.snapshot.topology;
    let groups = vec![sample.group("a", 2, UNIT), sample.group("b", 2, UNIT)];
    let edges = vec![edge(0, 1, EdgePattern::OneToOne, 1_000_000_000)];
    let mut problem = sample.problem(groups, edges, vec![]);
    // Two senders under one switch, two receivers under one of another pod: 4 Gbit each way of theirs.
    let mut placed = placement(&[&[(0, 1), (1, 1)], &[(4, 1), (5, 1)]]);
    let spread = evaluate(&problem, &placed).worst_link_s.unwrap();
    assert_eq!(spread, 4.0, "the access links; above them two ways share");
    let vertex = |node: u32| topology.vertex[node as usize].unwrap();
    let (network, table) = (topology.network.as_deref().unwrap(), topology.paths().unwrap());
    let path = |from: u32, to: u32, at: usize| -> Arc<[_]> {
        host_paths(network, table, vertex(from), vertex(to)).nth(at).unwrap()[..].into()
    };
    let pair = |from: u32, to: u32| NodePair { from: NodeIdx(from), to: NodeIdx(to) };
    let first = path(0, 4, 0);
    let same = (0..4).map(|at| path(1, 5, at)).find(|other| other[1] == first[1]).unwrap();
    let other = (0..4).map(|at| path(1, 5, at)).find(|other| other[1] != first[1]).unwrap();
    placed.routes =
        vec![ChosenRoute::plain(pair(0, 4), Arc::clone(&first)), ChosenRoute::plain(pair(1, 5), Arc::clone(&same))];
    assert_eq!(evaluate(&problem, &placed).worst_link_s, Some(8.0), "both on one way");
    placed.routes[1].links = Arc::clone(&other);
    assert_eq!(evaluate(&problem, &placed).worst_link_s, Some(4.0), "each on its own");
    placed.routes.truncate(1);
    assert_eq!(evaluate(&problem, &placed).worst_link_s, Some(6.0), "one on its way, the other on both");
    // A pair that a running job routes keeps that route.
    let mut running = RunningFlows::default();
    let known = PairRoute { links: same, installed: true, task_pairs: 1, bytes: Bytes(1) };
    running.routes.set(&pair(1, 5), Some(Arc::new(known)));
    let running = running.into();
    problem.running = Some(&running);
    assert_eq!(evaluate(&problem, &placed).worst_link_s, Some(8.0));
}
