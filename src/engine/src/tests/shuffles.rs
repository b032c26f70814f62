//! Shuffles of planned heavy jobs in the engine: told to wait and to start, and no wait without an end.

use super::circuits::{begins, controlled, ends, host, job, lit, network, tell};
use super::harness::EngineHarness;
use crate::plans::validate_plan;
use crate::{Counter, Effect, FollowBody, TaskWhat};
use hintd_model::cluster::{Change, HintRequest, NamedBlock, NamedDataset};
use hintd_model::units::{BitsPerSec, Bytes, Micros, RackPath, Timestamp};
use hintd_policy::jobpacker::{JobPacker, JobPackerParams};
use hintd_policy::plan::{
    Assumptions, JobName, Objective, PLAN_FORMAT, Plan, PlannedJob, PlannedRack, PlannedStage, Slice, Stage, Step,
};
use hintd_policy::{Definition, Policy};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const SECOND: Micros = Micros::from_secs(1);
const TASK: Micros = Micros::from_secs(10);
/// As the network of circuits has it.
const ELEPHANT: u64 = 10_000_000;
/// What each of the four maps reads, and is expected to write.
const BLOCK: u64 = 8_000_000;
const MAPS: u32 = 4;
/// The longest wait.
const PATIENCE: Micros = Micros::from_secs(20);

fn packer() -> Arc<dyn Policy> {
    let params = JobPackerParams { shuffle_wait_ms: PATIENCE.as_millis(), ..JobPackerParams::default() };
    Arc::new(JobPacker::new(params))
}

/// One heavy job: four maps in the first rack, two reduces in the third.
fn plan(now: Timestamp) -> Plan {
    let job = JobName { key: "daily".into(), run: 0 };
    let stage = |rack: &str, tasks: u32, start: Timestamp| {
        let slice = Slice { rack: RackPath::from(rack), start, end: start.plus(TASK), tasks, containers: tasks };
        PlannedStage { tasks, task_time: TASK, slices: vec![slice] }
    };
    let reduces_start = now.plus(TASK).plus(SECOND);
    let row = |rack: &str, containers: u32, stage: Stage| PlannedRack {
        rack: RackPath::from(rack),
        containers,
        sequence: vec![Step { job: job.clone(), stage }],
    };
    let planned = PlannedJob {
        job: job.clone(),
        arrival: now,
        heavy: true,
        shuffle: Bytes(u64::from(MAPS) * BLOCK),
        shuffle_time: SECOND,
        start: now,
        end: reduces_start.plus(TASK),
        maps: stage("/rack-1", MAPS, now),
        reduces: stage("/rack-3", 2, reduces_start),
        input_paths: Vec::new(),
        forecast: None,
    };
    Plan {
        cut_short: false,
        format: PLAN_FORMAT.into(),
        policy: "jobpacker".into(),
        objective: Objective::Online,
        made: now,
        from: now,
        until: now.plus(Micros::from_secs(3_600)),
        assumptions: Assumptions {
            uplink: BitsPerSec(1_000_000_000),
            circuit: Some(BitsPerSec(1_000_000_000)),
            elephant: Bytes(ELEPHANT),
            over_provisioning: 0.0,
            sub_batches: 1,
            shuffle_term: "by_width".into(),
            seed: 1,
            prediction_error: None,
        },
        racks: vec![row("/rack-1", MAPS, Stage::Map), row("/rack-3", 2, Stage::Reduce)],
        jobs: vec![planned],
    }
}

fn daily() -> HintRequest {
    let mut asked = job(1, MAPS, 2);
    asked.recurring_key = Some("daily".into());
    asked.groups[0].input_paths = vec!["/in".into()];
    asked
}

