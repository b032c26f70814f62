//! Requests, answers, refusals, explanations, replays; nodes, policies, snapshot, reload.

use crate::notes::Notes;
use crate::programs::{Daemon, Files, run, said, until};
use crate::world::{
    Feed, cluster, container, dataset, event, heartbeat, hints, leased, network, register, request, size, with,
};
use serde_json::{Value, json};

const REQUEST: &str = "/hintd.v1.Placement/RequestHints";
const EXPLAIN: &str = "/hintd.v1.Placement/Explain";
const RELEASE: &str = "/hintd.v1.Placement/Release";
const QUEUES: &str = "
    [queues.dark]
    mode = \"shadow\"
    [queues.none]
    mode = \"off\"
    [queues.\"*\"]
    mode = \"on\"
    ";

/// Writes the request file of a job with a shuffle.
fn job(files: &Files, name: &str, app: u32, further: Value) -> String {
    let group =
        |name: &str, count: u32| json!({ "name": name, "count": count, "size": { "memory_mb": 1024, "vcores": 1 } });
    let ask = json!({ "priority": 1, "resource_name": "*", "count": 2, "size": { "memory_mb": 1024, "vcores": 1 } });
    let request = json!({
        "format": "hintd.request/1", "id": name, "application_id": format!("application_1_{app:04}"),
        "groups": [group("map", 2), group("reduce", 2)],
        "edges": [{ "from": "map", "to": "reduce", "bytes": 200_000_000 }], "asks": [ask],
    });
    files.json(&format!("{name}.json"), &with(request, further))
}

/// Six plain nodes, one node with every attribute, a network, data, link loads, and latencies.
fn world<'n>(daemon: &Daemon, notes: &'n Notes) -> Vec<Feed<'n>> {
    let mut beats = cluster(daemon, notes, (3, 2), 16_384);
    let mut special = register("r2n2", "/rack2", 8_192);
    let total =
        with(size(8_192, 8), json!({ "resource_value_map": [{ "key": "yarn.io/gpu", "value": 2, "units": "" }] }));
    let more = json!({
        "total": total, "labels": ["ssd"], "attributes": { "os": "linux" }, "machine_class": "big",
        "aliases": ["10.0.0.7"], "disk_read_bytes_per_s": 100_000_000,
    });
    special["register"] = with(special["register"].clone(), more);
    beats.take(special);
    daemon.until("the special node", |status| status["nodes_usable"] == json!(7));
    let net = network(daemon, notes, (3, 2));
    let data = dataset(daemon, notes, "/in", &["r0n0", "r0n1", "r1n0"], 800_000_000);
    let mut loads = Feed::open(daemon, "LinkStats", notes);
    loads.take(json!({ "load": { "id": "h00", "a_to_b_bits_per_s": 5_000, "b_to_a_bits_per_s": 7_000 } }));
    let mut latencies = Feed::open(daemon, "Latency", notes);
    latencies.take(json!({ "sample": { "from_host": "r0n0", "to_host": "r1n0", "rtt_us": 250 } }));
    daemon.until("latencies are heard", |status| {
        status["ages"].as_array().unwrap().iter().any(|age| age["source"] == "latency" && age.get("age_ms").is_some())
    });
    vec![beats, net, data, loads, latencies]
}

