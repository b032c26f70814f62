//! Every policy of the registry, and every question that searches, on networks that make searches long: how much they do
//! between two looks at the stop probe, and after it has said to stop. Counted in steps of the path search and in units
//! of work, never in time.

mod engine_thread;
mod planning;
mod without_probe;

use super::harness::{EngineHarness, registration};
use crate::placer::compiled;
use crate::testing::request;
use crate::{Drain, Mode, PlacerSettings, Refusal, RouteSettings, SelectedPolicy, propose, what_if_network};
use hintd_model::cluster::{Change, EdgePattern, GroupEdge, HintRequest};
use hintd_model::network::chains::{BoxEntry, ChainEntry, ChainsDocument};
use hintd_model::network::{Network, PathTableOptions, Tier};
use hintd_model::units::{BitsPerSec, Bytes, ContainerId, GroupIdx, NodeIdx};
use hintd_policy::advise::{Chain, ContainerTraffic, FlowDemand, RebalanceProblem, RouteProblem, Running};
use hintd_policy::{Budget, Policy, WORK_EVERY, registry};
use std::sync::Arc;

const CAPACITY: BitsPerSec = BitsPerSec(10_000_000_000);
const GIB: u64 = 1 << 30;
/// Nodes of a network that YARN knows, at most.
const NODES: usize = 48;
/// Steps of path searches between two looks, or after the last: a pair may not be interrupted, and those that take few
/// count for little. docs/limits.md has it.
const STEPS: u64 = 8 << 20;
/// Work between two looks, in units: [`WORK_EVERY`] and what one step of a search comes to.
const WORK: u64 = WORK_EVERY + (1 << 20);
/// Looks after the one that says to stop: every part of an answer asks once.
const LOOKS: u64 = 12;

