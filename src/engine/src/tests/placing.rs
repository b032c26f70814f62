//! Requests compiled, refused, placed and explained.

use super::harness::{EngineHarness, START, container, hosts, maps, registration, running};
use crate::decision::ExclusionNamed;
use crate::testing::{attempt, request};
use crate::{Refusal, TaskWhat};
use hintd_model::cluster::{
    Change, EdgePattern, Gang, GroupEdge, Measured, NamedBlock, NamedDataset, NamedResource, Source,
};
use hintd_model::units::{Bytes, GroupIdx, Micros};
use hintd_policy::Reason;
use std::sync::Arc;

fn message(refusal: &Refusal) -> String {
    refusal.to_string()
}

#[test]
fn an_empty_model_says_which_feed_is_missing() {
    assert!(matches!(EngineHarness::new().refusal(maps("a", 1)), Refusal::MissingFeed { feed: "heartbeats", .. }));
}

#[test]
fn unknown_names_are_refused_with_the_nearest_known_one() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    let mut gpu = registration("h2", "/r1", 4096);
    gpu.labels = vec!["gpu".into()];
    gpu.total.named = vec![("yarn.io/gpu".into(), 2)];
    harness.change(Change::Register(gpu));
    harness.publish();
    let mut label = maps("a", 1);
    label.groups[0].label = Some("gpo".into());
    assert_eq!(message(&harness.refusal(label)), "label \"gpo\" is unknown; did you mean \"gpu\"?");
    let mut kind = maps("a", 1);
    kind.groups[0].size.named = vec![("yarn.io/gpus".into(), 1)];
    assert_eq!(
        message(&harness.refusal(kind)),
        "resource kind \"yarn.io/gpus\" is unknown; did you mean \"yarn.io/gpu\"?"
    );
    let mut rack = maps("a", 1);
    rack.constraints.avoid_racks = vec!["/nowhere".into()];
    assert_eq!(message(&harness.refusal(rack)), "rack \"/nowhere\" is unknown");
    let mut avoid = maps("a", 1);
    avoid.groups[0].constraints.avoid_hosts = vec!["h9".into()];
    assert!(matches!(harness.refusal(avoid), Refusal::Unknown { what: "host", .. }));
    let mut am = maps("a", 1);
    am.am_host = Some("hh1".into());
    assert_eq!(message(&harness.refusal(am)), "host \"hh1\" is unknown; did you mean \"h1\"?");
}

