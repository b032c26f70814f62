//! Leases: granted, bound, followed, withdrawn, given back, recovered.

use super::harness::{EngineHarness, container, hosts, maps, running};
use crate::journal::{Op, Table};
use crate::testing::attempt;
use crate::{CommitOutcome, Counter, Effect, FollowBody, Mode, Refusal, Released, TaskWhat, Token};
use hintd_model::cluster::{Change, Gang, WhenFull};
use hintd_model::units::{AttemptId, DecisionId, LeaseId, Micros, Timestamp};
use std::sync::Arc;

const ONE: fn() -> AttemptId = || attempt(1, 1);

#[test]
fn a_granted_container_has_a_lease_and_its_room_is_gone_for_the_next() {
    let mut harness = EngineHarness::with_nodes(1, 2048);
    let answer = harness.ask(maps("a", 2));
    assert_eq!(answer.leases().count(), 2);
    assert_eq!(
        harness
            .engine
            .generation()
            .leases
            .leased(harness.engine.current_snapshot().statics.find("h0").unwrap())
            .memory_mb(),
        2048
    );
    let later = harness.ask(maps("b", 1));
    assert_eq!((later.leases().count(), later.decision.without_room), (0, 1));
    assert_eq!(later.decision.hints[0].host, "h0".into(), "advised where room may come");
}

#[test]
fn attempts_that_hold_most_are_the_first_of_all_by_leases_and_then_the_newest() {
    let mut harness = EngineHarness::with_nodes(8, 4096);
    // Of 1 to 9, those of 5 get no room; 3 has two requests.
    for (application, count) in [(1, 2), (2, 4), (3, 1), (4, 4), (6, 3), (7, 1), (8, 9), (3, 2), (9, 6), (5, 1)] {
        let mut asked = maps(&format!("r{application}-{count}"), count);
        asked.attempt = attempt(application, 1);
        harness.ask(asked);
    }
    let mut all = harness.engine.attempts_held();
    assert!(all.iter().any(|held| held.leases == 0), "none is without a lease");
    all.sort_by_key(|held| std::cmp::Reverse((held.leases, held.attempt)));
    for most in 0..=all.len() + 1 {
        let (found, total) = harness.engine.attempts_that_hold_most(most);
        assert_eq!(total, all.len());
        assert_eq!(found, all[..most.min(all.len())], "the {most} that hold most");
    }
}

#[test]
fn of_two_proposals_for_the_same_room_one_conflicts_and_names_the_node() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    let [first, second] = ["a", "b"].map(|id| harness.propose(&Arc::new(maps(id, 1))).unwrap());
    assert!(matches!(harness.commit(first), CommitOutcome::Committed(_)));
    let CommitOutcome::Conflict { nodes } = harness.commit(second) else { panic!("no conflict") };
    assert_eq!(nodes, ["h0".into()]);
    assert_eq!((harness.leases().len(), harness.count(Counter::CommitConflicts)), (1, 1));
}

#[test]
fn a_gang_is_leased_whole_or_not_at_all() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    let mut gang = maps("gang", 4);
    gang.gang = Gang::All;
    let proposal = harness.propose(&Arc::new(gang.clone())).unwrap();
    harness.ask(maps("small", 1));
    assert!(matches!(harness.commit(proposal.clone()), CommitOutcome::Conflict { .. }));
    assert_eq!(harness.leases().len(), 1, "nothing of the gang stays");
    let mut last = proposal;
    last.last_try = true;
    let CommitOutcome::Committed(answer) = harness.commit(last) else { panic!("a last try is answered") };
    assert_eq!((answer.leases().count(), answer.decision.without_room), (0, 4));
    gang.id = "again".into();
    let again = harness.ask(gang);
    assert_eq!((again.leases().count(), again.decision.without_room, harness.leases().len()), (0, 4, 1));
}

