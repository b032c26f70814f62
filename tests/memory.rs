//! What kept decisions cost in memory: the engine alone, as the soak loads it, by its resident set.
//!
//! `cargo test --release --test memory -- --nocapture` prints bytes by answer; `ANSWERS` sets how many,
//! `CONTAINERS` of how many containers.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

use hintd::telemetry::process::resident_bytes;
use hintd_engine::{
    Answer, CommitOutcome, Engine, EngineSettings, Mode, PlacerSettings, Proof, Rows, SelectedPolicy, TaskEvent,
    TaskWhat, Token, propose,
};
use hintd_model::cluster::{
    Change, Constraints, Gang, Heartbeat, HintRequest, NamedContainer, NamedResource, NodeState, Registration,
    SizeRules, TaskGroup, WhenFull,
};
use hintd_model::units::{
    ApplicationId, AttemptId, Bytes, ContainerId, DecisionId, LeaseId, Micros, SchedulerKey, Timestamp,
};
use hintd_policy::{Policy, registry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers before memory is looked at first: what is bounded otherwise is filled, and the allocator has its pools.
const FIRST: usize = 300;

fn resident() -> usize {
    usize::try_from(resident_bytes(std::process::id()).unwrap()).unwrap()
}

const NODES: u32 = 100;
const START: Timestamp = Timestamp(1_700_000_000_000_000);

fn size(memory_mb: u64) -> NamedResource {
    NamedResource { memory_mb, vcores: 1, named: Vec::new() }
}

fn host(at: u32) -> String {
    format!("node-{at:05}.cluster.example")
}

fn engine() -> Engine {
    let day = Micros::from_secs(86_400); // nodes need not speak
    let settings = EngineSettings { stale_after: day, lost_after: day, ..EngineSettings::default() };
    let (mut engine, _) = Engine::new(settings, SizeRules::default(), Rows::new(), START).unwrap();
    for at in 0..NODES {
        let total = NamedResource { vcores: 64, ..size(1 << 18) };
        let registration = Registration {
            host: host(at).as_str().into(),
            rack: format!("/rack-{:03}", at / 20).as_str().into(),
            total,
            labels: Vec::new(),
            attributes: BTreeMap::new(),
            class: "".into(),
            aliases: Vec::new(),
            disk_read: Bytes(0),
            state: NodeState::Running,
        };
        engine.change(Change::Register(registration), START).unwrap();
    }
    engine.publish(START);
    engine
}

fn attempt(number: usize) -> AttemptId {
    let application = ApplicationId { cluster_timestamp: 1_700_000_000_000, sequence: number as u32 };
    AttemptId { application, attempt: 1 }
}

/// One group of workers, as `hintctl bench soak` asks for.
fn request(number: usize, count: u32) -> HintRequest {
    let group = TaskGroup {
        name: "worker".into(),
        role: "worker".into(),
        count,
        whole: 0,
        size: size(1_024),
        key: SchedulerKey { priority: 1, allocation_request_id: -1 },
        label: None,
        input_paths: Vec::new(),
        constraints: Constraints::default(),
    };
    HintRequest {
        id: attempt(number).to_string().as_str().into(),
        attempt: attempt(number),
        queue: "default".into(),
        user: "soak".into(),
        framework: "".into(),
        groups: vec![group],
        edges: Vec::new(),
        input_paths: Vec::new(),
        recurring_key: None,
        constraints: Constraints::default(),
        policy: None,
        seed: None,
        gang: Gang::UpTo,
        when_full: WhenFull::Advise,
        am_host: None,
        asks: Vec::new(),
        survivors: Vec::new(),
    }
}

/// What became of the journal's rows: their bytes, were they kept.
fn drain(engine: &mut Engine) {
    drop(engine.take_effects());
}

/// Asks, and lets the application do as those of the soak do: of eight one vanishes, two give back, five run to their
/// end.
fn live(engine: &mut Engine, policies: &[Box<dyn Policy>; 2], number: usize, count: u32, now: Timestamp) -> DecisionId {
    let [policy, baseline] = policies;
    let chosen = SelectedPolicy { policy: &**policy, baseline: &**baseline, mode: Mode::On, name: policy.name() };
    let settings = PlacerSettings { steps: 200, ..PlacerSettings::default() };
    let request = Arc::new(request(number, count));
    let mut proposal = propose(&engine.generation(), &request, &chosen, &settings, now, &mut || false).unwrap();
    proposal.digest = 1;
    // A token of its own, as long as the daemon's.
    let token = Token(format!("{number:032x}").as_str().into());
    let outcome = engine.commit(proposal, token.clone(), now);
    let CommitOutcome::Committed(answer) = outcome else { panic!("{outcome:?}") };
    match number % 8 {
        0 => {}
        1 | 2 => drop(engine.release(attempt(number), &Proof::of_token(token.clone()), &[], now).unwrap()),
        _ => run(engine, &answer, now),
    }
    drain(engine);
    answer.decision.id
}

/// Every container is allocated where it was hinted and shows itself there; then the application says that it is done.
fn run(engine: &mut Engine, answer: &Answer, now: Timestamp) {
    let attempt = answer.decision.attempt;
    let tell = |engine: &mut Engine, what: TaskWhat| {
        let (group, task) = ("worker".into(), "t".into());
        engine.event(TaskEvent { attempt, group, task, what, recurring_key: None, at: now }, now).unwrap();
    };
    let leases: Vec<(LeaseId, _)> = answer
        .decision
        .hints
        .iter()
        .flat_map(|hint| hint.leases.iter().map(|&lease| (lease, hint.host.clone())))
        .collect();
    for (id, (lease, host)) in (2..).zip(leases) {
        let container = ContainerId { attempt, id };
        tell(engine, TaskWhat::Allocated { host: host.clone(), container, lease: Some(lease) });
        let key = SchedulerKey { priority: 1, allocation_request_id: -1 };
        let heartbeat = |containers: Vec<NamedContainer>| Heartbeat {
            host: host.clone(),
            used: size(1_024 * containers.len() as u64),
            used_is_running: false,
            containers: Some(containers),
            state: NodeState::Running,
        };
        let running = NamedContainer { id: container, size: size(1_024), key };
        engine.change(Change::Heartbeat(heartbeat(vec![running])), now).unwrap();
        engine.publish(now);
        engine.change(Change::Heartbeat(heartbeat(Vec::new())), now).unwrap();
    }
    tell(engine, TaskWhat::Done { failed: false });
}

/// Bytes by answer that stay once leases and watches are over; the answers asked for are still there.
fn stays(answers: usize, count: u32) -> usize {
    let (mut engine, mut now) = (engine(), START);
    let policies = ["container", "capacity"].map(|name| registry::with_defaults(name).unwrap());
    let pause = |engine: &mut Engine, now: &mut Timestamp| {
        for _ in 0..40 {
            *now = now.plus(Micros::from_secs(10));
            engine.tick(*now);
            drain(engine);
        }
        engine.publish(*now);
    };
    for number in 0..FIRST {
        live(&mut engine, &policies, number, count, now);
    }
    (0..3).for_each(|_| pause(&mut engine, &mut now)); // they are forgotten again
    let (before, mut ids) = (resident(), Vec::with_capacity(answers));
    for number in FIRST..FIRST + answers {
        ids.push(live(&mut engine, &policies, number, count, now));
        if number % 20 == 0 {
            now = now.plus(Micros::from_millis(100));
            engine.tick(now);
            engine.publish(now);
            drain(&mut engine);
        }
    }
    pause(&mut engine, &mut now);
    let held = resident().saturating_sub(before) / answers;
    assert_eq!(engine.counts().answers, answers, "all of them are kept");
    assert_eq!((engine.counts().leases, engine.counts().watched), (0, 0));
    for id in ids.iter().step_by(97) {
        let explained = engine.explain(*id).expect("it is kept").unpack();
        let outcome = explained.outcome;
        assert!(outcome.as_ref().is_some_and(|outcome| outcome.settled), "{outcome:?}");
    }
    held
}

/// A number that the environment may set.
fn set(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

#[test]
#[allow(clippy::print_stderr)] // figures for whoever asks for them
fn a_kept_answer_takes_little() {
    // One kind a process: a second would live in what the first has left.
    let (answers, count) = (set("ANSWERS", 800), set("CONTAINERS", 2));
    let each = stays(answers, u32::try_from(count).unwrap());
    eprintln!("{each} bytes for each of {answers} answers of {count} containers");
    let most = 3_000 + 250 * count; // 5,984 of two, before answers were packed
    assert!(each < most, "{each} bytes an answer of {count} containers");
}
