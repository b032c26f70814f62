//! The format `hintd.cluster/1`: a whole cluster as one document.

use super::super::dataset::{NamedBlock, NamedDataset, normal};
use super::super::model::{Change, Heartbeat, Measured, Model, ModelError, NamedContainer};
use super::super::node::{NodeState, Registration};
use super::super::resource::{Overlay, ResourceKinds};
use super::super::snapshot::Snapshot;
use super::amount::Amount;
use super::rows::{BlockEntry, ContainerEntry, DatasetEntry, LatencyEntry, LinkLoadEntry, NodeEntry, RulesEntry};
use super::text::{DocumentProblem, Problems};
use crate::network::latency::{RackRow, believed};
use crate::network::{Network, NetworkDocument, NetworkProblem, Severity};
use crate::units::{Bytes, Micros, NodeIdx, RackIdx, SchedulerKey, Timestamp};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What [`ClusterDocument::format`] must say.
pub const CLUSTER_FORMAT: &str = "hintd.cluster/1";

/// A cluster as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterDocument {
    /// [`CLUSTER_FORMAT`].
    pub format: String,
    /// Further resource kinds in their order; those that nodes name need not stand here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Sizes that YARN's scheduler allocates.
    #[serde(default)]
    pub rules: RulesEntry,
    /// Nodes.
    #[serde(default)]
    pub nodes: Vec<NodeEntry>,
    /// Containers that run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<ContainerEntry>,
    /// Paths with their blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<DatasetEntry>,
    /// Measured loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_loads: Vec<LinkLoadEntry>,
    /// Measured latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<LatencyEntry>,
    /// What racks count with, as `a` and `b`, where hosts were not measured themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rack_latency: Vec<LatencyEntry>,
    /// The network; left out: distances come from racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkDocument>,
}

impl ClusterDocument {
    /// The document that reads back as this snapshot with these leases.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot, leases: &Overlay) -> Self {
        let loads = snapshot.link_loads.iter().map(|(link, load)| LinkLoadEntry::of(link, load));
        Self {
            format: CLUSTER_FORMAT.to_owned(),
            kinds: snapshot.kinds.names().iter().skip(2).map(ToString::to_string).collect(),
            rules: RulesEntry::of(&snapshot.rules, &snapshot.kinds),
            nodes: nodes_of(snapshot, leases),
            containers: containers_of(snapshot),
            datasets: datasets_of(snapshot),
            link_loads: loads.collect(),
            latency: latency_of(snapshot),
            rack_latency: rack_latency_of(snapshot),
            network: snapshot.topology.network.as_ref().map(|network| network.to_document()),
        }
    }

    /// A model of this cluster in which everything was heard at `now`. Nodes have rows in the document's order.
    ///
    /// # Errors
    /// All problems at once.
    pub fn to_model(&self, now: Timestamp) -> Result<Model, Vec<DocumentProblem>> {
        let mut reader = Reader { problems: Problems::default(), model: Model::default(), now };
        reader.problems.format(&self.format, CLUSTER_FORMAT);
        reader.kinds_and_rules(self);
        reader.nodes(self);
        reader.containers(self);
        reader.network(self.network.as_ref());
        reader.datasets(&self.datasets);
        reader.measured(self);
        reader.problems.done()?;
        Ok(reader.model)
    }

    /// The document's snapshot with its leases.
    ///
    /// # Errors
    /// As [`Self::to_model`].
    pub fn to_snapshot(&self, now: Timestamp) -> Result<(Arc<Snapshot>, Overlay), Vec<DocumentProblem>> {
        let snapshot = self.to_model(now)?.publish(now);
        let leases = self.leases(&snapshot);
        Ok((snapshot, leases))
    }

    /// The document's leases on the nodes of `snapshot`; hosts and kinds that it does not know are left out.
    #[must_use]
    pub fn leases(&self, snapshot: &Snapshot) -> Overlay {
        let mut leases = Overlay::default();
        for entry in self.nodes.iter().filter(|entry| !entry.leased.is_zero()) {
            let row = entry.leased.named("leased", &mut Problems::default()).to_row(&snapshot.kinds);
            if let (Some(node), Ok(row)) = (snapshot.statics.find(&entry.host), row) {
                leases.set(node, row);
            }
        }
        leases
    }
}

