//! When the busiest link has carried what a placement sends: nodes' access links and racks' uplinks, each direction for
//! itself, beside what is measured and what runs there already.
//!
//! A rack is taken to have one link up and one down, of the capacity of all its switches' uplinks together; what is above
//! them is taken to be no narrower. Without a network graph every access link is alike and a rack's uplink carries what
//! `ASSUMED_OVERSUBSCRIPTION` says: then only the ratio of two placements' times says anything.

use super::transfers::{self, Transfer, part};
use super::{Placement, places_of};
use crate::problem::PlaceProblem;
use hintd_model::cluster::{LinkLoad, Snapshot};
use hintd_model::network::{Network, Tier};
use hintd_model::units::{BitsPerSec, LinkIdx, NodeIdx, RackIdx, VertexIdx};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// An access link where no network is known.
const ASSUMED_ACCESS: BitsPerSec = BitsPerSec(10_000_000_000);

/// Access links of a rack ÷ its uplink, where no network is known: common in data centers.
const ASSUMED_OVERSUBSCRIPTION: f64 = 5.0;

/// What new traffic gets of a link at the least, however much is measured on it: flows share links.
const LEAST_SHARE: f64 = 0.1;

/// Both directions of a link, as its end below sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duplex {
    /// Bytes a second towards the core.
    pub up: f64,
    /// Bytes a second towards the nodes.
    pub down: f64,
}

/// Racks' uplinks, and loads of links by their index: a function of a snapshot alone, kept by whoever asks often.
#[derive(Debug, Clone, PartialEq)]
pub struct RackRates {
    /// By rack; infinite where a rack has no uplink that could be full.
    racks: Vec<Duplex>,
    loads: BTreeMap<LinkIdx, LinkLoad>,
}

/// What links can carry now.
#[derive(Debug)]
pub struct LinkRates<'p> {
    snapshot: &'p Snapshot,
    rates: Cow<'p, RackRates>,
}

/// When the busiest link is done, and what crosses racks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkTime {
    /// Seconds until the link that needs longest has carried everything.
    pub seconds: f64,
    /// Bytes that leave a rack.
    pub across_racks: f64,
}

impl LinkTime {
    /// Whether it is done first; of two that are done within a hundredth of each other, whether less crosses racks.
    #[must_use]
    pub fn is_before(&self, other: &Self) -> bool {
        let close = (self.seconds - other.seconds).abs() <= 0.01 * self.seconds.max(other.seconds);
        if close { self.across_racks < other.across_racks } else { self.seconds < other.seconds }
    }
}

impl RackRates {
    /// Of the network as the snapshot has it; takes time in proportion to racks and their switches' links.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut loads = BTreeMap::new();
        if let Some(network) = snapshot.topology.network.as_deref() {
            let known = |(name, &load): (&_, &LinkLoad)| Some((network.link(name)?, load));
            loads = snapshot.link_loads.iter().filter_map(|(name, load)| known((name.as_str(), load))).collect();
        }
        Self::beside(snapshot, loads)
    }

    /// The same, whatever is measured on links.
    #[must_use]
    pub fn capacities(snapshot: &Snapshot) -> Self {
        Self::beside(snapshot, BTreeMap::new())
    }

    fn beside(snapshot: &Snapshot, loads: BTreeMap<LinkIdx, LinkLoad>) -> Self {
        let mut rates = Self { racks: Vec::new(), loads };
        let racks = (0..snapshot.statics.racks.len()).map(RackIdx::new);
        rates.racks = racks.map(|rack| rates.rack_uplink(snapshot, rack)).collect();
        rates
    }

    /// Bytes a second that all racks' uplinks carry together towards the core; infinite where one can't be full.
    #[must_use]
    pub fn uplinks(&self) -> f64 {
        self.racks.iter().map(|rack| rack.up).sum()
    }

    fn rack_uplink(&self, snapshot: &Snapshot, rack: RackIdx) -> Duplex {
        let members = &snapshot.statics.members[rack.at()];
        let Some(network) = snapshot.topology.network.as_deref() else {
            return both(ASSUMED_ACCESS.0 as f64 / 8.0 * members.len() as f64 / ASSUMED_OVERSUBSCRIPTION);
        };
        let vertex = |node: &NodeIdx| snapshot.topology.vertex.get(node.at()).copied().flatten();
        let attached = members.iter().filter_map(vertex).filter_map(|host| network.attachment(host));
        let switches: BTreeSet<VertexIdx> = attached.collect();
        let mut sum: Option<Duplex> = None;
        for &switch in &switches {
            for (index, link) in network.links_of(switch) {
                let other = link.other(switch);
                let tier = network.vertex_at(other).tier();
                // Circuits come and go; what is placed by them is JobPacker's.
                let inside = matches!(tier, None | Some(Tier::Optical)) || switches.contains(&other);
                if !inside && network.is_usable(index) {
                    let more = self.link(network, index, switch);
                    let so_far = sum.unwrap_or(both(0.0));
                    sum = Some(Duplex { up: so_far.up + more.up, down: so_far.down + more.down });
                }
            }
        }
        sum.unwrap_or(both(f64::INFINITY))
    }

    /// What is left of a link beside what is measured on it, as its end `below` sees it.
    fn link(&self, network: &Network, index: LinkIdx, below: VertexIdx) -> Duplex {
        let link = network.link_at(index);
        let capacity = link.capacity.0 as f64 / 8.0;
        let load = self.loads.get(&index).map_or([0, 0], |load| [load.a_to_b.0, load.b_to_a.0]);
        let left = load.map(|load| (capacity - load as f64 / 8.0).max(capacity * LEAST_SHARE));
        if link.a == below { Duplex { up: left[0], down: left[1] } } else { Duplex { up: left[1], down: left[0] } }
    }
}

