//! Starting, answering, restarting, stopping.

use crate::streams::follow_start;
use crate::world::{SOON, World, config_text, first_said, heartbeat, leased, refusal, request};
use hintd::config::Config;
use hintd::server::{Running, start};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use hintd_client::{AdminClient, ClientError};
use hintd_model::cluster::document::{ClusterDocument, Syntax};
use hintd_model::units::Timestamp;
use std::path::Path;
use std::time::{Duration, Instant};
use tonic::Code;
use v1::follow_message::Advice;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_with_leases_that_status_counts() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 3, 2_048)).await;
    let leases: usize = leased(&answer).values().map(Vec::len).sum();
    assert_eq!(leases, 3, "{answer:?}");
    assert_eq!(world.status().await.leases, 3);
    assert!(!answer.token.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_the_same_after_a_restart_and_its_leases_are_there_once() {
    let mut world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let before = world.hints(request("r1", 1, 3, 2_048)).await;
    let instance = world.status().await.instance_id;
    world.restart().await;
    let status = world.status().await;
    assert_eq!(status.leases, 3);
    assert_ne!(status.instance_id, instance, "feeds see that everything is to be sent again");
    assert_eq!(first_said(&world.hints(request("r1", 1, 3, 2_048)).await), before);
    assert_eq!(world.status().await.leases, 3);
    let found = refusal(world.client.request_hints(request("r1", 1, 4, 2_048), SOON).await);
    assert_eq!(found.0, Code::AlreadyExists);
    // The leases still hold their room once the nodes are back.
    let _feed = world.cluster(2, 2, 8_192).await;
    until_leased(&world, 3 * 2_048).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn released_leases_are_gone_and_explained() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 2, 2_048)).await;
    let leases: Vec<u64> = leased(&answer).into_values().flatten().collect();
    let release = |lease_ids: Vec<u64>| v1::ReleaseRequest {
        application_id: "application_1_0001".into(),
        attempt: 1,
        token: answer.token.clone(),
        lease_ids,
        nonce: Vec::new(),
    };
    let found = world.client.release(release(vec![leases[0], 999])).await.unwrap();
    assert_eq!((found.released, found.not_held), (1, vec![999]));
    let explained = world.client.explain(&answer.hints.as_ref().unwrap().decision_id).await.unwrap();
    let state = |lease: u64| explained.leases.iter().find(|found| found.lease_id == lease).unwrap().state.clone();
    assert_eq!((state(leases[0]).as_str(), state(leases[1]).as_str()), ("released", "held"));
    assert_eq!(explained.application_id, "application_1_0001");
    assert_eq!(world.client.release(release(vec![])).await.unwrap().released, 1);
    assert_eq!(world.status().await.leases, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_if_leases_and_remembers_nothing() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let answer = world.admin.clone().what_if(request("r1", 1, 2, 2_048)).await.unwrap().into_inner();
    assert_eq!(answer.hints.iter().map(|hint| hint.count).sum::<u32>(), 2);
    assert_eq!(world.status().await.leases, 0);
    let real = world.hints(request("r1", 1, 4, 2_048)).await; // the id is free
    assert_eq!(leased(&real).into_values().flatten().count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_shadow_mode_hints_are_made_and_nothing_is_leased() {
    let world = World::with(&[("queues.\"*\"", "mode = \"shadow\"")]).await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 2, 2_048)).await.hints.unwrap();
    assert_eq!(answer.mode(), v1::Mode::Shadow);
    assert!(!answer.hints.is_empty() && answer.hints.iter().all(|hint| hint.lease_ids.is_empty()));
    assert_eq!(world.status().await.leases, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_with_streams_open_ends_in_time_and_says_so_on_each() {
    let mut world = World::with(&[("listen", "drain = \"30s\"")]).await;
    let mut feed = world.cluster(1, 2, 8_192).await;
    let answer = world.hints(request("r1", 1, 1, 1_024)).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let began = Instant::now();
    world.stop().await;
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert_eq!(refusal(follow.next().await.map(|_| ())).0, Code::Unavailable);
    let ended = loop {
        if let Err(error) = feed.ack().await {
            break error;
        }
    };
    assert_eq!(refusal::<()>(Err(ended)).0, Code::Unavailable);
    assert!(!world.folder.path().join("admin.sock").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_are_served_and_health_follows_readiness() {
    let mut world = World::start().await;
    let address = format!("http://{}", world.running().grpc);
    let channel = tonic::transport::Endpoint::from_shared(address).unwrap().connect().await.unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let check = || tonic_health::pb::HealthCheckRequest { service: "hintd.v1.Placement".into() };
    let serving = tonic_health::pb::health_check_response::ServingStatus::Serving as i32;
    let mut of = {
        let mut health = health.clone();
        async move |service: &str| {
            let check = tonic_health::pb::HealthCheckRequest { service: service.to_owned() };
            health.check(check).await.unwrap().into_inner().status == serving
        }
    };
    // Whoever feeds waits for what is live, whoever asks for what is ready.
    assert!(of("").await && of("hintd.v1.Feed").await && of("hintd.v1.Routes").await);
    assert!(!of("hintd.v1.Placement").await, "without a node there is nothing to answer with");
    let why = world.status().await;
    assert!(!why.ready && why.not_ready_reason.contains("no node is RUNNING"), "{why:?}");
    let mut watch = health.watch(check()).await.unwrap().into_inner();
    assert_ne!(watch.message().await.unwrap().unwrap().status, serving);
    let _feed = world.cluster(1, 1, 8_192).await;
    let next = tokio::time::timeout(SOON, watch.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(next.status, serving);
    assert!(world.status().await.ready);
    let mut reflection = tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(channel);
    let list = tonic_reflection::pb::v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(tonic_reflection::pb::v1::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    };
    let mut listed = reflection.server_reflection_info(tokio_stream::iter([list])).await.unwrap().into_inner();
    let listed = format!("{:?}", listed.message().await.unwrap());
    assert!(listed.contains("hintd.v1.Placement"), "{listed}");
    drop(reflection);
    world.running().daemon.refuse_new();
    let next = tokio::time::timeout(SOON, watch.message()).await.unwrap().unwrap().unwrap();
    assert_ne!(next.status, serving, "not serving comes first");
    assert!(!of("").await, "a daemon that stops is live no more");
    let found = world.client.request_hints(request("r", 1, 1, 1_024), Duration::from_millis(200)).await;
    assert!(matches!(found, Err(ClientError::OutOfTime { .. })), "{found:?}");
    drop((watch, health));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_socket_is_its_owners_only_and_a_second_daemon_does_not_take_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::start().await;
    let socket = world.folder.path().join("admin.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut other = Config::from_text(&config_text(world.folder.path(), 0, &[]), "other.toml").unwrap().options;
    other.store.path = world.folder.path().join("other.redb");
    let error = start(&other, Metrics::new()).await.unwrap_err();
    assert!(error.to_string().contains("another daemon answers"), "{error}");
    other.listen.admin_socket = world.folder.path().join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&other.listen.admin_socket).unwrap());
    start(&other, Metrics::new()).await.expect("a dead daemon's file is replaced").shutdown().await.unwrap();
    other.listen.grpc = "0.0.0.0:0".parse().unwrap();
    let error = start(&other, Metrics::new()).await.unwrap_err();
    assert!(error.to_string().contains("insecure_bind"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_is_unavailable_with_a_delay_and_ends_by_itself() {
    let world = World::with(&[("placer", "threads = 1"), ("placer", "queue = 1")]).await;
    let _feed = world.cluster(4, 50, 8_192).await;
    let address = format!("http://{}", world.running().grpc);
    let raw = v1::placement_client::PlacementClient::connect(address).await.unwrap();
    let calls: Vec<_> = (0..200_u32)
        .map(|n| {
            let mut raw = raw.clone();
            tokio::spawn(async move { raw.request_hints(request(&format!("r{n}"), n + 1, 4, 1_024)).await })
        })
        .collect();
    let mut refused = 0;
    for call in calls {
        if let Err(status) = call.await.unwrap() {
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
            let delay = status.metadata().get("retry-after-ms").expect("says when to come back");
            assert!(delay.to_str().unwrap().parse::<u64>().unwrap() > 0);
            refused += 1;
        }
    }
    assert!(refused > 0, "200 calls at once are more than one thread and one place");
    world.hints(request("later", 999, 1, 1_024)).await;
}

/// Waits until what is published has so much leased, MB: an answer may be a generation ahead of it.
async fn until_leased(world: &World, wanted: i64) {
    let began = Instant::now();
    loop {
        let nodes = world.admin.clone().nodes(v1::NodesRequest::default()).await.unwrap().into_inner().nodes;
        let leased: i64 = nodes.iter().map(|node| node.leased.as_ref().unwrap().memory()).sum();
        if leased == wanted {
            return;
        }
        assert!(began.elapsed() < SOON, "{leased} MB are leased, not {wanted}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_a_cluster_file_that_reads_back_with_its_leases() {
    let world = World::start().await;
    let mut feed = world.cluster(1, 2, 8_192).await;
    feed.send(heartbeat("r0n0", 2, 1_024, vec![("container_1_0099_01_000002".into(), 1_024)])).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    let answer = world.hints(request("r1", 1, 2, 2_048)).await;
    world.until_used("r0n0", 1_024).await;
    until_leased(&world, 2 * 2_048).await;
    let mut chunks = world.admin.clone().snapshot(v1::SnapshotRequest {}).await.unwrap().into_inner();
    let mut json = Vec::new();
    while let Some(chunk) = chunks.message().await.unwrap() {
        json.extend(chunk.json);
    }
    let document: ClusterDocument = Syntax::Json.read(&String::from_utf8(json).unwrap()).unwrap();
    let (snapshot, leases) = document.to_snapshot(Timestamp(1)).unwrap();
    for (host, held) in leased(&answer) {
        let node = snapshot.statics.find(&host).unwrap();
        assert_eq!(leases.leased(node).memory_mb(), 2_048 * held.len() as u64);
    }
    assert_eq!(snapshot.occupied[snapshot.statics.find("r0n0").unwrap().at()].memory_mb(), 1_024);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_goes_silent_takes_readiness_along_and_brings_it_back() {
    let world = World::with(&[("model", "stale_after = \"300ms\"")]).await;
    let mut feed = world.heartbeats().await;
    feed.send(crate::world::register("n", "/r", 8_192)).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    world.until("it was ready", |status| status.ready || status.nodes == 1 && status.nodes_usable == 0).await;
    let status = world.until("it is not", |status| !status.ready).await;
    assert!(status.nodes == 1 && status.not_ready_reason.contains("fresh heartbeat"), "{status:?}");
    // Asked all the same, it answers as it always did.
    let answer = world.hints(request("r", 1, 1, 1_024)).await;
    assert!(answer.hints.unwrap().hints.is_empty());
    let began = Instant::now();
    for number in 1.. {
        feed.send(heartbeat("n", number, 0, vec![])).await.unwrap();
        feed.await_acknowledged().await.unwrap();
        if world.status().await.ready {
            break;
        }
        assert!(began.elapsed() < SOON, "it was heard again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_refused_is_named_with_the_reason_and_its_peer() {
    let world = World::start().await;
    let _feed = world.cluster(1, 1, 8_192).await;
    for n in 0..3 {
        world.refused(request(&format!("bad{n}"), 7, 0, 1_024)).await;
    }
    world.refused(request("too-much", 8, 1, 1 << 40)).await;
    let refused = world.status().await.refused;
    let row = |kind: &str, name: &str| {
        let found = refused.iter().find(|row| row.kind == kind && row.name == name);
        found.map(|row| (row.reason.as_str(), row.requests))
    };
    assert_eq!(row("application", "application_1_0007"), Some(("invalid", 3)), "{refused:?}");
    assert_eq!(row("application", "application_1_0008"), Some(("invalid", 1)), "{refused:?}");
    assert_eq!(row("peer", "127.0.0.1"), Some(("invalid", 4)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_listens_on_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        crate::program::say("SKIPPED: no IPv6 here");
        return;
    }
    let world = World::with(&[("listen", "grpc = \"[::1]:0\"")]).await;
    assert!(world.running().grpc.is_ipv6());
    let _feed = world.cluster(1, 1, 8_192).await;
    world.hints(request("r", 1, 1, 1_024)).await;
    let endpoint = hintd::http::serve("[::1]:0".parse().unwrap(), Metrics::new(), world.running().daemon.ready());
    let endpoint = endpoint.await.unwrap();
    let answer = crate::program::page(endpoint.address(), "/readyz").await;
    assert!(answer.ends_with("ready\n"), "{answer}");
    let mut other = Config::from_text(&config_text(world.folder.path(), 0, &[]), "other.toml").unwrap().options;
    other.listen.grpc = "[::]:0".parse().unwrap();
    let error = start(&other, Metrics::new()).await.unwrap_err();
    assert!(error.to_string().contains("insecure_bind"), "{error}");
}

/// A daemon whose configuration is this file, as it is written here.
async fn reloadable(file: &Path) -> (Running, AdminClient) {
    std::fs::write(file, config_text(file.parent().unwrap(), 0, &[])).unwrap();
    let config = Config::load(file).unwrap();
    let mut options = config.options.clone();
    options.reload = Some(config.reload_hook(file.to_path_buf()));
    let running = start(&options, Metrics::new()).await.unwrap();
    let admin = hintd_client::admin(&running.admin).await.unwrap();
    (running, admin)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reloads_after_the_files_watcher_is_told_what_it_changed_and_what_needs_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hintd.toml");
    let (running, mut admin) = reloadable(&file).await;
    let further = [("policy", "default = \"capacity\"".to_owned()), ("limits", "streams = 7".to_owned())];
    std::fs::write(&file, config_text(folder.path(), 0, &further)).unwrap();
    let watcher = running.daemon.reload().await.unwrap();
    assert_eq!(watcher.changed, ["limits.streams", "policy.default"]);
    let waiting = async |admin: &mut AdminClient| {
        let status = admin.status(v1::StatusRequest {}).await.unwrap().into_inner();
        status.config_restart_keys
    };
    assert_eq!(waiting(&mut admin).await, ["limits.streams"]);
    for _ in 0..2 {
        let told = admin.reload(v1::ReloadRequest {}).await.unwrap().into_inner();
        assert_eq!(
            (told.config_generation, told.changed, told.needs_restart.as_slice()),
            (2, watcher.changed.clone(), &["limits.streams".to_owned()][..])
        );
    }
    // A later change does not hide what still waits for a restart.
    std::fs::write(&file, config_text(folder.path(), 0, &further[1..])).unwrap();
    let told = admin.reload(v1::ReloadRequest {}).await.unwrap().into_inner();
    assert_eq!((told.config_generation, told.changed), (3, vec!["policy.default".to_owned()]));
    assert_eq!(told.needs_restart, ["limits.streams"]);
    assert_eq!(waiting(&mut admin).await, ["limits.streams"]);
    std::fs::write(&file, "[leeses]\n").unwrap();
    admin.reload(v1::ReloadRequest {}).await.unwrap_err();
    assert_eq!(waiting(&mut admin).await, ["limits.streams"], "what is refused says nothing of it");
    std::fs::write(&file, config_text(folder.path(), 0, &[])).unwrap();
    for _ in 0..2 {
        let told = admin.reload(v1::ReloadRequest {}).await.unwrap().into_inner();
        assert_eq!((told.changed, told.needs_restart), (vec![], vec![]), "it never was another one in force");
        assert_eq!((told.config_generation, &*told.reverted), (3, &["limits.streams".to_owned()][..]));
    }
    assert_eq!(waiting(&mut admin).await, Vec::<String>::new());
    std::fs::write(&file, config_text(folder.path(), 0, &further[..1])).unwrap();
    let told = admin.reload(v1::ReloadRequest {}).await.unwrap().into_inner();
    assert_eq!((told.config_generation, told.changed, told.reverted), (4, vec!["policy.default".to_owned()], vec![]));
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_swaps_all_or_changes_nothing_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hintd.toml");
    let (running, mut admin) = reloadable(&file).await;
    let broken = config_text(folder.path(), 0, &[("policy", "default = \"sprad\"".to_owned())]);
    std::fs::write(&file, broken).unwrap();
    let status = admin.reload(v1::ReloadRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("hintd.toml") && status.message().contains("sprad"), "{status:?}");
    let policies = admin.list_policies(v1::ListPoliciesRequest {}).await.unwrap().into_inner();
    assert_eq!(policies.default_policy, "spread", "as it was");
    let sound = config_text(folder.path(), 0, &[("policy", "default = \"capacity\"".to_owned())]);
    std::fs::write(&file, sound).unwrap();
    let reloaded = admin.reload(v1::ReloadRequest {}).await.unwrap().into_inner();
    assert_eq!((reloaded.config_generation, reloaded.changed), (2, vec!["policy.default".to_owned()]));
    let policies = admin.list_policies(v1::ListPoliciesRequest {}).await.unwrap().into_inner();
    assert_eq!(policies.default_policy, "capacity");
    assert!(policies.policies.iter().any(|policy| policy.name == "container"), "{policies:?}");
    let calibrated = admin.calibrate(v1::CalibrateRequest { containers: 4, ..Default::default() }).await.unwrap();
    let calibrated = calibrated.into_inner();
    assert!((calibrated.togetherness + calibrated.locality + calibrated.balance - 1.0).abs() < 1e-9);
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_leases_answers_and_messages_are_kept() {
    const LIVE: Duration = Duration::from_secs(3);
    let world = World::with(&[
        ("leases", "time_to_live = \"3s\""),
        ("leases", "answers_kept = \"300ms\""),
        ("leases", "follow_kept = \"1s\""),
        ("records", "bytes = \"0\""),
    ])
    .await;
    let mut feed = world.cluster(1, 1, 8_192).await;
    let asked = Instant::now();
    let answer = world.hints(request("r1", 1, 3, 2_048)).await;
    let decision = answer.hints.as_ref().unwrap().decision_id.clone();
    // Who follows when it is withdrawn is told, however short a message is kept.
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let stranger = ("container_1_0099_01_000002".to_owned(), 4_096);
    feed.send(heartbeat("r0n0", 2, 4_096, vec![stranger])).await.unwrap();
    let message = tokio::time::timeout(SOON, follow.next()).await.unwrap().unwrap();
    assert!(matches!(message.advice, Some(Advice::Withdraw(_))));
    drop(follow);
    let told = Instant::now();
    loop {
        let mut follow = world.client.follow(follow_start(&answer, message.number - 1)).await.unwrap();
        let again = tokio::time::timeout(SOON, follow.next()).await.unwrap().unwrap();
        if matches!(again.advice, Some(Advice::Gap(_))) {
            break;
        }
        assert!(told.elapsed() < SOON, "it is kept for ever: {again:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let leases = world.status().await.leases;
    assert!(leases == 2 || asked.elapsed() >= LIVE, "they live for three seconds: {leases}");
    world.until("they ended", |status| status.leases == 0).await;
    let lived = asked.elapsed();
    assert!(lived > LIVE - Duration::from_millis(100) && lived < SOON, "{lived:?}");
    let kept = world.client.explain(&decision).await.is_ok();
    assert!(kept || asked.elapsed() > LIVE + Duration::from_millis(200), "it is kept for a while");
    let began = Instant::now();
    while world.client.explain(&decision).await.is_ok() {
        assert!(began.elapsed() < SOON, "the answer is kept for ever");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
