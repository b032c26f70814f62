//! Routes of running flows: who is told of which, what failures and returns change, acknowledgements, and what-ifs.

use crate::streams::two_ways;
use crate::world::{SOON, World, hello, refusal, resource};
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use std::time::{Duration, Instant};
use tonic::{Code, Streaming};
use v1::rule_change::Action;

/// Hosts of [`two_ways`], all of them nodes.
const HOSTS: [&str; 3] = ["r0n0", "r0n1", "r1n0"];
/// Nothing comes for so long.
const QUIET: Duration = Duration::from_millis(150);

pub(crate) type Updates = Streaming<v1::RouteUpdate>;

/// A daemon that knows the nodes and the network.
pub(crate) async fn wired(extra: &[(&'static str, &str)]) -> (World, FeedSender<v1::TopologyItem>, Beats) {
    let world = World::with(extra).await;
    let beats = world.cluster(2, 2, 32_768).await;
    let mut feed: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    feed.send(two_ways()).await.unwrap();
    assert!(feed.await_acknowledged().await.unwrap().refused.is_empty());
    world.until("the network is there", |status| status.links == 7).await;
    (world, feed, beats)
}

pub(crate) type Beats = FeedSender<v1::HeartbeatItem>;

/// An application whose one task on `from` sends to its one task on `to`.
pub(crate) fn talk(app: u32, from: &str, to: &str, bytes: u64) -> v1::RequestHintsRequest {
    let on = |name: &str, host: &str, priority| v1::TaskGroup {
        name: name.into(),
        count: 1,
        resource: Some(resource(1_024, 1)),
        priority,
        constraints: Some(v1::Constraints {
            avoid_hosts: HOSTS.iter().chain(&["r1n1"]).filter(|&&other| other != host).map(|&h| h.to_owned()).collect(),
            ..v1::Constraints::default()
        }),
        ..v1::TaskGroup::default()
    };
    v1::RequestHintsRequest {
        request_id: format!("talk-{app}"),
        application_id: format!("application_1_{app:04}"),
        attempt: 1,
        groups: vec![on("from", from, 1), on("to", to, 2)],
        edges: vec![v1::GroupEdge { from: "from".into(), to: "to".into(), bytes, ..v1::GroupEdge::default() }],
        ..v1::RequestHintsRequest::default()
    }
}

pub(crate) const MUCH: u64 = 100 << 20;

fn installer() -> v1::WatchRequest {
    v1::WatchRequest { watcher: "sdn".into(), flows: true, installs: true, ..v1::WatchRequest::default() }
}

pub(crate) async fn next(updates: &mut Updates) -> v1::RouteUpdate {
    tokio::time::timeout(SOON, updates.message()).await.expect("an update comes").unwrap().expect("the stream goes on")
}

async fn nothing(updates: &mut Updates) {
    let more = tokio::time::timeout(QUIET, updates.message()).await;
    assert!(more.is_err(), "nothing was to come: {more:?}");
}

async fn acknowledge(world: &World, update: &v1::RouteUpdate) -> u64 {
    world.client.acknowledge("sdn", update.number, vec![]).await.unwrap()
}

async fn turn(feed: &mut FeedSender<v1::TopologyItem>, link: &str, up: bool) {
    let change = v1::LinkChange { id: link.into(), up: Some(up), bits_per_s: None };
    feed.send(v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Link(change)) }).await.unwrap();
}

fn ends(update: &v1::RouteUpdate) -> Vec<(String, String)> {
    let pair = |route: &v1::Route| route.pair.clone().unwrap();
    update.routes.iter().map(pair).map(|pair| (pair.src, pair.dst)).collect()
}

/// `switch link` for each install, `switch -` for each removal.
fn rules(update: &v1::RouteUpdate) -> Vec<String> {
    let rule = |rule: &v1::RuleChange| match rule.action.as_ref().unwrap() {
        Action::Install(install) => format!("{} {}", rule.switch, install.link),
        Action::Remove(_) => format!("{} -", rule.switch),
    };
    update.rules.iter().map(rule).collect()
}

