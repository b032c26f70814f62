//! `scale_up_out` in full clusters, and of jobs larger than the cluster: which class, where it waits, and what is said of it.

use super::harness::{EngineHarness, container, registration};
use crate::Answer;
use crate::testing::{attempt, request};
use hintd_model::cluster::{Change, HintRequest};
use hintd_model::units::{Bytes, HostName};
use hintd_policy::scale_up_out::{self, BLOCK, JobShape, TimeModel};
use std::sync::Arc;

const CONTAINERS: u64 = 8;
const MB: u64 = CONTAINERS * 1024;

/// Ten nodes of eight containers: h8 and h9 are scale-up machines.
fn cluster() -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(10, MB);
    for host in ["h8", "h9"] {
        let mut node = registration(host, "/r4", MB);
        node.class = "scale-up".into();
        harness.change(Change::Register(node));
        harness.beat(host, 0, Some(&[]));
    }
    harness.places_by(scale_up_out::NAME);
    harness.publish();
    harness
}

fn full_cluster() -> EngineHarness {
    let mut harness = cluster();
    (0..10).for_each(|at| harness.beat(&format!("h{at}"), MB, Some(&[])));
    harness.publish();
    harness
}

fn job(number: u32, groups: &[(&str, u32)]) -> HintRequest {
    let mut asked = request(&format!("n{number}"), groups);
    asked.attempt = attempt(number, 1);
    asked
}

fn is_up(host: &HostName) -> bool {
    ["h8", "h9"].contains(&host.as_str())
}

/// Of each hint, in their order: whether it is of a scale-up machine.
fn on_up(answer: &Answer) -> Vec<bool> {
    answer.decision.hints.iter().map(|hint| is_up(&hint.host)).collect()
}

fn part(answer: &Answer, name: &str) -> f64 {
    answer.decision.terms.parts.get(name).copied().unwrap_or(f64::NAN)
}

#[test]
fn a_job_larger_than_the_cluster_is_judged_by_what_it_asks_for_and_not_by_what_has_room() {
    let asked = [("map", 600), ("reduce", 60)];
    let mut harness = cluster();
    let answer = harness.ask(job(1, &asked));
    assert_eq!(part(&answer, "decision_value"), -1.0, "{:?}", answer.decision.terms.parts);
    let leased = answer.decision.hints.iter().filter(|hint| !hint.leases.is_empty());
    let leased: Vec<bool> = leased.map(|hint| is_up(&hint.host)).collect();
    assert!(!leased.is_empty() && !leased.contains(&true), "{leased:?}");
    let whole = JobShape { maps: 600, reduces: 60, input: Bytes(600 * BLOCK.0), shuffle: Bytes::ZERO };
    let end = TimeModel::seconds(&whole, 8 * CONTAINERS, 1.0);
    assert!((part(&answer, "scale_out_end_s") - end).abs() < 1e-6, "{end}: {:?}", answer.decision.terms.parts);
}

#[test]
fn a_job_whose_last_maps_are_asked_for_is_judged_by_those_that_came_too() {
    let mut harness = cluster();
    assert_eq!(part(&harness.ask(job(1, &[("map", 8)])), "scale_up"), 1.0);
    let mut harness = cluster();
    for at in 0..592 {
        harness.allocated(&format!("h{}", at % 8), container(attempt(2, 1), 2 + at), None);
    }
    harness.publish();
    let answer = harness.ask(job(2, &[("map", 8)]));
    assert_eq!((part(&answer, "scale_up"), part(&answer, "decision_value")), (0.0, -1.0));
}

#[test]
fn where_nothing_has_room_a_job_waits_at_machines_of_its_class_and_it_is_said_why() {
    let mut harness = full_cluster();
    let small = harness.ask(job(1, &[("map", 2)]));
    assert!(small.decision.without_room == 2 && on_up(&small).iter().all(|up| *up), "{:?}", small.decision.hints);
    let fallbacks: Vec<bool> = small.decision.hints[0].fallbacks.iter().map(is_up).collect();
    assert_eq!(fallbacks, [true, false], "the other class last");
    assert_eq!((part(&small, "decision_value"), part(&small, "scale_up")), (1.0, 1.0));
    assert!(part(&small, "scale_up_end_s") < part(&small, "scale_out_end_s"), "{:?}", small.decision.terms.parts);
    // Held empty, either class ends it: of 600 maps the eight others take ten waves, the two machines forty.
    let large = harness.ask(job(2, &[("map", 600)]));
    let up = on_up(&large);
    let first_up = up.iter().position(|up| *up).unwrap_or(up.len());
    assert!(first_up == 8 && up[first_up..].iter().all(|up| *up), "{:?}", large.decision.hints);
    assert_eq!((part(&large, "decision_value"), part(&large, "scale_up")), (-1.0, 0.0));
    assert!(large.decision.hints[0].fallbacks.iter().all(|host| !is_up(host)));
}

#[test]
fn of_a_small_job_that_finds_room_in_part_the_rest_waits_at_its_class_and_fallbacks_are_of_it() {
    let mut harness = full_cluster();
    harness.beat("h9", MB - 4 * 1024, Some(&[]));
    harness.publish();
    let answer = harness.ask(job(1, &[("map", 6)]));
    assert_eq!(answer.decision.without_room, 2);
    assert!(on_up(&answer).iter().all(|up| *up), "{:?}", answer.decision.hints);
    let mut harness = cluster();
    let answer = harness.ask(job(2, &[("map", 2)]));
    let first = &answer.decision.hints[0];
    assert!(is_up(&first.host) && is_up(&first.fallbacks[0]), "{first:?}");
}

#[test]
fn a_group_that_only_the_other_class_could_hold_waits_there() {
    let mut harness = full_cluster();
    let mut node = registration("h0", "/r0", MB);
    node.labels = vec!["gpu".into()];
    harness.change(Change::Register(node));
    harness.beat("h0", MB, Some(&[]));
    harness.publish();
    let mut asked = job(1, &[("map", 2)]);
    asked.groups[0].label = Some(Arc::from("gpu"));
    let answer = harness.ask(asked);
    assert_eq!(part(&answer, "scale_up"), 0.0);
    assert!(!on_up(&answer).is_empty() && !on_up(&answer).contains(&true), "{:?}", answer.decision.hints);
}