/// The planned job's maps and reduces have containers where they are planned, and a controller reports.
fn planned() -> EngineHarness {
    let mut harness = lit(3);
    controlled(&mut harness);
    let block = |id| NamedBlock { id, bytes: Bytes(BLOCK), hosts: vec![host(0, 0).as_str().into()] };
    let blocks = (1..=u64::from(MAPS)).map(block).collect();
    harness.change(Change::Dataset(Arc::new(NamedDataset { path: "/in".into(), blocks })));
    harness.publish();
    let examined =
        validate_plan("p", Arc::new(plan(harness.now)), harness.engine.current_snapshot(), harness.now).unwrap();
    harness.engine.keep_plan("p", examined, (false, "operator"), harness.now).unwrap();
    harness.engine.activate_plan("p", false, harness.now).unwrap();
    harness.drain();
    harness.publish();
    harness.wait(&packer(), daily());
    (0..MAPS).for_each(|map| begins(&mut harness, 1, "map", map, &host(0, 0)));
    (0..2).for_each(|reduce| begins(&mut harness, 1, "reduce", reduce, &host(2, 0)));
    harness.pass(SECOND);
    harness.out.clear();
    harness
}

/// What was told since the last time.
fn told(harness: &mut EngineHarness) -> Vec<FollowBody> {
    let of = |effect: Effect| match effect {
        Effect::Follow { message, cause: "shuffle", .. } => Some(message),
        _ => None,
    };
    std::mem::take(&mut harness.out).into_iter().filter_map(of).collect()
}

/// The same in words, with bytes gathered.
fn words(harness: &mut EngineHarness) -> Vec<String> {
    let word = |message: FollowBody| match message {
        FollowBody::StartShuffle { from_rack, to_rack, reason, gathered, .. } => {
            format!("start {from_rack} {to_rack} {reason} {}", gathered.0)
        }
        FollowBody::WaitShuffle { from_rack, to_rack, reason, gathered, .. } => {
            format!("wait {from_rack} {to_rack} {reason} {}", gathered.0)
        }
        other => panic!("{other:?}"),
    };
    told(harness).into_iter().map(word).collect()
}

fn map_ends(harness: &mut EngineHarness, map: u32) {
    ends(harness, 1, "map", map, &host(0, 0), BLOCK);
}

#[test]
fn a_shuffle_waits_until_it_is_an_elephant_and_then_rides() {
    let mut harness = planned();
    map_ends(&mut harness, 0);
    harness.pass(SECOND);
    let now = harness.now;
    let [FollowBody::WaitShuffle { latest, threshold, gathered, .. }] = told(&mut harness)[..] else {
        panic!("a wait")
    };
    assert_eq!((latest, threshold, gathered), (now.plus(PATIENCE), Some(Bytes(ELEPHANT)), Bytes(BLOCK)));
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), [""; 0], "a wait is told once");
    map_ends(&mut harness, 1);
    assert!(harness.engine.circuits().unwrap().wanted.circuits.is_empty(), "what waits asks for no circuit");
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 threshold 16000000"]);
    let wanted = harness.engine.circuits().unwrap().wanted;
    assert_eq!(wanted.circuits[0].demand.expected, Bytes(2 * BLOCK), "in the same interval");
    map_ends(&mut harness, 2);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["wait /rack-1 /rack-3 below_threshold 8000000"], "what comes later gathers again");
    map_ends(&mut harness, 3);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 threshold 16000000"]);
    assert_eq!((harness.count(Counter::ShufflesStarted), harness.count(Counter::ShufflesHeld)), (2, 2));
    assert_eq!(harness.engine.circuits().unwrap().wanted.circuits[0].demand.expected, Bytes(4 * BLOCK));
}

#[test]
fn a_wait_ends_at_its_latest_start() {
    let mut harness = planned();
    map_ends(&mut harness, 0);
    harness.pass(SECOND);
    told(&mut harness);
    let until = harness.now.plus(PATIENCE);
    while harness.now.plus(SECOND) < until {
        beat(&mut harness, &[]);
        harness.pass(SECOND);
        assert_eq!(words(&mut harness), [""; 0]);
    }
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 latest_start 8000000"]);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), [""; 0], "a start is told once");
}

/// A job whose first map has ended and whose shuffle waits.
fn waits() -> EngineHarness {
    let mut harness = planned();
    map_ends(&mut harness, 0);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["wait /rack-1 /rack-3 below_threshold 8000000"]);
    harness
}

