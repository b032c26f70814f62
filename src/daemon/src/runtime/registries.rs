//! FeedRegistries: what feeds said last and the engine has not taken yet, shared by all feed streams.
//!
//! # Code map
//! - `refusal`: [`Taken`], how an item was taken, [`ItemRefusal`], why one was not, and [`FeedCounts`].
//! - `total`: what all together may come to.
//! - `nodes`: registrations and heartbeats; of several heartbeats between two drains the last one counts.
//! - `blocks`: datasets, and replicas of their blocks; ids of other blocks are counted and dropped.
//! - `latency`: round trips that wait; `agents`: who measures them, and whom.
//! - `link_states`: links that are down, since when and by whose word, what they carried, and the log's lines about them.
//! - `chains`: middleboxes and chains as declared; `network_registry`: the network as fed, so that a change of an unknown link is refused at once.
//!
//! # Invariants
//! - A refused item changes nothing.
//! - Nothing here awaits, and no lock is held while the engine's sink runs.
//! - Memory is bounded by [`RegistryLimits`], whatever feeds send.

mod agents;
mod blocks;
mod chains;
mod latency;
mod link_states;
mod network_registry;
mod nodes;
mod refusal;
mod total;

pub use agents::{Agents, REFRESH, Target};
pub(in crate::runtime) use link_states::LostLinks;
pub use link_states::{DownLink, LastOutage, LinkTold};
pub use refusal::{FeedCounts, ItemRefusal, Reason, Taken, bounded};

use blocks::Blocks;
use chains::Declared;
use hintd_engine::{CarriedRoutes, Generation};
use hintd_model::cluster::{
    Change, Heartbeat, LinkLoad, Measured, ModelError, NamedDataset, NamedSlowPeers, NodeStatics, Registration,
    SizeRules, Snapshot, Source,
};
use hintd_model::network::Network;
use hintd_model::network::chains::ChainsDocument;
use hintd_model::units::{BitsPerSec, HostName, LinkName, Micros, Timestamp};
use latency::Measurements;
use network_registry::NetworkRegistry;
use nodes::Nodes;
use refusal::Counters;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use total::Total;

/// What registries hold at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryLimits {
    /// Host names ever registered: a row of the model is never given to another name.
    pub nodes: usize,
    /// Registered paths.
    pub datasets: usize,
    /// Blocks of registered paths; a block in two of them counts twice.
    pub blocks: usize,
    /// Links of the network.
    pub links: usize,
    /// Containers that one heartbeat names.
    pub containers_per_node: usize,
    /// Containers that the last heartbeats of all nodes name together.
    pub containers: usize,
    /// Labels, aliases and attributes of one node, of each so many.
    pub names_per_node: usize,
    /// Bytes of the names of all nodes, DataNodes and registered paths together, with what they take beside them.
    pub feed_names_bytes: usize,
    /// Hosts that one block of a dataset names.
    pub replicas_per_block: usize,
    /// Replicas of all blocks together.
    pub replicas: usize,
    /// Input paths that one task event names.
    pub paths_per_event: usize,
}

impl Default for RegistryLimits {
    /// Twice a large Hadoop cluster. A node holds hundreds of containers, far from 10,000; HDFS itself allows 512
    /// replicas of a block. All together have room for 50 containers a node, 6 kB of names a node, 4 replicas a block.
    fn default() -> Self {
        Self {
            nodes: 20_000,
            datasets: 100_000,
            blocks: 4_000_000,
            links: 200_000,
            containers_per_node: 10_000,
            containers: 1_000_000,
            names_per_node: 256,
            feed_names_bytes: 128 << 20,
            replicas_per_block: 512,
            replicas: 16_000_000,
            paths_per_event: 10_000,
        }
    }
}

/// Who tells of the network where the configuration does.
const NETWORK_FILE: &str = "the network file";

/// Latest facts of all feeds.
pub struct FeedRegistries {
    limits: RegistryLimits,
    names: Total,
    nodes: Nodes,
    blocks: Blocks,
    network_registry: Mutex<NetworkRegistry>,
    chains: Mutex<Declared>,
    /// Names that were observed last.
    observed: Mutex<Option<Arc<NodeStatics>>>,
    measured: Mutex<Waiting>,
    agents: Agents,
    /// What a NameNode said of slow DataNodes, if it spoke since the last drain.
    slow_peers: Mutex<Option<NamedSlowPeers>>,
    /// Sources that spoke without a change, one bit each.
    heard: AtomicU8,
    /// The scheduler's settings, if it told of other ones.
    rules: Mutex<Option<SizeRules>>,
    /// Microseconds of [`Self::excuse_silence`].
    excuse_silence: AtomicU64,
    counters: Counters,
    dirty: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    loads: BTreeMap<LinkName, LinkLoad>,
    latency: Measurements,
}

