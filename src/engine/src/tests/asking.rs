//! Requests that are answered at once while a plan is in force: of applications that nobody can push to.

use super::harness::{EngineHarness, hosts};
use super::plans::{packer, run};
use crate::plans::PlanNote;
use crate::testing::attempt;
use crate::{Answer, CommitOutcome, ImmediateRequest, Proposal, TaskWhat};
use hintd_model::cluster::{Change, Constraints, Gang, HintRequest, WhenFull};
use hintd_model::units::Micros;
use hintd_policy::jobpacker::JobPacker;
use hintd_policy::plan::Deviation;
use hintd_policy::{Policy, registry};
use std::sync::Arc;

impl EngineHarness {
    /// What the runtime does with a request that does not wait, up to its commit.
    fn proposed(&mut self, request: HintRequest, again: bool) -> Proposal {
        self.places_by("jobpacker");
        self.placer.planned = None;
        let mut taken = None;
        if let Some(plan) = self.engine.generation().plan.clone() {
            let stands = match ImmediateRequest::of(&request, &plan, (&packer(), "jobpacker"), again) {
                Ok(asks) => {
                    let stands = self.engine.preview_plan_status(&asks, self.now);
                    taken = Some(Box::new(asks));
                    stands
                }
                Err(without_key) => Some(*without_key),
            };
            self.placer.planned = stands.map(Arc::new);
        }
        let mut proposal = self.propose(&Arc::new(request)).unwrap();
        (proposal.at_once, proposal.digest) = (taken, 1);
        proposal
    }

    fn committed(&mut self, proposal: Proposal) -> Arc<Answer> {
        let outcome = self.commit(proposal);
        self.publish();
        match outcome {
            CommitOutcome::Committed(answer) => answer,
            other => panic!("not committed: {other:?}"),
        }
    }

    fn at_once(&mut self, request: HintRequest) -> Arc<Answer> {
        let proposal = self.proposed(request, false);
        self.committed(proposal)
    }

    fn asks(&mut self, number: u32, key: &str, maps: u32) -> Arc<Answer> {
        self.at_once(run(number, Some(key), maps))
    }

    /// Jobs whose place a run took, and runs without one.
    fn taken(&mut self) -> (u32, u32) {
        let counts = self.engine.plan_in_force(self.now).unwrap().followed[0].1;
        (counts.followed, counts.unplanned)
    }
}

fn note(answer: &Answer) -> &PlanNote {
    answer.decision.plan.as_ref().expect("a plan is in force")
}

fn counted(answer: &Answer) -> (u32, u32, &[Deviation]) {
    let note = note(answer);
    (note.as_planned, note.elsewhere, &note.deviations)
}

#[test]
fn who_only_asks_is_placed_by_the_plan_and_told_so() {
    for (rack, on) in [("/r0", ["h0", "h1"]), ("/r2", ["h4", "h5"])] {
        let mut harness = EngineHarness::with_nodes(6, 2048);
        harness.follow("monday", &[("daily", rack, 4)]);
        let answer = harness.asks(1, "daily", 4);
        let mut hinted: Vec<String> = hosts(&answer).iter().map(ToString::to_string).collect();
        hinted.sort();
        hinted.dedup();
        assert_eq!(hinted, on);
        assert_eq!(counted(&answer), (4, 0, &[][..]));
        assert_eq!(note(&answer).job.as_ref().map(|job| &*job.key), Some("daily"));
        assert_eq!(harness.taken(), (1, 0));
    }
}

#[test]
fn runs_without_a_place_are_placed_as_without_a_plan_and_told_why() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 4)]);
    harness.asks(1, "daily", 4);
    let second = harness.asks(2, "daily", 4);
    assert_eq!(counted(&second), (0, 4, &[Deviation::PlaceTaken][..]));
    assert_eq!(counted(&harness.asks(3, "weekly", 1)), (0, 1, &[Deviation::NotPlanned][..]));
    let no_key = harness.at_once(run(4, None, 1));
    assert_eq!(counted(&no_key), (0, 1, &[Deviation::NoKey][..]));
    harness.roll_back(true).unwrap();
    assert_eq!(harness.asks(5, "daily", 1).decision.plan, None, "no plan, no note");
}

