//! Dispatch: what waits is offered, launched, told why not, placed otherwise, and survives what happens meanwhile.

mod elsewhere;
mod learnt;
mod random;

use super::harness::{EngineHarness, container, running};
use crate::testing::{ask, attempt, request};
use crate::{
    Answer, CommitOutcome, Counter, Decision, Effect, EngineSettings, FollowBody, Mode, Refusal, SelectedPolicy,
    TaskWhat, may_wait, propose, propose_waiting,
};
use hintd_model::cluster::{Change, HintRequest, LinkLoad, NamedBlock, NamedDataset, Resource};
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{BitsPerSec, Bytes, LeaseId, Micros, NodeIdx, RackIdx};
use hintd_policy::dispatch::{Advice, Dispatch, DispatchEvent, DynDispatch, Offer, TaskRef, View, WaitingGroup};
use hintd_policy::{Policy, registry};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// First come, first served; a task with input waits for its nodes, a reduce for racks that are not busy.
struct Choosy {
    strict: bool,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Seen {
    groups: Vec<WaitingGroup>,
    /// By group.
    waiting: Vec<BTreeSet<u32>>,
    busy: BTreeSet<RackIdx>,
    launched: u32,
    ended: u32,
}

impl Policy for Choosy {
    fn name(&self) -> &'static str {
        "choosy"
    }

    fn summary(&self) -> &'static str {
        "a test's"
    }

    fn params_toml(&self) -> String {
        format!("strict = {}", self.strict)
    }

    fn as_dispatch(&self) -> Option<&dyn DynDispatch> {
        Some(self)
    }
}

impl Dispatch for Choosy {
    type State = Seen;

    fn start(&self) -> Seen {
        Seen::default()
    }

    fn observe(&self, seen: &mut Seen, event: &DispatchEvent, _view: &View<'_>) {
        let at = |seen: &Seen, task: &TaskRef| {
            seen.groups.iter().position(|group| group.attempt == task.attempt && group.group == task.group)
        };
        match event {
            DispatchEvent::Waiting(group) => {
                seen.waiting.push((0..group.count).collect());
                seen.groups.push(group.clone());
            }
            DispatchEvent::Launched { task, .. } => {
                let at = at(seen, task).expect("it was told of");
                assert!(seen.waiting[at].remove(&task.index), "{task:?} was launched twice");
                seen.launched += 1;
            }
            DispatchEvent::Finished { task, failed, .. } => {
                seen.ended += 1;
                if *failed {
                    let at = at(seen, task).expect("it was told of");
                    assert!(seen.waiting[at].insert(task.index), "{task:?} failed while it waited");
                }
            }
            DispatchEvent::Lost(task) => {
                let at = at(seen, task).expect("it was told of");
                seen.waiting[at].insert(task.index);
            }
            DispatchEvent::Done(attempt) => {
                let keep: Vec<bool> = seen.groups.iter().map(|group| group.attempt != *attempt).collect();
                let mut keeps = keep.iter();
                seen.groups.retain(|_| *keeps.next().unwrap());
                let mut keeps = keep.iter();
                seen.waiting.retain(|_| *keeps.next().unwrap());
            }
            DispatchEvent::RackUse { rack, per_mille } => {
                if *per_mille >= 800 {
                    seen.busy.insert(*rack);
                } else if *per_mille < 750 {
                    seen.busy.remove(rack);
                }
            }
            DispatchEvent::Run { .. }
            | DispatchEvent::Recurs { .. }
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Plan(_) => {}
        }
    }

