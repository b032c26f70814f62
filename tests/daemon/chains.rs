//! Middleboxes and chains: declared by configuration or feed, kept by hints and routes, through failures and reloads.

use crate::flows::{MUCH, Updates, next, talk, wired};
use crate::program::{Program, rewrite_config, write_config};
use crate::streams::{self, follow_start, two_ways};
use crate::world::{World, heartbeat, hello};
use hintd_client::wire::v1;
use hintd_client::{ClientError, FeedSender};
use tonic::Code;
use v1::topology_item::Item;

type Feed = FeedSender<v1::TopologyItem>;

/// A firewall at each core switch, an IPS at the far edge.
const BOXES: &str = "boxes = [{ name = \"fw-0\", type = \"FW\", at = \"c0\", bits_per_s = 1000000000 }, \
    { name = \"fw-1\", type = \"FW\", at = \"c1\", bits_per_s = 1000000000 }, \
    { name = \"ips\", type = \"IPS\", at = \"e1\", bits_per_s = 1000000000 }]";
/// What group `to` receives passes a firewall, then an IPS.
const INBOUND: &str =
    "chains = [{ name = \"inbound\", group = \"to\", direction = \"in\", sequence = [\"FW\", \"IPS\"] }]";
const GROUPS: &str = "groups = [\"from\", \"to\"]";
const CONFIGURED: [(&str, &str); 3] = [("chains", BOXES), ("chains", INBOUND), ("chains", GROUPS)];

fn item(item: Item) -> v1::TopologyItem {
    v1::TopologyItem { number: 0, item: Some(item) }
}

