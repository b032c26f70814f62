//! Recurring jobs from JobHistoryServers that answer as real ones do, and as broken ones do. Beside a real one: tests/hadoop.

use crate::hadoop_server::{Said, Server, http};
use crate::plans::{finish, make};
use crate::streams::two_ways;
use crate::world::{SOON, World, hello, request};
use hintd::hadoop::{HistoryServerOptions, ServerOptions, start_history_server};
use hintd::rest_client::Address;
use hintd::telemetry::metrics::Metrics;
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Answers by the end of the path, without what follows `?`; whatever is not there is a 404.
type Script = Arc<Mutex<BTreeMap<String, String>>>;

static ASKED: AtomicU64 = AtomicU64::new(0);

const JOBS: &str = "/jobs";
const KEY: &str = "mapreduce:ann:etl #";

async fn server(script: &Script) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let script = Arc::clone(script);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&script)));
        }
    });
    authority
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
    let path = asked.split([' ', '?']).nth(1).unwrap().to_owned();
    let found = script.lock().unwrap().iter().find(|(end, _)| path.ends_with(*end)).map(|(_, body)| body.clone());
    let (status, body) = found.map_or(("404 Not Found", String::new()), |body| ("200 OK", body));
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    _ = stream.write_all(text.as_bytes()).await;
    _ = stream.shutdown().await;
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Lists these runs of ann's job, one a second from `began` on; all of them shuffled 1 MB.
fn runs(script: &Script, began: u64, ids: std::ops::Range<u64>) {
    let row = |id: u64| {
        let finished = began + 1_000 * id;
        format!(
            "{{\"id\":\"job_1_{id:04}\",\"name\":\"etl 20\",\"user\":\"ann\",\"state\":\"SUCCEEDED\",\
             \"submitTime\":{},\"finishTime\":{finished},\"mapsTotal\":3,\"reducesTotal\":2}}",
            finished - 900
        )
    };
    let rows: Vec<String> = ids.clone().map(row).collect();
    let mut script = script.lock().unwrap();
    script.insert(JOBS.to_owned(), format!("{{\"jobs\":{{\"job\":[{}]}}}}", rows.join(",")));
    let counters = "{\"jobCounters\":{\"counterGroup\":[{\"counter\":[\
                    {\"name\":\"REDUCE_SHUFFLE_BYTES\",\"totalCounterValue\":1000000}]}]}}";
    let conf = "{\"conf\":{\"property\":[{\"name\":\"mapreduce.job.name\",\"value\":\"etl 2026\"},\
                {\"name\":\"mapreduce.input.fileinputformat.inputdir\",\"value\":\"hdfs://nn/in\"}]}}";
    for id in ids {
        script.insert(format!("/jobs/job_1_{id:04}/counters"), counters.to_owned());
        script.insert(format!("/jobs/job_1_{id:04}/conf"), conf.to_owned());
    }
}

/// Says how long tasks of these took.
fn times(script: &Script, ids: std::ops::Range<u64>) {
    let job = "{\"job\":{\"reducesTotal\":2,\"avgMapTime\":1200,\"avgShuffleTime\":500,\"avgMergeTime\":3,\
               \"avgReduceTime\":40}}";
    let mut script = script.lock().unwrap();
    script.extend(ids.map(|id| (format!("/jobs/job_1_{id:04}"), job.to_owned())));
}