    fn offer(&self, seen: &mut Seen, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let mut advice = Vec::new();
        for (group, waiting) in seen.groups.iter().zip(&seen.waiting).filter(|(_, waiting)| !waiting.is_empty()) {
            let not_yet = |reason: &str| Advice::NotYet {
                attempt: group.attempt,
                group: group.group.clone(),
                reason: reason.to_owned(),
                expected_wait: Some(Micros::from_secs(3)),
            };
            let local = |task: &&u32| match group.inputs.get(**task as usize) {
                Some(input) if self.strict => input.nodes.contains(&offer.node),
                _ => true,
            };
            let task = waiting.iter().find(local).filter(|_| view.snapshot.rules.feasible(&group.size, &offer.free));
            if &*group.role == "reduce" && seen.busy.contains(&view.snapshot.rack(offer.node)) {
                advice.push(not_yet("rack_congested"));
            } else if let Some(&index) = task {
                return vec![Advice::Launch(TaskRef { attempt: group.attempt, group: group.group.clone(), index })];
            } else {
                advice.push(not_yet("not_local"));
            }
        }
        advice
    }
}

fn choosy() -> Arc<dyn Policy> {
    Arc::new(Choosy { strict: true })
}

fn chosen(policy: &Arc<dyn Policy>) -> SelectedPolicy<'_> {
    SelectedPolicy { policy: &**policy, baseline: &**policy, mode: Mode::On, name: policy.name() }
}

