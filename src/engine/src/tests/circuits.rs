//! Circuits in the engine: which are wanted for what jobs shuffle, who is told, what controllers report.

use super::harness::EngineHarness;
use crate::testing::{attempt, request};
use crate::{
    CircuitReport, CircuitsView, Counter, Effect, PortReport, Refusal, ReportTaken, RouteUpdate, TaskEvent, TaskWhat,
    WantedCircuits, WatchScope,
};
use hintd_model::cluster::{Change, HintRequest};
use hintd_model::network::Network;
use hintd_model::network::build::{HybridSpec, OPTICAL_SWITCH, TreeSpec, hybrid};
use hintd_model::network::optical::{OpticalSection, PortState};
use hintd_model::units::{BitsPerSec, Bytes, ContainerId, LinkName, Micros};
use hintd_policy::{Policy, registry};
use std::collections::BTreeSet;
use std::sync::Arc;

mod steps;

/// As long as a daemon that starts waits for a report.
const LEARNING: Micros = Micros::from_secs(10);
const SECOND: Micros = Micros::from_secs(1);
/// What a circuit of 1 Gbit/s carries in a second.
const GIGABIT_SECOND: u64 = 125_000_000;
/// The elephant threshold of [`network`].
const ELEPHANT: u64 = 10_000_000;

/// Racks of two hosts and ports of 1 Gbit/s.
pub(super) fn network(racks: usize) -> Network {
    let tree = TreeSpec { racks, hosts_per_rack: 2, cores: 1, ..HybridSpec::default().tree };
    let spec = HybridSpec { tree, optical_bits_per_s: BitsPerSec(1_000_000_000) };
    let mut network = hybrid(&spec).unwrap().network;
    let section = OpticalSection { elephant_bytes: Some(Bytes(ELEPHANT)), ..OpticalSection::of(OPTICAL_SWITCH) };
    network.set_optical(Some(section));
    network
}

/// Racks `/rack-1`, … as builders name them, each with hosts of 16 GB; nobody said in time what is set.
pub(super) fn lit(racks: usize) -> EngineHarness {
    started(racks, LEARNING)
}

/// The same, so long after the optical switch became known.
fn started(racks: usize, ago: Micros) -> EngineHarness {
    let mut harness = EngineHarness::new();
    harness.change(Change::Network(Some(Arc::new(network(racks)))));
    harness.publish();
    harness.pass(Micros(1));
    harness.now = harness.now.plus(ago);
    for rack in 0..racks {
        (0..2).for_each(|at| join(&mut harness, rack, at));
    }
    harness.publish();
    harness
}

fn join(harness: &mut EngineHarness, rack: usize, at: usize) {
    let host = host(rack, at);
    harness.register(&host, &format!("/rack-{}", rack + 1), 16_384);
    harness.beat(&host, 0, Some(&[]));
}

/// The `at`-th host of the `rack`-th rack, from 0.
pub(super) fn host(rack: usize, at: usize) -> String {
    format!("host-{:04}", rack * 2 + at + 1)
}

pub(super) fn fair() -> Arc<dyn Policy> {
    registry::with_defaults("fair").unwrap().into()
}

/// A job of so many maps and reduces.
pub(super) fn job(number: u32, maps: u32, reduces: u32) -> HintRequest {
    let mut asked = request(&format!("r{number}"), &[("map", maps), ("reduce", reduces)]);
    asked.attempt = attempt(number, 1);
    asked
}

/// Its application says where the `task`-th container of a group is.
pub(super) fn begins(harness: &mut EngineHarness, number: u32, group: &str, task: u32, on: &str) {
    let id = u64::from(task) + if group == "map" { 1 } else { 1_000 };
    let container = ContainerId { attempt: attempt(number, 1), id };
    tell(harness, number, group, task, TaskWhat::Allocated { host: on.into(), container, lease: None });
}

