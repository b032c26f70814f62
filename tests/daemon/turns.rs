//! Turns of heavy shuffles over gRPC: who may ask for receivers, and who asks YARN as before.

use crate::world::{SOON, World, refusal, request};
use hintd_client::Client;
use hintd_client::wire::v1;
use std::time::{Duration, Instant};
use tonic::Code;

const GB: u64 = 1_000_000_000;

/// A daemon that holds, by these settings of `[hold]`.
async fn holding(hold: &[&'static str]) -> World {
    let mut extra = vec![("queues.\"*\"", "hold = true")];
    extra.extend(hold.iter().map(|line| ("hold", *line)));
    let world = World::with(&extra).await;
    drop(world.cluster(2, 2, 8_192).await);
    world
}

/// Two racks of two nodes without a network that anybody told of: uplinks are taken to carry 1 GB a second together.
async fn world(hold: &'static str) -> World {
    let world = World::with(&[("queues.\"*\"", hold)]).await;
    drop(world.cluster(2, 2, 8_192).await);
    world
}

fn wish(application: u32, gb: u64) -> v1::ShuffleTurnRequest {
    v1::ShuffleTurnRequest {
        application_id: format!("application_1_{application:04}"),
        attempt: 1,
        queue: "default".to_owned(),
        group: "p10".to_owned(),
        shuffle_bytes: gb * GB,
        receivers: 4,
        memory_mb: 1_024,
        ..Default::default()
    }
}

async fn turn(world: &World, wish: v1::ShuffleTurnRequest) -> (Option<u32>, u32, String) {
    let found = world.client.shuffle_turn(wish).await.unwrap();
    assert!(found.again_after_ms > 0, "{found:?}");
    (found.at_most, found.before, found.reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_queue_that_holds_the_two_smallest_heavy_shuffles_ask() {
    let world = world("hold = true").await;
    let (at_most, next) = (Some(8), Some(2)); // a quarter of 32 containers, a quarter of that
    assert_eq!(turn(&world, wish(1, 30)).await, (at_most, 0, "turn".to_owned()));
    assert_eq!(turn(&world, wish(2, 20)).await, (at_most, 0, "turn".to_owned()));
    assert_eq!(turn(&world, wish(3, 40)).await, (Some(0), 2, "held".to_owned()));
    assert_eq!(turn(&world, wish(4, 1)).await, (None, 0, "free".to_owned()));
    assert_eq!(turn(&world, wish(5, 0)).await, (None, 0, "not_known".to_owned()));
    let all = v1::ShuffleTurnRequest { received: 4, ..wish(1, 30) };
    assert_eq!(turn(&world, all).await, (None, 0, "free".to_owned()), "it has everything");
    assert_eq!(turn(&world, wish(3, 40)).await, (next, 0, "turn".to_owned()));
}

fn racks(names: &[&str]) -> Option<v1::ReceiverRacks> {
    Some(v1::ReceiverRacks { racks: names.iter().map(|&name| name.to_owned()).collect() })
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_where_it_asks_for_receivers_takes_turns_with_those_there() {
    let world = world("hold = true").await;
    let (anywhere, at_home) = (Some(8), Some(16)); // a quarter of 32 containers, all of a rack's 16
    assert_eq!(turn(&world, wish(1, 30)).await, (anywhere, 0, "turn".to_owned()));
    assert_eq!(turn(&world, wish(2, 30)).await, (Some(2), 0, "turn".to_owned()));
    assert_eq!(turn(&world, wish(3, 40)).await, (Some(0), 2, "held".to_owned()));
    let home = v1::ShuffleTurnRequest { asked_in: racks(&["/rack0"]), ..wish(3, 40) };
    assert_eq!(turn(&world, home).await, (at_home, 0, "turn".to_owned()), "nobody is before it there");
    let left = v1::ShuffleTurnRequest { asked_in: racks(&[]), ..wish(3, 40) };
    assert_eq!(turn(&world, left).await, (Some(0), 2, "held".to_owned()), "it gave its home up");
}

#[tokio::test(flavor = "multi_thread")]
async fn elsewhere_nobody_is_held() {
    let world = world("hold = false").await;
    for application in 1..5 {
        assert_eq!(turn(&world, wish(application, 30)).await, (None, 0, "queue_off".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_hints_nobody_holds_nobody() {
    for mode in ["mode = \"shadow\"", "mode = \"off\""] {
        let world = World::with(&[
            ("queues.\"*\"", "hold = true"),
            ("queues.\"other\"", mode),
            ("queues.\"other\"", "hold = true"),
        ])
        .await;
        drop(world.cluster(2, 2, 8_192).await);
        for application in 1..5 {
            let wish = v1::ShuffleTurnRequest { queue: "other".to_owned(), ..wish(application, 30) };
            assert_eq!(turn(&world, wish).await, (None, 0, "queue_off".to_owned()), "{mode}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wishes_that_make_no_sense_are_refused_by_field_and_strangers_by_their_nonce() {
    let world = world("hold = true").await;
    let bad = [
        (v1::ShuffleTurnRequest { receivers: 0, received: 1, ..wish(1, 30) }, "received"),
        (v1::ShuffleTurnRequest { received: 5, ..wish(1, 30) }, "received"),
        (v1::ShuffleTurnRequest { attempt: 0, ..wish(1, 30) }, "attempt"),
        (v1::ShuffleTurnRequest { group: "g".repeat(2_000), ..wish(1, 30) }, "group"),
        (v1::ShuffleTurnRequest { asked_in: racks(&[&"r".repeat(2_000)]), ..wish(1, 30) }, "asked_in"),
        (v1::ShuffleTurnRequest { asked_in: racks(&vec!["r"; 10_001]), ..wish(1, 30) }, "asked_in"),
        (v1::ShuffleTurnRequest { application_id: "job_1".to_owned(), ..wish(1, 30) }, "application_id"),
    ];
    for (wish, field) in bad {
        let (code, message) = refusal(world.client.shuffle_turn(wish).await);
        assert!(code == Code::InvalidArgument && message.starts_with(field), "{code:?}: {message}");
    }
    world.hints(request("r1", 1, 1, 1_024)).await;
    let stranger = Client::connect(&world.running().grpc.to_string()).await.unwrap();
    let (code, message) = refusal(stranger.shuffle_turn(wish(1, 30)).await);
    assert_eq!(code, Code::PermissionDenied, "{message}");
    assert_eq!(turn(&world, wish(1, 30)).await.2, "turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_hold_at_their_edges() {
    let world = holding(&["at_once = 1", "heavy = \"3s\"", "share = 0.5", "longest = \"1s\""]).await;
    // At 1 GB a second three are not heavy, and one byte more is.
    let bytes = |application, shuffle_bytes| v1::ShuffleTurnRequest { shuffle_bytes, ..wish(application, 0) };
    assert_eq!(turn(&world, bytes(1, 3 * GB)).await, (None, 0, "free".to_owned()));
    let began = Instant::now();
    assert_eq!(turn(&world, bytes(1, 3 * GB + 1)).await, (Some(16), 0, "turn".to_owned()), "half of 32 containers");
    let second = turn(&world, wish(2, 30)).await;
    // Unless the machine took a second for it: nobody is held for longer, and who was is before nobody.
    let held = (Some(0), 1, "held".to_owned());
    assert!(second == held || began.elapsed() >= Duration::from_secs(1), "{second:?}");
    let asked = Instant::now();
    while turn(&world, wish(2, 30)).await.2 != "free" {
        assert!(asked.elapsed() < SOON, "it is held for ever");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() >= Duration::from_secs(1), "it was let go before its time");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_share_is_one_container_and_the_largest_is_all() {
    for (share, containers) in [("share = 0.001", 1), ("share = 1.0", 32)] {
        let world = holding(&[share]).await;
        assert_eq!(turn(&world, wish(1, 30)).await, (Some(containers), 0, "turn".to_owned()));
    }
}
