//! Plans of recurring jobs, from a trace to a running daemon.

use super::{Daemon, Files, assert_refused, document, hintctl, stderr, stdout, text_of};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn a_plan_is_made_checked_compared_drawn_and_followed() {
    let files = Files::new();
    let [trace, plan, other, chart] =
        ["jobs.tsv", "plan.json", "other.json", "plan.svg"].map(|name| text_of(&files.path(name)));
    assert!(hintctl(&["trace", "generate", "--jobs", "40", "-o", &trace]).status.success());
    let base = ["plan", "--trace", &trace, "--cluster", "jobpacker"];
    let made = document(&[&base[..], &["-o", &plan, "--gantt", &chart]].concat());
    assert_eq!((made["jobs"].as_u64(), made["racks"].as_u64()), (Some(40), Some(20)));
    let drawn = std::fs::read_to_string(&chart).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("from the plan's beginning</title>"), "{drawn}");
    document(&[&base[..], &["--policy", "corral", "--objective", "batch", "-o", &other]].concat());
    assert_eq!(document(&["plan", "check", &plan, "--cluster", "jobpacker"])["defects"], json!([]));
    assert_eq!(stdout(&hintctl(&["plan", "diff", &plan, &plan])).trim_end(), "no difference");
    assert!(stdout(&hintctl(&["plan", "diff", &plan, &other])).starts_with("policy: jobpacker -> corral\n"));
    let notes = document(&["plan", "check", &plan])["notes"].to_string();
    assert!(notes.contains("has passed") && notes.contains("start of a trace"), "{notes}");
    assert!(stdout(&hintctl(&["plan", "check", &plan])).contains("note: its horizon has passed"));
    assert_refused(
        &[&base[..], &["--param", "late_m=5", "--force", "-o", &plan]].concat(),
        &["late_m", "did you mean `late_ms`?"],
    );
    assert_refused(
        &[&base[..], &["--param", "late_ms", "--force", "-o", &plan]].concat(),
        &["not of the form KEY=VALUE"],
    );
    let smaller = hintctl(&["plan", "check", &plan, "--cluster", "nas-40"]);
    assert_eq!(smaller.status.code(), Some(2));
    assert!(stderr(&smaller).contains("plan.json: rack "), "{}", stderr(&smaller));
    assert_refused(&["plan"], &["--trace"]);
    let text = std::fs::read_to_string(&plan).unwrap();
    for (from, to, said) in [
        ("\"policy\": \"jobpacker\"", "\"policy\": \"jobpaker\"", "policy is \"jobpaker\", which is none that plans"),
        ("\"until\": ", "\"until\": 9223372", "days after from: plans are of at most 366"),
        ("\"key\": \"", "\"key\": \"\\u001b[2J", "holds a control character"),
    ] {
        std::fs::write(&other, text.replacen(from, to, 1)).unwrap();
        let checked = hintctl(&["plan", "check", &other]);
        assert_eq!(checked.status.code(), Some(2), "{said}");
        assert!(stderr(&checked).contains(said), "{}", stderr(&checked));
        assert!(!stderr(&hintctl(&["plan", "diff", &plan, &other])).contains('\u{1b}'));
    }
    assert_refused(&[&base[..], &["--policy", "fair", "--force", "-o", &plan]].concat(), &["fair", "does not plan"]);
    let policies = ["--policy", "jobpacker,corral,fair", "--plan", "online"];
    let runs = document(&[&["simulate"][..], &base[1..], &policies].concat());
    assert_eq!(runs["runs"].as_array().map_or(0, Vec::len), 3, "{runs}");
}

/// Two weeks of a job at two o'clock, and of one that came once, as JSON lines; from Monday 2026-11-02 on.
fn two_weeks() -> (u64, String) {
    const DAY: u64 = 86_400;
    let monday = 1_793_577_600;
    let line = |name: String, at: u64, gib: u64| {
        let bytes = gib << 30;
        let job = json!({ "name": name, "submit_s": at, "input_bytes": bytes, "shuffle_bytes": bytes, "output_bytes": 1,
            "input_path": format!("/logs/{at}") });
        format!("{job}\n")
    };
    let nightly =
        (0..14).map(|day| line(format!("etl-{}", 20_261_102 + day), monday + day * DAY + 7_200, 40 + day % 2));
    let mut lines: Vec<String> = nightly.collect();
    lines.push(line("once".to_owned(), monday + 13 * DAY + 9_000, 1));
    (monday + 14 * DAY, lines.concat())
}

