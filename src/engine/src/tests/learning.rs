//! What is kept of finished runs says on which machines they ran: for policies that learn how fast these are.

use super::harness::{EngineHarness, container, registration};
use crate::history::LearnedRun;
use crate::prediction::Run;
use crate::testing::{attempt, request};
use crate::{EngineSettings, TaskWhat};
use hintd_model::cluster::Change;
use hintd_model::units::{Bytes, Micros, Timestamp};
use std::sync::Arc;

const LARGE: &str = "scale-up";

/// Two nodes of no class, h0 and h1, and two of one, h2 and h3.
fn cluster() -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(4, 64 * 1024);
    for host in ["h2", "h3"] {
        let mut node = registration(host, "/r1", 64 * 1024);
        node.class = LARGE.into();
        harness.change(Change::Register(node));
        harness.beat(host, 0, Some(&[]));
    }
    let settings = EngineSettings { machine_class: LARGE.into(), ..EngineSettings::default() };
    harness.settings = settings.clone();
    harness.engine.reload(settings, harness.now);
    harness.publish();
    harness
}

/// A run of four maps there.
fn runs_on(harness: &mut EngineHarness, number: u32, hosts: [&str; 4]) {
    let mut asked = request(&format!("n{number}"), &[("map", 4)]);
    (asked.attempt, asked.recurring_key) = (attempt(number, 1), Some("daily".into()));
    harness.ask(asked);
    harness.now = harness.now.plus(Micros::from_secs(60));
    for (at, host) in hosts.into_iter().enumerate() {
        harness.allocated(host, container(attempt(number, 1), 2 + at as u64), None);
        harness.finished(attempt(number, 1), "map", 10, 5);
    }
}

fn done(harness: &mut EngineHarness, number: u32) {
    harness.event(attempt(number, 1), "", TaskWhat::Done { failed: false });
}

fn shares(harness: &EngineHarness, key: &str) -> Vec<Option<u16>> {
    harness.engine.runs().of(key).iter().map(|run| run.on_class).collect()
}

#[test]
fn a_run_says_how_much_of_it_ran_on_machines_of_the_class_and_a_restart_knows_it() {
    let mut harness = cluster();
    for (number, hosts) in [(1, ["h0", "h1", "h0", "h1"]), (2, ["h2", "h3", "h2", "h3"]), (3, ["h0", "h1", "h1", "h2"])]
    {
        runs_on(&mut harness, number, hosts);
        done(&mut harness, number);
    }
    let told = [Some(0), Some(1_000), Some(250)];
    assert_eq!(shares(&harness, "daily"), told);
    harness.restart();
    assert_eq!(shares(&harness, "daily"), told);
}

#[test]
fn where_no_class_is_told_apart_or_no_container_was_heard_of_nothing_is_said() {
    let mut harness = cluster();
    let mut asked = request("n1", &[("map", 4)]);
    (asked.attempt, asked.recurring_key) = (attempt(1, 1), Some("daily".into()));
    harness.ask(asked);
    harness.finished(attempt(1, 1), "map", 10, 5);
    done(&mut harness, 1);
    harness.engine.reload(EngineSettings::default(), harness.now);
    harness.now = harness.now.plus(Micros::from_secs(60));
    runs_on(&mut harness, 2, ["h2", "h3", "h2", "h3"]);
    done(&mut harness, 2);
    assert_eq!(shares(&harness, "daily"), [None, None]);
}

#[test]
fn a_run_that_a_history_server_tells_of_knows_it_as_well_before_and_after_its_application_is_over() {
    let mut harness = cluster();
    let tell = |harness: &mut EngineHarness, number: u32| {
        let submitted = Timestamp(1_000_000 * u64::from(number));
        let (maps, reduces) = ((4, Micros::from_secs(10)), (0, Micros::ZERO));
        let application = Some(attempt(number, 1).application);
        let (input, shuffle) = (Bytes(900), Bytes::ZERO);
        let whole = Some(Run { submitted, maps, reduces, input, shuffle, application, on_class: None });
        let finished = submitted.plus(Micros::from_secs(60));
        let run = LearnedRun { finished, groups: vec![], edges: vec![], whole };
        harness.engine.learnt(&Arc::from("etl"), &run, harness.now);
        harness.drain();
    };
    // Applications that never asked: their containers are told of all the same.
    for (number, host) in [(11, "h2"), (12, "h0")] {
        harness.allocated(host, container(attempt(number, 1), 2), None);
    }
    harness.event(attempt(11, 1), "", TaskWhat::Done { failed: false });
    (11..14).for_each(|number| tell(&mut harness, number));
    assert_eq!(shares(&harness, "etl"), [Some(1_000), Some(0), None]);
}
