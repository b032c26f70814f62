//! The group commit: how many transactions, who is told what, and what a failing disk does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::tempdir;

use super::super::faults::FaultyDisk;
use super::super::{AppendError, CommitObserver, GroupCommit, GroupCommitHandle, GroupOptions, StoreFailure};
use super::{open, pair, whole_pairs};

const PATIENCE: Duration = Duration::from_secs(30);

fn append_and_wait(handle: &GroupCommitHandle, id: u64) -> Result<Result<(), StoreFailure>, AppendError> {
    let (tell, told) = mpsc::channel();
    handle.append(pair(id), Box::new(move |result| tell.send(result).unwrap()))?;
    Ok(told.recv_timeout(PATIENCE).expect("an accepted append is always answered"))
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what} did not come");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_thousand_concurrent_appends_share_transactions_and_each_is_told_once() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let options = GroupOptions { queue: 1_000, ..GroupOptions::default() };
    let handle = GroupCommit::start(open(&path).0, options).unwrap();
    // A first one is being told until all others are queued, however slowly their threads come.
    let (gate, entered) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (held, enter) = (Arc::clone(&gate), Arc::clone(&entered));
    let first = move |result: Result<(), StoreFailure>| {
        enter.wait();
        held.wait();
        result.unwrap();
    };
    handle.append(pair(1_000), Box::new(first)).unwrap();
    entered.wait();
    let told: Arc<Vec<AtomicU64>> = Arc::new((0..1000).map(|_| AtomicU64::new(0)).collect());
    thread::scope(|scope| {
        for client in 0..50 {
            let (handle, told) = (handle.clone(), Arc::clone(&told));
            scope.spawn(move || {
                for id in client * 20..client * 20 + 20 {
                    let told = Arc::clone(&told);
                    let done = move |result: Result<(), StoreFailure>| {
                        result.unwrap();
                        told[id as usize].fetch_add(1, Ordering::SeqCst);
                    };
                    handle.append(pair(id), Box::new(done)).unwrap();
                }
            });
        }
    });
    gate.wait();
    handle.shutdown(PATIENCE).unwrap();
    assert!(told.iter().all(|count| count.load(Ordering::SeqCst) == 1));
    let stats = handle.stats();
    assert_eq!((stats.appends(), stats.ops(), stats.failures()), (1001, 2002, 0));
    let batches = stats.batches();
    // The first one's, and 16, the least that groups of 64 allow.
    assert_eq!(batches, 17, "transactions");
    assert!(stats.write_seconds() > 0.0);
    assert_eq!(whole_pairs(&open(&path).1).len(), 1001);
}

#[test]
fn a_full_disk_fails_the_append_and_the_journal_recovers_by_itself() {
    let (disk, journal) = FaultyDisk::with_journal();
    let (observe, observed) = mpsc::channel();
    let observer = CommitObserver::new(move |commit| observe.send((commit.ops, commit.durable)).unwrap());
    let options =
        GroupOptions { probe_every: Duration::from_millis(20), observer: Some(observer), ..GroupOptions::default() };
    let handle = GroupCommit::start(journal, options).unwrap();
    append_and_wait(&handle, 1).unwrap().unwrap();
    disk.fail_after(0);
    let failure = append_and_wait(&handle, 2).unwrap().unwrap_err();
    assert!(matches!(&failure, StoreFailure::Write(error) if error.to_string().contains("no room")), "{failure:?}");
    assert!(!handle.healthy(), "an appender that heard of the failure found the journal healthy");
    assert_eq!(append_and_wait(&handle, 3).unwrap_err(), AppendError::Unhealthy);
    thread::sleep(Duration::from_millis(60));
    assert!(!handle.healthy(), "healthy on a full disk");
    disk.heal();
    wait_until("recovery", || handle.healthy());
    append_and_wait(&handle, 4).unwrap().unwrap();
    let stats = handle.stats();
    assert_eq!((stats.failures(), stats.recoveries(), stats.appends()), (1, 1, 2));
    assert_eq!(observed.try_iter().collect::<Vec<_>>(), [(2, true), (2, false), (2, true)]);
    handle.shutdown(PATIENCE).unwrap();
    assert_eq!(whole_pairs(&disk.open().unwrap().1), [1, 4].into());
}

#[test]
fn everything_that_waits_behind_a_failed_write_is_told() {
    let (disk, journal) = FaultyDisk::with_journal();
    let options = GroupOptions { max_batch: 1, ..GroupOptions::default() };
    let handle = GroupCommit::start(journal, options).unwrap();
    disk.fail_after(0);
    // The first completion blocks the writer until all ten are queued.
    let gate = Arc::new(Barrier::new(2));
    let held = Arc::clone(&gate);
    let (tell, told) = mpsc::channel();
    let first = tell.clone();
    handle
        .append(
            pair(0),
            Box::new(move |result| {
                held.wait();
                first.send(result).unwrap()
            }),
        )
        .unwrap();
    let mut accepted = 1;
    for id in 1..10 {
        let tell = tell.clone();
        accepted += u32::from(handle.append(pair(id), Box::new(move |result| tell.send(result).unwrap())).is_ok());
    }
    gate.wait();
    for _ in 0..accepted {
        assert!(told.recv_timeout(PATIENCE).expect("told").is_err());
    }
    assert_eq!(handle.stats().batches(), 0);
}

