//! Shuffles of running jobs by their ApplicationMasters, through a ResourceManager's web proxy that answers as a real one
//! does, and as broken ones do. Beside a real one: tests/hadoop/holding.

use crate::hadoop_server::{Said, Server, asked, http};
use crate::world::{SOON, World, refusal, request};
use hintd::hadoop::{ResourceManagerOptions, start};
use hintd::telemetry::metrics::Metrics;
use hintd_client::Client;
use hintd_client::wire::v1;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tonic::Code;

const GB: u64 = 1_000_000_000;
const ALWAYS: &str = "progress = \"20ms\"";

/// A job as its ApplicationMaster has it.
#[derive(Clone, Copy)]
struct Job {
    /// Completed, and all.
    maps: (u64, u64),
    reduces: u64,
    wrote: u64,
    fetched: u64,
    /// Reduces that have all of their bytes.
    received: u64,
}

/// Half of the maps wrote half of so many bytes.
fn half(gb: u64) -> Job {
    Job { maps: (5, 10), reduces: 4, wrote: gb * GB / 2, fetched: 0, received: 0 }
}

impl Job {
    /// What it says where it is asked at `path` beneath its own.
    fn body(self, id: &str, path: &str) -> String {
        let Self { maps: (ended, maps), reduces, wrote, fetched, received } = self;
        let row = |at| {
            let (progress, status) = if at < received { (33.5, "reduce > sort") } else { (33.3, "9 / 10 copied.") };
            format!(
                "{{\"id\":\"r{at}\",\"progress\":{progress},\"state\":\"RUNNING\",\"type\":\"REDUCE\",\"status\":\"{status}\"}}"
            )
        };
        let counter = |name, bytes| format!("{{\"name\":\"{name}\",\"totalCounterValue\":{bytes}}}");
        match path {
            "" => format!(
                "{{\"job\":{{\"id\":\"{id}\",\"mapsTotal\":{maps},\"mapsCompleted\":{ended},\
                 \"reducesTotal\":{reduces},\"reducesCompleted\":0}}}}"
            ),
            "/counters" => format!(
                "{{\"jobCounters\":{{\"id\":\"{id}\",\"counterGroup\":[{{\"counterGroupName\":\
                 \"org.apache.hadoop.mapreduce.TaskCounter\",\"counter\":[{},{}]}}]}}}}",
                counter("MAP_OUTPUT_MATERIALIZED_BYTES", wrote),
                counter("REDUCE_SHUFFLE_BYTES", fetched)
            ),
            "/tasks?type=r" => {
                let rows: Vec<String> = (0..reduces).map(row).collect();
                format!("{{\"tasks\":{{\"task\":[{}]}}}}", rows.join(","))
            }
            other => panic!("nobody should ask for {other}"),
        }
    }
}

/// Answers for the jobs of applications by their numbers; `None`: the proxy knows no such application.
fn manager(jobs: impl Fn(u32, &str) -> Option<Said> + Send + Sync + 'static) -> impl Fn(&str) -> Said + Send + Sync {
    move |question| {
        let row = |host: &str| {
            format!(
                "{{\"id\":\"{host}:1\",\"nodeHostName\":\"{host}\",\"rack\":\"/rack{}\",\"state\":\"RUNNING\",\
                 \"usedMemoryMB\":0,\"availMemoryMB\":8192,\"usedVirtualCores\":0,\"availableVirtualCores\":32}}",
                &host[1..2]
            )
        };
        if question.starts_with("/ws/v1/cluster/info") {
            return http("200 OK", "{\"clusterInfo\":{\"id\":1,\"haState\":\"ACTIVE\"}}");
        }
        if question.starts_with("/ws/v1/cluster/nodes") {
            let rows = ["r0n0", "r0n1", "r1n0", "r1n1"].map(row).join(",");
            return http("200 OK", &format!("{{\"nodes\":{{\"node\":[{rows}]}}}}"));
        }
        let rest = question.strip_prefix("/proxy/application_1_").expect(question);
        let (number, rest) = rest.split_once('/').expect(question);
        jobs(number.parse().unwrap(), rest).unwrap_or_else(|| http("404 Not Found", "<html>no such application</html>"))
    }
}

/// What is asked beneath the job's own path.
fn beneath(number: u32, rest: &str) -> (String, String) {
    let id = format!("job_1_{number:04}");
    let path = rest.strip_prefix(&format!("ws/v1/mapreduce/jobs/{id}")).expect(rest).to_owned();
    (id, path)
}

