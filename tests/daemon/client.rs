//! The client library against a daemon that is not there, breaks off, is slow, overloaded, or started anew.

use crate::program::free_port;
use crate::streams::follow_start;
use crate::world::{SOON, World, heartbeat, hello, leased, register, request};
use hintd_client::wire::v1;
use hintd_client::{Advice, BreakerOptions, Cause, Client, ClientError, ClientOptions, SteadyFeed, Unhinted};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::{Code, Status};
use v1::follow_message::Advice as WireAdvice;

/// Long enough for any answer of a daemon that is there, short enough to be waited for in vain.
const BRIEF: Duration = Duration::from_millis(200);

/// As long as a client leaves a daemon alone after failures; no two steps of a test are further apart on a busy machine.
const REST: Duration = Duration::from_secs(2);

/// A daemon on this port, that keeps it over restarts.
async fn on_port(port: u16) -> World {
    let line = format!("grpc = \"127.0.0.1:{port}\"");
    World::with(&[("listen", &line)]).await
}

fn lazy(port: u16) -> Client {
    lazy_resting(port, Duration::from_millis(50))
}

fn lazy_resting(port: u16, rest: Duration) -> Client {
    let breaker = BreakerOptions { failures: 2, rest, rest_max: rest };
    Client::lazy_with(&format!("127.0.0.1:{port}"), &ClientOptions { breaker, ..crate::world::known() }).unwrap()
}

/// Advice that is there before a clock that began with it has come to a quarter of [`SOON`]: both stand still on a machine
/// that does.
async fn soon(advice: impl Future<Output = Advice>) -> Advice {
    tokio::select! {
        biased;
        advice = advice => advice,
        () = tokio::time::sleep(SOON / 4) => panic!("it waits for longer than it was to"),
    }
}

fn unhinted(advice: Advice) -> Unhinted {
    match advice {
        Advice::Unhinted(unhinted) => unhinted,
        Advice::Hinted(hinted) => panic!("hinted: {hinted:?}"),
    }
}

fn hinted(advice: Advice) -> v1::RequestHintsResponse {
    match advice {
        Advice::Hinted(hinted) => {
            v1::RequestHintsResponse { hints: Some(hinted.hints), token: hinted.token, ..Default::default() }
        }
        Advice::Unhinted(unhinted) => panic!("{unhinted}"),
    }
}

/// A wire between client and daemon that can hold answers back, and break.
struct Wire {
    port: u16,
    /// How often it broke, and whether it holds answers back.
    state: watch::Sender<(u64, bool)>,
}

impl Wire {
    async fn to(daemon: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = watch::Sender::new((0, false));
        let states = state.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(daemon).await.unwrap();
                tokio::spawn(carry(client, server, states.clone()));
            }
        });
        Self { port, state }
    }

    fn hold(&self) {
        self.state.send_modify(|(_, hold)| *hold = true);
    }

    /// Breaks every connection; those made afterwards stand.
    fn cut(&self) {
        self.state.send_modify(|(cuts, hold)| (*cuts, *hold) = (*cuts + 1, false));
    }
}

