//! Flows follow containers to where they came.

use super::super::harness::{EngineHarness, container};
use super::{MIB, fat_tree, flows, routes, shuffle};
use crate::testing::attempt;
use crate::{EdgeHistory, LearnedGroup, LearnedRun, LoadSource, RouteSettings, TaskEvent, TaskWhat, link_uses};
use hintd_model::cluster::{Change, EdgePattern, LinkLoad};
use hintd_model::units::{BitsPerSec, Bytes, Micros, Timestamp};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Containers of `group` came to these hosts, the first one with the number `first`.
fn came(harness: &mut EngineHarness, group: &str, first: u64, hosts: &[String]) {
    for (host, id) in hosts.iter().zip(first..) {
        let container = container(attempt(1, 1), id);
        harness.event(attempt(1, 1), group, TaskWhat::Allocated { host: host.as_str().into(), container, lease: None });
    }
}

fn look(harness: &mut EngineHarness) {
    harness.pass(Micros::from_secs(2));
    harness.publish();
}

/// Hosts that send and get, with how many pairs of tasks.
fn talking(harness: &EngineHarness) -> BTreeMap<(String, String), u64> {
    let snapshot = harness.engine.current_snapshot();
    let name = |node| snapshot.host(node).0.to_string();
    routes(harness).iter().map(|(pair, route)| ((name(pair.from), name(pair.to)), route.task_pairs)).collect()
}

fn all_hosts(harness: &EngineHarness) -> Vec<String> {
    harness.engine.current_snapshot().statics.host.iter().map(|host| host.0.to_string()).collect()
}

/// Where an answer's containers of a group are hinted, a host for each.
fn hinted(answer: &crate::Answer, group: &str) -> Vec<String> {
    let of = answer.decision.hints.iter().filter(|hint| &*hint.group == group);
    of.flat_map(|hint| std::iter::repeat_n(hint.host.0.to_string(), hint.count as usize)).collect()
}

#[test]
fn containers_that_came_elsewhere_take_their_traffic_along_and_those_that_came_as_hinted_change_nothing() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let answer = harness.ask(shuffle(1, "a", (2, 2), 80 * MIB));
    let (maps, reduces) = (hinted(&answer, "map"), hinted(&answer, "reduce"));
    came(&mut harness, "map", 1, &maps);
    let before = flows(&harness);
    look(&mut harness);
    assert_eq!(flows(&harness).routes.iter().count(), 4);
    assert_eq!(talking(&harness).len(), 4, "as hinted");
    assert_eq!(flows(&harness).jobs, before.jobs);

    let free = all_hosts(&harness).into_iter().find(|host| !maps.contains(host) && !reduces.contains(host)).unwrap();
    came(&mut harness, "reduce", 3, &[free.clone(), reduces[1].clone()]);
    look(&mut harness);
    let talk = talking(&harness);
    let expected: BTreeMap<_, _> =
        maps.iter().flat_map(|map| [&free, &reduces[1]].map(|reduce| ((map.clone(), reduce.clone()), 1))).collect();
    assert_eq!(talk, expected);
    assert_eq!(flows(&harness).jobs[0].traffic.flows.iter().map(|flow| flow.bytes.0).sum::<u64>(), 80 * MIB);
    let uses = link_uses(&harness.engine.generation());
    let of = |host: &String| uses.iter().find(|link| link.ends.iter().any(|end| **end == **host)).unwrap();
    assert_eq!(of(&reduces[0]).users, [], "nobody came there");
    assert_eq!(of(&free).users[0].bytes.iter().map(|bytes| bytes.0).sum::<u64>(), 40 * MIB);
}

#[test]
fn tasks_of_a_node_that_is_lost_go_with_it_wherever_they_were_hinted() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let answer = harness.ask(shuffle(1, "a", (2, 2), 80 * MIB));
    let (maps, reduces) = (hinted(&answer, "map"), hinted(&answer, "reduce"));
    let free = all_hosts(&harness).into_iter().find(|host| !maps.contains(host) && !reduces.contains(host)).unwrap();
    came(&mut harness, "map", 1, &maps);
    came(&mut harness, "reduce", 3, &[free.clone(), reduces[1].clone()]);
    look(&mut harness);
    // The host that was hinted and did not get it takes nothing along.
    harness.change(Change::Gone(reduces[0].as_str().into()));
    look(&mut harness);
    assert_eq!(talking(&harness).len(), 4);
    harness.change(Change::Gone(free.as_str().into()));
    look(&mut harness);
    assert!(talking(&harness).keys().all(|(_, to)| *to != free && *to != reduces[0]));
}

