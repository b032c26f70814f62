//! Reloads in the middle of load: a sound file swaps all, a wrong one nothing, and no request notices.

use crate::load::{Account, Stop, joined};
use crate::program::{Program, rewrite_config, write_config};
use crate::world::SOON;
use hintd_client::wire::v1;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn reloads_under_load_swap_all_or_nothing_and_fail_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let program = Program::start(folder.path(), port).await;
    let (account, stop) = (Account::default(), Stop::default());
    // What counts is that nobody is refused, not how soon a machine that others use answers.
    let clients = account.load_within(2 * SOON, &program.client, 4, 0, &stop);
    let (mut good, mut bad) = (0, 0);
    for turn in 0..12 {
        let policy = ["spread", "capacity"][turn % 2];
        let wrong = turn % 3 == 2;
        let name = if wrong { "default = \"sprad\"".to_owned() } else { format!("default = {policy:?}") };
        let (before, load) = (default_policy(&program).await, account.counts().0);
        rewrite_config(folder.path(), port, &[("policy", &name), ("limits", "answers = 190000")]);
        // The file's watcher may be faster: what counts is how it ends.
        match program.admin.clone().reload(v1::ReloadRequest {}).await {
            Ok(_) => {
                assert!(!wrong);
                good += 1;
                assert_eq!(default_policy(&program).await, policy);
            }
            Err(status) => {
                assert!(wrong && status.message().contains("sprad"), "{status:?}");
                bad += 1;
                assert_eq!(default_policy(&program).await, before, "a wrong file changes nothing");
            }
        }
        program.signal("-HUP");
        account.until_answered(load + 2).await;
    }
    stop.set();
    joined(clients).await;
    let (answered, unanswered) = account.counts();
    assert_eq!((good, bad, unanswered), (8, 4, 0), "no request failed");
    assert!(answered >= 24, "there was load: {answered}");
    account.check(&program, 0).await;
}

/// What a refused file is counted as, and how often its refusal was logged as one: by then, for lines are written by a
/// thread of their own.
async fn refusals(program: &Program) -> (u64, usize) {
    let counted = program.status().await.counters.get("reloads_refused").copied().unwrap_or(0);
    let logged = || program.log().matches("the configuration stays as it was").count();
    let began = Instant::now();
    while (logged() as u64) < counted && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (counted, logged())
}

async fn reload(program: &Program) -> Result<v1::ReloadResponse, tonic::Status> {
    let mut admin = program.admin.clone();
    let reload = admin.reload(v1::ReloadRequest {});
    tokio::time::timeout(SOON, reload).await.expect("it does not hang").map(tonic::Response::into_inner)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_as_configuration_is_refused_once_by_all_ways_and_the_file_is_taken_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let file = folder.path().join("hintd.toml");
    let mut program = Program::start(folder.path(), port).await;
    // By renaming: where there is no file for a moment, that is another refusal.
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    std::fs::rename(fifo, &file).unwrap();
    for _ in 0..2 {
        let refused = reload(&program).await.unwrap_err();
        assert!(refused.message().contains("hintd.toml: it is a FIFO, not a regular file"), "{refused:?}");
    }
    program.signal("-HUP");
    // The file's watcher settles for 200 ms: by the second call here it and the signal have had their turn.
    tokio::time::sleep(Duration::from_millis(600)).await;
    reload(&program).await.unwrap_err();
    assert_eq!(refusals(&program).await, (1, 1), "logged and counted once: {}", program.log());
    rewrite_config(folder.path(), port, &[("policy", "default = \"capacity\"")]);
    reload(&program).await.unwrap();
    assert_eq!(default_policy(&program).await, "capacity");
    // Another one is another refusal.
    rewrite_config(folder.path(), port, &[("policy", "default = \"sprad\"")]);
    reload(&program).await.unwrap_err();
    program.signal("-HUP");
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(refusals(&program).await, (2, 2), "{}", program.log());
    program.signal("-TERM");
    assert!(program.ended(SOON).await.success(), "no thread hangs in a read");
}

#[test]
fn special_files_as_configuration_end_the_start_and_the_check_with_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("hintd.toml");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let large = folder.path().join("large.toml");
    std::fs::write(&large, "#".repeat((1 << 20) + 1)).unwrap();
    for (path, what) in [
        (fifo.as_path(), "it is a FIFO"),
        (folder.path(), "it is a directory"),
        (Path::new("/dev/zero"), "it is a device"),
        (large.as_path(), "it has more than 1048576 bytes"),
    ] {
        for check in [&["--check"][..], &[]] {
            let mut child = Command::new("timeout"); // it ends by itself, or with 124
            let output =
                child.arg("20").arg(env!("CARGO_BIN_EXE_hintd")).arg("--config").arg(path).args(check).output();
            let output = output.unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(what) && said.contains(path.to_str().unwrap()), "{said}");
        }
    }
}

async fn default_policy(program: &Program) -> String {
    program.admin.clone().list_policies(v1::ListPoliciesRequest {}).await.unwrap().into_inner().default_policy
}