/// Runs of each key that plans are made of, once there are so many of ann's job.
async fn until_runs(world: &World, runs: u32) -> (serde_json::Value, Vec<(String, u32)>) {
    let began = Instant::now();
    loop {
        let made = make(&world.admin, "").await;
        let keys = made.as_ref().map_or(&[][..], |(_, forecast)| &forecast.keys);
        let mut known: Vec<(String, u32)> = keys.iter().map(|key| (key.key.clone(), key.runs)).collect();
        known.sort();
        if known.iter().any(|(key, count)| key == KEY && *count == runs) {
            return (made.unwrap().0, known);
        }
        assert!(began.elapsed() < SOON, "not in time: {made:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_jobs_are_planned_by_what_a_history_server_tells_and_each_run_counts_once() {
    let (script, began) = (Script::default(), now_ms() - 60_000);
    runs(&script, began, 1..6);
    times(&script, 1..6);
    let mut world = World::start().await;
    let feed = world.cluster(2, 1, 8_192).await;
    let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    network.send(two_ways()).await.unwrap();
    network.await_acknowledged().await.unwrap();
    let authority = server(&script).await;
    start_history_server(&options(authority.clone()), &world.running().daemon, &Metrics::new()).unwrap();
    let (plan, _) = until_runs(&world, 5).await;
    let job = &plan["jobs"][0];
    assert_eq!((&job["job"]["key"], &job["shuffle"]), (&KEY.into(), &1_000_000.into()), "{job}");
    assert_eq!((&job["maps"]["tasks"], &job["maps"]["task_time"]), (&3.into(), &1_200_000.into()));
    assert_eq!((&job["reduces"]["tasks"], &job["reduces"]["task_time"]), (&2.into(), &43_000.into()));
    // The sixth told of itself, under a key of its own.
    finish(&world, 6, "daily").await;
    runs(&script, began, 1..8);
    times(&script, 6..8);
    let (_, known) = until_runs(&world, 6).await;
    assert_eq!(known, [("daily".to_owned(), 1), (KEY.to_owned(), 6)]);
    drop((feed, network));
    world.restart().await;
    let _feed = world.cluster(2, 1, 8_192).await;
    let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    network.send(two_ways()).await.unwrap();
    network.await_acknowledged().await.unwrap();
    start_history_server(&options(authority), &world.running().daemon, &Metrics::new()).unwrap();
    world.until("it was asked again", |status| status.servers.iter().any(|server| server.state == "answers")).await;
    tokio::time::sleep(Duration::from_millis(500)).await; // for all of them to be told again
    assert_eq!(until_runs(&world, 6).await.1, known);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_an_unchanged_job_reads_again_goes_to_its_home_racks_also_after_a_restart() {
    let script = Script::default();
    runs(&script, now_ms() - 60_000, 1..2);
    times(&script, 1..2);
    for body in script.lock().unwrap().values_mut() {
        *body = body.replace("\"totalCounterValue\":1000000", "\"totalCounterValue\":9000000000");
    }
    let mut world = World::with(&[("queues.\"*\"", "hold = true")]).await;
    let _feed = world.cluster(3, 2, 8_192).await;
    start_history_server(&options(server(&script).await), &world.running().daemon, &Metrics::new()).unwrap();
    let ask = |path: &str| v1::ReplicasRequest { path: path.to_owned(), blocks: 2, ..Default::default() };
    let began = Instant::now();
    let found = loop {
        let found = world.client.replicas(ask("/in/part-m-00000")).await.unwrap();
        if found.reason == "homes" {
            break found;
        }
        assert!(began.elapsed() < SOON, "not in time: {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((found.reader.as_str(), found.plan.as_str(), found.racks.len()), (KEY, "", 1), "{found:?}");
    for block in &found.blocks {
        let racks: Vec<&str> = block.replicas.iter().map(|replica| replica.rack.as_str()).collect();
        assert_eq!(racks, [found.racks[0].rack.as_str(), "", ""], "the others are HDFS's");
    }
    assert_eq!(world.client.replicas(ask("/inn/part-m-00000")).await.unwrap().reason, "no_plan");
    world.restart().await;
    let _feed = world.cluster(3, 2, 8_192).await;
    assert_eq!(world.client.input_homes(reads(9, KEY, 0, &[])).await.unwrap().reason, "none_given", "it was forgotten");
    assert_eq!(world.client.replicas(ask("/in/part-m-00000")).await.unwrap().racks, found.racks);
    its_readers_are_told(&world, &found.racks[0]).await;
    its_receivers_wait_for_nobody_elsewhere(&world).await;
}

/// Application 1 stays at home; whatever others send over uplinks, it has its turn there, with all of the rack's 16 containers.
async fn its_receivers_wait_for_nobody_elsewhere(world: &World) {
    let wish = |application: u32, gb: u64| v1::ShuffleTurnRequest {
        application_id: format!("application_1_{application:04}"),
        attempt: 1,
        queue: "default".to_owned(),
        group: "p10".to_owned(),
        shuffle_bytes: gb * 1_000_000_000,
        receivers: 40,
        memory_mb: 1_024,
        ..Default::default()
    };
    let mut turns = Vec::new();
    for (application, gb) in [(2, 20), (3, 20), (4, 30), (1, 40), (4, 30)] {
        let found = world.client.shuffle_turn(wish(application, gb)).await.unwrap();
        turns.push((found.at_most, found.before));
    }
    assert_eq!(turns, [(Some(12), 0), (Some(3), 0), (Some(0), 2), (Some(16), 0), (Some(0), 2)]);
}

fn reads(application: u32, key: &str, outstanding: u32, by_rack: &[(&str, u32)]) -> v1::InputHomesRequest {
    v1::InputHomesRequest {
        application_id: format!("application_1_{application:04}"),
        attempt: 1,
        queue: "default".to_owned(),
        recurring_job_key: key.to_owned(),
        group: "p20".to_owned(),
        outstanding,
        by_rack: by_rack.iter().map(|&(rack, count)| (rack.to_owned(), count)).collect(),
        ..Default::default()
    }
}

/// Applications whose input was sent there: what they are told, and that containers which came are counted.
async fn its_readers_are_told(world: &World, home: &v1::RackHosts) {
    let told = async |ask| {
        let found: v1::InputHomesResponse = world.client.input_homes(ask).await.unwrap();
        assert!(found.holds_for_ms > 0 && found.homes.is_empty() == (found.reason != "homes"), "{found:?}");
        (found.reason, found.homes)
    };
    let homes = ("homes".to_owned(), vec![home.clone()]);
    assert_eq!(told(reads(1, KEY, 0, &[])).await, homes, "it asks for none yet");
    assert_eq!(told(reads(1, KEY, 4, &[("/elsewhere", 4), (&home.rack, 4)])).await, homes);
    let partly = [("/elsewhere", 4), (home.rack.as_str(), 3)];
    assert_eq!(told(reads(1, KEY, 4, &partly)).await.0, "not_at_home");
    assert_eq!(told(reads(1, "mapreduce:ann:other", 0, &[])).await.0, "none_given");
    assert_eq!(told(reads(1, "", 0, &[])).await.0, "no_key");
    let asked = request("r1", 1, 1, 1_024);
    let answered = world.client.request_hints(asked, SOON).await.unwrap().hints.unwrap();
    let mut feed: FeedSender<v1::EventItem> = world.client.feed(hello()).await.unwrap();
    for (container, host) in [home.hosts[0].as_str(), &home.hosts[1], "nobody-knows-it"].into_iter().enumerate() {
        let allocated = v1::TaskAllocated {
            host: host.to_string(),
            container_id: format!("container_1_0001_01_{:06}", container + 2),
            lease_id: 0,
        };
        let event = v1::TaskEvent {
            application_id: "application_1_0001".to_owned(),
            attempt: 1,
            group: "p20".to_owned(),
            what: Some(v1::task_event::What::Allocated(allocated)),
            ..Default::default()
        };
        feed.send(v1::EventItem { number: 0, item: Some(v1::event_item::Item::Event(event)) }).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    let began = Instant::now();
    loop {
        let explained = world.client.explain(&answered.decision_id).await.unwrap();
        let homed = &explained.input_homes[0];
        if (homed.at_home, homed.elsewhere) == (2, 0) {
            assert_eq!((homed.group.as_str(), &homed.racks), ("p20", &vec![home.rack.clone()]));
            break;
        }
        assert!(began.elapsed() < SOON, "not in time: {explained:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn options(authority: String) -> HistoryServerOptions {
    HistoryServerOptions {
        servers: ServerOptions {
            addresses: vec![Address { authority, tls: false }],
            ca_file: None,
            user: String::new(),
            poll: Duration::from_millis(20),
            timeout: Duration::from_secs(20), // no server here is late
            backoff: Duration::from_millis(100),
            answer_bytes: 1 << 20,
        },
        lookback: Duration::from_secs(3_600),
        jobs_per_poll: 2,
    }
}

fn reduces(id: &str, app: u32) -> v1::RequestHintsRequest {
    let mut asked = request(id, app, 2, 1_024);
    asked.recurring_job_key = KEY.to_owned();
    asked.policy = "container".to_owned();
    asked.am_host = "r0n0".to_owned();
    asked.groups[0].name = "p10".to_owned();
    asked
}

/// A map came to a host and, perhaps, ended there.
fn map(app: u32, sequence: u32, host: &str, ends: bool) -> Vec<v1::EventItem> {
    let id = format!("container_1_{app:04}_01_{sequence:06}");
    let event = |what| v1::EventItem {
        number: 0,
        item: Some(v1::event_item::Item::Event(v1::TaskEvent {
            application_id: format!("application_1_{app:04}"),
            attempt: 1,
            group: "p20".to_owned(),
            task: id.clone(),
            what: Some(what),
            ..Default::default()
        })),
    };
    let allocated = v1::TaskAllocated { host: host.to_owned(), container_id: id.clone(), lease_id: 0 };
    let finished = v1::TaskFinished { host: host.to_owned(), duration_ms: 5, ..Default::default() };
    let mut events = vec![event(v1::task_event::What::Allocated(allocated))];
    events.extend(ends.then(|| event(v1::task_event::What::Finished(finished))));
    events
}

/// What is said of history once it begins so.
async fn until_said(world: &World, app: u32, start: &str) -> v1::HintSet {
    until_said_of(world, (app, KEY), start).await
}

async fn until_said_of(world: &World, (app, key): (u32, &str), start: &str) -> v1::HintSet {
    let began = Instant::now();
    loop {
        // Another question each time: one that was answered keeps its answer.
        let number = ASKED.fetch_add(1, Ordering::Relaxed);
        let asked = reduces(&format!("r{number}"), app);
        let found = world.hints(v1::RequestHintsRequest { recurring_job_key: key.to_owned(), ..asked }).await;
        let release = v1::ReleaseRequest {
            application_id: format!("application_1_{app:04}"),
            attempt: 1,
            token: found.token,
            lease_ids: vec![],
            nonce: Vec::new(),
        };
        world.client.release(release).await.unwrap();
        let hints = found.hints.unwrap();
        if hints.history.starts_with(start) {
            return hints;
        }
        assert!(began.elapsed() < SOON, "not in time: {start}; {}", hints.history);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reduces_of_a_job_that_ran_before_go_to_the_rack_of_its_maps() {
    let script = Script::default();
    runs(&script, now_ms() - 60_000, 1..6);
    let mut world = World::start().await;
    let feed = world.cluster(3, 2, 8_192).await;
    assert_eq!(
        until_said(&world, 1, "no history").await.history,
        "no history: ApplicationMaster's host and togetherness only"
    );
    start_history_server(&options(server(&script).await), &world.running().daemon, &Metrics::new()).unwrap();
    let early = until_said(&world, 1, "edges from 3 earlier runs of mapreduce:ann:etl #, last at 20").await;
    assert!(
        early.history.ends_with("nothing that sends has come: ApplicationMaster's host and togetherness only"),
        "{}",
        early.history
    );
    let mut events = world.client.feed::<v1::EventItem>(hello()).await.unwrap();
    for item in [map(1, 2, "r2n0", true), map(1, 3, "r2n1", true), map(1, 4, "r2n1", false)].concat() {
        events.send(item).await.unwrap();
    }
    events.await_acknowledged().await.unwrap();
    let began = Instant::now();
    let hints = loop {
        let hints = until_said(&world, 1, "edges from 3 earlier runs").await;
        if hints.history.ends_with("3 containers that send have come") {
            break hints;
        }
        assert!(began.elapsed() < SOON, "{}", hints.history);
    };
    assert!(hints.hints.iter().all(|hint| hint.host.starts_with("r2")), "{:?}", hints.hints);
    assert!(hints.degraded.contains(&"edges_from_history".to_owned()), "{:?}", hints.degraded);
    let explained = world.client.explain(&hints.decision_id).await.unwrap();
    assert_eq!(explained.decision.unwrap().history, hints.history);
    drop((feed, events));
    world.restart().await;
    let _feed = world.cluster(3, 2, 8_192).await;
    let again = until_said(&world, 2, "edges from 3 earlier runs").await;
    assert!(again.history.contains("nothing that sends has come"), "history is durable: {}", again.history);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_server_that_talks_nonsense_changes_nothing_and_new_runs_are_found_later() {
    let script = Script::default();
    for nonsense in ["<html>", "{\"jobs\":7}", "{\"jobs\":{\"job\":[{\"id\":\"job_1_1\"}]}}"] {
        script.lock().unwrap().insert(JOBS.to_owned(), nonsense.to_owned());
        let world = World::start().await;
        let _feed = world.cluster(1, 2, 8_192).await;
        start_history_server(&options(server(&script).await), &world.running().daemon, &Metrics::new()).unwrap();
        tokio::time::sleep(Duration::from_millis(150)).await;
        until_said(&world, 1, "no history").await;
        let began = now_ms() - 60_000;
        runs(&script, began, 1..2);
        until_said(&world, 1, "edges from 1 earlier run of").await;
        runs(&script, began, 1..4);
        until_said(&world, 1, "edges from 3 earlier runs of").await;
        assert_eq!(world.counter("history_runs").await, 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_since_when_a_history_server_gives_no_good_answer() {
    let (script, world) = (Script::default(), World::start().await);
    start_history_server(&options(server(&script).await), &world.running().daemon, &Metrics::new()).unwrap();
    let silent = |status: &v1::StatusResponse| status.degraded == ["history_server_silent"];
    let status = world.until("it was asked", silent).await;
    let server = &status.servers[0];
    assert_eq!((&*server.source, &*server.state, server.heard_ms), ("history_server", "wrong_answer", None));
    assert!(server.error.contains("404"), "{}", server.error);
    assert!(server.advice.contains("no such page"), "{}", server.advice);
    runs(&script, now_ms() - 60_000, 1..2);
    let status = world.until("it answers", |status| status.degraded.is_empty()).await;
    assert_eq!((&*status.servers[0].state, status.servers[0].in_use), ("answers", true));
}

/// What one poll learns of three runs, once it has learnt at least so many.
async fn learnt(
    script: &Script,
    least: u64,
    change: impl FnOnce(&mut HistoryServerOptions),
) -> (u64, v1::StatusResponse) {
    let mut options = options(server(script).await);
    options.servers.poll = Duration::from_secs(3_600);
    options.servers.backoff = Duration::from_secs(3_600);
    change(&mut options);
    let world = World::start().await;
    start_history_server(&options, &world.running().daemon, &Metrics::new()).unwrap();
    let over = |status: &v1::StatusResponse| status.servers.first().is_some_and(|server| server.asked_ms.is_some());
    let status = world.until("it was asked", over).await;
    let began = Instant::now();
    while world.counter("history_runs").await < least && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await; // for one more than it should
    (world.counter("history_runs").await, status)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_looks_at_so_many_jobs_and_reads_answers_up_to_their_bound() {
    let script = Script::default();
    runs(&script, now_ms() - 60_000, 1..4);
    for most in 1..=3 {
        let (count, _) = learnt(&script, most as u64, |options| options.jobs_per_poll = most).await;
        assert_eq!(count, most as u64, "a poll");
    }
    let list = script.lock().unwrap()[JOBS].len();
    let (count, _) =
        learnt(&script, 3, |options| (options.jobs_per_poll, options.servers.answer_bytes) = (3, list)).await;
    assert_eq!(count, 3, "a list of {list} bytes");
    let (count, status) = learnt(&script, 0, |options| options.servers.answer_bytes = list - 1).await;
    assert_eq!((count, &*status.servers[0].state), (0, "wrong_answer"));
    assert!(status.servers[0].error.contains(&format!("more than {} bytes", list - 1)), "{:?}", status.servers);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_ended_before_the_lookback_are_not_asked_for() {
    let history = Server::start(|_| http("200 OK", "{\"jobs\":null}")).await;
    let world = World::start().await;
    let before = now_ms();
    start_history_server(&options(history.address.authority.clone()), &world.running().daemon, &Metrics::new())
        .unwrap();
    world.until("it was asked", |status| status.servers[0].state == "answers").await;
    let asked = history.asked()[0].rsplit_once("finishedTimeBegin=").unwrap().1.parse::<u64>().unwrap();
    let hour = 3_600_000;
    assert!((before - hour..=now_ms() - hour).contains(&asked), "{asked}, begun at {before}");
}

/// What the script has, but for these jobs, of which the same is said whatever is asked.
fn but(script: &Script, jobs: &'static str, said: Said) -> impl Fn(&str) -> Said + Send + Sync + 'static {
    let script = Arc::clone(script);
    move |path: &str| {
        let path = path.split('?').next().unwrap();
        if path.contains(jobs) {
            return said.clone();
        }
        let found = script.lock().unwrap().iter().find(|(end, _)| path.ends_with(*end)).map(|(_, body)| body.clone());
        found.map_or_else(|| http("404 Not Found", ""), |body| http("200 OK", &body))
    }
}

/// As while HDFS can't be read: it lists jobs, and can load none.
#[tokio::test(flavor = "multi_thread")]
async fn while_a_history_server_tells_of_no_job_nothing_is_held_against_any() {
    for said in [http("500 Internal Server Error", ""), Said(String::new(), Duration::ZERO)] {
        let script = Script::default();
        runs(&script, now_ms() - 60_000, 1..6);
        times(&script, 1..6);
        let history = Server::start(but(&script, "/jobs/job_", said)).await;
        let (world, metrics) = (World::start().await, Metrics::new());
        let _feed = world.cluster(2, 1, 8_192).await;
        let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
        network.send(two_ways()).await.unwrap();
        network.await_acknowledged().await.unwrap();
        let options = options(history.address.authority.clone());
        start_history_server(&options, &world.running().daemon, &metrics).unwrap();
        let asked =
            |id: u32| history.asked().iter().filter(|path| path.contains(&format!("job_1_000{id}/conf"))).count();
        let began = Instant::now();
        while (1..6).any(|id| asked(id) < 4) {
            assert!(began.elapsed() < SOON, "all are asked for again and again: {:?}", history.asked());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!metrics.render().contains("hintd_history_server_passed_over_total{"), "{}", metrics.render());
        world.until("it is said", |status| status.degraded.contains(&"history_server_silent".to_owned())).await;
        history.says(but(&script, "none", http("200 OK", "")));
        until_runs(&world, 5).await;
        assert!(!metrics.render().contains("hintd_history_server_passed_over_total{"), "{}", metrics.render());
    }
}

/// Lists jobs by their ends as it is asked to, and two rows that no job can have.
fn by_time(ended: &Arc<Mutex<Vec<u64>>>) -> impl Fn(&str) -> Said + Send + Sync + 'static {
    let ended = Arc::clone(ended);
    move |path: &str| {
        if path.ends_with("/counters") {
            return http("200 OK", "{\"jobCounters\":{\"counterGroup\":[]}}");
        }
        let Some((_, query)) = path.split_once("/jobs?") else { return http("404 Not Found", "") };
        let of = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name)?.parse::<u64>().ok());
        let (from, until) = (of("finishedTimeBegin=").unwrap(), of("finishedTimeEnd=").unwrap_or(u64::MAX));
        let row = |(at, finished): (usize, &u64)| {
            let letter = char::from(b'a' + u8::try_from(at).unwrap());
            format!(
                "{{\"id\":\"job_1_{at:04}\",\"name\":\"{}{letter}\",\"user\":\"ann\",\"state\":\"SUCCEEDED\",\
                 \"finishTime\":{finished},\"mapsTotal\":3,\"reducesTotal\":2}}",
                "long".repeat(50)
            )
        };
        let ended = ended.lock().unwrap();
        let meant = ended.iter().enumerate().filter(|(_, finished)| (from..=until).contains(finished));
        let mut rows: Vec<String> = meant.map(row).collect();
        rows.push(format!("{{\"id\":\"job_1_0900\",\"finishTime\":{}}}", now_ms() + 86_400_000));
        rows.push("{\"id\":\"job_1_0901\",\"finishTime\":\"soon\"}".to_owned());
        http("200 OK", &format!("{{\"jobs\":{{\"job\":[{}]}}}}", rows.join(",")))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_too_large_comes_in_parts_and_odd_rows_keep_none_from_being_learnt() {
    let began = now_ms() - 3_000_000;
    let ended: Arc<Mutex<Vec<u64>>> = Arc::new(Mutex::new((0..24).map(|at| began + 120_000 * at).collect()));
    let history = Server::start(by_time(&ended)).await;
    let (world, metrics) = (World::start().await, Metrics::new());
    let mut options = options(history.address.authority.clone());
    options.servers.answer_bytes = 4_096;
    start_history_server(&options, &world.running().daemon, &metrics).unwrap();
    let learnt = |status: &v1::StatusResponse| status.counters.get("history_runs").copied().unwrap_or(0);
    world.until("all are learnt from", |status| learnt(status) == 24).await;
    assert!(history.asked().iter().any(|path| path.contains("&finishedTimeEnd=")), "{:?}", history.asked());
    ended.lock().unwrap().push(now_ms());
    world.until("and what ends now", |status| learnt(status) == 25).await;
    let page = metrics.render();
    let passed = |reason: &str| {
        let of = |line: &&str| {
            line.starts_with("hintd_history_server_passed_over_total{")
                && line.contains(&format!("result=\"{reason}\""))
        };
        page.lines().find(of).and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok())
    };
    assert_eq!((passed("future"), passed("nonsense")), (Some(1), Some(1)), "each counts once: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_is_asked_for_again_when_the_others_had_their_turn() {
    let script = Script::default();
    runs(&script, now_ms() - 60_000, 1..6);
    let history = Server::start(but(&script, "/jobs/job_1_0003", http("500 Internal Server Error", ""))).await;
    let (world, metrics) = (World::start().await, Metrics::new());
    let _feed = world.cluster(1, 2, 8_192).await;
    let options = HistoryServerOptions { jobs_per_poll: 1, ..options(history.address.authority.clone()) };
    start_history_server(&options, &world.running().daemon, &metrics).unwrap();
    let began = Instant::now();
    while !metrics.render().contains("hintd_history_server_passed_over_total{") {
        assert!(began.elapsed() < SOON, "it is passed over: {:?}", history.asked());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await; // for one more than it should
    let of = |path: &String| path.strip_suffix("/conf")?.rsplit_once("job_1_000").map(|(_, id)| id.to_owned());
    let asked: Vec<String> = history.asked().iter().filter_map(of).collect();
    // The first failure may be everybody's: nobody was told yet.
    assert_eq!(asked.concat(), "34512333");
}

/// Without its configuration a job has the name that the list has, perhaps cut short, and no paths.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_can_not_be_told_now_is_asked_for_at_three_polls_at_most() {
    for (status, failing, key, polls) in [
        ("503 Service Unavailable", 2, KEY, 3),
        ("500 Internal Server Error", u64::MAX, "mapreduce:ann:et", 3),
        ("401 Unauthorized", u64::MAX, "mapreduce:ann:et", 1),
    ] {
        let (script, asked) = (Script::default(), AtomicU64::new(0));
        runs(&script, now_ms() - 60_000, 1..2);
        let body = script.lock().unwrap()[JOBS].replace("etl 20", "et");
        script.lock().unwrap().insert(JOBS.to_owned(), body);
        let history = Server::start(move |path: &str| {
            let path = path.split('?').next().unwrap();
            let found =
                script.lock().unwrap().iter().find(|(end, _)| path.ends_with(*end)).map(|(_, body)| body.clone());
            match found {
                _ if path.ends_with("/conf") && asked.fetch_add(1, Ordering::Relaxed) < failing => http(status, ""),
                Some(body) => http("200 OK", &body),
                None => http("404 Not Found", ""),
            }
        })
        .await;
        let world = World::start().await;
        let _feed = world.cluster(1, 2, 8_192).await;
        let options = options(history.address.authority.clone());
        start_history_server(&options, &world.running().daemon, &Metrics::new()).unwrap();
        until_said_of(&world, (1, key), &format!("edges from 1 earlier run of {key}, last at")).await;
        let asked = history.asked().iter().filter(|path| path.contains("/conf")).count() as u64;
        assert_eq!(asked, polls, "{status}");
    }
}
