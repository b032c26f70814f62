//! Leases: granted, bound, followed, withdrawn, given back, recovered.

use super::desk::{Desk, container, hosts, maps, running};
use crate::journal::{Op, Table};
use crate::testing::attempt;
use crate::{CommitOutcome, Counter, Effect, FollowBody, Mode, Refusal, Released, TaskWhat, Token};
use hintd_model::cluster::{Change, Gang, WhenFull};
use hintd_model::units::{AttemptId, DecisionId, LeaseId, Micros, Timestamp};
use std::sync::Arc;

const ONE: fn() -> AttemptId = || attempt(1, 1);

#[test]
fn a_granted_container_has_a_lease_and_its_room_is_gone_for_the_next() {
    let mut desk = Desk::with_nodes(1, 2048);
    let answer = desk.ask(maps("a", 2));
    assert_eq!(answer.leases().count(), 2);
    assert_eq!(
        desk.engine.generation().leases.leased(desk.engine.settled().statics.find("h0").unwrap()).memory_mb(),
        2048
    );
    let later = desk.ask(maps("b", 1));
    assert_eq!((later.leases().count(), later.decision.without_room), (0, 1));
    assert_eq!(later.decision.hints[0].host, "h0".into(), "advised where room may come");
}

#[test]
fn of_two_proposals_for_the_same_room_one_conflicts_and_names_the_node() {
    let mut desk = Desk::with_nodes(1, 1024);
    let [first, second] = ["a", "b"].map(|id| desk.propose(&Arc::new(maps(id, 1))).unwrap());
    assert!(matches!(desk.commit(first), CommitOutcome::Committed(_)));
    let CommitOutcome::Conflict { nodes } = desk.commit(second) else { panic!("no conflict") };
    assert_eq!(nodes, ["h0".into()]);
    assert_eq!((desk.leases().len(), desk.count(Counter::CommitConflicts)), (1, 1));
}

#[test]
fn a_gang_is_leased_whole_or_not_at_all() {
    let mut desk = Desk::with_nodes(2, 2048);
    let mut gang = maps("gang", 4);
    gang.gang = Gang::All;
    let proposal = desk.propose(&Arc::new(gang.clone())).unwrap();
    desk.ask(maps("small", 1));
    assert!(matches!(desk.commit(proposal.clone()), CommitOutcome::Conflict { .. }));
    assert_eq!(desk.leases().len(), 1, "nothing of the gang stays");
    let mut last = proposal;
    last.last_try = true;
    let CommitOutcome::Committed(answer) = desk.commit(last) else { panic!("a last try is answered") };
    assert_eq!((answer.leases().count(), answer.decision.without_room), (0, 4));
    gang.id = "again".into();
    let again = desk.ask(gang);
    assert_eq!((again.leases().count(), again.decision.without_room, desk.leases().len()), (0, 4, 1));
}

#[test]
fn the_last_try_of_a_gang_that_may_be_cut_leases_what_fits() {
    let mut desk = Desk::with_nodes(1, 4096);
    let mut proposal = desk.propose(&Arc::new(maps("a", 4))).unwrap();
    desk.ask(maps("b", 1));
    proposal.last_try = true;
    let CommitOutcome::Committed(answer) = desk.commit(proposal) else { panic!("a last try is answered") };
    let told: Vec<_> =
        answer.decision.hints.iter().map(|hint| (hint.first_index, hint.count, hint.leases.len())).collect();
    assert_eq!(told, [(0, 3, 3), (3, 1, 0)]);
    assert_eq!(answer.decision.without_room, 1);
}

#[test]
fn the_same_request_gets_the_same_answer_and_another_body_is_refused() {
    let mut desk = Desk::with_nodes(2, 4096);
    let answer = desk.ask(maps("a", 1));
    let mut again = desk.propose(&Arc::new(maps("a", 1))).unwrap();
    again.digest = answer.digest;
    let CommitOutcome::Answered(same) = desk.commit(again.clone()) else { panic!("a retry is answered") };
    assert_eq!((same.decision.id, desk.leases().len()), (answer.decision.id, 1));
    let mut other = again;
    other.digest = 99;
    assert!(matches!(desk.commit(other), CommitOutcome::Refused(Refusal::IdReused { .. })));
    desk.restart();
    assert_eq!(desk.engine.lookup(&"a".into(), answer.digest), Some(Ok(answer)), "after a restart as well");
}

