//! Plans in the engine: kept, put in force, rolled back, followed, left, and all of it after a restart.

use super::dispatching::wired;
use super::harness::{EngineHarness, hosts};
use crate::plans::replicas::{ReplicaPlan, ReplicaRequest, Why, replicas};
use crate::plans::{GeneratedPlan, PlanNote, PlanRequest, SCHEDULE, make, validate_plan};
use crate::prediction::{PredictionSettings, Run};
use crate::testing::{attempt, request};
use crate::{Answer, CommitOutcome, Counter, Effect, LearnedRun, Refusal, TaskWhat};
use hintd_model::cluster::{Change, HintRequest};
use hintd_model::units::{BitsPerSec, Bytes, Micros, RackPath, Timestamp};
use hintd_policy::jobpacker::JobPacker;
use hintd_policy::plan::{
    Assumptions, Deviation, JobName, Objective, PLAN_FORMAT, Plan, PlannedJob, PlannedRack, PlannedStage, Slice, Stage,
    Step,
};
use hintd_policy::{Policy, registry};
use std::sync::Arc;

const TASK: Micros = Micros::from_secs(10);

/// One run of each key, expected now: so many maps of 10 s in that rack, all at once.
pub(super) fn plan(now: Timestamp, jobs: &[(&str, &str, u32)]) -> Plan {
    let mut racks: Vec<PlannedRack> = Vec::new();
    let mut planned = Vec::new();
    for (key, rack, tasks) in jobs {
        let job = JobName { key: (*key).into(), run: 0 };
        let step = Step { job: job.clone(), stage: Stage::Map };
        let rack = RackPath::from(*rack);
        match racks.iter_mut().find(|row| row.rack == rack) {
            Some(row) => {
                (row.containers, row.sequence) = (row.containers + tasks, [&row.sequence[..], &[step]].concat())
            }
            None => racks.push(PlannedRack { rack: rack.clone(), containers: *tasks, sequence: vec![step] }),
        }
        let slice = Slice { rack, start: now, end: now.plus(TASK), tasks: *tasks, containers: *tasks };
        let maps = PlannedStage { tasks: *tasks, task_time: TASK, slices: vec![slice] };
        let reduces = PlannedStage { tasks: 0, task_time: Micros(0), slices: vec![] };
        let (shuffle, shuffle_time, end) = (Bytes(0), Micros(0), now.plus(TASK));
        let (arrival, start, heavy, forecast, input_paths) = (now, now, false, None, Vec::new());
        let times =
            PlannedJob { job, arrival, heavy, shuffle, shuffle_time, start, end, maps, reduces, input_paths, forecast };
        planned.push(times);
    }
    racks.sort_by(|a, b| a.rack.cmp(&b.rack));
    let assumptions = Assumptions {
        uplink: BitsPerSec(1_000_000_000),
        circuit: None,
        elephant: Bytes(1),
        over_provisioning: 0.0,
        sub_batches: 1,
        shuffle_term: "by_width".into(),
        seed: 1,
        prediction_error: None,
    };
    Plan {
        cut_short: false,
        format: PLAN_FORMAT.into(),
        policy: "jobpacker".into(),
        objective: Objective::Online,
        made: now,
        from: now,
        until: now.plus(Micros::from_secs(86_400)),
        assumptions,
        racks,
        jobs: planned,
    }
}

pub(super) fn packer() -> Arc<dyn Policy> {
    registry::with_defaults("jobpacker").unwrap().into()
}

/// A run of the key with so many maps, of application `number`.
pub(super) fn run(number: u32, key: Option<&str>, maps: u32) -> HintRequest {
    let mut asked = request(&format!("r{number}"), &[("map", maps)]);
    asked.attempt = attempt(number, 1);
    asked.recurring_key = key.map(Arc::from);
    asked
}

impl EngineHarness {
    pub(super) fn keep(&mut self, name: &str, plan: Plan) -> Result<(), Refusal> {
        self.keep_of(name, plan, "operator")
    }

    pub(super) fn keep_of(&mut self, name: &str, plan: Plan, origin: &str) -> Result<(), Refusal> {
        let examined = validate_plan(name, Arc::new(plan), self.engine.current_snapshot(), self.now)?;
        let kept = self.engine.keep_plan(name, examined, (false, origin), self.now);
        self.drain();
        kept
    }

    pub(super) fn activate(&mut self, name: &str, replace: bool) -> Result<(), Refusal> {
        let done = self.engine.activate_plan(name, replace, self.now);
        self.drain();
        self.publish();
        done
    }

