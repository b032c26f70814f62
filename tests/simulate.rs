//! `hintctl simulate` and `hintctl trace`, as a person or a script runs them.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two racks of two nodes: a second of work for a debug build.
const SHAPE: &str = "format = \"hintd.shape/1\"\nracks = 2\nnodes_per_rack = 2\ncontainers_per_node = 4\n\
    nic_bits_per_s = 1_000_000_000\nuplink_bits_per_s = 1_000_000_000\nusers = 3\n";
/// Three jobs, the second one map-only.
const TRACE: &str =
    "a\t0\t0\t900000000\t300000000\t1000\nb\t5\t5\t200000000\t0\t0\nc\t6\t1\t400000000\t2500000000\t1000\n";

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn shape(&self) -> String {
        self.write("shape.toml", SHAPE)
    }

    fn trace(&self) -> String {
        self.write("jobs.tsv", TRACE)
    }
}

fn hintctl(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hintctl")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON of a comparison that must succeed.
fn document(args: &[&str]) -> Value {
    let output = hintctl(&[&["--json", "simulate"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asserts that a command is refused as bad input with exactly this message.
fn assert_refused(args: &[&str], message: &str) {
    let output = hintctl(args);
    assert_eq!(said(&output).trim_end(), format!("hintctl: {message}"), "{args:?}");
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?} prints no result");
}

/// Without what the machine decides.
fn without_measured(mut document: Value) -> Value {
    for run in document["runs"].as_array_mut().unwrap() {
        let run = run.as_object_mut().unwrap();
        assert!(run.remove("wall_s").unwrap().as_f64().unwrap() > 0.0);
        assert!(run.remove("peak_rss_bytes").unwrap().as_u64().unwrap() > 1 << 20);
    }
    document
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_bad_trace_is_refused_by_line_with_its_reason() {
    let files = Files::new();
    let shape = files.shape();
    let good = "a\t3\t0\t1\t2\t3\n";
    let packed = gzip(good.repeat(10_000).as_bytes());
    let cases: [(&str, Vec<u8>, &str); 9] = [
        (
            "columns.tsv",
            format!("{good}b\t4\t1\t5\n").into(),
            "line 2: 4 tab-separated columns where 6, as in the rows before, are needed, in \"b\t4\t1\t5\"",
        ),
        (
            "negative.tsv",
            format!("{good}b\t4\t1\t-5\t0\t0\n").into(),
            "line 2, column 4 (map input, bytes): \"-5\" is negative",
        ),
        (
            "back.tsv",
            format!("{good}b\t2\t0\t5\t0\t0\n").into(),
            "line 2, column 2 (submit time, s): 2 lies before 3, the time of an earlier line",
        ),
        (
            "huge.tsv",
            format!("{good}b\t4\t1\t1000000000000000000\t0\t0\n").into(),
            "line 2, column 4 (map input, bytes): \"1000000000000000000\" is more than 1125899906842624",
        ),
        ("empty.tsv", vec![], "the trace holds no job (0 bad lines were skipped)"),
        (
            "cut.tsv.gz",
            packed[..packed.len() - 4].to_vec(),
            "after line 10000: the gzip data stop before their end, the file is cut",
        ),
        (
            "negative.jsonl",
            br#"{"name":"a","submit_s":0,"input_bytes":1,"shuffle_bytes":-1,"output_bytes":0}"#.to_vec(),
            "line 1, shuffle_bytes: -1 is negative",
        ),
        (
            "field.jsonl",
            br#"{"name":"a","submit":0,"input_bytes":1,"shuffle_bytes":1,"output_bytes":0}"#.to_vec(),
            "line 1, column 20: unknown field `submit`, expected one of `name`, `submit_s`, `input_bytes`, \
             `shuffle_bytes`, `output_bytes`, `input_path`, `blocks`, `user`, `maps`, `reduces`, `map_s`, `reduce_s`",
        ),
        (
            "picture.png",
            b"\x89PNG\xff\xfe\n".to_vec(),
            "line 1: not text (is the file packed with something other than gzip?)",
        ),
    ];
    for (name, content, message) in cases {
        let trace = files.write(name, content);
        let args = ["simulate", "--trace", &trace, "--cluster", &shape, "--policy", "fair"];
        assert_refused(&args, &format!("{trace}: {message}"));
        assert_refused(&["trace", "check", &trace], &format!("{trace}: {message}"));
    }
    let missing = files.path("none.tsv").to_str().unwrap().to_owned();
    let args = ["simulate", "--trace", &missing, "--cluster", "nas", "--policy", "fair"];
    assert_refused(&args, &format!("{missing}: No such file or directory (os error 2)"));
}

#[test]
fn a_bad_cluster_is_refused_by_field_and_value() {
    let files = Files::new();
    let trace = files.trace();
    let refused = |cluster: &str, message: &str| {
        assert_refused(&["simulate", "--trace", &trace, "--cluster", cluster, "--policy", "fair"], message);
    };
    for (change, to, message) in [
        ("racks = 2", "racks = 0", "racks: is 0: a cluster has at least one rack"),
        ("nodes_per_rack = 2", "nodes_per_rack = 0", "nodes_per_rack: is 0: a rack without nodes is none"),
        (
            "uplink_bits_per_s = 1_000_000_000",
            "uplink_bits_per_s = 0",
            "uplink_bits_per_s: is 0: nothing would ever arrive",
        ),
        (
            "users = 3",
            "user = 3",
            "line 7, column 1: unknown field `user`, expected one of `format`, `racks`, `nodes_per_rack`, \
             `containers_per_node`, `container_memory_mb`, `container_vcores`, `nic_bits_per_s`, `uplink_bits_per_s`, \
             `users`, `core`, `classes`",
        ),
        (
            "hintd.shape/1",
            "hintd.shape/2",
            "format: is \"hintd.shape/2\", neither \"hintd.shape/1\" nor \"hintd.cluster/1\"",
        ),
    ] {
        let path = files.write("bad.toml", SHAPE.replacen(change, to, 1));
        refused(&path, &format!("{path}: {message}"));
    }
    let apart = files.write(
        "apart.json",
        r#"{"format": "hintd.cluster/1",
            "nodes": [{"host": "h1", "memory_mb": 4096, "vcores": 4}, {"host": "h2", "memory_mb": 4096, "vcores": 4}],
            "network": {"format": "hintd.network/1", "switches": [{"name": "s", "tier": "edge"}],
                        "hosts": [{"name": "h1"}], "links": [{"id": "l", "a": "h1", "b": "s", "bits_per_s": 1000000000}]}}"#,
    );
    refused(&apart, &format!("{apart}: nodes[1].host: \"h2\" can't be reached: the network gives it no usable link"));
    let shipped = "shipped are nas, nas-40, nas-40-2to1, nas-40-10to1, jobpacker, jobpacker-packets, container, cross-layer-30, scale-out, scale-up-out";
    refused("nsa", &format!("cluster \"nsa\" is neither a file nor shipped; did you mean \"nas\"? {shipped}"));
    refused("hadoop", &format!("cluster \"hadoop\" is neither a file nor shipped; {shipped}"));
}

#[test]
fn a_bad_policy_or_parameter_is_refused_by_name() {
    let files = Files::new();
    let (trace, shape) = (files.trace(), files.shape());
    let refused = |more: &[&str], message: &str| {
        let args = [&["simulate", "--trace", &trace, "--cluster", &shape], more].concat();
        assert_refused(&args, message);
    };
    refused(&["--policy", "fiar"], "policy \"fiar\" is unknown; did you mean \"fair\"?");
    refused(&["--policy", "fair,delya"], "policy \"delya\" is unknown; did you mean \"delay\"?");
    refused(&["--policy", "fair,fair"], "--policy: \"fair\" is given twice");
    refused(&["--policy", "fair", "--param", "x"], "--param x: not of the form POLICY.KEY=VALUE");
    refused(
        &["--policy", "fair", "--param", "delay.x=1"],
        "--param delay.x=1: \"delay\" is not among the policies of --policy",
    );
    refused(&["--policy", "fair", "--seed", "1,2,1"], "--seed: 1 is given twice");
    let output = hintctl(&[
        "simulate",
        "--trace",
        &trace,
        "--cluster",
        &shape,
        "--policy",
        "fair",
        "--param",
        "fair.colour=red",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).starts_with("hintctl: --param fair.colour: unknown field `colour`"), "{}", said(&output));
}

#[test]
fn bad_lines_are_skipped_when_asked_and_counted() {
    let files = Files::new();
    let trace = files.write("jobs.tsv", format!("{TRACE}d\t1\t0\t1\t1\t1\ne\t9\t0\t-1\t1\t1\nf\t10\t0\t1\t1\t1\n"));
    let output = hintctl(&["--json", "trace", "check", &trace, "--skip-bad"]);
    assert!(output.status.success());
    let first = "line 4, column 2 (submit time, s): 1 lies before 6, the time of an earlier line";
    assert_eq!(said(&output).trim_end(), format!("{trace}: 2 bad lines were skipped; the first: {first}"));
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&facts["jobs"], &facts["skipped"], &facts["first_skipped"]), (&4.into(), &2.into(), &first.into()));
}

#[test]
fn a_drawn_trace_is_the_same_for_the_same_seed_in_both_formats() {
    let files = Files::new();
    let draw = |name: &str, more: &[&str]| {
        let path = files.path(name).to_str().unwrap().to_owned();
        let output = hintctl(&[&["trace", "generate", "--jobs", "50", "-o", &path], more].concat());
        assert!(output.status.success(), "{}", said(&output));
        std::fs::read(path).unwrap()
    };
    let plain = draw("a.tsv", &["--seed", "7"]);
    assert_eq!(plain, draw("b.tsv", &["--seed", "7"]));
    assert_ne!(plain, draw("c.tsv", &["--seed", "8"]));
    assert_eq!(draw("d.tsv.gz", &["--seed", "7"])[..2], [0x1f, 0x8b]);
    let json = String::from_utf8(draw("e.jsonl", &["--seed", "7", "--paths", "--format", "json"])).unwrap();
    assert_eq!(json.lines().count(), 50);
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["input_path"], "inputPath1");
}

#[test]
fn every_run_has_the_keys_that_scripts_read_whatever_the_number_of_threads() {
    let files = Files::new();
    let (trace, shape) = (files.trace(), files.shape());
    let compare = |threads: &str| {
        let out = files.path(&format!("{threads}.json"));
        let args = ["--trace", &trace, "--cluster", &shape, "--policy", "fair,delay", "--seeds", "3", "--series"];
        let more = ["--threads", threads, "-o", out.to_str().unwrap()];
        let printed = document(&[&args[..], &more].concat());
        let written: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
        assert_eq!(printed, written);
        without_measured(printed)
    };
    let one = compare("1");
    let order: Vec<_> = one["runs"].as_array().unwrap().iter().map(|run| (&run["policy"], &run["seed"])).collect();
    let expected = ["fair", "fair", "fair", "delay", "delay", "delay"];
    assert!(order.iter().zip(expected).all(|((policy, _), expected)| *policy == expected), "{order:?}");
    assert_eq!((one["complete"].as_bool(), one["runs_not_begun"].as_u64()), (Some(true), Some(0)));
    for key in [
        "policy",
        "authority",
        "seed",
        "jobs",
        "makespan_s",
        "throughput_jobs_per_hour",
        "mean_jct_s",
        "median_jct_s",
        "p95_jct_s",
        "cross_rack_bytes",
        "congested_s",
        "events",
    ] {
        assert!(!one["runs"][0][key].is_null(), "{key} is missing");
    }
    let run = &one["runs"][0];
    assert_eq!((run["authority"].as_str(), run["jobs"].as_u64()), (Some("policy"), Some(3)));
    assert_eq!(run["jct_s"].as_array().unwrap().len(), 3);
    assert_eq!(one, compare("2"), "the same bytes on two threads");
}

#[test]
fn a_table_states_model_settings_and_ratios_and_plots_are_drawn() {
    let files = Files::new();
    let (trace, shape, plots) = (files.trace(), files.shape(), files.path("out/plots"));
    let args = ["simulate", "--trace", &trace, "--cluster", &shape, "--policy", "fair,delay", "--seeds", "2"];
    let output = hintctl(&[&args[..], &["--plots", plots.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "3 jobs, 12 maps, 4 reduces (SWIM)",
        "2 racks, 4 nodes, 16 containers",
        "maps: ceil(input / 128 MiB), at least 1",
        "heartbeat 1 s, 3 users, 3 replicas, 5 fetches a reduce",
        "1, 2; medians below",
        "jobs/h",
        "ratios against fair, lowest to highest over the seeds",
    ] {
        assert!(text.contains(words), "\"{words}\" is missing in\n{text}");
    }
    for name in ["completion-times", "throughput", "cross-rack", "congestion", "link-use"] {
        let svg = std::fs::read_to_string(plots.join(format!("{name}.svg"))).unwrap();
        assert!(svg.contains("fair") && svg.contains("delay") && svg.ends_with("</svg>\n"), "{name}");
        let (_, description) = svg.split_once("<desc>hintd ").unwrap_or_else(|| panic!("{name}: {svg}"));
        assert!(description.contains("; seeds 1") && description.contains("; made by: hintctl "), "{name}: {svg}");
    }
}

#[test]
fn jobs_that_can_never_fit_are_reported_and_are_no_failure() {
    let files = Files::new();
    let small = files.write(
        "small.json",
        r#"{"format": "hintd.cluster/1", "nodes": [{"host": "h1", "memory_mb": 4096, "vcores": 4}],
            "network": {"format": "hintd.network/1", "switches": [{"name": "s", "tier": "edge"}],
                        "hosts": [{"name": "h1"}], "links": [{"id": "l", "a": "h1", "b": "s", "bits_per_s": 1000000000}]}}"#,
    );
    let trace = files.trace();
    let args = [
        "--json",
        "simulate",
        "--trace",
        &trace,
        "--cluster",
        &small,
        "--policy",
        "fair",
        "--container-memory-mb",
        "8192",
    ];
    let output = hintctl(&args);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output).trim_end(), "warning: 3 jobs could never fit and did not run: a, b, c");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &document["runs"][0];
    assert_eq!((run["never_fit_count"].as_u64(), run["jobs"].as_u64()), (Some(3), Some(0)));
}

