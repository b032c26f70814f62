//! Trees of two or three levels.

use super::{BuildError, BuiltNetwork, HostPlace, MOST_HOSTS, Rack, fill_racks, join, numbered, positive};
use crate::network::graph::Network;
use crate::network::tier::Tier;
use crate::units::BitsPerSec;
use serde::{Deserialize, Serialize};

/// A tree: each edge switch has one link to every switch above it.
///
/// Without pods every edge switch (`edge-01`) is linked to every core switch (`core-1`). With pods it is linked to
/// every aggregation switch of its pod (`agg-1-1`), and those to every core switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    /// Racks, of one edge switch each.
    pub racks: usize,
    /// Hosts of each rack.
    pub hosts_per_rack: usize,
    /// Racks of each pod, the last pod taking what is left; `None` builds two levels.
    #[serde(default)]
    pub racks_per_pod: Option<usize>,
    /// Aggregation switches of each pod; unused without pods.
    #[serde(default = "one")]
    pub aggregations_per_pod: usize,
    /// Core switches.
    pub cores: usize,
    /// Capacity of a host's link.
    pub host_bits_per_s: BitsPerSec,
    /// Capacity of each single link up from an edge switch.
    pub uplink_bits_per_s: BitsPerSec,
    /// Capacity of each single link between an aggregation and a core switch; unused without pods.
    #[serde(default)]
    pub aggregation_bits_per_s: BitsPerSec,
}

const fn one() -> usize {
    1
}

impl Default for TreeSpec {
    /// Paper 001's testbed (§V): 8 nodes in 4 racks, two core switches, 1 Gbit/s hosts, 200 Mbit/s per uplink.
    fn default() -> Self {
        Self {
            racks: 4,
            hosts_per_rack: 2,
            racks_per_pod: None,
            aggregations_per_pod: 1,
            cores: 2,
            host_bits_per_s: BitsPerSec(1_000_000_000),
            uplink_bits_per_s: BitsPerSec(200_000_000),
            aggregation_bits_per_s: BitsPerSec::ZERO,
        }
    }
}

impl TreeSpec {
    /// Links up from each edge switch.
    const fn uplinks(&self) -> usize {
        if self.racks_per_pod.is_some() { self.aggregations_per_pod } else { self.cores }
    }

    /// Capacity of a rack's hosts ÷ capacity of its uplinks: 1 is full bisection.
    #[must_use]
    pub fn edge_oversubscription(&self) -> f64 {
        let hosts = self.host_bits_per_s.as_f64() * self.hosts_per_rack as f64;
        hosts / (self.uplink_bits_per_s.as_f64() * self.uplinks() as f64)
    }

    /// The same tree with uplinks of such capacity (whole bits, at least 1) that racks are oversubscribed `ratio`
    /// times; `ratio` is positive. With pods, aggregation links get the capacity that full pods need to pass on
    /// all that their racks send.
    #[must_use]
    pub fn with_edge_oversubscription(mut self, ratio: f64) -> Self {
        let rack_up = self.host_bits_per_s.as_f64() * self.hosts_per_rack as f64 / ratio;
        let capacity = |bits: f64, links: usize| BitsPerSec(((bits / links.max(1) as f64).round() as u64).max(1));
        self.uplink_bits_per_s = capacity(rack_up, self.uplinks());
        if let Some(racks) = self.racks_per_pod {
            self.aggregation_bits_per_s = capacity(rack_up * racks as f64, self.aggregations_per_pod * self.cores);
        }
        self
    }

    fn validate(&self) -> Result<(), BuildError> {
        let mut fields = vec![
            ("racks", self.racks as u64),
            ("hosts_per_rack", self.hosts_per_rack as u64),
            ("cores", self.cores as u64),
            ("host_bits_per_s", self.host_bits_per_s.0),
            ("uplink_bits_per_s", self.uplink_bits_per_s.0),
        ];
        if let Some(racks) = self.racks_per_pod {
            fields.push(("racks_per_pod", racks as u64));
            fields.push(("aggregations_per_pod", self.aggregations_per_pod as u64));
            fields.push(("aggregation_bits_per_s", self.aggregation_bits_per_s.0));
        }
        positive(&fields)?;
        let hosts = self.racks.saturating_mul(self.hosts_per_rack);
        // Switches above are bounded with the hosts: no sensible tree has more of them.
        let largest = hosts.max(self.cores).max(self.aggregations_per_pod);
        if largest > MOST_HOSTS {
            return Err(BuildError::TooManyHosts { hosts: largest, most: MOST_HOSTS });
        }
        Ok(())
    }
}

/// Builds a tree with hosts `host-0001`, ….
///
/// # Errors
/// [`BuildError::Zero`], [`BuildError::TooManyHosts`].
pub fn tree(spec: &TreeSpec) -> Result<BuiltNetwork, BuildError> {
    tree_named(spec, &numbered("host"))
}

/// Builds a tree with hosts named by `name`.
///
/// # Errors
/// [`BuildError::Zero`], [`BuildError::TooManyHosts`]; [`BuildError::Name`] if `name` repeats itself.
pub fn tree_named(spec: &TreeSpec, name: &dyn Fn(HostPlace) -> String) -> Result<BuiltNetwork, BuildError> {
    tree_beside(spec, None, name)
}

