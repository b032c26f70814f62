//! When the busiest link has carried what a placement sends: nodes' access links and racks' uplinks, each direction for
//! itself, beside what is measured and what runs there already.
//!
//! A rack is taken to have one link up and one down, of the capacity of all its switches' uplinks together; what is above
//! them is taken to be no narrower. Without a network graph every access link is alike and a rack's uplink carries what
//! `ASSUMED_OVERSUBSCRIPTION` says: then only the ratio of two placements' times says anything.

use super::rack_rates::{ASSUMED_ACCESS, Duplex, RackRates, both};
use super::transfers::{self, Transfer, part};
use super::{Placement, places_of};
use crate::problem::PlaceProblem;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{NodeIdx, RackIdx};
use std::borrow::Cow;
use std::collections::BTreeMap;

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

/// The link that is done last, and when: the one that [`LinkTime::seconds`] is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusiestLink {
    /// Which.
    pub at: LinkPlace,
    /// Towards the core; else towards the nodes.
    pub up: bool,
    /// As [`LinkTime::seconds`].
    pub seconds: f64,
}

/// A link as this estimate has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPlace {
    /// A node's access link.
    Node(NodeIdx),
    /// A rack's uplinks, taken as one.
    Rack(RackIdx),
}

impl LinkTime {
    /// Whether it is done first; of two that are done within a hundredth of each other, whether less crosses racks.
    #[must_use]
    pub fn is_before(&self, other: &Self) -> bool {
        let close = (self.seconds - other.seconds).abs() <= 0.01 * self.seconds.max(other.seconds);
        if close { self.across_racks < other.across_racks } else { self.seconds < other.seconds }
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

/// Bytes by link.
#[derive(Debug, Default)]
pub struct LinkBytes {
    /// Out of a node and into it.
    pub nodes: BTreeMap<NodeIdx, [f64; 2]>,
    /// Out of a rack and into it.
    pub racks: BTreeMap<RackIdx, [f64; 2]>,
}

impl LinkBytes {
    /// Adds a transfer; what stays on a node crosses nothing.
    pub fn lay(&mut self, snapshot: &Snapshot, transfer: &Transfer) {
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

    /// The link that is done last; of equals a node's before a rack's, the first by index, up before down. `None`: no link
    /// carries anything.
    fn busiest(&self, rates: &LinkRates<'_>) -> Option<BusiestLink> {
        let ways = |at: LinkPlace, [out, into]: [f64; 2], rate: Duplex| {
            [(true, out / rate.up), (false, into / rate.down)].map(|(up, seconds)| BusiestLink { at, up, seconds })
        };
        let nodes = self.nodes.iter().flat_map(|(&node, &bytes)| ways(LinkPlace::Node(node), bytes, rates.node(node)));
        let racks = self.racks.iter().flat_map(|(&rack, &bytes)| ways(LinkPlace::Rack(rack), bytes, rates.rack(rack)));
        let used = nodes.chain(racks).filter(|link| link.seconds > 0.0);
        used.reduce(|busiest, next| if next.seconds > busiest.seconds { next } else { busiest })
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

/// The link that a placement keeps busy longest; `None`: no bytes are known, or none cross a link.
#[must_use]
pub fn busiest_link(problem: &PlaceProblem<'_>, placement: &Placement) -> Option<BusiestLink> {
    let known = transfers::are_known(problem);
    known.then(|| link_bytes(problem, placement).busiest(&LinkRates::of(problem))).flatten()
}

pub(crate) fn link_bytes(problem: &PlaceProblem<'_>, placement: &Placement) -> LinkBytes {
    let groups = places_of(problem, placement);
    let mut bytes = LinkBytes::default();
    let inputs = transfers::inputs(problem, &groups).into_iter();
    let arrived = transfers::arrived(problem, &groups).into_iter().chain(transfers::earlier(problem));
    for transfer in inputs.chain(arrived).chain(transfers::edges(problem, placement, &groups)) {
        bytes.lay(problem.snapshot, &transfer);
    }
    for (node, read) in transfers::scattered(problem, &groups) {
        bytes.nodes.entry(node).or_default()[1] += read;
        bytes.racks.entry(problem.snapshot.rack(node)).or_default()[1] += read;
    }
    bytes
}
