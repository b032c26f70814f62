//! Whether hints were followed: by hand, and against a recount of a random stream.

use super::harness::{EngineHarness, container, hosts, maps, running};
use crate::testing::{attempt, request};
use crate::{Answer, Counter, DecisionOutcome, Effect, Miss, Mode, Outcomes, Tally, TaskEvent, TaskWhat, Term};
use hintd_model::cluster::{
    Change, EdgePattern, Gang, GroupEdge, HintRequest, NamedBlock, NamedContainer, NamedDataset, WhenFull,
};
use hintd_model::units::{AttemptId, Bytes, ContainerId, GroupIdx, LeaseId, Micros, Timestamp};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const ONE: fn() -> AttemptId = || attempt(1, 1);

fn outcome(harness: &EngineHarness, answer: &Answer) -> DecisionOutcome {
    harness.engine.explain(answer.decision.id).unwrap().unpack().outcome.unwrap()
}

/// All figures of the dispatcher instance's only policy, queue and mode.
fn tally(harness: &EngineHarness) -> Tally {
    let all: Vec<&Tally> = harness.engine.adherence().tallies().values().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    *all[0]
}

fn found(outcomes: &Outcomes) -> (u64, u64, u64, u64) {
    (outcomes.on_host, outcomes.in_rack, outcomes.elsewhere, outcomes.never)
}

fn misses(outcomes: &Outcomes) -> Vec<(&'static str, u64)> {
    let all = Miss::ALL.map(|why| (why.as_str(), outcomes.missed(why)));
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// A dispatcher instance of `hosts` nodes in racks of two whose hints name no next best hosts.
fn plain(hosts: usize, mb: u64) -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(hosts, mb);
    harness.placer.fallbacks = 0;
    harness
}

fn beat(harness: &mut EngineHarness, host: &str, ids: &[ContainerId]) {
    let all: Vec<NamedContainer> = ids.iter().map(|&id| running(id)).collect();
    harness.beat(host, 1024 * all.len() as u64, Some(&all));
    harness.publish();
}

#[test]
fn a_container_told_of_by_node_and_application_counts_once_and_the_decision_is_settled_at_the_next_tick() {
    for event_first in [true, false] {
        let mut harness = plain(2, 4096);
        let answer = harness.ask(maps("a", 1));
        let host = hosts(&answer)[0].to_string();
        let tell = |harness: &mut EngineHarness, event: bool| {
            if event {
                harness.allocated(&host, container(ONE(), 2), None);
            } else {
                beat(harness, &host, &[container(ONE(), 2)]);
            }
        };
        tell(&mut harness, event_first);
        // Another request of the group comes between: the same container is none of its own.
        let later = harness.ask(maps("b", 1));
        tell(&mut harness, !event_first);
        harness.pass(Micros(1));
        assert_eq!((tally(&harness).decisions, found(&tally(&harness).outcomes)), (1, (1, 0, 0, 0)), "{event_first}");
        assert_eq!(harness.count(Counter::HintsFollowed), 1);
        assert!(outcome(&harness, &answer).settled && !outcome(&harness, &later).settled);
        assert_eq!(outcome(&harness, &later).hints[0].open, 1);
        let told = harness.out.iter().filter(|effect| matches!(effect, Effect::AdherenceFinalized(_))).count();
        assert_eq!(told, 1, "and is told once");
    }
}

#[test]
fn how_many_are_followed_is_known_before_a_decision_is_settled_and_after_its_answer_is_forgotten() {
    let mut harness = plain(2, 4096);
    let answer = harness.ask(maps("a", 2));
    let (id, host) = (answer.decision.id, hosts(&answer)[0].to_string());
    let followed = |harness: &EngineHarness| {
        let of = harness.engine.adherence().followed(id).unwrap();
        (of.on_host, of.hinted, of.awaited, of.settled, of.why.is_some())
    };
    assert_eq!(followed(&harness), (0, 2, 2, false, false));
    harness.allocated(&host, container(ONE(), 2), None);
    assert_eq!(followed(&harness), (1, 2, 1, false, false));
    assert_eq!(harness.engine.adherence().last_hour(Timestamp(0)).len(), 0, "nothing is settled yet");
    harness.event(ONE(), "", TaskWhat::Done { failed: false });
    harness.pass(Micros::from_secs(6));
    assert_eq!(followed(&harness), (1, 2, 0, true, true));
    assert_eq!(harness.engine.adherence().last_hour(harness.now).len(), 1);
    harness.pass(Micros::from_secs(2 * 3_600));
    assert!(harness.engine.explain(id).is_none(), "its answer is forgotten");
    assert_eq!(followed(&harness), (1, 2, 0, true, true));
    assert_eq!(harness.engine.adherence().last_hour(harness.now).len(), 0);
}