#[test]
fn a_container_ends_the_oldest_lease_of_its_kind_on_its_host_and_room_is_counted_once() {
    let mut desk = Desk::with_nodes(1, 4096);
    let answer = desk.ask(maps("a", 2));
    desk.beat("h0", 1024, Some(&[running(container(ONE(), 5))]));
    let generation = desk.publish();
    let oldest = answer.leases().next().unwrap();
    assert_eq!(desk.leases().len(), 1);
    assert!(desk.engine.leases().all(|lease| lease.id != oldest));
    let node = generation.snapshot.statics.find("h0").unwrap();
    assert_eq!(generation.snapshot.room(node, &generation.leases).memory_mb(), 4096 - 2048);
    assert_eq!(desk.count(Counter::LeasesBound), 1);
    // Another application's container, another size: no lease of ours.
    let mut large = running(container(ONE(), 6));
    large.size.memory_mb = 2048;
    desk.beat("h0", 1024, Some(&[running(container(ONE(), 5)), running(container(attempt(9, 1), 1)), large]));
    desk.publish();
    assert_eq!(desk.count(Counter::LeasesBound), 1);
    assert_eq!(
        desk.engine.explain(answer.decision.id).unwrap().leases.iter().map(|l| l.state).collect::<Vec<_>>(),
        ["bound", "withdrawn"]
    );
}

#[test]
fn a_lease_ends_no_earlier_for_commits_than_its_container_counts() {
    let mut desk = Desk::with_nodes(1, 1024);
    desk.ask(maps("a", 1));
    let stale = desk.propose(&Arc::new(maps("b", 1))).unwrap();
    desk.beat("h0", 1024, Some(&[running(container(ONE(), 5))]));
    assert_eq!(stale.wanted(), 0);
    assert_eq!(desk.leases().len(), 1, "not settled yet");
    desk.publish();
    assert_eq!(desk.leases().len(), 0);
    assert_eq!(desk.ask(maps("c", 1)).leases().count(), 0, "the container has the room now");
}

#[test]
fn where_containers_are_not_named_a_rise_of_use_ends_the_oldest_leases_that_fit_it() {
    let mut desk = Desk::new();
    desk.register("h0", "/r0", 8192);
    desk.beat("h0", 1024, None);
    desk.publish();
    let answer = desk.ask(maps("a", 3));
    desk.beat("h0", 1024 + 500, None);
    desk.publish();
    assert_eq!(desk.leases().len(), 3, "less than a lease");
    desk.beat("h0", 1524 + 2048, None);
    let generation = desk.publish();
    assert_eq!(desk.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), [answer.leases().last().unwrap()]);
    let node = generation.snapshot.statics.find("h0").unwrap();
    assert_eq!(generation.snapshot.room(node, &generation.leases).memory_mb(), 8192 - 1524 - 3 * 1024);
}

#[test]
fn the_first_report_after_a_restart_is_no_rise() {
    let mut desk = Desk::new();
    desk.register("h0", "/r0", 8192);
    desk.beat("h0", 4096, None);
    desk.publish();
    desk.ask(maps("a", 2));
    desk.restart();
    desk.register("h0", "/r0", 8192);
    desk.beat("h0", 4096, None);
    desk.publish();
    assert_eq!(desk.leases().len(), 2);
    desk.beat("h0", 5120, None);
    desk.publish();
    assert_eq!(desk.leases().len(), 1);
}

