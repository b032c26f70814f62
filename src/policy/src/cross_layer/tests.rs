//! The policy against the optimum by enumeration, against a reckoning from scratch, and against itself.

use super::sample::{Job, drawn_hadoop_job, storm_job};
use super::*;
use crate::flow_index::FlowIndex;
use crate::place::{ChosenRoute, Share};
use crate::problem::{EdgeProblem, GroupProblem};
use crate::sample::{Sample, cluster};
use crate::{IndexedFlows, check, traffic};
use hintd_model::cluster::{EdgePattern, NodePair, Resource, RunningFlows, Topology};
use hintd_model::cluster::{JobFlows, PairRoute};
use hintd_model::network::build::{FatTreeSpec, JellyfishSpec, TreeSpec, fat_tree, jellyfish, tree};
use hintd_model::network::host_paths;
use hintd_model::units::{ApplicationId, AttemptId, BitsPerSec, Bytes, DecisionId, DirectedLinkIdx, GroupIdx, LinkIdx};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod optimum;
mod rerouting;

const UNIT: Resource = Resource::new(1024, 1);

fn edge(from: u32, to: u32, pattern: EdgePattern) -> EdgeProblem {
    EdgeProblem { from: GroupIdx(from), to: GroupIdx(to), pattern, bytes: Bytes(1 << 24) }
}

fn all(from: u32, to: u32) -> EdgeProblem {
    edge(from, to, EdgePattern::AllToAll)
}

fn fat(k: usize, slots: u64) -> Sample {
    cluster(&fat_tree(&FatTreeSpec { k, ..FatTreeSpec::default() }).unwrap(), UNIT.times(slots), Bytes(1))
}

fn fish(seed: u64, slots: u64) -> Sample {
    let spec = JellyfishSpec { switches: 12, ports: 5, to_switches: 3, seed, ..JellyfishSpec::default() };
    cluster(&jellyfish(&spec).unwrap(), UNIT.times(slots), Bytes(1))
}

fn groups(sample: &Sample, job: &Job) -> Vec<GroupProblem> {
    job.groups.iter().map(|(name, count)| sample.group(name, *count, UNIT)).collect()
}

fn mode(mode: RunMode) -> CrossLayer {
    CrossLayer::new(CrossLayerParams { mode, ..CrossLayerParams::default() })
}

fn place(policy: &CrossLayer, problem: &PlaceProblem<'_>) -> Placement {
    let mut never = || false;
    policy.place(problem, &mut Budget::new(100_000, &mut never)).unwrap()
}

fn part(placement: &Placement, name: &str) -> f64 {
    placement.parts.iter().find(|(part, _)| part == name).unwrap().1
}

fn utility(placement: &Placement) -> f64 {
    part(placement, "utility_bits_per_s")
}

/// A placement as a job that runs.
fn run(flows: &mut RunningFlows, number: u64, edges: &[EdgeProblem], placement: &Placement) {
    let traffic = traffic(edges, &placement.groups).unwrap();
    for route in &placement.routes {
        let flow = traffic.flows.iter().find(|flow| flow.pair == route.pair).unwrap();
        let known = flows.routes.get(&route.pair).map(|route| (**route).clone());
        let links = Arc::clone(&route.links);
        let mut known = known.unwrap_or(PairRoute { links, installed: true, task_pairs: 0, bytes: Bytes(0) });
        known.task_pairs += u64::from(flow.task_pairs);
        flows.routes.set(&route.pair, Some(Arc::new(known)));
    }
    let application = ApplicationId { cluster_timestamp: 1, sequence: number as u32 };
    let attempt = AttemptId { application, attempt: 1 };
    flows.jobs.push(Arc::new(JobFlows { attempt, decision: DecisionId::of(number), traffic }));
}

/// Some Storm jobs that run.
fn busy(sample: &Sample, jobs: u64) -> IndexedFlows {
    let mut flows = IndexedFlows::default();
    for number in 0..jobs {
        let job = storm_job(100 + number);
        let mut problem = sample.problem(groups(sample, &job), job.edges.clone(), vec![]);
        problem.seed = number;
        let placement = place(&mode(RunMode::Random), &problem);
        run(flows.change(), number, &job.edges, &placement);
    }
    flows
}

