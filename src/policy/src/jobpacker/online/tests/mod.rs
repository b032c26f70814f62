//! Following plans: single rules first, then whole runs of random jobs.

mod heavy;
mod immediate;
mod parts;

use crate::advise::{DataProblem, ReplicaAdvice};
use crate::dispatch::{
    Advice, DispatchEvent, DispatchState, Offer, ShuffleAdvice, ShuffleAsk, TaskInput, TaskRef, View, WaitingGroup,
};
use crate::jobpacker::{Corral, CorralParams, FollowState, JobPacker, JobPackerParams, PlanFollowStats};
use crate::plan::{Circuits, ExpectedJob, Fabric, Facts, Objective, Plan, PlanProblem, check, rack_rooms};
use crate::sample::{Sample, cluster};
use crate::{Budget, Definition, Policy};
use hintd_model::cluster::{NodeState, Resource};
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, BitsPerSec, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const UNIT: Resource = Resource::new(1024, 1);
const GB: u64 = 1_000_000_000;
const SECOND: u64 = 1_000_000;

/// Four racks of two nodes with four containers each.
struct DispatchHarness {
    dispatch: Box<dyn Policy>,
    state: DispatchState,
    sample: Sample,
    now: Timestamp,
    explain: bool,
}

impl DispatchHarness {
    fn new(dispatch: impl Policy + 'static) -> Self {
        let spec = TreeSpec { racks: 4, hosts_per_rack: 2, ..TreeSpec::default() };
        let sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
        let state = dispatch.as_dispatch().unwrap().start();
        Self { dispatch: Box::new(dispatch), state, sample, now: Timestamp(SECOND), explain: false }
    }

    /// Which spreads nothing over a rack's nodes, so that one node will do, and reads from afar at once.
    fn packer() -> Self {
        Self::new(JobPacker::new(JobPackerParams { spread_ms: 0, locality_ms: 0, ..JobPackerParams::default() }))
    }

    fn tell(&mut self, event: &DispatchEvent) {
        let view =
            View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain: self.explain };
        self.dispatch.as_dispatch().unwrap().observe(&mut self.state, event, &view);
    }

    fn follow(&mut self, plan: &Plan) {
        self.tell(&DispatchEvent::Plan(Some(Arc::new(plan.clone()))));
    }

    /// A run of the key comes, or with none a job that nobody planned.
    fn submit(&mut self, number: u32, key: Option<&str>, maps: u32, reduces: u32, input: Bytes) -> AttemptId {
        self.submit_of("ann", number, key, [maps, reduces], input)
    }

    fn submit_of(
        &mut self,
        user: &str,
        number: u32,
        key: Option<&str>,
        [maps, reduces]: [u32; 2],
        input: Bytes,
    ) -> AttemptId {
        let each = Bytes(input.0 / u64::from(maps.max(1)));
        let inputs = vec![TaskInput { bytes: each, nodes: [NodeIdx(number % 8)].into_iter().collect() }; maps as usize];
        self.submit_that_reads(user, number, key, reduces, inputs)
    }

    /// A map for each input.
    fn submit_that_reads(
        &mut self,
        user: &str,
        number: u32,
        key: Option<&str>,
        reduces: u32,
        inputs: Vec<TaskInput>,
    ) -> AttemptId {
        let (attempt, maps) = (attempt(number), inputs.len() as u32);
        if let Some(key) = key {
            self.tell(&DispatchEvent::Run { attempt, key: key.into() });
        }
        for (role, count, inputs) in [("map", maps, inputs), ("reduce", reduces, vec![])] {
            if count == 0 {
                continue;
            }
            self.tell(&DispatchEvent::Waiting(WaitingGroup {
                attempt,
                user: user.into(),
                queue: "q".into(),
                group: role.into(),
                role: role.into(),
                count,
                size: UNIT,
                inputs,
                output_ratio: Some(1.0),
                since: self.now,
            }));
        }
        attempt
    }

    fn advice(&mut self, node: u32) -> Vec<Advice> {
        let view =
            View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain: self.explain };
        let offer = Offer { node: NodeIdx(node), free: UNIT.times(4) };
        self.dispatch.as_dispatch().unwrap().offer(&mut self.state, &offer, &view)
    }

    /// Offers the node once and launches what is advised.
    fn offer(&mut self, node: u32) -> Option<TaskRef> {
        let Some(Advice::Launch(task)) = self.advice(node).pop() else { return None };
        self.tell(&DispatchEvent::Launched { task: task.clone(), node: NodeIdx(node) });
        Some(task)
    }

    fn end(&mut self, task: TaskRef, node: u32, failed: bool) {
        let (duration, bytes, node) = (Micros(5), Bytes(GB), NodeIdx(node));
        self.tell(&DispatchEvent::Finished { task, node, duration, input: bytes, output: bytes, failed });
    }

    fn fail_rack(&mut self, rack: u32) {
        for node in self.sample.snapshot.statics.members[rack as usize].clone() {
            self.sample.snapshot.state[node.at()] = NodeState::Lost;
        }
        self.now = self.now.plus(Micros::from_secs(2));
    }

    fn stats(&mut self) -> PlanFollowStats {
        self.state.of::<FollowState>().unwrap().stats()
    }

    fn problem(&self, jobs: Vec<ExpectedJob>) -> PlanProblem {
        PlanProblem {
            racks: rack_rooms(&self.sample.snapshot, &UNIT),
            fabric: Fabric {
                uplink: BitsPerSec(30 * GB),
                circuits: Some(Circuits {
                    rate: BitsPerSec(100 * GB),
                    elephant: Bytes(GB),
                    interval: Micros::from_secs(1),
                }),
                nodes: None,
            },
            jobs,
            objective: Objective::Online,
            made: Timestamp(0),
            from: Timestamp(0),
            until: Timestamp(86_400 * SECOND),
            prediction_error: None,
            seed: 1,
        }
    }

    fn plan(&self, jobs: Vec<ExpectedJob>) -> Plan {
        let problem = self.problem(jobs);
        let plan = self.dispatch.as_plan().unwrap().plan(&problem, &mut Budget::new(0, &mut || false)).unwrap();
        assert_eq!(check(&plan, &Facts::default()), []);
        plan
    }
}

