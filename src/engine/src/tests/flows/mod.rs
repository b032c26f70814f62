//! Running flows: who talks to whom over which route, through failures, and what controllers are told of it.

pub(in crate::tests) mod controller;
mod lives;
mod storm;
mod watch;

use super::desk::Desk;
use crate::testing::{attempt, request};
use crate::{Effect, RouteSettings, RouteUpdate};
use hintd_model::cluster::{Change, EdgePattern, GroupEdge, HintRequest, NodePair, PairRoute};
use hintd_model::network::Network;
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::units::{Bytes, GroupIdx, LinkName};
use std::sync::Arc;

/// A fat-tree of 4-port switches, 16 hosts of `mb` each.
fn fat_tree(settings: RouteSettings, mb: u64) -> Desk {
    wired(settings, build::fat_tree(&FatTreeSpec::default()).unwrap(), mb)
}

pub(super) fn wired(settings: RouteSettings, built: build::BuiltNetwork, mb: u64) -> Desk {
    let mut desk = Desk::new();
    desk.settings.routes = settings;
    desk.engine.reload(desk.settings.clone(), desk.now);
    desk.change(Change::Network(Some(Arc::new(built.network))));
    for (rack, hosts) in &built.racks {
        for host in hosts {
            desk.register(host.as_str(), rack.as_str(), mb);
            desk.beat(host.as_str(), 0, Some(&[]));
        }
    }
    desk.publish();
    desk
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

fn flows(desk: &Desk) -> Arc<hintd_policy::IndexedFlows> {
    Arc::clone(&desk.engine.generation().flows)
}

fn routes(desk: &Desk) -> Vec<(NodePair, Arc<PairRoute>)> {
    let flows = flows(desk);
    let mut routes: Vec<_> = flows.routes.iter().map(|(pair, route)| (*pair, Arc::clone(route))).collect();
    routes.sort_by_key(|(pair, _)| *pair);
    routes
}

fn network(desk: &Desk) -> Arc<Network> {
    desk.engine.settled().topology.network.clone().unwrap()
}

fn set(desk: &mut Desk, link: &LinkName, up: bool) {
    desk.change(Change::Link { link: link.clone(), up: Some(up), capacity: None });
    desk.publish();
}

fn done(desk: &mut Desk, application: u32) {
    let what = crate::TaskWhat::Done { failed: false };
    desk.event(attempt(application, 1), "", what);
    desk.publish();
}

fn updates(desk: &mut Desk, name: &str) -> Vec<Arc<RouteUpdate>> {
    let (told, rest) =
        std::mem::take(&mut desk.out).into_iter().partition(|effect| matches!(effect, Effect::Routes { .. }));
    desk.out = rest;
    let told: Vec<Effect> = told;
    let of = told.into_iter().filter_map(|effect| match effect {
        Effect::Routes { watcher, update } if *watcher == *name => Some(update),
        _ => None,
    });
    of.collect()
}
