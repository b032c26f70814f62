//! Links: what they can carry, what they carry, and for whom.

use super::pairs::{Links, is_whole};
use crate::generation::Generation;
use crate::routes::view::undirected;
use hintd_model::cluster::{NodePair, PairRoute, Shards};
use hintd_model::network::maxmin::{capacities, directions};
use hintd_model::network::{Link, MaxMin, Network};
use hintd_model::units::{ApplicationId, BitsPerSec, DirectedLinkIdx, FlowIdx, LinkIdx, LinkName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One link and who uses it.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkUse {
    /// Which.
    pub link: LinkName,
    /// Its ends.
    pub ends: [Arc<str>; 2],
    /// Each direction's.
    pub capacity: BitsPerSec,
    /// Whether it carries traffic: it and its switches are up.
    pub up: bool,
    /// New routes avoid it for a while, because it flapped.
    pub damped: bool,
    /// bits/s, from its first end to its second and back; 0 where it is down, whatever was counted before.
    pub load: [f64; 2],
    /// Where the load is from.
    pub source: LoadSource,
    /// What the model has on it, bits/s each way, whatever the load is from; 0 where it is down.
    pub modelled: [f64; 2],
    /// Pairs of tasks that send over it, each way.
    pub task_pairs: [u64; 2],
    /// Applications that send over it with their modelled rates, both ways together, greatest first.
    pub users: Vec<LinkUser>,
}

/// What one application sends over a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkUser {
    /// Which.
    pub application: ApplicationId,
    /// Modelled, bits/s, both ways together.
    pub bits_per_s: f64,
    /// The same each way: from the link's first end to its second, and back.
    pub each: [f64; 2],
}

/// Where a load is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadSource {
    /// Counters of the SDN.
    Measured,
    /// Max-min fair rates of the running flows.
    Modelled,
}

impl LoadSource {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Modelled => "modelled",
        }
    }
}

/// All links of the network, in its order; none without a network.
#[must_use]
pub fn link_uses(generation: &Generation) -> Vec<LinkUse> {
    let snapshot = &generation.snapshot;
    let Some(network) = snapshot.topology.network.as_deref() else { return Vec::new() };
    let modelled = Modelled::new(network, &generation.flows.routes);
    let mut users = modelled.users(generation);
    let link_use = |(index, link): (LinkIdx, &Link)| {
        let measured = snapshot.link_loads.get(&link.name);
        let each = directions(index);
        let modelled_load = each.map(|direction| if network.is_usable(index) { modelled.load(direction) } else { 0.0 });
        LinkUse {
            link: link.name.clone(),
            ends: [link.a, link.b].map(|end| Arc::clone(&network.vertex_at(end).name)),
            capacity: link.capacity,
            up: network.is_usable(index),
            damped: generation.flows.damped.contains(&index),
            load: match measured {
                // Counters of before it went say nothing of now.
                _ if !network.is_usable(index) => [0.0; 2],
                Some(load) => [load.a_to_b.as_f64(), load.b_to_a.as_f64()],
                None => modelled_load,
            },
            modelled: modelled_load,
            source: if measured.is_some() { LoadSource::Measured } else { LoadSource::Modelled },
            task_pairs: each.map(|direction| modelled.task_pairs.get(&direction).copied().unwrap_or(0)),
            users: users.remove(&index).unwrap_or_default(),
        }
    };
    network.links().map(link_use).collect()
}

/// Whether a pair is known to send anything.
pub(super) fn sends(route: &PairRoute) -> bool {
    route.bytes.0 > 0
}

/// Max-min fair rates of routed pairs that send something: of a pair with no bytes, or none that are known, nobody can say
/// that it loads a link, and a flow without an end would fill it.
pub(crate) struct Modelled {
    rates: MaxMin,
    /// By pair with a whole route: its flow and route.
    flows: BTreeMap<NodePair, (FlowIdx, Links)>,
    task_pairs: BTreeMap<DirectedLinkIdx, u64>,
}

impl Modelled {
    pub(crate) fn new(network: &Network, routes: &Shards<NodePair, Arc<PairRoute>>) -> Self {
        let sending = routes.iter().filter(|(_, route)| sends(route));
        let routes = sending.map(|(pair, route)| (*pair, (Arc::clone(&route.links), route.task_pairs)));
        Self::of(network, routes.collect())
    }

    /// Of routes with the task pairs that send over them, those of [`sends`].
    pub(super) fn of(network: &Network, routes: BTreeMap<NodePair, (Links, u64)>) -> Self {
        let mut rates = MaxMin::new(&capacities(network)).expect("a network's capacities are integers below the bound");
        let (mut flows, mut task_pairs) = (BTreeMap::new(), BTreeMap::new());
        for (pair, (links, weight)) in routes {
            let weight = u32::try_from(weight).unwrap_or(u32::MAX);
            if !is_whole(network, &links) {
                continue;
            }
            let Ok(flow) = rates.add(&links, weight) else { continue };
            for &link in links.iter() {
                *task_pairs.entry(link).or_default() += u64::from(weight);
            }
            flows.insert(pair, (flow, links));
        }
        rates.recompute_rates();
        Self { rates, flows, task_pairs }
    }

    /// bits/s.
    pub(crate) fn load(&self, direction: DirectedLinkIdx) -> f64 {
        self.rates.load(direction)
    }

    fn users(&self, generation: &Generation) -> BTreeMap<LinkIdx, Vec<LinkUser>> {
        let mut sums: BTreeMap<(LinkIdx, ApplicationId), [f64; 2]> = BTreeMap::new();
        for job in &generation.flows.jobs {
            // Of a pair that others send over as well this job's flow may still have no bytes.
            for flow in job.traffic.flows.iter().filter(|flow| flow.bytes.0 > 0) {
                let Some((index, links)) = self.flows.get(&flow.pair) else { continue };
                let bits_per_s = self.rates.level(*index).unwrap_or(0.0) * f64::from(flow.task_pairs);
                for link in links.iter() {
                    let (link, forward) = undirected(*link);
                    sums.entry((link, job.attempt.application)).or_default()[usize::from(!forward)] += bits_per_s;
                }
            }
        }
        let mut users: BTreeMap<LinkIdx, Vec<LinkUser>> = BTreeMap::new();
        for ((link, application), each) in sums {
            let bits_per_s = each.iter().sum();
            users.entry(link).or_default().push(LinkUser { application, bits_per_s, each });
        }
        for of in users.values_mut() {
            of.sort_by(|a, b| b.bits_per_s.total_cmp(&a.bits_per_s));
        }
        users
    }
}
