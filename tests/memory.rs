//! What kept decisions cost in memory, counted at the allocator: the engine alone, as the soak loads it.
//!
//! `cargo test --release --test memory -- --nocapture` prints bytes by kind of request; `ANSWERS` sets how many.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

use hintd::cluster::{
    Change, Constraints, Gang, Heartbeat, HintRequest, NamedContainer, NamedResource, NodeState, Registration,
    SizeRules, TaskGroup, WhenFull,
};
use hintd::engine::records::{Came, Seen};
use hintd::engine::{
    Answer, Chosen, CommitOutcome, Engine, EngineSettings, Mode, PlacerSettings, RecordSettings, Records, Rows,
    TaskEvent, TaskWhat, Token, propose,
};
use hintd::policy::{Policy, registry};
use hintd::units::{
    ApplicationId, AttemptId, Bytes, ContainerId, DecisionId, LeaseId, Micros, SchedulerKey, Timestamp,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The system's allocator, counting what is held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// What an allocation of so many bytes takes of the system's allocator: 8 bytes before it, in steps of 16, at least 32.
const fn taken(bytes: usize) -> usize {
    let whole = (bytes + 8).next_multiple_of(16);
    if whole < 32 { 32 } else { whole }
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(taken(layout.size()), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(taken(layout.size()), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NODES: u32 = 500;
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
    }
}

/// What became of the journal's rows: their bytes, were they kept.
fn drain(engine: &mut Engine) {
    drop(engine.take_effects());
}

/// Asks, and lets the application do as those of the soak do: of eight one vanishes, two give back, five run to their
/// end.
fn live(engine: &mut Engine, number: usize, count: u32, now: Timestamp) -> Seen {
    let policy: Arc<dyn Policy> = registry::with_defaults("container").unwrap().into();
    let baseline: Arc<dyn Policy> = registry::with_defaults("capacity").unwrap().into();
    let chosen = Chosen { policy: &*policy, baseline: &*baseline, mode: Mode::On, name: "container" };
    let settings = PlacerSettings { steps: 200, ..PlacerSettings::default() };
    let request = Arc::new(request(number, count));
    let generation = engine.generation();
    let mut proposal = propose(&generation, &request, &chosen, &settings, now, &mut || false).unwrap();
    proposal.digest = 1;
    // A token of its own, as long as the daemon's.
    let token = Token(format!("{number:032x}").as_str().into());
    let outcome = engine.commit(proposal, token.clone(), now);
    let CommitOutcome::Committed(answer) = outcome else { panic!("{outcome:?}") };
    match number % 8 {
        0 => {}
        1 | 2 => drop(engine.release(attempt(number), &token, &[], now).unwrap()),
        _ => run(engine, &answer, now),
    }
    drain(engine);
    Seen {
        request,
        policy,
        name: "container".into(),
        baseline,
        mode: Mode::On,
        settings,
        now,
        stopped: None,
        follows: false,
        generation,
        read: None,
        came: Came::Answered { answer, draft: None, desk: None },
    }
}

fn decision(seen: &Seen) -> DecisionId {
    match &seen.came {
        Came::Answered { answer, .. } => answer.decision.id,
        Came::Refused { decision, .. } => *decision,
    }
}

/// Every container is allocated where it was hinted and shows itself there; then the application says that it is done.
fn run(engine: &mut Engine, answer: &Answer, now: Timestamp) {
    let attempt = answer.decision.attempt;
    let mut next = 2;
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
    for (lease, host) in leases {
        let container = ContainerId { attempt, id: next };
        next += 1;
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
    let mut engine = engine();
    let mut now = START;
    let mut ids: Vec<DecisionId> = Vec::with_capacity(answers);
    // The first ones fill what is bounded otherwise.
    for number in 0..50 {
        live(&mut engine, number, count, now);
    }
    let pause = |engine: &mut Engine, now: &mut Timestamp| {
        for _ in 0..400 {
            *now = now.plus(Micros::from_secs(1));
            engine.tick(*now);
            drain(engine);
        }
        engine.publish(*now);
    };
    (0..3).for_each(|_| pause(&mut engine, &mut now)); // they are forgotten again
    let (before, kept) = (HELD.load(Ordering::Relaxed), engine.counts().answers);
    for number in 50..50 + answers {
        ids.push(decision(&live(&mut engine, number, count, now)));
        if number % 100 == 0 {
            engine.publish(now);
        }
    }
    pause(&mut engine, &mut now);
    assert_eq!(engine.counts().answers, kept + answers, "all of them are kept");
    assert_eq!((engine.counts().leases, engine.counts().watched), (0, 0));
    let held = HELD.load(Ordering::Relaxed).saturating_sub(before) / answers;
    for id in ids.iter().step_by(97) {
        let explained = engine.explain(*id).expect("it is kept");
        let outcome = explained.outcome;
        assert!(outcome.as_ref().is_some_and(|outcome| outcome.settled), "{outcome:?}");
    }
    held
}

/// One at a time: what another test allocates would be counted here.
static TURN: Mutex<()> = Mutex::new(());

#[test]
#[allow(clippy::print_stderr)] // figures for whoever asks for them
fn records_take_the_bytes_that_they_say() {
    let _turn = TURN.lock().unwrap();
    for count in [2, 24] {
        let (mut engine, mut now) = (engine(), START);
        let mut records = Records::new(RecordSettings::default());
        let all: Vec<Seen> = (0..300)
            .map(|number| {
                now = now.plus(Micros::from_millis(3));
                let seen = live(&mut engine, number, count, now);
                engine.publish(now);
                seen
            })
            .collect();
        let (before, said) = (HELD.load(Ordering::Relaxed), records.kept().bytes);
        // What the records do not keep goes with the engine and its generations.
        drop(engine);
        all.into_iter().for_each(|seen| records.take(seen));
        let held = HELD.load(Ordering::Relaxed);
        let said = records.kept().bytes - said;
        drop(records);
        let freed = held - HELD.load(Ordering::Relaxed);
        eprintln!("records of 300 decisions of {count} containers say {said} bytes and free {freed}; before {before}");
        assert!(freed < said * 5 / 4, "{freed} bytes, where {said} are counted");
    }
}

#[test]
#[allow(clippy::print_stderr)] // figures for whoever asks for them
fn a_kept_answer_takes_little() {
    let _turn = TURN.lock().unwrap();
    let answers = std::env::var("ANSWERS").map_or(300, |text| text.parse().unwrap());
    for (count, most) in [(2, 2_900), (24, 5_600)] {
        let each = stays(answers, count);
        eprintln!("{each} bytes for each of {answers} answers of {count} containers");
        assert!(each < most, "{each} bytes an answer of {count} containers");
    }
}
