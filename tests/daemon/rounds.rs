//! Requests that are decided together (`placer.round`), over the wire.

use crate::world::{World, first_said, leased, refusal, request, resource};
use hintd_client::wire::v1;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use tonic::Code;

/// Time enough for any test. A round begins when it is full, and after 10 s at the latest, the longest that may be configured.
const LONG: Duration = Duration::from_secs(600);
/// No longer than a round may take.
const BRIEF: Duration = Duration::from_secs(10);

/// A daemon that places by `nomora` in rounds of so many.
async fn rounds_of(requests: &'static str) -> World {
    World::with(&[
        ("policy", "default = \"nomora\""),
        ("placer", "round = \"10s\""),
        ("placer", requests),
        ("placer", "deadline_max = \"1h\""),
    ])
    .await
}

/// Workers of an application whose master runs on a host.
fn near(id: &str, app: u32, count: u32, host: &str) -> v1::RequestHintsRequest {
    v1::RequestHintsRequest { am_host: host.to_owned(), ..request(id, app, count, 1_024) }
}

fn round(answer: &v1::RequestHintsResponse) -> Option<v1::RoundNote> {
    answer.hints.as_ref().unwrap().round
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_are_decided_in_one_round_and_each_gets_its_own_leases() {
    let world = rounds_of("round_requests = 16").await;
    let _beats = world.cluster(2, 4, 8_192).await;
    let asked = (1..=16).map(|app| {
        let client = world.client.clone();
        let host = format!("r{}n{}", app % 2, app % 4);
        tokio::spawn(async move { client.request_hints(near(&format!("r{app}"), app, 3, &host), LONG).await.unwrap() })
    });
    let mut answers = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        answers.push(asked.await.unwrap());
    }
    let notes: Vec<v1::RoundNote> = answers.iter().map(|answer| round(answer).unwrap()).collect();
    assert!(notes.iter().all(|note| *note == notes[0] && note.requests == 16), "{notes:?}");
    assert!(notes[0].cost <= notes[0].cost_in_turn, "{:?}", notes[0]);
    let leases: Vec<u64> = answers.iter().flat_map(|answer| leased(answer).into_values().flatten()).collect();
    assert_eq!((leases.len(), leases.iter().collect::<BTreeSet<_>>().len()), (48, 48));
    let conflicts: u32 = answers.iter().map(|answer| answer.hints.as_ref().unwrap().conflicts).sum();
    assert_eq!(conflicts, 0, "room is given once");

    // Each is a decision of its own: a repeat, an explanation, a replay.
    let again = world.client.request_hints(near("r3", 3, 3, "r1n3"), LONG).await.unwrap();
    assert!(again.is_repeat);
    assert_eq!(first_said(&again), first_said(&answers[2]));
    for answer in &answers[..4] {
        let decision_id = answer.hints.as_ref().unwrap().decision_id.clone();
        let asked = v1::ReplayRequest { decision_id, policy: String::new() };
        let replayed = world.admin.clone().replay(asked).await.unwrap().into_inner();
        assert!(replayed.same, "{:?}", replayed.differences);
    }
    let decision = answers[0].hints.as_ref().unwrap().decision_id.clone();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.args(["--address", &world.running().grpc.to_string()]);
    command.arg("--admin-socket").arg(&world.running().admin).args(["explain", &decision]).env_remove("COLUMNS");
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("decided in a round of 16, with 15 other requests: all of them cost "), "{text}");
    assert_eq!((world.counter("rounds").await, world.counter("rounds_requests").await), (1, 16));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_finds_no_room_beside_the_others_is_told_and_who_is_invalid_is_refused_alone() {
    let world = rounds_of("round_requests = 3").await;
    let _beats = world.cluster(1, 2, 2_048).await;
    let mut invalid = near("bad", 3, 1, "r0n0");
    invalid.groups[0].resource = Some(resource(4_096, 1)); // no node is as large
    let ask = |wire: v1::RequestHintsRequest| {
        let client = world.client.clone();
        tokio::spawn(async move { client.request_hints(wire, LONG).await })
    };
    let asked = [near("one", 1, 3, "r0n0"), near("two", 2, 3, "r0n0"), invalid].map(ask);
    let [one, two, bad] = asked;
    assert_eq!(refusal(bad.await.unwrap()).0, Code::InvalidArgument);
    let answers = [one.await.unwrap().unwrap(), two.await.unwrap().unwrap()];
    assert!(answers.iter().all(|answer| round(answer).unwrap().requests == 2));
    let sets = answers.each_ref().map(|answer| answer.hints.as_ref().unwrap());
    assert_eq!(sets.iter().map(|set| set.without_room).sum::<u32>(), 2, "four of six have room");
    let short = sets.into_iter().find(|set| set.without_room > 0).unwrap();
    assert_eq!((&*short.blocked[0].constraint, short.blocked[0].count), ("leased", short.without_room));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_policies_and_what_if_do_not_wait_for_others() {
    let world = rounds_of("round_requests = 2").await;
    let _beats = world.cluster(1, 2, 8_192).await;
    let first = tokio::spawn({
        let client = world.client.clone();
        async move { client.request_hints(near("first", 1, 1, "r0n0"), LONG).await.unwrap() }
    });
    let mut other = near("other", 2, 1, "r0n0");
    other.policy = "spread".to_owned();
    assert_eq!(round(&world.client.request_hints(other, LONG).await.unwrap()), None);
    let what_if = world.admin.clone().what_if(near("what-if", 3, 1, "r0n0")).await.unwrap().into_inner();
    assert_eq!((what_if.round, what_if.hints.len()), (None, 1));
    // A short deadline ends the wait of who waits with it.
    let second = world.client.request_hints(near("second", 4, 1, "r0n0"), BRIEF).await.unwrap();
    assert!(round(&second).is_none_or(|round| round.requests == 2));
    assert_eq!(leased(&first.await.unwrap()).len(), 1);
}
