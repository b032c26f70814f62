//! `hintctl doctor` where no daemon answers: what stands at the socket, and what the configuration file says.

use super::{Files, hintctl, stderr, stdout, text_of};
use serde_json::Value;
use std::os::unix::net::UnixListener;

/// The checks of a report without a daemon.
fn checks(socket: &str, config: &str) -> Vec<(String, String, String)> {
    let output = hintctl(&["--json", "--admin-socket", socket, "doctor", "--config", config]);
    assert_eq!(output.status.code(), Some(2), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("no daemon answers: "), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["daemon"], false);
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let rows = report["checks"].as_array().unwrap().iter();
    rows.map(|check| (text(check, "name"), text(check, "verdict"), text(check, "finding"))).collect()
}

fn assert_check(checks: &[(String, String, String)], name: &str, verdict: &str, words: &str) {
    let found = checks.iter().any(|(n, v, finding)| n == name && v == verdict && finding.contains(words));
    assert!(found, "{name} {verdict} {words} is not in {checks:#?}");
}

#[test]
fn what_stands_at_the_socket_is_told_apart() {
    let files = Files::new();
    let none = "/nonexistent.toml";
    let missing = checks(&text_of(&files.path("none.sock")), none);
    assert_check(&missing, "admin_socket", "problem", "There is no socket");
    assert_check(&missing, "unit", "not_checked", "this is another one");
    assert_check(
        &missing,
        "configuration",
        "problem",
        "/nonexistent.toml, which --config names, can't be read: No such file",
    );
    assert_check(&missing, "journal", "not_checked", "can't be read");
    let text = files.write("text", "no socket");
    assert_check(&checks(&text, none), "admin_socket", "problem", "is not a socket");
    let left = text_of(&files.path("left.sock"));
    drop(UnixListener::bind(&left).unwrap());
    assert_check(&checks(&left, none), "admin_socket", "problem", "Nobody listens");
    // Somebody listens and says nothing: that is waited for, and not for ever.
    let silent = text_of(&files.path("silent.sock"));
    let _listener = UnixListener::bind(&silent).unwrap();
    assert_check(&checks(&silent, none), "admin_socket", "problem", "does not answer");
}

#[test]
fn a_configuration_is_read_without_a_daemon() {
    let files = Files::new();
    let socket = text_of(&files.path("none.sock"));
    let wrong = files.write("wrong.toml", "[listen]\ngrcp = \"127.0.0.1:1\"\n[leases]\ntime_to_live = 7\n");
    let found = checks(&socket, &wrong);
    assert_check(&found, "configuration", "problem", "wrong.toml:2: listen.grcp");
    assert_check(&found, "configuration", "problem", "wrong.toml:4: leases.time_to_live");
    assert_check(&found, "exposure", "not_checked", "cannot read the configuration");
    let journal = text_of(&files.path("journal.redb"));
    let text = format!("[listen]\ngrpc = \"0.0.0.0:8470\"\ninsecure_bind = true\n[store]\npath = {journal:?}\n");
    let open = checks(&socket, &files.write("open.toml", &text));
    assert_check(&open, "configuration", "ok", "is sound");
    assert_check(&open, "exposure", "warning", "listen.grpc 0.0.0.0:8470");
    let fifo = text_of(&files.path("fifo.toml"));
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_check(&checks(&socket, &fifo), "configuration", "problem", "not a regular file");
    let text = hintctl(&["--admin-socket", &socket, "doctor", "--config", &wrong]);
    assert!(
        stdout(&text).contains("PROBLEM      admin_socket") && stdout(&text).contains("problems, "),
        "{}",
        stdout(&text)
    );
    let elsewhere = hintctl(&["--address", "far:8470", "doctor"]);
    assert_eq!((elsewhere.status.code(), stdout(&elsewhere).as_str()), (Some(2), ""), "{}", stderr(&elsewhere));
}
