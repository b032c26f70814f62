//! Plans and replays where they take long: every policy that plans, on clusters and with jobs that nobody sane has; and
//! decisions made again on networks where their searches were cut short. Counted in looks and in units of work, never in
//! time.

use super::super::harness::{EngineHarness, START};
use super::{LOOKS, STEPS, STOPS, WORK, Watched, cluster, networks, policies, shuffle, table_steps};
use crate::plans::{PlanRequest, make};
use crate::prediction::{PredictionSettings, Run, Runs};
use crate::records::{DecidedRequest, Probe, Record, Records, RequestOutcome};
use crate::{Mode, PlacerSettings, RecordSettings, Refusal, SelectedPolicy, propose};
use hintd_model::units::{BitsPerSec, Bytes, DecisionId, Micros, Timestamp};
use hintd_policy::plan::{
    Circuits, ExpectedJob, Fabric, Facts, NodeLinks, Objective, PlanError, PlanProblem, RackRoom, check,
};
use hintd_policy::{Budget, Policy, WORK_EVERY, registry};
use std::sync::Arc;

/// At which look recorded searches were stopped.
const LOOK: u64 = 8;
const GB: u64 = 1_000_000_000;
const DAY: Micros = Micros::from_secs(86_400);

/// Jobs that all come at once, with more tasks than there are containers, and shuffles that ride circuits at any widths.
fn problem(racks: u32, containers: u32, jobs: u32, objective: Objective) -> PlanProblem {
    let rack = |at: u32| RackRoom { rack: format!("/r{at:05}").into(), containers: 1 + (containers + at) % containers };
    let job = |at: u32| ExpectedJob {
        key: format!("j{at:05}").into(),
        run: 0,
        arrival: START,
        input: Bytes(GB << (at % 20)),
        maps: (1 + at * 7_919 % 20_000, Micros::from_millis(u64::from(at % 9))),
        reduces: (at * 31 % 3_000, Micros::from_secs(u64::from(at % 7))),
        shuffle: Bytes((1 << 40) << (at % 20)),
    };
    let circuits =
        Circuits { rate: BitsPerSec(100 * GB), elephant: Bytes(1 << 20), interval: Micros::from_millis(100) };
    PlanProblem {
        racks: (0..racks).map(rack).collect(),
        fabric: Fabric {
            uplink: BitsPerSec(10 * GB),
            circuits: Some(circuits),
            nodes: Some(NodeLinks { rate: BitsPerSec(GB), per_rack: 20 }),
        },
        jobs: (0..jobs).map(job).collect(),
        objective,
        made: START,
        from: START,
        until: START.plus(DAY),
        prediction_error: None,
        seed: 1,
    }
}

fn ugly_problems() -> Vec<(String, PlanProblem)> {
    let shapes = [(1, 1, 40), (3, 2, 2_000), (40, 20, 300), (300, 40, 60), (1_200, 4, 20)];
    let objectives = [Objective::Batch, Objective::Online];
    let all = shapes.into_iter().flat_map(|shape| objectives.map(|objective| (shape, objective)));
    let named = |((racks, containers, jobs), objective)| {
        let name = format!("{jobs} jobs on {racks} racks of {containers}, {objective:?}");
        (name, problem(racks, containers, jobs, objective))
    };
    all.map(named).collect()
}

