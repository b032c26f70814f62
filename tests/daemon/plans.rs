//! Plans of recurring jobs in the daemon: submitted, activated, followed, rolled back, kept over restarts, refused; and
//! where data of planned jobs goes.

use crate::program::{Program, write_config};
use crate::streams::two_ways;
use crate::world::{SOON, World, heartbeat, hello, leased, request};
use hintd_client::wire::v1;
use hintd_client::{AdminClient, FeedSender};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::Code;

pub(crate) fn now_us() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

/// A plan from now for a day: one run of each key now, so many maps of 10 s in that rack at once.
pub(crate) fn plan(jobs: &[(&str, &str, u32)]) -> Value {
    let now = now_us();
    let end = now + 10_000_000;
    let none = json!({ "tasks": 0, "task_time": 0, "slices": [] });
    let job = |(key, rack, tasks): &(&str, &str, u32)| {
        let slice = json!({ "rack": rack, "start": now, "end": end, "tasks": tasks, "containers": tasks });
        json!({
            "job": { "key": key, "run": 0 }, "arrival": now, "heavy": false, "shuffle": 0, "shuffle_time": 0,
            "start": now, "end": end, "maps": { "tasks": tasks, "task_time": 10_000_000, "slices": [slice] },
            "reduces": none,
        })
    };
    let rack = |(key, rack, tasks): &(&str, &str, u32)| {
        let step = json!({ "job": { "key": key, "run": 0 }, "stage": "map" });
        json!({ "rack": rack, "containers": tasks, "sequence": [step] })
    };
    json!({
        "format": "hintd.plan/1", "policy": "jobpacker", "objective": "online",
        "made": now, "from": now, "until": now + 86_400_000_000_u64,
        "assumptions": {
            "uplink": 1_000_000_000, "elephant": 1, "over_provisioning": 0.0, "sub_batches": 1,
            "shuffle_term": "by_width", "seed": 1,
        },
        "racks": jobs.iter().map(rack).collect::<Vec<_>>(), "jobs": jobs.iter().map(job).collect::<Vec<_>>(),
    })
}

/// Sent in pieces of a few bytes, as large ones are in pieces of some hundred thousand.
pub(crate) async fn submit(admin: &AdminClient, name: &str, text: &str) -> Result<v1::PlanView, tonic::Status> {
    let mut pieces: Vec<v1::SubmitPlanRequest> = text
        .as_bytes()
        .chunks(100)
        .map(|piece| v1::SubmitPlanRequest { json: piece.to_vec(), ..Default::default() })
        .collect();
    if let Some(first) = pieces.first_mut() {
        first.name = name.to_owned();
    }
    Ok(admin.clone().submit_plan(tokio_stream::iter(pieces)).await?.into_inner())
}

pub(crate) async fn activate(admin: &AdminClient, name: &str, replace: bool) -> Result<v1::PlanView, tonic::Status> {
    let request = v1::ActivatePlanRequest { name: name.to_owned(), replace };
    Ok(admin.clone().activate_plan(request).await?.into_inner())
}

pub(crate) async fn roll_back(admin: &AdminClient, to_none: bool) -> Result<v1::RollBackPlanResponse, tonic::Status> {
    Ok(admin.clone().roll_back_plan(v1::RollBackPlanRequest { to_none }).await?.into_inner())
}

/// Name and state of each.
pub(crate) async fn states(admin: &AdminClient) -> Vec<(String, String)> {
    let plans = admin.clone().list_plans(v1::ListPlansRequest {}).await.unwrap().into_inner().plans;
    plans.into_iter().map(|plan| (plan.name, plan.state)).collect()
}

pub(crate) fn named(states: &[(&str, &str)]) -> Vec<(String, String)> {
    states.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect()
}

pub(crate) fn refused<T: std::fmt::Debug>(found: Result<T, tonic::Status>, code: Code, words: &str) {
    let status = found.expect_err("it is refused");
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(words), "{:?} lacks {words:?}", status.message());
}