#[test]
fn an_interrupt_leaves_a_valid_partial_document() {
    let files = Files::new();
    let long: String = (0..200_000).map(|job| format!("j{job}\t{}\t1\t900000000\t90000000\t9\n", job * 2)).collect();
    let (trace, shape, out) = (files.write("long.tsv", long), files.shape(), files.path("out.json"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_hintctl"))
        .args([
            "--json",
            "simulate",
            "--trace",
            &trace,
            "--cluster",
            &shape,
            "--policy",
            "fair,delay",
            "--threads",
            "1",
        ])
        .args(["-o", out.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The trace is read through first; the signal is listened for before a line says how far the first run is.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("0 of 2 runs ended; fair, seed 1 at ") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended before its runs began");
    }
    let began = Instant::now();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "it ends soon");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.ends_with("hintctl: interrupted: 0 of 2 runs ended\n"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document, serde_json::from_str::<Value>(&std::fs::read_to_string(&out).unwrap()).unwrap());
    assert_eq!((document["complete"].as_bool(), document["runs_not_begun"].as_u64()), (Some(false), Some(1)));
    let run = &document["runs"][0];
    assert_eq!(run["complete"].as_bool(), Some(false));
    assert!(run["unfinished"].as_u64().unwrap() > 0);
}

#[test]
fn the_examples_of_the_formats_page_are_read() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md")).unwrap();
    let block = |section: &str, fence: &str| {
        let (_, rest) = page.split_once(&format!("\n## {section}\n")).unwrap();
        let (_, rest) = rest.split_once(&format!("```{fence}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let files = Files::new();
    let shape = files.write("shape.toml", block("Shape", "toml"));
    let trace = files.write("jobs.jsonl", block("Traces", "json"));
    let document = document(&["--trace", &trace, "--cluster", &shape, "--policy", "fair"]);
    assert_eq!(document["runs"][0]["jobs"].as_u64(), Some(3));
    assert_eq!(
        (document["cluster"]["containers"].as_u64(), document["trace"]["maps"].as_u64()),
        (Some(320), Some(106))
    );
}

#[test]
fn a_script_takes_a_node_away_and_gives_it_back_and_says_what_it_does_not_know() {
    let files = Files::new();
    let (trace, shape) = (files.trace(), files.shape());
    let script = |body: &str| files.write("script.toml", format!("format = \"hintd.script/1\"\n{body}"));
    let run = |script: Option<&str>| {
        let mut args = vec!["--trace", &trace, "--cluster", &shape, "--policy", "fair"];
        args.extend(script.iter().flat_map(|script| ["--script", *script]));
        document(&args)["runs"][0].clone()
    };
    let node = "rack01-node01";
    let lost =
        script(&format!("[[events]]\nat_s = 8\nnode_down = \"{node}\"\n[[events]]\nat_s = 30\nnode_up = \"{node}\"\n"));
    let (whole, broken) = (run(None), run(Some(&lost)));
    assert_eq!(broken["jobs"], whole["jobs"], "every job ends");
    assert!(broken["mean_jct_s"].as_f64() > whole["mean_jct_s"].as_f64(), "{broken} {whole}");
    let path = files.path("script.toml");
    let refused = |body: &str, message: &str| {
        let script = script(body);
        let args = ["simulate", "--trace", &trace, "--cluster", &shape, "--policy", "fair", "--script", &script];
        assert_refused(&args, &format!("{}: {message}", path.display()));
    };
    refused(
        "[[events]]\nat_s = 8\nnode_down = \"rack01-node1\"\n",
        "events[0]: no node \"rack01-node1\"; did you mean \"rack01-node01\"?",
    );
    refused(
        "[[events]]\nat_s = 8\n",
        "events[0]: one of node_down, node_up, link_down, link_up, port_stuck, port_loose must stand there",
    );
    refused("[[events]]\nat_s = -1\nnode_up = \"x\"\n", "events[0]: at_s = -1: seconds from 0 on");
    refused(
        "[[background]]\nfrom_rack = \"/rack-01\"\nto_rack = \"/rack-9\"\nstreams = 1\n",
        "background[0]: no rack \"/rack-9\"; did you mean \"/rack-01\"?",
    );
}

#[test]
fn a_trace_that_can_be_read_only_once_is_refused() {
    let files = Files::new();
    let (folder, shape) = (files.folder.path().to_str().unwrap().to_owned(), files.shape());
    let args = ["simulate", "--trace", &folder, "--cluster", &shape, "--policy", "fair"];
    assert_refused(&args, &format!("{folder}: not a file; a simulation reads its trace once for each run"));
}

#[test]
fn delays_of_a_real_cluster_are_read_by_name_or_file_and_stand_in_the_document() {
    let files = Files::new();
    let (trace, shape) = (files.trace(), files.shape());
    let common =
        ["--trace", &trace, "--cluster", &shape, "--policy", "capacity", "--authority", "deployed", "--series"];
    let plain = document(&common);
    let delayed = document(&[&common[..], &["--delays", "small-cluster"]].concat());
    assert!(plain["settings"].get("delays").is_none(), "{}", plain["settings"]);
    assert_eq!(delayed["settings"]["delays"]["slow_start"], 1.0);
    assert_eq!(delayed["job_model"]["sigma"], 0.0);
    let mean = |run: &Value| run["runs"][0]["mean_jct_s"].as_f64().unwrap();
    assert!(mean(&delayed) > mean(&plain), "{} and {}", mean(&delayed), mean(&plain));
    let jobs = plain["runs"][0]["by_job"].as_array().unwrap();
    assert_eq!(jobs.len(), 3);
    assert_eq!(plain["runs"][0]["rack_bytes"].as_array().unwrap().len(), 2);
    let none = files.write("none.toml", "format = \"hintd.delays/1\"\n");
    assert_eq!(mean(&document(&[&common[..], &["--delays", &none]].concat())), mean(&plain));
    let wrong = files.write("wrong.toml", "format = \"hintd.delays/1\"\nwire = 0.5\n");
    for (name, message) in [
        ("large-cluster", "delays \"large-cluster\" are neither a file nor shipped; shipped are small-cluster"),
        (wrong.as_str(), "wire: 0.5: it must lie between 1 and 10"),
    ] {
        let output = hintctl(&[&["simulate"], &common[..], &["--delays", name]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(message), "{}", said(&output));
    }
}
