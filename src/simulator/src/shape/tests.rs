//! Shapes: every shipped cluster, every core, every refusal with its words.

use super::*;
use hintd_model::cluster::document::{ClusterDocument, Syntax};
use hintd_model::cluster::{Overlay, Resource};
use hintd_model::network::summary;

const SMALL: &str = "format = \"hintd.shape/1\"\nracks = 2\nnodes_per_rack = 2\ncontainers_per_node = 3\n\
    nic_bits_per_s = 1_000_000_000\nuplink_bits_per_s = 500_000_000\n";

fn shape(text: &str) -> ClusterShape {
    Syntax::Toml.read(text).unwrap()
}

fn said(shape: &ClusterShape) -> Vec<String> {
    shape.to_cluster().unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn every_shipped_cluster_is_built_and_is_the_papers() {
    for (name, nodes, containers, racks) in [
        ("nas", 600, 3_600, 30),
        ("nas-40", 40, 640, 8),
        ("nas-40-2to1", 40, 640, 8),
        ("nas-40-10to1", 40, 640, 8),
        ("jobpacker", 600, 12_000, 20),
        ("jobpacker-packets", 600, 12_000, 20),
        ("container", 8, 64, 4),
        ("cross-layer-30", 30, 120, 10),
        ("scale-out", 600, 4_800, 20),
        ("scale-up-out", 576, 4_704, 20),
    ] {
        let shape = Shipped::find(name).unwrap().shape().unwrap();
        let cluster = shape.to_cluster().unwrap();
        let statics = &cluster.snapshot.statics;
        assert_eq!((statics.len(), statics.racks.len()), (nodes, racks), "{name}");
        assert_eq!(cluster.containers.iter().map(|&of_node| u64::from(of_node)).sum::<u64>(), containers, "{name}");
        assert_eq!(shape.containers(), containers);
        let mut holds = statics.total.iter().zip(&cluster.containers);
        let whole = holds.all(|(total, &of_node)| *total == cluster.container.times(u64::from(of_node)));
        assert!(whole, "{name}: a node holds its containers and no more");
        assert!(cluster.snapshot.topology.edge.iter().all(Option::is_some), "{name}: every node hangs somewhere");
    }
    assert_eq!(shipped().len(), 10);
    // What links carry.
    let capacities_of = |name: &str| {
        let shape = Shipped::find(name).unwrap().shape().unwrap();
        let links = shape.to_cluster().unwrap().snapshot.topology.network.clone().unwrap();
        let capacities: std::collections::BTreeSet<u64> = links.links().map(|(_, link)| link.capacity.0).collect();
        capacities.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(capacities_of("nas-40-2to1"), [1_000_000_000, 2_500_000_000], "5 nodes of a gigabit each on 2.5");
    assert_eq!(capacities_of("nas-40-10to1"), [500_000_000, 1_000_000_000], "on half a gigabit");
}

#[test]
fn the_cluster_of_chapter_3_is_oversubscribed_five_times() {
    let cluster = Shipped::find("nas").unwrap().shape().unwrap().to_cluster().unwrap();
    let network = cluster.snapshot.topology.network.clone().unwrap();
    assert_eq!(summary(&network).tiers[0].oversubscription, Some(5.0));
    assert_eq!(cluster.snapshot.host(hintd_model::units::NodeIdx(20)).as_str(), "rack02-node01");
}

#[test]
fn every_core_joins_all_racks() {
    for (core, nic, grain) in [
        ("{ kind = \"non_blocking\" }", 1, FlowGrain::Racks),
        ("{ kind = \"switches\", switches = 3 }", 1, FlowGrain::Racks),
        ("{ kind = \"optical\", optical_bits_per_s = 100_000_000_000 }", 1, FlowGrain::Racks),
        (
            "{ kind = \"optical\", optical_bits_per_s = 100_000_000_000, ports = 1, patience_ms = 7 }",
            1,
            FlowGrain::Racks,
        ),
        ("{ kind = \"pods\", racks_per_pod = 1, pod_uplink_bits_per_s = 700_000_000 }", 1, FlowGrain::Nodes),
        ("{ kind = \"fat_tree\", ports = 4 }", 2, FlowGrain::Nodes),
        ("{ kind = \"jellyfish\", links_per_switch = 1 }", 2, FlowGrain::Nodes),
    ] {
        let mut shape = shape(&format!("{SMALL}core = {core}\n"));
        if nic == 2 {
            shape.uplink_bits_per_s = shape.nic_bits_per_s;
        }
        let cluster = shape.to_cluster().unwrap();
        let topology = &cluster.snapshot.topology;
        let [first, last] = [0, 3].map(|node| topology.edge[node].unwrap());
        assert!(topology.distances.core_hops(first, last).is_some(), "{core}");
        assert_eq!(shape.grain(), grain, "{core}");
        assert_eq!(Syntax::Toml.read(&Syntax::Toml.write(&shape).unwrap()), Ok(shape), "{core} reads back");
    }
}

#[test]
fn a_shape_that_can_not_be_meant_is_refused_by_field_and_value() {
    let change = |field: &str, value: &str| {
        let lines = SMALL
            .lines()
            .map(|line| if line.starts_with(field) { format!("{field} = {value}") } else { line.to_owned() });
        let text = lines.collect::<Vec<_>>().join("\n");
        said(&shape(&if SMALL.contains(field) { text } else { format!("{text}\n{field} = {value}") }))
    };
    let optical = |more: &str| format!("{{ kind = \"optical\", optical_bits_per_s = 100_000_000_000, {more} }}");
    for (field, value, message) in [
        ("format", "\"hintd.shape/9\"", "format: is \"hintd.shape/9\", not \"hintd.shape/1\""),
        ("racks", "0", "racks: is 0: a cluster has at least one rack"),
        ("nodes_per_rack", "0", "nodes_per_rack: is 0: a rack without nodes is none"),
        ("nodes_per_rack", "40000", "nodes_per_rack: 2 racks of 40000 nodes are more than 50000 nodes"),
        ("containers_per_node", "0", "containers_per_node: is 0: nothing could run"),
        ("containers_per_node", "2000", "containers_per_node: is 2000, more than 1000"),
        ("container_memory_mb", "0", "container_memory_mb: is 0: nothing runs without memory"),
        ("nic_bits_per_s", "0", "nic_bits_per_s: is 0: nothing would ever arrive"),
        ("uplink_bits_per_s", "0", "uplink_bits_per_s: is 0: nothing would ever arrive"),
        ("uplink_bits_per_s", "1000", "uplink_bits_per_s: is 1000, below 1000000 bit/s: is the unit right"),
        ("users", "0", "users: is 0: jobs belong to somebody"),
        ("core", "{ kind = \"switches\", switches = 0 }", "core.switches: is 0: racks would not be joined"),
        ("core", "{ kind = \"fat_tree\", ports = 5 }", "core.ports: is 5, not an even number of at least 2"),
        ("core", &optical("ports = 3"), "core.ports: is 3, and there are 2 racks: a rack has one"),
        ("core", &optical("ports = 0"), "core.ports: is 0: an optical switch without ports is none"),
        ("core", &optical("interval_ms = 0"), "core.interval_ms: is 0, not from 1 to 3600000"),
        (
            "core",
            &optical("interval_ms = 10"),
            "core.pause_ms: is 10: with a choice every 10 ms no time is left to send",
        ),
        (
            "core",
            &optical("elephant_bytes = 0"),
            "core.elephant_bytes: is 0: leave it out for what a circuit carries in nine pauses",
        ),
        ("core", &optical("patience_ms = 4000000"), "core.patience_ms: is 4000000, more than 3600000"),
        (
            "core",
            "{ kind = \"optical\", optical_bits_per_s = 0 }",
            "core.optical_bits_per_s: is 0: nothing would ever arrive",
        ),
        (
            "core",
            "{ kind = \"fat_tree\", ports = 4 }",
            "uplink_bits_per_s: is 500000000, and nic_bits_per_s 1000000000: all links of a fat-tree are alike",
        ),
    ] {
        assert_eq!(change(field, value), [message], "{field} = {value}");
    }
}

#[test]
fn the_cluster_of_chapter_4_has_circuits_from_nine_pauses_on_and_a_port_for_each_rack() {
    let cluster = Shipped::find("jobpacker").unwrap().shape().unwrap().to_cluster().unwrap();
    let network = cluster.snapshot.topology.network.clone().unwrap();
    assert_eq!(hintd_model::network::check(&network), []);
    let section = network.optical().unwrap();
    assert_eq!((section.interval_ms, section.pause_ms, section.patience().as_secs_f64()), (1_000, 10, 30.0));
    let switch = network.vertex(&section.switch).unwrap();
    assert_eq!(hintd_model::network::optical::ports(&network, switch).0.len(), 20);
    assert_eq!(summary(&network).tiers[0].oversubscription, Some(10.0));
}

#[test]
fn fewer_ports_than_racks_is_told_and_the_first_racks_have_them() {
    let core = "core = { kind = \"optical\", optical_bits_per_s = 100_000_000_000, ports = 1 }\n";
    let cluster = shape(&format!("{SMALL}{core}")).to_cluster().unwrap();
    let network = cluster.snapshot.topology.network.clone().unwrap();
    assert!(network.link("edge-01--optical").is_some() && network.link("edge-02--optical").is_none());
    let told: Vec<String> = hintd_model::network::check(&network).iter().map(ToString::to_string).collect();
    assert_eq!(told, ["no port at optical switch \"optical\" for \"edge-02\": what they send and get goes by packets"]);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let shape = ClusterShape { racks: 0, nic_bits_per_s: BitsPerSec::ZERO, ..shape(SMALL) };
    assert_eq!(said(&shape).len(), 2);
}

#[test]
fn unknown_fields_are_refused() {
    let wrong = Syntax::Toml.read::<ClusterShape>(&format!("{SMALL}colour = 1\n")).unwrap_err().to_string();
    assert!(wrong.starts_with("line 7, column 1: unknown field `colour`"), "{wrong}");
}

#[test]
fn a_misspelt_cluster_gets_the_name_that_was_meant() {
    assert_eq!(nearest("NAS40"), Some("nas-40"));
    assert_eq!(nearest("jobpaker"), Some("jobpacker"));
    assert_eq!(nearest("hadoop"), None);
}

fn document() -> ClusterDocument {
    let cluster = shape(SMALL).to_cluster().unwrap();
    ClusterDocument::from_snapshot(&cluster.snapshot, &Overlay::default())
}

#[test]
fn a_whole_document_has_as_many_containers_as_its_free_room_holds() {
    let mut document = document();
    document.nodes[1].used.memory_mb = 1500;
    document.nodes[2].state = hintd_model::cluster::NodeState::Unhealthy;
    let cluster = of_document(&document, Resource::new(1024, 1), Joined::ByNetwork).unwrap();
    assert_eq!(cluster.containers, [3, 1, 0, 3]);
    let cluster = of_document(&document, Resource::new(1 << 30, 1), Joined::ByNetwork).unwrap();
    assert_eq!(cluster.containers, [0; 4], "jobs will never fit, which is the run's to report");
}

#[test]
fn a_document_without_a_network_or_with_a_node_apart_is_refused() {
    let refused = |document: &ClusterDocument| {
        let problems = of_document(document, Resource::new(1024, 1), Joined::ByNetwork).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut without = document();
    without.network = None;
    assert_eq!(refused(&without), ["network: is left out: the simulator needs the links that jobs share"]);
    let racks = of_document(&without, Resource::new(1024, 1), Joined::Somehow).unwrap();
    assert_eq!(racks.containers.len(), 4, "which a planner may do without");

    let mut stranger = document();
    stranger.nodes[3].host = "stranger".to_owned();
    let message = "nodes[3].host: \"stranger\" can't be reached: the network gives it no usable link";
    assert_eq!(refused(&stranger), [message]);

    let mut apart = document();
    let network = apart.network.as_mut().unwrap();
    network.links.iter_mut().filter(|link| link.id.as_str().starts_with("edge-02")).for_each(|link| link.up = false);
    let message =
        |at: usize, host: &str| format!("nodes[{at}].host: \"{host}\" can't be reached from \"rack01-node01\"");
    assert_eq!(refused(&apart), [message(2, "rack02-node01"), message(3, "rack02-node02")]);

    let mut none = document();
    none.nodes.clear();
    assert_eq!(refused(&none), ["nodes: there are none: a cluster has at least one rack with a node"]);
}

const CLASS: &str = "[[classes]]\nname = \"up\"\nracks = [2]\nnodes_per_rack = 1\ncontainers_per_node = 7\n\
    nic_bits_per_s = 2_000_000_000\nspeed = 1.5\nlarge = { input_bytes = 10, shuffling_input_bytes = 20, speed = 0.5 }\n";

#[test]
fn a_class_has_its_own_nodes_containers_links_and_speed() {
    let shape = shape(&format!("{SMALL}{CLASS}"));
    assert_eq!((shape.nodes(), shape.containers()), (3, 13));
    let cluster = shape.to_cluster().unwrap();
    assert_eq!(cluster.containers, [3, 3, 7]);
    let speed = shape.classes[0].class_speed();
    assert_eq!(cluster.speeds, [None, None, Some(speed)]);
    let statics = &cluster.snapshot.statics;
    let classes: Vec<&str> = statics.class.iter().map(|class| &*statics.class_names[class.at()]).collect();
    assert_eq!(classes, ["", "", "up"]);
    let network = cluster.snapshot.topology.network.clone().unwrap();
    assert_eq!(hintd_model::network::check(&network), []);
    let capacity = |link| network.link_at(network.link(link).unwrap()).capacity.0;
    assert_eq!(capacity("rack01-node02--edge-01"), 1_000_000_000);
    assert_eq!(capacity("rack02-node01--edge-02"), 2_000_000_000);
    assert_eq!(capacity("edge-02--core-1"), 500_000_000);
    assert_eq!(Syntax::Toml.read(&Syntax::Toml.write(&shape).unwrap()), Ok(shape), "it reads back");
}

#[test]
fn a_class_like_the_others_changes_nothing_but_names() {
    let plain = shape(SMALL).to_cluster().unwrap();
    let alike = shape(&format!("{SMALL}[[classes]]\nname = \"same\"\nracks = [1, 2]\n")).to_cluster().unwrap();
    let document = |cluster: &crate::yarn::SimCluster| {
        let mut document = ClusterDocument::from_snapshot(&cluster.snapshot, &Overlay::default());
        document.nodes.iter_mut().for_each(|node| node.class.clear());
        Syntax::Toml.write(&document).unwrap()
    };
    assert_eq!(document(&alike), document(&plain), "hosts, racks, links and their order");
    assert_eq!((plain.speeds.len(), alike.containers), (0, plain.containers));
}

#[test]
fn a_class_that_can_not_be_meant_is_refused_by_field_and_value() {
    for (change, to, message) in [
        ("name = \"up\"", "name = \"\"", "classes[0].name: is \"\": a class without a name is none"),
        ("racks = [2]", "racks = []", "classes[0].racks: is []: class \"up\" has no nodes"),
        ("racks = [2]", "racks = [3]", "classes[0].racks: has 3: racks are numbered from 1 to 2"),
        ("racks = [2]", "racks = [0]", "classes[0].racks: has 0: racks are numbered from 1 to 2"),
        ("racks = [2]", "racks = [2, 2]", "classes[0].racks: has 2, which is in \"up\": a node has one class"),
        ("rack = 1", "rack = 0", "classes[0].nodes_per_rack: is 0: a class without nodes is none"),
        ("node = 7", "node = 0", "classes[0].containers_per_node: is 0: nothing could run"),
        ("2_000_000_000", "0", "classes[0].nic_bits_per_s: is 0: nothing would ever arrive"),
        ("1.5", "0.0", "classes[0].speed: is 0, not from 0.001 to 1000: tasks take their time divided by it"),
        ("1.5", "-2.0", "classes[0].speed: is -2, not from 0.001 to 1000: tasks take their time divided by it"),
        ("1.5", "nan", "classes[0].speed: is NaN, not from 0.001 to 1000: tasks take their time divided by it"),
        ("0.5", "nan", "classes[0].large.speed: is NaN, not from 0.001 to 1000: tasks take their time divided by it"),
    ] {
        let text = CLASS.replacen(change, to, 1);
        assert_ne!(text, CLASS, "{change}");
        assert_eq!(said(&shape(&format!("{SMALL}{text}"))), [message], "{to}");
    }
    let second = "[[classes]]\nname = \"out\"\nracks = [1, 2]\n";
    let message = "classes[1].racks: has 2, which is in \"up\": a node has one class";
    assert_eq!(said(&shape(&format!("{SMALL}{CLASS}{second}"))), [message]);
    let message = "classes[1].name: is \"up\", as of a class before";
    let second = second.replace("out", "up").replace(", 2", "");
    assert_eq!(said(&shape(&format!("{SMALL}{CLASS}{second}"))), [message]);
    let pods = "core = { kind = \"pods\", racks_per_pod = 1, pod_uplink_bits_per_s = 700_000_000 }\n";
    let message = "classes: need racks joined by core.kind non_blocking or switches: all nodes of others are alike";
    assert_eq!(said(&shape(&format!("{SMALL}{pods}{CLASS}"))), [message]);
}