#[test]
fn sizes_that_no_container_can_have_name_their_field() {
    let harness = EngineHarness::with_nodes(2, 4096);
    let sized = |memory_mb, vcores| {
        let mut asked = request("a", &[("map", 1), ("reduce", 1)]);
        asked.groups[1].size = NamedResource { memory_mb, vcores, named: Vec::new() };
        harness.refusal(asked)
    };
    let field = |refusal| match refusal {
        Refusal::Invalid { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(field(sized(0, 1)), "groups[1].resource.memory");
    assert_eq!(field(sized(u64::MAX, 1)), "groups[1].resource.memory");
    assert_eq!(field(sized(1024, 5)), "groups[1].resource.vcores");
    let larger = sized(8192, 1);
    assert!(matches!(&larger, Refusal::TooLarge { field, .. } if field == "groups[1].resource"), "{larger}");
    assert!(message(&larger).contains("the largest that fits is 4096 MB and 4 vcores"), "{larger}");
}

#[test]
fn counts_are_checked_before_anything_walks_through_them() {
    let harness = EngineHarness::with_nodes(2, 4096);
    assert!(matches!(harness.refusal(maps("a", 0)), Refusal::Invalid { .. }));
    assert!(matches!(harness.refusal(request("a", &[])), Refusal::Invalid { .. }));
    let many = request("a", &[("map", u32::MAX), ("reduce", u32::MAX)]);
    assert!(message(&harness.refusal(many)).contains("8589934590 containers"));
    let mut overflowing = request("a", &[("map", 1), ("reduce", 1)]);
    let edge =
        |bytes| GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: Bytes(bytes) };
    overflowing.edges = vec![edge(u64::MAX), edge(1)];
    assert!(matches!(harness.refusal(overflowing), Refusal::Invalid { field, .. } if field == "edges[1].bytes"));
    let mut nowhere = maps("a", 1);
    nowhere.edges = vec![edge(1)];
    assert!(matches!(harness.refusal(nowhere), Refusal::Invalid { field, .. } if field == "edges[0]"));
}

#[test]
fn a_gang_larger_than_the_empty_cluster_is_told_the_largest_that_fits() {
    let mut harness = EngineHarness::with_nodes(3, 4096);
    let gang = |count, per_node| {
        let mut gang = maps("gang", count);
        gang.gang = Gang::All;
        gang.constraints.max_per_node = per_node;
        gang
    };
    assert!(message(&harness.refusal(gang(13, 0))).ends_with("the largest gang that fits is 12"));
    assert!(message(&harness.refusal(gang(7, 2))).ends_with("the largest gang that fits is 6"));
    let mut two = request("gang", &[("map", 8), ("reduce", 8)]);
    two.gang = Gang::All;
    let refused = harness.refusal(two);
    assert!(message(&refused).ends_with("beside the groups before it is 4"), "{refused}");
    harness.ask(maps("other", 6));
    let waiting = harness.ask(gang(12, 0));
    assert_eq!((waiting.leases().count(), waiting.decision.without_room), (0, 12), "it fits, but not now");
}

#[test]
fn a_gang_that_bounds_leave_too_little_for_is_told_which_bound() {
    let harness = EngineHarness::with_nodes(4, 4096);
    let mut whole = maps("gang", 7);
    whole.gang = Gang::All;
    let told_of = |count: u32, change: &dyn Fn(&mut hintd_model::cluster::Constraints)| {
        let mut gang = whole.clone();
        gang.groups[0].count = count;
        change(&mut gang.constraints);
        let refusal = harness.refusal(gang);
        let [blocked] = refusal.blocked() else { panic!("{refusal}") };
        let nearest: Vec<String> = blocked.nearest.iter().map(ToString::to_string).collect();
        assert!(message(&refusal).contains(&*blocked.constraint) || &*blocked.constraint == "cluster_too_small");
        (blocked.constraint.to_string(), blocked.nodes, nearest.join("; "))
    };
    let told = |change: &dyn Fn(&mut hintd_model::cluster::Constraints)| told_of(7, change);
    let avoided = "h0: avoided_host, all else fits; h1: avoided_host, all else fits; h2: avoided_host, all else fits";
    let hosts = ["h0", "h1", "h2"].map(Into::into);
    assert_eq!(told(&|bounds| bounds.avoid_hosts = hosts.to_vec()), ("avoided_host".to_owned(), 3, avoided.to_owned()));
    assert_eq!(told(&|bounds| bounds.max_per_node = 1), ("max_per_node".to_owned(), 0, String::new()));
    assert_eq!(told(&|bounds| bounds.max_per_rack = 3), ("max_per_rack".to_owned(), 0, String::new()));
    // Neither alone is too much; both are.
    let both = told(&|bounds| (bounds.avoid_hosts, bounds.max_per_node) = (vec!["h0".into()], 2));
    assert_eq!(both.0, "max_per_node", "without it most fit");
    assert_eq!(told_of(17, &|bounds| bounds.max_per_node = 1).0, "cluster_too_small");
}

#[test]
fn of_many_groups_without_room_some_are_looked_at_and_those_like_them_are_told_the_same() {
    let mut harness = EngineHarness::with_nodes(3, 4096);
    (0..3).for_each(|host| harness.beat(&format!("h{host}"), 4096, Some(&[])));
    harness.publish();
    let names: Vec<String> = (0..40).map(|number| format!("g{number}")).collect();
    let groups: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let mut asked = request("many", &groups);
    let looked_at = |answer: &crate::Answer| {
        assert!(answer.decision.blocked.iter().all(|blocked| &*blocked.constraint == "no_room"));
        assert!(answer.decision.blocked.iter().zip(&names).all(|(blocked, name)| *blocked.group == **name));
        answer.decision.blocked.iter().filter(|blocked| blocked.nodes == 3 && blocked.nearest.len() == 3).count()
    };
    assert_eq!(looked_at(&harness.ask(asked.clone())), 40, "all alike");
    asked.id = "each".into();
    asked.groups.truncate(16);
    for (at, group) in (0..).zip(&mut asked.groups) {
        (group.size.memory_mb, group.size.vcores) = (1024 * (1 + at / 4), 1 + at % 4);
    }
    assert_eq!(looked_at(&harness.ask(asked)), 8, "none alike");
}

#[test]
fn a_job_larger_than_the_cluster_is_placed_wave_by_wave() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    harness.ask(maps("other", 3));
    let answer = harness.ask(maps("huge", 50_000));
    let decision = &answer.decision;
    assert_eq!((answer.leases().count(), decision.without_room, decision.next_wave), (5, 3, 50_000 - 8));
    let indexes: Vec<_> = decision.hints.iter().map(|hint| hint.first_index).collect();
    let counts: Vec<_> = decision.hints.iter().map(|hint| hint.count).collect();
    let expected: Vec<u32> = counts.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
    assert_eq!(indexes, expected, "every container is in one hint at most");
}

