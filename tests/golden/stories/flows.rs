//! Routes of running flows, watchers and installers, what-if drains, chains of middleboxes, rebalancing, lost nodes.

use crate::grpc::Call;
use crate::notes::Notes;
use crate::programs::{Daemon, finish, hintctl, said, until};
use crate::world::{
    Feed, MUCH, cluster, container, event, follow, heartbeat, hints, leased, network, request, talk, with,
};
use serde_json::{Value, json};
use std::thread::JoinHandle;

const HOSTS: &[&str] = &["r0n0", "r0n1", "r1n0", "r1n1"];
const WATCH: &str = "/hintd.v1.Routes/Watch";
const UPDATE: &str = "hintd.v1.RouteUpdate";
const CHAINS: &str = "/hintd.v1.Admin/Chains";

/// Runs `hintctl --json watch` in the background until it has seen this many updates.
fn watching(daemon: &Daemon, further: &[&str], count: u32) -> JoinHandle<Vec<Value>> {
    let mut command = hintctl();
    command.args(["--json"]).args(daemon.args(&["watch"])).args(further).args(["--count", &count.to_string()]);
    std::thread::spawn(move || {
        let output = finish(&mut command);
        let (out, err) = said(&output);
        assert!(output.status.success(), "{err}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    })
}

fn watchers(daemon: &Daemon, count: usize) {
    daemon.until("they watch", |status| {
        status["watchers"].as_array().is_some_and(|watchers| {
            watchers.len() == count && watchers.iter().all(|watcher| watcher["sent"] == watcher["acknowledged"])
        })
    });
}

pub(crate) fn routes_are_watched_and_moved(notes: &Notes) {
    let daemon = Daemon::start("");
    let _beats = cluster(&daemon, notes, (2, 2), 32_768);
    let mut net = network(&daemon, notes, (2, 2));
    let installer = watching(&daemon, &["--flows", "--installs", "--acknowledge", "--name", "sdn"], 5);
    watchers(&daemon, 1);
    let answer = hints(&daemon, notes, &talk(1, HOSTS, ("r0n0", "r1n0"), json!({ "policy": "cross_layer" })));
    watchers(&daemon, 1);
    let route = answer["hints"]["routes"][0].clone();
    let link = route["links"][1].as_str().unwrap().to_owned();
    notes.json("links", &daemon.args(&["links", "--link", &link]));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Links", &json!({ "link": link }));
    notes.json("whatif network", &daemon.args(&["whatif", "network", "--drain-link", &link]));
    let both = ["whatif", "network", "--drain-switch", "c0", "--drain-switch", "c1"];
    notes.json("whatif network", &daemon.args(&both));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/WhatIfNetwork", &json!({ "drain_switches": ["c0", "c1"] }));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/WhatIfNetwork", &json!({ "drain_links": [link, "h00"] }));
    hints(&daemon, notes, &talk(3, HOSTS, ("r0n0", "r0n1"), json!({})));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/WhatIfNetwork", &json!({ "drain_links": [link] }));
    notes.refused(
        "an unknown switch",
        &daemon.admin(),
        "/hintd.v1.Admin/WhatIfNetwork",
        &json!({ "drain_switches": ["c"] }),
    );
    notes.refused_command("an unknown link", &daemon, &["whatif", "network", "--drain-link", "u"]);
    net.take(json!({ "link": { "id": link, "up": false } }));
    daemon.until("it is down", |status| status["links_down"] == json!(3));
    daemon.until("the route has moved", |status| status["counters"]["routes_failed_over"].as_u64() >= Some(1));
    watchers(&daemon, 1);
    notes.status(&daemon);
    ends(&daemon, notes, 1);
    let updates = installer.join().unwrap();
    notes.seen().json.add_all("watch", &updates);
    by_hand(&daemon, notes, &mut net);
    notes.farewell(&daemon);
}

/// Ends an application and with it its flows.
fn ends(daemon: &Daemon, notes: &Notes, app: u32) {
    Feed::open(daemon, "Events", notes).take(json!({ "event": event(app, "", "", json!({ "done": {} })) }));
}

/// Watching over gRPC: pairs, acknowledgements, refusals.
fn by_hand(daemon: &Daemon, notes: &Notes, net: &mut Feed<'_>) {
    let place = daemon.grpc();
    let acknowledge = "/hintd.v1.Routes/Acknowledge";
    let watch = |request: &Value| {
        let mut call = Call::open(&place, WATCH).unwrap();
        call.send(request);
        call.close();
        call
    };
    let refused = |what: &str, request: Value| notes.refusal(what, WATCH, watch(&request).end());
    refused("no name", json!({ "flows": true }));
    refused("nothing to watch", json!({ "watcher": "w" }));
    refused("an unknown host", json!({ "watcher": "w", "pairs": [{ "src": "r0n0", "dst": "nowhere" }] }));
    let installs = json!({ "watcher": "w", "flows": true, "installs": true });
    let mut first = watch(&installs);
    notes.until(&mut first, UPDATE, "a snapshot", |update| update["snapshot"] == json!(true));
    refused("a second installer", with(installs.clone(), json!({ "watcher": "other" })));
    notes.refused("an unknown watcher", &place, acknowledge, &json!({ "watcher": "x", "number": 1 }));
    notes.refused("a number not sent yet", &place, acknowledge, &json!({ "watcher": "w", "number": 9 }));
    notes.ask(&place, acknowledge, &json!({ "watcher": "w", "number": 1 }));
    notes.refused("a number already acknowledged", &place, acknowledge, &json!({ "watcher": "w", "number": 1 }));
    hints(daemon, notes, &talk(2, HOSTS, ("r0n0", "r1n0"), json!({})));
    let placed = notes.until(&mut first, UPDATE, "rules", |update| update.get("rules").is_some());
    let pair = placed["routes"][0]["pair"].clone();
    let refusal = json!({ "pair": pair, "reason": "no room in its table" });
    let taken = json!({ "watcher": "w", "number": placed["number"], "refused": [refusal] });
    notes.ask(&place, acknowledge, &taken);
    notes.until(&mut first, UPDATE, "it goes by default", |update| update.get("removed").is_some());
    daemon.until("who refused is told", |status| status["watchers"].to_string().contains("no room in its table"));
    notes.status(daemon);
    // The name of a watch with a nonce is its own.
    let mut held = watch(&json!({ "watcher": "held", "flows": true, "nonce": "0123456789abcdef" }));
    notes.until(&mut held, UPDATE, "a snapshot", |update| update["snapshot"] == json!(true));
    refused("another's name", json!({ "watcher": "held", "flows": true }));
    notes.refused("another's name", &place, acknowledge, &json!({ "watcher": "held", "number": 1 }));
    drop(held);
    // A later watch of the same name replaces this one.
    let mut second = watch(&json!({ "watcher": "w", "pairs": [{ "src": "r0n0", "dst": "r1n0" }], "flows": true }));
    notes.refusal("replaced by a later watch", WATCH, first.end());
    notes.until(&mut second, UPDATE, "a snapshot", |update| update["snapshot"] == json!(true));
    net.take(json!({ "switch": { "name": "c1", "up": false } }));
    net.take(json!({ "switch": { "name": "c0", "up": false } }));
    notes.until(&mut second, UPDATE, "the pair is cut", |update| {
        update["routes"].as_array().into_iter().flatten().any(|route| route.get("vertices").is_none())
    });
    notes.status(daemon);
    notes.json("whatif request", &daemon.args(&["whatif", "request", "--file", &cut(daemon)]));
    let cut = with(talk(4, HOSTS, ("r0n0", "r1n0"), json!({})), json!({ "policy": "cross_layer" }));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/WhatIf", &cut);
    ends(daemon, notes, 2);
}

/// A request whose tasks are on both sides of a cut.
fn cut(daemon: &Daemon) -> String {
    let group = |name: &str, avoid: Value| {
        json!({
            "name": name, "count": 1, "size": { "memory_mb": 1024, "vcores": 1 },
            "constraints": { "avoid_racks": avoid },
        })
    };
    daemon.files.json(
        "cut.json",
        &json!({
            "format": "hintd.request/1", "id": "cut",
            "groups": [group("from", json!(["/rack1"])), group("to", json!(["/rack0"]))],
            "edges": [{ "from": "from", "to": "to", "bytes": MUCH }], "policy": "cross_layer",
        }),
    )
}

const BOXES: &str = "boxes = [{ name = \"near\", type = \"FW\", at = \"e0\", bits_per_s = 1000000000 }, \
    { name = \"far\", type = \"FW\", at = \"e1\", bits_per_s = 1000000000 }, \
    { name = \"ips\", type = \"IPS\", at = \"c0\", bits_per_s = 1000000000 }]";
const INBOUND: &str = "chains = [{ name = \"inbound\", group = \"to\", direction = \"in\", sequence = [\"FW\"] }, \
    { name = \"lax\", priority = 7, application = \"application_1_0005\", \
    sequence = [\"IPS\"], when_broken = \"open\" }]";

pub(crate) fn chains_are_kept_broken_and_moved_for(notes: &Notes) {
    let rebalance = "[rebalance]\nenabled = true\nevery = \"100ms\"\nmin_gain = 0.2\ncool_down = \"1h\"";
    let daemon = Daemon::start(&format!("[chains]\n{BOXES}\n{INBOUND}\ngroups = [\"from\", \"to\"]\n{rebalance}"));
    let mut beats = cluster(&daemon, notes, (2, 2), 32_768);
    notes.refused(
        "a chain without a network",
        &daemon.grpc(),
        "/hintd.v1.Placement/RequestHints",
        &talk(9, HOSTS, ("r0n0", "r1n0"), json!({})),
    );
    notes.json("chains", &daemon.args(&["chains"]));
    let mut net = network(&daemon, notes, (2, 2));
    let updates = watching(&daemon, &["--flows"], 2);
    watchers_seen(&daemon);
    let mut asked = talk(1, &["r0n1", "r1n1"], ("r0n0", "r0n1"), json!({ "policy": "pat" }));
    for group in asked["groups"].as_array_mut().unwrap() {
        group.as_object_mut().unwrap().remove("constraints");
    }
    asked["constraints"] = json!({ "avoid_hosts": ["r1n1"] });
    let answer = hints(&daemon, notes, &asked);
    notes.seen().json.add_all("watch", &updates.join().unwrap());
    past_boxes(&daemon, notes, &mut net);
    notes.json("explain", &daemon.args(&["explain", answer["hints"]["decision_id"].as_str().unwrap()]));
    for (host, priority) in leased(&answer).iter().zip([1, 2]) {
        let of = (container(1, 1 + priority as u32), 1_024, priority);
        beats.take(heartbeat(host, 2, &[of]));
    }
    let mut told = follow(&daemon, 1, &answer, 0);
    net.take(json!({ "middlebox": { "name": "near", "up": false } }));
    notes.until(&mut told, "hintd.v1.FollowMessage", "a move", |message| message.get("move").is_some());
    net.take(json!({ "middlebox": { "name": "far", "up": false } }));
    notes.until(&mut told, "hintd.v1.FollowMessage", "it is broken", |message| message["cause"] == "chain_broken");
    until("it can't be met", || {
        let found = notes.ask(&daemon.admin(), CHAINS, &json!({}));
        (found.get("unmet").is_some() && found["chains"].to_string().contains("\"broken\"")).then_some(())
    });
    notes.json("chains", &daemon.args(&["chains"]));
    notes.all_json("chains check", &daemon.args(&["chains", "check"]));
    let status = notes.refused(
        "a chain that would be broken",
        &daemon.grpc(),
        "/hintd.v1.Placement/RequestHints",
        &talk(2, HOSTS, ("r0n0", "r1n0"), json!({})),
    );
    let id = &status.metadata["hintd-decision"];
    notes.json("explain, refused", &daemon.args(&["explain", id]));
    notes.ask(&daemon.grpc(), "/hintd.v1.Placement/Explain", &json!({ "decision_id": id }));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Replay", &json!({ "decision_id": id }));
    notes.ask(&daemon.admin(), "/hintd.v1.Admin/Nodes", &json!({}));
    net.take(json!({ "middlebox": { "name": "far", "up": true } }));
    notes.until(&mut told, "hintd.v1.FollowMessage", "it is whole", |message| message["cause"] == "chain_restored");
    net.refuse("chains declared by the configuration", json!({ "chains": {} }));
    notes.json("nodes", &daemon.args(&["nodes"]));
    notes.farewell(&daemon);
}

/// A chain that fails open: its flow bypasses a box that is down.
fn past_boxes(daemon: &Daemon, notes: &Notes, net: &mut Feed<'_>) {
    net.take(json!({ "middlebox": { "name": "ips", "up": false } }));
    until("the box is down", || {
        let found = notes.ask(&daemon.admin(), CHAINS, &json!({}));
        (found["boxes"][2]["state"] == "down").then_some(())
    });
    hints(daemon, notes, &talk(5, HOSTS, ("r0n0", "r1n0"), json!({})));
    let mut watch = Call::open(&daemon.grpc(), WATCH).unwrap();
    watch.send(&json!({ "watcher": "chains", "flows": true }));
    watch.close();
    notes.until(&mut watch, UPDATE, "a route under the chain", |update| update["routes"].to_string().contains("lax"));
    until("it is counted", || {
        let found = notes.ask(&daemon.admin(), CHAINS, &json!({}));
        found["chains"].to_string().contains("bypassing").then_some(())
    });
}

fn watchers_seen(daemon: &Daemon) {
    daemon.until("it watches", |status| status["watchers"].as_array().is_some_and(|watchers| !watchers.is_empty()));
}

pub(crate) fn leases_are_withdrawn_and_lost_tasks_placed_anew(notes: &Notes) {
    let few = "[limits]\nfollow_messages = 2";
    let daemon = Daemon::start(few);
    let mut beats = cluster(&daemon, notes, (1, 2), 8_192);
    let message = "hintd.v1.FollowMessage";
    let answer = hints(&daemon, notes, &request("r1", 1, 4, 2_048, json!({})));
    let hosts = leased(&answer);
    let mut told = follow(&daemon, 1, &answer, 0);
    let own = |host: &str| {
        let mine = (2..).zip(&hosts).filter(|(_, on)| *on == host);
        mine.map(|(sequence, _)| (container(1, sequence), 2_048, 1)).collect::<Vec<_>>()
    };
    for host in ["r0n0", "r0n1"] {
        beats.take(heartbeat(host, 2, &own(host)));
    }
    daemon.until("all run", |status| status.get("leases").is_none());
    // Only now are silent nodes declared lost, so that none is lost too early. r0n1 falls silent, r0n0 keeps reporting.
    daemon.reload(&format!("{few}\n[model]\nstale_after = \"2s\"\nlost_after = \"8s\""));
    let mut id = 2;
    let lost = loop {
        id += 1;
        beats.take(heartbeat("r0n0", id, &own("r0n0")));
        if let Some(next) = told.next_within(std::time::Duration::from_millis(50)) {
            break next.unwrap().unwrap();
        }
        assert!(id < 600, "nobody is lost");
    };
    notes.message(message, &lost);
    notes.status(&daemon);
    notes.json("nodes", &daemon.args(&["nodes"]));
    // Another application uses more and more of the leased capacity.
    for more in 1..5_u32 {
        id += 1;
        let mut here = own("r0n0");
        here.extend((0..more).map(|stranger| (container(99, stranger + 2), 1_024, 1)));
        beats.take(heartbeat("r0n0", id, &here));
    }
    notes.until(&mut told, message, "a withdrawal", |message| message.get("withdraw").is_some());
    let mut late = follow(&daemon, 1, &answer, 77);
    notes.until(&mut late, message, "a gap", |message| message.get("gap").is_some());
    beats.take(json!({ "gone": { "host": "r0n1" } }));
    notes.farewell(&daemon);
}
