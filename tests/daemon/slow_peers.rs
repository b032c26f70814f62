//! DataNodes that NameNodes report as slow: what the real daemon makes of it.

use crate::hadoop_server::{Said, Server, asked, http};
use crate::world::{World, hello, request};
use hintd::hadoop::{NameNodeOptions, PathCacheSettings, SlowPeerOptions, start_name_node};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use hintd_model::units::Micros;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn bean(name: &str, attributes: &Value) -> Said {
    let mut bean = attributes.clone();
    bean["name"] = format!("Hadoop:service=NameNode,name={name}").into();
    http("200 OK", &json!({ "beans": [bean] }).to_string())
}

/// A NameNode in this state, with this report in its status, that knows which addresses hosts have.
fn name_node(state: &'static str, report: Value) -> impl Fn(&str) -> Said + Send + Sync + 'static {
    move |question| match question {
        question if question.contains("NameNodeStatus") => {
            bean("NameNodeStatus", &json!({ "State": state, "SlowPeersReport": report }))
        }
        question if question.contains("LiveNodes") => {
            let nodes = json!({
                "r1n0.example.org:9866": { "xferaddr": "10.0.0.10:9866" },
                "r0n0.example.org:9866": { "xferaddr": "10.0.0.1:9866" },
            });
            bean("NameNodeInfo", &json!({ "LiveNodes": nodes.to_string() }))
        }
        _ => http("200 OK", "{\"FileStatus\":{}}"),
    }
}

/// As Hadoop 3.4 has it: each reporter with what its packets took and the median, ms.
fn report(slow: &str, reporters: &[(&str, f64, f64)]) -> Value {
    let row = |&(reporter, reported, median): &(&str, f64, f64)| {
        json!({
            "ReportingNode": reporter, "ReportedLatency": reported, "MedianLatency": median, "MadLatency": 0.1,
            "UpperLimitLatency": 5.0,
        })
    };
    let rows: Vec<Value> = reporters.iter().map(row).collect();
    json!([{ "SlowNode": slow, "SlowPeerLatencyWithReportingNodes": rows }]).to_string().into()
}

fn options(servers: &[&Server], every: Duration) -> NameNodeOptions {
    NameNodeOptions {
        servers: asked(servers.iter().copied(), "hdfs", Duration::from_millis(50)),
        wait: Duration::from_secs(5),
        parallel: 4,
        files_per_path: 100,
        blocks_per_path: 100,
        path_cache: PathCacheSettings {
            paths: 100,
            blocks: 1_000,
            fresh: Duration::from_secs(600),
            refused_fresh: Duration::from_millis(50),
            kept: Duration::from_secs(600),
        },
        slow_peers: Some(SlowPeerOptions { every, kept: Micros::from_secs(600) }),
    }
}

async fn latency(world: &World, host: &str) -> v1::LatencyResponse {
    let asked = v1::LatencyRequest { host: host.to_owned(), limit: 0 };
    world.admin.clone().latency(asked).await.unwrap().into_inner()
}

/// Asks until it is so: how long that takes says nothing.
async fn until(world: &World, what: &str, is: impl Fn(&v1::LatencyResponse) -> bool) -> v1::LatencyResponse {
    for _ in 0..6_000 {
        let found = latency(world, "").await;
        if is(&found) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: {:?}", latency(world, "").await)
}

const SOON: Duration = Duration::from_millis(20);

/// Two racks of three nodes.
async fn world() -> World {
    let world = World::with(&[("policies.nomora", "curve = \"strads\"")]).await;
    drop(world.cluster(2, 3, 65_536).await);
    world
}

/// Where a worker of an application on `r0n0` goes, of the hosts of rack 1.
async fn goes_to(world: &World, id: &str, app: u32) -> String {
    let mut asked = request(id, app, 1, 1_024);
    asked.groups[0].constraints =
        Some(v1::Constraints { avoid_racks: vec!["/rack0".to_owned()], ..v1::Constraints::default() });
    let asked = v1::RequestHintsRequest { policy: "nomora".to_owned(), am_host: "r0n0".to_owned(), ..asked };
    world.hints(asked).await.hints.unwrap().hints[0].host.clone()
}

/// Where workers of twenty such applications go: of hosts that are alike by chance.
async fn go_to(world: &World, id: &str, first: u32) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for app in first..first + 20 {
        hosts.insert(goes_to(world, &format!("{id}-{app}"), app).await);
    }
    hosts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_data_nodes_report_as_slow_is_shown_and_gets_no_worker_where_another_does_as_well() {
    let told =
        report("10.0.0.10:9864", &[("10.0.0.1:9867", 24.0, 3.0), ("r1n1:9867", 9.0, 3.0), ("10.9.9.9:9867", 9.0, 3.0)]);
    let standby = Server::start(name_node("standby", told.clone())).await;
    let active = Server::start(name_node("active", told)).await;
    let world = world().await;
    let before = go_to(&world, "before", 1).await;
    assert!(before.contains("r1n0"), "nothing is known of it: {before:?}");
    let metrics = Metrics::new();
    start_name_node(options(&[&standby, &active], SOON), &world.running().daemon, &metrics).unwrap();
    let found = until(&world, "reports", |found| !found.slow_peers.is_empty()).await;
    let rows: Vec<_> = found.slow_peers.iter().map(|row| (&*row.slow, &*row.reporter, row.slowdown)).collect();
    assert_eq!(rows, [("r1n0", "r0n0", 8.0), ("r1n0", "r1n1", 3.0)], "their names are asked for, one is none's");
    let first = &found.slow_peers[0];
    assert_eq!((first.reported_ms, first.median_ms, first.slowdown_of_host), (Some(24.0), Some(3.0), Some(3.0)));
    assert_eq!((found.slow_peers_state.as_str(), found.slow_peers_age_ms.is_some()), ("on", true));
    assert_eq!(latency(&world, "r1n2").await.slow_peers, [], "of a host those that name it");
    assert_eq!(latency(&world, "r1n1").await.slow_peers.len(), 1);
    let after = go_to(&world, "after", 21).await;
    assert!(!after.contains("r1n0"), "{after:?}");
    let notices = world.running().daemon.notices();
    assert!(notices.iter().any(|said| said.text.contains("report hosts as slow: r1n0 (by 2, for ")), "{notices:?}");
    let counted = metrics.counters();
    assert!(counted["hintd_slow_peer_reports_total{result=\"unknown_host\"}"] > 0, "{counted:?}");
    assert!(counted["hintd_slow_peer_polls_total{result=\"standby\"}"] > 0, "{counted:?}");
    assert!(metrics.render().contains("hintd_slow_peers 1"));
    // An agent's word counts more than packets.
    let mut feed = world.client.feed::<v1::LatencyItem>(hello()).await.unwrap();
    for (to_host, rtt_us) in [("r1n0", 20), ("r1n1", 500), ("r1n2", 500)] {
        let to_host = to_host.to_owned();
        let sample = v1::LatencySample { from_host: "r0n0".into(), to_host, rtt_us, measured_at_ms: 0 };
        let item = Some(v1::latency_item::Item::Sample(sample));
        feed.send(v1::LatencyItem { number: 0, item }).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    until(&world, "round trips", |found| found.paths == 3).await;
    assert_eq!(goes_to(&world, "measured", 41).await, "r1n0");
    // What it does not name any more is over.
    active.says(name_node("active", "[]".into()));
    let found = until(&world, "no reports", |found| found.slow_peers.is_empty()).await;
    assert_eq!(found.slow_peers_state, "on");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_makes_no_sense_changes_nothing_and_the_next_good_one_counts() {
    let good = || name_node("active", report("r1n0:9864", &[("r0n0:9867", 24.0, 3.0)]));
    let server = Server::start(good()).await;
    let world = world().await;
    let metrics = Metrics::new();
    start_name_node(options(&[&server], SOON), &world.running().daemon, &metrics).unwrap();
    until(&world, "a report", |found| found.slow_peers.len() == 1).await;
    for (bad, result) in [
        (http("200 OK", "<html>sign in</html>"), "nonsense"),
        (bean("NameNodeStatus", &json!({ "State": "active", "SlowPeersReport": "[{" })), "nonsense"),
        (http("200 OK", "{\"beans\":[]}"), "nonsense"),
        (bean("NameNodeStatus", &json!({ "State": "standby", "SlowPeersReport": "[]" })), "standby"),
        (http("403 Forbidden", "no"), "refused"),
        (http("200 OK", &"x".repeat(2 << 20)), "too_large"),
    ] {
        let name = format!("hintd_slow_peer_polls_total{{result=\"{result}\"}}");
        let times = || metrics.counters().get(&name).copied().unwrap_or_default();
        let before = times();
        server.says(move |_| bad.clone());
        while times() == before {
            tokio::time::sleep(SOON).await;
        }
        assert_eq!(latency(&world, "").await.slow_peers.len(), 1, "{name}");
    }
    server.says(name_node("active", report("r1n1:9864", &[("r0n0:9867", 24.0, 3.0), ("r0n1:9867", -4.0, 3.0)])));
    until(&world, "the next", |found| found.slow_peers.len() == 1 && found.slow_peers[0].slow == "r1n1").await;
    assert!(metrics.counters()["hintd_slow_peer_reports_total{result=\"bad_number\"}"] > 0);
    server.says(name_node("active", Value::Null));
    let found = until(&world, "statistics are off", |found| found.slow_peers_state == "off").await;
    assert_eq!(found.slow_peers, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_node_is_not_asked_where_the_configuration_says_so() {
    let server = Server::start(name_node("active", report("r1n0:9864", &[("r0n0:9867", 24.0, 3.0)]))).await;
    let world = world().await;
    let never = NameNodeOptions { slow_peers: None, ..options(&[&server], SOON) };
    start_name_node(never, &world.running().daemon, &Metrics::new()).unwrap();
    // It asks whether the NameNode is there all the same.
    while server.asked().len() < 3 {
        tokio::time::sleep(SOON).await;
    }
    assert!(server.asked().iter().all(|question| !question.starts_with("/jmx")), "{:?}", server.asked());
    assert_eq!(latency(&world, "").await.slow_peers_state, "unknown");
}