/// Switches joined as told, a host below each.
fn network(switches: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Network {
    let mut network = Network::new();
    let rows: Vec<_> = (0..switches).map(|n| network.add_switch(&format!("s{n:05}"), Tier::Edge).unwrap()).collect();
    for (n, &switch) in rows.iter().enumerate() {
        let host = network.add_host(&format!("h{n:05}")).unwrap();
        network.add_link(format!("a{n}").into(), host, switch, CAPACITY).unwrap();
    }
    for (n, (a, b)) in links.into_iter().enumerate() {
        network.add_link(format!("l{n}").into(), rows[a], rows[b], CAPACITY).unwrap();
    }
    network
}

fn ring(n: usize) -> Network {
    network(n, (0..n).map(|at| (at, (at + 1) % n)))
}

fn ladder(n: usize) -> Network {
    let rails = (0..n - 1).flat_map(|at| [(2 * at, 2 * at + 2), (2 * at + 1, 2 * at + 3)]);
    network(2 * n, rails.chain((0..n).map(|at| (2 * at, 2 * at + 1))))
}

fn comb(n: usize, teeth: usize) -> Network {
    let before = move |at: usize, nth: usize| if nth == 0 { at } else { n + at * teeth + nth - 1 };
    let tooth = move |at: usize| (0..teeth).map(move |nth| (before(at, nth), n + at * teeth + nth));
    network(n + n * teeth, (1..n).map(|at| (at - 1, at)).chain((0..n).flat_map(tooth)))
}

fn star_of_stars(hubs: usize, leaves: usize) -> Network {
    let hub = move |hub: usize| {
        let leaf = move |leaf: usize| (1 + hub, 1 + hubs + hub * leaves + leaf);
        std::iter::once((0, 1 + hub)).chain((0..leaves).map(leaf))
    };
    network(1 + hubs + hubs * leaves, (0..hubs).flat_map(hub))
}

/// Every switch has links to so many others, drawn by a fixed rule.
fn jellyfish(n: usize, degree: usize) -> Network {
    network(
        n,
        (0..n)
            .flat_map(|at| (1..=degree).map(move |nth| (at, (at * 31 + nth * 7_919 + 1) % n)))
            .filter(|(a, b)| a != b),
    )
}

fn networks() -> Vec<(&'static str, Network)> {
    vec![
        ("one host", network(1, [])),
        ("ring of 300", ring(300)),
        ("ring of 3,000", ring(3_000)),
        ("chain of 1,500", network(1_500, (1..1_500).map(|at| (at - 1, at)))),
        ("clique of 60", network(60, (0..60).flat_map(|a| (0..a).map(move |b| (a, b))))),
        ("comb of 40 teeth of 25", comb(40, 25)),
        ("ladder of 700", ladder(700)),
        ("star of stars", star_of_stars(30, 30)),
        ("jellyfish with one link", jellyfish(500, 1)),
        ("jellyfish with four links", jellyfish(300, 4)),
        ("islands", network(600, (0..599).filter(|at| at % 4 != 3).map(|at| (at, at + 1)))),
        ("bundles", network(60, (0..59).flat_map(|at| std::iter::repeat_n((at, at + 1), 16)))),
        ("no links", network(500, [])),
    ]
}

/// Two firewalls and two balancers, spread over the network, and a chain that all traffic is under.
fn chains(switches: usize) -> ChainsDocument {
    let one = |nth: usize, kind: &str| BoxEntry {
        name: format!("box-{nth}"),
        kind: kind.to_owned(),
        at: format!("s{:05}", nth * switches / 5),
        bits_per_s: 1 << 50,
        up: true,
    };
    let boxes = vec![one(0, "FW"), one(1, "LB"), one(2, "FW"), one(4, "LB")];
    let chain = ChainEntry {
        name: "all".to_owned(),
        sequence: vec!["FW".to_owned(), "LB".to_owned()],
        ..ChainEntry::default()
    };
    ChainsDocument { groups: Vec::new(), boxes, chains: vec![chain] }
}

fn cluster(network: Network, chained: bool) -> EngineHarness {
    let mut harness = EngineHarness::new();
    let switches = network.switches();
    harness.change(Change::Network(Some(Arc::new(network))));
    let every = switches.div_ceil(NODES);
    for at in (0..switches).step_by(every) {
        let host = format!("h{at:05}");
        harness.change(Change::Register(registration(&host, &format!("/r{}", at / every / 8), 4_096)));
        harness.beat(&host, 0, Some(&[]));
    }
    harness.publish();
    if chained {
        // Where boxes do not reach each other the chain is refused, and all goes without.
        let change = Change::Chains { document: Arc::new(chains(switches)), in_use: Default::default() };
        let _ = harness.engine.change(change, harness.now);
    }
    harness.publish();
    harness
}

/// A shuffle of containers that each want a node of their own.
fn shuffle() -> HintRequest {
    let mut asked = request("ugly", &[("map", 12), ("reduce", 12)]);
    let edge =
        |bytes| GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: Bytes(bytes) };
    asked.edges = vec![edge(800 * GIB)];
    asked.constraints.max_per_node = 1;
    asked
}

/// A probe that says to stop from one look on, and notes what was done since the look before.
struct Watched<'a> {
    steps: &'a dyn Fn() -> u64,
    stop_at: u64,
    looks: u64,
    last: u64,
    longest: u64,
}

impl<'a> Watched<'a> {
    fn new(steps: &'a dyn Fn() -> u64, stop_at: u64) -> Self {
        Self { steps, stop_at, looks: 0, last: steps(), longest: 0 }
    }

    fn look(&mut self) -> bool {
        self.looks += 1;
        self.note();
        self.looks >= self.stop_at
    }

    fn note(&mut self) {
        let now = (self.steps)();
        self.longest = self.longest.max(now.saturating_sub(self.last));
        self.last = now;
    }

    /// The search is over: what it did after its last look counts too.
    fn check(&mut self, what: &str) -> u64 {
        self.note();
        assert!(self.longest <= STEPS, "{what}: {} steps between two looks", self.longest);
        let beyond = self.looks.saturating_sub(self.stop_at);
        assert!(beyond <= LOOKS, "{what}: {beyond} looks after the one that said to stop");
        self.longest
    }
}

