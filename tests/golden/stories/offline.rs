//! Commands that need no daemon or start their own: their JSON and the files that they write.

use crate::notes::Notes;
use crate::programs::{Daemon, Files};
use crate::world::{graph, with};
use serde_json::{Value, json};

fn read(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn networks_and_placements(notes: &Notes) {
    let files = Files::new();
    for kind in ["bcube", "fat-tree", "hybrid", "jellyfish", "tree", "vl2"] {
        let file = files.path(&format!("{kind}.json"));
        notes.json("topology build", &["topology", "build", kind, "-o", &file]);
        notes.seen().json.add("network file", &read(&file));
        notes.json("topology check", &["topology", "check", &file]);
    }
    notes.json("topology paths", &["topology", "paths", &files.path("fat-tree.json")]);
    let islands = json!({
        "format": "hintd.network/1",
        "switches": [{ "name": "a", "tier": "edge" }, { "name": "b", "tier": "edge" }], "hosts": [],
        "links": [],
    });
    notes.all_json("topology check", &["topology", "check", &files.json("islands.json", &islands)]);
    let flows = json!({
        "links": [{ "id": "l", "capacity_bps": 80 }],
        "flows": [{ "id": "f", "path": ["l"], "size_bytes": 2, "start_s": 0 }],
    });
    notes.json("flows", &["flows", &files.json("flows.json", &flows)]);
    placements(notes, &files);
    chains(notes, &files);
}

/// A cluster file with a network and data.
fn cluster(files: &Files) -> String {
    let node = |at: u32| {
        json!({
            "host": format!("r{}n{}", at / 2, at % 2), "rack": format!("/rack{}", at / 2), "memory_mb": 8_192,
            "vcores": 8,
        })
    };
    let block = |id: u32| json!({ "id": id, "bytes": 134_217_728, "hosts": ["r0n0", "r1n1"] });
    let network = with(graph(3, 2), json!({ "format": "hintd.network/1" }));
    files.json(
        "cluster.json",
        &json!({
            "format": "hintd.cluster/1", "nodes": (0..6).map(node).collect::<Vec<_>>(),
            "datasets": [{ "path": "/in", "blocks": (0..4).map(block).collect::<Vec<_>>() }], "network": network,
        }),
    )
}

fn placements(notes: &Notes, files: &Files) {
    let cluster = cluster(files);
    let group =
        |name: &str, count: u32| json!({ "name": name, "count": count, "size": { "memory_mb": 1_024, "vcores": 1 } });
    let request = |count: u32| {
        json!({
            "format": "hintd.request/1", "groups": [group("map", count), group("reduce", 2)], "input_paths": ["/in"],
            "edges": [{ "from": "map", "to": "reduce", "bytes": 1_000_000_000 }],
        })
    };
    let (small, large) = (files.json("small.json", &request(4)), files.json("large.json", &request(70)));
    for policy in ["container", "cross_layer", "hit", "pat", "spread"] {
        notes.json("place", &["place", "--cluster", &cluster, "--request", &small, "--policy", policy]);
    }
    notes.json("place", &["place", "--cluster", &cluster, "--request", &large, "--policy", "spread"]);
}

/// Chains on a network where they can be met, and on one where a rack is cut off.
fn chains(notes: &Notes, files: &Files) {
    let declared = json!({
        "boxes": [{ "name": "fw", "type": "FW", "at": "e0", "bits_per_s": 1_000_000_000 }],
        "chains": [{ "name": "c", "sequence": ["FW"] }],
    });
    let declared = files.json("chains.json", &declared);
    let whole = with(graph(2, 1), json!({ "format": "hintd.network/1" }));
    let mut cut = whole.clone();
    for link in cut["links"].as_array_mut().unwrap().iter_mut().filter(|link| link["id"].to_string().contains("u1")) {
        link["up"] = json!(false);
    }
    for (name, network) in [("whole.json", whole), ("cut.json", cut)] {
        let network = files.json(name, &network);
        notes.all_json("chains check", &["chains", "check", "--chains", &declared, "--network", &network]);
    }
}

pub(crate) fn traces_plans_and_simulations(notes: &Notes) {
    let files = Files::new();
    let [swim, lines] = ["t.tsv", "t.jsonl"].map(|name| files.path(name));
    notes.json("trace generate", &["trace", "generate", "--jobs", "6", "-o", &swim]);
    notes.json("trace generate", &["trace", "generate", "--jobs", "6", "--format", "json", "--paths", "-o", &lines]);
    for line in std::fs::read_to_string(&lines).unwrap().lines() {
        notes.seen().json.add("trace file", &serde_json::from_str(line).unwrap());
    }
    let bad = files.write("bad.tsv", &(std::fs::read_to_string(&swim).unwrap() + "job6\t31\n"));
    notes.json("trace check", &["trace", "check", &swim]);
    notes.json("trace check", &["trace", "check", &lines]);
    notes.json("trace check", &["trace", "check", &bad, "--skip-bad"]);
    simulations(notes, &files, &swim);
    worth(notes, &files, &swim);
    plans(notes, &files, &lines);
    reproduction(notes, &files);
}

fn simulations(notes: &Notes, files: &Files, trace: &str) {
    let (script, runs) = (files.write("script.toml", SCRIPT), files.path("runs.json"));
    let base = ["simulate", "--trace", trace, "--policy"];
    let hinted =
        ["fair,nas", "--cluster", "nas-40", "--authority", "both", "--script", &script, "--series", "-o", &runs];
    notes.json("simulate", &[&base[..], &hinted].concat());
    notes.seen().json.add("simulate", &read(&runs));
    let planned = ["jobpacker,corral,fair", "--cluster", "jobpacker", "--plan", "online"];
    notes.json("simulate", &[&base[..], &planned].concat());
}

fn worth(notes: &Notes, files: &Files, trace: &str) {
    let [kept, page, out] = ["kept", "worth.md", "worth.json"].map(|name| files.path(name));
    let base =
        ["worth", "--trace", trace, "--cluster", "nas-40", "--loads", "0.01,0.1", "--seeds", "2", "--levers", "where"];
    let written = ["--keep", &kept, "--markdown", &page, "--commit", "0123456", "-o", &out];
    notes.json("worth", &[&base[..], &written].concat());
    notes.seen().json.add("worth", &read(&out));
    for run in std::fs::read_dir(&kept).unwrap() {
        let mut run = read(run.unwrap().path().to_str().unwrap());
        run["of"] = json!("all that a run hangs on: compared, never read");
        notes.seen().json.add("kept run of worth", &run);
    }
    assert!(std::fs::exists(&page).unwrap(), "it is generated of these");
    let one =
        ["worth", "--trace", trace, "--cluster", "nas-40", "--loads", "0.01", "--seeds", "1", "--policy", "joint"];
    let changed = ["--levers", "data-when", "--without", "cap", "--lies", "times-x5"];
    notes.json("worth", &[&one[..], &changed].concat());
    let part = ["--keep", &files.path("part"), "--shard", "1/4"];
    notes.json("worth", &[&base[..], &part].concat());
}

fn plans(notes: &Notes, files: &Files, trace: &str) {
    let [plan, other, next] = ["plan.json", "other.json", "next.json"].map(|name| files.path(name));
    let history = files.write("history.jsonl", &history());
    let base = ["plan", "--cluster", "jobpacker"];
    notes.json("plan", &[&base[..], &["--trace", trace, "-o", &plan]].concat());
    let corral = ["--trace", trace, "--policy", "corral", "--objective", "batch", "-o", &other];
    notes.json("plan", &[&base[..], &corral].concat());
    let foretold = ["--history", &history, "--start", "1794787200", "--horizon", "24h", "-o", &next];
    notes.json("plan --history", &[&base[..], &foretold].concat());
    for file in [&plan, &other, &next] {
        notes.seen().json.add("plan file", &read(file));
    }
    notes.json("plan check", &["plan", "check", &plan, "--cluster", "jobpacker"]);
    notes.all_json("plan check", &["plan", "check", &plan, "--cluster", "nas-40"]);
    notes.json("plan check", &["plan", "check", &plan]);
    notes.json("plan diff", &["plan", "diff", &plan, &other]);
    notes.json("plan diff", &["plan", "diff", &plan, &plan]);
}

fn reproduction(notes: &Notes, files: &Files) {
    notes.json("reproduce --list", &["reproduce", "--list"]);
    let docs = files.path("docs");
    std::fs::create_dir(&docs).unwrap();
    let quickest = ["reproduce", "cross-layer-failure", "--scale", "full", "--seeds", "5"];
    notes.json("reproduce", &[&quickest[..], &["--save", &docs, "--commit", "0123456"]].concat());
    notes.seen().json.add("reproduction file", &read(&format!("{docs}/reproduction/cross-layer-failure.json")));
    assert!(std::fs::exists(format!("{docs}/reproduction.md")).unwrap(), "it is generated of these");
}

const SCRIPT: &str = r#"
format = "hintd.script/1"
[[events]]
at_s = 5
node_down = "rack01-node03"
[[events]]
at_s = 9
node_up = "rack01-node03"
[[background]]
from_rack = "/rack-01"
to_rack = "/rack-02"
streams = 2
start_s = 0
end_s = 30
"#;

/// Two weeks with one nightly job and one job that ran once.
fn history() -> String {
    let line = |name: String, at: u64| {
        let job = json!({
            "name": name, "submit_s": at, "input_bytes": 40_u64 << 30, "shuffle_bytes": 40_u64 << 30,
            "output_bytes": 1, "input_path": format!("/logs/{at}"),
        });
        format!("{job}\n")
    };
    let monday = 1_793_577_600;
    let nightly = (0..14).map(|day| line(format!("etl-{}", 20_261_102 + day), monday + day * 86_400 + 7_200));
    nightly.chain([line("once".to_owned(), monday + 13 * 86_400 + 9_000)]).collect()
}

/// The demo says the same of few simulated jobs as of the many that it simulates by default, which take a debug build most of a
/// minute.
const FEW: [&str; 2] = ["--worth-jobs", "12"];

pub(crate) fn the_demo_shows_itself(notes: &Notes) {
    notes.all_json("demo", &[&["demo", "--jobs", "10", "--seconds", "4"], &FEW[..]].concat());
}

pub(crate) fn the_demo_dispatches(notes: &Notes) {
    notes.all_json("demo", &[&["demo", "--jobs", "5", "--seconds", "3", "--policy", "delay"], &FEW[..]].concat());
}

pub(crate) fn loads_are_measured(notes: &Notes) {
    notes.all_json("bench noop", &["bench", "noop", "--seconds", "1", "--clients", "2", "--gang", "3"]);
    let daemon = Daemon::start("");
    let feed = ["bench", "feed", "--target", &daemon.address, "--nodes", "100", "--seconds", "1", "--peer"];
    notes.all_json("bench feed", &daemon.args(&feed));
    let load =
        ["bench", "load", "--target", &daemon.address, "--clients", "2", "--seconds", "1", "--gang", "2", "--peer"];
    notes.all_json("bench load", &daemon.args(&load));
    let plot = daemon.files.path("soak.svg");
    let soak = [
        "bench",
        "soak",
        "--target",
        &daemon.address,
        "--minutes",
        "0.04",
        "--window",
        "1",
        "--requests",
        "20",
        "--heartbeats",
        "100",
        "--nodes",
        "50",
        "--run",
        "1",
        "-o",
        &plot,
    ];
    notes.all_json("bench soak", &daemon.args(&soak));
    notes.seen().json.add("bench soak", &read(&daemon.files.path("soak.json")));
}

pub(crate) fn failing_links_are_timed(notes: &Notes) {
    let daemon = Daemon::start("");
    let reroute = [
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
    ];
    notes.all_json("bench reroute", &daemon.args(&reroute));
}