pub(super) fn ends(harness: &mut EngineHarness, number: u32, group: &str, task: u32, on: &str, output: u64) {
    let (duration, input) = (SECOND, Bytes(0));
    tell(
        harness,
        number,
        group,
        task,
        TaskWhat::Finished { host: on.into(), duration, input, output: Bytes(output), failed: false },
    );
}

pub(super) fn tell(harness: &mut EngineHarness, number: u32, group: &str, task: u32, what: TaskWhat) {
    let task = format!("{group}-{task}").as_str().into();
    let event = TaskEvent {
        attempt: attempt(number, 1),
        group: group.into(),
        task,
        what,
        recurring_key: None,
        at: harness.now,
    };
    harness.engine.event(event, harness.now).unwrap();
    harness.drain();
}

/// A job with a map of `output` bytes in rack `from`, ended, and a reduce that runs in rack `to`.
pub(super) fn shuffles(harness: &mut EngineHarness, number: u32, (from, to): (usize, usize), output: u64) {
    harness.wait(&fair(), job(number, 1, 1));
    begins(harness, number, "map", 0, &host(from, 0));
    ends(harness, number, "map", 0, &host(from, 0), output);
    begins(harness, number, "reduce", 0, &host(to, 0));
}

fn port(rack: usize) -> LinkName {
    format!("edge-{:02}--optical", rack + 1).as_str().into()
}

/// A controller that watches, and says that nothing is set.
pub(super) fn controlled(harness: &mut EngineHarness) {
    watches(harness, "ocs");
    report(harness, &[], &[]).unwrap();
}

fn watches(harness: &mut EngineHarness, name: &str) -> Arc<RouteUpdate> {
    let scope = WatchScope { circuits: true, ..WatchScope::default() };
    let first = harness.engine.watch(name, scope, harness.now).unwrap();
    harness.drain();
    assert_eq!(first.len(), 1);
    Arc::clone(&first[0])
}

/// Configurations told since the last time.
fn told(harness: &mut EngineHarness) -> Vec<Arc<WantedCircuits>> {
    let wanted = |effect: Effect| match effect {
        Effect::Routes { update, .. } => update.circuits.clone(),
        _ => None,
    };
    std::mem::take(&mut harness.out).into_iter().filter_map(wanted).collect()
}

/// Input and output racks, from 0.
fn pairs(wanted: &WantedCircuits) -> Vec<(usize, usize)> {
    let rack = |link: &LinkName| (0..99).find(|&rack| port(rack) == *link).unwrap();
    wanted.circuits.iter().map(|circuit| (rack(&circuit.input), rack(&circuit.output))).collect()
}

fn view(harness: &EngineHarness) -> CircuitsView {
    harness.engine.circuits().expect("the network has an optical switch")
}

fn report(
    harness: &mut EngineHarness,
    set: &[(usize, usize)],
    ports: &[(usize, PortState)],
) -> Result<ReportTaken, Refusal> {
    report_of(harness, "ocs", set, ports)
}

fn report_of(
    harness: &mut EngineHarness,
    watcher: &str,
    set: &[(usize, usize)],
    ports: &[(usize, PortState)],
) -> Result<ReportTaken, Refusal> {
    let port_report =
        |&(rack, state): &(usize, PortState)| PortReport { port: port(rack), state, reason: "seen".into() };
    let report = CircuitReport {
        version: view(harness).wanted.version,
        set: set.iter().map(|&(from, to)| (port(from), port(to))).collect(),
        ports: ports.iter().map(port_report).collect(),
    };
    let done = harness.engine.report_circuits(&watcher.into(), report, harness.now);
    harness.drain();
    done
}

fn unserved(wanted: &WantedCircuits) -> Vec<(String, String, &'static str)> {
    wanted.unserved.iter().map(|pair| (pair.from.to_string(), pair.to.to_string(), pair.reason)).collect()
}

