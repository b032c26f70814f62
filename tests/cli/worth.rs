//! `hintctl worth`, held against `hintctl simulate` run by run.

use super::{Files, assert_refused, document, hintctl, stderr, stdout, text_of};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SEEDS: usize = 3;

/// Two racks of two nodes; links so many times as fast.
fn shape(files: &Files, name: &str, faster: u64) -> String {
    let (nic, uplink) = (1_000_000_000 * faster, 100_000_000 * faster);
    let text = format!(
        "format = \"hintd.shape/1\"\nracks = 2\nnodes_per_rack = 2\ncontainers_per_node = 4\n\
         nic_bits_per_s = {nic}\nuplink_bits_per_s = {uplink}\nusers = 3\n"
    );
    files.write(name, &text)
}

/// Thirty drawn jobs.
fn trace(files: &Files) -> String {
    let path = text_of(&files.path("jobs.tsv"));
    let made = hintctl(&["trace", "generate", "--jobs", "30", "--span-s", "200", "--seed", "5", "-o", &path]);
    assert!(made.status.success(), "{}", stderr(&made));
    path
}

/// Completion by job of each seed, and its mean.
fn simulated(trace: &str, shape: &str, policy: &str) -> Vec<(Vec<f64>, f64)> {
    let args = ["simulate", "--trace", trace, "--cluster", shape, "--policy", policy, "--authority", "deployed"];
    let more = ["--seeds", "3", "--series", "--scale-bytes", "0.01"];
    let runs = document(&[&args[..], &more].concat())["runs"].as_array().unwrap().clone();
    let of = |run: &Value| {
        let jobs = run["jct_s"].as_array().unwrap().iter().map(|job| job.as_f64().unwrap()).collect();
        (jobs, run["mean_jct_s"].as_f64().unwrap())
    };
    runs.iter().map(of).collect()
}

fn median(mut values: [f64; SEEDS]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[SEEDS / 2]
}

fn near(found: &Value, expected: f64, what: &str) {
    let value = found.as_f64().unwrap_or(f64::NAN);
    assert!((value - expected).abs() < 1e-9, "{what}: {found} where {expected} is expected");
}

