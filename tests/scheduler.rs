//! The model of the CapacityScheduler decides as Hadoop's own classes did on the same steps: scenarios in
//! `tests/data/scheduler`, recorded by `tests/hadoop/scheduler/run`, and those below `HINTD_SCHEDULER_SCENARIOS`.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "scheduler/scenario.rs"]
mod scenario;

use scenario::{Cluster, Scenario};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Scenario files of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

/// The first step at which the model decides otherwise than Hadoop did, and both decisions.
fn difference(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let scenario: Scenario = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut cluster = Cluster::new(&scenario);
    for (at, step) in scenario.steps.iter().enumerate() {
        let ours = Value::Array(cluster.step(step));
        if ours != scenario.decisions[at] {
            let step = serde_json::to_string(step).unwrap();
            let file = file.display();
            return Some(format!("{file}: step {at} {step}\n  Hadoop {}\n  model  {ours}", scenario.decisions[at]));
        }
    }
    let used = cluster.used();
    let last = &scenario.decisions[scenario.steps.len()];
    (used != *last).then(|| format!("{}: at the end Hadoop's queues use {last}, the model's {used}", file.display()))
}

fn compare(folder: &Path) -> usize {
    let files = files(folder);
    let differ: Vec<String> = files.iter().filter_map(|file| difference(file)).collect();
    assert!(differ.is_empty(), "{} of {} scenarios:\n{}", differ.len(), files.len(), differ.join("\n"));
    files.len()
}

#[test]
fn recorded_scenarios_are_decided_as_hadoop_decided_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/scheduler");
    assert!(compare(&folder) >= 40, "scenarios are missing in {}", folder.display());
}

#[test]
fn fresh_scenarios_are_decided_as_hadoop_decides_them() {
    if let Some(folder) = std::env::var_os("HINTD_SCHEDULER_SCENARIOS") {
        assert!(compare(Path::new(&folder)) > 0, "no scenarios below {}", folder.display());
    }
}
