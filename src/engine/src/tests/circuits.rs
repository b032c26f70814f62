//! Circuits in the engine: which are wanted for what jobs shuffle, who is told, what controllers report.

use super::desk::Desk;
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
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

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
pub(super) fn lit(racks: usize) -> Desk {
    started(racks, LEARNING)
}

/// The same, so long after the optical switch became known.
fn started(racks: usize, ago: Micros) -> Desk {
    let mut desk = Desk::new();
    desk.change(Change::Network(Some(Arc::new(network(racks)))));
    desk.publish();
    desk.pass(Micros(1));
    desk.now = desk.now.plus(ago);
    for rack in 0..racks {
        (0..2).for_each(|at| join(&mut desk, rack, at));
    }
    desk.publish();
    desk
}

fn join(desk: &mut Desk, rack: usize, at: usize) {
    let host = host(rack, at);
    desk.register(&host, &format!("/rack-{}", rack + 1), 16_384);
    desk.beat(&host, 0, Some(&[]));
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
pub(super) fn begins(desk: &mut Desk, number: u32, group: &str, task: u32, on: &str) {
    let id = u64::from(task) + if group == "map" { 1 } else { 1_000 };
    let container = ContainerId { attempt: attempt(number, 1), id };
    tell(desk, number, group, task, TaskWhat::Allocated { host: on.into(), container, lease: None });
}

pub(super) fn ends(desk: &mut Desk, number: u32, group: &str, task: u32, on: &str, output: u64) {
    let (duration, input) = (SECOND, Bytes(0));
    tell(
        desk,
        number,
        group,
        task,
        TaskWhat::Finished { host: on.into(), duration, input, output: Bytes(output), failed: false },
    );
}

pub(super) fn tell(desk: &mut Desk, number: u32, group: &str, task: u32, what: TaskWhat) {
    let task = format!("{group}-{task}").as_str().into();
    let event =
        TaskEvent { attempt: attempt(number, 1), group: group.into(), task, what, recurring_key: None, at: desk.now };
    desk.engine.event(event, desk.now).unwrap();
    desk.drain();
}

/// A job with a map of `output` bytes in rack `from`, ended, and a reduce that runs in rack `to`.
pub(super) fn shuffles(desk: &mut Desk, number: u32, (from, to): (usize, usize), output: u64) {
    desk.wait(&fair(), job(number, 1, 1));
    begins(desk, number, "map", 0, &host(from, 0));
    ends(desk, number, "map", 0, &host(from, 0), output);
    begins(desk, number, "reduce", 0, &host(to, 0));
}

fn port(rack: usize) -> LinkName {
    format!("edge-{:02}--optical", rack + 1).as_str().into()
}

/// A controller that watches, and says that nothing is set.
pub(super) fn controlled(desk: &mut Desk) {
    watches(desk, "ocs");
    report(desk, &[], &[]).unwrap();
}

fn watches(desk: &mut Desk, name: &str) -> Arc<RouteUpdate> {
    let scope = WatchScope { circuits: true, ..WatchScope::default() };
    let first = desk.engine.watch(name, scope, desk.now).unwrap();
    desk.drain();
    assert_eq!(first.len(), 1);
    Arc::clone(&first[0])
}

/// Configurations told since the last time.
fn told(desk: &mut Desk) -> Vec<Arc<WantedCircuits>> {
    let wanted = |effect: Effect| match effect {
        Effect::Routes { update, .. } => update.circuits.clone(),
        _ => None,
    };
    std::mem::take(&mut desk.out).into_iter().filter_map(wanted).collect()
}

/// Input and output racks, from 0.
fn pairs(wanted: &WantedCircuits) -> Vec<(usize, usize)> {
    let rack = |link: &LinkName| (0..99).find(|&rack| port(rack) == *link).unwrap();
    wanted.circuits.iter().map(|circuit| (rack(&circuit.input), rack(&circuit.output))).collect()
}

fn view(desk: &Desk) -> CircuitsView {
    desk.engine.circuits().expect("the network has an optical switch")
}

fn report(desk: &mut Desk, set: &[(usize, usize)], ports: &[(usize, PortState)]) -> Result<ReportTaken, Refusal> {
    report_of(desk, "ocs", set, ports)
}

fn report_of(
    desk: &mut Desk,
    watcher: &str,
    set: &[(usize, usize)],
    ports: &[(usize, PortState)],
) -> Result<ReportTaken, Refusal> {
    let port_report =
        |&(rack, state): &(usize, PortState)| PortReport { port: port(rack), state, reason: "seen".into() };
    let report = CircuitReport {
        version: view(desk).wanted.version,
        set: set.iter().map(|&(from, to)| (port(from), port(to))).collect(),
        ports: ports.iter().map(port_report).collect(),
    };
    let done = desk.engine.report_circuits(&watcher.into(), report, desk.now);
    desk.drain();
    done
}

fn unserved(wanted: &WantedCircuits) -> Vec<(String, String, &'static str)> {
    wanted.unserved.iter().map(|pair| (pair.from.to_string(), pair.to.to_string(), pair.reason)).collect()
}

#[test]
fn a_shuffle_that_is_an_elephant_gets_a_circuit_and_whoever_watches_hears_why() {
    let mut desk = lit(3);
    desk.pass(SECOND);
    assert_eq!(watches(&mut desk, "ocs").circuits, None, "nothing is wanted yet");
    desk.out.clear();

    shuffles(&mut desk, 1, (0, 2), 5 * ELEPHANT);
    let before = desk.now;
    desk.pass(SECOND);
    let news = told(&mut desk);
    let [wanted] = &news[..] else { panic!("{news:?}") };
    assert_eq!((wanted.version, wanted.cause, pairs(wanted)), (1, "demand", vec![(0, 2)]));
    let demand = &wanted.circuits[0].demand;
    assert_eq!((demand.from.to_string(), demand.to.to_string()), ("/rack-1".into(), "/rack-3".into()));
    assert_eq!((demand.expected, demand.jobs, demand.reason), (Bytes(5 * ELEPHANT), 1, "demand"));
    assert!(demand.since > before && demand.since <= desk.now);
    for _ in 0..5 {
        desk.pass(SECOND);
    }
    assert_eq!(told(&mut desk), [], "what is wanted already is not told again");
    assert_eq!(desk.count(Counter::CircuitChanges), 1);
    let late = watches(&mut desk, "late");
    assert_eq!(late.circuits.as_ref().map(|wanted| wanted.version), Some(1), "who comes later is told what is wanted");
    shuffles(&mut desk, 2, (0, 2), 2 * ELEPHANT);
    desk.pass(SECOND);
    assert_eq!(told(&mut desk), [], "the same circuits");
    let later = watches(&mut desk, "later");
    let wanted = later.circuits.as_ref().unwrap();
    let demand = &wanted.circuits[0].demand;
    assert_eq!((wanted.version, demand.expected, demand.jobs), (1, Bytes(7 * ELEPHANT), 2), "and what is expected now");
}

#[test]
fn mice_reduces_without_containers_and_data_that_stays_in_its_rack_ask_for_nothing() {
    let mut desk = lit(3);
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), ELEPHANT - 1);
    shuffles(&mut desk, 2, (1, 1), 9 * ELEPHANT);
    desk.wait(&fair(), job(3, 1, 1));
    begins(&mut desk, 3, "map", 0, &host(0, 0));
    ends(&mut desk, 3, "map", 0, &host(0, 0), 9 * ELEPHANT);
    desk.pass(SECOND);
    desk.out.clear();
    desk.pass(SECOND);
    assert_eq!(told(&mut desk), []);
    assert_eq!((view(&desk).wanted.unserved_pairs, view(&desk).wanted.circuits.len()), (0, 0));
    begins(&mut desk, 3, "reduce", 0, &host(2, 1));
    desk.pass(SECOND);
    assert_eq!(told(&mut desk).iter().map(|wanted| pairs(wanted)).collect::<Vec<_>>(), [[(0, 2)]]);
}

