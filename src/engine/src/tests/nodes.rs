//! Silent nodes: stale, lost, back; what is placed anew, once.

use super::guard::{by_rack, cluster, maps_came, reduces};
use super::harness::{EngineHarness, container, maps, running};
use crate::testing::{attempt, request};
use crate::{CommitOutcome, Counter, Effect, FollowBody, Refusal, TaskWhat};
use hintd_model::cluster::{Change, EdgePattern, GroupEdge, NamedContainer, NodeState, Way};
use hintd_model::units::{Bytes, GroupIdx, HostName, Micros};

fn state(harness: &EngineHarness, host: &str) -> NodeState {
    let snapshot = harness.engine.current_snapshot();
    snapshot.state[snapshot.statics.find(host).unwrap().at()]
}

/// Lets a time pass in which only these hosts report.
fn pass_with(harness: &mut EngineHarness, seconds: u64, alive: &[&str]) {
    for _ in 0..seconds {
        harness.pass(Micros::from_secs(1));
        for host in alive {
            harness.beat(host, 0, Some(&[]));
        }
    }
    harness.publish();
}

#[test]
fn a_silent_node_is_stale_then_lost_and_running_again_when_it_returns() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    pass_with(&mut harness, 10, &["h1"]);
    assert_eq!(state(&harness, "h0"), NodeState::Running);
    pass_with(&mut harness, 1, &["h1"]);
    assert_eq!(state(&harness, "h0"), NodeState::Stale);
    assert_eq!(harness.ask(maps("a", 1)).decision.hints[0].host, "h1".into());
    pass_with(&mut harness, 50, &["h1"]);
    assert_eq!((state(&harness, "h0"), harness.count(Counter::NodesLost)), (NodeState::Lost, 1));
    harness.beat("h0", 0, Some(&[]));
    harness.publish();
    assert_eq!((state(&harness, "h0"), harness.count(Counter::NodesBack)), (NodeState::Running, 1));
    assert_eq!((state(&harness, "h1"), harness.count(Counter::NodesStale)), (NodeState::Running, 1));
}

#[test]
fn tasks_of_a_lost_node_are_placed_anew_once_and_nothing_else_is() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    let mut job = request("job", &[("map", 8), ("reduce", 2)]);
    job.recurring_key = Some("daily".into());
    harness.settings.lease_ttl = Micros::from_secs(1_000);
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.ask(job);
    let reduce = |id| NamedContainer {
        key: hintd_model::units::SchedulerKey { priority: 2, allocation_request_id: -1 },
        ..running(id)
    };
    let id = |n| container(attempt(1, 1), n);
    let on_h0 = [running(id(1)), running(id(2)), reduce(id(3)), running(container(attempt(7, 1), 1))];
    harness.beat("h0", 4096, Some(&on_h0));
    harness.beat("h1", 1024, Some(&[running(id(4))]));
    harness.publish();
    let held_on_h0 = harness.leases().iter().filter(|lease| lease.1 == "h0").count() as u64;
    assert!(held_on_h0 > 0, "so that leases are lost as well");
    for _ in 0..61 {
        harness.now = harness.now.plus(Micros::from_secs(1));
        harness.beat("h1", 1024, Some(&[running(id(4))]));
    }
    harness.publish();
    harness.pass(Micros(0));
    let replaced = harness.replaced();
    assert_eq!(replaced.len(), 1);
    let groups: Vec<_> = replaced[0].groups.iter().map(|group| (&*group.name, group.count)).collect();
    let maps = 2 + u32::try_from(held_on_h0).unwrap();
    assert_eq!(groups, [("map", maps), ("reduce", 1)], "what ran there, and what was to run there");
    assert_eq!(replaced[0].constraints.avoid_hosts, ["h0".into()]);
    assert_eq!(replaced[0].id, "job/replace/h0/1".into());
    assert_eq!((harness.count(Counter::TasksReplaced), harness.count(Counter::TasksUnknown)), (3 + held_on_h0, 1));
    // The node comes back with the same containers and is lost again.
    harness.beat("h0", 4096, Some(&on_h0));
    harness.publish();
    for _ in 0..61 {
        harness.now = harness.now.plus(Micros::from_secs(1));
        harness.beat("h1", 1024, Some(&[running(id(4))]));
    }
    harness.pass(Micros(0));
    assert_eq!((harness.count(Counter::NodesLost), harness.replaced().len()), (2, 1), "once is enough");
}

