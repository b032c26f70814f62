//! From a shape, or from a whole cluster document, to the cluster that is simulated.

use super::found::MOST_CONTAINERS_PER_NODE;
use super::names::host_name;
use super::{ClusterShape, Core, NodeClass, classes};
use crate::yarn::SimCluster;
use hintd_model::cluster::document::{ClusterDocument, DocumentProblem, Place};
use hintd_model::cluster::{Change, Model, NamedResource, NodeState, Registration, Resource, SizeRules, Snapshot};
use hintd_model::network::build::{
    self, BuildError, BuiltNetwork, FatTreeSpec, HybridSpec, JellyfishSpec, OPTICAL_SWITCH, TreeSpec,
};
use hintd_model::network::{OpticalSection, optical};
use hintd_model::units::{BitsPerSec, Bytes, HostName, NodeIdx, RackPath, Timestamp};
use std::fmt::Display;
use std::sync::Arc;

/// Clusters of the simulator are there from the beginning of time.
const START: Timestamp = Timestamp::ZERO;

impl ClusterShape {
    /// The cluster: nodes `rack03-node11`, empty and running, and the network that joins them.
    ///
    /// # Errors
    /// All that is wrong with the shape.
    pub fn to_cluster(&self) -> Result<SimCluster, Vec<DocumentProblem>> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let built = self.network().map_err(|error| vec![problem("core", format_args!("can't be built: {error}"))])?;
        let container = Resource::new(self.container_memory_mb, self.container_vcores);
        let rules =
            SizeRules { minimum: container, increment: container, maximum: Resource::ZERO, ..SizeRules::default() };
        let mut model = Model::new(rules);
        let (mut containers, mut speeds) = (Vec::new(), Vec::new());
        for (at, (rack, hosts)) in built.racks.iter().enumerate() {
            let (class, of_rack) = (self.class_of(at), self.rack(at));
            for host in hosts {
                containers.push(of_rack.containers_per_node);
                speeds.push(class.map(NodeClass::class_speed));
                let total = container.times(u64::from(of_rack.containers_per_node));
                let class = class.map_or("", |class| &class.name);
                let registration = registration(host, rack, &total, class);
                model.apply(Change::Register(registration), START).map_err(|error| vec![problem("racks", error)])?;
            }
        }
        let network = Change::Network(Some(Arc::new(built.network)));
        model.apply(network, START).map_err(|error| vec![problem("core", error)])?;
        let snapshot = Arc::unwrap_or_clone(model.publish(START));
        if self.classes.is_empty() {
            speeds.clear();
        }
        Ok(SimCluster { snapshot, container, containers, speeds })
    }

    fn network(&self) -> Result<BuiltNetwork, BuildError> {
        if !self.classes.is_empty() {
            return classes::tree(self);
        }
        let tree = TreeSpec {
            racks: self.racks,
            hosts_per_rack: self.nodes_per_rack,
            racks_per_pod: None,
            aggregations_per_pod: 1,
            cores: 1,
            host_bits_per_s: self.nic_bits_per_s,
            uplink_bits_per_s: self.uplink_bits_per_s,
            aggregation_bits_per_s: BitsPerSec::ZERO,
        };
        let (hosts, bits_per_s) = (Some(self.nodes()), self.nic_bits_per_s);
        match self.core {
            Core::NonBlocking => build::tree_named(&tree, &host_name),
            Core::Switches { switches } => build::tree_named(&TreeSpec { cores: switches, ..tree }, &host_name),
            Core::Pods { racks_per_pod, pod_uplink_bits_per_s } => {
                let pods = (Some(racks_per_pod), pod_uplink_bits_per_s);
                let spec = TreeSpec { racks_per_pod: pods.0, aggregation_bits_per_s: pods.1, ..tree };
                build::tree_named(&spec, &host_name)
            }
            Core::FatTree { ports } => build::fat_tree_named(&FatTreeSpec { k: ports, hosts, bits_per_s }, &host_name),
            Core::Jellyfish { links_per_switch, seed } => {
                let (switches, ports) = (self.racks, self.nodes_per_rack + links_per_switch);
                let spec = JellyfishSpec { switches, ports, to_switches: links_per_switch, hosts, bits_per_s, seed };
                build::jellyfish_named(&spec, &host_name)
            }
            Core::Optical { optical_bits_per_s, ports, interval_ms, pause_ms, elephant_bytes, patience_ms } => {
                let mut built = build::hybrid_named(&HybridSpec { tree, optical_bits_per_s }, &host_name)?;
                let switch = built.network.vertex(OPTICAL_SWITCH).expect("a hybrid network has an optical switch");
                for port in optical::ports(&built.network, switch).0.iter().skip(ports.unwrap_or(usize::MAX)) {
                    built.network.remove_link(port.link);
                }
                let switch = OPTICAL_SWITCH.to_owned();
                let section = OpticalSection { switch, interval_ms, pause_ms, elephant_bytes, patience_ms };
                built.network.set_optical(Some(section));
                Ok(built)
            }
        }
    }
}

