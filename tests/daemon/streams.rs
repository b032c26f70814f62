//! What is pushed: hints for lost tasks, withdrawals, routes; and how a follower resumes.

use crate::world::{SOON, World, heartbeat, hello, leased, refusal, request};
use hintd_client::wire::v1;
use hintd_client::{FeedSender, Following};
use std::time::{Duration, Instant};
use tonic::Code;
use v1::follow_message::Advice;

/// Who follows the application `application_1_0001`.
pub(crate) fn follow_start(answer: &v1::RequestHintsResponse, resume_after: u64) -> v1::FollowStart {
    v1::FollowStart {
        application_id: "application_1_0001".into(),
        attempt: 1,
        token: answer.token.clone(),
        resume_after,
        nonce: Vec::new(),
    }
}

pub(crate) async fn next(follow: &mut Following) -> v1::FollowMessage {
    tokio::time::timeout(SOON, follow.next()).await.expect("something is pushed").unwrap()
}

/// A container of application 1 that answers a request of [`request`]'s.
fn container(sequence: u32) -> String {
    format!("container_1_0001_01_{sequence:06}")
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_lost_node_are_placed_again_once_and_pushed() {
    let world = World::with(&[("model", "stale_after = \"2s\""), ("model", "lost_after = \"4s\"")]).await;
    let mut feed = world.cluster(1, 3, 8_192).await;
    let answer = world.hints(request("r1", 1, 3, 2_048)).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    // Each lease becomes a container; then one node falls silent.
    let mut sequence = 1;
    let mut running = Vec::new();
    for (host, leases) in leased(&answer) {
        let containers: Vec<_> = leases
            .iter()
            .map(|_| {
                sequence += 1;
                (container(sequence), 2_048)
            })
            .collect();
        running.push((host, containers));
    }
    let lost = running[0].0.clone();
    let hit = running[0].1.len() as u32;
    let beat = async |feed: &mut FeedSender<v1::HeartbeatItem>, id: u32, skip: &str| {
        for node in 0..3 {
            let host = format!("r0n{node}");
            if host != skip {
                let containers = running.iter().find(|(on, _)| *on == host).map_or(vec![], |found| found.1.clone());
                let used = 2_048 * containers.len() as i64;
                feed.send(heartbeat(&host, id, used, containers)).await.unwrap();
            }
        }
        feed.await_acknowledged().await.unwrap();
    };
    beat(&mut feed, 2, "").await;
    world.until("leases are bound", |status| status.leases == 0).await;
    let (began, mut id) = (Instant::now(), 2);
    let pushed = loop {
        id += 1;
        beat(&mut feed, id, &lost).await;
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(50), follow.next()).await {
            break message.unwrap();
        }
        assert!(began.elapsed() < SOON, "the node was lost and its tasks placed again");
    };
    assert_eq!(pushed.cause, "node_lost");
    let Some(Advice::Hints(hints)) = pushed.advice else { panic!("{pushed:?}") };
    assert_eq!(hints.hints.iter().map(|hint| hint.count).sum::<u32>(), hit, "exactly what was hit");
    assert!(hints.hints.iter().all(|hint| hint.host != lost), "not where they were");
    assert_eq!(world.status().await.leases, u64::from(hit));
    for id in id + 1..id + 11 {
        beat(&mut feed, id, &lost).await;
        let again = tokio::time::timeout(Duration::from_millis(20), follow.next()).await;
        assert!(again.is_err(), "once: {again:?}");
    }
}

