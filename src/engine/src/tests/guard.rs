//! Hints that would do no good are kept back. The cluster is that of the trial on a real network with limits: three racks of
//! two nodes, access links of 100 Mbit/s, uplinks of 10; a word count whose maps have come and send 25 MB each.

use super::flows::wired;
use super::harness::{EngineHarness, container};
use crate::decision::{Decision, Withheld, WithheldReason};
use crate::testing::{attempt, request};
use crate::{
    Answer, CostLink, Counter, EdgeHistory, Guard, LearnedGroup, LearnedRun, RouteSettings, TaskWhat, Unguarded,
};
use hintd_model::cluster::{EdgePattern, Gang, HintRequest, WhenFull};
use hintd_model::network::build::{self, TreeSpec};
use hintd_model::units::{BitsPerSec, Bytes, SchedulerKey, Timestamp};
use std::sync::Arc;

const KEY: &str = "mapreduce:ann:sort";
const MAPS: u32 = 6;

/// Six nodes with room for eight containers each, and the guard on.
pub(super) fn cluster(policy: &str) -> (EngineHarness, Vec<String>) {
    let spec = TreeSpec {
        racks: 3,
        hosts_per_rack: 2,
        cores: 1,
        host_bits_per_s: BitsPerSec(100_000_000),
        uplink_bits_per_s: BitsPerSec(10_000_000),
        ..TreeSpec::default()
    };
    let built = build::tree(&spec).unwrap();
    let hosts = built.racks.iter().flat_map(|(_, hosts)| hosts.iter().map(ToString::to_string)).collect();
    let mut harness = wired(RouteSettings::default(), built, 8 * 1_024);
    harness.places_by(policy);
    harness.placer.guard = Some(Guard::default());
    (harness, hosts)
}

/// An earlier run told what maps send to reduces, and maps came: so many on each host.
pub(super) fn maps_came(harness: &mut EngineHarness, hosts: &[String], by_host: &[u64]) {
    let group = |name: &str| LearnedGroup {
        name: name.into(),
        count: MAPS,
        memory_mb: 0,
        input_paths: vec![],
        input: Bytes::ZERO,
    };
    let (from, to, pattern) = ("p20".into(), "p10".into(), EdgePattern::AllToAll);
    let shuffle = EdgeHistory { from, to, pattern, bytes: Bytes(25_000_000 * u64::from(MAPS)) };
    let run = LearnedRun {
        finished: Timestamp(1),
        groups: vec![group("p20"), group("p10")],
        edges: vec![shuffle],
        whole: None,
    };
    assert!(harness.engine.learnt(&KEY.into(), &run, harness.now));
    let places = hosts.iter().zip(by_host).flat_map(|(host, &count)| std::iter::repeat_n(host, count as usize));
    for (id, host) in places.enumerate() {
        let container = container(attempt(1, 1), 2 + id as u64);
        let what = TaskWhat::Allocated { host: host.as_str().into(), container, lease: None };
        harness.event(attempt(1, 1), "p20", what);
    }
    harness.publish();
}

/// As the ResourceManager's processor asks for a stock job.
pub(super) fn reduces(count: u32, recurs: bool) -> HintRequest {
    let mut asked = request("reduces", &[("p10", count)]);
    asked.groups[0].key = SchedulerKey { priority: 10, allocation_request_id: -1 };
    asked.groups[0].constraints.spread = false;
    asked.recurring_key = recurs.then(|| KEY.into());
    asked
}

pub(super) fn reason(answer: &Answer) -> Option<WithheldReason> {
    answer.decision.withheld.map(|withheld| withheld.reason)
}

pub(super) fn by_rack(answer: &Answer, hosts: &[String]) -> [u32; 3] {
    let mut racks = [0; 3];
    for hint in &answer.decision.hints {
        let at = hosts.iter().position(|host| host == hint.host.as_str()).unwrap();
        racks[at / 2] += hint.count;
    }
    racks
}

#[test]
fn where_nothing_is_known_nothing_is_hinted_leased_or_asked_for_otherwise() {
    for policy in ["container", "joint", "spread"] {
        let (mut harness, hosts) = cluster(policy);
        let asked = HintRequest { am_host: Some(hosts[0].as_str().into()), ..reduces(6, false) };
        let answer = harness.ask(asked.clone());
        let withheld = Withheld { reason: WithheldReason::NothingKnown, hinted_s: None, default_s: None };
        assert_eq!(answer.decision.withheld, Some(withheld), "{policy}");
        assert_eq!((&answer.decision.hints, &answer.decision.asks), (&vec![], &asked.asks));
        assert_eq!(harness.engine.counts().leases, 0);
        assert_eq!((harness.counts[&Counter::HintsWithheld], harness.counts.get(&Counter::HintsIssued)), (6, None));
    }
}

