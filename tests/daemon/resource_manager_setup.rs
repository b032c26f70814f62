//! What a ResourceManager shows of its clock, its scheduler's delays and hintd's processor in it, and what the doctor makes of it.

use crate::hadoop_server::{Said, Server};
use crate::program::{Program, command, write_config_with};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// An answer whose server has this clock.
fn dated(status: &str, body: &Value, clock: SystemTime) -> Said {
    let (body, date) = (body.to_string(), httpdate::fmt_http_date(clock));
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nDate: {date}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    Said(head + &body, Duration::ZERO)
}

/// A ResourceManager in one of its lives.
#[derive(Clone)]
struct Manager {
    life: u32,
    /// Its clock less ours, s.
    ahead: i64,
    /// Beans, or a refusal.
    beans: Option<Value>,
    /// Properties, or a refusal.
    conf: Option<Value>,
}

impl Manager {
    fn says(self) -> impl Fn(&str) -> Said + Send + Sync + 'static {
        move |question| {
            let now = SystemTime::now();
            let span = Duration::from_secs(self.ahead.unsigned_abs());
            let clock = if self.ahead < 0 { now - span } else { now + span };
            let node = json!({
                "id": "n1:1", "nodeHostName": "n1", "rack": "/rack1", "state": "RUNNING", "usedMemoryMB": 0,
                "availMemoryMB": 8192, "usedVirtualCores": 0, "availableVirtualCores": 8,
            });
            let found = match question.split(['?', '&']).next().unwrap() {
                "/ws/v1/cluster/info" => Some(json!({ "clusterInfo": { "id": self.life, "haState": "ACTIVE" } })),
                "/ws/v1/cluster/nodes" => Some(json!({ "nodes": { "node": [node] } })),
                "/ws/v1/cluster/scheduler" => Some(json!({ "scheduler": { "schedulerInfo": {} } })),
                "/jmx" => self.beans.clone().map(|beans| json!({ "beans": beans })),
                "/conf" => self.conf.clone().map(|rows| json!({ "properties": rows })),
                _ => Some(json!({})),
            };
            match found {
                Some(found) => dated("200 OK", &found, clock),
                None => dated("403 Forbidden", &json!("admins only"), clock),
            }
        }
    }
}

fn property(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": value, "isFinal": false, "resource": "yarn-site.xml" })
}

/// The bean as Hadoop shows it.
fn bean(version: &str, mode: &str, delays: [i64; 2]) -> Value {
    json!({
        "name": "hintd:name=RmProcessor", "modelerType": "io.hintd.rm.Counters", "Version": version,
        "BreakerOpen": false, "Modes": [{ "key": "*", "value": mode }],
        "Delays": [
            { "key": "node_locality_delay", "value": delays[0] },
            { "key": "rack_locality_additional_delay", "value": delays[1] },
        ],
        "Counts": [{ "key": "asked", "value": 7 }, { "key": "answered", "value": 7 }],
    })
}

fn hintctl(folder: &Path, args: &[&str]) -> Value {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hintctl"));
    command.env_remove("COLUMNS");
    let output = command.arg("--admin-socket").arg(folder.join("admin.sock")).args(args).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The verdict and finding of a check.
fn check(report: &Value, name: &str) -> (String, String) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"));
    (check["verdict"].as_str().unwrap().to_owned(), check["finding"].as_str().unwrap().to_owned())
}

