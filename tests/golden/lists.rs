//! Compares what was found with the recorded lists, or records them again.

use crate::programs::root;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Marks a recorded line as optional, for things that depend on timing.
const PERHAPS: &str = " ?";

fn path(list: &str) -> PathBuf {
    root().join("tests/golden").join(list)
}

/// Whether to record the lists instead of comparing them.
pub(crate) fn recording() -> bool {
    std::env::var_os("HINTD_GOLDEN_RECORD").is_some_and(|value| value == "1")
}

/// The recorded lines; empty if nothing is recorded yet.
pub(crate) fn recorded(list: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path(list)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Compares the found lines with the recorded list, or records them.
pub(crate) fn hold(list: &str, found: impl IntoIterator<Item = String>) {
    let found: BTreeSet<String> = found.into_iter().collect();
    let known = recorded(list);
    assert!(!found.is_empty(), "{list}: nothing was found at all");
    if let Some(line) = found.iter().find(|line| line.contains('\n') || line.ends_with(PERHAPS)) {
        panic!("{list}: {line:?} can not stand on a line");
    }
    if recording() {
        record(list, found, &known);
        return;
    }
    if let Some(difference) = difference(list, &found, &known) {
        panic!("{difference}");
    }
}

/// Writes the list. Optional lines stay optional, whether they were seen this time or not.
fn record(list: &str, found: BTreeSet<String>, known: &BTreeSet<String>) {
    let perhaps: BTreeSet<&str> = known.iter().filter_map(|line| line.strip_suffix(PERHAPS)).collect();
    let mut lines: BTreeSet<String> = found.into_iter().filter(|line| !perhaps.contains(line.as_str())).collect();
    lines.extend(perhaps.iter().map(|line| format!("{line}{PERHAPS}")));
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    std::fs::write(path(list), text).unwrap();
}

/// Describes the difference, if there is one.
fn difference(list: &str, found: &BTreeSet<String>, known: &BTreeSet<String>) -> Option<String> {
    let plain = |line: &String| line.strip_suffix(PERHAPS).unwrap_or(line).to_owned();
    let allowed: BTreeSet<String> = known.iter().map(plain).collect();
    let missing: Vec<&String> =
        known.iter().filter(|line| !line.ends_with(PERHAPS) && !found.contains(*line)).collect();
    let new: Vec<&String> = found.difference(&allowed).collect();
    if missing.is_empty() && new.is_empty() {
        return None;
    }
    let mut said = format!("tests/golden/{list} differs from what the programs do.\n");
    for (what, lines, sign) in [("missing (callers may rely on them)", missing, '-'), ("new", new, '+')] {
        if !lines.is_empty() {
            let _ = writeln!(said, "{} {what}:", lines.len());
        }
        for line in lines {
            let _ = writeln!(said, "  {sign} {line}");
        }
    }
    said += "If the change is intended, record the lists again and review the diff:\n  \
        HINTD_GOLDEN_RECORD=1 cargo test --test golden && git diff tests/golden";
    Some(said)
}

#[test]
fn a_difference_names_the_list_what_is_missing_what_is_new_and_how_to_record() {
    let set = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<BTreeSet<String>>();
    let known = set(&["a", "b", "c ?", "d ?"]);
    assert_eq!(difference("x.txt", &set(&["a", "b"]), &known), None);
    assert_eq!(difference("x.txt", &set(&["a", "b", "d"]), &known), None);
    let said = difference("x.txt", &set(&["a", "c", "e"]), &known).unwrap();
    for part in ["golden/x.txt", "1 missing", "  - b\n", "1 new", "  + e\n", "HINTD_GOLDEN_RECORD=1"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}