#[test]
fn every_figure_is_that_of_runs_of_the_same_seed() {
    let files = Files::new();
    let (trace, slow, fast) = (trace(&files), shape(&files, "slow.toml", 1), shape(&files, "fast.toml", 1_000));
    let alone = simulated(&trace, &slow, "capacity");
    let (free, joint) = (simulated(&trace, &fast, "capacity"), simulated(&trace, &slow, "joint"));
    let args = [
        "worth",
        "--trace",
        &trace,
        "--cluster",
        &slow,
        "--policy",
        "joint",
        "--loads",
        "0.01",
        "--seeds",
        "3",
        "--levers",
        "where",
    ];
    let worth = document(&args);
    assert_eq!(
        (&worth["format"], &worth["complete"], &worth["runs"]),
        (&"hintd.worth/1".into(), &true.into(), &12.into())
    );
    let (cell, row) = (&worth["cells"][0], &worth["cells"][0]["hinted"][0]);
    let by_seed = |of: &dyn Fn(usize) -> f64| -> [f64; SEEDS] { std::array::from_fn(of) };
    let ratios = by_seed(&|seed| joint[seed].1 / alone[seed].1);
    for (seed, ratio) in ratios.iter().enumerate() {
        near(&row["mean_by_seed"][seed], *ratio, "ratio of the seed");
    }
    near(&row["mean"]["median"], median(ratios), "ratio");
    assert!(ratios.iter().any(|ratio| (ratio - 1.0).abs() > 1e-9), "some hint was taken: {ratios:?}");
    let cost = by_seed(&|seed| 1.0 - free[seed].1 / alone[seed].1);
    assert!(median(cost) > 0.05, "the network counts: {cost:?}");
    near(&cell["network_cost"]["median"], median(cost), "cost of the network");
    let won = by_seed(&|seed| (alone[seed].1 - joint[seed].1) / (alone[seed].1 - free[seed].1));
    assert!(won.iter().any(|won| won.abs() > 1e-6), "some seed wins or loses: {won:?}");
    near(&row["won_back"]["median"], median(won), "won back");
    near(&row["won_back"]["min"], won.into_iter().fold(f64::MAX, f64::min), "least won back");
    near(&row["won_back"]["max"], won.into_iter().fold(f64::MIN, f64::max), "most won back");
    let slower = |seed: usize| {
        let pairs = || joint[seed].0.iter().zip(&alone[seed].0);
        pairs().filter(|(own, its)| *own - *its > 1.0 && **own > 1.05 * **its).count() as f64 / 30.0
    };
    near(&row["slower_share"]["median"], median(by_seed(&slower)), "slower jobs");
    // Chance: the same jobs and replicas at other phases.
    let phases = cell["other_phases"]["mean_by_seed"].as_array().unwrap();
    assert!(phases.iter().all(|ratio| (ratio.as_f64().unwrap() - 1.0).abs() > 1e-9), "{phases:?}");
    assert!(!worth["sentence"].as_str().unwrap().is_empty());
    let text = stdout(&hintctl(&args));
    for words in ["YARN alone", "other phases", "no network", "places by joint", worth["sentence"].as_str().unwrap()] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

fn files_in(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn parts_merge_by_copying_and_a_damaged_run_is_made_again() {
    let files = Files::new();
    let (trace, shape) = (trace(&files), shape(&files, "slow.toml", 1));
    let [one, two, page, plots] = ["one", "two", "worth.md", "plots"].map(|name| text_of(&files.path(name)));
    let base = [
        "worth",
        "--trace",
        &trace,
        "--cluster",
        &shape,
        "--policy",
        "joint",
        "--loads",
        "0.0001",
        "--seeds",
        "2",
        "--levers",
        "where",
    ];
    let whole = document(&base);
    for (part, folder) in [("1/2", &one), ("2/2", &two)] {
        let part = document(&[&base[..], &["--shard", part, "--keep", folder]].concat());
        assert_eq!(
            (&part["complete"], &part["verdict"], &part["runs_missing"]),
            (&false.into(), &"incomplete".into(), &4.into())
        );
    }
    assert_eq!(files_in(two.as_ref()).len(), 4);
    for file in files_in(two.as_ref()) {
        std::fs::copy(&file, Path::new(&one).join(file.file_name().unwrap())).unwrap();
    }
    let kept = [&base[..], &["--keep", &one]].concat();
    let more = ["--markdown", &page, "--plots", &plots, "--commit", "abc"];
    let merged = hintctl(&[&["--json"], &kept[..], &more].concat());
    assert_eq!(serde_json::from_slice::<Value>(&merged.stdout).unwrap(), whole);
    assert!(stderr(&merged).contains("8 of 8 runs were kept"), "{}", stderr(&merged));
    let again = [&kept[..], &more].concat();
    assert_refused(&again, &["--markdown: ", "worth.md: it is there already: --force replaces it"]);
    assert!(hintctl(&[&again[..], &["--force"]].concat()).status.success());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("commit abc") && page.contains("| places by joint |"), "{page}");
    let plot = std::fs::read_to_string(Path::new(&plots).join("worth.svg")).unwrap();
    assert!(plot.contains("places by joint"));
    assert!(plot.contains("made by: hintctl ") && plot.contains(" worth ") && plot.contains("; seeds "), "{plot}");
    let damaged = &files_in(one.as_ref())[3];
    let text = std::fs::read_to_string(damaged).unwrap();
    std::fs::write(damaged, &text[..text.len() / 2]).unwrap();
    let again = hintctl(&[&["--json"], &kept[..]].concat());
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), whole);
    let said = stderr(&again);
    assert!(said.contains(damaged.to_str().unwrap()) && said.contains("it is run again"), "{said}");
    assert!(said.contains("7 of 8 runs were kept"), "{said}");
    assert!(!stderr(&hintctl(&kept)).contains("run again"), "it is whole now");
}