#[test]
fn a_rack_sends_by_one_circuit_and_the_others_hear_that_they_are_outweighed() {
    let mut desk = lit(3);
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), 2 * ELEPHANT);
    shuffles(&mut desk, 2, (0, 2), 3 * ELEPHANT);
    desk.pass(SECOND);
    let wanted = view(&desk).wanted;
    assert_eq!(pairs(&wanted), [(0, 2)]);
    assert_eq!(unserved(&wanted), [("/rack-1".to_owned(), "/rack-2".to_owned(), "outweighed")]);
    assert_eq!((wanted.unserved_pairs, wanted.unserved_bytes), (1, Bytes(2 * ELEPHANT)));
}

#[test]
fn what_circuits_that_are_set_carry_goes_down_and_the_next_pair_has_its_turn() {
    let mut desk = lit(3);
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), 2 * GIGABIT_SECOND);
    shuffles(&mut desk, 2, (0, 2), GIGABIT_SECOND / 2);
    desk.pass(SECOND);
    assert_eq!(pairs(&view(&desk).wanted), [(0, 1)]);
    for _ in 0..9 {
        desk.pass(SECOND);
    }
    assert_eq!(pairs(&view(&desk).wanted), [(0, 1)], "nobody said that it is set: nothing is taken to have moved");
    report(&mut desk, &[(0, 1)], &[]).unwrap();
    assert!(view(&desk).is_set());
    desk.pass(SECOND);
    assert_eq!(view(&desk).wanted.circuits[0].demand.expected, Bytes(GIGABIT_SECOND));
    desk.pass(SECOND);
    let wanted = view(&desk).wanted;
    assert_eq!((pairs(&wanted), wanted.unserved_pairs), (vec![(0, 2)], 0), "all of the first has moved");
    assert!(!view(&desk).is_set());
}

