//! Containers that come elsewhere than hinted, or without a hint.

use super::*;

#[test]
fn a_task_that_runs_elsewhere_or_fails_is_known_by_what_its_application_says() {
    let mut harness = EngineHarness::with_nodes(2, 1024);
    let answer = harness.wait(&choosy(), request("a", &[("map", 3)]));
    assert_eq!((answer.leases().count(), harness.waiting()), (2, 1));
    let (app, lease) = (attempt(1, 1), answer.leases().next());
    let from = answer.decision.hints[0].host.clone();
    let other = if from.as_str() == "h0" { "h1" } else { "h0" };
    harness.allocated(other, container(app, 2), lease);
    assert_eq!((harness.waiting(), harness.leases().len()), (1, 1), "its lease is given back, it does not wait");
    harness.event(app, "map", finished(other, true));
    assert_eq!(harness.waiting(), 2, "it has to run again");
    harness.event(app, "map", finished(other, true));
    assert_eq!(harness.waiting(), 2, "told twice");
    assert_eq!(harness.offer(from.as_str()).len(), 1);
    assert_eq!(harness.waiting(), 1);
    harness.event(app, "", TaskWhat::Done { failed: false });
    assert_eq!((harness.waiting(), harness.leases().len()), (0, 0));
    assert!(harness.offer("h0").is_empty());
}

#[test]
fn a_node_may_show_a_container_elsewhere_before_its_application_tells_of_it() {
    let mut harness = EngineHarness::with_nodes(3, 1024);
    let answer = harness.wait(&choosy(), request("a", &[("map", 2)]));
    let app = attempt(1, 1);
    let hosts: Vec<&str> = answer.decision.hints.iter().map(|hint| hint.host.as_str()).collect();
    let other = ["h0", "h1", "h2"].into_iter().find(|host| !hosts.contains(host)).unwrap();
    harness.beat(other, 1024, Some(&[running(container(app, 2))]));
    harness.publish();
    harness.allocated(other, container(app, 2), None);
    assert_eq!(harness.leases().len(), 1, "it came in place of one of them");
    let last = harness.leases()[0].1.clone();
    harness.beat(&last, 1024, Some(&[running(container(app, 3))]));
    harness.publish();
    harness.allocated(&last, container(app, 3), None);
    assert_eq!(harness.leases().len(), 0, "the heartbeat bound it");
    for host in [other, &last] {
        harness.event(app, "map", finished(host, false));
    }
    harness.pass(Micros::from_secs(31));
    assert_eq!((harness.waiting(), harness.leases().len()), (0, 0), "both have run");
}

#[test]
fn a_container_without_a_hint_takes_a_waiting_task_and_its_end_frees_the_next() {
    let mut harness = EngineHarness::with_nodes(2, 1024);
    let asked = reading(&mut harness, "a", &["h9", "h9"]);
    harness.wait(&choosy(), asked);
    assert_eq!(harness.waiting(), 2);
    let app = attempt(1, 1);
    harness.beat("h0", 1024, Some(&[running(container(app, 7))]));
    harness.publish();
    assert_eq!(harness.waiting(), 1, "YARN gave it by itself");
    harness.allocated("h0", container(app, 7), None);
    assert_eq!(harness.waiting(), 1, "it is the same container");
    harness.allocated("h1", container(app, 8), None);
    assert_eq!(harness.waiting(), 0);
    harness.event(app, "map", TaskWhat::Ready { input_paths: Vec::new(), input: Bytes(0) });
    assert_eq!(harness.waiting(), 0, "it has not ended");
    harness.event(app, "map", finished("h1", false));
    harness.event(app, "map", TaskWhat::Ready { input_paths: Vec::new(), input: Bytes(0) });
    assert_eq!(harness.waiting(), 1, "its output was lost");
}
