//! The operator's page as it is served: who may look, at what, how many at one time, and that names stay texts.

use crate::world::{SOON, World, heartbeat, register, request};
use hintd::http::{Endpoint, serve_with_page};
use hintd::runtime::page::PageOptions;
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::v1;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;

const STREAMS: usize = 2;

/// A daemon with its page.
struct Paged {
    world: World,
    endpoint: Endpoint,
}

/// An answer: its head in small letters, and its body.
#[derive(Debug)]
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn json(&self) -> Value {
        assert_eq!(self.status(), 200, "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn connect(address: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    stream
}

/// A request as it stands, and the whole answer.
async fn raw(address: SocketAddr, head: &str) -> Answer {
    let mut stream = connect(address, &format!("{head}\r\nconnection: close")).await;
    let mut answer = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut answer)).await.expect("it ends").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    // What comes in chunks, comes in one here but for its length.
    let body = match head.contains("transfer-encoding: chunked") {
        true => body.split("\r\n").nth(1).unwrap_or_default().to_owned(),
        false => body.to_owned(),
    };
    Answer { head: head.to_owned(), body }
}

impl Paged {
    async fn start() -> Self {
        let world = World::start().await;
        let options = PageOptions { sessions: 4, session_time: Duration::from_secs(3_600), streams: STREAMS };
        let listen = "127.0.0.1:0".parse().unwrap();
        let endpoint = serve_with_page(listen, Metrics::new(), &world.running().daemon, options).await.unwrap();
        Self { world, endpoint }
    }

    async fn invited(&self) -> String {
        let answer = self.world.admin.clone().open_page(v1::OpenPageRequest {}).await.unwrap().into_inner();
        let here = format!("http://{}/page/?key=", self.endpoint.address());
        answer.url.strip_prefix(&here).unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    }

    /// A new session, as the cookie that a browser shows.
    async fn session(&self) -> String {
        let opened = self.get(&format!("/page/?key={}", self.invited().await), "").await;
        let cookie = opened.header("set-cookie").unwrap_or_else(|| panic!("{opened:?}"));
        cookie.split(';').next().unwrap().to_owned()
    }

    async fn get(&self, path: &str, cookie: &str) -> Answer {
        self.ask("GET", path, "localhost:9470", cookie).await
    }

    async fn ask(&self, method: &str, path: &str, host: &str, cookie: &str) -> Answer {
        raw(self.endpoint.address(), &self.head(method, path, host, cookie)).await
    }

    fn head(&self, method: &str, path: &str, host: &str, cookie: &str) -> String {
        let cookie = if cookie.is_empty() { String::new() } else { format!("\r\ncookie: other=1; {cookie}") };
        format!("{method} {path} HTTP/1.1\r\nhost: {host}{cookie}")
    }

    /// The first document of a stream.
    async fn document(&self, cookie: &str) -> Value {
        let mut stream = self.listen(cookie).await;
        let text = self.until(&mut stream, "\ndata: {", "\n\n").await;
        let (_, data) = text.split_once("\ndata: ").unwrap();
        let mut data = data.split("\n\n").next().unwrap().to_owned();
        // A chunk's length may stand before what follows, never within: an event is one chunk.
        data.truncate(data.rfind('}').unwrap() + 1);
        serde_json::from_str(&data).unwrap()
    }

    async fn listen(&self, cookie: &str) -> TcpStream {
        connect(self.endpoint.address(), &self.head("GET", "/page/api/stream", "localhost", cookie)).await
    }

