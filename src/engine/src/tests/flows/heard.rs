//! Flows of answers that reached nobody: they are on no link, until a repeat has fetched the answer.

use super::super::harness::{EngineHarness, container, running};
use super::controller::Controller;
use super::{MIB, done, fat_tree, flows, network, routes, shuffle, wired};
use crate::testing::attempt;
use crate::{Answer, Counter, LinkUse, RouteSettings, TaskWhat, link_uses};
use hintd_model::cluster::{ChainPair, Change, NodePair};
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::network::chains::{BoxEntry, ChainEntry, ChainsDocument, WaypointRoute};
use hintd_model::units::{DecisionId, DirectedLinkIdx, HostName, Micros};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn reached(harness: &mut EngineHarness, answer: &Answer, reached: bool) {
    harness.engine.answer_reached(answer.decision.id, reached, harness.now);
    harness.drain();
    harness.publish();
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    let settings = harness.settings.routes.clone();
    harness.engine.flows_mut().check((&snapshot, &settings));
}

/// What placers and operators see of links, pairs and jobs.
#[derive(Debug, PartialEq)]
struct Seen {
    links: Vec<LinkUse>,
    routes: Vec<(NodePair, Arc<[DirectedLinkIdx]>, u64)>,
    chained: Vec<(ChainPair, Option<WaypointRoute>)>,
    jobs: Vec<DecisionId>,
    /// Where a request that comes now would be placed. How sure that is depends on how old heartbeats are, too.
    next: Vec<(Arc<str>, u32, HostName)>,
}

fn seen(harness: &EngineHarness) -> Seen {
    let flows = flows(harness);
    let route = |(pair, route): (NodePair, Arc<hintd_model::cluster::PairRoute>)| {
        (pair, Arc::clone(&route.links), route.bytes.0)
    };
    let next = harness.propose(&Arc::new(shuffle(9, "next", (4, 4), 80 * MIB))).unwrap().preview().hints;
    Seen {
        links: link_uses(&harness.engine.generation()),
        routes: routes(harness).into_iter().map(route).collect(),
        chained: flows.chained.routes.iter().map(|(key, route)| (key.clone(), route.way.clone())).collect(),
        jobs: flows.jobs.iter().map(|job| job.decision).collect(),
        next: next.into_iter().map(|hint| (hint.group, hint.count, hint.host)).collect(),
    }
}

#[test]
fn flows_of_an_answer_that_reached_nobody_end_at_once_and_are_as_those_of_a_delivered_one_once_a_repeat_has_it() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "runs", (4, 2), 80 * MIB));
    let before = seen(&harness);
    let answer = harness.ask(shuffle(2, "late", (4, 4), 800 * MIB));
    let (delivered, leases) = (seen(&harness), harness.leases());
    assert!(delivered.links != before.links && delivered.routes.len() > before.routes.len());
    reached(&mut harness, &answer, false);
    let late = seen(&harness);
    assert_eq!(late.jobs, before.jobs);
    assert_eq!((late.links, late.routes), (before.links, before.routes));
    assert_eq!(harness.leases(), leases, "its leases stay, for a repeat");
    reached(&mut harness, &answer, false);
    harness.pass(Micros::from_secs(2));
    assert_eq!(seen(&harness).jobs, before.jobs, "said twice, and looked for containers");
    reached(&mut harness, &answer, true);
    assert_eq!(seen(&harness), delivered);
    reached(&mut harness, &answer, true);
    assert_eq!(seen(&harness), delivered, "said twice");
    done(&mut harness, 2);
    assert_eq!(seen(&harness).jobs, before.jobs);
}

#[test]
fn what_reached_nobody_takes_no_room_of_boxes_and_is_under_its_chain_again_afterwards() {
    let built = build::fat_tree(&FatTreeSpec::default()).unwrap();
    let host = built.network.vertex(built.racks[0].1[0].as_str()).unwrap();
    let at = built.network.vertex_at(built.network.attachment(host).unwrap()).name.to_string();
    let one = BoxEntry { name: "fw".into(), kind: "FW".into(), at, bits_per_s: 10_000_000_000, up: true };
    let chain = ChainEntry { name: "all".into(), sequence: vec!["FW".into()], ..ChainEntry::default() };
    let document = Arc::new(ChainsDocument { boxes: vec![one], chains: vec![chain], ..ChainsDocument::default() });
    let mut harness = wired(RouteSettings::default(), built, 16 * 1024);
    let declare = || Change::Chains { document: Arc::clone(&document), in_use: Default::default() };
    harness.change(declare());
    harness.publish();
    let before = flows(&harness).chained.loads.clone();
    let answer = harness.ask(shuffle(2, "late", (2, 2), 80 * MIB));
    let (delivered, loads) = (seen(&harness), flows(&harness).chained.loads.clone());
    assert!(delivered.chained.iter().any(|(_, way)| way.is_some()) && before != loads, "{delivered:?}");
    reached(&mut harness, &answer, false);
    assert_eq!((seen(&harness).chained.len(), flows(&harness).chained.loads.clone()), (0, before));
    reached(&mut harness, &answer, true);
    assert_eq!((seen(&harness), flows(&harness).chained.loads.clone()), (delivered, loads));
    // Boxes that are declared anew, and a network that is told anew, have other indexes.
    for change in [declare(), Change::Network(Some(network(&harness)))] {
        reached(&mut harness, &answer, false);
        harness.change(change);
        harness.publish();
        reached(&mut harness, &answer, true);
        harness.pass(Micros::from_secs(1));
        harness.publish();
        assert!(seen(&harness).chained.iter().all(|(_, way)| way.is_some()) && !seen(&harness).chained.is_empty());
    }
}

