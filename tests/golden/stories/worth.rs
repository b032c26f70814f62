//! A daemon that holds applications out, and a ResourceManager that says how long all of them took.

use super::servers::{Script, Server};
use crate::notes::Notes;
use crate::programs::Daemon;
use crate::world::{hints, request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Applications: after how many milliseconds each ended; `None`: it runs.
type Applications = Arc<Mutex<BTreeMap<u32, Option<u64>>>>;

const EXPLAIN: &str = "/hintd.v1.Admin/Explain";
const LIST: &str = "/hintd.v1.Admin/ListHoldout";
const ALLOW: &str = "/hintd.v1.Admin/AllowKey";

fn manager(applications: &Applications) -> Script {
    let applications = Arc::clone(applications);
    Arc::new(move |_, path, _| {
        let node = |host: &str| {
            json!({
                "id": format!("{host}:8041"), "nodeHostName": host, "rack": "/rack0", "state": "RUNNING",
                "usedMemoryMB": 0, "availMemoryMB": 819_200, "usedVirtualCores": 0, "availableVirtualCores": 800,
            })
        };
        let app = |number: u32, took: Option<u64>| {
            let (state, status) = if took.is_some() { ("FINISHED", "SUCCEEDED") } else { ("RUNNING", "UNDEFINED") };
            let logs = format!("http://r0n0:8042/node/containerlogs/container_1_{number:04}_01_000001/u");
            json!({
                "id": format!("application_1_{number:04}"), "state": state, "finalStatus": status,
                "startedTime": 1_000, "finishedTime": took.map_or(0, |took| 1_000 + took), "amContainerLogs": logs,
            })
        };
        let known = applications.lock().unwrap().clone();
        let found = match path.split(['?', '&']).next().unwrap() {
            "/ws/v1/cluster/info" => json!({ "clusterInfo": { "id": 1, "haState": "ACTIVE" } }),
            "/ws/v1/cluster/nodes" => json!({ "nodes": { "node": [node("r0n0"), node("r0n1")] } }),
            "/conf" => json!({ "properties": [] }),
            "/ws/v1/cluster/scheduler" => json!({ "scheduler": { "schedulerInfo": { "type": "capacityScheduler" } } }),
            "/ws/v1/cluster/apps" => {
                let live = known.iter().filter(|(_, took)| took.is_none());
                let rows: Vec<Value> = live.map(|(number, _)| app(*number, None)).collect();
                json!({ "apps": { "app": rows } })
            }
            path if path.ends_with("/containers") => Value::Null,
            path => match path.rsplit('_').next().and_then(|number| number.parse().ok()) {
                Some(number) if known.contains_key(&number) => json!({ "app": app(number, known[&number]) }),
                _ => return (404, json!({ "RemoteException": { "exception": "NotFoundException" } }).to_string()),
            },
        };
        (200, found.to_string())
    })
}

pub(crate) fn applications_are_held_out(notes: &Notes) {
    let known: Applications = Arc::new(Mutex::new((1..=60).map(|number| (number, None)).collect()));
    let server = Server::start(manager(&known), vec![]);
    let daemon = Daemon::start(&format!(
        "[resource_manager]\nurls = [\"{}\"]\npoll = \"100ms\"\napplications = \"100ms\"
        [worth]\nholdout = 0.5\nruns = 4\n[placer]\nguard = false\n[queues.\"*\"]\nhold = true",
        server.url
    ));
    daemon.until("both nodes", |status| status["nodes_usable"] == json!(2));
    let keyed = json!({ "recurring_job_key": "etl" });
    let (mut held_out, mut ended) = (None, BTreeMap::new());
    for number in 1..=60 {
        let answer = hints(&daemon, notes, &request(&format!("r{number}"), number, 1, 1_024, keyed.clone()));
        let decision = answer["hints"]["decision_id"].as_str().unwrap();
        let held = answer["hints"]["withheld"]["reason"] == json!("holdout");
        if held && held_out.is_none() {
            notes.ask(&daemon.admin(), EXPLAIN, &json!({ "decision_id": decision }));
            notes.json("explain, held out", &daemon.args(&["explain", decision]));
            let wish = json!({
                "application_id": format!("application_1_{number:04}"), "attempt": 1, "receivers": 1,
                "token": answer["token"],
            });
            notes.ask(&daemon.grpc(), "/hintd.v1.Placement/ShuffleTurn", &wish);
            held_out = Some(number);
        }
        let took = if held { 10_000 } else { 40_000 };
        ended.insert(number, Some(took + u64::from(number)));
    }
    notes.journal(&daemon);
    *known.lock().unwrap() = ended;
    daemon.until("all have ended", |status| status.get("completions_awaited").is_none_or(|left| *left == json!(0)));
    notes.ask(&daemon.admin(), LIST, &json!({}));
    notes.json("holdout list", &daemon.args(&["holdout", "list", "--stopped"]));
    known.lock().unwrap().insert(61, None);
    hints(&daemon, notes, &request("r61", 61, 1, 1_024, keyed));
    notes.farewell(&daemon);
    notes.json("holdout allow", &daemon.args(&["holdout", "allow", "etl"]));
    notes.refused("an unknown key", &daemon.admin(), ALLOW, &json!({ "key": "etl" }));
    notes.refused_command("an unknown key", &daemon, &["holdout", "allow", "etl"]);
}