#[test]
fn every_policy_that_plans_looks_at_its_probe_and_ends_soon_after_it() {
    let mut planners = 0;
    for (name, problem) in ugly_problems() {
        for policy in policies() {
            let Some(planner) = policy.as_plan() else { continue };
            planners += 1;
            for stop_at in STOPS {
                let what = format!("a plan by {} for {name}, stopped at look {stop_at}", policy.name());
                let steps = || 0;
                let mut watched = Watched::new(&steps, stop_at);
                let mut probe = || watched.look();
                let mut budget = Budget::new(0, &mut probe);
                let found = planner.plan(&problem, &mut budget);
                let (worked, longest) = (budget.worked(), budget.longest());
                assert!(longest <= WORK, "{what}: {longest} units of work between two looks");
                // Looks may be fewer: each is taken after so much work.
                let most = stop_at * (WORK_EVERY + longest) + WORK;
                assert!(worked <= most, "{what}: {worked} units of work, {most} are allowed");
                watched.check(&what);
                let stopped = watched.looks == stop_at;
                assert!(
                    stopped || problem.racks.len() < 40 && watched.looks < stop_at,
                    "{what}: {} looks",
                    watched.looks
                );
                match found {
                    Ok(plan) if !stopped => assert!(!plan.cut_short, "{what}: nothing stopped it"),
                    Err(PlanError::CutShort { planned, jobs }) => assert!(planned <= jobs, "{what}"),
                    Ok(plan) => {
                        assert!(plan.cut_short, "{what}: it says that it is not all");
                        assert_eq!(check(&plan, &Facts::default()), [], "{what}");
                    }
                    Err(error) => panic!("{what}: {error}"),
                }
            }
        }
    }
    assert!(planners >= 20, "jobpacker and corral at least, on each");
}

#[test]
fn a_plan_takes_no_more_work_than_it_may_and_the_same_budget_gives_the_same() {
    for (name, problem) in ugly_problems().into_iter().take(4) {
        for policy in policies() {
            let Some(planner) = policy.as_plan() else { continue };
            let made = |most| {
                let mut never = || false;
                let mut budget = Budget::with_work(0, most, &mut never);
                let found = planner.plan(&problem, &mut budget);
                let worked = budget.worked();
                assert!(worked <= most + 2 * WORK, "{} for {name}: {worked} of {most}", policy.name());
                found.map(|plan| plan.to_json()).map_err(|error| error.to_string())
            };
            for most in [1 << 10, 1 << 20] {
                assert_eq!(made(most), made(most), "{} for {name}", policy.name());
            }
        }
    }
}

#[test]
fn a_job_with_more_shares_than_are_kept_for_it_is_refused_in_words() {
    let mut problem = problem(3_000, 100_000, 1, Objective::Online);
    (problem.jobs[0].maps.0, problem.jobs[0].reduces.0) = (10_000_000, 1);
    problem.racks.iter_mut().for_each(|rack| rack.containers = 100_000);
    let mut never = || false;
    let packer = registry::with_defaults("jobpacker").unwrap();
    let refused = packer.as_plan().unwrap().plan(&problem, &mut Budget::new(0, &mut never)).err();
    assert!(matches!(refused, Some(PlanError::TooLarge { .. })), "{refused:?}");
    let refused = refused.unwrap();
    assert!(refused.to_string().contains("a shorter horizon or fewer racks"), "{refused}");
}

/// So many jobs that ran every three hours for so many days.
fn runs(keys: u32, days: u64) -> Runs {
    let mut runs = Runs::default();
    for key in 0..keys {
        for nth in 0..days * 8 {
            let submitted = Timestamp(START.0 - (days * 8 - nth) * DAY.0 / 8 + u64::from(key));
            let (maps, reduces) = ((40, Micros::from_secs(10)), (5, Micros::from_secs(20)));
            let run = Run {
                submitted,
                maps,
                reduces,
                input: Bytes(GB),
                shuffle: Bytes(GB),
                application: None,
                counted: false,
                ran_on: None,
            };
            runs.note(&format!("key-{key:04}").into(), run);
        }
    }
    runs
}

#[test]
fn what_is_predicted_and_planned_ends_soon_after_the_probe() {
    let (runs, planners) = (runs(60, 14), ["jobpacker", "corral"]);
    let mut late = 0;
    for (name, network) in networks() {
        let harness = cluster(network, false);
        for policy in planners {
            let planner: Arc<dyn Policy> = registry::with_defaults(policy).unwrap().into();
            let ask = PlanRequest {
                from: START,
                until: START.plus(Micros(2 * DAY.0)),
                objective: Objective::Online,
                unit: None,
                uplink: None,
                prediction: PredictionSettings::default(),
                seed: 1,
            };
            for stop_at in STOPS {
                let what = format!("a plan by {policy} on {name}, stopped at look {stop_at}");
                let steps = table_steps(&harness);
                let mut watched = Watched::new(&steps, stop_at);
                let snapshot = harness.engine.current_snapshot();
                match make(&runs, snapshot, &planner, &ask, &mut || watched.look()) {
                    Ok(made) => assert!(made.plan.cut_short || watched.looks < stop_at, "{what}"),
                    Err(Refusal::MissingFeed { .. }) => {}
                    Err(refusal) => {
                        let said = refusal.to_string();
                        assert!(said.contains("its time was over") && said.contains("plan.time"), "{what}: {said}");
                        late += 1;
                    }
                }
                watched.check(&what);
                assert!(watched.looks > 0, "{what}: it never looked");
            }
        }
    }
    assert!(late > 0, "none was late");
}

