//! Plans of recurring jobs, shuffles and circuits, dispatch, prediction from history.

use crate::grpc::Call;
use crate::notes::Notes;
use crate::programs::{Daemon, until};
use crate::world::{
    Feed, cluster, container, dataset, event, follow, heartbeat, hints, job, leased, network, now_us, size, with,
};
use serde_json::{Value, json};

const ADMIN: &str = "/hintd.v1.Admin";
const MESSAGE: &str = "hintd.v1.FollowMessage";
/// The elephant threshold, and what each map reads and writes. Large, so that no transfer ends during the story.
const ELEPHANT: u64 = 10_000_000_000;
const BLOCK: u64 = 8_000_000_000;

/// A plan with one heavy job that is due now: four maps in /rack0, two reduces in /rack2.
fn plan() -> Value {
    let now = now_us();
    let job = json!({ "key": "daily </logs/#", "run": 0 });
    let slice = |rack: &str, start: u64, tasks: u32| {
        json!({
            "rack": rack, "start": start, "end": start + 10_000_000, "tasks": tasks, "containers": tasks,
        })
    };
    let stage = |slice: &Value| json!({ "tasks": slice["tasks"], "task_time": 10_000_000, "slices": [slice] });
    let (maps, reduces) = (slice("/rack0", now, 4), slice("/rack2", now + 11_000_000, 2));
    let rack = |rack: &str, containers: u32, stage: &str| {
        json!({
            "rack": rack, "containers": containers, "sequence": [{ "job": job, "stage": stage }],
        })
    };
    json!({
        "format": "hintd.plan/1", "policy": "jobpacker", "objective": "online",
        "made": now, "from": now, "until": now + 86_400_000_000_u64,
        "assumptions": {
            "uplink": 1_000_000_000, "circuit": 1_000_000_000, "elephant": ELEPHANT, "over_provisioning": 0.0,
            "sub_batches": 1, "shuffle_term": "by_width", "seed": 1, "prediction_error": 0.1,
        },
        "racks": [rack("/rack0", 4, "map"), rack("/rack2", 2, "reduce")],
        "jobs": [{
            "job": job, "arrival": now, "heavy": true, "shuffle": 4 * BLOCK, "shuffle_time": 1_000_000,
            "start": now, "end": now + 21_000_000, "maps": stage(&maps), "reduces": stage(&reduces),
        }],
    })
}

fn submit(daemon: &Daemon, name: &str, text: &str) -> Result<Value, crate::grpc::Status> {
    let mut call = Call::open(&daemon.admin(), &format!("{ADMIN}/SubmitPlan")).unwrap();
    call.send(&json!({ "name": name, "json": text }));
    call.close();
    let answer = call.next()?;
    Ok(answer.expect("a view"))
}