    /// A plan that is kept and in force.
    pub(super) fn follow(&mut self, name: &str, jobs: &[(&str, &str, u32)]) {
        self.keep(name, plan(self.now, jobs)).unwrap();
        self.activate(name, true).unwrap();
    }

    pub(super) fn roll_back(&mut self, to_none: bool) -> Result<Option<String>, Refusal> {
        let rolled = self.engine.roll_back_plan(to_none, self.now);
        self.drain();
        self.publish();
        rolled.map(|to| to.map(|to| to.to_string()))
    }

    pub(super) fn in_force(&self) -> Option<String> {
        self.engine.generation().plan.as_ref().map(|plan| plan.name.to_string())
    }

    pub(super) fn all_beat(&mut self, nodes: usize) {
        for at in 0..nodes {
            self.beat(&format!("h{at}"), 0, Some(&[]));
        }
        self.publish();
    }

    pub(super) fn data(&self, path: &str, key: Option<&str>) -> Result<ReplicaPlan, Refusal> {
        let policy = packer();
        let (path, reader) = (path.into(), key.map(Arc::from));
        let ask = ReplicaRequest { path, reader, replication: 3, blocks: 4, seed: None };
        replicas(&self.engine.generation(), &ask, |name| (name == "jobpacker").then_some(&policy), self.now)
    }
}

pub(super) fn note(answer: &Answer) -> &PlanNote {
    answer.decision.plan.as_ref().expect("a plan is in force")
}

fn why(refused: Result<(), Refusal>) -> String {
    refused.unwrap_err().to_string()
}

#[test]
fn hints_of_a_planned_job_go_to_its_racks_and_say_so() {
    for (rack, on) in [("/r0", ["h0", "h1"]), ("/r2", ["h4", "h5"])] {
        let mut harness = EngineHarness::with_nodes(6, 2048);
        harness.follow("monday", &[("daily", rack, 4)]);
        let answer = harness.wait(&packer(), run(1, Some("daily"), 4));
        let mut hinted: Vec<String> = hosts(&answer).iter().map(ToString::to_string).collect();
        hinted.sort();
        assert_eq!(hinted, on, "{:?}", answer.decision);
        let note = note(&answer);
        assert_eq!((&*note.plan, note.as_planned, note.elsewhere), ("monday", 4, 0));
        assert_eq!((note.job.as_ref().unwrap().to_string(), note.deviations.len()), ("daily#0".to_owned(), 0));
    }
}

#[test]
fn without_a_plan_or_under_a_policy_that_follows_none_nothing_is_said_of_one() {
    let mut harness = EngineHarness::with_nodes(4, 2048);
    assert_eq!(harness.wait(&packer(), run(1, Some("daily"), 1)).decision.plan, None);
    harness.follow("monday", &[("daily", "/r1", 2)]);
    let fair: Arc<dyn Policy> = registry::with_defaults("fair").unwrap().into();
    assert_eq!(harness.wait(&fair, run(2, Some("daily"), 1)).decision.plan, None);
}

#[test]
fn what_waits_when_a_plan_comes_into_force_follows_it_and_so_do_pushed_hints() {
    let mut harness = EngineHarness::with_nodes(4, 1024);
    for host in ["h0", "h1", "h2", "h3"] {
        harness.beat(host, 1024, Some(&[]));
    }
    harness.publish();
    harness.wait(&packer(), run(1, Some("daily"), 1));
    harness.follow("monday", &[("daily", "/r1", 1)]);
    assert!(harness.offer("h0").is_empty(), "it waits for its rack");
    let pushed = harness.offer("h2");
    assert_eq!(hosts(&pushed[0]), ["h2".into()]);
    assert_eq!((note(&pushed[0]).as_planned, harness.waiting()), (1, 0));
}