#[test]
fn what_the_empty_cluster_does_not_hold_is_not_told_to_wait_for_leases() {
    let mut harness = EngineHarness::with_nodes(3, 4096);
    let told = |decision: &crate::decision::Decision| {
        let row = |of: &crate::decision::Blocked| (of.count, of.constraint.to_string(), of.bound);
        decision.blocked.iter().map(row).collect::<Vec<_>>()
    };
    let mut bounded = maps("bounded", 9);
    bounded.constraints.max_per_node = 2;
    let first = harness.ask(bounded.clone()).decision.clone();
    assert_eq!((first.without_room, first.next_wave), (0, 3));
    assert_eq!(told(&first), [(3, "max_per_node".to_owned(), 2)]);
    // Leases take all that is left: what a bound keeps out for good is told apart from what waits for room.
    harness.ask(maps("other", 6));
    let mut second = bounded;
    second.id = "second".into();
    let second = harness.ask(second).decision.clone();
    assert_eq!((second.without_room, second.next_wave), (6, 3));
    assert_eq!(told(&second), [(6, "leased".to_owned(), 0), (3, "max_per_node".to_owned(), 2)]);
    let mut racks = maps("racks", 9);
    racks.constraints.max_per_rack = 1;
    assert_eq!(told(&harness.ask(racks).decision).last().unwrap().1, "max_per_rack");
    let mut both = maps("both", 20);
    both.constraints.max_per_node = 2;
    assert_eq!(told(&harness.ask(both).decision)[1], (14, "max_per_node".to_owned(), 2), "without it more would fit");
    let large = harness.ask(maps("large", 20)).decision.clone();
    assert_eq!(told(&large), [(12, "leased".to_owned(), 0), (8, "cluster_too_small".to_owned(), 0)]);
}

