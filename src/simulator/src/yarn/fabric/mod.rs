//! The fabric: who waits for which bytes, and the flows that carry them.
//!
//! # The model
//! - Reads: a map's input comes from the nearest replica that is there, of equally near ones a drawn one.
//! - Shuffle: sources (racks in grain `racks`, nodes in grain `nodes`) hold a job's finished output as totals.
//!   Reduces of one job in one place (rack or node) that begin in one second, which is how often Hadoop's fetchers ask
//!   what is finished, are one *batch*; it begins to fetch at the end of that second and goes through the sources in
//!   their order from a drawn one on. A fetch takes all that its source holds for the batch, while maps run at least a
//!   tenth of what a reduce expects of a source (its share of the shuffle, spread over as many sources as there are
//!   places, at most maps). Each batch has at most `fetches` of them under way, from different sources.
//! - Grain `racks`: between racks the way is [uplink, downlink], each fetch held to NIC ÷ `fetches` and each read to
//!   the NIC of the reading node (of a batch: the least of its nodes' NICs); within a rack it is the reading node's
//!   NIC, bytes on the node itself are free, and a batch's fetch is over when all its nodes have theirs. A rack is one
//!   source, where its nodes would be several: as deployed, a fetch is held to NIC ÷ the racks that hold output where
//!   these are fewer than `fetches`, and within a rack to the NIC alone. Under the other authorities each is held to
//!   NIC ÷ `fetches`, as figures of docs/reproduction.md were made; a job in few racks then takes too long.
//! - Grain `nodes`: the network's own links, of equal shortest paths one drawn by pair; no limits of flows' own.
//! - Grain `racks` with an optical switch: elephants of shuffle ride circuits, see `circuits`.
//! - What can't flow stands still until it can: over links that are down, to racks that are cut off. In grain `nodes`
//!   flows whose way breaks take another where there is one. [`Fabric::stalled`] counts them.
//! - Failures: see the rule in `shuffle::failures`.
//!
//! # Invariants
//! - Bytes are whole, and each reduce gets exactly its share of the shuffle (see `shuffle`).
//! - Results are a function of cluster, settings and calls; nothing hangs on addresses or hashing.
//! - Work: O(1) for a finished map unless it sets off fetches; O(sources) at worst for a fetch, O(1) mostly.

mod active_flows;
mod background;
mod bytes;
mod circuits;
pub(super) mod draw;
mod links;
mod reads;
mod shuffle;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

pub use bytes::{FabricBytes, Locality};
pub use circuits::CircuitUse;
pub use shuffle::Gathered;

use crate::report::RackBytes;
use crate::settings::SimSettings;
use active_flows::{ActiveFlows, Owner};
use background::Streams;
use bytes::Crossed;
use hintd_model::cluster::Snapshot;
use hintd_model::network::{MaxMinError, OpticalProblem};
use hintd_model::units::{Bytes, HostName, LinkIdx, LinkName, Micros, NodeIdx, RackIdx};
use links::Links;
use reads::Reads;
use serde::{Deserialize, Serialize};
use shuffle::{Outside, Shuffle};
use std::sync::Arc;

/// A job's number within a run: the caller's, dense from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobNo(pub u32);

/// A read's number: the caller's, free again once the read has arrived or was stopped; small, for tables by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReadNo(pub u32);

impl JobNo {
    /// Position in a column.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

impl ReadNo {
    /// Position in a column.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// What somebody waited for is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arrived {
    /// A map's input.
    Read(ReadNo),
    /// All of a reduce's shuffle, and all maps of its job are done.
    Shuffle {
        /// The job.
        job: JobNo,
        /// The reduce's number within it.
        reduce: u32,
    },
}

/// Use of a tier's links at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierNow {
    /// `host`, `rack`, `core`.
    pub tier: &'static str,
    /// Mean use over links and directions, 0..1.
    pub mean: f64,
    /// Use of the busiest, 0..1.
    pub max: f64,
    /// Links, each direction counted.
    pub links: u32,
}

impl TierNow {
    const fn of(tier: &'static str) -> Self {
        Self { tier, mean: 0.0, max: 0.0, links: 0 }
    }

    fn add(&mut self, used: f64) {
        self.links += 1;
        self.mean += (used - self.mean) / f64::from(self.links);
        self.max = self.max.max(used);
    }
}