#[test]
fn the_last_try_of_a_gang_that_may_be_cut_leases_what_fits() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let mut proposal = harness.propose(&Arc::new(maps("a", 4))).unwrap();
    harness.ask(maps("b", 1));
    proposal.last_try = true;
    let CommitOutcome::Committed(answer) = harness.commit(proposal) else { panic!("a last try is answered") };
    let told: Vec<_> =
        answer.decision.hints.iter().map(|hint| (hint.first_index, hint.count, hint.leases.len())).collect();
    assert_eq!(told, [(0, 3, 3), (3, 1, 0)]);
    assert_eq!(answer.decision.without_room, 1);
}

#[test]
fn the_same_request_gets_the_same_answer_and_another_body_is_refused() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    let answer = harness.ask(maps("a", 1));
    let mut again = harness.propose(&Arc::new(maps("a", 1))).unwrap();
    again.digest = answer.digest;
    let CommitOutcome::Answered(same) = harness.commit(again.clone()) else { panic!("a retry is answered") };
    assert_eq!((same.decision(), harness.leases().len()), (answer.decision.id, 1));
    assert_eq!(same.unpack(), answer);
    let mut other = again;
    other.digest = 99;
    assert!(matches!(harness.commit(other), CommitOutcome::Refused(Refusal::IdReused { .. })));
    harness.restart();
    assert_eq!(harness.engine.answer(&"a".into(), answer.digest), Some(Ok(answer)), "after a restart as well");
}

#[test]
fn a_container_ends_the_oldest_lease_of_its_kind_on_its_host_and_room_is_counted_once() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let answer = harness.ask(maps("a", 2));
    harness.beat("h0", 1024, Some(&[running(container(ONE(), 5))]));
    let generation = harness.publish();
    let oldest = answer.leases().next().unwrap();
    assert_eq!(harness.leases().len(), 1);
    assert!(harness.engine.leases().all(|lease| lease.id != oldest));
    let node = generation.snapshot.statics.find("h0").unwrap();
    assert_eq!(generation.snapshot.room(node, &generation.leases).memory_mb(), 4096 - 2048);
    assert_eq!(harness.count(Counter::LeasesBound), 1);
    // Another application's container, another size: no lease of ours.
    let mut large = running(container(ONE(), 6));
    large.size.memory_mb = 2048;
    harness.beat("h0", 1024, Some(&[running(container(ONE(), 5)), running(container(attempt(9, 1), 1)), large]));
    harness.publish();
    assert_eq!(harness.count(Counter::LeasesBound), 1);
    assert_eq!(
        harness.engine.explain(answer.decision.id).unwrap().unpack().leases.iter().map(|l| l.state).collect::<Vec<_>>(),
        ["bound", "withdrawn"]
    );
}

#[test]
fn a_lease_ends_no_earlier_for_commits_than_its_container_counts() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    harness.ask(maps("a", 1));
    let stale = harness.propose(&Arc::new(maps("b", 1))).unwrap();
    harness.beat("h0", 1024, Some(&[running(container(ONE(), 5))]));
    assert_eq!(stale.wanted(), 0);
    assert_eq!(harness.leases().len(), 1, "not settled yet");
    harness.publish();
    assert_eq!(harness.leases().len(), 0);
    assert_eq!(harness.ask(maps("c", 1)).leases().count(), 0, "the container has the room now");
}

#[test]
fn where_containers_are_not_named_a_rise_of_use_ends_the_oldest_leases_that_fit_it() {
    let mut harness = EngineHarness::new();
    harness.register("h0", "/r0", 8192);
    harness.beat("h0", 1024, None);
    harness.publish();
    let answer = harness.ask(maps("a", 3));
    harness.beat("h0", 1024 + 500, None);
    harness.publish();
    assert_eq!(harness.leases().len(), 3, "less than a lease");
    harness.beat("h0", 1524 + 2048, None);
    let generation = harness.publish();
    assert_eq!(harness.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), [answer.leases().last().unwrap()]);
    let node = generation.snapshot.statics.find("h0").unwrap();
    assert_eq!(generation.snapshot.room(node, &generation.leases).memory_mb(), 8192 - 1524 - 3 * 1024);
}