#[test]
fn a_shuffle_that_is_an_elephant_gets_a_circuit_and_whoever_watches_hears_why() {
    let mut harness = lit(3);
    harness.pass(SECOND);
    assert_eq!(watches(&mut harness, "ocs").circuits, None, "nothing is wanted yet");
    harness.out.clear();

    shuffles(&mut harness, 1, (0, 2), 5 * ELEPHANT);
    let before = harness.now;
    harness.pass(SECOND);
    let news = told(&mut harness);
    let [wanted] = &news[..] else { panic!("{news:?}") };
    assert_eq!((wanted.version, wanted.cause, pairs(wanted)), (1, "demand", vec![(0, 2)]));
    let demand = &wanted.circuits[0].demand;
    assert_eq!((demand.from.to_string(), demand.to.to_string()), ("/rack-1".into(), "/rack-3".into()));
    assert_eq!((demand.expected, demand.jobs, demand.reason), (Bytes(5 * ELEPHANT), 1, "demand"));
    assert!(demand.since > before && demand.since <= harness.now);
    for _ in 0..5 {
        harness.pass(SECOND);
    }
    assert_eq!(told(&mut harness), [], "what is wanted already is not told again");
    assert_eq!(harness.count(Counter::CircuitChanges), 1);
    let late = watches(&mut harness, "late");
    assert_eq!(late.circuits.as_ref().map(|wanted| wanted.version), Some(1), "who comes later is told what is wanted");
    shuffles(&mut harness, 2, (0, 2), 2 * ELEPHANT);
    harness.pass(SECOND);
    assert_eq!(told(&mut harness), [], "the same circuits");
    let later = watches(&mut harness, "later");
    let wanted = later.circuits.as_ref().unwrap();
    let demand = &wanted.circuits[0].demand;
    assert_eq!((wanted.version, demand.expected, demand.jobs), (1, Bytes(7 * ELEPHANT), 2), "and what is expected now");
}

#[test]
fn mice_reduces_without_containers_and_data_that_stays_in_its_rack_ask_for_nothing() {
    let mut harness = lit(3);
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), ELEPHANT - 1);
    shuffles(&mut harness, 2, (1, 1), 9 * ELEPHANT);
    harness.wait(&fair(), job(3, 1, 1));
    begins(&mut harness, 3, "map", 0, &host(0, 0));
    ends(&mut harness, 3, "map", 0, &host(0, 0), 9 * ELEPHANT);
    harness.pass(SECOND);
    harness.out.clear();
    harness.pass(SECOND);
    assert_eq!(told(&mut harness), []);
    assert_eq!((view(&harness).wanted.unserved_pairs, view(&harness).wanted.circuits.len()), (0, 0));
    begins(&mut harness, 3, "reduce", 0, &host(2, 1));
    harness.pass(SECOND);
    assert_eq!(told(&mut harness).iter().map(|wanted| pairs(wanted)).collect::<Vec<_>>(), [[(0, 2)]]);
}

#[test]
fn a_rack_sends_by_one_circuit_and_the_others_hear_that_they_are_outweighed() {
    let mut harness = lit(3);
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), 2 * ELEPHANT);
    shuffles(&mut harness, 2, (0, 2), 3 * ELEPHANT);
    harness.pass(SECOND);
    let wanted = view(&harness).wanted;
    assert_eq!(pairs(&wanted), [(0, 2)]);
    assert_eq!(unserved(&wanted), [("/rack-1".to_owned(), "/rack-2".to_owned(), "outweighed")]);
    assert_eq!((wanted.unserved_pairs, wanted.unserved_bytes), (1, Bytes(2 * ELEPHANT)));
}