#[test]
fn what_nobody_was_told_is_not_counted_until_a_repeat_fetches_it() {
    let mut harness = plain(2, 4096);
    let late = harness.ask(maps("a", 1));
    harness.engine.answer_reached(late.decision.id, false, harness.now);
    let told = harness.ask(maps("b", 1));
    // A container on the late one's host is the other's, which somebody was told of; what is of no other decision is nobody's.
    let host = hosts(&late)[0].to_string();
    harness.allocated(&host, container(ONE(), 2), None);
    harness.allocated(&host, container(ONE(), 3), None);
    harness.pass(Micros(1));
    let of = |harness: &EngineHarness, answer: &Answer| {
        let followed = harness.engine.adherence().followed(answer.decision.id);
        let outcome = harness.engine.explain(answer.decision.id).unwrap().unpack().outcome;
        (followed.map(|of| (of.hinted, of.awaited, of.settled)), outcome.is_some())
    };
    assert_eq!((of(&harness, &late), of(&harness, &told)), ((None, false), (Some((1, 0, true)), true)));
    assert_eq!((tally(&harness).decisions, tally(&harness).outcomes.all()), (1, 1));
    assert_eq!(harness.count(Counter::HintsFollowed) + harness.count(Counter::HintsElsewhere), 1);

    let fetched = harness.ask(maps("c", 1));
    harness.engine.answer_reached(fetched.decision.id, false, harness.now);
    assert_eq!(of(&harness, &fetched), (None, false));
    harness.engine.answer_reached(fetched.decision.id, true, harness.now);
    assert_eq!(of(&harness, &fetched), (Some((1, 1, false)), true));
    harness.allocated(hosts(&fetched)[0].as_str(), container(ONE(), 4), None);
    harness.pass(Micros(1));
    assert_eq!((tally(&harness).decisions, tally(&harness).outcomes.on_host > 0), (2, true));
}

/// A request of one container that only `host` of the dispatcher instance's four can be hinted for.
fn ask_on(harness: &mut EngineHarness, app: u32, host: &str) -> Arc<Answer> {
    let mut asked = maps(&format!("r{app}"), 1);
    asked.attempt = attempt(app, 1);
    let others = ["h0", "h1", "h2", "h3"].into_iter().filter(|other| *other != host);
    asked.groups[0].constraints.avoid_hosts = others.map(Into::into).collect();
    harness.ask(asked)
}

#[test]
fn why_a_container_is_not_on_its_host_is_told_where_it_can_be() {
    let mut harness = plain(4, 1024); // one container a host, in racks of two
    let withdrawn = ask_on(&mut harness, 1, "h0");
    let near = ask_on(&mut harness, 2, "h2");
    let expired = ask_on(&mut harness, 3, "h1");
    beat(&mut harness, "h0", &[container(attempt(9, 1), 1)]);
    assert_eq!(harness.count(Counter::LeasesWithdrawn), 1);
    harness.allocated("h3", container(attempt(1, 1), 2), None);
    harness.allocated("h3", container(attempt(2, 1), 2), None);
    harness.pass(Micros::from_secs(31));
    harness.allocated("h3", container(attempt(3, 1), 2), None);
    let why = |answer: &Arc<Answer>| {
        let hint = outcome(&harness, answer).hints.remove(0);
        (found(&hint.outcomes), misses(&hint.outcomes))
    };
    assert_eq!(why(&withdrawn), ((0, 0, 1, 0), vec![("withdrawn", 1)]));
    assert_eq!(why(&near), ((0, 1, 0, 0), vec![("yarn_chose", 1)]));
    assert_eq!(why(&expired), ((0, 0, 1, 0), vec![("expired", 1)]));
    harness.pass(Micros(1));
    assert_eq!(misses(&tally(&harness).outcomes), [("expired", 1), ("withdrawn", 1), ("yarn_chose", 1)]);
}