pub(crate) fn plans_are_kept_followed_and_rolled_back(notes: &Notes) {
    let daemon = Daemon::start("");
    let faults = |what: &str, text: &str| {
        notes.refusal(what, &format!("{ADMIN}/SubmitPlan"), submit(&daemon, "p", text).unwrap_err());
    };
    faults("no heartbeats yet", &plan().to_string());
    let _beats = cluster(&daemon, notes, (3, 2), 16_384);
    let _net = network(&daemon, notes, (3, 2));
    notes.json("replicas", &daemon.args(&["replicas", "/logs/2026/11/22"]));
    faults("not JSON", "{ \"format\": ");
    faults("an unknown format", "{\"format\":\"hintd.plan/7\"}");
    faults("unknown racks", &plan().to_string().replace("/rack2", "/rack9"));
    faults("an expired horizon", &with(plan(), json!({ "from": 1, "until": 2 })).to_string());
    let file = daemon.files.json("plan.json", &plan());
    notes.json("plan submit", &daemon.args(&["plan", "submit", &file, "--name", "monday"]));
    notes.json("plan list", &daemon.args(&["plan", "list"]));
    notes.json("plan activate", &daemon.args(&["plan", "activate", "monday"]));
    by_wire(&daemon, notes);
    let (fetched, chart) = (daemon.files.path("fetched.json"), daemon.files.path("chart.svg"));
    notes.json("plan show", &daemon.args(&["plan", "show", "monday", "-o", &fetched, "--gantt", &chart]));
    let read: Value = serde_json::from_str(&std::fs::read_to_string(&fetched).unwrap()).unwrap();
    notes.seen().json.add("plan file", &read);
    let answer =
        hints(&daemon, notes, &job("r1", 1, "jobpacker", (4, 2), json!({ "recurring_job_key": "daily </logs/#" })));
    assert!(!leased(&answer).is_empty());
    notes.json("explain", &daemon.args(&["explain", answer["hints"]["decision_id"].as_str().unwrap()]));
    for (app, further) in [
        (2, json!({ "recurring_job_key": "weekly" })),
        (3, json!({})),
        (4, json!({ "recurring_job_key": "daily </logs/#" })),
    ] {
        hints(&daemon, notes, &job(&format!("r{app}"), app, "jobpacker", (1, 0), further));
    }
    notes.json("replicas", &daemon.args(&["replicas", "/logs/2026/11/22", "--blocks", "2"]));
    notes.ask(&daemon.grpc(), "/hintd.v1.Placement/Replicas", &json!({ "path": "/logs/2026/11/22" }));
    notes.ask(&daemon.grpc(), "/hintd.v1.Placement/Replicas", &json!({ "path": "/clicks" }));
    notes.refused(
        "an unknown key",
        &daemon.grpc(),
        "/hintd.v1.Placement/Replicas",
        &json!({ "path": "/x", "recurring_job_key": "dayly" }),
    );
    notes.status(&daemon);
    notes.json("plan list", &daemon.args(&["plan", "list"]));
    notes.ask(&daemon.admin(), &format!("{ADMIN}/ListPlans"), &json!({}));
    notes.json("plan activate", &daemon.args(&["plan", "activate", "tuesday", "--replace", "--file", &fetched]));
    commands(&daemon, notes);
    notes.json("plan list", &daemon.args(&["plan", "list"]));
    notes.ask(&daemon.admin(), &format!("{ADMIN}/ListPlans"), &json!({}));
    notes.json("plan rollback", &daemon.args(&["plan", "rollback"]));
    notes.json("plan remove", &daemon.args(&["plan", "remove", "tuesday"]));
    notes.json("plan rollback", &daemon.args(&["plan", "rollback", "--to-none"]));
    notes.ask(&daemon.admin(), &format!("{ADMIN}/ActivatePlan"), &json!({ "name": "monday" }));
    notes.ask(&daemon.admin(), &format!("{ADMIN}/RollBackPlan"), &json!({ "to_none": true }));
    notes.refused("no plan is in force", &daemon.admin(), &format!("{ADMIN}/RollBackPlan"), &json!({}));
    notes.farewell(&daemon);
}

fn by_wire(daemon: &Daemon, notes: &Notes) {
    let admin = daemon.admin();
    let method = |name: &str| format!("{ADMIN}/{name}");
    notes.ask(&admin, &method("ListPlans"), &json!({}));
    notes.message("hintd.v1.PlanView", &submit(daemon, "kept", &plan().to_string()).unwrap());
    notes.refused("another plan is in force", &admin, &method("ActivatePlan"), &json!({ "name": "kept" }));
    notes.refused("an unknown plan", &admin, &method("ActivatePlan"), &json!({ "name": "mondy" }));
    notes.refused("an unknown plan", &admin, &method("FetchPlan"), &json!({ "name": "mondy" }));
    notes.refused("the plan is in force", &admin, &method("RemovePlan"), &json!({ "name": "monday" }));
    notes.refused("a policy that does not plan", &admin, &method("MakePlan"), &json!({ "policy": "fair" }));
    notes.refused("an unknown policy", &admin, &method("MakePlan"), &json!({ "policy": "jobpaker" }));
    notes.refused("no run is expected", &admin, &method("MakePlan"), &json!({}));
    notes.refusal("an invalid name", &method("SubmitPlan"), submit(daemon, "a b", &plan().to_string()).unwrap_err());
    let other = plan().to_string().replace("daily", "weekly");
    notes.refusal("a name in use", &method("SubmitPlan"), submit(daemon, "monday", &other).unwrap_err());
    notes.ask(&admin, &method("RemovePlan"), &json!({ "name": "kept" }));
}

fn commands(daemon: &Daemon, notes: &Notes) {
    notes.refused_command("an unknown plan", daemon, &["plan", "activate", "mondy"]);
    notes.refused_command("the plan is in force", daemon, &["plan", "remove", "tuesday"]);
    notes.refused_command("no run is expected", daemon, &["plan", "--daemon", "-o", &daemon.files.path("none.json")]);
    let file = daemon.files.json("old.json", &with(plan(), json!({ "from": 1, "until": 2 })));
    notes.refused_command("an expired horizon", daemon, &["plan", "submit", &file, "--name", "old"]);
    notes.refused_command("an unknown key", daemon, &["replicas", "/x", "--key", "dayly"]);
}

fn begins(group: &str, number: u32, host: &str) -> Value {
    let of = container(1, number + if group == "map" { 2 } else { 100 });
    event(1, group, &format!("{group}-{number}"), json!({ "allocated": { "host": host, "container_id": of } }))
}

fn map_ends(number: u32) -> Value {
    let finished = json!({ "host": "r0n0", "duration_ms": 1_000, "input_bytes": BLOCK, "output_bytes": BLOCK });
    event(1, "map", &format!("map-{number}"), json!({ "finished": finished }))
}

