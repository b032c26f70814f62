//! Wall clocks that step under the program (libfaketime): leases last as long as they were granted for.

use crate::program::{Program, command, say, write_config_with};
use crate::world::{SOON, leased, request};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const LASTS: Duration = Duration::from_secs(3);

fn faketime() -> Option<PathBuf> {
    let places = ["x86_64-linux-gnu", "aarch64-linux-gnu", "."];
    let file = |place: &str| Path::new("/usr/lib").join(place).join("faketime/libfaketimeMT.so.1");
    let found = places.into_iter().map(file).find(|file| file.exists());
    if found.is_none() {
        say("SKIPPED: no libfaketime (Debian's package faketime)");
    }
    found
}

/// The program under a wall clock that a file moves; clocks that never step go on as they are.
async fn program(folder: &Path, port: u16, library: &Path) -> Program {
    let mut command = command(folder);
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", folder.join("clock"))
        .env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
    Program::run(&mut command, folder, port).await
}

/// Sets the clock so far from the true one, as "+1d".
fn step(folder: &Path, offset: &str) {
    std::fs::write(folder.join("clock"), offset).unwrap();
}

/// Asks for one lease and returns it.
async fn lease(program: &Program, id: &str) -> u64 {
    let answer = program.client.request_hints(request(id, 1, 1, 1_024), SOON).await.unwrap();
    leased(&answer).into_values().flatten().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_steps_make_leases_neither_immortal_nor_lost() {
    let Some(library) = faketime() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let further = [("leases", "time_to_live = \"3s\""), ("log", "level = \"warn\"")];
    let port = write_config_with(folder, &further);
    step(folder, "+0d");
    let first = program(folder, port, &library).await;
    let mut last = 0;
    for (number, offset) in ["+1d", "-1d", "+400d", "+0d"].into_iter().enumerate() {
        let (began, id) = (Instant::now(), lease(&first, &format!("r{number}")).await);
        assert!(id > last, "ids grow");
        last = id;
        step(folder, offset);
        tokio::time::sleep(LASTS / 3).await;
        let status = first.status().await;
        assert!(began.elapsed() >= LASTS || status.leases == 1, "{offset}: the lease is held: {status:?}");
        assert!(status.nodes_usable > 0, "{offset}: nodes are not silent");
        first.until("it ends", |status| status.leases == 0).await;
        let took = began.elapsed();
        assert!(took >= LASTS - Duration::from_millis(200), "{offset}: lost after {took:?}");
    }
    // A restart reads the wall clock: a lease that would hold for as long as the clock went back holds no longer than
    // it was granted for.
    let kept = lease(&first, "kept").await;
    assert!(kept > last);
    drop(first);
    step(folder, "-30d");
    let began = Instant::now();
    let second = program(folder, port, &library).await;
    let status = second.status().await;
    assert!(began.elapsed() >= LASTS || status.leases == 1, "not lost by a clock that went back: {status:?}");
    second.until("nor immortal", |status| status.leases == 0).await;
    let newer = lease(&second, "newer").await;
    assert!(newer > kept, "ids grow under a clock that went back: {newer} after {kept}");
    // The step was real: what the program logs carries the wall clock's date.
    second.signal("-TERM");
    let mut second = second;
    assert!(second.ended(SOON).await.success());
    let log = second.log();
    let today = Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
    let today = String::from_utf8(today).unwrap();
    let moved = |line: &str| line.contains("not ready") && !line.contains(today.trim());
    assert!(log.lines().any(moved), "{log}");
    // Forward over a restart can't be told from a long stop: leases end, early and never late.
    step(folder, "+1d");
    let third = program(folder, port, &library).await;
    assert_eq!(third.status().await.leases, 0);
    assert!(lease(&third, "newest").await > newer);
}