#[test]
fn a_container_on_a_host_that_was_named_as_next_best_is_near() {
    let mut harness = EngineHarness::with_nodes(4, 4096);
    harness.placer.fallbacks = 3;
    let answer = harness.ask(maps("a", 1));
    let hint = &answer.decision.hints[0];
    let other_rack = |host: &&hintd_model::units::HostName| {
        host.as_str()[1..].parse::<u32>().unwrap() / 2 != hint.host.as_str()[1..].parse::<u32>().unwrap() / 2
    };
    let host = hint.fallbacks.iter().find(other_rack).unwrap().to_string();
    harness.allocated(&host, container(ONE(), 2), None);
    harness.pass(Micros(1));
    assert_eq!(found(&tally(&harness).outcomes), (0, 1, 0, 0));
}

#[test]
fn no_room_a_node_that_is_down_and_a_hint_that_came_late_are_told_apart() {
    let mut harness = plain(3, 2048);
    harness.mode = Mode::Shadow;
    let ask = |harness: &mut EngineHarness, id: &str, app: u32| {
        let mut asked = maps(id, 1);
        asked.attempt = attempt(app, 1);
        asked.groups[0].constraints.avoid_hosts = vec!["h1".into(), "h2".into()];
        harness.ask(asked)
    };
    let elsewhere = |harness: &mut EngineHarness, app: u32, at: Timestamp| {
        let what = TaskWhat::Allocated { host: "h2".into(), container: container(attempt(app, 1), 2), lease: None };
        let event = TaskEvent {
            attempt: attempt(app, 1),
            group: "map".into(),
            task: "t".into(),
            what,
            recurring_key: None,
            at,
        };
        harness.engine.event(event, harness.now).unwrap();
        harness.drain();
    };
    let room = ask(&mut harness, "room", 1);
    let full = ask(&mut harness, "full", 2);
    let late = ask(&mut harness, "late", 3);
    let down = ask(&mut harness, "down", 4);
    let now = harness.now;
    elsewhere(&mut harness, 1, now);
    elsewhere(&mut harness, 3, Timestamp(now.0 - 1_500_000));
    beat(&mut harness, "h0", &[container(attempt(9, 1), 1), container(attempt(9, 1), 2)]);
    elsewhere(&mut harness, 2, now);
    harness.change(Change::Gone("h0".into()));
    harness.publish();
    elsewhere(&mut harness, 4, now);
    let why = |answer: &Arc<Answer>| misses(&outcome(&harness, answer).hints[0].outcomes)[0].0;
    assert_eq!([&room, &full, &late, &down].map(why), ["yarn_chose", "no_room", "late_hint", "node_not_running"]);
    assert_eq!((harness.count(Counter::ShadowAgreed), harness.count(Counter::ShadowDiffered)), (0, 4));
}

#[test]
fn what_never_came_says_why() {
    let mut harness = plain(4, 8192);
    let given_back = harness.ask(maps("back", 2));
    let token = given_back.token.clone();
    harness.engine.release(ONE(), &crate::Proof::of_token(token.clone()), &[], harness.now).unwrap();
    harness.pass(Micros::from_secs(6));
    assert_eq!(misses(&tally(&harness).outcomes), [("released", 2)], "a moment later, not after five minutes");
    let all_report = |harness: &mut EngineHarness, first: &[ContainerId]| {
        (1..4).for_each(|host| beat(harness, &format!("h{host}"), &[]));
        beat(harness, "h0", first);
    };
    all_report(&mut harness, &[]);
    let mut over = maps("over", 2);
    over.attempt = attempt(2, 1);
    harness.ask(over);
    beat(&mut harness, "h0", &[container(attempt(2, 1), 2)]);
    harness.event(attempt(2, 1), "", TaskWhat::Done { failed: false });
    // On its way when the application said that it was done.
    beat(&mut harness, "h0", &[container(attempt(2, 1), 2), container(attempt(2, 1), 3)]);
    harness.pass(Micros::from_secs(6));
    let all = tally(&harness).outcomes;
    assert_eq!((all.never, all.on_host + all.in_rack + all.elsewhere), (2, 2));
    all_report(&mut harness, &[]);
    let mut unused = maps("unused", 2);
    unused.attempt = attempt(3, 1);
    let unused = harness.ask(unused);
    harness.pass(Micros::from_secs(299));
    assert!(!outcome(&harness, &unused).settled);
    harness.pass(Micros::from_secs(1));
    assert_eq!(misses(&outcome(&harness, &unused).hints[0].outcomes)[0].0, "expired");
}

