//! Recurring Spark applications from a Spark history server that answers as a real one does, and as broken ones do. Beside
//! a real one: tests/hadoop/worth.

use crate::hadoop_server::{Said, Server, http};
use crate::world::{SOON, World, request};
use hintd::hadoop::{HistoryServerOptions, ResourceManagerOptions, ServerOptions, start_spark_history_server};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static ASKED: AtomicU64 = AtomicU64::new(0);

/// As the ResourceManager's processor makes it of what the application was called when it was submitted.
const KEY: &str = "spark:ann:io.hintd.Join #";
/// The same of what its driver calls itself.
const DRIVERS_KEY: &str = "spark:ann:join of day #";

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A history server with these applications, all of which ended a minute ago; `broken` says what it answers elsewhere.
fn spark(
    ids: std::ops::Range<u64>,
    broken: impl Fn(&str) -> Option<Said> + Send + Sync + 'static,
) -> impl Fn(&str) -> Said {
    let ended = now_ms() - 60_000;
    move |path: &str| {
        if let Some(said) = broken(path) {
            return said;
        }
        let whole = path.split('?').next().unwrap();
        if whole.ends_with("/applications") {
            let row = |id: u64| {
                format!(
                    "{{\"id\":\"application_1_{id:04}\",\"name\":\"join of day {id}\",\"attempts\":[{{\"attemptId\":\"1\",\
                     \"sparkUser\":\"ann\",\"completed\":true,\"startTimeEpoch\":{ended},\"endTimeEpoch\":{}}}]}}",
                    ended + id
                )
            };
            let rows: Vec<String> = ids.clone().map(row).collect();
            return http("200 OK", &format!("[{}]", rows.join(",")));
        }
        if whole.ends_with("/1/stages") {
            return http("200 OK", "[]");
        }
        assert!(whole.ends_with("/1/allexecutors"), "{path}");
        let row = |id: u32| {
            format!(
                "{{\"id\":\"{id}\",\"totalInputBytes\":0,\"totalShuffleRead\":30000000,\"totalShuffleWrite\":30000000,\
                 \"addTime\":\"2026-11-24T10:00:0{id}.000GMT\",\"resourceProfileId\":0}}"
            )
        };
        let rows: Vec<String> = (1..=4).map(row).collect();
        http("200 OK", &format!("[{}]", rows.join(",")))
    }
}

fn servers(server: &Server) -> ServerOptions {
    ServerOptions {
        addresses: vec![server.address.clone()],
        ca_file: None,
        user: String::new(),
        poll: Duration::from_millis(20),
        timeout: Duration::from_millis(500),
        backoff: Duration::from_millis(100),
        answer_bytes: 1 << 20,
    }
}

fn options(server: &Server) -> HistoryServerOptions {
    HistoryServerOptions { servers: servers(server), lookback: Duration::from_secs(3_600), jobs_per_poll: 100 }
}

fn managers(server: &Server) -> ResourceManagerOptions {
    ResourceManagerOptions {
        servers: servers(server),
        unheard_kept: SOON,
        absent_kept: SOON,
        applications: None,
        stated: None,
    }
}

/// What hintd says of four executors of a new run of the job with this key.
async fn executors(world: &World, key: &str) -> v1::HintSet {
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let mut asked = request(&format!("r{number}"), 100 + number as u32, 4, 1_024);
    asked.recurring_job_key = key.to_owned();
    asked.framework = "spark".to_owned();
    asked.policy = "joint".to_owned();
    asked.groups[0].name = "p0.0".to_owned();
    let found = world.hints(asked).await;
    let release = v1::ReleaseRequest {
        application_id: format!("application_1_{:04}", 100 + number),
        attempt: 1,
        token: found.token,
        lease_ids: vec![],
        nonce: Vec::new(),
    };
    world.client.release(release).await.unwrap();
    found.hints.unwrap()
}