#[test]
fn input_in_one_rack_keeps_the_job_there() {
    let (mut harness, hosts) = cluster("joint");
    maps_came(&mut harness, &hosts, &[3, 3]);
    let answer = harness.ask(reduces(6, true));
    assert_eq!((reason(&answer), by_rack(&answer, &hosts)), (None, [6, 0, 0]));
    assert_eq!(answer.decision.terms.cross_rack_bytes, Some(0.0));
}

/// On the real network these hints made the job 12 % slower: one rack took most of what a policy of bytes put together.
#[test]
fn more_reduces_than_maps_are_not_packed_where_bytes_are_fewest() {
    let by_host = [1, 1, 1, 0, 2, 1];
    for policy in ["container", "joint", "hit"] {
        let (mut harness, hosts) = cluster(policy);
        maps_came(&mut harness, &hosts, &by_host);
        let answer = harness.ask(reduces(12, true));
        let racks = by_rack(&answer, &hosts);
        // Given are hints only where the busiest uplink carries less than if reduces are spread evenly: 50 MB.
        let maps = [2.0, 1.0, 3.0];
        let all: u32 = racks.iter().sum();
        if all > 0 {
            let part = |at: usize| f64::from(racks[at]) / f64::from(all);
            let busiest = (0..3).map(|at| (maps[at] * (1.0 - part(at))).max((6.0 - maps[at]) * part(at)) * 25.0);
            assert!(busiest.fold(0.0, f64::max) < 50.0, "{policy}: {racks:?}");
        } else {
            assert!(reason(&answer).is_some(), "{policy}");
        }
    }
}

/// The links that costs are of have the names that `hintctl links` lists, and where YARN would put the containers is told.
#[test]
fn the_busiest_links_are_named_and_so_are_yarns_own_hosts() {
    let (mut harness, hosts) = cluster("joint");
    maps_came(&mut harness, &hosts, &[3, 3]);
    let network = harness.publish().snapshot.topology.network.clone().unwrap();
    let Decision { terms, baseline, baseline_places, unguarded, .. } = harness.ask(reduces(6, true)).decision.clone();
    assert_eq!(unguarded, None, "the guard found that they gain something");
    let is_known = |link: &CostLink| {
        let [id] = &link.links[..] else { panic!("each rack has one uplink, each host one link: {link:?}") };
        let found = network.link_at(network.link(id.as_str()).unwrap());
        let ends = [found.a, found.b].map(|end| &*network.vertex_at(end).name);
        link.links_total == 1 && ends.contains(&&*link.from) && ends.contains(&&*link.to) && link.from != link.to
    };
    // All in one rack: what is busiest is a host's link, at 12.5 MB a second.
    let hinted = terms.links.busiest.unwrap();
    assert!(is_known(&hinted) && hosts[..2].iter().any(|host| [&*hinted.from, &*hinted.to].contains(&host.as_str())));
    assert_eq!(Some(hinted.seconds), terms.parts.get("busiest_link_s").copied());
    // Spread over the racks: the uplink of the maps' rack, out of it.
    let baseline = baseline.unwrap();
    let default = baseline.links.busiest.unwrap();
    assert!(is_known(&default), "{default:?}");
    assert!(!hosts.iter().any(|host| [&*default.from, &*default.to].contains(&host.as_str())), "{default:?}");
    assert_eq!(Some(default.seconds), baseline.parts.get("busiest_link_s").copied());
    let worst = baseline.links.worst.unwrap();
    assert!(is_known(&worst) && Some(worst.seconds) == baseline.worst_link_s, "{worst:?}");
    let places = baseline_places.unwrap();
    assert_eq!(places.places.iter().map(|place| place.count).sum::<u32>(), 6);
    assert!(places.places.iter().all(|place| hosts.iter().any(|host| host == place.host.as_str())), "{places:?}");
    assert_eq!((places.more_containers, places.more_hosts), (0, 0));
}

#[test]
fn what_is_hinted_whatever_it_gains_says_why() {
    let why = |harness: &mut EngineHarness, asked: HintRequest| harness.ask(asked).decision.unguarded;
    let (mut harness, hosts) = cluster("joint");
    maps_came(&mut harness, &hosts, &[1, 1, 1, 1, 1, 1]);
    let asked = |id: &str| HintRequest { id: id.into(), ..reduces(6, true) };
    let withheld = harness.ask(asked("even"));
    assert_eq!((reason(&withheld), withheld.decision.unguarded), (Some(WithheldReason::NoGain), None));
    assert_eq!(why(&mut harness, HintRequest { gang: Gang::All, ..asked("gang") }), Some(Unguarded::Gang));
    let mut bound = asked("bound");
    bound.groups[0].constraints.max_per_node = 2;
    assert_eq!(why(&mut harness, bound), Some(Unguarded::Constraints));
    let mut part = asked("part");
    (part.groups[0].count, part.groups[0].whole) = (2, 6);
    assert_eq!(why(&mut harness, part), Some(Unguarded::Parts));
    harness.placer.guard = None;
    assert_eq!(why(&mut harness, asked("off")), Some(Unguarded::Off));
    let (mut harness, hosts) = cluster("nomora");
    let asked = HintRequest { am_host: Some(hosts[2].as_str().into()), ..reduces(3, false) };
    assert_eq!(why(&mut harness, asked), Some(Unguarded::Policy));
}

