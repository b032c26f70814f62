//! Whether hints were followed, as the daemon tells it: by hand over the wire, and of an emulated cluster in shadow mode.

use crate::world::{SOON, World, config_text, heartbeat, leased, refusal, request};
use hintd::config::Config;
use hintd::server::start;
use hintd::telemetry::metrics::Metrics;
use hintd_cli::emulate::hdfs::Namespace;
use hintd_cli::emulate::shared::Behavior;
use hintd_cli::emulate::{Cluster, ClusterShape, Emulation, Workload};
use hintd_client::wire::v1;
use hintd_client::{Client, admin};
use hintd_simulator::{SwimJob, SwimReader};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn container(app: u32, sequence: u32) -> (String, i64) {
    (format!("container_1_{app:04}_01_{sequence:06}"), 1_024)
}

fn settled(status: &v1::StatusResponse) -> u64 {
    status.adherence.iter().map(|view| view.decisions).sum()
}

async fn explain(client: &Client, id: &str) -> Option<v1::DecisionOutcome> {
    client.explain(id).await.unwrap().outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_and_others_are_told_apart_by_heartbeats_alone() {
    let world = World::start().await;
    let mut feed = world.cluster(2, 2, 4_096).await;
    // One application whose containers appear where they were hinted, one whose container appears elsewhere.
    let follows = world.hints(request("follows", 1, 2, 1_024)).await;
    let strays = world.hints(request("strays", 2, 1, 1_024)).await;
    let mut on: std::collections::BTreeMap<String, Vec<(String, i64)>> = Default::default();
    let mut sequence = 2;
    for (host, leases) in leased(&follows) {
        for _ in leases {
            on.entry(host.clone()).or_default().push(container(1, sequence));
            sequence += 1;
        }
    }
    let hinted = leased(&strays).into_keys().next().unwrap();
    let other_rack = if hinted.starts_with("r0") { "r1n1" } else { "r0n1" };
    on.entry(other_rack.to_owned()).or_default().push(container(2, 2));
    for (host, containers) in &on {
        let used = 1_024 * i64::try_from(containers.len()).unwrap();
        feed.send(heartbeat(host, 2, used, containers.clone())).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    let status = world.until("both are settled", |status| settled(status) == 2).await;
    let [view] = &status.adherence[..] else { panic!("{:?}", status.adherence) };
    assert_eq!((&view.policy[..], &view.queue[..], view.mode()), ("spread", "default", v1::Mode::On));
    // The hints name next best hosts, which may be in the other rack: near or not, the third is not on its host.
    assert_eq!((view.on_host, view.in_rack + view.elsewhere, view.never), (2, 1, 0));
    assert_eq!(view.misses, [("yarn_chose".to_owned(), 1)].into(), "there was room");
    assert_eq!(view.not_followed, view.elsewhere, "of the one that strays no container is near, or its only one is");
    let [lately] = &status.adherence_last_hour[..] else { panic!("{:?}", status.adherence_last_hour) };
    let [group] = &lately.groups[..] else { panic!("{lately:?}") };
    assert_eq!((group.decisions, group.not_followed), (2, view.not_followed));
    assert_eq!((group.on_host, group.in_rack, group.elsewhere, group.never), (2, view.in_rack, view.elsewhere, 0));
    assert!(view.groups.is_empty(), "since the start groups are not told apart");
    assert_eq!((status.counters["hints_followed"], status.counters["hints_elsewhere"]), (2, 1));
    let outcome = explain(&world.client, &strays.hints.as_ref().unwrap().decision_id).await.unwrap();
    assert!(outcome.settled && outcome.hints[0].host == hinted, "{outcome:?}");
    assert_eq!(outcome.hints[0].misses["yarn_chose"], 1);
    let outcome = explain(&world.client, &follows.hints.as_ref().unwrap().decision_id).await.unwrap();
    assert!(outcome.hints.iter().all(|hint| hint.on_host == u64::from(hint.count)), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_many_decisions_are_watched_is_bounded_by_the_configuration() {
    let world = World::with(&[("limits", "decisions_watched = 3")]).await;
    let _feed = world.cluster(2, 2, 65_536).await;
    for app in 1..=8 {
        world.hints(request(&format!("r{app}"), app, 1, 1_024)).await;
    }
    let status = world.until("five had to go", |status| settled(status) == 5).await;
    assert_eq!(status.decisions_watched, 3);
    assert_eq!(status.adherence[0].misses, [("forgotten".to_owned(), 5)].into());
    // What is refused is no decision.
    refusal(world.client.request_hints(request("r9", 9, 1, 1 << 30), SOON).await.map(|answer| format!("{answer:?}")));
    assert_eq!(settled(&world.status().await), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_in_shadow_shows_what_following_would_have_saved() {
    let folder = tempfile::tempdir().unwrap();
    let extra = [
        ("policy", "default = \"container\"".to_owned()),
        ("queues.\"*\"", "mode = \"shadow\"".to_owned()),
        ("yarn", "maximum_memory_mb = 16384".to_owned()),
    ];
    let config = Config::from_text(&config_text(folder.path(), 0, &extra), "test.toml").unwrap();
    let metrics = Metrics::new();
    let running = start(&config.options, metrics.clone()).await.unwrap();
    let trace = include_bytes!("../data/swim-small.tsv");
    let jobs: Vec<SwimJob> = SwimReader::new(&trace[..]).take(8).collect::<Result<_, _>>().unwrap();
    let cluster = Cluster::build(ClusterShape { nodes: 20, racks: 5, ..ClusterShape::default() }).unwrap();
    let mut namespace = Namespace::new(1);
    let span = Duration::from_secs(2);
    let workload = Workload::new(&jobs, &cluster, &mut namespace, span, 0.3).unwrap();
    // As YARN does it by itself, which hints are to be held against.
    let rack_locality_additional_delay = -1;
    let limit = Duration::from_secs(120);
    let behaviour = Behavior { foreign_per_s: 2.0, limit, rack_locality_additional_delay, ..Behavior::default() };
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let client = crate::world::connect(&running.grpc.to_string()).await.unwrap();
    let cluster_timestamp = u64::try_from(millis).unwrap();
    let (emulation, _happenings) =
        Emulation::start(client, cluster, workload, namespace, behaviour, Vec::new(), cluster_timestamp).await.unwrap();
    let tally = emulation.finish().await.unwrap();
    assert_eq!((tally.jobs_ended, &tally.violations[..]), (8, &[][..]));
    let mut admin = admin(&running.admin).await.unwrap();
    let began = std::time::Instant::now();
    let status = loop {
        let status = admin.status(v1::StatusRequest {}).await.unwrap().into_inner();
        if status.decisions_watched == 0 {
            break status;
        }
        assert!(began.elapsed() < SOON, "{status:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(status.counters.get("leases_granted").copied().unwrap_or(0), 0, "nothing was leased");
    let [view] = &status.adherence[..] else { panic!("{:?}", status.adherence) };
    assert_eq!((&view.policy[..], view.mode()), ("container", v1::Mode::Shadow));
    assert!(view.decisions >= 8 && view.compared > 0, "{view:?}");
    let hinted = view.on_host + view.in_rack + view.elsewhere + view.never;
    assert_eq!(hinted - view.on_host, view.misses.values().sum::<u64>(), "{view:?}");
    assert!(view.on_host < hinted, "YARN knew of no hint: {view:?}");
    // YARN put containers anywhere; the policy would have put them near their blocks and each other.
    let cross = view.terms.iter().find(|term| term.term == "cross_rack_bytes").unwrap();
    assert!(cross.hinted < cross.realised, "{cross:?}");
    assert!(cross.had_followed.unwrap() > 0.0, "{cross:?}");
    let counters = metrics.counters();
    let labels = r#"policy="container",queue="default",mode="shadow""#;
    assert_eq!(counters[&format!("hintd_hint_outcomes_total{{{labels},outcome=\"on_host\"}}")], view.on_host);
    let settled = format!("hintd_decisions_settled_total{{{labels},compared=\"yes\"}}");
    assert_eq!(counters[&settled], view.compared);
    running.shutdown().await.unwrap();
}
