//! The mutable model behind the snapshots: owned by one writer, changed by facts, published as columns.
//!
//! # Code map
//! - `fact`: [`Change`] (what feeds say), [`Applied`] (what it did), [`ModelError`] (why not).
//! - `nodes`: registrations, heartbeats, the columns; a refused fact changes nothing.
//! - `names`: datasets, whose replicas wait for the node that claims a name.
//! - `network_state`: links and switches; distances are counted anew when a snapshot needs them.
//!
//! # Invariants
//! - A row is given to a host name once, and is never another's.
//! - `occupied` = max(used as reported, sum of known containers), kind by kind.
//! - A snapshot never changes: what it shares is copied before it is written.

mod fact;
mod names;
mod network_state;
mod nodes;
#[cfg(test)]
pub(in crate::cluster) mod tests;

pub use fact::{
    Applied, Change, Heartbeat, Measured, ModelError, NamedContainer, NamedSlowPeer, NamedSlowPeers, ReportedContainer,
};
pub use nodes::DEFAULT_RACK;

use super::node::{NodeState, NodeStatics, Registration};
use super::resource::{KINDS_MAX, NamedResource, Resource, ResourceKinds, SizeRules};
use super::snapshot::{LastHeard, LinkLoad, Snapshot};
use crate::network::Network;
use crate::network::chains::Chains;
use crate::network::latency::slow_peers::{SlowPeer, SlowPeers};
use crate::network::latency::{LatencyError, LatencyModel, LatencySettings, RoundTrips, believed};
use crate::units::{AttemptId, HostName, LinkName, Micros, NodeIdx, RackIdx, RackPath, SnapshotVersion, Timestamp};
use names::NamedDatasets;
use network_state::NetworkState;
use nodes::{Nodes, Report};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Unknown names that [`Model::unknown_names`] lists.
const UNKNOWN_LISTED: usize = 32;

/// The model.
#[derive(Debug, Default)]
pub struct Model {
    version: u64,
    dirty: bool,
    kinds: Arc<ResourceKinds>,
    rules: Arc<SizeRules>,
    nodes: Nodes,
    wires: NetworkState,
    datasets: NamedDatasets,
    link_loads: Arc<BTreeMap<LinkName, LinkLoad>>,
    latency: LatencyModel,
    heard: LastHeard,
    silence_excused_until: Timestamp,
}

impl Model {
    /// An empty cluster under these size rules.
    #[must_use]
    pub fn new(rules: SizeRules) -> Self {
        Self { rules: Arc::new(rules), ..Self::default() }
    }

    /// An empty cluster whose kinds have these rows.
    #[must_use]
    pub fn with_kinds(rules: SizeRules, kinds: ResourceKinds) -> Self {
        Self { kinds: Arc::new(kinds), ..Self::new(rules) }
    }

    /// Takes a fact in; nothing is visible before [`Model::publish`]. Returns what the ledger and
    /// the monitor need to know.
    ///
    /// # Errors
    /// [`ModelError`]; then the fact changed nothing, and its source does not count as heard.
    pub fn apply(&mut self, change: Change, now: Timestamp) -> Result<Applied, ModelError> {
        let source = change.source();
        let applied = self.take(change, now)?;
        if let Some(source) = source {
            self.heard.note(source, now);
        }
        self.dirty = true;
        Ok(applied)
    }

    /// The row of a host in any spelling, made (UNREGISTERED) if it was never named.
    pub fn intern_host(&mut self, host: &HostName) -> NodeIdx {
        if let Some(node) = self.nodes.statics.find(host.as_str()) {
            return node;
        }
        self.dirty = true;
        self.nodes.intern(host, &DEFAULT_RACK.into())
    }

    /// The row of named amounts; kinds never named before become known.
    ///
    /// # Errors
    /// [`ModelError::TooMany`] for one kind too many.
    pub fn intern_resource(&mut self, named: &NamedResource) -> Result<Resource, ModelError> {
        Ok(self.rows([named])?[0])
    }