#[test]
fn where_reality_leaves_the_plan_hints_go_as_without_one_and_say_why() {
    let deviations = |harness: &mut EngineHarness, asked: HintRequest| {
        let answer = harness.wait(&packer(), asked);
        assert_eq!(harness.waiting(), 0, "nothing is held back");
        let note = note(&answer).clone();
        (note.job.is_some(), note.deviations)
    };
    let mut harness = EngineHarness::with_nodes(6, 8192);
    harness.follow("monday", &[("daily", "/r1", 2), ("hourly", "/r2", 2)]);
    assert_eq!(deviations(&mut harness, run(1, None, 2)), (false, vec![Deviation::NoKey]));
    assert_eq!(deviations(&mut harness, run(2, Some("other"), 2)), (false, vec![Deviation::NotPlanned]));
    assert_eq!(deviations(&mut harness, run(3, Some("daily"), 2)), (true, vec![]));
    assert_eq!(
        deviations(&mut harness, run(4, Some("daily"), 2)),
        (false, vec![Deviation::PlaceTaken]),
        "it comes twice"
    );
    harness.now = harness.now.plus(Micros::from_secs(600));
    harness.all_beat(6);
    let late = deviations(&mut harness, run(5, Some("hourly"), 6));
    assert_eq!(late, (true, vec![Deviation::OffTime, Deviation::MapCount]), "three times as large, and late");
    harness.follow("tuesday", &[("weekly", "/r1", 2)]);
    harness.now = harness.now.plus(Micros::from_secs(7_200));
    harness.all_beat(6);
    assert_eq!(deviations(&mut harness, run(6, Some("weekly"), 2)), (false, vec![Deviation::OutOfTime]));
    let followed = harness.engine.plans(harness.now);
    let counts = followed.iter().find_map(|view| view.followed.first()).unwrap().1;
    assert_eq!((counts.missed, counts.unplanned, counts.followed), (1, 5, 0), "anew, with runs that are here");
}

#[test]
fn a_dead_rack_degrades_what_it_was_to_run_and_is_followed_again_when_it_is_back() {
    let mut harness = EngineHarness::with_nodes(4, 2048);
    harness.follow("monday", &[("daily", "/r1", 2), ("hourly", "/r1", 2)]);
    for host in ["h2", "h3"] {
        harness.change(Change::Gone(host.into()));
    }
    harness.pass(Micros::from_secs(2));
    harness.all_beat(2);
    let answer = harness.wait(&packer(), run(1, Some("daily"), 2));
    assert_eq!(harness.waiting(), 0, "{:?}", answer.decision.pending);
    assert_eq!((note(&answer).elsewhere, &note(&answer).deviations[..]), (2, &[Deviation::MapRackGone][..]));
    for host in ["h2", "h3"] {
        harness.register(host, "/r1", 2048);
    }
    harness.all_beat(4);
    harness.pass(Micros::from_secs(2));
    harness.all_beat(4);
    let answer = harness.wait(&packer(), run(2, Some("hourly"), 2));
    assert_eq!((note(&answer).as_planned, note(&answer).deviations.len()), (2, 0), "{:?}", answer.decision);
}

#[test]
fn planned_tasks_wait_for_their_racks_longer_than_max_wait_but_not_for_ever() {
    let mut harness = EngineHarness::with_nodes(4, 1024);
    let busy = |harness: &mut EngineHarness| {
        for (host, used) in [("h0", 0), ("h1", 0), ("h2", 1024), ("h3", 1024)] {
            harness.beat(host, used, Some(&[]));
        }
        harness.publish();
    };
    busy(&mut harness);
    harness.follow("monday", &[("daily", "/r1", 2)]);
    let answer = harness.wait(&packer(), run(1, Some("daily"), 2));
    assert_eq!((answer.leases().count(), harness.waiting()), (0, 2), "its rack is full, others are not");
    // Ten seconds of the plan and sixty of patience; max_wait is five.
    for second in 0..69 {
        busy(&mut harness);
        harness.pass(Micros::from_secs(1));
        assert!(harness.late().is_empty(), "after {second} s");
    }
    let late = (0..7).find_map(|_| {
        busy(&mut harness);
        harness.pass(Micros::from_secs(1));
        Some(harness.late()).filter(|late| !late.is_empty())
    });
    let late = late.expect("a plan is no reservation");
    let CommitOutcome::Committed(placed) = harness.place_late(&late[0]) else { panic!("there is room") };
    let said = note(&placed);
    assert_eq!((said.elsewhere, said.as_planned, said.deviations.last()), (2, 0, Some(&Deviation::WaitedTooLong)));
}

#[test]
fn what_is_in_force_and_what_was_before_it_outlive_a_restart() {
    let mut harness = EngineHarness::with_nodes(4, 2048);
    harness.follow("monday", &[("daily", "/r0", 2)]);
    harness.follow("tuesday", &[("daily", "/r1", 2)]);
    harness.restart();
    assert_eq!(harness.in_force().as_deref(), Some("tuesday"), "before any node is back");
    harness.register("h0", "/r0", 2048);
    harness.beat("h0", 0, Some(&[]));
    harness.publish();
    let early = harness.wait(&packer(), run(1, Some("other"), 1));
    assert_eq!(early.leases().count(), 1, "a dispatcher starts while the plan's racks are not there yet");
    for at in 1..4 {
        harness.register(&format!("h{at}"), &format!("/r{}", at / 2), 2048);
    }
    harness.all_beat(4);
    harness.pass(Micros::from_secs(2));
    harness.all_beat(4);
    let answer = harness.wait(&packer(), run(2, Some("daily"), 2));
    assert_eq!((note(&answer).as_planned, &*note(&answer).plan), (2, "tuesday"), "{:?}", answer.decision);
    assert_eq!(harness.roll_back(false), Ok(Some("monday".to_owned())));
    harness.restart();
    assert_eq!(harness.in_force().as_deref(), Some("monday"));
    let plans = harness.engine.plans(harness.now);
    let in_force: Vec<_> = plans.iter().map(|view| (&*view.kept.name, view.in_force_since.is_some())).collect();
    assert_eq!(in_force, [("monday", true), ("tuesday", false)]);
    assert_eq!(*plans[0].kept.plan, plan(super::harness::START, &[("daily", "/r0", 2)]), "as it was submitted");
}

