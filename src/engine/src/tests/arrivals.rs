//! Receivers of recurring jobs whose senders came before: reduces of an application that only ever said how many.

use super::harness::{EngineHarness, container};
use crate::testing::{attempt, request};
use crate::{Decision, EdgeHistory, LearnedGroup, LearnedRun, Mode, PlacerSettings, SelectedPolicy, TaskWhat, propose};
use hintd_model::cluster::{EdgePattern, HintRequest};
use hintd_model::units::{Bytes, SchedulerKey, Timestamp};
use hintd_policy::registry;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY: &str = "mapreduce:ann:word count";

fn run(finished: u64, bytes: u64) -> LearnedRun {
    let group = |name: &str, count| LearnedGroup {
        name: name.into(),
        count,
        memory_mb: 0,
        input_paths: vec!["/in".into()],
        input: Bytes::ZERO,
    };
    let edge = |from: &str, bytes| EdgeHistory {
        from: from.into(),
        to: "p10".into(),
        pattern: EdgePattern::AllToAll,
        bytes: Bytes(bytes),
    };
    LearnedRun {
        finished: Timestamp(finished),
        groups: vec![group("p20", 4), LearnedGroup { input_paths: vec![], ..group("p10", 2) }],
        edges: vec![edge("p20", bytes), edge("p5", 0)],
        whole: None,
    }
}

fn reduces(id: &str, count: u32) -> HintRequest {
    let mut asked = request(id, &[("p10", count)]);
    asked.groups[0].key = SchedulerKey { priority: 10, allocation_request_id: -1 };
    asked.recurring_key = Some(KEY.into());
    asked.am_host = Some("h0".into());
    asked
}

/// Container `id` of a group came; nothing was ever asked for it.
fn came(harness: &mut EngineHarness, group: &str, id: u64, host: &str) {
    let container = container(attempt(1, 1), id);
    harness.event(attempt(1, 1), group, TaskWhat::Allocated { host: host.into(), container, lease: None });
}

fn decided(harness: &EngineHarness, asked: HintRequest) -> Decision {
    let policy = registry::with_defaults("container").unwrap();
    let chosen = SelectedPolicy { policy: &*policy, baseline: &*policy, mode: Mode::On, name: "container" };
    let generation = harness.engine.generation();
    let settings = PlacerSettings::default();
    propose(&generation, &Arc::new(asked), &chosen, &settings, harness.now, &mut || false).unwrap().preview()
}

/// Pairs of sender and receiver that are in different racks, and on different nodes; racks are pairs of nodes.
fn apart(senders: &BTreeMap<usize, u32>, receivers: &[usize]) -> (u32, u32) {
    let apart = |of: fn(usize) -> usize| {
        let from = |&at: &usize| {
            senders.iter().filter(|(other, _)| of(**other) != of(at)).map(|(_, count)| count).sum::<u32>()
        };
        receivers.iter().map(from).sum()
    };
    (apart(|node| node / 2), apart(|node| node))
}

/// The fewest pairs apart of all placements in which each node holds `most`.
fn fewest(senders: &BTreeMap<usize, u32>, count: usize, nodes: usize, most: usize) -> (u32, u32) {
    let mut best = (u32::MAX, u32::MAX);
    for code in 0..nodes.pow(count as u32) {
        let places: Vec<usize> = (0..count).map(|digit| code / nodes.pow(digit as u32) % nodes).collect();
        if (0..nodes).all(|node| places.iter().filter(|&&at| at == node).count() <= most) {
            let (racks, hosts) = apart(senders, &places);
            best = (best.0.min(racks), best.1.min(hosts));
        }
    }
    best
}

#[test]
fn receivers_of_a_recurring_job_go_where_its_senders_came() {
    let mut random = StdRng::seed_from_u64(8);
    let mut sums = [(0, 0); 3];
    for case in 0..40 {
        let mut harness = EngineHarness::with_nodes(6, 3 * 1024);
        harness.engine.learnt(&KEY.into(), &run(1, 1 << 30), harness.now);
        let mut senders: BTreeMap<usize, u32> = BTreeMap::new();
        for id in 0..random.random_range(1..6) {
            let node = random.random_range(0..6_usize);
            came(&mut harness, "p20", 2 + id, &format!("h{node}"));
            *senders.entry(node).or_default() += 1;
        }
        harness.publish();
        let count = random.random_range(1..5_u32);
        let places = |decision: &Decision| -> Vec<usize> {
            let of = |hint: &crate::Hint| {
                let node: usize = hint.host.as_str()[1..].parse().unwrap();
                std::iter::repeat_n(node, hint.count as usize)
            };
            decision.hints.iter().flat_map(of).collect()
        };
        let decision = decided(&harness, reduces("with", count));
        let with = apart(&senders, &places(&decision));
        let best = fewest(&senders, count as usize, 6, 3);
        let without = apart(
            &senders,
            &places(&decided(&harness, HintRequest { recurring_key: None, ..reduces("without", count) })),
        );
        assert!(with.0 <= best.0 + count, "case {case}: {with:?} of {senders:?}, {best:?} would do");
        for (sum, (racks, hosts)) in sums.iter_mut().zip([with, best, without]) {
            *sum = (sum.0 + racks, sum.1 + hosts);
        }
    }
    let [with, best, without] = sums;
    // Of what the best placement would spare; the policy weighs balance, too, and a sender's node counts as covered by
    // the first receiver there.
    let spared = |with: u32, best: u32, without: u32| f64::from(without - with) / f64::from(without - best);
    let (racks, nodes) = (spared(with.0, best.0, without.0), spared(with.1, best.1, without.1));
    assert!(
        racks >= 0.8 && nodes >= 0.5,
        "{racks} and {nodes}: {with:?} with history, {best:?} best, {without:?} without"
    );
}

