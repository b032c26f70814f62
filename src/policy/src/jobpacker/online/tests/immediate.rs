//! Requests that are answered at once: placed by the plan, and their runs' places in it.

use super::*;
use crate::plan::{Deviation, JobProgress, JobState, StageProgress};
use crate::problem::{InputBlock, InputBlocks, PlannedRacks};
use crate::{Budget, GroupProblem, PlaceProblem, Placement, check as violations};
use hintd_model::cluster::{Gang, Replicas};

/// Four racks of three nodes, each with room for up to four containers.
fn loaded(seed: u64) -> Sample {
    let spec = TreeSpec { racks: 4, hosts_per_rack: 3, ..TreeSpec::default() };
    let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
    sample.occupy(UNIT, 4, seed);
    sample
}

fn planned(racks: &[(u32, u32)], wanted: u32, only: bool) -> Option<Arc<PlannedRacks>> {
    let racks = racks.iter().map(|&(rack, tasks)| (RackIdx(rack), tasks)).collect();
    Some(Arc::new(PlannedRacks { racks, wanted, only }))
}

fn placed(problem: &PlaceProblem<'_>) -> Placement {
    let mut never = || false;
    let packer = JobPacker::default();
    let found = packer.as_place().unwrap().place(problem, &mut Budget::new(100_000, &mut never)).unwrap();
    assert_eq!(violations(problem, &found), []);
    found
}

fn room(problem: &PlaceProblem<'_>, group: &GroupProblem, rack: u32) -> u32 {
    let rules = &problem.snapshot.rules;
    let nodes = &problem.snapshot.statics.members[rack as usize];
    nodes.iter().map(|&node| rules.how_many(&group.size, &problem.room(node)).min(group.max_per_node)).sum()
}

fn in_rack(problem: &PlaceProblem<'_>, placement: &Placement, group: usize, rack: u32) -> u32 {
    let of = |share: &&crate::Share| problem.snapshot.rack(share.node) == RackIdx(rack);
    placement.groups[group].iter().filter(of).map(|share| share.count).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The oracle: containers of one size, so that a rack takes its part or its room, whichever is less, and nothing better
    /// can be done.
    #[test]
    fn planned_racks_take_their_parts_as_far_as_they_have_room(
        seed in any::<u64>(), count in 1_u32..30, parts in prop::collection::vec(0_u32..8, 4), only in any::<bool>(),
        most in prop_oneof![Just(u32::MAX), 1_u32..4], blocks in 0_usize..20, cut in 0_u32..9,
    ) {
        let parts: Vec<(u32, u32)> = (0..4).zip(parts).filter(|(_, part)| *part > 0).collect();
        prop_assume!(!parts.is_empty());
        let sample = loaded(seed);
        let mut group = sample.group("map", count, UNIT);
        (group.max_per_node, group.input, group.planned) = (most, sample.input(blocks, Bytes(GB), seed), planned(&parts, count + cut, only));
        let mut problem = sample.problem(vec![group.clone()], vec![], vec![]);
        (problem.seed, problem.gang) = (seed, Gang::UpTo);
        let plan = group.planned.as_ref().unwrap();
        let quotas = plan.quotas(super::super::immediate::mix(seed));
        let takes: Vec<(u32, u32)> = parts.iter().enumerate()
            .map(|(at, &(rack, _))| (rack, quotas[at].min(room(&problem, &group, rack)))).collect();
        let by_plan = takes.iter().map(|(_, takes)| takes).sum::<u32>();
        let in_planned = parts.iter().map(|&(rack, _)| room(&problem, &group, rack)).sum::<u32>().min(count);

        let found = placed(&problem);

        let in_all: u32 = (0..4).map(|rack| room(&problem, &group, rack)).sum();
        // What is placed beside the plan keeps off nodes that have any, where there is a bound.
        let planned: u32 = parts.iter().map(|&(rack, _)| in_rack(&problem, &found, 0, rack)).sum();
        prop_assert!(planned >= in_planned, "{} of {}", planned, in_planned);
        if only {
            prop_assert_eq!(found.placed(0), in_planned);
        } else if most == u32::MAX {
            prop_assert_eq!(found.placed(0), count.min(in_all));
        } else {
            prop_assert!((in_planned..=count.min(in_all)).contains(&found.placed(0)));
        }
        // Nobody gets more than its part at the cost of another's.
        for (rack, takes) in takes.iter().filter(|_| by_plan <= count) {
            let here = in_rack(&problem, &found, 0, *rack);
            prop_assert!(here >= *takes, "rack {} has {} of {}", rack, here, takes);
        }
    }
}