/// Every route walks from its sender to its receiver over usable links, passing no vertex twice.
fn assert_whole(topology: &Topology, routes: &[ChosenRoute]) {
    let network = topology.network.as_deref().unwrap();
    for route in routes {
        let [from, to] = [route.pair.from, route.pair.to].map(|node| topology.vertex[node.at()].unwrap());
        let (mut here, mut met) = (from, BTreeSet::from([from]));
        for way in route.links.iter() {
            let index = LinkIdx(way.0 / 2);
            let link = network.link_at(index);
            let (tail, head) = if way.0 % 2 == 0 { (link.a, link.b) } else { (link.b, link.a) };
            assert!(tail == here && network.is_usable(index) && met.insert(head), "{route:?}");
            here = head;
        }
        assert_eq!(here, to);
    }
}

#[test]
fn the_pieces_of_a_chain_go_together_and_get_the_rate_of_the_nic() {
    let sample = fat(4, 4);
    let names = ["source", "bolt", "sink"].map(|name| sample.group(name, 1, UNIT));
    let problem = sample.problem(names.to_vec(), vec![all(0, 1), all(1, 2)], vec![]);
    let placement = place(&CrossLayer::default(), &problem);
    assert_eq!(utility(&placement), 1e9);
    assert_eq!((placement.objective, placement.routes.len()), (1.0, 0));
    assert!(placement.groups.iter().flatten().all(|share| share.node == placement.groups[0][0].node));
}

#[test]
fn every_pair_that_talks_gets_a_route_and_the_objective_is_that_from_scratch() {
    for seed in 0..10 {
        let sample = if seed % 2 == 0 { fat(4, 2) } else { fish(seed, 2) };
        let flows = busy(&sample, seed % 3);
        let job = if seed % 5 == 0 { drawn_hadoop_job(seed) } else { storm_job(seed) };
        let mut edges = job.edges.clone();
        if seed % 4 == 1 {
            edges.iter_mut().step_by(2).for_each(|edge| edge.pattern = EdgePattern::OneToOne);
        }
        let mut problem = sample.problem(groups(&sample, &job), edges, vec![]);
        (problem.seed, problem.running) = (seed, Some(&flows));
        for run in [RunMode::Random, RunMode::Application, RunMode::Routing, RunMode::Both] {
            let placement = place(&mode(run), &problem);
            assert_eq!(check(&problem, &placement), []);
            assert_whole(&sample.snapshot.topology, &placement.routes);
            let talk: Vec<NodePair> =
                traffic(&problem.edges, &placement.groups).unwrap().flows.iter().map(|flow| flow.pair).collect();
            assert_eq!(placement.routes.iter().map(|route| route.pair).collect::<Vec<_>>(), talk);
            let again = CrossLayer::default().objective(&problem, &placement).unwrap();
            for ((name, value), (_, other)) in placement.parts.iter().zip(&again.parts) {
                assert!((value - other).abs() <= 1e-9 * value, "{run:?} {seed}: {name} {value} {other}");
            }
            for route in &placement.routes {
                if let Some(known) = flows.routes.get(&route.pair) {
                    assert_eq!(known.links, route.links, "a pair that runs keeps its route");
                }
            }
        }
    }
}

#[test]
fn the_modes_stand_in_the_order_of_the_paper() {
    let mut sums = [0.0; 4];
    for seed in 0..12 {
        let sample = if seed % 2 == 0 { fat(4, 1) } else { fish(seed, 1) };
        let flows = busy(&sample, 0);
        let job = storm_job(seed);
        let mut problem = sample.problem(groups(&sample, &job), job.edges.clone(), vec![]);
        (problem.seed, problem.running) = (seed, Some(&flows));
        let modes = [RunMode::Random, RunMode::Routing, RunMode::Application, RunMode::Both];
        let of = modes.map(|run| utility(&place(&mode(run), &problem)));
        assert!(of[1] >= of[0] && of[2] >= of[0] && of[3] >= of[0], "never worse than random: {of:?}");
        sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += of / 1e9);
    }
    assert!(sums[1] > sums[0] && sums[2] > sums[0] && sums[3] >= sums[2] && sums[3] >= sums[1], "{sums:?}");
}

