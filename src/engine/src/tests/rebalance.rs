//! Moves proposed for running containers, and applications told that their chains are broken.

use super::flows::{shuffle, wired};
use super::harness::{EngineHarness, container};
use crate::testing::attempt;
use crate::{
    Counter, Effect, FollowBody, MoveNote, ProposedMove, RebalanceSettings, Round, RoundOutcome, RouteSettings,
};
use hintd_model::cluster::{Change, HintRequest, NamedContainer, NamedResource};
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::network::chains::{BoxEntry, ChainEntry, ChainsDocument, Direction};
use hintd_model::units::{BitsPerSec, ContainerId, LinkIdx, Micros, NodeIdx, SchedulerKey};
use hintd_policy::{Policy, registry};
use std::sync::Arc;

const EVERY: Micros = Micros::from_secs(5);
const COOL_DOWN: Micros = Micros::from_secs(60);
/// Maps and reduces of each application.
const EACH: u64 = 2;

/// All that is worth anything, and much of it.
pub(super) const MANY: RebalanceSettings = RebalanceSettings {
    enabled: true,
    latency: false,
    every: EVERY,
    gain_min_per_million: 1_000,
    moves_per_round: 100,
    moves_per_application: 100,
    cool_down: COOL_DOWN,
};

fn pat() -> Arc<dyn Policy> {
    registry::with_defaults("pat").unwrap().into()
}

fn inbound() -> ChainEntry {
    ChainEntry {
        name: "inbound".to_owned(),
        group: Some("reduce".to_owned()),
        direction: Direction::In,
        sequence: vec!["FW".to_owned()],
        ..ChainEntry::default()
    }
}

/// Applications whose tasks all run in the first rack, where one firewall stands; the other stands in the last.
pub(super) fn settled(settings: RebalanceSettings, applications: u32, ask: impl Fn(&mut HintRequest)) -> EngineHarness {
    let built = build::fat_tree(&FatTreeSpec::default()).unwrap();
    let switch = |rack: usize| {
        let host = built.network.vertex(built.racks[rack].1[0].as_str()).unwrap();
        built.network.vertex_at(built.network.attachment(host).unwrap()).name.to_string()
    };
    let entry = |name: &str, at: String| BoxEntry {
        name: name.to_owned(),
        kind: "FW".to_owned(),
        at,
        bits_per_s: 10_000_000_000,
        up: true,
    };
    let boxes = vec![entry("near", switch(0)), entry("far", switch(built.racks.len() - 1))];
    let document = ChainsDocument { boxes, chains: vec![inbound()], ..ChainsDocument::default() };
    let [first, second] = [0, 1].map(|host| built.racks[0].1[host].clone());
    let mut harness = wired(RouteSettings::default(), built, 65_536);
    harness.settings.rebalance = settings;
    (harness.settings.stale_after, harness.settings.lost_after) = (Micros::from_secs(3_600), Micros::from_secs(3_600));
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.change(Change::Chains { document: Arc::new(document), in_use: Default::default() });
    harness.publish();
    for application in 1..=applications {
        let (maps, reduces) = (EACH as u32, EACH as u32);
        let mut request = shuffle(application, &format!("job-{application}"), (maps, reduces), 800 << 20);
        request.constraints.spread = false;
        ask(&mut request);
        harness.ask(request);
    }
    for (at, host) in (0_u64..).zip([first, second]) {
        let ids = (1..=applications).flat_map(|app| (1..=EACH).map(move |id| (app, id)));
        let runs: Vec<_> = ids.map(|(app, id)| runs(app, at * EACH + id, at as i32 + 1)).collect();
        harness.beat(host.as_str(), runs.len() as u64 * 1_024, Some(&runs));
    }
    harness.publish();
    harness
}

fn runs(application: u32, id: u64, priority: i32) -> NamedContainer {
    NamedContainer {
        id: container(attempt(application, 1), id),
        size: NamedResource { memory_mb: 1_024, vcores: 1, named: Vec::new() },
        key: SchedulerKey { priority, allocation_request_id: -1 },
    }
}