#[test]
fn nodes_are_ruled_out_by_reason_with_examples() {
    let mut harness = EngineHarness::with_nodes(7, 4096);
    let mut labelled = registration("h0", "/r0", 4096);
    labelled.labels = vec!["gpu".into()];
    harness.change(Change::Register(labelled));
    harness.register("h1", "/r0", 1024);
    harness.beat("h2", 3000, Some(&[]));
    harness.change(Change::Gone("h3".into()));
    harness.publish();
    harness.ask({
        let mut taker = maps("taker", 4);
        taker.constraints.avoid_hosts = ["h1", "h2", "h5", "h6"].map(Into::into).to_vec();
        taker
    });
    let mut asked = maps("a", 1);
    asked.groups[0].size.memory_mb = 2048;
    asked.constraints.avoid_hosts = vec!["h5".into()];
    let answer = harness.ask(asked);
    let told = |excluded: &ExclusionNamed| {
        (
            excluded.reason,
            excluded.count,
            excluded.examples.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        )
    };
    let expected = [
        (Reason::NodeNotRunning, 1, "h3"),
        (Reason::LabelMismatch, 1, "h0"),
        (Reason::AvoidedHost, 1, "h5"),
        (Reason::NodeTooSmall, 1, "h1"),
        (Reason::NoRoom, 1, "h2"),
        (Reason::Leased, 1, "h4"),
    ];
    let expected: Vec<_> = expected.iter().map(|&(reason, count, hosts)| (reason, count, hosts.to_owned())).collect();
    assert_eq!(answer.decision.exclusions.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(hosts(&answer), ["h6".into()]);
}

#[test]
fn a_labelled_group_goes_to_its_label_and_nobody_else_does() {
    let mut harness = EngineHarness::with_nodes(1, 8192);
    let mut labelled = registration("g0", "/r0", 8192);
    labelled.labels = vec!["gpu".into()];
    harness.change(Change::Register(labelled));
    harness.publish();
    let mut asked = request("a", &[("plain", 1), ("train", 1)]);
    asked.groups[1].label = Some("gpu".into());
    assert_eq!(hosts(&harness.ask(asked)), ["h0".into(), "g0".into()]);
}

fn dataset(path: &str, hosts: &[&str]) -> Change {
    let hosts = hosts.iter().map(|&host| host.into()).collect();
    let block = NamedBlock { id: 1, bytes: Bytes(1 << 20), hosts };
    Change::Dataset(Arc::new(NamedDataset { path: path.into(), blocks: vec![block] }))
}

#[test]
fn an_unknown_path_is_refused_only_where_the_datasets_feed_spoke() {
    let mut harness = EngineHarness::with_nodes(2, 4096);
    let mut asked = maps("a", 1);
    asked.input_paths = vec!["/data/in".into()];
    let degraded = harness.propose(&Arc::new(asked.clone())).unwrap().preview().degraded;
    assert!(degraded.contains(&"no_blocks".to_owned()), "{degraded:?}");
    harness.change(dataset("/data/im", &["h0"]));
    harness.publish();
    assert_eq!(message(&harness.refusal(asked.clone())), "path \"/data/in\" is unknown; did you mean \"/data/im\"?");
    harness.change(dataset("/data/in", &["h1"]));
    harness.publish();
    let degraded = harness.propose(&Arc::new(asked)).unwrap().preview().degraded;
    assert!(!degraded.contains(&"no_blocks".to_owned()), "{degraded:?}");
}

#[test]
fn a_recurring_job_without_edges_and_paths_gets_those_of_its_last_run() {
    let mut harness = EngineHarness::with_nodes(2, 8192);
    harness.change(dataset("/in", &["h1"]));
    harness.publish();
    let mut first = request("monday", &[("map", 2), ("reduce", 1)]);
    first.recurring_key = Some("daily".into());
    first.input_paths = vec!["/in".into()];
    first.edges =
        vec![GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: Bytes(0) }];
    harness.ask(first.clone());
    harness.finished(attempt(1, 1), "map", 10, 500);
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
    harness.publish();
    harness.restart(); // the history is in the journal
    harness.register("h0", "/r0", 8192);
    harness.register("h1", "/r0", 8192);
    harness.change(dataset("/in", &["h1"]));
    harness.publish();
    let job = harness.engine.generation().history.get(&Arc::from("daily")).cloned().unwrap();
    assert_eq!((job.edges[0].bytes, job.runs), (Bytes(1000), 1));
    let mut second = request("tuesday", &[("map", 2), ("reduce", 1)]);
    second.recurring_key = Some("daily".into());
    let degraded = harness.propose(&Arc::new(second)).unwrap().preview().degraded;
    for token in ["edges_from_history", "paths_from_history"] {
        assert!(degraded.contains(&token.to_owned()), "{degraded:?}");
    }
    assert!(!degraded.contains(&"no_edges".to_owned()));
}