fn attempt(number: u32) -> AttemptId {
    AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: number }, attempt: 1 }
}

fn expected(key: &str, arrival_s: u64, maps: u32, reduces: u32, shuffle: Bytes) -> ExpectedJob {
    let time = Micros::from_secs(10);
    let arrival = Timestamp(arrival_s * SECOND);
    let (maps, reduces) = ((maps, time), (reduces, time));
    ExpectedJob { key: key.into(), run: 0, arrival, input: Bytes(0), maps, reduces, shuffle }
}

/// One job of 6 maps and 1 reduce that shuffles 1.5 GB: one rack for its maps, one for its reduce.
fn one(harness: &DispatchHarness) -> (Plan, RackIdx, RackIdx) {
    let plan = harness.plan(vec![expected("nightly", 1, 6, 1, Bytes(3 * GB / 2))]);
    let rack = |stage: &crate::plan::PlannedStage| {
        assert_eq!(stage.racks().len(), 1);
        harness.sample.snapshot.statics.by_rack[stage.racks()[0].0]
    };
    let (maps, reduces) = (rack(&plan.jobs[0].maps), rack(&plan.jobs[0].reduces));
    assert!(plan.jobs[0].heavy);
    (plan, maps, reduces)
}

fn nodes(rack: RackIdx) -> [u32; 2] {
    [rack.0 * 2, rack.0 * 2 + 1]
}

fn elsewhere(rack: RackIdx) -> impl Iterator<Item = u32> {
    (0..8).filter(move |node| node / 2 != rack.0)
}

#[test]
fn maps_of_a_planned_job_run_in_their_rack_and_nowhere_else() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    assert!(elsewhere(maps).all(|node| harness.offer(node).is_none()));
    for nth in 0..6 {
        assert!(harness.offer(nodes(maps)[nth % 2]).is_some_and(|task| &*task.group == "map"));
    }
    assert_eq!(harness.offer(nodes(maps)[0]), None, "its reduce waits for the maps");
    assert_eq!(harness.stats(), PlanFollowStats { followed: 1, ..PlanFollowStats::default() });
}