#[test]
fn foreign_use_withdraws_the_youngest_unconfirmed_leases_and_says_so() {
    let mut desk = Desk::with_nodes(1, 4096);
    let answer = desk.ask(maps("a", 4));
    let leases: Vec<LeaseId> = answer.leases().collect();
    desk.allocated("h0", container(ONE(), 7), Some(leases[3]));
    desk.beat("h0", 2000, Some(&[]));
    desk.publish();
    let left: Vec<LeaseId> = desk.engine.leases().map(|lease| lease.id).collect();
    assert_eq!(left, [leases[0], leases[3]], "the youngest is confirmed and stays");
    let told = desk.out.iter().find_map(|effect| match effect {
        Effect::Follow { attempt, message: FollowBody::Withdraw { leases, host, reason }, cause } => {
            Some((*attempt, leases.clone(), host.to_string(), *reason, *cause))
        }
        _ => None,
    });
    assert_eq!(told, Some((ONE(), vec![leases[2], leases[1]], "h0".to_owned(), "foreign_use", "foreign_use")));
    assert_eq!(desk.count(Counter::LeasesWithdrawn), 2);
    assert_eq!(desk.rows.keys().filter(|(table, _)| *table == Table::Leases).count(), 2);
    desk.beat("h0", 4000, Some(&[]));
    desk.publish();
    assert!(desk.leases().is_empty(), "confirmed ones go last, but go");
}

#[test]
fn an_allocation_elsewhere_gives_the_lease_back() {
    let mut desk = Desk::with_nodes(2, 4096);
    let answer = desk.ask(maps("a", 2));
    let (on, lease) = (hosts(&answer), answer.leases().next().unwrap());
    desk.allocated(on[1].as_str(), container(ONE(), 7), Some(lease));
    desk.allocated(on[1].as_str(), container(ONE(), 7), Some(lease));
    assert_eq!(desk.leases().iter().map(|lease| &lease.1[..]).collect::<Vec<_>>(), [on[1].as_str()]);
    assert_eq!(desk.count(Counter::LeasesReleased), 1);
    // Without a lease id: the oldest of the group on that host.
    desk.allocated(on[1].as_str(), container(ONE(), 8), None);
    assert_eq!((desk.count(Counter::HintsFollowed), desk.count(Counter::HintsElsewhere)), (1, 1));
    assert!(desk.engine.leases().all(|lease| lease.confirmed == Some(container(ONE(), 8))));
}

#[test]
fn a_lease_ends_at_its_time_to_live() {
    let mut desk = Desk::with_nodes(1, 1024);
    let answer = desk.ask(maps("a", 1));
    assert_eq!(answer.decision.hints[0].expires, Some(desk.now.plus(desk.settings.lease_ttl)));
    desk.beat("h0", 0, Some(&[]));
    desk.pass(Micros(desk.settings.lease_ttl.0 - 1));
    assert_eq!(desk.leases().len(), 1);
    desk.pass(Micros(1));
    assert_eq!((desk.leases().len(), desk.count(Counter::LeasesExpired)), (0, 1));
    desk.pass(desk.settings.answers_keep);
    assert_eq!(desk.engine.lookup(&"a".into(), 0), None);
    assert!(desk.out.contains(&Effect::AnswerForgotten("a".into())));
    assert_eq!(desk.tables(), [Table::Attempts].into());
}

#[test]
fn leases_are_given_back_with_the_right_token_only() {
    let mut desk = Desk::with_nodes(1, 4096);
    let answer = desk.ask(maps("a", 3));
    let leases: Vec<LeaseId> = answer.leases().collect();
    let (right, wrong) = (Token("secret".into()), Token("guess".into()));
    assert_eq!(desk.engine.release(ONE(), &wrong, &[], desk.now), Err(Refusal::BadToken { attempt: ONE() }));
    let gone = LeaseId(7);
    let released = desk.engine.release(ONE(), &right, &[leases[0], gone], desk.now).unwrap();
    assert_eq!(released, Released { released: 1, not_held: vec![gone] });
    assert_eq!(desk.engine.release(ONE(), &right, &[], desk.now).unwrap().released, 2);
    desk.drain();
    assert!(desk.leases().is_empty());
}

