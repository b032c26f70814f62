//! Exit codes and the streams that have output, by command and kind of input.

use crate::notes::Notes;
use crate::programs::{Daemon, Files, finish, hintctl, hintd, run, stopped, until};
use crate::world::{cluster, graph, network, with};
use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};

/// The lines of the list.
pub(crate) fn lines() -> Vec<String> {
    let mut seen = Seen::default();
    usage(&mut seen);
    offline(&mut seen);
    plans_and_traces(&mut seen);
    nobody_there(&mut seen);
    live(&mut seen);
    daemon(&mut seen);
    signals(&mut seen);
    seen.0
}

/// A network file.
const RACKS: &str = "format = \"hintd.racks/1\"\n[racks.\"*\"]\nuplink = \"10Gbit\"\n";

#[derive(Default)]
struct Seen(Vec<String>);

impl Seen {
    /// Runs `hintctl` and records the outcome under the words before the first option.
    fn add(&mut self, what: &str, args: &[&str]) {
        let name: Vec<&str> =
            args.iter().take_while(|arg| !arg.starts_with('-') && !arg.contains(['/', '.'])).copied().collect();
        self.take(&format!("hintctl {}", name.join(" ")), what, &finish(hintctl().args(args)));
    }

    fn take(&mut self, name: &str, what: &str, output: &Output) {
        // How far long runs are is said from a second on: on a slow machine more often.
        let progress = |line: &&[u8]| line.windows(11).any(|words| words == b"runs ended;");
        let told: Vec<u8> = output
            .stderr
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| !progress(line))
            .flatten()
            .copied()
            .collect();
        let streams: Vec<&str> = [("out", &output.stdout), ("err", &told)]
            .iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(name, _)| *name)
            .collect();
        let code = output.status.code().map_or("none (signal)".to_owned(), |code| code.to_string());
        let streams =
            if streams.is_empty() { "no output".to_owned() } else { format!("std{}", streams.join(" and std")) };
        self.0.push(format!("{}: {what}: exit code {code}, {streams}", name.trim()));
    }
}

fn usage(seen: &mut Seen) {
    seen.add("no arguments", &[]);
    seen.add("help", &["--help"]);
    seen.add("version", &["--version"]);
    seen.add("an unknown option", &["--levitate"]);
    seen.add("help", &["help"]);
    seen.add("an unknown command", &["levitate"]);
    for group in ["topology", "trace", "bench", "whatif", "network", "context"] {
        seen.add("no subcommand", &[group]);
        seen.add("an unknown subcommand", &[group, "levitate"]);
    }
    for command in [
        "place",
        "flows",
        "simulate",
        "worth",
        "plan",
        "request",
        "explain",
        "replay",
        "watch",
        "replicas",
        "snapshot",
        "calibrate",
    ] {
        seen.add("a required argument is missing", &[command]);
    }
    seen.add("a required argument is missing", &["plan", "submit"]);
    seen.add("a required argument is missing", &["whatif", "network"]);
    seen.add("not a number", &["nodes", "--limit", "x"]);
    seen.add("a column that is none", &["nodes", "--sort", "x"]);
    seen.add("a name that is none", &["context", "add", "a/b", "--address", "h:1"]);
    seen.add("no terminal", &["top"]);
    seen.add("a number out of bounds", &["bench", "noop", "--clients", "0"]);
    seen.add("not a pair", &["watch", "--pair", "a"]);
    seen.add("conflicting options", &["links", "--link", "l", "--down"]);
    seen.add("an option without the one it requires", &["watch", "--flows", "--resume-after", "1"]);
    seen.add("for bash", &["completions", "bash"]);
    seen.add("for an unknown shell", &["completions", "dash"]);
    seen.add("for the daemon", &["completions", "zsh", "--for", "hintd"]);
    seen.add("as JSON", &["completions", "bash", "--json"]);
    let files = Files::new();
    seen.add("into a folder", &["man", &files.path("man")]);
    seen.add("where a file is", &["man", &files.write("file", "")]);
}