#[test]
fn maps_go_to_the_nodes_that_hold_what_they_read_and_reduces_are_spread() {
    let spec = TreeSpec { racks: 4, hosts_per_rack: 3, ..TreeSpec::default() };
    let sample = cluster(&tree(&spec).unwrap(), UNIT.times(16), Bytes(1));
    let mut maps = sample.group("map", 6, UNIT);
    // Nodes 3, 4, 5 are rack 1, nodes 6, 7, 8 rack 2; the last two blocks lie in no planned rack.
    let at = |node: u32| InputBlock { bytes: Bytes(GB), nodes: Replicas::from_iter([NodeIdx(node)]) };
    maps.input = Arc::new(InputBlocks::new([3, 8, 4, 3, 0, 11].map(at).to_vec()));
    maps.planned = planned(&[(1, 3), (2, 3)], 6, true);
    let mut reduces = sample.group("reduce", 3, UNIT);
    reduces.planned = planned(&[(2, 1)], 3, true);
    let problem = sample.problem(vec![maps, reduces], vec![], vec![]);
    let found = placed(&problem);
    let on = |group: usize, node: u32| {
        found.groups[group].iter().find(|share| share.node == NodeIdx(node)).map_or(0, |share| share.count)
    };
    assert_eq!([3, 4].map(|node| on(0, node)), [2, 1], "{:?}", found.groups);
    assert_eq!([1, 2].map(|rack| in_rack(&problem, &found, 0, rack)), [3, 3]);
    assert!(on(0, 8) >= 1);
    assert_eq!([6, 7, 8].map(|node| on(1, node)), [1, 1, 1], "each of the rack's nodes has one");
}

proptest! {
    /// Each part is its exact one, rounded up or down, and together they are what is wanted.
    #[test]
    fn parts_are_the_plans_and_their_sum_is_right(
        seed in any::<u64>(), wanted in 0_u32..1_000_000, parts in prop::collection::vec(1_u32..u32::MAX, 1..40),
    ) {
        let racks: Vec<(u32, u32)> = (0..).zip(parts).collect();
        let all: u128 = racks.iter().map(|(_, part)| u128::from(*part)).sum();
        let quotas = planned(&racks, wanted, true).unwrap().quotas(seed);
        prop_assert_eq!(quotas.iter().map(|&quota| u64::from(quota)).sum::<u64>(), u64::from(wanted));
        for ((_, part), quota) in racks.iter().zip(quotas) {
            let exact = u128::from(wanted) * u128::from(*part);
            prop_assert!((exact / all..=exact.div_ceil(all)).contains(&u128::from(quota)));
        }
    }
}

#[test]
fn of_many_small_requests_each_rack_gets_its_part() {
    let sample = cluster(
        &tree(&TreeSpec { racks: 4, hosts_per_rack: 3, ..TreeSpec::default() }).unwrap(),
        UNIT.times(4),
        Bytes(1),
    );
    let mut counts = [0; 4];
    for nth in 0..500_u64 {
        let mut reduce = sample.group("reduce", 1, UNIT);
        reduce.planned = planned(&[(1, 10), (3, 40)], 1, true);
        let mut problem = sample.problem(vec![reduce], vec![], vec![]);
        problem.seed = nth.wrapping_mul(0x0100_0000_01b3);
        let found = placed(&problem);
        counts[problem.snapshot.rack(found.groups[0][0].node).at()] += 1;
    }
    assert_eq!((counts[0], counts[2], counts[1] + counts[3]), (0, 0, 500));
    assert!((70..=130).contains(&counts[1]), "a fifth, give or take: {counts:?}");
}

