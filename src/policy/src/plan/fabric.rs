//! What joins racks, as planners see it, read off a snapshot.

use super::problem::{Circuits, Fabric, NodeLinks};
use hintd_model::cluster::Snapshot;
use hintd_model::network::optical::ports;
use hintd_model::network::{Network, Tier};
use hintd_model::units::{BitsPerSec, NodeIdx, VertexIdx};
use std::collections::BTreeSet;

/// The mean rack's links from its switches to those of others, the slowest port of the optical switch, if there is one
/// whose circuits are chosen, and the mean node's link and the mean rack's nodes. `None` without a network.
#[must_use]
pub fn fabric(snapshot: &Snapshot) -> Option<Fabric> {
    let network = snapshot.topology.network.as_deref()?;
    let members = &snapshot.statics.members;
    let uplinks = members.iter().filter(|nodes| !nodes.is_empty()).map(|nodes| uplink(snapshot, network, nodes));
    let uplinks: Vec<u64> = uplinks.collect();
    let mean = uplinks.iter().map(|&bits| u128::from(bits)).sum::<u128>().checked_div(uplinks.len() as u128)?;
    let circuits = network.optical().and_then(|section| {
        let (ports, _) = ports(network, network.vertex(&section.switch)?);
        let rate = ports.iter().map(|port| port.bits_per_s).min()?;
        let usual = Circuits::new(rate, section.pause());
        let elephant = section.elephant_bytes.unwrap_or(usual.elephant);
        Some(Circuits { elephant, interval: section.interval(), ..usual })
    });
    let nodes = node_links(snapshot, network);
    Some(Fabric { uplink: BitsPerSec(u64::try_from(mean).unwrap_or(u64::MAX)), circuits, nodes })
}

/// [`fabric`], or racks with such uplinks where no network joins them: none is there, or its links join no racks.
#[must_use]
pub fn fabric_or(snapshot: &Snapshot, uplink: Option<BitsPerSec>) -> Option<Fabric> {
    let told = || Some(Fabric { uplink: uplink?, circuits: None, nodes: None });
    fabric(snapshot).filter(|fabric| fabric.uplink.0 > 0).or_else(told)
}

/// Of nodes whose link is known; none: of no node.
fn node_links(snapshot: &Snapshot, network: &Network) -> Option<NodeLinks> {
    let vertices = snapshot.topology.vertex.iter().copied().flatten();
    let links: Vec<_> = vertices.filter_map(|vertex| network.access_link(vertex)).collect();
    let sum: u128 = links.iter().map(|&link| u128::from(network.link_at(link).capacity.0)).sum();
    let mean = u64::try_from(sum.checked_div(links.len() as u128)?).ok().filter(|&mean| mean > 0)?;
    let racks = snapshot.statics.members.iter().filter(|nodes| !nodes.is_empty()).count();
    let per_rack = snapshot.statics.len().div_ceil(racks.max(1));
    Some(NodeLinks { rate: BitsPerSec(mean), per_rack: u32::try_from(per_rack).unwrap_or(u32::MAX) })
}

/// Capacity from the switches of these nodes to other packet switches, bits/s.
fn uplink(snapshot: &Snapshot, network: &Network, nodes: &[NodeIdx]) -> u64 {
    let vertices = nodes.iter().filter_map(|node| snapshot.topology.vertex.get(node.at()).copied().flatten());
    let switches: BTreeSet<VertexIdx> = vertices.filter_map(|vertex| network.attachment(vertex)).collect();
    let links = switches.iter().flat_map(|&switch| network.links_of(switch).map(move |(_, link)| (switch, link)));
    let up = links.filter(|&(switch, link)| {
        let far = link.other(switch);
        let kind = network.vertex_at(far);
        !kind.is_host() && kind.tier() != Some(Tier::Optical) && !switches.contains(&far)
    });
    up.map(|(_, link)| link.capacity.0).fold(0, u64::saturating_add)
}