#[test]
fn a_reduce_that_ended_has_read_its_part_and_a_job_that_is_over_wants_nothing() {
    let mut desk = lit(3);
    watches(&mut desk, "ocs");
    desk.wait(&fair(), job(1, 1, 2));
    begins(&mut desk, 1, "map", 0, &host(0, 0));
    ends(&mut desk, 1, "map", 0, &host(0, 0), 8 * ELEPHANT);
    begins(&mut desk, 1, "reduce", 0, &host(1, 0));
    desk.pass(SECOND);
    assert_eq!(view(&desk).wanted.circuits[0].demand.expected, Bytes(4 * ELEPHANT), "of two reduces one runs");
    ends(&mut desk, 1, "reduce", 0, &host(1, 0), 0);
    shuffles(&mut desk, 2, (0, 2), 2 * ELEPHANT);
    desk.pass(SECOND);
    assert_eq!((pairs(&view(&desk).wanted), view(&desk).wanted.unserved_pairs), (vec![(0, 2)], 0));
    let done = TaskEvent {
        attempt: attempt(2, 1),
        group: "".into(),
        task: "".into(),
        what: TaskWhat::Done { failed: false },
        recurring_key: None,
        at: desk.now,
    };
    desk.engine.event(done, desk.now).unwrap();
    desk.pass(SECOND);
    let circuit = &view(&desk).wanted.circuits[0];
    assert_eq!((circuit.demand.reason, circuit.demand.expected), ("kept", Bytes(0)), "nobody else needs its ports");
}

