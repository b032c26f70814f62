//! A policy that learns takes the place of the one before while jobs wait and run.

use super::super::harness::registration;
use super::*;
use hintd_policy::learn::FinishedJob;
use hintd_policy::scale_up_out::{self, BLOCK, JobShape, ScaleUpOutParams, Side};

/// Two scale-out machines, h0 and h1, of two containers each, and two scale-up machines, h2 and h3, of eight, that are full
/// or idle.
fn cluster(full: bool) -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(4, 2_048);
    for host in ["h2", "h3"] {
        let mut node = registration(host, "/r1", 8_192);
        node.class = "scale-up".into();
        harness.change(Change::Register(node));
        harness.beat(host, if full { 8_192 } else { 0 }, if full { None } else { Some(&[]) });
    }
    harness.publish();
    harness
}

/// Of all sizes, on either class; tasks on scale-up machines take the longer the more maps the job has, up to `slower` times
/// what is stated.
fn finished_jobs(slower: f64) -> Vec<FinishedJob> {
    let model = ScaleUpOutParams::default().time_model();
    let one = |at: u64, side: Side| {
        let blocks = if at.is_multiple_of(2) { 1 + at } else { 1_000 + 30 * at };
        let (input, shuffle) = (Bytes(blocks * BLOCK.0), Bytes(blocks * BLOCK.0 / 4));
        let shape = JobShape { maps: blocks, reduces: 1 + blocks / 10, input, shuffle };
        let off = if side == Side::Up { slower.powf((blocks as f64).ln() / 3_000_f64.ln()) } else { 1.0 };
        let took =
            |stage: usize| Micros((shape.stages()[stage].task_s(model.speed_of(side, &shape)) * off * 1e6) as u64);
        let (maps, reduces) = ((blocks, took(0)), (shape.reduces, took(1)));
        let on_class = Some(if side == Side::Up { 1_000 } else { 0 });
        FinishedJob { maps, reduces, input, shuffle, on_class }
    };
    (0..60).flat_map(|at| [one(at, Side::Up), one(at, Side::Out)]).collect()
}

fn stated() -> Arc<dyn Policy> {
    registry::with_defaults(scale_up_out::NAME).unwrap().into()
}

/// The policy learns, and takes its own place.
fn learns(harness: &mut EngineHarness, policy: &Arc<dyn Policy>, slower: f64) {
    let learnt: Arc<dyn Policy> = policy.as_learn().unwrap().learn(&finished_jobs(slower), 1).unwrap().0.into();
    assert!(learnt.as_learn().unwrap().lesson().is_some());
    harness.engine.redispatch(&|_| Some(Arc::clone(&learnt)), harness.now);
}

fn hosts_of(answer: &Answer) -> BTreeSet<String> {
    answer.decision.hints.iter().map(|hint| hint.host.to_string()).collect()
}

/// A container of the stolen job ends on scale-out machine h0, which gets its next task.
fn goes_on_where_it_is(harness: &mut EngineHarness) {
    let on_h0 = harness.leases().into_iter().find(|(_, host, _)| host == "h0").unwrap().0;
    harness.give_back(attempt(1, 1), &[on_h0]);
    harness.drain();
    let pushed = harness.offer("h0");
    assert_eq!((pushed.len(), harness.waiting()), (1, 1), "it is small, and waits for no scale-up machine");
    assert_eq!(placed(&pushed[0].decision)[0].0, "h0");
}

#[test]
fn a_job_that_was_stolen_goes_on_where_it_is_after_the_policy_has_learnt() {
    let (mut harness, policy) = (cluster(true), stated());
    let answer = harness.wait(&policy, request("a", &[("map", 6)]));
    let scale_out = BTreeSet::from(["h0".to_owned(), "h1".to_owned()]);
    assert_eq!((hosts_of(&answer), answer.leases().count(), harness.waiting()), (scale_out, 4, 2));
    learns(&mut harness, &policy, 1.0);
    goes_on_where_it_is(&mut harness);
}

#[test]
fn a_job_that_was_stolen_goes_on_where_it_is_after_another_request_was_undone() {
    let (mut harness, policy) = (cluster(true), stated());
    harness.wait(&policy, request("a", &[("map", 6)]));
    let undone = harness.wait(&policy, of(2, request("b", &[("map", 1)])));
    let again = harness.wait(&policy, of(2, request("c", &[("map", 1)])));
    harness.engine.undo(undone.decision.id, harness.now);
    harness.drain();
    assert_eq!(harness.waiting(), 3, "two of a, and what the other request of b's attempt wants");
    harness.engine.undo(again.decision.id, harness.now);
    harness.drain();
    assert_eq!(harness.waiting(), 2);
    goes_on_where_it_is(&mut harness);
}

#[test]
fn jobs_that_come_after_the_policy_has_learnt_are_told_apart_by_what_it_learnt() {
    for (learnt, hosts) in [(false, ["h2", "h3"]), (true, ["h0", "h1"])] {
        let (mut harness, policy) = (cluster(false), stated());
        harness.wait(&policy, request("a", &[("map", 1)]));
        if learnt {
            learns(&mut harness, &policy, 5.0);
        }
        let answer = harness.wait(&policy, of(2, request("b", &[("map", 200)])));
        assert_eq!(hosts_of(&answer), BTreeSet::from(hosts.map(str::to_owned)), "learnt: {learnt}");
    }
}
