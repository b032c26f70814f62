//! Bad feed items and exceeded limits: how items and calls are refused.

use crate::grpc::{Call, unary};
use crate::notes::Notes;
use crate::programs::{Daemon, until};
use crate::world::{Feed, cluster, container, graph, heartbeat, hints, network, register, request, talk, with};
use serde_json::{Value, json};
use std::time::Duration;

const REQUEST: &str = "/hintd.v1.Placement/RequestHints";

pub(crate) fn bad_items_are_named(notes: &Notes) {
    let daemon = Daemon::start("");
    let mut beats = cluster(&daemon, notes, (1, 2), 8_192);
    beats.refuse("a heartbeat of an unknown node", heartbeat("ghost", 1, &[]));
    beats.take(heartbeat("r0n0", 5, &[]));
    beats.refuse("a repeated heartbeat", heartbeat("r0n0", 5, &[]));
    beats.refuse("a late heartbeat", heartbeat("r0n0", 3, &[]));
    beats.refuse("no host", register("", "/rack0", 1_024));
    beats.refuse("not a rack", register("x", "rack", 1_024));
    let mut negative = register("x", "/rack0", 1_024);
    negative["register"]["total"]["memory"] = json!(-1);
    beats.refuse("negative memory", negative);
    beats.refuse("not a container id", heartbeat("r0n0", 6, &[("container_x".into(), 1_024, 1)]));
    beats.refuse("an empty item", json!({}));
    beats.refuse("a name too long", register(&"x".repeat(9_000), "/rack0", 1_024));
    beats.refuse("an unknown node leaves", json!({ "gone": { "host": "ghost" } }));
    bad_networks(&daemon, notes);
    bad_data(&daemon, notes);
    notes.status(&daemon);
    without_hello(&daemon, notes);
    no_messages(&daemon, notes);
    notes.farewell(&daemon);
}

fn bad_networks(daemon: &Daemon, notes: &Notes) {
    let mut feed = network(daemon, notes, (1, 2));
    let looped = json!({ "id": "loop", "a": "e0", "b": "e0", "bits_per_s": 1 });
    let mut bad = graph(1, 2);
    bad["links"].as_array_mut().unwrap().push(looped);
    feed.refuse("a loop", json!({ "full": bad }));
    feed.refuse("an unknown link", json!({ "link": { "id": "l7", "up": false } }));
    feed.refuse("an unknown switch", json!({ "switch": { "name": "s7", "up": false } }));
    feed.refuse("an unknown link to remove", json!({ "remove_link": "l7" }));
    feed.refuse("an unknown middlebox", json!({ "middlebox": { "name": "m", "up": false } }));
    let boxes = json!([{ "name": "m", "type": "FW", "at": "c0", "bits_per_s": 1_000_000_000 }]);
    let chain = |kind: &str| json!([{ "name": "c", "sequence": [kind] }]);
    feed.refuse("a chain without a box", json!({ "chains": { "boxes": boxes, "chains": chain("IPS") } }));
    feed.take(json!({ "chains": { "boxes": boxes, "chains": chain("FW") } }));
    feed.take(json!({ "middlebox": { "name": "m", "bits_per_s": 5 } }));
    until("the chain is in force", || {
        let found = notes.ask(&daemon.admin(), "/hintd.v1.Admin/Chains", &json!({}));
        (found["declared_by"] == "feed").then_some(())
    });
    feed.take(json!({ "link": { "id": "h00", "bits_per_s": 7 } }));
    feed.take(json!({ "remove_link": "u00" }));
}

fn bad_data(daemon: &Daemon, notes: &Notes) {
    let mut data = Feed::open(daemon, "Datasets", notes);
    data.refuse("no path", json!({ "put": { "path": "" } }));
    data.refuse("an unknown path to remove", json!({ "remove_path": "/none" }));
    let mut blocks = Feed::open(daemon, "BlockReports", notes);
    blocks.take(json!({ "full": { "datanode": "r0n0", "block_ids": [7, 8] } }));
    data.take(json!({ "put": { "path": "/a", "blocks": [{ "block_id": 7, "bytes": 1_024 }] } }));
    while blocks.ack().get("full_report_wanted").is_none() {}
    blocks.take(json!({ "full": { "datanode": "r0n0", "block_ids": [7, 8] } }));
    blocks.take(json!({ "incremental": { "datanode": "r0n0", "received": [9], "deleted": [7] } }));
    blocks.take(json!({ "incremental": { "datanode": "unheard-of", "received": [7] } }));
    data.take(json!({ "put": { "path": "/b", "blocks": [{ "block_id": 6, "bytes": 1_024, "hosts": ["stranger"] }] } }));
    blocks.refuse("no datanode", json!({ "full": { "datanode": "" } }));
    daemon.until("names that nobody claims", |status| status.get("unknown_names").is_some());
    let mut loads = Feed::open(daemon, "LinkStats", notes);
    loads.refuse("an unknown link", json!({ "load": { "id": "l7" } }));
    let mut latencies = Feed::open(daemon, "Latency", notes);
    latencies.refuse("no host", json!({ "sample": { "from_host": "", "to_host": "r0n0", "rtt_us": 1 } }));
    let mut events = Feed::open(daemon, "Events", notes);
    events.refuse("not an application id", json!({ "event": { "application_id": "job_7" } }));
    events.refuse("an empty item", json!({}));
}

