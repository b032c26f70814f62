//! `hit` against its promises: chains kept, cost never up, a fixed point, nobody blocks, near the exact best.

use super::round::{RoundPreferences, assign};
use super::*;
use crate::chained::Breaches;
use crate::chained::cases::{Draw, gap, gap_to_arrived, spread};
use crate::chained::sample::{SETTINGS, UNIT, World, networks};
use crate::check;
use crate::pat::Pat;
use crate::problem::{Anchor, ArrivedSenders};
use hintd_model::cluster::Way;
use hintd_model::solve::matching::blocking;
use hintd_model::units::{BitsPerSec, BoxIdx, Bytes, GroupIdx, NodeIdx};
use proptest::prelude::*;

const MEGABIT: u64 = 1_000_000;

fn place(policy: &dyn Place, problem: &PlaceProblem<'_>) -> Result<Placement, PlaceError> {
    policy.place(problem, &mut Budget::new(u64::MAX, &mut || false))
}

/// What `hit` breaks in one draw; `None` where it refuses.
fn draw_breaches(draw: Draw) -> Option<Breaches> {
    let (breaches, violations) = draw.aware(&Hit::default()).unwrap()?;
    assert_eq!(violations, 0, "room and candidates are kept");
    Some(breaches)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_chain_is_broken_while_links_switches_and_boxes_fail(
        network in 0_usize..4,
        megabits in 40_u64..400,
        percent in 0_u32..12,
        seed: u64,
    ) {
        if let Some(breaches) = draw_breaches(Draw { network, megabits, percent, seed }) {
            prop_assert_eq!((breaches.broken, breaches.involved), (0, 0));
        }
    }

    /// Step by step: no step costs more than the one before, and where it ends no single move gains.
    #[test]
    fn cost_never_rises_and_where_it_ends_no_single_move_gains(network in 0_usize..4, megabits in 60_u64..400, seed: u64) {
        let world = World::new(&networks()[network], BitsPerSec(megabits * MEGABIT), seed);
        let problem = world.job(4, 3, Bytes(1 << 30), seed);
        let compiled = ChainedProblem::compile(&problem, &SETTINGS).unwrap().unwrap();
        let mut search_state = SearchState::new(&compiled);
        search_state.place_as(&place(&Random::default(), &problem).unwrap().groups);
        prop_assume!(first_lists(&mut search_state, Some(seed), &Budget::new(u64::MAX, &mut || false)).is_ok());
        for round in 0.. {
            let before = search_state.cost();
            let moved = search_state.improve_lists(|| true);
            prop_assert_eq!(moved > 0, search_state.cost() < before);
            prop_assert!(search_state.cost() <= before);
            let between = search_state.cost();
            let assigned = assign(&mut search_state, &Budget::new(u64::MAX, &mut || false));
            prop_assert_eq!(assigned > 0, search_state.cost() < between);
            prop_assert!(search_state.cost() <= between);
            if moved + assigned == 0 {
                break;
            }
            prop_assert!(round < 100);
        }
        for task in 0..search_state.at.len() as u32 {
            for slot in 0..compiled.slots.len() as u32 {
                let mut other = search_state.clone();
                prop_assert!(search_state.at[task as usize] == slot || !search_state.fits(task, slot) || !other.try_move(task, slot));
            }
        }
        for (at, list) in search_state.lists.iter().enumerate() {
            let hops = |list: &List| search_state.hops_by(&compiled.own.flows[at], list);
            for position in 0..list.len() {
                for index in search_state.choices(at as u32, compiled.own.boxes[list[position] as usize].kind) {
                    let mut other = list.clone();
                    other[position] = index;
                    prop_assert!(hops(&other) >= hops(list));
                }
            }
        }
    }

    /// What the policy itself gives, not a loop of the test's.
    #[test]
    fn neither_step_moves_anything_in_the_state_that_is_given(network in 0_usize..4, megabits in 60_u64..400, seed: u64) {
        let world = World::new(&networks()[network], BitsPerSec(megabits * MEGABIT), seed);
        let problem = world.job(4, 3, Bytes(1 << 30), seed);
        let compiled = ChainedProblem::compile(&problem, &SETTINGS).unwrap().unwrap();
        let found = Hit::default().search(&compiled, &Budget::new(u64::MAX, &mut || false));
        prop_assume!(found.is_ok());
        let mut search_state = found.unwrap();
        let cost = search_state.cost();
        prop_assert_eq!((search_state.improve_lists(|| true), assign(&mut search_state, &Budget::new(u64::MAX, &mut || false))), (0, 0));
        prop_assert_eq!(search_state.cost(), cost);
        prop_assert!(search_state.lists.iter().all(|list| list.iter().all(|&index| search_state.box_load(index) <= compiled.own.boxes[index as usize].room)));
    }

    #[test]
    fn with_equal_containers_nobody_blocks_a_rounds_matching(network in 0_usize..4, seed: u64) {
        let world = World::new(&networks()[network], BitsPerSec(1_000 * MEGABIT), seed);
        let problem = world.job(5, 4, Bytes(1 << 30), seed);
        let compiled = ChainedProblem::compile(&problem, &SETTINGS).unwrap().unwrap();
        let mut search_state = SearchState::new(&compiled);
        search_state.place_as(&place(&Random::default(), &problem).unwrap().groups);
        first_lists(&mut search_state, Some(seed), &Budget::new(u64::MAX, &mut || false)).unwrap();
        let frozen = RoundPreferences::of(&search_state, &Budget::new(u64::MAX, &mut || false)).unwrap();
        let matched = frozen.matched();
        prop_assert_eq!(blocking(&frozen.market(), &matched, |slot, position| frozen.score(slot, position)), vec![]);
        prop_assert!(matched.iter().all(Option::is_some), "there is room for all");
    }
}