#[test]
fn the_first_report_after_a_restart_is_no_rise() {
    let mut harness = EngineHarness::new();
    harness.register("h0", "/r0", 8192);
    harness.beat("h0", 4096, None);
    harness.publish();
    harness.ask(maps("a", 2));
    harness.restart();
    harness.register("h0", "/r0", 8192);
    harness.beat("h0", 4096, None);
    harness.publish();
    assert_eq!(harness.leases().len(), 2);
    harness.beat("h0", 5120, None);
    harness.publish();
    assert_eq!(harness.leases().len(), 1);
}

#[test]
fn foreign_use_withdraws_the_youngest_unconfirmed_leases_and_says_so() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let answer = harness.ask(maps("a", 4));
    let leases: Vec<LeaseId> = answer.leases().collect();
    harness.allocated("h0", container(ONE(), 7), Some(leases[3]));
    harness.beat("h0", 2000, Some(&[]));
    harness.publish();
    let left: Vec<LeaseId> = harness.engine.leases().map(|lease| lease.id).collect();
    assert_eq!(left, [leases[0], leases[3]], "the youngest is confirmed and stays");
    let told = harness.out.iter().find_map(|effect| match effect {
        Effect::Follow { attempt, message: FollowBody::Withdraw { leases, host, reason }, cause } => {
            Some((*attempt, leases.clone(), host.to_string(), *reason, *cause))
        }
        _ => None,
    });
    assert_eq!(told, Some((ONE(), vec![leases[2], leases[1]], "h0".to_owned(), "foreign_use", "foreign_use")));
    assert_eq!(harness.count(Counter::LeasesWithdrawn), 2);
    assert_eq!(harness.rows.keys().filter(|(table, _)| *table == Table::Leases).count(), 2);
    harness.beat("h0", 4000, Some(&[]));
    harness.publish();
    assert!(harness.leases().is_empty(), "confirmed ones go last, but go");
}

#[test]
fn an_allocation_elsewhere_gives_the_lease_back() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    let answer = harness.ask(maps("a", 2));
    let (on, lease) = (hosts(&answer), answer.leases().next().unwrap());
    harness.allocated(on[1].as_str(), container(ONE(), 7), Some(lease));
    harness.allocated(on[1].as_str(), container(ONE(), 7), Some(lease));
    assert_eq!(harness.leases().iter().map(|lease| &lease.1[..]).collect::<Vec<_>>(), [on[1].as_str()]);
    assert_eq!(harness.count(Counter::LeasesReleased), 1);
    // Without a lease id: the oldest of the group on that host.
    harness.allocated(on[1].as_str(), container(ONE(), 8), None);
    assert_eq!((harness.count(Counter::HintsFollowed), harness.count(Counter::HintsElsewhere)), (1, 1));
    assert!(harness.engine.leases().all(|lease| lease.confirmed == Some(container(ONE(), 8))));
}

#[test]
fn a_lease_ends_at_its_time_to_live() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    let answer = harness.ask(maps("a", 1));
    assert_eq!(answer.decision.hints[0].expires, Some(harness.now.plus(harness.settings.lease_ttl)));
    harness.beat("h0", 0, Some(&[]));
    harness.pass(Micros(harness.settings.lease_ttl.0 - 1));
    assert_eq!(harness.leases().len(), 1);
    harness.pass(Micros(1));
    assert_eq!((harness.leases().len(), harness.count(Counter::LeasesExpired)), (0, 1));
    harness.pass(harness.settings.answers_keep);
    assert_eq!(harness.engine.answer(&"a".into(), 0), None);
    assert!(harness.out.contains(&Effect::AnswerForgotten("a".into())));
    assert_eq!(harness.tables(), [Table::Attempts].into());
}