#[test]
fn what_circuits_that_are_set_carry_goes_down_and_the_next_pair_has_its_turn() {
    let mut harness = lit(3);
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), 2 * GIGABIT_SECOND);
    shuffles(&mut harness, 2, (0, 2), GIGABIT_SECOND / 2);
    harness.pass(SECOND);
    assert_eq!(pairs(&view(&harness).wanted), [(0, 1)]);
    for _ in 0..9 {
        harness.pass(SECOND);
    }
    assert_eq!(pairs(&view(&harness).wanted), [(0, 1)], "nobody said that it is set: nothing is taken to have moved");
    report(&mut harness, &[(0, 1)], &[]).unwrap();
    assert!(view(&harness).is_set());
    harness.pass(SECOND);
    assert_eq!(view(&harness).wanted.circuits[0].demand.expected, Bytes(GIGABIT_SECOND));
    harness.pass(SECOND);
    let wanted = view(&harness).wanted;
    assert_eq!((pairs(&wanted), wanted.unserved_pairs), (vec![(0, 2)], 0), "all of the first has moved");
    assert!(!view(&harness).is_set());
}

#[test]
fn a_reduce_that_ended_has_read_its_part_and_a_job_that_is_over_wants_nothing() {
    let mut harness = lit(3);
    watches(&mut harness, "ocs");
    harness.wait(&fair(), job(1, 1, 2));
    begins(&mut harness, 1, "map", 0, &host(0, 0));
    ends(&mut harness, 1, "map", 0, &host(0, 0), 8 * ELEPHANT);
    begins(&mut harness, 1, "reduce", 0, &host(1, 0));
    harness.pass(SECOND);
    assert_eq!(view(&harness).wanted.circuits[0].demand.expected, Bytes(4 * ELEPHANT), "of two reduces one runs");
    ends(&mut harness, 1, "reduce", 0, &host(1, 0), 0);
    shuffles(&mut harness, 2, (0, 2), 2 * ELEPHANT);
    harness.pass(SECOND);
    assert_eq!((pairs(&view(&harness).wanted), view(&harness).wanted.unserved_pairs), (vec![(0, 2)], 0));
    let done = TaskEvent {
        attempt: attempt(2, 1),
        group: "".into(),
        task: "".into(),
        what: TaskWhat::Done { failed: false },
        recurring_key: None,
        at: harness.now,
    };
    harness.engine.event(done, harness.now).unwrap();
    harness.pass(SECOND);
    let circuit = &view(&harness).wanted.circuits[0];
    assert_eq!((circuit.demand.reason, circuit.demand.expected), ("kept", Bytes(0)), "nobody else needs its ports");
}

#[test]
fn ports_that_failed_or_are_stuck_are_left_out_and_come_back() {
    let mut harness = lit(3);
    controlled(&mut harness);
    shuffles(&mut harness, 1, (0, 1), 2 * ELEPHANT);
    shuffles(&mut harness, 2, (2, 1), ELEPHANT);
    harness.pass(SECOND);
    harness.out.clear();
    assert_eq!(pairs(&view(&harness).wanted), [(0, 1)]);
    report(&mut harness, &[], &[(0, PortState::Failed)]).unwrap();
    let news = told(&mut harness);
    assert_eq!((pairs(&news[0]), news[0].cause), (vec![(2, 1)], "ports"), "at once");
    assert_eq!(unserved(&news[0]), [("/rack-1".to_owned(), "/rack-2".to_owned(), "port_failed")]);

    report(&mut harness, &[(2, 0)], &[(2, PortState::Stuck)]).unwrap();
    let wanted = view(&harness).wanted;
    assert_eq!(pairs(&wanted), [(0, 1)], "the failed one works again; the stuck one has its output elsewhere");
    assert_eq!(unserved(&wanted), [("/rack-3".to_owned(), "/rack-2".to_owned(), "port_stuck")]);
    report(&mut harness, &[(2, 1)], &[(2, PortState::Stuck)]).unwrap();
    let wanted = view(&harness).wanted;
    assert_eq!(pairs(&wanted), [], "the output that it wants is held by the stuck one, which nobody can set");
    assert_eq!(
        unserved(&wanted),
        [("/rack-1".to_owned(), "/rack-2".to_owned(), "outweighed")],
        "and which serves its own"
    );
    let states: Vec<PortState> = view(&harness).ports.iter().map(|port| port.state).collect();
    assert_eq!(states, [PortState::Works, PortState::Works, PortState::Stuck]);
    report(&mut harness, &[], &[]).unwrap();
    assert_eq!(pairs(&view(&harness).wanted), [(0, 1)]);
}