/// A run of the key with so many maps of 1 GB, whose application follows.
pub(crate) fn run(app: u32, key: &str, maps: u32) -> v1::RequestHintsRequest {
    let mut asked = request(&format!("r{app}"), app, maps, 1_024);
    (asked.groups[0].name, asked.groups[0].role) = ("map".to_owned(), "map".to_owned());
    (asked.policy, asked.recurring_job_key, asked.follows) = ("jobpacker".to_owned(), key.to_owned(), true);
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_reviewed_activated_followed_explained_and_rolled_back() {
    let world = World::start().await;
    let _feed = world.cluster(3, 2, 4_096).await;
    let (monday, tuesday) = (plan(&[("daily", "/rack2", 4)]).to_string(), plan(&[("daily", "/rack1", 4)]).to_string());
    let kept = submit(&world.admin, "monday", &monday).await.unwrap();
    assert_eq!((kept.state.as_str(), kept.jobs, kept.racks, kept.warnings.len()), ("kept", 1, 1, 0));
    let before = world.hints(run(1, "weekly", 1)).await.hints.unwrap();
    assert_eq!(before.plan, None, "what is kept is not followed");
    assert_eq!(activate(&world.admin, "monday", false).await.unwrap().state, "active");

    let answer = world.hints(run(2, "daily", 4)).await;
    let hosts: Vec<String> = leased(&answer).into_keys().collect();
    assert!(hosts.iter().all(|host| host.starts_with("r2")), "{hosts:?}");
    let hints = answer.hints.unwrap();
    let note = hints.plan.clone().unwrap();
    assert_eq!((note.plan.as_str(), note.job.as_str(), note.as_planned), ("monday", "daily#0", 4));
    let explained = world.client.explain(&hints.decision_id).await.unwrap();
    assert_eq!(explained.decision.unwrap().plan, Some(note), "remembered with the decision");

    submit(&world.admin, "tuesday", &tuesday).await.unwrap();
    activate(&world.admin, "tuesday", true).await.unwrap();
    assert_eq!(states(&world.admin).await, named(&[("monday", "kept"), ("tuesday", "active")]));
    let mut pieces =
        world.admin.clone().fetch_plan(v1::FetchPlanRequest { name: "monday".into() }).await.unwrap().into_inner();
    let mut text = Vec::new();
    while let Some(piece) = pieces.message().await.unwrap() {
        text.extend_from_slice(&piece.json);
    }
    let fetched: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(fetched, serde_json::from_str::<Value>(&monday).unwrap(), "as it was submitted");

    let rolled = roll_back(&world.admin, false).await.unwrap();
    assert_eq!((rolled.from.as_str(), rolled.to.as_str()), ("tuesday", "monday"));
    let rolled = roll_back(&world.admin, false).await.unwrap();
    assert_eq!((rolled.from.as_str(), rolled.to.as_str()), ("monday", ""));
    refused(roll_back(&world.admin, false).await, Code::FailedPrecondition, "none is in force");
    assert_eq!(world.hints(run(3, "daily", 1)).await.hints.unwrap().plan, None);
    assert_eq!((world.counter("plans_activated").await, world.counter("plans_rolled_back").await), (2, 2));
    world.admin.clone().remove_plan(v1::RemovePlanRequest { name: "monday".into() }).await.unwrap();
    assert_eq!(states(&world.admin).await, named(&[("tuesday", "kept")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_follow_the_racks_of_the_plan_in_force() {
    for (rack, follows) in [(0, true), (1, true), (2, false), (0, false)] {
        let world = World::start().await;
        let mut feed = world.cluster(3, 2, 4_096).await;
        submit(&world.admin, "p", &plan(&[("daily", &format!("/rack{rack}"), 4)]).to_string()).await.unwrap();
        activate(&world.admin, "p", false).await.unwrap();
        let run = |app, key, maps| v1::RequestHintsRequest { follows, ..run(app, key, maps) };
        let looked = world.admin.clone().what_if(run(9, "daily", 4)).await.unwrap().into_inner().plan.unwrap();
        assert_eq!((looked.job.as_str(), looked.as_planned), ("daily#0", 4), "it takes no place");
        let answer = world.hints(run(1, "daily", 4)).await;
        let hosts: Vec<String> = leased(&answer).into_keys().collect();
        assert!(!hosts.is_empty() && hosts.iter().all(|host| host.starts_with(&format!("r{rack}"))), "{hosts:?}");
        let hints = answer.hints.unwrap();
        let note = hints.plan.clone().unwrap();
        assert_eq!((note.job.as_str(), note.as_planned, note.elsewhere, note.deviations.len()), ("daily#0", 4, 0, 0));
        let explained = world.client.explain(&hints.decision_id).await.unwrap().decision.unwrap();
        assert_eq!(explained.plan, Some(note));
        let stranger = world.hints(run(2, "weekly", 2)).await.hints.unwrap().plan.unwrap();
        assert_eq!((stranger.job.as_str(), &stranger.deviations[..]), ("", &["not_planned".to_owned()][..]));
        let second = world.hints(run(3, "daily", 2)).await.hints.unwrap().plan.unwrap();
        assert_eq!((second.job.as_str(), &second.deviations[..]), ("", &["place_taken".to_owned()][..]));
        let plans = world.admin.clone().list_plans(v1::ListPlansRequest {}).await.unwrap().into_inner().plans;
        let by = &plans[0].followed[0];
        assert_eq!((by.policy.as_str(), by.followed, by.unplanned, by.missed), ("jobpacker", 1, 2, 0));
        feed.send(heartbeat("r0n0", 2, 0, vec![])).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_in_force_outlives_restarts_and_kill_nine() {
    let mut world = World::start().await;
    let feed = world.cluster(2, 2, 4_096).await;
    let text = plan(&[("daily", "/rack1", 4)]).to_string();
    submit(&world.admin, "monday", &text).await.unwrap();
    activate(&world.admin, "monday", false).await.unwrap();
    drop(feed);
    world.restart().await;
    assert_eq!(states(&world.admin).await, named(&[("monday", "active")]));
    let _feed = world.cluster(2, 2, 4_096).await;
    let answer = world.hints(run(1, "daily", 4)).await;
    let note = answer.hints.clone().unwrap().plan.unwrap();
    assert_eq!((note.as_planned, note.elsewhere), (4, 0), "{note:?}");
    drop(world);

    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let program = Program::start(folder.path(), port).await;
    let text = plan(&[("daily", "/rack0", 4)]).to_string();
    submit(&program.admin, "monday", &text).await.unwrap();
    activate(&program.admin, "monday", false).await.unwrap();
    drop(program); // SIGKILL
    let program = Program::start(folder.path(), port).await;
    assert_eq!(states(&program.admin).await, named(&[("monday", "active")]), "it was durable before it was answered");
    let answer = program.client.request_hints(run(1, "daily", 4), SOON).await.unwrap();
    assert_eq!(answer.hints.unwrap().plan.unwrap().as_planned, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_can_not_be_meant_are_refused_by_their_fault() {
    let world = World::start().await;
    let good = plan(&[("daily", "/rack1", 4)]);
    refused(submit(&world.admin, "p", &good.to_string()).await, Code::FailedPrecondition, "heartbeats is missing");
    let _feed = world.cluster(2, 2, 4_096).await;
    refused(submit(&world.admin, "p", "{ \"format\": ").await, Code::InvalidArgument, "not a plan");
    refused(submit(&world.admin, "p", "{\"format\":\"hintd.plan/7\"}").await, Code::InvalidArgument, "hintd.plan/7");
    refused(submit(&world.admin, "a b", &good.to_string()).await, Code::InvalidArgument, "\"a b\" has other letters");
    refused(submit(&world.admin, "p", "").await, Code::InvalidArgument, "name");
    let nowhere = plan(&[("daily", "/rack9", 4)]).to_string();
    refused(submit(&world.admin, "p", &nowhere).await, Code::FailedPrecondition, "rack /rack9: no such rack");
    let mut old = good.clone();
    (old["until"], old["from"]) = (json!(now_us() - 1), json!(now_us() - 1_000_000_000));
    refused(submit(&world.admin, "p", &old.to_string()).await, Code::FailedPrecondition, "has passed");
    let empty = plan(&[]).to_string();
    refused(submit(&world.admin, "p", &empty).await, Code::FailedPrecondition, "it plans no job");
    let mut early = good.clone();
    early["made"] = json!(now_us() + 7_200_000_000);
    refused(submit(&world.admin, "p", &early.to_string()).await, Code::FailedPrecondition, "ahead of now");
    refused(activate(&world.admin, "p", false).await, Code::NotFound, "plan \"p\" is unknown");
    submit(&world.admin, "p", &good.to_string()).await.unwrap();
    submit(&world.admin, "q", &plan(&[("daily", "/rack0", 4)]).to_string()).await.unwrap();
    activate(&world.admin, "p", false).await.unwrap();
    refused(activate(&world.admin, "q", false).await, Code::FailedPrecondition, "plan \"p\" is in force");
    assert_eq!(states(&world.admin).await, named(&[("p", "active"), ("q", "kept")]));
    let remove = world.admin.clone().remove_plan(v1::RemovePlanRequest { name: "p".into() }).await;
    refused(remove, Code::FailedPrecondition, "roll it back first");
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_are_told_where_replicas_of_planned_data_go() {
    let world = World::start().await;
    let _feed = world.cluster(3, 2, 4_096).await;
    let ask = |path: &str| v1::ReplicasRequest { path: path.to_owned(), blocks: 3, ..Default::default() };
    let none = world.client.replicas(ask("/logs/2026/11/22")).await.unwrap();
    assert_eq!((none.reason.as_str(), none.blocks.len(), none.blocks[0].replicas.len()), ("no_plan", 3, 3));
    assert!(none.blocks.iter().flat_map(|block| &block.replicas).all(|replica| replica.rack.is_empty()));
    let text = plan(&[("daily </logs/#", "/rack2", 4)]).to_string();
    submit(&world.admin, "p", &text).await.unwrap();
    activate(&world.admin, "p", false).await.unwrap();
    let found = world.client.replicas(ask("hdfs://nn:8020/logs/2026/11/22")).await.unwrap();
    assert_eq!((found.reason.as_str(), found.reader.as_str()), ("planned", "daily </logs/#"));
    assert_eq!((found.plan.as_str(), found.job.as_str()), ("p", "daily </logs/##0"));
    assert_eq!((found.racks[0].rack.as_str(), found.racks[0].hosts.len()), ("/rack2", 2));
    for block in &found.blocks {
        let racks: Vec<&str> = block.replicas.iter().map(|replica| replica.rack.as_str()).collect();
        assert!(racks[0] == "/rack2" && racks[1] == racks[2] && racks[1] != "/rack2", "{racks:?}");
    }
    assert_eq!(world.client.replicas(ask("/clicks/1")).await.unwrap().reason, "not_planned");
    let wrong = world.client.replicas(v1::ReplicasRequest { blocks: 20_000, ..ask("/x") }).await;
    assert_eq!(crate::world::refusal(wrong).0, Code::InvalidArgument);
    let key = "dayly".to_owned();
    let unknown = world.client.replicas(v1::ReplicasRequest { recurring_job_key: key, ..ask("/x") }).await;
    assert_eq!(crate::world::refusal(unknown).0, Code::NotFound);
}

/// A run of the key that has come to its end: 3 maps of 10 s.
pub(crate) async fn finish(world: &World, app: u32, key: &str) {
    let mut asked = run(app, key, 3);
    (asked.policy, asked.follows) = (String::new(), false);
    world.hints(asked).await;
    let event = |what: v1::task_event::What| v1::TaskEvent {
        application_id: format!("application_1_{app:04}"),
        attempt: 1,
        group: "map".to_owned(),
        what: Some(what),
        ..Default::default()
    };
    let finished = v1::TaskFinished {
        host: "r0n0".to_owned(),
        duration_ms: 10_000,
        input_bytes: 1 << 20,
        output_bytes: 1 << 10,
        failed: false,
    };
    let mut events: FeedSender<v1::EventItem> = world.client.feed(hello()).await.unwrap();
    let done = v1::task_event::What::Done(v1::ApplicationDone { failed: false });
    for what in [v1::task_event::What::Finished(finished), done] {
        let item = Some(v1::event_item::Item::Event(event(what)));
        events.send(v1::EventItem { number: 0, item }).await.unwrap();
    }
    assert!(events.await_acknowledged().await.unwrap().refused.is_empty());
}

pub(crate) async fn make(admin: &AdminClient, policy: &str) -> Result<(Value, v1::PlanForecast), tonic::Status> {
    let request = v1::MakePlanRequest { horizon_ms: 86_400_000, policy: policy.to_owned(), ..Default::default() };
    let mut pieces = admin.clone().make_plan(request).await?.into_inner();
    let (mut text, mut forecast) = (Vec::new(), None);
    while let Some(piece) = pieces.message().await? {
        text.extend_from_slice(&piece.json);
        forecast = forecast.or(piece.forecast);
    }
    Ok((serde_json::from_slice(&text).unwrap(), forecast.unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_here_is_planned_when_asked_and_by_the_daemon_itself() {
    let mut world = World::with(&[("plan", "every = \"1s\""), ("plan", "activate = true")]).await;
    let feed = world.cluster(2, 1, 8_192).await;
    let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    network.send(two_ways()).await.unwrap();
    network.await_acknowledged().await.unwrap();
    world.until("the network is there", |status| status.links == 7).await;
    refused(make(&world.admin, "").await, Code::FailedPrecondition, "no run is expected: of 0 jobs");
    refused(make(&world.admin, "fair").await, Code::InvalidArgument, "\"fair\" does not plan");
    refused(make(&world.admin, "jobpaker").await, Code::NotFound, "did you mean \"jobpacker\"?");
    for app in 1..=3 {
        finish(&world, app, "daily").await;
    }
    finish(&world, 4, "rare").await;
    // A run is known once the engine has taken its last event in.
    let began = std::time::Instant::now();
    let (plan, forecast) = loop {
        let made = make(&world.admin, "corral").await;
        let runs = made.as_ref().map_or(0, |(_, forecast)| forecast.keys.iter().map(|key| key.runs).sum::<u32>());
        if runs == 4 {
            break made.unwrap();
        }
        assert!(began.elapsed() < SOON, "{made:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert_eq!((forecast.recurring, forecast.too_few, forecast.unsteady), (1, 1, 0));
    let by_key = |key: &v1::KeyForecast| (key.key.clone(), key.standing.clone(), key.runs, key.predicted_runs);
    let known: Vec<_> = forecast.keys.iter().map(by_key).collect();
    let [daily, rare] = [("daily", "recurring", 3, 2), ("rare", "too_few", 1, 0)]
        .map(|(key, standing, runs, predicted)| (key.to_owned(), standing.to_owned(), runs, predicted));
    assert_eq!(known, [daily, rare], "each with its error, the worst first: {:?}", forecast.keys);
    assert_eq!(plan["policy"], "corral");
    let jobs = plan["jobs"].as_array().unwrap();
    assert!(!jobs.is_empty() && jobs.iter().all(|job| job["job"]["key"] == "daily"), "{plan}");
    assert_eq!((&jobs[0]["maps"]["tasks"], &jobs[0]["maps"]["task_time"]), (&json!(3), &json!(10_000_000)));
    submit(&world.admin, "mine", &plan.to_string()).await.expect("the checker agrees");
    let began = std::time::Instant::now();
    loop {
        let active = states(&world.admin).await.into_iter().find(|(_, state)| state == "active");
        if active.is_some_and(|(name, _)| name.starts_with("scheduled-")) {
            break;
        }
        assert!(began.elapsed() < SOON, "{:?}", states(&world.admin).await);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(world.counter("plans_made").await > 0);
    drop((feed, network));
    world.restart().await;
    let _feed = world.cluster(2, 1, 8_192).await;
    let said = make(&world.admin, "").await.unwrap_err();
    assert!(said.message().contains("topology"), "runs are still known, the network is not: {said:?}");
}