fn turn(harness: &mut EngineHarness, name: &str, up: bool) {
    harness.change(Change::Middlebox { name: name.into(), up: Some(up), capacity: None::<BitsPerSec> });
    harness.publish();
}

/// The round that begins after its time, if one does.
fn begun(harness: &mut EngineHarness) -> Option<Arc<Round>> {
    harness.pass(EVERY);
    let round = harness.out.iter().position(|effect| matches!(effect, Effect::Rebalance(_)))?;
    match harness.out.remove(round) {
        Effect::Rebalance(round) => Some(round),
        _ => unreachable!("it was just looked at"),
    }
}

fn search(round: &Round) -> RoundOutcome {
    let policy = pat();
    round.search(|_| Some(("pat", Arc::clone(&policy))), 100_000, &mut || false)
}

fn take(harness: &mut EngineHarness, number: u64, found: &RoundOutcome) -> Vec<(ContainerId, String, f64)> {
    harness.engine.rebalanced(number, found, harness.now);
    harness.drain();
    let mut told = Vec::new();
    harness.out.retain(|effect| match effect {
        Effect::Follow { attempt, message: FollowBody::Move(told_of), cause } => {
            let MoveNote { container, to, gain, chain, .. } = &**told_of;
            assert_eq!((*attempt, *cause, &**chain), (container.attempt, "rebalance", "inbound"));
            told.push((*container, to.to_string(), *gain));
            false
        }
        _ => true,
    });
    told
}

/// A whole round.
fn round(harness: &mut EngineHarness) -> Vec<(ContainerId, String, f64)> {
    let round = begun(harness).expect("a round is due");
    let found = search(&round);
    take(harness, round.number, &found)
}

fn rack_of(harness: &EngineHarness, host: &str) -> usize {
    let snapshot = harness.engine.current_snapshot();
    snapshot.rack(snapshot.statics.find(host).unwrap()).at()
}

#[test]
fn containers_beside_a_box_that_died_are_proposed_to_go_beside_the_other() {
    let mut harness = settled(MANY, 1, |_| ());
    assert_eq!(round(&mut harness), [], "all is well as it is");
    turn(&mut harness, "near", false);
    let told = round(&mut harness);
    assert_eq!(told.len(), 2 * EACH as usize, "{told:?}");
    let far = harness.engine.current_snapshot().statics.racks.len() - 1;
    assert!(told.iter().all(|(_, to, _)| rack_of(&harness, to) == far), "{told:?}");
    let gains: f64 = told.iter().map(|(_, _, gain)| gain).sum();
    assert!(told.windows(2).all(|two| two[0].2 >= two[1].2) && gains > 0.5 && gains <= 1.0 + 1e-9, "{told:?}");
    assert_eq!(harness.count(Counter::MovesProposed), told.len() as u64);
    assert_eq!(harness.count(Counter::RebalanceRounds), 2);
    assert_eq!(harness.engine.counts().leases, 2 * EACH as usize, "nothing is leased for a move");
}

#[test]
fn without_being_asked_to_nothing_is_looked_for() {
    let mut harness = settled(RebalanceSettings { enabled: false, ..MANY }, 1, |_| ());
    turn(&mut harness, "near", false);
    assert_eq!(begun(&mut harness), None);
    let mut none = settled(MANY, 0, |_| ());
    assert_eq!(begun(&mut none), None, "nothing runs under a chain");
}

/// A found round in which every container of all applications is to go to the last node.
fn all(harness: &EngineHarness, applications: u32) -> RoundOutcome {
    let to = NodeIdx::new(harness.engine.current_snapshot().nodes() - 1);
    let ids = (1..=applications).flat_map(|app| (1..=2 * EACH).map(move |id| (app, id)));
    let step = |(app, id): (u32, u64)| {
        let container = container(attempt(app, 1), id);
        let from =
            harness.engine.current_snapshot().applications.get(&container.attempt).unwrap().containers[&container].node;
        ProposedMove { container, from, to, gain: 0.2, chain: "inbound".into(), performance: None }
    };
    RoundOutcome { moves: ids.map(step).collect(), ..RoundOutcome::default() }
}

