//! `kill -9` of the real program under load: every answered lease is there afterwards, none twice.

use crate::load::{Account, Stop, joined};
use crate::program::{Program, say, write_config};
use crate::world::{SOON, leased, request};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Kills where `HINTD_KILLS` names no number.
const KILLS: u32 = 6;
const CLIENTS: u32 = 8;

#[tokio::test(flavor = "multi_thread")]
async fn after_kill_nine_every_answered_lease_is_there_and_none_twice() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let account = Account::default();
    let kills = std::env::var("HINTD_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut unanswered = 0;
    for round in 0..kills {
        let program = Program::start(folder.path(), port).await;
        account.check(&program, round.saturating_sub(1)).await;
        let before = account.counts().0;
        let clients = account.load(&program.client, CLIENTS, round, &Stop::default());
        account.until_answered(before + 8).await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(5..150))).await;
        drop(program); // SIGKILL
        joined(clients).await;
        unanswered += account.counts().1;
    }
    let program = Program::start(folder.path(), port).await;
    account.check(&program, 0).await;
    let (answered, _) = account.counts();
    assert!(answered > 4 * kills as usize, "there was load: {answered} requests");
    assert!(unanswered > 0, "kills hit requests in flight");
    let leases = account.leases();
    say(&format!(
        "{kills} kills, {answered} requests, {unanswered} in flight at a kill, {leases} leases, 0 lost, 0 twice"
    ));
}

/// Starts the program with files bounded to `blocks` of 512 bytes, as on a disk that fills up.
async fn bounded(folder: &Path, port: u16, blocks: u32) -> Program {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" --config \"$1\"");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_hintd")).arg(folder.join("hintd.toml"));
    Program::run(&mut shell, folder, port).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_unavailable_and_unready_and_what_was_answered_stays() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    drop(Program::start(folder.path(), port).await);
    let bytes = std::fs::metadata(folder.path().join("journal.redb")).unwrap().len();
    let program = bounded(folder.path(), port, u32::try_from(bytes / 512).unwrap()).await;
    let mut answered = BTreeSet::new();
    let mut refused = None;
    for n in 0..3_000 {
        let wire = request(&format!("d{n}"), n + 1, 30, 1_024);
        match program.client.request_hints(wire, Duration::from_secs(2)).await {
            Ok(answer) => answered.extend(leased(&answer).into_values().flatten()),
            Err(error) => {
                refused = Some((n, error.to_string()));
                break;
            }
        }
    }
    let (at, error) = refused.expect("the disk fills up");
    assert!(error.contains("journal can't be written"), "request {at}: {error}");
    // Its own small attempt may find room where an answer does not: then it says ready, until the next is refused.
    let more = program.client.request_hints(request("more", 1, 30, 1_024), Duration::from_secs(3));
    let unready = program.until("it is not ready", |status| status.not_ready_reason.contains("journal"));
    let (more, status) = tokio::join!(more, unready);
    assert!(!status.ready, "{status:?}");
    answered.extend(more.into_iter().flat_map(|answer| leased(&answer).into_values().flatten()));
    let promised = answered.len() as u64;
    program.until("what was not promised is not held", |status| status.leases == promised).await;
    drop(program);
    let program = Program::start(folder.path(), port).await;
    let status = program.status().await;
    assert!(status.ready);
    assert!(status.leases >= answered.len() as u64, "{} of {}", status.leases, answered.len());
    program.client.request_hints(request("again", 1, 1, 1_024), SOON).await.unwrap();
}

#[test]
fn a_bad_configuration_or_usage_ends_with_two_and_names_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hintd.toml");
    let run = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_hintd")).args(arguments).output().unwrap();
    let path = file.to_str().unwrap();
    std::fs::write(&file, "[listen]\ngrcp = \"127.0.0.1:0\"\n[placer]\nsteps = \"many\"\n").unwrap();
    for arguments in [&["--config", path, "--check"][..], &["--config", path]] {
        let output = run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in ["hintd.toml", "grcp", "steps", "2", "4"] {
            assert!(said.contains(part), "\"{said}\" lacks \"{part}\"");
        }
    }
    write_config(folder.path());
    assert_eq!(run(&["--config", path, "--check"]).status.code(), Some(0));
    assert_eq!(run(&["--config", "/nowhere.toml"]).status.code(), Some(2));
    assert_eq!(run(&["--cofnig", path]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_reloads_and_a_termination_ends_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let mut program = Program::start(folder.path(), port).await;
    program.signal("-HUP");
    program.until("it reloads", |status| status.counters.get("reloads").is_some_and(|reloads| *reloads > 0)).await;
    program.signal("-TERM");
    let status = program.ended(SOON).await;
    assert!(status.success(), "{status}");
}