#[test]
fn ports_that_failed_or_are_stuck_are_left_out_and_come_back() {
    let mut desk = lit(3);
    controlled(&mut desk);
    shuffles(&mut desk, 1, (0, 1), 2 * ELEPHANT);
    shuffles(&mut desk, 2, (2, 1), ELEPHANT);
    desk.pass(SECOND);
    desk.out.clear();
    assert_eq!(pairs(&view(&desk).wanted), [(0, 1)]);
    report(&mut desk, &[], &[(0, PortState::Failed)]).unwrap();
    let news = told(&mut desk);
    assert_eq!((pairs(&news[0]), news[0].cause), (vec![(2, 1)], "ports"), "at once");
    assert_eq!(unserved(&news[0]), [("/rack-1".to_owned(), "/rack-2".to_owned(), "port_failed")]);

    report(&mut desk, &[(2, 0)], &[(2, PortState::Stuck)]).unwrap();
    let wanted = view(&desk).wanted;
    assert_eq!(pairs(&wanted), [(0, 1)], "the failed one works again; the stuck one has its output elsewhere");
    assert_eq!(unserved(&wanted), [("/rack-3".to_owned(), "/rack-2".to_owned(), "port_stuck")]);
    report(&mut desk, &[(2, 1)], &[(2, PortState::Stuck)]).unwrap();
    let wanted = view(&desk).wanted;
    assert_eq!(pairs(&wanted), [], "the output that it wants is held by the stuck one, which nobody can set");
    assert_eq!(
        unserved(&wanted),
        [("/rack-1".to_owned(), "/rack-2".to_owned(), "outweighed")],
        "and which serves its own"
    );
    let states: Vec<PortState> = view(&desk).ports.iter().map(|port| port.state).collect();
    assert_eq!(states, [PortState::Works, PortState::Works, PortState::Stuck]);
    report(&mut desk, &[], &[]).unwrap();
    assert_eq!(pairs(&view(&desk).wanted), [(0, 1)]);
}

#[test]
fn while_a_port_is_stuck_reports_do_not_choose_anew() {
    let mut desk = lit(4);
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), 3 * ELEPHANT);
    shuffles(&mut desk, 2, (2, 1), 2 * ELEPHANT);
    desk.pass(SECOND);
    let stuck = [(3, PortState::Stuck)];
    report(&mut desk, &[(0, 1)], &stuck).unwrap();
    let chosen = view(&desk).wanted;
    assert_eq!(pairs(&chosen), [(0, 1)]);
    // By now the other pair has more left to send.
    desk.now = desk.now.plus(Micros::from_millis(900));
    report(&mut desk, &[(0, 1)], &stuck).unwrap();
    assert_eq!((view(&desk).wanted.version, pairs(&view(&desk).wanted)), (chosen.version, vec![(0, 1)]));
}

#[test]
fn a_rack_without_a_port_goes_by_packets() {
    let mut desk = lit(3);
    let mut fewer = network(3);
    let cut = fewer.link(port(1).as_str()).unwrap();
    fewer.remove_link(cut);
    desk.change(Change::Network(Some(Arc::new(fewer))));
    desk.publish();
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), 9 * ELEPHANT);
    shuffles(&mut desk, 2, (0, 2), ELEPHANT);
    desk.pass(SECOND);
    assert_eq!(pairs(&view(&desk).wanted), [(0, 2)]);
    assert_eq!(unserved(&view(&desk).wanted), [("/rack-1".to_owned(), "/rack-2".to_owned(), "no_port")]);
    assert_eq!((view(&desk).without_port, view(&desk).ports.len()), (1, 2));
}

#[test]
fn without_an_optical_switch_nothing_is_wanted_and_one_that_goes_takes_its_circuits_along() {
    let mut dark = network(2);
    dark.set_optical(None);
    let mut desk = lit(2);
    let lit = Arc::new(network(2));
    desk.change(Change::Network(Some(Arc::new(dark.clone()))));
    desk.publish();
    desk.pass(Micros(1));
    let first = watches(&mut desk, "ocs");
    assert_eq!((first.circuits.is_none(), desk.engine.circuits()), (true, None));
    shuffles(&mut desk, 1, (0, 1), 9 * ELEPHANT);
    desk.pass(SECOND);
    assert_eq!(told(&mut desk), []);
    assert!(matches!(
        desk.engine.report_circuits(&"ocs".into(), CircuitReport::default(), desk.now),
        Err(Refusal::Invalid { .. })
    ));
    desk.change(Change::Network(Some(lit)));
    desk.publish();
    desk.pass(SECOND);
    assert_eq!(told(&mut desk), [], "first a controller says what is set");
    report(&mut desk, &[], &[]).unwrap();
    let news: Vec<_> = told(&mut desk).iter().map(|wanted| (wanted.version, pairs(wanted))).collect();
    assert_eq!(news, [(1, vec![(0, 1)])]);
    desk.change(Change::Network(Some(Arc::new(dark))));
    desk.publish();
    desk.pass(SECOND);
    let news = told(&mut desk);
    assert_eq!((news.len(), news[0].version, &*news[0].switch, news[0].circuits.len()), (1, 2, "", 0));
    assert_eq!(desk.engine.circuits(), None);
}