/// Those that stay are in the first rack and the others in the rest, one of which is lost: uplinks are ten times narrower than
/// nodes.
#[test]
fn what_is_placed_anew_goes_beside_those_of_its_traffic_that_stay() {
    for (policy, stays, lost, way) in [
        ("joint", 0_u32, 1_u32, Way::In),
        ("cross_layer", 0, 1, Way::In),
        ("joint", 1, 0, Way::In),
        ("joint", 1, 0, Way::Out),
        ("joint", 0, 1, Way::Out),
    ] {
        let (mut harness, hosts) = cluster(policy);
        harness.placer.guard = None;
        let mut job = request("job", &[("map", 6), ("reduce", 2)]);
        let [from, to] = if way == Way::In { [stays, lost] } else { [lost, stays] }.map(GroupIdx);
        job.edges = vec![GroupEdge { from, to, pattern: EdgePattern::AllToAll, bytes: Bytes(150_000_000) }];
        let stay = job.groups[stays as usize].name.clone();
        let goes = job.groups[lost as usize].name.clone();
        harness.ask(job.clone());
        let mut id = 1;
        let mut came = |harness: &mut EngineHarness, group: &str, host: &str| {
            id += 1;
            let container = container(attempt(1, 1), id);
            harness.event(attempt(1, 1), group, TaskWhat::Allocated { host: host.into(), container, lease: None });
            container
        };
        for at in 0..job.groups[stays as usize].count as usize {
            came(&mut harness, &stay, &hosts[at % 2]);
        }
        let key = job.groups[lost as usize].key;
        for at in 0..job.groups[lost as usize].count as usize {
            let host = &hosts[2 + at % 4];
            let container = came(&mut harness, &goes, host);
            if at == 0 {
                harness.beat(host, 1024, Some(&[NamedContainer { key, ..running(container) }]));
            }
        }
        harness.publish();
        harness.change(Change::Gone(hosts[2].as_str().into()));
        harness.publish();
        let again = harness.replaced().pop().unwrap();
        assert_eq!((again.groups.len(), &again.groups[0].name), (1, &goes), "{policy}: {again:?}");
        assert_eq!(again.edges, []);
        let [survivors] = &again.survivors[..] else { panic!("{:?}", again.survivors) };
        assert_eq!((&survivors.with, survivors.way), (&stay, way));
        let answer = harness.ask((*again).clone());
        let asked = again.groups[0].count;
        assert_eq!(by_rack(&answer, &hosts), [asked, 0, 0], "{policy}, {way:?}");
        assert!(answer.decision.learnt.is_none());
    }
}

/// What maps left on a node that was taken out of the cluster is gone with it.
#[test]
fn reduces_go_where_the_maps_that_are_left_are() {
    let (mut harness, hosts) = cluster("joint");
    harness.placer.guard = None;
    maps_came(&mut harness, &hosts, &[3, 0, 3]);
    harness.change(Change::Gone(hosts[2].as_str().into()));
    harness.publish();
    let answer = harness.ask(reduces(3, true));
    assert_eq!(by_rack(&answer, &hosts), [3, 0, 0]);
}

#[test]
fn leases_on_a_node_that_left_are_withdrawn_and_their_containers_placed_anew() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    let answer = harness.ask(maps("job", 4));
    let lost: Vec<_> = answer.decision.hints.iter().filter(|hint| hint.host == "h0".into()).collect();
    harness.change(Change::Gone("h0".into()));
    harness.publish();
    assert!(harness.leases().iter().all(|lease| lease.1 == "h1"));
    let withdrawn = harness.out.iter().any(|effect| {
        matches!(effect, Effect::Follow { message: FollowBody::Withdraw { leases, reason: "node_gone", .. }, .. }
            if leases.len() == lost[0].leases.len())
    });
    assert!(withdrawn, "{:?}", harness.out);
    assert_eq!(harness.replaced()[0].containers(), u64::from(lost[0].count));
    let again = harness.ask((*harness.replaced()[0]).clone());
    assert!(again.decision.hints.iter().all(|hint| hint.host == HostName::from("h1")));
    assert_eq!(again.leases().count(), 2);
}

#[test]
fn after_a_restart_silence_counts_from_the_start() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    harness.now = harness.now.plus(Micros::from_secs(3_600));
    harness.settings.lost_after = Micros::from_secs(20);
    harness.beat("h0", 0, Some(&[]));
    harness.ask(maps("job", 1));
    harness.restart();
    harness.pass(Micros::from_secs(19));
    assert_eq!((harness.leases().len(), harness.replaced().len()), (1, 0));
    harness.pass(Micros::from_secs(2));
    assert_eq!((harness.leases().len(), harness.replaced().len()), (0, 1), "h0 never registered again");
    harness.pass(Micros::from_secs(2));
    assert_eq!(harness.replaced().len(), 1);
}

#[test]
fn while_whoever_tells_of_nodes_is_blind_they_go_stale_and_none_is_lost() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    harness.settings.lost_after = Micros::from_secs(20);
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.beat("h0", 0, Some(&[]));
    harness.change(Change::ExcuseSilence(Micros::from_secs(60)));
    harness.change(Change::ExcuseSilence(Micros::from_secs(30))); // the longer one holds
    let state = |harness: &mut EngineHarness| {
        harness.publish();
        harness.engine.generation().snapshot.state[0]
    };
    harness.pass(Micros::from_secs(59));
    assert_eq!(state(&mut harness), NodeState::Stale);
    harness.pass(Micros::from_secs(2));
    assert_eq!(state(&mut harness), NodeState::Lost);
}

#[test]
fn an_application_that_ended_meanwhile_gets_no_leases_for_its_lost_tasks() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    harness.ask(maps("a", 2));
    harness.change(Change::Gone("h0".into()));
    harness.change(Change::Gone("h1".into()));
    harness.publish();
    let again = harness.replaced().pop().unwrap();
    harness.register("h0", "/r0", 8192);
    harness.beat("h0", 0, Some(&[]));
    harness.publish();
    let proposal = harness.propose(&again).unwrap();
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    let outcome = harness.commit(proposal);
    assert!(matches!(outcome, CommitOutcome::Refused(Refusal::Unknown { .. })), "{outcome:?}");
    assert_eq!((harness.leases().len(), harness.engine.counts().attempts), (0, 0));
}
