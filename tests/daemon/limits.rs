//! Every limit of docs/limits.md at its edge: exactly so much is taken, one more is refused by its name. Tested elsewhere:
// limits.inbound_bytes: tests/daemon/hostile.rs
// limits.outbound_bytes: tests/daemon/hostile.rs
// limits.upload: tests/daemon/hostile.rs
// limits.unread: tests/daemon/hostile.rs
// limits.read_bytes_per_s: tests/daemon/hostile.rs
// limits.containers: src/runtime/registries.rs
// limits.feed_names_bytes: src/runtime/registries.rs
// limits.replicas: src/runtime/registries.rs
// limits.log_lines_per_s: src/runtime/line_quota.rs
// limits.answers_kept_bytes: src/engine/src/answers.rs
// limits.requests_per_attempt: src/engine/attempts.rs
// limits.requests_kept_bytes: src/engine/attempts.rs
// limits.decisions_watched: tests/daemon/adherence.rs
// limits.containers_seen: src/engine/adherence/seen.rs
// limits.watched_pairs_per_peer: tests/daemon/streams.rs
// leases.watched: src/engine/tests/adherence.rs
// latency.pairs: src/model/src/network/latency/tests.rs
// latency.pairs_per_host: src/model/src/network/latency/tests.rs
// latency.items_per_s: src/daemon/src/feed/tests.rs
// resource_manager.answer_bytes: tests/daemon/resource_manager.rs
// resource_manager.unheard_kept: tests/daemon/resource_manager.rs
// resource_manager.absent_kept: src/hadoop/roster.rs
// name_node.wait: tests/daemon/name_node.rs
// name_node.paths: src/hadoop/name_node/shelf.rs
// name_node.blocks: src/hadoop/name_node/shelf.rs
// name_node.files_per_path: tests/daemon/name_node.rs
// name_node.blocks_per_path: tests/daemon/name_node.rs
// name_node.parallel: tests/daemon/name_node.rs
// name_node.answer_bytes: tests/daemon/name_node.rs
// name_node.fresh: src/hadoop/name_node/shelf.rs
// name_node.refused_fresh: src/hadoop/name_node/shelf.rs
// limits.attempt_jump: tests/daemon/tokens.rs // limits.attempt_silence: src/engine/src/tests/silence.rs
// name_node.kept: src/hadoop/name_node/shelf.rs
// name_node.slow_peers: tests/daemon/slow_peers.rs // name_node.slow_peers_kept: src/daemon/src/hadoop/slow_peers/tests.rs
// history_server.answer_bytes: tests/daemon/history_server.rs
// history_server.jobs_per_poll: tests/daemon/history_server.rs
// spark_history_server.applications_per_poll: tests/daemon/history_server.rs, for both are read by one poller
// spark_history_server.lookback: tests/daemon/history_server.rs
// history_server.lookback: tests/daemon/history_server.rs
// hold.at_once: tests/daemon/turns.rs
// hold.heavy: tests/daemon/turns.rs
// hold.share: tests/daemon/turns.rs
// hold.home_share: src/engine/src/holding/mod.rs
// hold.next_share: src/engine/src/holding/mod.rs
// hold.patience: src/engine/src/holding/mod.rs
// hold.longest: tests/daemon/turns.rs
// hold.progress: tests/daemon/job_progress.rs
// worth.keys: src/engine/worth/book/tests.rs
// placer.steps: src/policy/budget.rs
// placer.commit_retries: tests/daemon/contention.rs // placer.round_requests: src/daemon/src/runtime/daemon/rounds/tests.rs
// history.keys: src/engine/history.rs // history.runs: src/engine/history.rs
// plan.kept: src/engine/tests/plans.rs
// plan.time: src/engine/tests/ugly_networks/planning.rs
// routes.pairs_max: src/engine/tests/flows/lives.rs
// routes.rules_per_switch: src/engine/tests/flows/watch.rs
// routes.changes_per_s: src/engine/tests/flows/watch.rs
// routes.keep_flows: src/engine/tests/flows/watch.rs
// routes.updates_keep: src/engine/tests/flows/watch.rs
// sdn.ryu.answer_bytes: src/sdn/http.rs
// listen.drain: tests/daemon/lifecycle.rs
// leases.time_to_live: tests/daemon/lifecycle.rs
// leases.answers_kept: tests/daemon/lifecycle.rs
// leases.follow_kept: tests/daemon/lifecycle.rs