#[test]
fn what_history_stood_in_for_edges_is_said() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    assert_eq!(decided(&harness, reduces("first", 2)).learnt, None);
    assert!(harness.engine.learnt(&KEY.into(), &run(5, 100), harness.now));
    assert!(harness.engine.learnt(&KEY.into(), &run(7, 300), harness.now));
    assert!(!harness.engine.learnt(&KEY.into(), &run(7, 900), harness.now), "told twice");
    assert!(!harness.engine.learnt(&KEY.into(), &run(6, 900), harness.now), "told late");
    harness.publish();
    let nothing_came = decided(&harness, reduces("second", 2));
    let learnt = nothing_came.learnt.unwrap();
    assert_eq!((learnt.runs, learnt.last, learnt.edges, learnt.sources), (2, Timestamp(7), 0, 0));
    assert!(nothing_came.degraded.contains(&"no_edges".to_owned()));
    came(&mut harness, "p20", 2, "h2");
    came(&mut harness, "p20", 3, "h2");
    came(&mut harness, "p5", 4, "h3");
    came(&mut harness, "p7", 5, "h1");
    harness.publish();
    let decision = decided(&harness, reduces("third", 2));
    let learnt = decision.learnt.unwrap();
    assert_eq!((learnt.edges, learnt.sources, &*learnt.key), (2, 3, KEY), "p7 sends nothing that is known");
    assert!(decision.degraded.contains(&"edges_from_history".to_owned()), "{:?}", decision.degraded);
    assert!(!decision.degraded.contains(&"no_edges".to_owned()));
    let hosts: std::collections::BTreeSet<_> = decision.hints.iter().map(|hint| hint.host.as_str()).collect();
    assert!(hosts.iter().all(|host| ["h2", "h3"].contains(host)), "{hosts:?}");
    let terms = decision.terms;
    assert_eq!(
        (terms.remote_bytes, terms.cross_rack_bytes),
        (None, Some(0.0)),
        "what senders send is an edge, no input"
    );
}

#[test]
fn an_application_that_names_its_edges_is_believed() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    harness.engine.learnt(&KEY.into(), &run(5, 100), harness.now);
    came(&mut harness, "p20", 2, "h2");
    harness.publish();
    let mut asked = reduces("r", 2);
    asked.edges = vec![hintd_model::cluster::GroupEdge {
        from: hintd_model::units::GroupIdx(0),
        to: hintd_model::units::GroupIdx(0),
        pattern: EdgePattern::AllToAll,
        bytes: Bytes(9),
    }];
    let decision = decided(&harness, asked);
    assert_eq!((decision.learnt, decision.terms.remote_bytes), (None, None));
    let both = {
        let mut asked = request("both", &[("p20", 2), ("p10", 2)]);
        asked.recurring_key = Some(KEY.into());
        decided(&harness, asked)
    };
    let learnt = both.learnt.unwrap();
    assert_eq!((learnt.edges, learnt.sources), (1, 0), "the edge joins groups of the request");
}

#[test]
fn what_failed_or_is_over_sends_nothing() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    harness.engine.learnt(&KEY.into(), &run(5, 100), harness.now);
    came(&mut harness, "p20", 2, "h2");
    harness.publish();
    assert_eq!(decided(&harness, reduces("r", 1)).learnt.unwrap().sources, 1);
    let failed = TaskWhat::Finished {
        host: "h2".into(),
        duration: hintd_model::units::Micros(1),
        input: Bytes(0),
        output: Bytes(0),
        failed: true,
    };
    harness.event(attempt(1, 1), "p20", failed);
    harness.publish();
    assert_eq!(decided(&harness, reduces("r", 1)).learnt.unwrap().sources, 0);
    came(&mut harness, "p20", 3, "h3");
    harness.publish();
    assert_eq!(decided(&harness, reduces("r", 1)).learnt.unwrap().sources, 1);
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    harness.publish();
    assert_eq!(decided(&harness, reduces("r", 1)).learnt.unwrap().sources, 0);
}

#[test]
fn what_was_learnt_is_in_the_journal_and_counts_once_after_a_restart() {
    let mut harness = EngineHarness::with_nodes(1, 8192);
    harness.engine.learnt(&KEY.into(), &run(5, 100), harness.now);
    harness.drain();
    harness.restart();
    assert!(!harness.engine.learnt(&KEY.into(), &run(5, 100), harness.now));
    assert!(harness.engine.learnt(&KEY.into(), &run(6, 100), harness.now));
    harness.publish();
    let job = harness.engine.generation().history.get(&Arc::from(KEY)).cloned().unwrap();
    assert_eq!((job.learnt.unwrap().runs, &*job.groups["p20"].input_paths[0]), (2, "/in"));
}
