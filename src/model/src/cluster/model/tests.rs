//! The model against a naive one, and the rules that deserve a sentence each.

use super::super::dataset::{NamedBlock, NamedDataset};
use super::super::node::{CLASSES_MAX, LABELS_MAX};
use super::super::snapshot::{Container, Source};
use super::*;
use crate::network::latency::Basis;
use crate::units::{AttemptId, Bytes, ContainerId, RackPath, SchedulerKey};
use proptest::prelude::*;
use std::collections::BTreeSet;

const KEY: SchedulerKey = SchedulerKey { priority: 1, allocation_request_id: -1 };
pub(in crate::cluster) const T: Timestamp = Timestamp(1_000_000);

pub(in crate::cluster) fn registration(host: &str, rack: &str) -> Registration {
    Registration {
        host: host.into(),
        rack: rack.into(),
        total: NamedResource { memory_mb: 8192, vcores: 8, named: vec![] },
        labels: vec![],
        attributes: BTreeMap::new(),
        class: "".into(),
        aliases: vec![],
        disk_read: Bytes::ZERO,
        state: NodeState::Running,
    }
}

fn memory(memory_mb: u64) -> NamedResource {
    NamedResource { memory_mb, vcores: 1, named: vec![] }
}

fn container(application: u32, sequence: u64, memory_mb: u64) -> NamedContainer {
    let application = crate::units::ApplicationId { cluster_timestamp: 1, sequence: application };
    let id = ContainerId { attempt: AttemptId { application, attempt: 1 }, id: sequence };
    NamedContainer { id, size: memory(memory_mb), key: KEY }
}

fn heartbeat(host: &str, used: u64, containers: Vec<NamedContainer>) -> Heartbeat {
    Heartbeat {
        host: host.into(),
        used: memory(used),
        used_is_running: false,
        containers: Some(containers),
        state: NodeState::Running,
    }
}

fn dataset(path: &str, hosts: &[&str]) -> Arc<NamedDataset> {
    let hosts = hosts.iter().map(|&host| host.into()).collect();
    Arc::new(NamedDataset { path: path.into(), blocks: vec![NamedBlock { id: 1, bytes: Bytes(128), hosts }] })
}

fn cluster(hosts: &[&str]) -> Model {
    let mut model = Model::new(SizeRules::default());
    for host in hosts {
        model.apply(Change::Register(registration(host, "/r1")), T).unwrap();
    }
    model
}

#[test]
fn a_heartbeat_alone_copies_three_columns_and_shares_the_rest() {
    let mut model = cluster(&["a", "b"]);
    model.apply(Change::Dataset(dataset("/in", &["a"])), T).unwrap();
    let before = model.publish(T);
    assert!(!model.dirty());
    model.apply(Change::Heartbeat(heartbeat("a", 1024, vec![])), T).unwrap();
    assert!(model.dirty());
    let after = model.publish(T);
    assert!(Arc::ptr_eq(&before.statics, &after.statics));
    assert!(Arc::ptr_eq(&before.topology, &after.topology));
    assert!(Arc::ptr_eq(&before.datasets, &after.datasets));
    assert!(before.applications.same(&after.applications), "no container came or went");
    assert!(Arc::ptr_eq(&before.kinds, &after.kinds) && Arc::ptr_eq(&before.rules, &after.rules));
    assert!(Arc::ptr_eq(&before.link_loads, &after.link_loads));
    assert_eq!((before.occupied[0].memory_mb(), after.occupied[0].memory_mb()), (0, 1024));
    assert!(after.version.0 > before.version.0);
}

#[test]
fn the_same_registration_again_copies_no_names() {
    let mut model = cluster(&["a"]);
    let mut labelled = registration("a", "/r1");
    labelled.labels = vec!["gpu".into(), "gpu".into(), "".into()];
    labelled.aliases = vec!["a.dc".into(), "a".into()];
    labelled.class = "fast".into();
    model.apply(Change::Register(labelled.clone()), T).unwrap();
    let before = model.publish(T);
    labelled.labels = vec!["gpu".into()];
    let applied = model.apply(Change::Register(labelled), T);
    assert_eq!(applied, Ok(Applied::NodeUp { node: NodeIdx(0), was: NodeState::Running }));
    let after = model.publish(T);
    assert!(Arc::ptr_eq(&before.statics, &after.statics));
    assert!(Arc::ptr_eq(&before.topology, &after.topology));
    assert_eq!(after.statics.labels[0], after.statics.label_bit("gpu").unwrap());
}

