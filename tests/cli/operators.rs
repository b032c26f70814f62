//! What `hintctl` tells of a daemon that can't answer yet, and of one that is not the one that was meant.

use super::{Files, assert_refused, document, hintctl, started, stderr, stdout};
use serde_json::json;

#[test]
fn lists_narrowed_by_nothing_are_refused_and_not_shown_whole() {
    let [application, queue, host] = ["--application", "--queue", "--host"];
    for (list, option) in [
        ("decisions", application),
        ("decisions", queue),
        ("leases", host),
        ("applications", queue),
        ("nodes", host),
        ("links", "--link"),
    ] {
        assert_refused(&[list, option, ""], &[option, "it is empty; leave it out to see all"]);
    }
    assert_refused(&["links", ""], &["[ID]", "it is empty"]);
    assert_refused(&["nodes", ""], &["[HOST]", "it is empty"]);
}

#[test]
fn a_daemon_without_nodes_is_live_and_not_ready_and_no_other_daemon_answers_for_it() {
    let files = Files::new();
    let (runtime, running, socket) = started(&files, "");
    let address = running.grpc.to_string();
    let status = hintctl(&["--admin-socket", &socket, "status"]);
    assert_eq!(status.status.code(), Some(1), "{}", stdout(&status));
    assert!(stdout(&status).contains("NOT READY: no node is RUNNING"), "it is printed all the same");
    assert!(stderr(&status).contains("not ready: no node is RUNNING"), "{}", stderr(&status));
    assert_eq!(document(&["--admin-socket", &socket, "status", "--live"])["ready"], json!(false));
    for command in [&["status"][..], &["plan", "list"], &["snapshot", "-o", "x.json"], &["plan", "show", "x"]] {
        assert_refused(&[&["--address", &address], command].concat(), &["--address", "admin socket", &address]);
    }
    // Nothing may come for as long as there is no network: that is said.
    let watch = ["--address", &address, "watch", "--pair", "a:b", "--seconds", "2"];
    let said = stderr(&hintctl(&watch));
    assert!(said.contains("a to b: no way is known"), "{said}");
    runtime.block_on(running.shutdown()).unwrap();
}
