//! Fat-trees of equal switches (Al-Fares et al., "A Scalable, Commodity Data Center Network Architecture", 2008).

use super::{BuildError, BuiltNetwork, HostPlace, MOST_HOSTS, Rack, fill_racks, join, numbered, positive};
use crate::network::graph::Network;
use crate::network::tier::Tier;
use crate::units::{BitsPerSec, VertexIdx};
use serde::{Deserialize, Serialize};

/// A fat-tree of k-port switches: k pods of k/2 edge and k/2 aggregation switches, (k/2)² cores, k³/4 hosts and
/// three times as many links, all of one capacity.
///
/// # Pruning
/// With `hosts`, the first so many are kept, pod by pod and rack by rack, and with them each switch that a
/// shortest path between two kept hosts can cross, or a host hangs on: edge switches with hosts; a pod's
/// aggregation switches if the pod has two such edge switches or there are two such pods; all cores if there
/// are two such pods. Links stay where both ends do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FatTreeSpec {
    /// Ports of each switch; even.
    pub k: usize,
    /// Hosts kept; `None` keeps all k³/4.
    #[serde(default)]
    pub hosts: Option<usize>,
    /// Capacity of every link.
    pub bits_per_s: BitsPerSec,
}

impl Default for FatTreeSpec {
    /// k = 4: 16 hosts, 20 switches, 48 links of 1 Gbit/s.
    fn default() -> Self {
        Self { k: 4, hosts: None, bits_per_s: BitsPerSec(1_000_000_000) }
    }
}

impl FatTreeSpec {
    /// Hosts that will stand, after the checks.
    fn kept_hosts(&self) -> Result<usize, BuildError> {
        let k = self.k;
        if k < 2 || !k.is_multiple_of(2) {
            return Err(BuildError::OddPorts { k });
        }
        positive(&[("hosts", self.hosts.unwrap_or(1) as u64), ("bits_per_s", self.bits_per_s.0)])?;
        let whole = k.saturating_mul(k).saturating_mul(k) / 4;
        if whole > MOST_HOSTS {
            return Err(BuildError::TooManyHosts { hosts: whole, most: MOST_HOSTS });
        }
        match self.hosts {
            Some(hosts) if hosts > whole => Err(BuildError::TooManyHosts { hosts, most: whole }),
            hosts => Ok(hosts.unwrap_or(whole)),
        }
    }
}

/// Builds a fat-tree with hosts `host-0001`, …; switches are `edge-<pod>-<n>`, `agg-<pod>-<n>`, `core-<n>`.
///
/// # Errors
/// [`BuildError::OddPorts`], [`BuildError::Zero`], [`BuildError::TooManyHosts`].
pub fn fat_tree(spec: &FatTreeSpec) -> Result<BuiltNetwork, BuildError> {
    fat_tree_named(spec, &numbered("host"))
}

/// Builds a fat-tree with hosts named by `name`.
///
/// # Errors
/// As [`fat_tree`]; [`BuildError::Name`] if `name` repeats itself.
pub fn fat_tree_named(spec: &FatTreeSpec, name: &dyn Fn(HostPlace) -> String) -> Result<BuiltNetwork, BuildError> {
    let hosts = spec.kept_hosts()?;
    let half = spec.k / 2;
    let mut network = Network::new();
    let pods = add_pods(&mut network, hosts, half)?;
    let cores = if pods.len() > 1 { half * half } else { 0 };
    let cores = add_switches(&mut network, cores, |n| format!("core-{n}"), Tier::Core)?;

    let racks: Vec<Rack> = pods.iter().flat_map(|pod| pod.racks()).collect();
    debug_assert_eq!(racks.iter().map(|rack| rack.hosts).sum::<usize>(), hosts);
    let racks = fill_racks(&mut network, &racks, spec.bits_per_s, name)?;
    for pod in &pods {
        for &edge in &pod.edges {
            for &aggregation in &pod.aggregations {
                join(&mut network, edge, aggregation, spec.bits_per_s)?;
            }
        }
        if cores.is_empty() {
            continue;
        }
        for (group, &aggregation) in pod.aggregations.iter().enumerate() {
            for &core in &cores[group * half..(group + 1) * half] {
                join(&mut network, aggregation, core, spec.bits_per_s)?;
            }
        }
    }
    Ok(BuiltNetwork { network, racks })
}

struct Pod {
    /// From 1.
    number: usize,
    hosts: usize,
    per_rack: usize,
    edges: Vec<VertexIdx>,
    aggregations: Vec<VertexIdx>,
}

