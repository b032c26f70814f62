//! Plans of recurring jobs, from a trace to a running daemon.

use super::{Daemon, Files, assert_refused, document, hintctl, stderr, stdout, text_of};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_plan_is_made_checked_compared_drawn_and_followed() {
    let files = Files::new();
    let [trace, plan, other, chart] =
        ["jobs.tsv", "plan.json", "other.json", "plan.svg"].map(|name| text_of(&files.path(name)));
    assert!(hintctl(&["trace", "generate", "--jobs", "40", "-o", &trace]).status.success());
    let base = ["plan", "--trace", &trace, "--cluster", "jobpacker"];
    let made = document(&[&base[..], &["-o", &plan, "--gantt", &chart]].concat());
    assert_eq!((made["jobs"].as_u64(), made["racks"].as_u64()), (Some(40), Some(20)));
    assert!(std::fs::read_to_string(&chart).unwrap().starts_with("<svg"));
    document(&[&base[..], &["--policy", "corral", "--objective", "batch", "-o", &other]].concat());
    assert_eq!(document(&["plan", "check", &plan, "--cluster", "jobpacker"])["defects"], json!([]));
    assert_eq!(stdout(&hintctl(&["plan", "diff", &plan, &plan])).trim_end(), "no difference");
    assert!(stdout(&hintctl(&["plan", "diff", &plan, &other])).starts_with("policy: jobpacker -> corral\n"));
    let notes = document(&["plan", "check", &plan])["notes"].to_string();
    assert!(notes.contains("has passed") && notes.contains("start of a trace"), "{notes}");
    assert!(stdout(&hintctl(&["plan", "check", &plan])).contains("note: its horizon has passed"));
    assert_refused(
        &[&base[..], &["--param", "late_m=5", "-o", &plan]].concat(),
        &["late_m", "did you mean `late_ms`?"],
    );
    assert_refused(&[&base[..], &["--param", "late_ms", "-o", &plan]].concat(), &["not of the form KEY=VALUE"]);
    let smaller = hintctl(&["plan", "check", &plan, "--cluster", "nas-40"]);
    assert_eq!(smaller.status.code(), Some(2));
    assert!(stderr(&smaller).contains("plan.json: rack "), "{}", stderr(&smaller));
    assert_refused(&["plan"], &["--trace"]);
    assert_refused(&[&base[..], &["--policy", "fair", "-o", &plan]].concat(), &["fair", "does not plan"]);
    let policies = ["--policy", "jobpacker,corral,fair", "--plan", "online"];
    let runs = document(&[&["simulate"][..], &base[1..], &policies].concat());
    assert_eq!(runs["runs"].as_array().map_or(0, Vec::len), 3, "{runs}");
}

#[test]
fn a_plan_goes_from_a_trace_to_the_running_daemon_and_back() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    std::thread::sleep(Duration::from_millis(100)); // more than one publish
    let [cluster, trace, plan, old, fetched, chart] =
        ["now.json", "jobs.tsv", "plan.json", "old.json", "fetched.json", "plan.svg"]
            .map(|name| text_of(&files.path(name)));
    daemon.document(&["snapshot", "-o", &cluster]);
    assert!(hintctl(&["trace", "generate", "--jobs", "6", "-o", &trace]).status.success());
    let base = ["plan", "--trace", &trace, "--cluster", &cluster, "--horizon", "24h"];
    document(&[&base[..], &["-o", &old]].concat());
    daemon.refuses(&["plan", "submit", &trace, "--name", "p"], &["not a plan"]);
    let made = document(&[&base[..], &["--start", "now", "-o", &plan]].concat());
    assert!(made["jobs"].as_u64().unwrap() > 0, "{made}");
    assert_eq!(daemon.document(&["plan", "list"])["plans"], json!([]));
    let kept = daemon.document(&["plan", "submit", &plan, "--name", "monday"]);
    assert_eq!((&kept["state"], &kept["jobs"]), (&json!("kept"), &made["jobs"]), "{kept}");
    assert_eq!(document(&["plan", "check", &plan])["notes"], json!([]), "it has a real horizon");
    let default = daemon.document(&["replicas", "/in/today"]);
    assert_eq!(default["blocks"], json!([[{}, {}, {}]]), "HDFS's choice has neither rack nor host");
    assert_eq!(daemon.document(&["status"])["plan"], json!(null));
    assert_eq!(daemon.document(&["plan", "activate", "monday"])["state"], "active");
    let status = daemon.document(&["status"]);
    assert_eq!((&status["plan"]["name"], &status["plan"]["expired"]), (&json!("monday"), &json!(false)), "{status}");
    let said = |args: &[&str]| stdout(&hintctl(&[&["--admin-socket", &daemon.socket], args].concat()));
    assert!(said(&["status"]).contains("monday, in force for another "), "{}", said(&["status"]));
    let (list, left) = (said(&["plan", "list"]), status["plan"]["left_ms"].as_u64().unwrap());
    assert!(list.contains("left") && list.contains("86400 s") && left < 86_400_000, "{list}");
    let shown = daemon.document(&["plan", "show", "monday", "-o", &fetched, "--gantt", &chart]);
    assert_eq!(shown["state"], "active", "{shown}");
    assert_eq!(std::fs::read_to_string(&fetched).unwrap(), std::fs::read_to_string(&plan).unwrap());
    assert!(std::fs::read_to_string(&chart).unwrap().starts_with("<svg"));
    daemon.refuses(&["plan", "activate", "mondy"], &["\"mondy\" is unknown", "monday"]);
    let other = daemon.document(&["plan", "activate", "tuesday", "--replace", "--file", &fetched]);
    assert_eq!(other["state"], "active", "{other}");
    let read = serde_json::from_str::<Value>(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    let key = read["jobs"][0]["job"]["key"].as_str().unwrap();
    let replicas = daemon.document(&["replicas", "/in/today", "--key", key, "--blocks", "2"]);
    assert_eq!((&replicas["reason"], &replicas["plan"]), (&json!("planned"), &json!("tuesday")), "{replicas}");
    assert_eq!(replicas["blocks"].as_array().map_or(0, Vec::len), 2);
    assert_eq!(daemon.document(&["replicas", "/in/today"])["reason"], "not_planned");
    assert_eq!(daemon.document(&["plan", "rollback"]), json!({ "from": "tuesday", "to": "monday" }));
    assert_eq!(daemon.document(&["plan", "remove", "tuesday"])["removed"], "tuesday");
    assert_eq!(daemon.document(&["plan", "rollback", "--to-none"]), json!({ "from": "monday", "to": null }));
    let said = hintctl(&["--admin-socket", &daemon.socket, "plan", "submit", &old, "--name", "old"]);
    assert!(stderr(&said).contains("has passed"), "its times count from the trace's start: {}", stderr(&said));
}