/// Steps that the path table of a generation has taken.
fn table_steps(harness: &EngineHarness) -> impl Fn() -> u64 + use<> {
    let snapshot = Arc::clone(&harness.engine.generation().snapshot);
    move || snapshot.topology.made_paths().map_or(0, |table| table.steps())
}

fn policies() -> Vec<Box<dyn Policy>> {
    registry::entries().iter().map(|entry| registry::with_defaults(entry.name).unwrap()).collect()
}

/// Looks after which the probe says to stop.
const STOPS: [u64; 3] = [1, 2, 8];

fn for_each_cluster(mut each: impl FnMut(&str, &EngineHarness)) {
    for chained in [false, true] {
        for (name, network) in networks() {
            let name = format!("{name}{}", if chained { ", under chains" } else { "" });
            each(&name, &cluster(network, chained));
        }
    }
}

#[test]
fn every_policy_that_places_looks_at_its_probe_and_ends_soon_after_it() {
    let mut worst = (0, String::new(), 0);
    for_each_cluster(|name, harness| {
        let generation = harness.engine.generation();
        let (asked, settings) = (shuffle(), PlacerSettings::default());
        let of_request = compiled(&generation, (&asked, ["", ""]), &settings, harness.now).unwrap();
        for policy in policies() {
            let Some(place) = policy.as_place() else { continue };
            for stop_at in STOPS {
                let what = format!("{} on {name}, stopped at look {stop_at}", policy.name());
                let steps = table_steps(harness);
                let mut watched = Watched::new(&steps, stop_at);
                let mut probe = || watched.look();
                let mut budget = Budget::new(settings.steps, &mut probe);
                // Some can't work there at all, which is an answer.
                let found = place.place(&of_request.problem, &mut budget);
                let work = budget.longest();
                assert!(work <= WORK, "{what}: {work} units of work between two looks");
                if let Ok(found) = &found {
                    assert!(hintd_policy::check(&of_request.problem, found).is_empty(), "{what}: {found:?}");
                }
                let steps = watched.check(&what);
                if steps > worst.0 {
                    worst = (steps, what, work);
                }
            }
        }
    });
    println!("the most steps between two looks: {worst:?}");
}

#[test]
fn every_answer_ends_soon_after_the_probe_and_says_what_it_lacks() {
    let mut cut_short = 0;
    for_each_cluster(|name, harness| {
        let generation = harness.engine.generation();
        let (asked, settings) = (Arc::new(shuffle()), PlacerSettings::default());
        let baseline = registry::with_defaults("capacity").unwrap();
        for policy in policies() {
            let chosen = SelectedPolicy { policy: &*policy, baseline: &*baseline, mode: Mode::On, name: policy.name() };
            for stop_at in STOPS {
                let what = format!("an answer by {} on {name}, stopped at look {stop_at}", policy.name());
                let steps = table_steps(harness);
                let mut watched = Watched::new(&steps, stop_at);
                match propose(&generation, &asked, &chosen, &settings, harness.now, &mut || watched.look()) {
                    Ok(proposal) => {
                        let said = proposal.preview().degraded.iter().any(|token| token == "paths_cut_short");
                        cut_short += u32::from(said);
                    }
                    Err(Refusal::Chain { .. } | Refusal::Unavailable { .. } | Refusal::MissingFeed { .. }) => {}
                    Err(Refusal::Invalid { field, .. }) if field == "policy" => {}
                    Err(refusal) => panic!("{what}: {refusal}"),
                }
                watched.check(&what);
            }
        }
    });
    assert!(cut_short > 0, "some answer had no time for all of its paths");
}

