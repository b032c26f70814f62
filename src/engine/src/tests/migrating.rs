//! Moves for predicted performance: by which latency, when they are told, and what becomes of them.

use super::harness::{EngineHarness, container};
use crate::testing::{attempt, request};
use crate::{Counter, Effect, FollowBody, MoveNote, RebalanceSettings, Round, RoundOutcome};
use hintd_model::cluster::{Change, EdgePattern, GroupEdge, HintRequest, Measured, NamedContainer, NamedResource};
use hintd_model::units::{Bytes, GroupIdx, Micros, SchedulerKey};
use hintd_policy::{Policy, registry};
use std::sync::Arc;

const EVERY: Micros = Micros::from_secs(5);
const COOL_DOWN: Micros = Micros::from_secs(30);

const ON: RebalanceSettings = RebalanceSettings {
    enabled: true,
    latency: true,
    every: EVERY,
    gain_min_per_million: 50_000,
    moves_per_round: 100,
    moves_per_application: 100,
    cool_down: COOL_DOWN,
};

fn runs(application: u32, id: u64, priority: i32) -> NamedContainer {
    NamedContainer {
        id: container(attempt(application, 1), id),
        size: NamedResource { memory_mb: 1_024, vcores: 1, named: Vec::new() },
        key: SchedulerKey { priority, allocation_request_id: -1 },
    }
}

/// Eight nodes in four racks. An application with its ApplicationMaster on `h0` has asked for workers, and one runs on `h6`.
fn settled(settings: RebalanceSettings, ask: impl Fn(&mut HintRequest)) -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(8, 4_096);
    harness.settings.rebalance = settings;
    (harness.settings.stale_after, harness.settings.lost_after) = (Micros::from_secs(3_600), Micros::from_secs(3_600));
    harness.engine.reload(harness.settings.clone(), harness.now);
    let mut asked = request("job", &[("worker", 2)]);
    (asked.attempt, asked.am_host) = (attempt(1, 1), Some("h0".into()));
    ask(&mut asked);
    let priority = asked.groups[0].key.priority;
    harness.ask(asked);
    harness.beat("h0", 1_024, Some(&[runs(1, 1, 0)]));
    harness.beat("h6", 1_024, Some(&[runs(1, 2, priority)]));
    harness.publish();
    harness
}

fn measure(harness: &mut EngineHarness, rtts: &[(&str, u32)]) {
    for &(to, rtt) in rtts {
        let (from, to, rtts) = ("h0".into(), to.into(), [rtt; 16].into_iter().collect());
        harness.change(Change::Latency(Measured { from, to, path: 0, rtts, at: harness.now }));
    }
    harness.publish();
}

/// `h6` is far, `h2` near, the others between.
const SLOW: &[(&str, u32)] =
    &[("h1", 400), ("h2", 30), ("h3", 400), ("h4", 400), ("h5", 400), ("h6", 900), ("h7", 900)];

fn begun(harness: &mut EngineHarness) -> Option<Arc<Round>> {
    harness.pass(EVERY);
    let round = harness.out.iter().position(|effect| matches!(effect, Effect::Rebalance(_)))?;
    match harness.out.remove(round) {
        Effect::Rebalance(round) => Some(round),
        _ => unreachable!("it was just looked at"),
    }
}

fn search(round: &Round, name: &'static str) -> RoundOutcome {
    let policy: Arc<dyn Policy> = registry::with_defaults(name).unwrap().into();
    round.search(|_| Some((name, Arc::clone(&policy))), 100_000, &mut || false)
}

/// What a whole round tells.
fn round(harness: &mut EngineHarness) -> Vec<MoveNote> {
    let round = begun(harness).expect("a round is due");
    let found = search(&round, "nomora");
    harness.engine.rebalanced(round.number, &found, harness.now);
    harness.drain();
    let mut told = Vec::new();
    harness.out.retain(|effect| match effect {
        Effect::Follow { attempt, message: FollowBody::Move(note), cause } => {
            assert_eq!((*attempt, *cause), (note.container.attempt, "rebalance"));
            told.push((**note).clone());
            false
        }
        _ => true,
    });
    told
}