#[test]
fn a_new_attempt_releases_what_the_old_one_held_and_the_old_one_gets_no_more() {
    let mut desk = Desk::with_nodes(1, 4096);
    desk.ask(maps("a", 4));
    let mut second = maps("b", 1);
    second.attempt = attempt(1, 2);
    desk.ask(second);
    assert!(desk.engine.leases().all(|lease| lease.attempt == attempt(1, 2)));
    assert!(desk.out.contains(&Effect::AttemptEnded(ONE())));
    let late = desk.propose(&Arc::new(maps("c", 1))).unwrap();
    assert!(matches!(desk.commit(late), CommitOutcome::Refused(Refusal::Invalid { .. })));
}

#[test]
fn a_done_application_holds_nothing() {
    let mut desk = Desk::with_nodes(1, 4096);
    desk.ask(maps("a", 2));
    desk.event(ONE(), "", TaskWhat::Done { failed: false });
    assert!(desk.leases().is_empty());
    assert_eq!(desk.tables(), [Table::Answers].into());
}

#[test]
fn what_the_journal_lost_was_never_promised() {
    let mut desk = Desk::with_nodes(1, 4096);
    let proposal = desk.propose(&Arc::new(maps("a", 2))).unwrap();
    let CommitOutcome::Committed(answer) = desk.engine.commit(proposal, Token("t".into()), desk.now) else { panic!() };
    desk.engine.take_effects(); // the store failed
    desk.engine.undo(answer.decision.id, desk.now);
    desk.drain();
    assert!(desk.leases().is_empty() && desk.tables().is_empty());
    assert_eq!(desk.engine.lookup(&"a".into(), 0), None);
    assert_eq!(desk.engine.counts().attempts, 0);
}

#[test]
fn after_a_restart_leases_hold_room_on_hosts_that_have_not_registered_and_ids_go_on() {
    let mut desk = Desk::with_nodes(2, 2048);
    let before = desk.ask(maps("a", 2));
    desk.pass(Micros::from_secs(1));
    desk.restart();
    assert_eq!(desk.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), before.leases().collect::<Vec<_>>());
    for host in ["h1", "h0"] {
        desk.register(host, "/r0", 2048);
    }
    desk.publish();
    let after = desk.ask(maps("b", 4));
    assert_eq!(after.leases().count(), 2, "half of the cluster is leased");
    assert!(after.leases().min() > before.leases().max() && after.decision.id > before.decision.id);
    desk.now = desk.now.plus(desk.settings.lease_ttl);
    desk.restart();
    assert!(desk.leases().is_empty());
    assert!(!desk.tables().contains(&Table::Leases), "expired ones leave the journal");
}

#[test]
fn under_a_clock_that_went_back_no_lease_outlives_its_time() {
    let mut desk = Desk::with_nodes(1, 4096);
    desk.ask(maps("a", 1));
    desk.now = Timestamp(desk.now.0 - Micros::from_secs(3_600).0);
    desk.restart();
    desk.pass(Micros(desk.settings.lease_ttl.0 - 1));
    desk.restart();
    assert_eq!(desk.leases().len(), 1);
    desk.pass(Micros(1));
    assert_eq!((desk.leases().len(), desk.count(Counter::LeasesExpired)), (0, 1));
    assert!(!desk.tables().contains(&Table::Leases));
}

#[test]
fn shadow_mode_leases_and_journals_nothing_but_compares() {
    let mut desk = Desk::with_nodes(2, 2048);
    desk.mode = Mode::Shadow;
    let answer = desk.ask(maps("a", 2));
    assert_eq!((desk.leases().len(), answer.decision.hints.len(), answer.decision.asks.len()), (0, 2, 0));
    assert!(desk.tables().is_empty());
    let on = hosts(&answer);
    desk.allocated(on[0].as_str(), container(ONE(), 1), None);
    desk.allocated(on[0].as_str(), container(ONE(), 2), None);
    assert_eq!((desk.count(Counter::ShadowAgreed), desk.count(Counter::ShadowDiffered)), (1, 1));
    desk.mode = Mode::Off;
    let mut off = maps("b", 2);
    off.asks = vec![crate::testing::ask(off.groups[0].key, "*", 2)];
    let answer = desk.ask(off.clone());
    assert_eq!((answer.decision.hints.len(), &answer.decision.asks), (0, &off.asks));
}