/// A cluster file of six nodes with a network, and a function that writes a request for some containers.
fn documents(files: &Files) -> (String, impl Fn(u32, Value) -> String) {
    let node = |at: u32| {
        json!({
            "host": format!("r{}n{}", at / 2, at % 2), "rack": format!("/rack{}", at / 2), "memory_mb": 8_192,
            "vcores": 8,
        })
    };
    let network = with(graph(3, 2), json!({ "format": "hintd.network/1" }));
    let document =
        json!({ "format": "hintd.cluster/1", "nodes": (0..6).map(node).collect::<Vec<_>>(), "network": network });
    let cluster = files.json("cluster.json", &document);
    files.json("network.json", &document["network"]);
    let request = |count: u32, further: Value| {
        let group = json!({ "name": "g", "count": count, "size": { "memory_mb": 1_024, "vcores": 1 } });
        files.json("request.json", &with(json!({ "format": "hintd.request/1", "groups": [group] }), further))
    };
    (cluster, request)
}

fn offline(seen: &mut Seen) {
    let files = Files::new();
    let (cluster, request) = documents(&files);
    let good = request(2, json!({}));
    let place = |seen: &mut Seen, what: &str, cluster: &str, request: &str, further: &[&str]| {
        seen.add(what, &[&["place", "--cluster", cluster, "--request", request], further].concat());
    };
    place(seen, "valid", &cluster, &good, &[]);
    place(seen, "valid, as JSON", &cluster, &good, &["--json"]);
    place(seen, "a missing file", "/nonexistent.json", &good, &[]);
    place(seen, "an unknown file extension", &files.write("c.yaml", ""), &good, &[]);
    place(seen, "broken JSON", &files.write("broken.json", "{"), &good, &[]);
    place(
        seen,
        "an unknown field",
        &files.write("typo.json", "{\"format\":\"hintd.cluster/1\",\"nods\":[]}"),
        &good,
        &[],
    );
    place(seen, "an unknown format", &files.write("f.json", "{\"format\":\"hintd.cluster/99\"}"), &good, &[]);
    place(seen, "an unknown policy", &cluster, &good, &["--policy", "sprad"]);
    let node = json!({ "host": "full", "memory_mb": 1_024, "vcores": 1, "used": { "memory_mb": 1_024, "vcores": 1 } });
    let full = files.json("full.json", &json!({ "format": "hintd.cluster/1", "nodes": [node] }));
    let fails = request(1, json!({ "when_full": "fail" }));
    place(seen, "no room, when_full is fail", &full, &fails, &["--json"]);
    place(
        seen,
        "room for some, when_full is fail",
        &cluster,
        &request(49, json!({ "when_full": "fail" })),
        &["--json"],
    );
    let large = json!({ "groups": [{ "name": "g", "count": 1, "size": { "memory_mb": 1_000_000, "vcores": 1 } }] });
    place(seen, "larger than any node", &cluster, &request(1, large), &[]);
    networks(seen, &files);
    chains(seen, &files);
    seen.add("--list", &["reproduce", "--list"]);
    seen.add("an unknown experiment", &["reproduce", "cold-fusion"]);
    seen.add("--save without full scale", &["reproduce", "cross-layer-failure", "--save", &files.path("docs")]);
    seen.add("a missing trace", &["demo", "--trace", "/nonexistent.tsv"]);
    seen.add("nodes not a multiple of racks", &["demo", "--nodes", "41"]);
    seen.add("an unknown policy", &["demo", "--policy", "sprad"]);
}

fn networks(seen: &mut Seen, files: &Files) {
    let network = files.path("network.json");
    seen.add("valid", &["topology", "build", "tree", "-o", &files.path("tree.toml")]);
    seen.add("an unknown kind", &["topology", "build", "moebius", "-o", &files.path("x.json")]);
    seen.add("a missing folder", &["topology", "build", "tree", "-o", "/nonexistent/x.json"]);
    seen.add("an odd number of ports", &["topology", "build", "fat-tree", "--ports", "5", "-o", &files.path("x.json")]);
    seen.add("valid", &["topology", "check", &network]);
    let island = json!({
        "format": "hintd.network/1",
        "switches": [{ "name": "a", "tier": "edge" }, { "name": "b", "tier": "edge" }],
        "hosts": [{ "name": "h" }], "links": [],
    });
    seen.add("hosts without a link", &["topology", "check", &files.json("island.json", &island)]);
    seen.add("hosts without a link, as JSON", &["topology", "check", "--json", &files.path("island.json")]);
    seen.add("valid", &["topology", "paths", &network]);
    let lldp = files.write("n1.json", "{\"lldp\": {}}");
    let made = files.path("lldp.toml");
    seen.add("a host that hears no switch", &["network", "import", "--lldp", &lldp, "-o", &made]);
    seen.add("a missing file", &["flows", "/nonexistent.json"]);
}