#[test]
fn a_wait_ends_with_the_plan() {
    let mut harness = waits();
    harness.engine.roll_back_plan(true, harness.now).unwrap();
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 no_plan 8000000"]);
    assert_eq!(harness.engine.shuffles_held(), 0);

    let mut harness = waits();
    let mut settings = harness.settings.clone();
    settings.plans.follow = false;
    harness.engine.reload(settings, harness.now);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 no_plan 8000000"], "as when nobody is to follow it");

    let mut harness = waits();
    let expires = plan(harness.now).until;
    harness.now = expires.plus(Micros(1));
    harness.engine.time_shuffles_for_test(harness.now);
    harness.drain();
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 plan_expired 8000000"]);
}

#[test]
fn a_wait_ends_with_a_port_an_optical_switch_a_rack_or_what_was_gathered() {
    let mut harness = waits();
    let mut fewer = network(3);
    let cut = fewer.link("edge-03--optical").unwrap();
    fewer.remove_link(cut);
    harness.change(Change::Network(Some(Arc::new(fewer))));
    harness.publish();
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 no_circuit 8000000"]);

    let mut harness = waits();
    let mut dark = network(3);
    dark.set_optical(None);
    harness.change(Change::Network(Some(Arc::new(dark))));
    harness.publish();
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 no_circuit 8000000"]);

    let mut harness = waits();
    for at in 0..2 {
        harness.change(Change::Gone(host(2, at).as_str().into()));
    }
    harness.publish();
    harness.pass(SECOND);
    assert_eq!(words(&mut harness).len(), 1);
    assert_eq!(harness.engine.shuffles_held(), 0);

    let mut harness = waits();
    tell(&mut harness, 1, "map", 0, TaskWhat::Ready { input_paths: vec![], input: Bytes(0) });
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 nothing_gathered 0"], "its output was lost");
}

#[test]
fn a_wait_ends_with_the_controller_and_nothing_waits_without_one() {
    let mut harness = waits();
    harness.engine.unwatch("ocs", harness.now);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["start /rack-1 /rack-3 no_controller 8000000"]);
    map_ends(&mut harness, 1);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), [""; 0]);
    controlled(&mut harness);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), [""; 0], "what is gathered by now moves already");
    map_ends(&mut harness, 2);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["wait /rack-1 /rack-3 below_threshold 8000000"]);
}

#[test]
fn what_moved_before_a_plan_was_in_force_is_not_held_back() {
    let mut harness = waits();
    harness.engine.roll_back_plan(true, harness.now).unwrap();
    harness.pass(SECOND);
    map_ends(&mut harness, 1);
    harness.pass(SECOND);
    harness.engine.activate_plan("p", false, harness.now).unwrap();
    harness.publish();
    harness.out.clear();
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), [""; 0]);
    assert_eq!(harness.engine.circuits().unwrap().wanted.circuits[0].demand.expected, Bytes(2 * BLOCK));
    map_ends(&mut harness, 2);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), ["wait /rack-1 /rack-3 below_threshold 8000000"]);
}

#[test]
fn jobs_that_follow_no_plan_are_told_nothing() {
    let mut harness = planned();
    let mut other = daily();
    (other.id, other.attempt, other.recurring_key) = ("r2".into(), crate::testing::attempt(2, 1), None);
    harness.wait(&packer(), other);
    begins(&mut harness, 2, "map", 0, &host(1, 0));
    begins(&mut harness, 2, "reduce", 0, &host(2, 1));
    ends(&mut harness, 2, "map", 0, &host(1, 0), BLOCK);
    harness.pass(SECOND);
    assert_eq!(words(&mut harness), [""; 0]);
}

fn beat(harness: &mut EngineHarness, dead: &[usize]) {
    for rack in (0..3).filter(|rack| !dead.contains(rack)) {
        (0..2).for_each(|at| harness.beat(&host(rack, at), 0, Some(&[])));
    }
    harness.publish();
}