/// Room only where the other nodes are as far as before.
fn full(harness: &mut EngineHarness, hosts: &[&str]) {
    hosts.iter().for_each(|host| harness.beat(host, 4_096, Some(&[])));
    harness.publish();
}

#[test]
fn a_move_is_told_in_the_second_round_that_finds_it_and_then_cools_down() {
    let mut harness = settled(ON, |_| ());
    measure(&mut harness, SLOW);
    full(&mut harness, &["h1"]);
    harness.beat("h0", 4_096, Some(&[runs(1, 1, 0)]));
    harness.publish();
    assert_eq!(round(&mut harness), [], "once may be chance");
    assert_eq!((harness.count(Counter::MovesHeld), harness.count(Counter::MovesProposed)), (1, 0));
    let told = round(&mut harness);
    let [note] = &told[..] else { panic!("{told:?}") };
    assert_eq!((note.container.id, note.from.as_str(), note.to.as_str(), &*note.chain), (2, "h6", "h2", ""));
    let predicted = note.performance.unwrap();
    assert!(predicted.now < 0.3 && predicted.then == 1.0 && predicted.ran == EVERY, "{predicted:?}");
    // 481 at 900 µs, 100 at 30, and a hundredth for each second that it has run.
    assert!((note.gain - (481.0 - 100.0 - 0.05) / 481.0).abs() < 1e-9, "{note:?}");
    assert_eq!((harness.count(Counter::MovesHeld), harness.count(Counter::MovesProposed)), (1, 1));
    assert_eq!(harness.engine.moves_told(attempt(1, 1), harness.now), told);
    assert_eq!(harness.engine.moves_told(attempt(2, 1), harness.now), []);
    assert_eq!(round(&mut harness), [], "it cools down");
    assert_eq!(harness.count(Counter::MovesHeld), 1);
    // It is followed: another worker comes up there.
    let priority = note_priority(&harness);
    harness.beat("h2", 1_024, Some(&[runs(1, 3, priority)]));
    harness.publish();
    assert_eq!(harness.count(Counter::MovesFollowed), 1);
    assert!(harness.engine.moves_told(attempt(1, 1), harness.now)[0].followed);
}

#[test]
fn what_was_told_is_shown_within_the_cool_down_whether_rounds_go_on_or_not() {
    for goes_on in [true, false] {
        let mut harness = settled(ON, |_| ());
        measure(&mut harness, SLOW);
        assert_eq!((round(&mut harness).len(), round(&mut harness).len()), (0, 1));
        harness.settings.rebalance.enabled = goes_on;
        harness.engine.reload(harness.settings.clone(), harness.now);
        harness.pass(Micros(COOL_DOWN.0 - 1));
        assert_eq!(harness.engine.moves_told(attempt(1, 1), harness.now).len(), 1, "goes on: {goes_on}");
        harness.pass(Micros(1));
        assert_eq!(harness.engine.moves_told(attempt(1, 1), harness.now), [], "goes on: {goes_on}");
    }
}

fn note_priority(harness: &EngineHarness) -> i32 {
    let running = harness.engine.current_snapshot().applications.get(&attempt(1, 1)).unwrap().clone();
    running.containers.iter().find(|(id, _)| id.id == 2).unwrap().1.key.priority
}

#[test]
fn what_is_slow_in_every_other_round_is_never_told_to_move() {
    let mut harness = settled(ON, |_| ());
    for _ in 0..3 {
        measure(&mut harness, SLOW);
        assert_eq!(round(&mut harness), []);
        measure(&mut harness, &[("h6", 30)]);
        assert_eq!(round(&mut harness), []);
    }
    assert_eq!((harness.count(Counter::MovesHeld), harness.count(Counter::MovesProposed)), (3, 0));
}

#[test]
fn without_the_operators_word_or_a_measurement_no_round_begins() {
    let mut off = settled(RebalanceSettings { latency: false, ..ON }, |_| ());
    measure(&mut off, SLOW);
    assert_eq!(begun(&mut off), None);
    let mut unknown = settled(ON, |_| ());
    assert_eq!(begun(&mut unknown), None, "nothing was measured");
    measure(&mut unknown, SLOW);
    assert!(begun(&mut unknown).is_some());
    unknown.pass(Micros::from_secs(61));
    unknown.out.clear();
    assert_eq!(begun(&mut unknown), None, "what was measured is too old");
}