#[test]
fn a_full_cluster_fails_only_those_who_want_it_to() {
    let mut desk = Desk::with_nodes(1, 1024);
    desk.ask(maps("a", 1));
    let mut strict = maps("b", 1);
    strict.when_full = WhenFull::Fail;
    let refusal = desk.refusal(strict);
    assert!(matches!(&refusal, Refusal::Full { group, wanted: 1, free: 0, .. } if **group == *"map"), "{refusal}");
    assert_eq!(desk.ask(maps("c", 1)).decision.without_room, 1);
}

#[test]
fn the_wait_for_room_is_told_from_how_long_the_job_ran_before() {
    let mut desk = Desk::with_nodes(2, 1024);
    let mut daily = maps("a", 2);
    daily.recurring_key = Some("daily".into());
    desk.ask(daily);
    for seconds in [50, 60, 70] {
        desk.finished(ONE(), "map", seconds, 0);
    }
    desk.publish();
    desk.beat("h1", 1024, Some(&[running(container(ONE(), 1))]));
    desk.beat("h0", 1024, Some(&[running(container(attempt(9, 9), 1))]));
    desk.publish();
    desk.now = desk.now.plus(Micros::from_secs(5));
    let waiting = desk.ask(maps("b", 1));
    let hint = &waiting.decision.hints[0];
    assert_eq!((hint.host.as_str(), hint.expected_wait), ("h1", Some(Micros::from_secs(55))));
    assert_eq!(hint.fallbacks, ["h0".into()], "of which nothing is known");
}

#[test]
fn answers_beyond_the_limit_are_forgotten_oldest_first_but_not_with_live_leases() {
    let mut desk = Desk::with_nodes(1, 1024);
    desk.settings.answers_max = 2;
    desk.engine.reload(desk.settings.clone(), desk.now);
    for id in ["leased", "x", "y"] {
        desk.now = desk.now.plus(Micros(1));
        desk.ask(maps(id, 1));
    }
    let known = |id: &str| desk.engine.lookup(&id.into(), 0).is_some();
    assert_eq!(["leased", "x", "y"].map(known), [true, false, true]);
    assert_eq!(desk.count(Counter::AnswersEvicted), 1);
}

#[test]
fn new_size_rules_count_from_the_next_commit() {
    let mut desk = Desk::with_nodes(1, 4096);
    let minimum = hintd_model::cluster::Resource::new(2048, 1);
    let rules = hintd_model::cluster::SizeRules { minimum, ..hintd_model::cluster::SizeRules::default() };
    desk.change(Change::Rules(rules));
    desk.publish();
    assert_eq!(desk.ask(maps("a", 4)).leases().count(), 2);
}

#[test]
fn leases_beyond_the_limit_are_refused_as_overload() {
    let mut desk = Desk::with_nodes(1, 8192);
    desk.settings.leases_max = 3;
    desk.engine.reload(desk.settings.clone(), desk.now);
    desk.ask(maps("a", 2));
    let proposal = desk.propose(&Arc::new(maps("b", 2))).unwrap();
    let CommitOutcome::Refused(refusal) = desk.commit(proposal) else { panic!("over the limit") };
    assert!(matches!(&refusal, Refusal::Unavailable { message, .. } if message.contains("allows 3")), "{refusal}");
    desk.ask(maps("c", 1));
    assert_eq!(desk.leases().len(), 3);
}

