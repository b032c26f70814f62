//! Watched routes: a failed link moves what is on it, and nothing else.

use super::harness::EngineHarness;
use crate::{Effect, Refusal, RouteUpdate, WatchScope, WatchedPair};
use hintd_model::cluster::Change;
use hintd_model::network::build::{self, tree_named};
use hintd_model::units::LinkName;
use std::sync::Arc;

fn pair(src: &str, dst: &str) -> WatchedPair {
    WatchedPair { src: src.into(), dst: dst.into(), class: "".into() }
}

/// Two racks of two hosts, two core switches.
fn wired() -> EngineHarness {
    let mut harness = EngineHarness::new();
    let spec = build::TreeSpec { racks: 2, hosts_per_rack: 2, ..build::TreeSpec::default() };
    let built = tree_named(&spec, &build::by_rack("h")).unwrap();
    harness.change(Change::Network(Some(Arc::new(built.network))));
    for (rack, hosts) in &built.racks {
        for host in hosts {
            harness.register(host.as_str(), rack.as_str(), 4096);
        }
    }
    harness.publish();
    harness
}

/// Watches these pairs; the snapshot.
fn watch(harness: &mut EngineHarness, name: &str, pairs: Vec<WatchedPair>) -> Result<Arc<RouteUpdate>, Refusal> {
    let mut first = harness.engine.watch(name, WatchScope { pairs, ..WatchScope::default() }, harness.now)?;
    assert_eq!(first.len(), 1);
    Ok(first.remove(0))
}

fn updates(harness: &mut EngineHarness) -> Vec<(String, Arc<RouteUpdate>)> {
    let out = std::mem::take(&mut harness.out);
    let routes = out.into_iter().filter_map(|effect| match effect {
        Effect::Routes { watcher, update } => Some((watcher.to_string(), update)),
        _ => None,
    });
    routes.collect()
}

fn link(harness: &mut EngineHarness, name: &LinkName, up: bool) {
    harness.change(Change::Link { link: name.clone(), up: Some(up), capacity: None });
    harness.publish();
}

#[test]
fn a_failed_link_gives_its_pairs_the_shortest_path_left_and_touches_no_other() {
    let mut harness = wired();
    let pairs = vec![pair("h-01-1", "h-02-1"), pair("h-01-1", "h-01-2"), pair("h-02-1", "h-02-2")];
    let first = watch(&mut harness, "sdn", pairs).unwrap();
    assert_eq!((first.number, first.snapshot, first.routes.len(), first.cause), (1, true, 3, "initial"));
    let far = first.routes.iter().find(|route| route.vertices.len() == 5).unwrap().clone();
    link(&mut harness, &far.links[1], false);
    let told = updates(&mut harness);
    assert_eq!(told.len(), 1);
    let (watcher, update) = &told[0];
    assert_eq!((watcher.as_str(), update.number, update.snapshot, update.untouched), ("sdn", 2, false, 2));
    assert_eq!((update.cause, &*update.subject), ("link_down", far.links[1].as_str()));
    assert_eq!((update.routes.len(), update.routes[0].vertices.len()), (1, 5));
    assert!(!update.routes[0].links.contains(&far.links[1]));
    // Its only access link: no path is left.
    link(&mut harness, &far.links[0], false);
    let told = updates(&mut harness);
    assert!(told[0].1.routes.iter().all(|route| route.vertices.is_empty()), "{told:?}");
    assert_eq!((told[0].1.routes.len(), told[0].1.untouched), (2, 1));
    link(&mut harness, &far.links[0], true);
    assert_eq!(updates(&mut harness)[0].1.cause, "link_up");
}

#[test]
fn a_replaced_network_tells_only_what_differs_and_ended_watches_hear_nothing() {
    let mut harness = wired();
    watch(&mut harness, "gone", vec![pair("h-01-1", "h-02-1")]).unwrap();
    watch(&mut harness, "sdn", vec![pair("h-01-1", "h-02-1"), pair("h-01-1", "h-01-2")]).unwrap();
    harness.engine.unwatch("gone", harness.now);
    let network = harness.engine.current_snapshot().topology.network.clone();
    harness.change(Change::Network(network));
    harness.publish();
    assert_eq!(updates(&mut harness), []);
    harness.change(Change::Network(None));
    harness.publish();
    let told = updates(&mut harness);
    assert_eq!((told.len(), told[0].1.routes.len(), told[0].1.cause), (1, 2, "topology"));
    assert_eq!(harness.engine.counts().routes, 2);
}

#[test]
fn a_change_of_a_network_that_was_replaced_since_is_not_followed() {
    let mut harness = wired();
    let first = watch(&mut harness, "sdn", vec![pair("h-01-1", "h-02-1")]).unwrap();
    let network = harness.engine.current_snapshot().topology.network.clone();
    let link = first.routes[0].links[1].clone();
    harness.engine.change(Change::Link { link, up: Some(false), capacity: None }, harness.now).unwrap();
    harness.engine.change(Change::Network(network), harness.now).unwrap();
    harness.publish();
    assert_eq!(updates(&mut harness), []);
}

#[test]
fn a_host_that_nobody_names_can_not_be_watched() {
    let mut harness = wired();
    let refused = watch(&mut harness, "sdn", vec![pair("h-01-1", "nowhere")]);
    assert!(matches!(refused, Err(Refusal::Unknown { what: "host", .. })));
}