#[test]
fn a_registration_replaces_what_the_node_said_before() {
    let mut model = cluster(&["a", "b"]);
    let mut first = registration("a", "/r1");
    (first.labels, first.aliases) = (vec!["gpu".into()], vec!["dn-a".into(), "sdn-a".into()]);
    model.apply(Change::Register(first), T).unwrap();
    let mut second = registration("a", "/r2");
    (second.labels, second.aliases) = (vec!["ssd".into()], vec!["sdn-a".into()]);
    second.total = NamedResource { memory_mb: 1, vcores: 2, named: vec![("fpga".into(), 3)] };
    model.apply(Change::Register(second), T).unwrap();
    let snapshot = model.publish(T);
    let statics = &snapshot.statics;
    assert_eq!((statics.find("dn-a"), statics.find("sdn-a")), (None, Some(NodeIdx(0))));
    assert_eq!(statics.racks[snapshot.rack(NodeIdx(0)).at()].as_str(), "/r2");
    assert_eq!(statics.labels[0], statics.label_bit("ssd").unwrap());
    assert_eq!(statics.total[0].0[snapshot.kinds.position("fpga").unwrap()], 3);
    let r1 = statics.by_rack["/r1"];
    assert_eq!(statics.members[r1.at()], [NodeIdx(1)]);
}

#[test]
fn a_tombstoned_node_keeps_its_row_and_returns_its_containers() {
    let mut model = cluster(&["a", "b"]);
    model.apply(Change::Heartbeat(heartbeat("a", 0, vec![container(1, 2, 512), container(1, 1, 512)])), T).unwrap();
    let applied = model.apply(Change::Gone("a".into()), T).unwrap();
    let Applied::NodeGone { node: NodeIdx(0), containers } = applied else { panic!("{applied:?}") };
    assert_eq!(containers.iter().map(|gone| gone.id.id).collect::<Vec<_>>(), [1, 2]);
    let snapshot = model.publish(T);
    assert_eq!(snapshot.state, [NodeState::Decommissioned, NodeState::Running]);
    assert!(snapshot.applications.is_empty() && snapshot.occupied[0].is_zero());
    assert_eq!(model.apply(Change::Gone("a".into()), T), Ok(Applied::Quiet), "told twice");
    let refused = model.apply(Change::Heartbeat(heartbeat("a", 1, vec![])), T);
    assert_eq!(refused, Err(ModelError::UnknownNode("a".into())));
    let again = model.apply(Change::Register(registration("a", "/r1")), T);
    assert_eq!(again, Ok(Applied::NodeUp { node: NodeIdx(0), was: NodeState::Decommissioned }));
    assert_eq!(model.apply(Change::Gone("x".into()), T), Err(ModelError::UnknownNode("x".into())));
}

#[test]
fn a_heartbeat_brings_a_lost_node_back() {
    let mut model = cluster(&["a"]);
    model.apply(Change::Heartbeat(heartbeat("a", 0, vec![container(1, 1, 512)])), T).unwrap();
    assert_eq!(model.set_state(NodeIdx(0), NodeState::Stale, T), [], "a stale node keeps what it runs");
    assert_eq!(model.set_state(NodeIdx(0), NodeState::Lost, T).len(), 1);
    assert_eq!(model.set_state(NodeIdx(0), NodeState::Lost, T), [], "once");
    let applied = model.apply(Change::Heartbeat(heartbeat("a", 0, vec![container(1, 1, 512)])), T).unwrap();
    let Applied::NodeReported { was, state, appeared, .. } = applied else { panic!("{applied:?}") };
    assert_eq!((was, state, appeared.len()), (NodeState::Lost, NodeState::Running, 1));
    assert_eq!(model.last_heard(NodeIdx(0)), Some(T));
}

