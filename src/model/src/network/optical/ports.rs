//! The ports of an optical switch: its links to racks' switches.

use super::problem::OpticalProblem;
use crate::network::{Network, Tier};
use crate::units::{BitsPerSec, LinkIdx, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};

/// Racks without a port that a problem names.
const NAMED: usize = 3;

/// A rack's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpticalPort {
    /// The link.
    pub link: LinkIdx,
    /// The rack's switch.
    pub rack_switch: VertexIdx,
    /// Capacity, each direction.
    pub bits_per_s: BitsPerSec,
}

/// The ports of an optical switch in the order of its links, and what is wrong with them or of note.
#[must_use]
pub fn ports(network: &Network, switch: VertexIdx) -> (Vec<OpticalPort>, Vec<OpticalProblem>) {
    let (mut found, mut problems) = (BTreeMap::new(), Vec::new());
    let mut links: Vec<LinkIdx> = network.links_of(switch).map(|(index, _)| index).collect();
    links.sort_unstable();
    for index in links {
        let link = network.link_at(index);
        let far = link.other(switch);
        let (port, name) = (link.name.clone(), network.vertex_at(far).name.clone());
        if network.vertex_at(far).tier() != Some(Tier::Edge) {
            problems.push(OpticalProblem::OffRack { port, far: name });
        } else if link.capacity == BitsPerSec::ZERO {
            problems.push(OpticalProblem::ZeroBandwidth { port });
        } else {
            let fresh = OpticalPort { link: index, rack_switch: far, bits_per_s: link.capacity };
            let first = *found.entry(far).or_insert(fresh);
            if first != fresh {
                let first = network.link_at(first.link).name.clone();
                problems.push(OpticalProblem::TwoPorts { rack_switch: name, first, second: port });
            }
        }
    }
    let name = network.vertex_at(switch).name.clone();
    if found.is_empty() && problems.is_empty() {
        problems.push(OpticalProblem::NoPorts { switch: name });
    } else {
        let hosted = network.vertices().filter(|(_, vertex)| vertex.is_host());
        let edges: BTreeSet<VertexIdx> =
            hosted.flat_map(|(host, _)| network.links_of(host).map(move |(_, link)| link.other(host))).collect();
        let without = || edges.iter().filter(|edge| !found.contains_key(edge));
        if without().next().is_some() {
            let racks = without().take(NAMED).map(|&edge| network.vertex_at(edge).name.clone()).collect();
            problems.push(OpticalProblem::WithoutPort { switch: name, racks, count: without().count() });
        }
    }
    let mut ports: Vec<OpticalPort> = found.into_values().collect();
    ports.sort_unstable_by_key(|port| port.link);
    (ports, problems)
}