async fn until_said(world: &World, key: &str, start: &str) -> v1::HintSet {
    let began = Instant::now();
    loop {
        let hints = executors(world, key).await;
        if hints.history.starts_with(start) {
            return hints;
        }
        assert!(began.elapsed() < SOON, "not in time: {start}; {}", hints.history);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn racks(hints: &v1::HintSet) -> std::collections::BTreeSet<&str> {
    hints.hints.iter().map(|hint| &hint.host[..2]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn executors_of_an_application_that_ran_before_are_hinted_into_one_rack() {
    let server = Server::start(spark(1..4, |_| None)).await;
    let world = World::with(&[("placer", "guard = true")]).await;
    let _feed = world.cluster(3, 2, 8_192).await;
    let unknown = executors(&world, DRIVERS_KEY).await;
    assert_eq!(unknown.withheld.unwrap().reason, "nothing_known");
    start_spark_history_server(&options(&server), None, &world.running().daemon, &Metrics::new()).unwrap();
    let hints =
        until_said(&world, DRIVERS_KEY, "edges from 3 earlier runs of spark:ann:join of day #, last at 20").await;
    assert!(hints.withheld.is_none(), "{:?}", hints.withheld);
    assert_eq!(racks(&hints).len(), 1, "{:?}", hints.hints);
    let [ours, yarns] = [hints.terms.unwrap(), hints.baseline.unwrap()].map(|terms| terms.cross_rack_bytes.unwrap());
    assert!(ours == 0.0 && yarns > 40e6, "of 90 MB between executors: {ours} and {yarns}");
    let status = world.until("it answers", |status| status.servers.iter().any(|server| server.in_use)).await;
    let server = &status.servers[0];
    assert_eq!((&*server.source, &*server.state), ("spark_history_server", "answers"));
}

/// Recorded of a real one, see `spark_history.rs` of the daemon.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_real_history_server_says_becomes_an_edge_among_executors() {
    let server = Server::start(|path: &str| match path.split('?').next().unwrap() {
        "/api/v1/applications" => http("200 OK", include_str!("../data/spark/applications.json")),
        "/api/v1/applications/application_1700000000000_0012/1/stages" => http("200 OK", "[ ]"),
        "/api/v1/applications/application_1700000000000_0012/1/allexecutors" => {
            http("200 OK", include_str!("../data/spark/allexecutors.json"))
        }
        other => panic!("{other}"),
    })
    .await;
    let world = World::with(&[("placer", "guard = true")]).await;
    let _feed = world.cluster(3, 2, 8_192).await;
    start_spark_history_server(&options(&server), None, &world.running().daemon, &Metrics::new()).unwrap();
    let key = "spark:ann:join of spark";
    let hints =
        until_said(&world, key, "edges from 1 earlier run of spark:ann:join of spark, last at 2026-11-24T17:04:55Z")
            .await;
    assert!(hints.withheld.is_none() && racks(&hints).len() == 1, "{hints:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_known_by_the_name_under_which_it_was_submitted() {
    let server = Server::start(spark(1..3, |_| None)).await;
    let unknown = "{\"RemoteException\":{\"exception\":\"NotFoundException\"}}";
    // The first is not known to the ResourceManager any more, and nobody knows another name for it.
    let manager = Server::start(move |path: &str| match path.contains("application_1_0002") {
        true => {
            http("200 OK", "{\"app\":{\"user\":\"ann\",\"name\":\"io.hintd.Join 7\",\"applicationType\":\"SPARK\"}}")
        }
        false => http("404 Not Found", unknown),
    })
    .await;
    let world = World::start().await;
    let _feed = world.cluster(3, 2, 8_192).await;
    let (options, managers) = (options(&server), managers(&manager));
    start_spark_history_server(&options, Some(&managers), &world.running().daemon, &Metrics::new()).unwrap();
    until_said(&world, KEY, "edges from 1 earlier run of").await;
    until_said(&world, DRIVERS_KEY, "edges from 1 earlier run of").await;
    assert!(manager.asked().iter().all(|path| path.starts_with("/ws/v1/cluster/apps/application_1_")));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_no_resource_manager_answers_nothing_is_learnt_and_nothing_lost() {
    let server = Server::start(spark(1..3, |_| None)).await;
    let manager = Server::start(|_: &str| http("503 Service Unavailable", "")).await;
    let world = World::start().await;
    let _feed = world.cluster(3, 2, 8_192).await;
    let (options, managers) = (options(&server), managers(&manager));
    start_spark_history_server(&options, Some(&managers), &world.running().daemon, &Metrics::new()).unwrap();
    world.until("it answers", |status| status.servers.iter().any(|server| server.in_use)).await;
    let before = manager.asked().len();
    let began = Instant::now();
    while manager.asked().len() < before + 3 {
        assert!(began.elapsed() < SOON, "it asks again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.counter("history_runs").await, 0);
    manager.says(|_| {
        http("200 OK", "{\"app\":{\"user\":\"ann\",\"name\":\"io.hintd.Join 7\",\"applicationType\":\"SPARK\"}}")
    });
    until_said(&world, KEY, "edges from 2 earlier runs of").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_application_that_makes_no_sense_is_passed_over_and_counted() {
    for (reason, said) in [
        ("nonsense", http("200 OK", "<html>")),
        ("nonsense", http("200 OK", "[{\"id\":\"1\",\"totalShuffleRead\":-1}]")),
        ("refused", http("404 Not Found", "no such app")),
        ("too_large", http("200 OK", &format!("[{}]", " ".repeat(1 << 20)))),
        ("late", Said(http("200 OK", "[]").0, Duration::from_secs(3))),
    ] {
        let broken = move |path: &str| path.contains("_0002/1/allexecutors").then(|| said.clone());
        let server = Server::start(spark(1..4, broken)).await;
        let (world, metrics) = (World::start().await, Metrics::new());
        let _feed = world.cluster(1, 2, 8_192).await;
        start_spark_history_server(&options(&server), None, &world.running().daemon, &metrics).unwrap();
        until_said(&world, DRIVERS_KEY, "edges from 2 earlier runs of").await;
        let counted = format!(
            "hintd_history_server_passed_over_total{{result=\"{reason}\",server=\"{}\"}} 1",
            server.address.authority
        );
        let page = metrics.render();
        let labels = format!("server=\"{}\",result=\"{reason}\"", server.address.authority);
        assert!(
            page.contains(&counted) || page.contains(&format!("passed_over_total{{{labels}}} 1")),
            "{reason}: {page}"
        );
        assert_eq!(world.counter("history_runs").await, 2, "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_with_stages_that_failed_is_not_learnt_from() {
    let failed = |path: &str| path.contains("_0003/1/stages").then(|| http("200 OK", "[{\"status\":\"FAILED\"}]"));
    let server = Server::start(spark(1..4, failed)).await;
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    start_spark_history_server(&options(&server), None, &world.running().daemon, &Metrics::new()).unwrap();
    until_said(&world, DRIVERS_KEY, "edges from 2 earlier runs of").await;
    tokio::time::sleep(Duration::from_millis(100)).await; // for one more than it should
    assert_eq!(world.counter("history_runs").await, 2);
    let stages = |path: &&String| path.contains("_0003/1/stages?status=failed&status=active");
    assert_eq!(server.asked().iter().filter(stages).count(), 1, "it is not asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_server_that_talks_nonsense_changes_nothing_and_is_said_to_be_silent() {
    for nonsense in ["<html>", "{\"apps\":[]}", "[{\"id\":7}]"] {
        let server = Server::start(move |_: &str| http("200 OK", nonsense)).await;
        let world = World::start().await;
        let _feed = world.cluster(1, 2, 8_192).await;
        start_spark_history_server(&options(&server), None, &world.running().daemon, &Metrics::new()).unwrap();
        let silent = |status: &v1::StatusResponse| status.degraded == ["spark_history_server_silent"];
        world.until("it was asked", silent).await;
        server.says(spark(1..3, |_| None));
        until_said(&world, DRIVERS_KEY, "edges from 2 earlier runs of").await;
        world.until("it answers", |status| status.degraded.is_empty()).await;
    }
}