#[test]
fn a_lease_whose_container_was_given_elsewhere_is_not_given_back_and_the_others_are_awaited() {
    let mut harness = plain(4, 4096);
    let mut asked = maps("a", 4);
    asked.groups[0].constraints.avoid_hosts = ["h1", "h2", "h3"].map(Into::into).to_vec();
    let answer = harness.ask(asked);
    harness.allocated("h2", container(ONE(), 2), None);
    harness.allocated("h3", container(ONE(), 3), None);
    assert_eq!(harness.count(Counter::LeasesReleased), 2);
    harness.pass(Micros::from_secs(6));
    assert!(!outcome(&harness, &answer).settled, "two are still to come");
    harness.allocated("h2", container(ONE(), 4), None);
    harness.allocated("h3", container(ONE(), 5), None);
    harness.pass(Micros(1));
    assert_eq!(found(&tally(&harness).outcomes), (0, 0, 4, 0));
    let node =
        |host: &str| harness.engine.generation().snapshot.statics.by_host[&hintd_model::units::HostName::from(host)];
    let settled = outcome(&harness, &answer);
    assert!(settled.settled, "what is kept of it packed");
    assert_eq!(settled.hints[0].came, [(node("h2"), 2), (node("h3"), 2)], "where YARN put them instead");
}

#[test]
fn beyond_the_bound_the_oldest_are_counted_as_they_stand() {
    let mut harness = plain(4, 65_536);
    harness.settings.adherence_max = 3;
    harness.engine.reload(harness.settings.clone(), harness.now);
    for app in 1..=8 {
        let mut asked = maps(&format!("r{app}"), 1);
        asked.attempt = attempt(app, 1);
        harness.ask(asked);
    }
    assert!(harness.engine.counts().watched <= 8);
    harness.pass(Micros(1));
    assert_eq!((harness.engine.counts().watched, tally(&harness).decisions), (3, 5));
    assert_eq!(misses(&tally(&harness).outcomes), [("forgotten", 5)]);
}

#[test]
fn what_was_undone_or_let_through_is_no_miss() {
    let mut harness = plain(2, 4096);
    let answer = harness.ask(maps("a", 2));
    harness.engine.undo(answer.decision.id, harness.now);
    harness.pass(Micros::from_secs(600));
    assert!(harness.engine.adherence().tallies().is_empty());
    harness.mode = Mode::Off;
    harness.ask(maps("b", 2));
    let (key, off) = harness.engine.adherence().tallies().iter().next().unwrap();
    assert_eq!((key.mode, off.decisions, off.outcomes), (Mode::Off, 1, Outcomes::default()));
}

#[test]
fn a_gang_that_got_no_lease_is_not_hinted_and_says_how_many_would_fit() {
    let mut harness = plain(2, 4096);
    let leased = harness.ask(maps("a", 3));
    assert_eq!((leased.decision.hinted(), leased.decision.waits_for_room()), (3, false));
    let whole = HintRequest { gang: Gang::All, attempt: attempt(2, 1), ..maps("gang", 8) };
    let gang = harness.ask(whole.clone()).decision.clone();
    assert_eq!((gang.hinted(), gang.waits_for_room(), gang.without_room), (0, true, 8));
    assert!(gang.hints.iter().all(|hint| hint.expected_wait.is_none()), "when there is room for all can't be told");
    let [blocked] = &gang.blocked[..] else { panic!("{:?}", gang.blocked) };
    assert_eq!((blocked.count, harness.counts[&Counter::HintsIssued]), (3, 3), "five would fit");
    let refusal = harness.refusal(HintRequest { id: "fails".into(), when_full: WhenFull::Fail, ..whole });
    assert!(matches!(refusal, crate::Refusal::Full { wanted: 8, free: 5, .. }), "{refusal}");
    harness.pass(Micros::from_secs(600));
    assert_eq!((tally(&harness).decisions, tally(&harness).outcomes.never), (1, 3), "of the gang none is awaited");
}

