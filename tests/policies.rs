//! Policies against each other on 200 seeded clusters, through the public registry only.
//!
//! `cargo test --test policies -- --nocapture` prints the medians of every common term.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test that panics is a test that fails

use hintd_model::cluster::{EdgePattern, Resource};
use hintd_model::network::build::{BuiltNetwork, FatTreeSpec, TreeSpec, fat_tree, tree};
use hintd_model::units::{Bytes, GroupIdx, NodeIdx};
use hintd_policy::problem::{Anchor, EdgeProblem, PlaceProblem};
use hintd_policy::sample::{Sample, cluster};
use hintd_policy::{Budget, Placement, Policy, Terms, check, evaluate, registry};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const UNIT: Resource = Resource::new(1024, 1);
const POLICIES: [&str; 5] = ["container", "capacity", "random", "spread", "cross_layer"];

fn network(random: &mut ChaCha8Rng) -> BuiltNetwork {
    if random.random_bool(0.3) {
        return fat_tree(&FatTreeSpec { k: 4, ..FatTreeSpec::default() }).unwrap();
    }
    let (racks, hosts_per_rack) = (random.random_range(3..7), random.random_range(3..7));
    let spec = TreeSpec { racks, hosts_per_rack, ..TreeSpec::default() };
    tree(&spec.with_edge_oversubscription(random.random_range(1.0..8.0))).unwrap()
}

/// A cluster under load from nearly none to nearly full.
fn seeded(seed: u64) -> Sample {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut sample = cluster(&network(&mut random), UNIT.times(8), Bytes(150_000_000));
    sample.occupy(UNIT, random.random_range(1..8), seed);
    sample
}

/// Maps that read, reduces that fetch from them, an ApplicationMaster that runs already.
fn request(sample: &Sample, seed: u64) -> PlaceProblem<'_> {
    let mut random = ChaCha8Rng::seed_from_u64(!seed);
    let mut maps = sample.group("map", random.random_range(2..12), UNIT);
    maps.input = sample.input(maps.count as usize * random.random_range(1..4), Bytes(128 << 20), seed);
    if random.random_bool(0.2) {
        maps.max_per_node = 2;
    }
    let reduces = sample.group("reduce", random.random_range(1..5), UNIT.times(2));
    let shuffle = Bytes(random.random_range(1..40) << 27);
    let edge = EdgeProblem { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: shuffle };
    let am = Anchor { node: NodeIdx::new(random.random_range(0..sample.snapshot.nodes())), count: 1 };
    let mut problem = sample.problem(vec![maps, reduces], vec![edge], vec![am]);
    problem.seed = seed;
    problem
}

fn place(policy: &dyn Policy, problem: &PlaceProblem<'_>) -> Placement {
    let mut never = || false;
    policy.as_place().unwrap().place(problem, &mut Budget::new(100_000, &mut never)).unwrap()
}

fn median(values: impl Iterator<Item = Option<f64>>) -> f64 {
    let mut known: Vec<f64> = values.flatten().collect();
    known.sort_by(f64::total_cmp);
    known[known.len() / 2]
}

#[test]
fn container_costs_less_than_capacity_and_random_on_nearly_all_of_200_clusters() {
    let policies: Vec<_> = POLICIES.iter().map(|name| registry::with_defaults(name).unwrap()).collect();
    let (mut beats_capacity, mut beats_random) = (0, 0);
    let mut terms: Vec<[Terms; 5]> = Vec::new();
    let mut objectives: Vec<[f64; 5]> = Vec::new();
    for seed in 0..200 {
        let sample = seeded(seed);
        let problem = request(&sample, seed);
        let mut row = [Terms::default(); 5];
        let mut costs = [0.0; 5];
        for (at, policy) in policies.iter().enumerate() {
            let placement = place(&**policy, &problem);
            assert_eq!(check(&problem, &placement), [], "seed {seed}, {}", policy.name());
            row[at] = evaluate(&problem, &placement);
            costs[at] = policies[0].as_place().unwrap().objective(&problem, &placement).unwrap().value;
        }
        beats_capacity += u32::from(costs[0] < costs[1] - 1e-12);
        beats_random += u32::from(costs[0] < costs[2] - 1e-12);
        assert!(costs[0] <= costs[1] + 1e-9, "seed {seed}: {costs:?}");
        terms.push(row);
        objectives.push(costs);
    }
    println!("container costs less than capacity on {beats_capacity} of 200, than random on {beats_random}");
    println!("medians: objective, remote bytes, cross-rack bytes, core hops, worst link s, balance");
    for (at, name) in POLICIES.iter().enumerate() {
        let of = |term: fn(&Terms) -> Option<f64>| median(terms.iter().map(|row| term(&row[at])));
        println!(
            "{name:>11} {:>7.4} {:>14.0} {:>14.0} {:>6.0} {:>7.2} {:>6.3}",
            median(objectives.iter().map(|row| Some(row[at]))),
            of(|terms| terms.remote_bytes),
            of(|terms| terms.cross_rack_bytes),
            of(|terms| terms.core_hops),
            of(|terms| terms.worst_link_s),
            of(|terms| terms.balance),
        );
    }
    assert!(beats_capacity >= 190 && beats_random >= 190, "{beats_capacity} and {beats_random} of 200");
}

#[test]
fn every_policy_gives_the_same_bytes_for_the_same_seed_and_steps() {
    for name in POLICIES {
        let policy = registry::with_defaults(name).unwrap();
        for seed in 0..5 {
            let sample = seeded(seed);
            let problem = request(&sample, seed);
            let run = || serde_json::to_string(&place(&*policy, &problem)).unwrap();
            assert_eq!(run(), run(), "{name}");
        }
    }
}

#[test]
fn cross_layer_gives_more_utility_than_any_other_on_nearly_all_of_30_clusters() {
    let policies: Vec<_> = POLICIES.iter().map(|name| registry::with_defaults(name).unwrap()).collect();
    let cross_layer = policies[4].as_place().unwrap();
    let mut most = 0;
    for seed in 0..30 {
        let sample = seeded(seed);
        let problem = request(&sample, seed);
        let placements = policies.iter().map(|policy| place(&**policy, &problem));
        let of: Vec<f64> = placements.map(|placed| cross_layer.objective(&problem, &placed).unwrap().value).collect();
        most += u32::from(of[..4].iter().all(|other| of[4] <= other * (1.0 + 1e-9)));
    }
    println!("cross_layer's objective is the lowest on {most} of 30");
    assert!(most >= 29, "{most} of 30");
}

#[test]
fn what_does_not_fit_stays_out_and_what_fits_goes_in() {
    for entry in registry::entries() {
        let policy = (entry.build)(hintd_policy::params::no_params()).unwrap();
        let sample = cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(2), Bytes(1));
        for (count, most_per_rack, placed) in [(1, u32::MAX, 1), (16, u32::MAX, 16), (17, u32::MAX, 16), (16, 3, 12)] {
            let mut group = sample.group("g", count, UNIT);
            group.max_per_rack = most_per_rack;
            let problem = sample.problem(vec![group], vec![], vec![]);
            let placement = place(&*policy, &problem);
            assert_eq!((check(&problem, &placement), placement.placed(0)), (vec![], placed), "{}", entry.name);
        }
        let empty = sample.problem(vec![sample.group("g", 3, UNIT.times(9))], vec![], vec![]);
        assert_eq!(place(&*policy, &empty).placed_all(), 0, "{}", entry.name);
    }
}