impl EngineHarness {
    pub(super) fn wait(&mut self, policy: &Arc<dyn Policy>, request: HintRequest) -> Arc<Answer> {
        let request = Arc::new(request);
        assert!(may_wait(&request, &chosen(policy)));
        let generation = self.engine.generation();
        let proposal = propose_waiting(&generation, &request, &chosen(policy), policy, &self.placer, self.now).unwrap();
        match self.commit(proposal) {
            CommitOutcome::Committed(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// An idle node's report, and what it brings.
    pub(super) fn offer(&mut self, host: &str) -> Vec<Arc<Answer>> {
        self.beat(host, 0, Some(&[]));
        self.publish();
        self.pushed()
    }

    pub(super) fn pushed(&mut self) -> Vec<Arc<Answer>> {
        let out = std::mem::take(&mut self.out);
        let (hints, rest) = out.into_iter().partition(|effect| matches!(effect, Effect::Hints { .. }));
        self.out = rest;
        let answer = |effect: Effect| match effect {
            Effect::Hints { answer, cause: "offer", .. } => answer,
            other => panic!("{other:?}"),
        };
        Vec::into_iter(hints).map(answer).collect()
    }

    fn reasons(&mut self) -> Vec<(String, Option<Micros>)> {
        let reason = |effect: Effect| match effect {
            Effect::Follow { message: FollowBody::NotYet { reason, expected_wait, .. }, .. } => {
                Some((reason.to_string(), expected_wait))
            }
            _ => None,
        };
        std::mem::take(&mut self.out).into_iter().filter_map(reason).collect()
    }

    pub(super) fn late(&mut self) -> Vec<Arc<HintRequest>> {
        let late = |effect: Effect| match effect {
            Effect::Late { request } => Some(request),
            _ => None,
        };
        std::mem::take(&mut self.out).into_iter().filter_map(late).collect()
    }

    pub(super) fn place_late(&mut self, late: &Arc<HintRequest>) -> CommitOutcome {
        let capacity: Arc<dyn Policy> = registry::with_defaults("capacity").unwrap().into();
        let generation = self.publish();
        let proposal = propose(&generation, late, &chosen(&capacity), &self.placer, self.now, &mut || false).unwrap();
        self.commit(proposal)
    }

    pub(super) fn waiting(&self) -> u64 {
        self.engine.counts().waiting
    }

    fn blocks(&mut self, path: &str, hosts: &[&str]) {
        let block = |(id, host): (u64, &&str)| NamedBlock { id, bytes: Bytes(1 << 20), hosts: vec![(*host).into()] };
        let blocks = (0..).zip(hosts).map(block).collect();
        self.change(Change::Dataset(Arc::new(NamedDataset { path: path.into(), blocks })));
        self.publish();
    }
}

/// Maps that read one block each, on these hosts.
fn reading(harness: &mut EngineHarness, id: &str, hosts: &[&str]) -> HintRequest {
    let path = format!("/in/{id}");
    harness.blocks(&path, hosts);
    let mut asked = request(id, &[("map", hosts.len() as u32)]);
    asked.input_paths = vec![path.as_str().into()];
    asked
}

fn placed(decision: &Decision) -> Vec<(String, u32, u32, usize)> {
    let hints = decision.hints.iter();
    hints.map(|hint| (hint.host.to_string(), hint.first_index, hint.count, hint.leases.len())).collect()
}

#[test]
fn what_can_start_is_leased_at_once_and_the_rest_is_pending_with_a_reason() {
    let mut harness = EngineHarness::with_nodes(3, 2048);
    let mut asked = reading(&mut harness, "a", &["h1", "h1", "h1", "h9"]);
    asked.asks = vec![ask(asked.groups[0].key, "*", 4)];
    let decision = harness.wait(&choosy(), asked).decision.clone();
    assert_eq!(placed(&decision), [("h1".to_owned(), 0, 2, 2)]);
    let [pending] = &decision.pending[..] else { panic!("{:?}", decision.pending) };
    assert_eq!((&*pending.group, pending.count, &*pending.reason), ("map", 2, "not_local"));
    assert_eq!(pending.expected_wait, Some(Micros::from_secs(3)));
    let table: Vec<_> = decision.asks.iter().map(|ask| (&*ask.resource_name, ask.count)).collect();
    assert_eq!(table, [("h1", 2), ("/r0", 2), ("*", 2)], "what waits is not asked for");
    assert!(decision.degraded.iter().any(|token| token == "no_link_stats"), "{:?}", decision.degraded);
    assert_eq!((harness.waiting(), harness.leases().len()), (2, 2));
}

#[test]
fn a_report_with_room_launches_what_waits_and_the_hint_is_journalled_with_its_lease() {
    let mut harness = EngineHarness::with_nodes(2, 1024);
    let asked = reading(&mut harness, "a", &["h1", "h1"]);
    let first = harness.wait(&choosy(), asked);
    assert_eq!((first.leases().count(), harness.waiting()), (1, 1));
    assert!(harness.offer("h0").is_empty(), "not its node");
    harness.allocated("h1", container(attempt(1, 1), 2), first.leases().next());
    harness.beat("h1", 1024, Some(&[running(container(attempt(1, 1), 2))]));
    harness.publish();
    assert!(harness.pushed().is_empty(), "no room");
    let pushed = harness.offer("h1");
    let [answer] = &pushed[..] else { panic!("{pushed:?}") };
    assert_eq!(placed(&answer.decision), [("h1".to_owned(), 1, 1, 1)]);
    assert_eq!((answer.token.clone(), harness.waiting()), (first.token.clone(), 0));
    assert!(answer.decision.id > first.decision.id);
    assert_eq!(harness.leases().len(), 1);
    harness.restart();
    assert_eq!(harness.leases().len(), 1, "what was pushed is kept");
    let kept = harness.engine.explain(answer.decision.id).unwrap().unpack();
    assert_eq!((&*kept.answer, kept.leases[0].state), (&**answer, "held"));
    assert_eq!(harness.waiting(), 0, "what waits comes again when its application asks again");
}

/// Two racks of two hosts under a core switch; what the uplinks carry, bits/s.
pub(super) fn wired() -> EngineHarness {
    let built = tree(&TreeSpec { racks: 2, hosts_per_rack: 2, ..TreeSpec::default() }).unwrap();
    let mut harness = EngineHarness::new();
    harness.change(Change::Network(Some(Arc::new(built.network))));
    for (rack, hosts) in &built.racks {
        for host in hosts {
            harness.register(host.as_str(), rack.as_str(), 4096);
            harness.beat(host.as_str(), 0, Some(&[]));
        }
    }
    harness.publish();
    harness
}

fn load(harness: &mut EngineHarness, rack_of: &str, share: f64) {
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    let network = snapshot.topology.network.clone().unwrap();
    let host = network.vertex(rack_of).unwrap();
    let switch = network.attachment(host).unwrap();
    let uplinks = network.links_of(switch).filter(|(_, link)| !network.vertex_at(link.other(switch)).is_host());
    for (_, link) in uplinks {
        let busy = BitsPerSec((link.capacity.as_f64() * share) as u64);
        let (a_to_b, b_to_a) = if link.a == switch { (busy, BitsPerSec(0)) } else { (BitsPerSec(0), busy) };
        harness.change(Change::LinkLoad(link.name.clone(), LinkLoad::steady(a_to_b, b_to_a)));
    }
    harness.publish();
}

#[test]
fn a_congested_rack_by_link_counters_holds_back_and_lets_go_when_it_ends() {
    let mut harness = wired();
    let statics = Arc::clone(&harness.engine.current_snapshot().statics);
    let hosts: Vec<String> = statics.host.iter().map(ToString::to_string).collect();
    let rack = |host: &str| statics.rack[statics.find(host).unwrap().at()];
    let busy = hosts.iter().filter(|host| rack(host) == rack(&hosts[0])).cloned().collect::<Vec<_>>();
    for host in &hosts {
        load(&mut harness, host, 0.9);
    }
    let answer = harness.wait(&choosy(), request("a", &[("reduce", 2)]));
    assert_eq!(&*answer.decision.pending[0].reason, "rack_congested");
    assert!(!answer.decision.degraded.iter().any(|token| token == "no_link_stats"));
    assert!(harness.offer(&busy[0]).is_empty());
    load(&mut harness, &busy[0], 0.76);
    assert!(harness.offer(&busy[0]).is_empty(), "not before it is well below");
    load(&mut harness, &busy[0], 0.5);
    assert_eq!(placed(&harness.offer(&busy[0])[0].decision), [(busy[0].clone(), 0, 2, 2)]);
    harness.wait(&choosy(), request("b", &[("reduce", 8)]));
    let others = harness.waiting();
    assert!(others > 0, "the other rack is still congested");
    for _ in 0..61 {
        harness.now = harness.now.plus(Micros::from_secs(1));
        for host in &hosts {
            harness.beat(host, 0, Some(&[]));
        }
        harness.publish();
    }
    assert!(harness.waiting() < others, "counters that are old say nothing");
}

#[test]
fn an_application_is_told_each_reason_once_and_not_too_often() {
    let mut harness = wired();
    let hosts: Vec<String> = harness.engine.current_snapshot().statics.host.iter().map(ToString::to_string).collect();
    let offer_all = |harness: &mut EngineHarness, share: f64| {
        for host in &hosts {
            load(harness, host, share);
            harness.beat(host, 4096, Some(&[]));
        }
        harness.publish();
        harness.beat(&hosts[0], if share < 0.5 { 4096 } else { 0 }, Some(&[]));
        harness.publish();
        harness.reasons().into_iter().map(|(reason, _)| reason).collect::<Vec<_>>()
    };
    let path = reading(&mut harness, "a", &["h9"]);
    let mut asked = request("b", &[("reduce", 1)]);
    asked.groups[0].input_paths = path.input_paths;
    let answer = harness.wait(&choosy(), asked);
    assert_eq!(&*answer.decision.pending[0].reason, "not_local");
    assert_eq!(offer_all(&mut harness, 0.9), [""; 0], "the answer gave another reason less than a second ago");
    harness.now = harness.now.plus(Micros::from_millis(1_100));
    assert_eq!(offer_all(&mut harness, 0.9), ["rack_congested"]);
    for _ in 0..5 {
        harness.now = harness.now.plus(Micros::from_millis(1_100));
        assert_eq!(offer_all(&mut harness, 0.9), [""; 0], "it knows");
    }
    harness.now = harness.now.plus(Micros::from_millis(1_100));
    assert_eq!(offer_all(&mut harness, 0.5), ["not_local"], "the reason is another one");
}

#[test]
fn what_waits_for_too_long_while_there_is_room_gets_an_ordinary_placement_once() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    let asked = reading(&mut harness, "a", &["h9", "h9", "h1"]);
    let first = harness.wait(&choosy(), asked);
    assert_eq!(placed(&first.decision), [("h1".to_owned(), 2, 1, 1)]);
    harness.pass(Micros::from_millis(4_900));
    assert!(harness.late().is_empty());
    harness.beat("h0", 0, Some(&[]));
    harness.beat("h1", 0, Some(&[]));
    harness.pass(Micros::from_millis(100));
    let late = harness.late();
    let [request] = &late[..] else { panic!("{late:?}") };
    assert_eq!((request.containers(), request.groups.len()), (2, 1));
    harness.pass(Micros::from_millis(100));
    assert!(harness.late().is_empty(), "once");
    let CommitOutcome::Committed(answer) = harness.place_late(request) else { panic!("there is room") };
    assert_eq!((answer.leases().count(), harness.waiting(), harness.leases().len()), (2, 0, 3));
    harness.offer("h0");
    assert_eq!(harness.leases().len(), 3);
    harness.pass(Micros::from_secs(6));
    assert!(harness.late().is_empty());
    assert_eq!(harness.count(Counter::DispatchLate), 2);
}

#[test]
fn without_room_nothing_is_placed_otherwise_and_the_application_is_told() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    harness.wait(&choosy(), request("a", &[("map", 2)]));
    for _ in 0..2 {
        harness.pass(Micros::from_secs(5));
        harness.beat("h0", 0, Some(&[]));
        harness.publish();
        assert!(!harness.out.iter().any(|effect| matches!(effect, Effect::Late { .. })), "there is no room");
        assert_eq!(harness.reasons(), [], "that it has none was said in the answer");
    }
    let lease = harness.leases()[0].0;
    harness.give_back(attempt(1, 1), &[lease]);
    harness.pass(Micros::from_secs(5));
    let late = harness.late();
    assert_eq!((late.len(), late[0].containers()), (1, 1), "there is room, and nobody reported it");
    harness.beat("h0", 1024, Some(&[]));
    let CommitOutcome::Refused(Refusal::Full { .. }) = harness.place_late(&late[0]) else { panic!("it is gone") };
    assert_eq!((harness.waiting(), harness.leases().len()), (1, 0));
    harness.beat("h0", 0, Some(&[]));
    harness.publish();
    assert_eq!((harness.pushed().len(), harness.waiting()), (1, 0), "it waited for offers as before");
}

#[test]
fn few_are_placed_otherwise_at_one_time() {
    let mut harness = EngineHarness::with_nodes(1, 2048);
    let asked = reading(&mut harness, "a", &["h9"]);
    for at in 0..70 {
        let mut more = request(&format!("r{at}"), &[("map", 1)]);
        more.input_paths.clone_from(&asked.input_paths);
        harness.wait(&choosy(), more);
    }
    harness.pass(Micros::from_secs(5));
    let late = harness.late();
    assert_eq!(late.len(), 64);
    harness.pass(Micros::from_millis(100));
    assert_eq!(harness.late().len(), 0, "they are not answered yet");
    let CommitOutcome::Committed(_) = harness.place_late(&late[0]) else { panic!("there is room") };
    harness.pass(Micros::from_millis(100));
    assert_eq!(harness.late().len(), 1);
    harness.beat("h0", 0, Some(&[]));
    harness.pass(Micros::from_millis(2_500));
    assert_eq!(harness.late().len(), 5, "an answer that does not come is not waited for");
}

#[test]
fn reduces_do_not_count_as_late_before_their_maps_are_done() {
    let mut harness = wired();
    let hosts: Vec<String> = harness.engine.current_snapshot().statics.host.iter().map(ToString::to_string).collect();
    for host in &hosts {
        load(&mut harness, host, 0.9);
    }
    let answer = harness.wait(&choosy(), request("a", &[("map", 1), ("reduce", 1)]));
    let map = &answer.decision.hints[0];
    harness.allocated(map.host.as_str(), container(attempt(1, 1), 2), map.leases.first().copied());
    let stays = |harness: &mut EngineHarness| {
        for host in &hosts {
            load(harness, host, 0.9);
            let maps = [running(container(attempt(1, 1), 2))];
            harness.beat(host, 0, Some(if *host == map.host.as_str() { &maps } else { &[] }));
        }
        harness.pass(Micros::from_secs(5));
    };
    for _ in 0..4 {
        stays(&mut harness);
        assert!(harness.late().is_empty(), "its map runs");
    }
    harness.event(attempt(1, 1), "map", finished(map.host.as_str(), false));
    stays(&mut harness);
    assert!(harness.late().is_empty(), "its time begins now");
    stays(&mut harness);
    assert_eq!(harness.late().len(), 1);
}

fn finished(host: &str, failed: bool) -> TaskWhat {
    TaskWhat::Finished { host: host.into(), duration: Micros::from_secs(1), input: Bytes(10), output: Bytes(5), failed }
}

#[test]
fn a_lease_that_expires_puts_its_task_back_until_nobody_seems_to_be_there() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    harness.wait(&choosy(), request("a", &[("map", 1)]));
    for life in 1..8 {
        assert_eq!((harness.waiting(), harness.leases().len()), (0, 1), "life {life}");
        harness.pass(Micros::from_secs(31));
        assert_eq!((harness.waiting(), harness.leases().len()), (1, 0), "life {life}");
        harness.offer("h0");
    }
    harness.pass(Micros::from_secs(31));
    assert_eq!((harness.waiting(), harness.leases().len()), (0, 0));
    assert!(harness.offer("h0").is_empty());
}

