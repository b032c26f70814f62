//! Recurring Spark applications from a Spark history server that answers as a real one does, and as broken ones do. Beside
//! a real one: tests/hadoop/worth.

use crate::hadoop_server::{Said, Server, asked, http};
use crate::world::{SOON, World, request};
use hintd::hadoop::{HistoryServerOptions, ResourceManagerOptions, start_spark_history_server};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static ASKED: AtomicU64 = AtomicU64::new(0);

/// As the ResourceManager's processor makes it of what the application was called when it was submitted.
const KEY: &str = "spark:ann:io.hintd.Join #";
/// The same of what its driver calls itself.
const DRIVERS_KEY: &str = "spark:ann:join of day #";
/// What a ResourceManager says of an application of [`KEY`].
const NAMED: &str = "{\"app\":{\"user\":\"ann\",\"name\":\"io.hintd.Join 7\",\"applicationType\":\"SPARK\"}}";
const UNKNOWN: &str = "{\"RemoteException\":{\"exception\":\"NotFoundException\"}}";

/// A ResourceManager that leads, and says this of applications.
fn leading(says: impl Fn(&str) -> Said + Send + Sync + 'static) -> impl Fn(&str) -> Said {
    move |path: &str| match path {
        "/ws/v1/cluster/info" => http("200 OK", "{\"clusterInfo\":{\"id\":1,\"haState\":\"ACTIVE\"}}"),
        path => says(path),
    }
}

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

fn options(server: &Server) -> HistoryServerOptions {
    let servers = asked([server], "", Duration::from_millis(20));
    HistoryServerOptions { servers, lookback: Duration::from_secs(3_600), jobs_per_poll: 100 }
}