fn chains(seen: &mut Seen, files: &Files) {
    let network = files.path("network.json");
    let chains = |at: &str| {
        json!({
            "boxes": [{ "name": "fw", "type": "FW", "at": at, "bits_per_s": 1_000_000_000 }],
            "chains": [{ "name": "c", "sequence": ["FW"] }],
        })
    };
    let check = |seen: &mut Seen, what: &str, file: &str, further: &[&str]| {
        seen.add(what, &[&["chains", "check", "--chains", file], further].concat());
    };
    let good = files.json("chains.json", &chains("c0"));
    check(seen, "valid, no network", &good, &[]);
    check(seen, "all can be met", &good, &["--network", &network]);
    check(seen, "a box at an unknown switch", &files.json("nowhere.json", &chains("c9")), &["--network", &network]);
    let dark = files.json(
        "dark.json",
        &with(
            chains("c0"),
            json!({ "boxes": [{ "name": "fw", "type": "FW", "at": "c0", "bits_per_s": 1_000, "up": false }] }),
        ),
    );
    check(seen, "its only box is down", &dark, &["--network", &network]);
    seen.add("a network without chains", &["chains", "check", "--network", &network]);
}

fn plans_and_traces(seen: &mut Seen) {
    let files = Files::new();
    let [trace, plan, other] = ["t.tsv", "plan.json", "other.json"].map(|name| files.path(name));
    seen.add("valid", &["trace", "generate", "--jobs", "6", "-o", &trace]);
    seen.add("a missing folder", &["trace", "generate", "--jobs", "6", "-o", "/nonexistent/t.tsv"]);
    seen.add("valid", &["trace", "check", &trace]);
    let bad = files.write("bad.tsv", "job0\t1\t1\t5\t5\t5\njob1\t2\t1\tmany\t5\t5\n");
    seen.add("a bad line", &["trace", "check", &bad]);
    seen.add("a bad line, skipped", &["trace", "check", "--skip-bad", &bad]);
    let simulate = |seen: &mut Seen, what: &str, trace: &str, cluster: &str, further: &[&str]| {
        seen.add(what, &[&["simulate", "--trace", trace, "--cluster", cluster], further].concat());
    };
    simulate(seen, "valid", &trace, "nas-40", &["--policy", "fair"]);
    simulate(seen, "valid, as JSON", &trace, "nas-40", &["--policy", "fair", "--json"]);
    simulate(seen, "a bad line", &bad, "nas-40", &["--policy", "fair"]);
    simulate(seen, "an unknown cluster", &trace, "nas-41", &["--policy", "fair"]);
    simulate(seen, "an unknown policy", &trace, "nas-40", &["--policy", "fare"]);
    simulate(seen, "an unknown parameter", &trace, "nas-40", &["--policy", "fair", "--param", "fair.x=1"]);
    let base = ["worth", "--trace", &trace, "--cluster", "nas-40", "--loads", "0.01", "--seeds", "1"];
    // Few runs: from a second on it says how far it is.
    let few = ["--policy", "spread", "--levers", "where", "--json"];
    seen.add("valid, as JSON", &[&base[..], &few].concat());
    seen.add("a policy that schedules", &[&base[..], &["--policy", "fair"]].concat());
    seen.add("a part that there is not", &[&base[..], &["--keep", &files.path("kept"), "--shard", "3/2"]].concat());
    let base = ["plan", "--trace", &trace, "--cluster", "jobpacker"];
    seen.add("valid", &[&base[..], &["-o", &plan]].concat());
    seen.add("a policy that does not plan", &[&base[..], &["--policy", "fair", "-o", &other]].concat());
    seen.add("a parameter without a value", &[&base[..], &["--param", "late_ms", "-o", &other]].concat());
    seen.add("chart and plan in the same file", &[&base[..], &["--force", "-o", &plan, "--gantt", &plan]].concat());
    seen.add("no cluster", &["plan", "--trace", &trace, "-o", &other]);
    seen.add("valid", &["plan", "check", &plan]);
    seen.add("on another cluster", &["plan", "check", &plan, "--cluster", "nas-40"]);
    seen.add("not a plan", &["plan", "check", &trace]);
    seen.add("equal plans", &["plan", "diff", &plan, &plan]);
    seen.add("a plan and a trace", &["plan", "diff", &plan, &trace]);
}

