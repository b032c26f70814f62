//! Held-out applications, as the engine answers them: no hints, no leases, and their times beside those of hinted ones.

use super::harness::EngineHarness;
use crate::decision::WithheldReason;
use crate::testing::{attempt, request};
use crate::worth::compare::Verdict;
use crate::{Answer, Counter, Effect, Participation, WorthSettings};
use hintd_model::cluster::{Gang, HintRequest};
use hintd_model::units::Micros;
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY: &str = "mapreduce:ann:etl #";

fn cluster() -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(4, 64 * 1_024);
    let worth = WorthSettings { holdout: BTreeMap::from([("*".into(), 0.5)]), ..WorthSettings::default() };
    harness.settings.worth = worth;
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness
}

/// The daemon starts anew, and nodes report again.
fn restart(harness: &mut EngineHarness) {
    harness.restart();
    for at in 0..4 {
        harness.register(&format!("h{at}"), &format!("/r{}", at / 2), 64 * 1_024);
        harness.beat(&format!("h{at}"), 0, Some(&[]));
    }
    harness.publish();
}

fn run(number: u32) -> HintRequest {
    let mut asked = request(&format!("r{number}"), &[("map", 2)]);
    asked.attempt = attempt(number, 1);
    asked.recurring_key = Some(KEY.into());
    asked
}

/// Asks as the daemon does.
fn ask(harness: &mut EngineHarness, asked: HintRequest) -> (Participation, Arc<Answer>) {
    let participation = harness.settings.worth.participation_of(&asked, &harness.engine.generation());
    harness.placer.withhold = participation.withheld();
    let mut proposal = harness.propose(&Arc::new(asked)).unwrap();
    proposal.digest = 1;
    proposal.part = participation.clone().part();
    let outcome = harness.commit(proposal);
    harness.publish();
    match outcome {
        crate::CommitOutcome::Committed(answer) => (participation, answer),
        other => panic!("not committed: {other:?}"),
    }
}

fn reason(answer: &Answer) -> Option<WithheldReason> {
    answer.decision.withheld.map(|withheld| withheld.reason)
}

/// Runs that end, hinted ones after `hinted` seconds and some, the others after ten; what came of the last.
fn runs(harness: &mut EngineHarness, numbers: std::ops::Range<u32>, hinted: u64) -> Arc<Answer> {
    let mut last = None;
    for number in numbers {
        let (participation, answer) = ask(harness, run(number));
        let seconds = if participation.withheld().is_some() { 10 } else { hinted };
        let took = Micros::from_secs(seconds).saturating_add(Micros::from_millis(u64::from(number % 5) * 100));
        harness.engine.application_ended(attempt(number, 1).application, Some(took), harness.now);
        harness.engine.end_attempt(attempt(number, 1), harness.now);
        harness.publish();
        last = Some(answer);
    }
    last.unwrap()
}

#[test]
fn a_held_out_application_gets_no_hints_and_no_leases_and_says_why() {
    let mut harness = cluster();
    let (mut hinted, mut held_out) = (0, 0);
    for number in 1..=20 {
        let (participation, answer) = ask(&mut harness, run(number));
        let leases = harness.engine.leases().filter(|lease| lease.attempt == attempt(number, 1)).count();
        let explained = harness.engine.explain(answer.decision.id).unwrap().unpack();
        assert_eq!(reason(&explained.answer), participation.withheld());
        match reason(&answer) {
            None => hinted += 1,
            other => {
                assert_eq!(other, Some(WithheldReason::Holdout));
                assert!(answer.decision.hints.is_empty() && answer.decision.routes.is_empty());
                held_out += 1;
            }
        }
        assert_eq!(leases, if reason(&answer).is_none() { 2 } else { 0 });
    }
    assert!(hinted >= 5 && held_out >= 5, "{hinted} and {held_out}");
    assert_eq!(harness.count(Counter::HintsHeldOut), 2 * held_out);
    assert_eq!(harness.engine.awaited_applications().len(), 20);
    // What YARN can't do by itself is not kept back.
    let gang = HintRequest { gang: Gang::All, ..run(21) };
    for number in 21..=30 {
        let asked =
            HintRequest { attempt: attempt(number, 1), id: format!("g{number}").as_str().into(), ..gang.clone() };
        let (participation, answer) = ask(&mut harness, asked);
        assert_eq!((participation, reason(&answer)), (Participation::Outside, None));
    }
    assert_eq!(harness.engine.awaited_applications().len(), 20, "nor compared");
}

#[test]
fn all_attempts_of_an_application_are_on_one_side_across_a_restart() {
    let mut harness = cluster();
    let before: Vec<_> = (1..=20).map(|number| ask(&mut harness, run(number)).0).collect();
    restart(&mut harness);
    let again = |number| {
        let asked = HintRequest { attempt: attempt(number, 2), ..run(number) };
        harness.settings.worth.participation_of(&asked, &harness.engine.generation())
    };
    let after: Vec<_> = (1..=20).map(again).collect();
    assert_eq!(before, after);
    assert_eq!(harness.engine.awaited_applications().len(), 20);
}

#[test]
fn a_key_that_hints_make_slower_gets_none_until_it_is_allowed() {
    let mut harness = cluster();
    let last = runs(&mut harness, 1..60, 40);
    assert_eq!(reason(&last), Some(WithheldReason::Slower));
    let told = |effect: &&Effect| matches!(effect, Effect::Verdict(change) if change.now.stopped.is_some());
    assert_eq!(harness.out.iter().filter(told).count(), 1);
    assert_eq!(harness.engine.worth_view().stopped, 1);
    assert_eq!(harness.engine.worth_view().queues[0].verdict, Verdict::Slower);
    restart(&mut harness);
    let last = runs(&mut harness, 60..62, 40);
    assert_eq!(reason(&last), Some(WithheldReason::Slower), "a restart allows nothing");
    assert!(harness.engine.awaited_applications().is_empty(), "there is nothing to compare");
    assert!(harness.engine.allow_key(KEY) && !harness.engine.allow_key("another"));
    harness.publish();
    runs(&mut harness, 62..70, 5);
    assert_eq!(harness.engine.worth_view().stopped, 0);
    assert!(harness.recovered().worth_of_keys().iter().all(|key| key.stopped.is_none()));
}

#[test]
fn nobody_is_held_out_by_default() {
    let mut harness = EngineHarness::with_nodes(4, 64 * 1_024);
    for number in 1..=20 {
        let (participation, answer) = ask(&mut harness, run(number));
        assert_eq!((participation, reason(&answer)), (Participation::Outside, None));
    }
    assert!(harness.engine.awaited_applications().is_empty() && harness.engine.worth_view().queues.is_empty());
}