/// A planned shuffle waits, starts, and gets a circuit; then a port fails.
pub(crate) fn shuffles_ride_circuits(notes: &Notes) {
    let daemon = Daemon::start("");
    notes.json("circuits", &daemon.args(&["circuits"]));
    let _beats = cluster(&daemon, notes, (3, 2), 16_384);
    let _net = network(&daemon, notes, (3, 2));
    let _data = dataset(&daemon, notes, "/in", &["r0n0"; 4], BLOCK);
    submit(&daemon, "p", &plan().to_string()).unwrap();
    notes.ask(&daemon.admin(), &format!("{ADMIN}/ActivatePlan"), &json!({ "name": "p" }));
    let place = daemon.grpc();
    let report = |further: Value| with(json!({ "watcher": "ocs" }), further);
    let method = "/hintd.v1.Routes/ReportCircuits";
    notes.refused("an unknown watcher", &place, method, &report(json!({})));
    let mut watch = Call::open(&place, "/hintd.v1.Routes/Watch").unwrap();
    watch.send(&json!({ "watcher": "ocs", "circuits": true }));
    watch.close();
    let update = "hintd.v1.RouteUpdate";
    notes.until(&mut watch, update, "a snapshot", |update| update["snapshot"] == json!(true));
    notes.refused("an unknown version", &place, method, &report(json!({ "version": 9 })));
    notes.refused(
        "an unknown port",
        &place,
        method,
        &report(json!({ "set": [{ "input": "port9", "output": "port0" }] })),
    );
    notes.ask(&place, method, &report(json!({})));
    let asked = json!({ "recurring_job_key": "daily </logs/#", "input_paths": ["/in"], "edges": [] });
    let answer = hints(&daemon, notes, &job("r1", 1, "jobpacker", (4, 2), asked));
    let mut told = follow(&daemon, 1, &answer, 0);
    let mut events: Vec<Value> = (0..4).map(|map| begins("map", map, "r0n0")).collect();
    events.extend((0..2).map(|reduce| begins("reduce", reduce, "r2n0")));
    events.push(map_ends(0));
    told.send(&json!({ "events": events }));
    notes.until(&mut told, MESSAGE, "a wait", |message| message.get("wait_shuffle").is_some());
    told.send(&json!({ "events": [map_ends(1)] }));
    notes.until(&mut told, MESSAGE, "a start", |message| message.get("start_shuffle").is_some());
    let lit = notes.until(&mut watch, update, "a circuit", |update| update["circuits"].get("circuits").is_some());
    let version = lit["circuits"]["version"].clone();
    let seen =
        crate::programs::run(&[&["--json"], &daemon.args(&["watch", "--circuits", "--count", "1"])[..]].concat());
    notes.seen().json.add("watch", &serde_json::from_slice(&seen.stdout).unwrap());
    let set = json!([{ "input": "port0", "output": "port2" }]);
    notes.ask(&place, method, &report(json!({ "version": version, "set": set })));
    notes.ask(&daemon.admin(), &format!("{ADMIN}/Circuits"), &json!({}));
    notes.json("circuits", &daemon.args(&["circuits"]));
    let failed = json!([{ "port": "port2", "state": "OPTICAL_PORT_STATE_FAILED", "reason": "no light" }]);
    notes.ask(&place, method, &report(json!({ "version": version, "ports": failed })));
    notes.until(&mut watch, update, "it goes by packets", |update| update["circuits"].get("unserved").is_some());
    notes.ask(&daemon.admin(), &format!("{ADMIN}/Circuits"), &json!({}));
    notes.json("circuits", &daemon.args(&["circuits"]));
    notes.farewell(&daemon);
}

/// Tasks wait for nodes near their data, and in the end too long.
pub(crate) fn tasks_are_dispatched(notes: &Notes) {
    let daemon = Daemon::start("[dispatch]\nmax_wait = \"1h\"");
    let mut beats = cluster(&daemon, notes, (2, 2), 2_048);
    let _data = dataset(&daemon, notes, "/in", &["r0n0"; 3], 1 << 20);
    let answer = hints(&daemon, notes, &job("r1", 1, "delay", (3, 0), json!({ "input_paths": ["/in"] })));
    let mut told = follow(&daemon, 1, &answer, 0);
    let run = |ids: &[u32]| ids.iter().map(|id| (container(1, *id), 1_024, 1)).collect::<Vec<_>>();
    beats.take(heartbeat("r0n0", 2, &run(&[2, 3])));
    beats.take(heartbeat("r1n0", 2, &[]));
    daemon.until("both run", |status| status.get("leases").is_none());
    notes.status(&daemon);
    beats.take(heartbeat("r0n0", 3, &run(&[3])));
    notes.until(&mut told, MESSAGE, "what waited is hinted", |message| message.get("hints").is_some());
    notes.farewell(&daemon);
    let daemon = Daemon::start("[dispatch]\nmax_wait = \"100ms\"");
    let _beats = cluster(&daemon, notes, (2, 2), 2_048);
    let _data = dataset(&daemon, notes, "/in", &["r0n0"; 3], 1 << 20);
    let answer = hints(&daemon, notes, &job("r1", 1, "delay", (3, 0), json!({ "input_paths": ["/in"] })));
    let mut told = follow(&daemon, 1, &answer, 0);
    notes.until(&mut told, MESSAGE, "it has waited too long", |message| message["cause"] == "max_wait");
    notes.farewell(&daemon);
}