#[test]
fn reduces_come_after_the_slow_start_share_of_maps_in_their_own_rack() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, reduces) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    let node = nodes(maps)[0];
    let running: Vec<TaskRef> = (0..6).map(|_| harness.offer(node).unwrap()).collect();
    for (nth, task) in running.into_iter().enumerate() {
        assert_eq!(harness.offer(nodes(reduces)[0]), None, "{nth} of 6 maps are below 0.7");
        harness.end(task, node, false);
        if nth == 4 {
            break;
        }
    }
    if maps != reduces {
        assert_eq!(harness.offer(node), None);
    }
    assert_eq!(&*harness.offer(nodes(reduces)[0]).unwrap().group, "reduce");
}

#[test]
fn a_head_that_can_not_run_lets_the_next_step_go_first() {
    let mut harness = DispatchHarness::packer();
    let jobs = (0..4).map(|at| expected(&format!("j{at}"), at, 4, 1, Bytes(0))).collect();
    let plan = harness.plan(jobs);
    harness.follow(&plan);
    let sequence: Vec<_> = plan.racks[0].sequence.iter().map(|step| step.job.key.clone()).collect();
    assert!(sequence.len() > 1, "{sequence:?}");
    // Only the last of them has come.
    let last = sequence.last().unwrap();
    harness.submit(9, Some(last), 4, 1, Bytes(GB));
    assert_eq!(harness.offer(0).unwrap().attempt, attempt(9));
    // The head comes: it goes first.
    harness.submit(3, Some(&sequence[0]), 4, 1, Bytes(GB));
    assert_eq!(harness.offer(0).unwrap().attempt, attempt(3));
}

#[test]
fn a_rack_with_nothing_to_follow_serves_jobs_that_nobody_planned() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(2, None, 20, 0, Bytes(1));
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    for node in elsewhere(maps) {
        assert_eq!(harness.offer(node).unwrap().attempt, attempt(2));
    }
    for _ in 0..6 {
        assert_eq!(harness.offer(nodes(maps)[1]).unwrap().attempt, attempt(1), "the sequence comes first");
    }
    assert_eq!(harness.offer(nodes(maps)[1]).unwrap().attempt, attempt(2));
}

#[test]
fn a_run_with_more_tasks_than_planned_keeps_the_proportions() {
    let mut harness = DispatchHarness::packer();
    let plan = harness.plan(vec![expected("nightly", 1, 14, 2, Bytes(7 * GB / 2))]);
    let racks = plan.jobs[0].maps.racks();
    assert_eq!(racks.iter().map(|(_, tasks)| *tasks).collect::<Vec<_>>(), [7, 7]);
    harness.follow(&plan);
    let inputs = vec![TaskInput { bytes: Bytes(GB), nodes: smallvec::SmallVec::new() }; 140];
    harness.submit_that_reads("ann", 1, Some("nightly"), 2, inputs);
    for (path, _) in racks {
        let rack = harness.sample.snapshot.statics.by_rack[path];
        let launched = (0..200).filter(|nth| harness.offer(nodes(rack)[nth % 2]).is_some()).count();
        assert_eq!(launched, 70, "however often the rack asks");
    }
}

#[test]
fn a_second_run_and_one_a_day_late_are_nobodys_plan() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    harness.submit(2, Some("nightly"), 6, 1, Bytes(GB));
    assert_eq!(harness.offer(elsewhere(maps).next().unwrap()).unwrap().attempt, attempt(2));
    assert_eq!(harness.stats(), PlanFollowStats { followed: 1, unplanned: 1, ..PlanFollowStats::default() });

    let mut late = DispatchHarness::packer();
    late.follow(&plan);
    late.now = Timestamp(7_200 * SECOND);
    late.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    assert!(late.offer(elsewhere(maps).next().unwrap()).is_some());
    assert_eq!(late.stats().unplanned, 1);
}

#[test]
fn a_plan_that_has_expired_is_refused_and_none_takes_back_what_was_planned() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    harness.follow(&plan);
    let away = elsewhere(maps).next().unwrap();
    assert_eq!(harness.offer(away), None, "a run that was there before takes its place");
    harness.tell(&DispatchEvent::Plan(None));
    assert!(harness.offer(away).is_some());
    harness.now = plan.until;
    harness.follow(&plan);
    assert!(harness.offer(away).is_some());
    assert_eq!(harness.stats().expired, 1);
}

#[test]
fn stages_in_a_dead_rack_go_anywhere() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    let away = elsewhere(maps).next().unwrap();
    assert_eq!(harness.offer(away), None);
    harness.fail_rack(maps.0);
    assert!(harness.offer(away).is_some());
    assert!(harness.stats().released >= 1);
}