#[test]
fn a_decision_keeps_the_id_it_was_drawn_and_the_next_lies_above() {
    let mut desk = Desk::with_nodes(1, 8192);
    let drawn = DecisionId(desk.engine.next_decision().0 + 5);
    let mut proposal = desk.propose(&Arc::new(maps("a", 1))).unwrap();
    proposal.decision = Some(drawn);
    let CommitOutcome::Committed(answer) = desk.commit(proposal) else { panic!("there is room") };
    assert_eq!(answer.decision.id, drawn);
    assert!(desk.ask(maps("b", 1)).decision.id > drawn);
}

#[test]
fn a_confirmed_lease_outlives_its_time_while_its_container_starts_but_not_for_ever() {
    let mut desk = Desk::with_nodes(1, 2048);
    let answer = desk.ask(maps("a", 2));
    let leases: Vec<LeaseId> = answer.leases().collect();
    desk.pass(Micros::from_secs(20));
    desk.allocated("h0", container(ONE(), 7), Some(leases[0]));
    let waits = Micros(desk.settings.lease_ttl.0 * 10);
    let beat_and_pass = |desk: &mut Desk, span: Micros| {
        desk.now = desk.now.plus(span);
        desk.beat("h0", 0, Some(&[]));
        desk.pass(Micros(0));
        desk.publish();
    };
    beat_and_pass(&mut desk, Micros(waits.0 - 1));
    assert_eq!(desk.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), [leases[0]], "the other one expired");
    assert_eq!(desk.ask(maps("b", 2)).leases().count(), 1, "its room is not given away");
    desk.restart();
    assert!(desk.engine.leases().any(|lease| lease.id == leases[0]), "the journal knows the longer time");
    desk.register("h0", "/r0", 2048);
    beat_and_pass(&mut desk, Micros(1));
    assert!(desk.engine.leases().all(|lease| lease.id != leases[0]));
}

#[test]
fn a_confirmed_lease_still_ends_with_its_container_its_node_and_its_release() {
    let mut desk = Desk::with_nodes(1, 4096);
    let leases: Vec<LeaseId> = desk.ask(maps("a", 3)).leases().collect();
    for (at, lease) in (0..).zip(&leases) {
        desk.allocated("h0", container(ONE(), at), Some(*lease));
    }
    desk.beat("h0", 1024, Some(&[running(container(ONE(), 1))]));
    desk.publish();
    let live = |desk: &Desk| desk.leases().iter().map(|lease| lease.0).collect::<Vec<_>>();
    assert_eq!(live(&desk), [leases[0], leases[2]]);
    desk.engine.release(ONE(), &Token("secret".into()), &[leases[0]], desk.now).unwrap();
    desk.drain();
    assert_eq!(live(&desk), [leases[2]]);
    desk.change(Change::Gone("h0".into()));
    desk.publish();
    assert!(live(&desk).is_empty() && !desk.tables().contains(&Table::Leases));
}

#[test]
fn a_confirmed_lease_ends_with_its_task_where_its_node_names_no_containers() {
    for named in [None, Some(&[][..])] {
        let mut desk = Desk::new();
        desk.register("h0", "/r0", 2048);
        desk.beat("h0", 0, named);
        desk.publish();
        let leases: Vec<LeaseId> = desk.ask(maps("a", 2)).leases().collect();
        desk.allocated("h0", container(ONE(), 7), Some(leases[0]));
        desk.finished(ONE(), "map", 5, 0);
        let live = |desk: &Desk| desk.leases().iter().map(|lease| lease.0).collect::<Vec<_>>();
        if named.is_some() {
            assert_eq!(live(&desk), leases, "its container is on its way to be seen");
            continue;
        }
        assert_eq!(live(&desk), [leases[1]], "nobody else will tell");
        desk.finished(ONE(), "map", 5, 0); // told twice
        assert_eq!((live(&desk), desk.counts[&Counter::LeasesReleased]), (vec![leases[1]], 1));
        desk.publish();
        let mut other = maps("b", 1);
        other.attempt = attempt(2, 1);
        assert_eq!(desk.ask(other).leases().count(), 1, "its room is another's");
        desk.restart();
        assert!(desk.engine.leases().all(|lease| lease.id != leases[0]), "the journal knows");
    }
}

