//! A policy is trained from the runs that the engine keeps, while its thread stands still or its journal is away, and goes on
//! with what it learnt after a restart.

use super::*;
use crate::runtime::tests::{SOON, stall};
use crate::server::{Running, start};
use crate::telemetry::metrics::Metrics;
use hintd_engine::LearnedRun;
use hintd_engine::prediction::{ClassHash, ClassShare};
use hintd_model::cluster::Snapshot;
use hintd_model::units::{ApplicationId, Bytes, NodeIdx};
use hintd_policy::learn::Lesson;
use hintd_policy::scale_up_out::{BLOCK, JobShape, ScaleUpOutParams, Side};
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::timeout;

const NAME: &str = "scale_up_out";

/// A run of so many blocks whose tasks take what the policy's time model states.
fn run(number: u32, blocks: u64) -> LearnedRun {
    let model = ScaleUpOutParams::default().time_model();
    let (input, shuffle) = (Bytes(blocks * BLOCK.0), Bytes(blocks * BLOCK.0 / 4));
    let shape = JobShape { maps: blocks, reduces: 1 + blocks / 10, input, shuffle };
    let speed = model.speed_of(Side::Out, &shape);
    let took = |stage: usize| Micros((shape.stages()[stage].task_s(speed) * 1e6) as u64);
    let submitted = Timestamp(u64::from(number) * 1_000_000);
    let whole = Run {
        submitted,
        maps: (blocks as u32, took(0)),
        reduces: (shape.reduces as u32, took(1)),
        input,
        shuffle,
        application: Some(ApplicationId { cluster_timestamp: 1, sequence: number }),
        counted: true,
        ran_on: None,
    };
    let finished = submitted.plus(Micros::from_secs(60));
    LearnedRun { finished, groups: vec![], edges: vec![], whole: Some(whole) }
}

/// Tells the daemon of runs of jobs of these sizes, a key each.
async fn tell(daemon: &Daemon, first: u32, blocks: impl Iterator<Item = u64>) {
    for (number, blocks) in (first..).zip(blocks) {
        daemon.learnt(format!("job {number}").into(), run(number, blocks)).await.unwrap();
    }
}

/// Small and large jobs in turn.
fn both_kinds() -> impl Iterator<Item = u64> {
    (0..60).map(|at| if at % 2 == 0 { 1 + at } else { 1_000 + 50 * at })
}

/// What an operator's `hintctl policies --show` is made of.
fn lesson(daemon: &Daemon) -> Option<Lesson> {
    daemon.settings().policies.built[NAME].as_learn().unwrap().lesson()
}

fn problem(daemon: &Daemon) -> String {
    daemon.training_of(NAME).problem.unwrap_or_default()
}

/// In use, as a request that names it makes it.
async fn used() -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let running = again(&folder).await;
    running.daemon.settings().policies.built[NAME].prepare();
    (folder, running)
}

fn damaged(daemon: &Daemon) -> String {
    daemon.training_of(NAME).damaged_file.unwrap_or_default()
}

fn file_in(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("journal.scale_up_out")
}