#[test]
fn the_same_seed_and_steps_give_the_same_bytes() {
    let sample = fish(3, 2);
    let flows = busy(&sample, 3);
    let job = storm_job(5);
    let mut problem = sample.problem(groups(&sample, &job), job.edges.clone(), vec![]);
    problem.running = Some(&flows);
    for steps in [0, 1, 50, 100_000] {
        let mut never = || false;
        let mut once = || {
            serde_json::to_string(&CrossLayer::default().place(&problem, &mut Budget::new(steps, &mut never)).unwrap())
                .unwrap()
        };
        assert_eq!(once(), once());
    }
}

#[test]
fn the_probe_ends_it_with_a_whole_placement() {
    let sample = fat(4, 2);
    let job = storm_job(1);
    let problem = sample.problem(groups(&sample, &job), job.edges.clone(), vec![]);
    let mut stop = || true;
    let placement = CrossLayer::default().place(&problem, &mut Budget::new(100_000, &mut stop)).unwrap();
    assert_eq!((placement.ended, placement.placed_all(), check(&problem, &placement)), (Ended::Deadline, 12, vec![]));
}

#[test]
fn bounds_and_a_full_cluster_are_held() {
    let sample = cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(2), Bytes(1));
    for (maps, reduces, per_node, per_rack, placed) in
        [(12, 4, u32::MAX, u32::MAX, 16), (12, 6, u32::MAX, u32::MAX, 16), (8, 4, 1, u32::MAX, 12), (9, 4, 1, 1, 8)]
    {
        let mut map = sample.group("map", maps, UNIT);
        (map.max_per_node, map.max_per_rack) = (per_node, per_rack);
        let groups = vec![map, sample.group("reduce", reduces, UNIT)];
        let problem = sample.problem(groups, vec![all(0, 1)], vec![]);
        for run in [RunMode::Both, RunMode::Application, RunMode::Routing, RunMode::Random] {
            let placement = place(&mode(run), &problem);
            assert_eq!((check(&problem, &placement), placement.placed_all()), (vec![], placed), "{run:?}");
        }
    }
}

#[test]
fn without_a_network_or_edges_containers_still_go_together() {
    let mut sample = cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(4), Bytes(1));
    let two = |sample: &Sample| vec![sample.group("a", 4, UNIT), sample.group("b", 4, UNIT)];
    let problem = sample.problem(two(&sample), vec![], vec![]);
    let racks = |problem: &PlaceProblem<'_>, placement: &Placement| -> usize {
        let used: BTreeSet<_> = placement.groups.iter().flatten().map(|s| problem.snapshot.rack(s.node)).collect();
        used.len()
    };
    let placement = place(&CrossLayer::default(), &problem);
    assert_eq!((placement.placed_all(), racks(&problem, &placement), check(&problem, &placement)), (8, 1, vec![]));
    assert!(CrossLayer::default().objective(&problem, &placement).is_some());
    sample.snapshot.topology = Arc::new(Topology::new(None, &sample.snapshot.statics));
    let problem = sample.problem(two(&sample), vec![all(0, 1)], vec![]);
    let placement = place(&CrossLayer::default(), &problem);
    assert_eq!((placement.placed_all(), racks(&problem, &placement), placement.routes.len()), (8, 1, 0));
    assert!(place(&mode(RunMode::Random), &problem).placed_all() == 8);
}

#[test]
fn a_first_wave_of_which_no_sink_gets_anything_goes_together() {
    let sample = fat(4, 2);
    let groups = vec![sample.group("map", 40, UNIT), sample.group("reduce", 4, UNIT)];
    let problem = sample.problem(groups, vec![all(0, 1)], vec![]);
    let placement = place(&CrossLayer::default(), &problem);
    assert_eq!((placement.placed(1), check(&problem, &placement)), (0, vec![]), "maps fill the cluster");
    let mut never = || false;
    let other = Container::default().place(&problem, &mut Budget::new(u64::MAX, &mut never)).unwrap();
    assert_eq!(placement.groups, other.groups);
    assert!(placement.parts.iter().all(|(_, value)| value.is_sign_positive()), "{:?}", placement.parts);
}

