//! Executors of Spark applications: a group that sends to itself, as Spark's history server has it of earlier runs. The
//! cluster is that of the guard's tests: three racks of two nodes, access links of 100 Mbit/s, uplinks of 10.

use super::guard::{by_rack, cluster, reason};
use super::harness::{EngineHarness, container, running};
use crate::decision::WithheldReason;
use crate::placer::compiled;
use crate::testing::{attempt, request};
use crate::{EdgeHistory, LearnedGroup, LearnedRun, TaskEvent, TaskWhat};
use hintd_model::cluster::{EdgePattern, HintRequest};
use hintd_model::units::{Bytes, Micros, SchedulerKey, Timestamp};

const KEY: &str = "spark:ann:join";
const EXECUTORS: &str = "p0.0";
const MB: u64 = 1_000_000;

/// An earlier run of four executors told what it read and shuffled.
fn ran(harness: &mut EngineHarness, input_mb: u64, shuffle_mb: u64) {
    let (name, from, to) = (EXECUTORS.into(), EXECUTORS.into(), EXECUTORS.into());
    let group = LearnedGroup { name, count: 4, memory_mb: 0, input_paths: vec![], input: Bytes(input_mb * MB) };
    let edge = EdgeHistory { from, to, pattern: EdgePattern::AllToAll, bytes: Bytes(shuffle_mb * MB) };
    let run = LearnedRun { finished: Timestamp(1), groups: vec![group], edges: vec![edge], whole: None };
    assert!(harness.engine.learnt(&KEY.into(), &run, harness.now));
    harness.publish();
}

/// As the ResourceManager's processor asks for a stock application.
fn asks(id: &str, count: u32) -> HintRequest {
    let mut asked = request(id, &[(EXECUTORS, count)]);
    asked.groups[0].key = SchedulerKey { priority: 0, allocation_request_id: 0 };
    asked.groups[0].constraints.spread = false;
    asked.framework = "spark".into();
    asked.recurring_key = Some(KEY.into());
    asked
}

fn comes(harness: &mut EngineHarness, id: u64, host: &str) {
    let container = container(attempt(1, 1), id);
    tells(harness, id, TaskWhat::Allocated { host: host.into(), container, lease: None });
}

/// As the ResourceManager's processor tells: a task is named by its container.
fn tells(harness: &mut EngineHarness, id: u64, what: TaskWhat) {
    let (attempt, at) = (attempt(1, 1), harness.now);
    let task = container(attempt, id).to_string().into();
    let event = TaskEvent { attempt, group: EXECUTORS.into(), task, what, recurring_key: None, at };
    harness.engine.event(event, harness.now).unwrap();
    harness.drain();
}

#[test]
fn executors_of_an_application_that_ran_before_are_hinted_into_one_rack() {
    let (mut harness, hosts) = cluster("joint");
    let unknown = harness.ask(asks("first", 4));
    assert_eq!(reason(&unknown), Some(WithheldReason::NothingKnown));
    ran(&mut harness, 0, 80);
    let answer = harness.ask(asks("second", 4));
    assert_eq!(reason(&answer), None);
    let mut racks = by_rack(&answer, &hosts);
    racks.sort_unstable();
    assert_eq!((racks, answer.decision.terms.cross_rack_bytes), ([0, 0, 4], Some(0.0)));
    let learnt = answer.decision.learnt.as_ref().unwrap();
    assert_eq!((&*learnt.key, learnt.runs, learnt.edges, learnt.sources), (KEY, 1, 1, 0));
    assert!(answer.decision.degraded.contains(&"edges_from_history".to_owned()));
    // One executor shuffles with nobody: wherever it is, is as good.
    let alone = harness.ask(asks("alone", 1));
    assert_eq!(reason(&alone), Some(WithheldReason::NoGain));
}