#[test]
fn tasks_of_a_lost_node_wait_again_and_are_not_placed_twice() {
    let mut harness = EngineHarness::with_nodes(2, 2048);
    let answer = harness.wait(&choosy(), request("a", &[("map", 4)]));
    assert_eq!((answer.leases().count(), harness.waiting()), (4, 0));
    let on_h0 = answer.decision.hints.iter().find(|hint| hint.host.as_str() == "h0").unwrap();
    let ran = container(attempt(1, 1), 2);
    harness.allocated("h0", ran, on_h0.leases.first().copied());
    harness.beat("h0", 1024, Some(&[running(ran)]));
    harness.publish();
    harness.change(Change::Gone("h0".into()));
    harness.publish();
    assert_eq!((harness.waiting(), harness.leases().len(), harness.replaced().len()), (2, 2, 0));
    for lease in harness.leases() {
        harness.give_back(attempt(1, 1), &[lease.0]);
    }
    harness.drain();
    let pushed = harness.offer("h1");
    assert_eq!(pushed.iter().map(|answer| answer.leases().count()).sum::<usize>(), 2);
}

#[test]
fn a_preview_says_what_would_be_and_leases_nothing() {
    let mut harness = EngineHarness::with_nodes(2, 1024);
    harness.wait(&choosy(), request("a", &[("map", 1)]));
    let mut asked = request("b", &[("map", 3)]);
    asked.attempt = attempt(2, 1);
    let (asked, policy) = (Arc::new(asked), choosy());
    let generation = harness.publish();
    let proposal =
        propose_waiting(&generation, &asked, &chosen(&policy), &policy, &harness.placer, harness.now).unwrap();
    let before = (harness.leases(), harness.waiting(), harness.rows.clone());
    let apart = harness.engine.detached_dispatcher(&proposal, harness.now).unwrap().unwrap();
    let preview = apart.preview(proposal);
    harness.drain();
    assert_eq!((preview.hints.len(), preview.pending[0].count), (1, 2));
    assert_eq!((harness.leases(), harness.waiting(), harness.rows.clone()), before);
}