fn nodes_of(snapshot: &Snapshot, leases: &Overlay) -> Vec<NodeEntry> {
    let statics = &snapshot.statics;
    let mut aliases: BTreeMap<NodeIdx, BTreeSet<&Arc<str>>> = BTreeMap::new();
    for (alias, node) in &statics.by_alias {
        aliases.entry(*node).or_default().insert(alias);
    }
    let entry = |node: NodeIdx| {
        let at = node.at();
        let total = Amount::of_row(&statics.total[at], &snapshot.kinds);
        let labels = statics.label_names.iter().enumerate().filter(|(bit, _)| statics.labels[at].0 >> bit & 1 == 1);
        NodeEntry {
            host: statics.host[at].to_string(),
            rack: statics.racks[statics.rack[at].at()].to_string(),
            memory_mb: total.memory_mb,
            vcores: total.vcores,
            state: snapshot.state[at],
            class: statics.class_names[statics.class[at].at()].to_string(),
            labels: labels.map(|(_, name)| name.to_string()).collect(),
            aliases: aliases.get(&node).into_iter().flatten().map(ToString::to_string).collect(),
            disk_read_bytes_per_s: statics.disk_read[at].0,
            resources: total.resources,
            attributes: BTreeMap::clone(&statics.attributes[at]),
            used: Amount::of_row(&snapshot.occupied[at], &snapshot.kinds),
            leased: Amount::of_row(&leases.leased(node), &snapshot.kinds),
        }
    };
    statics.indexes().map(entry).collect()
}

fn containers_of(snapshot: &Snapshot) -> Vec<ContainerEntry> {
    let all = snapshot.applications.values().flat_map(|application| &application.containers);
    let mut entries: Vec<_> = all
        .map(|(&id, container)| ContainerEntry {
            id,
            host: snapshot.host(container.node).to_string(),
            priority: container.key.priority,
            allocation_request_id: container.key.allocation_request_id,
            size: Amount::of_row(&container.size, &snapshot.kinds),
        })
        .collect();
    entries.sort_unstable_by_key(|entry| entry.id);
    entries
}

fn datasets_of(snapshot: &Snapshot) -> Vec<DatasetEntry> {
    let datasets: BTreeMap<_, _> = snapshot.datasets.iter().collect();
    let entry = |(path, dataset): (&Arc<str>, &Arc<super::super::dataset::Dataset>)| DatasetEntry {
        path: path.to_string(),
        blocks: dataset
            .blocks
            .iter()
            .map(|block| BlockEntry {
                id: block.id,
                bytes: block.bytes.0,
                hosts: block.replicas.iter().map(|&node| snapshot.host(node).to_string()).collect(),
            })
            .collect(),
    };
    datasets.into_iter().map(entry).collect()
}

/// Applies a document to a model, and goes on after a problem to find the others.
struct Reader {
    problems: Problems,
    model: Model,
    now: Timestamp,
}

/// The longest path's bytes that are believed.
const DATASET_BYTES_MAX: u64 = 1 << 56;

impl Reader {
    fn apply(&mut self, field: impl std::fmt::Display, change: Change) {
        let applied = self.model.apply(change, self.now).map(|_| ());
        self.problems.keep(field, applied);
    }

    fn kinds_and_rules(&mut self, document: &ClusterDocument) {
        let mut kinds = ResourceKinds::default();
        for (at, kind) in document.kinds.iter().enumerate() {
            let field = format!("kinds[{at}]");
            self.problems.name(&field, kind);
            if kinds.position(kind).is_some() {
                self.problems.add(&field, format_args!("\"{kind}\" stands there already"));
            }
            let interned = kinds.intern(kind).map(|_| ());
            self.problems.keep(field, interned);
        }
        let rules = document.rules.rules(&mut kinds, &mut self.problems);
        self.model = Model::with_kinds(rules, kinds);
    }