#[test]
fn a_daemon_that_starts_wants_what_a_controller_says_is_set_until_there_is_demand() {
    let mut desk = started(4, SECOND);
    assert_eq!(watches(&mut desk, "ocs").circuits, None, "else whoever follows it would take all down");
    desk.out.clear();
    desk.pass(SECOND);
    assert_eq!((told(&mut desk), view(&desk).wanted.version, view(&desk).wanted.cause), (vec![], 0, "learning"));
    let taken = report(&mut desk, &[(0, 1), (3, 0)], &[(2, PortState::Failed)]).unwrap();
    let changed: Vec<(LinkName, PortState)> = taken.ports.into_iter().map(|port| (port.port, port.state)).collect();
    assert_eq!((taken.wanted_version, taken.another, changed), (1, true, vec![(port(2), PortState::Failed)]));
    let news = told(&mut desk);
    assert_eq!((pairs(&news[0]), news[0].version, news[0].cause), (vec![(0, 1), (3, 0)], 1, "report"));
    assert!(news[0].circuits.iter().all(|circuit| circuit.demand.reason == "kept"), "{news:?}");
    assert!(view(&desk).is_set());
    shuffles(&mut desk, 1, (0, 3), 9 * ELEPHANT);
    desk.pass(SECOND);
    assert_eq!(pairs(&view(&desk).wanted), [(0, 3), (3, 0)], "demand goes first");
}

#[test]
fn a_daemon_that_starts_waits_for_a_report_only_so_long() {
    let mut desk = started(2, Micros::ZERO);
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), 9 * ELEPHANT);
    desk.out.clear();
    for _ in 0..9 {
        desk.pass(SECOND);
    }
    assert_eq!(told(&mut desk), []);
    desk.pass(SECOND);
    assert_eq!(told(&mut desk).iter().map(|wanted| pairs(wanted)).collect::<Vec<_>>(), [[(0, 1)]]);
}

#[test]
fn a_first_report_is_kept_however_late_where_nobody_wants_its_ports() {
    let mut desk = lit(3);
    watches(&mut desk, "ocs");
    desk.out.clear();
    for _ in 0..5 {
        desk.pass(SECOND);
    }
    assert_eq!((told(&mut desk), view(&desk).wanted.version), (vec![], 0), "without demand there is no hurry");
    report(&mut desk, &[(2, 0)], &[]).unwrap();
    assert_eq!(pairs(&view(&desk).wanted), [(2, 0)]);

    let mut desk = lit(3);
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), 9 * ELEPHANT);
    desk.pass(SECOND);
    report(&mut desk, &[(2, 0), (1, 2)], &[]).unwrap();
    assert_eq!(pairs(&view(&desk).wanted), [(0, 1), (1, 2), (2, 0)]);
    report(&mut desk, &[(0, 1), (2, 1)], &[]).unwrap_err();
    let wanted = view(&desk).wanted.version;
    report(&mut desk, &[(1, 0)], &[]).unwrap();
    assert_eq!(view(&desk).wanted.version, wanted, "only the first");
}

