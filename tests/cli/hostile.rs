//! A daemon that means harm to whoever asks it: strings that fake lines, speak to the terminal or turn text around, and
//! answers that never end.

use super::{Files, stderr, stdout, text_of};
use axum::extract::{Request, State};
use axum::response::Response;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use hyper::header::{HeaderMap, HeaderValue};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};

/// Ends a line, erases a screen, turns what follows around.
const EVIL: &str = "x\nFAKE\tready\r\u{1b}[2J\u{9b}1m\u{202e}gnp\u{2066}\u{2028}FAKE";
const DEPTH: u32 = 8;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// One message, every string of which is evil.
    Answers,
    /// An evil refusal.
    Refuses,
    /// One message after another.
    Endless,
}

#[derive(Debug, Clone)]
struct Hostile {
    pool: DescriptorPool,
    manner: Arc<Mutex<Manner>>,
    asked: Arc<Mutex<BTreeSet<String>>>,
}

fn evil_value(kind: &Kind, depth: u32) -> Value {
    match kind {
        Kind::String => Value::String(EVIL.to_owned()),
        Kind::Bytes => Value::Bytes(Bytes::from_static(b"{}")),
        Kind::Bool => Value::Bool(true),
        Kind::Message(message) => Value::Message(evil(message, depth + 1)),
        Kind::Enum(values) => Value::EnumNumber(values.values().last().map_or(0, |value| value.number())),
        other => Value::default_value(other),
    }
}

fn set(message: &mut DynamicMessage, field: &FieldDescriptor, depth: u32) {
    let kind = field.kind();
    if kind.as_message().is_some_and(|_| depth >= DEPTH) {
        return;
    }
    let value = if let Some(entry) = kind.as_message().filter(|entry| entry.is_map_entry()) {
        let value = evil_value(&entry.map_entry_value_field().kind(), depth);
        Value::Map([(MapKey::String(EVIL.to_owned()), value)].into())
    } else if field.is_list() {
        Value::List(vec![evil_value(&kind, depth)])
    } else {
        evil_value(&kind, depth)
    };
    message.set_field(field, value);
}

fn evil(descriptor: &MessageDescriptor, depth: u32) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    descriptor.fields().for_each(|field| set(&mut message, &field, depth));
    message
}

async fn answer(State(hostile): State<Hostile>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap();
    let service = hostile.pool.get_service_by_name(service).unwrap();
    let method = service.methods().find(|known| known.name() == method).unwrap();
    hostile.asked.lock().unwrap().insert(method.full_name().to_owned());
    let message = evil(&method.output(), 0).encode_to_vec();
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let piece = move || Ok::<_, Infallible>(Frame::data(Bytes::from(framed.clone())));
    let mut end = HeaderMap::new();
    let manner = *hostile.manner.lock().unwrap();
    // A client repeats what is UNAVAILABLE until its patience ends, and then says what it heard last: once is enough.
    let code = match (manner, method.name()) {
        (Manner::Refuses, "Explain") => "14",
        (Manner::Refuses, _) => "9",
        _ => "0",
    };
    end.insert("grpc-status", HeaderValue::from_static(code));
    end.insert("grpc-message", HeaderValue::from_static("x%0AFAKE%0D%1B[2J%E2%80%AEgnp"));
    let end = tokio_stream::iter([Ok(Frame::trailers(end))]);
    let body = match manner {
        Manner::Refuses => axum::body::Body::new(StreamBody::new(end)),
        Manner::Answers => axum::body::Body::new(StreamBody::new(tokio_stream::iter([piece()]).chain(end))),
        Manner::Endless => {
            axum::body::Body::new(StreamBody::new(tokio_stream::iter(std::iter::repeat_with(piece)).chain(end)))
        }
    };
    Response::builder().header("content-type", "application/grpc").body(body).unwrap()
}

/// Serves on a socket and an address until it is dropped.
struct Server {
    runtime: tokio::runtime::Runtime,
    hostile: Hostile,
    address: String,
    socket: String,
}

