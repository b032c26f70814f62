//! Links: what they can carry, what they carry, and for whom.

use super::pairs::{Links, is_whole};
use super::recurring;
use crate::generation::Generation;
use crate::routes::view::undirected;
use hintd_model::cluster::{NodePair, PairRoute, Shards};
use hintd_model::network::maxmin::{capacities, directions};
use hintd_model::network::{Link, MaxMin, Network};
use hintd_model::units::{ApplicationId, BitsPerSec, Bytes, DirectedLinkIdx, FlowIdx, LinkIdx, LinkName};
use std::cmp::Reverse;
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
    /// Applications that send over it, those with most bytes in a direction that is most loaded first.
    pub users: Vec<LinkUser>,
    /// Of what is measured each way the part that no user accounts for, bits/s; 0 where nothing is measured.
    pub unaccounted: [f64; 2],
}

impl LinkUse {
    /// What is measured beside flows goes to applications of which only bytes are known, in proportion to these, and no more
    /// than they fill for a second.
    fn share_the_rest(&mut self, sent: BTreeMap<ApplicationId, [Bytes; 2]>) {
        let mut rest = [0.0; 2];
        if self.source == LoadSource::Measured {
            rest = std::array::from_fn(|way| (self.load[way] - self.modelled[way]).max(0.0));
        }
        let all: [f64; 2] = std::array::from_fn(|way| sent.values().map(|bytes| bytes[way].0 as f64).sum());
        self.unaccounted = rest;
        for (application, bytes) in sent {
            let part = |way: usize| if bytes[way].0 > 0 { bytes[way].0 as f64 / all[way] } else { 0.0 };
            let most = |way: usize| bytes[way].0 as f64 * 8.0 / AT_LEAST_S;
            let each: [f64; 2] = std::array::from_fn(|way| (rest[way] * part(way)).min(most(way)));
            self.unaccounted = std::array::from_fn(|way| (self.unaccounted[way] - each[way]).max(0.0));
            self.users.push(LinkUser { application, bits_per_s: each.iter().sum(), each, bytes });
        }
        let full = self.full();
        let filling = |user: &LinkUser| (0..2).filter(|way| full[*way]).map(|way| user.bytes[way].0).max();
        self.users.sort_by_key(|user| Reverse((filling(user), user.bytes[0].0.max(user.bytes[1].0))));
    }

    /// Which directions are most loaded: one that is nearly as full as the other is one of them.
    #[must_use]
    pub fn full(&self) -> [bool; 2] {
        std::array::from_fn(|way| self.load[way] >= AS_FULL * self.load[1 - way])
    }

    /// Of which of these a part worth being named is no user's.
    #[must_use]
    pub fn unknown(&self) -> [bool; 2] {
        let much = |way: usize| self.unaccounted[way] >= UNKNOWN_FROM * self.load[way];
        std::array::from_fn(|way| self.full()[way] && self.unaccounted[way] >= 1.0 && much(way))
    }

    /// Whether a user has a part worth being named of what fills the link.
    #[must_use]
    pub fn fills(&self, user: &LinkUser) -> bool {
        let much =
            |way: usize| self.source == LoadSource::Modelled || user.each[way].round() >= NAMED_FROM * self.load[way];
        (0..2).any(|way| self.full()[way] && user.bytes[way].0 > 0 && much(way))
    }
}

/// What one application sends over a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkUser {
    /// Which.
    pub application: ApplicationId,
    /// Modelled, bits/s, both ways together; 0 where only bytes are known and nothing is measured.
    pub bits_per_s: f64,
    /// The same each way: from the link's first end to its second, and back.
    pub each: [f64; 2],
    /// What it sends each way from beginning to end: by its flows, else by earlier runs.
    pub bytes: [Bytes; 2],
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
    let mut sent = recurring::sent(generation, network);
    let link_use = |(index, link): (LinkIdx, &Link)| {
        let measured = snapshot.link_loads.get(&link.name);
        let each = directions(index);
        let modelled_load = each.map(|direction| if network.is_usable(index) { modelled.load(direction) } else { 0.0 });
        let mut found = LinkUse {
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
            unaccounted: [0.0; 2],
        };
        found.share_the_rest(sent.remove(&index).unwrap_or_default());
        found
    };
    network.links().map(link_use).collect()
}

/// Whether a pair is known to send anything.
pub(super) fn sends(route: &PairRoute) -> bool {
    route.bytes.0 > 0
}

/// Max-min fair rates of routed pairs that send something, none above what its bytes fill for a second: of a pair with no
/// bytes, or none that are known, nobody can say that it loads a link, a flow without an end would fill it, and so would one
/// of a few bytes.
pub(crate) struct Modelled {
    /// By pair with a whole route.
    flows: BTreeMap<NodePair, ModelledFlow>,
    task_pairs: BTreeMap<DirectedLinkIdx, u64>,
    /// bits/s.
    loads: BTreeMap<DirectedLinkIdx, f64>,
}

struct ModelledFlow {
    links: Links,
    bytes: u128,
    bits_per_s: f64,
}

/// A direction that is loaded as much as this part of the other is as full.
const AS_FULL: f64 = 0.9;

/// A user with less than this part of a measured load does not make it.
const NAMED_FROM: f64 = 0.01;

/// What of a measured load is no user's is named from this part of it on.
const UNKNOWN_FROM: f64 = 0.1;

/// What bytes fill for so long is no load.
const AT_LEAST_S: f64 = 1.0;