#[test]
fn a_report_that_comes_before_the_network_is_kept_until_it_is_known() {
    let mut desk = Desk::new();
    watches(&mut desk, "ocs");
    let set = vec![(port(0), port(1)), (port(2), port(0))];
    let early = CircuitReport { set, ..CircuitReport::default() };
    assert_eq!(desk.engine.report_circuits(&"ocs".into(), early, desk.now).unwrap().wanted_version, 0);
    desk.change(Change::Network(Some(Arc::new(network(3)))));
    desk.publish();
    desk.pass(SECOND);
    let wanted = view(&desk).wanted;
    assert_eq!((pairs(&wanted), wanted.version, wanted.cause), (vec![(0, 1), (2, 0)], 1, "report"));
    assert!(view(&desk).is_set());
    desk.out.clear();
    // Rows of ports go by racks, which come in another order here.
    [2, 0, 1].into_iter().for_each(|rack| join(&mut desk, rack, 0));
    desk.publish();
    desk.pass(SECOND);
    assert_eq!((told(&mut desk), view(&desk).wanted.version), (vec![], 1), "the same circuits in another order");
}

#[test]
fn a_controller_that_is_given_up_for_its_silence_is_not_believed() {
    let mut desk = lit(2);
    let scope = WatchScope { circuits: true, installs: true, ..WatchScope::default() };
    desk.engine.watch("ocs", scope, desk.now).unwrap();
    report(&mut desk, &[(0, 1)], &[]).unwrap();
    assert!(view(&desk).attended);
    desk.out.clear();
    for _ in 0..600 {
        desk.pass(SECOND);
    }
    let left = |effect: &Effect| matches!(effect, Effect::ControllerLeft { watcher } if **watcher == *"ocs");
    assert!(desk.out.iter().any(left) && !view(&desk).attended);
    watches(&mut desk, "other");
    assert!(report_of(&mut desk, "other", &[], &[]).unwrap().another);
}

#[test]
fn one_controller_reports_at_a_time_and_what_one_said_that_is_gone_is_not_believed() {
    let mut desk = lit(3);
    controlled(&mut desk);
    watches(&mut desk, "other");
    shuffles(&mut desk, 1, (0, 1), 9 * GIGABIT_SECOND);
    desk.pass(SECOND);
    report(&mut desk, &[(0, 1)], &[]).unwrap();
    let second = report_of(&mut desk, "other", &[], &[]);
    assert!(
        matches!(&second, Err(Refusal::Invalid { field, message }) if field == "watcher" && message.contains("ocs"))
    );
    desk.pass(SECOND);
    let left = |desk: &Desk| view(desk).wanted.circuits[0].demand.expected;
    assert_eq!((view(&desk).is_set(), left(&desk)), (true, Bytes(8 * GIGABIT_SECOND)));
    desk.engine.unwatch("other", desk.now);
    assert!(view(&desk).is_set());
    desk.now = desk.now.plus(Micros::from_millis(500));
    desk.engine.unwatch("ocs", desk.now);
    desk.pass(SECOND);
    let half = Bytes(15 * GIGABIT_SECOND / 2);
    assert_eq!((view(&desk).is_set(), left(&desk)), (false, half), "until it left; then nobody knows that it carries");
    assert!(matches!(report(&mut desk, &[], &[]), Err(Refusal::Unknown { what: "watcher", .. })), "it has no stream");
    watches(&mut desk, "ocs");
    assert!(!view(&desk).is_set(), "it has not said it again");
    watches(&mut desk, "other");
    assert!(report_of(&mut desk, "other", &[(0, 1)], &[]).unwrap().another);
    assert!(view(&desk).is_set());
    assert!(!report_of(&mut desk, "other", &[(0, 1)], &[]).unwrap().another);
}

#[test]
fn two_that_watch_by_one_name_are_counted_where_operators_look() {
    let mut desk = lit(3);
    controlled(&mut desk);
    assert_eq!(view(&desk).replaced, 0);
    watches(&mut desk, "ocs");
    watches(&mut desk, "other");
    assert_eq!((view(&desk).replaced, view(&desk).attended), (1, false));
    let scope = WatchScope { circuits: true, resume_after: Some(2), ..WatchScope::default() };
    desk.engine.watch("ocs", scope, desk.now).unwrap();
    assert_eq!(view(&desk).replaced, 2, "one that goes on where the other was as well");
    desk.engine.unwatch("ocs", desk.now);
    watches(&mut desk, "ocs");
    assert_eq!(view(&desk).replaced, 2, "its stream had ended");
}

