//! `hintctl fit`: measurements in, a curve out, and what is said of lines that are none.

use super::{command, document, hintctl, stderr, stdout};
use serde_json::json;
use tempfile::TempDir;

fn file(dir: &TempDir, text: &str) -> String {
    let path = dir.path().join("measured.csv");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_curve_is_printed_as_the_configuration_takes_it_with_its_error() {
    let dir = TempDir::new().unwrap();
    let measured = file(&dir, "rtt_us,performance\n0,1000\n100,400\n200,600\n1500,250\n");
    let done = hintctl(&["fit", &measured, "--name", "cache"]);
    let said = stdout(&done);
    assert!(
        said.ends_with("[policies.nomora.curves]\n\"cache\" = [[0, 1], [100, 0.5], [200, 0.5], [1000, 0.25]]\n"),
        "{said}"
    );
    assert!(said.contains("fitted to 4 measurements, 1000 counts as 1; off by 7.07 %"), "{said}");
    assert!(said.contains("at most 10 %") && said.contains("# 1 of them are beyond 1000 µs"), "{said}");
    let narrow = command(&["fit", &measured, "--name", "cache"]).env("COLUMNS", "40").output().unwrap();
    assert_eq!(stdout(&narrow), said, "it goes into a file: no line is broken");
    let fitted = document(&["fit", &measured, "--best", "2000"]);
    assert_eq!(fitted["points"], json!([[0.0, 0.5], [100.0, 0.25], [200.0, 0.25], [1000.0, 0.125]]));
    assert_eq!((&fitted["best"], &fitted["measurements"], &fitted["beyond"]), (&json!(2000.0), &json!(4), &json!(1)));
}

#[test]
fn what_can_not_be_fitted_is_bad_input() {
    let dir = TempDir::new().unwrap();
    for (text, args, says) in [
        ("10,5\n20,-1\n", &[][..], "line 2: a performance of -1 is not above 0"),
        ("", &[], "there are no measurements"),
        ("10,5\n", &["--best", "4"], "above the best of 4"),
        ("10,5\n", &["--best", "0"], "expected: a performance above 0"),
        ("10,5\n", &["--name", "spark"], "\"spark\" is built in"),
        ("10,5\n", &["--name", ""], "is no name for a curve"),
    ] {
        let measured = file(&dir, text);
        let done = hintctl(&[&["fit", &measured], args].concat());
        assert_eq!(done.status.code(), Some(2), "{text} {args:?}");
        assert!(stderr(&done).contains(says), "{says} is not in {}", stderr(&done));
    }
}
