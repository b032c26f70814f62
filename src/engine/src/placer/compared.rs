//! What hints are compared by, in names: the links that costs are of, and where YARN would put the containers by itself.

use crate::compared::{BaselinePlace, BaselinePlaces, CostLink, CostLinks};
use hintd_model::cluster::Snapshot;
use hintd_model::network::Network;
use hintd_model::units::{DirectedLinkIdx, LinkIdx, VertexIdx};
use hintd_policy::terms::link_time::{BusiestLink, LinkPlace, busiest_link};
use hintd_policy::terms::rack_rates::uplinks_of;
use hintd_policy::{PlaceProblem, Placement, Share, Terms};
use std::cmp::Reverse;
use std::sync::Arc;

/// Uplinks of a rack that are named.
const LINKS_NAMED: usize = 4;
/// Hosts that are named of a group, and rows of all groups: an answer is kept for long.
const HOSTS_NAMED: usize = 8;
const ROWS_MAX: usize = 64;

/// The links that the costs of a placement are of; `terms` are its.
pub(super) fn links(problem: &PlaceProblem<'_>, placement: &Placement, terms: &Terms) -> CostLinks {
    let snapshot = problem.snapshot;
    let busiest = busiest_link(problem, placement).filter(|link| link.seconds.is_finite());
    let worst = terms.worst_link.zip(terms.worst_link_s.filter(|seconds| seconds.is_finite()));
    let network = snapshot.topology.network.as_deref();
    CostLinks {
        busiest: busiest.map(|link| busiest_named(snapshot, link)),
        worst: network.zip(worst).map(|(network, (link, seconds))| worst_named(network, link, seconds)),
    }
}

fn worst_named(network: &Network, link: DirectedLinkIdx, seconds: f64) -> CostLink {
    let index = LinkIdx(link.0 / 2);
    let found = network.link_at(index);
    let from = if link.0.is_multiple_of(2) { found.a } else { found.b };
    between(network, index, from, true, seconds)
}

/// One link; `below` is the end that it is seen from.
fn between(network: &Network, index: LinkIdx, below: VertexIdx, up: bool, seconds: f64) -> CostLink {
    let link = network.link_at(index);
    let [below, above] = [below, link.other(below)].map(|end| Arc::clone(&network.vertex_at(end).name));
    let (from, to) = if up { (below, above) } else { (above, below) };
    CostLink { links: vec![link.name.clone()], links_total: 1, from, to, seconds }
}

fn busiest_named(snapshot: &Snapshot, BusiestLink { at, up, seconds }: BusiestLink) -> CostLink {
    let network = snapshot.topology.network.as_deref();
    let links: Vec<(LinkIdx, VertexIdx)> = match at {
        LinkPlace::Node(node) => {
            let vertex = snapshot.topology.vertex.get(node.at()).copied().flatten();
            let link = network.zip(vertex).and_then(|(network, vertex)| Some((network.access_link(vertex)?, vertex)));
            link.into_iter().collect()
        }
        LinkPlace::Rack(rack) => network.map(|network| uplinks_of(snapshot, network, rack)).unwrap_or_default(),
    };
    if let (Some(network), [(index, below)]) = (network, links.as_slice()) {
        return between(network, *index, *below, up, seconds);
    }
    let whose: Arc<str> = match at {
        LinkPlace::Node(node) => snapshot.host(node).as_str().into(),
        LinkPlace::Rack(rack) => snapshot.statics.racks[rack.at()].as_str().into(),
    };
    let name = |network: &Network| {
        let name = |(index, _): &(LinkIdx, VertexIdx)| network.link_at(*index).name.clone();
        links.iter().take(LINKS_NAMED).map(name).collect()
    };
    let (from, to) = if up { (whose, "".into()) } else { ("".into(), whose) };
    let links_total = u32::try_from(links.len()).unwrap_or(u32::MAX);
    CostLink { links: network.map(name).unwrap_or_default(), links_total, from, to, seconds }
}

/// Where YARN would put the containers by itself.
pub(super) fn baseline_places(problem: &PlaceProblem<'_>, default: &Placement) -> BaselinePlaces {
    let snapshot = problem.snapshot;
    let mut found = BaselinePlaces::default();
    for (group, shares) in problem.groups.iter().zip(&default.groups) {
        let mut shares: Vec<Share> = shares.clone();
        shares.sort_by_key(|share| (Reverse(share.count), share.node));
        let named = shares.len().min(HOSTS_NAMED).min(ROWS_MAX.saturating_sub(found.places.len()));
        let rest = &shares[named..];
        found.more_containers += rest.iter().map(|share| u64::from(share.count)).sum::<u64>();
        found.more_hosts = found.more_hosts.saturating_add(u32::try_from(rest.len()).unwrap_or(u32::MAX));
        found.places.extend(shares[..named].iter().map(|share| BaselinePlace {
            group: Arc::clone(&group.name),
            host: snapshot.host(share.node).clone(),
            rack: snapshot.statics.racks[snapshot.rack(share.node).at()].clone(),
            count: share.count,
        }));
    }
    found
}
