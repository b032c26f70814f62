//! Rounds where only a test can bring them: callers that go, a policy that panics, more than may wait, a daemon that stops.

use super::super::super::tests::{PATIENT, SOON, shuffle, stall, until, usable};
use super::super::place::{Refused, RequestAnswer, RequestOptions};
use super::*;
use crate::config::Config;
use crate::server::{Running, start};
use crate::telemetry::metrics::Metrics;
use hintd_engine::Proof;
use hintd_model::cluster::Gang;
use hintd_model::units::Micros;
use hintd_policy::{Budget, Place, PlaceError, PlaceProblem, PlaceTogether, Placement, Policy, Together, registry};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A daemon with four nodes of four containers each that places by `nomora`, in rounds that are full at `requests` or after an hour.
async fn gathering(requests: usize, more: &str, policy: Option<Arc<dyn Policy>>) -> (TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[listen]\ngrpc = \"127.0.0.1:0\"\nadmin_socket = {:?}\nmetrics = \"\"\n[store]\npath = {:?}\n\
         {PATIENT}[policy]\ndefault = \"nomora\"\n[placer]\nround = \"10s\"\nround_requests = {requests}\n{more}",
        folder.path().join("admin.sock"),
        folder.path().join("journal"),
    );
    let mut config = Config::from_text(&text, "test.toml").unwrap();
    let round = config.options.settings.placer.round.as_mut().unwrap();
    assert_eq!((round.every, round.requests), (Micros::from_secs(10), requests));
    round.every = Micros::from_secs(3_600);
    if let Some(policy) = policy {
        config.options.settings.policies.built.insert("nomora", policy);
    }
    let running = start(&config.options, Metrics::new()).await.unwrap();
    usable(&running, &["h0", "h1", "h2", "h3"]).await;
    (folder, running)
}

type Asked = JoinHandle<Result<RequestAnswer, Refused>>;

/// Two containers near a host.
fn two(application: u32) -> HintRequest {
    let mut request = shuffle(application, false);
    request.groups.truncate(1);
    (request.groups[0].count, request.gang) = (2, Gang::UpTo);
    request.groups[0].constraints = Default::default();
    request.am_host = Some("h0".into());
    request
}

/// Asks for them.
fn ask(daemon: &Daemon, application: u32, time: Duration) -> Asked {
    let request = two(application);
    let (daemon, decision, deadline) = (daemon.clone(), daemon.next_decision(), Instant::now() + time);
    let options = RequestOptions { proof: Proof::Trusted, ..RequestOptions::default() };
    tokio::spawn(async move { daemon.request(request.into(), 1, decision, deadline, options).await })
}

async fn answered(asked: Asked) -> Arc<hintd_engine::Answer> {
    timeout(SOON * 3, asked).await.unwrap().unwrap().unwrap().answer
}

/// The same at the moment that its round begins.
fn waiter(daemon: &Daemon, application: u32, time: Duration) -> (Waiter, oneshot::Receiver<RoundAnswer>) {
    let ((answer, wait), joined) = (oneshot::channel(), Instant::now());
    let waiter = Waiter {
        request: two(application).into(),
        settings: daemon.settings(),
        policy: "nomora",
        located: None,
        planned: None,
        recorded: false,
        began: joined,
        deadline: joined + time,
        joined,
        place: daemon.0.pool.admit(time).unwrap(),
        answer,
    };
    (waiter, wait)
}