#[derive(Debug, Clone, Copy)]
enum Happens {
    MapEnds(u32, u64),
    MapLost(u32),
    ReduceEnds(u32),
    RackDies(usize),
    Port(usize, bool),
    Controller(bool),
    RollBack,
    Done,
    Pass(u64),
}

fn something() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (0..MAPS, 1_u64..14).prop_map(|(map, millions)| Happens::MapEnds(map, millions * 1_000_000)),
        2 => (0..MAPS).prop_map(Happens::MapLost),
        1 => (0_u32..2).prop_map(Happens::ReduceEnds),
        1 => (0_usize..3).prop_map(Happens::RackDies),
        1 => (0_usize..3, any::<bool>()).prop_map(|(rack, up)| Happens::Port(rack, up)),
        1 => any::<bool>().prop_map(Happens::Controller),
        1 => Just(Happens::RollBack),
        1 => Just(Happens::Done),
        9 => (200_u64..9_000).prop_map(Happens::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_every_wait_ends_by_its_latest_start_and_none_moves_on(steps in prop::collection::vec(something(), 1..40)) {
        let mut harness = planned();
        let mut dead: Vec<usize> = Vec::new();
        let (mut over, mut waits): (bool, BTreeMap<String, Timestamp>) = (false, BTreeMap::new());
        for step in steps.into_iter().chain([Happens::Pass(25_000)]) {
            match step {
                Happens::MapEnds(map, output) => ends(&mut harness, 1, "map", map, &host(0, 0), output),
                Happens::MapLost(map) => {
                    tell(&mut harness, 1, "map", map, TaskWhat::Ready { input_paths: vec![], input: Bytes(0) });
                    begins(&mut harness, 1, "map", map, &host(1, 0));
                }
                Happens::ReduceEnds(reduce) => ends(&mut harness, 1, "reduce", reduce, &host(2, 0), 1),
                Happens::RackDies(rack) => {
                    dead.push(rack);
                    (0..2).for_each(|at| drop(harness.engine.change(Change::Gone(host(rack, at).as_str().into()), harness.now)));
                    harness.drain();
                }
                Happens::Port(rack, up) => {
                    let mut network = network(3);
                    if !up {
                        let port = network.link(&format!("edge-{:02}--optical", rack + 1)).unwrap();
                        network.remove_link(port);
                    }
                    harness.change(Change::Network(Some(Arc::new(network))));
                }
                Happens::Controller(true) => controlled(&mut harness),
                Happens::Controller(false) => harness.engine.unwatch("ocs", harness.now),
                Happens::RollBack => drop(harness.engine.roll_back_plan(true, harness.now)),
                Happens::Done => {
                    tell(&mut harness, 1, "", 0, TaskWhat::Done { failed: false });
                    over = true;
                }
                Happens::Pass(ms) => (0..ms.div_ceil(200)).for_each(|_| {
                    beat(&mut harness, &dead);
                    harness.pass(Micros::from_millis(200));
                }),
            }
            for message in told(&mut harness) {
                match message {
                    FollowBody::WaitShuffle { from_rack, to_rack, latest, .. } => {
                        let before = waits.insert(format!("{from_rack} {to_rack}"), latest);
                        prop_assert!(before.is_none_or(|before| latest <= before), "{:?} then {:?}", before, latest);
                    }
                    FollowBody::StartShuffle { from_rack, to_rack, .. } => drop(waits.remove(&format!("{from_rack} {to_rack}"))),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            if over {
                waits.clear(); // nobody is left to be told
            }
            let late = waits.values().find(|latest| harness.now.since(**latest) > Micros::from_millis(1_200));
            prop_assert!(late.is_none(), "{:?} at {:?}", late, harness.now);
            prop_assert!(harness.engine.shuffles_held() >= waits.len(), "{:?}", waits);
        }
        harness.pass(SECOND.max(PATIENCE));
        told(&mut harness);
        prop_assert_eq!(harness.engine.shuffles_held(), 0);
    }
}