/// All of them are the job that `of` says.
fn jobs(of: impl Fn(u32) -> Job + Send + Sync + 'static) -> impl Fn(u32, &str) -> Option<Said> + Send + Sync {
    move |number, rest| {
        let (id, path) = beneath(number, rest);
        Some(http("200 OK", &of(number).body(&id, &path)))
    }
}

struct Scene {
    world: World,
    server: Server,
    metrics: Metrics,
}

/// Two racks of two nodes: uplinks are taken to carry 1 GB a second together, so that 2 GB are heavy.
async fn scene(hold: &[&'static str], jobs: impl Fn(u32, &str) -> Option<Said> + Send + Sync + 'static) -> Scene {
    let mut extra = vec![("queues.\"*\"", "hold = true")];
    extra.extend(hold.iter().map(|line| ("hold", *line)));
    let world = World::with(&extra).await;
    let (server, metrics) = (Server::start(manager(jobs)).await, Metrics::new());
    let options = ResourceManagerOptions {
        servers: asked([&server], "", Duration::from_millis(50)),
        unheard_kept: Duration::from_secs(3_600),
        absent_kept: Duration::from_secs(1),
        applications: None,
        stated: None,
    };
    start(options, &world.running().daemon, &metrics).unwrap();
    world.until("all nodes", |status| status.nodes_usable == 4).await;
    Scene { world, server, metrics }
}

fn wish(number: u32) -> v1::ShuffleTurnRequest {
    v1::ShuffleTurnRequest {
        application_id: format!("application_1_{number:04}"),
        attempt: 1,
        queue: "default".to_owned(),
        group: "p10".to_owned(),
        receivers: 2,
        memory_mb: 1_024,
        ..Default::default()
    }
}

impl Scene {
    async fn turn(&self, wish: v1::ShuffleTurnRequest) -> v1::ShuffleTurnResponse {
        self.world.client.shuffle_turn(wish).await.unwrap()
    }

    async fn until(&self, number: u32, wanted: impl Fn(&v1::ShuffleTurnResponse) -> bool) -> v1::ShuffleTurnResponse {
        let began = Instant::now();
        loop {
            let found = self.turn(wish(number)).await;
            if wanted(&found) {
                return found;
            }
            assert!(began.elapsed() < SOON, "not in time: {found:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Once so many polls ended like that.
    async fn counted(&self, result: &str, polls: u64) {
        let (start, began) = (format!("hintd_shuffle_progress_polls_total{{result=\"{result}\"}} "), Instant::now());
        loop {
            let text = self.metrics.render();
            let count =
                text.lines().find_map(|line| line.strip_prefix(&start)).map_or(0, |count| count.parse().unwrap());
            if count >= polls {
                return;
            }
            assert!(began.elapsed() < SOON, "not in time: {polls} of {start}: {count}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn proxied(&self) -> Vec<String> {
        self.server.asked().into_iter().filter(|question| question.starts_with("/proxy/")).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_never_ran_before_take_turns_by_what_their_application_masters_count() {
    let state = Arc::new(Mutex::new(half(40)));
    let third = Arc::clone(&state);
    let of = move |number| if number == 3 { *third.lock().unwrap() } else { half(u64::from(number) * 10) };
    let scene = scene(&[ALWAYS], jobs(of)).await;
    assert_eq!(scene.turn(wish(1)).await.reason, "not_known", "nobody was asked yet");
    for number in [1, 2] {
        let found = scene.until(number, |found| found.reason == "turn").await;
        assert_eq!((found.shuffle_bytes, &*found.bytes_from), (u64::from(number) * 10 * GB, "application_master"));
        assert_eq!(found.at_most, Some([8, 2][number as usize - 1]));
    }
    let held = scene.until(3, |found| found.reason == "held").await;
    assert_eq!((held.at_most, held.before, held.shuffle_bytes), (Some(0), 2, 40 * GB));
    // It has fetched all but 15 GB: job 2 has 20 left.
    *state.lock().unwrap() = Job { fetched: 25 * GB, ..half(40) };
    scene.until(3, |found| found.reason == "turn").await;
    scene.until(2, |found| found.reason == "held").await;
    // Three of its four reduces have all: 2 GB are left at most.
    let whole = Job { maps: (10, 10), wrote: 40 * GB, ..half(40) };
    *state.lock().unwrap() = Job { received: 3, ..whole };
    scene.until(3, |found| found.reason == "turn").await;
    // All have, and it still works.
    *state.lock().unwrap() = Job { received: 4, ..whole };
    scene.until(3, |found| found.reason == "free").await;
    scene.until(2, |found| found.reason == "turn").await;
    scene.counted("answered", 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_map_has_ended_nothing_is_known_and_a_callers_own_word_counts_more() {
    let scene = scene(&[ALWAYS], jobs(|_| Job { maps: (0, 10), ..half(50) })).await;
    scene.turn(wish(1)).await;
    scene.counted("answered", 2).await;
    let found = scene.turn(wish(1)).await;
    assert_eq!((&*found.reason, found.shuffle_bytes, &*found.bytes_from), ("not_known", 0, ""));
    assert!(scene.proxied().iter().all(|path| path.ends_with("/jobs/job_1_0001")), "{:?}", scene.proxied());
    let own = scene.turn(v1::ShuffleTurnRequest { shuffle_bytes: 30 * GB, ..wish(2) }).await;
    assert_eq!((&*own.reason, own.shuffle_bytes, &*own.bytes_from), ("turn", 30 * GB, "caller"));
    scene.counted("answered", 5).await;
    assert!(scene.proxied().iter().all(|path| !path.contains("_0002")), "who knows is not asked about");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_no_receivers_yet_is_asked_about_and_in_nobodys_way() {
    let scene = scene(&[ALWAYS], jobs(|_| half(10))).await;
    for number in [1, 2] {
        let early = || v1::ShuffleTurnRequest { receivers: 0, ..wish(number) };
        let began = Instant::now();
        while scene.turn(early()).await.bytes_from != "application_master" {
            assert!(began.elapsed() < SOON, "not in time");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(scene.turn(early()).await.reason, "free");
    }
    let own = scene.turn(v1::ShuffleTurnRequest { shuffle_bytes: 30 * GB, ..wish(3) }).await;
    assert_eq!(own.reason, "turn", "the others are smaller, and want none");
    assert_eq!(scene.turn(wish(1)).await.reason, "turn", "known at its first ask");
    assert_eq!(scene.turn(wish(2)).await.reason, "turn");
    let own = scene.turn(v1::ShuffleTurnRequest { shuffle_bytes: 30 * GB, ..wish(3) }).await;
    assert_eq!(own.reason, "held");
}

#[tokio::test(flavor = "multi_thread")]
async fn application_masters_that_answer_nonsense_or_not_at_all_cost_nothing_but_the_knowledge() {
    let elsewhere = Server::start(|_| http("200 OK", "{}")).await;
    let to = |place: &str| {
        Some(Said(
            format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            Duration::ZERO,
        ))
    };
    let whole = half(10).body("job_1_0001", "");
    let replaced = |from: &str, by: &str| Some(http("200 OK", &whole.replace(from, by)));
    let body = |text: &str| Some(http("200 OK", text));
    let cases: Vec<(&str, Option<Said>)> = vec![
        ("refused", None),
        ("refused", Some(http("500 Internal Server Error", "Connection refused"))),
        ("nonsense", body("<html>log in</html>")),
        ("nonsense", body("{\"job\":7}")),
        ("nonsense", body(&"[".repeat(100_000))),
        ("nonsense", replaced("job_1_0001", "job_1_0002")),
        ("nonsense", replaced("\"mapsTotal\":10", "\"mapsTotal\":-1")),
        ("nonsense", replaced("\"mapsTotal\":10", "\"mapsTotal\":NaN")),
        ("nonsense", replaced("\"mapsTotal\":10", "\"mapsTotal\":1e300")),
        ("nonsense", replaced("\"mapsTotal\":10", "\"mapsTotal\":4")),
        ("too_large", body(&"x".repeat(2 << 20))),
        ("redirected", to(&format!("{}/proxy/application_1_0001/x", elsewhere.address))),
        ("redirected", to("/proxy/application_1_0002/ws/v1/mapreduce/jobs/job_1_0002")),
        ("redirected", to("/cluster/app/application_1_0001")),
        ("redirected", to("/proxy/application_1_0001/ws/v1/mapreduce/jobs/job_1_0001")), // round and round
        ("late", Some(Said(whole.clone(), Duration::from_secs(3_600)))),
        ("broken", Some(Said("no HTTP at all".to_owned(), Duration::ZERO))),
    ];
    let scene = scene(&[ALWAYS], |_, _| None).await;
    for (at, (result, said)) in cases.into_iter().enumerate() {
        let fresh = format!("hintd_shuffle_progress_polls_total{{result=\"{result}\"}} ");
        let text = scene.metrics.render();
        let before = text.lines().find_map(|line| line.strip_prefix(&fresh)).map_or(0, |count| count.parse().unwrap());
        // Each case is another application's, so that no wait of an earlier one counts.
        let number = 100 + at as u32;
        let said = said.map(|Said(text, after)| Said(text.replace("_1_0001", &format!("_1_{number:04}")), after));
        scene.server.says(manager(move |asked, _| if asked == number { said.clone() } else { None }));
        assert_eq!(scene.turn(wish(number)).await.reason, "not_known");
        scene.counted(result, before + 1).await;
        assert_eq!(scene.turn(wish(number)).await.reason, "not_known", "case {at}, {result}");
    }
    assert_eq!(elsewhere.asked(), [""; 0], "no other host is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_redirect_within_the_application_at_the_same_proxy_is_followed() {
    let scene = scene(&[ALWAYS], |number, rest| {
        let Some(rest) = rest.strip_prefix("again/") else {
            let place = format!("/proxy/application_1_{number:04}/again/{rest}");
            let text = format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n");
            return Some(Said(text, Duration::ZERO));
        };
        jobs(|_| half(10))(number, rest)
    })
    .await;
    let found = scene.until(1, |found| found.reason == "turn").await;
    assert_eq!(found.shuffle_bytes, 10 * GB);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_jobs_are_asked_at_a_time_and_each_no_more_often_than_that() {
    const SLOW: Duration = Duration::from_millis(100);
    let asks = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asks);
    let scene = scene(&["progress = \"10m\""], move |number, rest| {
        seen.lock().unwrap().push(Instant::now());
        let Said(text, _) = jobs(|_| half(10))(number, rest)?;
        Some(Said(text, SLOW))
    })
    .await;
    for number in 1..=10 {
        scene.turn(wish(number)).await;
    }
    scene.counted("answered", 10).await;
    for number in 1..=10 {
        scene.turn(wish(number)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await; // for one more than there should be
    let asks = asks.lock().unwrap();
    assert_eq!(asks.len(), 2 * 10, "maps run yet, so reduces are not listed");
    // A fifth question comes when the first one of five is answered at the earliest.
    assert!(asks.windows(5).all(|five| five[4] - five[0] >= SLOW - Duration::from_millis(5)), "{asks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reduces_of_a_job_with_too_many_of_them_are_not_listed_and_bytes_say_when_all_are_there() {
    let of = |fetched| Job { maps: (10, 10), reduces: 2_001, wrote: 10 * GB, fetched, received: 0 };
    let scene = scene(&[ALWAYS], jobs(move |_| of(4 * GB))).await;
    let found = scene.until(1, |found| found.reason == "turn").await;
    assert_eq!(found.shuffle_bytes, 10 * GB);
    scene.server.says(manager(jobs(move |_| of(10 * GB))));
    scene.until(1, |found| found.reason == "free").await;
    assert!(scene.proxied().iter().all(|path| !path.contains("/tasks")), "{:?}", scene.proxied());
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_have_nobody_asked_about_an_attempt_and_it_can_be_switched_off() {
    let here = scene(&[ALWAYS], jobs(|_| half(10))).await;
    here.world.hints(request("r1", 1, 1, 1_024)).await;
    let stranger = Client::connect(&here.world.running().grpc.to_string()).await.unwrap();
    let (code, message) = refusal(stranger.shuffle_turn(wish(1)).await);
    assert_eq!(code, Code::PermissionDenied, "{message}");
    let off = scene(&["progress = \"0s\""], jobs(|_| half(10))).await;
    assert_eq!(off.turn(wish(2)).await.reason, "not_known");
    tokio::time::sleep(Duration::from_millis(500)).await; // for a question that should not come
    assert_eq!((here.proxied(), off.proxied()), (vec![], vec![]));
    assert_eq!(off.turn(wish(2)).await.reason, "not_known");
    here.turn(wish(1)).await;
    here.until(1, |found| found.bytes_from == "application_master").await;
}
