//! What a stranger on the same machine can't do to an application that asked for hints, and who is let in again.

use crate::streams::follow_start;
use crate::world::{SOON, World, leased, refusal, request};
use hintd_client::wire::v1;
use hintd_client::wire::v1::placement_client::PlacementClient;
use hintd_client::{Client, Secret};
use std::time::Duration;
use tonic::Code;
use tonic::transport::Channel;

/// Somebody else on the machine.
async fn stranger(world: &World) -> Client {
    Client::connect(&world.running().grpc.to_string()).await.unwrap()
}

/// A client of version 0.1.0: it shows nothing but what it sets itself.
async fn old_client(world: &World) -> PlacementClient<Channel> {
    PlacementClient::connect(format!("http://{}", world.running().grpc)).await.unwrap()
}

fn attempt(id: &str, number: u32) -> v1::RequestHintsRequest {
    v1::RequestHintsRequest { attempt: number, ..request(id, 1, 2, 1_024) }
}

fn done(number: u32) -> v1::EventItem {
    let done = v1::task_event::What::Done(v1::ApplicationDone { failed: false });
    let event = v1::TaskEvent {
        application_id: "application_1_0001".into(),
        attempt: number,
        what: Some(done),
        ..v1::TaskEvent::default()
    };
    v1::EventItem { number: 0, item: Some(v1::event_item::Item::Event(event)) }
}