#[test]
fn a_node_known_only_from_a_lease_must_register_first() {
    let mut model = Model::default();
    let node = model.intern_host(&"a".into());
    assert_eq!(model.intern_host(&"a".into()), node);
    assert!(model.dirty());
    assert_eq!(model.publish(T).state, [NodeState::Unregistered]);
    assert!(model.apply(Change::Heartbeat(heartbeat("a", 1, vec![])), T).is_err());
    assert!(model.apply(Change::Gone("a".into()), T).is_err());
    let up = model.apply(Change::Register(registration("a", "/r1")), T);
    assert_eq!(up, Ok(Applied::NodeUp { node, was: NodeState::Unregistered }));
}

#[test]
fn what_finds_no_place_changes_nothing() {
    let mut model = Model::default();
    let mut full = registration("a", "/r1");
    full.labels = (0..LABELS_MAX).map(|n| format!("l{n}").into()).collect();
    full.total.named = (2..KINDS_MAX).map(|n| (format!("k{n}").into(), 1)).collect();
    model.apply(Change::Register(full), T).unwrap();
    for n in 1..CLASSES_MAX {
        let class = format!("c{n}").into();
        model.apply(Change::Register(Registration { class, ..registration("b", "/r1") }), T).unwrap();
    }
    let before = model.publish(T);
    let mut label = registration("new", "/r9");
    label.labels = vec!["l0".into(), "one-more".into()];
    let class = Registration { class: "one-more".into(), ..registration("new", "/r9") };
    let mut kind = registration("new", "/r9");
    kind.total.named = vec![("one-more".into(), 1)];
    let mut ninth = heartbeat("a", 1, vec![container(1, 1, 1)]);
    ninth.containers.as_mut().unwrap()[0].size.named = vec![("one-more".into(), 1)];
    for change in [Change::Register(label), Change::Register(class), Change::Register(kind), Change::Heartbeat(ninth)] {
        let error = model.apply(change, T).unwrap_err();
        assert!(matches!(&error, ModelError::TooMany { name, .. } if name == "one-more"), "{error}");
    }
    assert!(!model.dirty());
    let after = model.publish(T);
    assert!(Arc::ptr_eq(&before.statics, &after.statics) && Arc::ptr_eq(&before.kinds, &after.kinds));
    assert_eq!(before.occupied, after.occupied);
}

#[test]
fn replicas_wait_for_the_node_that_claims_their_name() {
    let mut model = cluster(&["a"]);
    model.apply(Change::Dataset(dataset("/in", &["a", "b.hdfs", "c"])), T).unwrap();
    assert_eq!(model.unknown_names(), (vec!["b.hdfs".into(), "c".into()], 2));
    let before = model.publish(T);
    let mut b = registration("b", "/r1");
    b.aliases = vec!["b.hdfs".into()];
    model.apply(Change::Register(b), T).unwrap();
    let after = model.publish(T);
    assert_eq!(before.datasets["/in"].blocks[0].replicas[..], [NodeIdx(0)]);
    assert_eq!(after.datasets["/in"].blocks[0].replicas[..], [NodeIdx(0), NodeIdx(1)]);
    assert_eq!(model.unknown_names(), (vec!["c".into()], 1));
    model.apply(Change::Register(registration("b", "/r1")), T).unwrap();
    assert_eq!(model.publish(T).datasets["/in"].blocks[0].replicas[..], [NodeIdx(0)], "the alias is gone");
    model.apply(Change::DatasetRemoved("/in".into()), T).unwrap();
    assert_eq!(model.unknown_names(), (vec![], 0));
    assert!(model.publish(T).datasets.is_empty());
}

#[test]
fn a_container_that_two_nodes_claim_belongs_to_the_later_one() {
    let mut model = cluster(&["a", "b"]);
    for host in ["a", "b"] {
        model.apply(Change::Heartbeat(heartbeat(host, 0, vec![container(1, 1, 512)])), T).unwrap();
    }
    model.apply(Change::Heartbeat(heartbeat("a", 0, vec![])), T).unwrap();
    let snapshot = model.publish(T);
    let containers = snapshot.applications.values().flat_map(|app| app.containers.values().map(|known| known.node));
    assert_eq!(containers.collect::<Vec<_>>(), [NodeIdx(1)]);
    assert_eq!(snapshot.containers, [0, 1]);
}