#[test]
fn what_can_not_be_in_force_is_refused_in_words_and_changes_nothing() {
    let mut harness = EngineHarness::with_nodes(4, 2048);
    let good = |harness: &EngineHarness| plan(harness.now, &[("daily", "/r0", 2)]);
    let unknown = plan(harness.now, &[("daily", "/r9", 2)]);
    assert_eq!(why(harness.keep("p", unknown)), "plan \"p\": rack /r9: no such rack in the cluster, as it has no node");
    let mut strange = good(&harness);
    strange.policy = "packer".into();
    assert!(
        why(harness.keep("p", strange)).contains("policy is \"packer\", which is none that plans (corral, jobpacker)")
    );
    let mut endless = good(&harness);
    endless.until = Timestamp(1 << 63);
    assert!(why(harness.keep("p", endless)).contains("days after from: plans are of at most 366"));
    let mut broken = good(&harness);
    broken.jobs[0].maps.slices[0].tasks = 5;
    let said = why(harness.keep("p", broken));
    assert!(said.contains("map tasks is 2, its slices run 5"), "{said}");
    let mut old = good(&harness);
    old.until = harness.now;
    assert!(why(harness.keep("p", old)).contains("has passed"));
    let named = why(harness.keep("no/slash", good(&harness)));
    assert!(named.starts_with("name: \"no/slash\" has other letters"), "{named}");
    harness.keep("monday", good(&harness)).unwrap();
    let unheard = harness.activate("mondy", false).unwrap_err();
    assert_eq!(unheard.to_string(), "plan \"mondy\" is unknown; did you mean \"monday\"?");
    harness.activate("monday", false).unwrap();
    harness.activate("monday", false).expect("it is in force already");
    harness.keep("tuesday", plan(harness.now, &[("daily", "/r1", 2)])).unwrap();
    let two = why(harness.activate("tuesday", false));
    assert_eq!(two, "plan \"tuesday\": plan \"monday\" is in force for another 86400 s; replace it deliberately");
    let other = plan(harness.now, &[("daily", "/r1", 1)]);
    assert!(why(harness.keep("monday", other.clone())).contains("is in force; submit the new one under another name"));
    assert!(why(harness.keep("tuesday", other)).contains("another plan of that name is kept"));
    assert_eq!(
        harness.engine.remove_plan("monday").unwrap_err().to_string(),
        "plan \"monday\": is in force; roll it back first"
    );
    harness.change(Change::Gone("h2".into()));
    harness.change(Change::Gone("h3".into()));
    harness.publish();
    assert!(
        why(harness.activate("tuesday", true)).contains("names 1 racks without a usable node in the cluster now: /r1")
    );
    let unusable = why(harness.keep("p", plan(harness.now, &[("daily", "/r1", 2)])));
    assert_eq!(unusable, "plan \"p\": rack /r1: it is there, but no usable node of it has room for a container now");
    assert_eq!(harness.in_force().as_deref(), Some("monday"));
    harness.now = harness.now.plus(Micros::from_secs(86_401));
    assert!(why(harness.activate("tuesday", true)).contains("has expired: its horizon ended"));
    let empty = EngineHarness::new();
    let early = validate_plan("p", Arc::new(good(&harness)), empty.engine.current_snapshot(), empty.now).unwrap_err();
    assert!(matches!(early, Refusal::MissingFeed { feed: "heartbeats", .. }), "{early}");
}

#[test]
fn a_plan_for_more_containers_than_there_are_is_kept_and_its_times_are_doubted() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    harness.keep("p", plan(harness.now, &[("daily", "/r0", 9)])).unwrap();
    let warnings = &harness.engine.plan("p").unwrap().warnings;
    assert_eq!(warnings[..], ["rack /r0: containers is 9, the cluster has room for 4".to_owned()]);
}

