//! The daemon as a whole where only a test can bring it: an engine that panics or does not answer, placers that a network
//! keeps busy.

use super::Daemon;
use super::command::Command;
use super::daemon::place::RequestOptions;
use super::daemon::plans::REPLICA_QUESTIONS_MAX;
use super::options::WatchLimits;
use super::watchers::WatchCaller;
use crate::config::Config;
use crate::server::{Running, start};
use crate::telemetry::metrics::Metrics;
use hintd_engine::plans::replicas::ReplicaRequest;
use hintd_engine::{WatchScope, WatchedPair};
use hintd_model::cluster::{
    Constraints, EdgePattern, Gang, GroupEdge, Heartbeat, HintRequest, NamedResource, NodeState, Registration,
    TaskGroup, WhenFull,
};
use hintd_model::network::{Network, Tier};
use hintd_model::units::{ApplicationId, AttemptId, BitsPerSec, Bytes, GroupIdx, SchedulerKey};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// Longest wait for what should come at once, on a machine that halts now and then.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Nodes are heard once: none falls silent on a machine that does.
pub(crate) const PATIENT: &str = "[model]\nstale_after = \"1h\"\nlost_after = \"2h\"\n";

/// A daemon with nothing fed, in a folder of its own.
pub(crate) async fn running() -> (TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = {:?}\nmetrics = \"\"\n[store]\npath = {:?}\n\
         [yarn]\nmaximum_memory_mb = 65536\nmaximum_vcores = 64\n[queues.\"*\"]\nmode = \"on\"\n{PATIENT}",
        folder.path().join("admin.sock"),
        folder.path().join("journal"),
    );
    let config = Config::from_text(&text, "test.toml").unwrap();
    (folder, start(&config.options, Metrics::new()).await.unwrap())
}