#[test]
fn leases_are_given_back_with_the_right_token_only() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let answer = harness.ask(maps("a", 3));
    let leases: Vec<LeaseId> = answer.leases().collect();
    let [right, wrong] = ["secret", "guess"].map(|token| crate::Proof::of_token(Token(token.into())));
    assert_eq!(harness.engine.release(ONE(), &wrong, &[], harness.now), Err(Refusal::BadToken { attempt: ONE() }));
    let gone = LeaseId(7);
    let released = harness.engine.release(ONE(), &right, &[leases[0], gone], harness.now).unwrap();
    assert_eq!(released, Released { released: 1, not_held: vec![gone] });
    assert_eq!(harness.engine.release(ONE(), &right, &[], harness.now).unwrap().released, 2);
    harness.drain();
    assert!(harness.leases().is_empty());
}

#[test]
fn a_new_attempt_releases_what_the_old_one_held_and_the_old_one_gets_no_more() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    harness.ask(maps("a", 4));
    let mut second = maps("b", 1);
    second.attempt = attempt(1, 2);
    harness.ask(second);
    assert!(harness.engine.leases().all(|lease| lease.attempt == attempt(1, 2)));
    assert!(harness.out.contains(&Effect::AttemptEnded(ONE())));
    let late = harness.propose(&Arc::new(maps("c", 1))).unwrap();
    assert!(matches!(harness.commit(late), CommitOutcome::Refused(Refusal::Invalid { .. })));
}

#[test]
fn a_done_application_holds_nothing() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    harness.ask(maps("a", 2));
    harness.event(ONE(), "", TaskWhat::Done { failed: false });
    assert!(harness.leases().is_empty());
    assert_eq!(harness.tables(), [Table::Answers].into());
}

#[test]
fn what_the_journal_lost_was_never_promised() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let proposal = harness.propose(&Arc::new(maps("a", 2))).unwrap();
    let CommitOutcome::Committed(answer) = harness.engine.commit(proposal, Token("t".into()), harness.now) else {
        panic!()
    };
    harness.engine.take_effects(); // the store failed
    harness.engine.undo(answer.decision.id, harness.now);
    harness.drain();
    assert!(harness.leases().is_empty() && harness.tables().is_empty());
    assert_eq!(harness.engine.answer(&"a".into(), 0), None);
    assert_eq!(harness.engine.counts().attempts, 0);
}

#[test]
fn after_a_restart_leases_hold_room_on_hosts_that_have_not_registered_and_ids_go_on() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    let before = harness.ask(maps("a", 2));
    harness.pass(Micros::from_secs(1));
    harness.restart();
    assert_eq!(harness.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), before.leases().collect::<Vec<_>>());
    for host in ["h1", "h0"] {
        harness.register(host, "/r0", 2048);
    }
    harness.publish();
    let after = harness.ask(maps("b", 4));
    assert_eq!(after.leases().count(), 2, "half of the cluster is leased");
    assert!(after.leases().min() > before.leases().max() && after.decision.id > before.decision.id);
    harness.now = harness.now.plus(harness.settings.lease_ttl);
    harness.restart();
    assert!(harness.leases().is_empty());
    assert!(!harness.tables().contains(&Table::Leases), "expired ones leave the journal");
}

#[test]
fn under_a_clock_that_went_back_no_lease_outlives_its_time() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    harness.ask(maps("a", 1));
    harness.now = Timestamp(harness.now.0 - Micros::from_secs(3_600).0);
    harness.restart();
    harness.pass(Micros(harness.settings.lease_ttl.0 - 1));
    harness.restart();
    assert_eq!(harness.leases().len(), 1);
    harness.pass(Micros(1));
    assert_eq!((harness.leases().len(), harness.count(Counter::LeasesExpired)), (0, 1));
    assert!(!harness.tables().contains(&Table::Leases));
}