impl Server {
    fn start(files: &Files) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let pool = DescriptorPool::decode(hintd_client::wire::DESCRIPTORS).unwrap();
        let (manner, asked) = (Arc::new(Mutex::new(Manner::Answers)), Arc::default());
        let hostile = Hostile { pool, manner, asked };
        let socket = text_of(&files.path("evil.sock"));
        let routes = axum::Router::new().fallback(answer).with_state(hostile.clone());
        let routes = tonic::service::Routes::from(routes);
        let address = runtime.block_on(async {
            let unix = tokio::net::UnixListener::bind(&socket).unwrap();
            let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = tcp.local_addr().unwrap().to_string();
            let server = || tonic::transport::Server::builder().add_routes(routes.clone());
            tokio::spawn(server().serve_with_incoming(UnixListenerStream::new(unix)));
            tokio::spawn(server().serve_with_incoming(TcpListenerStream::new(tcp)));
            address
        });
        Self { runtime, hostile, address, socket }
    }

    fn hintctl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("timeout"); // what hangs ends with 124
        command.args(["60", env!("CARGO_BIN_EXE_hintctl")]).env_remove("COLUMNS");
        command.args(["--address", &self.address, "--admin-socket", &self.socket]).args(args).output().unwrap()
    }
}

/// Where a line was faked, or something speaks to a terminal.
fn harm(what: &str, said: &str) -> Option<String> {
    let obeyed = |letter: char| {
        letter.is_control() && letter != '\n' || matches!(letter, '\u{202e}' | '\u{2066}' | '\u{2028}' | '\u{61c}')
    };
    let fake = said.lines().any(|line| line.trim_start_matches(['\t', '"']).starts_with("FAKE"));
    (said.contains(obeyed) || fake).then(|| format!("{what}: {said:?}"))
}

/// Every command that asks a daemon.
fn commands(files: &Files) -> Vec<Vec<String>> {
    let request = files.request(&serde_json::json!({}));
    let [snapshot, plan, other] = ["snapshot.json", "plan.json", "made.json"].map(|name| text_of(&files.path(name)));
    let [trace, bundle] = ["jobs.tsv", "bundle"].map(|name| text_of(&files.path(name)));
    super::document(&["trace", "generate", "--jobs", "10", "--force", "-o", &trace]);
    super::document(&["plan", "--trace", &trace, "--cluster", "jobpacker", "--force", "-o", &plan]);
    let network = text_of(&files.path("network.toml"));
    std::fs::write(&network, "format = \"hintd.racks/1\"\n[racks.\"*\"]\nuplink = \"10Gbit\"\n").unwrap();
    let lines: Vec<Vec<&str>> = vec![
        vec!["status"],
        vec!["status", "--live"],
        vec!["doctor"],
        vec!["top", "--once", "--every", "0.1"],
        vec!["page"],
        vec!["nodes"],
        vec!["nodes", EVIL],
        vec!["nodes", "none of these"],
        vec!["nodes", "--state", "LOST"],
        vec!["latency"],
        vec!["latency", "--list"],
        vec!["latency", "--host", "x"],
        vec!["links"],
        vec!["links", "--link", "x"],
        vec!["chains"],
        vec!["chains", "check"],
        vec!["circuits"],
        vec!["policies"],
        vec!["reload"],
        vec!["calibrate", "--input-mb", "1", "--exchanged-mb", "1", "--containers", "1"],
        vec!["snapshot", "--force", "-o", &snapshot],
        vec!["explain", "0000000000000001"],
        vec!["explain", "0000000000000001", "--token", "t"],
        vec!["explain", "application_1_0001"],
        vec!["attempts"],
        vec!["decisions"],
        vec!["decisions", "-o", "wide"],
        vec!["decisions", "-o", "yaml"],
        vec!["leases"],
        vec!["leases", "-o", "wide"],
        vec!["applications"],
        vec!["applications", "-o", "wide"],
        vec!["nodes", "-o", "wide"],
        vec!["log-level"],
        vec!["log-level", "info"],
        vec!["bundle", "-o", &bundle],
        vec!["racks"],
        vec!["racks", "--differences"],
        vec!["network", "show"],
        vec!["network", "diff", &network],
        vec!["network", "load", &network],
        vec!["holdout", "list"],
        vec!["holdout", "allow", "etl"],
        vec!["end", "application_1_0001"],
        vec!["release", "application_1_0001"],
        vec!["replay", "0000000000000001"],
        vec!["replay", "0000000000000001", "--policy", "spread"],
        vec!["request", "--file", &request],
        vec!["whatif", "request", "--file", &request],
        vec!["whatif", "network", "--drain-link", "x"],
        vec!["replicas", "/in"],
        vec!["watch", "--flows", "--count", "1", "--acknowledge"],
        vec!["watch", "--circuits", "--pair", "a:b", "--count", "1"],
        vec!["plan", "submit", &plan, "--name", "monday"],
        vec!["plan", "list"],
        vec!["plan", "show", EVIL],
        vec!["plan", "activate", "monday"],
        vec!["plan", "rollback"],
        vec!["plan", "remove", "monday"],
        vec!["plan", "--daemon", "--force", "-o", &other],
    ];
    lines.into_iter().map(|line| line.into_iter().map(str::to_owned).collect()).collect()
}