#[test]
fn policies_that_predict_nothing_move_nothing_of_these() {
    let mut harness = settled(ON, |_| ());
    measure(&mut harness, SLOW);
    let begun = begun(&mut harness).unwrap();
    for name in ["pat", "container"] {
        assert_eq!(search(&begun, name), RoundOutcome::default(), "{name}");
    }
    let found = search(&begun, "nomora");
    assert_eq!((found.moves.len(), found.left_out), (1, 0));
    assert_eq!(search(&begun, "nomora"), found, "the same round finds the same");
}

/// The workers talk with a server, which is asked for under a priority of its own.
fn with_server(request: &mut HintRequest) {
    let mut server = request.groups[0].clone();
    (server.name, server.role, server.count) = ("server".into(), "server".into(), 1);
    server.key.priority += 1;
    request.groups.push(server);
    let bytes = Bytes(1);
    request.edges = vec![GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes }];
}

#[test]
fn the_root_is_the_container_that_edges_name_and_without_it_the_job_is_left_out() {
    let mut harness = settled(ON, with_server);
    measure(&mut harness, SLOW);
    let left_out = search(&begun(&mut harness).unwrap(), "nomora");
    assert_eq!((left_out.moves.len(), left_out.left_out), (0, 1), "its server has not come");
    // Beside its server the worker on h6 performs well, however far the ApplicationMaster is.
    let priority = note_priority(&harness);
    harness.beat("h6", 2_048, Some(&[runs(1, 2, priority), runs(1, 3, priority + 1)]));
    harness.publish();
    measure(&mut harness, SLOW);
    let beside = search(&begun(&mut harness).unwrap(), "nomora");
    assert_eq!((beside.moves.len(), beside.left_out), (0, 0));
}

/// A round comes to its end with this result; what it found, with how long each container was seen to run.
fn ends(harness: &mut EngineHarness) -> (u64, Vec<Micros>) {
    let round = begun(harness).expect("a round is due");
    let found = search(&round, "nomora");
    harness.engine.rebalanced(round.number, &found, harness.now);
    (found.left_out, found.moves.iter().map(|step| step.performance.unwrap().ran).collect())
}

/// Its server ends and another one comes: the worker has run on.
#[test]
fn a_round_that_leaves_a_job_out_does_not_make_its_containers_new() {
    let mut harness = settled(ON, with_server);
    let priority = note_priority(&harness);
    let server = |harness: &mut EngineHarness, id: Option<u64>| {
        let all: Vec<NamedContainer> =
            [runs(1, 1, 0)].into_iter().chain(id.map(|id| runs(1, id, priority + 1))).collect();
        harness.beat("h0", 1_024 * all.len() as u64, Some(&all));
        harness.publish();
        measure(harness, SLOW);
    };
    let after = |rounds: u64| Micros(EVERY.0 * rounds);
    server(&mut harness, None);
    assert_eq!(ends(&mut harness), (1, vec![]), "its server has not come");
    server(&mut harness, Some(3));
    assert_eq!(ends(&mut harness), (0, vec![after(1)]), "it ran in the round before");
    server(&mut harness, None);
    assert_eq!(ends(&mut harness), (1, vec![]), "its server is gone");
    server(&mut harness, Some(4));
    assert_eq!(ends(&mut harness), (0, vec![after(3)]));
    // Another one in its place is new.
    harness.beat("h6", 1_024, Some(&[runs(1, 5, priority)]));
    server(&mut harness, Some(4));
    assert_eq!(ends(&mut harness), (0, vec![Micros::ZERO]));
}

#[test]
fn containers_that_may_be_of_two_requests_stay() {
    let mut harness = settled(ON, |_| ());
    let mut other = request("other", &[("worker", 1)]);
    (other.attempt, other.am_host) = (attempt(1, 1), Some("h0".into()));
    harness.ask(other);
    measure(&mut harness, SLOW);
    let found = search(&begun(&mut harness).unwrap(), "nomora");
    assert_eq!((found.moves.len(), found.left_out), (0, 1));
}
