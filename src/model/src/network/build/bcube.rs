//! BCube: servers that forward, between levels of small switches (Guo et al., "BCube: A High Performance,
//! Server-centric Network Architecture for Modular Data Centers", 2009).

use super::{BuildError, BuiltNetwork, HostPlace, MOST_HOSTS, digits, join, numbered, positive};
use crate::network::graph::Network;
use crate::network::tier::Tier;
use crate::units::{BitsPerSec, HostName, RackPath, VertexIdx};
use serde::{Deserialize, Serialize};

/// BCube(n, k), the paper's BCube_k: n^(k+1) servers with k + 1 ports each and k + 1 levels of n^k switches with n
/// ports each. Servers whose addresses (k + 1 digits to base n) differ in digit l only share a switch of level l.
///
/// # Servers forward
/// Hosts of a [`Network`] never do, so each server is two vertices: a host that runs containers, and a *relay* of
/// the edge tier that stands for its forwarding and has its k + 1 ports. A link of the capacity of all ports
/// together joins the two, so that it never binds. BCube's switches are all of the core tier: no level is above
/// another. So each hop from server to server counts two links, a relay is counted and may fail as a switch, and
/// every server is an attachment switch of its own.
///
/// Racks are the switches of level 0, n servers each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BCubeSpec {
    /// n: ports of each switch.
    pub ports: usize,
    /// k: levels of switches above level 0.
    pub levels: usize,
    /// Capacity of each port of a server.
    pub bits_per_s: BitsPerSec,
}

impl Default for BCubeSpec {
    /// BCube(4, 1), the paper's Figure 1: 16 servers, 8 switches, ports of 1 Gbit/s.
    fn default() -> Self {
        Self { ports: 4, levels: 1, bits_per_s: BitsPerSec(1_000_000_000) }
    }
}

impl BCubeSpec {
    /// Servers, after the checks.
    fn servers(&self) -> Result<usize, BuildError> {
        positive(&[("ports", self.ports as u64), ("bits_per_s", self.bits_per_s.0)])?;
        if self.ports < 2 {
            return Err(BuildError::OnePort);
        }
        let exponent = u32::try_from(self.levels).unwrap_or(u32::MAX).saturating_add(1);
        let servers = self.ports.saturating_pow(exponent);
        if servers > MOST_HOSTS {
            return Err(BuildError::TooManyHosts { hosts: servers, most: MOST_HOSTS });
        }
        Ok(servers)
    }
}

/// Builds a BCube with hosts `host-0001`, … by address; host n's relay is `relay-<n>`, switches are
/// `level-<l>-<n>`.
///
/// # Errors
/// [`BuildError::Zero`], [`BuildError::OnePort`], [`BuildError::TooManyHosts`].
pub fn bcube(spec: &BCubeSpec) -> Result<BuiltNetwork, BuildError> {
    bcube_named(spec, &numbered("host"))
}

/// Builds a BCube with hosts named by `name`.
///
/// # Errors
/// As [`bcube`]; [`BuildError::Name`] if `name` repeats itself.
pub fn bcube_named(spec: &BCubeSpec, name: &dyn Fn(HostPlace) -> String) -> Result<BuiltNetwork, BuildError> {
    let servers = spec.servers()?;
    let mut network = Network::new();
    let mut switch = |name: String, tier| network.add_switch(&name, tier).map_err(BuildError::Name);
    let width = digits(servers).max(4);
    let relays: Vec<VertexIdx> =
        (1..=servers).map(|n| switch(format!("relay-{n:0width$}"), Tier::Edge)).collect::<Result<_, _>>()?;
    let per_level = servers / spec.ports;
    let mut levels = Vec::with_capacity(spec.levels + 1);
    for level in 0..=spec.levels {
        let of_level = (1..=per_level).map(|n| switch(format!("level-{level}-{n}"), Tier::Core));
        levels.push(of_level.collect::<Result<Vec<_>, _>>()?);
    }
    let racks = add_hosts(&mut network, spec, &relays, name)?;
    let mut stride = 1;
    for of_level in &levels {
        for (address, &relay) in relays.iter().enumerate() {
            // The address without the level's digit: what the servers of one switch have in common.
            let common = address / (stride * spec.ports) * stride + address % stride;
            join(&mut network, relay, of_level[common], spec.bits_per_s)?;
        }
        stride *= spec.ports;
    }
    Ok(BuiltNetwork { network, racks })
}

