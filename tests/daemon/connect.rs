//! A daemon that is connected to servers which answer, and not as they should: what status and doctor advise, and that nobody
//! emulates a cluster beside it.

use crate::hadoop_server::{Said, Server, http, tls};
use crate::program::{Program, command, write_config_with};
use crate::world::{heartbeat, hello, register};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn hintctl(folder: &Path, port: u16, args: &[&str]) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.arg("--admin-socket").arg(folder.join("admin.sock")).arg("--address").arg(format!("127.0.0.1:{port}"));
    command.env("XDG_STATE_HOME", folder).env_remove("COLUMNS").args(args).output().unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// What the doctor says of a server, and what it advises.
fn advice(report: &Value, name: &str) -> (String, String) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"));
    (check["finding"].as_str().unwrap().to_owned(), check["advice"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_answer_wrongly_are_advised_on_by_how_they_do_and_no_cluster_is_emulated_beside_them() {
    let login = Server::start(|_| http("401 Authentication required", "<html>")).await;
    let doubtful = Server::with_tls(|_| http("200 OK", "{}")).await;
    let elsewhere = Server::start(|_| {
        let found =
            "HTTP/1.1 302 Found\r\nLocation: http://sso.example/login?ticket=hunter2\r\nContent-Length: 0\r\n\r\n";
        Said(found.to_owned(), std::time::Duration::ZERO)
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let urls = |server: &Server| format!("urls = [\"{}\"]", server.address);
    let [login, doubtful, elsewhere] = [&login, &doubtful, &elsewhere].map(urls);
    let other = format!("{doubtful}\nca_file = {:?}", tls("other-ca.pem"));
    let poll = "poll = \"1s\"";
    let port = write_config_with(
        at,
        &[
            ("resource_manager", &login),
            ("name_node", &other),
            ("name_node", poll),
            ("history_server", &elsewhere),
            ("history_server", poll),
        ],
    );
    let program = Program::bare(&mut command(at), at, port).await;
    let failed = |status: &hintd_client::wire::v1::StatusResponse| {
        status.servers.len() == 3 && status.servers.iter().all(|server| !server.error.is_empty())
    };
    let status = program.until("all three failed", failed).await;
    assert_eq!(status.counters.get("feed_heartbeats_taken").copied().unwrap_or(0), 0, "nobody was heard");
    let states: Vec<(&str, &str)> = status.servers.iter().map(|of| (&*of.source, &*of.state)).collect();
    assert!(states.contains(&("resource_manager", "wrong_answer")), "{states:?}");
    assert!(states.contains(&("history_server", "wrong_answer")), "{states:?}");
    assert!(states.contains(&("name_node", "silent")), "{states:?}");

    let report =
        document(&hintctl(at, port, &["--json", "doctor", "--config", at.join("hintd.toml").to_str().unwrap()]));
    let text = String::from_utf8(hintctl(at, port, &["status"]).stdout).unwrap();
    for (name, found, advised) in [
        ("resource_manager", "wrong answer (last good answer: never", "Kerberos, or a proxy"),
        ("name_node", "its certificate is signed by nobody that is trusted", "in ca_file of its section"),
        ("history_server", "the answer is 302 Found", "It sends hintd to http://sso.example/login:"),
    ] {
        let (finding, advice) = advice(&report, name);
        assert!(finding.contains(found) && advice.contains(advised), "{name}: {finding} -> {advice}");
        assert!(text.contains(advised), "{advised:?} is not in\n{text}");
    }
    assert!(!text.contains("hunter2"), "{text}");

    let emulated = hintctl(at, port, &["emulate", "--seconds", "2"]);
    let said = String::from_utf8_lossy(&emulated.stderr);
    assert_eq!(emulated.status.code(), Some(2), "{said}");
    assert!(said.contains("this daemon is not one to try things on: it asks ") && said.contains("--force"), "{said}");
    assert_eq!(program.until("it still answers", |_| true).await.nodes, 0, "it was told nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_with_nodes_of_others_is_no_place_to_emulate_on_and_all_refused_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let port = write_config_with(at, &[]);
    let program = Program::bare(&mut command(at), at, port).await;
    let nobody = hintctl(at, port, &["nodes", "nosuch"]);
    let said = String::from_utf8_lossy(&nobody.stderr);
    assert_eq!(nobody.status.code(), Some(2), "{said}");
    assert!(
        nobody.stdout.is_empty() && said.contains("no node is \"nosuch\", or has it in its name; no node is known")
    );
    let mut feed = program.client.feed(hello()).await.unwrap();
    feed.send(register("n1", "/a", 8_192)).await.unwrap();
    feed.await_acknowledged().await.unwrap();
    program.until("its node is known", |status| status.nodes == 1).await;
    let emulated = hintctl(at, port, &["emulate", "--seconds", "2"]);
    let said = String::from_utf8_lossy(&emulated.stderr);
    assert_eq!(emulated.status.code(), Some(2), "{said}");
    assert!(said.contains("it knows 1 node that the emulated cluster does not have: n1"), "{said}");

    // Somebody insists, and no queue is known: all of it is refused, and that is said.
    let text = std::fs::read_to_string(at.join("hintd.toml")).unwrap();
    let queues = text.replace("[queues.\"*\"]", "[queues.etl]");
    assert_ne!(queues, text, "it has queues");
    std::fs::write(at.join("new.toml"), queues).unwrap();
    std::fs::rename(at.join("new.toml"), at.join("hintd.toml")).unwrap();
    let known = |status: &hintd_client::wire::v1::StatusResponse| status.queues.iter().all(|queue| queue.name == "etl");
    program.until("the queue is gone", known).await;
    let emulated = hintctl(at, port, &["--json", "emulate", "--seconds", "2", "--force"]);
    let (said, found) = (String::from_utf8_lossy(&emulated.stderr), document(&emulated));
    assert_eq!(emulated.status.code(), Some(1), "{said}");
    assert!(said.contains("no request got an answer: "), "{said}");
    assert!(found["refused"].as_u64() >= Some(60) && found["refused"] == found["requests"], "{found}");
}

/// Runs on until it is killed; ends with its owner.
struct Emulated(std::process::Child);

impl Emulated {
    fn start(folder: &Path, port: u16) -> Self {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hintctl"));
        command.arg("--admin-socket").arg(folder.join("admin.sock")).arg("--address").arg(format!("127.0.0.1:{port}"));
        command.env("XDG_STATE_HOME", folder).args(["emulate", "--keep", "--seconds", "60"]);
        Self(command.stdout(std::process::Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cluster_at_a_time_is_emulated_on_a_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let port = write_config_with(at, &[]);
    let program = Program::bare(&mut command(at), at, port).await;
    let watched = |status: &hintd_client::wire::v1::StatusResponse| status.watchers.iter().any(|of| of.attached);
    let first = Emulated::start(at, port);
    program.until("the first is there", |status| status.nodes == 40 && watched(status)).await;
    let refused = |args: &[&str]| {
        let emulated = hintctl(at, port, args);
        let said = String::from_utf8_lossy(&emulated.stderr).into_owned();
        assert_eq!(emulated.status.code(), Some(2), "{said}");
        said
    };
    // All of the first one's nodes are among the second's.
    let said = refused(&["emulate", "--nodes", "60", "--seconds", "2"]);
    assert!(said.contains("another hintctl emulate feeds it now") && said.contains("--force"), "{said}");
    assert_eq!(program.until("it still answers", |_| true).await.nodes, 40, "it was told nothing");

    // The first has ended, and one of its nodes is somebody's.
    drop(first);
    program.until("its controller is gone", |status| !watched(status)).await;
    let mut feed = program.client.feed(hello()).await.unwrap();
    feed.send(register("node-01-1", "/rack-01", 8_192)).await.unwrap();
    let beats = tokio::spawn(async move {
        for beat in 2.. {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            if feed.send(heartbeat("node-01-1", beat, 0, Vec::new())).await.is_err() {
                return;
            }
        }
    });
    let said = refused(&["emulate", "--seconds", "2"]);
    assert!(said.contains("1 node that the emulated cluster would have reports to it already: node-01-1"), "{said}");
    beats.abort();
    let _ = beats.await;
    let _second = Emulated::start(at, port);
    program.until("what ended hinders nobody", watched).await;
}