#[test]
fn what_is_not_stopped_is_the_same_twice() {
    for (name, network) in [("ring", ring(120)), ("ladder", ladder(60)), ("comb", comb(10, 8))] {
        let harness = cluster(network, false);
        let answer = |policy: &dyn Policy, harness: &EngineHarness| {
            let baseline = registry::with_defaults("capacity").unwrap();
            let chosen = SelectedPolicy { policy, baseline: &*baseline, mode: Mode::On, name: policy.name() };
            let settings = PlacerSettings { steps: 200, ..PlacerSettings::default() };
            let generation = harness.engine.generation();
            let found = propose(&generation, &Arc::new(shuffle()), &chosen, &settings, harness.now, &mut || false);
            found.map(|proposal| serde_json::to_string(&proposal.preview()).unwrap()).map_err(|error| error.to_string())
        };
        for policy in ["cross_layer", "hit", "container"] {
            let policy = registry::with_defaults(policy).unwrap();
            let first = answer(&*policy, &harness);
            assert_eq!(first, answer(&*policy, &harness), "{name}: what the table keeps does not show");
            assert_eq!(first, answer(&*policy, &cluster_like(name)), "{name}: nor whose it is");
        }
    }
}

/// Another cluster of the same network, whose whole table was built.
fn cluster_like(name: &str) -> EngineHarness {
    let network = match name {
        "ring" => ring(120),
        "ladder" => ladder(60),
        _ => comb(10, 8),
    };
    let harness = cluster(network, false);
    let topology = &harness.engine.generation().snapshot.topology;
    assert!(topology.build_paths(&mut || false) && !topology.paths().unwrap().is_lazy());
    harness
}

#[test]
fn every_policy_that_routes_ends_soon_after_its_probe() {
    for_each_cluster(|name, harness| {
        let generation = harness.engine.generation();
        let snapshot = &*generation.snapshot;
        let nodes = snapshot.nodes() as u32;
        let kinds = snapshot.topology.chains.as_deref().map(|chains| chains.chain(hintd_model::units::ChainIdx(0)));
        let passes = kinds.map_or([None; 3], |chain| [Some(chain.sequence[0]), Some(chain.sequence[1]), None]);
        let flow = |at: u32| FlowDemand {
            from: NodeIdx(at % nodes),
            to: NodeIdx(at * 7_919 % nodes),
            bytes: Bytes(u64::from(at + 1) << 20),
            chain: Chain(passes),
        };
        let problem = RouteProblem { snapshot, flows: (0..400).map(flow).collect(), fixed: Vec::new(), seed: 1 };
        for policy in policies() {
            let Some(route) = policy.as_route() else { continue };
            for stop_at in STOPS {
                let what = format!("routes by {} on {name}, stopped at look {stop_at}", policy.name());
                let steps = table_steps(harness);
                let mut watched = Watched::new(&steps, stop_at);
                let mut probe = || watched.look();
                let mut budget = Budget::new(4_000, &mut probe);
                let _ = route.route(&problem, &mut budget);
                let work = budget.longest();
                assert!(work <= WORK, "{what}: {work} units of work between two looks");
                watched.check(&what);
            }
        }
    });
}

#[test]
fn every_policy_that_rebalances_ends_soon_after_its_probe() {
    for_each_cluster(|name, harness| {
        let generation = harness.engine.generation();
        let snapshot = &*generation.snapshot;
        let Some(chains) = snapshot.topology.chains.as_deref() else { return };
        let nodes = snapshot.nodes() as u32;
        let size = snapshot.statics.total[0];
        let running = |at: u32| Running {
            container: ContainerId { attempt: crate::testing::attempt(1, 1), id: u64::from(at) },
            node: NodeIdx(at % nodes),
            size,
            cooling: false,
            set: 0,
        };
        let traffic: Vec<ContainerTraffic> =
            (0..400).map(|at| ContainerTraffic { from: at % 60, to: at * 31 % 60, bytes: Bytes(GIB) }).collect();
        let problem = RebalanceProblem {
            snapshot,
            leases: &generation.leases,
            running: (0..60).map(running).collect(),
            allowed: Vec::new(),
            chains: vec![chains.find_chain("all"); traffic.len()],
            traffic,
            roots: Vec::new(),
            others: None,
            moves_max: 100,
            application_moves_max: 100,
            gain_min: 0.0,
            seed: 1,
        };
        for policy in policies() {
            let Some(rebalance) = policy.as_rebalance() else { continue };
            for stop_at in STOPS {
                let what = format!("moves by {} on {name}, stopped at look {stop_at}", policy.name());
                let steps = table_steps(harness);
                let mut watched = Watched::new(&steps, stop_at);
                let mut probe = || watched.look();
                let _ = rebalance.rebalance(&problem, &mut Budget::new(4_000, &mut probe));
                watched.check(&what);
            }
        }
    });
}