#[test]
fn what_happens_while_nobody_has_the_answer_holds_for_its_flows_too() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let answer = harness.ask(shuffle(1, "late", (4, 2), 80 * MIB));
    reached(&mut harness, &answer, false);
    let lost = answer.decision.hints[0].host.clone();
    harness.change(Change::Gone(lost));
    harness.publish();
    reached(&mut harness, &answer, true);
    let bytes: u64 = routes(&harness).iter().map(|(_, route)| route.bytes.0).sum();
    assert_eq!((routes(&harness).len(), bytes), (6, 60 * MIB), "a sender of four is lost");
    done(&mut harness, 1);
    // Nothing begins where nothing was promised.
    let failed = harness.ask(shuffle(2, "failed", (2, 2), 80 * MIB));
    reached(&mut harness, &failed, false);
    harness.engine.undo(failed.decision.id, harness.now);
    reached(&mut harness, &failed, true);
    assert!(routes(&harness).is_empty());
    // Without leases and containers they end after a while, as those of any other.
    let idle = harness.ask(shuffle(3, "idle", (2, 2), 80 * MIB));
    reached(&mut harness, &idle, false);
    harness.give_back(attempt(3, 1), &[]);
    (0..70).for_each(|_| harness.pass(Micros::from_secs(1)));
    reached(&mut harness, &idle, true);
    assert!(routes(&harness).is_empty());
}

#[test]
fn what_nobody_was_told_of_is_not_left_out_for_others_and_leaves_others_out_once_it_sends() {
    let settings = RouteSettings { pairs_max: 4, ..RouteSettings::default() };
    let mut harness = fat_tree(settings, 1024); // one container a host: no two talk over the same pair
    let kept = |harness: &EngineHarness| {
        let jobs: Vec<DecisionId> = flows(harness).jobs.iter().map(|job| job.decision).collect();
        (jobs, harness.count(Counter::FlowsEvicted))
    };
    let answer = harness.ask(shuffle(1, "late", (2, 2), 80 * MIB));
    reached(&mut harness, &answer, false);
    let second = harness.ask(shuffle(2, "runs", (2, 2), 80 * MIB));
    assert_eq!(kept(&harness), (vec![second.decision.id], 0));
    let third = harness.ask(shuffle(3, "too", (2, 2), 80 * MIB));
    assert_eq!(kept(&harness), (vec![third.decision.id], 1));
    reached(&mut harness, &answer, true);
    assert_eq!(kept(&harness), (vec![answer.decision.id], 2));
}

/// Jobs that nobody was told of, and pairs whose routes are kept for them.
fn unheard(harness: &mut EngineHarness) -> (usize, usize) {
    harness.engine.flows_mut().unheard()
}

#[test]
fn what_nobody_was_told_of_ends_some_time_after_its_leases_whatever_else_of_its_attempt_runs() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let late = harness.ask(shuffle(1, "late", (2, 2), 80 * MIB));
    let told = harness.ask(shuffle(1, "told", (2, 2), 80 * MIB));
    reached(&mut harness, &late, false);
    assert_eq!(unheard(&mut harness), (1, 4));
    let host = told.decision.hints[0].host.clone();
    for _ in 0..120 {
        harness.pass(Micros::from_secs(1));
        for name in harness.engine.current_snapshot().statics.host.clone() {
            let runs = [running(container(attempt(1, 1), 1))];
            let runs = if name == host { &runs[..] } else { &[] };
            harness.beat(name.as_str(), 1024 * runs.len() as u64, Some(runs));
        }
    }
    harness.publish();
    assert_eq!(unheard(&mut harness), (0, 0));
    assert_eq!(seen(&harness).jobs, [told.decision.id], "containers of the attempt run");
}

#[test]
fn what_nobody_was_told_of_ends_with_the_answer_that_a_repeat_could_fetch() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.settings.answers_keep = Micros::from_secs(10);
    harness.engine.reload(harness.settings.clone(), harness.now);
    let late = harness.ask(shuffle(1, "late", (2, 2), 80 * MIB));
    reached(&mut harness, &late, false);
    harness.give_back(attempt(1, 1), &[]);
    harness.pass(Micros::from_secs(5));
    assert_eq!(unheard(&mut harness), (1, 4));
    (0..10).for_each(|_| harness.pass(Micros::from_secs(1)));
    assert_eq!(unheard(&mut harness), (0, 0), "long before `keep_flows`");
}