/// The reason why a reduce waits changes: first its map, then a congested rack.
pub(crate) fn reasons_to_wait_are_told(notes: &Notes) {
    let daemon = Daemon::start("[dispatch]\nmax_wait = \"1h\"");
    let mut beats = cluster(&daemon, notes, (2, 2), 2_048);
    let _net = network(&daemon, notes, (2, 2));
    let _data = dataset(&daemon, notes, "/in", &["r0n0"], 1 << 30);
    let mut loads = Feed::open(&daemon, "LinkStats", notes);
    let mut load = |bits: u64| {
        for link in ["u00", "u01", "u10", "u11"] {
            loads.take(json!({ "load": { "id": link, "a_to_b_bits_per_s": bits } }));
        }
    };
    load(0);
    let answer = hints(&daemon, notes, &job("r1", 1, "nas", (1, 1), json!({ "input_paths": ["/in"] })));
    let mut told = follow(&daemon, 1, &answer, 0);
    let hint = &answer["hints"]["hints"][0];
    let (host, lease) = (hint["host"].as_str().unwrap(), &hint["lease_ids"][0]);
    load(900_000_000);
    let begun = json!({ "allocated": { "host": host, "container_id": container(1, 2), "lease_id": lease } });
    let ended =
        json!({ "finished": { "host": host, "duration_ms": 900, "input_bytes": 1 << 30, "output_bytes": 1 << 30 } });
    told.send(&json!({ "events": [event(1, "map", "m-0", begun), event(1, "map", "m-0", ended)] }));
    let mut id = 1;
    let reason = until("its reason changes", || {
        id += 1;
        for host in ["r0n0", "r1n0"] {
            beats.take(heartbeat(host, id, &[]));
        }
        told.next_within(std::time::Duration::from_millis(50))
    });
    notes.message(MESSAGE, &reason.unwrap().unwrap());
    notes.farewell(&daemon);
}

/// Finished runs are used to predict later ones.
pub(crate) fn history_is_planned_from(notes: &Notes) {
    let daemon = Daemon::start("");
    let _beats = cluster(&daemon, notes, (2, 1), 8_192);
    let _net = network(&daemon, notes, (2, 1));
    let mut events = Feed::open(&daemon, "Events", notes);
    for (app, key) in [(1, "daily"), (2, "daily"), (3, "daily"), (4, "rare")] {
        let asked = json!({
            "recurring_job_key": key, "follows": false, "policy": "",
            "groups": [{ "name": "map", "role": "map", "count": 3, "resource": size(1_024, 1) }],
        });
        hints(&daemon, notes, &job(&format!("r{app}"), app, "", (3, 0), asked));
        let finished = json!({
            "finished": { "host": "r0n0", "duration_ms": 10_000, "input_bytes": 1 << 20, "output_bytes": 1 << 10 },
        });
        let ready = json!({ "ready": { "input_bytes": 7 }, "recurring_job_key": key });
        for (group, what) in [("map", ready), ("map", finished), ("", json!({ "done": {} }))] {
            events.take(json!({ "event": event(app, group, "map-0", what) }));
        }
    }
    let file = daemon.files.path("next.json");
    let plan = ["plan", "--daemon", "--horizon", "24h", "--force", "-o", &file];
    until("the runs are known", || {
        let made = crate::programs::run(&daemon.args(&plan));
        made.status.success().then_some(())
    });
    notes.json("plan --daemon", &daemon.args(&plan));
    let mut call = Call::open(&daemon.admin(), &format!("{ADMIN}/MakePlan")).unwrap();
    call.send(&json!({ "policy": "corral" }));
    call.close();
    notes.until(&mut call, "hintd.v1.PlanChunk", "a forecast", |chunk| chunk.get("forecast").is_some());
    let again = json!({ "recurring_job_key": "daily", "follows": false });
    let answer = hints(&daemon, notes, &job("again", 9, "container", (3, 0), again));
    notes.json("explain", &daemon.args(&["explain", answer["hints"]["decision_id"].as_str().unwrap()]));
    notes.farewell(&daemon);
}