#[test]
fn an_interrupt_leaves_what_ended() {
    let files = Files::new();
    let (trace, shape) = (trace(&files), shape(&files, "slow.toml", 1));
    let kept = files.path("kept");
    let mut child = Command::new(env!("CARGO_BIN_EXE_hintctl"))
        .args([
            "worth",
            "--levers",
            "where",
            "--trace",
            &trace,
            "--cluster",
            &shape,
            "--loads",
            "0.001",
            "--seeds",
            "1000",
            "--threads",
            "1",
        ])
        .args(["--keep", kept.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended =
        || kept.exists() && files_in(&kept).iter().any(|file| file.extension().is_some_and(|end| end == "json"));
    while !ended() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its runs did");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let (said, there) = (stderr(&output), files_in(&kept).len());
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("interrupted: {there} of 5000 runs are there, kept in ")), "{said}");
}

#[test]
fn what_can_not_be_compared_is_refused_by_name() {
    let files = Files::new();
    let (trace, shape) = (trace(&files), shape(&files, "slow.toml", 1));
    let base = ["worth", "--trace", &trace, "--cluster", &shape];
    let refused = |args: &[&str], words: &[&str]| assert_refused(&[&base[..], args].concat(), words);
    refused(&["--policy", "joint,nas"], &["policy \"nas\" schedules"]);
    refused(&["--policy", "capacity"], &["policy \"capacity\" is YARN alone"]);
    refused(&["--policy", "jiont"], &["did you mean \"joint\"?"]);
    refused(&["--param", "hit.x=1"], &["\"hit\" is not among the policies"]);
    refused(&["--loads", "0.1,0.1"], &["--loads: 0.1 is given twice"]);
    refused(&["--loads", "0"], &["--loads"]);
    refused(&["--levers", "why"], &["--levers", "where"]);
    refused(
        &["--levers", "where", "--recurring", "0.5"],
        &["--recurring is for levers with history (history, history-when, data, data-when)"],
    );
    refused(&["--history-error", "3"], &["--history-error is for levers with history"]);
    refused(&["--learn", "2"], &["--learn is for levers with history"]);
    let learning = ["--policy", "joint", "--levers", "history", "--learn"];
    refused(&[&learning[..], &["100000"]].concat(), &["--learn 100000: ", " has no more jobs than that"]);
    refused(
        &[&learning[..], &["2"]].concat(),
        &["--learn 2: of the ", " none reads a path that one of the 2 before them read"],
    );
    refused(&[&learning[..], &["2", "--recurring", "1"]].concat(), &["--learn", "--recurring"]);
    refused(&["--levers", "data"], &["--levers data: policy \"container\" does not say where data goes", "joint"]);
    refused(&["--shard", "3/2", "--keep", "x"], &["--shard", "no part 3 of 2"]);
    refused(&["--shard", "1/2"], &["--keep"]);
    let file = files.write("file", "");
    for option in ["--keep", "--plots"] {
        refused(&[option, &format!("{file}/folder")], &[&format!("{option}: {file}/folder: ")]);
    }
    refused(&["--keep", "/proc/kept"], &["--keep: /proc/kept: "]);
    refused(&["--script", "/nowhere.toml"], &["--script: /nowhere.toml: "]);
    refused(&["--delays", "nowhere"], &["--delays: delays \"nowhere\" are neither a file nor shipped"]);
    let of = |trace: &str, cluster: &str, words: &[&str]| {
        assert_refused(&["worth", "--trace", trace, "--cluster", cluster], words);
    };
    of(&trace, "nas-41", &["--cluster: cluster \"nas-41\" is neither", "did you mean \"nas-40\"?"]);
    of("/nowhere.tsv", &shape, &["--trace: /nowhere.tsv: "]);
    of(&files.write("bad.tsv", "a\t0\t0\t5\t5\n"), &shape, &["--trace: ", "bad.tsv", "line 1"]);
}