#[test]
fn the_same_request_gets_the_same_placement_with_routes_through_its_boxes() {
    let world = World::new(&networks()[1], BitsPerSec(400 * MEGABIT), 3);
    let problem = world.job(6, 3, Bytes(1 << 30), 3);
    let placement = place(&Hit::default(), &problem).unwrap();
    assert_eq!(place(&Hit::default(), &problem).unwrap(), placement);
    assert!(!placement.routes.is_empty());
    let kinds = world.chains.chain(hintd_model::units::ChainIdx(0)).sequence.len();
    assert!(placement.routes.iter().all(|route| route.stops.len() == kinds && route.chain.is_some()));
    let own = Hit::default().objective(&problem, &placement).unwrap();
    assert!(placement.objective <= own.value * 1.000_001, "{} and {}", placement.objective, own.value);
    let capacity = place(&Capacity::default(), &problem).unwrap();
    assert!(placement.objective <= Hit::default().objective(&problem, &capacity).unwrap().value);
}

#[test]
fn a_chain_without_boxes_refuses_by_name_and_an_open_one_goes_on() {
    let mut world = World::new(&networks()[1], BitsPerSec(400 * MEGABIT), 3);
    for index in 0..world.chains.boxes().len() {
        world.chains.set_box(BoxIdx::new(index), Some(false), None);
    }
    world.fail(0, 1);
    let problem = world.job(2, 2, Bytes(1 << 30), 3);
    let error = place(&Hit::default(), &problem).unwrap_err();
    assert!(
        error.to_string().starts_with("chain \"shuffle\" can not be met: no node that group map may use"),
        "{error}"
    );
    let mut full = World::new(&networks()[1], BitsPerSec(1_000), 3);
    full.fail(0, 1);
    let problem = full.job(2, 2, Bytes(1 << 30), 3);
    let error = place(&Hit::default(), &problem).unwrap_err();
    assert!(error.to_string().contains("\"shuffle\" can not be met: its middleboxes have no"), "{error}");
}

#[test]
fn a_later_wave_goes_to_where_its_receivers_run() {
    let world = World::new(&networks()[1], BitsPerSec(400 * MEGABIT), 3);
    let sample = &world.sample;
    let group = sample.group("worker", 1, UNIT);
    let receiver = group.candidates[group.candidates.len() / 2];
    let problem = sample.problem(vec![group], vec![], vec![Anchor { node: receiver, count: 3 }]);
    let placement = place(&Hit::default(), &problem).unwrap();
    assert_eq!(placement.groups[0][0].node, receiver, "nothing asks for boxes, and there is room beside it");
}

#[test]
fn a_later_wave_goes_by_bytes_and_not_by_who_else_is_there() {
    for way in [Way::In, Way::Out, Way::Both] {
        for policy in [&Hit::default() as &dyn Place, &Pat::default()] {
            let world = World::new(&networks()[1], BitsPerSec(4_000 * MEGABIT), 3);
            let group = world.sample.group("worker", 1, UNIT);
            let [few, many, master] = [0, 1, 2].map(|nth| group.candidates[nth * group.candidates.len() / 3]);
            // One byte a sender: nobody knows how many.
            for from in [vec![(few, Bytes(2)), (many, Bytes(3))], vec![(few, Bytes(1 << 30)), (many, Bytes(3 << 30))]] {
                let senders = vec![ArrivedSenders { to: GroupIdx(0), from, way }];
                let anchors = vec![Anchor { node: master, count: 9 }];
                let problem = PlaceProblem { senders, ..world.sample.problem(vec![group.clone()], vec![], anchors) };
                let placement = place(policy, &problem).unwrap();
                // `pat` looks at switches, and not at nodes below them.
                let rack = |node| world.sample.snapshot.rack(node);
                assert_eq!(rack(placement.groups[0][0].node), rack(many), "{way:?}");
            }
        }
    }
}

/// Printed with `--nocapture`, as below, where the other ends of all flows are there already.
#[test]
fn small_later_waves_come_near_the_exact_best() {
    let gaps: Vec<f64> = (0..24).map(|seed| gap_to_arrived(&Hit::default(), seed).unwrap()).collect();
    let [median, p90, worst] = spread(gaps).map(|share| 100.0 * share);
    println!("gap of hit to the exact best, 24 later waves: median {median:.1} %, p90 {p90:.1} %, worst {worst:.1} %");
    assert!(median <= 5.0 && worst <= 60.0, "{median} {worst}");
}