#[test]
fn what_the_network_does_not_have_can_not_change() {
    let mut model = cluster(&["a", "b"]);
    let [one, three] = [1, 3].map(crate::units::BitsPerSec);
    let load = LinkLoad { mean_a_to_b: three, ..LinkLoad::steady(one, one) };
    for change in [
        Change::Link { link: "l".into(), up: Some(false), capacity: None },
        Change::LinkRemoved("l".into()),
        Change::Switch { name: "s".into(), up: false },
        Change::LinkLoad("l".into(), load),
    ] {
        assert!(matches!(model.apply(change, T), Err(ModelError::UnknownVertex { .. })));
    }
    assert_eq!(model.publish(T).heard.at(Source::LinkStats), None, "a refused fact is not news");
}

#[test]
fn round_trips_are_of_known_nodes_and_a_measurement_copies_one_column() {
    let mut model = cluster(&["a", "b"]);
    let measured = |from: &str, to: &str, rtt| {
        Change::Latency(Measured {
            from: from.into(),
            to: to.into(),
            path: 0,
            rtts: [rtt].into_iter().collect(),
            at: T,
        })
    };
    model.apply(measured("b", "a", 7), T).unwrap();
    let before = model.publish(T);
    let rtt = |snapshot: &Snapshot| {
        let end = |node| (node, snapshot.rack(node));
        let found = snapshot.latency.measured(end(NodeIdx(0)), end(NodeIdx(1)), snapshot.taken_at);
        found.map(|found| (found.rtt, found.basis))
    };
    assert_eq!(rtt(&before), Some((Micros(7), Basis::Hosts)));
    for (change, says) in [
        (measured("b", "x", 7), "node \"x\" is not registered"),
        (measured("b", "b", 7), "b to b: node 1 is measured to itself"),
        (Change::RackLatency("/r1".into(), "/r".into(), Micros(5)), "no node is in rack \"/r\""),
        (Change::RackLatency("/r1".into(), "/r1".into(), Micros(0)), "/r1 to /r1: a round trip of 0 µs is not above 0"),
    ] {
        assert_eq!(model.apply(change, T).unwrap_err().to_string(), says);
    }
    model.apply(measured("a", "b", 90), T).unwrap();
    assert_eq!(
        (rtt(&before), rtt(&model.publish(T))),
        (Some((Micros(7), Basis::Hosts)), Some((Micros(90), Basis::Hosts)))
    );
    let later = T.plus(Micros::from_secs(61));
    model.apply(Change::Heartbeat(heartbeat("a", 1024, vec![])), later).unwrap();
    let silent = model.publish(later);
    assert!(rtt(&silent).is_none() && silent.latency.is_empty());
}

/// Plain maps; everything that can be recomputed is.
#[derive(Debug, Default, Clone)]
struct Naive {
    order: Vec<String>,
    nodes: BTreeMap<String, NaiveNode>,
    aliases: BTreeMap<String, String>,
    datasets: BTreeMap<Arc<str>, Arc<NamedDataset>>,
}

#[derive(Debug, Clone)]
struct NaiveNode {
    state: NodeState,
    rack: String,
    total: u64,
    labels: BTreeSet<String>,
    used: u64,
    containers: BTreeMap<ContainerId, u64>,
}

impl Naive {
    fn find(&self, name: &str) -> Option<String> {
        if self.nodes.contains_key(name) { Some(name.into()) } else { self.aliases.get(name).cloned() }
    }

    /// Whether the fact is taken.
    fn apply(&mut self, change: &Change) -> bool {
        match change {
            Change::Register(registration) => self.register(registration),
            Change::Heartbeat(heartbeat) => return self.heartbeat(heartbeat),
            Change::Gone(host) => match self.find(host.as_str()) {
                Some(host) => self.leave(&host, NodeState::Decommissioned),
                None => return false,
            },
            Change::Dataset(dataset) => _ = self.datasets.insert(dataset.path.clone(), dataset.clone()),
            Change::DatasetRemoved(path) => _ = self.datasets.remove(path),
            _ => unreachable!("not generated"),
        }
        true
    }