#[test]
fn kept_plans_are_bounded_and_only_expired_ones_and_the_daemons_own_make_room() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    harness.settings.plans.kept_max = 2;
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.keep("a", plan(harness.now, &[("daily", "/r0", 1)])).unwrap();
    harness.now = harness.now.plus(Micros::from_secs(10));
    harness.keep("b", plan(harness.now, &[("daily", "/r0", 2)])).unwrap();
    let full = why(harness.keep("c", plan(harness.now, &[("daily", "/r0", 3)])));
    assert!(full.contains("2 plans are kept"), "{full}");
    harness.now = harness.now.plus(Micros::from_secs(86_395));
    harness.all_beat(2);
    harness.keep("c", plan(harness.now, &[("daily", "/r0", 3)])).unwrap();
    let names: Vec<String> = harness.engine.plans(harness.now).iter().map(|view| view.kept.name.to_string()).collect();
    assert_eq!(names, ["b", "c"], "the oldest that had expired is gone");
    harness.restart();
    assert_eq!(harness.engine.plans(harness.now).len(), 2, "its row, too");
    harness.register("h0", "/r0", 2048);
    harness.beat("h0", 0, Some(&[]));
    harness.publish();
    harness.activate("c", false).unwrap();
    harness.now = harness.now.plus(Micros::from_secs(10)); // by now "b" has expired
    for (at, name) in (0_u64..).zip(["s1", "s2", "s3"]) {
        harness.now = harness.now.plus(Micros::from_secs(at));
        let own = validate_plan(
            name,
            Arc::new(plan(harness.now, &[("daily", "/r0", 1)])),
            harness.engine.current_snapshot(),
            harness.now,
        );
        harness.engine.keep_plan(name, own.unwrap(), (false, SCHEDULE), harness.now).unwrap();
        harness.drain();
    }
    let names: Vec<String> = harness.engine.plans(harness.now).iter().map(|view| view.kept.name.to_string()).collect();
    assert_eq!(names, ["c", "s3"], "the one in force stays");
}

#[test]
fn a_plan_that_is_refused_for_room_costs_no_other_its_place() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    for (name, maps) in [("a", 1), ("b", 2), ("c", 3)] {
        harness.keep(name, plan(harness.now, &[("daily", "/r0", maps)])).unwrap();
        harness.now = harness.now.plus(Micros::from_secs(10));
    }
    harness.now = harness.now.plus(Micros::from_secs(86_375)); // of the three "a" has expired
    harness.all_beat(2);
    harness.settings.plans.kept_max = 2;
    harness.engine.reload(harness.settings.clone(), harness.now);
    let full = why(harness.keep("d", plan(harness.now, &[("daily", "/r0", 4)])));
    assert!(full.contains("3 plans are kept, and plan.kept is 2"), "{full}");
    let names = |harness: &mut EngineHarness| -> Vec<String> {
        harness.engine.plans(harness.now).iter().map(|view| view.kept.name.to_string()).collect()
    };
    assert_eq!(names(&mut harness), ["a", "b", "c"]);
}

#[test]
fn data_of_a_planned_job_is_advised_into_the_racks_of_its_maps() {
    let mut harness = EngineHarness::with_nodes(6, 2048);
    let asked = |path: &str, number| {
        let mut asked = run(number, Some("daily"), 1);
        asked.input_paths = vec![path.into()];
        asked
    };
    harness.wait(&packer(), asked("hdfs://nn:8020/logs/2026/11/21", 1));
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    harness.publish();
    assert_eq!(harness.data("/logs/2026/11/22", None).unwrap().reason, Why::NoPlan);
    let mut monday = plan(harness.now, &[("daily", "/r2", 2), ("etl </clicks/#", "/r1", 2), ("ads", "/r0", 2)]);
    monday.jobs[2].input_paths = vec!["/bids/#".into(), "/ads".into()];
    harness.keep("monday", monday).unwrap();
    harness.activate("monday", true).unwrap();
    for (path, reader, rack) in [
        ("/logs/2026/11/22", "daily", "/r2"),
        ("/logs/2026/11/22/part-00017", "daily", "/r2"),
        ("/clicks/2026-11-22", "etl </clicks/#", "/r1"),
        ("/ads/today", "ads", "/r0"),
        ("hdfs://nn:8020/bids/2026/11/22/part-3", "ads", "/r0"),
    ] {
        let found = harness.data(path, None).unwrap();
        assert_eq!((found.reason, found.reader.as_deref()), (Why::Planned, Some(reader)), "{path}");
        assert_eq!(
            found.racks.iter().map(|(rack, hosts)| (rack.to_string(), hosts.len())).collect::<Vec<_>>(),
            [(rack.to_owned(), 2)]
        );
        assert_eq!(found.blocks.len(), 4);
        for block in &found.blocks {
            let placed: Vec<_> = block.iter().map(|replica| replica.place.clone().unwrap()).collect();
            assert_eq!((placed.len(), placed[0].0.to_string()), (3, rack.to_owned()));
            assert!(placed[1].0 == placed[2].0 && placed[1].0 != placed[0].0, "two racks, as HDFS: {placed:?}");
            assert_ne!(placed[1].1, placed[2].1, "on two hosts");
        }
        assert_eq!(harness.data(path, None).unwrap(), found, "asked again, the same");
    }
    assert_eq!(
        harness.data("/logs2/2026", None).unwrap().reason,
        Why::NotPlanned,
        "a name that begins alike is another"
    );
    assert_eq!(harness.data("/tmp/x", Some("daily")).unwrap().reason, Why::Planned);
    let unknown = harness.data("/tmp/x", Some("dayly")).unwrap_err().to_string();
    assert_eq!(unknown, "planned job \"dayly\" is unknown; did you mean \"daily\"?");
    for host in ["h4", "h5"] {
        harness.change(Change::Gone(host.into()));
    }
    harness.publish();
    let gone = harness.data("/logs/2026/11/22", None).unwrap();
    assert_eq!((gone.reason, gone.blocks[0][0].place.is_none()), (Why::RacksGone, true));
}