#[test]
fn places_to_wait_at_are_not_hinted_though_others_of_the_request_have_room() {
    let mut harness = plain(2, 4096);
    harness.ask(maps("a", 3));
    let some = harness.ask(HintRequest { attempt: attempt(2, 1), ..maps("some", 8) }).decision.clone();
    let named: u64 = some.hints.iter().map(|hint| u64::from(hint.count)).sum();
    assert_eq!((some.hinted(), some.waits_for_room(), some.without_room, named), (5, false, 3, 8));
}

/// One dataset of four blocks of 100 bytes, one on each of h0 to h3, and a request that reads it.
fn reading(harness: &mut EngineHarness, id: &str, app: u32) -> HintRequest {
    let replica = |at: u64| format!("h{at}").as_str().into();
    let block = |at: u64| NamedBlock { id: at, bytes: Bytes(100), hosts: vec![replica(at)] };
    let dataset = NamedDataset { path: "/in".into(), blocks: (0..4).map(block).collect() };
    harness.change(Change::Dataset(Arc::new(dataset)));
    harness.publish();
    let mut asked = request(id, &[("map", 4), ("reduce", 2)]);
    asked.attempt = attempt(app, 1);
    asked.input_paths = vec!["/in".into()];
    asked.edges =
        vec![GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: Bytes(800) }];
    asked
}

/// Tells of `answer`'s containers, each on the host that `host` gives for its hinted one.
fn follow(harness: &mut EngineHarness, answer: &Answer, host: impl Fn(&str) -> String) {
    let mut id = 2;
    for hint in &answer.decision.hints {
        for _ in 0..hint.count {
            let container = container(answer.decision.attempt, id);
            let what = TaskWhat::Allocated { host: host(hint.host.as_str()).as_str().into(), container, lease: None };
            harness.event(answer.decision.attempt, &hint.group, what);
            id += 1;
        }
    }
    harness.pass(Micros(1));
}

#[test]
fn hints_followed_to_the_letter_cost_what_was_expected_and_others_what_a_reckoning_by_hand_says() {
    let mut harness = plain(8, 4096);
    harness.mode = Mode::Shadow;
    let asked = reading(&mut harness, "a", 1);
    let followed = harness.ask(asked);
    follow(&mut harness, &followed, str::to_owned);
    let terms = outcome(&harness, &followed).terms;
    assert_eq!(terms.len(), 3);
    for term in &terms {
        assert!((term.hinted - term.realised).abs() < 1e-9, "{term:?}");
        assert!(term.default.is_some());
    }
    let sums = tally(&harness);
    assert_eq!((sums.decisions, sums.compared), (1, 1));
    assert!((sums.input_bytes - 400.0).abs() < 1e-9);
    assert_eq!(sums.term(Term::RemoteBytes).had_followed().unwrap_or(0.0), 0.0);
    // All on h6, in a rack without blocks: every block is remote and leaves its rack, and no edge does.
    let asked = reading(&mut harness, "b", 2);
    let astray = harness.ask(asked);
    follow(&mut harness, &astray, |_| "h6".to_owned());
    let terms = outcome(&harness, &astray).terms;
    let realised: Vec<f64> = terms.iter().map(|term| term.realised).collect();
    assert_eq!(realised[..2], [400.0, 400.0]);
    let both = tally(&harness);
    let remote = both.term(Term::RemoteBytes);
    let expected = (
        followed.decision.terms.remote_bytes.unwrap() + astray.decision.terms.remote_bytes.unwrap(),
        400.0 + terms_of(&followed),
    );
    assert_eq!((remote.hinted, remote.realised), expected);
    assert_eq!(remote.decisions, 2);
    assert_eq!(remote.had_followed(), Some((expected.1 - expected.0) / expected.1));
}

fn terms_of(answer: &Answer) -> f64 {
    answer.decision.terms.remote_bytes.unwrap()
}

#[test]
fn a_decision_of_which_a_container_is_missing_is_counted_and_not_compared() {
    let mut harness = plain(8, 4096);
    let asked = reading(&mut harness, "a", 1);
    let answer = harness.ask(asked);
    let first = hosts(&answer)[0].to_string();
    harness.allocated(&first, container(ONE(), 2), None);
    harness.pass(Micros::from_secs(300));
    let sums = tally(&harness);
    assert_eq!((sums.decisions, sums.compared, sums.outcomes.all(), sums.outcomes.never), (1, 0, 6, 5));
    assert!(outcome(&harness, &answer).terms.is_empty());
}

