//! Predicted performance of what `nomora` placed, by latency that is fed to the real daemon.

use crate::world::{SOON, World, hello, request};
use hintd_client::wire::v1;
use std::process::Command;

async fn measured(world: &World, pairs: &[(&str, &str, u64)]) {
    let mut feed = world.client.feed::<v1::LatencyItem>(hello()).await.unwrap();
    for &(from, to, rtt_us) in pairs {
        let sample = v1::LatencySample { from_host: from.into(), to_host: to.into(), rtt_us, measured_at_ms: 0 };
        let item = Some(v1::latency_item::Item::Sample(sample));
        feed.send(v1::LatencyItem { number: 0, item }).await.unwrap();
    }
    let ack = feed.await_acknowledged().await.unwrap();
    assert!(ack.refused.is_empty(), "{ack:?}");
    let heard = |age: &v1::SourceAge| age.source == "latency" && age.age_ms.is_some();
    world.until("latency is heard", |status| status.ages.iter().any(heard)).await;
}

async fn explain(world: &World, decision_id: &str) -> v1::ExplainResponse {
    let asked = v1::ExplainRequest { decision_id: decision_id.to_owned(), ..v1::ExplainRequest::default() };
    world.admin.clone().explain(asked).await.unwrap().into_inner()
}

async fn hintctl(world: &World, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.arg("--admin-socket").arg(&world.running().admin).args(args).env_remove("COLUMNS");
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn job(id: &str, app: u32, policy: &str, workers: u32) -> v1::RequestHintsRequest {
    let asked = request(id, app, workers, 1_024);
    v1::RequestHintsRequest { policy: policy.to_owned(), am_host: "r0n0".to_owned(), ..asked }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_performance_where_containers_are_and_where_else_they_could_have_been() {
    let world = World::with(&[("policies.nomora", "curve = \"strads\"")]).await;
    let _feed = world.cluster(2, 3, 2_048).await;
    measured(&world, &[("r0n0", "r0n1", 400), ("r0n0", "r1n0", 20), ("r1n2", "r0n2", 600)]).await;
    let answer = world.hints(job("one", 1, "nomora", 5)).await.hints.unwrap();
    let explained = explain(&world, &answer.decision_id).await;
    let performance = explained.performance.unwrap();
    assert_eq!((&*performance.curve, &*performance.root_host, &*performance.root_group), ("strads", "r0n0", ""));
    let [group] = &performance.groups[..] else { panic!("{performance:?}") };
    let mut places: Vec<(&str, u32, u64, &str)> =
        group.placed.iter().map(|at| (&*at.host, at.count, at.rtt_us, &*at.basis)).collect();
    places.sort_unstable();
    // Two of each node's 2 GiB, and the fifth where it is next best: racks 0 and 1 count as the slower of two hosts.
    let [here, last, near] = &places[..] else { panic!("{places:?}") };
    assert_eq!((*here, *near), (("r0n0", 2, 10, "same_host"), ("r1n0", 2, 20, "hosts")));
    assert_eq!((last.1, last.2, last.3), (1, 400, if last.0 == "r0n1" { "hosts" } else { "racks" }), "{places:?}");
    let worst = group.placed.iter().map(|at| at.performance).fold(1.0, f64::min);
    assert!(!group.alternatives.is_empty() && group.alternatives.len() <= 3, "{group:?}");
    for other in &group.alternatives {
        assert!(other.count == 0 && other.performance <= worst && other.age_ms.is_some(), "{other:?}");
    }
    // A measurement ages by as much for its host as the hint is less sure; on the root's own there is none.
    let sure = |host: &str| answer.hints.iter().find(|hint| hint.host == host).unwrap().confidence;
    let share = sure("r1n0") / sure("r0n0");
    assert!(share <= 1.0 && share > 0.74, "{share}");
    let said = hintctl(&world, &["explain", &answer.decision_id]).await;
    for host in ["r0n0", "r1n0"] {
        let is_row = |line: &&str| line.contains(host) && line.contains("measured") && line.contains(" µs");
        let row = said.lines().find(is_row).unwrap();
        assert!(row.trim_end().ends_with(&format!("{:.2}", sure(host))), "{row}\n{said}");
    }
    for words in ["predicted performance by curve strads", "root on r0n0", "same host, not measured", "or else"] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&hintctl(&world, &["--json", "explain", &answer.decision_id]).await).unwrap();
    assert_eq!(json["performance"]["root_group"], serde_json::Value::Null);
    assert_eq!(json["performance"]["groups"][0]["group"], "g");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_recorded_or_not_predicted_has_no_performance() {
    let world = World::with(&[("records", "sample = 0")]).await;
    let _feed = world.cluster(1, 2, 4_096).await;
    let answer = world.hints(job("one", 1, "nomora", 2)).await.hints.unwrap();
    assert_eq!(explain(&world, &answer.decision_id).await.performance, None);
    drop(world);
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 4_096).await;
    let answer = world.client.request_hints(job("one", 1, "spread", 2), SOON).await.unwrap().hints.unwrap();
    assert_eq!(explain(&world, &answer.decision_id).await.performance, None);
}