/// The engine does nothing until what comes back is dropped.
pub(crate) fn stall(daemon: &Daemon) -> std::sync::mpsc::Sender<()> {
    let (go_on, wait) = std::sync::mpsc::channel();
    daemon.on_engine(move || {
        let _ = wait.recv();
    });
    go_on
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_panics_is_told_to_health_and_to_all_that_wait() {
    let (_folder, running) = running().await;
    let daemon = running.daemon.clone();
    let stalled = stall(&daemon);
    let asking = tokio::spawn({
        let daemon = daemon.clone();
        async move { daemon.engine_report().await.map(drop) }
    });
    daemon.on_engine(|| panic!("a test's"));
    let behind = tokio::spawn({
        let daemon = daemon.clone();
        async move { daemon.last_heard().await.map(drop) }
    });
    drop(stalled);
    timeout(SOON, daemon.engine_ended().cancelled()).await.unwrap();
    assert_eq!(daemon.ready().borrow().why_not(), Some("the engine's thread ended"));
    let _ = timeout(SOON, asking).await.unwrap();
    let _ = timeout(SOON, behind).await.unwrap();
    assert!(timeout(SOON, daemon.engine_report()).await.unwrap().is_err());
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", running.grpc)).unwrap();
    let mut health = HealthClient::new(endpoint.connect().await.unwrap());
    let mut watch = health.watch(HealthCheckRequest { service: String::new() }).await.unwrap().into_inner();
    let not_serving =
        async { while watch.message().await.unwrap().unwrap().status != ServingStatus::NotServing as i32 {} };
    timeout(SOON, not_serving).await.unwrap();
    drop((watch, health));
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_order_is_no_failure_of_the_engine() {
    let (_folder, running) = running().await;
    let ready = running.daemon.ready();
    assert_eq!(ready.borrow().why_refused(), None);
    assert!(ready.borrow().why_not().is_some_and(|why| why.contains("no node")), "it is live, and can't answer");
    running.shutdown().await.unwrap();
    assert_eq!(ready.borrow().why_not(), Some("the daemon is shutting down"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_whose_caller_is_gone_watches_nothing() {
    let (_folder, running) = running().await;
    let daemon = &running.daemon;
    let pairs = vec![WatchedPair { src: "a".into(), dst: "b".into(), class: "".into() }];
    let scope = WatchScope { pairs, ..WatchScope::default() };
    let (reply, answer) = oneshot::channel();
    drop(answer);
    let most = WatchLimits { pairs: 10, pairs_per_peer: 10, watchers: 1 };
    daemon.0.engine_handle.tell(Command::Watch {
        caller: WatchCaller { watcher: "sdn".into(), proof: hintd_engine::Proof::Trusted, peer: None },
        scope,
        most,
        reply,
    });
    let survey = daemon.engine_report().await.unwrap();
    assert!(survey.watchers.iter().all(|watcher| watcher.away_since.is_some()), "{:?}", survey.watchers);
    assert_eq!(daemon.0.shared.watchers.others(""), 0);
    running.shutdown().await.unwrap();
}

/// A ring of switches, a host below each.
fn ring(switches: usize) -> Network {
    let (mut network, rate) = (Network::new(), BitsPerSec(10_000_000_000));
    let rows: Vec<_> = (0..switches).map(|n| network.add_switch(&format!("s{n}"), Tier::Edge).unwrap()).collect();
    for (n, &switch) in rows.iter().enumerate() {
        let host = network.add_host(&format!("h{n}")).unwrap();
        network.add_link(format!("a{n}").into(), host, switch, rate).unwrap();
        network.add_link(format!("l{n}").into(), switch, rows[(n + 1) % switches], rate).unwrap();
    }
    network
}

fn memory(memory_mb: u64) -> NamedResource {
    NamedResource { memory_mb, vcores: 1, named: Vec::new() }
}

/// A shuffle between containers of which each node holds one; without `talks` they send nothing.
pub(crate) fn shuffle(application: u32, talks: bool) -> HintRequest {
    let group = |priority: i32, name: &str| TaskGroup {
        name: name.into(),
        role: name.into(),
        count: 30,
        whole: 0,
        size: memory(1024),
        key: SchedulerKey { priority, allocation_request_id: -1 },
        label: None,
        input_paths: Vec::new(),
        constraints: Constraints { max_per_node: 1, ..Constraints::default() },
    };
    let (from, to, bytes) = (GroupIdx(0), GroupIdx(1), Bytes(900 << 30));
    let edge = GroupEdge { from, to, pattern: EdgePattern::AllToAll, bytes };
    HintRequest {
        id: format!("request-{application}").as_str().into(),
        attempt: AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: application }, attempt: 1 },
        queue: "default".into(),
        user: "ann".into(),
        framework: "mapreduce".into(),
        groups: vec![group(1, "map"), group(2, "reduce")],
        edges: if talks { vec![edge] } else { Vec::new() },
        input_paths: Vec::new(),
        recurring_key: None,
        constraints: Constraints::default(),
        policy: talks.then(|| "cross_layer".into()),
        seed: None,
        gang: Gang::UpTo,
        when_full: WhenFull::Advise,
        am_host: None,
        asks: Vec::new(),
        survivors: Vec::new(),
    }
}

/// Waits until it holds.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let all = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, all).await.unwrap();
}

/// Registers nodes of one rack, and waits until all are usable.
pub(crate) async fn usable(running: &Running, hosts: &[&str]) {
    hosts.iter().for_each(|host| register(&running.daemon, host, "/r0"));
    let state = || running.daemon.generation().snapshot.state.iter().filter(|state| state.usable()).count();
    until(|| state() == hosts.len()).await;
}

/// A node that is empty and was heard a moment ago.
pub(crate) fn register(daemon: &Daemon, host: &str, rack: &str) {
    let registration = Registration {
        host: host.into(),
        rack: rack.into(),
        total: memory(4096),
        labels: Vec::new(),
        attributes: BTreeMap::new(),
        class: "".into(),
        aliases: Vec::new(),
        disk_read: Bytes(0),
        state: NodeState::Running,
    };
    daemon.registries().register(registration).unwrap();
    let heartbeat = Heartbeat {
        host: host.into(),
        used: memory(0),
        used_is_running: false,
        containers: Some(Vec::new()),
        state: NodeState::Running,
    };
    daemon.registries().heartbeat(heartbeat, 1).unwrap();
}

/// A ring of 300 switches with 100 nodes, and two requests whose routes are long: each had a thread for half a minute, and
/// longer with every switch.
#[tokio::test(flavor = "multi_thread")]
async fn requests_on_a_long_ring_leave_placers_to_others() {
    let (_folder, running) = running().await;
    let daemon = &running.daemon;
    daemon.registries().network(Some(Arc::new(ring(300))));
    for n in (0..300).step_by(3) {
        register(daemon, &format!("h{n}"), &format!("/r{}", n / 30));
    }
    let fed = async {
        let usable = || daemon.generation().snapshot.state.iter().filter(|state| state.usable()).count();
        while usable() < 100 || daemon.generation().snapshot.topology.network.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, fed).await.unwrap();
    let ask = |application, talks, time| {
        let daemon = daemon.clone();
        let (decision, deadline) = (daemon.next_decision(), Instant::now() + time);
        let asked = RequestOptions::default();
        tokio::spawn(
            async move { daemon.request(shuffle(application, talks).into(), 1, decision, deadline, asked).await },
        )
    };
    let long: Vec<_> = (1..=4).map(|application| ask(application, true, Duration::from_secs(2))).collect();
    let other = ask(9, false, SOON * 6);
    assert!(timeout(SOON * 6, other).await.unwrap().unwrap().is_ok(), "who asks for less has its answer");
    for request in long {
        let _ = timeout(SOON, request).await.unwrap(); // answered, or too late
    }
    let free = async {
        // A job gives its place back a moment before its thread is free: that thread may wait for a core beyond the bound.
        while daemon.0.pool.admitted() > 0 || daemon.stuck_placers().stuck > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, free).await.expect("no search goes on after its time");
    assert_eq!(daemon.ready().borrow().why_not(), None);
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_for_replicas_are_bounded_and_those_whose_askers_are_gone_count() {
    let (_folder, running) = running().await;
    let daemon = running.daemon.clone();
    let ask = || ReplicaRequest { path: "/in".into(), reader: None, replication: 3, blocks: 1, seed: None };
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    for _ in 0..REPLICA_QUESTIONS_MAX {
        let (daemon, wait) = (daemon.clone(), Arc::clone(&wait));
        let told = move |_: &_| wait.lock().unwrap().recv().unwrap_or(());
        // Who asked goes at once; its question stays.
        let asked = daemon.replicas(ask(), told);
        assert!(timeout(Duration::ZERO, asked).await.is_err());
    }
    let refused = daemon.replicas(ask(), |_| ()).await;
    assert!(matches!(refused, Err(hintd_engine::Refusal::Unavailable { .. })), "{refused:?}");
    drop(go_on);
    let answered = async {
        while daemon.replicas(ask(), |_| ()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, answered).await.unwrap();
    timeout(SOON, running.shutdown()).await.unwrap().unwrap();
}
