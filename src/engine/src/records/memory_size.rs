//! Bytes of what records hold, from what its parts take; allocators round up, by a tenth or so.

use crate::arrivals::Arrived;
use crate::decision::{Blocked, Decision, Hint, HintRoute, TermValues};
use crate::history::JobHistory;
use crate::placer::PlacerSettings;
use hintd_model::cluster::{
    Application, Ask, Constraints, Dataset, HintRequest, JobFlows, LinkLoad, NamedResource, NodeStatics, PairRoute,
};
use hintd_model::network::{Distances, Network};
use hintd_model::units::LinkName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pointer into a table and what the table keeps beside it.
const ROW: usize = 24;

/// What the allocator keeps beside a list of its own.
const LIST: usize = 16;

fn text(text: &str) -> usize {
    text.len() + ROW
}

/// A tree's leaves hold up to eleven rows, and are made whole.
fn parts(terms: &TermValues) -> usize {
    const LEAF: usize = 400;
    // Names of links and their ends are the network's.
    let links = [&terms.links.busiest, &terms.links.worst].into_iter().flatten();
    let links: usize = links.map(|link| LIST + size_of_val(&*link.links)).sum();
    links + terms.parts.len().div_ceil(8) * LEAF + terms.parts.keys().map(|name| text(name)).sum::<usize>()
}

fn texts(all: &[Arc<str>]) -> usize {
    size_of_val(all) + all.iter().map(|text| text.len() + ROW).sum::<usize>()
}

/// Names, racks and totals: some 300 bytes a node.
pub(super) fn statics(statics: &NodeStatics) -> usize {
    const NAMED: usize = 2 * 40; // by host and by other names
    let columns = 16 + 4 + 64 + 8 + 4 + 8 + 8;
    let names: usize = statics.host.iter().map(|host| host.as_str().len() + ROW).sum();
    statics.len() * (columns + NAMED + 4) + names + statics.racks.len() * 128
}

/// Vertices, links and their names.
pub(super) fn network(network: &Network) -> usize {
    const VERTEX: usize = 160;
    const LINK: usize = 200;
    network.vertices().count() * VERTEX + network.links().count() * LINK
}

/// Rows by link; their names are the network's.
pub(super) fn link_loads(loads: &BTreeMap<LinkName, LinkLoad>) -> usize {
    // A tree's leaf is two thirds full.
    const ROW: usize = (size_of::<LinkName>() + size_of::<LinkLoad>()) * 3 / 2;
    loads.len() * ROW
}

/// One byte a pair of attachment switches, and two a count of hops.
pub(super) fn distances(distances: &Distances) -> usize {
    distances.edges() * distances.edges() * 4
}

pub(super) fn dataset(dataset: &Dataset) -> usize {
    let spilt = dataset.blocks.iter().filter(|block| block.replicas.spilled());
    size_of_val(&*dataset.blocks) + spilt.map(|block| block.replicas.len() * 4).sum::<usize>() + dataset.path.len()
}

pub(super) fn application(application: &Application) -> usize {
    application.containers.len() * 160
}

pub(super) fn job_history(job: &JobHistory) -> usize {
    let group = |(name, group): (&Arc<str>, &crate::history::GroupHistory)| {
        name.len() + 128 + group.samples.len() * 24 + texts(&group.input_paths)
    };
    job.groups.iter().map(group).sum::<usize>() + job.edges.len() * 80 + texts(&job.input_paths)
}

pub(super) fn arrived(arrived: &Arrived) -> usize {
    size_of::<Arrived>() + arrived.rows() * 48
}

pub(super) fn job_flows(job: &JobFlows) -> usize {
    let traffic = &job.traffic;
    let inlets: usize = traffic.inlets.iter().map(|inlet| size_of_val(inlet) + inlet.flows.len() * 4).sum();
    let sinks: usize = traffic.sinks.iter().map(|sink| size_of_val(sink) + sink.inlets.len() * 4).sum();
    size_of::<JobFlows>() + size_of_val(&*traffic.flows) + inlets + sinks
}

pub(super) fn route(route: &PairRoute) -> usize {
    size_of::<PairRoute>() + size_of_val(&*route.links) + 2 * ROW
}

fn size(size: &NamedResource) -> usize {
    size_of_val(&*size.named)
}

fn constraints(bounds: &Constraints) -> usize {
    let hosts: usize = bounds.avoid_hosts.iter().map(|host| host.as_str().len() + ROW + 16).sum();
    hosts + bounds.avoid_racks.iter().map(|rack| rack.as_str().len() + ROW + 16).sum::<usize>()
}

fn ask(ask: &Ask) -> usize {
    size_of::<Ask>() + ask.resource_name.len() + ROW + size(&ask.size)
}

pub(crate) fn request(request: &HintRequest) -> usize {
    let group = |group: &hintd_model::cluster::TaskGroup| {
        let names = group.name.len() + group.role.len() + 2 * ROW;
        size_of_val(group) + names + size(&group.size) + texts(&group.input_paths) + constraints(&group.constraints)
    };
    let named = [&request.user, &request.framework].into_iter().chain(&request.recurring_key).chain(&request.policy);
    size_of::<HintRequest>()
        + text(request.id.as_str())
        + text(request.queue.as_str())
        + named.map(|name| text(name)).sum::<usize>()
        + request.groups.iter().map(group).sum::<usize>()
        + size_of_val(&*request.edges)
        + request.survivors.iter().map(|edge| size_of_val(edge) + text(&edge.with)).sum::<usize>()
        + texts(&request.input_paths)
        + constraints(&request.constraints)
        + request.asks.iter().map(ask).sum::<usize>()
}

pub(super) fn notes(settings: &PlacerSettings) -> usize {
    let located: usize = settings.located.iter().flat_map(|notes| notes.iter()).map(String::len).sum();
    located + settings.planned.as_ref().map_or(0, |run| run.weight())
}

pub(super) fn decision(decision: &Decision) -> usize {
    // Names of hosts and racks are the cluster's own.
    let hint = |hint: &Hint| {
        size_of::<Hint>() + 3 * LIST + (hint.fallbacks.len() + hint.racks.len()) * 16 + hint.leases.len() * 8
    };
    let route =
        |route: &HintRoute| size_of::<HintRoute>() + (route.vertices.len() + route.links.len() + route.cut.len()) * 16;
    let terms = decision.baseline.iter().chain([&decision.terms]).map(parts);
    let places = decision.baseline_places.as_deref();
    let places = places.map_or(0, |found| size_of_val(found) + 2 * LIST + size_of_val(&*found.places));
    let excluded = decision.exclusions.iter().map(|exclusion| size_of_val(exclusion) + exclusion.examples.len() * 16);
    let blocked = |blocked: &Blocked| size_of_val(blocked) + blocked.nearest.len() * 160;
    size_of::<Decision>()
        + 6 * LIST
        + text(decision.request.as_str())
        + text(decision.queue.as_str())
        + decision.hints.iter().map(hint).sum::<usize>()
        + decision.routes.iter().map(route).sum::<usize>()
        + decision.asks.iter().map(ask).sum::<usize>()
        + terms.sum::<usize>()
        + places
        + excluded.sum::<usize>()
        + size_of_val(&*decision.ages)
        + decision.degraded.iter().map(|token| token.len() + ROW).sum::<usize>()
        + decision.learnt.as_ref().map_or(0, |learnt| size_of_val(learnt) + learnt.key.len())
        + decision.pending.len() * 80
        + decision.blocked.iter().map(blocked).sum::<usize>()
}