#[test]
fn executors_that_are_asked_for_later_go_to_those_that_run() {
    let mut hinted = 0;
    for rack in 0..3 {
        let (mut harness, hosts) = cluster("joint");
        ran(&mut harness, 0, 120);
        comes(&mut harness, 2, &hosts[2 * rack]);
        comes(&mut harness, 3, &hosts[2 * rack + 1]);
        harness.publish();
        let answer = harness.ask(asks("more", 2));
        let learnt = answer.decision.learnt.as_ref().unwrap();
        assert_eq!((learnt.edges, learnt.sources), (2, 2), "among the new ones, and with those that run");
        // Of the 120 MB of 12 pairs 20 are among the new ones, 80 between both kinds.
        let yarns = answer.decision.baseline.as_ref().unwrap().cross_rack_bytes.unwrap();
        assert!(yarns <= 100e6 + 1.0, "{yarns}");
        if reason(&answer).is_some() {
            // YARN by itself goes there as well.
            assert_eq!((reason(&answer), yarns), (Some(WithheldReason::NoGain), 0.0), "rack {rack}");
            continue;
        }
        hinted += 1;
        assert_eq!(by_rack(&answer, &hosts)[rack], 2, "rack {rack}");
        assert_eq!(answer.decision.terms.cross_rack_bytes, Some(0.0));
        assert!(yarns > 0.0, "rack {rack}");
    }
    assert!(hinted >= 2, "YARN knows nothing of where executors run: by chance it goes to one of three racks");
}

#[test]
fn executors_that_ended_are_no_partners_of_those_that_are_asked_for_later() {
    let (mut harness, hosts) = cluster("joint");
    ran(&mut harness, 0, 120);
    for (id, host) in [(2, 0), (3, 0), (4, 2), (5, 3)] {
        comes(&mut harness, id, &hosts[host]);
    }
    // One is told to have ended by whoever tells of tasks, the other by its node alone.
    let finished = |failed| {
        let (host, duration) = (hosts[0].as_str().into(), Micros::from_secs(9));
        TaskWhat::Finished { host, duration, input: Bytes(0), output: Bytes(0), failed }
    };
    tells(&mut harness, 2, finished(false));
    harness.beat(&hosts[0], 1_024, Some(&[running(container(attempt(1, 1), 3))]));
    harness.publish();
    let asked = harness.ask(asks("one ran still", 2));
    assert_eq!(asked.decision.learnt.as_ref().unwrap().sources, 3);
    harness.beat(&hosts[0], 0, Some(&[]));
    harness.publish();
    assert_eq!(harness.ask(asks("more", 2)).decision.learnt.as_ref().unwrap().sources, 2);
    tells(&mut harness, 4, finished(true));
    harness.publish();
    assert_eq!(harness.ask(asks("after a failure", 2)).decision.learnt.as_ref().unwrap().sources, 1);
}

#[test]
fn a_run_that_asked_for_its_executors_one_by_one_leaves_the_shares_of_the_next_as_they_were() {
    let (mut harness, _) = cluster("joint");
    ran(&mut harness, 0, 120);
    for number in 0..4 {
        harness.ask(asks(&format!("one by one {number}"), 1));
    }
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    harness.publish();
    let (next, generation) = (HintRequest { attempt: attempt(2, 1), ..asks("next", 2) }, harness.engine.generation());
    let problem = compiled(&generation, (&next, ["", ""]), &harness.placer, harness.now).unwrap().problem;
    // Of the 120 MB of 12 pairs of executors these two have one pair each way.
    assert_eq!(problem.edges.iter().map(|edge| edge.bytes.0).collect::<Vec<_>>(), [20 * MB]);
}

#[test]
fn an_application_that_reads_more_than_it_shuffles_is_left_where_yarn_puts_it() {
    for (input_mb, kept_back) in [(0, None), (4_000, Some(WithheldReason::NoGain))] {
        let (mut harness, _) = cluster("joint");
        ran(&mut harness, input_mb, 80);
        let answer = harness.ask(asks("executors", 4));
        assert_eq!(reason(&answer), kept_back, "{input_mb} MB read, 80 shuffled");
    }
    // Who names its paths is judged by them.
    let (mut harness, _) = cluster("joint");
    ran(&mut harness, 4_000, 80);
    let named = HintRequest { input_paths: vec!["/unknown".into()], ..asks("named", 4) };
    harness.placer.located = Some(std::sync::Arc::from(Vec::new()));
    assert_eq!(reason(&harness.ask(named)), None);
}