    fn register(&mut self, said: &Registration) {
        let host = said.host.to_string();
        if !self.nodes.contains_key(&host) {
            self.order.push(host.clone());
        }
        self.aliases.retain(|_, owner| *owner != host);
        self.aliases.extend(said.aliases.iter().filter(|a| ***a != *host).map(|a| (a.to_string(), host.clone())));
        let old = self.nodes.get(&host).filter(|_| !said.state.gone());
        let (used, containers) = old.map(|old| (old.used, old.containers.clone())).unwrap_or_default();
        let labels = said.labels.iter().map(ToString::to_string).collect();
        let (rack, total) = (said.rack.to_string(), said.total.memory_mb);
        self.nodes.insert(host, NaiveNode { state: said.state, rack, total, labels, used, containers });
    }

    fn heartbeat(&mut self, said: &Heartbeat) -> bool {
        let Some(host) = self.find(said.host.as_str()) else { return false };
        let node = self.nodes.get_mut(&host).unwrap();
        if matches!(node.state, NodeState::Decommissioned | NodeState::Shutdown) {
            return false;
        }
        node.state = said.state;
        node.used = said.used.memory_mb;
        let named = said.containers.iter().flatten();
        node.containers = named.map(|container| (container.id, container.size.memory_mb)).collect();
        if said.state.gone() {
            self.leave(&host, said.state);
        }
        true
    }

    fn leave(&mut self, host: &str, state: NodeState) {
        let node = self.nodes.get_mut(host).unwrap();
        (node.state, node.used) = (state, 0);
        node.containers.clear();
    }

    fn assert_same(&self, snapshot: &Snapshot) {
        let statics = &snapshot.statics;
        assert_eq!(statics.host.iter().map(ToString::to_string).collect::<Vec<_>>(), self.order);
        let row = |host: &str| NodeIdx::new(self.order.iter().position(|known| known == host).unwrap());
        let mut containers = BTreeMap::new();
        for (at, host) in self.order.iter().enumerate() {
            let node = &self.nodes[host];
            assert_eq!(snapshot.state[at], node.state, "{host}");
            let known: u64 = node.containers.values().sum();
            assert_eq!(snapshot.occupied[at].memory_mb(), node.used.max(known), "{host}");
            assert_eq!(snapshot.containers[at] as usize, node.containers.len());
            assert_eq!(statics.racks[statics.rack[at].at()].as_str(), node.rack);
            assert_eq!(statics.total[at].memory_mb(), node.total);
            let bits = node.labels.iter().fold(0, |bits, label| bits | statics.label_bit(label).unwrap().0);
            assert_eq!(statics.labels[at].0, bits);
            containers.extend(node.containers.iter().map(|(&id, &memory)| (id, (row(host), memory))));
            let edge = snapshot.topology.edge[at].unwrap();
            assert_eq!(edge.0, statics.rack[at].0, "without a network, a node hangs on its rack");
        }
        let applications = snapshot.applications.values().flat_map(|application| &application.containers);
        let found: BTreeMap<_, _> =
            applications.map(|(&id, &Container { node, size, .. })| (id, (node, size.memory_mb()))).collect();
        assert_eq!(found, containers);
        assert!(snapshot.applications.values().all(|application| !application.containers.is_empty()));
        let members: Vec<BTreeSet<NodeIdx>> = statics.members.iter().map(|m| m.iter().copied().collect()).collect();
        for (at, rack) in statics.racks.iter().enumerate() {
            let there = self.order.iter().filter(|host| self.nodes[*host].rack == rack.as_str());
            assert_eq!(members[at], there.map(|host| row(host)).collect(), "{rack}");
            assert!(statics.members[at].is_sorted());
        }
        let aliases: BTreeMap<_, _> = statics.by_alias.iter().map(|(name, &node)| (name.to_string(), node)).collect();
        assert_eq!(aliases, self.aliases.iter().map(|(name, host)| (name.clone(), row(host))).collect());
        assert_eq!(snapshot.datasets.len(), self.datasets.len());
        for (path, named) in &self.datasets {
            for (block, said) in snapshot.datasets[path].blocks.iter().zip(&named.blocks) {
                let nodes: BTreeSet<_> = said.hosts.iter().filter_map(|name| self.find(name.as_str())).collect();
                let mut nodes: Vec<_> = nodes.iter().map(|host| row(host)).collect();
                nodes.sort();
                assert_eq!(block.replicas[..], nodes);
            }
        }
    }