impl<'p> LinkRates<'p> {
    /// Of the problem's snapshot: as kept beside it, else worked out.
    #[must_use]
    pub fn of(problem: &PlaceProblem<'p>) -> Self {
        let rates = problem.rates.map_or_else(|| Cow::Owned(RackRates::of(problem.snapshot)), Cow::Borrowed);
        Self { snapshot: problem.snapshot, rates }
    }

    /// Of a snapshot, whatever is measured on links.
    #[must_use]
    pub fn capacities(snapshot: &'p Snapshot) -> Self {
        Self { snapshot, rates: Cow::Owned(RackRates::capacities(snapshot)) }
    }

    /// A rack's uplinks together.
    #[must_use]
    pub fn rack(&self, rack: RackIdx) -> Duplex {
        self.rates.racks[rack.at()]
    }

    /// Bytes a second into all of a rack's nodes together, by their access links alone.
    #[must_use]
    pub fn into_rack(&self, rack: RackIdx) -> f64 {
        self.snapshot.statics.members[rack.at()].iter().map(|&node| self.node(node).down).sum()
    }

    /// A node's access link.
    #[must_use]
    pub fn node(&self, node: NodeIdx) -> Duplex {
        let vertex = self.snapshot.topology.vertex.get(node.at()).copied().flatten();
        let known = vertex.zip(self.snapshot.topology.network.as_deref());
        let link = known.and_then(|(vertex, network)| Some((vertex, network, network.access_link(vertex)?)));
        match link {
            Some((vertex, network, link)) => self.rates.link(network, link, vertex),
            None => both(ASSUMED_ACCESS.0 as f64 / 8.0),
        }
    }
}

const fn both(rate: f64) -> Duplex {
    Duplex { up: rate, down: rate }
}

/// Bytes by link.
#[derive(Debug, Default)]
pub(crate) struct LinkBytes {
    /// Out of a node and into it.
    pub(crate) nodes: BTreeMap<NodeIdx, [f64; 2]>,
    /// Out of a rack and into it.
    pub(crate) racks: BTreeMap<RackIdx, [f64; 2]>,
}

impl LinkBytes {
    /// Adds a transfer; what stays on a node crosses nothing.
    pub(crate) fn lay(&mut self, snapshot: &Snapshot, transfer: &Transfer) {
        let Transfer { from, to, bytes } = transfer;
        let mut sides: BTreeMap<RackIdx, [f64; 2]> = BTreeMap::new();
        for (side, other, which) in [(from, to, 0), (to, from, 1)] {
            for &(node, share) in side {
                self.nodes.entry(node).or_default()[which] += bytes * share * (1.0 - part(other, node));
                sides.entry(snapshot.rack(node)).or_default()[which] += share;
            }
        }
        for (rack, [sent, received]) in sides {
            let of_rack = self.racks.entry(rack).or_default();
            of_rack[0] += bytes * sent * (1.0 - received);
            of_rack[1] += bytes * received * (1.0 - sent);
        }
    }

    /// When all of it is there.
    pub(crate) fn time(&self, rates: &LinkRates<'_>) -> LinkTime {
        let seconds = |[out, into]: [f64; 2], rate: Duplex| (out / rate.up).max(into / rate.down);
        let nodes = self.nodes.iter().map(|(&node, &bytes)| seconds(bytes, rates.node(node)));
        let racks = self.racks.iter().map(|(&rack, &bytes)| seconds(bytes, rates.rack(rack)));
        LinkTime {
            seconds: nodes.chain(racks).fold(0.0, f64::max),
            across_racks: self.racks.values().map(|[out, _]| out).sum(),
        }
    }
}

/// What a placement takes; `None`: no bytes are known, so that no placement is better than another.
#[must_use]
pub fn link_time(problem: &PlaceProblem<'_>, placement: &Placement, rates: &LinkRates<'_>) -> Option<LinkTime> {
    transfers::are_known(problem).then(|| link_bytes(problem, placement).time(rates))
}

pub(crate) fn link_bytes(problem: &PlaceProblem<'_>, placement: &Placement) -> LinkBytes {
    let groups = places_of(problem, placement);
    let mut bytes = LinkBytes::default();
    let inputs = transfers::inputs(problem, &groups).into_iter();
    let arrived = transfers::arrived(problem, &groups).into_iter();
    for transfer in inputs.chain(arrived).chain(transfers::edges(problem, placement, &groups)) {
        bytes.lay(problem.snapshot, &transfer);
    }
    for (node, read) in transfers::scattered(problem, &groups) {
        bytes.nodes.entry(node).or_default()[1] += read;
        bytes.racks.entry(problem.snapshot.rack(node)).or_default()[1] += read;
    }
    bytes
}
