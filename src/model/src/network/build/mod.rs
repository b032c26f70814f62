//! Generated networks with their racks.

mod bcube;
mod fat_tree;
mod hybrid;
mod jellyfish;
mod tree;
mod vl2;

pub use bcube::{BCubeSpec, bcube, bcube_named};
pub use fat_tree::{FatTreeSpec, fat_tree, fat_tree_named};
pub use hybrid::{HybridSpec, OPTICAL_SWITCH, hybrid, hybrid_named};
pub use jellyfish::{JellyfishSpec, jellyfish, jellyfish_named};
pub use tree::{TreeSpec, tree, tree_named};
pub use vl2::{Vl2Spec, vl2, vl2_named};

use super::graph::Network;
use super::problem::NetworkProblem;
use crate::units::{BitsPerSec, HostName, LinkIdx, LinkName, RackPath, VertexIdx};

/// Most hosts that are generated: a fat-tree of 128-port switches has 524,288.
pub const MOST_HOSTS: usize = 1 << 20;

/// A generated network.
#[derive(Debug, Clone)]
pub struct BuiltNetwork {
    /// Its graph.
    pub network: Network,
    /// Each edge switch's rack (in a BCube each level-0 switch's; `/rack-01`, or `/pod-1/rack-01` where there are pods) and the hosts in it, in the
    /// order they were named.
    pub racks: Vec<(RackPath, Vec<HostName>)>,
}

/// Where a host stands; all numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPlace {
    /// Among all hosts, rack by rack.
    pub number: usize,
    /// Among all hosts: how many there are.
    pub of: usize,
    /// Its pod, where there are pods.
    pub pod: Option<usize>,
    /// Its rack, among all racks.
    pub rack: usize,
    /// Its number within the rack.
    pub in_rack: usize,
}

/// Names hosts `<prefix>-0001`, `<prefix>-0002`, ….
pub fn numbered(prefix: &str) -> impl Fn(HostPlace) -> String + '_ {
    move |place| format!("{prefix}-{:0width$}", place.number, width = digits(place.of).max(4))
}

/// Names hosts by rack: `<prefix>-01-1` is the first in rack 1.
pub fn by_rack(prefix: &str) -> impl Fn(HostPlace) -> String + '_ {
    move |place| format!("{prefix}-{:02}-{}", place.rack, place.in_rack)
}

/// Why a network was not generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A count or capacity that must be positive.
    #[error("{field} is 0")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// A fat-tree's switches have an even number of ports.
    #[error("k is {k}, not an even number of at least 2")]
    OddPorts {
        /// The ports asked for.
        k: usize,
    },
    /// A count that halves evenly.
    #[error("{field} is {value}, not an even number of at least 2")]
    OddField {
        /// The field.
        field: &'static str,
        /// What it was.
        value: usize,
    },
    /// More links to other switches than ports, or than other switches.
    #[error("to_switches is {to_switches}, more than {most}")]
    TooManyPorts {
        /// Links asked for.
        to_switches: usize,
        /// The limit.
        most: usize,
    },
    /// A switch that joins nothing.
    #[error("ports is 1, a switch joins at least 2 servers")]
    OnePort,
    /// No random graph came out in one piece.
    #[error("no connected graph was found of {switches} switches with {degree} links each")]
    NoGraph {
        /// Switches.
        switches: usize,
        /// Links of each to others.
        degree: usize,
    },
    /// More hosts than are generated, or than the shape holds.
    #[error("{hosts} hosts are more than {most}")]
    TooManyHosts {
        /// Hosts asked for.
        hosts: usize,
        /// The limit.
        most: usize,
    },
    /// A name that the network refuses.
    #[error("the network refuses a generated name")]
    Name(#[source] NetworkProblem),
}

fn positive(fields: &[(&'static str, u64)]) -> Result<(), BuildError> {
    let zero = fields.iter().find(|(_, value)| *value == 0);
    zero.map_or(Ok(()), |&(field, _)| Err(BuildError::Zero { field }))
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// A rack to be filled with hosts.
struct Rack {
    switch: VertexIdx,
    pod: Option<usize>,
    hosts: usize,
}

/// Adds the hosts, rack by rack, and names the racks' paths. Comes after all switches, so that a document that
/// lists switches first gives the same indexes.
fn fill_racks(
    network: &mut Network,
    racks: &[Rack],
    capacity: BitsPerSec,
    name: &dyn Fn(HostPlace) -> String,
) -> Result<Vec<(RackPath, Vec<HostName>)>, BuildError> {
    let of = racks.iter().map(|rack| rack.hosts).sum();
    let width = digits(racks.len()).max(2);
    let mut named = Vec::with_capacity(racks.len());
    let mut number = 0;
    for (rack_number, rack) in (1..).zip(racks) {
        let path = match rack.pod {
            None => format!("/rack-{rack_number:0width$}"),
            Some(pod) => format!("/pod-{pod}/rack-{rack_number:0width$}"),
        };
        let mut hosts = Vec::with_capacity(rack.hosts);
        for in_rack in 1..=rack.hosts {
            number += 1;
            let host = name(HostPlace { number, of, pod: rack.pod, rack: rack_number, in_rack });
            let vertex = network.add_host(&host).map_err(BuildError::Name)?;
            join(network, vertex, rack.switch, capacity)?;
            hosts.push(HostName::from(host));
        }
        named.push((RackPath::from(path), hosts));
    }
    Ok(named)
}

/// Links two vertices; the id is made of their names.
fn join(network: &mut Network, a: VertexIdx, b: VertexIdx, capacity: BitsPerSec) -> Result<LinkIdx, BuildError> {
    let id = format!("{}--{}", network.vertex_at(a).name, network.vertex_at(b).name);
    network.add_link(LinkName::from(id), a, b, capacity).map_err(BuildError::Name)
}