/// A feed stream must start with a hello.
fn without_hello(daemon: &Daemon, notes: &Notes) {
    let mut call = Call::open(&daemon.grpc(), "/hintd.v1.Feed/Heartbeats").unwrap();
    let mut first = register("r0n0", "/rack0", 8_192);
    first["number"] = json!(1);
    call.send(&first);
    let ack = call.next().unwrap().unwrap();
    let reason = ack["refused"][0]["reason"].as_str().unwrap();
    notes.seen().refusals.insert(format!("Feed.Heartbeats: no hello: {reason}"));
}

/// Bytes that are no message, and headers that are too large.
fn no_messages(daemon: &Daemon, notes: &Notes) {
    for (method, bytes) in [(REQUEST, [0xFF_u8; 64]), ("/hintd.v1.Feed/Heartbeats", [0xFF; 64])] {
        let mut call = Call::open(&daemon.grpc(), method).unwrap();
        call.send_bytes(&bytes);
        call.close();
        notes.refusal("not a message", method, call.end());
    }
    let mut call = Call::open_with(&daemon.grpc(), REQUEST, &[("x-large", &"x".repeat(20_000))]).unwrap();
    call.send(&request("r", 1, 1, 1_024, json!({})));
    call.close();
    notes.refusal("headers too large", REQUEST, call.end());
}

const SMALL: &str = "
    [limits]
    message_bytes = 4096
    requests_per_s = 3
    watchers = 1
    watched_pairs = 1
    leases = 3
    containers_per_request = 20
    groups_per_request = 2
    asks_per_request = 2
    edges_per_request = 1
    paths_per_request = 1
    avoid_per_request = 1
    text_bytes = 64
    nodes = 3
    containers_per_node = 1
    names_per_node = 1
    replicas_per_block = 1
    datasets = 1
    blocks = 1
    links = 12
    paths_per_event = 1
    ";

pub(crate) fn limits_are_named(notes: &Notes) {
    let daemon = Daemon::start(SMALL);
    let mut beats = cluster(&daemon, notes, (1, 3), 8_192);
    beats.refuse("limits.nodes", register("more", "/rack0", 8_192));
    let two = [2, 3].map(|id| (container(1, id), 1_024, 1));
    beats.refuse("limits.containers_per_node", heartbeat("r0n0", 2, &two));
    let mut named = register("r0n0", "/rack0", 8_192);
    named["register"]["aliases"] = json!(["a", "b"]);
    beats.refuse("limits.names_per_node", named);
    let mut data = Feed::open(&daemon, "Datasets", notes);
    let put = |path: &str, block: u64, hosts: &[&str]| {
        json!({
            "put": { "path": path, "blocks": [{ "block_id": block, "bytes": 1, "hosts": hosts }] },
        })
    };
    data.refuse("limits.replicas_per_block", put("/a", 1, &["a", "b"]));
    data.take(put("/a", 1, &["a"]));
    data.refuse("limits.datasets", put("/b", 1, &["a"]));
    data.refuse(
        "limits.blocks",
        json!({ "put": { "path": "/a", "blocks": [{ "block_id": 1, "bytes": 1 }, { "block_id": 2, "bytes": 1 }] } }),
    );
    let mut net = Feed::open(&daemon, "Topology", notes);
    net.refuse("limits.links", json!({ "full": graph(3, 2) }));
    let mut events = Feed::open(&daemon, "Events", notes);
    let ready =
        json!({ "application_id": "application_1_0001", "attempt": 1, "ready": { "input_paths": ["/1", "/2"] } });
    events.refuse("limits.paths_per_event", json!({ "event": ready }));
    of_requests(&daemon, notes);
    of_calls(&daemon, notes);
    notes.farewell(&daemon);
}

fn of_requests(daemon: &Daemon, notes: &Notes) {
    let place = daemon.grpc();
    let group = request("r", 1, 1, 1_024, json!({}))["groups"][0].clone();
    let ask = json!({
        "priority": { "priority": 1 }, "resource_name": "*", "capability": { "memory": 1_024 },
        "num_containers": 1,
    });
    let edge = json!({ "from": "g", "to": "g", "bytes": 1 });
    for (what, further) in [
        ("limits.containers_per_request", json!({ "groups": [with(group.clone(), json!({ "count": 21 }))] })),
        ("limits.groups_per_request", json!({ "groups": [group, group, group] })),
        ("limits.asks_per_request", json!({ "asks": [ask, ask, ask] })),
        ("limits.edges_per_request", json!({ "edges": [edge, edge] })),
        ("limits.paths_per_request", json!({ "input_paths": ["/a", "/b"] })),
        ("limits.avoid_per_request", json!({ "constraints": { "avoid_hosts": ["r0n0", "r0n1"] } })),
        ("limits.text_bytes", json!({ "user": "x".repeat(65) })),
        ("limits.message_bytes", json!({ "user": "x".repeat(5_000) })),
    ] {
        notes.refused(what, &place, REQUEST, &request("r", 1, 1, 1_024, further));
    }
}

