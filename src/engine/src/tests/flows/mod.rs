//! Running flows: who talks to whom over which route, through failures, and what controllers are told of it.

mod came;
mod carried;
pub(in crate::tests) mod controller;
mod heard;
mod lives;
mod storm;
mod watch;

use super::harness::EngineHarness;
use crate::testing::{attempt, request};
use crate::{Effect, RouteSettings, RouteUpdate};
use hintd_model::cluster::{Change, EdgePattern, GroupEdge, HintRequest, NodePair, PairRoute};
use hintd_model::network::Network;
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::units::{Bytes, GroupIdx, LinkName};
use std::sync::Arc;

/// A fat-tree of 4-port switches, 16 hosts of `mb` each.
fn fat_tree(settings: RouteSettings, mb: u64) -> EngineHarness {
    wired(settings, build::fat_tree(&FatTreeSpec::default()).unwrap(), mb)
}

pub(super) fn wired(settings: RouteSettings, built: build::BuiltNetwork, mb: u64) -> EngineHarness {
    let mut harness = EngineHarness::new();
    harness.settings.routes = settings;
    harness.engine.reload(harness.settings.clone(), harness.now);
    harness.change(Change::Network(Some(Arc::new(built.network))));
    for (rack, hosts) in &built.racks {
        for host in hosts {
            harness.register(host.as_str(), rack.as_str(), mb);
            harness.beat(host.as_str(), 0, Some(&[]));
        }
    }
    harness.publish();
    harness
}

/// `maps` send `bytes` to `reduces`.
pub(super) fn shuffle(application: u32, id: &str, (maps, reduces): (u32, u32), bytes: u64) -> HintRequest {
    let mut request = request(id, &[("map", maps), ("reduce", reduces)]);
    request.attempt = attempt(application, 1);
    request.constraints.spread = true;
    request.edges =
        vec![GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: Bytes(bytes) }];
    request
}

const MIB: u64 = 1 << 20;

fn flows(harness: &EngineHarness) -> Arc<hintd_policy::IndexedFlows> {
    Arc::clone(&harness.engine.generation().flows)
}

fn routes(harness: &EngineHarness) -> Vec<(NodePair, Arc<PairRoute>)> {
    let flows = flows(harness);
    let mut routes: Vec<_> = flows.routes.iter().map(|(pair, route)| (*pair, Arc::clone(route))).collect();
    routes.sort_by_key(|(pair, _)| *pair);
    routes
}

fn network(harness: &EngineHarness) -> Arc<Network> {
    harness.engine.current_snapshot().topology.network.clone().unwrap()
}

fn set(harness: &mut EngineHarness, link: &LinkName, up: bool) {
    harness.change(Change::Link { link: link.clone(), up: Some(up), capacity: None });
    harness.publish();
}

fn done(harness: &mut EngineHarness, application: u32) {
    let what = crate::TaskWhat::Done { failed: false };
    harness.event(attempt(application, 1), "", what);
    harness.publish();
}

pub(in crate::tests) fn updates(harness: &mut EngineHarness, name: &str) -> Vec<Arc<RouteUpdate>> {
    let (told, rest) =
        std::mem::take(&mut harness.out).into_iter().partition(|effect| matches!(effect, Effect::Routes { .. }));
    harness.out = rest;
    let told: Vec<Effect> = told;
    let of = told.into_iter().filter_map(|effect| match effect {
        Effect::Routes { watcher, update } if *watcher == *name => Some(update),
        _ => None,
    });
    of.collect()
}