#[test]
fn circuits_outlive_nodes_that_join_and_a_switch_that_is_down_has_none() {
    let mut desk = lit(2);
    watches(&mut desk, "ocs");
    shuffles(&mut desk, 1, (0, 1), 9 * ELEPHANT);
    desk.pass(SECOND);
    desk.out.clear();
    desk.register("stranger", "/rack-9", 1_024);
    desk.publish();
    desk.pass(SECOND);
    assert_eq!((told(&mut desk), pairs(&view(&desk).wanted)), (vec![], vec![(0, 1)]));
    desk.change(Change::Switch { name: OPTICAL_SWITCH.into(), up: false });
    desk.publish();
    desk.pass(SECOND);
    let news = told(&mut desk);
    assert_eq!((news.len(), pairs(&news[0]), news[0].cause), (1, vec![], "topology"));
    assert_eq!(unserved(&view(&desk).wanted)[0].2, "switch_down");
    desk.change(Change::Switch { name: OPTICAL_SWITCH.into(), up: true });
    desk.publish();
    desk.pass(SECOND);
    assert_eq!(pairs(&view(&desk).wanted), [(0, 1)]);
}

#[test]
fn reports_that_make_no_sense_change_nothing() {
    let mut desk = lit(3);
    desk.pass(SECOND);
    let stranger = report(&mut desk, &[], &[]);
    assert!(matches!(stranger, Err(Refusal::Unknown { what: "watcher", .. })), "{stranger:?}");
    watches(&mut desk, "ocs");
    report(&mut desk, &[(0, 1)], &[(2, PortState::Failed)]).unwrap();
    let before = view(&desk);
    let field =
        |desk: &mut Desk, report: CircuitReport| match desk.engine.report_circuits(&"ocs".into(), report, desk.now) {
            Err(Refusal::Invalid { field, .. }) => field,
            other => panic!("{other:?}"),
        };
    let set = |pairs: &[(LinkName, LinkName)]| CircuitReport { set: pairs.to_vec(), ..CircuitReport::default() };
    assert_eq!(field(&mut desk, CircuitReport { version: 99, ..CircuitReport::default() }), "version");
    assert_eq!(field(&mut desk, set(&[(port(0), "nowhere".into())])), "set[0].output");
    assert_eq!(field(&mut desk, set(&[(port(0), port(0))])), "set[0].output", "a circuit leads elsewhere");
    let twice = [PortState::Failed, PortState::Stuck]
        .map(|state| PortReport { port: port(2), state, reason: Arc::default() })
        .to_vec();
    assert_eq!(field(&mut desk, CircuitReport { ports: twice, ..CircuitReport::default() }), "ports[1].port");
    assert_eq!(field(&mut desk, set(&[(port(0), port(1)), (port(2), port(1))])), "set[1].output");
    assert_eq!(field(&mut desk, set(&[(port(0), port(1)), (port(0), port(2))])), "set[1].input");
    let dark = vec![PortReport { port: port(1), state: PortState::Failed, reason: "".into() }];
    let lit = vec![(port(0), port(1))];
    assert_eq!(field(&mut desk, CircuitReport { set: lit, ports: dark, ..CircuitReport::default() }), "set[0].output");
    let ports = vec![PortReport { port: "nowhere".into(), state: PortState::Failed, reason: "".into() }];
    assert_eq!(field(&mut desk, CircuitReport { ports, ..CircuitReport::default() }), "ports[0].port");
    assert_eq!(view(&desk), before);
}