impl Pod {
    fn racks(&self) -> impl Iterator<Item = Rack> {
        self.edges.iter().enumerate().map(|(rack, &switch)| Rack {
            switch,
            pod: Some(self.number),
            hosts: self.per_rack.min(self.hosts - rack * self.per_rack),
        })
    }
}

fn add_pods(network: &mut Network, hosts: usize, half: usize) -> Result<Vec<Pod>, BuildError> {
    let per_pod = half * half;
    let count = hosts.div_ceil(per_pod);
    let mut pods = Vec::with_capacity(count);
    for number in 1..=count {
        let hosts = per_pod.min(hosts - (number - 1) * per_pod);
        let racks = hosts.div_ceil(half);
        let edges = add_switches(network, racks, |n| format!("edge-{number}-{n}"), Tier::Edge)?;
        let above = if count > 1 || racks > 1 { half } else { 0 };
        let aggregations = add_switches(network, above, |n| format!("agg-{number}-{n}"), Tier::Aggregation)?;
        pods.push(Pod { number, hosts, per_rack: half, edges, aggregations });
    }
    Ok(pods)
}

fn add_switches(
    network: &mut Network,
    count: usize,
    name: impl Fn(usize) -> String,
    tier: Tier,
) -> Result<Vec<VertexIdx>, BuildError> {
    (1..=count).map(|number| network.add_switch(&name(number), tier).map_err(BuildError::Name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{check, summary};

    fn counts(k: usize, hosts: Option<usize>) -> (usize, usize, usize) {
        let spec = FatTreeSpec { k, hosts, ..FatTreeSpec::default() };
        let numbers = summary(&fat_tree(&spec).unwrap().network);
        (numbers.hosts, numbers.switches, numbers.links)
    }

    #[test]
    fn sizes_are_those_of_the_literature() {
        for (k, hosts, switches) in [(2, 2, 5), (4, 16, 20), (8, 128, 80), (14, 686, 245), (48, 27_648, 2_880)] {
            assert_eq!(counts(k, None), (hosts, switches, 3 * k * k * k / 4), "k = {k}");
        }
    }

    #[test]
    fn a_fat_tree_is_nowhere_oversubscribed() {
        let built = fat_tree(&FatTreeSpec { k: 8, ..FatTreeSpec::default() }).unwrap();
        let tiers = summary(&built.network).tiers;
        assert_eq!(tiers.iter().map(|tier| tier.switches).collect::<Vec<_>>(), [32, 32, 16]);
        assert_eq!(tiers.iter().map(|tier| tier.oversubscription).collect::<Vec<_>>(), [Some(1.0), Some(1.0), None]);
        let network = &built.network;
        for (index, vertex) in network.vertices() {
            assert_eq!(network.links_of(index).count(), if vertex.is_host() { 1 } else { 8 }, "{}", vertex.name);
        }
    }

    #[test]
    fn pruning_keeps_the_first_hosts_and_only_switches_between_them() {
        assert_eq!(counts(4, Some(1)), (1, 1, 1));
        assert_eq!(counts(4, Some(2)), (2, 1, 2), "one rack needs nothing above");
        assert_eq!(counts(4, Some(3)), (3, 4, 3 + 4), "two racks of one pod need its aggregation");
        assert_eq!(counts(4, Some(5)), (5, 2 + 2 + 1 + 2 + 4, 5 + 4 + 4 + 2 + 4), "two pods need the cores");
        assert_eq!(counts(16, Some(1_000)), (1_000, 125 + 128 + 64, 1_000 + 125 * 8 + 128 * 8));
        let built = fat_tree(&FatTreeSpec { hosts: Some(11), ..FatTreeSpec::default() }).unwrap();
        assert_eq!(check(&built.network), []);
        let (path, hosts) = built.racks.last().unwrap();
        assert_eq!((path.as_str(), hosts.len(), hosts[0].as_str()), ("/pod-3/rack-06", 1, "host-0011"));
    }

    #[test]
    fn impossible_fat_trees_are_refused() {
        let refused = |k, hosts| fat_tree(&FatTreeSpec { k, hosts, ..FatTreeSpec::default() }).unwrap_err();
        assert_eq!(refused(5, None), BuildError::OddPorts { k: 5 });
        assert_eq!(refused(0, None), BuildError::OddPorts { k: 0 });
        assert_eq!(refused(4, Some(17)), BuildError::TooManyHosts { hosts: 17, most: 16 });
        assert_eq!(refused(4, Some(0)), BuildError::Zero { field: "hosts" });
        assert!(matches!(refused(1 << 40, None), BuildError::TooManyHosts { .. }));
    }
}