#[test]
fn a_large_request_is_placed_whole_however_few_steps_a_search_has() {
    let spec = TreeSpec { racks: 4, hosts_per_rack: 3, ..TreeSpec::default() };
    let sample = cluster(&tree(&spec).unwrap(), UNIT.times(4_000), Bytes(1));
    let mut maps = sample.group("map", 5_000, UNIT);
    maps.input = sample.input(5_000, Bytes(GB), 1);
    maps.planned = planned(&[(1, 1), (3, 1)], 5_000, true);
    let problem = sample.problem(vec![maps], vec![], vec![]);
    let mut never = || false;
    let few = &mut Budget::new(250, &mut never);
    let found = JobPacker::default().as_place().unwrap().place(&problem, few).unwrap();
    assert_eq!([1, 3].map(|rack| in_rack(&problem, &found, 0, rack)), [2_500, 2_500]);
}

#[test]
fn a_gang_that_bounds_keep_out_of_its_racks_is_placed_without_the_plan() {
    let spec = TreeSpec { racks: 2, hosts_per_rack: 5, ..TreeSpec::default() };
    let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
    sample.snapshot.occupied[5..].fill(UNIT.times(4));
    let mut gang = sample.group("map", 20, UNIT);
    (gang.max_per_node, gang.planned) = (4, planned(&[(0, 1), (1, 1)], 20, false));
    let mut problem = sample.problem(vec![gang], vec![], vec![]);
    problem.gang = Gang::All;
    assert_eq!(placed(&problem).placed(0), 20, "ten of them have no room in the second rack");
}

#[test]
fn what_is_not_planned_goes_beside_what_is() {
    let sample = loaded(0);
    let mut maps = sample.group("map", 2, UNIT);
    maps.planned = planned(&[(3, 1)], 2, true);
    let free = sample.group("am", 4, UNIT);
    let problem = sample.problem(vec![maps, free], vec![], vec![]);
    let found = placed(&problem);
    assert_eq!((in_rack(&problem, &found, 0, 3), found.placed(1)), (2, 4));
}

impl DispatchHarness {
    /// A request of the attempt is answered at once: how it stands then.
    fn asks(&mut self, number: u32, key: Option<&str>, tasks: [u32; 2]) -> (Option<u32>, Vec<Deviation>) {
        let attempt = attempt(number);
        if let Some(key) = key {
            self.tell(&DispatchEvent::Run { attempt, key: key.into() });
        }
        self.tell(&DispatchEvent::Asks { attempt, came: self.now, tasks });
        self.plan_status(number)
    }

    fn plan_status(&mut self, number: u32) -> (Option<u32>, Vec<Deviation>) {
        let stand = self
            .dispatch
            .as_dispatch()
            .unwrap()
            .as_follows_plan()
            .unwrap()
            .plan_status(&mut self.state, attempt(number))
            .unwrap();
        (stand.place, stand.deviations)
    }

    fn progress(&mut self) -> Option<Vec<JobProgress>> {
        let follows = self.dispatch.as_dispatch().unwrap().as_follows_plan().unwrap();
        follows.plan_progress(&mut self.state, self.now)
    }

    fn counts(&mut self) -> [u32; 3] {
        let counts = self
            .dispatch
            .as_dispatch()
            .unwrap()
            .as_follows_plan()
            .unwrap()
            .plan_counts(&mut self.state, self.now)
            .unwrap();
        [counts.followed, counts.unplanned, counts.deviating]
    }
}