/// Commands without a running daemon.
fn nobody_there(seen: &mut Seen) {
    let files = Files::new();
    let (_, request) = documents(&files);
    let [trace, plan] = ["t.tsv", "plan.json"].map(|name| files.path(name));
    assert!(run(&["trace", "generate", "--jobs", "3", "-o", &trace]).status.success());
    assert!(run(&["plan", "--trace", &trace, "--cluster", "jobpacker", "-o", &plan]).status.success());
    let file = request(1, json!({}));
    let none = ["--address", "127.0.0.1:1", "--admin-socket", "/nonexistent/admin.sock"];
    let network = files.write("racks.toml", RACKS);
    let bundle = files.path("bundle");
    let commands: [&[&str]; 31] = [
        &["status"],
        &["doctor"],
        &["top", "--once"],
        &["nodes"],
        &["links"],
        &["decisions"],
        &["leases"],
        &["applications"],
        &["log-level"],
        &["bundle", "-o", &bundle],
        &["chains"],
        &["circuits"],
        &["policies"],
        &["reload"],
        &["snapshot", "-o", "/tmp/x.json"],
        &["calibrate", "--input-mb", "1", "--exchanged-mb", "1", "--containers", "1"],
        &["watch", "--flows"],
        &["replicas", "/x"],
        &["explain", "0000000000000001"],
        &["replay", "0000000000000001"],
        &["request", "--deadline-ms", "100", "--file", &file],
        &["whatif", "request", "--file", &file],
        &["whatif", "network", "--drain-link", "l"],
        &["network", "show"],
        &["network", "diff", &network],
        &["network", "load", &network],
        &["plan", "list"],
        &["plan", "submit", "--name", "p", &plan],
        &["bench", "load", "--seconds", "1"],
        &["bench", "feed", "--seconds", "1"],
        &["bench", "soak", "--minutes", "0.01"],
    ];
    for command in commands {
        seen.add("no daemon", &[command, &none].concat());
    }
    seen.add("not an address", &["watch", "--flows", "--address", "no address"]);
    seen.add("another file extension than .json", &["snapshot", "-o", "now.toml", "--admin-socket", "/nonexistent"]);
}

/// Commands against a running daemon.
fn live(seen: &mut Seen) {
    let notes = Notes::default();
    let daemon = Daemon::start("");
    let _beats = cluster(&daemon, &notes, (2, 2), 8_192);
    let _net = network(&daemon, &notes, (2, 2));
    let (_, request) = documents(&daemon.files);
    let file = request(2, json!({}));
    let [now, bundle] = ["now.json", "bundle"].map(|name| daemon.files.path(name));
    let mut add = |what: &str, args: &[&str]| {
        let address = ["--address", &daemon.address, "--admin-socket", &daemon.socket];
        seen.add(what, &[args, &address].concat());
    };
    for command in [
        &["status"][..],
        &["status", "--live"],
        &["nodes"],
        &["links"],
        &["decisions"],
        &["leases", "-o", "yaml"],
        &["applications", "-o", "wide"],
        &["log-level"],
        &["bundle", "-o", &bundle],
        &["network", "show"],
        &["chains"],
        &["circuits"],
        &["policies"],
        &["reload"],
        &["plan", "list"],
    ] {
        add("running daemon", command);
    }
    add("running daemon, as JSON", &["status", "--json"]);
    add("--watch without a terminal", &["nodes", "--watch"]);
    add("the folder is there already", &["bundle", "-o", &bundle]);
    add("a wrong level", &["log-level", "loud"]);
    add("running daemon", &["top", "--once", "--every", "0.1"]);
    add("running daemon", &["snapshot", "-o", &now]);
    add("running daemon", &["calibrate", "--input-mb", "1", "--exchanged-mb", "1", "--containers", "1"]);
    add("running daemon", &["request", "--file", &file]);
    add("running daemon", &["whatif", "request", "--file", &file]);
    add("running daemon", &["whatif", "network", "--drain-switch", "c0"]);
    add("running daemon", &["replicas", "/x"]);
    add("running daemon", &["chains", "check"]);
    add("a file that differs", &["network", "diff", &daemon.files.write("racks.toml", RACKS)]);
    add("a wrong file", &["network", "diff", &daemon.files.write("wrong-racks.toml", "format = \"hintd.racks/9\"\n")]);
    add("no file is configured", &["network", "load", &daemon.files.path("racks.toml")]);
    add("--count 1", &["watch", "--flows", "--count", "1"]);
    add("--seconds 1", &["watch", "--circuits", "--seconds", "1"]);
    add("an unknown decision", &["explain", "0000000000000000"]);
    add("an unknown decision, as JSON", &["explain", "0000000000000000", "--json"]);
    add("no id", &["explain", "what"]);
    daemon.rewrite("[leases]\ntime_to_live = \"1\"");
    add("a wrong configuration", &["reload"]);
    closed_pipe(seen, &daemon);
    interrupted(seen, &daemon);
}