async fn carry(client: TcpStream, server: TcpStream, mut state: watch::Receiver<(u64, bool)>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (born, _) = *state.borrow();
    let mut held = state.clone();
    let down = async {
        let mut bytes = vec![0; 65_536];
        while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
            if held.wait_for(|(cuts, hold)| !hold && *cuts == born).await.is_err() {
                return;
            }
            to_client.write_all(&bytes[..read]).await.unwrap_or_default();
        }
    };
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        () = down => {}
        _ = state.wait_for(|(cuts, _)| *cuts > born) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_daemon_there_are_default_asks_in_time_then_at_once_and_hints_when_it_comes() {
    let port = free_port();
    let client = lazy_resting(port, REST);
    for _ in 0..2 {
        let none = unhinted(soon(client.hints_or_none(request("r1", 1, 3, 1_024), 10 * BRIEF)).await);
        assert_eq!((none.because, none.asked), (Cause::Unreachable, true), "{none}");
        assert!(none.message.contains("refused"), "{none}");
        assert_eq!((none.asks[0].resource_name(), none.asks[0].num_containers()), ("*", 3));
    }
    let none = unhinted(client.hints_or_none(request("r1", 1, 3, 1_024), SOON).await);
    assert_eq!((none.because, none.asked), (Cause::Unreachable, false), "it is left alone now: {none}");
    assert_eq!(none.asks.len(), 1);
    let world = on_port(port).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let began = Instant::now();
    loop {
        let advice = client.hints_or_none(request("r1", 1, 3, 1_024), SOON).await;
        match advice {
            Advice::Hinted(hinted) => break assert!(!hinted.hints.asks.is_empty(), "a table for YARN as well"),
            Advice::Unhinted(none) => assert!(!none.asked && began.elapsed() < SOON, "{none}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.status().await.leases, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_connection_breaks_before_the_answer_is_answered_once() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let wire = Wire::to(world.running().grpc).await;
    let client = lazy(wire.port);
    hinted(client.hints_or_none(request("first", 1, 1, 1_024), SOON).await);
    wire.hold();
    let asked = tokio::spawn({
        let client = client.clone();
        async move { client.hints_or_none(request("second", 1, 2, 1_024), SOON).await }
    });
    world.until("the daemon has answered", |status| status.leases == 3).await;
    wire.cut();
    let answer = hinted(asked.await.unwrap());
    assert_eq!(leased(&answer).values().map(Vec::len).sum::<usize>(), 2);
    assert_eq!(world.counter("leases_granted").await, 3, "the second try leased nothing more");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_in_time_is_none() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let wire = Wire::to(world.running().grpc).await;
    let client = lazy(wire.port);
    hinted(client.hints_or_none(request("r0", 1, 1, 1_024), SOON).await); // the connection stands
    wire.hold();
    let began = Instant::now();
    let none = unhinted(soon(client.hints_or_none(request("r1", 1, 1, 1_024), BRIEF)).await);
    assert_eq!((none.because, none.asked), (Cause::Deadline, true), "{none}");
    assert!(began.elapsed() >= BRIEF, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_daemon_is_asked_again_in_vain_and_counts_as_there() {
    let world = World::with(&[("limits", "leases = 1")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let client = lazy(world.running().grpc.port());
    for _ in 0..3 {
        let none = unhinted(soon(client.hints_or_none(request("r1", 1, 2, 1_024), 10 * BRIEF)).await);
        assert_eq!((none.because, none.asked), (Cause::Overload, true), "{none}");
        assert!(none.message.contains("limits.leases"), "in the daemon's words: {none}");
    }
    hinted(client.hints_or_none(request("r2", 1, 1, 1_024), SOON).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_with_code_and_field_and_is_not_repeated() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let client = lazy(world.running().grpc.port());
    hinted(client.hints_or_none(request("r1", 1, 1, 1_024), SOON).await);
    let reused = unhinted(client.hints_or_none(request("r1", 1, 2, 1_024), SOON).await);
    assert_eq!((reused.because, reused.code), (Cause::Refused, Some(Code::AlreadyExists)), "{reused}");
    let mut wrong = request("r2", 1, 1, 1_024);
    wrong.groups[0].count = 0;
    let wrong = unhinted(client.hints_or_none(wrong, SOON).await);
    assert_eq!((wrong.code, wrong.field.as_deref()), (Some(Code::InvalidArgument), Some("groups[0].count")));
    let unnamed = hinted(client.hints_or_none(request("", 1, 1, 1_024), SOON).await);
    assert!(unnamed.hints.unwrap().request_id.starts_with("application_1_0001-"), "it got an id");
}

/// Asks by `client` until `stop`, one request after another; every one is to be answered, however late on a busy machine.
async fn ask_on(client: Client, app: u32, stop: watch::Receiver<bool>, told: watch::Sender<u32>) {
    let mut answered = 0;
    while !*stop.borrow() {
        let asked = client.request_hints(request(&format!("a{app}r{answered}"), app, 1, 1_024), 2 * SOON).await;
        match asked {
            Ok(_) => {
                answered += 1;
                told.send_replace(answered);
            }
            // The nodes have not told the new life of the daemon yet that they are there.
            Err(ClientError::Refused { code: Code::FailedPrecondition, .. }) => tokio::time::sleep(BRIEF / 10).await,
            Err(error) => panic!("request {answered} of application {app}: {error}"),
        }
    }
}

/// Waits until each of them has had one more answer.
async fn one_more_each(answered: &mut [watch::Receiver<u32>]) {
    for answered in answered {
        let before = *answered.borrow();
        let more = answered.wait_for(|answered| *answered > before);
        tokio::time::timeout(2 * SOON, more).await.expect("it goes on").expect("it asks on");
    }
}

/// Asks until it is refused, all the time: that refusal, and whether no two rounds were as far apart as a connection may be
/// quiet before it is closed (100 ms).
async fn refused_at_last(mut raw: v1::placement_client::PlacementClient<tonic::transport::Channel>) -> (Status, bool) {
    let (mut before, mut steadily) = (Instant::now(), true);
    loop {
        let began = Instant::now();
        let explain =
            v1::ExplainRequest { decision_id: "0000000000000001".into(), token: String::new(), nonce: Vec::new() };
        raw.explain(explain).await.unwrap_err(); // other calls go on, and say that somebody is there
        let asked = raw.request_hints(request("r1", 1, 1, 1_024)).await;
        steadily &= before.elapsed() < Duration::from_millis(100);
        if let Err(status) = asked {
            return (status, steadily);
        }
        before = began;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_all_the_time_hears_in_the_daemons_words_that_it_stops() {
    for _ in 0..20 {
        let mut world = World::start().await;
        let _feed = world.cluster(1, 2, 8_192).await;
        let address = format!("http://{}", world.running().grpc);
        let raw = v1::placement_client::PlacementClient::connect(address).await.unwrap();
        let asking = tokio::spawn(refused_at_last(raw));
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.stop().await;
        let (status, steadily) = asking.await.unwrap();
        if (status.code(), status.message()) == (Code::Unavailable, "the daemon is shutting down") {
            assert!(status.metadata().contains_key("retry-after-ms"), "{status:?}");
            return;
        }
        assert!(!steadily, "it asked all the time, and hears {status:?}");
    }
    panic!("a machine that halts all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_restarts_in_order_every_request_is_answered() {
    let mut world = on_port(free_port()).await;
    let (stop, stopped) = watch::channel(false);
    let feed = world.cluster(1, 2, 1 << 20).await;
    let (mut clients, mut answered) = (Vec::new(), Vec::new());
    for app in 1..=6 {
        let (tell, told) = watch::channel(0);
        let client = lazy(world.running().grpc.port());
        clients.push(tokio::spawn(ask_on(client, app, stopped.clone(), tell)));
        answered.push(told);
    }
    one_more_each(&mut answered).await;
    drop(feed);
    for _ in 0..2 {
        world.restart().await;
        let _feed = world.cluster(1, 2, 1 << 20).await;
        one_more_each(&mut answered).await;
    }
    stop.send(true).unwrap();
    for client in clients {
        client.await.unwrap();
    }
}

/// Two nodes, idle, as their feed tells them in full.
async fn nodes(client: &Client) -> SteadyFeed<v1::HeartbeatItem> {
    let full = || {
        let node = |host: &str| [register(host, "/rack0", 8_192), heartbeat(host, 1, 0, vec![])];
        ["r0n0", "r0n1"].into_iter().flat_map(node).collect()
    };
    client.steady_feed(hello(), Box::new(full), SOON).await.unwrap()
}

/// Keeps a feed up until the world has its two nodes.
async fn kept_up(feed: &mut SteadyFeed<v1::HeartbeatItem>, world: &World) {
    let began = Instant::now();
    while world.status().await.nodes_usable < 2 {
        feed.keep_up().await.unwrap();
        assert!(began.elapsed() < SOON);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_tells_a_new_life_of_the_daemon_everything_and_the_same_life_nothing_twice() {
    let mut world = on_port(free_port()).await;
    let wire = Wire::to(world.running().grpc).await;
    let client = lazy(wire.port);
    let mut feed = nodes(&client).await;
    kept_up(&mut feed, &world).await;
    feed.await_acknowledged().await.unwrap();
    let broken = async |feed: &mut SteadyFeed<v1::HeartbeatItem>| {
        wire.cut();
        while !feed.stream().has_ended() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        feed.keep_up().await.unwrap();
    };
    broken(&mut feed).await;
    assert_eq!(feed.times_in_full(), 1, "nothing was lost");
    feed.send(heartbeat("r0n0", 2, 0, vec![])).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    wire.hold();
    feed.send(heartbeat("r0n0", 3, 0, vec![])).await.unwrap();
    broken(&mut feed).await;
    assert_eq!(feed.times_in_full(), 2, "what was on its way may be lost");
    feed.await_acknowledged().await.unwrap();
    let before = feed.stream().instance();
    world.restart().await;
    kept_up(&mut feed, &world).await;
    assert_eq!(feed.times_in_full(), 3);
    assert_ne!(feed.stream().instance(), before);
    hinted(client.hints_or_none(request("r1", 1, 1, 1_024), SOON).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_goes_on_after_a_restart_and_ends_with_the_attempt() {
    let mut world = on_port(free_port()).await;
    let client = lazy(world.running().grpc.port());
    let mut feed = nodes(&client).await;
    kept_up(&mut feed, &world).await;
    let answer = world.hints(request("r1", 1, 4, 4_096)).await;
    let mut follower = client.follower(follow_start(&answer, 0), SOON);
    let foreign = |node: u32| {
        let container = (format!("container_1_0099_01_{node:06}"), 8_192);
        heartbeat(&format!("r0n{node}"), 2, 8_192, vec![container])
    };
    feed.send(foreign(0)).await.unwrap();
    let first = next(&mut follower).await;
    assert_eq!(first.cause, "foreign_use");
    world.restart().await;
    kept_up(&mut feed, &world).await;
    feed.send(foreign(1)).await.unwrap();
    let told = loop {
        let told = next(&mut follower).await;
        if !matches!(told.advice, Some(WireAdvice::Gap(_))) {
            break told;
        }
    };
    assert!(told.number > first.number && told.cause == "foreign_use", "{told:?}");
    let done = v1::TaskEvent {
        application_id: "application_1_0001".into(),
        attempt: 1,
        what: Some(v1::task_event::What::Done(v1::ApplicationDone { failed: false })),
        ..Default::default()
    };
    follower.tell(vec![done]).await.unwrap();
    let ended = loop {
        match tokio::time::timeout(SOON, follower.next()).await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, ClientError::Ended), "{ended:?}");
    let mut stranger = follow_start(&answer, 0);
    stranger.token = "guessed".into();
    let refused = client.follower(stranger, SOON).next().await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused { .. }), "{refused:?}");
}

async fn next(follower: &mut hintd_client::Follower) -> v1::FollowMessage {
    tokio::time::timeout(SOON, follower.next()).await.expect("something is pushed").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_just_before_a_follower_goes_is_heard() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 2, 1_024)).await;
    let mut follower = world.client.follower(follow_start(&answer, 0), SOON);
    let done = v1::TaskEvent {
        application_id: "application_1_0001".into(),
        attempt: 1,
        what: Some(v1::task_event::What::Done(v1::ApplicationDone { failed: false })),
        ..Default::default()
    };
    follower.tell(vec![done]).await.unwrap();
    drop(follower);
    world.until("its leases were given back", |status| status.leases == 0).await;
}
