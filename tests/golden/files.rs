//! Files: formats and fields as the programs report them, configuration keys with defaults and bounds, the files that
//! the daemon creates, and log filters.

use crate::programs::{Daemon, Files, finish, hintd, root, run, said};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

/// The lines of the list, except those that stories record.
pub(crate) fn lines() -> Vec<String> {
    let mut lines = formats();
    lines.extend(fields());
    lines.extend(configuration());
    lines.extend(folders());
    lines.extend(logs());
    lines
}

/// Runs a command on a document; `@` stands for its path.
fn told(files: &Files, command: &str, name: &str, text: &str) -> (Option<i32>, String) {
    let file = files.write(name, text);
    let args: Vec<&str> = command.split(' ').map(|word| if word == "@" { file.as_str() } else { word }).collect();
    let output = run(&args);
    let (out, err) = said(&output);
    (output.status.code(), out + &err)
}

/// A valid trace, request, and cluster to go with the document under test.
fn beside(files: &Files) -> [String; 3] {
    let trace = files.write("t.tsv", "job0\t1\t1\t5\t5\t5\n");
    let group = json!({ "name": "g", "count": 1, "size": { "memory_mb": 1_024 } });
    let request = files.json("r.json", &json!({ "format": "hintd.request/1", "groups": [group] }));
    let cluster =
        files.json("c.json", &json!({ "format": "hintd.cluster/1", "nodes": [{ "host": "h", "memory_mb": 2_048 }] }));
    [trace, request, cluster]
}

/// Format names: version 1 is accepted, version 2 is not.
fn formats() -> Vec<String> {
    let files = Files::new();
    let [trace, request, cluster] = beside(&files);
    let shape = "racks = 2\nnodes_per_rack = 2\ncontainers_per_node = 2\nnic_bits_per_s = 1000000000\n\
        uplink_bits_per_s = 1000000000\n";
    let network = "switches = [{ name = \"s\", tier = \"edge\" }]\nhosts = [{ name = \"h\" }]\n\
        links = [{ id = \"l\", a = \"h\", b = \"s\", bits_per_s = 1000 }]\n";
    let cases = [
        (
            "hintd.cluster",
            format!("place --cluster @ --request {request}"),
            "nodes = [{ host = \"h\", memory_mb = 2048 }]\n",
        ),
        (
            "hintd.request",
            format!("place --cluster {cluster} --request @"),
            "groups = [{ name = \"g\", count = 1, size = { memory_mb = 1024 } }]\n",
        ),
        ("hintd.network", "topology check @".to_owned(), network),
        ("hintd.shape", format!("simulate --trace {trace} --cluster @ --policy fair"), shape),
        ("hintd.script", format!("simulate --trace {trace} --cluster nas-40 --policy fair --script @"), ""),
    ];
    let mut lines = Vec::new();
    for (format, command, text) in cases {
        for version in [1, 2] {
            let text = format!("format = \"{format}/{version}\"\n{text}");
            let (code, said) = told(&files, &command, "tried.toml", &text);
            assert!(code == Some(0) || said.contains(&format!("{format}/{version}")), "{format}: {said}");
            lines.push(format!("format {format}/{version}: exit code {}", code.unwrap_or(-1)));
        }
    }
    lines
}