#[test]
fn tomorrow_is_planned_from_a_history_and_it_is_said_how_well_that_can_be_told() {
    let files = Files::new();
    let [history, plan, chart] = ["weeks.jsonl", "plan.json", "plan.svg"].map(|name| text_of(&files.path(name)));
    let (midnight, lines) = two_weeks();
    std::fs::write(&history, lines).unwrap();
    let start = midnight.to_string();
    let base = ["plan", "--history", &history, "--cluster", "jobpacker", "--force", "-o", &plan];
    let made = document(&[&base[..], &["--start", &start, "--horizon", "24h"]].concat());
    let jobs: Vec<(&str, &str)> = made["recurring_jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["key"].as_str().unwrap(), job["counts_as"].as_str().unwrap()))
        .collect();
    assert_eq!(
        (made["jobs"].as_u64(), jobs),
        (Some(1), vec![("etl-# </logs/#", "recurring"), ("once </logs/#", "too_few")])
    );
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    assert_eq!(written["jobs"][0]["arrival"].as_u64(), Some((midnight + 7_200) * 1_000_000));
    let error = written["assumptions"]["prediction_error"].as_f64().unwrap();
    assert!(error > 0.0 && error < 0.05, "40 and 41 GiB in turn, and tasks' times as they are drawn: {error}");
    let drawn = ["--start", &start, "--utc-offset", "+01:00", "--gantt", &chart];
    let text = stdout(&hintctl(&[&base[..], &drawn].concat()));
    let drawn = std::fs::read_to_string(&chart).unwrap();
    let (axis, tip) = ("time from 2026-11-16 on, UTC+01:00", "<title>etl-# &lt;/logs/#, run 0, heavy\nmaps in /rack-");
    assert!(drawn.contains(axis) && drawn.contains(tip) && drawn.contains("\n2026-11-16 03:0"), "{drawn}");
    assert!(text.contains("etl-# </logs/#") && text.contains("too_few"), "{text}");
    assert_refused(&[&base[..], &["--keys", "names"]].concat(), &["no run is expected", "0 recur", "weeks.jsonl"]);
    let far = [&base[..], &["--start", &start, "--horizon", "1h"]].concat();
    assert_refused(&far, &["no run is expected", "1 recur"]);
    assert_refused(&[&base[..], &["--utc-offset", "2"]].concat(), &["+01:00"]);
    let later = (midnight + 400 * 86_400).to_string();
    assert_refused(&[&base[..], &["--start", &later]].concat(), &["no run is expected", "--began"]);
    assert_refused(&[&base[..], &["--trace", &history]].concat(), &["--trace", "cannot be used with"]);
    assert_refused(&["plan", "--history", &history, "--force", "-o", &plan], &["--cluster"]);
    let other = ["plan", "--trace", &history, "--cluster", "jobpacker", "--force", "-o", &plan, "--keys", "names"];
    assert_refused(&other, &["--keys", "cannot be used with"]);
}

/// A job with a path, as a trace.
const ADS: &str = r#"{"name":"ads","submit_s":60,"input_bytes":1000000,"shuffle_bytes":1000,"output_bytes":1,"input_path":"/bids/2026"}
"#;

#[test]
fn a_plan_for_later_is_made_now_and_what_is_mistyped_is_said() {
    let files = Files::new();
    let [trace, plan] = ["jobs.jsonl", "plan.json"].map(|name| text_of(&files.path(name)));
    std::fs::write(&trace, ADS).unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let base = ["plan", "--trace", &trace, "--cluster", "jobpacker", "--force", "-o", &plan];
    let tomorrow = (now() + 86_400).to_string();
    document(&[&base[..], &["--start", &tomorrow, "--horizon", "24h"]].concat());
    let made: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    assert!(
        made["made"].as_u64().unwrap() / 1_000_000 <= now()
            && made["from"].as_u64().unwrap() > made["made"].as_u64().unwrap()
    );
    assert_eq!(document(&["plan", "check", &plan])["notes"], json!([]), "it could be put in force");
    let milliseconds = format!("{tomorrow}000");
    assert_refused(&[&base[..], &["--start", &milliseconds]].concat(), &["--start", "beyond the year 9999"]);
    for charted in [&base[..], &["plan", "check", &plan]] {
        assert_refused(&[charted, &["--gantt", &plan]].concat(), &["--gantt", "the plan itself is written there"]);
    }
    assert!(std::fs::read_to_string(&plan).unwrap().starts_with('{'), "it is still there");
    assert_refused(&[&base[..], &["--horizon", "1s"]].concat(), &["no job is submitted within the horizon"]);
}

/// As `hintctl snapshot` saves it of a plain Hadoop's daemon.
#[test]
fn a_cluster_that_nobody_told_a_network_of_is_planned_by_its_racks_uplinks() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    let [cluster, trace, plan] = ["now.json", "jobs.jsonl", "plan.json"].map(|name| text_of(&files.path(name)));
    std::fs::write(&trace, ADS).unwrap();
    daemon.document(&["snapshot", "-o", &cluster]);
    let mut bare: Value = serde_json::from_str(&std::fs::read_to_string(&cluster).unwrap()).unwrap();
    bare.as_object_mut().unwrap().remove("network").expect("this one has one");
    std::fs::write(&cluster, bare.to_string()).unwrap();
    let base = ["plan", "--trace", &trace, "--cluster", &cluster, "--force", "-o", &plan];
    assert_refused(&base, &["no network joins its racks", "--uplink-bits-per-s"]);
    assert_refused(&[&base[..], &["--uplink-bits-per-s", "10"]].concat(), &["10 is not in 1000000.."]);
    let made = document(&[&base[..], &["--uplink-bits-per-s", "10000000000"]].concat());
    assert_eq!((&made["jobs"], &made["defects"]), (&json!(1), &json!([])), "{made}");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    assert_eq!(written["assumptions"]["uplink"], 10_000_000_000_u64, "{}", written["assumptions"]);
    assert_eq!(document(&["plan", "check", &plan, "--cluster", &cluster])["defects"], json!([]));
    let simulate = ["simulate", "--trace", &trace, "--cluster", &cluster, "--policy", "fair"];
    assert_refused(&simulate, &["network: is left out"]);
}

