//! What `hintctl` tells of a daemon that can't answer yet, and of one that is not the one that was meant.

use super::{Files, assert_refused, document, hintctl, stderr, stdout, text_of};
use hintd::config::Config;
use hintd::telemetry::metrics::Metrics;
use serde_json::json;

#[test]
fn a_daemon_without_nodes_is_live_and_not_ready_and_no_other_daemon_answers_for_it() {
    let files = Files::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let [socket, journal] = ["admin.sock", "journal.redb"].map(|name| text_of(&files.path(name)));
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = \"{socket}\"\nmetrics = \"\"\ndrain = \"1s\"\n\
         [store]\npath = \"{journal}\"\n"
    );
    let config = Config::from_text(&text, "test").unwrap();
    let running = runtime.block_on(hintd::server::start(&config.options, Metrics::new())).unwrap();
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