/// How a cluster's racks have to be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// By a network that reaches every running node: jobs share its links.
    ByNetwork,
    /// By one that nobody may have told of: enough to know racks and their room.
    Somehow,
}

/// The cluster of a whole document, with as many containers on each running node as its free room holds. What runs
/// there by the document stays; leases do not count.
///
/// # Errors
/// All that is wrong with the document; a network that leaves a running node out, and, where racks are to be joined by
/// one, none. Room for no container at all is no error here: jobs then never fit, which the run reports.
pub fn of_document(
    document: &ClusterDocument,
    container: Resource,
    joined: Joined,
) -> Result<SimCluster, Vec<DocumentProblem>> {
    let (snapshot, _) = document.to_snapshot(START)?;
    let mut problems = Vec::new();
    if document.nodes.is_empty() {
        problems.push(problem("nodes", "there are none: a cluster has at least one rack with a node"));
    }
    match (&document.network, joined) {
        (Some(_), _) => problems.extend(unreached(document, &snapshot)),
        (None, Joined::ByNetwork) => {
            problems.push(problem("network", "is left out: the simulator needs the links that jobs share"));
        }
        (None, Joined::Somehow) => {}
    }
    if container.memory_mb() == 0 {
        problems.push(problem("container", "a container of 0 MB holds nothing"));
    }
    let containers: Vec<u32> = snapshot.statics.indexes().map(|node| room(&snapshot, node, &container)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let speeds = Vec::new();
    Ok(SimCluster { snapshot: Arc::unwrap_or_clone(snapshot), container, containers, speeds })
}

/// Containers that fit beside what is occupied; none on a node that does not run.
fn room(snapshot: &Snapshot, node: NodeIdx, container: &Resource) -> u32 {
    if !snapshot.state[node.at()].usable() {
        return 0;
    }
    let free = snapshot.statics.total[node.at()].minus(&snapshot.occupied[node.at()]);
    let times = |room: u64, each: u64| room.checked_div(each).unwrap_or(u64::MAX);
    let fit = times(free.memory_mb(), container.memory_mb()).min(times(free.vcores(), container.vcores()));
    u32::try_from(fit).unwrap_or(u32::MAX).min(MOST_CONTAINERS_PER_NODE)
}

/// Running nodes that the network does not name, or whose switch can't be reached from the first one's.
fn unreached(document: &ClusterDocument, snapshot: &Snapshot) -> Vec<DocumentProblem> {
    let topology = &snapshot.topology;
    let running = || snapshot.statics.indexes().filter(|node| snapshot.state[node.at()].usable());
    let field = |node: NodeIdx| {
        let at =
            document.nodes.iter().position(|entry| entry.host == snapshot.host(node).as_str()).unwrap_or(node.at());
        format!("nodes[{at}].host")
    };
    let first = running().find_map(|node| topology.edge[node.at()].map(|edge| (node, edge)));
    let mut problems = Vec::new();
    for node in running() {
        let host = snapshot.host(node);
        match (topology.edge[node.at()], first) {
            (None, _) => {
                let message = format_args!("\"{host}\" can't be reached: the network gives it no usable link");
                problems.push(problem(&field(node), message));
            }
            (Some(edge), Some((other, from))) if topology.distances.core_hops(from, edge).is_none() => {
                let message = format_args!("\"{host}\" can't be reached from \"{}\"", snapshot.host(other));
                problems.push(problem(&field(node), message));
            }
            _ => {}
        }
    }
    problems
}

fn registration(host: &HostName, rack: &RackPath, total: &Resource, class: &str) -> Registration {
    Registration {
        host: host.clone(),
        rack: rack.clone(),
        total: NamedResource { memory_mb: total.memory_mb(), vcores: total.vcores(), named: Vec::new() },
        labels: Vec::new(),
        attributes: std::collections::BTreeMap::new(),
        class: Arc::from(class),
        aliases: Vec::new(),
        disk_read: Bytes::ZERO,
        state: NodeState::Running,
    }
}

fn problem(field: &str, message: impl Display) -> DocumentProblem {
    DocumentProblem { place: Place::Field(field.to_owned()), message: message.to_string() }
}