#[test]
fn racks_that_are_no_more_release_what_was_planned_there() {
    let mut harness = DispatchHarness::packer();
    let (mut plan, maps, _) = one(&harness);
    let gone = harness.sample.snapshot.statics.racks[maps.at()].clone();
    let text = plan.to_json().replace(gone.as_str(), "/gone");
    plan = Plan::from_json(&text).unwrap();
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    assert!((0..8).all(|node| harness.offer(node).is_some_and(|task| &*task.group == "map") || node > 5));
}

#[test]
fn a_map_that_failed_may_run_in_any_rack() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    let node = nodes(maps)[0];
    let tasks: Vec<TaskRef> = (0..6).map(|_| harness.offer(node).unwrap()).collect();
    let away = elsewhere(maps).next().unwrap();
    assert_eq!(harness.offer(away), None);
    harness.end(tasks[2].clone(), node, true);
    assert_eq!(harness.offer(away).as_ref(), Some(&tasks[2]));
    harness.end(tasks[3].clone(), node, false);
    harness.tell(&DispatchEvent::Lost(tasks[3].clone()));
    assert_eq!(harness.offer(away).as_ref(), Some(&tasks[3]));
    assert_eq!(harness.offer(away), None);
}

#[test]
fn reduces_of_a_user_who_has_more_wait_for_maps_of_one_who_has_less() {
    let mut harness = DispatchHarness::packer();
    harness.submit_of("ann", 1, None, [1, 6], Bytes(4));
    let map = harness.offer(0).unwrap();
    harness.end(map, 0, false);
    assert_eq!(&*harness.offer(0).unwrap().group, "reduce", "with nobody else they go on");
    harness.submit_of("ben", 2, None, [3, 0], Bytes(4));
    assert_eq!(harness.offer(1).unwrap().attempt, attempt(2), "ann has a container, ben has none");
    let next: Vec<AttemptId> = (0..4).map(|_| harness.offer(2).unwrap().attempt).collect();
    assert_eq!(next.iter().filter(|&&job| job == attempt(2)).count(), 2, "then by turns: {next:?}");
}

fn ask(gathered: u64, maps_done: bool, reduces_placed: bool, [from, to]: [RackIdx; 2]) -> ShuffleAsk {
    let (gathered, since) = (Bytes(gathered), Timestamp(SECOND));
    let (started, threshold) = (Bytes::ZERO, Some(Bytes(GB)));
    ShuffleAsk { attempt: attempt(1), from, to, gathered, started, threshold, maps_done, reduces_placed, since }
}

/// Two map racks and one for reduces; each pair gets 1.75 GB.
fn shuffling() -> (DispatchHarness, [RackIdx; 2]) {
    let mut harness = DispatchHarness::packer();
    let plan = harness.plan(vec![expected("nightly", 1, 14, 2, Bytes(7 * GB / 2))]);
    let racks = |stage: &crate::plan::PlannedStage| -> Vec<RackIdx> {
        stage.racks().iter().map(|(path, _)| harness.sample.snapshot.statics.by_rack[*path]).collect()
    };
    let (maps, reduces) = (racks(&plan.jobs[0].maps), racks(&plan.jobs[0].reduces));
    assert_eq!((maps.len(), reduces.len()), (2, 1));
    let from = maps.into_iter().find(|rack| *rack != reduces[0]).unwrap();
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 14, 2, Bytes(7 * GB / 2));
    (harness, [from, reduces[0]])
}

fn told(harness: &mut DispatchHarness, ask: &ShuffleAsk) -> Option<String> {
    let view =
        View { snapshot: &harness.sample.snapshot, leases: &harness.sample.leases, now: harness.now, explain: false };
    match harness.dispatch.as_dispatch().unwrap().as_times_shuffles().unwrap().shuffle(&mut harness.state, ask, &view) {
        ShuffleAdvice::Start => None,
        ShuffleAdvice::Wait { latest, why } => {
            assert!(latest > harness.now);
            Some(why.into_owned())
        }
    }
}

