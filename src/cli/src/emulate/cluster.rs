//! The emulated machines: nodes with a size, racks, and the network between them.

use hintd_client::wire::{v1, yarn};
use hintd_model::network::build::{self, BuildError, TreeSpec};
use hintd_model::network::{Network, NetworkDocument, shortest_path};
use hintd_model::units::{BitsPerSec, HostName, RackPath};

/// What a cluster should look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterShape {
    /// Nodes of the whole cluster; a multiple of `racks`.
    pub nodes: usize,
    /// Racks, one edge switch each.
    pub racks: usize,
    /// Core switches; every edge switch is linked to each.
    pub cores: usize,
    /// Memory of a node, MB.
    pub memory_mb: u64,
    /// Virtual cores of a node.
    pub vcores: u32,
    /// Capacity of a node's link.
    pub host_bits_per_s: BitsPerSec,
    /// Capacity of a rack's nodes ÷ capacity of its uplinks.
    pub oversubscription: f64,
}

impl Default for ClusterShape {
    /// 40 nodes of 16 GB in 5 racks under two core switches, 10 Gbit/s, 5:1.
    fn default() -> Self {
        Self {
            nodes: 40,
            racks: 5,
            cores: 2,
            memory_mb: 16 * 1024,
            vcores: 16,
            host_bits_per_s: BitsPerSec(10_000_000_000),
            oversubscription: 5.0,
        }
    }
}

/// A shape that no cluster has.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClusterError {
    /// Nodes are spread evenly.
    #[error("{nodes} nodes do not divide evenly into {racks} racks")]
    Uneven {
        /// Nodes asked for.
        nodes: usize,
        /// Racks asked for.
        racks: usize,
    },
    /// Blocks have replicas in two racks, and a failed link needs a second way.
    #[error("{what} is {value}: the emulated cluster needs at least {least}")]
    TooFew {
        /// Which.
        what: &'static str,
        /// Asked for.
        value: usize,
        /// Needed.
        least: usize,
    },
    /// The network can't be built so.
    #[error("no such network")]
    Network(#[from] BuildError),
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// YARN's name.
    pub host: HostName,
    /// HDFS's name of the same machine: fully qualified, as DataNodes report themselves.
    pub datanode: String,
    /// Its rack.
    pub rack: RackPath,
    /// The rack's number, from 0.
    pub rack_number: usize,
    /// Memory, MB.
    pub memory_mb: u64,
    /// Virtual cores.
    pub vcores: u32,
}

/// The cluster's machines and network.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Nodes, rack by rack.
    pub machines: Vec<Machine>,
    /// The network.
    pub network: Network,
    /// What it was built from.
    pub shape: ClusterShape,
}

/// Port that emulated NodeManagers claim: YARN's usual one.
const NODE_MANAGER_PORT: i32 = 45_454;

/// Sequential read rate of an emulated disk, bytes a second.
const DISK_READ: u64 = 200_000_000;

impl Cluster {
    /// Builds machines and network.
    ///
    /// # Errors
    /// [`ClusterError`] where the shape can't be built, or is too small for replicas and reroutes.
    pub fn build(shape: ClusterShape) -> Result<Self, ClusterError> {
        for (what, value, least) in [("racks", shape.racks, 2), ("cores", shape.cores, 1)] {
            if value < least {
                return Err(ClusterError::TooFew { what, value, least });
            }
        }
        if shape.nodes == 0 || !shape.nodes.is_multiple_of(shape.racks) {
            return Err(ClusterError::Uneven { nodes: shape.nodes, racks: shape.racks });
        }
        let spec = TreeSpec {
            racks: shape.racks,
            hosts_per_rack: shape.nodes / shape.racks,
            cores: shape.cores,
            host_bits_per_s: shape.host_bits_per_s,
            ..TreeSpec::default()
        }
        .with_edge_oversubscription(shape.oversubscription);
        let built = build::tree_named(&spec, &build::by_rack("node"))?;
        let machine = |rack_number: usize, rack: &RackPath, host: &HostName| Machine {
            host: host.clone(),
            datanode: format!("{host}.cluster.example"),
            rack: rack.clone(),
            rack_number,
            memory_mb: shape.memory_mb,
            vcores: shape.vcores,
        };
        let racks = built.racks.iter().enumerate();
        let machines =
            racks.flat_map(|(number, (rack, hosts))| hosts.iter().map(move |host| machine(number, rack, host)));
        Ok(Self { machines: machines.collect(), network: built.network, shape })
    }

    /// Containers of `memory_mb` that the empty cluster holds.
    #[must_use]
    pub fn slots(&self, memory_mb: u64) -> u32 {
        let fit = |machine: &Machine| machine.memory_mb / memory_mb.max(1);
        u32::try_from(self.machines.iter().map(fit).sum::<u64>()).unwrap_or(u32::MAX)
    }

