//! Agents on addresses of this machine with a real daemon, and a proxy that delays what reaches one rack.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // an edge: clocks and sockets are its work

use hintd::config::Config;
use hintd::server::{Running, start};
use hintd::telemetry::metrics::Metrics;
use hintd_agent::{Arguments, run};
use hintd_client::wire::{v1, yarn};
use hintd_client::{Client, FeedSender, admin};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// For whatever should come soon, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the proxy adds to each packet on its way in; far above what a busy machine does.
const DELAY: Duration = Duration::from_millis(300);

async fn daemon(folder: &Path, port: u16) -> Running {
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:{port}\"\nadmin_socket = {:?}\nmetrics = \"\"\n[store]\npath = {:?}\n\
         [latency]\ninterval = \"50ms\"\nreport = \"200ms\"\n[model.max_age]\nlatency = \"30s\"\n",
        folder.join("admin.sock"),
        folder.join("journal.redb"),
    );
    let config = Config::from_text(&text, "test.toml").unwrap();
    start(&config.options, Metrics::new()).await.unwrap()
}

/// Registers the hosts; they stay for as long as the stream.
async fn register(running: &Running, hosts: &[(&str, &str)]) -> FeedSender<v1::HeartbeatItem> {
    let client = Client::connect(&running.grpc.to_string()).await.unwrap();
    let hello = v1::FeedHello { source: "test".into(), ..Default::default() };
    let mut feed: FeedSender<v1::HeartbeatItem> = client.feed(hello).await.unwrap();
    for (host, rack) in hosts {
        let total = yarn::ResourceProto { memory: Some(8_192), virtual_cores: Some(8), resource_value_map: vec![] };
        let node = v1::RegisterNode {
            host: (*host).into(),
            port: 1,
            rack: (*rack).into(),
            total: Some(total),
            ..Default::default()
        };
        feed.send(v1::HeartbeatItem { number: 0, item: Some(v1::heartbeat_item::Item::Register(node)) }).await.unwrap();
    }
    assert!(feed.await_acknowledged().await.unwrap().refused.is_empty());
    feed
}

fn agent(running: &Running, host: &str, listen: SocketAddr, advertise: SocketAddr) -> JoinHandle<Result<(), String>> {
    let arguments = Arguments {
        address: running.grpc.to_string(),
        host: Some(host.to_owned()),
        listen,
        advertise: Some(advertise),
        packets_per_second: 200,
    };
    tokio::spawn(run(arguments))
}

/// A free address for an agent of this host.
fn free(last: u8) -> SocketAddr {
    let socket = std::net::UdpSocket::bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    socket.local_addr().unwrap()
}

/// Hands packets on to `to` after [`DELAY`], and answers back at once.
async fn proxy(to: SocketAddr) -> SocketAddr {
    let outside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = outside.local_addr().unwrap();
    tokio::spawn(async move {
        let mut inside: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut buffer = [0; 64];
        loop {
            let Ok((bytes, from)) = outside.recv_from(&mut buffer).await else { continue };
            let packet = buffer[..bytes].to_vec();
            if let Entry::Vacant(new) = inside.entry(from) {
                let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                new.insert(Arc::clone(&socket));
                let outside = Arc::clone(&outside);
                tokio::spawn(async move {
                    let mut buffer = [0; 64];
                    while let Ok(bytes) = socket.recv(&mut buffer).await {
                        let _ = outside.send_to(&buffer[..bytes], from).await;
                    }
                });
            }
            let socket = Arc::clone(&inside[&from]);
            tokio::spawn(async move {
                tokio::time::sleep(DELAY).await;
                let _ = socket.send_to(&packet, to).await;
            });
        }
    });
    address
}

async fn matrix(running: &Running) -> v1::LatencyResponse {
    let mut admin = admin(&running.admin).await.unwrap();
    admin.latency(v1::LatencyRequest::default()).await.unwrap().into_inner()
}