#[test]
fn a_full_queue_refuses_and_a_closed_one_too() {
    let (_disk, journal) = FaultyDisk::with_journal();
    let options = GroupOptions { queue: 3, max_batch: 1, ..GroupOptions::default() };
    let handle = GroupCommit::start(journal, options).unwrap();
    let gate = Arc::new(Barrier::new(2));
    let (held, entered) = (Arc::clone(&gate), Arc::new(Barrier::new(2)));
    let enter = Arc::clone(&entered);
    handle
        .append(
            pair(0),
            Box::new(move |_| {
                enter.wait();
                held.wait();
            }),
        )
        .unwrap();
    entered.wait();
    for id in 1..=3 {
        handle.append(pair(id), Box::new(|result| result.unwrap())).unwrap();
    }
    assert_eq!(handle.append(pair(4), Box::new(|_| panic!("called"))), Err(AppendError::QueueFull { limit: 3 }));
    assert_eq!(handle.queued(), 3);
    gate.wait();
    handle.shutdown(PATIENCE).unwrap();
    assert_eq!(handle.stats().appends(), 4, "shutdown flushes what is queued");
    assert_eq!(handle.append(pair(5), Box::new(|_| panic!("called"))), Err(AppendError::Closed));
}

#[test]
fn a_shutdown_past_its_limit_fails_what_is_left() {
    let (_disk, journal) = FaultyDisk::with_journal();
    let handle = GroupCommit::start(journal, GroupOptions { max_batch: 1, ..GroupOptions::default() }).unwrap();
    let gate = Arc::new(Barrier::new(2));
    let (held, entered) = (Arc::clone(&gate), Arc::new(Barrier::new(2)));
    let enter = Arc::clone(&entered);
    handle
        .append(
            pair(0),
            Box::new(move |_| {
                enter.wait();
                held.wait();
            }),
        )
        .unwrap();
    entered.wait();
    let (tell, told) = mpsc::channel();
    handle.append(pair(1), Box::new(move |result| tell.send(result).unwrap())).unwrap();
    assert_eq!(handle.shutdown(Duration::from_millis(20)).unwrap_err().dropped, 1);
    assert!(matches!(told.recv_timeout(PATIENCE), Ok(Err(StoreFailure::Closed))));
    gate.wait();
    handle.shutdown(PATIENCE).unwrap();
}

#[test]
fn dropping_the_last_handle_flushes_and_frees_the_file() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let handle = GroupCommit::start(open(&path).0, GroupOptions::default()).unwrap();
    for id in 0..10 {
        handle.append(pair(id), Box::new(|result| result.unwrap())).unwrap();
    }
    drop(handle);
    let reopen = || super::super::Journal::open(&path, super::super::OpenOptions::default());
    wait_until("the file", || reopen().is_ok());
    assert_eq!(whole_pairs(&reopen().unwrap().1).len(), 10);
}

#[test]
fn a_completion_that_panics_does_not_stop_the_journal() {
    let (_disk, journal) = FaultyDisk::with_journal();
    let handle = GroupCommit::start(journal, GroupOptions::default()).unwrap();
    handle.append(pair(1), Box::new(|_| panic!("an appender's mistake"))).unwrap();
    append_and_wait(&handle, 2).unwrap().unwrap();
    assert!(handle.healthy());
}

/// What a disk did under load.
struct Load {
    commits_per_s: f64,
    appends_per_s: f64,
    p50: Duration,
    p99: Duration,
}

/// Appends from `clients` threads, each waiting for its answer, for a while.
fn load(clients: u64, max_wait: Duration, run: Duration) -> Load {
    let dir = tempdir().unwrap();
    let (journal, _) = open(&dir.path().join("journal"));
    let handle = GroupCommit::start(journal, GroupOptions { max_wait, ..GroupOptions::default() }).unwrap();
    let began = Instant::now();
    let together = Barrier::new(usize::try_from(clients).unwrap());
    let mut waits: Vec<Duration> = thread::scope(|scope| {
        let client = |client: u64| {
            let (handle, together) = (&handle, &together);
            scope.spawn(move || {
                together.wait();
                let (mut waits, began) = (Vec::new(), Instant::now());
                // A few at least, on a machine that halts.
                while began.elapsed() < run || waits.len() < 8 {
                    let asked = Instant::now();
                    append_and_wait(handle, client << 32 | waits.len() as u64).unwrap().unwrap();
                    waits.push(asked.elapsed());
                }
                waits
            })
        };
        let threads: Vec<_> = (0..clients).map(client).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    waits.sort_unstable();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    let (commits_per_s, appends_per_s) = (handle.stats().batches() as f64 / seconds, waits.len() as f64 / seconds);
    Load { commits_per_s, appends_per_s, p50: at(0.5), p99: at(0.99) }
}

#[test]
fn append_latency_and_commit_rate_on_this_disk_are_printed() {
    // Set to milliseconds per row for figures worth quoting; the default keeps the test short.
    let run = std::env::var("HINTD_STORE_LOAD_MS").ok().and_then(|ms| ms.parse().ok()).unwrap_or(100);
    let mut rates = BTreeMap::new();
    println!("clients  wait ms  commits/s  appends/s  p50 ms  p99 ms");
    for clients in [1, 8, 64] {
        for wait in [0, 2] {
            let found = load(clients, Duration::from_millis(wait), Duration::from_millis(run));
            let (commits, appends) = (found.commits_per_s, found.appends_per_s);
            let (p50, p99) = (found.p50.as_secs_f64() * 1e3, found.p99.as_secs_f64() * 1e3);
            println!("{clients:7}  {wait:7}  {commits:9.0}  {appends:9.0}  {p50:6.2}  {p99:6.2}");
            rates.insert((clients, wait), appends / commits);
        }
    }
    assert!(rates[&(64, 2)] > 4.0, "64 appenders hardly share commits: {rates:?}");
}