/// Builds a tree and, where asked, a switch beside it with one dark port of such capacity for each rack.
pub(super) fn tree_beside(
    spec: &TreeSpec,
    optical: Option<(&str, BitsPerSec)>,
    name: &dyn Fn(HostPlace) -> String,
) -> Result<BuiltNetwork, BuildError> {
    spec.validate()?;
    let mut network = Network::new();
    let mut switch = |name: String, tier| network.add_switch(&name, tier).map_err(BuildError::Name);
    let width = super::digits(spec.racks).max(2);
    let edges: Vec<_> =
        (1..=spec.racks).map(|rack| switch(format!("edge-{rack:0width$}"), Tier::Edge)).collect::<Result<_, _>>()?;
    let pods = spec.racks_per_pod.map_or(0, |racks| spec.racks.div_ceil(racks));
    let mut aggregations = Vec::with_capacity(pods);
    for pod in 1..=pods {
        let of_pod = (1..=spec.aggregations_per_pod).map(|n| switch(format!("agg-{pod}-{n}"), Tier::Aggregation));
        aggregations.push(of_pod.collect::<Result<Vec<_>, _>>()?);
    }
    let cores: Vec<_> =
        (1..=spec.cores).map(|core| switch(format!("core-{core}"), Tier::Core)).collect::<Result<_, _>>()?;

    let optical = optical
        .map(|(name, capacity)| switch(name.to_owned(), Tier::Optical).map(|switch| (switch, capacity)))
        .transpose()?;

    let pod_of = |rack: usize| spec.racks_per_pod.map(|racks| rack / racks);
    let racks: Vec<Rack> = (0..)
        .zip(&edges)
        .map(|(rack, &switch)| Rack { switch, pod: pod_of(rack).map(|pod| pod + 1), hosts: spec.hosts_per_rack })
        .collect();
    let racks = fill_racks(&mut network, &racks, spec.host_bits_per_s, name)?;
    for (rack, &edge) in edges.iter().enumerate() {
        for &above in pod_of(rack).map_or(&cores, |pod| &aggregations[pod]) {
            join(&mut network, edge, above, spec.uplink_bits_per_s)?;
        }
    }
    for &aggregation in aggregations.iter().flatten() {
        for &core in &cores {
            join(&mut network, aggregation, core, spec.aggregation_bits_per_s)?;
        }
    }
    for (&edge, (optical, capacity)) in edges.iter().flat_map(|edge| optical.map(|port| (edge, port))) {
        let port = join(&mut network, edge, optical, capacity)?;
        network.set_link(port, Some(false), None);
    }
    Ok(BuiltNetwork { network, racks })
}

#[cfg(test)]
mod tests {
    use super::super::by_rack;
    use super::*;
    use crate::network::{check, summary};

    #[test]
    fn the_default_tree_is_the_testbed_of_paper_001() {
        let spec = TreeSpec::default();
        let built = tree(&spec).unwrap();
        let numbers = summary(&built.network);
        assert_eq!((numbers.hosts, numbers.switches, numbers.links), (8, 6, 8 + 8));
        assert_eq!(numbers.tiers[0].down, BitsPerSec(8_000_000_000));
        assert_eq!(numbers.tiers[0].up, BitsPerSec(1_600_000_000));
        assert_eq!(numbers.tiers[0].oversubscription, Some(5.0));
        assert_eq!(spec.edge_oversubscription(), 5.0);
        assert_eq!(numbers.tiers[1].oversubscription, None, "nothing is above the core");
        assert_eq!(built.racks[3].0.as_str(), "/rack-04");
        assert_eq!(built.racks[3].1[1].as_str(), "host-0008");
        let uplink = built.network.link("edge-04--core-2").unwrap();
        assert_eq!(built.network.link_at(uplink).capacity, BitsPerSec(200_000_000));
    }

    #[test]
    fn three_levels_have_pods_in_their_rack_paths() {
        let spec = TreeSpec { racks: 5, racks_per_pod: Some(2), aggregations_per_pod: 2, ..TreeSpec::default() };
        assert_eq!(tree(&spec).unwrap_err(), BuildError::Zero { field: "aggregation_bits_per_s" });
        let spec = spec.with_edge_oversubscription(4.0);
        let built = tree_named(&spec, &by_rack("node")).unwrap();
        assert_eq!(check(&built.network), []);
        let paths: Vec<&str> = built.racks.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/pod-1/rack-01", "/pod-1/rack-02", "/pod-2/rack-03", "/pod-2/rack-04", "/pod-3/rack-05"]);
        assert_eq!(built.racks[2].1[1].as_str(), "node-03-2");
        let numbers = summary(&built.network);
        assert_eq!((numbers.switches, numbers.links), (5 + 6 + 2, 10 + 10 + 12));
        assert_eq!(numbers.tiers[0].oversubscription, Some(4.0));
    }

    #[test]
    fn impossible_trees_are_refused() {
        let none = TreeSpec { hosts_per_rack: 0, ..TreeSpec::default() };
        assert_eq!(tree(&none).unwrap_err().to_string(), "hosts_per_rack is 0");
        let huge = TreeSpec { racks: usize::MAX, ..TreeSpec::default() };
        assert!(matches!(tree(&huge), Err(BuildError::TooManyHosts { .. })));
        assert!(matches!(tree_named(&TreeSpec::default(), &|_| "same".to_owned()), Err(BuildError::Name(_))));
    }
}
