//! Runs the two programs: command lines with their output, and daemons on free ports.

use crate::grpc::{Place, SOON, unary};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The pause between two checks of a condition.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The project folder. Found at run time, because the checkout may have moved since the build, and above the package
/// folder if the package is only part of the project.
pub(crate) fn root() -> PathBuf {
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = package.ancestors().find(|folder| folder.join("tests/golden").is_dir());
    root.unwrap_or_else(|| panic!("no tests/golden above {}", package.display())).to_owned()
}

/// The path of a program: in the folder named by the environment, otherwise as built with this test.
fn program(name: &str, built: Option<&str>) -> PathBuf {
    match std::env::var_os("HINTD_GOLDEN_PROGRAMS") {
        Some(folder) => PathBuf::from(folder).join(name),
        None => built.expect("built with the package, or HINTD_GOLDEN_PROGRAMS names a folder").into(),
    }
}

fn bare(name: &str, built: Option<&str>) -> Command {
    let mut command = Command::new(program(name, built));
    // The caller's environment must not influence the result.
    let set = [
        "HINTD_ADDRESS",
        "HINTD_ADMIN_SOCKET",
        "HINTD_CONTEXT",
        "HINTD_DATA",
        "HINTD_SECRET_FILE",
        "HINTD_TOKEN",
        "RUST_LOG",
        "COLUMNS",
    ];
    for name in set {
        command.env_remove(name);
    }
    // Its secret is not the caller's.
    command.envs(["XDG_STATE_HOME", "XDG_CONFIG_HOME"].map(|name| (name, env!("CARGO_TARGET_TMPDIR"))));
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// A `hintctl` command without arguments.
pub(crate) fn hintctl() -> Command {
    bare("hintctl", option_env!("CARGO_BIN_EXE_hintctl"))
}

/// A `hintd` command without arguments.
pub(crate) fn hintd() -> Command {
    bare("hintd", option_env!("CARGO_BIN_EXE_hintd"))
}

/// Runs `hintctl` with these arguments.
pub(crate) fn run(args: &[&str]) -> Output {
    finish(hintctl().args(args))
}

/// Runs a command to its end; panics if it takes too long.
pub(crate) fn finish(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = drained(child.stdout.take().unwrap());
    let err = drained(child.stderr.take().unwrap());
    let status = ended(&mut child, command);
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

/// Runs a command to its first line of output, calls `stop` with its process id, and waits for its end.
pub(crate) fn stopped(command: &mut Command, stop: impl FnOnce(u32)) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stream = BufReader::new(child.stdout.take().unwrap());
    let err = drained(child.stderr.take().unwrap());
    let (heard, first) = mpsc::channel();
    let out = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_until(b'\n', &mut bytes).unwrap();
        let _ = heard.send(());
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    });
    if first.recv_timeout(SOON).is_err() {
        let _ = child.kill();
        panic!("it writes nothing: {command:?}");
    }
    stop(child.id());
    let status = ended(&mut child, command);
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

fn ended(child: &mut Child, command: &Command) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > SOON {
            let _ = child.kill();
            panic!("it does not end: {command:?}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn drained(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Standard output and error as text.
pub(crate) fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The JSON documents that a command prints, even if it fails.
pub(crate) fn documents(args: &[&str]) -> Vec<Value> {
    let output = run(&[&["--json"], args].concat());
    let (out, err) = said(&output);
    let found: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&out).into_iter().collect();
    let found = found.unwrap_or_else(|error| panic!("{args:?}: {error} in {out}"));
    assert!(!found.is_empty(), "{args:?} prints no JSON: {err}");
    found
}

/// The JSON document of a command that must succeed.
pub(crate) fn document(args: &[&str]) -> Value {
    let output = run(&[&["--json"], args].concat());
    let (out, err) = said(&output);
    assert!(output.status.success(), "{args:?}: {out}{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error} in {out}"))
}

/// A temporary folder.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn json(&self, name: &str, value: &Value) -> String {
        self.write(name, &value.to_string())
    }
}

/// Polls until `look` returns something; panics if it takes too long.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < SOON, "not in time: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A running `hintd` with its own folder; killed when dropped.
pub(crate) struct Daemon {
    pub(crate) files: Files,
    child: Child,
    pub(crate) address: String,
    pub(crate) socket: String,
    metrics: String,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both are held until both are known: else they may be one.
fn free_ports() -> [u16; 2] {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.each_ref().map(|listener| listener.local_addr().unwrap().port())
}

impl Daemon {
    /// Starts a daemon with additional configuration sections.
    pub(crate) fn start(extra: &str) -> Self {
        let files = Files::new();
        let socket = files.path("admin.sock");
        Self::start_at(files, extra, &socket)
    }

    /// Starts a daemon with this folder and socket; tries other ports if one is taken in the meantime.
    pub(crate) fn start_at(files: Files, extra: &str, socket: &str) -> Self {
        let mut files = files;
        for _ in 0..20 {
            match Self::attempt(files, extra, socket) {
                Ok(daemon) => return daemon,
                Err((again, log)) => {
                    assert!(log.contains("in use"), "hintd does not start: {log}");
                    files = again;
                }
            }
        }
        panic!("no port stays free");
    }