#[test]
fn what_yarn_can_not_do_by_itself_is_not_kept_back() {
    let (mut harness, _) = cluster("container");
    let gang = harness.ask(HintRequest { gang: Gang::All, ..reduces(6, false) });
    assert_eq!((reason(&gang), gang.decision.hints.is_empty()), (None, false));
    let mut bound = HintRequest { id: "bound".into(), ..reduces(6, false) };
    bound.constraints.max_per_node = 1;
    let bound = harness.ask(bound);
    assert_eq!((reason(&bound), bound.decision.hints.len()), (None, 6));
}

/// `nomora` seeks latency: when links have carried the bytes says nothing of it.
#[test]
fn a_policy_that_does_not_weigh_bytes_is_not_kept_back_for_them() {
    let (mut harness, hosts) = cluster("nomora");
    let asked = |id: &str, recurs| {
        let asked = HintRequest { am_host: Some(hosts[2].as_str().into()), ..reduces(3, recurs) };
        HintRequest { id: id.into(), ..asked }
    };
    let unknown = harness.ask(asked("unknown", false));
    assert_eq!((reason(&unknown), by_rack(&unknown, &hosts)), (None, [0, 3, 0]), "round the ApplicationMaster");
    maps_came(&mut harness, &hosts, &[0, 0, 6]);
    let known = harness.ask(asked("known", true));
    assert_eq!((reason(&known), by_rack(&known, &hosts)), (None, [0, 3, 0]));
}

#[test]
fn without_the_guard_all_is_given_and_without_time_nothing() {
    let (mut harness, _) = cluster("container");
    harness.placer.guard = None;
    assert!(!harness.ask(reduces(6, false)).decision.hints.is_empty());
    let (harness, hosts) = cluster("container");
    let mut harness = harness;
    maps_came(&mut harness, &hosts, &[3, 3]);
    let mut looks = 0;
    let mut stop = || {
        looks += 1;
        looks > 2
    };
    let late = harness.propose_until(&Arc::new(reduces(6, true)), &mut stop).unwrap().preview();
    assert_eq!(late.withheld.map(|withheld| withheld.reason), Some(WithheldReason::NotCompared));
    assert!(late.hints.is_empty());
}

/// On the real network a first run's reduces were packed beside the ApplicationMaster and took 67 % longer.
#[test]
fn reduces_of_a_first_run_mirror_the_maps_that_have_come() {
    let (mut harness, hosts) = cluster("joint");
    maps_came(&mut harness, &hosts, &[3, 3]);
    let mut first = reduces(6, false);
    (first.framework, first.groups[0].role) = ("mapreduce".into(), "reduce".into());
    let answer = harness.ask(first);
    assert_eq!((reason(&answer), by_rack(&answer, &hosts)), (None, [6, 0, 0]));
    assert!(answer.decision.degraded.contains(&"edges_assumed".to_owned()), "{:?}", answer.decision.degraded);
    let mut spark = HintRequest { id: "spark".into(), ..reduces(6, false) };
    spark.framework = "spark".into();
    assert_eq!(reason(&harness.ask(spark)), Some(WithheldReason::NothingKnown));
}

#[test]
fn what_finds_no_room_is_said_although_hints_are_kept_back() {
    // Nothing is known, so that nothing is searched for; six nodes have room for 48.
    let (mut harness, _) = cluster("joint");
    let said = |answer: &Answer| {
        let decision = &answer.decision;
        let blocked: Vec<u32> = decision.blocked.iter().map(|blocked| blocked.count).collect();
        (reason(answer), decision.without_room, decision.next_wave, blocked)
    };
    let large = harness.ask(reduces(60, false));
    assert_eq!(said(&large), (Some(WithheldReason::NothingKnown), 0, 12, vec![12]));
    let fails = HintRequest { when_full: WhenFull::Fail, ..reduces(60, false) };
    let some = harness.ask(HintRequest { id: "fails".into(), ..fails });
    assert_eq!(said(&some), said(&large), "some of them have room");
    // Found to gain nothing: the maps came to all racks alike.
    let (mut harness, hosts) = cluster("joint");
    maps_came(&mut harness, &hosts, &[1, 1, 1, 1, 1, 1]);
    let even = harness.ask(reduces(60, true));
    assert_eq!(said(&even), (Some(WithheldReason::NoGain), 0, 12, vec![12]));
}
