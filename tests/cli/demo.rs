//! `hintctl demo`: it ends, and what it tells.

use super::document;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_demo_under_a_dispatch_policy_ends_and_its_tasks_were_launched_at_heartbeats() {
    let told = document(&["demo", "--jobs", "8", "--seconds", "3", "--policy", "delay", "--worth-jobs", "0"]);
    assert_eq!(told["ok"], true, "{}", told["problems"]);
    let summary = &told["summary"];
    assert_eq!((&summary["jobs_ended"], &summary["tasks_ended"]), (&json!(8), &summary["tasks"]));
    assert!(summary["hints_dispatched"].as_u64().unwrap() > 0, "{summary}");
}

#[test]
fn the_demo_runs_ends_and_tells_what_it_did() {
    let told = document(&["demo", "--jobs", "10", "--seconds", "4", "--worth-jobs", "12"]);
    let worth = &told["worth"];
    assert_eq!((&worth["jobs"], &worth["seeds"]), (&json!(12), &json!(3)), "{worth}");
    let names: Vec<_> = worth["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let free = &worth["rows"][4];
    assert!(free["mean_s"].as_f64().unwrap() <= worth["alone_mean_s"].as_f64().unwrap(), "{worth}");
    assert_eq!(told["ok"], true, "{}", told["problems"]);
    let jobs = told["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 10);
    // A busy machine may let an answer be late, which is said; the job went on without hints.
    let is_late = |job: &&Value| job["unhinted"].as_str().is_some_and(|why| why.contains("no answer came in time"));
    let late = jobs.iter().filter(is_late).count();
    assert!(late <= 3, "{told}");
    for job in jobs.iter().filter(|job| !is_late(job)) {
        assert!(job["cost"]["objective"].is_number() && job["baseline"]["objective"].is_number(), "{job}");
        assert!(job["hints"]["map"].is_object(), "{job}");
    }
    assert!(jobs.iter().all(|job| job["took_s"].is_number()), "{told}");
    let summary = &told["summary"];
    assert_eq!(summary["jobs_ended"], 10);
    assert_eq!(summary["tasks_ended"], summary["tasks"]);
    assert!(summary["hints_issued"].as_u64().unwrap() >= 10 - late as u64);
    // By the daemon's own reckoning, from heartbeats and events.
    let adherence = &summary["adherence"][0];
    assert!(adherence["decisions"].as_u64().unwrap() >= 5 && adherence["on_host"].as_u64().unwrap() > 0, "{adherence}");
    for key in ["request_p50_ms", "request_p99_ms", "snapshot_version", "terms", "leases_withdrawn", "leases_expired"] {
        assert!(!summary[key].is_null(), "{key}: {summary}");
    }
    assert_eq!(told["nodes_killed"].as_array().unwrap().len(), 1);
    let flows = told["flow_reroutes"].as_array().unwrap();
    assert!(told["flow_updates"].as_u64().unwrap() > 0 && !flows.is_empty(), "{told}");
    assert_eq!((&flows[0]["cause"], &flows[0]["phase"]), (&json!("link_down"), &json!("failover")));
    assert!(flows[0]["moved"].as_u64().unwrap() > 0 && flows[0]["took_ms"].is_number(), "{flows:?}");
    let reroute = &told["reroutes"][0];
    assert_eq!(reroute["changed"].as_u64().unwrap() + reroute["untouched"].as_u64().unwrap(), 400, "{reroute}");
    assert!(reroute["changed"].as_u64().unwrap() > 0, "{reroute}");
}

#[test]
fn a_kept_demo_goes_on_with_its_daemon_and_jobs_until_it_is_interrupted() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_hintctl"));
    demo.args(["--json", "demo", "--jobs", "3", "--seconds", "2", "--keep"]).env_remove("COLUMNS");
    let mut demo = demo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(demo.stderr.take().unwrap()).lines().map(Result::unwrap);
    let reach = told.find(|line| line.ends_with(" status")).expect("it says how to reach the daemon");
    let socket = reach.split(' ').rev().nth(1).unwrap().to_owned();
    let status = || -> Value {
        let mut hintctl = Command::new(env!("CARGO_BIN_EXE_hintctl"));
        let output = hintctl.args(["--admin-socket", &socket, "--json", "status"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let issued = |status: &Value| status["counters"]["hints_issued"].as_u64().unwrap_or(0);
    let first = issued(&status());
    // All of its nodes are back, and jobs go on asking.
    let began = std::time::Instant::now();
    loop {
        let now = status();
        if now["nodes_usable"] == json!(40) && issued(&now) > first {
            break;
        }
        assert!(began.elapsed().as_secs() < 120, "{now}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    let ended = demo.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!((ended.status.code(), &document["ok"]), (Some(0), &json!(true)), "{ended:?}");
}
