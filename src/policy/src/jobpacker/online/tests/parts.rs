//! What part of a planned stage a rack and a node take.

use super::*;
use crate::plan::Deviation;

/// A job of 14 maps, seven in each of two racks by the plan, that have six and eight of its blocks.
fn uneven() -> (DispatchHarness, [RackIdx; 2]) {
    let params = JobPackerParams { spread_ms: 0, locality_ms: 3_000, ..JobPackerParams::default() };
    let mut harness = DispatchHarness::new(JobPacker::new(params));
    let plan = harness.plan(vec![expected("nightly", 1, 14, 2, Bytes(7 * GB / 2))]);
    let racks: Vec<RackIdx> =
        plan.jobs[0].maps.racks().iter().map(|(path, _)| harness.sample.snapshot.statics.by_rack[*path]).collect();
    let [few, many] = racks[..] else { panic!("{racks:?}") };
    assert!(plan.jobs[0].maps.racks().iter().all(|&(_, maps)| maps == 7));
    harness.follow(&plan);
    let block = |rack: RackIdx| TaskInput { bytes: Bytes(GB), nodes: [NodeIdx(rack.0 * 2)].into_iter().collect() };
    let inputs = (0..14).map(|nth| block(if nth < 6 { few } else { many })).collect();
    harness.submit_that_reads("ann", 1, Some("nightly"), 2, inputs);
    (harness, [few, many])
}

/// How many tasks the rack takes when its nodes are asked until they take no more.
fn takes(harness: &mut DispatchHarness, rack: RackIdx) -> usize {
    (0..20).filter(|nth| harness.offer(nodes(rack)[nth % 2]).is_some()).count()
}

#[test]
fn a_rack_that_has_more_blocks_than_its_part_runs_the_maps_that_read_them() {
    let (mut harness, [few, many]) = uneven();
    assert_eq!([few, many].map(|rack| takes(&mut harness, rack)), [6, 8]);
    assert_eq!([few, many].map(|rack| takes(&mut harness, rack)), [0, 0], "all fourteen were launched");
}

#[test]
fn a_rack_without_maps_that_read_in_it_leaves_the_rest_to_the_jobs_other_racks_and_then_runs_its_part() {
    let (mut harness, [few, many]) = uneven();
    assert_eq!(takes(&mut harness, few), 6);
    harness.now = harness.now.plus(Micros::from_millis(2_999));
    assert_eq!(takes(&mut harness, few), 0);
    harness.now = harness.now.plus(Micros::from_millis(1));
    assert_eq!(takes(&mut harness, few), 1, "its seventh, from afar");
    assert_eq!(takes(&mut harness, many), 7);
}

#[test]
fn a_node_takes_its_even_part_and_more_once_the_others_had_the_time_to_ask() {
    let mut harness = DispatchHarness::new(JobPacker::default());
    let (plan, maps, _) = one(&harness);
    harness.follow(&plan);
    harness.submit(1, Some("nightly"), 6, 1, Bytes(GB));
    let [one, other] = nodes(maps);
    for _ in 0..3 {
        assert_eq!(harness.offer(one).map(|task| task.attempt), Some(attempt(1)));
    }
    assert_eq!(harness.offer(one), None, "half of six is its part");
    harness.submit(2, None, 1, 0, Bytes(1));
    assert_eq!(harness.offer(one).unwrap().attempt, attempt(2), "it serves others meanwhile");
    assert!(harness.offer(other).is_some());
    harness.now = harness.now.plus(Micros::from_millis(999));
    assert_eq!(harness.offer(one), None);
    harness.now = harness.now.plus(Micros::from_millis(1));
    assert!(harness.offer(one).is_some() && harness.offer(one).is_some(), "what the other did not take");
    assert_eq!(harness.offer(one), None, "all six were launched");
}

#[test]
fn a_run_that_shuffles_half_or_twice_what_is_planned_is_said_to() {
    for (shuffle, deviates) in [(7 * GB / 2, false), (6 * GB, false), (8 * GB, true), (GB, true)] {
        let mut harness = DispatchHarness::packer();
        let plan = harness.plan(vec![expected("nightly", 1, 14, 2, Bytes(7 * GB / 2))]);
        harness.follow(&plan);
        let attempt = harness.submit(1, Some("nightly"), 14, 2, Bytes(shuffle));
        let stand = harness
            .dispatch
            .as_dispatch()
            .unwrap()
            .as_follows_plan()
            .unwrap()
            .plan_status(&mut harness.state, attempt)
            .unwrap();
        assert_eq!(stand.deviations.contains(&Deviation::ShuffleSize), deviates, "{shuffle}: {:?}", stand.deviations);
    }
}
