//! Silent nodes: stale, lost, back; what is placed anew, once.

use super::desk::{Desk, container, maps, running};
use crate::testing::{attempt, request};
use crate::{CommitOutcome, Counter, Effect, FollowBody, Refusal, TaskWhat};
use hintd_model::cluster::{Change, NodeState};
use hintd_model::units::{HostName, Micros};

fn state(desk: &Desk, host: &str) -> NodeState {
    let snapshot = desk.engine.settled();
    snapshot.state[snapshot.statics.find(host).unwrap().at()]
}

/// Lets a time pass in which only these hosts report.
fn pass_with(desk: &mut Desk, seconds: u64, alive: &[&str]) {
    for _ in 0..seconds {
        desk.pass(Micros::from_secs(1));
        for host in alive {
            desk.beat(host, 0, Some(&[]));
        }
    }
    desk.publish();
}

#[test]
fn a_silent_node_is_stale_then_lost_and_running_again_when_it_returns() {
    let mut desk = Desk::with_nodes(2, 4096);
    pass_with(&mut desk, 10, &["h1"]);
    assert_eq!(state(&desk, "h0"), NodeState::Running);
    pass_with(&mut desk, 1, &["h1"]);
    assert_eq!(state(&desk, "h0"), NodeState::Stale);
    assert_eq!(desk.ask(maps("a", 1)).decision.hints[0].host, "h1".into());
    pass_with(&mut desk, 50, &["h1"]);
    assert_eq!((state(&desk, "h0"), desk.count(Counter::NodesLost)), (NodeState::Lost, 1));
    desk.beat("h0", 0, Some(&[]));
    desk.publish();
    assert_eq!((state(&desk, "h0"), desk.count(Counter::NodesBack)), (NodeState::Running, 1));
    assert_eq!((state(&desk, "h1"), desk.count(Counter::NodesStale)), (NodeState::Running, 1));
}

#[test]
fn tasks_of_a_lost_node_are_placed_anew_once_and_nothing_else_is() {
    let mut desk = Desk::with_nodes(2, 8192);
    let mut job = request("job", &[("map", 8), ("reduce", 2)]);
    job.recurring_key = Some("daily".into());
    desk.settings.lease_ttl = Micros::from_secs(1_000);
    desk.engine.reload(desk.settings.clone(), desk.now);
    desk.ask(job);
    let reduce = |id| hintd_model::cluster::NamedContainer {
        key: hintd_model::units::SchedulerKey { priority: 2, allocation_request_id: -1 },
        ..running(id)
    };
    let id = |n| container(attempt(1, 1), n);
    let on_h0 = [running(id(1)), running(id(2)), reduce(id(3)), running(container(attempt(7, 1), 1))];
    desk.beat("h0", 4096, Some(&on_h0));
    desk.beat("h1", 1024, Some(&[running(id(4))]));
    desk.publish();
    let held_on_h0 = desk.leases().iter().filter(|lease| lease.1 == "h0").count() as u64;
    assert!(held_on_h0 > 0, "so that leases are lost as well");
    for _ in 0..61 {
        desk.now = desk.now.plus(Micros::from_secs(1));
        desk.beat("h1", 1024, Some(&[running(id(4))]));
    }
    desk.publish();
    desk.pass(Micros(0));
    let replaced = desk.replaced();
    assert_eq!(replaced.len(), 1);
    let groups: Vec<_> = replaced[0].groups.iter().map(|group| (&*group.name, group.count)).collect();
    let maps = 2 + u32::try_from(held_on_h0).unwrap();
    assert_eq!(groups, [("map", maps), ("reduce", 1)], "what ran there, and what was to run there");
    assert_eq!(replaced[0].constraints.avoid_hosts, ["h0".into()]);
    assert_eq!(replaced[0].id, "job/replace/h0/1".into());
    assert_eq!((desk.count(Counter::TasksReplaced), desk.count(Counter::TasksUnknown)), (3 + held_on_h0, 1));
    // The node comes back with the same containers and is lost again.
    desk.beat("h0", 4096, Some(&on_h0));
    desk.publish();
    for _ in 0..61 {
        desk.now = desk.now.plus(Micros::from_secs(1));
        desk.beat("h1", 1024, Some(&[running(id(4))]));
    }
    desk.pass(Micros(0));
    assert_eq!((desk.count(Counter::NodesLost), desk.replaced().len()), (2, 1), "once is enough");
}

