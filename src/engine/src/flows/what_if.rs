//! What would change if links or switches were taken out of service: asked before anyone touches the network.

use super::choose::RoutingContext;
use super::pairs::{Links, is_whole};
use super::settings::RouteSettings;
use super::uses::{Modelled, Sending, sends};
use crate::generation::Generation;
use crate::refusal::Refusal;
use crate::routes::{NamedRoute, View, WatchedPair};
use hintd_model::cluster::{NodePair, PairRoute, STEPS_AT_ONCE};
use hintd_model::network::maxmin::directions;
use hintd_model::network::{Network, Tier, cut};
use hintd_model::units::{ApplicationId, BitsPerSec, HostName, LinkName, Micros, VertexIdx};
use hintd_policy::flow_index::{FlowIndex, JobSlot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Pairs of default forwarding between two looks at the probe.
const PAIRS_BETWEEN_LOOKS: usize = 64;

/// What is to be taken out of service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drain {
    /// Links.
    pub links: Vec<LinkName>,
    /// Switches, with all their links.
    pub switches: Vec<Arc<str>>,
}

/// What would come of it. Utilities are in bits/s, as 000's Algorithm 1 sums them over the sinks of all jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkWhatIf {
    /// Routes that would be others, by pair.
    pub routes: Vec<RouteForecast>,
    /// Pairs whose route would stay.
    pub untouched: u64,
    /// Links whose load would be another, by position in the network.
    pub links: Vec<LinkForecast>,
    /// Utility of now.
    pub utility_before: f64,
    /// Utility then.
    pub utility_after: f64,
    /// Applications with routes that would be others, or whose utility would.
    pub applications: Vec<ApplicationForecast>,
    /// Hosts that would reach no other, or not the most of them, and do now: a rack without uplinks is among them.
    pub cut_off_hosts: Vec<HostName>,
}

/// One pair's route, now and then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteForecast {
    /// Whose.
    pub pair: WatchedPair,
    /// Now.
    pub old: NamedRoute,
    /// Then; empty: no path would be left, see `cut`.
    pub new: NamedRoute,
    /// What bounds the part of the network that the sender would still reach; empty where there is a path.
    pub cut: Vec<Arc<str>>,
}

/// One link's modelled load, now and then.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkForecast {
    /// Which.
    pub link: LinkName,
    /// bits/s now, from its first end to its second and back.
    pub before: [f64; 2],
    /// bits/s then.
    pub after: [f64; 2],
    /// Each direction's.
    pub capacity: BitsPerSec,
}

/// One application, now and then.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationForecast {
    /// Which.
    pub application: ApplicationId,
    /// Routes of its that would be others, or none.
    pub routes_moved: u64,
    /// Of these, those that would be none.
    pub routes_cut: u64,
    /// Its sinks' rate now, bits/s.
    pub utility_before: f64,
    /// Then.
    pub utility_after: f64,
}

