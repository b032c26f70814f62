//! The real program as a child process: its configuration, its start, signals, memory and end.

use crate::world::{SOON, config_text, hello, register};
use hintd_client::wire::v1;
use hintd_client::{AdminClient, Client, FeedSender, admin};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Nodes that a program's cluster has unless a test says otherwise, `r0n0` and so on.
pub(crate) const NODES: u32 = 40;
/// Memory of each, MB: more than any test fills.
pub(crate) const NODE_MB: i64 = 1 << 20;

/// A busy machine starts a debug build late; what takes longer than this hangs.
const START: Duration = Duration::from_secs(60);

/// The program on a folder; killed when dropped.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
    pub(crate) address: String,
    pub(crate) client: Client,
    pub(crate) admin: AdminClient,
    _feed: Option<FeedSender<v1::HeartbeatItem>>,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill(); // SIGKILL
        let _ = self.child.wait();
    }
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

/// The program's command line on a folder's `hintd.toml`.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hintd"));
    command.arg("--config").arg(folder.join("hintd.toml"));
    command
}

impl Program {
    /// Starts it and registers its nodes.
    pub(crate) async fn start(folder: &Path, port: u16) -> Self {
        Self::run(&mut command(folder), folder, port).await
    }

    /// Starts a command that becomes the program, and registers its nodes.
    pub(crate) async fn run(command: &mut Command, folder: &Path, port: u16) -> Self {
        let mut program = Self::bare(command, folder, port).await;
        program._feed = Some(program.register(0..NODES).await);
        program
    }

    /// Starts a command that becomes the program, with nothing fed.
    pub(crate) async fn bare(command: &mut Command, folder: &Path, port: u16) -> Self {
        let started = Self::attempt(command, folder, port).await;
        started.unwrap_or_else(|status| panic!("it ended with {status}: {}", read(&folder.join("log"))))
    }

    /// The same where it may end by itself instead.
    pub(crate) async fn attempt(command: &mut Command, folder: &Path, port: u16) -> Result<Self, ExitStatus> {
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
        Self::logging(command, folder, port, stderr.into()).await
    }

    /// The same with its standard error somewhere else than in the folder's `log`.
    pub(crate) async fn logging(
        command: &mut Command,
        folder: &Path,
        port: u16,
        stderr: Stdio,
    ) -> Result<Self, ExitStatus> {
        let log = folder.join("log");
        let mut child = command.stderr(stderr).spawn().unwrap();
        let (began, address) = (Instant::now(), format!("127.0.0.1:{port}"));
        // The sockets are bound one after the other and before the journal is read: it is there when it answers.
        let (client, admin) = loop {
            if let Some(status) = child.try_wait().unwrap() {
                return Err(status);
            }
            if let (Ok(client), Ok(mut admin)) =
                (crate::world::connect(&address).await, admin(&folder.join("admin.sock")).await)
                && admin.status(v1::StatusRequest {}).await.is_ok()
            {
                break (client, admin);
            }
            assert!(began.elapsed() < START, "no answer: {}", read(&log));
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        Ok(Self { child, log, address, client, admin, _feed: None })
    }

    /// Registers nodes and waits until they count.
    pub(crate) async fn register(&self, nodes: std::ops::Range<u32>) -> FeedSender<v1::HeartbeatItem> {
        let (mut feed, usable) = (self.client.feed(hello()).await.unwrap(), nodes.end);
        for node in nodes {
            feed.send(register(&format!("r0n{node}"), "/rack0", NODE_MB)).await.unwrap();
        }
        feed.await_acknowledged().await.unwrap();
        self.until("its nodes are there", |status| status.nodes_usable >= usable).await;
        feed
    }

    pub(crate) async fn status(&self) -> v1::StatusResponse {
        self.admin.clone().status(v1::StatusRequest {}).await.unwrap().into_inner()
    }

    /// Polls status until it is as wanted.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&v1::StatusResponse) -> bool) -> v1::StatusResponse {
        let began = Instant::now();
        loop {
            let status = self.status().await;
            if wanted(&status) {
                return status;
            }
            assert!(began.elapsed() < SOON, "not in time: {what}; {status:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory, bytes.
    pub(crate) fn resident(&self) -> u64 {
        hintd::telemetry::process::resident_bytes(self.pid()).unwrap()
    }

    /// All that it and its forerunners on the folder logged.
    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits until it has logged these words: lines are written by a thread of their own.
    pub(crate) async fn until_logged(&self, words: &str) {
        let began = Instant::now();
        while !self.log().contains(words) {
            assert!(began.elapsed() < SOON, "{words:?} is not in {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends a signal, as `-TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(name).arg(self.pid().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self, within: Duration) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < within, "it did not end: {}", self.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A port of 127.0.0.1 for a daemon that starts later, or starts again. Below those that the system gives to whoever asks for
/// any (32768 and more), and never the same twice: nobody else takes it in the meantime.
pub(crate) fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const PORTS: u16 = 12_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Another process that runs these tests begins elsewhere, more ports away than one needs.
    let begin = u16::try_from(std::process::id().wrapping_mul(127) % u32::from(PORTS)).unwrap();
    for _ in 0..PORTS {
        let port = FIRST + (begin + TAKEN.fetch_add(1, Ordering::Relaxed) % PORTS) % PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}

/// The same as an address, for a page of metrics.
pub(crate) fn free_address() -> std::net::SocketAddr {
    ([127, 0, 0, 1], free_port()).into()
}

/// A configuration with long leases and patience with silent nodes; returns the port it names.
pub(crate) fn write_config(folder: &Path) -> u16 {
    write_config_with(folder, &[])
}

/// The same with further lines.
pub(crate) fn write_config_with(folder: &Path, further: &[(&'static str, &str)]) -> u16 {
    let port = free_port();
    rewrite_config(folder, port, further);
    port
}

/// The same for a port that is in use.
pub(crate) fn rewrite_config(folder: &Path, port: u16, further: &[(&'static str, &str)]) {
    let usual = [("leases", "time_to_live = \"1h\""), ("log", "level = \"error\"")];
    let mut extra: Vec<_> = usual.map(|(section, line)| (section, line.to_owned())).into();
    extra.extend(further.iter().map(|(section, line)| (*section, (*line).to_owned())));
    // By renaming: a signal of a moment ago may be read now, and half a file of defaults is a sound one.
    std::fs::write(folder.join("hintd.new"), config_text(folder, port, &extra)).unwrap();
    std::fs::rename(folder.join("hintd.new"), folder.join("hintd.toml")).unwrap();
}

/// The whole answer to a GET of a page.
pub(crate) async fn page(address: std::net::SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut answer = String::new();
    let read = async {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_to_string(&mut answer).await.unwrap();
    };
    tokio::time::timeout(SOON, read).await.expect("the page comes");
    answer
}

/// A word for whoever reads a test's output: what was counted, or why nothing was.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stderr();
    writeln!(out, "{line}").unwrap();
}