#[test]
fn while_a_port_is_stuck_reports_do_not_choose_anew() {
    let mut harness = lit(4);
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), 3 * ELEPHANT);
    shuffles(&mut harness, 2, (2, 1), 2 * ELEPHANT);
    harness.pass(SECOND);
    let stuck = [(3, PortState::Stuck)];
    report(&mut harness, &[(0, 1)], &stuck).unwrap();
    let chosen = view(&harness).wanted;
    assert_eq!(pairs(&chosen), [(0, 1)]);
    // By now the other pair has more left to send.
    harness.now = harness.now.plus(Micros::from_millis(900));
    report(&mut harness, &[(0, 1)], &stuck).unwrap();
    assert_eq!((view(&harness).wanted.version, pairs(&view(&harness).wanted)), (chosen.version, vec![(0, 1)]));
}

#[test]
fn a_rack_without_a_port_goes_by_packets() {
    let mut harness = lit(3);
    let mut fewer = network(3);
    let cut = fewer.link(port(1).as_str()).unwrap();
    fewer.remove_link(cut);
    harness.change(Change::Network(Some(Arc::new(fewer))));
    harness.publish();
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), 9 * ELEPHANT);
    shuffles(&mut harness, 2, (0, 2), ELEPHANT);
    harness.pass(SECOND);
    assert_eq!(pairs(&view(&harness).wanted), [(0, 2)]);
    assert_eq!(unserved(&view(&harness).wanted), [("/rack-1".to_owned(), "/rack-2".to_owned(), "no_port")]);
    assert_eq!((view(&harness).without_port, view(&harness).ports.len()), (1, 2));
}

#[test]
fn without_an_optical_switch_nothing_is_wanted_and_one_that_goes_takes_its_circuits_along() {
    let mut dark = network(2);
    dark.set_optical(None);
    let mut harness = lit(2);
    let lit = Arc::new(network(2));
    harness.change(Change::Network(Some(Arc::new(dark.clone()))));
    harness.publish();
    harness.pass(Micros(1));
    let first = watches(&mut harness, "ocs");
    assert_eq!((first.circuits.is_none(), harness.engine.circuits()), (true, None));
    shuffles(&mut harness, 1, (0, 1), 9 * ELEPHANT);
    harness.pass(SECOND);
    assert_eq!(told(&mut harness), []);
    assert!(matches!(
        harness.engine.report_circuits(&"ocs".into(), CircuitReport::default(), harness.now),
        Err(Refusal::Invalid { .. })
    ));
    harness.change(Change::Network(Some(lit)));
    harness.publish();
    harness.pass(SECOND);
    assert_eq!(told(&mut harness), [], "first a controller says what is set");
    report(&mut harness, &[], &[]).unwrap();
    let news: Vec<_> = told(&mut harness).iter().map(|wanted| (wanted.version, pairs(wanted))).collect();
    assert_eq!(news, [(1, vec![(0, 1)])]);
    harness.change(Change::Network(Some(Arc::new(dark))));
    harness.publish();
    harness.pass(SECOND);
    let news = told(&mut harness);
    assert_eq!((news.len(), news[0].version, &*news[0].switch, news[0].circuits.len()), (1, 2, "", 0));
    assert_eq!(harness.engine.circuits(), None);
}