/// The reader of standard output has closed it.
fn closed_pipe(seen: &mut Seen, daemon: &Daemon) {
    let mut child =
        hintctl().args(daemon.args(&["nodes"])).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    seen.take("hintctl nodes", "standard output is closed", &output);
}

/// A watch that is interrupted, and one whose daemon stops.
fn interrupted(seen: &mut Seen, daemon: &Daemon) {
    let watch = |stop: &dyn Fn(u32)| stopped(hintctl().args(daemon.args(&["watch", "--circuits"])), stop);
    let interrupt = |id: u32| assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
    seen.take("hintctl watch", "interrupted", &watch(&interrupt));
    seen.take("hintctl watch", "the daemon stops", &watch(&|_| daemon.signal("-TERM")));
}

/// Calls of `hintd` that end by themselves.
fn daemon(seen: &mut Seen) {
    let files = Files::new();
    let mut run = |what: &str, args: &[&str]| {
        let output = finish(hintd().args(args));
        seen.take("hintd", what, &output);
    };
    run("help", &["--help"]);
    run("version", &["--version"]);
    run("an unknown option", &["--levitate"]);
    run("a missing file", &["--config", "/nonexistent.toml"]);
    let shipped = crate::programs::root().join("config/hintd.toml");
    run("--check of the shipped file", &["--check", "--config", shipped.to_str().unwrap()]);
    let wrong = files.write("wrong.toml", "[leases]\ntime_to_life = \"1h\"\n");
    run("--check of a wrong file", &["--check", "--config", &wrong]);
    run("a wrong file", &["--config", &wrong]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let start = |grpc: &str, journal: &str, socket: &str| {
        let text = format!(
            "[listen]\ngrpc = \"{grpc}\"\nmetrics = \"\"\nadmin_socket = {socket:?}\n[store]\npath = {journal:?}\n"
        );
        files.write("start.toml", &text)
    };
    let (journal, socket) = (files.path("journal.redb"), files.path("admin.sock"));
    run("an address in use", &["--config", &start(&format!("127.0.0.1:{port}"), &journal, &socket)]);
    let text = files.write("text.redb", "this is no journal");
    run("not a journal", &["--config", &start("127.0.0.1:0", &text, &socket)]);
    run("a file in place of the socket", &["--config", &start("127.0.0.1:0", &journal, &text)]);
    run("an address beyond loopback", &["--config", &start("0.0.0.0:0", &journal, &socket)]);
}

/// Signals, and a second daemon on the same socket or journal.
fn signals(seen: &mut Seen) {
    for signal in ["-TERM", "-INT"] {
        let mut daemon = Daemon::start("");
        daemon.signal(signal);
        let code = daemon.ended();
        seen.0.push(format!("hintd: SIG{}: exit code {}", &signal[1..], code.expect("it ends in order")));
    }
    let daemon = Daemon::start("");
    for (what, socket, journal) in [
        ("socket in use by another daemon", "admin.sock", "other.redb"),
        ("journal in use by another daemon", "other.sock", "journal.redb"),
    ] {
        let text = format!(
            "[listen]\ngrpc = \"127.0.0.1:0\"\nmetrics = \"\"\nadmin_socket = {:?}\n[store]\npath = {:?}\n",
            daemon.files.path(socket),
            daemon.files.path(journal)
        );
        let file = daemon.files.write("second.toml", &text);
        seen.take("hintd", what, &finish(hintd().args(["--config", &file])));
    }
    let before = daemon.status()["config_generation"].clone();
    daemon.rewrite("[leases]\ntime_to_live = \"2h\"");
    daemon.signal("-HUP");
    until("the configuration was read again", || (daemon.status()["config_generation"] != before).then_some(()));
    daemon.rewrite("[leases]\ntime_to_live = \"2\"");
    daemon.signal("-HUP");
    let refused = |status: &Value| status["counters"]["reloads_refused"].as_u64() >= Some(1);
    let status = daemon.until("a wrong file is refused", refused);
    assert!(status["not_ready_reason"].as_str().is_some_and(|why| why.contains("no node")), "{status}");
    seen.0.push("hintd: SIGHUP: reads its configuration again; a wrong one changes nothing".to_owned());
}