#[test]
fn a_dataflow_without_source_is_refused_by_name() {
    let sample = fat(4, 2);
    let names = ["a", "b"].map(|name| sample.group(name, 1, UNIT));
    let problem = sample.problem(names.to_vec(), vec![all(0, 1), all(1, 0)], vec![]);
    let mut never = || false;
    let error = CrossLayer::default().place(&problem, &mut Budget::new(1, &mut never)).unwrap_err();
    let message = "the edges have no source: groups a, b send to each other in a cycle";
    assert!(matches!(&error, PlaceError::Dataflow { lacks: "source", groups } if groups.len() == 2));
    assert!(
        [message, "the edges have no source: groups b, a send to each other in a cycle"].contains(&&*error.to_string())
    );
}

#[test]
fn names_and_a_link_that_nobody_can_use_change_nothing() {
    let sample = fat(4, 1);
    let job = storm_job(9);
    let problem = sample.problem(groups(&sample, &job), job.edges.clone(), vec![]);
    let placement = place(&CrossLayer::default(), &problem);
    let mut renamed = job.clone();
    renamed.groups.iter_mut().for_each(|(name, _)| *name = format!("other-{name}"));
    let mut other = sample.clone();
    let statics = Arc::make_mut(&mut other.snapshot.statics);
    statics.racks.iter_mut().for_each(|rack| *rack = format!("{rack}x").into());
    // A link that is down stands in the network and in no path.
    let mut network = (**sample.snapshot.topology.network.as_ref().unwrap()).clone();
    let ends: Vec<_> = network.vertices().filter(|(_, v)| !v.is_host()).map(|(at, _)| at).take(2).collect();
    let link = network.add_link("unused".into(), ends[0], ends[1], BitsPerSec(1)).unwrap();
    network.set_link(link, Some(false), None);
    other.snapshot.topology = Arc::new(Topology::new(Some(Arc::new(network)), &other.snapshot.statics));
    let problem = other.problem(groups(&other, &renamed), renamed.edges.clone(), vec![]);
    assert_eq!(place(&CrossLayer::default(), &problem), placement);
}

#[test]
fn flows_told_one_by_one_get_paths_that_share_fairly() {
    use crate::advise::{Chain, FlowDemand, Route, RouteProblem};
    let sample = fat(4, 1);
    let flow = |from, to| FlowDemand { from: NodeIdx(from), to: NodeIdx(to), bytes: Bytes(1), chain: Chain::default() };
    // Two flows that leave one switch for another pod: on paths of their own both get the whole rate.
    let flows = vec![flow(0, 4), flow(1, 6), flow(3, 3)];
    let mut problem = RouteProblem { snapshot: &sample.snapshot, flows, fixed: vec![], seed: 1 };
    let mut never = || false;
    let routes = CrossLayer::default().route(&problem, &mut Budget::new(1_000, &mut never)).unwrap();
    assert_eq!(
        routes.paths.iter().map(|path| path.as_ref().map(|links| links.len())).collect::<Vec<_>>(),
        [Some(6), Some(6), Some(0)]
    );
    assert_eq!(routes.objective, 0.5);
    let fixed = routes.paths[0].clone().unwrap();
    problem.fixed = vec![(flow(0, 4), Arc::clone(&fixed))];
    let again = CrossLayer::default().route(&problem, &mut Budget::new(1_000, &mut never)).unwrap();
    assert_eq!(again.paths[0], Some(fixed), "a fixed flow's pair keeps its path");
}

#[test]
fn a_one_to_one_edge_joins_as_many_pairs_as_there_are_tasks_not_nodes_times_nodes() {
    let sample = fat(4, 1);
    let groups = vec![sample.group("a", 500, UNIT), sample.group("b", 500, UNIT)];
    let shares = |first: u32| (first..first + 500).map(|node| Share { node: NodeIdx(node), count: 1 }).collect();
    let placement = Placement {
        groups: vec![shares(0), shares(500)],
        routes: Vec::new(),
        objective: 0.0,
        parts: Default::default(),
        ended: Ended::Complete,
        gap: None,
        steps: 0,
    };
    for (pattern, most) in [(EdgePattern::OneToOne, 500), (EdgePattern::AllToAll, 250_000)] {
        let problem = sample.problem(groups.clone(), vec![edge(0, 1, pattern)], vec![]);
        let told = traffic(&problem.edges, &placement.groups).unwrap().flows.len() as u64;
        assert_eq!((world::pairs(&problem, &placement), told), (most, most));
    }
}
