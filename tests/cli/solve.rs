//! `hintctl solve`: files in, answers out, and what is said of files that can't be solved.

use super::{hintctl, stderr, stdout};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

fn file(dir: &TempDir, text: &str) -> String {
    let path = dir.path().join("round.min");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Two tasks, two machines with a slot each; the first machine is dear to the second task.
const ROUND: &str = "p min 5 6\nn 1 1\nn 2 1\nn 5 -2\na 1 3 0 1 100\na 1 4 0 1 200\na 2 3 0 1 100\na 2 4 0 1 900\na 3 5 0 1 0\na 4 5 0 1 0\n";

#[test]
fn both_algorithms_print_the_cheapest_flow() {
    let dir = TempDir::new().unwrap();
    let round = file(&dir, ROUND);
    for algorithm in ["simplex", "scaling"] {
        let solved = hintctl(&["solve", "mincost", &round, "--algorithm", algorithm]);
        assert_eq!(stdout(&solved), "s 300\nf 1 4 1\nf 2 3 1\nf 3 5 1\nf 4 5 1\n");
        assert!(stderr(&solved).contains("steps"), "{}", stderr(&solved));
    }
    let solved = hintctl(&["--json", "solve", "mincost", &round]);
    let document: Value = serde_json::from_str(&stdout(&solved)).unwrap();
    assert_eq!((&document["cost"], &document["optimal"], &document["short"]), (&json!(300), &json!(true), &json!(0)));
    assert_eq!(document["flows"][0], json!({"from": 1, "to": 4, "flow": 1}));
}

#[test]
fn supply_that_reaches_nobody_is_work_that_failed_and_the_cut_is_named() {
    let dir = TempDir::new().unwrap();
    let round = file(&dir, "p min 3 2\nn 1 5\nn 3 -5\na 1 2 0 9 1\na 2 3 0 3 1\n");
    let solved = hintctl(&["solve", "mincost", &round]);
    assert_eq!((solved.status.code(), stdout(&solved).as_str()), (Some(1), "s 6\nf 1 2 3\nf 2 3 3\n"));
    let said = stderr(&solved);
    assert!(
        said.contains(
            "2 of the supply reaches no demand, 2 of the demand is not met: all ways out of nodes 1, 2 are full"
        ),
        "{said}"
    );
}

#[test]
fn a_search_without_time_says_that_it_was_ended() {
    let dir = TempDir::new().unwrap();
    let round = file(&dir, ROUND);
    let solved = hintctl(&["--json", "solve", "mincost", &round, "--seconds", "0"]);
    let document: Value = serde_json::from_str(&stdout(&solved)).unwrap();
    assert_eq!(document["optimal"], json!(false));
    let said = stderr(&solved);
    assert!(
        said.contains("this may not be the cheapest flow") && said.contains("ended before all supply had a way"),
        "{said}"
    );
    assert_eq!(solved.status.code(), Some(1));
}

#[test]
fn bad_input_is_named() {
    let dir = TempDir::new().unwrap();
    for (text, said) in [
        ("p min 2 1\na 1 3 0 1 1\n", "line 2: node 3 is not within 1 to 2"),
        (
            "p min 2 2\na 1 2 0 -1 -3\na 2 1 0 -1 2\n",
            "node 2 to node 1 closes a cycle of negative cost and unlimited capacity",
        ),
        ("p min 2 1\na 1 2 0 1 99999999999999999999\n", "\"99999999999999999999\" is no whole number of 64 bits"),
    ] {
        let refused = hintctl(&["solve", "mincost", &file(&dir, text)]);
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(stderr(&refused).contains(said) && stderr(&refused).contains("round.min"), "{}", stderr(&refused));
    }
    let missing = hintctl(&["solve", "mincost", Path::new("none.min").to_str().unwrap()]);
    assert!(missing.status.code() == Some(2) && stderr(&missing).contains("none.min"), "{}", stderr(&missing));
    let refused = hintctl(&["solve", "mincost", &file(&dir, ROUND), "--seconds=-1"]);
    assert!(
        refused.status.code() == Some(2) && stderr(&refused).contains("seconds, 0 or more"),
        "{}",
        stderr(&refused)
    );
}