/// Tells of an end, and waits until the daemon has looked at it.
async fn tell_done(client: &Client, number: u32) {
    let hello = v1::FeedHello { source: "stranger".into(), ..v1::FeedHello::default() };
    let mut feed = client.feed::<v1::EventItem>(hello).await.unwrap();
    feed.send(done(number)).await.unwrap();
    feed.await_acknowledged().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_knows_the_application_gets_no_token_and_no_hints() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let answer = world.hints(attempt("r1", 1)).await;
    let mut old = old_client(&world).await;
    for id in ["r1", "r2"] {
        let found = refusal(stranger(&world).await.request_hints(attempt(id, 1), SOON).await);
        assert_eq!(found.0, Code::PermissionDenied, "{found:?}");
        let status = old.request_hints(attempt(id, 1)).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
        assert!(!format!("{status:?}").contains(&answer.token), "{status:?}");
    }
    assert_eq!(world.status().await.leases, 2);
    // By the token alone, and by the nonce alone.
    let by_token = v1::RequestHintsRequest { token: answer.token.clone(), ..attempt("r3", 1) };
    assert_eq!(old.request_hints(by_token).await.unwrap().into_inner().token, answer.token);
    assert_eq!(world.hints(attempt("r4", 1)).await.token, answer.token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_does_not_use_up_what_the_application_may_ask_for() {
    let world = World::with(&[("limits", "requests_per_s = 3")]).await;
    let _feed = world.cluster(2, 2, 8_192).await;
    world.hints(attempt("r1", 1)).await;
    let stranger = stranger(&world).await;
    for number in 0..30 {
        let found = refusal(stranger.request_hints_once(attempt(&format!("s{number}"), 1)).await);
        assert_eq!(found.0, Code::PermissionDenied, "{found:?}");
    }
    world.client.request_hints_once(attempt("r2", 1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_releases_follows_explains_and_ends_nothing() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let answer = world.hints(attempt("r1", 1)).await;
    let decision = answer.hints.as_ref().unwrap().decision_id.clone();
    let stranger = stranger(&world).await;
    let release = v1::ReleaseRequest { application_id: "application_1_0001".into(), attempt: 1, ..Default::default() };
    assert_eq!(refusal(stranger.release(release.clone()).await).0, Code::PermissionDenied);
    let start = v1::FollowStart { token: String::new(), ..follow_start(&answer, 0) };
    assert_eq!(refusal(stranger.follow(start).await.map(|_| ())).0, Code::PermissionDenied);
    assert_eq!(refusal(stranger.explain(&decision).await).0, Code::Unauthenticated);
    let shown = Secret::random().nonce("application_1_0001");
    let guess = v1::ExplainRequest { decision_id: decision.clone(), token: "guess".into(), nonce: shown };
    assert_eq!(refusal(stranger.explain_with(guess).await).0, Code::PermissionDenied);
    let before = world.counter("events_refused").await;
    tell_done(&stranger, 1).await;
    world.until("the event was looked at", |status| status.counters.get("events_refused") > Some(&before)).await;
    assert_eq!(world.status().await.leases, 2);
    // What an application can see of its own id says nothing of another's.
    let number = &decision[..16];
    let short = refusal(stranger.explain(number).await);
    assert_eq!((decision.len(), short.0), (32, Code::NotFound), "{short:?}");
    // An operator explains without a token, the application with what it has.
    let asked = v1::ExplainRequest { decision_id: decision.clone(), ..Default::default() };
    let explained = world.admin.clone().explain(asked).await.unwrap().into_inner();
    let theirs = world.client.explain(&decision).await.unwrap();
    let at_one_time = |told| v1::ExplainResponse { age_ms: 0, ..told };
    assert_eq!(at_one_time(explained), at_one_time(theirs));
    tell_done(&world.client, 1).await;
    world.until("its own end counts", |status| status.leases == 0).await;
    let _ = leased(&answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_attempts_neither_releases_nor_locks_out() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    world.hints(attempt("r1", 1)).await;
    let stranger = stranger(&world).await;
    let (code, message) = refusal(stranger.request_hints(attempt("jump", u32::MAX), SOON).await);
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("limits.attempt_jump"), "{message}");
    stranger.request_hints(attempt("next", 2), SOON).await.unwrap();
    tell_done(&stranger, u32::MAX).await;
    tell_done(&stranger, 2).await;
    world.until("what the stranger had is gone", |status| status.leases == 2).await;
    world.hints(attempt("r2", 1)).await;
    assert_eq!(world.status().await.leases, 4);
    // The application's own next attempt ends the first.
    world.hints(attempt("r3", 2)).await;
    assert_eq!(world.status().await.leases, 2);
    let (code, message) = refusal(world.client.request_hints(attempt("late", 1), SOON).await);
    assert!(code == Code::InvalidArgument && message.contains("is over"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_lost_the_first_answer_gets_it_by_its_nonce_also_after_a_restart() {
    let mut world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let nonce = vec![9; 16];
    let shown = |id: &str| v1::RequestHintsRequest { nonce: nonce.clone(), ..attempt(id, 1) };
    let lost = old_client(&world).await.request_hints(shown("r1")).await.unwrap().into_inner();
    let again = old_client(&world).await.request_hints(shown("r1")).await.unwrap().into_inner();
    assert_eq!(again.token, lost.token);
    world.restart().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let mut old = old_client(&world).await;
    assert_eq!(old.request_hints(shown("r1")).await.unwrap().into_inner().hints, lost.hints);
    assert_eq!(old.request_hints(attempt("r1", 1)).await.unwrap_err().code(), Code::Unauthenticated);
    let other = v1::RequestHintsRequest { nonce: vec![8; 16], ..attempt("r1", 1) };
    assert_eq!(old.request_hints(other).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(old.request_hints(shown("r2")).await.unwrap().into_inner().token, lost.token);
    let journal = std::fs::read(world.folder.path().join("journal.redb")).unwrap();
    assert!(!journal.windows(16).any(|bytes| bytes == [9; 16]), "the journal has its hash only");
    let short = v1::RequestHintsRequest { nonce: vec![9; 15], ..attempt("r9", 2) };
    let status = old.request_hints(short).await.unwrap_err();
    assert_eq!(
        (status.code(), status.metadata().get("hintd-field").unwrap()),
        (Code::InvalidArgument, &"nonce".parse().unwrap())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_version_before_goes_on_and_can_be_switched_off() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let mut old = old_client(&world).await;
    let first = old.request_hints(attempt("r1", 1)).await.unwrap().into_inner();
    let second = old.request_hints(attempt("r2", 1)).await.unwrap().into_inner();
    assert_eq!(first.token, second.token, "it shows the token of the answer whose leases it releases");
    let explain = v1::ExplainRequest { decision_id: first.hints.unwrap().decision_id, ..Default::default() };
    old.explain(explain).await.unwrap();
    let release = v1::ReleaseRequest {
        application_id: "application_1_0001".into(),
        attempt: 1,
        token: second.token,
        ..Default::default()
    };
    assert_eq!(old.release(release).await.unwrap().into_inner().released, 4);
    assert_eq!(world.counter("legacy_attempts").await, 1);
    let held = world.admin.clone().list_attempts(v1::ListAttemptsRequest::default()).await.unwrap().into_inner();
    assert!(held.attempts[0].legacy && held.total == 1, "{held:?}");
    let strict = World::with(&[("tokens", "legacy_clients = false")]).await;
    let _feed = strict.cluster(1, 2, 8_192).await;
    let status = old_client(&strict).await.request_hints(attempt("r1", 1)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    strict.hints(attempt("r1", 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_lists_attempts_and_ends_one() {
    let world = World::start().await;
    let _feed = world.cluster(2, 2, 8_192).await;
    let answer = world.hints(attempt("r1", 1)).await;
    world.hints(request("other", 2, 1, 1_024)).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let mut admin = world.admin.clone();
    let held = admin.list_attempts(v1::ListAttemptsRequest { limit: 1 }).await.unwrap().into_inner();
    assert_eq!((held.total, held.attempts.len(), held.attempts[0].leases, held.attempts[0].legacy), (2, 1, 2, false));
    let end = |number| v1::EndAttemptRequest { application_id: "application_1_0001".into(), attempt: number };
    admin.end_attempt(end(1)).await.unwrap();
    assert_eq!(world.status().await.leases, 1);
    let ended = tokio::time::timeout(SOON, follow.next()).await.expect("its stream ends");
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(admin.end_attempt(end(1)).await.unwrap_err().code(), Code::NotFound);
}

fn watch(name: &str) -> v1::WatchRequest {
    v1::WatchRequest { watcher: name.into(), flows: true, ..v1::WatchRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controllers_name_is_its_own_while_its_stream_is_open() {
    let world = World::start().await;
    let _feed = world.cluster(1, 2, 8_192).await;
    let mut updates = world.client.watch(watch("sdn")).await.unwrap();
    let first = updates.message().await.unwrap().unwrap();
    let stranger = stranger(&world).await;
    assert_eq!(refusal(stranger.watch(watch("sdn")).await.map(|_| ())).0, Code::PermissionDenied);
    assert_eq!(refusal(stranger.acknowledge("sdn", first.number, vec![]).await).0, Code::PermissionDenied);
    let report = v1::ReportCircuitsRequest { watcher: "sdn".into(), ..Default::default() };
    assert_eq!(refusal(stranger.report_circuits(report).await).0, Code::PermissionDenied);
    // It comes back before its own stream is found to be dead, by what it shows.
    let mut again = world.client.watch(watch("sdn")).await.unwrap();
    again.message().await.unwrap().unwrap();
    assert_eq!(updates.message().await.unwrap_err().code(), Code::Unavailable);
    drop(again);
    // Once its stream is gone the name is free.
    let free = async {
        while stranger.watch(watch("sdn")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, free).await.expect("its stream is gone");
}