fn add_hosts(
    network: &mut Network,
    spec: &BCubeSpec,
    relays: &[VertexIdx],
    name: &dyn Fn(HostPlace) -> String,
) -> Result<Vec<(RackPath, Vec<HostName>)>, BuildError> {
    let all_ports = BitsPerSec(spec.bits_per_s.0.saturating_mul(spec.levels as u64 + 1));
    let width = digits(relays.len() / spec.ports).max(2);
    let mut racks = Vec::with_capacity(relays.len() / spec.ports);
    for (rack, of_rack) in (1..).zip(relays.chunks(spec.ports)) {
        let mut hosts = Vec::with_capacity(spec.ports);
        for (in_rack, &relay) in (1..).zip(of_rack) {
            let number = (rack - 1) * spec.ports + in_rack;
            let host = name(HostPlace { number, of: relays.len(), pod: None, rack, in_rack });
            let vertex = network.add_host(&host).map_err(BuildError::Name)?;
            join(network, vertex, relay, all_ports)?;
            hosts.push(HostName::from(host));
        }
        racks.push((RackPath::from(format!("/rack-{rack:0width$}")), hosts));
    }
    Ok(racks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{check, shortest_path, summary};

    #[test]
    fn counts_and_ports_are_the_papers() {
        for (ports, levels) in [(2_usize, 0_u32), (4, 1), (8, 1), (3, 2), (2, 3)] {
            let built = bcube(&BCubeSpec { ports, levels: levels as usize, ..BCubeSpec::default() }).unwrap();
            let servers = ports.pow(levels + 1);
            let switches = (levels as usize + 1) * ports.pow(levels);
            let numbers = summary(&built.network);
            assert_eq!((numbers.hosts, numbers.switches), (servers, servers + switches));
            assert_eq!(numbers.links, servers + servers * (levels as usize + 1));
            assert_eq!((built.racks.len(), built.racks[0].1.len()), (servers / ports, ports));
            assert_eq!(check(&built.network), []);
            for (index, vertex) in built.network.vertices() {
                let links = match vertex.tier() {
                    None => 1,
                    Some(Tier::Edge) => 1 + levels as usize + 1,
                    Some(_) => ports,
                };
                assert_eq!(built.network.links_of(index).count(), links, "{}", vertex.name);
            }
        }
    }

    #[test]
    fn servers_are_as_far_apart_as_their_addresses_differ() {
        let (n, spec) = (3, BCubeSpec { ports: 3, levels: 2, ..BCubeSpec::default() });
        let network = bcube(&spec).unwrap().network;
        let vertex = |address: usize| network.vertex(&format!("host-{:04}", address + 1)).unwrap();
        for (a, b) in (0..27).flat_map(|a| (0..27).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let digits = |address: usize| [address % n, address / n % n, address / n / n];
            let differ = digits(a).iter().zip(digits(b)).filter(|(a, b)| **a != *b).count();
            let path = shortest_path(&network, vertex(a), vertex(b)).unwrap();
            assert_eq!(path.links.len(), 2 + 2 * differ, "{a} {b}");
        }
    }

    #[test]
    fn a_lost_switch_leaves_a_way_through_other_servers() {
        let mut network = bcube(&BCubeSpec::default()).unwrap().network;
        let [a, b] = ["host-0001", "host-0002"].map(|name| network.vertex(name).unwrap());
        assert!(network.set_switch(network.vertex("level-0-1").unwrap(), false));
        assert_eq!(shortest_path(&network, a, b).unwrap().links.len(), 2 + 6);
    }

    #[test]
    fn impossible_bcubes_are_refused() {
        let refused = |ports, levels| bcube(&BCubeSpec { ports, levels, ..BCubeSpec::default() }).unwrap_err();
        assert_eq!(refused(0, 1), BuildError::Zero { field: "ports" });
        assert_eq!(refused(1, 1), BuildError::OnePort);
        assert!(matches!(refused(2, usize::MAX), BuildError::TooManyHosts { .. }));
    }
}
