//! What hints are worth: held-out applications, their times from servers that answer as real ones do, and keys that are
//! stopped.

use crate::hadoop_server::{Said, Server, asked, http};
use crate::streams::{follow_start, next};
use crate::world::{World, heartbeat, request};
use hintd::hadoop::{HistoryServerOptions, ResourceManagerOptions, start, start_history_server};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tonic::Code;

const KEY: &str = "etl";

/// Applications that a ResourceManager knows: after how many milliseconds each ended; `None`: it runs.
type Applications = Arc<Mutex<BTreeMap<u32, Option<u64>>>>;

fn manager(applications: &Applications) -> impl Fn(&str) -> Said + Send + Sync + 'static {
    const BEGAN: u64 = 1_700_000_000_000;
    let applications = Arc::clone(applications);
    let row = |number: u32, took: Option<u64>| {
        let (state, status) = if took.is_some() { ("FINISHED", "SUCCEEDED") } else { ("RUNNING", "UNDEFINED") };
        let (finished, elapsed) = (took.map_or(0, |took| BEGAN + took), took.unwrap_or(5));
        format!(
            "{{\"id\":\"application_1_{number:04}\",\"state\":\"{state}\",\"finalStatus\":\"{status}\",\
             \"startedTime\":{BEGAN},\"finishedTime\":{finished},\"elapsedTime\":{elapsed},\"amContainerLogs\":\
             \"http://w1:8042/node/containerlogs/container_1_{number:04}_01_000001/u\"}}"
        )
    };
    let node = |host: &str| {
        format!(
            "{{\"id\":\"{host}:8041\",\"nodeHostName\":\"{host}\",\"rack\":\"/r\",\"state\":\"RUNNING\",\"usedMemoryMB\":0,\
             \"availMemoryMB\":819200,\"usedVirtualCores\":0,\"availableVirtualCores\":800}}"
        )
    };
    move |question| {
        let ok = |body: &str| http("200 OK", body);
        let known = applications.lock().unwrap().clone();
        match question.split(['?', '&']).next().unwrap() {
            "/ws/v1/cluster/info" => ok("{\"clusterInfo\":{\"id\":1,\"haState\":\"ACTIVE\"}}"),
            "/ws/v1/cluster/nodes" => ok(&format!("{{\"nodes\":{{\"node\":[{},{}]}}}}", node("w1"), node("w2"))),
            "/conf" => ok("{\"properties\":[]}"),
            "/ws/v1/cluster/scheduler" => ok("{\"scheduler\":{\"schedulerInfo\":{\"type\":\"capacityScheduler\"}}}"),
            "/ws/v1/cluster/apps" => {
                let live = known.iter().filter(|(_, took)| took.is_none());
                let rows: Vec<String> = live.map(|(number, _)| row(*number, None)).collect();
                ok(&format!("{{\"apps\":{{\"app\":[{}]}}}}", rows.join(",")))
            }
            path if path.ends_with("/containers") => ok("null"),
            path => match path.rsplit('_').next().and_then(|number| number.parse().ok()) {
                Some(number) if known.contains_key(&number) => {
                    ok(&format!("{{\"app\":{}}}", row(number, known[&number])))
                }
                _ => http("404 Not Found", "{\"RemoteException\":{\"exception\":\"NotFoundException\"}}"),
            },
        }
    }
}

fn watch_manager(world: &World, server: &Server) {
    let options = ResourceManagerOptions {
        servers: asked([server], "", Duration::from_millis(50)),
        unheard_kept: Duration::from_secs(3_600),
        absent_kept: Duration::from_secs(60),
        applications: Some(Duration::from_millis(50)),
        stated: None,
    };
    start(options, &world.running().daemon, &Metrics::new()).unwrap();
}

fn run(number: u32) -> v1::RequestHintsRequest {
    v1::RequestHintsRequest { recurring_job_key: KEY.to_owned(), ..request(&format!("r{number}"), number, 2, 1_024) }
}