pub(crate) fn a_cluster_is_fed_and_asked(notes: &Notes) {
    let daemon = Daemon::start(QUEUES);
    notes.status(&daemon);
    let mut feeds = world(&daemon, notes);
    let policies = notes.json("policies", &daemon.args(&["policies"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/ListPolicies", &json!({}));
    for (app, policy) in (100..).zip(policies["policies"].as_array().unwrap()) {
        let name = policy["name"].as_str().unwrap();
        let file = job(&daemon.files, &format!("try-{name}"), app, json!({ "policy": name, "input_paths": ["/in"] }));
        let asks = daemon.args(&["whatif", "request", "--file", &file]);
        until("the policy is prepared", || (!said(&run(&asks)).1.contains("is being prepared")).then_some(()));
        notes.json("whatif request", &asks);
    }
    remembered(&daemon, notes);
    given_back(&daemon, notes);
    modes(&daemon, notes);
    operators(&daemon, notes);
    followed(&daemon, notes, &mut feeds[0]);
    notes.json("reload", &daemon.args(&["reload"]));
    notes.all_json("doctor", &daemon.args(&["doctor"])); // it may fail: the machine may have little room
    notes.json("top", &daemon.args(&["top", "--every", "0.1"]));
    network_files(&daemon, notes);
    notes.farewell(&daemon);
    let other = "[queues.dark]\nmode = \"on\"\npolicy = \"fair\"\n[policy.frameworks]\nspark = \"delay\"";
    daemon.rewrite(&format!("{other}\n[store]\ncommit_batch = 3"));
    notes.json("reload", &daemon.args(&["reload"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Reload", &json!({}));
    notes.status(&daemon); // with keys that wait for a restart
    notes.json("policies", &daemon.args(&["policies"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/ListPolicies", &json!({}));
}

/// The network as it is fed, and what a file of racks would make of it.
fn network_files(daemon: &Daemon, notes: &Notes) {
    notes.json("network show", &daemon.args(&["network", "show"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Network", &json!({}));
    notes.json("latency", &daemon.args(&["latency"]));
    notes.all_json("racks", &daemon.args(&["racks"])); // it may fail: racks may differ
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Racks", &json!({}));
    notes.ask(&daemon.grpc(), "/hintd.v1.Placement/ResolveRacks", &json!({ "hosts": ["r0n0"] }));
    let place = daemon.admin();
    notes.refused("what is no network file", &place, "/hintd.v1.Admin/DiffNetwork", &json!({ "json": true }));
}

/// A request, its explanation, and its replays.
fn remembered(daemon: &Daemon, notes: &Notes) {
    let file = job(&daemon.files, "first", 1, json!({ "policy": "container", "input_paths": ["/in"] }));
    let answer = notes.json("request", &daemon.args(&["request", "--file", &file]));
    let id = answer["decision_id"].as_str().unwrap();
    notes.json("explain", &daemon.args(&["explain", id]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Explain", &json!({ "decision_id": id }));
    notes.json("request --show-token", &daemon.args(&["request", "--file", &file, "--show-token"]));
    notes.json("attempts", &daemon.args(&["attempts"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/ListAttempts", &json!({ "limit": 1 }));
    lists(daemon, notes);
    notes.json("replay", &daemon.args(&["replay", id]));
    notes.json("replay --policy", &daemon.args(&["replay", id, "--policy", "spread"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Replay", &json!({ "decision_id": id, "policy": "spread" }));
    // One whose performance is predicted, with measured latency between the root and a host.
    let file = job(&daemon.files, "near", 4, json!({ "policy": "nomora", "am_host": "r0n0" }));
    let near = notes.json("request", &daemon.args(&["request", "--file", &file]));
    let near = near["decision_id"].as_str().unwrap();
    notes.json("explain", &daemon.args(&["explain", near]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Explain", &json!({ "decision_id": near }));
    // A group that does not fit now, and one that never fits.
    let gpus = json!({ "memory_mb": 1024, "vcores": 1, "resources": { "yarn.io/gpu": 2 } });
    let groups = json!([{ "name": "gpu", "count": 3, "size": gpus, "label": "ssd" }]);
    let file = job(&daemon.files, "gpus", 2, json!({ "groups": groups, "edges": [], "asks": [] }));
    let answer = notes.json("request", &daemon.args(&["request", "--file", &file]));
    notes.json("explain", &daemon.args(&["explain", answer["decision_id"].as_str().unwrap()]));
    let wrong = request("large", 3, 1, 60_000, json!({}));
    let status = notes.refused("larger than any node", &daemon.grpc(), REQUEST, &wrong);
    let id = status.metadata["hintd-decision"].clone();
    notes.json("explain, refused", &daemon.args(&["explain", &id]));
    notes.json("replay, refused", &daemon.args(&["replay", &id]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Replay", &json!({ "decision_id": id }));
    notes.ask(&daemon.grpc(), EXPLAIN, &json!({ "decision_id": id }));
}

/// What an attempt holds is given back, by its application and by an operator.
fn given_back(daemon: &Daemon, notes: &Notes) {
    let file = job(&daemon.files, "held", 15, json!({ "policy": "spread" }));
    notes.json("request", &daemon.args(&["request", "--file", &file]));
    notes.json("release", &daemon.args(&["release", "application_1_0015", "--lease", "7"]));
    notes.json("release", &daemon.args(&["release", "application_1_0015"]));
    notes.json("end", &daemon.args(&["end", "application_1_0015"]));
    hints(daemon, notes, &request("again", 15, 1, 1_024, json!({})));
    notes.ask(
        &daemon.admin(),
        "/hintd.v1.Admin/EndAttempt",
        &json!({ "application_id": "application_1_0015", "attempt": 1 }),
    );
}

/// Queues in shadow mode and switched off.
fn modes(daemon: &Daemon, notes: &Notes) {
    for (app, queue) in [(11, "dark"), (12, "none"), (13, "default")] {
        let file = job(&daemon.files, queue, app, json!({ "queue": queue, "policy": "spread" }));
        notes.json("request", &daemon.args(&["request", "--file", &file]));
    }
    let ask = json!({ "priority": { "priority": 1 }, "resource_name": "*", "capability": size(1_024, 1) });
    let asks = [with(ask, json!({ "num_containers": 2 }))];
    let asked = json!({ "request_id": "asks", "application_id": "application_1_0014", "attempt": 1, "asks": asks });
    hints(daemon, notes, &asked);
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/WhatIf", &with(asked, json!({ "request_id": "try" })));
}

fn operators(daemon: &Daemon, notes: &Notes) {
    notes.json("nodes", &daemon.args(&["nodes"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Nodes", &json!({ "host_contains": "r2" }));
    notes.json("links", &daemon.args(&["links"]));
    let calibrate = ["calibrate", "--input-mb", "4000", "--exchanged-mb", "500", "--containers", "8"];
    notes.json("calibrate", &daemon.args(&calibrate));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Calibrate", &json!({ "containers": 3, "input_bytes": 1_u64 << 30 }));
    let file = daemon.files.path("now.json");
    notes.json("snapshot", &daemon.args(&["snapshot", "-o", &file]));
    let mut pieces = crate::grpc::Call::open(&daemon.admin(), "/hintd.v1.Admin/Snapshot").unwrap();
    pieces.send(&json!({}));
    pieces.close();
    notes.until(&mut pieces, "hintd.v1.SnapshotChunk", "a piece", |_| true);
    let snapshot: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    notes.seen().json.add("snapshot file", &snapshot);
    let home = job(&daemon.files, "home", 21, json!({ "policy": "cross_layer" }));
    notes.json("place", &["place", "--cluster", &file, "--request", &home]);
}

/// Containers start on the hinted hosts and elsewhere; an application ends.
fn followed(daemon: &Daemon, notes: &Notes, beats: &mut Feed<'_>) {
    let before = settled(&daemon.status());
    let follows = hints(
        daemon,
        notes,
        &request("follows", 31, 2, 1_024, json!({ "policy": "container", "input_paths": ["/in"] })),
    );
    let strays = hints(daemon, notes, &request("strays", 32, 1, 1_024, json!({})));
    let hinted = leased(&strays).remove(0);
    let other = if hinted.starts_with("r0") { "r1n1" } else { "r0n1" };
    let mut on = vec![(other.to_owned(), container(32, 2))];
    on.extend((2..).zip(leased(&follows)).map(|(sequence, host)| (host, container(31, sequence))));
    let mut hosts: Vec<&String> = on.iter().map(|(host, _)| host).collect();
    hosts.sort();
    hosts.dedup();
    for host in hosts {
        let here = on.iter().filter(|(on, _)| on == host);
        let containers: Vec<_> = here.map(|(_, id)| (id.clone(), 1_024, 1)).collect();
        beats.take(heartbeat(host, 2, &containers));
    }
    daemon.until("both are settled", |status| settled(status) >= before + 2);
    for answer in [&follows, &strays] {
        let id = answer["hints"]["decision_id"].as_str().unwrap();
        notes.json("explain", &daemon.args(&["explain", id]));
        notes.ask(&daemon.grpc(), EXPLAIN, &json!({ "decision_id": id }));
    }
    let later =
        hints(daemon, notes, &request("later", 33, 200, 1_024, json!({ "gang": "GANG_UP_TO", "policy": "container" })));
    for leases in [json!([999_999]), json!([])] {
        let release = json!({
            "application_id": "application_1_0033", "attempt": 1, "token": later["token"],
            "lease_ids": leases,
        });
        notes.ask(&daemon.grpc(), RELEASE, &release);
    }
    let mut events = Feed::open(daemon, "Events", notes);
    let finished = json!({
        "finished": { "host": "r0n0", "duration_ms": 10_000, "input_bytes": 1_048_576, "output_bytes": 1_024 },
    });
    events.take(json!({ "event": event(31, "g", "g-0", finished) }));
    events.take(json!({ "event": event(31, "", "", json!({ "done": {} })) }));
}

fn settled(status: &Value) -> u64 {
    let views = status["adherence"].as_array().into_iter().flatten();
    views.map(|view| view["decisions"].as_u64().unwrap_or(0)).sum()
}

pub(crate) fn what_can_not_be_had_is_refused(notes: &Notes) {
    let daemon = Daemon::start("[queues.etl]\nmode = \"on\"\n[queues.default]\nmode = \"on\"");
    let place = daemon.grpc();
    let good = |further: Value| request("r", 1, 1, 1_024, further);
    notes.refused("no heartbeats yet", &place, REQUEST, &good(json!({})));
    let _beats = cluster(&daemon, notes, (1, 2), 8_192);
    let group = |further: Value| {
        json!({
            "groups": [with(json!({ "name": "g", "count": 1, "resource": size(1_024, 1) }), further)],
        })
    };
    for (what, further) in [
        ("no request id", json!({ "request_id": "" })),
        ("not an application id", json!({ "application_id": "job_7" })),
        ("attempt 0", json!({ "attempt": 0 })),
        ("no groups and no asks", json!({ "groups": [] })),
        ("no containers", group(json!({ "count": 0 }))),
        ("no memory", group(json!({ "resource": size(0, 1) }))),
        ("an unknown policy", json!({ "policy": "spred" })),
        ("an unknown queue", json!({ "queue": "etk" })),
        ("an unknown label", group(json!({ "node_label_expression": "gpu" }))),
        ("an unknown host", json!({ "constraints": { "avoid_hosts": ["r9n9"] } })),
        ("an unknown rack", json!({ "constraints": { "avoid_racks": ["/rack9"] } })),
        ("larger than any node", group(json!({ "resource": size(16_384, 1) }))),
        ("a gang larger than the empty cluster", with(group(json!({ "count": 17 })), json!({ "gang": "GANG_ALL" }))),
        ("an edge to an unknown group", json!({ "edges": [{ "from": "g", "to": "x", "bytes": 1 }] })),
    ] {
        notes.refused(what, &place, REQUEST, &good(further));
    }
    let _data = dataset(&daemon, notes, "/in", &["r0n0"], 1_024);
    notes.refused("an unknown path", &place, REQUEST, &good(json!({ "input_paths": ["/im"] })));
    full(&daemon, notes);
    tokens_and_ids(&daemon, notes);
    commands(&daemon, notes);
    notes.farewell(&daemon);
}

fn full(daemon: &Daemon, notes: &Notes) {
    let place = daemon.grpc();
    hints(daemon, notes, &request("first", 1, 1, 1_024, json!({})));
    notes.refused("a used request id with another body", &place, REQUEST, &request("first", 1, 2, 1_024, json!({})));
    hints(daemon, notes, &request("all", 2, 15, 1_024, json!({})));
    let more = |id: &str, further: Value| request(id, 3, 1, 1_024, further);
    notes.refused(
        "a full cluster, when_full is fail",
        &place,
        REQUEST,
        &more("fail", json!({ "when_full": "WHEN_FULL_FAIL" })),
    );
    hints(daemon, notes, &more("advise", json!({})));
    let gang = request("gang", 4, 2, 1_024, json!({ "gang": "GANG_ALL" }));
    hints(daemon, notes, &gang);
    let file = daemon.files.json(
        "fail.json",
        &json!({
            "format": "hintd.request/1", "id": "hintctl", "when_full": "fail",
            "groups": [{ "name": "g", "count": 1, "size": { "memory_mb": 1024, "vcores": 1 } }],
        }),
    );
    notes.refused_command("a full cluster", daemon, &["request", "--file", &file]);
    notes.refused_command("an unknown policy", daemon, &["request", "--file", &file, "--policy", "spred"]);
    notes.refused_command("a full cluster", daemon, &["whatif", "request", "--file", &file]);
}

fn tokens_and_ids(daemon: &Daemon, notes: &Notes) {
    let place = daemon.grpc();
    let of = |id: &str, token: &str| json!({ "application_id": id, "attempt": 1, "token": token });
    notes.refused("a wrong token", &place, RELEASE, &of("application_1_0001", "guess"));
    notes.refused("not an application id", &place, RELEASE, &of("what", "guess"));
    for (what, start) in [("a wrong token", of("application_1_0001", "guess")), ("no start message", json!({}))] {
        let mut call = crate::grpc::Call::open(&place, "/hintd.v1.Placement/Follow").unwrap();
        let first = if start == json!({}) { json!({}) } else { json!({ "start": start }) };
        call.send(&first);
        notes.refusal(what, "/hintd.v1.Placement/Follow", call.end());
    }
    let held = request("held", 8, 1, 1_024, json!({ "nonce": "0123456789abcdef" }));
    let answer = hints(daemon, notes, &held);
    let decision = |shown: Value| with(json!({ "decision_id": answer["hints"]["decision_id"] }), shown);
    let done = |shown: Value| with(json!({ "application_id": "application_1_0008", "attempt": 1 }), shown);
    for (what, shown) in [
        ("nothing shown, of an attempt with a nonce", json!({})),
        ("another's nonce", json!({ "nonce": "fedcba9876543210" })),
        ("a nonce that can be guessed", json!({ "nonce": "0123" })),
    ] {
        notes.refused(what, &place, REQUEST, &request("stranger", 8, 1, 1_024, shown.clone()));
        notes.refused(what, &place, RELEASE, &done(shown.clone()));
        notes.refused(what, &place, EXPLAIN, &decision(shown));
    }
    notes.ask(&place, EXPLAIN, &decision(json!({ "token": answer["token"] })));
    let jump = request("jump", 8, 1, 1_024, json!({ "attempt": 4_294_967_295_u32 }));
    notes.refused("a number far above the last known attempt's", &place, REQUEST, &jump);
    let nobody = json!({ "application_id": "application_1_0099", "attempt": 1 });
    notes.refused("an unknown attempt", &daemon.admin(), "/hintd.v1.Admin/EndAttempt", &nobody);
    notes.refused("an unknown decision", &place, EXPLAIN, &json!({ "decision_id": "0000000000000000" }));
    notes.refused("not a decision id", &place, EXPLAIN, &json!({ "decision_id": "what" }));
    let admin = daemon.admin();
    let replay = |id: &str, policy: &str| json!({ "decision_id": id, "policy": policy });
    notes.refused("an unknown decision", &admin, "/hintd.v1.Admin/Replay", &replay("0000000000000000", ""));
    notes.refused("an unknown policy", &admin, "/hintd.v1.Admin/Replay", &replay("0000000000000000", "spred"));
    notes.refused("an unknown link", &admin, "/hintd.v1.Admin/Links", &json!({ "link": "l1" }));
    notes.refused("nothing to drain", &admin, "/hintd.v1.Admin/WhatIfNetwork", &json!({}));
    notes.refused("no network yet", &admin, "/hintd.v1.Admin/WhatIfNetwork", &json!({ "drain_switches": ["s"] }));
    notes.refused("no path", &place, "/hintd.v1.Placement/Replicas", &json!({ "path": "" }));
    notes.refused(
        "too many blocks",
        &place,
        "/hintd.v1.Placement/Replicas",
        &json!({ "path": "/x", "blocks": 20_000 }),
    );
}

fn commands(daemon: &Daemon, notes: &Notes) {
    notes.refused_command("an unknown decision", daemon, &["explain", "0000000000000000"]);
    let what = json!({ "decision_id": "what" });
    notes.refused("not a decision id", &daemon.admin(), "/hintd.v1.Admin/Explain", &what);
    notes.refused_command("another's attempt", daemon, &["release", "application_1_0008"]);
    notes.refused_command("an unknown attempt", daemon, &["end", "application_1_0099"]);
    notes.refused_command("an unknown decision", daemon, &["replay", "0000000000000000"]);
    notes.refused_command("an unknown link", daemon, &["links", "--link", "l1"]);
    notes.refused_command("an unknown switch", daemon, &["whatif", "network", "--drain-switch", "s"]);
    let _net = network(daemon, notes, (1, 2));
    notes.refused_command("an unknown host", daemon, &["watch", "--pair", "a:b"]);
    daemon.rewrite("[queues.etl]\nmode = \"of\"");
    notes.refused_command("a wrong file", daemon, &["reload"]);
}

/// Lists for operators, and the log level.
fn lists(daemon: &Daemon, notes: &Notes) {
    for (command, method) in
        [("decisions", "ListDecisions"), ("leases", "ListLeases"), ("applications", "ListApplications")]
    {
        notes.json(command, &daemon.args(&[command]));
        notes.ask(&daemon.admin(), &format!("/hintd.v1.Admin/{method}"), &json!({ "limit": 9 }));
    }
    let applications = notes.json("applications", &daemon.args(&["applications"]));
    let mut rows = applications["applications"].as_array().unwrap().iter();
    // Not one of which every request was refused.
    let application = rows.find(|row| row["refused"].is_null()).unwrap()["application_id"].clone();
    notes.json("explain APPLICATION", &daemon.args(&["explain", application.as_str().unwrap()]));
    notes.json("log-level", &daemon.args(&["log-level", "info"]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/LogLevel", &json!({ "set": "info" }));
    notes.refused("a wrong level", &daemon.admin(), "/hintd.v1.Admin/LogLevel", &json!({ "set": "loud" }));
    let wrong = json!({ "application_id": "job_1" });
    notes.refused("no application id", &daemon.admin(), "/hintd.v1.Admin/ListDecisions", &wrong);
}