#[test]
fn a_plan_goes_from_a_trace_to_the_running_daemon_and_back() {
    let files = Files::new();
    let daemon = Daemon::start(&files);
    let [cluster, trace, plan, old, fetched, chart] =
        ["now.json", "jobs.tsv", "plan.json", "old.json", "fetched.json", "plan.svg"]
            .map(|name| text_of(&files.path(name)));
    daemon.document(&["snapshot", "-o", &cluster]);
    assert!(hintctl(&["trace", "generate", "--jobs", "6", "-o", &trace]).status.success());
    let base = ["plan", "--trace", &trace, "--cluster", &cluster, "--horizon", "24h"];
    document(&[&base[..], &["-o", &old]].concat());
    daemon.refuses(&["plan", "submit", &trace, "--name", "p"], &["not a plan"]);
    let made = document(&[&base[..], &["--start", "now", "--force", "-o", &plan]].concat());
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
    std::fs::write(&trace, ADS).unwrap();
    document(&[&base[..], &["--start", "now", "--force", "-o", &plan]].concat());
    daemon.document(&["plan", "activate", "ads", "--file", &plan]);
    let replicas = daemon.document(&["replicas", "/bids/2026/11/23/part-7"]);
    assert_eq!((&replicas["reason"], &replicas["reader"]), (&json!("planned"), &json!("ads")), "by the trace's path");
    daemon.refuses(&["replicas", "/x", "--key", "asd"], &["\"asd\" is unknown", "did you mean \"ads\"?"]);
    let run = ["--policy", "jobpacker", "--key", "ads", "--clients", "1", "--seconds", "1"];
    let load = daemon.document(&[&["bench", "load", "--target", &daemon.address], &run[..]].concat());
    let status = said(&["status"]);
    assert_eq!(load["errors"], 0, "{load}");
    assert!(
        status.contains("; runs by jobpacker: 1 follow it (0 deviating), 0 expected"),
        "one has the place: {status}"
    );
    let late = hintctl(&["--admin-socket", &daemon.socket, "plan", "submit", &old, "--name", "old"]);
    assert!(stderr(&late).contains("has passed"), "its times count from the trace's start: {}", stderr(&late));
}
