//! Nodes from ResourceManagers that answer as real ones do, and as broken ones do. Beside a real one: tests/hadoop.

use crate::world::World;
use hintd::hadoop::{ResourceManagerOptions, start};
use hintd::telemetry::metrics::Metrics;
use hintd::wire::v1;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::net::TcpStream;

/// What is answered to the question for `/info`, and to that for `/nodes`: whole answers, head and all.
type Script = Arc<Mutex<[String; 2]>>;

struct Manager {
    authority: String,
    script: Script,
}

impl Manager {
    async fn start(info: String, nodes: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let script = Script::new(Mutex::new([info, nodes]));
        let own = Arc::clone(&script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&own)));
            }
        });
        Self { authority, script }
    }

    fn says(&self, info: String, nodes: String) {
        *self.script.lock().unwrap() = [info, nodes];
    }
}

async fn answer(mut stream: TcpStream, script: Script) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            return;
        }
        asked.push(byte[0]);
    }
    let asked = String::from_utf8(asked).unwrap();
    assert!(asked.contains("user.name=hintd"), "{asked}");
    let text = script.lock().unwrap()[usize::from(asked.starts_with("GET /ws/v1/cluster/nodes?states="))].clone();
    _ = stream.write_all(text.as_bytes()).await;
    _ = stream.shutdown().await;
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn info(id: u32, state: &str) -> String {
    http("200 OK", &format!("{{\"clusterInfo\":{{\"id\":{id},\"haState\":\"{state}\"}}}}"))
}

fn nodes(hosts: &[&str]) -> String {
    let node = |host: &&str| {
        format!(
            "{{\"id\":\"{host}:1\",\"nodeHostName\":\"{host}\",\"rack\":\"/rack1\",\"state\":\"RUNNING\",\
             \"usedMemoryMB\":1024,\"availMemoryMB\":7168,\"usedVirtualCores\":1,\"availableVirtualCores\":7}}"
        )
    };
    let rows: Vec<String> = hosts.iter().map(node).collect();
    http("200 OK", &format!("{{\"nodes\":{{\"node\":[{}]}}}}", rows.join(",")))
}

fn options(managers: &[&Manager]) -> ResourceManagerOptions {
    ResourceManagerOptions {
        authorities: managers.iter().map(|manager| manager.authority.clone()).collect(),
        user: "hintd".into(),
        poll: Duration::from_millis(20),
        timeout: Duration::from_millis(500),
        backoff: Duration::from_millis(100),
        answer_bytes: 1 << 20,
        unheard_kept: Duration::from_secs(3_600),
        absent_kept: Duration::from_secs(1),
    }
}

async fn world(lost_after: &'static str) -> World {
    World::with(&[("model", "stale_after = \"100ms\""), ("model", lost_after)]).await
}

fn usable(count: u32) -> impl Fn(&v1::StatusResponse) -> bool {
    move |status| status.nodes_usable == count
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_from_the_active_resource_manager_whatever_the_others_say() {
    let standby = Manager::start(info(1, "STANDBY"), http("307 TEMPORARY_REDIRECT", "This is standby RM.")).await;
    let active = Manager::start(info(2, "ACTIVE"), nodes(&["n1", "n2"])).await;
    let world = world("lost_after = \"200ms\"").await;
    start(options(&[&standby, &active]), &world.running().daemon, &Metrics::new());
    let status = world.until("both nodes", usable(2)).await;
    assert_eq!((status.nodes, status.racks), (2, 1));
    active.says(info(2, "ACTIVE"), nodes(&["n2"]));
    world.until("one has left", usable(1)).await;
    // They change places; a node that has not found the new one yet is not lost.
    active.says(info(2, "STANDBY"), http("307 TEMPORARY_REDIRECT", ""));
    standby.says(info(3, "ACTIVE"), nodes(&["n1"]));
    world.until("the other one's node", usable(2)).await;
    standby.says(info(3, "ACTIVE"), nodes(&["n1", "n2"]));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    world.until("n2 has found it", usable(2)).await;
    standby.says(info(3, "ACTIVE"), nodes(&["n1"]));
    world.until("it is believed again", usable(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_none_changes_nothing_and_loses_nobody() {
    let manager = Manager::start(info(1, "ACTIVE"), nodes(&["n1", "n2"])).await;
    let world = world("lost_after = \"200ms\"").await;
    start(options(&[&manager]), &world.running().daemon, &Metrics::new());
    world.until("both nodes", usable(2)).await;
    let whole = nodes(&["n1", "n2"]);
    let broken = [
        http("200 OK", "<!DOCTYPE html><title>Log in</title>"),
        whole[..whole.len() - 30].to_owned(),
        http("500 Internal Server Error", "{}"),
        http("200 OK", "{\"nodes\":7}"),
        http("200 OK", &"x".repeat(2 << 20)),
        "no HTTP at all".to_owned(),
        String::new(),
    ];
    for answer in broken {
        manager.says(info(1, "ACTIVE"), answer.clone());
        tokio::time::sleep(Duration::from_millis(400)).await; // twice as long as a node may be silent
        let lost = world.status().await.counters.get("nodes_lost").copied();
        assert_eq!(lost, None, "after {:?}", &answer[..answer.len().min(60)]);
    }
    manager.says(info(1, "ACTIVE"), whole);
    world.until("they are heard again", usable(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_has_become_empty_is_kept_for_a_while_and_then_believed() {
    let manager = Manager::start(info(1, "ACTIVE"), nodes(&["n1", "n2"])).await;
    let world = world("lost_after = \"200ms\"").await;
    start(options(&[&manager]), &world.running().daemon, &Metrics::new());
    world.until("both nodes", usable(2)).await;
    manager.says(info(1, "ACTIVE"), http("200 OK", "{\"nodes\":{}}"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let status = world.status().await;
    assert_eq!(status.counters.get("nodes_lost"), None, "kept");
    world.until("nobody is left", usable(0)).await;
}
