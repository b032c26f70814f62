//! Searches on the engine's own thread: each call takes a bounded number of steps, what is left over is gone on with at later
//! ticks, and what comes of it in the end is what would have come of it at once.

use super::super::flows::controller::NAME;
use super::super::flows::updates;
use super::super::harness::EngineHarness;
use super::{STEPS, cluster, jellyfish, networks, ring, shuffle};
use crate::routes::PATH_STEPS_IN_ONE_GO;
use crate::{Refusal, RouteUpdate, WatchScope, WatchedPair};
use hintd_model::cluster::Change;
use hintd_model::network::chains::{BoxEntry, ChainEntry, ChainsDocument, WhenBroken};
use hintd_model::network::{Network, shortest_path_seeded};
use hintd_model::units::{LinkIdx, LinkName, Micros};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Work and steps that the engine may do between two ticks, far fewer than docs/limits.md has so that tests are short; and
/// what it does between two looks at them.
const ALLOWED: u64 = 1 << 18;
const IN_ONE_GO: u64 = ALLOWED + STEPS;

/// So many firewalls and as many balancers, one after the other over the network's switches, for a chain of all traffic.
fn chains(switches: usize, boxes: usize, when_broken: WhenBroken) -> ChainsDocument {
    let one = |nth: usize| BoxEntry {
        name: format!("box-{nth}"),
        kind: if nth.is_multiple_of(2) { "FW" } else { "LB" }.to_owned(),
        at: format!("s{:05}", nth * switches / (2 * boxes)),
        bits_per_s: 1 << 50,
        up: true,
    };
    let chain = ChainEntry {
        name: "all".to_owned(),
        sequence: vec!["FW".to_owned(), "LB".to_owned()],
        when_broken,
        ..ChainEntry::default()
    };
    ChainsDocument { groups: Vec::new(), boxes: (0..2 * boxes).map(one).collect(), chains: vec![chain] }
}

/// What the engine has searched for ways under chains so far: work, and steps of the path table.
fn searched(harness: &mut EngineHarness) -> u64 {
    harness.engine.chain_work()
}

/// Pairs under chains without a way.
fn lacking(harness: &EngineHarness) -> usize {
    let flows = &harness.engine.generation().flows;
    flows.chained.routes.iter().filter(|(_, route)| route.way.is_none()).count()
}

/// Ticks until nobody waits for a way; the most that one call searched.
fn settle(harness: &mut EngineHarness, what: &str) -> (u64, usize) {
    let (mut most, mut ticks) = (0, 0);
    while harness.engine.waits_for_ways() {
        let before = searched(harness);
        harness.pass(Micros::from_millis(100));
        harness.publish();
        most = most.max(searched(harness) - before);
        ticks += 1;
        assert!(ticks < 2_000, "{what}: it never ends");
    }
    (most, ticks)
}

#[test]
fn ways_under_chains_are_looked_for_a_bounded_number_of_steps_at_a_time() {
    let mut waited = 0;
    for (name, network) in networks() {
        let (switches, link) = (network.switches(), network.links().map(|(_, link)| link.name.clone()).last());
        if switches > 1_000 {
            continue; // the same, and long
        }
        let mut harness = cluster(network, false);
        harness.engine.bound_chain_work(ALLOWED);
        let nodes = harness.engine.generation().snapshot.nodes();
        if nodes < 24 {
            continue;
        }
        let mut asked = shuffle();
        let each = (nodes / 2).min(12) as u32;
        asked.groups.iter_mut().for_each(|group| group.count = each);
        harness.ask(asked);
        let mut check = |harness: &mut EngineHarness, what: &str, before: u64| {
            harness.publish();
            let at_once = searched(harness) - before;
            let (most, ticks) = settle(harness, what);
            println!(
                "{what} on {name}: {at_once} at once, {most} at most in {ticks} ticks, {} without",
                lacking(harness)
            );
            assert!(at_once.max(most) <= IN_ONE_GO, "{what} on {name}: {at_once}, {most}");
            waited += ticks;
        };
        // Chains that all traffic is under; then others; then a link fails; then the network is another one.
        for (what, boxes) in [("declared", 2), ("declared anew", 6)] {
            let before = searched(&mut harness);
            let change = Change::Chains {
                document: Arc::new(chains(switches, boxes, WhenBroken::Open)),
                in_use: BTreeMap::new(),
            };
            if harness.engine.change(change, harness.now).is_err() {
                continue; // where boxes do not reach each other the chain is refused
            }
            harness.drain();
            check(&mut harness, what, before);
        }
        let Some(link) = link else { continue };
        for up in [false, true] {
            let before = searched(&mut harness);
            harness.change(Change::Link { link: link.clone(), up: Some(up), capacity: None });
            check(&mut harness, "a link", before);
        }
        if name.starts_with("ring") {
            assert_eq!(lacking(&harness), 0, "{name}: every pair has its way in the end");
        }
    }
    assert!(waited > 0, "somewhere there was more to do than one call may");
}