    fn unknown(&self) -> BTreeSet<String> {
        let names = self.datasets.values().flat_map(|dataset| dataset.blocks.iter().flat_map(|block| &block.hosts));
        names.filter(|name| self.find(name.as_str()).is_none()).map(ToString::to_string).collect()
    }
}

fn any_state() -> impl Strategy<Value = NodeState> {
    prop_oneof![
        6 => Just(NodeState::Running),
        1 => Just(NodeState::Unhealthy),
        1 => Just(NodeState::Decommissioning),
        1 => Just(NodeState::Lost),
        1 => Just(NodeState::Decommissioned),
    ]
}

/// Hosts and aliases overlap on purpose: `n4` may be a host, an alias of another host, or both.
pub(in crate::cluster) fn any_change() -> impl Strategy<Value = Change> {
    let name = (0..6_u32).prop_map(|n| format!("n{n}"));
    let names = proptest::collection::vec((2..8_u32).prop_map(|n| format!("n{n}")), 0..3);
    let register = (name.clone(), 0..3_u32, 1..9_u64, names.clone(), any_state(), 0..4_u32).prop_map(
        |(host, rack, total, aliases, state, label)| {
            let mut said = registration(&host, &format!("/r{rack}"));
            said.total.memory_mb = total;
            said.aliases = aliases.iter().map(|name| name.as_str().into()).collect();
            said.state = state;
            said.labels = (0..label).map(|n| format!("l{n}").into()).collect();
            Change::Register(said)
        },
    );
    let containers = proptest::collection::vec((0..3_u32, 0..4_u64, 1..4_u64), 0..5);
    let report = (name.clone(), 0..9_u64, containers, any_state()).prop_map(|(host, used, named, state)| {
        let base = u64::from(host.as_bytes()[1]) * 100; // a container runs on one node
        let named = named.into_iter().map(|(app, n, memory)| container(app, base + n, memory)).collect();
        Change::Heartbeat(Heartbeat { state, ..heartbeat(&host, used, named) })
    });
    let put = (0..3_u32, names).prop_map(|(path, hosts)| {
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        Change::Dataset(dataset(&format!("/d{path}"), &hosts))
    });
    prop_oneof![
        4 => register,
        8 => report,
        1 => name.prop_map(|host| Change::Gone(host.as_str().into())),
        2 => put,
        1 => (0..3_u32).prop_map(|path| Change::DatasetRemoved(format!("/d{path}").into())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_model_is_what_plain_maps_say_and_old_snapshots_stay(
        steps in proptest::collection::vec((any_change(), any::<bool>()), 1..40),
    ) {
        let (mut model, mut naive) = (Model::default(), Naive::default());
        let mut taken: Vec<(Arc<Snapshot>, Naive)> = Vec::new();
        for (at, (change, publish)) in steps.iter().enumerate() {
            // A heartbeat through an alias would name containers under another node's number.
            if let Change::Heartbeat(said) = change {
                prop_assume!(naive.find(said.host.as_str()).is_none_or(|host| host == said.host.as_str()));
            }
            let accepted = naive.apply(change);
            let applied = model.apply(change.clone(), Timestamp(at as u64));
            prop_assert_eq!(applied.is_ok(), accepted, "{:?}: {:?}", change, applied);
            if *publish {
                taken.push((model.publish(Timestamp(at as u64)), naive.clone()));
            }
        }
        taken.push((model.publish(T), naive.clone()));
        for (snapshot, naive) in &taken {
            naive.assert_same(snapshot);
        }
        let (listed, count) = model.unknown_names();
        prop_assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), naive.unknown());
        prop_assert_eq!(count as usize, naive.unknown().len());
    }
}