#[test]
fn a_shuffle_waits_for_the_threshold_and_starts_when_it_can_only_lose_by_waiting() {
    let (mut harness, pair) = shuffling();
    assert_eq!(told(&mut harness, &ask(GB / 2, false, false, pair)).as_deref(), Some("below_threshold"));
    // 1.2 of 1.75 GB: the rest alone would never ride.
    assert_eq!(told(&mut harness, &ask(6 * GB / 5, false, false, pair)).as_deref(), Some("rest_below_threshold"));
    assert_eq!(told(&mut harness, &ask(7 * GB / 4, false, false, pair)), None, "all that is expected is there");
    let (mut harness, pair) = shuffling();
    assert_eq!(told(&mut harness, &ask(GB / 2, true, true, pair)), None, "no more can come");
    assert!(told(&mut harness, &ask(GB / 2, false, true, pair)).is_some(), "maps may still bring more");
}

#[test]
fn what_is_left_after_a_start_goes_at_once_if_it_can_not_ride() {
    let (mut harness, pair) = shuffling();
    let rest = ask(GB / 10, false, false, pair);
    assert!(told(&mut harness, &rest).is_some(), "nothing of it has started yet");
    let rest = ShuffleAsk { started: Bytes(8 * GB / 5), ..rest };
    assert_eq!(told(&mut harness, &rest), None, "a straggler's bytes wait for nothing");
}

#[test]
fn a_shuffle_waits_by_its_pairs_threshold_and_where_there_is_no_circuit_not_at_all() {
    let (mut harness, pair) = shuffling();
    let half = ask(GB / 2, false, false, pair);
    assert_eq!(told(&mut harness, &half).as_deref(), Some("below_threshold"), "the plan's threshold is a gigabyte too");
    assert_eq!(
        told(&mut harness, &ShuffleAsk { threshold: Some(Bytes(GB / 2)), ..half }),
        None,
        "a slow pair of ports"
    );
    let fast = ShuffleAsk { threshold: Some(Bytes(2 * GB)), ..half };
    assert_eq!(told(&mut harness, &fast), None, "1.75 GB never ride ports as fast as these");
    assert_eq!(told(&mut harness, &ShuffleAsk { threshold: None, ..half }), None);
}

#[test]
fn a_shuffle_waits_no_longer_than_its_bound() {
    let (mut harness, pair) = shuffling();
    let ask = ask(GB / 2, false, false, pair);
    harness.now = Timestamp(SECOND).plus(Micros::from_millis(JobPackerParams::default().shuffle_wait_ms - 1));
    assert!(told(&mut harness, &ask).is_some());
    harness.now = harness.now.plus(Micros::from_millis(1));
    assert_eq!(told(&mut harness, &ask), None);
}

#[test]
fn shuffles_of_jobs_that_are_not_planned_as_heavy_start_at_once() {
    let (mut harness, pair) = shuffling();
    let stray = [pair[1], pair[0]];
    assert_eq!(told(&mut harness, &ask(5, false, false, stray)), None, "a pair that the plan does not have");
    harness.fail_rack(pair[0].0);
    harness.advice(0);
    assert_eq!(told(&mut harness, &ask(5, false, false, pair)), None, "a stage that was released");
    let mut harness = DispatchHarness::packer();
    harness.submit(1, None, 14, 2, Bytes(7 * GB));
    assert_eq!(told(&mut harness, &ask(5, false, false, pair)), None);
    // A run that shuffles a hundredth of what was planned never reaches the threshold.
    let (mut harness, pair) = shuffling();
    harness.tell(&DispatchEvent::Done(attempt(1)));
    assert_eq!(told(&mut harness, &ask(5, false, false, pair)), None);
}

#[test]
fn reasons_name_the_plan() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    harness.explain = true;
    let reasons: Vec<String> = harness
        .advice(elsewhere(maps).next().unwrap())
        .into_iter()
        .map(|advice| match advice {
            Advice::NotYet { reason, .. } => reason,
            Advice::Launch(task) => format!("launch {task:?}"),
        })
        .collect();
    assert_eq!(reasons, ["other_rack_planned", "maps_not_done"]);
}

