//! Plans that are left: rolled back, or followed by nobody.

use super::harness::EngineHarness;
use super::plans::{note, packer, plan, run};
use crate::plans::SCHEDULE;
use hintd_model::units::Micros;
use hintd_policy::plan::Plan;

#[test]
fn rolling_back_goes_to_the_plan_before_or_to_none_and_hints_with_it() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    assert_eq!(harness.roll_back(false).unwrap_err().to_string(), "plan: none is in force");
    harness.follow("monday", &[("daily", "/r0", 2)]);
    harness.follow("tuesday", &[("daily", "/r1", 2)]);
    assert_eq!(harness.roll_back(false), Ok(Some("monday".to_owned())));
    let answer = harness.wait(&packer(), run(1, Some("daily"), 2));
    assert_eq!((note(&answer).as_planned, &*note(&answer).plan), (2, "monday"));
    assert_eq!((harness.roll_back(false), harness.in_force()), (Ok(None), None));
    assert_eq!(harness.wait(&packer(), run(2, Some("daily"), 2)).decision.plan, None);
    harness.activate("monday", false).unwrap();
    harness.activate("tuesday", true).unwrap();
    assert_eq!((harness.roll_back(true), harness.in_force()), (Ok(None), None), "to none, whatever was before");
    harness.activate("monday", false).unwrap();
    harness.now = harness.now.plus(Micros::from_secs(80_000));
    harness.all_beat(4);
    harness.follow("wednesday", &[("daily", "/r1", 2)]);
    harness.now = harness.now.plus(Micros::from_secs(10_000));
    assert_eq!(harness.roll_back(false), Ok(None), "the one before has expired");
}

#[test]
fn rolling_back_passes_over_the_expired_and_never_comes_to_the_same_plan() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    let before = |harness: &mut EngineHarness| -> Vec<String> {
        let views = harness.engine.plans(harness.now);
        views.iter().filter(|view| view.before).map(|view| view.kept.name.to_string()).collect()
    };
    for first in [&["long"][..], &["other", "long"]] {
        harness.roll_back(true).unwrap_or_default();
        for name in first {
            let _ = harness.keep(name, plan(harness.now, &[("daily", "/r0", 2)]));
            harness.activate(name, true).unwrap();
        }
        let short = plan(harness.now, &[("daily", "/r1", 2)]);
        let soon = Plan { until: harness.now.plus(Micros::from_secs(60)), ..short };
        harness.keep(&format!("short{}", first.len()), soon).unwrap();
        harness.activate(&format!("short{}", first.len()), true).unwrap();
        assert_eq!(before(&mut harness), ["long"]);
        harness.pass(Micros::from_secs(61));
        harness.all_beat(4);
        harness.activate("long", false).unwrap();
        let to: Vec<String> = first[..first.len() - 1].iter().map(ToString::to_string).collect();
        assert_eq!(before(&mut harness), to, "which the list names");
        assert_eq!(harness.roll_back(false), Ok(to.first().cloned()), "{first:?}");
    }
}

#[test]
fn the_plan_that_a_rollback_goes_to_makes_no_room_for_others() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    let mut settings = harness.settings.clone();
    settings.plans.kept_max = 3;
    harness.engine.reload(settings, harness.now);
    let own = |harness: &mut EngineHarness, name: &str, seconds: u64| {
        let planned = plan(harness.now, &[("daily", "/r0", 2)]);
        let until = harness.now.plus(Micros::from_secs(seconds));
        harness.keep_of(name, Plan { until, ..planned }, SCHEDULE).unwrap();
    };
    own(&mut harness, "before", 80_000);
    harness.activate("before", true).unwrap();
    own(&mut harness, "short", 60);
    harness.activate("short", true).unwrap();
    harness.pass(Micros::from_secs(61));
    harness.all_beat(4);
    own(&mut harness, "now", 80_000);
    harness.activate("now", true).unwrap();
    own(&mut harness, "next", 80_000);
    let names: Vec<String> = harness.engine.plans(harness.now).iter().map(|view| view.kept.name.to_string()).collect();
    assert_eq!(names, ["before", "next", "now"], "the expired one went");
    assert_eq!(harness.roll_back(false), Ok(Some("before".to_owned())));
}

#[test]
fn while_nobody_is_to_follow_plans_all_is_as_without_one() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    harness.follow("monday", &[("daily", "/r1", 2)]);
    let follow = |harness: &mut EngineHarness, follow: bool| {
        let mut settings = harness.settings.clone();
        settings.plans.follow = follow;
        harness.engine.reload(settings, harness.now);
        harness.publish();
    };
    follow(&mut harness, false);
    assert_eq!(harness.wait(&packer(), run(1, Some("daily"), 2)).decision.plan, None);
    assert_eq!(harness.data("/logs", Some("daily")).unwrap().reason.as_str(), "no_plan");
    assert_eq!(
        harness.engine.plan_in_force(harness.now).map(|view| view.kept.name.to_string()).as_deref(),
        Some("monday")
    );
    follow(&mut harness, true);
    let answer = harness.wait(&packer(), run(2, Some("daily"), 2));
    assert_eq!(&*note(&answer).plan, "monday");
}