/// Why a cluster has no fabric.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FabricError {
    /// Nothing is known of links.
    #[error("the cluster has no network, so rack \"{rack}\" has no uplink")]
    NoNetwork {
        /// The first rack.
        rack: Arc<str>,
    },
    /// A rack among others that no link leads out of.
    #[error("rack \"{rack}\" has no uplink: no link leads from its switches to others")]
    NoUplink {
        /// The rack.
        rack: Arc<str>,
    },
    /// A node that the network does not name, or that hangs on no switch.
    #[error("node \"{host}\" hangs on no switch of the network")]
    NoNic {
        /// The node.
        host: HostName,
    },
    /// Two racks behind one switch: whose uplink would it be.
    #[error(
        "racks \"{first}\" and \"{second}\" hang on one switch, \"{switch}\": grain racks can't tell their uplinks apart"
    )]
    SharedSwitch {
        /// The switch.
        switch: Arc<str>,
        /// One rack.
        first: Arc<str>,
        /// The other.
        second: Arc<str>,
    },
    /// An optical switch that can't be.
    #[error(transparent)]
    Optical(#[from] OpticalProblem),
    /// Circuits join racks.
    #[error("the network has an optical switch: circuits are simulated from rack to rack, in grain racks only")]
    CircuitsByNode,
    /// Background traffic from or to a rack that is not there or has no nodes.
    #[error("background traffic names rack \"{rack}\", which the cluster does not have or which has no nodes")]
    NoSuchRack {
        /// The rack.
        rack: Arc<str>,
    },
    /// A capacity that no link has.
    #[error(transparent)]
    Capacity(#[from] MaxMinError),
}

/// All traffic of a run, in time.
///
/// Calls with `now_s` first let time pass up to it; what arrives on the way is told by the next [`Self::advance`].
#[derive(Debug, Clone)]
pub struct Fabric {
    wires: ActiveFlows,
    shuffle: Shuffle,
    reads: Reads,
    streams: Streams,
    bytes: FabricBytes,
    /// What crossed racks, by rack.
    racks: Crossed,
    /// Arrived and not told yet.
    ready: Vec<Arrived>,
    /// Used again by every step.
    owners: Vec<Owner>,
}

impl Fabric {
    /// A fabric without traffic at moment 0.
    ///
    /// # Errors
    /// [`FabricError`].
    pub fn new(cluster: &Snapshot, settings: &SimSettings) -> Result<Self, FabricError> {
        let links = Links::new(cluster, settings.grain, settings.seed)?;
        let (nodes, racks) = (links.nodes(), links.racks());
        let (fetches, seed) = (settings.fetches, settings.seed);
        let streams = Streams::new(&cluster.statics, &settings.background, &links, fetches, seed)?;
        Ok(Self {
            wires: ActiveFlows::new(links, settings.rate_tolerance, settings.delays.wire)?,
            shuffle: Shuffle::new(settings, nodes),
            reads: Reads::new(nodes, seed),
            streams,
            bytes: FabricBytes::default(),
            racks: Crossed::new(racks, settings.delays.wire),
            ready: Vec::new(),
            owners: Vec::new(),
        })
    }

    /// Announces a job, before anything else is said of it.
    pub fn job(&mut self, job: JobNo, maps: u64, reduces: u64, shuffle: Bytes) {
        self.shuffle.job(job, maps, reduces, shuffle, &self.wires);
    }

    /// Forgets a job that is done, with all its memory. Calls for it do nothing from then on.
    pub fn forget(&mut self, job: JobNo) {
        let of_it = |what: &Arrived| matches!(what, Arrived::Shuffle { job: of, .. } if *of == job);
        self.ready.retain(|what| !of_it(what));
        self.shuffle.forget(job, &mut self.wires);
    }

    /// Begins to read a map's input and says how far it comes from. On the node itself (and where there are no bytes,
    /// or no replicas are known) there is nothing to wait for; else [`Arrived::Read`] will tell. A number that is
    /// under way is stopped first, but has to be free of arrivals that were not told.
    pub fn read(&mut self, now_s: f64, reader: ReadNo, node: NodeIdx, replicas: &[NodeIdx], bytes: Bytes) -> Locality {
        self.run(now_s);
        self.reads.begin(reader, node, replicas, bytes, &mut self.wires, &mut self.bytes)
    }

    /// Breaks a read off.
    pub fn stop_read(&mut self, now_s: f64, reader: ReadNo) {
        self.run(now_s);
        self.reads.stop(reader, &mut self.wires, &mut self.ready);
    }

    /// A map is done; its output (all reduces' together) lies on its node. The outputs of a job's maps make up its
    /// shuffle.
    pub fn map_done(&mut self, now_s: f64, job: JobNo, map: u32, node: NodeIdx, output: Bytes) {
        self.run(now_s);
        let (shuffle, mut out) = self.parts();
        shuffle.map_done(job, map, node, output, &mut out);
    }

    /// A finished map's output is lost with its node; says whether a reduce needs it still. If so the map has to run
    /// again, and [`Self::maps_complete`] has to be told again when all are done.
    pub fn map_lost(&mut self, now_s: f64, job: JobNo, map: u32, node: NodeIdx) -> bool {
        self.run(now_s);
        let (shuffle, mut out) = self.parts();
        shuffle.map_lost(job, map, node, &mut out)
    }

    /// Maps whose output was lost when no reduce needed it: they have to run again if a reduce has to.
    #[must_use]
    pub fn maps_missing(&self, job: JobNo) -> &[u32] {
        self.shuffle.maps_missing(job)
    }

    /// All maps of the job are done: reduces fetch all that is left, and arrive.
    pub fn maps_complete(&mut self, now_s: f64, job: JobNo) {
        self.run(now_s);
        let (shuffle, mut out) = self.parts();
        shuffle.maps_complete(job, &mut out);
    }

    /// A reduce begins on a node: [`Arrived::Shuffle`] will tell when it has all its bytes.
    pub fn reduce_begins(&mut self, now_s: f64, job: JobNo, reduce: u32, node: NodeIdx) {
        self.run(now_s);
        self.shuffle.reduce_begins(now_s, job, reduce, node, &self.wires);
    }

    /// A reduce has to run again, whether its bytes had arrived or not; not to be called for one that has ended well.
    pub fn reduce_stops(&mut self, now_s: f64, job: JobNo, reduce: u32) {
        self.run(now_s);
        let (shuffle, mut out) = self.parts();
        shuffle.reduce_stops(job, reduce, &mut out);
    }

    /// From now on what a job shuffles between racks waits for [`Self::start_shuffle`]. Before the first job only.
    pub fn hold_shuffles(&mut self) {
        self.shuffle.hold_back(&self.wires.links);
    }

    /// What is held back, by job and racks ascending. Batches that have not begun to fetch hold nothing back yet.
    #[must_use]
    pub fn held_shuffles(&self) -> Vec<Gathered> {
        self.shuffle.held_back()
    }

    /// Starts what is held back for a job from a rack to another; what is gathered later is held back again.
    pub fn start_shuffle(&mut self, now_s: f64, job: JobNo, from: RackIdx, to: RackIdx) {
        self.run(now_s);
        let (shuffle, mut out) = self.parts();
        shuffle.release(job, from, to, &mut out);
    }

    /// From so many bytes on what starts at once from a rack to another rides a circuit; `None`: there can be none.
    #[must_use]
    pub fn elephant(&self, from: RackIdx, to: RackIdx) -> Option<Bytes> {
        self.wires.elephant(from, to)
    }

    /// When circuits should next be chosen, `now` or later: once an interval while an elephant is about. `None`: there is
    /// none, or no optical switch.
    #[must_use]
    pub fn next_choice(&self, now: Micros) -> Option<Micros> {
        self.wires.next_choice(now)
    }

    /// Chooses the circuits of the interval that begins; what starts at this moment should have started.
    pub fn choose_circuits(&mut self, now: Micros) {
        self.run(now.as_secs_f64());
        self.wires.choose(now);
    }

    /// An optical port's mirrors stick, so that it keeps its circuit or stays dark, or move again; says whether the link
    /// is such a port. [`Self::link`] lets a port fail.
    pub fn stick_port(&mut self, now_s: f64, link: &LinkName, stuck: bool) -> bool {
        self.run(now_s);
        self.wires.links.number(link.as_str()).is_some_and(|port| self.wires.stick_port(port, stuck))
    }

    /// What circuits have done so far; `None` without an optical switch.
    #[must_use]
    pub fn circuits(&self) -> Option<CircuitUse> {
        self.wires.circuit_use()
    }

    /// Checks that ports have one circuit at most and that nothing moves over others, or in a pause.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check_circuits(&mut self) -> Result<(), String> {
        self.wires.check_circuits()
    }

    /// When something next happens here if nobody calls, seconds; not always an arrival. `None`: never.
    pub fn next_s(&mut self) -> Option<f64> {
        if self.ready.is_empty() { self.due_s() } else { Some(self.wires.now_s()) }
    }

    fn due_s(&mut self) -> Option<f64> {
        let times = [self.wires.next_s(), self.wires.pause_ends_s(), self.shuffle.next_s(), self.streams.next_s()];
        times.into_iter().flatten().min_by(f64::total_cmp)
    }

    /// Lets time pass up to `to_s`, the moment itself included, and adds what has arrived, in time's order.
    pub fn advance(&mut self, to_s: f64, arrived: &mut Vec<Arrived>) {
        self.run(to_s);
        arrived.append(&mut self.ready);
    }

    fn run(&mut self, to_s: f64) {
        while let Some(at_s) = self.due_s().filter(|&at_s| at_s <= to_s) {
            let mut owners = std::mem::take(&mut self.owners);
            self.wires.advance(at_s, &mut owners);
            self.wires.light();
            for owner in owners.drain(..) {
                self.ended(owner);
            }
            self.owners = owners;
            self.streams.advance(at_s, &mut self.wires);
            let (shuffle, mut out) = self.parts();
            shuffle.begin(at_s, &mut out);
        }
        if to_s.is_finite() && to_s > self.wires.now_s() {
            self.wires.advance(to_s, &mut self.owners);
            debug_assert!(self.owners.is_empty(), "what ends up to then has ended");
        }
    }

    fn ended(&mut self, owner: Owner) {
        match owner {
            Owner::Background => {}
            Owner::Read(reader) => {
                let count = (&mut self.bytes, &mut self.racks);
                self.reads.ended(ReadNo(reader), &self.wires.links, count, &mut self.ready);
            }
            Owner::Fetch { batch, source, group } => {
                let (shuffle, mut out) = self.parts();
                shuffle.flow_ended(batch, source, group);
                if shuffle.land_if_whole(batch, source, &mut out) {
                    shuffle.fetch_on(batch, &mut out);
                }
            }
        }
    }

    const fn parts(&mut self) -> (&mut Shuffle, Outside<'_>) {
        let Self { wires, shuffle, bytes, racks, ready, .. } = self;
        (shuffle, Outside { wires, bytes, racks, ready })
    }

    /// Larger use of a rack's uplink and downlink now, per mille of its capacity, rounded; 0 where it has none.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn rack_use_per_mille(&mut self, rack: RackIdx) -> u32 {
        (self.wires.rack_use(rack) * 1_000.0).round() as u32
    }

    /// What each link carries now, bits/s by direction. Grain `racks` knows racks' links and NICs only, and lays what comes from
    /// another rack on no reader's NIC.
    pub fn link_loads(&mut self) -> Vec<(LinkIdx, [f64; 2])> {
        self.wires.loads()
    }

    /// A link's name.
    #[must_use]
    pub fn link_name(&self, link: LinkIdx) -> &LinkName {
        self.wires.link_name(link)
    }

    /// Use by tier now. Grain `racks` knows the racks' uplinks and downlinks only.
    pub fn tier_use(&mut self) -> Vec<TierNow> {
        self.wires.tiers()
    }

    /// Takes a link down or up; says whether there is such a link. In grain `racks` only links up from racks'
    /// switches, and of these nodes' NICs what stays in the rack, are of account.
    pub fn link(&mut self, now_s: f64, link: &LinkName, up: bool) -> bool {
        self.run(now_s);
        self.wires.set_link(link, up)
    }

    /// A node is lost or back. Lost: what it read and fetched stops for good (its tasks' [`Self::stop_read`] and
    /// [`Self::reduce_stops`] may be called and do nothing), what was read from it is read from elsewhere. Its maps'
    /// output is [`Self::map_lost`]'s affair.
    pub fn node(&mut self, now_s: f64, node: NodeIdx, up: bool) {
        self.run(now_s);
        self.reads.node(node, up, &mut self.wires);
        let (shuffle, mut out) = self.parts();
        shuffle.node(node, up, &mut out);
    }

    /// What has arrived so far.
    #[must_use]
    pub const fn bytes(&self) -> FabricBytes {
        self.bytes
    }

    /// What has left each rack so far and what came into it, as links carry it.
    #[must_use]
    pub fn rack_bytes(&self) -> &[RackBytes] {
        self.racks.by_rack()
    }

    /// What stands still now: flows over links without capacity or without a way, and reads without a replica.
    pub fn stalled(&mut self) -> usize {
        self.wires.stalled() + self.reads.without_replica()
    }

    /// Starts, ends and changes of flows so far: the work done, whatever the machine.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.wires.events()
    }

    /// Flows under way (like ones as one; those of others left out), and reduces that wait for bytes.
    #[must_use]
    pub fn under_way(&self) -> (usize, usize) {
        (self.wires.ending(), self.shuffle.waiting())
    }
}