#[test]
fn a_round_proposes_no_more_than_its_bound_whatever_was_found() {
    for bound in [1, 3] {
        let mut harness = settled(RebalanceSettings { moves_per_round: bound, ..MANY }, 2, |_| ());
        turn(&mut harness, "near", false);
        assert_eq!(round(&mut harness).len(), bound, "of what a policy finds");
        let begun = begun(&mut harness).unwrap();
        let found = all(&harness, 2);
        assert_eq!(take(&mut harness, begun.number, &found).len(), bound);
    }
}

#[test]
fn an_application_is_proposed_no_more_than_its_bound_and_others_get_theirs() {
    let mut harness = settled(RebalanceSettings { moves_per_application: 1, ..MANY }, 3, |_| ());
    turn(&mut harness, "near", false);
    let each = |told: Vec<(ContainerId, String, f64)>| {
        let mut each: Vec<_> = told.iter().map(|(id, ..)| id.attempt.application.sequence).collect();
        each.sort_unstable();
        each
    };
    assert_eq!(each(round(&mut harness)), [1, 2, 3], "of what a policy finds");
    let begun = begun(&mut harness).unwrap();
    let found = all(&harness, 3);
    assert_eq!(each(take(&mut harness, begun.number, &found)), [1, 2, 3]);
}

#[test]
fn what_gains_less_than_the_threshold_is_not_proposed() {
    let mut harness = settled(RebalanceSettings { gain_min_per_million: 300_000, ..MANY }, 1, |_| ());
    turn(&mut harness, "near", false);
    let first = begun(&mut harness).unwrap();
    assert_eq!(search(&first).moves, [], "each saves a fourth");
    let found = all(&harness, 1);
    assert_eq!(take(&mut harness, first.number, &found), []);
    let mut found = all(&harness, 1);
    found.moves[0].gain = f64::NAN;
    found.moves[1].gain = 0.3;
    let second = begun(&mut harness).unwrap();
    assert_eq!(take(&mut harness, second.number, &found).len(), 1, "that one is worth it; what is no number is not");
}

#[test]
fn a_container_is_not_proposed_again_before_it_has_cooled_down() {
    let mut harness = settled(MANY, 1, |_| ());
    turn(&mut harness, "near", false);
    let first = round(&mut harness);
    assert!(!first.is_empty());
    for _ in 0..COOL_DOWN.0 / EVERY.0 - 1 {
        let next = begun(&mut harness).unwrap();
        assert_eq!(search(&next).moves, [], "a policy leaves them alone");
        let found = all(&harness, 1);
        assert_eq!(take(&mut harness, next.number, &found), [], "and if it does not, they are not proposed");
    }
    let again = round(&mut harness);
    assert_eq!(again.len(), first.len(), "they still sit badly");
}

#[test]
fn a_move_that_was_followed_is_counted_and_what_came_cools_down_too() {
    let mut harness = settled(RebalanceSettings { moves_per_round: 1, ..MANY }, 1, |_| ());
    harness.pass(harness.settings.lease_ttl);
    harness.out.clear();
    turn(&mut harness, "near", false);
    let (moved, to, _) = round(&mut harness).remove(0);
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    let before = snapshot.applications.get(&moved.attempt).unwrap().containers[&moved];
    let come = runs(1, 99, before.key.priority);
    harness.beat(&to, 1_024, Some(std::slice::from_ref(&come)));
    harness.publish();
    assert_eq!(harness.count(Counter::MovesFollowed), 1);
    harness.beat(&to, 2_048, Some(&[come.clone(), runs(1, 98, before.key.priority)]));
    harness.publish();
    assert_eq!(harness.count(Counter::MovesFollowed), 1, "one move is followed once");
    turn(&mut harness, "near", true);
    turn(&mut harness, "far", false);
    let next = begun(&mut harness).unwrap();
    let proposed: Vec<ContainerId> = search(&next).moves.iter().map(|step| step.container).collect();
    assert_eq!(proposed, [container(attempt(1, 1), 98)], "the one that moved stays, the stranger beside it may go");
}