#[test]
fn another_setting_of_the_policy_takes_over_what_waits_and_runs() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    let asked = reading(&mut harness, "a", &["h9", "h9", "h1"]);
    let answer = harness.wait(&choosy(), asked);
    harness.allocated("h1", container(attempt(1, 1), 2), answer.leases().next());
    harness.event(attempt(1, 1), "map", finished("h1", false));
    assert!(harness.offer("h0").is_empty());
    let lax: Arc<dyn Policy> = Arc::new(Choosy { strict: false });
    harness.engine.redispatch(&|name| (name == "choosy").then(|| Arc::clone(&lax)), harness.now);
    let pushed = harness.offer("h0");
    assert_eq!(placed(&pushed[0].decision), [("h0".to_owned(), 0, 2, 2)], "and task 2 is not launched again");
}

#[test]
fn a_decision_that_the_journal_did_not_take_leaves_nothing_that_waits() {
    let mut harness = EngineHarness::with_nodes(2, 1024);
    let asked = reading(&mut harness, "a", &["h1", "h1"]);
    let first = harness.wait(&choosy(), asked);
    harness.engine.undo(first.decision.id, harness.now);
    harness.drain();
    assert_eq!((harness.waiting(), harness.leases().len()), (0, 0));
    let asked = reading(&mut harness, "b", &["h1", "h1"]);
    let first = harness.wait(&choosy(), asked);
    harness.give_back(attempt(1, 1), &[]);
    let pushed = harness.offer("h1");
    assert_eq!((first.leases().count(), pushed.len(), harness.waiting()), (1, 1, 0));
    harness.engine.undo(pushed[0].decision.id, harness.now);
    harness.drain();
    assert_eq!((harness.waiting(), harness.leases().len()), (1, 0), "a push that was not promised waits again");
    assert_eq!(harness.offer("h1").len(), 1);
}

