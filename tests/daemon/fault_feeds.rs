//! Feeds that stop, lie, jump back in time, repeat and contradict each other: what is promised always fits what the
//! cluster was last said to hold, and the daemon goes on.

use crate::program::say;
use crate::world::{SOON, World, heartbeat, hello, leased, refusal, register, request, resource};
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Lets all four nodes be heard until they count and a request has its two leases: on a machine that halts they may be silent
/// again before anybody has asked.
async fn heard_and_hinted(world: &World, feed: &mut FeedSender<v1::HeartbeatItem>, beats: std::ops::Range<u32>) {
    let began = Instant::now();
    for beat in beats {
        for node in ["r0n0", "r0n1", "r1n0", "r1n1"] {
            feed.send(heartbeat(node, beat, 0, vec![])).await.unwrap();
        }
        assert!(feed.await_acknowledged().await.unwrap().refused.is_empty(), "they need not register again");
        let asked = world.client.request_hints(request(&format!("r{beat}"), beat, 2, 1_024), Duration::from_secs(1));
        let hinted = asked.await.is_ok_and(|answer| leased(&answer).into_values().flatten().count() == 2);
        if hinted && world.status().await.nodes_usable == 4 {
            return;
        }
        assert!(began.elapsed() < SOON, "no node counts");
    }
    panic!("no node counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_stop_take_their_nodes_out_and_bring_them_back_when_they_go_on() {
    let world = World::with(&[("model", "stale_after = \"400ms\""), ("model", "lost_after = \"1s\"")]).await;
    let mut feed = world.heartbeats().await;
    for (node, rack) in [("r0n0", "/rack0"), ("r0n1", "/rack0"), ("r1n0", "/rack1"), ("r1n1", "/rack1")] {
        feed.send(register(node, rack, 8_192)).await.unwrap();
    }
    heard_and_hinted(&world, &mut feed, 1..10_000).await;
    world.until("all are silent", |status| status.nodes_usable == 0).await;
    let refused = world.client.request_hints(request("silent", 10_000, 1, 1_024), Duration::from_secs(1)).await;
    match refused {
        Ok(answer) => assert_eq!(answer.hints.unwrap().without_room, 1, "no lease on a node that is not heard"),
        Err(error) => drop(refusal::<()>(Err(error))),
    }
    heard_and_hinted(&world, &mut feed, 10_001..20_000).await;
}

/// A heartbeat item that is wrong in some way, or odd.
fn lie(rng: &mut ChaCha8Rng, n: u32) -> v1::HeartbeatItem {
    use v1::heartbeat_item::Item;
    let amounts = [i64::MIN, -1, 0, 1, 4_096, 8_192, 8_193, 1 << 20, 1 << 40, i64::MAX];
    let mut amount = || amounts[rng.random_range(0..amounts.len())];
    let (total, used, part) = (amount(), amount(), amount());
    let hosts = ["r0n0", "r0n1", "r0n2", "r0n3", "R0N0", "r0n1", "r0n0\n", "ghost", ""];
    let host = hosts[rng.random_range(0..hosts.len())];
    let id = [n + 2, n + 2, n + 2, n + 2, 0, u32::MAX][rng.random_range(0..6)];
    let names = [
        "container_1_0007_01_000002",
        "container_1_0008_01_000003",
        "container_x",
        "container_1_0007_01_9999999999999",
    ];
    let container = names[rng.random_range(0..names.len())].to_owned();
    match rng.random_range(0..6) {
        0 => register(host, ["/rack0", "/rack9", "rack", "/", ""][rng.random_range(0..5)], total),
        1 => heartbeat(host, id, used, vec![(container, part)]),
        2 => heartbeat(host, id, used, vec![(container.clone(), part), (container, part)]),
        3 => v1::HeartbeatItem { number: 0, item: Some(Item::Gone(v1::NodeGone { host: "ghost".to_owned() })) },
        4 => v1::HeartbeatItem { number: 0, item: None },
        _ => {
            let mut item = heartbeat(host, id, used, vec![]);
            if let Some(Item::Heartbeat(beat)) = &mut item.item {
                beat.state = ["TIRED", "LOST", "UNHEALTHY", "NEW"][rng.random_range(0..4)].to_owned();
                beat.used = [None, Some(resource(used, i32::MIN)), Some(resource(part, i32::MAX))]
                    [rng.random_range(0..3)]
                .clone();
            }
            item
        }
    }
}

/// What is leased on a node, and what it has, MB.
async fn rooms(world: &World) -> BTreeMap<String, (i64, i64, i64)> {
    let nodes = world.admin.clone().nodes(v1::NodesRequest::default()).await.unwrap().into_inner().nodes;
    let memory =
        |resource: &Option<hintd_client::wire::yarn::ResourceProto>| resource.as_ref().map_or(0, |r| r.memory());
    nodes
        .into_iter()
        .map(|node| (node.host.clone(), (memory(&node.leased), memory(&node.used), memory(&node.total))))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn four_thousand_lies_leave_the_stream_open_the_truth_taken_and_no_promise_beyond_room() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 4, 8_192).await;
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let (mut refused, mut sent) = (BTreeMap::<String, u32>::new(), 0);
    for round in 0..40_u32 {
        for n in 0..100 {
            feed.send(lie(&mut rng, round * 100 + n)).await.unwrap();
            sent += 1;
        }
        for refusal in feed.await_acknowledged().await.unwrap().refused {
            assert!(!refusal.message.is_empty(), "{refusal:?}");
            *refused.entry(refusal.reason).or_default() += 1;
        }
        let asked = world.client.request_hints(request(&format!("l{round}"), round + 1, 1, 1_024), SOON).await;
        if let Err(error) = asked {
            refusal::<()>(Err(error));
        }
        for (host, (leased, used, total)) in rooms(&world).await {
            assert!(leased <= total.max(0), "round {round}: {host} has {leased} MB leased of {total}, {used} used");
        }
    }
    // The truth, once more: all is as it should be.
    for node in 0..4 {
        feed.send(register(&format!("r0n{node}"), "/rack0", 8_192)).await.unwrap();
        feed.send(heartbeat(&format!("r0n{node}"), 2, 2_048, vec![])).await.unwrap();
    }
    assert!(feed.await_acknowledged().await.unwrap().refused.is_empty());
    for node in 0..4 {
        world.until_used(&format!("r0n{node}"), 2_048).await;
    }
    for (host, (leased, used, total)) in rooms(&world).await.into_iter().filter(|(host, _)| host.starts_with("r0n")) {
        assert_eq!((used, total), (2_048, 8_192), "{host}");
        assert!(leased + used <= total, "{host}: {leased} leased");
    }
    let by: Vec<String> = refused.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let all: u32 = refused.values().sum();
    say(&format!("{sent} odd or impossible items: {all} refused by name ({})", by.join(", ")));
    assert!(refused.len() >= 5 && all > sent / 4 && all < sent, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_is_sent_again_and_again_counts_once() {
    let world = World::start().await;
    let mut feed = world.cluster(2, 3, 8_192).await;
    let ours = leased(&world.hints(request("r1", 1, 1, 2_048)).await);
    let on = ours.keys().next().unwrap().clone();
    let container = vec![("container_1_0001_01_000002".to_owned(), 2_048)];
    feed.send(heartbeat(&on, 2, 2_048, container.clone())).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    world.until("the lease is bound", |status| status.leases == 0).await;
    world.until_used(&on, 2_048).await;
    let first = rooms(&world).await;
    assert_eq!(first[&on], (0, 2_048, 8_192));
    for _ in 0..5 {
        // A source that restarts sends all it knows, on a stream of its own, in the same words.
        let mut again: FeedSender<v1::HeartbeatItem> = world.heartbeats().await;
        for (rack, node) in (0..2).flat_map(|rack| (0..3).map(move |node| (rack, node))) {
            let host = format!("r{rack}n{node}");
            again.send(register(&host, &format!("/rack{rack}"), 8_192)).await.unwrap();
            let held = if host == on { container.clone() } else { vec![] };
            again.send(heartbeat(&host, 2, 2_048 * held.len() as i64, held)).await.unwrap();
        }
        assert!(again.await_acknowledged().await.unwrap().refused.is_empty());
        tokio::time::sleep(Duration::from_millis(30)).await;
        // A generation may be of a moment between a node's registration and its heartbeat.
        let same = |status: &v1::StatusResponse| (status.nodes, status.nodes_usable, status.racks) == (6, 6, 2);
        let status = world.until("all are there, once", same).await;
        world.until_used(&on, 2_048).await;
        assert_eq!((rooms(&world).await, status.leases), (first.clone(), 0), "nothing is counted twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_jumps_back_in_time_is_not_believed_until_its_node_registers_anew() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    feed.send(heartbeat("r0n0", 900, 6_144, vec![])).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    world.until_used("r0n0", 6_144).await;
    for id in [899, 2, 0] {
        feed.send(heartbeat("r0n0", id, 0, vec![])).await.unwrap();
        let ack = feed.await_acknowledged().await.unwrap();
        assert_eq!(ack.refused[0].reason, "out_of_order", "{ack:?}");
    }
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(rooms(&world).await["r0n0"].1, 6_144, "an old report frees no room");
    // Events from another age: the future, and before the application was there.
    let mut events: FeedSender<v1::EventItem> = world.client.feed(hello()).await.unwrap();
    for at_ms in [1, u64::MAX, 0] {
        let done = v1::task_event::What::Done(v1::ApplicationDone { failed: false });
        let event = v1::TaskEvent {
            application_id: "application_1_0077".to_owned(),
            attempt: 1,
            what: Some(done),
            at_ms,
            ..Default::default()
        };
        events.send(v1::EventItem { number: 0, item: Some(v1::event_item::Item::Event(event)) }).await.unwrap();
    }
    events.await_acknowledged().await.unwrap();
    // A NodeManager that restarted begins at one again, and says so by registering.
    feed.send(register("r0n0", "/rack0", 8_192)).await.unwrap();
    feed.send(heartbeat("r0n0", 1, 1_024, vec![])).await.unwrap();
    assert!(feed.await_acknowledged().await.unwrap().refused.is_empty());
    world.until_used("r0n0", 1_024).await;
    world.hints(request("r1", 1, 1, 1_024)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sources_that_contradict_each_other_about_one_node_never_free_room_that_one_of_them_fills() {
    let world = World::start().await;
    let mut one = world.cluster(1, 2, 8_192).await;
    let mut other: FeedSender<v1::HeartbeatItem> = world.heartbeats().await;
    let mut id = 1;
    for round in 0..20_i64 {
        // One says full, the other empty, in turn and at once; one says that it stands elsewhere.
        for (feed, used) in [(&mut one, 8_192), (&mut other, 0)] {
            id += 1;
            feed.send(heartbeat("r0n0", id, used, vec![])).await.unwrap();
        }
        if round % 5 == 0 {
            other.send(register("r0n0", "/rack7", 8_192)).await.unwrap();
            id = 1;
        }
        one.await_acknowledged().await.unwrap();
        other.await_acknowledged().await.unwrap();
        let wire = request(&format!("c{round}"), round as u32 + 1, 1, 1_024);
        if let Err(error) = world.client.request_hints(wire, SOON).await {
            refusal::<()>(Err(error));
        }
        for (host, (leased, _, total)) in rooms(&world).await {
            assert!(leased <= total, "{host}: {leased} of {total}");
        }
    }
    // They agree at last: what was promised against that is taken back, and status is one truth.
    one.send(register("r0n0", "/rack0", 8_192)).await.unwrap();
    one.send(heartbeat("r0n0", 1, 8_192, vec![("container_1_0099_01_000002".to_owned(), 8_192)])).await.unwrap();
    one.await_acknowledged().await.unwrap();
    let full = async || rooms(&world).await["r0n0"];
    let began = Instant::now();
    while full().await != (0, 8_192, 8_192) {
        assert!(began.elapsed() < SOON, "{:?}", full().await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let answer = world.hints(request("last", 99, 1, 1_024)).await;
    assert!(!leased(&answer).contains_key("r0n0"), "{answer:?}");
}