#[test]
fn no_answer_fakes_a_line_or_speaks_to_the_terminal_whatever_is_asked() {
    let files = Files::new();
    let server = Server::start(&files);
    let mut found = Vec::new();
    for manner in [Manner::Answers, Manner::Refuses] {
        *server.hostile.manner.lock().unwrap() = manner;
        for command in commands(&files) {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let output = server.hintctl(&command);
            assert_ne!(output.status.code(), Some(124), "{command:?} hangs");
            let what = format!("{command:?} of what {manner:?}");
            found.extend(harm(&what, &stdout(&output)));
            found.extend(harm(&what, &stderr(&output)));
            let json = server.hintctl(&[&["--json"], &command[..]].concat());
            found.extend(harm(&what, &stderr(&json)));
            let text = stdout(&json);
            if text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{2028}']) {
                found.push(format!("{what}: {text:?}"));
            }
            for document in serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>() {
                document.unwrap_or_else(|error| panic!("{what} is no JSON: {error}: {text}"));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
    // A call that is added is to be tried here as well.
    let asked = server.hostile.asked.lock().unwrap().clone();
    let untold = ["Follow", "InputHomes", "Release", "ReportCircuits", "ResolveRacks", "ShuffleTurn"]; // no command shows their answers
    for service in server.hostile.pool.services().filter(|service| service.name() != "Feed") {
        for method in service.methods().filter(|method| !untold.contains(&method.name())) {
            assert!(asked.contains(method.full_name()), "no command here asks {}", method.full_name());
        }
    }
    server.runtime.shutdown_background();
}

#[test]
fn a_daemon_that_lists_what_it_was_not_asked_for_is_told_to_be_too_old() {
    let files = Files::new();
    let server = Server::start(&files);
    for narrowed in [&["--refused"][..], &["--since", "10m"], &["--at", "04:35"]] {
        let output = server.hintctl(&[&["decisions"], narrowed].concat());
        assert_eq!(
            (output.status.code(), stdout(&output).as_str()),
            (Some(1), ""),
            "{narrowed:?}: {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("is older than this hintctl and does not know"), "{}", stderr(&output));
    }
    assert_eq!(server.hintctl(&["decisions"]).status.code(), Some(0), "what every daemon knows is listed");
    server.runtime.shutdown_background();
}

#[test]
fn an_answer_that_never_ends_is_left_at_its_bound() {
    let files = Files::new();
    let server = Server::start(&files);
    *server.hostile.manner.lock().unwrap() = Manner::Endless;
    let file = text_of(&files.path("snapshot.json"));
    let output = server.hintctl(&["snapshot", "-o", &file, "--max-bytes", "1000"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("more than 1000 bytes"), "{}", stderr(&output));
    assert!(!files.path("snapshot.json").exists(), "half a snapshot is none");
    server.runtime.shutdown_background();
}