/// Two jobs talk, across racks and within one; both routes are installed and acknowledged.
async fn two_jobs(world: &World) -> (Updates, v1::Route) {
    let mut updates = world.client.watch(installer()).await.unwrap();
    let first = next(&mut updates).await;
    assert_eq!((first.number, first.snapshot, first.phase()), (1, true, v1::RoutePhase::Initial));
    assert_eq!((first.routes.len(), first.rules.len()), (0, 0));
    acknowledge(world, &first).await;
    let mut across = None;
    for (app, from, to) in [(1, "r0n0", "r1n0"), (2, "r0n0", "r0n1")] {
        let hints = world.hints(talk(app, from, to, MUCH)).await.hints.unwrap();
        assert_eq!(hints.routes.len(), 1, "{:?}", hints.routes);
        let update = next(&mut updates).await;
        assert_eq!(ends(&update), [(from.to_owned(), to.to_owned())]);
        assert_eq!(update.routes[0].links, hints.routes[0].links, "what the hint says is what is installed");
        assert!(hints.routes[0].installed && hints.routes[0].bytes == MUCH, "{:?}", hints.routes);
        acknowledge(world, &update).await;
        across.get_or_insert(update);
    }
    let across = across.unwrap();
    // The rule nearest to the receiver comes first; the sender's own link needs none.
    let route = across.routes[0].clone();
    let expected: Vec<String> =
        (1..route.links.len()).rev().map(|hop| format!("{} {}", route.vertices[hop], route.links[hop])).collect();
    assert_eq!(rules(&across), expected);
    nothing(&mut updates).await;
    (updates, route)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_link_moves_the_flows_on_it_at_once_and_its_return_takes_them_back_make_before_break() {
    let (world, mut feed, _beats) = wired(&[]).await;
    let (mut updates, route) = two_jobs(&world).await;
    let failed = route.links[1].clone();
    turn(&mut feed, &failed, false).await;
    let update = next(&mut updates).await;
    assert_eq!(
        (update.phase(), update.cause.as_str(), &update.subject),
        (v1::RoutePhase::Failover, "link_down", &failed)
    );
    assert_eq!(
        (ends(&update), update.untouched),
        (vec![("r0n0".to_owned(), "r1n0".to_owned())], 1),
        "only what is hit"
    );
    let moved = &update.routes[0];
    assert!(!moved.links.contains(&failed) && moved.vertices.len() == 5, "{moved:?}");
    let told = rules(&update);
    let removals = told.iter().position(|rule| rule.ends_with(" -")).expect("the old core's rule goes");
    assert!(told[removals..].iter().all(|rule| rule.ends_with(" -")), "installs first: {told:?}");
    assert_eq!(told[0], format!("{} {}", moved.vertices[2], moved.links[2]), "from the egress on: {told:?}");
    assert_eq!(acknowledge(&world, &update).await, 0);

    turn(&mut feed, &failed, true).await;
    let make = next(&mut updates).await;
    assert_eq!((make.phase(), make.cause.as_str()), (v1::RoutePhase::Make, "link_up"));
    assert_eq!(make.routes, [route], "it goes home");
    assert!(rules(&make).iter().all(|rule| !rule.ends_with(" -")), "old rules stay: {:?}", rules(&make));
    nothing(&mut updates).await;
    acknowledge(&world, &make).await;
    let broken = next(&mut updates).await;
    assert_eq!((broken.phase(), broken.routes.len()), (v1::RoutePhase::Break, 0));
    assert_eq!(rules(&broken).len(), 1, "the core that nothing uses any more: {:?}", rules(&broken));
    acknowledge(&world, &broken).await;
    let status = world.status().await;
    let flows = status.flows.unwrap();
    assert_eq!((flows.jobs, flows.installed, flows.default_forwarding, flows.cut), (2, 2, 0, 0));
    let watcher = &status.watchers[0];
    assert_eq!((watcher.name.as_str(), watcher.state.as_str(), watcher.routes), ("sdn", "current", 2), "{watcher:?}");
    assert_eq!((watcher.sent, watcher.acknowledged), (broken.number, broken.number));
}

#[tokio::test(flavor = "multi_thread")]
async fn small_flows_go_by_default_forwarding_and_a_pair_without_a_path_names_the_cut() {
    let (world, mut feed, _beats) = wired(&[]).await;
    let hints = world.hints(talk(1, "r0n0", "r1n0", 1_000)).await.hints.unwrap();
    assert!(!hints.routes[0].installed && hints.routes[0].links.len() == 4, "{:?}", hints.routes);
    for link in ["u10", "u11"] {
        turn(&mut feed, link, false).await;
    }
    world.until("both uplinks are down", |status| status.links_down == 2).await;
    let hints = world.hints(talk(2, "r0n0", "r1n0", MUCH)).await.hints.unwrap();
    let route = &hints.routes[0];
    assert!(route.vertices.is_empty() && !route.installed, "{route:?}");
    assert_eq!(route.cut, ["u10", "u11"], "what would lead on");
    world.until("it is counted", |status| status.flows.unwrap().cut == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_comes_back_gets_exactly_what_it_missed() {
    let (world, mut feed, _beats) = wired(&[]).await;
    let (updates, route) = two_jobs(&world).await;
    let (known, instance) = (3, world.status().await.instance_id);
    drop(updates);
    world.until("its stream is gone", |status| !status.watchers[0].attached).await;
    turn(&mut feed, &route.links[1], false).await;
    world.until("the link is down", |status| status.links_down == 1).await;
    let back = |after, instance: &str| v1::WatchRequest {
        resume_after: Some(after),
        instance_id: instance.to_owned(),
        ..installer()
    };
    let mut updates = world.client.watch(back(known, &instance)).await.unwrap();
    let missed = next(&mut updates).await;
    assert_eq!((missed.number, missed.snapshot, missed.cause.as_str()), (known + 1, false, "link_down"));
    assert_eq!(missed.instance_id, instance);
    nothing(&mut updates).await;
    acknowledge(&world, &missed).await;
    // Another life's numbers, and numbers that never were, are answered with everything.
    let mut updates = world.client.watch(back(known, "0123")).await.unwrap();
    let all = next(&mut updates).await;
    assert!(all.snapshot && all.routes.len() == 2 && all.number > missed.number, "{all:?}");
    let mut updates = world.client.watch(back(99, &instance)).await.unwrap();
    assert!(next(&mut updates).await.snapshot);
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_that_make_no_sense_are_refused_by_field() {
    let (world, _feed, _beats) = wired(&[]).await;
    let (_updates, _) = two_jobs(&world).await;
    let pair = |src: &str, dst: &str| Some(v1::HostPair { src: src.into(), dst: dst.into(), class: String::new() });
    let ack = async |watcher: &str, number, refused| refusal(world.client.acknowledge(watcher, number, refused).await);
    let (code, message) = ack("sdn", 3, vec![]).await;
    assert!(code == Code::InvalidArgument && message.contains("acknowledged already"), "{message}");
    let (code, message) = ack("sdn", 9, vec![]).await;
    assert!(code == Code::InvalidArgument && message.contains("was not sent"), "{message}");
    assert_eq!(ack("sdn", 0, vec![]).await.0, Code::InvalidArgument);
    let (code, message) = ack("stranger", 1, vec![]).await;
    assert!(code == Code::NotFound && message.contains("stranger"), "{message}");
    assert_eq!(ack("", 1, vec![]).await.0, Code::InvalidArgument);
    let nobody = v1::RouteRefusal { pair: None, reason: String::new() };
    assert!(ack("sdn", 3, vec![nobody]).await.1.contains("refused[0].pair"));
    // It makes room for a new number, and refuses a pair that it was never told of.
    world.hints(talk(3, "r0n1", "r1n0", MUCH)).await;
    world.until("it is sent", |status| status.watchers[0].sent == 4).await;
    let stranger = v1::RouteRefusal { pair: pair("r1n0", "r0n0"), reason: "no room".into() };
    assert_eq!(ack("sdn", 4, vec![stranger]).await.0, Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_can_not_be_installed_goes_by_default_forwarding_and_is_named() {
    let (world, _feed, _beats) = wired(&[]).await;
    let (mut updates, _) = two_jobs(&world).await;
    world.hints(talk(3, "r0n1", "r1n0", MUCH)).await;
    let update = next(&mut updates).await;
    let refused = v1::RouteRefusal { pair: update.routes[0].pair.clone(), reason: "table full".into() };
    world.client.acknowledge("sdn", update.number, vec![refused]).await.unwrap();
    let status = world.until("it is counted", |status| status.flows.unwrap().default_forwarding == 1).await;
    let watcher = &status.watchers[0];
    assert_eq!((watcher.refused_total, watcher.refused[0].reason.as_str()), (1, "table full"), "{watcher:?}");
    assert_eq!((watcher.refused[0].src.as_str(), watcher.refused[0].dst.as_str()), ("r0n1", "r1n0"));
    assert_eq!(status.counters["routes_refused"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_is_never_acknowledged_ends_in_silence_that_status_tells() {
    let (world, _feed, _beats) = wired(&[("routes", "ack_timeout = \"2s\""), ("routes", "ack_tries = 2")]).await;
    let (mut updates, _) = two_jobs(&world).await;
    world.hints(talk(3, "r0n1", "r1n0", MUCH)).await;
    let unheard = next(&mut updates).await;
    assert_eq!(world.status().await.watchers[0].state, "waiting");
    for number in [unheard.number + 1, unheard.number + 2] {
        let again = next(&mut updates).await;
        assert_eq!((again.number, again.snapshot, again.phase()), (number, true, v1::RoutePhase::Resync));
        assert_eq!(again.routes.len(), 3, "everything");
    }
    let ended = tokio::time::timeout(SOON, updates.message()).await.unwrap().unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    assert!(ended.message().contains("never acknowledged"), "{ended:?}");
    let status = world.until("it is silent", |status| status.watchers[0].state == "silent").await;
    let flows = status.flows.unwrap();
    assert_eq!((flows.installed, flows.default_forwarding), (0, 3), "default forwarding carries what it had");
    assert_eq!((status.counters["routes_resynced"], status.counters["watchers_silent"]), (2, 1));
    let mut updates = world.client.watch(installer()).await.unwrap();
    let anew = next(&mut updates).await;
    assert!(anew.snapshot && anew.routes.len() == 3, "{anew:?}");
    acknowledge(&world, &anew).await;
    world.until("it is back", |status| status.watchers[0].state == "current").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_can_watch_but_only_one_installs() {
    let (world, _feed, _beats) = wired(&[]).await;
    let (_updates, _) = two_jobs(&world).await;
    let other = |installs| v1::WatchRequest { watcher: "other".into(), installs, ..installer() };
    let (code, message) = refusal(world.client.watch(other(true)).await.map(drop));
    assert!(code == Code::InvalidArgument && message.contains("installs") && message.contains("sdn"), "{message}");
    let mut updates = world.client.watch(other(false)).await.unwrap();
    let seen = next(&mut updates).await;
    assert!(seen.snapshot && seen.routes.len() == 2 && seen.rules.is_empty(), "{seen:?}");
    world.until("it owes nothing", |status| status.watchers.iter().all(|watcher| watcher.state == "current")).await;
    let nothing = v1::WatchRequest { watcher: "other".into(), ..v1::WatchRequest::default() };
    assert_eq!(refusal(world.client.watch(nothing).await.map(drop)).0, Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_what_if_tells_what_would_move_and_changes_nothing() {
    let (world, _feed, _beats) = wired(&[]).await;
    let (mut updates, route) = two_jobs(&world).await;
    let before = world.status().await;
    let ask = async |links: &[&str], switches: &[&str]| {
        let request = v1::WhatIfNetworkRequest {
            drain_links: links.iter().map(|&name| name.to_owned()).collect(),
            drain_switches: switches.iter().map(|&name| name.to_owned()).collect(),
        };
        world.admin.clone().what_if_network(request).await.map(tonic::Response::into_inner)
    };
    let core = route.vertices[2].clone();
    let found = ask(&[], &[&core]).await.unwrap();
    assert_eq!((found.routes.len(), found.untouched, found.cut_off_hosts.len()), (1, 1, 0), "{found:?}");
    let moved = &found.routes[0];
    assert_eq!((&moved.old_vertices, moved.new_vertices.len()), (&route.vertices, 5), "{moved:?}");
    assert!(!moved.new_vertices.contains(&core) && found.utility_before > 0.0, "{found:?}");
    assert_eq!(found.applications[0].application_id, "application_1_0001");
    let found = ask(&["h10"], &[]).await.unwrap();
    assert_eq!(found.cut_off_hosts, ["r1n0"]);
    assert!(found.routes[0].new_vertices.is_empty() && found.routes[0].cut == ["h10"], "{found:?}");
    // The other job gets what this one leaves on the link they share.
    let after: Vec<f64> = found.applications.iter().map(|forecast| forecast.utility_after).collect();
    assert!(after[0] == 0.0 && after[1] > found.applications[1].utility_before, "{found:?}");
    let unknown = ask(&["u0"], &[]).await.unwrap_err();
    assert!(unknown.code() == Code::NotFound && unknown.message().contains("did you mean"), "{unknown:?}");
    assert_eq!(ask(&[], &["core"]).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(ask(&[], &[]).await.unwrap_err().code(), Code::InvalidArgument);
    nothing(&mut updates).await;
    let after = world.status().await;
    let of = |status: &v1::StatusResponse| {
        let sent: Vec<_> = status.watchers.iter().map(|watcher| (watcher.name.clone(), watcher.sent)).collect();
        (status.snapshot_version, status.links_down, status.leases, status.flows, sent)
    };
    assert_eq!(of(&before), of(&after), "nothing was touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_say_what_they_carry_for_whom_and_where_that_is_from() {
    let (world, mut feed, _beats) = wired(&[]).await;
    let (_updates, route) = two_jobs(&world).await;
    let links = async |request| world.admin.clone().links(request).await.map(tonic::Response::into_inner);
    let all = links(v1::LinksRequest::default()).await.unwrap();
    assert_eq!((all.total, all.links.len()), (7, 7));
    let up = all.links.iter().find(|link| link.id == route.links[1]).unwrap();
    assert_eq!((up.load_source(), up.a_to_b_task_pairs, up.b_to_a_task_pairs), (v1::LoadSource::Modelled, 1, 0));
    assert!(up.a_to_b_bits_per_s > 0 && up.b_to_a_bits_per_s == 0, "{up:?}");
    assert_eq!((up.users_total, up.users[0].application_id.as_str()), (1, "application_1_0001"));
    // Both jobs leave r0n0.
    let request = v1::LinksRequest { link: "h00".into(), users: 1, ..v1::LinksRequest::default() };
    let one = links(request).await.unwrap();
    assert_eq!((one.links.len(), one.links[0].users_total, one.links[0].users.len()), (1, 2, 1), "{one:?}");
    let mut counters: FeedSender<v1::LinkStatsItem> = world.client.feed(hello()).await.unwrap();
    let load = v1::LinkLoad { id: "h00".into(), a_to_b_bits_per_s: 5, b_to_a_bits_per_s: 7 };
    counters.send(v1::LinkStatsItem { number: 0, item: Some(v1::link_stats_item::Item::Load(load)) }).await.unwrap();
    counters.await_acknowledged().await.unwrap();
    let began = Instant::now();
    let measured = loop {
        let request = v1::LinksRequest { link: "h00".into(), ..v1::LinksRequest::default() };
        let found = links(request).await.unwrap().links.remove(0);
        if found.load_source() == v1::LoadSource::Measured {
            break found;
        }
        assert!(began.elapsed() < SOON, "{found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!((measured.a_to_b_bits_per_s, measured.b_to_a_bits_per_s), (5, 7));
    assert_eq!((measured.down_at_ms, measured.load_before), (0, None), "it is up");
    assert!(measured.fullness.unwrap().b_to_a_full && !measured.fullness.unwrap().a_to_b_full, "{measured:?}");
    assert_eq!((measured.load_source(), measured.users_total), (v1::LoadSource::Measured, 2));
    let request = v1::LinksRequest { link: "h09".into(), ..v1::LinksRequest::default() };
    let unknown = links(request).await.unwrap_err();
    assert!(unknown.code() == Code::NotFound && unknown.message().contains("did you mean \"h"), "{unknown:?}");
    // One that is down says since when and by whose word, in both answers.
    let is_down = |link: &v1::LinkView| link.down_ms.is_some() || !link.down_by.is_empty() || link.carried.is_some();
    assert!(!all.links.iter().any(is_down), "{all:?}");
    turn(&mut feed, "h00", false).await;
    let status = world.until("it is down", |status| status.links_down == 1).await;
    assert_eq!((status.down[0].id.as_str(), status.down[0].said_by.as_str()), ("h00", "test"), "{:?}", status.down);
    let down = links(v1::LinksRequest { down_only: true, ..v1::LinksRequest::default() }).await.unwrap();
    assert_eq!((down.links.len(), down.links[0].id.as_str(), down.links[0].down_by.as_str()), (1, "h00", "test"));
    assert!(down.links[0].down_ms.is_some(), "{down:?}");
    // When, and what was measured on it before.
    let before = down.links[0].load_before.map(|load| (load.a_to_b_bits_per_s, load.b_to_a_bits_per_s));
    assert_eq!((before, status.down[0].load_before), (Some((5, 7)), down.links[0].load_before));
    assert!(down.links[0].down_at_ms > 0 && down.links[0].down_at_ms == status.down[0].down_at_ms, "{down:?}");
    // Both jobs' routes went over it, the only link of their sender, and have no other path.
    let carried = down.links[0].carried.as_ref().expect("it was up before");
    assert_eq!((carried.routes, carried.routes_uncertain, carried.applications_total), (2, 0, 2), "{carried:?}");
    let of: Vec<_> = carried
        .applications
        .iter()
        .map(|of| (&*of.application_id, of.routes, of.routes_whole, of.routes_cut))
        .collect();
    assert_eq!(of, [("application_1_0001", 1, 0, 1), ("application_1_0002", 1, 0, 1)]);
    turn(&mut feed, "h00", true).await;
    world.until("it is up", |status| status.links_down == 0 && status.down.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_end_with_their_application() {
    let (world, _feed, _beats) = wired(&[]).await;
    let mut updates = world.client.watch(installer()).await.unwrap();
    acknowledge(&world, &next(&mut updates).await).await;
    let answer = world.hints(talk(1, "r0n0", "r1n0", MUCH)).await;
    let placed = next(&mut updates).await;
    acknowledge(&world, &placed).await;
    let mut follow = world.client.follow(crate::streams::follow_start(&answer, 0)).await.unwrap();
    let done = v1::TaskEvent {
        application_id: "application_1_0001".into(),
        attempt: 1,
        what: Some(v1::task_event::What::Done(v1::ApplicationDone { failed: false })),
        ..Default::default()
    };
    follow.tell(vec![done]).await.unwrap();
    let ended = next(&mut updates).await;
    assert_eq!((ended.removed.len(), ended.routes.len()), (1, 0), "{ended:?}");
    acknowledge(&world, &ended).await;
    world.until("no flow is left", |status| status.flows.unwrap() == v1::FlowCounts::default()).await;
}
