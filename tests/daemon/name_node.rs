//! Blocks of paths from NameNodes that answer as real ones do, and as broken ones do. Beside a real one: tests/hadoop.

use crate::hadoop_server::{Said, Server, asked, http, tls};
use crate::world::{SOON, World, request};
use hintd::hadoop::{NameNodeOptions, PathCacheSettings, ServerOptions, start_name_node};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const BLOCK: u64 = 1 << 20;

/// Files by path: how many blocks, and the hosts of all of them.
type Files = &'static [(&'static str, u64, &'static [&'static str])];

const INPUT: Files = &[
    ("/in/a", 3, &["r1n0.example.org", "r1n1.example.org"]),
    ("/in/b%20c", 1, &["r1n0.example.org"]),
    ("/in/_SUCCESS", 1, &["r0n0"]),
    ("/in/deep/d", 2, &["r1n1.example.org"]),
];

/// A NameNode with these files.
fn name_node(files: Files) -> impl Fn(&str) -> Said + Send + Sync + 'static {
    move |question| {
        let (path, query) = question.strip_prefix("/webhdfs/v1").unwrap().split_once('?').unwrap();
        assert!(query.ends_with("&user.name=hdfs"), "{question}");
        let mut values = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut value = |name: &str| values.find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        match value("op") {
            "LISTSTATUS" => list(files, path),
            "GET_BLOCK_LOCATIONS" => {
                blocks(files, path, value("offset").parse().unwrap(), value("length").parse().unwrap())
            }
            _ => http("200 OK", "{\"FileStatus\":{}}"),
        }
    }
}

fn list(files: Files, path: &str) -> Said {
    let row = |name: &str, kind: &str, length: u64| {
        format!("{{\"pathSuffix\":\"{name}\",\"type\":\"{kind}\",\"length\":{length},\"blockSize\":{BLOCK}}}")
    };
    let mut rows: Vec<String> = Vec::new();
    for (file, count, _) in files {
        if *file == path {
            rows.push(row("", "FILE", count * BLOCK));
        }
        let Some(rest) = file.strip_prefix(path).and_then(|rest| rest.strip_prefix('/')) else { continue };
        rows.push(match rest.split_once('/') {
            Some((directory, _)) => row(directory, "DIRECTORY", 0),
            None => row(&rest.replace("%20", " "), "FILE", count * BLOCK),
        });
    }
    if rows.is_empty() {
        return refuses("404 Not Found", "FileNotFoundException");
    }
    http("200 OK", &format!("{{\"FileStatuses\":{{\"FileStatus\":[{}]}}}}", rows.join(",")))
}

fn blocks(files: Files, path: &str, offset: u64, length: u64) -> Said {
    let Some((at, (_, count, hosts))) = files.iter().enumerate().find(|(_, (file, ..))| *file == path) else {
        return refuses("404 Not Found", "FileNotFoundException");
    };
    let node =
        |host: &&str| format!("{{\"hostName\":\"{host}\",\"ipAddr\":\"10.0.0.1\",\"networkLocation\":\"/other\"}}");
    let nodes: Vec<String> = hosts.iter().map(node).collect();
    let mut rows = String::new();
    for block in (offset / BLOCK)..(offset + length).div_ceil(BLOCK).min(*count) {
        let comma = if rows.is_empty() { "" } else { "," };
        let id = (at as u64 + 1) << 32 | block;
        write!(
            rows,
            "{comma}{{\"block\":{{\"blockId\":{id},\"numBytes\":{BLOCK}}},\"startOffset\":{},\"isCorrupt\":false,\
             \"blockToken\":{{\"urlString\":\"SECRET\"}},\"locations\":[{}]}}",
            block * BLOCK,
            nodes.join(",")
        )
        .unwrap();
    }
    http("200 OK", &format!("{{\"LocatedBlocks\":{{\"fileLength\":1,\"locatedBlocks\":[{rows}]}}}}"))
}

