//! The simulator held against runs of a real Hadoop: docs/worth-real-simulated.md.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test that panics is a test that fails; one that skips says so

use std::path::Path;
use std::process::Command;

/// Needs Python, as the program itself does; without it there is nothing to compare with.
#[test]
fn simulated_runs_agree_with_recorded_ones_within_the_bounds_that_the_page_states() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3 to run tests/hadoop/simulated");
        return;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hadoop/simulated");
    let checked = Command::new("python3")
        .arg(program)
        .args(["--check", "--hintctl", env!("CARGO_BIN_EXE_hintctl")])
        .output()
        .unwrap();
    let said = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(checked.status.success(), "{}{}", said(checked.stdout), said(checked.stderr));
}