/// Asks for hints of applications that run, and says which were held out; others got hints.
async fn ask(world: &World, numbers: std::ops::Range<u32>) -> BTreeMap<u32, bool> {
    let mut held_out = BTreeMap::new();
    for number in numbers {
        let hints = world.hints(run(number)).await.hints.unwrap();
        let reason = hints.withheld.as_ref().map(|withheld| withheld.reason.clone());
        assert_eq!(reason.is_some(), hints.hints.is_empty(), "{hints:?}");
        assert!(reason.as_deref().is_none_or(|reason| reason == "holdout"), "{reason:?}");
        let mut admin = world.admin.clone();
        let asked = v1::ExplainRequest { decision_id: hints.decision_id.clone(), ..Default::default() };
        let explained = admin.explain(asked).await.unwrap().into_inner().decision.unwrap();
        assert_eq!(explained.withheld.map(|withheld| withheld.reason), reason, "explain says it, too");
        held_out.insert(number, reason.is_some());
    }
    held_out
}

/// Waits until so many have ended: they are counted once the journal has them.
async fn until_compared(world: &World, applications: u64) -> v1::StatusResponse {
    let wanted = |status: &v1::StatusResponse| status.counters.get("completions_compared") == Some(&applications);
    world.until("all have ended", wanted).await
}

/// A daemon that holds out half, and a ResourceManager; the hinted ones of so many applications end after so many seconds,
/// those held out after ten.
async fn world(applications: u32, hinted: u64) -> (World, Server, Applications, BTreeMap<u32, bool>) {
    let known: Applications = Arc::new(Mutex::new((1..=applications).map(|number| (number, None)).collect()));
    let server = Server::start(manager(&known)).await;
    let world = World::with(&[("worth", "holdout = 0.5"), ("queues.\"*\"", "hold = true")]).await;
    watch_manager(&world, &server);
    world.until("both nodes", |status| status.nodes_usable == 2).await;
    let held_out = ask(&world, 1..applications + 1).await;
    let status = world.status().await;
    assert_eq!(status.completions_awaited, u64::from(applications));
    assert_eq!(status.leases, 2 * held_out.values().filter(|held| !**held).count() as u64);
    for (number, took) in &mut *known.lock().unwrap() {
        let seconds = if held_out[number] { 10 } else { hinted };
        *took = Some(1_000 * seconds + u64::from(number % 5) * 100);
    }
    until_compared(&world, u64::from(applications)).await;
    (world, server, known, held_out)
}