async fn again(folder: &tempfile::TempDir) -> Running {
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = {:?}\nmetrics = \"\"\n[store]\npath = {:?}\n\
         [policies.scale_up_out]\ntraining_jobs = 70\n",
        folder.path().join("admin.sock"),
        folder.path().join("journal"),
    );
    let config = crate::config::Config::from_text(&text, "test.toml").unwrap();
    start(&config.options, Metrics::new()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_learns_from_the_runs_of_the_journal_and_a_restart_keeps_what_it_learnt() {
    let (folder, running) = used().await;
    let daemon = &running.daemon;
    let before = Arc::clone(&daemon.settings().policies.built[NAME]);
    tell(daemon, 1, both_kinds()).await;
    daemon.train().await.unwrap();
    let learnt = lesson(daemon).unwrap();
    assert_eq!((learnt.jobs, learnt.small, problem(daemon)), (60, 30, String::new()));
    assert!(daemon.training_of(NAME).trained_at.is_some());
    assert_eq!(before.as_learn().unwrap().lesson(), None, "records keep the policy of before");
    let now = Arc::clone(&daemon.settings().policies.built[NAME]);
    daemon.train().await.unwrap();
    assert!(Arc::ptr_eq(&now, &daemon.settings().policies.built[NAME]), "nothing new has finished");
    tell(daemon, 100, both_kinds().take(10)).await;
    daemon.train().await.unwrap();
    let learnt = lesson(daemon).unwrap();
    assert_eq!(learnt.jobs, 70, "ten new ones are worth it");
    running.shutdown().await.unwrap();
    let running = again(&folder).await;
    assert_eq!(lesson(&running.daemon), Some(learnt));
    assert_eq!((problem(&running.daemon), running.daemon.training_of(NAME).trained_at), (String::new(), None));
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_training_comes_with_the_fiftieth_run() {
    let (_folder, running) = used().await;
    let daemon = &running.daemon;
    tell(daemon, 1, both_kinds().take(45)).await;
    daemon.train().await.unwrap();
    assert_eq!((lesson(daemon), &*problem(daemon)), (None, "45 finished jobs, fewer than 50"));
    tell(daemon, 100, both_kinds().take(4)).await;
    daemon.train().await.unwrap();
    assert_eq!((lesson(daemon), &*problem(daemon)), (None, "45 finished jobs, fewer than 50"), "nothing to look at");
    tell(daemon, 200, both_kinds().take(1)).await;
    daemon.train().await.unwrap();
    assert_eq!(lesson(daemon).map(|lesson| lesson.jobs), Some(50));
    tell(daemon, 300, both_kinds().take(9)).await;
    daemon.train().await.unwrap();
    assert_eq!(lesson(daemon).map(|lesson| lesson.jobs), Some(50));
    running.shutdown().await.unwrap();
}

/// One that learns nothing, and says how many hold the runs while it is trained.
#[derive(Debug)]
struct Watching {
    runs: Weak<Runs>,
    held_by: AtomicUsize,
}

impl Policy for Watching {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "a test's"
    }

    fn params_toml(&self) -> String {
        String::new()
    }

    fn as_learn(&self) -> Option<&dyn Learn> {
        Some(self)
    }
}

impl Learn for Watching {
    fn class(&self) -> &str {
        "scale-up"
    }

    fn is_of_class(&self, _: &Snapshot, _: NodeIdx) -> bool {
        false
    }

    fn jobs_min(&self) -> usize {
        1
    }

    fn jobs_max(&self) -> usize {
        100
    }

    fn learn(&self, jobs: &[FinishedJob], _: u64) -> Result<(Box<dyn Policy>, String), LearnError> {
        self.held_by.store(self.runs.strong_count(), Ordering::SeqCst);
        Err(LearnError::TooFew { jobs: jobs.len(), least: 1_000 })
    }

    fn read_back(&self, _: &str) -> Result<Box<dyn Policy>, LearnError> {
        Err(LearnError::OtherParameters)
    }

    fn lesson(&self) -> Option<Lesson> {
        None
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_trained_nobody_but_the_engine_holds_the_runs() {
    let (_folder, running) = used().await;
    let daemon = &running.daemon;
    tell(daemon, 1, both_kinds()).await;
    let runs = daemon.0.engine_handle.ask(|reply| Command::Plans(PlanCall::Runs(reply))).await.unwrap();
    let watching = Arc::new(Watching { runs: Arc::downgrade(&runs), held_by: AtomicUsize::new(0) });
    drop(runs);
    let mut settings = Settings::clone(&daemon.settings());
    settings.policies.built.insert(NAME, Arc::clone(&watching) as Arc<dyn Policy>);
    daemon.0.settings.store(Arc::new(settings));
    daemon.train().await.unwrap();
    assert_eq!(
        (problem(daemon), watching.held_by.load(Ordering::SeqCst)),
        ("60 finished jobs, fewer than 1000".to_owned(), 1)
    );
    running.shutdown().await.unwrap();
}

#[test]
fn what_a_run_tells_of_another_class_or_of_a_container_that_waited_is_not_learnt_from() {
    let share = ClassShare { class: ClassHash::of("scale-up"), per_mille: 250 };
    let told = Run { ran_on: Some(share), ..run(1, 40).whole.unwrap() };
    assert_eq!(finished(&told, "scale-up").on_class, Some(250));
    assert_eq!(finished(&told, "large").on_class, None, "the class was called otherwise then");
    assert_eq!(
        (finished(&told, "large").maps, finished(&told, "large").reduces.1),
        ((40, told.maps.1), told.reduces.1)
    );
    let heard = finished(&Run { counted: false, ..told }, "scale-up");
    assert_eq!((heard.reduces, heard.maps.1), ((5, Micros::ZERO), told.maps.1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_nobody_uses_is_not_trained() {
    let folder = tempfile::tempdir().unwrap();
    let running = again(&folder).await;
    tell(&running.daemon, 1, both_kinds()).await;
    running.daemon.train().await.unwrap();
    assert_eq!(lesson(&running.daemon), None);
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn history_of_one_class_only_leaves_it_as_it_was_and_says_so() {
    let (folder, running) = used().await;
    let daemon = &running.daemon;
    tell(daemon, 1, 1..59).await;
    daemon.train().await.unwrap();
    let said = "of 58 finished jobs 58 are small: fewer than 5 are of the other kind";
    assert_eq!((lesson(daemon), problem(daemon)), (None, said.to_owned()));
    assert!(!file_in(&folder).exists());
    tell(daemon, 100, (0..12).map(|at| 2_000 + at)).await;
    daemon.train().await.unwrap();
    assert_eq!(
        (lesson(daemon).unwrap().small, problem(daemon)),
        (58, String::new()),
        "and learns when the others came"
    );
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_is_named_and_learnt_anew() {
    let (folder, running) = used().await;
    tell(&running.daemon, 1, both_kinds()).await;
    running.daemon.train().await.unwrap();
    running.shutdown().await.unwrap();
    let file = file_in(&folder);
    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let not_ours: &[u8] = b"hello\nworld";
    let cases: [(&[u8], &str); 4] = [
        (&whole[..whole.len() / 2], "its check sum is"),
        (&flipped, "its check sum is"),
        (b"", "no first line"),
        (not_ours, "its first line is not"),
    ];
    for (bytes, said) in cases {
        std::fs::write(&file, bytes).unwrap();
        let running = again(&folder).await;
        let daemon = &running.daemon;
        let named = damaged(daemon);
        assert!(named.contains("journal.scale_up_out: ") && named.contains(said), "{said}: {named}");
        assert_eq!((lesson(daemon), problem(daemon)), (None, String::new()));
        daemon.settings().policies.built[NAME].prepare();
        daemon.train().await.unwrap();
        assert_eq!(damaged(daemon), "", "it is written anew");
        assert_eq!(
            (lesson(daemon).unwrap().jobs, read(&file).unwrap().is_some()),
            (60, true),
            "from the journal's runs"
        );
        running.shutdown().await.unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), whole, "the same runs teach the same");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_named_until_another_is_in_its_place_whatever_else_goes_wrong() {
    let (folder, running) = used().await;
    tell(&running.daemon, 1, both_kinds().take(45)).await;
    running.shutdown().await.unwrap();
    std::fs::write(file_in(&folder), b"hello\nworld").unwrap();
    let running = again(&folder).await;
    let daemon = &running.daemon;
    daemon.settings().policies.built[NAME].prepare();
    let named = damaged(daemon);
    assert!(named.contains("journal.scale_up_out: "), "{named}");
    daemon.train().await.unwrap();
    assert_eq!((damaged(daemon), &*problem(daemon)), (named.clone(), "45 finished jobs, fewer than 50"));
    // A folder in its place takes no file.
    std::fs::remove_file(file_in(&folder)).unwrap();
    std::fs::create_dir(file_in(&folder)).unwrap();
    tell(daemon, 100, both_kinds().take(15)).await;
    daemon.train().await.unwrap();
    let stands = daemon.training_of(NAME);
    assert_eq!((lesson(daemon).unwrap().jobs, stands.problem), (60, None));
    assert_eq!((stands.damaged_file, stands.not_kept.is_some()), (Some(named), true));
    std::fs::remove_dir(file_in(&folder)).unwrap();
    tell(daemon, 200, both_kinds().take(10)).await;
    daemon.train().await.unwrap();
    let stands = daemon.training_of(NAME);
    assert_eq!((stands.damaged_file, stands.not_kept, stands.problem), (None, None, None));
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn training_needs_no_journal_and_holds_up_no_engine() {
    let (folder, running) = used().await;
    let daemon = running.daemon.clone();
    tell(&daemon, 1, both_kinds()).await;
    daemon.engine_report().await.unwrap();
    // The journal's disk is away: what is kept beside it can't be written either.
    std::fs::create_dir(file_in(&folder)).unwrap();
    let beside = || std::fs::read_dir(folder.path()).unwrap().count();
    let before = beside();
    daemon.0.shared.ready.send_modify(|ready| {
        ready.store(false);
    });
    daemon.train().await.unwrap();
    assert_eq!(lesson(&daemon).unwrap().jobs, 60);
    let said = daemon.training_of(NAME).not_kept.unwrap_or_default();
    assert!(said.contains("journal.scale_up_out: ") && said.contains("the next start learns anew"), "{said}");
    assert_eq!(problem(&daemon), "", "it was trained");
    assert_eq!(beside(), before, "what was begun is not left behind");
    // It is trained and in force without a word of the engine's thread.
    tell(&daemon, 100, both_kinds().take(10)).await;
    let policy = Arc::clone(&daemon.settings().policies.built[NAME]);
    let runs = daemon.0.engine_handle.ask(|reply| Command::Plans(PlanCall::Runs(reply))).await.unwrap();
    let jobs = finished_jobs(policy.as_learn().unwrap(), &runs);
    let seen = Seen::of(&*policy, &runs, &jobs);
    let stalled = stall(&daemon);
    timeout(SOON * 6, daemon.train_one(NAME, &policy, (jobs, seen))).await.unwrap();
    assert_eq!(lesson(&daemon).unwrap().jobs, 70);
    drop(stalled);
    daemon.engine_report().await.unwrap();
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learnt_under_parameters_that_a_reload_changed_is_dropped() {
    let (_folder, running) = used().await;
    let daemon = &running.daemon;
    let policy = Arc::clone(&daemon.settings().policies.built[NAME]);
    let mut settings = Settings::clone(&daemon.settings());
    let reloaded: Arc<dyn Policy> = Arc::from(hintd_policy::registry::with_defaults(NAME).unwrap());
    settings.policies.built.insert(NAME, Arc::clone(&reloaded));
    daemon.0.settings.store(Arc::new(settings));
    assert!(!daemon.replace_policy(NAME, &policy, Arc::clone(&policy)).await);
    assert!(Arc::ptr_eq(&daemon.settings().policies.built[NAME], &reloaded));
    running.shutdown().await.unwrap();
}