const LONG: Duration = Duration::from_secs(600);
/// A quarter of it is left for the commit.
const SHORT: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_come_together_are_decided_together_and_each_has_its_own_record() {
    let (_folder, running) = gathering(3, "", None).await;
    let daemon = &running.daemon;
    let asked: Vec<Asked> = (1..=3).map(|application| ask(daemon, application, LONG)).collect();
    let mut leases = std::collections::BTreeSet::new();
    for (application, asked) in (1..).zip(asked) {
        let answer = answered(asked).await;
        assert_eq!(answer.decision.attempt.application.sequence, application);
        assert_eq!(answer.decision.round.unwrap().requests, 3);
        leases.extend(answer.leases());
        let record = daemon.record(answer.decision.id).await.unwrap();
        assert!(record.replay(None).same);
    }
    assert_eq!(leases.len(), 6, "two each, none twice");
    assert_eq!(daemon.0.pool.admitted(), 0, "their places were given back");
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_caller_goes_is_decided_without_and_one_without_the_time_is_not_held() {
    let (_folder, running) = gathering(2, "", None).await;
    let daemon = &running.daemon;
    let gone = ask(daemon, 1, LONG);
    until(|| daemon.0.rounds.waiting() == 1).await;
    gone.abort();
    let _ = gone.await;
    until(|| daemon.0.rounds.waiting() == 0 && daemon.0.pool.admitted() == 0).await;
    let first = ask(daemon, 2, LONG);
    until(|| daemon.0.rounds.waiting() == 1).await;
    for asked in [first, ask(daemon, 3, LONG)] {
        assert_eq!(answered(asked).await.decision.round.map(|round| round.requests), Some(2));
    }
    assert_eq!(daemon.engine_report().await.unwrap().counts.attempts, 2, "nothing is left of who went");
    // It is held until the commit has to begin, and no longer.
    let asked = ask(daemon, 4, SHORT);
    assert!(timeout(SOON * 3, asked).await.unwrap().unwrap().is_ok());
    assert_eq!((daemon.0.rounds.waiting(), daemon.0.pool.admitted()), (0, 0));
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_has_less_time_than_a_round_takes_ends_no_search_of_others() {
    let (_folder, running) = gathering(3, "", None).await;
    let daemon = &running.daemon;
    // Three of them take 300 s.
    daemon.0.rounds.lock().gathering.decided(1, Micros::from_secs(100));
    let waiters = [LONG, SOON, LONG].into_iter().zip(1..).map(|(time, application)| waiter(daemon, application, time));
    let (round, waits): (Vec<Waiter>, Vec<_>) = waiters.unzip();
    daemon.decide_round(round);
    let mut came = Vec::new();
    for wait in waits {
        came.push(match timeout(SOON * 3, wait).await.unwrap().unwrap() {
            RoundAnswer::Searched(found, _) => {
                let decision = found.found.unwrap().preview();
                Some((decision.round.unwrap().requests, decision.hints.iter().map(|hint| hint.count).sum::<u32>()))
            }
            RoundAnswer::Refused(refusal) => panic!("{refusal}"),
            RoundAnswer::Alone => None,
        });
    }
    assert_eq!(came, [Some((2, 2)), None, Some((2, 2))]);
    until(|| daemon.0.pool.admitted() == 0).await;
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_while_its_round_is_committed_holds_up_no_other_round() {
    let (_folder, running) = gathering(2, "", None).await;
    let daemon = &running.daemon;
    let stalled = stall(daemon);
    let asked = [ask(daemon, 1, LONG), ask(daemon, 2, LONG)];
    until(|| daemon.0.engine_handle.queued() >= 2).await;
    asked[0].abort();
    drop(stalled);
    let [gone, other] = asked;
    let _ = gone.await;
    answered(other).await;
    for asked in [ask(daemon, 3, LONG), ask(daemon, 4, LONG)] {
        assert_eq!(answered(asked).await.decision.round.unwrap().requests, 2);
    }
    running.shutdown().await.unwrap();
}

/// `nomora`, that panics where it decides several.
struct Panics(Box<dyn Policy>);

impl Policy for Panics {
    fn name(&self) -> &'static str {
        "nomora"
    }

    fn summary(&self) -> &'static str {
        ""
    }

    fn params_toml(&self) -> String {
        String::new()
    }

    fn as_place(&self) -> Option<&dyn Place> {
        Some(self)
    }
}

impl Place for Panics {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        self.0.as_place().unwrap().place(problem, budget)
    }

    fn as_together(&self) -> Option<&dyn PlaceTogether> {
        Some(self)
    }
}

