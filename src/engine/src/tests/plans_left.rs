//! Plans that are left: rolled back, or followed by nobody.

use super::desk::Desk;
use super::plans::{note, packer, plan, run};
use crate::plans::SCHEDULE;
use hintd_model::units::Micros;
use hintd_policy::plan::Plan;

#[test]
fn rolling_back_goes_to_the_plan_before_or_to_none_and_hints_with_it() {
    let mut desk = Desk::with_nodes(4, 8192);
    assert_eq!(desk.roll_back(false).unwrap_err().to_string(), "plan: none is in force");
    desk.follow("monday", &[("daily", "/r0", 2)]);
    desk.follow("tuesday", &[("daily", "/r1", 2)]);
    assert_eq!(desk.roll_back(false), Ok(Some("monday".to_owned())));
    let answer = desk.wait(&packer(), run(1, Some("daily"), 2));
    assert_eq!((note(&answer).as_planned, &*note(&answer).plan), (2, "monday"));
    assert_eq!((desk.roll_back(false), desk.in_force()), (Ok(None), None));
    assert_eq!(desk.wait(&packer(), run(2, Some("daily"), 2)).decision.plan, None);
    desk.activate("monday", false).unwrap();
    desk.activate("tuesday", true).unwrap();
    assert_eq!((desk.roll_back(true), desk.in_force()), (Ok(None), None), "to none, whatever was before");
    desk.activate("monday", false).unwrap();
    desk.now = desk.now.plus(Micros::from_secs(80_000));
    desk.all_beat(4);
    desk.follow("wednesday", &[("daily", "/r1", 2)]);
    desk.now = desk.now.plus(Micros::from_secs(10_000));
    assert_eq!(desk.roll_back(false), Ok(None), "the one before has expired");
}

#[test]
fn rolling_back_passes_over_the_expired_and_never_comes_to_the_same_plan() {
    let mut desk = Desk::with_nodes(4, 8192);
    let before = |desk: &mut Desk| -> Vec<String> {
        let views = desk.engine.plans(desk.now);
        views.iter().filter(|view| view.before).map(|view| view.kept.name.to_string()).collect()
    };
    for first in [&["long"][..], &["other", "long"]] {
        desk.roll_back(true).unwrap_or_default();
        for name in first {
            let _ = desk.keep(name, plan(desk.now, &[("daily", "/r0", 2)]));
            desk.activate(name, true).unwrap();
        }
        let short = plan(desk.now, &[("daily", "/r1", 2)]);
        let soon = Plan { until: desk.now.plus(Micros::from_secs(60)), ..short };
        desk.keep(&format!("short{}", first.len()), soon).unwrap();
        desk.activate(&format!("short{}", first.len()), true).unwrap();
        assert_eq!(before(&mut desk), ["long"]);
        desk.pass(Micros::from_secs(61));
        desk.all_beat(4);
        desk.activate("long", false).unwrap();
        let to: Vec<String> = first[..first.len() - 1].iter().map(ToString::to_string).collect();
        assert_eq!(before(&mut desk), to, "which the list names");
        assert_eq!(desk.roll_back(false), Ok(to.first().cloned()), "{first:?}");
    }
}

#[test]
fn the_plan_that_a_rollback_goes_to_makes_no_room_for_others() {
    let mut desk = Desk::with_nodes(4, 8192);
    let mut settings = desk.settings.clone();
    settings.plans.kept_max = 3;
    desk.engine.reload(settings, desk.now);
    let own = |desk: &mut Desk, name: &str, seconds: u64| {
        let planned = plan(desk.now, &[("daily", "/r0", 2)]);
        let until = desk.now.plus(Micros::from_secs(seconds));
        desk.keep_of(name, Plan { until, ..planned }, SCHEDULE).unwrap();
    };
    own(&mut desk, "before", 80_000);
    desk.activate("before", true).unwrap();
    own(&mut desk, "short", 60);
    desk.activate("short", true).unwrap();
    desk.pass(Micros::from_secs(61));
    desk.all_beat(4);
    own(&mut desk, "now", 80_000);
    desk.activate("now", true).unwrap();
    own(&mut desk, "next", 80_000);
    let names: Vec<String> = desk.engine.plans(desk.now).iter().map(|view| view.kept.name.to_string()).collect();
    assert_eq!(names, ["before", "next", "now"], "the expired one went");
    assert_eq!(desk.roll_back(false), Ok(Some("before".to_owned())));
}

#[test]
fn while_nobody_is_to_follow_plans_all_is_as_without_one() {
    let mut desk = Desk::with_nodes(4, 8192);
    desk.follow("monday", &[("daily", "/r1", 2)]);
    let follow = |desk: &mut Desk, follow: bool| {
        let mut settings = desk.settings.clone();
        settings.plans.follow = follow;
        desk.engine.reload(settings, desk.now);
        desk.publish();
    };
    follow(&mut desk, false);
    assert_eq!(desk.wait(&packer(), run(1, Some("daily"), 2)).decision.plan, None);
    assert_eq!(desk.data("/logs", Some("daily")).unwrap().reason.as_str(), "no_plan");
    assert_eq!(desk.engine.plan_in_force(desk.now).map(|view| view.kept.name.to_string()).as_deref(), Some("monday"));
    follow(&mut desk, true);
    let answer = desk.wait(&packer(), run(2, Some("daily"), 2));
    assert_eq!(&*note(&answer).plan, "monday");
}