async fn until(running: &Running, what: &str, wanted: impl Fn(&v1::LatencyResponse) -> bool) -> v1::LatencyResponse {
    let began = Instant::now();
    loop {
        let found = matrix(running).await;
        if wanted(&found) {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "not in time: {what}; {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const HOSTS: [(&str, &str); 4] = [("a1", "/a"), ("a2", "/a"), ("b1", "/b"), ("b2", "/b")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_matrix_shows_what_a_proxy_adds_and_agents_outlive_each_other_and_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let running = daemon(folder.path(), 0).await;
    let nodes = register(&running, &HOSTS).await;
    let mut agents = Vec::new();
    for (at, (host, rack)) in HOSTS.iter().enumerate() {
        let listen = free(10 + at as u8);
        let advertise = if *rack == "/b" { proxy(listen).await } else { listen };
        agents.push(agent(&running, host, listen, advertise));
    }
    let rtt = |found: &v1::LatencyResponse, a: &str, b: &str| {
        let row = found.racks.iter().find(|row| (row.a.as_str(), row.b.as_str()) == (a, b));
        row.map(|row| (row.rtt_us, row.median_us))
    };
    let delay = DELAY.as_micros() as u64;
    // In the rack and to the counterpart in the other; those that are drawn come on top, so that as many paths may be known
    // while none of them leads through the proxy between the racks.
    let through = |found: &v1::LatencyResponse| rtt(found, "/a", "/b").is_some_and(|(rtt, _)| rtt * 100 >= delay * 94);
    let all =
        |found: &v1::LatencyResponse| found.racks.len() == 3 && found.agents == 4 && found.paths >= 8 && through(found);
    let found = until(&running, "each host measures two others", all).await;
    let [near, between, far] = [("/a", "/a"), ("/a", "/b"), ("/b", "/b")].map(|(a, b)| rtt(&found, a, b).unwrap());
    // A length is right within 6 %.
    assert!(far.1 * 100 >= delay * 94, "{found:?}");
    assert!(near.1 + delay / 2 < between.0, "the rack without a proxy is near: {found:?}");

    // One that is started again goes on.
    agents[0].abort();
    let listen = free(10);
    let later = agent(&running, "a1", listen, listen);
    let mut operator = admin(&running.admin).await.unwrap();
    let own = v1::LatencyRequest { host: "a1".into(), limit: 0 };
    let rows = operator.latency(own).await.unwrap().into_inner();
    assert!(!rows.hosts.is_empty() && rows.hosts.iter().all(|row| row.from == "a1" || row.to == "a1"), "{rows:?}");

    // The daemon starts again without anything kept: agents find it, and the matrix is back.
    let port = running.grpc.port();
    drop(nodes);
    running.shutdown().await.unwrap();
    let running = daemon(folder.path(), port).await;
    let _nodes = register(&running, &HOSTS).await;
    let found = until(&running, "the agents are back", all).await;
    assert!(rtt(&found, "/a", "/b").unwrap().0 * 100 >= delay * 94, "{found:?}");
    assert!(agents[1..].iter().chain([&later]).all(|agent| !agent.is_finished()), "none of them ended");
    for agent in agents.iter().chain([&later]) {
        agent.abort();
    }
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_agent_that_can_not_begin_says_why() {
    let arguments = |listen: &str, address: &str, host: &str| Arguments {
        address: address.to_owned(),
        host: Some(host.to_owned()),
        listen: listen.parse().unwrap(),
        advertise: None,
        packets_per_second: 1,
    };
    let held = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = held.local_addr().unwrap().to_string();
    let said = run(arguments(&port, "127.0.0.1:1", "a")).await.unwrap_err();
    assert!(said.starts_with(&format!("--listen {port}: ")), "{said}");
    assert_eq!(run(arguments("127.0.0.1:0", "127.0.0.1:1", " ")).await.unwrap_err(), "--host is empty");
    let said = run(arguments("0.0.0.0:0", "127.0.0.1:1", "a")).await.unwrap_err();
    assert!(said.starts_with("other nodes can't measure this one at 127.0.0.1"), "{said}");
    let own = Some("127.0.0.1:1".parse().unwrap());
    let said = run(Arguments { advertise: own, ..arguments("127.0.0.1:0", "no address", "a") }).await.unwrap_err();
    assert!(said.starts_with("--address no address: "), "{said}");
}