#[test]
fn shadow_mode_leases_and_journals_nothing_but_compares() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    harness.mode = Mode::Shadow;
    let answer = harness.ask(maps("a", 2));
    assert_eq!((harness.leases().len(), answer.decision.hints.len(), answer.decision.asks.len()), (0, 2, 0));
    assert!(harness.tables().is_empty());
    let on = hosts(&answer);
    harness.allocated(on[0].as_str(), container(ONE(), 1), None);
    harness.allocated(on[0].as_str(), container(ONE(), 2), None);
    assert_eq!((harness.count(Counter::ShadowAgreed), harness.count(Counter::ShadowDiffered)), (1, 1));
    harness.mode = Mode::Off;
    let mut off = maps("b", 2);
    off.asks = vec![crate::testing::ask(off.groups[0].key, "*", 2)];
    let answer = harness.ask(off.clone());
    assert_eq!((answer.decision.hints.len(), &answer.decision.asks), (0, &off.asks));
}

#[test]
fn a_full_cluster_fails_only_those_who_want_it_to() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    harness.ask(maps("a", 1));
    let mut strict = maps("b", 1);
    strict.when_full = WhenFull::Fail;
    let refusal = harness.refusal(strict);
    assert!(matches!(&refusal, Refusal::Full { group, wanted: 1, free: 0, .. } if **group == *"map"), "{refusal}");
    assert_eq!(harness.ask(maps("c", 1)).decision.without_room, 1);
}

#[test]
fn the_wait_for_room_is_told_from_how_long_the_job_ran_before() {
    let mut harness = EngineHarness::with_nodes(2, 1024);
    let mut daily = maps("a", 2);
    daily.recurring_key = Some("daily".into());
    harness.ask(daily);
    for seconds in [50, 60, 70] {
        harness.finished(ONE(), "map", seconds, 0);
    }
    harness.publish();
    harness.beat("h1", 1024, Some(&[running(container(ONE(), 1))]));
    harness.beat("h0", 1024, Some(&[running(container(attempt(9, 9), 1))]));
    harness.publish();
    harness.now = harness.now.plus(Micros::from_secs(5));
    let waiting = harness.ask(maps("b", 1));
    let hint = &waiting.decision.hints[0];
    assert_eq!((hint.host.as_str(), hint.expected_wait), ("h1", Some(Micros::from_secs(55))));
    assert_eq!(hint.fallbacks, ["h0".into()], "of which nothing is known");
}

#[test]
fn answers_beyond_the_limit_are_forgotten_oldest_first_but_not_with_live_leases() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    harness.settings.answers_max = 2;
    harness.engine.reload(harness.settings.clone(), harness.now);
    for id in ["leased", "x", "y"] {
        harness.now = harness.now.plus(Micros(1));
        harness.ask(maps(id, 1));
    }
    let known = |id: &str| harness.engine.answer(&id.into(), 0).is_some();
    assert_eq!(["leased", "x", "y"].map(known), [true, false, true]);
    assert_eq!(harness.count(Counter::AnswersEvicted), 1);
}

#[test]
fn new_size_rules_count_from_the_next_commit() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let minimum = hintd_model::cluster::Resource::new(2048, 1);
    let rules = hintd_model::cluster::SizeRules { minimum, ..hintd_model::cluster::SizeRules::default() };
    harness.change(Change::Rules(rules));
    harness.publish();
    assert_eq!(harness.ask(maps("a", 4)).leases().count(), 2);
}

#[test]
fn leases_beyond_the_limit_are_refused_as_overload() {
    let mut harness = EngineHarness::with_nodes(1, 8192);
    harness.settings.leases_max = 3;
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.ask(maps("a", 2));
    let proposal = harness.propose(&Arc::new(maps("b", 2))).unwrap();
    let CommitOutcome::Refused(refusal) = harness.commit(proposal) else { panic!("over the limit") };
    assert!(matches!(&refusal, Refusal::Unavailable { message, .. } if message.contains("allows 3")), "{refusal}");
    harness.ask(maps("c", 1));
    assert_eq!(harness.leases().len(), 3);
}