#[test]
fn data_is_placed_by_who_can_say_where_it_goes() {
    let files = Files::new();
    let (trace, shape) = (trace(&files), shape(&files, "slow.toml", 1));
    let base =
        ["simulate", "--trace", &trace, "--cluster", &shape, "--authority", "deployed", "--scale-bytes", "0.001"];
    let placing = [&base[..], &["--recurring", "1", "--data-placement", "--policy"]].concat();
    for (policies, policy) in [("capacity", "capacity"), ("joint,container", "container"), ("capacity,hit", "hit")] {
        let said = format!("--data-placement: policy \"{policy}\" does not say where data goes (those that do: joint,");
        assert_refused(&[&placing[..], &[policies]].concat(), &[&said]);
    }
    // YARN alone is there to be compared with.
    let runs = document(&[&placing[..], &["capacity,joint"]].concat());
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn lies_have_a_row_under_each_lever_with_history_and_say_what_they_cost() {
    let files = Files::new();
    let (trace, shape) = (trace(&files), shape(&files, "slow.toml", 1));
    let [page, kept] = ["page.md", "kept"].map(|name| text_of(&files.path(name)));
    let base = [
        "worth",
        "--trace",
        &trace,
        "--cluster",
        &shape,
        "--policy",
        "joint",
        "--loads",
        "0.01",
        "--seeds",
        "2",
        "--keep",
        &kept,
    ];
    let asked = ["--levers", "where,history,data-when", "--recurring", "1", "--lies", "bytes-x10,times-x5"];
    let worth = document(&[&base[..], &asked, &["--markdown", &page, "--commit", "abc"]].concat());
    // YARN alone, other phases, no network, three levers, two lies to two of them.
    assert_eq!((&worth["complete"], &worth["runs"]), (&true.into(), &20.into()));
    let lies = worth["lies"].as_array().unwrap();
    let told: Vec<_> = lies.iter().map(|lie| (lie["lever"].as_str().unwrap(), lie["lie"].as_str().unwrap())).collect();
    assert_eq!(
        told,
        [("history", "bytes-x10"), ("history", "times-x5"), ("data-when", "bytes-x10"), ("data-when", "times-x5")]
    );
    assert!(worth.get("parts").is_none(), "{worth}");
    let by_seed = |at: usize, seed: usize| worth["cells"][0]["hinted"][at]["mean_by_seed"][seed].as_f64().unwrap();
    // Rows are where, history, data-when, then the lies.
    for (at, whole) in [(3, 1), (4, 1), (5, 2), (6, 2)] {
        let times = [0, 1].map(|seed| by_seed(at, seed) / by_seed(whole, seed));
        near(&lies[at - 3]["times_by_cell"][0], f64::midpoint(times[0], times[1]), "times as long");
    }
    let mattered = |(lied, told): (usize, usize)| (0..2).any(|seed| by_seed(lied, seed) != by_seed(told, seed));
    assert!([(3, 1), (4, 1), (5, 2), (6, 2)].into_iter().any(mattered), "nobody was told anything");
    let page = std::fs::read_to_string(page).unwrap();
    for words in [
        "## History that lies",
        "- `bytes-x10`: hintd is told that every earlier run",
        "--lies bytes-x10,times-x5 ",
        "\n| places by joint, earlier runs known, times-x5 | ",
        "\n| data-when: bytes-x10 | ",
        "## What was to be reached",
    ] {
        assert!(page.contains(words), "no {words:?} in\n{page}");
    }
    let text = stdout(&hintctl(&[&base[..], &asked].concat()));
    let known = "places by joint, earlier runs known";
    let lied = format!("{known}, times-x5");
    for (row, tables) in [("history: times-x5", 1), (lied.as_str(), 1), (known, 2)] {
        assert_eq!(text.matches(&format!("\n{row}  ")).count(), tables, "{row} in\n{text}");
    }
    let lied = "\n| places by joint, data placed, receivers held, times-x5 | ";
    assert_eq!(page.matches(lied).count(), 2, "the table of all and the cell's, and no goals for lies");
}

/// Twenty jobs with heavy shuffles, four to a path.
fn with_paths(files: &Files) -> String {
    let row = |at: u64| {
        let (submit, bytes) = (10 * at, (20 + 7 * at) << 30);
        format!("job{at}\t{submit}\t10\t{bytes}\t{bytes}\t1\tinputPath{}\t\t\n", at % 5)
    };
    files.write("paths.tsv", &(0..20).map(row).collect::<String>())
}

#[test]
fn earlier_runs_are_learnt_from_the_jobs_before_those_that_are_run() {
    let files = Files::new();
    let (trace, shape) = (with_paths(&files), shape(&files, "slow.toml", 1));
    let page = text_of(&files.path("page.md"));
    let args =
        ["worth", "--trace", &trace, "--cluster", &shape, "--policy", "joint", "--loads", "0.01", "--seeds", "2"];
    let asked = ["--levers", "where,history", "--learn", "3", "--markdown", &page];
    let worth = document(&[&args[..], &asked].concat());
    let cell = &worth["cells"][0];
    assert_eq!((&worth["learn"], &cell["jobs"]), (&3.into(), &17.into()));
    assert_eq!(cell["known"], 9, "of 17 jobs those of three of the five paths: {cell}");
    assert!(worth.get("recurring").is_none() && worth.get("history_error").is_none());
    let by_seed = |at: usize| cell["hinted"][at]["mean_by_seed"].clone();
    assert_ne!(by_seed(0), by_seed(1), "nobody was told anything");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(" --learn 3 ") && !page.contains("--recurring"), "{page}");
    let drawn = document(&[&args[..], &["--levers", "where,history"]].concat());
    assert_eq!(drawn["cells"][0]["jobs"], 20);
    assert!(drawn.get("learn").is_none() && drawn["cells"][0].get("known").is_none());
}