#[test]
fn a_watch_that_comes_back_hears_what_it_missed_and_one_without_circuits_nothing() {
    let mut desk = lit(3);
    desk.pass(SECOND);
    let first = watches(&mut desk, "ocs");
    let other = WatchScope { flows: true, ..WatchScope::default() };
    let plain = desk.engine.watch("plain", other, desk.now).unwrap();
    assert!(plain[0].circuits.is_none());
    desk.engine.unwatch("ocs", desk.now);
    shuffles(&mut desk, 1, (0, 1), 2 * ELEPHANT);
    desk.pass(SECOND);
    let wanted: Vec<_> = told(&mut desk);
    assert_eq!(wanted, [], "nobody is there");
    let scope = WatchScope { circuits: true, resume_after: Some(first.number), ..WatchScope::default() };
    let missed = desk.engine.watch("ocs", scope, desk.now).unwrap();
    assert_eq!(missed.len(), 1);
    let circuits = missed[0].circuits.as_ref().unwrap();
    assert_eq!((missed[0].cause, &*missed[0].subject, pairs(circuits)), ("circuits", "demand", vec![(0, 1)]));
}

#[derive(Debug, Clone)]
enum Step {
    Shuffle(usize, usize, u64),
    Over(usize),
    /// How each port is, and whether the controller has set what is wanted.
    Report(Vec<u8>, bool),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_usize..4, 0_usize..4, 1_u64..40).prop_map(|(from, to, units)| Step::Shuffle(from, to, units * ELEPHANT / 4)),
        1 => (0_usize..20).prop_map(Step::Over),
        2 => (prop::collection::vec(0_u8..6, 4), any::<bool>()).prop_map(|(states, sets)| Step::Report(states, sets)),
        3 => (50_u64..2_500).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happens_wanted_circuits_are_a_matching_of_working_ports_and_versions_count_up(
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut desk = lit(4);
        watches(&mut desk, "ocs");
        let (mut number, mut version, mut bad) = (0, 0, BTreeSet::new());
        let mut set: Vec<(usize, usize)> = Vec::new();
        desk.pass(SECOND);
        for step in steps {
            match step {
                Step::Shuffle(from, to, bytes) => {
                    number += 1;
                    shuffles(&mut desk, number, (from, to), bytes);
                }
                Step::Over(which) if which < number as usize => {
                    tell(&mut desk, which as u32 + 1, "", 0, TaskWhat::Done { failed: false });
                }
                Step::Over(_) => {}
                Step::Report(states, sets) => {
                    let ports: Vec<(usize, PortState)> = states.iter().enumerate().filter_map(|(rack, state)| match state {
                        0 => Some((rack, PortState::Failed)),
                        1 => Some((rack, PortState::Stuck)),
                        _ => None,
                    }).collect();
                    if sets {
                        set = pairs(&view(&desk).wanted);
                    }
                    let failed = |rack| ports.contains(&(rack, PortState::Failed));
                    set.retain(|&(from, to)| !failed(from) && !failed(to));
                    bad = ports.iter().map(|(rack, _)| *rack).collect();
                    report(&mut desk, &set, &ports).unwrap();
                }
                Step::Pass(ms) => desk.pass(Micros::from_millis(ms)),
            }
            let mut news = told(&mut desk);
            news.push(view(&desk).wanted);
            for wanted in &news {
                let found = pairs(wanted);
                let inputs: BTreeSet<usize> = found.iter().map(|(from, _)| *from).collect();
                let outputs: BTreeSet<usize> = found.iter().map(|(_, to)| *to).collect();
                prop_assert_eq!((inputs.len(), outputs.len()), (found.len(), found.len()), "{:?}", found);
            }
            let counts: Vec<u64> = news.iter().map(|wanted| wanted.version).collect();
            prop_assert!(counts.iter().all(|&next| { let fine = next == version || next == version + 1 || version == 0; version = next; fine }), "{:?}", counts);
            let now = pairs(&news.pop().unwrap());
            prop_assert!(now.iter().all(|(from, to)| !bad.contains(from) && !bad.contains(to)), "{:?} of {:?}", now, bad);
        }
    }
}