#[test]
fn without_a_network_or_edges_container_places() {
    let mut world = World::new(&networks()[0], BitsPerSec(400 * MEGABIT), 3);
    let group = world.sample.group("worker", 4, UNIT);
    let problem = world.sample.problem(vec![group], vec![], vec![]);
    assert_eq!(place(&Hit::default(), &problem), place(&Container::default(), &problem));
    let statics = std::sync::Arc::clone(&world.sample.snapshot.statics);
    world.sample.snapshot.topology = std::sync::Arc::new(hintd_model::cluster::Topology::new(None, &statics));
    let problem = world.job(2, 2, Bytes(1 << 30), 3);
    assert_eq!(check(&problem, &place(&Hit::default(), &problem).unwrap()), []);
}

#[test]
fn what_another_policys_placement_costs_hangs_on_no_shortlist() {
    let world = World::new(&networks()[1], BitsPerSec(4_000 * MEGABIT), 3);
    let problem = world.job(6, 4, Bytes(1 << 30), 3);
    let placement = place(&Random::default(), &problem).unwrap();
    let cost = |shortlist| Hit::new(HitParams { shortlist, ..HitParams::default() }).objective(&problem, &placement);
    assert!(cost(256).is_some());
    assert_eq!(cost(4), cost(256));
}

/// Printed with `--nocapture`: what `pna` breaks where `hit` breaks nothing.
#[test]
fn pna_breaks_chains_on_the_same_draws() {
    let (mut hit, mut pna, mut refused) = (Breaches::default(), Breaches::default(), 0);
    let add = |sum: &mut Breaches, one: Breaches| {
        sum.flows += one.flows;
        sum.broken += one.broken;
        sum.boxes += one.boxes;
        sum.involved += one.involved;
    };
    for seed in 0..40 {
        let draw = Draw { network: seed as usize % 4, megabits: 160, percent: 3, seed };
        match draw_breaches(draw) {
            Some(ours) => add(&mut hit, ours),
            None => refused += 1,
        }
        add(&mut pna, draw.pna().unwrap());
    }
    let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    println!("hit: {} of {} flows broken, {refused} of 40 requests refused", hit.broken, hit.flows);
    println!("pna: {:.1} % of flows, {:.1} % of boxes", share(pna.broken, pna.flows), share(pna.involved, pna.boxes));
    assert_eq!((hit.broken, hit.involved), (0, 0));
    assert!(hit.flows > 400 && pna.broken > 0, "{hit:?} {pna:?}");
}

/// Printed with `--nocapture`: how far `hit` is from the exact best of small cases.
#[test]
fn small_cases_come_near_the_exact_best() {
    let gaps: Vec<f64> = (0..24).map(|seed| gap(&Hit::default(), seed).unwrap()).collect();
    let [median, p90, worst] = spread(gaps).map(|share| 100.0 * share);
    println!("gap of hit to the exact best, 24 cases: median {median:.1} %, p90 {p90:.1} %, worst {worst:.1} %");
    assert!(median <= 5.0 && worst <= 60.0, "{median} {worst}");
}

#[test]
fn a_node_that_reaches_no_box_is_passed_over() {
    let mut world = World::new(&networks()[1], BitsPerSec(400 * MEGABIT), 3);
    world.fail(0, 1);
    let mut network = (**world.intact.network.as_ref().unwrap()).clone();
    let edge = network.vertex("edge-1-1").unwrap();
    let links: Vec<_> = network
        .links_of(edge)
        .filter(|(_, link)| !network.vertex_at(link.other(edge)).is_host())
        .map(|(index, _)| index)
        .collect();
    for &link in &links {
        network.set_link(link, Some(false), None);
    }
    let topology = world.intact.follow(std::sync::Arc::new(network), &links, &world.sample.snapshot.statics);
    world.sample.snapshot.topology = std::sync::Arc::new(topology);
    world.sample.snapshot.occupied.fill(UNIT.times(7));
    let problem = world.job(10, 4, Bytes(1 << 30), 3);
    let placement = place(&Hit::default(), &problem).unwrap();
    let nodes: Vec<NodeIdx> = placement.groups.iter().flatten().map(|share| share.node).collect();
    assert!(nodes.len() == 14 && nodes.iter().all(|node| node.0 > 1), "{nodes:?}");
}

#[test]
fn a_topology_with_chains_has_paths_to_their_boxes_and_keeps_them_through_changes() {
    let mut world = World::new(&networks()[1], BitsPerSec(MEGABIT), 3);
    let has = |topology: &hintd_model::cluster::Topology, chains: &hintd_model::network::chains::Chains| {
        let ends = topology.paths().unwrap().ends();
        chains.ends().iter().all(|end| ends.binary_search(end).is_ok()) && topology.chains.is_some()
    };
    assert!(has(&world.intact, &world.chains));
    world.fail(5, 1);
    assert!(has(&world.sample.snapshot.topology, &world.chains));
    let plain = world.intact.with_chains(None);
    assert!(plain.chains.is_none() && !has(&plain, &world.chains));
    let statics = &world.sample.snapshot.statics;
    assert!(has(&world.intact.with_nodes(statics), &world.chains));
}
