//! The cluster of `hintctl emulate --cluster`: a shipped one by its name, or the one in a file, as `hintctl simulate` reads it.

use super::super::failure::Failure;
use super::super::simulate::{self, ContainerArgs};
use crate::emulate::cluster::Machine;
use crate::emulate::{Cluster, ClusterShape};
use hintd_model::cluster::Snapshot;
use hintd_model::network::Network;
use hintd_model::units::{BitsPerSec, NodeIdx, RackPath};
use hintd_simulator::shape::Joined;
use std::collections::BTreeMap;

/// Racks that replicas of a block need.
const RACKS: usize = 2;

/// The machines that run by the file, empty, and the network between them.
///
/// # Errors
/// [`Failure::Input`] for a name or file that is wrong, and a cluster that can't be emulated.
pub(super) fn cluster(name: &str) -> Result<Cluster, Failure> {
    let found = simulate::cluster(name, ContainerArgs::USUAL, Joined::ByNetwork)?;
    of_snapshot(&found.cluster.snapshot).map_err(|why| Failure::Input(format!("cluster {name}: {why}")))
}

fn of_snapshot(snapshot: &Snapshot) -> Result<Cluster, String> {
    let network = snapshot.topology.network.as_deref().ok_or("network: is left out: jobs share its links")?.clone();
    let mut machines = machines(snapshot, &network)?;
    let racks: BTreeMap<RackPath, usize> = machines.iter().map(|machine| (machine.rack.clone(), 0)).collect();
    if racks.len() < RACKS {
        let running = machines.len();
        return Err(format!("{running} running nodes in {} rack: replicas of blocks need {RACKS} racks", racks.len()));
    }
    let numbers: BTreeMap<RackPath, usize> = racks.into_keys().zip(0..).collect();
    for machine in &mut machines {
        machine.rack_number = numbers[&machine.rack];
    }
    machines.sort_by_key(|machine| machine.rack_number); // in the file's order within a rack
    let shape = ClusterShape {
        nodes: machines.len(),
        racks: numbers.len(),
        cores: 0,
        memory_mb: machines[0].memory_mb,
        vcores: machines[0].vcores,
        host_bits_per_s: BitsPerSec::ZERO, // each link has its own
        oversubscription: 1.0,
    };
    Ok(Cluster { machines, network, shape })
}

/// Nodes that run; their racks have no numbers yet.
fn machines(snapshot: &Snapshot, network: &Network) -> Result<Vec<Machine>, String> {
    let statics = &snapshot.statics;
    let running = statics.indexes().filter(|node| snapshot.state[node.at()].usable());
    let machine = |node: NodeIdx| {
        let host = statics.host[node.at()].clone();
        if network.vertex(host.as_str()).is_none() {
            return Err(format!("node \"{host}\" stands in the network under another name, and has to under this one"));
        }
        let total = &statics.total[node.at()];
        Ok(Machine {
            datanode: format!("{host}.cluster.example"),
            rack: statics.racks[statics.rack[node.at()].at()].clone(),
            rack_number: 0,
            memory_mb: total.memory_mb(),
            vcores: u32::try_from(total.vcores()).unwrap_or(u32::MAX),
            host,
        })
    };
    running.map(machine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::cluster::document::{CLUSTER_FORMAT, ClusterDocument};
    use hintd_model::network::NETWORK_FORMAT;
    use hintd_model::units::Timestamp;

    #[test]
    fn a_shipped_cluster_is_emulated_with_its_nodes_racks_and_links() {
        let cluster = cluster("nas-40").unwrap();
        assert_eq!(cluster.machines.len(), cluster.shape.nodes);
        assert!(cluster.machines.is_sorted_by_key(|machine| machine.rack_number));
        let hosts = cluster.graph().hosts.len();
        assert_eq!((cluster.shape.nodes, hosts), (40, 40));
        assert!(cluster.slots(2_048) > 0 && !cluster.uplinks().is_empty());
        let unknown = super::cluster("nas-41").unwrap_err().to_string();
        assert!(unknown.contains("\"nas-41\" is neither a file nor shipped"), "{unknown}");
    }

    #[test]
    fn nodes_that_do_not_run_are_left_out_and_what_cannot_be_emulated_is_said() {
        let document = |nodes: &str, hosts: &str| -> ClusterDocument {
            let link = |host: &str, edge: &str| {
                format!("{{\"id\":\"l-{host}\",\"a\":\"{host}\",\"b\":\"{edge}\",\"bits_per_s\":1000000000}}")
            };
            let names: Vec<&str> = hosts.split(' ').collect();
            let entries: Vec<String> = names.iter().map(|name| format!("{{\"name\":\"{name}\"}}")).collect();
            let links: Vec<String> =
                names.iter().enumerate().map(|(at, name)| link(name, ["e0", "e1"][at % 2])).collect();
            let text = format!(
                "{{\"format\":\"{CLUSTER_FORMAT}\",\"nodes\":[{nodes}],\"network\":{{\"format\":\"{NETWORK_FORMAT}\",\"switches\":[{{\"name\":\"e0\",\
                 \"tier\":\"edge\"}},{{\"name\":\"e1\",\"tier\":\"edge\"}}],\"hosts\":[{}],\"links\":[{},\
                 {{\"id\":\"up\",\"a\":\"e0\",\"b\":\"e1\",\"bits_per_s\":1000000000}}]}}}}",
                entries.join(","),
                links.join(",")
            );
            serde_json::from_str(&text).unwrap()
        };
        let node = |host: &str, rack: &str, state: &str| {
            format!("{{\"host\":\"{host}\",\"rack\":\"{rack}\",\"memory_mb\":8192,\"vcores\":8,\"state\":\"{state}\"}}")
        };
        let of = |nodes: &[String], hosts: &str| {
            let (snapshot, _) = document(&nodes.join(","), hosts).to_snapshot(Timestamp(1)).unwrap();
            of_snapshot(&snapshot)
        };
        let three = [node("a", "/r0", "RUNNING"), node("b", "/r1", "RUNNING"), node("c", "/r0", "LOST")];
        let cluster = of(&three, "a b c").unwrap();
        let hosts: Vec<&str> = cluster.machines.iter().map(|machine| machine.host.as_str()).collect();
        assert_eq!((hosts, cluster.uplinks()), (vec!["a", "b"], vec!["up".to_owned()]));
        let one_rack = of(&[node("a", "/r0", "RUNNING"), node("b", "/r0", "RUNNING")], "a b").unwrap_err();
        assert!(one_rack.contains("2 running nodes in 1 rack"), "{one_rack}");
        let other_name = of(&three[..2], "a x").unwrap_err();
        assert!(other_name.contains("node \"b\" stands in the network under another name"), "{other_name}");
    }
}
