//! What is kept, told and stopped; how often chance stops a key, and how soon harm does.

use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, LogNormal};

const SECOND: Micros = Micros::from_secs(1);

fn application(sequence: u32) -> ApplicationId {
    ApplicationId { cluster_timestamp: 1_700_000_000_000, sequence }
}

fn settings(share: f64) -> WorthSettings {
    WorthSettings { holdout: BTreeMap::from([("q".into(), share)]), ..WorthSettings::default() }
}

fn part(settings: &WorthSettings, sequence: u32) -> Option<Part> {
    settings.participation((application(sequence), "q"), None, &StoppedKeys::new()).part()
}

/// A run from its first answer to its end.
fn run(worth: &mut Worth, settings: &WorthSettings, sequence: u32, key: &str, took: impl Fn(Arm) -> Micros) -> Ended {
    let part = part(settings, sequence).unwrap();
    let (arm, now) = (part.arm, Timestamp(u64::from(sequence)));
    let key = Some(Arc::from(key)).filter(|key: &Arc<str>| !key.is_empty());
    worth.answered(application(sequence), (Some(part), key.as_ref()), true, 1_000, now);
    worth.ended(application(sequence), Some(took(arm)), settings, now)
}

fn seconds(hinted: u64, held_out: u64) -> impl Fn(Arm) -> Micros {
    move |arm| Micros::from_secs(if arm == Arm::Hinted { hinted } else { held_out })
}

/// The journal's rows after these operations.
fn applied(rows: &mut BTreeMap<Vec<u8>, Vec<u8>>, ops: Vec<Op>) {
    for op in ops {
        match op {
            Op::Put { key, value, .. } => _ = rows.insert(key, value),
            Op::Delete { key, .. } => _ = rows.remove(&key),
        }
    }
}

#[test]
fn a_queue_with_three_jobs_can_not_tell_yet_and_with_enough_it_can() {
    let (mut worth, settings) = (Worth::default(), settings(0.5));
    assert_eq!(worth.view(&settings).queues[0].hinted, 0, "who holds out is shown from the start");
    for sequence in 1..=3 {
        assert!(run(&mut worth, &settings, sequence, "", seconds(10, 20)).changes.is_empty());
    }
    let view = worth.view(&settings).queues.remove(0);
    assert_eq!((view.hinted + view.held_out, view.verdict, view.ratio), (3, Verdict::CantTell, None));
    let changes: Vec<_> =
        (4..60).flat_map(|sequence| run(&mut worth, &settings, sequence, "", seconds(10, 20)).changes).collect();
    assert_eq!(changes.len(), 1, "it is said once: {changes:?}");
    assert_eq!((changes[0].scope, changes[0].now.verdict), (Scope::Queue, Verdict::Faster));
    assert!(changes[0].now.hinted.min(changes[0].now.held_out) == 8, "{changes:?}");
}

#[test]
fn what_fails_was_on_both_sides_or_was_drawn_by_another_share_counts_for_nothing() {
    let (mut worth, half) = (Worth::default(), settings(0.5));
    let (one, now) = (part(&half, 1).unwrap(), Timestamp(1));
    let other = Part { arm: if one.arm == Arm::Hinted { Arm::HeldOut } else { Arm::Hinted }, ..one.clone() };
    let answered = |worth: &mut Worth, sequence, part: &Part| {
        worth.answered(application(sequence), (Some(part.clone()), None), true, 1_000, now)
    };
    assert_eq!(answered(&mut worth, 1, &one).len(), 1);
    assert!(answered(&mut worth, 1, &one).is_empty(), "nothing new");
    assert!(!worth.ended(application(1), None, &half, now).counted, "it failed");
    assert!(!worth.ended(application(1), Some(SECOND), &half, now).counted, "its end was told before");
    answered(&mut worth, 2, &one);
    assert_eq!(answered(&mut worth, 2, &other).len(), 1, "that is journalled");
    assert!(!worth.ended(application(2), Some(SECOND), &half, now).counted, "it was on both sides");
    answered(&mut worth, 3, &one);
    assert!(!worth.ended(application(3), Some(SECOND), &settings(0.1), now).counted, "the share is another one now");
    assert!(
        worth.answered(application(4), (Some(one.clone()), None), false, 1_000, now).is_empty(),
        "it had hints before"
    );
    let held = Part { arm: Arm::HeldOut, ..one };
    answered(&mut worth, 5, &held);
    worth.answered(application(5), (None, None), false, 1_000, now);
    assert!(!worth.ended(application(5), Some(SECOND), &half, now).counted, "it asked for a gang, and got hints");
}

#[test]
fn a_key_that_hints_make_slower_is_stopped_across_a_restart_until_it_is_allowed() {
    let (mut worth, settings) = (Worth::default(), settings(0.5));
    let (mut rows, mut stopped_at) = (BTreeMap::new(), None);
    for sequence in 1..=60 {
        let spread = Micros::from_millis(u64::from(sequence % 7) * 100);
        let ended = run(&mut worth, &settings, sequence, "daily", |arm| seconds(30, 10)(arm).saturating_add(spread));
        let stopped = ended.changes.iter().find(|change| change.now.stopped.is_some());
        if let Some(change) = stopped {
            assert_eq!((change.scope, change.now.verdict), (Scope::Key, Verdict::Slower));
            stopped_at.get_or_insert(sequence);
        }
        applied(&mut rows, ended.ops);
        run(&mut worth, &settings, 1_000 + sequence, "weekly", seconds(10, 10)); // no harm, no stop
    }
    assert!((16..40).contains(&stopped_at.unwrap()), "{stopped_at:?}");
    assert_eq!(**worth.stopped(), StoppedKeys::from(["daily".into()]));
    let mut again = Worth::default();
    rows.iter().for_each(|(key, value)| again.restore(key, value).unwrap());
    assert_eq!(again.stopped(), worth.stopped());
    let daily = |worth: &Worth| worth.keys().into_iter().find(|key| &*key.name == "daily").unwrap();
    assert_eq!(daily(&again), daily(&worth));
    applied(&mut rows, again.allow("daily").into_iter().collect());
    assert!(again.stopped().is_empty() && again.allow("daily").is_none());
    assert!(!rows.contains_key(&row_key(KEY, "daily")));
}

