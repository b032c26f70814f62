//! The operator's page: files within the program, and what they show, for browsers of this machine that were invited.
//!
//! Who may look, in this order: the connection comes from loopback; `Host` is loopback by name (else another site could
//! rebind its own name to this address); the browser shows a session, which it got for a key of `hintctl page`. Nothing
//! here changes anything: there is only GET.
//!
//! # Code map
//! - `assets`: the files; `assets/`: the page itself, ES modules without a bundler, `assets/vendor` from npm as they are.
//! - `live`: one document a second for all; `history`: the hour before; `alerts`: Prometheus's rules, judged here.

mod alerts;
mod assets;
mod history;
mod live;

use crate::runtime::Daemon;
use crate::runtime::page::PageAccess;
use crate::server::page;
use crate::telemetry::metrics::Metrics;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, ETAG, HOST, IF_NONE_MATCH,
};
use axum::http::header::{LOCATION, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hintd_engine::Refusal;
use hintd_model::text::is_hidden;
use live::Live;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Whose connection a request came on; the listener says it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// When its connection ends, whatever goes on over it; the listener says it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionEnds(pub(super) tokio::time::Instant);

/// The cookie of a session.
const SESSION: &str = "hintd_page";
/// Nothing from elsewhere, nothing within the text, in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Documents on demand that are made at one time; who comes meanwhile waits.
const ON_DEMAND_MAX: usize = 2;
/// Bytes of a query: a rack's name, or a decision's id.
const QUERY_MAX: usize = 2_048;

/// The page of a daemon; its tasks end with it.
#[derive(Debug)]
struct Page {
    daemon: Daemon,
    access: Arc<PageAccess>,
    live: Arc<Live>,
    on_demand: Semaphore,
    replays: Arc<Semaphore>,
    tag: String,
    _tasks: JoinSet<()>,
}

/// Adds the page to other routes. To be called within a tokio runtime.
pub(super) fn routes(daemon: Daemon, metrics: Metrics, access: Arc<PageAccess>) -> Router {
    let live = Arc::new(Live::new(daemon.clone(), metrics, access.options().streams));
    let mut tasks = JoinSet::new();
    tasks.spawn(Arc::clone(&live).make());
    tasks.spawn(Arc::clone(&live).remember());
    let on_demand = Semaphore::new(ON_DEMAND_MAX);
    let replays = Arc::new(Semaphore::new(1));
    let page = Arc::new(Page { daemon, access, live, on_demand, replays, tag: assets::tag(), _tasks: tasks });
    let refused = || async { text(StatusCode::METHOD_NOT_ALLOWED, "the page is only read: GET\n") };
    let only_get = |handler: axum::routing::MethodRouter<Arc<Page>>| handler.fallback(refused);
    Router::new()
        .route("/page/api/stream", only_get(get(stream)))
        .route("/page/api/history", only_get(get(hour)))
        .route("/page/api/nodes", only_get(get(nodes)))
        .route("/page/api/decisions", only_get(get(decisions)))
        .route("/page/api/explain", only_get(get(explain)))
        .route("/page/api/settings", only_get(get(settings)))
        .route("/page/api/replay", only_get(get(replay)))
        .route("/page/api/plans", only_get(get(plans)))
        .route("/page/api/plan", only_get(get(plan)))
        .route("/page/api/circuits", only_get(get(circuits)))
        .route("/page/api/alerts", only_get(get(alerts)))
        .route("/page/", only_get(get(file)))
        .route("/page/{*path}", only_get(get(file)))
        .layer(middleware::from_fn_with_state(Arc::clone(&page), guard))
        .with_state(page)
}

/// Lets in whoever may look, and says of every answer what a browser may do with it.
async fn guard(State(page): State<Arc<Page>>, request: Request, next: Next) -> Response {
    let mut answer = match refusal(&page, &request) {
        Some(refused) => refused,
        None => next.run(request).await,
    };
    let headers = answer.headers_mut();
    let always: [(HeaderName, &'static str); 5] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Why this request gets nothing of the page, or a browser its session; `None`: it may look.
fn refusal(page: &Page, request: &Request) -> Option<Response> {
    let here = request.extensions().get::<Peer>().is_some_and(|peer| peer.0.to_canonical().is_loopback());
    if !here {
        return Some(text(StatusCode::FORBIDDEN, "the page is for browsers of the daemon's own machine\n"));
    }
    if !is_loopback_host(request.headers()) {
        return Some(text(StatusCode::FORBIDDEN, "the page is at 127.0.0.1, localhost or [::1], not at this Host\n"));
    }
    if session(request.headers()).any(|session| page.access.admits(session)) {
        // Who comes with a key again is in already; the key goes out of the address.
        return key(request).map(|_| to_the_page(None));
    }
    let opened = key(request).and_then(|key| page.access.redeem(key));
    match opened {
        Some(session) => Some(to_the_page(Some(&session))),
        None if request.uri().path() == "/page/" => Some(
            (StatusCode::UNAUTHORIZED, [(CONTENT_TYPE, "text/html; charset=utf-8")], assets::CLOSED).into_response(),
        ),
        None => Some(text(StatusCode::UNAUTHORIZED, "no session: `hintctl page` gives an address that opens one\n")),
    }
}

/// The key that a browser shows, to the page itself and by GET alone: what only asks for heads uses up none.
fn key(request: &Request) -> Option<&str> {
    let shown = request.method() == axum::http::Method::GET && request.uri().path() == "/page/";
    request.uri().query().filter(|_| shown)?.strip_prefix("key=")
}

fn to_the_page(session: Option<&str>) -> Response {
    let mut answer = (StatusCode::SEE_OTHER, [(LOCATION, "/page/")]).into_response();
    // A session has hexadecimal digits only.
    let cookie = session.map(|session| format!("{SESSION}={session}; Path=/page/; HttpOnly; SameSite=Strict"));
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    answer
}

/// Whether `Host` names this machine by a loopback name; any port: it may be forwarded over ssh.
fn is_loopback_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Sessions that a browser shows.
fn session(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
    cookies.flat_map(|cookie| cookie.split("; ")).filter_map(|pair| pair.strip_prefix(SESSION)?.strip_prefix('='))
}

async fn file(State(page): State<Arc<Page>>, request: Request) -> Response {
    let path = request.uri().path().strip_prefix("/page/").unwrap_or_default();
    let Some(asset) = assets::find(path) else { return text(StatusCode::NOT_FOUND, "the page has no such file\n") };
    let tag = HeaderValue::from_str(&page.tag).unwrap_or(HeaderValue::from_static("\"\""));
    let fresh = [(CACHE_CONTROL, HeaderValue::from_static("no-cache")), (ETAG, tag.clone())];
    if request.headers().get(IF_NONE_MATCH) == Some(&tag) {
        return (StatusCode::NOT_MODIFIED, fresh).into_response();
    }
    (fresh, [(CONTENT_TYPE, asset.kind)], asset.bytes).into_response()
}

async fn stream(State(page): State<Arc<Page>>, request: Request) -> Response {
    // It ends before a connection does that others used before it, and the connection with it: the next has a whole life.
    let ends = request.extensions().get::<ConnectionEnds>().map(|ends| ends.0);
    match page.live.listen(ends) {
        Some(events) => ([(CONTENT_TYPE, EVENTS), (CONNECTION, "close")], Body::from_stream(events)).into_response(),
        None => {
            let told = text(StatusCode::SERVICE_UNAVAILABLE, "page.streams browsers look already: close one\n");
            ([(RETRY_AFTER, "5")], told).into_response()
        }
    }
}

async fn hour(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    page.live.history(value(&request, "link")).await.map_or_else(stopping, json)
}

async fn nodes(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Some(rack) = value(&request, "rack") else { return missing("rack") };
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    written(page::page_nodes(&page.daemon, &page.live.links, rack).await).await
}

async fn plans(State(page): State<Arc<Page>>) -> Response {
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    written(page::page_plans(&page.daemon).await).await
}

async fn plan(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Some(name) = value(&request, "name") else { return missing("name") };
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    written(page::page_plan(&page.daemon, &name).await).await
}

async fn circuits(State(page): State<Arc<Page>>) -> Response {
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    written(page::page_circuits(&page.daemon).await).await
}

async fn alerts(State(page): State<Arc<Page>>) -> Response {
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    page.live.alerts_now().await.map_or_else(stopping, json)
}

/// A document, written beside the threads that serve sockets: some have thousands of rows.
async fn written<T: Serialize + Send + 'static>(found: Result<T, Refusal>) -> Response {
    let found = match found {
        Ok(found) => found,
        Err(refusal) => return refused(&refusal),
    };
    let text = tokio::task::spawn_blocking(move || serde_json::to_string(&found)).await;
    text.ok().and_then(Result::ok).map_or_else(stopping, json)
}

async fn decisions(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Some(application) = value(&request, "application") else { return missing("application") };
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    written(page::page_decisions(&page.daemon, &application).await).await
}

async fn explain(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Some(decision) = value(&request, "id") else { return missing("id") };
    let Ok(_place) = page.on_demand.acquire().await else { return stopping() };
    match page::page_explain(&page.daemon, &decision).await {
        Ok(found) => json(found),
        Err(refusal) => refused(&refusal),
    }
}

/// A search may take its 20 s: others that a browser asks for do not wait for it.
async fn replay(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Some(decision) = value(&request, "id") else { return missing("id") };
    let policy = value(&request, "policy").unwrap_or_default();
    let Ok(place) = Arc::clone(&page.replays).acquire_owned().await else { return stopping() };
    written(page::page_replay(&page.daemon, &decision, policy, place).await).await
}

async fn settings(State(page): State<Arc<Page>>) -> Response {
    serde_json::to_string(&page::page_settings(&page.daemon).await).map_or_else(|_| stopping(), json)
}

/// A value of a query by its name, decoded. What is hidden in a text stands in no name, and in no answer of the page.
fn value(request: &Request, name: &str) -> Option<String> {
    let query = request.uri().query().filter(|query| query.len() <= QUERY_MAX)?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    let value = percent_encoding::percent_decode_str(value).decode_utf8().ok()?;
    (!value.contains(is_hidden)).then(|| value.into_owned())
}

/// Of a query without such a value, or with one that can be none.
fn missing(name: &str) -> Response {
    text(StatusCode::BAD_REQUEST, &format!("?{name}= is missing, too long, or has control characters\n"))
}

fn refused(refusal: &Refusal) -> Response {
    let status = match refusal {
        Refusal::Invalid { .. } => StatusCode::BAD_REQUEST,
        Refusal::Unknown { .. } | Refusal::UnknownQueue { .. } | Refusal::NotRecorded { .. } => StatusCode::NOT_FOUND,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    text(status, &format!("{refusal}\n"))
}

fn stopping() -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops\n")
}

fn json(text: String) -> Response {
    ([(CONTENT_TYPE, JSON)], text).into_response()
}

fn text(status: StatusCode, words: &str) -> Response {
    (status, [(CONTENT_TYPE, super::PLAIN)], words.to_owned()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_this_machine() {
        let host = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            is_loopback_host(&headers)
        };
        for here in ["127.0.0.1", "127.0.0.1:9470", "localhost:1", "LOCALHOST", "[::1]:9470", "[::1]", "127.9.9.9:1"] {
            assert!(host(here), "{here}");
        }
        for other in [
            "evil.example:9470",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "10.0.0.1",
            "0.0.0.0:1",
            "[::1",
            "127.0.0.1:x",
            "127.0.0.1@evil.example",
            "localhost:",
            "::2",
        ] {
            assert!(!host(other), "{other}");
        }
        assert!(!is_loopback_host(&HeaderMap::new()), "a browser says it");
        let mut two = HeaderMap::new();
        two.append(HOST, HeaderValue::from_static("localhost"));
        two.append(HOST, HeaderValue::from_static("evil.example"));
        assert!(!is_loopback_host(&two));
    }
}