#[test]
fn what_dispatchers_know_nothing_of_is_placed_at_once() {
    let policy = choosy();
    let mut asked = request("a", &[("map", 1)]);
    assert!(may_wait(&asked, &chosen(&policy)));
    asked.groups[0].label = Some("gpu".into());
    assert!(!may_wait(&asked, &chosen(&policy)));
    let spread: Arc<dyn Policy> = registry::with_defaults("spread").unwrap().into();
    assert!(!may_wait(&request("b", &[("map", 1)]), &chosen(&spread)));
    let mut asked = request("c", &[("map", 1)]);
    asked.asks = vec![hintd_model::cluster::Ask { relax_locality: false, ..ask(asked.groups[0].key, "*", 1) }];
    assert!(!may_wait(&asked, &chosen(&policy)));
}

fn of(application: u32, asked: HintRequest) -> HintRequest {
    HintRequest { attempt: attempt(application, 1), ..asked }
}

fn bounded(harness: &mut EngineHarness, settings: EngineSettings) {
    harness.engine.reload(settings, harness.now);
    harness.drain();
}

#[test]
fn an_attempt_too_many_takes_what_was_launched_of_it_along() {
    let mut harness = EngineHarness::with_nodes(1, 2048);
    bounded(&mut harness, EngineSettings { attempts_max: 2, ..EngineSettings::default() });
    let first = harness.wait(&choosy(), request("a", &[("map", 2)]));
    harness.wait(&choosy(), of(2, request("b", &[("map", 1)])));
    let lease = first.leases().next().unwrap();
    harness.give_back(attempt(1, 1), &[lease]);
    harness.drain();
    harness.wait(&choosy(), of(3, request("c", &[("map", 1)])));
    assert!(harness.pushed().is_empty(), "the second was forgotten for the third");
    assert_eq!((harness.engine.counts().attempts, harness.waiting(), harness.leases().len()), (2, 1, 1));
    assert_eq!(harness.offer("h0").len(), 1, "its room is free for the third");
}