#[test]
fn rows_that_make_no_sense_are_refused() {
    let mut worth = Worth::default();
    for (key, value) in [
        (row_key(KEY, "a"), "{}"),
        (row_key(APPLICATION, "a"), "{}"),
        (row_key("kind", "a"), "{}"),
        (vec![7], "{}"),
        (row_key(QUEUE, "q"), "[]x"),
    ] {
        assert!(worth.restore(&key, value.as_bytes()).is_err(), "{key:?} {value}");
    }
}

#[test]
fn of_too_many_keys_and_applications_the_oldest_go_and_stopped_keys_last() {
    let mut worth = Worth::default();
    let settings = WorthSettings { keys: 2, ..settings(0.5) };
    for sequence in 1..=60 {
        run(&mut worth, &settings, sequence, "harmed", |arm| {
            seconds(30, 10)(arm).saturating_add(Micros(u64::from(sequence)))
        });
    }
    assert_eq!(worth.stopped().len(), 1);
    let mut gone = Vec::new();
    for (sequence, key) in [(101, "a"), (102, "b"), (103, "c")] {
        gone.extend(run(&mut worth, &settings, sequence, key, seconds(10, 10)).ops);
    }
    let names: Vec<_> = worth.keys().iter().map(|key| key.name.to_string()).collect();
    assert_eq!(names, ["harmed", "c"]);
    assert!(["a", "b"].iter().all(|key| gone.contains(&delete(KEY, key))), "their rows go, too");
    for sequence in 201..=205 {
        worth.answered(
            application(sequence),
            (part(&settings, sequence), None),
            true,
            3,
            Timestamp(u64::from(sequence)),
        );
    }
    assert_eq!(worth.awaited().map(|of| of.sequence).collect::<Vec<_>>(), [203, 204, 205]);
}

/// Runs of a key until it is stopped, or `runs` of them: hinted ones take `slower` times as long, times are spread
/// log-normally by `sigma`. Half are held out.
fn runs_until_stopped(rng: &mut ChaCha8Rng, (runs, slower, sigma): (u32, f64, f64)) -> Option<u32> {
    let (mut known, settings) = (Compared::default(), settings(0.5));
    let times = LogNormal::new(4.0, sigma).unwrap();
    (1..=runs).find(|_| {
        let (held_out, time) = (rng.random::<bool>(), times.sample(rng));
        let (arm, time) = if held_out { (Arm::HeldOut, time) } else { (Arm::Hinted, time * slower) };
        known.add(
            EndedRun { share: 0.5, arm, took: Micros((time * 1e6) as u64) },
            Scope::Key,
            settings.runs,
            Timestamp(0),
        );
        known.is_harmed(settings.margin)
    })
}

/// Whether somebody who looks after each run, at a queue's level, sees harm where there is none.
fn slower_by_chance(rng: &mut ChaCha8Rng, runs: u32) -> bool {
    let (mut known, times) = (Compared::default(), LogNormal::new(4.0, 0.3).unwrap());
    (0..runs).any(|_| {
        let arm = if rng.random::<bool>() { Arm::HeldOut } else { Arm::Hinted };
        let took = Micros((times.sample(rng) * 1e6) as u64);
        known.add(EndedRun { share: 0.5, arm, took }, Scope::Queue, WorthSettings::default().runs, Timestamp(0));
        known.is_harmed(WorthSettings::default().margin)
    })
}

#[test]
fn chance_stops_few_keys_and_harm_many() {
    let mut rng = ChaCha8Rng::seed_from_u64(20_261_123);
    const KEYS: u32 = 10_000;
    const RUNS: u32 = 100;
    let chance = (0..KEYS).filter(|_| runs_until_stopped(&mut rng, (RUNS, 1.0, 0.3)).is_some()).count();
    println!("no difference: {chance} of {KEYS} keys are stopped within {RUNS} runs each");
    assert!(chance <= 60, "{chance}: more than 0.6 % are stopped by chance");
    let queues = (0..1_000).filter(|_| slower_by_chance(&mut rng, RUNS)).count();
    println!("as sure as queues are told of, {queues} of 1000 would be");
    assert!(queues > 20, "{queues}: then keys need not be told apart so carefully");
    for (slower, sigma, runs) in [(1.2, 0.1, 60), (1.2, 0.3, 600), (1.5, 0.3, 120), (2.0, 0.3, 60)] {
        let found: Vec<_> = (0..200).map(|_| runs_until_stopped(&mut rng, (runs, slower, sigma))).collect();
        let mut after: Vec<u32> = found.iter().flatten().copied().collect();
        after.sort_unstable();
        let median = after.get(found.len() / 2);
        println!("x {slower}, sigma {sigma}: {} of {} within {runs} runs, median {median:?}", after.len(), found.len());
        assert!(after.len() >= 180, "x {slower}, sigma {sigma}: only {} of {}", after.len(), found.len());
    }
}