#[test]
fn a_rise_of_use_on_a_node_that_names_no_containers_counts_as_followed() {
    let mut harness = plain(1, 4096);
    harness.beat("h0", 0, None);
    harness.pass(Micros::from_secs(61)); // names are kept for a minute
    harness.beat("h0", 0, None);
    harness.publish();
    harness.ask(maps("a", 2));
    harness.beat("h0", 1024, None);
    harness.publish();
    harness.pass(Micros::from_secs(300));
    let all = tally(&harness).outcomes;
    assert_eq!((found(&all), misses(&all)), ((1, 0, 0, 1), vec![("expired", 1)]));
}

const HOSTS: u8 = 6;

/// One container: whose, where, and who tells of it in which order.
#[derive(Debug, Clone)]
struct Seen {
    app: u8,
    host: u8,
    /// Told by the application, by the node, or by both; `first`: the application is faster.
    told: bool,
    reported: bool,
    first: bool,
}

fn seen() -> impl Strategy<Value = Vec<Seen>> {
    let one = (0..3_u8, 0..HOSTS, any::<(bool, bool, bool)>()).prop_map(|(app, host, (told, reported, first))| Seen {
        app,
        host,
        told,
        reported,
        first,
    });
    prop::collection::vec(one, 0..40)
}

/// Σ over hosts, then racks, of min(hinted, seen): counted from the whole list at once.
fn recount(hinted: &[u8], seen: &[u8]) -> (u64, u64, u64, u64) {
    let taken = &seen[..seen.len().min(hinted.len())];
    let count = |list: &[u8], of: &dyn Fn(u8) -> bool| list.iter().filter(|&&host| of(host)).count();
    let on = |host: u8| count(hinted, &|h| h == host).min(count(taken, &|h| h == host));
    let on_host: usize = (0..HOSTS).map(on).sum();
    let rack = |rack: u8| {
        let inside = |h: u8| h / 2 == rack;
        let met = on(2 * rack) + on(2 * rack + 1);
        (count(hinted, &inside) - met).min(count(taken, &inside) - met)
    };
    let in_rack: usize = (0..HOSTS / 2).map(rack).sum();
    let rest = [on_host, in_rack, taken.len() - on_host - in_rack, hinted.len() - taken.len()];
    let [a, b, c, d] = rest.map(|count| count as u64);
    (a, b, c, d)
}

fn given_of(answer: &Answer, given: &BTreeSet<LeaseId>) -> usize {
    answer.leases().filter(|lease| given.contains(lease)).count()
}

