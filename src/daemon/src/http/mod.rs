//! The HTTP listener's pages: `/metrics` for Prometheus, `/healthz` and `/readyz` for supervisors. The first says that the
//! process answers, the second that requests get hints (`runtime::Ready`). `page`: the operator's page, where it is on.
//!
//! A new page is a handler beside those here (or a file of its own in this folder) and a line in `routes`. What it
//! shows comes in by `Sources`: the daemon's status is put together by `server::status_report` already. `endpoint` in
//! src/bin/hintd.rs starts the listener with what the pages need.

mod listener;
mod page;

pub use listener::Endpoint;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::runtime::page::{PageAccess, PageOptions};
use crate::runtime::{Daemon, Ready};
use crate::telemetry::metrics::Metrics;

/// What pages are made of.
#[derive(Clone)]
struct Sources {
    metrics: Metrics,
    ready: watch::Receiver<Ready>,
}

/// The pages by their paths. A path answers GET and HEAD, and refuses other methods as its own kind of text.
fn routes(sources: Sources) -> Router {
    Router::new()
        .route("/metrics", get(metrics).fallback(|| only_get(PROMETHEUS)))
        .route("/healthz", get(health).fallback(|| only_get(PLAIN)))
        .route("/readyz", get(readiness).fallback(|| only_get(PLAIN)))
        .fallback(no_such_page)
        .with_state(sources)
}

/// Text for people.
const PLAIN: &str = "text/plain; charset=utf-8";
/// Prometheus's own format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

async fn metrics(State(sources): State<Sources>) -> Response {
    // It asks the journal's disk for its room, which may hang.
    match tokio::task::spawn_blocking(move || sources.metrics.render()).await {
        Ok(rendered) => text(StatusCode::OK, PROMETHEUS, rendered),
        Err(_) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, "no metrics: a fault of hintd, see its log\n".to_owned())
        }
    }
}

async fn health() -> Response {
    text(StatusCode::OK, PLAIN, "alive\n".to_owned())
}

async fn readiness(State(sources): State<Sources>) -> Response {
    match sources.ready.borrow().why_not() {
        None => text(StatusCode::OK, PLAIN, "ready\n".to_owned()),
        Some(reason) => text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{reason}\n")),
    }
}

async fn only_get(kind: &'static str) -> Response {
    let answer = text(StatusCode::METHOD_NOT_ALLOWED, kind, "only GET and HEAD\n".to_owned());
    ([(ALLOW, "GET, HEAD")], answer).into_response()
}

async fn no_such_page() -> Response {
    text(StatusCode::NOT_FOUND, PLAIN, "there are /metrics, /healthz and /readyz\n".to_owned())
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(CONTENT_TYPE, kind)], body).into_response()
}

/// Why the listener could not start.
#[derive(Debug, thiserror::Error)]
#[error("metrics endpoint cannot listen on {address}")]
pub struct ListenError {
    /// The address asked for.
    pub address: SocketAddr,
    /// The system's error.
    pub source: io::Error,
}

/// Serves the pages on `listen`, on the current tokio runtime.
///
/// # Errors
/// [`ListenError`].
pub async fn serve(
    listen: SocketAddr,
    metrics: Metrics,
    ready: watch::Receiver<Ready>,
) -> Result<Endpoint, ListenError> {
    let routes = routes(Sources { metrics, ready });
    Endpoint::start(listen, routes).await.map_err(|source| ListenError { address: listen, source })
}

