//! `hintctl flows` on instances with known answers, and on what is no instance.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn flows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hintctl")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn answer(file: &Path) -> Value {
    let output = flows(&["flows", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let with_json = flows(&["--json", "flows", file.to_str().unwrap()]);
    assert_eq!(output.stdout, with_json.stdout, "the same with and without --json");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks every `NAME.json` beside a `NAME.expected.json` and returns how many there were.
fn check_folder(folder: &Path, accuracy: f64) -> usize {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().ends_with(".expected.json"));
    for expected in &files {
        let instance = PathBuf::from(expected.to_str().unwrap().replace(".expected.json", ".json"));
        let ours = answer(&instance);
        let theirs: Value = serde_json::from_str(&std::fs::read_to_string(expected).unwrap()).unwrap();
        let seconds = |value: &Value| value.as_f64().unwrap();
        let near = |what: &Value, ours: f64, theirs: f64| {
            let off = (ours - theirs).abs();
            assert!(off <= accuracy * theirs, "{}: {what}: {ours} is not {theirs}", instance.display());
        };
        let [a, b] = [&ours, &theirs].map(|result| result["completions"].as_array().unwrap());
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert_eq!(a["id"], b["id"], "in the order of the file");
            near(&a["id"], seconds(&a["completion_s"]), seconds(&b["completion_s"]));
        }
        near(&json!("makespan"), seconds(&ours["makespan_s"]), seconds(&theirs["makespan_s"]));
    }
    files.len()
}

#[test]
fn hand_computed_instances_end_exactly_when_they_should() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/flows");
    assert_eq!(check_folder(&folder, 0.0), 2);
}

#[test]
fn the_validation_instances_end_when_two_other_simulators_say() {
    let folder = std::env::var_os("HINTD_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from)
        .join("flowsim");
    if !folder.is_dir() {
        let missing = folder.display();
        writeln!(std::io::stderr(), "SKIPPED: no {missing}; set HINTD_DATA to the folder that holds flowsim").unwrap();
        return;
    }
    assert!(check_folder(&folder, 1e-9) >= 3);
}

/// Asserts that a file is refused as bad input, its name and all of `words` being said.
fn assert_refused(text: &str, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.json");
    std::fs::write(&file, text).unwrap();
    let output = flows(&["flows", file.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}: {said}");
    assert!(output.stdout.is_empty(), "{text} gives no result");
    for word in ["bad.json"].iter().chain(words) {
        assert!(said.contains(word), "{text} should say \"{word}\" and says: {said}");
    }
}

fn instance(link: &Value, flow: &Value) -> String {
    let mut links = vec![json!({ "id": "a>b", "capacity_bps": 8 }), json!({ "id": "b>c", "capacity_bps": 8 })];
    let mut flows = vec![json!({ "id": "f0", "path": ["a>b"], "size_bytes": 1, "start_s": 0 })];
    let merge =
        |into: &mut Value, from: &Value| into.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
    links.push(json!({ "id": "c>d", "capacity_bps": 8 }));
    flows.push(json!({ "id": "f1", "path": ["b>c", "c>d"], "size_bytes": 1, "start_s": 0 }));
    merge(&mut links[2], link);
    merge(&mut flows[1], flow);
    json!({ "links": links, "flows": flows }).to_string()
}

#[test]
fn bad_fields_are_refused_by_name() {
    let nothing = json!({});
    for capacity in [json!(0), json!(-5), json!(1e300), json!(1e-300)] {
        assert_refused(&instance(&json!({ "capacity_bps": capacity }), &nothing), &["links[2].capacity_bps", "bit/s"]);
    }
    for bytes in [json!(0), json!(-1), json!(1.5), json!(1e30), json!(u64::MAX)] {
        let flow = json!({ "size_bytes": bytes });
        assert_refused(&instance(&nothing, &flow), &["flows[1].size_bytes", &bytes.to_string(), "whole number"]);
    }
    for start in [json!(-0.5), json!(1e300)] {
        assert_refused(&instance(&nothing, &json!({ "start_s": start })), &["flows[1].start_s"]);
    }
    assert_refused(&instance(&json!({ "id": "a>b" }), &nothing), &["links[2].id", "\"a>b\" is given twice"]);
    assert_refused(&instance(&nothing, &json!({ "id": "f0" })), &["flows[1].id", "\"f0\" is given twice"]);
    let path = |path: Value| instance(&nothing, &json!({ "path": path }));
    assert_refused(&path(json!([])), &["flows[1].path", "empty"]);
    assert_refused(&path(json!(["a>b", "x>y"])), &["flows[1].path[1]", "no link \"x>y\""]);
    assert_refused(&path(json!(["a>b", "b>c", "a>b"])), &["flows[1].path[2]", "again"]);
    let both = instance(&json!({ "capacity_bps": 0 }), &json!({ "size_bytes": 0 }));
    assert_refused(&both, &["links[2].capacity_bps", "flows[1].size_bytes"]);
}

#[test]
fn what_is_no_flows_file_is_refused_with_its_line() {
    let whole = instance(&json!({}), &json!({}));
    assert_refused("", &["line 1", "EOF"]);
    assert_refused(&whole[..whole.len() / 2], &["line 1, column"]);
    assert_refused("{\n\"links\": [],\n\"flows\": 3}", &["line 3"]);
    assert_refused("{\"links\": []}", &["missing field `flows`"]);
    assert_refused("{\"links\": [],\n\"flows\": [], \"colour\": 1}", &["line 2", "colour"]);
    assert_refused(&whole.replace("\"start_s\":0", "\"start_s\":1e999"), &["line 1", "number out of range"]);
    assert_refused(&whole.replace("\"start_s\":0", "\"start_s\":\"soon\""), &["line 1"]);
    assert_eq!(flows(&["flows", "/nonexistent/x.json"]).status.code(), Some(2));
}

#[test]
fn no_flows_need_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.json");
    std::fs::write(&file, r#"{"links": [], "flows": []}"#).unwrap();
    assert_eq!(answer(&file), json!({ "completions": [], "makespan_s": 0.0 }));
}

#[test]
fn the_documented_example_gives_the_documented_answer() {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md")).unwrap();
    let (_, section) = docs.split_once("\n## Flows\n").unwrap();
    let blocks: Vec<&str> = section.split("```json\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("example.json");
    std::fs::write(&file, blocks[0]).unwrap();
    assert_eq!(answer(&file), serde_json::from_str::<Value>(blocks[1]).unwrap());
}