    fn nodes(&mut self, document: &ClusterDocument) {
        let mut hosts = BTreeSet::new();
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for (at, entry) in document.nodes.iter().enumerate() {
            let field = format!("nodes[{at}]");
            self.problems.name(format_args!("{field}.host"), &entry.host);
            if !hosts.insert(&entry.host) {
                self.problems.add(format_args!("{field}.host"), format_args!("\"{}\" is there already", entry.host));
                continue;
            }
            if !entry.rack.starts_with('/') {
                let message = format!("\"{}\" is no path, as in \"/rack1\"", entry.rack);
                self.problems.add(format_args!("{field}.rack"), message);
            }
            for alias in &entry.aliases {
                self.problems.name(format_args!("{field}.aliases"), alias);
                if let Some(other) = names.insert(alias, &entry.host) {
                    let message = format!("\"{alias}\" is an alias of \"{other}\" as well");
                    self.problems.add(format_args!("{field}.aliases"), message);
                }
            }
            _ = entry.leased.named(&format!("{field}.leased"), &mut self.problems);
            self.node(&field, entry);
        }
    }

    fn node(&mut self, field: &str, entry: &NodeEntry) {
        if entry.state == NodeState::Unregistered {
            self.model.intern_exactly(&entry.host.as_str().into());
            return;
        }
        let names = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        let registration = Registration {
            host: entry.host.as_str().into(),
            rack: entry.rack.as_str().into(),
            total: entry.total().size(field, &mut self.problems),
            labels: names(&entry.labels),
            attributes: entry.attributes.clone(),
            class: entry.class.as_str().into(),
            aliases: names(&entry.aliases),
            disk_read: Bytes(entry.disk_read_bytes_per_s),
            state: entry.state,
        };
        self.apply(field, Change::Register(registration));
    }

    /// Used and containers, as one heartbeat of each node that has any.
    fn containers(&mut self, document: &ClusterDocument) {
        let states: BTreeMap<&str, NodeState> =
            document.nodes.iter().map(|entry| (entry.host.as_str(), entry.state)).collect();
        let mut by_host: BTreeMap<&str, Vec<NamedContainer>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (at, entry) in document.containers.iter().enumerate() {
            let field = format!("containers[{at}]");
            if !seen.insert(entry.id) {
                self.problems.add(format_args!("{field}.id"), format_args!("{} is there already", entry.id));
            }
            match states.get(entry.host.as_str()) {
                None => self.unknown_host(&format!("{field}.host"), &entry.host),
                Some(NodeState::Unregistered | NodeState::Decommissioned | NodeState::Lost | NodeState::Shutdown) => {
                    let message = format!("nothing can run on \"{}\", which is gone", entry.host);
                    self.problems.add(format_args!("{field}.host"), message);
                }
                Some(_) => {}
            }
            let size = entry.size.size(&format!("{field}.size"), &mut self.problems);
            let (priority, allocation_request_id) = (entry.priority, entry.allocation_request_id);
            let key = SchedulerKey { priority, allocation_request_id };
            by_host.entry(&entry.host).or_default().push(NamedContainer { id: entry.id, size, key });
        }
        for (at, entry) in document.nodes.iter().enumerate() {
            let field = format!("nodes[{at}].used");
            let used = entry.used.named(&field, &mut self.problems);
            let containers = by_host.remove(entry.host.as_str()).unwrap_or_default();
            if entry.state == NodeState::Unregistered || entry.state.gone() {
                if !entry.used.is_zero() {
                    self.problems.add(field, format_args!("a node that is {} uses nothing", entry.state.as_str()));
                }
                continue;
            }
            let host = entry.host.as_str().into();
            let (used_is_running, containers) = (false, Some(containers));
            let heartbeat = Heartbeat { host, used, used_is_running, containers, state: entry.state };
            if self.problems.0.is_empty() {
                self.apply(field, Change::Heartbeat(heartbeat)); // after a problem, a node may be missing
            }
        }
    }

    fn network(&mut self, document: Option<&NetworkDocument>) {
        let Some(document) = document else { return };
        match Network::from_document(document) {
            Ok(network) => self.apply("network", Change::Network(Some(Arc::new(network)))),
            Err(problems) => {
                let errors = problems.iter().filter(|problem| NetworkProblem::severity(problem) == Severity::Error);
                errors.for_each(|problem| self.problems.add("network", problem));
            }
        }
    }