    /// The row of a host in YARN's spelling, even where another node has that name for an alias.
    pub(super) fn intern_exactly(&mut self, host: &HostName) -> NodeIdx {
        self.dirty = true;
        self.nodes.intern(host, &DEFAULT_RACK.into())
    }

    /// Sets a state that the monitor concluded (STALE, LOST). Returns the containers that were on a node that is
    /// gone now. When it happened does not matter here: what the model keeps is when the node was last heard.
    pub fn set_state(&mut self, node: NodeIdx, state: NodeState, _now: Timestamp) -> Vec<ReportedContainer> {
        self.dirty = true;
        self.nodes.leave(node, state)
    }

    /// When a node last registered or reported.
    #[must_use]
    pub fn last_heard(&self, node: NodeIdx) -> Option<Timestamp> {
        self.nodes.heard(node)
    }

    /// Until when a node's silence says nothing of it ([`Change::ExcuseSilence`]).
    #[must_use]
    pub const fn silence_excused_until(&self) -> Timestamp {
        self.silence_excused_until
    }

    /// How latency is read from now on.
    pub fn configure_latency(&mut self, settings: LatencySettings) {
        self.latency.configure(settings);
        self.dirty = true;
    }

    /// A new version of the snapshot; shares everything that did not change.
    pub fn publish(&mut self, now: Timestamp) -> Arc<Snapshot> {
        let renamed = std::mem::take(&mut self.nodes.renamed);
        self.datasets.renamed(&renamed, &self.nodes.statics);
        let moved = std::mem::take(&mut self.nodes.moved);
        let topology = self.wires.topology(&self.nodes.statics, moved);
        self.latency.forget_old(now);
        self.version += 1;
        self.dirty = false;
        Arc::new(Snapshot {
            version: SnapshotVersion(self.version),
            taken_at: now,
            kinds: Arc::clone(&self.kinds),
            rules: Arc::clone(&self.rules),
            statics: Arc::clone(&self.nodes.statics),
            state: self.nodes.state.clone(),
            occupied: self.nodes.occupied.clone(),
            containers: self.nodes.containers.clone(),
            topology,
            datasets: Arc::clone(&self.datasets.resolved),
            applications: self.nodes.applications.clone(),
            link_loads: Arc::clone(&self.link_loads),
            latency: self.latency.table().clone(),
            heard: self.heard,
        })
    }

    /// Whether anything changed since the last publish.
    #[must_use]
    pub const fn dirty(&self) -> bool {
        self.dirty
    }

    /// Names of replicas that no node claims: the first 32 by name, and how many there are. They are as of the
    /// last publish, except for datasets that came since.
    #[must_use]
    pub fn unknown_names(&self) -> (Vec<String>, u64) {
        self.datasets.unknown(UNKNOWN_LISTED)
    }

    /// Names, racks, totals as of now, ahead of the next publish.
    #[must_use]
    pub fn statics(&self) -> &NodeStatics {
        &self.nodes.statics
    }

    /// A node's state as of now; `None`: no such row.
    #[must_use]
    pub fn state(&self, node: NodeIdx) -> Option<NodeState> {
        self.nodes.state.get(node.at()).copied()
    }

    /// Occupied on a node as of now.
    #[must_use]
    pub fn occupied(&self, node: NodeIdx) -> Resource {
        self.nodes.occupied.get(node.at()).copied().unwrap_or_default()
    }

    /// Containers known on a node, oldest id first.
    #[must_use]
    pub fn containers_of(&self, node: NodeIdx) -> &[ReportedContainer] {
        self.nodes.containers_of(node)
    }

    /// Whether a node reports a container of that attempt.
    #[must_use]
    pub fn has_containers(&self, attempt: AttemptId) -> bool {
        self.nodes.applications.get(&attempt).is_some_and(|application| !application.containers.is_empty())
    }

