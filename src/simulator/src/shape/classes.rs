//! Racks of machines that are not like the others of a shape: fewer or more of them, other containers, links and speeds.

use super::found::{Found, MOST_CONTAINERS_PER_NODE};
use super::names::host_name;
use super::{ClusterShape, Core};
use hintd_model::network::build::{BuildError, BuiltNetwork, HostPlace};
use hintd_model::network::{Network, NetworkProblem, Tier};
use hintd_model::units::{BitsPerSec, HostName, LinkName, RackPath, VertexIdx};
use hintd_policy::{ClassSpeed, LargeJobs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A class of machines: whole racks of a [`ClusterShape`] (004 §5.2.1: no two classes share a rack).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeClass {
    /// Its name, which its nodes have as their machine class.
    pub name: String,
    /// Its racks, from 1, as their names count them.
    pub racks: Vec<usize>,
    /// Nodes of each of its racks; left out: as many as in any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_per_rack: Option<usize>,
    /// Containers of each node; left out: as many as on any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containers_per_node: Option<u32>,
    /// Capacity of a node's link, each direction; left out: as any other's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic_bits_per_s: Option<BitsPerSec>,
    /// Speed of processor and disk against the other nodes': tasks take their time ÷ it.
    #[serde(default = "NodeClass::as_others")]
    pub speed: f64,
    /// Jobs that run at another speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<LargeJobs>,
}

/// What nodes of one rack are like.
#[derive(Debug, Clone, Copy)]
pub(super) struct RackShape {
    pub(super) nodes: usize,
    pub(super) containers_per_node: u32,
    nic: BitsPerSec,
}

impl NodeClass {
    const fn as_others() -> f64 {
        1.0
    }

    /// How fast its nodes work.
    #[must_use]
    pub const fn class_speed(&self) -> ClassSpeed {
        ClassSpeed { speed: self.speed, large: self.large }
    }
}

impl ClusterShape {
    /// The class of the `at`-th rack, from 0.
    pub(super) fn class_of(&self, at: usize) -> Option<&NodeClass> {
        self.classes.iter().find(|class| class.racks.contains(&(at + 1)))
    }

    pub(super) fn rack(&self, at: usize) -> RackShape {
        let class = self.class_of(at);
        RackShape {
            nodes: class.and_then(|class| class.nodes_per_rack).unwrap_or(self.nodes_per_rack),
            containers_per_node: class.and_then(|class| class.containers_per_node).unwrap_or(self.containers_per_node),
            nic: class.and_then(|class| class.nic_bits_per_s).unwrap_or(self.nic_bits_per_s),
        }
    }

    /// Over all nodes, of the containers of each.
    pub(super) fn summed(&self, of: impl Fn(u32) -> usize) -> usize {
        let named = self.classes.iter().flat_map(|class| &class.racks).copied();
        let in_classes: BTreeSet<usize> = named.filter(|rack| (1..=self.racks).contains(rack)).collect();
        let each = self.nodes_per_rack.saturating_mul(of(self.containers_per_node));
        let others = (self.racks - in_classes.len()).saturating_mul(each);
        in_classes.into_iter().fold(others, |sum, rack| {
            let rack = self.rack(rack - 1);
            sum.saturating_add(rack.nodes.saturating_mul(of(rack.containers_per_node)))
        })
    }
}

/// What is wrong with the classes, each with its value.
pub(super) fn check(shape: &ClusterShape, found: &mut Found) {
    let mut by_rack: BTreeMap<usize, &str> = BTreeMap::new();
    for (at, class) in shape.classes.iter().enumerate() {
        let field = |name: &str| format!("classes[{at}].{name}");
        if class.name.is_empty() {
            found.add(&field("name"), "is \"\": a class without a name is none");
        } else if shape.classes[..at].iter().any(|other| other.name == class.name) {
            found.add(&field("name"), format_args!("is \"{}\", as of a class before", class.name));
        }
        if class.racks.is_empty() {
            found.add(&field("racks"), format_args!("is []: class \"{}\" has no nodes", class.name));
        }
        for &rack in &class.racks {
            if rack == 0 || rack > shape.racks {
                found.add(&field("racks"), format_args!("has {rack}: racks are numbered from 1 to {}", shape.racks));
            } else if let Some(other) = by_rack.insert(rack, &class.name) {
                let message = format_args!("has {rack}, which is in \"{other}\": a node has one class");
                found.add(&field("racks"), message);
            }
        }
        found.count(&field("nodes_per_rack"), class.nodes_per_rack.unwrap_or(1), "a class without nodes is none");
        let containers = class.containers_per_node.unwrap_or(1);
        found.count(&field("containers_per_node"), containers as usize, "nothing could run");
        if containers > MOST_CONTAINERS_PER_NODE {
            let message = format_args!("is {containers}, more than {MOST_CONTAINERS_PER_NODE}");
            found.add(&field("containers_per_node"), message);
        }
        if let Some(nic) = class.nic_bits_per_s {
            found.link(&field("nic_bits_per_s"), nic);
        }
        if let Some((name, why)) = class.class_speed().problem() {
            found.add(&field(name), why);
        }
    }
    if !shape.classes.is_empty() && !matches!(shape.core, Core::NonBlocking | Core::Switches { .. }) {
        found.add("classes", "need racks joined by core.kind non_blocking or switches: all nodes of others are alike");
    }
}

/// Racks as they are, each with a link to every core switch; vertices and links named as those of a tree of equal racks.
pub(super) fn tree(shape: &ClusterShape) -> Result<BuiltNetwork, BuildError> {
    grown(shape).map_err(BuildError::Name)
}

fn grown(shape: &ClusterShape) -> Result<BuiltNetwork, NetworkProblem> {
    let cores = if let Core::Switches { switches } = shape.core { switches } else { 1 };
    let width = shape.racks.to_string().len().max(2);
    let mut network = Network::new();
    let edges: Vec<(String, VertexIdx)> = (1..=shape.racks)
        .map(|rack| format!("edge-{rack:0width$}"))
        .map(|name| network.add_switch(&name, Tier::Edge).map(|at| (name, at)))
        .collect::<Result<_, _>>()?;
    let cores: Vec<(String, VertexIdx)> = (1..=cores)
        .map(|core| format!("core-{core}"))
        .map(|name| network.add_switch(&name, Tier::Core).map(|at| (name, at)))
        .collect::<Result<_, _>>()?;
    let mut racks = Vec::with_capacity(shape.racks);
    let (mut number, of) = (0, shape.nodes());
    for (at, (edge, switch)) in edges.iter().enumerate() {
        let rack = shape.rack(at);
        let mut hosts = Vec::with_capacity(rack.nodes);
        for in_rack in 1..=rack.nodes {
            number += 1;
            let name = host_name(HostPlace { number, of, pod: None, rack: at + 1, in_rack });
            let host = network.add_host(&name)?;
            network.add_link(LinkName::from(format!("{name}--{edge}")), host, *switch, rack.nic)?;
            hosts.push(HostName::from(name));
        }
        racks.push((RackPath::from(format!("/rack-{:0width$}", at + 1)), hosts));
    }
    for (edge, switch) in &edges {
        for (core, above) in &cores {
            let name = LinkName::from(format!("{edge}--{core}"));
            network.add_link(name, *switch, *above, shape.uplink_bits_per_s)?;
        }
    }
    Ok(BuiltNetwork { network, racks })
}
