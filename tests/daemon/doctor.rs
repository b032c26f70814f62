//! `hintctl doctor` and `hintctl top` at the real daemon: without nodes, with them, with a wrong configuration, with requests.

use crate::flows::{MUCH, talk};
use crate::program::{NODES, Program, command, free_address, page, rewrite_config, write_config_with};
use crate::streams::two_ways;
use crate::world::{SOON, hello, register, request};
use hintd_client::FeedSender;
use hintd_client::wire::v1;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn hintctl(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.arg("--admin-socket").arg(folder.join("admin.sock")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The doctor's report, and its exit code.
fn doctor(folder: &Path) -> (Value, Option<i32>) {
    let output = hintctl(folder, &["--json", "doctor"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    pages_are_there(&report);
    (report, output.status.code())
}

/// The verdicts of a check, and its findings.
fn of(report: &Value, name: &str) -> (Vec<String>, String) {
    let checks: Vec<&Value> =
        report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name).collect();
    let text = |key: &str| checks.iter().map(|check| check[key].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert!(!checks.is_empty(), "no check is called {name}: {report}");
    (text("verdict"), text("finding").join(" | "))
}

/// Each page exists, with the heading that is named.
fn pages_are_there(report: &Value) {
    for check in report["checks"].as_array().unwrap() {
        let page = check["page"].as_str().unwrap();
        let (file, heading) = page.split_once('#').unwrap_or((page, ""));
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let anchor = |line: &str| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            words.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter)).collect::<String>()
        };
        let found =
            text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line).replace(' ', "-") == heading);
        assert!(heading.is_empty() || found, "{page} is not there");
    }
}

/// By renaming: half a file could be a sound one.
fn save(file: &Path, text: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
}

