//! VL2: a Clos network between top-of-rack switches (Greenberg et al., "VL2: A Scalable and Flexible Data Center
//! Network", 2009).

use super::{BuildError, BuiltNetwork, HostPlace, MOST_HOSTS, Rack, digits, fill_racks, join, numbered, positive};
use crate::network::graph::Network;
use crate::network::tier::Tier;
use crate::units::{BitsPerSec, VertexIdx};
use serde::{Deserialize, Serialize};

/// A VL2 of aggregation switches with D_A ports and intermediate switches with D_I ports (§4.1): D_I aggregation
/// switches, each linked to all D_A/2 intermediate ones, and D_A·D_I/4 racks, each linked to two aggregation
/// switches that D_A/2 racks share.
///
/// Intermediate switches are of the core tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vl2Spec {
    /// D_A: ports of an aggregation switch; even.
    pub aggregation_ports: usize,
    /// D_I: ports of an intermediate switch; even.
    pub intermediate_ports: usize,
    /// Hosts of each rack; the paper's are 20.
    pub hosts_per_rack: usize,
    /// Capacity of a host's link.
    pub host_bits_per_s: BitsPerSec,
    /// Capacity of every link between switches; ten times a host's in the paper.
    pub switch_bits_per_s: BitsPerSec,
}

impl Default for Vl2Spec {
    /// D_A = D_I = 4: 4 racks of the paper's 20 hosts at 1 Gbit/s, 10 Gbit/s between switches.
    fn default() -> Self {
        Self {
            aggregation_ports: 4,
            intermediate_ports: 4,
            hosts_per_rack: 20,
            host_bits_per_s: BitsPerSec(1_000_000_000),
            switch_bits_per_s: BitsPerSec(10_000_000_000),
        }
    }
}

impl Vl2Spec {
    fn validate(&self) -> Result<(), BuildError> {
        for (field, ports) in
            [("aggregation_ports", self.aggregation_ports), ("intermediate_ports", self.intermediate_ports)]
        {
            if ports < 2 || !ports.is_multiple_of(2) {
                return Err(BuildError::OddField { field, value: ports });
            }
        }
        positive(&[
            ("hosts_per_rack", self.hosts_per_rack as u64),
            ("host_bits_per_s", self.host_bits_per_s.0),
            ("switch_bits_per_s", self.switch_bits_per_s.0),
        ])?;
        let racks = (self.aggregation_ports / 2).saturating_mul(self.intermediate_ports / 2);
        let hosts = racks.saturating_mul(self.hosts_per_rack);
        // Both port counts are bounded with the racks.
        if hosts > MOST_HOSTS {
            return Err(BuildError::TooManyHosts { hosts, most: MOST_HOSTS });
        }
        Ok(())
    }
}

/// Builds a VL2 with hosts `host-0001`, …; switches are `tor-<n>`, `agg-<n>`, `int-<n>`.
///
/// # Errors
/// [`BuildError::OddField`], [`BuildError::Zero`], [`BuildError::TooManyHosts`].
pub fn vl2(spec: &Vl2Spec) -> Result<BuiltNetwork, BuildError> {
    vl2_named(spec, &numbered("host"))
}

/// Builds a VL2 with hosts named by `name`.
///
/// # Errors
/// As [`vl2`]; [`BuildError::Name`] if `name` repeats itself.
pub fn vl2_named(spec: &Vl2Spec, name: &dyn Fn(HostPlace) -> String) -> Result<BuiltNetwork, BuildError> {
    spec.validate()?;
    let mut network = Network::new();
    let (half, aggregations) = (spec.aggregation_ports / 2, spec.intermediate_ports);
    let mut switches = |count: usize, word: &str, tier| -> Result<Vec<VertexIdx>, BuildError> {
        let width = digits(count).max(2);
        let name = |n| format!("{word}-{n:0width$}");
        (1..=count).map(|n| network.add_switch(&name(n), tier).map_err(BuildError::Name)).collect()
    };
    let tors = switches(half * aggregations / 2, "tor", Tier::Edge)?;
    let aggregations = switches(aggregations, "agg", Tier::Aggregation)?;
    let intermediates = switches(half, "int", Tier::Core)?;
    let racks: Vec<Rack> = tors.iter().map(|&switch| Rack { switch, pod: None, hosts: spec.hosts_per_rack }).collect();
    let racks = fill_racks(&mut network, &racks, spec.host_bits_per_s, name)?;
    for (pair, tors) in aggregations.chunks(2).zip(tors.chunks(half)) {
        for &tor in tors {
            for &aggregation in pair {
                join(&mut network, tor, aggregation, spec.switch_bits_per_s)?;
            }
        }
    }
    for &aggregation in &aggregations {
        for &intermediate in &intermediates {
            join(&mut network, aggregation, intermediate, spec.switch_bits_per_s)?;
        }
    }
    Ok(BuiltNetwork { network, racks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{check, summary};

    #[test]
    fn counts_and_ports_are_the_papers() {
        for (aggregation_ports, intermediate_ports) in [(2, 2), (4, 4), (6, 4), (4, 8)] {
            let built = vl2(&Vl2Spec { aggregation_ports, intermediate_ports, ..Vl2Spec::default() }).unwrap();
            let numbers = summary(&built.network);
            let tors = aggregation_ports * intermediate_ports / 4;
            let switches: Vec<usize> = numbers.tiers.iter().map(|tier| tier.switches).collect();
            assert_eq!(switches, [tors, intermediate_ports, aggregation_ports / 2]);
            assert_eq!(numbers.hosts, 20 * tors);
            assert_eq!(check(&built.network), []);
            for (index, vertex) in built.network.vertices() {
                let ports = match vertex.tier() {
                    None => 1,
                    Some(Tier::Edge) => 20 + 2,
                    Some(Tier::Aggregation) => aggregation_ports,
                    Some(_) => intermediate_ports,
                };
                assert_eq!(built.network.links_of(index).count(), ports, "{}", vertex.name);
            }
        }
    }

    #[test]
    fn full_bisection_needs_ten_times_the_hosts_rate() {
        let numbers = summary(&vl2(&Vl2Spec::default()).unwrap().network);
        assert_eq!(numbers.tiers[0].oversubscription, Some(1.0));
        assert_eq!(numbers.tiers[1].oversubscription, Some(1.0));
    }

    #[test]
    fn impossible_vl2s_are_refused() {
        let refused = |spec: Vl2Spec| vl2(&spec).unwrap_err();
        let odd = refused(Vl2Spec { aggregation_ports: 5, ..Vl2Spec::default() });
        assert_eq!(odd.to_string(), "aggregation_ports is 5, not an even number of at least 2");
        let none = refused(Vl2Spec { intermediate_ports: 0, ..Vl2Spec::default() });
        assert_eq!(none, BuildError::OddField { field: "intermediate_ports", value: 0 });
        let zero = refused(Vl2Spec { hosts_per_rack: 0, ..Vl2Spec::default() });
        assert_eq!(zero, BuildError::Zero { field: "hosts_per_rack" });
        let huge = refused(Vl2Spec { aggregation_ports: usize::MAX - 1, ..Vl2Spec::default() });
        assert!(matches!(huge, BuildError::TooManyHosts { .. }));
    }
}
