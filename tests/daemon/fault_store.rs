//! Journals that are full, read-only, failing, slow or corrupt, under the real program: what was answered stays, what
//! can't be written is refused, and the program recovers by itself.

use crate::load::{Account, Stop, joined};
use crate::program::{NODES, Program, command, say, write_config, write_config_with};
use crate::world::{SOON, heartbeat, leased, refusal, request};
use hintd_client::wire::v1;
use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tonic::Code;

/// Clients that fill a journal before it is wounded.
const CLIENTS: u32 = 4;

/// A disk that does as it is told: `faulty_disk.c`, preloaded.
pub(crate) struct Disk {
    library: PathBuf,
    orders: PathBuf,
}

impl Disk {
    pub(crate) fn new(folder: &Path) -> Self {
        let disk = Self { library: folder.join("faulty_disk.so"), orders: folder.join("orders") };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daemon/faulty_disk.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&disk.library).arg(source).arg("-ldl");
        assert!(compiler.status().expect("cc is there wherever Rust links").success());
        disk.be("ok");
        disk
    }

    /// `ok`, `slow MILLISECONDS`, `fail ERRNO`; taken in whole by whoever reads.
    pub(crate) fn be(&self, order: &str) {
        let draft = self.orders.with_extension("new");
        std::fs::write(&draft, order).unwrap();
        std::fs::rename(draft, &self.orders).unwrap();
    }

    /// What `LD_PRELOAD` and `FAULTY_DISK` are to name.
    pub(crate) fn preload(&self) -> (&Path, &Path) {
        (&self.library, &self.orders)
    }

    pub(crate) async fn program(&self, folder: &Path, port: u16) -> Program {
        let mut command = command(folder);
        command.env("LD_PRELOAD", &self.library).env("FAULTY_DISK", &self.orders);
        Program::run(&mut command, folder, port).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_under_load_is_refused_for_and_comes_back_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let disk = Disk::new(folder.path());
    let program = disk.program(folder.path(), port).await;
    let account = Account::default();
    for (round, errno) in [5, 28, 30].into_iter().enumerate() {
        let before = account.counts().0;
        let clients = account.load(&program.client, 4, round as u32, &Stop::default());
        account.until_answered(before + 10).await;
        disk.be(&format!("fail {errno}")); // EIO, ENOSPC, EROFS
        let status = program.until("it is not ready", |status| !status.ready).await;
        assert!(status.not_ready_reason.contains("journal"), "{status:?}");
        joined(clients).await;
        let refused = program.client.request_hints_once(request("no", 99, 1, 1_024)).await;
        let (code, message) = refusal(refused.map(|_| ()));
        assert!(code == Code::Unavailable && message.contains("journal can't be written"), "{code:?}: {message}");
        let promised = account.leases() as u64;
        program.until("what was not promised is not held", |status| status.leases == promised).await;
        disk.be("ok");
        program.until("it is ready again", |status| status.ready).await;
        account.check(&program, 0).await;
    }
    drop(program);
    account.check(&Program::start(folder.path(), port).await, 0).await;
    let (answered, _) = account.counts();
    assert!(answered > 20, "there was load: {answered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_delays_answers_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let disk = Disk::new(folder.path());
    let program = disk.program(folder.path(), port).await;
    let mut feed = program.register(0..1).await;
    disk.be("slow 300");
    let (account, stop) = (Account::default(), Stop::default());
    let began = Instant::now();
    let clients = account.load_within(SOON, &program.client, 16, 0, &stop);
    let mut rounds = Vec::new();
    for id in 1..30 {
        let asked = Instant::now();
        program.status().await;
        feed.send(heartbeat("r0n0", id, 0, vec![])).await.unwrap();
        assert!(feed.await_acknowledged().await.unwrap().refused.is_empty());
        rounds.push(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    account.until_answered(32).await;
    stop.set();
    joined(clients).await;
    let (answered, seconds) = (account.counts().0, began.elapsed().as_secs_f64());
    // Sixteen clients share each write: more than one answer a write, and none without one.
    assert!(answered >= 32 && (answered as f64) < 16.0 * (seconds / 0.3 + 2.0), "{answered} in {seconds} s");
    // A machine may halt, and not in half of the rounds; who waited for the disk, which is never idle here, would in each.
    rounds.sort_unstable();
    assert!(rounds[rounds.len() / 2] < Duration::from_millis(250), "feeds and status wait for no disk: {rounds:?}");
    disk.be("slow 2000");
    // The daemon's deadline, far before the client's own.
    let hurried = v1::RequestHintsRequest { deadline_ms: 400, ..request("late", 51, 2, 1_024) };
    let late = program.client.request_hints(hurried, SOON).await;
    assert_eq!(refusal(late.map(|_| ())).0, Code::DeadlineExceeded, "a deadline holds on a disk that hangs");
    assert!(program.status().await.ready, "slow is not broken");
    disk.be("ok");
    // Asked again under its id, it gets the one answer that there is.
    let answer = program.client.request_hints(request("late", 51, 2, 1_024), SOON).await.unwrap();
    assert_eq!(leased(&answer).into_values().flatten().count(), 2);
    assert_eq!(program.client.request_hints(request("late", 51, 2, 1_024), SOON).await.unwrap(), answer);
    let of = v1::ListDecisionsRequest { application_id: "application_1_0051".to_owned(), ..Default::default() };
    let listed = program.admin.clone().list_decisions(of).await.unwrap().into_inner().decisions;
    let late: Vec<_> = listed.iter().filter(|decision| decision.outcome == "hinted").collect();
    let decision = answer.hints.unwrap().decision_id;
    assert_eq!((late.len(), &late[0].decision_id), (1, &decision), "it is recorded, though nobody waited: {listed:?}");
}

/// A small file system in memory; gone when dropped.
struct Mount(PathBuf);

impl Mount {
    /// `None`, said, where none can be mounted.
    fn new(at: PathBuf) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(&at).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(at));
        }
        say("SKIPPED: no file system can be mounted here (it needs root)");
        None
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(status.unwrap().success(), "{options}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_system_that_is_full_and_then_read_only_costs_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Mount::new(folder.path().join("disk")) else { return };
    let path = format!("path = {:?}", disk.0.join("journal.redb"));
    let port = write_config_with(folder.path(), &[("store", &path)]);
    let program = Program::start(folder.path(), port).await;
    let account = Account::default();
    // Clients end when they are refused: a file system of 3 MB holds a few thousand answers.
    joined(account.load(&program.client, 8, 0, &Stop::default())).await;
    // Its own small attempt may find room where an answer does not: then it says ready, until the next is refused.
    let more = account.load(&program.client, 2, 1, &Stop::default());
    program.until("it is full", |status| !status.ready && status.not_ready_reason.contains("journal")).await;
    joined(more).await;
    disk.remount("size=64m");
    program.until("it has room again, and is ready by itself", |status| status.ready).await;
    account.check(&program, 0).await;
    drop(program);
    disk.remount("ro");
    let mut command = command(folder.path());
    let refused = command.output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("journal.redb") && said.contains("Read-only"), "{said}");
    disk.remount("rw");
    account.check(&Program::start(folder.path(), port).await, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_journal_is_named_and_not_served_from() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let journal = folder.path().join("journal.redb");
    let (account, stop) = (Account::default(), Stop::default());
    let program = Program::start(folder.path(), port).await;
    let clients = account.load(&program.client, CLIENTS, 0, &stop);
    account.until_answered(40).await;
    stop.set();
    joined(clients).await;
    drop(program);
    let sound = std::fs::read(&journal).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut garbage = sound.clone();
    rng.fill_bytes(&mut garbage[4_096..]);
    let mut head = sound.clone();
    head[..16].fill(0);
    let mut torn = sound.clone();
    let used = torn.iter().rposition(|byte| *byte != 0).unwrap();
    torn[4_096..used].chunks_mut(64).step_by(7).for_each(|part| part.fill(0xa5));
    let cases = [
        ("empty", Vec::new()),
        ("cut", sound[..sound.len() / 2].to_vec()),
        ("head", head),
        ("garbage", garbage),
        ("torn", torn),
    ];
    for (what, bytes) in cases {
        std::fs::write(&journal, bytes).unwrap();
        let refused = command(folder.path()).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("journal.redb"), "{what}: {said}");
    }
    // Single wounds: it does not start, or with all that was answered but for the last write, before which the database
    // falls back where that one's pages are torn. Four clients have at most four answers in it.
    let (mut started, mut refused, mut lost) = (0, 0, 0);
    for _ in 0..6 {
        let mut bytes = sound.clone();
        let at = rng.random_range(4_096..used);
        bytes[at..].iter_mut().take(32).for_each(|byte| *byte = !*byte);
        std::fs::write(&journal, bytes).unwrap();
        match Program::attempt(&mut command(folder.path()), folder.path(), port).await {
            Ok(program) => {
                started += 1;
                let _feed = program.register(0..NODES).await;
                let gone = account.count_lost(&program).await;
                assert!(gone <= CLIENTS as usize, "{gone} answers are gone");
                lost += gone;
            }
            Err(status) => {
                assert_eq!(status.code(), Some(1), "it says that it can't start");
                refused += 1;
            }
        }
    }
    say(&format!("of 6 journals with one wound {started} were served from, {lost} answers gone; {refused} refused"));
    std::fs::write(&journal, sound).unwrap();
    account.check(&Program::start(folder.path(), port).await, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_the_journal_that_reads_well_and_is_not_as_it_was_written_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let journal = folder.path().join("journal.redb");
    let account = Account::default();
    let stop = Stop::default();
    let mut program = Program::start(folder.path(), port).await;
    let clients = account.load(&program.client, CLIENTS, 0, &stop);
    account.until_answered(40).await;
    stop.set();
    joined(clients).await;
    // After an end in order the database checks none of its pages.
    program.signal("-TERM");
    assert!(program.ended(SOON).await.success());
    let sound = std::fs::read(&journal).unwrap();
    let before = b"\"host\":\"r0n";
    let places: Vec<usize> =
        sound.windows(before.len()).enumerate().filter(|(_, text)| text == before).map(|(at, _)| at).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut old, mut refused) = (0, 0);
    // By chance all of the first may lie in pages that are free again.
    while old + refused < 8 || (refused == 0 && old < 64) {
        let at = places[rng.random_range(0..places.len())] + before.len();
        let mut bytes = sound.clone();
        bytes[at] = if bytes[at] == b'9' { b'1' } else { bytes[at] + 1 }; // another node
        std::fs::write(&journal, bytes).unwrap();
        match Program::attempt(&mut command(folder.path()), folder.path(), port).await {
            Ok(program) => {
                old += 1; // in a page that is free again
                let _feed = program.register(0..NODES).await;
                assert_eq!(account.count_lost(&program).await, 0);
            }
            Err(status) => {
                refused += 1;
                let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
                let said = log.lines().last().unwrap();
                assert_eq!(status.code(), Some(1), "{said}");
                assert!(said.contains("journal.redb") && said.contains("in table "), "{said}");
                assert!(said.contains("the row with key ") && said.contains("check sum"), "{said}");
            }
        }
    }
    assert!(refused > 0, "of {} places {old} were of free pages", places.len());
    say(&format!("of journals with another host in one row {refused} were refused, {old} had it in a free page"));
    std::fs::write(&journal, sound).unwrap();
    account.check(&Program::start(folder.path(), port).await, 0).await;
}
