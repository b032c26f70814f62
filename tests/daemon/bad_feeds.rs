//! What bad feeds get: each bad item named with a reason, the rest taken, the stream going on.

use crate::world::{World, heartbeat, hello, register, request};
use hintd_client::wire::v1;
use hintd_client::{FeedItem, FeedSender};
use v1::topology_item::Item;

/// Sends one item and returns the reason and message of its refusal.
async fn refused<I: FeedItem>(feed: &mut FeedSender<I>, item: I) -> (String, String) {
    let number = feed.send(item).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    assert_eq!(ack.refused.len(), 1, "{ack:?}");
    assert_eq!((ack.refused[0].number, ack.through), (number, number));
    (ack.refused[0].reason.clone(), ack.refused[0].message.clone())
}

async fn taken<I: FeedItem>(feed: &mut FeedSender<I>, item: I) -> v1::FeedAck {
    feed.send(item).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    assert!(ack.refused.is_empty(), "{ack:?}");
    ack
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_of_an_unregistered_node_is_answered_with_resync() {
    let world = World::start().await;
    let mut feed = world.heartbeats().await;
    feed.send(heartbeat("ghost", 1, 0, vec![])).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    assert_eq!(ack.resync, ["ghost"]);
    assert_eq!(ack.refused[0].reason, "unknown_node");
    assert_eq!(ack.instance_id, world.status().await.instance_id);
    taken(&mut feed, register("ghost", "/rack0", 8_192)).await;
    taken(&mut feed, heartbeat("ghost", 2, 0, vec![])).await;
    world.until("it counts", |status| status.nodes_usable == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_late_and_out_of_order_heartbeats_change_nothing() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    taken(&mut feed, heartbeat("r0n0", 5, 2_048, vec![])).await;
    let (reason, message) = refused(&mut feed, heartbeat("r0n0", 5, 4_096, vec![])).await;
    assert!(["duplicate", "out_of_order"].contains(&reason.as_str()), "{reason}: {message}");
    let (reason, message) = refused(&mut feed, heartbeat("r0n0", 3, 4_096, vec![])).await;
    assert_eq!(reason, "out_of_order", "{message}");
    assert!(message.contains('3') && message.contains('5'), "{message}");
    // An item under a number that was used: the same item sent twice.
    feed.send_numbered(2, heartbeat("r0n0", 9, 4_096, vec![])).await.unwrap();
    let mark = feed.send(heartbeat("r0n0", 6, 2_048, vec![])).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    assert_eq!((ack.through, ack.refused.len()), (mark, 1), "{ack:?}");
    assert_eq!((ack.refused[0].number, ack.refused[0].reason.as_str()), (2, "out_of_order"));
    world.until_used("r0n0", 2_048).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_with_impossible_values_are_refused_and_the_stream_goes_on() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    let (reason, message) = refused(&mut feed, register("bad", "/rack0", -1)).await;
    assert_eq!(reason, "negative", "{message}");
    let (reason, message) = refused(&mut feed, register("", "/rack0", 1_024)).await;
    assert_eq!(reason, "malformed", "{message}");
    let (reason, message) = refused(&mut feed, register("bad", "rack without slash", 1_024)).await;
    assert_eq!(reason, "malformed", "{message}");
    let (reason, message) = refused(&mut feed, heartbeat("r0n0", 2, 0, vec![("container_x".into(), 1_024)])).await;
    assert_eq!(reason, "malformed", "{message}");
    assert!(message.contains("container_x"), "{message}");
    let (reason, _) = refused(&mut feed, v1::HeartbeatItem { number: 0, item: None }).await;
    assert_eq!(reason, "malformed");
    taken(&mut feed, heartbeat("r0n0", 3, 0, vec![])).await;
    assert_eq!(world.status().await.nodes, 1);
    world.hints(request("r", 1, 1, 1_024)).await;
}

fn link(id: &str, a: &str, b: &str, bits_per_s: u64) -> v1::NetworkLink {
    v1::NetworkLink { id: id.into(), a: a.into(), b: b.into(), bits_per_s, up: None }
}

/// Two hosts under one switch, and further links.
fn graph(further: Vec<v1::NetworkLink>) -> v1::TopologyItem {
    let switch = |name: &str| v1::NetworkSwitch { name: name.into(), tier: "edge".into() };
    let host = |name: &str| v1::NetworkHost { name: name.into() };
    let mut links = vec![link("l0", "r0n0", "s0", 1_000_000_000), link("l1", "r0n1", "s0", 1_000_000_000)];
    links.extend(further);
    let graph = v1::NetworkGraph {
        switches: vec![switch("s0"), switch("s1"), switch("s2")],
        hosts: vec![host("r0n0"), host("r0n1")],
        links,
        optical: None,
    };
    v1::TopologyItem { number: 0, item: Some(Item::Full(graph)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_topology_is_refused_whole_and_the_last_good_one_stays() {
    let world = World::start().await;
    let _nodes = world.cluster(1, 2, 8_192).await;
    let mut feed: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    let up = || link("l2", "s0", "s1", 1_000_000_000);
    taken(&mut feed, graph(vec![up()])).await;
    world.until("three links", |status| status.links == 3).await;
    for (what, bad) in [
        ("s1", graph(vec![link("island", "s1", "s2", 1_000_000_000)])),
        ("loop", graph(vec![up(), link("loop", "s1", "s1", 1)])),
        ("l0", graph(vec![up(), link("l0", "s0", "s1", 1)])),
        ("zero", graph(vec![up(), link("zero", "s0", "s1", 0)])),
        ("nowhere", graph(vec![up(), link("l9", "s0", "nowhere", 1)])),
    ] {
        let (reason, message) = refused(&mut feed, bad).await;
        assert_eq!(reason, "bad_network", "{message}");
        assert!(message.contains(what), "\"{message}\" does not name \"{what}\"");
    }
    let change = |id: &str, up| Item::Link(v1::LinkChange { id: id.into(), up, bits_per_s: None });
    let unknown = v1::TopologyItem { number: 0, item: Some(change("l7", Some(false))) };
    let (reason, message) = refused(&mut feed, unknown).await;
    assert_eq!(reason, "unknown_link", "{message}");
    assert_eq!(world.status().await.links, 3, "the last good one stays");
    taken(&mut feed, v1::TopologyItem { number: 0, item: Some(change("l2", Some(false))) }).await;
    world.until("one is down", |status| status.links_down == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_before_a_hello_are_refused() {
    let world = World::start().await;
    let mut client = v1::feed_client::FeedClient::connect(format!("http://{}", world.running().grpc)).await.unwrap();
    let mut first = register("r0n0", "/rack0", 8_192);
    first.number = 1;
    let mut acks = client.heartbeats(tokio_stream::iter([first])).await.unwrap().into_inner();
    let ack = acks.message().await.unwrap().unwrap();
    assert_eq!(ack.refused[0].reason, "hello_missing", "{ack:?}");
    assert_eq!(world.status().await.nodes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_report_means_nothing_before_its_path_is_known_and_is_asked_for_then() {
    let world = World::start().await;
    let _nodes = world.cluster(1, 2, 8_192).await;
    let mut reports: FeedSender<v1::BlockReportItem> = world.client.feed(hello()).await.unwrap();
    let report = || {
        let full = v1::FullBlockReport { datanode: "r0n0".into(), block_ids: vec![7, 8] };
        v1::BlockReportItem { number: 0, item: Some(v1::block_report_item::Item::Full(full)) }
    };
    taken(&mut reports, report()).await;
    let mut datasets: FeedSender<v1::DatasetItem> = world.client.feed(hello()).await.unwrap();
    let put = v1::Dataset {
        path: "/data/a".into(),
        blocks: vec![v1::DatasetBlock { block_id: 7, bytes: 128 << 20, hosts: vec![] }],
    };
    taken(&mut datasets, v1::DatasetItem { number: 0, item: Some(v1::dataset_item::Item::Put(put)) }).await;
    let ack = tokio::time::timeout(crate::world::SOON, reports.ack()).await.expect("asked on the idle stream");
    assert_eq!(ack.unwrap().full_report_wanted, ["r0n0"]);
    taken(&mut reports, report()).await;
    let mut wire = request("r", 1, 1, 1_024);
    wire.input_paths = vec!["/data/a".into()];
    wire.policy = "capacity".into();
    world.until("the block is known", |status| status.blocks == 1).await;
    // Where it lies is in the report, which is acknowledged and may not be published yet.
    let began = std::time::Instant::now();
    loop {
        let found = world.admin.clone().what_if(wire.clone()).await.unwrap().into_inner();
        if found.hints[0].host == "r0n0" {
            break;
        }
        assert!(began.elapsed() < crate::world::SOON, "{found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let answer = world.hints(wire).await.hints.unwrap();
    assert_eq!(answer.hints[0].host, "r0n0", "where the block lies");
}
