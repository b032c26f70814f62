//! Clients that disappear: streams cut, connections that fall silent or never speak, calls that nobody waits for.

use crate::program::{Program, say, write_config};
use crate::streams::follow_start;
use crate::world::{SOON, World, heartbeat, hello, leased, request};
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A way to a daemon that can be cut or frozen.
struct Wire {
    address: String,
    frozen: Arc<AtomicBool>,
    /// Connections that the daemon closed.
    closed: Arc<AtomicUsize>,
    relay: tokio::task::JoinHandle<()>,
}

impl Wire {
    async fn to(daemon: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (frozen, closed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let state = (Arc::clone(&frozen), Arc::clone(&closed));
        let relay = tokio::spawn(async move {
            let mut both = tokio::task::JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(&daemon).await.unwrap();
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = far.into_split();
                both.spawn(carry(near_in, far_out, Arc::clone(&state.0), Arc::default()));
                both.spawn(carry(far_in, near_out, Arc::clone(&state.0), Arc::clone(&state.1)));
            }
        });
        Self { address, frozen, closed, relay }
    }

    /// Both ends see the connection break.
    fn cut(&self) {
        self.relay.abort();
    }

    /// Nobody sees anything: what is sent gets lost.
    fn freeze(&self) {
        self.frozen.store(true, Ordering::Release);
    }
}

async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    frozen: Arc<AtomicBool>,
    closed: Arc<AtomicUsize>,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if !frozen.load(Ordering::Acquire) && to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
    closed.fetch_add(1, Ordering::AcqRel);
    if frozen.load(Ordering::Acquire) {
        std::future::pending::<()>().await; // the other side is told nothing
    }
}

fn stranger(id: u32, used: i64) -> v1::HeartbeatItem {
    heartbeat("r0n0", id, used, vec![(format!("container_1_0099_01_{:06}", id + 1), used)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_is_cut_off_comes_back_and_gets_what_it_missed() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    let answer = world.hints(request("r1", 1, 3, 2_048)).await;
    let wire = Wire::to(world.running().grpc.to_string()).await;
    let far = crate::world::connect(&wire.address).await.unwrap();
    let mut follow = far.follow(follow_start(&answer, 0)).await.unwrap();
    feed.send(stranger(2, 4_096)).await.unwrap();
    let first = tokio::time::timeout(SOON, follow.next()).await.unwrap().unwrap();
    wire.cut();
    assert!(tokio::time::timeout(SOON, follow.next()).await.expect("it sees the cut").is_err());
    feed.send(stranger(3, 6_144)).await.unwrap();
    feed.send(stranger(4, 8_192)).await.unwrap();
    world.until("all leases are withdrawn", |status| status.leases == 0).await;
    let mut follow = world.client.follow(follow_start(&answer, first.number)).await.unwrap();
    let missed = tokio::time::timeout(SOON, follow.next()).await.unwrap().unwrap();
    assert_eq!(missed.number, first.number + 1, "{missed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_followers_and_feeds_that_vanish_leave_the_daemon_as_it_was() {
    let world = World::with(&[("leases", "time_to_live = \"1h\"")]).await;
    let _nodes = world.cluster(1, 4, 1 << 20).await;
    let answer = world.hints(request("r1", 1, 1, 1_024)).await;
    let wire = Wire::to(world.running().grpc.to_string()).await;
    let mut streams = Vec::new();
    for n in 0..200 {
        // A connection holds 256 streams at one time.
        let far = crate::world::connect(&wire.address).await.unwrap();
        let follow = far.follow(follow_start(&answer, 0)).await.unwrap();
        let mut feed: FeedSender<v1::HeartbeatItem> = far.feed(hello()).await.unwrap();
        feed.send(heartbeat(&format!("r0n{}", n % 4), 2 + n, 0, vec![])).await.unwrap();
        streams.push((follow, feed));
    }
    wire.cut();
    let began = Instant::now();
    let asked = world.hints(request("r2", 2, 2, 1_024)).await;
    assert_eq!(leased(&asked).into_values().flatten().count(), 2);
    assert!(began.elapsed() < SOON / 2);
    drop(streams);
    assert_eq!(world.status().await.leases, 3, "the attempt may come back: its leases stay for their time");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_nobody_waits_for_leave_no_lease_beyond_its_time() {
    let world = World::with(&[("leases", "time_to_live = \"1s\""), ("placer", "threads = 1")]).await;
    let _feed = world.cluster(4, 10, 1 << 20).await;
    let address = format!("http://{}", world.running().grpc);
    let raw = v1::placement_client::PlacementClient::connect(address).await.unwrap();
    for n in 0..150_u32 {
        let mut raw = raw.clone();
        let call = tokio::spawn(async move { raw.request_hints(request(&format!("v{n}"), n + 1, 4, 1_024)).await });
        tokio::time::sleep(Duration::from_micros(u64::from(n % 50) * 100)).await;
        call.abort();
    }
    // The one thread has looked at all of them when it has this one's turn.
    world.hints(request("later", 999, 4, 1_024)).await;
    world.until("no lease is left", |status| status.leases == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_never_speak_can_use_up_file_descriptors_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("ulimit -n 200; exec \"$0\" --config \"$1\"").arg(env!("CARGO_BIN_EXE_hintd"));
    let program = Program::run(shell.arg(folder.path().join("hintd.toml")), folder.path(), port).await;
    let mut silent = Vec::new();
    for n in 0..400 {
        let mut stream = TcpStream::connect(&program.address).await.unwrap();
        if n % 2 == 0 {
            stream.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap(); // half a greeting
        }
        silent.push(stream);
    }
    // Whoever is connected goes on, disk included.
    for n in 0..20 {
        program.client.request_hints(request(&format!("s{n}"), n + 1, 1, 1_024), SOON).await.unwrap();
    }
    assert!(program.status().await.ready);
    drop(silent);
    let began = Instant::now();
    let newcomer = loop {
        let asked = async {
            let client = crate::world::connect(&program.address).await?;
            client.request_hints(request("new", 99, 1, 1_024), Duration::from_secs(1)).await
        };
        match asked.await {
            Ok(answer) => break answer,
            Err(error) => assert!(began.elapsed() < SOON, "{error}"),
        }
    };
    assert_eq!(leased(&newcomer).into_values().flatten().count(), 1, "and newcomers are served again");
}

/// Takes 30 seconds of waiting: run where `HINTD_FAULTS` says `all`.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_falls_silent_is_given_up_within_half_a_minute() {
    if std::env::var("HINTD_FAULTS").is_ok_and(|which| which == "all") {
        let world = World::start().await;
        let _nodes = world.cluster(1, 1, 8_192).await;
        let answer = world.hints(request("r1", 1, 1, 1_024)).await;
        let wire = Wire::to(world.running().grpc.to_string()).await;
        let far = crate::world::connect(&wire.address).await.unwrap();
        let mut follow = far.follow(follow_start(&answer, 0)).await.unwrap();
        let began = Instant::now();
        wire.freeze();
        while wire.closed.load(Ordering::Acquire) == 0 {
            assert!(began.elapsed() < Duration::from_secs(40), "it still holds the connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let took = began.elapsed();
        say(&format!("a frozen peer was given up after {took:?}"));
        assert!(tokio::time::timeout(Duration::from_millis(10), follow.next()).await.is_err(), "it was told nothing");
    } else {
        say("SKIPPED: 30 s of waiting; HINTD_FAULTS=all runs it");
    }
}
