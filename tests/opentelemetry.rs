//! The real program sends what requests took to a collector, as spans of OpenTelemetry's protocol, and goes on where nobody
//! collects them.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

#[path = "opentelemetry/collector.rs"]
mod collector;
#[allow(dead_code, reason = "tests/daemon uses more of it")]
#[path = "daemon/program.rs"]
mod program;
#[allow(dead_code, unused_imports, reason = "tests/daemon uses more of it")]
#[path = "daemon/world.rs"]
mod world;

use collector::{Collector, Manner, ReceivedSpan};
use hintd_client::wire::v1;
use hintd_client::wire::v1::placement_client::PlacementClient;
use program::{Program, free_address, page, write_config_with};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use tonic::{Code, Request};
use world::SOON;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A daemon with metrics that sends spans to `endpoint`.
struct Traced {
    program: Program,
    metrics: SocketAddr,
    calls: PlacementClient<Channel>,
    /// Lasts as long as the program.
    _folder: tempfile::TempDir,
}

impl Traced {
    async fn start(endpoint: SocketAddr, further: &[(&'static str, &str)]) -> Self {
        let (folder, metrics) = (tempfile::tempdir().unwrap(), free_address());
        let (endpoint, listen) = (format!("endpoint = \"http://{endpoint}\""), format!("metrics = \"{metrics}\""));
        let mut lines = vec![("tracing", endpoint.as_str()), ("tracing", "sample_ratio = 0"), ("listen", &listen)];
        lines.extend_from_slice(further);
        let port = write_config_with(folder.path(), &lines);
        let program = Program::start(folder.path(), port).await;
        let calls = PlacementClient::connect(format!("http://{}", program.address)).await.unwrap();
        Self { program, metrics, calls, _folder: folder }
    }

    /// Asks for hints with these `traceparent` headers.
    async fn ask(&mut self, id: &str, parents: &[&str]) -> Result<v1::RequestHintsResponse, tonic::Status> {
        let mut request = Request::new(world::request(id, 1, 2, 1_024));
        for parent in parents {
            request.metadata_mut().append("traceparent", parent.parse().unwrap());
        }
        self.calls.request_hints(request).await.map(tonic::Response::into_inner)
    }

    /// A counter of the page of metrics; 0 where it is not there.
    async fn counted(&self, name: &str) -> u64 {
        let shown = page(self.metrics, "/metrics").await;
        let line = shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().unwrap())
    }

    async fn until_counted(&self, name: &str, least: u64) {
        let began = Instant::now();
        while self.counted(name).await < least {
            assert!(began.elapsed() < SOON, "not in time: {name} of {least}\n{}", self.program.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn stop(mut self) {
        self.program.signal("-TERM");
        assert!(self.program.ended(SOON).await.success());
    }
}

fn sampled(trace: &str) -> String {
    format!("00-{trace}-{CALLER}-01")
}

fn named<'s>(spans: &'s [ReceivedSpan], name: &str) -> &'s ReceivedSpan {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "spans of the name {name} in {spans:#?}");
    found[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_traceparent_has_its_search_commit_and_journal_in_the_callers_trace() {
    let collector = Collector::start(Manner::Takes).await;
    let mut traced = Traced::start(collector.address, &[("tracing", "timeout = \"1m\"")]).await;
    let answer = traced.ask("r1", &[&sampled(TRACE)]).await.unwrap();
    traced.stop().await; // the end sends what waits
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace == TRACE && span.service == "hintd"), "{spans:#?}");
    let names: BTreeSet<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let request = named(&spans, "hintd.v1.Placement/RequestHints");
    assert_eq!(names, [request.name.as_str(), "commit", "journal", "queue", "search"].into());
    assert_eq!(request.parent, CALLER);
    for (name, parent) in [("queue", &request.id), ("search", &request.id), ("commit", &request.id)] {
        assert_eq!(named(&spans, name).parent, *parent, "{name}");
    }
    let (commit, journal) = (named(&spans, "commit"), named(&spans, "journal"));
    assert_eq!(journal.parent, commit.id);
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "each has an id of its own");
    // One after the other, each within what it is a part of: order, not moments.
    let [queue, search] = ["queue", "search"].map(|name| named(&spans, name));
    let order = [request.began, queue.began, queue.ended, search.ended, commit.began, journal.began, journal.ended];
    assert!(order.is_sorted() && journal.ended <= commit.ended && commit.ended <= request.ended, "{spans:#?}");

    let decision = answer.hints.unwrap().decision_id;
    for (key, value) in [
        ("rpc.system.name", "grpc"),
        ("rpc.method", "hintd.v1.Placement/RequestHints"),
        ("rpc.response.status_code", "OK"),
        ("hintd.request.id", "r1"),
        ("hintd.application.id", "application_1_0001"),
        ("hintd.queue", "default"),
        ("hintd.policy", "spread"),
        ("hintd.decision.id", &decision),
    ] {
        assert_eq!(request.notes.get(key).map(String::as_str), Some(value), "{key} of {request:#?}");
    }
    assert_eq!(search.notes.get("hintd.policy").map(String::as_str), Some("spread"));
    assert_eq!(commit.notes.get("hintd.commit.result").map(String::as_str), Some("committed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sampled_is_the_callers_word_and_a_malformed_traceparent_is_counted_and_ignored() {
    let collector = Collector::start(Manner::Takes).await;
    let mut traced = Traced::start(collector.address, &[]).await;
    traced.ask("none", &[]).await.unwrap();
    traced.ask("unsampled", &[&format!("00-{TRACE}-{CALLER}-00")]).await.unwrap();
    traced.ask("upper", &[&sampled(TRACE).to_uppercase()]).await.unwrap();
    traced.ask("twice", &[&sampled(TRACE), &sampled(TRACE)]).await.unwrap();
    // Refused for what it asks, and seen all the same.
    let refused = traced.ask("", &[&sampled(TRACE)]).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(traced.counted("hintd_trace_parents_total{result=\"malformed\"}").await, 2);
    assert_eq!(traced.counted("hintd_trace_parents_total{result=\"valid\"}").await, 2);
    traced.until_counted("hintd_trace_spans_total{result=\"sent\"}", 1).await;
    traced.stop().await;
    let spans = collector.spans();
    assert_eq!(spans.len(), 1, "{spans:#?}");
    assert_eq!(spans[0].notes.get("rpc.response.status_code").map(String::as_str), Some("INVALID_ARGUMENT"));
    assert!(!spans[0].failed, "what the caller did wrong is no error of the daemon's");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_traceparent_are_sampled_by_the_ratio() {
    let collector = Collector::start(Manner::Takes).await;
    let mut traced = Traced::start(collector.address, &[("tracing", "sample_ratio = 1")]).await;
    traced.ask("r1", &[]).await.unwrap();
    traced.ask("r2", &[&format!("00-{TRACE}-{CALLER}-00")]).await.unwrap();
    traced.until_counted("hintd_trace_spans_total{result=\"sent\"}", 5).await;
    traced.stop().await;
    let spans = collector.spans();
    let requests: Vec<_> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    assert_eq!(requests.len(), 1, "the caller of the second wants none: {spans:#?}");
    assert!(requests[0].trace != TRACE && requests[0].notes["hintd.request.id"] == "r1");
}

/// Asks `count` requests, all sampled; all are answered.
async fn all_are_answered(traced: &mut Traced, count: usize) {
    for n in 0..count {
        let answer = traced.ask(&format!("r{n}"), &[&sampled(TRACE)]).await.unwrap();
        assert!(!answer.hints.unwrap().hints.is_empty(), "request {n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_where_the_collector_is_gone_and_lost_spans_are_counted() {
    let mut traced = Traced::start(free_address(), &[("tracing", "timeout = \"50ms\"")]).await;
    all_are_answered(&mut traced, 10).await;
    traced.until_counted("hintd_trace_spans_total{result=\"failed\"}", 5).await;
    let sent = traced.counted("hintd_trace_spans_total{result=\"sent\"}").await;
    traced.stop().await;
    assert_eq!(sent, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_where_the_collector_answers_nothing_and_what_finds_no_place_is_dropped() {
    let collector = Collector::start(Manner::Hangs).await;
    // A sending hangs for a minute: what comes after the first batch has two places.
    let further = [("tracing", "timeout = \"1m\""), ("tracing", "queue = 2"), ("listen", "drain = \"1s\"")];
    let mut traced = Traced::start(collector.address, &further).await;
    all_are_answered(&mut traced, 1).await;
    collector.until_asked().await;
    all_are_answered(&mut traced, 10).await;
    // Of nine requests' five spans each, and the second's of the same id as the first, which is a repeat with one. The last
    // one's own span ends after its answer was read.
    traced.until_counted("hintd_trace_spans_total{result=\"dropped\"}", 9 * 5 + 1 - 2).await;
    // And its end waits for no collector beyond what it may take in all.
    traced.stop().await;
}