fn refuses(status: &str, exception: &str) -> Said {
    http(
        status,
        &format!("{{\"RemoteException\":{{\"exception\":\"{exception}\",\"javaClassName\":\"x\",\"message\":\"y\"}}}}"),
    )
}

fn options(servers: &[&Server]) -> NameNodeOptions {
    NameNodeOptions {
        servers: ServerOptions {
            timeout: Duration::from_secs(5),
            answer_bytes: 4 << 20,
            ..asked(servers.iter().copied(), "hdfs", Duration::from_millis(50))
        },
        wait: Duration::from_secs(5),
        parallel: 4,
        files_per_path: 100,
        blocks_per_path: 20_000,
        path_cache: PathCacheSettings {
            paths: 100,
            blocks: 50_000,
            fresh: Duration::from_secs(600),
            refused_fresh: Duration::from_millis(50),
            kept: Duration::from_secs(600),
        },
        slow_peers: None,
    }
}

async fn world() -> World {
    let world = World::with(&[("policy", "default = \"container\"")]).await;
    drop(world.cluster(2, 2, 8_192).await);
    world
}

fn asks(id: &str, app: u32, path: &str) -> v1::RequestHintsRequest {
    v1::RequestHintsRequest { input_paths: vec![path.to_owned()], ..request(id, app, 2, 1_024) }
}

async fn hints(world: &World, id: &str, app: u32, path: &str) -> v1::HintSet {
    world.hints(asks(id, app, path)).await.hints.unwrap()
}