fn managers<'a>(servers: impl IntoIterator<Item = &'a Server>) -> ResourceManagerOptions {
    ResourceManagerOptions {
        servers: asked(servers, "", Duration::from_millis(20)),
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

/// Applications that were passed over for that reason.
fn passed_over(metrics: &Metrics, server: &Server, reason: &str) -> u64 {
    let page = metrics.render();
    let labels = [format!("server=\"{}\"", server.address.authority), format!("result=\"{reason}\"")];
    let counted = |line: &&str| {
        line.starts_with("hintd_history_server_passed_over_total{") && labels.iter().all(|label| line.contains(label))
    };
    page.lines().find(counted).map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Waits until so many applications were passed over for that reason.
async fn until_passed_over(metrics: &Metrics, server: &Server, (reason, count): (&str, u64)) {
    let began = Instant::now();
    while passed_over(metrics, server, reason) < count {
        assert!(began.elapsed() < SOON, "not in time: {reason}; {}", metrics.render());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a server was asked so often for such a path.
async fn until_asked(server: &Server, part: &str, times: usize) {
    let began = Instant::now();
    while count(&server.asked(), part) < times {
        assert!(began.elapsed() < SOON, "it is asked for as long as it takes: {:?}", server.asked());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn count(asked: &[String], part: &str) -> usize {
    asked.iter().filter(|path| path.contains(part)).count()
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
    // The first is not known to the ResourceManager any more, and nobody knows another name for it.
    let manager = Server::start(move |path: &str| match path.contains("application_1_0002") {
        true => http("200 OK", NAMED),
        false => http("404 Not Found", UNKNOWN),
    })
    .await;
    let world = World::start().await;
    let _feed = world.cluster(3, 2, 8_192).await;
    let (options, managers) = (options(&server), managers([&manager]));
    start_spark_history_server(&options, Some(&managers), &world.running().daemon, &Metrics::new()).unwrap();
    until_said(&world, KEY, "edges from 1 earlier run of").await;
    until_said(&world, DRIVERS_KEY, "edges from 1 earlier run of").await;
    assert!(manager.asked().iter().all(|path| path.starts_with("/ws/v1/cluster/apps/application_1_")));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_no_resource_manager_answers_nothing_is_learnt_and_nothing_lost() {
    let server = Server::start(spark(1..3, |_| None)).await;
    let manager = Server::start(|_: &str| http("503 Service Unavailable", "")).await;
    let (world, metrics) = (World::start().await, Metrics::new());
    let _feed = world.cluster(3, 2, 8_192).await;
    let (options, managers) = (options(&server), managers([&manager]));
    start_spark_history_server(&options, Some(&managers), &world.running().daemon, &metrics).unwrap();
    world.until("it answers", |status| status.servers.iter().any(|server| server.in_use)).await;
    until_asked(&manager, "_0001?", 6).await; // at more polls than one that is refused
    assert_eq!(count(&manager.asked(), "_0002?"), 0, "nobody answers for another either");
    assert_eq!(world.counter("history_runs").await, 0);
    manager.says(leading(|_| http("200 OK", NAMED)));
    until_said(&world, KEY, "edges from 2 earlier runs of").await;
    assert_eq!(passed_over(&metrics, &server, "refused"), 0);
}

/// A refusal of one on standby is no word on the application, as where a filter before it wants a login.
#[tokio::test(flavor = "multi_thread")]
async fn while_none_leads_a_refusal_of_one_on_standby_loses_nothing_either() {
    for refusal in ["401 Unauthorized", "403 Forbidden", "500 Internal Server Error"] {
        let server = Server::start(spark(1..3, |_| None)).await;
        let away = Server::start(|_: &str| http("503 Service Unavailable", "")).await;
        let standby = Server::start(move |path: &str| match path {
            "/ws/v1/cluster/info" => http("200 OK", "{\"clusterInfo\":{\"id\":2,\"haState\":\"STANDBY\"}}"),
            _ => http(refusal, ""),
        })
        .await;
        let (world, metrics) = (World::start().await, Metrics::new());
        let _feed = world.cluster(3, 2, 8_192).await;
        let (options, managers) = (options(&server), managers([&away, &standby]));
        start_spark_history_server(&options, Some(&managers), &world.running().daemon, &metrics).unwrap();
        until_asked(&standby, "_0001?", 6).await; // at more polls than one that is refused
        assert_eq!(count(&standby.asked(), "_0002?"), 0, "nobody answers for another either");
        away.says(leading(|_| http("200 OK", NAMED)));
        until_said(&world, KEY, "edges from 2 earlier runs of").await;
        assert_eq!(passed_over(&metrics, &server, "refused"), 0, "{refusal}");
    }
}

/// As where its filter wants a login for applications.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_resource_manager_tells_of_no_application_nothing_is_held_against_any() {
    let server = Server::start(spark(1..4, |_| None)).await;
    let manager = Server::start(leading(|_| http("401 Unauthorized", ""))).await;
    let (world, metrics) = (World::start().await, Metrics::new());
    let _feed = world.cluster(3, 2, 8_192).await;
    let (options, managers) = (options(&server), managers([&manager]));
    start_spark_history_server(&options, Some(&managers), &world.running().daemon, &metrics).unwrap();
    for application in ["_0001?", "_0002?", "_0003?"] {
        until_asked(&manager, application, 4).await;
    }
    manager.says(leading(|_| http("200 OK", NAMED)));
    until_said(&world, KEY, "edges from 3 earlier runs of").await;
    assert_eq!(passed_over(&metrics, &server, "refused"), 0);
}

/// Neither does one at which it breaks off, or for which a proxy before it answers: it leads, so others are asked for.
#[tokio::test(flavor = "multi_thread")]
async fn one_application_that_the_resource_manager_does_not_tell_of_holds_up_no_other_and_is_passed_over() {
    for (reason, said, at_once) in [
        ("refused", http("500 Internal Server Error", ""), 1),
        ("refused", http("401 Unauthorized", ""), 1),
        ("refused", http("403 Forbidden", ""), 1),
        ("nonsense", http("200 OK", "{\"app\":{\"name\":\"whose?\"}}"), 1),
        ("refused", http("503 Service Unavailable", ""), 2), // once more when it is known that it leads
        ("nonsense", http("200 OK", "<html>"), 2),
        ("broken", Said(String::new(), Duration::ZERO), 2),
    ] {
        let server = Server::start(spark(1..4, |_| None)).await;
        let manager = Server::start(leading(move |path: &str| match path.contains("application_1_0001") {
            true => said.clone(),
            false => http("200 OK", NAMED),
        }))
        .await;
        let (world, metrics) = (World::start().await, Metrics::new());
        let _feed = world.cluster(3, 2, 8_192).await;
        let (options, managers) = (options(&server), managers([&manager]));
        start_spark_history_server(&options, Some(&managers), &world.running().daemon, &metrics).unwrap();
        until_said(&world, KEY, "edges from 2 earlier runs of").await;
        until_passed_over(&metrics, &server, (reason, 1)).await;
        // It is over: another application comes, and nobody asks for the first one any more.
        server.says(spark(1..5, |_| None));
        until_said(&world, KEY, "edges from 3 earlier runs of").await;
        let asked = manager.asked();
        assert_eq!((count(&asked, "_0001?"), count(&asked, "_0002?")), (3 * at_once, 1), "{reason}: {asked:?}");
        let (first, again) = asked.split_at(asked.iter().position(|path| path.contains("_0002?")).unwrap());
        assert_eq!(
            (count(first, "_0001?"), count(again, "_0001?")),
            (at_once, 2 * at_once),
            "in the same poll: {asked:?}"
        );
        assert_eq!(passed_over(&metrics, &server, reason), 1, "{}", metrics.render());
    }
}

/// Three runs at a time: of more the last three come first, and an older one is told too late.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_resource_managers_the_one_that_answered_last_is_asked_first() {
    let server = Server::start(spark(1..4, |_| None)).await;
    let standby = |_: &str| http("307 Temporary Redirect", "This is standby RM.");
    let [first, second] = [Server::start(standby).await, Server::start(leading(|_: &str| http("200 OK", NAMED))).await];
    let world = World::start().await;
    let _feed = world.cluster(3, 2, 8_192).await;
    let (options, managers) = (options(&server), managers([&first, &second]));
    start_spark_history_server(&options, Some(&managers), &world.running().daemon, &Metrics::new()).unwrap();
    until_said(&world, KEY, "edges from 3 earlier runs of").await;
    assert_eq!((first.asked().len(), second.asked().len()), (1, 3));
    // Now the other one leads.
    first.says(leading(|_| http("200 OK", NAMED)));
    second.says(standby);
    server.says(spark(1..7, |_| None));
    until_said(&world, KEY, "edges from 6 earlier runs of").await;
    assert_eq!((first.asked().len(), second.asked().len()), (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_server_that_fails_at_one_application_is_asked_again_at_three_polls_at_most() {
    // It answers at the third poll, or never. It is the last run that fails: older ones would be told too late.
    for (reason, recovers, said) in [
        ("refused", true, http("500 Internal Server Error", "")),
        ("refused", true, http("503 Service Unavailable", "")),
        ("refused", false, http("503 Service Unavailable", "")),
        ("broken", true, Said(String::new(), Duration::ZERO)),
        ("broken", false, Said("what is this?".to_owned(), Duration::ZERO)),
    ] {
        let asked = AtomicU64::new(0);
        let broken = move |path: &str| {
            let last = path.contains("_0003/1/allexecutors");
            let fails = last && (!recovers || asked.fetch_add(1, Ordering::Relaxed) < 2);
            fails.then(|| said.clone())
        };
        let server = Server::start(spark(1..4, broken)).await;
        let (world, metrics) = (World::start().await, Metrics::new());
        let _feed = world.cluster(1, 2, 8_192).await;
        start_spark_history_server(&options(&server), None, &world.running().daemon, &metrics).unwrap();
        let lost = u64::from(!recovers);
        until_passed_over(&metrics, &server, (reason, lost)).await;
        until_said(&world, DRIVERS_KEY, &format!("edges from {} earlier runs of", 3 - lost)).await;
        tokio::time::sleep(Duration::from_millis(100)).await; // for one more than it should
        assert_eq!(count(&server.asked(), "_0003/1/allexecutors"), 3, "{reason}");
        assert_eq!(passed_over(&metrics, &server, reason), lost, "{reason}");
    }
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
        // Where a poll ends at one, the others have their turn before it is asked for again.
        until_passed_over(&metrics, &server, (reason, 1)).await;
        assert_eq!(passed_over(&metrics, &server, reason), 1, "{reason}");
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