/// A decision by `spread` whose search was stopped at that look.
fn recorded(harness: &EngineHarness, policy: &str, stop_at: u64) -> Option<Arc<Record>> {
    let policy: Arc<dyn Policy> = registry::with_defaults(policy)?.into();
    let baseline: Arc<dyn Policy> = registry::with_defaults("capacity")?.into();
    let (asked, settings) = (Arc::new(shuffle()), PlacerSettings { steps: 300, ..PlacerSettings::default() });
    let generation = harness.engine.generation();
    let name = policy.name();
    let chosen = SelectedPolicy { policy: &*policy, baseline: &*baseline, mode: Mode::On, name };
    let (mut probe, mut looks) = (Probe::default(), 0);
    let mut stop = || {
        looks += 1;
        probe.look(looks >= stop_at)
    };
    let refusal = propose(&generation, &asked, &chosen, &settings, harness.now, &mut stop).err();
    let decision = DecisionId::of(1);
    // What it came to is not looked at: only how long it takes to make it again.
    let refusal = refusal.unwrap_or(Refusal::DeadlineExceeded(Micros(0)));
    let seen = DecidedRequest {
        request: asked,
        queue_named: false,
        policy: Arc::clone(&policy),
        name: name.into(),
        baseline,
        mode: Mode::On,
        settings,
        now: harness.now,
        stopped: probe.stopped(),
        follows: false,
        generation,
        read: None,
        round: None,
        came: RequestOutcome::Refused { decision, at: harness.now, refusal },
    };
    let mut records = Records::new(RecordSettings::default());
    records.take(seen);
    records.get(decision, harness.now).ok()
}

#[test]
fn replays_end_soon_after_the_probe_of_who_waits_for_them() {
    let mut replayed = 0;
    for (name, network) in networks() {
        if network.switches() > 1_000 {
            continue; // the same, and long
        }
        let harness = cluster(network, false);
        let Some(record) = recorded(&harness, "spread", LOOK) else { continue };
        for stop_at in STOPS {
            let what = format!("a replay on {name}, stopped at look {stop_at}");
            // Records have the paths of their own network: steps are counted there.
            let live = Arc::clone(&harness.engine.generation().snapshot);
            let steps = table_steps(&harness);
            let mut watched = Watched::new(&steps, stop_at);
            record.replay_until(Some(&live), &mut || watched.look());
            watched.check(&what);
            assert!(watched.looks > 0 && watched.looks <= stop_at + LOOKS, "{what}: {} looks", watched.looks);
            for other in policies() {
                let (what, other) = (format!("{what}, by {}", other.name()), Arc::<dyn Policy>::from(other));
                if other.as_place().is_none() || stop_at > 1 {
                    continue; // a later stop is the other policy's own search, which another test holds
                }
                let mut watched = Watched::new(&steps, stop_at);
                let _ = record.compare_with(other.name(), &other, Some(&live), &mut || watched.look());
                let (longest, rest) = (watched.longest, steps().saturating_sub(watched.last));
                assert!(longest <= STEPS, "{what}: {longest} steps between two looks");
                // Then the recorded search is made again, and both placements are rated: each to its recorded look.
                assert!(rest <= 3 * LOOK * STEPS, "{what}: {rest} steps after the last look");
                assert!(watched.looks <= stop_at + LOOKS, "{what}: {} looks", watched.looks);
                replayed += 1;
            }
        }
    }
    assert!(replayed > 50, "{replayed}");
}