/// What an answer says of missing inputs and of paths, without what these tests do not look at.
fn said(hints: &v1::HintSet) -> Vec<&str> {
    let others = ["no_topology", "no_latency", "no_edges", "old_heartbeats"];
    hints.degraded.iter().map(String::as_str).filter(|word| !others.contains(word)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_placed_by_what_the_active_name_node_says_of_its_paths() {
    let standby = Server::start(|_| refuses("403 Forbidden", "StandbyException")).await;
    let active = Server::start(name_node(INPUT)).await;
    let world = world().await;
    start_name_node(options(&[&standby, &active]), &world.running().daemon, &Metrics::new()).unwrap();
    let found = hints(&world, "one", 1, "hdfs://ns1/in/").await;
    assert_eq!(said(&found), [""; 0]);
    let hosts: Vec<&str> = found.hints.iter().map(|hint| hint.host.as_str()).collect();
    assert!(hosts.iter().all(|host| host.starts_with("r1")), "all blocks lie in rack 1: {hosts:?}");
    let status = world.status().await;
    assert_eq!((status.datasets, status.blocks), (3, 6), "hidden files are no input");
    assert_eq!(
        status.unknown_names_total, 0,
        "a DataNode's full name is that of YARN's node: {:?}",
        status.unknown_names
    );
    let before = active.asked().len();
    assert_eq!(said(&hints(&world, "two", 2, "hdfs://ns1/in").await), [""; 0]);
    let more = active.asked()[before..].iter().filter(|question| question.contains("/in")).count();
    assert_eq!(more, 0, "another spelling is the same path");
    let before = active.asked().iter().filter(|question| question.contains("/in")).count();
    hints(&world, "three", 3, "hdfs://ns1/in").await;
    let after = active.asked().iter().filter(|question| question.contains("/in")).count();
    assert_eq!(before, after, "what is known and fresh is not asked for again");
    // They change places.
    active.says(|_| refuses("403 Forbidden", "StandbyException"));
    standby.says(name_node(INPUT));
    assert_eq!(said(&hints(&world, "four", 4, "/in/a").await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_does_not_wait_for_a_slow_name_node_and_the_next_one_has_its_answer() {
    // Far above `wait`: a busy machine may halt for a while.
    const SLOW: Duration = Duration::from_secs(3);
    let slow = Server::start(|question| Said(name_node(INPUT)(question).0, SLOW)).await;
    let world = world().await;
    let wait = Duration::from_millis(30);
    start_name_node(NameNodeOptions { wait, ..options(&[&slow]) }, &world.running().daemon, &Metrics::new()).unwrap();
    let began = Instant::now();
    let found = hints(&world, "one", 1, "/in/a").await;
    assert!(began.elapsed() < SLOW, "{:?}", began.elapsed());
    assert_eq!(said(&found), ["no_blocks", "locations_not_known_yet: /in/a"]);
    world.until("it came behind the request's back", |status| status.blocks == 3).await;
    assert_eq!(said(&hints(&world, "two", 2, "/in/a").await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_of_a_request_s_own_time_is_the_most_that_it_waits() {
    let silent = Server::start(|_| Said(String::new(), Duration::from_secs(60))).await;
    let world = world().await;
    // Nothing else ends the wait, and half of ten seconds are left to a machine that halts.
    let mut options = NameNodeOptions { wait: Duration::from_secs(60), ..options(&[&silent]) };
    options.servers.timeout = Duration::from_secs(60);
    start_name_node(options, &world.running().daemon, &Metrics::new()).unwrap();
    let request = asks("one", 1, "/in/a");
    let found = world.client.request_hints(request, Duration::from_secs(10)).await.unwrap().hints.unwrap();
    assert_eq!(said(&found), ["no_blocks", "locations_not_known_yet: /in/a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_can_not_be_had_says_why_and_is_no_refusal() {
    const LARGE: Files = &[("/ten_thousand", 10_000, &["r0n0", "r1n0"]), ("/huge", 20_001, &["r0n0"])];
    let server = Server::start(|question: &str| match question {
        path if path.contains("/secret") => refuses("403 Forbidden", "AccessControlException"),
        path if path.contains("/many?") => {
            let row = "{\"pathSuffix\":\"x\",\"type\":\"FILE\",\"length\":1,\"blockSize\":1}";
            http("200 OK", &format!("{{\"FileStatuses\":{{\"FileStatus\":[{}]}}}}", vec![row; 101].join(",")))
        }
        path if path.contains("/none?") => http("200 OK", "{\"FileStatuses\":{\"FileStatus\":[]}}"),
        _ => name_node(LARGE)(question),
    })
    .await;
    let world = world().await;
    start_name_node(options(&[&server]), &world.running().daemon, &Metrics::new()).unwrap();
    for (at, (path, why)) in [
        ("/gone", "path_missing: /gone"),
        ("/secret/x", "path_unreadable: /secret/x"),
        ("/many", "path_too_large: /many"),
        ("/huge", "path_too_large: /huge"),
        ("/none", "path_empty: /none"),
        ("s3a://bucket/x", "path_not_on_hdfs: s3a://bucket/x"),
    ]
    .into_iter()
    .enumerate()
    {
        let found = hints(&world, path, 10 + at as u32, path).await;
        assert_eq!(said(&found), ["no_blocks", why]);
    }
    assert_eq!(said(&hints(&world, "large", 30, "/ten_thousand").await), [""; 0]);
    assert_eq!(world.status().await.blocks, 10_000);
    let pages = server.asked().iter().filter(|question| question.contains("/ten_thousand?op=GET_BLOCK")).count();
    assert_eq!(pages, 10, "no answer holds all of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_none_leaves_what_was_known_and_says_how_old_it_is() {
    let server = Server::start(name_node(INPUT)).await;
    let world = world().await;
    let path_cache = PathCacheSettings { fresh: Duration::from_millis(10), ..options(&[&server]).path_cache };
    let timeout = Duration::from_secs(2); // only one answer is to come too late
    let mut options = NameNodeOptions { path_cache, ..options(&[&server]) };
    (options.servers.timeout, options.servers.answer_bytes) = (timeout, 10_000);
    start_name_node(options, &world.running().daemon, &Metrics::new()).unwrap();
    hints(&world, "first", 1, "/in/a").await;
    assert_eq!(world.status().await.blocks, 3);
    type Answer = fn(&str) -> Said;
    let broken: [(&str, Answer); 6] = [
        ("html", |_| http("200 OK", "<!DOCTYPE html><title>Log in</title>")),
        ("half", |question| {
            let Said(whole, _) = name_node(INPUT)(question);
            Said(whole[..whole.len() - 20].to_owned(), Duration::ZERO)
        }),
        ("500", |_| http("500 Internal Server Error", "{}")),
        ("shape", |_| http("200 OK", "{\"FileStatuses\":7}")),
        ("nothing", |_| Said(String::new(), Duration::ZERO)),
        ("slow", |_| Said(String::new(), Duration::from_secs(60))),
    ];
    for (at, (what, answer)) in broken.into_iter().enumerate() {
        server.says(answer);
        tokio::time::sleep(Duration::from_millis(150)).await;
        let found = hints(&world, what, 10 + at as u32, "/in/a").await;
        let words: Vec<&str> = said(&found).iter().filter_map(|word| word.split(':').next()).collect();
        assert_eq!(words, ["locations_old", "name_node_silent"], "{what}");
        assert_eq!(world.status().await.blocks, 3, "{what}");
    }
    server.says(name_node(INPUT));
    let began = Instant::now();
    loop {
        let id = format!("again {:?}", began.elapsed());
        let found = hints(&world, &id, 100, "/in/a").await;
        if said(&found).is_empty() {
            break;
        }
        assert!(began.elapsed() < SOON, "it is asked again: {:?}", said(&found));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_safe_mode_withheld_comes_when_it_is_left_without_another_request() {
    let server = Server::start(|question: &str| match question {
        path if path.contains("GET_BLOCK") => refuses("403 Forbidden", "RetriableException"),
        _ => name_node(INPUT)(question),
    })
    .await;
    let world = world().await;
    let wait = Duration::from_millis(100);
    start_name_node(NameNodeOptions { wait, ..options(&[&server]) }, &world.running().daemon, &Metrics::new()).unwrap();
    let found = hints(&world, "one", 1, "/in/a").await;
    assert_eq!(said(&found)[..2], ["no_blocks", "locations_not_known_yet: /in/a"]);
    server.says(name_node(INPUT));
    world.until("it is asked for again", |status| status.blocks == 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_node_behind_tls_is_believed_if_its_signer_is_trusted() {
    let server = Server::with_tls(name_node(INPUT)).await;
    let trusting = |file: PathBuf| {
        let mut options = options(&[&server]);
        options.servers.ca_file = Some(file);
        options
    };
    let first = world().await;
    start_name_node(trusting(tls("ca.pem")), &first.running().daemon, &Metrics::new()).unwrap();
    assert_eq!(said(&hints(&first, "one", 1, "/in/a").await), [""; 0]);
    // The server's own certificate signs nothing, so nobody is trusted who shows it as another's.
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none.pem");
    let refused = start_name_node(trusting(none.clone()), &first.running().daemon, &Metrics::new());
    assert!(refused.unwrap_err().to_string().starts_with(&none.display().to_string()));
    let second = world().await;
    let wait = Duration::from_millis(300);
    let doubting = NameNodeOptions { wait, ..trusting(tls("other-ca.pem")) };
    start_name_node(doubting, &second.running().daemon, &Metrics::new()).unwrap();
    let silent = |status: &v1::StatusResponse| status.degraded.contains(&"name_node_silent".to_owned());
    second.until("it is not believed", silent).await;
    let found = hints(&second, "two", 2, "/in/a").await;
    assert_eq!(said(&found), ["no_blocks", "locations_not_known_yet: /in/a", "name_node_silent"]);
}

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// On one thread: only there is seen what is logged.
#[tokio::test]
async fn block_tokens_are_neither_logged_nor_passed_on() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let server = Server::start(name_node(INPUT)).await;
    let world = world().await;
    let wait = Duration::from_secs(2);
    start_name_node(NameNodeOptions { wait, ..options(&[&server]) }, &world.running().daemon, &Metrics::new()).unwrap();
    let answer = world.hints(asks("one", 1, "/in/a")).await;
    assert_eq!(said(answer.hints.as_ref().unwrap()), [""; 0], "the token came with the blocks");
    let shown = format!("{answer:?} {:?}", world.status().await);
    assert!(!shown.contains("SECRET"));
    // Half an answer, one of another shape, and a refusal that repeats one.
    let broken: [fn(&str) -> String; 3] = [
        |body| body[..body.len() - 10].to_owned(),
        |body| body.replace("\"isCorrupt\":false", "\"isCorrupt\":\"SECRET\""),
        |_| "\"SECRET\"".to_owned(),
    ];
    for (at, change) in broken.into_iter().enumerate() {
        server.says(move |question| match name_node(INPUT)(question) {
            Said(whole, _) if question.contains("GET_BLOCK") => {
                http("200 OK", &change(whole.split("\r\n\r\n").nth(1).unwrap()))
            }
            other => other,
        });
        // A place in the code that logs for the first time in another test, just as the subscriber above came, takes nobody to
        // be interested, and keeps to it.
        tracing::callsite::rebuild_interest_cache();
        hints(&world, &format!("broken {at}"), 10 + at as u32, "/in/deep/d").await;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("is not as a NameNode's"), "what was wrong is logged: {text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("SECRET")).collect();
    assert!(lines.is_empty(), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_that_a_name_node_is_in_safe_mode_though_it_answers_other_questions() {
    let server = Server::start(|question| match question.contains("op=LISTSTATUS") {
        true => refuses("403 Forbidden", "SafeModeException"),
        false => http("200 OK", "{\"FileStatus\":{}}"),
    })
    .await;
    let world = world().await;
    start_name_node(options(&[&server]), &world.running().daemon, &Metrics::new()).unwrap();
    let state = |status: &v1::StatusResponse| status.servers[0].state.clone();
    let status = world.until("it answers", |status| state(status) == "answers").await;
    assert!(!status.degraded.contains(&"name_node_silent".to_owned()), "{:?}", status.degraded);
    let found = hints(&world, "one", 1, "/in").await;
    assert!(said(&found).contains(&"name_node_silent"), "{:?}", found.degraded);
    for _ in 0..10 {
        let status = world.status().await;
        assert_eq!(state(&status), "safe_mode");
        assert!(status.degraded.contains(&"name_node_silent".to_owned()), "{:?}", status.degraded);
        tokio::time::sleep(Duration::from_millis(20)).await; // it is asked whether it is there meanwhile
    }
    server.says(name_node(INPUT));
    let status = world.until("it says where blocks lie", |status| state(status) == "answers").await;
    assert_eq!(status.servers[0].error, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_is_one_path_however_a_request_writes_it() {
    let server = Server::start(name_node(INPUT)).await;
    let world = world().await;
    start_name_node(options(&[&server]), &world.running().daemon, &Metrics::new()).unwrap();
    for (at, written) in ["/in", "/in/", "//in", "/in//"].into_iter().enumerate() {
        let found = hints(&world, &format!("r{at}"), 1 + at as u32, written).await;
        assert_eq!(said(&found), [""; 0], "{written}");
        assert!(found.hints.iter().all(|hint| hint.host.starts_with("r1")), "{written}: {:?}", found.hints);
    }
    let listed = server.asked().iter().filter(|question| question.starts_with("/webhdfs/v1/in?op=LISTSTATUS")).count();
    assert_eq!(listed, 1, "{:?}", server.asked());
    let gone = hints(&world, "gone", 9, "//gone/").await;
    assert_eq!(said(&gone), ["no_blocks", "path_missing: //gone/"], "as the request writes it");
}
