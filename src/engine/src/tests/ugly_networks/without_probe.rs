//! What policies are asked without a probe, as each call is short: a free node's offer, what they are told, and where data
//! should go. Counted in steps of the path search, as with those that have one.

use super::{STEPS, cluster, for_each_cluster, networks, policies, table_steps};
use crate::testing::attempt;
use hintd_model::cluster::Resource;
use hintd_model::units::{Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use hintd_policy::advise::DataProblem;
use hintd_policy::dispatch::{Advice, DispatchEvent, Offer, TaskInput, View, WaitingGroup};
use hintd_policy::learn::FinishedJob;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Applications that wait.
const WAIT: u32 = 30;

fn waiting(application: u32, role: &str, nodes: usize) -> WaitingGroup {
    let input = |at: u32| {
        let near = (0..3).map(|nth| NodeIdx::new((at as usize * 7 + nth) % nodes)).collect();
        TaskInput { bytes: Bytes(128 << 20), nodes: near }
    };
    WaitingGroup {
        attempt: attempt(application, 1),
        user: format!("user{}", application % 5).into(),
        queue: "q".into(),
        group: role.into(),
        role: role.into(),
        count: 12,
        size: Resource::new(1_024, 1),
        inputs: if role == "map" { (0..12).map(input).collect() } else { Vec::new() },
        output_ratio: Some(2.0),
        since: Timestamp(1),
    }
}

#[test]
fn every_policy_that_dispatches_searches_for_no_path_at_an_offer() {
    let mut launched = 0;
    for_each_cluster(|name, harness| {
        let generation = harness.engine.generation();
        let nodes = generation.snapshot.nodes();
        let view = View { snapshot: &generation.snapshot, leases: &generation.leases, now: harness.now, explain: true };
        let steps = table_steps(harness);
        for policy in policies() {
            let Some(dispatch) = policy.as_dispatch() else { continue };
            let mut state = dispatch.start();
            let none = |what: &str, before: u64| {
                assert_eq!(steps() - before, 0, "{} on {name}, {what}: it searches for paths", policy.name());
            };
            for application in 1..=WAIT {
                for role in ["map", "reduce"] {
                    let before = steps();
                    let told = DispatchEvent::Waiting(waiting(application, role, nodes));
                    dispatch.observe(&mut state, &told, &view);
                    none("told of a group", before);
                }
            }
            for node in (0..2 * nodes).map(|at| NodeIdx::new(at % nodes)) {
                let before = steps();
                let free = generation.snapshot.room(node, &generation.leases);
                let advice = dispatch.offer(&mut state, &Offer { node, free }, &view);
                none("offered a node", before);
                for advice in advice {
                    let Advice::Launch(task) = advice else { continue };
                    let before = steps();
                    dispatch.observe(&mut state, &DispatchEvent::Launched { task, node }, &view);
                    none("told of a launch", before);
                    launched += 1;
                }
            }
        }
    });
    assert!(launched > 100, "{launched}");
}

#[test]
fn every_policy_that_places_data_searches_little_for_each_block() {
    let mut advised = 0;
    for (name, network) in networks() {
        let harness = cluster(network, false);
        let generation = harness.engine.generation();
        let racks: Vec<RackIdx> = (0..generation.snapshot.statics.racks.len()).map(RackIdx::new).collect();
        let steps = table_steps(&harness);
        for policy in policies() {
            let Some(places) = policy.as_place_data() else { continue };
            for block in 0..100 {
                let problem = DataProblem {
                    snapshot: &generation.snapshot,
                    path: Arc::from("/data"),
                    block,
                    reader: Some("a job".into()),
                    plan: None,
                    homes: &racks[..racks.len().min(2)],
                    now: harness.now,
                    writer: None,
                    replication: 3,
                    seed: 1,
                };
                let before = steps();
                // Some can't without a plan, which is an answer.
                advised += places.place_data(&problem).map_or(0, |advice| advice.len());
                let taken = steps() - before;
                assert!(taken <= STEPS, "{} on {name}: {taken} steps", policy.name());
            }
        }
    }
    assert!(advised > 1_000, "{advised}");
}

/// Finished jobs of all sizes, every second one on the class of machines that the policy learns of.
fn finished(number: u32) -> FinishedJob {
    let input = Bytes(1 << (20 + number % 20));
    FinishedJob {
        maps: (input.0.div_ceil(128 << 20), Micros::from_secs(5)),
        reduces: (1, Micros::from_secs(5)),
        input,
        shuffle: Bytes(input.0 / 2),
        on_class: Some(if number.is_multiple_of(2) { 1_000 } else { 0 }),
    }
}

#[test]
fn every_policy_that_learns_searches_for_no_path() {
    let jobs: Vec<FinishedJob> = (0..200).map(finished).collect();
    let mut learnt = BTreeSet::new(); // once each: what is learnt has no network
    for (name, network) in networks() {
        let harness = cluster(network, false);
        let generation = harness.engine.generation();
        let steps = table_steps(&harness);
        for policy in policies() {
            let Some(learner) = policy.as_learn() else { continue };
            let before = steps();
            let of_class = |node: &usize| learner.is_of_class(&generation.snapshot, NodeIdx::new(*node));
            let of_class = (0..generation.snapshot.nodes()).filter(of_class).count();
            assert_eq!(of_class, 0, "{} on {name}: no node has a class", policy.name());
            if learnt.insert(policy.name().to_owned()) {
                assert!(learner.learn(&jobs, 1).is_ok(), "{}: of jobs of all sizes", policy.name());
            }
            assert_eq!(steps(), before, "{} on {name}", policy.name());
        }
    }
    assert!(!learnt.is_empty());
}
