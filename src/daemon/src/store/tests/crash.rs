//! Crashes: SIGKILL of a real process under load, and power cuts on a disk that forgets unsynced sectors.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tempfile::tempdir;

use super::super::faults::FaultyDisk;
use super::super::{GroupCommit, GroupOptions};
use super::{open, pair, whole_pairs};

const JOURNAL: &str = "HINTD_CRASH_TEST_JOURNAL";
const FIRST_ID: &str = "HINTD_CRASH_TEST_FIRST_ID";
const CHILD: &str = "store::tests::crash::the_process_that_is_killed";

/// The child of the next test; run by itself it has nothing to do.
#[test]
fn the_process_that_is_killed() {
    let Ok(path) = std::env::var(JOURNAL) else { return };
    let next = AtomicU64::new(std::env::var(FIRST_ID).unwrap().parse().unwrap());
    let handle = GroupCommit::start(open(Path::new(&path)).0, GroupOptions::default()).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let id = next.fetch_add(1, Ordering::SeqCst);
                    let (tell, told) = mpsc::channel();
                    handle.append(pair(id), Box::new(move |result| tell.send(result).unwrap())).unwrap();
                    told.recv().unwrap().unwrap();
                    // Straight to the pipe, in one write: what is printed was acknowledged.
                    std::io::stderr().write_all(format!("acknowledged {id}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs the child until `lifetime` after its first few acknowledgements; gives the acknowledged ids.
fn run_and_kill(path: &Path, first_id: u64, lifetime: Duration) -> BTreeSet<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--nocapture", "--test-threads=1"])
        .env(JOURNAL, path)
        .env(FIRST_ID, first_id.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = BufReader::new(child.stderr.take().unwrap());
    let (started, start) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut acknowledged = BTreeSet::new();
        for line in pipe.lines().map_while(Result::ok) {
            let id = line.strip_prefix("acknowledged ").unwrap_or_else(|| panic!("the child said: {line}"));
            acknowledged.insert(id.parse().unwrap());
            let _ = started.send(());
        }
        acknowledged
    });
    for _ in 0..8 {
        start.recv_timeout(Duration::from_secs(60)).expect("the child acknowledges something");
    }
    thread::sleep(lifetime);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn every_row_acknowledged_before_a_sigkill_is_there_and_none_by_half() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut rng = ChaCha8Rng::seed_from_u64(0x6b69_6c6c);
    let mut acknowledged = BTreeSet::new();
    for kill in 0..10 {
        let lifetime = Duration::from_micros(rng.random_range(0..60_000));
        acknowledged.append(&mut run_and_kill(&path, kill << 32, lifetime));
        let found = whole_pairs(&open(&path).1);
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "kill {kill}: {} acknowledged rows lost, first {:?}", lost.len(), lost.first());
        // Four appenders were waiting at most at each kill: what they had asked for may be there.
        let extra = found.difference(&acknowledged).count() as u64;
        assert!(extra <= 4 * (kill + 1), "{extra} rows that were never acknowledged");
    }
    assert!(acknowledged.len() > 40, "only {} acknowledgements in 10 lives", acknowledged.len());
}

#[test]
fn every_row_acknowledged_before_a_power_cut_is_there_and_none_by_half() {
    let (disk, mut journal) = FaultyDisk::with_journal();
    let cut_during_writes = Arc::new(AtomicU64::new(0));
    let mut acknowledged = BTreeSet::new();
    for id in 0..60 {
        // The power goes at some write within the next transaction, or just after it.
        disk.fail_after(id % 13);
        let committed = journal.write(&[pair(id)]).is_ok();
        if committed {
            acknowledged.insert(id);
        } else {
            cut_during_writes.fetch_add(1, Ordering::Relaxed);
        }
        for seed in 0..8 {
            let (after, recovered) = disk.after_power_cut(id << 8 | seed).open().unwrap();
            let found = whole_pairs(&recovered);
            assert!(acknowledged.is_subset(&found), "after {id}: {acknowledged:?} but found {found:?}");
            assert!(found.len() <= acknowledged.len() + usize::from(!committed), "{found:?}");
            drop(after);
        }
        disk.heal();
        if !committed {
            journal.reopen().unwrap();
        }
    }
    assert!(cut_during_writes.load(Ordering::Relaxed) >= 10 && acknowledged.len() >= 10);
}