#[test]
fn launches_stop_where_no_more_leases_may_be_held() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    bounded(&mut harness, EngineSettings { leases_max: 3, ..EngineSettings::default() });
    let answer = harness.wait(&choosy(), request("a", &[("map", 6)]));
    assert_eq!((answer.leases().count(), harness.waiting()), (3, 3));
    harness.give_back(attempt(1, 1), &[LeaseId(0), harness.leases()[0].0]);
    harness.drain();
    harness.offer("h0");
    assert_eq!((harness.leases().len(), harness.waiting()), (3, 2));
}

#[test]
fn a_container_that_no_node_ever_names_ends_with_its_lease() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    let answer = harness.wait(&choosy(), request("a", &[("map", 1)]));
    harness.allocated("h0", container(attempt(1, 1), 2), answer.leases().next());
    let lost = |harness: &mut EngineHarness| {
        harness.event(attempt(1, 1), "map", TaskWhat::Ready { input_paths: Vec::new(), input: Bytes(0) });
        harness.waiting()
    };
    let lasts = harness.settings.lasts(true);
    let from = harness.now;
    while harness.now.since(from) < lasts {
        assert_eq!((harness.leases().len(), lost(&mut harness)), (1, 0), "it may still come");
        harness.beat("h0", 0, Some(&[]));
        harness.pass(Micros::from_secs(5));
    }
    assert_eq!((harness.leases().len(), lost(&mut harness)), (0, 1), "its output can be lost, for it has ended");
}