fn of_calls(daemon: &Daemon, notes: &Notes) {
    let place = daemon.grpc();
    hints(daemon, notes, &request("held", 2, 3, 1_024, json!({})));
    notes.refused("limits.leases", &place, REQUEST, &request("more", 3, 1, 1_024, json!({})));
    // The limit is per second, so a slow machine needs more attempts.
    let what_if = |id: u32| request(&format!("fast-{id}"), 4, 1, 1_024, json!({}));
    let mut refused = (0..10_000).filter_map(|id| unary(&place, REQUEST, &what_if(id)).err());
    let status = refused.find(|status| !status.message.contains("limits.leases")).expect("too many in a second");
    notes.refusal("limits.requests_per_s", REQUEST, status);
    let watch = |request: &Value| {
        let mut call = Call::open(&place, "/hintd.v1.Routes/Watch").unwrap();
        call.send(request);
        call.close();
        call
    };
    let pair = |src: &str, dst: &str| json!({ "src": src, "dst": dst });
    let two = json!({ "watcher": "a", "pairs": [pair("r0n0", "r0n1"), pair("r0n1", "r0n0")] });
    notes.refusal("limits.watched_pairs", "/hintd.v1.Routes/Watch", watch(&two).end());
    let mut first = watch(&json!({ "watcher": "a", "flows": true }));
    let began = std::time::Instant::now();
    while daemon.status().get("watchers").is_none() && began.elapsed() < Duration::from_secs(30) {
        let _ = first.next_within(Duration::from_millis(5));
    }
    notes.refusal("limits.watchers", "/hintd.v1.Routes/Watch", watch(&json!({ "watcher": "b", "flows": true })).end());
}

pub(crate) fn searches_are_cut_and_queues_are_full(notes: &Notes) {
    let endless = "[policies.cross_layer]\nrestarts = 1000000000\nsteps_max = 1000000000\nwork_max = 1000000000
        [placer]\nsteps = 1000000000\nbaseline = false\nthreads = 1\nqueue = 1\n[limits]\nstreams = 2";
    let daemon = Daemon::start(endless);
    let beats = cluster(&daemon, notes, (2, 2), 8_192);
    let net = network(&daemon, notes, (2, 2));
    let ask = |app: u32| {
        let hosts: &[&str] = &[];
        let asked = talk(app, hosts, ("", ""), json!({ "policy": "cross_layer", "deadline_ms": 3_000 }));
        let mut asked = asked;
        for group in asked["groups"].as_array_mut().unwrap() {
            group["count"] = json!(3);
        }
        asked["edges"][0]["bytes"] = json!(1_u64 << 40);
        asked
    };
    // Two streams are allowed and open; of five searches at once, some find the queue full.
    let mut third = Call::open(&daemon.grpc(), "/hintd.v1.Feed/Events").unwrap();
    third.send(&json!({ "hello": { "source": "x" } }));
    third.close();
    notes.refusal("limits.streams", "/hintd.v1.Feed/Events", third.end());
    let place = daemon.grpc();
    let asked = (1..=5).map(|app| {
        let (request, place) = (ask(app), place.clone());
        std::thread::spawn(move || unary(&place, REQUEST, &request))
    });
    let asked: Vec<_> = asked.collect();
    let refused: Vec<_> = asked.into_iter().filter_map(|asked| asked.join().unwrap().err()).collect();
    let busy = refused.iter().find(|status| status.message.contains("placer.queue")).expect("one found no place");
    notes.refusal("placer.queue", REQUEST, busy.clone());
    // A search may find an answer within the millisecond.
    let late = |app: u32| {
        let refused = unary(&place, REQUEST, &with(ask(app), json!({ "deadline_ms": 1 }))).err();
        refused.filter(|status| status.code == "DEADLINE_EXCEEDED")
    };
    let status = (9..2_000).find_map(late).expect("a millisecond is not enough for all of them");
    notes.refusal("deadline exceeded", REQUEST, status);
    drop((beats, net));
    notes.farewell(&daemon);
    seats_are_taken(notes);
}

/// A second connection is refused.
fn seats_are_taken(notes: &Notes) {
    let daemon = Daemon::start("[limits]\nconnections = 1");
    let mut first = Call::open(&daemon.grpc(), "/hintd.v1.Feed/Events").unwrap();
    first.send(&json!({ "number": 1, "hello": { "source": "first" } }));
    first.next().unwrap().expect("it is acknowledged");
    notes.refused("limits.connections", &daemon.grpc(), REQUEST, &request("r", 1, 1, 1_024, json!({})));
    notes.farewell(&daemon);
}