/// The same with the operator's page, to which the daemon can invite from then on.
///
/// # Errors
/// [`ListenError`].
pub async fn serve_with_page(
    listen: SocketAddr,
    metrics: Metrics,
    daemon: &Daemon,
    options: PageOptions,
) -> Result<Endpoint, ListenError> {
    let failed = |source| ListenError { address: listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let access = Arc::new(PageAccess::new(listener.local_addr().map_err(failed)?, options));
    let page = page::routes(daemon.clone(), metrics.clone(), Arc::clone(&access));
    let routes = page.merge(routes(Sources { metrics, ready: daemon.ready() }));
    let endpoint = Endpoint::on(listener, routes).map_err(failed)?;
    daemon.set_page(access);
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::telemetry::metrics::HintEvent;

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    const READY: Ready = Ready { store: true, engine: true, placers: true, stopping: false, nodes: true };

    fn anywhere() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    async fn start(metrics: Metrics) -> Endpoint {
        serve(anywhere(), metrics, watch::channel(READY).1).await.unwrap()
    }

    #[tokio::test]
    async fn metrics_are_served_on_the_port_that_the_endpoint_tells() {
        let metrics = Metrics::new();
        let ledger = metrics.ledger();
        ledger.hints(HintEvent::Issued, 3);
        let endpoint = start(metrics).await;
        assert_ne!(endpoint.address().port(), 0);
        ledger.leases(17);
        let answer = ask(endpoint.address(), "GET /metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("hintd_hints_total{event=\"issued\"} 3\n"), "{answer}");
        assert!(answer.contains("hintd_leases 17\n"), "as it is now: {answer}");
    }

    #[tokio::test]
    async fn readiness_says_why_not_and_health_is_apart_from_it() {
        let (state, ready) = watch::channel(Ready { store: false, ..READY });
        let endpoint = serve(anywhere(), Metrics::new(), ready).await.unwrap();
        let answer = ask(endpoint.address(), "GET /readyz").await;
        assert!(
            answer.starts_with("HTTP/1.1 503") && answer.ends_with("\r\n\r\nthe journal can't be written\n"),
            "{answer}"
        );
        assert!(ask(endpoint.address(), "GET /healthz").await.starts_with("HTTP/1.1 200"));
        state.send_replace(Ready { nodes: false, ..READY });
        let answer = ask(endpoint.address(), "GET /readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("no node is RUNNING"), "{answer}");
        assert!(ask(endpoint.address(), "GET /healthz").await.starts_with("HTTP/1.1 200"));
        state.send_replace(READY);
        assert!(ask(endpoint.address(), "GET /readyz").await.starts_with("HTTP/1.1 200"));
    }

    /// An answer's head, headers in order and without what changes from one to the next, and its body.
    struct Told {
        status: String,
        headers: Vec<String>,
        body: String,
    }

    async fn told(address: SocketAddr, request: &str) -> Told {
        let answer = ask(address, request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut lines = head.split("\r\n").filter(|line| !line.starts_with("date: ")).map(str::to_owned);
        let status = lines.next().unwrap();
        let mut headers: Vec<String> = lines.collect();
        headers.sort_unstable();
        Told { status, headers, body: body.to_owned() }
    }

    #[tokio::test]
    async fn heads_and_texts_are_these() {
        let endpoint = start(Metrics::new()).await;
        let (only, pages) = ("only GET and HEAD\n", "there are /metrics, /healthz and /readyz\n");
        let allow = Some("allow: GET, HEAD".to_owned());
        for (request, status, kind, body) in [
            ("GET /healthz", "200 OK", PLAIN, "alive\n"),
            ("GET /healthz?x=1", "200 OK", PLAIN, "alive\n"),
            ("GET /readyz", "200 OK", PLAIN, "ready\n"),
            ("GET /readyz/", "404 Not Found", PLAIN, pages),
            ("POST /", "404 Not Found", PLAIN, pages),
            ("OPTIONS *", "404 Not Found", PLAIN, pages),
            ("PUT /readyz", "405 Method Not Allowed", PLAIN, only),
            ("POST /metrics", "405 Method Not Allowed", PROMETHEUS, only),
        ] {
            let mut headers: Vec<String> = allow.clone().filter(|_| body == only).into_iter().collect();
            headers.push("connection: close".to_owned());
            headers.push(format!("content-length: {}", body.len()));
            headers.push(format!("content-type: {kind}"));
            let found = told(endpoint.address(), request).await;
            assert_eq!(found.status, format!("HTTP/1.1 {status}"), "{request}");
            assert_eq!((&found.headers, &*found.body), (&headers, body), "{request}");
            if let Some(path) = request.strip_prefix("GET ") {
                let head = told(endpoint.address(), &format!("HEAD {path}")).await;
                assert_eq!((head.status, head.headers, &*head.body), (found.status, headers, ""), "HEAD {path}");
            }
        }
    }

    #[tokio::test]
    async fn other_paths_and_methods_are_refused() {
        let endpoint = start(Metrics::new()).await;
        assert!(ask(endpoint.address(), "GET /").await.starts_with("HTTP/1.1 404"));
        let answer = ask(endpoint.address(), "POST /metrics").await;
        assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET, HEAD"), "{answer}");
        let head = ask(endpoint.address(), "HEAD /healthz").await;
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[tokio::test]
    async fn an_address_in_use_is_named_and_a_dropped_endpoint_frees_its_own() {
        let endpoint = start(Metrics::new()).await;
        let address = endpoint.address();
        let again = || serve(address, Metrics::new(), watch::channel(READY).1);
        let error = again().await.unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        drop(endpoint);
        for _ in 0..100 {
            if again().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{address} was not freed");
    }
}