#[test]
fn routes_that_are_kept_for_repeats_count_among_the_pairs_and_go_first_oldest_first() {
    let settings = RouteSettings { pairs_max: 8, ..RouteSettings::default() };
    let mut harness = fat_tree(settings, 1024); // one container a host: no two talk over the same pair
    for (application, id) in [(1, "a"), (2, "b")] {
        let late = harness.ask(shuffle(application, id, (2, 2), 80 * MIB));
        reached(&mut harness, &late, false);
    }
    assert_eq!(unheard(&mut harness), (2, 8));
    let told = harness.ask(shuffle(3, "told", (2, 2), 80 * MIB));
    assert_eq!(unheard(&mut harness), (2, 4));
    assert_eq!((seen(&harness).jobs, harness.count(Counter::FlowsEvicted)), (vec![told.decision.id], 0));
}

#[test]
fn containers_that_come_elsewhere_are_of_jobs_whose_hints_somebody_saw() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let late = harness.ask(shuffle(1, "late", (2, 2), 80 * MIB));
    let told = harness.ask(shuffle(1, "told", (2, 2), 80 * MIB));
    let mut hinted: Vec<HostName> = late.decision.hints.iter().map(|hint| hint.host.clone()).collect();
    hinted.extend(told.decision.hints.iter().map(|hint| hint.host.clone()));
    let hosts: Vec<HostName> = harness.engine.current_snapshot().statics.host.to_vec();
    let free: Vec<HostName> = hosts.into_iter().filter(|host| !hinted.contains(host)).take(2).collect();
    for (host, id) in free.iter().zip(1..) {
        let (host, container) = (host.as_str().into(), container(attempt(1, 1), id));
        harness.event(attempt(1, 1), "map", TaskWhat::Allocated { host, container, lease: None });
    }
    let came: BTreeSet<String> = free.iter().map(ToString::to_string).collect();
    let senders = |harness: &mut EngineHarness, answer: &Answer| -> BTreeSet<String> {
        harness.pass(Micros::from_secs(2));
        harness.publish();
        let (snapshot, flows) = (Arc::clone(harness.engine.current_snapshot()), flows(harness));
        let job = flows.jobs.iter().find(|job| job.decision == answer.decision.id).unwrap();
        let senders = job.traffic.flows.iter().map(|flow| snapshot.host(flow.pair.from).to_string());
        senders.collect()
    };
    assert_eq!(senders(&mut harness, &late), came, "the oldest waits longest");
    reached(&mut harness, &late, false);
    assert_eq!(senders(&mut harness, &told), came);
    reached(&mut harness, &late, true);
    assert_eq!(senders(&mut harness, &late), came);
    assert!(senders(&mut harness, &told).is_disjoint(&came));
}

#[test]
fn controllers_are_told_that_routes_of_what_reached_nobody_end_and_begin_again() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    let answer = harness.ask(shuffle(1, "late", (4, 2), 80 * MIB));
    controller.hear(&mut harness);
    let told = controller.routes.clone();
    assert_eq!(told.len(), 8);
    controller.settle(&mut harness);
    reached(&mut harness, &answer, false);
    controller.hear(&mut harness);
    assert!(controller.routes.is_empty());
    controller.settle(&mut harness);
    reached(&mut harness, &answer, true);
    controller.hear(&mut harness);
    assert_eq!(controller.routes, told, "the answer names these");
}

#[test]
fn tasks_placed_anew_of_a_job_whose_answer_reached_nobody_send_when_both_are_known() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let answer = harness.ask(shuffle(1, "late", (4, 2), 80 * MIB));
    let bytes = |harness: &EngineHarness| -> BTreeMap<DecisionId, u64> {
        let of = |job: &Arc<hintd_model::cluster::JobFlows>| {
            (job.decision, job.traffic.flows.iter().map(|flow| flow.bytes.0).sum())
        };
        flows(harness).jobs.iter().map(of).collect()
    };
    let whole = BTreeMap::from([(answer.decision.id, 80 * MIB)]);
    assert_eq!(bytes(&harness), whole);
    harness.change(Change::Gone(answer.decision.hints[0].host.clone()));
    harness.publish();
    let again = harness.replaced().pop().unwrap();
    let anew = harness.propose(&again).unwrap();
    harness.commit(anew);
    reached(&mut harness, &answer, false);
    assert_eq!(bytes(&harness).values().sum::<u64>(), 0, "a sender that nobody is known to listen to");
    reached(&mut harness, &answer, true);
    assert_eq!(bytes(&harness), whole);
}