/// The application gives back at most `most` leases of a host, and learns which it no longer had.
fn give_back(harness: &mut EngineHarness, answer: &Answer, host: &str, most: usize, given: &mut BTreeSet<LeaseId>) {
    let of_host = answer.decision.hints.iter().filter(|hint| hint.host.as_str() == host);
    let leases: Vec<LeaseId> = of_host.flat_map(|hint| hint.leases.iter().copied()).take(most).collect();
    if leases.is_empty() {
        return; // none named would be all
    }
    let released = harness
        .engine
        .release(answer.decision.attempt, &crate::Proof::of_token(answer.token.clone()), &leases, harness.now)
        .unwrap();
    harness.drain();
    given.extend(leases.into_iter().filter(|lease| !released.not_held.contains(lease)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn counters_equal_a_recount_of_the_whole_stream(
        counts in prop::collection::vec(1..12_u32, 3),
        stream in seen(),
        shadow in any::<bool>(),
        pauses in prop::collection::vec(0..20_u64, 40),
        gives in prop::collection::vec((0..3_usize, 0..HOSTS, 0..4_usize), 40),
    ) {
        let mut harness = plain(usize::from(HOSTS), 4096);
        harness.mode = if shadow { Mode::Shadow } else { Mode::On };
        let mut answers = Vec::new();
        for (app, &count) in (0..).zip(&counts) {
            let mut asked = maps(&format!("r{app}"), count);
            asked.attempt = attempt(app + 1, 1);
            answers.push(harness.ask(asked));
        }
        let mut on: BTreeMap<u8, Vec<ContainerId>> = BTreeMap::new();
        let mut given: BTreeSet<LeaseId> = BTreeSet::new();
        let mut heard: Vec<Vec<u8>> = vec![Vec::new(); 3];
        for (at, one) in stream.iter().enumerate() {
            let id = container(attempt(u32::from(one.app) + 1, 1), 2 + at as u64);
            let host = format!("h{}", one.host);
            if one.told || one.reported {
                heard[usize::from(one.app)].push(one.host);
            }
            if one.told && one.first {
                harness.allocated(&host, id, None);
            }
            if one.reported {
                let all = on.entry(one.host).or_default();
                all.push(id);
                beat(&mut harness, &host, &all.clone());
            }
            if one.told && !one.first {
                harness.allocated(&host, id, None);
                harness.allocated(&host, id, None);
            }
            let (app, host, most) = gives[at];
            // Never all that is missing: what comes after that would not be counted.
            let left = (counts[app] as usize).saturating_sub(heard[app].len() + given_of(&answers[app], &given) + 1);
            give_back(&mut harness, &answers[app], &format!("h{host}"), most.min(left), &mut given);
            if pauses[at] > 15 {
                harness.pass(Micros::from_secs(2)); // leases expire on the way
                for host in 0..HOSTS {
                    beat(&mut harness, &format!("h{host}"), &on.get(&host).cloned().unwrap_or_default());
                }
            }
        }
        harness.pass(Micros::from_secs(400));
        let mut all = (0, 0, 0, 0);
        for (answer, heard) in answers.iter().zip(&heard) {
            let hinted: Vec<u8> = answer.decision.hints.iter()
                .flat_map(|hint| vec![hint.host.as_str()[1..].parse().unwrap(); hint.count as usize]).collect();
            let expected = recount(&hinted, heard);
            let one = outcome(&harness, answer);
            let mut sum = Outcomes::default();
            let states: BTreeMap<LeaseId, &str> = harness.engine.explain(answer.decision.id).unwrap().unpack().leases.into_iter()
                .map(|lease| (lease.id, lease.state)).collect();
            for (hint, said) in one.hints.iter().zip(&answer.decision.hints) {
                prop_assert_eq!(hint.outcomes.all(), u64::from(hint.count));
                let came: u64 = hint.came.iter().map(|(_, count)| u64::from(*count)).sum();
                prop_assert_eq!(came, hint.outcomes.in_rack + hint.outcomes.elsewhere, "where each came is kept");
                let of = |state: &str| said.leases.iter().filter(|lease| states[lease] == state).count() as u64;
                let back = said.leases.iter().filter(|lease| given.contains(lease)).count() as u64;
                let [withdrawn, expired, released] =
                    [Miss::Withdrawn, Miss::Expired, Miss::Released].map(|why| hint.outcomes.missed(why));
                prop_assert!(withdrawn <= of("withdrawn") && expired <= of("expired") && released <= back);
                if hint.outcomes.in_rack + hint.outcomes.elsewhere == 0 {
                    // Nothing but what never came: ends explain it in this order.
                    let first = hint.outcomes.never.min(of("withdrawn") + of("expired"));
                    prop_assert_eq!(withdrawn + expired, first);
                    prop_assert_eq!(released, back.min(hint.outcomes.never - first), "of {}", said.host);
                }
                sum.on_host += hint.outcomes.on_host;
                sum.in_rack += hint.outcomes.in_rack;
                sum.elsewhere += hint.outcomes.elsewhere;
                sum.never += hint.outcomes.never;
            }
            prop_assert_eq!(found(&sum), expected);
            all = (all.0 + expected.0, all.1 + expected.1, all.2 + expected.2, all.3 + expected.3);
        }
        let total = tally(&harness);
        prop_assert_eq!((total.decisions, found(&total.outcomes)), (3, all));
        let missed: u64 = Miss::ALL.iter().map(|&why| total.outcomes.missed(why)).sum();
        prop_assert_eq!(missed, all.1 + all.2 + all.3, "every miss has a reason");
        prop_assert_eq!(harness.engine.counts().watched, 0);
        let told = harness.out.iter().filter_map(|effect| match effect {
            Effect::AdherenceFinalized(settled) => Some(settled.1.outcomes.all()),
            _ => None,
        });
        prop_assert_eq!(told.sum::<u64>(), total.outcomes.all(), "metrics hear the same");
    }
}
