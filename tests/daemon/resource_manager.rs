//! Nodes from ResourceManagers that answer as real ones do, and as broken ones do. Beside a real one: tests/hadoop.

use crate::hadoop_server::{Said, Server, asked, http};
use crate::program::{Program, command, free_port};
use crate::world::{SOON, World, config_text};
use hintd::hadoop::{ResourceManagerOptions, start};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use std::path::Path;
use std::time::{Duration, Instant};

struct Manager(Server);

impl Manager {
    async fn start(info: Said, nodes: Said) -> Self {
        Self(Server::start(script(info, nodes)).await)
    }

    fn says(&self, info: Said, nodes: Said) {
        self.0.says(script(info, nodes));
    }
}

/// What is answered to the question for `/info`, and to that for `/nodes`.
fn script(info: Said, nodes: Said) -> impl Fn(&str) -> Said + Send + Sync + 'static {
    move |question| {
        assert!(question.contains("user.name=hintd"), "{question}");
        if question.starts_with("/ws/v1/cluster/nodes?states=") { nodes.clone() } else { info.clone() }
    }
}

fn info(id: u32, state: &str) -> Said {
    http("200 OK", &format!("{{\"clusterInfo\":{{\"id\":{id},\"haState\":\"{state}\"}}}}"))
}

fn nodes(hosts: &[&str]) -> Said {
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
        servers: asked(managers.iter().map(|manager| &manager.0), "hintd", Duration::from_millis(20)),
        unheard_kept: Duration::from_secs(3_600),
        absent_kept: Duration::from_secs(1),
        applications: None,
        stated: None,
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
    let world = world("lost_after = \"1s\"").await;
    start(options(&[&standby, &active]), &world.running().daemon, &Metrics::new()).unwrap();
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
    let world = world("lost_after = \"1s\"").await;
    start(options(&[&manager]), &world.running().daemon, &Metrics::new()).unwrap();
    world.until("both nodes", usable(2)).await;
    let whole = nodes(&["n1", "n2"]);
    let broken = [
        http("200 OK", "<!DOCTYPE html><title>Log in</title>"),
        Said(whole.0[..whole.0.len() - 30].to_owned(), Duration::ZERO),
        http("500 Internal Server Error", "{}"),
        http("200 OK", "{\"nodes\":7}"),
        http("200 OK", &"x".repeat(2 << 20)),
        Said("no HTTP at all".to_owned(), Duration::ZERO),
        Said(String::new(), Duration::ZERO),
    ];
    for answer in broken {
        manager.says(info(1, "ACTIVE"), answer.clone());
        tokio::time::sleep(Duration::from_millis(1_200)).await; // longer than a node may be silent
        let lost = world.status().await.counters.get("nodes_lost").copied();
        assert_eq!(lost, None, "after {:?}", &answer.0[..answer.0.len().min(60)]);
    }
    manager.says(info(1, "ACTIVE"), whole);
    world.until("they are heard again", usable(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_has_become_empty_is_kept_for_a_while_and_then_believed() {
    let manager = Manager::start(info(1, "ACTIVE"), nodes(&["n1", "n2"])).await;
    let world = world("lost_after = \"1s\"").await;
    let options = ResourceManagerOptions { absent_kept: Duration::from_secs(3), ..options(&[&manager]) };
    start(options, &world.running().daemon, &Metrics::new()).unwrap();
    world.until("both nodes", usable(2)).await;
    manager.says(info(1, "ACTIVE"), http("200 OK", "{\"nodes\":{}}"));
    let notes = |status: &v1::StatusResponse, words: &str| status.notices.iter().any(|notice| notice.contains(words));
    let status = world.until("it is said", |status| notes(status, "2 nodes are missing")).await;
    assert_eq!(status.counters.get("nodes_lost"), None, "kept");
    world.until("nobody is left", usable(0)).await;
    world.until("it is believed", |status| notes(status, "lists no node")).await;
    manager.says(info(1, "ACTIVE"), nodes(&["n1", "n2"]));
    let status = world.until("they are back", usable(2)).await;
    assert!(!notes(&status, "missing") && !notes(&status, "lists no node"), "{:?}", status.notices);
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_how_each_resource_manager_stands_and_what_hints_do_without() {
    let standby = Manager::start(info(1, "STANDBY"), http("200 OK", "{}")).await;
    let active = Manager::start(info(2, "ACTIVE"), nodes(&["n1"])).await;
    let world = world("lost_after = \"1s\"").await;
    assert_eq!(world.status().await.servers, [], "nobody is asked");
    start(options(&[&standby, &active]), &world.running().daemon, &Metrics::new()).unwrap();
    let status = world.until("its node", usable(1)).await;
    let [first, second] = &status.servers[..] else { panic!("{status:?}") };
    assert_eq!((&*first.source, &first.address), ("resource_manager", &standby.0.address.to_string()));
    assert_eq!((&*first.state, first.in_use, first.heard_ms), ("standby", false, None));
    assert_eq!((&*second.state, second.in_use, &*second.error), ("answers", true, ""));
    assert!(second.heard_ms.is_some());
    assert!(!silent(&status));
    active.says(http("503 Service Unavailable", "it starts"), nodes(&["n1"]));
    let status = world.until("nobody leads", silent).await;
    let second = &status.servers[1];
    assert_eq!((&*second.state, second.in_use), ("wrong_answer", true));
    assert!(second.error.contains("503") && second.error.contains("it starts"), "{}", second.error);
    let heard = second.heard_ms.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let later = &world.status().await.servers[1];
    assert!(later.heard_ms.unwrap() >= heard + 50, "the last good answer grows old");
    assert!(later.since_ms <= later.heard_ms.unwrap(), "{later:?}");
    active.says(info(2, "ACTIVE"), nodes(&["n1"]));
    let status = world.until("it leads again", |status| !silent(status)).await;
    assert_eq!((&*status.servers[1].state, &*status.servers[1].error), ("answers", ""));
}

fn silent(status: &v1::StatusResponse) -> bool {
    status.degraded.contains(&"resource_manager_silent".to_owned())
}

/// Waits until a line of the log has all of these words, and says how many have.
async fn logged(folder: &Path, words: &[&str]) -> usize {
    let began = Instant::now();
    loop {
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let count = log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
        if count > 0 {
            return count;
        }
        assert!(began.elapsed() < SOON, "not in time: {words:?} in {log}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_of_changes_and_not_of_tries() {
    let down = || http("503 Service Unavailable", "it starts");
    let rm = Manager::start(down(), down()).await;
    let history = Server::start(|_| http("503 Service Unavailable", "")).await;
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let extra = [
        ("resource_manager", format!("urls = [\"{}\"]", rm.0.address)),
        ("resource_manager", "user = \"hintd\"".to_owned()),
        ("resource_manager", "poll = \"100ms\"".to_owned()),
        ("resource_manager", "backoff = \"1s\"".to_owned()),
        ("resource_manager", "absent_kept = \"300ms\"".to_owned()),
        ("resource_manager", "applications = \"0s\"".to_owned()),
        ("history_server", format!("urls = [\"{}\"]", history.address)),
        ("history_server", "poll = \"1s\"".to_owned()),
        ("history_server", "backoff = \"1s\"".to_owned()),
    ];
    std::fs::write(folder.path().join("hintd.toml"), config_text(folder.path(), port, &extra)).unwrap();
    let hintd = Program::bare(&mut command(folder.path()), folder.path(), port).await;
    let tries = || (rm.0.asked().len(), history.asked().len());
    let enough = Instant::now();
    while tries().0 < 3 || tries().1 < 3 {
        assert!(enough.elapsed() < SOON, "{:?}", tries());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(logged(folder.path(), &["WARN", "nodes stay as they were told last", "503"]).await, 1);
    assert_eq!(logged(folder.path(), &["WARN", "recurring jobs stay as they were told last", "503"]).await, 1);
    rm.says(info(1, "ACTIVE"), nodes(&["n1", "n2"]));
    history.says(|_| http("200 OK", "{\"jobs\":null}"));
    assert_eq!(logged(folder.path(), &["INFO", "it is active, after a time without any", "away_s"]).await, 1);
    assert_eq!(logged(folder.path(), &["INFO", "it answers, after a time without", "away_s"]).await, 1);
    hintd.until("both nodes", usable(2)).await;
    rm.says(info(1, "ACTIVE"), http("200 OK", "{\"nodes\":null}"));
    let believed = ["WARN", "nodes are missing still and believed to have left", "nodes=2", "after_s="];
    assert_eq!(logged(folder.path(), &believed).await, 1);
    assert_eq!(logged(folder.path(), &["WARN", "nodes are missing, and kept for now", "nodes=2"]).await, 1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(logged(folder.path(), &believed).await, 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_read_up_to_its_bound_and_not_a_byte_further() {
    let manager = Manager::start(info(1, "ACTIVE"), nodes(&["n1", "n2"])).await;
    let whole = nodes(&["n1", "n2"]).0.split_once("\r\n\r\n").unwrap().1.len();
    for (answer_bytes, read) in [(whole, true), (whole - 1, false)] {
        let world = world("lost_after = \"10s\"").await;
        let mut options = options(&[&manager]);
        options.servers.answer_bytes = answer_bytes;
        start(options, &world.running().daemon, &Metrics::new()).unwrap();
        let status = world.until("an answer, or none", |status| silent(status) || status.nodes_usable == 2).await;
        assert_eq!(status.nodes_usable == 2, read, "{answer_bytes} bytes: {:?}", status.servers);
        let said = status.servers[0].error.contains(&format!("more than {answer_bytes} bytes"));
        assert_eq!(said, !read, "{:?}", status.servers);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_kept_while_nobody_answers_and_then_lost() {
    let manager = Manager::start(info(1, "ACTIVE"), nodes(&["n1", "n2"])).await;
    let world = world("lost_after = \"1s\"").await;
    let kept = Duration::from_secs(2);
    let options = ResourceManagerOptions { unheard_kept: kept, ..options(&[&manager]) };
    start(options, &world.running().daemon, &Metrics::new()).unwrap();
    world.until("both nodes", usable(2)).await;
    manager.says(http("503 Service Unavailable", ""), http("503 Service Unavailable", ""));
    let status = world.until("they are lost", |status| status.counters.get("nodes_lost") == Some(&2)).await;
    // By the daemon's own count, which begins with the last answer and not with what this test saw of it.
    let heard_ms = status.servers[0].heard_ms.unwrap();
    assert!(heard_ms >= kept.as_millis() as u64, "after {heard_ms} ms: {status:?}");
}
