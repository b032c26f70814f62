//! What is kept of finished runs says on which machines they ran: for policies that learn how fast these are.

use super::harness::{EngineHarness, container, hosts, registration};
use crate::history::LearnedRun;
use crate::journal::Table;
use crate::prediction::{ClassHash, ClassShare, Run};
use crate::testing::{attempt, request};
use crate::{EngineSettings, TaskWhat};
use hintd_model::cluster::Change;
use hintd_model::units::{Bytes, Micros, Timestamp};
use hintd_policy::scale_up_out::{self, BLOCK};
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
    harness.engine.runs().of(key).iter().map(|run| run.ran_on?.of(LARGE)).collect()
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
        let whole = Some(Run { submitted, maps, reduces, input, shuffle, application, counted: true, ran_on: None });
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

#[test]
fn while_no_machine_is_of_the_class_nothing_is_said_and_machines_that_come_later_change_nothing() {
    let mut harness = EngineHarness::with_nodes(4, 64 * 1024);
    harness.settings = EngineSettings { machine_class: LARGE.into(), ..EngineSettings::default() };
    harness.engine.reload(harness.settings.clone(), harness.now);
    runs_on(&mut harness, 1, ["h0", "h1", "h2", "h3"]);
    done(&mut harness, 1);
    assert_eq!(shares(&harness, "daily"), [None]);
    let mut node = registration("h3", "/r1", 64 * 1024);
    node.class = LARGE.into();
    harness.change(Change::Register(node));
    harness.beat("h3", 0, Some(&[]));
    harness.publish();
    runs_on(&mut harness, 2, ["h0", "h1", "h2", "h0"]);
    done(&mut harness, 2);
    assert_eq!(shares(&harness, "daily"), [None, Some(0)]);
}

#[test]
fn a_run_tells_of_the_class_that_was_told_apart_when_it_ran() {
    let mut harness = cluster();
    runs_on(&mut harness, 1, ["h2", "h3", "h2", "h0"]);
    done(&mut harness, 1);
    harness.settings.machine_class = "gpu".into();
    harness.engine.reload(harness.settings.clone(), harness.now);
    let mut node = registration("h0", "/r0", 64 * 1024);
    node.class = "gpu".into();
    harness.change(Change::Register(node));
    harness.beat("h0", 0, Some(&[]));
    harness.publish();
    runs_on(&mut harness, 2, ["h0", "h0", "h2", "h3"]);
    done(&mut harness, 2);
    harness.restart();
    let of = |class: &str| -> Vec<Option<u16>> {
        harness.engine.runs().of("daily").iter().map(|run| run.ran_on?.of(class)).collect()
    };
    assert_eq!((of(LARGE), of("gpu")), (vec![Some(750), None], vec![None, Some(500)]));
}

#[test]
fn a_run_of_a_journal_of_before_is_read_and_its_share_which_is_of_no_known_class_is_not() {
    let mut harness = cluster();
    runs_on(&mut harness, 1, ["h2", "h3", "h2", "h0"]);
    done(&mut harness, 1);
    let now = harness.engine.runs().of("daily")[0];
    assert_eq!(now.ran_on, Some(ClassShare { class: ClassHash::of(LARGE), per_mille: 750 }));
    let row = harness.rows.iter_mut().find(|((table, _), _)| *table == Table::Runs).unwrap().1;
    let mut before: serde_json::Value = serde_json::from_slice(row).unwrap();
    before.as_object_mut().unwrap().remove("ran_on").unwrap();
    before["on_class"] = 750.into();
    *row = serde_json::to_vec(&before).unwrap();
    harness.restart();
    assert_eq!(harness.engine.runs().of("daily"), [Run { ran_on: None, ..now }]);
}

/// Of an application that asks with a key of its own: three maps of which it tells no bytes.
fn ends_itself(harness: &mut EngineHarness, number: u32) {
    runs_on(harness, number, ["h2", "h3", "h2", "h3"]);
    done(harness, number);
}

/// The same run as a history server tells it, under the key that it makes.
fn server_tells(harness: &mut EngineHarness, number: u32) -> Run {
    let submitted = Timestamp(1_000_000 * u64::from(number));
    let (maps, reduces) = ((5, Micros::from_secs(11)), (2, Micros::from_secs(3)));
    let application = Some(attempt(number, 1).application);
    let (input, shuffle) = (Bytes(900), Bytes(300));
    let whole = Run { submitted, maps, reduces, input, shuffle, application, counted: true, ran_on: None };
    let finished = submitted.plus(Micros::from_secs(60));
    let run = LearnedRun { finished, groups: vec![], edges: vec![], whole: Some(whole) };
    harness.engine.learnt(&Arc::from("etl"), &run, harness.now);
    harness.drain();
    whole
}

#[test]
fn what_a_history_server_counted_of_a_run_that_told_of_itself_is_kept_under_its_own_key_whoever_is_first() {
    for server_first in [false, true] {
        let mut harness = cluster();
        if server_first {
            server_tells(&mut harness, 1);
            ends_itself(&mut harness, 1);
        } else {
            ends_itself(&mut harness, 1);
            assert_eq!(harness.engine.runs().of("daily")[0].input, Bytes::ZERO);
        }
        let began = harness.engine.runs().of("daily")[0].submitted;
        let told = server_tells(&mut harness, 1);
        let ran_on = Some(ClassShare { class: ClassHash::of(LARGE), per_mille: 1_000 });
        let kept = [Run { submitted: began, ran_on, ..told }];
        assert!(began != told.submitted && harness.engine.runs().of("etl").is_empty());
        assert_eq!(harness.engine.runs().of("daily"), kept, "the server was first: {server_first}");
        harness.restart();
        assert_eq!(harness.engine.runs().of("daily"), kept, "after a restart");
        server_tells(&mut harness, 1);
        assert_eq!(harness.engine.runs().of("daily"), kept, "told again");
    }
}

#[test]
fn reduces_of_a_stock_job_go_where_the_whole_job_belongs_by_its_last_run_or_by_the_maps_that_came() {
    for (maps, class) in [(2_u32, ["h2", "h3"]), (300, ["h0", "h1"])] {
        for ran_before in [true, false] {
            let mut harness = cluster();
            harness.places_by(scale_up_out::NAME);
            let mut asked = request("reduces", &[("p10", 2)]);
            asked.groups[0].role = "reduce".into();
            if ran_before {
                asked.recurring_key = Some("daily".into());
                let (input, second) = (Bytes(u64::from(maps) * BLOCK.0), Micros::from_secs(1));
                let whole = Some(Run {
                    submitted: Timestamp(1),
                    maps: (maps, second),
                    reduces: (2, second),
                    input,
                    shuffle: Bytes(input.0 / 100),
                    application: None,
                    counted: true,
                    ran_on: None,
                });
                let run = LearnedRun { finished: Timestamp(2), groups: vec![], edges: vec![], whole };
                assert!(harness.engine.learnt(&"daily".into(), &run, harness.now));
            } else {
                for id in 0..u64::from(maps) {
                    let what = TaskWhat::Allocated {
                        host: "h0".into(),
                        container: container(attempt(1, 1), 2 + id),
                        lease: None,
                    };
                    harness.event(attempt(1, 1), "p20", what);
                }
            }
            harness.publish();
            let on = hosts(&harness.ask(asked));
            let there = |host: &hintd_model::units::HostName| class.contains(&host.as_str());
            assert!(!on.is_empty() && on.iter().all(there), "{maps} maps, ran before: {ran_before}: on {on:?}");
        }
    }
}