#[test]
fn a_run_that_asked_long_before_a_plan_was_in_force_takes_no_later_runs_place() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.asks(1, "hourly", 4);
    harness.pass(Micros::from_secs(2 * 3600));
    harness.all_beat(6);
    harness.follow("monday", &[("hourly", "/r2", 4)]);
    let reduces = harness.at_once(HintRequest { id: "its reduces".into(), ..run(1, Some("hourly"), 4) });
    assert_eq!(counted(&reduces), (0, 4, &[Deviation::OutOfTime][..]));
    let next = harness.asks(2, "hourly", 4);
    assert_eq!(counted(&next), (4, 0, &[][..]), "which it finds free");
    // One that asked shortly before is the plan's.
    harness.roll_back(true).unwrap();
    harness.asks(3, "daily", 4);
    harness.pass(Micros::from_secs(60));
    harness.all_beat(6);
    harness.follow("tuesday", &[("daily", "/r1", 4)]);
    let again = harness.at_once(HintRequest { id: "more".into(), ..run(3, Some("daily"), 4) });
    assert_eq!((note(&again).as_planned, note(&again).elsewhere), (4, 0), "{:?}", note(&again));
}

#[test]
fn runs_without_a_place_are_counted_until_their_applications_end() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 4)]);
    harness.asks(1, "weekly", 4);
    harness.asks(2, "monthly", 4);
    harness.at_once(run(3, None, 4));
    assert_eq!(harness.taken(), (0, 2), "one has no key");
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    assert_eq!(harness.taken(), (0, 1));
}

#[test]
fn full_planned_racks_are_waited_for_while_the_plan_says_so() {
    let mut harness = EngineHarness::with_nodes(6, 2048);
    harness.follow("monday", &[("daily", "/r1", 6)]);
    let answer = harness.asks(1, "daily", 6);
    assert_eq!(counted(&answer), (4, 0, &[][..]));
    let waiting: Vec<_> = answer.decision.hints.iter().filter(|hint| hint.leases.is_empty()).collect();
    assert_eq!(waiting.iter().map(|hint| hint.count).sum::<u32>(), 2);
    assert!(waiting.iter().all(|hint| hint.racks[0].as_str() == "/r1"), "{waiting:?}");
    assert!(waiting.iter().all(|hint| hint.expected_wait.is_none()), "the answer itself takes the room: {waiting:?}");
    let racks = answer.decision.hints.iter().flat_map(|hint| &hint.racks);
    assert!(racks.into_iter().all(|rack| rack.as_str() == "/r1"), "nor are others named as next best");
    let blocked = &answer.decision.blocked[0];
    assert_eq!((&*blocked.constraint, blocked.count), ("other_rack_planned", 2), "{blocked:?}");

    // The plan has its maps ended after 10 s, and patience is a minute.
    harness.pass(Micros::from_secs(71));
    harness.all_beat(6);
    let late = harness.at_once(HintRequest { id: "late".into(), ..run(1, Some("daily"), 6) });
    assert_eq!((note(&late).as_planned, note(&late).elsewhere), (4, 2), "what has no room goes anywhere");
}

#[test]
fn who_needs_all_at_once_is_not_told_to_wait_for_racks() {
    let whole = |request: HintRequest| HintRequest { gang: Gang::All, ..request };
    let now = |request: HintRequest| HintRequest { when_full: WhenFull::Fail, ..request };
    let bound = |request: HintRequest| HintRequest {
        constraints: Constraints { avoid_hosts: vec!["h0".into()], ..Constraints::default() },
        ..request
    };
    for change in [&whole as &dyn Fn(HintRequest) -> HintRequest, &now, &bound] {
        let mut harness = EngineHarness::with_nodes(6, 2048);
        harness.follow("monday", &[("daily", "/r1", 6)]);
        let answer = harness.at_once(change(run(1, Some("daily"), 6)));
        assert_eq!(counted(&answer), (4, 2, &[][..]));
    }
}

#[test]
fn a_dead_rack_lets_the_stage_go_anywhere() {
    let mut harness = EngineHarness::with_nodes(4, 4096);
    harness.follow("monday", &[("daily", "/r1", 4)]);
    for host in ["h2", "h3"] {
        harness.change(Change::Gone(host.into()));
    }
    harness.publish();
    harness.pass(Micros::from_secs(2));
    let answer = harness.asks(1, "daily", 4);
    assert_eq!(counted(&answer), (0, 4, &[Deviation::MapRackGone][..]));
}

#[test]
fn a_place_is_taken_with_the_commit_and_by_one() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 2)]);
    let [first, second] = [7, 8].map(|number| harness.proposed(run(number, Some("daily"), 2), false));
    for proposal in [&first, &second] {
        assert_eq!(proposal.preview().plan.unwrap().job.unwrap().run, 0, "its place was free when it was looked");
    }
    assert_eq!(harness.taken(), (0, 0), "looking takes none");
    assert_eq!(counted(&harness.committed(first)), (2, 0, &[][..]));
    assert!(matches!(harness.commit(second.clone()), CommitOutcome::Conflict { .. }), "to be placed again");
    assert_eq!(harness.taken(), (1, 0));
    let last = harness.committed(Proposal { last_try: true, ..second });
    assert_eq!(counted(&last), (0, 2, &[Deviation::PlaceTaken][..]), "no more time: it is said how it stands");
}

