//! What all decisions of one generation read of it.

use super::columns::{Before, Columns, NodeRows};
use super::memory_size;
use super::tally::Tally;
use crate::generation::{Release, Releases};
use hintd_model::cluster::resource::{ResourceKinds, SizeRules};
use hintd_model::cluster::{LastHeard, LinkLoad, NodeStatics, Overlay, Snapshot, Topology};
use hintd_model::network::chains::Chains;
use hintd_model::network::latency::LatencyTable;
use hintd_model::network::{Distances, Network};
use hintd_model::units::{LinkName, SnapshotVersion, Timestamp};
use hintd_policy::IndexedFlows;
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(super) struct Frame {
    /// Of the generation.
    pub(super) number: u64,
    version: SnapshotVersion,
    taken_at: Timestamp,
    heard: LastHeard,
    kinds: Arc<ResourceKinds>,
    rules: Arc<SizeRules>,
    statics: Arc<NodeStatics>,
    network: Option<Arc<Network>>,
    /// A few boxes and chains: too little to be weighed.
    chains: Option<Arc<Chains>>,
    distances: Arc<Distances>,
    /// What links are left with decides when the busiest of them is done.
    link_loads: Arc<BTreeMap<LinkName, LinkLoad>>,
    /// Without rows where no policy of its decisions reads them: 250,000 pairs are some 8 MiB.
    latency: LatencyTable,
    /// Whether it has rows that the generation had.
    pub(super) has_latency: bool,
    columns: Columns,
    pub(super) releases: Releases,
    pub(super) flows: Arc<IndexedFlows>,
}

/// The version that was read last, kept as it was: the next one is compared with it.
#[derive(Debug)]
pub(super) struct LastVersion {
    snapshot: Arc<Snapshot>,
    leases: Overlay,
    /// As the generation had them, and as frames have them.
    flows: (Arc<IndexedFlows>, Arc<IndexedFlows>),
    pub(super) frame: Arc<Frame>,
}

/// What a frame is read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) number: u64,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) leases: &'a Overlay,
    pub(super) releases: &'a Releases,
    pub(super) flows: &'a Arc<IndexedFlows>,
    /// Whether measured latency is read.
    pub(super) latency: bool,
}

/// Whether both are the same value, or neither is there.
fn same<T>(a: Option<&Arc<T>>, b: Option<&Arc<T>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

impl LastVersion {
    /// Reads a version; what it shares with `last` is shared.
    pub(super) fn read(source: &Source<'_>, last: Option<&Self>) -> Self {
        let Source { number, snapshot, leases, releases, flows, latency } = *source;
        let before =
            last.map(|last| Before { columns: &last.frame.columns, snapshot: &last.snapshot, leases: &last.leases });
        let columns = Columns::read(snapshot, leases, before.as_ref());
        let known = last.filter(|last| Arc::ptr_eq(&last.flows.0, flows)).map(|last| Arc::clone(&last.flows.1));
        // A copy is without what policies worked out of it, which nobody counts.
        let own = known.unwrap_or_else(|| Arc::new((**flows).clone()));
        let frame = Frame {
            number,
            version: snapshot.version,
            taken_at: snapshot.taken_at,
            heard: snapshot.heard,
            kinds: Arc::clone(&snapshot.kinds),
            rules: Arc::clone(&snapshot.rules),
            statics: Arc::clone(&snapshot.statics),
            network: snapshot.topology.network.clone(),
            chains: snapshot.topology.chains.clone(),
            distances: Arc::clone(&snapshot.topology.distances),
            link_loads: Arc::clone(&snapshot.link_loads),
            latency: if latency { snapshot.latency.clone() } else { snapshot.latency.without_rows() },
            has_latency: latency || snapshot.latency.is_empty(),
            columns,
            releases: releases.clone(),
            flows: Arc::clone(&own),
        };
        Self {
            snapshot: Arc::clone(snapshot),
            leases: leases.clone(),
            flows: (Arc::clone(flows), own),
            frame: Arc::new(frame),
        }
    }
}

impl Frame {
    /// The cluster as it was, without paths and applications, and what was leased. A topology of `live` that is the
    /// same comes with its tables.
    pub(super) fn thaw(&self, live: Option<&Snapshot>) -> (Snapshot, Overlay) {
        let NodeRows { states, containers, occupied, leases } = self.columns.rows();
        let snapshot = Snapshot {
            version: self.version,
            taken_at: self.taken_at,
            kinds: Arc::clone(&self.kinds),
            rules: Arc::clone(&self.rules),
            statics: Arc::clone(&self.statics),
            state: states,
            occupied,
            containers,
            topology: self.topology(live),
            datasets: Arc::default(),
            applications: Default::default(),
            link_loads: Arc::clone(&self.link_loads),
            latency: self.latency.clone(),
            heard: self.heard,
        };
        (snapshot, leases)
    }

    fn topology(&self, live: Option<&Snapshot>) -> Arc<Topology> {
        let known = live.filter(|live| {
            same(live.topology.network.as_ref(), self.network.as_ref())
                && same(live.topology.chains.as_ref(), self.chains.as_ref())
                && Arc::ptr_eq(&live.topology.distances, &self.distances)
                && Arc::ptr_eq(&live.statics, &self.statics)
        });
        known.map_or_else(
            || {
                let placed = Topology::placed(self.network.clone(), Arc::clone(&self.distances), &self.statics);
                Arc::new(placed.with_chains(self.chains.as_deref()))
            },
            |live| Arc::clone(&live.topology),
        )
    }

    /// Takes it among those that are kept.
    pub(super) fn hold(&self, tally: &mut Tally) {
        tally.bytes += size_of::<Self>() + self.columns.hold();
        tally.hold(&self.statics, || memory_size::statics(&self.statics));
        tally.hold(&self.distances, || memory_size::distances(&self.distances));
        tally.hold(&self.link_loads, || memory_size::link_loads(&self.link_loads));
        for (part, bytes) in self.latency.parts() {
            tally.hold(part, || bytes);
        }
        let slow_peers = self.latency.slow_peers();
        tally.hold(slow_peers, || slow_peers.bytes());
        if let Some(network) = &self.network {
            tally.hold(network, || memory_size::network(network));
        }
        for part in self.releases.parts() {
            tally.hold(part, || part.values().map(|releases| 48 + releases.len() * size_of::<Release>()).sum());
        }
        let flows = &self.flows;
        if tally.hold(flows, || size_of::<IndexedFlows>() + flows.jobs.len() * size_of::<usize>()) {
            for job in &flows.jobs {
                tally.hold(job, || memory_size::job_flows(job));
            }
            for part in flows.routes.parts() {
                tally.hold(part, || part.values().map(|route| memory_size::route(route)).sum());
            }
        }
    }

    /// Takes it out.
    pub(super) fn release(&self, tally: &mut Tally) {
        tally.bytes -= size_of::<Self>() + self.columns.release();
        tally.release(&self.statics);
        tally.release(&self.distances);
        tally.release(&self.link_loads);
        for (part, _) in self.latency.parts() {
            tally.release(part);
        }
        tally.release(self.latency.slow_peers());
        if let Some(network) = &self.network {
            tally.release(network);
        }
        for part in self.releases.parts() {
            tally.release(part);
        }
        if tally.release(&self.flows) {
            for job in self.flows.jobs.iter() {
                tally.release(job);
            }
            for part in self.flows.routes.parts() {
                tally.release(part);
            }
        }
    }
}
