//! Logs that nobody reads, that a full disk refuses, and signals that come before the daemon stands: all else goes on.

use crate::fault_store::Disk;
use crate::program::{Program, command, free_address, page, rewrite_config, say, write_config_with};
use crate::world::{SOON, request};
use hintd_client::ClientError;
use hintd_client::wire::v1;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Requests while nobody reads: the daemon of before stopped at some 300.
const REQUESTS: u32 = 6_000;
/// Of them asked at a time.
const CLIENTS: u32 = 8;

/// A daemon that logs a lot into a pipe, and its metrics' address.
async fn into_pipe(folder: &Path) -> (Program, std::io::PipeReader, SocketAddr) {
    let metrics = free_address();
    let listen = format!("metrics = \"{metrics}\"");
    // Each call is some dozens of lines of HTTP/2's.
    let port = write_config_with(folder, &[("log", "level = \"debug\""), ALL_LINES, ("listen", &listen)]);
    let (reader, writer) = std::io::pipe().unwrap();
    let program = Program::logging(&mut command(folder), folder, port, Stdio::from(writer)).await.unwrap();
    (program, reader, metrics)
}

/// Every request is told of.
const ALL_LINES: (&str, &str) = ("limits", "log_lines_per_s = 0");

/// Requests that are refused, each with its lines of log; all are answered.
async fn flood(program: &Program, requests: u32) {
    let client = |first: u32| {
        let client = program.client.clone();
        async move {
            for n in (first..requests).step_by(CLIENTS as usize) {
                let refused = client.request_hints(request(&format!("r{n}"), n + 1, 0, 1_024), SOON).await;
                assert!(matches!(refused, Err(ClientError::Refused { .. })), "{n}: {refused:?}");
            }
        }
    };
    let clients: Vec<_> = (0..CLIENTS).map(|first| tokio::spawn(client(first))).collect();
    for client in clients {
        client.await.unwrap();
    }
}

async fn dropped(metrics: SocketAddr) -> u64 {
    let page = page(metrics, "/metrics").await;
    let line = page.lines().find_map(|line| line.strip_prefix("hintd_log_lines_dropped_total "));
    line.expect("it is there from the start").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_holds_up_nothing_and_says_later_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut program, mut reader, metrics) = into_pipe(folder.path()).await;
    let _feed = program.register(0..2).await;
    flood(&program, REQUESTS).await;
    assert!(page(metrics, "/healthz").await.ends_with("alive\n"));
    assert!(page(metrics, "/readyz").await.ends_with("ready\n"));
    program.client.request_hints(request("good", 1, 1, 1_024), SOON).await.unwrap();
    let counted = dropped(metrics).await;
    assert!(counted > 0, "more lines came than may wait");
    assert!(program.status().await.counters["log_lines_dropped"] >= counted);
    // Somebody reads again: what waited comes, and how much is missing.
    let reading = std::thread::spawn(move || {
        let (mut text, mut piece) = (String::new(), vec![0; 1 << 16]);
        while !text.contains("log lines dropped") {
            let read = reader.read(&mut piece).unwrap();
            assert!(read > 0, "it ended without a word about them");
            text += &String::from_utf8_lossy(&piece[..read]);
        }
        (text, reader)
    });
    let began = Instant::now();
    while !reading.is_finished() {
        assert!(began.elapsed() < SOON, "nothing tells of lines that are missing");
        program.status().await; // each call is lines
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (text, _reader) = reading.join().unwrap();
    let told = text.lines().find(|line| line.contains("log lines dropped")).unwrap();
    assert!(told.contains(" WARN "), "{told}");
    say(&format!("{REQUESTS} requests; {counted} lines dropped; \"{told}\""));
    // And it ends in time while nobody reads, with all buffers full.
    flood(&program, REQUESTS / 2).await;
    let began = Instant::now();
    program.signal("-TERM");
    let status = program.ended(2 * SOON).await;
    assert!(status.success() && began.elapsed() < SOON, "{status} {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_on_a_full_disk_costs_lines_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = free_address();
    let listen = format!("metrics = \"{metrics}\"");
    let port = write_config_with(folder.path(), &[("log", "level = \"info\""), ALL_LINES, ("listen", &listen)]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap(); // every write: ENOSPC
    let mut command = command(folder.path());
    let mut program = Program::logging(&mut command, folder.path(), port, full.into()).await.unwrap();
    let _feed = program.register(0..2).await;
    flood(&program, 100).await;
    program.client.request_hints(request("good", 1, 1, 1_024), SOON).await.unwrap();
    assert!(program.status().await.ready);
    let began = Instant::now();
    while dropped(metrics).await < 100 {
        assert!(began.elapsed() < SOON, "each refused request is a line that could not be written");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    program.signal("-TERM");
    assert!(program.ended(SOON).await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_termination_while_it_starts_is_heeded_in_order() {
    let folder = tempfile::tempdir().unwrap();
    write_config_with(folder.path(), &[]);
    let disk = Disk::new(folder.path());
    disk.be("slow 700"); // the journal is made for some seconds
    let (library, orders) = disk.preload();
    let mut command = command(folder.path());
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut child = command.env("LD_PRELOAD", library).env("FAULTY_DISK", orders).stderr(log).spawn().unwrap();
    let began = Instant::now();
    let is_making = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with("journal.redb"))
    };
    while !is_making() {
        assert!(began.elapsed() < 3 * SOON, "it makes no journal");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap().success());
    disk.be("ok");
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < 6 * SOON, "it did not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}: {}", std::fs::read_to_string(folder.path().join("log")).unwrap());
    assert!(!folder.path().join("admin.sock").exists(), "it left its socket behind");
}

/// Starts the program with so many descriptors.
fn with_descriptors(folder: &Path, most: u32) -> Command {
    let mut shell = Command::new("sh");
    let script = format!("ulimit -n {most}; exec \"$0\" --config \"$1\"");
    shell.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_hintd")).arg(folder.join("hintd.toml"));
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn too_few_descriptors_are_refused_by_number_and_few_bound_its_connections() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config_with(folder.path(), &[]);
    let refused = with_descriptors(folder.path(), 64).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("64 open files") && said.contains("192"), "{said}");
    rewrite_config(folder.path(), port, &[("log", "level = \"warn\"")]);
    let program = Program::bare(&mut with_descriptors(folder.path(), 200), folder.path(), port).await;
    let _feed = program.register(0..2).await;
    // More connections than descriptors: those beyond are closed, the daemon goes on.
    let flood: Vec<_> = (0..300).filter_map(|_| std::net::TcpStream::connect(&program.address).ok()).collect();
    program.client.request_hints(request("r", 1, 1, 1_024), SOON).await.unwrap();
    // The system takes connections before the daemon has looked at them.
    let closed = |status: &v1::StatusResponse| status.counters.get("connections_closed").copied().unwrap_or(0) > 0;
    assert!(program.until("some are closed", closed).await.ready);
    program.until_logged("more than open files allow").await;
    drop(flood);
}