#[test]
fn a_change_of_parameters_and_an_undone_answer_leave_the_plan_followed() {
    let mut harness = EngineHarness::with_nodes(4, 8192);
    harness.follow("monday", &[("daily", "/r1", 2), ("hourly", "/r1", 2)]);
    let answer = harness.wait(&packer(), run(1, Some("daily"), 2));
    harness.engine.undo(answer.decision.id, harness.now);
    harness.drain();
    let again = harness.wait(&packer(), run(1, Some("daily"), 2));
    assert_eq!((note(&again).as_planned, note(&again).deviations.len()), (2, 0), "its place is free again");
    let table = toml::de::DeTable::parse("heavy_input_bytes = 7\n").unwrap();
    let other: Arc<dyn Policy> = registry::build::<JobPacker>(table).unwrap().into();
    harness.engine.redispatch(&|_| Some(Arc::clone(&other)), harness.now);
    let answer = harness.wait(&other, run(2, Some("hourly"), 2));
    assert_eq!(note(&answer).as_planned, 2);
    let out = std::mem::take(&mut harness.out);
    assert!(!out.iter().any(|effect| matches!(effect, Effect::Late { .. })));
}

/// One run of the key: 4 maps that write 10 bytes for each second, 2 reduces that take twice as long.
fn finish(harness: &mut EngineHarness, number: u32, key: &str, map_s: u64, failed: bool) {
    let mut asked = request(&format!("n{number}"), &[("map", 4), ("reduce", 2)]);
    (asked.attempt, asked.recurring_key) = (attempt(number, 1), Some(key.into()));
    harness.ask(asked);
    harness.now = harness.now.plus(Micros::from_secs(60));
    for (group, seconds, tasks) in [("map", map_s, 4), ("reduce", 2 * map_s, 2)] {
        for _ in 0..tasks {
            harness.finished(attempt(number, 1), group, seconds, 10 * map_s);
        }
    }
    harness.finished(attempt(number, 1), "map", map_s, 10 * map_s); // told twice, by both ways
    harness.event(attempt(number, 1), "", TaskWhat::Done { failed });
}

/// A cluster on which `daily` ran at the same time on each of some days, `wild` as well with times of its own, and `rare`
/// once; the last moment is a day after the last run, half an hour before its time.
fn weeks(days: u32) -> EngineHarness {
    let mut harness = wired();
    let first = harness.now;
    for day in 0..days {
        harness.now = first.plus(Micros::from_secs(u64::from(day) * 86_400));
        finish(&mut harness, 10 * day + 1, "daily", 10, false);
        finish(&mut harness, 10 * day + 2, "wild", [1, 5_000, 20, 900, 2][day as usize % 5], false);
        finish(&mut harness, 10 * day + 3, "broken", 10, true);
    }
    finish(&mut harness, 9, "rare", 10, false);
    harness.now = first.plus(Micros::from_secs(u64::from(days) * 86_400 - 1_800));
    let hosts: Vec<String> = harness.engine.current_snapshot().statics.host.iter().map(ToString::to_string).collect();
    hosts.iter().for_each(|host| harness.beat(host, 0, Some(&[])));
    harness.publish();
    harness
}