#[test]
fn leases_on_a_node_that_left_are_withdrawn_and_their_containers_placed_anew() {
    let mut desk = Desk::with_nodes(2, 4096);
    let answer = desk.ask(maps("job", 4));
    let lost: Vec<_> = answer.decision.hints.iter().filter(|hint| hint.host == "h0".into()).collect();
    desk.change(Change::Gone("h0".into()));
    desk.publish();
    assert!(desk.leases().iter().all(|lease| lease.1 == "h1"));
    let withdrawn = desk.out.iter().any(|effect| {
        matches!(effect, Effect::Follow { message: FollowBody::Withdraw { leases, reason: "node_gone", .. }, .. }
            if leases.len() == lost[0].leases.len())
    });
    assert!(withdrawn, "{:?}", desk.out);
    assert_eq!(desk.replaced()[0].containers(), u64::from(lost[0].count));
    let again = desk.ask((*desk.replaced()[0]).clone());
    assert!(again.decision.hints.iter().all(|hint| hint.host == HostName::from("h1")));
    assert_eq!(again.leases().count(), 2);
}

#[test]
fn after_a_restart_silence_counts_from_the_start() {
    let mut desk = Desk::with_nodes(1, 4096);
    desk.now = desk.now.plus(Micros::from_secs(3_600));
    desk.settings.lost_after = Micros::from_secs(20);
    desk.beat("h0", 0, Some(&[]));
    desk.ask(maps("job", 1));
    desk.restart();
    desk.pass(Micros::from_secs(19));
    assert_eq!((desk.leases().len(), desk.replaced().len()), (1, 0));
    desk.pass(Micros::from_secs(2));
    assert_eq!((desk.leases().len(), desk.replaced().len()), (0, 1), "h0 never registered again");
    desk.pass(Micros::from_secs(2));
    assert_eq!(desk.replaced().len(), 1);
}

#[test]
fn while_whoever_tells_of_nodes_is_blind_they_go_stale_and_none_is_lost() {
    let mut desk = Desk::with_nodes(1, 4096);
    desk.settings.lost_after = Micros::from_secs(20);
    desk.engine.reload(desk.settings.clone(), desk.now);
    desk.beat("h0", 0, Some(&[]));
    desk.change(Change::Blind(Micros::from_secs(60)));
    desk.change(Change::Blind(Micros::from_secs(30))); // the longer one holds
    let state = |desk: &mut Desk| {
        desk.publish();
        desk.engine.generation().snapshot.state[0]
    };
    desk.pass(Micros::from_secs(59));
    assert_eq!(state(&mut desk), NodeState::Stale);
    desk.pass(Micros::from_secs(2));
    assert_eq!(state(&mut desk), NodeState::Lost);
}

#[test]
fn an_application_that_ended_meanwhile_gets_no_leases_for_its_lost_tasks() {
    let mut desk = Desk::with_nodes(2, 8192);
    desk.ask(maps("a", 2));
    desk.change(Change::Gone("h0".into()));
    desk.change(Change::Gone("h1".into()));
    desk.publish();
    let again = desk.replaced().pop().unwrap();
    desk.register("h0", "/r0", 8192);
    desk.beat("h0", 0, Some(&[]));
    desk.publish();
    let proposal = desk.propose(&again).unwrap();
    desk.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    let outcome = desk.commit(proposal);
    assert!(matches!(outcome, CommitOutcome::Refused(Refusal::Unknown { .. })), "{outcome:?}");
    assert_eq!((desk.leases().len(), desk.engine.counts().attempts), (0, 0));
}