/// Patience with nodes that register and say nothing more.
const LATER: [(&str, &str); 1] = [("model.max_age", "heartbeats = \"24h\"")];
/// Of [`two_ways`].
const UPLINK: &str = "u00";
const LOG: (&str, &str) = ("log", "level = \"info\"");

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_is_examined_without_nodes_with_them_and_with_a_wrong_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let port = write_config_with(at, &LATER);
    let program = Program::bare(&mut command(at), at, port).await;
    let (report, code) = doctor(at);
    assert_eq!((code, &report["verdict"], &report["daemon"]), (Some(1), &json!("problem"), &json!(true)), "{report}");
    for (name, verdict, words) in [
        ("ready", "problem", "not ready: no node is RUNNING"),
        ("nodes", "problem", "0 of 0 nodes"),
        ("feed", "problem", "No node was ever heard"),
        ("admin_socket", "ok", "mode 0600"),
        ("version", "ok", "hintctl and hintd are"),
        ("configuration", "ok", "is sound and in force"),
        ("exposure", "ok", "loopback"),
        ("network", "warning", "No network is known"),
        ("requests", "not_checked", "Nobody has asked"),
        ("resource_manager", "not_checked", "No ResourceManager is configured"),
        ("policy", "ok", "The default policy is spread; queues by mode: on: *"),
        ("open_files", "ok", "open of at most"),
        ("journal", "ok", "answers are kept for 600 s"),
    ] {
        let (verdicts, findings) = of(&report, name);
        assert!(findings.contains(words), "{name} says {findings}");
        // A small machine has little memory and room, which is no defect of this program.
        assert!(
            verdicts.contains(&verdict.to_owned()) || name == "journal" || name == "open_files",
            "{name}: {report}"
        );
    }
    let text = said(&hintctl(at, &["doctor"]));
    assert!(text.contains("PROBLEM      nodes") && text.contains("-> Set [resource_manager] urls"), "{text}");
    assert!(text.contains("(docs/operations.md#hintdnoheartbeats)"), "{text}");

    let mut feed = program.client.feed(hello()).await.unwrap();
    for (host, rack) in [("n1", "/a"), ("n2", "/b")] {
        feed.send(register(host, rack, 8_192)).await.unwrap();
    }
    feed.await_acknowledged().await.unwrap();
    program.until("nodes are usable", |status| status.nodes_usable == 2).await;
    let (report, code) = doctor(at);
    let problems = report["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "problem");
    let problems: Vec<&Value> =
        problems.filter(|check| !["memory", "journal"].contains(&check["name"].as_str().unwrap())).collect();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(code == Some(0), report["counts"]["problem"] == 0, "{report}");
    assert_eq!(of(&report, "ready").0, ["ok"]);
    assert!(of(&report, "nodes").1.contains("2 of 2 nodes"), "{report}");

    // What is on disk is refused, and says why; the doctor reads the file as well.
    let file = at.join("hintd.toml");
    let sound = std::fs::read_to_string(&file).unwrap();
    save(&file, &format!("{sound}\n[leeses]\n"));
    program.until("the change is refused", |status| !status.config_refused.is_empty()).await;
    let (report, code) = doctor(at);
    assert_eq!(code, Some(1), "{report}");
    let (verdicts, findings) = of(&report, "configuration");
    assert_eq!(verdicts, ["problem"]);
    assert!(findings.contains("refused") && findings.contains("leeses"), "{findings}");
    // What is in force is the daemon's to say, whatever is on disk.
    assert!(of(&report, "policy").1.contains("queues by mode: on: *"), "{report}");
    assert!(of(&report, "journal").1.contains("journal.redb has"), "{report}");
    // Another file than the daemon's, which the daemon has no word on.
    save(&file, &sound);
    program.until("it is back", |status| status.config_refused.is_empty()).await;
    // What takes a restart is on disk and not in force.
    save(&file, &format!("{sound}\n[limits]\nstreams = 700\n"));
    program.until("a key waits for a restart", |status| !status.config_restart_keys.is_empty()).await;
    let (verdicts, findings) = of(&doctor(at).0, "configuration");
    assert_eq!(verdicts, ["warning"], "{findings}");
    assert!(findings.contains("1 key that was changed on disk waits for a restart: limits.streams."), "{findings}");
    let text = said(&hintctl(at, &["status"]));
    assert!(text.contains("; 1 key waits for a restart: limits.streams"), "{text}");
    save(&file, &sound);
    program.until("no key waits", |status| status.config_restart_keys.is_empty()).await;
    let (verdicts, findings) = of(&doctor(at).0, "configuration");
    assert_eq!((verdicts, findings.contains("no key waits")), (vec!["ok".to_owned()], true), "{findings}");
    let other = at.join("other.toml");
    let listen = sound.replacen("[listen]", "[listen]\ninsecure_bind = true", 1).replacen(
        "grpc = \"127.0.0.1",
        "grpc = \"0.0.0.0",
        1,
    );
    std::fs::write(&other, listen.replace("\"spread\"", "\"container\"")).unwrap();
    let output = hintctl(at, &["--json", "doctor", "--config", other.to_str().unwrap()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (verdicts, findings) = of(&report, "configuration");
    assert_eq!(verdicts, ["warning"], "{findings}");
    assert!(findings.contains("\"container\", and \"spread\" is in force"), "{findings}");
    assert!(of(&report, "exposure").1.contains("listen.grpc 0.0.0.0:"), "{report}");
    // The daemon has it open, and goes on without an error.
    std::fs::remove_file(at.join("journal.redb")).unwrap();
    let (verdicts, findings) = of(&doctor(at).0, "journal");
    assert_eq!(verdicts, ["problem"], "{findings}");
    assert!(findings.contains("journal.redb was moved, removed or replaced while hintd runs"), "{findings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_frame_has_links_applications_and_rates() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let network = at.join("network.toml");
    std::fs::write(&network, "format = \"hintd.racks/1\"\nnic = \"1Gbit\"\n[racks.\"*\"]\nuplink = \"10Gbit\"\n")
        .unwrap();
    let named = format!("file = {network:?}");
    let port = write_config_with(at, &[LATER[0], ("network", &named)]);
    let program = Program::start(at, port).await;
    let began = std::time::Instant::now();
    let top = |args: &[&str]| hintctl(at, &[&["top", "--every", "0.1"], args].concat());
    program.client.request_hints(request("r1", 1, 2, 1_024), SOON).await.unwrap();
    let found = loop {
        let output = top(&["--json", "--rows", "3"]);
        assert!(output.status.success(), "{}", said(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        if found["links_total"].as_u64() > Some(40) {
            break found;
        }
        assert!(began.elapsed() < SOON, "no network: {found}");
    };
    assert_eq!(
        (&found["nodes_usable"], &found["ready"], &found["applications_total"]),
        (&json!(40), &json!(true), &json!(1))
    );
    let app = &found["applications"][0];
    assert_eq!((&app["leases"], &app["requests"], &app["new_requests"]), (&json!(2), &json!(1), &json!(0)), "{app}");
    assert_eq!(found["links"].as_array().unwrap().len(), 3);
    assert!(found["interval_ms"].as_u64() >= Some(100) && found["rates"]["answered"] == 0.0, "{found}");
    let text = said(&top(&["--once", "--sort", "name", "--rows", "2"]));
    for words in ["nodes 40 of 40 usable in 1 rack", "links: 2 of 41, by name", "applications: 1 of 1", "1 Gbit/s"] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    for (args, words) in [
        (&[][..], "there is no terminal: --once"),
        (&["--once", "--sort", "color"], "color"),
        (&["--once", "--every", "0"], "outside 0.1 to 3600"),
    ] {
        let output = hintctl(at, &[&["top"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
    drop(program);
    let gone = top(&["--once"]);
    assert_eq!(gone.status.code(), Some(1), "{}", said(&gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_goes_down_is_named_by_the_log_the_metrics_status_and_the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let metrics = free_address();
    let port = write_config_with(at, &[LATER[0], LOG, ("listen", &format!("metrics = \"{metrics}\""))]);
    let program = Program::start(at, port).await;
    let mut feed: FeedSender<v1::TopologyItem> = program.client.feed(hello()).await.unwrap();
    feed.send(two_ways()).await.unwrap();
    program.until("the network is there", |status| status.links == 7).await;
    let until = async |wanted: &str| {
        let began = std::time::Instant::now();
        while !page(metrics, "/metrics").await.contains(wanted) {
            assert!(began.elapsed() < SOON, "no {wanted}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    until("hintd_links{state=\"up\"} 7").await;
    assert!(!program.log().contains("a link is"), "{}", program.log());
    let mut turn = async |link: &str, up| {
        let change = v1::LinkChange { id: link.into(), up: Some(up), bits_per_s: None };
        let item = v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Link(change)) };
        feed.send(item).await.unwrap();
    };

    turn(UPLINK, false).await;
    program.until("it is down", |status| status.links_down == 1).await;
    until("hintd_links{state=\"down\"} 1").await;
    let line = |words: &str| program.log().lines().find(|line| line.contains(words)).map(str::to_owned);
    program.until_logged("a link is down").await;
    let down = line("a link is down").unwrap();
    assert!(down.contains("WARN") && down.contains(UPLINK) && down.contains("said_by=test"), "{down}");
    assert!(down.contains("a link is down; carried no known route"), "nobody has asked yet: {down}");
    let status = said(&hintctl(at, &["status"]));
    assert!(status.contains(&format!("7, 1 down: {UPLINK} for ")) && status.contains("(as test said)"), "{status}");
    let (verdicts, findings) = of(&doctor(at).0, "links");
    assert_eq!(verdicts, ["warning"]);
    assert!(findings.starts_with(&format!("1 link of 7 is down: {UPLINK} for ")), "{findings}");
    assert!(findings.contains("of its uplinks"), "{findings}");
    let first = said(&hintctl(at, &["links", "--down"]));
    assert!(first.contains(UPLINK) && first.contains("DOWN ") && first.contains("1 of 1 links"), "{first}");

    turn(UPLINK, true).await;
    program.until("it is up", |status| status.links_down == 0).await;
    until("hintd_links{state=\"down\"} 0").await;
    program.until_logged("a link is up again").await;
    let up = line("a link is up again").unwrap();
    assert!(up.contains("INFO") && up.contains(UPLINK), "{up}");
    assert!(!said(&hintctl(at, &["doctor"])).contains("is down"));

    // The only link of a host whose task sends to another's.
    let mut request = talk(1, "r0n0", "r0n1", MUCH);
    for (group, host) in request.groups.iter_mut().zip(["r0n0", "r0n1"]) {
        let others = (0..NODES).map(|node| format!("r0n{node}")).filter(|other| other != host);
        group.constraints.as_mut().unwrap().avoid_hosts = others.collect();
    }
    program.client.request_hints(request, SOON).await.unwrap();
    turn("h00", false).await;
    program.until("it is down", |status| status.links_down == 1).await;
    program.until_logged("carried 1 route of 1 application").await;
    let down = line("a link is down; carried 1 route of 1 application: application_1_0001");
    assert!(down.is_some_and(|down| down.contains("h00")), "{}", program.log());
    let one = said(&hintctl(at, &["links", "h00"]));
    assert!(one.contains("when it went down: 1 route over it"), "{one}");
    assert!(one.contains("application_1_0001") && one.contains("1 route without a path, 0 with one"), "{one}");
    let list = said(&hintctl(at, &["links", "--down"]));
    assert!(list.contains("was: application_1_0001"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_that_nobody_knows_are_refused_and_a_configuration_without_a_star_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let port = write_config_with(at, &[LATER[0], LOG]);
    let program = Program::start(at, port).await;
    program.client.request_hints(request("r1", 1, 1, 1_024), SOON).await.unwrap();
    for list in ["applications", "decisions", "leases"] {
        let refused = hintctl(at, &[list, "--queue", "defualt"]);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains("--queue defualt") && said(&refused).contains("did you mean default?"));
        let known = hintctl(at, &[list, "--queue", "default"]);
        assert!(known.status.success(), "{}", said(&known));
    }
    assert!(!said(&hintctl(at, &["reload"])).contains("WARNING"));
    rewrite_config(at, port, &[LATER[0], LOG, ("queues.\"*\"", ""), ("queues.etl", "mode = \"off\"")]);
    let reloaded = said(&hintctl(at, &["reload"]));
    assert!(reloaded.contains("WARNING: the configuration names queues (etl) and no [queues.\"*\"]"), "{reloaded}");
    program.until_logged("no [queues.\"*\"]").await;
    assert!(program.status().await.notices.iter().any(|notice| notice.contains("queues (etl)")));
    for app in 2..6 {
        program.client.request_hints(request("r2", app, 1, 1_024), SOON).await.unwrap_err();
    }
    let (verdicts, findings) = of(&doctor(at).0, "requests");
    assert_eq!(verdicts, ["warning"], "{findings}");
    assert!(findings.contains("80 % were refused: 4 for unknown (last "), "{findings}");
    assert!(findings.contains("; application_1_0002, "), "{findings}");
}