/// For the next day.
fn ask(harness: &EngineHarness) -> PlanRequest {
    PlanRequest {
        from: harness.now,
        until: harness.now.plus(Micros::from_secs(86_400)),
        objective: Objective::Online,
        unit: None,
        uplink: None,
        prediction: PredictionSettings::default(),
        seed: 1,
    }
}

fn expected(harness: &EngineHarness) -> Result<GeneratedPlan, Refusal> {
    make(&harness.engine.runs(), harness.engine.current_snapshot(), &packer(), &ask(harness), &mut || false)
}

#[test]
fn what_ran_here_day_by_day_is_planned_for_the_next_day_and_the_rest_is_not() {
    let harness = weeks(6);
    let made = expected(&harness).unwrap();
    assert_eq!(made.plan.jobs.len(), 1, "{:?}", made.plan.jobs);
    let job = &made.plan.jobs[0];
    assert_eq!((&*job.job.key, job.maps.tasks, job.maps.task_time), ("daily", 4, Micros::from_secs(10)));
    assert_eq!((job.reduces.tasks, job.reduces.task_time), (2, Micros::from_secs(20)));
    assert_eq!(job.shuffle, Bytes(400), "what its maps wrote");
    assert_eq!(job.arrival, harness.now.plus(Micros::from_secs(1_800)), "when it came on the days before");
    assert_eq!(
        crate::plans::recurrence_counts(&made.keys),
        [1, 1, 1],
        "recurring: daily, too few: rare, unsteady: wild; what failed is no run"
    );
    assert_eq!(made.plan.assumptions.prediction_error, Some(0.0));
    validate_plan("p", Arc::new(made.plan), harness.engine.current_snapshot(), harness.now)
        .expect("the checker agrees");
}

#[test]
fn finished_runs_outlive_a_restart_and_one_under_way_is_noted_all_the_same() {
    let mut harness = weeks(6);
    let before = expected(&harness).unwrap().plan;
    let runs = harness.engine.runs();
    harness.restart();
    assert_eq!(harness.engine.runs(), runs);
    assert_eq!(before.jobs.len(), 1);
    let mut asked = request("u", &[("map", 4), ("reduce", 2)]);
    (asked.attempt, asked.recurring_key) = (attempt(99, 1), Some("daily".into()));
    let mut harness = weeks(6);
    harness.ask(asked);
    harness.restart();
    for seconds in [10, 30] {
        harness.finished(attempt(99, 1), "map", seconds, 50);
    }
    harness.finished(attempt(99, 1), "reduce", 40, 50);
    harness.event(attempt(99, 1), "", TaskWhat::Done { failed: false });
    let runs = harness.engine.runs();
    let last = runs.of("daily").last().unwrap();
    assert_eq!((runs.of("daily").len(), last.maps), (7, (4, Micros::from_secs(20))), "by the tasks that were heard of");
    assert_eq!(last.reduces, (2, Micros::from_secs(40)));
    assert_eq!(harness.counts.get(&Counter::RunsLeftOut), None);
}

#[test]
fn a_run_that_a_start_cut_in_two_is_not_noted_where_less_than_half_of_a_stage_was_heard_of() {
    for (maps, reduces, noted) in [(4, 0, false), (1, 2, false), (2, 1, true)] {
        let mut harness = wired();
        let mut asked = request("u", &[("map", 4), ("reduce", 2)]);
        (asked.attempt, asked.recurring_key) = (attempt(99, 1), Some("daily".into()));
        harness.ask(asked);
        (0..3).for_each(|_| harness.finished(attempt(99, 1), "map", 10, 50));
        harness.restart();
        (0..maps).for_each(|_| harness.finished(attempt(99, 1), "map", 10, 50));
        (0..reduces).for_each(|_| harness.finished(attempt(99, 1), "reduce", 10, 50));
        harness.event(attempt(99, 1), "", TaskWhat::Done { failed: false });
        assert_eq!(harness.engine.runs().of("daily").len(), usize::from(noted), "{maps} maps, {reduces} reduces");
        assert_eq!(harness.counts.contains_key(&Counter::RunsLeftOut), !noted);
        let told = Effect::RunLeftOut { key: "daily".into(), application: attempt(99, 1).application };
        assert_eq!(harness.out.iter().filter(|effect| **effect == told).count(), usize::from(!noted));
    }
}

const ETL: &str = "mapreduce:ann:etl #";