#[test]
fn first_replicas_go_to_racks_of_the_readers_maps_and_the_others_together_elsewhere() {
    let harness = DispatchHarness::packer();
    let plan = harness.plan(vec![expected("nightly", 1, 14, 2, Bytes(7 * GB / 2))]);
    let racks: Vec<RackIdx> =
        plan.jobs[0].maps.racks().iter().map(|(path, _)| harness.sample.snapshot.statics.by_rack[*path]).collect();
    let ask = |reader: Option<&str>, plan, block| {
        let problem = DataProblem {
            snapshot: &harness.sample.snapshot,
            path: "/in".into(),
            block,
            reader: reader.map(Arc::from),
            plan,
            homes: &[],
            now: harness.sample.snapshot.taken_at,
            writer: None,
            replication: 4,
            seed: 7,
        };
        JobPacker::default().as_place_data().unwrap().place_data(&problem).unwrap()
    };
    let mut first = BTreeMap::new();
    for block in 0..14 {
        let advice = ask(Some("nightly"), Some(&plan), block);
        let [ReplicaAdvice::Rack(one), ReplicaAdvice::Rack(two), ReplicaAdvice::Rack(three), ReplicaAdvice::Default] =
            advice[..]
        else {
            panic!("{advice:?}");
        };
        assert!(racks.contains(&one) && two == three && one != two);
        *first.entry(one).or_insert(0) += 1;
    }
    let maps: BTreeMap<RackIdx, i32> = racks.into_iter().map(|rack| (rack, 7)).collect();
    assert_eq!(first, maps, "each of its racks has as many blocks as it runs maps");
    assert_eq!(ask(Some("weekly"), Some(&plan), 1), [ReplicaAdvice::Default; 4]);
    assert_eq!(ask(None, Some(&plan), 1), [ReplicaAdvice::Default; 4]);
    assert_eq!(ask(Some("nightly"), None, 1), [ReplicaAdvice::Default; 4]);
}

/// Draws.
fn below(random: &mut ChaCha8Rng, most: u32) -> u32 {
    random.random_range(0..most)
}

/// A run of random jobs, some planned, on a dispatcher instance: seconds until all are done.
fn run(harness: &mut DispatchHarness, seed: u64, dead: bool, other: bool) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<(u32, u32, u64)> = (0..12)
        .map(|_| (1 + below(&mut random, 20), below(&mut random, 5), u64::from(below(&mut random, 8))))
        .collect();
    let planned: Vec<ExpectedJob> = sizes
        .iter()
        .enumerate()
        .filter(|(at, _)| at % 3 != 0)
        .map(|(at, &(maps, reduces, gigabytes))| expected(&format!("j{at}"), 1, maps, reduces, Bytes(gigabytes * GB)))
        .collect();
    if harness.dispatch.as_plan().is_some() {
        let plan = harness.plan(planned);
        harness.follow(&plan);
    }
    for (at, &(maps, reduces, gigabytes)) in sizes.iter().enumerate() {
        let factor = if other { 1 + below(&mut random, 3) } else { 1 };
        harness.submit(at as u32 + 1, Some(&format!("j{at}")), maps * factor, reduces, Bytes(gigabytes * GB));
    }
    // Tasks of each job: maps left, and those that run: job, node, end. A reduce ends only when all maps have.
    let mut left: BTreeMap<AttemptId, [u32; 2]> = BTreeMap::new();
    let mut running: Vec<(TaskRef, u32, u64)> = Vec::new();
    let mut free = [4_u32; 8];
    let mut done = 0;
    let all: u32 = harness.count_all();
    for second in 1..20_000_u64 {
        harness.now = Timestamp(second * SECOND);
        if dead && second == 15 {
            harness.fail_rack(1);
            harness.now = Timestamp(second * SECOND);
            for (task, node, _) in running.extract_if(.., |task| task.1 / 2 == 1).collect::<Vec<_>>() {
                harness.end(task, node, true);
            }
        }
        let ended: Vec<_> = running
            .extract_if(.., |(task, _, end)| {
                *end <= second && (&*task.group == "map" || left.get(&task.attempt).is_none_or(|left| left[0] == 0))
            })
            .collect();
        for (task, node, _) in ended {
            free[node as usize] += 1;
            if &*task.group == "map" {
                left.get_mut(&task.attempt).unwrap()[0] -= 1;
            }
            done += 1;
            harness.end(task, node, false);
        }
        if done == all {
            return second;
        }
        for node in 0..8 {
            while free[node as usize] > 0 && !(dead && second >= 15 && node / 2 == 1) {
                let Some(task) = harness.offer(node) else { break };
                free[node as usize] -= 1;
                let maps = harness.maps_left(task.attempt);
                left.entry(task.attempt).or_insert([maps, 0]);
                running.push((task, node, second + 3 + u64::from(below(&mut random, 15))));
            }
        }
    }
    panic!("{done} of {all} tasks ended, {} run", running.len());
}