fn middlebox(name: &str, kind: &str, at: &str, bits_per_s: i64) -> v1::Middlebox {
    v1::Middlebox { name: name.into(), r#type: kind.into(), at: at.into(), bits_per_s, up: None }
}

fn chain(name: &str, sequence: &[&str]) -> v1::TrafficChain {
    v1::TrafficChain {
        name: name.into(),
        sequence: sequence.iter().map(|&kind| kind.to_owned()).collect(),
        ..v1::TrafficChain::default()
    }
}

/// As [`CONFIGURED`], off a feed.
fn declared() -> v1::ChainsDeclaration {
    let inbound =
        v1::TrafficChain { group: Some("to".into()), direction: "in".into(), ..chain("inbound", &["FW", "IPS"]) };
    v1::ChainsDeclaration {
        groups: vec!["from".into(), "to".into()],
        boxes: vec![
            middlebox("fw-0", "FW", "c0", 1_000_000_000),
            middlebox("fw-1", "FW", "c1", 1_000_000_000),
            middlebox("ips", "IPS", "e1", 1_000_000_000),
        ],
        chains: vec![inbound],
    }
}

/// The refusal of the one item sent, reason and words.
async fn refused(feed: &mut Feed, what: Item) -> (String, String) {
    feed.send(item(what)).await.unwrap();
    let refused = feed.await_acknowledged().await.unwrap().refused;
    assert_eq!(refused.len(), 1, "{refused:?}");
    (refused[0].reason.clone(), refused[0].message.clone())
}

async fn taken(feed: &mut Feed, what: Item) {
    feed.send(item(what)).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    assert!(ack.refused.is_empty(), "{ack:?}");
}

fn turn(name: &str, up: bool) -> Item {
    Item::Middlebox(v1::MiddleboxChange { name: name.into(), up: Some(up), bits_per_s: None })
}

fn boxes(stops: &[v1::BoxStop]) -> Vec<&str> {
    stops.iter().map(|stop| stop.r#box.as_str()).collect()
}

/// The routes of an update that are under a chain.
fn under(update: &v1::RouteUpdate) -> Vec<&v1::Route> {
    update.routes.iter().filter(|route| !route.pair.as_ref().unwrap().class.is_empty()).collect()
}

async fn watch(world: &World) -> Updates {
    let request = v1::WatchRequest { watcher: "w".into(), flows: true, ..v1::WatchRequest::default() };
    let mut updates = world.client.watch(request).await.unwrap();
    assert!(next(&mut updates).await.snapshot);
    updates
}

async fn chains(world: &World) -> v1::ChainsResponse {
    world.admin.clone().chains(v1::ChainsRequest {}).await.unwrap().into_inner()
}

async fn until(world: &World, what: &str, wanted: impl Fn(&v1::ChainsResponse) -> bool) {
    for _ in 0..6_000 {
        if wanted(&chains(world).await) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("not in time: {what}; {:?}", chains(world).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_and_routes_pass_the_boxes_that_the_configuration_asks_for_in_order() {
    let (world, _feed, _beats) = wired(&CONFIGURED).await;
    for (app, policy) in (1..).zip(["spread", "hit", "pat", "container"]) {
        let request = v1::RequestHintsRequest { policy: policy.into(), ..talk(app, "r0n0", "r1n0", MUCH) };
        let hints = world.hints(request).await.hints.unwrap();
        let routes = &hints.routes;
        assert_eq!(routes.len(), 1, "{policy}: {routes:?}");
        let path = routes[0].chain.as_ref().expect(policy);
        assert_eq!((path.name.as_str(), path.stops.len()), ("inbound", 2), "{policy}: {path:?}");
        let kinds: Vec<&str> = path.stops.iter().map(|stop| stop.r#type.as_str()).collect();
        assert_eq!(kinds, ["FW", "IPS"], "{policy}");
        assert_eq!(path.cost, Some(path.rate_bits_per_s * routes[0].links.len() as u64), "{policy}");
        let scope = v1::WatchRequest { watcher: policy.into(), flows: true, ..v1::WatchRequest::default() };
        let update = next(&mut world.client.watch(scope).await.unwrap()).await;
        let told = under(&update);
        assert_eq!((told.len(), update.rules.len()), (1, 0), "{policy}: {update:?}");
        assert_eq!(boxes(&told[0].stops), boxes(&path.stops), "{policy}");
        let at = |stop: &v1::BoxStop| told[0].vertices[stop.after as usize].clone();
        assert_eq!(at(&told[0].stops[0]), told[0].stops[0].at, "{policy}: the route is at the box where it enters it");
        assert_eq!(at(&told[0].stops[1]), "e1", "{policy}");
        let answer = world.client.explain(&hints.decision_id).await.unwrap().decision.unwrap();
        assert_eq!(answer.routes, hints.routes, "{policy}: explain has the path box by box");
    }
    let used = |live: &v1::ChainsResponse| {
        live.boxes.iter().filter(|known| known.r#type == "IPS").map(|known| known.used_bits_per_s).sum::<u64>()
    };
    until(&world, "what four jobs send is reserved of the box", |live| used(live) == 4 * MUCH * 8 / 60).await;
    let live = chains(&world).await;
    assert_eq!((live.declared_by.as_str(), live.network_known, live.unmet.len()), ("configuration", true, 0));
    assert_eq!((live.chains[0].flows, live.chains[0].broken), (1, 0), "one pair under one chain is one flow: {live:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_that_dies_is_passed_by_through_another_and_without_one_traffic_stands_still_and_says_so() {
    let (world, mut feed, _beats) = wired(&CONFIGURED).await;
    let mut updates = watch(&world).await;
    world.hints(talk(1, "r0n0", "r1n0", MUCH)).await;
    let first = next(&mut updates).await;
    let [dies, lives] = if boxes(&under(&first)[0].stops)[0] == "fw-0" { ["fw-0", "fw-1"] } else { ["fw-1", "fw-0"] };
    taken(&mut feed, turn(dies, false)).await;
    let update = next(&mut updates).await;
    assert_eq!(
        (update.cause.as_str(), update.subject.as_str(), update.phase()),
        ("box_down", dies, v1::RoutePhase::Failover)
    );
    assert_eq!(boxes(&under(&update)[0].stops), [lives, "ips"]);
    taken(&mut feed, turn(lives, false)).await;
    let update = next(&mut updates).await;
    let told = under(&update);
    assert_eq!((told[0].vertices.len(), told[0].stops.len()), (0, 0), "no way is left: {update:?}");
    // Who watches is told before it is published: until then requests do not see it.
    until(&world, "traffic stands still", |live| (live.chains[0].broken, live.unmet.len()) == (1, 1)).await;
    assert_eq!(world.counter("chains_broken").await, 1);
    let live = chains(&world).await;
    let unmet = &live.unmet[0];
    assert_eq!((unmet.r#type.as_str(), unmet.reason.as_str(), unmet.between.len()), ("FW", "down", 2));
    for policy in ["spread", "hit", "pat"] {
        let request = v1::RequestHintsRequest { policy: policy.into(), ..talk(7, "r0n0", "r1n0", MUCH) };
        let (code, message) = world.refused(request.clone()).await;
        assert_eq!(code, Code::FailedPrecondition, "{policy}: {message}");
        assert!(message.contains("chain \"inbound\""), "{policy}: {message}");
        let ClientError::Refused { why, .. } =
            world.client.request_hints(request, crate::world::SOON).await.unwrap_err()
        else {
            panic!("{policy}: it is refused");
        };
        let why = why.unwrap();
        assert_eq!((why.reason.as_str(), why.chain.as_str()), ("chain_broken", "inbound"), "{policy}");
    }
    taken(&mut feed, turn(dies, true)).await;
    let update = next(&mut updates).await;
    assert_eq!(boxes(&under(&update)[0].stops), [dies, "ips"], "a way is taken as soon as there is one: {update:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_link_moves_a_chain_to_another_box_and_a_dead_switch_takes_its_boxes_along() {
    let (world, mut feed, _beats) = wired(&CONFIGURED).await;
    let mut updates = watch(&world).await;
    world.hints(talk(1, "r0n0", "r1n0", MUCH)).await;
    let first = boxes(&under(&next(&mut updates).await)[0].stops)[0].to_owned();
    let core = if first == "fw-0" { "c0" } else { "c1" };
    let other = if first == "fw-0" { "fw-1" } else { "fw-0" };
    taken(&mut feed, Item::Switch(v1::SwitchChange { name: core.into(), up: false })).await;
    let update = next(&mut updates).await;
    assert_eq!(boxes(&under(&update)[0].stops), [other, "ips"], "{update:?}");
    let state = |live: &v1::ChainsResponse| live.boxes.iter().find(|known| known.name == first).unwrap().state.clone();
    until(&world, "its switch is down", |live| state(live) == "switch_down").await;
    let link = if other == "fw-0" { "u10" } else { "u11" };
    let down = v1::LinkChange { id: link.into(), up: Some(false), bits_per_s: None };
    taken(&mut feed, Item::Link(down)).await;
    let update = next(&mut updates).await;
    assert!(under(&update)[0].vertices.is_empty(), "{update:?}");
    let cut = |unmet: &v1::UnmetView| unmet.reason == "cut" && unmet.between.contains(&link.to_owned());
    until(&world, "it is cut", |live| live.unmet.iter().any(cut)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_box_carries_more_than_it_can_and_what_would_be_too_much_is_refused_by_its_chain() {
    let boxes = "boxes = [{ name = \"fw\", type = \"FW\", at = \"c0\", bits_per_s = 20000000 }]";
    let chains_of = "chains = [{ name = \"narrow\", group = \"to\", sequence = [\"FW\"] }]";
    let (world, mut feed, _beats) = wired(&[("chains", boxes), ("chains", chains_of), ("chains", GROUPS)]).await;
    // 100 MiB in a minute are 14 Mbit/s.
    world.hints(talk(1, "r0n0", "r1n0", MUCH)).await;
    let (code, message) = {
        let found = world.client.request_hints(talk(2, "r0n1", "r1n0", MUCH), crate::world::SOON).await;
        crate::world::refusal(found)
    };
    assert_eq!(code, Code::FailedPrecondition, "{message}");
    assert!(message.contains("chain \"narrow\""), "{message}");
    let more = v1::MiddleboxChange { name: "fw".into(), up: None, bits_per_s: Some(40_000_000) };
    taken(&mut feed, Item::Middlebox(more)).await;
    until(&world, "it carries more", |live| live.boxes[0].bits_per_s == 40_000_000).await;
    world.hints(talk(2, "r0n1", "r1n0", MUCH)).await;
    let less = v1::MiddleboxChange { name: "fw".into(), up: None, bits_per_s: Some(15_000_000) };
    taken(&mut feed, Item::Middlebox(less)).await;
    until(&world, "one of two stands still", |live| (live.chains[0].flows, live.chains[0].broken) == (2, 1)).await;
    assert!(chains(&world).await.boxes[0].used_bits_per_s <= 15_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_declares_chains_and_every_wrong_declaration_is_named_and_changes_nothing() {
    let (world, mut feed, _beats) = wired(&[]).await;
    taken(&mut feed, Item::Chains(declared())).await;
    until(&world, "they are declared", |live| live.declared_by == "feed").await;
    let before = chains(&world).await;
    type Wrong = fn(&mut v1::ChainsDeclaration);
    let cases: [(&str, Wrong, &str); 12] = [
        (
            "an unknown type",
            |d| d.chains[0].sequence = vec!["FV".into()],
            "passes type \"FV\", which no middlebox is of",
        ),
        ("an unknown group", |d| d.chains[0].group = Some("too".into()), "names group \"too\", which is not declared"),
        ("an empty sequence", |d| d.chains[0].sequence.clear(), "chain \"inbound\" has an empty sequence"),
        ("a box on nothing", |d| d.boxes[0].at = String::new(), "middlebox \"fw-0\" hangs on \"\""),
        (
            "a box on nothing known",
            |d| d.boxes[0].at = "c9".into(),
            "middlebox \"fw-0\" hangs on \"c9\", which the network does not know",
        ),
        ("a box on a host", |d| d.boxes[0].at = "r0n0".into(), "hangs on \"r0n0\", which is no packet switch"),
        ("no capacity", |d| d.boxes[0].bits_per_s = 0, "middlebox \"fw-0\" has capacity 0 bit/s"),
        ("less than none", |d| d.boxes[0].bits_per_s = -1, "middlebox \"fw-0\" has capacity -1 bit/s"),
        (
            "two that contradict",
            |d| d.chains.push(chain("other", &["IPS"])),
            "chains \"inbound\" and \"other\" contradict each other",
        ),
        ("a type twice", |d| d.chains[0].sequence.push("FW".into()), "passes type \"FW\" twice"),
        ("a chain twice", |d| d.chains.push(d.chains[0].clone()), "chain \"inbound\" is given twice"),
        (
            "ports reversed",
            |d| (d.chains[0].first_port, d.chains[0].last_port) = (Some(9), Some(8)),
            "has ports from 9 to 8",
        ),
    ];
    for (what, spoil, words) in cases {
        let mut wrong = declared();
        spoil(&mut wrong);
        let (reason, message) = refused(&mut feed, Item::Chains(wrong)).await;
        assert_eq!(reason, "bad_chains", "{what}: {message}");
        assert!(message.contains(words), "{what}: {message}");
        assert_eq!(chains(&world).await, before, "{what}: nothing is half applied");
    }
    let wrong = v1::ChainsDeclaration {
        chains: vec![v1::TrafficChain { direction: "up".into(), ..chain("a", &["FW"]) }],
        ..declared()
    };
    let (reason, message) = refused(&mut feed, Item::Chains(wrong)).await;
    assert_eq!(reason, "malformed", "{message}");
    let (reason, message) = refused(&mut feed, turn("fw-9", false)).await;
    assert_eq!(reason, "unknown_box", "{message}");
    let none = v1::MiddleboxChange { name: "fw-0".into(), up: None, bits_per_s: Some(0) };
    assert_eq!(refused(&mut feed, Item::Middlebox(none)).await.0, "zero");
    // An island of its own, where the IPS is: with everything up no path leads there.
    let Some(Item::Full(mut islands)) = two_ways().item else { panic!("it is a whole network") };
    islands.switches.push(v1::NetworkSwitch { name: "island".into(), tier: "edge".into() });
    taken(&mut feed, Item::Full(islands)).await;
    let mut wrong = declared();
    wrong.boxes[2].at = "island".into();
    let (reason, message) = refused(&mut feed, Item::Chains(wrong)).await;
    assert_eq!(reason, "bad_chains");
    assert!(message.contains("no path leads through the sequence of chain \"inbound\""), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_flows_use_is_not_taken_away_and_goes_when_they_have_ended() {
    let (world, mut feed, _beats) = wired(&[("routes", "keep_flows = \"0s\"")]).await;
    taken(&mut feed, Item::Chains(declared())).await;
    until(&world, "they are declared", |live| live.declared_by == "feed").await;
    let answer = world.hints(talk(1, "r0n0", "r1n0", MUCH)).await;
    until(&world, "a flow is there", |live| live.chains[0].flows == 1).await;
    let (reason, message) = refused(&mut feed, Item::Chains(v1::ChainsDeclaration::default())).await;
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("bad_chains", "chain \"inbound\" is used by 1 flows: end them or keep it")
    );
    let mut fewer = declared();
    fewer.boxes.remove(0); // the chain stays, its firewall may go
    taken(&mut feed, Item::Chains(fewer)).await;
    until(&world, "another firewall serves", |live| live.boxes.len() == 2 && live.chains[0].broken == 0).await;
    let release = v1::ReleaseRequest {
        application_id: "application_1_0001".into(),
        attempt: 1,
        token: answer.token.clone(),
        lease_ids: vec![],
        nonce: Vec::new(),
    };
    world.client.release(release).await.unwrap();
    until(&world, "the flow has ended", |live| live.chains[0].flows == 0).await;
    taken(&mut feed, Item::Chains(v1::ChainsDeclaration::default())).await;
    until(&world, "there are none", |live| live.declared_by.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_configuration_declares_no_feed_declares_but_feeds_tell_how_boxes_are() {
    let (world, mut feed, _beats) = wired(&CONFIGURED).await;
    let (reason, message) = refused(&mut feed, Item::Chains(declared())).await;
    assert_eq!(reason, "not_owner", "{message}");
    taken(&mut feed, turn("fw-0", false)).await;
    until(&world, "the box is down", |live| live.boxes[0].state == "down").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_a_chain_that_fails_closed_can_not_be_promised() {
    let world = World::with(&CONFIGURED).await;
    let _beats = world.cluster(2, 2, 32_768).await;
    let (code, message) = world.refused(talk(1, "r0n0", "r1n0", MUCH)).await;
    assert_eq!(code, Code::FailedPrecondition);
    assert!(message.contains("feed topology is missing") && message.contains("chain \"inbound\""), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_swaps_all_chains_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let program = Program::start(folder.path(), port).await;
    let mut feed: Feed = program.client.feed(hello()).await.unwrap();
    let Some(Item::Full(mut network)) = two_ways().item else { panic!("it is a whole network") };
    network.hosts[2].name = "r0n2".into();
    network.links[2].a = "r0n2".into();
    taken(&mut feed, Item::Full(network)).await;
    let admin = || program.admin.clone();
    let live = async || admin().chains(v1::ChainsRequest {}).await.unwrap().into_inner();
    let sequence = |kinds: &str| format!("chains = [{{ name = \"inbound\", group = \"to\", sequence = [{kinds}] }}]");
    let reload = async |boxes: &str, kinds: &str| {
        let chains = sequence(kinds);
        rewrite_config(folder.path(), port, &[("chains", GROUPS), ("chains", boxes), ("chains", &chains)]);
        admin().reload(v1::ReloadRequest {}).await
    };
    reload(BOXES, "\"FW\", \"IPS\"").await.unwrap();
    let before = live().await;
    assert_eq!((before.boxes.len(), before.chains[0].sequence.len()), (3, 2));
    // Wrong by itself; and only on this network, which the file's reader does not know.
    let off = BOXES.replace("\"c1\"", "\"c9\"");
    for (boxes, kinds, words) in
        [(BOXES, "\"FV\"", "which no middlebox is of"), (off.as_str(), "\"FW\"", "middlebox \"fw-1\" hangs on \"c9\"")]
    {
        let error = reload(boxes, kinds).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(words), "{error:?}");
        assert_eq!(live().await, before, "a wrong reload changes nothing");
    }
    let lead = v1::RequestHintsRequest {
        constraints: Some(v1::Constraints {
            avoid_hosts: (3..crate::program::NODES).map(|node| format!("r0n{node}")).collect(),
            ..v1::Constraints::default()
        }),
        ..talk(1, "r0n0", "r1n0", MUCH)
    };
    let mut request = lead;
    request.groups.iter_mut().for_each(|group| group.constraints = None);
    program.client.request_hints(request, crate::world::SOON).await.unwrap();
    rewrite_config(folder.path(), port, &[]);
    let error = admin().reload(v1::ReloadRequest {}).await.unwrap_err();
    assert!(error.message().contains("chain \"inbound\" is used by 1 flows"), "{error:?}");
    let after = live().await;
    assert_eq!((after.chains[0].flows, after.boxes.len()), (1, 3), "{after:?}");
    reload(BOXES, "\"FW\"").await.unwrap();
    assert_eq!(live().await.chains[0].sequence, ["FW"], "a chain in use may change, and its flows with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_beside_a_dead_box_are_proposed_to_move_once_and_their_application_hears_of_a_broken_chain() {
    let boxes = "boxes = [{ name = \"near\", type = \"FW\", at = \"e0\", bits_per_s = 1000000000 }, \
        { name = \"far\", type = \"FW\", at = \"e1\", bits_per_s = 1000000000 }]";
    let inbound = "chains = [{ name = \"inbound\", group = \"to\", direction = \"in\", sequence = [\"FW\"] }]";
    let rebalance = "enabled = true\nevery = \"100ms\"\nmin_gain = 0.2\ncool_down = \"1h\"";
    let extra = [("chains", boxes), ("chains", inbound), ("chains", GROUPS), ("rebalance", rebalance)];
    let (world, mut feed, mut beats) = wired(&extra).await;
    let mut request = talk(1, "r0n0", "r0n1", MUCH);
    request.policy = "pat".into();
    request.groups.iter_mut().for_each(|group| group.constraints = None);
    request.constraints = Some(v1::Constraints { avoid_hosts: vec!["r1n1".into()], ..v1::Constraints::default() });
    let answer = world.hints(request).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    for (host, priority) in [("r0n0", 1), ("r0n1", 2)] {
        let id = format!("container_1_0001_01_00000{priority}");
        let mut beat = heartbeat(host, 2, 1_024, vec![(id, 1_024)]);
        if let Some(v1::heartbeat_item::Item::Heartbeat(beat)) = &mut beat.item {
            beat.containers[0].priority = priority;
        }
        beats.send(beat).await.unwrap();
    }
    assert!(beats.await_acknowledged().await.unwrap().refused.is_empty());
    let rounds = async |more: u64| {
        let known = |status: &v1::StatusResponse| status.counters.get("rebalance_rounds").copied().unwrap_or(0);
        let until = known(&world.status().await) + more;
        world.until("rounds pass", |status| known(status) >= until).await
    };
    let status = rounds(2).await;
    assert_eq!(status.counters.get("moves_proposed"), None, "all is well as it is");
    taken(&mut feed, turn("near", false)).await;
    let mut movers = Vec::new();
    for _ in 0..2 {
        let told = streams::next(&mut follow).await;
        let Some(v1::follow_message::Advice::Move(step)) = told.advice else { panic!("{told:?}") };
        assert_eq!((told.cause.as_str(), step.to_host.as_str(), step.chain.as_str()), ("rebalance", "r1n0", "inbound"));
        assert!(step.gain >= 0.2 && step.gain <= 1.0, "{step:?}");
        movers.push(step.container_id);
    }
    movers.sort_unstable();
    assert!(movers[0].ends_with("_000001") && movers[1].ends_with("_000002"), "{movers:?}");
    let status = rounds(3).await;
    assert_eq!(status.counters["moves_proposed"], 2, "no container is named again before it has cooled down");
    taken(&mut feed, turn("far", false)).await;
    let told = streams::next(&mut follow).await;
    let broken = v1::follow_message::Advice::Chain(v1::ChainState { chain: "inbound".into(), pairs: 1 });
    assert_eq!((told.cause.as_str(), told.advice), ("chain_broken", Some(broken)), "and no other move came between");
    taken(&mut feed, turn("far", true)).await;
    let told = streams::next(&mut follow).await;
    let again = v1::follow_message::Advice::Chain(v1::ChainState { chain: "inbound".into(), pairs: 0 });
    assert_eq!((told.cause.as_str(), told.advice), ("chain_restored", Some(again)));
}