/// A run of an unchanged job on that day, as a history server tells it.
fn told(number: u32, day: u64) -> LearnedRun {
    let submitted = Timestamp(1_700_000_000_000_000 + day * 86_400_000_000);
    let (maps, reduces) = ((4, Micros::from_secs(10)), (2, Micros::from_secs(20)));
    let application = Some(attempt(number, 1).application);
    let (input, shuffle) = (Bytes(900), Bytes(400));
    let whole = Run { submitted, maps, reduces, input, shuffle, application, counted: true, ran_on: None };
    let finished = submitted.plus(Micros::from_secs(60));
    LearnedRun { finished, groups: vec![], edges: vec![], whole: Some(whole) }
}

fn tell(harness: &mut EngineHarness, run: &LearnedRun) {
    harness.engine.learnt(&ETL.into(), run, harness.now);
    harness.drain();
}

#[test]
fn runs_that_a_history_server_tells_of_are_planned_and_each_counts_once() {
    let mut harness = wired();
    let all: Vec<LearnedRun> = (0..6).map(|day| told(100 + day, u64::from(day))).collect();
    all.iter().for_each(|run| tell(&mut harness, run));
    let runs = harness.engine.runs();
    assert_eq!(runs.of(ETL).len(), 6);
    harness.restart();
    all.iter().rev().for_each(|run| tell(&mut harness, run));
    assert_eq!(harness.engine.runs(), runs, "a start asks for all of them again");
    let mut other_time = all[3].clone();
    other_time.whole.as_mut().unwrap().submitted.0 += 7_000_000;
    tell(&mut harness, &other_time);
    assert_eq!(harness.engine.runs(), runs, "it is the same application");
    let hosts = weeks(1);
    let ask =
        PlanRequest { from: all[5].finished, until: all[5].finished.plus(Micros::from_secs(86_400)), ..ask(&harness) };
    let made = make(&harness.engine.runs(), hosts.engine.current_snapshot(), &packer(), &ask, &mut || false).unwrap();
    let job = &made.plan.jobs[0];
    assert_eq!((made.plan.jobs.len(), &*job.job.key, job.maps.tasks), (1, ETL, 4));
    assert_eq!((job.maps.task_time, job.reduces.task_time), (Micros::from_secs(10), Micros::from_secs(20)));
}

#[test]
fn a_run_that_told_of_itself_is_not_noted_again_by_a_history_server_whoever_is_first() {
    let mut harness = wired();
    finish(&mut harness, 50, "daily", 10, false);
    tell(&mut harness, &told(50, 1));
    assert_eq!((harness.engine.runs().of("daily").len(), harness.engine.runs().of(ETL).len()), (1, 0));
    tell(&mut harness, &told(60, 2));
    assert_eq!(harness.engine.runs().of(ETL).len(), 1);
    finish(&mut harness, 60, "daily", 10, false);
    assert_eq!(
        (harness.engine.runs().of("daily").len(), harness.engine.runs().of(ETL).len()),
        (2, 0),
        "by the key it has"
    );
    let runs = harness.engine.runs();
    harness.restart();
    assert_eq!(harness.engine.runs(), runs, "its row went as well");
    tell(&mut harness, &told(60, 2));
    assert_eq!(harness.engine.runs(), runs, "and is remembered");
}

#[test]
fn with_too_few_runs_or_no_network_nothing_is_planned_and_it_is_said() {
    let said = expected(&weeks(2)).unwrap_err().to_string();
    assert!(said.contains("no run is expected: of 3 jobs with known runs 0 recur, 3 have too few runs"), "{said}");
    let harness = weeks(6);
    let bare = EngineHarness::with_nodes(4, 2048);
    let ask = ask(&harness);
    let unwired =
        make(&harness.engine.runs(), bare.engine.current_snapshot(), &packer(), &ask, &mut || false).unwrap_err();
    assert!(matches!(unwired, Refusal::MissingFeed { feed: "topology", .. }), "{unwired}");
    let uplink = BitsPerSec(7_000_000_000);
    let told = PlanRequest { uplink: Some(uplink), ..ask.clone() };
    let made = make(&harness.engine.runs(), bare.engine.current_snapshot(), &packer(), &told, &mut || false).unwrap();
    assert_eq!((made.plan.assumptions.uplink, made.plan.assumptions.circuit), (uplink, None), "as the operator said");
    let wired =
        make(&harness.engine.runs(), harness.engine.current_snapshot(), &packer(), &told, &mut || false).unwrap();
    assert_ne!(wired.plan.assumptions.uplink, uplink, "a network that is known counts");
    let fair: Arc<dyn Policy> = registry::with_defaults("fair").unwrap().into();
    let wrong = make(&harness.engine.runs(), harness.engine.current_snapshot(), &fair, &ask, &mut || false);
    let wrong = wrong.unwrap_err().to_string();
    assert_eq!(wrong, "policy: \"fair\" does not plan");
}