impl DispatchHarness {
    fn count_all(&mut self) -> u32 {
        let pool = self.pool();
        pool.jobs().map(|job| pool.maps(job).all + pool.reduces(job).all).sum()
    }

    fn maps_left(&mut self, attempt: AttemptId) -> u32 {
        let pool = self.pool();
        let crate::pool::MapCounts { all: maps, done, .. } = pool.maps(pool.find(attempt).unwrap());
        maps - done
    }

    fn pool(&mut self) -> &crate::pool::Pool {
        &self.state.of::<FollowState>().unwrap().pool
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn every_task_of_every_job_runs_whatever_the_plan_says(seed: u64, dead: bool, other: bool) {
        run(&mut DispatchHarness::packer(), seed, dead, other);
        run(&mut DispatchHarness::new(JobPacker::default()), seed, dead, other);
        run(&mut DispatchHarness::new(Corral::default()), seed, dead, other);
    }

    #[test]
    fn a_state_that_was_written_down_goes_on_as_it_would_have(seed: u64) {
        let mut harness = DispatchHarness::packer();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let sizes: Vec<u32> = (0..6).map(|_| 1 + below(&mut random, 20)).collect();
        let jobs = sizes.iter().enumerate().map(|(at, &maps)| expected(&format!("j{at}"), 1, maps, 2, Bytes(3 * GB)));
        let plan = harness.plan(jobs.collect());
        harness.follow(&plan);
        for (at, &maps) in sizes.iter().enumerate() {
            harness.submit(at as u32, (at > 0).then(|| format!("j{at}")).as_deref(), maps, 2, Bytes(3 * GB));
        }
        for step in 0..40 {
            let node = below(&mut random, 8);
            let again = harness.dispatch.as_dispatch().unwrap().restore(&harness.state.to_json().unwrap()).unwrap();
            let mut before = std::mem::replace(&mut harness.state, again);
            let restored = harness.advice(node);
            std::mem::swap(&mut before, &mut harness.state);
            prop_assert_eq!(&harness.advice(node), &restored, "step {}", step);
            if let Some(task) = harness.offer(node).filter(|_| below(&mut random, 2) == 0) {
                harness.end(task, node, below(&mut random, 4) == 0);
            }
        }
    }

    #[test]
    fn without_a_plan_corral_is_the_fair_scheduler(seed: u64) {
        let params = CorralParams { slow_start: 0.3, ..CorralParams::default() };
        let (slow_start, early_reduces) = (params.slow_start, params.early_reduces);
        let text = format!("slow_start = {slow_start}\nearly_reduces = {early_reduces}");
        let fair = crate::registry::build::<crate::baselines::fair::Fair>(toml::de::DeTable::parse(&text).unwrap()).unwrap();
        let corral = crate::registry::build::<Corral>(toml::de::DeTable::parse(&text).unwrap()).unwrap();
        let mut harnesses = [corral, fair].map(|policy| {
            let mut harness = DispatchHarness::packer();
            harness.state = policy.as_dispatch().unwrap().start();
            harness.dispatch = policy;
            harness
        });
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut running: Vec<(TaskRef, u32)> = Vec::new();
        for step in 0..150 {
            let draw = below(&mut random, 10);
            if draw == 0 {
                let tasks = [1 + below(&mut random, 9), below(&mut random, 4)];
                let user = ["ann", "ben", "cy"][below(&mut random, 3) as usize];
                harnesses.iter_mut().for_each(|harness| { harness.submit_of(user, step, Some("key"), tasks, Bytes(GB)); });
            } else if draw < 7 {
                let node = below(&mut random, 8);
                let [one, other] = harnesses.each_mut().map(|harness| harness.offer(node));
                prop_assert_eq!(&one, &other);
                running.extend(one.map(|task| (task, node)));
            } else if !running.is_empty() {
                let (task, node) = running.swap_remove(below(&mut random, running.len() as u32) as usize);
                let failed = below(&mut random, 5) == 0;
                harnesses.iter_mut().for_each(|harness| harness.end(task.clone(), node, failed));
            }
        }
    }
}