#[test]
fn a_decision_keeps_the_id_it_was_drawn_and_the_next_lies_above() {
    let mut harness = EngineHarness::with_nodes(1, 8192);
    let drawn = DecisionId::of(harness.engine.next_decision().number + 5);
    let mut proposal = harness.propose(&Arc::new(maps("a", 1))).unwrap();
    proposal.decision = Some(drawn);
    let CommitOutcome::Committed(answer) = harness.commit(proposal) else { panic!("there is room") };
    assert_eq!(answer.decision.id, drawn);
    assert!(harness.ask(maps("b", 1)).decision.id > drawn);
}

#[test]
fn a_confirmed_lease_outlives_its_time_while_its_container_starts_but_not_for_ever() {
    let mut harness = EngineHarness::with_nodes(1, 2048);
    let answer = harness.ask(maps("a", 2));
    let leases: Vec<LeaseId> = answer.leases().collect();
    harness.pass(Micros::from_secs(20));
    harness.allocated("h0", container(ONE(), 7), Some(leases[0]));
    let waits = Micros(harness.settings.lease_ttl.0 * 10);
    let beat_and_pass = |harness: &mut EngineHarness, span: Micros| {
        harness.now = harness.now.plus(span);
        harness.beat("h0", 0, Some(&[]));
        harness.pass(Micros(0));
        harness.publish();
    };
    beat_and_pass(&mut harness, Micros(waits.0 - 1));
    assert_eq!(harness.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), [leases[0]], "the other one expired");
    assert_eq!(harness.ask(maps("b", 2)).leases().count(), 1, "its room is not given away");
    harness.restart();
    assert!(harness.engine.leases().any(|lease| lease.id == leases[0]), "the journal knows the longer time");
    harness.register("h0", "/r0", 2048);
    beat_and_pass(&mut harness, Micros(1));
    assert!(harness.engine.leases().all(|lease| lease.id != leases[0]));
}

#[test]
fn a_confirmed_lease_still_ends_with_its_container_its_node_and_its_release() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let leases: Vec<LeaseId> = harness.ask(maps("a", 3)).leases().collect();
    for (at, lease) in (0..).zip(&leases) {
        harness.allocated("h0", container(ONE(), at), Some(*lease));
    }
    harness.beat("h0", 1024, Some(&[running(container(ONE(), 1))]));
    harness.publish();
    let live = |harness: &EngineHarness| harness.leases().iter().map(|lease| lease.0).collect::<Vec<_>>();
    assert_eq!(live(&harness), [leases[0], leases[2]]);
    harness.engine.release(ONE(), &crate::Proof::of_token(Token("secret".into())), &[leases[0]], harness.now).unwrap();
    harness.drain();
    assert_eq!(live(&harness), [leases[2]]);
    harness.change(Change::Gone("h0".into()));
    harness.publish();
    assert!(live(&harness).is_empty() && !harness.tables().contains(&Table::Leases));
}

#[test]
fn a_confirmed_lease_ends_with_its_task_where_its_node_names_no_containers() {
    for named in [None, Some(&[][..])] {
        let mut harness = EngineHarness::new();
        harness.register("h0", "/r0", 2048);
        harness.beat("h0", 0, named);
        harness.publish();
        let leases: Vec<LeaseId> = harness.ask(maps("a", 2)).leases().collect();
        harness.allocated("h0", container(ONE(), 7), Some(leases[0]));
        harness.finished(ONE(), "map", 5, 0);
        let live = |harness: &EngineHarness| harness.leases().iter().map(|lease| lease.0).collect::<Vec<_>>();
        if named.is_some() {
            assert_eq!(live(&harness), leases, "its container is on its way to be seen");
            continue;
        }
        assert_eq!(live(&harness), [leases[1]], "nobody else will tell");
        harness.finished(ONE(), "map", 5, 0); // told twice
        assert_eq!((live(&harness), harness.counts[&Counter::LeasesReleased]), (vec![leases[1]], 1));
        harness.publish();
        let mut other = maps("b", 1);
        other.attempt = attempt(2, 1);
        assert_eq!(harness.ask(other).leases().count(), 1, "its room is another's");
        harness.restart();
        assert!(harness.engine.leases().all(|lease| lease.id != leases[0]), "the journal knows");
    }
}

