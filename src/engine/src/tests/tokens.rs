//! Who may ask, release, tell and end for an attempt: what each shows, and what a stranger can't do.

use super::harness::{EngineHarness, START, maps};
use crate::journal::Table;
use crate::{
    Answer, CommitOutcome, Counter, Effect, Engine, NonceHash, Proof, Refusal, Shown, TaskEvent, TaskWhat, Token,
};
use hintd_model::cluster::{HintRequest, SizeRules};
use hintd_model::units::AttemptId;
use std::sync::Arc;

fn nonce(byte: u8) -> Proof {
    Proof::Shown(Shown { token: None, nonce: Some(NonceHash([byte; 32])), listed: false })
}

fn nothing() -> Proof {
    Proof::Shown(Shown::default())
}

fn listed(byte: u8) -> Proof {
    Proof::Shown(Shown { token: None, nonce: Some(NonceHash([byte; 32])), listed: true })
}

fn attempt(number: u32) -> AttemptId {
    crate::testing::attempt(1, number)
}

const ONE: fn() -> AttemptId = || attempt(1);

fn ask(harness: &mut EngineHarness, id: &str, number: u32, proof: &Proof) -> Result<Arc<Answer>, Refusal> {
    let request = HintRequest { attempt: attempt(number), ..maps(id, 2) };
    let mut proposal = harness.propose(&Arc::new(request)).unwrap();
    (proposal.digest, proposal.proof) = (1, proof.clone());
    let outcome = harness.commit(proposal);
    harness.publish();
    match outcome {
        CommitOutcome::Committed(answer) => Ok(answer),
        CommitOutcome::Answered(answer) => {
            let answer = answer.unpack();
            answer.may_be_seen_by(proof, harness.engine.settings().legacy_clients).map(|()| answer)
        }
        CommitOutcome::Refused(refusal) => Err(refusal),
        other @ CommitOutcome::Conflict { .. } => panic!("{other:?}"),
    }
}

/// Starts anew on what the journal holds, with the nodes that were there.
fn restart(harness: &mut EngineHarness) {
    harness.restart();
    for host in ["h0", "h1"] {
        harness.register(host, "/r0", 8192);
        harness.beat(host, 0, Some(&[]));
    }
    harness.publish();
}

fn done(harness: &mut EngineHarness, number: u32, proof: &Proof) -> Result<(), Refusal> {
    let what = TaskWhat::Done { failed: false };
    let (at, group, task) = (harness.now, "".into(), "".into());
    let event = TaskEvent { attempt: attempt(number), group, task, what, recurring_key: None, at };
    let told = harness.engine.tell(event, proof, harness.now);
    harness.drain();
    told.map(drop)
}

fn bad(number: u32) -> Refusal {
    Refusal::BadToken { attempt: attempt(number) }
}

fn none(number: u32) -> Refusal {
    Refusal::NoToken { what: attempt(number).to_string() }
}

#[test]
fn a_stranger_gets_neither_hints_nor_the_answer_nor_the_end_of_an_attempt() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    let first = ask(&mut harness, "a", 1, &nonce(1)).unwrap();
    let token = Proof::of_token(first.token.clone());
    for (id, proof, found) in [
        ("b", nothing(), none(1)),
        ("b", nonce(2), bad(1)),
        ("b", Proof::of_token(Token("guess".into())), bad(1)),
        ("a", nothing(), none(1)),
        ("a", nonce(2), bad(1)),
    ] {
        assert_eq!(ask(&mut harness, id, 1, &proof), Err(found.clone()), "{id} {proof:?}");
        assert_eq!(harness.engine.release(ONE(), &proof, &[], harness.now), Err(found.clone()));
        assert_eq!(done(&mut harness, 1, &proof), Err(found));
    }
    assert_eq!(harness.leases().len(), 2);
    for (id, proof) in [("a", nonce(1)), ("a", token.clone()), ("b", nonce(1)), ("c", token.clone())] {
        assert_eq!(ask(&mut harness, id, 1, &proof).unwrap().token, first.token, "{id}");
    }
    assert_eq!(harness.engine.release(ONE(), &nonce(1), &[], harness.now).unwrap().released, 6);
    ask(&mut harness, "d", 1, &token).unwrap();
    done(&mut harness, 1, &token).unwrap();
    assert_eq!((harness.leases().len(), harness.engine.counts().attempts), (0, 0));
    assert!(first.may_be_seen_by(&nonce(2), true).is_err(), "after its end as well");
    assert_eq!(harness.count(Counter::LegacyAttempts), 0);
}