#[test]
fn a_daemon_that_starts_wants_what_a_controller_says_is_set_until_there_is_demand() {
    let mut harness = started(4, SECOND);
    assert_eq!(watches(&mut harness, "ocs").circuits, None, "else whoever follows it would take all down");
    harness.out.clear();
    harness.pass(SECOND);
    assert_eq!(
        (told(&mut harness), view(&harness).wanted.version, view(&harness).wanted.cause),
        (vec![], 0, "learning")
    );
    let taken = report(&mut harness, &[(0, 1), (3, 0)], &[(2, PortState::Failed)]).unwrap();
    let changed: Vec<(LinkName, PortState)> = taken.ports.into_iter().map(|port| (port.port, port.state)).collect();
    assert_eq!((taken.wanted_version, taken.another, changed), (1, true, vec![(port(2), PortState::Failed)]));
    let news = told(&mut harness);
    assert_eq!((pairs(&news[0]), news[0].version, news[0].cause), (vec![(0, 1), (3, 0)], 1, "report"));
    assert!(news[0].circuits.iter().all(|circuit| circuit.demand.reason == "kept"), "{news:?}");
    assert!(view(&harness).is_set());
    shuffles(&mut harness, 1, (0, 3), 9 * ELEPHANT);
    harness.pass(SECOND);
    assert_eq!(pairs(&view(&harness).wanted), [(0, 3), (3, 0)], "demand goes first");
}

#[test]
fn a_daemon_that_starts_waits_for_a_report_only_so_long() {
    let mut harness = started(2, Micros::ZERO);
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), 9 * ELEPHANT);
    harness.out.clear();
    for _ in 0..9 {
        harness.pass(SECOND);
    }
    assert_eq!(told(&mut harness), []);
    harness.pass(SECOND);
    assert_eq!(told(&mut harness).iter().map(|wanted| pairs(wanted)).collect::<Vec<_>>(), [[(0, 1)]]);
}

#[test]
fn a_first_report_is_kept_however_late_where_nobody_wants_its_ports() {
    let mut harness = lit(3);
    watches(&mut harness, "ocs");
    harness.out.clear();
    for _ in 0..5 {
        harness.pass(SECOND);
    }
    assert_eq!((told(&mut harness), view(&harness).wanted.version), (vec![], 0), "without demand there is no hurry");
    report(&mut harness, &[(2, 0)], &[]).unwrap();
    assert_eq!(pairs(&view(&harness).wanted), [(2, 0)]);

    let mut harness = lit(3);
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), 9 * ELEPHANT);
    harness.pass(SECOND);
    report(&mut harness, &[(2, 0), (1, 2)], &[]).unwrap();
    assert_eq!(pairs(&view(&harness).wanted), [(0, 1), (1, 2), (2, 0)]);
    report(&mut harness, &[(0, 1), (2, 1)], &[]).unwrap_err();
    let wanted = view(&harness).wanted.version;
    report(&mut harness, &[(1, 0)], &[]).unwrap();
    assert_eq!(view(&harness).wanted.version, wanted, "only the first");
}

#[test]
fn a_report_that_comes_before_the_network_is_kept_until_it_is_known() {
    let mut harness = EngineHarness::new();
    watches(&mut harness, "ocs");
    let set = vec![(port(0), port(1)), (port(2), port(0))];
    let early = CircuitReport { set, ..CircuitReport::default() };
    assert_eq!(harness.engine.report_circuits(&"ocs".into(), early, harness.now).unwrap().wanted_version, 0);
    harness.change(Change::Network(Some(Arc::new(network(3)))));
    harness.publish();
    harness.pass(SECOND);
    let wanted = view(&harness).wanted;
    assert_eq!((pairs(&wanted), wanted.version, wanted.cause), (vec![(0, 1), (2, 0)], 1, "report"));
    assert!(view(&harness).is_set());
    harness.out.clear();
    // Rows of ports go by racks, which come in another order here.
    [2, 0, 1].into_iter().for_each(|rack| join(&mut harness, rack, 0));
    harness.publish();
    harness.pass(SECOND);
    assert_eq!((told(&mut harness), view(&harness).wanted.version), (vec![], 1), "the same circuits in another order");
}

