//! The endpoint: `/metrics` for Prometheus, `/healthz` and `/readyz` for supervisors.
//!
//! The exporter's own listener neither tells the port it got nor knows readiness.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::metrics::Metrics;

/// Connections served at a time; more wait to be accepted. Scrapers and supervisors are few.
const MAX_CONNECTIONS: usize = 32;
/// A connection ends after this long, whatever its client does; a scrape takes milliseconds.
const CONNECTION_LIMIT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Whether the daemon can answer requests, with the reason if not.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
/// Called before each scrape, to set gauges that are known on demand only.
pub type Refresh = Arc<dyn Fn() + Send + Sync>;

/// Why the endpoint could not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The address could not be bound.
    #[error("metrics endpoint cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// A running endpoint; dropping it stops listening.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Endpoint {
    /// The bound address, with the real port where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves `metrics` on `listen`, on the current tokio runtime.
///
/// # Errors
/// [`TelemetryError::Listen`].
pub async fn serve(
    listen: SocketAddr,
    metrics: Metrics,
    ready: Readiness,
    refresh: Refresh,
) -> Result<Endpoint, TelemetryError> {
    let failed = |source| TelemetryError::Listen { address: listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let pages = Arc::new(Pages { metrics, ready, refresh });
    Ok(Endpoint { address, task: tokio::spawn(accept(listener, pages)) })
}

struct Pages {
    metrics: Metrics,
    ready: Readiness,
    refresh: Refresh,
}

async fn accept(listener: TcpListener, pages: Arc<Pages>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = Arc::clone(&pages);
                tokio::spawn(async move {
                    answer(stream, pages).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "metrics endpoint cannot accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, pages: Arc<Pages>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = pages.page(request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that breaks off or dawdles is its own problem.
    let _ = timeout(CONNECTION_LIMIT, connection).await;
}

impl Pages {
    fn page(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let (status, body) = match path {
            "/metrics" | "/healthz" | "/readyz" if !matches!(*method, Method::GET | Method::HEAD) => {
                (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned())
            }
            "/metrics" => {
                (self.refresh)();
                (StatusCode::OK, self.metrics.render())
            }
            "/healthz" => (StatusCode::OK, "alive\n".to_owned()),
            "/readyz" => match (self.ready)() {
                Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
                Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
            },
            _ => (StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz\n".to_owned()),
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        let kind =
            if path == "/metrics" { "text/plain; version=0.0.4; charset=utf-8" } else { "text/plain; charset=utf-8" };
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

    async fn start(metrics: Metrics, ready: Readiness, refresh: Refresh) -> Endpoint {
        serve("127.0.0.1:0".parse().unwrap(), metrics, ready, refresh).await.unwrap()
    }

    #[tokio::test]
    async fn metrics_are_served_on_the_port_that_the_endpoint_tells() {
        let metrics = Metrics::new();
        let ledger = metrics.ledger();
        ledger.hints(HintEvent::Issued, 3);
        let refresh = Arc::new(move || ledger.leases(17));
        let endpoint = start(metrics, Arc::new(|| Ok(())), refresh).await;
        assert_ne!(endpoint.address().port(), 0);
        let answer = ask(endpoint.address(), "GET /metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("hintd_hints_total{event=\"issued\"} 3\n"), "{answer}");
        assert!(answer.contains("hintd_leases 17\n"), "gauges are refreshed before a scrape: {answer}");
    }

    #[tokio::test]
    async fn readiness_says_why_not_and_health_is_apart_from_it() {
        let state = Arc::new(Mutex::new(Err("journal cannot be written".to_owned())));
        let seen = Arc::clone(&state);
        let endpoint = start(Metrics::new(), Arc::new(move || seen.lock().unwrap().clone()), Arc::new(|| ())).await;
        let answer = ask(endpoint.address(), "GET /readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("journal cannot be written\n"), "{answer}");
        assert!(ask(endpoint.address(), "GET /healthz").await.starts_with("HTTP/1.1 200"));
        *state.lock().unwrap() = Ok(());
        assert!(ask(endpoint.address(), "GET /readyz").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn other_paths_and_methods_are_refused() {
        let endpoint = start(Metrics::new(), Arc::new(|| Ok(())), Arc::new(|| ())).await;
        assert!(ask(endpoint.address(), "GET /").await.starts_with("HTTP/1.1 404"));
        let answer = ask(endpoint.address(), "POST /metrics").await;
        assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET, HEAD"), "{answer}");
        let head = ask(endpoint.address(), "HEAD /healthz").await;
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[tokio::test]
    async fn an_address_in_use_is_named_and_a_dropped_endpoint_frees_its_own() {
        let endpoint = start(Metrics::new(), Arc::new(|| Ok(())), Arc::new(|| ())).await;
        let address = endpoint.address();
        let again = || serve(address, Metrics::new(), Arc::new(|| Ok(())), Arc::new(|| ()));
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