    /// Reads until `first` came, and `last` after it.
    async fn until(&self, stream: &mut TcpStream, first: &str, last: &str) -> String {
        let read = async {
            let mut bytes = Vec::new();
            loop {
                let count = stream.read_buf(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes);
                assert!(count > 0, "it ended: {text}");
                if text.split_once(first).is_some_and(|(_, rest)| rest.contains(last)) {
                    return text.into_owned();
                }
            }
        };
        tokio::time::timeout(SOON, read).await.expect("it comes")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_page_nobody_is_invited() {
    let world = World::start().await;
    let status = world.admin.clone().open_page(v1::OpenPageRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("page.enabled: false in the configuration"), "{status:?}");
    let starting = World::with(&[("page", "enabled = true"), ("listen", "metrics = \"127.0.0.1:9470\"")]).await;
    let status = starting.admin.clone().open_page(v1::OpenPageRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().starts_with("the page is starting"), "{status:?}");
    let plain = hintd::http::serve("127.0.0.1:0".parse().unwrap(), Metrics::new(), world.running().daemon.ready());
    let plain = plain.await.unwrap();
    for path in ["/page/", "/page/page.mjs", "/page/api/stream"] {
        let answer = raw(plain.address(), &format!("GET {path} HTTP/1.1\r\nhost: localhost")).await;
        assert_eq!(answer.status(), 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_one_session_and_every_answer_says_what_a_browser_may_do() {
    let paged = Paged::start().await;
    let key = paged.invited().await;
    let address = format!("/page/?key={key}");
    assert_eq!(paged.ask("HEAD", &address, "localhost", "").await.status(), 401, "who asks for a head uses up none");
    let opened = paged.get(&address, "").await;
    assert_eq!((opened.status(), opened.header("location")), (303, Some("/page/")));
    let cookie = opened.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/page/; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let again = paged.get(&address, "").await;
    assert_eq!((again.status(), again.header("set-cookie")), (401, None));
    assert!(again.body.contains("hintctl page"), "{again:?}");
    let page = paged.get("/page/", cookie).await;
    assert!(page.status() == 200 && page.body.contains("page.mjs"), "{page:?}");
    for answer in [&page, &again, &opened, &paged.get("/page/nothing", cookie).await] {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert!(answer.header("access-control-allow-origin").is_none());
    }
    // A stranger's cookie, and none.
    for cookie in ["", "hintd_page=", "hintd_page=00000000000000000000000000000000", &format!("hintd_page={key}")] {
        for path in ["/page/page.mjs", "/page/api/settings", "/page/api/stream", "/page/api/history"] {
            assert_eq!(paged.get(path, cookie).await.status(), 401, "{path} {cookie}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_methods_and_paths_that_are_not_the_pages_own_are_refused() {
    let paged = Paged::start().await;
    let cookie = paged.session().await;
    for host in ["evil.example", "evil.example:9470", "10.0.0.1", "localhost.evil.example"] {
        let answer = paged.ask("GET", "/page/", host, &cookie).await;
        assert_eq!(answer.status(), 403, "{host}: {answer:?}");
        assert!(!answer.body.contains("page.mjs"));
    }
    let key = format!("/page/?key={}", paged.invited().await);
    assert_eq!(paged.ask("GET", &key, "evil.example", "").await.status(), 403);
    assert_eq!(paged.get(&key, "").await.status(), 303, "a refused Host uses up no key");
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        for path in ["/page/", "/page/api/settings", "/page/page.mjs", "/page/api/stream"] {
            assert_eq!(paged.ask(method, path, "localhost", &cookie).await.status(), 405, "{method} {path}");
        }
    }
    for path in [
        "/page/../metrics",
        "/page/../../etc/passwd",
        "/page/%2e%2e/%2e%2e/etc/passwd",
        "/page/..%2f..%2fetc%2fpasswd",
        "/page/vendor/../../mod.rs",
        "/page//etc/passwd",
        "/page/vendor/VENDORED",
        "/page/assets/page.mjs",
        "/page/page.mjs%00.css",
        "/page/api/",
        "/page/api/journal",
    ] {
        assert_eq!(paged.get(path, &cookie).await.status(), 404, "{path}");
    }
    assert_eq!(paged.get("/page/api/nodes", &cookie).await.status(), 400);
    assert_eq!(paged.get("/page/api/decisions", &cookie).await.status(), 400);
    assert_eq!(paged.get("/page/api/decisions?application=x", &cookie).await.status(), 400);
    assert_eq!(paged.get("/page/api/explain?id=x", &cookie).await.status(), 400);
    assert_eq!(paged.get("/page/api/explain?id=0000019a000000015c0e2f9b7d3a8146", &cookie).await.status(), 404);
    let long = format!("/page/api/nodes?rack={}", "x".repeat(5_000));
    assert_eq!(paged.get(&long, &cookie).await.status(), 400);
    // Those beside it are as they were.
    assert_eq!(paged.ask("GET", "/healthz", "anything", "").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_bounded_and_a_place_is_free_when_its_browser_goes() {
    let paged = Paged::start().await;
    let cookie = paged.session().await;
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = paged.listen(&cookie).await;
        paged.until(&mut stream, "data: {", "\n\n").await;
        open.push(stream);
    }
    let refused = paged.get("/page/api/stream", &cookie).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("5")), "{refused:?}");
    open.pop();
    let began = std::time::Instant::now();
    while paged.listen_status(&cookie).await != 200 {
        assert!(began.elapsed() < SOON, "the place stays taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The status of an answer that comes; `None`: the connection was ended for another one.
async fn status_or_end(stream: &mut TcpStream) -> Option<u16> {
    let mut head = Vec::new();
    loop {
        let read = tokio::time::timeout(SOON, stream.read_buf(&mut head)).await.expect("an answer or its end");
        let text = String::from_utf8_lossy(&head);
        if let Some((line, _)) = text.split_once("\r\n") {
            return Some(Answer { head: line.to_owned(), body: String::new() }.status());
        }
        if !matches!(read, Ok(1..)) {
            return None;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_browsers_those_beyond_the_bound_are_refused_and_probes_find_their_place() {
    /// Open at one time: a test may have some hundred files.
    const WAVE: usize = 200;
    /// Of the listener's places those that one peer may have are 24; probes take some.
    const REFUSED: usize = 16;
    let paged = Paged::start().await;
    let cookie = paged.session().await;
    for wave in 0..1_000 / WAVE {
        let mut open = Vec::with_capacity(WAVE);
        for _ in 0..WAVE {
            open.push(paged.listen(&cookie).await);
        }
        assert_eq!(paged.ask("GET", "/healthz", "anything", "").await.status(), 200, "wave {wave}");
        let mut statuses = std::collections::BTreeMap::<Option<u16>, usize>::new();
        for stream in &mut open {
            *statuses.entry(status_or_end(stream).await).or_default() += 1;
        }
        assert!(statuses.keys().all(|status| [None, Some(200), Some(503)].contains(status)), "{statuses:?}");
        assert!(statuses.get(&Some(503)).is_some_and(|&refused| refused >= REFUSED), "wave {wave}: {statuses:?}");
        assert_eq!(paged.ask("GET", "/healthz", "anything", "").await.status(), 200, "wave {wave}");
    }
    // All of them are gone: the next browser finds a place and gets the document.
    let began = std::time::Instant::now();
    while paged.listen_status(&cookie).await != 200 {
        assert!(began.elapsed() < SOON, "the places stay taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_with_control_characters_come_to_no_page() {
    type Field = fn(&mut v1::RequestHintsRequest, String);
    const EVIL: &str = "\u{1b}[2J\u{7}name\u{202e}";
    let paged = Paged::start().await;
    let mut feed = paged.world.cluster(2, 2, 8_192).await;
    feed.send(register("evil", &format!("/{EVIL}"), 8_192)).await.unwrap();
    feed.send(register(EVIL, "/rack0", 8_192)).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    assert_eq!(ack.refused.len(), 2, "{ack:?}");
    let fields: [(&str, Field); 5] = [
        ("request_id", |request, name| request.request_id = name),
        ("user", |request, name| request.user = name),
        ("queue", |request, name| request.queue = name),
        ("framework", |request, name| request.framework = name),
        ("groups", |request, name| request.groups[0].name = name),
    ];
    for (at, (field, set)) in fields.into_iter().enumerate() {
        let mut asked = request(&format!("r{at}"), 1, 3, 2_048);
        set(&mut asked, EVIL.to_owned());
        let (code, said) = paged.world.refused(asked).await;
        assert!(code == Code::InvalidArgument && said.contains(field), "{field}: {said}");
        assert!(!said.contains(char::is_control), "{field}: {said:?}");
    }
    let cookie = paged.session().await;
    let found = paged.document(&cookie).await.to_string();
    for hidden in ["\u{1b}", "\u{7}", "\u{202e}", "\\u001b", "\\u0007", "\\u202e"] {
        assert!(!found.contains(hidden), "{hidden:?}: {found}");
    }
    let encoded: String = EVIL.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for path in ["nodes?rack=", "plan?name=", "explain?id=", "history?link="] {
        let answer = paged.get(&format!("/page/api/{path}{encoded}"), &cookie).await;
        let expected = if path.starts_with("history") { 200 } else { 400 };
        assert_eq!(answer.status(), expected, "{path}: no name has such characters: {answer:?}");
        let shown = answer.body.trim_end().contains(|letter: char| letter.is_control() || letter == '\u{202e}');
        assert!(!shown, "{path}: {answer:?}");
    }
}

impl Paged {
    /// The status of one more stream, which is left at once.
    async fn listen_status(&self, cookie: &str) -> u16 {
        let mut stream = self.listen(cookie).await;
        let text = self.until(&mut stream, "HTTP/1.1 ", "\r\n").await;
        Answer { head: text, body: String::new() }.status()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_has_what_there_is_and_names_with_markup_are_its_texts() {
    const RACK: &str = "/<img/src=x/onerror=alert(1)>&\"rack";
    let paged = Paged::start().await;
    let _feed = paged.world.cluster(2, 2, 8_192).await;
    let mut odd = paged.world.heartbeats().await;
    odd.send(register("odd", RACK, 8_192)).await.unwrap();
    odd.send(heartbeat("odd", 1, 0, vec![])).await.unwrap();
    odd.await_acknowledged().await.unwrap();
    paged.world.until("all nodes are there", |status| status.nodes_usable == 5).await;
    let mut asked = request("<script>alert(1)</script>", 1, 3, 2_048);
    asked.user = "</script><b>ann".to_owned();
    let answer = paged.world.hints(asked).await;
    let id = answer.hints.unwrap().decision_id;
    let cookie = paged.session().await;
    let found = paged.document(&cookie).await;
    assert_eq!((&found["status"]["nodes_usable"], &found["status"]["leases"]), (&5.into(), &3.into()));
    let racks: Vec<&str> =
        found["racks"].as_array().unwrap().iter().map(|rack| rack["rack"].as_str().unwrap()).collect();
    assert_eq!(racks, [RACK, "/rack0", "/rack1"]);
    let decision = &found["decisions"][0];
    assert_eq!((&decision["decision_id"], &decision["hinted"]), (&id.clone().into(), &3.into()), "{decision}");
    assert_eq!(decision["request_id"], "<script>alert(1)</script>");
    assert_eq!(decision["user"], "</script><b>ann");
    assert_eq!(found["applications"][0]["leases"], 3);
    // What is asked for one by one.
    let explained = paged.get(&format!("/page/api/explain?id={id}"), &cookie).await;
    assert_eq!(explained.header("content-type"), Some("application/json"));
    assert_eq!(explained.json()["hints"].as_array().unwrap().len(), 3);
    let application = decision["application_id"].as_str().unwrap();
    let own = paged.get(&format!("/page/api/decisions?application={application}"), &cookie).await.json();
    assert_eq!((&own["total"], &own["decisions"][0]["decision_id"]), (&1.into(), &decision["decision_id"]), "{own}");
    let other = paged.get("/page/api/decisions?application=application_1_9999", &cookie).await.json();
    assert_eq!((&other["total"], other["decisions"].as_array().unwrap().len()), (&0.into(), 0));
    let encoded: String = RACK.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let nodes = paged.get(&format!("/page/api/nodes?rack={encoded}"), &cookie).await.json();
    assert_eq!((&nodes["rack"], &nodes["nodes"][0]["host"]), (&RACK.into(), &"odd".into()));
    let settings = paged.get("/page/api/settings", &cookie).await.json();
    assert_eq!((&settings["default_policy"], &settings["queues"][0]["mode"]), (&"spread".into(), &"on".into()));
    assert!(settings["path"].is_string(), "{settings}");
    assert!(paged.get("/page/api/history", &cookie).await.json()["every_ms"].is_u64());
    let replayed = paged.get(&format!("/page/api/replay?id={id}&policy=pat"), &cookie).await.json();
    assert_eq!((&replayed["same"], &replayed["recorded"]["hints"].as_array().unwrap().len()), (&true.into(), &3));
    assert_eq!(replayed["other"]["hints"].as_array().unwrap().len(), 3, "{replayed}");
    let typo = paged.get(&format!("/page/api/replay?id={id}&policy=pad"), &cookie).await;
    assert_eq!((typo.status(), typo.body.contains("pat")), (404, true), "{typo:?}");
    // Nothing of this needed a token, and none is told.
    assert!(!answer.token.is_empty() && !found.to_string().contains(&answer.token));
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_their_own_have_documents_also_where_there_is_nothing_to_show() {
    let paged = Paged::start().await;
    let cookie = paged.session().await;
    let get = async |path: &str| paged.get(&format!("/page/api/{path}"), &cookie).await;
    assert_eq!(get("plans").await.json(), serde_json::json!({ "plans": [] }));
    assert_eq!((get("plan").await.status(), get("plan?name=%3Cb%3E").await.status()), (400, 404));
    let circuits = get("circuits").await.json();
    assert_eq!((&circuits["circuits"]["wanted"], &circuits["unmet_total"]), (&Value::Null, &0.into()), "{circuits}");
    let alerts = get("alerts").await.json();
    let rules = alerts["rules"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["runbook"].as_str().is_some_and(|text| text.len() > 60)), "{alerts}");
    assert_eq!((get("replay?policy=pat").await.status(), get("replay?id=x&policy=pat").await.status()), (400, 400));
    for path in ["plans", "plan?name=x", "circuits", "alerts", "replay?id=x"] {
        assert_eq!(paged.get(&format!("/page/api/{path}"), "").await.status(), 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_stops_ends_its_streams() {
    let mut paged = Paged::start().await;
    let cookie = paged.session().await;
    let mut stream = paged.listen(&cookie).await;
    paged.until(&mut stream, "data: {", "\n\n").await;
    paged.world.stop().await;
    let mut rest = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await.expect("it ends").unwrap();
}
