//! Containers that measured latency makes slow: their application is told where they would be fast (`nomora`).

use crate::streams::{follow_start, next};
use crate::world::{World, hello, request, resource};
use hintd_client::wire::v1;
use hintd_client::{FeedSender, Following};

const MASTER: &str = "container_1_0001_01_000001";
const WORKER: &str = "container_1_0001_01_000002";
const PRIORITY: i32 = 10;

fn runs(container: &str, priority: i32) -> v1::NodeContainer {
    let container_id = container.to_owned();
    v1::NodeContainer { container_id, priority, resource: Some(resource(1_024, 1)), ..Default::default() }
}

/// A heartbeat of a node with so many MB in use, and these containers of 1,024 MB.
fn beat(host: &str, (response_id, used): (u32, i64), containers: Vec<v1::NodeContainer>) -> v1::HeartbeatItem {
    let used = Some(resource(used, 0));
    let beat = v1::NodeHeartbeat { host: host.to_owned(), response_id, used, containers, state: String::new() };
    v1::HeartbeatItem { number: 0, item: Some(v1::heartbeat_item::Item::Heartbeat(beat)) }
}

/// Sixteen round trips of this length from the ApplicationMaster's host, as an agent there tells of them.
fn measured(to: &str, rtt_us: u64) -> v1::LatencyItem {
    let (from_host, to_host) = ("r0n0".to_owned(), to.to_owned());
    let buckets = vec![v1::LatencyBucket { rtt_us, count: 16 }];
    let histogram = v1::LatencyHistogram { from_host, to_host, buckets, ..Default::default() };
    v1::LatencyItem { number: 0, item: Some(v1::latency_item::Item::Histogram(histogram)) }
}

/// The next move that the application is told of, and why.
async fn next_move(follow: &mut Following) -> (v1::MoveAdvice, String) {
    loop {
        let message = next(follow).await;
        if let Some(v1::follow_message::Advice::Move(told)) = message.advice {
            return (told, message.cause);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_far_from_its_master_is_told_where_it_is_near_and_seen_to_have_followed() {
    let world = World::with(&[
        ("policy", "default = \"nomora\""),
        ("model.max_age", "latency = \"1h\""),
        ("rebalance", "enabled = true"),
        ("rebalance", "latency = true"),
        ("rebalance", "every = \"100ms\""),
        ("rebalance", "cool_down = \"1h\""),
    ])
    .await;
    let mut beats = world.cluster(3, 2, 8_192).await;
    let mut asked = request("job", 1, 2, 1_024);
    asked.am_host = "r0n0".to_owned();
    asked.groups[0].priority = PRIORITY;
    let answer = world.hints(asked).await;
    let decision = answer.hints.as_ref().unwrap().decision_id.clone();
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    // Beside its master there is no room.
    beats.send(beat("r0n0", (2, 8_192), vec![runs(MASTER, 0)])).await.unwrap();
    beats.send(beat("r2n1", (2, 1_024), vec![runs(WORKER, PRIORITY)])).await.unwrap();
    beats.await_acknowledged().await.unwrap();
    assert_eq!(world.counter("moves_held").await, 0, "nothing was measured");

    // The worker's own host comes last: before that nobody knows that it is far.
    let mut agent: FeedSender<v1::LatencyItem> = world.client.feed(hello()).await.unwrap();
    for (host, rtt_us) in [("r0n1", 400), ("r1n0", 30), ("r1n1", 400), ("r2n0", 400), ("r2n1", 900)] {
        agent.send(measured(host, rtt_us)).await.unwrap();
    }
    let refused = agent.await_acknowledged().await.unwrap().refused;
    assert!(refused.is_empty(), "{refused:?}");
    let (told, cause) = next_move(&mut follow).await;
    assert_eq!((&*told.container_id, &*told.to_host, &*cause), (WORKER, "r1n0", "rebalance"));
    assert!(told.performance.unwrap() < 0.3 && told.to_performance == Some(1.0), "{told:?}");
    assert!(told.gain > 0.1 && told.chain.is_empty() && told.ran_ms.is_some(), "{told:?}");
    let moves = |status: &v1::StatusResponse| {
        ["moves_held", "moves_proposed", "moves_followed"].map(|name| status.counters.get(name).copied().unwrap_or(0))
    };
    assert_eq!(moves(&world.status().await), [1, 1, 0], "it was found twice before it was told");
    let of = |explained: v1::ExplainResponse| {
        let moves = explained.moves;
        moves.into_iter().map(|told| (told.from_host, told.advice.unwrap().to_host, told.followed)).collect::<Vec<_>>()
    };
    let shown = of(world.client.explain(&decision).await.unwrap());
    assert_eq!(shown, [("r2n1".to_owned(), "r1n0".to_owned(), false)]);

    // The application starts it anew there, and ends the one that is far some rounds later.
    beats.send(beat("r1n0", (2, 1_024), vec![runs("container_1_0001_01_000003", PRIORITY)])).await.unwrap();
    world.until("it is followed", |status| moves(status)[2] == 1).await;
    assert!(of(world.client.explain(&decision).await.unwrap())[0].2);
    rounds(&world).await;
    assert_eq!(moves(&world.status().await), [1, 1, 1], "it cools down, far as it is");
    beats.send(beat("r2n1", (3, 0), vec![])).await.unwrap();
    beats.await_acknowledged().await.unwrap();
    rounds(&world).await;
    assert_eq!(moves(&world.status().await), [1, 1, 1], "near its master it stays");
}

/// Waits for more rounds than a move takes to be told: one that had begun, and two that find it.
async fn rounds(world: &World) {
    let of = |status: &v1::StatusResponse| status.counters.get("rebalance_rounds").copied().unwrap_or(0);
    let before = of(&world.status().await);
    world.until("rounds go on", |status| of(status) >= before + 4).await;
}