    /// Names of the resource kinds.
    #[must_use]
    pub const fn kinds(&self) -> &Arc<ResourceKinds> {
        &self.kinds
    }

    /// Sizes YARN really allocates.
    #[must_use]
    pub const fn rules(&self) -> &Arc<SizeRules> {
        &self.rules
    }

    /// Middleboxes and chains as of now; `None`: none are declared.
    #[must_use]
    pub const fn chains(&self) -> Option<&Chains> {
        self.wires.chains.as_ref()
    }

    /// The network as of now.
    #[must_use]
    pub const fn network(&self) -> Option<&Arc<Network>> {
        self.wires.network.as_ref()
    }

    fn take(&mut self, change: Change, now: Timestamp) -> Result<Applied, ModelError> {
        match change {
            Change::Register(registration) => return self.register(&registration, now),
            Change::Heartbeat(heartbeat) => return self.heartbeat(&heartbeat, now),
            Change::Gone(host) => return self.gone(&host),
            Change::Network(network) => return Ok(self.replace_network(network)),
            Change::Link { link, up, capacity } => return self.wires.set_link(&link, up, capacity),
            Change::LinkRemoved(link) => {
                let applied = self.wires.remove_link(&link)?;
                if self.link_loads.contains_key(&link) {
                    Arc::make_mut(&mut self.link_loads).remove(&link);
                }
                return Ok(applied);
            }
            Change::Switch { name, up } => return self.wires.set_switch(&name, up),
            Change::Chains { document, in_use } => return self.wires.set_chains(&document, &in_use),
            Change::Middlebox { name, up, capacity } => return self.wires.set_box(&name, up, capacity),
            Change::Dataset(dataset) => self.datasets.put(dataset, &self.nodes.statics),
            Change::DatasetRemoved(path) => self.datasets.remove(&path),
            Change::LinkLoad(link, load) => self.set_load(link, load)?,
            Change::Latency(measured) => self.measured(&measured, now)?,
            Change::RackLatency(a, b, rtt) => self.set_rack_latency([&a, &b], rtt, now)?,
            Change::SlowPeers(told) => self.slow_peers(&told),
            Change::Rules(rules) => self.rules = Arc::new(rules),
            Change::Heard(_) => {}
            Change::ExcuseSilence(time) => self.silence_excused_until = self.silence_excused_until.max(now.plus(time)),
        }
        Ok(Applied::Quiet)
    }

    fn register(&mut self, registration: &Registration, now: Timestamp) -> Result<Applied, ModelError> {
        self.nodes.check_room(registration)?;
        let total = self.rows([&registration.total])?[0];
        Ok(self.nodes.register(registration, total, now))
    }

    fn heartbeat(&mut self, heartbeat: &Heartbeat, now: Timestamp) -> Result<Applied, ModelError> {
        let node = self.nodes.reporting(&heartbeat.host)?;
        let named = heartbeat.containers.as_deref().unwrap_or_default();
        let sizes = std::iter::once(&heartbeat.used).chain(named.iter().map(|container| &container.size));
        let rows = self.rows(sizes)?;
        let resolved = named.iter().zip(&rows[1..]);
        let containers =
            resolved.map(|(container, &size)| ReportedContainer { id: container.id, size, key: container.key });
        let report = Report {
            used: rows[0],
            containers: containers.collect(),
            named: heartbeat.containers.is_some(),
            state: heartbeat.state,
        };
        Ok(self.nodes.report(node, report, now))
    }

    fn gone(&mut self, host: &HostName) -> Result<Applied, ModelError> {
        let unknown = || ModelError::UnknownNode(host.to_string());
        let node = self.nodes.statics.find(host.as_str()).ok_or_else(unknown)?;
        match self.nodes.state[node.at()] {
            _ if self.nodes.heard(node).is_none() => Err(unknown()),
            NodeState::Unregistered => Err(unknown()),
            NodeState::Decommissioned => Ok(Applied::Quiet),
            _ => Ok(Applied::NodeGone { node, containers: self.nodes.leave(node, NodeState::Decommissioned) }),
        }
    }