#[test]
fn a_name_that_becomes_a_host_is_no_longer_an_alias_to_find_by() {
    let mut model = Model::default();
    let aliased = Registration { aliases: vec!["b".into()], ..registration("a", "/r1") };
    model.apply(Change::Register(aliased), T).unwrap();
    model.apply(Change::Dataset(dataset("/in", &["b"])), T).unwrap();
    assert_eq!(model.publish(T).datasets["/in"].blocks[0].replicas[..], [NodeIdx(0)]);
    model.apply(Change::Register(registration("b", "/r1")), T).unwrap();
    assert_eq!(model.publish(T).datasets["/in"].blocks[0].replicas[..], [NodeIdx(1)]);
    assert_eq!(model.statics().racks, [RackPath::from("/r1")]);
    let node = model.intern_host(&"leased".into());
    assert_eq!(model.publish(T).rack(node).at(), 1);
    assert_eq!(model.statics().racks[1], RackPath::from(DEFAULT_RACK));
}

fn unnamed(host: &str, used: u64) -> Change {
    Change::Heartbeat(Heartbeat { containers: None, ..heartbeat(host, used, vec![]) })
}

fn after(seconds: u64) -> Timestamp {
    T.plus(Micros::from_secs(seconds))
}

#[test]
fn a_report_without_names_keeps_the_containers_of_the_feed_that_names_them() {
    let mut model = cluster(&["a"]);
    let two = vec![container(1, 1, 512), container(1, 2, 512)];
    model.apply(Change::Heartbeat(heartbeat("a", 1024, two)), T).unwrap();
    let Applied::NodeReported { appeared, ended, named, .. } = model.apply(unnamed("a", 256), after(60)).unwrap()
    else {
        panic!("a report")
    };
    assert!(appeared.is_empty() && ended.is_empty() && named, "what is known by name still is");
    let kept = model.publish(T);
    assert_eq!((kept.containers[0], kept.occupied[0].memory_mb(), kept.applications.len()), (2, 1024, 1));
    // The feed that named them has gone silent: what it said last is no longer believed.
    let Applied::NodeReported { ended, named, .. } = model.apply(unnamed("a", 256), after(61)).unwrap() else {
        panic!("a report")
    };
    assert_eq!((ended.len(), named), (2, false));
    let alone = model.publish(T);
    assert_eq!((alone.containers[0], alone.occupied[0].memory_mb(), alone.applications.len()), (0, 256, 0));
}

#[test]
fn of_a_node_that_was_gone_nothing_is_kept_for_a_report_without_names() {
    let mut model = cluster(&["a"]);
    model.apply(Change::Heartbeat(heartbeat("a", 512, vec![container(1, 1, 512)])), T).unwrap();
    model.apply(Change::Gone("a".into()), T).unwrap();
    model.apply(Change::Register(registration("a", "/r1")), T).unwrap();
    let applied = model.apply(unnamed("a", 256), T).unwrap();
    assert!(matches!(applied, Applied::NodeReported { named: false, .. }), "{applied:?}");
    assert_eq!(model.containers_of(NodeIdx(0)), []);
}

#[test]
fn a_resized_container_neither_ended_nor_appeared() {
    let mut model = cluster(&["a"]);
    model.apply(Change::Heartbeat(heartbeat("a", 0, vec![container(1, 1, 512)])), T).unwrap();
    let applied = model.apply(Change::Heartbeat(heartbeat("a", 0, vec![container(1, 1, 2048)])), T).unwrap();
    let Applied::NodeReported { appeared, ended, .. } = applied else { panic!("{applied:?}") };
    assert!(appeared.is_empty() && ended.is_empty());
    let snapshot = model.publish(T);
    assert_eq!(snapshot.occupied[0].memory_mb(), 2048);
    let sizes = snapshot.applications.values().flat_map(|app| app.containers.values().map(|known| known.size));
    assert_eq!(sizes.map(|size| size.memory_mb()).collect::<Vec<_>>(), [2048]);
}

#[test]
fn a_gone_node_that_registers_as_gone_again_is_no_news() {
    let mut model = cluster(&["a"]);
    let shut = Registration { state: NodeState::Shutdown, ..registration("a", "/r1") };
    let first = model.apply(Change::Register(shut.clone()), T).unwrap();
    assert!(matches!(first, Applied::NodeGone { .. }), "{first:?}");
    assert_eq!(model.apply(Change::Register(shut), T), Ok(Applied::Quiet));
}