/// What taking `drain` out of service would change. Reads one generation and changes nothing.
///
/// # Errors
/// [`Refusal::Unknown`] for a link or switch that the network does not name; [`Refusal::MissingFeed`] without a
/// network; [`Refusal::Unavailable`] where `stop` says to stop first, or where more paths would have to be looked for than
/// one question may.
pub fn what_if_network(
    generation: &Generation,
    drain: &Drain,
    settings: &RouteSettings,
    stop: &mut dyn FnMut() -> bool,
) -> Result<NetworkWhatIf, Refusal> {
    let snapshot = &generation.snapshot;
    let topology = &snapshot.topology;
    let (Some(network), Some(paths)) = (topology.network.as_deref(), topology.paths()) else {
        let message = "no network is known, so nothing in it can be taken out of service".to_owned();
        return Err(Refusal::MissingFeed { feed: "topology", message });
    };
    let after = drained(network, drain)?;
    let mut paths = paths.clone();
    if paths.update_within(&after, STEPS_AT_ONCE, stop).is_none() {
        paths.become_lazy(&after);
    }
    let ways = RoutingContext::with(snapshot, &after, Arc::new(paths), false, settings);
    let (mut index, slots) = filled(generation, network);
    let before: Vec<f64> = slots.iter().map(|&slot| index.job_utility(slot)).collect();
    let utility_before = index.utility();
    let moved = reroute_hit(&mut index, generation, network, &ways, stop)?;
    let now = |pair: NodePair, route: &PairRoute| {
        let of = Sending::of(route);
        Sending { links: moved.get(&pair).cloned().unwrap_or(of.links), ..of }
    };
    let routes = &generation.flows.routes;
    let sending = routes.iter().filter(|(_, route)| sends(route));
    let later = Modelled::of(&after, sending.map(|(pair, route)| (*pair, now(*pair, route))).collect());
    let mut applications: BTreeMap<ApplicationId, ApplicationForecast> = BTreeMap::new();
    for ((job, &slot), before) in generation.flows.jobs.iter().zip(&slots).zip(before) {
        let application = job.attempt.application;
        let of = applications.entry(application).or_insert(ApplicationForecast {
            application,
            routes_moved: 0,
            routes_cut: 0,
            utility_before: 0.0,
            utility_after: 0.0,
        });
        of.routes_moved += job.traffic.flows.iter().filter(|flow| moved.contains_key(&flow.pair)).count() as u64;
        let is_cut = |pair: &NodePair| moved.get(pair).is_some_and(|route| route.is_empty());
        of.routes_cut += job.traffic.flows.iter().filter(|flow| is_cut(&flow.pair)).count() as u64;
        of.utility_before += before;
        of.utility_after += index.job_utility(slot);
    }
    applications.retain(|_, of| of.routes_moved > 0 || differ(of.utility_before, of.utility_after));
    Ok(NetworkWhatIf {
        untouched: (routes.len() - moved.len()) as u64,
        routes: moved.iter().map(|(pair, new)| forecast(generation, &after, *pair, new)).collect(),
        links: loads(network, &Modelled::new(network, routes), &later),
        utility_before,
        utility_after: index.utility(),
        applications: applications.into_values().collect(),
        cut_off_hosts: cut_off(&after, network),
    })
}

/// The network without what is drained.
fn drained(network: &Network, drain: &Drain) -> Result<Network, Refusal> {
    let mut after = network.clone();
    for link in &drain.links {
        let unknown = || Refusal::Unknown { what: "link", name: link.to_string(), nearest: None };
        after.set_link(network.link(link.as_str()).ok_or_else(unknown)?, Some(false), None);
    }
    for name in &drain.switches {
        let unknown = || Refusal::Unknown { what: "switch", name: name.to_string(), nearest: None };
        let switch = network.vertex(name).filter(|&vertex| !network.vertex_at(vertex).is_host());
        after.set_switch(switch.ok_or_else(unknown)?, false);
    }
    Ok(after)
}

/// An index of all that runs, and the jobs' places in it.
fn filled(generation: &Generation, network: &Network) -> (FlowIndex, Vec<JobSlot>) {
    let mut index = FlowIndex::new(network, &generation.snapshot.topology);
    index.hold();
    let slots = generation.flows.jobs.iter().map(|job| index.add_job(&job.traffic)).collect();
    for (pair, route) in generation.flows.routes.iter() {
        index.set_route(*pair, Some(&route.links));
    }
    index.recompute_rates();
    (index, slots)
}

/// Takes what is drained out of the index and gives pairs on it other routes: those whose route is another then.
fn reroute_hit(
    index: &mut FlowIndex,
    generation: &Generation,
    network: &Network,
    ways: &RoutingContext<'_>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<BTreeMap<NodePair, Links>, Refusal> {
    index.hold();
    let lost = network.links().map(|(link, _)| link);
    for link in lost.filter(|&link| network.is_usable(link) && !ways.network.is_usable(link)) {
        directions(link).into_iter().for_each(|direction| index.set_capacity(direction, 0.0));
    }
    let routes = generation.flows.routes.iter();
    let hit = routes.filter(|(_, route)| is_whole(network, &route.links) && !is_whole(ways.network, &route.links));
    let hit: BTreeMap<NodePair, bool> = hit.map(|(pair, route)| (*pair, route.installed)).collect();
    let mut moved: BTreeMap<NodePair, Links> = BTreeMap::new();
    for pair in hit.iter().filter(|(_, installed)| !**installed).map(|(pair, _)| *pair) {
        if moved.len().is_multiple_of(PAIRS_BETWEEN_LOOKS) && (stop() || ways.is_spent()) {
            return Err(too_much());
        }
        let route = ways.first(pair);
        index.set_route(pair, Some(&route));
        moved.insert(pair, route);
    }
    index.recompute_rates();
    let ruled: Vec<NodePair> = hit.into_iter().filter(|(_, installed)| *installed).map(|(pair, _)| pair).collect();
    moved.extend(ways.choose(index, &ruled, &BTreeSet::new(), false));
    if ways.is_spent() || stop() {
        return Err(too_much());
    }
    Ok(moved)
}