impl PlaceTogether for Panics {
    fn place_together(&self, _: &[PlaceProblem<'_>], _: &[u64], _: &mut Budget<'_>) -> Together {
        panic!("as a policy's bug would")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_that_panics_is_decided_one_by_one() {
    let policy = Panics(registry::with_defaults("nomora").unwrap());
    // The queue is full: each has to give its place back before it is told to take one of its own.
    let (_folder, running) = gathering(3, "guard = false\nqueue = 2\nthreads = 1\n", Some(Arc::new(policy))).await;
    let daemon = &running.daemon;
    let asked: Vec<Asked> = (1..=3).map(|application| ask(daemon, application, LONG)).collect();
    for asked in asked {
        let answer = answered(asked).await;
        assert_eq!((answer.decision.round, answer.leases().count()), (None, 2));
    }
    let asked: Vec<Asked> = (4..=6).map(|application| ask(daemon, application, LONG)).collect();
    for asked in asked {
        answered(asked).await;
    }
    assert_eq!((daemon.0.rounds.waiting(), daemon.0.pool.admitted()), (0, 0), "rounds go on");
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_may_wait_are_refused_as_any_overload() {
    let (_folder, running) = gathering(4_096, "queue = 20\nthreads = 1\n", None).await;
    let daemon = &running.daemon;
    let asked: Vec<Asked> = (0..10_000).map(|application| ask(daemon, application, LONG)).collect();
    let refused = async {
        loop {
            let done = asked.iter().filter(|asked| asked.is_finished()).count();
            if done == 10_000 - 21 {
                return;
            }
            assert!(done < 10_000 - 21, "{done} are done, and 20 may wait beside the one that a thread has");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON * 3, refused).await.expect("whoever finds no place is refused at once");
    assert_eq!(daemon.0.rounds.waiting(), 21);
    let mut refusals = 0;
    for asked in asked {
        if !asked.is_finished() {
            asked.abort();
            continue;
        }
        match asked.await.unwrap() {
            Err(Refused { refusal: Refusal::Unavailable { retry_after, .. }, .. }) => {
                assert!(retry_after > Micros::ZERO);
                refusals += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refusals, 10_000 - 21);
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn other_settings_begin_another_round_and_the_old_one_ends_under_its_own() {
    let (_folder, running) = gathering(2, "", None).await;
    let daemon = &running.daemon;
    let before = ask(daemon, 1, SHORT);
    until(|| daemon.0.rounds.waiting() == 1).await;
    let mut changed = Settings::clone(&daemon.settings());
    changed.placer.steps += 1;
    daemon.0.settings.store(Arc::new(changed.clone()));
    let after = [ask(daemon, 2, LONG), ask(daemon, 3, LONG)];
    assert_eq!(answered(before).await.decision.round, None, "nobody else came under its settings");
    for asked in after {
        assert_eq!(answered(asked).await.decision.round.unwrap().requests, 2);
    }
    // Another policy, while one gathers: it ends under the policy that it came under.
    let open = ask(daemon, 4, SHORT);
    until(|| daemon.0.rounds.waiting() == 1).await;
    (changed.policies.default, changed.placer.round) = ("spread", None);
    daemon.0.settings.store(Arc::new(changed));
    assert_eq!(&*answered(ask(daemon, 5, LONG)).await.decision.policy, "spread");
    assert_eq!(&*answered(open).await.decision.policy, "nomora");
    running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_stops_leaves_nobody_waiting() {
    let (_folder, running) = gathering(4_096, "", None).await;
    let daemon = running.daemon.clone();
    let asked: Vec<Asked> = (1..=3).map(|application| ask(&daemon, application, LONG)).collect();
    until(|| daemon.0.rounds.waiting() == 3).await;
    daemon.end_streams();
    for asked in asked {
        let answer = answered(asked).await;
        assert_eq!((answer.decision.round.unwrap().requests, answer.leases().count()), (3, 2));
    }
    assert_eq!(answered(ask(&daemon, 9, LONG)).await.decision.round, None, "nothing gathers any more");
    timeout(SOON, running.shutdown()).await.unwrap().unwrap();
}
