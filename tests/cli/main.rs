//! The built `hintctl`, as a person or a script runs it.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

mod contexts;
mod demo;
mod doctor;
mod fit;
mod hostile;
mod latency;
mod operators;
mod plans;
mod solve;
mod terminal;
mod worth;

use hintd::config::Config;
use hintd::server::Running;
use hintd::telemetry::metrics::Metrics;
use hintd_cli::emulate::hdfs::{BLOCK, Namespace};
use hintd_cli::emulate::sources::{Facts, Sources};
use hintd_cli::emulate::{Cluster, ClusterShape};
use hintd_model::units::Bytes;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Runs the binary; nothing of the caller's environment names a daemon.
fn hintctl(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    for name in ["HINTD_ADDRESS", "HINTD_ADMIN_SOCKET", "HINTD_SECRET_FILE", "HINTD_TOKEN", "HINTD_CONTEXT", "COLUMNS"]
    {
        command.env_remove(name);
    }
    // Its secret and contexts are not the caller's.
    command.args(args).envs(["XDG_STATE_HOME", "XDG_CONFIG_HOME"].map(|name| (name, env!("CARGO_TARGET_TMPDIR"))));
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON document of a command that must succeed.
fn document(args: &[&str]) -> Value {
    let output = hintctl(&[&["--json"], args].concat());
    assert!(output.status.success(), "{args:?}: {}{}", stdout(&output), stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asserts that a command is refused as bad input and says all of `words`.
fn assert_refused(args: &[&str], words: &[&str]) {
    let output = hintctl(args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?} prints no result");
    for word in words {
        assert!(said.contains(word), "{args:?} should say \"{word}\" and says: {said}");
    }
}

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        text_of(&path)
    }

    /// Eight nodes in four racks, a file with its blocks in the first two.
    fn cluster(&self) -> String {
        let hosts: Vec<Value> = (0..8)
            .map(|n| json!({ "host": format!("h{n}"), "rack": format!("/r{}", n / 2), "memory_mb": 8192, "vcores": 8 }))
            .collect();
        let blocks: Vec<Value> =
            (0..4).map(|n| json!({ "id": n, "bytes": 134_217_728, "hosts": [format!("h{n}"), "h0"] })).collect();
        let cluster = json!({
            "format": "hintd.cluster/1",
            "nodes": hosts,
            "datasets": [{ "path": "/in", "blocks": blocks }],
        });
        self.write("cluster.json", &cluster.to_string())
    }

    fn request(&self, extra: &Value) -> String {
        let mut request = json!({
            "format": "hintd.request/1",
            "id": "r1",
            "application_id": "application_1700000000000_0001",
            "groups": [
                { "name": "map", "count": 4, "size": { "memory_mb": 1024, "vcores": 1 }, "input_paths": ["/in"] },
                { "name": "reduce", "count": 2, "size": { "memory_mb": 2048, "vcores": 1 } },
            ],
            "edges": [{ "from": "map", "to": "reduce", "bytes": 1_000_000_000_u64 }],
        });
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        self.write("request.json", &request.to_string())
    }
}

/// A daemon without nodes on loopback, with its admin socket, which is returned, and its journal among `files`; `more` is
/// the end of its configuration.
fn started(files: &Files, more: &str) -> (Runtime, Running, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let [socket, journal] = ["admin.sock", "journal.redb"].map(|name| text_of(&files.path(name)));
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = \"{socket}\"\nmetrics = \"\"\ndrain = \"1s\"\n\
         [store]\npath = \"{journal}\"\n[model]\nstale_after = \"1h\"\nlost_after = \"2h\"\n{more}"
    );
    let config = Config::from_text(&text, "test").unwrap();
    let running = runtime.block_on(hintd::server::start(&config.options, Metrics::new())).unwrap();
    (runtime, running, socket)
}

fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let commands = hintd_cli::commands();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let args: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let output = hintctl(&args);
        let said = stdout(&output);
        assert!(output.status.success(), "{command:?}");
        assert!(said.contains("Usage: hintctl"), "{command:?}: {said}");
        let group = said.contains("\nCommands:");
        assert!(
            group || said.contains(&format!("hintctl {}", command[0])) && said.contains("Example"),
            "{command:?}: {said}"
        );
    }
    assert!(stdout(&hintctl(&["--help"])).contains("Examples:"));
}

