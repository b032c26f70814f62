//! Explain, what-if and replay against the real daemon: refusals with what blocks, decisions made again.

use crate::program::{Program, rewrite_config, write_config_with};
use crate::world::{SOON, World, heartbeat, leased, refusal, register, request, resource};
use hintd_client::ClientError;
use hintd_client::wire::v1;
use hintd_client::wire::v1::outcome::Outcome;
use std::process::Command;
use std::time::Duration;
use tonic::Code;

/// `hintctl` against this daemon: exit code, standard output, standard error.
async fn hintctl(world: &World, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.args(["--address", &world.running().grpc.to_string()]);
    command.arg("--admin-socket").arg(&world.running().admin).args(args).env_remove("COLUMNS");
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

async fn replay(world: &World, decision: &str, policy: &str) -> v1::ReplayResponse {
    let asked = v1::ReplayRequest { decision_id: decision.to_owned(), policy: policy.to_owned() };
    world.admin.clone().replay(asked).await.unwrap().into_inner()
}

fn hints(outcome: &Option<v1::Outcome>) -> &v1::HintSet {
    match outcome.as_ref().and_then(|outcome| outcome.outcome.as_ref()) {
        Some(Outcome::Hints(set)) => set,
        other => panic!("no hints: {other:?}"),
    }
}

fn job(id: &str, app: u32, policy: &str, (maps, reduces): (u32, u32)) -> v1::RequestHintsRequest {
    let group = |(priority, (name, count)): (i32, (&str, u32))| v1::TaskGroup {
        name: name.to_owned(),
        role: name.to_owned(),
        count,
        resource: Some(resource(1_024, 1)),
        priority,
        ..Default::default()
    };
    let groups: Vec<_> = (0..).zip([("map", maps), ("reduce", reduces)]).filter(|(_, (_, count))| *count > 0).collect();
    let shuffle = v1::GroupEdge { from: "map".into(), to: "reduce".into(), bytes: 1 << 30, ..Default::default() };
    v1::RequestHintsRequest {
        groups: groups.into_iter().map(group).collect(),
        edges: if reduces > 0 { vec![shuffle] } else { Vec::new() },
        policy: policy.to_owned(),
        ..request(id, app, 1, 1_024)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_of_a_busy_daemon_are_made_again_byte_by_byte() {
    let world = World::start().await;
    let mut feed = world.cluster(3, 4, 16_384).await;
    let mut told = Vec::new();
    for number in 0..40_u32 {
        let policy = ["spread", "container", "random", "capacity", "fair", "nas"][number as usize % 6];
        let mut asked = job(&format!("r{number}"), number, policy, (1 + number % 7, number % 3));
        asked.follows = number % 2 == 0;
        let answer = world.hints(asked).await.hints.unwrap();
        told.push(answer);
        let host = format!("r{}n{}", number % 3, number % 4);
        feed.send(heartbeat(&host, number + 2, i64::from(number % 5) * 1_024, vec![])).await.unwrap();
        if number == 20 {
            let gone = v1::NodeGone { host: "r2n3".to_owned() };
            let item = v1::heartbeat_item::Item::Gone(gone);
            feed.send(v1::HeartbeatItem { number: 0, item: Some(item) }).await.unwrap();
        }
    }
    feed.await_acknowledged().await.unwrap();
    let leases = world.status().await.leases;
    for answer in &told {
        let again = replay(&world, &answer.decision_id, "").await;
        assert!(again.same, "{}: {:?}", answer.policy, again.differences);
        assert_eq!((hints(&again.recorded), hints(&again.replayed)), (answer, answer));
    }
    // Some may have ended meanwhile, with nodes that fell silent.
    assert!(world.status().await.leases <= leases, "a replay leases nothing");
    let (code, out, _) = hintctl(&world, &["replay", &told[7].decision_id, "--policy", "container"]).await;
    assert_eq!(code, 0);
    for part in ["same bytes as it was answered", "containers on", "objective", "of container"] {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
}

/// `scale_up_out` trains its classifier, which takes seconds in a debug build.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_takes_long_to_prepare_is_prepared_beside_all_others_before_it_decides() {
    let world = World::with(&[("policies.scale_up_out", "training_jobs = 300")]).await;
    let _feed = world.cluster(2, 4, 8_192).await;
    let first = world.client.request_hints_once(job("r0", 1, "scale_up_out", (2, 1))).await;
    let (code, message) = refusal(first);
    assert_eq!(code, Code::Unavailable);
    assert!(message.contains("policy \"scale_up_out\" is being prepared"), "{message}");
    world.hints(job("r1", 2, "spread", (2, 1))).await; // nobody else waits
    let patience = Duration::from_secs(240);
    let answer = world.client.request_hints(job("r2", 3, "scale_up_out", (2, 1)), patience).await.unwrap();
    let answer = answer.hints.unwrap();
    let again = replay(&world, &answer.decision_id, "").await;
    assert!(again.same, "{:?}", again.differences);
    // What the configuration names is ready when the daemon is.
    let named =
        World::with(&[("policy", "default = \"scale_up_out\""), ("policies.scale_up_out", "training_jobs = 50")]).await;
    let _feed = named.cluster(2, 4, 8_192).await;
    assert_eq!(named.hints(job("r1", 1, "", (2, 1))).await.hints.unwrap().policy, "scale_up_out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_what_was_prepared_as_long_as_its_parameters_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let with = |jobs: u32| format!("training_jobs = {jobs}");
    let port = write_config_with(folder.path(), &[("policies.scale_up_out", with(50).as_str())]);
    let program = Program::start(folder.path(), port).await;
    let patience = Duration::from_secs(240);
    program.client.request_hints(job("r0", 1, "scale_up_out", (2, 1)), patience).await.unwrap();
    let reload = async |generation: u64, jobs: u32| {
        let answers = format!("answers = {}", 190_000 + generation);
        rewrite_config(folder.path(), port, &[("policies.scale_up_out", with(jobs).as_str()), ("limits", &answers)]);
        program.admin.clone().reload(v1::ReloadRequest {}).await.unwrap();
        assert_eq!(program.status().await.config_generation, generation);
    };
    reload(2, 50).await;
    program.client.request_hints_once(job("r1", 2, "scale_up_out", (2, 1))).await.unwrap();
    reload(3, 60).await;
    let (code, message) = refusal(program.client.request_hints_once(job("r2", 3, "scale_up_out", (2, 1))).await);
    assert_eq!(code, Code::Unavailable, "it is another one: {message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_names_the_parameters_of_its_policy_and_stands_beside_another() {
    let world = World::with(&[("policies.container", "rounds = 2")]).await;
    let _feed = world.cluster(2, 4, 8_192).await;
    let answer = world.hints(job("r", 1, "container", (6, 2))).await.hints.unwrap();
    let again = replay(&world, &answer.decision_id, "").await;
    assert!(again.same && again.params_toml.contains("rounds = 2"), "{again:?}");
    let beside = replay(&world, &answer.decision_id, "spread").await;
    assert_eq!(hints(&beside.other).policy, "spread");
    let rated: Vec<_> = beside.rated.iter().map(|rated| (rated.policy.as_str(), rated.recorded.is_some())).collect();
    assert_eq!(rated, [("container", true), ("spread", false)], "a rule has no objective");
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_of_retention_a_replay_is_not_found_and_told_how_far_back_records_go() {
    let world = World::with(&[("records", "bytes = \"200KiB\"")]).await;
    let _feed = world.cluster(1, 4, 65_536).await;
    let first = world.hints(job("first", 1, "spread", (1, 0))).await.hints.unwrap().decision_id;
    assert!(replay(&world, &first, "").await.same);
    let mut last = String::new();
    for number in 0..120 {
        last = world.hints(job(&format!("r{number}"), 1, "spread", (1, 0))).await.hints.unwrap().decision_id;
    }
    assert!(replay(&world, &last, "").await.same);
    let asked = v1::ReplayRequest { decision_id: first.clone(), policy: String::new() };
    let status = world.admin.clone().replay(asked).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.metadata().get("hintd-reason").unwrap(), "not_recorded");
    for part in [first.as_str(), "records go back", " s, to ", "of 0.2 MiB"] {
        assert!(status.message().contains(part), "no {part:?} in {}", status.message());
    }
    let (code, _, err) = hintctl(&world, &["replay", &first]).await;
    assert!(code == 2 && err.contains("records go back"), "{code} {err}");
    let (code, out, _) = hintctl(&world, &["explain", &first]).await;
    assert!(code == 0 && out.contains("spread"), "answers are remembered for longer: {code} {out}");
}

/// What explain and replay say of a decision that is to be had by neither.
async fn not_found(world: &World, decision: &str) -> [String; 2] {
    let explain = refusal(world.client.explain(decision).await);
    let asked = v1::ReplayRequest { decision_id: decision.to_owned(), policy: String::new() };
    let replay = world.admin.clone().replay(asked).await.unwrap_err();
    assert_eq!((explain.0, replay.code()), (Code::NotFound, Code::NotFound));
    [explain.1, replay.message().to_owned()]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_found_is_told_why_by_its_id() {
    let mut world = World::with(&[("leases", "answers_kept = \"0s\""), ("leases", "time_to_live = \"1s\"")]).await;
    let feed = world.cluster(1, 1, 65_536).await;
    let own = world.hints(job("first", 1, "spread", (1, 0))).await.hints.unwrap().decision_id;
    let life = own[..8].to_owned();
    let none = |id: &str| format!("decision {id} is not recorded: no decision has had this id yet");
    for never in [format!("{life}7fffffff"), "ffffffffffffffff".to_owned(), "ffffffff00000001".to_owned()] {
        assert_eq!(not_found(&world, &never).await, [none(&never), none(&never)]);
    }
    let pushed = format!("{life}80000001");
    let told = not_found(&world, &pushed).await;
    assert!(told[1].ends_with("hints that a dispatcher pushes when a node has room never are"), "{told:?}");
    assert_eq!(told[0], format!("{}; nor is an answer of this id remembered", told[1]));
    drop(feed);
    world.restart().await;
    // The lease's end takes the answer, which the journal kept.
    world.until("the lease ended", |status| status.leases == 0 && status.uptime_ms > 1_200).await;
    for before in [own, pushed] {
        let told = not_found(&world, &before).await;
        assert!(told[1].ends_with("is of before the daemon's last start, and records end with a process"), "{told:?}");
        assert_eq!(told[0], format!("{}; nor is an answer of this id remembered", told[1]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_recorded_explain_and_replay_say_so() {
    let world = World::with(&[("records", "sample = 0.0"), ("leases", "answers_kept = \"0s\"")]).await;
    let _feed = world.cluster(1, 1, 65_536).await;
    let own = world.hints(job("first", 1, "spread", (1, 0))).await.hints.unwrap().decision_id;
    let asked = v1::ReplayRequest { decision_id: own.clone(), policy: String::new() };
    let replay = world.admin.clone().replay(asked).await.unwrap_err();
    assert!(replay.message().ends_with("nothing is recorded (records.sample or records.bytes is 0)"), "{replay:?}");
    assert!(!world.client.explain(&own).await.unwrap().recorded, "its answer is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_cluster_says_what_blocks_and_which_node_comes_nearest() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 3, 8_192).await;
    for (host, used) in [("r0n0", 8_192), ("r0n1", 6_656), ("r0n2", 7_168)] {
        feed.send(heartbeat(host, 2, used, vec![])).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    for (host, used) in [("r0n0", 8_192), ("r0n1", 6_656), ("r0n2", 7_168)] {
        world.until_used(host, used).await;
    }
    let mut asked = request("full", 1, 1, 2_048);
    asked.when_full = v1::WhenFull::Fail.into();
    let refused = world.client.request_hints(asked.clone(), SOON).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused { code: Code::ResourceExhausted, .. }), "{refused}");
    let file = world.folder.path().join("job.toml");
    std::fs::write(
        &file,
        "format = \"hintd.request/1\"\nid = \"cli\"\napplication_id = \"application_1_0001\"\nwhen_full = \"fail\"\n\
         [[groups]]\nname = \"g\"\ncount = 1\nsize = { memory_mb = 2048, vcores = 1 }\n",
    )
    .unwrap();
    let (code, _, err) = hintctl(&world, &["request", "--file", file.to_str().unwrap()]).await;
    assert_eq!(code, 1);
    for part in [
        "1 g containers unplaced: no_room",
        "rules out 3 nodes",
        "nearest: r0n1: 512 MB short (no_room), all else fits",
    ] {
        assert!(err.contains(part), "no {part:?} in\n{err}");
    }
    let id = err.split("hintctl explain ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let (code, out, _) = hintctl(&world, &["--json", "explain", &id]).await;
    let explained: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &explained["refused"]["reason"]), (0, &"full".into()));
    let nearest = &explained["refused"]["blocked"][0]["nearest"];
    assert_eq!((&nearest[0]["host"], &nearest[0]["lacks"][0]["short"]), (&"r0n1".into(), &512.into()));
    assert_eq!(nearest[1]["host"], "r0n2");
    let (code, out, _) = hintctl(&world, &["replay", &id]).await;
    assert!(code == 0 && out.contains("same bytes"), "{code} {out}");
    // Advised instead of refused, the answer itself says it.
    asked.request_id = "advised".to_owned();
    asked.when_full = v1::WhenFull::Advise.into();
    let set = world.hints(asked).await.hints.unwrap();
    assert_eq!((set.without_room, set.blocked[0].constraint.as_str(), set.blocked[0].nodes), (1, "no_room", 3));
    assert_eq!(set.blocked[0].nearest[0].host, "r0n1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_larger_than_any_node_is_told_the_nearest_and_can_be_explained() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 2, 4_096).await;
    feed.send(register("big", "/rack9", 8_192)).await.unwrap();
    feed.send(heartbeat("big", 1, 0, vec![])).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    world.until("the large node is there", |status| status.nodes_usable == 3).await;
    let (code, out, err) = {
        let file = world.folder.path().join("job.toml");
        let text = "format = \"hintd.request/1\"\nid = \"large\"\napplication_id = \"application_1_0001\"\n\
                    [[groups]]\nname = \"g\"\ncount = 2\nsize = { memory_mb = 9216, vcores = 1 }\n";
        std::fs::write(&file, text).unwrap();
        hintctl(&world, &["request", "--file", file.to_str().unwrap()]).await
    };
    assert_eq!((code, out.as_str()), (2, ""));
    for part in ["larger than any node", "node_too_small, which alone rules out 3 nodes", "nearest: big: 1024 MB short"]
    {
        assert!(err.contains(part), "no {part:?} in\n{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_if_takes_the_same_path_and_leases_nothing_whoever_decides() {
    let world = World::start().await;
    let _feed = world.cluster(2, 3, 8_192).await;
    // Something waits already: what-if decides beside it and does not disturb it.
    let mut waits = job("waits", 9, "delay", (40, 0));
    waits.follows = true;
    let waits = world.hints(waits).await.hints.unwrap();
    let hosts = |set: &v1::HintSet| set.hints.iter().map(|hint| (hint.host.clone(), hint.count)).collect::<Vec<_>>();
    let before = world.until("it is counted", |status| status.leases > 0).await;
    for (number, policy) in (0..).zip(["spread", "container", "capacity", "delay", "fair", "nas"]) {
        let mut asked = job(&format!("w{number}"), 10 + number, policy, (4, 1));
        asked.follows = number > 2;
        let set = world.admin.clone().what_if(asked.clone()).await.unwrap().into_inner();
        assert_eq!((set.policy.as_str(), set.decision_id.as_str()), (policy, ""));
        assert!(set.hints.iter().all(|hint| hint.lease_ids.is_empty()), "{set:?}");
        let again = world.admin.clone().what_if(asked).await.unwrap().into_inner();
        assert_eq!((hosts(&set), &set.pending, &set.asks), (hosts(&again), &again.pending, &again.asks), "{policy}");
    }
    let after = world.status().await;
    assert_eq!((after.leases, after.waiting_tasks), (before.leases, before.waiting_tasks));
    assert_eq!(after.counters.get("leases_granted"), before.counters.get("leases_granted"));
    assert!(replay(&world, &waits.decision_id, "").await.same);
    // The real request then gets what was foreseen.
    let mut asked = job("real", 30, "spread", (2, 0));
    asked.seed = Some(4);
    let foreseen = world.admin.clone().what_if(asked.clone()).await.unwrap().into_inner();
    let got = world.hints(asked).await;
    assert_eq!(hosts(&foreseen), hosts(got.hints.as_ref().unwrap()));
    assert_eq!(leased(&got).values().map(Vec::len).sum::<usize>(), 2);
}