#[test]
fn no_move_breaks_what_a_group_asks_for() {
    let far = |harness: &EngineHarness| harness.engine.current_snapshot().statics.racks.last().unwrap().clone();
    let plain = settled(MANY, 0, |_| ());
    let rack = far(&plain);
    let mut harness = settled(MANY, 1, |request| request.constraints.avoid_racks = vec![rack.clone()]);
    turn(&mut harness, "near", false);
    let last = harness.engine.current_snapshot().statics.racks.len() - 1;
    let told = round(&mut harness);
    assert!(!told.is_empty() && told.iter().all(|(_, to, _)| rack_of(&harness, to) != last), "{told:?}");
    let mut harness = settled(MANY, 1, |request| request.constraints.spread = true);
    turn(&mut harness, "near", false);
    assert_eq!(round(&mut harness), [], "what is spread stays so");
    let mut harness = settled(MANY, 1, |request| request.groups[0].constraints.max_per_rack = 2);
    turn(&mut harness, "near", false);
    let maps = round(&mut harness).iter().filter(|(id, _, _)| id.id <= EACH).count();
    assert_eq!(maps, 2);
    let mut harness = settled(MANY, 1, |request| request.groups[0].constraints.max_per_rack = 1);
    turn(&mut harness, "near", false);
    let maps = round(&mut harness).iter().filter(|(id, _, _)| id.id <= EACH).count();
    assert_eq!(maps, 1);
}

#[test]
fn bounds_of_a_group_and_the_worth_of_a_move_hold_from_round_to_round() {
    let one = RebalanceSettings { moves_per_round: 1, ..MANY };
    let mut harness = settled(one, 1, |request| request.groups[0].constraints.max_per_rack = 1);
    turn(&mut harness, "near", false);
    let told: Vec<_> = (0..6).flat_map(|_| round(&mut harness)).collect();
    let maps = told.iter().filter(|(id, ..)| id.id <= EACH).count();
    assert_eq!((maps, told.len()), (1, 1 + EACH as usize), "nobody has followed yet, and somebody may: {told:?}");
    let gains: f64 = told.iter().map(|(.., gain)| gain).sum();
    assert!(gains <= 1.0 + 1e-9, "shares of one cost: {told:?}");
}

#[test]
fn containers_of_which_nobody_can_say_whose_they_are_stay() {
    let mut harness = settled(MANY, 1, |_| ());
    let mut other = shuffle(1, "other", (1, 1), 800 << 20);
    other.edges.clear();
    harness.ask(other);
    turn(&mut harness, "near", false);
    assert_eq!(round(&mut harness), []);
    assert_eq!(harness.count(Counter::RebalanceLeftOut), 1, "and that is said");
}

#[test]
fn room_that_was_proposed_is_not_proposed_again_and_a_full_node_is_none_to_go_to() {
    let mut harness = settled(MANY, 1, |_| ());
    turn(&mut harness, "near", false);
    let last = harness.engine.current_snapshot().nodes() - 1;
    let host = harness.engine.current_snapshot().host(NodeIdx::new(last)).to_string();
    harness.beat(&host, 65_536 - 3 * 1_024, Some(&[]));
    harness.publish();
    let first = begun(&mut harness).unwrap();
    let leased = harness.engine.leased().leased(NodeIdx::new(last)).memory_mb() / 1_024;
    let found = all(&harness, 1);
    assert_eq!(take(&mut harness, first.number, &found).len() as u64, 3 - leased);
}