#[test]
fn progress_says_of_each_job_who_has_its_place_and_how_far_that_one_is() {
    let mut harness = DispatchHarness::packer();
    let (plan, ..) = one(&harness);
    assert_eq!(harness.progress(), None, "there is no plan");
    harness.follow(&plan);
    let first = |harness: &mut DispatchHarness| harness.progress().unwrap().swap_remove(0);
    let job = first(&mut harness);
    assert_eq!((job.job, job.state, job.attempt, job.came), (0, JobState::Expected, None, None));
    harness.asks(1, Some("nightly"), [6, 0]);
    let job = first(&mut harness);
    assert_eq!((job.state, job.attempt, job.came), (JobState::Running, Some(attempt(1)), Some(harness.now)));
    let stage = |tasks| StageProgress { tasks, ..StageProgress::default() };
    assert_eq!(
        job.stages,
        [stage(6), stage(1)],
        "nobody tells which were launched; its reduce is planned and not asked for"
    );
    harness.asks(1, Some("nightly"), [7, 0]);
    assert_eq!(first(&mut harness).deviations, [Deviation::MapCount], "thirteen where six were planned");
    harness.tell(&DispatchEvent::Done(attempt(1)));
    let job = first(&mut harness);
    assert_eq!((job.state, job.attempt, job.came), (JobState::Over, Some(attempt(1)), None));
}

#[test]
fn progress_counts_what_a_run_launched_in_its_racks_and_which_maps_are_done() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    let node = nodes(maps)[0];
    let running: Vec<TaskRef> = (0..3).map(|_| harness.offer(node).unwrap()).collect();
    harness.end(running[0].clone(), node, false);
    let job = harness.progress().unwrap().swap_remove(0);
    let stages = job.stages.map(|stage| (stage.tasks, stage.launched, stage.done));
    assert_eq!((job.state, stages), (JobState::Running, [(6, Some(3), Some(1)), (1, Some(0), None)]));
    let [of_maps, of_reduces] = harness.progress().unwrap().swap_remove(0).stages.map(|stage| stage.launched_in);
    assert_eq!(of_maps, [(maps, 3)], "the plan has all maps in one rack");
    assert_eq!(of_reduces.iter().map(|of| of.1).collect::<Vec<_>>(), [0]);
    harness.tell(&DispatchEvent::Done(attempt(1)));
    let job = harness.progress().unwrap().swap_remove(0);
    let stages = job.stages.map(|stage| (stage.tasks, stage.launched, stage.done));
    assert_eq!((job.state, stages[0]), (JobState::Over, (6, Some(3), None)));
}

#[test]
fn a_run_that_only_asks_takes_its_place_and_the_next_finds_it_taken() {
    let mut harness = DispatchHarness::packer();
    let (plan, ..) = one(&harness);
    harness.follow(&plan);
    assert_eq!(harness.asks(1, Some("nightly"), [6, 0]), (Some(0), vec![]));
    assert_eq!(harness.asks(1, Some("nightly"), [0, 1]), (Some(0), vec![]), "it asks again");
    assert_eq!(harness.asks(2, Some("nightly"), [6, 1]), (None, vec![Deviation::PlaceTaken]));
    assert_eq!(harness.asks(3, Some("weekly"), [6, 1]), (None, vec![Deviation::NotPlanned]));
    assert_eq!(harness.asks(4, None, [6, 1]), (None, vec![Deviation::NoKey]));
    assert_eq!(harness.counts(), [1, 2, 0]);
    harness.tell(&DispatchEvent::Done(attempt(1)));
    assert_eq!(harness.asks(5, Some("nightly"), [6, 1]).1, [Deviation::PlaceTaken], "it was that run's all the same");
    assert_eq!(harness.offer(0), None, "nothing of them waits here");
}

#[test]
fn a_run_that_asks_deviates_as_one_that_waits() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    assert_eq!(harness.asks(1, Some("nightly"), [6, 0]).1, []);
    assert_eq!(harness.asks(1, Some("nightly"), [7, 0]).1, [Deviation::MapCount], "thirteen where six were planned");
    let waits_until = |harness: &mut DispatchHarness, stage| {
        harness.dispatch.as_dispatch().unwrap().as_follows_plan().unwrap().planned_until(
            &mut harness.state,
            attempt(1),
            stage,
        )
    };
    let end = plan.jobs[0].stage_end(crate::plan::Stage::Map);
    assert_eq!(waits_until(&mut harness, crate::plan::Stage::Map), end, "it came when it was expected");
    harness.fail_rack(maps.0);
    harness.asks(9, Some("other"), [1, 0]); // racks are looked at
    assert!(harness.plan_status(1).1.contains(&Deviation::MapRackGone), "{:?}", harness.plan_status(1));
    assert_eq!(waits_until(&mut harness, crate::plan::Stage::Map), None);
    assert_eq!(harness.counts(), [1, 1, 1]);
}

