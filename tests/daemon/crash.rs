//! `kill -9` of the real program under load: every answered lease is there afterwards, none twice.

use crate::world::{SOON, config_text, hello, leased, register, request};
use hintd::client::{AdminClient, Client, FeedSender, admin};
use hintd::wire::v1;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KILLS: u32 = 10;
const CLIENTS: u32 = 8;
const NODES: u32 = 40;
const NODE_MB: i64 = 1 << 20;

/// The program on a folder; killed when dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) client: Client,
    admin: AdminClient,
    _feed: FeedSender<v1::HeartbeatItem>,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill(); // SIGKILL
        let _ = self.child.wait();
    }
}

impl Program {
    pub(crate) async fn start(folder: &Path, port: u16) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_hintd"));
        Self::run(program.arg("--config").arg(folder.join("hintd.toml")), folder, port).await
    }

    async fn run(command: &mut Command, folder: &Path, port: u16) -> Self {
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        let client = loop {
            match Client::connect(&format!("127.0.0.1:{port}")).await {
                Ok(client) => break client,
                Err(error) => assert!(began.elapsed() < SOON, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        // The socket of an earlier life may still lie there when the port is open already.
        let admin = loop {
            match admin(&folder.join("admin.sock")).await {
                Ok(admin) => break admin,
                Err(error) => assert!(began.elapsed() < SOON, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let mut feed = client.feed(hello()).await.unwrap();
        for node in 0..NODES {
            feed.send(register(&format!("r0n{node}"), "/rack0", NODE_MB)).await.unwrap();
        }
        feed.settle().await.unwrap();
        let program = Self { child, client, admin, _feed: feed };
        while program.status().await.nodes_usable < NODES {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        program
    }

    pub(crate) async fn status(&self) -> v1::StatusResponse {
        self.admin.clone().status(v1::StatusRequest {}).await.unwrap().into_inner()
    }
}

/// A configuration with long leases; returns the port it names.
pub(crate) fn write_config(folder: &Path) -> u16 {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let extra = [("leases", "time_to_live = \"1h\"".to_owned()), ("log", "level = \"error\"".to_owned())];
    std::fs::write(folder.join("hintd.toml"), config_text(folder, port, &extra)).unwrap();
    port
}

/// What was answered by request id; `None`: asked, and the answer never came.
type Asked = Arc<Mutex<BTreeMap<(String, u32), Option<v1::RequestHintsResponse>>>>;

async fn load(client: Client, asked: Asked, round: u32, app: u32) {
    for n in 0.. {
        let id = format!("k{round}a{app}n{n}");
        asked.lock().unwrap().insert((id.clone(), app), None);
        let Ok(answer) = client.request_hints(request(&id, app, 1 + n % 3, 1_024), Duration::from_secs(1)).await else {
            return; // killed
        };
        asked.lock().unwrap().insert((id, app), Some(answer));
    }
}

/// Every answer is given again as it was, its leases are held, and no lease stands there twice.
async fn check(program: &Program, asked: &Asked, round: u32) {
    let all: Vec<_> = asked.lock().unwrap().iter().map(|(key, answer)| (key.clone(), answer.clone())).collect();
    let mut leases = BTreeSet::new();
    let mut by_node: BTreeMap<String, i64> = BTreeMap::new();
    for ((id, app), known) in all {
        let n: u32 = id.rsplit('n').next().unwrap().parse().unwrap();
        let answer = program.client.request_hints(request(&id, app, 1 + n % 3, 1_024), SOON).await.unwrap();
        if let Some(known) = known {
            assert_eq!(known, answer, "round {round}: the answer of {id} is kept");
        }
        for (host, held) in leased(&answer) {
            *by_node.entry(host).or_default() += 1_024 * held.len() as i64;
            for lease in held {
                assert!(leases.insert(lease), "round {round}: lease {lease} was given twice");
            }
        }
        asked.lock().unwrap().insert((id, app), Some(answer));
    }
    assert_eq!(program.status().await.leases, leases.len() as u64, "round {round}: all are there and no others");
    tokio::time::sleep(Duration::from_millis(20)).await;
    let nodes = program.admin.clone().nodes(v1::NodesRequest::default()).await.unwrap().into_inner().nodes;
    for node in nodes {
        let held = by_node.get(&node.host).copied().unwrap_or(0);
        assert_eq!(node.leased.unwrap().memory(), held, "round {round}: {}", node.host);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kill_nine_every_answered_lease_is_there_and_none_twice() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let asked = Asked::default();
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for round in 0..KILLS {
        let program = Program::start(folder.path(), port).await;
        check(&program, &asked, round).await;
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|app| tokio::spawn(load(program.client.clone(), Arc::clone(&asked), round, app)))
            .collect();
        tokio::time::sleep(Duration::from_millis(rng.random_range(5..120))).await;
        drop(program);
        for client in clients {
            client.await.unwrap();
        }
    }
    let program = Program::start(folder.path(), port).await;
    let unanswered = asked.lock().unwrap().values().filter(|answer| answer.is_none()).count();
    check(&program, &asked, KILLS).await;
    let total = asked.lock().unwrap().len();
    assert!(total > 100, "there was load: {total} requests");
    assert!(unanswered > 0, "the last kill hit requests in flight");
}

/// Starts the program with files bounded to `blocks` of 512 bytes, as on a disk that fills up.
async fn bounded(folder: &Path, port: u16, blocks: u32) -> Program {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" --config \"$1\"");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_hintd")).arg(folder.join("hintd.toml"));
    Program::run(&mut shell, folder, port).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_unavailable_and_unready_and_what_was_answered_stays() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    drop(Program::start(folder.path(), port).await);
    let bytes = std::fs::metadata(folder.path().join("journal.redb")).unwrap().len();
    let program = bounded(folder.path(), port, u32::try_from(bytes / 512).unwrap()).await;
    let mut answered = BTreeSet::new();
    let mut refused = None;
    for n in 0..3_000 {
        let wire = request(&format!("d{n}"), n + 1, 30, 1_024);
        match program.client.request_hints(wire, Duration::from_millis(500)).await {
            Ok(answer) => answered.extend(leased(&answer).into_values().flatten()),
            Err(error) => {
                refused = Some((n, error.to_string()));
                break;
            }
        }
    }
    let (at, error) = refused.expect("the disk fills up");
    assert!(error.contains("journal can't be written"), "request {at}: {error}");
    let status = program.status().await;
    assert!(!status.ready && status.not_ready_reason.contains("journal"), "{status:?}");
    assert_eq!(status.leases, answered.len() as u64, "what was not promised is not held");
    drop(program);
    let program = Program::start(folder.path(), port).await;
    let status = program.status().await;
    assert!(status.ready);
    assert!(status.leases >= answered.len() as u64, "{} of {}", status.leases, answered.len());
    program.client.request_hints(request("again", 1, 1, 1_024), SOON).await.unwrap();
}

#[test]
fn a_bad_configuration_or_usage_ends_with_two_and_names_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hintd.toml");
    let run = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_hintd")).args(arguments).output().unwrap();
    let path = file.to_str().unwrap();
    std::fs::write(&file, "[listen]\ngrcp = \"127.0.0.1:0\"\n[placer]\nsteps = \"many\"\n").unwrap();
    for arguments in [&["--config", path, "--check"][..], &["--config", path]] {
        let output = run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in ["hintd.toml", "grcp", "steps", "2", "4"] {
            assert!(said.contains(part), "\"{said}\" lacks \"{part}\"");
        }
    }
    write_config(folder.path());
    assert_eq!(run(&["--config", path, "--check"]).status.code(), Some(0));
    assert_eq!(run(&["--config", "/nowhere.toml"]).status.code(), Some(2));
    assert_eq!(run(&["--cofnig", path]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_reloads_and_a_termination_ends_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let mut program = Program::start(folder.path(), port).await;
    let signal = |name: &str| {
        let sent = Command::new("kill").arg(name).arg(program.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    };
    signal("-HUP");
    let began = Instant::now();
    while program.status().await.counters.get("reloads").copied().unwrap_or(0) == 0 {
        assert!(began.elapsed() < SOON);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    signal("-TERM");
    while began.elapsed() < SOON {
        if let Some(status) = program.child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not end");
}