    fn attempt(files: Files, extra: &str, socket: &str) -> Result<Self, (Files, String)> {
        let [grpc, metrics] = free_ports().map(|port| format!("127.0.0.1:{port}"));
        files.write("hintd.toml", &configuration(&files, &grpc, &metrics, extra));
        let log = std::fs::File::create(files.path("log")).unwrap();
        let mut command = hintd();
        command.args(["--config", &files.path("hintd.toml")]).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        loop {
            if child.try_wait().unwrap().is_some() {
                let log = std::fs::read_to_string(files.path("log")).unwrap();
                return Err((files, log));
            }
            // The metrics page comes last, after the admin socket and the gRPC address.
            let answers = unary(&Place::Unix(socket.into()), "/hintd.v1.Admin/Status", &json!({})).is_ok();
            if answers && TcpStream::connect(&metrics).is_ok() {
                return Ok(Self { files, child, address: grpc, socket: socket.to_owned(), metrics });
            }
            assert!(began.elapsed() < SOON, "hintd does not answer");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub(crate) fn grpc(&self) -> Place {
        Place::Tcp(self.address.clone())
    }

    pub(crate) fn admin(&self) -> Place {
        Place::Unix((&self.socket).into())
    }

    /// These arguments after those that name this daemon.
    pub(crate) fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["--address", &self.address, "--admin-socket", &self.socket], args].concat()
    }

    /// The JSON document of a command that must succeed.
    pub(crate) fn document(&self, args: &[&str]) -> Value {
        document(&self.args(args))
    }

    /// The status message.
    pub(crate) fn status(&self) -> Value {
        unary(&self.admin(), "/hintd.v1.Admin/Status", &json!({})).unwrap()
    }

    /// Polls the status until it matches.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until(what, || Some(self.status()).filter(|status| wanted(status)))
    }

    /// Replaces the additional configuration sections.
    pub(crate) fn rewrite(&self, extra: &str) {
        let text = configuration(&self.files, &self.address, &self.metrics, extra);
        self.files.write("hintd.new", &text);
        std::fs::rename(self.files.path("hintd.new"), self.files.path("hintd.toml")).unwrap();
    }

    /// Replaces them and reloads. The daemon's file watcher may be faster than this call.
    pub(crate) fn reload(&self, extra: &str) {
        self.rewrite(extra);
        self.document(&["reload"]);
    }

    /// Head and body of a page at the metrics address.
    pub(crate) fn page(&self, path: &str) -> (String, String) {
        page(&self.metrics, "GET", path)
    }

    pub(crate) fn metrics(&self) -> &str {
        &self.metrics
    }

    /// Sends a signal such as `-TERM`. Waits for the signal handlers first: the daemon answers calls before it installs
    /// them.
    pub(crate) fn signal(&self, name: &str) {
        const HUP_INT_TERM: u64 = 0x4003;
        let status = format!("/proc/{}/status", self.child.id());
        until("signals are caught", || {
            let text = std::fs::read_to_string(&status).unwrap();
            let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
            (caught & HUP_INT_TERM == HUP_INT_TERM).then_some(())
        });
        assert!(Command::new("kill").arg(name).arg(self.child.id().to_string()).status().unwrap().success());
    }

    /// Waits for the daemon to end and returns the exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let child = &mut self.child;
        until("the daemon's end", || child.try_wait().unwrap()).code()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.files.path("log")).unwrap_or_default()
    }
}

/// Head and body of a page over plain HTTP.
pub(crate) fn page(address: &str, method: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// A configuration with long time limits, so that a slow machine changes nothing: in most stories nodes report once.
fn configuration(files: &Files, grpc: &str, metrics: &str, extra: &str) -> String {
    let base = [
        ("listen", format!("grpc = \"{grpc}\"")),
        ("listen", format!("metrics = \"{metrics}\"")),
        ("listen", format!("admin_socket = {:?}", files.path("admin.sock"))),
        ("listen", "drain = \"1s\"".to_owned()),
        ("store", format!("path = {:?}", files.path("journal.redb"))),
        ("leases", "time_to_live = \"1h\"".to_owned()),
        ("model", "stale_after = \"1h\"".to_owned()),
        ("model", "lost_after = \"2h\"".to_owned()),
        ("model.max_age", "heartbeats = \"24h\"".to_owned()),
        ("model.max_age", "link_stats = \"24h\"".to_owned()),
        ("model.max_age", "latency = \"24h\"".to_owned()),
        ("routes", "ack_timeout = \"1h\"".to_owned()),
        ("placer", "deadline_default = \"30s\"".to_owned()),
        ("placer", "guard = false".to_owned()),
        ("yarn", "maximum_memory_mb = 65536".to_owned()),
        ("yarn", "maximum_vcores = 64".to_owned()),
        ("policy", "default = \"spread\"".to_owned()),
    ];
    merged(base.iter().map(|(section, line)| (*section, line.as_str())), extra)
}

/// Merges configuration sections; lines in `extra` replace those with the same key.
fn merged<'t>(base: impl Iterator<Item = (&'t str, &'t str)>, extra: &'t str) -> String {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |section: &str, line: &str| {
        let at = sections.iter().position(|(known, _)| known == section).unwrap_or_else(|| {
            sections.push((section.to_owned(), Vec::new()));
            sections.len() - 1
        });
        let key = |line: &str| line.split('=').next().unwrap().trim().to_owned();
        sections[at].1.retain(|known| key(known) != key(line));
        sections[at].1.push(line.to_owned());
    };
    base.for_each(|(section, line)| add(section, line));
    let mut section = "";
    for line in extra.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) if !name.contains('[') => section = name,
            _ => add(section, line),
        }
    }
    sections.iter().fold(String::new(), |mut text, (name, lines)| {
        let _ = writeln!(text, "[{name}]\n{}\n", lines.join("\n"));
        text
    })
}