    fn datasets(&mut self, datasets: &[DatasetEntry]) {
        let mut paths = BTreeSet::new();
        for (at, entry) in datasets.iter().enumerate() {
            let field = format!("datasets[{at}]");
            if !entry.path.starts_with('/') && !entry.path.contains("://") {
                self.problems.add(format_args!("{field}.path"), format_args!("\"{}\" is not absolute", entry.path));
            }
            if !paths.insert(normal(&entry.path)) {
                self.problems.add(format_args!("{field}.path"), format_args!("\"{}\" is there already", entry.path));
            }
            let (mut ids, mut bytes) = (BTreeSet::new(), 0_u64);
            for (at, block) in entry.blocks.iter().enumerate() {
                if !ids.insert(block.id) {
                    let message = format!("block {} is there already", block.id);
                    self.problems.add(format_args!("{field}.blocks[{at}].id"), message);
                }
                bytes = bytes.saturating_add(block.bytes);
                for host in block.hosts.iter().filter(|host| self.model.statics().find(host).is_none()) {
                    let field = format!("{field}.blocks[{at}].hosts");
                    self.problems.add(field, format_args!("\"{host}\" is no host or alias of `nodes`"));
                }
            }
            if bytes > DATASET_BYTES_MAX {
                self.problems.add(&field, format_args!("has more than {DATASET_BYTES_MAX} bytes"));
            }
            let blocks = entry.blocks.iter().map(|block| NamedBlock {
                id: block.id,
                bytes: Bytes(block.bytes),
                hosts: block.hosts.iter().map(|host| host.as_str().into()).collect(),
            });
            let dataset = NamedDataset { path: normal(&entry.path).into(), blocks: blocks.collect() };
            self.apply(field, Change::Dataset(Arc::new(dataset)));
        }
    }

    fn measured(&mut self, document: &ClusterDocument) {
        for (at, entry) in document.link_loads.iter().enumerate() {
            let change = Change::LinkLoad(entry.link.as_str().into(), entry.load());
            self.apply(format_args!("link_loads[{at}].link"), change);
        }
        for (at, entry) in document.latency.iter().enumerate() {
            let (from, to) = (entry.a.as_str().into(), entry.b.as_str().into());
            let rtt = match believed(entry.rtt_us as f64) {
                Ok(rtt) => rtt,
                Err(error) => {
                    self.problems.add(format_args!("latency[{at}].rtt_us"), error);
                    continue;
                }
            };
            let measured = Measured { from, to, path: 0, rtts: smallvec![rtt], at: self.now };
            match self.model.apply(Change::Latency(measured), self.now) {
                Err(ModelError::UnknownNode(host)) => self.unknown_host(&format!("latency[{at}]"), &host),
                applied => _ = self.problems.keep(format_args!("latency[{at}]"), applied),
            }
        }
        // After the hosts, which would say it otherwise.
        for (at, entry) in document.rack_latency.iter().enumerate() {
            let change = Change::RackLatency(entry.a.as_str().into(), entry.b.as_str().into(), Micros(entry.rtt_us));
            self.apply(format_args!("rack_latency[{at}]"), change);
        }
    }

    fn unknown_host(&mut self, field: &str, host: &str) {
        self.problems.add(field, format_args!("\"{host}\" is no host of `nodes`"));
    }
}

/// Pairs of hosts as they count, the lower row first.
fn latency_of(snapshot: &Snapshot) -> Vec<LatencyEntry> {
    let mut pairs: BTreeMap<(NodeIdx, NodeIdx), Micros> = BTreeMap::new();
    for row in snapshot.latency.host_rows() {
        if snapshot.taken_at.since(row.at) <= snapshot.latency.max_age() {
            let rtt = pairs.entry((row.from.min(row.to), row.from.max(row.to))).or_default();
            *rtt = row.rtt.max(*rtt);
        }
    }
    let host = |node: NodeIdx| snapshot.host(node).to_string();
    pairs.into_iter().map(|((a, b), rtt)| LatencyEntry { a: host(a), b: host(b), rtt_us: rtt.0 }).collect()
}

fn rack_latency_of(snapshot: &Snapshot) -> Vec<LatencyEntry> {
    let rack = |rack: RackIdx| snapshot.statics.racks[rack.at()].to_string();
    let counts = |row: &RackRow| snapshot.taken_at.since(row.at) <= snapshot.latency.max_age();
    let rows = snapshot.latency.rack_rows().filter(counts);
    rows.map(|row| LatencyEntry { a: rack(row.a), b: rack(row.b), rtt_us: row.rtt.0 }).collect()
}