#[test]
fn a_plan_that_is_gone_before_the_commit_is_not_spoken_of() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 2)]);
    let proposal = harness.proposed(run(7, Some("daily"), 2), false);
    harness.roll_back(true).unwrap();
    assert!(matches!(harness.commit(proposal.clone()), CommitOutcome::Conflict { .. }));
    assert_eq!(harness.committed(Proposal { last_try: true, ..proposal }).decision.plan, None);
}

#[test]
fn asking_for_lost_tasks_counts_none() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 4)]);
    harness.asks(1, "daily", 4);
    for at in 0..2 {
        let again = HintRequest { id: format!("again{at}").as_str().into(), ..run(1, Some("daily"), 4) };
        let proposal = harness.proposed(again, true);
        assert_eq!(counted(&harness.committed(proposal)), (4, 0, &[][..]), "twelve maps would be too many");
    }
    let new = harness.at_once(HintRequest { id: "new".into(), ..run(1, Some("daily"), 4) });
    assert_eq!(counted(&new), (4, 0, &[][..]), "eight are not");
    let more = harness.at_once(HintRequest { id: "more".into(), ..run(1, Some("daily"), 1) });
    assert_eq!(note(&more).deviations, [Deviation::MapCount]);
}

#[test]
fn another_setting_of_the_policy_unseats_nobody() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 4)]);
    harness.asks(1, "daily", 2);
    let table = toml::de::DeTable::parse("heavy_input_bytes = 7\n").unwrap();
    let other: Arc<dyn Policy> = registry::build::<JobPacker>(table).unwrap().into();
    harness.engine.redispatch(&|_| Some(Arc::clone(&other)), harness.now);
    assert_eq!(counted(&harness.asks(2, "daily", 2)).2, [Deviation::PlaceTaken]);
    let again = HintRequest { id: "again".into(), ..run(1, Some("daily"), 2) };
    assert_eq!(counted(&harness.at_once(again)), (2, 0, &[][..]));
}

#[test]
fn an_answer_that_was_undone_costs_its_run_no_place() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 4)]);
    let answer = harness.asks(1, "daily", 4);
    harness.engine.undo(answer.decision.id, harness.now);
    harness.drain();
    assert_eq!(counted(&harness.asks(1, "daily", 4)), (4, 0, &[][..]), "it asks again, as it was told to");
    assert_eq!(counted(&harness.asks(2, "daily", 4)).2, [Deviation::PlaceTaken]);
}

#[test]
fn a_later_attempt_has_its_applications_place() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 4)]);
    harness.asks(1, "daily", 4);
    let second = HintRequest { attempt: attempt(1, 2), id: "second".into(), ..run(1, Some("daily"), 4) };
    assert_eq!(counted(&harness.at_once(second)), (4, 0, &[][..]));
    assert_eq!(harness.taken(), (1, 0));
    for host in ["h4", "h5"] {
        harness.change(Change::Gone(host.into()));
    }
    harness.publish();
    harness.pass(Micros::from_secs(2));
    let later = HintRequest { attempt: attempt(1, 2), id: "later".into(), ..run(1, Some("daily"), 1) };
    assert_eq!(counted(&harness.at_once(later)), (0, 1, &[Deviation::MapRackGone][..]), "the place is watched over");
}

#[test]
fn a_new_state_seats_runs_as_they_came() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 2)]);
    harness.wait(&packer(), run(1, Some("daily"), 2));
    harness.pass(Micros::from_secs(1));
    harness.all_beat(6);
    assert_eq!(counted(&harness.asks(2, "daily", 2)).2, [Deviation::PlaceTaken]);
    let table = toml::de::DeTable::parse("heavy_input_bytes = 7\n").unwrap();
    let other: Arc<dyn Policy> = registry::build::<JobPacker>(table).unwrap().into();
    harness.engine.redispatch(&|_| Some(Arc::clone(&other)), harness.now);
    let again = HintRequest { id: "again".into(), ..run(2, Some("daily"), 2) };
    assert_eq!(counted(&harness.at_once(again)).2, [Deviation::PlaceTaken], "who waits came first");
}

#[test]
fn a_plan_that_has_expired_has_no_places() {
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r2", 2)]);
    let mut short = super::plans::plan(harness.now, &[("daily", "/r2", 2)]);
    short.until = harness.now.plus(Micros::from_secs(20));
    harness.keep("short", short).unwrap();
    harness.activate("short", true).unwrap();
    harness.asks(9, "weekly", 1);
    harness.pass(Micros::from_secs(20));
    harness.all_beat(6);
    assert_eq!(counted(&harness.asks(1, "daily", 2)), (0, 2, &[Deviation::OutOfTime][..]));
}