/// Fills r0n0 with a foreign container of `used` MB.
async fn foreign(feed: &mut FeedSender<v1::HeartbeatItem>, id: u32, used: i64) {
    let stranger = (format!("container_1_0099_01_{:06}", id + 1), used);
    feed.send(heartbeat("r0n0", id, used, vec![stranger])).await.unwrap();
    feed.await_acknowledged().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_use_withdraws_the_youngest_leases_and_a_follower_resumes_by_number() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    let first = world.hints(request("r1", 1, 2, 2_048)).await;
    let second = world.hints(request("r2", 1, 2, 2_048)).await;
    let leases: Vec<u64> = [&first, &second].iter().flat_map(|answer| leased(answer)["r0n0"].clone()).collect();
    let mut follow = world.client.follow(follow_start(&first, 0)).await.unwrap();
    foreign(&mut feed, 2, 2_048).await;
    let message = next(&mut follow).await;
    assert_eq!(message.cause, "foreign_use");
    let one = message.number;
    let Some(Advice::Withdraw(withdrawn)) = &message.advice else { panic!("{message:?}") };
    assert_eq!((withdrawn.lease_ids.clone(), withdrawn.host.as_str()), (vec![leases[3]], "r0n0"));
    drop(follow);
    foreign(&mut feed, 3, 4_096).await;
    foreign(&mut feed, 4, 6_144).await;
    world.until("one lease is left", |status| status.leases == 1).await;
    let mut follow = world.client.follow(follow_start(&first, one)).await.unwrap();
    let numbers = [next(&mut follow).await.number, next(&mut follow).await.number];
    assert_eq!(numbers, [one + 1, one + 2], "what came while nobody followed");
    let mut again = world.client.follow(follow_start(&first, 0)).await.unwrap();
    assert_eq!(next(&mut again).await, message, "from the oldest kept");
    let mut lost = world.client.follow(follow_start(&first, 77)).await.unwrap();
    let gap = next(&mut lost).await;
    assert_eq!((gap.number, gap.advice), (one - 1, Some(Advice::Gap(v1::Gap { first_kept: one }))));
    assert_eq!(next(&mut lost).await, message, "and what is kept comes after it");
    assert_eq!(world.counter("leases_withdrawn").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_resumes_after_a_restart_is_told_of_the_gap() {
    let mut world = World::start().await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    let first = world.hints(request("r1", 1, 3, 2_048)).await;
    let mut follow = world.client.follow(follow_start(&first, 0)).await.unwrap();
    foreign(&mut feed, 2, 4_096).await;
    let seen = next(&mut follow).await.number;
    drop((follow, feed));
    world.restart().await;
    // Both messages of this life come before anybody follows: by a count from 1 they were seen.
    let mut feed = world.cluster(1, 1, 8_192).await;
    foreign(&mut feed, 3, 6_144).await;
    foreign(&mut feed, 4, 8_192).await;
    world.until("no lease is left", |status| status.leases == 0).await;
    let mut follow = world.client.follow(follow_start(&first, seen)).await.unwrap();
    let gap = next(&mut follow).await;
    assert!(matches!(gap.advice, Some(Advice::Gap(_))) && gap.number > seen, "{gap:?}");
    let withdrawn = next(&mut follow).await;
    assert!(matches!(withdrawn.advice, Some(Advice::Withdraw(_))) && withdrawn.number > gap.number, "{withdrawn:?}");
}

fn done(attempt: u32) -> v1::TaskEvent {
    v1::TaskEvent {
        application_id: "application_1_0001".into(),
        attempt,
        what: Some(v1::task_event::What::Done(v1::ApplicationDone { failed: false })),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_another_attempt_than_the_stream_s_own_are_counted_and_dropped() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 2, 2_048)).await;
    world.hints(request("r2", 2, 1, 2_048)).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let foreign = v1::TaskEvent { application_id: "application_1_0002".into(), ..done(1) };
    follow.tell(vec![foreign, done(2)]).await.unwrap();
    let two = |status: &v1::StatusResponse| status.counters.get("events_of_another_attempt") == Some(&2);
    assert_eq!(world.until("both are counted", two).await.leases, 3, "nobody else's leases end");
    // Its own event, with a container of the other's.
    let what =
        v1::TaskAllocated { host: "r0n0".into(), container_id: "container_1_0002_01_000002".into(), lease_id: 0 };
    let what = Some(v1::task_event::What::Allocated(what));
    follow.tell(vec![v1::TaskEvent { what, group: "g".into(), ..done(1) }]).await.unwrap();
    world.until("it is refused", |status| status.counters.get("events_refused").is_some_and(|n| *n == 3)).await;
    follow.tell(vec![done(1)]).await.unwrap();
    world.until("its own end", |status| status.leases == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_asks_again_after_its_end_is_followed_again() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    let first = world.hints(request("r1", 1, 1, 2_048)).await;
    let mut follow = world.client.follow(follow_start(&first, 0)).await.unwrap();
    follow.tell(vec![done(1)]).await.unwrap();
    world.until("no lease is left", |status| status.leases == 0).await;
    let again = world.hints(request("r2", 1, 2, 4_096)).await;
    let mut follow = world.client.follow(follow_start(&again, 0)).await.unwrap();
    foreign(&mut feed, 2, 4_096).await;
    assert_eq!(next(&mut follow).await.cause, "foreign_use");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_reconnects_is_counted_once() {
    let world = World::with(&[("limits", "watched_pairs = 2")]).await;
    let pair = |src: &str, dst: &str| v1::HostPair { src: src.into(), dst: dst.into(), class: String::new() };
    let watch = |watcher: &str, pairs| v1::WatchRequest { watcher: watcher.into(), pairs, ..Default::default() };
    let both = vec![pair("a", "b"), pair("b", "a")];
    let _old = world.client.watch(watch("sdn", both.clone())).await.unwrap();
    let _new = world.client.watch(watch("sdn", both)).await.expect("it replaces what it watched");
    let (code, message) = refusal(world.client.watch(watch("other", vec![pair("a", "c")])).await.map(|_| ()));
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("at most 2"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pairs_that_one_peer_watches_leave_others_theirs() {
    let world = World::with(&[("limits", "watched_pairs = 4"), ("limits", "watched_pairs_per_peer = 2")]).await;
    let _feed = world.cluster(1, 3, 8_192).await;
    let watch = |watcher: &str, hosts: &[(&str, &str)]| {
        let pair = |&(src, dst): &(&str, &str)| v1::HostPair { src: src.into(), dst: dst.into(), class: String::new() };
        v1::WatchRequest { watcher: watcher.into(), pairs: hosts.iter().map(pair).collect(), ..Default::default() }
    };
    let two = [("r0n0", "r0n1"), ("r0n0", "r0n2")];
    let _first = world.client.watch(watch("a", &two)).await.unwrap();
    // Under whatever name, the connection has what it may.
    let (code, message) = refusal(world.client.watch(watch("b", &two[..1])).await.map(|_| ()));
    assert_eq!(code, Code::InvalidArgument);
    assert!(
        message.contains("beside 2 that this peer watches; at most 2 (limits.watched_pairs_per_peer)"),
        "{message}"
    );
    let _again = world.client.watch(watch("a", &two)).await.unwrap(); // its own are free
    // Another one has its own share.
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", world.running().grpc)).unwrap();
    let mut other = v1::routes_client::RoutesClient::new(channel.connect().await.unwrap());
    let _second = other.watch(watch("c", &two)).await.unwrap();
    let status = other.watch(watch("d", &two[..1])).await.unwrap_err();
    assert!(status.message().contains("beside 4 that others watch; at most 4 (limits.watched_pairs)"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_is_done_gives_its_leases_back_and_its_stream_ends() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 2, 2_048)).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let done = v1::TaskEvent {
        application_id: "application_1_0001".into(),
        attempt: 1,
        what: Some(v1::task_event::What::Done(v1::ApplicationDone { failed: false })),
        ..Default::default()
    };
    follow.tell(vec![v1::TaskEvent::default(), done]).await.unwrap();
    world.until("no lease is left", |status| status.leases == 0).await;
    let ended = tokio::time::timeout(SOON, follow.next()).await.unwrap();
    assert!(matches!(ended, Err(hintd_client::ClientError::Ended)), "{ended:?}");
    assert_eq!(world.counter("events_refused").await, 1, "the one that made no sense");
}

/// Hosts a and b under edge switches joined by two cores.
pub(crate) fn two_ways() -> v1::TopologyItem {
    let switch = |name: &str, tier: &str| v1::NetworkSwitch { name: name.into(), tier: tier.into() };
    let link = |id: &str, a: &str, b: &str| v1::NetworkLink {
        id: id.into(),
        a: a.into(),
        b: b.into(),
        bits_per_s: 1_000_000_000,
        up: None,
    };
    let graph = v1::NetworkGraph {
        switches: vec![switch("e0", "edge"), switch("e1", "edge"), switch("c0", "core"), switch("c1", "core")],
        hosts: ["r0n0", "r0n1", "r1n0"].map(|name| v1::NetworkHost { name: name.into() }).into(),
        links: vec![
            link("h00", "r0n0", "e0"),
            link("h01", "r0n1", "e0"),
            link("h10", "r1n0", "e1"),
            link("u00", "e0", "c0"),
            link("u01", "e0", "c1"),
            link("u10", "e1", "c0"),
            link("u11", "e1", "c1"),
        ],
        optical: None,
    };
    v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Full(graph)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_link_moves_the_routes_on_it_and_no_others() {
    let world = World::start().await;
    let mut feed: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    feed.send(two_ways()).await.unwrap();
    assert!(feed.await_acknowledged().await.unwrap().refused.is_empty());
    world.until("the network is there", |status| status.links == 7).await;
    let pair = |src: &str, dst: &str| v1::HostPair { src: src.into(), dst: dst.into(), class: String::new() };
    let request = v1::WatchRequest {
        watcher: "sdn".into(),
        pairs: vec![pair("r0n0", "r1n0"), pair("r0n0", "r0n1")],
        ..Default::default()
    };
    let mut watch = world.client.watch(request.clone()).await.unwrap();
    let snapshot = watch.message().await.unwrap().unwrap();
    assert_eq!((snapshot.number, snapshot.snapshot, snapshot.routes.len()), (1, true, 2));
    let route = |update: &v1::RouteUpdate, dst: &str| {
        update.routes.iter().find(|route| route.pair.as_ref().unwrap().dst == dst).unwrap().clone()
    };
    let across = route(&snapshot, "r1n0");
    assert_eq!((across.vertices.len(), across.links.len()), (5, 4), "{across:?}");
    let failed = across.links[1].clone();
    let down = v1::LinkChange { id: failed.clone(), up: Some(false), bits_per_s: None };
    feed.send(v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Link(down)) }).await.unwrap();
    let update = tokio::time::timeout(SOON, watch.message()).await.unwrap().unwrap().unwrap();
    assert_eq!((update.number, update.cause.as_str(), update.subject.as_str()), (2, "link_down", failed.as_str()));
    assert_eq!((update.routes.len(), update.untouched), (1, 1));
    let moved = route(&update, "r1n0");
    assert!(moved.vertices.len() == 5 && !moved.links.contains(&failed), "{moved:?}");

    assert_eq!(world.client.acknowledge("sdn", 2, vec![]).await.unwrap(), 0);
    let found = refusal(world.client.acknowledge("sdn", 2, vec![]).await);
    assert_eq!(found.0, Code::InvalidArgument, "{}", found.1);
    assert_eq!(refusal(world.client.acknowledge("stranger", 1, vec![]).await).0, Code::NotFound);
    let mut bad = request.clone();
    bad.pairs[0].dst = "nowhere".into();
    bad.watcher = "other".into();
    let found = refusal(world.client.watch(bad).await.map(|_| ()));
    assert_eq!(found.0, Code::NotFound, "{}", found.1);
    let _newer = world.client.watch(request).await.unwrap();
    let ended = tokio::time::timeout(SOON, watch.message()).await.unwrap().unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "a later Watch of the same name replaces this one");
}