#[test]
fn a_controller_that_is_given_up_for_its_silence_is_not_believed() {
    let mut harness = lit(2);
    let scope = WatchScope { circuits: true, installs: true, ..WatchScope::default() };
    harness.engine.watch("ocs", scope, harness.now).unwrap();
    report(&mut harness, &[(0, 1)], &[]).unwrap();
    assert!(view(&harness).attended);
    harness.out.clear();
    for _ in 0..600 {
        harness.pass(SECOND);
    }
    let left = |effect: &Effect| matches!(effect, Effect::ControllerLeft { watcher } if **watcher == *"ocs");
    assert!(harness.out.iter().any(left) && !view(&harness).attended);
    watches(&mut harness, "other");
    assert!(report_of(&mut harness, "other", &[], &[]).unwrap().another);
}

#[test]
fn one_controller_reports_at_a_time_and_what_one_said_that_is_gone_is_not_believed() {
    let mut harness = lit(3);
    controlled(&mut harness);
    watches(&mut harness, "other");
    shuffles(&mut harness, 1, (0, 1), 9 * GIGABIT_SECOND);
    harness.pass(SECOND);
    report(&mut harness, &[(0, 1)], &[]).unwrap();
    let second = report_of(&mut harness, "other", &[], &[]);
    assert!(
        matches!(&second, Err(Refusal::Invalid { field, message }) if field == "watcher" && message.contains("ocs"))
    );
    harness.pass(SECOND);
    let left = |harness: &EngineHarness| view(harness).wanted.circuits[0].demand.expected;
    assert_eq!((view(&harness).is_set(), left(&harness)), (true, Bytes(8 * GIGABIT_SECOND)));
    harness.engine.unwatch("other", harness.now);
    assert!(view(&harness).is_set());
    harness.now = harness.now.plus(Micros::from_millis(500));
    harness.engine.unwatch("ocs", harness.now);
    harness.pass(SECOND);
    let half = Bytes(15 * GIGABIT_SECOND / 2);
    assert_eq!(
        (view(&harness).is_set(), left(&harness)),
        (false, half),
        "until it left; then nobody knows that it carries"
    );
    assert!(
        matches!(report(&mut harness, &[], &[]), Err(Refusal::Unknown { what: "watcher", .. })),
        "it has no stream"
    );
    watches(&mut harness, "ocs");
    assert!(!view(&harness).is_set(), "it has not said it again");
    watches(&mut harness, "other");
    assert!(report_of(&mut harness, "other", &[(0, 1)], &[]).unwrap().another);
    assert!(view(&harness).is_set());
    assert!(!report_of(&mut harness, "other", &[(0, 1)], &[]).unwrap().another);
}

#[test]
fn two_that_watch_by_one_name_are_counted_where_operators_look() {
    let mut harness = lit(3);
    controlled(&mut harness);
    assert_eq!(view(&harness).replaced, 0);
    watches(&mut harness, "ocs");
    watches(&mut harness, "other");
    assert_eq!((view(&harness).replaced, view(&harness).attended), (1, false));
    let scope = WatchScope { circuits: true, resume_after: Some(2), ..WatchScope::default() };
    harness.engine.watch("ocs", scope, harness.now).unwrap();
    assert_eq!(view(&harness).replaced, 2, "one that goes on where the other was as well");
    harness.engine.unwatch("ocs", harness.now);
    watches(&mut harness, "ocs");
    assert_eq!(view(&harness).replaced, 2, "its stream had ended");
}

#[test]
fn circuits_outlive_nodes_that_join_and_a_switch_that_is_down_has_none() {
    let mut harness = lit(2);
    watches(&mut harness, "ocs");
    shuffles(&mut harness, 1, (0, 1), 9 * ELEPHANT);
    harness.pass(SECOND);
    harness.out.clear();
    harness.register("stranger", "/rack-9", 1_024);
    harness.publish();
    harness.pass(SECOND);
    assert_eq!((told(&mut harness), pairs(&view(&harness).wanted)), (vec![], vec![(0, 1)]));
    harness.change(Change::Switch { name: OPTICAL_SWITCH.into(), up: false });
    harness.publish();
    harness.pass(SECOND);
    let news = told(&mut harness);
    assert_eq!((news.len(), pairs(&news[0]), news[0].cause), (1, vec![], "topology"));
    assert_eq!(unserved(&view(&harness).wanted)[0].2, "switch_down");
    harness.change(Change::Switch { name: OPTICAL_SWITCH.into(), up: true });
    harness.publish();
    harness.pass(SECOND);
    assert_eq!(pairs(&view(&harness).wanted), [(0, 1)]);
}