#[test]
fn what_comes_of_an_older_round_or_of_a_container_that_has_gone_is_dropped() {
    let mut harness = settled(MANY, 1, |_| ());
    turn(&mut harness, "near", false);
    let old = begun(&mut harness).unwrap();
    let new = begun(&mut harness).unwrap();
    assert_eq!(take(&mut harness, old.number, &search(&old)), []);
    let found = search(&new);
    let gone = found.moves[0].from;
    let host = harness.engine.current_snapshot().host(gone).to_string();
    harness.beat(&host, 0, Some(&[]));
    harness.publish();
    let told = take(&mut harness, new.number, &found);
    assert_eq!(told.len(), EACH as usize, "those on the other host: {told:?}");
    assert_eq!(take(&mut harness, new.number, &found), [], "a round comes back once");
}

#[test]
fn an_application_is_told_by_name_of_a_chain_that_is_broken_and_when_it_goes_again() {
    let mut harness = settled(MANY, 2, |_| ());
    let told = |harness: &mut EngineHarness| {
        let mut told = Vec::new();
        for effect in std::mem::take(&mut harness.out) {
            if let Effect::Follow { attempt, message: FollowBody::Chain { chain, pairs }, cause } = effect {
                assert_eq!(&*chain, "inbound");
                told.push((attempt.application.sequence, pairs > 0, cause));
            }
        }
        told
    };
    turn(&mut harness, "near", false);
    assert_eq!(told(&mut harness), [], "there is another box");
    turn(&mut harness, "far", false);
    assert_eq!(told(&mut harness), [(1, true, "chain_broken"), (2, true, "chain_broken")]);
    harness.pass(Micros::from_secs(2));
    assert_eq!(told(&mut harness), [], "it is said once");
    turn(&mut harness, "far", true);
    assert_eq!(told(&mut harness), [(1, false, "chain_restored"), (2, false, "chain_restored")]);
}

/// Flows know their chain by its index, which means nothing in another declaration.
#[test]
fn chains_declared_anew_and_a_failed_link_in_one_drain_are_followed_together() {
    let mut harness = settled(MANY, 1, |_| ());
    let topology = Arc::clone(&harness.engine.current_snapshot().topology);
    let network = topology.network.as_ref().unwrap();
    let declared = topology.chains.as_ref().unwrap();
    let entry = |known: &hintd_model::network::chains::Middlebox| BoxEntry {
        name: known.name.to_string(),
        kind: "FW".to_owned(),
        at: network.vertex_at(known.at.unwrap()).name.to_string(),
        bits_per_s: known.capacity.0 as i64,
        up: true,
    };
    let boxes: Vec<BoxEntry> = declared.boxes().iter().map(entry).collect();
    let first = ChainEntry { name: "first".to_owned(), priority: 9, direction: Direction::Out, ..inbound() };
    let declare = |chains: Vec<ChainEntry>| {
        let document = Arc::new(ChainsDocument { boxes: boxes.clone(), chains, ..ChainsDocument::default() });
        Change::Chains { document, in_use: Default::default() }
    };
    harness.change(declare(vec![first, inbound()]));
    harness.publish();
    let chained = |harness: &EngineHarness| harness.engine.generation().flows.chained.in_use();
    let before = chained(&harness);
    assert!(before.values().sum::<u64>() > 0, "flows run under the second of two chains");
    let ways: Vec<_> =
        harness.engine.generation().flows.chained.routes.iter().filter_map(|(_, route)| route.way.clone()).collect();
    harness.change(declare(vec![inbound()]));
    for index in ways.iter().flat_map(|way| way.links.iter().map(|link| LinkIdx(link.0 / 2))) {
        let link = network.link_at(index).name.clone();
        harness.change(Change::Link { link, up: Some(false), capacity: None });
    }
    harness.publish();
    assert_eq!(chained(&harness), before);
}
