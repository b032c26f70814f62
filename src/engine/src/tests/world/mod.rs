//! A deterministic simulation: one seed makes a cluster, its settings and everything that happens to an engine in it;
//! after every step the invariants are checked.
//!
//! `HINTD_SIM_SEED=7 cargo test --lib engine::tests::world` plays one seed again, `HINTD_SIM_SEEDS` (a count, or
//! `from..to`) and `HINTD_SIM_STEPS` play more and longer; `HINTD_SIM_SECONDS` goes on until then. A failure names seed
//! and step, and the few events that are enough for it.
//!
//! # Code map
//! - `event`: what may happen, drawn from the seed, choices and all.
//! - `state`, `outside`, `inside`: the world and what events do to it; `disk`, the way of batches to the disk.
//! - `rebalance`: rounds of rebalancing.
//! - `naive`, `book`: oracles for nodes and leases; `check`, `routes`, `chains`: the invariants.

mod book;
mod chains;
mod check;
mod disk;
mod event;
mod inside;
mod naive;
mod outside;
mod rebalance;
mod routes;
mod state;

use super::super::Counter;
use event::{APPS, Event, script};
use state::World;
use std::any::Any;
use std::collections::BTreeMap;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::time::{Duration, Instant};

/// What playing a list of events came to.
struct Played {
    hash: u64,
    totals: BTreeMap<Counter, u64>,
}

/// Where it broke, and how.
struct Broken {
    step: usize,
    message: String,
}

impl Broken {
    /// What broke, without the names and numbers in it.
    fn kind(&self) -> String {
        self.message.chars().filter(|c| c.is_ascii_alphabetic()).take(40).collect()
    }
}

fn play(seed: u64, events: &[Event]) -> Result<Played, Broken> {
    let mut step = 0;
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed);
        for event in events {
            world.play(event);
            step += 1;
        }
        end(&mut world);
        Played { hash: world.hash(), totals: world.totals.clone() }
    }));
    played.map_err(|panic| Broken { step, message: words(&*panic) })
}

/// All applications end, all arrives, and time passes: nothing of what is over stays.
fn end(world: &mut World) {
    world.play(&Event::DiskBack);
    world.play(&Event::DeliverAll);
    for app in 1..=APPS {
        world.play(&Event::Done { app, failed: false });
    }
    world.play(&Event::DeliverAll);
    world.play(&Event::Publish);
    for attempt in World::attempts() {
        if attempt.attempt == 2 {
            let what = crate::TaskWhat::Done { failed: false };
            let (group, task) = ("".into(), "".into());
            let event = crate::TaskEvent { attempt, group, task, what, recurring_key: None, at: world.now };
            world.hear(state::Message::Task(event));
        }
    }
    world.play(&Event::Sync { batches: usize::MAX });
    let counts = world.engine.counts();
    assert_eq!((counts.leases, counts.waiting, counts.attempts), (0, 0, 0), "nothing of what is over stays");
    // What was answered under other settings is kept as long as those said.
    let keep = (0..4).map(|which| state::settings(which).answers_keep).max().unwrap();
    world.play(&Event::Pass { ms: keep.0 / 1_000 + 1_000 });
    world.play(&Event::Sync { batches: usize::MAX });
    assert_eq!(world.engine.counts().answers, 0, "answers are kept for their time");
    assert!(world.disk.is_settled());
    world.check_disk();
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "no words".to_owned())
}

/// Fewer events that break the same way: halves, quarters, … are left out as long as it still breaks.
fn shrink(seed: u64, mut events: Vec<Event>, broken: &Broken) -> Vec<Event> {
    let same = |other: &Broken| other.kind() == broken.kind();
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let until = Instant::now() + Duration::from_secs(30);
    let mut part = events.len().div_ceil(2);
    while part > 0 && Instant::now() < until {
        let (mut at, mut cut) = (0, false);
        while at < events.len() && Instant::now() < until {
            let mut fewer = events.clone();
            fewer.drain(at..(at + part).min(events.len()));
            match play(seed, &fewer) {
                Err(other) if same(&other) => {
                    fewer.truncate(other.step + 1);
                    (events, cut) = (fewer, true);
                }
                _ => at += part,
            }
        }
        if !cut || part > 1 {
            part /= 2;
        }
    }
    set_hook(hook);
    events
}

fn try_seed(seed: u64, steps: usize) -> Played {
    let mut events = script(seed, steps);
    match play(seed, &events) {
        Ok(played) => played,
        Err(broken) => {
            events.truncate(broken.step + 1);
            let few = shrink(seed, events, &broken);
            let list: String = few.iter().map(|event| format!("    {event:?}\n")).collect();
            let again = play(seed, &few).err().map_or(String::new(), |broken| broken.message);
            panic!(
                "seed {seed} breaks at step {}: {}\n{} events are enough ({again}):\n{list}\
                 play it again: HINTD_SIM_SEED={seed} HINTD_SIM_STEPS={steps}",
                broken.step,
                broken.message,
                few.len()
            );
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// From where to where.
fn seeds(otherwise: u64) -> (u64, u64) {
    if let Ok(seed) = env::var("HINTD_SIM_SEED") {
        let seed = seed.parse().expect("HINTD_SIM_SEED is a number");
        return (seed, seed + 1);
    }
    match env::var("HINTD_SIM_SEEDS").ok().as_deref().map(|text| (text, text.split_once(".."))) {
        Some((_, Some((from, to)))) => (from.parse().expect("a number"), to.parse().expect("a number")),
        Some((count, None)) => (0, count.parse().expect("a number")),
        None => (0, otherwise),
    }
}

#[test]
fn whatever_happens_the_invariants_hold() {
    let steps = usize::try_from(number("HINTD_SIM_STEPS", 400)).unwrap();
    let seconds = number("HINTD_SIM_SECONDS", 0);
    let ((from, to), began) = (seeds(80), Instant::now());
    let mut totals: BTreeMap<Counter, u64> = BTreeMap::new();
    let (mut seed, mut played) = (from, 0_u64);
    while if seconds > 0 { began.elapsed().as_secs() < seconds } else { seed < to } {
        for (counter, by) in try_seed(seed, steps).totals {
            *totals.entry(counter).or_default() += by;
        }
        (seed, played) = (seed + 1, played + 1);
    }
    println!("{played} seeds of {steps} steps in {:?}: {totals:?}", began.elapsed());
    if played >= 40 {
        let dull = [
            Counter::LeasesBound,
            Counter::LeasesReleased,
            Counter::LeasesWithdrawn,
            Counter::LeasesExpired,
            Counter::LeasesUndone,
            Counter::CommitConflicts,
            Counter::NodesLost,
            Counter::TasksReplaced,
            Counter::AnswersEvicted,
            Counter::AttemptsEvicted,
            Counter::RoutesFailedOver,
            Counter::RoutesRefused,
            Counter::ChainsBroken,
            Counter::RebalanceRounds,
            Counter::DispatchLaunches,
            Counter::DispatchLate,
        ];
        let never: Vec<_> = dull.iter().filter(|counter| !totals.contains_key(counter)).collect();
        assert!(never.is_empty(), "a world in which {never:?} never happen proves little");
    }
}

#[test]
fn the_same_seed_says_the_same_bytes() {
    for seed in 1000..1004 {
        let events = script(seed, 300);
        let hashes = [0, 1].map(|_| play(seed, &events).unwrap_or_else(|broken| panic!("{}", broken.message)).hash);
        assert_eq!(hashes[0], hashes[1], "seed {seed}");
    }
}
