//! Hybrid networks: an electrical tree and an optical circuit switch beside it (004 ch. 4).

use super::tree::tree_beside;
use super::{BuildError, BuiltNetwork, HostPlace, TreeSpec, numbered, positive};
use crate::units::BitsPerSec;
use serde::{Deserialize, Serialize};

/// Name of the optical switch.
pub const OPTICAL_SWITCH: &str = "optical";

/// A tree, and one optical switch with one port for each rack.
///
/// # Ports only
/// The optical switch joins one input to one output, as its circuits are set from time to time; no packet finds
/// its way through it alone. So its links stand there with their capacity and are *down*: a port without a
/// circuit is dark. Who sets circuits says what they carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HybridSpec {
    /// The electrical network.
    pub tree: TreeSpec,
    /// Capacity of a rack's optical port, each direction.
    pub optical_bits_per_s: BitsPerSec,
}

impl Default for HybridSpec {
    /// 004 §4.4: 20 racks of 30 hosts at 10 Gbit/s, 30 Gbit/s up from each rack, circuits of 100 Gbit/s.
    fn default() -> Self {
        let gigabits = |number: u64| BitsPerSec(number * 1_000_000_000);
        let tree = TreeSpec {
            racks: 20,
            hosts_per_rack: 30,
            cores: 1,
            host_bits_per_s: gigabits(10),
            uplink_bits_per_s: gigabits(30),
            ..TreeSpec::default()
        };
        Self { tree, optical_bits_per_s: gigabits(100) }
    }
}

/// Builds a hybrid network with hosts `host-0001`, …; the optical switch is [`OPTICAL_SWITCH`], the others are
/// named as [`super::tree()`] does.
///
/// # Errors
/// [`BuildError::Zero`], [`BuildError::TooManyHosts`].
pub fn hybrid(spec: &HybridSpec) -> Result<BuiltNetwork, BuildError> {
    hybrid_named(spec, &numbered("host"))
}

/// Builds a hybrid network with hosts named by `name`.
///
/// # Errors
/// As [`hybrid`]; [`BuildError::Name`] if `name` repeats itself.
pub fn hybrid_named(spec: &HybridSpec, name: &dyn Fn(HostPlace) -> String) -> Result<BuiltNetwork, BuildError> {
    positive(&[("optical_bits_per_s", spec.optical_bits_per_s.0)])?;
    tree_beside(&spec.tree, Some((OPTICAL_SWITCH, spec.optical_bits_per_s)), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::build::tree;
    use crate::network::{Network, Tier, check, shortest_path, summary};

    #[test]
    fn the_default_is_the_network_of_thesis_004() {
        let built = hybrid(&HybridSpec::default()).unwrap();
        let numbers = summary(&built.network);
        assert_eq!((numbers.hosts, numbers.switches, numbers.links), (600, 20 + 1 + 1, 600 + 20 + 20));
        assert_eq!(numbers.tiers[0].oversubscription, Some(10.0), "circuits do not count as uplinks");
        let optical = built.network.vertex(OPTICAL_SWITCH).unwrap();
        assert_eq!(built.network.vertex_at(optical).tier(), Some(Tier::Optical));
        let ports: Vec<_> = built.network.links_of(optical).map(|(_, link)| (link.capacity, link.up)).collect();
        assert_eq!(ports, [(BitsPerSec(100_000_000_000), false); 20]);
    }

    #[test]
    fn a_dark_port_carries_nothing_and_is_no_fault() {
        let built = hybrid(&HybridSpec::default()).unwrap();
        assert_eq!(check(&built.network), []);
        let [a, b] = ["host-0001", "host-0600"].map(|name| built.network.vertex(name).unwrap());
        let path = shortest_path(&built.network, a, b).unwrap();
        assert_eq!(built.network.vertex_at(path.vertices[2]).tier(), Some(Tier::Core));
        let again = Network::from_document(&built.network.to_document()).unwrap();
        assert_eq!(again.to_document(), built.network.to_document());
    }

    #[test]
    fn without_its_ports_it_is_the_tree() {
        let spec = HybridSpec::default();
        let mut document = hybrid(&spec).unwrap().network.to_document();
        document.switches.retain(|switch| switch.name != OPTICAL_SWITCH);
        document.links.retain(|link| link.b != OPTICAL_SWITCH);
        assert_eq!(document, tree(&spec.tree).unwrap().network.to_document());
    }

    #[test]
    fn impossible_hybrids_are_refused() {
        let dark = HybridSpec { optical_bits_per_s: BitsPerSec::ZERO, ..HybridSpec::default() };
        assert_eq!(hybrid(&dark).unwrap_err(), BuildError::Zero { field: "optical_bits_per_s" });
        let none = HybridSpec { tree: TreeSpec { racks: 0, ..TreeSpec::default() }, ..HybridSpec::default() };
        assert_eq!(hybrid(&none).unwrap_err(), BuildError::Zero { field: "racks" });
    }
}