/// What a pair sends, and over which links.
pub(super) struct Sending {
    pub(super) links: Links,
    pub(super) task_pairs: u64,
    pub(super) bytes: u128,
}

impl Sending {
    pub(super) fn of(route: &PairRoute) -> Self {
        Self { links: Arc::clone(&route.links), task_pairs: route.task_pairs, bytes: u128::from(route.bytes.0) }
    }
}

impl Modelled {
    pub(crate) fn new(network: &Network, routes: &Shards<NodePair, Arc<PairRoute>>) -> Self {
        let sending = routes.iter().filter(|(_, route)| sends(route));
        let routes = sending.map(|(pair, route)| (*pair, Sending::of(route)));
        Self::of(network, routes.collect())
    }

    /// Of pairs, those of [`sends`].
    pub(super) fn of(network: &Network, pairs: BTreeMap<NodePair, Sending>) -> Self {
        let mut rates = MaxMin::new(&capacities(network)).expect("a network's capacities are integers below the bound");
        let mut added: Vec<(NodePair, Sending, FlowIdx, u32)> = Vec::new();
        for (pair, sending) in pairs {
            let weight = u32::try_from(sending.task_pairs).unwrap_or(u32::MAX);
            if !is_whole(network, &sending.links) {
                continue;
            }
            let Ok(flow) = rates.add(&sending.links, weight) else { continue };
            added.push((pair, sending, flow, weight));
        }
        rates.recompute_rates();
        let mut modelled = Self { flows: BTreeMap::new(), task_pairs: BTreeMap::new(), loads: BTreeMap::new() };
        for (pair, Sending { links, bytes, .. }, flow, weight) in added {
            let fair = rates.level(flow).unwrap_or(0.0) * f64::from(weight);
            let bits_per_s = fair.min(bytes as f64 * 8.0 / AT_LEAST_S);
            for &link in links.iter() {
                *modelled.task_pairs.entry(link).or_default() += u64::from(weight);
                *modelled.loads.entry(link).or_default() += bits_per_s;
            }
            modelled.flows.insert(pair, ModelledFlow { links, bytes, bits_per_s });
        }
        modelled
    }

    /// bits/s.
    pub(crate) fn load(&self, direction: DirectedLinkIdx) -> f64 {
        self.loads.get(&direction).copied().unwrap_or(0.0)
    }

    fn users(&self, generation: &Generation) -> BTreeMap<LinkIdx, Vec<LinkUser>> {
        let mut sums: BTreeMap<(LinkIdx, ApplicationId), [(f64, u64); 2]> = BTreeMap::new();
        for job in &generation.flows.jobs {
            // Of a pair that others send over as well this job's flow may still have no bytes.
            for flow in job.traffic.flows.iter().filter(|flow| flow.bytes.0 > 0) {
                let Some(ModelledFlow { links, bytes, bits_per_s }) = self.flows.get(&flow.pair) else { continue };
                let bits_per_s = bits_per_s * flow.bytes.0 as f64 / *bytes as f64;
                for link in links.iter() {
                    let (link, forward) = undirected(*link);
                    let sum = &mut sums.entry((link, job.attempt.application)).or_default()[usize::from(!forward)];
                    *sum = (sum.0 + bits_per_s, sum.1.saturating_add(flow.bytes.0));
                }
            }
        }
        let mut users: BTreeMap<LinkIdx, Vec<LinkUser>> = BTreeMap::new();
        for ((link, application), each) in sums {
            let (bytes, each) = (each.map(|(_, bytes)| Bytes(bytes)), each.map(|(rate, _)| rate));
            let bits_per_s = each.iter().sum();
            users.entry(link).or_default().push(LinkUser { application, bits_per_s, each, bytes });
        }
        users
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_being_named_of_a_link_is_what_fills_it() {
        let user = |bytes: [u64; 2], each: [f64; 2]| LinkUser {
            application: ApplicationId { cluster_timestamp: 1, sequence: 1 },
            bits_per_s: each.iter().sum(),
            each,
            bytes: bytes.map(Bytes),
        };
        let of = |load, source, unaccounted| LinkUse {
            link: "l1".into(),
            ends: ["s1", "s2"].map(Arc::from),
            capacity: BitsPerSec(1_000),
            up: true,
            damped: false,
            load,
            source,
            modelled: [0.0; 2],
            task_pairs: [0; 2],
            users: Vec::new(),
            unaccounted,
        };
        let measured = |load, unaccounted| of(load, LoadSource::Measured, unaccounted);
        assert_eq!(measured([1_000.0, 900.0], [0.0; 2]).full(), [true, true], "nearly as full counts");
        let link = measured([1_000.0, 899.0], [99.0, 800.0]);
        assert_eq!(
            (link.full(), link.unknown()),
            ([true, false], [false, false]),
            "less than a tenth, or the other way"
        );
        assert_eq!(measured([1_000.0, 900.0], [100.0, 800.0]).unknown(), [true, true]);
        assert_eq!(measured([0.0; 2], [0.0; 2]).unknown(), [false; 2], "of nothing nothing is unknown");
        let fills = |user: LinkUser| link.fills(&user);
        assert!(fills(user([9, 0], [10.0, 0.0])));
        assert!(!fills(user([9, 0], [9.0, 0.0])), "less than a hundredth of what is measured");
        assert!(!fills(user([0, 9], [0.0, 800.0])), "it sends the other way");
        assert!(of([1_000.0, 0.0], LoadSource::Modelled, [0.0; 2]).fills(&user([9, 0], [1.0, 0.0])));
    }
}
