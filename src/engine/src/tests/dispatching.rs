//! Dispatch: what waits is offered, launched, told why not, placed otherwise, and survives what happens meanwhile.

mod random;

use super::desk::{Desk, container, running};
use crate::testing::{ask, attempt, request};
use crate::{
    Answer, Chosen, CommitOutcome, Counter, Decision, Effect, EngineSettings, FollowBody, Mode, Refusal, TaskWhat,
    Token, may_wait, propose, propose_waiting,
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
            DispatchEvent::Run { .. } | DispatchEvent::Asks { .. } | DispatchEvent::Plan(_) => {}
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

fn chosen(policy: &Arc<dyn Policy>) -> Chosen<'_> {
    Chosen { policy: &**policy, baseline: &**policy, mode: Mode::On, name: policy.name() }
}

impl Desk {
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
fn reading(desk: &mut Desk, id: &str, hosts: &[&str]) -> HintRequest {
    let path = format!("/in/{id}");
    desk.blocks(&path, hosts);
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
    let mut desk = Desk::with_nodes(3, 2048);
    let mut asked = reading(&mut desk, "a", &["h1", "h1", "h1", "h9"]);
    asked.asks = vec![ask(asked.groups[0].key, "*", 4)];
    let decision = desk.wait(&choosy(), asked).decision.clone();
    assert_eq!(placed(&decision), [("h1".to_owned(), 0, 2, 2)]);
    let [pending] = &decision.pending[..] else { panic!("{:?}", decision.pending) };
    assert_eq!((&*pending.group, pending.count, &*pending.reason), ("map", 2, "not_local"));
    assert_eq!(pending.expected_wait, Some(Micros::from_secs(3)));
    let table: Vec<_> = decision.asks.iter().map(|ask| (&*ask.resource_name, ask.count)).collect();
    assert_eq!(table, [("h1", 2), ("/r0", 2), ("*", 2)], "what waits is not asked for");
    assert!(decision.degraded.iter().any(|token| token == "no_link_stats"), "{:?}", decision.degraded);
    assert_eq!((desk.waiting(), desk.leases().len()), (2, 2));
}

#[test]
fn a_report_with_room_launches_what_waits_and_the_hint_is_journalled_with_its_lease() {
    let mut desk = Desk::with_nodes(2, 1024);
    let asked = reading(&mut desk, "a", &["h1", "h1"]);
    let first = desk.wait(&choosy(), asked);
    assert_eq!((first.leases().count(), desk.waiting()), (1, 1));
    assert!(desk.offer("h0").is_empty(), "not its node");
    desk.allocated("h1", container(attempt(1, 1), 2), first.leases().next());
    desk.beat("h1", 1024, Some(&[running(container(attempt(1, 1), 2))]));
    desk.publish();
    assert!(desk.pushed().is_empty(), "no room");
    let pushed = desk.offer("h1");
    let [answer] = &pushed[..] else { panic!("{pushed:?}") };
    assert_eq!(placed(&answer.decision), [("h1".to_owned(), 1, 1, 1)]);
    assert_eq!((answer.token.clone(), desk.waiting()), (first.token.clone(), 0));
    assert!(answer.decision.id > first.decision.id);
    assert_eq!(desk.leases().len(), 1);
    desk.restart();
    assert_eq!(desk.leases().len(), 1, "what was pushed is kept");
    let kept = desk.engine.explain(answer.decision.id).unwrap();
    assert_eq!((&*kept.answer, kept.leases[0].state), (&**answer, "held"));
    assert_eq!(desk.waiting(), 0, "what waits comes again when its application asks again");
}

/// Two racks of two hosts under a core switch; what the uplinks carry, bits/s.
pub(super) fn wired() -> Desk {
    let built = tree(&TreeSpec { racks: 2, hosts_per_rack: 2, ..TreeSpec::default() }).unwrap();
    let mut desk = Desk::new();
    desk.change(Change::Network(Some(Arc::new(built.network))));
    for (rack, hosts) in &built.racks {
        for host in hosts {
            desk.register(host.as_str(), rack.as_str(), 4096);
            desk.beat(host.as_str(), 0, Some(&[]));
        }
    }
    desk.publish();
    desk
}

fn load(desk: &mut Desk, rack_of: &str, share: f64) {
    let snapshot = Arc::clone(desk.engine.settled());
    let network = snapshot.topology.network.clone().unwrap();
    let host = network.vertex(rack_of).unwrap();
    let switch = network.attachment(host).unwrap();
    let uplinks = network.links_of(switch).filter(|(_, link)| !network.vertex_at(link.other(switch)).is_host());
    for (_, link) in uplinks {
        let busy = BitsPerSec((link.capacity.as_f64() * share) as u64);
        let (a_to_b, b_to_a) = if link.a == switch { (busy, BitsPerSec(0)) } else { (BitsPerSec(0), busy) };
        desk.change(Change::LinkLoad(link.name.clone(), LinkLoad { a_to_b, b_to_a }));
    }
    desk.publish();
}

#[test]
fn a_congested_rack_by_link_counters_holds_back_and_lets_go_when_it_ends() {
    let mut desk = wired();
    let statics = Arc::clone(&desk.engine.settled().statics);
    let hosts: Vec<String> = statics.host.iter().map(ToString::to_string).collect();
    let rack = |host: &str| statics.rack[statics.find(host).unwrap().at()];
    let busy = hosts.iter().filter(|host| rack(host) == rack(&hosts[0])).cloned().collect::<Vec<_>>();
    for host in &hosts {
        load(&mut desk, host, 0.9);
    }
    let answer = desk.wait(&choosy(), request("a", &[("reduce", 2)]));
    assert_eq!(&*answer.decision.pending[0].reason, "rack_congested");
    assert!(!answer.decision.degraded.iter().any(|token| token == "no_link_stats"));
    assert!(desk.offer(&busy[0]).is_empty());
    load(&mut desk, &busy[0], 0.76);
    assert!(desk.offer(&busy[0]).is_empty(), "not before it is well below");
    load(&mut desk, &busy[0], 0.5);
    assert_eq!(placed(&desk.offer(&busy[0])[0].decision), [(busy[0].clone(), 0, 2, 2)]);
    desk.wait(&choosy(), request("b", &[("reduce", 8)]));
    let others = desk.waiting();
    assert!(others > 0, "the other rack is still congested");
    for _ in 0..61 {
        desk.now = desk.now.plus(Micros::from_secs(1));
        for host in &hosts {
            desk.beat(host, 0, Some(&[]));
        }
        desk.publish();
    }
    assert!(desk.waiting() < others, "counters that are old say nothing");
}

#[test]
fn an_application_is_told_each_reason_once_and_not_too_often() {
    let mut desk = wired();
    let hosts: Vec<String> = desk.engine.settled().statics.host.iter().map(ToString::to_string).collect();
    let offer_all = |desk: &mut Desk, share: f64| {
        for host in &hosts {
            load(desk, host, share);
            desk.beat(host, 4096, Some(&[]));
        }
        desk.publish();
        desk.beat(&hosts[0], if share < 0.5 { 4096 } else { 0 }, Some(&[]));
        desk.publish();
        desk.reasons().into_iter().map(|(reason, _)| reason).collect::<Vec<_>>()
    };
    let path = reading(&mut desk, "a", &["h9"]);
    let mut asked = request("b", &[("reduce", 1)]);
    asked.groups[0].input_paths = path.input_paths;
    let answer = desk.wait(&choosy(), asked);
    assert_eq!(&*answer.decision.pending[0].reason, "not_local");
    assert_eq!(offer_all(&mut desk, 0.9), [""; 0], "the answer gave another reason less than a second ago");
    desk.now = desk.now.plus(Micros::from_millis(1_100));
    assert_eq!(offer_all(&mut desk, 0.9), ["rack_congested"]);
    for _ in 0..5 {
        desk.now = desk.now.plus(Micros::from_millis(1_100));
        assert_eq!(offer_all(&mut desk, 0.9), [""; 0], "it knows");
    }
    desk.now = desk.now.plus(Micros::from_millis(1_100));
    assert_eq!(offer_all(&mut desk, 0.5), ["not_local"], "the reason is another one");
}

#[test]
fn what_waits_for_too_long_while_there_is_room_gets_an_ordinary_placement_once() {
    let mut desk = Desk::with_nodes(2, 2048);
    let asked = reading(&mut desk, "a", &["h9", "h9", "h1"]);
    let first = desk.wait(&choosy(), asked);
    assert_eq!(placed(&first.decision), [("h1".to_owned(), 2, 1, 1)]);
    desk.pass(Micros::from_millis(4_900));
    assert!(desk.late().is_empty());
    desk.beat("h0", 0, Some(&[]));
    desk.beat("h1", 0, Some(&[]));
    desk.pass(Micros::from_millis(100));
    let late = desk.late();
    let [request] = &late[..] else { panic!("{late:?}") };
    assert_eq!((request.containers(), request.groups.len()), (2, 1));
    desk.pass(Micros::from_millis(100));
    assert!(desk.late().is_empty(), "once");
    let CommitOutcome::Committed(answer) = desk.place_late(request) else { panic!("there is room") };
    assert_eq!((answer.leases().count(), desk.waiting(), desk.leases().len()), (2, 0, 3));
    desk.offer("h0");
    assert_eq!(desk.leases().len(), 3);
    desk.pass(Micros::from_secs(6));
    assert!(desk.late().is_empty());
    assert_eq!(desk.count(Counter::DispatchLate), 2);
}

#[test]
fn without_room_nothing_is_placed_otherwise_and_the_application_is_told() {
    let mut desk = Desk::with_nodes(1, 1024);
    desk.wait(&choosy(), request("a", &[("map", 2)]));
    for _ in 0..2 {
        desk.pass(Micros::from_secs(5));
        desk.beat("h0", 0, Some(&[]));
        desk.publish();
        assert!(!desk.out.iter().any(|effect| matches!(effect, Effect::Late { .. })), "there is no room");
        assert_eq!(desk.reasons(), [], "that it has none was said in the answer");
    }
    let lease = desk.leases()[0].0;
    desk.engine.release(attempt(1, 1), &Token("secret".into()), &[lease], desk.now).unwrap();
    desk.pass(Micros::from_secs(5));
    let late = desk.late();
    assert_eq!((late.len(), late[0].containers()), (1, 1), "there is room, and nobody reported it");
    desk.beat("h0", 1024, Some(&[]));
    let CommitOutcome::Refused(Refusal::Full { .. }) = desk.place_late(&late[0]) else { panic!("it is gone") };
    assert_eq!((desk.waiting(), desk.leases().len()), (1, 0));
    desk.beat("h0", 0, Some(&[]));
    desk.publish();
    assert_eq!((desk.pushed().len(), desk.waiting()), (1, 0), "it waited for offers as before");
}

#[test]
fn few_are_placed_otherwise_at_one_time() {
    let mut desk = Desk::with_nodes(1, 2048);
    let asked = reading(&mut desk, "a", &["h9"]);
    for at in 0..70 {
        let mut more = request(&format!("r{at}"), &[("map", 1)]);
        more.input_paths.clone_from(&asked.input_paths);
        desk.wait(&choosy(), more);
    }
    desk.pass(Micros::from_secs(5));
    let late = desk.late();
    assert_eq!(late.len(), 64);
    desk.pass(Micros::from_millis(100));
    assert_eq!(desk.late().len(), 0, "they are not answered yet");
    let CommitOutcome::Committed(_) = desk.place_late(&late[0]) else { panic!("there is room") };
    desk.pass(Micros::from_millis(100));
    assert_eq!(desk.late().len(), 1);
    desk.beat("h0", 0, Some(&[]));
    desk.pass(Micros::from_millis(2_500));
    assert_eq!(desk.late().len(), 5, "an answer that does not come is not waited for");
}

#[test]
fn reduces_do_not_count_as_late_before_their_maps_are_done() {
    let mut desk = wired();
    let hosts: Vec<String> = desk.engine.settled().statics.host.iter().map(ToString::to_string).collect();
    for host in &hosts {
        load(&mut desk, host, 0.9);
    }
    let answer = desk.wait(&choosy(), request("a", &[("map", 1), ("reduce", 1)]));
    let map = &answer.decision.hints[0];
    desk.allocated(map.host.as_str(), container(attempt(1, 1), 2), map.leases.first().copied());
    let stays = |desk: &mut Desk| {
        for host in &hosts {
            load(desk, host, 0.9);
            let maps = [running(container(attempt(1, 1), 2))];
            desk.beat(host, 0, Some(if *host == map.host.as_str() { &maps } else { &[] }));
        }
        desk.pass(Micros::from_secs(5));
    };
    for _ in 0..4 {
        stays(&mut desk);
        assert!(desk.late().is_empty(), "its map runs");
    }
    desk.event(attempt(1, 1), "map", finished(map.host.as_str(), false));
    stays(&mut desk);
    assert!(desk.late().is_empty(), "its time begins now");
    stays(&mut desk);
    assert_eq!(desk.late().len(), 1);
}

fn finished(host: &str, failed: bool) -> TaskWhat {
    TaskWhat::Finished { host: host.into(), duration: Micros::from_secs(1), input: Bytes(10), output: Bytes(5), failed }
}

#[test]
fn a_lease_that_expires_puts_its_task_back_until_nobody_seems_to_be_there() {
    let mut desk = Desk::with_nodes(1, 1024);
    desk.wait(&choosy(), request("a", &[("map", 1)]));
    for life in 1..8 {
        assert_eq!((desk.waiting(), desk.leases().len()), (0, 1), "life {life}");
        desk.pass(Micros::from_secs(31));
        assert_eq!((desk.waiting(), desk.leases().len()), (1, 0), "life {life}");
        desk.offer("h0");
    }
    desk.pass(Micros::from_secs(31));
    assert_eq!((desk.waiting(), desk.leases().len()), (0, 0));
    assert!(desk.offer("h0").is_empty());
}

#[test]
fn a_task_that_runs_elsewhere_or_fails_is_known_by_what_its_application_says() {
    let mut desk = Desk::with_nodes(2, 1024);
    let answer = desk.wait(&choosy(), request("a", &[("map", 3)]));
    assert_eq!((answer.leases().count(), desk.waiting()), (2, 1));
    let (app, lease) = (attempt(1, 1), answer.leases().next());
    let from = answer.decision.hints[0].host.clone();
    let other = if from.as_str() == "h0" { "h1" } else { "h0" };
    desk.allocated(other, container(app, 2), lease);
    assert_eq!((desk.waiting(), desk.leases().len()), (1, 1), "its lease is given back, it does not wait");
    desk.event(app, "map", finished(other, true));
    assert_eq!(desk.waiting(), 2, "it has to run again");
    desk.event(app, "map", finished(other, true));
    assert_eq!(desk.waiting(), 2, "told twice");
    assert_eq!(desk.offer(from.as_str()).len(), 1);
    assert_eq!(desk.waiting(), 1);
    desk.event(app, "", TaskWhat::Done { failed: false });
    assert_eq!((desk.waiting(), desk.leases().len()), (0, 0));
    assert!(desk.offer("h0").is_empty());
}

#[test]
fn a_container_without_a_hint_takes_a_waiting_task_and_its_end_frees_the_next() {
    let mut desk = Desk::with_nodes(2, 1024);
    let asked = reading(&mut desk, "a", &["h9", "h9"]);
    desk.wait(&choosy(), asked);
    assert_eq!(desk.waiting(), 2);
    let app = attempt(1, 1);
    desk.beat("h0", 1024, Some(&[running(container(app, 7))]));
    desk.publish();
    assert_eq!(desk.waiting(), 1, "YARN gave it by itself");
    desk.allocated("h0", container(app, 7), None);
    assert_eq!(desk.waiting(), 1, "it is the same container");
    desk.allocated("h1", container(app, 8), None);
    assert_eq!(desk.waiting(), 0);
    desk.event(app, "map", TaskWhat::Ready { input_paths: Vec::new(), input: Bytes(0) });
    assert_eq!(desk.waiting(), 0, "it has not ended");
    desk.event(app, "map", finished("h1", false));
    desk.event(app, "map", TaskWhat::Ready { input_paths: Vec::new(), input: Bytes(0) });
    assert_eq!(desk.waiting(), 1, "its output was lost");
}

#[test]
fn tasks_of_a_lost_node_wait_again_and_are_not_placed_twice() {
    let mut desk = Desk::with_nodes(2, 2048);
    let answer = desk.wait(&choosy(), request("a", &[("map", 4)]));
    assert_eq!((answer.leases().count(), desk.waiting()), (4, 0));
    let on_h0 = answer.decision.hints.iter().find(|hint| hint.host.as_str() == "h0").unwrap();
    let ran = container(attempt(1, 1), 2);
    desk.allocated("h0", ran, on_h0.leases.first().copied());
    desk.beat("h0", 1024, Some(&[running(ran)]));
    desk.publish();
    desk.change(Change::Gone("h0".into()));
    desk.publish();
    assert_eq!((desk.waiting(), desk.leases().len(), desk.replaced().len()), (2, 2, 0));
    for lease in desk.leases() {
        desk.engine.release(attempt(1, 1), &Token("secret".into()), &[lease.0], desk.now).unwrap();
    }
    desk.drain();
    let pushed = desk.offer("h1");
    assert_eq!(pushed.iter().map(|answer| answer.leases().count()).sum::<usize>(), 2);
}

#[test]
fn a_preview_says_what_would_be_and_leases_nothing() {
    let mut desk = Desk::with_nodes(2, 1024);
    desk.wait(&choosy(), request("a", &[("map", 1)]));
    let mut asked = request("b", &[("map", 3)]);
    asked.attempt = attempt(2, 1);
    let (asked, policy) = (Arc::new(asked), choosy());
    let generation = desk.publish();
    let proposal = propose_waiting(&generation, &asked, &chosen(&policy), &policy, &desk.placer, desk.now).unwrap();
    let before = (desk.leases(), desk.waiting(), desk.rows.clone());
    let apart = desk.engine.desk_apart(&proposal, desk.now).unwrap().unwrap();
    let preview = apart.preview(proposal);
    desk.drain();
    assert_eq!((preview.hints.len(), preview.pending[0].count), (1, 2));
    assert_eq!((desk.leases(), desk.waiting(), desk.rows.clone()), before);
}

#[test]
fn another_setting_of_the_policy_takes_over_what_waits_and_runs() {
    let mut desk = Desk::with_nodes(2, 4096);
    let asked = reading(&mut desk, "a", &["h9", "h9", "h1"]);
    let answer = desk.wait(&choosy(), asked);
    desk.allocated("h1", container(attempt(1, 1), 2), answer.leases().next());
    desk.event(attempt(1, 1), "map", finished("h1", false));
    assert!(desk.offer("h0").is_empty());
    let lax: Arc<dyn Policy> = Arc::new(Choosy { strict: false });
    desk.engine.redispatch(&|name| (name == "choosy").then(|| Arc::clone(&lax)), desk.now);
    let pushed = desk.offer("h0");
    assert_eq!(placed(&pushed[0].decision), [("h0".to_owned(), 0, 2, 2)], "and task 2 is not launched again");
}

#[test]
fn a_decision_that_the_journal_did_not_take_leaves_nothing_that_waits() {
    let mut desk = Desk::with_nodes(2, 1024);
    let asked = reading(&mut desk, "a", &["h1", "h1"]);
    let first = desk.wait(&choosy(), asked);
    desk.engine.undo(first.decision.id, desk.now);
    desk.drain();
    assert_eq!((desk.waiting(), desk.leases().len()), (0, 0));
    let asked = reading(&mut desk, "b", &["h1", "h1"]);
    let first = desk.wait(&choosy(), asked);
    desk.engine.release(attempt(1, 1), &Token("secret".into()), &[], desk.now).unwrap();
    let pushed = desk.offer("h1");
    assert_eq!((first.leases().count(), pushed.len(), desk.waiting()), (1, 1, 0));
    desk.engine.undo(pushed[0].decision.id, desk.now);
    desk.drain();
    assert_eq!((desk.waiting(), desk.leases().len()), (1, 0), "a push that was not promised waits again");
    assert_eq!(desk.offer("h1").len(), 1);
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

fn bounded(desk: &mut Desk, settings: EngineSettings) {
    desk.engine.reload(settings, desk.now);
    desk.drain();
}

#[test]
fn an_attempt_too_many_takes_what_was_launched_of_it_along() {
    let mut desk = Desk::with_nodes(1, 2048);
    bounded(&mut desk, EngineSettings { attempts_max: 2, ..EngineSettings::default() });
    let first = desk.wait(&choosy(), request("a", &[("map", 2)]));
    desk.wait(&choosy(), of(2, request("b", &[("map", 1)])));
    let lease = first.leases().next().unwrap();
    desk.engine.release(attempt(1, 1), &Token("secret".into()), &[lease], desk.now).unwrap();
    desk.drain();
    desk.wait(&choosy(), of(3, request("c", &[("map", 1)])));
    assert!(desk.pushed().is_empty(), "the second was forgotten for the third");
    assert_eq!((desk.engine.counts().attempts, desk.waiting(), desk.leases().len()), (2, 1, 1));
    assert_eq!(desk.offer("h0").len(), 1, "its room is free for the third");
}

#[test]
fn launches_stop_where_no_more_leases_may_be_held() {
    let mut desk = Desk::with_nodes(2, 8192);
    bounded(&mut desk, EngineSettings { leases_max: 3, ..EngineSettings::default() });
    let answer = desk.wait(&choosy(), request("a", &[("map", 6)]));
    assert_eq!((answer.leases().count(), desk.waiting()), (3, 3));
    desk.engine.release(attempt(1, 1), &Token("secret".into()), &[LeaseId(0), desk.leases()[0].0], desk.now).unwrap();
    desk.drain();
    desk.offer("h0");
    assert_eq!((desk.leases().len(), desk.waiting()), (3, 2));
}

#[test]
fn a_container_that_no_node_ever_names_ends_with_its_lease() {
    let mut desk = Desk::with_nodes(1, 1024);
    let answer = desk.wait(&choosy(), request("a", &[("map", 1)]));
    desk.allocated("h0", container(attempt(1, 1), 2), answer.leases().next());
    let lost = |desk: &mut Desk| {
        desk.event(attempt(1, 1), "map", TaskWhat::Ready { input_paths: Vec::new(), input: Bytes(0) });
        desk.waiting()
    };
    let lasts = desk.settings.lasts(true);
    let from = desk.now;
    while desk.now.since(from) < lasts {
        assert_eq!((desk.leases().len(), lost(&mut desk)), (1, 0), "it may still come");
        desk.beat("h0", 0, Some(&[]));
        desk.pass(Micros::from_secs(5));
    }
    assert_eq!((desk.leases().len(), lost(&mut desk)), (0, 1), "its output can be lost, for it has ended");
}

#[test]
fn a_request_is_answered_as_before_for_as_long_as_something_of_it_waits() {
    let mut desk = Desk::with_nodes(1, 1024);
    let asked = reading(&mut desk, "a", &["h9"]);
    desk.wait(&choosy(), asked);
    let from = desk.now;
    let keeps = |desk: &mut Desk, longer: u64| {
        while desk.now.since(from) < Micros(desk.settings.answers_keep.0 + 1_000_000 * longer) {
            desk.beat("h0", 0, Some(&[]));
            desk.pass(Micros::from_secs(5));
        }
        desk.engine.answered(&"a".into())
    };
    assert!(keeps(&mut desk, 5) && desk.waiting() == 1);
    desk.allocated("h0", container(attempt(1, 1), 2), None);
    assert!(!keeps(&mut desk, 700), "nothing waits any more");
}

#[test]
fn a_task_of_which_only_its_end_is_told_ends_once() {
    let mut desk = Desk::with_nodes(1, 2048);
    desk.wait(&choosy(), request("a", &[("map", 2)]));
    let app = attempt(1, 1);
    desk.beat("h0", 2048, Some(&[running(container(app, 2)), running(container(app, 3))]));
    desk.publish();
    for _ in 0..2 {
        desk.event(app, "map", finished("h0", true));
        assert_eq!(desk.waiting(), 1, "Follow and the feed carry the same");
    }
}

#[test]
fn applications_may_name_requests_as_they_like() {
    let mut desk = Desk::with_nodes(2, 1024);
    let asked = Arc::new(request("job/late/1/2", &[("map", 1)]));
    let mut proposal = desk.propose(&asked).unwrap();
    proposal.digest = 7;
    let CommitOutcome::Committed(answer) = desk.commit(proposal) else { panic!("it is an ordinary request") };
    assert_eq!(answer.leases().count(), 1);
    desk.publish();
    let answer = desk.ask(of(2, request("job/offer/1", &[("map", 1)])));
    desk.change(Change::Gone(answer.decision.hints[0].host.clone()));
    desk.publish();
    assert_eq!(desk.replaced().len(), 1);
}