#[test]
fn what_waits_for_its_way_gets_the_one_it_would_have_had_at_once() {
    let ways = |in_one_go: u64| {
        let mut harness = cluster(jellyfish(300, 4), false);
        harness.ask(shuffle());
        harness.engine.bound_chain_work(in_one_go);
        let document = Arc::new(chains(300, 6, WhenBroken::Closed));
        harness.change(Change::Chains { document, in_use: BTreeMap::new() });
        harness.publish();
        let missing = lacking(&harness);
        let (_, ticks) = settle(&mut harness, "jellyfish");
        let flows = Arc::clone(&harness.engine.generation().flows);
        let ways: Vec<_> = flows.chained.routes.iter().map(|(key, route)| (key.clone(), route.way.clone())).collect();
        assert!(ways.len() > 100 && ways.iter().all(|(_, way)| way.is_some()));
        (ways, missing, ticks)
    };
    let (at_once, missing, ticks) = ways(u64::MAX);
    assert_eq!((missing, ticks), (0, 0));
    let (by_and_by, missing, ticks) = ways(40_000);
    assert!(missing > 0 && ticks > 1, "{missing} had to wait, {ticks} ticks");
    let sorted = |mut ways: Vec<_>| {
        ways.sort_by(|a: &(hintd_model::cluster::ChainPair, _), b| a.0.cmp(&b.0));
        ways
    };
    assert_eq!(sorted(by_and_by), sorted(at_once));
}

#[test]
fn an_answer_whose_ways_are_gone_is_refused_rather_than_searched_for_without_end() {
    let mut harness = cluster(ring(300), true);
    let proposal = harness.propose(&Arc::new(shuffle())).unwrap();
    harness.engine.bound_chain_work(1);
    // Every way that the placer found is broken by now.
    harness.change(Change::Switch { name: "s00060".into(), up: false });
    harness.publish();
    let before = searched(&mut harness);
    let outcome = harness.commit(crate::Proposal { digest: 1, ..proposal });
    assert!(searched(&mut harness) - before <= IN_ONE_GO);
    match outcome {
        crate::CommitOutcome::Refused(Refusal::Unavailable { message, .. }) => {
            assert!(message.contains("before a way under chain \"all\" was found"), "{message}");
        }
        crate::CommitOutcome::Refused(Refusal::Chain { .. }) | crate::CommitOutcome::Committed(_) => {
            panic!("nobody had the time to know")
        }
        other => println!("{other:?}"),
    }
}

/// Pairs of hosts that are drawn by a fixed rule, by host name.
fn drawn(network: &Network, most: usize) -> Vec<WatchedPair> {
    let hosts = network.switches();
    let name = |at: usize| format!("h{:05}", at % hosts).as_str().into();
    let mut pairs: Vec<WatchedPair> = (0..most)
        .map(|at| WatchedPair { src: name(at * 7_919 + at / hosts), dst: name(at * 31 + 1), class: "".into() })
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// What a watcher that installs nothing was told: links by pair.
type RoutesTold = BTreeMap<WatchedPair, Vec<LinkName>>;

fn apply(update: &RouteUpdate, told: &mut RoutesTold) {
    if update.snapshot {
        told.clear();
    }
    told.extend(update.routes.iter().map(|route| (route.pair.clone(), route.links.clone())));
    update.removed.iter().for_each(|pair| drop(told.remove(pair)));
}

#[test]
fn paths_of_watched_pairs_are_looked_for_a_bounded_number_of_steps_at_a_time() {
    let mut waited = 0;
    for (name, network) in networks() {
        let network = Arc::new(network);
        let mut harness = EngineHarness::new();
        harness.change(Change::Network(Some(Arc::clone(&network))));
        harness.publish();
        // One search looks at every vertex and link at most twice, and at one path.
        let most = PATH_STEPS_IN_ONE_GO + 4 * (network.vertex_rows() + 2 * network.link_rows()) as u64;
        let pairs = drawn(&network, 600);
        let mut told = BTreeMap::new();
        let before = harness.engine.watch_steps();
        let scope = WatchScope { pairs: pairs.clone(), ..WatchScope::default() };
        harness.engine.watch(NAME, scope, harness.now).unwrap().iter().for_each(|update| apply(update, &mut told));
        let mut goes = vec![harness.engine.watch_steps() - before];
        let settle = |harness: &mut EngineHarness, goes: &mut Vec<u64>, told: &mut RoutesTold| {
            while harness.engine.waits_for_paths() {
                let before = harness.engine.watch_steps();
                harness.pass(Micros::from_millis(100));
                goes.push(harness.engine.watch_steps() - before);
                assert!(goes.len() < 2_000, "{name}: it never ends");
            }
            harness.pass(Micros::from_millis(100));
            updates(harness, NAME).iter().for_each(|update| apply(update, told));
        };
        settle(&mut harness, &mut goes, &mut told);
        let vertex = |host: &hintd_model::units::HostName| network.vertex(host.as_str()).unwrap();
        for pair in pairs.iter().step_by(7) {
            let path = shortest_path_seeded(&network, vertex(&pair.src), vertex(&pair.dst), 0);
            let names =
                path.map(|path| path.links.iter().map(|&link| network.link_at(link).name.clone()).collect::<Vec<_>>());
            assert_eq!(told.get(pair), Some(&names.unwrap_or_default()), "{name}: {pair:?}");
        }
        // A link in the midst of it fails and comes back.
        let link = network.link_at(LinkIdx((network.link_rows() * 3 / 4) as u32)).name.clone();
        for up in [false, true] {
            let before = harness.engine.watch_steps();
            harness.change(Change::Link { link: link.clone(), up: Some(up), capacity: None });
            harness.publish();
            goes.push(harness.engine.watch_steps() - before);
            settle(&mut harness, &mut goes, &mut told);
        }
        println!("{name}: {} pairs, {} goes, {:?} steps at most", pairs.len(), goes.len(), goes.iter().max());
        assert!(goes.iter().all(|&steps| steps <= most), "{name}: {goes:?}");
        waited += goes.len() - 3;
    }
    assert!(waited > 0, "somewhere there was more to do than one call may");
}