/// Documents with an unknown field or word `zzz`: the part of the document, the command that reads it, the text.
const UNKNOWN: &[(&str, &str, &str)] = &[
    ("cluster", "cluster", r#"{ "zzz": 1 }"#),
    ("cluster nodes[]", "cluster", r#"{ "nodes": [{ "host": "h", "memory_mb": 1, "zzz": 1 }] }"#),
    ("cluster rules", "cluster", r#"{ "rules": { "zzz": 1 } }"#),
    ("amount", "cluster", r#"{ "rules": { "minimum": { "zzz": 1 } } }"#),
    ("cluster containers[]", "cluster", r#"{ "containers": [{ "zzz": 1 }] }"#),
    ("cluster datasets[]", "cluster", r#"{ "datasets": [{ "zzz": 1 }] }"#),
    ("cluster datasets[].blocks[]", "cluster", r#"{ "datasets": [{ "blocks": [{ "zzz": 1 }] }] }"#),
    ("cluster link_loads[]", "cluster", r#"{ "link_loads": [{ "zzz": 1 }] }"#),
    ("cluster latency[]", "cluster", r#"{ "latency": [{ "zzz": 1 }] }"#),
    ("cluster rack_latency[]", "cluster", r#"{ "rack_latency": [{ "zzz": 1 }] }"#),
    ("request", "request", r#"{ "zzz": 1 }"#),
    ("request groups[]", "request", r#"{ "groups": [{ "zzz": 1 }] }"#),
    ("request edges[]", "request", r#"{ "edges": [{ "zzz": 1 }] }"#),
    ("request edges[].pattern", "request", r#"{ "edges": [{ "pattern": "zzz" }] }"#),
    ("request constraints", "request", r#"{ "constraints": { "zzz": 1 } }"#),
    ("request asks[]", "request", r#"{ "asks": [{ "zzz": 1 }] }"#),
    ("request gang", "request", r#"{ "gang": "zzz" }"#),
    ("request when_full", "request", r#"{ "when_full": "zzz" }"#),
    ("network", "cluster", r#"{ "network": { "zzz": 1 } }"#),
    ("network switches[]", "cluster", r#"{ "network": { "switches": [{ "zzz": 1 }] } }"#),
    ("network switches[].tier", "cluster", r#"{ "network": { "switches": [{ "tier": "zzz" }] } }"#),
    ("network hosts[]", "cluster", r#"{ "network": { "hosts": [{ "zzz": 1 }] } }"#),
    ("network links[]", "cluster", r#"{ "network": { "links": [{ "zzz": 1 }] } }"#),
    ("network optical", "cluster", r#"{ "network": { "optical": { "zzz": 1 } } }"#),
    ("shape", "shape", "format = \"hintd.shape/1\"\nzzz = 1"),
    ("shape core.kind", "shape", "format = \"hintd.shape/1\"\ncore = { kind = \"zzz\" }"),
    ("shape core of pods", "shape", "format = \"hintd.shape/1\"\ncore = { kind = \"pods\", zzz = 1 }"),
    ("shape core of optical", "shape", "format = \"hintd.shape/1\"\ncore = { kind = \"optical\", zzz = 1 }"),
    ("script", "script", "zzz = 1"),
    ("script events[]", "script", "events = [{ zzz = 1 }]"),
    ("script background[]", "script", "background = [{ zzz = 1 }]"),
    ("flows", "flows", r#"{ "zzz": 1 }"#),
    ("flows links[]", "flows", r#"{ "links": [{ "zzz": 1 }] }"#),
    ("flows flows[]", "flows", r#"{ "flows": [{ "zzz": 1 }] }"#),
    ("chains", "chains", r#"{ "zzz": 1 }"#),
    ("chains boxes[]", "chains", r#"{ "boxes": [{ "zzz": 1 }] }"#),
    ("chains chains[]", "chains", r#"{ "chains": [{ "zzz": 1 }] }"#),
    ("chains chains[].direction", "chains", r#"{ "chains": [{ "direction": "zzz" }] }"#),
    ("chains chains[].when_broken", "chains", r#"{ "chains": [{ "when_broken": "zzz" }] }"#),
    ("plan", "plan", r#"{ "format": "hintd.plan/1", "zzz": 1 }"#),
    ("plan assumptions", "plan", r#"{ "format": "hintd.plan/1", "assumptions": { "zzz": 1 } }"#),
    ("plan racks[]", "plan", r#"{ "format": "hintd.plan/1", "racks": [{ "zzz": 1 }] }"#),
    ("plan jobs[]", "plan", r#"{ "format": "hintd.plan/1", "jobs": [{ "zzz": 1 }] }"#),
    ("plan jobs[].maps", "plan", r#"{ "format": "hintd.plan/1", "jobs": [{ "maps": { "zzz": 1 } }] }"#),
    ("plan jobs[].forecast", "plan", r#"{ "format": "hintd.plan/1", "jobs": [{ "forecast": { "zzz": 1 } }] }"#),
    ("trace, JSON lines", "trace", r#"{ "name": "a", "zzz": 1 }"#),
];

/// The fields of every document, as listed in the error message about an unknown one.
fn fields() -> Vec<String> {
    let files = Files::new();
    let [trace, request, cluster] = beside(&files);
    let command = |reader: &str| match reader {
        "cluster" => (format!("place --cluster @ --request {request}"), "json"),
        "request" => (format!("place --cluster {cluster} --request @"), "json"),
        "shape" => (format!("simulate --trace {trace} --policy fair --cluster @"), "toml"),
        "script" => (format!("simulate --trace {trace} --policy fair --cluster nas-40 --script @"), "toml"),
        "chains" => ("chains check --chains @".to_owned(), "json"),
        "flows" => ("flows @".to_owned(), "json"),
        other => (format!("{other} check @"), if other == "trace" { "jsonl" } else { "json" }),
    };
    let listed = |(what, reader, text): &(&str, &str, &str)| {
        let (command, ending) = command(reader);
        expected(&files, what, &command, ending, text)
    };
    UNKNOWN.iter().flat_map(listed).collect()
}

/// The names that the error message lists instead of `zzz`, one per line.
fn expected(files: &Files, what: &str, command: &str, ending: &str, text: &str) -> Vec<String> {
    let (code, said) = told(files, command, &format!("tried.{ending}"), text);
    let rest = said.split("`zzz`").nth(1).unwrap_or_else(|| panic!("{what}: {code:?}: {said}"));
    let line = rest.lines().next().unwrap_or_default();
    let names: Vec<String> = line.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(!names.is_empty(), "{what}: {said}");
    names.into_iter().map(|name| format!("field of {what}: {name}")).collect()
}

/// The keys of the shipped configuration with defaults, bounds, and whether a change needs a restart.
fn configuration() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("config/hintd.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let mut keys = Vec::new();
    flat("", &toml::Value::Table(table), &mut keys);
    let restart = waiting_for_restart(&text, &keys);
    let files = Files::new();
    let bounds = bounds(&files, &keys);
    let mut lines = Vec::new();
    for (key, value) in &keys {
        let waits = if restart.contains(key) { "restart" } else { "reload" };
        lines.push(format!("config {key} = {value} ({waits}){}", bounds.get(key).map_or("", String::as_str)));
    }
    for (section, words) in [
        ("queues.x", "mode = \"zzz\""),
        ("yarn", "resource_calculator = \"zzz\""),
        ("log", "format = \"zzz\""),
        ("plan", "objective = \"zzz\""),
    ] {
        lines.push(format!("config {section}: {}", refused(&files, &format!("[{section}]\n{words}\n"))));
    }
    for inside in ["boxes", "chains"] {
        let said = refused(&files, &format!("[chains]\n{inside} = [{{ zzz = 1 }}]\n"));
        lines.extend(said.split('`').skip(3).step_by(2).map(|name| format!("config chains.{inside}[]: {name}")));
    }
    lines.extend(parameters());
    lines
}

fn flat(path: &str, value: &toml::Value, keys: &mut Vec<(String, toml::Value)>) {
    match value {
        toml::Value::Table(table) => {
            for (name, inner) in table {
                let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                let name = if plain { name.clone() } else { format!("\"{name}\"") };
                flat(&if path.is_empty() { name } else { format!("{path}.{name}") }, inner, keys);
            }
        }
        value => keys.push((path.to_owned(), value.clone())),
    }
}

/// The problems that `--check` reports, without the file name.
fn refused(files: &Files, text: &str) -> String {
    let file = files.write("tried.toml", text);
    let output = finish(hintd().args(["--check", "--config", &file]));
    assert_eq!(output.status.code(), Some(2), "{text} is taken");
    let said = said(&output).1;
    said.lines().map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest)).collect::<Vec<_>>().join("; ")
}

/// The bounds of keys, taken from the error messages about absurd values. All are tried in one file.
fn bounds(files: &Files, keys: &[(String, toml::Value)]) -> BTreeMap<String, String> {
    let mut text = String::new();
    for (key, value) in keys {
        let far = match value {
            toml::Value::Integer(_) => "18446744073709551615",
            toml::Value::Float(_) => "2.5",
            toml::Value::String(text) if is_duration(text) => "\"99999999h\"",
            _ => continue,
        };
        let _ = writeln!(text, "{key} = {far}");
    }
    let mut found = BTreeMap::new();
    let said = refused(files, &text);
    for (key, bounds) in said.split("; ").filter_map(|problem| problem.split_once(": ")) {
        let words = [" outside ", " from "].iter().find_map(|mark| bounds.split(mark).nth(1));
        if let Some(bounds) = words.filter(|_| keys.iter().any(|(known, _)| known == key)) {
            found.entry(key.to_owned()).or_insert_with(|| format!(" from {bounds}"));
        }
    }
    found
}

fn is_duration(text: &str) -> bool {
    text.ends_with(['s', 'm', 'h']) && text.starts_with(|first: char| first.is_ascii_digit())
}

/// The keys that need a restart, as a running daemon reports them when the shipped file replaces a nearly empty one.
fn waiting_for_restart(shipped: &str, keys: &[(String, toml::Value)]) -> Vec<String> {
    let daemon = Daemon::start("");
    daemon.files.write("hintd.toml", shipped);
    let said = daemon.document(&["reload"]);
    let list = |key: &str| -> Vec<String> {
        let rows = said[key].as_array().unwrap();
        rows.iter().map(|key| key.as_str().unwrap().replace("queues.*", "queues.\"*\"")).collect()
    };
    let (changed, restart) = (list("changed"), list("needs_restart"));
    // Keys that this test sets itself may have the same value as in the shipped file.
    let known = ["listen.", "store.", "leases.", "model.", "yarn.", "placer.", "policy.", "routes."];
    let missing: Vec<&String> = keys
        .iter()
        .map(|(key, _)| key)
        .filter(|key| !changed.contains(key) && !known.iter().any(|known| key.starts_with(known)))
        .collect();
    assert!(missing.is_empty(), "a reload does not see these keys change: {missing:?}");
    restart
}

/// The default parameters of every policy, as reported by a daemon that sets none.
fn parameters() -> Vec<String> {
    let daemon = Daemon::start("");
    let policies = daemon.document(&["policies"]);
    let mut lines = Vec::new();
    for policy in policies["policies"].as_array().unwrap() {
        let name = policy["name"].as_str().unwrap();
        let capabilities: Vec<&str> =
            policy["capabilities"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        lines.push(format!("policy {name}: can {}", capabilities.join(" ")));
        let parameters = policy["params_toml"].as_str().unwrap().lines().filter(|line| !line.is_empty());
        lines.extend(parameters.map(|line| format!("config policies.{name}.{line}")));
    }
    lines
}

/// The files and permissions that a daemon creates in missing folders, and what remains after it stops.
fn folders() -> Vec<String> {
    let files = Files::new();
    let (state, sockets) = (files.path("state/deep"), files.path("run/deep"));
    let extra = format!("[listen]\nadmin_socket = \"{sockets}/admin.sock\"\n[store]\npath = \"{state}/journal.redb\"");
    let mut daemon = Daemon::start_at(files, &extra, &format!("{sockets}/admin.sock"));
    let listed = |when: &str| {
        let of = |folder: &str| {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
            let shown = |entry: std::fs::DirEntry| {
                let about = entry.metadata().unwrap();
                let kind = if about.file_type().is_socket() { "socket" } else { "file" };
                format!("{when}: {kind} {} of mode {:o}", entry.file_name().to_string_lossy(), about.mode() & 0o777)
            };
            entries.map(shown).collect::<Vec<_>>()
        };
        [of(&state), of(&sockets)].concat()
    };
    let mut lines = listed("while hintd runs");
    let journal = std::fs::read(format!("{state}/journal.redb")).unwrap();
    lines.extend(crate::journal::names(&journal));
    daemon.signal("-TERM");
    daemon.ended();
    lines.extend(listed("after hintd ended"));
    lines
}

/// Log filters as the shipped configuration documents them, and the keys of a JSON log line.
fn logs() -> Vec<String> {
    let mut lines = Vec::new();
    for level in ["error,hintd=info", "error,hintd::server=info", "error,hintd::runtime=debug"] {
        let daemon = Daemon::start(&format!("[log]\nlevel = \"{level}\"\nformat = \"json\""));
        let _ = daemon.document(&["status", "--live"]);
        // Lines are written by a thread of their own: those of the start come soon, and not all at once.
        let (began, mut logged) = (std::time::Instant::now(), daemon.log());
        while began.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(500));
            let before = std::mem::replace(&mut logged, daemon.log());
            if before == logged && logged.ends_with('\n') {
                break;
            }
        }
        let whole = logged.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let records: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.push(format!(
            "log filter {level}: a start is {}",
            if records.is_empty() { "not logged" } else { "logged" }
        ));
        // Only keys that every line has; the others belong to single messages.
        let keys = |record: &Value| record.as_object().unwrap().keys().cloned().collect::<BTreeSet<String>>();
        let common = records.iter().map(keys).reduce(|all, keys| &all & &keys).unwrap_or_default();
        lines.extend(common.into_iter().map(|key| format!("log line: {key}")));
    }
    lines
}