fn too_much() -> Refusal {
    let message =
        "too many paths would have to be looked for in the time that is left: ask for fewer links or switches"
            .to_owned();
    Refusal::Unavailable { message, retry_after: Micros::from_secs(1) }
}

fn forecast(generation: &Generation, after: &Network, pair: NodePair, new: &Links) -> RouteForecast {
    let view =
        View { snapshot: &generation.snapshot, routes: &generation.flows.routes, chained: &generation.flows.chained };
    let watched = view.watched(pair);
    let old = generation.flows.routes.get(&pair).map(|route| Arc::clone(&route.links)).unwrap_or_else(|| Arc::from([]));
    let ends = view.vertices_of(pair).filter(|_| new.is_empty());
    RouteForecast {
        old: view.named(watched.clone(), &old),
        new: view.named(watched.clone(), new),
        cut: ends.map_or_else(Vec::new, |ends| cut(after, ends.from, ends.to)),
        pair: watched,
    }
}

fn loads(network: &Network, before: &Modelled, after: &Modelled) -> Vec<LinkForecast> {
    let each = network.links().map(|(index, link)| LinkForecast {
        link: link.name.clone(),
        before: directions(index).map(|direction| before.load(direction)),
        after: directions(index).map(|direction| after.load(direction)),
        capacity: link.capacity,
    });
    each.filter(|link| link.before.iter().zip(&link.after).any(|(a, b)| differ(*a, *b))).collect()
}

/// More than rounding.
fn differ(a: f64, b: f64) -> bool {
    (a - b).abs() > 1e-9 * a.abs().max(b.abs())
}

/// Hosts that the other network cuts off from all others, or from most of them, by name.
fn cut_off(after: &Network, before: &Network) -> Vec<HostName> {
    let ([lonely, apart], [lonely_now, apart_now]) = (islands(after), islands(before));
    let cut: BTreeSet<_> = lonely.difference(&lonely_now).chain(apart.difference(&apart_now)).collect();
    cut.into_iter().map(|host| host.as_ref().into()).collect()
}

/// Hosts that reach no other host, and those outside of the island that has the most hosts, the first of equal ones.
fn islands(network: &Network) -> [BTreeSet<Arc<str>>; 2] {
    let mut island: Vec<Option<usize>> = vec![None; network.vertex_rows()];
    let mut hosts: Vec<Vec<Arc<str>>> = Vec::new();
    let mut lonely = BTreeSet::new();
    for (index, vertex) in network.vertices().filter(|(_, vertex)| vertex.is_host()) {
        let Some(switch) = network.attachment(index) else {
            lonely.insert(Arc::clone(&vertex.name));
            continue;
        };
        if island[switch.at()].is_none() {
            spread(network, switch, hosts.len(), &mut island);
            hosts.push(Vec::new());
        }
        hosts[island[switch.at()].expect("it was just set")].push(Arc::clone(&vertex.name));
    }
    let most = (0..hosts.len()).max_by_key(|&at| (hosts[at].len(), std::cmp::Reverse(at)));
    let mut apart = lonely.clone();
    apart.extend((0..hosts.len()).filter(|&at| Some(at) != most).flat_map(|at| hosts[at].iter().cloned()));
    lonely.extend(hosts.into_iter().filter(|hosts| hosts.len() == 1).flatten());
    [lonely, apart]
}

/// Marks all switches that packets from one get to.
fn spread(network: &Network, from: VertexIdx, number: usize, island: &mut [Option<usize>]) {
    let mut open = vec![from];
    island[from.at()] = Some(number);
    while let Some(here) = open.pop() {
        for (index, link) in network.links_of(here) {
            let far = link.other(here);
            let forwards = network.vertex_at(far).tier().is_some_and(|tier| tier != Tier::Optical);
            if forwards && network.is_usable(index) && island[far.at()].is_none() {
                island[far.at()] = Some(number);
                open.push(far);
            }
        }
    }
}