#[test]
fn users_of_a_link_come_by_bytes_in_the_direction_that_is_full_and_few_bytes_are_no_load() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let first = harness.ask(shuffle(1, "a", (1, 1), 66));
    let mut second = shuffle(2, "b", (1, 1), 10_000 * MIB);
    for (group, hint) in second.groups.iter_mut().zip(&first.decision.hints) {
        let others = harness.engine.current_snapshot().statics.host.iter().filter(|host| **host != hint.host);
        group.constraints.avoid_hosts = others.cloned().collect();
    }
    harness.ask(second);
    let uses = link_uses(&harness.engine.generation());
    let used: Vec<_> = uses.iter().filter(|link| !link.users.is_empty()).collect();
    assert!(!used.is_empty());
    for link in used {
        let apps: Vec<_> = link.users.iter().map(|user| user.application).collect();
        assert_eq!(apps, [attempt(2, 1).application, attempt(1, 1).application], "most bytes first");
        let small = &link.users[1];
        assert_eq!(small.bytes.iter().map(|bytes| bytes.0).sum::<u64>(), 66);
        assert!(small.bits_per_s <= 66.0 * 8.0, "66 bytes are sent within a second: {}", small.bits_per_s);
        assert_eq!((link.source, link.unaccounted), (LoadSource::Modelled, [0.0; 2]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Once all containers have come, wherever that is, traffic is that of a job placed there.
    #[test]
    fn when_all_have_come_who_talks_is_what_came(
        places in prop::collection::vec(0_usize..16, 6), order in any::<u64>(), looks in any::<u8>(),
    ) {
        let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
        harness.ask(shuffle(1, "a", (3, 3), 90 * MIB));
        let hosts = all_hosts(&harness);
        let came_to: Vec<String> = places.iter().map(|at| hosts[*at].clone()).collect();
        let mut turns: Vec<usize> = (0..6).collect();
        turns.sort_by_key(|turn| order.rotate_left(11 * *turn as u32) % 97);
        for turn in turns {
            let group = if turn < 3 { "map" } else { "reduce" };
            came(&mut harness, group, turn as u64 + 1, &came_to[turn..=turn]);
            if looks >> turn & 1 == 1 {
                look(&mut harness);
            }
        }
        look(&mut harness);
        let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
        for map in &came_to[..3] {
            for reduce in came_to[3..].iter().filter(|reduce| *reduce != map) {
                *expected.entry((map.clone(), reduce.clone())).or_default() += 1;
            }
        }
        prop_assert_eq!(talking(&harness), expected);
    }
}

/// A run of a stock MapReduce job that recurs: `bytes` from maps to reduces.
fn earlier_run(bytes: u64) -> LearnedRun {
    let group = |name: &str| LearnedGroup {
        name: name.into(),
        count: 2,
        memory_mb: 0,
        input_paths: Vec::new(),
        input: Bytes::ZERO,
    };
    let edge =
        EdgeHistory { from: "p20".into(), to: "p10".into(), pattern: EdgePattern::AllToAll, bytes: Bytes(bytes) };
    LearnedRun { finished: Timestamp(1), groups: vec![group("p20"), group("p10")], edges: vec![edge], whole: None }
}

#[test]
fn a_stock_jobs_shuffle_is_on_access_links_and_uplinks_by_its_earlier_runs() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let key: Arc<str> = "mapreduce:ann:sort".into();
    assert!(harness.engine.learnt(&key, &earlier_run(80 * MIB), harness.now));
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    let rack = |at: usize| snapshot.statics.members[at].iter().map(|node| snapshot.host(*node).0.to_string());
    let (from, to) = (rack(0).next().unwrap(), rack(1).next().unwrap());
    let mut told = |group: &str, id: u64, host: &str| {
        let of = attempt(1, 1);
        let what = TaskWhat::Allocated { host: host.into(), container: container(of, id), lease: None };
        let (group, task) = (group.into(), id.to_string().as_str().into());
        let event = TaskEvent { attempt: of, group, task, what, recurring_key: Some(key.clone()), at: harness.now };
        harness.engine.event(event, harness.now).unwrap();
    };
    (told)("p20", 1, &from);
    (told)("p20", 2, &from);
    (told)("p10", 3, &to);
    harness.publish();
    let bytes = |harness: &EngineHarness| -> BTreeMap<String, u64> {
        let uses = link_uses(&harness.engine.generation());
        let used = uses.iter().filter(|link| !link.users.is_empty());
        used.map(|link| (link.link.to_string(), link.users[0].bytes.iter().map(|bytes| bytes.0).sum())).collect()
    };
    let found = bytes(&harness);
    let mut carried: Vec<u64> = found.values().copied().collect();
    carried.sort_unstable();
    let half = 40 * MIB;
    assert_eq!(carried, [half, half, half, half, 2 * half, 2 * half], "two hosts' links, two uplinks of each rack");
    let uses = link_uses(&harness.engine.generation());
    let link = uses.iter().find(|link| link.ends.iter().any(|end| **end == *from)).unwrap();
    let rate = BitsPerSec(300_000_000);
    harness.change(Change::LinkLoad(link.link.clone(), LinkLoad::steady(rate, rate)));
    harness.publish();
    let uses = link_uses(&harness.engine.generation());
    let link = uses.iter().find(|now| now.link == link.link).unwrap();
    let full = usize::from(*link.ends[0] != *from); // maps send
    assert_eq!((link.users[0].each[full], link.unaccounted[full]), (3e8, 0.0), "what is measured is its");
    assert_eq!((link.users[0].each[1 - full], link.unaccounted[1 - full]), (0.0, 3e8), "nobody sends there");
    // A run of a few bytes fills nothing: the rest is nobody's.
    assert!(harness.engine.learnt(&key, &LearnedRun { finished: Timestamp(2), ..earlier_run(66) }, harness.now));
    harness.publish();
    let uses = link_uses(&harness.engine.generation());
    let link = uses.iter().find(|now| now.link == link.link).unwrap();
    assert_eq!((link.users[0].each[full], link.unaccounted[full]), (66.0 * 8.0, 3e8 - 66.0 * 8.0));
}