#[test]
fn a_run_that_asked_and_waits_later_goes_on_in_its_place() {
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.asks(1, Some("nightly"), [6, 0]);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    assert_eq!(harness.plan_status(1).0, Some(0));
    assert!(elsewhere(maps).all(|node| harness.offer(node).is_none()));
    assert!(harness.offer(nodes(maps)[0]).is_some());
    assert_eq!(harness.stats(), PlanFollowStats { followed: 1, ..PlanFollowStats::default() });
}

#[test]
fn a_second_attempt_goes_on_in_its_applications_place_and_nobody_elses() {
    let again = |number| AttemptId { attempt: 2, ..attempt(number) };
    let mut harness = DispatchHarness::packer();
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    assert!((0..6).all(|_| harness.offer(nodes(maps)[0]).is_some()), "all of its maps were launched");
    harness.tell(&DispatchEvent::Done(attempt(1)));
    // It asks at first: its ResourceManager does not know that it will wait.
    harness.tell(&DispatchEvent::Run { attempt: again(1), key: "nightly".into() });
    harness.tell(&DispatchEvent::Asks { attempt: again(1), came: harness.now, tasks: [6, 1] });
    let stand = |harness: &mut DispatchHarness, attempt| {
        harness
            .dispatch
            .as_dispatch()
            .unwrap()
            .as_follows_plan()
            .unwrap()
            .plan_status(&mut harness.state, attempt)
            .unwrap()
    };
    assert_eq!(stand(&mut harness, again(1)).place, Some(0));
    // The one before is told to be over once more, late: it has no place to give up.
    harness.tell(&DispatchEvent::Done(attempt(1)));
    let waiting = |inputs| WaitingGroup {
        attempt: again(1),
        user: "ann".into(),
        queue: "q".into(),
        group: "map".into(),
        role: "map".into(),
        count: 6,
        size: UNIT,
        inputs,
        output_ratio: None,
        since: harness.now,
    };
    let waiting = DispatchEvent::Waiting(waiting(Vec::new()));
    harness.tell(&waiting);
    assert!((0..6).all(|_| harness.offer(nodes(maps)[1]).is_some()), "its maps run in their rack again");
    assert_eq!(harness.asks(2, Some("nightly"), [6, 1]).1, [Deviation::PlaceTaken]);
    assert_eq!(harness.counts(), [1, 1, 0]);
    assert_eq!(harness.stats(), PlanFollowStats { followed: 1, unplanned: 1, ..PlanFollowStats::default() });
}

#[test]
fn another_plan_seats_those_that_ask_and_those_that_wait_as_they_came() {
    for first_asks in [true, false] {
        let mut harness = DispatchHarness::packer();
        let (plan, ..) = one(&harness);
        let both: [&dyn Fn(&mut DispatchHarness); 2] =
            [&|harness| harness.asks_without_plan(1, "nightly"), &|harness| {
                harness.submit(2, Some("nightly"), 6, 1, Bytes(GB));
            }];
        for at in if first_asks { [0, 1] } else { [1, 0] } {
            both[at](&mut harness);
            harness.now = harness.now.plus(Micros::from_secs(1));
        }
        harness.follow(&plan);
        let places = [harness.plan_status(1).0, harness.plan_status(2).0];
        assert_eq!(places, if first_asks { [Some(0), None] } else { [None, Some(0)] });
    }
}

impl DispatchHarness {
    fn asks_without_plan(&mut self, number: u32, key: &str) {
        let attempt = attempt(number);
        self.tell(&DispatchEvent::Run { attempt, key: key.into() });
        self.tell(&DispatchEvent::Asks { attempt, came: self.now, tasks: [6, 1] });
    }
}
