//! The daemon as a whole where only a test can bring it: an engine that panics or does not answer.

use super::Daemon;
use super::command::Command;
use super::options::WatchLimits;
use crate::config::Config;
use crate::server::{Running, start};
use crate::telemetry::metrics::Metrics;
use hintd_engine::{WatchScope, WatchedPair};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// Longest wait for what should come at once.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A daemon with nothing fed, in a folder of its own.
pub(crate) async fn running() -> (TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = {:?}\nmetrics = \"\"\n[store]\npath = {:?}\n\
         [yarn]\nmaximum_memory_mb = 65536\nmaximum_vcores = 64\n[queues.\"*\"]\nmode = \"on\"\n",
        folder.path().join("admin.sock"),
        folder.path().join("journal"),
    );
    let config = Config::from_text(&text, "test.toml").unwrap();
    (folder, start(&config.options, Metrics::new()).await.unwrap())
}

/// The engine does nothing until what comes back is dropped.
pub(crate) fn stall(daemon: &Daemon) -> std::sync::mpsc::Sender<()> {
    let (go_on, wait) = std::sync::mpsc::channel();
    daemon.on_engine(move || {
        let _ = wait.recv();
    });
    go_on
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_panics_is_told_to_health_and_to_all_that_wait() {
    let (_folder, running) = running().await;
    let daemon = running.daemon.clone();
    let stalled = stall(&daemon);
    let asking = tokio::spawn({
        let daemon = daemon.clone();
        async move { daemon.engine_report().await.map(drop) }
    });
    daemon.on_engine(|| panic!("a test's"));
    let behind = tokio::spawn({
        let daemon = daemon.clone();
        async move { daemon.last_heard().await.map(drop) }
    });
    drop(stalled);
    timeout(SOON, daemon.engine_ended().cancelled()).await.unwrap();
    assert_eq!(daemon.ready().borrow().why_not(), Some("the engine's thread ended"));
    let _ = timeout(SOON, asking).await.unwrap();
    let _ = timeout(SOON, behind).await.unwrap();
    assert!(timeout(SOON, daemon.engine_report()).await.unwrap().is_err());
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", running.grpc)).unwrap();
    let mut health = HealthClient::new(endpoint.connect().await.unwrap());
    let mut watch = health.watch(HealthCheckRequest { service: String::new() }).await.unwrap().into_inner();
    let not_serving =
        async { while watch.message().await.unwrap().unwrap().status != ServingStatus::NotServing as i32 {} };
    timeout(SOON, not_serving).await.unwrap();
    drop((watch, health));
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_order_is_no_failure_of_the_engine() {
    let (_folder, running) = running().await;
    let ready = running.daemon.ready();
    assert_eq!(ready.borrow().why_refused(), None);
    assert!(ready.borrow().why_not().is_some_and(|why| why.contains("no node")), "it is live, and can't answer");
    running.shutdown().await.unwrap();
    assert_eq!(ready.borrow().why_not(), Some("the daemon is shutting down"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_whose_caller_is_gone_watches_nothing() {
    let (_folder, running) = running().await;
    let daemon = &running.daemon;
    let pairs = vec![WatchedPair { src: "a".into(), dst: "b".into(), class: "".into() }];
    let scope = WatchScope { pairs, ..WatchScope::default() };
    let (reply, answer) = oneshot::channel();
    drop(answer);
    let most = WatchLimits { pairs: 10, watchers: 1 };
    daemon.0.engine_handle.tell(Command::Watch { watcher: "sdn".into(), scope, most, reply });
    let survey = daemon.engine_report().await.unwrap();
    assert!(survey.watchers.iter().all(|watcher| !watcher.attached), "{:?}", survey.watchers);
    assert_eq!(daemon.0.shared.watchers.others(""), 0);
    running.shutdown().await.unwrap();
}
