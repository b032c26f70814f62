//! Dispatch policies on live heartbeats: what waits, what is pushed and why, and what survives.

use crate::program::{Program, write_config};
use crate::streams::{follow_start, two_ways};
use crate::world::{SOON, World, first_said, heartbeat, hello, leased, register, resource};
use hintd_client::wire::v1;
use hintd_client::{AdminClient, Client, FeedSender, Following};
use std::time::{Duration, Instant};
use v1::follow_message::Advice;

const GIB: u64 = 1 << 30;

/// A file with one block on each of these hosts, the only one that is known; requests see it.
async fn file((client, admin): (&Client, &AdminClient), path: &str, hosts: &[&str], bytes: u64) {
    let mut datasets: FeedSender<v1::DatasetItem> = client.feed(hello()).await.unwrap();
    let block = |(id, host): (u64, &&str)| v1::DatasetBlock { block_id: id, bytes, hosts: vec![(*host).to_owned()] };
    let blocks = (1..).zip(hosts).map(block).collect();
    let put = v1::dataset_item::Item::Put(v1::Dataset { path: path.to_owned(), blocks });
    datasets.send(v1::DatasetItem { number: 0, item: Some(put) }).await.unwrap();
    assert!(datasets.await_acknowledged().await.unwrap().refused.is_empty());
    let began = Instant::now();
    while admin.clone().status(v1::StatusRequest {}).await.unwrap().into_inner().blocks != hosts.len() as u64 {
        assert!(began.elapsed() < SOON, "the file is not known");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A job of application 1 that follows; 1 GB a task.
fn job(id: &str, policy: &str, (maps, reduces): (u32, u32), path: &str) -> v1::RequestHintsRequest {
    let group = |(priority, (name, count)): (i32, (&str, u32))| v1::TaskGroup {
        name: name.to_owned(),
        role: name.to_owned(),
        count,
        resource: Some(resource(1_024, 1)),
        priority,
        ..Default::default()
    };
    let groups: Vec<_> = (0..).zip([("map", maps), ("reduce", reduces)]).filter(|(_, (_, count))| *count > 0).collect();
    let shuffle = v1::GroupEdge {
        from: "map".to_owned(),
        to: "reduce".to_owned(),
        pattern: v1::EdgePattern::AllToAll.into(),
        bytes: GIB,
    };
    v1::RequestHintsRequest {
        request_id: id.to_owned(),
        application_id: "application_1_0001".to_owned(),
        attempt: 1,
        user: "ann".to_owned(),
        groups: groups.into_iter().map(group).collect(),
        edges: if reduces > 0 { vec![shuffle] } else { Vec::new() },
        input_paths: vec![path.to_owned()],
        policy: policy.to_owned(),
        follows: true,
        ..Default::default()
    }
}

fn container(sequence: u32) -> (String, i64) {
    (format!("container_1_0001_01_{sequence:06}"), 1_024)
}

async fn next(follow: &mut Following) -> v1::FollowMessage {
    tokio::time::timeout(SOON, follow.next()).await.expect("something is pushed").unwrap()
}

async fn beat(feed: &mut FeedSender<v1::HeartbeatItem>, host: &str, id: u32, containers: &[(String, i64)]) {
    let used = containers.iter().map(|(_, memory)| memory).sum();
    feed.send(heartbeat(host, id, used, containers.to_vec())).await.unwrap();
    feed.await_acknowledged().await.unwrap();
}

fn event(group: &str, task: &str, what: v1::task_event::What) -> v1::TaskEvent {
    v1::TaskEvent {
        application_id: "application_1_0001".into(),
        attempt: 1,
        group: group.into(),
        task: task.into(),
        what: Some(what),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_launched_where_their_input_lies_as_its_node_gets_room() {
    let world = World::start().await;
    let mut feed = world.cluster(2, 2, 2_048).await;
    file((&world.client, &world.admin), "/in", &["r0n0", "r0n0", "r0n0"], 1 << 20).await;
    let answer = world.hints(job("r1", "delay", (3, 0), "/in")).await;
    let hints = answer.hints.clone().unwrap();
    assert_eq!(
        leased(&answer).into_iter().map(|(host, of)| (host, of.len())).collect::<Vec<_>>(),
        [("r0n0".into(), 2)]
    );
    let held = &hints.pending[..];
    assert_eq!(held.len(), 1, "{hints:?}");
    assert_eq!((held[0].group.as_str(), held[0].count, held[0].reason.as_str()), ("map", 1, "no_local_block"));
    assert!(hints.asks.iter().all(|ask| ask.num_containers() <= 2), "{:?}", hints.asks);
    assert!(hints.degraded.contains(&"no_link_stats".to_owned()));
    assert_eq!(world.status().await.waiting_tasks, 1);
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    beat(&mut feed, "r0n0", 2, &[container(2), container(3)]).await;
    beat(&mut feed, "r1n0", 2, &[]).await;
    world.until("both run", |status| status.leases == 0).await;
    beat(&mut feed, "r0n0", 3, &[container(3)]).await;
    let pushed = next(&mut follow).await;
    let Some(Advice::Hints(later)) = &pushed.advice else { panic!("{pushed:?}") };
    assert_eq!((pushed.cause.as_str(), later.hints.len()), ("offer", 1));
    let hint = &later.hints[0];
    assert_eq!((hint.host.as_str(), hint.first_index, hint.count, hint.lease_ids.len()), ("r0n0", 2, 1, 1));
    let status = world.until("nothing waits", |status| status.waiting_tasks == 0).await;
    assert_eq!((status.leases, status.counters["dispatch_launches"]), (1, 3));
    let explained = world.client.explain(&later.decision_id).await.unwrap();
    assert_eq!((explained.attempt, explained.leases[0].state.as_str()), (1, "held"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_follow_is_answered_at_once_and_a_what_if_leases_nothing() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 2_048).await;
    file((&world.client, &world.admin), "/in", &["r0n0", "r0n0", "r0n0"], 1 << 20).await;
    let preview = world.admin.clone().what_if(job("w", "delay", (3, 0), "/in")).await.unwrap().into_inner();
    assert_eq!(preview.pending.len(), 1, "{preview:?}");
    let status = world.status().await;
    assert_eq!((status.leases, status.waiting_tasks), (0, 0));
    let mut alone = job("r1", "delay", (3, 0), "/in");
    alone.follows = false;
    let answer = world.hints(alone).await;
    assert_eq!(leased(&answer).values().map(Vec::len).sum::<usize>(), 3, "{answer:?}");
    assert!(answer.hints.unwrap().pending.is_empty());
    let _follow = world.client.follow(v1::FollowStart { token: answer.token, ..follow_start(&Default::default(), 0) });
    assert_eq!(world.status().await.waiting_tasks, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_longer_than_the_bound_is_placed_as_by_an_ordinary_request() {
    let world = World::with(&[("dispatch", "max_wait = \"300ms\"")]).await;
    let _feed = world.cluster(2, 2, 2_048).await;
    file((&world.client, &world.admin), "/in", &["r0n0", "r0n0", "r0n0"], 1 << 20).await;
    let began = Instant::now();
    let answer = world.hints(job("r1", "delay", (3, 0), "/in")).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let pushed = next(&mut follow).await;
    let Some(Advice::Hints(later)) = &pushed.advice else { panic!("{pushed:?}") };
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    assert_eq!((pushed.cause.as_str(), later.hints.len(), later.hints[0].lease_ids.len()), ("max_wait", 1, 1));
    assert_ne!(later.hints[0].host, "r0n0", "it has no room");
    let status = world.status().await;
    assert_eq!((status.leases, status.waiting_tasks, status.counters["dispatch_late"]), (3, 0, 1));
}

async fn load(world: &World, links: &[&str], bits_per_s: u64) {
    let mut counters: FeedSender<v1::LinkStatsItem> = world.client.feed(hello()).await.unwrap();
    for link in links {
        let load = v1::LinkLoad { id: (*link).to_owned(), a_to_b_bits_per_s: bits_per_s, b_to_a_bits_per_s: 0 };
        counters
            .send(v1::LinkStatsItem { number: 0, item: Some(v1::link_stats_item::Item::Load(load)) })
            .await
            .unwrap();
    }
    assert!(counters.await_acknowledged().await.unwrap().refused.is_empty());
    // Until requests see it.
    let began = Instant::now();
    loop {
        let known = world.admin.clone().links(v1::LinksRequest::default()).await.unwrap().into_inner().links;
        let carries = |link: &&v1::LinkView| {
            link.load_source() == v1::LoadSource::Measured && link.a_to_b_bits_per_s == bits_per_s
        };
        let told = known.iter().filter(|link| links.contains(&link.id.as_str())).filter(carries).count();
        if told == links.len() {
            return;
        }
        assert!(began.elapsed() < SOON, "{known:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn racks_that_link_counters_show_congested_get_no_heavy_reduces_until_they_are_not() {
    let world = World::start().await;
    let mut feed = world.cluster(2, 1, 8_192).await;
    let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    network.send(two_ways()).await.unwrap();
    network.await_acknowledged().await.unwrap();
    world.until("the network is there", |status| status.links == 7).await;
    file((&world.client, &world.admin), "/in", &["r0n0"], GIB).await;
    load(&world, &["u00", "u01", "u10", "u11"], 0).await;
    let answer = world.hints(job("r1", "nas", (1, 1), "/in")).await;
    let hints = answer.hints.clone().unwrap();
    assert!(!hints.degraded.contains(&"no_link_stats".to_owned()), "{:?}", hints.degraded);
    assert_eq!((hints.hints.len(), hints.hints[0].host.as_str()), (1, "r0n0"), "{hints:?}");
    assert_eq!(hints.pending[0].reason, "maps_not_done");
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let host = hints.hints[0].host.clone();
    let allocated =
        v1::TaskAllocated { host: host.clone(), container_id: container(2).0, lease_id: hints.hints[0].lease_ids[0] };
    let finished = v1::TaskFinished { host, duration_ms: 900, input_bytes: GIB, output_bytes: GIB, failed: false };
    load(&world, &["u00", "u01", "u10", "u11"], 900_000_000).await;
    let what = [v1::task_event::What::Allocated(allocated), v1::task_event::What::Finished(finished)];
    follow.tell(what.into_iter().map(|what| event("map", "m-0", what)).collect()).await.unwrap();
    let (began, mut last) = (Instant::now(), 1);
    let told = loop {
        last += 1;
        beat(&mut feed, "r0n0", last, &[]).await;
        beat(&mut feed, "r1n0", last, &[]).await;
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(50), follow.next()).await {
            break message.unwrap();
        }
        assert!(began.elapsed() < SOON, "its reason changed");
    };
    let Some(Advice::NotYet(not_yet)) = &told.advice else { panic!("{told:?}") };
    assert_eq!((not_yet.group.as_str(), not_yet.reason.as_str()), ("reduce", "rack_congested"));
    for id in last + 1..last + 6 {
        beat(&mut feed, "r0n0", id, &[]).await;
        let again = tokio::time::timeout(Duration::from_millis(20), follow.next()).await;
        assert!(again.is_err(), "neither launched nor told again: {again:?}");
    }
    load(&world, &["u10", "u11"], 100_000_000).await;
    beat(&mut feed, "r0n0", last + 6, &[]).await;
    beat(&mut feed, "r1n0", last + 6, &[]).await;
    let pushed = next(&mut follow).await;
    let Some(Advice::Hints(later)) = &pushed.advice else { panic!("{pushed:?}") };
    let hint = &later.hints[0];
    assert_eq!((hint.group.as_str(), hint.host.as_str(), hint.lease_ids.len()), ("reduce", "r1n0", 1));
    assert_eq!(world.counter("dispatch_not_yet").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_pushed_holds_after_kill_nine_and_what_waited_is_asked_for_anew() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let program = Program::start(folder.path(), port).await;
    let mut feed = program.client.feed(hello()).await.unwrap();
    let full = 1_i64 << 20;
    let stranger = vec![("container_1_0099_01_000001".to_owned(), full)];
    feed.send(register("r0n0", "/rack0", full)).await.unwrap();
    beat(&mut feed, "r0n0", 1, &stranger).await;
    file((&program.client, &program.admin), "/in", &["r0n0", "r0n0"], 1 << 20).await;
    let answer = program.client.request_hints(job("r1", "delay", (2, 0), "/in"), SOON).await.unwrap();
    assert_eq!(answer.hints.as_ref().unwrap().pending[0].count, 2, "{answer:?}");
    let mut follow = program.client.follow(follow_start(&answer, 0)).await.unwrap();
    let most = vec![("container_1_0099_01_000001".to_owned(), full - 1_024)];
    beat(&mut feed, "r0n0", 2, &most).await;
    let pushed = next(&mut follow).await;
    let Some(Advice::Hints(later)) = &pushed.advice else { panic!("{pushed:?}") };
    assert_eq!(later.hints[0].lease_ids.len(), 1);
    drop(program);
    let program = Program::start(folder.path(), port).await;
    assert_eq!(program.status().await.leases, 1, "what was pushed was durable");
    let again = program.client.request_hints(job("r1", "delay", (2, 0), "/in"), SOON).await.unwrap();
    assert_eq!(first_said(&again), answer, "the answer is kept");
    assert_eq!(program.status().await.waiting_tasks, 0);
    let mut follow = program.client.follow(follow_start(&answer, pushed.number)).await.unwrap();
    let gap = next(&mut follow).await;
    assert!(matches!(gap.advice, Some(Advice::Gap(_))), "{gap:?}");
    file((&program.client, &program.admin), "/in", &["r0n0"], 1 << 20).await;
    let anew = program.client.request_hints(job("r2", "delay", (1, 0), "/in"), SOON).await.unwrap();
    assert_eq!((leased(&anew)["r0n0"].len(), program.status().await.leases), (1, 2));
}