impl FeedRegistries {
    /// Nothing heard yet.
    #[must_use]
    pub fn new(limits: RegistryLimits) -> Self {
        Self {
            names: Total::default(),
            nodes: Nodes::default(),
            blocks: Blocks::default(),
            network_registry: Mutex::default(),
            chains: Mutex::default(),
            observed: Mutex::default(),
            measured: Mutex::default(),
            agents: Agents::default(),
            slow_peers: Mutex::default(),
            heard: AtomicU8::new(0),
            rules: Mutex::default(),
            excuse_silence: AtomicU64::new(0),
            counters: Counters::default(),
            dirty: AtomicBool::new(false),
            limits,
        }
    }

    /// What is held at most.
    #[must_use]
    pub const fn limits(&self) -> &RegistryLimits {
        &self.limits
    }

    /// Whether something is there to drain.
    #[must_use]
    pub fn dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// Gives the engine what changed since the last drain: topology first, then nodes, datasets, measurements.
    /// What the model refuses is counted, and a node whose registration it refuses is told so on its next
    /// heartbeat. Returns how many changes there were.
    pub fn drain(&self, sink: &mut dyn FnMut(Change) -> Result<(), ModelError>) -> usize {
        self.drain_after(self.take_network().1, sink)
    }

    /// The same; `network`: what [`Self::take_network`] took.
    pub(in crate::runtime) fn drain_after(
        &self,
        network: Vec<Change>,
        sink: &mut dyn FnMut(Change) -> Result<(), ModelError>,
    ) -> usize {
        let mut count = 0;
        let spoke = Cell::new(0_u8);
        let mut give = |change: Change| {
            spoke.set(spoke.get() | change.source().map_or(0, bit));
            count += 1;
            let taken = sink(change);
            if taken.is_err() {
                self.counters.refused_by_model();
            }
            taken
        };
        // A refusal of these has no sender left to tell; `give` has counted it.
        network.into_iter().for_each(|change| _ = give(change));
        let chains = self.chains().take();
        chains.into_iter().for_each(|change| _ = give(change));
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner).take();
        rules.into_iter().for_each(|rules| _ = give(Change::Rules(rules)));
        let excused = Micros(self.excuse_silence.swap(0, Ordering::AcqRel));
        if excused > Micros(0) {
            _ = give(Change::ExcuseSilence(excused));
        }
        self.nodes.drain(&mut give);
        self.blocks.drain().into_iter().for_each(|change| _ = give(change));
        let (loads, latency) = {
            let mut measured = self.measured();
            (std::mem::take(&mut measured.loads), measured.latency.drain())
        };
        loads.into_iter().for_each(|(link, load)| _ = give(Change::LinkLoad(link, load)));
        latency.for_each(|measured| _ = give(Change::Latency(measured)));
        let slow_peers = self.slow_peers.lock().unwrap_or_else(PoisonError::into_inner).take();
        slow_peers.into_iter().for_each(|told| _ = give(Change::SlowPeers(told)));
        let heard = self.heard.swap(0, Ordering::AcqRel) & !spoke.get();
        let silent = Source::ALL.into_iter().filter(|&source| heard & bit(source) != 0);
        silent.for_each(|source| _ = give(Change::Heard(source)));
        count
    }

    /// Lets the registries know what the model holds from elsewhere (a cluster file): its nodes may report
    /// without registering again, and its links may change.
    pub fn observe(&self, snapshot: &Snapshot) {
        let mut seen = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        // Every node that is there came through a feed, or with new statics.
        if seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &snapshot.statics)) {
            self.nodes.observe(snapshot);
            *seen = Some(Arc::clone(&snapshot.statics));
        }
        drop(seen);
        let is_news = self.network_registry().observe(snapshot.topology.network.as_ref());
        if is_news {
            self.wake(); // the log is told of links that are down
        }
    }

    /// Lets the registries know which middleboxes and chains are in force, whether they are the configuration's
    /// (`owned`), and what runs under them.
    pub fn observe_chains(&self, owned: bool, generation: &Generation) {
        let chains = generation.snapshot.topology.chains.as_ref();
        self.chains().observe(owned, chains, &generation.flows.chained);
    }

    /// Middleboxes and chains as a whole; an empty document: none.
    ///
    /// # Errors
    /// [`Reason::BadChains`] with every problem, [`Reason::NotOwner`] where the configuration declares them.
    pub fn declare_chains(&self, document: ChainsDocument) -> Result<(), ItemRefusal> {
        let network = self.network_registry().network();
        self.chains().declare(document, network.as_deref())?;
        self.wake();
        Ok(())
    }

    /// A middlebox's state or capacity.
    ///
    /// # Errors
    /// [`Reason::UnknownBox`], [`Reason::Zero`] capacity.
    pub fn middlebox(&self, name: &str, up: Option<bool>, capacity: Option<BitsPerSec>) -> Result<(), ItemRefusal> {
        let changed = self.chains().set_box(name, up, capacity)?;
        self.changed(changed, Source::Topology);
        Ok(())
    }

    /// A node registers.
    ///
    /// # Errors
    /// [`Reason::TooMany`] nodes, or bytes of names.
    pub fn register(&self, registration: Registration) -> Result<(), ItemRefusal> {
        let taken = self.nodes.register(registration, &self.limits, &self.names)?;
        self.counters.taken(taken);
        self.wake();
        Ok(())
    }

    /// A node reports; `response_id` grows with each heartbeat of a registration.
    ///
    /// # Errors
    /// [`Reason::UnknownNode`] (it must register), [`Reason::OutOfOrder`], [`Reason::TooMany`] containers, or where the
    /// model found no place for what the node registered with.
    pub fn heartbeat(&self, heartbeat: Heartbeat, response_id: u32) -> Result<(), ItemRefusal> {
        let taken = self.nodes.heartbeat(heartbeat, response_id, self.limits.containers)?;
        self.counters.taken(taken);
        self.wake();
        Ok(())
    }

    /// Whoever tells of all nodes can't, for so long from now: none is lost by its silence until then.
    pub fn excuse_silence(&self, time: Micros) {
        self.excuse_silence.fetch_max(time.0, Ordering::AcqRel);
        self.wake();
    }

    /// The scheduler allocates by other sizes than those in force.
    pub fn rules(&self, rules: SizeRules) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules);
        self.wake();
    }

    /// A node left for good.
    ///
    /// # Errors
    /// [`Reason::UnknownNode`].
    pub fn gone(&self, host: &HostName) -> Result<(), ItemRefusal> {
        self.nodes.gone(host)?;
        self.wake();
        Ok(())
    }

    /// Replaces the network; `None`: it is not known any more. Counters of the old one are forgotten.
    pub fn network(&self, network: Option<Arc<Network>>) {
        self.network_registry().replace(network, NETWORK_FILE);
        self.measured().loads.clear();
        self.wake();
    }

    /// The same of a feed, called `said_by`.
    ///
    /// # Errors
    /// [`Reason::NotOwner`] where the configuration says what it is, since whenever.
    pub fn fed_network(&self, network: Option<Arc<Network>>, said_by: &str) -> Result<(), ItemRefusal> {
        let mut registry = self.network_registry();
        registry.is_fed()?;
        registry.replace(network, said_by);
        drop(registry);
        self.measured().loads.clear();
        self.wake();
        Ok(())
    }

    /// Replaces the network where it is another one: then counters of links that are in both are kept.
    pub(super) fn network_if_other(&self, network: Option<Arc<Network>>) {
        let known = self.network_registry().network();
        let same = match (&known, &network) {
            (Some(known), Some(network)) => known.is_same(network),
            (None, None) => true,
            _ => false,
        };
        if !same {
            self.network(network);
        }
    }

    /// Whether the configuration says what the network is.
    pub(super) fn own_network(&self, owned: bool) {
        self.network_registry().own(owned);
    }

    /// Whether feeds may say what the network is.
    ///
    /// # Errors
    /// [`Reason::NotOwner`] where the configuration does.
    pub fn network_is_fed(&self) -> Result<(), ItemRefusal> {
        self.network_registry().is_fed()
    }

    /// A link's state or capacity, as a feed called `said_by` tells it.
    ///
    /// # Errors
    /// [`Reason::UnknownLink`].
    pub fn link(
        &self,
        link: &LinkName,
        up: Option<bool>,
        capacity: Option<BitsPerSec>,
        said_by: &str,
    ) -> Result<(), ItemRefusal> {
        let changed = self.network_registry().set_link(link, up, capacity, said_by)?;
        self.changed(changed, Source::Topology);
        Ok(())
    }

    /// Links that carry nothing, the longest first.
    #[must_use]
    pub fn links_down(&self) -> Vec<(LinkName, DownLink)> {
        self.network_registry().links_down()
    }

    /// Since when a link carries nothing, and when its load was measured.
    #[must_use]
    pub fn link_told(&self, link: &LinkName) -> LinkTold {
        self.network_registry().link_told(link)
    }

    /// Begins a drain: links that went down since the last one, lines of the log that are to say what they carried, and the
    /// changes by which the engine learns it. No link is among the first alone or the last alone.
    pub(in crate::runtime) fn take_network(&self) -> (LostLinks, Vec<Change>) {
        self.dirty.store(false, Ordering::Release);
        let mut network = self.network_registry();
        (network.take_lost(), network.take())
    }

    /// What a link carried when it went down.
    pub(in crate::runtime) fn carried(&self, link: &LinkName, carried: CarriedRoutes) {
        self.network_registry().carried(link, carried);
    }

    /// Links of the network, and how many of them carry nothing.
    #[must_use]
    pub fn count_links(&self) -> (usize, usize) {
        self.network_registry().count_links()
    }

    /// A switch's state, as a feed called `said_by` tells it.
    ///
    /// # Errors
    /// [`Reason::UnknownSwitch`].
    pub fn switch(&self, name: &str, up: bool, said_by: &str) -> Result<(), ItemRefusal> {
        let changed = self.network_registry().set_switch(name, up, said_by)?;
        self.changed(changed, Source::Topology);
        Ok(())
    }

    /// A link is no more.
    ///
    /// # Errors
    /// [`Reason::UnknownLink`].
    pub fn remove_link(&self, link: &LinkName) -> Result<(), ItemRefusal> {
        self.network_registry().remove_link(link)?;
        self.measured().loads.remove(link);
        self.wake();
        Ok(())
    }

    /// Counters of a link; the last ones before a drain count.
    ///
    /// # Errors
    /// [`Reason::UnknownLink`].
    pub fn link_load(&self, link: LinkName, load: LinkLoad) -> Result<(), ItemRefusal> {
        {
            let mut network = self.network_registry();
            network.check_link(&link)?;
            network.measured(&link, load);
        }
        self.measured().loads.insert(link, load);
        self.wake();
        Ok(())
    }

    /// Round trips between two hosts, of which the one that measured may tell of so many a second; `instance`: its agent's, 0: none.
    ///
    /// # Errors
    /// [`Reason::UnknownNode`], [`Reason::Malformed`] to itself, [`Reason::NotOwner`] for an agent that another has replaced,
    /// [`Reason::TooMany`] in a second, or while the engine is behind.
    pub fn latency(&self, measured: Measured, instance: u64, per_s: u32, now: Timestamp) -> Result<(), ItemRefusal> {
        let (from, to) = (self.nodes.resolve(&measured.from)?, self.nodes.resolve(&measured.to)?);
        if from == to {
            return Err(ItemRefusal::new(Reason::Malformed, format!("\"{from}\" is measured to itself")));
        }
        if instance != 0 && self.agents.is_replaced(&from, instance, now) {
            let message = format!("another agent of \"{from}\" has taken over: instance {instance} measures no more");
            return Err(ItemRefusal::new(Reason::NotOwner, message));
        }
        self.measured().latency.take(Measured { from, to, ..measured }, per_s, now)?;
        self.wake();
        Ok(())
    }

    /// What a NameNode says of slow DataNodes, all of it.
    pub fn slow_peers(&self, told: NamedSlowPeers) {
        *self.slow_peers.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        self.wake();
    }

    /// Agents that measure latency.
    pub const fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Registers a dataset, or registers it anew. Replicas it names replace what was known of a block.
    ///
    /// # Errors
    /// [`Reason::TooMany`] paths, blocks, replicas, host names or bytes of names.
    pub fn dataset(&self, dataset: &NamedDataset) -> Result<(), ItemRefusal> {
        self.blocks.put(dataset, &self.limits, &self.names)?;
        self.wake();
        Ok(())
    }

    /// A path is no longer registered.
    ///
    /// # Errors
    /// [`Reason::UnknownPath`].
    pub fn remove_dataset(&self, path: &str) -> Result<(), ItemRefusal> {
        self.blocks.remove(path, &self.names)?;
        self.wake();
        Ok(())
    }

    /// A DataNode's blocks in full; those of no registered dataset are counted and dropped.
    ///
    /// # Errors
    /// [`Reason::TooMany`] replicas, host names or bytes of names.
    pub fn full_report(&self, datanode: &HostName, blocks: &[u64]) -> Result<(), ItemRefusal> {
        let report = self.blocks.full_report(datanode, blocks, &self.limits, &self.names)?;
        self.counters.dropped(report.dropped);
        self.changed(report.changed, Source::Blocks);
        Ok(())
    }

    /// What came to and left a DataNode since; a block in both lists left.
    ///
    /// # Errors
    /// [`Reason::TooMany`] replicas, host names or bytes of names.
    pub fn incremental_report(
        &self,
        datanode: &HostName,
        received: &[u64],
        deleted: &[u64],
    ) -> Result<(), ItemRefusal> {
        let report = self.blocks.incremental_report(datanode, (received, deleted), &self.limits, &self.names)?;
        self.counters.dropped(report.dropped);
        self.changed(report.changed, Source::Blocks);
        Ok(())
    }

    /// Whether a DataNode's full report is wanted.
    #[must_use]
    pub fn wants_full_report(&self, datanode: &HostName) -> bool {
        self.blocks.wants_full_report(datanode)
    }

    /// Grows whenever more full reports are wanted, so that idle streams can ask for them.
    #[must_use]
    pub fn full_reports_wanted(&self) -> watch::Receiver<u64> {
        self.blocks.wanted()
    }

    /// Notes that a source spoke without a change.
    pub fn heard(&self, source: Source) {
        self.heard.fetch_or(bit(source), Ordering::AcqRel);
        self.wake();
    }

    /// Counts an item that was looked at.
    pub fn count(&self, source: Source, refused: Option<Reason>) {
        self.counters.item(source, refused);
    }

    /// Counts since the start.
    #[must_use]
    pub fn counts(&self) -> FeedCounts {
        self.counters.read()
    }

    fn changed(&self, changed: bool, source: Source) {
        if changed {
            self.wake();
        } else {
            self.heard(source);
        }
    }

    fn wake(&self) {
        self.dirty.store(true, Ordering::Release);
    }

    fn chains(&self) -> MutexGuard<'_, Declared> {
        self.chains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn network_registry(&self) -> MutexGuard<'_, NetworkRegistry> {
        self.network_registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn measured(&self) -> MutexGuard<'_, Waiting> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for FeedRegistries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedRegistries")
            .field("limits", &self.limits)
            .field("dirty", &self.dirty())
            .finish_non_exhaustive()
    }
}

