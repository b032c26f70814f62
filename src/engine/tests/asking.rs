//! Requests that are answered at once while a plan is in force: of applications that nobody can push to.

use super::desk::{Desk, hosts};
use super::plans::{packer, run};
use crate::cluster::{Change, Gang, HintRequest, WhenFull};
use crate::engine::plans::PlanNote;
use crate::engine::{Answer, Asks, Counts, Mode};
use crate::policy::plan::Deviation;
use crate::policy::{Policy, jobpacker};
use crate::units::Micros;
use std::sync::Arc;

impl Desk {
    /// What the runtime does with a request that does not wait.
    fn at_once(&mut self, request: HintRequest, counts: Counts) -> Arc<Answer> {
        self.placer.planned = None;
        if let Some(plan) = self.engine.generation().plan.clone() {
            let stands = match Asks::of(&request, &plan, (&packer(), "jobpacker"), counts) {
                Ok(asks) => self.engine.ask_plan(&asks, self.now),
                Err(without_key) => Some(without_key),
            };
            self.placer.planned = stands.map(Arc::new);
        }
        self.places_by("jobpacker");
        self.ask(request)
    }

    fn asks(&mut self, number: u32, key: &str, maps: u32) -> Arc<Answer> {
        self.at_once(run(number, Some(key), maps), Counts::All)
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
        let mut desk = Desk::with_nodes(6, 2048);
        desk.follow("monday", &[("daily", rack, 4)]);
        let answer = desk.asks(1, "daily", 4);
        let mut hinted: Vec<String> = hosts(&answer).iter().map(ToString::to_string).collect();
        hinted.sort();
        hinted.dedup();
        assert_eq!(hinted, on);
        assert_eq!(counted(&answer), (4, 0, &[][..]));
        assert_eq!(note(&answer).job.as_ref().map(|job| &*job.key), Some("daily"));
        let followed = desk.engine.plan_in_force(desk.now).unwrap().followed;
        assert_eq!(followed[0].1.followed, 1, "its place is taken: {followed:?}");
    }
}

#[test]
fn runs_without_a_place_are_placed_as_without_a_plan_and_told_why() {
    let mut desk = Desk::with_nodes(6, 8192);
    desk.follow("monday", &[("daily", "/r2", 4)]);
    desk.asks(1, "daily", 4);
    let second = desk.asks(2, "daily", 4);
    assert_eq!(counted(&second), (0, 4, &[Deviation::PlaceTaken][..]));
    assert_eq!(counted(&desk.asks(3, "weekly", 1)), (0, 1, &[Deviation::NotPlanned][..]));
    let no_key = desk.at_once(run(4, None, 1), Counts::All);
    assert_eq!(counted(&no_key), (0, 1, &[Deviation::NoKey][..]));
    desk.roll_back(true).unwrap();
    assert_eq!(desk.asks(5, "daily", 1).decision.plan, None, "no plan, no note");
}

#[test]
fn full_planned_racks_are_waited_for_while_the_plan_says_so() {
    let mut desk = Desk::with_nodes(6, 2048);
    desk.follow("monday", &[("daily", "/r1", 6)]);
    let answer = desk.asks(1, "daily", 6);
    assert_eq!(counted(&answer), (4, 0, &[][..]));
    let waiting: Vec<_> = answer.decision.hints.iter().filter(|hint| hint.leases.is_empty()).collect();
    assert_eq!(waiting.iter().map(|hint| hint.count).sum::<u32>(), 2);
    assert!(waiting.iter().all(|hint| hint.racks[0].as_str() == "/r1"), "{waiting:?}");
    let blocked = &answer.decision.blocked[0];
    assert_eq!((&*blocked.constraint, blocked.count), ("other_rack_planned", 2), "{blocked:?}");

    // The plan has its maps ended after 10 s, and patience is a minute.
    desk.pass(Micros::from_secs(71));
    desk.all_beat(6);
    let late = desk.at_once(HintRequest { id: "late".into(), ..run(1, Some("daily"), 6) }, Counts::All);
    assert_eq!((note(&late).as_planned, note(&late).elsewhere), (4, 2), "what has no room goes anywhere");
}

#[test]
fn who_needs_all_at_once_is_not_told_to_wait_for_racks() {
    let whole = |request: HintRequest| HintRequest { gang: Gang::All, ..request };
    let now = |request: HintRequest| HintRequest { when_full: WhenFull::Fail, ..request };
    for change in [&whole as &dyn Fn(HintRequest) -> HintRequest, &now] {
        let mut desk = Desk::with_nodes(4, 2048);
        desk.follow("monday", &[("daily", "/r1", 6)]);
        let answer = desk.at_once(change(run(1, Some("daily"), 6)), Counts::All);
        assert_eq!(counted(&answer), (4, 2, &[][..]));
    }
}

#[test]
fn a_dead_rack_lets_the_stage_go_anywhere() {
    let mut desk = Desk::with_nodes(4, 4096);
    desk.follow("monday", &[("daily", "/r1", 4)]);
    for host in ["h2", "h3"] {
        desk.change(Change::Gone(host.into()));
    }
    desk.publish();
    desk.pass(Micros::from_secs(2));
    let answer = desk.asks(1, "daily", 4);
    assert_eq!(counted(&answer), (0, 4, &[Deviation::MapRackGone][..]));
}

#[test]
fn looking_takes_no_place_and_asking_for_lost_tasks_counts_none() {
    let mut desk = Desk::with_nodes(6, 8192);
    desk.follow("monday", &[("daily", "/r2", 4)]);
    let looked = desk.at_once(run(7, Some("daily"), 1), Counts::Nothing);
    assert_eq!(counted(&looked), (1, 0, &[][..]));
    assert_eq!(counted(&desk.asks(1, "daily", 4)), (4, 0, &[][..]), "its place was free");
    for at in 0..2 {
        let again = HintRequest { id: format!("again{at}").as_str().into(), ..run(1, Some("daily"), 4) };
        assert_eq!(counted(&desk.at_once(again, Counts::Place)), (4, 0, &[][..]), "twelve maps would be too many");
    }
}

#[test]
fn another_setting_of_the_policy_unseats_nobody() {
    let mut desk = Desk::with_nodes(6, 8192);
    desk.follow("monday", &[("daily", "/r2", 4)]);
    desk.asks(1, "daily", 2);
    let table = toml::de::DeTable::parse("heavy_input_bytes = 7\n").unwrap();
    let other: Arc<dyn Policy> = jobpacker::build(table).unwrap().into();
    desk.engine.redispatch(&|_| Some(Arc::clone(&other)), desk.now);
    assert_eq!(counted(&desk.asks(2, "daily", 2)).2, [Deviation::PlaceTaken]);
    let again = HintRequest { id: "again".into(), ..run(1, Some("daily"), 2) };
    assert_eq!(counted(&desk.at_once(again, Counts::All)), (2, 0, &[][..]));
}

#[test]
fn a_shadow_queue_is_compared_by_the_plan_and_takes_no_place() {
    let mut desk = Desk::with_nodes(6, 8192);
    desk.follow("monday", &[("daily", "/r2", 4)]);
    desk.mode = Mode::Shadow;
    let shadow = desk.at_once(run(1, Some("daily"), 4), Counts::Nothing);
    assert_eq!(counted(&shadow), (4, 0, &[][..]));
}
