//! What racks' uplinks and nodes' access links can carry, a function of a snapshot alone.
//!
//! A rack is taken to have one link up and one down, of the capacity of all its switches' uplinks together. Without a network
//! graph every access link is alike and a rack's uplink carries what `ASSUMED_OVERSUBSCRIPTION` says.

use hintd_model::cluster::{LinkLoad, Snapshot};
use hintd_model::network::{Network, Tier};
use hintd_model::units::{BitsPerSec, LinkIdx, NodeIdx, RackIdx, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};

/// An access link where no network is known.
pub(super) const ASSUMED_ACCESS: BitsPerSec = BitsPerSec(10_000_000_000);

/// Access links of a rack ÷ its uplink, where no network is known: common in data centers.
const ASSUMED_OVERSUBSCRIPTION: f64 = 5.0;

/// What new traffic gets of a link at the least, however much is measured on it in the mean: flows share links.
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
    pub(super) racks: Vec<Duplex>,
    loads: BTreeMap<LinkIdx, LinkLoad>,
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
        let Some(network) = snapshot.topology.network.as_deref() else {
            let members = &snapshot.statics.members[rack.at()];
            return both(ASSUMED_ACCESS.0 as f64 / 8.0 * members.len() as f64 / ASSUMED_OVERSUBSCRIPTION);
        };
        let mut sum: Option<Duplex> = None;
        for (index, switch) in uplinks_of(snapshot, network, rack) {
            let more = self.link(network, index, switch);
            let so_far = sum.unwrap_or(both(0.0));
            sum = Some(Duplex { up: so_far.up + more.up, down: so_far.down + more.down });
        }
        sum.unwrap_or(both(f64::INFINITY))
    }

    /// What is left of a link beside what is measured on it in the mean, as its end `below` sees it.
    pub(super) fn link(&self, network: &Network, index: LinkIdx, below: VertexIdx) -> Duplex {
        let link = network.link_at(index);
        let capacity = link.capacity.0 as f64 / 8.0;
        let load = self.loads.get(&index).map_or([0, 0], |load| [load.mean_a_to_b.0, load.mean_b_to_a.0]);
        let left = load.map(|load| (capacity - load as f64 / 8.0).max(capacity * LEAST_SHARE));
        if link.a == below { Duplex { up: left[0], down: left[1] } } else { Duplex { up: left[1], down: left[0] } }
    }
}

/// The links that are a rack's uplinks, each with the switch below it.
#[must_use]
pub fn uplinks_of(snapshot: &Snapshot, network: &Network, rack: RackIdx) -> Vec<(LinkIdx, VertexIdx)> {
    let vertex = |node: &NodeIdx| snapshot.topology.vertex.get(node.at()).copied().flatten();
    let members = snapshot.statics.members[rack.at()].iter();
    let attached = members.filter_map(vertex).filter_map(|host| network.attachment(host));
    let switches: BTreeSet<VertexIdx> = attached.collect();
    let mut found = Vec::new();
    for &switch in &switches {
        for (index, link) in network.links_of(switch) {
            let other = link.other(switch);
            let tier = network.vertex_at(other).tier();
            // Circuits come and go; what is placed by them is JobPacker's.
            let inside = matches!(tier, None | Some(Tier::Optical)) || switches.contains(&other);
            if !inside && network.is_usable(index) {
                found.push((index, switch));
            }
        }
    }
    found
}

pub(super) const fn both(rate: f64) -> Duplex {
    Duplex { up: rate, down: rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::cluster;
    use hintd_model::cluster::Resource;
    use hintd_model::network::build::{TreeSpec, tree};
    use hintd_model::units::Bytes;
    use std::sync::Arc;

    #[test]
    fn a_link_has_left_what_its_mean_leaves_whatever_it_carries_now() {
        let spec = TreeSpec { racks: 2, hosts_per_rack: 2, cores: 1, ..TreeSpec::default() };
        let mut snapshot = cluster(&tree(&spec).unwrap(), Resource::ZERO, Bytes(1)).snapshot;
        let free = RackRates::capacities(&snapshot).racks[0].up;
        let bits = |share: f64| BitsPerSec((free * 8.0 * share) as u64);
        for (now, mean, left) in [(0.0, 0.75, 0.25), (1.0, 0.0, 1.0), (0.0, 0.99, LEAST_SHARE)] {
            let load =
                LinkLoad { mean_a_to_b: bits(mean), mean_b_to_a: bits(mean), ..LinkLoad::steady(bits(now), bits(now)) };
            let network = snapshot.topology.network.clone().unwrap();
            snapshot.link_loads = Arc::new(network.links().map(|(_, link)| (link.name.clone(), load)).collect());
            let found = RackRates::of(&snapshot).racks[0];
            for rate in [found.up, found.down] {
                assert!((rate / free - left).abs() < 1e-6, "{now}, {mean}: {found:?}");
            }
        }
    }
}