const fn bit(source: Source) -> u8 {
    1 << source as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::cluster::{NamedBlock, NamedContainer, NamedResource, NodeState};
    use hintd_model::units::{Bytes, ContainerId, SchedulerKey};

    fn node(host: &str, label: &str) -> Registration {
        Registration {
            host: host.into(),
            rack: "/r".into(),
            total: NamedResource::default(),
            labels: vec![label.into()],
            attributes: BTreeMap::new(),
            class: "".into(),
            aliases: Vec::new(),
            disk_read: Bytes::ZERO,
            state: NodeState::Running,
        }
    }

    fn report(host: &str, containers: usize) -> Heartbeat {
        let id = ContainerId { attempt: "appattempt_1_0001_000001".parse().unwrap(), id: 1 };
        let key = SchedulerKey { priority: 0, allocation_request_id: -1 };
        let container = NamedContainer { id, size: NamedResource::default(), key };
        Heartbeat {
            host: host.into(),
            used: NamedResource::default(),
            used_is_running: false,
            containers: Some(vec![container; containers]),
            state: NodeState::Running,
        }
    }

    fn refused<T: std::fmt::Debug>(found: Result<T, ItemRefusal>, limit: &str) {
        let refusal = found.unwrap_err();
        assert_eq!(refusal.reason, Reason::TooMany);
        assert!(refusal.message.contains(limit), "{} lacks {limit}", refusal.message);
    }

    #[test]
    fn containers_of_all_nodes_together_are_bounded_whichever_nodes_name_them() {
        let registries = FeedRegistries::new(RegistryLimits { containers: 5, ..RegistryLimits::default() });
        for host in ["a", "b"] {
            registries.register(node(host, "x")).unwrap();
        }
        let say = |host: &str, id: u32, containers| registries.heartbeat(report(host, containers), id);
        say("a", 1, 3).unwrap();
        say("b", 1, 2).unwrap();
        refused(say("b", 2, 3), "at most 5 (limits.containers)");
        say("b", 2, 2).expect("as many as before, and what was refused changed nothing");
        say("a", 2, 1).unwrap();
        say("b", 3, 4).expect("those that ended elsewhere make room");
        registries.gone(&"b".into()).unwrap();
        say("a", 3, 5).expect("so do those of a node that went");
        refused(say("a", 4, 6), "limits.containers");
        registries.drain(&mut |_| Err(ModelError::UnknownNode("a".into())));
        registries.register(node("c", "x")).unwrap();
        say("c", 1, 5).expect("and those of a node that the model does not know");
    }

    #[test]
    fn bytes_of_all_names_together_are_bounded_whatever_they_name() {
        let takes = |names: &[&str]| total::bytes_of_names(names.iter().copied());
        let most = takes(&["a", "/r", "", &"x".repeat(100), "/in", "d"]);
        let registries = FeedRegistries::new(RegistryLimits { feed_names_bytes: most, ..RegistryLimits::default() });
        let dataset = |path: &str, host: &str| {
            let block = NamedBlock { id: 1, bytes: Bytes(1), hosts: vec![host.into()] };
            NamedDataset { path: path.into(), blocks: vec![block] }
        };
        registries.register(node("a", &"x".repeat(100))).unwrap();
        refused(registries.register(node("b", "x")), "limits.feed_names_bytes");
        registries.register(node("a", &"x".repeat(100))).expect("once more is no more");
        registries.dataset(&dataset("/in", "d")).unwrap();
        registries.dataset(&dataset("/in", "d")).expect("once more is no more");
        refused(registries.register(node("a", &"x".repeat(101))), "limits.feed_names_bytes");
        refused(registries.dataset(&dataset("/in", "e")), "limits.feed_names_bytes");
        refused(registries.full_report(&"e".into(), &[1]), "limits.feed_names_bytes");
        refused(registries.incremental_report(&"e".into(), &[1], &[]), "limits.feed_names_bytes");
        registries.remove_dataset("/in").unwrap();
        registries.register(node("a", &"x".repeat(101))).expect("a path that is gone makes room");
    }

    #[test]
    fn replicas_of_all_blocks_together_are_bounded_whoever_tells_of_them() {
        let registries = FeedRegistries::new(RegistryLimits { replicas: 3, ..RegistryLimits::default() });
        let put = |blocks: &[(u64, &[&str])]| {
            let block = |&(id, hosts): &(u64, &[&str])| NamedBlock {
                id,
                bytes: Bytes(1),
                hosts: hosts.iter().map(|&host| host.into()).collect(),
            };
            registries.dataset(&NamedDataset { path: "/in".into(), blocks: blocks.iter().map(block).collect() })
        };
        put(&[(1, &["a", "b"]), (2, &["a"])]).unwrap();
        refused(put(&[(1, &["a", "b"]), (2, &["a", "b"])]), "at most 3 (limits.replicas)");
        put(&[(1, &["b", "c"]), (2, &["c"])]).expect("as many elsewhere");
        refused(registries.full_report(&"a".into(), &[1, 2]), "limits.replicas");
        refused(registries.incremental_report(&"a".into(), &[1], &[]), "limits.replicas");
        registries.incremental_report(&"c".into(), &[1], &[2]).expect("one that is there, and one less");
        registries.full_report(&"a".into(), &[2, 9]).expect("of which one is of interest");
        refused(registries.full_report(&"d".into(), &[1]), "limits.replicas");
        registries.remove_dataset("/in").unwrap();
        put(&[(7, &["a", "b", "c"])]).expect("what is gone makes room");
    }

    #[test]
    fn many_items_are_one_reason_to_drain() {
        let registries = FeedRegistries::new(RegistryLimits::default());
        assert!(!registries.dirty());
        for _ in 0..3 {
            registries.heard(Source::Events);
        }
        assert!(registries.dirty());
        assert_eq!(registries.drain(&mut |_| Ok(())), 1);
        assert!(!registries.dirty());
    }
}