#[test]
fn after_a_restart_a_tasks_end_ends_no_lease_before_its_node_has_reported_that_it_names_no_containers() {
    for (reports, ends) in [(vec![], false), (vec![Some(&[][..])], false), (vec![None], true)] {
        let mut harness = EngineHarness::new();
        harness.register("h0", "/r0", 2048);
        harness.publish();
        let lease = harness.ask(maps("a", 1)).leases().next();
        harness.allocated("h0", container(ONE(), 7), lease);
        harness.restart();
        harness.register("h0", "/r0", 2048);
        for named in reports {
            harness.beat("h0", 0, named);
        }
        harness.publish();
        harness.allocated("h0", container(ONE(), 7), lease); // on its new stream
        harness.finished(ONE(), "map", 5, 0);
        assert_eq!(harness.leases().is_empty(), ends);
    }
}

#[test]
fn a_confirmed_lease_is_cut_to_its_own_time_under_a_clock_that_went_back() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    let lease = harness.ask(maps("a", 1)).leases().next();
    harness.allocated("h0", container(ONE(), 7), lease);
    harness.now = Timestamp(harness.now.0 - Micros::from_secs(3_600).0);
    harness.restart();
    assert_eq!(harness.leases().len(), 1);
    let expires = harness.engine.leases().next().map(|lease| lease.expires);
    assert_eq!(expires, Some(harness.now.plus(Micros(harness.settings.lease_ttl.0 * 10))));
}

#[test]
fn a_remembered_request_leaves_its_ask_table_behind() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let mut asked = maps("a", 1);
    asked.asks = vec![crate::testing::ask(asked.groups[0].key, "*", 1)];
    harness.ask(asked.clone());
    let kept = |harness: &EngineHarness| harness.engine.attempts().get(ONE()).unwrap().requests[0].clone();
    let without = hintd_model::cluster::HintRequest { asks: Vec::new(), ..asked.clone() };
    assert_eq!(*kept(&harness), without);
    let written = crate::attempts::put_request(&Arc::new(without.clone()));
    let Op::Put { table, key, value } = written else { panic!("{written:?}") };
    assert_eq!(harness.rows[&(table, key)], value, "nor does the journal keep it");
    // A row that an older version wrote.
    crate::tests::harness::apply(&mut harness.rows, vec![crate::attempts::put_request(&Arc::new(asked))]);
    harness.restart();
    assert_eq!(*kept(&harness), without);
}

#[test]
fn where_one_of_two_feeds_names_containers_only_those_end_leases() {
    let mut harness = EngineHarness::with_nodes(1, 8192);
    let answer = harness.ask(maps("a", 2));
    harness.beat("h0", 1024, None);
    harness.publish();
    assert_eq!(harness.leases().len(), 2, "whose container it is, the other feed will say");
    harness.beat("h0", 1024, Some(&[running(container(ONE(), 1))]));
    harness.publish();
    harness.beat("h0", 1024, None);
    let generation = harness.publish();
    assert_eq!(harness.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), [answer.leases().last().unwrap()]);
    assert_eq!(generation.snapshot.containers, [1]);
}

#[test]
fn requests_that_a_start_has_no_place_for_leave_the_journal() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    for id in ["a", "b", "c"] {
        harness.ask(maps(id, 1));
    }
    let rows = |harness: &EngineHarness| harness.rows.keys().filter(|(table, _)| *table == Table::Attempts).count();
    assert_eq!(rows(&harness), 4, "the token and three requests");
    harness.settings.requests_per_attempt = 1;
    harness.restart();
    assert_eq!(rows(&harness), 2, "the token and the newest request");
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    assert_eq!(rows(&harness), 0, "nothing of what is over stays");
}
