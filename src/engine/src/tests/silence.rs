//! Attempts of which nothing is heard any more.

use super::harness::{EngineHarness, container, maps, running};
use crate::testing::attempt;
use hintd_model::units::{AttemptId, Micros};

const SILENCE: Micros = Micros::from_secs(3_600);

fn asked() -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    harness.settings.attempt_silence = Some(SILENCE);
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.ask(maps("a", 1));
    harness
}

fn silent(harness: &mut EngineHarness) -> Vec<AttemptId> {
    harness.engine.silent_attempts(harness.now)
}

/// Longer than the lease, and one moment longer than the time of silence.
fn pass(harness: &mut EngineHarness) {
    harness.pass(SILENCE);
    harness.pass(Micros(1));
}

#[test]
fn an_attempt_without_leases_and_containers_is_silent_after_its_time_and_not_before() {
    let mut harness = asked();
    harness.pass(SILENCE);
    assert_eq!(silent(&mut harness), [], "exactly the time");
    harness.pass(Micros(1));
    assert_eq!(silent(&mut harness), [attempt(1, 1)]);
    harness.engine.end_attempt(attempt(1, 1), harness.now);
    assert_eq!((silent(&mut harness), harness.engine.attempts_held().len()), (vec![], 0));
    let mut never = asked();
    never.settings.attempt_silence = None;
    never.engine.reload(never.settings.clone(), never.now);
    pass(&mut never);
    assert_eq!(silent(&mut never), [], "a ResourceManager says when it is over");
}

#[test]
fn a_container_on_a_node_news_of_a_task_and_a_follower_speak_for_it() {
    let mut harness = asked();
    pass(&mut harness);
    harness.beat("h0", 1024, Some(&[running(container(attempt(1, 1), 2))]));
    assert_eq!(silent(&mut harness), [], "it runs");
    harness.beat("h0", 0, Some(&[]));
    assert_eq!(silent(&mut harness), [], "it ran until now");
    pass(&mut harness);
    assert_eq!(silent(&mut harness), [attempt(1, 1)]);
    harness.engine.attempt_alive(attempt(1, 1), harness.now);
    assert_eq!(silent(&mut harness), [], "somebody follows it");
    pass(&mut harness);
    harness.allocated("h0", container(attempt(1, 1), 3), None);
    assert_eq!(silent(&mut harness), [], "its application told of a task");
}

#[test]
fn an_age_after_a_restart_is_that_of_its_answer_or_said_to_be_unknown() {
    let mut harness = asked();
    let then = harness.now;
    harness.pass(Micros::from_secs(60));
    harness.restart();
    let held = |harness: &EngineHarness| {
        let held = harness.engine.attempts_held().remove(0);
        assert_eq!(held.first, None, "it asked before the start, whatever is kept of it");
        (held.touched, held.asked_before_start)
    };
    assert_eq!(held(&harness), (then, false), "its answer says when");
    harness.pass(harness.settings.answers_keep);
    harness.pass(harness.settings.answers_keep);
    harness.restart();
    let start = harness.now;
    assert_eq!(held(&harness), (start, true), "no answer is kept");
    harness.pass(SILENCE);
    assert_eq!(silent(&mut harness), [], "silence counts from the start");
    harness.pass(Micros(1));
    assert_eq!(silent(&mut harness), [attempt(1, 1)]);
}
