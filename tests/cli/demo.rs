//! `hintctl demo`: it ends, and what it tells.

use super::document;
use serde_json::json;

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
    for job in jobs {
        assert!(job["cost"]["objective"].is_number() && job["baseline"]["objective"].is_number(), "{job}");
        assert!(job["hints"]["map"].is_object() && job["took_s"].is_number(), "{job}");
    }
    let summary = &told["summary"];
    assert_eq!(summary["jobs_ended"], 10);
    assert_eq!(summary["tasks_ended"], summary["tasks"]);
    assert!(summary["hints_issued"].as_u64().unwrap() >= 10);
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