#[test]
fn what_if_of_a_network_ends_soon_after_its_probe() {
    for (name, network) in networks() {
        let mut harness = cluster(network, false);
        if harness.engine.generation().snapshot.nodes() > 24 {
            harness.ask(shuffle());
        }
        let generation = harness.publish();
        let link =
            generation.snapshot.topology.network.as_ref().unwrap().links().map(|(_, link)| link.name.clone()).last();
        let drain = Drain { links: link.into_iter().collect(), switches: vec!["s00000".into()] };
        for stop_at in STOPS {
            let steps = table_steps(&harness);
            let mut watched = Watched::new(&steps, stop_at);
            match what_if_network(&generation, &drain, &RouteSettings::default(), &mut || watched.look()) {
                Ok(_) | Err(Refusal::Unavailable { .. }) => {}
                Err(refusal) => panic!("{name}: {refusal}"),
            }
            watched.check(name);
        }
    }
}

#[test]
fn the_engine_looks_for_paths_a_bounded_number_of_steps_at_a_time_and_comes_back_for_the_rest() {
    let mut harness = cluster(ring(3_000), false);
    let generation = harness.engine.generation();
    let mut asked = shuffle();
    asked.groups.iter_mut().for_each(|group| group.count = 20);
    let asked = Arc::new(asked);
    let baseline = registry::with_defaults("capacity").unwrap();
    let policy = registry::with_defaults("spread").unwrap();
    let chosen = SelectedPolicy { policy: &*policy, baseline: &*baseline, mode: Mode::On, name: "spread" };
    // A placer that had no time for paths at all leaves them to the engine.
    let proposal =
        propose(&generation, &asked, &chosen, &PlacerSettings::default(), harness.now, &mut || true).unwrap();
    let steps = table_steps(&harness);
    let mut goes = vec![steps()];
    harness.commit(crate::Proposal { digest: 1, ..proposal });
    goes.push(steps());
    let lacking = |harness: &EngineHarness| {
        harness.engine.generation().flows.routes.iter().filter(|(_, route)| route.links.is_empty()).count()
    };
    harness.publish();
    let mut left = vec![lacking(&harness)];
    for _ in 0..40 {
        harness.pass(hintd_model::units::Micros::from_secs(1));
        harness.publish();
        goes.push(steps());
        left.push(lacking(&harness));
        if left.last() == Some(&0) {
            break;
        }
    }
    let most = goes.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    println!("at most {most} steps in one go; pairs without a route after each: {left:?}");
    assert!(most <= (1 << 24) + STEPS, "{most}");
    assert!(left[0] > 0 && left.last() == Some(&0), "{left:?}");
}

#[test]
fn an_option_of_the_path_table_bounds_each_of_its_sizes() {
    let PathTableOptions { most_ends, lazy_bytes, most_walks, most_pair_steps, most_steps, most_bytes, .. } =
        PathTableOptions::default();
    assert_eq!((most_ends, lazy_bytes, most_bytes), (1_024, 64 << 20, 128 << 20), "docs/limits.md has them");
    assert_eq!((most_walks, most_pair_steps, most_steps), (1 << 14, 1 << 20, 1 << 29), "docs/limits.md has them");
}