    /// The node of a host name.
    #[must_use]
    pub fn find(&self, host: &str) -> Option<usize> {
        self.machines.iter().position(|machine| machine.host.as_str() == host)
    }

    /// How the NodeManager of `node` registers.
    #[must_use]
    pub fn registration(&self, node: usize) -> v1::RegisterNode {
        let machine = &self.machines[node];
        v1::RegisterNode {
            host: machine.host.to_string(),
            port: NODE_MANAGER_PORT,
            rack: machine.rack.to_string(),
            total: Some(resource(machine.memory_mb, machine.vcores)),
            aliases: vec![machine.datanode.clone()],
            disk_read_bytes_per_s: DISK_READ,
            ..v1::RegisterNode::default()
        }
    }

    /// The network as the SDN controller sends it.
    #[must_use]
    pub fn graph(&self) -> v1::NetworkGraph {
        graph(&self.network)
    }

    /// Links between switches.
    #[must_use]
    pub fn uplinks(&self) -> Vec<String> {
        let between_switches = |a, b| !self.network.vertex_at(a).is_host() && !self.network.vertex_at(b).is_host();
        let links = self.network.links().filter(|(_, link)| between_switches(link.a, link.b));
        links.map(|(_, link)| link.name.to_string()).collect()
    }

    /// Whether two nodes can reach each other as things stand in `network`.
    #[must_use]
    pub fn reachable(network: &Network, a: &str, b: &str) -> bool {
        let ends = network.vertex(a).zip(network.vertex(b));
        ends.is_some_and(|(a, b)| shortest_path(network, a, b).is_some())
    }
}

/// A network as an SDN controller sends it.
#[must_use]
pub fn graph(network: &Network) -> v1::NetworkGraph {
    let document: NetworkDocument = network.to_document();
    let link = |link: hintd_model::network::LinkEntry| v1::NetworkLink {
        id: link.id.to_string(),
        a: link.a,
        b: link.b,
        bits_per_s: u64::try_from(link.bits_per_s).expect("builders give positive capacities"),
        up: Some(link.up),
    };
    let switch = |switch: hintd_model::network::SwitchEntry| v1::NetworkSwitch {
        name: switch.name,
        tier: switch.tier.to_string(),
    };
    v1::NetworkGraph {
        switches: document.switches.into_iter().map(switch).collect(),
        hosts: document.hosts.into_iter().map(|host| v1::NetworkHost { name: host.name.to_string() }).collect(),
        links: document.links.into_iter().map(link).collect(),
        optical: document.optical.map(|section| v1::OpticalSwitch {
            switch: section.switch,
            interval_ms: section.interval_ms,
            pause_ms: Some(section.pause_ms),
            elephant_bytes: section.elephant_bytes.map(|bytes| bytes.0),
            patience_ms: section.patience_ms,
        }),
    }
}

/// A size as YARN writes it.
#[must_use]
pub fn resource(memory_mb: u64, vcores: u32) -> yarn::ResourceProto {
    yarn::ResourceProto {
        memory: Some(i64::try_from(memory_mb).unwrap_or(i64::MAX)),
        virtual_cores: Some(i32::try_from(vcores).unwrap_or(i32::MAX)),
        resource_value_map: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_the_nodes_racks_and_oversubscription_asked_for() {
        let cluster = Cluster::build(ClusterShape::default()).unwrap();
        assert_eq!(cluster.machines.len(), 40);
        assert_eq!(cluster.machines.iter().filter(|machine| machine.rack_number == 4).count(), 8);
        assert_eq!(cluster.uplinks().len(), 10);
        let edge = &hintd_model::network::summary(&cluster.network).tiers[0];
        assert!((edge.oversubscription.unwrap() - 5.0).abs() < 1e-6);
        assert_eq!(cluster.slots(1024), 640);
        let graph = cluster.graph();
        assert_eq!((graph.hosts.len(), graph.switches.len(), graph.links.len()), (40, 7, 50));
    }

    #[test]
    fn shapes_that_can_hold_no_replicas_or_are_uneven_are_refused() {
        let shape = |nodes, racks| Cluster::build(ClusterShape { nodes, racks, ..ClusterShape::default() });
        assert!(matches!(shape(41, 5), Err(ClusterError::Uneven { nodes: 41, racks: 5 })));
        assert!(matches!(shape(0, 5), Err(ClusterError::Uneven { .. })));
        assert!(matches!(shape(8, 1), Err(ClusterError::TooFew { what: "racks", .. })));
    }
}
