//! What can be wrong with a shape; each problem names the field and the value.

use super::found::{Found, MOST_CONTAINERS_PER_NODE};
use super::{ClusterShape, Core, SHAPE_FORMAT};
use hintd_model::cluster::document::DocumentProblem;
use hintd_model::network::optical::MOST_MS;
use hintd_model::units::Bytes;

/// Most nodes of a simulated cluster: five times the largest YARN clusters that were reported.
pub const MOST_NODES: usize = 50_000;

/// Most of one container, MB and vcores: a thousand of them still are an amount that the model takes.
const MOST_OF_A_CONTAINER: u64 = 1 << 36;

pub(super) fn problems(shape: &ClusterShape) -> Vec<DocumentProblem> {
    let mut found = Found::default();
    if shape.format != SHAPE_FORMAT {
        found.add("format", format_args!("is \"{}\", not \"{SHAPE_FORMAT}\"", shape.format));
    }
    found.count("racks", shape.racks, "a cluster has at least one rack");
    found.count("nodes_per_rack", shape.nodes_per_rack, "a rack without nodes is none");
    found.count("containers_per_node", shape.containers_per_node as usize, "nothing could run");
    found.count("container_memory_mb", usize::from(shape.container_memory_mb > 0), "nothing runs without memory");
    for (field, value) in
        [("container_memory_mb", shape.container_memory_mb), ("container_vcores", shape.container_vcores)]
    {
        if value > MOST_OF_A_CONTAINER {
            found.add(field, format_args!("is {value}, more than {MOST_OF_A_CONTAINER}"));
        }
    }
    if shape.nodes() > MOST_NODES {
        let (racks, each) = (shape.racks, shape.nodes_per_rack);
        let message = match shape.classes.is_empty() {
            true => format!("{racks} racks of {each} nodes are more than {MOST_NODES} nodes"),
            false => {
                format!("{racks} racks of {each} nodes, those of classes as they say, are more than {MOST_NODES} nodes")
            }
        };
        found.add("nodes_per_rack", message);
    }
    if shape.containers_per_node > MOST_CONTAINERS_PER_NODE {
        let most = MOST_CONTAINERS_PER_NODE;
        found.add("containers_per_node", format_args!("is {}, more than {most}", shape.containers_per_node));
    }
    found.link("nic_bits_per_s", shape.nic_bits_per_s);
    found.link("uplink_bits_per_s", shape.uplink_bits_per_s);
    if shape.users == Some(0) {
        found.add("users", "is 0: jobs belong to somebody");
    }
    core(shape, &mut found);
    super::classes::check(shape, &mut found);
    found.0
}

fn core(shape: &ClusterShape, found: &mut Found) {
    match shape.core {
        Core::NonBlocking => {}
        Core::Switches { switches } => {
            found.count("core.switches", switches, "racks would not be joined");
            if switches > MOST_NODES {
                found.add("core.switches", format_args!("is {switches}, more than {MOST_NODES}"));
            }
        }
        Core::Pods { racks_per_pod, pod_uplink_bits_per_s } => {
            found.count("core.racks_per_pod", racks_per_pod, "a pod has at least one rack");
            found.link("core.pod_uplink_bits_per_s", pod_uplink_bits_per_s);
        }
        Core::FatTree { ports } => fat_tree(shape, ports, found),
        Core::Jellyfish { links_per_switch, .. } => {
            found.count("core.links_per_switch", links_per_switch, "racks would not be joined");
            if links_per_switch >= shape.racks {
                let message =
                    format_args!("is {links_per_switch}, and there are {} other racks", shape.racks.max(1) - 1);
                found.add("core.links_per_switch", message);
            }
            found.alike(shape, "a jellyfish");
        }
        Core::Optical { .. } => optical(shape, found),
    }
}

fn optical(shape: &ClusterShape, found: &mut Found) {
    let Core::Optical { optical_bits_per_s, ports, interval_ms, pause_ms, elephant_bytes, patience_ms } = shape.core
    else {
        return;
    };
    found.link("core.optical_bits_per_s", optical_bits_per_s);
    match ports {
        Some(0) => found.add("core.ports", "is 0: an optical switch without ports is none"),
        Some(ports) if ports > shape.racks => {
            found.add("core.ports", format_args!("is {ports}, and there are {} racks: a rack has one", shape.racks));
        }
        _ => {}
    }
    if interval_ms == 0 || interval_ms > MOST_MS {
        found.add("core.interval_ms", format_args!("is {interval_ms}, not from 1 to {MOST_MS}"));
    } else if pause_ms >= interval_ms {
        let message = format_args!("is {pause_ms}: with a choice every {interval_ms} ms no time is left to send");
        found.add("core.pause_ms", message);
    }
    if elephant_bytes == Some(Bytes::ZERO) {
        found.add("core.elephant_bytes", "is 0: leave it out for what a circuit carries in nine pauses");
    }
    if let Some(patience_ms) = patience_ms.filter(|&patience_ms| patience_ms > MOST_MS) {
        found.add("core.patience_ms", format_args!("is {patience_ms}, more than {MOST_MS}"));
    }
}

fn fat_tree(shape: &ClusterShape, ports: usize, found: &mut Found) {
    if ports < 2 || !ports.is_multiple_of(2) {
        found.add("core.ports", format_args!("is {ports}, not an even number of at least 2"));
        return;
    }
    let half = ports / 2;
    if shape.nodes_per_rack != half && shape.racks > 1 {
        let message = format_args!("is {}: switches of {ports} ports have {half} nodes each", shape.nodes_per_rack);
        found.add("nodes_per_rack", message);
    }
    let most = ports.saturating_mul(half);
    if shape.racks > most {
        found.add("racks", format_args!("is {}: a fat-tree of {ports}-port switches has {most}", shape.racks));
    }
    found.alike(shape, "a fat-tree");
}