#[test]
fn after_a_restart_a_tasks_end_ends_no_lease_before_its_node_has_reported_that_it_names_no_containers() {
    for (reports, ends) in [(vec![], false), (vec![Some(&[][..])], false), (vec![None], true)] {
        let mut desk = Desk::new();
        desk.register("h0", "/r0", 2048);
        desk.publish();
        let lease = desk.ask(maps("a", 1)).leases().next();
        desk.allocated("h0", container(ONE(), 7), lease);
        desk.restart();
        desk.register("h0", "/r0", 2048);
        for named in reports {
            desk.beat("h0", 0, named);
        }
        desk.publish();
        desk.allocated("h0", container(ONE(), 7), lease); // on its new stream
        desk.finished(ONE(), "map", 5, 0);
        assert_eq!(desk.leases().is_empty(), ends);
    }
}

#[test]
fn a_confirmed_lease_is_cut_to_its_own_time_under_a_clock_that_went_back() {
    let mut desk = Desk::with_nodes(1, 1024);
    let lease = desk.ask(maps("a", 1)).leases().next();
    desk.allocated("h0", container(ONE(), 7), lease);
    desk.now = Timestamp(desk.now.0 - Micros::from_secs(3_600).0);
    desk.restart();
    assert_eq!(desk.leases().len(), 1);
    let expires = desk.engine.leases().next().map(|lease| lease.expires);
    assert_eq!(expires, Some(desk.now.plus(Micros(desk.settings.lease_ttl.0 * 10))));
}

#[test]
fn a_remembered_request_leaves_its_ask_table_behind() {
    let mut desk = Desk::with_nodes(1, 4096);
    let mut asked = maps("a", 1);
    asked.asks = vec![crate::testing::ask(asked.groups[0].key, "*", 1)];
    desk.ask(asked.clone());
    let kept = |desk: &Desk| desk.engine.attempts().get(ONE()).unwrap().requests[0].clone();
    let without = hintd_model::cluster::HintRequest { asks: Vec::new(), ..asked.clone() };
    assert_eq!(*kept(&desk), without);
    let written = crate::attempts::put_request(&Arc::new(without.clone()));
    let Op::Put { table, key, value } = written else { panic!("{written:?}") };
    assert_eq!(desk.rows[&(table, key)], value, "nor does the journal keep it");
    // A row that an older version wrote.
    crate::tests::desk::apply(&mut desk.rows, vec![crate::attempts::put_request(&Arc::new(asked))]);
    desk.restart();
    assert_eq!(*kept(&desk), without);
}

#[test]
fn where_one_of_two_feeds_names_containers_only_those_end_leases() {
    let mut desk = Desk::with_nodes(1, 8192);
    let answer = desk.ask(maps("a", 2));
    desk.beat("h0", 1024, None);
    desk.publish();
    assert_eq!(desk.leases().len(), 2, "whose container it is, the other feed will say");
    desk.beat("h0", 1024, Some(&[running(container(ONE(), 1))]));
    desk.publish();
    desk.beat("h0", 1024, None);
    let generation = desk.publish();
    assert_eq!(desk.leases().iter().map(|lease| lease.0).collect::<Vec<_>>(), [answer.leases().last().unwrap()]);
    assert_eq!(generation.snapshot.containers, [1]);
}

#[test]
fn requests_that_a_start_has_no_place_for_leave_the_journal() {
    let mut desk = Desk::with_nodes(2, 8192);
    for id in ["a", "b", "c"] {
        desk.ask(maps(id, 1));
    }
    let rows = |desk: &Desk| desk.rows.keys().filter(|(table, _)| *table == Table::Attempts).count();
    assert_eq!(rows(&desk), 4, "the token and three requests");
    desk.settings.requests_per_attempt = 1;
    desk.restart();
    assert_eq!(rows(&desk), 2, "the token and the newest request");
    desk.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    assert_eq!(rows(&desk), 0, "nothing of what is over stays");
}