#[tokio::test(flavor = "multi_thread")]
async fn half_are_held_out_and_their_times_are_compared_across_a_restart() {
    let (mut world, _server, _, held_out) = world(60, 5).await;
    let held = held_out.values().filter(|held| **held).count();
    assert!((20..=40).contains(&held), "{held} of 60");
    let status = world.status().await;
    let view = status.holdout[0].clone();
    assert_eq!((view.name.as_str(), view.verdict.as_str(), view.needed), ("*", "faster", 8));
    assert_eq!((view.held_out, view.hinted), (held as u64, 60 - held as u64));
    let [ratio, low, high] = [view.ratio, view.low, view.high].map(Option::unwrap);
    assert!((0.48..0.53).contains(&ratio) && low < ratio && ratio < high && high < 1.0, "{view:?}");
    assert_eq!(status.completions_awaited, 0);
    assert_eq!(status.counters["hints_held_out"], 2 * held as u64);
    assert_eq!((status.leases, status.keys_stopped), (0, 0), "{status:?}");
    let keys = world.admin.clone().list_holdout(v1::ListHoldoutRequest::default()).await.unwrap().into_inner();
    assert_eq!((keys.total, keys.keys[0].name.as_str(), keys.keys[0].verdict.as_str()), (1, KEY, "faster"));
    world.restart().await;
    assert_eq!(world.status().await.holdout, [view]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_with_three_jobs_can_not_tell_yet() {
    let (world, _server, _, _) = world(3, 30).await;
    let status = world.status().await;
    let view = &status.holdout[0];
    assert_eq!((view.verdict.as_str(), view.ratio, view.hinted + view.held_out), ("cant_tell", None, 3));
    assert_eq!(status.keys_stopped, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_hints_make_slower_gets_none_until_an_operator_allows_it() {
    let (mut world, server, known, held_out) = world(60, 30).await;
    let wish = |number: u32| v1::ShuffleTurnRequest {
        application_id: format!("application_1_{number:04}"),
        attempt: 1,
        queue: "default".to_owned(),
        recurring_job_key: KEY.to_owned(),
        receivers: 4,
        shuffle_bytes: 1 << 40,
        ..Default::default()
    };
    for started_anew in [false, true] {
        if started_anew {
            world.restart().await;
            watch_manager(&world, &server);
            world.until("both nodes", |status| status.nodes_usable == 2).await;
        }
        assert_eq!(world.status().await.keys_stopped, 1, "started anew: {started_anew}");
        let number = 101 + u32::from(started_anew);
        known.lock().unwrap().insert(number, None);
        let hints = world.hints(run(number)).await.hints.unwrap();
        assert_eq!(hints.withheld.unwrap().reason, "slower", "{number}");
        let turn = world.client.shuffle_turn(wish(number)).await.unwrap();
        assert_eq!((turn.at_most, turn.reason.as_str()), (None, "slower"));
    }
    assert_eq!(world.status().await.completions_awaited, 0, "there is nothing to compare");
    let mut admin = world.admin.clone();
    let asked = v1::ListHoldoutRequest { stopped_only: true, limit: 0 };
    let listed = admin.list_holdout(asked).await.unwrap().into_inner();
    assert_eq!((listed.keys.len(), listed.keys[0].verdict.as_str()), (1, "slower"));
    assert!(listed.keys[0].stopped_at_ms.is_some() && listed.keys[0].low.unwrap() > 1.02, "{listed:?}");
    let unknown = admin.allow_key(v1::AllowKeyRequest { key: "nothing".to_owned() }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound, "{unknown:?}");
    admin.allow_key(v1::AllowKeyRequest { key: KEY.to_owned() }).await.unwrap();
    assert_eq!(world.status().await.keys_stopped, 0);
    known.lock().unwrap().extend((201..221).map(|number| (number, None)));
    let again = ask(&world, 201..221).await;
    assert!(again.values().any(|held| !*held), "some have hints again: {again:?}");
    let held = *again.iter().find(|(_, held)| **held).unwrap().0;
    assert_eq!(world.client.shuffle_turn(wish(held)).await.unwrap().reason, "holdout", "{held_out:?}");
    world.restart().await;
    assert_eq!(world.status().await.keys_stopped, 0, "what is allowed stays so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_server_tells_how_long_mapreduce_jobs_took() {
    let world = World::with(&[("worth", "holdout = 0.5"), ("worth", "runs = 2")]).await;
    drop(world.cluster(2, 2, 65_536).await);
    let held_out = ask(&world, 1..41).await;
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let row = |(number, held): (&u32, &bool)| {
        let took = if *held { 20_000 } else { 10_000 } + u64::from(number % 5) * 100;
        format!(
            "{{\"id\":\"job_1_{number:04}\",\"name\":\"etl\",\"user\":\"ann\",\"state\":\"SUCCEEDED\",\"submitTime\":{},\
             \"finishTime\":{now},\"mapsTotal\":3,\"reducesTotal\":2}}",
            now - took
        )
    };
    // A job of which hintd was never asked is nobody's.
    let rows: Vec<String> = held_out.iter().chain([(&77, &true)]).map(row).collect();
    let jobs = format!("{{\"jobs\":{{\"job\":[{}]}}}}", rows.join(","));
    let server = Server::start(move |question| match question.split('?').next().unwrap() {
        path if path.ends_with("/jobs") => http("200 OK", &jobs),
        _ => http("404 Not Found", ""),
    })
    .await;
    let options = HistoryServerOptions {
        servers: asked([&server], "", Duration::from_millis(50)),
        lookback: Duration::from_secs(3_600),
        jobs_per_poll: 100,
    };
    start_history_server(&options, &world.running().daemon, &Metrics::new()).unwrap();
    let status = until_compared(&world, 40).await;
    assert_eq!((status.completions_awaited, status.holdout[0].verdict.as_str()), (0, "faster"));
}

/// A container of an application, of 1 GiB.
fn container(number: u32) -> (String, i64) {
    (format!("container_1_{number:04}_01_000002"), 1_024)
}

fn start_of(number: u32, answer: &v1::RequestHintsResponse) -> v1::FollowStart {
    let application_id = format!("application_1_{number:04}");
    v1::FollowStart { application_id, ..follow_start(answer, 0) }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_held_out_is_told_nothing_on_follow_when_a_node_is_lost() {
    let world = World::with(&[("worth", "holdout = 0.5")]).await;
    let mut feed = world.cluster(1, 2, 65_536).await;
    let mut answers = BTreeMap::new();
    for number in 1..=20 {
        answers.insert(number, world.hints(run(number)).await);
    }
    let is_held_out = |number: &u32| answers[number].hints.as_ref().unwrap().withheld.is_some();
    let held_out = answers.keys().find(|number| is_held_out(number)).copied().unwrap();
    // Tasks are placed anew in the order of their applications.
    let hinted = answers.keys().find(|number| **number > held_out && !is_held_out(number)).copied().unwrap();
    let mut quiet = world.client.follow(start_of(held_out, &answers[&held_out])).await.unwrap();
    let mut told = world.client.follow(start_of(hinted, &answers[&hinted])).await.unwrap();
    feed.send(heartbeat("r0n1", 2, 2_048, vec![container(held_out), container(hinted)])).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    world.until("both run", |status| status.applications == 2).await;
    let gone = v1::heartbeat_item::Item::Gone(v1::NodeGone { host: "r0n1".to_owned() });
    feed.send(v1::HeartbeatItem { number: 0, item: Some(gone) }).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    // Its leases on the node may be withdrawn first.
    loop {
        let message = next(&mut told).await;
        if let Some(v1::follow_message::Advice::Hints(hints)) = message.advice {
            assert!(hints.hints.iter().all(|hint| hint.host == "r0n0") && !hints.hints.is_empty(), "{hints:?}");
            break;
        }
    }
    let silence = tokio::time::timeout(Duration::from_millis(300), quiet.next()).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatcher_launches_nothing_of_who_is_held_out() {
    let world = World::with(&[("worth", "holdout = 0.5"), ("policy", "default = \"fair\"")]).await;
    drop(world.cluster(1, 2, 65_536).await);
    let mut sides = [0, 0];
    for number in 1..=20 {
        let asked = v1::RequestHintsRequest { follows: true, ..run(number) };
        let hints = world.hints(asked).await.hints.unwrap();
        let launched = hints.hints.iter().map(|hint| hint.count).sum::<u32>();
        let waiting = hints.pending.iter().map(|pending| pending.count).sum::<u32>();
        match hints.withheld.as_ref().map(|withheld| withheld.reason.as_str()) {
            None => assert_eq!(launched + waiting, 2, "{hints:?}"),
            Some("holdout") => assert_eq!((launched, waiting), (0, 0), "{hints:?}"),
            other => panic!("{other:?}"),
        }
        sides[usize::from(hints.withheld.is_some())] += 1;
    }
    assert!(sides.iter().all(|side| *side >= 4), "{sides:?}");
    assert_eq!(world.status().await.completions_awaited, 20);
}