#[test]
fn parts_that_are_left_out_have_a_row_and_say_what_they_were_worth() {
    let files = Files::new();
    let (trace, shape) = (trace(&files), shape(&files, "slow.toml", 1));
    let page = text_of(&files.path("page.md"));
    let base =
        ["worth", "--trace", &trace, "--cluster", &shape, "--policy", "joint", "--loads", "0.01", "--seeds", "2"];
    let asked = ["--levers", "history,data-when", "--without", "homes,cap", "--hold-home-share", "0.75"];
    let worth = document(&[&base[..], &asked, &["--markdown", &page]].concat());
    // YARN alone, other phases, no network, two levers, two parts.
    assert_eq!((&worth["complete"], &worth["runs"]), (&true.into(), &14.into()));
    assert_eq!((&worth["hold"]["home_share"], &worth["hold"]["at_once"]), (&0.75.into(), &2.into()));
    let rows: Vec<_> =
        worth["overall"].as_array().unwrap().iter().map(|row| (&row["lever"], &row["without"])).collect();
    let without = |name: &str| Value::from(name);
    let (history, last, none) = (without("history"), without("data-when"), Value::Null);
    let (homes, cap) = (without("homes"), without("cap"));
    assert_eq!(rows, [(&history, &none), (&last, &none), (&last, &homes), (&last, &cap)]);
    let parts = worth["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| &part["without"]).collect::<Vec<_>>(), [&homes, &cap]);
    let by_seed = |at: usize, seed: usize| worth["cells"][0]["hinted"][at]["mean_by_seed"][seed].as_f64().unwrap();
    for (part, at) in parts.iter().zip(2..) {
        let times = [0, 1].map(|seed| by_seed(at, seed) / by_seed(1, seed));
        near(&part["times_by_cell"][0], f64::midpoint(times[0], times[1]), "times as long");
    }
    let page = std::fs::read_to_string(page).unwrap();
    for words in [
        "## Each part left out in turn",
        "- `cap`: those whose turn it is",
        "--without homes,cap --hold-home-share 0.75",
        "\n| places by joint, earlier runs known | ",
        "\n| places by joint, data placed, receivers held, without homes | ",
        "- hold: 2 heavy shuffles at once",
    ] {
        assert!(page.contains(words), "no {words:?} in\n{page}");
    }
    // An operator's page: the project's goals and pages are not beside it.
    for words in ["What was to be reached", "](", "commit"] {
        assert!(!page.contains(words), "{words:?} in\n{page}");
    }
    let refused = |args: &[&str], words: &[&str]| assert_refused(&[&base[..], args].concat(), words);
    refused(
        &["--levers", "where", "--without", "cap"],
        &["--without cap is of levers when, history-when, data-when", "is where"],
    );
    refused(
        &["--levers", "where", "--lies", "all"],
        &["--lies is for levers with history (history, history-when, data"],
    );
    refused(&["--levers", "history", "--recurring", "0"], &["--recurring 0: no earlier run is known"]);
    refused(&["--levers", "where", "--hold-share", "0.5"], &["--hold-share is for levers that hold receivers"]);
}