#[test]
fn confidence_falls_with_age_and_missing_sources() {
    let mut harness = EngineHarness::with_nodes(1, 4096);
    let confidence =
        |harness: &EngineHarness| harness.propose(&Arc::new(maps("a", 1))).unwrap().preview().hints[0].confidence;
    let fresh = confidence(&harness);
    assert!((fresh - 0.5 * 0.9).abs() < 1e-9, "no topology, no edges: {fresh}");
    harness.now = START.plus(Micros::from_secs(5));
    let older = confidence(&harness);
    assert!((older / fresh - 0.875).abs() < 1e-9, "half of the limit: {older}");
    harness.now = START.plus(Micros::from_secs(11));
    let preview = harness.propose(&Arc::new(maps("a", 1))).unwrap().preview();
    assert!((preview.hints[0].confidence / fresh - 0.5).abs() < 1e-9);
    assert!(preview.degraded.contains(&"old_heartbeats".to_owned()));
    let age = preview.ages.iter().find(|age| age.source == Source::Heartbeats).unwrap();
    assert_eq!((age.age, age.stale), (Some(Micros::from_secs(11)), true));
}

/// Four containers fit on each of eight nodes, two a rack: the root's own, one that is measured, its neighbor and others.
#[test]
fn confidence_falls_with_the_age_of_the_latency_that_a_host_was_chosen_by() {
    let mut harness = EngineHarness::with_nodes(8, 4096);
    let an_hour = Micros::from_secs(3_600);
    (harness.settings.stale_after, harness.settings.lost_after) = (an_hour, an_hour);
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.places_by("nomora");
    let rtts = [30; 16].into_iter().collect();
    harness.change(Change::Latency(Measured { from: "h0".into(), to: "h2".into(), path: 0, rtts, at: harness.now }));
    harness.publish();
    let mut asked = maps("a", 32);
    asked.am_host = Some("h0".into());
    let asked = Arc::new(asked);
    // Against those on the root's own host, of which nobody has to measure anything.
    let confidence = |harness: &EngineHarness| {
        let hints = harness.propose(&asked).unwrap().preview().hints;
        let of = |host: &str| hints.iter().find(|hint| hint.host.as_str() == host).unwrap().confidence;
        ["h1", "h2", "h3", "h4"].map(|host| of(host) / of("h0"))
    };
    let is = |found: [f64; 4], expected: [f64; 4]| {
        let off = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f64::max);
        assert!(off < 1e-9, "{found:?}, expected {expected:?}");
    };
    is(confidence(&harness), [0.5, 1.0, 1.0, 0.5]); // of h3 the racks are known, of h1 and h4 nothing but the distance
    harness.now = START.plus(Micros::from_secs(30));
    is(confidence(&harness), [0.5, 0.875, 0.875, 0.5]);
    harness.publish();
    is(confidence(&harness), [0.5, 0.875, 0.875, 0.5]);
    harness.now = START.plus(Micros::from_secs(61));
    is(confidence(&harness), [0.5; 4]);
    // A policy that reads no latency is none the less sure for want of it.
    harness.places_by("spread");
    is(confidence(&harness), [1.0; 4]);
}

#[test]
fn the_replacement_table_names_what_the_hints_name() {
    let mut harness = EngineHarness::with_nodes(4, 4096);
    harness.placer.fallbacks = 3;
    let mut asked = maps("a", 2);
    asked.asks = vec![crate::testing::ask(asked.groups[0].key, "*", 2)];
    let answer = harness.ask(asked);
    let count = |name: &str| answer.decision.asks.iter().find(|ask| &*ask.resource_name == name).map(|ask| ask.count);
    for hint in &answer.decision.hints {
        assert_eq!(hint.fallbacks.len(), 3, "every other host has room");
        assert!(count(hint.host.as_str()) >= Some(hint.count));
        assert!(hint.racks.iter().all(|rack| count(rack.as_str()).is_some()));
    }
    assert_eq!(count("*"), Some(2));
    assert!(answer.decision.asks.iter().all(|ask| ask.relax_locality));
}