use crate::streams::{follow_start, two_ways};
use crate::world::{SOON, World, heartbeat, hello, refusal, register, request, resource};
use hintd_client::wire::v1;
use hintd_client::{Cause, Client, ClientError, FeedItem, FeedSender};
use prost::Message as _;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;
use v1::follow_message::Advice;

/// Words that a refusal must have: the limit's name and its value.
fn told(said: &str, name: &str, value: &str) {
    assert!(said.contains(name) && said.contains(value), "\"{said}\" lacks \"{name}\" or \"{value}\"");
}

async fn another(world: &World) -> Client {
    crate::world::connect(&world.running().grpc.to_string()).await.unwrap()
}

type Change = fn(&mut v1::RequestHintsRequest);

/// A request with `at` is answered, one with `beyond` is refused as the limit says, set to 2 (or `line`).
async fn request_edge(line: &'static str, name: &str, at: Change, beyond: Change) {
    let world = World::with(&[("limits", line)]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let mut wire = request("at", 1, 1, 1_024);
    at(&mut wire);
    world.hints(wire).await;
    let mut wire = request("beyond", 1, 1, 1_024);
    beyond(&mut wire);
    let (code, message) = world.refused(wire).await;
    assert_eq!(code, Code::InvalidArgument, "{message}");
    told(&message, name, line.rsplit(' ').next().unwrap());
}

fn groups(count: usize) -> Vec<v1::TaskGroup> {
    let group = |at: usize| v1::TaskGroup {
        name: format!("g{at}"),
        count: 1,
        priority: i32::try_from(at).unwrap(),
        resource: Some(resource(1_024, 1)),
        ..Default::default()
    };
    (0..count).map(group).collect()
}

fn edges(count: usize) -> Vec<v1::GroupEdge> {
    let pairs = [("g0", "g1"), ("g1", "g2"), ("g0", "g2")];
    let edge = |(from, to): &(&str, &str)| v1::GroupEdge {
        from: (*from).into(),
        to: (*to).into(),
        pattern: v1::EdgePattern::AllToAll.into(),
        bytes: 1,
    };
    pairs.iter().take(count).map(edge).collect()
}

/// The `*` row of the group, and rows of hosts.
fn asks(hosts: &[&str]) -> Vec<hintd_client::wire::yarn::ResourceRequestProto> {
    let row = |name: &&str| hintd_client::wire::yarn::ResourceRequestProto {
        priority: Some(hintd_client::wire::yarn::PriorityProto { priority: Some(0) }),
        resource_name: Some((*name).into()),
        capability: Some(resource(1_024, 1)),
        num_containers: Some(1),
        ..Default::default()
    };
    ["*"].iter().chain(hosts).map(row).collect()
}

fn avoiding(hosts: &[&str]) -> Option<v1::Constraints> {
    Some(v1::Constraints { avoid_racks: hosts.iter().map(|&rack| rack.into()).collect(), ..Default::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_groups_rows_and_edges_of_a_request() {
    request_edge(
        "containers_per_request = 2",
        "limits.containers_per_request",
        |r| r.groups = groups(2),
        |r| r.groups = groups(3),
    )
    .await;
    request_edge(
        "containers_per_request = 2",
        "limits.containers_per_request",
        |r| r.groups[0].count = 2,
        |r| r.groups[0].count = 3,
    )
    .await;
    request_edge(
        "groups_per_request = 2",
        "limits.groups_per_request",
        |r| r.groups = groups(2),
        |r| r.groups = groups(3),
    )
    .await;
    request_edge(
        "asks_per_request = 2",
        "limits.asks_per_request",
        |r| r.asks = asks(&["r0n0"]),
        |r| r.asks = asks(&["r0n0", "r0n1"]),
    )
    .await;
    request_edge(
        "edges_per_request = 2",
        "limits.edges_per_request",
        |r| (r.groups, r.edges) = (groups(3), edges(2)),
        |r| (r.groups, r.edges) = (groups(3), edges(3)),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_names_to_avoid_and_texts_of_a_request() {
    request_edge(
        "paths_per_request = 2",
        "limits.paths_per_request",
        |r| r.input_paths = vec!["/a".into(), "/b".into()],
        |r| r.input_paths = vec!["/a".into(), "/b".into(), "/c".into()],
    )
    .await;
    request_edge(
        "paths_per_request = 2",
        "limits.paths_per_request",
        |r| r.groups[0].input_paths = vec!["/a".into(), "/b".into()],
        |r| r.groups[0].input_paths = vec!["/a".into(), "/b".into(), "/c".into()],
    )
    .await;
    request_edge(
        "avoid_per_request = 0",
        "limits.avoid_per_request",
        |r| r.constraints = avoiding(&[]),
        |r| r.constraints = avoiding(&["/rack0"]),
    )
    .await;
    request_edge("text_bytes = 64", "limits.text_bytes", |r| r.user = "u".repeat(64), |r| r.user = "u".repeat(65))
        .await;
    for beyond in [
        (|r| r.request_id = "r".repeat(65)) as Change,
        |r| r.queue = "q".repeat(65),
        |r| r.groups[0].name = "g".repeat(65),
    ] {
        request_edge("name_bytes = 64", "limits.name_bytes", |r| r.groups[0].name = "g".repeat(64), beyond).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_a_message() {
    let world = World::with(&[("limits", "message_bytes = 4096")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let padded = |id: &str, bytes: usize| {
        let mut wire = request(id, 1, 1, 1_024);
        (wire.deadline_ms, wire.nonce) = (10_000, vec![1; 16]);
        wire.user = "u".repeat(bytes - wire.encoded_len() - 3); // its tag, and two bytes of length
        assert_eq!(wire.encoded_len(), bytes);
        wire
    };
    world.hints(padded("at", 4_096)).await;
    let (code, message) = world.refused(padded("beyond", 4_097)).await;
    assert_eq!(code, Code::InvalidArgument, "{message}");
    told(&message, "limits.message_bytes", "4096");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_an_answer() {
    let world = World::with(&[("limits", "answer_bytes = 8192")]).await;
    let _feed = world.cluster(2, 20, 8_192).await;
    let spread = |id: &str, count: u32| {
        let mut wire = request(id, 1, count, 1_024);
        wire.groups[0].constraints = Some(v1::Constraints { max_per_node: 1, ..Default::default() });
        wire
    };
    let answer = world.hints(spread("at", 4)).await;
    assert!(answer.encoded_len() < 8_192);
    let leases = world.status().await.leases;
    let (code, message) = refusal(world.client.request_hints(spread("beyond", 40), SOON).await);
    assert_eq!(code, Code::InvalidArgument, "{message}");
    told(&message, "limits.answer_bytes", "8192");
    assert_eq!(world.status().await.leases, leases, "nothing was leased for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_headers() {
    let world = World::with(&[("limits", "header_bytes = 1024")]).await;
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", world.running().grpc)).unwrap();
    let mut raw = v1::placement_client::PlacementClient::new(channel.connect().await.unwrap());
    let mut code = async |bytes: usize| {
        let mut call = tonic::Request::new(v1::ExplainRequest {
            decision_id: "0000000000000001".into(),
            token: String::new(),
            nonce: Vec::new(),
        });
        call.metadata_mut().insert("x-pad", "p".repeat(bytes).parse().unwrap());
        raw.explain(call).await.unwrap_err()
    };
    // The transport's own headers take what there is beside the pad: the edge lies in between.
    let (mut taken, mut refused) = (1, 1_024);
    assert_eq!(code(taken).await.code(), Code::NotFound);
    while refused - taken > 1 {
        let middle = (taken + refused) / 2;
        let half = if code(middle).await.code() == Code::NotFound { &mut taken } else { &mut refused };
        *half = middle;
    }
    let status = code(refused).await;
    assert!(status.message().contains("431"), "HTTP's own status for it: {status:?}");
    assert!((400..1_000).contains(&taken), "{taken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_at_one_time() {
    let world = World::with(&[("limits", "connections = 2")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let second = another(&world).await;
    second.request_hints(request("r1", 1, 1, 1_024), SOON).await.unwrap();
    let third = another(&world).await;
    let (code, message) = refusal(third.request_hints_once(request("r2", 1, 1, 1_024)).await);
    assert_eq!(code, Code::Unavailable);
    told(&message, "limits.connections", "2 connections");
    assert_eq!(world.counter("connections_standing").await, 1);
    drop(second);
    third.request_hints(request("r2", 1, 1, 1_024), SOON).await.expect("it got the permit that became free");
    world.hints(request("r3", 1, 1, 1_024)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_far_beyond_the_limit_are_closed_and_counted() {
    let world = World::with(&[("limits", "connections = 1")]).await;
    let mut there = Vec::new();
    for _ in 0..70 {
        there.push(TcpStream::connect(world.running().grpc).await.unwrap());
    }
    for stream in &mut there[64..] {
        assert!(ended(stream).await, "closed at once");
    }
    let counters = world.status().await.counters;
    assert_eq!((counters["connections_standing"], counters["connections_closed"]), (64, 6));
}

/// Whether the other side ends the connection soon. What it sends before that is nothing to look at.
async fn ended(stream: &mut TcpStream) -> bool {
    let end = async { while let Ok(1..) = stream.read(&mut [0; 1_024]).await {} };
    tokio::time::timeout(SOON, end).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn time_until_a_connection_speaks() {
    const GREETING: Duration = Duration::from_secs(3);
    let world = World::with(&[("limits", "greeting = \"3s\""), ("limits", "connections = 3")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let began = Instant::now();
    let mut silent = TcpStream::connect(world.running().grpc).await.unwrap();
    let mut halfway = TcpStream::connect(world.running().grpc).await.unwrap();
    halfway.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r").await.unwrap();
    let fourth = another(&world).await;
    match fourth.request_hints_once(request("r1", 1, 1, 1_024)).await {
        Ok(_) => assert!(began.elapsed() >= GREETING, "a permit was free: {:?}", began.elapsed()),
        refused => assert_eq!(refusal(refused).0, Code::Unavailable),
    }
    assert!(ended(&mut silent).await && ended(&mut halfway).await, "who never speaks does not keep a permit");
    assert!(began.elapsed() >= GREETING, "{:?}", began.elapsed());
    assert_eq!(world.counter("connections_silent").await, 2);
    fourth.request_hints(request("r1", 1, 1, 1_024), SOON).await.expect("it got a permit that became free");
    world.hints(request("r2", 1, 1, 1_024)).await; // over a connection that has spoken long ago
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_at_one_time() {
    let world = World::with(&[("limits", "streams = 2")]).await;
    let feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 1, 1_024)).await;
    let _follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let pair = v1::HostPair { src: "r0n0".into(), dst: "r0n1".into(), class: String::new() };
    let watch = || v1::WatchRequest { watcher: "w".into(), pairs: vec![pair.clone()], ..Default::default() };
    for found in [
        world.client.watch(watch()).await.map(|_| ()),
        world.client.follow(follow_start(&answer, 0)).await.map(|_| ()),
        world.client.feed::<v1::LatencyItem>(hello()).await.map(|_| ()),
    ] {
        let (code, message) = refusal(found);
        assert_eq!(code, Code::Unavailable);
        told(&message, "limits.streams", "2 streams");
    }
    assert_eq!(world.counter("streams_refused").await, 3);
    drop(feed);
    let began = Instant::now();
    while world.client.watch(watch()).await.is_err() {
        assert!(began.elapsed() < SOON, "the place of a stream that ended is free");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_one_connection_wait_for_each_other() {
    let world = World::with(&[("limits", "streams_per_connection = 2")]).await;
    let client = another(&world).await;
    let first: FeedSender<v1::HeartbeatItem> = client.feed(hello()).await.unwrap();
    let _second: FeedSender<v1::HeartbeatItem> = client.feed(hello()).await.unwrap();
    let third = client.explain("0000000000000001");
    assert!(tokio::time::timeout(Duration::from_millis(100), third).await.is_err(), "HTTP/2 holds it back");
    assert_eq!(refusal(another(&world).await.explain("0000000000000001").await).0, Code::NotFound);
    drop(first);
    assert_eq!(refusal(client.explain("0000000000000001").await).0, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_application_in_a_second() {
    let world = World::with(&[("limits", "requests_per_s = 3")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let once = async |id: &str, app| world.client.request_hints_once(request(id, app, 1, 1_024)).await;
    let mut app = 0;
    let refused = loop {
        app += 1;
        let began = Instant::now();
        for id in ["r1", "r2", "r2"] {
            once(id, app).await.expect("three in a second, repeats as well");
        }
        match once("r3", app).await {
            // A third of a second after the first one more is in order.
            Ok(_) => assert!(began.elapsed() >= Duration::from_millis(333), "the fourth of application {app} at once"),
            refused => break refused,
        }
        assert!(app < 100, "nobody is ever refused");
    };
    let (code, message) = refusal(refused);
    assert_eq!(code, Code::Unavailable);
    told(&message, "limits.requests_per_s", "allows, 3");
    once("r4", app + 1).await.expect("another application");
    world.hints(request("r3", app, 1, 1_024)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_application_at_once() {
    // A search takes long enough for the others to come meanwhile.
    let world = World::with(&[("limits", "requests_at_once = 2"), ("placer", "threads = 1")]).await;
    let _feed = world.cluster(1, 2, 65_536).await;
    let many = (0..64).map(|n| {
        let client = world.client.clone();
        tokio::spawn(async move { client.request_hints_once(request(&format!("r{n}"), 1, 24, 1_024)).await })
    });
    let mut refused = 0;
    for call in many.collect::<Vec<_>>() {
        let answer = call.await.unwrap();
        if answer.is_err() {
            let (code, message) = refusal(answer);
            assert_eq!(code, Code::Unavailable);
            told(&message, "limits.requests_at_once", "allows, 2");
            refused += 1;
        }
    }
    assert!(refused > 0, "64 at once, and two may be under way");
    world.hints(request("other", 2, 1, 1_024)).await;
}

/// What becomes of an item: its refusal's reason and message, if it is refused.
async fn offered<I: FeedItem>(feed: &mut FeedSender<I>, item: I) -> Option<(String, String)> {
    feed.send(item).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    ack.refused.into_iter().next().map(|refusal| (refusal.reason, refusal.message))
}

/// The first item is taken, the second one too many.
async fn feed_edge<I: FeedItem>(feed: &mut FeedSender<I>, at: I, beyond: I, name: &str, value: &str) {
    assert_eq!(offered(feed, at).await, None);
    let (reason, message) = offered(feed, beyond).await.expect("one too many");
    assert_eq!(reason, "too_many", "{message}");
    told(&message, name, value);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_what_they_name() {
    let world = World::with(&[
        ("limits", "nodes = 2"),
        ("limits", "containers_per_node = 2"),
        ("limits", "names_per_node = 2"),
    ])
    .await;
    let mut feed = world.heartbeats().await;
    assert_eq!(offered(&mut feed, register("a", "/r", 8_192)).await, None);
    feed_edge(&mut feed, register("b", "/r", 8_192), register("c", "/r", 8_192), "limits.nodes", "at most 2").await;
    let containers =
        |count: usize| (0..count).map(|at| (format!("container_1_0001_01_{:06}", at + 2), 1_024)).collect();
    let beat = |id, count| heartbeat("a", id, 2_048, containers(count));
    feed_edge(&mut feed, beat(1, 2), beat(2, 3), "limits.containers_per_node", "at most 2").await;
    let aliases = |count: usize| {
        let mut item = register("a", "/r", 8_192);
        let Some(v1::heartbeat_item::Item::Register(node)) = &mut item.item else { unreachable!() };
        node.aliases = (0..count).map(|at| format!("a{at}")).collect();
        item
    };
    feed_edge(&mut feed, aliases(2), aliases(3), "limits.names_per_node", "at most 2").await;
    world.until("two nodes", |status| status.nodes == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_blocks_and_replicas() {
    let world =
        World::with(&[("limits", "datasets = 2"), ("limits", "blocks = 3"), ("limits", "replicas_per_block = 2")])
            .await;
    let mut feed: FeedSender<v1::DatasetItem> = world.client.feed(hello()).await.unwrap();
    let put = |path: &str, blocks: &[(u64, usize)]| {
        let block = |&(block_id, hosts): &(u64, usize)| v1::DatasetBlock {
            block_id,
            bytes: 1,
            hosts: (0..hosts).map(|at| format!("d{at}")).collect(),
        };
        let dataset = v1::Dataset { path: path.into(), blocks: blocks.iter().map(block).collect() };
        v1::DatasetItem { number: 0, item: Some(v1::dataset_item::Item::Put(dataset)) }
    };
    feed_edge(&mut feed, put("/a", &[(1, 2)]), put("/a", &[(1, 3)]), "limits.replicas_per_block", "at most 2").await;
    let three = [(2, 0), (3, 0)];
    feed_edge(&mut feed, put("/b", &three), put("/b", &[(2, 0), (3, 0), (4, 0)]), "limits.blocks", "at most 3").await;
    feed_edge(&mut feed, put("/b", &[]), put("/c", &[]), "limits.datasets", "at most 2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_the_network_and_paths_of_an_event() {
    let world = World::with(&[("limits", "links = 2"), ("limits", "paths_per_event = 2")]).await;
    let mut feed: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    let graph = |hosts: usize| {
        let names: Vec<String> = (0..hosts).map(|at| format!("h{at}")).collect();
        let link = |host: &String| v1::NetworkLink {
            id: format!("l-{host}"),
            a: host.clone(),
            b: "s".into(),
            bits_per_s: 1_000,
            up: None,
        };
        let full = v1::NetworkGraph {
            switches: vec![v1::NetworkSwitch { name: "s".into(), tier: "edge".into() }],
            links: names.iter().map(link).collect(),
            hosts: names.into_iter().map(|name| v1::NetworkHost { name }).collect(),
            optical: None,
        };
        v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Full(full)) }
    };
    feed_edge(&mut feed, graph(2), graph(3), "limits.links", "at most 2").await;
    let mut feed: FeedSender<v1::EventItem> = world.client.feed(hello()).await.unwrap();
    let ready = |paths: usize| {
        let ready = v1::TaskReady { input_paths: (0..paths).map(|at| format!("/{at}")).collect(), input_bytes: 1 };
        let event = v1::TaskEvent {
            application_id: "application_1_0001".into(),
            attempt: 1,
            what: Some(v1::task_event::What::Ready(ready)),
            ..Default::default()
        };
        v1::EventItem { number: 0, item: Some(v1::event_item::Item::Event(event)) }
    };
    feed_edge(&mut feed, ready(2), ready(3), "limits.paths_per_event", "at most 2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_at_one_time() {
    let world = World::with(&[("limits", "leases = 2")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    world.hints(request("r1", 1, 2, 1_024)).await;
    let (code, message) = refusal(world.client.request_hints_once(request("r2", 1, 1, 1_024)).await);
    assert_eq!(code, Code::Unavailable);
    told(&message, "limits.leases", "allows 2");
}

async fn release(world: &World, app: u32, answer: &v1::RequestHintsResponse) {
    let request = v1::ReleaseRequest {
        application_id: format!("application_1_{app:04}"),
        attempt: 1,
        token: answer.token.clone(),
        lease_ids: vec![],
        nonce: Vec::new(),
    };
    world.client.release(request).await.unwrap();
}

fn decision(answer: &v1::RequestHintsResponse) -> &str {
    &answer.hints.as_ref().unwrap().decision_id
}

#[tokio::test(flavor = "multi_thread")]
async fn of_answers_and_attempts_without_leases_the_oldest_are_forgotten() {
    // Without records, which explain decisions beyond answers.
    let world =
        World::with(&[("limits", "answers = 2"), ("limits", "attempts = 2"), ("records", "bytes = \"0\"")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let mut answers = Vec::new();
    for app in 1..=3 {
        let answer = world.hints(request(&format!("r{app}"), app, 1, 1_024)).await;
        release(&world, app, &answer).await;
        answers.push(answer);
    }
    // What is beyond goes with the next answer or within a tick.
    let began = Instant::now();
    while world.client.explain(decision(&answers[0])).await.is_ok() {
        assert!(began.elapsed() < SOON, "the oldest is remembered");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (app, answer) in (2..).zip(&answers[1..]) {
        world.client.explain(decision(answer)).await.expect("two are kept");
        let start = v1::FollowStart { application_id: format!("application_1_{app:04}"), ..follow_start(answer, 0) };
        world.client.follow(start).await.expect("as are their attempts");
    }
    let (code, message) = refusal(world.client.follow(follow_start(&answers[0], 0)).await.map(|_| ()));
    assert!([Code::NotFound, Code::PermissionDenied].contains(&code), "{code:?}: {message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_kept_for_who_follows() {
    let world = World::with(&[("limits", "follow_messages = 2")]).await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    let answer = world.hints(request("r1", 1, 4, 2_048)).await;
    // Status counts a lease as withdrawn before its message is kept: who follows all along is told of each when it is.
    let mut all_along = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    for (id, used) in [(2, 2_048), (3, 4_096), (4, 6_144)] {
        let stranger = (format!("container_1_0099_01_{id:06}"), used);
        feed.send(heartbeat("r0n0", id, used, vec![stranger])).await.unwrap();
        feed.await_acknowledged().await.unwrap();
        let left = u64::try_from((8_192 - used) / 2_048).unwrap();
        world.until("one more was withdrawn", |status| status.leases == left).await;
        tokio::time::timeout(SOON, all_along.next()).await.unwrap().unwrap();
    }
    drop(all_along);
    let mut follow = world.client.follow(follow_start(&answer, 1)).await.unwrap();
    let mut next = async || tokio::time::timeout(SOON, follow.next()).await.unwrap().unwrap();
    assert!(matches!(next().await.advice, Some(Advice::Gap(_))), "the first of three is not kept");
    assert!(matches!(next().await.advice, Some(Advice::Withdraw(_))));
    assert!(matches!(next().await.advice, Some(Advice::Withdraw(_))));
    let more = tokio::time::timeout(Duration::from_millis(50), follow.next()).await;
    assert!(more.is_err(), "two are, and {more:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_and_the_pairs_they_watch() {
    let world = World::with(&[("limits", "watched_pairs = 2"), ("limits", "watchers = 2")]).await;
    let _feed = world.cluster(1, 3, 8_192).await;
    let watch = |watcher: &str, hosts: &[(&str, &str)]| {
        let pair = |&(src, dst): &(&str, &str)| v1::HostPair { src: src.into(), dst: dst.into(), class: String::new() };
        v1::WatchRequest { watcher: watcher.into(), pairs: hosts.iter().map(pair).collect(), ..Default::default() }
    };
    let _first = world.client.watch(watch("a", &[("r0n0", "r0n1")])).await.unwrap();
    let two = watch("b", &[("r0n0", "r0n2"), ("r0n1", "r0n2")]);
    let (code, message) = refusal(world.client.watch(two).await.map(|_| ()));
    assert_eq!(code, Code::InvalidArgument);
    told(&message, "limits.watched_pairs", "at most 2");
    let _second = world.client.watch(watch("b", &[("r0n0", "r0n2")])).await.unwrap();
    let flows = v1::WatchRequest { watcher: "c".into(), flows: true, ..Default::default() };
    let (code, message) = refusal(world.client.watch(flows).await.map(|_| ()));
    assert_eq!(code, Code::Unavailable);
    told(&message, "limits.watchers", "2 others");
}

/// A daemon whose searches for [`endless`] requests last until their deadline, with a network of three hosts.
async fn searching(further: &[(&'static str, &str)]) -> (World, FeedSender<v1::HeartbeatItem>) {
    let endless = ["restarts = 1000000000", "steps_max = 1000000000", "work_max = 1000000000"];
    let mut extra: Vec<(&'static str, &str)> = endless.iter().map(|line| ("policies.cross_layer", *line)).collect();
    extra.extend([("placer", "steps = 1000000000"), ("placer", "baseline = false")]);
    extra.extend(further);
    let world = World::with(&extra).await;
    let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    network.send(two_ways()).await.unwrap();
    assert!(network.await_acknowledged().await.unwrap().refused.is_empty());
    let feed = world.cluster(2, 2, 8_192).await;
    world.until("the network is there", |status| status.links == 7).await;
    (world, feed)
}

/// A request that [`searching`] searches for until its deadline.
fn endless(id: &str, app: u32) -> v1::RequestHintsRequest {
    let mut wire = request(id, app, 1, 1_024);
    wire.policy = "cross_layer".into();
    wire.groups = groups(2);
    wire.groups.iter_mut().for_each(|group| group.count = 3);
    wire.edges = edges(1);
    wire.edges[0].bytes = 1 << 40;
    wire
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_wait_for_a_thread() {
    let (world, _feed) = searching(&[("placer", "threads = 1"), ("placer", "queue = 1")]).await;
    let ask = |app: u32| {
        let client = world.client.clone();
        let mut wire = endless(&format!("r{app}"), app);
        wire.deadline_ms = 2_000;
        tokio::spawn(async move { client.request_hints_once(wire).await })
    };
    let mut sent_away = 0;
    for asked in [1, 2, 3, 4, 5, 6, 7, 8].map(ask) {
        match asked.await.unwrap() {
            Err(ClientError::Refused { code: Code::Unavailable, message, .. }) if message.contains("placer.queue") => {
                told(&message, "placer.queue", "1 requests");
                sent_away += 1;
            }
            // Who waited, or shared a busy machine, may have found that its time was over, or would be.
            other => assert!(other.is_ok() || is_late(&other) || is_sent_away(&other), "{other:?}"),
        }
    }
    // Some may come when the first two are over, on a machine that halted.
    assert!((1..=6).contains(&sent_away), "one runs and one waits: {sent_away} of 8 were sent away");
}

fn is_late<T>(found: &Result<T, ClientError>) -> bool {
    found.as_ref().is_err_and(|error| error.cause() == Cause::Deadline)
}

fn is_sent_away<T>(found: &Result<T, ClientError>) -> bool {
    found.as_ref().is_err_and(|error| error.cause() == Cause::Overload)
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_are_what_the_caller_says_up_to_the_longest() {
    let (world, _feed) =
        searching(&[("placer", "deadline_default = \"200ms\""), ("placer", "deadline_max = \"4s\"")]).await;
    let mut took = Vec::new();
    for (id, asked) in [("default", 0), ("longest", 60_000)] {
        let mut wire = endless(id, 1);
        wire.deadline_ms = asked;
        let began = Instant::now();
        let answer = world.client.request_hints_once(wire).await;
        took.push(began.elapsed());
        let cut = answer.as_ref().is_ok_and(|answer| answer.hints.as_ref().unwrap().ended() == v1::Ended::Deadline);
        assert!(cut || is_late(&answer), "{id}: {answer:?}");
    }
    assert!(took[0] > Duration::from_millis(50) && took[0] < took[1], "{took:?}");
    assert!(took[1] > Duration::from_millis(2_500) && took[1] < SOON, "{took:?}");
}