    fn replace_network(&mut self, network: Option<Arc<Network>>) -> Applied {
        // Counters of the old network may mean other links of the same ids; new ones come within seconds. Also where the
        // network is the same: feeds drop what waits when one is told, and late drains have to make the same model.
        self.link_loads = Arc::default();
        self.wires.replace(network)
    }

    fn set_load(&mut self, link: LinkName, load: LinkLoad) -> Result<(), ModelError> {
        if !self.wires.has_link(&link) {
            return Err(ModelError::UnknownVertex { what: "link", name: link.to_string() });
        }
        if self.link_loads.get(&link) != Some(&load) {
            Arc::make_mut(&mut self.link_loads).insert(link, load);
        }
        Ok(())
    }

    fn measured(&mut self, measured: &Measured, now: Timestamp) -> Result<(), ModelError> {
        let find = |host: &HostName| {
            self.nodes.statics.find(host.as_str()).ok_or_else(|| ModelError::UnknownNode(host.to_string()))
        };
        let ends = (find(&measured.from)?, find(&measured.to)?);
        let racks = (self.nodes.statics.rack[ends.0.at()], self.nodes.statics.rack[ends.1.at()]);
        let round_trips = RoundTrips { path: measured.path, rtts: &measured.rtts, at: measured.at };
        let taken = self.latency.observe(ends, racks, round_trips, now);
        taken.map_err(|error| ModelError::Latency(format!("{} to {}: {error}", measured.from, measured.to)))
    }

    /// Registered hosts' alone: whoever asked has looked for the names, and a node that left meanwhile is slow no more.
    fn slow_peers(&mut self, told: &NamedSlowPeers) {
        let find = |host: &HostName| self.nodes.statics.find(host.as_str());
        let row = |report: &NamedSlowPeer| {
            let (slow, reporter) = (find(&report.slow)?, find(&report.reporter)?);
            (slow != reporter).then_some(SlowPeer { slow, reporter, packet: report.packet, since: report.since })
        };
        let rows = told.reports.iter().filter_map(row).collect();
        self.latency.set_slow_peers(SlowPeers::new(told.state, (told.told_at, told.max_age), rows));
    }

    fn set_rack_latency(&mut self, [a, b]: [&RackPath; 2], rtt: Micros, now: Timestamp) -> Result<(), ModelError> {
        let statics = &self.nodes.statics;
        let find = |rack: &RackPath| {
            let at = statics.racks.iter().position(|known| known == rack);
            at.map(RackIdx::new).ok_or_else(|| ModelError::UnknownRack(rack.to_string()))
        };
        let racks = (find(a)?, find(b)?);
        let wrong = |error: LatencyError| ModelError::Latency(format!("{a} to {b}: {error}"));
        self.latency.set_racks(racks, believed(rtt.0 as f64).map_err(wrong)?, now);
        Ok(())
    }

    /// Rows of named amounts; kinds become known only if all of them find a place.
    fn rows<'a>(&mut self, named: impl IntoIterator<Item = &'a NamedResource>) -> Result<Vec<Resource>, ModelError> {
        let mut grown: Option<ResourceKinds> = None;
        let mut rows = Vec::new();
        for amount in named {
            let row = match amount.to_row(grown.as_ref().unwrap_or(&self.kinds)) {
                Ok(row) => row,
                Err(_) => {
                    let kinds = grown.get_or_insert_with(|| ResourceKinds::clone(&self.kinds));
                    let too_many = |error: super::resource::TooManyKinds| ModelError::TooMany {
                        what: "resource kind",
                        name: error.name,
                        limit: KINDS_MAX,
                    };
                    amount.intern(kinds).map_err(too_many)?
                }
            };
            rows.push(row);
        }
        if let Some(kinds) = grown {
            self.kinds = Arc::new(kinds);
        }
        Ok(rows)
    }
}