#[test]
fn reports_that_make_no_sense_change_nothing() {
    let mut harness = lit(3);
    harness.pass(SECOND);
    let stranger = report(&mut harness, &[], &[]);
    assert!(matches!(stranger, Err(Refusal::Unknown { what: "watcher", .. })), "{stranger:?}");
    watches(&mut harness, "ocs");
    report(&mut harness, &[(0, 1)], &[(2, PortState::Failed)]).unwrap();
    let before = view(&harness);
    let field = |harness: &mut EngineHarness, report: CircuitReport| match harness.engine.report_circuits(
        &"ocs".into(),
        report,
        harness.now,
    ) {
        Err(Refusal::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let set = |pairs: &[(LinkName, LinkName)]| CircuitReport { set: pairs.to_vec(), ..CircuitReport::default() };
    assert_eq!(field(&mut harness, CircuitReport { version: 99, ..CircuitReport::default() }), "version");
    assert_eq!(field(&mut harness, set(&[(port(0), "nowhere".into())])), "set[0].output");
    assert_eq!(field(&mut harness, set(&[(port(0), port(0))])), "set[0].output", "a circuit leads elsewhere");
    let twice = [PortState::Failed, PortState::Stuck]
        .map(|state| PortReport { port: port(2), state, reason: Arc::default() })
        .to_vec();
    assert_eq!(field(&mut harness, CircuitReport { ports: twice, ..CircuitReport::default() }), "ports[1].port");
    assert_eq!(field(&mut harness, set(&[(port(0), port(1)), (port(2), port(1))])), "set[1].output");
    assert_eq!(field(&mut harness, set(&[(port(0), port(1)), (port(0), port(2))])), "set[1].input");
    let dark = vec![PortReport { port: port(1), state: PortState::Failed, reason: "".into() }];
    let lit = vec![(port(0), port(1))];
    assert_eq!(
        field(&mut harness, CircuitReport { set: lit, ports: dark, ..CircuitReport::default() }),
        "set[0].output"
    );
    let ports = vec![PortReport { port: "nowhere".into(), state: PortState::Failed, reason: "".into() }];
    assert_eq!(field(&mut harness, CircuitReport { ports, ..CircuitReport::default() }), "ports[0].port");
    assert_eq!(view(&harness), before);
}

#[test]
fn a_watch_that_comes_back_hears_what_it_missed_and_one_without_circuits_nothing() {
    let mut harness = lit(3);
    harness.pass(SECOND);
    let first = watches(&mut harness, "ocs");
    let other = WatchScope { flows: true, ..WatchScope::default() };
    let plain = harness.engine.watch("plain", other, harness.now).unwrap();
    assert!(plain[0].circuits.is_none());
    harness.engine.unwatch("ocs", harness.now);
    shuffles(&mut harness, 1, (0, 1), 2 * ELEPHANT);
    harness.pass(SECOND);
    let wanted: Vec<_> = told(&mut harness);
    assert_eq!(wanted, [], "nobody is there");
    let scope = WatchScope { circuits: true, resume_after: Some(first.number), ..WatchScope::default() };
    let missed = harness.engine.watch("ocs", scope, harness.now).unwrap();
    assert_eq!(missed.len(), 1);
    let circuits = missed[0].circuits.as_ref().unwrap();
    assert_eq!((missed[0].cause, &*missed[0].subject, pairs(circuits)), ("circuits", "demand", vec![(0, 1)]));
}