#[test]
fn bad_usage_is_told_apart_from_failed_work() {
    assert_eq!(hintctl(&["levitate"]).status.code(), Some(2));
    assert_eq!(hintctl(&[]).status.code(), Some(2));
    assert_refused(&["topology", "build", "moebius", "-o", "x.json"], &["moebius"]);
    let nobody = hintctl(&["status", "--admin-socket", "/nonexistent/admin.sock"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(stderr(&nobody).contains("/nonexistent/admin.sock"), "{}", stderr(&nobody));
    let advice = "`hintctl doctor --admin-socket /nonexistent/admin.sock` says what is wrong";
    assert!(stderr(&nobody).contains(advice), "{}", stderr(&nobody));
    let nobody = hintctl(&["bench", "load", "--target", "127.0.0.1:1", "--seconds", "1"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(stderr(&nobody).contains("127.0.0.1:1"), "{}", stderr(&nobody));
}

#[test]
fn a_request_may_come_from_standard_input_as_json_or_toml() {
    let files = Files::new();
    let (cluster, request) = (files.cluster(), files.request(&json!({})));
    let from_stdin = |text: &str| {
        let given = files.write("stdin", text);
        let args = ["--json", "place", "--cluster", &cluster, "--request", "-", "--policy", "spread"];
        command(&args).stdin(std::fs::File::open(given).unwrap()).output().unwrap()
    };
    let json = std::fs::read_to_string(&request).unwrap();
    let toml = toml::to_string(&serde_json::from_str::<toml::Table>(&json).unwrap()).unwrap();
    let wanted =
        document(&["place", "--cluster", &cluster, "--request", &request, "--policy", "spread"])["hints"].clone();
    for text in [json, toml] {
        let output = from_stdin(&text);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["hints"], wanted);
    }
    let wrong = from_stdin("{\n\"format\": 7 }");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("standard input: line 2"), "{}", stderr(&wrong));
}

#[test]
fn a_small_cluster_gets_a_placement_of_every_policy() {
    let files = Files::new();
    let (cluster, request) = (files.cluster(), files.request(&json!({})));
    for entry in hintd_policy::registry::entries() {
        let args = ["place", "--cluster", &cluster, "--request", &request, "--policy", entry.name];
        let answer = document(&args);
        assert_eq!(answer["policy"], entry.name);
        let hints = answer["hints"].as_array().unwrap();
        assert_eq!(hints.len(), 6, "one container, one hint: {answer}");
        for hint in hints {
            assert!(hint["host"].as_str().unwrap().starts_with('h'), "{hint}");
            assert_eq!(
                hint["racks"][0],
                format!("/r{}", hint["host"].as_str().unwrap()[1..].parse::<u32>().unwrap() / 2)
            );
            assert!(hint["fallbacks"].is_array() && hint["task"].is_string(), "{hint}");
        }
        for key in ["cost", "baseline"] {
            assert!(answer[key]["remote_bytes"].is_number(), "{}: {answer}", entry.name);
        }
        assert!(answer["ended"].is_string() && answer["elapsed_ms"].is_number());
        assert!(answer.as_object().unwrap().contains_key("gap"));
        let mut again = document(&args);
        again["elapsed_ms"] = answer["elapsed_ms"].clone();
        assert_eq!(again, answer, "{}: the same command prints the same answer", entry.name);
        let text = hintctl(&args);
        assert!(stdout(&text).contains("default"), "{}", stdout(&text));
    }
}

#[test]
fn toml_and_json_say_the_same() {
    let files = Files::new();
    let request = files.request(&json!({}));
    let cluster: Value = serde_json::from_str(&std::fs::read_to_string(files.cluster()).unwrap()).unwrap();
    let as_toml = files.write("cluster.toml", &toml::to_string(&cluster).unwrap());
    let place = |cluster: &str| {
        document(&["place", "--cluster", cluster, "--request", &request, "--policy", "spread"])["hints"].clone()
    };
    assert_eq!(place(&as_toml), place(&files.cluster()));
}

#[test]
fn bad_files_are_named_with_line_or_field() {
    let files = Files::new();
    let (cluster, request) = (files.cluster(), files.request(&json!({})));
    let place = |cluster: &str, request: &str, words: &[&str]| {
        assert_refused(&["place", "--cluster", cluster, "--request", request], words);
    };
    place("/nonexistent.json", &request, &["/nonexistent.json"]);
    place(&files.write("c.yaml", ""), &request, &["c.yaml", ".json or .toml"]);
    let broken = files.write("broken.json", "{\n  \"format\": \"hintd.cluster/1\",\n  \"nodes\": [,]\n}");
    place(&broken, &request, &["broken.json", "line 3"]);
    let typo = files.write("typo.json", "{\n \"format\": \"hintd.cluster/1\",\n \"nods\": []\n}");
    place(&typo, &request, &["typo.json", "nods", "line 3"]);
    let typo = files.write("typo.toml", "format = \"hintd.cluster/1\"\nnods = []\n");
    place(&typo, &request, &["typo.toml", "nods", "line 2"]);
    let wrong = files.write("wrong.json", "{ \"format\": \"hintd.cluster/99\" }");
    place(&wrong, &request, &["wrong.json", "format", "hintd.cluster/99"]);
    let policy = files.request(&json!({ "policy": "contaner" }));
    place(&cluster, &policy, &["request.json", "contaner", "did you mean \"container\"?"]);
    let empty = files.request(&json!({ "groups": [], "edges": [] }));
    place(&cluster, &empty, &["request.json", "groups"]);
    let large = json!([{ "name": "map", "count": 1, "size": { "memory_mb": 1_000_000, "vcores": 1 } }]);
    let large = files.request(&json!({ "groups": large, "edges": [] }));
    place(&cluster, &large, &["request.json", "1000000"]);
}

#[test]
fn a_misspelled_policy_gets_a_suggestion() {
    let files = Files::new();
    let (cluster, request) = (files.cluster(), files.request(&json!({})));
    let place = ["place", "--cluster", &cluster, "--request", &request, "--policy"];
    assert_refused(&[&place[..], &["sprad"]].concat(), &["sprad", "did you mean \"spread\"?"]);
    assert_refused(&[&place[..], &["tetris"]].concat(), &["tetris", "there are", "container"]);
    assert_refused(&["demo", "--policy", "capasity"], &["did you mean \"capacity\"?"]);
}

#[test]
fn a_full_cluster_fails_only_those_who_want_that() {
    let files = Files::new();
    let mut cluster: Value = serde_json::from_str(&std::fs::read_to_string(files.cluster()).unwrap()).unwrap();
    for node in cluster["nodes"].as_array_mut().unwrap() {
        node["used"] = json!({ "memory_mb": 8192, "vcores": 8 });
    }
    let full = files.write("full.json", &cluster.to_string());
    let fail = files.request(&json!({ "when_full": "fail" }));
    let output = hintctl(&["place", "--cluster", &full, "--request", &fail, "--policy", "spread"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("no room"), "{}", stderr(&output));
    let advise = files.request(&json!({ "when_full": "advise" }));
    let answer = document(&["place", "--cluster", &full, "--request", &advise, "--policy", "spread"]);
    assert_eq!(answer["without_room"], 6, "{answer}");
}

#[test]
fn generated_topologies_pass_their_own_check() {
    let files = Files::new();
    let file = text_of(&files.path("tree.json"));
    let built = document(&["topology", "build", "tree", "--racks", "5", "--hosts-per-rack", "8", "-o", &file]);
    assert_eq!(built, json!({ "hosts": 40, "switches": 7, "links": 50, "file": file }));
    let checked = document(&["topology", "check", &file]);
    assert_eq!((&checked["ok"], &checked["problems"], &checked["hosts"]), (&json!(true), &json!([]), &json!(40)));
    assert!((checked["tiers"][0]["oversubscription"].as_f64().unwrap() - 5.0).abs() < 1e-6, "{checked}");
    let file = text_of(&files.path("fat.toml"));
    let built = document(&["topology", "build", "fat-tree", "--ports", "8", "--hosts", "100", "-o", &file]);
    assert_eq!(built["hosts"], 100);
    assert_eq!(document(&["topology", "check", &file])["ok"], true);
}

#[test]
fn every_kind_of_network_is_built_and_sound() {
    let files = Files::new();
    let file = text_of(&files.path("net.json"));
    let built = |args: &[&str], hosts: u64, switches: u64, links: u64| {
        let args = [&["topology", "build"], args, &["--force", "-o", &file]].concat();
        assert_eq!(document(&args), json!({ "hosts": hosts, "switches": switches, "links": links, "file": file }));
        let checked = document(&["topology", "check", &file]);
        assert_eq!((&checked["ok"], &checked["problems"]), (&json!(true), &json!([])), "{args:?}");
    };
    built(&["jellyfish", "--hosts", "98", "--seed", "3"], 98, 20, 98 + 100);
    built(&["jellyfish", "--switches", "12", "--ports", "5", "-r", "4"], 12, 12, 12 + 24);
    built(&["vl2", "--aggregation-ports", "6", "--hosts-per-rack", "2"], 12, 6 + 4 + 3, 12 + 12 + 12);
    built(&["bcube", "--ports", "3", "--levels", "2"], 27, 27 + 27, 27 + 81);
    built(&["hybrid", "--racks", "5", "--hosts", "40", "--cores", "1"], 40, 5 + 1 + 1, 40 + 5 + 5);
    let text = hintctl(&["topology", "build", "jellyfish", "--force", "-o", &file]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("RRG(20,15,10), 100 hosts"), "{text:?}");
}

#[test]
fn shapes_that_cannot_be_built_are_refused_by_name() {
    let files = Files::new();
    let file = text_of(&files.path("x.json"));
    assert_refused(&["topology", "build", "fat-tree", "--ports", "5", "-o", &file], &["5"]);
    assert_refused(&["topology", "build", "tree", "--racks", "3", "--hosts", "10", "-o", &file], &["--hosts", "10"]);
    assert_refused(&["topology", "build", "tree", "--oversubscription", "0", "-o", &file], &["--oversubscription"]);
    assert_refused(&["topology", "build", "tree", "--racks", "0", "-o", &file], &["racks"]);
    assert_refused(&["topology", "build", "jellyfish", "-k", "4", "-r", "5", "-o", &file], &["to_switches", "5"]);
    assert_refused(&["topology", "build", "vl2", "--aggregation-ports", "3", "-o", &file], &["aggregation_ports", "3"]);
    assert_refused(&["topology", "build", "bcube", "--ports", "1", "-o", &file], &["ports"]);
    assert_refused(&["topology", "build", "hybrid", "--optical-gbps", "0", "-o", &file], &["--optical-gbps"]);
    assert_refused(&["topology", "build", "tree", "-o", "net.xml"], &["net.xml", ".json or .toml"]);
}

#[test]
fn a_path_table_says_what_it_takes() {
    let files = Files::new();
    let file = text_of(&files.path("net.json"));
    document(&["topology", "build", "fat-tree", "--ports", "6", "-o", &file]);
    let measured = document(&["topology", "paths", &file, "--k", "4"]);
    let count = |field: &str| measured[field].as_u64().unwrap();
    assert_eq!(["hosts", "switches", "pairs", "k"].map(count), [54, 45, 18 * 17 / 2, 4]);
    assert!(measured["build_s"].as_f64().unwrap() > 0.0);
    assert!((2_000..60_000).contains(&count("bytes")), "{measured}");
    assert_eq!(measured.as_object().unwrap().len(), 6, "{measured}");
    let text = hintctl(&["topology", "paths", &file]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("up to 10 paths for each of 153 pairs"), "{text:?}");
    assert_refused(&["topology", "paths", &file, "--k", "0"], &["--k"]);
    assert_refused(&["topology", "paths", "nowhere.json"], &["nowhere.json"]);
    let mut broken: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    broken["links"][0]["a"] = json!("atlantis");
    let broken = files.write("broken.json", &broken.to_string());
    assert_refused(&["topology", "paths", &broken], &["broken.json", "atlantis"]);
}

#[test]
fn planted_defects_are_found() {
    let files = Files::new();
    let file = text_of(&files.path("tree.json"));
    document(&["topology", "build", "tree", "-o", &file]);
    let good: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let check = |reason: &str, plant: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        plant(&mut bad);
        let bad = files.write("bad.json", &bad.to_string());
        let output = hintctl(&["--json", "topology", "check", &bad]);
        assert_eq!(output.status.code(), Some(2), "{reason}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let reasons: Vec<_> =
            found["problems"].as_array().unwrap().iter().map(|problem| problem["reason"].clone()).collect();
        assert!(reasons.contains(&json!(reason)), "{reason}: {found}");
        assert!(stderr(&output).contains("bad.json"));
    };
    check("self-loop", &|net| net["links"][0]["b"] = net["links"][0]["a"].clone());
    check("duplicate-link", &|net| net["links"][1]["id"] = net["links"][0]["id"].clone());
    check("negative-capacity", &|net| net["links"][0]["bits_per_s"] = json!(-1));
    check("one-way", &|net| net["links"][0]["one_way"] = json!(true));
    check("broken-entry", &|net| net["links"][0]["bits_per_s"] = json!("fast"));
    check("absurd-capacity", &|net| net["links"][0]["bits_per_s"] = json!(1e15));
    check("unknown-end", &|net| net["links"][0]["a"] = json!("nowhere"));
    check("orphan-host", &|net| net["hosts"].as_array_mut().unwrap().push(json!({ "name": "lonely" })));
    check("island", &|net| {
        net["switches"].as_array_mut().unwrap().push(json!({ "name": "far", "tier": "edge" }));
        net["hosts"].as_array_mut().unwrap().push(json!({ "name": "away" }));
        let link = json!({ "id": "far--away", "a": "far", "b": "away", "bits_per_s": 1_000_000_000 });
        net["links"].as_array_mut().unwrap().push(link);
    });
}

#[test]
fn chains_that_can_not_be_met_are_told_with_their_cut_before_any_daemon_runs() {
    let files = Files::new();
    let file = text_of(&files.path("tree.json"));
    document(&["topology", "build", "tree", "-o", &file]);
    let mut network: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let of = |tier: &str| {
        let switches = network["switches"].as_array().unwrap().iter();
        switches
            .filter(|switch| switch["tier"] == tier)
            .map(|switch| switch["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let (edges, cores): (Vec<String>, Vec<String>) = (of("edge"), of("core"));
    let declared = |kind: &str| {
        format!(
            "[[boxes]]\nname = \"fw\"\ntype = \"FW\"\nat = \"{}\"\nbits_per_s = 1000\n\
             [[chains]]\nname = \"guarded\"\nsequence = [\"{kind}\"]\n",
            cores[0]
        )
    };
    let good = files.write("chains.toml", &declared("FW"));
    let check = ["chains", "check", "--chains", &good, "--network", &file];
    assert_eq!(document(&check), json!({ "chains": 1, "network_known": true, "unmet": [] }));
    for link in network["links"].as_array_mut().unwrap() {
        let up = [&link["a"], &link["b"]].into_iter().all(|end| *end != json!(edges[0]) || cores.is_empty());
        let to_core = [&link["a"], &link["b"]].into_iter().any(|end| cores.iter().any(|core| *end == json!(core)));
        link["up"] = json!(up || !to_core);
    }
    let cut = files.write("cut.json", &network.to_string());
    let check = ["chains", "check", "--chains", &good, "--network", &cut];
    let output = hintctl(&[&["--json"], &check[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["unmet"][0]["chain"], &found["unmet"][0]["reason"]), (&json!("guarded"), &json!("cut")));
    assert!(!found["unmet"][0]["between"].as_array().unwrap().is_empty(), "{found}");
    let said = hintctl(&check);
    assert!(stdout(&said).contains("is cut off from boxes of type \"FW\""), "{}", stdout(&said));
    let bad = files.write("bad.toml", &declared("FV"));
    assert_refused(&["chains", "check", "--chains", &bad], &["bad.toml", "guarded", "\"FV\"", "\"FW\" is"]);
    let config = files.write("hintd.toml", &declared("FW").replace("[[", "[[chains."));
    let alone = document(&["chains", "check", "--config", &config]);
    assert_eq!((&alone["chains"], &alone["network_known"]), (&json!(1), &json!(false)), "{alone}");
}

#[test]
fn the_experiments_are_listed_and_unknown_ones_refused() {
    assert!(document(&["reproduce", "--list"])["entries"].is_array());
    assert_refused(&["reproduce", "cold-fusion"], &["cold-fusion"]);
}

#[test]
fn a_damaged_trace_is_named_with_its_line() {
    let files = Files::new();
    let trace = files.write("bad.tsv", "job0\t1\t1\t5\t5\t5\njob1\t2\t1\tmany\t5\t5\n");
    assert_refused(&["demo", "--trace", &trace], &["bad.tsv", "line 2", "many"]);
    assert_refused(&["demo", "--trace", "/nonexistent.tsv"], &["/nonexistent.tsv"]);
    assert_refused(&["demo", "--nodes", "41"], &["41", "5 racks"]);
}

#[test]
fn the_no_op_peer_answers_under_load() {
    let figures = document(&["bench", "noop", "--seconds", "1", "--clients", "2", "--gang", "3"]);
    assert!(figures["requests_per_s"].as_f64().unwrap() > 0.0, "{figures}");
    assert_eq!(figures["errors"], 0);
    let per_request = figures["hints_per_s"].as_f64().unwrap() / figures["requests_per_s"].as_f64().unwrap();
    assert!((per_request - 3.0).abs() < 1e-6, "{figures}");
    for key in ["p50_ms", "p99_ms", "client_cpu_s", "server_cpu_s"] {
        assert!(figures[key].is_number(), "{key}: {figures}");
    }
}

/// A daemon in this process, fed from an emulated cluster of 8 nodes with one file.
struct Daemon {
    runtime: Runtime,
    running: Option<Running>,
    _sources: Sources,
    address: String,
    socket: String,
}

impl Daemon {
    fn start(files: &Files) -> Self {
        let (runtime, running, socket) = started(files, "[placer]\nguard = false\ndeadline_default = \"30s\"\n");
        let sources = runtime.block_on(async {
            let client = hintd_client::Client::connect(&running.grpc.to_string()).await.unwrap();
            let cluster = Cluster::build(ClusterShape { nodes: 8, racks: 4, ..ClusterShape::default() }).unwrap();
            let mut namespace = Namespace::new(1);
            namespace.create("/in", Bytes(4 * BLOCK.0), &cluster);
            let facts = Facts::new(cluster, namespace);
            Sources::open(&client, &facts, Duration::from_secs(60)).await.unwrap()
        });
        let address = running.grpc.to_string();
        let daemon = Self { runtime, running: Some(running), _sources: sources, address, socket };
        // What feeds acknowledged is published a moment later.
        let began = Instant::now();
        loop {
            let known = daemon.document(&["status", "--live"]);
            if known["nodes_usable"] == 8 && known["links"] != 0 && known["blocks"] == 4 {
                return daemon;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "the feeds are not taken: {known}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A command's JSON document from this daemon.
    fn document(&self, args: &[&str]) -> Value {
        document(&[&["--address", &self.address, "--admin-socket", &self.socket], args].concat())
    }

    fn refuses(&self, args: &[&str], words: &[&str]) {
        assert_refused(&[&["--address", &self.address, "--admin-socket", &self.socket], args].concat(), words);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.shutdown()).unwrap();
        }
    }
}

#[test]
fn a_running_daemon_answers_every_question() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    let status = daemon.document(&["status"]);
    assert_eq!(
        (&status["ready"], &status["nodes"], &status["links"]),
        (&json!(true), &json!(8), &json!(16)),
        "{status}"
    );
    assert!(status["process_cpu_s"].as_f64().unwrap() > 0.0 && status["resident_bytes"].as_u64().unwrap() > 1_000_000);
    let nodes = daemon.document(&["nodes", "--host", "node-02"]);
    assert_eq!((&nodes["total"], &nodes["nodes"][0]["total"]["memory_mb"]), (&json!(2), &json!(16384)), "{nodes}");
    assert_eq!(daemon.document(&["links", "--down"])["links"], json!([]));
    assert_eq!(daemon.document(&["policies"])["default_policy"], "joint");
    assert!(
        daemon.document(&["calibrate", "--input-mb", "4000", "--exchanged-mb", "500", "--containers", "8"])["locality"]
            .is_number()
    );

    let request = files.request(&json!({}));
    let tried = daemon.document(&["whatif", "request", "--file", &request]);
    assert_eq!(tried["hints"].as_array().unwrap().len(), 6, "{tried}");
    assert_eq!(daemon.document(&["status"])["leases"], 0, "a what-if takes nothing");
    let answer = daemon.document(&["request", "--file", &request]);
    assert!(answer["hints"].as_array().unwrap().iter().all(|hint| hint["lease_id"].is_string()), "{answer}");
    let again = daemon.document(&["request", "--file", &request]);
    assert_eq!(again["decision_id"], answer["decision_id"], "the same request gets the same answer");
    let marked = |answer: &Value| (answer["repeat"].clone(), answer.get("lease_states").is_some());
    assert_eq!((marked(&answer), marked(&again)), ((json!(false), false), (json!(true), true)));
    assert_eq!((again["lease_states"].as_array().unwrap().len(), &again["leases_over"]), (6, &json!(false)));
    let nameless = files.request(&json!({ "id": "request" }));
    let asked = |args: &[&str]| {
        let answer = daemon.document(&[&["request", "--file", &nameless], args].concat());
        (answer["request_id"].as_str().unwrap().to_owned(), answer["decision_id"].clone())
    };
    let (first, second) = (asked(&[]), asked(&[]));
    assert!(first.0 != second.0 && first.1 != second.1, "each call asks something new: {first:?}, {second:?}");
    assert_eq!(asked(&["--request-id", &first.0]), first, "the same id, the same answer");
    assert_eq!(answer["request_id"], "r1", "an id in the file is kept");
    let request = files.request(&json!({}));
    let id = answer["decision_id"].as_str().unwrap();
    let explained = daemon.document(&["explain", id]);
    assert_eq!(
        (&explained["hints"], &explained["application_id"]),
        (&answer["hints"], &json!("application_1700000000000_0001"))
    );
    assert_eq!(explained["leases"].as_array().unwrap().len(), 6);
    daemon.refuses(&["explain", "0000000000000000"], &["decision"]);
    daemon.refuses(&["whatif", "request", "--file", &request, "--policy", "contaner"], &["container"]);

    let file = text_of(&files.path("now.json"));
    daemon.document(&["snapshot", "-o", &file]);
    let other = files.request(&json!({ "id": "r2", "application_id": "application_1700000000000_0002", "seed": 5 }));
    let live = daemon.document(&["whatif", "request", "--file", &other, "--policy", "spread"]);
    let home = document(&["place", "--cluster", &file, "--request", &other, "--policy", "spread"]);
    let hosts = |answer: &Value| {
        answer["hints"].as_array().unwrap().iter().map(|hint| hint["host"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(hosts(&home), hosts(&live), "a live situation taken home gives the same placement");
}

/// A Storm topology: spouts, bolts that ask an acker which answers them, sinks.
fn storm(files: &Files) -> String {
    let group =
        |name: &str, count: u32| json!({ "name": name, "count": count, "size": { "memory_mb": 4096, "vcores": 4 } });
    let edge = |from: &str, to: &str| json!({ "from": from, "to": to, "bytes": 200_000_000_u64 });
    let request = json!({
        "format": "hintd.request/1",
        "id": "storm-1",
        "application_id": "application_1700000000000_0007",
        "framework": "storm",
        "groups": [group("spout", 4), group("bolt", 6), group("acker", 2), group("sink", 4)],
        "edges": [edge("spout", "bolt"), edge("bolt", "acker"), edge("acker", "bolt"), edge("bolt", "sink")],
        "seed": 3,
    });
    files.write("storm.json", &request.to_string())
}

#[test]
fn a_dataflow_gets_hosts_and_routes_and_operators_see_who_uses_which_link() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    let storm = storm(&files);
    let tried = daemon.document(&["whatif", "request", "--file", &storm, "--policy", "cross_layer"]);
    assert!(!tried["routes"].as_array().unwrap().is_empty(), "{tried}");
    assert_eq!(daemon.document(&["status"])["flows"]["jobs"], 0, "a what-if leaves no flow");
    let answer = daemon.document(&["request", "--file", &storm, "--policy", "cross_layer"]);
    let routes = answer["routes"].as_array().unwrap();
    let across = routes.iter().find(|route| route["links"].as_array().unwrap().len() > 2).expect("not all in one rack");
    assert_eq!(across["vertices"].as_array().unwrap().len(), across["links"].as_array().unwrap().len() + 1);
    let explained = daemon.document(&["explain", answer["decision_id"].as_str().unwrap()]);
    assert_eq!(explained["routes"], answer["routes"]);
    terminal::until("the flow is published", || daemon.document(&["status"])["flows"]["jobs"] == 1);
    let flows = daemon.document(&["status"])["flows"].clone();
    assert_eq!((&flows["jobs"], flows["installed"].as_u64()), (&json!(1), Some(routes.len() as u64)), "{flows}");

    let link = across["links"][1].as_str().unwrap();
    let found = daemon.document(&["links", "--link", link]);
    let used = &found["links"][0];
    assert_eq!(used["users"][0]["application_id"], "application_1700000000000_0007", "{found}");
    assert_eq!(used["load_source"], "modelled");
    let all = daemon.document(&["links", "--limit", "3"]);
    assert_eq!((all["links"].as_array().unwrap().len(), &all["total"]), (3, &json!(16)));
    let text = stdout(&hintctl(&["--address", &daemon.address, "--admin-socket", &daemon.socket, "links"]));
    assert!(text.contains("16 of 16 links") && text.contains("application_1700000000000_0007"), "{text}");
    daemon.refuses(&["links", "--link", &format!("{link}x")], &["did you mean", link]);

    let before = daemon.document(&["status"]);
    let forecast = daemon.document(&["whatif", "network", "--drain-link", link]);
    assert!(!forecast["routes"].as_array().unwrap().is_empty(), "{forecast}");
    assert!(forecast["utility_before"].as_f64().unwrap() >= forecast["utility_after"].as_f64().unwrap(), "{forecast}");
    let args =
        ["--address", &daemon.address, "--admin-socket", &daemon.socket, "whatif", "network", "--drain-link", link];
    let text = stdout(&hintctl(&args));
    assert!(text.contains("would move") && text.contains("then via"), "{text}");
    assert_eq!(daemon.document(&["status"])["flows"], before["flows"]);
    daemon.refuses(&["whatif", "network", "--drain-switch", "nowhere"], &["switch", "nowhere"]);
    daemon.refuses(&["whatif", "network"], &["--drain-switch"]);

    let told = daemon.document(&["watch", "--flows", "--count", "1", "--acknowledge"]);
    assert_eq!((&told["phase"], told["routes"].as_array().unwrap().len()), (&json!("initial"), routes.len()), "{told}");
    let text =
        stdout(&hintctl(&["--address", &daemon.address, "request", "--file", &storm, "--policy", "cross_layer"]));
    assert!(text.contains(" → ") && text.contains(" via "), "{text}");
}

#[test]
fn failing_links_are_timed_over_the_daemons_own_sockets() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    let figures = daemon.document(&[
        "bench",
        "reroute",
        "--target",
        &daemon.address,
        "--hosts",
        "16",
        "--flows",
        "60",
        "--failures",
        "3",
        "--rounds",
        "1",
    ]);
    assert!(figures["flows"].as_u64().unwrap() >= 60, "{figures}");
    assert!(figures["one"]["p99_ms"].as_f64().unwrap() > 0.0 && figures["one"]["moved_mean"].as_f64().unwrap() >= 1.0);
    assert_eq!(figures["many"]["events"], 1, "{figures}");
}

#[test]
fn a_load_is_measured_at_both_ends() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    let args = [
        "bench",
        "load",
        "--target",
        &daemon.address,
        "--clients",
        "2",
        "--seconds",
        "1",
        "--gang",
        "2",
        "--policy",
        "spread",
    ];
    let figures = daemon.document(&args);
    assert!(figures["requests_per_s"].as_f64().unwrap() > 0.0, "{figures}");
    assert_eq!(figures["errors"], 0, "{figures}");
    for key in ["hints_per_s", "p50_ms", "p99_ms", "client_cpu_s", "server_cpu_s"] {
        assert!(figures[key].is_number(), "{key}: {figures}");
    }
    let args = ["bench", "feed", "--target", &daemon.address, "--nodes", "100", "--seconds", "1"];
    let figures = daemon.document(&args);
    assert!(figures["heartbeats_per_s"].as_f64().unwrap() > 100.0, "{figures}");
    assert_eq!(figures["refused"], 0, "{figures}");
}