#[test]
fn a_request_is_answered_as_before_for_as_long_as_something_of_it_waits() {
    let mut harness = EngineHarness::with_nodes(1, 1024);
    let asked = reading(&mut harness, "a", &["h9"]);
    harness.wait(&choosy(), asked);
    let from = harness.now;
    let keeps = |harness: &mut EngineHarness, longer: u64| {
        while harness.now.since(from) < Micros(harness.settings.answers_keep.0 + 1_000_000 * longer) {
            harness.beat("h0", 0, Some(&[]));
            harness.pass(Micros::from_secs(5));
        }
        harness.engine.answered(&"a".into())
    };
    assert!(keeps(&mut harness, 5) && harness.waiting() == 1);
    harness.allocated("h0", container(attempt(1, 1), 2), None);
    assert!(!keeps(&mut harness, 700), "nothing waits any more");
}

#[test]
fn a_task_of_which_only_its_end_is_told_ends_once() {
    let mut harness = EngineHarness::with_nodes(1, 2048);
    harness.wait(&choosy(), request("a", &[("map", 2)]));
    let app = attempt(1, 1);
    harness.beat("h0", 2048, Some(&[running(container(app, 2)), running(container(app, 3))]));
    harness.publish();
    for _ in 0..2 {
        harness.event(app, "map", finished("h0", true));
        assert_eq!(harness.waiting(), 1, "Follow and the feed carry the same");
    }
}

#[test]
fn applications_may_name_requests_as_they_like() {
    let mut harness = EngineHarness::with_nodes(2, 1024);
    let asked = Arc::new(request("job/late/1/2", &[("map", 1)]));
    let mut proposal = harness.propose(&asked).unwrap();
    proposal.digest = 7;
    let CommitOutcome::Committed(answer) = harness.commit(proposal) else { panic!("it is an ordinary request") };
    assert_eq!(answer.leases().count(), 1);
    harness.publish();
    let answer = harness.ask(of(2, request("job/offer/1", &[("map", 1)])));
    harness.change(Change::Gone(answer.decision.hints[0].host.clone()));
    harness.publish();
    assert_eq!(harness.replaced().len(), 1);
}