#[test]
fn the_default_placement_stands_beside_unless_time_is_up() {
    let harness = EngineHarness::with_nodes(4, 4096);
    let preview = harness.propose(&Arc::new(maps("a", 2))).unwrap().preview();
    assert!(preview.baseline.is_some());
    let generation = harness.engine.generation();
    let policy = hintd_policy::registry::with_defaults("spread").unwrap();
    let chosen = crate::SelectedPolicy { policy: &*policy, baseline: &*policy, mode: crate::Mode::On, name: "spread" };
    let request = Arc::new(maps("a", 2));
    let hurried = crate::propose(&generation, &request, &chosen, &harness.placer, harness.now, &mut || true).unwrap();
    assert_eq!(hurried.preview().baseline, None, "absent, never zero");
}

#[test]
fn what_runs_and_what_is_leased_already_anchors_later_requests() {
    let mut harness = EngineHarness::with_nodes(3, 8192);
    harness.beat("h2", 1024, Some(&[running(container(attempt(1, 1), 1))]));
    harness.publish();
    let mut first = maps("a", 1);
    first.constraints.avoid_hosts = vec!["h0".into(), "h2".into()];
    harness.ask(first);
    let generation = harness.engine.generation();
    let mut second = maps("b", 1);
    second.am_host = Some("h2".into());
    let anchors = crate::placer::anchors_of(&generation, &second);
    assert_eq!(anchors, [("h1".into(), 1), ("h2".into(), 1)], "the ApplicationMaster is the container on h2");
}

#[test]
fn two_sizes_under_one_scheduler_key_are_refused() {
    let harness = EngineHarness::with_nodes(2, 8192);
    let mut asked = request("a", &[("map", 1), ("side", 1), ("reduce", 1)]);
    asked.groups[2].key = asked.groups[0].key;
    assert!(harness.propose(&Arc::new(asked.clone())).is_ok(), "they are alike");
    asked.groups[2].size.memory_mb += 1;
    let Refusal::Invalid { field, message } = harness.refusal(asked) else { panic!("another refusal") };
    assert_eq!(field, "groups[2].priority");
    assert!(message.contains("\"map\"") && message.contains("\"reduce\""), "{message}");
}

#[test]
fn containers_without_room_are_told_what_blocks_and_which_node_comes_nearest() {
    let mut harness = EngineHarness::with_nodes(3, 4096);
    let mut bounded = maps("bounded", 5);
    bounded.constraints.max_per_node = 1;
    let decision = harness.ask(bounded).decision.clone();
    let [blocked] = &decision.blocked[..] else { panic!("{:?}", decision.blocked) };
    assert_eq!((&*blocked.constraint, blocked.bound, blocked.nodes, blocked.count), ("max_per_node", 1, 3, 2));
    assert_eq!(blocked.nearest[0].to_string(), "h0: max_per_node, all else fits");

    let mut harness = EngineHarness::with_nodes(3, 4096);
    harness.beat("h0", 3584, Some(&[]));
    harness.beat("h2", 4096, Some(&[]));
    harness.publish();
    let mut avoiding = maps("avoiding", 1);
    avoiding.constraints.avoid_hosts = vec!["h1".into()];
    let decision = harness.ask(avoiding).decision.clone();
    let [blocked] = &decision.blocked[..] else { panic!("{:?}", decision.blocked) };
    assert_eq!((&*blocked.constraint, blocked.nodes), ("no_room", 2));
    let nearest: Vec<String> = blocked.nearest.iter().map(ToString::to_string).collect();
    let expected = ["h1: avoided_host, all else fits", "h0: 512 MB short (no_room), all else fits"];
    assert_eq!(nearest[..2], expected);
    assert_eq!(nearest[2], "h2: 1024 MB short (no_room), all else fits");

    let mut large = maps("large", 1);
    large.groups[0].size.memory_mb = 5000;
    large.groups[0].label = None;
    let refusal = harness.refusal(large);
    let [blocked] = refusal.blocked() else { panic!("{refusal}") };
    assert_eq!((&*blocked.constraint, blocked.nodes), ("node_too_small", 3));
}