/// Each is of that verdict, and its finding has these words.
fn assert_found(folder: &Path, expected: [(&str, &str, &str); 3]) {
    let report = hintctl(folder, &["--json", "doctor"]);
    for (name, verdict, words) in expected {
        let found = check(&report, name);
        assert!(found.0 == verdict && found.1.contains(words), "{name}: {found:?}, not {verdict} with {words:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_whether_clock_delays_and_processor_let_hints_be_followed() {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let class = property("yarn.resourcemanager.scheduler.class", "x.y.CapacityScheduler");
    let sound =
        Manager { life: 1, ahead: 0, beans: Some(json!([bean(VERSION, "ON", [40, 20])])), conf: Some(json!([class])) };
    let server = Server::start(sound.clone().says()).await;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let urls = format!("urls = [\"{}\"]", server.address);
    let asks = [("resource_manager", urls.as_str()), ("resource_manager", "poll = \"100ms\"")];
    let port = write_config_with(at, &asks);
    let program = Program::bare(&mut command(at), at, port).await;
    let setup = |status: &hintd_client::wire::v1::StatusResponse| status.resource_manager_setup.clone();
    // Its configuration is read beside: both have come when its scheduler is known.
    let status =
        program.until("all is seen", |status| setup(status).is_some_and(|seen| !seen.scheduler.is_empty())).await;
    let seen = setup(&status).unwrap();
    assert_eq!(seen.delays_from, "processor");
    assert!(seen.clock_ahead_ms.unwrap().unsigned_abs() <= 1_000 + seen.clock_error_ms, "{seen:?}");
    assert_found(
        at,
        [
            ("clock", "ok", "is hintd's, as far as that shows"),
            ("delays", "ok", "node-locality-delay is 40, rack-locality-additional-delay is 20; hints need 1 or more"),
            ("processor", "ok", "mode on, 7 questions: 7 answered"),
        ],
    );
    let document = hintctl(at, &["--json", "status"]);
    assert_eq!(document["resource_manager_setup"]["processor"]["version"], VERSION, "{document}");
    let looked = |server: &Server| server.asked().iter().filter(|question| question.starts_with("/jmx")).count();
    assert_eq!(looked(&server), 1, "once a minute, and not with every poll");

    // It is started anew without the processor that it is told to load, with another clock and without a delay.
    let names = property("yarn.resourcemanager.application-master-service.processors", "io.hintd.rm.HintProcessor");
    let delay = property("yarn.scheduler.capacity.rack-locality-additional-delay", "-1");
    let conf = Some(json!([names, delay]));
    server.says(Manager { life: 2, ahead: -60, beans: Some(json!([])), conf }.says());
    program
        .until("it is looked at again", |status| {
            setup(status).is_some_and(|seen| seen.processor.is_none() && seen.processor_configured == Some(true))
        })
        .await;
    assert_found(
        at,
        [
            ("clock", "warning", " behind hintd's"),
            ("delays", "warning", "rack-locality-additional-delay is -1, where hints need 1 or more"),
            ("processor", "problem", "is told to load hintd's processor and does not have it"),
        ],
    );

    // It keeps both for admins: nodes come as ever, and nothing is guessed.
    server.says(Manager { life: 3, beans: None, conf: None, ..sound.clone() }.says());
    let status = program
        .until("it refuses", |status| {
            setup(status).is_some_and(|seen| !seen.processor_error.is_empty() && !seen.conf_error.is_empty())
        })
        .await;
    assert_eq!((status.nodes_usable, setup(&status).unwrap().delays_from.as_str()), (1, ""));
    assert_found(
        at,
        [
            ("clock", "ok", "is hintd's"), // a refusal has a date, too
            ("delays", "not_checked", "the answer is 403 Forbidden"),
            ("processor", "not_checked", "does not show hintd's processor"),
        ],
    );

    // One of another version, in shadow where hintd gives hints.
    let beans = Some(json!([bean("0.0.9", "SHADOW", [0, 20])]));
    server.says(Manager { life: 4, beans, ..sound }.says());
    program.until("the other one", |status| setup(status).is_some_and(|seen| seen.processor.is_some())).await;
    assert_found(
        at,
        [
            ("clock", "ok", "is hintd's"),
            ("delays", "warning", "node-locality-delay is 0"),
            ("processor", "warning", "version 0.0.9, mode shadow"),
        ],
    );
}