#[test]
fn a_later_attempt_of_a_stranger_neither_ends_the_earlier_nor_locks_it_out() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    ask(&mut harness, "a", 1, &nonce(1)).unwrap();
    let jump = ask(&mut harness, "jump", u32::MAX, &nonce(9)).unwrap_err();
    assert!(jump.to_string().contains("more than 100 above the last known attempt, 1"), "{jump}");
    ask(&mut harness, "next", 2, &nonce(9)).unwrap();
    assert_eq!(harness.leases().len(), 4, "the first keeps its own");
    done(&mut harness, 2, &nonce(9)).unwrap();
    assert_eq!(harness.leases().len(), 2, "the end of the stranger's is not that of the first");
    done(&mut harness, u32::MAX, &nonce(9)).unwrap();
    assert_eq!(harness.leases().len(), 2, "nor is the end of one that nobody knows");
    ask(&mut harness, "next-again", 3, &nonce(9)).unwrap();
    ask(&mut harness, "b", 1, &nonce(1)).unwrap();
    assert_eq!(ask(&mut harness, "c", 3, &nonce(1)), Err(bad(3)));
}

#[test]
fn a_later_attempt_that_is_listed_or_shows_the_earlier_ones_nonce_ends_it() {
    for later in [nonce(1), listed(7)] {
        let mut harness = EngineHarness::with_nodes(2, 8192);
        ask(&mut harness, "a", 1, &nonce(1)).unwrap();
        ask(&mut harness, "b", 2, &later).unwrap();
        assert_eq!(harness.leases().len(), 2, "{later:?}");
        let over = ask(&mut harness, "c", 1, &nonce(1)).unwrap_err();
        assert!(over.to_string().contains("is over"), "{over}");
        // Still so after a restart.
        restart(&mut harness);
        let over = ask(&mut harness, "c", 1, &nonce(1)).unwrap_err();
        assert!(over.to_string().contains("is over"), "{over}");
    }
    let mut harness = EngineHarness::with_nodes(2, 8192);
    ask(&mut harness, "far", 4_000, &listed(1)).unwrap();
}

#[test]
fn the_nonce_holds_after_a_restart_and_the_journal_does_not_have_it() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    let first = ask(&mut harness, "a", 1, &nonce(1)).unwrap();
    restart(&mut harness);
    let again = ask(&mut harness, "a", 1, &nonce(1)).unwrap();
    assert_eq!(again, first);
    assert_eq!(ask(&mut harness, "a", 1, &nothing()), Err(none(1)));
    assert_eq!(ask(&mut harness, "b", 1, &nonce(2)), Err(bad(1)));
    ask(&mut harness, "b", 1, &nonce(1)).unwrap();
}

#[test]
fn an_attempt_whose_first_request_has_no_nonce_goes_on_as_with_the_version_before_and_is_told_of_once() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    let first = ask(&mut harness, "a", 1, &nothing()).unwrap();
    assert_eq!(ask(&mut harness, "b", 1, &nothing()).unwrap().token, first.token);
    assert_eq!(ask(&mut harness, "a", 1, &nothing()).unwrap(), first);
    ask(&mut harness, "c", 2, &nothing()).unwrap();
    let told = Effect::LegacyClient { application: ONE().application };
    assert_eq!(harness.out.iter().filter(|effect| **effect == told).count(), 1);
    assert_eq!(harness.count(Counter::LegacyAttempts), 2);
    let release = harness.engine.release(ONE(), &nothing(), &[], harness.now);
    assert_eq!(release, Err(none(1)), "that needed a token before, too");
    done(&mut harness, 1, &nothing()).unwrap();
    // Told to be strict, it is.
    let settings = crate::EngineSettings { legacy_clients: false, ..harness.settings.clone() };
    harness.engine.reload(settings, harness.now);
    assert_eq!(ask(&mut harness, "d", 2, &nothing()), Err(none(2)));
    assert_eq!(ask(&mut harness, "e", 3, &nothing()), Err(none(3)));
    ask(&mut harness, "f", 3, &nonce(5)).unwrap();
}

#[test]
fn rows_of_the_version_before_are_attempts_without_a_nonce() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    let first = ask(&mut harness, "a", 1, &nothing()).unwrap();
    let row = (Table::Attempts, harness.rows.keys().find(|(table, _)| *table == Table::Attempts).unwrap().1.clone());
    let old = serde_json::to_vec(&first.token).unwrap();
    assert!(harness.rows.insert(row, old).unwrap().starts_with(b"{\"token\":"));
    restart(&mut harness);
    assert_eq!(ask(&mut harness, "b", 1, &nothing()).unwrap().token, first.token);
    let token = Proof::of_token(first.token.clone());
    assert_eq!(harness.engine.release(ONE(), &token, &[], harness.now).unwrap().released, 4);
    assert!(Engine::new(harness.settings.clone(), SizeRules::default(), [].into(), START).is_ok());
}
